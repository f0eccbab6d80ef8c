"""Feet of a retargeted walk, laid on ground that is not level."""

from __future__ import annotations

import math
from dataclasses import replace

import bipeds
import numpy as np
import pytest
from gaits import gait

from ccd_rig.errors import InvalidInput
from ccd_rig.maths import batch
from ccd_rig.motion.ground import GroundBlock, MovingGround, TriangleGround
from ccd_rig.motion.retargeting.feet import Sole, SolePart
from ccd_rig.motion.retargeting.figures import TargetFigure, turned
from ccd_rig.motion.retargeting.measures import measures
from ccd_rig.motion.retargeting.over_ground import Terrain
from ccd_rig.solvers.retarget import places_of_feet, retarget

MAP = bipeds.figure_map()
FIGURE = TargetFigure.at_rest(bipeds.skeleton())
STARTS = {"left leg": 0.0, "right leg": 0.5}
STEEPEST = math.radians(35.0)


@pytest.fixture(scope="module")
def source():
    """Three strides of a walk."""
    return gait(FIGURE, MAP, STARTS, stride=0.9, in_place=False, periods=3)


def grid(height, count=121, low=-5.0, high=3.0):
    line = np.linspace(low, high, count)
    x, y = (each.ravel() for each in np.meshgrid(line, line))
    at = np.arange(count * count).reshape(count, count)
    a, b, c, d = (each.ravel() for each in (at[:-1, :-1], at[:-1, 1:], at[1:, 1:], at[1:, :-1]))
    faces = np.concatenate((np.stack((a, b, c), 1), np.stack((a, c, d), 1)))
    return np.stack((x, y, height(x, y) + 0.0 * x), 1), faces


def on(height, count=121):
    return Terrain(TriangleGround(*grid(height, count)), 0.0, STEEPEST)


def hills(x, y):
    return 0.1 * np.sin(2.0 * y) + 0.08 * np.sin(3.0 * x)


def slope(x, y):
    return -0.25 * y + 0.1 * x


def steps(x, y):
    """As stairs whose edges are as wide as a square of the grid."""
    return 0.12 * np.floor(-y / 0.42).clip(0)


def stances(result, source, terrain):
    """Of each stance, how far the ball moves along the ground, and where heel and ball are above it."""
    heads, rotations = FIGURE.world(result.rotations, result.translations)
    for leg in MAP.legs:
        sole = Sole.of(FIGURE, leg)
        balls, feet = heads[:, FIGURE.index(leg.tip)], rotations[:, FIGURE.index(leg.end)]
        for hold in result.feet[leg.name].holds:
            if hold.part is SolePart.BALL:
                rows = np.arange(hold.first, hold.last + 1)
                still, _ = terrain.ground.carried(balls[rows[0]], int(rows[0]), rows)
                gaps = []
                for arm in (sole.under, sole.heel):
                    points = (balls + turned(feet, arm))[rows]
                    tops = points + np.array((0.0, 0.0, 0.5))
                    gaps.append(points[:, 2] - terrain.ground.below(tops, rows)[0])
                yield batch.length(balls[rows] - still, -1).max(), np.array(gaps)


def test_on_flat_faces_it_is_as_on_level_ground(source):
    level = retarget(MAP, FIGURE, source)
    flat = retarget(MAP, FIGURE, source, terrain=on(lambda x, y: 0.0))
    heads, same = (FIGURE.world(each.rotations, each.translations)[0] for each in (level, flat))
    np.testing.assert_allclose(same, heads, atol=2e-4)


@pytest.mark.parametrize("height", [hills, slope, steps])
def test_feet_that_are_down_lie_on_the_ground(source, height):
    terrain = on(height)
    result = retarget(MAP, FIGURE, source, terrain=terrain)
    measured = measures(MAP, FIGURE, source, result)
    assert measured.ground is None and measured.penetration < 2e-3 and measured.flipped == 0
    seen = list(stances(result, source, terrain))
    assert len(seen) >= 4 and max(moved for moved, _ in seen) < 5e-4
    if height is not steps:  # at an edge a heel has nothing below
        assert max(gaps.min(axis=0).max() for _, gaps in seen) < 3e-3
    hips = FIGURE.world(result.rotations, result.translations)[0][:, FIGURE.index("hips")]
    under = height(hips[:, 0], hips[:, 1])
    assert np.ptp(hips[:, 2] - under) < (0.25 if height is steps else 0.2)


def test_a_step_up_of_the_source_is_none_on_flat_ground(source):
    """A walk that hops onto a step goes on as low as it began, where the ground has none."""
    rises = 0.3 * batch.smooth_step(np.clip((np.arange(len(source.times)) - 48) / 8.0, 0.0, 1.0))
    climbing = replace(source, heads=source.heads + rises[:, None, None] * (0.0, 0.0, 1.0))
    result = retarget(MAP, FIGURE, climbing, terrain=on(lambda x, y: 0.0, count=21))
    hips = FIGURE.world(result.rotations, result.translations)[0][:, FIGURE.index("hips"), 2]
    assert hips[-1] - hips[0] == pytest.approx(0.0, abs=0.08)
    assert measures(MAP, FIGURE, climbing, result).moved < 0.25  # legs reach with little help


def test_feet_turn_to_the_slope(source):
    level, sloped = (retarget(MAP, FIGURE, source, terrain=on(each)) for each in (lambda x, y: 0.0, slope))
    normal = np.array((-0.1, 0.25, 1.0)) / math.sqrt(1.0 + 0.1**2 + 0.25**2)
    for leg in MAP.legs:
        rows = [hold.first + 4 for hold in sloped.feet[leg.name].holds if hold.part is SolePart.BALL]
        before, after = (each.feet[leg.name].feet[rows] for each in (level, sloped))
        up = np.broadcast_to((0.0, 0.0, 1.0), (len(rows), 3))
        back = turned(before * (1.0, -1.0, -1.0, -1.0), up)
        np.testing.assert_allclose(turned(after, back), np.tile(normal, (len(rows), 1)), atol=0.02)


def test_feet_that_are_down_go_along_with_ground_that_moves(source):
    vertices, faces = grid(hills)
    count = len(source.times)
    way = np.column_stack((0.1 * np.sin(0.05 * np.arange(count)), np.zeros(count), 0.002 * np.arange(count)))
    states, every = vertices + way[:, None], np.arange(len(faces))
    ground = MovingGround([GroundBlock(states[k : k + 16], faces, every) for k in range(0, count, 16)])
    terrain = Terrain(ground, 0.0, STEEPEST)
    result = retarget(MAP, FIGURE, source, terrain=terrain)
    seen = list(stances(result, source, terrain))
    assert len(seen) >= 4 and max(moved for moved, _ in seen) < 1e-3
    assert measures(MAP, FIGURE, source, result).penetration < 2e-3


def test_feet_are_where_their_places_are_told(source):
    result = retarget(MAP, FIGURE, source)
    places = places_of_feet(MAP, FIGURE, source, result.settings)
    for k, leg in enumerate(MAP.legs):
        assert batch.length((result.feet[leg.name].ankles - places[:, k])[:, :2], -1).max() < 0.2


def test_a_foot_over_nothing_is_told(source):
    vertices, faces = grid(hills)
    kept = faces[vertices[faces].mean(axis=1)[:, 1] > -1.0]
    with pytest.raises(InvalidInput, match=r"no ground is below the (left|right) leg where it stands at"):
        retarget(MAP, FIGURE, source, terrain=Terrain(TriangleGround(vertices, kept), 0.0, STEEPEST))
