"""The motion of one armature on another, as Blender plays it: a figure that walks, and Rigify's metarigs."""

from __future__ import annotations

import math
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs
import walks
from mathutils import Matrix, Quaternion, Vector
from retargeting import keys, legs, odd_source, played, refused, run

FEET = ("foot.L", "foot.R")


def test_a_metarig_walks_as_the_source_does(source, target):
    run(target)
    scale = legs(target, "thigh.L", "shin.L", "foot.L") / legs(source, "thigh.L", "shin.L", "foot.L")
    frames = range(1, 50)
    own, ours = played(source, ("thigh.L", *FEET), frames), played(target, ("thigh.L", *FEET), frames)
    travel, own_travel = np.ptp(ours[:, 0, 1]), np.ptp(own[:, 0, 1])
    assert own_travel > 1.2
    assert travel == pytest.approx(scale * own_travel, rel=0.02)
    # Balls of the feet hold still where the source's feet stand flat; first and last frame of that apart.
    for side in "LR":
        ball = played(target, (f"toe.{side}",), frames)[:, 0]
        flat = np.array([f for f in frames if 4 <= walks._phase(side, f) <= 6])
        for rows in np.split(flat - 1, np.flatnonzero(np.diff(flat) > 1) + 1):
            assert np.ptp(ball[rows], axis=0).max() < 1e-4
    assert "frames" in target.ccd_rig.retarget.report


def controlled(rig):
    """The figure as a rig of controls: a constraint may turn its head."""
    rig.pose.bones["CC_Base_Head"].constraints.new("LIMIT_ROTATION")
    return rig


@pytest.mark.parametrize(
    ("built", "off"),
    [
        (lambda rig: walks.hung_beside(rig, True), 0.005),  # the pivot turns about another point
        (lambda rig: walks.hung_beside(rig, False), 0.005),
        (lambda rig: controlled(walks.hung_beside(rig, False)), 0.005),
        (walks.stood_on, 1e-4),
        (lambda rig: controlled(walks.stood_on(rig)), 1e-4),
    ],
)
def test_a_figure_whose_hips_do_not_carry_it_goes_along_as_a_whole(source, built, off):
    """Legs and spine beside each other on a pivot, or hips connected to a bone on the ground."""
    plain, rig = walks.familiar(walks.figure()), built(walks.familiar(walks.figure()))
    for each in (plain, rig):
        run(each, source=source)
    names = [bone.name for bone in plain.data.bones]
    np.testing.assert_allclose(played(rig, names), played(plain, names), atol=off)
    assert "carried" not in rig.ccd_rig.retarget.report
    if "mast" in rig.pose.bones:
        assert rig.pose.bones["mast"].rotation_quaternion == Quaternion()


@pytest.mark.parametrize("is_controlled", [False, True])
def test_what_hangs_on_another_root_is_left_behind_and_told(retarget, carried_over, source, is_controlled):
    rig = walks.hung_beside(walks.familiar(walks.figure()), False)
    with walks.edited(rig) as bones:
        bones[walks.WAIST].parent = None
    if is_controlled:  # by what moves it a rig of controls may carry it, or not, as here
        rig.pose.bones[walks.WAIST].constraints.new("LIMIT_ROTATION")
    done = carried_over(source, rig)
    first = "CC_Base_Head" if is_controlled else walks.WAIST  # the waist follows nothing here
    words = f"Not carried along with '{done.bone_map.hips}': '{first}'; parent them and it to one bone"
    assert words in retarget.lines(done) and words in retarget.warnings(done)
    assert retarget.as_values(done)["left_behind"] == [first]


def test_a_carrier_that_is_to_follow_nothing_leaves_the_rest_behind(retarget, carried_over, source):
    rig = walks.hung_beside(walks.familiar(walks.figure()), False)
    pair = rig.ccd_rig.retarget.pairs.add()
    pair.name = "pivot"
    done = carried_over(source, rig)
    assert (done.bone_map.hips, done.left) == (walks.HIP, (walks.WAIST,))


