"""Planted bones on the armature's Ground: soles on the surface, turned to its slope, and carried along."""

from __future__ import annotations

import math
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs
import walks
from mathutils import Quaternion, Vector
from playing import angles, rotations
from walks import select

SLIP, ON = 1e-3, 2e-3  # [m] what a planted bone may slide, and be off the surface
SOLE = 0.02  # [m] of the ball's joint above the sole
FEET = ("toe.L", "toe.R")


def plane(name, height):
    """A mesh of one face at z = height(x, y)."""
    return rigs.ground(height, (-8.0, 8.0), name=name)


def waves(name, height):
    return rigs.ground(height, np.linspace(-4.0, 4.0, 121).tolist(), name=name)


def stand_on(rig, thing):
    rig.ccd_rig.ground.kind, rig.ccd_rig.ground.object = "OBJECT", thing
    rigs.activate(rig)


def plant(rig, tip, **fields):
    return walks.plant(rig, tip, **{"plant_on_ground": True, **fields})


def planted_rows(rig, tip, frames):
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        found.append(rig.ccd_rig.constraints[tip].influence > 0.5)
    return np.array(found)


def test_balls_of_a_walk_over_a_level_lie_on_hills(ext, bake):
    """The animation is a walk on a level: feet that are down go to the surface, and stay where they are."""
    rig = walks.walk(ext, 2, in_place=False)
    scene, frames = bpy.context.scene, range(1, 2 * walks.PERIOD + 2)

    def height(x, y):
        return 0.02 * math.sin(4.0 * y) + 0.03 * x

    stand_on(rig, waves("Hills", height))
    select(ext, rig, *FEET)
    assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    assert all(row.plant_on_ground for row in rig.ccd_rig.constraints)
    report = bake.bake(scene, rig, bake.BakeSettings(1, frames[-1]))
    assert report.check.mismatches() == ()
    balls = walks.heads(rig, FEET, frames)
    for k, tip in enumerate(FEET):
        down = planted_rows(rig, tip, frames)
        assert down.sum() > 15
        off = np.array([ball[2] - height(*ball[:2]) for ball in balls[down, k]])
        assert np.abs(off - SOLE).max() < ON
        steps = np.diff(balls[:, k], axis=0)[down[1:] & down[:-1]]
        assert np.linalg.norm(steps, axis=1).max() < SLIP


LEGS = [f"{name}.{side}" for name in ("thigh", "shin", "foot", "toe") for side in "LR"]


def largest_turn(rig, frames):
    """Degrees of the largest turn of a leg's bone from a frame to the next, against its parent."""
    turns = rotations(rig, frames)[:, [rig.pose.bones.find(name) for name in LEGS]]
    return math.degrees(angles(turns[1:], turns[:-1]).max())


@pytest.mark.parametrize(
    ("height", "most"),
    [
        (lambda x, y: -0.36 * y, 1.2),
        (lambda x, y: 0.36 * y, 1.4),
        (lambda x, y: 0.27 * x, 1.4),
        (lambda x, y: 0.15 * math.sin(2.0 * y), 1.4),
    ],
    ids=["up", "down", "across", "over hills"],
)
def test_a_walk_in_place_that_walks_on_climbs_with_the_ground(ext, bake, height, most):
    """Feet come down and leave as evenly as on a level, and the hips go up and down with the slope."""
    rig, scene = walks.walk(ext, 3), bpy.context.scene
    frames = range(1, 3 * walks.PERIOD + 2)
    cycle = largest_turn(rig, frames)
    level = walks.heads(rig, ("hips",), frames)[:, 0, 2]
    stand_on(rig, waves("Slopes", height))
    select(ext, rig, *FEET)
    assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    assert rig.ccd_rig.body == "WALK_ON"
    report = bake.bake(scene, rig, bake.BakeSettings(1, frames[-1]))
    assert report.unsolved_count() == 0, report.summary()
    assert largest_turn(rig, frames) < most * cycle
    hips, *balls = np.moveaxis(walks.heads(rig, ("hips", *FEET), frames), 1, 0)
    below = np.array([height(*hip[:2]) for hip in hips])
    assert np.abs(hips[:, 2] - level - below).max() < 0.07
    for tip, ball in zip(FEET, balls, strict=True):
        off = ball[:, 2] - SOLE - np.array([height(*each[:2]) for each in ball])
        down = planted_rows(rig, tip, frames)
        assert down.sum() > 30
        assert np.abs(off[down]).max() < ON
        within = np.flatnonzero(down)[[0, -1]]  # beyond, nothing says where it comes down
        assert off[within[0] : within[1]].min() > -0.02


