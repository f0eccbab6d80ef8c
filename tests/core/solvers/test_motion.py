"""The nearest motion: no sudden turns, near to its base poses, inside limits, on its goals."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from mathutils import Quaternion, Vector
from seeds import few_of

from ccd_rig import (
    Cone,
    DirectionGoal,
    Hinge,
    Joint,
    Limit,
    OrientationGoal,
    Pose,
    PositionGoal,
    Skeleton,
    Solver,
    SolverSettings,
    Sweep,
    SwingTwist,
    forward_kinematics,
)
from ccd_rig.kernel import carry_departures, sweep_departures, write_departures, write_largest_angles
from ccd_rig.limits.shapes import violation
from ccd_rig.maths.batch import Array
from ccd_rig.solvers import motion as module
from ccd_rig.solvers.motion import Frames, Kind, solve_motion
from ccd_rig.solvers.pose_search import PoseSearch, Solved
from ccd_rig.solvers.problem_tables import Bones
from ccd_rig.solvers.stepping import result_of

FRAMES = 121
TOLERANCE = 1e-3
X = (1.0, 0.0, 0.0)


def chain(count: int, limit: Limit | None = None) -> Skeleton:
    """Bones of length 1 along y, straight at rest."""
    return Skeleton(
        [
            Joint(f"bone{i}", i - 1, offset=Vector((0.0, float(i > 0), 0.0)), length=1.0, limit=limit)
            for i in range(count)
        ]
    )


def random_rotations(draw: np.random.Generator, *shape: int) -> Array:
    """Unit quaternions."""
    drawn = draw.normal(size=(*shape, 4))
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def test_a_motion_of_directions_does_not_depend_on_the_unit_of_length():
    size = 41
    directions = np.stack((np.full(size, 0.02), np.full(size, -1.0), np.linspace(-1.0, 1.0, size)), 1)
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    results = []
    for unit in (2.0**-10, 1.0, 2.0**10):
        joints = [Joint(f"{i}", i - 1, (0.0, unit * (i > 0), 0.0), length=unit) for i in range(3)]
        skeleton = Skeleton(joints)
        settings = SolverSettings(position_tolerance=1e-4 * unit, restarts=0)
        search = PoseSearch(skeleton, [DirectionGoal("2", (0, 1, 0), (0, 1, 0))], settings)
        kind = Kind(search, (directions,), Bones.of(skeleton), np.array([1e-4 * unit]), None)
        rest, rows = np.tile((1.0, 0.0, 0.0, 0.0), (size, 3, 1)), np.arange(size)
        before, after = rows - 1, np.array([*rows[1:], -1])
        still = np.zeros((size, 3, 3))
        frames = Frames((kind,), np.zeros(size, np.intp), rows, rest, still, rows, before, after)
        results.append(result_of(solve_motion(frames, 5.0))[0].rotations)
    for other in results:
        np.testing.assert_allclose(other, results[1], atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_departures_are_rotations_from_base_poses_to_poses(seed: int) -> None:
    """By the quaternions of mathutils; joints that do not move at a frame stay."""
    draw = np.random.default_rng(seed)
    base, poses, joints = random_rotations(draw, 5, 3), random_rotations(draw, 2, 3), [2, 0]
    moves, rows = draw.integers(0, 2, (5, 2)).astype(np.uint8), np.array([4, 1])
    table, departed, carried = base.reshape(5, 12), np.empty((2, 8)), np.empty((2, 12))
    write_departures(table, moves, np.array(joints), rows, poses.reshape(2, 12), departed)
    carry_departures(table, moves, np.array(joints), rows, departed, carried)
    largest = np.empty(2)
    write_largest_angles(np.tile((1.0, 0.0, 0.0, 0.0), (2, 2)), departed, largest)
    for r, row in enumerate(rows):
        angles = [0.0]
        for m, joint in enumerate(joints):
            turn = Quaternion(base[row, joint]).rotation_difference(Quaternion(poses[r, joint]))
            expected = Quaternion(base[row, joint]).inverted() @ Quaternion(poses[r, joint])
            expected = expected if moves[row, m] else Quaternion()
            assert departed[r, 4 * m] >= 0.0
            assert abs(expected.dot(Quaternion(departed[r, 4 * m : 4 * m + 4]))) == pytest.approx(
                1.0, abs=1e-6
            )
            there = poses[r, joint] if moves[row, m] else base[row, joint]
            reached = carried[r, 4 * joint : 4 * joint + 4]
            assert abs(float(there @ reached)) == pytest.approx(1.0, abs=1e-12)
            angles.append(math.remainder(turn.angle, 2.0 * math.pi) if moves[row, m] else 0.0)
        assert largest[r] == pytest.approx(max(map(abs, angles)), abs=1e-3)
        assert (carried[r, 4:8] == base[row, 1]).all()


@pytest.mark.parametrize("relaxes", [False, True])
def test_swept_departures_are_those_of_the_least_sum_or_beyond(relaxes: bool) -> None:
    """The sum |d - 1|^2 + mu |d - before|^2 + mu |d - after|^2 is least at the weighted mean."""
    draw = np.random.default_rng(0)
    turned = random_rotations(draw, 3, 1)
    turned[turned @ (1.0, 0.0, 0.0, 0.0) < 0.0] *= -1.0
    turned[2] *= np.sign(turned[2, 0] @ (np.array((1.0, 0.0, 0.0, 0.0)) + 4.0 * turned[0, 0]))
    swept, smoothness = np.empty((1, 4)), np.array([1.0, 2.0, 4.0])
    around = np.ones((3, 1), np.uint8), np.array([-1, 0, 1]), np.array([1, 2, -1]), smoothness
    sweep_departures(turned.reshape(3, 4), *around, relaxes, np.array([1]), swept)
    weights = np.array([1.0, 2.0, 4.0])  # the larger smoothness counts between two frames
    best = (weights @ np.array([(1.0, 0.0, 0.0, 0.0), turned[0, 0], turned[2, 0]])) / weights.sum()
    best *= np.sign(best @ turned[1, 0])
    coupled = 4.0 / 5.0  # Young's optimal factor 2 / (1 + sqrt(1 - rho^2)) for the spectral radius rho
    factor = 2.0 / (1.0 + math.sqrt(1.0 - coupled**2)) if relaxes else 1.0
    beyond = turned[1, 0] + factor * (best - turned[1, 0])
    assert swept[0] == pytest.approx(beyond / np.linalg.norm(beyond), abs=1e-14)


def eight(count: int, size: float = 3.0) -> Array:
    """(F, 3) a figure of eight through the rest axis of a chain."""
    turn = np.linspace(0.0, 2.0 * math.pi, FRAMES)
    height = np.full(FRAMES, 0.85 * count)
    return np.stack((size * np.sin(turn), height, 0.7 * size * np.sin(2.0 * turn)), axis=1)


def frames_of(
    skeleton: Skeleton,
    points: Array,
    base: Array | None = None,
    ring: int = 0,
    settings: SolverSettings | None = None,
) -> Frames:
    """Frames whose last bone's tail goes to points; with `ring` frames going round."""
    count, size = len(skeleton), len(points)
    goal = PositionGoal(f"bone{count - 1}", Vector((0.0, float(count), 0.0)))
    settings = settings or SolverSettings(position_tolerance=TOLERANCE)
    search = PoseSearch(skeleton, [goal], settings)
    if base is None:
        base = np.zeros((size, count, 4))
        base[..., 0] = 1.0
    before, after = np.arange(size) - 1, np.arange(size) + 1
    after[-1] = -1
    if ring:
        before[0], after[ring - 1] = ring - 1, 0
        before[ring:] = after[ring:] = -1
    starts = search.templates if settings.restarts else None
    kind = Kind(search, (points,), Bones.of(skeleton), np.array([TOLERANCE]), starts)
    return Frames(
        (kind,),
        np.zeros(size, np.intp),
        np.arange(size),
        base,
        np.zeros((size, count, 3)),
        np.arange(size),
        before,
        after,
        closes=0 < ring < size,
    )


