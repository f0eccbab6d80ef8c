"""How the frames of a bake hang together: rest while targets rest, preroll, backwards, and both ways."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from test_bake import SOLVE, arm, assert_report_is_what_plays, circle, constrain, key_location
from whole_file import differences, dump

SAME = 1e-6  # of values stored as float32
ROUNDED = 1e-5  # the share of a pass is a float32 in the operator
CLOSE = math.radians(
    1.0
)  # stated in docs/manual.md: how near frames of a shorter range are to those of a longer one


@pytest.fixture
def bake(ext):
    return ext.module("ccd_rig.blender.bake.bake")


@pytest.fixture
def march(ext):
    return ext.module("ccd_rig.blender.bake.march")


@pytest.fixture
def solved(march, monkeypatch):
    """Grows by one with each frame that the loop solves."""
    found = []
    plain = march.solve_frame
    monkeypatch.setattr(march, "solve_frame", lambda sample, *rest: found.append(1) or plain(sample, *rest))
    return found


def rotations(rig, frames):
    """(F, J, 4) as Blender plays them."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append([bone.matrix_basis.to_quaternion()[:] for bone in rig.pose.bones])
    return np.array(found)


def angles(a, b):
    """Radians between (..., 4) rotations."""
    apart = np.minimum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    return 4.0 * np.arcsin(np.clip(0.5 * apart, 0.0, 1.0))


def baked(bake, rig, first, last, **settings):
    """The report, and what plays; the file is as before."""
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(first, last, **settings))
    assert_report_is_what_plays(rig, report)
    found = rotations(rig, range(first, last + 1))
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.rotation_quaternion = (1, 0, 0, 0)
    rigs.update()
    return report, found


@pytest.mark.parametrize("limit", [False, True])
def test_while_the_target_rests_the_chain_rests(bake, limit):
    rig = rigs.chain(12, 0.25)
    target = rigs.empty("Target")
    key_location(target, [(1.2, 0.3, 1.0), (0.5, -1.1, 1.2), (0.5, -1.1, 1.2), (-0.8, 0.4, 1.5)], gap=12)
    constrain(rig, "bone_11", target)
    for bone in rig.pose.bones if limit else ():
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.5
    report, found = baked(bake, rig, 1, 37)
    assert report.unsolved_count() == 0
    assert (found[12:25] == found[12]).all()
    assert angles(found[5], found[6]).max() > 0.005  # while it moves before and after


def test_most_frames_are_settled_at_once_and_all_are_reached(bake, solved):
    """What the loop solves is counted: a bake whose frames all went through it would be as good, but slow."""
    rig, _ = arm(20)
    report, found = baked(bake, rig, 1, 61)
    assert report.unsolved_count() == 0
    assert max(row.residual for row in report.entries) <= SOLVE
    assert len(solved) <= 61 // 4
    assert angles(found[1:], found[:-1]).max() <= math.radians(4.0)


@pytest.mark.parametrize("rotation", ["ORIENTATION", "DIRECTION"])
@pytest.mark.parametrize("limit", [False, True])
def test_last_bones_that_turn_with_their_targets_are_settled_at_once_too(bake, solved, rotation, limit):
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
    assert len(solved) <= 61 // 4
    assert angles(found[1:], found[:-1]).max() <= math.radians(8.0)


@pytest.mark.parametrize("rotation", ["NONE", "ORIENTATION", "DIRECTION"])
def test_round_after_round_chains_do_not_wind_up(bake, rotation):
    rig, target = arm(20)
    key_location(target, 6 * circle((0.4, 0.3, 2.5), 1.5)[:-1], gap=5)
    rig.ccd_rig.constraints[0].rotation = rotation
    report, found = baked(bake, rig, 1, 361)
    assert report.unsolved_count() == 0
    bends = angles(found, np.array((1.0, 0.0, 0.0, 0.0))).sum(axis=1)
    assert bends[-60:].max() <= 1.15 * bends[60:120].max()
    drift = angles(found[60:], found[:-60]).max(axis=1)  # from round to round
    assert drift[-60:].max() <= max(0.5 * drift[:60].max(), math.radians(6.0))


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
    constrain(rig, "bone_19", target)
    for i, bone in enumerate(rig.pose.bones):
        limit = bone.ccd_rig.limit
        limit.kind, limit.cone_radius = ("CONE" if i % 2 else "HINGE"), math.radians(30.0)
        limit.hinge_lower, limit.hinge_upper = -math.pi / 2, math.pi / 2
    return rig, target


@pytest.mark.parametrize("travel", [0.3, 0.8])
def test_limited_chains_take_no_other_way_than_step_by_step(bake, march, monkeypatch, travel):
    """Low round the root joints are at their limits, and a chain that leaps lands elsewhere."""
    rig, _ = low_round_the_root()
    worst = {}
    for part in (0.0, travel):
        monkeypatch.setattr(march, "TRAVEL", part)
        report, found = baked(bake, rig, 1, 251)
        assert report.unsolved_count() == 0
        worst[part] = angles(found[1:], found[:-1]).max()
    assert worst[travel] <= 2.0 * worst[0.0]


