# SPDX-License-Identifier: GPL-3.0-or-later
"""What is looked at for a constraint, its target and its pole, and where they are at a frame.

All is in armature space unless it says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ...errors import RigError
from ...maths.batch import (
    Array,
    compose,
    cross,
    dot,
    inverse,
    length,
    move,
    multiply,
    quaternions,
    rotate,
    unit,
)
from ..keys.channels import animated_components
from ..properties.constraint_values import Constraint, Kind
from .dependence import pole_object, target_object

AXES = {
    f"{name}_{axis}": Vector([sign * (i == k) for i in range(3)]).freeze()
    for name, sign in (("POS", 1.0), ("NEG", -1.0))
    for k, axis in enumerate("XYZ")
}
"""The values of `Constraint.bone_axis` and `target_axis` as unit vectors."""


FLAT = 1e-6
"""Part of its length that an axis must have beside another one to tell a rotation."""


SAMPLED = ("offset", "weight", "rotation_weight", "pole_angle", "max_extension", "soft")
"""Fields of constraints that are read at every frame of a bake where keys or drivers move them."""


class TargetSample(NamedTuple):
    """Where the targets of one constraint are at a frame, in armature space.

    Attributes:
        point: where the tip's end should be; for BALANCE the centre of mass.
        rotation: that of the target, where ORIENTATION asks for it (see `orthonormal`).
        direction: unit, where the target's axis points, where DIRECTION asks for it.
        pole: where the pole target is, if there is one.
        offset: the Target Offset at the frame, where keys or drivers move it; `point` includes it.
        keyed: the other fields of the constraint that keys or drivers move, with their values at the frame.
    """

    point: Vector
    rotation: Quaternion | None = None
    direction: Vector | None = None
    pole: Vector | None = None
    offset: tuple[float, float, float] | None = None
    keyed: tuple[tuple[str, float], ...] = ()

    def settings_of(self, constraint: Constraint) -> Constraint:
        """The constraint as keys and drivers have it at the frame."""
        fields: dict[str, Any] = dict(self.keyed)
        if self.offset is not None:
            fields["offset"] = self.offset
        return replace(constraint, **fields) if fields else constraint


class TargetRows(NamedTuple):
    """Where the targets of C constraints are at R frames, in armature space, as float32 has it.

    What a constraint does not ask for at a frame is not a number.

    Attributes:
        points: (R, C, 3); this and the following are explained at `TargetSample`.
        rotations: (R, C, 4)
        directions: (R, C, 3)
        poles: (R, C, 3)
        offsets: (R, C, 3)
        keyed: {constraint: {field: (R,) its values}}
    """

    points: Array
    rotations: Array
    directions: Array
    poles: Array
    offsets: Array
    keyed: Mapping[int, Mapping[str, Array]]

    @classmethod
    def of(cls, samples: Sequence[Sequence[TargetSample]]) -> TargetRows:
        """Of each frame the targets of all constraints."""

        keyed = {
            c: {name: np.empty(len(samples)) for name, _ in first.keyed}
            for c, first in enumerate(samples[0])
            if first.keyed
        }
        sizes = [(len(samples), len(samples[0]), width) for width in (3, 4, 3, 3, 3)]
        targets = cls(*(np.empty(size) for size in sizes), keyed=keyed)
        for k, row in enumerate(samples):
            for c, sample in enumerate(row):
                targets.set(k, c, sample)
        return targets

    @classmethod
    def empty(cls, rows: int, like: TargetRows) -> TargetRows:
        """Room for the targets of as many constraints at other frames."""
        count = like.points.shape[1]
        arrays = [np.full((rows, count, each.shape[2]), math.nan) for each in like[:5]]
        keyed = {c: {name: np.empty(rows) for name in values} for c, values in like.keyed.items()}
        return cls(*arrays, keyed=keyed)

    def put(self, rows: Any, targets: TargetRows) -> None:
        """Take over those of some frames, in place."""
        for array, values in zip(self[:5], targets[:5], strict=True):
            array[rows] = values
        for c, fields in self.keyed.items():
            for name, values in fields.items():
                values[rows] = targets.keyed[c][name]

    def set(self, row: int, c: int, sample: TargetSample) -> None:
        """Take over those of one constraint at a frame, in place."""
        fields = sample.point, sample.rotation, sample.direction, sample.pole, sample.offset
        for array, value in zip(self[:5], fields, strict=True):
            array[row, c] = math.nan if value is None else value[:]
        for name, number in sample.keyed:
            self.keyed[c][name][row] = number

    def copy(self) -> TargetRows:
        """The same, to be changed."""
        keyed = {c: {name: each.copy() for name, each in of_c.items()} for c, of_c in self.keyed.items()}
        return TargetRows(*(each.copy() for each in self[:5]), keyed=keyed)

    def at(self, rows: Any, columns: Sequence[int] | None = None) -> TargetRows:
        """Those of some frames, and of some constraints."""
        wanted = range(self.points.shape[1]) if columns is None else columns
        arrays = [each[rows] if columns is None else each[rows][:, list(columns)] for each in self[:5]]
        keyed = {
            k: {name: values[rows] for name, values in self.keyed[c].items()}
            for k, c in enumerate(wanted)
            if c in self.keyed
        }
        return TargetRows(*arrays, keyed=keyed)

    def sample(self, k: int, c: int) -> TargetSample:
        """Those of one constraint at a frame."""
        point, *others = (each[k, c].tolist() for each in self[:5])
        rotation, direction, pole, offset = (None if math.isnan(each[0]) else each for each in others)
        return TargetSample(
            Vector(point),
            None if rotation is None else Quaternion(rotation),
            None if direction is None else Vector(direction),
            None if pole is None else Vector(pole),
            None if offset is None else (offset[0], offset[1], offset[2]),
            self.settings(k, c),
        )

    def settings(self, k: int, c: int) -> tuple[tuple[str, float], ...]:
        """See `TargetSample.keyed`."""
        return tuple([(name, float(values[k])) for name, values in self.keyed.get(c, {}).items()])

    def row(self, k: int) -> tuple[TargetSample, ...]:
        """Those of all constraints at a frame."""
        return tuple([self.sample(k, c) for c in range(self.points.shape[1])])

    def rotated(self, turn: Array) -> TargetRows:
        """The same targets in models that are turned about their origin by (4,) or (R, 1, 4) rotations."""
        turns = np.broadcast_to(turn, (*self.points.shape[:2], 4))
        points, directions, poles = (
            rotate(turns, each, axis=-1) for each in (self.points, self.directions, self.poles)
        )
        rotations = unit(multiply(turns, self.rotations, axis=-1), axis=-1)
        return self._replace(points=points, rotations=rotations, directions=directions, poles=poles)


def orthonormals(axes: Array) -> Array:
    """Rotations (..., 4) of frames whose axes, the columns of (..., 3, 3), have any length, shear and
    mirroring.

    Y points along the second column exactly, Z as near to the third as a right angle allows, and X completes
    them; where a matrix mirrors, X so is the one that points the other way. Not a number for a flat matrix.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        y, z = (axes[..., k] / length(axes[..., k], axis=-1)[..., None] for k in (1, 2))
        z = z - y * dot(y, z, axis=-1)[..., None]
        sizes = length(z, axis=-1)[..., None]
        z = np.where(sizes > FLAT, z / sizes, np.nan)
        straight = np.stack((cross(y, z, axis=-1), y, z), axis=-1)
        rotations = quaternions(np.moveaxis(straight, (-2, -1), (0, 1)))
    return np.moveaxis(rotations, 0, -1)


