"""What is wrong with the input is said at once and by name; what is a state of the scene is a status."""

from __future__ import annotations

import math

import pytest
from chains import SOLVE, Z, straight
from mathutils import Quaternion, Vector

from ccd_rig.errors import CCDRigError
from ccd_rig.goals import (
    BalanceGoal,
    DirectionGoal,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
)
from ccd_rig.limits.shapes import Comfort, Cone, EulerBox, Hinge, Slide, SwingTwist
from ccd_rig.settings import Solver, SolverSettings, SolveStatus
from ccd_rig.skeleton.builders import planar_chain, split_ball
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.skeleton.pose_library import PoseEntry
from ccd_rig.solvers.closed_forms import TwoBoneOptions, target_triangle
from ccd_rig.solvers.drag import Drag, Support
from ccd_rig.solvers.many import solve_many
from ccd_rig.solvers.problem_tables import measure
from ccd_rig.solvers.solve import iterate, solve

CONVERGED, OPTIMAL = SolveStatus.CONVERGED, SolveStatus.OPTIMAL
CHAIN = straight(3)
REST = Pose.rest(CHAIN)
HERE = PositionGoal("joint2", (1.0, 1.0, 0.5))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Hinge(Z, 1.0, -1.0), r"Hinge.*lower \(1\) is above upper \(-1\)"),
        (lambda: SwingTwist(Cone(1.0), (0.5, -0.5)), "twist.*above"),
        (lambda: EulerBox("XYZ", (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)), "EulerBox Y.*above"),
        (lambda: Slide(Z, 1.0, 0.0), "Slide.*above"),
        (lambda: Hinge(Z, math.nan, 1.0), "Hinge.lower.*finite"),
        (lambda: Joint("arm", limit="free"), "'arm': limit must be a Hinge, .* not 'free'"),
        (lambda: Joint("arm", comfort=0.5), "'arm': comfort must be a Comfort"),
        (lambda: Joint("arm", slides=(0.0, 1.0)), "'arm': slides must be a tuple of Slide"),
        (
            lambda: Joint("arm", limit=Hinge(Z, 0.0, 1.0), comfort=Comfort(0.0, Hinge(Z, 0.0, 2.0))),
            "'arm': the comfort region must lie inside the limit",
        ),
        (lambda: Joint("arm", stiffness=math.nan), "'arm': stiffness must be 0 to 1, not nan"),
        (lambda: Joint("arm", stiffness="much"), "'arm': stiffness must be 0 to 1, not 'much'"),
        (lambda: Joint("arm", length=math.inf), "'arm': length"),
        (lambda: Joint("arm", parent="hip"), "'arm': parent must be an index or -1, not 'hip'"),
        (lambda: Joint("arm", offset=None), "'arm': offset must be three finite numbers, not None"),
        (lambda: Skeleton([Joint("arm"), Joint("arm")]), "'arm' stands twice"),
        (lambda: Skeleton([Joint("arm", 1), Joint("hand", 0)]), r"'arm': its parent \(1\)"),
        (lambda: Pose((Quaternion((math.nan, 0, 0, 0)),), (Vector(),)), "rotation 0 of the pose"),
        (lambda: Pose((Quaternion(),), ((math.inf, 0.0, 0.0),)), "translation 0 of the pose"),
        (lambda: PositionGoal("hand", (math.inf, 0.0, 0.0)), "'hand': target must be three finite"),
        (lambda: PositionGoal("hand", "here"), "'hand': target must be three finite numbers, not 'here'"),
        (lambda: PositionGoal("hand", (1e30, 0.0, 0.0)), "'hand': target must not be farther away than 1e"),
        (lambda: PositionGoal("hand", (0, 0, 0), weight=0.0), "'hand': weight must be 1e-09 to 1e.09, not 0"),
        (lambda: PositionGoal("hand", (0, 0, 0), weight=1e12), "'hand': weight must be 1e-09 to 1e.09"),
        (lambda: PositionGoal("hand", (0, 0, 0), weight=10**400), "'hand': weight must be .*, not 1000"),
        (lambda: PositionGoal("hand", (10**400, 0, 0)), "'hand': target must be three finite numbers"),
        (lambda: PositionGoal("hand", (10**5000, 0, 0)), "'hand': target must be three finite numbers"),
        (lambda: Joint("arm", mass=1e-46), "'arm': mass must be 0, or 1e-30 to 1e.15, not 1e-46"),
        (lambda: Joint("arm", mass=1e300), "'arm': mass"),
        (lambda: Joint("arm", length=5e-324), "'arm': length"),
        (lambda: Joint("arm", length=1e20), "'arm': length"),
        (lambda: Joint("arm", max_step=5e-324), "'arm': max_step"),
        (lambda: Joint("arm", stiffness=10**400), "'arm': stiffness must be 0 to 1, not 1000.*[.][.][.]"),
        (lambda: Joint("arm", stiffness=10**5000), "'arm': stiffness.*not a number of too many digits"),
        (lambda: Hinge(Z, -1000.0, 1000.0), "Hinge.lower is -1000; give radians from -100 to 100"),
        (lambda: Hinge(Z, 0.0, 10**400), "Hinge.upper is 1000.*; give a finite number"),
        (lambda: SwingTwist(None, (0.0, 1e9)), "SwingTwist.twist is 1e.09; give radians from -100 to 100"),
        (lambda: EulerBox("XYZ", (0.0, 0.0, 0.0), (0.0, 101.0, 0.0)), "EulerBox Y is 101; give radians"),
        (lambda: SolverSettings(position_tolerance=1e-170), "position_tolerance must be 1e-30 to 1e.15"),
        (lambda: SolverSettings(position_tolerance=1e300), "position_tolerance"),
        (lambda: SolverSettings(angle_tolerance=0.0), "angle_tolerance must be 1e-30 to 1e.15, not 0"),
        (lambda: PositionGoal("hand", (0, 0, 0), weight=math.inf), "'hand': weight"),
        (lambda: PositionGoal("hand", (0, 0, 0), weight="heavy"), "'hand': weight.*'heavy'"),
        (lambda: PositionGoal("hand", (0, 0, 0), priority=1.5), "'hand': priority must be a whole number"),
        (lambda: PositionGoal("hand", (0, 0, 0), priority=-1), "'hand': priority"),
        (lambda: PositionGoal("hand", (0, 0, 0), chain_length=1.5), "'hand': chain_length must be a whole"),
        (lambda: PositionGoal("hand", (0, 0, 0), extension_joints=-1), "'hand': extension_joints"),
        (lambda: PositionGoal("hand", (0, 0, 0), max_extension=math.nan), "'hand': max_extension"),
        (lambda: OrientationGoal("hand", (0, 0, 0, 0)), "'hand': target must be a unit quaternion"),
        (lambda: OrientationGoal("hand", (math.nan, 0, 0, 0)), "'hand': target must be four finite"),
        (lambda: DirectionGoal("hand", (0, 1, 0), (0, 0, 0)), "'hand': target must not be zero"),
        (lambda: BalanceGoal((0, 0, 0), axes=None), "axes must be three of True and False"),
        (lambda: BalanceGoal((0, 0, math.nan)), "balance goal: target"),
        (lambda: SolverSettings(max_iterations=1.5), "max_iterations must be a whole number, 1 to 1000000"),
        (lambda: SolverSettings(max_iterations=10**7), "max_iterations must be .*1 to 1000000, not 10000000"),
        (lambda: SolverSettings(restarts=10**400), "restarts must be a whole number, 0 to 10000"),
        (lambda: SolverSettings(max_iterations="3"), "max_iterations"),
        (lambda: SolverSettings(restarts=math.nan), "restarts"),
        (lambda: SolverSettings(solver=10**400), "solver must be one of CCD, .*, not 1000.*[.][.][.]"),
        (lambda: SolverSettings(max_iterations=-(10**5000)), "max_iterations must be .*too many digits"),
        (lambda: PositionGoal("hand", (0, 0, 0), priority=-(10**5000)), "'hand': priority.*too many digits"),
        (lambda: Joint("arm", limit="x" * 10**5), "'arm': limit must be .*xxx[.][.][.]$"),
        (lambda: Hinge(Z, "x" * 10**5, 1.0), "Hinge.lower is 'xxx.*[.][.][.]; give a finite number"),
        (lambda: SolverSettings(seed=None), "seed must be a whole number, not None"),
        (lambda: SolverSettings(position_tolerance="fine"), "position_tolerance"),
        (lambda: SolverSettings(step_fraction=math.nan), "step_fraction"),
        (lambda: PoseEntry("wave", {"hand": (math.nan, 0, 0, 0)}), "'wave'.*'hand'"),
        (lambda: PoseEntry("wave", {}), "'wave'"),
        (lambda: Pose(None, None), "Pose.rotations is None; give quaternions"),
        (lambda: Pose((), 3), "Pose.translations is 3; give vectors"),
        (lambda: Skeleton(3), "Skeleton.joints is 3; give joints"),
        (lambda: Skeleton([1]), "Skeleton.joints holds 1"),
        (lambda: planar_chain(3), "planar_chain: lengths is 3"),
        (lambda: planar_chain([1, 1], ["a", 0]), r"planar_chain: angles\[0\] is 'a'"),
        (lambda: planar_chain([1, 1], 0), "planar_chain: angles is 0"),
        (
            lambda: planar_chain([1, 1], None, [(1,), None]),
            r"planar_chain: limits\[0\] has 1 numbers",
        ),
        (lambda: split_ball(CHAIN, REST, "joint1", limits=[None, None, 3]), r"split_ball: limits\[2\] is 3"),
        (lambda: split_ball(CHAIN, REST, "joint1", limits=7), "split_ball: limits is 7"),
        (lambda: TwoBoneOptions(soft="a"), "two_bone: soft is 'a'; give a finite number"),
        (lambda: TwoBoneOptions(weight=None), "two_bone: weight is None"),
        (lambda: target_triangle(CHAIN, REST, HERE, omega={"joint1": "x"}), "omega of 'joint1' is 'x'"),
        (lambda: Support(3), "Support.points is 3; give at least one point"),
        (lambda: Drag(CHAIN, REST, [3]), "a grab must be a Grab, not 3"),
        (lambda: Drag(CHAIN, REST, 3), "Drag.grabs is 3"),
    ],
)
def test_values_that_make_no_sense_are_refused_by_name(make, named):
    with pytest.raises(CCDRigError, match=named):
        make()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((CHAIN, REST, []), "at least one goal"),
        ((CHAIN, None, [HERE]), "the pose must be a Pose, not None"),
        ((CHAIN, REST, [HERE], None, (), 5), "the pose must be a Pose, not 5"),
        ((CHAIN, REST, ["joint2"]), "a goal must be one of PositionGoal, .* not 'joint2'"),
        ((CHAIN, REST, [PositionGoal("hand", (0, 0, 0))]), "no joint 'hand'.*joint0, joint1, joint2"),
        ((CHAIN, REST, [OrientationGoal("hand", (1, 0, 0, 0))]), "no joint 'hand'"),
        ((CHAIN, REST, [DirectionGoal("hand", (0, 1, 0), (0, 1, 0))]), "no joint 'hand'"),
        ((CHAIN, REST, [PoleGoal("hip", "joint2", (1, 0, 0))]), "no joint 'hip'"),
        ((CHAIN, REST, [PoleGoal("joint2", "joint2", (1, 0, 0))]), "'joint2' must be above 'joint2'"),
        ((CHAIN, REST, [BalanceGoal((0, 0, 0))]), "no joint has a mass"),
        ((Skeleton([]), Pose((), ()), [HERE]), "no joint 'joint2'.*none"),
        ((straight(2), REST, [PositionGoal("joint1", (0, 0, 0))]), "pose is for 3 joints.*has 2"),
        ((CHAIN, REST, [HERE], {"max_iterations": 3}), "settings must be SolverSettings"),
        ((CHAIN, REST, [HERE], None, ["wave"]), "a pose library holds PoseEntry, not 'wave'"),
        (
            (CHAIN, REST, [HERE], None, [PoseEntry("wave", {"hand": (1, 0, 0, 0)})]),
            "'wave' is for other bones.*hand.*joint0, joint1, joint2",
        ),
    ],
)
def test_solves_that_make_no_sense_are_refused_by_name(arguments, named):
    """Also where the first pass would have met the goal without looking."""
    with pytest.raises(CCDRigError, match=named):
        solve(*arguments)
    with pytest.raises(CCDRigError, match=named):
        next(iterate(*arguments))


