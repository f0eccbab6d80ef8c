"""A bake in an NLA strip: above everything in its range, and outside it all plays as it did before."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace

import bpy
import numpy as np
import pytest
import rigs
from keyed import keys_of, link, write_keys
from mathutils import Matrix, Quaternion
from whole_file import differences, dump

FLOAT32 = 2e-6
START, END = 10, 20
FRAMES = (-30, 0, 9, 9.75, 10, 13, 14.5, 20, 20.25, 21, 40, 400)


@pytest.fixture
def rig(ext):
    return rigs.chain(3, 0.5)


def turn(rig, bone, frame, angle):
    rig.pose.bones[bone].rotation_quaternion = Quaternion((1, 0, 0), angle)
    rig.pose.bones[bone].keyframe_insert("rotation_quaternion", frame=frame, group=bone)


# --- what played before -------------------------------------------------------------------------------------


def nothing(rig, channels):
    """No animation at all; a pose that no key holds."""
    rig.pose.bones["bone_1"].rotation_quaternion = Quaternion((0, 1, 0), 0.7)


def keys(rig, channels):
    for frame, angle in ((1, 0.1), (15, 0.9), (30, 0.3)):
        turn(rig, "bone_1", frame, angle)
        rig.location.x = angle
        rig.keyframe_insert("location", frame=frame)
    rig.pose.bones["bone_2"].rotation_quaternion = Quaternion((0, 1, 0), 0.7)


def empty_action(rig, channels):
    """An action without keys."""
    rig.animation_data_create().action = bpy.data.actions.new("Empty")


def cycles(rig, channels):
    keys(rig, channels)
    for curve in channels.fcurves_of(rig):
        curve.modifiers.new("CYCLES")


def straight_on(rig, channels):
    keys(rig, channels)
    for curve in channels.fcurves_of(rig):
        curve.extrapolation = "LINEAR"


def other_strips(rig, channels):
    """A strip below, and an action that adds to it at half influence."""
    cycles(rig, channels)
    animation = rig.animation_data
    action = animation.action
    below = action.copy()
    strip = animation.nla_tracks.new().strips.new("Below", 5, below)
    if channels.has_slots():
        strip.action_slot = below.slots[0]
    animation.action_blend_type, animation.action_influence = "ADD", 0.5


def other_strips_alone(rig, channels):
    other_strips(rig, channels)
    rig.animation_data.action = None


def other_strips_and_ends(rig, channels):
    """The action stops with its keys: before and after them only the strip below plays."""
    keys(rig, channels)
    animation = rig.animation_data
    below = animation.action.copy()
    for curve in channels.fcurves_of(rig):
        for key in curve.keyframe_points:
            key.co.y += 0.3
    strip = animation.nla_tracks.new().strips.new("Below", 5, below)
    if channels.has_slots():
        strip.action_slot = below.slots[0]
    animation.action_extrapolation = "NOTHING"


def a_manual_range(rig, channels):
    """Blender plays an action above strips by its keys, whatever range it is given by hand."""
    other_strips_and_ends(rig, channels)
    action = rig.animation_data.action
    action.use_frame_range, action.frame_start, action.frame_end = True, 12, 16


def noise_above(rig, channels):
    """A modifier makes Blender play such an action at all frames."""
    other_strips_and_ends(rig, channels)
    next(iter(channels.fcurves_of(rig))).modifiers.new("NOISE")


def empty_above(rig, channels):
    other_strips_alone(rig, channels)
    rig.animation_data.action = bpy.data.actions.new("Empty")
    rig.animation_data.action_extrapolation = "NOTHING"


STARTS = (
    nothing,
    empty_action,
    keys,
    cycles,
    straight_on,
    other_strips,
    other_strips_alone,
    other_strips_and_ends,
    a_manual_range,
    noise_above,
    empty_above,
)


def shown(rig, frames=FRAMES):
    """Every bone's matrix and the object's, as Blender plays them."""
    found = {}
    for frame in frames:
        bpy.context.scene.frame_set(math.floor(frame), subframe=frame % 1)
        evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        found[frame] = np.array([evaluated.matrix_world, *(b.matrix_basis for b in evaluated.pose.bones)])
    return found


def write(writing, rig, frames=(START, 15, END), undo=None):
    turns = np.array([tuple(Quaternion((0, 0, 1), 0.05 * frame)) for frame in frames])
    made = [keys_of(writing, b, "rotation_quaternion", np.array(frames, float), turns) for b in BONES]
    strip = writing.Destination.NLA_STRIP
    action = write_keys(writing, rig, made, strip, (frames[0], frames[-1]), "Baked", undo)
    return action, dict(zip(frames, turns, strict=True))


BONES = ("bone_1", "bone_2")


@pytest.mark.parametrize("start", STARTS)
def test_it_replaces_in_its_range_and_nowhere_else(writing, channels, rig, start):
    start(rig, channels)
    before = shown(rig)
    action, turns = write(writing, rig)
    assert rig.animation_data.action is None
    assert rig.animation_data.nla_tracks[-1].strips[0].action == action
    strips = [strip for track in rig.animation_data.nla_tracks for strip in track.strips]
    assert not any(each.use_animated_influence for each in strips if each.influence == 1.0)
    after = shown(rig)
    for frame in FRAMES:
        if not START <= frame <= END:
            assert np.abs(after[frame] - before[frame]).max() < 20 * FLOAT32, frame
        else:  # what has no keys in the strip goes on there too
            assert np.abs(after[frame][:2] - before[frame][:2]).max() < 20 * FLOAT32, frame
    for frame in (START, END):
        expected = np.array(Quaternion(turns[frame]).to_matrix())
        for matrix in after[frame][2:]:
            assert np.abs(matrix[:3, :3] - expected).max() < 20 * FLOAT32, frame


@pytest.mark.parametrize("start", STARTS)
def test_it_can_be_taken_back(writing, channels, rig, start):
    start(rig, channels)
    bpy.context.scene.frame_set(13)
    before = dump()
    with ExitStack() as undo:
        write(writing, rig, undo=undo)
        assert differences(before, dump()) != []
    assert differences(before, dump()) == []


@pytest.mark.parametrize("start", STARTS)
def test_a_failure_leaves_nothing_behind(ext, writing, channels, rig, monkeypatch, start):
    start(rig, channels)
    bpy.context.scene.frame_set(13)
    before = dump()

    def fail(*arguments):
        monkeypatch.undo()
        raise KeyError("on purpose")

    strips = ext.module("ccd_rig.blender.keys.writer")
    real = strips.add_strip

    def fail_at_last(*arguments):
        if arguments[4] == "NOTHING":
            fail()
        return real(*arguments)

    monkeypatch.setattr(strips, "add_strip", fail_at_last)
    with pytest.raises(KeyError):
        write(writing, rig)
    assert differences(before, dump()) == []


def test_present_values_show_after_a_strip_that_ends_before_frame_0(writing, rig):
    """Of a channel without keys, whose value a strip below holds."""
    bone = rig.pose.bones["bone_1"]
    bone.location = present = (0.1, 0.2, -0.3)
    frames, places = np.array((-20.0, -10.0)), np.array(((0.0, 0.0, 0.0), (0.5, 0.5, 0.5)))
    keys = [keys_of(writing, "bone_1", "location", frames, places)]
    write_keys(writing, rig, keys, writing.Destination.NLA_STRIP, (-20, -10), "Baked")
    for frame, place in ((-30, present), (-20, places[0]), (-10, places[1]), (-5, present), (10, present)):
        bpy.context.scene.frame_set(frame)
        assert tuple(bone.location) == pytest.approx(tuple(place), abs=FLOAT32), frame


@pytest.mark.parametrize("in_strips", [False, True])
def test_components_without_keys_show_their_values_beside_a_strip(ext, writing, rig, in_strips):
    """The NLA gives a component that one strip moves its default at the frames of no strip."""
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode, bone.rotation_euler = "XYZ", (0.4, 0.2, 0.0)
    for frame, angle in ((1, 0.0), (30, 1.0)):
        bone.rotation_euler.z = angle
        bone.keyframe_insert("rotation_euler", index=2, frame=frame)
    if in_strips:
        animation = rig.animation_data
        ext.module("ccd_rig.blender.keys.writer").push_down(rig, (1, 30), ExitStack())
        assert animation.action is None
    keys = [keys_of(writing, "bone_1", "rotation_euler", np.array((10.0, 20.0)), np.full((2, 3), 0.5))]
    before = shown(rig)
    if in_strips:  # a new action could not show these values
        with pytest.raises(ext.module("ccd_rig.errors").RigError, match="choose NLA Strip Above"):
            write_keys(writing, rig, keys, writing.Destination.NEW_ACTION, (START, END), "Baked")
    write_keys(writing, rig, keys, writing.Destination.NLA_STRIP, (START, END), "Baked")
    after = shown(rig)
    for frame in FRAMES:
        if START <= frame <= END:
            assert tuple(bone_angles(rig, frame)) == pytest.approx((0.5, 0.5, 0.5), abs=FLOAT32)
        else:
            assert np.abs(after[frame] - before[frame]).max() < 20 * FLOAT32, frame


def bone_angles(rig, frame):
    bpy.context.scene.frame_set(math.floor(frame), subframe=frame % 1)
    return rig.pose.bones["bone_1"].rotation_euler


@pytest.mark.parametrize("span", [(-30000, 0), (20, 30000)])
def test_slopes_go_on_through_a_long_range(writing, channels, rig, span):
    straight_on(rig, channels)
    before = shown(rig, span)
    writing.push_down(rig, span, ExitStack())
    after = shown(rig, span)
    assert all(np.abs(after[frame] - before[frame]).max() < 1e-3 for frame in span)


def test_one_frame(writing, channels, rig):
    keys(rig, channels)
    around = (*FRAMES, 14.75, 15.25, 16)
    before = shown(rig, around)
    write(writing, rig, frames=(15,))
    after = shown(rig, (*around, 15))
    assert all(np.abs(after[frame] - before[frame]).max() < 20 * FLOAT32 for frame in around)
    bpy.context.scene.frame_set(15)
    assert rig.pose.bones["bone_1"].rotation_quaternion.z == pytest.approx(math.sin(0.375), abs=FLOAT32)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_times_of_keys_in_strips_are_those_at_which_blender_plays_them(channels, rig, is_reversed):
    """Keys at uneven times, told apart by values, in a strip that is moved, stretched and repeated."""
    for value, frame in enumerate((1, 4, 11)):
        rig.location.x = value
        rig.keyframe_insert("location", index=0, frame=frame)
    animation = rig.animation_data
    (curve,) = channels.fcurves_of(rig)
    for point in curve.keyframe_points:
        point.interpolation = "LINEAR"
    strip = animation.nla_tracks.new().strips.new("Strip", 20, animation.action)
    animation.action = None
    strip.scale, strip.repeat, strip.use_reverse = 2.0, 2.0, is_reversed
    turns = list(channels.strip_key_times(animation, lambda _: True))
    assert [len(times) for times in turns] == [3, 3]
    assert (turns[0][0], turns[1][-1]) == (strip.frame_start, strip.frame_end)
    played = []
    for time in (turns[0][1], turns[1][1]):
        bpy.context.scene.frame_set(math.floor(time), subframe=time % 1)
        played.append(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).location.x)
    assert played == pytest.approx([1.0, 1.0], abs=1e-5)


def test_times_of_keys_are_those_of_strips_that_play(channels, rig):
    """Not of muted ones; of a solo track alone; and of keys inside a strip's part of its action."""
    for frame in (1, 4, 11):
        rig.keyframe_insert("location", index=0, frame=frame)
    animation = rig.animation_data
    action, strips = animation.action, []
    for start in (20, 40):
        strips.append(animation.nla_tracks.new().strips.new("Strip", start, action))
    animation.action = None
    strips[0].action_frame_end = 9
    first, second = animation.nla_tracks

    def times():
        return [each.tolist() for each in channels.strip_key_times(animation, lambda _: True)]

    assert times() == [[20.0, 23.0], [40.0, 43.0, 50.0]]
    assert not list(channels.strip_key_times(animation, lambda curve: curve.data_path == "scale"))
    second.mute = True
    assert times() == [[20.0, 23.0]]
    second.mute, strips[0].mute = False, True
    assert times() == [[40.0, 43.0, 50.0]]
    strips[0].mute, first.is_solo = False, True
    assert times() == [[20.0, 23.0]]
    first.is_solo, animation.use_nla = False, False
    assert times() == []
    animation.use_nla, second.mute = True, True
    strips[0].use_animated_time = True
    strips[0].strip_time = 1.0
    strips[0].keyframe_insert("strip_time", frame=25)
    assert times() == [[25.0]]


