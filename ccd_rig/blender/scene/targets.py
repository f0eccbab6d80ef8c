# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets and poles of constraints: the objects to read, and their transforms at frames.

Values are in armature space unless stated otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...kernel import TARGET_WIDTH, USE_WIDTH, write_targets
from ...maths.batch import Array, inverse, length, multiply, orthonormals, rotate, unit
from ..keys.channels import animated_components
from ..properties.constraint_values import AXES, OFFSET_SPACES, ROTATIONS, Constraint, TargetSample
from ..rig.bone_space import with_channels
from ..rig.rotation_modes import rotation_channel, rotation_of
from .dependence import pole_object, target_object


class TargetRows(NamedTuple):
    """Targets of C constraints at R frames, armature space, rounded to float32; see `TargetSample`.

    Values that a constraint does not use are NaN.
    """

    points: Array  # (R, C, 3)
    rotations: Array  # (R, C, 4)
    directions: Array  # (R, C, 3)
    poles: Array  # (R, C, 3)
    offsets: Array  # (R, C, 3)
    keyed: Mapping[int, Mapping[str, Array]]  # {index of the constraint: {field: (R,) values}}

    @classmethod
    def empty(cls, rows: int, like: TargetRows) -> TargetRows:
        """Allocate targets of the same constraints at `rows` frames, filled with NaN."""
        count = like.points.shape[1]
        arrays = [np.full((rows, count, array.shape[2]), math.nan) for array in like[:5]]
        keyed = {c: {name: np.empty(rows) for name in values} for c, values in like.keyed.items()}
        return cls(*arrays, keyed=keyed)

    @classmethod
    def joined(cls, blocks: Sequence[TargetRows]) -> TargetRows:
        """Join the targets of blocks of frames."""
        keyed = {
            c: {name: np.concatenate([block.keyed[c][name] for block in blocks]) for name in fields}
            for c, fields in blocks[0].keyed.items()
        }
        columns = zip(*(block[:5] for block in blocks), strict=True)
        return cls(*map(np.concatenate, columns), keyed=keyed)

    def put(self, rows: Any, targets: TargetRows) -> None:
        """Replace the targets of frames in place."""
        for array, values in zip(self[:5], targets[:5], strict=True):
            array[rows] = values
        for c, fields in self.keyed.items():
            for name, values in fields.items():
                values[rows] = targets.keyed[c][name]

    def set(self, row: int, c: int, sample: TargetSample) -> None:
        """Replace the targets of one constraint at a frame in place."""
        fields = sample.point, sample.rotation, sample.direction, sample.pole, sample.offset
        for array, value in zip(self[:5], fields, strict=True):
            array[row, c] = math.nan if value is None else value[:]
        for name, number in sample.keyed:
            self.keyed[c][name][row] = number

    def copy(self) -> TargetRows:
        """Return a copy whose arrays may be changed."""
        keyed = {
            c: {name: values.copy() for name, values in fields.items()} for c, fields in self.keyed.items()
        }
        return TargetRows(*(array.copy() for array in self[:5]), keyed=keyed)

    def at(self, rows: Any, columns: Sequence[int] | None = None) -> TargetRows:
        """Select frames, and constraints by index (None: all)."""
        selected = range(self.points.shape[1]) if columns is None else columns
        arrays = [array[rows] if columns is None else array[rows][:, list(columns)] for array in self[:5]]
        keyed = {
            k: {name: values[rows] for name, values in self.keyed[c].items()}
            for k, c in enumerate(selected)
            if c in self.keyed
        }
        return TargetRows(*arrays, keyed=keyed)

    def with_column(self, rows: Any, points: Array, directions: Array) -> TargetRows:
        """The same targets and those of another constraint at frames, (R, 3) each."""
        wider = [np.pad(array, ((0, 0), (0, 1), (0, 0)), constant_values=math.nan) for array in self[:5]]
        added = TargetRows(*wider, keyed=self.keyed)
        added.points[rows, -1], added.directions[rows, -1] = points, directions
        return added

    def sample(self, k: int, c: int) -> TargetSample:
        """Return the targets of one constraint at a frame."""
        point, *optional = (array[k, c].tolist() for array in self[:5])
        rotation, direction, pole, offset = (None if math.isnan(values[0]) else values for values in optional)
        return TargetSample(
            Vector(point),
            None if rotation is None else Quaternion(rotation),
            None if direction is None else Vector(direction),
            None if pole is None else Vector(pole),
            None if offset is None else (offset[0], offset[1], offset[2]),
            self.settings(k, c),
        )

    def settings(self, k: int, c: int) -> tuple[tuple[str, float], ...]:
        """Return `TargetSample.keyed` of one constraint at a frame."""
        return tuple([(name, float(values[k])) for name, values in self.keyed.get(c, {}).items()])

    def row(self, k: int) -> tuple[TargetSample, ...]:
        """Return the targets of all constraints at a frame."""
        return tuple([self.sample(k, c) for c in range(self.points.shape[1])])

    def rotated(self, rotation: Array) -> TargetRows:
        """Rotate the targets about the origin by quaternions, (4,) or (R, 1, 4)."""
        quaternion = np.broadcast_to(rotation, (*self.points.shape[:2], 4))
        points, directions, poles = (
            rotate(quaternion, vectors, axis=-1) for vectors in (self.points, self.directions, self.poles)
        )
        rotations = unit(multiply(quaternion, self.rotations, axis=-1), axis=-1)
        return self._replace(points=points, rotations=rotations, directions=directions, poles=poles)