def test_a_target_whose_rest_is_no_pose_is_refused(source):
    """Its feet would be held as high above the ground as they are at rest, which no report could tell."""
    rig = walks.legs_up(walks.familiar(walks.figure()))
    refused("rest pose of 'Walker.001' is no pose of a body: 'CC_Base_L_Foot' is above", rig, source=source)


def test_the_action_before_stays_and_the_source_is_left_alone(ext, source, target):
    own = keys(ext, source)
    target.pose.bones[0].keyframe_insert("location", frame=500)
    old = target.animation_data.action
    run(target)
    assert target.animation_data.action not in (None, old)
    assert old.use_fake_user
    assert keys(ext, source) == own
    assert max(frame for points in keys(ext, target).values() for frame, _ in points) == 49.0


def test_a_retargeted_walk_outlasts_targets_with_settings_that_move(source, target):
    """Limbs under constraints whose settings keys and drivers move: a bake of matched targets keeps it."""

    def limb(tip, **fields):
        poles = {"pole_target": rigs.empty(f"Pole {tip}", (0.3, -2.0, 0.8))}
        return rigs.reach(target, tip, rigs.empty(f"Goal {tip}"), chain_length=2, **poles, **fields)

    legs_ = [limb(f"shin.{side}", method="TWO_BONE") for side in "LR"]
    arm = limb("forearm.L")
    other = rigs.reach(target, "forearm.R", rigs.empty("Goal R"), chain_length=2, rotation="ORIENTATION")
    for place, expression in (
        ((legs_[0], "soft"), "0.3 + 0.004 * frame"),
        ((arm, "offset", 1), "0.01 * frame"),
        ((other, "rotation_weight"), "0.1 + 0.05 * frame"),
    ):
        place[0].driver_add(*place[1:]).driver.expression = expression
    run(target)
    for row, field, values in (
        (legs_[1], "soft", (0.5, 0.1)),
        (legs_[1], "pole_angle", (-0.8, 0.9)),
        (arm, "weight", (0.2, 3.0)),
        (other, "max_extension", (1.0, 0.999)),
    ):
        for frame, value in zip((1, 49), values, strict=True):
            setattr(row, field, value)
            row.keyframe_insert(field, frame=frame)
    rigs.activate(target)
    tips = ("shin.L", "shin.R", "foot.L", "foot.R", "forearm.L", "forearm.R", "hand.L", "hand.R")
    before = played(target, tips)
    assert bpy.ops.ccd_rig.targets_from_motion() == {"FINISHED"}
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    np.testing.assert_allclose(played(target, tips), before, atol=1e-4)


def test_again_with_other_settings_between_gives_the_same_keys(ext, source, target):
    run(target)
    first = keys(ext, target)
    run(target, in_place=True, scale=0.5, contacts=False)
    assert keys(ext, target) != first
    run(target, in_place=False, scale=0.0, contacts=True)
    assert keys(ext, target) == first


def test_any_rotation_mode_plays_the_same(source, target):
    run(target)
    bones = [bone.name for bone in target.pose.bones]
    wanted = played(target, bones, range(1, 50, 7))
    for mode in ("XYZ", "ZXY", "AXIS_ANGLE", "QUATERNION"):
        for bone in target.pose.bones:
            bone.rotation_mode = mode
        run(target)
        np.testing.assert_allclose(played(target, bones, range(1, 50, 7)), wanted, atol=2e-5)


def test_a_source_at_another_rate_keeps_its_speed(ext, source, target):
    fps = bpy.context.scene.render.fps
    run(target, source_fps=2.0 * fps)
    found = keys(ext, target)
    assert {len(points) for points in found.values()} == {25}
    ankles, whole = played(target, FEET, range(1, 26)), played(source, FEET, range(1, 50, 2))
    assert np.corrcoef(ankles[:, 0, 1], whole[:, 0, 1])[0, 1] > 0.999


