"""Limits learned from actions hold what the actions play, as Blender itself evaluates it."""

from __future__ import annotations

import math
import random

import bpy
import pytest
import rigs
from limit_tools import value
from mathutils import Quaternion, Vector
from operator_calls import fails, select

DEGREE = math.radians(1.0)
FLOAT32 = 1e-5  # [rad]
HINGE_TOLERANCE = 6.0 * DEGREE


def key(rig, name, rotations, step=4):
    """Key a bone's rotations, so many frames apart."""
    bone = rig.pose.bones[name]
    for number, rotation in enumerate(rotations):
        rigs.set_rotation(bone, rotation)
        channel = {"QUATERNION": "quaternion", "AXIS_ANGLE": "axis_angle"}.get(bone.rotation_mode, "euler")
        bone.keyframe_insert(f"rotation_{channel}", frame=1 + step * number)


def swings(seed, count=25, most=0.8):
    """A wandering ball joint."""
    rng = random.Random(seed)
    for _ in range(count):
        swing = Vector((rng.uniform(-0.2, most), 0.0, rng.uniform(-most, 0.4)))
        yield Quaternion(swing.normalized(), swing.length) @ Quaternion((0, 1, 0), rng.uniform(-0.3, 0.6))


def knee(degrees, axis=(1.0, 0.02, 0.0)):
    return [Quaternion(Vector(axis).normalized(), angle * DEGREE) for angle in degrees]


@pytest.fixture
def rig(ext):
    made = rigs.chain(4)
    made.pose.bones["bone_2"].rotation_mode = "ZXY"
    bpy.ops.object.mode_set(mode="POSE")
    return made


def played(rig, name):
    """The rotations that Blender plays, frame by frame."""
    scene = bpy.context.scene
    first, last = rig.animation_data.action.frame_range
    for frame in range(int(first), int(last) + 1):
        scene.frame_set(frame)
        yield rig.pose.bones[name].matrix_basis.to_quaternion()


def test_an_action_gives_hinges_and_swings_that_hold_it(ext, rig):
    key(rig, "bone_0", swings(1))
    key(rig, "bone_1", knee((3, 40, 78, 20)))
    key(rig, "bone_2", swings(2))
    select(ext, rig, "bone_0", "bone_1", "bone_2", "bone_3")
    frame = bpy.context.scene.frame_current
    assert bpy.ops.ccd_rig.limits_from_action(margin=0.0) == {"FINISHED"}
    assert bpy.context.scene.frame_current == frame
    kinds = [bone.ccd_rig.limit.kind for bone in rig.pose.bones]
    assert kinds == ["ELLIPSE", "HINGE", "ELLIPSE", "NONE"]
    violation = ext.module("ccd_rig.limits.shapes").violation
    for name in ("bone_0", "bone_2"):
        limit = value(ext, rig.pose.bones[name])
        assert max(violation(limit, rotation) for rotation in played(rig, name)) < FLOAT32
    hinge = value(ext, rig.pose.bones["bone_1"])
    assert hinge.axis == (1.0, 0.0, 0.0)
    assert max(violation(hinge, rotation) for rotation in played(rig, "bone_1")) < HINGE_TOLERANCE
    assert [hinge.lower / DEGREE, hinge.upper / DEGREE] == pytest.approx([3, 78], abs=0.1)


def test_the_middle_of_the_motion_becomes_the_comfort_region(ext, rig):
    key(rig, "bone_1", knee(range(0, 101, 10)))
    select(ext, rig, "bone_1")
    region = rig.pose.bones["bone_1"].ccd_rig.comfort.region
    assert bpy.ops.ccd_rig.limits_from_action(margin=0.0, comfort=0.0) == {"FINISHED"}
    assert region.kind == "NONE"
    assert bpy.ops.ccd_rig.limits_from_action(margin=0.0) == {"FINISHED"}
    assert region.kind == "HINGE"
    ends = region.hinge_lower / DEGREE, region.hinge_upper / DEGREE
    assert ends == pytest.approx((10.0, 90.0), abs=1.5)
    settings = ext.module("ccd_rig.blender.properties.joints").joint_settings(rig, ["bone_1"])
    assert settings["bone_1"]["comfort"].region.upper < settings["bone_1"]["limit"].upper


def test_margin_and_hinge_tolerance(ext, rig):
    key(rig, "bone_1", knee((3, 40, 78, 20)))
    select(ext, rig, "bone_1")
    limit = rig.pose.bones["bone_1"].ccd_rig.limit
    bpy.ops.ccd_rig.limits_from_action(margin=5 * DEGREE)
    assert [limit.hinge_lower / DEGREE, limit.hinge_upper / DEGREE] == pytest.approx([-2, 83], abs=0.1)
    wobbling = [
        q @ Quaternion((0, 0, 1), 5 * DEGREE * (-1) ** i) for i, q in enumerate(knee((3, 40, 78, 20)))
    ]
    key(rig, "bone_1", wobbling)
    bpy.ops.ccd_rig.limits_from_action(hinge_tolerance=2 * DEGREE)
    assert limit.kind == "ELLIPSE"