def ends(goals, skeleton=CHAIN, status=OPTIMAL):
    """Solves from rest; holds status and errors against forward kinematics; returns the errors."""
    result = solve(skeleton, REST, goals, SolverSettings(position_tolerance=SOLVE))
    transforms = forward_kinematics(skeleton, result.pose)
    assert result.errors == tuple(measure(goal, skeleton, transforms) for goal in goals)
    assert all(math.isfinite(number) for error in result.errors for number in error)
    assert result.status is status
    return result.errors


def test_a_pole_on_the_axis_asks_for_nothing():
    for pole in ((0.0, 5.0, 0.0), (0.0, 0.0, 0.0)):
        errors = ends(
            [PositionGoal("joint2", (0, 2.5, 0)), PoleGoal("joint0", "joint2", pole)], status=CONVERGED
        )
        assert errors[1].angle == 0.0


def test_targets_at_the_heads_of_joints_are_met():
    for target in ((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 2.0, 0.0), (1e-30, 0.0, 0.0)):
        ends([PositionGoal("joint2", target)], status=CONVERGED)


def test_bones_without_length_turn_frames_and_reach_nothing():
    points = CHAIN.replace({f"joint{i}": {"length": 0.0, "offset": (0, 0, 0)} for i in range(3)})
    turned = Quaternion(Z, 1.0)
    errors = ends([PositionGoal("joint2", (0, 1, 0)), OrientationGoal("joint2", turned)], points)
    assert errors[0].distance == 1.0 and errors[1].angle < 1e-5
    for goal in (
        PositionGoal("joint2", (0, 1, 0), max_extension=0.5),
        PositionGoal("joint2", (0, 1, 0), two_bone_tip=True),
    ):
        assert ends([goal], points)[0].distance == 1.0
    assert ends([PoleGoal("joint0", "joint2", (1, 0, 0))], points, CONVERGED)[0].angle == 0.0
    assert ends([DirectionGoal("joint1", (0, 1, 0), (1, 0, 0))], points, CONVERGED)[0].angle < 1e-3
    ends([PositionGoal("joint2", (0.2, 1, 0.5))], CHAIN.replace({"joint2": {"length": 0.0}}), CONVERGED)


