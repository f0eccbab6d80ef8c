"""Bipeds whose body keeps its animation, and what of them must stay."""

from __future__ import annotations

import math

import numpy as np
import rigs
from mathutils import Euler, Matrix, Vector
from planted import angle, biped, constrain, key_influence, keyed_empty

SLIP = 1e-3  # [m] what a planted bone may slide
KEPT = 1e-4  # of F-curves that should stay
FRAMES = range(1, 49)
STEP = 12
STRIDE = 0.15  # [m] between one foot's place and the other's


def bobbing(place=Matrix()):  # noqa: B008  (a matrix is not changed)
    """The biped, hips keyed along -Y with bobs; feet planted by turns, with controllers while they swing."""
    rig = biped()
    rig.matrix_world = place
    hips = rig.pose.bones["hips"]
    for frame in FRAMES:
        phase = 2.0 * math.pi * (frame - 1) / STEP
        # Along the bone is up; its Z is the world's -Y.
        hips.location = (
            0.02 * math.sin(phase / 2),
            -0.12 + 0.02 * math.cos(phase),
            STRIDE / STEP * (frame - 1),
        )
        hips.rotation_quaternion = Euler(
            (0.03 * math.cos(phase), 0.08 * math.sin(phase / 2), 0)
        ).to_quaternion()
        hips.keyframe_insert("location", frame=frame)
        hips.keyframe_insert("rotation_quaternion", frame=frame)
    for k, (side, x) in enumerate((("L", 0.1), ("R", -0.1))):
        spans = spans_of(side)
        plant = constrain(rig, "PLANT", f"foot.{side}", f"Plant {side}", chain_length=4)
        key_influence(plant, spans, FRAMES)
        places = [(1, (x, 0.02, 0.08))]
        for first in range(1 + STEP * (1 - k), 49, 2 * STEP):  # it swings while the other one stands
            along = 0.02 - STRIDE / STEP * (first - 1)
            low = Vector((x, along + STRIDE / 2 if first > 1 else along, 0.08))
            places += [(first + 2, low), (first + STEP // 2, low + Vector((0, -STRIDE, 0.08)))]
            places.append((first + STEP, low + Vector((0, -2 * STRIDE, 0))))
        target = keyed_empty(f"Foot {side}", [(f, place @ Vector(p)) for f, p in places])
        flat = rig.data.bones[f"foot.{side}"].matrix_local.to_3x3().to_4x4()
        target.rotation_euler = (place @ flat).to_euler()
        constrain(
            rig, "REACH", f"foot.{side}", f"Swing {side}", target, 3, use_tail=False, rotation="ORIENTATION"
        )
    rigs.update()
    return rig


def spans_of(side):
    """Frames in which a foot stands: by turns, two frames on both."""
    return [(a, a + STEP + 1) for a in range(1 + (STEP if side == "R" else 0), 49, 2 * STEP)]


def curves_of(ext, rig, bone, frames):
    """{(path, component): (F,) values} of a bone's own F-curves."""
    start = f'pose.bones["{bone}"].'
    return {
        (curve.data_path, curve.array_index): np.array([curve.evaluate(frame) for frame in frames])
        for curve in ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)
        if curve.data_path.startswith(start)
    }


def assert_held(seen, frames, spans, slip=SLIP):
    for a, b in spans:
        stand = [m for m, f in zip(seen, frames, strict=True) if a <= f <= b]
        for matrix in stand:
            assert np.linalg.norm(matrix[:3, 3] - stand[0][:3, 3]) < slip, (a, b)
            assert angle(matrix, stand[0]) < 5e-3, (a, b)


def leaning(lean=0.5, last=60, **fields):
    """On both feet, hips keyed that go up and away from frame 21 to 30 and back until 40."""
    rig = biped()
    hips = rig.pose.bones["hips"]
    for frame, up, along in (
        (1, -0.1, 0.0),
        (20, -0.1, 0.0),
        (30, 0.05, lean),
        (40, -0.1, 0.0),
        (last, -0.1, 0.0),
    ):
        hips.location = (0.0, up, along)
        hips.keyframe_insert("location", frame=frame)
    for side in "LR":
        constrain(rig, "PLANT", f"foot.{side}", f"Plant {side}", chain_length=4, **fields)
    rigs.update()
    return rig
