"""Legs with knees that roll, for the tests of coupled offsets."""

from __future__ import annotations

import numpy as np
import rigs
from mathutils import Euler, Matrix

REACHED = 1e-4  # [m]
FLOAT32 = 2e-6  # of a location around 1
FRAMES = 9
ANGLES = (-0.3, 0.6, 1.2, 2.2)
DOWN, BACK = 0.03, -0.02  # [m per rad^2] of the knee's parabolas along its own Y and Z


def roll(bone, axis, factor, driver=""):
    """Lets a bone shift by factor * angle^2 along an axis of its location."""
    row = bone.ccd_rig.coupled_offsets.add()
    row.driver, row.axis, row.use_slopes = driver, axis, True
    for angle in reversed(ANGLES):  # in any order
        point = row.points.add()
        point.angle, point.shift, point.slope = angle, factor * angle**2, 2.0 * factor * angle
    return row


def hinge(bone, lower, upper):
    limit = bone.ccd_rig.limit
    limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", (1, 0, 0), lower, upper


def leg(rolls=True):
    """Hips that slide freely, a thigh like a ball, a knee that rolls, a foot."""
    rig = rigs.armature(
        [
            rigs.B("hips", (0, 0, 1.0), (0, 0, 1.2)),
            rigs.B("thigh", (0.1, 0, 1.0), (0.1, 0.02, 0.55), "hips"),
            rigs.B("shin", (0.1, 0.02, 0.55), (0.1, 0, 0.1), "thigh", roll=0.1),
            rigs.B("foot", (0.1, 0, 0.1), (0.1, -0.2, 0.0), "shin"),
        ]
    )
    hinge(rig.pose.bones["shin"], -0.2, 2.0)
    hinge(rig.pose.bones["foot"], -0.8, 0.8)
    hips = rig.pose.bones["hips"].ccd_rig
    hips.use_slide, hips.slide_lower, hips.slide_upper = (True,) * 3, (-1.0,) * 3, (1.0,) * 3
    if rolls:
        roll(rig.pose.bones["shin"], (0, 1, 0), DOWN)
        roll(rig.pose.bones["shin"], (0, 0, 1), BACK)
    return rig


def pose(rig, k):
    """A pose of the leg that the knee's parabolas allow; the angle of the knee."""
    knee = 0.3 + 0.15 * k
    bones = rig.pose.bones
    for name, angles in (
        ("hips", (0.1 * k, 0.05, -0.04 * k)),
        ("thigh", (-0.1 * k, 0.1, 0.03 * k)),
        ("shin", (knee, 0, 0)),
        ("foot", (0.3 - 0.08 * k, 0, 0)),
    ):
        rigs.set_rotation(bones[name], Euler(angles).to_quaternion())
    bones["hips"].location = (0.02 * k, -0.03, 0.01 * k)
    bones["shin"].location = (0, DOWN * knee**2, BACK * knee**2)
    rigs.update()
    return knee


def keys_of(channels, rig, bone, channel):
    path = f'pose.bones["{bone}"].{channel}'
    curves = {c.array_index: c for c in channels.fcurves_of(rig) if c.data_path == path}
    return np.array([[point.co[1] for point in curves[i].keyframe_points] for i in sorted(curves)]).T


def knee_angles(channels, rig, bone="shin"):
    keys = keys_of(channels, rig, bone, "rotation_quaternion")
    return 2.0 * np.arctan2(keys[:, 1], keys[:, 0])


def bend(rig, points=(), **fields):
    """The foot follows an animated target: through points, or where known poses of the leg have its tip."""
    points = points or [tip_of_pose(rig, k) for k in (0, 4, 8)]
    target = rigs.keyed(rigs.empty("Goal"), {1 + 4 * k: point for k, point in enumerate(points)})
    row = rigs.reach(rig, "foot", target, "Foot", **fields)
    rigs.update()
    return row


def tip_of_pose(rig, k):
    """Where a pose of the leg below the hips has the foot's tip; the leg stays as it was."""
    before = [bone.matrix_basis.copy() for bone in rig.pose.bones]
    pose(rig, k)
    rig.pose.bones["hips"].matrix_basis = Matrix()
    rigs.update()
    tip = rig.matrix_world @ rig.pose.bones["foot"].tail
    for bone, matrix in zip(rig.pose.bones, before, strict=True):
        bone.matrix_basis = matrix
    rigs.update()
    return tip


def kneecap(rig):
    """A bone below the shin that moves along its Z as the knee bends, and is in no chain."""
    with rigs.edit_bones(rig) as bones:
        cap = bones.new("cap")
        cap.head, cap.tail, cap.parent = (0.1, -0.04, 0.5), (0.1, -0.04, 0.4), bones["shin"]
    roll(rig.pose.bones["cap"], (0, 0, 1), 0.05, "shin")
    rigs.update()
