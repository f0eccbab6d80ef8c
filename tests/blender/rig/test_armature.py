"""Bones as joints and back: Blender's own pose matrices against forward kinematics of what was read.

Every case is a round trip: read the rig, turn the joints at random, write the rotations into the bones'
channels, let Blender evaluate, and compare heads, axes and tails with the core's forward kinematics. Where no
rigid joint moves like the bone, reading must refuse, and name it.
"""

from __future__ import annotations

import itertools
import math
import random

import bpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mathutils import Euler, Matrix, Vector
from rigs import (
    EULER_MODES,
    INHERIT_SCALES,
    METARIGS,
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

EXACT = 1e-12
FLOAT32 = 1e-5  # of the rig's size: Blender and the core both calculate in float32

PARENT_SCALES = ((1, 1, 1), (2, 2, 2), (1, 2, 1), (-1, 1, 1), (-2, -2, -2))


@pytest.fixture
def bones(ext):
    """The module under test."""
    return ext.module("ccd_rig.blender.rig.armature")


@pytest.fixture
def errors(ext):
    return ext.module("ccd_rig.errors")


def defect(bone):
    """How far the rest matrices of a bone and its ancestors are from rotations, summed: Blender's own error.

    It is 1e-6 for most bones and up to 1e-4 for those that point near to -Y, as in Rigify's horse.
    """
    total = 0.0
    for one in (bone, *bone.parent_recursive):
        matrix = np.array(one.matrix_local.to_3x3(), dtype=float)
        total += float(np.abs(matrix @ matrix.T - np.eye(3)).max())
    return total


def differences(ext, rig, reading, pose, signed=True):
    """What differs between Blender's evaluated bones and forward kinematics, one line per bone; empty if
    nothing does.

    With `signed` off, the X and Z axes may be mirrored: negative scale does that to a matrix, but not to a
    rotation.
    """
    transforms = ext.module("ccd_rig.skeleton.kinematics").forward_kinematics(reading.skeleton, pose)
    seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
    size = max([1.0, *(t.translation.length for t in transforms)])
    found = []
    tolerances = {name: FLOAT32 + defect(rig.data.bones[name]) for name in reading.bones}
    for name, joint, transform in zip(reading.bones, reading.skeleton.joints, transforms, strict=True):
        bone = seen[name]
        tail = transform.point(Vector((0.0, joint.length, 0.0)))
        if (bone.head - transform.translation).length > tolerances[name] * size:
            found.append(f"{name}: head {bone.head} instead of {transform.translation}")
        if (bone.tail - tail).length > tolerances[name] * size:
            found.append(f"{name}: tail {bone.tail} instead of {tail}")
        axes = transform.rotation.to_matrix()
        for axis, letter in enumerate("XYZ"):
            column = bone.matrix.col[axis].to_3d().normalized()
            same = (column - axes.col[axis]).length
            if not signed and letter != "Y":
                same = min(same, (column + axes.col[axis]).length)
            if same > tolerances[name]:
                found.append(f"{name}: {letter} axis {column} instead of {axes.col[axis]}")
    return found


def turned(reading, seed):
    """The pose with every rotation that is not locked drawn anew."""
    rng = random.Random(seed)
    free = [i for i, joint in enumerate(reading.skeleton.joints) if joint.stiffness < 1.0]
    return reading.pose.with_rotations({i: random_rotation(rng) for i in free})


def round_trip(ext, bones, rig, chains, settings=None, seed=0, signed=True):
    """Read, compare, turn, write, compare; the last reading must give back what was written."""
    settings = settings or {}
    reading = bones.read(rig, chains, settings)
    found = differences(ext, rig, reading, reading.pose, signed)
    pose = turned(reading, seed)
    bones.apply(rig, reading, pose)
    update()
    found += differences(ext, rig, reading, pose, signed)
    again = bones.read(rig, chains, settings)
    for name, wanted, got in zip(reading.bones, pose.rotations, again.pose.rotations, strict=True):
        if min((wanted - got).magnitude, (wanted + got).magnitude) > FLOAT32:
            found.append(f"{name}: rotation {got} instead of {wanted}")
    return found


# --- Every combination of flags, scales and modes -----------------------------------------------------------


def expected_refusal(inherit_rotation, inherit_scale, scale):
    """Which bone ("upper", "middle", "tip") no rigid joint can stand for, or None.

    - A negative Y scale turns a bone over: its tail lies on its -Y side, and a joint points along +Y.
    - Full and Fix Shear take the parent's non-uniform scale in the parent's axes (with Inherit Rotation off,
      in the axes of its rest pose), before the bone turns: turning shears it. Aligned scales along the bone's
      own axes after the turn, Average is uniform, None takes nothing: these are rigid.
    - An Aligned bone under such a parent is rigid, but non-uniform itself, and its child ("tip") takes that
      in full.
    - A mirrored parent mirrors all bones that inherit its rotation, whatever they do with scale: Blender's
      matrix is a rotation times -1, and the bone is turned over. Without its rotation only sizes are taken,
      which are positive.
    """
    if scale[1] < 0:
        return "upper"
    if inherit_scale in ("FULL", "FIX_SHEAR") and len({abs(s) for s in scale}) > 1:
        return "middle"
    if inherit_rotation and scale[0] < 0:
        return "middle"
    if inherit_scale == "ALIGNED" and len({abs(s) for s in scale}) > 1:
        return "tip"
    return None


COMBINATIONS = tuple(
    itertools.product((True, False), INHERIT_SCALES, (True, False), (True, False), PARENT_SCALES)
)


def branches(mode):
    """One armature with a chain base, upper, middle, tip for each combination; upper is scaled, middle has
    the flags."""
    made = []
    for i, (_, _, _, connect, _) in enumerate(COMBINATIONS):
        x = 0.1 * i  # side by side; middle and tip are rolled and bent, so that no axes fall together
        made += [
            B(f"base_{i}", (x, 0, 0), (x, 0.2, 0.9), roll=0.4),
            B(f"upper_{i}", (x, 0.2, 0.9), (x + 0.3, 0.1, 1.8), f"base_{i}", 0.7, True),
            B(f"middle_{i}", (x + 0.3, 0.1, 1.8), (x - 0.2, 0.5, 2.5), f"upper_{i}", -1.1, connect),
            B(f"tip_{i}", (x + 0.1, 0.6, 2.4), (x + 0.1, 0.9, 3.1), f"middle_{i}", 2.0),
        ]
    rig = armature(made)
    for i, (inherit_rotation, inherit_scale, local_location, _, scale) in enumerate(COMBINATIONS):
        bone = rig.data.bones[f"middle_{i}"]
        bone.use_inherit_rotation, bone.inherit_scale = inherit_rotation, inherit_scale
        bone.use_local_location = local_location
        rig.pose.bones[f"upper_{i}"].scale = scale
        rig.pose.bones[f"tip_{i}"].scale = (0.7, 1.3, 1.1)  # its own scale bends nothing
        for part in ("base", "upper", "middle", "tip"):
            rig.pose.bones[f"{part}_{i}"].rotation_mode = mode
    pose_randomly(rig, 4, location=0.4)
    return rig


@pytest.mark.parametrize("mode", MODES)
def test_every_combination_is_exact_or_refused_by_name(ext, bones, errors, mode):
    rig = branches(mode)
    wrong, readings = [], []
    for i, case in enumerate(COMBINATIONS):
        inherit_rotation, inherit_scale, _, _, scale = case
        expected = expected_refusal(inherit_rotation, inherit_scale, scale)
        try:
            readings.append((case, bones.read(rig, [(f"tip_{i}", 0)], {})))
        except errors.RigError as error:
            if expected is None or f"bone '{expected}_{i}'" not in str(error):
                wrong.append(f"{case}: {error}")
        else:
            if expected is not None:
                wrong.append(f"{case}: not refused")
        if expected == "tip":  # without it the chain is rigid
            readings.append((case, bones.read(rig, [(f"middle_{i}", 0)], {})))
    poses = [reading.pose for _, reading in readings]
    for seed in (1, 2):
        for (case, reading), pose in zip(readings, poses, strict=True):
            wrong += [
                f"{case}: {line}" for line in differences(ext, rig, reading, pose, signed=case[4][0] > 0)
            ]
        poses = [turned(reading, seed) for _, reading in readings]
        for (_, reading), pose in zip(readings, poses, strict=True):
            bones.apply(rig, reading, pose)
        update()
    assert wrong == []
    # Times 4 for Local Location and Connected: all of scale 1 and 2, the four rigid modes under (1, 2, 1),
    # and under a mirrored parent those that do not inherit its rotation.
    assert len(readings) == 4 * (12 + 12 + 8 + 6)


@pytest.mark.parametrize("inherit_scale", INHERIT_SCALES)
@pytest.mark.parametrize("inherit_rotation", [True, False])
def test_chain_under_a_sheared_parent(ext, bones, errors, inherit_rotation, inherit_scale):
    """The chain's parent is itself sheared, by non-uniform scale two bones above; it lies outside the
    chain."""
    rig = armature(
        [
            B("scaled", (0, 0, 0), (0, 0.2, 0.9)),
            B("sheared", (0, 0.2, 0.9), (0.3, 0.1, 1.8), "scaled", 0.7, True),
            B("first", (0.3, 0.1, 1.8), (-0.2, 0.5, 2.5), "sheared", -1.1),
            B("second", (0.1, 0.6, 2.4), (0.1, 0.9, 3.1), "first", 2.0),
        ]
    )
    rig.pose.bones["scaled"].scale = (1, 2, 1)
    rig.data.bones["first"].inherit_scale = inherit_scale
    rig.data.bones["first"].use_inherit_rotation = inherit_rotation
    rig.data.bones["second"].inherit_scale = "AVERAGE"  # under Aligned, the first bone is non-uniform itself
    pose_randomly(rig, 5, location=0.3)
    # None (Legacy) divides each axis by its length and leaves them askew; without Inherit Rotation the
    # parent's pose matrix gives sizes only. The others make the axes square first.
    refused = inherit_scale in ("FULL", "FIX_SHEAR") or (inherit_rotation and inherit_scale == "NONE_LEGACY")
    if refused:
        with pytest.raises(
            errors.RigError, match=r"bone 'first' inherits non-uniform scale .* from 'sheared'"
        ):
            bones.read(rig, [("second", 2)], {})
    else:
        assert round_trip(ext, bones, rig, [("second", 2)]) == []


@pytest.mark.parametrize("scale", [(3, 3, 3), (1, 2, 1), (-1, 1, 1), (-2, -2, -2)])
def test_chain_under_a_scaled_parent_outside(ext, bones, errors, scale):
    rig = chain(4)
    rig.pose.bones["bone_0"].scale = scale
    pose_randomly(rig, 6)
    if len(set(scale)) == 1 and scale[0] > 0:
        assert round_trip(ext, bones, rig, [("bone_3", 3)]) == []
        return
    with pytest.raises(errors.RigError, match="bone 'bone_1'"):
        bones.read(rig, [("bone_3", 3)], {})


def test_own_scale_moves_children_and_lengthens_the_bone(ext, bones):
    rig = chain(3)
    rig.pose.bones["bone_1"].scale = (2, 2, 2)
    rig.pose.bones["bone_2"].scale = (1, 3, 1)
    pose_randomly(rig, 7)
    reading = bones.read(rig, [("bone_2", 0)], {})
    assert [joint.length for joint in reading.skeleton.joints] == pytest.approx([1.0, 2.0, 6.0], abs=FLOAT32)
    assert reading.skeleton.joints[2].offset.length == pytest.approx(2.0, abs=FLOAT32)
    assert round_trip(ext, bones, rig, [("bone_2", 0)]) == []


# --- Real rigs ----------------------------------------------------------------------------------------------


def moved(rig, kind):
    rig.location, rig.rotation_euler = (3.0, -2.0, 5.0), (0.4, -1.1, 2.0)
    rig.scale = {"moved": (1, 1, 1), "scaled": (3, 3, 3), "non-uniform": (1, 2, 0.5), "mirrored": (-1, 1, 1)}[
        kind
    ]


@pytest.mark.parametrize("kind", METARIGS)
def test_metarigs(ext, bones, kind):
    """Every leaf as a tip, every chain to the root, whatever the object's own transform is."""
    rig = metarig(kind)
    chains = [(name, 0) for name in leaves(rig)]
    for seed, transform in enumerate(("moved", "scaled", "non-uniform", "mirrored")):
        moved(rig, transform)
        pose_randomly(rig, seed, location=0.02)
        assert round_trip(ext, bones, rig, chains, seed=seed) == []
        # Each leaf alone, four bones long: what is above is evaluated by Blender.
        for name in leaves(rig):
            reading = bones.read(rig, [(name, 4)], {})
            assert differences(ext, rig, reading, reading.pose) == []


def test_metarig_with_mixed_modes_and_flags(ext, bones):
    rig = metarig("human")
    rng = random.Random(3)
    for bone in rig.data.bones:
        bone.use_inherit_rotation = rng.random() < 0.7
        bone.inherit_scale = rng.choice(INHERIT_SCALES)
        bone.use_local_location = rng.random() < 0.5
        rig.pose.bones[bone.name].rotation_mode = rng.choice(MODES)
        rig.pose.bones[bone.name].scale = (rng.uniform(0.8, 1.2),) * 3
    pose_randomly(rig, 8, location=0.02)
    assert round_trip(ext, bones, rig, [(name, 0) for name in leaves(rig)]) == []


# --- What is read -------------------------------------------------------------------------------------------


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
        for joint, other in zip(reading.skeleton.joints, fresh.skeleton.joints, strict=True):
            assert joint == other


def test_plan_keeps_its_skeleton_while_only_rotations_and_locations_change(bones):
    rig = chain(4)
    pose_randomly(rig, 1)
    layout = bones.layout(rig, [("bone_3", 0)], {})
    first = layout.read(rig)
    pose_randomly(rig, 2, location=0.3)
    second = layout.read(rig)
    assert second.skeleton is first.skeleton
    assert second.pose != first.pose


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
def test_partly_locked_euler_bone_holds_the_locked_axes(ext, bones, mode):
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
        angles = bones.channel_values(mode, [tuple(allowed)], (0.3, -0.2, 0.5))[0]
        assert angles[[0, 2]] == pytest.approx((0.3, 0.5), abs=20 * FLOAT32)


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
    settings = {"bone_1": {"limit": ext.core.EulerBox("XYZ", (-1, -1, -1), (1, 1, 1))}}
    with pytest.raises(errors.RigError, match="bone 'bone_1' has rotation locked on X and Z and a limit"):
        bones.read(rig, [("bone_1", 0)], settings)
    # A bone that cannot turn anyway may have any locks.
    assert (
        bones.read(rig, [("bone_1", 0)], {"bone_1": {"stiffness": 1.0}}).skeleton.joints[1].stiffness == 1.0
    )


# --- Refusals -----------------------------------------------------------------------------------------------


def test_bad_rigs_are_refused_in_words(bones, errors):
    rig, other = chain(3), empty("Cube")
    chains = [("bone_2", 0)]
    with pytest.raises(errors.RigError, match="object 'Cube' is not an armature"):
        bones.read(other, chains, {})
    with pytest.raises(errors.RigError, match="nothing is not an armature"):
        bones.read(None, chains, {})
    with pytest.raises(errors.RigError, match="no bone 'gone' in armature 'Rig'"):
        bones.read(rig, [("gone", 2)], {})
    with pytest.raises(errors.InvalidInput, match="chain length of 'bone_2'"):
        bones.read(rig, [("bone_2", -1)], {})
    rig.data.pose_position = "REST"
    with pytest.raises(errors.RigError, match="'Rig' is shown in Rest Position"):
        bones.read(rig, chains, {})


@pytest.mark.parametrize("scale", [(0, 0, 0), (1, 0, 1)])
def test_zero_scale_is_refused(bones, errors, scale):
    rig = chain(3)
    rig.pose.bones["bone_1"].scale = scale
    update()
    with pytest.raises(errors.RigError, match="bone 'bone_1' has zero scale"):
        bones.read(rig, [("bone_2", 0)], {})
    with pytest.raises(errors.RigError, match="bone 'bone_2' inherits zero scale from 'bone_1'"):
        bones.read(rig, [("bone_2", 1)], {})


def test_zero_length_is_refused(bones, errors):
    rig = chain(2)
    rig.data.transform(Matrix.Scale(1e-7, 4))  # Edit Mode would remove such bones, this keeps them
    update()
    with pytest.raises(errors.RigError, match="bone 'bone_0' has zero length"):
        bones.read(rig, [("bone_1", 0)], {})


@pytest.mark.parametrize(
    ("mode", "channel", "what"),
    [
        ("QUATERNION", "rotation_quaternion", "rotation"),
        ("XYZ", "rotation_euler", "rotation"),
        ("AXIS_ANGLE", "rotation_axis_angle", "rotation"),
        ("XYZ", "location", "location"),
        ("XYZ", "scale", "scale"),
    ],
)
def test_values_that_are_not_numbers_are_refused(bones, errors, mode, channel, what):
    rig = chain(2, connect=False)
    rig.pose.bones["bone_1"].rotation_mode = mode
    layout = bones.layout(rig, [("bone_1", 0)], {})
    values = list(getattr(rig.pose.bones["bone_1"], channel))
    setattr(rig.pose.bones["bone_1"], channel, [math.nan, *values[1:]])
    with pytest.raises(errors.RigError, match=f"bone 'bone_1' has a {what} that is not a number"):
        layout.read(rig)


def test_refusal_while_reading_a_plan_names_the_bone(bones, errors):
    rig = chain(3)
    layout = bones.layout(rig, [("bone_2", 0)], {})
    rig.pose.bones["bone_0"].scale = (1, 2, 1)
    with pytest.raises(
        errors.RigError, match=r"bone 'bone_1' inherits non-uniform scale \(1, 2, 1\) from 'bone_0'"
    ):
        layout.read(rig)
    rig.pose.bones["bone_0"].scale = (1, 1, 1)
    assert layout.read(rig).bones == ("bone_0", "bone_1", "bone_2")


# --- Writing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_apply_touches_only_the_named_joints(ext, bones, mode):
    rig = chain(4)
    for pose_bone in rig.pose.bones:
        pose_bone.rotation_mode = mode
    pose_randomly(rig, 3, location=0.2)

    def channels():
        kinds = ("rotation_quaternion", "rotation_euler", "rotation_axis_angle", "location", "scale")
        return {(b.name, kind): tuple(getattr(b, kind)) for b in rig.pose.bones for kind in kinds}

    before = channels()
    reading = bones.read(rig, [("bone_3", 3)], {})
    bones.apply(rig, reading, turned(reading, 1), joints=[1])
    changed = {key for key, value in channels().items() if value != before[key]}
    assert changed == {("bone_2", bones.rotation_channel(rig.pose.bones["bone_2"])[0])}


def test_apply_writes_nothing_if_a_bone_is_gone(bones, errors):
    rig = chain(3)
    reading = bones.read(rig, [("bone_2", 0)], {})
    rig.data.bones["bone_1"].name = "renamed"
    with pytest.raises(errors.RigError, match="no bone 'bone_1'"):
        bones.apply(rig, reading, turned(reading, 1))
    assert all(tuple(b.rotation_quaternion) == (1, 0, 0, 0) for b in rig.pose.bones)


def test_apply_stays_near_to_the_present_values(bones):
    rig = chain(3)
    first, second, third = rig.pose.bones
    first.rotation_mode, first.rotation_euler = "XYZ", (7.0, 0.1, -6.2)
    second.rotation_quaternion = (-1, 0, 0, 0)
    third.rotation_mode, third.rotation_axis_angle = "AXIS_ANGLE", (7.0, 0, 0, -1)
    reading = bones.read(rig, [("bone_2", 0)], {})
    bones.apply(rig, reading, reading.pose)
    assert tuple(first.rotation_euler) == pytest.approx((7.0, 0.1, -6.2), abs=FLOAT32)
    assert tuple(second.rotation_quaternion) == pytest.approx((-1, 0, 0, 0), abs=FLOAT32)
    assert tuple(third.rotation_axis_angle) == pytest.approx((7.0, 0, 0, -1), abs=FLOAT32)


# --- Channel values -----------------------------------------------------------------------------------------

numbers = st.floats(-1.0, 1.0, allow_subnormal=False)
quaternions = (
    st.tuples(numbers, numbers, numbers, numbers)
    .filter(lambda q: sum(x * x for x in q) > 1e-3)
    .map(lambda q: tuple(np.array(q) / np.linalg.norm(q)))
)
QUARTER = math.sqrt(0.5)
special = st.sampled_from(
    [
        (1, 0, 0, 0),
        (-1, 0, 0, 0),
        (0, 1, 0, 0),
        (0, 0, 1, 0),
        (0, 0, 0, -1),
        (QUARTER, 0, QUARTER, 0),
        (QUARTER, QUARTER, 0, 0),
        (QUARTER, 0, 0, -QUARTER),
        (0.5, 0.5, 0.5, 0.5),
        (0.5, -0.5, 0.5, -0.5),
    ]
)


def meaning(mode, values):
    """Channel values as a quaternion (w, x, y, z), in double precision and apart from the code under test."""
    values = np.asarray(values, dtype=float)
    if mode == "QUATERNION":
        return values / np.linalg.norm(values)
    if mode == "AXIS_ANGLE":
        axis = values[1:] / np.linalg.norm(values[1:])
        return np.array((math.cos(values[0] / 2), *(math.sin(values[0] / 2) * axis)))
    total = np.array((1.0, 0.0, 0.0, 0.0))
    for letter in mode:  # the first axis is turned about first
        half, axis = values["XYZ".index(letter)] / 2, "XYZ".index(letter)
        w, v = math.cos(half), np.eye(3)[axis] * math.sin(half)
        total = np.array(
            (w * total[0] - v @ total[1:], *(w * total[1:] + total[0] * v + np.cross(v, total[1:])))
        )
    return total


def apart(a, b):
    return min(np.linalg.norm(a - b), np.linalg.norm(a + b))


@pytest.mark.parametrize("mode", MODES)
def test_channel_values_mean_the_rotation(bones, mode):
    @given(st.lists(st.one_of(quaternions, special), min_size=1, max_size=6), st.booleans())
    def check(rotations, with_previous):
        previous = bones.channel_values(mode, [(0.5, 0.1, -0.7, 0.3)])[0] if with_previous else None
        values = bones.channel_values(mode, rotations, previous)
        assert np.isfinite(values).all()
        for rotation, value in zip(rotations, values, strict=True):
            assert apart(meaning(mode, value), np.array(rotation)) < FLOAT32

    check()


def test_euler_values_agree_with_blender(bones):
    rng = random.Random(5)
    for mode in EULER_MODES:
        for _ in range(200):
            rotation = random_rotation(rng)
            value = bones.channel_values(mode, [tuple(rotation)])[0]
            assert tuple(value) == pytest.approx(tuple(rotation.to_euler(mode)), abs=2e-4)
            assert apart(np.array(Euler(value, mode).to_quaternion()), np.array(rotation)) < FLOAT32


def steps(values):
    return np.abs(np.diff(values, axis=0)).max()


@pytest.mark.parametrize("count", [601, 617])
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("mode", MODES)
def test_three_full_turns_have_no_jump(bones, mode, axis, count):
    """About one axis for three turns: no value may step further than the rotation itself.

    That goes past half turns and, for the middle Euler axis, past gimbal lock: of 601 frames some stand
    exactly in it, of 617 none. Signs of the quaternions are random.
    """
    rng = np.random.default_rng(axis)
    angles = np.linspace(0.0, 6 * math.pi, count)
    rotations = np.zeros((count, 4))
    rotations[:, 0], rotations[:, 1 + axis] = np.cos(angles / 2), np.sin(angles / 2)
    values = bones.channel_values(mode, rotations * rng.choice((-1, 1), (count, 1)))
    assert steps(values) < 1.01 * (angles[1] - angles[0])
    # In float32, as the solver's quaternions are.
    values = bones.channel_values(mode, rotations.astype(np.float32))
    assert steps(values) < 1.05 * (angles[1] - angles[0])


@pytest.mark.parametrize("mode", MODES)
def test_values_go_on_from_the_previous_one(bones, mode):
    rng = random.Random(9)
    path = [random_rotation(rng) for _ in range(6)]
    rotations = [tuple(a.slerp(b, t / 60)) for a, b in itertools.pairwise(path) for t in range(60)]
    whole = bones.channel_values(mode, rotations)
    for cut in (1, 77, 200):
        joined = bones.channel_values(mode, rotations[cut:], whole[cut - 1])
        assert np.abs(joined - whole[cut:]).max() < 1e-9
    shifted = {"QUATERNION": whole[0] * -1.0, "AXIS_ANGLE": whole[0] * -1.0}.get(mode)
    if shifted is None:
        shifted = whole[0] + (4 * math.pi, 0.0, -2 * math.pi)
    moved_on = bones.channel_values(mode, rotations, shifted)
    assert np.abs(moved_on[0] - shifted).max() < 1e-6
    assert np.abs(np.diff(moved_on, axis=0)).max() == pytest.approx(
        np.abs(np.diff(whole, axis=0)).max(), rel=1e-6
    )


@pytest.mark.parametrize("mode", EULER_MODES)
def test_euler_values_are_no_further_than_blenders(bones, mode):
    """Frame by frame never further from the frame before than mathutils' own to_euler(mode, previous)."""
    rng = random.Random(21)
    previous = np.array((0.2, -3.0, 8.0))
    for _ in range(300):
        rotation = random_rotation(rng)
        value = bones.channel_values(mode, [tuple(rotation)], previous)[0]
        theirs = np.array(rotation.to_euler(mode, Euler(previous, mode)))
        assert np.linalg.norm(value - previous) <= np.linalg.norm(theirs - previous) + 1e-3
        previous = value


def test_axis_angle_without_rotation_keeps_the_axis(bones):
    still, turn = (1.0, 0.0, 0.0, 0.0), (math.cos(0.4), 0.0, math.sin(0.4), 0.0)
    values = bones.channel_values("AXIS_ANGLE", [still, turn, still])
    assert values == pytest.approx(np.array([(0, 0, 1, 0), (0.8, 0, 1, 0), (0, 0, 1, 0)]), abs=EXACT)
    values = bones.channel_values("AXIS_ANGLE", [still], (0.3, 0, 0, 2))
    assert values == pytest.approx(np.array([(0, 0, 0, 1)]), abs=EXACT)
    values = bones.channel_values("AXIS_ANGLE", [still, still])
    assert values == pytest.approx(np.array([(0, 0, 1, 0)] * 2), abs=EXACT)


def test_gimbal_lock_keeps_the_outer_angles(bones):
    for mode in EULER_MODES:
        i, j, k = ("XYZ".index(letter) for letter in mode)
        for quarter in (-math.pi / 2, math.pi / 2):
            wanted = np.zeros(3)
            wanted[[i, j, k]] = (0.9, quarter, 0.4)
            locked = [tuple(meaning(mode, wanted))] * 3
            assert bones.channel_values(mode, locked, wanted) == pytest.approx(
                np.array([wanted] * 3), abs=1e-9
            )
            free = bones.channel_values(mode, locked)
            assert free[:, k] == pytest.approx(0.0, abs=EXACT)  # nothing to keep: the last angle is 0


def test_bad_channel_input_is_refused(bones, errors):
    for arguments, words in (
        (("XYX", [(1, 0, 0, 0)]), "rotation mode must be one of"),
        (("XYZ", [(1, 0, 0)]), "shape"),
        (("XYZ", [(1, 0, 0, 0), (0, 0, 0, 0)]), "rotation 1 must be a unit quaternion"),
        (("XYZ", [(1, 0, 0, math.nan)]), "rotation 0 must be a unit quaternion"),
        (("XYZ", [(1, 0, 0, 0)], (1, 0, 0, 0)), "previous must be 3 values"),
    ):
        with pytest.raises(errors.InvalidInput, match=words):
            bones.channel_values(*arguments)
    assert bones.channel_values("XYZ", np.empty((0, 4))).shape == (0, 3)
