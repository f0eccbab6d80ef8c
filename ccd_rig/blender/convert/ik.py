# SPDX-License-Identifier: GPL-3.0-or-later
"""Blender's IK constraint as a row: tail or head, chain, weights, rotation, pole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import bpy
from mathutils import Vector

from ..properties import constraint_list
from .conversion import Conversion, NewRow, NotConverted, require_target

BENT = 1e-3
"""Part of its length by which a chain is off straight at least, to have a side."""
AXES = "xyz"


def conversion(armature_object: bpy.types.Object, bone: bpy.types.PoseBone, constraint: Any) -> Conversion:
    """What becomes of an IK constraint.

    Raises:
        NotConverted: there is no counterpart; says why.
    """
    require_target(armature_object, constraint)
    tip = bone if constraint.use_tail else bone.parent
    if tip is None:
        raise NotConverted("Use Tail is off, and its bone has no parent to move")
    is_itasc = armature_object.pose.ik_solver == "ITASC"
    if is_itasc and constraint.ik_type == "DISTANCE":
        raise NotConverted("it keeps a distance, for which there is no CCD constraint")
    has_position, has_rotation = constraint.use_location, constraint.use_rotation
    if not has_position and not has_rotation:
        raise NotConverted("it asks for neither a position nor a rotation")
    if is_itasc:
        _require_all_axes(constraint, has_position, has_rotation)
    chain = constraint_list.chain(armature_object, tip.name, constraint.chain_count)
    weight = constraint.weight if has_position else constraint.orient_weight
    fields = {
        "target": constraint.target,
        "target_bone": constraint.subtarget,
        "use_position": has_position,
        "weight": weight,
    }
    if has_rotation:
        fields |= {"rotation": "ORIENTATION", "rotation_weight": constraint.orient_weight / weight}
    notes = list(_notes(constraint, chain))
    if constraint.pole_target is not None and not is_itasc:
        pole, note = _pole(armature_object, constraint, chain, has_rotation)
        fields |= pole
        notes += [note] if note else []
    return Conversion((NewRow(tip.name, constraint.chain_count, fields),), tuple(notes))


def _require_all_axes(constraint: Any, has_position: bool, has_rotation: bool) -> None:
    """iTaSC can leave axes free: those it has switched on count."""
    asked = [name for name, has in (("location", has_position), ("rotation", has_rotation)) if has]
    if not all(getattr(constraint, f"lock_{name}_{axis}") for name in asked for axis in AXES):
        raise NotConverted("it leaves axes of its target free, which a CCD constraint does not")


def _notes(constraint: Any, chain: Sequence[bpy.types.PoseBone]) -> Iterator[str]:
    """What else the chain does in Blender's IK."""
    stretched = [bone.name for bone in chain if bone.ik_stretch > 0.0]
    if constraint.use_stretch and stretched:
        yield f"bones do not stretch here ({_names(stretched)} did)"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _pole(
    armature_object: bpy.types.Object,
    constraint: Any,
    chain: Sequence[bpy.types.PoseBone],
    has_rotation: bool,
) -> tuple[dict[str, Any], str]:
    """The fields of a pole, and what is to be said of it."""
    thing, bone = constraint.pole_target, constraint.pole_subtarget
    if (bone and (thing.pose is None or bone not in thing.pose.bones)) or (
        thing == armature_object and not bone
    ):
        return {}, f"its pole '{thing.name}' is not taken over: choose an object or one of its bones"
    # A bone whose rotation is asked for has none left for the bend.
    if len(chain) - has_rotation < 2:
        return {}, "its pole is not taken over, since less than two bones are free to bend"
    fields = {"pole_target": thing, "pole_bone": bone}
    angle = _shown_angle(constraint, chain) if has_rotation else _pole_angle(chain, constraint.pole_angle)
    if angle is None:
        return fields, "its chain is straight at rest and now, so Pole Angle is 0: set it by eye"
    note = "its pole bends the bones before the one that is turned, as now: elsewhere it may differ"
    return fields | {"pole_angle": angle}, note if has_rotation else ""


def _pole_angle(chain: Sequence[bpy.types.PoseBone], angle: float) -> float | None:
    """The pole angle of a row, radians, for that of Blender's IK; None where the chain has no bend.

    Blender turns the first bone until X cos(angle) + Z sin(angle) of it is on the side of the pole; a row
    turns the bend there. The angle between the two is that at rest, or now where rest is straight.

    Args:
        chain: tip first.
        angle: Blender's, radians.
    """
    root, tip = chain[-1], chain[0]
    rest = [Vector(bone.bone.head_local) for bone in reversed(chain)]
    now = [Vector(bone.head) for bone in reversed(chain)]
    up = Vector((math.cos(angle), 0.0, math.sin(angle)))
    found = _from_to_bend(rest, Vector(tip.bone.tail_local), root.bone.matrix_local.to_3x3() @ up)
    return found if found is not None else _from_to_bend(now, Vector(tip.tail), root.matrix.to_3x3() @ up)


def _shown_angle(constraint: Any, chain: Sequence[bpy.types.PoseBone]) -> float | None:
    """The angle from the pole to the bend of the bones before the tip as they are now; None without a bend.

    Blender turns such a chain about a line that goes on to the tip's tail, which fixes no angle to this bend.
    """
    thing, bone = constraint.pole_target, constraint.pole_subtarget
    heads = [Vector(each.head) for each in reversed(chain[1:])]
    pole = thing.matrix_world @ (thing.pose.bones[bone].head if bone else Vector())
    local: Any = chain[0].id_data.matrix_world.inverted() @ pole
    return _from_to_bend(heads, Vector(chain[0].head), local - heads[0])


def _from_to_bend(heads: Sequence[Vector], end: Vector, up: Vector) -> float | None:
    """The signed angle from a direction to the bend of a chain, about its line; None if it is straight."""
    line = end - heads[0]
    if line.length == 0.0:
        return None
    line.normalize()
    length = sum((b - a).length for a, b in zip(heads, [*heads[1:], end], strict=True))
    bend = sum((head - heads[0] for head in heads), Vector())
    bend -= line * bend.dot(line)
    if bend.length < BENT * (len(heads) - 1) * length:
        return None
    across: Any = line.cross(up)  # a number only for two-dimensional vectors, which these are not
    return math.atan2(across.dot(bend), up.dot(bend))