def orthonormal(axes: Any) -> Quaternion | None:
    """Like `maths.batch.orthonormals` for one 3x3 matrix; None if it is flat."""
    rotation = orthonormals(np.array([row[:] for row in axes]))
    return None if np.isnan(rotation).any() else Quaternion(rotation.tolist())


class Carrier(NamedTuple):
    """What carries the channels of an object or a bone, and the channels' present state.

    The axes that Blender shows are `axes`, times the rotation of the channels, times the scale: carriers may
    shear and mirror, and so may the scale.
    """

    axes: Matrix  # 3x3, from the axes of the rotation to the world
    to_axes: Matrix  # 3x3, its inverse
    to_location: Matrix  # 4x4, from the world to values of the location, delta included
    rotation: Quaternion  # of the channels, delta included
    scale: Vector  # of the channels, delta included
    location_delta: Vector
    rotation_delta: Quaternion

    @classmethod
    def of(cls, obj: Any, bone: str) -> Carrier:
        """Read an object, original or evaluated, or one of its bones.

        Raises:
            ValueError: it or its parent is flat.
        """
        if not bone:
            places = obj.matrix_world @ obj.matrix_basis.inverted()
            delta = obj.delta_rotation_quaternion
            if obj.rotation_mode not in ("QUATERNION", "AXIS_ANGLE"):
                delta = obj.delta_rotation_euler.to_quaternion()
            scale = Vector([a * b for a, b in zip(obj.scale, obj.delta_scale, strict=True)])
            rotation = delta @ rotation_of(obj.rotation_mode, getattr(obj, rotation_channel(obj)[0]))
            axes = places.to_3x3()
            shift = Vector(obj.delta_location)
            return cls(axes, axes.inverted(), places.inverted(), rotation, scale, shift, delta.copy())
        pose_bone = obj.pose.bones[bone]

        def placed(basis: Matrix) -> Matrix:
            matrix: Matrix = obj.matrix_world @ with_channels(pose_bone, basis)
            return matrix

        at_rest = placed(Matrix())
        places = at_rest.copy()
        for i in range(3):  # a bone without Local Location has other axes for its location
            unit = Vector([float(k == i) for k in range(3)])
            places.col[i] = placed(Matrix.Translation(unit)).col[3] - at_rest.col[3]
        rotation = rotation_of(pose_bone.rotation_mode, getattr(pose_bone, rotation_channel(pose_bone)[0]))
        axes, scale = at_rest.to_3x3(), pose_bone.scale.copy()
        return cls(axes, axes.inverted(), places.inverted(), rotation, scale, Vector(), Quaternion())

    def turned(self, goal: Quaternion, space: Matrix | None = None) -> Quaternion | None:
        """Return the rotation for which the axes have a goal rotation as of `orthonormal`; None if flat.

        Y, and the plane of Y and Z, are the same whether they are made orthonormal in the world or here.

        Args:
            space: 3x3, from the space of the goal to the world; None for the world.
        """
        to_channels: Any = self.to_axes if space is None else self.to_axes @ space
        signs = Matrix.Diagonal([math.copysign(1.0, each) for each in self.scale])
        return orthonormal(to_channels @ goal.to_matrix() @ signs)

    def pointed(self, axis: Vector, direction: Vector) -> Quaternion:
        """Return the nearest rotation for which an axis, sheared or mirrored, has a world direction."""
        scaled = Vector([a * b for a, b in zip(axis, self.scale, strict=True)])
        return (self.rotation @ scaled).rotation_difference(self.to_axes @ direction) @ self.rotation

    def shown(self, rotation: Quaternion) -> Matrix:
        """Return the axes, 3x3 in the world, for a rotation of the channels."""
        return self.axes @ rotation.to_matrix() @ Matrix.Diagonal(self.scale)

    def channels(self, point: Vector, rotation: Quaternion) -> tuple[Vector, Quaternion]:
        """Return the location and rotation channels, without deltas, for a point in the world."""
        location = self.to_location @ point - self.location_delta
        return location, self.rotation_delta.inverted() @ rotation


