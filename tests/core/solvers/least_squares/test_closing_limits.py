"""The closing phase inside limits: what may not move stays, and joints at bounds leave the rest to others."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
from chains import FLOAT32, legal_pose, random_rotation, straight, tail
from closing_cases import is_met, limits_of
from mathutils import Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Cone, EulerBox, Hinge, ReversedLimit, Slide, SwingTwist, violation
from ccd_rig.maths.rotations import angle_between
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares import closing_step
from ccd_rig.solvers.least_squares.closing import Descent, refine, refined
from ccd_rig.solvers.least_squares.pose_problem import PoseProblem


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