def test_a_scaled_and_turned_armature_walks_the_same_way_in_the_world(source, target):
    run(target)
    wanted = played(target, FEET)
    target.matrix_world = Matrix.LocRotScale(
        Vector((0.0, 0.0, 0.0)), Quaternion((0.0, 0.0, 1.0), 1.0), Vector((2.0, 2.0, 2.0))
    )
    rigs.update()
    run(target)
    np.testing.assert_allclose(played(target, FEET)[:, :, 2], 2.0 * wanted[:, :, 2], atol=2e-3)
    travel = [np.ptp(feet[:, 0, 1]) for feet in (played(target, FEET), wanted)]
    assert travel[0] == pytest.approx(2.0 * travel[1], rel=0.02)


def test_each_figure_walks_from_where_its_object_is(source, target):
    run(target)
    wanted = played(target, ("spine", *FEET))
    source.location = (4.0, 1.0, 0.0)
    target.location = (-2.0, 0.5, 0.3)
    rigs.update()
    run(target)
    np.testing.assert_allclose(
        played(target, ("spine", *FEET)), wanted + np.array((-2.0, 0.5, 0.3)), atol=1e-4
    )


def test_a_rest_that_lies_walks_upright(source, target):
    run(target)
    wanted = played(target, ("spine", *FEET))
    target.animation_data_clear()
    target.data.transform(Matrix.Rotation(math.radians(-90.0), 4, "X"))
    rigs.update()
    run(target)
    found = played(target, ("spine", *FEET))
    np.testing.assert_allclose(np.diff(found, axis=0), np.diff(wanted, axis=0), atol=0.01)
    assert np.ptp(found[:, :, 2].mean(0)) > 0.7  # metres from feet to hips, upwards


def shown_and_baked(target, frame, **choices):
    """(feet, 3) where Show This Frame has feet at a frame, and where Retarget's keys have them."""
    run(target, **choices)
    bpy.context.scene.frame_set(frame)
    wanted = played(target, FEET, [frame])
    target.animation_data_clear()
    for bone in target.pose.bones:
        bone.matrix_basis = Matrix()
    bpy.context.scene.frame_set(frame)
    assert bpy.ops.ccd_rig.retarget_preview() == {"FINISHED"}
    rigs.update()
    assert target.animation_data is None or target.animation_data.action is None
    return [(target.matrix_world @ target.pose.bones[name].matrix).translation[:] for name in FEET], wanted[0]


@pytest.mark.parametrize(("frame", "rate"), [(11, 0.0), (20, 0.0), (34, 0.0), (14, 2.5), (80, 0.5)])
@pytest.mark.parametrize("in_place", [False, True])
def test_one_frame_is_shown_without_keys(source, target, frame, rate, in_place):
    """Contacts that begin or end near it count too, and the way from the first frame does."""
    source_fps = rate * bpy.context.scene.render.fps
    shown, wanted = shown_and_baked(target, frame, source_fps=source_fps, in_place=in_place)
    np.testing.assert_allclose(shown, wanted, atol=0.002)


def test_a_frame_is_shown_in_place_wherever_the_motion_begins(ext, source, target):
    """Two metres before the origin of the source's object."""
    for curve in ext.module("ccd_rig.blender.keys.channels").fcurves_of(source):
        if curve.data_path == 'pose.bones["hips"].location' and curve.array_index == 2:
            for point in curve.keyframe_points:
                point.co.y -= 2.0
            curve.update()
    shown, wanted = shown_and_baked(target, 34, in_place=True)
    np.testing.assert_allclose(shown, wanted, atol=0.002)


def test_a_frame_is_shown_as_far_as_the_object_of_the_source_has_come(source, target):
    rigs.keyed(source, {1: (0.0, 0.0, 0.0), 2: (2.0, 0.5, 0.0), 49: (2.0, 0.5, 0.0)})
    shown, wanted = shown_and_baked(target, 34)
    np.testing.assert_allclose(shown, wanted, atol=0.002)


def test_a_frame_follows_the_settings_while_they_change(source, target):
    bpy.context.scene.frame_set(20)
    group = target.ccd_rig.retarget

    def hips():
        rigs.update()
        return target.pose.bones["spine"].matrix.translation.copy()

    rest = hips()
    group.scale = 0.9
    assert hips() == rest  # it is off
    group.preview = True
    shown = hips()
    assert (shown - rest).length > 0.1
    group.scale = 0.5
    assert abs(hips().y) < 0.6 * abs(shown.y)
    group.source = target
    assert "is source and target at once" in group.report
    group.source = source
    assert group.report == ""
    source.animation_data_clear()
    group.hands = 0.5
    assert "has no action" in group.report


