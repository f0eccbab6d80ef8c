"""Limbs bend as limbs do: the middle joint of two bones is a hinge by weight, about its bend at rest."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig import (
    Cone,
    Goal,
    Hinge,
    Joint,
    PoleGoal,
    Pose,
    PositionGoal,
    Skeleton,
    SolverSettings,
    SolveStatus,
    SwingTwist,
    solve,
)
from ccd_rig.limits.shapes import Limit
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.solvers import problem_tables as tables
from ccd_rig.solvers.pose_search import PoseSearch

X = Vector((1.0, 0.0, 0.0))


def limb(bend: float, count: int = 2) -> Skeleton:
    """Bones of length 1 along y, each but the first bent about x at rest; and a hand of half the length."""
    rests = [Quaternion(X, bend if 0 < i < count else 0.0) for i in range(count + 1)]
    return Skeleton(
        [
            Joint(
                f"bone{i}",
                i - 1,
                offset=Vector((0.0, float(i > 0), 0.0)),
                rest_rotation=rest,
                length=1.0 if i < count else 0.5,
            )
            for i, rest in enumerate(rests)
        ]
    )


def wrist(count: int = 2) -> PositionGoal:
    """The head of the last bone goes somewhere."""
    return PositionGoal(f"bone{count}", Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 0.0)))


def solved_elbow(skeleton: Skeleton, seed: int, pole: bool = False) -> Quaternion:
    """The elbow's rotation where a reachable target, and a pole, are somewhere."""
    rng = random.Random(seed)
    way = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
    point = rng.uniform(0.7, 1.9) * way
    goals: list[Goal] = [PositionGoal("bone2", point, Vector((0.0, 0.0, 0.0)))]
    if pole:
        aside = way.orthogonal()
        aside.rotate(Quaternion(way, rng.uniform(0.0, 2.0 * math.pi)))
        goals.append(PoleGoal("bone0", "bone1", 0.5 * point + 2.0 * aside))
    rest = Pose.rest(skeleton)
    result = solve(skeleton, rest, goals, SolverSettings(), reference=rest)
    assert result.status is SolveStatus.CONVERGED
    return result.pose.rotations[1]


def off_hinge(skeleton: Skeleton, seed: int, pole: bool = False) -> float:
    """Degrees by which the elbow turns across its bend and about itself."""
    turned = solved_elbow(skeleton, seed, pole)
    return math.degrees(2.0 * math.asin(min(1.0, math.hypot(turned.y, turned.z))))


@pytest.mark.parametrize("bend", [0.05, 0.4, -0.4])
def test_the_middle_joint_of_a_limb_bends_about_its_rest_bend(bend: float) -> None:
    outcome = wrist().limb(limb(bend), (0, 1, 2))
    assert outcome is not None and outcome[0] == 1
    assert abs(outcome[1].dot(X)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("bend", "count", "moving"), [(0.0, 2, (0, 1, 2)), (0.4, 3, range(4)), (0.4, 2, (1, 2))]
)
def test_what_is_straight_or_no_limb_is_plain(bend: float, count: int, moving: tuple[int, ...]) -> None:
    assert wrist(count).limb(limb(bend, count), moving) is None


def arm(clavicle: float, hand: float, forearm: float = 0.9) -> Skeleton:
    """A clavicle aside, an upper arm of length 1, a forearm bent about x, and a hand in line with it."""
    bend = Quaternion(X, 0.3)
    aside = Quaternion((0.0, 0.0, 1.0), -1.2)
    rests = aside, aside.inverted(), bend, Quaternion()
    lengths = clavicle, 1.0, forearm, hand
    return Skeleton(
        Joint(
            f"bone{i}",
            i - 1,
            offset=(0.0, lengths[i - 1] if i else 0.0, 0.0),
            rest_rotation=rest,
            length=size,
        )
        for i, (rest, size) in enumerate(zip(rests, lengths, strict=True))
    )


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("point", [None, Vector((0.0, 0.0, 0.0))])
def test_clavicles_and_hands_in_a_chain_leave_the_elbow_a_hinge(first: int, point: Vector | None) -> None:
    skeleton = arm(0.6, 0.4)
    outcome = PositionGoal("bone3", Vector((0.0, 1.0, 0.0)), point).limb(skeleton, range(first, 4))
    assert outcome is not None and outcome[0] == 2
    assert abs(outcome[1].dot(X)) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    "skeleton",
    [arm(0.95, 0.4), arm(0.6, 0.5), arm(0.6, 0.1, forearm=0.4)],
    ids=["a clavicle as long as the arm", "a hand of more than half a forearm", "two unlike bones"],
)
def test_other_chains_of_four_bones_are_plain(skeleton: Skeleton) -> None:
    assert PositionGoal("bone3", Vector((0.0, 1.0, 0.0))).limb(skeleton, range(4)) is None