def changes(found):
    """(F - 2,) radians: the largest change of a joint's turn from frame to frame."""
    straight = found * np.sign((found * found[:1]).sum(-1, keepdims=True))
    return 2.0 * np.linalg.norm(np.diff(straight, 2, axis=0), axis=-1).max(axis=1)


def test_joints_that_come_to_their_limits_do_not_jolt(ext, bake, monkeypatch):
    """But where the target jumps they do not move ahead of it."""
    smoothing = ext.module("ccd_rig.motion.smoothing")
    plain = smoothing.weights
    rig, target = low_round_the_root()
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.use_twist = True
        bone.ccd_rig.limit.twist_lower = bone.ccd_rig.limit.twist_upper = 0.0
    bpy.context.scene.frame_set(60)
    here = target.location.copy()
    found = {}
    for jump in (False, True):
        if jump:
            key_location(target, [here, (here.x, here.y, here.z + 0.8)], first=60, gap=1)
        for soft in (False, True):
            monkeypatch.setattr(
                smoothing, "weights", plain if soft else lambda q, t, *_: np.zeros(t.shape[1])
            )
            report, found[jump, soft] = baked(bake, rig, 1, 251)
            assert report.unsolved_count() == 0
    assert changes(found[False, True]).max() <= 0.75 * changes(found[False, False]).max()
    about = slice(52, 68)
    assert (found[True, True][about] == found[True, False][about]).all()
    assert (found[True, True] != found[True, False]).any()


def test_targets_out_of_reach_are_solved_one_by_one(bake):
    """And frames after them are not the worse for it."""
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
    assert angles(found[1:], found[:-1]).max() <= math.radians(2.7)


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


def test_a_preroll_keys_nothing_before_the_range(bake, ext):
    rig, _ = arm(5)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(20, 30, step=3, preroll=10))
    assert {row.frame for row in report.entries} == set(range(20, 31))
    times = {
        key.co[0]
        for curve in ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)
        for key in curve.keyframe_points
    }
    assert times == set(map(float, range(20, 31)))


def test_backwards_is_forwards_with_time_turned_round(bake):
    points = [(1.2, 0.3, 1.0), (0.5, -1.1, 1.2), (0.1, 0.2, 2.0), (-0.8, 0.4, 1.5)]
    rig = rigs.chain(12, 0.25)
    target = rigs.empty("Target")
    constrain(rig, "bone_11", target)
    key_location(target, points, gap=10)
    _, forwards = baked(bake, rig, 1, 31)
    target.animation_data_clear()
    key_location(target, points[::-1], gap=10)
    report, backwards = baked(bake, rig, 1, 31, order=bake.Order.BACKWARDS)
    assert report.unsolved_count() == 0
    assert angles(forwards, backwards[::-1]).max() <= math.radians(0.05)


@pytest.mark.parametrize("pole", [False, True])
def test_both_ways_joined_are_no_worse_than_either(bake, pole):
    rig, _ = arm(6, 0.5)
    if pole:
        rig.ccd_rig.constraints[0].pole_target = rigs.empty("Pole", (0.5, -3.0, 1.0))
    found = {order: baked(bake, rig, 1, 61, order=order) for order in bake.Order}
    turn = {order: angles(values[1:], values[:-1]).max() for order, (_, values) in found.items()}
    missed = {order: report.unsolved_count() for order, (report, _) in found.items()}
    both = bake.Order.BOTH
    assert missed[both] <= min(missed.values())
    assert turn[both] <= min(turn.values()) + 1e-4


def test_planted_bones_are_solved_forwards(bake, ext):
    rig, _ = arm(4, 0.5)
    row = rig.ccd_rig.constraints.add()
    row.name, row.kind, row.tip = "Foot", "PLANT", "bone_2"
    before = dump()
    with pytest.raises(ext.module("ccd_rig.errors").RigError, match="Planted bones are solved forwards"):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10, order=bake.Order.BACKWARDS))
    assert differences(before, dump()) == []


@pytest.mark.parametrize(("first", "preroll"), [(1, -1), (-1048570, 100)])
def test_a_preroll_that_cannot_be(bake, ext, first, preroll):
    with pytest.raises(
        ext.module("ccd_rig.errors").InvalidInput, match=r"preroll must be|frames -10486\d\d to"
    ):
        bake.BakeSettings(first, 10, preroll=preroll)


def test_operator_and_command_line_take_them(ext, bake, tmp_path):
    rig, _ = arm(6, 0.5)
    _, wanted = baked(bake, rig, 20, 40, preroll=19)
    rigs.activate(rig)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    assert bpy.ops.ccd_rig.bake(frame_start=20, frame_end=40, preroll=19) == {"FINISHED"}
    assert np.abs(rotations(rig, range(20, 41)) - wanted).max() <= ROUNDED
    words = [
        "bake",
        str(tmp_path / "shot.blend"),
        "--frames",
        "20-40",
        "--preroll",
        "19",
        "--order",
        "forwards",
    ]
    assert (
        ext.module("ccd_rig.blender.cli.command_line").main(
            [*words, "--output", str(tmp_path / "baked.blend")]
        )
        == 0
    )
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "baked.blend"))
    assert np.abs(rotations(bpy.data.objects["Rig"], range(20, 41)) - wanted).max() <= ROUNDED
