# SPDX-License-Identifier: GPL-3.0-or-later
"""Solving of frames with planted bones, contact segment by contact segment.

A contact segment is a run of frames with the same active constraints. It starts from the contact state at the
end of the segment before.

Where the body keeps its animation, a frame's pose is the nearest to its animation that holds the planted
bones. Released joints return to their animation, so consecutive segments are one motion, in which
`solvers.motion` smooths jumps.

Where the body follows planted bones, the root bone is free to move and turn. The reference is the animated
figure, put on its base. If a constraint places the root bone in all frames of a segment, that decides the
pose. Otherwise joints keep their departure from the animation of the frame before, so that no change of the
base moves the figure.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import bpy
import numpy as np
from mathutils import Quaternion

from ...limits.shapes import Limit, Slide
from ...maths.batch import Array, conjugate, matrices, rotate, unit
from ...settings import SolveStatus
from ...skeleton.joints import Joint, Skeleton
from ...skeleton.kinematics import forward_kinematics_of_frames
from ...skeleton.pose import Pose
from ..properties.constraint_values import Constraint, TargetSample
from ..scene.evaluation import FrameSample
from ..solve.constraint_goals import chain_joints
from ..solve.methods import FrameSolveSettings, groups
from ..solve.plant_ground import GroundNear, PlantGround, plant_ground
from ..solve.planting import (
    SHARPER,
    ContactState,
    FigureBones,
    JointPoses,
    PlantAnchor,
    SupportChains,
    anchor_of,
    blended,
    drifted,
    let_go,
    lifted,
    placed,
    released_joints,
    returning,
    target_anchor,
    targets_of,
    turned,
    turned_between,
)
from .bake_frames import BakeFrames, Rows
from .group_solving import Batch, bones_of, solve_batches


@dataclass(frozen=True)
class JointGroup:
    """Constraints that share joints.

    Attributes:
        members: their indices.
        joints: joints they may move.
    """

    members: tuple[int, ...]
    joints: frozenset[int]


@dataclass(frozen=True)
class ContactSegment:
    """Consecutive frames with the same active constraints, limits and slides.

    Attributes:
        first, last: rows, both included.
        active: active constraints of the group.
        planted: active constraints that plant a bone.
        limits, slides: of each joint.
        moves: joints moved by each active constraint, but for the base, on whose bone the figure stands.
        moved: joints of the support chains, and the root bone, that anything moves.
    """

    first: int
    last: int
    active: tuple[int, ...]
    planted: tuple[int, ...]
    limits: tuple[Limit | None, ...]
    slides: tuple[tuple[Slide, ...], ...]
    moves: Mapping[int, frozenset[int]]
    moved: frozenset[int]

    @property
    def rows(self) -> Rows:
        return np.arange(self.first, self.last + 1)


def joint_groups(
    skeleton: Skeleton, constraints: Sequence[Constraint], chains: SupportChains
) -> list[JointGroup]:
    """The joint groups of a figure with planted bones, parents first."""
    every = tuple(range(len(constraints)))
    if not chains.keeps_body:
        joints = {j for constraint in constraints for j in chain_joints(skeleton, constraint)}
        return [JointGroup(every, frozenset(joints | {chains.root_bone}))]
    return [
        JointGroup(tuple(members), frozenset(joints))
        for joints, members in groups(skeleton, constraints, every)
    ]


def segments(
    samples: Sequence[FrameSample],
    limits: Sequence[tuple[Limit | None, ...]],
    constraints: Sequence[Constraint],
    chains: SupportChains,
    group: JointGroup,
) -> list[ContactSegment]:
    """The segments of a group.

    Args:
        samples: the frames.
        limits: of each frame, equal ones shared.
        constraints: all constraints.
        chains: of the figure.
        group: whose segments are returned.
    """
    ordered: list[ContactSegment] = []
    first, known = 0, None
    for row in range(len(samples) + 1):
        present = None
        if row < len(samples):
            slides = tuple(joint.slides for joint in samples[row].reading.skeleton.joints)
            present = tuple([samples[row].influences[c] > 0.0 for c in group.members]), limits[row], slides
        if row > 0 and present != known:
            assert known is not None
            active = tuple(c for c, is_in_force in zip(group.members, known[0], strict=True) if is_in_force)
            skeleton = samples[first].reading.skeleton
            ordered.append(_segment(first, row - 1, active, limits[first], skeleton, constraints, chains))
            first = row
        known = present
    return ordered


def _segment(
    first: int,
    last: int,
    active: tuple[int, ...],
    limits: tuple[Limit | None, ...],
    skeleton: Skeleton,
    constraints: Sequence[Constraint],
    chains: SupportChains,
) -> ContactSegment:
    slides = tuple(joint.slides for joint in skeleton.joints)
    planted = tuple(c for c in active if constraints[c].kind.plants)
    moves = {c: frozenset(chain_joints(skeleton, constraints[c])) for c in active}
    legs = frozenset(chains.joints)
    if chains.keeps_body or not planted:
        ends = legs if chains.keeps_body else legs | {chains.root_bone}
        moved = frozenset().union(*moves.values()) & ends
        return ContactSegment(first, last, active, planted, limits, slides, moves, moved)
    # A chain up to the root bone moves the leg that the figure stands on.
    base = moves.pop(planted[0]) - {chains.root_bone}
    for c, joints in moves.items():
        chain = skeleton.chain(constraints[c].tip, constraints[c].chain_length)
        moves[c] = (joints | base if chain[0] == chains.root_bone else joints) - {chains.root_bone}
    moved = frozenset().union(*moves.values()) & legs | {chains.root_bone}
    return ContactSegment(first, last, active, planted, limits, slides, moves, moved)


def held_constraints(
    skeleton: Skeleton, constraints: Sequence[Constraint], chains: SupportChains, planted: Sequence[int]
) -> tuple[Constraint, ...]:
    """The constraints while bones are planted, which come before all others in priority.

    Of two constraints that plant one bone the first holds it. Where the body follows planted bones, a chain
    with a pole ends below the root bone, as its bend must not move the legs.
    """
    tips = [constraints[c].tip for c in planted]
    twice = {c for k, c in enumerate(planted) if tips[k] in tips[:k]}
    later, changed = 1 if planted else 0, []
    for c, constraint in enumerate(constraints):
        if not constraint.kind.plants or c in twice:
            constraint = replace(constraint, priority=constraint.priority + later)
        if constraint.pole_target and planted and not chains.keeps_body:
            chain = skeleton.chain(constraint.tip, constraint.chain_length)
            if chain[0] == chains.root_bone and len(chain) > 1:
                constraint = replace(constraint, chain_length=len(chain) - 1)
        changed.append(constraint)
    return tuple(changed)


@dataclass
class PlantedFrames:
    """R frames of a bake with planted bones, in order of time.

    Attributes:
        bake_frames: the frames of the bake.
        rows: (R,) rows of the bake.
        samples: (R,)
        worlds: (R, 4, 4) armature space to world.
        bones: at each frame, or once where they are constant.
        animated: poses without constraints, with the body shifted.
        solved: poses at full influence.
        keyed: keyed poses of the support chains and the root bone.
        states: (R,) constraint -> status.
        anchors: (R,) by planted constraint.
        moved: (R,) joints of the support chains, and the root bone, that anything moves.
        bases: (R,) the constraint on whose bone the figure stands, or -1.
        shifts: (R, 3) of the body, armature space.
    """

    bake_frames: BakeFrames
    rows: Rows
    samples: Sequence[FrameSample]
    worlds: Array
    bones: FigureBones
    animated: JointPoses
    solved: JointPoses
    keyed: JointPoses
    states: list[dict[int, str]]
    anchors: list[dict[int, PlantAnchor]]
    moved: list[frozenset[int]]
    bases: list[int]
    shifts: Array
    _held: dict[tuple[bytes, ...], TargetSample] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        bake_frames: BakeFrames,
        rows: Rows,
        samples: Sequence[FrameSample],
        shifts: Array | None = None,
    ) -> PlantedFrames:
        """Frames in their animated poses, with the body shifted."""
        tracks = bake_frames.tracks
        assert tracks is not None
        distinct = rows[:1] if bake_frames.same_bones(int(rows[0]), int(rows[-1])) else rows
        rests = unit(bake_frames.rests[distinct], axis=-1)
        animated = JointPoses(bake_frames.base, bake_frames.translations).at(rows)
        shifts = np.zeros((len(rows), 3)) if shifts is None else shifts
        root_bone = tracks.support_chains.root_bone
        back = np.broadcast_to(conjugate(rests[:, root_bone].T), (4, len(rows)))
        animated.translations[:, root_bone] += rotate(back, shifts.T).T
        return cls(
            bake_frames,
            rows,
            samples,
            np.array([tracks.worlds[row] for row in rows.tolist()]),
            FigureBones(samples[0].reading.skeleton, bake_frames.offsets[distinct], rests),
            animated,
            animated.at(slice(None)),
            animated.at(slice(None)),
            [{} for _ in rows],
            [{} for _ in rows],
            [frozenset()] * len(rows),
            [-1] * len(rows),
            shifts,
        )

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return self.bake_frames.constraints

    @property
    def support_chains(self) -> SupportChains:
        assert self.bake_frames.tracks is not None
        return self.bake_frames.tracks.support_chains

    @property
    def frames(self) -> Array:
        """(R,) frame numbers."""
        return self.bake_frames.frames[self.rows]

    def hold(self, row: int, c: int, anchor: PlantAnchor | None) -> None:
        """Plant a bone at a frame: at its target if it has one, else at an anchor."""
        place = target_anchor(c, self.samples[row], self.worlds[row]) or anchor
        assert place is not None
        self.anchors[row][c] = place

    def hold_components(self, rows: Rows, c: int, poses: JointPoses) -> None:
        """Lay planted bones on the ground, and let components that are not held follow the animation.

        Args:
            rows: (R,) at which the constraint is planted.
            c: the constraint.
            poses: of the rows, without planted bones, with the body shifted; the shift is taken out.
        """
        constraint, tracks = self.constraints[c], self.bake_frames.tracks
        ground = None if tracks is None or constraint.target else tracks.ground
        if ground is None or not constraint.on_ground:
            self._hold_animated(rows, c, poses)
            return
        if constraint.holds.ground:
            places = self.rows[rows]
            along = ground.carried(self.anchors[rows[0]][c], max(int(places[0]) - 1, 0), places)
            for row, anchor in zip(rows.tolist(), along, strict=True):
                self.anchors[row][c] = anchor
        self._hold_animated(rows, c, poses)
        for row in rows.tolist():
            lying = ground.lying(self.anchors[row][c], int(self.rows[row]), c, constraint.holds.rotation)
            self.anchors[row][c] = lying

    def _hold_animated(self, rows: Rows, c: int, poses: JointPoses) -> None:
        constraint = self.constraints[c]
        if all(constraint.holds):
            return
        tip, worlds = self.bones.skeleton.index(constraint.tip), self.worlds[rows]
        heads, rotations = (each[:, tip] for each in self.bones.at(rows).transforms(poses))
        tracks = self.bake_frames.tracks
        if constraint.on_ground and tracks is not None and tracks.unturned is not None:
            animated_poses = JointPoses(tracks.unturned[self.rows[rows]], poses.translations)
            rotations = self.bones.at(rows).transforms(animated_poses)[1][:, tip]
        heads = np.einsum("rij,rj->ri", worlds[:, :3, :3], heads - self.shifts[rows]) + worlds[:, :3, 3]
        axes = worlds[:, :3, :3] @ matrices(rotations.T).transpose(2, 0, 1)
        for row, head, columns in zip(rows.tolist(), heads, axes, strict=True):
            animated = PlantAnchor(head, columns)
            self.anchors[row][c] = self.anchors[row][c].held(animated, constraint.holds)

    def target_anchor(self, row: int, c: int) -> PlantAnchor | None:
        """The world place of a constraint's target at a frame."""
        return target_anchor(c, self.samples[row], self.worlds[row])

    def held_target(self, row: int, c: int) -> TargetSample:
        """The place of a planted bone in armature space; frames share equal ones."""
        target = self.samples[row].targets[c]
        if target.rotation is not None:
            return target
        anchor, world = self.anchors[row][c], self.worlds[row]
        key = anchor.head.tobytes(), anchor.axes.tobytes(), world.tobytes()
        if key not in self._held:
            self._held[key] = anchor.seen(world)
        return self._held[key]

    def held_targets(self, rows: Rows, c: int) -> tuple[Array, Array]:
        """(R, 3) heads and (R, 4) rotations of a planted bone."""
        return targets_of([self.held_target(row, c) for row in rows.tolist()])

    def store(self) -> None:
        """Store everything in the bake's frames."""
        tracks = self.bake_frames.tracks
        assert tracks is not None
        self.bake_frames.store_batch(self.rows, *self.solved, self.states)
        for row in range(len(self.rows)):
            tracks.contact_states.append(
                ContactState(
                    self.support_chains,
                    self.bases[row],
                    self.anchors[row],
                    self.keyed.pose(row),
                    self.samples[row].reading.pose,
                    self.worlds[row],
                    self.moved[row],
                )
            )