class Motion(NamedTuple):
    """The result of `solve_motion`."""

    solved: Solved
    apart: Array


def solved(frames: Frames, smoothness: float, most_raise: float = module.MOST_RAISE) -> Motion:
    """All of it."""
    work = solve_motion(frames, smoothness, most_raise)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return Motion(*end.value)


def angles(one: Array, other: Array) -> Array:
    """Degrees between (..., 4) rotations, by their own arithmetic."""
    cosine = np.abs((one * other).sum(-1)) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)
    return np.asarray(np.degrees(2.0 * np.arccos(np.minimum(cosine, 1.0))))


def largest_turn(motion: Motion) -> float:
    turned = motion.solved.rotations
    return float(angles(turned[:-1], turned[1:]).max())


def departure(frames: Frames, motion: Motion) -> float:
    """Root mean square, degrees."""
    return float(np.sqrt((angles(frames.rotations, motion.solved.rotations) ** 2).mean()))


@pytest.mark.parametrize(("count", "size"), [(12, 3.0), (12, 2.0), (6, 1.5), (20, 5.0)])
def test_no_pop_where_a_target_goes_through_the_rest_axis(count: int, size: float) -> None:
    frames = frames_of(chain(count), eight(count, size))
    alone, smooth = solved(frames, 0.0), solved(frames, 5.0)
    assert largest_turn(alone) > 15.0
    assert largest_turn(smooth) < 8.0
    assert departure(frames, smooth) < 1.03 * departure(frames, alone)
    assert (smooth.solved.statuses == 0).all() and (smooth.solved.distances <= TOLERANCE).all()


