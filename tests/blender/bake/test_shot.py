"""How the frames of a bake hang together: rest while targets rest, ranges, preroll, and smoothness."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from playing import angles
from reaching_arms import SOLVE, arm, baked, circle, key_location

SAME = 1e-6  # of values stored as float32
ALIKE = {"NONE": 0.5, "ORIENTATION": 0.5, "DIRECTION": 35.0}  # degrees from round to round
CLOSE = math.radians(
    1.0
)  # stated in docs/guide/shots.md: how near frames of a shorter range are to those of a longer one


@pytest.mark.parametrize("limit", [False, True])
def test_while_the_target_rests_the_chain_rests(bake, limit):
    rig = rigs.chain(12, 0.25)
    target = rigs.empty("Target")
    key_location(target, [(1.2, 0.3, 1.0), (0.5, -1.1, 1.2), (0.5, -1.1, 1.2), (-0.8, 0.4, 1.5)], gap=12)
    rigs.reach(rig, "bone_11", target, "Hand")
    for bone in rig.pose.bones if limit else ():
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.5
    report, found = baked(bake, rig, 1, 37)
    assert report.unsolved_count() == 0
    assert (found[12:25] == found[12]).all()
    assert angles(found[5], found[6]).max() > 0.005  # while it moves before and after


def test_frames_are_solved_at_once_and_all_are_reached(bake):
    """What CCD solves by itself is counted: a bake whose frames all went through it would be slow."""
    rig, _ = arm(20)
    report, found = baked(bake, rig, 1, 61)
    assert report.unsolved_count() == 0
    assert max(row.residual for row in report.entries) <= SOLVE
    assert angles(found[1:], found[:-1]).max() <= math.radians(4.0)


@pytest.mark.parametrize("rotation", ["ORIENTATION", "DIRECTION"])
@pytest.mark.parametrize("limit", [False, True])
def test_last_bones_that_turn_with_their_targets_are_solved_at_once_too(bake, rotation, limit):
    """And nothing spins about what is left open."""
    rig, target = arm(20)
    for frame, angles_at in (
        (1, (0.0, 0.0, 0.0)),
        (20, (0.4, -0.3, 0.5)),
        (40, (-0.2, 0.5, 1.1)),
        (61, (0, 0, 0)),
    ):
        target.rotation_euler = angles_at
        target.keyframe_insert("rotation_euler", frame=frame)
    rig.ccd_rig.constraints[0].rotation = rotation
    for bone in rig.pose.bones if limit else ():
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.5
    report, found = baked(bake, rig, 1, 61)
    assert report.unsolved_count() == 0
    assert max(row.residual for row in report.entries) <= SOLVE
    assert max(row.angle for row in report.entries) <= 1e-3
    # A direction leaves the spin of the last bone open: there two ways change places once, each the nearer
    # to the rest pose on its side. The report says so.
    most = 8.0 if rotation == "ORIENTATION" else 45.0
    assert (rotation == "DIRECTION") >= any(ways.is_seen for ways in report.smoothed)
    assert angles(found[1:], found[:-1]).max() <= math.radians(most)


@pytest.mark.parametrize("rotation", ["NONE", "ORIENTATION", "DIRECTION"])
def test_round_after_round_chains_do_not_wind_up(bake, rotation):
    rig, target = arm(20)
    key_location(target, 6 * circle((0.4, 0.3, 2.5), 1.5)[:-1], gap=5)
    rig.ccd_rig.constraints[0].rotation = rotation
    report, found = baked(bake, rig, 1, 361)
    assert report.unsolved_count() == 0
    # A round is like any other; at both ends the target comes from and goes to rest.
    assert angles(found[70:350], found[10:290]).max() <= math.radians(ALIKE[rotation])


def test_a_resting_target_that_turns_turns_the_last_bone(bake):
    rig, target = arm(8)
    target.animation_data_clear()
    target.location = (0.3, 0.3, 1.2)
    for frame, angle in ((1, 0.0), (21, 0.0), (31, 1.0), (41, 1.0)):
        target.rotation_euler.z = angle
        target.keyframe_insert("rotation_euler", frame=frame)
    rig.ccd_rig.constraints[0].rotation = "ORIENTATION"
    report, found = baked(bake, rig, 1, 41)
    assert report.unsolved_count() == 0
    assert (found[:20] == found[0]).all()  # while it rests the chain rests
    assert (found[30:] == found[40]).all()
    assert 0.03 < angles(found[20:31], found[21:32]).max() < 0.4


def low_round_the_root():
    """Hinges and cones of a long chain come to their limits, now these, now those."""
    rig = rigs.chain(20, 0.25)
    target = rigs.empty("Target")
    turns = [math.tau * i / 250 for i in range(0, 251, 10)]
    low = [
        (5 * (0.45 + 0.1 * math.cos(2 * a)) * math.cos(a), 2.25 * math.sin(a), 0.5 + 0.75 * math.sin(3 * a))
        for a in turns
    ]
    key_location(target, low, gap=10)
    rigs.reach(rig, "bone_19", target, "Hand")
    for i, bone in enumerate(rig.pose.bones):
        limit = bone.ccd_rig.limit
        limit.kind, limit.cone_radius = ("CONE" if i % 2 else "HINGE"), math.radians(30.0)
        limit.hinge_lower, limit.hinge_upper = -math.pi / 2, math.pi / 2
    return rig, target


def test_limited_chains_change_ways_at_a_few_frames_at_most(bake):
    """Low round the root joints are at their limits; there are two ways to pass it."""
    rig, _ = low_round_the_root()
    report, found = baked(bake, rig, 1, 251)
    assert report.unsolved_count() == 0
    steps = np.sort(angles(found[1:], found[:-1]).max(axis=1))
    assert steps[-6] <= math.radians(6.0)
    assert steps[-1] <= math.radians(25.0)


def changes(found):
    """(F - 2,) radians: the largest change of a joint's turn from frame to frame."""
    straight = found * np.sign((found * found[:1]).sum(-1, keepdims=True))
    return 2.0 * np.linalg.norm(np.diff(straight, 2, axis=0), axis=-1).max(axis=1)


