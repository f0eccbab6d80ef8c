"""The body helps a figure with planted feet."""

from itertools import pairwise

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Vector

SOLVE = 1e-3  # metres
PLANTED = 5e-4  # metres
FAR = (0.25, -0.8, 1.3)  # 0.15 m beyond the reach of a left arm
FRAMES = 25
FEET = ("foot.L", "foot.R")
BODY = ("spine", "spine.001", "spine.002", "spine.003", "shoulder.L", "spine.006")
LEGS = ("thigh.L", "shin.L", "thigh.R", "shin.R")


def figure(to=FAR, keeps=False):
    """A human with planted feet whose left hand goes to a point of the world.

    `keeps`: the bone that carries it has keys, and its body keeps its animation; else hips have a target.
    """
    rig = rigs.metarig("human")
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up(plant=True, hips=not keeps) == {"FINISHED"}
    if keeps:
        for channel in ("location", "rotation_quaternion"):
            rig.pose.bones["spine"].keyframe_insert(channel, frame=1)
    rigs.update()
    row = rig.ccd_rig.constraints["hand.L"]
    row.target.keyframe_insert("location", frame=1)
    put(row, to)
    row.target.keyframe_insert("location", frame=FRAMES)
    return rig, row


def put(row, to):
    matrix = row.target.matrix_world.copy()
    matrix.translation = Vector(to)
    row.target.matrix_world = matrix
    rigs.update()


def bake(rig):
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=FRAMES) == {"FINISHED"}


def pose(rig, frame):
    bpy.context.scene.frame_set(frame)
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return {bone.name: evaluated.matrix_world @ bone.matrix for bone in evaluated.pose.bones}


def largest_turn(one, other):
    turns = [one[name].to_quaternion().rotation_difference(other[name].to_quaternion()).angle for name in one]
    return np.degrees(max(min(turn, 2.0 * np.pi - turn) for turn in turns))


def off(rig, row, frame):
    head = pose(rig, frame)[row.tip].translation
    target = row.target.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world.translation
    return (head - target).length


@pytest.mark.parametrize("keeps", [False, True])
def test_spine_and_hips_go_along_and_feet_hold(ext, keeps):
    rig, row = figure(keeps=keeps)
    before = pose(rig, 1)
    bake(rig)
    poses = [pose(rig, frame) for frame in range(1, FRAMES + 1)]
    assert max(off(rig, row, frame) for frame in range(1, FRAMES + 1)) < SOLVE
    for foot in FEET:
        assert max((each[foot].translation - before[foot].translation).length for each in poses) < PLANTED
    assert (poses[-1]["spine"].translation - before["spine"].translation).length > 0.02
    assert (poses[-1]["spine.003"].translation - before["spine.003"].translation).y < -0.05
    legs_and_body = [{name: each[name] for name in (*BODY, *LEGS)} for each in poses]
    assert max(largest_turn(a, b) for a, b in pairwise(legs_and_body)) < 6.0


def test_without_it_the_hand_stays_short(ext):
    rig, row = figure()
    rig.ccd_rig.body_helps = False
    bake(rig)
    assert off(rig, row, FRAMES) > 0.1


@pytest.mark.parametrize("keeps", [False, True])
def test_live_solve_and_bake_give_the_same_pose(ext, keeps):
    rig, _row = figure(keeps=keeps)
    bpy.context.scene.frame_set(FRAMES)
    rig.ccd_rig.live = True
    rigs.update()
    shown = pose(rig, FRAMES)
    rig.ccd_rig.live = False
    solved = []
    for _ in range(2):
        assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
        rigs.update()
        solved.append({bone.name: rig.matrix_world @ bone.matrix for bone in rig.pose.bones})
    bake(rig)
    baked = pose(rig, FRAMES)
    assert largest_turn(shown, solved[0]) < 0.5
    assert largest_turn(*solved) < 1e-2
    assert largest_turn(solved[1], baked) < 0.5


