"""From FK to IK and back: targets put where the motion has the bones, and a bake that leaves it as it is."""

from __future__ import annotations

import itertools
import math

import bpy
import numpy as np
import pytest
import rigs
from linked_rigs import character, collected
from mathutils import Euler, Quaternion, Vector
from operator_calls import fails
from playing import angle, in_world

FRAMES = range(1, 21)


def waving(count=6, mode="QUATERNION"):
    """A chain with keys on all its bones."""
    rig = rigs.chain(count, 0.5)
    for k, bone in enumerate(rig.pose.bones):
        bone.rotation_mode = mode
        for frame in (1, 8, 14, 20):
            turn = Quaternion(Vector((1.0, 0.3 * k, 0.5)).normalized(), 0.35 * math.sin(frame + k))
            rigs.set_rotation(bone, turn)
            bone.keyframe_insert(
                {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(
                    mode, "rotation_euler"
                ),
                frame=frame,
            )
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    bpy.context.scene.frame_set(1)
    return rig


def reach(rig, bone, target, **fields):
    row = rigs.reach(rig, bone, target, **fields)
    rigs.activate(rig)
    return row


def played(rig):
    """(F, B, 4, 4) world matrices of all frames."""
    return np.array([list(in_world(rig, frame).values()) for frame in FRAMES])


@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ"])
def test_the_round_trip_is_the_identity(ext, mode):
    """A position, a rotation and a pole from the motion; the bake then keeps every frame."""
    rig = waving(mode=mode)
    pole = rigs.empty("Pole", (2.0, 1.0, 0.0))
    target = rigs.empty("Goal", (9.0, 0.0, 0.0))
    target.rotation_mode = "QUATERNION"
    reach(rig, "bone_5", target, rotation="ORIENTATION", pole_target=pole)
    before = played(rig)
    assert bpy.ops.ccd_rig.targets_from_motion() == {"FINISHED"}
    assert np.abs(played(rig) - before).max() == 0.0  # only targets have got keys
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig) - before).max() < 1e-5
    assert "20 of 20 frames reached" in rig.ccd_rig.report.words


@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "XYZ"])
def test_a_part_of_a_targets_keys_continues_the_rest(ext, mode):
    """The target rolls 20 degrees a frame, and is keyed anew in the middle while its last pose is shown."""
    rig = rigs.chain(2)
    for bone in rig.pose.bones:
        for frame in range(1, 61):
            bone.rotation_quaternion = Quaternion((0.0, 1.0, 0.0), math.radians(10.0 * frame))
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    target, scene = rigs.empty("Goal"), bpy.context.scene
    target.rotation_mode = mode
    reach(rig, "bone_1", target, rotation="ORIENTATION")
    for scene.frame_start, scene.frame_end in ((1, 60), (20, 40)):
        assert bpy.ops.ccd_rig.targets_from_motion() == {"FINISHED"}
        scene.frame_set(60)
    for frame in (19, 20, 30, 40):
        turns = []
        for part in (0.0, 0.5, 1.0):
            scene.frame_set(frame + int(part), subframe=part % 1.0)
            turns.append(target.matrix_world.to_quaternion())
        for one, other in itertools.pairwise(turns):
            assert math.degrees(angle(one, other)) == pytest.approx(10.0, abs=1.0), frame