def test_strips_inside_meta_strips_play_too(channels, rig):
    """Two strips at 20 and 40, the second muted."""
    for frame in (1, 4, 11):
        rig.keyframe_insert("location", index=0, frame=frame)
    animation = rig.animation_data
    action, track = animation.action, animation.nla_tracks.new()
    first, second = (track.strips.new("Strip", start, action) for start in (20, 40))
    animation.action, first.select, second.select = None, True, True
    window = bpy.context.window_manager.windows[0]
    area = window.screen.areas[0]
    area.type = "NLA_EDITOR"
    with bpy.context.temp_override(window=window, area=area, region=area.regions[-1]):
        assert bpy.ops.nla.meta_add() == {"FINISHED"}
    (meta,) = track.strips
    assert [strip.type for strip in track.strips] == ["META"]
    assert [curve.data_path for curve in channels.strip_fcurves(meta)] == ["location"] * 2
    assert [action for action, _ in channels.every_bag(rig)] == [action]

    def times():
        return [each.tolist() for each in channels.strip_key_times(animation, lambda _: True)]

    assert times() == [[20.0, 23.0, 30.0], [40.0, 43.0, 50.0]]
    meta.strips[1].mute = True
    assert times() == [[20.0, 23.0, 30.0]]


def test_what_stands_in_the_way(ext, writing, channels, rig):
    keys(rig, channels)
    errors = ext.module("ccd_rig.errors")
    rig.animation_data.use_nla = False
    with pytest.raises(errors.RigError, match="NLA is off"):
        write(writing, rig)
    rig.animation_data.use_nla = True
    rig.animation_data.nla_tracks.new().is_solo = True
    with pytest.raises(errors.RigError, match="solo"):
        write(writing, rig)
    rig.animation_data.nla_tracks[0].is_solo = False
    next(iter(channels.fcurves_of(rig))).lock = True  # of the action below: nothing is written there
    write(writing, rig)


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize("span", [(START, END), (15, 15)])
def test_a_new_action_over_strips_leaves_them_outside_its_range(bake, channels, rig, destination, span):
    """It would hold its first and last key for ever."""
    for frame, angle in ((1, 0.1), (30, 0.3)):
        for bone in rig.pose.bones:
            turn(rig, bone.name, frame, angle)
    other_strips_alone(rig, channels)
    rig.animation_data.action_blend_type, rig.animation_data.action_influence = "REPLACE", 1.0
    reach(rig)
    frames = [frame for frame in FRAMES if not span[0] <= frame < span[1] + 1]
    before = shown(rig, frames)
    settings = bake.BakeSettings(*span, destination=bake.Destination[destination])
    state = dump()
    steps = bake.bake_steps(bpy.context.scene, rig, settings)
    while next(steps).verb != "checked":
        pass
    steps.close()
    assert differences(state, dump()) == []
    report = bake.bake(bpy.context.scene, rig, settings)
    assert report.check.mismatches() == ()
    after = shown(rig, frames)
    for frame in frames:
        assert np.abs(after[frame] - before[frame]).max() < 20 * FLOAT32, frame