def test_contacts_of_a_walk_in_place_are_those_on_a_level(ext, bake):
    """It will be over other places than the ground that is below it while it walks in place."""
    rig = walks.walk(ext, 2)
    spans = []
    for height in (lambda x, y: 0.0, lambda x, y: -0.4 * y):
        stand_on(rig, plane("Slope", height))
        select(ext, rig, *FEET)
        assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
        spans.append([planted_rows(rig, tip, range(1, 2 * walks.PERIOD + 2)).tolist() for tip in FEET])
        rig.ccd_rig.constraints.clear()
    assert spans[0] == spans[1]
    assert any(map(any, spans[0]))


def test_the_lift_of_a_body_is_the_mean_of_its_feet(ext):
    """On a slope it goes straight on; one foot higher than the other all the time does not rock it."""
    lift, frames = ext.module("ccd_rig.blender.bake.body_motion").lift, np.arange(1.0, 41.0)
    left, right = np.arange(-4.0, 50.0, 20.0), np.arange(6.0, 50.0, 20.0)
    slope = [np.column_stack((times, 0.02 * times)) for times in (left, right)]
    np.testing.assert_allclose(lift(frames, slope), 0.02 * frames, atol=1e-12)
    beside = [np.column_stack((times, at + 0.0 * times)) for times, at in ((left, 0.1), (right, -0.04))]
    np.testing.assert_allclose(lift(frames, beside), 0.03, atol=1e-12)
    np.testing.assert_allclose(lift(frames, [np.array([[7.0, 0.2]])]), 0.2, atol=1e-12)
    np.testing.assert_array_equal(lift(frames, []), np.zeros(40))


@pytest.mark.parametrize("degrees", [12.0, 60.0])
def test_a_whole_foot_is_turned_to_the_slope_up_to_the_steepest(bake, degrees):
    rig, scene = walks.figure(), bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 3
    for frame in (1, 3):
        rig.pose.bones["hips"].location = (0.0, -0.05, 0.0)
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
    slope = math.tan(math.radians(12.0)) if degrees < 30 else math.tan(math.radians(60.0))
    place = rig.data.bones["foot.L"].head_local
    stand_on(rig, plane("Slope", lambda x, y: slope * (place.y - y)))
    rig.ccd_rig.walk.steepest = math.radians(25.0)
    plant(rig, "foot.L")
    rigs.update()
    bake.bake(scene, rig, bake.BakeSettings(1, 3))
    scene.frame_set(2)
    bone = rig.pose.bones["foot.L"]
    rest = bone.bone.matrix_local.to_3x3()
    up = (bone.matrix.to_3x3() @ rest.inverted()).col[2]
    expected = min(degrees, 25.0)
    assert math.degrees(math.acos(up.z)) == pytest.approx(expected, abs=0.2)
    assert up.y > 0.0 and abs(up.x) < 1e-3, "it rises ahead, as the ground does"
    sole = bone.head - place.z * up
    on = sole.z - slope * (place.y - sole.y)
    assert abs(on) < (ON if degrees < 30 else 0.2)


def test_a_foot_goes_along_with_ground_that_moves(bake):
    rig, scene = walks.figure(), bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 11
    thing = plane("Lift", lambda x, y: 0.0)
    for frame, place in ((1, (0.0, 0.0, 0.0)), (11, (0.05, -0.04, 0.06))):
        thing.location = place
        thing.keyframe_insert("location", frame=frame)
        rig.pose.bones["hips"].location = (0.0, -0.08, 0.0)
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
    stand_on(rig, thing)
    for tip in ("foot.L", "foot.R"):
        plant(rig, tip)
    rigs.update()
    bake.bake(scene, rig, bake.BakeSettings(1, 11))
    feet = walks.heads(rig, ("foot.L", "foot.R"), range(1, 12))
    places = []
    for frame in range(1, 12):
        scene.frame_set(frame)
        places.append(thing.matrix_world.translation[:])
    gone = np.array(places) - places[0]
    np.testing.assert_allclose(feet - feet[0], np.repeat(gone[:, None], 2, axis=1), atol=SLIP)


