"""A cycle along a curve over the ground: feet rest, soles are on the ground, legs reach."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from itertools import pairwise

import bipeds
import numpy as np
import pytest
from gaits import gait, pose
from mathutils import Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.maths import batch
from ccd_rig.motion.ground import GroundBlock, LevelGround, MovingGround, TriangleGround
from ccd_rig.motion.retargeting.figures import SourceMotion, TargetFigure, inverse, product, turned
from ccd_rig.motion.settings import WalkSettings
from ccd_rig.motion.walking.cycle import (
    cycle_of,
    placed,
    sampled,
    standing_of,
    standing_on_average,
    with_stride,
)
from ccd_rig.motion.walking.folding import fold
from ccd_rig.motion.walking.measures import walk_measures
from ccd_rig.motion.walking.path import fitted_strides, way_along
from ccd_rig.motion.walking.timeline import timeline
from ccd_rig.solvers.stepping import result_of
from ccd_rig.solvers.walk import walk_work

FIGURE = TargetFigure.at_rest(bipeds.skeleton())
MAP = bipeds.figure_map()
STARTS = {"left leg": 0.0, "right leg": 0.5}
SETTINGS = WalkSettings()
STEP = 1.0 / 30.0
SOLVE = 5e-5
AHEAD = np.array(((0.0, 0.0, 0.0), (0.0, -5.0, 0.0)))


@pytest.fixture(scope="module")
def cycle():
    return cycle_of(MAP, FIGURE, gait(FIGURE, MAP, STARTS), SETTINGS.thresholds)


def hoofed(toe, tail):
    """The biped with long feet whose toes start and end at these places (y, z), as a figure."""
    given = bipeds.places()
    for side, x in (("L", 0.1), ("R", -0.1)):
        start, end = (Vector((x, *place)) for place in (toe, tail))
        knee, ankle = Vector((x, -0.12, 0.56)), Vector((x, 0.12, 0.3))
        for name, head, above, to in (
            ("thigh", given[f"thigh.{side}"][0], "hips", knee),
            ("shin", knee, f"thigh.{side}", ankle),
            ("foot", ankle, f"shin.{side}", start),
            ("toe", start, f"foot.{side}", end),
        ):
            given[f"{name}.{side}"] = head, above, to
    return TargetFigure.at_rest(bipeds.skeleton(given))


def walked(
    cycle,
    points,
    ground=None,
    closed=False,
    height=0.0,
    settings=SETTINGS,
    ways=None,
    standing=None,
    fit=False,
):
    cycle = with_stride(cycle, settings.stride)
    way = way_along(np.array(points, float), closed, 0.5 * cycle.leg)
    length, strides = way.length - settings.offset, None
    if fit:
        strides = fitted_strides(cycle, way, height, ground, settings.offset, way.length)
        length = float(strides.line_at(np.array(way.length)))
    time = timeline(cycle, length, STEP, settings, ways)
    work = walk_work(cycle, way, height, ground or LevelGround(), time, settings, strides, standing)
    result = result_of(work)
    return result, *cycle.target.world(result.rotations, result.translations)


def surface(height, low=-8.0, high=4.0, count=97, rows=None):
    """Triangles over a square, whose height is a function of the place: `count` along y, `rows` along x."""
    line = np.linspace(low, high, count)
    rows = rows or count
    x, y = (each.ravel() for each in np.meshgrid(np.linspace(low, high, rows), line, indexing="ij"))
    k = np.arange((rows - 1) * count).reshape(rows - 1, count)[:, :-1].ravel()
    faces = np.concatenate(
        (np.stack((k, k + count, k + 1), 1), np.stack((k + 1, k + count, k + count + 1), 1))
    )
    return TriangleGround(np.stack((x, y, height(x, y)), 1), faces)


def stairs(rise=0.18, tread=0.3, count=6, start=-1.5):
    """Level ground, then steps along -Y, then level ground again."""
    corners, faces = [], []
    edges = [3.0, *(start - tread * k for k in range(count)), -9.0]
    for k in range(count + 1):
        z, at = rise * k, len(corners)
        corners += [(x, y, z) for y in edges[k : k + 2] for x in (-2.0, 2.0)]
        faces += [(at, at + 1, at + 2), (at + 1, at + 3, at + 2)]
    return TriangleGround(np.array(corners), np.array(faces))


def planted(result, heads, side):
    """Rows of each footfall, and where the joint of the ball is."""
    plan = result.plan.feet["left leg" if side == "L" else "right leg"]
    balls = heads[:, FIGURE.index(f"toe.{side}")]
    return [balls[plan.down == k] for k in range(len(plan.footfalls)) if (plan.down == k).any()]


def test_feet_that_go_ahead_as_far_as_back_where_they_are_low_walk_nowhere():
    """In place and both at once, as of a body that falls or swims. One that hops lifts them meanwhile."""
    together = {"left leg": 0.0, "right leg": 0.0}
    swaying = gait(FIGURE, MAP, together, duty=0.5, lift=0.002)
    with pytest.raises(InvalidInput, match="stay or go ahead as far as back"):
        cycle_of(MAP, FIGURE, swaying, SETTINGS.thresholds)
    hopping = gait(FIGURE, MAP, together, duty=0.5, lift=0.2)
    assert cycle_of(MAP, FIGURE, hopping, SETTINGS.thresholds).speed > 0.5


def test_feet_that_go_farther_than_the_figure_do_not_walk():
    """They go 0.6 m there and back in a period, in which it goes a metre, or less than they do."""
    walking = gait(FIGURE, MAP, STARTS)
    for travel in (1.0, 0.5):
        heads = walking.heads.copy()
        heads[:, :, 1] -= travel * np.arange(len(heads))[:, None] / (len(heads) - 1)
        source = dataclasses.replace(walking, heads=heads)
        if travel == 1.0:
            assert cycle_of(MAP, FIGURE, source, SETTINGS.thresholds).speed == pytest.approx(30.0 / 32.0)
            continue
        with pytest.raises(InvalidInput, match=r"figure goes 0\.5 m, and its feet 0\.6\d m or more"):
            cycle_of(MAP, FIGURE, source, SETTINGS.thresholds)


@pytest.mark.parametrize("rise", [0.18, -0.18])
def test_a_foot_in_the_air_turns_against_its_lower_leg_as_in_the_cycle(cycle, rise):
    """On stairs its leg folds as it does not in the cycle. Where a foot stands, it is off by what it must."""
    result, _, world = walked(cycle, AHEAD, stairs(rise), fit=True)
    _, usual = cycle.joints
    usual = sampled(usual, result.plan.phases / cycle.step)
    for leg in cycle.legs:
        shin, foot = FIGURE.index(leg.limb.middle), FIGURE.index(leg.limb.end)
        turns = [product(inverse(each[:, shin]), each[:, foot]) for each in (world, usual)]
        off = batch.angles_between(*turns, -1)
        edges = np.flatnonzero(np.diff((result.plan.feet[leg.limb.name].down < 0).astype(int)))
        for last, before in edges.reshape(-1, 2):  # of a stance, and before the next
            third = (before - last) // 3
            middle = off[last + 1 + third : before + 1 - third]
            assert middle.max() < max(off[last], off[before + 1]) + math.radians(1.0)


@pytest.mark.parametrize("in_place", [True, False])
def test_a_cycle_has_the_speed_and_stances_that_it_was_made_of(in_place):
    result = cycle_of(
        MAP, FIGURE, gait(FIGURE, MAP, STARTS, stride=0.9, in_place=in_place), SETTINGS.thresholds
    )
    assert result.period == pytest.approx(32 * STEP)
    assert result.speed == pytest.approx(0.9 / result.period, rel=1e-4)
    for name, start in STARTS.items():
        (stance,) = result.feet[name].stances
        assert stance.first == pytest.approx(start * result.period, abs=2.1 * STEP)
        assert stance.last - stance.first == pytest.approx(0.6 * result.period, abs=3.1 * STEP)
        assert stance.aside == pytest.approx(0.1 if name == "left leg" else -0.1, abs=1e-4)


def test_feet_that_slide_in_the_cycle_are_planted_where_they_are_low_and_do_not_go_ahead():
    """A drawn cycle: one foot goes back over the ground three times as fast as the other."""
    values = {"frames": 32, "duty": 0.6, "lift": 0.1, "sink": 0.06, "ahead": (0.0, -1.0, 0.0)}
    rotations, shifts = pose(FIGURE, MAP, STARTS, stride=0.3, **values)
    faster, _ = pose(FIGURE, MAP, STARTS, stride=1.0, **values)
    leg = next(limb for limb in MAP.legs if limb.name == "right leg")
    joints = [FIGURE.index(name) for name in leg.joints]
    rotations[:, joints] = faster[:, joints]
    heads, world = FIGURE.world(rotations, shifts)
    names = tuple(joint.name for joint in FIGURE.skeleton.joints)
    clip = SourceMotion(names, np.arange(33) * STEP, heads, batch.unit(world, -1), *FIGURE.reference)
    result = cycle_of(MAP, FIGURE, clip, SETTINGS.thresholds)
    assert 0.3 / result.period < result.speed < 0.95 / result.period
    for name, start in STARTS.items():
        (stance,) = result.feet[name].stances
        assert stance.first == pytest.approx(start * result.period, abs=3.1 * STEP)
        assert stance.last - stance.first == pytest.approx(0.6 * result.period, abs=4.1 * STEP)


def test_a_foot_that_is_held_up_is_never_planted():
    values = {"frames": 32, "duty": 0.6, "sink": 0.06, "ahead": (0.0, -1.0, 0.0), "stride": 0.8}
    rotations, shifts = pose(FIGURE, MAP, STARTS, lift=0.1, **values)
    lifted, _ = pose(FIGURE, MAP, STARTS, lift=0.35, **values)
    leg = next(limb for limb in MAP.legs if limb.name == "right leg")
    joints = [FIGURE.index(name) for name in leg.joints]
    rotations[:, joints] = lifted[round(32 * 0.3), joints]
    heads, world = FIGURE.world(rotations, shifts)
    names = tuple(joint.name for joint in FIGURE.skeleton.joints)
    clip = SourceMotion(names, np.arange(33) * STEP, heads, batch.unit(world, -1), *FIGURE.reference)
    result = cycle_of(MAP, FIGURE, clip, SETTINGS.thresholds)
    assert len(result.feet["left leg"].stances) == 1
    assert not result.feet["right leg"].stances


def test_one_period_of_a_clip_of_several_is_taken():
    clip = gait(FIGURE, MAP, STARTS, in_place=False, periods=2.7)
    result = cycle_of(MAP, FIGURE, clip, SETTINGS.thresholds)
    assert result.frames[1] - result.frames[0] == 32
    assert result.speed == pytest.approx(1.0 / result.period, rel=1e-3)


def test_a_cycle_without_its_last_frame_is_the_same():
    whole = gait(FIGURE, MAP, STARTS)
    cut = dataclasses.replace(
        whole, times=whole.times[:-1], heads=whole.heads[:-1], rotations=whole.rotations[:-1]
    )
    result, same = (cycle_of(MAP, FIGURE, each, SETTINGS.thresholds) for each in (cut, whole))
    assert result.frames == same.frames == (0, 32)
    np.testing.assert_allclose(result.hips, same.hips, atol=1e-4)
    assert result.speed == pytest.approx(same.speed, rel=1e-4)


SPRINT = {"frames": 12, "stride": 3.0, "duty": 0.2, "lift": 0.4, "sink": 0.08}


def test_a_sprint_whose_feet_are_down_for_two_frames_is_a_cycle():
    """7.5 m/s: each foot is down for 0.08 s, and in the air in between."""
    result = cycle_of(MAP, FIGURE, gait(FIGURE, MAP, STARTS, **SPRINT), SETTINGS.thresholds)
    assert result.speed == pytest.approx(7.5, rel=0.1)
    for name, start in STARTS.items():
        (stance,) = result.feet[name].stances
        assert stance.first == pytest.approx(start * result.period, abs=2.1 * STEP)
        assert stance.last - stance.first <= 3.1 * STEP


def test_a_small_figure_that_slides_as_it_sprints_stands_in_the_frames_in_which_a_large_one_does():
    """A drawn cycle, one foot twice as fast over the ground as the other; all of it at a tenth."""
    values = SPRINT | {"ahead": (0.0, -1.0, 0.0)}
    rotations, shifts = pose(FIGURE, MAP, STARTS, **(values | {"stride": 1.5}))
    faster, _ = pose(FIGURE, MAP, STARTS, **values)
    leg = next(limb for limb in MAP.legs if limb.name == "right leg")
    joints = [FIGURE.index(name) for name in leg.joints]
    rotations[:, joints] = faster[:, joints]
    heads, world = FIGURE.world(rotations, shifts)
    names = tuple(joint.name for joint in FIGURE.skeleton.joints)
    stances = []
    for scale in (1.0, 0.1):
        places = {n: (head * scale, above, to * scale) for n, (head, above, to) in bipeds.places().items()}
        figure = TargetFigure.at_rest(bipeds.skeleton(places))
        times, turns = np.arange(len(heads)) * STEP, batch.unit(world, -1)
        clip = SourceMotion(names, times, scale * heads, turns, *figure.reference)
        result = cycle_of(MAP, figure, clip, SETTINGS.thresholds)
        stances.append(
            {name: [(s.first, s.last) for s in foot.stances] for name, foot in result.feet.items()}
        )
    assert all(len(each) == 1 for each in stances[0].values())
    assert stances[1] == stances[0]


def test_one_that_runs_stands_no_higher_than_its_legs_are_long():
    """The hips of a run are highest in the air."""
    run = cycle_of(MAP, FIGURE, gait(FIGURE, MAP, STARTS, **SPRINT), SETTINGS.thresholds)
    high = run.hips.copy()
    high[:, 2] += 0.3 * np.sin(2.0 * np.pi * np.arange(len(high)) / len(high)) ** 2
    standing = standing_on_average(dataclasses.replace(run, hips=high))
    gaps = []
    for leg in run.legs:
        cycled = FIGURE.world(*placed(MAP, FIGURE, run.rotations, run.hips, run.hip_turns))[0]
        upper, foot = FIGURE.index(leg.limb.upper), run.feet[leg.limb.name]
        longest = np.linalg.norm(cycled[:, FIGURE.index(leg.limb.end)] - cycled[:, upper], axis=1).max()
        ball = np.array((foot.before, foot.stances[0].aside, leg.sole.height))
        ankle = ball - turned(standing.feet[leg.limb.name].foot, leg.sole.ball)
        gaps.append(longest - np.linalg.norm(ankle - standing.heads[upper]))
    assert min(gaps) == pytest.approx(0.0, abs=1e-9)
    plain = standing_on_average(run)
    assert plain.hips[2] <= run.hips[:, 2].max()
    np.testing.assert_allclose(standing.heads[FIGURE.index(MAP.hips)], standing.hips, atol=1e-9)


def test_a_fast_cycle_whose_last_frame_is_held_is_one():
    """Few frames, of which the last is the one before it again: none says where the motion goes on."""
    whole = gait(FIGURE, MAP, STARTS, **SPRINT)
    rows = [*range(12), 11]
    held = dataclasses.replace(
        whole, times=np.arange(13) * STEP, heads=whole.heads[rows], rotations=whole.rotations[rows]
    )
    result = cycle_of(MAP, FIGURE, held, SETTINGS.thresholds)
    assert result.frames == (0, 13)
    assert all(len(foot.stances) == 1 for foot in result.feet.values())


def test_what_is_sampled_at_frames_are_the_frames(cycle):
    k = np.arange(-5, 70)
    np.testing.assert_allclose(sampled(cycle.hips, k.astype(float)), cycle.hips[k % 32], atol=1e-15)


def test_on_a_straight_level_line_the_cycle_goes_on_as_it_is(cycle):
    settings = WalkSettings(start=False, stop=False)
    result, heads, _ = walked(cycle, AHEAD, settings=settings)
    source = gait(FIGURE, MAP, STARTS, in_place=False, periods=4)
    rows = slice(0, 128)
    shift = heads[0, 0] - source.heads[0, 0]
    ankles = [FIGURE.index(f"foot.{side}") for side in "LR"]
    off = heads[rows] - shift - source.heads[rows]
    # But for the balls, which are locked, and their legs.
    assert np.abs(off[:, 0]).max() < 2e-3
    assert np.abs(off[:, ankles]).max() < 0.02
    assert np.abs(result.plan.moved).max() < 0.01


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("length", [2.0, 2.003, 2.01])
def test_a_walk_that_goes_on_keeps_its_speed_to_the_last_frame(cycle, start, length):
    """However much of a frame is left of the way: its last frame is within one of the end."""
    time = timeline(cycle, length, STEP, WalkSettings(start=start, stop=False))
    steps = np.diff(time.phases)
    np.testing.assert_allclose(steps[-10:], STEP, rtol=1e-9)
    left = length / cycle.speed - (time.phases[-1] - time.phases[0])
    assert -1e-9 < left < STEP


GROUNDS = {
    "level": (AHEAD, None, {}),
    "circle": (
        [(3.6 * (1 - math.cos(a)), -3.6 * math.sin(a), 0.0) for a in np.linspace(0, 6.2, 90)],
        None,
        {"closed": True},
    ),
    "hills": (
        [(math.sin(0.6 * y), -y, 0.0) for y in np.linspace(0, 7, 90)],
        surface(lambda x, y: 0.25 * np.sin(1.5 * y)),
        {},
    ),
    "side slope": (AHEAD, surface(lambda x, y: 0.3 * x), {}),
    "stairs": (AHEAD, stairs(), {"settings": WalkSettings(stride=0.6)}),
    "fitted stairs": (AHEAD, stairs(), {"fit": True}),
    "stairs down": (AHEAD, stairs(rise=-0.18), {"fit": True}),
}


@pytest.mark.parametrize("name", GROUNDS)
def test_planted_balls_rest_on_the_ground_and_nothing_is_below(cycle, name):
    points, ground, more = GROUNDS[name]
    result, heads, world = walked(cycle, points, ground, **more)
    ground = ground or LevelGround()
    for side in "LR":
        rests = planted(result, heads, side)
        assert len(rests) >= 4
        assert max(np.ptp(each, axis=0).max() for each in rests) < SOLVE
        firsts = np.array([each[0] for each in rests])
        below, _ = ground.below(firsts + np.array((0.0, 0.0, 0.3)), np.zeros(len(firsts), int))
        # The ball's joint is 2 cm above the ground, across the slope.
        assert (firsts[:, 2] - below).min() > 0.0199 - SOLVE
        assert (firsts[:, 2] - below).max() < 0.024
    measured = walk_measures(cycle, result.plan, ground, heads, world)
    assert measured.slide < SOLVE and measured.penetration < 2e-3 and measured.floating < 2e-3
    assert measured.stretched == measured.flipped == 0
    assert np.isfinite(result.rotations).all()


@pytest.mark.parametrize("name", ["level", "hills", "fitted stairs", "stairs down"])
@pytest.mark.parametrize(
    ("toe", "tail", "on_end"),
    [((0.03, 0.12), (0.0, 0.0), True), ((0.03, 0.03), (-0.01, 0.0), False)],
    ids=["paws on end", "steep toes"],
)
def test_toes_that_stand_on_end_are_links_and_others_lie_down(name, toe, tail, on_end):
    """The end of a paw rests and its joint rolls over it; held as a ball it was 12 cm above the ground."""
    figure = hoofed(toe, tail)
    clip = gait(figure, MAP, STARTS, stride=0.8, lift=0.08)
    cycle = cycle_of(MAP, figure, clip, SETTINGS.thresholds)
    for leg, limb in zip(cycle.legs, MAP.legs, strict=True):
        assert leg.limb.end == (limb.tip if on_end else limb.end)
        assert (limb.end in leg.limb.bends) == on_end
        assert not leg.flat
    points, ground, more = GROUNDS[name]
    result, heads, world = walked(cycle, points, ground, **more)
    measured = walk_measures(cycle, result.plan, ground or LevelGround(), heads, world)
    assert measured.footfalls > 8
    assert measured.slide < SOLVE
    assert measured.penetration < 5e-4
    assert measured.floating < 5e-4
    assert measured.turn < 1.7 * measured.cycle_turn


@pytest.mark.parametrize(
    ("rise", "tread", "at_once"),
    [(0.18, 0.3, 1.0), (-0.18, 0.3, 1.0), (0.1, 0.24, 2.0), (0.18, 0.7, 0.5)],
)
def test_steps_on_stairs_are_as_long_as_treads(cycle, rise, tread, at_once):
    result, _, _ = walked(cycle, AHEAD, stairs(rise, tread), fit=True)
    edges = [-1.5 - tread * k for k in range(6)]
    lengths = []
    places = sorted(
        (fall.row, fall.place[1] + fall.shift, fall.place[1])
        for foot in result.plan.feet.values()
        for fall in foot.footfalls
    )
    for (_, before, y), (_, after, next_y) in pairwise(places):
        if edges[0] > y and next_y > edges[-1]:
            lengths.append(before - after)
    assert len(lengths) >= 2
    np.testing.assert_allclose(lengths, at_once * tread, atol=0.01)
    first = [b - a for (_, a, _), (_, b, _) in pairwise(places[::-1]) if b > edges[0] + 0.6]
    assert max(first) == pytest.approx(0.5 * cycle.speed * cycle.period, abs=0.02)


def test_steps_fit_stairs_where_feet_are_that_go_ahead_of_the_body_and_behind_it(cycle):
    way = way_along(AHEAD, False, 0.5 * cycle.leg)
    feet = dict(zip(STARTS, (0.6, -0.4), strict=True))
    long = {name: dataclasses.replace(foot, before=feet[name]) for name, foot in cycle.feet.items()}
    strides = fitted_strides(dataclasses.replace(cycle, feet=long), way, 0.0, stairs(), 0.0, 5.0)
    places = np.array((1.5 - 0.6, 3.0 + 0.4))  # of the body, with a foot on the first edge and on the last
    lengths = strides.along_at(strides.line_at(places) + 1e-3) - places
    np.testing.assert_allclose(lengths, 1e-3 * 0.3 / (0.5 * cycle.stride), rtol=0.01)


def test_a_foot_that_is_never_down_goes_as_in_the_cycle_once_it_has_left_its_stand(cycle):
    """Half of the way to where it stands at the ends was left in the middle, and hips were pulled along."""
    feet = dict(cycle.feet)
    feet["right leg"] = dataclasses.replace(feet["right leg"], stances=[])
    lame = dataclasses.replace(cycle, feet=feet)
    motion, _, _ = turned_stand(0.0, apart=0.5)
    names = {name: name for name in motion.names}
    mapped = dataclasses.replace(lame, figure_map=dataclasses.replace(MAP, sources=names))
    _, heads, _ = walked(lame, AHEAD, standing=standing_of(mapped, motion))
    toe, hips = FIGURE.index("toe.R"), FIGURE.index("hips")
    assert heads[0, hips, 0] - heads[0, toe, 0] > 0.25
    middle = slice(len(heads) // 3, 2 * len(heads) // 3)
    usual = -float(feet["right leg"].balls[:, 1].mean())
    np.testing.assert_allclose((heads[:, hips] - heads[:, toe])[middle, 0], usual, atol=0.03)


def test_a_leg_that_the_cycle_stretches_bends_to_its_usual_side():
    """It was led to the right side, and the solve of its foot brought it to the other in one frame."""
    cycle = cycle_of(MAP, FIGURE, gait(FIGURE, MAP, STARTS, stride=0.8, sink=0.01), SETTINGS.thresholds)
    points, ground, _ = GROUNDS["hills"]
    result, heads, world = walked(cycle, points, ground, settings=WalkSettings(extension=1.0))
    measured = walk_measures(cycle, result.plan, ground, heads, world)
    assert measured.flipped == measured.stretched == 0


def test_level_ground_slopes_and_single_kerbs_leave_steps_as_they_are(cycle):
    way = way_along(AHEAD, False, 0.5 * cycle.leg)
    kerb = surface(lambda x, y: np.where(np.abs(y + 2.0) < 0.2, 0.15, 0.0), count=601, rows=2)
    for ground in (LevelGround(), surface(lambda x, y: 0.25 * np.sin(1.5 * y)), stairs(count=1), kerb):
        strides = fitted_strides(cycle, way, 0.0, ground, 0.3, 5.0)
        line = np.linspace(-1.0, 6.0, 30)
        np.testing.assert_allclose(strides.along_at(line), line + 0.3, atol=1e-12)
        assert strides.shortest == 1.0


def test_places_on_the_line_and_on_the_way_are_the_same_there_and_back(cycle):
    way = way_along(AHEAD, False, 0.5 * cycle.leg)
    strides = fitted_strides(cycle, way, 0.0, stairs(), 0.5, 5.0)
    line = np.linspace(-2.0, 9.0, 200)
    np.testing.assert_allclose(strides.line_at(strides.along_at(line)), line, atol=1e-9)
    assert strides.along_at(np.zeros(1))[0] == pytest.approx(0.5)
    assert 0.0 < strides.shortest < 0.7


def turned_stand(angle, apart=0.3):
    """The figure at rest, turned about the vertical, its legs spread and its left foot turned out."""
    heads, rotations = FIGURE.reference
    about = np.array((math.cos(0.5 * angle), 0.0, 0.0, math.sin(0.5 * angle)))
    pose, names = FIGURE.rotations.copy(), [joint.name for joint in FIGURE.skeleton.joints]
    for side, sign in (("L", 1.0), ("R", -1.0)):
        i = FIGURE.index(f"thigh.{side}")
        axis = turned(rotations[i] * (1, -1, -1, -1), np.array((0.0, -1.0, 0.0)))
        pose[i] = (math.cos(0.5 * apart), *(sign * math.sin(0.5 * apart) * axis))
    i = FIGURE.index("foot.L")
    axis = turned(rotations[i] * (1, -1, -1, -1), np.array((0.0, 0.0, 1.0)))
    pose[i] = (math.cos(0.2), *(math.sin(0.2) * axis))
    heads, world = (each[0] for each in FIGURE.world(pose[None], FIGURE.translations[None]))
    motion = SourceMotion(
        tuple(names),
        np.zeros(1),
        turned(about, heads)[None],
        product(about, world)[None],
        *FIGURE.reference,
    )
    return motion, heads, world


@pytest.mark.parametrize("angle", [0.0, 2.0])
def test_a_walk_starts_and_ends_in_a_pose(cycle, angle):
    motion, heads, _ = turned_stand(angle)
    names = {name: name for name in motion.names}
    standing = standing_of(
        dataclasses.replace(cycle, figure_map=dataclasses.replace(MAP, sources=names)), motion
    )
    result, walked_heads, _ = walked(cycle, AHEAD, standing=standing)
    for row in (0, -1):
        for name in ("foot.L", "foot.R", "toe.L", "toe.R", "thigh.L", "head"):
            i, hips = FIGURE.index(name), FIGURE.index(MAP.hips)
            apart = walked_heads[row, i] - walked_heads[row, hips]
            np.testing.assert_allclose(apart, heads[i] - heads[hips], atol=0.02, err_msg=name)
    for side in "LR":
        assert max(np.ptp(each, axis=0).max() for each in planted(result, walked_heads, side)) < SOLVE
    _, plain_heads, _ = walked(cycle, AHEAD)
    middle = slice(len(plain_heads) // 2 - 5, len(plain_heads) // 2 + 5)
    np.testing.assert_allclose(walked_heads[middle], plain_heads[middle], atol=1e-6)


def test_feet_lie_on_a_slope_up_to_the_steepest(cycle):
    slope = math.tan(math.radians(20.0))
    ground = surface(lambda x, y: -slope * y)
    for steepest in (35.0, 10.0):
        settings = WalkSettings(steepest=math.radians(steepest))
        result, _, world = walked(cycle, AHEAD[:, :] * 0.8, ground, settings=settings)
        plan = result.plan.feet["left leg"]
        rows = np.flatnonzero(plan.down == 2)
        middle = rows[len(rows) // 2]
        foot = FIGURE.index("foot.L")
        rest = FIGURE.reference[1][foot]
        up = turned(world[middle, foot], turned(rest * (1, -1, -1, -1), np.array((0.0, 0.0, 1.0))))
        expected = min(20.0, steepest)
        assert math.degrees(math.acos(up[2])) == pytest.approx(expected, abs=6.0)


def test_a_walk_starts_and_ends_at_rest_with_both_feet_down(cycle):
    result, heads, _ = walked(cycle, AHEAD)
    for name in STARTS:
        down = result.plan.feet[name].down
        assert down[0] >= 0 and down[-1] >= 0
    speeds = np.linalg.norm(np.diff(heads[:, 0, :2], axis=0), axis=1) / STEP
    assert speeds[0] < 0.02 * cycle.speed and speeds[-1] < 0.02 * cycle.speed
    assert speeds[60] == pytest.approx(cycle.speed, rel=0.1)
    assert heads[-1, 0, 1] >= -5.0 - 0.5 * cycle.speed * cycle.period


def test_toes_that_trail_in_the_swing_lie_flat_while_the_figure_stands(cycle):
    """They kept the turn of the swing that the walk begins with: the skin was 13 cm in the ground."""
    feet = {}
    for name, foot in cycle.feet.items():
        share = np.zeros(len(foot.balls))
        rows = np.arange(len(share)) * cycle.step
        for stance in foot.stances:
            for k in (-cycle.period, 0.0, cycle.period):
                inside = (rows >= stance.first + k) & (rows <= stance.last + k)
                share[inside] = -1.0
        trailing = 1.2 * (share >= 0.0)
        bend = np.column_stack((np.cos(0.5 * trailing), np.sin(0.5 * trailing), 0.0 * rows, 0.0 * rows))
        feet[name] = dataclasses.replace(foot, toes=product(bend, foot.toes))
    result, _, _ = walked(dataclasses.replace(cycle, feet=feet), AHEAD)
    plain, _, _ = walked(cycle, AHEAD)
    for name in STARTS:
        for row in (0, -1):
            apart = np.abs(np.sum(result.plan.feet[name].toes[row] * plain.plan.feet[name].toes[row]))
            assert 2.0 * np.arccos(min(apart, 1.0)) < 0.02, (name, row)


def kerb(at, rise, lean=0.0):
    """Level ground with a step up or down at a place along Y, ahead of which is -Y; its face may lean."""
    edges = ((3.0, 0.0), (at, 0.0), (at - lean, rise), (-9.0, rise))
    corners = [(x, y, z) for y, z in edges for x in (-2.0, 2.0)]
    faces = [(k + a, k + b, k + c) for k in (0, 2, 4) for a, b, c in ((0, 1, 2), (1, 3, 2))]
    return TriangleGround(np.array(corners), np.array(faces))


@pytest.mark.parametrize("part", [0.5, 0.9])
def test_toes_over_an_edge_lie_on_what_is_below_them(cycle, part):
    """They are 8 cm long; they bent down by 60 degrees into the stair on which they lie."""
    level, _, _ = walked(cycle, AHEAD)
    at = level.plan.feet["left leg"].footfalls[2].place[1] - part * 0.08
    foot = walked(cycle, AHEAD, kerb(at, -0.1))[0].plan.feet["left leg"]
    k = int(np.argmin([abs(fall.place[1] - part * 0.08 - at) for fall in foot.footfalls]))
    rows = np.flatnonzero(foot.down == k)
    assert foot.footfalls[k].place[1] == pytest.approx(at + part * 0.08, abs=1e-6)
    ends = foot.balls[rows] + turned(foot.toes[rows], cycle.legs[0].sole.toe)
    np.testing.assert_allclose(ends[:, 2], 0.0, atol=1e-3)


@pytest.mark.parametrize("at", [-1.2, -1.7])
def test_toes_go_over_from_one_edge_to_the_next_ground_in_the_whole_swing(cycle, at):
    """They lay as before up to the middle of the swing, and as after from there on: 20 degrees in a frame."""
    result, _, _ = walked(cycle, AHEAD, kerb(at, -0.1))
    level, _, _ = walked(cycle, AHEAD)
    for name in STARTS:
        turns = [
            batch.angles_between(each[1:], each[:-1], -1).max()
            for each in (result.plan.feet[name].toes, level.plan.feet[name].toes)
        ]
        assert turns[0] < 1.1 * turns[1]


def test_toes_that_swing_past_the_vertical_turn_no_faster_than_in_the_cycle(cycle):
    """Their line along the ground leads back there: what raised them turned them down, by 97 degrees."""
    rotations, feet = cycle.rotations.copy(), {}
    for leg in cycle.legs:
        foot, i = cycle.feet[leg.limb.name], FIGURE.index(leg.limb.tip)
        phases = np.arange(len(foot.balls)) * cycle.step
        bend = np.zeros(len(phases))
        for stance in foot.stances:
            for k in (-cycle.period, 0.0, cycle.period):
                u = (phases - stance.last - k) / (cycle.period - stance.last + stance.first)
                bend = np.maximum(bend, 2.2 * np.sin(np.pi * np.clip(u, 0.0, 1.0)) ** 2)
        turn = batch.axis_rotation(leg.sole.across_toe, bend)
        rotations[:, i] = product(rotations[:, i], turn)
        feet[leg.limb.name] = dataclasses.replace(foot, toes=product(foot.toes, turn))
    hanging = dataclasses.replace(cycle, feet=feet, rotations=rotations)
    own = hanging.feet["left leg"].toes
    most = batch.angles_between(own, np.roll(own, 1, axis=0), -1).max() * STEP / cycle.step
    for ground in (None, surface(lambda x, y: 0.3 * y)):
        toes = walked(hanging, AHEAD, ground)[0].plan.feet["left leg"].toes
        assert batch.angles_between(toes[1:], toes[:-1], -1).max() < 1.1 * most


def test_keyed_ways_are_gone_and_nothing_slides(cycle):
    speeds = np.concatenate(
        (np.linspace(0.0, 1.2, 40), np.full(40, 0.4), np.linspace(0.4, 0.0, 10), np.zeros(9))
    )
    ways = np.concatenate(([0.0], np.cumsum(speeds) * STEP))
    result, heads, _ = walked(cycle, AHEAD, ways=ways)
    np.testing.assert_allclose(result.plan.along, ways, atol=1e-9)
    for side in "LR":
        assert max(np.ptp(each, axis=0).max() for each in planted(result, heads, side)) < SOLVE
    with pytest.raises(InvalidInput, match="goes back after row 1"):
        walked(cycle, AHEAD, ways=np.array((0.0, 1.0, 0.5)))


def test_swinging_feet_are_lifted_over_a_kerb_that_lies_between(cycle):
    level, flat, _ = walked(cycle, AHEAD)
    left = level.plan.feet["left leg"].footfalls
    at = left[2].place[1] + 0.25 * (left[3].place[1] - left[2].place[1])
    ground = surface(lambda x, y: np.where(np.abs(y - at) < 0.021, 0.12, 0.0), -6.0, 1.0, 701, 2)
    result, heads, world = walked(cycle, AHEAD, ground)
    measured = walk_measures(cycle, result.plan, ground, heads, world)
    toe = FIGURE.index("toe.L")
    assert heads[:, toe, 2].max() > flat[:, toe, 2].max() + 0.02
    assert measured.penetration < 2e-3 and measured.slide < SOLVE
    for foot, other in zip(result.plan.feet.values(), level.plan.feet.values(), strict=True):
        for fall, before in zip(foot.footfalls, other.footfalls, strict=True):
            assert abs(fall.place[2]) < 1e-6 and abs(fall.place[1] - before.place[1]) < 0.17


@pytest.mark.parametrize("at", np.linspace(-1.8, -1.2, 7))
def test_no_foot_comes_down_on_the_face_of_a_kerb(at):
    """Of a figure without heels: its feet stood anywhere on it, and just behind it, in the face."""
    figure = hoofed((0.03, 0.12), (0.0, 0.0))
    paws = cycle_of(MAP, figure, gait(figure, MAP, STARTS, stride=0.8, lift=0.08), SETTINGS.thresholds)
    for rise, lean in ((0.18, 0.03), (0.18, 0.1), (-0.18, 0.0)):
        result, _, _ = walked(paws, AHEAD, kerb(at, rise, lean))
        for foot in result.plan.feet.values():
            for fall in foot.footfalls:
                height, beyond = fall.place[2], at - fall.place[1]
                assert min(abs(height), abs(height - rise)) < 1e-6, (rise, lean, fall.place)
                assert rise > 0.0 or not 0.0 < beyond < 0.02, fall.place


def test_feet_turn_evenly_from_one_slope_to_the_next(cycle):
    """In a valley: they turned in the middle of a swing, where they are fastest in the cycle."""
    ground = surface(lambda x, y: 0.36 * np.abs(y + 2.4))
    result, _, _ = walked(cycle, AHEAD, ground, height=9.0)
    for foot in result.plan.feet.values():
        turns = batch.angles_between(foot.toes[1:], foot.toes[:-1], -1)
        assert turns.max() / STEP < 8.5


@pytest.mark.parametrize("angle", [60.0, 90.0])
def test_round_a_corner_nothing_turns_much_faster_than_in_the_cycle(cycle, angle):
    """Round an arc of 40 cm. Feet in the air are up to three times as quick as the body there."""
    arc = np.radians(np.arange(0.0, angle + 1.0, 5.0))
    bend = np.column_stack((0.4 - 0.4 * np.cos(arc), -2.0 - 0.4 * np.sin(arc)))
    after = bend[-1] + 2.0 * np.array((np.sin(arc[-1]), -np.cos(arc[-1])))
    result, heads, world = walked(cycle, [(0.0, 0.0), *bend, after])
    measured = walk_measures(cycle, result.plan, LevelGround(), heads, world)
    assert measured.turn < 1.3 * measured.cycle_turn and measured.bend < 1.3 * measured.cycle_bend


def test_feet_that_are_down_stay_where_ground_is_that_tilts_and_turns(cycle):
    """A slope that goes round like a turntable, and gets steeper."""
    frames, still = 200, surface(lambda x, y: 0.0 * x, -8.0, 4.0, 5)
    turn, tilt = np.linspace(0.0, 1.0, frames), np.linspace(0.0, 0.5, frames)
    zeros = np.zeros(frames)
    about_z = np.stack((np.cos(0.5 * turn), zeros, zeros, np.sin(0.5 * turn)), 1)
    about_x = np.stack((np.cos(0.5 * tilt), np.sin(0.5 * tilt), zeros, zeros), 1)
    turns = product(about_z, about_x)
    vertices = np.stack([turned(turns, np.tile(each, (frames, 1))) for each in still.vertices], axis=1)
    faces = np.arange(len(still.triangles))
    ground = MovingGround([GroundBlock(each, still.triangles, faces) for each in np.split(vertices, 4)])
    result, heads, world = walked(cycle, AHEAD[:, :2] * 0.5, ground)
    assert len(heads) <= frames
    back = turns[: len(heads)] * (1.0, -1.0, -1.0, -1.0)
    for side in "LR":
        plan = result.plan.feet["left leg" if side == "L" else "right leg"]
        balls = turned(back, heads[:, FIGURE.index(f"toe.{side}")])
        toes = product(back, world[:, FIGURE.index(f"toe.{side}")])
        for k in range(1, plan.down.max()):
            rows = np.flatnonzero(plan.down == k)
            assert np.ptp(balls[rows], axis=0).max() < SOLVE
            np.testing.assert_allclose(balls[rows, 2], 0.02, atol=SOLVE)
            assert np.ptp(toes[rows], axis=0).max() < 2e-3


def test_feet_go_along_with_ground_that_moves(cycle):
    frames = 400
    still = surface(lambda x, y: 0.0 * x, -8.0, 4.0, 5)
    lift = 0.2 * np.sin(np.arange(frames) * 0.05)
    vertices = still.vertices + np.stack((np.zeros(frames), np.zeros(frames), lift), 1)[:, None]
    faces = np.arange(len(still.triangles))
    ground = MovingGround([GroundBlock(each, still.triangles, faces) for each in np.split(vertices, 8)])
    result, heads, _ = walked(cycle, AHEAD, ground)
    for side in "LR":
        plan = result.plan.feet["left leg" if side == "L" else "right leg"]
        rows = np.flatnonzero(plan.down >= 0)
        np.testing.assert_allclose(heads[rows, FIGURE.index(f"toe.{side}"), 2], lift[rows] + 0.02, atol=SOLVE)


def test_the_same_again_has_the_same_keys(cycle):
    points, ground, more = GROUNDS["hills"]
    first, again = (walked(cycle, points, ground, **more)[0] for _ in range(2))
    assert np.array_equal(first.rotations, again.rotations)
    assert np.array_equal(first.translations, again.translations)


# Bad input -----------------------------------------------------------------------------------------


@pytest.mark.mass
def test_memory_grows_as_the_frames_do(cycle):
    peaks = []
    for length in (20.0, 40.0):
        tracemalloc.start()
        result = walked(cycle, ((0.0, 0.0, 0.0), (0.0, -length, 0.0)))[0]
        peaks.append(tracemalloc.get_traced_memory()[1] / len(result.rotations))
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def wall(x, y):
    return np.where(y < -2.0, 3.0, 0.0)


def nothing_beyond(x, y):
    return np.where(y < -2.0, np.nan, 0.0)


def holed():
    ground = surface(lambda x, y: 0.0 * x)
    middles = ground.vertices[ground.triangles].mean(axis=1)
    return TriangleGround(ground.vertices, ground.triangles[np.abs(middles[:, 1] + 2.5) > 0.6])


def standing_wall():
    ground = surface(lambda x, y: 0.0 * x)
    corners = np.array(((-2.0, -2.0, -1.0), (2.0, -2.0, -1.0), (2.0, -2.0, 3.0), (-2.0, -2.0, 3.0)))
    count = len(ground.vertices)
    return TriangleGround(
        np.concatenate((ground.vertices, corners)),
        np.concatenate((ground.triangles, count + np.array(((0, 1, 2), (0, 2, 3))))),
    )


@pytest.mark.parametrize(
    ("points", "ground", "words"),
    [
        ([(1.0, 1.0, 0.0), (1.0, 1.0, 5.0)], None, "no length"),
        ([(1.0, 1.0, 0.0)], None, "two points"),
        ([(0.0, 0.0, 0.0), (0.0, math.nan, 0.0)], None, "not a number"),
        ([(0.0, 0.0, 0.0), (0.0, -0.2, 0.0)], None, "shorter than half a leg"),
        ([(0.0, 0.0, 0.0), (0.0, -0.45, 0.0)], None, "too short"),
        ([(40.0, 0.0, 0.0), (40.0, -5.0, 0.0)], surface(lambda x, y: 0.0 * x), "no ground below the start"),
        (AHEAD, holed(), r"no ground at 1\.[89]"),
        (AHEAD, surface(wall), "rises by"),
        (AHEAD, standing_wall(), "a wall stands in the way at"),
        ([(0.09 * math.cos(a), 0.09 * math.sin(a), 0) for a in np.linspace(0, 60, 900)], None, "turns by"),
    ],
)
def test_bad_ways_and_grounds_are_told(cycle, points, ground, words):
    with pytest.raises(InvalidInput, match=words):
        walked(cycle, points, ground)


def test_bad_vertices_are_told():
    with pytest.raises(InvalidInput, match="vertex 0 of the ground is not a number"):
        TriangleGround(np.full((3, 3), math.nan), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidInput, match="no face"):
        TriangleGround(np.zeros((3, 3)), np.zeros((0, 3), int))


def test_motions_that_are_no_cycle_are_told():
    still = gait(FIGURE, MAP, STARTS, stride=1e-6, lift=1e-6)
    with pytest.raises(InvalidInput, match=r"nowhere|never leaves"):
        cycle_of(MAP, FIGURE, still, SETTINGS.thresholds)
    part = gait(FIGURE, MAP, STARTS, periods=0.6)
    with pytest.raises(InvalidInput, match="does not repeat"):
        cycle_of(MAP, FIGURE, part, SETTINGS.thresholds)


@pytest.mark.parametrize(
    ("field", "value"),
    [("ease", -1.0), ("cycles", math.nan), ("steepest", 2.0), ("extension", 0.2), ("stride", 0.0)],
)
def test_settings_name_the_field(field, value):
    with pytest.raises(InvalidInput, match=field):
        WalkSettings(**{field: value})


def test_a_crouched_figure_swings_its_legs_uphill_as_smoothly_as_on_the_level():
    """It goes up by 20 degrees; 1.3 times the cycle's turns and jerks is what may be."""
    crouched = cycle_of(MAP, FIGURE, gait(FIGURE, MAP, STARTS, sink=0.2, duty=0.55), SETTINGS.thresholds)
    ground = surface(lambda x, y: -0.36 * y)
    result, heads, world = walked(crouched, AHEAD, ground)
    measured = walk_measures(crouched, result.plan, ground, heads, world)
    assert measured.slide < SOLVE and max(measured.penetration, measured.floating) < 2e-3
    assert (measured.stretched, measured.flipped) == (0, 0)
    assert measured.turn < 1.3 * measured.cycle_turn and measured.jerk < 1.3 * measured.cycle_jerk


