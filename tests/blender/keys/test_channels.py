"""Keys arrive whole and alone: in the right action and slot, next to what was there, or not at all."""

from __future__ import annotations

import contextlib
from pathlib import Path

import bpy
import numpy as np
import pytest

FIELDS = (
    "co",
    "handle_left",
    "handle_right",
    "handle_left_type",
    "handle_right_type",
    "interpolation",
    "easing",
    "type",
    "back",
    "amplitude",
    "period",
    "select_control_point",
    "select_left_handle",
    "select_right_handle",
)
EXACT = 0.0
FLOAT32 = 1e-6
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def channels(ext):
    return ext.module("ccd_rig.blender.keys.channels")


@pytest.fixture
def writing(ext):
    return ext.module("ccd_rig.blender.keys.writer")


@pytest.fixture
def errors(ext):
    return ext.module("ccd_rig.errors")


def make_armature(name="Rig", bones=("upper", 'lo"wer')):
    """An armature object in the scene, a chain of unit bones along +Y."""
    data = bpy.data.armatures.new(name)
    armature_object = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(armature_object)
    bpy.context.view_layer.objects.active = armature_object
    bpy.ops.object.mode_set(mode="EDIT")
    parent = None
    for index, bone in enumerate(bones):
        edit_bone = data.edit_bones.new(bone)
        edit_bone.head, edit_bone.tail = (0, index, 0), (0, index + 1, 0)
        edit_bone.parent = parent
        parent = edit_bone
    bpy.ops.object.mode_set(mode="OBJECT")
    return armature_object


def quaternions(frames, seed=0):
    values = np.random.default_rng(seed).normal(size=(len(frames), 4))
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def keys_for(writing, frames, bones=("upper", 'lo"wer'), interpolation="LINEAR", seed=0):
    frames = np.asarray(frames, float)
    return [
        writing.BoneKeys(bone, "rotation_quaternion", frames, quaternions(frames, seed + i), interpolation)
        for i, bone in enumerate(bones)
    ]


def key_richly(armature_object, frames=(0, 3, 5, 10, 12.25, 15, 20, 30), seed=5):
    """Keys of every kind of handle and interpolation, on the chain, on another channel, and on the object."""
    random = np.random.default_rng(seed)
    for frame in frames:
        for pose_bone in armature_object.pose.bones:
            pose_bone.rotation_quaternion = random.normal(size=4)
            pose_bone.keyframe_insert("rotation_quaternion", frame=frame, group=pose_bone.name)
        armature_object.pose.bones[0].location = random.normal(size=3)
        armature_object.pose.bones[0].keyframe_insert("location", frame=frame, group="Other")
        armature_object.location = random.normal(size=3)
        armature_object.keyframe_insert("location", frame=frame)


def vary(fcurves, seed=6):
    """Give each key its own handles, easing and interpolation."""
    random = np.random.default_rng(seed)
    properties = bpy.types.Keyframe.bl_rna.properties
    for fcurve in fcurves:
        for key in fcurve.keyframe_points:
            key.handle_left_type = random.choice(properties["handle_left_type"].enum_items.keys())
            key.handle_right_type = random.choice(properties["handle_right_type"].enum_items.keys())
            key.interpolation = random.choice(["CONSTANT", "LINEAR", "BEZIER", "ELASTIC", "BACK"])
            key.easing = random.choice(["AUTO", "EASE_IN", "EASE_OUT"])
            key.type = random.choice(["KEYFRAME", "BREAKDOWN", "EXTREME"])
            key.back, key.amplitude, key.period = random.random(3)
            key.handle_left = (key.co[0] - random.random(), key.co[1] + random.random())
            key.handle_right = (key.co[0] + random.random(), key.co[1] - random.random())
        fcurve.update()


def key_tuples(fcurve):
    """Every field of every key, as comparable values."""
    flat = []
    for key in fcurve.keyframe_points:
        values = (getattr(key, field) for field in FIELDS)
        flat.append(tuple(tuple(v) if hasattr(v, "to_tuple") else v for v in values))
    return flat


def bags(action):
    """(name, container) of every set of F-curves of an action, on any version."""
    if not hasattr(action, "slots"):
        return [("", action)]
    return [
        (bag.slot.identifier, bag)
        for layer in action.layers
        for strip in layer.strips
        for bag in strip.channelbags
    ]