def test_what_nothing_asks_to_smooth_keeps_its_bits() -> None:
    frames = frames_of(chain(12), eight(12))
    alone, smooth = solved(frames, 0.0), solved(frames, 5.0)
    same = (alone.solved.rotations == smooth.solved.rotations).all(axis=(1, 2))
    assert same.sum() > FRAMES // 2 and not same.all()
    moved = angles(alone.solved.rotations, smooth.solved.rotations).max(axis=1)
    assert np.degrees(smooth.apart) == pytest.approx(moved, abs=1e-4)
    for row in range(0, FRAMES, 7):
        rows = np.array([row])
        assert (frames.solve(rows).rotations == alone.solved.rotations[rows]).all()


@pytest.mark.parametrize("seed", [11, 18, 19])
def test_what_a_stretch_gets_does_not_depend_on_others(seed: int) -> None:
    """The target goes to and fro: many stretches are smoothed, some of them by more smoothness."""
    rng, places = random.Random(seed), range(0, 244, 9)
    drawn = [(rng.uniform(-2.0, 2.0), rng.uniform(-2.0, 2.0), rng.uniform(0.2, 3.0)) for _ in places]
    points = np.stack([np.interp(range(235), places, axis) for axis in zip(*drawn, strict=True)], axis=1)
    motions = [solved(frames_of(chain(4), points[:count]), 5.0) for count in (235, 130)]
    stretches = []
    for motion in motions:
        changed = np.flatnonzero(motion.apart)
        runs = np.split(changed, np.flatnonzero(np.diff(changed) > 1) + 1)
        stretches.append([run for run in runs if len(run) and run[-1] < 90])
    assert [list(run) for run in stretches[0]] == [list(run) for run in stretches[1]] != []
    whole, part = (motion.solved.rotations for motion in motions)
    assert all((whole[run] == part[run]).all() for run in stretches[0])