def ground_below(
    armature_object: bpy.types.Object, bake_frames: BakeFrames, ground_near: GroundNear
) -> PlantGround | None:
    """The ground below planted bones at all frames, see `plant_ground`; None if no constraint lies on it."""
    tracks = bake_frames.tracks
    if tracks is None or not any(each.on_ground for each in bake_frames.constraints):
        return None
    worlds, root_bone = np.array(tracks.worlds), tracks.support_chains.root_bone
    heads, _ = forward_kinematics_of_frames(
        bake_frames.skeleton,
        bake_frames.offsets,
        unit(bake_frames.rests, axis=-1),
        bake_frames.base,
        bake_frames.translations,
    )
    names = [joint.name for joint in bake_frames.skeleton.joints]
    tips = {names.index(bake_frames.constraints[c].tip) for c in tracks.support_chains.constraints}
    seen = {
        names[j]: np.einsum("fij,fj->fi", worlds[:, :3, :3], heads[:, j]) + worlds[:, :3, 3]
        for j in (*tips, root_bone)
    }
    return plant_ground(armature_object, bake_frames.constraints, seen, names[root_bone], ground_near)


AROUND = 2.0
"""Largest distance of the root bone from its animated place above the base, in lengths of all bones."""


@dataclass(frozen=True)
class SegmentStart:
    """The start of a segment, taken from the end of the segment before.

    Attributes:
        anchors: places of planted bones without a target.
        turns: departures of released legs, see `ContactState.turns`.
        drift: see `ContactState.drift`.
        released: see `ContactState.released`.
        carried: departures from the animation of joints that stay moved.
        fading: of joints that were released and are moved again, the last frame before that; their reference
            returns to the animation within `planting.RETURN` frames from there.
    """

    anchors: Mapping[int, PlantAnchor]
    turns: Mapping[int, Quaternion] = field(default_factory=dict)
    drift: Array = field(default_factory=lambda: np.eye(4))
    released: Mapping[int, tuple[float, Quaternion]] = field(default_factory=dict)
    carried: Mapping[int, Quaternion] = field(default_factory=dict)
    fading: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupPoses:
    """The joints of a group in the frames of a figure.

    Attributes:
        frames: of the figure.
        group: of joints.
    """

    frames: PlantedFrames
    group: JointGroup

    @property
    def _chains(self) -> SupportChains:
        return self.frames.support_chains

    def stands_on(self, segment: ContactSegment) -> int:
        """The constraint on whose bone the figure stands, or -1."""
        return segment.planted[0] if segment.planted and not self._chains.keeps_body else -1

    def sample(self, row: int, segment: ContactSegment) -> FrameSample:
        """A frame with only the group's constraints active, and planted bones as targets."""
        sample, members = self.frames.samples[row], set(self.group.members)
        targets = list(sample.targets)
        for c in segment.planted:
            targets[c] = self.frames.held_target(row, c)
        influences = tuple([i if c in members else 0.0 for c, i in enumerate(sample.influences)])
        return sample._replace(targets=tuple(targets), influences=influences)

    def base(self, segment: ContactSegment, start: SegmentStart) -> JointPoses:
        """The reference poses of a segment; plants its bones."""
        frames, rows = self.frames, segment.rows
        poses, joints = self._continued(segment, start), [*start.fading, *start.carried]
        if joints:
            poses.rotations[:, joints] = frames.animated.rotations[rows][:, joints]
            back = {j: (frame, start.turns[j]) for j, frame in start.fading.items()}
            back = {j: each for j, each in back.items() if j not in start.carried}
            returning(poses.rotations, frames.frames[rows], back, segment.limits)
            turned(poses.rotations, start.carried, segment.limits)
        self._hold(segment, start, poses)
        return poses

    def _hold(self, segment: ContactSegment, start: SegmentStart, poses: JointPoses) -> None:
        """Plant the bones of a segment, and put the root bone of the poses on the base, in place."""
        base = self.stands_on(segment)
        for c in segment.planted:  # the base comes first and carries the others
            for row in segment.rows.tolist():
                self.frames.hold(row, c, start.anchors.get(c))
            self.frames.hold_components(segment.rows, c, poses)
            if c == base:
                self.place(segment, segment.rows, poses)

    def _continued(self, segment: ContactSegment, start: SegmentStart) -> JointPoses:
        """The animated poses of a segment, continued from the departures of released joints."""
        frames = self.frames
        rows, joints = segment.rows, sorted(self.group.joints)
        poses, animated = frames.solved.at(rows), frames.animated.at(rows)
        poses.rotations[:, joints] = animated.rotations[:, joints]
        poses.translations[:, joints] = animated.translations[:, joints]
        if self._chains.keeps_body:
            returning(poses.rotations, frames.frames[rows], start.released, segment.limits)
        else:
            turned(poses.rotations, start.turns, segment.limits)
            root_bone, bones = self._chains.root_bone, frames.bones.at(rows)
            drifted(poses, bones, root_bone, frames.worlds[rows], start.drift)
        return poses

    def place(self, segment: ContactSegment, rows: Rows, poses: JointPoses) -> None:
        """Put the root bone on the base, if the figure stands on one; in place."""
        base, frames = self.stands_on(segment), self.frames
        if base >= 0:
            tip = frames.bones.skeleton.index(frames.constraints[base].tip)
            root_bone, held = self._chains.root_bone, frames.held_targets(rows, base)
            placed(poses, frames.bones.at(rows), root_bone, tip, held)

    def keep(
        self, segment: ContactSegment, rows: Rows, poses: JointPoses, states: Sequence[dict[int, str]]
    ) -> None:
        """Store solutions of rows of segments like `segment`: poses and status of constraints."""
        frames, base, joints = self.frames, self.stands_on(segment), sorted(self.group.joints)
        self.place(segment, rows, poses)
        frames.solved.rotations[np.ix_(rows, joints)] = poses.rotations[:, joints]
        frames.solved.translations[np.ix_(rows, joints)] = poses.translations[:, joints]
        for row, ended in zip(rows.tolist(), states, strict=True):
            frames.states[row] |= ended
            if base >= 0:
                frames.states[row][base] = SolveStatus.CONVERGED.name

    def finish(self, segment: ContactSegment, start: SegmentStart) -> ContactState:
        """Store the keyed poses of a solved segment; the contact state of its last frame."""
        frames = self.frames
        rows, joints, base = segment.rows, sorted(self.group.joints), self.stands_on(segment)
        continued = self._continued(segment, start)
        keyed = continued.at(slice(None))
        if segment.active:
            influences = np.zeros(keyed.rotations.shape[:2])
            of_constraints = np.array([frames.samples[row].influences for row in rows.tolist()])
            for c, moved in segment.moves.items():
                columns = sorted(moved)
                influences[:, columns] = np.maximum(influences[:, columns], of_constraints[:, c, None])
            solved = frames.solved.rotations[rows]
            keyed.rotations[:] = blended(continued.rotations, solved, influences, segment.limits)
            self.place(segment, rows, keyed)
        else:
            frames.solved.rotations[np.ix_(rows, joints)] = continued.rotations[:, joints]
            frames.solved.translations[np.ix_(rows, joints)] = continued.translations[:, joints]
        frames.keyed.rotations[np.ix_(rows, joints)] = keyed.rotations[:, joints]
        frames.keyed.translations[np.ix_(rows, joints)] = keyed.translations[:, joints]
        for row in rows.tolist():
            frames.moved[row] |= segment.moved
            frames.bases[row] = base
        last = segment.last
        return ContactState(
            self._chains,
            base,
            {c: frames.anchors[last][c] for c in segment.planted},
            frames.keyed.pose(last),
            frames.animated.pose(last),
            frames.worlds[last],
            segment.moved,
            start.turns,
            start.drift,
            float(frames.frames[last]),
            start.released,
        )


