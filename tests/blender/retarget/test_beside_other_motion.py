"""Retargeting onto figures that other actions, strips and keys move, and from sources that play nothing."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
import walks
from playing import angle, in_world, shown
from retargeting import legs, played, refused, run

BONES = ("spine", "spine.003", "thigh.L", "shin.L", "foot.L", "shin.R", "toe.R")
FRAMES = range(1, 50, 6)


def moved(rig, frame):
    """The figure with an action that turns, moves and scales bones; shown at a frame."""
    for name in ("shin.R", "spine.002", "thigh.L"):
        bone = rig.pose.bones[name]
        bone.rotation_mode = "XYZ"
        for at, value in ((1, 0.0), (20, 0.7), (40, -0.4)):
            bone.rotation_euler = (value, 0.5 * value, 0.0)
            bone.scale = (1.0 + value,) * 3
            for channel in ("rotation_euler", "scale"):
                bone.keyframe_insert(channel, frame=at)
            if not bone.bone.use_connect:
                bone.location = (0.25 * value, 0.0, 0.2 * value)
                bone.keyframe_insert("location", frame=at)
    bpy.context.scene.frame_set(frame)
    return rig.animation_data.action


def as_strip(thing, action):
    """The action as a strip instead."""
    track = thing.animation_data.nla_tracks.new()
    strip = track.strips.new("Strip", 1, action)
    thing.animation_data.action = None
    return track, strip


def reopened(rig, tmp_path):
    """What a figure plays, from the saved file."""
    name = rig.name
    path = tmp_path / "played.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))
    return played(bpy.data.objects[name], BONES, FRAMES)


def turns(rig, bones):
    """(F, bones, 4) rotations of bones as they play."""
    poses = (in_world(rig, frame) for frame in FRAMES)
    return np.array([[pose[name].to_quaternion()[:] for name in bones] for pose in poses])


@pytest.fixture
def clean(target):
    """What the figure plays where nothing else moves it."""
    run(target)
    found = played(target, BONES, FRAMES)
    target.animation_data_clear()
    for bone in target.pose.bones:
        bone.matrix_basis.identity()
        bone.location, bone.rotation_quaternion = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    bpy.context.scene.frame_set(1)
    return found


@pytest.mark.parametrize("frame", [1, 20])
def test_an_action_that_played_before_has_no_part_in_it(target, clean, tmp_path, frame):
    before = moved(target, frame)
    run(target)
    assert target.animation_data.action is not before
    clip = target.ccd_rig.retarget.source.animation_data.action.name
    assert clip in target.animation_data.action.name
    np.testing.assert_allclose(reopened(target, tmp_path), clean, atol=1e-3)


@pytest.mark.parametrize("frame", [1, 20])
def test_a_strip_that_plays_below_has_no_part_in_it(target, clean, tmp_path, frame):
    as_strip(target, moved(target, frame))
    run(target)
    np.testing.assert_allclose(reopened(target, tmp_path), clean, atol=1e-3)


def moving_object(rig):
    """The armature object carried by its own keys: where the retargeted frames begin, and far away later."""
    for frame, place, turn in ((1, (0.0, 0.0, 0.0), 0.0), (30, (3.0, -2.0, 0.4), 1.0)):
        rig.location, rig.rotation_euler.z = place, turn
        rig.keyframe_insert("location", frame=frame)
        rig.keyframe_insert("rotation_euler", frame=frame)


@pytest.mark.parametrize("where", ["action", "strip"])
@pytest.mark.parametrize("frame", [1, 20])
def test_an_armature_object_with_keys_stays_where_it_is_as_the_frames_begin(
    target, clean, tmp_path, frame, where
):
    moving_object(target)
    if where == "strip":
        as_strip(target, target.animation_data.action)
    bpy.context.scene.frame_set(frame)
    run(target)
    np.testing.assert_allclose(reopened(target, tmp_path), clean, atol=1e-3)


@pytest.mark.parametrize("frame", [1, 20])
def test_a_carried_armature_has_the_motion_that_begins_where_it_is_then(target, clean, frame):
    """Relative to what carries it, the figure moves as it does where nothing carries it."""
    carrier = rigs.empty("Carrier")
    moving_object(carrier)
    target.parent = carrier
    bpy.context.scene.frame_set(frame)
    run(target)
    seen = played(target, BONES, FRAMES)
    for k, at in enumerate(FRAMES):
        bpy.context.scene.frame_set(at)
        world = np.array(carrier.matrix_world)
        np.testing.assert_allclose(seen[k], clean[k] @ world[:3, :3].T + world[:3, 3], atol=1e-3)


def test_a_source_that_is_to_stay_may_move_by_its_own_keys_alone(ext, retarget, source, target):
    maps, sampling = (ext.module(f"ccd_rig.blender.retarget.{name}") for name in ("bone_map", "sampling"))
    joints = maps.figure_map(maps.bone_map(target, source))
    choice = sampling.SourceChoice([1.0, 10.0, 20.0], 1.0 / 24.0, stays=True)
    arguments = bpy.context.scene, source, joints, choice
    moving_object(source)
    source.parent = carrier = rigs.empty("Carrier", (1.0, 2.0, 0.0))
    sampling.source_motion(*arguments)
    moving_object(carrier)
    with pytest.raises(retarget.RigError, match="moves as an object from frame 1 to 20, by its parent"):
        sampling.source_motion(*arguments)


def test_a_refusal_leaves_the_place_of_the_armature_object(target):
    moving_object(target)
    as_strip(target, target.animation_data.action)
    target.animation_data.use_nla = True
    bpy.context.scene.frame_set(30)
    target.animation_data.nla_tracks[0].is_solo = True
    before = tuple(target.location)
    refused("solo", target)
    assert tuple(target.location) == before


def test_a_refusal_leaves_the_scale_of_bones(target):
    action = moved(target, 20)
    as_strip(target, action)
    target.animation_data.action, target.animation_data.action_influence = action, 0.5
    rigs.update()
    refused("set it to 1", target)
    assert target.animation_data.action is action
    assert target.pose.bones["shin.R"].scale[0] == pytest.approx(1.7)


def test_a_strip_that_is_tweaked_is_said(target):
    track, strip = as_strip(target, moved(target, 1))
    track.select = strip.select = True
    target.animation_data.nla_tracks.active = track
    target.animation_data.use_tweak_mode = True
    refused("leave tweak mode", target)


def test_a_source_of_strips_plays_as_long_as_they_do(source, target, clean):
    """The scene goes on long after them: what stands still there is no motion of the source."""
    as_strip(source, source.animation_data.action)
    bpy.context.scene.frame_end = 250
    run(target)
    assert target.animation_data.action.name.startswith(f"{target.name} {source.name}")
    assert target.animation_data.action.frame_range[:] == (1.0, 49.0)
    np.testing.assert_allclose(played(target, BONES, FRAMES), clean, atol=1e-3)


@pytest.mark.parametrize("how", ["tweak above", "samples", "manual"])
def test_a_source_plays_as_long_as_anything_moves_it(channels, source, target, how):
    """A key of a layer above leaves the strip below its length; samples have one too, or a range by hand."""
    action, last = source.animation_data.action, 49
    curves = list(channels.fcurves_of(source))
    bpy.context.scene.frame_end = 250
    if how == "tweak above":
        as_strip(source, action)
        source.animation_data.action = bpy.data.actions.new("Tweak")
        source.pose.bones["head"].keyframe_insert("rotation_quaternion", frame=1)
    elif how == "samples":
        for curve in curves:
            curve.convert_to_samples(1, 50)
    else:
        action.use_frame_range, last = True, 25
        action.frame_start, action.frame_end = 1, last
    run(target)
    assert target.animation_data.action.frame_range[:] == (1.0, last)


def test_strips_that_the_action_replaces_do_not_make_a_source_longer(source, target):
    """A strip of the same bones goes on after it."""
    action = source.animation_data.action
    _, strip = as_strip(source, action)
    strip.frame_start, strip.frame_end = 101, 149
    source.animation_data.action = action
    run(target)
    assert target.animation_data.action.frame_range[:] == (1.0, 49.0)


@pytest.mark.parametrize("muted", ["track", "strip", "curves"])
def test_a_source_that_plays_nothing_is_said(channels, carried_over, retarget, source, target, muted):
    if muted == "curves":
        for curve in channels.fcurves_of(source):
            curve.mute = True
    else:
        track, strip = as_strip(source, source.animation_data.action)
        (track if muted == "track" else strip).mute = True
    done = carried_over(source, target)
    assert retarget.warnings(done)[0] == retarget.STILL


def test_a_source_that_moves_is_not_said_to_stand_still(carried_over, retarget, source, target):
    done = carried_over(source, target)
    assert retarget.STILL not in retarget.warnings(done)


@pytest.mark.parametrize("name", ["feet", "scale", "in_place", "reference_frame", "hand_space"])
def test_settings_of_a_whole_motion_take_no_keys(ext, name):
    """They would count for nothing, silently."""
    rig = rigs.armature(rigs.biped(), "Figure")
    with pytest.raises(TypeError, match="not animatable"):
        rig.keyframe_insert(f"ccd_rig.retarget.{name}", frame=1)


def test_where_time_is_remapped_both_play_the_same_at_the_same_frames(source, target):
    """At 200 for 100, a key of frame 24 plays at frame 12."""
    bpy.context.scene.render.frame_map_old, bpy.context.scene.render.frame_map_new = 200, 100
    run(target)
    assert target.animation_data.action.frame_range[:] == pytest.approx((2.0, 48.0), abs=2.0)
    frames = range(2, 24, 3)
    scale = legs(target, "thigh.L", "shin.L", "foot.L") / legs(source, "thigh.L", "shin.L", "foot.L")
    own, ours = played(source, ("hips",), frames)[:, 0], played(target, ("spine",), frames)[:, 0]
    np.testing.assert_allclose(np.diff(ours[:, 1]), scale * np.diff(own[:, 1]), atol=5e-3)


def test_an_armature_without_a_size_is_refused(target):
    target.scale = (0.0, 0.0, 0.0)
    rigs.update()
    refused("has no size or is nowhere: clear its transform", target)


@pytest.mark.parametrize("what", ["pose", "constraint"])
def test_a_turned_bone_between_two_that_follow_is_made_up_for(source, target, what):
    """A thigh in two pieces, the second of which is turned; a constraint makes it a rig of controls."""
    plain, piece = (rigs.armature(rigs.biped(), name) for name in ("Plain", "Piece"))
    with rigs.edit_bones(piece) as bones:
        shin, thigh = bones["shin.L"], bones["thigh.L"]
        twist = bones.new("MCH-between.L")
        twist.head, twist.tail, twist.parent = shin.head - (shin.tail - shin.head) * 0.1, shin.head, thigh
        twist.use_deform, shin.use_connect, shin.parent = False, False, twist
    for rig in (plain, piece):
        free = rig.pose.bones["head"].constraints.new("LIMIT_ROTATION")
        free.owner_space = "LOCAL"
        rig.ccd_rig.retarget.source = source
    between = piece.pose.bones["MCH-between.L"]
    if what == "pose":
        between.rotation_mode, between.rotation_euler = "XYZ", (0.0, 0.4, 0.0)
    else:
        limit = between.constraints.new("LIMIT_ROTATION")
        limit.use_limit_y, limit.min_y, limit.max_y, limit.owner_space = True, 0.4, 0.4, "LOCAL"
    found = []
    for rig in (plain, piece):
        run(rig)
        found.append(turns(rig, ("thigh.L", "shin.L", "foot.L")))
    np.testing.assert_allclose(np.abs((found[0] * found[1]).sum(axis=-1)), 1.0, atol=1e-5)


def controlled(source):
    """A figure of the source's size, with a root above the hips; a constraint makes it a rig of controls."""
    rig = walks.figure()
    rig.name = "Controlled"
    limit = rig.pose.bones["toe.L"].constraints.new("LIMIT_ROTATION")
    limit.owner_space = "LOCAL"
    rig.ccd_rig.retarget.source = source
    return rig


