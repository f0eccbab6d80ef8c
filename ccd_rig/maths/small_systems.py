"""Small linear systems, one for each pose; the batch last.

LAPACK takes one matrix at a time, several microseconds each; here each operation runs over all poses.
"""

from __future__ import annotations

import numpy as np

from .batch import Array


def products(slope: Array, weighted: Array, symmetric: bool) -> Array:
    """(m, m, B): J W J^T, of J (m, k, B) and J W; half of it is worked out where it is symmetric."""
    m, _, size = slope.shape
    found = np.empty((m, m, size))
    for i in range(m):
        first = i if symmetric else 0
        found[i, first:] = np.einsum("kb,nkb->nb", slope[i], weighted[first:])
        if symmetric:
            found[i + 1 :, i] = found[i, i + 1 :]
    return found


def inverses(system: Array) -> Array:
    """(m, m, B): the inverses of positive definite matrices, by Gauss and Jordan's elimination."""
    found = system.copy()
    for i in range(len(system)):
        pivot = 1.0 / found[i, i]
        found[i, i] = 1.0
        row = found[i] * pivot
        factors = found[:, i].copy()
        factors[i] = 0.0
        found[i], found[:i, i], found[i + 1 :, i] = row, 0.0, 0.0
        found -= factors[:, None] * row
    return found


def solved(system: Array, damping: Array, wanted: Array) -> Array:
    """(m, B): what a damped system (m, m, B) makes `wanted`.

    Gauss elimination, all poses at once: the system is positive definite, or nearly so.
    """
    m = len(system)
    rows, found = system.copy(), wanted.copy()
    rows[np.arange(m), np.arange(m)] += damping
    for i in range(m):
        # Of a symmetric system all pivots are at least as large as the damping.
        rows[i, i] = 1.0 / np.maximum(rows[i, i], damping)
        if i < m - 1:
            factors = rows[i + 1 :, i] * rows[i, i]
            rows[i + 1 :, i + 1 :] -= factors[:, None] * rows[i, i + 1 :]
            found[i + 1 :] -= factors * found[i]
    for i in reversed(range(m)):
        found[i] *= rows[i, i]
        found[:i] -= rows[:i, i] * found[i]
    return found
