"""Bones as joints and back: Blender's own pose matrices against forward kinematics of what was read.

Every case is a round trip: read the rig, turn the joints at random, write the rotations into the bones'
channels, let Blender evaluate, and compare heads, axes and tails with the core's forward kinematics. Where no
rigid joint moves like the bone, reading must refuse, and name it.
"""

from __future__ import annotations

import itertools
import random

import pytest
from rigs import (
    INHERIT_SCALES,
    METARIGS,
    MODES,
    B,
    armature,
    chain,
    leaves,
    metarig,
    pose_randomly,
    update,
)
from round_trips import FLOAT32, differences, round_trip, turned
from seeds import few_of

PARENT_SCALES = ((1, 1, 1), (2, 2, 2), (1, 2, 1), (-1, 1, 1), (-2, -2, -2))


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


@pytest.mark.parametrize("mode", few_of(MODES, 4))
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


@pytest.mark.parametrize("kind", few_of(METARIGS, 4))
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
