"""What is read of a chain, what a plan of it notices later, and how locks are held."""

from __future__ import annotations

import math
import random

import bpy
import pytest
from mathutils import Euler
from rigs import (
    EULER_MODES,
    MODES,
    B,
    armature,
    chain,
    edit_bones,
    empty,
    leaves,
    metarig,
    pose_randomly,
    random_rotation,
    update,
)
from round_trips import FLOAT32, differences, round_trip


def test_joints_are_the_chains_and_what_lies_between(bones):
    names = [
        ("root", ""),
        ("spine", "root"),
        ("neck", "spine"),
        ("head", "neck"),
        ("arm", "spine"),
        ("hand", "arm"),
    ]
    names += [("leg", "root"), ("other", "leg")]
    rig = armature([B(name, (i, 0, 0), (i, 0, 1), parent) for i, (name, parent) in enumerate(names)])
    reading = bones.read(
        rig, [("head", 1), ("hand", 2), ("root", 1)], {"spine": {"max_step": 0.1}, "arm": {"stiffness": 0.3}}
    )
    joints = {joint.name: joint for joint in reading.skeleton.joints}
    assert set(reading.bones) == {"root", "spine", "neck", "head", "arm", "hand"}
    assert reading.bones == tuple(joint.name for joint in reading.skeleton.joints)
    locked = {name for name, joint in joints.items() if joint.stiffness == 1.0}
    assert locked == {"spine", "neck"}
    assert joints["arm"].stiffness == 0.3
    parents = {
        name: reading.bones[joint.parent] if joint.parent >= 0 else "" for name, joint in joints.items()
    }
    assert parents == {name: parent for name, parent in names if name in joints}
    assert all(joint.parent < i for i, joint in enumerate(reading.skeleton.joints))


def test_chain_length_beyond_the_root_goes_to_the_root(bones):
    assert bones.read(chain(3), [("bone_2", 99)], {}).bones == ("bone_0", "bone_1", "bone_2")


def test_parent_outside_the_chain_is_evaluated_with_its_constraints(ext, bones):
    rig, target = chain(5), empty("Target", (3, 1, 2))
    rig.location = (1, 1, 1)
    constraint = rig.pose.bones["bone_1"].constraints.new("DAMPED_TRACK")
    constraint.target = target
    update()
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    for thing in (rig, evaluated):
        reading = bones.read(thing, [("bone_4", 3)], {})
        assert reading.bones == ("bone_2", "bone_3", "bone_4")
        assert differences(ext, rig, reading, reading.pose) == []
    assert round_trip(ext, bones, rig, [("bone_4", 3)]) == []


def test_evaluated_object_gives_the_animated_values(ext, bones):
    rig = chain(3)
    rig.pose.bones["bone_1"].rotation_mode = "XYZ"
    driver = rig.pose.bones["bone_1"].driver_add("rotation_euler", 0).driver
    driver.expression = "0.75"
    update()
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    reading = bones.read(evaluated, [("bone_2", 0)], {})
    assert reading.pose.rotations[1].angle == pytest.approx(0.75, abs=FLOAT32)
    assert differences(ext, rig, reading, reading.pose) == []


@pytest.mark.parametrize(
    ("mode", "channel", "value"),
    [
        ("QUATERNION", "rotation_quaternion", (3, -1, 2, 0.5)),
        ("QUATERNION", "rotation_quaternion", (0, 0, 0, 0)),
        ("QUATERNION", "rotation_quaternion", (1e-4, 0, 2e-4, 0)),
        ("AXIS_ANGLE", "rotation_axis_angle", (2, 0, 0, 0)),
        ("AXIS_ANGLE", "rotation_axis_angle", (7, 3, -4, 1)),
        ("ZXY", "rotation_euler", (9, -20, 4)),
    ],
)
def test_unusual_channel_values_are_read_as_blender_does(ext, bones, mode, channel, value):
    rig = chain(2)
    rig.pose.bones["bone_0"].rotation_mode = mode
    setattr(rig.pose.bones["bone_0"], channel, value)
    update()
    reading = bones.read(rig, [("bone_1", 0)], {})
    assert differences(ext, rig, reading, reading.pose) == []


