"""What solves and bakes start again from: the poses of the library."""

from __future__ import annotations

import json
import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion
from operator_calls import select

SOLVE = 1e-3  # [m]
ROUNDING = 1e-5
"""Of quaternions of the same nearest pose, reached from two starts."""
AXES = ((1, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 0))
RANGES = ((-1.7, 0.9), (-2.4, 1.0), (-1.3, 1.2), (-0.5, 1.9))  # [radians]
ANGLES = (-1.46, 0.75, 1.19, 1.43)  # [radians] one way to reach BEHIND
BEHIND = (-0.344, 1.203, 1.569)  # [m] a solve that starts at rest ends in a corner of the limits


@pytest.fixture
def stuck(ext):
    """Four hinges at rest, a target that they reach only from elsewhere, and no other starts yet."""
    made = rigs.chain(4)
    made.ccd_rig.solver.restarts = 0
    for bone, axis, (lower, upper) in zip(made.pose.bones, AXES, RANGES, strict=True):
        limit = bone.ccd_rig.limit
        limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", axis, lower, upper
    row = made.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Hand", "bone_3", rigs.empty("Goal", BEHIND)
    rigs.activate(made)
    rigs.update()
    return made


def capture_near(rig, off=0.1):
    """A pose near to one that reaches the target; the bones are at rest again."""
    for i, (axis, angle) in enumerate(zip(AXES, ANGLES, strict=True)):
        rigs.set_rotation(rig.pose.bones[f"bone_{i}"], Quaternion(axis, angle + off))
    bpy.ops.ccd_rig.pose_capture(name="Near")
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, Quaternion())
    rigs.update()


def distance(rig):
    rigs.update()
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return (evaluated.pose.bones["bone_3"].tail - bpy.data.objects["Goal"].matrix_world.translation).length


def rest(rig):
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, Quaternion())
    rigs.update()


def test_solve_starts_again_from_the_library(stuck):
    for restarts, captured, arrives in (
        (0, False, False),
        (1, False, False),
        (0, True, False),
        (1, True, True),
    ):
        rest(stuck)
        if captured and not stuck.ccd_rig.poses:
            capture_near(stuck)
        stuck.ccd_rig.solver.restarts = restarts
        bpy.ops.ccd_rig.solve()
        assert (distance(stuck) < SOLVE) == arrives, (restarts, captured, distance(stuck))


def test_the_nearest_poses_come_first(stuck):
    """Of five poses only the one that is nearest to the target is tried, wherever it stands in the list."""
    capture_near(stuck)
    for degrees in (10, 20, 30, 40):
        for bone, axis in zip(stuck.pose.bones, AXES, strict=True):
            rigs.set_rotation(bone, Quaternion(axis, math.radians(degrees)))
        bpy.ops.ccd_rig.pose_capture()
    rest(stuck)
    stuck.ccd_rig.solver.restarts = 1
    bpy.ops.ccd_rig.solve()
    assert distance(stuck) < SOLVE


def test_poses_of_other_chains_are_no_starts(ext, stuck):
    """They would use up the only start there is."""
    with rigs.edit_bones(stuck) as bones:
        other = bones.new("tail")
        other.head, other.tail = (5, 0, 0), (6, 0, 0)
    select(ext, stuck, "tail")
    bpy.ops.ccd_rig.pose_capture(bones="SELECTED", name="Tail")
    capture_near(stuck)
    stuck.ccd_rig.solver.restarts = 1
    bpy.ops.ccd_rig.solve()
    assert distance(stuck) < SOLVE


def baked(rig, ext, first=1, last=8, **options):
    bake = ext.module("ccd_rig.blender.bake.bake")
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(first, last, **options))


def poses_of(rig, frames):
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append([tuple(bone.matrix_basis.to_quaternion()) for bone in rig.pose.bones])
    return found


@pytest.fixture
def approaching(stuck):
    """The target goes in one frame from beside the chain's rest to where a following chain gets stuck."""
    goal = bpy.data.objects["Goal"]
    for frame, place in ((1, (0.3, 0.4, 3.5)), (2, BEHIND)):
        goal.location = place
        goal.keyframe_insert("location", frame=frame)
    return stuck


def test_a_bakes_first_frame_starts_from_the_library(ext, stuck):
    assert baked(stuck, ext).unsolved_count() == 8
    stuck.animation_data_clear()
    rest(stuck)
    capture_near(stuck)
    stuck.ccd_rig.solver.restarts = 1
    report = baked(stuck, ext)
    assert report.unsolved_count() == 0
    frames = np.array(poses_of(stuck, range(1, 9)))
    assert np.abs(frames - frames[0]).max() < ROUNDING  # it is followed, not solved anew


def test_a_bake_that_stalls_starts_again(ext, approaching):
    missed = {row.frame for row in baked(approaching, ext).unsolved()}
    assert missed == set(range(2, 9))
    approaching.animation_data_clear()
    capture_near(approaching, 0.0)
    approaching.ccd_rig.solver.restarts = 1
    report = baked(approaching, ext)
    assert report.unsolved_count() == 0
    assert {row.status for row in report.entries} == {"CONVERGED"}
    frames = np.array(poses_of(approaching, range(2, 9)))
    assert np.abs(frames - frames[0]).max() < ROUNDING  # once there it is followed


def test_a_bake_never_jumps_without_arriving(ext, approaching):
    """Starts that do not reach the target change no frame that follows another."""
    baked(approaching, ext)
    before = poses_of(approaching, range(1, 9))
    approaching.animation_data_clear()
    rest(approaching)
    bpy.ops.ccd_rig.pose_capture(name="Rest")
    approaching.ccd_rig.solver.restarts = 1
    report = baked(approaching, ext)
    assert report.unsolved_count() == 7
    assert poses_of(approaching, range(1, 9)) == before


def test_the_command_line_bakes_with_the_library(cli, stuck, tmp_path):
    capture_near(stuck)
    stuck.ccd_rig.solver.restarts = 1
    shot, report = tmp_path / "shot.blend", tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    words = ["bake", str(shot), "--frames", "1-3", "--report", str(report), "--strict"]
    assert cli.main(words) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["frames_reached"] == 3
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    bpy.data.objects["Rig"].ccd_rig.poses.clear()
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    assert cli.main(words) == 3