def test_targets_of_all_sorts_arrive(ext):
    """Parented objects, bones of a control rig, offsets, directions, a scaled armature that moves."""
    rig = waving()
    rig.location, rig.scale = (1.0, 2.0, 0.5), (0.7, 0.7, 0.7)
    carrier = rigs.empty("Carrier", (0.3, 0.0, 0.0))
    carrier.rotation_euler = Euler((0.4, 0.1, 0.9))
    for frame, x in ((1, 0.0), (20, 1.0)):
        carrier.location.x = x
        carrier.keyframe_insert("location", frame=frame)
    hand = rigs.empty("Hand", (0.1, 0.2, 0.3))
    hand.parent, hand.scale = carrier, (2.0, 2.0, 2.0)
    controls = rigs.armature(
        [
            rigs.B("base", (0, 0, 0), (0, 1, 0)),
            rigs.B("grip", (0, 1, 0), (0, 2, 0.5), parent="base", roll=0.4),
        ],
        "Controls",
    )
    controls.pose.bones["base"].rotation_quaternion = Quaternion((0, 0, 1), 0.8)
    reach(rig, "bone_5", hand, offset=(0.1, 0.0, 0.2), rotation="DIRECTION")
    reach(rig, "bone_3", controls, target_bone="grip", rotation="ORIENTATION", use_tail=False)
    before = played(rig)
    assert bpy.ops.ccd_rig.targets_from_motion() == {"FINISHED"}
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig) - before).max() < 2e-5


MOVING = {
    "weight": (0.3, 4.0),
    "rotation_weight": (0.2, 3.0),
    "pole_angle": (-0.5, 1.4),
    "offset": (-0.3, 0.4),
    "max_extension": (0.97, 1.0),
    "soft": (0.0, 0.4),
}
"""Settings that keys or drivers may move, and the values between which they go."""


def move(row, field, by):
    """Let a setting go from one value to the other over the frames."""
    first, last = MOVING[field]
    place = (field, 2) if field == "offset" else (field,)
    if by == "keys":
        for frame, value in ((FRAMES[0], first), (FRAMES[-1], last)):
            setattr(row, field, (0.0, 0.0, value) if field == "offset" else value)
            row.keyframe_insert(field, frame=frame)
        return
    driver = row.driver_add(*place).driver
    if by == "frame":
        driver.type = "SCRIPTED"
        driver.expression = f"{first} + {(last - first) / (FRAMES[-1] - FRAMES[0])} * (frame - {FRAMES[0]})"
        return
    slider = rigs.keyed(rigs.empty("Slider"), {FRAMES[0]: (first, 0, 0), FRAMES[-1]: (last, 0, 0)})
    driver.type = "AVERAGE"
    source = driver.variables.new()
    source.type = "TRANSFORMS"
    source.targets[0].id, source.targets[0].transform_type = slider, "LOC_X"


def limb():
    """Two bones that come near straight, then bend."""
    rig = rigs.armature(
        [rigs.B("upper", (0, 0, 0), (0, 0.1, 1)), rigs.B("lower", (0, 0.1, 1), (0, 0, 2), "upper", 0.0, True)]
    )
    for frame, bend in ((1, 0.9), (8, 0.45), (14, 0.35), (20, 1.2)):
        for bone, turn in zip(rig.pose.bones, (-0.5 * bend, bend), strict=True):
            bone.rotation_mode = "QUATERNION"
            bone.rotation_quaternion = Quaternion((1.0, 0.0, 0.0), turn)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    bpy.context.scene.frame_set(1)
    return rig


@pytest.mark.parametrize("by", ["keys", "frame", "object"])
@pytest.mark.parametrize("field", MOVING)
def test_the_round_trip_holds_settings_that_move(ext, field, by):
    """The targets are where each frame's settings want them, so that the bake keeps every frame."""
    fields = {"rotation": "ORIENTATION"} if field == "rotation_weight" else {}
    if field in ("pole_angle", "soft"):
        fields["pole_target"] = rigs.empty("Pole", (0.0, -3.0, 0.5))
    if field in ("max_extension", "soft"):
        rig, tip = limb(), "lower"
        fields["method"] = "TWO_BONE" if field == "soft" else "CCD"
    else:
        rig, tip = waving(), "bone_5"
    target = rigs.empty("Goal", (9.0, 0.0, 0.0))
    target.rotation_mode = "QUATERNION"
    row = reach(rig, tip, target, **fields)
    move(row, field, by)
    rigs.activate(rig)
    before = played(rig)
    assert bpy.ops.ccd_rig.targets_from_motion() == {"FINISHED"}
    assert np.abs(played(rig) - before).max() == 0.0
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig) - before).max() < 2e-5
    if field != "soft":  # an eased limb stays behind its target
        assert "20 of 20 frames reached" in rig.ccd_rig.report.words
    seen = []
    for frame in (FRAMES[0], FRAMES[-1]):
        bpy.context.scene.frame_set(frame)
        now = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).ccd_rig.constraints[0]
        seen.append(now.offset[2] if field == "offset" else getattr(now, field))
    assert seen == pytest.approx(MOVING[field], abs=1e-6)


