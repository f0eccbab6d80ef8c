"""A generated Rigify rig: its switches between IK and FK, targets from its FK motion, and the way back."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion
from playing import in_world

FRAMES = range(1, 13)
SWITCH = 'pose.bones["upper_arm_parent.L"]["IK_FK"]'
# FK tip, IK control (an empty where it has other axes), pole
LIMBS = (
    ("hand_fk.L", "hand_ik.L", "upper_arm_ik_target.L"),
    ("hand_fk.R", "hand_ik.R", ""),
    ("foot_fk.L", "", ""),
)
DEFORMS = ("DEF-hand.L", "DEF-forearm.L", "DEF-hand.R", "DEF-foot.L")


@pytest.fixture
def rig(ext):
    """Waving FK limbs, and the switches at IK, as a generated rig has them."""
    made = rigs.generated("basic_human")
    for k, (tip, _, _) in enumerate(LIMBS):
        for i, name in enumerate([tip, *_above(made, tip)]):
            bone = made.pose.bones[name]
            bone.rotation_mode = "QUATERNION"
            for frame in (1, 5, 8, 12):
                angle = 0.3 * np.sin(frame + k + i) + (0.5 if i == 1 else 0.0)
                bone.rotation_quaternion = Quaternion((1.0, 0.2 * i, 0.1), angle)
                bone.keyframe_insert("rotation_quaternion", frame=frame)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    scene.frame_set(1)
    rigs.activate(made)
    return made


def _above(rig, tip):
    """The two FK controls above a limb's end; a helper stands between."""
    return [each.name for each in rig.pose.bones[tip].parent_recursive[:3] if "_fk" in each.name][1:]


def constrained(rig):
    for tip, control, pole in LIMBS:
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip, row.chain_length, row.rotation = tip, tip, 4, "ORIENTATION"
        row.target = rig if control else rigs.empty(f"Target {tip}")
        row.target_bone, row.use_tail = control, False
        if pole:
            row.pole_target, row.pole_bone = rig, pole


def played(rig, bones=DEFORMS):
    """(F, B, 4, 4) world matrices of bones."""
    poses = (in_world(rig, frame) for frame in FRAMES)
    return np.array([[pose[name] for name in bones] for pose in poses])


def switched(rig, value, path=SWITCH):
    for side in "LR":
        for limb in ("upper_arm", "thigh"):
            rig.pose.bones[f"{limb}_parent.{side}"]["IK_FK"] = value
    rig.update_tag()


def of_switch(ext, rig):
    channels = ext.module("ccd_rig.blender.keys.channels")
    curve = next((c for c in channels.fcurves_of(rig) if c.data_path == SWITCH), None)
    return curve and [(p.co[0], p.co[1], p.interpolation) for p in curve.keyframe_points]


def test_the_round_trip_is_the_identity(ext, rig):
    """Targets, among them the rig's own IK controls, from FK; the bake leaves FK as it is, and shows it."""
    constrained(rig)
    switched(rig, 1.0)
    before = played(rig)
    assert bpy.ops.ccd_rig.targets_from_motion() == {"FINISHED"}
    assert np.abs(played(rig) - before).max() < 1e-5
    switched(rig, 0.0)
    ik = played(rig)
    assert np.abs(ik - before)[:, :2, :3, 3].max() < 0.02  # Rigify's own IK is now near to its FK
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig) - before).max() < 1e-4
    assert "12 of 12 frames reached" in rig.ccd_rig.report.words
    assert of_switch(ext, rig) == [(0.0, 0.0, "CONSTANT"), (1.0, 1.0, "CONSTANT"), (13.0, 0.0, "CONSTANT")]


def test_targets_at_this_frame(ext, rig, capfd):
    """The rig's own IK controls go to FK; that another pose shows meanwhile is said."""
    constrained(rig)
    bpy.context.scene.frame_set(6)
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
    assert (
        "these limbs show IK: thigh_parent.L, upper_arm_parent.L, upper_arm_parent.R" in capfd.readouterr()[0]
    )
    rigs.update()
    bones = rig.pose.bones
    for fk, ik in (("hand_fk.L", "hand_ik.L"), ("hand_fk.R", "hand_ik.R")):
        assert np.abs(np.array(bones[fk].matrix) - np.array(bones[ik].matrix)).max() < 1e-4


