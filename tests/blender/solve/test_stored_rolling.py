"""Coupled offsets in the file: buttons, saving, undo and overrides."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from linked_rigs import overridden
from rolling import bend, leg


def active(rig, bone):
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones[bone]
    return rig.pose.bones[bone]


def test_buttons_add_and_remove(ext):
    rig = leg(rolls=False)
    bone = active(rig, "shin")
    assert not bpy.ops.ccd_rig.offset_point_add.poll()
    assert bpy.ops.ccd_rig.coupled_offset_add() == {"FINISHED"}
    (row,) = bone.ccd_rig.coupled_offsets
    assert [(p.angle, p.shift) for p in row.points] == [(0.0, 0.0), (pytest.approx(math.pi / 2), 0.0)]
    settings = ext.module("ccd_rig.blender.properties.joints").joint_settings(rig, ["shin"])["shin"]
    (offset,) = settings["coupled_offsets"]
    assert (offset.hinge, offset.axis, offset.slopes) == ("shin", (0.0, 1.0, 0.0), None)
    with pytest.raises(RuntimeError, match="needs two points"):
        bpy.ops.ccd_rig.offset_point_remove(offset=0, point=0)
    row.points[1].shift = 0.5
    assert bpy.ops.ccd_rig.offset_point_add(offset=0) == {"FINISHED"}
    assert (row.points[2].angle, row.points[2].shift) == (pytest.approx(2.0 * math.pi / 3), 0.5)
    assert bpy.ops.ccd_rig.offset_point_remove(offset=0, point=0) == {"FINISHED"}
    assert [point.name for point in row.points] == ["Point 2", "Point 3"]
    for wrong in (bpy.ops.ccd_rig.offset_point_add, bpy.ops.ccd_rig.coupled_offset_remove):
        with pytest.raises(RuntimeError, match="no coupled offset 4"):
            wrong(offset=3)
    with pytest.raises(RuntimeError, match="no point 6"):
        bpy.ops.ccd_rig.offset_point_remove(offset=0, point=5)
    assert bpy.ops.ccd_rig.coupled_offset_remove(offset=0) == {"FINISHED"}
    assert not len(bone.ccd_rig.coupled_offsets)


def test_saved_and_opened_again(ext, tmp_path):
    settings = ext.module("ccd_rig.blender.properties.joints").joint_settings
    rig = leg()
    before = settings(rig, ["shin"])["shin"]["coupled_offsets"]
    assert len(before) == 2
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "leg.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "leg.blend"))
    rig = bpy.data.objects["Rig"]
    assert settings(rig, ["shin"])["shin"]["coupled_offsets"] == before
    assert [row.name for row in rig.pose.bones["shin"].ccd_rig.coupled_offsets] == ["Offset 1", "Offset 2"]


def test_undo_takes_an_offset_and_its_shift_back():
    rig = leg()
    bend(rig, chain_length=3)
    bpy.context.scene.frame_set(5)
    active(rig, "thigh")
    bpy.ops.ed.undo_push(message="before")

    def state():
        bones = bpy.data.objects["Rig"].pose.bones
        return [
            (tuple(bone.location), tuple(bone.rotation_quaternion), len(bone.ccd_rig.coupled_offsets))
            for bone in bones
        ]

    states = [state()]
    for operator in (bpy.ops.ccd_rig.coupled_offset_add, bpy.ops.ccd_rig.coupled_offset_remove):
        assert operator() == {"FINISHED"}
        bpy.ops.ed.undo_push(message="after")
        states.append(state())
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    bpy.ops.ed.undo_push(message="after")
    states.append(state())
    assert states[0] == states[2]
    assert len({str(each) for each in states}) == 3
    for expected in reversed(states[:-1]):
        bpy.ops.ed.undo()
        assert state() == expected


@pytest.mark.parametrize("rolls", [True, False])
def test_an_override_keeps_what_was_changed_and_added(tmp_path, rolls):
    made = overridden(leg(rolls), tmp_path)
    bone = active(made, "shin")
    if rolls:
        row = bone.ccd_rig.coupled_offsets[0]
        row.points[1].shift, row.axis = 0.25, (1, 0, 0)
        with pytest.raises(RuntimeError, match="comes from the library"):
            bpy.ops.ccd_rig.coupled_offset_remove(offset=0)
        with pytest.raises(RuntimeError, match="comes from the library"):
            bpy.ops.ccd_rig.offset_point_remove(offset=0, point=0)
    assert bpy.ops.ccd_rig.coupled_offset_add() == {"FINISHED"}
    added = bone.ccd_rig.coupled_offsets[-1]
    added.driver, added.points[1].shift = "thigh", 0.5
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [each for each in bpy.data.objects if each.override_library and each.type == "ARMATURE"]
    rows = again.pose.bones["shin"].ccd_rig.coupled_offsets
    assert len(rows) == (3 if rolls else 1)
    assert (rows[-1].driver, [p.shift for p in rows[-1].points]) == ("thigh", [0.0, 0.5])
    if rolls:
        assert (rows[0].points[1].shift, tuple(rows[0].axis)) == (0.25, (1.0, 0.0, 0.0))
