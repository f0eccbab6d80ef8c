"""Limits taken over from Blender's IK limits and Limit Rotation constraints, held against Blender itself."""

from __future__ import annotations

import math
import random

import bpy
import pytest
import rigs
from limit_tools import value
from mathutils import Matrix, Vector
from operator_calls import fails, select

DEGREE = math.radians(1.0)
FLOAT32 = 1e-5  # [rad]
CLAMPED = 2e-4  # [rad] how exactly Blender's constraints hold a bound that is near a gimbal lock

RANGES = {"x": (-25, 60), "y": (-35, 20), "z": (-50, 30)}  # degrees


def give_ik_limits(bone, free, limited):
    for axis in "xyz":
        setattr(bone, f"lock_ik_{axis}", axis not in free)
        setattr(bone, f"use_ik_limit_{axis}", axis in limited)
        setattr(bone, f"ik_min_{axis}", RANGES[axis][0] * DEGREE)
        setattr(bone, f"ik_max_{axis}", RANGES[axis][1] * DEGREE)


def rotations_by_ik(rig, name, count, seed):
    """The rotations that Blender's own IK gives a bone for random targets of its chain's last bone."""
    target = rigs.empty("IK Target")
    last = rig.pose.bones[-1]
    ik = last.constraints.new("IK")
    ik.target, ik.use_rotation, ik.orient_weight = target, True, 0.5
    rng = random.Random(seed)
    bone = rig.pose.bones[name]
    for _ in range(count):
        place = Vector([rng.gauss(0, 1) for _ in range(3)]).normalized() * rng.uniform(0.5, 2.9)
        target.matrix_world = Matrix.LocRotScale(place, rigs.random_rotation(rng), None)
        rigs.update()
        local = rig.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")
        yield local.to_quaternion()


# Free axes, limited axes, the kind of limit, and how far [degrees] Blender's rotations may lie outside.
IK_CASES = [
    ("x", "x", "HINGE", 0.05),
    ("y", "y", "HINGE", 0.05),
    ("z", "z", "HINGE", 0.05),
    ("xz", "xz", "ELLIPSE", 0.3),
    ("xy", "xy", "ELLIPSE", 0.05),
    ("yz", "yz", "ELLIPSE", 0.05),
    ("xyz", "xyz", "ELLIPSE", 0.3),
    ("xyz", "xz", "ELLIPSE", 0.3),
    ("xyz", "y", "TWIST", 0.05),
    ("xz", "", "TWIST", 0.05),
]
BOUNDS = {
    "HINGE": ("hinge_lower", "hinge_upper"),
    "ELLIPSE": ("x_lower", "x_upper", "z_lower", "z_upper", "twist_lower", "twist_upper"),
    "TWIST": ("twist_lower", "twist_upper"),
}


@pytest.mark.parametrize(("free", "limited", "kind", "outside"), IK_CASES)
def test_what_blenders_ik_does_is_inside(ext, free, limited, kind, outside):
    rig = rigs.chain(3)
    (bone,) = select(ext, rig, "bone_1")
    give_ik_limits(bone, free, limited)
    assert bpy.ops.ccd_rig.limits_from_ik() == {"FINISHED"}
    group = bone.ccd_rig.limit
    assert group.kind == kind
    rotations = list(rotations_by_ik(rig, "bone_1", 60, 1))
    violation = ext.module("ccd_rig.limits.shapes").violation
    assert max(math.degrees(violation(value(ext, bone), q)) for q in rotations) < outside
    for bound in BOUNDS[kind]:  # and no wider: Blender's IK comes to each bound, so a narrower one cuts off
        stored = getattr(group, bound)
        if {"hinge": free, "twist": "y"}.get(bound.split("_")[0], bound[0]) in limited and stored != 0.0:
            setattr(group, bound, 0.8 * stored)
            assert max(math.degrees(violation(value(ext, bone), q)) for q in rotations) > 1.0, bound
            setattr(group, bound, stored)