def test_only_where_bones_have_keys(channels):
    rig = waving()
    target = rigs.empty("Goal")
    reach(rig, "bone_5", target)
    assert bpy.ops.ccd_rig.targets_from_motion(frames="KEYED") == {"FINISHED"}
    curves = list(channels.fcurves_of(target))
    assert {curve.data_path for curve in curves} == {"location"}
    assert {tuple(point.co[0] for point in curve.keyframe_points) for curve in curves} == {(1, 8, 14, 20)}


def test_more_targets_keep_a_tails_shape(ext):
    """A bake from rest, with all motion forgotten, comes near it where every third bone has a target."""
    rig = waving(9)
    reach(rig, "bone_8", rigs.empty("Goal"))
    before = played(rig)
    off = {}
    for every in (0, 3):
        assert bpy.ops.ccd_rig.targets_from_motion(every=every) == {"FINISHED"}
        action = rig.animation_data.action
        assert bpy.ops.ccd_rig.bake(start="REST", destination="NEW_ACTION") == {"FINISHED"}
        off[every] = np.abs(played(rig) - before)[..., :3, 3].max()
        channels = ext.module("ccd_rig.blender.keys.channels")
        channels.assign(rig, action, next(iter(getattr(action, "slots", [None]))))
    rows = [(row.tip, row.chain_length) for row in rig.ccd_rig.constraints]
    assert rows == [("bone_8", 0), ("bone_5", 6), ("bone_2", 3)]
    assert off[3] < 0.5 * off[0]
    assert rig.ccd_rig.active_index == 0


def test_targets_at_this_frame(ext):
    """Keys stay; a pose by hand counts, and undoing the solve of it is not needed."""
    rig = waving()
    target, pole = rigs.empty("Goal", (5.0, 0.0, 0.0)), rigs.empty("Pole", (2.0, 0.0, 0.0))
    reach(rig, "bone_5", target, pole_target=pole, rotation="ORIENTATION")
    bpy.context.scene.frame_set(9)
    rig.pose.bones["bone_2"].rotation_quaternion = Quaternion((1, 0, 0), 0.9)
    rigs.update()
    posed = [bone.matrix.copy() for bone in rig.pose.bones]
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
    rigs.update()
    tail = rig.matrix_world @ rig.pose.bones["bone_5"].tail
    assert (target.matrix_world.translation - tail).length < 1e-5
    assert target.animation_data is None
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    for bone, matrix in zip(rig.pose.bones, posed, strict=True):
        assert np.abs(np.array(bone.matrix) - np.array(matrix)).max() < 1e-4


def test_targets_that_hang_on_each_other(ext):
    rig = waving()
    first, second = rigs.empty("First", (1.0, 0.0, 0.0)), rigs.empty("Second", (0.0, 1.0, 0.0))
    second.parent = first
    reach(rig, "bone_5", second)
    reach(rig, "bone_2", first)
    rigs.update()
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
    rigs.update()
    for thing, bone in ((first, "bone_2"), (second, "bone_5")):
        assert (thing.matrix_world.translation - rig.pose.bones[bone].tail).length < 1e-5
    before = played(rig)
    bpy.ops.ccd_rig.targets_from_motion()
    bpy.ops.ccd_rig.bake()
    assert np.abs(played(rig) - before).max() < 1e-5


