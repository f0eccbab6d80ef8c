"""A bake gives items all the while, whatever it is about, and ends when it is closed."""

from __future__ import annotations

import threading

import bpy
import pytest
import rigs
from rigs import keyed, reach

FRAMES = 40


@pytest.fixture
def bake(ext, monkeypatch):
    """With a part of the work for each frame."""
    monkeypatch.setattr(ext.module("ccd_rig.solvers.motion"), "CHUNK_SECONDS", 0.0)
    return ext.module("ccd_rig.blender.bake.bake")


def tail(far, solver):
    """A chain of 40 bones with cones, whose end and middle follow targets that it may not reach."""
    rig = rigs.chain(40, 5.0 / 40)
    rig.ccd_rig.solver.solver = solver
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.3
    for tip, side in (("bone_19", 1.0), ("bone_39", -1.0)):
        path = {f: (far * side * (f % 7) / 3.0, far * (f % 5) / 2.0, 2.0) for f in range(1, FRAMES, 6)}
        reach(rig, tip, keyed(rigs.empty(tip), path), rotation="ORIENTATION")
    return rig


@pytest.mark.mass
@pytest.mark.parametrize("solver", ["CCD_LEAST_SQUARES", "CCD"])
@pytest.mark.parametrize("far", [0.5, 5.0])
def test_items_come_while_frames_are_solved(bake, far, solver):
    """Not only after all of them."""
    rig = tail(far, solver)
    last = FRAMES if solver == "CCD_LEAST_SQUARES" else 3
    settings = bake.BakeSettings(1, last, verify=False)
    items = sum(1 for _ in bake.bake_steps(bpy.context.scene, rig, settings))
    assert items >= 2 * last


@pytest.mark.parametrize(
    ("done", "seconds", "words"),
    [
        (30, 1.5, "frame 30: 30 of 120 solved, about 4 s left"),  # a frame in 50 ms: 90 of them
        (30, 0.2, "frame 30: 30 of 120 solved, about 1 s left"),
        (30, 0.1, "frame 30: 30 of 120 solved"),
        (5, 9.0, "frame 30: 5 of 120 solved"),  # none of them in these seconds
        (120, 60.0, "frame 30: 120 of 120 solved"),  # what misses its goals is tried again
    ],
)
def test_no_time_is_told_where_it_would_be_none(ext, done, seconds, words):
    progress = ext.module("ccd_rig.blender.bake.progress").Progress
    assert progress(30.0, done, 120).words(seconds, before=5 if done == 5 else 0) == words


@pytest.mark.parametrize("solver", ["CCD_LEAST_SQUARES", "CCD"])
def test_frames_count_when_they_are_solved(bake, solver):
    """Not when they are evaluated: out of reach, most of the work comes after that."""
    rig = rigs.chain(12, 0.4)
    rig.ccd_rig.solver.solver, rig.ccd_rig.solver.max_iterations = solver, 40
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.3
    path = {1: (9.0, 0.0, 2.0), 10: (-4.0, 8.0, 1.0), 20: (0.0, -3.0, -8.0)}
    reach(rig, "bone_11", keyed(rigs.empty("Far"), path), rotation="ORIENTATION")
    settings = bake.BakeSettings(1, 20, verify=False)
    items = [item for item in bake.bake_steps(bpy.context.scene, rig, settings) if item.verb == "solved"]
    total = 20
    assert {item.total for item in items} == {total}
    done = [item.done for item in items]
    assert done == sorted(done)
    assert done[-1] == total and len(set(done)) > total // 4


def test_reduction_counts_up_to_its_end_and_no_further(bake):
    settings = bake.BakeSettings(1, FRAMES, verify=False, reduce_error=0.01)
    steps = bake.bake_steps(bpy.context.scene, tail(0.5, "CCD_LEAST_SQUARES"), settings)
    shares = [item.done / item.total for item in steps if item.verb == "reduced"]
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < 0.5 and shares[-1] == 1.0


@pytest.mark.mass
def test_parts_change_no_key(ext, channels, bake, monkeypatch):
    keys = []
    for part in (0.0, 1e9):
        monkeypatch.setattr(ext.module("ccd_rig.solvers.motion"), "CHUNK_SECONDS", part)
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = tail(0.5, "CCD_LEAST_SQUARES")
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, verify=False))
        curves = channels.fcurves_of(rig)
        keys.append([tuple(point.co) for curve in curves for point in curve.keyframe_points])
    assert keys[0] == keys[1]


@pytest.mark.parametrize("solver", ["CCD_LEAST_SQUARES", "CCD"])
def test_closed_in_mid_solve_no_thread_and_no_key_stays(bake, solver):
    rig, threads = tail(5.0, solver), threading.active_count()
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    for _ in range(FRAMES + 5):  # the frames are evaluated: now they are solved
        next(steps)
    steps.close()
    assert threading.active_count() == threads
    assert rig.animation_data is None
