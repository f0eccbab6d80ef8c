# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at what was keyed, as Blender plays it: do feet stay, is it smooth, do limits and report hold."""

from __future__ import annotations

from dataclasses import dataclass
from math import degrees

import bpy
import numpy as np
from mathutils import Quaternion, Vector
from walk import Array, Motion

from ccd_rig.blender.bake.report import BakeReport
from ccd_rig.blender.properties import constraint_kinds, joints
from ccd_rig.limits.shapes import violation
from ccd_rig.maths.rotations import angle_of

PLAYED = 1e-4  # radians: keys and evaluated matrices are float32


@dataclass(frozen=True)
class Findings:
    """What the keys do.

    Attributes:
        slide: how far the ball of a foot moves within one stance, metres. slide_where: foot and frame.
        turn: largest turn of a bone from one frame to the next, degrees. turn_where: bone and frame.
        broken: rotations outside their limit by more than float32 rounding, over all bones and frames.
        disagreement: largest difference between a played and a reported distance from the target, metres.
    """

    slide: float
    slide_where: str
    turn: float
    turn_where: str
    broken: int
    disagreement: float


def inspect(rig: bpy.types.Object, motion: Motion, report: BakeReport) -> Findings:
    """Play all frames and look."""
    scene = bpy.context.scene
    limited = [bone for bone in rig.pose.bones if bone.ccd_rig.limit.kind != "NONE"]
    settings = joints.joint_settings(rig, [bone.name for bone in limited])
    constraints = {row.name: row for row in constraint_kinds.constraints(rig)}
    reported = {(row.frame, row.constraint): row.keyed_residual for row in report.entries}
    feet: dict[str, list[Vector]] = {side: [] for side in motion.feet}
    before: dict[str, Quaternion] = {}
    turn, turn_where, broken, disagreement = 0.0, "", 0, 0.0
    for frame in range(report.frame_start, report.frame_end + 1):
        scene.frame_set(frame)
        played = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        for bone in limited:
            rotation = played.pose.bones[bone.name].matrix_basis.to_quaternion()
            broken += violation(settings[bone.name]["limit"], rotation) > PLAYED
            if bone.name in before:
                angle = angle_of(before[bone.name].rotation_difference(rotation))
                if angle > turn:
                    turn, turn_where = angle, f"{bone.name}, frame {frame}"
            before[bone.name] = rotation
        for name, constraint in constraints.items():
            tip = played.pose.bones[constraint.tip]
            point = played.matrix_world @ (tip.tail if constraint.use_tail else tip.head)
            target = bpy.data.objects[constraint.target].matrix_world.translation
            disagreement = max(disagreement, abs((point - target).length - reported[frame, name]))
        for side, places in feet.items():
            places.append(played.pose.bones[f"foot.{side}"].tail.copy())
    slide, slide_where = 0.0, ""
    for side, places in feet.items():
        found, frame = _slide(np.array(places), motion.feet[side].planted, motion.frames)
        if found >= slide:
            slide, slide_where = found, f"foot.{side}, frame {frame:g}"
    return Findings(slide, slide_where, degrees(turn), turn_where, broken, disagreement)


def _slide(places: Array, planted: Array, frames: Array) -> tuple[float, float]:
    """The longest way over the ground from where a stance began, and its frame."""
    worst, at = 0.0, float(frames[0])
    origin = None
    for place, down, frame in zip(places, planted, frames, strict=True):
        if not down:
            origin = None
            continue
        origin = place if origin is None else origin
        moved = float(np.hypot(*(place - origin)[:2]))
        if moved > worst:
            worst, at = moved, float(frame)
    return worst, at
