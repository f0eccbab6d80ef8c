"""Shots for farm jobs: a chain whose end follows a wandering target, and what is keyed in a file."""

from __future__ import annotations

import math
import random

import bpy
import numpy as np
import rigs


def wander(path, frames, bones=5, seed=1, first=1, loop=False):
    """Save a file whose chain follows a target over a range of frames."""
    bpy.ops.wm.read_homefile(use_empty=True)
    rig, target = rigs.chain(bones, 1.0 / bones), rigs.empty("Target")
    rng = random.Random(seed)
    for frame in range(first, first + frames + 12, 12):
        angle = 2.0 * math.pi * (frame - first) / frames * max(1, frames // 120) + seed
        jitter = (0.0, 0.0) if loop else (rng.uniform(-0.05, 0.05), rng.uniform(-0.1, 0.1))
        target.location = (0.35 * math.sin(angle) + jitter[0], 0.4, 0.45 + jitter[1])
        target.keyframe_insert("location", frame=frame)
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Hand", f"bone_{bones - 1}", target
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = first, first + frames - 1
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def keys_in(path, channels):
    """{(data path, index): (F, 6) keys with both handles} of the rig's action in a file."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    found = {}
    for curve in channels.fcurves_of(bpy.data.objects["Rig"]):
        parts = []
        for name in ("co", "handle_left", "handle_right"):
            values = np.empty(2 * len(curve.keyframe_points), np.float32)
            curve.keyframe_points.foreach_get(name, values)
            parts.append(values.reshape(-1, 2))
        found[curve.data_path, curve.array_index] = np.hstack(parts)
    return found


def same_bits(one, other):
    """Whether the keys of two files are the same to the bit."""
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def largest_angle(one, other):
    """Radians of the largest rotation between the keyed poses of two files."""
    assert one.keys() == other.keys()
    worst = 0.0
    for path in {path for path, _ in one}:
        first, second = (
            np.array([keys[path, k][:, 1] for k in range(4)], dtype=np.float64) for keys in (one, other)
        )
        first, second = (each / np.linalg.norm(each, axis=0) for each in (first, second))
        chords = np.minimum(*(np.linalg.norm(first - sign * second, axis=0) for sign in (1.0, -1.0)))
        worst = max(worst, float((4.0 * np.arcsin(chords / 2.0)).max()))
    return worst
