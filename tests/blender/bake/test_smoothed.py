"""Frames with two ways to a target: the report names them, in words and as JSON."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Vector
from playing import angles, rotations
from reaching_arms import arm, baked, key_location

FRAMES = 60


TURNS = ((1, (0.0, 0.0, 0.0)), (20, (0.4, -0.3, 0.5)), (40, (-0.2, 0.5, 1.1)), (61, (0.0, 0.0, 0.0)))


def swinging():
    """A chain whose last bone points as its target does: its spin is left open, so there are two ways."""
    rig, target = arm(20, rotation="DIRECTION")
    for frame, turned in TURNS:
        target.rotation_euler = turned
        target.keyframe_insert("rotation_euler", frame=frame)
    return rig


def apart(one, other):
    """(F,) degrees, the largest rotation of a bone between two motions."""
    return np.degrees(angles(one, other).max(axis=1))


def named(report):
    spans = [(int(ways.frame_start), int(ways.frame_end)) for ways in report.smoothed]
    return {frame for first, last in spans for frame in range(first, last + 1)}


def test_ranges_agree_but_at_frames_that_are_named(bake):
    rig = swinging()
    report, whole = baked(bake, rig, 1, FRAMES, verify=False)
    assert report.unsolved_count() == 0
    assert named(report), "something is smoothed"
    for first, last in ((1, 20), (13, 44), (30, 60), (47, 52)):
        part_report, part = baked(bake, rig, first, last, verify=False)
        free = [f for f in range(first, last + 1) if f not in named(report) | named(part_report)]
        rows = np.array(free, dtype=int)
        # Keys are float32, in which small angles between quaternions are seen to 0.03 degrees.
        assert apart(whole[rows - 1], part[rows - first]).max(initial=0.0) < 0.05


def test_a_frame_that_is_named_has_two_ways(bake):
    """What Solve finds there alone meets the target too, and is as far away as the report says."""
    rig = swinging()
    report, whole = baked(bake, rig, 1, FRAMES, verify=False)
    for ways in report.smoothed:
        frames = range(int(ways.frame_start), int(ways.frame_end) + 1)
        largest = 0.0
        for frame in frames:
            alone_report, alone = baked(bake, rig, frame, frame, verify=False)
            assert alone_report.unsolved_count() == 0
            assert not alone_report.smoothed
            largest = max(largest, float(apart(whole[frame - 1 : frame], alone)[0]))
        assert largest == pytest.approx(math.degrees(ways.angle), abs=0.1)


def test_words_and_json_name_them(bake):
    rig = swinging()
    report, _ = baked(bake, rig, 1, FRAMES, verify=False)
    seen = [ways for ways in report.smoothed if ways.is_seen]
    assert seen
    assert f"; smoothed at {seen[0].span()} (Hand)" in report.summary()
    assert seen[0].words().startswith(f"Hand: smoothed at {seen[0].span()}, up to ")
    content = json.loads(report.to_json())["smoothed"]
    assert [each["words"] for each in content] == [ways.words() for ways in report.smoothed]
    assert content[0]["constraints"] == ["Hand"]
    assert content[0]["angle"] == report.smoothed[0].angle


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_one_way_is_not_told(bake, tolerance):
    """Nor where joints rest as soon as they see the target within a comfort tolerance."""
    rig, target = rigs.chain(8, 0.25), rigs.empty("Target")
    for bone in rig.pose.bones:
        bone.ccd_rig.comfort.tolerance = tolerance
    key_location(target, [(0.8, 0.2, 1.1), (0.3, 0.9, 1.2)], gap=30)
    rigs.reach(rig, "bone_7", target, "Hand")
    report, _ = baked(bake, rig, 1, 31, verify=False)
    assert report.smoothed == ()
    assert "smoothed" not in report.summary()
    assert json.loads(report.to_json())["smoothed"] == []


@pytest.mark.parametrize(("degrees", "seen"), [(0.0, False), (0.9, False), (1.1, True), (120.0, True)])
def test_ways_are_told_from_one_degree_on(ext, degrees, seen):
    """As the manual has it; others are in the JSON report only."""
    parts = ext.module("ccd_rig.blender.bake.report")
    assert parts.Smoothed(("Hand",), 3, 7, math.radians(degrees)).is_seen == seen


def test_each_run_of_frames_is_one_line_of_the_report(ext):
    """With the same constraints; frames that are not solved end none."""
    outcome = ext.module("ccd_rig.blender.bake.findings")

    def group(angle, *constraints):
        return SimpleNamespace(constraints=constraints, angle=angle)

    smoothed = {
        0: (group(0.5, 0),),
        1: (group(0.7, 0), group(0.1, 1)),
        3: (group(0.6, 0), group(0.2, 1)),  # the frame between the two is not solved
        5: (group(0.3, 0),),
        7: (group(0.4, 0), group(0.2, 1, 2)),
        8: (group(0.3, 1, 2), group(0.1, 0)),
    }
    bake_frames = SimpleNamespace(
        constraints=[SimpleNamespace(name=name) for name in ("Hand", "Foot", "Head")],
        frames=np.arange(1.0, 10.0),
        states=dict.fromkeys((0, 1, 3, 4, 5, 6, 7, 8)),
        smoothed=smoothed,
    )
    found = outcome._smoothed(bake_frames)
    assert [(each.constraints, each.frame_start, each.frame_end, each.angle) for each in found] == [
        (("Hand",), 1, 4, 0.7),
        (("Foot",), 2, 4, 0.2),
        (("Hand",), 6, 6, 0.3),
        (("Hand",), 8, 9, 0.4),
        (("Foot", "Head"), 8, 9, 0.3),
    ]


def through_its_axis(period=60):
    """A straight chain whose target goes a figure of eight through its axis: at frame 31 and at both ends.

    `period`: frames of a round.
    """
    rig, target = arm(12)
    target.animation_data_clear()
    length = sum(bone.bone.length for bone in rig.pose.bones)
    for frame in range(-60, 122):
        a = 2.0 * math.pi * (frame - 1) / period
        target.location = Vector((0.25 * math.sin(a), 0.18 * math.sin(2 * a), 0.85)) * length
        target.keyframe_insert("location", frame=frame)
    return rig


@pytest.mark.parametrize("span", [(21, 40), (24, 61), (29, 35), (30, 33)])
def test_a_shorter_range_gives_the_same_poses(bake, span):
    """Where a sudden turn is smoothed up to the end of a range, frames beyond it count too."""
    report, whole = baked(bake, through_its_axis(), -40, 101, verify=False)
    assert report.smoothed
    first, last = span
    _, part = baked(bake, through_its_axis(), first, last, verify=False)
    same = whole[first + 40 : last + 41]
    assert apart(part, same).max() < 1e-3


def test_frames_beyond_a_range_are_evaluated_once(bake, ext, monkeypatch):
    """The arm is smoothed up to both ends, however few frames beyond them are solved with the range."""
    evaluation, shot = (ext.module(f"ccd_rig.blender.{each}") for each in ("scene.evaluation", "bake.shot"))
    look, solve_batches = evaluation.Frames.look, shot.solve_batches
    looked, begun, ended = [], [], []

    def watched_look(self, frame):
        looked.append(frame)
        return look(self, frame)

    def watched_solve(batches, period=0):
        begun.append(batches)
        yield from solve_batches(batches, period)
        ended.append(batches)

    rig = through_its_axis(12)
    with rigs.edit_bones(rig) as bones:
        other = bones.new("other")
        other.head, other.tail = (3.0, 0.0, 0.0), (3.0, 0.0, 1.0)
    rigs.reach(rig, "other", rigs.empty("Elsewhere", (3.5, 0.2, 0.5)), "Other")
    monkeypatch.setattr(evaluation.Frames, "look", watched_look)
    monkeypatch.setattr(shot, "solve_batches", watched_solve)
    report, _ = baked(bake, rig, 28, 31, verify=False)
    assert named(report) == {28, 29, 30, 31}
    beyond = [frame for frame in looked if not 28 <= frame <= 32]
    assert len(beyond) == len(set(beyond)) > 16
    assert 1 <= len(ended) < len(begun)  # nothing else is solved once both ends have moved


def test_what_another_hand_lets_go_does_not_part_a_motion(bake):
    """The influence of another chain ends just where this one is smoothed."""
    rig = through_its_axis()
    with rigs.edit_bones(rig) as bones:
        other = bones.new("other")
        other.head, other.tail = (3.0, 0.0, 0.0), (3.0, 0.0, 1.0)
    alone = baked(bake, rig, 1, 61, verify=False)[1]
    row = rigs.reach(rig, "other", rigs.empty("Elsewhere", (3.5, 0.2, 0.5)), "Other")
    for frame, influence in ((1, 1.0), (30, 1.0), (31, 0.0), (60, 0.0), (61, 1.0)):  # a loop, as alone
        row.influence = influence
        row.keyframe_insert("influence", frame=frame)
    report, beside = baked(bake, rig, 1, 61, verify=False)
    assert named(report) >= {30, 31, 32}
    places = [k for k, bone in enumerate(rig.pose.bones) if bone.name != "other"]
    assert (beside[:, places] == alone[:, places]).all()
    turns = apart(beside[:-1, places], beside[1:, places])
    assert turns.max() < 10.0


def test_ccd_alone_is_smoothed_too(bake):
    """Where frames alone jump; all of them still meet their targets."""
    turns = {}
    for smoothness in (0.0, bake.BakeSettings.smoothness):
        rig = through_its_axis()
        rig.ccd_rig.solver.solver = "CCD"
        report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 61, smoothness=smoothness))
        assert report.unsolved_count() == 0
        keyed = rotations(rig, range(1, 62))
        turns[smoothness] = apart(keyed[:-1], keyed[1:]).max()
    alone, smoothed = turns.values()
    assert alone > 15.0
    assert smoothed < 0.5 * alone


def test_settings_take_whole_numbers(bake):
    """As settings of scripts and of JSON have them: they bake the same as floats."""
    baked = []
    for number in (float, int):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = rigs.chain(3)
        path = {1: (2, 0, 1.5), 6: (0, 0.01, 0.2), 12: (-2, 1, 1)}
        rigs.reach(rig, "bone_2", rigs.keyed(rigs.empty("Goal"), path))
        assert bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 12, smoothness=number(10))).smoothed
        bpy.context.scene.frame_set(6)
        baked.append([tuple(bone.rotation_quaternion) for bone in rig.pose.bones])
    assert baked[0] == baked[1]
