"""Rigs under Blender's own IK, what they play, and what their file holds."""

from __future__ import annotations

import random

import bpy
import numpy as np
import rigs
from mathutils import Quaternion, Vector
from rigs import B

FRAMES = range(1, 13)
CLOSE = 2e-3  # metres: Blender's own IK ends within that of its target


def leg(seed=0):
    """Hips that move, thigh, shin and foot, bent at rest with any roll; the armature stands anywhere."""
    rng = random.Random(seed)
    rig = rigs.armature(
        [
            B("hips", (0, 0, 1.0), (0, 0, 1.2)),
            B("thigh", (0.1, 0, 1.0), (0.1, -0.08, 0.5), "hips", rng.uniform(-3, 3)),
            B("shin", (0.1, -0.08, 0.5), (0.1, 0, 0.05), "thigh", rng.uniform(-3, 3), connect=True),
            B("foot", (0.1, 0, 0.05), (0.1, -0.15, 0), "shin", connect=True),
        ]
    )
    rig.location, rig.scale = (1.0, 2.0, 0.0), (1.5, 1.5, 1.5)
    rig.rotation_mode, rig.rotation_quaternion = "QUATERNION", rigs.random_rotation(rng)
    hips = rig.pose.bones["hips"]
    for frame in (FRAMES[0], FRAMES[-1]):
        hips.rotation_mode, hips.rotation_euler = "XYZ", [rng.uniform(-0.2, 0.2) for _ in range(3)]
        hips.keyframe_insert("rotation_euler", frame=frame)
    rigs.update()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    return rig


def keyed(name, rig, *places):
    """An empty that goes from place to place of armature space."""
    made = rigs.empty(name)
    made.rotation_mode = "QUATERNION"
    for k, place in enumerate(places):
        frame = FRAMES[0] + k * (len(FRAMES) - 1) / max(len(places) - 1, 1)
        made.location = rig.matrix_world @ Vector(place)
        made.rotation_quaternion = Quaternion((0.3, 1.0, 0.2), 0.4 * k)
        made.keyframe_insert("location", frame=frame)
        made.keyframe_insert("rotation_quaternion", frame=frame)
    return made


def ik(rig, bone, target, count=2, **fields):
    made = rig.pose.bones[bone].constraints.new("IK")
    made.target, made.chain_count = target, count
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def converted(rig, **options):
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_convert(**options) == {"FINISHED"}
    return list(rig.ccd_rig.constraints)


def played(rig, see):
    """What `see` sees of the evaluated rig at each frame."""
    found = []
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        found.append(see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get())))
    return np.array(found)


def places(*names):
    """Heads and tails of bones in the world."""

    def see(rig):
        bones = [rig.pose.bones[name] for name in names]
        return [tuple(rig.matrix_world @ end) for bone in bones for end in (bone.head, bone.tail)]

    return see


SPOTS = ((0.1, -0.3, 0.25), (0.2, 0.2, 0.2), (0.0, -0.1, 0.35))


def everything(rig):
    """Constraints of all bones with their values, curves, drivers and objects of the file."""
    found = [
        (bone.name, c.name, c.mute, c.influence, getattr(c, "chain_count", 0), getattr(c, "target", None))
        for bone in rig.pose.bones
        for c in bone.constraints
    ]
    animation = rig.animation_data
    action = animation.action
    curves = [(c.data_path, c.array_index) for c in animation.drivers]
    names = [sorted(each.name for each in data) for data in (bpy.data.objects, bpy.data.collections)]
    return found, curves, action.name, names, len(rig.ccd_rig.constraints)


def snake():
    """Eight bones along X under a Spline IK, and its curve."""
    rig = rigs.armature(
        [
            B(
                f"tail_{i}",
                (0.3 * i, 0, 0),
                (0.3 * i + 0.3, 0, 0),
                f"tail_{i - 1}" if i else "",
                connect=i > 0,
            )
            for i in range(8)
        ]
    )
    data = bpy.data.curves.new("Path", "CURVE")
    data.dimensions = "3D"
    spline = data.splines.new("BEZIER")
    spline.bezier_points.add(2)
    for point, place in zip(
        spline.bezier_points, ((0, 0, 0), (1.2, 0.5, 0.2), (2.3, -0.2, 0.6)), strict=True
    ):
        point.co, point.handle_left_type, point.handle_right_type = place, "AUTO", "AUTO"
    curve = bpy.data.objects.new("Path", data)
    bpy.context.scene.collection.objects.link(curve)
    made = rig.pose.bones["tail_7"].constraints.new("SPLINE_IK")
    made.target, made.chain_count, made.y_scale_mode, made.use_curve_radius = curve, 8, "NONE", False
    rigs.update()
    return rig, curve