def test_two_goals_of_one_kind_on_one_joint_share_it_by_weight():
    apart = [PositionGoal("joint2", (0, 1, 0.5)), PositionGoal("joint2", (0, 1, -0.5))]
    assert [error.distance for error in ends(apart)] == pytest.approx([0.5, 0.5], abs=SOLVE)
    heavy = [PositionGoal("joint2", (0, 1, 0.5), weight=3.0), apart[1]]
    assert [error.distance for error in ends(heavy)] == pytest.approx([0.25, 0.75], abs=SOLVE)
    turns = [OrientationGoal("joint2", Quaternion(Z, side)) for side in (0.5, -0.5)]
    assert [error.angle for error in ends(turns)] == pytest.approx([0.5, 0.5], abs=1e-2)
    poles = [PoleGoal("joint0", "joint2", (side, 0.0, 0.5)) for side in (1.0, -1.0)]
    # The bend between both poles is none: a straight chain asks for no side.
    ends([PositionGoal("joint2", (0, 2, 0)), *poles], status=CONVERGED)
    masses = straight(3, mass=1.0)
    errors = ends([BalanceGoal((1, 0, 0)), BalanceGoal((-1, 0, 0))], masses)
    assert [error.distance for error in errors] == pytest.approx([1.0, 1.0], abs=1e-2)


