"""Targets made by Add, and the way from a rig to its targets and back."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import pytest
import rigs
from linked_rigs import character, collected
from rigs import B


def arms():
    bones = [B("chest", (0, 0, 1), (0, 0, 1.4))]
    for side, x in (("L", 1.0), ("R", -1.0)):
        bones += [
            B(f"arm.{side}", (0.2 * x, 0, 1.3), (0.5 * x, 0.05, 1.3), "chest"),
            B(f"hand.{side}", (0.5 * x, 0.05, 1.3), (0.8 * x, 0, 1.3), f"arm.{side}", connect=True),
        ]
    return rigs.armature(bones)


def add(rig, tip):
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    rig.data.bones.active = rig.data.bones[tip]
    assert bpy.ops.ccd_rig.constraint_add() == {"FINISHED"}
    return rig.ccd_rig.constraints[rig.ccd_rig.active_index]


def test_targets_are_seen_and_sorted():
    rig = arms()
    left, right, middle = (add(rig, tip).target for tip in ("hand.L", "hand.R", "chest"))
    assert left.show_in_front and right.show_in_front
    assert len({tuple(each.color) for each in (left, right, middle)}) == 3
    assert left.color[2] > left.color[0] and right.color[0] > right.color[2]  # blue left, red right
    (collection,) = left.users_collection
    assert collection.name == "Targets of Rig"
    assert right.users_collection[0] == middle.users_collection[0] == collection
    assert collection.name in rig.users_collection[0].children


def test_targets_are_sized_to_the_rig():
    """Of a tiny bone not too small to be seen, of a huge one not larger than a part of the rig."""
    sizes = []
    for length in (0.001, 0.3, 30.0):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = rigs.armature(
            [B("long", (0, 0, 0), (0, 0, 3)), B("tip", (0, 0, 3), (0, 0, 3 + length), "long")]
        )
        target = add(rig, "tip").target
        sizes.append(target.empty_display_size / (3 + length))
    assert all(0.009 < size < 0.06 for size in sizes)


def test_another_rig_has_a_collection_of_its_own():
    one = add(arms(), "hand.L").target
    bpy.ops.object.mode_set(mode="OBJECT")
    other = add(arms(), "hand.L").target
    assert one.users_collection[0] != other.users_collection[0]


@pytest.mark.parametrize("targets", [False, True], ids=["no targets", "with targets"])
def test_an_overridden_character_gets_targets_beside_it(targets, tmp_path):
    """Blender adds nothing to an override of a collection, be it the rig's or that of its targets."""
    rig = collected(arms())
    if targets:
        add(rig, "hand.R")
        bpy.ops.object.mode_set(mode="OBJECT")
    rig = character(rig, tmp_path)
    target = add(rig, "hand.L").target
    (collection,) = target.users_collection
    assert collection.name in bpy.context.scene.collection.children
    again = add(rig, "arm.L").target
    assert again.users_collection == (collection,)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    rig = next(each for each in bpy.data.objects if each.type == "ARMATURE" and each.library is None)
    wanted = {"hand.L": "Target hand.L", "arm.L": "Target arm.L"} | (
        {"hand.R": "Target hand.R"} if targets else {}
    )
    assert {row.tip: row.target.name for row in rig.ccd_rig.constraints} == wanted


def test_to_the_target_and_back(ext):
    active_rig = ext.module("ccd_rig.blender.properties.active_rig").active_rig
    rig = arms()
    for tip in ("hand.L", "hand.R"):
        add(rig, tip)
    rig.ccd_rig.active_index = 0
    target = rig.ccd_rig.constraints[0].target
    assert bpy.ops.ccd_rig.target_select() == {"FINISHED"}
    assert bpy.context.object == target and bpy.context.selected_objects == [target]
    assert active_rig(bpy.context) == rig
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}  # from the target as from the rig
    rig.ccd_rig.active_index = 1
    assert bpy.ops.ccd_rig.rig_select() == {"FINISHED"}
    assert (bpy.context.object, bpy.context.mode) == (rig, "POSE")
    assert bpy.context.active_pose_bone.name == "hand.L" and rig.ccd_rig.active_index == 0
    assert [bone.name for bone in bpy.context.selected_pose_bones] == ["hand.L"]