def test_an_elbow_between_clavicle_and_hand_hardly_leaves_its_hinge(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    targets = [
        Vector((rng.uniform(-0.6, 1.2), rng.uniform(0.2, 1.6), rng.uniform(0.1, 1.0))) for _ in range(40)
    ]

    def off() -> np.ndarray:
        skeleton, turned = arm(0.6, 0.4), []
        rest = Pose.rest(skeleton)
        for target in targets:
            result = solve(skeleton, rest, [PositionGoal("bone3", target)], reference=rest)
            assert result.status is SolveStatus.CONVERGED
            turned.append(math.hypot(result.pose.rotations[2].y, result.pose.rotations[2].z))
        return np.array(turned)

    by_weight = off()
    monkeypatch.setattr(tables, "ACROSS", 1.0)
    assert off().mean() > 2.0 * by_weight.mean()


def test_elbows_stay_on_their_hinge(monkeypatch: pytest.MonkeyPatch) -> None:
    off = np.array([off_hinge(limb(0.2), seed) for seed in range(60)])
    assert off.mean() < 2.0 and off.max() < 6.0
    monkeypatch.setattr(tables, "ACROSS", 1.0)
    plain = np.array([off_hinge(limb(0.2), seed) for seed in range(60)])
    assert plain.mean() > 5.0 * off.mean()


def test_a_pole_turns_the_upper_arm_not_the_elbow() -> None:
    off = np.array([off_hinge(limb(0.2), seed, pole=True) for seed in range(100)])
    assert off.mean() < 1.0 and off.max() < 5.0


@pytest.mark.parametrize("bend", [0.2, -0.25, 0.6])
def test_a_pole_turns_a_nearly_straight_arm_whole(bend: float) -> None:
    """The hand stays, and the pole goes round the arm: the upper arm was up to 15 degrees behind."""
    skeleton = limb(bend)
    end = Vector((0.0, 1.0 + math.cos(bend), math.sin(bend)))
    aside = Vector((0.0, -end.z, end.y)) * math.copysign(1.0, -bend)
    rest = Pose.rest(skeleton)
    for degrees in range(-75, 76, 15):
        turn = Quaternion(end, math.radians(degrees))
        goals = [
            PositionGoal("bone2", end, Vector((0.0, 0.0, 0.0))),
            PoleGoal("bone0", "bone1", 0.5 * end + 2.0 * (turn @ aside)),
        ]
        result = solve(skeleton, rest, goals, SolverSettings(), reference=rest)
        assert result.status is SolveStatus.CONVERGED
        behind = result.pose.rotations[0].rotation_difference(turn).angle
        assert math.degrees(math.remainder(behind, 2.0 * math.pi)) == pytest.approx(0.0, abs=5.0)


@pytest.mark.parametrize(
    ("limit", "pole", "across"),
    [
        (None, False, tables.ACROSS),
        (None, True, tables.ACROSS_WITH_POLE),
        (SwingTwist(Cone(1.0)), True, tables.ACROSS_WITH_POLE),
        (Hinge((1.0, 0.0, 0.0), -1.0, 1.0), True, tables.ACROSS),
    ],
    ids=["no pole", "a pole", "a cone", "a shoulder that is a hinge follows no pole"],
)
def test_poles_leave_it_to_the_root_to_turn(limit: Limit | None, pole: bool, across: float) -> None:
    skeleton, goals = limb(0.3), list[Goal]([wrist()])
    if pole:
        goals.append(PoleGoal("bone0", "bone1", Vector((0.0, 1.0, 3.0))))
    built = tables.problem_tables(skeleton, goals, [limit, None, None], (0, 1), [0.0] * 3)
    assert built["mobility"].reshape(3, 3).tolist() == [[1.0] * 3, [1.0, across, across], [1.0] * 3]


@pytest.mark.parametrize("bend", [0.03, 0.3, -0.3])
def test_no_elbow_bends_to_the_other_side_than_at_rest(bend: float) -> None:
    skeleton = limb(bend)
    for seed in range(100):
        turned = solved_elbow(skeleton, seed)
        angle = bend + math.remainder(2.0 * math.atan2(turned.x, turned.w), 2.0 * math.pi)
        assert angle * bend > 0.0, seed


def test_where_a_limb_stands_in_its_skeleton_makes_no_difference() -> None:
    """Behind joints that serve no goal: the same to the bit."""
    rng = random.Random(3)
    skeleton = limb(0.4).replace({"bone1": {"rest_rotation": Quaternion((0.2, -0.5, 1.0), 0.4)}})
    idle = [Joint(f"idle{i}") for i in range(3)]
    moved = Skeleton([*idle, *(replace(each, parent=each.parent + 3) for each in skeleton.joints)])
    moved = moved.replace({"bone0": {"parent": -1}})
    for _ in range(20):
        way = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        goals = [PositionGoal("bone2", rng.uniform(0.7, 1.9) * way, Vector((0.0, 0.0, 0.0)))]
        results = []
        for each in (skeleton, moved):
            rest = Pose.rest(each)
            results.append(solve(each, rest, goals, SolverSettings(), reference=rest))
        assert results[0].pose.rotations == results[1].pose.rotations[3:]
        assert results[0].iterations == results[1].iterations


def bend_of(pose: Pose, rest: float = 0.3) -> float:
    """Radians by which the elbow of `arm` bends about its hinge."""
    turned = pose.rotations[2]
    return rest + 2.0 * math.atan2(turned.x, turned.w)


@pytest.mark.parametrize("seed", range(20))
def test_an_arm_that_comes_from_its_other_side_bends_to_its_own(seed: int) -> None:
    """A clavicle, a hand, a target well within reach: the start bends backwards to it, the reference not."""
    rng = random.Random(seed)
    skeleton = arm(0.6, 0.4)
    rest = Pose.rest(skeleton)
    turned = [Quaternion(), Quaternion((rng.gauss(0, 1), 0, rng.gauss(0, 1)), rng.uniform(0.0, 0.5))]
    turned += [Quaternion(X, -0.3 - rng.uniform(1.0, 2.0)), Quaternion()]
    start = replace(rest, rotations=tuple(turned))
    target = forward_kinematics(skeleton, start)[3].point(Vector((0.0, 0.4, 0.0)))
    assert bend_of(start) < 0.0
    result = solve(skeleton, start, [PositionGoal("bone3", target)], reference=rest)
    assert result.status is SolveStatus.CONVERGED
    assert bend_of(result.pose) > 0.0


def test_a_limb_bends_backwards_where_the_pose_of_sides_does() -> None:
    """The reference of a sweep is made by neighbours: it tells no side."""
    skeleton, shifts = limb(0.4), np.zeros((1, 3, 3))
    rest = np.tile((1.0, 0.0, 0.0, 0.0), (1, 3, 1))
    backward = rest.copy()
    backward[0, 1] = Quaternion(X, -1.2)[:]
    search = PoseSearch(skeleton, [wrist()], SolverSettings())
    target, bends = np.array([(0.0, 1.7, 0.3)]), []
    for sides in (None, backward, rest):
        solved = search.solve(backward, shifts, [target], (backward, shifts), sides=sides)
        assert solved.statuses[0] == 0
        bends.append(0.4 + 2.0 * math.atan2(solved.rotations[0, 1, 1], solved.rotations[0, 1, 0]))
    assert bends[0] < -0.5 and bends[1] == bends[0]
    assert bends[2] > 0.5