def moved_root(rig, frame):
    """The root keyed to move, turn and grow, and the spine to be shifted; shown at a frame."""
    for at, value in ((1, 0.0), (49, 2.0)):
        root, spine = rig.pose.bones["root"], rig.pose.bones["spine"]
        root.location = (value, 0.0, 0.3 * value)
        root.rotation_quaternion = (1.0, 0.2 * value, 0.0, 0.3 * value)
        root.scale = (1.0 + 0.2 * value,) * 3
        for channel in ("location", "rotation_quaternion", "scale"):
            root.keyframe_insert(channel, frame=at)
        spine.rotation_quaternion = (1.0, value, 0.0, 0.0)
        spine.keyframe_insert("rotation_quaternion", frame=at)
    bpy.context.scene.frame_set(frame)


SAME = ("hips", "head", "foot.L", "foot.R", "toe.L")


@pytest.mark.parametrize("where", ["action", "strip"])
@pytest.mark.parametrize("frame", [1, 30])
def test_a_root_of_controls_that_was_keyed_has_no_part_in_it(source, frame, where):
    """A figure like the source goes where the source goes, also where one frame is shown."""
    rig = controlled(source)
    moved_root(rig, frame)
    if where == "strip":
        as_strip(rig, rig.animation_data.action)
    else:
        rigs.activate(rig)
        assert bpy.ops.ccd_rig.retarget_preview() == {"FINISHED"}
        rigs.update()
        shown = [(rig.matrix_world @ rig.pose.bones[name].matrix).translation[:] for name in SAME]
        np.testing.assert_allclose(shown, played(source, SAME, [frame])[0], atol=3e-3)
    run(rig)
    np.testing.assert_allclose(played(rig, SAME, FRAMES), played(source, SAME, FRAMES), atol=3e-3)