def test_where_the_ground_carries_a_foot_away_is_told_in_metres(ext, bake, errors, monkeypatch):
    """A unit of the scene is a centimetre. Faces are looked for in two frames at a time."""
    monkeypatch.setattr(ext.module("ccd_rig.blender.scene.ground"), "ROWS", 2)
    rig, scene = walks.figure(), bpy.context.scene
    scene.unit_settings.scale_length = 0.01
    thing = rigs.ground(lambda x, y: 0.0, np.linspace(-8.0, 8.0, 161).tolist(), name="Belt")
    for frame in (1, 11):
        thing.location.y = 300.0 * (frame - 1)
        thing.keyframe_insert("location", frame=frame)
    stand_on(rig, thing)
    plant(rig, "foot.L")
    x, y, _ = walks.heads(rig, ("foot.L",), [1])[0, 0]
    with pytest.raises(errors.RigError) as told:
        bake.bake(scene, rig, bake.BakeSettings(1, 11))
    assert f"at ({0.01 * x:.3g}, {0.01 * y:.3g})" in str(told.value)


def squatting(frames):
    """A figure whose hips are keyed low enough for both feet, planted on its ground."""
    rig = walks.figure()
    for frame in frames:
        rig.pose.bones["hips"].location = (0.0, -0.08, 0.0)
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
    for tip in ("foot.L", "foot.R"):
        plant(rig, tip)
    return rig


def lift(heights):
    """Level ground at keyed heights."""
    thing = plane("Lift", lambda x, y: 0.0)
    for frame, height in heights.items():
        thing.location.z = height
        thing.keyframe_insert("location", frame=frame)
    return thing


def test_solve_reads_the_ground_of_a_remapped_scene_where_it_is_shown():
    """Frame 11 of a scene twice as slow shows what is keyed at frame 6, see Blender's Time Stretching."""
    rig, scene = squatting((1,)), bpy.context.scene
    thing = lift({1: 0.0, 21: 0.1})
    stand_on(rig, thing)
    scene.render.frame_map_old, scene.render.frame_map_new = 100, 200
    scene.frame_set(11)
    rigs.update()
    shown = thing.matrix_world.translation.z
    assert 0.0 < shown < 0.04, "the scene is remapped"
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    height = rig.data.bones["foot.L"].head_local.z
    assert rig.pose.bones["foot.L"].head.z == pytest.approx(shown + height, abs=ON)


@pytest.mark.parametrize("kind", ["MESH", "CURVE"])
def test_hidden_ground_is_read_frame_by_frame(bake, kind):
    """Hidden by its monitor icon: Blender does not evaluate it in the scene by itself."""
    rig, scene = squatting((1, 11)), bpy.context.scene
    thing = lift({1: -0.05, 11: 0.05})
    if kind == "CURVE":
        data = bpy.data.curves.new("Band", "CURVE")
        data.extrude = 8.0
        spline = data.splines.new("POLY")
        spline.points.add(1)
        for point, x in zip(spline.points, (-8.0, 8.0), strict=True):
            point.co, point.tilt = (x, 0.0, 0.0, 1.0), math.pi / 2.0
        band = rigs.link(data, "Band")
        data.dimensions = "3D"
        band.parent, thing = thing, band
    stand_on(rig, thing)
    rigs.update()
    baked = []
    for hidden in (False, True):
        thing.hide_viewport = hidden
        bake.bake(scene, rig, bake.BakeSettings(1, 11))
        baked.append(walks.heads(rig, ("foot.L",), range(1, 12))[:, 0, 2])
    shown, hidden = baked
    assert np.ptp(shown) == pytest.approx(0.1, abs=2.0 * ON)
    np.testing.assert_allclose(hidden, shown, atol=SLIP)


