# SPDX-License-Identifier: GPL-3.0-or-later
"""What names a bone follows it when the bone is renamed.

A bone that a constraint names remembers the name it is known by, `PoseBone.ccd_rig.known_as`. Blender renames
the bone and leaves that as it is. So a name that is not found any more leads to the bone that is known by it.
That needs no message from Blender, and works in files, on undo and without a window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import bpy

from .. import evaluations
from ..keys import channels
from . import baked_action

OWN_BONES = ("tip", "rotation_bone", "original_bone")
"""Properties of a constraint that name bones of its own armature."""
OTHER_BONES = {"target_bone": "target", "pole_bone": "pole_target"}
"""Those that name bones of an object, and the property that names the object."""
CALLERS = (*OWN_BONES, *OTHER_BONES, *OTHER_BONES.values())
"""Properties of a constraint that call `on_named`."""

_looked_at: dict[int, tuple[int, list[str]]] = {}
"""By `session_uid` of armature objects: how many bones there were when they were last looked at, and the
names that bones were known by."""


def on_named(row: Any, _context: bpy.types.Context | None = None) -> None:
    """A constraint names another bone: let the bone remember its name."""
    for thing, _, name in _named_by(row):
        note(thing, (name,))


def note(thing: bpy.types.Object | None, names: Iterable[str], undo: ExitStack | None = None) -> None:
    """Let bones remember their names, if there are such bones and they can; `undo` gets the way back."""
    if thing is None or thing.type != "ARMATURE" or thing.pose is None or not thing.is_editable:
        return
    for name in names:
        bone = thing.pose.bones.get(name)
        if bone is not None and bone.ccd_rig.known_as != name:
            if undo is not None:
                undo.callback(_forget_name, thing, name, bone.ccd_rig.known_as)
            bone.ccd_rig.known_as = name
            _looked_at.pop(thing.session_uid, None)


def _forget_name(thing: bpy.types.Object, name: str, before: str) -> None:
    """Let a bone be known by the name that it was known by before, or by none."""
    with suppress(ReferenceError):  # another file was opened, or undo went back
        settings = thing.pose.bones[name].ccd_rig
        if before:
            settings.known_as = before
        else:
            settings.property_unset("known_as")
        _looked_at.pop(thing.session_uid, None)


def follow(armature_object: bpy.types.Object) -> dict[str, str]:
    """Let all that names renamed bones of an armature object follow.

    Constraints, also of other armatures, coupled offsets and the pose library do. A bone that is linked from
    another file cannot remember a name.

    Returns:
        Old name -> new name of the bones that were found again.
    """
    renamed = _renamed(armature_object) if armature_object.is_editable else {}
    if not renamed:
        return {}
    for row, key in list(_rows_that_name(armature_object)):
        if (name := getattr(row, key)) in renamed:
            setattr(row, key, renamed[name])
    for pose_bone in _with_settings(armature_object):
        for offset in pose_bone.ccd_rig.coupled_offsets:
            offset.driver = renamed.get(offset.driver, offset.driver)
    for pose in armature_object.ccd_rig.poses:
        for entry in pose.rotations:
            entry.name = renamed.get(entry.name, entry.name)
    for action, _ in channels.played(armature_object):
        if action and action.is_editable:
            baked_action.rename_bones(action, renamed)
    note(armature_object, renamed.values())
    return renamed


def follow_all(
    _scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph, armatures: Sequence[bpy.types.Object]
) -> None:
    """After an evaluation: armatures may have been edited, and bones renamed."""
    for thing in armatures:
        if not _is_as_before(thing) and thing.pose is not None:
            follow(thing)
            names = [bone.ccd_rig.known_as for bone in _with_settings(thing)]
            _looked_at[thing.session_uid] = len(thing.pose.bones), [name for name in names if name]


def _is_as_before(armature_object: bpy.types.Object) -> bool:
    """Whether there are as many bones as before, and those with a known name still have it.

    Where none had one, none has: `note` would have told.
    """
    seen = _looked_at.get(armature_object.session_uid)
    if seen is None or not seen[1]:
        return seen is not None
    count, names = seen
    bones = armature_object.pose.bones
    return len(bones) == count and all(
        (bone := bones.get(name)) is not None and bone.ccd_rig.known_as == name for name in names
    )


def _with_settings(armature_object: bpy.types.Object) -> Iterator[bpy.types.PoseBone]:
    """The bones that hold settings: to read those of others would make them."""
    return (bone for bone in armature_object.pose.bones if bone.is_property_set("ccd_rig"))


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget(*_arguments: object) -> None:
    """Undo or redo has changed names: look at all bones again."""
    _looked_at.clear()


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def note_all(*_arguments: object) -> None:
    """A file was opened: bones that its constraints name remember that, if an older version stored it."""
    _looked_at.clear()
    for thing in bpy.data.objects:
        if thing.type == "ARMATURE" and thing.is_editable:
            for row in thing.ccd_rig.constraints:
                on_named(row)


def _renamed(armature_object: bpy.types.Object) -> dict[str, str]:
    """Old name -> new name of the bones that have another name than they are known by.

    A copy of a bone is known by the name of the bone it was copied from: it forgets that.
    """
    bones = armature_object.pose.bones
    moved: dict[str, list[Any]] = {}
    for bone in _with_settings(armature_object):
        known = bone.ccd_rig.known_as
        if known and known != bone.name:
            moved.setdefault(known, []).append(bone)
    renamed = {}
    for known, those in moved.items():
        there = bones.get(known)
        if len(those) == 1 and (there is None or there.ccd_rig.known_as not in ("", known)):
            renamed[known] = those[0].name
        elif there is not None and there.ccd_rig.known_as == known:
            for copied in those:
                copied.ccd_rig.property_unset("known_as")
    return renamed


def _named_by(row: Any) -> Iterator[tuple[bpy.types.Object | None, str, str]]:
    """The objects whose bones a constraint names, with its property and the name."""
    for key in OWN_BONES:
        yield row.id_data, key, getattr(row, key)
    for key, owner in OTHER_BONES.items():
        yield getattr(row, owner), key, getattr(row, key)


def _rows_that_name(armature_object: bpy.types.Object) -> Iterator[tuple[Any, str]]:
    """Constraints that may name bones of an armature object, each with the property that does."""
    for thing in bpy.data.objects:
        if not thing.is_editable:
            continue
        for row in thing.ccd_rig.constraints:
            for owner, key, name in _named_by(row):
                if name and owner == armature_object:
                    yield row, key


def register_on(group: type[Any]) -> None:
    """Let properties of a group that is not registered yet call `on_named`."""
    # The bpy module 4.2 crashes at exit if a class then still holds a property that calls a function.
    for noted, name in _places(group):
        made = noted[name]
        noted[name] = made.function(**made.keywords, update=on_named)


def unregister_from(group: type[Any]) -> None:
    """Let them call nothing any more."""
    for noted, name in _places(group):
        made = noted[name]
        keywords = {key: value for key, value in made.keywords.items() if key != "update"}
        noted[name] = made.function(**keywords)


def _places(group: type[Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where a group or a class that it is made of says what a property is."""
    for made_of in group.__mro__:
        annotations = getattr(made_of, "__annotations__", {})
        yield from ((annotations, name) for name in CALLERS if name in annotations)


def register() -> None:
    """Listen to evaluations and to files that are opened."""
    evaluations.add(follow_all)
    bpy.app.handlers.load_post.append(note_all)
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        handlers.append(forget)


def unregister() -> None:
    """Listen no more."""
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        handlers.remove(forget)
    bpy.app.handlers.load_post.remove(note_all)
    evaluations.remove(follow_all)
    _looked_at.clear()
