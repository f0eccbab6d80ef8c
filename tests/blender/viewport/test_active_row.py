"""The active bone and the active constraint follow each other."""

from __future__ import annotations

import bpy
import pytest
import rigs
from operator_calls import select


@pytest.fixture
def rig(ext):
    """Two arms on a spine, with a constraint for each hand and one for the spine."""
    bones = [rigs.B("spine", (0, 0, 0), (0, 0, 1))]
    for side, x in (("L", 1), ("R", -1)):
        bones += [
            rigs.B(f"arm.{side}", (0, 0, 1), (x, 0, 1), "spine"),
            rigs.B(f"hand.{side}", (x, 0, 1), (2 * x, 0, 1), f"arm.{side}"),
        ]
    rig = rigs.armature(bones)
    add = ext.module("ccd_rig.blender.properties.constraint_list").add
    for tip, length in (("hand.L", 2), ("hand.R", 2), ("spine", 1)):
        add(rig, tip, tip).chain_length = length
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    choose(rig, "hand.L")
    rig.ccd_rig.active_index = 0
    settle(rig)
    return rig


def choose(rig, bone):
    rig.data.bones.active = rig.data.bones[bone]


def settle(rig):
    """What a click does as well: it lets Blender evaluate the armature, which calls the handler."""
    rig.update_tag()
    rigs.update()


@pytest.mark.parametrize(
    ("bone", "row"), [("hand.R", 1), ("arm.R", 1), ("spine", 2), ("arm.L", 0), ("hand.L", 0)]
)
def test_the_row_follows_the_bone(rig, bone, row):
    choose(rig, bone)
    settle(rig)
    assert rig.ccd_rig.active_index == row
    assert rig.data.bones.active.name == bone
    settle(rig)
    assert rig.data.bones.active.name == bone


@pytest.mark.parametrize(("row", "bone"), [(1, "hand.R"), (2, "spine")])
def test_the_bone_follows_the_row(ext, rig, row, bone):
    rig.ccd_rig.active_index = row
    settle(rig)
    assert rig.data.bones.active.name == bone
    selected = [each.name for each in bpy.context.selected_pose_bones]
    assert selected == [bone]
    assert rig.ccd_rig.active_index == row


def test_a_bone_of_the_active_chain_keeps_its_row(rows, rig):
    rows.add(rig, "whole", "hand.R")
    settle(rig)
    choose(rig, "spine")
    settle(rig)
    assert rig.ccd_rig.active_index == 2  # the tip of its own
    choose(rig, "arm.R")
    settle(rig)
    assert rig.ccd_rig.active_index == 1
    rig.ccd_rig.active_index = 3  # another constraint of the same bone
    settle(rig)
    choose(rig, "hand.R")
    settle(rig)
    assert rig.ccd_rig.active_index == 3


def test_removing_moving_and_renaming_a_row_leave_the_bone(rows, rig):
    choose(rig, "arm.L")
    settle(rig)
    rows.move(rig, 0, 1)
    settle(rig)
    assert rig.data.bones.active.name == "arm.L"
    assert rig.ccd_rig.active_index == 1
    rig.ccd_rig.constraints[1].name = "Other"
    settle(rig)
    assert rig.data.bones.active.name == "arm.L"
    rows.remove(rig, 1)
    settle(rig)
    assert rig.data.bones.active.name == "arm.L"


def test_the_preference_switches_it_off(ext, rig):
    chosen = bpy.context.preferences.addons[ext.package].preferences
    chosen.follow_selection = False
    try:
        choose(rig, "hand.R")
        settle(rig)
        rig.ccd_rig.active_index = 2
        settle(rig)
        assert (rig.ccd_rig.active_index, rig.data.bones.active.name) == (2, "hand.R")
    finally:
        chosen.follow_selection = True
    settle(rig)
    assert (rig.ccd_rig.active_index, rig.data.bones.active.name) == (2, "hand.R")


def test_a_hidden_bone_is_not_made_active(rig):
    hidden = rig.data.collections.new("Hidden")
    hidden.assign(rig.data.bones["hand.R"])
    hidden.is_visible = False
    rig.ccd_rig.active_index = 1
    settle(rig)
    assert rig.data.bones.active.name == "hand.L"


@pytest.mark.parametrize("plant", [False, True])
def test_set_up_figure_leaves_selection_and_active_bone(ext, plant):
    human = rigs.metarig("basic_human")
    rigs.activate(human)
    select(ext, human, "hand.L")
    rigs.update()
    assert bpy.ops.ccd_rig.figure_set_up(plant=plant) == {"FINISHED"}
    rigs.update()
    assert [bone.name for bone in bpy.context.selected_pose_bones] == ["hand.L"]
    assert bpy.context.active_pose_bone.name == "hand.L"


def test_object_mode_is_left_alone(rig):
    bpy.ops.object.mode_set(mode="OBJECT")
    rig.ccd_rig.active_index = 2
    settle(rig)
    assert rig.data.bones.active.name == "hand.L"


def test_nothing_is_drawn_without_a_window(ext):
    assert bpy.app.background
    assert ext.module("viewport.overlay")._handlers == []


def test_the_row_follows_a_target_that_is_made_active(rig):
    """In Object Mode: a target or a pole; one of several rows of a target that is active stays."""
    rows = rig.ccd_rig.constraints
    right, pole, both = (rigs.empty(name) for name in ("Right", "Pole", "Both"))
    rows[1].target, rows[0].pole_target, rows[0].target, rows[2].target = right, pole, both, both
    bpy.ops.object.mode_set(mode="OBJECT")

    def click(thing):
        bpy.context.view_layer.objects.active = thing
        thing.update_tag()
        rigs.update()
        return rig.ccd_rig.active_index

    assert [click(thing) for thing in (right, pole, both, right, both)] == [1, 0, 0, 1, 0]
    rig.ccd_rig.active_index = 2
    assert click(both) == 2
    click(rig)
    assert click(both) == 2
    rig.ccd_rig.active_index = 1  # chosen in the list while the target stays active
    assert click(both) == 1


def test_an_empty_with_a_bone_left_over_in_its_row_is_found(ext, rig):
    """A bone that was chosen for a target before says nothing about an empty."""
    row, target, other = rig.ccd_rig.constraints[1], rigs.empty("Target"), rigs.empty("Other")
    row.target, row.target_bone = target, "old"
    bpy.ops.object.mode_set(mode="OBJECT")
    for thing in (other, target):
        bpy.context.view_layer.objects.active = thing
        thing.update_tag()
        rigs.update()
    assert rig.ccd_rig.active_index == 1
