"""Rigs whose poses are captured, and how poses are compared."""

from __future__ import annotations

import math

import bpy
import rigs
from mathutils import Quaternion
from operator_calls import select


def mixed_chain(ext):
    """Three bones along Z, each in another rotation mode; "Hand" is a constraint of the upper two."""
    made = rigs.chain(3)
    for bone, mode in zip(made.pose.bones, ("QUATERNION", "ZXY", "AXIS_ANGLE"), strict=True):
        bone.rotation_mode = mode
    row = made.ccd_rig.constraints.add()
    row.name, row.tip, row.chain_length = "Hand", "bone_2", 2
    row.target = rigs.empty("Goal", (1.0, 0.5, 1.5))
    select(ext, made, "bone_0")
    rigs.update()
    return made


def turn(degrees, axis="X"):
    return Quaternion([float(axis == each) for each in "XYZ"], math.radians(degrees))


def same(one, other):
    return one.rotation_difference(other).angle < 1e-4 or one.rotation_difference(-other).angle < 1e-4


def stored(library, name="Rig"):
    return library.entries(bpy.data.objects[name])


def read(rig):
    """What the bones' channels mean, whatever their modes."""
    return {bone.name: bone.matrix_basis.to_quaternion() for bone in rig.pose.bones}


def key(rig, bone, frame, rotation):
    """Turn a bone and key its own channel."""
    pose_bone = rig.pose.bones[bone]
    rigs.set_rotation(pose_bone, rotation)
    modes = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    pose_bone.keyframe_insert(modes.get(pose_bone.rotation_mode, "rotation_euler"), frame=frame)
