"""The loop keeps to what joints and steps allow: stiffness, largest step and comfort."""

from __future__ import annotations

import math

import pytest
from chains import FLOAT32, SOLVE, straight
from mathutils import Quaternion, Vector
from reaching import CONVERGED, reach_for

from ccd_rig.goals import PositionGoal
from ccd_rig.limits.shapes import Comfort, Cone, Hinge, SwingTwist, contains, violation
from ccd_rig.maths.rotations import angle_between, angle_of
from ccd_rig.settings import Solver, SolverSettings
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import solve


def test_stiff_and_pinned_joints():
    free = reach_for(straight(3), (1.5, 1.0, 0.5), max_iterations=1, restarts=0)
    stiff = straight(3).replace({"joint1": {"stiffness": 0.9}})
    result = reach_for(stiff, (1.5, 1.0, 0.5), max_iterations=1, restarts=0)
    assert angle_of(result.pose.rotations[1]) < 0.5 * angle_of(free.pose.rotations[1])
    pinned = straight(3).replace({"joint1": {"stiffness": 1.0}})
    result = reach_for(pinned, (1.5, 1.0, 0.5))
    assert result.pose.rotations[1] == Quaternion() and result.status is CONVERGED


@pytest.mark.parametrize("stiffness", [0.999, 0.99999])
@pytest.mark.parametrize("target", [(1.0, 1.0, 0.0), (0.3, 1.2, 0.2), (0.0, 0.5, 0.0)])
def test_a_nearly_locked_joint_turns_where_the_target_needs_it(stiffness, target):
    """The elbow of two bones of length 1: a distance d needs 2 acos(d / 2), whatever its stiffness."""
    skeleton = straight(2).replace({"joint1": {"stiffness": stiffness}})
    result = reach_for(skeleton, target)
    assert result.status is CONVERGED
    bend = 2.0 * math.acos(0.5 * Vector(target).length)
    along = Vector((0.0, 1.0, 0.0))
    assert along.angle(result.pose.rotations[1] @ along) == pytest.approx(bend, abs=2e-3)


def test_comfort_tolerance_hands_on_to_the_next_joint():
    """Seen from the first joint the effector may stay up to 0.5 rad beside the target; the others finish."""
    relaxed = straight(4).replace({"joint0": {"comfort": Comfort(tolerance=0.5)}})
    target = (1.0, 2.0, 0.0)
    plain = reach_for(straight(4), target, max_iterations=1)
    result = reach_for(relaxed, target)
    assert result.status is CONVERGED
    seen = math.atan2(1.0, 2.0)
    assert seen < 0.5 and result.pose.rotations[0] == Quaternion()
    assert angle_of(plain.pose.rotations[0]) > 0.3
    off = reach_for(relaxed, target, comfort=False, max_iterations=1)
    assert off.pose.rotations[0] == plain.pose.rotations[0]


def test_comfort_region_is_kept_where_it_can_be_and_left_where_not():
    region = SwingTwist(Cone(0.4))
    skeleton = straight(5, SwingTwist(Cone(1.2))).replace(
        {f"joint{i}": {"comfort": Comfort(region=region)} for i in range(5)}
    )
    inside = reach_for(skeleton, (1.0, 4.5, 0.0))
    assert inside.status is CONVERGED
    assert all(contains(region, rotation, FLOAT32) for rotation in inside.pose.rotations)
    outside = reach_for(skeleton, (3.0, 0.0, 0.5))
    assert outside.status is CONVERGED
    assert any(violation(region, rotation) > 0.05 for rotation in outside.pose.rotations)
    assert all(contains(SwingTwist(Cone(1.2)), rotation, FLOAT32) for rotation in outside.pose.rotations)


@pytest.mark.parametrize("joint", [0, 2, 3])
def test_a_joint_outside_its_comfort_region_comes_back_while_others_make_up(joint):
    """Each joint alone has a region; the others may turn as they like."""
    region = SwingTwist(Cone(0.3), (-0.2, 0.2))
    skeleton = straight(5).replace({f"joint{joint}": {"comfort": Comfort(region=region)}})
    bent = {i: Quaternion((1.0, 0.0, 0.0), 0.6) for i in range(5)}
    start = Pose.rest(skeleton).with_rotations({**bent, joint: Quaternion((0.8, 0.1, 0.6), 0.9)})
    goal = PositionGoal("joint4", forward_kinematics(skeleton, start)[4].point(Vector((0.0, 1.0, 0.0))))
    result = solve(skeleton, start, [goal])
    assert result.status is CONVERGED
    assert contains(region, result.pose.rotations[joint], 1e-3)


@pytest.mark.parametrize(
    ("limit", "region"),
    [
        (SwingTwist(Cone(1.2)), SwingTwist(Cone(0.3))),
        (Hinge((0.0, 0.0, 1.0), -1.2, 1.2), Hinge((0.0, 0.0, 1.0), -0.3, 0.3)),
    ],
)
def test_what_comfort_regions_cannot_hold_is_shared_by_all_joints(limit, region):
    """The least sum of squares of a planar chain's bends: even beside its middle, and largest there."""
    skeleton = straight(5, limit, comfort=Comfort(region=region))
    result = reach_for(skeleton, (3.0, 0.0, 0.0))
    root, *bends = (violation(region, rotation) for rotation in result.pose.rotations)
    assert result.status is CONVERGED
    assert root == 0.0
    assert bends == pytest.approx(bends[::-1], abs=0.01)
    assert 0.2 < bends[0] < bends[1] < 0.5


def largest_turn(comfort, frames, **fields):
    """A target goes out of what a region of 15 degrees can reach, and back: the largest turn of a joint per
    frame, degrees, and how many frames missed."""
    skeleton = straight(6, SwingTwist(Cone(math.radians(60.0))), comfort=comfort)
    near, far = Vector((1.5, 5.58, 0.0)), Vector((4.5, 1.5, 0.6))
    pose, largest, missed = Pose.rest(skeleton), 0.0, 0
    for frame in range(frames):
        target = near.lerp(far, 0.5 - 0.5 * math.cos(2.0 * math.pi * frame / frames))
        settings = SolverSettings(position_tolerance=SOLVE, error_reduction=0.95, restarts=0, **fields)
        result = solve(skeleton, pose, [PositionGoal("joint5", target)], settings)
        missed += result.status is not CONVERGED
        if frame:
            pairs = zip(pose.rotations, result.pose.rotations, strict=True)
            largest = max(largest, *(math.degrees(angle_between(a, b)) for a, b in pairs))
        pose = result.pose
    return largest, missed


def test_a_target_that_leaves_the_comfort_region_makes_no_joint_jump():
    region = SwingTwist(Cone(math.radians(15.0)))
    for solver in Solver:
        fast, missed = largest_turn(Comfort(region=region), 125, solver=solver)
        slow, more = largest_turn(Comfort(region=region), 500, solver=solver)
        assert missed == more == 0 and slow < 0.5 * fast


def test_a_comfort_tolerance_beside_a_region_makes_no_joint_jump():
    comfort = Comfort(math.radians(5.0), SwingTwist(Cone(math.radians(15.0))))
    fast, _ = largest_turn(comfort, 125)
    slow, _ = largest_turn(comfort, 500)
    assert slow < 0.6 * fast < 5.0
