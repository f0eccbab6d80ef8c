"""Rotations, priorities and reach windows: held against what Blender plays of the baked action."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from goal_arms import FRAMES, PLACES, PLAYED, SOLVE, TURNED, apart, arm, distance, played, world_axes
from mathutils import Euler, Matrix, Quaternion, Vector

# --- rotation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [name for name in PLACES if name != "stretched"])
def test_orientation_is_the_targets_wherever_the_armature_is(bake, place):
    rig, target, row = arm(PLACES[place], rotation="ORIENTATION")
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    for _, evaluated, depsgraph in played(rig):
        wanted = target.evaluated_get(depsgraph).matrix_world.to_3x3()
        axes = world_axes(evaluated, row.tip)
        # A mirrored armature has left-handed bones: Y and Z are the target's, X points the other way.
        sides = (-1.0 if place == "mirrored" else 1.0, 1.0, 1.0)
        for axis, side, k in zip(axes, sides, range(3), strict=True):
            assert apart(axis, side * wanted.col[k]) < TURNED + PLAYED
        assert distance(rig, row, evaluated, depsgraph) < SOLVE + PLAYED


def test_a_mirrored_targets_orientation_in_a_mirrored_armature_is_whole(bake):
    rig, target, row = arm(PLACES["mirrored"], rotation="ORIENTATION")
    target.animation_data_clear()
    target.parent = rig
    target.matrix_parent_inverse = Matrix()
    target.location, target.rotation_quaternion = (0.5, 0.5, 1.5), Euler((0.4, 0.2, -0.6)).to_quaternion()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert report.unsolved() == ()
    for _, evaluated, depsgraph in played(rig, (1, 3)):
        wanted = target.evaluated_get(depsgraph).matrix_world.to_3x3()
        for axis, k in zip(world_axes(evaluated, row.tip), range(3), strict=True):
            assert apart(axis, wanted.col[k]) < TURNED + PLAYED


def test_orientation_under_shear_points_the_bone_exactly(bake):
    """No rigid bone is sheared: its length is along the target's Y, and Z in the plane of the target's."""
    rig, target, row = arm(PLACES["stretched"], rotation="ORIENTATION")
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == ()
    for _, evaluated, depsgraph in played(rig):
        wanted = target.evaluated_get(depsgraph).matrix_world.to_3x3()
        _, y, z = world_axes(evaluated, row.tip)
        assert apart(y, wanted.col[1]) < 4 * TURNED  # a milliradian of armature space, stretched 1 : 4
        normal = wanted.col[1].cross(wanted.col[2]).normalized()
        assert abs(z.dot(normal)) < 4 * TURNED


# In every run all axes and all places, with mass tests each axis in each place.
@pytest.mark.parametrize(
    ("bone_axis", "target_axis", "place"),
    [
        *(("POS_Y", "POS_Z", place) for place in PLACES),
        ("NEG_X", "POS_Y", "mirrored"),
        ("POS_Z", "NEG_X", "moved"),
        *(
            pytest.param(*axes, place, marks=pytest.mark.mass)
            for axes, often in ((("NEG_X", "POS_Y"), "mirrored"), (("POS_Z", "NEG_X"), "moved"))
            for place in PLACES
            if place != often
        ),
    ],
)
def test_direction_points_an_axis_along_an_axis(bake, bone_axis, target_axis, place):
    fields = {"rotation": "DIRECTION", "bone_axis": bone_axis, "target_axis": target_axis}
    rig, target, row = arm(PLACES[place], **fields)
    settings = bake.BakeSettings(1, FRAMES, step=4, keys=bake.Keys.SOLVED_FRAMES, smoothness=0.0)
    report = bake.bake(bpy.context.scene, rig, settings)
    assert report.unsolved() == (), report.summary()
    for _, evaluated, depsgraph in played(rig, range(1, FRAMES + 1, 4)):
        axis = world_axes(evaluated, row.tip)["XYZ".index(bone_axis[-1])]
        axis = -axis if bone_axis.startswith("NEG") else axis
        wanted = target.evaluated_get(depsgraph).matrix_world.to_3x3().col["XYZ".index(target_axis[-1])]
        wanted = -wanted if target_axis.startswith("NEG") else wanted
        assert apart(axis, wanted) < (4 if place == "stretched" else 1) * TURNED + PLAYED


def test_rotation_alone_leaves_the_place_free(bake):
    rig, target, _ = arm(use_position=False, rotation="ORIENTATION", chain_length=2)
    target.location = (50.0, 0.0, 0.0)
    target.keyframe_insert("location", frame=1)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == ()
    assert {row.residual for row in report.entries} == {0.0}
    assert "m / " not in report.summary()
    assert "degrees" in report.summary()


def test_the_report_has_the_angle_that_plays(bake):
    """The target's rotation is out of reach of the limits: the angle is reported as it is."""
    rig, target, row = arm(rotation="ORIENTATION", rotation_weight=0.001)
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.7
        bone.ccd_rig.limit.use_twist, bone.ccd_rig.limit.twist_lower, bone.ccd_rig.limit.twist_upper = (
            True,
            0.0,
            0.0,
        )
    target.animation_data_clear()
    target.rotation_quaternion = Euler((0, 0, 3.0)).to_quaternion()
    row.influence = 0.7
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    assert report.unsolved_count() == 2
    assert report.worst().angle > 0.1
    assert " m / " in report.summary()
    assert f"{math.degrees(report.worst().angle):.1f} degrees" in report.summary()
    for line, (_, evaluated, depsgraph) in zip(report.entries, played(rig, (1, 2)), strict=True):
        wanted = target.evaluated_get(depsgraph).matrix_world.to_quaternion()
        seen = evaluated.pose.bones[row.tip].matrix.to_quaternion()
        angle = seen.rotation_difference(wanted).angle
        assert min(angle, math.tau - angle) == pytest.approx(line.keyed_angle, abs=1e-3)
        assert abs(line.keyed_angle - line.angle) > 1e-3  # blended with the pose at rest


