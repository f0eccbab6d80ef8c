"""Limits from the present pose, copied, and mirrored: what the buttons store on real bones."""

from __future__ import annotations

import math
import random

import bpy
import pytest
import rigs
from limit_tools import value
from mathutils import Matrix, Quaternion, Vector
from operator_calls import fails, select

FLOAT32 = 1e-5  # [rad]
SOLVE = 1e-4  # [rad]
PAIRS = [
    ("thigh.{}", (0.1, 0, 1.0), (0.12, -0.05, 0.5), "", 0.3),
    ("shin.{}", (0.12, -0.05, 0.5), (0.1, 0.02, 0.1), "thigh.{}", -0.2),
]


def legs(left="L", right="R", turned=0.0):
    """Two legs, the right one the mirror image of the left, its bones rolled by so many radians more."""
    bones = []
    for side, x, roll in ((left, 1, 1), (right, -1, -1)):
        for name, head, tail, parent, rolled in PAIRS:
            bones.append(
                rigs.B(
                    name.format(side),
                    (x * head[0], *head[1:]),
                    (x * tail[0], *tail[1:]),
                    parent.format(side),
                    roll * rolled + (turned if x < 0 else 0.0),
                )
            )
    return rigs.armature(bones)


# From the present pose ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["QUATERNION", "ZXY", "AXIS_ANGLE"])
def test_min_and_max_of_a_hinge(ext, mode):
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    bone.rotation_mode = mode
    bone.ccd_rig.limit.kind = "HINGE"
    for bound, angle in (("MAX", 2.0), ("MIN", -0.3)):
        rigs.set_rotation(bone, Quaternion((1, 0, 0), angle))
        assert bpy.ops.ccd_rig.limit_from_pose(bound=bound) == {"FINISHED"}
    limit = bone.ccd_rig.limit
    assert (limit.hinge_lower, limit.hinge_upper) == pytest.approx((-0.3, 2.0), abs=FLOAT32)


def test_the_pose_is_what_the_bone_shows(ext):
    """A constraint of the rig bends the bone: its channels hold nothing."""
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    bone.ccd_rig.limit.kind = "HINGE"
    shown = bone.constraints.new("LIMIT_ROTATION")
    shown.owner_space, shown.use_limit_x, shown.min_x, shown.max_x = "LOCAL", True, 0.7, 0.7
    bpy.ops.ccd_rig.limit_from_pose(bound="MAX")
    assert bone.ccd_rig.limit.hinge_upper == pytest.approx(0.7, abs=FLOAT32)


def test_all_selected_bones_that_have_the_bound(ext):
    rig = rigs.chain(3)
    bones = select(ext, rig, "bone_0", "bone_1", "bone_2")
    for bone, kind in zip(bones, ("CONE", "ELLIPSE", "HINGE"), strict=True):
        bone.ccd_rig.limit.kind = kind
        rigs.set_rotation(bone, Quaternion((0, 0, 1), 0.5))
    bpy.ops.ccd_rig.limit_from_pose(bound="SWING")
    assert bones[0].ccd_rig.limit.cone_radius == pytest.approx(0.5, abs=FLOAT32)
    assert bones[1].ccd_rig.limit.z_upper == pytest.approx(0.5, abs=FLOAT32)
    assert bones[2].ccd_rig.limit.hinge_upper == pytest.approx(math.pi / 2)


@pytest.mark.parametrize(
    ("kind", "bound", "words"),
    [
        ("NONE", "MIN", "Bone 'bone_1' has no limit with a hinge"),
        ("CONE", "MAX", "no limit with a hinge"),
        ("HINGE", "SWING", "no limit with a cone"),
        ("ELLIPSE", "SWING", "Bone 'bone_1': the rotation does not swing"),
    ],
)
def test_a_limit_without_that_bound_is_refused(ext, kind, bound, words):
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    bone.ccd_rig.limit.kind = kind
    fails(bpy.ops.ccd_rig.limit_from_pose, words, bound=bound)