def state(action):
    """All that an action holds."""
    return {
        "name": action.name,
        "fake": action.use_fake_user,
        "slots": [s.identifier for s in getattr(action, "slots", ())],
        "layers": [len(layer.strips) for layer in getattr(action, "layers", ())],
        "bags": {
            name: (
                [group.name for group in bag.groups],
                {
                    (c.data_path, c.array_index): (
                        c.group.name if c.group else None,
                        c.extrapolation,
                        c.lock,
                        c.mute,
                        c.color_mode,
                        key_tuples(c),
                    )
                    for c in bag.fcurves
                },
            )
            for name, bag in bags(action)
        },
    }


def whole_state(*objects):
    """All actions of the file, and what the objects use."""
    used = []
    for item in objects:
        animation = item.animation_data
        if animation is None:
            used.append(None)
            continue
        slot = getattr(animation, "action_slot", None)
        used.append((animation.action and animation.action.name, slot and slot.identifier, animation.use_nla))
    return used, {action.name: state(action) for action in bpy.data.actions}


def curves_by_path(channels, datablock):
    return {(c.data_path, c.array_index): c for c in channels.fcurves_of(datablock)}


def assert_keys_play(armature_object, keys):
    """What Blender itself shows at each keyed frame is what was given."""
    scene = bpy.context.scene
    for item in keys:
        for frame, value in zip(item.frames, item.values, strict=True):
            scene.frame_set(int(frame // 1), subframe=float(frame % 1))
            shown = getattr(armature_object.pose.bones[item.bone], item.channel)
            assert list(shown) == pytest.approx(list(value), abs=FLOAT32)


def test_object_without_animation(channels, writing):
    armature_object = make_armature()
    keys = keys_for(writing, [1, 2.5, 3.125, 10])
    action = writing.write(armature_object, keys, writing.Destination.CURRENT_ACTION, (1, 10), "Baked")
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


def test_new_keys_are_what_blender_inserts(channels, writing):
    armature_object = make_armature()
    keys = keys_for(writing, [1, 4, 10], bones=("upper",), interpolation="BEZIER")
    writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (1, 10), "Baked")
    twin = make_armature("Twin")
    twin.pose.bones["upper"].rotation_mode = "QUATERNION"
    for frame, value in zip(keys[0].frames, keys[0].values, strict=True):
        twin.pose.bones["upper"].rotation_quaternion = value
        twin.pose.bones["upper"].keyframe_insert("rotation_quaternion", frame=frame)
    inserted = curves_by_path(channels, twin)
    for path, curve in curves_by_path(channels, armature_object).items():
        for key, other in zip(curve.keyframe_points, inserted[path].keyframe_points, strict=True):
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
    before = {path: key_tuples(c) for path, c in curves_by_path(channels, armature_object).items()}
    old_state = state(armature_object.animation_data.action)
    old_name = armature_object.animation_data.action.name
    frames = sorted({span[0], (span[0] + span[1]) / 2, span[1]})
    keys = keys_for(writing, frames)
    action = writing.write(armature_object, keys, writing.Destination[destination], span, "Baked")
    after = {path: key_tuples(c) for path, c in curves_by_path(channels, armature_object).items()}
    assert set(after) == set(before)
    written = {armature_object.pose.bones[k.bone].path_from_id(k.channel) for k in keys}
    for path, old in before.items():
        if path[0] not in written:
            assert after[path] == old
            continue
        kept = [key for key in after[path] if not span[0] <= key[0][0] <= span[1]]
        assert kept == [key for key in old if not span[0] <= key[0][0] <= span[1]]
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


def test_handles_stay_after_the_file_is_saved(channels, writing, tmp_path):
    armature_object = make_armature()
    key_richly(armature_object)
    writing.write(
        armature_object, keys_for(writing, [5, 9, 15]), writing.Destination.CURRENT_ACTION, (5, 15), "Baked"
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
    writing.write(armature_object, keys, writing.Destination.CURRENT_ACTION, (5, 15), "Baked")
    assert list(channels.present_keys(armature_object)) == pytest.approx([1, 5, 15, 15.02])
    for curve in channels.fcurves_of(armature_object):
        curve.update()  # Blender leaves them apart as well
        assert len(curve.keyframe_points) == 4


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
    written = writing.write(
        first, keys_for(writing, [5, 15]), writing.Destination[destination], (5, 15), "Baked"
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
    assert writing.write(armature_object, keys, writing.Destination.CURRENT_ACTION, (1, 5), "Baked") == empty
    assert_keys_play(armature_object, keys)
    if hasattr(empty, "slots"):
        assert armature_object.animation_data.action_slot.identifier == "OBRig"


def test_slot_of_another_is_not_taken(channels, writing):
    """An action whose only slot is another object's: the armature gets its own; the other keeps its keys."""
    other, armature_object = make_armature("Other"), make_armature()
    key_richly(other)
    action = other.animation_data.action
    armature_object.animation_data_create().action = action
    if not hasattr(action, "slots"):  # an assigned action always animates
        assert channels.shared_users(armature_object) == ("Other",)
        return
    before = state(action)["bags"]["OBOther"]
    armature_object.animation_data.action_slot = None
    assert list(channels.fcurves_of(armature_object)) == []
    keys = keys_for(writing, [1, 5])
    writing.write(armature_object, keys, writing.Destination.CURRENT_ACTION, (1, 5), "Baked")
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
    before = {path: key_tuples(c) for path, c in curves_by_path(channels, armature_object).items()}
    if unassigned and has_slots:
        armature_object.animation_data.action_slot = None
    keys = keys_for(writing, [5, 9, 15])
    writing.write(armature_object, keys, writing.Destination[destination], (5, 15), "Baked")
    assert_keys_play(armature_object, keys)
    if unassigned and has_slots and destination == "NEW_ACTION":
        # What did not move the object is not copied.
        assert len(list(channels.fcurves_of(armature_object))) == 8
        return
    if has_slots:
        assert armature_object.animation_data.action_slot.name_display == channels.LEGACY_SLOT
        assert len(armature_object.animation_data.action.slots) == 1
    for curve_path, curve in curves_by_path(channels, armature_object).items():
        kept = [key for key in key_tuples(curve) if not 5 <= key[0][0] <= 15]
        assert kept == [key for key in before[curve_path] if not 5 <= key[0][0] <= 15]


class Failure(Exception):
    """Raised in the middle of a write."""


@contextlib.contextmanager
def failing(monkeypatch, module, name, after):
    """Let the function of a module fail, after it was called some times for real."""
    real, calls = getattr(module, name), []

    def wrapped(*arguments, **keywords):
        calls.append(1)
        if len(calls) == after + 1:  # once: what is taken back takes the same way
            raise Failure
        return real(*arguments, **keywords)

    monkeypatch.setattr(module, name, wrapped)
    with pytest.raises(Failure):
        yield
    monkeypatch.setattr(module, name, real)


def no_animation():
    return [make_armature()]


def empty_action():
    armature_object = make_armature()
    armature_object.animation_data_create().action = bpy.data.actions.new("Empty")
    return [armature_object]


def rich_action():
    armature_object = make_armature()
    key_richly(armature_object)
    return [armature_object]


def partly_keyed():
    """One bone has F-curves with odd handles and a group, the other has none."""
    armature_object = make_armature()
    for frame in (0, 6, 7, 20):
        armature_object.pose.bones["upper"].keyframe_insert("rotation_quaternion", index=2, frame=frame)
    return [armature_object]


def others_slot():
    other, armature_object = make_armature("Other"), make_armature()
    key_richly(other)
    armature_object.animation_data_create().action = other.animation_data.action
    if hasattr(armature_object.animation_data, "action_slot"):
        armature_object.animation_data.action_slot = None
    return [armature_object, other]


def slot_without_keys():
    """A slot that is assigned and has no F-curves; before slots the same as an empty action."""
    [armature_object] = empty_action()
    animation = armature_object.animation_data
    if hasattr(animation, "action_slot"):
        animation.action_slot = animation.action.slots.new("OBJECT", "Mine")
    return [armature_object]


def slot_without_keys_beside_another():
    armature_object, other = others_slot()
    animation = armature_object.animation_data
    if hasattr(animation, "action_slot"):
        animation.action_slot = animation.action.slots.new("OBJECT", "Mine")
    return [armature_object, other]


STARTS = (
    no_animation,
    empty_action,
    slot_without_keys,
    slot_without_keys_beside_another,
    rich_action,
    partly_keyed,
    others_slot,
)


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("after", [0, 5, 7])
def test_failure_in_the_middle(ext, channels, writing, monkeypatch, destination, start, after):
    objects = start()
    for item in objects:
        vary(channels.fcurves_of(item))
    before = whole_state(*objects)
    with failing(monkeypatch, ext.module("ccd_rig.blender.keys.keyframes"), "write", after):
        writing.write(
            objects[0], keys_for(writing, [5, 15]), writing.Destination[destination], (5, 15), "Baked"
        )
    assert whole_state(*objects) == before
    # The same write goes through afterwards.
    keys = keys_for(writing, [5, 15])
    writing.write(objects[0], keys, writing.Destination[destination], (5, 15), "Baked")
    assert_keys_play(objects[0], keys)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("done", [False, True])
def test_failure_at_the_swap(channels, writing, monkeypatch, start, done):
    """The last step fails, before or after it has changed what the object uses."""
    objects = start()
    armature_object = objects[0]
    before = whole_state(*objects)
    real = channels.assign

    def assign_and_fail(*arguments):
        if done:
            real(*arguments)
        monkeypatch.setattr(channels, "assign", real)
        raise Failure

    monkeypatch.setattr(channels, "assign", assign_and_fail)
    with pytest.raises(Failure):
        writing.write(
            armature_object, keys_for(writing, [5]), writing.Destination.NEW_ACTION, (5, 5), "Baked"
        )
    assert whole_state(*objects) == before


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"values": np.zeros((2, 3))}, ["upper", "rotation_quaternion", "(F, 4)", "(2, 3)"]),
        ({"values": np.zeros((1, 4))}, ["upper", "(2,)", "(1, 4)"]),
        ({"values": np.full((2, 4), np.nan)}, ["upper", "finite"]),
        ({"frames": np.array([5, np.inf])}, ["upper", "finite"]),
        ({"frames": np.array([15, 5])}, ["upper", "increase"]),
        ({"frames": np.array([5, 5.001])}, ["upper", "increase"]),
        ({"frames": np.array([4, 15])}, ["upper", "outside 5 to 15"]),
        ({"frames": np.zeros(0), "values": np.zeros((0, 4))}, ["upper", "(0,)"]),
        ({"interpolation": "SINE"}, ["upper", "SINE", "LINEAR"]),
        ({"bone": 'lo"wer'}, ['lo"wer', "twice"]),
    ],
)
def test_unusable_keys(writing, errors, destination, changes, words):
    [armature_object] = rich_action()
    before = whole_state(armature_object)
    first, second = keys_for(writing, [5, 15], bones=('lo"wer', "upper"))
    given = {
        field: getattr(second, field) for field in ("bone", "channel", "frames", "values", "interpolation")
    }
    keys = [first, writing.BoneKeys(**{**given, **changes})]
    with pytest.raises(errors.InvalidInput) as caught:
        writing.write(armature_object, keys, writing.Destination[destination], (5, 15), "Baked")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert whole_state(armature_object) == before


