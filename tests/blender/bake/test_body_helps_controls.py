"""The body helps on rigs of controls, as Rigify generates them."""

from itertools import pairwise

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion, Vector

SOLVE = 1e-3  # metres
FRAMES = 25
FEET = ("foot_fk.L", "foot_fk.R")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A generated human, which takes seconds to make."""
    path = str(tmp_path_factory.mktemp("controls") / "human.blend")
    rigs.activate(rigs.generated("basic_human"))
    bpy.ops.wm.save_as_mainfile(filepath=path)
    return path


@pytest.fixture
def figure(ext, stored):
    """A human of controls whose left hand goes 0.2 m beyond its reach."""
    bpy.ops.wm.open_mainfile(filepath=stored)
    rig = next(each for each in bpy.data.objects if each.type == "ARMATURE" and "torso" in each.pose.bones)
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up() == {"FINISHED"}
    rigs.update()
    row = rig.ccd_rig.constraints["hand_fk.L"]
    row.target.keyframe_insert("location", frame=1)
    matrix = row.target.matrix_world.copy()
    matrix.translation = Vector((0.2, -0.85, 1.3))
    row.target.matrix_world = matrix
    rigs.update()
    row.target.keyframe_insert("location", frame=FRAMES)
    return rig, row


def pose(rig, frame):
    bpy.context.scene.frame_set(frame)
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return {bone.name: evaluated.matrix_world @ bone.matrix for bone in evaluated.pose.bones}


def turn(one, other):
    angle = one.to_quaternion().rotation_difference(other.to_quaternion()).angle
    return np.degrees(min(angle, 2.0 * np.pi - angle))


def test_the_torso_goes_along_and_feet_hold(ext, figure):
    rig, row = figure
    assert rig.ccd_rig.body_helps
    before = pose(rig, 1)
    module = ext.module("ccd_rig.blender.bake.bake")
    report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, FRAMES))
    poses = [pose(rig, frame) for frame in range(1, FRAMES + 1)]
    assert (poses[-1]["hand_fk.L"].translation - row.target.matrix_world.translation).length < SOLVE
    assert (poses[-1]["DEF-hand.L"].translation - row.target.matrix_world.translation).length < SOLVE
    for foot in FEET:
        assert max((each[foot].translation - before[foot].translation).length for each in poses) < SOLVE
    assert (poses[-1]["ORG-spine.003"].translation - before["ORG-spine.003"].translation).y < -0.05
    for name in ("torso", "thigh_fk.L", "shin_fk.R"):
        assert max(turn(a[name], b[name]) for a, b in pairwise(poses)) < 8.0
    assert report.unsolved() == ()
    assert report.check is not None
    assert not report.check.mismatches()
    (helped,) = report.helped
    assert (helped.turned, helped.shifted) == ("torso", "torso")


@pytest.mark.parametrize("posed", [("chest",), ("shoulder.L",), ("hips", "chest", "shoulder.L")])
def test_controls_between_count_as_they_are_posed(ext, stored, posed):
    """Bones that constraints place were read from their channels: hands missed by 0.24 m, feet by 0.39 m."""
    bpy.ops.wm.open_mainfile(filepath=stored)
    rig = next(each for each in bpy.data.objects if each.type == "ARMATURE" and "torso" in each.pose.bones)
    rigs.activate(rig)
    for name in posed:
        rig.pose.bones[name].rotation_mode = "QUATERNION"
        rig.pose.bones[name].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), 0.3)
    rigs.update()
    assert bpy.ops.ccd_rig.figure_set_up() == {"FINISHED"}
    rigs.update()
    rows = rig.ccd_rig.constraints
    rows["hand_fk.L"].target.matrix_world.translation = Vector((0.2, -0.85, 1.3))
    rigs.update()
    places = {name: rows[name].target.matrix_world.translation.copy() for name in ("hand_fk.L", *FEET)}
    module = ext.module("ccd_rig.blender.bake.bake")
    report = module.bake(bpy.context.scene, rig, module.BakeSettings(1, 2))
    assert report.unsolved() == report.check.mismatches() == ()
    assert report.helped
    shown = pose(rig, 2)
    assert max((shown[name].translation - place).length for name, place in places.items()) < SOLVE


def test_without_it_the_hand_stays_short(ext, figure):
    rig, row = figure
    rig.ccd_rig.body_helps = False
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=FRAMES) == {"FINISHED"}
    assert (pose(rig, FRAMES)["hand_fk.L"].translation - row.target.matrix_world.translation).length > 0.1


def test_solve_poses_as_the_bake_does(ext, figure):
    rig, _row = figure
    bpy.context.scene.frame_set(FRAMES)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    solved = {bone.name: rig.matrix_world @ bone.matrix for bone in rig.pose.bones}
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=FRAMES) == {"FINISHED"}
    baked = pose(rig, FRAMES)
    assert max(turn(solved[name], baked[name]) for name in solved) < 0.5


def test_a_control_that_something_does_not_follow_as_one_stays(ext, figure):
    """Head and chest follow the torso by themselves, so spine controls would tear them off."""
    rig, _row = figure
    checks, kinds = (
        ext.module(f"ccd_rig.blender.{name}") for name in ("checks", "properties.constraint_kinds")
    )
    values = checks.helped(rig, [kinds.value_of(row) for row in rig.ccd_rig.constraints])
    hand = next(each for each in values if each.name == "hand_fk.L")
    assert {"spine_fk.002", "spine_fk.003", "tweak_spine.003", "MCH-spine.003"} <= set(hand.body_still)
    assert "torso" not in hand.body_still
    rig.pose.bones["chest"].constraints.new("COPY_LOCATION").target = rigs.empty("Elsewhere")
    values = checks.helped(rig, [kinds.value_of(row) for row in rig.ccd_rig.constraints])
    assert next(each for each in values if each.name == "hand_fk.L").body_length == 0
