"""One step of one joint by CCD, beside its best move: by Kabsch's matrix, a scan, a projection."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from chains import FLOAT32, random_rotation
from mathutils import Matrix, Quaternion, Vector
from seeds import few_and_all, few_of

from ccd_rig.goals import (
    BalanceGoal,
    DirectionGoal,
    Goal,
    OrientationGoal,
    PositionGoal,
    centre_of_mass,
)
from ccd_rig.kernel import LEVER
from ccd_rig.limits.shapes import Cone, Hinge, Limit, Slide, SwingTwist
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import Solver, SolverSettings
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import Transform, forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import solve

AXES = (Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0)))
TOLERANCE = 1e-5
ROUNDING = 2e-5
"""Of sums of squares of some units in single precision."""

Weighted = tuple[Vector, Vector, float]
"""Where a vector points, where it should point, and how much that weighs."""


def stepped(
    skeleton: Skeleton, start: Pose, goals: Sequence[Goal], iterations: int = 1, **fields: float
) -> Pose:
    """The pose after that many passes of CCD."""
    chosen: dict[str, float] = {"step_fraction": 1.0, **fields}
    settings = SolverSettings(
        solver=Solver.CCD,
        max_iterations=iterations,
        restarts=0,
        position_tolerance=TOLERANCE,
        angle_tolerance=TOLERANCE,
        **chosen,
    )
    return solve(skeleton, start, goals, settings).pose


def random_vector(rng: random.Random, size: float = 1.0) -> Vector:
    return Vector([rng.gauss(0.0, size) for _ in range(3)])


def on_a_base(rng: random.Random, limit: Limit | None = None, **fields: object) -> tuple[Skeleton, Pose]:
    """A bone on a turned base that stays where it is, and any pose of both."""
    base = Joint("base", -1, random_vector(rng), random_rotation(rng), 0.7, stiffness=1.0)
    bone = Joint("bone", 0, random_vector(rng), random_rotation(rng), rng.uniform(0.3, 2.0), limit, **fields)
    skeleton = Skeleton([base, bone])
    turned = random_rotation(rng)
    if isinstance(limit, Hinge):
        turned = Quaternion(limit.axis, rng.uniform(limit.lower, limit.upper))
    return skeleton, Pose((random_rotation(rng), turned), Pose.rest(skeleton).translations)


def weighted_goals(
    skeleton: Skeleton, start: Pose, kinds: str, rng: random.Random, on_shell: bool
) -> list[Goal]:
    """Goals of the bone by their initials: p(osition), o(rientation), d(irection).

    Positions on the shell are as far from the bone's head as what should be there.
    """
    bone = forward_kinematics(skeleton, start)[1]
    goals: list[Goal] = []
    for kind in kinds:
        weight, turn = (
            rng.uniform(0.1, 3.0),
            Quaternion(random_vector(rng).normalized(), rng.uniform(0.2, 1.2)),
        )
        if kind == "p":
            offset = random_vector(rng)
            arm = turn @ (bone.rotation @ offset)
            target = bone.translation + arm * (1.0 if on_shell else rng.uniform(0.4, 2.5))
            goals.append(PositionGoal("bone", target, offset, weight))
        elif kind == "o":
            goals.append(OrientationGoal("bone", turn @ bone.rotation, weight))
        else:
            axis = random_vector(rng).normalized()
            goals.append(DirectionGoal("bone", axis, turn @ (bone.rotation @ axis), weight))
    return goals


def pairs_of(skeleton: Skeleton, bone: Transform, goals: Sequence[Goal]) -> list[Weighted]:
    """What goals say of vectors from the bone's head, by their definition.

    A radian off a frame or an axis counts as `LEVER` of the longest chain.
    """
    pairs: list[Weighted] = []
    reach = max(goal.reach(skeleton) for goal in goals)
    for goal in goals:
        if isinstance(goal, PositionGoal):
            arm = bone.rotation @ goal.effector(skeleton)
            pairs.append((arm, goal.target - bone.translation, goal.weight))
            continue
        weight = goal.weight * (LEVER * reach) ** 2
        if isinstance(goal, OrientationGoal):
            pairs += [(bone.rotation @ axis, goal.target @ axis, weight) for axis in AXES]
        else:
            assert isinstance(goal, DirectionGoal)
            pairs.append((bone.rotation @ goal.axis, goal.target, weight))
    return pairs


def cost(skeleton: Skeleton, pose: Pose, goals: Sequence[Goal]) -> float:
    """Sum of w |a - b|^2."""
    pairs = pairs_of(skeleton, forward_kinematics(skeleton, pose)[1], goals)
    return math.fsum(weight * (a - b).length_squared for a, b, weight in pairs)


def is_nearer(skeleton: Skeleton, pose: Pose, start: Pose, goals: Sequence[Goal]) -> bool:
    """Whether a pose is nearer by the measure of results, w (distance^2 + (lever angle)^2).

    Of angles it differs from the sum that a step minimises, of distances it does not.
    """
    lever, sums = LEVER * max(goal.reach(skeleton) for goal in goals), []
    for each in (pose, start):
        transforms = forward_kinematics(skeleton, each)
        errors = [(goal.weight, measure(goal, skeleton, transforms)) for goal in goals]
        sums.append(math.fsum(w * (error.distance**2 + (lever * error.angle) ** 2) for w, error in errors))
    return sums[0] < 0.999 * sums[1]


def kabsch(pairs: Sequence[Weighted]) -> tuple[np.ndarray, float]:
    """The matrix R that minimises sum w |R a - b|^2 (Kabsch 1976), and how well it is determined.

    The second is the least curvature of the sum at R, in parts of the largest.
    """
    profile = sum(w * np.outer(np.array(b[:]), np.array(a[:])) for a, b, w in pairs)
    left, sizes, right = np.linalg.svd(profile)
    sign = np.sign(np.linalg.det(left) * np.linalg.det(right))
    return left @ np.diag((1.0, 1.0, sign)) @ right, (sizes[1] + sign * sizes[2]) / (sizes[0] + sizes[1])


@pytest.mark.parametrize(
    ("kinds", "on_shell"),
    [
        *((kinds, True) for kinds in ("pp", "ppp", "po", "pd", "dd", "ppo", "oo", "pod")),
        ("pp", False),
        ("ppp", False),
    ],
)
@pytest.mark.parametrize("seeds", few_and_all(7, 20))
def test_a_ball_joint_turns_to_where_kabsch_has_it(kinds: str, on_shell: bool, seeds: range) -> None:
    """Targets off the shell take a pass more: the first points the bone at one of them."""
    compared = 0
    for seed in seeds:
        rng = random.Random(f"{kinds} {seed}")
        skeleton, start = on_a_base(rng)
        goals = weighted_goals(skeleton, start, kinds, rng, on_shell)
        base, bone = forward_kinematics(skeleton, start)
        pairs = pairs_of(skeleton, bone, goals)
        turn, determined = kabsch(pairs)
        frame = base.rotation @ skeleton.joints[1].rest_rotation
        turned = frame.conjugated() @ Matrix(turn.tolist()).to_quaternion() @ bone.rotation
        best = start.with_rotations({1: turned.normalized()})
        if not is_nearer(skeleton, best, start, goals):
            continue
        pose = stepped(skeleton, start, goals, 1 if on_shell else 2)
        least = sum(w * np.square(turn @ np.array(a[:]) - np.array(b[:])).sum() for a, b, w in pairs)
        scale = sum(w * (a.length_squared + b.length_squared) for a, b, w in pairs)
        assert cost(skeleton, pose, goals) == pytest.approx(least, abs=ROUNDING * scale), seed
        if determined > 0.1:
            compared += 1
            assert angle_between(pose.rotations[1], best.rotations[1]) <= 1e-4, seed
    assert compared >= 0.2 * len(seeds)


@pytest.mark.parametrize("seed", few_of(range(60), 15))
def test_a_ball_joint_turns_its_one_effector_by_the_shortest_arc(seed: int) -> None:
    rng = random.Random(seed)
    skeleton, start = on_a_base(rng)
    (goal,) = weighted_goals(skeleton, start, "p", rng, seed % 2 == 0)
    before = forward_kinematics(skeleton, start)[1]
    ((arm, way, _),) = pairs_of(skeleton, before, [goal])
    after = forward_kinematics(skeleton, stepped(skeleton, start, [goal]))[1]
    assert (after.rotation @ goal.effector(skeleton)).angle(way) <= 1e-3  # of an arc cosine
    assert angle_between(before.rotation, after.rotation) == pytest.approx(arm.angle(way), abs=1e-4)


@pytest.mark.parametrize("width", [0.3, 2.0, 2.0 * math.pi])
@pytest.mark.parametrize("seeds", few_and_all(15, 50))
def test_a_hinge_turns_to_the_best_angle_of_a_scan(width: float, seeds: range) -> None:
    """Inside its range; also where the range is narrow and what is best lies beyond it."""
    compared = 0
    for seed in seeds:
        rng = random.Random(seed)
        lower = rng.uniform(-3.0, 1.0)
        hinge = Hinge(random_vector(rng).normalized(), lower, lower + width)
        skeleton, start = on_a_base(rng, hinge)
        goals = weighted_goals(skeleton, start, rng.choice(("pp", "po", "pd", "d", "ppd")), rng, True)
        rest = start.with_rotations({1: Quaternion()})
        pairs = pairs_of(skeleton, forward_kinematics(skeleton, rest)[1], goals)
        frames = forward_kinematics(skeleton, rest)[1].rotation
        axis = frames @ Vector(hinge.axis)
        angles = np.linspace(hinge.lower, hinge.upper, 4001)
        total = np.zeros_like(angles)
        n = np.array(axis[:])
        for a, b, w in ((np.array(a[:]), np.array(b[:]), w) for a, b, w in pairs):
            # Rodrigues' formula.
            along, across = n * (n @ a), a - n * (n @ a)
            turned = along + np.cos(angles)[:, None] * across + np.sin(angles)[:, None] * np.cross(n, across)
            total += w * np.square(turned - b).sum(1)
        best = start.with_rotations({1: Quaternion(hinge.axis, angles[total.argmin()])})
        if not is_nearer(skeleton, best, start, goals):
            continue
        compared += 1
        pose = stepped(skeleton, start, goals)
        scale = sum(w * (a.length_squared + b.length_squared) for a, b, w in pairs)
        assert cost(skeleton, pose, goals) == pytest.approx(total.min(), abs=ROUNDING * scale), seed
        assert hinge.lower - FLOAT32 <= hinge_angle(pose.rotations[1], hinge) <= hinge.upper + FLOAT32
    assert compared >= 0.6 * len(seeds)


def hinge_angle(rotation: Quaternion, hinge: Hinge) -> float:
    """The angle about a hinge's axis, in the turn about the middle of its range."""
    angle = 2.0 * math.atan2(Vector(rotation[1:]).dot(Vector(hinge.axis)), rotation.w)
    middle = 0.5 * (hinge.lower + hinge.upper)
    return angle - 2.0 * math.pi * round((angle - middle) / (2.0 * math.pi))