def test_no_keys_empty_range_and_missing_bone(writing, errors):
    [armature_object] = rich_action()
    before = whole_state(armature_object)
    new = writing.Destination.NEW_ACTION
    with pytest.raises(errors.InvalidInput, match="no keys"):
        writing.write(armature_object, [], new, (5, 15), "Baked")
    with pytest.raises(errors.InvalidInput, match="start must not lie after the end"):
        writing.write(armature_object, keys_for(writing, [5]), new, (15, 5), "Baked")
    with pytest.raises(errors.RigError, match="no bone 'gone'"):
        writing.write(armature_object, keys_for(writing, [5], bones=("gone",)), new, (5, 15), "Baked")
    assert whole_state(armature_object) == before


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
        writing.write(
            armature_object, keys_for(writing, [5]), writing.Destination[destination], (5, 5), "Baked"
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
    writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (0, 30), "Baked")
    with pytest.raises(AssertionError):
        assert_keys_play(armature_object, keys)


def test_muted_group(channels, writing, errors):
    """Before there were slots, a muted group did not play; since then it does."""
    [armature_object] = rich_action()
    mute_group(channels, armature_object)
    keys = keys_for(writing, [0, 5, 30])
    if hasattr(armature_object.animation_data, "action_slot"):
        writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (0, 30), "Baked")
        assert_keys_play(armature_object, keys)
    else:
        with pytest.raises(errors.RigError, match="muted group 'upper'"):
            writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (0, 30), "Baked")


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
    writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (0, 30), "Baked")
    assert_keys_play(armature_object, keys)


