# SPDX-License-Identifier: GPL-3.0-or-later
"""The armature that the user works on, and library overrides of armatures.

Since 5.0, Blender compares a property group as one value if the library's data has never had the group. It
stores an override that replaces the group, which fails when the file is opened again: the values are lost. If
the group exists on both sides, Blender compares value by value, as before. Reading a group creates it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import bpy

from ..registration import Handlers, use

_latest: list[bpy.types.Object] = []
"""The armature of the latest target or pole: every panel asks for it at every redraw."""


def active_rig(context: bpy.types.Context) -> bpy.types.Object | None:
    """Return the active armature; for an active target or pole, an armature that reaches for it.

    Of several it is the one of the latest call, else the first of the scene. Panels, buttons and views all
    ask: a rig with settings that came from another file is noticed here.
    """
    active = context.object
    if active is None or active.type == "ARMATURE":
        if active is not None and active.is_property_set("ccd_rig"):
            use()
        return active
    if active.users < 2:  # a collection, and the constraint whose target it is
        return None
    with contextlib.suppress(ReferenceError):  # it was removed
        for rig in _latest:
            if rig.visible_get(view_layer=context.view_layer) and _reaches_for(rig, active):
                return rig
    for obj in context.scene.objects:
        if _reaches_for(obj, active):
            use()
            _latest[:] = [obj]
            return obj
    return None


def _reaches_for(obj: bpy.types.Object, target: bpy.types.Object) -> bool:
    """Whether an object is an armature with a constraint that has an object as its target or pole."""
    rigs = with_settings([obj] if obj.type == "ARMATURE" else ())
    return any(target in (row.target, row.pole_target) for rig in rigs for row in rig.ccd_rig.constraints)


def with_settings(owners: Iterable[Any]) -> Iterator[Any]:
    """Yield the objects or bones that have settings: reading a group creates it."""
    return (owner for owner in owners if owner.is_property_set("ccd_rig"))


def rigs_with_settings() -> Iterator[bpy.types.Object]:
    """Yield the armatures of the file that have settings."""
    return with_settings(obj for obj in bpy.data.objects if obj.type == "ARMATURE")


def rigs_to_bake(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """Return the armature objects of a scene with enabled constraints."""
    armatures = (obj for obj in scene.objects if obj.type == "ARMATURE")
    return [rig for rig in with_settings(armatures) if any(row.enabled for row in rig.ccd_rig.constraints)]


def linked(rig: bpy.types.Object) -> str:
    """Say why a rig cannot be edited (it is linked, or an override for Blender alone); empty if it can."""
    from ..keys.channels import is_system_override

    if not rig.is_editable:
        return f"'{rig.name}' is linked from a library: make a library override of it first"
    if is_system_override(rig):
        return (
            f"'{rig.name}' is an override that is not editable: use Library Override > Make > Selected first"
        )
    return ""


def linked_reference(owner: Any) -> Any | None:
    """Return the linked object that an override is based on, or None."""
    return None if owner.override_library is None else owner.override_library.reference


def is_from_library(row: Any, rows: str) -> bool:
    """Whether a row comes from the library of an override: Blender keeps it at its place.

    `rows`: name of its list in the armature's group. Rows of the override may stand between those.
    """
    reference = linked_reference(row.id_data)
    return reference is not None and row.name in getattr(reference.ccd_rig, rows)


def lost_name(armature_object: bpy.types.Object, rows: str) -> str:
    """Return a name in the library of an override that no row has; empty if all are there.

    Blender finds rows by name: if one was renamed, it would add those of the library once more.
    """
    reference = linked_reference(armature_object)
    if reference is None:
        return ""
    library, present = getattr(reference.ccd_rig, rows), getattr(armature_object.ccd_rig, rows)
    return next((row.name for row in library if row.name not in present), "")


def keep_overrides(armature_object: bpy.types.Object) -> None:
    """Create every group of an override in the library's armature too, so that its changes can be saved."""
    reference = linked_reference(armature_object)
    if reference is None or reference.pose is None:
        return  # without a pose: the library is missing, and a placeholder stands in for its armature
    _read_both(armature_object, reference)
    for bone in armature_object.pose.bones:
        linked_bone = reference.pose.bones.get(bone.name)
        if linked_bone is not None:
            _read_both(bone, linked_bone)


def _read_both(owner: bpy.types.bpy_struct, reference: bpy.types.bpy_struct) -> None:
    if owner.is_property_set("ccd_rig"):
        _read_groups(owner.ccd_rig, reference.ccd_rig)


def _read_groups(group: bpy.types.PropertyGroup, reference: bpy.types.PropertyGroup) -> None:
    for name, prop in group.bl_rna.properties.items():
        if is_group(prop):
            _read_groups(getattr(group, name), getattr(reference, name))


def is_group(prop: Any) -> bool:
    """Whether a property of Blender is a group of properties."""
    base = prop.fixed_type.base if prop.type == "POINTER" else None
    return base is not None and base.identifier == "PropertyGroup"


_HANDLERS = Handlers()


@_HANDLERS.on("save_pre", "load_post")
def keep_all_overrides(*_arguments: object) -> None:
    """Create missing groups of all overrides, before a file is saved and after one was opened."""
    for obj in bpy.data.objects:
        if obj.type == "ARMATURE" and obj.library is None and linked_reference(obj) is not None:
            keep_overrides(obj)
            # What Blender has noted as changed before the groups were there is lost in a resync.
            obj.override_library.operations_update()


register, unregister = _HANDLERS.register, _HANDLERS.unregister