def test_a_bone_that_is_nowhere_is_named(ext):
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    bone.ccd_rig.limit.kind = "HINGE"
    bone.parent.location = (math.nan, 0.0, 0.0)
    bone.rotation_quaternion = (math.nan, 0.0, 0.0, 0.0)
    fails(bpy.ops.ccd_rig.limit_from_pose, "Bone 'bone_1' is nowhere", bound="MIN")


def test_undo_takes_it_back(ext):
    rig = rigs.chain(2)
    (bone,) = select(ext, rig, "bone_1")
    bone.ccd_rig.limit.kind = "HINGE"
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.ccd_rig.limit_from_pose(bound="MAX")
    bpy.ops.ed.undo_push(message="after")
    assert bone.ccd_rig.limit.hinge_upper == pytest.approx(0.0, abs=FLOAT32)
    bpy.ops.ed.undo()
    limit = bpy.data.objects["Rig"].pose.bones["bone_1"].ccd_rig.limit
    assert limit.hinge_upper == pytest.approx(math.pi / 2)


# Copied ---------------------------------------------------------------------------------------------------


def test_copied_to_the_selected_bones_and_to_the_chain(ext):
    rig = rigs.chain(5)
    bones = select(ext, rig, "bone_1", "bone_4")
    limit = bones[1].ccd_rig.limit
    limit.kind, limit.x_lower, limit.use_twist, limit.euler_order = "ELLIPSE", -0.3, True, "ZXY"
    bpy.ops.ccd_rig.limits_copy()
    assert [bone.ccd_rig.limit.kind for bone in rig.pose.bones] == [
        "NONE",
        "ELLIPSE",
        "NONE",
        "NONE",
        "ELLIPSE",
    ]
    assert value(ext, bones[0]) == value(ext, bones[1])
    assert bones[0].ccd_rig.limit.euler_order == "ZXY"
    select(ext, rig, "bone_4")
    bpy.ops.ccd_rig.constraint_add()
    rig.ccd_rig.constraints[0].chain_length = 3
    bpy.ops.ccd_rig.limits_copy(bones="CHAIN")
    kinds = [bone.ccd_rig.limit.kind for bone in rig.pose.bones]
    assert kinds == ["NONE", "ELLIPSE", "ELLIPSE", "ELLIPSE", "ELLIPSE"]


def test_copying_needs_another_bone_and_a_chain(ext):
    select(ext, rigs.chain(2), "bone_1")
    fails(bpy.ops.ccd_rig.limits_copy, "No bone but 'bone_1'")
    fails(bpy.ops.ccd_rig.limits_copy, "no active constraint with a chain", bones="CHAIN")


# Mirrored -------------------------------------------------------------------------------------------------


def give(limit, seed):
    """A limit of each kind in turn, with bounds of its own."""
    rng = random.Random(seed)
    limit.kind = ("HINGE", "CONE", "ELLIPSE", "TWIST", "EULER")[seed % 5]
    limit.axis = [rng.gauss(0, 1) for _ in range(3)]
    limit.hinge_lower, limit.hinge_upper = rng.uniform(-1, 0), rng.uniform(0, 2)
    limit.cone_radius, limit.use_twist = rng.uniform(0.1, 1.5), True
    for name, sign in (("x_lower", -1), ("x_upper", 1), ("z_lower", -1), ("z_upper", 1)):
        setattr(limit, name, sign * rng.uniform(0.0, 1.2))
    limit.twist_lower, limit.twist_upper = rng.uniform(-1, 0), rng.uniform(0, 1)
    limit.euler_order = rng.choice(rigs.EULER_MODES)
    limit.euler_lower = [rng.uniform(-1, 0) for _ in range(3)]
    limit.euler_upper = [rng.uniform(0, 1) for _ in range(3)]


