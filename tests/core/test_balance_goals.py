"""Balance: the centre of mass over a point or a line, by all joints or by some."""

from __future__ import annotations

import math

import pytest
from chains import Z
from goal_solves import CONVERGED, meet
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import (
    BalanceGoal,
    PositionGoal,
    centre_of_mass,
)
from ccd_rig.limits.shapes import Cone, SwingTwist
from ccd_rig.settings import Solver, SolverSettings
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import solve


def walker() -> Skeleton:
    """A base with a heavy swaying stack on it and two arms with mass."""
    joints = [
        Joint(
            "base",
            mass=0.0,
            stiffness=1.0,
            length=0.5,
            rest_rotation=Quaternion((1.0, 0.0, 0.0), math.pi / 2),
        ),
        Joint("spine0", 0, (0, 0.5, 0), mass=5.0, limit=SwingTwist(Cone(0.8), (-0.5, 0.5))),
        Joint("spine1", 1, (0, 1, 0), mass=5.0, limit=SwingTwist(Cone(0.8), (-0.5, 0.5))),
    ]
    for side in (-1, 1):
        name = "left" if side < 0 else "right"
        turned = Quaternion(Z, side * math.pi / 2)
        joints.append(Joint(f"{name}_upper", 2, (0, 1, 0), turned, mass=1.0))
        joints.append(Joint(f"{name}_lower", len(joints) - 1, (0, 1, 0), mass=1.0))
    return Skeleton(joints)


def test_balance_over_a_point_while_a_hand_reaches():
    skeleton = walker()
    rest = forward_kinematics(skeleton, Pose.rest(skeleton))
    assert centre_of_mass(skeleton, rest).z > 0.5
    hand = PositionGoal("right_lower", (-0.6, 0.9, 1.9))
    alone = meet(skeleton, [hand])
    off = measure(BalanceGoal((0.0, 0.0, 0.0)), skeleton, forward_kinematics(skeleton, alone.pose)).distance
    both = meet(skeleton, [hand, BalanceGoal((0.0, 0.0, 0.0), weight=2.0)])
    assert off > 0.02
    assert both.status is CONVERGED


def test_balance_over_a_line_leaves_the_other_axis_free():
    skeleton = walker()
    goal = BalanceGoal((0.3, 9.0, 9.0), axes=(True, False, False))
    result = meet(skeleton, [goal])
    assert result.status is CONVERGED
    assert abs(centre_of_mass(skeleton, forward_kinematics(skeleton, result.pose)).x - 0.3) < 2e-3


@pytest.mark.parametrize("solver", ["CCD", "CCD_LEAST_SQUARES"])
@pytest.mark.parametrize("axes", [(True, False, False), (True, True, False)])
def test_balance_along_any_direction(solver, axes):
    """The centre of mass comes into the plane across a slanting direction, or on the line along it."""
    skeleton, way, target = walker(), Vector((0.3, -0.5, 0.8)).normalized(), Vector((0.1, 0.2, 1.1))
    goal = BalanceGoal(target, axes, direction=3.0 * way)
    before = forward_kinematics(skeleton, Pose.rest(skeleton))
    result = solve(skeleton, Pose.rest(skeleton), [goal], SolverSettings(solver=Solver[solver]))
    for transforms, is_met in ((before, False), (forward_kinematics(skeleton, result.pose), True)):
        off = centre_of_mass(skeleton, transforms) - target
        along = off.dot(way)
        wanted = abs(along) if sum(axes) == 1 else (off - along * way).length
        assert measure(goal, skeleton, transforms).distance == pytest.approx(wanted, abs=1e-6)
        assert (wanted <= 1e-4) == is_met
    with pytest.raises(InvalidInput, match="balance goal: direction must not be zero"):
        BalanceGoal(target, axes, direction=(0.0, 0.0, 0.0))


def test_balance_by_some_joints_leaves_the_others_as_they_are():
    """Two arms on a trunk: only the left one swings to bring the centre of mass over."""
    skeleton = Skeleton(
        [
            Joint("trunk", mass=1.0),
            Joint("left", 0, (0, 1, 0), mass=1.0),
            Joint("hand", 1, (0, 1, 0), mass=1.0),
            Joint("right", 0, (0, 1, 0), mass=1.0),
        ]
    )
    rest = Pose.rest(skeleton)
    for length, moved in ((0, {0, 1, 2}), (2, {1, 2}), (1, {2})):
        goal = BalanceGoal((0.1, 0.0, 0.0), (True, False, False), joint="hand", chain_length=length)
        result = solve(skeleton, rest, [goal])
        assert result.status is CONVERGED and result.errors[0].distance <= 1e-4
        turned = {i for i in range(4) if result.pose.rotations[i] != rest.rotations[i]}
        assert turned and turned <= moved
    with pytest.raises(InvalidInput, match="no joint 'foot'"):
        solve(skeleton, rest, [BalanceGoal((0, 0, 0), joint="foot")])
    with pytest.raises(InvalidInput, match=r"chain_length.*name it"):
        BalanceGoal((0, 0, 0), chain_length=2)


@pytest.mark.parametrize("solver", ["CCD", "CCD_LEAST_SQUARES"])
def test_a_mass_sits_where_its_point_is(solver):
    """A lever with its mass aside of it: this comes over the target, not the middle of the bone."""
    lever = Joint("lever", length=2.0, mass=3.0, mass_point=(0.7, 0.4, 0.0))
    skeleton = Skeleton([lever])
    rest = Pose.rest(skeleton)
    assert centre_of_mass(skeleton, forward_kinematics(skeleton, rest)) == lever.mass_point
    place = Quaternion(Z, 1.2) @ lever.mass_point
    result = solve(skeleton, rest, [BalanceGoal(place)], SolverSettings(solver=Solver[solver]))
    assert result.status is CONVERGED
    centre = centre_of_mass(skeleton, forward_kinematics(skeleton, result.pose))
    assert (centre - place).length < 1e-4
    plain = Skeleton([Joint("lever", length=2.0, mass=3.0)])
    assert centre_of_mass(plain, forward_kinematics(plain, rest))[:] == (0.0, 1.0, 0.0)


def test_a_mass_point_is_a_place():
    with pytest.raises(InvalidInput, match="joint 'lever': mass_point"):
        Joint("lever", mass=1.0, mass_point=(0.0, math.nan, 0.0))
