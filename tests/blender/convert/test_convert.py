"""Blender's IK and tracking taken over: the same tips after a bake, influence with its animation."""

from __future__ import annotations

import math
import random

import bpy
import numpy as np
import pytest
import rigs
from blender_ik import CLOSE, FRAMES, SPOTS, converted, ik, keyed, leg, places, played, snake
from mathutils import Quaternion, Vector
from operator_calls import fails
from rigs import B


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("use_tail", [True, False])
def test_a_bake_after_it_is_what_blender_s_ik_shows(ext, seed, use_tail):
    """Knee and ankle at every frame, with a pole and its angle."""
    rng = random.Random(seed)
    rig = leg(seed)
    target, pole = keyed("Goal", rig, *SPOTS), keyed("Pole", rig, (0.4, -1.5, 0.6), (-0.5, -1.5, 0.4))
    original = ik(
        rig,
        "shin" if use_tail else "foot",
        target,
        use_tail=use_tail,
        pole_target=pole,
        pole_angle=rng.uniform(-math.pi, math.pi),
    )
    expected = played(rig, places("thigh", "shin"))
    (row,) = converted(rig)
    assert (row.tip, row.chain_length, original.mute) == ("shin", 2, True)
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig, places("thigh", "shin")) - expected).max() < CLOSE


def test_a_chain_that_is_straight_at_rest_bends_as_it_does_now(ext):
    """Blender's IK leaves it straight unless the knee is posed; its own bend then drifts by a degree."""
    rig = rigs.armature(
        [
            B("thigh", (0, 0, 1), (0, 0, 0.5), roll=0.7),
            B("shin", (0, 0, 0.5), (0, 0, 0), "thigh", connect=True),
        ]
    )
    target, pole = keyed("Goal", rig, (0.1, -0.1, 0.3), (0.2, 0.3, 0.2)), rigs.empty("Pole", (0.5, -2.0, 0.4))
    ik(rig, "shin", target, pole_target=pole, pole_angle=1.3)
    rigs.update()
    told = ext.module("ccd_rig.blender.convert").convert(bpy.context, rig, None, 3)
    assert "straight at rest and now, so Pole Angle is 0" in told.notes[0]
    assert rig.ccd_rig.constraints[0].pole_target == pole
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    rigs.set_rotation(rig.pose.bones["shin"], Quaternion((1.0, 0.0, 0.3), 0.4))
    expected = played(rig, places("thigh", "shin"))
    converted(rig)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig, places("thigh", "shin")) - expected).max() < 0.02


def hind_leg(mode="QUATERNION", bones=3):
    """Bones that bend to and fro, as a dog's hind leg, under Blender's IK with a pole."""
    ends = [Vector(end) for end in ((0, 0, 0), (0, -0.3, 1), (0, 0.3, 1.9), (0, 0, 2.8), (0, -0.4, 3.0))]
    rig = rigs.armature(
        [
            B(f"leg_{i}", ends[i], ends[i + 1], f"leg_{i - 1}" if i else "", connect=i > 0)
            for i in range(bones)
        ]
    )
    for k, bone in enumerate(rig.pose.bones):
        bone.rotation_mode = mode
        rigs.set_rotation(bone, Quaternion((1.0, 0.2, 0.1), 0.1 * k))
    target = keyed("Goal", rig, (0.6, 0.2, 1.6), (0.9, -0.5, 1.4), (0.3, -0.9, 1.9))
    fields = {"pole_target": rigs.empty("Pole", (0.3, 5.0, 1.0)), "pole_angle": math.pi / 2.0}
    original = ik(rig, f"leg_{bones - 1}", target, bones, **fields)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    bpy.context.scene.frame_set(FRAMES[-1])
    return rig, original


