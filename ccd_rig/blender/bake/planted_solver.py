# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames with planted bones, solved stretch by stretch: each goes on from where the one before it stands.

Where the body keeps its animation, a frame's pose is the one nearest to its animation that holds the planted
bones. What is let go bends at once as its animation has it, so stretches that follow each other are one
motion, in which neighbours smooth what would jump (`solvers.motion`).

Where the body follows planted bones, the root bone is free to move and turn, and the pose is nearest to the
animated one with the figure put on its base. If something places the root bone in all frames of a stretch,
that decides the pose; else it goes on as far from the animation as the frame before, so that no swap of the
base moves the figure.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from mathutils import Quaternion

from ...maths.batch import Array
from ...skeleton.pose import Pose
from ..properties.constraint_values import Kind
from ..scene.evaluation import FrameSample
from ..solve.constraint_goals import chain_joints
from ..solve.contact_changes import SHARPER, anchor_of, let_go, lifted, released_joints, turned_between
from ..solve.contact_poses import JointPoses
from ..solve.frame_settings import FrameSolveSettings
from ..solve.planting import ContactState
from .bake_frames import BakeFrames, Rows
from .batches import Batch, bones_of
from .group_solving import solve_batches
from .part_poses import PartPoses, Standing, with_free_root
from .planted_frames import PlantedFrames
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


@dataclass
class PlantedSolver:
    """Solves the frames of a bake with planted bones, in order, and keeps the solutions there.

    Attributes:
        settings: how they are solved.
        iterations: most steps of a frame.
    """

    settings: FrameSolveSettings
    iterations: int = 0
    _ended: dict[tuple[int, ...], Ended] = field(default_factory=dict)  # of each part

    def solve(
        self,
        bake_frames: BakeFrames,
        waiting: Sequence[tuple[int, FrameSample]],
        shifts: Array | None = None,
    ) -> Generator[float, None, None]:
        """Solve the next frames; gives how many are, now and then.

        Args:
            bake_frames: where they are kept.
            waiting: rows and samples, in order.
            shifts: (R, 3) by which the body is moved in the samples, armature space.
        """
        rows = np.array([row for row, _ in waiting], dtype=np.intp)
        frames = PlantedFrames.of(bake_frames, rows, [sample for _, sample in waiting], shifts)
        skeleton = frames.samples[0].reading.skeleton
        all_parts = parts(skeleton, frames.constraints, frames.support_chains)
        for part in all_parts:
            solver = _PartSolver(frames, part, self.settings, self._ended.get(part.members))
            for count in solver.solve():
                yield count / len(all_parts)
            assert solver.ended is not None
            self.iterations = max(self.iterations, solver.iterations)
            self._ended[part.members] = solver.ended
        frames.store()