@pytest.mark.parametrize("way", [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.6, -0.8, 0.0)])
def test_a_bone_turns_to_what_is_straight_behind_it(way: tuple[float, float, float]) -> None:
    skeleton, target = Skeleton([Joint("bone")]), -Vector(way)
    pose = stepped(skeleton, Pose.rest(skeleton), [PositionGoal("bone", target, way)])
    assert (pose.rotations[0] @ Vector(way) - target).length < FLOAT32


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("seeds", few_and_all(30, 100))
def test_slides_shift_to_the_projection_of_what_is_missed(count: int, seeds: range) -> None:
    """Each slide by the weighted mean of the ways along it, as far as its range goes."""
    for seed in seeds:
        rng = random.Random(f"{count} {seed}")
        turn = random_rotation(rng)
        slides = tuple(
            Slide(turn @ axis, -rng.uniform(0.0, 1.0), rng.uniform(0.0, 1.0)) for axis in AXES[:count]
        )
        skeleton, start = on_a_base(rng, SwingTwist(Cone(0.0), (0.0, 0.0)), slides=slides)
        start = start.with_rotations({1: Quaternion()})
        base, bone = forward_kinematics(skeleton, start)
        goals = []
        for _ in range(rng.randrange(1, 4)):
            offset = random_vector(rng)
            goals.append(
                PositionGoal(
                    "bone", bone.point(offset) + random_vector(rng, 0.7), offset, rng.uniform(0.1, 3.0)
                )
            )
        beside = PositionGoal("base", base.translation)  # which the slides do not move
        shift = stepped(skeleton, start, [beside, *goals]).translations[1]
        # A slide lies in the axes of the joint at rest.
        frame = base.rotation @ skeleton.joints[1].rest_rotation
        ways = [goal.target - bone.point(goal.offset) for goal in goals]
        weights = math.fsum(goal.weight for goal in goals)
        for slide in slides:
            axis = Vector(slide.axis)
            way = math.fsum(
                goal.weight * way.dot(frame @ axis) for goal, way in zip(goals, ways, strict=True)
            )
            best = min(max(way / weights, slide.lower), slide.upper)
            assert shift.dot(axis) == pytest.approx(best, abs=FLOAT32), seed