def test_the_ground_at_rest_is_that_of_the_first_frame_whatever_frame_is_shown(bake):
    """The armature object sinks by its keys: feet stay down where it stood as the range began."""
    scene, height = bpy.context.scene, None
    for shown in (1, 11):
        rig = squatting((1, 11))
        for frame, z in ((1, 0.2), (11, 0.15)):
            rig.location.z = z
            rig.keyframe_insert("location", frame=frame)
        scene.frame_set(shown)
        rigs.update()
        bake.bake(scene, rig, bake.BakeSettings(1, 11))
        height = rig.data.bones["foot.L"].head_local.z
        feet = walks.heads(rig, ("foot.L",), range(1, 12))[:, 0, 2]
        np.testing.assert_allclose(feet, 0.2 + height, atol=ON)
        bpy.data.objects.remove(rig)


def test_off_it_stays_where_it_was_and_solve_does_as_a_bake(bake):
    rig, scene = walks.figure(), bpy.context.scene
    scene.frame_start = scene.frame_end = 1
    rig.pose.bones["hips"].location = (0.0, -0.08, 0.0)
    rig.pose.bones["hips"].keyframe_insert("location", frame=1)
    stand_on(rig, plane("Level", lambda x, y: 0.05))
    row = plant(rig, "foot.L", plant_on_ground=False)
    rigs.update()
    before = walks.heads(rig, ("foot.L",), (1,))
    bpy.ops.ccd_rig.solve()
    rigs.update()
    assert np.abs(walks.heads(rig, ("foot.L",), (1,)) - before).max() < SLIP
    row.plant_on_ground = True
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    height = rig.data.bones["foot.L"].head_local.z
    solved = (rig.matrix_world @ rig.pose.bones["foot.L"].head).z
    assert solved == pytest.approx(0.05 + height, abs=ON)
    bake.bake(scene, rig, bake.BakeSettings(1, 1))
    assert walks.heads(rig, ("foot.L",), (1,))[0, 0, 2] == pytest.approx(solved, abs=SLIP)


def test_a_ground_that_is_not_chosen_is_told(ext, bake):
    rig, scene = walks.figure(), bpy.context.scene
    plant(rig, "foot.L")
    rig.ccd_rig.ground.kind = "OBJECT"
    rigs.update()
    with pytest.raises(ext.core.RigError, match="none is chosen"):
        bake.bake(scene, rig, bake.BakeSettings(1, 3))


@pytest.mark.parametrize("on_ground", [True, False])
@pytest.mark.parametrize("first", [2, 3])
def test_a_foot_that_comes_down_from_hips_too_high_takes_these_down_as_far_as_it_must(bake, on_ground, first):
    """What does not come down with the body, the ground's height or an animated one, is not moved by it.

    The body is moved from the range's first frame on, so that a foot comes down elsewhere in the second.
    """
    rig, scene = walks.figure(), bpy.context.scene
    frames = range(1, 31)
    high = 0.05
    for frame, ahead in ((1, 0.0), (30, 1.0)):
        rig.pose.bones["hips"].location = (0.0, high, ahead)
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
    stand_on(rig, plane("Level", lambda x, y: 0.0 if on_ground else high))
    for tip, down in (("foot.L", range(first, 13)), ("foot.R", range(16, 31))):
        row = plant(rig, tip, plant_on_ground=on_ground, plant_height=False)
        for frame in frames:
            row.influence = float(frame in down)
            row.keyframe_insert("influence", frame=frame)
    rigs.update()
    rest = rig.data.bones["foot.L"].head_local.z
    report = bake.bake(scene, rig, bake.BakeSettings(1, 30))
    assert report.unsolved_count() == 0, report.summary()
    feet = walks.heads(rig, ("foot.L", "foot.R"), frames)
    (hips,) = np.moveaxis(walks.heads(rig, ("hips",), frames), 1, 0)
    sunk = rig.data.bones["hips"].head_local.z + high - hips[:, 2]
    assert np.abs(sunk).max() < 0.25, "a fraction of a leg's length"
    for k, tip in enumerate(("foot.L", "foot.R")):
        down = planted_rows(rig, tip, frames)
        if on_ground:
            assert np.abs(feet[down, k, 2] - rest).max() < ON


