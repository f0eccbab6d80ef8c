"""Feet planted with the set-up of a figure, and after it."""

from __future__ import annotations

import bpy
import pytest
import rigs
from figures_set_up import FRAMES, SOLVE, bake, move, set_up, target_of
from rigs import B


def test_feet_planted(ext):
    rig = rigs.metarig("basic_human")
    made = set_up(rig, plant=True)
    assert [made[f"foot.{side}"].kind for side in "LR"] == ["PLANT", "PLANT"]
    before = {side: rig.pose.bones[f"foot.{side}"].head.copy() for side in "LR"}
    move(made["spine"], (0.05, 0.0, -0.1))
    posed = bake(rig)
    for side, place in before.items():
        assert (posed.pose.bones[f"foot.{side}"].head - place).length < SOLVE
    assert (posed.pose.bones["spine"].head - target_of(made["spine"]).translation).length < SOLVE


def select_bones(rig, *names):
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    for bone in rig.pose.bones:
        (bone if hasattr(bone, "select") else bone.bone).select = bone.name in names
    rig.data.bones.active = rig.data.bones[names[0]]


def test_feet_planted_without_a_target_for_the_hips(ext):
    """What planted feet shift carries no target, as that would hang on its own chain."""
    rig = rigs.metarig("basic_human")
    made = set_up(rig, plant=True, hips=False)
    assert made["spine.006"].target.parent is None
    bake(rig)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


def plant_feet(rig, *tips):
    """Select bones in Pose Mode and plant them, as a user's next click does."""
    select_bones(rig, *tips)
    done = bpy.ops.ccd_rig.feet_plant("EXEC_DEFAULT", True, hold_height=True, hold_rotation=True)
    bpy.ops.object.mode_set(mode="OBJECT")
    assert done == {"FINISHED"}


PLANTED = [
    ("basic_human", ("foot.L", "foot.R"), "spine", (0.05, 0.0, -0.1)),
    ("human", ("foot.L", "foot.R"), "spine", (0.0, -0.06, -0.12)),
    ("cat", ("r_toe.L", "r_toe.R", "f_toe.L", "f_toe.R"), "spine", (0.0, 0.0, -0.02)),
]


@pytest.mark.parametrize(("kind", "feet", "hips", "drop"), PLANTED)
def test_feet_planted_after_the_set_up(ext, capfd, kind, feet, hips, drop):
    """The hips slid to their target: the planted feet shift them now, and they still go to it."""
    rig = rigs.metarig(kind)
    made = set_up(rig)
    hips = next(name for name, row in made.items() if any(rig.pose.bones[row.tip].ccd_rig.use_slide))
    plant_feet(rig, *feet)
    assert f"Slide switched off, as planted feet shift it: {hips}" in capfd.readouterr().out
    rows = rig.ccd_rig.constraints
    assert {rows[name].kind for name in feet} == {"PLANT"}
    checks = ext.module("ccd_rig.blender.checks")
    assert not list(checks.constraint_problems(rig, rows[hips], bpy.context.scene))
    before = {name: rig.pose.bones[name].matrix.copy() for name in feet}
    move(rows[hips], drop)
    posed = bake(rig)
    for name, matrix in before.items():
        assert (posed.pose.bones[name].head - matrix.translation).length < SOLVE, name
        turned = posed.pose.bones[name].matrix.to_quaternion().rotation_difference(matrix.to_quaternion())
        assert min(turned.angle, 6.2831853 - turned.angle) < 0.01, name
    assert (posed.pose.bones[hips].head - target_of(rows[hips]).translation).length < SOLVE
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


CAPE = [
    B("cape", (0, 0.4, 1.0), (0, 0.5, 0.7), "root"),
    B("cape.001", (0, 0.5, 0.7), (0, 0.6, 0.4), "cape"),
]


def test_feet_planted_on_keyed_hips_below_a_root_that_carries_more(ext):
    """Targets hang on the bone that carries the figure over planted feet, which keeps its animation."""
    rig = rigs.armature([*rigs.biped(), *CAPE])
    for frame, place in zip(FRAMES, ((0, 0, 0), (0, 0, -0.05)), strict=True):
        rig.pose.bones["hips"].location = place
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES
    bpy.context.scene.frame_set(1)
    made = set_up(rig)
    assert {"foot.L", "foot.R", "head"} <= set(made)
    plant_feet(rig, "foot.L", "foot.R")
    bake(rig)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


@pytest.mark.parametrize(
    ("root", "length"), [(((0, 0, 0), (0, 0.3, 0)), 4), (((0, 0.3, 0.9), (0, 0, 1.0)), 0)]
)
def test_a_root_that_stands_apart_carries_controls_another_one_the_figure(ext, root, length):
    """Where hips begin at the end of a root that carries more than them, the root is planted over."""
    rig = rigs.armature([B("root", *root), *rigs.biped()[1:], *CAPE])
    kinds = ext.module("ccd_rig.blender.properties.constraint_kinds")
    assert kinds.first_root_bone_chain_length(rig, "foot.L") == length


def test_planting_after_the_set_up_is_undone_in_one_step(ext):
    def state():
        rig = bpy.data.objects["Rig"]
        rows = [(row.name, row.kind, row.chain_length, row.target) for row in rig.ccd_rig.constraints]
        return str(rows), [tuple(bone.ccd_rig.use_slide) for bone in rig.pose.bones]

    rig = rigs.armature(rigs.biped())
    set_up(rig)
    select_bones(rig, "foot.L", "foot.R")
    bpy.ops.ed.undo_push(message="set up")
    before = state()
    bpy.ops.ccd_rig.feet_plant("EXEC_DEFAULT", True)
    assert state() != before
    bpy.ops.ed.undo()
    assert state() == before