@pytest.mark.parametrize("mode", ["QUATERNION", "XZY", "AXIS_ANGLE"])
def test_three_bones_with_a_pole_start_as_blenders_ik_has_them(ext, mode):
    """A pole tells them the plane alone: from rest they bent by a third of their length elsewhere."""
    rig, original = hind_leg(mode)
    see, channels = places("leg_0", "leg_1", "leg_2"), ("rotation_quaternion", "rotation_euler", "location")
    pose = [tuple(getattr(bone, name)) for bone in rig.pose.bones for name in channels]
    expected = played(rig, see)
    converted(rig)
    assert original.mute
    for command in (lambda: None, bpy.ops.ccd_rig.solve):
        command()
        assert np.abs(played(rig, see)[-1] - expected[-1]).max() < CLOSE
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    baked = played(rig, see)
    assert np.abs(baked[-1] - expected[-1]).max() < CLOSE
    assert np.linalg.norm(baked - expected, axis=-1).max() < 0.3
    rig.animation_data.action = None  # as the tooltip says: the keys of a bake stay
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    assert [tuple(getattr(bone, name)) for bone in rig.pose.bones for name in channels] == pose
    assert not any(any(bone.ccd_rig.start_rotation) for bone in rig.pose.bones)
    assert np.abs(played(rig, see) - expected).max() < 1e-5


def test_four_bones_with_a_pole_and_a_copied_rotation_start_as_blenders_ik_has_them(ext):
    """The pole leaves the three below the turned one a choice: from rest they bent otherwise."""
    rig, original = hind_leg(bones=4)
    original.use_rotation, original.orient_weight = True, 0.5
    see = places("leg_0", "leg_1", "leg_2", "leg_3")
    expected = played(rig, see)[-1]
    converted(rig)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert np.abs(played(rig, see)[-1] - expected).max() < CLOSE


def test_the_start_of_a_converted_chain_goes_with_its_constraint(ext):
    """Removed by hand, and with the default start: without keys its bones start from rest again."""
    rig, _ = hind_leg()
    converted(rig)
    assert all(any(bone.ccd_rig.start_rotation) for bone in rig.pose.bones)
    rig.ccd_rig.active_index = 0
    assert bpy.ops.ccd_rig.constraint_remove() == {"FINISHED"}
    assert not any(any(bone.ccd_rig.start_rotation) for bone in rig.pose.bones)


@pytest.mark.parametrize("how", ["keyed", "locked", "blended"])
def test_a_chain_whose_pose_is_decided_keeps_it(ext, capfd, how):
    """By keys, locks, or an influence below 1: Blender's pose is not its start."""
    rig, original = hind_leg("XYZ")
    if how == "keyed":
        rig.pose.bones["leg_1"].keyframe_insert("rotation_euler", frame=1)
    elif how == "locked":
        rig.pose.bones["leg_1"].lock_rotation[0] = True
    else:
        original.influence = 0.5
    pose = [tuple(bone.rotation_euler) for bone in rig.pose.bones]
    converted(rig)
    assert [tuple(bone.rotation_euler) for bone in rig.pose.bones] == pose
    assert not any(any(bone.ccd_rig.start_rotation) for bone in rig.pose.bones)
    assert "its pole sets the plane of the bend alone" in capfd.readouterr().out


def test_weights_and_rotation(ext):
    rig = leg()
    target = keyed("Goal", rig, (0.1, -0.1, 0.3), (0.1, 0.1, 0.25))
    original = ik(rig, "foot", target, 3, use_rotation=True, weight=0.5, orient_weight=0.2)
    (row,) = converted(rig)
    assert (row.rotation, row.use_position) == ("ORIENTATION", True)
    assert (row.weight, row.rotation_weight) == (pytest.approx(0.5), pytest.approx(0.4))
    assert bpy.ops.ccd_rig.ik_restore() == {"FINISHED"}
    original.use_location = False

    def axes(seen):
        return np.array(seen.matrix_world.to_3x3() @ seen.pose.bones["foot"].matrix.to_3x3())

    expected = played(rig, axes)
    (row,) = converted(rig)
    assert (row.use_position, row.weight) == (False, pytest.approx(0.2))
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert np.abs(played(rig, axes) - expected).max() < CLOSE


