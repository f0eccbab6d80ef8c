"""A body that walks on over planted feet, parts of feet that are held, and bodies that go astray."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
import walks
from mathutils import Vector
from walks import plant, select

SLIP = 1e-3  # [m] what a planted bone may slide
SAME = 1e-4  # [m] of places that should be those of the animation


def runs(row, frames):
    """Spans in which a row plants its bone, by its keys."""
    spans, scene = [], bpy.context.scene
    for frame in frames:
        scene.frame_set(frame)
        if row.influence > 0.5:
            if spans and spans[-1][-1] == frame - 1:
                spans[-1].append(frame)
            else:
                spans.append([frame])
    return spans


@pytest.mark.parametrize("whole", [False, True], ids=["planted by the button", "whole feet"])
def test_a_walk_in_place_goes_ten_cycles_without_climbing(ext, bake, whole):
    cycles = 10
    rig = walks.walk(ext, cycles)
    scene, frames = bpy.context.scene, range(1, walks.PERIOD * cycles + 2)
    feet = ["foot.L", "foot.R"] if whole else ["toe.L", "toe.R"]
    if whole:
        for foot in feet:
            plant(rig, foot)
        assert bpy.ops.ccd_rig.contacts_find() == {"FINISHED"}
    else:
        select(ext, rig, *feet)
        assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    assert rig.ccd_rig.body == "WALK_ON"
    animated = walks.heads(rig, ["hips"], frames)[:, 0]
    report = bake.bake(scene, rig, bake.BakeSettings(1, frames[-1]))
    assert report.check.mismatches() == ()
    seen = walks.heads(rig, ["hips", *feet], frames)
    assert np.abs(seen[:, 0, 2] / animated[:, 2] - 1.0).max() < 0.02
    # An ankle goes on while its foot rolls over the ball: held still, it takes the figure less far.
    least = 0.75 if whole else 0.97
    gone = (seen[0, 0, 1] - seen[-1, 0, 1]) / (walks.STRIDE * cycles)
    assert least < gone < 1.03
    if not whole:  # what is well animated is left as it is
        assert report.smoothed == ()
        assert report.body.moved_frames == 0
    assert f"'hips' walks on by {report.body.travel:.4f} m" in report.summary()
    assert report.body.travel == pytest.approx(gone * walks.STRIDE * cycles, rel=0.01)
    for c, row in enumerate(rig.ccd_rig.constraints):
        for span in runs(row, frames):
            stand = seen[span[0] - 1 : span[-1], 1 + c, :2]
            assert np.abs(stand - stand[0]).max() < SLIP
    # Baked once more it stays where it is.
    bake.bake(scene, rig, bake.BakeSettings(1, frames[-1], verify=False))
    assert np.abs(walks.heads(rig, ["hips"], frames)[:, 0] - seen[:, 0]).max() < 10 * SLIP


def test_a_walk_through_the_world_goes_as_far_as_before(ext, bake):
    rig = walks.walk(ext, 2, in_place=False)
    frames = range(1, 2 * walks.PERIOD + 2)
    select(ext, rig, "toe.L", "toe.R")
    bpy.ops.ccd_rig.feet_plant()
    rig.ccd_rig.body = "WALK_ON"
    before = walks.heads(rig, ["hips"], frames)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, frames[-1]))
    assert np.abs(walks.heads(rig, ["hips"], frames) - before).max() < 0.03


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda rig: rig.pose.bones["hips"].lock_location.__setitem__(1, True), "location is locked"),
        (lambda rig: setattr(rig.ccd_rig.constraints[0], "plant_ground", False), "no bone is planted along"),
        (
            lambda rig: rig.pose.bones["hips"].driver_add("location", 0),
            "hips",
        ),
    ],
)
def test_a_body_that_cannot_walk_on_is_refused(ext, errors, bake, spoil, words):
    rig = walks.walk(ext)
    plant(rig, "toe.L")
    rig.ccd_rig.body = "WALK_ON"
    spoil(rig)
    rigs.update()
    before = rig.animation_data.action.name
    with pytest.raises(errors.CCDRigError, match=words):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 25))
    assert rig.animation_data.action.name == before


@pytest.mark.parametrize("solver", ["CCD", "CCD_LEAST_SQUARES"])
@pytest.mark.parametrize("body", ["FOLLOW_FEET", "WALK_ON"])
def test_in_place_feet_held_along_the_ground_alone_never_lift_the_body(ext, bake, body, solver):
    rig = walks.walk(ext, 2)
    frames = range(1, 2 * walks.PERIOD + 2)
    select(ext, rig, "toe.L", "toe.R")
    bpy.ops.ccd_rig.feet_plant()
    rig.ccd_rig.body, rig.ccd_rig.solver.solver = body, solver
    before = walks.heads(rig, ["hips", "toe.L", "toe.R"], frames)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, frames[-1]))
    after = walks.heads(rig, ["hips", "toe.L", "toe.R"], frames)
    assert np.abs(after[:, 0, 2] - before[:, 0, 2]).max() < 0.02
    for k, row in enumerate(rig.ccd_rig.constraints, 1):
        for span in runs(row, frames):
            stand = slice(span[0] - 1, span[-1])
            assert np.abs(after[stand, k, :2] - after[stand, k, :2][0]).max() < SLIP
            if body == "WALK_ON":  # below a body that follows its feet, legs go on from where they were
                assert np.abs(after[stand, k, 2] - before[stand, k, 2]).max() < SLIP
    assert "climbs" not in report.summary()
    assert "tips" not in report.summary()


def test_feet_stand_far_within_a_coarse_tolerance(ext, bake):
    """A tenth of it to either side: errors of frames that are side by side are a slide."""
    rig = walks.walk(ext, 2)
    frames = range(1, 2 * walks.PERIOD + 2)
    select(ext, rig, "toe.L", "toe.R")
    bpy.ops.ccd_rig.feet_plant()
    solver, coarse = rig.ccd_rig.solver, 0.01
    rig.ccd_rig.body, solver.solver, solver.position_tolerance = "WALK_ON", "CCD", coarse
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, frames[-1]))
    feet = walks.heads(rig, ["toe.L", "toe.R"], frames)
    for k, row in enumerate(rig.ccd_rig.constraints):
        for span in runs(row, frames):
            stand = feet[span[0] - 1 : span[-1], k, :2]
            assert np.linalg.norm(stand[:, None] - stand, axis=2).max() < 2.0 * 0.1 * coarse


@pytest.mark.parametrize("solver", ["CCD", "CCD_LEAST_SQUARES"])
@pytest.mark.parametrize("part", ["plant_ground", "plant_height", "plant_rotation"])
def test_each_part_is_held_alone(bake, part, solver):
    """The foot drifts, rises and turns a little; what is not held plays as it is animated."""
    rig = walks.figure()
    rig.ccd_rig.solver.solver = solver
    bpy.context.scene.frame_end = 20
    hips, thigh = rig.pose.bones["hips"], rig.pose.bones["thigh.L"]
    for frame in range(1, 21):
        t = (frame - 1) / 19
        hips.location = (0.05 * t, -0.12 + 0.03 * t, 0.04 * t)
        thigh.rotation_quaternion = (1.0, -0.3, 0.0, 0.05 * t)
        rig.pose.bones["shin.L"].rotation_quaternion = (1.0, 0.3 + 0.05 * t, 0.0, 0.0)
        for bone in (hips, thigh, rig.pose.bones["shin.L"]):
            bone.keyframe_insert("rotation_quaternion", frame=frame)
        hips.keyframe_insert("location", frame=frame)
    others = {name: False for name in ("plant_ground", "plant_height", "plant_rotation") if name != part}
    plant(rig, "foot.L", **others)
    frames = range(1, 21)

    def seen():
        found = []
        for frame in frames:
            bpy.context.scene.frame_set(frame)
            found.append(rig.pose.bones["foot.L"].matrix.copy())
        heads = np.array([each.translation[:] for each in found])
        return heads[:, :2], heads[:, 2:], np.array([each.to_3x3() for each in found]).reshape(len(found), -1)

    before = seen()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert report.unsolved_count() == 0, report.summary()
    after = seen()
    names = ("plant_ground", "plant_height", "plant_rotation")
    for name, played, animated in zip(names, after, before, strict=True):
        assert np.abs(animated - animated[0]).max() > 0.01
        still = played[0] if name == part else animated
        assert np.abs(played - still).max() < 2e-3, name


def test_a_plant_that_holds_nothing_is_refused(ext, errors, bake):
    rig = walks.walk(ext)
    plant(rig, "toe.L", plant_ground=False, plant_height=False, plant_rotation=False)
    with pytest.raises(errors.CCDRigError, match="holds no part of its bone"):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 25))


@pytest.mark.parametrize("body", ["KEEP_ANIMATION", "FOLLOW_FEET"])
def test_a_foot_rolls_from_heel_to_ball(ext, bake, body):
    """Two plants of each foot: its heel from the strike on, its ball until the heel is well up."""
    rig = walks.walk(ext, 2, in_place=False)
    rig.ccd_rig.body = body
    frames = range(1, 2 * walks.PERIOD + 2)
    bones, spans = [], {}
    for side, first in (("L", 1), ("R", 1 + walks.PERIOD // 2)):
        strikes = [first + walks.PERIOD * k for k in (0, 1)]
        spans[f"heel.{side}"] = [(f + (f > 1), f + 7) for f in strikes]  # held where it strikes
        spans[f"toe.{side}"] = [(f + 4, f + walks.STANCE - 1) for f in strikes]
    for bone, each in spans.items():
        plant(rig, bone, each, plant_rotation=False)
        bones.append(bone)
    feet = ["foot.L", "foot.R"]

    def pitches():
        found = []
        for frame in frames:
            bpy.context.scene.frame_set(frame)
            found.append([rig.pose.bones[foot].matrix.to_euler().x for foot in feet])
        return np.degrees(np.array(found))

    before = pitches()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, frames[-1]))
    assert report.unsolved_count() == 0, report.summary()
    seen = walks.heads(rig, bones, frames)
    for k, bone in enumerate(bones):
        for a, b in spans[bone]:
            stand = seen[a - 1 : min(b, frames[-1]), k]
            assert np.abs(stand - stand[0]).max() < SLIP, bone
    rolled = pitches()
    stands = np.array([[walks.down(foot[-1], frame) for foot in feet] for frame in frames])
    assert np.ptp(rolled[stands]) > 30.0
    assert np.abs(rolled - before)[stands].max() < 6.0


def test_a_body_that_climbs_or_tips_is_said(ext, bake):
    """Whole feet held under a body that follows them: what their roll turns goes into the body."""
    rig = walks.walk(ext, 4)
    frames = range(1, 4 * walks.PERIOD + 2)
    for foot in ("foot.L", "foot.R"):
        plant(rig, foot)
    bpy.ops.ccd_rig.contacts_find(walk_on=False)
    rig.ccd_rig.body = "FOLLOW_FEET"
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, frames[-1]))
    drift = report.body.drift
    assert drift.words() in report.summary()
    assert any(word in drift.words() for word in ("climbs", "sinks", "tips"))
    seen = walks.heads(rig, ["hips"], frames)[:, 0, 2]
    rig.animation_data.action = next(a for a in bpy.data.actions if a != rig.animation_data.action)
    assert drift.rise.frame in frames
    assert abs(drift.rise.amount) == pytest.approx(np.abs(seen - seen[0]).max(), abs=0.05)


def test_a_foot_that_is_planted_in_the_air_floats(ext, bake):
    rig = walks.walk(ext, 2, in_place=False)
    top = walks.STANCE + (walks.PERIOD - walks.STANCE) // 2 + 1
    plant(rig, "toe.L", [(top, walks.PERIOD + 6)])
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, walks.PERIOD + 6))
    assert "'toe.L' floats, held" in report.summary()
    assert report.body.drift.hover.bone == "toe.L"


def test_feet_of_a_body_that_sways_stand(ext):
    """They go along with it to the front and back, and never leave the ground: no treadmill is under them."""
    rig = rigs.metarig("basic_quadruped")
    hips = next(bone for bone in rig.pose.bones if bone.parent is None)
    front = hips.bone.matrix_local.to_3x3().inverted() @ Vector((0.03, -0.1, 0.0))
    for frame, part in ((1, 0.0), (6, 1.0), (12, 0.0)):
        hips.location = part * front
        hips.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_end = 12
    bpy.context.scene.frame_set(1)
    select(ext, rig, *(f"{toe}.{side}" for toe in ("front_toe", "toe") for side in "LR"))
    assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    assert rig.ccd_rig.body != "WALK_ON"
    bpy.ops.ccd_rig.bake(frame_start=1, frame_end=12)
    assert rig.ccd_rig.report.words.startswith("12 of 12 frames reached")
