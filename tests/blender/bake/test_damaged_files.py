"""What a .blend file keeps as text or in custom properties, damaged: it is left out, and nothing fails."""

from __future__ import annotations

import json

import bpy
import pytest
import rigs
from rigs import keyed, reach

ROW = {
    "trouble": "JUMP",
    "constraint": "Hand",
    "bone": "bone_1",
    "frame_start": 3.0,
    "frame_end": 4.0,
    "frame": 3.0,
}
TEXTS = (
    "{",
    "null",
    "5",
    '"words"',
    "{}",
    "[5, null, []]",
    "[" * 100_000,
    "[NaN]",
    '[{"trouble": "JUMP", "trouble": "JUMP"}]',
    json.dumps([{**ROW, "trouble": "WORSE"}]),
    json.dumps([{**ROW, "frame": "three"}]),
    json.dumps([{**ROW, "frame": 1e300}]),
    json.dumps([ROW]).replace("3.0", "1e999"),
    json.dumps([{**ROW, "bone": None}]),
    json.dumps([{**ROW, "bone": []}]),
    json.dumps([{**ROW, "more": {}}]),
    json.dumps([{**ROW, "other": 1}]),
    json.dumps([{"trouble": "JUMP"}]),
)


@pytest.fixture
def rig(ext):
    made = rigs.chain(3, 0.5)
    reach(made, "bone_2", keyed(rigs.empty("Goal"), {1: (0.2, 0.2, 1.0), 6: (0.8, 0.2, 1.0)}), "Hand")
    rigs.activate(made)
    return made


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_damaged_report_shows_its_words_alone(ext, rig, text):
    report = rig.ccd_rig.report
    report.words, report.findings = "Baked 6 frames", text
    assert ext.module("ccd_rig.blender.bake.report").from_json(text) == ()
    assert not bpy.ops.ccd_rig.report_markers.poll()
    assert not bpy.ops.ccd_rig.report_fix.poll()
    assert ext.module("operators.bake").no_findings(bpy.context) == "The report has found nothing"


def test_what_is_sound_in_a_damaged_report_is_shown(ext, rig):
    finding = ext.module("ccd_rig.blender.bake.report")
    kept = finding.from_json(json.dumps([5, ROW, {**ROW, "trouble": "WORSE"}, {**ROW, "fix": "NEW"}]))
    assert [each.trouble for each in kept] == [finding.Trouble.JUMP] * 2
    assert finding.from_json(finding.to_json(kept)) == kept


POSES = (
    5,
    "words",
    [1.0, 2.0],
    {},
    {"bone_0": 5},
    {"bone_0": {"rotation_quaternion": 5}},
    {"bone_0": {"rotation_quaternion": [1.0, 0.0]}},
    {"bone_0": {"rotation_quaternion": "1234", "location": [float("nan"), 0.0, 0.0]}},
    {"bone_0": {"rotation_quaternion": [{"a": 1}] * 4}},
    {"gone": {"location": [0.0, 0.0, 0.0]}, "bone_1": {"scale": [1.0, 1.0, 1.0]}},
)


@pytest.mark.parametrize("start", ["ACTION", "ORIGINAL"])
@pytest.mark.parametrize("pose", POSES, ids=range(len(POSES)))
def test_a_damaged_baked_action_is_baked_again(bake, rig, pose, start):
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 6))
    action = rig.animation_data.action
    del action["ccd_rig_pose"]
    action["ccd_rig_pose"] = pose
    for name in ("ccd_rig_bake_settings", "ccd_rig_followed"):
        action[name] = 5
    if start == "ACTION":  # from the original, it is refused then
        action["ccd_rig_original"] = 5
    rig.pose.bones["bone_1"].bone.name = "elbow"  # what actions keep is about it under its new name
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 6, start=bake.Start[start]))
    assert report.unsolved_count() == 0
    assert report.check.mismatches() == ()


@pytest.mark.parametrize("names", [5, "hips", [1.0], [], {"a": 1}])
def test_damaged_names_of_followed_bones_are_none(ext, rig, names):
    action = rig.animation_data_create().action = bpy.data.actions.new("Baked")
    action["ccd_rig_followed"] = names
    assert ext.module("ccd_rig.blender.properties.stored_poses").followed(action) == []


@pytest.mark.parametrize("value", [None, "FK", [1.0, 2.0], {"a": 1}])
def test_a_switch_that_is_no_number_is_none(ext, bake, rig, value):
    """A bone follows a chain's bone by a driver of a property that is gone, or holds something else."""
    with rigs.edit_bones(rig) as bones:
        for name in ("ik", "shown"):
            new = bones.new(name)
            new.head, new.tail = (1, 0, 0), (1, 0, 1)
    shown = rig.pose.bones["shown"]
    for bone in ("bone_1", "ik"):
        constraint = shown.constraints.new("COPY_ROTATION")
        constraint.target, constraint.subtarget = rig, bone
    driver = constraint.driver_add("influence").driver
    driver.type = "SUM"
    variable = driver.variables.new()
    variable.targets[0].id, variable.targets[0].data_path = rig, 'pose.bones["shown"]["switch"]'
    shown["switch"] = 0.0
    rigs.update()
    switches = ext.module("ccd_rig.blender.scene.dependence")
    assert len(switches.fk_switches(rig, ["bone_1"])) == 1
    del shown["switch"]
    if value is not None:
        shown["switch"] = value
    rigs.update()
    assert switches.fk_switches(rig, ["bone_1"]) == ()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 6))


@pytest.mark.parametrize("text", ["{", "[]", "5", "[" * 100_000, '{"format": 5}'])
def test_a_damaged_set_up_that_a_metarig_keeps_is_refused(ext, errors, text):
    rig = rigs.generated("basic_human")
    metarig = rigs.metarig("basic_human")
    metarig.data.rigify_target_rig = rig
    metarig.ccd_rig.kept_setup = text
    rigs.activate(rig)
    with pytest.raises(errors.CCDRigError):
        ext.module("ccd_rig.blender.setup_files").restore(rig)
    with pytest.raises(RuntimeError):
        bpy.ops.ccd_rig.setup_restore()
