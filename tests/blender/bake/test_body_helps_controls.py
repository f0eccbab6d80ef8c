"""The body helps on rigs of controls, as Rigify generates them."""

from __future__ import annotations

import bpy
import pytest
import rigs
from helped import FRAMES, SOLVE, key_way, missed, report_of, shift
from mathutils import Quaternion
from operator_calls import bake as press_bake
from operator_calls import set_up, solve
from playing import in_world, largest_turn

FEET = ("foot_fk.L", "foot_fk.R")
FAR = (0.2, -0.85, 1.3)  # 0.2 m beyond the reach of the left arm


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A generated human, which takes seconds to make."""
    path = str(tmp_path_factory.mktemp("controls") / "human.blend")
    rigs.activate(rigs.generated("basic_human"))
    bpy.ops.wm.save_as_mainfile(filepath=path)
    return path


@pytest.fixture
def controls(ext, stored):
    bpy.ops.wm.open_mainfile(filepath=stored)
    return next(each for each in bpy.data.objects if each.type == "ARMATURE" and "torso" in each.pose.bones)


@pytest.fixture
def figure(controls):
    """A human of controls whose left hand goes beyond its reach, and the hand's constraint."""
    row = set_up(controls).ccd_rig.constraints["hand_fk.L"]
    key_way(row, None, FAR)
    return controls, row


def test_constraints_of_the_mechanism_that_move_nothing_are_not_told(checks, figure):
    """Its locked bones have constraints that leave them where their channels bring them, but for one here."""
    rig, _ = figure
    mechanism = rig.pose.bones["MCH-hand_fk.L"]
    assert len(mechanism.constraints) > 0
    assert checks.problems(rig, bpy.context.scene) == ()
    turned = mechanism.constraints.new("TRANSFORM")
    turned.target, turned.subtarget, turned.map_to = rig, "torso", "ROTATION"
    turned.to_min_x_rot = turned.to_max_x_rot = 0.1
    rigs.update()
    (problem,) = checks.problems(rig, bpy.context.scene)
    assert problem.where == mechanism.name
    assert "does not see" in problem.message


def test_the_torso_goes_along_and_feet_hold(bake, figure):
    rig, row = figure
    assert rig.ccd_rig.body_helps
    before = in_world(rig, 1)
    report = report_of(bake, rig)
    poses = [in_world(rig, frame) for frame in FRAMES]
    assert missed(rig, row, FRAMES[-1:]) < SOLVE
    assert (poses[-1]["DEF-hand.L"].translation - row.target.matrix_world.translation).length < SOLVE
    assert max(shift(before, pose, *FEET) for pose in poses) < SOLVE
    assert (poses[-1]["ORG-spine.003"].translation - before["ORG-spine.003"].translation).y < -0.05
    assert largest_turn(poses, ("torso", "thigh_fk.L", "shin_fk.R")) < 8.0
    assert report.unsolved() == ()
    assert report.check is not None
    assert not report.check.mismatches()
    (helped,) = report.helped
    assert (helped.turned, helped.shifted) == ("torso", "torso")
    report = report_of(bake, rig, body_helps=False)
    assert missed(rig, row, FRAMES[-1:]) > 0.1


@pytest.mark.parametrize("posed", [("chest",), ("shoulder.L",), ("hips", "chest", "shoulder.L")])
def test_controls_between_count_as_they_are_posed(bake, controls, posed):
    """Bones that constraints place were read from their channels: hands missed by 0.24 m, feet by 0.39 m."""
    for name in posed:
        controls.pose.bones[name].rotation_mode = "QUATERNION"
        controls.pose.bones[name].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), 0.3)
    rows = set_up(controls).ccd_rig.constraints
    rigs.put(rows["hand_fk.L"].target, FAR)
    report = report_of(bake, controls, 2)
    assert report.unsolved() == report.check.mismatches() == ()
    assert report.helped
    assert max(missed(controls, rows[name], [2]) for name in ("hand_fk.L", *FEET)) < SOLVE


def test_solve_poses_as_the_bake_does(figure):
    rig, _row = figure
    bpy.context.scene.frame_set(FRAMES[-1])
    solve()
    solved = in_world(rig)
    press_bake(FRAMES[0], FRAMES[-1])
    assert largest_turn([solved, in_world(rig, FRAMES[-1])]) < 0.5


def test_a_control_that_something_does_not_follow_as_one_stays(ext, checks, figure):
    """Head and chest follow the torso by themselves, so spine controls would tear them off."""
    rig, _row = figure
    value_of = ext.module("ccd_rig.blender.properties.constraint_kinds").value_of

    def hand():
        values = checks.helped(rig, [value_of(row) for row in rig.ccd_rig.constraints])
        return next(each for each in values if each.name == "hand_fk.L")

    assert {"spine_fk.002", "spine_fk.003", "tweak_spine.003", "MCH-spine.003"} <= set(hand().body_still)
    assert "torso" not in hand().body_still
    rig.pose.bones["chest"].constraints.new("COPY_LOCATION").target = rigs.empty("Elsewhere")
    assert hand().body_length == 0
