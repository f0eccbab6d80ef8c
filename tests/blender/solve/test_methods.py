"""Two bones at once or at the tip, and target triangles, as rows of the list."""

from __future__ import annotations

import math
import random

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion
from playing import play, target_in_world

SOLVE = 1e-4  # [m] the solver's own tolerance
PLAYED = 2e-4  # [m] beside it, float32 bones end to end, evaluated by Blender


def limb(count, method, length=0, places=((1, (0.4, 0.2, 1.0)), (20, (0.8, 0.3, 0.6))), **fields):
    """A chain of `count` bones of half a metre, bent a little, and a target that moves on a line."""
    rig = rigs.chain(count, 0.5)
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion((1, 0, 0), 0.2)
    target = rigs.keyed(rigs.empty("Target"), dict(places))
    rigs.reach(rig, f"bone_{count - 1}", target, "Hand", chain_length=length, method=method, **fields)
    rigs.update()
    return rig


def tails(rig, frames):
    """(F, 2, 3) where the last bone ends, world, and its target, as Blender plays them."""
    row, found = rig.ccd_rig.constraints[0], []
    for _, seen, _ in play(rig, frames):
        end = seen.matrix_world @ seen.pose.bones[row.tip].tail
        found.append((end, target_in_world(row).translation.copy()))
    return np.array(found)


REACHING = [("TWO_BONE_TIP", 5), ("TWO_BONE", 2), ("TRIANGLE", 2), ("TRIANGLE", 5)]


@pytest.mark.parametrize(("method", "count"), REACHING)
def test_every_method_reaches(bake, method, count):
    size = 0.15 * count
    rig = limb(count, method, places=((1, (size, 0.1, 2.0 * size)), (20, (1.5 * size, 0.3 * size, size))))
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert report.unsolved_count() == 0, report.summary()
    ends = tails(rig, range(1, 21))
    assert np.linalg.norm(ends[:, 0] - ends[:, 1], axis=-1).max() < PLAYED


@pytest.mark.parametrize("method", ["TWO_BONE_TIP", "TWO_BONE"])
def test_bones_further_down_stay_still(bake, method):
    """Where the last two reach the target alone, the others do not move at all."""
    rig = limb(5, method, places=((1, (0.0, -0.6, 2.0)), (20, (0.1, -0.7, 1.9))))
    before = [bone.rotation_quaternion.copy() for bone in rig.pose.bones]
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20, start=bake.Start.POSE))
    assert report.unsolved_count() == 0, report.summary()
    bpy.context.scene.frame_set(20)
    pairs = zip(rig.pose.bones, before, strict=True)
    turned = [bone.rotation_quaternion.rotation_difference(old).angle for bone, old in pairs]
    assert max(turned[:3]) < 1e-6
    assert max(turned[3:]) > 0.1


def test_soft_eases_into_straight(bake):
    """Ten per cent of the length before the end the hand starts to stay behind, and the limb never snaps."""
    places = ((1, (0.0, 0.3, 0.6)), (40, (0.0, 0.8, 1.2)))
    turns = {}
    for soft in (0.0, 0.1):
        rig = limb(2, "TWO_BONE", places=places, soft=soft)
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 40))
        ends = tails(rig, range(1, 41))
        reach = np.linalg.norm(ends[:, 0], axis=-1)
        wanted = np.linalg.norm(ends[:, 1], axis=-1)
        assert (reach <= wanted + PLAYED).all()
        near = wanted < (1.0 - soft) * 1.0
        assert np.abs(reach - wanted)[near].max() < PLAYED
        angles = []
        for frame in range(1, 41):
            bpy.context.scene.frame_set(frame)
            angles.append(rig.pose.bones["bone_1"].rotation_quaternion.angle)
        turns[soft] = np.abs(np.diff(angles)).max()
        bpy.ops.wm.read_homefile(use_empty=True)
    assert turns[0.1] < 0.7 * turns[0.0]


@pytest.mark.parametrize("method", ["TWO_BONE_TIP", "TWO_BONE", "TRIANGLE"])
def test_limits_hold(ext, bake, method):
    rig = limb(4, method, places=((1, (0.9, 0.2, 0.3)), (20, (-0.8, 0.3, -0.4))))
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind = "CONE"
        bone.ccd_rig.limit.cone_radius = 0.6
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    limits, joints = ext.module("ccd_rig.limits.shapes"), ext.module("ccd_rig.blender.properties.joints")
    settings = joints.joint_settings(rig, rig.pose.bones.keys())
    for frame in range(1, 21):
        bpy.context.scene.frame_set(frame)
        for bone in rig.pose.bones:
            assert limits.contains(settings[bone.name]["limit"], bone.rotation_quaternion, 1e-4)