Ahead = Mapping[tuple[bpy.types.Object, str], Matrix]
"""World matrices of bones that were posed since the last evaluation: (armature object, bone) -> matrix."""
NOTHING_AHEAD: Ahead = MappingProxyType({})
NOWHERE: Mapping[bpy.types.Object, bpy.types.Depsgraph] = MappingProxyType({})

STRAIGHT = 7
"""Digits of axes of the world in armature space: the rest is rounding of float32."""
FAR = 1e18  # armature space: the squares of lengths above this overflow float32


class ObjectRef(NamedTuple):
    """Reference to an object, or to one of its bones."""

    obj: bpy.types.Object
    bone: str  # name of the bone, or empty
    is_armature: bool  # whether the object is the armature that carries the constraint


class TargetSource(NamedTuple):
    """Target and pole of one constraint, and the fields to read."""

    constraint: Constraint
    target: ObjectRef | None
    pole: ObjectRef | None
    place: int  # index of the constraint in the armature's list
    keyed: tuple[str, ...]  # fields of `SAMPLED` that are read at each frame


def target_sources(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], with_keyed: bool = True
) -> list[TargetSource]:
    """Resolve the targets and poles of constraints.

    Args:
        armature_object: the original object.
        with_keyed: whether fields that keys or drivers move are read at each frame, if the constraint uses
            them.

    Raises:
        RigError: a constraint or a target is missing.
    """
    listed = [constraint.name for constraint in armature_object.ccd_rig.constraints]
    places = {name: place for place, name in reversed([*enumerate(listed)])}
    animated = {path for path, _ in animated_components(armature_object)} if with_keyed else set()

    def ref(obj: bpy.types.Object | None, bone: str) -> ObjectRef | None:
        return None if obj is None else ObjectRef(obj, bone, obj == armature_object)

    sources = []
    for constraint in constraints:
        place = places.get(constraint.name)
        if place is None:
            where = f"Armature '{armature_object.name}'"
            raise RigError(f"{where} has no constraint '{constraint.name}': choose another one")
        path = f"ccd_rig.constraints[{place}]"
        fields = constraint.kind.sampled(constraint) if animated else ()
        keyed = tuple(name for name in fields if f"{path}.{name}" in animated)
        target = ref(target_object(constraint), constraint.target_bone)
        pole = ref(pole_object(constraint), constraint.pole_bone)
        sources.append(TargetSource(constraint, target, pole, place, keyed))
    return sources


def sampled_paths(sources: Sequence[TargetSource]) -> list[str]:
    """Return the data paths of the numbers that are read from an armature object: influences first."""
    paths = [f"ccd_rig.constraints[{source.place}].influence" for source in sources]
    for source in sources:
        for name in source.keyed:
            path = f"ccd_rig.constraints[{source.place}].{name}"
            paths += [f"{path}[{i}]" for i in range(3)] if name == "offset" else [path]
    return paths


def objects_of(sources: Sequence[TargetSource]) -> list[tuple[bpy.types.Object, str]]:
    """Return the targets and poles: objects, with the name of a bone, or empty."""
    refs = (ref for source in sources for ref in (source.target, source.pole))
    return [(ref.obj, ref.bone) for ref in refs if ref is not None]


