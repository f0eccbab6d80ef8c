"""The pose library: stored, overridden, undone, and poses of bones that are gone."""

from __future__ import annotations

import bpy
import pytest
import rigs
from library_poses import mixed_chain, read, same, stored, turn
from linked_rigs import linked, overridden
from mathutils import Quaternion
from operator_calls import both_ways, fails, reasons, undo_push


@pytest.fixture
def rig(ext):
    return mixed_chain(ext)


# Stored -----------------------------------------------------------------------------------------------------


def test_saved_and_opened_again(library, rig, tmp_path):
    rigs.set_rotation(rig.pose.bones["bone_2"], turn(77))
    bpy.ops.ccd_rig.pose_capture(name="High")
    before = stored(library)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "poses.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "poses.blend"))
    assert stored(library) == before


def test_apply_and_remove(library, rig):
    wanted = {"bone_1": turn(50, "Z"), "bone_2": turn(-70, "Y")}
    for bone, rotation in wanted.items():
        rigs.set_rotation(rig.pose.bones[bone], rotation)
    bpy.ops.ccd_rig.pose_capture()
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, turn(5))
    bpy.ops.ccd_rig.pose_capture(name="Other")
    rig.ccd_rig.active_pose = 0
    assert bpy.ops.ccd_rig.pose_apply() == {"FINISHED"}
    for bone, rotation in {**wanted, "bone_0": turn(5)}.items():
        assert same(read(rig)[bone], rotation), bone
    bpy.ops.ccd_rig.pose_remove()
    assert [entry.name for entry in stored(library)] == ["Other"]
    bpy.ops.ccd_rig.pose_capture()
    bpy.ops.ccd_rig.pose_remove(all=True)
    assert stored(library) == ()


def test_undo(library, rig):
    def state():
        again = bpy.data.objects["Rig"]
        return [e.name for e in stored(library)], [tuple(each) for each in read(again).values()]

    rigs.set_rotation(rig.pose.bones["bone_2"], turn(77))
    undo_push()
    for name in ("pose_capture", "pose_apply", "pose_remove"):
        if name == "pose_apply":
            rigs.set_rotation(bpy.data.objects["Rig"].pose.bones["bone_2"], turn(5))
            undo_push()
        before = state()
        assert getattr(bpy.ops.ccd_rig, name)() == {"FINISHED"}
        undo_push()
        both_ways(before, state(), state)


def test_an_override_keeps_added_poses(library, rig, tmp_path):
    bpy.ops.ccd_rig.pose_capture(name="Theirs")
    bpy.ops.object.mode_set(mode="OBJECT")
    made = overridden(rig, tmp_path)
    rigs.activate(made)
    for name, degrees in (("Mine", 44), ("Mine too", 55)):
        rigs.set_rotation(made.pose.bones["bone_1"], turn(degrees))
        assert bpy.ops.ccd_rig.pose_capture(name=name) == {"FINISHED"}
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [o for o in bpy.data.objects if o.override_library and o.type == "ARMATURE"]
    found = library.entries(again)
    assert [entry.name for entry in found] == ["Theirs", "Mine", "Mine too"]
    assert same(found[1].rotations["bone_1"], turn(44))
    assert same(found[2].rotations["bone_1"], turn(55))
    rigs.activate(again)
    again.ccd_rig.active_pose = 0
    fails(bpy.ops.ccd_rig.pose_remove, "pose 'Theirs' comes from the library")
    bpy.ops.ccd_rig.pose_remove(all=True)
    assert [entry.name for entry in library.entries(again)] == ["Theirs"]


def test_an_override_of_a_rig_without_a_library(library, rig, tmp_path):
    bpy.ops.object.mode_set(mode="OBJECT")
    rigs.activate(overridden(rig, tmp_path))
    bpy.ops.ccd_rig.pose_capture(name="Mine")
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [o for o in bpy.data.objects if o.override_library and o.type == "ARMATURE"]
    assert [(e.name, list(e.rotations)) for e in library.entries(again)] == [("Mine", ["bone_1", "bone_2"])]