@pytest.mark.parametrize("part", [0.0, 1e9])
def test_parts_change_no_bit(part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = frames_of(chain(12), eight(12))
    expected = solved(frames, 5.0).solved.rotations
    monkeypatch.setattr(module, "CHUNK_SECONDS", part)
    assert (solved(frames, 5.0).solved.rotations == expected).all()


@pytest.mark.parametrize("limit", [SwingTwist(Cone(0.5), (-0.3, 0.3)), Hinge(X, -0.9, 0.9)])
def test_smoothing_breaks_no_limit(limit: Limit) -> None:
    points = eight(12, 2.0)
    if isinstance(limit, Hinge):
        points[:, 0] = 0.0  # hinges about x move in one plane
    frames = frames_of(chain(12, limit), points)
    smooth = solved(frames, 5.0)
    off = [violation(limit, Quaternion(q)) for pose in smooth.solved.rotations for q in pose]
    assert max(off) < 1e-6
    met = smooth.solved.statuses == 0
    assert (smooth.solved.distances[met] <= TOLERANCE).all()
    assert met.sum() >= (solved(frames, 0.0).solved.statuses == 0).sum()


def two_sided(hinge: float = 2.5) -> tuple[Skeleton, Array, Array]:
    """A hinged elbow whose base motion bends to one side, to the other and back; and targets of one reach."""
    skeleton = chain(2, None).replace({"bone1": {"limit": Hinge(X, -hinge, hinge)}})
    base = np.zeros((FRAMES, 2, 4))
    base[..., 0] = 1.0
    bends = -0.6 + 0.62 * np.cos(np.linspace(0.0, 2.0 * math.pi, FRAMES))
    base[:, 1, 0], base[:, 1, 1] = np.cos(0.5 * bends), np.sin(0.5 * bends)
    points = np.tile((0.0, 1.2, 0.0), (FRAMES, 1))
    points[:, 2] = 0.3 * np.sin(np.linspace(0.0, 4.0 * math.pi, FRAMES))
    return skeleton, base, points


def test_of_two_ways_the_motion_takes_one() -> None:
    skeleton, base, points = two_sided()
    frames = frames_of(skeleton, points, base)
    alone, smooth = solved(frames, 0.0), solved(frames, 5.0)
    assert largest_turn(alone) > 60.0  # the elbow's base bends to both sides
    assert largest_turn(smooth) < 8.0
    assert (smooth.solved.statuses == 0).all()


@pytest.mark.parametrize("ring", [FRAMES - 1, FRAMES])
def test_a_loop_is_solved_round_and_round(ring: int) -> None:
    """The last frame is the first once more, or comes before it."""
    turn = np.linspace(0.0, 2.0 * math.pi, ring, endpoint=False)
    if ring < FRAMES:
        turn = np.append(turn, 2.0 * math.pi)
    points = np.stack((2.0 * np.sin(turn), np.full(FRAMES, 10.0), 1.5 * np.sin(2.0 * turn)), axis=1)
    frames = frames_of(chain(12), points, ring=ring)
    smooth = solved(frames, 5.0)
    first, last = smooth.solved.rotations[[0, -1]]
    assert angles(first, last).max() < (0.2 if ring < FRAMES else 8.0)
    assert largest_turn(smooth) < 8.0


def test_frames_that_cannot_be_met_move_without_pops() -> None:
    points = 1.5 * eight(6, 3.0)  # some way out of reach
    frames = frames_of(chain(6, SwingTwist(Cone(0.6), (-0.2, 0.2))), points)
    smooth = solved(frames, 5.0)
    assert (smooth.solved.statuses != 0).sum() > FRAMES // 4
    assert np.isfinite(smooth.solved.rotations).all()
    assert largest_turn(smooth) < 20.0


@pytest.mark.parametrize(("limit", "is_tried"), [(None, False), (SwingTwist(Cone(0.3), (-0.2, 0.2)), True)])
def test_only_targets_within_reach_are_tried_again(
    limit: Limit | None, is_tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the length of the chain, other starts lead nowhere; short of it limits may be in the way."""
    tried: list[bool] = []
    solve = Kind.solve

    def counted(*arguments: Any, **options: Any) -> Solved:
        tried.append(bool(arguments[5]))
        return solve(*arguments, **options)

    monkeypatch.setattr(Kind, "solve", counted)
    points = np.array([(2.0, 1.0 if is_tried else 6.0, 0.5)] * 2)
    missed = solved(frames_of(chain(3, limit), points), 0.0).solved
    assert (missed.statuses != 0).all()
    assert any(tried) == is_tried


@pytest.mark.parametrize("seed", few_of([65, 144, 152], 1))
def test_sweeps_of_frames_that_miss_end_where_nothing_is_gained(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every pose near the neighbours is taken, a jump goes over the clip, in 14 solves a frame."""
    skeleton, points, _ = wandering(seed)
    counts, solve = list[int](), Kind.solve

    def counted(kind: Kind, rows: Array, *arguments: Any) -> Solved:
        counts.append(len(rows))
        return solve(kind, rows, *arguments)

    monkeypatch.setattr(Kind, "solve", counted)
    motion = solved(frames_of(skeleton, -points), 5.0, 1.0)
    assert (motion.solved.statuses != 0).sum() > FRAMES // 4
    assert sum(counts) < 12 * FRAMES


@pytest.mark.parametrize("seed", [8, 15, 63, 154])
def test_a_way_that_another_start_finds_goes_on_to_the_frames_beside(seed: int) -> None:
    """Six hinges whose rest leads into a dead end, and targets of poses inside their limits."""
    rng, axes = random.Random(seed), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    hinges = []
    for _ in range(6):
        lower, upper = -rng.uniform(0.3, 2.0), rng.uniform(0.3, 2.0)
        hinges.append(Hinge(axes[rng.randrange(3)], lower, upper))
    limits = {f"bone{i}": {"limit": hinge} for i, hinge in enumerate(hinges)}
    skeleton = chain(6).replace(limits)
    first = [rng.uniform(hinge.lower, hinge.upper) for hinge in hinges]
    last = [
        min(max(angle + rng.uniform(-0.2, 0.2), hinge.lower), hinge.upper)
        for angle, hinge in zip(first, hinges, strict=True)
    ]
    points = []
    for part in np.linspace(0.0, 1.0, 31):
        bends = [(1.0 - part) * a + part * b for a, b in zip(first, last, strict=True)]
        turned = [Quaternion(Vector(hinge.axis), bend) for hinge, bend in zip(hinges, bends, strict=True)]
        pose = Pose(tuple(turned), (Vector(),) * 6)
        points.append(forward_kinematics(skeleton, pose)[-1].point(Vector((0.0, 1.0, 0.0)))[:])
    found = {}
    for restarts in (0, 8):
        settings = SolverSettings(position_tolerance=TOLERANCE, restarts=restarts)
        found[restarts] = solved(frames_of(skeleton, np.array(points), settings=settings), 5.0)
    assert (found[0].solved.statuses != 0).all()
    assert (found[8].solved.statuses == 0).all()
    assert largest_turn(found[8]) < 2.0


@pytest.mark.parametrize("seed", [84, 180, 185])
def test_frames_that_miss_go_on_from_neighbours_that_miss_less(seed: int) -> None:
    """Three hinges of a plane whose target is out of reach; a grid over their angles has the least misses.

    Alone frames of these miss by 0.3 to 0.9 more, behind a bound that the nearest way runs into.
    """
    rng, size = np.random.default_rng(seed), 31
    limits = [(float(rng.uniform(-2.0, 0.0)), float(rng.uniform(0.0, 2.0))) for _ in range(3)]
    hinges = {f"bone{i}": {"limit": Hinge((0.0, 0.0, 1.0), *each)} for i, each in enumerate(limits)}
    turns, lengths = rng.uniform(-math.pi, math.pi, 2), rng.uniform(0.5, 3.5, 2)
    first, last = np.stack((lengths * np.cos(turns), lengths * np.sin(turns), np.zeros(2)), 1)
    points = first + np.linspace(0.0, 1.0, size)[:, None] * (last - first)
    angles_of = np.meshgrid(*[np.linspace(*each, 41) for each in limits], indexing="ij")
    summed = np.cumsum(angles_of, axis=0)
    x, y = -np.sin(summed).sum(0), np.cos(summed).sum(0)
    least = np.array([np.sqrt(((x - a) ** 2 + (y - b) ** 2).min()) for a, b, _ in points])
    motion = solved(frames_of(chain(3).replace(hinges), points), 5.0)
    assert (motion.solved.distances[:, 0] < 1.05 * least + 0.02).all()


def wandering(seed: int, joints: range = range(2, 7)) -> tuple[Skeleton, Array, Array]:
    """Hinges, cones and free joints that follow curves inside their limits; points of the tip; the turns."""
    rng = random.Random(seed)
    count = rng.randrange(joints.start, joints.stop)
    limits: dict[str, dict[str, Limit]] = {}
    turns = []
    times = np.linspace(0.0, 2.0 * math.pi, FRAMES, endpoint=False)
    for i in range(count):
        waves = [(rng.uniform(0, 2 * math.pi), rng.choice((1, 1, 2)), rng.uniform(0.2, 0.9)) for _ in "xz"]
        x, z = (size * np.sin(rounds * times + start) for start, rounds, size in waves)
        kind = rng.choice(("hinge", "cone", "free"))
        if kind == "hinge":
            lower, upper = -rng.uniform(0.05, 0.3), rng.uniform(1.2, 2.4)
            limits[f"bone{i}"] = {"limit": Hinge(X, lower, upper)}
            x, z = 0.5 * (lower + upper) + 0.45 * (upper - lower) * x / waves[0][2], 0.0 * z
        elif kind == "cone":
            radius = rng.uniform(0.5, 1.3)
            limits[f"bone{i}"] = {"limit": SwingTwist(Cone(radius), (-math.pi, math.pi))}
            inside = np.minimum(1.0, 0.9 * radius / np.maximum(np.hypot(x, z), 1e-9))
            x, z = x * inside, z * inside
        turns.append([Quaternion(Vector((a, 0.0, b))) for a, b in zip(x, z, strict=True)])
    skeleton = chain(count).replace(limits)
    poses = [Pose(pose, (Vector(),) * count) for pose in zip(*turns, strict=True)]
    points = [forward_kinematics(skeleton, pose)[-1].point(Vector((0.0, 1.0, 0.0)))[:] for pose in poses]
    return skeleton, np.array(points), np.array(turns).swapaxes(0, 1)


@pytest.mark.parametrize("seed", few_of([245, 113, 183, 108, 255, 258], 2))
def test_smoothness_is_raised_where_the_motion_still_jumps(seed: int) -> None:
    skeleton, points, turns = wandering(seed)
    frames = frames_of(skeleton, points)
    raised = solved(frames, 5.0)
    assert largest_turn(solved(frames, 5.0, 1.0)) > 20.0
    assert largest_turn(raised) < 3.5 * angles(turns[:-1], turns[1:]).max() < 20.0
    assert (raised.solved.statuses == 0).all()
    off = [
        violation(joint.limit, Quaternion(q))
        for pose in raised.solved.rotations
        for joint, q in zip(skeleton.joints, pose, strict=True)
        if joint.limit is not None
    ]
    assert max(off, default=0.0) < 1e-6


@pytest.mark.parametrize("count", [2, 3])
def test_smoothness_is_not_raised_where_a_target_leaves_the_reach(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bend of a chain falls with the square root of what is left of its reach: no motion is smoother."""
    solve, rows = Kind.solve, list[int]()

    def counted(kind: Kind, which: Array, *arguments: Any) -> Solved:
        rows.extend(which)
        return solve(kind, which, *arguments)

    monkeypatch.setattr(Kind, "solve", counted)
    way = np.linspace(0.0, 1.0, 20)[:, None]
    points = count * ((1.0 - way) * (0.3, 0.6, 0.2) + way * (1.3, 0.7, 0.0))
    motions, solves = list[Motion](), list[int]()
    for most_raise in (1.0, module.MOST_RAISE):
        rows.clear()
        motions.append(solved(frames_of(chain(count), points), 5.0, most_raise))
        solves.append(len(rows))
    met = motions[0].solved.statuses == 0
    assert met[:3].all() and not met[-3:].any() and largest_turn(motions[0]) > math.degrees(module.JUMP)
    assert (motions[0].solved.rotations == motions[1].solved.rotations).all()
    assert solves[0] == solves[1]


@pytest.mark.parametrize("seed", [28, 55, 57, 60, 76, 85])
def test_joints_of_long_chains_share_what_a_quick_target_explains(seed: int) -> None:
    skeleton, points, turns = wandering(seed, range(7, 15))
    points, turns = points[::4], turns[::4]
    smooth = solved(frames_of(skeleton, points), 5.0)
    assert largest_turn(smooth) < 1.8 * angles(turns[:-1], turns[1:]).max()
    assert (smooth.solved.statuses == 0).all()


@pytest.mark.parametrize("upper", [1.9, 2.2])
def test_a_bend_that_ends_at_a_limit_gives_way_to_the_other_from_the_first_frame(upper: float) -> None:
    """An elbow that comes up to its limit towards the end of the clip, and has room on the other side."""
    skeleton = chain(2).replace({"bone1": {"limit": Hinge(X, -2.9, upper)}})
    base = np.zeros((FRAMES, 2, 4))
    base[:, 0, 0], base[:, 1, 0], base[:, 1, 1] = 1.0, math.cos(0.3), math.sin(0.3)
    bends = np.linspace(1.0, 2.3, FRAMES)
    points = 2.0 * np.cos(0.5 * bends)[:, None] * (0.0, math.cos(0.3), math.sin(0.3))
    frames = frames_of(skeleton, points, base)
    assert largest_turn(solved(frames, 5.0, 1.0)) > 90.0
    smooth = solved(frames, 5.0)
    assert largest_turn(smooth) < 2.0
    assert (smooth.solved.statuses == 0).all()


@pytest.mark.parametrize("seed", [35, 359])
def test_what_more_smoothness_costs_is_bounded(seed: int) -> None:
    """By the sum at the largest smoothness: what would need more departures than that keeps its jump."""
    skeleton, points, _ = wandering(seed)
    frames = frames_of(skeleton, points)
    sums = []
    for most_raise in (1.0, module.MOST_RAISE):
        rotations = solved(frames, 5.0, most_raise).solved.rotations
        jumps = np.radians(angles(rotations[:-1], rotations[1:])) ** 2  # the base poses are at rest
        departed = np.radians(angles(frames.rotations, rotations)) ** 2
        sums.append(departed.sum() + 5.0 * module.MOST_RAISE * jumps.sum())
    assert sums[1] <= sums[0] * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("ring", "expected"),
    [(0, [[0, 1], [3], [6, 7], [9]]), (10, [[9, 0, 1], [3], [6, 7]]), (9, [[0, 1], [3], [6, 7], [9]])],
)
def test_stretches_of_neighbours(ring: int, expected: list[list[int]]) -> None:
    """With a ring of nine the last frame repeats the first, and has no neighbours."""
    frames = frames_of(chain(1), np.ones((10, 3)), ring=ring)
    chosen = np.isin(np.arange(10), np.concatenate(expected))
    assert [stretch.tolist() for stretch in module._stretches(frames, chosen)] == expected
    if ring:
        assert module._stretches(frames, np.arange(10) < ring)[0].tolist() == list(range(ring))


# --- the best path ------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator, counts: Sequence[int]) -> list[list[Any]]:
    """Ways of random departures of two joints."""
    turned = [rng.normal(size=(count, 2, 4)) for count in counts]
    return [
        [module._Branch(None, q / np.linalg.norm(q, axis=-1, keepdims=True)) for q in each]  # type: ignore[arg-type]
        for each in turned
    ]


def cost(path: Sequence[Any], ends: Sequence[Array | None], smoothness: float) -> float:
    row = [*(end for end in ends[:1]), *(way.turned for way in path), *(end for end in ends[1:])]
    jumps = sum(
        module._square_between(a, b) for a, b in itertools.pairwise(row) if a is not None and b is not None
    )
    return sum(way.departed for way in path) + smoothness * jumps


@pytest.mark.parametrize("seed", range(20))
def test_the_cheapest_path_is_the_least_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    options = drawn(rng, rng.integers(1, 4, rng.integers(1, 5)).tolist())
    ends = [each[0].turned if rng.random() < 0.5 else None for each in drawn(rng, [1, 1])]
    least, path = module._cheapest(options, ends[0], ends[1], 3.0)
    every = [cost(ways, ends, 3.0) for ways in itertools.product(*options)]
    assert least == pytest.approx(min(every))
    assert cost([each[k] for each, k in zip(options, path, strict=True)], ends, 3.0) == pytest.approx(least)


def test_a_planar_chain_below_a_target_beside_its_plane_keeps_its_bend() -> None:
    """No frame meets its goal, and both bends of the chain miss it by the same."""
    skeleton = chain(5, Hinge(X, -2.0, 2.0))
    turn = np.linspace(0.0, 2.0 * math.pi, FRAMES)
    points = np.stack((1.6 * np.sin(2 * turn) + 1.0, 2.4 + 1.2 * np.sin(turn), 2.4 * np.cos(turn)), axis=1)
    alone, swept = (solved(frames_of(skeleton, points), smoothness) for smoothness in (0.0, 5.0))
    assert (swept.solved.statuses != 0).all()
    assert (swept.solved.distances <= alone.solved.distances + TOLERANCE).all()
    assert largest_turn(alone) > 100.0
    assert largest_turn(swept) < 15.0


def turning_frames(order: Sweep) -> Frames:
    """Twelve bones whose end goes a figure of eight and turns, by CCD alone."""
    skeleton, points = chain(12), eight(12)
    end = Vector((0.0, 12.0, 0.0))
    goals = [PositionGoal("bone11", end), OrientationGoal("bone11", Quaternion())]
    settings = SolverSettings(
        solver=Solver.CCD, sweep=order, error_reduction=0.95, position_tolerance=TOLERANCE, restarts=0
    )
    search = PoseSearch(skeleton, goals, settings)
    turn = np.linspace(0.0, 2.0 * math.pi, FRAMES)
    axis = np.stack((np.sin(turn), np.zeros(FRAMES), np.sin(2.0 * turn)), axis=1)
    half = 0.3 * np.linalg.norm(axis, axis=1)
    wanted = np.concatenate((np.cos(half)[:, None], np.sinc(half / math.pi)[:, None] * 0.3 * axis), axis=1)
    frames = frames_of(skeleton, points, settings=settings)
    kind = Kind(search, (points, wanted), Bones.of(skeleton), np.array([TOLERANCE]), None)
    return replace(frames, kinds=(kind,))


@pytest.mark.parametrize("order", [Sweep.TIP_TO_ROOT, Sweep.ROOT_TO_TIP])
def test_ccd_alone_goes_on_from_the_start_it_is_given(order: Sweep) -> None:
    frames = turning_frames(order)
    turned = solved(frames, 0.0).solved.rotations
    jumps = angles(turned[:-1], turned[1:]).max(axis=1)
    row = int(jumps.argmax())
    goes_on = frames.solve(np.array([row + 1]), start=turned[row][None])
    assert goes_on.statuses[0] == 0
    assert angles(goes_on.rotations[0], turned[row]).max() < 0.2 * jumps[row]


def test_sweeps_of_ccd_alone_end_without_a_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    frames, solves, real = turning_frames(Sweep.TIP_TO_ROOT), [0], Kind.solve

    def counted(kind: Kind, rows: Any, *args: Any, **options: Any) -> Solved:
        solves[0] += len(rows)
        return real(kind, rows, *args, **options)

    assert largest_turn(solved(frames, 0.0)) > 60.0
    monkeypatch.setattr(Kind, "solve", counted)
    smooth = solved(frames, 5.0)
    assert largest_turn(smooth) < 12.0
    assert (smooth.solved.statuses == 0).all()
    assert solves[0] <= 5 * FRAMES
