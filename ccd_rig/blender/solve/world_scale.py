# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a unit of armature space is in the world."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...errors import RigError
from ..scene.evaluation import FrameSample


def scale(sample: FrameSample) -> float:
    """World metres per unit of armature space, along the axis that is stretched most.

    A tolerance divided by it is never looser than the one in world metres, whatever the scale and shear.
    """
    largest = _largest_stretch(tuple(map(tuple, sample.matrix_world.to_3x3())))
    if not (np.isfinite(largest) and largest > 0.0):
        raise RigError(f"frame {sample.frame:g}: the armature object has a scale of 0: give it another scale")
    return largest


def scales(samples: Sequence[FrameSample]) -> NDArray[np.float64]:
    """The same for many frames; of those that share a matrix it is worked out once."""
    factors: list[float] = []
    for k, sample in enumerate(samples):
        same = k > 0 and sample.matrix_world is samples[k - 1].matrix_world
        factors.append(factors[-1] if same else scale(sample))
    return np.array(factors)


@lru_cache(maxsize=16)
def _largest_stretch(rows: tuple[tuple[float, ...], ...]) -> float:
    """The spectral norm of a 3x3 matrix; most armature objects keep theirs."""
    return float(np.linalg.norm(np.array(rows), ord=2))
