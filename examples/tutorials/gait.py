# SPDX-License-Identifier: GPL-3.0-or-later
"""A walk by keys on all bones of Rigify's human, as an animator or a capture brings it: feet that slide."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, sin

import bpy
import common
import numpy as np
from mathutils import Vector

PERIOD = 26  # frames of two steps
# Degrees at tenths of the cycle from heel strike on; flexion is above 0. Rounded curves of normal gait.
HIP = (28, 26, 18, 8, -2, -10, -6, 8, 22, 29, 28)
KNEE = (6, 16, 14, 9, 6, 14, 38, 58, 44, 12, 6)
ANKLE = (2, -4, 3, 6, 9, 8, -14, -6, 1, 3, 2)
BALL_LIFTS = (0, 0, 0, 0, 6, 22, 20, 4, 0, 0, 0)  # of the toes against the foot


def key_walk(rig: bpy.types.Object, first: int, last: int, speed: float) -> None:
    """Key a walk at each frame.

    Args:
        rig: Rigify's human metarig, looking along -Y.
        first: frame with the left heel's strike.
        last: frame.
        speed: of the hips to the front, metres per frame; 0 is a walk in place.
    """
    hips = rig.pose.bones["spine"]
    common.lower_arms(rig, first)
    for frame in range(first, last + 1):
        phase = (frame - first) / PERIOD
        for side, shift in (("L", 0.0), ("R", 0.5)):
            _leg(rig, side, (phase + shift) % 1.0, frame)
            _arm(rig, side, (phase + shift) % 1.0, frame)
        yaw = 5.0 * sin(2.0 * pi * phase)
        common.key(hips, "rotation_quaternion", {frame: common.turn(hips, ("Z", yaw), ("X", 2.0))})
        chest = rig.pose.bones["spine.002"]
        common.key(chest, "rotation_quaternion", {frame: common.turn(chest, ("Z", -1.6 * yaw))})
        hips.location = (0.0, 0.0, 0.0)
        bpy.context.view_layer.update()
        way = Vector((0.015 * sin(2.0 * pi * phase), -speed * (frame - first), -_lowest(rig)))
        common.key(hips, "location", {frame: hips.bone.matrix_local.to_3x3().inverted() @ way})


def _leg(rig: bpy.types.Object, side: str, phase: float, frame: int) -> None:
    turns = (("thigh", -_at(HIP, phase)), ("shin", _at(KNEE, phase)), ("foot", -_at(ANKLE, phase)))
    for name, angle in (*turns, ("toe", -_at(BALL_LIFTS, phase))):
        bone = rig.pose.bones[f"{name}.{side}"]
        common.key(bone, "rotation_quaternion", {frame: common.turn(bone, ("X", angle))})


def _arm(rig: bpy.types.Object, side: str, phase: float, frame: int) -> None:
    sign, swing = (1.0 if side == "L" else -1.0), 20.0 * cos(2.0 * pi * phase)
    arm, forearm = rig.pose.bones[f"upper_arm.{side}"], rig.pose.bones[f"forearm.{side}"]
    turned = common.turn(arm, ("Y", sign * 48.0), ("X", 8.0 + swing))
    common.key(arm, "rotation_quaternion", {frame: turned})
    common.key(forearm, "rotation_quaternion", {frame: common.turn(forearm, ("X", -22.0 + 0.5 * swing))})


def _at(table: Sequence[float], phase: float) -> float:
    """The value of a cycle between its tenths, smoothly."""
    values = np.array(table[:-1], dtype=float)
    waves = np.fft.rfft(values) / len(values)
    turns = np.exp(2j * pi * phase * np.arange(len(waves)))
    weights = np.where((np.arange(len(waves)) == 0) | (np.arange(len(waves)) == len(values) // 2), 1.0, 2.0)
    return float((weights * (waves * turns).real).sum())


def _lowest(rig: bpy.types.Object) -> float:
    """Height of the lowest point of the feet, below which the ground begins."""
    heights = []
    for side in "LR":
        bones = rig.pose.bones
        soles = ((bones[f"toe.{side}"].head.z, 0.02), (bones[f"toe.{side}"].tail.z, 0.02))
        heights += [height - rest for height, rest in soles]
        heights.append(0.5 * (bones[f"heel.02.{side}"].head.z + bones[f"heel.02.{side}"].tail.z))
    return min(heights)
