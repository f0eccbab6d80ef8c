# SPDX-License-Identifier: GPL-3.0-or-later
"""References to bones by name follow the bone when it is renamed.

A bone that a constraint refers to stores its name in `PoseBone.ccd_rig.known_as`. Blender renames the bone
and leaves `known_as`, by which a missing name then leads to the renamed bone. This needs no message from
Blender, and works in files, on undo and without a window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import bpy

from .. import evaluations
from ..registration import Handlers, use
from .active_rig import rigs_with_settings, with_settings

LOCAL_BONES = ("tip", "rotation_bone", "original_bone")
"""Properties of a constraint that name bones of the armature that carries it."""
OTHER_BONES = {"target_bone": "target", "pole_bone": "pole_target"}
"""Properties of a constraint that name bones of an object, and the property with the object."""
CALLERS = (*LOCAL_BONES, *OTHER_BONES, *OTHER_BONES.values())
"""Properties of a constraint that call `on_named`."""

_last_check: dict[int, tuple[int, list[str]]] = {}
"""By `session_uid` of armature objects: number of bones, and names in `known_as`, at the last check."""


def on_named(row: Any, _context: bpy.types.Context | None = None) -> None:
    """Store the names of the bones that a constraint refers to, after one of its properties was set."""
    use()
    evaluations.wake()
    for obj, _, name in _references(row):
        note(obj, (name,))


def on_paired(pair: Any, _context: bpy.types.Context | None = None) -> None:
    """Store the names of the bones of a pair of a retargeting, after one of them was set."""
    use()
    rig = pair.id_data
    note(rig, (pair.name,))
    note(rig.ccd_rig.retarget.source, (pair.source,))


def note(obj: bpy.types.Object | None, names: Iterable[str], undo: ExitStack | None = None) -> None:
    """Store the names of bones in `known_as`, if the armature has them and is editable.

    Args:
        obj: the armature object; None and other types are ignored.
        undo: gets callbacks that restore the former values.
    """
    if obj is None or obj.type != "ARMATURE" or obj.pose is None or not obj.is_editable:
        return
    for name in names:
        bone = obj.pose.bones.get(name)
        if bone is not None and bone.ccd_rig.known_as != name:
            if undo is not None:
                undo.callback(_restore_name, obj, name, bone.ccd_rig.known_as)
            bone.ccd_rig.known_as = name
            _last_check.pop(obj.session_uid, None)
            evaluations.wake()


def _restore_name(obj: bpy.types.Object, name: str, before: str) -> None:
    with suppress(ReferenceError):  # another file was opened, or undo went back
        settings = obj.pose.bones[name].ccd_rig
        if before:
            settings.known_as = before
        else:
            settings.property_unset("known_as")
        _last_check.pop(obj.session_uid, None)
        evaluations.wake()


def follow(armature_object: bpy.types.Object) -> dict[str, str]:
    """Update all references to the renamed bones of an armature object.

    Constraints and bone maps of all armatures, coupled offsets, the pose library, the pose before Solve and
    baked actions have such references.
    A bone that is linked from another file cannot store its name.

    Returns:
        Old name -> new name of the renamed bones.
    """
    from ..keys import channels
    from . import stored_poses

    renamed = _renamed(armature_object) if armature_object.is_editable else {}
    if not renamed:
        return {}
    for obj in (rig for rig in rigs_with_settings() if rig.is_editable):
        for row in obj.ccd_rig.constraints:
            for owner, key, name in [*_references(row)]:
                if owner == armature_object and name in renamed:
                    setattr(row, key, renamed[name])
        group = obj.ccd_rig.retarget
        for pair in group.pairs:
            if obj == armature_object:
                pair.name = renamed.get(pair.name, pair.name)
            if group.source == armature_object:
                pair.source = renamed.get(pair.source, pair.source)
    for pose_bone in with_settings(armature_object.pose.bones):
        for offset in pose_bone.ccd_rig.coupled_offsets:
            offset.driver = renamed.get(offset.driver, offset.driver)
    for pose in armature_object.ccd_rig.poses:
        for entry in pose.rotations:
            entry.name = renamed.get(entry.name, entry.name)
    stored_poses.rename_solved(armature_object, renamed)
    for action, _ in channels.played(armature_object):
        if action and action.is_editable:
            stored_poses.rename_bones(action, renamed)
    note(armature_object, renamed.values())
    return renamed


def follow_all(
    _scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph, armatures: Sequence[bpy.types.Object]
) -> None:
    """Update references to bones after an evaluation, in which bones may have been renamed."""
    for armature_object in armatures:
        if not _is_unchanged(armature_object) and armature_object.pose is not None:
            follow(armature_object)
            names = [bone.ccd_rig.known_as for bone in with_settings(armature_object.pose.bones)]
            _last_check[armature_object.session_uid] = (
                len(armature_object.pose.bones),
                [name for name in names if name],
            )


def _is_idle(armature_object: bpy.types.Object) -> bool:
    """Whether no bone has `known_as`, and there are no constraints."""
    last_check = _last_check.get(armature_object.session_uid)
    if last_check is None or last_check[1]:
        return False
    return not (armature_object.is_property_set("ccd_rig") and len(armature_object.ccd_rig.constraints))


def _is_unchanged(armature_object: bpy.types.Object) -> bool:
    """Whether the number of bones is the same as at the last check, and no bone with `known_as` is renamed.

    If no bone had `known_as` at the last check, none has it now: `note` removes the entry.
    """
    last_check = _last_check.get(armature_object.session_uid)
    if last_check is None or not last_check[1]:
        return last_check is not None
    count, names = last_check
    bones = armature_object.pose.bones
    return len(bones) == count and all(
        (bone := bones.get(name)) is not None and bone.ccd_rig.known_as == name for name in names
    )


_HANDLERS = Handlers()


@_HANDLERS.on("undo_post", "redo_post")
def forget(*_arguments: object) -> None:
    """Forget the last check of all armatures: undo or redo may have changed names."""
    _last_check.clear()
    evaluations.wake()


@_HANDLERS.on("load_post")
def note_all(*_arguments: object) -> None:
    """Store the names of referenced bones after a file was opened, which an older version may have saved."""
    _last_check.clear()
    evaluations.wake()
    for obj in (rig for rig in rigs_with_settings() if rig.is_editable):
        for row in obj.ccd_rig.constraints:
            on_named(row)
        for pair in obj.ccd_rig.retarget.pairs:
            on_paired(pair)


def _renamed(armature_object: bpy.types.Object) -> dict[str, str]:
    """Return old name -> new name of the bones whose `known_as` differs from their name.

    A copy of a bone has the `known_as` of its original: it is cleared.
    """
    bones = armature_object.pose.bones
    candidates: dict[str, list[Any]] = {}
    for bone in with_settings(armature_object.pose.bones):
        known = bone.ccd_rig.known_as
        if known and known != bone.name:
            candidates.setdefault(known, []).append(bone)
    renamed = {}
    for known, known_bones in candidates.items():
        namesake = bones.get(known)
        if len(known_bones) == 1 and (namesake is None or namesake.ccd_rig.known_as != known):
            renamed[known] = known_bones[0].name
        elif namesake is not None and namesake.ccd_rig.known_as == known:
            for copied in known_bones:
                copied.ccd_rig.property_unset("known_as")
    return renamed


def _references(row: Any) -> Iterator[tuple[bpy.types.Object | None, str, str]]:
    """Yield the references of a constraint to bones: object, property of the constraint, name of the bone."""
    for key in LOCAL_BONES:
        yield row.id_data, key, getattr(row, key)
    for key, owner in OTHER_BONES.items():
        yield getattr(row, owner), key, getattr(row, key)


def register() -> None:
    """Add the handlers of evaluations, opened files, undo and redo."""
    evaluations.add(follow_all, _is_idle)
    _HANDLERS.register()


def unregister() -> None:
    """Remove the handlers."""
    _HANDLERS.unregister()
    evaluations.remove(follow_all)
    _last_check.clear()