def test_targets_with_deltas_arrive(ext):
    rig = waving()
    target = rigs.empty("Goal", (1.0, 0.0, 0.0))
    target.delta_location, target.delta_rotation_euler = (0.3, 0.2, 0.1), (0.4, 0.5, 0.6)
    reach(rig, "bone_5", target, rotation="ORIENTATION")
    rigs.update()
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
    rigs.update()
    tip = rig.pose.bones["bone_5"]
    assert (target.matrix_world.translation - tip.tail).length < 1e-5
    turn = target.matrix_world.to_quaternion().rotation_difference(tip.matrix.to_quaternion())
    assert min(turn.angle, 2.0 * np.pi - turn.angle) < 1e-3
    before = played(rig)
    bpy.ops.ccd_rig.targets_from_motion()
    bpy.ops.ccd_rig.bake()
    assert np.abs(played(rig) - before).max() < 1e-5


def frame(matrix):
    """Y, the direction of the second axis, and Z, the part of the third across it."""
    y, z = (matrix.to_3x3().col[k].normalized() for k in (1, 2))
    return [*y, *(z - y * y.dot(z)).normalized()]


@pytest.mark.parametrize("offset", [(0.0, 0.0, 0.0), (0.3, -0.2, 0.1)])
@pytest.mark.parametrize(
    ("scale", "of_parent"),
    [
        ((-1, 1, 1), None),
        ((1, 1, -1), None),
        ((-1, -2, -1), None),
        ((1, 1, 1), (1, 2, 0.5)),
        ((1, -1, 2), (-1, 2, 3)),
    ],
)
def test_targets_that_are_mirrored_or_sheared_are_matched(ext, scale, of_parent, offset):
    rig = waving()
    target = rigs.empty("Goal", (1.0, 0.5, 1.5))
    target.rotation_euler, target.scale = (0.3, 0.2, 0.1), scale
    if of_parent:
        carrier = rigs.empty("Carrier", (1.0, 2.0, 3.0))
        carrier.rotation_euler, carrier.scale = (0.3, 0.5, -0.7), of_parent
        target.parent = carrier
    reach(rig, "bone_5", target, rotation="ORIENTATION", offset=offset)
    bpy.context.scene.frame_set(7)
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
    rigs.update()
    bone = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["bone_5"]
    assert frame(target.matrix_world) == pytest.approx(frame(rig.matrix_world @ bone.matrix), abs=1e-4)
    point = target.matrix_world @ Vector(offset)
    assert point[:] == pytest.approx((rig.matrix_world @ bone.tail)[:], abs=1e-4)


def test_a_target_that_is_locked_is_not_moved(ext):
    rig = waving()
    target = rigs.empty("Goal", (1.0, 0.5, 1.5))
    reach(rig, "bone_5", target)
    target.lock_location = (False, True, False)
    fails(bpy.ops.ccd_rig.targets_match, "look for drivers, locks")
    assert target.location[:] == (1.0, 0.5, 1.5)


def test_matching_honours_auto_keying(channels):
    rig = waving()
    target = rigs.empty("Goal", (5.0, 0.0, 0.0))
    reach(rig, "bone_5", target)
    edit = bpy.context.preferences.edit
    before = edit.use_keyframe_insert_available
    edit.use_keyframe_insert_available = False
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = True
    bpy.context.scene.frame_set(4)
    bpy.ops.ccd_rig.targets_match()
    edit.use_keyframe_insert_available = before
    assert {c.data_path for c in channels.fcurves_of(target)} == {"location"}
    assert {p.co[0] for c in channels.fcurves_of(target) for p in c.keyframe_points} == {4.0}


def test_a_straight_chain_leaves_its_pole(ext):
    rig = rigs.chain(3)
    pole = rigs.empty("Pole", (0.0, 3.0, 0.5))
    reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.0, 1.0)), pole_target=pole)
    rigs.update()
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
    assert pole.location == Vector((0.0, 3.0, 0.5))