def test_a_leg_folds_in_all_its_joints_alike():
    """All bends are multiplied by one factor, and the leg ends where it is to."""
    links = [np.array([each]) for each in ((0.02, 0.1, -0.4), (0.0, -0.2, -0.3), (0.0, 0.15, -0.2))]
    still = [np.array([(1.0, 0.0, 0.0, 0.0)])] * 3
    bends = [angle_between(a, b) for a, b in pairwise(links)]
    for far in (0.5, 0.6, 0.75, 0.85):
        line = far * np.array([(0.3, 0.2, -0.9)])
        put = [turned(turn, link) for turn, link in zip(fold(links, still, line), links, strict=True)]
        np.testing.assert_allclose(sum(put), line, atol=1e-3)  # the solve does the rest
        factors = [angle_between(a, b) / bend for (a, b), bend in zip(pairwise(put), bends, strict=True)]
        assert factors[0] == pytest.approx(factors[1], rel=1e-6)


def test_a_short_leg_that_is_straight_in_its_cycle_folds_as_smoothly_as_before_and_after():
    """Its two joints are bent by 60 and 6 degrees, and not at all in the middle frame."""
    parts = np.abs(np.linspace(-1.0, 1.0, 21))[:, None]
    ways = np.cumsum(np.radians((0.0, 60.0, -6.0)) * parts, axis=1)
    lengths = 0.4, 0.3, 0.2
    links = [
        size * np.stack((np.zeros(21), np.sin(way), -np.cos(way)), axis=1)
        for size, way in zip(lengths, ways.T, strict=True)
    ]
    still = [np.tile((1.0, 0.0, 0.0, 0.0), (21, 1))] * 3
    shortest = np.linalg.norm(sum(links), axis=1).min()
    line = np.tile((0.0, 0.0, -0.9 * shortest), (21, 1))
    put = [turned(turn, link) for turn, link in zip(fold(links, still, line), links, strict=True)]
    np.testing.assert_allclose(sum(put), line, atol=1e-3)
    for above, below in pairwise(put):
        bends = [angle_between(a, b) for a, b in zip(above, below, strict=True)]
        assert np.abs(np.diff(bends)).max() < np.radians(6.0)  # the cycle's in a frame