def with_free_root(samples: Sequence[FrameSample], root_bone: int, shift: float) -> list[FrameSample]:
    """Samples whose root bone is free to turn, and to move around shifts up to `shift`, armature space."""
    known: dict[int, Skeleton] = {}
    freed = []
    for sample in samples:
        skeleton = sample.reading.skeleton
        if id(skeleton) not in known:
            size = shift + AROUND * math.fsum(joint.offset.length for joint in skeleton.joints)
            size = 2.0 ** math.ceil(math.log2(size))  # so that similar figures are solved together
            axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
            slides = tuple(Slide(axis, -size, size) for axis in axes)
            free = {"limit": None, "comfort": None, "stiffness": 0.0, "slides": slides}
            name = skeleton.joints[root_bone].name
            known[id(skeleton)] = skeleton.replace({name: {**free, "max_step": Joint.max_step}})
        reading = replace(sample.reading, skeleton=known[id(skeleton)])
        freed.append(sample._replace(reading=reading))
    return freed


WAITING_AT_MOST = 512
"""Most frames that wait to be solved, as their samples take memory."""


@dataclass(frozen=True)
class GroupEnd:
    """The end of a group's segment, from which the next segment starts.

    Attributes:
        segment: the segment.
        contact_state: of its last frame.
        solved: pose of its last frame at full influence.
        fading: see `SegmentStart.fading`.
    """

    segment: ContactSegment
    contact_state: ContactState
    solved: Pose
    fading: Mapping[int, float]


