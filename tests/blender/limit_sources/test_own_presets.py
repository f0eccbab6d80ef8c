"""Limits kept as Blender's presets: written where Blender looks for them, and given to other bones."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np
import pytest
import rigs
from limit_tools import value
from operator_calls import fails, select


@pytest.fixture(autouse=True)
def menu_named_as_before(ext, monkeypatch):
    """Blender names the menu after the preset chosen last: take that back."""
    menu = bpy.types.CCD_RIG_MT_limit_presets
    monkeypatch.setattr(menu, "bl_label", menu.bl_label)


def kept():
    """The files of presets; Python may have left compiled ones beside them."""
    return [file for folder in bpy.utils.preset_paths("ccd_rig/limit") for file in Path(folder).glob("*.py")]


def test_a_limit_is_kept_applied_and_removed(ext):
    rig = rigs.chain(4)
    one, *others = select(ext, rig, "bone_3", "bone_1", "bone_0")[::-1]
    one.ccd_rig.limit.kind, one.ccd_rig.limit.axis = "HINGE", (0.0, 0.6, 0.8)
    one.ccd_rig.limit.hinge_upper, one.ccd_rig.limit.euler_lower = 2.25, (-0.1, -0.2, -0.3)
    assert kept() == []
    assert bpy.ops.ccd_rig.limit_preset_add(name="My Knee") == {"FINISHED"}
    (path,) = kept()
    assert path.name == "My_Knee.py"
    limit = value(ext, one)
    one.property_unset("ccd_rig")
    assert bpy.ops.ccd_rig.limit_preset_apply(filepath=str(path)) == {"FINISHED"}
    assert [value(ext, bone) for bone in (one, *others)] == [limit] * 3
    assert tuple(others[0].ccd_rig.limit.euler_lower) == tuple(one.ccd_rig.limit.euler_lower)
    assert value(ext, rig.pose.bones["bone_2"]) is None
    names = ext.module("ccd_rig.blender.limit_sources.preset_files").file_names
    assert names() == ["My_Knee"]
    bpy.ops.ccd_rig.limit_preset_add(name="My_Knee", remove_name=True)
    assert kept() == names() == []


def test_a_preset_without_a_name_or_a_limit_is_refused(ext):
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    fails(bpy.ops.ccd_rig.limit_preset_add, "Bone 'bone_1' has no limit to keep", name="Nothing")
    bone.ccd_rig.limit.kind = "HINGE"
    for name in ("  ", "%"):  # Blender leaves nothing of them for a file
        fails(bpy.ops.ccd_rig.limit_preset_add, "The preset needs a name", name=name)
    assert kept() == []


def test_a_preset_is_told_by_the_name_that_the_menu_shows(ext, capfd):
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    bone.ccd_rig.limit.kind = "HINGE"
    assert bpy.ops.ccd_rig.limit_preset_add(name="../x") == {"FINISHED"}
    assert [path.name for path in kept()] == ["slash_x.py"]
    assert "Limit of 'bone_1' kept as 'Slash X'" in capfd.readouterr().out


def test_a_preset_that_is_not_there_or_does_not_run_is_refused(ext, tmp_path):
    (bone,) = select(ext, rigs.chain(2), "bone_1")
    fails(bpy.ops.ccd_rig.limit_preset_apply, "There is no preset", filepath=str(tmp_path / "none.py"))
    label = bpy.types.CCD_RIG_MT_limit_presets.bl_label
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0", encoding="utf-8")
    fails(bpy.ops.ccd_rig.limit_preset_apply, "broken.py", filepath=str(broken))
    assert bone.ccd_rig.limit.kind == "NONE"
    assert bpy.types.CCD_RIG_MT_limit_presets.bl_label == label


SETS = "bpy.context.active_pose_bone.ccd_rig.limit."


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["kind = 'HINGE'", "hinge_lower = float('nan')"], "Min is not a finite number"),
        (["kind = 'EULER'", "euler_upper = (1.0, float('nan'), 1.0)"], "Max is not a finite number"),
        (["cone_radius = float('nan')"], "Radius is not a finite number"),
        (["kind = 'HINGE'", "hinge_lower = 1.0", "hinge_upper = 0.5"], "Min (57.3°) is above Max (28.65°)"),
        (["kind = 'HINGE'", "axis = (0.0, 0.0, 0.0)"], "its axis is zero"),
        (["kind = 'HINGE'", "cone_radius = 0.25", "kind = 'NO SUCH'"], "NO SUCH"),
    ],
)
def test_a_preset_that_cannot_be_applied_changes_nothing(ext, tmp_path, lines, words):
    """Nor what the fields have been given, or left at, and neither does it on the other selected bones."""
    bones = select(ext, rigs.chain(2), "bone_0", "bone_1")
    for bone in bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.euler_lower = "CONE", (-0.5, -0.25, -0.125)
    fields = bones[0].ccd_rig.limit.__annotations__

    def stored():
        groups = [(bone.ccd_rig.limit, name) for bone in bones for name in fields]
        return [(np.array(getattr(each, name)).tolist(), each.is_property_set(name)) for each, name in groups]

    before, label = stored(), bpy.types.CCD_RIG_MT_limit_presets.bl_label
    preset = tmp_path / "spoilt.py"
    preset.write_text("import bpy\n" + "".join(f"{SETS}{line}\n" for line in lines), encoding="utf-8")
    fails(bpy.ops.ccd_rig.limit_preset_apply, words, filepath=str(preset))
    assert stored() == before
    assert bpy.types.CCD_RIG_MT_limit_presets.bl_label == label
