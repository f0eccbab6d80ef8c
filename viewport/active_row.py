# SPDX-License-Identifier: GPL-3.0-or-later
"""The active constraint follows the active bone and the active target, and the bone follows the constraint.

As long as the user wants it so.
"""

from typing import Any, NamedTuple

import bpy

from ..ccd_rig.blender.keys import channels
from ..ccd_rig.blender.properties import constraint_list, new_targets
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.new_targets import Target
from .preferences import preferences


class _Seen(NamedTuple):
    """What was active when Blender last evaluated the scene."""

    rig: int  # the armature object's session_uid
    bone: str
    row: int
    tip: str
    rows: int


_last: list[_Seen] = []  # one at most: that of the active armature
_last_object: list[int] = []  # one at most: session_uid of what was active in Object Mode


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def follow(_scene: Any = None, _depsgraph: Any = None) -> None:
    """After an evaluation: let the constraint follow a bone or target that was just made active, or the bone
    the constraint."""
    context = bpy.context
    mode = context.mode
    if mode == "OBJECT":
        _follow_target(context)
    else:
        _last_object.clear()
    # To ask the context for the active bone takes longer than all else.
    rig = context.view_layer.objects.active if mode == "POSE" else None
    if rig is None or not rig.is_property_set("ccd_rig") or not len(rig.ccd_rig.constraints):
        _last.clear()  # without constraints nothing follows
        return
    bone = context.active_pose_bone
    if bone is None or bone.id_data != rig:
        _last.clear()
        return
    if not rig.is_editable or not is_wanted(context):
        _last.clear()
        return
    before, now = _last[0] if _last else None, _seen(rig, bone)
    if before is None or before.rig != now.rig:
        pass  # another armature: nothing was clicked in it yet
    elif before.bone != now.bone:
        rig.ccd_rig.active_index = row_of(rig, now.bone)
    elif before.row != now.row and before.tip != now.tip and before.rows == now.rows:
        activate_bone(rig, now.tip)
    if before != now:
        _last[:] = [_seen(rig, context.active_pose_bone)]


def _follow_target(context: bpy.types.Context) -> None:
    """Make the constraint active whose target or pole was just made active in Object Mode."""
    thing = getattr(context, "object", None)  # there is none without a window that is drawn
    present = [] if thing is None else [thing.session_uid]
    if present == _last_object:
        return
    # In a file that was just opened nothing was clicked yet.
    is_here = any(each.session_uid in _last_object for each in bpy.data.objects)
    _last_object[:] = present
    rig = None if thing is None or thing.type == "ARMATURE" or not is_here else active_rig(context)
    if rig is None or not rig.is_editable or not is_wanted(context):
        return
    rows = _users(rig, Target(thing))
    if rig.ccd_rig.active_index not in rows:
        rig.ccd_rig.active_index = rows[0]


def is_wanted(context: bpy.types.Context) -> bool:
    """Whether the user wants bone and constraint to follow each other."""
    chosen = preferences(context)
    return chosen is not None and bool(chosen.follow_selection)


def row_of(rig: bpy.types.Object, bone: str) -> int:
    """The constraint that a bone belongs to: the one it is the tip of, the active one, else the first.

    A bone that is a target or pole belongs likewise to what uses it. A bone that no chain holds leaves the
    active one as it is.
    """
    active, rows = rig.ccd_rig.active_index, list(rig.ccd_rig.constraints)
    order = sorted(range(len(rows)), key=lambda i: i != active)
    tips = [i for i in order if rows[i].tip == bone]
    held = [i for i in order if bone in _chain_names(rig, rows[i])]
    users = sorted(_users(rig, Target(rig, bone)), key=lambda i: i != active)
    return next(iter((*tips, *users, *held)), active)


def _users(rig: bpy.types.Object, target: Target) -> list[int]:
    """Places of the constraints whose target or pole something is."""
    return [k for k, row in enumerate(rig.ccd_rig.constraints) if target in new_targets.of_row(row)]


def _chain_names(rig: bpy.types.Object, row: Any) -> set[str]:
    return {bone.name for bone in constraint_list.chain(rig, row.tip, row.chain_length)}


def _seen(rig: bpy.types.Object, bone: bpy.types.PoseBone) -> _Seen:
    row = constraint_list.active(rig)
    group = rig.ccd_rig
    tip = "" if row is None else row.tip
    return _Seen(rig.session_uid, bone.name, group.active_index, tip, len(group.constraints))


def activate_bone(rig: bpy.types.Object, name: str, extends: bool = False) -> None:
    """Make a bone the active one of its armature, and unless `extends` the only selected, if it is shown."""
    if not any(bone.name == name and bone.id_data == rig for bone in bpy.context.visible_pose_bones):
        return
    for bone in rig.pose.bones:
        channels.select_bone(bone, bone.name == name or (extends and channels.is_bone_selected(bone)))
    rig.data.bones.active = rig.data.bones[name]


def register() -> None:
    """Listen to evaluations."""
    bpy.app.handlers.depsgraph_update_post.append(follow)


def unregister() -> None:
    """Listen no more."""
    bpy.app.handlers.depsgraph_update_post.remove(follow)
    _last.clear()
    _last_object.clear()