def test_a_second_bake_turns_a_bone_over_the_slope_no_further(bake):
    """Without Rotation the bone turns as it is animated, over the slope: as before the first bake."""
    rig, scene = walks.figure(), bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 5
    for frame in (1, 5):
        rig.pose.bones["hips"].location = (0.0, -0.05, 0.0)
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
        rig.pose.bones["foot.L"].keyframe_insert("rotation_quaternion", frame=frame)
    place = rig.data.bones["foot.L"].head_local
    stand_on(rig, plane("Slope", lambda x, y: 0.2 * (place.y - y)))
    plant(rig, "foot.L", plant_rotation=False)
    rigs.update()
    ups = []
    for _ in range(3):
        bake.bake(scene, rig, bake.BakeSettings(1, 5))
        scene.frame_set(3)
        bone = rig.pose.bones["foot.L"]
        ups.append((bone.matrix.to_3x3() @ bone.bone.matrix_local.to_3x3().inverted()).col[2].copy())
    turned = [math.degrees(up.angle((0.0, 0.0, 1.0))) for up in ups]
    np.testing.assert_allclose(turned, math.degrees(math.atan(0.2)), atol=0.2)


def up_of(rig, tip):
    """The world's Z of a bone at rest, as the present pose has it."""
    bone = rig.pose.bones[tip]
    return (bone.matrix.to_3x3() @ bone.bone.matrix_local.to_3x3().inverted()).col[2].copy()


@pytest.mark.parametrize("keep_body", [True, False])
def test_solve_pressed_again_turns_a_bone_over_the_slope_no_further(ext, keep_body):
    """Without Rotation the bone turns from the pose before the first press, while nothing else poses it."""
    rig = walks.figure()
    rig.ccd_rig.body = "KEEP_ANIMATION" if keep_body else "FOLLOW_FEET"
    hips, foot = rig.pose.bones["hips"], rig.pose.bones["foot.L"]
    hips.location = (0.0, -0.05, 0.0)
    place = rig.data.bones["foot.L"].head_local
    stand_on(rig, plane("Slope", lambda x, y: 0.2 * (place.y - y)))
    plant(rig, "foot.L", plant_rotation=False)
    rigs.update()
    slope, turned, poses = math.degrees(math.atan(0.2)), [], []
    for _ in range(4):
        assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
        rigs.update()
        turned.append(math.degrees(up_of(rig, "foot.L").angle((0.0, 0.0, 1.0))))
        poses.append([bone.rotation_quaternion[:] for bone in rig.pose.bones])
    np.testing.assert_allclose(turned, slope, atol=0.05)
    np.testing.assert_allclose(poses[1:], poses[:-1], atol=1e-3)
    # A foot that is posed anew is turned once from there.
    foot.rotation_quaternion = Quaternion((0.0, 0.0, 1.0), 0.3) @ foot.rotation_quaternion
    rigs.update()
    ups = []
    for _ in range(3):
        bpy.ops.ccd_rig.solve()
        rigs.update()
        ups.append(up_of(rig, "foot.L"))
    assert max(math.degrees(up.angle(ups[0])) for up in ups[1:]) < 0.05
    # Hips that move take their feet along, which are not turned twice.
    hips.location = (0.03, -0.07, 0.02)
    rigs.update()
    before = math.degrees(up_of(rig, "foot.L").angle((0.0, 0.0, 1.0)))
    bpy.ops.ccd_rig.solve()
    rigs.update()
    assert math.degrees(up_of(rig, "foot.L").angle((0.0, 0.0, 1.0))) == pytest.approx(before, abs=0.05)


def soles(rig, frames):
    """(F, 2, 3, 3) of heel, ball and end of the toes of both feet, where they touch the ground at rest."""
    seen = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        for side, x in (("L", 0.1), ("R", -0.1)):
            for bone, y in (("foot", walks.HEEL.y), ("foot", walks.BALL.y), ("toe", -0.2)):
                pose_bone = rig.pose.bones[f"{bone}.{side}"]
                rest = pose_bone.bone.matrix_local.inverted()
                seen.append((pose_bone.matrix @ rest @ Vector((x, y, 0.0)))[:])
    return np.array(seen).reshape(len(frames), 2, 3, 3)


