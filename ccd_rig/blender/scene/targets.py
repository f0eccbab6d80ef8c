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
from mathutils import Matrix, Quaternion, Vector

from ...errors import RigError
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

    def rotated(self, turn: Quaternion) -> TargetSample:
        """The same targets in a model that is turned about its origin."""
        return self._replace(
            point=turn @ self.point,
            rotation=None if self.rotation is None else (turn @ self.rotation).normalized(),
            direction=None if self.direction is None else turn @ self.direction,
            pole=None if self.pole is None else turn @ self.pole,
        )

    def settings_of(self, constraint: Constraint) -> Constraint:
        """The constraint as keys and drivers have it at the frame."""
        fields: dict[str, Any] = dict(self.keyed)
        if self.offset is not None:
            fields["offset"] = self.offset
        return replace(constraint, **fields) if fields else constraint


def orthonormal(axes: Any) -> Quaternion | None:
    """The rotation of a frame whose axes are the columns of a 3x3 matrix, of any length, sheared or mirrored.

    Y points along the second column exactly, Z as near to the third as a right angle allows, and X completes
    them; where the matrix mirrors, X so is the one that points the other way. None for a flat matrix.
    """
    y, z = axes.col[1].copy(), axes.col[2].copy()
    if min(y.length, z.length) == 0.0:
        return None
    y.normalize()
    z.normalize()
    z -= y * z.dot(y)
    if z.length <= FLAT:
        return None
    z.normalize()
    columns: Any = Matrix((y.cross(z), y, z))
    return columns.transposed().to_quaternion().normalized()


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

FAR = 1e18  # armature space: the squares of lengths above this overflow float32


class ObjectRef(NamedTuple):
    """An object that is looked at, or one of its bones."""

    thing: bpy.types.Object
    bone: str  # its name, or none
    is_armature: bool  # whether the object is the armature itself


class TargetSource(NamedTuple):
    """What is looked at for one constraint: its target and, if it has one, its pole."""

    constraint: Constraint
    offset: Vector  # that of the constraint
    target: ObjectRef | None
    pole: ObjectRef | None
    place: int = -1  # of the constraint in the armature's list
    keyed: tuple[str, ...] = ()  # those of `SAMPLED` that are read at each frame

    def things(self) -> tuple[tuple[bpy.types.Object, str], ...]:
        """Objects, each with the name of the bone that is meant, or none."""
        return tuple((ref.thing, ref.bone) for ref in (self.target, self.pole) if ref is not None)


def target_sources(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint]
) -> list[TargetSource]:
    def ref(thing: bpy.types.Object | None, bone: str) -> ObjectRef | None:
        return None if thing is None else ObjectRef(thing, bone, thing == armature_object)

    return [
        TargetSource(
            constraint,
            Vector(constraint.offset),
            ref(target_object(constraint), constraint.target_bone),
            ref(pole_object(constraint), constraint.pole_bone),
        )
        for constraint in constraints
    ]


def sampled_sources(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], indices: Sequence[int]
) -> list[TargetSource]:
    """The same, with the fields that keys or drivers move, as far as they count.

    Args:
        armature_object: the original object.
        constraints: those of its list.
        indices: their places there.
    """
    animated = {path for path, _ in animated_components(armature_object)}
    sources = []
    for source, place in zip(target_sources(armature_object, constraints), indices, strict=True):
        fields = _fields_that_count(source.constraint) if animated else ()
        keyed = tuple(name for name in fields if f"ccd_rig.constraints[{place}].{name}" in animated)
        sources.append(source._replace(place=place, keyed=keyed))
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
        "soft": constraint.method == "TWO_BONE",
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


def _settings_at(
    evaluated: bpy.types.Object, source: TargetSource, frame: float
) -> tuple[tuple[float, float, float] | None, tuple[tuple[str, float], ...]]:
    """`TargetSample.offset` and `TargetSample.keyed` at a frame."""
    row = evaluated.ccd_rig.constraints[source.place]
    keyed = tuple([(name, getattr(row, name)) for name in source.keyed if name != "offset"])
    for name, value in keyed:
        if not math.isfinite(value):  # the property's range does not keep NaN out
            label = row.bl_rna.properties[name].name
            raise RigError(
                f"Constraint '{row.name}': '{label}' is not a number at frame {frame:g}: look at its keys "
                "and drivers"
            )
    return tuple(row.offset) if "offset" in source.keyed else None, keyed


