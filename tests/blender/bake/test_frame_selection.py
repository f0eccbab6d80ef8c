"""Keys where something else has keys: on those frames alone, solved there, and wherever time goes."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion
from whole_file import differences, dump

PLAYED = 1e-4  # metres


@pytest.fixture
def goal(ext):
    path = {-5: 0.6, 3: 0.2, 7.5: 0.5, 12: 0.1, 90: 0.9}
    return rigs.keyed(rigs.empty("Goal"), {frame: (x, 0.3, 1.0) for frame, x in path.items()})


@pytest.fixture
def rig(goal):
    made = rigs.chain(3, 0.5)
    rigs.reach(made, "bone_2", goal, "Hand")
    rigs.update()
    return made


def key_frames(channels, rig):
    frames = {
        tuple(key.co.x for key in curve.keyframe_points)
        for curve in channels.fcurves_of(rig)
        if "rotation" in curve.data_path
    }
    assert len(frames) == 1
    return list(frames.pop())


def run(bake, rig, first=1, last=20, keys="TARGET_KEYS", **fields):
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(first, last, keys=bake.Keys[keys], **fields))


def off_at(rig, frame):
    bpy.context.scene.frame_set(math.floor(frame), subframe=frame % 1)
    graph = bpy.context.evaluated_depsgraph_get()
    seen = rig.evaluated_get(graph)
    target = rig.ccd_rig.constraints[0].target.evaluated_get(graph).matrix_world.translation
    return (seen.matrix_world @ seen.pose.bones["bone_2"].tail - target).length


def test_on_the_targets_keys_and_the_ends(bake, channels, rig):
    report = run(bake, rig)
    assert key_frames(channels, rig) == [1, 3, 7.5, 12, 20]
    assert [row.frame for row in report.entries] == [1, 3, 7.5, 12, 20]
    assert {row.status for row in report.entries} == {"CONVERGED"}
    assert all(off_at(rig, frame) < PLAYED for frame in (1, 3, 7.5, 12, 20))
    assert report.check.frames == 21
    curve = next(iter(channels.fcurves_of(rig)))
    assert {key.interpolation for key in curve.keyframe_points} == {"BEZIER"}


def test_below_zero(bake, channels, rig):
    run(bake, rig, -6, 0)
    assert key_frames(channels, rig) == [-6, -5, 0]


def test_keys_at_the_very_ends(bake, channels, rig, goal):
    goal.keyframe_insert("location", frame=19.995)
    goal.keyframe_insert("location", frame=1.004)
    run(bake, rig)
    assert key_frames(channels, rig) == [1, 3, 7.5, 12, 20]


def test_parents_poles_and_what_is_followed_count(bake, channels, rig, goal):
    parent, pole, followed = rigs.empty("Parent"), rigs.empty("Pole", (3, 3, 1)), rigs.empty("Followed")
    goal.parent = parent
    parent.keyframe_insert("rotation_euler", frame=5)
    goal.constraints.new("COPY_ROTATION").target = followed
    followed.keyframe_insert("rotation_euler", frame=15)
    rig.ccd_rig.constraints[0].pole_target = pole
    pole.keyframe_insert("location", frame=17)
    rigs.empty("Nobody's").keyframe_insert("location", frame=18)
    run(bake, rig)
    assert key_frames(channels, rig) == [1, 3, 5, 7.5, 12, 15, 17, 20]


def test_a_bone_as_target(bake, channels, rig):
    other = rigs.chain(3, 0.4, name="Other")
    for bone, frame in (("bone_0", 4), ("bone_1", 6), ("bone_2", 8)):
        other.pose.bones[bone].keyframe_insert("rotation_quaternion", frame=frame)
    other.keyframe_insert("location", frame=10)
    row = rig.ccd_rig.constraints[0]
    row.target, row.target_bone = other, "bone_1"
    run(bake, rig)
    assert key_frames(channels, rig) == [1, 4, 6, 10, 20]  # not those of a bone that hangs on it


def test_a_path_and_shape_keys(bake, channels, rig, goal):
    """The target itself has no key: what moves it are keys of a curve and of a mesh's shape."""
    goal.animation_data_clear()
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.use_path = True
    for point, x in zip((spline := curve.splines.new("POLY")).points, (0.1,), strict=True):
        point.co = (x, 0.2, 1.0, 1.0)
    spline.points.add(1)
    spline.points[1].co = (0.6, 0.3, 0.9, 1.0)
    goal.location = (0, 0, 0)
    goal.constraints.new("FOLLOW_PATH").target = rigs.link(curve, "Path")
    for frame in (2, 9):
        curve.eval_time = 5 * frame
        curve.keyframe_insert("eval_time", frame=frame)
    run(bake, rig)
    assert key_frames(channels, rig) == [1, 2, 9, 20]
    mesh = bpy.data.meshes.new("Ground")
    mesh.from_pydata([(0.3, 0, 1), (1, 0, 1), (0, 1, 1)], [], [(0, 1, 2)])
    ground = rigs.link(mesh, "Ground")
    ground.shape_key_add(name="Basis")
    ground.shape_key_add(name="Up").keyframe_insert("value", frame=6)
    goal.parent, goal.parent_type, goal.parent_vertices = ground, "VERTEX", (0, 0, 0)
    run(bake, rig)
    assert key_frames(channels, rig) == [1, 2, 6, 9, 20]
    goal.parent_type = "OBJECT"  # then its shape moves nothing
    run(bake, rig)
    assert key_frames(channels, rig) == [1, 2, 9, 20]