@pytest.mark.parametrize("interpolation", ["CONSTANT", "LINEAR", "BEZIER", "SINE"])
def test_keys_of_a_switch_outside_the_range_stay(ext, rig, interpolation):
    """At every frame outside, the switch plays what it played; inside it is at FK."""
    path = {-5: 1.0, 3: 0.0, 6: 1.0, 9: 0.25, 21: 1.0}
    key_switch(ext, rig, path, interpolation)
    before = of_frames(rig)
    reach(rig)
    for _ in range(2):  # a second bake finds FK, and leaves the keys
        assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=12) == {"FINISHED"}
        after = of_frames(rig)
        assert [after[f] for f in FRAMES] == [1.0] * 12
        outside = [frame for frame in before if frame not in FRAMES]
        assert [after[f] for f in outside] == pytest.approx([before[f] for f in outside], abs=1e-5)
        times = {key[0] for key in of_switch(ext, rig)}
        assert {-5.0, 1.0, 13.0, 21.0} <= times <= {*range(-5, 2), *range(13, 22)}
        assert (0.0 in times) == (interpolation != "CONSTANT")
    assert "witched to FK" not in rig.ccd_rig.report.words


def key_switch(ext, rig, path, interpolation):
    bone = rig.pose.bones["upper_arm_parent.L"]
    for frame, value in path.items():
        bone["IK_FK"] = value
        bone.keyframe_insert('["IK_FK"]', frame=frame)
    channels = ext.module("ccd_rig.blender.keys.channels")
    rigs.interpolate((c for c in channels.fcurves_of(rig) if c.data_path == SWITCH), interpolation)


def of_frames(rig):
    result = {}
    for frame in range(-8, 25):
        bpy.context.scene.frame_set(frame)
        result[frame] = rig.pose.bones["upper_arm_parent.L"]["IK_FK"]
    return result


def reach(rig):
    return rigs.reach(rig, "hand_fk.L", rigs.empty("Goal", (0.4, -0.3, 1.2)), "Hand", chain_length=4)


def test_a_strip_switches_too(ext, rig):
    reach(rig)
    rig.animation_data.action = None
    assert bpy.ops.ccd_rig.bake(frame_start=2, frame_end=5, destination="NLA_STRIP") == {"FINISHED"}
    values = of_frames(rig)
    assert [values[f] for f in range(8)] == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    assert "switched to FK: upper_arm_parent.L" in rig.ccd_rig.report.words
    assert bpy.ops.ccd_rig.bake(frame_start=2, frame_end=5, destination="NLA_STRIP") == {"FINISHED"}
    assert "witched to FK" not in rig.ccd_rig.report.words  # what strips play counts


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize("is_in_strip", [True, False])
def test_an_action_over_strips_hides_nothing_outside_the_range(bake, rig, ext, destination, is_in_strip):
    """Keys of a switch that no strip plays would: it is left, and said."""
    reach(rig)
    if is_in_strip:
        key_switch(ext, rig, {1: 0.0, 12: 0.25}, "LINEAR")
    animation = rig.animation_data
    action, slot = animation.action, getattr(animation, "action_slot", None)
    animation.action = None
    strip = animation.nla_tracks.new().strips.new("Strip", 1, action)
    if slot is not None:
        strip.action_slot = slot
    names = ["upper_arm_fk.L", "forearm_fk.L", "hand_fk.L", "DEF-hand.L"]
    before, outside = played(rig, names), [frame - 1 for frame in FRAMES if not 4 <= frame <= 6]
    settings = bake.BakeSettings(4, 6, destination=bake.Destination[destination])
    report = bake.bake(bpy.context.scene, rig, settings)
    after = played(rig, names)
    assert np.abs(after - before)[outside].max() < 1e-5
    assert np.abs(after - before)[3:6, :2].max() > 0.01
    assert report.switched_to_fk == (("upper_arm_parent.L",) if is_in_strip else ())
    assert any("no NLA strip plays it" in each for each in report.warnings) != is_in_strip


def test_a_bake_that_moves_nothing_says_so(ext, rig):
    """The report names the frames at which IK shows, and its button helps."""
    finding = ext.module("ccd_rig.blender.bake.report")
    row = reach(rig)
    key_switch(ext, rig, {1: 1.0, 6: 0.0}, "CONSTANT")
    rig.ccd_rig.bake.switch_to_fk = False
    run(ext, rig)
    result = finding.from_json(rig.ccd_rig.report.findings)[0]
    assert result.words() == "6-12 Hand moves nothing: upper_arm_parent.L is at IK"
    assert f"; {result.words()}" in rig.ccd_rig.report.words
    before = played(rig, ["DEF-hand.L"])
    assert np.abs(before[-1] - before[5]).max() < 1e-6
    assert bpy.ops.ccd_rig.report_fix(finding=0) == {"FINISHED"}
    assert rig.ccd_rig.bake.switch_to_fk
    run(ext, rig)
    assert [each.trouble for each in finding.from_json(rig.ccd_rig.report.findings)] == []
    assert "switched to FK: upper_arm_parent.L" in rig.ccd_rig.report.words
    tails = [rig.matrix_world @ rig.pose.bones["DEF-hand.L"].tail for _ in played(rig)[:1]]
    assert (tails[0] - row.target.location).length < 1e-3