def orthonormal(axes: Any) -> Quaternion | None:
    """`orthonormals` of one 3x3 matrix; None if it is flat."""
    rotation = orthonormals(np.array([row[:] for row in axes]))
    return None if np.isnan(rotation).any() else Quaternion(rotation.tolist())


def object_channels(thing: bpy.types.Object, basis: Matrix) -> tuple[Vector, Quaternion]:
    """Location and rotation that an object's own channels must hold for a basis; its deltas are kept.

    Args:
        thing: the object.
        basis: from its own space to that of what carries it.
    """
    location, rotation, _ = basis.decompose()
    delta = thing.delta_rotation_quaternion
    if thing.rotation_mode not in ("QUATERNION", "AXIS_ANGLE"):
        delta = thing.delta_rotation_euler.to_quaternion()
    return location - thing.delta_location, delta.inverted() @ rotation


Ahead = Mapping[tuple[bpy.types.Object, str], Matrix]
"""World matrices that bones of armature objects are about to have: no evaluation shows them yet."""
NOTHING_AHEAD: Ahead = MappingProxyType({})
NOWHERE: Mapping[bpy.types.Object, bpy.types.Depsgraph] = MappingProxyType({})
STILL: Any = Matrix.Identity(4).freeze()

FAR = 1e18  # armature space: the squares of lengths above this overflow float32


