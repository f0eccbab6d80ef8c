"""Planted bones below a body that keeps its animation: held against what Blender plays."""

from __future__ import annotations

import itertools
import json
import math
import random

import bpy
import numpy as np
import pytest
import rigs
from kept_bodies import FRAMES, KEPT, SLIP, assert_held, bobbing, curves_of, leaning, spans_of
from mathutils import Euler, Matrix, Quaternion, Vector
from planted import angle, biped, constrain, key_influence, limits_hold, played, standing
from rigs import B


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize(
    "place",
    [Matrix(), Matrix.LocRotScale((1, 2, 3), Euler((0.3, 0.2, 0.1)), (2.0, 2.0, 2.0))],
    ids=["at home", "scaled"],
)
def test_keyed_hips_stay_and_feet_hold(ext, bake, place, step):
    rig = bobbing(place)
    before = curves_of(ext, rig, "hips", FRAMES)
    hips = played(rig, ["hips"], FRAMES)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 48, step=step))
    assert report.unsolved_count() == 0, report.summary()
    assert (report.body.bone, report.body.mode, report.body.moved_frames) == ("hips", "KEEP_ANIMATION", 0)
    after = curves_of(ext, rig, "hips", FRAMES)
    assert after.keys() == before.keys()
    for key, values in before.items():
        assert np.abs(after[key] - values).max() < KEPT
    assert np.abs(played(rig, ["hips"], FRAMES) - hips).max() < KEPT
    for side in "LR":
        seen = played(rig, [f"foot.{side}"], FRAMES)[:, 0]
        assert_held(seen, FRAMES, [(max(a, 1), b) for a, b in spans_of(side)])
    for slip in report.foot_slips:
        assert max(slip.distance, slip.played_distance) < SLIP
    limits_hold_but(ext, rig, FRAMES, "hips")


def limits_hold_but(ext, rig, frames, bone):
    assert rig.pose.bones[bone].ccd_rig.limit.kind == "NONE"
    limits_hold(ext, rig, frames)


def test_following_feet_says_that_keys_are_replaced(ext, bake):
    rig = bobbing()
    before = curves_of(ext, rig, "hips", FRAMES)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 48, body="FOLLOW_FEET"))
    assert report.body.mode == "FOLLOW_FEET"
    assert report.body.keys_replaced
    assert "'hips' follows planted bones, its own keys are replaced" in report.summary()
    after = curves_of(ext, rig, "hips", FRAMES)
    assert max(np.abs(after[key] - values).max() for key, values in before.items()) > 0.01


# A leg that is too short ------------------------------------------------------------------------------------


def test_a_body_is_moved_only_where_a_leg_is_too_short(ext, bake):
    rig, frames = leaning(), range(1, 61)
    animated = played(rig, ["hips"], frames)[:, 0, :3, 3]
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    assert report.unsolved_count() == 0, report.summary()
    seen = played(rig, ["hips", "foot.L", "foot.R", "thigh.L"], frames)
    shift = np.linalg.norm(seen[:, 0, :3, 3] - animated, axis=1)
    for k in (1, 2):
        assert_held(seen[:, k], frames, [(1, 60)])
    assert shift[:10].max() < KEPT
    assert shift[48:].max() < KEPT
    # No more than is needed: where it is largest, a leg is as long as it gets.
    leg = sum(rig.data.bones[f"{bone}.L"].length for bone in ("thigh", "shin"))
    lengths = np.linalg.norm(seen[:, 3, :3, 3] - seen[:, 1, :3, 3], axis=1)
    right = np.linalg.norm(played(rig, ["thigh.R"], frames)[:, 0, :3, 3] - seen[:, 2, :3, 3], axis=1)
    assert np.maximum(lengths, right)[int(np.argmax(shift))] > 0.998 * leg
    # It sets in and ends without a pop: neither speed nor acceleration beyond what the animation has.
    steps = np.diff(seen[:, 0, :3, 3], n=2, axis=0)
    assert np.linalg.norm(steps, axis=1).max() < np.linalg.norm(np.diff(animated, n=2, axis=0), axis=1).max()
    body = report.body
    assert body.moved_frames == int((shift > 2e-6).sum())
    assert abs(body.distance - shift.max()) < KEPT
    assert body.frame == frames[int(np.argmax(shift))]
    assert f"'hips' moved at {body.moved_frames} frames so that legs reach" in report.summary()
    found = json.loads(report.to_json())["body"]
    assert found["moved_frames"] == body.moved_frames
    assert found["mode"] == "KEEP_ANIMATION"
    # The rotation of the hips is left alone.
    assert not any("rotation" in path for path, _ in curves_of(ext, rig, "hips", frames))
    limits_hold(ext, rig, frames)
    # Once more, the same: what is baked needs no other shift.
    again = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    assert again.body.mode == "KEEP_ANIMATION"
    assert again.body.distance < KEPT