def test_overrides_whose_library_is_missing_leave_the_others_alone(ext, rig, tmp_path):
    """Blender puts placeholders without bones in place of what it does not find."""
    bpy.ops.object.mode_set(mode="OBJECT")
    made = overridden(rig, tmp_path)
    made.data.override_create(remap_local_usages=True)  # so that its bones stay when the library is gone
    rigs.activate(made)
    bpy.ops.ccd_rig.pose_capture(name="Mine")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    for each in tmp_path.glob("*.blend"):
        if each.name != "shot.blend":
            each.unlink()
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (lost,) = [each for each in bpy.data.objects if each.override_library]
    assert lost.pose.bones and lost.override_library.reference.pose is None
    ext.module(
        "ccd_rig.blender.properties.active_rig"
    ).keep_all_overrides()  # as a handler does on opening and saving


# Bones that are gone ----------------------------------------------------------------------------------------


@pytest.fixture
def lost(rig):
    """A pose of bones of which one is renamed, and one of a bone that is gone altogether."""
    bpy.ops.ccd_rig.pose_capture(name="Both")
    bpy.ops.ccd_rig.pose_capture(name="One", bones="SELECTED")
    rigs.forget_names(rig)
    rig.data.bones["bone_1"].name = "elbow"
    rig.data.bones["bone_0"].name = "shoulder"
    rigs.update()
    return rig


def found(ext, rig):
    checks = ext.module("ccd_rig.blender.checks")
    return {p.where: (p.severity, p.message) for p in checks.problems(rig, bpy.context.scene)}


def test_checks_name_missing_bones(ext, library, lost):
    lost.ccd_rig.solver.restarts = 0
    problems = found(ext, lost)
    assert problems["Both"][0] == "WARNING"
    assert "Pose 'Both': bone 'bone_1' is not in armature 'Rig' (renamed or deleted?)" in problems["Both"][1]
    assert problems["One"][0] == "WARNING"
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    lost.ccd_rig.solver.restarts = 1
    problems = found(ext, lost)
    assert (problems["Both"][0], problems["One"][0]) == ("WARNING", "ERROR")
    words = "Pose 'One': none of its bones ('bone_0') is in armature 'Rig'"
    assert words in problems["One"][1]
    fails(bpy.ops.ccd_rig.solve, words)
    fails(bpy.ops.ccd_rig.bake, words, frame_start=1, frame_end=2)
    bpy.ops.ccd_rig.pose_remove()
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}


def test_apply_with_missing_bones(ext, lost, capfd):
    fails(bpy.ops.ccd_rig.pose_apply, "Pose 'One': none of its bones ('bone_0') is in armature 'Rig'")
    lost.ccd_rig.active_pose = 0
    rigs.set_rotation(lost.pose.bones["bone_2"], turn(50))
    assert bpy.ops.ccd_rig.pose_apply() == {"FINISHED"}
    assert "bone 'bone_1' is not in armature 'Rig'" in capfd.readouterr().out
    assert same(read(lost)["bone_2"], Quaternion())


def test_a_rotation_that_is_none(ext, rig):
    bpy.ops.ccd_rig.pose_capture()
    rig.ccd_rig.poses[0].rotations[0].rotation = (0.0, 0.0, 0.0, 0.0)
    words = "pose entry 'Pose': rotation of bone 'bone_1' must be a unit quaternion"
    assert words in found(ext, rig)["Rig"][1]
    fails(bpy.ops.ccd_rig.pose_apply, words)
    assert bpy.ops.ccd_rig.pose_remove() == {"FINISHED"}


# Greyed out -------------------------------------------------------------------------------------------------


def test_grey(ext, library, rig, tmp_path):
    mine = ("pose_capture", "pose_remove", "pose_apply", "poses_export", "poses_import")
    for words in reasons(*mine[1:4]).values():
        assert "The pose library of 'Rig' is empty: capture a pose first" in words
    bpy.ops.ccd_rig.pose_capture()
    rig.ccd_rig.active_pose = 7
    for words in reasons("pose_remove", "pose_apply").values():
        assert "Choose a pose in the list" in words
    bpy.ops.object.mode_set(mode="EDIT")
    for words in reasons(*mine).values():
        assert "Leave Edit Mode" in words
    bpy.ops.object.mode_set(mode="OBJECT")
    rigs.empty("Thing")
    for words in reasons(*mine).values():
        assert "Select an armature" in words
    rigs.activate(linked(rig, tmp_path))
    for words in reasons(*mine).values():
        assert "'Rig' is linked from a library: make a library override of it first" in words