def swing_of(ext, rotation):
    """The rotation vector of the swing of a rotation, degrees."""
    rotations = ext.module("ccd_rig.maths.rotations")
    swing, _ = rotations.swing_twist(rotation, Vector((0, 1, 0)))
    return rotations.log(swing) / DEGREE


@pytest.mark.parametrize(
    ("free", "limited", "axis", "other"),
    [("xyz", "yz", "z", "x"), ("xyz", "x", "x", "z"), ("xz", "x", "x", "z")],
)
def test_with_a_range_about_one_swing_axis_alone(ext, free, limited, axis, other):
    """What the limit allows is in the range, and what is in the range but for far swings is allowed."""
    rig = rigs.chain(3)
    (bone,) = select(ext, rig, "bone_1")
    give_ik_limits(bone, free, limited)
    bpy.ops.ccd_rig.limits_from_ik()
    assert bone.ccd_rig.limit.kind == "ELLIPSE"
    limit = value(ext, bone)
    rng = random.Random(0)
    sample = ext.module("ccd_rig.limits.shapes").sample
    for _ in range(100):
        angle = getattr(swing_of(ext, sample(limit, rng)), axis)
        assert RANGES[axis][0] - 0.01 < angle < RANGES[axis][1] + 0.01
    if "y" not in free:
        return  # Blender's IK does not hold such a range
    violation = ext.module("ccd_rig.limits.shapes").violation
    near = [q for q in rotations_by_ik(rig, "bone_1", 100, 1) if abs(getattr(swing_of(ext, q), other)) < 45.0]
    assert len(near) > 20
    assert max(math.degrees(violation(limit, q)) for q in near) < 5.0


def test_locks_and_stiffness(ext):
    rig = rigs.chain(3)
    locked, stiff, free = select(ext, rig, "bone_0", "bone_1", "bone_2")
    give_ik_limits(locked, "", "")
    stiff.ik_stiffness_x, stiff.ik_stiffness_y, stiff.lock_ik_z, stiff.ik_stiffness_z = 0.2, 0.4, True, 0.9
    free.ccd_rig.limit.kind = "CONE"
    bpy.ops.ccd_rig.limits_from_ik()
    assert (locked.ccd_rig.limit.kind, locked.ccd_rig.stiffness) == ("NONE", 1.0)
    assert stiff.ccd_rig.stiffness == pytest.approx(0.3)
    assert free.ccd_rig.limit.kind == "CONE"


def test_what_the_ik_limits_do_that_is_left_out_is_said(ext, capfd):
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    give_ik_limits(bone, "xyz", "x")
    bone.ik_stretch = 0.1
    bpy.ops.ccd_rig.limits_from_ik()
    said = capfd.readouterr().out
    assert "IK Stretch of 'bone_1' is left out" in said
    assert "'bone_1' limit only one of X and Z" in said


def test_bones_without_ik_limits_are_refused(ext):
    select(ext, rigs.chain(2), "bone_0", "bone_1")
    fails(
        bpy.ops.ccd_rig.limits_from_ik,
        "No IK limit, lock or stiffness is set in Blender for 'bone_0', 'bone_1'",
    )


# Limit Rotation -------------------------------------------------------------------------------------------


def limit_rotation(bone, order="AUTO", **bounds):
    """A constraint in local space with these bounds in degrees, such as x=(-10, 40)."""
    made = bone.constraints.new("LIMIT_ROTATION")
    made.owner_space, made.euler_order = "LOCAL", order
    for axis, (lower, upper) in bounds.items():
        setattr(made, f"use_limit_{axis}", True)
        setattr(made, f"min_{axis}", lower * DEGREE)
        setattr(made, f"max_{axis}", upper * DEGREE)
    return made


