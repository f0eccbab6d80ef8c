"""A limb of which a script makes a planted one: its own root then carries the figure, and that is told."""

from __future__ import annotations

import bpy
import numpy as np
import planted
import playing
import pytest
import rigs
from mathutils import Quaternion


@pytest.fixture
def limb(ext):
    """A leg that reached, three bones long, animated; its kind is set past what the panel does."""
    rig = planted.biped()
    row = planted.constrain(rig, "REACH", "foot.L", "Foot", rigs.empty("T"), 3, use_tail=False)
    for frame, angle in ((1, 0.0), (20, 1.0)):
        for name in ("thigh.L", "shin.L"):
            bone = rig.pose.bones[name]
            bone.rotation_quaternion = Quaternion((1.0, 0.0, 0.0), angle)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    row.kind = "PLANT"
    rigs.activate(rig)
    return rig


def test_the_checks_name_the_bone_that_should_carry_the_figure(checks, limb):
    row = limb.ccd_rig.constraints[0]
    messages = [each.message for each in checks.problems(limb, bpy.context.scene)]
    expected = [message for message in messages if "is of the limb and carries no figure" in message]
    assert len(expected) == 1 and "'thigh.L'" in expected[0] and "end at 'hips'" in expected[0]
    row.chain_length = 4
    messages = [each.message for each in checks.problems(limb, bpy.context.scene)]
    assert not any("carries no figure" in message for message in messages)


def test_a_figure_that_is_a_single_chain_may_end_where_it_begins(rows, checks):
    rig = rigs.chain(4)
    planted.constrain(rig, "PLANT", "bone_3", "End")
    assert not any("carries no figure" in each.message for each in checks.problems(rig, bpy.context.scene))


def test_a_body_that_climbs_and_tips_is_found(ext, bake, limb):
    report = bake.bake(bpy.context.scene, limb, bake.BakeSettings(1, 20, body="FOLLOW_FEET"))
    climbs, tips = report.findings
    assert [each.trouble.name for each in (climbs, tips)] == ["CLIMB", "TIP"]
    assert climbs.bone == tips.bone == "thigh.L"
    assert climbs.distance == abs(report.body.drift.rise.amount) > 0.3
    assert tips.angle == report.body.drift.lean.amount > 1.0
    assert "climbs" in climbs.label() and "tips" in tips.label()
    assert any("carries no figure" in warning for warning in report.warnings)
    panel = ext.module("panels.bake")
    assert panel.head_icon(limb.ccd_rig.report, report.findings) == "ERROR"
    assert bpy.ops.ccd_rig.report_markers() == {"FINISHED"}
    assert sorted(marker.frame for marker in bpy.context.scene.timeline_markers) == sorted(
        (climbs.frame, tips.frame)
    )
    assert bpy.ops.ccd_rig.go_to_frame(finding=0) == {"FINISHED"}
    assert bpy.context.scene.frame_current == climbs.frame


@pytest.mark.parametrize("other", ["standing", "free"])
@pytest.mark.parametrize("step", [1, 4])
def test_a_planted_foot_stands_while_its_leg_bends_between_solved_frames(bake, step, other):
    """The leg plays its animation at all frames, and the body follows it."""
    rig = planted.biped()
    for side in "LR" if other == "standing" else "L":
        planted.constrain(rig, "PLANT", f"foot.{side}", f"Foot.{side}", None, 4)
    for frame, angle in ((1, 0.0), (3, 0.3), (6, -0.2), (8, 0.4), (13, 0.0)):
        for name, sign in (("thigh.L", -0.5), ("shin.L", 1.0)):
            rig.pose.bones[name].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), sign * angle)
            rig.pose.bones[name].keyframe_insert("rotation_quaternion", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 13, step=step, body="FOLLOW_FEET"))
    places = []
    for frame in range(1, 14):
        bpy.context.scene.frame_set(frame)
        places.append(rig.pose.bones["foot.L"].head.copy())
    assert max((place - places[0]).length for place in places) < 1e-5
    assert report.check.mismatches() == ()