def test_a_short_leg_whose_joint_bends_to_both_sides_folds_it_to_its_usual_side():
    """Its second joint is bent by 50 degrees to one side, by up to 20 to the other, and never turns over."""
    ways = np.radians(np.stack((np.zeros(61), np.full(61, 40.0), np.linspace(50.0, -20.0, 61)), axis=1))
    lengths, across = (0.4, 0.3, 0.2), np.array((1.0, 0.0, 0.0))
    links = [
        size * np.stack((np.zeros(61), np.sin(way), -np.cos(way)), axis=1)
        for size, way in zip(lengths, np.cumsum(ways, axis=1).T, strict=True)
    ]
    still = [np.tile((1.0, 0.0, 0.0, 0.0), (61, 1))] * 3
    line = 0.9 * sum(links)
    put = [turned(turn, link) for turn, link in zip(fold(links, still, line), links, strict=True)]
    np.testing.assert_allclose(sum(put), line, atol=1e-3)
    for above, below, way in zip(put[:-1], put[1:], ways.T[1:], strict=True):
        bends = np.arctan2(np.cross(above, below) @ across, np.sum(above * below, axis=1))
        assert (bends > way).all()
        assert np.abs(np.diff(bends)).max() < np.radians(4.0)  # the cycle's in a frame is 1.2


