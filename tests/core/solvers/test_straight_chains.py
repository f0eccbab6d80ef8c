"""Chains that fall short of their target are straight, and settled in the roll about their line."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise

import pytest
from mathutils import Quaternion, Vector

from ccd_rig.goals import OrientationGoal, PositionGoal
from ccd_rig.limits.shapes import Cone, Hinge, SwingTwist
from ccd_rig.maths.rotations import angle_between, log
from ccd_rig.settings import Solver, SolverSettings, SolveStatus
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import solve

STEP = math.radians(0.2)
"""Turn of the target in a frame, radians, about the chain's root."""
SETTLED = 2e-3
"""Radians by which a joint may be off the roll nearest to its reference: a slide has no smaller steps."""
AXIS = Vector((0.3, 0.1, 1.0)).normalized()
LENGTHS = {
    "two": (1.0, 1.0),
    "three": (1.0, 1.0, 1.0),
    "uneven": (1.0, 0.3, 2.0),
    "tiny link": (1.0, 0.01, 1.0, 0.5),
    "six": (1.0,) * 6,
    "twelve": (0.5,) * 12,
}


def chain(lengths: tuple[float, ...], **fields: dict[int, object]) -> Skeleton:
    """Bones along Y, one after the other, at rest in line; `fields` are those of joints, by number."""
    return Skeleton(
        Joint(
            f"joint{i}",
            i - 1,
            (0.0, lengths[i - 1] if i else 0.0, 0.0),
            Quaternion(),
            length,
            **{name: values[i] for name, values in fields.items() if i in values},  # type: ignore[arg-type]
        )
        for i, length in enumerate(lengths)
    )


def bases(skeleton: Skeleton) -> dict[str, Pose]:
    """Straight, bent to one side, and crooked."""
    rng = random.Random(3)

    def turned(angle: float) -> Quaternion:
        return Quaternion(Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized(), angle)

    rest = Pose.rest(skeleton)
    inner = range(1, len(skeleton))
    return {
        "straight": rest,
        "bent": rest.with_rotations({i: Quaternion((1.0, 0.0, 0.0), 0.3) for i in inner}),
        "crooked": rest.with_rotations(
            {
                i: turned(rng.uniform(-0.5, 0.5))
                for i in range(len(skeleton))
                if skeleton.joints[i].limit is None
            }
        ),
    }


def direction(frame: int) -> Vector:
    """The direction of the target from the root."""
    start = Quaternion(Vector((0.2, 0.0, 1.0)).normalized(), 0.9) @ Vector((0.0, 1.0, 0.0))
    return Quaternion(AXIS, STEP * frame) @ start


def solved(skeleton: Skeleton, base: Pose, far: float, frame: int) -> Pose:
    """The pose for a target `far` times as far away as the chain reaches."""
    reach = sum(joint.length for joint in skeleton.joints)
    goal = PositionGoal(skeleton.joints[-1].name, far * reach * direction(frame))
    result = solve(skeleton, base, [goal], SolverSettings(restarts=0), reference=base)
    assert result.status is SolveStatus.OPTIMAL
    assert result.errors[0].distance == pytest.approx((far - 1.0) * reach, abs=1e-4)
    return result.pose


def largest_turn(skeleton: Skeleton, base: Pose, far: float) -> float:
    """Radians of a joint from one of twelve frames to the next."""
    poses = [solved(skeleton, base, far, frame).rotations for frame in range(12)]
    return max(angle_between(a, b) for one, two in pairwise(poses) for a, b in zip(one, two, strict=True))


def rolls(skeleton: Skeleton, base: Pose, pose: Pose, line: Vector) -> list[float]:
    """Radians by which each joint is off the roll about the chain's line that is nearest to its reference.

    A turn of a joint about the line leaves the chain straight, and changes the departure of no other joint.
    """
    places = forward_kinematics(skeleton, pose)
    off = []
    for i, place in enumerate(places):
        before = place.rotation @ pose.rotations[i].inverted()
        departure = log(pose.rotations[i] @ base.rotations[i].inverted())
        off.append(abs(departure.dot(before.inverted() @ line)))
    return off


@pytest.mark.parametrize("far", [1.05, 1.5])
@pytest.mark.parametrize("kind", LENGTHS)
def test_a_chain_that_falls_short_is_settled_in_its_roll(kind: str, far: float) -> None:
    skeleton = chain(LENGTHS[kind])
    for name, base in bases(skeleton).items():
        pose = solved(skeleton, base, far, 17)
        assert max(rolls(skeleton, base, pose, direction(17))) <= SETTLED, name


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("three", {}),
        ("uneven", {}),
        ("six", {}),
        ("three", {"limit": {1: Hinge((1.0, 0.0, 0.0), 0.0, 2.5)}}),
        ("three", {"stiffness": {0: 0.7, 2: 0.3}}),
    ],
)
def test_a_chain_that_falls_short_turns_as_its_target_does(kind: str, fields: dict[str, object]) -> None:
    skeleton = chain(LENGTHS[kind], **fields)  # type: ignore[arg-type]
    for name, base in bases(skeleton).items():
        assert largest_turn(skeleton, base, 1.05) <= 2.0 * STEP, name


