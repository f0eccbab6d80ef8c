"""What keeps keys from counting is refused by name, and what does not is let be."""

from __future__ import annotations

import numpy as np
import pytest
import rigs
from keyed import assert_keys_play, keys_for, keys_of, partly_keyed, rich_action, whole_state, write_keys


def the_curve(channels, armature_object):
    return next(c for c in channels.fcurves_of(armature_object) if "upper" in c.data_path)


def lock_curve(channels, armature_object):
    the_curve(channels, armature_object).lock = True


def lock_group(channels, armature_object):
    the_curve(channels, armature_object).group.lock = True


def mute_curve(channels, armature_object):
    the_curve(channels, armature_object).mute = True


def mute_group(channels, armature_object):
    the_curve(channels, armature_object).group.mute = True


def add_modifier(channels, armature_object):
    the_curve(channels, armature_object).modifiers.new("NOISE")


def to_samples(channels, armature_object):
    the_curve(channels, armature_object).convert_to_samples(0, 30)


def add_driver(channels, armature_object):
    armature_object.pose.bones["upper"].driver_add("rotation_quaternion", 1)


def drive_mode(channels, armature_object):
    armature_object.pose.bones["upper"].driver_add("rotation_mode")


def add_track(armature_object):
    animation = armature_object.animation_data
    return animation.nla_tracks.new().strips.new("Strip", 0, animation.action)


def tweak(channels, armature_object):
    add_track(armature_object)
    armature_object.animation_data.nla_tracks[0].is_solo = False
    armature_object.animation_data.action = None
    strip = armature_object.animation_data.nla_tracks[0].strips[0]
    strip.select = True
    armature_object.animation_data.nla_tracks.active = armature_object.animation_data.nla_tracks[0]
    strip.active  # noqa: B018 - the strip stays the active one of its track
    armature_object.animation_data.use_tweak_mode = True
    assert armature_object.animation_data.use_tweak_mode


def solo(channels, armature_object):
    add_track(armature_object)
    armature_object.animation_data.nla_tracks[0].is_solo = True


def add_blend(channels, armature_object):
    add_track(armature_object)
    armature_object.animation_data.action_blend_type = "ADD"


def weaken(channels, armature_object):
    add_track(armature_object)
    armature_object.animation_data.action_influence = 0.5


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lock_curve, "Bone 'upper': the F-curve of rotation_quaternion[0] is locked"),
        (lock_group, "locked group 'upper'"),
        (mute_curve, "muted"),
        (add_modifier, "modifier NOISE"),
        (to_samples, "Samples to Keys"),
        (add_driver, "Bone 'upper': rotation_quaternion[1] has a driver"),
        (drive_mode, "Bone 'upper': its rotation mode has a driver"),
        (tweak, "leave tweak mode"),
        (solo, "solo"),
        (add_blend, "ADD"),
        (weaken, "0.500"),
    ],
)
def test_obstacles(channels, writing, errors, destination, change, words):
    [armature_object] = rich_action()
    change(channels, armature_object)
    before = whole_state(armature_object)
    with pytest.raises(errors.RigError) as caught:
        write_keys(
            writing,
            armature_object,
            keys_for(writing, [5]),
            writing.Destination[destination],
            (5, 5),
            "Baked",
        )
    assert words in str(caught.value)
    assert whole_state(armature_object) == before


@pytest.mark.parametrize("change", [mute_curve, add_modifier, add_driver, solo, add_blend, weaken])
def test_obstacles_are_real(channels, writing, monkeypatch, change):
    """Where a write is refused because keys would not play, they would not."""
    [armature_object] = rich_action()
    change(channels, armature_object)
    monkeypatch.setattr(writing, "obstacles", lambda *arguments: ())
    keys = keys_for(writing, [0, 5, 30])
    write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (0, 30), "Baked")
    with pytest.raises(AssertionError):
        assert_keys_play(armature_object, keys)


def test_muted_group(channels, writing, errors):
    """Before there were slots, a muted group did not play; since then it does."""
    [armature_object] = rich_action()
    mute_group(channels, armature_object)
    keys = keys_for(writing, [0, 5, 30])
    if hasattr(armature_object.animation_data, "action_slot"):
        write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (0, 30), "Baked")
        assert_keys_play(armature_object, keys)
    else:
        with pytest.raises(errors.RigError, match="muted group 'upper'"):
            write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (0, 30), "Baked")


def test_what_is_no_obstacle(channels, writing):
    """Other bones' locks, muted modifiers and drivers, cycles, and an NLA below the action."""
    [armature_object] = rich_action()
    add_track(armature_object)
    for curve in channels.fcurves_of(armature_object):
        if "location" in curve.data_path:
            curve.lock = curve.mute = True
    curve = the_curve(channels, armature_object)
    curve.modifiers.new("CYCLES")
    curve.modifiers.new("NOISE").mute = True
    armature_object.pose.bones["upper"].driver_add("rotation_quaternion", 1).mute = True
    keys = keys_for(writing, [0, 5, 30])
    write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (0, 30), "Baked")
    assert_keys_play(armature_object, keys)


def test_how_an_action_blends_counts_above_strips_alone(ext):
    """Without strips, or with the NLA off, the action plays as it is."""
    module = ext.module("ccd_rig.blender.keys.writer")
    rig = rigs.chain(2)
    rig.pose.bones["bone_0"].keyframe_insert("rotation_quaternion", frame=1)
    animation, keyed = rig.animation_data, [("bone_0", "rotation_quaternion")]
    animation.action_influence = 0.5
    assert module.obstacles(rig, keyed, module.Destination.CURRENT_ACTION) == ()
    animation.nla_tracks.new().strips.new("Strip", 1, animation.action)
    animation.use_nla = False
    assert module.obstacles(rig, keyed, module.Destination.CURRENT_ACTION) == ()
    animation.use_nla = True
    (sentence,) = module.obstacles(rig, keyed, module.Destination.CURRENT_ACTION)
    assert "influence in the NLA is 0.500" in sentence


