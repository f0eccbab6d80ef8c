"""The body helps: spine, clavicles and hips go along where a chain alone misses its target."""

from __future__ import annotations

import json

import bpy
import numpy as np
import pytest
import rigs
from helped import FAR, FEET, FRAMES, SOLVE, figure, key_way, missed, report_of, shift
from mathutils import Matrix, Vector
from operator_calls import bake as press_bake
from operator_calls import set_up, solve
from playing import angle, in_world, largest_turn, shown

ENDS = (FRAMES[0], FRAMES[-1])
BODY = ("spine", "spine.001", "spine.002", "spine.003", "shoulder.L")
HOME = (0.5, -0.3, 1.4)


def keyed(channels, rig):
    paths = {curve.data_path for curve in channels.fcurves_of(rig)}
    return {name for name in BODY if any(f'"{name}"' in path for path in paths)}


@pytest.mark.parametrize("helps", [True, False])
def test_a_hand_beyond_its_reach_takes_the_body_along_and_feet_stand(ext, helps):
    rig, row = figure()
    assert rig.ccd_rig.body_helps
    rig.ccd_rig.body_helps = helps
    before = in_world(rig, 1)
    press_bake(*ENDS)
    off, after = missed(rig, row), in_world(rig, FRAMES[-1])
    assert off < SOLVE if helps else off > 0.1
    assert shift(before, after, *FEET) < SOLVE
    leans = after["spine.003"].translation.y - before["spine.003"].translation.y
    assert (leans < -0.05) is helps  # to where the hand goes


def test_frames_before_the_range_do_not_count_as_helped(bake):
    """With a preroll the report says the same, also where an influence below 1 leaves a distance."""
    told = []
    for preroll in (0, 9):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig, row = figure()
        row.influence = 0.9
        told.append(report_of(bake, rig, preroll=preroll, verify=False).helped)
    assert told[0] and told[0] == told[1]


@pytest.mark.parametrize(
    ("way", "behind", "turn"), [((0.69, 0.0, 0.2), 0.35, 17.5), ((0.0, -0.89, -0.2), SOLVE, 17.0)]
)
def test_no_bone_jumps_while_a_hand_is_pulled_far(ext, way, behind, turn):
    """Without a largest force of the pull feet would turn by up to 40 degrees in a frame."""
    rig, row = figure(None)
    bpy.context.scene.frame_set(FRAMES[-1])
    row.target.matrix_world.translation += Vector(way)
    row.target.keyframe_insert("location", frame=FRAMES[-1])
    press_bake(*ENDS)
    assert missed(rig, row) < behind
    assert largest_turn(in_world(rig, frame) for frame in FRAMES) < turn


def test_where_chains_suffice_the_body_stays_and_gets_no_keys(channels):
    poses = []
    for helps in (True, False):
        rig, row = figure(HOME)
        rig.ccd_rig.body_helps = helps
        press_bake(*ENDS)
        assert missed(rig, row) < SOLVE
        assert "shoulder.L" not in keyed(channels, rig)
        poses.append([in_world(rig, frame) for frame in FRAMES])
    for pair in zip(*poses, strict=True):
        assert np.radians(largest_turn(pair, ("upper_arm.L", "forearm.L"))) < 2e-3


def test_the_body_sets_in_without_a_pop(ext):
    """The hand goes out of reach by 4 mm a frame: the body begins to move at that rate."""
    rig, row = figure((0.18, -0.70, 1.55), first=(0.18, -0.60, 1.55))
    press_bake(*ENDS)
    assert missed(rig, row) < SOLVE
    poses = [in_world(rig, frame) for frame in FRAMES]
    assert np.radians(largest_turn(poses, ["shoulder.L"])) > 1e-3
    assert largest_turn(poses, BODY) < 3.0


def test_solve_poses_as_the_bake_does(ext):
    rig, row = figure()
    press_bake(*ENDS)
    baked = in_world(rig, FRAMES[-1])
    rig.animation_data.action = None
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.scene.frame_set(FRAMES[-1])
    solve()
    assert shift(baked, in_world(rig), *BODY, "upper_arm.L") < 2e-2
    assert missed(rig, row, FRAMES[-1:]) < SOLVE


def test_the_report_says_what_the_body_did(bake):
    rig, _ = figure()
    report = report_of(bake, rig)
    assert report.unsolved() == ()
    (helped,) = report.helped
    assert helped.constraints == ("hand.L",)
    assert helped.frame_end == FRAMES[-1]
    assert helped.shifted == "spine"
    assert helped.distance > 0.05
    assert helped.gave_way[0] == "spine"
    assert "spine.006" in helped.gave_way
    assert helped.off > 0.05
    assert "the body helps at frames" in report.summary()
    content = json.loads(report.to_json())
    assert content["helped"][0]["words"] == helped.words()
    gone = report.entries.gave_way(report.tolerance, report.angle_tolerance)
    assert "spine" in {entry.constraint for entry in gone}
    assert not {entry.constraint for entry in gone} & {"hand.L", *FEET}
    frames, largest = len({entry.frame for entry in gone}), max(entry.residual for entry in gone)
    assert 0 < frames < len(FRAMES)
    head = f"25 of 25 frames reached, targets give way in {frames} by up to {largest:.4f} m; "
    assert report.summary().startswith(head)
    assert content["frames_gave_way"] == frames
    assert report_of(bake, rig, body_helps=False).helped == ()