@pytest.mark.parametrize("keeps", [False, True])
def test_a_second_bake_gives_the_same_and_the_body_returns_with_the_target(ext, keeps):
    rig, row = figure(keeps=keeps)
    before = pose(rig, 1)
    bake(rig)
    first = pose(rig, FRAMES)
    bake(rig)
    assert largest_turn(first, pose(rig, FRAMES)) < 1e-2
    row.target.animation_data_clear()
    put(row, before[row.tip].translation)
    bake(rig)
    for name in ("spine", "spine.003", *FEET):
        assert (pose(rig, FRAMES)[name].translation - before[name].translation).length < SOLVE


def test_keys_that_were_edited_are_the_animation_that_the_body_keeps(ext, channels):
    rig, _row = figure(keeps=True)
    bake(rig)
    start = ext.module("ccd_rig.blender.bake.start")
    assert start.has_helped_keys(rig, "spine")
    curve = next(c for c in channels.fcurves_of(rig) if c.data_path == 'pose.bones["spine"].location')
    curve.keyframe_points[3].co.y += 0.02
    assert not start.has_helped_keys(rig, "spine")


def test_the_body_goes_back_with_solve(ext):
    rig, row = figure(keeps=True)
    before = pose(rig, 1)
    bpy.context.scene.frame_set(FRAMES)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    row.target.animation_data_clear()
    put(row, before[row.tip].translation)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    hips = rig.matrix_world @ rig.pose.bones["spine"].matrix
    assert (hips.translation - before["spine"].translation).length < SOLVE


def test_a_swinging_foot_goes_on_its_way(ext):
    """A foot that is planted in the first half alone is where it is without help."""
    seen = []
    for helps in (False, True):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig, _row = figure(keeps=True)
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
        bake(rig)
        seen.append([pose(rig, frame)["foot.L"].translation for frame in range(1, FRAMES + 1)])
    assert max((a - b).length for a, b in zip(*seen, strict=True)) < PLANTED
    assert (seen[1][-1] - seen[1][0]).length > 0.2


def test_the_report_says_what_the_body_did(ext):
    rig, _ = figure(keeps=True)
    module = ext.module("ccd_rig.blender.bake.bake")
    report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, FRAMES))
    assert report.unsolved() == ()
    (helped,) = report.helped
    assert helped.constraints == ("hand.L",)
    assert helped.gave_way == ("spine.006",)
    assert helped.shifted == "spine"
    assert helped.distance > 0.02
    assert report.body.moved_frames == 0  # no leg was too short
    assert "so that legs reach" not in report.summary()


def test_a_locked_body_stays_and_the_spine_bends(ext):
    rig, _row = figure(keeps=True)
    rig.pose.bones["spine"].lock_location = (True,) * 3
    before = pose(rig, 1)
    bake(rig)
    after = pose(rig, FRAMES)
    assert (after["spine"].translation - before["spine"].translation).length < 1e-6
    assert (after["spine.003"].translation - before["spine.003"].translation).y < -0.05


def test_a_tail_that_was_left_at_its_place_asks_for_nothing(ext):
    """The hips of a planted wolf are off their target, as its head is pulled down. The tail beside that asked
    for help in turns: the head missed by 0.38 m, and legs turned by up to 57 degrees in a frame."""
    rig = rigs.metarig("wolf")
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up(plant=True) == {"FINISHED"}
    rigs.update()
    head = rig.ccd_rig.constraints["spine.011"]
    for frame in range(1, 22):
        head.target.keyframe_insert("location", frame=frame)
        head.target.location.z -= 0.052
    module = ext.module("ccd_rig.blender.bake.bake")
    report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, 21))
    assert {name for helped in report.helped for name in helped.constraints} == {"spine.011"}
    assert report.unsolved() == ()
    poses = [pose(rig, frame) for frame in range(1, 22)]
    assert max(largest_turn(a, b) for a, b in pairwise(poses)) < 20.0