def test_controls_of_a_generated_rig_get_the_keys(ext, source):
    rig = rigs.generated("basic_human")
    rig.ccd_rig.retarget.source = source
    run(rig)
    keyed = {path.split('"')[1] for path, _ in keys(ext, rig)}
    assert {"torso", "thigh_fk.L", "shin_fk.R", "foot_fk.L"} <= keyed
    assert not any(name.startswith(("MCH", "ORG", "DEF")) for name in keyed)
    for side in "LR":
        parent = rig.pose.bones[f"thigh_parent.{side}"]
        bpy.context.scene.frame_set(10)
        assert parent["IK_FK"] == 1.0
    # What deforms follows: its feet are where those of the controls are, and travel as the source's do.
    feet = played(rig, ("DEF-foot.L", "foot_fk.L"), range(1, 50, 4))
    np.testing.assert_allclose(feet[:, 0], feet[:, 1], atol=1e-4)
    own = played(source, ("foot.L",), range(1, 50, 4))[:, 0]
    assert np.corrcoef(feet[:, 0, 1], own[:, 1])[0, 1] > 0.999


def test_feet_stand_at_the_height_that_is_asked_for(source, target):
    """Half a metre up: all of the figure, to the rounding of keys."""
    bones = ("spine", "hand.L", *FEET, "toe.L", "toe.R")
    run(target)
    before = played(target, bones)
    assert "Ground at a height of 0.000 m" in target.ccd_rig.retarget.report
    run(target, use_ground=True, ground=0.5)
    assert "Ground at a height of 0.500 m" in target.ccd_rig.retarget.report
    np.testing.assert_allclose(played(target, bones), before + np.array((0.0, 0.0, 0.5)), atol=1e-5)
    run(target, use_ground=False)
    np.testing.assert_allclose(played(target, bones), before, atol=1e-7)


