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
