"""The body helps a figure with planted feet."""

from __future__ import annotations

import bpy
import pytest
import rigs
from helped import FEET, FRAMES, SOLVE, missed, planted, report_of, shift
from operator_calls import bake as press_bake
from operator_calls import set_up, solve
from playing import in_world, largest_turn

PLANTED = 5e-4  # metres
ENDS = (FRAMES[0], FRAMES[-1])
BODY = ("spine", "spine.001", "spine.002", "spine.003", "shoulder.L", "spine.006")
LEGS = ("thigh.L", "shin.L", "thigh.R", "shin.R")


@pytest.mark.parametrize("keeps", [False, True])
def test_spine_and_hips_go_along_and_feet_hold(ext, keeps):
    rig, row = planted(keeps=keeps)
    before = in_world(rig, 1)
    press_bake(*ENDS)
    poses = [in_world(rig, frame) for frame in FRAMES]
    assert missed(rig, row) < SOLVE
    assert max(shift(before, pose, *FEET) for pose in poses) < PLANTED
    assert shift(before, poses[-1], "spine") > 0.02
    assert (poses[-1]["spine.003"].translation - before["spine.003"].translation).y < -0.05
    assert largest_turn(poses, (*BODY, *LEGS)) < 6.0


@pytest.mark.parametrize("keeps", [False, True])
def test_live_solve_and_bake_give_the_same_pose(ext, keeps):
    rig, _row = planted(keeps=keeps)
    bpy.context.scene.frame_set(FRAMES[-1])
    rig.ccd_rig.live = True
    rigs.update()
    live = in_world(rig, FRAMES[-1])
    rig.ccd_rig.live = False
    solved = []
    for _ in range(2):
        solve()
        solved.append(in_world(rig))
    press_bake(*ENDS)
    assert largest_turn([live, solved[0]]) < 0.5
    assert largest_turn(solved) < 1e-2
    assert largest_turn([solved[1], in_world(rig, FRAMES[-1])]) < 0.5


@pytest.mark.parametrize("keeps", [False, True])
def test_a_second_bake_gives_the_same_and_the_body_returns_with_the_target(ext, keeps):
    rig, row = planted(keeps=keeps)
    before = in_world(rig, 1)
    press_bake(*ENDS)
    first = in_world(rig, FRAMES[-1])
    press_bake(*ENDS)
    assert largest_turn([first, in_world(rig, FRAMES[-1])]) < 1e-2
    row.target.animation_data_clear()
    rigs.put(row.target, before[row.tip].translation)
    press_bake(*ENDS)
    assert shift(before, in_world(rig, FRAMES[-1]), "spine", "spine.003", *FEET) < SOLVE


def test_keys_that_were_edited_are_the_animation_that_the_body_keeps(ext, channels):
    rig, _row = planted(keeps=True)
    press_bake(*ENDS)
    start = ext.module("ccd_rig.blender.bake.start")
    assert start.has_helped_keys(rig, "spine")
    curve = next(c for c in channels.fcurves_of(rig) if c.data_path == 'pose.bones["spine"].location')
    curve.keyframe_points[3].co.y += 0.02
    assert not start.has_helped_keys(rig, "spine")


def test_the_body_goes_back_with_solve(ext):
    rig, row = planted(keeps=True)
    before = in_world(rig, 1)
    bpy.context.scene.frame_set(FRAMES[-1])
    solve()
    row.target.animation_data_clear()
    rigs.put(row.target, before[row.tip].translation)
    solve()
    assert shift(before, in_world(rig), "spine") < SOLVE


def test_a_swinging_foot_goes_on_its_way(ext):
    """A foot that is planted in the first half alone is where it is without help."""
    seen = []
    for helps in (False, True):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig, row = planted(keeps=True)
        rig.ccd_rig.body_helps = helps
        plant = rig.ccd_rig.constraints["foot.L"]
        for frame, influence in ((12, 1.0), (13, 0.0)):
            plant.influence = influence
            plant.keyframe_insert("influence", frame=frame)
        thigh = rig.pose.bones["thigh.L"]
        for frame, angle in ((1, 0.0), (13, 0.0), (25, -0.6)):
            thigh.rotation_mode = "XYZ"
            thigh.rotation_euler.x = angle
            thigh.keyframe_insert("rotation_euler", frame=frame)
        press_bake(*ENDS)
        assert (missed(rig, row, FRAMES[-1:]) > 0.1) is not helps
        seen.append([in_world(rig, frame)["foot.L"].translation for frame in FRAMES])
    assert max((a - b).length for a, b in zip(*seen, strict=True)) < PLANTED
    assert (seen[1][-1] - seen[1][0]).length > 0.2


def test_the_report_says_what_the_body_did(bake):
    rig, _ = planted(keeps=True)
    report = report_of(bake, rig)
    assert report.unsolved() == ()
    (helped,) = report.helped
    assert helped.constraints == ("hand.L",)
    assert helped.gave_way == ("spine.006",)
    assert helped.shifted == "spine"
    assert helped.distance > 0.02
    assert report.body.moved_frames == 0  # no leg was too short
    assert "so that legs reach" not in report.summary()


def test_a_locked_body_stays_and_the_spine_bends(ext):
    rig, _row = planted(keeps=True)
    rig.pose.bones["spine"].lock_location = (True,) * 3
    before = in_world(rig, 1)
    press_bake(*ENDS)
    after = in_world(rig, FRAMES[-1])
    assert shift(before, after, "spine") < 1e-6
    assert (after["spine.003"].translation - before["spine.003"].translation).y < -0.05


def test_a_tail_that_was_left_at_its_place_asks_for_nothing(bake):
    """The hips of a planted wolf are off their target, as its head is pulled down. The tail beside that asked
    for help in turns: the head missed by 0.38 m, and legs turned by up to 57 degrees in a frame."""
    rig = set_up(rigs.metarig("wolf"), plant=True)
    head = rig.ccd_rig.constraints["spine.011"]
    for frame in range(1, 22):
        head.target.keyframe_insert("location", frame=frame)
        head.target.location.z -= 0.052
    report = report_of(bake, rig, 21)
    assert {name for helped in report.helped for name in helped.constraints} == {"spine.011"}
    assert report.unsolved() == ()
    assert largest_turn(in_world(rig, frame) for frame in range(1, 22)) < 15.0