def pasted_flipped(rig, rotations):
    """The rotations that Blender's own Paste Flipped gives the other side's bones."""
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, rotations.get(bone.name, Quaternion()))
    bpy.ops.pose.select_all(action="SELECT")
    bpy.ops.pose.copy()
    bpy.ops.pose.paste(flipped=True)
    return {bone.name: bone.matrix_basis.to_quaternion() for bone in rig.pose.bones}


def mirrored_by_matrices(bone, other, rotation):
    """The rotation of the other side's bone by which it mirrors this one in armature space."""
    mirror = Matrix.Diagonal((-1.0, 1.0, 1.0))
    change = other.bone.matrix_local.to_3x3().transposed() @ mirror @ bone.bone.matrix_local.to_3x3()
    return (change @ rotation.to_matrix() @ change.transposed()).to_quaternion()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("turned", [0.0, math.pi / 2, math.pi])
def test_the_mirrored_pose_is_allowed_alike(ext, seed, turned):
    rig = legs(turned=turned)
    bone, other = (rig.pose.bones[f"shin.{side}"] for side in "LR")
    give(bone.ccd_rig.limit, seed)
    select(ext, rig, "shin.L")
    assert bpy.ops.ccd_rig.limits_mirror() == {"FINISHED"}
    shapes = ext.module("ccd_rig.limits.shapes")
    rng = random.Random(seed)
    for _ in range(40):
        rotation = Quaternion((1, 0, 0), rng.gauss(0, 0.6)) @ Quaternion(
            Vector([rng.gauss(0, 1) for _ in range(3)]).normalized(), rng.gauss(0, 0.6)
        )
        image = mirrored_by_matrices(bone, other, rotation)
        expected = shapes.violation(value(ext, bone), rotation)
        assert shapes.violation(value(ext, other), image) == pytest.approx(expected, abs=SOLVE)
    if turned == 0.0:  # Blender's own mirroring takes the bones' axes for mirrored
        flipped = pasted_flipped(rig, {"shin.L": rotation})["shin.R"]
        assert flipped.rotation_difference(image).angle % (2 * math.pi) == pytest.approx(0.0, abs=1e-3)


def test_both_sides_selected_the_active_one_counts(ext):
    rig = legs()
    for side, upper in (("L", 1.0), ("R", 0.4)):
        for name in ("thigh", "shin"):
            limit = rig.pose.bones[f"{name}.{side}"].ccd_rig.limit
            limit.kind, limit.cone_radius = "CONE", upper
    select(ext, rig, "thigh.L", "shin.L", "shin.R", "thigh.R")
    bpy.ops.ccd_rig.limits_mirror()
    assert [round(bone.ccd_rig.limit.cone_radius, 3) for bone in rig.pose.bones] == [0.4] * 4


def test_both_sides_selected_the_one_with_a_limit_counts(ext):
    rig = legs()
    rig.pose.bones["thigh.L"].ccd_rig.limit.kind = "CONE"
    rig.pose.bones["shin.R"].ccd_rig.limit.kind = "HINGE"
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="SELECT")
    rig.data.bones.active = rig.data.bones["thigh.R"]
    bpy.ops.ccd_rig.limits_mirror()
    assert [bone.ccd_rig.limit.kind for bone in rig.pose.bones] == ["CONE", "HINGE", "CONE", "HINGE"]


def test_what_cannot_be_mirrored_is_named_and_nothing_changes(ext):
    rig = legs(turned=0.6)
    for name, kind in (("thigh.L", "CONE"), ("shin.L", "ELLIPSE")):
        rig.pose.bones[name].ccd_rig.limit.kind = kind
    select(ext, rig, "thigh.L", "shin.L")
    fails(bpy.ops.ccd_rig.limits_mirror, "Bone 'shin.L': its limit cannot be mirrored to 'shin.R'")
    assert rig.pose.bones["thigh.R"].ccd_rig.limit.kind == "NONE"


def test_bones_without_a_partner_are_refused(ext):
    select(ext, rigs.chain(2), "bone_1")
    fails(bpy.ops.ccd_rig.limits_mirror, "No bone on the other side is known of 'bone_1'")