def test_influence_comes_with_its_keys_and_its_drivers(channels):
    """The keys are the same bits, modifiers too; a driver reads the same property."""
    rig = leg()
    first = ik(rig, "shin", keyed("Goal", rig, *SPOTS))
    second = ik(rig, "foot", keyed("Other", rig, *SPOTS), 1)
    for frame, value in ((1, 0.0), (6, 1.0), (12, 0.25)):
        first.influence = value
        first.keyframe_insert("influence", frame=frame)
    rig["switch"] = 0.75
    driver = second.driver_add("influence").driver
    driver.type = "AVERAGE"
    source = driver.variables.new().targets[0]
    source.id, source.data_path = rig, '["switch"]'
    curves = {c.data_path: c for c in channels.fcurves_of(rig)}
    keyed_curve = curves[first.path_from_id("influence")]
    keyed_curve.keyframe_points[1].interpolation = "CONSTANT"
    keyed_curve.modifiers.new("CYCLES").cycles_after = 3
    rows = converted(rig)
    assert [row.tip for row in rows] == ["shin", "foot"]
    curves = {c.data_path: c for c in channels.fcurves_of(rig)}
    copied, keyed_curve = (curves[e.path_from_id("influence")] for e in (rows[0], first))
    for a, b in zip(copied.keyframe_points, keyed_curve.keyframe_points, strict=True):
        assert tuple(a.co) == tuple(b.co) and a.interpolation == b.interpolation
        assert tuple(a.handle_left) == tuple(b.handle_left)
    assert copied.modifiers[0].cycles_after == 3
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        assert rows[0].influence == first.influence
        assert rows[1].influence == second.influence == 0.75


def test_a_bone_looks_where_damped_track_turns_it(ext):
    """On a moving parent, by any axis, with an influence."""
    for axis in ("TRACK_Y", "TRACK_NEGATIVE_X", "TRACK_Z"):
        bpy.ops.wm.read_homefile(use_empty=True)
        rig = leg(4)
        track = rig.pose.bones["thigh"].constraints.new("DAMPED_TRACK")
        track.target, track.track_axis = keyed("Goal", rig, (1.0, -1.0, 0.3), (-1.0, -0.5, 0.2)), axis

        def axes(seen):
            return np.array(seen.matrix_world.to_3x3() @ seen.pose.bones["thigh"].matrix.to_3x3())

        expected = played(rig, axes)
        (row,) = converted(rig)
        assert row.target.parent_bone == "hips"
        assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
        assert "12 of 12 frames reached" in rig.ccd_rig.report.words
        k = "XYZ".index(axis[-1])
        assert np.abs(played(rig, axes) - expected)[:, :, k].max() < CLOSE


def test_targets_lie_on_the_curve_of_a_spline_ik(ext):
    """The bake ends where the Spline IK had the bones, and a curve that is moved takes targets along."""
    rig, curve = snake()
    see = places(*(f"tail_{i}" for i in range(8)))
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 1
    expected = see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    rows = converted(rig, every=2)
    assert [(row.tip, row.chain_length) for row in rows] == [
        ("tail_7", 8), ("tail_5", 6), ("tail_3", 4), ("tail_1", 2)
    ]  # fmt: skip
    graph = bpy.context.evaluated_depsgraph_get()
    for row, tip in zip(rows, (7, 5, 3, 1), strict=True):
        there = row.target.evaluated_get(graph).matrix_world.translation
        assert (there - Vector(expected[2 * tip + 1])).length < 2e-3
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    found = see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    assert np.abs(np.array(found) - np.array(expected)).max() < 0.02
    before = rows[0].target.evaluated_get(graph).matrix_world.translation.copy()
    curve.location.z = 1.0
    rigs.update()
    there = rows[0].target.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world.translation
    assert (there - before - Vector((0.0, 0.0, 1.0))).length < 1e-5