def test_one_object_as_the_pole_of_a_row_and_the_rotation_of_another(ext):
    """It goes where the pole must be, and is turned as the other row's bone; a solve then moves nothing."""
    rig = waving()
    both = rigs.empty("Both", (2.0, 0.0, 0.0))
    reach(rig, "bone_5", rigs.empty("Goal", (5.0, 0.0, 0.0)), pole_target=both)
    reach(rig, "bone_0", both, use_position=False, rotation="ORIENTATION")
    bpy.context.scene.frame_set(9)
    posed = [bone.matrix.copy() for bone in rig.pose.bones]
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
    rigs.update()
    tail = rig.matrix_world @ rig.pose.bones["bone_5"].tail
    assert (bpy.data.objects["Goal"].matrix_world.translation - tail).length < 1e-5
    assert (both.matrix_world.translation - tail).length > 0.5
    turn = both.matrix_world.to_quaternion().rotation_difference(posed[0].to_quaternion())
    assert abs(turn.angle) < 1e-3
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    for bone, matrix in zip(rig.pose.bones, posed, strict=True):
        assert np.abs(np.array(bone.matrix) - np.array(matrix)).max() < 1e-4


# --- bad input: a clear message, and nothing has changed


def state(rig):
    objects = {
        thing.name: (tuple(map(tuple, thing.matrix_basis)), thing.animation_data)
        for thing in bpy.data.objects
    }
    return objects, len(bpy.data.actions), len(bpy.data.collections), len(rig.ccd_rig.constraints)


def refused(rig, match, **options):
    before = state(rig)
    fails(bpy.ops.ccd_rig.targets_from_motion, match, **options)
    assert state(rig) == before


def test_a_target_that_something_else_moves_is_refused(ext):
    rig = waving()
    target = rigs.empty("Goal", (5.0, 0.0, 0.0))
    reach(rig, "bone_5", target)
    held = target.constraints.new("LIMIT_LOCATION")
    refused(rig, "constraint 'Limit Location' moves it: mute it")
    fails(bpy.ops.ccd_rig.targets_match, "mute it")
    held.mute = True
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}


def test_a_target_that_is_a_bone_is_named_with_its_armature(ext):
    rig = waving()
    controls = rigs.armature([rigs.B("grip", (5, 0, 0), (5, 0, 1))], "Controls")
    reach(rig, "bone_5", controls, target_bone="grip")
    controls.pose.bones["grip"].constraints.new("LIMIT_LOCATION")
    refused(rig, "Target bone 'grip' of 'Controls': its constraint 'Limit Location' moves it")
    bpy.data.objects["Rig"].ccd_rig.constraints.clear()
    target = rigs.empty("Goal", (5.0, 0.0, 0.0))
    target.constraints.new("LIMIT_LOCATION")
    reach(rig, "bone_5", target)
    refused(rig, "Target 'Goal': its constraint")


def test_a_target_that_a_driver_holds_is_refused(ext):
    rig = waving()
    target = rigs.empty("Goal", (5.0, 0.0, 0.0))
    target.driver_add("location", 0).driver.expression = "1.0"
    reach(rig, "bone_5", target)
    reach(rig, "bone_2", rigs.empty("Other", (1.0, 0.0, 0.0)))
    count = len(bpy.data.actions)
    fails(bpy.ops.ccd_rig.targets_from_motion, "cannot be put where the bone is at frame 1: look for drivers")
    assert len(bpy.data.actions) == count and bpy.data.objects["Other"].animation_data is None
    fails(bpy.ops.ccd_rig.targets_match, "cannot be put where the bone is: look for drivers")
    assert bpy.data.objects["Other"].location == Vector((1.0, 0.0, 0.0))


def test_more_targets_that_fail_leave_nothing(ext):
    rig = waving()
    target = rigs.empty("Goal", (5.0, 0.0, 0.0))
    target.constraints.new("LIMIT_LOCATION")
    reach(rig, "bone_5", target)
    refused(rig, "mute it", every=2)
    rig.ccd_rig.active_index = -1
    refused(rig, "needs a Reach as the active constraint", every=2)


def test_a_locked_curve_is_refused(channels):
    rig = waving()
    target = rigs.empty("Goal", (5.0, 0.0, 0.0))
    target.keyframe_insert("location", frame=1)
    next(iter(channels.fcurves_of(target))).lock = True
    reach(rig, "bone_5", target)
    fails(bpy.ops.ccd_rig.targets_from_motion, "is locked: unlock it")