def test_only_roles_of_hinges_become_hinges_of_one_walk(ext):
    """A walk turns thighs and knees about one axis; a thigh has three all the same."""
    rig = rigs.metarig("basic_human")
    bpy.ops.object.mode_set(mode="POSE")
    for name, degrees in (("thigh.L", (-25, 30, 5)), ("shin.L", (3, 78, 20)), ("spine.001", (-5, 8, 2))):
        key(rig, name, knee(degrees))
    bones = select(ext, rig, "thigh.L", "shin.L", "spine.001")
    assert bpy.ops.ccd_rig.limits_from_action(margin=5 * DEGREE) == {"FINISHED"}
    assert [bone.ccd_rig.limit.kind for bone in bones] == ["ELLIPSE", "HINGE", "ELLIPSE"]
    limit = value(ext, rig.pose.bones["thigh.L"])
    violation = ext.module("ccd_rig.limits.shapes").violation
    assert max(violation(limit, rotation) for rotation in played(rig, "thigh.L")) < FLOAT32
    # The margin is there about each axis: aside and about the bone's length too.
    for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
        assert violation(limit, Quaternion(axis, 4 * DEGREE)) < FLOAT32


def assign_new_action(rig, name):
    rig.animation_data.action = None
    rig.animation_data.action = bpy.data.actions.new(name)


def test_all_actions_together_and_a_percentile(ext, rig):
    key(rig, "bone_1", knee(range(61)), step=1)
    first = rig.animation_data.action
    assign_new_action(rig, "Second")
    key(rig, "bone_1", knee(range(-40, 1)), step=1)
    assign_new_action(rig, "Glitch")
    key(rig, "bone_1", knee((140,)), step=1)
    bpy.data.actions.new("Empty")
    camera = rigs.link(bpy.data.cameras.new("Camera"), "Camera")
    camera.data.keyframe_insert("lens", frame=1)
    select(ext, rig, "bone_1")
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    limit = rig.pose.bones["bone_1"].ccd_rig.limit

    def bounds(**options):
        bpy.ops.ccd_rig.limits_from_action(margin=0.0, **options)
        return [limit.hinge_lower / DEGREE, limit.hinge_upper / DEGREE]

    assert bounds(action=first.name) == pytest.approx([0, 60], abs=0.1)
    assert bounds(action="Second") == pytest.approx([-40, 0], abs=0.1)
    assert bounds(source="ALL") == pytest.approx([-40, 140], abs=0.1)
    assert bounds(source="ALL", percentile=96.0) == pytest.approx([-38, 58], abs=1.0)


def test_bones_whose_rest_is_no_pose_are_left_and_named(ext, rig, capfd):
    key(rig, "bone_0", [Quaternion((0, 0, 1), math.pi) @ rotation for rotation in swings(1)])
    key(rig, "bone_1", knee((3, 40, 78, 20)))
    key(rig, "bone_3", knee((5, 5)))
    bones = select(ext, rig, "bone_0", "bone_1", "bone_3")
    bpy.ops.ccd_rig.limits_from_action()
    assert [bone.ccd_rig.limit.kind for bone in bones] == ["NONE", "HINGE", "NONE"]
    said = capfd.readouterr().out
    assert "'bone_0' left as before" in said
    assert "rest is no pose of this motion" in said
    assert "'bone_3' left as before: the joint does not move" in said


def test_motion_that_says_nothing_is_refused(ext, rig):
    select(ext, rig, "bone_0")
    fails(bpy.ops.ccd_rig.limits_from_action, "Armature 'Rig' has no action")
    fails(bpy.ops.ccd_rig.limits_from_action, "There is no action 'Walk'", action="Walk")
    fails(bpy.ops.ccd_rig.limits_from_action, "none of the bones 'bone_0' is turned", source="ALL")
    key(rig, "bone_1", knee((3, 40)))
    fails(bpy.ops.ccd_rig.limits_from_action, "none of the bones 'bone_0' is turned")
    select(ext, rig, "bone_1")
    rig.animation_data.action = None
    select(ext, rig, "bone_0")
    fails(bpy.ops.ccd_rig.limits_from_action, "'bone_0' is turned", source="ALL")


def test_a_rotation_that_is_no_number_is_named(ext, channels, rig):
    key(rig, "bone_1", knee((3, 40)))
    for curve in channels.fcurves_of(rig):
        curve.keyframe_points[0].co[1] = math.nan
    select(ext, rig, "bone_1")
    fails(bpy.ops.ccd_rig.limits_from_action, "Bone 'bone_1' has a rotation that is not a number")
    assert rig.pose.bones["bone_1"].ccd_rig.limit.kind == "NONE"
