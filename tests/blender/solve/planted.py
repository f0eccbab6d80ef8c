"""Figures with feet to plant, for the tests of planted bones."""

from __future__ import annotations

import math

import bpy
import numpy as np
import playing
import rigs
from mathutils import Euler, Matrix, Vector
from playing import in_world
from rigs import B

STILL = 1e-4  # [m] what a planted bone may slide


def biped():
    """A figure looking along -Y: root on the ground, hips, spine, legs with knees that bend, feet, arms."""
    bones = rigs.trunk(chest=1.5)
    for side, x in (("L", 1), ("R", -1)):
        bones += [
            *rigs.leg(side),
            B(f"arm.{side}", (0.15 * x, 0, 1.45), (0.45 * x, 0, 1.4), "spine"),
            B(f"hand.{side}", (0.45 * x, 0, 1.4), (0.7 * x, 0, 1.4), f"arm.{side}", connect=True),
        ]
    rig = rigs.armature(bones, "Walker")
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    for side in "LR":
        limit(rig, f"thigh.{side}", "EULER", euler_lower=(-1.4, -0.5, -0.5), euler_upper=(1.4, 0.5, 0.5))
        limit(rig, f"shin.{side}", "EULER", euler_lower=(-0.3, 0, 0), euler_upper=(2.4, 0, 0))
        limit(rig, f"foot.{side}", "CONE", cone_radius=1.0)
    return rig


def limit(rig, bone, kind, **fields):
    group = rig.pose.bones[bone].ccd_rig.limit
    group.kind = kind
    for field, value in fields.items():
        setattr(group, field, value)


def constrain(rig, kind, tip, name, target=None, chain_length=0, **fields):
    return rigs.reach(rig, tip, target, name, kind=kind, chain_length=chain_length, **fields)


def key_influence(row, spans, frames):
    """Influence 1 in these spans of frames, both ends included, 0 elsewhere; constant between keys."""
    rig = row.id_data
    for frame in frames:
        row.influence = float(any(a <= frame <= b for a, b in spans))
        row.keyframe_insert("influence", frame=frame)
    rigs.update()
    return rig


def played(rig, bones, frames):
    """(frames, bones, 4, 4) world matrices as Blender plays them."""
    poses = (in_world(rig, frame) for frame in frames)
    return np.array([[pose[bone] for bone in bones] for pose in poses])


def angle(a, b):
    """Between the rotations of two matrices, radians."""
    return playing.angle(Matrix(a), Matrix(b))


def keyed_empty(name, places):
    """An empty with a key per (frame, place); linear in between."""
    return rigs.keyed(rigs.empty(name), dict(places))


WALK = range(1, 73)
STEP = 12


def stances():
    """Frames in which each foot stands: left first, then by turns, two frames on both."""
    left, right = [], []
    for k, first in enumerate(range(1, 73, STEP)):
        (left, right)[k % 2].append((first, first + STEP + 1))
    right.insert(0, (1, 3))
    return {"L": left, "R": right}


def walker(place=Matrix()):  # noqa: B008  (a matrix is not changed)
    """The biped, walking along -Y for 72 frames: planted feet, hips controller, targets of swung feet."""
    rig = biped()
    rig.matrix_world = place
    stride = 0.4
    hips = keyed_empty("Hips", [])
    for frame in (1, 72):
        hips.matrix_world = place @ Matrix.Translation((0, -stride / 2 * (frame - 1) / STEP, 0.86))
        hips.keyframe_insert("location", frame=frame)
    hips.rotation_euler = (place @ Euler((math.pi / 2, 0, 0)).to_matrix().to_4x4()).to_euler()  # upright
    feet = {"L": 0.0, "R": 0.0}
    tracks = {"L": [(1, 0.0, 0.0)], "R": [(1, 0.0, 0.0)]}
    for k, first in enumerate(range(1, 73, STEP)):
        swung = "RL"[k % 2]
        tracks[swung] += [(first + 2, feet[swung], 0.0), (first + 7, None, 0.1)]
        to = -stride / 2 * (k + 1)
        tracks[swung].append((first + STEP, to, 0.0))
        feet[swung] = to
    for side, x in (("L", 0.1), ("R", -0.1)):
        rows = tracks[side]
        places = []
        for i, (frame, y, z) in enumerate(rows):
            along = y if y is not None else (rows[i - 1][1] + rows[i + 1][1]) / 2
            places.append((frame, place @ Vector((x, 0.02 + along, 0.08 + z))))
        target = keyed_empty(f"Foot {side}", places)
        flat = rig.data.bones[f"foot.{side}"].matrix_local.to_3x3().to_4x4()
        target.rotation_euler = (place @ flat).to_euler()
        plant = constrain(rig, "PLANT", f"foot.{side}", f"Plant {side}", chain_length=4)
        key_influence(plant, stances()[side], WALK)
        constrain(
            rig, "REACH", f"foot.{side}", f"Swing {side}", target, 3, use_tail=False, rotation="ORIENTATION"
        )
    constrain(rig, "REACH", "hips", "Hips", hips, 1, use_tail=False, rotation="ORIENTATION")
    rigs.update()
    return rig


def assert_still(seen, frames, spans):
    """The planted feet stay where they are in each span of frames; (F, 2, 4, 4) matrices, left and right."""
    for k, side in enumerate("LR"):
        for a, b in spans[side]:
            stand = [m for m, f in zip(seen[:, k], frames, strict=True) if a <= f <= b]
            for matrix in stand:
                assert np.linalg.norm(matrix[:3, 3] - stand[0][:3, 3]) < STILL, (side, a, b)
                assert angle(matrix, stand[0]) < 1e-3, (side, a, b)


def limits_hold(ext, rig, frames):
    limits, joints = ext.module("ccd_rig.limits.shapes"), ext.module("ccd_rig.blender.properties.joints")
    settings = joints.joint_settings(rig, [bone.name for bone in rig.pose.bones])
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        for bone in rig.pose.bones:
            found = settings[bone.name]["limit"]
            if found is not None:
                assert limits.contains(found, bone.rotation_quaternion, 1e-4), (frame, bone.name)


def standing(hips=(0.0, 0.0, 0.86), rotation="NONE", **fields):
    """The biped on both feet, with a hips controller."""
    rig = biped()
    target = rigs.empty("Hips", hips)
    for side in "LR":
        constrain(rig, "PLANT", f"foot.{side}", f"Plant {side}", chain_length=4)
    constrain(rig, "REACH", "hips", "Hips", target, 1, use_tail=False, rotation=rotation, **fields)
    rigs.update()
    return rig
