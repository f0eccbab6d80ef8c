# SPDX-License-Identifier: GPL-3.0-or-later
"""The body that helps while bones are planted.

Planted bones, and where the animation lets it legs and the bone that carries the figure, are solved first.
Where a chain misses its target then, the figure is solved once more from that pose, all chains and the body
at once. The bone that carries the figure is free to turn and move there. Every foot is held where it is
before, so that a body that has moved changes no step: planted feet at their anchors, and those that swing on
their way.

A body that keeps its animation is moved where legs are too short. Then chains whose targets are where the
animation has their ends ask for no help. They stay behind as they do without it.

Shapes: S solved frames, J joints.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np

from ...limits.shapes import Limit
from ...maths.batch import Mask, alike, length
from ...skeleton.joints import Skeleton
from ..properties.constraint_values import WHOLE, Constraint
from ..solve.methods import FrameSolveSettings, are_solved_at_once, chain_ends, chain_joints
from ..solve.planting import JointPoses
from .bake_frames import BakeFrames, Rows
from .group_solving import Batch, let_body_help, slack
from .planted_solver import AROUND, SHARPER, PlantedFrames, with_free_bone
from .report import GAVE_WAY, REACHED


def help_planted(
    bake_frames: BakeFrames, settings: FrameSolveSettings, is_free: bool
) -> Generator[float, None, None]:
    """Solve frames with planted bones again with the body, where chains miss their targets; yields counts.

    Args:
        bake_frames: solved.
        is_free: whether the bone that carries the figure can be moved and turned.
    """
    whole = [c for c, constraint in enumerate(bake_frames.constraints) if constraint.body_length]
    rows = bake_frames.solved_rows
    if not whole:
        return
    tracks = bake_frames.planted_tracks
    if tracks.turns_body:
        back = bake_frames.returning.intersection(tracks.joints())
        tracks.contacts.moved = [each | back for each in tracks.contacts.moved]
    figure = _Figure(bake_frames, settings, is_free)
    asking = [k for k in range(len(rows)) if any(figure.misses(k, c) for c in whole)]
    if not asking:
        return
    rows_of = [np.array(asking)[places] for places in alike(map(figure.key, asking))]
    batches = [figure.batch(places) for places in rows_of]
    yield from let_body_help(batches, bake_frames.frames[rows], 0)
    for places, batch in zip(rows_of, batches, strict=True):
        figure.store(places, batch)


class _Figure:
    """A figure with planted bones, solved without the help of its body."""

    def __init__(self, bake_frames: BakeFrames, settings: FrameSolveSettings, is_free: bool) -> None:
        """Take the solved frames; settings are of every solve, and `is_free` as of `help_planted`."""
        self.bake_frames, self.settings, self.is_free = bake_frames, settings, is_free
        tracks = bake_frames.planted_tracks
        joints, contacts, root_bone = tracks.joints(), tracks.contacts, tracks.support_chains.root_bone
        frames = PlantedFrames(bake_frames, None)
        # (S) poses that are keyed, with other chains than legs at full influence.
        self.keyed = JointPoses(bake_frames.solved.copy(), frames.animated.translations.copy())
        self.keyed.rotations[:, joints] = contacts.rotations[:, joints]
        self.keyed.translations[:, root_bone] = contacts.translations[:, root_bone]
        # (S, J, 3) heads and (S, J, 4) rotations of these, armature space.
        self.heads, self.turns = frames.transforms(self.keyed)
        # By constraint that plants a bone, the joints of its limb alone.
        self.limbs = _limbs(bake_frames.skeleton, bake_frames.constraints)
        # By constraint, (S,) mask of frames at which its target is where the animation of a body that keeps
        # it has its end.
        self.resting: dict[int, Mask] = {}
        if tracks.keeps_body:
            rows, animated = bake_frames.solved_rows, frames.transforms(frames.animated)
            for c, constraint in enumerate(bake_frames.constraints):
                if constraint.body_length:
                    lengths = bake_frames.lengths[rows]
                    ends = chain_ends(bake_frames.skeleton, constraint, lengths, *animated)
                    apart = length(bake_frames.targets.points[rows, c] - ends, axis=-1)
                    self.resting[c] = apart <= slack(bake_frames.skeleton, constraint, lengths)

    def _row(self, k: int) -> int:
        return int(self.bake_frames.solved_rows[k])

    def _held(self, k: int) -> tuple[int, ...]:
        """The constraints that hold a foot at a solved frame, one for each bone, planted ones first.

        A foot that swings and misses a target of its own is not held.
        """
        bake_frames, constraints = self.bake_frames, self.bake_frames.constraints
        planted = bake_frames.planted_tracks.contacts.planted[k]
        missed = [c for c in self._reaching(k) if self.misses(k, c)]
        moved = {j for c in missed for j in chain_joints(bake_frames.skeleton, constraints[c])}
        held: dict[str, int] = {}
        for c in sorted(self.limbs, key=lambda c: not planted[c]):
            if planted[c] or moved.isdisjoint(self.limbs[c]):
                held.setdefault(constraints[c].tip, c)
        return tuple(sorted(held.values()))

    def _reaching(self, k: int) -> list[int]:
        """The active constraints that plant nothing at a solved frame."""
        constraints = self.bake_frames.constraints
        active = np.flatnonzero(self.bake_frames.influences[self._row(k)] > 0.0).tolist()
        return [c for c in active if not constraints[c].kind.plants]

    def misses(self, k: int, c: int) -> bool:
        """Whether a constraint misses its target at a solved frame and asks for help."""
        states, length = self.bake_frames.states[self._row(k)], self.bake_frames.constraints[c].body_length
        return bool(length) and not self._rests(k, c) and states.get(c, REACHED) != REACHED

    def _rests(self, k: int, c: int) -> bool:
        return c in self.resting and bool(self.resting[c][k])

    def key(self, k: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Limit | None, ...], object]:
        """Equal for solved frames that are solved as one batch."""
        bake_frames, constraints, row = self.bake_frames, self.bake_frames.constraints, self._row(k)
        held = self._held(k)
        limbs = {j for c in held for j in self.limbs[c]}
        active = tuple(
            c
            for c in self._reaching(k)
            if limbs.isdisjoint(chain_joints(bake_frames.skeleton, constraints[c]))
            and are_solved_at_once([constraints[c]])
        )
        return held, active, bake_frames.limits[row], bake_frames.shifting[row]

    def batch(self, places: Rows) -> Batch:
        """Solved frames with equal keys, at the poses without help."""
        bake_frames, tracks = self.bake_frames, self.bake_frames.planted_tracks
        rows, root_bone = bake_frames.solved_rows[places], tracks.support_chains.root_bone
        held, active, limits, _ = self.key(int(places[0]))
        batch = Batch.of(bake_frames, rows, self.settings)
        skeleton, constraints, targets = batch.skeleton, list(bake_frames.constraints), batch.targets.copy()
        for c, constraint in enumerate(constraints):
            if c in held:
                constraints[c] = replace(constraint, holds=WHOLE)
                tip = skeleton.index(constraint.tip)
                targets.points[:, c] = self.heads[places, tip]
                targets.rotations[:, c] = self.turns[places, tip]
            else:
                constraints[c] = replace(constraint, priority=constraint.priority + 1)
        for c, where in self.resting.items():
            at = places[where[places]]
            if len(at):
                lengths = bake_frames.lengths[bake_frames.solved_rows[at]]
                ends = chain_ends(skeleton, constraints[c], lengths, self.heads[at], self.turns[at])
                targets.points[where[places], c] = ends
        keyed = self.keyed.at(places)
        batch.base.rotations[:, root_bone] = keyed.rotations[:, root_bone]
        batch.base.translations[:, root_bone] = keyed.translations[:, root_bone]
        if self.is_free:
            shift = float(np.abs(keyed.translations[:, root_bone]).max())
            room = AROUND * sum(each.offset.length for each in skeleton.joints) + shift
            skeleton = with_free_bone(skeleton, root_bone, room, keeps_limit=tracks.keeps_body)
        free_limits = list(limits)
        if not tracks.keeps_body:  # as free as it is while it follows planted bones
            free_limits[root_bone] = None
        batch = replace(
            batch,
            constraints=constraints,
            active=tuple(sorted((*held, *active))),
            skeletons=[skeleton],
            targets=targets,
            limits=tuple(free_limits),
            sharper=SHARPER,
        )
        batch.rotations, batch.translations = keyed.rotations, keyed.translations
        for k, row in enumerate(rows.tolist()):
            states = bake_frames.states[row].items()
            batch.states[k] = {c: REACHED if self._rests(int(places[k]), c) else each for c, each in states}
        return batch

    def store(self, places: Rows, batch: Batch) -> None:
        """Store the rows of a batch at which the body helps."""
        bake_frames, tracks = self.bake_frames, self.bake_frames.planted_tracks
        contacts, root_bone = tracks.contacts, tracks.support_chains.root_bone
        rows = bake_frames.solved_rows[places].tolist()
        helped = np.array(sorted(batch.helped), np.intp)
        if not len(helped):
            return
        if tracks.unhelped is None:
            tracks.unhelped = contacts.translations[:, root_bone].copy()
        known, at = bake_frames.smoothed, places[helped]
        bake_frames.solved[at] = batch.rotations[helped]
        bake_frames.solved_slides[at] = bake_frames.slid(
            bake_frames.solved_rows[at], batch.translations[helped]
        )
        contacts.rotations[at] = np.float32(batch.rotations[helped])
        contacts.translations[at] = np.float32(batch.translations[helped])
        for k in helped.tolist():
            row, place = rows[k], int(places[k])
            members = [c for c in batch.active if not batch.constraints[c].kind.plants]
            states = {c: batch.states[k][c] for c in members}
            ended = {c: each for c, each in states.items() if each == GAVE_WAY or not self._rests(place, c)}
            bake_frames.states[row] = {**bake_frames.states[row], **ended}
            bake_frames.helped[row] = batch.helped[k]
            known[row] = (*known.get(row, ()), *batch.smoothed[k])
            contacts.moved[place] |= {*tracks.support_chains.joints}
            if self.is_free:
                contacts.moved[place] |= {root_bone}
        tracks.turns_body |= self.is_free and tracks.keeps_body


def _limbs(skeleton: Skeleton, constraints: Sequence[Constraint]) -> dict[int, frozenset[int]]:
    """By constraint that plants a bone, the joints of its chain below the last one that other limbs share."""
    tips = {c: skeleton.index(each.tip) for c, each in enumerate(constraints) if each.kind.plants}
    whole = {c: skeleton.chain(tip) for c, tip in tips.items()}
    limbs = {}
    for c, chain in whole.items():
        others = [o for o, other in whole.items() if tips[c] not in other and tips[o] not in chain]
        shared = {j for o in others for j in whole[o]}
        below = skeleton.chain(constraints[c].tip, constraints[c].chain_length)[1:]
        limbs[c] = frozenset(below) - shared
    return limbs