@pytest.mark.parametrize("seed", [2, 5, 6, 13])
def test_feet_that_come_down_while_the_body_is_moved(ext, bake, seed):
    """Legs without a Reach hang on the body, so its shift moves the places where they are planted next."""
    rng, rig, frames = random.Random(seed), biped(), range(1, 61)
    hips = rig.pose.bones["hips"]
    for frame in range(1, 61, rng.choice((5, 10, 15))):
        hips.location = (rng.uniform(-0.1, 0.1), rng.uniform(-0.25, 0.02), rng.uniform(-0.25, 0.25))
        hips.rotation_quaternion = Euler([rng.uniform(-0.3, 0.3) for _ in range(3)]).to_quaternion()
        hips.keyframe_insert("location", frame=frame)
        hips.keyframe_insert("rotation_quaternion", frame=frame)
    for side in "LR":
        row = constrain(rig, "PLANT", f"foot.{side}", f"Plant {side}", chain_length=4)
        spans = [(a, a + rng.randrange(5, 25)) for a in sorted(rng.sample(range(1, 50), 2))]
        key_influence(row, spans, frames)
    animated = played(rig, ["hips"], frames)[:, 0]
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    seen = played(rig, ["hips"], frames)[:, 0]
    turned = max(angle(a, b) for a, b in zip(animated, seen, strict=True))
    assert turned < KEPT
    if not report.unsolved_count():
        assert max(slip.played_distance for slip in report.foot_slips) < SLIP
    bends = [np.linalg.norm(np.diff(each[:, :3, 3], n=2, axis=0), axis=1).max() for each in (seen, animated)]
    assert bends[0] < bends[1] + 5e-3
    assert all(entry.angle > 0.01 for entry in report.unsolved())  # an ankle's limit; no leg is too short
    limits_hold(ext, rig, frames)


def test_the_shift_of_a_long_shot(ext):
    """It is planned in blocks of frames: inside all balls, without a pop where two of them meet."""
    module = ext.module("ccd_rig.blender.bake.body_motion")
    frames = np.arange(2600.0)
    far = 0.2 * np.sin(frames / 40.0) ** 2 * (frames < 1900)
    centres = np.zeros((2600, 1, 3))
    centres[:, 0, 1] = 0.9 + far
    radii = np.full((2600, 1), 0.9)
    origins, follows = np.full((2600, 1), -1, np.intp), np.ones((1, 3), np.bool_)
    reaches = module.Reaches(centres, radii, origins, follows, np.eye(3))
    shifts = module.least_shifts(frames, reaches, 0.9)
    assert (np.linalg.norm(shifts - centres[:, 0], axis=1) < 0.9 + 2e-5).all()
    assert np.abs(shifts[1900 + module.MARGIN :]).max() == 0.0
    assert np.abs(shifts[:, 1] - far).max() < 0.03
    bends = np.linalg.norm(np.diff(shifts, n=2, axis=0), axis=1)
    assert bends[:1850].max() < 4e-4
    assert bends.max() < 5e-3  # where the need ends at once


def test_knees_that_stay_bent_make_a_leg_shorter(ext, bake):
    rig, frames = leaning(lean=0.3), range(1, 61)
    for side in "LR":
        group = rig.pose.bones[f"shin.{side}"].ccd_rig.limit
        group.euler_lower = (0.5, 0.0, 0.0)
        bone = rig.pose.bones[f"shin.{side}"]
        bone.rotation_quaternion = Quaternion((1, 0, 0), 0.8)
    rigs.update()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    assert report.unsolved_count() == 0, report.summary()
    assert report.body.moved_frames > 0
    limits_hold(ext, rig, frames)


