"""Which actions play on an object, which it uses all the same, which nothing uses; and over which frames."""

from __future__ import annotations

import bpy
import pytest
import rigs
from keyed import make_armature


def key(thing, path, *frames, name=None):
    """Keys in a new action of this name, or in the present one."""
    if name is not None:
        thing.animation_data_create().action = None
    for frame in frames:
        thing.keyframe_insert(path, frame=frame)
    action = thing.animation_data.action
    if name is not None:
        action.name = name
    return action


def in_strip(thing, start, action):
    """The action in a new strip, no longer assigned."""
    animation = thing.animation_data
    strip = animation.nla_tracks.new().strips.new(action.name, start, action)
    if hasattr(strip, "action_slot"):
        strip.action_slot = action.slots[0]
    animation.action = None
    return strip


def named(pairs):
    return sorted(action.name for action, _ in pairs)


def test_actions_in_use_and_idle_ones(channels):
    """Muted, in a strip, set aside while a strip is tweaked; kept by a fake user, for a material, nowhere."""
    rig, other = make_armature(), make_armature("Other")
    key(other, "location", 1, name="Others")
    for name in ("Kept", "Dropped"):
        key(rig, "location", 1, name=name).use_fake_user = name == "Kept"
    material = bpy.data.materials.new("Rig")
    material.diffuse_color[0] = 0.5
    key(material, "diffuse_color", 1, name="Colour").use_fake_user = True
    material.animation_data.action = None
    in_strip(rig, 1, key(rig, "location", 1, 9, name="Strip")).mute = True
    key(rig, "scale", 1, name="Present")
    assert named(channels.every_bag(rig)) == ["Present", "Strip"]
    assert named(channels.idle_bags(rig)) == ["Dropped", "Kept"]
    (track,) = rig.animation_data.nla_tracks
    track.strips[0].mute, track.strips[0].select = False, True
    rig.animation_data.nla_tracks.active = track
    rig.animation_data.use_tweak_mode = True
    assert rig.animation_data.action.name == "Strip"
    assert named(channels.every_bag(rig)) == ["Present", "Strip"]
    assert named(channels.idle_bags(rig)) == ["Dropped", "Kept"]
    rig.animation_data.use_tweak_mode = False
    bpy.data.objects.remove(other)
    idle = ["Dropped", "Kept"] if channels.has_slots() else ["Dropped", "Kept", "Others"]  # a slot has a name
    assert named(channels.idle_bags(rig)) == idle


def test_of_several_slots_that_of_the_same_name_counts(channels, errors):
    first, second, third = (rigs.empty(name) for name in ("First", "Second", "Third"))
    action = key(first, "location", 1, name="Shared")
    assert {curve.data_path for curve in channels.fcurves_for(action, third)} == {"location"}  # it is alone
    second.animation_data_create().action = action
    if channels.has_slots():
        second.animation_data.action_slot = action.slots.new("OBJECT", second.name)
    key(second, "scale", 1)
    paths = [{curve.data_path for curve in channels.fcurves_for(action, thing)} for thing in (first, second)]
    if not channels.has_slots():
        assert paths == [{"location", "scale"}] * 2
        return
    assert paths == [{"location"}, {"scale"}]
    with pytest.raises(errors.RigError, match=r"several slots \(First, Second\)"):
        list(channels.fcurves_for(action, third))


def test_the_transform_that_is_keyed_is_that_which_no_driver_moves(channels):
    """By the action or a strip; a driver's result is no key."""
    thing = rigs.empty("Thing")
    assert channels.keyed_transform(thing) == []
    assert channels.played_ranges(thing) == channels.every_bag(thing) == []
    in_strip(thing, 1, key(thing, "scale", 1, 9, name="Strip"))
    for path in ("delta_location", "rotation_euler", "location", "color"):
        key(thing, path, 1)
    thing.driver_add("rotation_euler", 2)
    assert channels.keyed_transform(thing) == ["location", "scale", "delta_location"]


def test_an_action_of_another_kind_of_data_is_refused(channels, errors):
    material = bpy.data.materials.new("Paint")
    action = key(material, "diffuse_color", 1, name="Colour")
    with pytest.raises(errors.RigError, match="action 'Colour' is not for objects"):
        list(channels.fcurves_for(action, rigs.empty("Thing")))


@pytest.mark.parametrize("present", ["action", "manual range", "blending", "weak", "partly", "solo", "none"])
def test_ranges_of_what_plays(channels, ext, present):
    """The action has keys at 1 and 5 (x) and 2 and 8 (others), the strip below at 101 to 109."""
    thing = rigs.empty("Thing")
    in_strip(thing, 101, key(thing, "location", 1, 9, name="Strip"))
    action = key(thing, "location", 2, 8, name="Action")
    curves = sorted(channels.fcurves_of(thing), key=lambda curve: curve.array_index)
    for point, frame in zip(curves[0].keyframe_points, (1, 5), strict=True):
        point.co.x = frame
    animation, of_action, of_strip = thing.animation_data, [(1, 5), (2, 8), (2, 8)], [(101, 109)]
    expected = of_action
    if present == "manual range":
        action.use_frame_range, action.frame_start, action.frame_end = True, -3, 20
        expected = [(-3, 20)]
    elif present == "blending":
        animation.action_blend_type, expected = "ADD", of_action + of_strip
    elif present == "weak":
        animation.action_influence, expected = 0.5, of_action + of_strip
    elif present == "partly":
        curves[1].keyframe_points.clear()
        expected = [(1, 5), (2, 8), *of_strip]
    elif present == "solo":
        animation.nla_tracks[0].is_solo, expected = True, of_strip
    elif present == "none":
        animation.action, expected = None, of_strip
    assert channels.played_ranges(thing) == expected


def test_what_keys_play_is_compared_whole(ext, channels):
    """Handles of straight lines play nothing, those of curves do."""
    keyframes = ext.module("ccd_rig.blender.keys.keyframes")
    thing = rigs.empty("Thing")
    key(thing, "location", 1, 9)
    curve, *_ = channels.fcurves_of(thing)
    first, last = curve.keyframe_points
    seen = [keyframes.content(curve)]
    for change in (
        lambda: setattr(first, "handle_right", (4.0, 3.0)),
        lambda: setattr(last, "handle_left", (5.0, -3.0)),
        lambda: setattr(last.co, "y", 2.0),
        lambda: setattr(first, "easing", "EASE_IN"),
        lambda: setattr(first, "interpolation", "LINEAR"),
    ):
        change()
        seen.append(keyframes.content(curve))
    assert len(set(seen)) == 6
    last.interpolation = "LINEAR"
    straight = keyframes.content(curve)
    first.handle_right = (2.0, 2.0)
    assert keyframes.content(curve) == straight