def test_location_of_a_connected_bone_is_ignored(ext, bones):
    rig = chain(2)
    rig.pose.bones["bone_1"].location = (1, 2, 3)
    rig.pose.bones["bone_0"].location = (4, 5, 6)
    update()
    reading = bones.read(rig, [("bone_1", 0)], {})
    assert differences(ext, rig, reading, reading.pose) == []
    assert reading.pose.translations[1].length == 0.0


# --- A plan sees what changes -------------------------------------------------------------------------------


def test_plan_reads_like_a_fresh_reading_whatever_is_animated(ext, bones):
    """One plan, many frames in which everything that can be animated changes, now and then nothing."""
    rig = metarig("basic_human")
    chains = [(name, 4) for name in leaves(rig)]
    rng = random.Random(11)
    layout = bones.layout(rig, chains, {})
    for frame in range(12):
        for pose_bone in rig.pose.bones:
            if frame % 3 == 1 and rng.random() < 0.2:
                pose_bone.scale = (rng.uniform(0.5, 2.0),) * 3
            if frame % 4 == 2 and rng.random() < 0.2:
                pose_bone.rotation_mode = rng.choice(MODES)
        if frame % 5:
            pose_randomly(rig, frame, location=0.1)
        update()
        reading, fresh = layout.read(rig), bones.read(rig, chains, {})
        assert differences(ext, rig, reading, reading.pose) == []
        assert reading.bones == fresh.bones
        assert reading.pose == fresh.pose
        for joints in zip(*(each.skeleton.joints for each in (reading, fresh)), strict=True):
            assert joints[0] == joints[1]


def test_plan_keeps_its_skeleton_while_only_rotations_and_locations_change(bones):
    rig = chain(4)
    pose_randomly(rig, 1)
    layout = bones.layout(rig, [("bone_3", 0)], {})
    first = layout.read(rig)
    pose_randomly(rig, 2, location=0.3)
    second = layout.read(rig)
    assert second.skeleton is first.skeleton
    assert second.pose != first.pose


def test_plan_keeps_joints_that_parents_do_not_carry(bones):
    rig = chain(4)
    pose_randomly(rig, 1)
    layout = bones.layout(rig, [("bone_3", 2)], {})
    first = layout.read(rig)
    rig.pose.bones["bone_0"].location.x += 0.3
    update()
    second = layout.read(rig)
    assert second.pose == first.pose
    assert second.skeleton.joints[0] != first.skeleton.joints[0]
    assert second.skeleton.joints[1] is first.skeleton.joints[1]
    rig.pose.bones["bone_3"].rotation_quaternion.x += 0.1
    assert layout.read(rig).pose != first.pose


def test_plan_notices_a_removed_bone(bones, errors):
    rig = chain(3)
    layout = bones.layout(rig, [("bone_2", 0)], {})
    with edit_bones(rig) as made:
        made.remove(made["bone_2"])
    with pytest.raises(errors.RigError, match="no bone 'bone_2' in armature 'Rig'"):
        layout.read(rig)


# --- Locks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_fully_locked_bone_is_stiff_and_free_of_limits(ext, bones, mode):
    rig = chain(2)
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode, bone.lock_rotation = mode, (True, True, True)
    limit = ext.core.EulerBox("XYZ", (0, 0, 0), (1, 1, 1))
    joint = bones.read(rig, [("bone_1", 0)], {"bone_1": {"limit": limit}}).skeleton.joints[1]
    assert (joint.stiffness, joint.limit) == (1.0, None)