@pytest.mark.parametrize(
    ("rise", "lean", "hover", "expected"),
    [
        (0.05, 0.0, 0.0, []),
        (0.2, 0.0, 0.3, ["CLIMB"]),
        (-0.2, 0.5, 0.0, ["SINK", "TIP"]),
        (0.0, 0.0, 0.2, ["FLOAT"]),
    ],
)
def test_what_is_said_of_a_body_is_what_is_found(ext, rise, lean, hover, expected):
    drift = ext.module("ccd_rig.blender.bake.body_motion")
    peaks = [
        drift.Peak(bone, 7, amount) for bone, amount in (("hips", rise), ("hips", lean), ("foot", hover))
    ]
    body = drift.BodyDrift(1.0, *peaks)
    assert [each.trouble.name for each in body.findings()] == expected
    assert len([words for words in body.words().split("; ") if words]) == len(expected)
    finding = ext.module("ccd_rig.blender.bake.report")
    assert finding.from_json(finding.to_json(body.findings())) == body.findings()
    icons = ext.module("panels.bake").ICONS
    assert set(icons) == set(finding.Trouble)
    known = bpy.types.UILayout.bl_rna.functions["label"].parameters["icon"].enum_items
    assert set(icons.values()) <= set(known.keys())


def _bent(rig, angles):
    """Key the left knee at these angles about X by frame, and the thigh half as far the other way."""
    for frame, angle in angles.items():
        for name, part in (("shin.L", 1.0), ("thigh.L", -0.5)):
            bone = rig.pose.bones[name]
            bone.rotation_quaternion = Quaternion((1.0, 0.0, 0.0), part * angle)
            bone.keyframe_insert("rotation_quaternion", frame=frame)


@pytest.mark.parametrize("step", [1, 4])
def test_the_leg_on_which_a_body_stands_keeps_its_limits(ext, bake, step):
    """Its knee stops at the border, is at its animation where that is inside, and the foot stands."""
    rig = planted.biped()
    planted.constrain(rig, "PLANT", "foot.L", "Foot", None, 4)
    _bent(rig, {1: 0.2, 5: 0.4, 9: -0.9, 13: 0.2, 17: 0.3})
    frames = range(1, 18)
    animated = playing.rotations(rig, frames)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 17, step=step, body="FOLLOW_FEET"))
    assert report.check.mismatches() == () and report.unsolved_count() == 0
    planted.limits_hold(ext, rig, frames)
    played = playing.rotations(rig, frames)
    shin = rig.pose.bones.find("shin.L")
    assert np.abs(played[[0, 4, 12, 16], shin] - animated[[0, 4, 12, 16], shin]).max() < 1e-6
    assert 2.0 * np.arcsin(played[8, shin, 1]) == pytest.approx(-0.3, abs=1e-5)  # the knee's limit
    feet = planted.played(rig, ["foot.L"], frames)[:, 0]
    assert np.linalg.norm(feet[:, :3, 3] - feet[0, :3, 3], axis=1).max() < planted.STILL


def test_the_leg_on_which_a_body_stands_keeps_its_limits_after_it_is_let_go(ext, bake):
    """It goes on from where it stood, beside its animation, and nothing jumps."""
    rig = planted.biped()
    row = planted.constrain(rig, "PLANT", "foot.L", "Foot", None, 4)
    _bent(rig, {1: 0.0, 12: -0.9, 24: 0.2})
    planted.key_influence(row, [(1, 12)], range(1, 25))
    frames = range(1, 25)
    animated = playing.rotations(rig, frames)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 24, body="FOLLOW_FEET"))
    planted.limits_hold(ext, rig, frames)
    played = playing.rotations(rig, frames)
    before, after = (playing.angles(each[1:], each[:-1]).max() for each in (animated, played))
    assert after < before + 1e-5


def test_solve_pose_keeps_the_limits_of_the_leg_on_which_a_body_stands(ext):
    rig = planted.biped()
    planted.constrain(rig, "PLANT", "foot.L", "Foot", None, 4)
    rig.ccd_rig.body = "FOLLOW_FEET"
    rig.pose.bones["shin.L"].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), -0.9)
    rigs.activate(rig)
    rigs.update()
    foot = playing.in_world(rig)["foot.L"]
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    planted.limits_hold(ext, rig, [bpy.context.scene.frame_current])
    assert (playing.in_world(rig)["foot.L"].translation - foot.translation).length < planted.STILL