@pytest.fixture
def library(tmp_path):
    """A file with an animated armature."""
    make_armature()
    key_richly(bpy.data.objects["Rig"])
    bpy.data.objects["Rig"].animation_data.action.name = "Stored"
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "library.blend"))
    bpy.ops.wm.read_homefile(use_empty=True)
    return tmp_path / "library.blend"


def link(library, collection, name):
    with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
        setattr(wanted, collection, [name])
    return getattr(wanted, collection)[0]


def test_linked_action(channels, writing, errors, library):
    armature_object = make_armature()
    action = link(library, "actions", "Stored")
    armature_object.animation_data_create().action = action
    if hasattr(action, "slots"):
        armature_object.animation_data.action_slot = action.slots[0]
    before = whole_state(armature_object)
    keys = keys_for(writing, [5, 15])
    with pytest.raises(errors.RigError, match=r"Action 'Stored' is linked from .*: choose New Action"):
        writing.write(armature_object, keys, writing.Destination.CURRENT_ACTION, (5, 15), "Baked")
    assert whole_state(armature_object) == before
    written = writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (5, 15), "Baked")
    assert written.library is None
    assert written.name == "Baked"
    assert list(channels.present_keys(armature_object, ['lo"wer'])) == [0, 3, 5, 15, 20, 30]
    assert_keys_play(armature_object, keys)