@pytest.mark.parametrize(
    "height",
    [
        lambda x, y: 0.0,
        lambda x, y: -0.36 * y,
        lambda x, y: 0.36 * x,
        lambda x, y: 0.04 * math.sin(9.0 * y) * math.cos(7.0 * x),
        lambda x, y: 0.08 * (y < -0.8),
    ],
    ids=["level", "up", "across", "bumps", "kerb"],
)
def test_neither_heels_nor_swinging_feet_get_into_the_ground(ext, bake, height):
    """A ball that is planted as its heel strikes takes the heel down to the ground, not through it."""
    rig, scene = walks.walk(ext, 3), bpy.context.scene
    frames = range(1, 3 * walks.PERIOD + 2)
    cycle = largest_turn(rig, frames)
    thing = waves("Ground", height)
    stand_on(rig, thing)
    select(ext, rig, *FEET)
    assert bpy.ops.ccd_rig.feet_plant() == {"FINISHED"}
    bake.bake(scene, rig, bake.BakeSettings(1, frames[-1]))
    points = soles(rig, frames)
    above = np.array([place.z - surface(thing, place) for place in map(Vector, points.reshape(-1, 3))])
    above = above.reshape(points.shape[:-1])
    for k, tip in enumerate(FEET):
        first, last = np.flatnonzero(planted_rows(rig, tip, frames))[[0, -1]]
        assert above[first : last + 1, k].min() > -2.5e-3
    assert largest_turn(rig, frames) < 1.3 * cycle


def surface(thing, place):
    hit, on, _, _ = thing.ray_cast((place.x, place.y, 10.0), (0.0, 0.0, -1.0))
    assert hit
    return on.z


def test_a_leg_that_something_else_moves_is_not_lifted(bake):
    """The target of its Reach says where it swings."""
    rig, scene = walks.figure(), bpy.context.scene
    rig.pose.bones["hips"].location = (0.0, -0.08, 0.0)
    rig.pose.bones["hips"].keyframe_insert("location", frame=1)
    stand_on(rig, plane("Level", lambda x, y: 0.05))
    row = plant(rig, "foot.L")
    for frame in range(1, 13):
        row.influence = float(frame < 4)
        row.keyframe_insert("influence", frame=frame)
    target = rigs.empty("Target", rig.data.bones["foot.L"].head_local)
    rigs.reach(rig, "foot.L", target, "R", chain_length=3, use_tail=False)
    rigs.update()
    bake.bake(scene, rig, bake.BakeSettings(1, 12))
    feet = walks.heads(rig, ("foot.L",), range(1, 13))[:, 0]
    assert np.linalg.norm(feet[8:] - target.location, axis=1).max() < SLIP


def test_the_sole_of_toes_ends_with_the_last_of_their_bones(ext):
    """A second bone goes on from the toes, on one foot."""
    planting = ext.module("ccd_rig.blender.solve.planting")
    rig = rigs.armature(rigs.biped())
    with rigs.edit_bones(rig) as bones:
        toe, end = bones["toe.L"], bones.new("end.L")
        end.head, end.tail = toe.tail, toe.tail + 1.5 * (toe.tail - toe.head)
        end.parent, end.use_connect = toe, True
    fars = {}
    for side in "LR":
        row = SimpleNamespace(tip=f"toe.{side}", chain_length=4)
        sole = planting.sole_of(rig, row, "hips", rig.matrix_world, 0.0)
        assert sole.foot == f"foot.{side}"
        fars[side] = np.linalg.norm(sole.points, axis=1).max()
    long, short = (
        rig.data.bones[name].tail_local - rig.data.bones[f"toe.{name[-1]}"].head_local
        for name in ("end.L", "toe.R")
    )
    assert fars["L"] == pytest.approx(long.length, rel=0.05)
    assert fars["R"] == pytest.approx(short.length, rel=0.2)
    assert fars["L"] > 2.0 * fars["R"]