def test_a_shifted_bone_of_controls_is_put_back(source):
    """Thighs that hang free stand beside the hips by hand."""
    rig = controlled(source)
    with rigs.edit_bones(rig) as bones:
        bones["thigh.L"].use_connect = False
    rig.pose.bones["thigh.L"].location = (0.1, 0.0, 0.2)
    run(rig)
    np.testing.assert_allclose(played(rig, SAME, FRAMES), played(source, SAME, FRAMES), atol=3e-3)


@pytest.mark.parametrize("chain", [0, 2])
def test_ik_that_turns_bones_of_the_motion_is_refused(source, chain):
    """Its result would take the place of the keys of thigh and shin."""
    rig = controlled(source)
    ik = rig.pose.bones["shin.L"].constraints.new("IK")
    ik.target, ik.chain_count = rigs.empty("Goal"), chain
    refused("'shin.L': Blender's constraint 'IK' turns bone '.*' on top of the solved pose: mute it", rig)
    ik.mute = True
    run(rig)


def limit_knee(bone):
    limit = bone.constraints.new("LIMIT_ROTATION")
    limit.use_limit_x, limit.min_x, limit.max_x, limit.owner_space = True, -3.0, 0.5, "LOCAL"


def copy_rotation(bone):
    copied = bone.constraints.new("COPY_ROTATION")
    copied.target = rigs.empty("Other")