@pytest.mark.parametrize("mode", EULER_MODES)
def test_partly_locked_euler_bone_holds_the_locked_axes(ext, bones, modes, mode):
    limits = ext.module("ccd_rig.limits.shapes")
    rig = chain(2)
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode, bone.rotation_euler, bone.lock_rotation = (
        mode,
        (0.3, -0.2 + 2 * math.pi, 0.5),
        (True, False, True),
    )
    limit = bones.read(rig, [("bone_1", 0)], {}).skeleton.joints[1].limit
    assert limit.order == mode
    inside = Euler((0.3, 1.1, 0.5), mode).to_quaternion()
    assert limits.contains(limit, inside, FLOAT32)
    assert not limits.contains(limit, Euler((0.4, 1.1, 0.5), mode).to_quaternion(), FLOAT32)
    rng = random.Random(2)
    for _ in range(50):
        allowed = limits.clamp(limit, random_rotation(rng))
        angles = modes.channel_values(mode, [tuple(allowed)], (0.3, -0.2, 0.5))[0]
        assert angles[[0, 2]] == pytest.approx((0.3, 0.5), abs=20 * FLOAT32)


def test_a_box_in_the_order_of_the_locks_holds_the_free_axes(ext, bones):
    rig = chain(2)
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode, bone.rotation_euler, bone.lock_rotation = "YZX", (0.3, -0.2, 0.5), (True, False, True)
    settings = {"bone_1": {"limit": ext.core.EulerBox("YZX", (-1, -0.7, -1), (1, 0.6, 0.1))}}
    limit = bones.read(rig, [("bone_1", 0)], settings).skeleton.joints[1].limit
    assert limit.order == "YZX"
    assert limit.lower == pytest.approx((0.3, -0.7, 0.5), abs=FLOAT32)
    assert limit.upper == pytest.approx((0.3, 0.6, 0.5), abs=FLOAT32)


def test_locked_axis_that_is_animated_is_held_where_it_is(bones):
    rig = chain(2)
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode, bone.lock_rotation = "XYZ", (True, False, False)
    layout = bones.layout(rig, [("bone_1", 0)], {})
    for angle in (0.1, 0.7, 4.0):
        bone.rotation_euler.x = angle
        limit = layout.read(rig).skeleton.joints[1].limit
        wrapped = math.remainder(angle, 2 * math.pi)
        assert (limit.lower[0], limit.upper[0]) == pytest.approx((wrapped, wrapped), abs=FLOAT32)


def test_locks_that_cannot_be_kept_are_refused(ext, bones, errors):
    rig = chain(2)
    bone = rig.pose.bones["bone_1"]
    bone.lock_rotation = (True, False, False)
    for mode in ("QUATERNION", "AXIS_ANGLE"):
        bone.rotation_mode = mode
        with pytest.raises(
            errors.RigError, match=r"bone 'bone_1' has rotation locked on X .*Euler rotation mode"
        ):
            bones.read(rig, [("bone_1", 0)], {})
    bone.lock_rotation, bone.lock_rotation_w, bone.lock_rotations_4d = (False,) * 3, True, True
    with pytest.raises(errors.RigError, match="bone 'bone_1' has rotation locked on W"):
        bones.read(rig, [("bone_1", 0)], {})
    bone.lock_rotations_4d = False  # then W does not count
    assert bones.read(rig, [("bone_1", 0)], {}).skeleton.joints[1].stiffness == 0.0
    bone.rotation_mode, bone.lock_rotation = "XYZ", (True, False, True)
    settings = {"bone_1": {"limit": ext.core.EulerBox("ZYX", (-1, -1, -1), (1, 1, 1))}}
    with pytest.raises(errors.RigError, match="bone 'bone_1' has rotation locked on X and Z and a limit"):
        bones.read(rig, [("bone_1", 0)], settings)
    # A bone that cannot turn anyway may have any locks.
    assert (
        bones.read(rig, [("bone_1", 0)], {"bone_1": {"stiffness": 1.0}}).skeleton.joints[1].stiffness == 1.0
    )
