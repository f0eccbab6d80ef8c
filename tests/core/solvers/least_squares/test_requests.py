"""Searches side by side: what is solved together ends as it does alone."""

from __future__ import annotations

import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.goals import BalanceGoal, DirectionGoal, Goal, PoleGoal, PositionGoal
from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, Limit, ReversedLimit, SwingTwist
from ccd_rig.skeleton.joints import Joint, Skeleton, Slide
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.requests import (
    MOST,
    Request,
    Search,
    request_steps,
    settled,
    solve_requests,
    solving,
    together,
)
from ccd_rig.solvers.least_squares.solve import Limits, solve_batch
from ccd_rig.solvers.least_squares.state import Bones, Poses, start_state

CONE = SwingTwist(Cone(0.8), (-0.3, 0.4))


def leg(side: float, limit: Limit | None = None, name: str = "", length: float = 1.0) -> Skeleton:
    """A body with one limb of three joints that is bent at rest, at its left or right."""
    bend = Quaternion((1.0, 0.0, 0.1 * side), 0.3)
    return Skeleton(
        [
            Joint(f"{name}body"),
            Joint(f"{name}upper", 0, Vector((0.3 * side, 0.0, 0.0)), length=length, limit=CONE),
            Joint(f"{name}lower", 1, Vector((0.0, length, 0.0)), bend, length=length, limit=limit),
            Joint(f"{name}end", 2, Vector((0.0, length, 0.0)), bend, length=0.4),
        ]
    )


def request(
    skeleton: Skeleton, size: int, seed: int, goals: tuple[Goal, ...] = (), referred: bool = True
) -> Request:
    """Random targets for the end of a limb, near it."""
    names = [joint.name for joint in skeleton.joints]
    random = np.random.default_rng(seed)
    goals = goals or (PositionGoal(names[3], (0.0, 1.0, 0.0), chain_length=3),)
    problem = LeastSquaresProblem(skeleton, goals, [joint.limit for joint in skeleton.joints])
    rotations = np.zeros((4, 4, size))
    rotations[0] = 1.0
    poses = Poses(rotations, np.zeros((3, 4, size)))
    targets = [np.array([[0.3], [1.6], [0.5]]) + random.uniform(-0.4, 0.4, (3, size)) for _ in problem.goals]
    given = problem.given(Bones.of(skeleton), poses, targets, poses if referred else None)
    start = start_state(problem.layout, given, poses)
    return Request(problem, given, start, Limits(np.full(size, 1e-4), 1e-3, 40))


def assert_alone(requests: list[Request]) -> None:
    """Every request ends in the very bits of one that is solved alone."""
    for asked, found in zip(requests, solve_requests(requests), strict=True):
        (alone,) = solve_requests([asked])
        if asked.start.size > 1:
            assert np.array_equal(alone.square, solve_batch(*asked[:4]).square)
        for mine, its in zip(found.state, alone.state, strict=True):
            assert np.array_equal(mine, its)
        assert np.array_equal(found.excess, alone.excess)
        assert np.array_equal(found.iterations, alone.iterations)
        assert np.array_equal(found.stalled, alone.stalled)


@pytest.mark.parametrize("limit", [None, CONE, Hinge((1.0, 0.0, 0.0), -0.2, 2.0)])
@pytest.mark.parametrize("referred", [True, False])
def test_what_is_alike_is_solved_together_to_the_bit(limit: Limit | None, referred: bool) -> None:
    left, right = leg(1.0, limit, "l."), leg(-1.0, limit, "r.")
    requests = [
        request(left, 9, 1, referred=referred),
        request(right, 40, 2, referred=referred),
        request(left, 2, 3, referred=referred),
    ]
    assert len({each.kind for each in requests}) == 1
    assert_alone(requests)