@pytest.mark.parametrize("kind", list(LENGTHS))
def test_so_does_one_that_falls_just_short(kind: str) -> None:
    skeleton = chain(LENGTHS[kind])
    for name, base in bases(skeleton).items():
        assert largest_turn(skeleton, base, 1.0005) <= 1.2 * STEP, name


@pytest.mark.parametrize("far", [1.05, 1.5])
@pytest.mark.parametrize(("count", "bend"), [(6, 0.0), (12, 0.0), (12, 0.3), (20, 0.0), (20, 0.3)])
def test_a_chain_in_cones_turns_as_its_target_does(count: int, bend: float, far: float) -> None:
    """Borders of the cones hold the first joints: which of them, and where on the border, must not jump."""
    cone = SwingTwist(Cone(math.radians(30.0)))
    skeleton = chain((0.5,) * count, limit=dict.fromkeys(range(count), cone))
    rest = Pose.rest(skeleton)
    base = rest.with_rotations({i: Quaternion((1.0, 0.0, 0.0), bend) for i in range(1, count)})
    before = None
    for frame in range(12):
        goal = PositionGoal(skeleton.joints[-1].name, far * 0.5 * count * direction(frame))
        result = solve(skeleton, base, [goal], SolverSettings(restarts=0), reference=base)
        assert result.status is SolveStatus.OPTIMAL
        rotations = result.pose.rotations
        if before is not None:
            assert max(map(angle_between, before, rotations)) <= 2.0 * STEP, frame
        before = rotations


def two_hands() -> Skeleton:
    """A spine of three bones with two arms of three."""
    links = [("spine0", -1), ("spine1", 0), ("spine2", 1)]
    for side in "LR":
        links += [(f"arm0.{side}", 2), (f"arm1.{side}", len(links)), (f"arm2.{side}", len(links) + 1)]
    return Skeleton(
        Joint(name, parent, (0.0, 1.0 if parent >= 0 else 0.0, 0.0), Quaternion(), 1.0)
        for name, parent in links
    )


def pulls(frame: int, aside: float, **fields: tuple[float, float]) -> list[PositionGoal]:
    """Goals of both hands, away from each other; `fields` of the left and right one."""
    angle = 0.02 * frame
    return [
        PositionGoal(
            f"arm2.{side}",
            (way * (aside + math.sin(angle)), 2.0 + math.cos(angle), way * angle),
            **{name: values[number] for name, values in fields.items()},  # type: ignore[arg-type]
        )
        for number, (side, way) in enumerate((("L", 1.0), ("R", -1.0)))
    ]


def test_two_hands_that_pull_apart_move_as_their_targets_do() -> None:
    """Neither hand has what it wants; a spine that both share settles between them."""
    skeleton = two_hands()
    base, before = Pose.rest(skeleton), None
    for frame in range(24):
        goals = pulls(frame, 6.0, weight=(1.0, 0.2))
        result = solve(skeleton, base, goals, SolverSettings(restarts=0), reference=base)
        assert result.status is SolveStatus.OPTIMAL
        if before is not None:
            assert max(map(angle_between, before, result.pose.rotations)) <= 0.02, frame
        before = result.pose.rotations


@pytest.mark.parametrize(("aside", "weight"), [(3.2, 1.0), (4.5, 1.0), (4.5, 50.0), (6.0, 1.0)])
def test_of_two_hands_that_pull_apart_the_later_one_has_what_the_first_leaves(
    aside: float, weight: float
) -> None:
    """The first hand is where it would be alone, on its target or in line with it, and both move steadily."""
    skeleton, settings = two_hands(), SolverSettings(restarts=0)
    base, before = bases(skeleton)["bent"], None
    for frame in range(24):
        goals = pulls(frame, aside, weight=(1.0, weight), priority=(0, 1))
        result = solve(skeleton, base, goals, settings, reference=base)
        alone = solve(skeleton, base, goals[:1], settings, reference=base)
        assert result.status is SolveStatus.OPTIMAL
        assert result.errors[0].distance <= alone.errors[0].distance + 1e-4
        # A weight that is nearly nothing leaves as much.
        shared = pulls(frame, aside, weight=(1.0, 1e-5))
        least = solve(skeleton, base, shared, settings, reference=base).errors[1].distance
        assert result.errors[1].distance <= least + 0.02
        if before is not None:
            assert max(map(angle_between, before, result.pose.rotations)) <= 0.05, frame
        before = result.pose.rotations


