"""When a report is out of date: what it speaks of has changed, also by way of what moves its targets."""

from __future__ import annotations

import bpy
import pytest
import rigs
from mathutils import Quaternion


@pytest.fixture
def staleness(ext):
    return ext.module("ccd_rig.blender.bake.staleness")


def run(ext, rig, last=10):
    rigs.update()
    bake = ext.module("ccd_rig.blender.bake.bake")
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, last))


def test_a_report_goes_stale(ext, staleness):
    rig = rigs.chain(3)
    target = rigs.keyed(rigs.empty("Goal"), {1: (1.0, 0.0, 1.0), 10: (1.0, 1.0, 1.0)})
    row = rigs.reach(rig, "bone_2", target)
    assert not staleness.is_stale(rig)
    run(ext, rig)
    assert not staleness.is_stale(rig)
    bpy.context.scene.frame_set(7)
    rigs.update()
    assert not staleness.is_stale(rig)
    for change, back in (
        (lambda: setattr(row, "weight", 2.0), lambda: setattr(row, "weight", 1.0)),
        (lambda: _stiffen(rig, 0.5), lambda: _stiffen(rig, 0.0)),
        (
            lambda: setattr(rig.ccd_rig.solver, "restarts", 3),
            lambda: setattr(rig.ccd_rig.solver, "restarts", 8),
        ),
    ):
        change()
        assert staleness.is_stale(rig)
        back()
        assert not staleness.is_stale(rig)
    target.location = (1.5, 0.0, 1.0)
    target.keyframe_insert("location", frame=10)
    rigs.update()
    assert staleness.is_stale(rig)
    run(ext, rig)
    assert not staleness.is_stale(rig)
    rig.pose.bones["bone_1"].rotation_quaternion = Quaternion((1, 0, 0), 1.0)
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=5)
    rigs.update()
    assert staleness.is_stale(rig)


@pytest.mark.parametrize("by", ["keys", "driver"])
def test_a_setting_that_moves_with_the_frame_is_no_change_but_other_keys_of_it_are(ext, staleness, by):
    rig = rigs.chain(3)
    target = rigs.keyed(rigs.empty("Goal"), {1: (1.0, 0.0, 1.0), 10: (1.0, 1.0, 1.0)})
    row = rigs.reach(rig, "bone_2", target, pole_target=rigs.empty("Pole", (0.0, 3.0, 1.0)))
    fields = ("weight", "pole_angle", "max_extension", "offset")
    if by == "keys":
        for frame, value in ((1, 0.4), (10, 0.9)):
            row.weight = row.pole_angle = row.max_extension = value
            row.offset = (0.0, 0.0, value - 0.4)
            for field in fields:
                row.keyframe_insert(field, frame=frame)
    else:
        for field in fields:
            curve = row.driver_add(*(("offset", 2) if field == "offset" else (field,)))
            curve.driver.type, curve.driver.expression = "SCRIPTED", "0.4 + 0.05 * frame"
    run(ext, rig)
    assert not staleness.is_stale(rig)
    bpy.context.scene.frame_set(7)
    rigs.update()
    assert not staleness.is_stale(rig)
    if by == "keys":
        row.pole_angle = 0.1
        row.keyframe_insert("pole_angle", frame=5)
    else:
        curve.driver.expression = "0.3 + 0.05 * frame"
    rigs.update()
    assert staleness.is_stale(rig)


def test_a_bake_into_the_same_action_is_not_stale(staleness):
    """The panel has read the keys before they are overwritten."""
    rig = rigs.chain(3)
    target = rigs.keyed(rigs.empty("Goal"), {1: (1.0, 0.0, 1.0), 10: (1.0, 1.0, 1.0)})
    rigs.reach(rig, "bone_2", target)
    rigs.activate(rig)
    for x in (1.0, 1.5):
        target.location = (x, 0.0, 1.0)
        target.keyframe_insert("location", frame=10)
        rigs.update()
        assert staleness.is_stale(rig) == (x == 1.5)
        assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=10) == {"FINISHED"}
        assert not staleness.is_stale(rig)
        rigs.update()
        assert not staleness.is_stale(rig)


def _stiffen(rig, value):
    rig.pose.bones["bone_1"].ccd_rig.stiffness = value


def test_an_animated_influence_does_not_make_it_stale(ext, staleness):
    rig = rigs.chain(2)
    row = rigs.reach(rig, "bone_1", rigs.empty("Goal", (1.0, 0.0, 1.0)))
    for frame, value in ((1, 0.2), (10, 1.0)):
        row.influence = value
        row.keyframe_insert("influence", frame=frame)
    run(ext, rig)
    for frame in (1, 10):
        bpy.context.scene.frame_set(frame)
        assert not staleness.is_stale(rig)


# --- what moves a target


def parented(rig, target):
    """A parent, held by the place of its own parent."""
    target.parent, above = rigs.empty("Parent"), rigs.empty("Above")
    target.parent.parent = above
    return lambda value: setattr(above, "location", (value, 0.0, 0.0))


def followed_object(rig, target):
    """A constraint, whose object has keys."""
    leader = rigs.keyed(rigs.empty("Leader"), {1: (0.0, 0.0, 0.0), 10: (0.5, 0.0, 0.0)})
    target.constraints.new("COPY_LOCATION").target = leader

    def change(value):
        leader.location.x = 0.5 + value
        leader.keyframe_insert("location", frame=10)

    return change