def test_a_bone_as_the_target():
    rig, other = arms(), rigs.chain(3, name="Prop")
    row = add(rig, "hand.L")
    row.target, row.target_bone = other, "bone_1"
    assert bpy.ops.ccd_rig.target_select() == {"FINISHED"}
    assert (bpy.context.object, bpy.context.active_pose_bone.name) == (other, "bone_1")


def test_what_belongs_to_no_rig_is_no_target(ext):
    active_rig = ext.module("ccd_rig.blender.properties.active_rig").active_rig
    add(arms(), "hand.L")
    bpy.ops.object.mode_set(mode="OBJECT")
    rigs.activate(rigs.empty("Lamp"))
    assert active_rig(bpy.context) is None
    with pytest.raises(RuntimeError, match="Select an armature"):
        bpy.ops.ccd_rig.solve()


def test_the_objects_of_a_scene_are_looked_through_once_for_a_target_and_never_for_others(ext):
    """Each panel asks at each redraw. A removed rig, and one in another scene, are not taken again."""
    active_rig = ext.module("ccd_rig.blender.properties.active_rig").active_rig
    view_layer, every = bpy.context.view_layer, []
    seen = SimpleNamespace(view_layer=view_layer, scene=SimpleNamespace(objects=every))
    seen.object = rigs.empty("Lamp")
    every.append(None)  # fails if it is looked at
    assert active_rig(seen) is None
    first, other = rigs.chain(1, name="First"), rigs.chain(1, name="Other")
    seen.object = rigs.empty("Goal")
    for rig in (first, other):
        rigs.reach(rig, "bone_0", seen.object)
    every[:] = first, other
    assert active_rig(seen) == first
    every[:] = [None]
    assert active_rig(seen) == first
    first.ccd_rig.constraints[0].target = None
    every[:] = first, other
    assert active_rig(seen) == other
    bpy.context.scene.collection.objects.unlink(other)
    every[:] = [first]
    assert active_rig(seen) is None
    bpy.context.scene.collection.objects.link(other)
    every[:] = [None]
    assert active_rig(seen) == other
    bpy.data.objects.remove(other)
    every[:] = [first]
    assert active_rig(seen) is None


def test_a_hidden_target_is_said():
    rig = arms()
    row = add(rig, "hand.L")
    row.target.hide_set(True)
    with pytest.raises(RuntimeError, match="is hidden or not in this view layer: show it first"):
        bpy.ops.ccd_rig.target_select()
    assert bpy.context.mode == "POSE"


def test_a_rig_that_was_hidden_in_pose_mode_is_said():
    """Blender leaves no mode of a hidden object."""
    rig = arms()
    row = add(rig, "hand.L")
    rig.hide_viewport = True
    with pytest.raises(RuntimeError, match="Error: 'Rig' is hidden or not in this view layer: show it first"):
        bpy.ops.ccd_rig.target_select()
    assert bpy.context.object == rig and not row.target.select_get()


def test_without_a_target_the_button_is_grey():
    rig = arms()
    add(rig, "hand.L").target = None
    with pytest.raises(RuntimeError, match="has no target"):
        bpy.ops.ccd_rig.target_select()
    with pytest.raises(RuntimeError, match="The rig is selected"):
        bpy.ops.ccd_rig.rig_select()


@pytest.mark.parametrize("with_target", [False, True])
def test_a_row_is_removed_with_its_target_if_asked(with_target):
    rig = arms()
    name = add(rig, "hand.L").target.name
    assert bpy.ops.ccd_rig.constraint_remove(with_target=with_target) == {"FINISHED"}
    assert (name in bpy.data.objects) != with_target


def test_targets_of_others_stay():
    """What two rows reach for, or what the user has made, is not removed with one of them."""
    rig = arms()
    shared = add(rig, "hand.L").target
    add(rig, "hand.R").target = shared
    name = shared.name
    bpy.ops.ccd_rig.constraint_remove(with_target=True)
    assert name in bpy.data.objects
    rig.ccd_rig.constraints[0].target = rigs.empty("Own")
    rigs.activate(rig)
    bpy.ops.ccd_rig.constraint_remove(with_target=True)
    assert "Own" in bpy.data.objects
