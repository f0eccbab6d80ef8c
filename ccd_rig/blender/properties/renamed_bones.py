# SPDX-License-Identifier: GPL-3.0-or-later
"""What names a bone follows it when the bone is renamed.

A bone that a constraint names remembers the name it is known by, `PoseBone.ccd_rig.known_as`. Blender renames
the bone and leaves that as it is. So a name that is not found any more leads to the bone that is known by it.
That needs no message from Blender, and works in files, on undo and without a window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import bpy

from ..keys import channels
from . import baked_action

OWN_BONES = ("tip", "rotation_bone", "original_bone")
"""Properties of a constraint that name bones of its own armature."""
OTHER_BONES = {"target_bone": "target", "pole_bone": "pole_target"}
"""Those that name bones of an object, and the property that names the object."""
CALLERS = (*OWN_BONES, *OTHER_BONES, *OTHER_BONES.values())
"""Properties of a constraint that call `on_named`."""


def on_named(row: Any, _context: bpy.types.Context | None = None) -> None:
    """A constraint names another bone: let the bone remember its name."""
    for thing, _, name in _named_by(row):
        note(thing, (name,))


def note(thing: bpy.types.Object | None, names: Iterable[str]) -> None:
    """Let bones remember their names, if there are such bones and they can."""
    if thing is None or thing.type != "ARMATURE" or thing.pose is None or not thing.is_editable:
        return
    for name in names:
        bone = thing.pose.bones.get(name)
        if bone is not None and bone.ccd_rig.known_as != name:
            bone.ccd_rig.known_as = name


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
    for pose_bone in armature_object.pose.bones:
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


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def follow_all(_scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """After an evaluation: armatures may have been edited, and bones renamed."""
    if not depsgraph.id_type_updated("ARMATURE"):
        return
    for each in depsgraph.updates:
        thing = each.id.original
        if isinstance(thing, bpy.types.Object) and thing.type == "ARMATURE" and thing.pose is not None:
            follow(thing)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def note_all(*_arguments: object) -> None:
    """A file was opened: bones that its constraints name remember that, if an older version stored it."""
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
    for bone in bones:
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
    bpy.app.handlers.depsgraph_update_post.append(follow_all)
    bpy.app.handlers.load_post.append(note_all)


def unregister() -> None:
    """Listen no more."""
    bpy.app.handlers.load_post.remove(note_all)
    bpy.app.handlers.depsgraph_update_post.remove(follow_all)
