"""The closing phase: its derivatives, and that it ends nearer, inside the limits and with little motion."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
from chains import (
    FLOAT32,
    legal_pose,
    random_couplings,
    random_rotation,
    random_skeleton,
    random_slides,
    shifted,
    straight,
    tail,
    tip,
)
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import (
    BalanceGoal,
    DirectionGoal,
    Goal,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
    centre_of_mass,
    measure,
)
from ccd_rig.limits.shapes import Cone, EulerBox, Hinge, ReversedLimit, Slide, SwingTwist, violation
from ccd_rig.maths.batch import matrix_logarithm
from ccd_rig.maths.rotations import angle_between
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares import closing_step
from ccd_rig.solvers.least_squares.closing import Descent, refine, refined
from ccd_rig.solvers.least_squares.pose_problem import PoseProblem
from ccd_rig.solvers.least_squares.problem import LEVER
from ccd_rig.solvers.least_squares.state import moved_state, stepped_balls

KINDS = ("position", "orientation", "direction", "pole", "balance")


def limits_of(skeleton: Skeleton) -> list[object]:
    return [joint.limit for joint in skeleton.joints]


def goal_of(kind: str, skeleton: Skeleton, rng: random.Random, pose: Pose | None = None) -> Goal:
    """A goal of a kind on a random joint; with a `pose` one that it meets."""
    joint = rng.choice(skeleton.joints)
    transforms = forward_kinematics(skeleton, pose or legal_pose(skeleton, rng))
    here = transforms[skeleton.index(joint.name)]
    weight = rng.uniform(0.5, 2.0)
    if kind == "position":
        offset = Vector([rng.uniform(-1.0, 1.0) for _ in range(3)])
        return PositionGoal(joint.name, here.point(offset), offset, weight)
    if kind == "orientation":
        return OrientationGoal(joint.name, here.rotation, weight)
    if kind == "direction":
        axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)])
        return DirectionGoal(joint.name, axis, here.rotation @ axis, weight)
    if kind == "pole":
        chain = skeleton.chain(len(skeleton) - 1)
        first = rng.randrange(len(chain) - 1)
        target = Vector([rng.uniform(-5.0, 5.0) for _ in range(3)])
        return PoleGoal(skeleton.joints[chain[first]].name, skeleton.joints[chain[-1]].name, target, weight)
    axes = rng.choice(((True, True, False), (True, False, False), (True, True, True)))
    return BalanceGoal(centre_of_mass(skeleton, transforms), axes, weight)


def varied(rng: random.Random, count: int) -> Skeleton:
    """A random tree, some joints of which slide, roll or do not inherit rotation; all have mass."""
    skeleton = random_skeleton(rng, count, tree=rng.random() < 0.5)
    changes = {}
    for joint in skeleton.joints:
        fields: dict[str, object] = {"mass": rng.uniform(0.1, 2.0), "inherit_rotation": rng.random() > 0.2}
        fields["slides"] = random_slides(rng)
        changes[joint.name] = fields
    return random_couplings(skeleton.replace(changes), rng)


def weighted(skeleton: Skeleton, pose: Pose, goals: list[Goal], reach: float) -> float:
    """The weighted square error, worked out from forward kinematics alone."""
    transforms = forward_kinematics(skeleton, pose)
    total = 0.0
    for goal in goals:
        error = measure(goal, skeleton, transforms)
        total += goal.weight * ((error.distance / reach) ** 2 + (LEVER * error.angle) ** 2)
    return total


def is_met(skeleton: Skeleton, pose: Pose, goals: list[Goal], position: float, angle: float) -> bool:
    """Whether every goal is within its tolerance."""
    transforms = forward_kinematics(skeleton, pose)
    errors = [measure(goal, skeleton, transforms) for goal in goals]
    return all(error.distance <= position and error.angle <= angle for error in errors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_slope_is_the_finite_difference(kind: str, seed: int) -> None:
    """Central differences of the residual agree with the slope, whatever the tree."""
    rng = random.Random(f"{kind} {seed}")
    skeleton = varied(rng, rng.randrange(3, 9))
    while kind == "pole" and len(skeleton.chain(len(skeleton) - 1)) < 2:
        skeleton = varied(rng, 6)
    goals = [goal_of(kind, skeleton, rng), goal_of("position", skeleton, rng)]
    problem = PoseProblem(skeleton, goals, limits_of(skeleton))
    given, state = problem.arrays(shifted(skeleton, legal_pose(skeleton, rng), rng))
    _, slope = problem.jacobian(given, problem.evaluate(given, state))
    assert slope.shape[1] == problem.layout.columns
    small = 1e-6

    def values(step: np.ndarray) -> np.ndarray:
        balls = stepped_balls(problem.layout, state, step)
        return problem.evaluate(
            given, moved_state(problem.layout, given, state, step, balls, problem.reach)
        ).values

    for column in range(problem.layout.columns):
        step = np.zeros((problem.layout.columns, 1))
        step[column] = small
        difference = (values(step) - values(-step)) / (2.0 * small)
        np.testing.assert_allclose(difference, slope[:, column], rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_misses_are_what_the_goals_measure(kind: str) -> None:
    for seed in range(40):
        rng = random.Random(f"{kind} {seed}")
        skeleton = varied(rng, 6)
        pose = shifted(skeleton, legal_pose(skeleton, rng), rng)
        goal = goal_of(kind, skeleton, rng)
        problem = PoseProblem(skeleton, [goal], limits_of(skeleton))
        error = measure(goal, skeleton, forward_kinematics(skeleton, pose))
        for residual in (problem.evaluate(*problem.arrays(pose)), problem.residual(pose)):
            if residual.angular[0, 0]:
                # Single precision cannot tell small angles of a pole's bend.
                assert residual.misses[0, 0] == pytest.approx(error.angle, abs=1e-4)
                assert error.distance == 0.0
            else:
                assert residual.misses[0, 0] == pytest.approx(error.distance, abs=FLOAT32 * 10.0)
                assert error.angle == 0.0


def test_random_skeletons_never_worse_and_inside_limits() -> None:
    """Reachable and unreachable goals of every kind: nearer or the same, no limit broken, every number
    finite."""
    met = 0
    for seed in range(250):
        rng = random.Random(seed)
        skeleton = varied(rng, rng.randrange(2, 9))
        wanted = shifted(skeleton, legal_pose(skeleton, rng), rng)
        kinds = [k for k in KINDS if k != "pole" or len(skeleton.chain(len(skeleton) - 1)) > 1]
        goals = [goal_of(rng.choice(kinds), skeleton, rng, wanted) for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.3:
            goals.append(PositionGoal(skeleton.joints[-1].name, Vector((30.0, 20.0, 10.0))))
        limits = limits_of(skeleton)
        problem = PoseProblem(skeleton, goals, limits)
        start = problem.clamped(shifted(skeleton, legal_pose(skeleton, rng), rng))
        before = weighted(skeleton, start, goals, problem.reach)
        found = refined(problem, start, Descent(1e-4, 1e-3, 60))
        after = weighted(skeleton, found.pose, goals, problem.reach)
        assert after <= before + FLOAT32 * max(1.0, before), seed
        met += is_met(skeleton, found.pose, goals, 1e-4, 1e-3)
        for i, joint in enumerate(skeleton.joints):
            rotation = found.pose.rotations[i]
            assert all(math.isfinite(part) for part in (*rotation, *found.pose.translations[i]))
            if i not in problem.layout.moved:
                assert rotation == start.rotations[i]
                continue
            if joint.limit is not None:
                assert violation(joint.limit, rotation) <= FLOAT32
            for slide in joint.slides:
                along = Vector(slide.axis).dot(found.pose.translations[i])
                assert slide.lower - FLOAT32 <= along <= slide.upper + FLOAT32
    assert met > 60


def test_pole_and_priority_together() -> None:
    """A pole turns the chain while its end stays on the target; a goal served later does not pull it away."""
    skeleton = straight(4)
    target = Vector((1.0, 1.5, 0.5))
    pole = PoleGoal("joint0", "joint3", Vector((3.0, 1.0, -6.0)))
    reach = PositionGoal("joint3", target)
    start = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.4) for i in range(4)})
    found = refine(skeleton, start, [reach, pole], [None] * 4, Descent(1e-4, 1e-3, 100))
    transforms = forward_kinematics(skeleton, found)
    assert measure(reach, skeleton, transforms).distance <= 1e-4
    assert measure(pole, skeleton, transforms).angle <= 1e-3
    away = PositionGoal("joint3", Vector((-2.0, 0.0, 1.0)), priority=1)
    found = refine(skeleton, start, [away, reach], [None] * 4, Descent(1e-4, 1e-3, 100))
    assert (tail(skeleton, found) - target).length <= 1e-3


def test_met_goal_leaves_the_pose_alone() -> None:
    rng = random.Random(1)
    skeleton = random_skeleton(rng, 6)
    pose = PoseProblem(skeleton, [goal_of("position", skeleton, rng)], limits_of(skeleton)).clamped(
        legal_pose(skeleton, rng)
    )
    goal = PositionGoal(tip(skeleton), tail(skeleton, pose))
    assert refine(skeleton, pose, [goal], limits_of(skeleton), Descent(1e-4, 1e-3, 50)) is pose


@pytest.mark.parametrize("twist", [None, (-0.3, 0.3)])
def test_fifty_joints_inside_cones(twist: tuple[float, float] | None) -> None:
    """Where sweeps creep: every random legal target is met to 1e-5 of the reach, after rounding to single
    precision."""
    cone = SwingTwist(Cone(math.radians(15.0)), twist)
    skeleton = straight(50, cone)
    rng = random.Random(5)
    for _ in range(12):
        goal = PositionGoal("joint49", tail(skeleton, legal_pose(skeleton, rng)))
        found = refine(skeleton, Pose.rest(skeleton), [goal], [cone] * 50, Descent(50e-5, 1e-3, 60))
        assert (tail(skeleton, found) - goal.target).length <= 50e-5
        assert max(violation(cone, rotation) for rotation in found.rotations) <= FLOAT32


@pytest.mark.parametrize("count", [3, 10, 100])
def test_tolerance_survives_rounding(count: int) -> None:
    """1e-5 of the reach, held against forward kinematics in single precision."""
    skeleton = straight(count)
    rng = random.Random(count)
    for _ in range(10):
        wanted = legal_pose(skeleton, rng)
        goal = PositionGoal(tip(skeleton), tail(skeleton, wanted))
        frame = OrientationGoal(tip(skeleton), forward_kinematics(skeleton, wanted)[-1].rotation)
        found = refine(
            skeleton, Pose.rest(skeleton), [goal, frame], [None] * count, Descent(1e-5 * count, 1e-5, 100)
        )
        transforms = forward_kinematics(skeleton, found)
        assert measure(goal, skeleton, transforms).distance <= 1e-5 * count
        assert measure(frame, skeleton, transforms).angle <= 1e-5


def test_small_motion_of_the_target_moves_joints_little() -> None:
    """A target moved by 1e-3 turns no joint by more than a few times that, along a path inside and at the
    limits."""
    cone = SwingTwist(Cone(math.radians(20.0)), (-0.2, 0.2))
    skeleton = straight(10, cone)
    pose = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.1) for i in range(10)})
    largest = 0.0
    for frame in range(400):
        angle = 2.5e-3 * frame
        target = Vector((7.5 * math.sin(angle), 7.5 * math.cos(angle), 0.4 * math.sin(3.0 * angle)))
        goal = PositionGoal("joint9", target)
        found = refine(skeleton, pose, [goal], [cone] * 10, Descent(1e-4, 1e-3, 60))
        assert (tail(skeleton, found) - target).length <= 1e-4
        if frame:
            turns = [angle_between(a, b) for a, b in zip(pose.rotations, found.rotations, strict=True)]
            largest = max(largest, *turns)
        pose = found
    # The target moves by 0.02 a frame: at least 0.0025 radians over the whole reach.
    assert largest < 0.02


def test_straight_chain_and_target_on_its_line() -> None:
    """Singular: every joint moves the end across, none along. No motion is lost and nothing is not finite."""
    skeleton = straight(5)
    bent = Pose.rest(skeleton).with_rotations({2: Quaternion((1.0, 0.0, 0.0), 1e-4)})
    for target in ((0.0, 3.0, 0.0), (0.0, 5.0, 0.0), (0.0, 50.0, 0.0), (0.0, 0.0, 0.0), (0.0, -50.0, 0.0)):
        goal = PositionGoal("joint4", Vector(target))
        for start in (Pose.rest(skeleton), bent):
            before = (tail(skeleton, start) - goal.target).length
            found = refine(skeleton, start, [goal], [None] * 5, Descent(1e-4, 1e-3, 100))
            assert all(math.isfinite(part) for rotation in found.rotations for part in rotation)
            assert (tail(skeleton, found) - goal.target).length <= before + FLOAT32


def test_target_out_of_reach_is_pointed_at() -> None:
    skeleton = straight(5)
    bent = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.2, 0.1), 0.3) for i in range(5)})
    target = Vector((20.0, 10.0, -5.0))
    found = refine(skeleton, bent, [PositionGoal("joint4", target)], [None] * 5, Descent(1e-4, 1e-3, 200))
    assert (tail(skeleton, found) - target).length == pytest.approx(target.length - 5.0, rel=1e-3)


@pytest.mark.parametrize("kind", ["orientation", "direction"])
def test_opposite_target(kind: str) -> None:
    """A half turn away every way is equally long: one is taken, and the goal is met."""
    skeleton = straight(3)
    goal: Goal = OrientationGoal("joint2", Quaternion((0.0, 1.0, 0.0, 0.0)))
    if kind == "direction":
        goal = DirectionGoal("joint2", Vector((0.0, 1.0, 0.0)), Vector((0.0, -1.0, 0.0)))
    found = refine(skeleton, Pose.rest(skeleton), [goal], [None] * 3, Descent(1e-4, 1e-3, 60))
    assert measure(goal, skeleton, forward_kinematics(skeleton, found)).angle <= 1e-3


def test_chain_length_stiffness_and_movable_are_kept() -> None:
    skeleton = straight(6).replace({"joint4": {"stiffness": 1.0}, "joint5": {"max_step": 0.0}})
    goal = PositionGoal("joint5", Vector((3.0, 3.0, 0.0)), chain_length=4)
    bent = Pose.rest(skeleton).with_rotations({2: Quaternion((1.0, 0.0, 0.0), 0.3)})
    found = refine(skeleton, bent, [goal], [None] * 6, Descent(1e-4, 1e-3, 60))
    moved = [i for i in range(6) if found.rotations[i] != bent.rotations[i]]
    assert moved == [2, 3]
    found = refine(skeleton, bent, [goal], [None] * 6, Descent(1e-4, 1e-3, 60), movable=(0, 2, 4))
    assert [i for i in range(6) if found.rotations[i] != bent.rotations[i]] == [2]


def test_stiff_joints_turn_less() -> None:
    free, stiff = straight(4), straight(4).replace({"joint0": {"stiffness": 0.9}})
    bent = Pose.rest(free).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.5) for i in range(4)})
    goal = PositionGoal("joint3", tail(free, bent) + Vector((0.01, 0.0, 0.01)))
    turns = []
    for skeleton in (free, stiff):
        found = refine(skeleton, bent, [goal], [None] * 4, Descent(1e-5, 1e-3, 60))
        assert (tail(skeleton, found) - goal.target).length <= 1e-5
        turns.append(angle_between(bent.rotations[0], found.rotations[0]))
    assert turns[1] < 0.5 * turns[0]


def test_a_slide_that_starts_outside_its_range_is_brought_to_its_border() -> None:
    slide = Slide((0.0, 0.6, 0.8), -0.5, 1.0)
    skeleton = Skeleton([Joint("lift", slides=(slide,))])
    problem = PoseProblem(skeleton, [PositionGoal("lift", (0.0, 0.0, 0.0))], limits_of(skeleton))
    for along, border in ((1.75, 1.0), (-0.75, -0.5)):
        given = Pose(Pose.rest(skeleton).rotations, (along * Vector(slide.axis),))
        (found,) = problem.clamped(given).translations
        assert (found - border * Vector(slide.axis)).length < FLOAT32


def test_slide_reaches_and_stops_at_its_end() -> None:
    slide = Slide((0.0, 0.0, 1.0), -0.5, 1.0)
    skeleton = Skeleton([Joint("lift", slides=(slide,), limit=SwingTwist(Cone(0.0), (0.0, 0.0)))])
    for height, wanted in ((0.7, 0.7), (3.0, 1.0), (-2.0, -0.5)):
        goal = PositionGoal("lift", Vector((0.0, 1.0, height)))
        found = refine(skeleton, Pose.rest(skeleton), [goal], limits_of(skeleton), Descent(1e-5, 1e-3, 60))
        assert found.translations[0].z == pytest.approx(wanted, abs=FLOAT32)
        assert found.rotations[0] == Quaternion()


def test_hinges_at_their_bounds_leave_the_rest_to_the_others() -> None:
    """Two of three hinges pressed against a bound: the third does all of it, exactly."""
    limits = [
        Hinge((1.0, 0.0, 0.0), -2.0, 2.0),
        Hinge((1.0, 0.0, 0.0), 0.5, 0.5),
        Hinge((1.0, 0.0, 0.0), 0.3, 1.0),
    ]
    skeleton = Skeleton(
        Joint(f"j{i}", i - 1, (0.0, float(i > 0), 0.0), limit=limit) for i, limit in enumerate(limits)
    )
    rest = Pose.rest(skeleton).with_rotations(
        {1: Quaternion((1.0, 0.0, 0.0), 0.5), 2: Quaternion((1.0, 0.0, 0.0), 0.3)}
    )
    wanted = rest.with_rotations({0: Quaternion((1.0, 0.0, 0.0), 1.2)})
    goal = PositionGoal("j2", tail(skeleton, wanted))
    found = refined(PoseProblem(skeleton, [goal], limits), rest, Descent(1e-5, 1e-3, 12))
    assert is_met(skeleton, found.pose, [goal], 1e-5, 1e-3)


def test_euler_boxes_at_gimbal_lock() -> None:
    """A box around its lock: the pose is taken as it is, and left."""
    for order in ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"):
        middle = "XYZ".index(order[1])
        lower, upper = [-0.5] * 3, [0.5] * 3
        lower[middle], upper[middle] = 0.2, math.pi / 2
        box = EulerBox(order, lower, upper)
        skeleton = straight(3, box)
        rng = random.Random(order)
        axis = Vector([float(a == middle) for a in range(3)])
        locked = Pose((Quaternion(axis, math.pi / 2),) * 3, Pose.rest(skeleton).translations)
        for _ in range(5):
            wanted = legal_pose(skeleton, rng)
            goal = PositionGoal("joint2", tail(skeleton, wanted))
            problem = PoseProblem(skeleton, [goal], [box] * 3)
            taken = problem.evaluate(*problem.arrays(locked))
            assert taken.misses[0, 0] == pytest.approx(
                (tail(skeleton, locked) - goal.target).length, abs=FLOAT32
            )
            found = refined(problem, locked, Descent(1e-4, 1e-3, 100))
            assert max(violation(box, rotation) for rotation in found.pose.rotations) <= FLOAT32


def test_reversed_limits() -> None:
    """Joints of a re-rooted skeleton: hinges turn the other way about their axis, cones are cones."""
    rng = random.Random(9)
    for inner in (
        Hinge((1.0, 0.0, 0.0), 0.1, 1.5),
        SwingTwist(Cone(0.6), (-0.3, 0.4)),
        EulerBox("XYZ", (-0.5,) * 3, (0.2,) * 3),
    ):
        limits = [ReversedLimit(inner, tuple(random_rotation(rng))) for _ in range(5)]
        skeleton = Skeleton(
            Joint(f"j{i}", i - 1, (0.0, float(i > 0), 0.0), limit=limit) for i, limit in enumerate(limits)
        )
        met = 0
        for _ in range(10):
            goal = PositionGoal("j4", tail(skeleton, legal_pose(skeleton, rng)))
            found = refined(
                PoseProblem(skeleton, [goal], limits), legal_pose(skeleton, rng), Descent(5e-5, 1e-3, 80)
            )
            met += is_met(skeleton, found.pose, [goal], 5e-5, 1e-3)
            for limit, rotation in zip(limits, found.pose.rotations, strict=True):
                assert violation(limit, rotation) <= FLOAT32
        assert met >= 8


def test_same_input_same_bits() -> None:
    rng = random.Random(11)
    skeleton = varied(rng, 8)
    goals = [goal_of("position", skeleton, rng), goal_of("orientation", skeleton, rng)]
    start = legal_pose(skeleton, rng)
    first, second = (
        refine(skeleton, start, goals, limits_of(skeleton), Descent(1e-5, 1e-4, 50)) for _ in range(2)
    )
    assert first == second


def test_rotation_vector_of_any_turn() -> None:
    rng = random.Random(3)
    for angle in (0.0, 1e-9, 1e-5, 0.5, 2.0, 3.1, math.pi - 1e-4, math.pi - 1e-8, math.pi):
        axis = np.array([rng.gauss(0.0, 1.0) for _ in range(3)])
        axis /= np.linalg.norm(axis)
        cross = np.array(((0.0, -axis[2], axis[1]), (axis[2], 0.0, -axis[0]), (-axis[1], axis[0], 0.0)))
        matrix = np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * (cross @ cross)
        found = matrix_logarithm(matrix[..., None])[:, 0]
        if angle == math.pi and found @ axis < 0.0:
            found = -found
        np.testing.assert_allclose(found, angle * axis, atol=1e-7)


def test_bad_input_is_refused() -> None:
    skeleton = straight(2)
    goal = PositionGoal("joint1", Vector((1.0, 0.0, 0.0)))
    with pytest.raises(InvalidInput, match="at least one goal"):
        refine(skeleton, Pose.rest(skeleton), [], [None] * 2, Descent(1e-4, 1e-3, 10))
    with pytest.raises(InvalidInput, match="2 joints, not 1"):
        refine(skeleton, Pose.rest(skeleton), [goal], [None], Descent(1e-4, 1e-3, 10))
    with pytest.raises(InvalidInput, match="3 joints"):
        refine(skeleton, Pose.rest(straight(3)), [goal], [None] * 2, Descent(1e-4, 1e-3, 10))
    with pytest.raises(InvalidInput, match="mass"):
        refine(skeleton, Pose.rest(skeleton), [BalanceGoal(Vector())], [None] * 2, Descent(1e-4, 1e-3, 10))
    with pytest.raises(InvalidInput, match="'other'"):
        refine(
            skeleton,
            Pose.rest(skeleton),
            [PositionGoal("other", Vector())],
            [None] * 2,
            Descent(1e-4, 1e-3, 10),
        )


def test_path_along_the_limits_is_followed() -> None:
    """A closed path that bends 20 joints to their 15-degree cones: every frame is met from the one before."""
    cone = SwingTwist(Cone(math.radians(15.0)))
    skeleton = straight(20, cone)
    pose = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.06) for i in range(20)})
    for frame in range(250):
        angle = 2.0 * math.pi * frame / 250
        target = Vector((9.0 * math.sin(angle), 11.0 + 3.0 * math.cos(2.0 * angle), 6.0 * math.cos(angle)))
        found = refine(
            skeleton, pose, [PositionGoal("joint19", target)], [cone] * 20, Descent(2e-3, 1e-3, 60)
        )
        assert (tail(skeleton, found) - target).length <= 2e-3, frame
        assert max(violation(cone, rotation) for rotation in found.rotations) <= FLOAT32
        pose = found


@pytest.mark.parametrize(
    ("step", "part"),
    [
        ((0.6, 0.0, 0.0, 0.0, 0.0), 0.5),  # the hinge
        ((0.2, 0.0, 2.4, 0.0, 0.0), 0.5),  # the ball joint
        ((0.3, 1.2, 0.0, 0.0, 1.2), 1.0),
        ((0.1, 0.0, 0.0, 0.0, 4.8), 0.25),  # the slide
    ],
)
def test_no_joint_turns_farther_in_a_step_than_it_may(step: tuple[float, ...], part: float) -> None:
    layout = SimpleNamespace(first_ball=1, first_slide=4, columns=5)
    problem = SimpleNamespace(layout=layout, longest=np.array([0.3, 1.2, 1.2, 1.2, 1.2]))
    assert closing_step._part(problem, np.array(step)) == pytest.approx(part)


@pytest.mark.parametrize(("along", "inside"), [(-0.7, -0.2), (0.1, 0.1), (0.9, 0.5)])
def test_a_slide_outside_its_range_is_brought_to_its_end(along: float, inside: float) -> None:
    slide = Slide((0.0, 0.6, 0.8), -0.2, 0.5)
    skeleton = Skeleton([Joint("root", length=1.0, slides=(slide,))])
    goal = PositionGoal("root", Vector((0.0, 0.0, 3.0)))
    aside = Vector((0.3, 0.0, 0.0))
    pose = Pose((Quaternion(),), (aside + along * Vector(slide.axis),))
    found = PoseProblem(skeleton, [goal], [None]).clamped(pose)
    assert (found.translations[0] - aside - inside * Vector(slide.axis)).length < 10 * FLOAT32