@pytest.mark.parametrize("step", [1, 5])
def test_targets_that_give_way_are_no_slides(bake, step):
    """A hand pulled once made each bake a warning, with a line for each bone of the body that went along."""
    rig, _ = figure()
    report = report_of(bake, rig, step=step)
    assert report.helped and "give way" in report.summary()
    assert [each.words() for each in report.findings if each.trouble == "SLIDE"] == []
    assert report.is_sound or step > 1  # feet are off between solved frames


@pytest.mark.parametrize("lowered", [0.0, 0.03])
def test_a_head_that_is_moved_holds_and_one_that_is_not_goes_along(ext, lowered):
    rig, row = figure((0.25, -0.7, 1.35))
    head = rig.ccd_rig.constraints["spine.006"]
    key_way(head, None, head.target.matrix_world.translation - Vector((0.0, 0.0, lowered)))
    press_bake(*ENDS)
    assert missed(rig, row) < SOLVE
    assert (missed(rig, head) < SOLVE) is (lowered > 0.0)


@pytest.mark.parametrize("helps", [True, False])
def test_a_set_up_keeps_the_switch_and_a_new_armature_has_it_off(ext, tmp_path, helps):
    rig = rigs.metarig("human")
    assert not rig.ccd_rig.body_helps
    set_up(rig)
    assert rig.ccd_rig.body_helps
    rig.ccd_rig.body_helps = helps
    file = str(tmp_path / "setup.json")
    assert bpy.ops.ccd_rig.setup_save(filepath=file) == {"FINISHED"}
    rig.ccd_rig.body_helps = not helps
    assert bpy.ops.ccd_rig.setup_load(filepath=file) == {"FINISHED"}
    assert rig.ccd_rig.body_helps is helps


@pytest.mark.parametrize("influence", [0.5, 0.02])
def test_the_body_goes_as_far_as_the_influence_has_it(ext, bake, influence, monkeypatch):
    """It went all the way for a hand of any influence. Balance would take the hips back again."""
    monkeypatch.setattr(ext.module("ccd_rig.blender.bake.group_solving"), "_balanced", lambda *_: None)
    rig, row = figure()
    whole = report_of(bake, rig).helped[0].distance
    rig.animation_data_clear()
    row.influence = influence
    report = report_of(bake, rig)
    assert report.unsolved() == ()
    assert report.helped[0].distance == pytest.approx(whole * influence, rel=0.1)
    assert max(entry.residual for entry in report.entries if entry.constraint == "hand.L") < SOLVE
    assert shift(in_world(rig, 1), in_world(rig, FRAMES[-1]), *FEET) < SOLVE


@pytest.mark.parametrize("soft", [0.0, 0.02])
def test_the_body_begins_evenly_where_limbs_are_soft(channels, soft):
    """Without Softness it goes at the target's own rate from one frame to the next."""
    rig, row = figure((0.18, -0.566, 1.55), first=(0.18, -0.47, 1.55))
    rigs.interpolate(channels.fcurves_of(row.target), "LINEAR")
    for each in rig.ccd_rig.constraints:
        each.soft = soft if each.soft else 0.0
    press_bake(*ENDS)
    places = np.array([in_world(rig, frame)["spine"].translation[:] for frame in FRAMES])
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert steps.max() > 1e-3
    change = float(np.abs(np.diff(steps)).max() / steps.max())
    assert (change < 0.5) is (soft > 0.0), change


def bring_home(row):
    row.target.animation_data.action = None
    row.target.matrix_world = Matrix.Translation(HOME)
    rigs.update()


def assert_played_home(rig, row):
    """The hand meets its target as Blender plays it, and the report knows."""
    assert rig.ccd_rig.report.mismatches == 0, rig.ccd_rig.report.check
    assert missed(rig, row) < SOLVE
    rest = rig.matrix_world @ rig.data.bones["shoulder.L"].matrix_local
    assert angle(in_world(rig, FRAMES[-1])["shoulder.L"], rest) < 1e-3


def test_a_body_that_solve_has_left_turned_is_keyed_as_it_was_solved(ext):
    """The bake starts from rest, and keys what else would stay as Solve has left it."""
    rig, row = figure()
    bpy.context.scene.frame_set(FRAMES[-1])
    solve()
    assert rig.pose.bones["shoulder.L"].matrix_basis.to_quaternion().angle > 0.05
    bring_home(row)
    press_bake(*ENDS)
    assert_played_home(rig, row)


