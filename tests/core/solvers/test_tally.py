"""Frames counted while they are solved: only those that are over, and never fewer than before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from mathutils import Quaternion, Vector

from ccd_rig.goals import PositionGoal
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.requests import Request, Search, counted, settled, solve_requests, solving
from ccd_rig.solvers.least_squares.solve import Limits, Solved, batch_steps
from ccd_rig.solvers.least_squares.state import Bones, Poses, start_state
from ccd_rig.solvers.tally import Count, Tally


def request(*far: float) -> Request:
    """A straight chain of three joints that reaches for targets so far away along Y, from its side."""
    along = Vector((0.0, 1.0, 0.0))
    bones = [Joint("a", length=1.0), *(Joint(name, k, along, length=1.0) for k, name in enumerate("bc"))]
    skeleton, size = Skeleton(bones), len(far)
    goal = PositionGoal("c", (0.0, 0.0, 0.0), offset=along)
    problem = LeastSquaresProblem(skeleton, (goal,), [None] * 3)
    bent = np.array(Quaternion((1.0, 0.0, 0.0), 0.4)[:])
    rotations = np.broadcast_to(bent[:, None, None], (4, 3, size)).copy()
    poses = Poses(rotations, np.zeros((3, 3, size)))
    targets = [np.array([[0.3] * size, far, [0.2] * size])]
    given = problem.given(Bones.of(skeleton), poses, targets, None)
    start = start_state(problem.layout, given, poses)
    return Request(problem, given, start, Limits(np.full(size, 1e-4), 1e-3, 40))


def test_a_frame_counts_when_all_its_groups_have_ended():
    tally = Tally()
    tally.begin(10)
    left, right = tally.count(10, 2), tally.count(10, 2)
    left.note(10)
    assert tally.done == 5
    right.note(4)
    assert tally.done == 7
    right.note(100)
    assert tally.done == 9, "nothing is left to do is not known yet"
    right.note(3, is_first=False)
    assert (tally.done, tally.beside) == (9, 3)
    tally.end()
    assert (tally.done, tally.beside) == (10, 0)
    tally.begin(1)
    tally.count(1, 1).note(1)
    assert tally.done == 10
    tally.end()
    assert tally.done == 11


def test_parts_share_a_frame():
    tally = Tally()
    tally.begin(6)
    tally.parts = 3
    for _ in range(2):
        tally.count(6, 1).finish()
    assert tally.done == 4


def test_poses_that_end_are_counted_as_they_end():
    """One in reach, one far out of it, one with all its iterations used up."""
    asked = request(2.0, 2.5, 7.0, 2.9)
    left = [len(places) for places in batch_steps(*asked[:4])]
    assert left[0] == 4 and left == sorted(left, reverse=True) and left[-1] < 4
    count = Count(4, 1.0)

    def search() -> Search[Solved]:
        return (yield from solving(*asked[:4], is_first=True))

    counting = counted(search(), count)
    (present,) = next(counting)
    assert present.counter is count
    solved = solve_requests((present, asked))
    assert count.ended == 4 and count.beside == 0
    assert np.array_equal(solved[0].square, solved[1].square)
    assert np.array_equal(settled(counted(search(), Count(4, 1.0))).square, solved[0].square)


def test_a_lone_pose_is_counted_once():
    count = Count(5, 1.0)
    solve_requests((request(2.0)._replace(counter=count, is_first=True),))
    assert count.ended == 1


def test_out_of_iterations_counts_too():
    asked = request(2.0, 2.5)
    count = Count(2, 1.0)
    hurried = asked._replace(limits=replace(asked.limits, iterations=1), counter=count, is_first=True)
    (solved,) = solve_requests((hurried,))
    assert (solved.excess > 1.0).all() and count.ended == 2
