"""Passes of CCD: which joint steps after which, how a step is shared out, and what no step may do."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from chains import FLOAT32, desired_turn, legal_pose, random_couplings, random_rotation, straight, tail, tip
from mathutils import Quaternion, Vector
from seeds import few_and_all, few_of

from ccd_rig.goals import (
    BalanceGoal,
    DirectionGoal,
    Goal,
    OrientationGoal,
    PositionGoal,
    centre_of_mass,
)
from ccd_rig.kernel.ccd import SMART_GAIN, SMART_THRESHOLD
from ccd_rig.limits.shapes import Comfort, Hinge, Limit, Slide
from ccd_rig.maths.rotations import angle_of
from ccd_rig.settings import Solver, SolveResult, SolverSettings, SolveStatus, Sweep
from ccd_rig.skeleton.joints import CoupledOffset, Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import iterate, solve

ONE_PASS = {
    "solver": Solver.CCD,
    "max_iterations": 1,
    "restarts": 0,
    "position_tolerance": 1e-6,
    "angle_tolerance": 1e-6,
}
X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


def mixed_chain(rng: random.Random, count: int, hinges: float = 0.4) -> Skeleton:
    """Ball joints and hinges, whose best step is exact; crooked rests, unequal bones."""
    joints: list[Joint] = []
    for i in range(count):
        limit: Limit | None = None
        if rng.random() < hinges:
            lower = rng.uniform(-3.0, 0.0)
            limit = Hinge([rng.gauss(0.0, 1.0) for _ in range(3)], lower, lower + rng.uniform(0.5, 3.0))
        offset = (0.0, joints[-1].length, 0.0) if i else (0.1, 0.2, 0.3)
        joints.append(Joint(f"joint{i}", i - 1, offset, random_rotation(rng), rng.uniform(0.5, 1.5), limit))
    return Skeleton(joints)


def heavy_tree(rng: random.Random, count: int, hinges: float) -> Skeleton:
    """A tree of the same, with masses and slides, whose joints do not all inherit rotation."""
    joints: list[Joint] = []
    for i, joint in enumerate(mixed_chain(rng, count, hinges).joints):
        parent = rng.randrange(max(0, i - 3), i) if i else -1
        slides = (Slide([rng.gauss(0.0, 1.0) for _ in range(3)], -0.3, 0.3),) if rng.random() < 0.3 else ()
        fields = {"parent": parent, "mass": rng.uniform(0.1, 2.0), "inherit_rotation": rng.random() > 0.2}
        joints.append(replace(joint, slides=slides, **fields))
    return Skeleton(joints)


def one_step(skeleton: Skeleton, pose: Pose, i: int, goal: Goal) -> Pose:
    """The pose after the best step of joint i alone, all others locked."""
    others = {joint.name: {"stiffness": 1.0} for k, joint in enumerate(skeleton.joints) if k != i}
    settings = SolverSettings(step_fraction=1.0, **ONE_PASS)
    return solve(skeleton.replace(others), pose, [goal], settings).pose


def order_of(sweep: Sweep, skeleton: Skeleton, pose: Pose, target: Vector) -> Sequence[int]:
    """The joints that one pass visits, by the definition of each order."""
    count = len(skeleton)
    tip_to_root = list(range(count))[::-1]
    bounces = [range(last) for last in range(1, count + 1)]
    if sweep is Sweep.ROOT_TO_TIP:
        return tip_to_root[::-1]
    if sweep in (Sweep.TIP_TO_ROOT, Sweep.ALTERNATING):
        return tip_to_root
    if sweep is Sweep.BOUNCE_ROOT:
        return list(itertools.chain(*bounces))
    if sweep is Sweep.BOUNCE_TIP:
        return [count - 1 - i for i in itertools.chain(*bounces)]
    return sorted(range(count), key=lambda i: -desired_turn(skeleton, pose, i, target))


@pytest.mark.parametrize("sweep", [each for each in Sweep if each is not Sweep.SMART_BOUNCE])
@pytest.mark.parametrize("seeds", few_and_all(8, 25))
def test_a_pass_is_a_step_of_every_joint_in_its_order(sweep: Sweep, seeds: range) -> None:
    compared = 0
    for seed in seeds:
        rng = random.Random(seed)
        skeleton = mixed_chain(rng, rng.randrange(2, 6))
        start = legal_pose(skeleton, rng)
        target = tail(skeleton, legal_pose(skeleton, rng))
        goal = PositionGoal(tip(skeleton), target)
        turns = sorted(desired_turn(skeleton, start, i, target) for i in range(len(skeleton)))
        if min(b - a for a, b in itertools.pairwise(turns)) < 1e-3:
            continue  # two joints would turn alike: either may come first
        step_by_step = start
        for i in order_of(sweep, skeleton, start, target):
            step_by_step = one_step(skeleton, step_by_step, i, goal)
        settings = SolverSettings(sweep=sweep, step_fraction=1.0, **ONE_PASS)
        result = solve(skeleton, start, [goal], settings)
        if result.status is SolveStatus.CONVERGED:
            continue  # the pass ended early
        compared += 1
        assert result.iterations == 1
        assert (tail(skeleton, result.pose) - tail(skeleton, step_by_step)).length <= 20.0 * FLOAT32, seed
    assert compared >= 0.6 * len(seeds)


@pytest.mark.parametrize("kind", ["position", "orientation", "direction"])
@pytest.mark.parametrize("seeds", few_and_all(6, 25))
def test_a_smart_bounce_goes_back_to_its_start_while_the_error_falls(kind: str, seeds: range) -> None:
    """After each correction above a threshold, where the square error is a part of what it was by then."""
    compared = 0
    for seed in seeds:
        rng = random.Random(f"{kind} {seed}")
        skeleton = mixed_chain(rng, 5, 0.4 if kind == "position" else 1.0)
        start, reachable = legal_pose(skeleton, rng), legal_pose(skeleton, rng)
        turned = forward_kinematics(skeleton, reachable)[4].rotation
        goal: Goal = PositionGoal("joint4", tail(skeleton, reachable))
        if kind == "orientation":
            goal = OrientationGoal("joint4", turned)
        elif kind == "direction":
            goal = DirectionGoal("joint4", X, turned @ Vector(X))
        pose, visits, at, before = start, 0, 4, -1.0
        while at >= 0 and visits < 5 * 6 // 2:
            last, pose = pose, one_step(skeleton, pose, at, goal)
            error = measure(goal, skeleton, forward_kinematics(skeleton, pose))
            square = error.distance**2 + error.angle**2
            correction = angle_of(pose.rotations[at] @ last.rotations[at].inverted())
            back = at < 4 and correction > SMART_THRESHOLD and (before < 0.0 or square < SMART_GAIN * before)
            at, before, visits = (4, square, visits + 1) if back else (at - 1, before, visits + 1)
        settings = SolverSettings(sweep=Sweep.SMART_BOUNCE, step_fraction=1.0, **ONE_PASS)
        result = solve(skeleton, start, [goal], settings)
        if result.status is SolveStatus.CONVERGED:
            continue  # the pass ended early
        compared += visits > 7  # it went back more than once
        assert result.errors[0].distance == pytest.approx(error.distance, abs=50.0 * FLOAT32), seed
        assert result.errors[0].angle == pytest.approx(error.angle, abs=50.0 * FLOAT32), seed
    assert compared > 0.3 * len(seeds)


@pytest.mark.parametrize("seeds", few_and_all(20, 100))
def test_on_a_still_joint_it_makes_no_difference_whether_its_rotation_is_inherited(seeds: range) -> None:
    """Effectors are carried along in another way, which ends passes at the same ones, but for rounding."""
    other = []
    for seed in seeds:
        rng = random.Random(seed)
        still = Joint("still", -1, (0.0, 0.0, 0.0), Quaternion(), 1.0, stiffness=1.0)
        trunk = [replace(joint, parent=i) for i, joint in enumerate(mixed_chain(rng, 4).joints)]
        arm = [replace(j, name=f"arm{i}", parent=4 + i if i else 2) for i, j in enumerate(trunk[:3])]
        skeleton = Skeleton([still, *trunk, *arm])
        start = legal_pose(skeleton, rng).with_rotations({0: Quaternion()})
        goals = [
            PositionGoal(name, [rng.uniform(-6.0, 6.0) for _ in range(3)]) for name in ("joint3", "arm2")
        ]
        settings = SolverSettings(solver=Solver.CCD, max_iterations=200, restarts=0)
        inherits = solve(skeleton, start, goals, settings)
        apart = solve(skeleton.replace({"joint0": {"inherit_rotation": False}}), start, goals, settings)
        if inherits.iterations != apart.iterations:
            other.append(f"solve {seed}: {inherits.iterations} and {apart.iterations} passes")
    assert len(other) <= 0.05 * len(seeds), "\n".join(other)


@pytest.mark.parametrize("kind", ["position", "rolling", "direction", "balance"])
@pytest.mark.parametrize("seeds", few_and_all(6, 16))
def test_a_pass_over_a_tree_is_a_step_of_every_joint(kind: str, seeds: range) -> None:
    """What each step moves of frames, slides, coupled offsets and masses is seen by the next."""
    compared = 0
    for seed in seeds:
        rng = random.Random(f"{kind} {seed}")
        skeleton = heavy_tree(rng, 6, 1.0 if kind == "direction" else 0.4)
        if kind == "rolling":
            skeleton = random_couplings(skeleton, rng)
        start, reachable = legal_pose(skeleton, rng), legal_pose(skeleton, rng)
        transforms = forward_kinematics(skeleton, reachable)
        goal: Goal = PositionGoal("joint5", tail(skeleton, reachable))
        if kind == "direction":
            axis = random_rotation(rng) @ Vector(X)
            goal = DirectionGoal("joint5", axis, transforms[5].rotation @ axis)
        elif kind == "balance":
            goal = BalanceGoal(centre_of_mass(skeleton, transforms), (True, True, True))
        step_by_step = start
        for i in goal.joints(skeleton):
            step_by_step = one_step(skeleton, step_by_step, i, goal)
        settings = SolverSettings(step_fraction=1.0, **ONE_PASS)
        result = solve(skeleton, start, [goal], settings)
        if result.status is SolveStatus.CONVERGED:
            continue  # the pass ended early
        compared += 1
        expected = measure(goal, skeleton, forward_kinematics(skeleton, step_by_step))
        assert result.errors[0].distance == pytest.approx(expected.distance, abs=50.0 * FLOAT32), seed
        assert result.errors[0].angle == pytest.approx(expected.angle, abs=50.0 * FLOAT32), seed
    assert compared > 0.3 * len(seeds)


def test_alternating_goes_back_from_the_root() -> None:
    rng = random.Random(4)
    for _ in range(10):
        skeleton = mixed_chain(rng, 4)
        start = legal_pose(skeleton, rng)
        goal = PositionGoal(tip(skeleton), tail(skeleton, legal_pose(skeleton, rng)))
        poses = [start]
        for order in ((3, 2, 1, 0), (0, 1, 2, 3)):
            pose = poses[-1]
            for i in order:
                pose = one_step(skeleton, pose, i, goal)
            poses.append(pose)
        settings = SolverSettings(
            sweep=Sweep.ALTERNATING, step_fraction=1.0, **{**ONE_PASS, "max_iterations": 2}
        )
        result = solve(skeleton, start, [goal], settings)
        assert (tail(skeleton, result.pose) - tail(skeleton, poses[-1])).length <= 50.0 * FLOAT32


@pytest.mark.parametrize("seeds", few_and_all(5, 40))
def test_what_a_pass_leaves_of_a_small_error(seeds: range) -> None:
    """The step of a free joint leaves the part of the error along its arm, from its head to the effector.

    Passes in one direction leave the product of the cosines between the arms of neighbours, round the chain.
    Passes by turns leave it without the cosine between the arms of root and tip: never less.
    """
    compared = 0
    for seed in seeds:
        rng = random.Random(seed)
        skeleton = straight(rng.randrange(2, 5))
        start = legal_pose(skeleton, rng)
        end = tail(skeleton, start)
        heads = [frame.translation for frame in forward_kinematics(skeleton, start)]
        arms = [(end - head).normalized() for head in heads]
        chain = math.prod(abs(a.dot(b)) for a, b in itertools.pairwise(arms))
        ends = abs(arms[0].dot(arms[-1]))
        if chain * ends < 0.05 or min((end - head).length for head in heads) < 0.3:
            continue
        target = end + 1e-4 * Vector([rng.gauss(0.0, 1.0) for _ in "xyz"]).normalized()
        goal = PositionGoal(tip(skeleton), target)
        for sweep, left in (
            (Sweep.TIP_TO_ROOT, chain * ends),
            (Sweep.ROOT_TO_TIP, chain * ends),
            (Sweep.ALTERNATING, chain),
        ):
            fields = {"sweep": sweep, "step_fraction": 1.0, "position_tolerance": 1e-9}
            after = [
                solve(skeleton, start, [goal], SolverSettings(**{**ONE_PASS, **fields, "max_iterations": n}))
                for n in (1, 2)
            ]
            first, second = ((tail(skeleton, each.pose) - target).length for each in after)
            assert second == pytest.approx(left * first, abs=2e-6), (seed, sweep)
        compared += 1
    assert compared > 0.3 * len(seeds)


def shared(skeleton: Skeleton, way: float, reduction: float, **fields: object) -> SolveResult:
    """One pass of a straight chain whose end is to move a little across."""
    target = (0.0, len(skeleton) - way * way, way)
    settings = SolverSettings(error_reduction=reduction, **ONE_PASS, **fields)
    return solve(skeleton, Pose.rest(skeleton), [PositionGoal(tip(skeleton), target)], settings)


@pytest.mark.parametrize("count", [2, 5, 20])
@pytest.mark.parametrize("limit", [None, Hinge(X, -1.0, 1.0)])
@pytest.mark.parametrize("reduction", [0.3, 0.95])
@pytest.mark.parametrize("slides", [(), (Slide(Y, 0.0, 0.0),)])
def test_error_reduction_shares_a_way_out_by_squared_levers(
    count: int, limit: Limit | None, reduction: float, slides: tuple[Slide, ...]
) -> None:
    """The step of least squared rotation: joint i turns by reduction * way * lever / sum of squares.

    Joints that only turn move at once, and take the whole way.
    """
    skeleton, way = straight(count, limit).replace({tip(straight(count)): {"slides": slides}}), 1e-3
    result = shared(skeleton, way, reduction)
    removed = reduction if slides else 1.0
    levers = [float(count - i) for i in range(count)]
    squares = math.fsum(lever * lever for lever in levers)
    for rotation, lever in zip(result.pose.rotations, levers, strict=True):
        assert 2.0 * rotation.x == pytest.approx(removed * way * lever / squares, rel=0.02)
    assert result.errors[0].distance == pytest.approx((1.0 - removed) * way, abs=0.03 * way)


@pytest.mark.parametrize("sweep", [Sweep.TIP_TO_ROOT, Sweep.ALTERNATING, Sweep.LARGEST_ERROR])
@pytest.mark.parametrize("reduction", [0.3, 0.95])
def test_error_reduction_is_what_a_pass_removes_in_other_orders(sweep: Sweep, reduction: float) -> None:
    result = shared(straight(6), 1e-3, reduction, sweep=sweep)
    assert result.errors[0].distance == pytest.approx((1.0 - reduction) * 1e-3, abs=3e-5)


@pytest.mark.parametrize("count", [20, 40, 100])
def test_long_chains_are_not_rolled_up(count: int) -> None:
    """As much as takes the end back to 0.4 of the length, in a bow: each joint a little, together no turn."""
    skeleton, settings = straight(count), SolverSettings(error_reduction=0.95, restarts=0)
    for direction in ((0.5, 0.8, 0.2), (0.1, 1.0, 0.0), (-0.4, 0.9, 0.3)):
        target = 0.4 * count * Vector(direction).normalized()
        result = solve(skeleton, Pose.rest(skeleton), [PositionGoal(tip(skeleton), target)], settings)
        assert result.status is SolveStatus.CONVERGED
        assert math.fsum(map(angle_of, result.pose.rotations)) < math.radians(400.0)


def test_a_straight_chain_and_its_line_with_shared_steps() -> None:
    """Pushed along itself a straight chain sees no side to bend to: no NaN, and a solve leaves it."""
    skeleton = straight(4)
    goal = PositionGoal("joint3", (0.0, 2.0, 0.0))
    for solver in Solver:
        settings = SolverSettings(solver=solver, error_reduction=0.95, position_tolerance=1e-3, restarts=0)
        result = solve(skeleton, Pose.rest(skeleton), [goal], settings)
        assert all(math.isfinite(number) for rotation in result.pose.rotations for number in rotation)
        assert result.status is SolveStatus.CONVERGED


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("distance", [0.5, 1.0, 2.0])
def test_a_joint_stops_at_its_comfort_tolerance_however_far_its_target_is(
    solver: Solver, distance: float
) -> None:
    skeleton = straight(1, comfort=Comfort(tolerance=0.2))
    goal = PositionGoal("joint0", (distance, 0.0, 0.0))
    result = solve(skeleton, Pose.rest(skeleton), [goal], SolverSettings(solver=solver, restarts=0))
    assert result.status is SolveStatus.STALLED
    assert angle_of(result.pose.rotations[0]) == pytest.approx(0.5 * math.pi - 0.2, abs=1e-5)


@pytest.mark.parametrize("distance", [0.5, 2.0, 30.0])
def test_the_largest_step_holds_however_far_a_target_is(distance: float) -> None:
    skeleton = straight(3, max_step=0.05)
    start = Pose.rest(skeleton)
    settings = SolverSettings(solver=Solver.CCD, sweep=Sweep.TIP_TO_ROOT, restarts=0)
    goal = PositionGoal("joint2", (distance, 0.0, 0.0))
    items = [start, *(item.pose for item in itertools.islice(iterate(skeleton, start, [goal], settings), 4))]
    for before, after in itertools.pairwise(items):
        for a, b in zip(before.rotations, after.rotations, strict=True):
            assert angle_of(a.conjugated() @ b) <= 0.05 + FLOAT32


def test_slides_that_start_beyond_their_range_are_brought_inside() -> None:
    """The goal is where the chain's end is then: nothing else moves."""
    slide = Slide(Y, -0.5, 0.5)
    skeleton = straight(3).replace({"joint1": {"slides": (slide,)}, "joint2": {"slides": (slide,)}})
    for outside, border in ((2.0, 0.5), (-0.7, -0.5)):
        shifts = (Vector(), Vector((0.0, outside, 0.0)), Vector((0.0, 0.3, 0.0)))
        start = Pose(Pose.rest(skeleton).rotations, shifts)
        goal = PositionGoal("joint2", (0.0, 3.3 + border, 0.0))
        for solver in Solver:
            result = solve(skeleton, start, [goal], SolverSettings(solver=solver))
            assert result.status is SolveStatus.CONVERGED and result.iterations == 0
            assert result.pose.rotations == start.rotations
            assert [shift.y for shift in result.pose.translations] == pytest.approx([0.0, border, 0.3])


