"""The live preview: groups whose inputs have not changed are not solved again, and all others are."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Vector
from shown import SOLVED, apart, matrices, reach, two_arms


@pytest.fixture
def arms(ext):
    return two_arms()


@pytest.fixture
def solved(ext, monkeypatch):
    """Counts of bones of the groups that were solved since it was cleared."""
    search, counts = ext.module("ccd_rig.solvers.pose_search").PoseSearch, []
    solve = search.solve

    def counted(self, *arguments, **options):
        counts.append(len(self.movable))
        return solve(self, *arguments, **options)

    monkeypatch.setattr(search, "solve", counted)
    return counts


def move(name, *shift):
    bpy.data.objects[name].location += Vector(shift)
    rigs.update()


def test_a_drag_solves_what_the_target_moves(arms, live, solved):
    bpy.ops.ccd_rig.live()
    rigs.update()
    solved.clear()
    move("Target arm_2.L", 0.0, 0.05, 0.0)
    assert solved == [3]
    solved.clear()
    move("Target spine", 0.05, 0.0, 0.0)
    assert solved.count(3) == 2 and 1 in solved


def turned_base(rig):
    rig.pose.bones["arm_1.R"].rotation_quaternion = (0.9, 0.3, 0.1, 0.0)


def turned_carrier(rig):
    rig.pose.bones["spine"].rotation_quaternion = (0.9, 0.0, 0.0, 0.4)


def scaled_object(rig):
    rig.scale = (1.0, 1.0, 1.3)


def scaled_bone(rig):
    rig.pose.bones["arm_1.R"].scale = (1.2, 1.2, 1.2)


def moved_target(rig):
    bpy.data.objects["Target arm_2.R"].location.z += 0.2


def halved(rig):
    rig.ccd_rig.constraints["arm_2.R"].influence = 0.5


def released(rig):
    rig.ccd_rig.constraints["arm_2.R"].influence = 0.0


def weighed(rig):
    rig.ccd_rig.constraints["arm_2.R"].chain_length = 2


def limited(rig):
    limit = rig.pose.bones["arm_1.R"].ccd_rig.limit
    limit.kind, limit.cone_radius = "CONE", math.radians(5.0)


def stretched(rig):
    with rigs.edit_bones(rig) as bones:
        bones["arm_2.R"].length = 1.3


CHANGES = (
    turned_base,
    turned_carrier,
    scaled_object,
    scaled_bone,
    moved_target,
    halved,
    released,
    weighed,
    limited,
    stretched,
)


@pytest.mark.parametrize("change", CHANGES, ids=[change.__name__ for change in CHANGES])
def test_what_a_group_depends_on_is_solved_again(arms, live, change):
    check_solved_again(arms, live, change)


def check_solved_again(arms, live, change):
    """Changed in the middle of a drag of the other arm: what shows is what Solve gives afresh."""
    bpy.ops.ccd_rig.live()
    for _ in range(3):
        move("Target arm_2.L", 0.0, 0.03, 0.02)
    before = matrices(arms)
    change(arms)
    move("Target arm_2.L", 0.0, 0.03, 0.02)
    live.catch_up()
    shown = matrices(arms)
    assert np.abs(shown - before).max() > 0.01
    bpy.ops.ccd_rig.live()
    bpy.ops.ccd_rig.solve()
    rigs.update()
    assert apart(shown, matrices(arms)) < SOLVED


def test_a_group_that_loses_a_constraint_is_solved_again(arms, live):
    reach(arms, "arm_1.R", (-1.5, -0.9, 0.6), chain_length=2)
    row = arms.ccd_rig.constraints["arm_1.R"]
    for frame, influence in ((1, 1.0), (2, 0.0)):
        row.influence = influence
        row.keyframe_insert("influence", frame=frame)
    bpy.context.scene.frame_set(1)
    check_solved_again(arms, live, lambda _: bpy.context.scene.frame_set(2))


def test_going_back_shows_what_was_shown(arms, live):
    bpy.ops.ccd_rig.live()
    rigs.update()
    first = matrices(arms)
    for shift in (0.2, -0.2):
        move("Target arm_2.R", 0.0, shift, 0.0)
        move("Target spine", shift, 0.0, 0.0)
    assert apart(first, matrices(arms)) < SOLVED
