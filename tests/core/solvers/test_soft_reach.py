"""Soft reach: how far a chain is stretched to a target near the end of its reach."""

import math

import numpy as np
import pytest

from ccd_rig.kernel import FULL_EASING, LONGEST, ease_limbs
from ccd_rig.solvers.soft_reach import stretched

EXACT = 1e-12
LENGTHS = np.full(400, 0.6)
SOFT = 0.02
FAR = np.full(400, 1.0)  # a base pose's end that far away does not count


def test_a_distance_is_eased_as_nicholas_has_it():
    beyond = np.array([0.0, 0.01, 0.02, 0.1])
    eased, size = stretched(0.98 + beyond, 1.0, SOFT, 0.5, 1.0), LONGEST - 0.98
    wanted = [0.98 + size * (1.0 - math.exp(-each / size)) for each in beyond]
    assert eased == pytest.approx(wanted, abs=EXACT)


def test_within_what_is_not_eased_a_distance_stays_to_the_bit():
    distances = np.linspace(0.0, 0.98 * 0.6 - EXACT, 400)
    assert (stretched(distances, LENGTHS, SOFT, 0.5 * LENGTHS, FAR) == distances).all()


def test_a_chain_is_never_straight_and_never_stretched_past_its_target():
    distances = np.linspace(0.0, 1.0, 400)
    goes = stretched(distances, LENGTHS, SOFT, 0.5 * LENGTHS, FAR)
    assert (goes <= distances + EXACT).all()
    assert (goes <= LONGEST * 0.6 + EXACT).all()
    assert (np.diff(goes) >= 0.0).all()


def test_the_angle_of_a_bend_changes_evenly_where_it_snapped():
    """A target at one hundredth of the length a frame: 16 degrees in the frame in which it left reach."""
    distances = np.arange(0.90, 1.1, 0.01)
    ones = np.ones_like(distances)
    hard, soft = np.minimum(distances, 1.0), stretched(distances, ones, SOFT, 0.5 * ones, ones)
    steps = [np.abs(np.diff(np.degrees(2.0 * np.arccos(each)))).max() for each in (hard, soft)]
    assert steps[0] > 16.0
    assert steps[1] < 5.5


@pytest.mark.parametrize("base", [0.985, 0.999, 1.0])
def test_a_target_that_the_base_pose_meets_is_met(base):
    one = np.ones(1)
    assert stretched(base * one, one, SOFT, base * one, 0.0 * one) == pytest.approx(base, abs=EXACT)
    away = stretched(base * one, one, SOFT, base * one, FULL_EASING * SOFT * one)
    assert away == stretched(base * one, one, SOFT, 0.0, 1.0)
    assert away < base


def test_easing_sets_in_smoothly_as_a_target_leaves_the_base_pose():
    apart = np.linspace(0.0, 2.0 * FULL_EASING * SOFT, 400)
    ones = np.ones_like(apart)
    goes = stretched(ones, ones, SOFT, ones, apart)
    assert np.abs(np.diff(goes)).max() < 2e-4
    assert np.abs(np.diff(goes, 2)).max() < 1e-5


def test_an_eased_pose_as_the_base_leads_to_itself():
    distances = np.linspace(0.97, 1.2, 400)
    ones = np.ones_like(distances)
    once = stretched(distances, ones, SOFT, 0.5 * ones, ones)
    again = stretched(distances, ones, SOFT, once, distances - once)
    assert again == pytest.approx(once, abs=EXACT)


def test_targets_of_limbs_come_nearer_along_the_line_from_the_root():
    """Two limbs, with a target out of reach and one that is not eased."""
    root, knee, end = np.array([0.3, -0.2, 0.5]), np.array([0.3, 0.2, 0.2]), np.array([0.3, -0.1, -0.2])
    way = np.array([0.48, -0.6, 0.64])
    ends, points, limbs = np.array([root + 1.5 * way, root + 0.5 * way]), np.ones((2, 3)), np.empty((2, 3))
    points[:, 1:] = 2.0, 3.0
    before, factor, far = points.copy(), 0.9, np.full((2, 3), 9.0)
    places = np.tile(np.concatenate((root, knee, end)), (2, 1))
    links = ease_limbs(places, far, ends, np.full(2, SOFT), np.full(2, factor), points, limbs)
    lengths = np.linalg.norm([knee - root, end - knee], axis=1)
    whole, present = factor * lengths.sum(), np.linalg.norm(end - root)
    goes = stretched(1.5, whole, SOFT, present, np.linalg.norm(ends[0] - end))
    assert links == 2
    assert points[0] == pytest.approx(before[0] - (1.5 - goes) * way, abs=EXACT)
    assert limbs[0] == pytest.approx((1.5 - goes, whole - goes, present), abs=EXACT)
    assert points[1] == pytest.approx(before[1], abs=0.0)
    assert limbs[1] == pytest.approx((0.0, whole - present, present), abs=EXACT)


@pytest.mark.parametrize("axis", range(3))
def test_links_of_limbs_count_where_they_have_a_length_in_all_poses(axis):
    places = np.zeros((2, 9))
    places[:, 3 + axis] = 1.0, 0.0
    places[:, 6 + axis] = 2.0
    targets = np.zeros((2, 3)), np.zeros((2, 3))
    arrays = np.zeros(2), np.ones(2), np.zeros((2, 3)), np.empty((2, 3))
    assert ease_limbs(places, *targets, *arrays) == 1


def test_a_target_that_a_limb_meets_at_rest_is_met_from_any_pose():
    """And easing sets in as the target leaves that place, as it does beside the end of the base pose."""
    steps, rest = np.linspace(0.0, 0.1, 400), np.array([0.6, 0.0, 0.0])
    size = len(steps)
    bent = np.tile([0.0, 0.0, 0.0, 0.0, 0.3, 0.0, 0.3, 0.3, 0.0], (size, 1))
    ends = rest + np.outer(steps, (0.0, 0.0, 1.0))
    points, limbs = ends.copy(), np.empty((size, 3))
    rests, ones = np.tile(rest, (size, 1)), np.ones(size)
    ease_limbs(bent, rests, ends, SOFT * ones, ones, points, limbs)
    distances = np.linalg.norm(ends, axis=1)
    goes = stretched(distances, 0.6, SOFT, 0.6, steps)
    assert limbs[0, 0] == 0.0
    assert (points[0] == ends[0]).all()
    assert np.linalg.norm(points, axis=1) == pytest.approx(goes, abs=EXACT)
    assert limbs[1:, 1] == pytest.approx(0.6 - goes[1:], abs=EXACT)