def test_overridden_action(writing, errors, library):
    armature_object = make_armature()
    action = link(library, "actions", "Stored").override_create()
    assert action.override_library is not None
    armature_object.animation_data_create().action = action
    if hasattr(action, "slots"):
        armature_object.animation_data.action_slot = action.slots[0]
    keys = keys_for(writing, [5, 15])
    with pytest.raises(errors.RigError, match="Action 'Stored' is a library override"):
        writing.write(armature_object, keys, writing.Destination.CURRENT_ACTION, (5, 15), "Baked")
    written = writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (5, 15), "Baked")
    assert written.override_library is None
    assert_keys_play(armature_object, keys)


def test_linked_armature(writing, errors, library):
    armature_object = link(library, "objects", "Rig")
    bpy.context.scene.collection.objects.link(armature_object)
    keys = keys_for(writing, [5, 15])
    with pytest.raises(errors.RigError, match=r"Armature 'Rig' is linked from .*library override"):
        writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (5, 15), "Baked")


def test_overridden_armature(writing, library):
    linked = link(library, "objects", "Rig")
    armature_object = linked.override_create(remap_local_usages=True)
    armature_object.override_library.is_system_override = False
    bpy.context.scene.collection.objects.link(armature_object)
    keys = keys_for(writing, [5, 15])
    writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (5, 15), "Baked")
    assert armature_object.animation_data.action.name == "Baked"
    assert_keys_play(armature_object, keys)


def test_values_before(channels, writing):
    armature_object = make_armature()
    turned, shifted = ("upper", "rotation_quaternion"), ("upper", "location")
    assert channels.values_before(armature_object, [turned], 5) == {}
    keys = keys_for(writing, [1, 4.5, 10])
    writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (1, 10), "Baked")
    for frame, row in ((4.5, 0), (4.75, 1), (10, 1), (11, 2)):
        found = channels.values_before(armature_object, [turned, shifted], frame)
        assert found.keys() == {turned}
        assert found[turned] == pytest.approx(keys[0].values[row], abs=FLOAT32)
    assert channels.values_before(armature_object, [turned], 1) == {}


def test_values_after(channels, writing):
    armature_object = make_armature()
    turned, shifted = ("upper", "rotation_quaternion"), ("upper", "location")
    assert channels.values_after(armature_object, [turned], 5) == {}
    keys = keys_for(writing, [1, 4.5, 10])
    writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (1, 10), "Baked")
    for frame, row in ((0, 0), (1, 1), (4.25, 1), (4.5, 2), (9, 2)):
        found = channels.values_after(armature_object, [turned, shifted], frame)
        assert found.keys() == {turned}
        assert found[turned] == pytest.approx(keys[0].values[row], abs=FLOAT32)
    assert channels.values_after(armature_object, [turned], 10) == {}


def test_all_rotation_channels(channels, writing):
    armature_object = make_armature(bones=("a", "b", "c"))
    modes = {"a": ("XYZ", "rotation_euler", 3), "b": ("AXIS_ANGLE", "rotation_axis_angle", 4)}
    modes["c"] = ("QUATERNION", "location", 3)
    keys = []
    for bone, (mode, channel, width) in modes.items():
        armature_object.pose.bones[bone].rotation_mode = mode
        values = np.arange(2 * width).reshape(2, width) / 7 + 0.1
        keys.append(writing.BoneKeys(bone, channel, np.array([1, 2]), values))
    writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (1, 2), "Baked")
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
    writing.write(armature_object, keys, writing.Destination.NEW_ACTION, (1, 2000), "Baked")
    curves = curves_by_path(channels, armature_object)
    assert len(curves) == 80
    for item in keys:
        path = armature_object.pose.bones[item.bone].path_from_id(item.channel)
        for index in range(4):
            flat = np.zeros(4000, np.float32)
            curves[path, index].keyframe_points.foreach_get("co", flat)
            assert np.abs(flat[1::2] - item.values[:, index].astype(np.float32)).max() == EXACT
            assert (flat[::2] == frames).all()