def strip_of(goal, channels):
    """The target's action, from frame 3 to 12, in a strip that starts at 2."""
    animation = goal.animation_data
    action, slot = animation.action, channels.slot_of(animation)
    animation.action = None
    strip = channels.strip_of(animation.nla_tracks.new(), action, slot, 3, 12)
    strip.frame_start_ui, strip.frame_end_ui = 2, 11
    return strip


def as_it_is(strip):
    return [2, 6.5, 11]


def slower(strip):
    strip.scale = 1.5
    return [2, 8.75, 15.5]


def twice(strip):
    strip.repeat = 2
    return [2, 6.5, 11, 15.5, 20]


def turned_round(strip):
    strip.use_reverse, strip.repeat = True, 1.5
    return [2, 6.5, 11, 15.5]


def trimmed(strip):
    strip.action_frame_end = 9
    return [2, 6.5]


def silent(strip):
    strip.mute = True
    return []


@pytest.mark.parametrize("how", [as_it_is, slower, twice, turned_round, trimmed, silent])
def test_targets_in_strips(bake, channels, rig, goal, errors, how):
    wanted = how(strip_of(goal, channels))
    if not wanted:
        with pytest.raises(errors.RigError, match="has keys in"):
            run(bake, rig)
        return
    run(bake, rig)
    assert key_frames(channels, rig) == pytest.approx(sorted({1, *wanted, 20}))
    # That is when the target is where its keys put it.
    for frame in wanted:
        bpy.context.scene.frame_set(math.floor(frame), subframe=frame % 1)
        assert min(abs(goal.location.x - x) for x in (0.2, 0.5, 0.1)) < 1e-4, frame


def test_a_key_holder_in_a_strip(bake, channels, rig, goal):
    strip_of(goal, channels)
    rig.ccd_rig.constraints[0].target = rigs.empty("Other", (0.4, 0.2, 1.0))
    run(bake, rig, keys="REFERENCE_KEYS", reference_object="Goal")
    assert key_frames(channels, rig) == [1, 2, 6.5, 11, 20]


def test_a_key_holder(bake, channels, rig):
    reference = rigs.empty("Beats")
    for frame in (-3, 2.25, 9, 400):
        reference.keyframe_insert("location", frame=frame)
    run(bake, rig, keys="REFERENCE_KEYS", reference_object="Beats")
    assert key_frames(channels, rig) == [1, 2.25, 9, 20]


def test_a_bone_as_key_holder(bake, channels, rig):
    rig.pose.bones["bone_0"].keyframe_insert("location", frame=4)
    rig.keyframe_insert("location", frame=6)
    run(bake, rig, keys="REFERENCE_KEYS", reference_object="Rig", reference_bone="bone_0")
    assert key_frames(channels, rig) == [1, 4, 20]


def test_muted_curves_do_not_count(bake, channels, rig, goal, errors):
    for curve in channels.fcurves_of(goal):
        curve.mute = True
    with pytest.raises(errors.RigError, match=r"No target \('Goal'\) has keys in frames 1 to 20"):
        run(bake, rig)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"keys": "TARGET_KEYS", "first": 20, "last": 40}, ["'Goal'", "frames 20 to 40"]),
        ({"keys": "REFERENCE_KEYS"}, ["no Reference Object", "choose"]),
        ({"keys": "REFERENCE_KEYS", "reference_object": "Beets"}, ["no object 'Beets'"]),
        ({"keys": "REFERENCE_KEYS", "reference_object": "Beats"}, ["'Beats' has no keys in frames 1 to 20"]),
        (
            {"keys": "REFERENCE_KEYS", "reference_object": "Beats", "reference_bone": "x"},
            ["'Beats' has no bone 'x'"],
        ),
        (
            {"keys": "REFERENCE_KEYS", "reference_object": "Rig", "reference_bone": "x"},
            ["'Rig' has no bone 'x'"],
        ),
        (
            {"keys": "REFERENCE_KEYS", "reference_object": "Rig", "reference_bone": "bone_1"},
            ["'bone_1' of 'Rig' has no keys"],
        ),
    ],
)
def test_nothing_to_go_by_is_said_and_nothing_changes(bake, errors, rig, fields, words):
    rigs.empty("Beats").keyframe_insert("location", frame=50)
    before = dump()
    with pytest.raises(errors.RigError) as caught:
        run(bake, rig, **fields)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert differences(before, dump()) == []