def test_joints_that_come_to_their_limits_do_not_jolt(bake):
    rig, _ = low_round_the_root()
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.use_twist = True
        bone.ccd_rig.limit.twist_lower = bone.ccd_rig.limit.twist_upper = 0.0
    report, found = baked(bake, rig, 1, 251)
    assert report.unsolved_count() == 0
    assert changes(found).max() <= math.radians(0.5)


def test_frames_after_those_out_of_reach_are_not_the_worse_for_it(bake):
    rig, target = arm(8)
    key_location(target, [(0, 0.3, 1.0), (0, 3.0, 1.0), (0, 0.3, 1.2), (0.4, 0.3, 1.2)], gap=15)
    report, found = baked(bake, rig, 1, 46)
    missed = [row.frame for row in report.unsolved()]
    assert missed == list(range(min(missed), max(missed) + 1))
    assert min(missed) > 5
    assert max(missed) < 30
    assert np.isfinite(found).all()


def test_frames_out_of_reach_follow_one_another(bake):
    """Stiff joints do not let it reach all of the circle, and where they do not they do not jitter."""
    rig, _ = arm(4, 1.25)
    for bone in rig.pose.bones:
        limit = bone.ccd_rig.limit
        limit.kind, limit.cone_radius, limit.use_twist = "CONE", math.radians(8.0), True
        limit.twist_lower = limit.twist_upper = 0.0
    report, found = baked(bake, rig, 1, 61)
    assert report.unsolved_count() >= 50
    assert angles(found[1:], found[:-1]).max() <= math.radians(4.0)


def test_a_range_with_a_preroll_is_part_of_a_longer_one(bake):
    rig, _ = arm(20)
    _, whole = baked(bake, rig, 1, 61)
    _, part = baked(bake, rig, 30, 61, preroll=29)
    assert np.abs(whole[29:] - part).max() <= SAME


def test_a_range_that_ends_sooner_agrees(bake):
    rig, _ = arm(20)
    _, whole = baked(bake, rig, 1, 61)
    _, part = baked(bake, rig, 1, 45)
    assert angles(whole[:45], part).max() <= CLOSE


def test_a_preroll_keys_nothing_before_the_range(bake, channels):
    rig, _ = arm(5)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(20, 30, step=3, preroll=10))
    assert {row.frame for row in report.entries} == set(range(20, 31))
    times = {key.co[0] for curve in channels.fcurves_of(rig) for key in curve.keyframe_points}
    assert times == set(map(float, range(20, 31)))


def test_with_time_turned_round_the_poses_are_the_same(bake):
    points = [(1.2, 0.3, 1.0), (0.5, -1.1, 1.2), (0.1, 0.2, 2.0), (-0.8, 0.4, 1.5)]
    rig = rigs.chain(12, 0.25)
    target = rigs.empty("Target")
    rigs.reach(rig, "bone_11", target, "Hand")
    key_location(target, points, gap=10)
    _, forwards = baked(bake, rig, 1, 31)
    target.animation_data_clear()
    key_location(target, points[::-1], gap=10)
    report, backwards = baked(bake, rig, 1, 31)
    assert report.unsolved_count() == 0
    assert angles(forwards, backwards[::-1]).max() <= math.radians(0.05)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"preroll": -1}, "preroll must be"),
        ({"frame_start": -1048570, "preroll": 100}, r"frames -10486\d\d to"),
        *(({"smoothness": each}, "smoothness must be 0 to 1000, not") for each in (-0.1, 1000.5, math.inf)),
        ({"smoothness": math.nan}, "smoothness must be 0 to 1000, not"),
    ],
)
def test_settings_that_cannot_be(bake, errors, settings, words):
    with pytest.raises(errors.InvalidInput, match=words):
        bake.BakeSettings(**{"frame_start": 1, "frame_end": 10, **settings})


def test_ccd_alone_keeps_near_the_base_and_closes_loops(bake):
    """Beside least squares: about as near to the base pose; round after round the same poses."""
    rig, target = rigs.chain(6, 0.5), rigs.empty("Target")
    rigs.reach(rig, "bone_5", target, "Hand")
    lap = circle((0.3, 0.2, 1.6), 0.7)
    key_location(target, [*lap, *lap[1:]])
    departures = {}
    for name in ("CCD_LEAST_SQUARES", "CCD"):
        rig.ccd_rig.solver.solver = name
        report, found = baked(bake, rig, 1, 121)
        assert report.solver.name == name and report.unsolved_count() == 0
        base = np.broadcast_to(np.array((1.0, 0.0, 0.0, 0.0)), found.shape)
        departures[name] = angles(base, found).mean()
    assert angles(found[60], found[120]).max() < math.radians(0.5)
    assert departures["CCD"] <= 1.1 * departures["CCD_LEAST_SQUARES"]


def test_ccd_alone_rests_while_nothing_moves(bake):
    rig, target = rigs.chain(4), rigs.empty("Target", (1.0, 1.5, 2.0))
    rigs.reach(rig, "bone_3", target, "Hand")
    rig.ccd_rig.solver.solver = "CCD"
    _, found = baked(bake, rig, 1, 8)
    assert (found == found[0]).all()
