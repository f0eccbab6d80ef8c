"""Parts of the choice between ways, against what a loop over the frames says."""

from __future__ import annotations

import random

import numpy as np
import pytest
from chains import straight

from ccd_rig.goals import PositionGoal
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares import ways
from ccd_rig.solvers.least_squares.alone import Alone
from ccd_rig.solvers.least_squares.frames import Frames, solved_at
from ccd_rig.solvers.least_squares.problem import LeastSquaresProblem
from ccd_rig.solvers.least_squares.solve import Limits, Solved
from ccd_rig.solvers.least_squares.state import Bones, Poses, State, start_state


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("sign", [1, -1])
def test_key_poses_go_on_from_the_last_that_met_its_goals(seed, sign):
    rng = random.Random(seed)
    count = rng.randint(2, 9)
    met = np.array([rng.random() < 0.4 for _ in range(count)])
    here = np.arange(1, count) if sign > 0 else np.arange(count - 1)
    own = np.array([rng.random() < 0.7 for _ in here])
    found = ways._sources(own, met, here - sign, sign)
    for meets, place, source in zip(own, here.tolist(), found.tolist(), strict=True):
        expected = before = place - sign
        while 0 <= before < count and not met[before]:
            before -= sign
        if meets and 0 <= before < count:
            expected = before
        assert source == expected


def offer(number, count):
    """Poses of one joint, all of whose numbers say which offer and which pose they are of."""
    marks = 10.0 * number + np.arange(count)
    state = State(
        np.broadcast_to(marks, (4, 1, count)).copy(),
        np.broadcast_to(marks, (1, count)).copy(),
        np.zeros((0, count)),
        np.broadcast_to(marks, (1, 3, 4, count)).copy(),
    )
    return Solved(state, marks.copy(), marks.copy(), marks.astype(np.intp), marks % 2 == 0)


@pytest.mark.parametrize("chosen", [[0, 0, 0, 0], [2, 0, 1, 0], [1, 1, 2, 2], [0, 2, 2, 1]])
def test_each_pose_is_that_of_the_offer_chosen_for_it(chosen):
    offers = [offer(number, 4) for number in range(3)]
    taken = ways._taken(offers, np.array(chosen))
    expected = [10.0 * number + place for place, number in enumerate(chosen)]
    for found in (taken.excess, taken.square, taken.iterations, taken.state.angles[0]):
        assert found.tolist() == expected
    assert (taken.state.rotations == expected).all() and (taken.state.transforms == expected).all()
    assert taken.stalled.tolist() == [mark % 2 == 0 for mark in expected]
    assert solved_at(offers[0], np.arange(4)).excess.tolist() == [0.0, 1.0, 2.0, 3.0]  # as it was


def frames_at_rest(size, fixed):
    """Frames of a chain that stands on its target."""
    skeleton = straight(3)
    problem = LeastSquaresProblem(skeleton, [PositionGoal("joint2", (0.0, 3.0, 0.0))], [None] * 3)
    poses = Poses.of([Pose.rest(skeleton)] * size)
    given = problem.given(Bones.of(skeleton), poses, problem.own_targets(), poses)
    base, stop = start_state(problem.layout, given, poses), Limits(np.full(size, 1e-3), 1e-3, 40)
    return Frames(problem, given, base, stop, np.full(size, fixed), np.arange(float(size)))


def solved_as(frames, excess):
    """Their base poses, which miss their goals by so many tolerances."""
    size = len(frames.times)
    zeros = np.zeros(size)
    return Solved(frames.base, np.full(size, excess), zeros, zeros.astype(np.intp), zeros > 0.0)


def without_requests(search):
    """What a search comes to that has nothing to be solved."""
    with pytest.raises(StopIteration) as ended:
        next(search)
    return ended.value.value


@pytest.mark.parametrize("why", ["fixed", "out of reach"])
def test_frames_that_stay_or_are_out_of_reach_are_not_asked_for_another_way(why):
    frames = frames_at_rest(6, why == "fixed")
    missed, none = solved_as(frames, 9.0), np.zeros(6, np.bool_)
    far = np.full(6, why == "out of reach")
    search = ways._leads_elsewhere(frames, missed, np.arange(5), far, Alone(none, missed))
    elsewhere, alone = without_requests(search)
    assert not elsewhere.any() and not alone.known.any()


def test_key_poses_that_meet_their_goals_without_a_leap_are_not_solved_again():
    frames = frames_at_rest(5, False)
    own = solved_as(frames, 0.5)
    for found in without_requests(ways._continued(frames, own, np.ones(4, np.bool_))):
        assert found is own


def test_key_poses_that_fit_together_stay_as_they_are():
    """Their very bits: neither do they leap, nor is one missed where another is met."""
    frames = frames_at_rest(5, False)
    near = np.ones(4, np.bool_)
    for excess in (0.5, 9.0):
        own = solved_as(frames, excess)
        assert without_requests(ways.choose_key_ways(frames, own, near)) is own