@pytest.mark.parametrize("keys", ["EVERY_FRAME", "SOLVED_FRAMES", "TARGET_KEYS"])
@pytest.mark.parametrize(("old", "new"), [(100, 200), (200, 100), (100, 100)])
@pytest.mark.parametrize("destination", ["NEW_ACTION", "NLA_STRIP"])
def test_remapped_time_and_other_frame_rates(bake, rig, keys, old, new, destination):
    """At a frame Blender shows the keys of another time: that is where they have to be."""
    render = bpy.context.scene.render
    render.frame_map_old, render.frame_map_new = old, new
    render.fps, render.fps_base = 30, 1.001
    for frame, angle in ((0, 0.2), (40, 0.6)):  # a base to blend with
        rig.pose.bones["bone_1"].rotation_quaternion = Quaternion((1, 0, 0), angle)
        rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=frame)
    report = run(bake, rig, keys=keys, destination=bake.Destination[destination])
    assert report.check.mismatches() == ()
    for row in report.entries:
        assert off_at(rig, row.frame) == pytest.approx(row.residual, abs=PLAYED)
        assert row.residual < PLAYED or row.status == "SLERPED"
    if keys == "TARGET_KEYS":
        found = [row.frame for row in report.entries]
        assert found == [1, *(f for f in np.array([3, 7.5, 12, 90]) * new / old if 1 < f < 20), 20]


def test_the_command_line_takes_a_key_holder_with_its_keys_alone(cli, rig, tmp_path, capfd):
    path = str(tmp_path / "shot.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    words = ["bake", path, "--frames", "1-20", "--output", str(tmp_path / "out.blend"), "--keys"]
    assert cli.main([*words, "reference"]) == 2
    assert cli.main([*words, "every", "--reference-keys", "Beats"]) == 2
    assert "--keys reference needs --reference-keys" in capfd.readouterr().err


def influence_keys(row, keys):
    for frame, value in keys:
        row.influence = value
        row.keyframe_insert("influence", frame=frame)
    rigs.update()


def test_keys_of_an_influence_count(bake, channels, rig):
    """The hand is let go until frame 10, so it is on its target from frame 12 on, not from frame 1."""
    influence_keys(rig.ccd_rig.constraints[0], ((1, 0.0), (10, 0.0), (12, 1.0), (20, 1.0)))
    report = run(bake, rig)
    assert key_frames(channels, rig) == [1, 3, 7.5, 10, 12, 20]
    assert report.check.mismatches() == ()
    assert all(off_at(rig, frame) < PLAYED for frame in (12, 20))
    assert off_at(rig, 10) > 0.1


def test_planted_feet_are_keyed_where_their_influence_is(bake, errors):
    """They have no target. Known: the frames at which a foot comes down."""
    rig = rigs.armature(rigs.biped())
    row = rigs.reach(rig, "foot.L", None, "Foot", kind="PLANT", chain_length=4)
    with pytest.raises(errors.RigError, match="no Influence has keys in frames 1 to 20: key Influence"):
        run(bake, rig)
    influence_keys(row, ((1, 0.0), (5, 1.0), (9, 0.0)))
    report = run(bake, rig)
    assert {1.0, 5.0, 9.0, 20.0} >= {entry.frame for entry in report.entries} >= {5.0}


def by_keys(rig, row):
    influence_keys(row, ((1, 0.0), (4, 0.0), (5, 1.0), (15, 1.0), (16, 0.0)))


def by_strip(rig, row):
    by_keys(rig, row)
    animation = rig.animation_data
    animation.nla_tracks.new().strips.new("Influence", 1, animation.action)
    animation.action = None


def by_driver(rig, row):
    """A property of a bone, as a switch of a rig is, drives the influence."""
    bone = rig.pose.bones[row.tip]
    for frame, value in ((1, 0.0), (4, 0.0), (5, 1.0), (15, 1.0), (16, 0.0)):
        bone["switch"] = value
        bone.keyframe_insert('["switch"]', frame=frame)
    driver = row.driver_add("influence").driver
    driver.type = "SUM"
    source = driver.variables.new().targets[0]
    source.id, source.data_path = rig, bone.path_from_id() + '["switch"]'


@pytest.mark.parametrize("way", [by_keys, by_strip, by_driver])
def test_steps_solve_where_an_influence_begins_and_ends(bake, channels, rig, goal, way):
    """Between solved frames poses are slerped; without frames 4 and 5 the hand would leave too early."""
    way(rig, rig.ccd_rig.constraints[0])
    solved = {entry.frame for entry in run(bake, rig, 1, 21, "SOLVED_FRAMES", step=10).entries}
    assert solved == {5.0, 11.0, 15.0}
    assert key_frames(channels, rig) == [1, 4, 5, 11, 15, 16, 21]
    assert all(off_at(rig, frame) < PLAYED for frame in (5, 11, 15))
