"""Departures between times at which they are known."""

from __future__ import annotations

import numpy as np
import pytest

from ccd_rig.solvers.least_squares.departures import _curve


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_curves_pass_through_what_they_are_given(count):
    rng = np.random.default_rng(count)
    at, values = np.cumsum(rng.uniform(0.5, 3.0, count)), rng.normal(size=(4, 2, count))
    assert _curve(at, values, at) == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("count", [3, 4, 8])
def test_curves_are_parabolas_where_values_are(count):
    """Three values in a row give the slope in the middle: of a parabola they give all of it."""
    rng = np.random.default_rng(count)
    at = np.cumsum(rng.uniform(0.5, 3.0, count))
    a, b, c = rng.normal(size=(3, 5, 1))
    wanted = np.linspace(at[0], at[-1], 50)
    found = _curve(at, a + b * at + c * at**2, wanted)
    assert found == pytest.approx(a + b * wanted + c * wanted**2, abs=1e-9)


def test_curves_have_no_kinks():
    rng = np.random.default_rng(5)
    at, values = np.cumsum(rng.uniform(0.5, 3.0, 6)), rng.normal(size=(1, 6))
    for place in at[1:-1]:
        before, here, after = _curve(at, values, place + np.array((-1e-6, 0.0, 1e-6)))[0]
        assert here - before == pytest.approx(after - here, abs=1e-9)