MIRRORED: list[tuple[Limit, Limit]] = [
    (SwingTwist(Cone(0.8), (-0.3, 0.4)), SwingTwist(Cone(0.5), (-0.4, 0.3))),
    (SwingTwist(Ellipse(-0.3, 0.9, -0.4, 0.1)), SwingTwist(Ellipse(-0.3, 0.9, -0.1, 0.4))),
    (
        SwingTwist(Ellipse(-0.3, 0.9, -0.4, 0.1), (0.1, 0.1)),
        SwingTwist(Ellipse(-0.2, 0.9, -0.1, 0.4), (0, 0)),
    ),
    (Hinge((1.0, 0.0, 0.0), -0.2, 2.0), Hinge((0.8, 0.6, 0.0), -0.1, 1.5)),
    (
        EulerBox("XYZ", (-0.2, -0.3, -0.1), (1.0, 0.1, 0.2)),
        EulerBox("XYZ", (-0.2, -0.1, -0.2), (1.0, 0.3, 0.1)),
    ),
    (
        ReversedLimit(SwingTwist(Cone(0.6), (-0.3, 0.4)), (0.9, 0.1, 0.2, 0.0)),
        ReversedLimit(SwingTwist(Cone(0.4), (-0.3, 0.4)), (0.8, -0.1, 0.3, 0.2)),
    ),
]


@pytest.mark.parametrize(("one", "other"), MIRRORED)
@pytest.mark.parametrize("referred", [True, False])
def test_limbs_whose_limits_differ_in_numbers_are_solved_together(
    one: Limit, other: Limit, referred: bool
) -> None:
    left, right = leg(1.0, one, "l."), leg(-1.0, other, "r.")
    requests = [
        request(left, 30, 1, referred=referred),
        request(right, 30, 2, referred=referred),
        request(left, 1, 3, referred=referred),
    ]
    assert len({each.kind for each in requests}) == 1
    assert_alone(requests)
    first, second, _ = solve_requests(requests)
    assert not np.array_equal(first.state.rotations, second.state.rotations)


def test_poles_of_chains_that_bend_otherwise_are_solved_together() -> None:
    legs = [leg(1.0, Hinge((1.0, 0.0, 0.0), -0.2, 2.0)), leg(-1.0, Hinge((0.8, 0.6, 0.0), -0.1, 1.5))]
    names = [joint.name for joint in legs[0].joints]
    for angle in (0.0, 0.4):
        goals = (
            PositionGoal(names[3], (0.0, 1.0, 0.0), chain_length=3),
            PoleGoal("upper", names[3], (0.0, 1.0, 0.0), angle=angle),
        )
        requests = [request(each, 20, k, goals) for k, each in enumerate(legs)]
        axes = [goals[1].bend_axis(each).axis for each in legs]
        assert axes[0] != axes[1]
        assert len({each.kind for each in requests}) == 1
        assert_alone(requests)


def test_limbs_of_other_lengths_are_solved_together() -> None:
    for slides in ((), (Slide((0.0, 1.0, 0.0), -0.1, 0.1),)):
        limbs = [leg(1.0, length=length) for length in (1.0, 1.3, 40.0)]
        slid = [limb.replace({"lower": {"slides": slides}}) for limb in limbs]
        requests = [request(each, 20, k) for k, each in enumerate(slid)]
        assert len({each.kind for each in requests}) == 1
        assert_alone(requests)


def test_a_hinge_that_tells_no_side_is_solved_with_one_that_does() -> None:
    legs = [leg(1.0, Hinge((1.0, 0.0, 0.0), -1.0, 1.0)), leg(-1.0, Hinge((0.8, 0.6, 0.0), -0.1, 1.5))]
    end = legs[0].joints[3].name
    goals = PositionGoal(end, (0.0, 1.0, 0.0), chain_length=3), PoleGoal("upper", end, (0.0, 1.0, 0.0))
    requests = [request(each, 20, k, goals) for k, each in enumerate(legs)]
    assert len({each.kind for each in requests}) == 1
    assert_alone(requests)


def test_a_lone_pose_ends_as_it_does_in_company() -> None:
    legs = [leg(side, CONE) for side in (1.0, -1.0)]
    for referred in (True, False):
        assert_alone([request(each, 1, k, referred=referred) for k in range(20) for each in legs])