def constraint_influence(rig, target):
    constraint = target.constraints.new("CHILD_OF")
    constraint.target = rigs.empty("Leader", (0.3, 0.0, 0.0))
    return lambda value: setattr(constraint, "influence", 0.5 + value)


def bone_of_a_control_rig(rig, target):
    """The bone's parent moves it, and holds still."""
    bones = [rigs.B("base", (0, 0, 0), (0, 1, 0)), rigs.B("grip", (0, 1, 0), (0, 2, 0), parent="base")]
    controls = rigs.armature(bones, "Controls")
    target.parent, target.parent_type, target.parent_bone = controls, "BONE", "grip"
    return lambda value: setattr(controls.pose.bones["base"], "location", (value, 0.0, 0.0))


def driver_expression(rig, target):
    driver = target.driver_add("location", 0).driver
    driver.expression = "frame / 20"
    return lambda value: setattr(driver, "expression", f"frame / {20 + value}")


def property_of_a_driver(rig, target):
    knob = rigs.empty("Knob")
    knob["amount"] = 0.5
    driver = target.driver_add("location", 1).driver
    driver.type = "SUM"
    variable = driver.variables.new()
    variable.targets[0].id, variable.targets[0].data_path = knob, '["amount"]'

    def change(value):
        knob["amount"] = 0.5 + value
        knob.update_tag()

    return change


def component_without_keys(rig, target):
    target.keyframe_insert("location", index=0, frame=1)
    return lambda value: setattr(target, "location", (1.0, value, 1.0))


def strip_of_the_parent(rig, target):
    target.parent = rigs.keyed(rigs.empty("Parent"), {1: (0.0, 0.0, 0.0), 10: (0.5, 0.0, 0.0)})
    animation = target.parent.animation_data
    strip = animation.nla_tracks.new().strips.new("strip", 1, animation.action)
    animation.action = None
    return lambda value: setattr(strip, "scale", 1.0 + value)


def modifier_of_a_driver(rig, target):
    noise = target.driver_add("location", 2).modifiers.new("NOISE")
    return lambda value: setattr(noise, "strength", 0.1 + value)


def place_of_the_armature(rig, target):
    rig.parent = rigs.empty("Carrier")
    return lambda value: setattr(rig.parent, "rotation_euler", (0.0, 0.0, value))


def constraint_on_the_chain(rig, target):
    constraint = rig.pose.bones["bone_1"].constraints.new("LIMIT_SCALE")
    return lambda value: setattr(constraint, "max_x", value)


@pytest.mark.parametrize(
    "tie",
    [
        parented,
        followed_object,
        constraint_influence,
        bone_of_a_control_rig,
        driver_expression,
        property_of_a_driver,
        component_without_keys,
        strip_of_the_parent,
        modifier_of_a_driver,
        place_of_the_armature,
        constraint_on_the_chain,
    ],
)
def test_what_moves_a_target_counts(ext, staleness, tie):
    """A change makes the report stale, and taking it back up to date; another frame does neither."""
    rig, target, other = rigs.chain(3), rigs.empty("Goal", (1.0, 0.0, 1.0)), rigs.empty("Other")
    change = tie(rig, target)
    rigs.reach(rig, "bone_2", target)
    change(0.0)
    run(ext, rig)
    for frame in (10, 4):
        bpy.context.scene.frame_set(frame)
        other.location.x += 1.0  # what has nothing to do with the rig
        rigs.update()
        assert not staleness.is_stale(rig)
    change(0.25)
    rigs.update()
    assert staleness.is_stale(rig)
    change(0.0)
    rigs.update()
    assert not staleness.is_stale(rig)


def baked_chain(ext):
    rig = rigs.chain(3)
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.0, 1.0)))
    run(ext, rig)
    return rig


def test_a_preview_does_not_make_it_stale(ext, staleness):
    rig = baked_chain(ext)
    clamps = ext.module("ccd_rig.blender.rig.clamps")
    clamps.show(rig, {("bone_1", clamps.ROTATION): (0.1, 0.0, 0.0)}, ())
    rigs.update()
    assert not staleness.is_stale(rig)
    clamps.remove(rig)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rotation_mode", "XYZ"),
        ("lock_rotation", (True, False, False)),
        ("lock_location", (True, True, True)),
    ],
)
def test_channels_of_chain_bones_count(ext, staleness, name, value):
    """In another mode a bone does not play the keys at all."""
    rig = baked_chain(ext)
    bone = rig.pose.bones["bone_1"]
    before = getattr(bone, name)
    before = before if isinstance(before, str) else tuple(before)
    setattr(bone, name, value)
    rigs.update()
    assert staleness.is_stale(rig)
    setattr(bone, name, before)
    rigs.update()
    assert not staleness.is_stale(rig)


def test_stretched_time_counts(ext, staleness):
    rig = baked_chain(ext)
    bpy.context.scene.render.frame_map_new = 50
    assert staleness.is_stale(rig)
    bpy.context.scene.render.frame_map_new = 100
    assert not staleness.is_stale(rig)


def test_a_target_without_bones_of_which_one_is_named_is_a_change(ext, staleness):
    """The check before a bake tells what is wrong; the panel asks at each redraw all the same."""
    rig = baked_chain(ext)
    row = rig.ccd_rig.constraints[0]
    assert row.target.pose is None
    row.target_bone = "gone"
    assert staleness.is_stale(rig)
    row.target_bone = ""
    assert not staleness.is_stale(rig)
