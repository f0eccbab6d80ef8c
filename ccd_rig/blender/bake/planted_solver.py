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
from ..properties.constraint_values import Constraint, Kind
from ..scene.evaluation import FrameSample
from ..scene.targets import TargetSample
from ..solve.constraint_goals import chain_joints
from ..solve.frame_settings import FrameSolveSettings
from ..solve.grouping import groups
from ..solve.plant_ground import PlantGround, plant_ground
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
class Part:
    """Constraints that have to do with one another.

    Attributes:
        members: their indices.
        joints: what they may move.
    """

    members: tuple[int, ...]
    joints: frozenset[int]


@dataclass(frozen=True)
class Stretch:
    """Frames in a row with the same constraints in force, the same limits and the same slides.

    Attributes:
        first, last: its rows, both included.
        active: those of the part's constraints that are in force.
        planted: those of them that plant a bone.
        limits, slides: of each joint.
        moves: of each constraint in force, but for the one whose bone the figure stands on, what it moves.
        moved: joints of the support chains, and the root bone, that something moves.
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


def parts(skeleton: Skeleton, constraints: Sequence[Constraint], chains: SupportChains) -> list[Part]:
    """The parts of a figure with planted bones, what carries others first."""
    every = tuple(range(len(constraints)))
    if not chains.keeps_body:
        joints = {j for constraint in constraints for j in chain_joints(skeleton, constraint)}
        return [Part(every, frozenset(joints | {chains.root_bone}))]
    return [
        Part(tuple(members), frozenset(joints)) for joints, members in groups(skeleton, constraints, every)
    ]


def stretches(
    samples: Sequence[FrameSample],
    limits: Sequence[tuple[Limit | None, ...]],
    constraints: Sequence[Constraint],
    chains: SupportChains,
    part: Part,
) -> list[Stretch]:
    """The stretches of a part.

    Args:
        samples: the frames.
        limits: of each of them, equal ones shared.
        constraints: all of them.
        chains: of the figure.
        part: one of its parts.
    """
    found: list[Stretch] = []
    first, known = 0, None
    for row in range(len(samples) + 1):
        present = None
        if row < len(samples):
            slides = tuple(joint.slides for joint in samples[row].reading.skeleton.joints)
            present = tuple([samples[row].influences[c] > 0.0 for c in part.members]), limits[row], slides
        if row > 0 and present != known:
            assert known is not None
            active = tuple(c for c, is_in_force in zip(part.members, known[0], strict=True) if is_in_force)
            skeleton = samples[first].reading.skeleton
            found.append(_stretch((first, row - 1), active, limits[first], (skeleton, constraints, chains)))
            first = row
        known = present
    return found


def _stretch(
    rows: tuple[int, int],
    active: tuple[int, ...],
    limits: tuple[Limit | None, ...],
    figure: tuple[Skeleton, Sequence[Constraint], SupportChains],
) -> Stretch:
    skeleton, constraints, chains = figure
    slides = tuple(joint.slides for joint in skeleton.joints)
    planted = tuple(c for c in active if constraints[c].kind is Kind.PLANT)
    own = {c: frozenset(chain_joints(skeleton, constraints[c])) for c in active}
    legs = frozenset(chains.joints)
    if chains.keeps_body or not planted:
        moves, ends = own, legs if chains.keeps_body else legs | {chains.root_bone}
        return Stretch(
            *rows, active, planted, limits, slides, moves, frozenset().union(*moves.values()) & ends
        )
    # What moves the root bone moves the leg that the figure stands on.
    base = own.pop(planted[0]) - {chains.root_bone}
    moves = {}
    for c, joints in own.items():
        whole = skeleton.chain(constraints[c].tip, constraints[c].chain_length)[0] == chains.root_bone
        moves[c] = (joints | base if whole else joints) - {chains.root_bone}
    moved = frozenset().union(*moves.values()) & legs | {chains.root_bone}
    return Stretch(*rows, active, planted, limits, slides, moves, moved)


def held_constraints(
    skeleton: Skeleton, constraints: Sequence[Constraint], chains: SupportChains, planted: Sequence[int]
) -> tuple[Constraint, ...]:
    """The constraints while bones are planted: these are held before all else.

    Of two that plant a bone the first holds it. Where the body follows planted bones, a chain with a pole
    ends below the root bone: its bend is no business of the legs.
    """
    tips = [constraints[c].tip for c in planted]
    twice = {c for k, c in enumerate(planted) if tips[k] in tips[:k]}
    later, found = 1 if planted else 0, []
    for c, constraint in enumerate(constraints):
        if constraint.kind is not Kind.PLANT or c in twice:
            constraint = replace(constraint, priority=constraint.priority + later)
        if constraint.pole_target and planted and not chains.keeps_body:
            chain = skeleton.chain(constraint.tip, constraint.chain_length)
            if chain[0] == chains.root_bone and len(chain) > 1:
                constraint = replace(constraint, chain_length=len(chain) - 1)
        found.append(constraint)
    return tuple(found)


@dataclass
class PlantedFrames:
    """Some frames of a bake, in order of time.

    Attributes:
        bake_frames: where they are kept.
        rows: (R,) of these.
        samples: (R,)
        worlds: (R, 4, 4) from armature space to the world.
        bones: at all frames, or one where they are the same.
        animated: without constraints, the body moved by its shift.
        solved: at full influence.
        keyed: what is keyed of the support chains and the root bone.
        states: (R,) how constraints ended.
        anchors: (R,) of planted constraints.
        moved: (R,) joints of the support chains, and the root bone, that something moves.
        bases: (R,) the constraint on whose bone the figure stands, or -1.
        shifts: (R, 3) by which the body is moved, armature space.
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
        """Frames that stand as they are animated, with the body moved."""
        tracks = bake_frames.tracks
        assert tracks is not None
        every = rows
        if bake_frames.same_bones(int(rows[0]), int(rows[-1])):
            every = rows[:1]
        rests = unit(bake_frames.rests[every], axis=-1)
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
            FigureBones(samples[0].reading.skeleton, bake_frames.offsets[every], rests),
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
        """Note where a bone is planted at a frame: at its target if it has one, else at an anchor."""
        own = target_anchor(c, self.samples[row], self.worlds[row]) or anchor
        assert own is not None
        self.anchors[row][c] = own

    def hold_parts(self, rows: Rows, c: int, poses: JointPoses) -> None:
        """Note where planted bones lie on the ground, and where others have the parts that are not held.

        Args:
            rows: (R,)
            c: the constraint, noted as held at these rows.
            poses: of the rows, with nothing planted but the body moved, which those parts do not follow.
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
        heads = np.einsum("rij,rj->ri", worlds[:, :3, :3], heads - self.shifts[rows]) + worlds[:, :3, 3]
        axes = worlds[:, :3, :3] @ matrices(rotations.T).transpose(2, 0, 1)
        for row, head, own in zip(rows.tolist(), heads, axes, strict=True):
            animated = PlantAnchor(head, own)
            self.anchors[row][c] = self.anchors[row][c].held(animated, constraint.holds)

    def target_anchor(self, row: int, c: int) -> PlantAnchor | None:
        """Where a constraint's target is in the world at a frame."""
        return target_anchor(c, self.samples[row], self.worlds[row])

    def held_target(self, row: int, c: int) -> TargetSample:
        """Where a planted bone is held, in armature space; frames share what is the same."""
        target = self.samples[row].targets[c]
        if target.rotation is not None:
            return target
        anchor, world = self.anchors[row][c], self.worlds[row]
        key = anchor.head.tobytes(), anchor.axes.tobytes(), world.tobytes()
        if key not in self._held:
            self._held[key] = anchor.seen(world)
        return self._held[key]

    def held_targets(self, rows: Rows, c: int) -> tuple[Array, Array]:
        """(R, 3) heads and (R, 4) rotations where the bone of a planted constraint is held."""
        return targets_of([self.held_target(row, c) for row in rows.tolist()])

    def store(self) -> None:
        """Keep all in the bake's frames."""
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
    scene: bpy.types.Scene, armature_object: bpy.types.Object, bake_frames: BakeFrames, frames: Array
) -> PlantGround | None:
    """The ground below the planted bones of all frames, which are evaluated; None where none is on it.

    Args:
        scene: in which it is.
        armature_object: whose Ground it is.
        bake_frames: of the scene's frames (F,) `frames`.
        frames: (F,)

    Raises:
        RigError: no ground is chosen, or it is none.
    """
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
    root = names[root_bone]
    return plant_ground(scene, armature_object, bake_frames.constraints, frames, seen, root)


