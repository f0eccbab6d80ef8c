"""A sound set-up that tests spoil: its rig, and how raw values and keys are put into it."""

from __future__ import annotations

import math

import bpy
import rigs
from mathutils import Quaternion

NAN = math.nan


def sound_rig(ext):
    """Four animated bones; "Hand" lets bone_2 reach for the moving "Goal"; between two frames."""
    made = rigs.chain(4, 0.5)
    goal = rigs.empty("Goal")
    for frame, x in ((1, 0.2), (6, 0.6)):
        goal.location = (x, 0.1, 1.1)
        goal.keyframe_insert("location", frame=frame)
    row = made.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Hand", "bone_2", goal
    for frame, angle in ((1, 0.0), (6, 0.4)):
        made.pose.bones["bone_1"].rotation_quaternion = Quaternion((1, 0, 0), angle)
        made.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=frame, group="bone_1")
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 6
    bpy.context.scene.frame_set(3, subframe=0.25)
    # Without keys: a frame that is set and set back loses it.
    made.pose.bones["bone_2"].rotation_quaternion = Quaternion((0, 0, 1), 0.3)
    rigs.activate(made)
    bpy.ops.object.mode_set(mode="POSE")
    ext.module("ccd_rig.blender.keys.channels").select_bone(made.pose.bones["bone_1"], True)
    rigs.update()
    return made


def hand(rig):
    return rig.ccd_rig.constraints["Hand"]


def limit(rig, **fields):
    group = rig.pose.bones["bone_1"].ccd_rig.limit
    for name, value in fields.items():
        setattr(group, name, value)


def set_raw(group, name, value):
    """Set what the property itself would clamp, as a script can."""
    raw = group.bl_system_properties_get if hasattr(group, "bl_system_properties_get") else None
    (raw() if raw is not None else group)[name] = value


def raw(place, **fields):
    """A change of a rig as `rigs.setting`, of what properties themselves would clamp."""

    def change(rig):
        for name, value in fields.items():
            set_raw(rig.path_resolve(place), name, value)

    change.__name__ = "raw_" + "_".join(fields)
    return change


def object_mode():
    bpy.ops.object.mode_set(mode="OBJECT")


def curves_of(thing):
    action = thing.animation_data.action
    if "slots" in action.bl_rna.properties:
        return action.layers[0].strips[0].channelbag(thing.animation_data.action_slot).fcurves
    return action.fcurves


def spoil_key(thing, path, frame, value):
    """Key a channel soundly at frame 1, and badly at `frame`."""
    for each in (1, frame):
        thing.keyframe_insert(path, frame=each)
    for curve in curves_of(thing):
        if curve.data_path.endswith(path.rpartition(".")[2]):
            for point in curve.keyframe_points:
                point.interpolation = "CONSTANT"  # before `frame` all is well
                if point.co[0] == frame:
                    point.co = (frame, value)
            curve.update()


def keyed_curve(rig):
    return next(iter(curves_of(rig)))


def nothing(rig):
    pass


def spoil(how, rig, folder):
    """Those that need a library take a folder for it."""
    if how.__code__.co_argcount == 2:
        how(rig, folder)
    else:
        how(rig)
