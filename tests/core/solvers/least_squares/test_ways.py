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


@pytest.mark.parametrize("why", ["fixed", "out of reach"])
def test_frames_that_stay_or_are_out_of_reach_are_not_asked_for_another_way(why):
    skeleton, size = straight(3), 6
    problem = LeastSquaresProblem(skeleton, [PositionGoal("joint2", (0.0, 1.0, 0.0))], [None] * 3)
    poses = Poses.of([Pose.rest(skeleton)] * size)
    given = problem.given(Bones.of(skeleton), poses, problem.own_targets(), poses)
    base, stop = start_state(problem.layout, given, poses), Limits(np.full(size, 1e-3), 1e-3, 40)
    whole, none = np.ones(size, np.bool_), np.zeros(size, np.bool_)
    fixed, far = (whole, none) if why == "fixed" else (none, whole)
    missed = Solved(base, np.full(size, 9.0), np.ones(size), np.zeros(size, np.intp), none)
    frames = Frames(problem, given, base, stop, fixed, np.arange(float(size)))
    search = ways._leads_elsewhere(frames, missed, np.arange(size - 1), far, Alone(none, missed))
    with pytest.raises(StopIteration) as ended:  # nothing is to be solved
        next(search)
    elsewhere, alone = ended.value.value
    assert not elsewhere.any() and not alone.known.any()