def no_action(rig, channels):
    rig.animation_data_create()


@pytest.mark.parametrize("before", [keys, no_action])
def test_a_new_action_without_strips_holds_its_ends(bake, channels, rig, before):
    """As Blender's own actions do; a strip that is added later plays below them."""
    before(rig, channels)
    reach(rig)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(START, END, destination=bake.Destination.NEW_ACTION))
    assert rig.animation_data.action_extrapolation == "HOLD"


def layered(curves, animation):
    """The only strip is muted, so that Blender plays the action as if there were none."""
    animation.nla_tracks.new().strips.new("Idle", 1, animation.action)
    animation.nla_tracks[0].mute = True
    animation.action_blend_type, animation.action_influence = "COMBINE", 0.5


def muted(curves, animation):
    for curve in curves:
        curve.mute = True


def locked(curves, animation):
    curves[0].lock = True


def modified(curves, animation):
    curves[0].modifiers.new("NOISE")


@pytest.mark.parametrize("how", [layered, muted, locked, modified])
def test_a_bake_above_leaves_what_is_odd_about_the_action_below(bake, channels, rig, how):
    keys(rig, channels)
    how([c for c in channels.fcurves_of(rig) if "bone_1" in c.data_path], rig.animation_data)
    reach(rig)
    before = shown(rig)
    report = bake.bake(
        bpy.context.scene,
        rig,
        bake.BakeSettings(START, END, destination=bake.Destination.NLA_STRIP),
    )
    assert report.check.mismatches() == ()
    after = shown(rig)
    for frame in (frame for frame in FRAMES if not START <= frame <= END):
        assert np.abs(after[frame] - before[frame]).max() < 20 * FLOAT32, frame