# --- priority and reach -------------------------------------------------------------------------------------


def two_hands():
    """A spine with an arm on each side; each target is met only if the spine leans to its side."""
    bones = [rigs.B("spine", (0, 0, 0), (0, 0, 1))]
    for side, sign in (("L", 1), ("R", -1)):
        bones.append(rigs.B(f"{side}0", (0, 0, 1), (sign * 0.5, 0, 1), "spine"))
        bones.append(rigs.B(f"{side}1", (sign * 0.5, 0, 1), (sign * 1.0, 0, 1), f"{side}0", connect=True))
    rig = rigs.armature(bones)
    for side, sign in (("L", 1), ("R", -1)):
        rigs.reach(rig, f"{side}1", rigs.empty(f"Target {side}", (sign * 1.6, 0.1, 0.6)), side)
    rigs.update()
    return rig


@pytest.mark.parametrize("first", ["L", "R"])
def test_the_hand_that_is_served_first_keeps_its_target(bake, first):
    rig = two_hands()
    for row in rig.ccd_rig.constraints:
        row.priority = 0 if row.name == first else 3
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    states = {(row.constraint == first): row.status for row in report.entries}
    assert states[True] == "CONVERGED"
    assert states[False] != "CONVERGED"
    for row in report.entries:
        assert (row.residual < 1.2 * SOLVE) == (row.constraint == first), row
    rig.animation_data_clear()
    for row in rig.ccd_rig.constraints:
        row.priority = 0
    shared = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert all(row.residual > 0.02 for row in shared.entries)  # they meet halfway


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 1), (1, 1), (1, 2)])
def test_a_pole_comes_after_targets_of_its_priority_and_before_those_of_the_next(bake, first, second):
    """An arm whose pole and whose elbow's own target are on opposite sides."""
    rig = rigs.chain(2, 1.0)
    target, pole = rigs.empty("Target", (0.0, 0.0, 1.4)), rigs.empty("Pole", (5.0, 0.0, 0.7))
    rigs.reach(rig, "bone_1", target, "Hand", pole_target=pole, priority=first)
    elbow = rigs.empty("Elbow", (0.0, 0.71, 0.7))
    rigs.reach(rig, "bone_0", elbow, "Elbow", chain_length=1, priority=second)
    rigs.update()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    tail = next(played(rig, (1,)))[1].pose.bones["bone_0"].tail
    wanted = (0.714, 0.0, 0.7) if second > first else (0.0, 0.714, 0.7)
    assert (tail - Vector(wanted)).length < 0.02


@pytest.mark.parametrize("bones", [0, 3])
def test_an_arm_is_never_stretched_past_its_reach(bake, bones):
    rig, target, row = arm(max_extension=0.8, extension_joints=bones)
    target.animation_data_clear()
    for frame, where in ((1, (0.3, 0.2, 1.5)), (13, (1.25, 0.95, 2.05)), (25, (0.3, 0.2, 1.5))):
        target.location = where
        target.keyframe_insert("location", frame=frame)
    for i, bone in enumerate(rig.pose.bones):  # it does not start stretched
        bone.rotation_quaternion = Quaternion((1, 0, 0), 0.6 * (-1) ** i)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    first = rig.pose.bones[f"bone_{6 - bones}" if bones else "bone_0"].name
    stretches = []
    for _, evaluated, _ in played(rig):
        way = evaluated.pose.bones["bone_5"].tail - evaluated.pose.bones[first].head
        stretches.append(way.length / (0.5 * (bones or 6)))
    assert max(stretches) < 0.8 + 1e-3
    assert max(stretches) > 0.75
    if bones:
        assert report.unsolved() == ()  # the bones further up do the rest
    rig.animation_data_clear()
    row.max_extension = 1.0
    target.location = (1.4, 1.1, 2.25)  # nearly as far as the whole chain is long
    target.keyframe_insert("location", frame=13)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    ways = [
        (e.pose.bones["bone_5"].tail - e.pose.bones[first].head).length / (0.5 * (bones or 6))
        for _, e, _ in played(rig)
    ]
    assert max(ways) > 0.82  # without the window it is


def test_a_row_of_before_is_as_it_was(ext):
    """What a file holds that was saved before there were goals: a name, a bone, a target, no more."""
    rig = rigs.chain(3, 0.5)
    row = rigs.reach(rig, "bone_2", rigs.empty("Target", (0.5, 0.5, 0.9)), "Hand")
    values = ext.module("ccd_rig.blender.properties.constraint_kinds").constraints(rig)[0]
    assert (values.kind, values.use_position, values.rotation, values.pole_target) == (
        "REACH",
        True,
        "NONE",
        "",
    )
    assert (values.priority, values.max_extension, values.extension_joints) == (0, 1.0, 0)
    assert not any(row.is_property_set(name) for name in ("kind", "rotation", "max_extension"))
    sample = np.array(values.balance_axes)
    assert sample.tolist() == [True, True, False]