class ObjectRef(NamedTuple):
    """An object that is looked at, or one of its bones."""

    thing: bpy.types.Object
    bone: str  # its name, or none
    is_armature: bool  # whether the object is the armature itself


class TargetSource(NamedTuple):
    """What is looked at for one constraint: its target and, if it has one, its pole."""

    constraint: Constraint
    target: ObjectRef | None
    pole: ObjectRef | None
    place: int  # of the constraint in the armature's list
    keyed: tuple[str, ...]  # those of `SAMPLED` that are read at each frame

    def things(self) -> tuple[tuple[bpy.types.Object, str], ...]:
        """Objects, each with the name of the bone that is meant, or none."""
        return tuple((ref.thing, ref.bone) for ref in (self.target, self.pole) if ref is not None)


def target_sources(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], with_keyed: bool = True
) -> list[TargetSource]:
    """What is looked at for constraints.

    Args:
        armature_object: the original object.
        constraints: those of its list.
        with_keyed: whether the fields that keys or drivers move are read at each frame, as far as they count.

    Raises:
        RigError: a constraint or a target is missing.
    """
    names = [constraint.name for constraint in armature_object.ccd_rig.constraints]
    animated = {path for path, _ in animated_components(armature_object)} if with_keyed else set()

    def ref(thing: bpy.types.Object | None, bone: str) -> ObjectRef | None:
        return None if thing is None else ObjectRef(thing, bone, thing == armature_object)

    sources = []
    for each in constraints:
        if each.name not in names:
            where = f"Armature '{armature_object.name}'"
            raise RigError(f"{where} has no constraint '{each.name}': choose another one")
        place = names.index(each.name)
        path = f"ccd_rig.constraints[{place}]"
        fields = _fields_that_count(each) if animated else ()
        keyed = tuple(name for name in fields if f"{path}.{name}" in animated)
        target, pole = ref(target_object(each), each.target_bone), ref(pole_object(each), each.pole_bone)
        sources.append(TargetSource(each, target, pole, place, keyed))
    return sources


def _fields_that_count(constraint: Constraint) -> list[str]:
    """Those of `SAMPLED` that change what a constraint asks for."""
    is_reach = constraint.kind is Kind.REACH
    counts = {
        "offset": True,
        "weight": constraint.kind is not Kind.PLANT,
        "rotation_weight": is_reach and constraint.rotation != "NONE",
        "pole_angle": bool(constraint.pole_target),
        "max_extension": is_reach and constraint.use_position,
        "soft": is_reach and constraint.use_position and constraint.method != "TRIANGLE",
    }
    return [name for name in SAMPLED if counts[name]]


def sampled_paths(sources: Sequence[TargetSource]) -> list[str]:
    """Data paths of the numbers that are read of an armature object at each frame: influences first."""
    paths = [f"ccd_rig.constraints[{source.place}].influence" for source in sources]
    for source in sources:
        for name in source.keyed:
            path = f"ccd_rig.constraints[{source.place}].{name}"
            paths += [f"{path}[{i}]" for i in range(3)] if name == "offset" else [path]
    return paths


def objects_of(sources: Sequence[TargetSource]) -> list[tuple[bpy.types.Object, str]]:
    return [thing for source in sources for thing in source.things()]