def angle_between(a, b):
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), np.sum(a * b)))


def curvature(way) -> float:
    """Largest curvature, 1/m, of the circles through three neighbouring places."""
    a, b, c = way.places[:-2], way.places[1:-1], way.places[2:]
    (ux, uy), (vx, vy) = (b - a).T, (c - b).T
    sides = np.linalg.norm(b - a, axis=1) * np.linalg.norm(c - b, axis=1) * np.linalg.norm(c - a, axis=1)
    return float((2.0 * np.abs(ux * vy - uy * vx) / sides).max())


@pytest.mark.parametrize("closed", [False, True])
def test_corners_are_rounded_as_far_as_turns_may_be_sharp(closed: bool) -> None:
    square = np.array([(0, 0), (0, -6), (6, -6), (6, 0)], float)
    for sharpest in (8.0, 4.0, 2.0):
        way = way_along(square, closed, 0.2, sharpest)
        assert curvature(way) < 1.15 * sharpest
        corner = np.linalg.norm(way.places - (0.0, -6.0), axis=1).min()
        # The circle of the smallest radius that touches both sides is (sqrt 2 - 1) r from the corner.
        assert corner < 2.0 * (2.0**0.5 - 1.0) / sharpest


def test_a_way_that_turns_gently_is_not_rounded_further() -> None:
    angles = np.linspace(0.0, 1.5 * np.pi, 400)
    points = 3.0 * np.column_stack((np.cos(angles), np.sin(angles)))
    plain, bound = way_along(points, False, 0.2), way_along(points, False, 0.2, 0.5)
    assert np.array_equal(plain.places, bound.places)
    assert np.array_equal(plain.headings, bound.headings)