class _PartSolver:
    """Solves the stretches of one part of a figure.

    Attributes:
        ended: how the part stands in the last frame of the stretches that are finished.
        iterations: most steps of a frame.
    """

    def __init__(
        self,
        frames: PlantedFrames,
        part: Part,
        settings: FrameSolveSettings,
        before: Ended | None,
    ) -> None:
        self.frames, self.poses, self.ended = frames, PartPoses(frames, part), before
        self.iterations = 0
        self.chains = frames.support_chains
        limits = [frames.bake_frames.limits[row] for row in frames.rows.tolist()]
        self.stretches = stretches(frames.samples, limits, frames.constraints, self.chains, part)
        self.settings = settings

    def solve(self) -> Generator[float, None, None]:
        """Solve all stretches."""
        for run in self._runs():
            standings, bases = [], []
            for k, stretch in enumerate(run):
                standing = self._standing(stretch)
                standings.append(standing)
                bases.append(self.poses.base(stretch, standing))
                if k + 1 < len(run):
                    self._foretell(stretch, run[k + 1], standing, bases[-1])
            if run[0].active:
                yield from self._solve_run(run, bases)
            for k, stretch in enumerate(run):
                standing = standings[k]
                if k > 0:  # it goes on from the poses as they are now
                    standing = replace(standing, released=self._standing(stretch).released)
                self._finish(stretch, standing)

    def _runs(self) -> list[list[Stretch]]:
        """Stretches that are solved as one motion: something is in force in all of them."""
        runs: list[list[Stretch]] = []
        for stretch in self.stretches:
            goes_on = runs and runs[-1][-1].active and stretch.active and self.chains.keeps_body
            if goes_on:
                runs[-1].append(stretch)
            else:
                runs.append([stretch])
        return runs

    def _finish(self, stretch: Stretch, standing: Standing) -> None:
        """Fill in what is keyed of a solved stretch; the next one goes on from there."""
        state = self.poses.finish(stretch, standing)
        self.ended = Ended(stretch, state, self.frames.solved.pose(stretch.last), standing.fading)

    # What a stretch goes on from ----------------------------------------------------------------------------

    def _foretell(self, stretch: Stretch, after: Stretch, standing: Standing, base: JointPoses) -> None:
        """Solve the last frame of a stretch alone, where the one after it goes on from its pose."""
        last = replace(stretch, first=stretch.last)
        has_target = {c for c in after.planted if self.frames.samples[after.first].targets[c].rotation}
        if stretch.moved - after.moved or set(after.planted) - set(stretch.planted) - has_target:
            batch = self._batch(last, last.rows, base.at([-1]), replace(self.settings, smoothness=0.0))
            for _ in solve_batches([batch]):
                pass
            self.poses.keep(last, last.rows, JointPoses(batch.rotations, batch.translations), batch.states)
        self._finish(last, standing)

    def _standing(self, stretch: Stretch) -> Standing:
        """What a stretch goes on from, where the one before it is finished."""
        frames, root_bone = self.frames, self.chains.root_bone
        sample = frames.samples[stretch.first]
        skeleton, constraints = sample.reading.skeleton, frames.constraints
        held = [c for c in stretch.planted if sample.targets[c].rotation is None]
        if self.ended is None:
            pose = self._unplanted_pose(stretch) if held else None
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
        carried = {} if self._is_body_placed(stretch) else self._carried(stretch, self.ended)
        moved_before = frozenset[int]().union(*self.ended.stretch.moves.values())
        moved = frozenset[int]().union(*stretch.moves.values())
        fading = {
            j: self.ended.fading.get(j, before.frame) if j in moved_before else before.frame
            for j in moved & turns.keys()
        }
        return Standing(anchors, turns, drift, carried=carried, fading=fading)

    def _unplanted_pose(self, stretch: Stretch) -> Pose:
        """The pose in which planted bones are held where no frame was solved before.

        It is the evaluated one, with each chain that carries a planted bone brought to where the other
        constraints of its joints would have it, had nothing been planted.
        """
        frames, row = self.frames, stretch.first
        sample, constraints = frames.samples[row], frames.constraints
        skeleton, start = sample.reading.skeleton, sample.unmoved or sample.reading.pose
        held = [constraints[c] for c in stretch.planted if sample.targets[c].rotation is None]
        legs = {j for constraint in held for j in skeleton.chain(constraint.tip, constraint.chain_length)[1:]}
        influences: dict[int, float] = {}
        active = []
        for c, constraint in enumerate(constraints):
            chain = chain_joints(skeleton, constraint)
            if constraint.kind is Kind.REACH and sample.unplanted[c] > 0.0 and legs.intersection(chain):
                active.append(c)
                influences |= {j: max(influences.get(j, 0.0), sample.unplanted[c]) for j in chain}
        if not active:
            return start
        base, place = JointPoses.of([start]), frames.rows[[row]]
        if frames.bake_frames.reference is not None and self.chains.keeps_body:
            base = JointPoses(frames.bake_frames.reference[place], base.translations)
        batch = Batch(
            frames.frames[[row]],
            constraints,
            tuple(active),
            [sample],
            frames.bake_frames.targets.at(place),
            frames.worlds[[row], :3, :3],
            stretch.limits,
            bones_of(frames.bake_frames, place),
            frames.bake_frames.lengths[place],
            base,
            replace(self.settings, smoothness=0.0),
            sharper=SHARPER,
        )
        for _ in solve_batches([batch]):
            pass
        return turned_between(skeleton, start, batch.pose(0), influences)

    def _is_body_placed(self, stretch: Stretch) -> bool:
        """Whether a Reach says at all frames of a stretch where the root bone is, and how it is turned."""
        frames = self.frames
        name = frames.samples[stretch.first].reading.skeleton.joints[self.chains.root_bone].name
        placing = [
            c
            for c, constraint in enumerate(frames.constraints)
            if constraint.tip == name
            and constraint.kind is Kind.REACH
            and constraint.use_position
            and not constraint.use_tail
            and not any(constraint.effector_offset)
            and constraint.rotation_bone in ("", name)
        ]
        samples = [frames.samples[row] for row in stretch.rows.tolist()]
        return all(
            any(sample.influences[c] >= 1.0 and sample.targets[c].rotation is not None for c in placing)
            for sample in samples
        )

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

    def _solve_run(self, run: Sequence[Stretch], bases: Sequence[JointPoses]) -> Generator[float, None, None]:
        """Solve stretches as one motion."""
        frames, poses = self.frames, self.poses
        alike: dict[object, list[int]] = {}
        for k, stretch in enumerate(run):
            alike.setdefault((stretch.active, stretch.limits, stretch.slides), []).append(k)
        batches, rows_of = [], []
        for places in alike.values():
            rows = np.concatenate([run[k].rows for k in places])
            whole = (np.concatenate(each) for each in zip(*(bases[k] for k in places), strict=True))
            batches.append(self._batch(run[places[0]], rows, JointPoses(*whole), self.settings))
            rows_of.append(rows)
        if run[0].active != (poses.stands_on(run[0]),):  # else the base poses have all that is asked for
            yield from solve_batches(batches)
        members, known = set(poses.part.members), frames.bake_frames.smoothed
        for places, batch, rows in zip(alike.values(), batches, rows_of, strict=True):
            self.iterations = max(self.iterations, batch.iterations)
            solved = JointPoses(batch.rotations, batch.translations)
            poses.keep(run[places[0]], rows, solved, batch.states)
            for row, smoothed in zip(frames.rows[rows].tolist(), batch.smoothed, strict=True):
                others = (each for each in known.get(row, ()) if members.isdisjoint(each.constraints))
                known[row] = (*others, *smoothed)

    def _batch(self, first: Stretch, rows: Rows, base: JointPoses, settings: FrameSolveSettings) -> Batch:
        """Rows of stretches like the first of them, as a batch; `base` are their base poses."""
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
        targets = bake_frames.targets.at(places).copy()
        for c in first.planted:
            targets.points[:, c], targets.rotations[:, c] = frames.held_targets(rows, c)
        return Batch(
            frames.frames[rows],
            held_constraints(skeleton, frames.constraints, chains, first.planted),
            samples[0].active,
            samples,
            targets,
            frames.worlds[rows, :3, :3],
            tuple(limits),
            bones_of(bake_frames, places),
            bake_frames.lengths[places],
            base,
            settings,
            sharper=SHARPER if first.planted else 1.0,
        )
