"""Whether a body keeps its animation: what decides, what contradicts it, and where it is said."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import pytest
import rigs
from kept_bodies import leaning
from mathutils import Quaternion
from planted import constrain, standing

# What decides -----------------------------------------------------------------------------------------------


def _body(ext, rig, **options):
    return ext.module("ccd_rig.blender.properties.body").body_of(rig, **options)


def _key(path, bone):
    return lambda rig: rig.pose.bones[bone].keyframe_insert(path, frame=1)


def _drive(rig):
    rig.pose.bones["hips"].driver_add("location", 0).driver.expression = "0.1"


def _strip(rig):
    _key("location", "hips")(rig)
    animation = rig.animation_data
    action, slot = animation.action, getattr(animation, "action_slot", None)
    strip = animation.nla_tracks.new().strips.new("Below", 1, action)
    if slot is not None:
        strip.action_slot = slot
    animation.action = None


ANIMATED = {
    "nothing": (lambda rig: None, False, "it has no animation"),
    "location": (_key("location", "hips"), True, "it has keys"),
    "rotation": (_key("rotation_quaternion", "hips"), True, "it has keys"),
    "scale": (_key("scale", "hips"), False, "it has no animation"),
    "another bone": (_key("location", "spine"), False, "it has no animation"),
    "driver": (_drive, True, "it has a driver"),
    "strip": (_strip, True, "it has keys"),
    "above": (_key("location", "root"), True, "'root' above it is animated"),
}


@pytest.mark.parametrize("case", ANIMATED)
def test_automatic(ext, case):
    animate, keeps, because = ANIMATED[case]
    rig = standing()
    rig.ccd_rig.constraints["Hips"].enabled = False
    animate(rig)
    rigs.update()
    found = _body(ext, rig)
    assert (found.bone, found.keeps, found.because) == ("hips", keeps, because)


def test_a_constraint_on_the_body_goes_before_its_keys(ext, bake):
    rig = standing()
    _key("location", "hips")(rig)
    found = _body(ext, rig)
    assert not found.keeps
    assert found.because == "'Hips' moves it"
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert report.body.keys_replaced


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION", "NLA_STRIP"])
def test_keys_that_come_from_planted_feet_are_no_animation(bake, destination):
    """A second bake does what the first one did."""
    rig = standing()
    rig.ccd_rig.constraints["Hips"].enabled = False
    for frame, bend in ((1, 0.0), (20, 0.4)):
        rig.pose.bones["thigh.L"].rotation_quaternion = Quaternion((1, 0, 0), bend)
        rig.pose.bones["thigh.L"].keyframe_insert("rotation_quaternion", frame=frame)
    settings = bake.BakeSettings(1, 20, destination=bake.Destination[destination])
    for _ in range(2):
        report = bake.bake(bpy.context.scene, rig, settings)
        assert (report.body.mode, report.body.keys_replaced) == ("FOLLOW_FEET", False)


# Bad input --------------------------------------------------------------------------------------------------


def _plant_hips(rig):
    rig.ccd_rig.constraints["Hips"].enabled = False
    constrain(rig, "PLANT", "hips", "Pelvis", chain_length=1)


def _copy_location(rig):
    rig.ccd_rig.constraints["Hips"].enabled = False
    rig.pose.bones["hips"].constraints.new("COPY_LOCATION").target = bpy.data.objects["Hips"]


CONTRADICTIONS = {
    "a controller": (lambda rig: None, "'Hips' moves bone 'hips', which keeps its animation"),
    "planted itself": (_plant_hips, "'Pelvis' plants bone 'hips', which keeps its animation"),
    "Blender's constraint": (_copy_location, "Bone 'hips' keeps its animation, but .* 'Copy Location'"),
}


@pytest.mark.parametrize("asked", [True, False], ids=["asked", "stored"])
@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_refused_by_name(bake, errors, case, asked):
    spoil, message = CONTRADICTIONS[case]
    rig = standing()
    spoil(rig)
    if not asked:
        rig.ccd_rig.body = "KEEP_ANIMATION"
    rigs.update()
    with pytest.raises(errors.CCDRigError, match=message):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5, body="KEEP_ANIMATION" if asked else ""))
    assert not bpy.data.actions


def test_a_body_without_planted_bones_is_refused(bake, errors):
    rig = standing()
    for side in "LR":
        rig.ccd_rig.constraints[f"Plant {side}"].enabled = False
    with pytest.raises(errors.CCDRigError, match="no constraint of armature 'Walker' plants a bone"):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5, body="FOLLOW_FEET"))
    with pytest.raises(errors.InvalidInput, match="body must be AUTO, KEEP_ANIMATION, FOLLOW_FEET"):
        bake.BakeSettings(1, 5, body="FEET")


def test_advice(checks):
    rig = leaning()
    constrain(rig, "REACH", "head", "Look", rigs.empty("Look", (0, -1, 1.5)), 3)
    for name in ("shin.L", "thigh.L", "foot.L"):
        rig.pose.bones[name].lock_rotation = (True, True, True)
    rigs.update()
    words = [problem.message for problem in checks.problems(rig, bpy.context.scene)]
    assert any("'Look' goes up to bone 'hips', which keeps its animation" in each for each in words)
    assert any("locked, so it cannot be held" in each for each in words)
    assert not any("carries the figure over" in each for each in words)


class Lines:
    """A layout that keeps what is drawn on it."""

    def __init__(self):
        self.labels, self.fields = [], []

    def column(self, **_):
        return self

    row = column

    def label(self, text="", **_):
        self.labels.append(text)

    def prop(self, _owner, field, **_):
        self.fields.append(field)


def drawn(ext, rig, name):
    panels, lines = ext.module("panels.constraints"), Lines()
    preferences = bpy.context.preferences
    context = SimpleNamespace(region=SimpleNamespace(width=2000), preferences=preferences, scene=None)
    constraint = rig.ccd_rig.constraints[name]
    panels._draw_chain(lines, rig, constraint)
    if constraint.kind == "PLANT":
        for line in (
            ext.module("ccd_rig.blender.properties.constraint_kinds").kind_of(constraint).lines(constraint)
        ):
            ext.module("panels.sidebar").draw_line(lines, context, line)
        assert lines.fields == ["plant_ground", "plant_height", "plant_rotation", "plant_on_ground", "body"]
    return lines.labels


def test_the_panel_says_what_becomes_of_the_body(ext):
    rig = leaning()
    held = "Held where it is when planted"
    carries = "'hips' carries the figure"
    assert drawn(ext, rig, "Plant L") == [carries, held, "'hips' keeps its animation: it has keys"]
    rig.ccd_rig.body = "FOLLOW_FEET"
    replaced = "The bake replaces the keys of 'hips'"
    assert drawn(ext, rig, "Plant L") == [carries, held, "'hips' follows planted bones", replaced]
    target = rigs.empty("Foot", (0.1, 0.0, 0.1))
    constrain(rig, "REACH", "foot.L", "Swing L", target, 4)
    assert "and on to planted bones" in drawn(ext, rig, "Swing L")
    rig.ccd_rig.body = "KEEP_ANIMATION"
    assert "Held where 'Swing L' has brought it" in drawn(ext, rig, "Plant L")
    assert "'hips' keeps its animation" in drawn(ext, rig, "Swing L")
