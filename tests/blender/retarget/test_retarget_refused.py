"""What a retargeting refuses, and that the file stays as it is."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from retargeting import odd_source, refused, run


def test_no_action_is_refused(source, target):
    source.animation_data_clear()
    refused("has no action: assign the one with its motion", target)


def test_the_same_armature_is_refused(source, target):
    refused("is source and target at once", target, source=target)


def test_what_is_no_armature_is_refused(retarget, source, target):
    errors = []
    for pair in ((None, target), (rigs.empty("Lamp"), target), (source, None)):
        with pytest.raises(retarget.RigError) as caught:
            retarget.require_two(*pair)
        errors.append(str(caught.value))
    assert errors == [
        "The source is nothing: choose an armature",
        "The source is 'Lamp': choose an armature",
        "The target is nothing: choose an armature",
    ]


def test_a_driver_of_a_rotation_mode_is_refused(source, target):
    target.pose.bones["shin.L"].driver_add("rotation_mode")
    refused("Bone 'shin.L': its rotation mode has a driver", target)


def test_a_source_in_rest_position_is_refused(source, target):
    source.data.pose_position = "REST"
    refused("is shown in Rest Position", target)


@pytest.mark.parametrize("which", ["source", "target"])
@pytest.mark.parametrize(("scale", "words"), [((-1, 1, 1), "is mirrored"), ((1, 1, 2), "is scaled unevenly")])
def test_mirrored_and_uneven_armatures_are_refused(source, target, which, scale, words):
    rig = source if which == "source" else target
    rig.scale = scale
    rigs.update()
    refused(f"'{rig.name}' {words}", target)


def test_a_map_without_legs_is_refused(source, target):
    bpy.ops.ccd_rig.retarget_map_fill()
    for name in ("thigh.L", "thigh.R"):
        target.ccd_rig.retarget.pairs[name].source = ""
    refused("has no leg", target)


def test_a_map_without_hips_is_refused(source, target):
    bpy.ops.ccd_rig.retarget_map_fill()
    target.ccd_rig.retarget.pairs["spine"].source = ""
    refused("has no hips", target)


def test_a_bone_that_is_not_there_is_refused(source, target):
    bpy.ops.ccd_rig.retarget_map_fill()
    target.ccd_rig.retarget.pairs["shin.L"].source = "claw"
    refused(f"'{source.name}' has no bone 'claw'", target)


def test_keys_that_are_no_numbers_are_refused(channels, source, target):
    curve = next(c for c in channels.fcurves_of(source) if "location" in c.data_path)
    bad = curve.keyframe_points[10]
    bad.co[1] = math.nan
    refused(f"bone 'hips' is nowhere at frame {bad.co[0]:g}: ", target)  # not what hangs on it


def test_a_rest_that_is_no_pose_is_refused_and_a_frame_helps(target):
    odd = odd_source(target)
    refused("'Odd' is no pose of a body: 'foot.L' is above the hips", target, source=odd)
    assert target.ccd_rig.retarget.no_pose == "Odd"
    run(target, reference="FRAME", reference_frame=1.0)
    assert target.ccd_rig.retarget.no_pose == ""


def test_a_reference_is_refused_without_motion(source, target):
    source.animation_data_clear()
    with pytest.raises(RuntimeError, match="has no action"):
        bpy.ops.ccd_rig.retarget_reference(frame="FIRST")
    assert target.ccd_rig.retarget.reference == "REST"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        *(("--source-fps", value, "source_fps must be 0 to ") for value in ("-24", "nan", "inf")),
        *(
            ("--reference-frame", value, "reference_frame must be -1048574 to 1048574")
            for value in ("nan", "1e12")
        ),
        *(("--ground", value, "ground must be a height in metres") for value in ("nan", "1e300")),
    ],
)
def test_numbers_of_the_command_are_checked_before_anything_is_opened(
    cli, tmp_path, capsys, option, value, words
):
    """Blender has frames up to 1048574."""
    clip = tmp_path / "walk.bvh"
    clip.write_text("")
    files = str(clip), str(tmp_path / "none.blend"), "--report", str(tmp_path / "table.json")
    assert cli.main(["retarget", *files, f"{option}={value}"]) == 2
    assert words in capsys.readouterr().err


def test_a_change_over_longer_than_the_motion_is_one_of_all_of_it(source, target):
    run(target, blend=1e9)
    assert "contacts: feet drift" in target.ccd_rig.retarget.report


def test_an_armature_is_not_offered_as_its_own_source(ext):
    offered = ext.module("ccd_rig.blender.properties.retarget_group").is_armature
    rig, other = rigs.chain(2), rigs.chain(2)
    assert offered(rig.ccd_rig.retarget, other)
    assert not offered(rig.ccd_rig.retarget, rig)
    assert not offered(rig.ccd_rig.retarget, rigs.empty("Thing"))