@pytest.mark.parametrize("new", [33, 70, 130, 150])
@pytest.mark.parametrize("span", [(1, 31), (7, 23), (-9, 4)])
def test_both_ends_play_where_remapped_time_is_rounded(bake, channels, rig, new, span):
    bpy.context.scene.render.frame_map_old, bpy.context.scene.render.frame_map_new = 100, new
    keys(rig, channels)
    reach(rig)
    report = bake.bake(
        bpy.context.scene, rig, bake.BakeSettings(*span, destination=bake.Destination.NLA_STRIP)
    )
    assert report.check.mismatches() == ()


def reach(rig):
    """A constraint that its chain can meet."""
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Hand", "bone_2", rigs.empty("Goal", (0.6, 0.3, 0.8))
    rigs.activate(rig)


def test_weaker_influence_blends_with_what_plays_below(writing, channels, rig):
    keys(rig, channels)
    below = shown(rig, (15,))[15][2]
    write(writing, rig)
    above = shown(rig, (15,))[15][2]
    strip = rig.animation_data.nla_tracks[-1].strips[0]
    strip.use_animated_influence = True
    strip.fcurves.find("influence").keyframe_points.insert(START, 0.5)
    half = shown(rig, (15,))[15][2]
    a, b, c = (Matrix(matrix.tolist()).to_quaternion() for matrix in (below, half, above))
    whole = a.rotation_difference(c).angle
    assert a.rotation_difference(b).angle == pytest.approx(whole / 2, abs=1e-4)
    assert c.rotation_difference(b).angle == pytest.approx(whole / 2, abs=1e-4)