@pytest.mark.parametrize("least", [0.0, 0.4, 0.8])
def test_how_far_a_leg_extends_whose_knee_stays_bent(ext, least):
    """By the law of cosines, from a pose in which the knee is bent more; a shin half as long as the thigh."""
    module, joints = ext.module("ccd_rig.blender.bake.body_motion"), ext.module("ccd_rig.skeleton.joints")
    knee, poses = ext.module("ccd_rig.limits.shapes").Hinge, ext.module("ccd_rig.skeleton.pose")
    up, x = (0.0, 1.0, 0.0), Vector((1.0, 0.0, 0.0))
    skeleton = joints.Skeleton(
        [
            joints.Joint("hips"),
            joints.Joint("thigh", 0, up),
            joints.Joint("shin", 1, up, length=0.5, limit=knee(tuple(x), least, 2.5)),
            joints.Joint("foot", 2, (0.0, 0.5, 0.0)),
        ]
    )
    pose = poses.Pose.rest(skeleton).with_rotations({1: Quaternion(x, 0.3), 2: Quaternion(x, 1.9)})
    longest = math.sqrt(1.0 + 0.25 + math.cos(least))
    found = module._largest_extension(skeleton, pose, [1, 2, 3])
    assert found == pytest.approx(module.REACHES * longest, rel=1e-4)


def test_a_body_that_cannot_be_moved_is_named(bake):
    rig = leaning()
    rig.pose.bones["hips"].lock_location = (False, True, False)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    assert report.unsolved_count() > 3
    assert report.body.short_frames >= report.unsolved_count() - 2
    assert "but 'hips' cannot be moved: its location is locked" in report.summary()
    hips = bpy.data.objects["Walker"].pose.bones["hips"]
    bpy.context.scene.frame_set(30)
    assert abs(hips.location[2] - 0.5) < KEPT


def test_preroll_and_a_shift(bake):
    rig = leaning()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(28, 34, preroll=10))
    assert report.unsolved_count() == 0, report.summary()
    assert report.body.moved_frames == 7
    assert 28 <= report.body.frame <= 34


def test_undo_brings_back_the_keys(ext, bake):
    rig = leaning()
    before = curves_of(ext, rig, "hips", range(1, 61))
    action = rig.animation_data.action
    settings = bake.BakeSettings(1, 60, destination=bake.Destination.CURRENT_ACTION)
    steps = bake.bake_steps(bpy.context.scene, rig, settings)
    for _ in range(100):
        next(steps)
    steps.close()
    assert rig.animation_data.action == action
    after = curves_of(ext, rig, "hips", range(1, 61))
    assert after.keys() == before.keys()
    assert all(np.array_equal(after[key], before[key]) for key in before)
    rigs.activate(rig)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 60
    bpy.ops.ed.undo_push(message="before")
    assert bpy.ops.ccd_rig.bake(destination="CURRENT_ACTION") == {"FINISHED"}
    moved = curves_of(ext, rig, "hips", range(1, 61))
    assert max(np.abs(moved[key] - before[key]).max() for key in before) > 0.01
    bpy.ops.ed.undo_push(message="baked")
    bpy.ops.ed.undo()
    after = curves_of(ext, bpy.data.objects["Walker"], "hips", range(1, 61))
    assert all(np.array_equal(after[key], before[key]) for key in before)


# One frame, and what is let go ------------------------------------------------------------------------------


def test_solve_moves_the_body_as_far_as_a_leg_needs(ext):
    rig = standing()
    rig.ccd_rig.constraints["Hips"].enabled = False
    rig.ccd_rig.body = "KEEP_ANIMATION"
    rig.ccd_rig.constraints["Plant L"].target = rigs.empty("Stone", (0.1, -0.6, 0.08))
    rig.ccd_rig.constraints["Plant R"].enabled = False
    bpy.data.objects["Stone"].rotation_euler = rig.data.bones["foot.L"].matrix_local.to_euler()
    rigs.update()
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    bones = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
    assert (bones["foot.L"].head - Vector((0.1, -0.6, 0.08))).length < 2e-4
    assert 0.01 < rig.pose.bones["hips"].location.length < 0.4
    bpy.ops.object.mode_set(mode="OBJECT")


