# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of constraints on an armature: which one is shown, and adding, removing and moving them.

Blender stores animation and drivers by a constraint's number. So what moves one takes along its drivers and
its keys in the present action.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import bpy

from ...errors import RigError
from ..keys.channels import animated_components, bag_of, fcurves_of
from . import limbs, overrides
from .constraint_values import Kind

_PATH = re.compile(r"ccd_rig\.constraints\[(\d+)\]\.(.*)", re.DOTALL)


def active(armature_object: bpy.types.Object) -> Any:
    """The constraint that is shown below the list, or None."""
    listed, index = armature_object.ccd_rig.constraints, armature_object.ccd_rig.active_index
    return listed[index] if 0 <= index < len(listed) else None


def chain(armature_object: bpy.types.Object, tip: str, length: int = 0) -> tuple[bpy.types.PoseBone, ...]:
    """The bones that may turn for `tip`, tip first; none if there is no such bone.

    Args:
        armature_object: the armature.
        tip: name of the last bone.
        length: how many bones, counted from the tip; 0, or more than there are, goes to the root.
    """
    bone = armature_object.pose.bones.get(tip)
    return () if bone is None else (bone, *bone.parent_recursive)[: length or None]


def limb_length(armature_object: bpy.types.Object, tip: str) -> int:
    """A chain length that suits a new constraint, see `limbs.limb_length`; 0 where it goes up to the root."""
    return limbs.limb_length(chain(armature_object, tip))


def root_bone_chain_length(armature_object: bpy.types.Object, tip: str) -> int:
    """`limb_length` for a planted bone, whose chain ends at the bone that carries the figure and can move.

    Where other bones are planted already that is the bone which they have. 0 where it is the root, or where
    there is none.
    """
    whole = chain(armature_object, tip)
    others = [
        chain(armature_object, row.tip, row.chain_length)[-1:]
        for row in armature_object.ccd_rig.constraints
        if row.kind == Kind.PLANT and row.tip != tip
    ]
    for root_bone in (bone for other in others for bone in other):
        if root_bone in whole[1:]:
            return (whole.index(root_bone) + 1) % len(whole)
    return first_root_bone_chain_length(armature_object, tip)


def first_root_bone_chain_length(armature_object: bpy.types.Object, tip: str) -> int:
    """The same where no other bone is planted."""
    whole = chain(armature_object, tip)
    least = limb_length(armature_object, tip) or len(whole)
    movable = [count for count, bone in enumerate(whole, 1) if count > least and _can_carry(bone)]
    # Of a front leg the chest carries a part of the figure, and the hips all of it.
    branching = [count for count in movable if _branches(whole[count - 1])]
    if len(branching) > 1 and branching[-1] == len(whole) and not limbs.is_joined(whole[-2]):
        branching.pop()  # a root that stands apart also carries controls
    found = branching[-1] if branching else next(iter(movable), 0)
    return found if found < len(whole) else 0


CHAIN_LENGTHS: Mapping[Kind, Callable[[bpy.types.Object, str], int]] = MappingProxyType(
    {
        Kind.REACH: limb_length,
        Kind.BALANCE: lambda _armature_object, _tip: 0,
        Kind.PLANT: root_bone_chain_length,
    }
)
"""How many bones the chain of a constraint has at first, by its kind: (armature object, tip) -> number."""


def set_kind(constraint: Any, kind: Kind) -> None:
    """Make a constraint one of another kind, with a chain that suits it.

    A planted bone is held where it is: a target that it was to reach is cleared.
    """
    if constraint.kind == kind:
        return
    constraint.chain_length = CHAIN_LENGTHS[kind](constraint.id_data, constraint.tip)
    if kind is Kind.PLANT:
        constraint.target = None
        for field in ("target_bone", "offset", "offset_space", "use_tail"):
            constraint.property_unset(field)
    constraint.kind = kind


