"""Single solves by least squares: limits, rounding, small motion, and what may not move."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from chains import FLOAT32, legal_pose, random_rotation, straight, tail, tip
from mathutils import Quaternion, Vector

from ccd_rig.goals import (
    DirectionGoal,
    Goal,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
)
from ccd_rig.limits.shapes import Cone, EulerBox, Hinge, ReversedLimit, Slide, SwingTwist, violation
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import SolveResult, SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.pose_search import PoseSearch
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import solve


def refined(
    skeleton: Skeleton, start: Pose, goals: list[Goal], position: float = 1e-4, angle: float = 1e-3
) -> SolveResult:
    """A solve without other starts."""
    settings = SolverSettings(position_tolerance=position, angle_tolerance=angle, restarts=0)
    return solve(skeleton, start, goals, settings)


def test_pole_and_priority_together() -> None:
    """A pole turns the chain while its end stays on the target; a goal served later does not pull it away."""
    skeleton = straight(4)
    target = Vector((1.0, 1.5, 0.5))
    pole = PoleGoal("joint0", "joint3", Vector((3.0, 1.0, -6.0)))
    reach = PositionGoal("joint3", target)
    start = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.4) for i in range(4)})
    solved = refined(skeleton, start, [reach, pole]).pose
    transforms = forward_kinematics(skeleton, solved)
    assert measure(reach, skeleton, transforms).distance <= 1e-4
    assert measure(pole, skeleton, transforms).angle <= 1e-3
    away = PositionGoal("joint3", Vector((-2.0, 0.0, 1.0)), priority=1)
    solved = refined(skeleton, start, [away, reach]).pose
    assert (tail(skeleton, solved) - target).length <= 1e-3


@pytest.mark.parametrize("twist", [None, (-0.3, 0.3)])
def test_fifty_joints_inside_cones(twist: tuple[float, float] | None) -> None:
    """Where sweeps creep: every random legal target is met to 1e-5 of the reach, after rounding to single
    precision."""
    cone = SwingTwist(Cone(math.radians(15.0)), twist)
    skeleton = straight(50, cone)
    rng = random.Random(5)
    for _ in range(12):
        goal = PositionGoal("joint49", tail(skeleton, legal_pose(skeleton, rng)))
        solved = refined(skeleton, Pose.rest(skeleton), [goal], 50e-5).pose
        assert (tail(skeleton, solved) - goal.target).length <= 50e-5
        assert max(violation(cone, rotation) for rotation in solved.rotations) <= FLOAT32


@pytest.mark.parametrize("count", [3, 10, 100])
def test_tolerance_survives_rounding(count: int) -> None:
    """1e-5 of the reach, held against forward kinematics in single precision."""
    skeleton = straight(count)
    rng = random.Random(count)
    for _ in range(10):
        wanted = legal_pose(skeleton, rng)
        goal = PositionGoal(tip(skeleton), tail(skeleton, wanted))
        frame = OrientationGoal(tip(skeleton), forward_kinematics(skeleton, wanted)[-1].rotation)
        solved = refined(skeleton, Pose.rest(skeleton), [goal, frame], 1e-5 * count, 1e-5).pose
        transforms = forward_kinematics(skeleton, solved)
        assert measure(goal, skeleton, transforms).distance <= 1e-5 * count
        assert measure(frame, skeleton, transforms).angle <= 1e-5


def test_small_motion_of_the_target_moves_joints_little() -> None:
    """Near the pose before, along a path inside the limits and at them."""
    cone = SwingTwist(Cone(math.radians(20.0)), (-0.2, 0.2))
    skeleton = straight(10, cone)
    pose = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.1) for i in range(10)})
    largest = 0.0
    for frame in range(400):
        angle = 2.5e-3 * frame
        target = Vector((7.5 * math.sin(angle), 7.5 * math.cos(angle), 0.4 * math.sin(3.0 * angle)))
        goal = PositionGoal("joint9", target)
        solved = solve(skeleton, pose, [goal], SolverSettings(restarts=0), reference=pose).pose
        assert (tail(skeleton, solved) - target).length <= 1e-4
        if frame:
            turns = [angle_between(a, b) for a, b in zip(pose.rotations, solved.rotations, strict=True)]
            largest = max(largest, *turns)
        pose = solved
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
            solved = refined(skeleton, start, [goal]).pose
            assert all(math.isfinite(part) for rotation in solved.rotations for part in rotation)
            assert (tail(skeleton, solved) - goal.target).length <= before + FLOAT32


@pytest.mark.parametrize("kind", ["orientation", "direction"])
def test_opposite_target(kind: str) -> None:
    """A half turn away every way is equally long: one is taken, and the goal is met."""
    skeleton = straight(3)
    goal: Goal = OrientationGoal("joint2", Quaternion((0.0, 1.0, 0.0, 0.0)))
    if kind == "direction":
        goal = DirectionGoal("joint2", Vector((0.0, 1.0, 0.0)), Vector((0.0, -1.0, 0.0)))
    solved = refined(skeleton, Pose.rest(skeleton), [goal]).pose
    assert measure(goal, skeleton, forward_kinematics(skeleton, solved)).angle <= 1e-3


def test_stiff_joints_turn_less() -> None:
    free, stiff = straight(4), straight(4).replace({"joint0": {"stiffness": 0.9}})
    bent = Pose.rest(free).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.5) for i in range(4)})
    goal = PositionGoal("joint3", tail(free, bent) + Vector((0.01, 0.0, 0.01)))
    turns = []
    for skeleton in (free, stiff):
        solved = refined(skeleton, bent, [goal], 1e-5).pose
        assert (tail(skeleton, solved) - goal.target).length <= 1e-5
        turns.append(angle_between(bent.rotations[0], solved.rotations[0]))
    assert turns[1] < 0.5 * turns[0]


def test_slide_reaches_and_stops_at_its_end() -> None:
    slide = Slide((0.0, 0.0, 1.0), -0.5, 1.0)
    skeleton = Skeleton([Joint("lift", slides=(slide,), limit=SwingTwist(Cone(0.0), (0.0, 0.0)))])
    for height, wanted in ((0.7, 0.7), (3.0, 1.0), (-2.0, -0.5)):
        goal = PositionGoal("lift", Vector((0.0, 1.0, height)))
        solved = refined(skeleton, Pose.rest(skeleton), [goal], 1e-5).pose
        assert solved.translations[0].z == pytest.approx(wanted, abs=FLOAT32)
        assert solved.rotations[0] == Quaternion()


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
    result = refined(skeleton, rest, [goal], 1e-5)
    assert result.status is SolveStatus.CONVERGED and result.iterations <= 12


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
            result = refined(skeleton, locked, [goal])
            before = (tail(skeleton, locked) - goal.target).length
            assert result.errors[0].distance <= before + FLOAT32
            assert max(violation(box, rotation) for rotation in result.pose.rotations) <= FLOAT32


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
            result = refined(skeleton, legal_pose(skeleton, rng), [goal], 5e-5)
            met += result.status is SolveStatus.CONVERGED
            for limit, rotation in zip(limits, result.pose.rotations, strict=True):
                assert violation(limit, rotation) <= FLOAT32
        assert met >= 8


def test_path_along_the_limits_is_followed() -> None:
    """A closed path that bends 20 joints to their 15-degree cones: every frame is met from the one before."""
    cone = SwingTwist(Cone(math.radians(15.0)))
    skeleton = straight(20, cone)
    pose = Pose.rest(skeleton).with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.06) for i in range(20)})
    for frame in range(250):
        angle = 2.0 * math.pi * frame / 250
        target = Vector((9.0 * math.sin(angle), 11.0 + 3.0 * math.cos(2.0 * angle), 6.0 * math.cos(angle)))
        solved = refined(skeleton, pose, [PositionGoal("joint19", target)], 2e-3).pose
        assert (tail(skeleton, solved) - target).length <= 2e-3, frame
        assert max(violation(cone, rotation) for rotation in solved.rotations) <= FLOAT32
        pose = solved


def test_goals_that_say_the_same_at_far_larger_weights_give_a_pose() -> None:
    """More rows than freedom, 10,000 times as heavy as others and far out of reach: no number overflows."""
    cone = SwingTwist(swing=Cone(3.0558738708496094), twist=(0.0, 0.0))
    turned = Quaternion((0.6950797438621521, 0.6950798034667969, 0.1298619657754898, 0.1298619657754898))
    bent = Quaternion((0.8474442362785339, 0.0, 0.5308844447135925, 0.0))
    skeleton = Skeleton(
        [
            Joint(
                "arm",
                offset=Vector((19.2017155, -12.0058136, -19.6762409)),
                rest_rotation=turned,
                length=100.0,
            ),
            Joint("hand", 0, Vector((0.0, 100.0, 0.0)), bent, 125.218521, limit=cone),
        ]
    )
    end = Vector((0.0200964473, 125.0002975, 0.2048811167))
    aim = Quaternion((0.43087443, -0.70703709, -0.39014664, -0.40277955)).normalized()
    weak = Quaternion((0.04245201, -0.77944480, 0.30052569, -0.54804008)).normalized()
    heavy = 10_000.0
    goals: list[Goal] = [
        PositionGoal("hand", Vector((121.834198, -59.2127876, -136.730347)), end, heavy, 6),
        PoleGoal("arm", "hand", Vector((1.88632417, -1.46108949, 1.81851518)), heavy, 7, end, 1.0),
        PositionGoal("arm", Vector((-25.7261581, 12.1363707, -26.66646)), None, heavy, 6),
        OrientationGoal("arm", aim, heavy, 6),
        PositionGoal(
            "arm", Vector((-34.6569748, -233.398041, -31.8342037)), Vector((-0.2, 100.2, 0.1)), 1.0, 0, 2
        ),
        OrientationGoal("arm", weak, 1.0, 0, 1),
    ]
    start = Pose(
        (
            Quaternion((0.92066604, 0.0397131, -0.35725486, -0.15220332)).normalized(),
            Quaternion((-0.87645429, 0.29637033, 0.12820998, 0.35714799)).normalized(),
        ),
        (Vector(), Vector()),
    )
    settings = SolverSettings(position_tolerance=1e-4, angle_tolerance=1e-3, restarts=2)
    result = solve(skeleton, start, goals, settings)
    assert all(abs(rotation.magnitude - 1.0) < FLOAT32 for rotation in result.pose.rotations)
    assert violation(cone, result.pose.rotations[1]) <= FLOAT32
    assert result.status is not SolveStatus.CONVERGED


def test_more_steps_never_end_farther_from_the_reference_and_no_step_exceeds_the_budget() -> None:
    """A pose on its goal slides towards the reference; the last step counts only if it came nearer."""
    skeleton, ends = straight(8), 0
    for seed in (2, 3, 9, 13):
        rng = random.Random(seed)
        turns = {
            i: Quaternion([1.0] + [rng.gauss(0.0, 0.3) for _ in range(3)]).normalized() for i in range(8)
        }
        reference = Pose.rest(skeleton).with_rotations(turns)
        target = rng.uniform(2.0, 7.0) * Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        search = PoseSearch(skeleton, [PositionGoal(tip(skeleton), target)], SolverSettings(restarts=0))
        nearest = math.inf
        for budget in range(2, 40):
            solved = search.solve(*reference.arrays, [np.array([target])], reference.arrays, budget=budget)
            assert solved.steps[0] <= budget
            if solved.statuses[0] == 0:
                pose = Pose.of_arrays(solved.rotations[0], solved.translations[0])
                departure = sum(
                    angle_between(*pair) ** 2 for pair in zip(pose.rotations, turns.values(), strict=True)
                )
                assert departure <= nearest + 1e-3
                nearest, ends = min(nearest, departure), ends + 1
    assert ends > 60
