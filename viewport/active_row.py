# SPDX-License-Identifier: GPL-3.0-or-later
"""Sync of the active constraint with the active bone or target, if the preferences have it on."""

from typing import Any, NamedTuple

import bpy

from ..ccd_rig.blender import evaluations
from ..ccd_rig.blender.keys import channels
from ..ccd_rig.blender.properties import constraint_list, new_constraints
from ..ccd_rig.blender.properties.active_rig import active_rig
from ..ccd_rig.blender.properties.new_constraints import Target
from ..ccd_rig.blender.registration import Handlers
from .preferences import preferences


class _Active(NamedTuple):
    """Active bone and constraint at an evaluation of the scene."""

    rig: int  # the armature object's session_uid
    bone: str
    row: int
    tip: str
    rows: int


_last: list[_Active] = []  # of the active armature at the last evaluation, or empty
_last_object: list[int] = []  # session_uid of the active object in Object Mode, or empty


_HANDLERS = Handlers()


@_HANDLERS.on("depsgraph_update_post")
def follow(_scene: Any = None, depsgraph: Any = None) -> None:
    """Activate the constraint of a bone or target that was made active, or the bone of a constraint."""
    if depsgraph is not None and evaluations.is_quiet(depsgraph):
        _last.clear()
        _last_object.clear()
        return
    context = bpy.context
    mode = context.mode
    if mode == "OBJECT":
        _follow_target(context)
    else:
        _last_object.clear()
    # The context's active bone takes longer than everything else here.
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
    before, present = _last[0] if _last else None, _active(rig, bone)
    if before is None or before.rig != present.rig:
        pass  # another armature became active, without a click in it
    elif before.bone != present.bone:
        rig.ccd_rig.active_index = row_of(rig, present.bone)
    elif before.row != present.row and before.tip != present.tip and before.rows == present.rows:
        activate_bone(rig, present.tip)
    if before != present:
        _last[:] = [_active(rig, context.active_pose_bone)]


def _follow_target(context: bpy.types.Context) -> None:
    """Activate the constraint whose target or pole was made active in Object Mode."""
    target = getattr(context, "object", None)  # missing in contexts without a drawn window
    present = [] if target is None else [target.session_uid]
    if present == _last_object:
        return
    # In a file that was just opened no object was clicked.
    is_same_file = any(known.session_uid in _last_object for known in bpy.data.objects)
    _last_object[:] = present
    is_click = target is not None and target.type != "ARMATURE" and is_same_file
    rig = active_rig(context) if is_click else None
    if target is None or rig is None or not rig.is_editable or not is_wanted(context):
        return
    rows = _users(rig, Target(target))
    if rows and rig.ccd_rig.active_index not in rows:
        rig.ccd_rig.active_index = rows[0]


def is_wanted(context: bpy.types.Context) -> bool:
    """Whether the preferences let bone and constraint follow each other."""
    chosen = preferences(context)
    return chosen is not None and bool(chosen.follow_selection)


def row_of(rig: bpy.types.Object, bone: str) -> int:
    """Return the index of the constraint that a bone belongs to; the active index if there is none.

    Constraints with this tip come first, then those with this target or pole, then those with the bone in
    their chains. Among several the active one counts, else the first.
    """
    active, rows = rig.ccd_rig.active_index, list(rig.ccd_rig.constraints)
    order = sorted(range(len(rows)), key=lambda i: i != active)
    chains = {i: constraint_list.chain_of(rig, rows[i]) for i in order}
    tips = [i for i in order if rows[i].tip == bone]
    users = sorted(_users(rig, Target(rig, bone)), key=lambda i: i != active)
    in_chains = [i for i in order if any(member.name == bone for member in chains[i])]
    return next(iter((*tips, *users, *in_chains)), active)


def _users(rig: bpy.types.Object, target: Target) -> list[int]:
    """Indices of the constraints with this target or pole; only armatures have bones."""
    every = [new_constraints.of_row(row) for row in rig.ccd_rig.constraints]
    if target.obj.type != "ARMATURE":
        every = [tuple(Target(each.obj) for each in targets) for targets in every]
    return [k for k, targets in enumerate(every) if target in targets]


def _active(rig: bpy.types.Object, bone: bpy.types.PoseBone) -> _Active:
    row = constraint_list.active(rig)
    group = rig.ccd_rig
    tip = "" if row is None else row.tip
    return _Active(rig.session_uid, bone.name, group.active_index, tip, len(group.constraints))


def activate_bone(rig: bpy.types.Object, name: str, extends: bool = False) -> None:
    """Make a visible bone the active one of its armature, and unless `extends` the only selected one."""
    if not any(bone.name == name and bone.id_data == rig for bone in bpy.context.visible_pose_bones):
        return
    for bone in rig.pose.bones:
        channels.select_bone(bone, bone.name == name or (extends and channels.is_bone_selected(bone)))
    rig.data.bones.active = rig.data.bones[name]


register = _HANDLERS.register


def unregister() -> None:
    """Unregister the handler of evaluations."""
    _HANDLERS.unregister()
    _last.clear()
    _last_object.clear()
