# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits that outlast Rigify's Re-Generate Rig.

Rigify removes all bones of the rig and makes new ones, in the same object: what the object stores stays, what
its bones store is lost. It goes through Edit Mode for that, and Blender calls handlers on the way. There the
bones' settings are noted, and given to new bones of the same names. Each generation gives the rig another
`rig_id`, so the rig is known by its object.

The metarig keeps the whole set-up as JSON: from when its rig was generated anew or saved last. A rig that was
deleted and generated once more gets it back by a button.
"""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ...errors import RigError
from .. import evaluations
from ..figures.rigify import is_generated
from ..properties import renamed_bones
from ..scene.isolation import is_isolated
from .setup_file import Applied, Values, apply, from_json, give_values, setup_of, to_json, values_of

_noted: dict[int, dict[str, Values]] = {}  # by session_uid of rigs: settings of bones that may be replaced
_edited: set[int] = set()  # `session_uid` of generated rigs that are in Edit Mode


def follow(
    scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph, armatures: Sequence[bpy.types.Object]
) -> None:
    """Note settings of bones as a generated rig goes into Edit Mode; give them to bones that replace them."""
    for thing in armatures:
        uid = thing.session_uid
        if thing.mode == "EDIT":
            if uid not in _edited and is_generated(thing.data) and not is_isolated(scene):
                _edited.add(uid)
                _note(thing)
        elif (uid in _edited or uid in _noted) and not is_isolated(scene):
            _edited.discard(uid)
            if uid in _noted and is_generated(thing.data):
                _give_back(thing)


def _note(armature_object: bpy.types.Object) -> None:
    held = {
        bone.name: values_of(bone.ccd_rig)
        for bone in armature_object.pose.bones
        if bone.is_property_set("ccd_rig")
    }
    if armature_object.session_uid not in _noted:
        keep(armature_object)
    if held:
        _noted.setdefault(armature_object.session_uid, {}).update(held)


def _give_back(armature_object: bpy.types.Object) -> None:
    noted = _noted[armature_object.session_uid]
    for name in list(noted):
        bone = armature_object.pose.bones.get(name)
        if bone is None:
            continue  # Rigify comes this way several times before all bones are there
        values = noted.pop(name)
        if not values_of(bone.ccd_rig):
            give_values(bone.ccd_rig, values)
    if not noted:
        del _noted[armature_object.session_uid]
        for row in armature_object.ccd_rig.constraints:
            renamed_bones.on_named(row)


def metarig_of(armature_object: bpy.types.Object) -> bpy.types.Object | None:
    """The metarig that Rigify has generated a rig from; None where it is not in the file."""
    for other in bpy.data.objects:
        if other.type == "ARMATURE" and getattr(other.data, "rigify_target_rig", None) == armature_object:
            return other
    return None


def keep(armature_object: bpy.types.Object) -> None:
    """Let a rig's metarig keep its set-up, if there is one."""
    metarig = metarig_of(armature_object)
    if metarig is None or not metarig.is_editable:
        return
    setup = setup_of(armature_object)
    if setup.bones or setup.constraints:
        try:
            metarig.ccd_rig.kept_setup = to_json(setup)
        except ValueError:  # a value is no number, which checks name; what was kept before stays
            return


def restore(armature_object: bpy.types.Object) -> Applied:
    """Give a generated rig the set-up that its metarig keeps.

    Raises:
        RigError: there is none. Nothing has changed then.
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
    """Before a file is saved: metarigs keep the set-ups of their rigs."""
    for thing in bpy.data.objects:
        rig = getattr(thing.data, "rigify_target_rig", None) if thing.type == "ARMATURE" else None
        if rig is not None and is_generated(rig.data):
            keep(rig)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget(*_arguments: object) -> None:
    """Another file is open: its objects have other numbers."""
    _noted.clear()
    _edited.clear()


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget_modes(*_arguments: object) -> None:
    """Undo or redo may have led out of Edit Mode, or into it, and changed settings."""
    _edited.clear()


def register() -> None:
    """Listen to evaluations, saving and opening."""
    evaluations.add(follow)
    bpy.app.handlers.save_pre.append(keep_all)
    bpy.app.handlers.load_post.append(forget)
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        handlers.append(forget_modes)


def unregister() -> None:
    """Listen no more."""
    forget()
    evaluations.remove(follow)
    bpy.app.handlers.save_pre.remove(keep_all)
    bpy.app.handlers.load_post.remove(forget)
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        handlers.remove(forget_modes)