@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ", "ZYX", "YXZ"])
@pytest.mark.parametrize("order", ["AUTO", "XZY"])
@pytest.mark.parametrize("bounds", [RANGES, {"x": (10, 70)}, {"y": (-20, 20), "z": (-60, -5)}])
def test_what_limit_rotation_lets_through_is_inside(ext, mode, order, bounds):
    rig = rigs.chain(2)
    (bone,) = select(ext, rig, "bone_1")
    bone.rotation_mode = mode
    limit_rotation(bone, order, **bounds)
    assert bpy.ops.ccd_rig.limits_from_constraints() == {"FINISHED"}
    limit, violation = value(ext, bone), ext.module("ccd_rig.limits.shapes").violation
    rng = random.Random(7)
    outside = 0
    for _ in range(30):
        rotation = rigs.random_rotation(rng)
        rigs.set_rotation(bone, rotation)
        rigs.update()
        shown = rig.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")
        assert violation(limit, shown.to_quaternion()) < CLAMPED
        outside += violation(limit, rotation) > 0.01
    assert outside > 10  # Blender had something to do
    sample = ext.module("ccd_rig.limits.shapes").sample
    for _ in range(60):  # and what the limit allows, Blender leaves alone
        rotation = sample(limit, rng)
        if len(bounds) < 3:
            continue  # angles beyond a quarter turn: Blender may take the other of two Euler representations
        rigs.set_rotation(bone, rotation)
        rigs.update()
        shown = rig.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")
        assert abs(shown.to_quaternion().dot(rotation)) == pytest.approx(1.0, abs=FLOAT32)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: setattr(c, "mute", True), "is muted; the limit holds nevertheless"),
        (lambda c: setattr(c, "influence", 0.5), "has an influence of 0.5"),
        (lambda c: c.keyframe_insert("max_x", frame=1), "max_x is animated"),
        (lambda c: limit_rotation(c.id_data.pose.bones["bone_1"], x=(0, 1)), "has 1 more such"),
    ],
)
def test_what_a_constraint_does_otherwise_is_said(ext, capfd, change, words):
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    change(limit_rotation(bone, x=(-10, 40)))
    bpy.ops.ccd_rig.limits_from_constraints()
    assert words in capfd.readouterr().out
    assert bone.ccd_rig.limit.euler_upper[0] == pytest.approx(40 * DEGREE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: setattr(c, "owner_space", "WORLD"), "its Owner is not Local Space"),
        (lambda c: setattr(c, "use_limit_x", False), "it limits no axis"),
        (lambda c: setattr(c, "min_x", 1.0), "X Min (57.3°) is above Max (40°)"),
    ],
)
def test_a_constraint_that_is_no_limit_is_refused(ext, change, words):
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    constraint = limit_rotation(bone, x=(-10, 40))
    constraint.name = 'Stop "it"'
    change(constraint)
    fails(bpy.ops.ccd_rig.limits_from_constraints, f"Bone 'bone_1', constraint 'Stop \"it\"': {words}")
    assert bone.ccd_rig.limit.kind == "NONE"


def test_bones_without_a_constraint_are_left_as_they_are(ext):
    bones = select(ext, rigs.chain(3), "bone_0", "bone_1", "bone_2")
    fails(bpy.ops.ccd_rig.limits_from_constraints, "No Limit Rotation constraint is on")
    limit_rotation(bones[0], x=(0, 30))
    limit_rotation(bones[1], x=(0, 30)).owner_space = "POSE"
    bpy.ops.ccd_rig.limits_from_constraints()
    assert [bone.ccd_rig.limit.kind for bone in bones] == ["EULER", "NONE", "NONE"]


def test_while_the_rig_is_live_its_own_constraints_count(ext):
    """The clamps that show a live pose are Limit Rotation constraints too."""
    rig = rigs.chain(3)
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.5, 1.5)))
    bones = select(ext, rig, "bone_0", "bone_1", "bone_2")
    limit_rotation(bones[1], x=(-10, 40))
    assert bpy.ops.ccd_rig.live() == {"FINISHED"}
    rigs.update()
    assert len(bones[1].constraints) == 2
    assert bpy.ops.ccd_rig.limits_from_constraints() == {"FINISHED"}
    assert [bone.ccd_rig.limit.kind for bone in bones] == ["NONE", "EULER", "NONE"]
    box = bones[1].ccd_rig.limit
    assert (box.euler_lower[0], box.euler_upper[0]) == pytest.approx((-10 * DEGREE, 40 * DEGREE))
