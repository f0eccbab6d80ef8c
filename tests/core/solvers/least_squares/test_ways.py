"""Parts of the choice between ways, against what a loop over the frames says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ccd_rig.solvers.least_squares import ways
from ccd_rig.solvers.least_squares.frames import solved_at
from ccd_rig.solvers.least_squares.solve import Solved
from ccd_rig.solvers.least_squares.state import State


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