@pytest.mark.parametrize("seed", few_of(range(60), 15))
def test_a_step_of_a_rolling_hinge_is_cut_until_it_comes_nearer(seed: int) -> None:
    """The best turn does not see what coupled offsets add to it: it may lead too far, or away."""
    rng = random.Random(seed)
    angles = (-1.5, -0.5, 0.5, 1.5)
    offset = CoupledOffset(
        "knee", [rng.gauss(0.0, 1.0) for _ in range(3)], angles, [rng.uniform(-0.6, 0.6) for _ in angles]
    )
    knee = Joint("knee", limit=Hinge(X, -2.0, 2.0))
    skeleton = Skeleton([knee, Joint("foot", 0, Y, coupled_offsets=(offset,), stiffness=1.0)])
    goal = PositionGoal("foot", [rng.uniform(-2.0, 2.0) for _ in range(3)])

    def posed(angle: float) -> Pose:
        return Pose.rest(skeleton).with_rotations({0: Quaternion(X, angle)})

    def missed(angle: float) -> float:
        return (tail(skeleton, posed(angle)) - goal.target).length

    at = rng.uniform(-1.5, 1.5)
    result = solve(skeleton, posed(at), [goal], SolverSettings(step_fraction=1.0, **ONE_PASS))
    assert result.errors[0].distance <= missed(at) + FLOAT32
    turn = math.copysign(1.0, tail(skeleton, posed(at)).cross(goal.target).x)
    if (missed(at + 0.01 * turn) - missed(at)) / 0.01 < -0.2:
        assert result.errors[0].distance < missed(at) - 1e-3