def test_two_bones_bend_to_their_pole(bake):
    pole = rigs.empty("Pole", (2.0, 0.5, 0.5))
    rig = limb(2, "TWO_BONE", pole_target=pole, places=((1, (0.0, 0.1, 0.7)), (20, (0.0, 0.2, 0.6))))
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20))
    assert report.unsolved_count() == 0, report.summary()
    bpy.context.scene.frame_set(20)
    rigs.update()
    assert rig.pose.bones["bone_1"].head.x > 0.1


def _stiff(rig):
    for bone in list(rig.pose.bones)[:2]:
        bone.lock_rotation = (True, True, True)


def _other(rig):
    rigs.reach(rig, "bone_1", rigs.empty("Elsewhere"), "Other")


BAD = {
    "no two bones": ("TWO_BONE", _stiff, {}, "has 1 bones that can turn, but 2"),
    "its head": ("TWO_BONE", None, {"use_tail": False}, "switch on Position and Use Tail"),
    "the head of two bones": ("TWO_BONE_TIP", None, {"use_tail": False}, "switch on Position and Use Tail"),
    "turned": ("TRIANGLE", None, {"rotation": "ORIENTATION"}, "set Rotation to Free"),
    "a window": ("TRIANGLE", None, {"max_extension": 0.5}, "no reach window"),
    "shared": ("TRIANGLE", _other, {}, "'Other' turns bone 'bone_0' too"),
    "soft": ("TWO_BONE", None, {"soft": math.nan}, "Softness is nan"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_refused(bake, errors, case):
    method, spoil, fields, message = BAD[case]
    rig = limb(3, method, **fields)
    if spoil is not None:
        spoil(rig)
    rigs.update()
    actions = set(bpy.data.actions)
    with pytest.raises(errors.CCDRigError, match=message):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert set(bpy.data.actions) == actions


def test_what_is_not_used_is_said(checks):
    rig = limb(3, "TRIANGLE")
    rig.pose.bones["bone_1"].ccd_rig.stiffness = 0.5
    words = [problem.message for problem in checks.problems(rig, bpy.context.scene)]
    assert any("does without Stiffness of bone 'bone_1'" in each for each in words)


def test_bones_that_two_constraints_turn_are_named_in_little_work(ext, monkeypatch):
    """Expected from the chains pair by pair; the chain of each constraint is looked up a few times alone."""
    checks, joints = ext.module("ccd_rig.blender.checks"), ext.module("ccd_rig.skeleton.joints")
    kinds = ext.module("ccd_rig.blender.properties.constraint_kinds").KINDS
    value = ext.module("ccd_rig.blender.properties.constraint_values").Constraint
    rng, bones, rows, chains = random.Random(5), [], [], []
    for k in range(60):
        above = rng.randrange(-1, k)
        bones.append(joints.Joint(f"bone_{k}", above, (0.0, 1.0, 0.0), (1.0, 0.0, 0.0, 0.0), 1.0))
    skeleton = joints.Skeleton(bones)
    for k in rng.sample(range(60), 40):
        chain = skeleton.chain(f"bone_{k}", 2)
        if len(chain) == 2:
            method, kind = rng.choice(("TWO_BONE", "CCD", "TRIANGLE")), rng.choice(("REACH", "PLANT"))
            fields = {"chain_length": 2, "kind": kinds[kind], "method": method}
            rows.append(value(name=f"Row {k}", tip=f"bone_{k}", **fields))
            chains.append(set(chain))
    expected = [
        (row.name, f"'{other.name}' turns bone 'bone_{min(chain & its)}' too")
        for row, chain in zip(rows, chains, strict=True)
        for other, its in zip(rows, chains, strict=True)
        if row.method != "CCD" and other != row and chain & its and not other.kind.plants
    ]
    asked, chain_joints = [], checks.chain_joints
    monkeypatch.setattr(checks, "chain_joints", lambda *of: asked.append(of) or chain_joints(*of))
    pose = ext.module("ccd_rig.skeleton.pose").Pose.rest(skeleton)
    problems = [
        each for each in checks.method_skeleton_problems(skeleton, pose, rows) if "turns" in each.message
    ]
    assert len(expected) > 5 and len(problems) == len(expected)
    for problem, (name, words) in zip(problems, expected, strict=True):
        assert problem.where == name and words in problem.message
    assert len(asked) <= 3 * len(rows)
