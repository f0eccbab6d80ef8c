# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of bones kept over Rigify's Re-Generate Rig.

Rigify replaces all bones of the rig in the same object: settings of the object stay, settings of its bones
are lost. Blender calls handlers as Rigify enters Edit Mode. They note the settings of the bones, and store
them on new bones of the same names. Each generation gives the rig a new `rig_id`; the rig is therefore
identified by its object.

The metarig keeps the set-up as JSON, from the last regeneration or save of its rig. A button restores it on a
rig that was deleted and generated again.
"""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ...errors import RigError
from .. import evaluations
from ..figures.rigify import is_generated
from ..properties import renamed_bones
from ..scene.isolation import is_isolated
from .setup_file import Applied, Values, apply, from_json, set_values, setup_of, to_json, values_of

_noted: dict[int, dict[str, Values]] = {}  # by session_uid of rigs: settings of bones that may be replaced
_edited: set[int] = set()  # `session_uid` of generated rigs that are in Edit Mode


def follow(
    scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph, armatures: Sequence[bpy.types.Object]
) -> None:
    """Note settings of bones as a generated rig enters Edit Mode; restore them on new bones afterwards."""
    for armature_object in armatures:
        uid = armature_object.session_uid
        if armature_object.mode == "EDIT":
            if uid not in _edited and is_generated(armature_object.data) and not is_isolated(scene):
                _edited.add(uid)
                _note(armature_object)
        elif (uid in _edited or uid in _noted) and not is_isolated(scene):
            _edited.discard(uid)
            if uid in _noted and is_generated(armature_object.data):
                _restore_bones(armature_object)


def _note(armature_object: bpy.types.Object) -> None:
    settings = {
        bone.name: values_of(bone.ccd_rig)
        for bone in armature_object.pose.bones
        if bone.is_property_set("ccd_rig")
    }
    if armature_object.session_uid not in _noted:
        keep(armature_object)
    if settings:
        _noted.setdefault(armature_object.session_uid, {}).update(settings)


def _restore_bones(armature_object: bpy.types.Object) -> None:
    noted = _noted[armature_object.session_uid]
    for name in list(noted):
        bone = armature_object.pose.bones.get(name)
        if bone is None:
            continue  # Rigify leaves Edit Mode several times before all bones exist
        values = noted.pop(name)
        if not values_of(bone.ccd_rig):
            set_values(bone.ccd_rig, values)
    if not noted:
        del _noted[armature_object.session_uid]
        for row in armature_object.ccd_rig.constraints:
            renamed_bones.on_named(row)


def metarig_of(armature_object: bpy.types.Object) -> bpy.types.Object | None:
    """Return the metarig that Rigify has generated a rig from; None if it is not in the file."""
    for metarig in bpy.data.objects:
        if metarig.type == "ARMATURE" and getattr(metarig.data, "rigify_target_rig", None) == armature_object:
            return metarig
    return None


def keep(armature_object: bpy.types.Object) -> None:
    """Store the set-up of a rig on its metarig, if there is one."""
    metarig = metarig_of(armature_object)
    if metarig is None or not metarig.is_editable:
        return
    setup = setup_of(armature_object)
    if setup.bones or setup.constraints:
        try:
            metarig.ccd_rig.kept_setup = to_json(setup)
        except ValueError:  # a value is not a number, which checks report; the former set-up is kept
            return


def restore(armature_object: bpy.types.Object) -> Applied:
    """Apply the set-up that its metarig keeps to a generated rig.

    Raises:
        RigError: the metarig keeps none, or the rig has none of its bones. Nothing has changed then.
    """
    metarig = metarig_of(armature_object)
    if metarig is None or not metarig.ccd_rig.kept_setup:
        raise RigError(
            f"no metarig keeps a set-up of '{armature_object.name}': it is kept as the rig is generated "
            "anew, or the file is saved"
        )
    return apply(armature_object, from_json(metarig.ccd_rig.kept_setup))


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def keep_all(*_arguments: object) -> None:
    """Store the set-ups of all rigs on their metarigs, before a file is saved."""
    for obj in bpy.data.objects:
        rig = getattr(obj.data, "rigify_target_rig", None) if obj.type == "ARMATURE" else None
        if rig is not None and is_generated(rig.data):
            keep(rig)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget(*_arguments: object) -> None:
    """Forget all noted settings after a file was opened, whose objects have different `session_uid`."""
    _noted.clear()
    _edited.clear()


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget_modes(*_arguments: object) -> None:
    """Forget which rigs are in Edit Mode: undo or redo may have changed the mode, and settings."""
    _edited.clear()


def register() -> None:
    """Add the handlers of evaluations, saving, opening, undo and redo."""
    evaluations.add(follow, lambda armature_object: armature_object.session_uid not in _noted)
    bpy.app.handlers.save_pre.append(keep_all)
    bpy.app.handlers.load_post.append(forget)
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        handlers.append(forget_modes)


def unregister() -> None:
    """Remove the handlers."""
    forget()
    evaluations.remove(follow)
    bpy.app.handlers.save_pre.remove(keep_all)
    bpy.app.handlers.load_post.remove(forget)
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        handlers.remove(forget_modes)
