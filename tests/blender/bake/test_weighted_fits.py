"""Goals that pull against each other: the report tells the weighted root mean square of each frame."""

from __future__ import annotations

import json
import math

import bpy
import pytest
import rigs
from mathutils import Vector

FRAMES = 6


def marker(rig, bone, name, place, **fields):
    """A weighted goal for a point on a bone."""
    return rigs.reach(rig, bone, rigs.empty(name, place), name, **fields)


def arm(count=4):
    bones = []
    for i in range(count):
        bones.append(
            rigs.B(f"bone_{i}", (0, 0, 0.5 * i), (0, 0, 0.5 * (i + 1)), f"bone_{i - 1}" if i else None)
        )
    return rigs.armature(bones)


def baked(bake, rig, end=FRAMES):
    rigs.update()
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, end))


def rms_of(report, frame, weights):
    rows = [entry for entry in report.entries if entry.frame == frame and entry.constraint in weights]
    total = sum(weights[row.constraint] * row.residual**2 for row in rows)
    return math.sqrt(total / sum(weights[row.constraint] for row in rows))


def test_two_targets_for_one_tip_are_a_weighted_fit(bake):
    """The tip ends between them, where the weighted square error is least; that is what the report says."""
    rig = arm()
    first, second = Vector((0.6, 0.2, 1.2)), Vector((0.6, -0.2, 1.2))
    marker(rig, "bone_3", "Light", first, weight=1.0)
    marker(rig, "bone_3", "Heavy", second, weight=3.0)
    report = baked(bake, rig)
    # At the weighted mean of the targets: 0.3 and 0.1 m off.
    expected = math.sqrt((1.0 * 0.3**2 + 3.0 * 0.1**2) / 4.0)
    assert report.fit is not None
    assert report.fit.rms == pytest.approx(expected, abs=1e-4)
    assert [each.frame for each in report.fit.frames] == list(range(1, FRAMES + 1))
    for each in report.fit.frames:
        assert each.rms == pytest.approx(rms_of(report, each.frame, {"Light": 1.0, "Heavy": 3.0}), abs=1e-9)
    words = f"weighted fit of 6 frames: RMS {expected:.4f} m, at most {expected:.4f} m at frame "
    assert report.summary().startswith(words)
    assert "reached" not in report.summary()
    assert rig.ccd_rig.report.words == report.summary()


def test_frames_that_reach_do_not_count(bake):
    rig = arm()
    marker(rig, "bone_3", "Still", (0.6, 0.0, 1.2))
    moving = marker(rig, "bone_3", "Moving", (0.6, 0.0, 1.2)).target
    for frame, x in ((1, 0.6), (3, 0.6), (4, 0.7), (5, 0.9), (6, 0.6)):
        moving.location.x = x
        moving.keyframe_insert("location", frame=frame)
    report = baked(bake, rig)
    assert [each.frame for each in report.fit.frames] == [4, 5]
    worst = report.fit.worst()
    assert (worst.frame, worst.rms) == (5, pytest.approx(0.15, abs=1e-4))
    assert report.fit.content()["mean"] == pytest.approx(0.5 * (0.05 + 0.15), abs=1e-4)
    assert report.fit.rms == pytest.approx(math.sqrt(0.5 * (0.05**2 + 0.15**2)), abs=1e-4)
    assert report.summary().startswith("4 of 6 frames reached; weighted fit of 2 frames: RMS 0.1118 m")
    content = json.loads(report.to_json())["fit"]
    assert (content["worst_frame"], [each["frame"] for each in content["frames"]]) == (5, [4, 5])
    assert content["rms"] == report.fit.rms
    assert content["mean"] == report.fit.content()["mean"]
    assert content["worst"] == content["frames"][1]["rms"]


def test_one_goal_out_of_reach_is_no_fit(bake):
    rig = arm()
    marker(rig, "bone_3", "Far", (0.0, 5.0, 0.0))
    report = baked(bake, rig)
    assert report.fit is None
    assert json.loads(report.to_json())["fit"] is None
    assert report.summary().startswith("0 of 6 frames reached; worst ")


def test_goals_that_give_way_or_share_no_joint_are_no_fit(bake):
    """A later priority is not weighed against an earlier one, nor is what other joints serve."""
    rig = arm()
    marker(rig, "bone_1", "Low", (0.3, 0.2, 0.6), chain_length=2)
    marker(rig, "bone_3", "High", (0.0, 5.0, 0.0), chain_length=2)
    assert baked(bake, rig).fit is None
    rig = arm()
    marker(rig, "bone_3", "First", (0.6, 0.2, 1.2))
    marker(rig, "bone_3", "Second", (0.6, -0.2, 1.2), priority=1)
    assert baked(bake, rig).fit is None