@dataclass
class PlantedSolver:
    """Solves the frames of a bake with planted bones, in order of time, into `BakeFrames`.

    Attributes:
        settings: of every solve.
        iterations: the most iterations of any frame.
    """

    settings: FrameSolveSettings
    iterations: int = 0
    _ended: dict[tuple[int, ...], GroupEnd] = field(default_factory=dict)  # by members of the group

    def solve(
        self,
        bake_frames: BakeFrames,
        waiting: Sequence[tuple[int, FrameSample]],
        shifts: Array | None = None,
    ) -> Generator[float, None, None]:
        """Solve the next frames; yields counts of solved frames.

        Args:
            bake_frames: of the bake.
            waiting: rows and samples, in order.
            shifts: (R, 3) of the body in the samples, armature space.
        """
        rows = np.array([row for row, _ in waiting], dtype=np.intp)
        frames = PlantedFrames.of(bake_frames, rows, [sample for _, sample in waiting], shifts)
        skeleton = frames.samples[0].reading.skeleton
        all_groups = joint_groups(skeleton, frames.constraints, frames.support_chains)
        for group in all_groups:
            solver = _GroupSolver(frames, group, self.settings, self._ended.get(group.members))
            for count in solver.solve():
                yield count / len(all_groups)
            assert solver.ended is not None
            self.iterations = max(self.iterations, solver.iterations)
            self._ended[group.members] = solver.ended
        frames.store()


