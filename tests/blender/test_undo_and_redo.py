"""Undo takes back what the operators do, and redo brings it again."""

from __future__ import annotations

import bpy
import pytest
from operator_calls import (
    add,
    both_ways,
    frames_with_keys,
    listed,
    pose,
    posed_chain,
    undo_push,
    with_moving_target,
)


@pytest.fixture
def rig(ext):
    return posed_chain(ext)


@pytest.fixture
def moving(rig):
    return with_moving_target(rig)


def test_undo_of_add_move_and_remove(rig):
    def state():
        return listed(), sorted(bpy.data.objects.keys()), bpy.context.mode

    undo_push()
    for operator, options in (
        (bpy.ops.ccd_rig.constraint_add, {}),
        (bpy.ops.ccd_rig.constraint_add, {}),
        (bpy.ops.ccd_rig.constraint_move, {"direction": "UP"}),
        (bpy.ops.ccd_rig.constraint_remove, {}),
    ):
        before = state()
        operator(**options)
        undo_push()
        both_ways(before, state(), state)


def test_undo_of_solve(rig):
    add(rig)
    undo_push()
    before = pose()
    bpy.ops.ccd_rig.solve()
    undo_push()
    both_ways(before, pose(), pose)


def test_undo_of_bake(ext, moving):
    def state():
        rig = bpy.data.objects["Rig"]
        keys = frames_with_keys(ext, rig) if rig.animation_data else []
        return keys, rig.ccd_rig.report.words, len(bpy.data.actions)

    undo_push()
    before = state()
    bpy.ops.ccd_rig.bake(smoothness=0.0)
    undo_push()
    both_ways(before, state(), state)


def test_undo_of_go_to_frame(moving):
    bpy.ops.ccd_rig.bake(smoothness=0.0)
    moving.ccd_rig.report.worst_frame = 7
    bpy.context.scene.frame_set(3)
    undo_push()
    bpy.ops.ccd_rig.go_to_frame()
    undo_push()
    both_ways(3, 7, lambda: bpy.context.scene.frame_current)
