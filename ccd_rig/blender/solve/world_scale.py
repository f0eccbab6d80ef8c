# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a unit of armature space is in the world."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...errors import RigError
from ..scene.evaluation import FrameSample


def scale(sample: FrameSample) -> float:
    """World metres per unit of armature space, along the axis that is stretched most.

    A tolerance divided by it is never looser than the one in world metres, whatever the scale and shear.
    """
    return _scale(sample.frame, tuple(map(tuple, sample.matrix_world.to_3x3())))


def scales(frames: Iterable[float], worlds: NDArray[np.float64]) -> NDArray[np.float64]:
    """(R,) the same at R frames, or (1,) for all, with (R, 3, 3) from armature space to the world."""
    if (worlds == worlds[:1]).all():
        worlds = worlds[:1]
    return np.array(
        [
            _scale(frame, tuple(map(tuple, world)))
            for frame, world in zip(frames, worlds.tolist(), strict=False)
        ]
    )


def _scale(frame: float, rows: tuple[tuple[float, ...], ...]) -> float:
    largest = _largest_stretch(rows)
    if not (np.isfinite(largest) and largest > 0.0):
        raise RigError(f"frame {frame:g}: the armature object has a scale of 0: give it another scale")
    return largest


@lru_cache(maxsize=16)
def _largest_stretch(rows: tuple[tuple[float, ...], ...]) -> float:
    """The spectral norm of a 3x3 matrix; most armature objects keep theirs."""
    return float(np.linalg.norm(np.array(rows), ord=2))