class _GroupSolver:
    """Solves the segments of one group of a figure.

    Attributes:
        ended: the end of the segment that was finished last.
        iterations: the most iterations of any frame.
    """

    def __init__(
        self,
        frames: PlantedFrames,
        group: JointGroup,
        settings: FrameSolveSettings,
        before: GroupEnd | None,
    ) -> None:
        self.frames, self.poses, self.ended = frames, GroupPoses(frames, group), before
        self.iterations = 0
        self.chains = frames.support_chains
        limits = [frames.bake_frames.limits[row] for row in frames.rows.tolist()]
        self.segments = segments(frames.samples, limits, frames.constraints, self.chains, group)
        self.settings = settings

    def solve(self) -> Generator[float, None, None]:
        """Solve all segments."""
        for run in self._runs():
            starts, bases = [], []
            for k, segment in enumerate(run):
                start = self._start_of(segment)
                starts.append(start)
                bases.append(self.poses.base(segment, start))
                if k + 1 < len(run):
                    self._predict(segment, run[k + 1], start, bases[-1])
            if run[0].active:
                yield from self._solve_run(run, bases)
            for k, segment in enumerate(run):
                start = starts[k]
                if k > 0:  # the segment before is solved by now
                    start = replace(start, released=self._start_of(segment).released)
                self._finish(segment, start)

    def _runs(self) -> list[list[ContactSegment]]:
        """Segments in lists that are solved as one motion; consecutive active segments, if the body keeps its
        animation."""
        runs: list[list[ContactSegment]] = []
        for segment in self.segments:
            goes_on = runs and runs[-1][-1].active and segment.active and self.chains.keeps_body
            if goes_on:
                runs[-1].append(segment)
            else:
                runs.append([segment])
        return runs

    def _finish(self, segment: ContactSegment, start: SegmentStart) -> None:
        """Store the keyed poses of a solved segment, from whose end the next one starts."""
        state = self.poses.finish(segment, start)
        self.ended = GroupEnd(segment, state, self.frames.solved.pose(segment.last), start.fading)

    # Starts of segments -------------------------------------------------------------------------------------

    def _predict(
        self, segment: ContactSegment, after: ContactSegment, start: SegmentStart, base: JointPoses
    ) -> None:
        """Predict the contact state at the end of a segment, for the start of the segment after it."""
        last = replace(segment, first=segment.last)
        has_target = {c for c in after.planted if self.frames.samples[after.first].targets[c].rotation}
        if segment.moved - after.moved or set(after.planted) - set(segment.planted) - has_target:
            batch = self._batch(last, last.rows, base.at([-1]), replace(self.settings, smoothness=0.0))
            for _ in solve_batches([batch]):
                pass
            self.poses.keep(last, last.rows, JointPoses(batch.rotations, batch.translations), batch.states)
        self._finish(last, start)

    def _start_of(self, segment: ContactSegment) -> SegmentStart:
        """The start of a segment, from the finished segment before it."""
        frames, root_bone = self.frames, self.chains.root_bone
        sample = frames.samples[segment.first]
        skeleton, constraints = sample.reading.skeleton, frames.constraints
        held = [c for c in segment.planted if sample.targets[c].rotation is None]
        if self.ended is None:
            pose = self._unplanted_pose(segment) if held else None
            world = frames.worlds[segment.first]
            return SegmentStart(
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
            released = released_joints(before, segment.moved, root_bone, sample.frame)
            return SegmentStart(anchors, released=released)
        turns = {**before.turns, **let_go(before, segment.moved, root_bone)}
        drift = before.drift if segment.planted else lifted(skeleton, before, root_bone)
        carried = {} if self._is_body_placed(segment) else self._carried(segment, self.ended)
        moved_before = frozenset[int]().union(*self.ended.segment.moves.values())
        moved = frozenset[int]().union(*segment.moves.values())
        fading = {
            j: self.ended.fading.get(j, before.frame) if j in moved_before else before.frame
            for j in moved & turns.keys()
        }
        return SegmentStart(anchors, turns, drift, carried=carried, fading=fading)

    def _unplanted_pose(self, segment: ContactSegment) -> Pose:
        """The pose that plants bones at the first frame of all.

        It is the evaluated pose, in which the other constraints of chains with planted bones are solved as if
        nothing was planted.
        """
        frames, row = self.frames, segment.first
        sample, constraints = frames.samples[row], frames.constraints
        skeleton, start = sample.reading.skeleton, sample.unmoved or sample.reading.pose
        held = [constraints[c] for c in segment.planted if sample.targets[c].rotation is None]
        legs = {j for constraint in held for j in skeleton.chain(constraint.tip, constraint.chain_length)[1:]}
        influences: dict[int, float] = {}
        active = []
        for c, constraint in enumerate(constraints):
            chain = chain_joints(skeleton, constraint)
            if constraint.kind.reaches and sample.unplanted[c] > 0.0 and legs.intersection(chain):
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
            segment.limits,
            bones_of(frames.bake_frames, place),
            frames.bake_frames.lengths[place],
            base,
            replace(self.settings, smoothness=0.0),
            sharper=SHARPER,
        )
        for _ in solve_batches([batch]):
            pass
        return turned_between(skeleton, start, batch.pose(0), influences)

    def _is_body_placed(self, segment: ContactSegment) -> bool:
        """Whether a Reach places and turns the root bone at all frames of a segment."""
        frames = self.frames
        name = frames.samples[segment.first].reading.skeleton.joints[self.chains.root_bone].name
        placing = [
            c
            for c, constraint in enumerate(frames.constraints)
            if constraint.tip == name
            and constraint.kind.reaches
            and constraint.use_position
            and not constraint.use_tail
            and not any(constraint.effector_offset)
            and constraint.rotation_bone in ("", name)
        ]
        samples = [frames.samples[row] for row in segment.rows.tolist()]
        return all(
            any(sample.influences[c] >= 1.0 and sample.targets[c].rotation is not None for c in placing)
            for sample in samples
        )

    def _carried(self, segment: ContactSegment, ended: GroupEnd) -> dict[int, Quaternion]:
        """Departures from the animation of joints that stay moved."""
        legs = {*self.chains.joints, self.chains.root_bone}
        known = ended.contact_state.moved | {j for js in ended.segment.moves.values() for j in js - legs}
        animated = ended.contact_state.animated
        return {
            j: (ended.solved.rotations[j] @ animated.rotations[j].conjugated()).normalized()
            for j in frozenset().union(*segment.moves.values()) & known
        }

    # Solving ------------------------------------------------------------------------------------------------

    def _solve_run(
        self, run: Sequence[ContactSegment], bases: Sequence[JointPoses]
    ) -> Generator[float, None, None]:
        """Solve segments as one motion."""
        frames, poses = self.frames, self.poses
        alike: dict[object, list[int]] = {}
        for k, segment in enumerate(run):
            alike.setdefault((segment.active, segment.limits, segment.slides), []).append(k)
        batches, rows_of = [], []
        for places in alike.values():
            rows = np.concatenate([run[k].rows for k in places])
            whole = (np.concatenate(each) for each in zip(*(bases[k] for k in places), strict=True))
            batches.append(self._batch(run[places[0]], rows, JointPoses(*whole), self.settings))
            rows_of.append(rows)
        if run[0].active != (poses.stands_on(run[0]),):  # a base alone is met by the reference poses
            yield from solve_batches(batches)
        members, known = set(poses.group.members), frames.bake_frames.smoothed
        for places, batch, rows in zip(alike.values(), batches, rows_of, strict=True):
            self.iterations = max(self.iterations, batch.iterations)
            solved = JointPoses(batch.rotations, batch.translations)
            poses.keep(run[places[0]], rows, solved, batch.states)
            for row, smoothed in zip(frames.rows[rows].tolist(), batch.smoothed, strict=True):
                others = (each for each in known.get(row, ()) if members.isdisjoint(each.constraints))
                known[row] = (*others, *smoothed)

    def _batch(
        self, first: ContactSegment, rows: Rows, base: JointPoses, settings: FrameSolveSettings
    ) -> Batch:
        """Rows of segments like `first` as a batch; `base`: their reference poses."""
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