@pytest.mark.parametrize("seed", few_of(range(40), 10))
def test_a_turn_for_balance_points_the_mass_above_a_joint_to_where_it_is_wanted(seed: int) -> None:
    """The mass that a joint carries moves on a sphere: the best point there is the one towards the target."""
    rng = random.Random(seed)
    skeleton, start = on_a_base(rng, mass=rng.uniform(0.5, 2.0))
    skeleton = skeleton.replace({"base": {"mass": rng.uniform(0.5, 2.0)}})
    target = random_vector(rng)
    pose = stepped(skeleton, start, [BalanceGoal(target, (True, True, True))])
    base, bone = forward_kinematics(skeleton, start)
    masses, lengths = ([getattr(joint, name) for joint in skeleton.joints] for name in ("mass", "length"))
    still = masses[0] * base.point(Vector((0.0, 0.5 * lengths[0], 0.0))) + masses[1] * bone.translation
    reach = 0.5 * lengths[1] * masses[1] / sum(masses)
    away = (target - still / sum(masses)).length
    centre = centre_of_mass(skeleton, forward_kinematics(skeleton, pose))
    assert (centre - target).length == pytest.approx(abs(away - reach), abs=1e-4)


@pytest.mark.parametrize("seed", few_of(range(40), 10))
def test_fraction_stiffness_and_largest_step_scale_the_best_turn(seed: int) -> None:
    rng = random.Random(seed)
    stiffness, fraction, most = rng.choice((0.0, 0.3, 0.8)), rng.uniform(0.2, 1.0), rng.choice((0.2, math.pi))
    skeleton, start = on_a_base(rng, stiffness=stiffness, max_step=most)
    goals = weighted_goals(skeleton, start, rng.choice(("p", "d", "pp")), rng, True)
    before = forward_kinematics(skeleton, start)[1]
    pairs = pairs_of(skeleton, before, goals)
    if len(pairs) == 1:
        best = pairs[0][0].angle(pairs[0][1])
    else:
        turn, determined = kabsch(pairs)
        if determined < 0.1:
            return
        best = math.acos(max(-1.0, min(1.0, 0.5 * (np.trace(turn) - 1.0))))
    after = forward_kinematics(skeleton, stepped(skeleton, start, goals, step_fraction=fraction))[1]
    wanted = min(fraction * (1.0 - stiffness) * best, most)
    assert angle_between(before.rotation, after.rotation) == pytest.approx(wanted, abs=2e-4)