def test_what_differs_is_not_taken_for_alike() -> None:
    body = leg(1.0)
    end = body.joints[3].name
    point = (0.0, 1.0, 0.0)
    slid = body.replace({"lower": {"slides": (Slide((0.0, 1.0, 0.0), -0.1, 0.1),)}})
    asked = [
        request(body, 3, 0),
        request(body, 3, 0, referred=False),
        request(leg(1.0, CONE), 3, 0),
        request(leg(1.0, SwingTwist(Cone(0.8), (0.1, 0.1))), 3, 0),
        request(leg(1.0, SwingTwist(Ellipse(-0.3, 0.9, -0.4, 0.1), (-0.3, 0.4))), 3, 0),
        request(leg(1.0, ReversedLimit(CONE, (0.9, 0.1, 0.2, 0.0))), 3, 0),
        request(leg(1.0, Hinge((1.0, 0.0, 0.0), -0.2, 2.0)), 3, 0),
        request(leg(1.0, Hinge((1.0, 0.0, 0.0), -4.0, 4.0)), 3, 0),
        request(leg(1.0, EulerBox("XYZ", (-0.2, -0.3, -0.1), (1.0, 0.1, 0.2))), 3, 0),
        request(leg(1.0, EulerBox("ZYX", (-0.2, -0.3, -0.1), (1.0, 0.1, 0.2))), 3, 0),
        request(leg(1.0, EulerBox("XYZ", (-4.0, -0.3, -0.1), (4.0, 0.1, 0.2))), 3, 0),
        request(body.replace({"lower": {"stiffness": 0.5}}), 3, 0),
        request(body.replace({"lower": {"inherit_rotation": False}}), 3, 0),
        request(slid, 3, 0),
        request(body, 3, 0, (PositionGoal(end, point, chain_length=2),)),
        request(body, 3, 0, (PositionGoal(end, point, chain_length=3, weight=2.0),)),
        request(body, 3, 0, (PositionGoal(end, point, chain_length=3, max_extension=0.9),)),
        request(body, 3, 0, (DirectionGoal(end, point, point, chain_length=3),)),
        request(body, 3, 0, (DirectionGoal(end, (1.0, 0.0, 0.0), point, chain_length=3),)),
        request(body, 3, 0, (PoleGoal("upper", end, point),)),
        request(body, 3, 0, (PoleGoal("upper", end, point, angle=0.2),)),
    ]
    patient = asked[0]._replace(limits=Limits(np.full(3, 1e-4), 1e-3, 30))
    asked.append(patient)
    assert len({each.kind for each in asked}) == len(asked)
    assert_alone(asked)


def test_more_than_fits_is_solved_in_parts() -> None:
    skeleton = leg(1.0)
    requests = [request(skeleton, MOST // 2 + 1, seed) for seed in range(3)]
    for asked, found in zip(requests, solve_requests(requests), strict=True):
        assert found.state.size == asked.start.size
        assert (found.excess <= 1.0).mean() > 0.5


def test_searches_go_on_side_by_side_and_end_in_their_order() -> None:
    log: list[tuple[str, int]] = []

    def search(name: str, rounds: int) -> Search[str]:
        for count in range(rounds):
            log.append((name, count))
            solved = yield from solving(*request(leg(1.0), 3, count)[:4])
            assert solved.state.size == 3
            yield ()
        return name

    assert settled(together([search("a", 2), search("b", 3), search("c", 0)])) == ["a", "b", "c"]
    assert log == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("b", 2)]
    assert settled(together([])) == []


def test_a_search_that_fails_ends_the_others() -> None:
    ended = []

    def fails() -> Search[None]:
        yield ()
        raise ValueError("of its own")

    def waits() -> Search[None]:
        try:
            yield ()
            yield ()
        finally:
            ended.append(True)

    with pytest.raises(ValueError, match="of its own"):
        settled(together([waits(), fails()]))
    assert ended == [True]
    searches = together([waits(), waits()])
    assert next(searches) == ()
    searches.close()
    assert ended == [True] * 3


def test_each_step_of_a_batch_is_an_item() -> None:
    asked = request(leg(1.0), 5, 1)
    steps = request_steps([asked])
    items = sum(1 for _ in steps)
    assert items == int(solve_batch(*asked[:4]).iterations.max())


def test_a_balance_that_names_a_joint_beside_its_mass() -> None:
    body = leg(1.0).replace({"upper": {"mass": 1.0}})
    goal = BalanceGoal((0.0, 0.5, 0.0), joint="end")
    requests = [request(body, 3, seed, (goal,)) for seed in (0, 1)]
    assert len({each.kind for each in requests}) == 1
    assert_alone(requests)
