"""The kind of a constraint changed in the panel: chain and target come to suit it."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from rigs import B


def add(rig, tip, **fields):
    """As a user does, in Pose Mode with the bone active."""
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    rig.data.bones.active = rig.data.bones[tip]
    assert bpy.ops.ccd_rig.constraint_add(**fields) == {"FINISHED"}
    return rig.ccd_rig.constraints[rig.ccd_rig.active_index]


def end_of(rig, row):
    chain = [rig.pose.bones[row.tip], *rig.pose.bones[row.tip].parent_recursive]
    return chain[: row.chain_length or None][-1].name


def test_a_reach_that_becomes_a_plant(bake):
    """Its chain goes up to the hips, not to the bone to which it reached: the limb stays on."""
    rig = rigs.armature(rigs.biped())
    row = add(rig, "shin.L")
    row.offset, row.use_tail = (0.1, 0.0, 0.0), False
    assert end_of(rig, row) == "thigh.L"
    assert row.target is not None
    assert bpy.ops.ccd_rig.constraint_kind(kind="PLANT") == {"FINISHED"}
    assert (row.kind, row.target, tuple(row.offset), row.use_tail) == ("PLANT", None, (0.0, 0.0, 0.0), True)
    assert end_of(rig, row) == "hips"
    rigs.update()
    before = [bone.matrix.copy() for bone in rig.pose.bones]
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10))
    assert report.unsolved_count() == 0
    bpy.context.scene.frame_set(7)
    seen = [bone.matrix.copy() for bone in rig.pose.bones]
    assert max(np.abs(np.array(a) - np.array(b)).max() for a, b in zip(before, seen, strict=True)) < 1e-5


def test_a_plant_that_becomes_a_reach():
    rig = rigs.armature(rigs.biped())
    row = add(rig, "foot.L", kind="PLANT")
    assert end_of(rig, row) == "hips"
    bpy.ops.ccd_rig.constraint_kind(kind="REACH")
    assert (row.kind, end_of(rig, row)) == ("REACH", "thigh.L")
    bpy.ops.ccd_rig.constraint_kind(kind="BALANCE")
    assert (row.kind, row.chain_length) == ("BALANCE", 0)


def test_the_same_kind_changes_nothing():
    rig = rigs.armature(rigs.biped())
    row = add(rig, "foot.L")
    row.chain_length, target = 2, row.target
    bpy.ops.ccd_rig.constraint_kind(kind="REACH")
    assert (row.chain_length, row.target) == (2, target)


def test_all_plants_share_the_bone_that_carries_the_figure():
    rig = rigs.armature(rigs.biped())
    add(rig, "foot.L", kind="PLANT").chain_length = 0  # the user lets the root carry it
    assert end_of(rig, add(rig, "foot.R", kind="PLANT")) == "root"
    assert end_of(rig, add(rig, "head", kind="PLANT")) == "root"


def test_the_hips_of_a_quadruped_carry_its_front_legs_too():
    """Whichever foot comes first: the chest carries the front legs and the neck, the hips all of it."""
    bones = [
        B("root", (0, 0, 0), (0, 0.3, 0)),
        B("hips", (0, 1, 1), (0, 0.7, 1), "root"),
        B("chest", (0, 0.5, 1), (0, 0, 1), "hips"),
        B("neck", (0, 0, 1), (0, -0.3, 1.2), "chest", connect=True),
        B("head", (0, -0.3, 1.2), (0, -0.6, 1.2), "neck", connect=True),
    ]
    for end, y, above in (("front", 0.1, "chest"), ("hind", 1.0, "hips")):
        for side, x in (("L", 0.2), ("R", -0.2)):
            bones += [
                B(f"{end}_upper.{side}", (x, y, 1), (x, y + 0.05, 0.5), above),
                B(
                    f"{end}_lower.{side}",
                    (x, y + 0.05, 0.5),
                    (x, y, 0.1),
                    f"{end}_upper.{side}",
                    connect=True,
                ),
                B(f"{end}_paw.{side}", (x, y, 0.1), (x, y - 0.1, 0), f"{end}_lower.{side}", connect=True),
            ]
    for first, second in (("front", "hind"), ("hind", "front")):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = rigs.armature(bones)
        for paw in (f"{first}_paw.L", f"{second}_paw.L", f"{first}_paw.R", f"{second}_paw.R"):
            assert end_of(rig, add(rig, paw, kind="PLANT")) == "hips"


def test_undo_takes_all_of_it_back():
    rig = rigs.armature(rigs.biped())
    row = add(rig, "shin.L")
    before = row.chain_length, row.target.name
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.ccd_rig.constraint_kind(kind="PLANT")
    bpy.ops.ed.undo_push(message="after")
    bpy.ops.ed.undo()
    row = bpy.data.objects["Rig"].ccd_rig.constraints[0]
    assert (row.kind, row.chain_length, row.target.name) == ("REACH", *before)


def test_the_redo_panel_chooses_the_chain_anew_with_the_kind():
    """What the redo panel does: the same operator with all its properties, of which one was changed."""
    rig = rigs.armature(rigs.biped())
    assert end_of(rig, add(rig, "shin.L", kind="REACH", chain_length=2, suits="REACH")) == "thigh.L"
    assert end_of(rig, add(rig, "shin.R", kind="PLANT", chain_length=2, suits="REACH")) == "hips"
    assert add(rig, "shin.L", kind="REACH", chain_length=1, suits="REACH").chain_length == 1
    assert add(rig, "shin.L", kind="REACH", chain_length=1).chain_length == 1


def test_two_root_bones_are_shown_in_the_list(checks):
    rig = rigs.armature(rigs.biped())
    one, other = add(rig, "foot.L", kind="PLANT"), add(rig, "foot.R", kind="PLANT")
    one, other = rig.ccd_rig.constraints
    other.chain_length = 3
    for row, words in ((one, "'hips' and 'thigh.R'"), (other, "'thigh.R' and 'hips'")):
        found = [p.message for p in checks.constraint_problems(rig, row, bpy.context.scene)]
        assert any(words in message and "set Chain Length" in message for message in found)
    other.enabled = False
    found = [p.message for p in checks.constraint_problems(rig, one, bpy.context.scene)]
    assert not any("Chain Length" in message for message in found)


def test_without_a_constraint_the_button_is_grey():
    rigs.activate(rigs.armature(rigs.biped()))
    with pytest.raises(RuntimeError, match="no CCD constraint"):
        bpy.ops.ccd_rig.constraint_kind(kind="PLANT")