def test_priorities_may_leave_numbers_out():
    """Only their order counts."""
    goals = [PositionGoal("joint2", (1, 1, 0.5)), PositionGoal("joint1", (-1, 1, 0.5))]
    found = []
    for numbers in ((0, 1), (3, 7), (1, 1000)):
        ranked = [
            PositionGoal(goal.joint, goal.target, priority=number)
            for goal, number in zip(goals, numbers, strict=True)
        ]
        found.append(solve(CHAIN, REST, ranked))
    assert found[0].errors[0].distance <= 1e-4 < found[0].errors[1].distance
    assert found[0] == found[1] == found[2]


def test_nothing_that_can_turn_is_a_state():
    assert ends([PositionGoal("joint2", (0, 1, 0))], straight(3, stiffness=1.0))[0].distance == 2.0


@pytest.mark.parametrize("solver", Solver)
def test_a_rotation_of_the_smallest_bones_counts(solver):
    """Their squares leave single precision; what is called met is met all the same."""
    skeleton = Skeleton([Joint("arm", length=1e-12, limit=Hinge(Z, 0.0, 0.5))])
    goal = DirectionGoal("arm", (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    result = solve(skeleton, Pose.rest(skeleton), [goal], SolverSettings(solver=solver))
    assert result.errors[0].angle == pytest.approx(0.5 * math.pi, abs=1e-3)
    assert result.status is not SolveStatus.CONVERGED


def test_windows_of_bones_that_cannot_turn_at_many_poses():
    """A part that is stretched past its window would be bent, if it had anything to bend."""
    bones = {"length": 0.0, "stiffness": 1.0, "mass": 1.0}
    skeleton = Skeleton([Joint("arm", **bones), Joint("hand", 0, inherit_rotation=False, **bones)])
    goals = [
        PositionGoal("hand", (0.0, 1e-9, 0.0), weight=1e-9, max_extension=0.9, priority=7),
        BalanceGoal((0.0, 0.0, -1e6), (False, False, True), weight=1e-4),
        PositionGoal("hand", (0.0, 0.0, -1e6), max_extension=1e-9, chain_length=2),
    ]
    many = solve_many(skeleton, [Pose.rest(skeleton)] * 3, goals, SolverSettings(restarts=2))
    assert all(status is not SolveStatus.CONVERGED for status in many.statuses)