AROUND = 2.0
"""Lengths of all bones by which the root bone may be moved from where the animation has it above its base."""


@dataclass(frozen=True)
class Standing:
    """What a stretch goes on from.

    Attributes:
        anchors: where bones without a target are held.
        turns: of legs that were let go, see `ContactState.turns`.
        drift: see `ContactState.drift`.
        released: see `ContactState.released`.
        carried: of joints that are moved on, what they are turned by beside their animation.
        fading: of joints that were let go and are moved again, the last frame before that: from there on they
            are solved near to their animation again, within `contact_poses.RETURN` frames.
    """

    anchors: Mapping[int, PlantAnchor]
    turns: Mapping[int, Quaternion] = field(default_factory=dict)
    drift: Array = field(default_factory=lambda: np.eye(4))
    released: Mapping[int, tuple[float, Quaternion]] = field(default_factory=dict)
    carried: Mapping[int, Quaternion] = field(default_factory=dict)
    fading: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PartPoses:
    """Reads and fills the joints of a part in the frames of a figure.

    Attributes:
        frames: of the whole figure.
        part: whose joints they are.
    """

    frames: PlantedFrames
    part: Part

    @property
    def _chains(self) -> SupportChains:
        return self.frames.support_chains

    def stands_on(self, stretch: Stretch) -> int:
        """The constraint on whose bone the figure stands, or -1."""
        return stretch.planted[0] if stretch.planted and not self._chains.keeps_body else -1

    def sample(self, row: int, stretch: Stretch) -> FrameSample:
        """A frame with the part's constraints in force, and targets where bones are held."""
        sample, members = self.frames.samples[row], set(self.part.members)
        targets = list(sample.targets)
        for c in stretch.planted:
            targets[c] = self.frames.held_target(row, c)
        influences = tuple([i if c in members else 0.0 for c, i in enumerate(sample.influences)])
        return sample._replace(targets=tuple(targets), influences=influences)

    def base(self, stretch: Stretch, standing: Standing) -> JointPoses:
        """The base poses of a stretch; notes where its bones are held."""
        frames, rows = self.frames, stretch.rows
        poses, joints = self._continued(stretch, standing), [*standing.fading, *standing.carried]
        if joints:
            poses.rotations[:, joints] = frames.animated.rotations[rows][:, joints]
            back = {j: (frame, standing.turns[j]) for j, frame in standing.fading.items()}
            back = {j: each for j, each in back.items() if j not in standing.carried}
            returning(poses.rotations, frames.frames[rows], back, stretch.limits)
            turned(poses.rotations, standing.carried, stretch.limits)
        self._hold(stretch, standing, poses)
        return poses

    def _hold(self, stretch: Stretch, standing: Standing, poses: JointPoses) -> None:
        """Note where bones are held, and put the root bone of the poses where the base is, in place."""
        base = self.stands_on(stretch)
        for c in stretch.planted:  # the base is the first of them: the others go along with it
            for row in stretch.rows.tolist():
                self.frames.hold(row, c, standing.anchors.get(c))
            self.frames.hold_parts(stretch.rows, c, poses)
            if c == base:
                self.place(stretch, stretch.rows, poses)

    def _continued(self, stretch: Stretch, standing: Standing) -> JointPoses:
        """The animated poses of a stretch, with what was let go moved on from where it stood."""
        frames = self.frames
        rows, own = stretch.rows, sorted(self.part.joints)
        poses, animated = frames.solved.at(rows), frames.animated.at(rows)
        poses.rotations[:, own] = animated.rotations[:, own]
        poses.translations[:, own] = animated.translations[:, own]
        if self._chains.keeps_body:
            returning(poses.rotations, frames.frames[rows], standing.released, stretch.limits)
        else:
            turned(poses.rotations, standing.turns, stretch.limits)
            root_bone, bones = self._chains.root_bone, frames.bones.at(rows)
            drifted(poses, bones, root_bone, frames.worlds[rows], standing.drift)
        return poses

    def place(self, stretch: Stretch, rows: Rows, poses: JointPoses) -> None:
        """Put the root bone where the base is held, if the figure stands on one; in place."""
        base, frames = self.stands_on(stretch), self.frames
        if base >= 0:
            tip = frames.bones.skeleton.index(frames.constraints[base].tip)
            root_bone, held = self._chains.root_bone, frames.held_targets(rows, base)
            placed(poses, frames.bones.at(rows), root_bone, tip, held)

    def keep(self, stretch: Stretch, rows: Rows, poses: JointPoses, states: Sequence[dict[int, str]]) -> None:
        """Keep what was solved of stretches like one: the poses of rows, and how their constraints ended."""
        frames, base, own = self.frames, self.stands_on(stretch), sorted(self.part.joints)
        self.place(stretch, rows, poses)
        frames.solved.rotations[np.ix_(rows, own)] = poses.rotations[:, own]
        frames.solved.translations[np.ix_(rows, own)] = poses.translations[:, own]
        for row, ended in zip(rows.tolist(), states, strict=True):
            frames.states[row] |= ended
            if base >= 0:
                frames.states[row][base] = SolveStatus.CONVERGED.name

    def finish(self, stretch: Stretch, standing: Standing) -> ContactState:
        """Fill in what is keyed of a solved stretch; how it stands in its last frame."""
        frames = self.frames
        rows, own, base = stretch.rows, sorted(self.part.joints), self.stands_on(stretch)
        continued = self._continued(stretch, standing)
        keyed = continued.at(slice(None))
        if stretch.active:
            influences = np.zeros(keyed.rotations.shape[:2])
            given = np.array([frames.samples[row].influences for row in rows.tolist()])
            for c, joints in stretch.moves.items():
                each = sorted(joints)
                influences[:, each] = np.maximum(influences[:, each], given[:, c, None])
            solved = frames.solved.rotations[rows]
            keyed.rotations[:] = blended(continued.rotations, solved, influences, stretch.limits)
            self.place(stretch, rows, keyed)
        else:
            frames.solved.rotations[np.ix_(rows, own)] = continued.rotations[:, own]
            frames.solved.translations[np.ix_(rows, own)] = continued.translations[:, own]
        frames.keyed.rotations[np.ix_(rows, own)] = keyed.rotations[:, own]
        frames.keyed.translations[np.ix_(rows, own)] = keyed.translations[:, own]
        for row in rows.tolist():
            frames.moved[row] |= stretch.moved
            frames.bases[row] = base
        last = stretch.last
        return ContactState(
            self._chains,
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


def with_free_root(samples: Sequence[FrameSample], root_bone: int, shift: float) -> list[FrameSample]:
    """Samples whose root bone is free to turn, and to move about shifts up to `shift`, armature space."""
    known: dict[int, Skeleton] = {}
    found = []
    for sample in samples:
        skeleton = sample.reading.skeleton
        if id(skeleton) not in known:
            size = shift + AROUND * math.fsum(joint.offset.length for joint in skeleton.joints)
            size = 2.0 ** math.ceil(math.log2(size))  # so that figures alike are solved together
            axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
            slides = tuple(Slide(axis, -size, size) for axis in axes)
            free = {"limit": None, "comfort": None, "stiffness": 0.0, "slides": slides}
            name = skeleton.joints[root_bone].name
            known[id(skeleton)] = skeleton.replace({name: {**free, "max_step": Joint.max_step}})
        reading = replace(sample.reading, skeleton=known[id(skeleton)])
        found.append(sample._replace(reading=reading))
    return found


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
