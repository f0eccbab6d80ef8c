"""Frames with planted bones solved at once: which are, and that it makes no difference."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from kept_bodies import bobbing
from mathutils import Euler, Matrix, Quaternion, Vector
from planted import (
    STILL,
    WALK,
    angle,
    assert_still,
    biped,
    constrain,
    key_influence,
    keyed_empty,
    limits_hold,
    played,
    stances,
    standing,
    walker,
)

LIKE = 2e-3  # [m] by which poses that are equally near to their goals may differ


@pytest.fixture
def motions(ext, monkeypatch):
    """Grows by each group that is solved as one motion: its constraints, and how many frames."""
    module, solved = ext.module("ccd_rig.blender.bake.group_solving"), []
    plain = module._solve_group

    def solve_group(group, batches, *rest):
        names = tuple(batches[0].constraints[c].name for c in group.members)
        solved.append((names, sum(len(batch.frames) for batch in batches)))
        return plain(group, batches, *rest)

    monkeypatch.setattr(module, "_solve_group", solve_group)
    return solved


# What is solved at once -------------------------------------------------------------------------------------


def test_each_leg_is_one_motion_below_a_kept_body(bake, motions):
    """From stance to stance and while it swings between them."""
    bake.bake(bpy.context.scene, bobbing(), bake.BakeSettings(1, 48))
    for side in "LR":
        assert (f"Plant {side}", f"Swing {side}") in [names for names, _ in motions]
        assert {count for names, count in motions if len(names) == 2 and side in names[0]} == {48}


def test_each_stance_is_solved_at_once_where_the_body_follows(bake, motions):
    bake.bake(bpy.context.scene, walker(), bake.BakeSettings(1, 72))
    assert sum(count for names, count in motions if "Hips" in names) == 72


def test_with_ccd_alone_planted_bones_are_held(bake):
    rig = walker()
    rig.ccd_rig.solver.solver = "CCD"
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 8))
    assert max(slip.played_distance for slip in report.foot_slips) < 1e-3


# It makes no difference -------------------------------------------------------------------------------------


def baked(bake, make, last, **settings):
    """(F, bones, 4, 4) as the baked rig plays."""
    rig = make()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, last, **settings))
    seen = played(rig, [bone.name for bone in rig.pose.bones], range(1, last + 1))
    bpy.ops.wm.read_homefile(use_empty=True)
    return seen


def out_of_reach():
    """The walker, whose swinging feet have targets far too high in the frames before they come down."""
    rig = walker()
    for side in "LR":
        target = bpy.data.objects[f"Foot {side}"]
        for first, _ in stances()[side]:
            if first > 1:
                target.location.z = 3.0
                target.keyframe_insert("location", index=2, frame=first - 1)
    rigs.update()
    return rig


def test_a_foot_that_missed_its_target_is_held_where_it_was(bake):
    """Its target is elsewhere."""
    rig = out_of_reach()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 72))
    missed = {
        (entry.constraint[-1], entry.frame) for entry in report.unsolved() if "Swing" in entry.constraint
    }
    firsts = [(side, first) for side in "LR" for first, _ in stances()[side] if 1 < first <= 72]
    assert any((side, first - 1) in missed for side, first in firsts)
    seen = played(rig, ["foot.L", "foot.R"], WALK)
    for side, first in firsts:
        k = "LR".index(side)
        if (side, first - 1) not in missed:
            continue
        before, here = seen[first - 2, k], seen[first - 1, k]
        assert np.linalg.norm(before[:3, 3] - here[:3, 3]) < 10 * STILL, (side, first)


# What a stretch goes on from --------------------------------------------------------------------------------


@pytest.mark.parametrize("rotation", ["NONE", "ORIENTATION"])
def test_hips_that_are_placed_or_left_to_the_legs_do_not_jump(bake, rotation):
    """Weight goes over from foot to foot while the hips sway; legs have a motion of their own below."""
    rig = standing(rotation=rotation)
    hips = bpy.data.objects["Hips"]
    hips.rotation_euler = (math.pi / 2, 0, 0)
    for frame in range(1, 62, 10):
        sway = Vector((math.sin(frame / 8), math.cos(frame / 9), math.sin(frame)))
        hips.location = Vector((0.0, 0.0, 0.84)) + 0.02 * sway
        hips.keyframe_insert("location", frame=frame)
        for side in "LR":
            bone = rig.pose.bones[f"thigh.{side}"]
            bone.rotation_quaternion = Quaternion((1, 0, 0), 0.15 * math.sin(frame / 7))
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    rows = rig.ccd_rig.constraints
    spans = {"L": [(1, 14), (25, 40)], "R": [(12, 27), (38, 60)]}
    for side in "LR":
        key_influence(rows[f"Plant {side}"], spans[side], range(1, 61))
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 60))
    seen = played(rig, ["foot.L", "foot.R", "hips"], range(1, 61))
    assert_still(seen, range(1, 61), spans)
    assert np.linalg.norm(np.diff(seen[:, :, :3, 3], axis=0), axis=-1).max() < 0.06
    assert max(angle(a, b) for k in range(3) for a, b in zip(seen[:-1, k], seen[1:, k], strict=True)) < 0.12


def test_a_leg_that_is_moved_again_goes_back_near_its_animation(bake):
    """It was let go bent, and kept that; a Reach of its foot leaves it room to go back, without a jump."""
    rig, frames = standing(rotation="ORIENTATION"), range(1, 41)
    bpy.data.objects["Hips"].rotation_euler = (math.pi / 2, 0, 0)
    rows = rig.ccd_rig.constraints
    key_influence(rows["Plant L"], [(1, 10)], frames)
    target = rigs.empty("Foot", rig.data.bones["foot.L"].head_local)
    reach = constrain(rig, "REACH", "foot.L", "Reach L", target, 3, use_tail=False)
    key_influence(reach, [(21, 40)], frames)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 40))
    assert report.unsolved_count() == 0, report.summary()
    turns = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        legs = [rig.pose.bones[f"{bone}.L"].rotation_quaternion.copy() for bone in ("thigh", "shin", "foot")]
        turns.append(legs)
    angles = np.array([[2.0 * math.acos(min(1.0, abs(q.w))) for q in legs] for legs in turns])
    assert np.abs(np.diff(angles, axis=0)).max() < 0.1
    assert np.abs(angles[10:20] - angles[9]).max() < 1e-3
    assert angles[19, 2] > 0.3  # the foot, which need not be flat any more
    assert angles[28:, 2].max() < 1e-3
    assert np.abs(angles[28:] - angles[28]).max() < 1e-2


def test_a_pose_below_a_kept_body_depends_on_no_other_frame(bake):
    """Feet are held at targets: a range baked alone has the poses of the whole shot."""

    def make():
        rig = biped()
        hips = rig.pose.bones["hips"]
        for frame, place in ((1, (0.0, -0.12, 0.0)), (20, (0.03, -0.06, 0.1)), (40, (-0.03, -0.1, 0.05))):
            hips.location = place  # along the bone is up
            hips.keyframe_insert("location", frame=frame)
        for side, x in (("L", 0.1), ("R", -0.1)):
            stone = rigs.empty(f"Stone {side}", (x, 0.02, 0.08))
            stone.rotation_euler = rig.data.bones[f"foot.{side}"].matrix_local.to_euler()
            constrain(rig, "PLANT", f"foot.{side}", f"Plant {side}", stone, 4)
        rigs.update()
        return rig

    whole = baked(bake, make, 40)
    rig = make()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(22, 34))
    assert report.unsolved_count() == report.body.moved_frames == 0
    part = played(rig, [bone.name for bone in rig.pose.bones], range(22, 35))
    assert np.abs(part[..., :3, 3] - whole[21:34, ..., :3, 3]).max() < STILL


def test_poles_and_balance_over_planted_feet(ext, bake):
    """All kinds of goals go through a batch with planted bones. The arm alone would be too short by 0.1 m."""
    rig = biped()
    frames = range(1, 31)
    for side in "LR":
        constrain(rig, "PLANT", f"foot.{side}", f"Plant {side}", chain_length=4)
    hips = keyed_empty("Hips", [(1, (0, 0, 0.86)), (30, (0.03, -0.04, 0.8))])
    constrain(rig, "REACH", "hips", "Hips", hips, 1, use_tail=False)
    hand = keyed_empty("Hand", [(1, (0.45, -0.2, 1.3)), (30, (0.45, -0.6, 1.15))])
    pole = rigs.empty("Pole", (0.4, 0.8, 1.0))
    constrain(rig, "REACH", "hand.L", "Hand", hand, 3, pole_target=pole)
    rigs.update()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 30))
    assert report.unsolved_count() == 0, report.summary()
    seen = played(rig, ["foot.L", "foot.R"], frames)
    assert_still(seen, frames, {"L": [(1, 30)], "R": [(1, 30)]})
    limits_hold(ext, rig, frames)


def test_a_method_that_poses_a_chain_by_itself(bake, motions):
    """Only its own group is solved in turn; the feet are held all the same."""
    rig = standing(rotation="ORIENTATION")
    bpy.data.objects["Hips"].rotation_euler = (math.pi / 2, 0, 0)
    hand = keyed_empty("Hand", [(1, (0.5, -0.2, 1.3)), (20, (0.4, -0.3, 1.2))])
    constrain(rig, "REACH", "hand.L", "Hand", hand, 2, method="TWO_BONE")
    rigs.update()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 8))
    assert report.unsolved_count() == 0, report.summary()
    assert all("Hand" not in names for names, _ in motions)
    seen = played(rig, ["foot.L", "foot.R"], range(1, 21))
    assert_still(seen, range(1, 21), {"L": [(1, 20)], "R": [(1, 20)]})


# Poses as arrays --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [(1, 1, 1), (2, 2, 2), (-1, 1, 1)])
def test_drift_is_counted_in_the_world(ext, scale):
    poses, targets = (ext.module(f"ccd_rig.blender.{name}") for name in ("solve.planting", "scene.targets"))
    joints = ext.module("ccd_rig.skeleton.joints")
    rest = Euler((0.3, 0.2, 0.1)).to_quaternion()
    skeleton = joints.Skeleton([joints.Joint("hips", offset=(0.1, 0.2, 1.0), rest_rotation=rest)])
    turns = [Euler((0.1 * k, -0.2 * k, 0.3)).to_quaternion() for k in range(4)]
    rotations = np.array([[turn[:]] for turn in turns])
    shifts = np.array([[(0.1 * k, 0.0, -0.1 * k)] for k in range(4)])
    found = poses.JointPoses(rotations.copy(), shifts.copy())
    worlds = [Matrix.LocRotScale((k, 1, 2), Euler((0.1, 0.2 * k, 0.3)), scale) for k in range(4)]
    drift = Matrix.LocRotScale((0.3, -0.2, 0.1), Euler((0.0, 0.0, 0.4)), None)
    bones = ext.module("ccd_rig.solvers.problem_tables").Bones.of(skeleton)
    poses.drifted(found, bones, 0, np.array(worlds), np.array(drift))
    heads, axes = bones.transforms(skeleton, *found)
    for k in range(4):
        local = Matrix.Translation((0.1, 0.2, 1.0)) @ rest.to_matrix().to_4x4()
        local = local @ Matrix.Translation(shifts[k, 0]) @ turns[k].to_matrix().to_4x4()
        wanted = worlds[k].inverted() @ drift @ worlds[k] @ local
        assert np.abs(heads[k, 0] - np.array(wanted.translation)).max() < 1e-6
        turned = Quaternion(axes[k, 0]).rotation_difference(targets.orthonormal(wanted.to_3x3()))
        assert turned.angle < 1e-5


def test_a_released_joint_returns_smoothly(ext):
    poses = ext.module("ccd_rig.blender.solve.planting")
    frames = np.arange(1.0, 13.0)
    rotations = np.zeros((12, 1, 4))
    rotations[..., 0] = 1.0
    turn = Quaternion((1, 0, 0), 0.8)
    poses.returning(rotations, frames, {0: (0.0, turn)}, [None])
    angles = 2.0 * np.arccos(np.clip(rotations[:, 0, 0], -1.0, 1.0))
    assert (np.diff(angles) <= 1e-9).all()
    assert angles[0] < 0.8
    assert angles[3] == pytest.approx(0.4)
    assert (rotations[7:, 0] == (1.0, 0.0, 0.0, 0.0)).all()


def test_the_root_bone_is_placed_where_a_foot_is_held(ext):
    poses = ext.module("ccd_rig.blender.solve.planting")
    joints = ext.module("ccd_rig.skeleton.joints")
    skeleton = joints.Skeleton(
        [
            joints.Joint("hips", offset=(0.0, 0.0, 1.0)),
            joints.Joint("thigh", parent=0, offset=(0.1, 0.0, 0.0)),
            joints.Joint("foot", parent=1, offset=(0.0, 0.0, -0.9)),
        ]
    )
    turns = [Euler((0.3 * k, 0.1, -0.2 * k)).to_quaternion()[:] for k in range(9)]
    found = poses.JointPoses(np.array(turns).reshape(3, 3, 4), np.zeros((3, 3, 3)))
    legs = found.rotations[:, 1:].copy()
    held = np.array([(0.1 * k, -0.1, 0.05) for k in range(3)])
    axes = np.array([Euler((0.0, 0.0, 0.2 * k)).to_quaternion()[:] for k in range(3)])
    bones = ext.module("ccd_rig.solvers.problem_tables").Bones.of(skeleton)
    poses.placed(found, skeleton, bones, 0, 2, (held, axes / np.linalg.norm(axes, axis=1, keepdims=True)))
    heads, rotations = bones.transforms(skeleton, *found)
    assert np.abs(heads[:, 2] - held).max() < 1e-12
    assert (np.abs((rotations[:, 2] * axes).sum(1)) > 1.0 - 1e-6).all()
    assert np.array_equal(found.rotations[:, 1:], legs)
    assert isinstance(found.pose(0).translations[0], Vector)
