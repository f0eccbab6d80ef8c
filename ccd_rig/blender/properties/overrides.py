# SPDX-License-Identifier: GPL-3.0-or-later
"""Library overrides keep what was changed in them.

Since 5.0, Blender compares groups of properties as wholes where the library's data has never had the group.
It notes that the group is replaced, cannot do that when the file is opened again, and the values are lost.
Where the group exists on both sides it notes value by value, as before. Reading a group makes it exist.
"""

import bpy


def keep(armature_object: bpy.types.Object) -> None:
    """Let the library's armature have every group that its override has, so that changes can be saved."""
    override = armature_object.override_library
    if override is None or override.reference is None:
        return
    reference = override.reference
    if reference.pose is None:
        return  # the library is missing: a placeholder without bones stands in for its armature
    _read_both(armature_object, reference)
    for bone in armature_object.pose.bones:
        other = reference.pose.bones.get(bone.name)
        if other is not None:
            _read_both(bone, other)


def _read_both(owner: bpy.types.bpy_struct, reference: bpy.types.bpy_struct) -> None:
    if owner.is_property_set("ccd_rig"):
        _read(owner.ccd_rig, reference.ccd_rig)


def _read(group: bpy.types.PropertyGroup, reference: bpy.types.PropertyGroup) -> None:
    for name, prop in group.bl_rna.properties.items():
        base = prop.fixed_type.base if prop.type == "POINTER" else None
        if base is not None and base.identifier == "PropertyGroup":
            _read(getattr(group, name), getattr(reference, name))


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def keep_all(*_arguments: object) -> None:
    """Before a file is saved, and after one was opened: comparisons then find the groups on both sides."""
    for thing in bpy.data.objects:
        if thing.type == "ARMATURE" and thing.override_library is not None:
            keep(thing)


def register() -> None:
    """Listen to saving and opening."""
    bpy.app.handlers.save_pre.append(keep_all)
    bpy.app.handlers.load_post.append(keep_all)


def unregister() -> None:
    """Listen no more."""
    bpy.app.handlers.save_pre.remove(keep_all)
    bpy.app.handlers.load_post.remove(keep_all)