def test_three_hands_in_three_ranks_are_as_near_as_earlier_ones_leave_them() -> None:
    """Two ranks are missed before the last one: what they reach stays to 0.1 mm of seven metres."""
    arms = [Joint("spine", -1, (0.0, 0.0, 0.0), Quaternion(), 1.0)]
    for side in "LRT":
        for k in range(3):
            parent = len(arms) - 1 if k else 0
            arms.append(Joint(f"{side}{k}", parent, (0.0, 1.0, 0.0), Quaternion(), 1.0))
    skeleton, settings = Skeleton(arms), SolverSettings(restarts=0)
    base = Pose.rest(skeleton)
    goals = [
        PositionGoal("L2", (6.0, 2.5, 0.4)),
        PositionGoal("R2", (-6.0, 2.0, 0.3), priority=1),
        PositionGoal("T2", (0.2, 7.0, 1.0), priority=2),
    ]
    distances = [
        [error.distance for error in solve(skeleton, base, goals[:count], settings, reference=base).errors]
        for count in (1, 2, 3)
    ]
    assert distances[1][0] <= distances[0][0] + 1e-4
    assert distances[2][0] <= distances[0][0] + 1e-4
    assert distances[2][1] <= distances[1][1] + 1e-3


def test_a_rotation_in_the_middle_rank_keeps_the_hand_and_leaves_the_rest_to_the_other() -> None:
    skeleton, settings = two_hands(), SolverSettings(restarts=0)
    base, before = Pose.rest(skeleton), None
    for frame in range(12):
        left, right = pulls(frame, 3.0)
        turned = OrientationGoal("arm2.L", Quaternion((1.0, 0.0, 0.0), 0.02 * frame + 1.5), priority=1)
        goals = [left, turned, replace(right, priority=2)]
        result = solve(skeleton, base, goals, settings, reference=base)
        assert result.errors[0].distance <= settings.position_tolerance
        alone = solve(skeleton, base, goals[:2], settings, reference=base)
        assert result.errors[1].angle <= alone.errors[1].angle + 1e-3
        if before is not None:
            assert max(map(angle_between, before, result.pose.rotations)) <= 0.05, frame
        before = result.pose.rotations


def test_a_second_goal_is_met_by_the_roll_that_a_first_one_leaves() -> None:
    """The hand's rotation gives way to the position; of the poses that are left it takes the nearest."""
    skeleton = chain(LENGTHS["three"])
    base = bases(skeleton)["bent"]
    goals = [
        PositionGoal("joint2", 3.15 * direction(0)),
        OrientationGoal("joint2", Quaternion((0.8, 0.0, 0.6, 0.0)), priority=1),
    ]
    result = solve(skeleton, base, goals, SolverSettings(restarts=0), reference=base)
    assert result.errors[0].distance == pytest.approx(0.15, abs=2e-4)
    tip = forward_kinematics(skeleton, result.pose)[2].rotation
    line = tip @ Vector((0.0, 1.0, 0.0))
    assert line.angle(direction(0)) <= 0.01
    # Turned about the line either way, the hand is farther from its target.
    for turn in (-0.1, 0.1):
        assert angle_between(Quaternion(direction(0), turn) @ tip, goals[1].target) > result.errors[1].angle


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("distance", [0.8, 1.4])
def test_straight_arms_to_both_sides_bend_as_in_a_mirror(solver, distance):
    """The target on the arm's own line tells no side. A mirror in X takes (w, x, y, z) to (w, x, -y, -z)."""
    turns = []
    for side in (1.0, -1.0):
        out = Quaternion((0.0, 0.0, 1.0), -side * 0.5 * math.pi)
        skeleton = Skeleton(
            Joint(f"bone{i}", i - 1, (0.0, float(i > 0), 0.0), Quaternion() if i else out, 1.0)
            for i in range(3)
        )
        rest = Pose.rest(skeleton)
        goal = PositionGoal("bone2", (side * distance, 0.0, 0.0))
        settings = SolverSettings(solver=solver, restarts=0)
        result = solve(skeleton, rest, [goal], settings)
        assert result.status is SolveStatus.CONVERGED
        turns.append(
            [
                turn if side > 0.0 else Quaternion((turn.w, turn.x, -turn.y, -turn.z))
                for turn in result.pose.rotations
            ]
        )
    for right, left in zip(*turns, strict=True):
        assert abs(right.dot(left)) > 1.0 - 1e-6