def test_feet_go_along_with_ground_that_moves(source, target):
    """Of the frames that get keys, whatever the present one."""
    bones = (*FEET, "spine")
    run(target)
    before, ground = played(target, bones), target.ccd_rig.ground
    x, y, _ = target.location
    data = bpy.data.meshes.new("Lift")
    square = ((-9.0, -9.0), (9.0, -9.0), (9.0, 9.0), (-9.0, 9.0))
    data.from_pydata([(x + a, y + b, 0.0) for a, b in square], [], [(0, 1, 2, 3)])
    lift = rigs.keyed(rigs.link(data, "Lift"), {1: (0.0, 0.0, 0.0), 40: (0.0, 0.0, 0.39)})
    ground.kind, ground.object = "OBJECT", lift
    run(target)
    after = played(target, bones)
    heights = []
    for frame in range(1, 50):
        bpy.context.scene.frame_set(frame)
        heights.append(lift.matrix_world.translation.z)
    raised = (after - before)[..., 2] - np.array(heights)[:, None]
    off = np.sort(np.abs(raised), axis=0)  # feet in the air rise as they go ahead
    assert off[len(off) // 2, :2].max() < 1e-3 and off[-1].max() < 0.04
    lift.location.x = 900.0
    lift.animation_data_clear()
    refused("no ground is below its origin", target)


def test_feet_stand_on_the_ground_of_the_armature(source, target):
    """A height, or faces below the origin as they are now; a height of Retarget's own goes before."""
    bones = ("spine", "hand.L", *FEET, "toe.L", "toe.R")
    run(target)
    before, ground = played(target, bones), target.ccd_rig.ground

    def raised(by, words="Feet are laid on the faces of the Ground", near=5e-4):
        run(target)
        assert words in target.ccd_rig.retarget.report
        np.testing.assert_allclose(played(target, bones), before + np.array((0.0, 0.0, by)), atol=near)

    ground.kind, ground.height = "HEIGHT", 0.4
    raised(0.4, "Ground at a height of 0.400 m", 1e-5)
    x, y, _ = target.location
    data = bpy.data.meshes.new("Floor")
    square = ((-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0))
    corners = [(x + a, y + b, z) for z in (0.0, 5.0) for a, b in square]  # a floor and a ceiling
    data.from_pydata(corners, [], [(0, 1, 2, 3), (4, 5, 6, 7)])
    floor = rigs.link(data, "Floor")
    floor.location.z = 0.25
    ground.kind, ground.object = "OBJECT", floor
    raised(0.25)
    floor.location.z = 0.75
    raised(0.75)
    floor.location.z = 0.25
    ground.kind, ground.collection = "COLLECTION", bpy.data.collections.new("Set")
    refused("no object with faces", target)
    ground.collection.objects.link(floor)
    raised(0.25)
    run(target, use_ground=True, ground=0.5)
    assert "Ground at a height of 0.500 m" in target.ccd_rig.retarget.report
    target.ccd_rig.retarget.use_ground = False
    ground.kind = "REST"
    raised(0.0, "Ground at a height of 0.000 m", 1e-5)
    floor.animation_data_clear()
    floor.location.x, ground.kind = 20.0, "OBJECT"
    refused("no ground is below its origin", target)


@pytest.mark.parametrize(
    ("which", "frames"), [("FIRST", {1.0}), ("CURRENT", {4.0}), ("STRAIGHTEST", {5.0, 6.0, 7.0})]
)
def test_a_frame_of_the_source_becomes_its_reference(target, which, frames):
    target.ccd_rig.retarget.source = odd_source(target)
    bpy.context.scene.frame_set(4)
    rigs.activate(target)
    assert bpy.ops.ccd_rig.retarget_reference(frame=which) == {"FINISHED"}
    group = target.ccd_rig.retarget
    assert group.reference == "FRAME"
    assert group.reference_frame in frames
    assert bpy.context.scene.frame_current == 4
    run(target)


def test_weights_of_the_panel_bring_head_and_knees_to_the_source(carried_over, retarget, source, target):
    errors = []
    for weight in (0.0, 1.0):
        group = target.ccd_rig.retarget
        group.head, group.knees, group.elbows = weight, weight, weight
        done = carried_over(source, target)
        errors.append(done.measures.errors)
    assert errors[0]["head"] > 0.005
    assert errors[1]["head"] < 1e-3
    for side in ("left", "right"):
        assert errors[1][f"knee of the {side} leg"] <= errors[0][f"knee of the {side} leg"] + 1e-6
    lines = retarget.lines(done)
    assert any("worse knee: 0." in line and "the head: 0." in line for line in lines)


def test_sides_are_weighed_apart(carried_over, retarget, source, target):
    """In the panel's fields, whose right ones count only then."""
    group = target.ccd_rig.retarget
    group.hands_right, group.knees_right = 0.0, 0.5
    assert retarget.choice_of(target).settings.hands == 1.0
    group.sides_apart, group.feet_right = True, 1.0
    settings = retarget.choice_of(target).settings
    assert (settings.hands, settings.knees, settings.feet) == ((1.0, 0.0), (0.0, 0.5), (1.0, 1.0))
    done = carried_over(source, target)
    assert done.measures.followed == {"left leg", "right leg", "knee of the right leg"}


def test_one_frame_is_enough(retarget, source, target):
    done = retarget.retarget_motion(bpy.context.scene, source, target, retarget.RetargetChoice(frames=(5, 5)))
    assert list(done.frames) == [5.0]


@pytest.mark.parametrize("name", ["plain", 'quo"ted', "back\\slash", 'both"\\'])
def test_a_driven_bone_is_known_by_any_name(ext, name):
    rig = rigs.chain(3, 0.5)
    rig.data.bones["bone_1"].name = name
    figure_map = SimpleNamespace(sources={"bone_2": "head"})
    is_controlled = ext.module("ccd_rig.blender.retarget.sampling").is_controlled
    assert not is_controlled(rig, figure_map)
    rig.pose.bones[name].driver_add("location", 0)
    assert is_controlled(rig, figure_map)
