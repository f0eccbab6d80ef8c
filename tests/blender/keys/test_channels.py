"""Keys arrive whole and alone: in the right action and slot, next to what was there."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import bpy
import numpy as np
import pytest
from keyed import (
    FLOAT32,
    assert_keys_play,
    bags,
    key_richly,
    key_tuples,
    keys_for,
    keys_of,
    make_armature,
    partly_keyed,
    state,
    vary,
    write_keys,
)

EXACT = 0.0
DATA = Path(__file__).parents[1] / "data"


def curves_by_path(channels, datablock):
    return {(c.data_path, c.array_index): c for c in channels.fcurves_of(datablock)}


def test_object_without_animation(channels, writing):
    armature_object = make_armature()
    keys = keys_for(writing, [1, 2.5, 3.125, 10])
    action = write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (1, 10), "Baked")
    assert armature_object.animation_data.action == action
    assert (action.name, action.users, action.use_fake_user) == ("Baked", 1, False)
    curves = curves_by_path(channels, armature_object)
    assert len(curves) == 8
    assert {curve.group.name for curve in curves.values()} == {"upper", 'lo"wer'}
    for curve in curves.values():
        assert [key.co[0] for key in curve.keyframe_points] == [1, 2.5, 3.125, 10]
        assert {key.interpolation for key in curve.keyframe_points} == {"LINEAR"}
        assert all(key.select_control_point for key in curve.keyframe_points)
        assert curve.color_mode == "AUTO_YRGB"
    assert_keys_play(armature_object, keys)
    assert list(channels.present_keys(armature_object)) == [1, 2.5, 3.125, 10]


@pytest.mark.parametrize("beside", [(), (11, 30)], ids=["alone", "beside others"])
def test_new_keys_are_what_blender_inserts(channels, writing, beside):
    armature_object, twin = make_armature(), make_armature("Twin")
    for each in (armature_object, twin):
        bone = each.pose.bones["upper"]
        bone.rotation_mode = "QUATERNION"
        for frame in beside:
            bone.rotation_quaternion = (0.5, 0.01 * frame, 0.2, 0.3)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    keys = keys_for(writing, [1, 4, 10], bones=("upper",), interpolation="BEZIER")
    destination = writing.Destination.CURRENT_ACTION if beside else writing.Destination.NEW_ACTION
    write_keys(writing, armature_object, keys, destination, (1, 10), "Baked")
    for frame, value in zip(keys[0].frames, keys[0].values, strict=True):
        twin.pose.bones["upper"].rotation_quaternion = value
        twin.pose.bones["upper"].keyframe_insert("rotation_quaternion", frame=frame)
    inserted = curves_by_path(channels, twin)
    for path, curve in curves_by_path(channels, armature_object).items():
        assert len(curve.keyframe_points) == 3 + len(beside)
        pairs = zip(curve.keyframe_points, inserted[path].keyframe_points, strict=True)
        for key, other in list(pairs)[:3]:
            assert key.interpolation == "BEZIER"
            assert key.handle_left_type == key.handle_right_type == "AUTO_CLAMPED"
            for field in ("co", "handle_left", "handle_right", "back", "amplitude", "period"):
                assert np.allclose(getattr(key, field), getattr(other, field), rtol=0, atol=FLOAT32), field
            assert (key.easing, key.type) == (other.easing, other.type)
            for field in ("select_control_point", "select_left_handle", "select_right_handle"):
                assert getattr(key, field) is getattr(other, field) is True


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize("span", [(5, 15), (5.5, 15.75), (-10, 2), (40, 50), (0, 30), (12, 12)])
def test_outside_the_range_nothing_changes(channels, writing, destination, span):
    armature_object = make_armature()
    key_richly(armature_object)
    vary(channels.fcurves_of(armature_object))
    curves = curves_by_path(channels, armature_object)
    before = {path: key_tuples(c) for path, c in curves.items()}
    outside = [*(span[0] - k for k in range(1, 40)), *(span[1] + k for k in range(1, 40))]
    played = {path: [c.evaluate(frame) for frame in outside] for path, c in curves.items()}
    old_state = state(armature_object.animation_data.action)
    old_name = armature_object.animation_data.action.name
    frames = sorted({span[0], (span[0] + span[1]) / 2, span[1]})
    keys = keys_for(writing, frames)
    action = write_keys(writing, armature_object, keys, writing.Destination[destination], span, "Baked")
    curves = curves_by_path(channels, armature_object)
    after = {path: key_tuples(c) for path, c in curves.items()}
    assert set(after) == set(before)
    first, last = min(key[0][0] for key in before[next(iter(before))]), 30
    holds = (span[0] <= first, span[1] >= last)  # without keys on a side the new end holds
    written = {k.path for k in keys}
    for path, old in before.items():
        if path[0] not in written:
            assert after[path] == old
            continue
        for near, far in pairwise(after[path]):
            assert far[0][0] - near[0][0] > 0.01  # [frames] nearer ones are one key to Blender
        kept = [key for key in old if not span[0] <= key[0][0] <= span[1]]
        assert {key[0] for key in kept} <= {key[0] for key in after[path]}
        far = [key for key in kept if key[0][0] not in (nearest(kept, span, -1), nearest(kept, span, 1))]
        assert set(far) <= set(after[path])
        beside = nearest(kept, span, -1), nearest(kept, span, 1)
        for is_updated in (False, True):  # as Blender does when an animator moves a key
            for frame, value in zip(outside, played[path], strict=True):
                if not holds[frame > span[0]] and (not is_updated or beside[0] <= frame <= beside[1]):
                    now = curves[path].evaluate(frame)
                    assert now == pytest.approx(value, abs=20 * FLOAT32), (path, frame)
            curves[path].update()
        assert [key[0][0] for key in after[path] if span[0] <= key[0][0] <= span[1]] == frames
    assert_keys_play(armature_object, keys)
    if destination == "NEW_ACTION":
        old = bpy.data.actions[old_name]
        assert action != old
        assert state(old) == {**old_state, "fake": True}
        assert action.name == "Baked"
    else:
        assert action.name == old_name
        assert not action.use_fake_user
        assert len(bpy.data.actions) == 1


def location_keys(writing, span, values, interpolation="LINEAR"):
    """Keys of the location of the bone "upper", all three components alike."""
    frames = np.linspace(*span, len(values))
    return [keys_of(writing, "upper", "location", frames, np.array([values] * 3).T, interpolation)]


def upper_curve(channels, armature_object):
    return curves_by_path(channels, armature_object)['pose.bones["upper"].location', 0]


def key_location(armature_object, keys):
    for frame, value in keys:
        armature_object.pose.bones["upper"].location = (value,) * 3
        armature_object.pose.bones["upper"].keyframe_insert("location", frame=frame)


def test_curves_of_new_keys_are_the_same_whatever_is_beside_them(channels, writing):
    """Also once Blender has computed handles anew; their ends would lean towards the frames beside."""
    alone, beside = make_armature(bones=("upper",)), make_armature("Beside", bones=("upper",))
    key_location(beside, ((0, 0.0), (40, 3.0)))
    played = []
    for each in (alone, beside):
        keys = location_keys(writing, (10, 22), (1.0, 2.0, 0.5, 1.0), "BEZIER")
        destination = writing.Destination.NEW_ACTION
        write_keys(writing, each, keys, destination, (10, 22), "Baked")
        curve = upper_curve(channels, each)
        for _ in range(2):
            played.append([curve.evaluate(frame) for frame in np.arange(10.0, 22.1, 0.25)])
            curve.update()
    assert all(each == pytest.approx(played[0], abs=FLOAT32) for each in played)


@pytest.mark.parametrize("interpolation", ["BEZIER", "SINE", "LINEAR", "CONSTANT"])
def test_new_keys_lead_straight_from_the_frames_beside_them(channels, writing, interpolation):
    armature_object = make_armature(bones=("upper",))
    key_location(armature_object, ((0, 0.0), (40, 3.0)))
    for curve in channels.fcurves_of(armature_object):
        for key in curve.keyframe_points:
            key.interpolation = interpolation
    keys = location_keys(writing, (10, 20), (5.0, 7.0))
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (10, 20), "Baked")
    curve = upper_curve(channels, armature_object)
    for edge, way in ((10, -1), (20, 1)):
        if (interpolation, way) == ("CONSTANT", -1):  # the key before holds on
            assert [key.co[0] for key in curve.keyframe_points][:2] == [0.0, 10.0]
            continue
        ends = curve.evaluate(edge), curve.evaluate(edge + way)
        assert curve.evaluate(edge + 0.5 * way) == pytest.approx(sum(ends) / 2, abs=FLOAT32)


@pytest.mark.parametrize(("keyed", "is_led"), [("rotation_quaternion", True), ("location", False)])
def test_a_bone_without_keys_keeps_its_pose_where_another_that_is_written_has_keys(
    channels, writing, keyed, is_led
):
    """Else it holds its new keys; a channel that is not written counts for nothing."""
    armature_object = make_armature()
    for frame in (0, 30):
        armature_object.pose.bones["upper"].keyframe_insert(keyed, frame=frame)
    armature_object.pose.bones['lo"wer'].rotation_quaternion = pose = (0.6, 0.8, 0.0, 0.0)
    keys = keys_for(writing, [10, 20])
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (10, 20), "Baked")
    curves = curves_by_path(channels, armature_object)
    for frame, end in ((5, keys[1].values[0]), (25, keys[1].values[-1])):
        played = [curves[keys[1].path, k].evaluate(frame) for k in range(4)]
        assert played == pytest.approx(list(pose if is_led else end), abs=FLOAT32)


def test_keys_in_a_range_go_though_new_ones_do_not_reach_its_ends(channels, writing):
    armature_object = make_armature(bones=("upper",))
    key_location(armature_object, [(frame, 0.1 * frame) for frame in (4, 5, 9, 15, 16)])
    keys = location_keys(writing, (7, 12), (5.0, 7.0))
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (5, 15), "Baked")
    points = upper_curve(channels, armature_object).keyframe_points
    assert [point.co[0] for point in points] == [4, 7, 12, 16]


SHAPES = {  # handles of a curve from frame 2 to 30, frames and values from its keys
    "long to the right": ((60.0, 2.0), (-10.0, 0.0)),
    "long to the left": ((10.0, 0.0), (-45.0, -2.0)),
    "long both ways": ((50.0, 1.0), (-50.0, -3.0)),
    "backwards to the left": ((-4.0, 1.0), (-10.0, 0.0)),
    "backwards to the right": ((10.0, 1.0), (4.0, 1.0)),
}


@pytest.mark.parametrize("frame", [1.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_curves_with_odd_handles_play_on_beside_a_range(channels, writing, shape, frame):
    """Blender shortens handles that reach beyond the other key; others lead away from it."""
    armature_object = make_armature(bones=("upper",))
    key_location(armature_object, ((2, 0.3), (30, 1.0)))
    for curve in channels.fcurves_of(armature_object):
        first, last = curve.keyframe_points
        first.handle_right_type = last.handle_left_type = "FREE"
        right, left = SHAPES[shape]
        first.handle_right = (2.0 + right[0], 0.3 + right[1])
        last.handle_left = (30.0 + left[0], 1.0 + left[1])
    curve = upper_curve(channels, armature_object)
    frames = [k for k in np.arange(2.0, 30.1, frame) if not 12 <= k <= 16]
    before = [curve.evaluate(k) for k in frames]
    keys = location_keys(writing, (12, 16), (5.0, 7.0))
    current = writing.Destination.CURRENT_ACTION
    write_keys(writing, armature_object, keys, current, (12, 16), "Baked", frame=frame)
    curve = upper_curve(channels, armature_object)
    assert [curve.evaluate(k) for k in frames] == pytest.approx(before, abs=1e-5)
    if "long to" in shape:  # which is split as other curves are
        assert [key.co[0] for key in curve.keyframe_points] == [2, 12 - frame, 12, 16, 16 + frame, 30]


def nearest(kept, span, way):
    """The frame of the nearest of kept keys on a side of the span; far away without any."""
    frames = [way * key[0][0] for key in kept if way * key[0][0] > way * span[0 if way < 0 else 1]]
    return way * min(frames, default=1000.0)


def test_handles_stay_after_the_file_is_saved(channels, writing, tmp_path):
    armature_object = make_armature()
    key_richly(armature_object)
    write_keys(
        writing,
        armature_object,
        keys_for(writing, [5, 9, 15]),
        writing.Destination.CURRENT_ACTION,
        (5, 15),
        "Baked",
    )
    before = {path: key_tuples(c) for path, c in curves_by_path(channels, armature_object).items()}
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "a.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "a.blend"))
    after = curves_by_path(channels, bpy.data.objects["Rig"])
    assert {path: key_tuples(c) for path, c in after.items()} == before


def test_keys_that_blender_would_merge(channels, writing):
    armature_object = make_armature(bones=("upper",))
    pose_bone = armature_object.pose.bones["upper"]
    for frame in (1, 4.995, 15.005, 15.02):
        pose_bone.keyframe_insert("rotation_quaternion", frame=frame)
    keys = keys_for(writing, [5, 15], bones=("upper",))
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (5, 15), "Baked")
    assert list(channels.present_keys(armature_object)) == pytest.approx([1, 4, 5, 15, 15.02])
    for curve in channels.fcurves_of(armature_object):
        curve.update()  # Blender leaves them apart as well
        assert len(curve.keyframe_points) == 5


def test_keys_that_an_animator_left_too_near_stay(channels, writing):
    """Blender merges such keys when it updates a curve, not before."""
    armature_object = make_armature(bones=("upper",))
    key_richly(armature_object, (1, 60))
    curves = curves_by_path(channels, armature_object)
    for curve in curves.values():
        curve.keyframe_points.add(1)
        curve.keyframe_points[-1].co = (60.005, 0.25)
    before = {path: key_tuples(curve) for path, curve in curves.items()}
    keys = keys_for(writing, [1, 20], bones=("upper",))
    with ExitStack() as undo:
        current = writing.Destination.CURRENT_ACTION
        write_keys(writing, armature_object, keys, current, (1, 20), "Baked", undo)
        assert_keys_play(armature_object, keys)
        times = channels.present_keys(armature_object).tolist()
        assert times == pytest.approx([1, 20, 21, 60, 60.005])
    after = {path: key_tuples(c) for path, c in curves_by_path(channels, armature_object).items()}
    assert after == before


def test_keys_as_far_apart_as_blender_merges_are_one(channels, writing):
    """They are so up to 0.01 frames."""
    armature_object = make_armature(bones=("upper",))
    bone = armature_object.pose.bones["upper"]
    for frame in (0.0, 2.0, 20.995):
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    near = float(np.float32(0.01))
    keys = keys_for(writing, [near, 5.0], bones=("upper",))
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (near, 5.0), "Baked")
    times = {
        path: [key.co[0] for key in curve.keyframe_points]
        for path, curve in curves_by_path(channels, armature_object).items()
    }
    assert all(each == pytest.approx([near, 5.0, 6.0, 20.995]) for each in times.values()) and len(times) == 4


@pytest.mark.parametrize("interpolation", ["CONSTANT", "LINEAR", "BEZIER", "BOUNCE"])
@pytest.mark.parametrize("extrapolation", ["CONSTANT", "LINEAR"])
@pytest.mark.parametrize(
    "span", [(5, 15), (30, 35), (-9, -5)], ids=["between keys", "after keys", "before keys"]
)
def test_keys_of_a_property_are_steps(channels, writing, interpolation, extrapolation, span):
    """Outside the range, between keys and beyond them, the property plays as before."""
    armature_object = make_armature(bones=("upper",))
    bone = armature_object.pose.bones["upper"]
    for frame, value in ((0, 0.25), (20, 0.75)):
        bone["switch"] = value
        bone.keyframe_insert('["switch"]', frame=frame, group="upper")
    path = bone.path_from_id('["switch"]')
    curve = curves_by_path(channels, armature_object)[path, 0]
    curve.extrapolation = extrapolation
    for key in curve.keyframe_points:
        key.interpolation = interpolation
    outside = [frame for frame in range(-20, 60) if not span[0] <= frame <= span[1]]
    before = [curve.evaluate(frame) for frame in outside]
    beside = np.array([curve.evaluate(span[0] - 1)]), np.array([curve.evaluate(span[1] + 1)])
    switch = writing.ChannelKeys(
        "upper", path, np.array([float(span[0])]), np.array([[3.0]]), "CONSTANT", beside=beside
    )
    keys = [*keys_for(writing, span, bones=("upper",)), switch]
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, span, "Baked")
    curve = curves_by_path(channels, armature_object)[path, 0]
    assert [curve.evaluate(frame) for frame in outside] == pytest.approx(before, abs=1e-5)
    assert {curve.evaluate(frame) for frame in np.arange(span[0], span[1] + 0.9, 0.25)} == {3.0}
    held = [curve.evaluate(span[0] - part) for part in (1.0, 0.75, 0.25)]
    assert held == [held[0]] * 3, "the frame before is held as well"


EASINGS = ("SINE", "QUAD", "CUBIC", "QUART", "QUINT", "EXPO", "CIRC", "BACK", "BOUNCE", "ELASTIC")


@pytest.mark.parametrize("easing", ["EASE_IN", "EASE_OUT", "EASE_IN_OUT"])
@pytest.mark.parametrize("span", [(101, 110), (991, 995)])
def test_easings_beside_a_range_take_few_keys(channels, writing, easing, span):
    """However far the other key is; whole frames play as before."""
    armature_object = make_armature(bones=EASINGS)
    for frame, value in ((1, 0.3), (1001, 1.7)):
        for bone in armature_object.pose.bones:
            bone.location = (value,) * 3
            bone.keyframe_insert("location", index=0, frame=frame)
    for curve, interpolation in zip(channels.fcurves_of(armature_object), EASINGS, strict=True):
        for key in curve.keyframe_points:
            key.interpolation, key.easing, key.period = interpolation, easing, 0.0
    frames = [frame for frame in range(1, 1001, 3) if not span[0] <= frame <= span[1]]
    before = [[c.evaluate(frame) for frame in frames] for c in channels.fcurves_of(armature_object)]
    keys = [
        keys_of(writing, bone, "location", np.array(span, float), np.full((2, 3), 5.0)) for bone in EASINGS
    ]
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, span, "Baked")
    for bone, played in zip(EASINGS, before, strict=True):
        path = armature_object.pose.bones[bone].path_from_id("location")
        curve = curves_by_path(channels, armature_object)[path, 0]
        assert [curve.evaluate(frame) for frame in frames] == pytest.approx(played, abs=1e-5), bone
        assert len(curve.keyframe_points) < 120, bone


def test_new_curves_lead_into_a_flat_one(channels, writing):
    """Linear keys of one value have handles that count for nothing, until a curved key is before them."""
    armature_object = make_armature(bones=("upper",))
    for frame, value in ((0, 0.5), (20, 0.5), (30, 2.0)):
        armature_object.pose.bones["upper"].location = (value,) * 3
        armature_object.pose.bones["upper"].keyframe_insert("location", frame=frame)
    curves = list(channels.fcurves_of(armature_object))
    for curve in curves:
        for key in curve.keyframe_points:
            key.interpolation, key.handle_left_type, key.handle_right_type = "LINEAR", "AUTO", "AUTO"
        curve.update()
    values = np.array([[0.5, 0.5, 0.5], [1.0, 1.0, 1.0], [0.5, 0.5, 0.5]])
    keys = [keys_of(writing, "upper", "location", np.array((5.0, 7.0, 9.0)), values, "BEZIER")]
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (5, 9), "Baked")
    (curve, *_) = channels.fcurves_of(armature_object)
    assert [curve.evaluate(frame) for frame in range(10, 21)] == pytest.approx([0.5] * 11, abs=1e-6)


@pytest.mark.parametrize(("is_cycle", "is_mute"), [(False, False), (True, False), (True, True)])
def test_kept_keys_of_the_opposite_side_are_negated(ext, channels, writing, is_cycle, is_mute):
    """They play as before; those that a modifier repeats are left, unless it is muted."""
    armature_object = make_armature()
    key_richly(armature_object)
    curves = curves_by_path(channels, armature_object)
    vary(curves.values())
    upper = 'pose.bones["upper"].rotation_quaternion'
    if is_cycle:
        curves[upper, 2].modifiers.new("CYCLES").mute = is_mute
    frames = [15.0, 17.5, 22.0, 30.0]
    before = {path: [curve.evaluate(frame) for frame in frames] for path, curve in curves.items()}
    negated = ext.module("ccd_rig.blender.rig.rotation_modes").Twin((-1.0,) * 4, (0.0,) * 4)
    keys = keys_for(writing, [5, 12.25])
    keys = [replace(each, twin=negated if each.group == "upper" else None) for each in keys]
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (5, 12.25), "Baked")
    for path, curve in curves_by_path(channels, armature_object).items():
        sign = -1.0 if path[0] == upper and (is_mute or not is_cycle) else 1.0
        after = [sign * curve.evaluate(frame) for frame in frames]
        assert after == pytest.approx(before[path], abs=1e-5), path
        assert [key.co[0] for key in curve.keyframe_points][:2] == [0.0, 3.0]
    assert_keys_play(armature_object, keys)


def share_action(first, second):
    """Both objects in one action; where there are slots, each in its own."""
    action = first.animation_data.action
    second.animation_data_create()
    second.animation_data.action = action
    if hasattr(action, "slots"):
        second.animation_data.action_slot = action.slots.new("OBJECT", second.name)
    return action


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
def test_other_objects_in_the_same_action(channels, writing, destination):
    first, second = make_armature("First"), make_armature("Second")
    key_richly(first)
    action = share_action(first, second)
    has_slots = hasattr(action, "slots")
    if has_slots:
        key_richly(second, seed=9)
        of_second = state(action)["bags"]["OBSecond"]
    assert channels.shared_users(first) == (() if has_slots else ("Second",))
    written = write_keys(
        writing, first, keys_for(writing, [5, 15]), writing.Destination[destination], (5, 15), "Baked"
    )
    assert second.animation_data.action == action
    if has_slots:
        assert state(action)["bags"]["OBSecond"] == of_second
        assert second.animation_data.action_slot.identifier == "OBSecond"
        assert first.animation_data.action_slot.identifier == "OBFirst"
    if destination == "NEW_ACTION":
        assert written != action
        assert [slot.identifier for slot in getattr(written, "slots", ())] == (
            ["OBFirst"] if has_slots else []
        )
        assert [name for name, _ in bags(written)] == (["OBFirst"] if has_slots else [""])
        assert channels.shared_users(first) == ()
    else:
        assert written == action


def test_shared_slot_names_its_users(channels):
    first, second = make_armature("First"), make_armature("Second")
    key_richly(first)
    second.animation_data_create().action = first.animation_data.action
    if hasattr(first.animation_data, "action_slot"):
        second.animation_data.action_slot = first.animation_data.action_slot
    assert channels.shared_users(first) == ("Second",)
    assert channels.shared_users(make_armature("Third")) == ()


def test_empty_action(writing):
    """Blender leaves the slot of an assigned empty action unset."""
    armature_object = make_armature()
    empty = bpy.data.actions.new("Empty")
    armature_object.animation_data_create().action = empty
    keys = keys_for(writing, [1, 5])
    assert (
        write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (1, 5), "Baked")
        == empty
    )
    assert_keys_play(armature_object, keys)
    if hasattr(empty, "slots"):
        assert armature_object.animation_data.action_slot.identifier == "OBRig"


def test_slot_of_another_is_not_taken(channels, writing):
    """Slots of other objects, one of them unused: the armature gets its own; the other keeps its keys."""
    other, armature_object = make_armature("Other"), make_armature()
    key_richly(other)
    action = other.animation_data.action
    armature_object.animation_data_create().action = action
    if not hasattr(action, "slots"):  # an assigned action always animates
        assert channels.shared_users(armature_object) == ("Other",)
        return
    action.slots.new("OBJECT", "Gone")
    before = state(action)["bags"]["OBOther"]
    armature_object.animation_data.action_slot = None
    assert list(channels.fcurves_of(armature_object)) == []
    keys = keys_for(writing, [1, 5])
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (1, 5), "Baked")
    assert armature_object.animation_data.action_slot.identifier == "OBRig"
    assert state(action)["bags"]["OBOther"] == before
    assert_keys_play(armature_object, keys)


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize("unassigned", [False, True])
def test_file_from_before_slots(channels, writing, destination, unassigned):
    bpy.ops.wm.open_mainfile(filepath=str(DATA / "before_slots.blend"))
    armature_object = bpy.data.objects["Rig"]
    action = armature_object.animation_data.action
    has_slots = hasattr(action, "slots")
    if has_slots:
        assert armature_object.animation_data.action_slot.name_display == channels.LEGACY_SLOT
    frames, curves = [*range(5), *range(16, 40)], curves_by_path(channels, armature_object)
    before = {path: key_tuples(c) for path, c in curves.items()}
    played = {path: [curve.evaluate(frame) for frame in frames] for path, curve in curves.items()}
    if unassigned and has_slots:
        armature_object.animation_data.action_slot = None
    keys = keys_for(writing, [5, 9, 15])
    write_keys(writing, armature_object, keys, writing.Destination[destination], (5, 15), "Baked")
    assert_keys_play(armature_object, keys)
    if unassigned and has_slots and destination == "NEW_ACTION":
        # What did not move the object is not copied.
        assert len(list(channels.fcurves_of(armature_object))) == 8
        return
    if has_slots:
        assert armature_object.animation_data.action_slot.name_display == channels.LEGACY_SLOT
        assert len(armature_object.animation_data.action.slots) == 1
    for path, curve in curves_by_path(channels, armature_object).items():
        after = [curve.evaluate(frame) for frame in frames]
        assert after == pytest.approx(played[path], abs=20 * FLOAT32)
        kept = {key[0] for key in before[path] if not 5 <= key[0][0] <= 15}
        assert kept <= {key[0] for key in key_tuples(curve)}


def test_all_rotation_channels(channels, writing):
    armature_object = make_armature(bones=("a", "b", "c"))
    modes = {"a": ("XYZ", "rotation_euler", 3), "b": ("AXIS_ANGLE", "rotation_axis_angle", 4)}
    modes["c"] = ("QUATERNION", "location", 3)
    keys = []
    for bone, (mode, channel, width) in modes.items():
        armature_object.pose.bones[bone].rotation_mode = mode
        values = np.arange(2 * width).reshape(2, width) / 7 + 0.1
        keys.append(keys_of(writing, bone, channel, np.array([1, 2]), values))
    write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (1, 2), "Baked")
    assert len(list(channels.fcurves_of(armature_object))) == 10
    assert_keys_play(armature_object, keys)


def test_present_keys_of_bones(channels):
    [armature_object] = partly_keyed()
    armature_object.pose.bones['lo"wer'].keyframe_insert("location", frame=3.5)
    assert list(channels.present_keys(armature_object)) == [0, 3.5, 6, 7, 20]
    assert list(channels.present_keys(armature_object, ['lo"wer'])) == [3.5]
    assert list(channels.present_keys(make_armature("Other"))) == []


def test_selection(channels):
    armature_object = make_armature()
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    upper, lower = armature_object.pose.bones
    channels.select_bone(upper, True)
    assert (channels.is_bone_selected(upper), channels.is_bone_selected(lower)) == (True, False)
    assert bpy.context.selected_pose_bones == [upper]
    channels.select_bone(upper, False)
    assert bpy.context.selected_pose_bones == []


def test_many_keys(channels, writing):
    """Bulk writes: what takes minutes key by key is done at once, and every key is there."""
    armature_object = make_armature(bones=tuple(f"bone{i}" for i in range(20)))
    frames = np.arange(1, 2001)
    bones = [bone.name for bone in armature_object.pose.bones]
    keys = keys_for(writing, frames, bones=bones)
    write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (1, 2000), "Baked")
    curves = curves_by_path(channels, armature_object)
    assert len(curves) == 80
    for item in keys:
        path = item.path
        for index in range(4):
            flat = np.zeros(4000, np.float32)
            curves[path, index].keyframe_points.foreach_get("co", flat)
            assert np.abs(flat[1::2] - item.values[:, index].astype(np.float32)).max() == EXACT
            assert (flat[::2] == frames).all()


def test_a_handle_at_frame_0_keeps_the_curve(channels, writing):
    """Of a curve from -10 to 2 that is split beside -5: a handle of a half falls on frame 0."""
    armature_object = make_armature()
    path = 'pose.bones["upper"].rotation_quaternion'
    bone, ends = armature_object.pose.bones["upper"], ((-10, 0.9), (2, -0.3))
    for frame, value in ends:
        bone.rotation_quaternion = (value,) * 4
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    frames = [*range(-10, -5), *range(-4, 3)]
    before = [curves_by_path(channels, armature_object)[path, 0].evaluate(frame) for frame in frames]
    keys = keys_for(writing, [-5])[:1]
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, (-5, -5), "Baked")
    curve = curves_by_path(channels, armature_object)[path, 0]
    assert [curve.evaluate(frame) for frame in frames] == pytest.approx(before, abs=1e-5)


@pytest.mark.parametrize(
    ("interpolation", "span"),
    [
        ("LINEAR", (50, 60)),
        ("LINEAR", (50, 99)),
        ("LINEAR", (2, 20)),
        ("SINE", (50, 60)),
        ("BEZIER", (2, 99)),
        ("BEZIER LINEAR", (50, 60)),
        ("CONSTANT LINEAR", (50, 60)),
        ("SINE LINEAR", (50, 60)),
        ("BEZIER LINEAR LINEAR", (50, 60)),
        ("LINEAR LINEAR BEZIER", (50, 60)),
    ],
)
def test_linear_extrapolation_goes_on_with_the_same_slope(channels, writing, interpolation, span):
    """Blender takes the slope beyond a linear end key from its neighbour, which may be a new key."""
    armature_object = make_armature()
    bone = armature_object.pose.bones["upper"]
    kinds = interpolation.split()
    for frame, value in ((1, 0.1), *((49, 0.7) for _ in kinds[2:]), (100, 0.9)):
        bone.location = (value,) * 3
        bone.keyframe_insert("location", frame=frame)
    for curve in channels.fcurves_of(armature_object):
        curve.extrapolation = "LINEAR"
        for key, kind in zip(curve.keyframe_points, kinds * 2, strict=False):
            key.interpolation = kind
    frames = [frame for frame in range(-40, 140, 3) if not span[0] <= frame <= span[1]]
    path = 'pose.bones["upper"].location'
    before = [curves_by_path(channels, armature_object)[path, 0].evaluate(frame) for frame in frames]
    keys = [keys_of(writing, "upper", "location", np.array(span, float), np.full((2, 3), 5.0))]
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, span, "Baked")
    curve = curves_by_path(channels, armature_object)[path, 0]
    assert [curve.evaluate(frame) for frame in frames] == pytest.approx(before, abs=1e-4)
    if span == (50, 60) and interpolation in ("LINEAR", "BEZIER LINEAR LINEAR"):  # none beyond the ends
        assert [key.co[0] for key in curve.keyframe_points] == [1, 49, 50, 60, 61, 100]


@pytest.mark.parametrize("interpolation", ["BEZIER", "SINE", "LINEAR"])
@pytest.mark.parametrize("span", [(50, 60), (-60, -50)])
def test_one_key_with_linear_extrapolation_keeps_both_slopes(channels, writing, interpolation, span):
    """Its handles give them: 0.1 a frame before it, and 0.3 after it."""
    armature_object = make_armature()
    armature_object.pose.bones["upper"].keyframe_insert("location", frame=1)
    for curve in channels.fcurves_of(armature_object):
        curve.extrapolation, key = "LINEAR", curve.keyframe_points[0]
        key.interpolation, key.handle_left_type, key.handle_right_type = interpolation, "FREE", "FREE"
        key.handle_left, key.handle_right = (-1.0, -0.2), (3.0, 0.6)
    frames = [frame for frame in range(-90, 90, 3) if not span[0] <= frame <= span[1]]
    slopes = (0.0, 0.0) if interpolation == "LINEAR" else (0.1, 0.3)
    keys = [keys_of(writing, "upper", "location", np.array(span, float), np.full((2, 3), 5.0))]
    write_keys(writing, armature_object, keys, writing.Destination.CURRENT_ACTION, span, "Baked")
    curve = curves_by_path(channels, armature_object)['pose.bones["upper"].location', 0]
    wanted = [(frame - 1) * slopes[frame > 1] for frame in frames]
    assert [curve.evaluate(frame) for frame in frames] == pytest.approx(wanted, abs=1e-4)


def test_the_span_of_no_keys_holds_no_frame(channels):
    assert channels.span([]) == (float("inf"), float("-inf"))
