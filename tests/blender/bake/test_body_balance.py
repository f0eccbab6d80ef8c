"""A body that helps keeps its balance."""

from __future__ import annotations

from itertools import pairwise

import bpy
import numpy as np
import pytest
from helped import FEET, FRAMES, SOLVE, key_way, missed, shift
from helped import figure as reaching_figure
from mathutils import Vector
from operator_calls import bake
from playing import bends, in_world, largest_turn

ENDS = (FRAMES[0], FRAMES[-1])

FAR = {"forward": (0.12, -0.85, 1.38), "down": (0.12, -0.65, 0.85), "side": (1.0, 0.0, 1.3)}


def figure(way, plants):
    """A human whose left hand reaches far, and the hand's constraint."""
    return reaching_figure(FAR[way], (0.4, -0.3, 1.3), plant=plants)


def out(pose, rig):
    """Metres by which the centre of mass of chains is outside feet, along X and Y."""
    tips = [rig.pose.bones[row.tip] for row in rig.ccd_rig.constraints]
    lengths = {bone.name: bone.bone.length for tip in tips for bone in (tip, *tip.parent_recursive)}
    toes = [foot.replace("foot", "toe") for foot in FEET]

    def ends(name):
        return pose[name].translation, pose[name] @ Vector((0.0, rig.data.bones[name].length, 0.0))

    centre = sum((length * sum(ends(name), Vector()) / 2.0 for name, length in lengths.items()), Vector())
    centre /= sum(lengths.values())
    corners = np.array([place[:2] for name in (*FEET, *toes) for place in ends(name)])
    low, high = corners.min(axis=0), corners.max(axis=0)
    return float(np.maximum(np.maximum(low - centre[:2], centre[:2] - high), 0.0).max())


@pytest.mark.parametrize("plants", [False, True])
@pytest.mark.parametrize("way", FAR)
def test_the_centre_of_mass_stays_over_the_feet(ext, monkeypatch, way, plants):
    rig, row = figure(way, plants)
    with monkeypatch.context() as unbalanced:
        unbalanced.setattr(ext.module("ccd_rig.blender.bake.group_solving"), "_balanced", lambda *_: None)
        bake(*ENDS)
    before = max(out(in_world(rig, frame), rig) for frame in FRAMES)
    assert before > 0.02
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
    bake(*ENDS)
    poses = [in_world(rig, frame) for frame in FRAMES]
    assert max(out(pose, rig) for pose in poses) < 2e-3
    # To the side no body in balance reaches as far.
    assert missed(rig, row, FRAMES[-1:]) < (0.35 if way == "side" else SOLVE)
    assert max(shift(poses[0], pose, *FEET) for pose in poses) < SOLVE
    assert largest_turn(poses, ("spine", "thigh.L", "shin.R", "spine.002")) < 8.0


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
        poses,
        poses,
        poses,
    )
    assert balance.weights[0].tolist() == [1.0, 1.0]
    assert balance.weights[-1].tolist() == [0.0, 1.0]
    assert np.abs(np.diff(balance.weights[:, 0])).max() < 0.2
    nearest = [support.nearest(Vector((1.0, 0.1, 0.0))).x for support in balance.supports]
    assert nearest[0] > 0.15
    assert np.abs(np.diff(nearest)).max() < 0.1


def test_the_body_does_not_jump_where_a_target_gets_out_of_its_reach(ext, monkeypatch):
    """A pull without a largest force stretches it in a few frames."""
    largest = {}
    springs = ext.module("ccd_rig.solvers.springs").Springs
    for is_sprung in (True, False):
        bpy.ops.wm.read_homefile(use_empty=True)
        if not is_sprung:
            monkeypatch.setattr(springs, "eased", lambda _, _poses, targets, *_others: list(targets))
        rig, row = figure("forward", plants=False)
        key_way(row, (0.4, -0.3, 1.3), (0.0, -2.2, 1.33))
        bake(*ENDS)
        poses = [in_world(rig, frame) for frame in FRAMES]
        assert max(out(pose, rig) for pose in poses) < 2e-3
        largest[is_sprung] = largest_turn(poses)
        assert not is_sprung or largest_turn(poses, ["thigh.L"]) < 12.0
        if is_sprung:
            for side in (".L", ".R"):
                assert min(bends(rig, f"thigh{side}", f"shin{side}", FRAMES)) > 0.0
            assert sum(largest_turn(pair) for pair in pairwise(poses)) < 150.0
    assert largest[True] < 19.0, largest
    assert largest[False] > 1.5 * largest[True], largest