def test_an_action_over_no_strips_holds_its_ends(ext, rig):
    """Outside its range it would show defaults otherwise."""
    writer = ext.module("ccd_rig.blender.keys.writer")
    path = rig.pose.bones["bone_1"].path_from_id("rotation_quaternion")
    assert not writer.plays_below(rig, {path}, (START, END))
    rig.animation_data_create()
    assert not writer.plays_below(rig, {path}, (START, END))
    turn(rig, "bone_1", 1, 0.2)
    animation = rig.animation_data
    animation.nla_tracks.new().strips.new("Strip", 1, animation.action)
    animation.action = None
    assert writer.plays_below(rig, {path}, (START, END))
    assert not writer.plays_below(rig, {path}, (START, END + 0.5))
    assert not writer.plays_below(rig, {path, path.replace("bone_1", "bone_2")}, (START, END))


def test_any_object_gets_keys_in_place(writing, channels, rig):
    """What Blender plays between them are straight lines; other keys of the object stay."""
    rig.scale.x = 3.0
    rig.keyframe_insert("scale", index=0, frame=1)
    places = np.array([(0.0, 0.0, 0.0), (1.0, 2.0, 3.0), (1.0, 0.0, 0.0)])
    with ExitStack() as undo:
        times = np.array([5.0, 7.0, 9.0])
        keys = [writing.ChannelKeys("Object Transforms", "location", times, places)]
        writing.write_in_place(rig, keys, undo)
        undo.pop_all()
    played = []
    for frame in (5, 6, 7, 8, 9):
        bpy.context.scene.frame_set(frame)
        played.append(rig.location[:])
    middles = 0.5 * (places[1:] + places[:-1])
    expected = [places[0], middles[0], places[1], middles[1], places[2]]
    np.testing.assert_allclose(played, expected, atol=FLOAT32)
    groups = {curve.group.name for curve in channels.fcurves_of(rig) if curve.data_path == "location"}
    assert (rig.scale.x, groups) == (3.0, {"Object Transforms"})


def test_keys_in_place_are_refused_by_their_own_curves_alone(writing, errors, channels, rig):
    for path in ("location", "scale"):
        rig.keyframe_insert(path, frame=1)
    keys = [writing.ChannelKeys("G", "location", np.array([5.0, 9.0]), np.ones((2, 3)))]
    curves = {curve.data_path: curve for curve in channels.fcurves_of(rig)}
    curves["scale"].lock = True
    with ExitStack() as undo:
        writing.write_in_place(rig, keys, undo)
    assert [len(curve.keyframe_points) for curve in channels.fcurves_of(rig)] == [1] * 6
    curves = {curve.data_path: curve for curve in channels.fcurves_of(rig)}
    curves["location"].mute = True
    before = dump()
    with (
        ExitStack() as undo,
        pytest.raises(errors.RigError, match=r"'Rig': the F-curve of location.* is muted"),
    ):
        writing.write_in_place(rig, keys, undo)
    assert differences(before, dump()) == []
    bag = channels.bag_of(rig)
    bag.groups.new("G").lock = True
    with ExitStack() as undo, pytest.raises(errors.RigError, match="Group 'G' is locked"):
        writing.write_in_place(rig, [replace(keys[0], path="delta_location")], undo)


def tweaked(thing):
    track = thing.animation_data.nla_tracks[0]
    thing.animation_data.action, track.strips[0].select = None, True
    thing.animation_data.nla_tracks.active = track
    thing.animation_data.use_tweak_mode = True


def solo(thing):
    thing.animation_data.nla_tracks[0].is_solo = True


def solo_and_empty(thing):
    """Without a strip in the track that plays."""
    track = thing.animation_data.nla_tracks[0]
    track.strips.remove(track.strips[0])
    track.is_solo = True


def added(thing):
    thing.animation_data.action_blend_type = "ADD"


def weak(thing):
    thing.animation_data.action_influence = 0.25


def growing(thing):
    """The strip plays where the action, which ends with its keys, has none yet."""
    thing.animation_data.action_extrapolation = "NOTHING"