def test_bones_without_keys_are_told(ext):
    rig = rigs.chain(3)
    reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.0, 1.0)))
    refused(rig, "No bone of the chains has keys in frames", frames="KEYED")
    rig.ccd_rig.active_index = -1
    fails(bpy.ops.ccd_rig.targets_match, "No constraint is active", only_active=True)


def test_an_action_that_moves_others_too_is_refused(ext):
    """The other object would move with the target."""
    rig = waving()
    target, other = rigs.empty("Goal", (5.0, 0.0, 0.0)), rigs.empty("Other")
    rigs.keyed(target, {1: (5.0, 0.0, 0.0)})
    animation = other.animation_data_create()
    animation.action = target.animation_data.action
    if hasattr(animation, "action_slot"):
        animation.action_slot = target.animation_data.action_slot
    reach(rig, "bone_5", target)
    bpy.context.scene.frame_set(1)
    refused(rig, "of 'Goal' moves 'Other' too: make it a single user")
    animation.action = None
    assert bpy.ops.ccd_rig.targets_from_motion() == {"FINISHED"}


def test_a_flat_target_is_refused_by_name(ext):
    rig = waving()
    target = rigs.empty("Goal", (5.0, 0.0, 0.0))
    target.scale.z = 0.0
    reach(rig, "bone_5", target)
    refused(rig, "Target 'Goal': it or its parent has scale 0 on an axis")
    fails(bpy.ops.ccd_rig.targets_match, "set its scale to 1")
    target.scale.z = 1.0
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}


def test_a_target_over_other_strips_keeps_them(ext):
    """Keys of an action would hold the target outside the range, where the strip moves it."""
    rig = waving()
    target = rigs.keyed(rigs.empty("Goal"), {1: (5.0, 0.0, 0.0), 60: (5.0, 2.0, 0.0)})
    animation = target.animation_data
    strip = animation.nla_tracks.new().strips.new("Path", 1, animation.action)
    if hasattr(strip, "action_slot"):
        strip.action_slot = animation.action.slots[0]
    animation.action = None
    rigs.keyed(target, {30: (1.0, 1.0, 1.0)})
    animation.action_extrapolation = "NOTHING"
    reach(rig, "bone_5", target)
    bpy.context.scene.frame_set(1)
    refused(rig, "'Goal': keys of its action would hide its NLA strips at other frames")


@pytest.mark.parametrize("what", ["target", "pole"])
def test_targets_that_are_no_editable_overrides_are_refused_before_anything_changes(ext, what, tmp_path):
    """Blender's own override of what hangs on the rig: a resync would drop its new place."""
    rig = collected(rigs.chain(3))
    for name in ("First", "Goal", "Pole"):
        rig.users_collection[0].objects.link(thing := rigs.empty(name, (1.0, 1.0, 1.0)))
        bpy.context.scene.collection.objects.unlink(thing)
    rigs.reach(rig, "bone_1", bpy.data.objects["First"])
    rigs.reach(rig, "bone_2", bpy.data.objects["Goal"], pole_target=bpy.data.objects["Pole"])
    rig = character(rig, tmp_path)
    rigs.activate(rig)
    first, row = rig.ccd_rig.constraints[0].target, rig.ccd_rig.constraints[1]
    thing = row.target if what == "target" else row.pole_target
    thing.override_library.is_system_override = True
    for command in (bpy.ops.ccd_rig.targets_match, bpy.ops.ccd_rig.targets_from_motion):
        fails(command, f"Target '{thing.name}' is an override that is not editable: use Library Override")
        assert (*first.location, *row.target.location) == (1.0,) * 6
        assert first.animation_data is row.target.animation_data is None
    mark = ext.module("ccd_rig.blender.viewport.constraints")
    target = ext.module("ccd_rig.blender.properties.new_constraints").Target(thing, "")
    assert not mark.is_free(target, rig)
    thing.override_library.is_system_override = False
    assert mark.is_free(target, rig)
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
