"""Small systems of many poses at once, beside LAPACK's answer for each."""

from __future__ import annotations

import numpy as np
import pytest

from ccd_rig.maths.small_systems import inverses, products, solved

SIZES = [1, 2, 3, 6, 7, 12, 30]


def slopes(m: int, size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(m, m + 3, size))


@pytest.mark.parametrize("m", SIZES)
def test_products_of_slopes(m):
    slope, weighted = slopes(m, 5, 1), slopes(m, 5, 2)
    for b in range(5):
        np.testing.assert_allclose(
            products(slope, weighted, False)[..., b], slope[..., b] @ weighted[..., b].T, atol=1e-12
        )
        np.testing.assert_allclose(
            products(slope, slope, True)[..., b], slope[..., b] @ slope[..., b].T, atol=1e-12
        )


@pytest.mark.parametrize("m", SIZES)
def test_inverses_of_positive_definite_systems(m):
    slope = slopes(m, 9, 3)
    system = products(slope, slope, True)
    kept = system.copy()
    found = inverses(system, np.zeros(9))
    assert (system == kept).all()
    for b in range(9):
        np.testing.assert_allclose(found[..., b], np.linalg.inv(system[..., b]), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("m", SIZES)
def test_solutions_of_damped_systems(m):
    slope, wanted = slopes(m, 9, 4), np.random.default_rng(5).normal(size=(m, 9))
    system, damping = products(slope, slope, True), np.linspace(1e-6, 2.0, 9)
    found = solved(system, damping, wanted)
    for b in range(9):
        whole = system[..., b] + damping[b] * np.eye(m)
        np.testing.assert_allclose(found[:, b], np.linalg.solve(whole, wanted[:, b]), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("m", SIZES)
def test_systems_that_are_not_symmetric(m):
    """Without an exchange of rows a pivot near zero, or a negative one, takes all digits."""
    random = np.random.default_rng(8)
    system, wanted, damping = random.normal(size=(m, m, 9)), random.normal(size=(m, 9)), np.full(9, 1e-9)
    system[0, 0, 0] = 1e-14 if m > 1 else 1.0
    found, inverse = solved(system, damping, wanted, False), inverses(system, damping, False)
    for b in range(9):
        whole = system[..., b] + damping[b] * np.eye(m)
        np.testing.assert_allclose(found[:, b], np.linalg.solve(whole, wanted[:, b]), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(inverse[..., b], np.linalg.inv(whole), rtol=1e-6, atol=1e-8)


def test_a_system_without_any_slope_has_a_solution():
    found = solved(np.zeros((3, 3, 2)), np.full(2, 1e-12), np.ones((3, 2)))
    assert np.isfinite(found).all()


def test_each_pose_has_the_bits_that_it_has_in_another_batch():
    slope, wanted = slopes(6, 40, 6), np.random.default_rng(7).normal(size=(6, 40))
    some = np.array([3, 17, 31])

    def run(which):
        system = products(slope[..., which].copy(), slope[..., which].copy(), True)
        damping = np.full(len(which), 0.1)
        return solved(system, damping, wanted[:, which].copy()), inverses(system, damping)

    for whole, part in zip(run(np.arange(40)), run(some), strict=True):
        assert (whole[..., some] == part).all()