def shared(thing):
    other = rigs.empty("Second Lamp")
    other.animation_data_create().action = thing.animation_data.action
    if hasattr(other.animation_data, "action_slot"):
        other.animation_data.action_slot = thing.animation_data.action_slot


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (tweaked, "'Lamp': an NLA strip is being tweaked"),
        (solo, "'Lamp': an NLA track is solo"),
        (solo_and_empty, "'Lamp': an NLA track is solo"),
        (added, "'Lamp': the action blends with the NLA by ADD"),
        (weak, "influence in the NLA is 0.250"),
        (growing, "'Lamp': keys of its action would hide its NLA strips at other frames"),
        (shared, "Action 'Over' of 'Lamp' moves 'Second Lamp' too: make it a single user"),
    ],
)
def test_keys_in_place_are_refused_where_they_would_not_play(writing, errors, ext, change, words):
    """Of any object: a lamp with keys at 40 and 50 over a strip of 1 to 100."""
    lamp = rigs.empty("Lamp")
    for name, frames in (("Below", (1, 100)), ("Over", (40, 50))):
        for frame in frames:
            lamp.keyframe_insert("location", frame=frame)
        action = lamp.animation_data.action
        action.name = name
        if name == "Below":
            strip = lamp.animation_data.nla_tracks.new().strips.new(name, 1, action)
            if hasattr(strip, "action_slot"):
                strip.action_slot = action.slots[0]
            lamp.animation_data.action = None
    keys = [writing.ChannelKeys("G", "location", np.array([70.0, 80.0]), np.ones((2, 3)))]
    with ExitStack() as undo:
        writing.write_in_place(lamp, keys, undo)  # nothing is in the way
    change(lamp)
    before = dump()
    with ExitStack() as undo, pytest.raises(errors.RigError) as caught:
        writing.write_in_place(lamp, keys, undo)
    assert words in str(caught.value)
    assert differences(before, dump()) == []


def test_keys_in_place_are_refused_by_an_action_of_a_library(writing, errors, library):
    lamp = rigs.empty("Lamp")
    lamp.animation_data_create().action = link(library, "actions", "Stored")
    keys = [writing.ChannelKeys("G", "location", np.array([5.0]), np.ones((1, 3)))]
    words = "Action 'Stored' of 'Lamp' cannot be edited"
    with ExitStack() as undo, pytest.raises(errors.RigError, match=words):
        writing.write_in_place(lamp, keys, undo)


@pytest.mark.parametrize("above", [False, True])
def test_a_layer_adds_to_what_plays_in_its_range_alone(writing, channels, rig, above):
    """Known: 2 metres at all frames by a strip, and 1 m more from 10 to 20; an action above stays there."""
    rig.location.x = 2.0
    rig.keyframe_insert("location", index=0, frame=1)
    animation = rig.animation_data
    animation.nla_tracks.new().strips.new("Below", 1, animation.action)
    animation.action = None
    if above:
        rig.scale.x = 3.0
        rig.keyframe_insert("scale", index=0, frame=1)
    present, before = animation.action, dump()
    values = np.array([(1.0, 0.0, 0.0)] * 2)
    with ExitStack() as undo:
        writing.add_layer(rig, writing.ChannelKeys("Lift", "location", np.array([10.0, 20.0]), values), undo)
        assert (animation.action, animation.nla_tracks[-1].strips[0].blend_type) == (present, "ADD")
        places = {frame: matrices[0][0, 3] for frame, matrices in shown(rig).items()}
        assert places == pytest.approx({f: 3.0 if 10 <= f <= 20 else 2.0 for f in FRAMES}, abs=FLOAT32)
    bpy.context.scene.frame_set(1)
    assert dump()["counts"] == before["counts"] and len(animation.nla_tracks) == 1


@pytest.mark.parametrize("is_animated", [False, True])
def test_an_object_without_an_action_gets_one(writing, channels, rig, is_animated):
    if is_animated:
        rig.animation_data_create()
    before = dump()
    with ExitStack() as undo:
        keys = [writing.ChannelKeys("G", "location", np.array([5.0]), np.ones((1, 3)))]
        writing.write_in_place(rig, keys, undo)
        assert rig.animation_data.action.name == "Rig CCD"
        assert [curve.evaluate(5) for curve in channels.fcurves_of(rig)] == [1.0, 1.0, 1.0]
    assert rig.animation_data is None or rig.animation_data.action is None
    assert dump()["counts"] == before["counts"]


# --- what is muted ----------------------------------------------------------------------------------------


def two_strips(rig):
    """A strip below that keys the rotation mode, one above that keys a rotation; no action."""
    for k, path in enumerate(("rotation_mode", "rotation_quaternion")):
        for frame in (1, 5):
            bone = rig.pose.bones["bone_1"]
            bone.rotation_mode = "XYZ" if path == "rotation_mode" and frame == 5 else "QUATERNION"
            bone.keyframe_insert(path, frame=frame + 10 * k)
        animation = rig.animation_data
        animation.nla_tracks.new().strips.new(path, 1 + 10 * k, animation.action)
        animation.action = None
    rig.pose.bones["bone_1"].rotation_mode = "QUATERNION"
    return [track.strips[0] for track in rig.animation_data.nla_tracks]