def test_a_pole_beside_a_rotation_bends_as_blender_does_now(ext):
    """The line that Blender turns about goes on to the tail of the bone that is turned."""
    rig = leg(3)
    target, pole = rigs.empty("Goal"), rigs.empty("Pole", rig.matrix_world @ Vector((0.9, -1.0, 0.6)))
    target.matrix_world = rig.matrix_world @ rig.data.bones["foot"].matrix_local
    target.location += rig.matrix_world.to_3x3() @ Vector((0.1, -0.2, 0.2))
    ik(rig, "foot", target, 3, use_rotation=True, pole_target=pole, pole_angle=0.4)
    rigs.update()
    see = places("thigh", "shin")
    expected = see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    told = ext.module("ccd_rig.blender.convert").convert(bpy.context, rig, None, 3)
    assert "as now: elsewhere it may differ" in told.notes[0]
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    found = see(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    assert np.abs(np.array(found) - np.array(expected)).max() < CLOSE


@pytest.mark.parametrize("takes", [True, False])
def test_limits_of_blenders_ik_are_taken_over(ext, takes):
    """Where the bones have none here: what a user has set stays."""
    rig = leg()
    ik(rig, "shin", rigs.empty("Goal", (0.1, 0.2, 0.4)))
    thigh, shin = rig.pose.bones["thigh"], rig.pose.bones["shin"]
    for bone in (thigh, shin):
        bone.lock_ik_y = bone.lock_ik_z = True
        bone.use_ik_limit_x, bone.ik_min_x, bone.ik_max_x = True, -0.5, 1.5
    thigh.ccd_rig.limit.kind = "CONE"
    rig.pose.bones["foot"].use_ik_limit_x = True  # in no chain
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_convert(limits=takes) == {"FINISHED"}
    kinds = {bone.name: bone.ccd_rig.limit.kind for bone in rig.pose.bones}
    assert (kinds["thigh"], kinds["foot"]) == ("CONE", "NONE")
    assert kinds["shin"] == ("HINGE" if takes else "NONE")
    if takes:
        limit = shin.ccd_rig.limit
        assert (limit.hinge_lower, limit.hinge_upper) == pytest.approx((-0.5, 1.5))


def test_selected_bones_alone(channels):
    rig = leg()
    target = rigs.empty("Goal", (0.1, 0.0, 0.3))
    shin, foot = ik(rig, "shin", target), ik(rig, "foot", target, 1)
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    select = channels.select_bone
    for bone in rig.pose.bones:
        select(bone, bone.name == "foot")
    assert bpy.ops.ccd_rig.ik_convert(only_selected=True) == {"FINISHED"}
    assert (shin.mute, foot.mute) == (False, True)
    assert bpy.ops.ccd_rig.ik_convert() == {"FINISHED"}
    assert (shin.mute, len(rig.ccd_rig.constraints)) == (True, 2)
    assert not bpy.ops.ccd_rig.ik_convert.poll()
    assert bpy.ops.ccd_rig.ik_restore(only_selected=True) == {"FINISHED"}
    assert (shin.mute, foot.mute) == (True, False)
    for bone in rig.pose.bones:
        select(bone, bone.name == "thigh")
    fails(bpy.ops.ccd_rig.ik_convert, "of the selected bones is on", only_selected=True)


@pytest.mark.parametrize(("fields", "count"), [({}, 1), ({"influence": 0.0}, 2), ({"target": None}, 1)])
def test_of_two_ik_constraints_of_a_bone_the_one_that_blender_obeys_is_converted(ext, capfd, fields, count):
    rig = rigs.chain(3)
    rig.pose.bones["bone_1"].rotation_quaternion = Quaternion((1.0, 0.0, 0.0), 0.2)
    for name, place in (("First", (0.8, 0.6, 1.6)), ("Second", (-1.0, 0.5, 1.5))):
        made = rig.pose.bones["bone_2"].constraints.new("IK")
        made.name, made.target = name, rigs.empty(name, place)
    first, second = rig.pose.bones["bone_2"].constraints
    for name, value in fields.items():
        setattr(first, name, value)
    rigs.activate(rig)
    rigs.update()
    obeyed = (rig.pose.bones["bone_2"].tail).copy()
    bpy.ops.ccd_rig.ik_convert()
    assert len(rig.ccd_rig.constraints) == count
    said = capfd.readouterr().out
    assert ("'Second' of bone 'bone_2' is muted: Blender obeyed 'First' alone" in said) == (not fields)
    assert second.mute
    bpy.ops.ccd_rig.solve()
    rigs.update()
    assert (rig.pose.bones["bone_2"].tail - obeyed).length < 0.01