def objects_of(sources: Sequence[TargetSource]) -> list[tuple[bpy.types.Object, str]]:
    return [thing for source in sources for thing in source.things()]


def sample_target(
    evaluated: bpy.types.Object,
    to_armature: Matrix,
    source: TargetSource,
    graphs: tuple[bpy.types.Depsgraph, bpy.types.Depsgraph],
    frame: float,
    ahead: Ahead = NOTHING_AHEAD,
) -> TargetSample:
    """Where a constraint's targets are, in armature space.

    Args:
        evaluated: the armature object.
        to_armature: from world space to armature space.
        source: the constraint with its objects, original.
        graphs: those that evaluate the target and the pole.
        frame: for messages.
        ahead: bones that stand elsewhere than the graphs say.
    """
    constraint, offset, target, pole, *_ = source
    if target is None:  # a bone that is planted where it is
        return TargetSample(Vector())
    shift, keyed = _settings_at(evaluated, source, frame) if source.keyed else (None, ())
    frame_of = _frame(evaluated, to_armature, target, graphs[0], ahead)
    point = _shifted(
        frame_of, to_armature, offset if shift is None else Vector(shift), constraint.offset_space
    )
    x, y, z = point[:]
    if not (abs(x) < FAR and abs(y) < FAR and abs(z) < FAR):  # what is not a number in the frame is so here
        what = "too far away to compute with" if all(map(math.isfinite, point)) else "not a number"
        bone = f"bone '{constraint.target_bone}' of " if constraint.target_bone else ""
        raise RigError(
            f"Constraint '{constraint.name}': target {bone}'{target.thing.name}' has a place that is {what} "
            f"at frame {frame:g}: look at its transform and keys, and at the constraint's offset"
        )
    rotation = direction = bend = None
    if constraint.rotation != "NONE":
        axes: Any = frame_of.to_3x3()
        if constraint.rotation == "ORIENTATION":
            rotation = orthonormal(axes)
        else:
            # A direction goes through shear and mirroring as it is: in the world it is the target's own.
            direction = axes @ AXES[constraint.target_axis]
            direction = direction.normalized() if direction.length > 0.0 else None
        if rotation is None and direction is None:
            raise RigError(
                f"Constraint '{constraint.name}': target '{target.thing.name}' has a scale of 0 at frame "
                f"{frame:g}, so it has no rotation: give it another scale"
            )
    if pole is not None:
        bend = _frame(evaluated, to_armature, pole, graphs[1], ahead).to_translation()
        if not all(map(math.isfinite, bend)):
            raise RigError(
                f"Constraint '{constraint.name}': pole target '{pole.thing.name}' has a place that is not a "
                f"number at frame {frame:g}: look at its transform and keys"
            )
    return TargetSample(point, rotation, direction, bend, shift, keyed)


def _shifted(frame_of: Any, to_armature: Any, offset: Vector, space: str) -> Vector:
    """The point of a target, armature space.

    Args:
        frame_of: the target's frame, armature space.
        to_armature: from world space to armature space.
        offset: in the axes and the unit of `space`.
        space: `Constraint.offset_space`.
    """
    if space == "TARGET":
        point: Vector = frame_of @ offset
        return point
    return frame_of.to_translation() + (to_armature.to_3x3() @ offset if space == "WORLD" else offset)


def _frame(
    evaluated: bpy.types.Object,
    to_armature: Matrix,
    ref: ObjectRef,
    depsgraph: bpy.types.Depsgraph,
    ahead: Ahead,
) -> Any:
    """Of an object or one of its bones, in armature space."""
    if (matrix_ahead := ahead.get((ref.thing, ref.bone))) is not None:
        return to_armature @ matrix_ahead
    # The armature's own bones are where they should be already, which saves the way through the world.
    seen = evaluated if ref.is_armature else ref.thing.evaluated_get(depsgraph)
    matrix: Any = Matrix.Identity(4) if ref.is_armature else to_armature @ seen.matrix_world
    return matrix @ seen.pose.bones[ref.bone].matrix if ref.bone else matrix
