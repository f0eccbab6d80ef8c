"""Small linear systems, one for each pose; the batch last."""

from __future__ import annotations

import numpy as np

from .batch import Array


def products(slope: Array, weighted: Array, symmetric: bool) -> Array:
    """(m, m, B): J W J^T."""
    m, _, size = slope.shape
    if m > 8 or not symmetric:
        found = np.matmul(
            np.ascontiguousarray(slope.transpose(2, 0, 1)), np.ascontiguousarray(weighted.transpose(2, 1, 0))
        )
        return np.ascontiguousarray(found.transpose(1, 2, 0))
    found = np.empty((m, m, size))
    for i in range(m):
        found[i, i:] = np.einsum("kb,nkb->nb", slope[i], weighted[i:])
        found[i + 1 :, i] = found[i, i + 1 :]
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
