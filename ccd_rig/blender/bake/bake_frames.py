# SPDX-License-Identifier: GPL-3.0-or-later
"""The sampled and solved frames of a bake, as arrays.

Shapes: F keyed frames, S solved frames, J joints, K slides, C constraints; L joints with slides or coupled
offsets. A frame costs a few hundred bytes per joint. Rotations and translations are
relative to rest; positions are in armature space. Slides and coupled offsets are in the axes and the unit of
the bone's location channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeVar

import bpy
import numpy as np
from numpy.typing import NDArray

from ...limits.shapes import Limit, Slide
from ...maths import batch
from ...maths.batch import Array
from ...skeleton.joints import Coupling, Skeleton
from ...skeleton.kinematics import forward_kinematics_of_frames
from ...solvers.problem_tables import Bones
from ..properties.constraint_values import Constraint
from ..rig.armature import BoneRows, PlacedBones, RigRows
from ..rig.bone_space import location_offset, location_slide, locations_of
from ..scene import dependence
from ..scene.evaluation import Samples
from ..scene.targets import TargetRows
from ..solve.methods import body_joints, chain_joints, whole_chain
from ..solve.planting import (
    Contacts,
    PlantGround,
    SupportChains,
    support_chains,
)

Rows = NDArray[np.intp]
T = TypeVar("T")
APART = 1e-4
"""Radians, or armature space, between poses that differ by more than rounding."""


class SmoothedGroup(NamedTuple):
    """A group of constraints at a row whose pose smoothing has moved."""

    constraints: tuple[int, ...]  # their places
    angle: float  # radians, the largest turn of a joint from its pose without smoothing


class HelpedRow(NamedTuple):
    """Movement of the body at a row for chains that cannot reach their targets alone."""

    constraints: tuple[int, ...]  # places of the helped constraints
    turned: int  # the bone of the body that turned most
    angle: float  # its turn, radians
    shifted: int  # the bone of the body that was shifted most
    distance: float  # its shift, world metres
    # Of constraints with an influence below 1, the distance that the body leaves, world metres.
    left: Mapping[int, float]
    members: tuple[int, ...]  # places of all constraints that are solved with the body, helped or not


class Riders(NamedTuple):
    """Places of constraints whose targets and poles hang on the root bone, which planted bones shift."""

    targets: tuple[int, ...] = ()
    poles: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, armature_object: bpy.types.Object, constraints: Sequence[Constraint], root_bone: str
    ) -> Riders:
        """The riders of a bone of an armature."""
        carrier = armature_object, root_bone
        targets, poles = (
            tuple(
                c
                for c, (obj, bone) in enumerate(places)
                if obj is not None and dependence.rides_on((obj, bone), carrier)
            )
            for places in (
                [(dependence.target_object(each), each.target_bone) for each in constraints],
                [(dependence.pole_object(each), each.pole_bone) for each in constraints],
            )
        )
        return cls(targets, poles)

    def carried(self, targets: TargetRows, shifts: Array) -> TargetRows:
        """Targets at R frames after shifts (R, 3) of the bone, armature space."""
        if not any(self) or not shifts.any():
            return targets
        carried = targets.copy()
        for array, columns in ((carried.points, self.targets), (carried.poles, self.poles)):
            places = list(columns)
            array[:, places] = np.float32(array[:, places] + shifts[:, None])
        return carried


def carry_riders(
    armature_object: bpy.types.Object, bake_frames: BakeFrames, played: Samples, shown: Array | None = None
) -> None:
    """Put targets that hang on a root bone that keeps its animation where the base poses have them.

    A root bone that follows planted bones carries none.

    Args:
        bake_frames: not solved yet.
        played: the samples as they play.
        shown: (3,) head of the root bone as targets were evaluated, armature space, where that is not as
            its channels have it, as in Live; of one frame.
    """
    tracks = bake_frames.tracks
    if tracks is None or not tracks.keeps_body:
        return
    root_bone = tracks.support_chains.root_bone
    name = bake_frames.skeleton.joints[root_bone].name
    tracks.riders = Riders.of(armature_object, bake_frames.constraints, name)
    if not any(tracks.riders):
        return
    rests = batch.unit(bake_frames.rests[:, root_bone], axis=-1)
    shifts = bake_frames.translations[:, root_bone] - played.rig.translations[:, root_bone]
    shifts = batch.rotate(rests, shifts, axis=-1)
    if shown is not None:
        moved = batch.rotate(rests, played.rig.translations[:, root_bone], axis=-1)
        apart = played.rig.bones.offsets[:, root_bone] + moved - shown
        shifts = shifts + np.where(batch.length(apart, axis=-1)[:, None] > APART, apart, 0.0)
    bake_frames.targets = tracks.riders.carried(bake_frames.targets, shifts)


class Transforms(NamedTuple):
    """Joints at all frames in armature space: (F, J, 3) heads and (F, J, 4) rotations."""

    heads: Array
    axes: Array


class Relative(NamedTuple):
    """A pose of joints relative to their parents; NaN where it is not known."""

    rotations: Array  # (J, 4)
    places: Array  # (J, 3) of the heads


class Motion(NamedTuple):
    """Poses of all joints over the keyed frames, as they play."""

    rotations: Array  # (F, J, 4)
    translations: Array  # (F, J, 3) with the shifts of coupled offsets
    locations: Array  # (F, L, 3) what location channels hold


@dataclass(frozen=True)
class Solutions:
    """The solutions of all solved frames."""

    rotations: Array  # (S, J, 4)
    slides: Array  # (S, K)
    states: Mapping[int, Mapping[int, str]]  # by solved row: constraint -> status
    smoothed: Mapping[int, tuple[SmoothedGroup, ...]]  # by solved row: the smoothed groups


@dataclass
class BakeFrames:
    """The frames of a bake; the module states the letters of shapes."""

    frames: Array  # (F,)
    solved_frames: Array  # (S,)
    constraints: tuple[Constraint, ...]
    skeleton: Skeleton  # of the first frame: names and parents do not change
    bones: BoneRows  # the joints at F frames
    base: Array  # (F, J, 4) rotations as evaluated
    translations: Array  # (F, J, 3) relative to rest, without the shifts of coupled offsets
    lengths: Array  # (F, J)
    influences: Array  # (F, C)
    unplanted: Array | None  # (F, C) influences if no bone were planted; None without planted bones
    worlds: Array  # (F, 3, 3) armature space to world metres, without the shift
    places: Array  # (F, 3) that shift: the origin of armature space, world metres
    targets: TargetRows  # (F, C)
    limits: list[tuple[Limit | None, ...]]  # (F, J), equal rows shared
    shifting: list[object]  # (F,) see `Skeleton.shifting`, likewise
    sliding: tuple[int, ...]  # (K,) the joint of each slide
    slides: tuple[Slide, ...]  # (K,)
    couplings: tuple[Coupling, ...]  # the coupled offsets of all joints
    located: tuple[int, ...]  # (L,) joints that slide or have coupled offsets
    shifts: Array  # (F, L, 3, 3) locations to translations
    solved: Array  # (S, J, 4)
    solved_slides: Array  # (S, K)
    tracks: Tracks | None  # of planted bones
    reference: Array | None = None  # (F, J, 4) reference poses, where they are not `base`
    returning: set[int] = field(default_factory=set)  # joints of the body that are solved from another pose
    # than the one that plays, and so are keyed even where the body does not help
    states: dict[int, Mapping[int, str]] = field(default_factory=dict)  # of solved rows: constraint -> status
    smoothed: dict[int, tuple[SmoothedGroup, ...]] = field(default_factory=dict)  # likewise
    helped: dict[int, HelpedRow] = field(default_factory=dict)  # likewise
    iterations: int = 0  # the most iterations of a frame's solve
    is_loop: bool = False  # see `shot.note_loop`
    repeats_after: bool = False  # of a loop: whether its first frame comes again after the last one

    @classmethod
    def of(
        cls,
        samples: Samples,
        constraints: Sequence[Constraint],
        solved_frames: Sequence[float],
        reference: Array | None = None,
        played: Samples | None = None,
    ) -> BakeFrames:
        """Frames of evaluated samples, not solved yet.

        Args:
            solved_frames: those of the frames to solve, increasing.
            reference: (F, J, 4) reference poses; None for the base poses. Joints that no constraint moves
                keep their base poses, as these play on.
            played: the samples as they play, of which the base poses may differ; None for the same.
        """
        bones = samples.rig.bones
        skeleton, kinds = bones.skeleton(0), bones.kind.tolist()
        planted = support_chains(skeleton, constraints)
        moved = sorted({j for constraint in constraints for j in whole_chain(skeleton, constraint)})
        placed = bones.kinds[kinds[0]]
        slides, couplings, located = placed.skeleton.computed_once(
            ("locations", tuple(moved)), lambda: _locations(placed, moved)
        )
        bake_frames = cls(
            frames=samples.frames,
            solved_frames=np.array(solved_frames, dtype=np.float64),
            constraints=tuple(constraints),
            skeleton=skeleton,
            bones=bones,
            base=samples.rig.rotations,
            translations=samples.rig.translations,
            lengths=bones.lengths,
            influences=samples.influences,
            unplanted=samples.unplanted,
            worlds=np.ascontiguousarray(samples.worlds[:, :3, :3]),
            places=samples.worlds[:, :3, 3].copy(),
            targets=samples.targets,
            limits=_shared([tuple(j.limit for j in each.skeleton.joints) for each in bones.kinds], kinds),
            shifting=_shared([each.skeleton.shifting for each in bones.kinds], kinds),
            sliding=tuple(j for j, _ in slides),
            slides=tuple(slide for _, slide in slides),
            couplings=couplings,
            located=located,
            shifts=bones.shifts(located),
            solved=np.empty((len(solved_frames), *samples.rig.rotations.shape[1:])),
            solved_slides=np.empty((len(solved_frames), len(slides))),
            tracks=None if planted is None else Tracks.of(samples, planted),
        )
        if reference is not None:
            bake_frames.reference = bake_frames.base.copy()
            bake_frames.reference[:, moved] = reference[:, moved]
        bake_frames._note_returning((samples if played is None else played).rig)
        return bake_frames

    @property
    def offsets(self) -> Array:
        """(F, J, 3) heads in the parent's frame."""
        return self.bones.offsets

    @property
    def rests(self) -> Array:
        """(F, J, 4) rest rotations."""
        return self.bones.rests

    @property
    def planted_tracks(self) -> Tracks:
        """The tracks of a bake that plants bones."""
        assert self.tracks is not None
        return self.tracks

    @property
    def reference_poses(self) -> Array:
        """(F, J, 4) poses that solves stay near to."""
        return self.base if self.reference is None else self.reference

    def _note_returning(self, played: RigRows) -> None:
        """Note joints of the body, and of planted legs, whose poses differ from those that play."""
        joints = sorted({j for each in self.constraints for j in body_joints(self.skeleton, each)})
        is_same = played.rotations is self.reference_poses and played.translations is self.translations
        if not joints or is_same:
            return
        if self.tracks is not None:
            joints = sorted({*joints, *self.tracks.joints()})
        ours, theirs = (
            batch.unit(poses[:, joints], axis=-1) for poses in (self.reference_poses, played.rotations)
        )
        turned = batch.angles_between(ours, theirs, axis=-1)
        shifted = batch.length(self.translations[:, joints] - played.translations[:, joints], axis=-1)
        apart = (np.maximum(turned, shifted) > APART).any(axis=0)
        self.returning.update(j for j, is_apart in zip(joints, apart.tolist(), strict=True) if is_apart)
        if self.tracks is not None:
            self.tracks.turns_body = self.tracks.support_chains.root_bone in self.returning

    def transforms(self, rotations: Array, translations: Array) -> Transforms:
        """Transforms of poses: (F, J, 4) unit rotations and (F, J, 3) translations."""
        offsets, rests, shifts = (
            each[:1] if (each == each[:1]).all() else each
            for each in (self.offsets, self.rests, translations)
        )
        rests = batch.unit(rests, axis=-1)
        return Transforms(*forward_kinematics_of_frames(self.skeleton, offsets, rests, rotations, shifts))

    @property
    def solved_rows(self) -> Rows:
        """(S,) rows of the solved frames."""
        return np.searchsorted(self.frames, self.solved_frames)

    def bones_at(self, rows: Rows) -> Bones:
        """Rest of bones at rows in order of time; one row where all are equal."""
        whole, bones = slice(int(rows[0]), int(rows[-1]) + 1), (self.offsets, self.rests)
        if len(rows) > 1 and all((each[whole] == each[whole][:1]).all() for each in bones):
            rows = rows[:1]
        offsets, rests = (each[rows] for each in bones)
        return Bones(offsets, batch.unit(rests, axis=-1))

    def solved_runs(self, members: Sequence[int]) -> list[Rows]:
        """Runs of places of solved frames with the same of some constraints in force, limits and slides."""
        rows = self.solved_rows
        begins = np.zeros(max(len(rows) - 1, 0), np.bool_)
        if len(begins):
            in_force = self.influences[rows][:, list(members)] > 0.0
            begins |= (in_force[1:] != in_force[:-1]).any(axis=1)
        for each in (self.limits, self.shifting):
            values = [each[row] for row in rows.tolist()]
            begins |= np.array([a is not b and a != b for a, b in pairwise(values)], np.bool_)
        return np.split(np.arange(len(rows)), np.flatnonzero(begins) + 1)

    def solved_beside(self, rows: Rows) -> Rows:
        """(2, R) rows of the solved frames before and after; a solved frame is both itself."""
        solved = self.solved_rows
        before, after = np.searchsorted(solved, rows, "right") - 1, np.searchsorted(solved, rows)
        return solved[np.clip((before, after), 0, len(solved) - 1)]

    @cached_property
    def _chains_and_bodies(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """By constraint, the joints of its chain, and of the body that may help, root first."""
        skeleton = self.skeleton
        return [(chain_joints(skeleton, each), body_joints(skeleton, each)) for each in self.constraints]

    def path(self, c: int) -> list[int]:
        """Joints of a constraint's chain, root first, locked ones too."""
        constraint = self.constraints[c]
        return list(self.skeleton.chain(constraint.tip, constraint.chain_length))

    def size(self, c: int) -> float:
        """Length of a constraint's chain, armature space."""
        return float(self.lengths[0, self.path(c)].sum())

    def moved_by(self, c: int) -> tuple[int, ...]:
        """Joints that a constraint moves, root first: its chain, and the body where it helps or returns."""
        chain, body = self._chains_and_bodies[c]
        if not body or not (self.helped or self.returning):
            return chain
        helped = any(c in each.members for each in self.helped.values())
        return (*(j for j in body if helped or j in self.returning), *chain)

    def store_batch(
        self, rows: Rows, rotations: Array, translations: Array, states: Sequence[Mapping[int, str]]
    ) -> None:
        """Store the solutions of rows: rotations (R, J, 4), translations (R, J, 3), status of constraints."""
        places = np.searchsorted(self.solved_frames, self.frames[rows])
        self.solved[places] = rotations
        self.solved_slides[places] = self.slid(rows, translations)
        self.states.update(zip(rows.tolist(), states, strict=True))

    def slid(self, rows: Rows, translations: Array) -> Array:
        """(R, K) distances along slides, of the translations (R, J, 3) of rows."""
        lengths = np.empty((len(rows), len(self.sliding)))
        for j in dict.fromkeys(self.sliding):
            locations = locations_of(self.shifts[rows, self.located.index(j)], translations[:, j])
            for k, slide in enumerate(self.slides):
                if self.sliding[k] == j:
                    lengths[:, k] = locations @ np.array(slide.axis)
        return lengths

    def restore(self, solutions: Solutions) -> None:
        """Replace the solutions."""
        self.solved[:], self.solved_slides[:] = solutions.rotations, solutions.slides
        self.states, self.smoothed = dict(solutions.states), dict(solutions.smoothed)

    def without_first(self, rows: int) -> BakeFrames:
        """A copy without its first rows, all of which are solved."""
        if rows == 0:
            return self
        names = ["frames", "base", "translations", "lengths", "influences", "worlds", "places", "shifts"]
        names += ["limits", "shifting", "solved_frames", "solved", "solved_slides"]
        return replace(
            self,
            **{name: getattr(self, name)[rows:] for name in names},
            bones=self.bones.at(slice(rows, None)),
            targets=self.targets.at(slice(rows, None)),
            states={row - rows: states for row, states in self.states.items() if row >= rows},
            smoothed={row - rows: groups for row, groups in self.smoothed.items() if row >= rows},
            helped={row - rows: helped for row, helped in self.helped.items() if row >= rows},
            tracks=None if self.tracks is None else self.tracks.without_first(rows),
        )


def _locations(
    placed: PlacedBones, moved: Sequence[int]
) -> tuple[list[tuple[int, Slide]], tuple[Coupling, ...], tuple[int, ...]]:
    """Slides with their joints, and coupled offsets, in the axes of location channels; the joints of both.

    Args:
        placed: the joints.
        moved: joints whose slides count.
    """
    skeleton, shifts = placed.skeleton, placed.shifts
    slides = [(j, location_slide(slide, shifts[j])) for j in moved for slide in skeleton.joints[j].slides]
    couplings = tuple(
        each._replace(offset=location_offset(each.offset, shifts[each.joint])) for each in skeleton.couplings
    )
    located = dict.fromkeys([*(j for j, _ in slides), *(each.joint for each in couplings)])
    return slides, couplings, tuple(located)


def _shared(values: Sequence[T], kinds: Sequence[int]) -> list[T]:
    """The value of each row by its kind; consecutive equal ones are one object."""
    rows: list[T] = []
    for k in kinds:
        rows.append(rows[-1] if rows and rows[-1] == values[k] else values[k])
    return rows


# Planted bones ----------------------------------------------------------------------------------------------


@dataclass
class Tracks:
    """Places of planted bones and the root bone at each frame.

    Between solved frames a bone counts as planted where the next solved frame holds it. The root bone is then
    where the bones' slerped rotations put it, so the base does not move at all.
    """

    support_chains: SupportChains
    worlds: Array  # (F, 4, 4) armature space to world
    shifts: Array  # (F, 3, 3) of the root bone: locations to translations
    contacts: Contacts  # (S,); of no frame before these are solved
    short_rows: list[int] = field(default_factory=list)  # where legs are too short for a fixed body
    ground: PlantGround | None = None  # with a row for each frame
    # (F, J, 4) poses before a bake or solve turned planted bones over the ground.
    unturned: Array | None = None
    travel: float = 0.0  # world metres along the ground by which a body walks on
    riders: Riders = field(default_factory=Riders)  # of a root bone that keeps its animation
    # (S, 3) translations of the root bone before the body helps; None without help.
    unhelped: Array | None = None
    turns_body: bool = False  # whether a root bone that keeps its animation helps, or returns from that

    @classmethod
    def of(cls, samples: Samples, support_chains: SupportChains) -> Tracks:
        """Tracks of frames that are not solved yet."""
        shifts = samples.rig.bones.shifts([support_chains.root_bone])[:, 0]
        unsolved = Contacts([], np.empty((0, 0, 4, 4)), [], np.empty((0, 0, 4)), np.empty((0, 0, 3)))
        return cls(support_chains, samples.worlds, shifts, unsolved)

    def without_first(self, rows: int) -> Tracks:
        """A copy without its first rows, all of which are solved."""
        return replace(
            self,
            worlds=self.worlds[rows:],
            shifts=self.shifts[rows:],
            contacts=self.contacts.without_first(rows),
            unhelped=None if self.unhelped is None else self.unhelped[rows:],
        )

    def joints(self) -> list[int]:
        """Joints that planted bones key: the support chains and the root bone."""
        return [self.support_chains.root_bone, *self.support_chains.joints]

    def keyed(self) -> list[int]:
        """The joints of `joints` that anything moves at any frame."""
        moved = frozenset[int]().union(*self.contacts.moved)
        return sorted(moved.intersection(self.joints()))

    @property
    def keeps_body(self) -> bool:
        """Whether the root bone keeps its animation."""
        return self.support_chains.keeps_body
