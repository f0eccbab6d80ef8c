"""Figures of Set Up Figure, live: what is shown depends on where targets are, not on how they came there."""

from __future__ import annotations

from itertools import pairwise

import bpy
import creatures
import pytest
import rigs
from mathutils import Matrix, Vector
from operator_calls import set_up
from playing import in_world, target_in_world
from seeds import few_of
from shown import REACHED, SOLVED, apart, matrices
from test_live_is_solve import solved

WAYS = [Vector(way) for way in ((1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0), (0, 0, -1))]
STEPS = 6
FAR = 0.35  # of a chain's length that a target is dragged

FIGURES = {
    **{kind: lambda kind=kind: rigs.metarig(kind) for kind in ("human", "cat", "horse")},
    **{
        make.__name__: lambda make=make: rigs.armature(make())
        for make in (creatures.anchored_spider, creatures.dragon, creatures.snake, creatures.crab)
    },
}


@pytest.mark.parametrize("name", few_of(list(FIGURES), 1))
def test_a_figure_shows_the_same_on_the_way_back(ext, name):
    """Each target is dragged away and back; where it is farthest, Solve poses the figure so too."""
    rig = set_up(FIGURES[name]())
    rows = [row for row in rig.ccd_rig.constraints if row.target is not None]
    assert rows
    for k, row in enumerate(rows):
        target, base, length = row.target, row.target.location.copy(), 0.0
        bone = rig.pose.bones[row.tip]
        for _ in range(row.chain_length):
            if bone is not None:
                length, bone = length + bone.length, bone.parent
        way = WAYS[k % len(WAYS)] * FAR * length
        bpy.ops.ccd_rig.live()
        shown = []
        for step in (*range(STEPS + 1), *reversed(range(STEPS + 1))):
            target.location = base + way * step / STEPS
            shown.append(matrices(rig))
        bpy.ops.ccd_rig.live()
        assert max(apart(a, b) for a, b in zip(shown, reversed(shown), strict=True)) < SOLVED, row.name
        if k < 2:
            target.location = base + way
            rigs.update()
            assert apart(shown[STEPS], solved(rig)) < SOLVED, row.name
        target.location = base
        rigs.update()


def test_a_head_that_is_dragged_is_followed_while_the_hips_give_way(ext, live):
    """A horse's front legs ask for the hips: its head stayed behind with them by 4 times the drag."""
    rig = set_up(rigs.metarig("horse"))
    bpy.ops.ccd_rig.live()
    rows, names = rig.ccd_rig.constraints, [row.name for row in rig.ccd_rig.constraints]
    base, shown = rows["head"].target.location.copy(), []
    for step in range(1, 9):
        rows["head"].target.location = base + step * Vector((0.02, -0.02, 0.02))
        shown.append(matrices(rig))
        states = dict(zip(names, live.preview_of(rig).solved.states, strict=True))
        head = in_world(rig)["head"].translation
        assert (head - target_in_world(rows["head"]).translation).length < REACHED
    assert states["spine.001"] == states["tail.005"] == "GAVE_WAY"
    outcomes = live.preview_of(rig).outcomes
    assert {name: outcomes[names.index(name)].name for name in ("head", "spine.001", "tail.005")} == {
        "head": "MET",
        "spine.001": "GAVE_WAY",
        "tail.005": "GAVE_WAY",
    }
    assert max(apart(a, b) for a, b in pairwise(shown)) < 10.0


def dragged(name, tip, way, steps):
    """The matrices of a figure of Set Up Figure, live, with a target at steps of a way in the world."""
    rig = set_up(rigs.metarig(name))
    bpy.ops.ccd_rig.live()
    target, shown = rig.ccd_rig.constraints[tip].target, []
    base = target.matrix_world.copy()
    for step in steps:
        target.matrix_world = Matrix.Translation(step * Vector(way)) @ base
        shown.append(matrices(rig))
    return shown


def test_the_body_has_the_same_bones_whoever_asks(ext):
    """A wolf's front legs were eased no more: its shoulders went back, and a bone turned by 30 degrees."""
    shown = dragged("wolf", "spine.011", (0.0, -0.0223, 0.0), range(12, 17))
    assert max(apart(a, b) for a, b in pairwise(shown)) < 6.0


def test_a_figure_shows_the_same_after_its_set_up_is_looked_at_again(ext):
    """As it is when an object comes into the file. Live's own constraints carry nothing."""
    rig = set_up(rigs.metarig("basic_human"))
    bpy.ops.ccd_rig.live()
    rows = rig.ccd_rig.constraints
    for name, shift in (("hand.L", (0.5, -0.6, 0.6)), ("spine", (0.1, 0.0, -0.2))):
        rows[name].target.location += Vector(shift)
    before = matrices(rig)
    rigs.empty("Unrelated")
    rig.update_tag()
    assert apart(before, matrices(rig)) < SOLVED