@pytest.mark.parametrize("muted", ["neither", "strip", "track"])
def test_what_is_muted_does_not_play_and_stands_in_no_ones_way(ext, rig, channels, muted):
    """Known of the files: which action is in which strip, over which frames."""
    writer = ext.module("ccd_rig.blender.keys.writer")
    below, above = two_strips(rig)
    if muted == "strip":
        below.mute = True
    elif muted == "track":
        rig.animation_data.nla_tracks[0].mute = True
    plays = [above, below] if muted == "neither" else [above]
    assert [action for action, _ in channels.played(rig)] == [strip.action for strip in plays]
    ranges = sorted((strip.frame_start, strip.frame_end) for strip in plays)
    assert sorted(channels.played_ranges(rig)) == ranges
    wanted = [("bone_1", "rotation_quaternion")]
    told = writer.obstacles(rig, wanted, writer.Destination.NEW_ACTION)
    assert any("rotation mode changes by keys" in words for words in told) is (muted == "neither")


# --- what keys of an action would hide ----------------------------------------------------------------------


def strip_of_all(rig, channels, bones):
    """A walk of some bones in a strip, frames 1 to 100, and no action."""
    for k, frame in enumerate((1, 25, 50, 75, 100)):
        for bone in bones:
            turn(rig, bone, frame, 0.6 * (k % 2))
    animation = rig.animation_data
    strip = animation.nla_tracks.new().strips.new("Walk", 1, animation.action)
    if channels.has_slots():
        strip.action_slot = animation.action.slots[0]
    animation.action = None


def one_bone_missing(rig, channels):
    strip_of_all(rig, channels, ("bone_0", "bone_1"))


def action_on_top(rig, channels):
    """An action that corrects the place of the root bone."""
    strip_of_all(rig, channels, ("bone_0", "bone_1", "bone_2"))
    rig.pose.bones["bone_0"].location = (0.1, 0.0, 0.0)
    rig.pose.bones["bone_0"].keyframe_insert("location", frame=1)


def all_in_the_strip(rig, channels):
    strip_of_all(rig, channels, ("bone_0", "bone_1", "bone_2"))


def solo_below(rig, channels):
    """A second strip, in a track that is silent as the first is solo."""
    strip_of_all(rig, channels, ("bone_0", "bone_1"))
    strip_of_all(rig, channels, ("bone_2",))
    rig.animation_data.nla_tracks[0].is_solo = True


@pytest.mark.parametrize("below", [one_bone_missing, action_on_top])
def test_keys_that_would_hide_strips_are_refused(bake, errors, channels, rig, below):
    below(rig, channels)
    reach(rig)
    before = dump()
    with pytest.raises(errors.RigError, match=r"would hide its NLA strips .*: choose NLA Strip Above"):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(START, END))
    assert differences(before, dump()) == []


@pytest.mark.parametrize("below", [one_bone_missing, action_on_top, all_in_the_strip])
def test_automatic_bakes_over_strips_hide_nothing(channels, rig, below):
    """Two ranges of one shot, with all options at their defaults."""
    below(rig, channels)
    reach(rig)
    spans = ((40, 50), (70, 80))
    frames = [f for f in range(-5, 130) if not any(first <= f <= last for first, last in spans)]
    before = shown(rig, frames)
    for first, last in spans:
        assert bpy.ops.ccd_rig.bake(frame_start=first, frame_end=last) == {"FINISHED"}
    after = shown(rig, frames)
    for frame in frames:
        assert np.abs(after[frame] - before[frame]).max() < 20 * FLOAT32, frame
    assert rig.ccd_rig.report.words.startswith("11 of 11 frames reached")


@pytest.mark.parametrize(
    ("extrapolation", "ends", "span", "last", "is_hidden"),
    [
        ("HOLD", (1, 100), (70, 80), 100, False),  # the action hides the strip everywhere already
        ("NOTHING", (40, 50), (70, 80), 100, True),  # the strip plays at 51 to 69
        ("NOTHING", (40, 50), (52, 80), 30, False),  # it ends before
        ("NOTHING", (40, 50), (51, 60), 100, False),
        ("NOTHING", (40, 50), (42, 47), 100, False),
        ("NOTHING", (40, 50), (20, 30), 100, True),
        ("NOTHING", (40, 50), (20, 38), 100, True),  # at 39 alone
        ("NOTHING", (40, 50), (20, 39), 100, False),
        ("NOTHING", (40, 50), (52, 60), 100, True),  # at 51 alone
        ("HOLD_FORWARD", (40, 100), (70, 80), 100, False),
        ("HOLD_FORWARD", (40, 50), (20, 30), 100, True),
    ],
)
def test_what_an_action_hides_follows_its_extrapolation(
    writing, channels, rig, extrapolation, ends, span, last, is_hidden
):
    all_in_the_strip(rig, channels)
    strip = rig.animation_data.nla_tracks[0].strips[0]
    strip.action_frame_end, strip.extrapolation = last, "NOTHING"
    for frame in ends:
        for bone in BONES:
            turn(rig, bone, frame, 0.2)
    rig.animation_data.action_extrapolation = extrapolation
    paths = [rig.pose.bones[bone].path_from_id("rotation_quaternion") for bone in BONES]
    current = writing.Destination.CURRENT_ACTION
    assert writing.hides_strips(rig, paths, current, span, 1.0) is is_hidden
    # What is seen beside the span when it is written all the same.
    frames = [f for f in (0, 35, 39, 51, 60, 65, 110) if not (span[0] <= f <= span[1] or last < f < 100)]
    before = shown(rig, frames)
    turns = np.tile((0.0, 1.0, 0.0, 0.0), (2, 1))
    made = [keys_of(writing, b, "rotation_quaternion", np.array(span, float), turns) for b in BONES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "hides_strips", lambda *arguments: False)
        write_keys(writing, rig, made, current, span, "Baked")
    after = shown(rig, frames)
    assert any(np.abs(after[f] - before[f]).max() > 1e-3 for f in frames) is is_hidden


