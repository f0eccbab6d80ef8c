"""Constraints, offsets, the pose library and what a baked action keeps follow bones that are renamed."""

from __future__ import annotations

import bpy
import pytest
import rigs


@pytest.fixture
def rig(ext):
    """A chain with a constraint whose target is a bone of another armature."""
    made, other = rigs.chain(4, name="Rig"), rigs.chain(2, name="Other")
    other.location = (0.5, 0.5, 3.0)
    row = made.ccd_rig.constraints.add()
    row.name, row.tip = "Hand", "bone_3"
    row.target, row.target_bone = other, "bone_1"
    row.rotation, row.rotation_bone = "ORIENTATION", "bone_2"
    row.pole_target, row.pole_bone = other, "bone_0"
    rigs.activate(made)
    rigs.update()
    return made


@pytest.fixture
def row(rig):
    return rig.ccd_rig.constraints[0]


def rename(rig, **names):
    for old, new in names.items():
        rig.data.bones[old].name = new
    rigs.update()


def test_all_names_of_a_constraint_follow(rig, row):
    rename(rig, bone_3="hand.L", bone_2="wrist.L")
    rename(row.target, bone_1="grip", bone_0="root")
    assert (row.tip, row.rotation_bone, row.pole_bone, row.target_bone) == (
        "hand.L",
        "wrist.L",
        "root",
        "grip",
    )


def test_again_and_back(rig, row):
    for name in ("a", "b", "bone_3", "c"):
        rename(rig, **{row.tip: name})
        assert row.tip == name


def test_renamed_in_edit_mode(rig, row):
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["bone_3"].name = "hand"
    bpy.ops.object.mode_set(mode="OBJECT")
    assert row.tip == "hand"


def swap(rig, one, other):
    bones = rig.data.bones
    bones[one].name = "aside"
    bones[other].name = one
    bones["aside"].name = other
    rigs.update()


def test_bones_that_swap_their_names(rig, row):
    swap(rig, "bone_3", "bone_2")
    assert (row.tip, row.rotation_bone) == ("bone_2", "bone_3")


def test_a_bone_that_swaps_its_name_with_one_that_nothing_refers_to(rig, row):
    """Its former name has another bone then, which was taken for it."""
    swap(rig, "bone_1", "bone_3")
    assert (row.tip, row.rotation_bone) == ("bone_1", "bone_2")
    assert rig.pose.bones["bone_1"].ccd_rig.known_as == "bone_1"


def test_a_copy_of_a_bone_is_another_bone(rig, row):
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.armature.select_all(action="SELECT")
    bpy.ops.armature.duplicate()
    bpy.ops.object.mode_set(mode="OBJECT")
    rigs.update()
    assert row.tip == "bone_3"
    assert "bone_3.001" in rig.data.bones
    rename(rig, bone_3="hand")
    assert row.tip == "hand"
    rename(rig, **{"bone_3.001": "spare"})
    assert row.tip == "hand"


def test_a_bone_that_is_gone_stays_gone(rig, row):
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones.remove(rig.data.edit_bones["bone_3"])
    bpy.ops.object.mode_set(mode="OBJECT")
    rename(rig, bone_2="elbow")
    assert (row.tip, row.rotation_bone) == ("bone_3", "elbow")


def test_a_name_chosen_by_hand_counts(rig, row):
    rename(rig, bone_3="hand")
    row.tip = "bone_1"
    rename(rig, bone_1="elbow", hand="palm")
    assert row.tip == "elbow"


def test_in_the_same_step_as_the_choice(rig, row):
    """No evaluation between a script's choice of a bone and its renaming."""
    row.tip = "bone_1"
    rig.data.bones["bone_1"].name = "elbow"
    rigs.update()
    assert row.tip == "elbow"


def test_undo_takes_back_both(rig, row):
    bpy.ops.ed.undo_push(message="before")
    rename(rig, bone_3="hand")
    bpy.ops.ed.undo_push(message="renamed")
    bpy.ops.ed.undo()
    rig = bpy.data.objects["Rig"]
    assert rig.ccd_rig.constraints[0].tip == "bone_3"
    rename(rig, bone_3="palm")
    assert rig.ccd_rig.constraints[0].tip == "palm"