def test_the_command_line_says_that_keys_move_nothing(cli, rig, tmp_path, capsys):
    reach(rig)
    path = str(tmp_path / "arm.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    words = ["bake", path, "--frames", "2-5", "--strict", "--report", str(tmp_path / "report.json")]
    assert cli.main([*words, "--keep-switches"]) == 3
    assert "2-5 Hand moves nothing: upper_arm_parent.L is at IK" in capsys.readouterr().err
    assert cli.main(words) == 0
    assert "moves nothing" not in capsys.readouterr().err


def run(ext, rig):
    """A bake as the button makes it, with what the armature stores."""
    bake, options = ext.module("ccd_rig.blender.bake.bake"), ext.module("ccd_rig.blender.bake.settings")
    settings = options.bake_settings(bpy.context.scene, rig.ccd_rig.bake, rig, (FRAMES[0], FRAMES[-1]))
    return bake.bake(bpy.context.scene, rig, settings)


def test_a_switch_that_cannot_be_keyed_is_named(ext, rig):
    reach(rig)
    driver = rig.pose.bones["upper_arm_parent.L"].driver_add('["IK_FK"]').driver
    driver.expression = "0.0"
    report = run(ext, rig)
    assert any("'IK_FK' of bone 'upper_arm_parent.L' has a driver" in each for each in report.warnings)
    (finding,) = report.findings
    assert (finding.trouble, finding.fix) == ("IK", "")
    assert (finding.frame_start, finding.frame, finding.frame_end) == (FRAMES[0], FRAMES[0], FRAMES[-1])
    assert report.switched_to_fk == ()


@pytest.mark.parametrize(
    ("driver", "value"),
    [
        (("SCRIPTED", "1 - var", None), 1.0),
        (("SCRIPTED", " var ", None), 0.0),
        (("AVERAGE", "", (2.0, -2.0)), 1.0),
        (("SCRIPTED", "max(var, 0.5)", None), None),
        (("SCRIPTED", "0.0 * frame - var", None), None),
    ],
)
def test_a_switch_is_known_by_its_driver(ext, driver, value):
    """A bone copies an FK bone, and then an IK bone as far as a driver says."""
    module = ext.module("ccd_rig.blender.scene.dependence")
    names = ("control", "fk", "ik", "org")
    rig = rigs.armature([rigs.B(name, (k, 0, 0), (k, 0, 1)) for k, name in enumerate(names)])
    bones = rig.pose.bones
    bones["control"]['to "ik'] = 0.0
    for name in ("fk", "ik"):
        constraint = bones["org"].constraints.new("COPY_TRANSFORMS")
        constraint.target, constraint.subtarget = rig, name
    curve = constraint.driver_add("influence")
    kind, expression, coefficients = driver
    curve.driver.type = kind
    if expression:
        curve.driver.expression = expression
    for modifier in list(curve.modifiers):
        curve.modifiers.remove(modifier)
    if coefficients is not None:
        curve.modifiers.new("GENERATOR").coefficients = coefficients
    variable = curve.driver.variables.new()
    variable.name = "var"
    variable.targets[0].id = rig
    variable.targets[0].data_path = bones["control"].path_from_id() + '["to \\"ik"]'
    result = module.fk_switches(rig, {"fk"})
    assert [(each.bone, each.name, each.value, each.chain_bones) for each in result] == (
        [] if value is None else [("control", 'to "ik', value, ("fk",))]
    )
    assert module.fk_switches(rig, {"control"}) == ()


def test_how_much_the_head_follows_the_torso_is_no_switch(ext, rig):
    """It has no other way to go: a bake of the torso leaves the property to the animator."""
    result = ext.module("ccd_rig.blender.scene.dependence").fk_switches(rig, {"torso", "hand_fk.L", "head"})
    assert {each.bone for each in result} == {"upper_arm_parent.L"}
    driven = [
        target.data_path
        for curve in rig.animation_data.drivers
        for variable in curve.driver.variables
        for target in variable.targets
    ]
    assert 'pose.bones["torso"]["head_follow"]' in driven
