# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames with planted bones, solved in batches of all stretches with the same constraints in force.

A stretch can be solved as soon as it is known where its bones are held. That is told by the frame before it
once that is solved, or foreseen: a foot that its own Reach has brought to a target is held there, and a leg
that only its animation moves is where that has it. So most stretches need not wait for one another.

Where the body keeps its animation, a frame's pose is the one nearest to its animation that holds the planted
bones. Where it follows planted bones, the root bone is free to move and turn, and the pose is nearest to the
animated one with the figure put on its base. If something places the root bone in all frames, that decides
the pose; else a stretch goes on as far from the animation as the frame before, so that no swap of the base
moves the figure.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from mathutils import Quaternion

from ...settings import Solver
from ...skeleton.pose import Pose
from ..scene.evaluation import FrameSample
from ..solve.contact_changes import SHARPER, anchor_of, let_go, lifted, released_joints, unplanted_pose
from ..solve.contact_poses import JointPoses
from ..solve.planting import ContactState
from ..solve.solving import FrameSolveSettings, base_pose, frame_conditions
from .bake_frames import BakeFrames, Rows
from .batches import Batch, bones_of
from .foresight import Foresight, Standing, fading
from .group_solving import Groups, States, solve_batch
from .part_poses import PartPoses, with_free_root
from .planted_frames import BodyMoves, PlantedFrames
from .stretches import Part, Stretch, held_constraints, parts, stretches

WAITING_AT_MOST = 512
"""Frames that are solved at once: what is read of a frame takes memory."""


@dataclass(frozen=True)
class Ended:
    """How a part stands in its last solved frame.

    Attributes:
        stretch: that it belongs to.
        contact_state: what the next one goes on from.
        solved: the pose at full influence.
        fading: see `Standing.fading`.
    """

    stretch: Stretch
    contact_state: ContactState
    solved: Pose
    fading: Mapping[int, float]


def one_by_one(bake_frames: BakeFrames, settings: FrameSolveSettings) -> bool:
    """Whether frames with planted bones are solved in turn, each from the one before (`solve.walking`)."""
    return settings.solver.solver is Solver.CCD or len(bake_frames.solved_frames) == 1


@dataclass
class PlantedSolver:
    """Solves the frames of a bake with planted bones, in order, and keeps the solutions there.

    Attributes:
        settings: how they are solved.
    """

    settings: FrameSolveSettings
    _ended: dict[tuple[int, ...], Ended] = field(default_factory=dict)  # of each part

    def solve(
        self,
        bake_frames: BakeFrames,
        waiting: Sequence[tuple[int, FrameSample]],
        moves: BodyMoves | None = None,
    ) -> Generator[float, None, None]:
        """Solve the next frames; gives how many are, now and then.

        Args:
            bake_frames: where they are kept.
            waiting: rows and samples, in order.
            moves: of the body, where frames are solved again with that; the samples have it moved.
        """
        rows = np.array([row for row, _ in waiting], dtype=np.intp)
        frames = PlantedFrames.of(bake_frames, rows, [sample for _, sample in waiting], moves)
        skeleton = frames.samples[0].reading.skeleton
        all_parts = parts(skeleton, frames.constraints, frames.support_chains)
        for part in all_parts:
            solver = _PartSolver(frames, part, self.settings, self._ended.get(part.members))
            for count in solver.solve():
                yield count / len(all_parts)
            assert solver.ended is not None
            self._ended[part.members] = solver.ended
        frames.store()