@pytest.mark.parametrize(
    ("span", "is_kept"), [((60, 70), False), ((0, 4), False), ((10, 13), True), ((1, 13), True)]
)
def test_keys_beyond_the_turn_of_a_cycle_are_refused(channels, writing, errors, span, is_kept):
    """Known: a walk of 12 frames plays again and again. Inside, every turn shows the keys."""
    [armature_object] = partly_keyed()
    bone = armature_object.pose.bones["upper"]
    for frame in (0, 6, 7, 20):
        bone.keyframe_delete("rotation_quaternion", index=2, frame=frame)
    for frame, value in ((1, (1.0, 0.0, 0.0, 0.0)), (7, (0.8, 0.6, 0.0, 0.0)), (13, (1.0, 0.0, 0.0, 0.0))):
        bone.rotation_quaternion = value
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    curves = list(channels.fcurves_of(armature_object))
    for curve in curves:
        curve.modifiers.new("CYCLES")
    keys = keys_for(writing, span, bones=("upper",))
    arguments = (armature_object, keys, writing.Destination.CURRENT_ACTION, span, "Baked")
    if is_kept:
        write_keys(writing, *arguments)
        assert_keys_play(armature_object, keys)
        assert writing.repeated_bones(armature_object, [("upper", "rotation_quaternion")]) == ["upper"]
        assert writing.repeated_bones(armature_object, [('lo"wer', "rotation_quaternion")]) == []
        for curve in channels.fcurves_of(armature_object):
            assert curve.evaluate(span[1] - 0.5 + 36) == pytest.approx(
                curve.evaluate(span[1] - 0.5), abs=1e-6
            )
        return
    before = whole_state(armature_object)
    with pytest.raises(
        errors.RigError, match=r"repeats frames 1 to 13 by the modifier Cycles.*Bake Channels"
    ):
        write_keys(writing, *arguments)
    assert whole_state(armature_object) == before
    for curve in curves:
        curve.modifiers[0].mute = True
    write_keys(writing, *arguments)


def test_a_path_of_bones_on_an_object_without_bones_plays_on_none(channels):
    lamp = rigs.keyed(rigs.empty("Lamp"), {1: (0, 0, 0)})
    for curve in channels.fcurves_of(lamp):
        curve.data_path = "pose.bones[0].location"
    assert list(channels.numbered(lamp)) == []


@pytest.mark.parametrize(
    ("place", "destination"),
    [
        ("action", "NEW_ACTION"),
        ("action", "CURRENT_ACTION"),
        ("action", "NLA_STRIP"),
        ("strip", "NLA_STRIP"),
        ("driver", "NEW_ACTION"),
    ],
)
def test_curves_of_a_bone_by_its_number(channels, writing, errors, place, destination):
    """Scripts may write them, and Blender plays them, so named ones beside them would fight with them."""
    [armature_object] = rich_action()
    bones = armature_object.pose.bones
    bones[1].keyframe_insert("location", frame=3)
    curve = next(c for c in channels.fcurves_of(armature_object) if c.data_path.endswith('wer"].location'))
    curve.data_path = "pose.bones[1].location"
    keys = [keys_of(writing, 'lo"wer', "location", np.array([5.0]), np.ones((1, 3)))]
    if place != "action":
        add_track(armature_object)
        armature_object.animation_data.action = None
    if place == "driver":
        armature_object.animation_data.nla_tracks[0].mute = True
        bones[1].driver_add("location", 0).data_path = "pose.bones[1].location"
    arguments = (armature_object, keys, writing.Destination[destination], (5, 5), "Baked")
    before = whole_state(armature_object)
    with pytest.raises(
        errors.RigError, match=r"data path pose\.bones\[1\]\.location: change it to pose\.bones\["
    ):
        write_keys(writing, *arguments)
    assert whole_state(armature_object) == before
    write_keys(writing, armature_object, keys_for(writing, [5], bones=("upper",)), *arguments[2:])


@pytest.mark.parametrize("mark", ["mute", "lock"])
def test_groups_that_new_curves_would_join(channels, writing, errors, mark):
    """A bone's group is muted or locked, and has curves of its scale alone."""
    [armature_object] = rich_action()
    bag = channels.bag_of(armature_object)
    for curve in list(bag.fcurves):
        if 'lo\\"wer' in curve.data_path:
            bag.fcurves.remove(curve)
    bone = armature_object.pose.bones[1]
    bone.keyframe_insert("scale", frame=3, group=bone.name)
    setattr(bag.groups[bone.name], mark, True)
    keys = keys_for(writing, [0, 5, 30])
    arguments = (armature_object, keys, writing.Destination.NEW_ACTION, (0, 30), "Baked")
    if mark == "mute" and channels.has_slots():  # since then a muted group plays
        write_keys(writing, *arguments)
        assert_keys_play(armature_object, keys)
        return
    before = whole_state(armature_object)
    with pytest.raises(errors.RigError, match="Group 'lo\"wer' is "):
        write_keys(writing, *arguments)
    assert whole_state(armature_object) == before
    write_keys(writing, armature_object, keys[:1], *arguments[2:])  # no new curve is in the group
    write_keys(writing, armature_object, keys, writing.Destination.NLA_STRIP, *arguments[3:])
