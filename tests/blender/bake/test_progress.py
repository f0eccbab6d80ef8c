"""A bake gives an item often enough for Esc, whatever it is about, and ends when it is closed."""

from __future__ import annotations

import threading
import time

import bpy
import pytest
import rigs
from rigs import keyed, reach

FRAMES = 300
GAP = 0.4  # [s] of processor time; the operator looks at the keyboard every 0.2 s


@pytest.fixture
def bake(ext):
    return ext.module("ccd_rig.blender.bake.bake")


def tail(far, solver):
    """A chain of 60 bones with cones, whose end and middle follow targets that it may not reach."""
    rig = rigs.chain(60, 5.0 / 60)
    rig.ccd_rig.solver.solver = solver
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.3
    for tip, side in (("bone_29", 1.0), ("bone_59", -1.0)):
        path = {f: (far * side * (f % 7) / 3.0, far * (f % 5) / 2.0, 2.0) for f in range(1, FRAMES, 20)}
        reach(rig, tip, keyed(rigs.empty(tip), path), rotation="ORIENTATION")
    return rig


@pytest.mark.parametrize("solver", ["CCD_LEAST_SQUARES", "CCD"])
@pytest.mark.parametrize("far", [0.5, 5.0])
def test_items_come_often(bake, far, solver):
    rig = tail(far, solver)
    last = FRAMES if solver == "CCD_LEAST_SQUARES" else 5
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, last))
    longest, began = 0.0, time.process_time()
    for _ in steps:
        now = time.process_time()
        longest, began = max(longest, now - began), now
    assert max(longest, time.process_time() - began) < GAP


def test_closed_in_mid_solve_no_thread_and_no_key_stays(bake):
    rig, threads = tail(5.0, "CCD_LEAST_SQUARES"), threading.active_count()
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    for _ in range(FRAMES + 5):  # the frames are evaluated: now they are solved
        next(steps)
    began = time.process_time()
    steps.close()
    assert time.process_time() - began < GAP
    assert threading.active_count() == threads
    assert rig.animation_data is None