@pytest.mark.parametrize("start", ["ACTION", "ORIGINAL", "REST"])
def test_a_body_that_a_bake_has_turned_returns_with_the_target(ext, start):
    rig, row = figure(first=FAR)
    press_bake(*ENDS)
    bring_home(row)
    press_bake(*ENDS, start=start)
    assert_played_home(rig, row)


def test_solve_after_a_bake_brings_the_body_back(ext):
    rig, row = figure(first=FAR)
    press_bake(*ENDS)
    bring_home(row)
    solve()
    assert rig.pose.bones["shoulder.L"].matrix_basis.to_quaternion().angle < 1e-3
    hand = rig.matrix_world @ rig.pose.bones["hand.L"].head
    assert (hand - row.target.matrix_world.translation).length < SOLVE


def test_a_body_that_helps_no_more_stays_as_it_is_baked(ext):
    """Arms are solved from where the body plays, not from where it was before."""
    rig, row = figure(first=FAR)
    press_bake(*ENDS)
    bring_home(row)
    rig.ccd_rig.body_helps = False
    press_bake(*ENDS)
    assert rig.ccd_rig.report.mismatches == 0, rig.ccd_rig.report.check
    assert missed(rig, row) < SOLVE


def pulled(rig, name, way, last=FRAMES[-1], first=1):
    """A constraint whose target goes by a vector of the world."""
    row = rig.ccd_rig.constraints[name]
    row.target.keyframe_insert("location", frame=first)
    rigs.put(row.target, row.target.matrix_world.translation + Vector(way))
    row.target.keyframe_insert("location", frame=last)
    return row


def test_a_hand_that_was_left_at_its_place_pulls_no_shoulder(bake):
    """The head is pulled aside from under it: a clavicle turned by 101 degrees, by 21 in a frame."""
    rig = set_up(rigs.metarig("human"))
    pulled(rig, "spine.006", (0.25, 0.0, 0.0))
    report = report_of(bake, rig)
    assert {name for helped in report.helped for name in helped.constraints} == {"spine.006"}
    left = {entry.constraint for entry in report.entries if entry.status in ("GAVE_WAY", "EASED")}
    assert "hand.R" in left
    assert largest_turn((in_world(rig, frame) for frame in FRAMES), ("shoulder.L", "shoulder.R")) < 10.0
    rest = rig.data.bones["shoulder.R"].matrix_local.inverted() @ rig.data.bones["spine.003"].matrix_local
    bones = shown(rig, FRAMES[-1]).pose.bones
    turned = bones["shoulder.R"].matrix.inverted() @ bones["spine.003"].matrix
    assert np.degrees(angle(rest, turned)) < 5.0


def test_a_hand_that_is_put_beside_its_place_is_helped(bake):
    rig = set_up(rigs.metarig("human"))
    target = rig.ccd_rig.constraints["hand.L"].target
    rigs.put(target, target.matrix_world.translation + Vector((0.3, -0.2, 0.0)))
    report = report_of(bake, rig, 2)
    assert {name for helped in report.helped for name in helped.constraints} == {"hand.L"}
    assert report.unsolved() == ()


def test_a_neck_and_a_tail_ease_into_straight(bake):
    """They turned by 19 and 11 degrees in the frame at which the body began to help."""
    rig = set_up(rigs.metarig("horse"))
    for name, way in (("tail.005", (0.0, -0.2, -0.5)), ("head", (0.0, -0.48, -1.2))):
        rig.animation_data_clear()
        home = rig.ccd_rig.constraints[name].target.matrix_world.translation.copy()
        row = pulled(rig, name, way, 40)
        report = report_of(bake, rig, 40)
        assert report.unsolved() == ()
        assert report.helped
        assert largest_turn(in_world(rig, frame) for frame in range(1, 41)) < 6.0
        row.target.animation_data_clear()
        rigs.put(row.target, home)
        bpy.context.scene.frame_set(1)


def test_feet_stand_while_a_head_takes_their_legs_along(ext):
    """Front legs hang on the spine that the head bends: they slid by up to 5 cm as it was pulled up."""
    rig = set_up(rigs.metarig("cat"))
    way, before = Vector((0.0, -0.076, 0.254)), in_world(rig, 1)
    pulled(rig, "spine.006", way, 13)  # within half a second, and back
    pulled(rig, "spine.006", -way, FRAMES[-1], first=13)
    press_bake(*ENDS)
    feet = ("r_toe.L", "r_toe.R", "f_toe.L", "f_toe.R")
    assert max(shift(before, in_world(rig, frame), *feet) for frame in FRAMES) < 1e-4
