"""The way back to Blender's IK, undo, and rigs from libraries."""

from __future__ import annotations

import bpy
import rigs
from blender_ik import SPOTS, converted, everything, ik, keyed, leg, snake
from linked_rigs import linked, overridden
from operator_calls import fails


def test_the_way_back_leaves_the_file_as_it_was(channels):
    rig, _ = snake()
    rig.rotation_euler.z = 0.3
    rig.keyframe_insert("rotation_euler", frame=1)
    ik(rig, "tail_7", rigs.empty("Goal", (1.0, 1.0, 1.0)), 3).keyframe_insert("influence", frame=3)
    track = rig.pose.bones["tail_0"].constraints.new("DAMPED_TRACK")
    track.target = bpy.data.objects["Goal"]
    track.driver_add("influence")
    before = everything(rig)
    own = rig.ccd_rig.constraints.add()
    own.name = own.tip = "tail_3"
    assert len(converted(rig)) > 4
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    assert [row.tip for row in rig.ccd_rig.constraints] == ["tail_3"]
    rig.ccd_rig.constraints.remove(0)
    assert everything(rig) == before
    curves = channels.fcurves_of(rig)
    assert not any("ccd_rig" in curve.data_path for curve in curves)


def test_a_row_whose_original_is_gone_stays(ext):
    rig = leg()
    made = ik(rig, "shin", rigs.empty("Goal", (0.1, 0.0, 0.3)))
    converted(rig)
    made.name = "Renamed"
    fails(bpy.ops.ccd_rig.ik_restore, "constraints behind shin are gone")
    assert len(rig.ccd_rig.constraints) == 1


def test_keys_that_cannot_be_told_apart_are_named(ext, capfd):
    """Those of an unused action that may be another rig's too."""
    rig = leg()
    ik(rig, "shin", rigs.empty("Goal", (0.1, 0.0, 0.3)))
    (row,) = converted(rig)
    row.keyframe_insert("influence", frame=1)
    animation, action = rig.animation_data, rig.animation_data.action
    action.use_fake_user = True
    if hasattr(action, "slots"):
        action.slots[0].name_display = "Legacy Slot"
    animation.action = None
    rigs.chain(2, name="Second").ccd_rig.constraints.add()
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    assert f"Keys of constraints in '{action.name}' keep the former order" in capfd.readouterr().out


def test_undo_and_redo(ext):
    rig = leg()
    ik(rig, "shin", rigs.empty("Goal", (0.1, 0.0, 0.3)))
    rigs.activate(rig)
    name = rig.name
    bpy.ops.ed.undo_push(message="before")
    assert bpy.ops.ccd_rig.ik_convert() == {"FINISHED"}
    bpy.ops.ed.undo_push(message="converted")

    def state():
        rig = bpy.data.objects[name]
        return rig.pose.bones["shin"].constraints["IK"].mute, len(rig.ccd_rig.constraints)

    bpy.ops.ed.undo()
    assert state() == (False, 0)
    bpy.ops.ed.redo()
    assert state() == (True, 1)


def test_an_override_keeps_what_was_converted_and_linked_rigs_are_refused(ext, tmp_path):
    rig = leg()
    ik(rig, "shin", keyed("Goal", rig, *SPOTS))
    made = overridden(rig, tmp_path)
    converted(made)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [each for each in bpy.data.objects if each.override_library and each.type == "ARMATURE"]
    original = again.pose.bones["shin"].constraints["IK"]
    assert (original.mute, [row.tip for row in again.ccd_rig.constraints]) == (True, ["shin"])
    rigs.activate(again)
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    assert (original.mute, len(again.ccd_rig.constraints)) == (False, 0)
    rigs.activate(linked(leg(), tmp_path))
    assert not bpy.ops.ccd_rig.ik_convert.poll()


def test_what_a_library_has_converted_is_restored_there_alone(ext, tmp_path):
    rig = leg()
    ik(rig, "shin", keyed("Goal", rig, *SPOTS))
    converted(rig)
    made = overridden(rig, tmp_path)
    rigs.activate(made)
    fails(bpy.ops.ccd_rig.ik_restore, "comes from the library")
    assert made.pose.bones["shin"].constraints["IK"].mute