class _PartSolver:
    """Solves the stretches of one part of a figure.

    Attributes:
        ended: how the part stands in the last frame of the stretches that are finished.
    """

    def __init__(
        self,
        frames: PlantedFrames,
        part: Part,
        settings: FrameSolveSettings,
        before: Ended | None,
    ) -> None:
        self.frames, self.poses, self.ended = frames, PartPoses(frames, part), before
        self.chains = frames.support_chains
        limits = [frames.bake_frames.limits[row] for row in frames.rows.tolist()]
        self.stretches = stretches(frames.samples, limits, frames.constraints, self.chains, part)
        # Where the body follows planted bones the poses that joints start in are all they stay near to.
        self.settings = settings if self.chains.keeps_body else replace(settings, reference=base_pose)
        state = None if before is None else before.contact_state
        self.foresight = Foresight(frames, self.stretches, state, settings.solver)
        self.finished = 0
        self.standings: dict[int, Standing] = {}  # of stretches that can be solved
        self.foreseen: set[int] = set()  # those of them that have not been compared with the frame before
        self.solved: set[int] = set()

    def solve(self) -> Generator[float, None, None]:
        """Solve all stretches."""
        while self.finished < len(self.stretches):
            kinds: dict[object, list[int]] = {}
            for k in self._ready():
                stretch = self.stretches[k]
                kinds.setdefault((stretch.active, stretch.limits, stretch.slides), []).append(k)
            for some in kinds.values():
                yield from self._solve_stretches(some)
            self.solved.update(k for some in kinds.values() for k in some)
            self._finish()

    # What a stretch goes on from ----------------------------------------------------------------------------

    def _ready(self) -> list[int]:
        """Stretches that can be solved now."""
        found = []
        for k in range(self.finished, len(self.stretches)):
            if k in self.solved:
                continue
            if k == self.finished:
                standing: Standing | None = self._standing(k)
                self.foreseen.discard(k)
            else:
                standing = self.foresight.standing(k, self.standings.get(k - 1))
                self.foreseen.add(k)
            if standing is None:
                self.standings.pop(k, None)
            else:
                self.standings[k] = standing
                found.append(k)
        return found

    def _standing(self, k: int) -> Standing:
        """What a stretch goes on from, where the one before it is finished."""
        frames, stretch, root_bone = self.frames, self.stretches[k], self.chains.root_bone
        sample = frames.samples[stretch.first]
        skeleton, constraints = sample.reading.skeleton, frames.constraints
        held = [c for c in stretch.planted if sample.targets[c].rotation is None]
        if self.ended is None:
            conditions = frame_conditions(sample, self.settings, False)
            if not self.chains.keeps_body:
                conditions = replace(conditions, reference=None)
            pose = unplanted_pose(sample, constraints, stretch.planted, conditions) if held else None
            world = frames.worlds[stretch.first]
            return Standing(
                {}
                if pose is None
                else {c: anchor_of(constraints[c].tip, skeleton, pose, world) for c in held}
            )
        before = self.ended.contact_state
        anchors = {
            c: before.anchors.get(c) or anchor_of(constraints[c].tip, skeleton, before.pose, before.world)
            for c in held
        }
        if self.chains.keeps_body:
            released = released_joints(before, stretch.moved, root_bone, sample.frame)
            return Standing(anchors, released=released)
        turns = {**before.turns, **let_go(before, stretch.moved, root_bone)}
        drift = before.drift if stretch.planted else lifted(skeleton, before, root_bone)
        carried = {} if self.foresight.body_is_placed else self._carried(stretch, self.ended)
        faded = fading((self.ended.stretch, self.ended.fading), stretch, turns, before.frame)
        return Standing(anchors, turns, drift, carried=carried, fading=faded)

    def _carried(self, stretch: Stretch, ended: Ended) -> dict[int, Quaternion]:
        """Joints that go on being moved, with what they are turned by beside their animation."""
        legs = {*self.chains.joints, self.chains.root_bone}
        known = ended.contact_state.moved | {j for js in ended.stretch.moves.values() for j in js - legs}
        animated = ended.contact_state.animated
        return {
            j: (ended.solved.rotations[j] @ animated.rotations[j].conjugated()).normalized()
            for j in frozenset().union(*stretch.moves.values()) & known
        }

    # Solving ------------------------------------------------------------------------------------------------

    def _solve_stretches(self, some: Sequence[int]) -> Generator[float, None, None]:
        """Solve stretches with the same constraints in force as one batch."""
        frames, poses, first = self.frames, self.poses, self.stretches[some[0]]
        if not first.active:
            return
        rows = np.concatenate([self.stretches[k].rows for k in some])
        bases = [poses.base(self.stretches[k], self.standings[k]) for k in some]
        base = JointPoses(*(np.concatenate(each) for each in zip(*bases, strict=True)))
        runs = np.repeat(np.arange(len(some)), [len(self.stretches[k].rows) for k in some])
        fresh = ~np.array([frames.is_kept(row, first.planted) for row in rows.tolist()])
        if self.foresight.hangs_on_unmoved(first):  # bones on their way back may be elsewhere now
            fresh[:] = True
        rows, base, runs = rows[fresh], base.at(fresh), runs[fresh]
        if not len(rows):
            return
        frames.kept[rows] = False
        states: States = [{} for _ in rows]
        smoothed: Groups = [[] for _ in rows]
        if first.active != (poses.stands_on(first),):  # else the base poses have all that is asked for
            batch = self._batch(first, rows, base, runs)
            yield from solve_batch(batch, states, smoothed)
            base = JointPoses(batch.rotations, batch.translations)
        poses.keep(first, rows, base, states)
        own, known = set(self.poses.part.members), frames.bake_frames.smoothed
        for row, found in zip(frames.rows[rows].tolist(), smoothed, strict=True):
            kept = (each for each in known.get(row, ()) if own.isdisjoint(each.constraints))
            known[row] = (*kept, *found)

    def _batch(self, first: Stretch, rows: Rows, base: JointPoses, runs: Rows) -> Batch:
        """Rows of stretches like the first of them, as a batch.

        Args:
            first: one of the stretches.
            rows: (R,) of all of them.
            base: the base poses of the rows.
            runs: (R,) the stretch of each.
        """
        frames, chains = self.frames, self.frames.support_chains
        bake_frames, places = frames.bake_frames, frames.rows[rows]
        samples = [self.poses.sample(row, first) for row in rows.tolist()]
        limits, skeleton = list(first.limits), samples[0].reading.skeleton
        if self.poses.stands_on(first) >= 0:
            limits[chains.root_bone] = None
            shift = float(np.abs(base.translations[:, chains.root_bone]).max())
            samples = with_free_root(samples, chains.root_bone, shift)
        if bake_frames.reference is not None and chains.keeps_body:
            base = JointPoses(bake_frames.reference[places], base.translations)
        # Rows that stay as they are part those beside them.
        runs = np.cumsum((np.diff(rows, prepend=rows[0]) != 1) | (np.diff(runs, prepend=runs[0]) != 0))
        return Batch(
            frames.frames[rows],
            runs,
            held_constraints(skeleton, frames.constraints, chains, first.planted),
            samples[0].active,
            samples,
            [sample.targets for sample in samples],
            frames.worlds[rows, :3, :3],
            tuple(limits),
            bones_of(bake_frames, places),
            bake_frames.lengths[places],
            base,
            self.settings,
            sharper=SHARPER if first.planted else 1.0,
        )

    # What comes of it ---------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Go on to the first stretch that is not solved from what is true of the frame before it."""
        while self.finished < len(self.stretches) and self.finished in self.solved:
            k, stretch = self.finished, self.stretches[self.finished]
            if k in self.foreseen:
                present = self._standing(k)
                if not self.foresight.holds(k, self.standings[k], present):
                    self._forget(k, present)
                    return
                self.standings[k] = replace(self.standings[k], released=present.released)
                self.foreseen.discard(k)
            state = self.poses.finish(stretch, self.standings[k])
            self.ended = Ended(
                stretch, state, self.frames.solved.pose(stretch.last), self.standings[k].fading
            )
            self.finished += 1

    def _forget(self, k: int, present: Standing) -> None:
        """Solve a stretch anew that was foreseen wrongly, and those after it that go on from it."""
        wrong = set(present.anchors)
        for later in range(k, len(self.stretches)):
            if later > k:
                wrong &= set(self.stretches[later].planted)
            if later > k and not wrong and (self.chains.keeps_body or self.stretches[later].planted):
                return
            self.solved.discard(later)
            self.foreseen.discard(later)