@pytest.mark.parametrize(("name", "add"), [("shin.L", limit_knee), ("thigh.R", copy_rotation)])
def test_a_constraint_that_turns_a_bone_after_its_keys_is_named(carried_over, retarget, source, name, add):
    """By how much: what plays beside a figure without it."""
    plain, rig = controlled(source), controlled(source)
    run(plain)
    add(rig.pose.bones[name])
    done = carried_over(source, rig)
    apart = []
    for frame in range(1, 50):
        ours, theirs = (shown(each, frame).pose.bones[name] for each in (rig, plain))
        apart.append(angle(*(each.parent.matrix.inverted() @ each.matrix for each in (ours, theirs))))
    (turned,) = done.turned
    assert turned.bone == name
    assert turned.angle == pytest.approx(max(apart), abs=0.01) and turned.angle > 0.1
    said = f"'{name}': Blender's constraint '{rig.pose.bones[name].constraints[0].name}' turns it"
    assert said in retarget.warnings(done)[0] and said in retarget.lines(done)[1]


@pytest.mark.parametrize("name", ["thigh.L", "hips"])
def test_a_constraint_that_carries_a_bone_below_its_keys_is_made_up_for(carried_over, source, name):
    """As a parent does: keys count in its space."""
    rig, carrier = controlled(source), rigs.empty("Carrier", (0.3, 0.1, 0.2))
    carrier.rotation_euler = (0.2, 0.5, -0.4)
    rig.pose.bones[name].constraints.new("CHILD_OF").target = carrier
    rigs.update()
    done = carried_over(source, rig)
    assert not done.turned


def test_strips_before_the_new_action_are_not_hidden(source):
    """A remedy that exists, before the work."""
    rig = controlled(source)
    moved_root(rig, 1)
    _, strip = as_strip(rig, rig.animation_data.action)
    strip.frame_end, strip.frame_start = -100, -148
    rigs.update()
    refused("would hide its NLA strips at frames before or after it: mute their tracks", rig)
    rig.animation_data.nla_tracks[0].mute = True
    run(rig)


def test_the_report_measures_what_plays(carried_over, retarget, source):
    """A constraint holds a knee straight, whatever its keys."""
    rig = controlled(source)
    limit = rig.pose.bones["shin.L"].constraints.new("LIMIT_ROTATION")
    limit.use_limit_x = limit.use_limit_y = limit.use_limit_z = True
    limit.owner_space = "LOCAL"
    done = carried_over(source, rig)
    ways = [np.array(played(each, ("thigh.L", "foot.L"))) for each in (rig, source)]
    lines = [(way[:, 1] - way[:, 0]) for way in ways]
    length = legs(source, "thigh.L", "shin.L", "foot.L")
    off = np.linalg.norm(lines[0] - lines[1], axis=-1).max() / length
    assert 0.02 < done.measures.errors["left leg"] < off
    assert any(words.startswith("left leg: ") for words in retarget.warnings(done))
