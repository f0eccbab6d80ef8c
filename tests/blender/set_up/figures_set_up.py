"""Figures set up in one step, their targets moved, and baked."""

from __future__ import annotations

import bpy
import rigs
from mathutils import Vector

SOLVE = 1e-3  # metres
FRAMES = (1, 5)


def set_up(rig, **choices):
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up(**choices) == {"FINISHED"}
    rigs.update()
    return {row.name: row for row in rig.ccd_rig.constraints}


def move(row, offset):
    """Key a target from where it is to an offset in the world."""
    row.target.keyframe_insert("location", frame=FRAMES[0])
    row.target.location = row.target.location + Vector(offset)
    row.target.keyframe_insert("location", frame=FRAMES[1])


def bake(rig):
    assert bpy.ops.ccd_rig.bake(frame_start=FRAMES[0], frame_end=FRAMES[1]) == {"FINISHED"}
    bpy.context.scene.frame_set(FRAMES[1])
    return rig.evaluated_get(bpy.context.evaluated_depsgraph_get())


def matrices(rig):
    return {bone.name: bone.matrix.copy() for bone in rig.pose.bones}


def target_of(row):
    thing = row.target.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return thing.matrix_world.copy()
