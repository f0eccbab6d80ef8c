"""Shared passes: the least turns that take the way, inside the limits, and home where there is room."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from chains import EXACT, FLOAT32, legal_pose, random_rotation, random_skeleton, straight, tail, tip
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import PositionGoal
from ccd_rig.limits.random_rotations import sample
from ccd_rig.limits.shapes import Cone, Hinge, SwingTwist, clamp, locked_axis, violation
from ccd_rig.maths.rotations import angle_between
from ccd_rig.settings import SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.ccd import passes, shared_passes
from ccd_rig.solvers.ccd.working_pose import WorkingPose
from ccd_rig.solvers.solve import iterate, solve

ONE_TWIST = SwingTwist(Cone(1.0), (0.3, 0.3))
SHARED = SolverSettings(error_reduction=0.95, restarts=0, position_tolerance=1e-4)


def body_of(skeleton: Skeleton, pose: Pose, target: Vector, reference: Pose | None = None) -> WorkingPose:
    working = WorkingPose(skeleton, pose, [PositionGoal(tip(skeleton), target)], reference)
    working.set_limits([joint.limit for joint in skeleton.joints], [0.0] * len(skeleton))
    return working


def plan_of(working: WorkingPose) -> shared_passes.PassPlan | None:
    return shared_passes.plan_pass(working, passes.plan_pass(working))


def plain_chain(kinds: str, rng: random.Random) -> Skeleton:
    """f: free, h: hinge, t: a joint of one single twist; crooked rests, unequal bones, some stiffness."""
    limits = {"f": None, "h": Hinge((0.6, 0.0, 0.8), -3.0, 3.0), "t": ONE_TWIST}
    joints = []
    for i, kind in enumerate(kinds):
        length = rng.uniform(0.5, 1.5)
        offset = (0.0, joints[-1].length, 0.0) if i else (0.1, 0.2, 0.3)
        rest = random_rotation(rng) if i % 2 else Quaternion()
        stiffness = rng.choice((0.0, 0.5))
        joints.append(Joint(f"j{i}", i - 1, offset, rest, length, limits[kind], stiffness=stiffness))
    return Skeleton(joints)


@pytest.mark.parametrize("kinds", ["fff", "hhhhh", "tttt", "fhthf"])
@pytest.mark.parametrize("seed", range(5))
def test_a_small_way_is_taken_by_the_least_turns(kinds, seed):
    """Held against the pseudo-inverse of a Jacobian that is measured by turning each joint a little."""
    rng = random.Random(seed)
    skeleton = plain_chain(kinds, rng)
    start = Pose(
        tuple(
            clamp(joint.limit, Quaternion(Vector((rng.random(), 1.0, rng.random())), rng.uniform(-0.8, 0.8)))
            if joint.limit
            else random_rotation(rng)
            for joint in skeleton.joints
        ),
        Pose.rest(skeleton).translations,
    )
    way = 1e-3 * Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
    before = tail(skeleton, start)
    working = body_of(skeleton, start, before + way)
    plan = plan_of(working)
    assert plan is not None
    columns, weights, owners = [], [], []
    for i, joint in enumerate(skeleton.joints):
        axes = {"f": np.eye(3), "h": [(0.6, 0.0, 0.8)], "t": []}[kinds[i]]
        if kinds[i] == "t":
            axes = np.linalg.svd(np.array(locked_axis(joint.limit, start.rotations[i]))[None])[2][1:]
        for axis in axes:
            ends = []
            for side in (0.02, -0.02):
                turned = list(start.rotations)
                turned[i] = turned[i] @ Quaternion(Vector(axis), side)
                ends.append(np.array(tail(skeleton, Pose(tuple(turned), start.translations))))
            columns.append((ends[0] - ends[1]) / 0.04)
            weights.append(plan.visits[i].mobility)
            owners.append((i, np.array(axis)))
    jacobian, mobility = np.array(columns).T, np.diag(weights)
    step = mobility @ jacobian.T @ np.linalg.pinv(jacobian @ mobility @ jacobian.T) @ np.array(way)
    wanted = np.zeros((len(skeleton), 3))
    for (i, axis), turn in zip(owners, step, strict=True):
        wanted[i] += turn * axis
    shared_passes.run_pass(working, plan)
    for i in range(len(skeleton)):
        found = 2.0 * np.array((start.rotations[i].conjugated() @ working.rotations[i])[1:])
        assert np.abs(found - wanted[i]).max() <= 0.02 * np.abs(step).max() + 10 * EXACT
    assert (working.effectors[0].position - before - way).length <= 0.05 * way.length


def turning(rng: random.Random) -> Skeleton:
    """A random chain whose joints do nothing but turn."""
    skeleton = random_skeleton(rng, rng.randrange(2, 12))
    plain = {"max_step": math.pi, "inherit_rotation": True}
    return skeleton.replace({joint.name: plain for joint in skeleton.joints})


@pytest.mark.parametrize("seed", range(60))
def test_passes_keep_limits_and_say_where_they_are(seed):
    rng = random.Random(seed)
    skeleton = turning(rng)
    start, other = legal_pose(skeleton, rng), legal_pose(skeleton, rng)
    reference = legal_pose(skeleton, rng) if seed % 2 else None
    working = body_of(skeleton, start, tail(skeleton, other), reference)
    plan = plan_of(working)
    if plan is None:
        assert not working.movable
        return
    for _ in range(6):
        moved = shared_passes.run_pass(working, plan)
        assert math.isfinite(moved)
        for joint, before, rotation in zip(skeleton.joints, start.rotations, working.rotations, strict=True):
            assert abs(rotation.magnitude - 1.0) < FLOAT32
            assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32
            assert not joint.locked or rotation == before
        pose = Pose(tuple(working.rotations), start.translations)
        assert (tail(skeleton, pose) - working.effectors[0].position).length <= FLOAT32 * plan.length


@pytest.mark.parametrize(
    "limit", [Hinge((0.0, 0.0, 1.0), -0.5, 0.5), SwingTwist(Cone(0.5))], ids=["hinges", "cones"]
)
def test_a_joint_at_its_limit_turns_back_as_if_it_had_never_been_held(limit):
    skeleton = straight(3, limit)
    working = body_of(skeleton, Pose.rest(skeleton), Vector((-9.0, 0.5, 0.0)))
    plan = plan_of(working)
    assert plan is not None
    for _ in range(4):
        shared_passes.run_pass(working, plan)
    assert set(working.active_limits) == {0, 1, 2}
    held = Pose(tuple(working.rotations), Pose.rest(skeleton).translations)
    back = tail(skeleton, held).lerp(Vector((0.0, 3.0, 0.0)), 0.2)
    fresh = body_of(skeleton, held, back)
    working.effectors[0].target = back
    assert shared_passes.run_pass(working, plan) == pytest.approx(
        shared_passes.run_pass(fresh, plan), rel=1e-4
    )
    for i in range(3):
        assert angle_between(working.rotations[i], fresh.rotations[i]) <= 10.0 * FLOAT32
    assert max(angle_between(working.rotations[i], held.rotations[i]) for i in range(3)) > 1e-2


def test_a_joint_that_is_held_makes_no_turn_that_its_limit_would_take_back():
    """What is left of the turn is across the border and the axis that one single twist locks."""
    rng = random.Random(2)
    plan = plan_of(body_of(straight(2), Pose.rest(straight(2)), Vector((1.0, 1.0, 0.0))))
    assert plan is not None
    for _ in range(10):
        arm, push, locked, other = (Vector([rng.gauss(0.0, 1.0) for _ in range(3)]) for _ in range(4))
        locked.normalize()
        border = locked.cross(other).normalized()
        free = shared_passes._turn(shared_passes.Lever(plan.visits[0], arm, None, None, None), push)
        held = shared_passes._turn(shared_passes.Lever(plan.visits[0], arm, None, locked, border), push)
        line = locked.cross(border)
        assert (held - free.dot(line) * line).length <= FLOAT32 * free.length


def test_joints_that_do_more_than_turn_have_no_shared_passes():
    for fields in ({"max_step": 0.3}, {"inherit_rotation": False}):
        skeleton = straight(4).replace({"joint2": fields})
        assert plan_of(body_of(skeleton, Pose.rest(skeleton), Vector((1.0, 2.0, 0.0)))) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_single_twist_locks_one_axis(seed):
    rng = random.Random(seed)
    axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)])
    twist = rng.uniform(-2.0, 2.0)
    limit = SwingTwist(Cone(2.5), (twist, twist), tuple(axis))
    at = sample(SwingTwist(Cone(2.0), (twist, twist), tuple(axis)), rng)
    locked = locked_axis(limit, at)
    assert locked is not None and locked.length == pytest.approx(1.0, abs=EXACT)
    assert violation(limit, at @ Quaternion(locked, 1e-2)) == pytest.approx(1e-2, rel=0.05)
    across = locked.cross(Vector((0.3, 0.5, 0.7))).normalized()
    assert violation(limit, at @ Quaternion(across, 1e-2)) <= 2e-4  # of second order


def test_other_limits_lock_none():
    for limit in (None, Hinge((1.0, 0.0, 0.0), 0.0, 0.0), SwingTwist(Cone(1.0), (0.0, 0.1)), SwingTwist()):
        assert locked_axis(limit, Quaternion()) is None


def laps(skeleton: Skeleton, count: int, reference: Pose | None) -> list[Pose]:
    """The pose at the end of each lap of a target that goes round the root."""
    pose, ends = Pose.rest(skeleton), []
    for _ in range(count):
        for step in range(1, 25):
            angle = 2.0 * math.pi * step / 24
            target = Vector((3.0 * math.cos(angle), 1.5 + 0.5 * math.sin(2.0 * angle), 3.0 * math.sin(angle)))
            goal = PositionGoal(tip(skeleton), target)
            result = solve(skeleton, pose, [goal], SHARED, reference=reference)
            assert result.status is SolveStatus.CONVERGED
            pose = result.pose
        ends.append(pose)
    return ends


def apart(one: Pose, other: Pose) -> float:
    return max(angle_between(a, b) for a, b in zip(one.rotations, other.rotations, strict=True))


def bent(count: int) -> Pose:
    """A home that says which way a chain bends."""
    turn = Quaternion(Vector((1.0, 0.0, 0.0)), 0.4)
    return Pose((turn,) * count, Pose.rest(straight(count)).translations)


def test_with_a_home_the_pose_depends_on_the_target_and_not_on_the_laps_before():
    skeleton = straight(6)
    with_reference = laps(skeleton, 8, bent(6))
    without = laps(skeleton, 8, None)
    assert apart(with_reference[-2], with_reference[-1]) < 0.01
    assert apart(without[-2], without[-1]) > 0.1


def test_joints_go_home_while_the_target_moves_and_rest_when_it_rests():
    skeleton, reference = straight(5), bent(5)
    at = tail(skeleton, reference)
    start = solve(skeleton, Pose.rest(skeleton), [PositionGoal("joint4", at)], SHARED).pose
    again = solve(skeleton, start, [PositionGoal("joint4", at)], SHARED, reference=reference)
    assert again.pose.rotations == start.rotations
    ends = []
    for place in (reference, None):
        pose = start
        for step in range(401):
            swing = math.sin(math.pi * step / 50.0) * Vector((1.0, 0.0, 0.0))
            pose = solve(skeleton, pose, [PositionGoal("joint4", at + swing)], SHARED, reference=place).pose
        ends.append(apart(pose, reference))
    assert ends[0] < 0.05 and ends[1] > 0.1, ends


def test_a_home_outside_the_limits_pulls_no_joint_out_of_them():
    limit = SwingTwist(Cone(0.6), (-0.2, 0.2))
    skeleton = straight(6, limit)
    rng = random.Random(9)
    reference = Pose(tuple(random_rotation(rng) for _ in range(6)), Pose.rest(skeleton).translations)
    pose = Pose.rest(skeleton)
    for step in range(60):
        target = Vector((2.0 * math.sin(step / 9.0), 4.5, 2.0 * math.cos(step / 7.0)))
        result = solve(skeleton, pose, [PositionGoal("joint5", target)], SHARED, reference=reference)
        pose = result.pose
        assert result.status is SolveStatus.CONVERGED
        assert all(violation(limit, rotation) <= FLOAT32 for rotation in pose.rotations)


def test_iterate_goes_home_too_and_another_skeletons_home_is_refused():
    skeleton = straight(6)
    reference = legal_pose(skeleton, random.Random(1))
    goals = [PositionGoal("joint5", (3.0, 2.0, 1.0))]
    result = solve(skeleton, Pose.rest(skeleton), goals, SHARED, reference=reference)
    assert list(iterate(skeleton, Pose.rest(skeleton), goals, SHARED, reference=reference))[-1] == result
    assert result.pose != solve(skeleton, Pose.rest(skeleton), goals, SHARED).pose
    with pytest.raises(InvalidInput):
        solve(skeleton, Pose.rest(skeleton), goals, SHARED, reference=Pose.rest(straight(3)))


def test_a_straight_chain_and_its_line():
    """Pushed along itself a straight chain does not move: no NaN, and a solve leaves it."""
    skeleton = straight(4)
    working = body_of(skeleton, Pose.rest(skeleton), Vector((0.0, 2.0, 0.0)))
    plan = plan_of(working)
    assert plan is not None
    assert shared_passes.run_pass(working, plan) <= FLOAT32
    transforms = forward_kinematics(
        skeleton, Pose(tuple(working.rotations), Pose.rest(skeleton).translations)
    )
    assert all(math.isfinite(value) for transform in transforms for value in transform.rotation)
    found = solve(skeleton, Pose.rest(skeleton), [PositionGoal("joint3", (0.0, 2.0, 0.0))], SHARED)
    assert found.status is SolveStatus.CONVERGED


@pytest.mark.parametrize("count", [20, 40, 100])
def test_long_chains_are_not_rolled_up(count):
    """As much as takes the end back to 0.4 of the length, in a bow: each joint a little, together no turn."""
    skeleton = straight(count)
    for direction in ((0.5, 0.8, 0.2), (0.1, 1.0, 0.0), (-0.4, 0.9, 0.3)):
        target = 0.4 * count * Vector(direction).normalized()
        found = solve(skeleton, Pose.rest(skeleton), [PositionGoal(tip(skeleton), target)], SHARED)
        assert found.status is SolveStatus.CONVERGED
        turns = [2.0 * math.acos(min(1.0, abs(rotation.w))) for rotation in found.pose.rotations]
        assert math.fsum(turns) < math.radians(400.0)