def mute(curve):
    curve.mute = True


def sample(curve):
    curve.convert_to_samples(15, 85)


def modify(kind, **values):
    def change(curve):
        curve.keyframe_points.clear()
        modifier = curve.modifiers.new(kind)
        for name, value in values.items():
            setattr(modifier, name, value)

    return change


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda curve: None, (20, 80)),
        (mute, (20, 80)),
        (sample, (15, 84)),
        (modify("GENERATOR"), (1, 99)),
        (modify("CYCLES", mode_after="NONE"), (1, 50)),
        (modify("CYCLES", mode_before="NONE"), (40, 99)),
        (modify("LIMITS", use_max_x=True, max_x=60), (40, 60)),
        (modify("LIMITS", use_min_x=True, min_x=30), (30, 50)),
    ],
)
def test_the_range_of_an_action_above_strips_is_what_blender_plays(writing, channels, rig, change, seen):
    """An action with keys at 40 and 50, and one more curve; the strip below plays 1 to 100.

    Curves before that one, without a modifier and with one that limits nothing, count for their keys.
    """
    all_in_the_strip(rig, channels)
    rig.animation_data.action_extrapolation = "NOTHING"
    rig.location.x = 5.0
    for path, frames in (("delta_scale", (40, 50)), ("location", (40, 50)), ("scale", (20, 80))):
        for frame in frames:
            rig.keyframe_insert(path, index=0, frame=frame)
    _, limited, other = channels.fcurves_of(rig)
    limited.modifiers.new("LIMITS")
    change(other)
    first, last = channels.range_in_nla([*channels.fcurves_of(rig)])
    assert (max(first, 1), min(last, 99)) == seen
    # The location of the strip's action is the default, 0.
    played = [frame for frame in range(1, 100) if shown(rig, (frame,))[frame][0][0, 3] == 5.0]
    assert (played[0], played[-1]) == seen
    path = rig.pose.bones["bone_1"].path_from_id("rotation_quaternion")
    assert writing.hides_strips(rig, [path], writing.Destination.CURRENT_ACTION, (45, 45), 1.0)


def test_an_action_that_grows_hides_strips_of_bones_that_are_not_written(writing, channels, rig):
    """Its first key goes from 40 to 20, where the strip plays up to 25."""
    all_in_the_strip(rig, channels)
    strip = rig.animation_data.nla_tracks[0].strips[0]
    strip.action_frame_end, strip.extrapolation = 25, "NOTHING"
    for frame in (40, 50):
        for bone in BONES:
            turn(rig, bone, frame, 0.2)
    rig.animation_data.action_extrapolation = "NOTHING"
    path = rig.pose.bones["bone_1"].path_from_id("rotation_quaternion")
    current = writing.Destination.CURRENT_ACTION
    assert writing.hides_strips(rig, [path], current, (20, 30), 1.0)
    assert not writing.hides_strips(rig, [path], current, (27, 30), 1.0)
    strip.action_frame_end = 100
    assert not writing.hides_strips(rig, [path], current, (42, 47), 1.0), "it does not grow"
    strip.action_frame_end = 25
    before = shown(rig, (22,))[22]
    turn(rig, "bone_1", 20, 0.5)
    assert np.abs(shown(rig, (22,))[22] - before)[-1].max() > 1e-3


def test_a_solo_track_is_all_that_plays(channels, rig):
    """Known of the file: what Blender shows does not change when the other track is taken away."""
    solo_below(rig, channels)
    rig.pose.bones["bone_2"].keyframe_insert("scale", frame=1)
    solo = rig.animation_data.nla_tracks[0]
    assert [action for action, _ in channels.played(rig)] == [solo.strips[0].action]
    assert list(channels.playing_strips(rig.animation_data)) == list(solo.strips)
    before = shown(rig)
    rig.animation_data.nla_tracks.remove(rig.animation_data.nla_tracks[1])
    after = shown(rig)
    assert all((after[frame] == before[frame]).all() for frame in FRAMES)
    rig.animation_data.use_nla = False
    assert list(channels.playing_strips(rig.animation_data)) == []
    assert not channels.has_strips(rig.animation_data)
