"""Rows that are filled ahead hold what they would if each had been written by itself."""

from __future__ import annotations

import random

import numpy as np
import pytest


@pytest.mark.parametrize("changes", [0.0, 0.02, 0.3, 0.9])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_what_was_put_in(ext, changes, seed):
    rng, frames = random.Random(seed), 70
    arrays = np.full((frames, 3), np.nan), np.full((frames, 2, 2), np.nan)
    repeated = ext.module("ccd_rig.blender.bake.repeated_rows").RepeatedRows(arrays)
    wanted = np.empty(frames)
    for row in range(frames):
        if row == 0 or rng.random() < changes:
            wanted[row] = rng.random()
            repeated.set(row, np.full(3, wanted[row]), [[wanted[row]] * 2] * 2)
        else:
            wanted[row] = wanted[row - 1]
            repeated.keep(row)
        assert (arrays[0][: row + 1] == wanted[: row + 1, None]).all()
    assert (arrays[1] == wanted[:, None, None]).all()


@pytest.mark.parametrize("seed", range(5))
def test_places_of_a_row_change_alone(ext, seed):
    rng, frames = random.Random(seed), 40
    array = np.full((frames, 4, 2), np.nan)
    repeated = ext.module("ccd_rig.blender.bake.repeated_rows").RepeatedRows((array,))
    wanted = np.empty((frames, 4, 2))
    for row in range(frames):
        wanted[row] = wanted[row - 1]
        places = [0, 1, 2, 3] if row == 0 else rng.sample(range(4), rng.randrange(4))
        if row and not places and rng.random() < 0.5:
            repeated.keep(row)
        else:
            value = rng.random()
            wanted[row, places] = value
            repeated.change(row, places, np.full((len(places), 2), value))
        assert (array[: row + 1] == wanted[: row + 1]).all()
