"""What looks odd and is fine: Solve, Bake and the command line take it."""

from __future__ import annotations

import bpy
import pytest
import rigs
from bad_input_cases import WAYS
from sound_rig import NAN, hand, object_mode, sound_rig, spoil
from whole_file import dump


@pytest.fixture
def rig(ext):
    return sound_rig(ext)


def chain_longer_than_the_rig(rig):
    hand(rig).chain_length = 2**31 - 1


def armature_hidden(rig):
    rig.hide_set(True)
    rig.hide_viewport = True


def bad_row_disabled(rig):
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.enabled, row.offset = "Off", "gone", False, (NAN, 0, 0)


def nan_in_a_bone_beyond_the_chain(rig):
    rig.pose.bones["bone_3"].location.x = NAN


def two_rigs_in_pose_mode(rig):
    object_mode()
    other = rigs.chain(2, name="Other")
    rig.select_set(True)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    assert set(bpy.context.objects_in_mode) == {rig, other}


def influence_driven(rig):
    hand(rig).driver_add("influence").driver.expression = "0.25 * 4"


def armature_data_linked(rig, tmp_path):
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {rig.data})
    object_mode()
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.armatures = [rig.data.name]
    rig.data = wanted.armatures[0]
    assert rig.data.library


def target_linked(rig, tmp_path):
    goal, path = bpy.data.objects["Goal"], str(tmp_path / "library.blend")
    goal.name = "Far Goal"
    bpy.data.libraries.write(path, {goal})
    bpy.data.objects.remove(goal)
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.objects = ["Far Goal"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    hand(rig).target = wanted.objects[0]


def object_mode_is_enough(rig):
    object_mode()


FINE = [
    chain_longer_than_the_rig,
    armature_hidden,
    bad_row_disabled,
    nan_in_a_bone_beyond_the_chain,
    two_rigs_in_pose_mode,
    influence_driven,
    armature_data_linked,
    target_linked,
    object_mode_is_enough,
]


@pytest.mark.parametrize("odd", FINE, ids=lambda odd: odd.__name__)
@pytest.mark.parametrize("way", WAYS)
def test_it_is_no_mistake(ext, rig, tmp_path, capfd, odd, way):
    spoil(odd, rig, tmp_path)
    rigs.update()
    others = repr([properties for name, properties in dump().items() if name == "objects/Other"])
    capfd.readouterr()
    if way == "cli":
        path = tmp_path / "shot.blend"
        bpy.ops.wm.save_as_mainfile(filepath=str(path))
        words = ["bake", str(path), "--report", str(tmp_path / "out.json"), "--strict"]
        assert ext.module("ccd_rig.blender.cli.command_line").main(words) == 0, capfd.readouterr().err
        assert "6 of 6 frames reached" in capfd.readouterr().out
    else:
        assert getattr(bpy.ops.ccd_rig, way)() == {"FINISHED"}
        words = {"solve": "Reached. ", "bake": "6 of 6 frames reached"}[way]
        assert words in capfd.readouterr().out
    assert repr([properties for name, properties in dump().items() if name == "objects/Other"]) == others
