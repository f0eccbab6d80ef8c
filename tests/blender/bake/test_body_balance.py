"""A body that helps keeps its balance."""

from itertools import pairwise

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Vector

SOLVE = 1e-3  # metres
FRAMES = 25
FEET = ("foot.L", "foot.R")
FAR = {"forward": (0.12, -0.85, 1.38), "down": (0.12, -0.65, 0.85), "side": (1.0, 0.0, 1.3)}


def figure(way, plants):
    """A human whose left hand reaches far, and its foot bones."""
    rig = rigs.metarig("human")
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up(plant=plants) == {"FINISHED"}
    rigs.update()
    row = rig.ccd_rig.constraints["hand.L"]
    matrix = row.target.matrix_world.copy()
    for frame, place in ((1, (0.4, -0.3, 1.3)), (FRAMES, FAR[way])):
        matrix.translation = Vector(place)
        row.target.matrix_world = matrix
        rigs.update()
        row.target.keyframe_insert("location", frame=frame)
    return rig, row


def played(rig):
    """Heads and tails of bones in the world, by frame."""
    frames = []
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
        world = evaluated.matrix_world
        bones = evaluated.pose.bones
        frames.append({b.name: (world @ b.head, world @ b.tail, world @ b.matrix) for b in bones})
    return frames


def out(pose, rig):
    """Metres by which the centre of mass of chains is outside feet, along X and Y."""
    bones = [
        bone
        for row in rig.ccd_rig.constraints
        for bone in [rig.pose.bones[row.tip], *rig.pose.bones[row.tip].parent_recursive]
    ]
    names = {bone.name: bone.bone.length for bone in bones}
    centre = sum((length * (pose[n][0] + pose[n][1]) / 2.0 for n, length in names.items()), Vector())
    centre /= sum(names.values())
    toes = [foot.replace("foot", "toe") for foot in FEET]
    ends = np.array([place[:2] for name in (*FEET, *toes) for place in pose[name][:2]])
    low, high = ends.min(axis=0), ends.max(axis=0)
    return float(np.maximum(np.maximum(low - centre[:2], centre[:2] - high), 0.0).max())


def bake(rig):
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=FRAMES) == {"FINISHED"}


@pytest.mark.parametrize("plants", [False, True])
@pytest.mark.parametrize("way", FAR)
def test_the_centre_of_mass_stays_over_the_feet(ext, monkeypatch, way, plants):
    rig, row = figure(way, plants)
    with monkeypatch.context() as unbalanced:
        unbalanced.setattr(ext.module("ccd_rig.blender.bake.group_solving"), "ROUNDS", 0)
        bake(rig)
    before = max(out(pose, rig) for pose in played(rig))
    assert before > 0.02
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
    bake(rig)
    poses = played(rig)
    assert max(out(pose, rig) for pose in poses) < (0.75 if way == "side" else 0.4) * before
    bpy.context.scene.frame_set(FRAMES)
    assert (poses[-1][row.tip][0] - row.target.matrix_world.translation).length < SOLVE
    for foot in FEET:
        assert max((pose[foot][0] - poses[0][foot][0]).length for pose in poses) < SOLVE
    for name in ("spine", "thigh.L", "shin.R", "spine.002"):
        turns = [
            a[name][2].to_quaternion().rotation_difference(b[name][2].to_quaternion())
            for a, b in pairwise(poses)
        ]
        assert np.degrees(max(min(turn.angle, 2.0 * np.pi - turn.angle) for turn in turns)) < 8.0


def test_an_end_that_is_lifted_leaves_the_support_steadily(ext):
    """A foot lifted by more than a tenth of the figure carries nothing, and none jumps on its way there."""
    module, planting = (
        ext.module(f"ccd_rig.blender.{name}") for name in ("bake.body_balance", "solve.planting")
    )
    joints, tables = (ext.module(f"ccd_rig.{name}") for name in ("skeleton.joints", "solvers.problem_tables"))
    root = joints.Joint("root", offset=Vector((0.0, 0.0, 1.0)), length=0.5)
    feet = [
        joints.Joint(name, 0, offset=Vector((side, 0.0, -1.0)), length=0.2)
        for name, side in (("left", 0.2), ("right", -0.2))
    ]
    skeleton = joints.Skeleton([root, *feet])
    heights = np.linspace(0.0, 0.3, 31)
    translations = np.zeros((31, 3, 3))
    translations[:, 1, 2] = heights
    poses = planting.JointPoses(np.tile((1.0, 0.0, 0.0, 0.0), (31, 3, 1)), translations)
    balance = module.Balance(
        skeleton,
        tables.Bones.of(skeleton),
        np.tile(np.eye(3), (31, 1, 1)),
        [(1,), (2,)],
        np.zeros((31, 2), bool),
        0,
        poses,
    )
    assert balance.weights[0].tolist() == [1.0, 1.0]
    assert balance.weights[-1].tolist() == [0.0, 1.0]
    assert np.abs(np.diff(balance.weights[:, 0])).max() < 0.2
    nearest = [support.nearest(Vector((1.0, 0.1, 0.0))).x for support in balance.supports]
    assert nearest[0] > 0.15
    assert np.abs(np.diff(nearest)).max() < 0.1


def test_legs_do_not_jump_where_a_target_gets_out_of_the_bodys_reach(ext, monkeypatch):
    """Up to the border of its reach the body would keep its balance, and lose it in a frame."""
    largest = {}
    for falls in ((0.2, 0.4), (8.0, 9.0)):
        bpy.ops.wm.read_homefile(use_empty=True)
        monkeypatch.setattr(ext.module("ccd_rig.blender.bake.body_balance"), "FALLS", falls)
        rig, row = figure("forward", plants=False)
        matrix = row.target.matrix_world.copy()
        matrix.translation = Vector((0.0, -2.2, 1.33))
        bpy.context.scene.frame_set(FRAMES)
        row.target.matrix_world = matrix
        rigs.update()
        row.target.keyframe_insert("location", frame=FRAMES)
        bake(rig)
        turns = [
            a["thigh.L"][2].to_quaternion().rotation_difference(b["thigh.L"][2].to_quaternion()).angle
            for a, b in pairwise(played(rig))
        ]
        largest[falls] = np.degrees(max(min(turn, 2.0 * np.pi - turn) for turn in turns))
    assert largest[0.2, 0.4] < 12.0, largest
    assert largest[8.0, 9.0] > 1.5 * largest[0.2, 0.4], largest