def test_a_leg_that_is_let_go_returns_to_its_animation(bake):
    rig = leaning(lean=0.2)
    for side in "LR":
        key_influence(rig.ccd_rig.constraints[f"Plant {side}"], [(1, 25)], range(1, 61))
    animated = played(rig, ["foot.L", "foot.R"], range(1, 61))
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    seen = played(rig, ["foot.L", "foot.R"], range(1, 61))
    assert np.abs(seen[24] - animated[24]).max() > 0.05
    assert np.abs(seen[45:] - animated[45:]).max() < KEPT
    ways = np.linalg.norm(np.diff(seen[:, :, :3, 3], axis=0), axis=-1)
    assert ways.max() < 0.08


def rolling_off():
    """On one foot whose heel is let go before its toes, below hips that go on and bob."""
    bones = [
        B("hips", (0, 0, 1), (0, 0, 1.2)),
        B("thigh", (0, 0, 1), (0, -0.04, 0.54), "hips"),
        B("shin", (0, -0.04, 0.54), (0, 0.02, 0.1), "thigh", connect=True),
        B("foot", (0, 0.02, 0.1), (0, -0.12, 0.03), "shin", connect=True),
        B("toe", (0, -0.12, 0.03), (0, -0.2, 0.03), "foot", connect=True),
    ]
    rig = rigs.armature(bones, "Walker")
    hips, thigh = rig.pose.bones["hips"], rig.pose.bones["thigh"]
    for frame in range(1, 31):
        hips.location = (0.0, -0.1 + 0.02 * math.sin(frame / 4), 0.022 * frame)
        hips.keyframe_insert("location", frame=frame)
        thigh.rotation_mode = "QUATERNION"
        thigh.rotation_quaternion = Quaternion((1, 0, 0), 0.5 - 0.06 * frame)
        thigh.keyframe_insert("rotation_quaternion", frame=frame)
    heel = constrain(rig, "PLANT", "foot", "Heel", chain_length=4)
    key_influence(heel, [(1, 14)], range(1, 31))
    key_influence(constrain(rig, "PLANT", "toe", "Toes", chain_length=5), [(1, 24)], range(1, 31))
    rig.ccd_rig.body = "KEEP_ANIMATION"
    rigs.update()
    return rig


def test_a_heel_that_is_let_go_before_the_toes_does_not_jump(bake):
    largest = {}
    for smoothness in (0.0, 5.0):
        rig = rolling_off()
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 30, smoothness=smoothness))
        seen = played(rig, ["thigh", "shin", "foot", "toe"], range(1, 31))
        assert_held(seen[:, 2], range(1, 31), [(1, 14)])
        assert_held(seen[:, 3], range(1, 31), [(1, 24)])
        turns = [math.degrees(angle(a, b)) for k in range(4) for a, b in itertools.pairwise(seen[10:20, k])]
        largest[smoothness] = max(turns)
        bpy.ops.wm.read_homefile(use_empty=True)
    print(largest)
    assert largest[0.0] > 12.0
    assert largest[5.0] < 0.5 * largest[0.0]


def test_fewer_keys_hold_feet_within_the_error(bake):
    rig = leaning()
    settings = bake.BakeSettings(1, 60, reduce_error=2e-3)
    report = bake.bake(bpy.context.scene, rig, settings)
    assert report.keys < 0.8 * report.keys_before
    assert max(slip.played_distance for slip in report.foot_slips) < 5e-3
    assert "does not play" not in report.check.words().lower()


def test_of_two_that_plant_a_bone_the_first_holds_it(bake):
    rig = leaning(lean=0.1)
    stone = rigs.empty("Stone", (0.15, 0.0, 0.2))
    stone.rotation_euler = rig.data.bones["foot.L"].matrix_local.to_euler()
    constrain(rig, "PLANT", "foot.L", "Again", stone, 4)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert {entry.constraint for entry in report.unsolved()} == {"Again"}
    first = next(slip for slip in report.foot_slips if slip.constraint == "Plant L")
    assert first.played_distance < SLIP


def test_moving_object(bake):
    """Feet are held in the world while the object takes the body along."""
    rig = leaning(lean=0.1)
    for frame, way in ((1, 0.0), (20, -0.2)):
        rig.location = (0, way, 0)
        rig.keyframe_insert("location", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert report.unsolved_count() == 0, report.summary()
    seen = played(rig, ["foot.L", "foot.R"], range(1, 21))
    for k in (0, 1):
        assert_held(seen[:, k], range(1, 21), [(1, 20)])
