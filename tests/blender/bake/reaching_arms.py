"""Arms that reach for moving targets, and what plays of them."""

from __future__ import annotations

import math

import bpy
import numpy as np
import rigs
from mathutils import Vector
from playing import play, rotations

FLOAT32 = 2e-6  # one rounded operation on numbers near 1
SOLVE = 1e-4  # the solver's own tolerance, metres
PLAYED = 1e-4  # metres: 20 float32 bones end to end, evaluated by Blender


# --- set-ups ------------------------------------------------------------------------------------------------


def key_location(thing, points, first=1, gap=5):
    """Key a path: one point every `gap` frames."""
    for i, point in enumerate(points):
        thing.location = point
        thing.keyframe_insert("location", frame=first + gap * i)
    rigs.update()


def circle(centre, radius, count=13):
    """Points around a tilted circle, one turn."""
    turns = [math.tau * i / (count - 1) for i in range(count)]
    c = Vector(centre)
    return [c + radius * Vector((math.cos(t), math.sin(t), 0.4 * math.sin(2 * t))) for t in turns]


def arm(count=20, length=0.25, **fields):
    """A chain of `count` bones and a target on a circle within its reach, for 60 frames."""
    rig = rigs.chain(count, length)
    target = rigs.empty("Target")
    reach = count * length
    key_location(target, circle((0.08 * reach, 0.06 * reach, 0.5 * reach), 0.3 * reach))
    rigs.reach(rig, f"bone_{count - 1}", target, "Hand", **fields)
    bpy.context.scene.frame_set(1)
    return rig, target


# --- reading what plays -------------------------------------------------------------------------------------


def played_residual(rig, row, evaluated, depsgraph):
    """World metres between tip and target, as Blender plays them."""
    bone = evaluated.pose.bones[row.tip]
    tip = evaluated.matrix_world @ (bone.tail if row.use_tail else bone.head)
    target = row.target.evaluated_get(depsgraph).matrix_world
    if row.target_bone:
        target = target @ row.target.evaluated_get(depsgraph).pose.bones[row.target_bone].matrix
    return (tip - target @ Vector(row.offset)).length


def assert_report_is_what_plays(rig, report, tolerance=PLAYED):
    rows = {row.name: row for row in rig.ccd_rig.constraints}
    by_frame = {}
    for row in report.entries:
        by_frame.setdefault(row.frame, []).append(row)
    for frame, evaluated, depsgraph in play(rig, by_frame):
        for row in by_frame[frame]:
            residual = played_residual(rig, rows[row.constraint], evaluated, depsgraph)
            assert abs(residual - row.keyed_residual) < tolerance, (frame, row, residual)


def baked(bake, rig, first, last, **settings):
    """The report, and (F, B, 4) the rotations that play; then bones are at rest, without keys."""
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(first, last, **settings))
    if report.check is not None:
        assert_report_is_what_plays(rig, report)
    played = rotations(rig, range(first, last + 1))
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.rotation_quaternion = (1, 0, 0, 0)
    rigs.update()
    return report, played


def keys_of(channels, rig):
    """{(data path, index): (K, 2) keys} of the object's action."""
    found = {}
    for curve in channels.fcurves_of(rig):
        values = np.empty(2 * len(curve.keyframe_points), np.float32)
        curve.keyframe_points.foreach_get("co", values)
        found[curve.data_path, curve.array_index] = values.reshape(-1, 2)
    return found


def keyed_quaternions(channels, rig, bone):
    """(frames, (K, 4)) of a bone in quaternion mode."""
    path = f'pose.bones["{bone}"].rotation_quaternion'
    keys = keys_of(channels, rig)
    columns = [keys[path, i] for i in range(4)]
    return columns[0][:, 0], np.stack([column[:, 1] for column in columns], axis=1).astype(np.float64)