def test_a_file_without_notes(rig, row, tmp_path):
    """As older versions have stored it: what is named when it is opened is known from then on."""
    rigs.forget_names(rig)
    path = str(tmp_path / "old.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    rig = bpy.data.objects["Rig"]
    rename(rig, bone_3="hand")
    assert rig.ccd_rig.constraints[0].tip == "hand"


def test_renamed_without_an_evaluation_before_a_bake(ext, rig, row):
    """A script that renames and bakes at once."""
    rig.data.bones["bone_3"].name = "hand"
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=3) == {"FINISHED"}
    assert row.tip == "hand"


def test_a_baked_action_still_knows_its_motion(ext, rig, row):
    """A bake that starts from the motion before the first one finds it under the bones' new names."""
    originals = ext.module("ccd_rig.blender.properties.stored_poses")
    rig.pose.bones["bone_2"].rotation_quaternion = (0.9, 0.1, 0.3, 0.0)
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=3) == {"FINISHED"}
    before = rig.animation_data.action[originals.POSE].to_dict()
    assert "bone_2" in before
    rename(rig, bone_2="wrist", bone_3="hand")
    after = rig.animation_data.action[originals.POSE].to_dict()
    assert after == {
        {"bone_2": "wrist", "bone_3": "hand"}.get(name, name): held for name, held in before.items()
    }
    assert not rig.ccd_rig.report.words or bpy.ops.ccd_rig.bake(frame_start=1, frame_end=3) == {"FINISHED"}


def test_poses_of_the_library_follow(ext, rig):
    entry, library = ext.core.PoseEntry, ext.module("ccd_rig.blender.properties.pose_library")
    rotation = rig.pose.bones["bone_1"].rotation_quaternion.copy().freeze()
    library.add(rig, [entry("Bent", {"bone_1": rotation, "bone_2": rotation})])
    rename(rig, bone_1="elbow")
    assert [line.name for line in rig.ccd_rig.poses[0].rotations] == ["elbow", "bone_2"]


def test_the_pose_before_solve_follows(ext):
    """A solve after one for another target starts from the pose before both, whatever the bones' names."""
    ends = []
    for names in ({}, {"bone_0": "hip", "bone_2": "wrist", "bone_3": "hand"}):
        made = rigs.chain(4)
        target = rigs.empty("Goal", (2.0, 0.5, 2.0))
        rigs.reach(made, "bone_3", target)
        rigs.activate(made)
        assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
        rename(made, **names)
        target.location = (-1.5, 1.0, 2.5)
        rigs.update()
        assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
        ends.append([tuple(bone.rotation_quaternion) for bone in made.pose.bones])
    assert ends[0] == ends[1]


def test_linked_bones_stay_as_they_are(rig, row, tmp_path):
    path = str(tmp_path / "library.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(path, link=True) as (_, to):
        to.objects = ["Rig"]
    linked = bpy.data.objects["Rig"]
    bpy.context.scene.collection.objects.link(linked)
    local = rigs.chain(2, name="Local")
    added = local.ccd_rig.constraints.add()
    added.tip, added.target, added.target_bone = "bone_1", linked, "bone_3"
    rename(local, bone_1="hand")
    assert (added.tip, added.target_bone) == ("hand", "bone_3")


@pytest.mark.parametrize("by_hand", [True, False])
def test_the_bone_map_of_a_retargeting_follows_on_both_sides(ext, rig, row, by_hand):
    group, source = rig.ccd_rig.retarget, row.target
    row.target = row.pole_target = None
    group.source = source
    if by_hand:
        for name, other in (("bone_0", "bone_0"), ("bone_1", "bone_1")):
            pair = group.pairs.add()
            pair.name = name
            pair.source = other
    else:
        ext.module("ccd_rig.blender.retarget.retarget").set_pairs(
            rig, {"bone_0": "bone_0", "bone_1": "bone_1"}
        )
    rename(rig, bone_1="spine")
    rename(source, bone_0="Hips")
    assert {pair.name: pair.source for pair in group.pairs} == {"bone_0": "Hips", "spine": "bone_1"}
    rename(source, Hips="pelvis", bone_1="chest")
    assert {pair.name: pair.source for pair in group.pairs} == {"bone_0": "pelvis", "spine": "chest"}


def test_looking_for_references_makes_no_settings(ext, rig):
    mesh, other = rigs.empty("Mesh"), rigs.chain(2, name="Plain")
    rename(rig, bone_3="hand")
    assert rig.ccd_rig.constraints[0].tip == "hand"
    assert not mesh.is_property_set("ccd_rig")
    assert not other.is_property_set("ccd_rig")
