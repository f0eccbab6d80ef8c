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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from mathutils import Quaternion

from ...limits.shapes import Slide
from ...maths.batch import Array
from ...settings import Solver, SolveStatus
from ...skeleton.joints import Joint, Skeleton
from ...skeleton.pose import Pose
from ...solvers.least_squares.ways import NEAR
from ..scene.evaluation import FrameSample
from ..solve.contact_poses import JointPoses, blended, drifted, placed, returning, turned
from ..solve.planting import ContactState
from ..solve.solving import FrameSolveSettings, base_pose, frame_conditions
from ..solve.walking import SHARPER, anchor_of, let_go, lifted, released_joints, unplanted_pose
from .bake_frames import BakeFrames, Rows
from .batch_solver import BatchSolver
from .batches import Batch, bones_of
from .foresight import Foresight, Standing
from .planted_frames import PlantedFrames
from .stretches import Part, Stretch, held_constraints, parts, stretches

WAITING_AT_MOST = 512
"""Frames that are solved at once: what is read of a frame takes memory."""
APART = 2 * NEAR
"""Frames by which stretches are set apart in a batch: they are not to be compared, and keep their places
among the key poses."""
AROUND = 2.0
"""Lengths of a leg by which the root bone may be moved from where the animation has it above its base."""


@dataclass(frozen=True)
class Ended:
    """How a part stands in its last solved frame.

    Attributes:
        stretch: that it belongs to.
        contact_state: what the next one goes on from.
        solved: the pose at full influence.
    """

    stretch: Stretch
    contact_state: ContactState
    solved: Pose


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
    _batches: BatchSolver = field(default_factory=BatchSolver)
    _ended: dict[tuple[int, ...], Ended] = field(default_factory=dict)  # of each part

    def solve(
        self, bake_frames: BakeFrames, waiting: Sequence[tuple[int, FrameSample]], shifts: Array | None = None
    ) -> Iterator[None]:
        """Solve the next frames; an item after each longer piece of work.

        Args:
            bake_frames: where they are kept.
            waiting: rows and samples, in order.
            shifts: (R, 3) by which the body of each frame is moved, armature space; the samples have that.
        """
        rows = np.array([row for row, _ in waiting], dtype=np.intp)
        frames = PlantedFrames.of(bake_frames, rows, [sample for _, sample in waiting], shifts)
        skeleton = frames.samples[0].reading.skeleton
        for part in parts(skeleton, frames.constraints, frames.support_chains):
            solver = _PartSolver(frames, part, self.settings, self._batches, self._ended.get(part.members))
            yield from solver.solve()
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
        batches: BatchSolver,
        before: Ended | None,
    ) -> None:
        self.frames, self.part, self.batches, self.ended = frames, part, batches, before
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

    def solve(self) -> Iterator[None]:
        """Solve all stretches; an item after each longer piece of work."""
        while self.finished < len(self.stretches):
            kinds: dict[object, list[int]] = {}
            for k in self._ready():
                stretch = self.stretches[k]
                kinds.setdefault((stretch.active, stretch.planted, stretch.limits), []).append(k)
            for some in kinds.values():
                yield from self._solve_stretches(some)
                self.solved.update(some)
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
        return Standing(anchors, turns, drift, carried=carried)

    def _carried(self, stretch: Stretch, ended: Ended) -> dict[int, Quaternion]:
        """Joints that go on being moved, with what they are turned by beside their animation."""
        legs = {*self.chains.joints, self.chains.root_bone}
        known = ended.contact_state.moved | {j for js in ended.stretch.moves.values() for j in js - legs}
        animated = ended.contact_state.animated
        return {
            j: (ended.solved.rotations[j] @ animated.rotations[j].conjugated()).normalized()
            for j in frozenset().union(*stretch.moves.values()) & known
        }

    def _continued(self, k: int) -> JointPoses:
        """The animated poses of a stretch, with what was let go moved on from where it stood."""
        frames, stretch, standing = self.frames, self.stretches[k], self.standings[k]
        rows, own = stretch.rows, sorted(self.part.joints)
        poses, animated = frames.solved.at(rows), frames.animated.at(rows)
        poses.rotations[:, own], poses.translations[:, own] = (
            animated.rotations[:, own],
            animated.translations[:, own],
        )
        if self.chains.keeps_body:
            returning(poses.rotations, frames.frames[rows], standing.released, stretch.limits)
        else:
            turned(poses.rotations, standing.turns, stretch.limits)
            root_bone, bones = self.chains.root_bone, frames.bones.at(rows)
            drifted(poses, bones, root_bone, frames.worlds[rows], standing.drift)
        return poses

    # Solving ------------------------------------------------------------------------------------------------

    def _solve_stretches(self, some: Sequence[int]) -> Iterator[None]:
        """Solve stretches with the same constraints in force as one batch; an item after each longer work."""
        frames, first = self.frames, self.stretches[some[0]]
        rows = np.concatenate([self.stretches[k].rows for k in some])
        if not first.active:
            return
        bases = [self._base(k) for k in some]
        base = JointPoses(*(np.concatenate(each) for each in zip(*bases, strict=True)))
        samples = [sample for k in some for sample in self._held_samples(k)]
        limits = list(first.limits)
        skeleton = samples[0].reading.skeleton
        if self._stands_on(first) >= 0:
            limits[self.chains.root_bone] = None
            shift = float(np.abs(base.translations[:, self.chains.root_bone]).max())
            samples = _freed(samples, self.chains.root_bone, shift)
        apart = np.repeat(APART * np.arange(len(some)), [len(self.stretches[k].rows) for k in some])
        batch = Batch(
            frames.frames[rows] + apart,
            held_constraints(skeleton, frames.constraints, self.chains, first.planted),
            samples,
            tuple(limits),
            bones_of(frames.bake_frames, frames.rows[rows]),
            base,
            self.settings,
            SHARPER if first.planted else 1.0,
        )
        states: list[dict[int, str]] = [{} for _ in rows]
        yield from self.batches.solve(batch, np.arange(len(rows)), states)
        poses = JointPoses(batch.rotations, batch.translations)
        self._place(first, rows, poses)
        own = np.ix_(rows, sorted(self.part.joints))
        frames.solved.rotations[own] = poses.rotations[:, own[1][0]]
        frames.solved.translations[own] = poses.translations[:, own[1][0]]
        for row, ended in zip(rows.tolist(), states, strict=True):
            frames.states[row] |= ended
            if self._stands_on(first) >= 0:
                frames.states[row][self._stands_on(first)] = SolveStatus.CONVERGED.name

    def _stands_on(self, stretch: Stretch) -> int:
        """The constraint on whose bone the figure stands, or -1."""
        return stretch.planted[0] if stretch.planted and not self.chains.keeps_body else -1

    def _base(self, k: int) -> JointPoses:
        """The base poses of a stretch."""
        stretch, standing = self.stretches[k], self.standings[k]
        for row in stretch.rows.tolist():
            for c in stretch.planted:
                self.frames.hold(row, c, standing.anchors.get(c))
        poses, joints = self._continued(k), list(standing.carried)
        if joints:
            poses.rotations[:, joints] = self.frames.animated.rotations[
                stretch.first : stretch.last + 1, joints
            ]
            turned(poses.rotations, standing.carried, stretch.limits)
        self._place(stretch, stretch.rows, poses)
        return poses

    def _place(self, stretch: Stretch, rows: Rows, poses: JointPoses) -> None:
        """Put the root bone where the base is held, if the figure stands on one; in place."""
        base, frames = self._stands_on(stretch), self.frames
        if base >= 0:
            tip = frames.bones.skeleton.index(frames.constraints[base].tip)
            root_bone, held = self.chains.root_bone, frames.held_targets(rows, base)
            placed(poses, frames.bones.at(rows), root_bone, tip, held)

    def _held_samples(self, k: int) -> list[FrameSample]:
        """The samples of a stretch with the part's constraints in force, and targets where bones are held."""
        stretch, members, found = self.stretches[k], set(self.part.members), []
        for row in stretch.rows.tolist():
            sample = self.frames.samples[row]
            targets = list(sample.targets)
            for c in stretch.planted:
                targets[c] = self.frames.held_target(row, c)
            influences = tuple([i if c in members else 0.0 for c, i in enumerate(sample.influences)])
            found.append(sample._replace(targets=tuple(targets), influences=influences))
        return found

    # What comes of it ---------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Go on to the first stretch that is not solved from what is true of the frame before it."""
        while self.finished < len(self.stretches) and self.finished in self.solved:
            k = self.finished
            if k in self.foreseen:
                present = self._standing(k)
                if not self.foresight.holds(k, self.standings[k], present):
                    self._forget(k, present)
                    return
                self.standings[k] = replace(self.standings[k], released=present.released)
                self.foreseen.discard(k)
            self._end(k)
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

    def _end(self, k: int) -> None:
        """Say what is keyed of a solved stretch, and how it ends."""
        frames, stretch, standing = self.frames, self.stretches[k], self.standings[k]
        rows, own, base = stretch.rows, sorted(self.part.joints), self._stands_on(stretch)
        continued = self._continued(k)
        keyed = continued.at(slice(None))
        if stretch.active:
            influences = np.zeros(keyed.rotations.shape[:2])
            given = np.array([frames.samples[row].influences for row in rows.tolist()])
            for c, joints in stretch.moves.items():
                each = sorted(joints)
                influences[:, each] = np.maximum(influences[:, each], given[:, c, None])
            solved = frames.solved.rotations[rows]
            keyed.rotations[:] = blended(continued.rotations, solved, influences, stretch.limits)
            self._place(stretch, rows, keyed)
        else:
            frames.solved.rotations[np.ix_(rows, own)] = continued.rotations[:, own]
            frames.solved.translations[np.ix_(rows, own)] = continued.translations[:, own]
        frames.keyed.rotations[np.ix_(rows, own)] = keyed.rotations[:, own]
        frames.keyed.translations[np.ix_(rows, own)] = keyed.translations[:, own]
        for row in rows.tolist():
            frames.moved[row] |= stretch.moved
            frames.bases[row] = base
        last = stretch.last
        state = ContactState(
            self.chains,
            base,
            {c: frames.anchors[last][c] for c in stretch.planted},
            frames.keyed.pose(last),
            frames.animated.pose(last),
            frames.worlds[last],
            stretch.moved,
            standing.turns,
            standing.drift,
            float(frames.frames[last]),
            standing.released,
        )
        self.ended = Ended(stretch, state, frames.solved.pose(last))


def _freed(samples: Sequence[FrameSample], root_bone: int, shift: float) -> list[FrameSample]:
    """Samples whose root bone is free to turn, and to move about shifts up to `shift`, armature space."""
    known: dict[int, Skeleton] = {}
    found = []
    for sample in samples:
        skeleton = sample.reading.skeleton
        if id(skeleton) not in known:
            size = shift + AROUND * sum(joint.offset.length for joint in skeleton.joints)
            slides = tuple(Slide(axis, -size, size) for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
            free = {"limit": None, "comfort": None, "stiffness": 0.0, "slides": slides}
            name = skeleton.joints[root_bone].name
            known[id(skeleton)] = skeleton.replace({name: free | {"max_step": Joint.max_step}})
        reading = replace(sample.reading, skeleton=known[id(skeleton)])
        found.append(sample._replace(reading=reading))
    return found