def _branches(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone has several children with bones of their own."""
    return sum(bool(child.children) for child in bone.children) > 1


def _can_carry(bone: bpy.types.PoseBone) -> bool:
    """Whether nothing keeps a bone from being moved and turned."""
    movable = bone.parent is None or not bone.bone.use_connect
    return movable and not any((*bone.lock_location, *bone.lock_rotation))


def add(armature_object: bpy.types.Object, name: str, tip: str) -> Any:
    """Append a constraint, show it, and return it. Its name becomes `name`, with a number where that is
    taken."""
    group = armature_object.ccd_rig
    constraint = group.constraints.add()
    constraint.name = name
    constraint.tip = tip
    group.active_index = len(group.constraints) - 1
    overrides.keep(armature_object)
    return constraint


def remove(armature_object: bpy.types.Object, index: int) -> None:
    """Take a constraint away, with its drivers and its keys in the present action.

    Raises:
        RigError: it comes from the library of an override, and Blender keeps those.
    """
    group = armature_object.ccd_rig
    require_own(armature_object, index)
    for curve in _curves(armature_object):
        constraint, field = _row_and_field(curve)
        if constraint != index:
            continue
        if curve.driver is not None:
            armature_object.driver_remove(curve.data_path)
        else:
            _delete_keys(group.constraints[index], field, curve)
    bag = bag_of(armature_object)
    for curve in _curves(armature_object):  # those with modifiers are still there
        if bag is not None and _row_and_field(curve)[0] == index:
            bag.fcurves.remove(curve)
    group.constraints.remove(index)
    _renumber(armature_object, lambda i: i - (i > index))
    group.active_index = max(0, min(index, len(group.constraints) - 1))


def move(armature_object: bpy.types.Object, index: int, new_index: int) -> None:
    """Let two neighbouring constraints change places, with their drivers and their keys in the present
    action.

    Raises:
        RigError: one of the two comes from the library of an override, and Blender keeps their order.
    """
    group = armature_object.ccd_rig
    for i in (index, new_index):
        require_own(armature_object, i)
    group.constraints.move(index, new_index)
    _renumber(armature_object, lambda i: {index: new_index, new_index: index}.get(i, i))
    group.active_index = new_index


def is_from_library(armature_object: bpy.types.Object, index: int) -> bool:
    """Whether a constraint comes from the library of an override: Blender keeps those, in their order."""
    override = armature_object.override_library
    if override is None or override.reference is None:
        return False
    # Blender puts entries that are added to an override after those of the library.
    return index < len(override.reference.ccd_rig.constraints)


def is_animated(armature_object: bpy.types.Object, constraint: Any, field: str) -> bool:
    """Whether the object's own action or a driver sets a field of a constraint; the NLA is left out."""
    path = f"{constraint.path_from_id()}.{field}"
    return any(curve.data_path == path for curve in _curves(armature_object))


def require_own(armature_object: bpy.types.Object, index: int) -> None:
    """Raise RigError, which names the constraint, if it comes from the library of an override."""
    if is_from_library(armature_object, index):
        name = armature_object.ccd_rig.constraints[index].name
        raise RigError(
            f"constraint '{name}' comes from the library that '{armature_object.name}' overrides: "
            "it can be disabled here, but removed or moved only in the library's file"
        )


def _curves(armature_object: bpy.types.Object) -> list[bpy.types.FCurve]:
    animation = armature_object.animation_data
    return [] if animation is None else [*animation.drivers, *fcurves_of(armature_object)]


def _row_and_field(curve: bpy.types.FCurve) -> tuple[int, str]:
    """The constraint that a curve drives or animates, -1 if it is something else; and the row's field."""
    match = _PATH.fullmatch(curve.data_path)
    return (int(match[1]), match[2]) if match else (-1, "")


def _delete_keys(constraint: Any, field: str, curve: bpy.types.FCurve) -> None:
    # Blender removes an F-curve together with its last key.
    component = curve.array_index if constraint.bl_rna.properties[field].is_array else -1
    for frame in [point.co[0] for point in curve.keyframe_points]:
        constraint.keyframe_delete(field, index=component, frame=frame)


def _renumber(armature_object: bpy.types.Object, number: Callable[[int], int]) -> None:
    for curve in _curves(armature_object):
        constraint, field = _row_and_field(curve)
        if constraint >= 0 and number(constraint) != constraint:
            curve.data_path = f"ccd_rig.constraints[{number(constraint)}].{field}"


def moved_settings(
    armature_object: bpy.types.Object, constraints: Iterable[Any]
) -> Iterator[tuple[Any, Any]]:
    """The settings that keys or drivers move, one after the other: the constraint, and the property's RNA.

    Args:
        armature_object: carries the constraints.
        constraints: those of its list, as they are stored.
    """
    animated = {path for path, _ in animated_components(armature_object)}
    if not any(path.startswith("ccd_rig.constraints[") for path in animated):
        return
    for constraint in constraints:
        path = constraint.path_from_id()
        for setting in constraint.bl_rna.properties:
            if f"{path}.{setting.identifier}" in animated:
                yield constraint, setting