ENDS = (3, 7, 10, 13, TARGET_WIDTH)
"""Ends of points, rotations, directions, poles and offsets among the numbers of a target."""
TURNS, SPACES = ({name: number for name, _, _, number in items} for items in (ROTATIONS, OFFSET_SPACES))
"""The kernel's numbers of what gives a rotation, and of the spaces of offsets."""


def _columns(table: NDArray[Any]) -> list[NDArray[Any]]:
    """Views of the first five values of `TargetRows` in their numbers (..., 16)."""
    return [table[..., begin:end] for begin, end in pairwise((0, *ENDS))]


@lru_cache(maxsize=16)
def _inverse_of(world: bytes) -> Array:
    """The inverse (1, 4, 4) of a matrix; most armature objects keep theirs."""
    return inverse(np.frombuffer(world).reshape(1, 4, 4))


class TargetReader:
    """Reads targets, poles and numbers of constraints, and converts them to target rows.

    Attributes:
        armature_object: the original object.
        sources: one per constraint.
    """

    def __init__(self, armature_object: bpy.types.Object, sources: Sequence[TargetSource]) -> None:
        self.armature_object, self.sources = armature_object, sources
        self._rows = np.array([source.place for source in sources], np.intp)
        self._refs = [ref for source in sources for ref in (source.target, source.pole) if ref is not None]
        self._are_local = np.array([ref.is_armature for ref in self._refs], np.int32)
        self._uses = np.empty((len(sources), USE_WIDTH), np.int32)
        place = 0
        for uses, source in zip(self._uses, sources, strict=True):
            constraint, is_free = source.constraint, source.target is None or source.constraint.kind.balances
            turn, space = 0 if is_free else TURNS[constraint.rotation], SPACES[constraint.offset_space]
            uses[:] = -1, -1, turn, space, "offset" in source.keyed
            for number, ref in enumerate((source.target, source.pole)):
                if ref is not None:
                    uses[number] = place
                    place += 1
        self._oriented, self._directed = (np.flatnonzero(self._uses[:, 2] == turn) for turn in (1, 2))
        self._poled = np.flatnonzero(self._uses[:, 1] >= 0)
        constraints = [source.constraint for source in sources]
        self._axes = np.array([AXES[each.target_axis][:] for each in constraints]).reshape(-1, 3)
        self._offsets = np.array([each.offset for each in constraints]).reshape(-1, 3)
        self._balances = [c for c, source in enumerate(sources) if source.constraint.kind.balances]
        self._needed = np.zeros((len(sources), ENDS[-1]), np.bool_)  # values that must be finite
        points, turns, directions, poles, _ = _columns(self._needed)
        points[:] = poles[self._poled] = True
        turns[self._oriented, 0] = directions[self._directed, 0] = True
        self._fields = [
            (c, name)
            for c, source in enumerate(sources)
            if source.target is not None
            for name in source.keyed
        ]

    def look(
        self,
        evaluated: bpy.types.Object,
        depsgraph: bpy.types.Depsgraph,
        elsewhere: Mapping[bpy.types.Object, bpy.types.Depsgraph] = NOWHERE,
        ahead: Ahead = NOTHING_AHEAD,
    ) -> NDArray[np.float32]:
        """Read the matrices (T, 16) of targets and poles, column by column.

        Bones of the armature are in armature space, everything else in world space.

        Args:
            evaluated: the evaluated armature object.
            depsgraph: evaluates targets and poles.
            elsewhere: depsgraphs of the objects that `depsgraph` does not evaluate.
            ahead: matrices of bones that were posed since the last evaluation.
        """
        seen = np.empty((len(self._refs), 16), np.float32)
        for row, (obj, bone, is_armature) in zip(seen, self._refs, strict=True):
            target: Any
            if is_armature and not bone:
                row[:] = np.eye(4).ravel()
            elif bone and not is_armature:
                matrix = ahead.get((obj, bone))
                if matrix is None:
                    target = obj.evaluated_get(elsewhere.get(obj, depsgraph))
                    matrix = target.matrix_world @ target.pose.bones[bone].matrix
                row[:] = [*chain.from_iterable(matrix.transposed())]
            else:
                # The property itself: NumPy would read a matrix of mathutils number by number.
                if bone:
                    target, path = evaluated.pose.bones[bone], "matrix"
                else:
                    target, path = obj.evaluated_get(elsewhere.get(obj, depsgraph)), "matrix_world"
                target.path_resolve(path, False).foreach_get(row)
        return seen

    def numbers(self, seen: bpy.types.Object) -> list[float]:
        """Read the influences of constraints, and then their animated fields.

        `seen`: the armature object, original or evaluated.
        """
        listed = seen.ccd_rig.constraints
        influences = np.empty(len(listed), np.float32)
        listed.foreach_get("influence", influences)
        values: list[float] = influences[self._rows].tolist()
        for c, name in self._fields:
            value = getattr(listed[self.sources[c].place], name)
            values.extend(value if name == "offset" else (value,))
        return values

    def influences(self, frames: Sequence[float], numbers: Array) -> Array:
        """Return the (R, C) influences of (R, N) `numbers`; raises RigError if one is not a number."""
        influences = numbers[:, : len(self.sources)]
        if not np.isfinite(influences).all():  # the property's range does not keep NaN out
            k, c = np.argwhere(~np.isfinite(influences))[0].tolist()
            raise RigError(
                f"Constraint '{self.sources[c].constraint.name}': influence is not a number at frame "
                f"{frames[k]:.7g}: set it to 0 to 1, and look at its keys"
            )
        return influences

    def rows(
        self, frames: Sequence[float], worlds: Array, places: NDArray[np.float32], numbers: Array
    ) -> TargetRows:
        """Convert the values of R frames to targets.

        Args:
            frames: (R,) for messages.
            worlds: (R, 4, 4) from armature space to the world.
            places: (R, T, 16) of `look`.
            numbers: (R, N) of `numbers`.

        Raises:
            RigError: a target is not at a finite place at a frame, or flat; a setting is not a number.
        """
        size = len(frames)
        table = np.full((size, len(self.sources), TARGET_WIDTH), math.nan, np.float32)
        _, _, directions, _, offsets = _columns(table)
        keyed = self._keyed(frames, numbers, offsets)
        seen = np.array(places.reshape(size, -1, 4, 4).swapaxes(2, 3), np.float64, order="C")
        is_still = size == 1 or bool((worlds == worlds[:1]).all())
        to_armature = _inverse_of(worlds[0].tobytes()) if is_still else inverse(worlds)
        for c in self._balances:
            counts = self.sources[c].constraint.balance_axes
            if sum(counts) == 1:  # the normal of a plane
                axes = worlds[:, counts.index(True), :3]
            elif sum(counts) == 2:  # the direction of a line
                axes = to_armature[:, :3, counts.index(False)]
            else:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                directions[:, c] = np.round(axes / length(axes, axis=-1)[:, None], STRAIGHT)
        write_targets(
            seen.reshape(size, -1),
            self._are_local,
            to_armature.reshape(-1, 16),
            self._uses,
            self._axes,
            self._offsets,
            table.reshape(size, -1),
        )
        table = table.astype(np.float64)
        rows = TargetRows(*_columns(table), keyed=keyed)
        if not (np.abs(table[:, self._needed]) < FAR).all():
            self._require_valid(frames, rows)
        return rows

    def _keyed(self, frames: Sequence[float], numbers: Array, offsets: Array) -> dict[int, dict[str, Array]]:
        """Return `TargetRows.keyed`, and fill in `TargetRows.offsets`."""
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
                    f"Constraint '{row.name}': '{label}' is not a number at frame {frames[k]:.7g}: look at "
                    "its keys and drivers"
                )
        return keyed

    def _require_valid(self, frames: Sequence[float], targets: TargetRows) -> None:
        """Raise RigError at the first frame at which a target has no finite place, or no rotation."""
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
            problem = "too far away to compute with" if is_number else "not a number"
            bone = f"bone '{constraint.target_bone}' of " if constraint.target_bone else ""
            raise RigError(
                f"Constraint '{constraint.name}': target {bone}'{target.obj.name}' has a place that is "
                f"{problem} at frame {frame:.7g}: look at its transform and keys, and at the constraint's "
                "offset"
            )
        if fault == 1:
            raise RigError(
                f"Constraint '{constraint.name}': target '{target.obj.name}' has a scale of 0 at frame "
                f"{frame:.7g}, so it has no rotation: give it another scale"
            )
        assert pole is not None
        raise RigError(
            f"Constraint '{constraint.name}': pole target '{pole.obj.name}' has a place that is not a "
            f"number at frame {frame:.7g}: look at its transform and keys"
        )
