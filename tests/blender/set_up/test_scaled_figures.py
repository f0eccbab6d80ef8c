"""Figures set up while their object mirrors or stretches them: a bake right after it moves nothing."""

from __future__ import annotations

import bpy
import pytest
import rigs
from figures_set_up import bake, matrices, move, set_up
from mathutils import Euler, Matrix, Vector

TURN = Euler((0.3, -0.4, 0.5))
SCALES = {
    "mirrored": Matrix.LocRotScale((1.0, 2.0, 0.0), TURN, (-1.0, 1.0, 1.0)),
    "mirrored on all axes": Matrix.LocRotScale(None, TURN, (-2.0, -2.0, -2.0)),
    "stretched": Matrix.LocRotScale(None, TURN, (1.0, 2.0, 0.5)),
    "mirrored and stretched": Matrix.LocRotScale(None, TURN, (1.0, -2.0, 0.7)),
}
UNEVEN = "is scaled unevenly by its object"


def placed(scale):
    rig = rigs.metarig("basic_human")
    rig.matrix_world = SCALES[scale]
    rigs.update()
    return rig


def require_same(before, after, metres=0.01):
    for name, matrix in after.items():
        for now, then in zip(matrix.col, before[name].col, strict=True):
            assert (now - then).length < metres, name


@pytest.mark.parametrize("choices", [{}, {"turn_hands": True, "poles": True}, {"plant": True}])
@pytest.mark.parametrize("scale", SCALES)
def test_a_bake_right_after_it_leaves_the_pose(checks, scale, choices):
    rig = placed(scale)
    set_up(rig, **choices)
    before = matrices(rig)
    bake(rig)
    require_same(before, matrices(rig))
    told = [problem.message for problem in checks.problems(rig, bpy.context.scene)]
    assert any(UNEVEN in message for message in told) == ("stretched" in scale)


def test_what_is_stretched_is_told_when_it_is_set_up(ext):
    rig = placed("stretched")
    rigs.activate(rig)
    build = ext.module("ccd_rig.blender.set_up")
    notes = build.set_up(bpy.context, rig, build.Choices(list(build.Group))).notes
    assert any(UNEVEN in note for note in notes)


def turned(size):
    """Rotations of a human of a size whose hand is moved by a small part of it, and its tolerance."""
    rig = rigs.metarig("basic_human")
    rig.matrix_world = Matrix.Scale(size, 4)
    rigs.update()
    made = set_up(rig)
    move(made["hand.L"], Vector((-0.012, -0.02, 0.015)) * size)
    bake(rig)
    tolerance = rig.ccd_rig.solver.position_tolerance
    return [bone.matrix.to_quaternion() for bone in rig.pose.bones], tolerance


def test_a_figure_of_a_centimetre_is_posed_as_a_large_one(ext):
    """Bones were off by up to 8 degrees: the tolerance was that of a human."""
    large, usual = turned(1.0)
    bpy.ops.wm.read_homefile(use_empty=True)
    small, fine = turned(0.01)
    assert usual == pytest.approx(1e-4)
    assert fine < 1e-5
    assert max(a.rotation_difference(b).angle for a, b in zip(large, small, strict=True)) < 0.01


def test_a_tolerance_that_was_chosen_stays(ext):
    rig = rigs.metarig("basic_human")
    rig.matrix_world = Matrix.Scale(0.01, 4)
    rig.ccd_rig.solver.position_tolerance = 2e-4
    set_up(rig)
    assert rig.ccd_rig.solver.position_tolerance == pytest.approx(2e-4)


@pytest.mark.parametrize("scale", ["mirrored", "mirrored and stretched"])
def test_targets_follow_the_motion_of_a_mirrored_figure(ext, scale):
    """Hands and feet that turn, keyed before it is set up: the bake leaves them as they are."""
    rig = placed(scale)
    for frame, angle in ((1, 0.0), (5, 0.6)):
        for name in ("hand.L", "foot.R", "forearm.L"):
            bone = rig.pose.bones[name]
            bone.rotation_mode, bone.rotation_euler = "XYZ", (angle, 0.3 * angle, 0.0)
            bone.keyframe_insert("rotation_euler", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 5
    bpy.context.scene.frame_set(5)
    before = matrices(rig)
    made = set_up(rig, turn_hands=True)
    assert made["hand.L"].target.animation_data is not None
    bake(rig)
    require_same(before, matrices(rig))


@pytest.mark.parametrize("scale", ["mirrored", "mirrored and stretched"])
def test_poles_of_straight_limbs_stand_on_the_side_of_the_knees(ext, scale):
    bones = [
        bone
        for side, x in (("L", 0.1), ("R", -0.1))
        for bone in (
            rigs.B(f"thigh.{side}", (x, 0, 1), (x, 0, 0.54), "hips"),
            rigs.B(f"shin.{side}", (x, 0, 0.54), (x, 0, 0.08), f"thigh.{side}", connect=True),
            rigs.B(f"foot.{side}", (x, 0, 0.08), (x, -0.15, 0.02), f"shin.{side}", connect=True),
        )
    ]
    rig = rigs.armature([*rigs.trunk(), *bones])
    rig.matrix_world = SCALES[scale]
    rigs.update()
    made = set_up(rig)
    for side in "LR":
        pole = rig.matrix_world.inverted() @ made[f"foot.{side}"].pole_target.matrix_world.translation
        assert pole.y < -0.1