class TargetReader:
    """Looks at targets, poles and numbers of constraints, and makes target rows of what was seen.

    Attributes:
        armature_object: the original object.
        sources: what is looked at for each constraint.
    """

    def __init__(self, armature_object: bpy.types.Object, sources: Sequence[TargetSource]) -> None:
        self.armature_object, self.sources = armature_object, sources
        self._refs = [ref for each in sources for ref in (each.target, each.pole) if ref is not None]
        self._targets: list[int] = []
        self._target_places: list[int] = []
        self._poled: list[int] = []
        self._pole_places: list[int] = []
        place = 0
        for c, each in enumerate(sources):
            for ref, rows, places in (
                (each.target, self._targets, self._target_places),
                (each.pole, self._poled, self._pole_places),
            ):
                if ref is not None:
                    rows.append(c)
                    places.append(place)
                    place += 1
        with_target = [sources[c].constraint for c in self._targets]
        self._offsets = np.array([each.offset for each in with_target])
        self._spaces = [each.offset_space for each in with_target]
        self._keyed_offset = np.array(["offset" in sources[c].keyed for c in self._targets])
        turned = list(zip(self._targets, self._target_places, with_target, strict=True))
        oriented = [(c, t) for c, t, each in turned if each.rotation == "ORIENTATION"]
        directed = [(c, t) for c, t, each in turned if each.rotation not in ("ORIENTATION", "NONE")]
        self._oriented, self._oriented_places = [c for c, _ in oriented], [t for _, t in oriented]
        self._directed, self._directed_places = [c for c, _ in directed], [t for _, t in directed]
        self._axes = np.array([AXES[sources[c].constraint.target_axis][:] for c in self._directed])
        self._fields = [
            (c, name) for c, each in enumerate(sources) for name in each.keyed if each.target is not None
        ]

    def look(
        self,
        evaluated: bpy.types.Object,
        depsgraph: bpy.types.Depsgraph,
        elsewhere: Mapping[bpy.types.Object, bpy.types.Depsgraph] = NOWHERE,
        ahead: Ahead = NOTHING_AHEAD,
    ) -> list[float]:
        """Matrices of targets and poles, three rows each: of the armature's bones in its space, else in the
        world.

        Args:
            evaluated: the armature object.
            depsgraph: one that evaluates the others.
            elsewhere: those that evaluate some of them instead.
            ahead: bones that stand elsewhere than the depsgraphs say.
        """
        seen: list[float] = []
        for thing, bone, is_armature in self._refs:
            if is_armature:
                matrix: Any = evaluated.pose.bones[bone].matrix if bone else STILL
            elif ahead and (thing, bone) in ahead:
                matrix = ahead[thing, bone]
            else:
                other = thing.evaluated_get(elsewhere.get(thing, depsgraph))
                matrix = other.matrix_world
                if bone:
                    matrix = matrix @ other.pose.bones[bone].matrix
            x, y, z, _ = matrix
            seen.extend(x)
            seen.extend(y)
            seen.extend(z)
        return seen

    def numbers(self, seen: bpy.types.Object) -> list[float]:
        """The influences of constraints, and then the values of their fields that are read at each frame.

        `seen`: the armature object, original or evaluated.
        """
        listed = seen.ccd_rig.constraints
        every = np.empty(len(listed), np.float32)
        listed.foreach_get("influence", every)
        values = [float(every[source.place]) for source in self.sources]
        for c, name in self._fields:
            value = getattr(listed[self.sources[c].place], name)
            values.extend(value if name == "offset" else (value,))
        return values

    def influences(self, frames: Sequence[float], numbers: Array) -> Array:
        """(R, C) influences, from what `numbers` has given at R frames."""
        influences = numbers[:, : len(self.sources)]
        if not np.isfinite(influences).all():  # the property's range does not keep NaN out
            k, c = np.argwhere(~np.isfinite(influences))[0].tolist()
            raise RigError(
                f"Constraint '{self.sources[c].constraint.name}': influence is not a number at frame "
                f"{frames[k]:g}: set it to 0 to 1, and look at its keys"
            )
        return influences

    def rows(self, frames: Sequence[float], worlds: Array, places: Array, numbers: Array) -> TargetRows:
        """The targets at R frames.

        Args:
            frames: (R,) for messages.
            worlds: (R, 4, 4) from armature space to the world.
            places: (R, 12 T) of `look`.
            numbers: (R, N) of `numbers`.

        Raises:
            RigError: a target is nowhere at a frame, or has no rotation there; a setting is not a number.
        """
        shape = len(frames), len(self.sources)
        points, directions, poles, offsets = (np.full((*shape, 3), math.nan) for _ in range(4))
        rotations = np.full((*shape, 4), math.nan)
        keyed = self._keyed(frames, numbers, offsets)
        seen = np.zeros((len(frames), len(self._refs), 4, 4))
        seen[..., :3, :] = places.reshape(len(frames), -1, 3, 4)
        seen[..., 3, 3] = 1.0
        to_armature = inverse(worlds)[:, None]
        if not all(ref.is_armature for ref in self._refs):
            is_there = np.array([ref.is_armature for ref in self._refs])[:, None, None]
            seen = np.asarray(np.where(is_there, seen, compose(to_armature, seen)))
        points[:] = 0.0  # where a bone that is planted where it is has no target
        if targets := self._targets:
            frame_of = seen[:, self._target_places]
            shifts = np.where(self._keyed_offset[:, None], offsets[:, targets], self._offsets)
            there = move(frame_of, shifts)
            if any(space != "TARGET" for space in self._spaces):
                turned = move(to_armature, shifts) - to_armature[..., :3, 3]
                spaces = np.array(self._spaces)[:, None]
                shifts = np.where(spaces == "WORLD", turned, shifts)
                there = np.where(spaces == "TARGET", there, frame_of[..., :3, 3] + shifts)
            points[:, targets] = there
        if self._oriented:
            rotations[:, self._oriented] = orthonormals(seen[:, self._oriented_places][..., :3, :3])
        if self._directed:
            # A direction goes through shear and mirroring as it is: in the world it is the target's own.
            frame_of = seen[:, self._directed_places]
            ways = move(frame_of, self._axes) - frame_of[..., :3, 3]
            with np.errstate(divide="ignore", invalid="ignore"):
                directions[:, self._directed] = ways / length(ways, axis=-1)[..., None]
        if self._poled:
            poles[:, self._poled] = seen[:, self._pole_places][..., :3, 3]
        with np.errstate(over="ignore"):
            rounded = [
                each.astype(np.float32).astype(np.float64) for each in (points, rotations, directions, poles)
            ]
        rows = TargetRows(*rounded, offsets=offsets, keyed=keyed)
        self._require_there(frames, rows)
        return rows

    def _keyed(self, frames: Sequence[float], numbers: Array, offsets: Array) -> dict[int, dict[str, Array]]:
        """`TargetRows.keyed`; puts `TargetRows.offsets` in place."""
        keyed: dict[int, dict[str, Array]] = {}
        column = len(self.sources)
        for c, name in self._fields:
            if name == "offset":
                offsets[:, c] = numbers[:, column : column + 3]
                column += 3
                continue
            values = keyed.setdefault(c, {})[name] = numbers[:, column]
            column += 1
            if not np.isfinite(values).all():  # the property's range does not keep NaN out
                row = self.armature_object.ccd_rig.constraints[self.sources[c].place]
                label, k = row.bl_rna.properties[name].name, int(np.argmin(np.isfinite(values)))
                raise RigError(
                    f"Constraint '{row.name}': '{label}' is not a number at frame {frames[k]:g}: look at its "
                    "keys and drivers"
                )
        return keyed

    def _require_there(self, frames: Sequence[float], targets: TargetRows) -> None:
        """Raises RigError at the first frame at which a target is nowhere, or has no rotation."""
        wrong = np.zeros((*targets.points.shape[:2], 3), np.bool_)
        wrong[..., 0] = ~(np.abs(targets.points) < FAR).all(axis=-1)
        wrong[:, self._oriented, 1] = np.isnan(targets.rotations[:, self._oriented, 0])
        wrong[:, self._directed, 1] = np.isnan(targets.directions[:, self._directed, 0])
        wrong[:, self._poled, 2] = ~np.isfinite(targets.poles[:, self._poled]).all(axis=-1)
        if not wrong.any():
            return
        k, c, fault = np.argwhere(wrong)[0].tolist()
        constraint, target = self.sources[c].constraint, self.sources[c].target
        pole, frame = self.sources[c].pole, frames[k]
        assert target is not None
        if fault == 0:
            is_number = np.isfinite(targets.points[k, c]).all()
            what = "too far away to compute with" if is_number else "not a number"
            bone = f"bone '{constraint.target_bone}' of " if constraint.target_bone else ""
            raise RigError(
                f"Constraint '{constraint.name}': target {bone}'{target.thing.name}' has a place that is "
                f"{what} at frame {frame:g}: look at its transform and keys, and at the constraint's offset"
            )
        if fault == 1:
            raise RigError(
                f"Constraint '{constraint.name}': target '{target.thing.name}' has a scale of 0 at frame "
                f"{frame:g}, so it has no rotation: give it another scale"
            )
        assert pole is not None
        raise RigError(
            f"Constraint '{constraint.name}': pole target '{pole.thing.name}' has a place that is not a "
            f"number at frame {frame:g}: look at its transform and keys"
        )
