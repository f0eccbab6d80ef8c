"""Small linear systems, one for each pose; the batch last.

LAPACK takes one matrix at a time, several microseconds each; here each operation runs over all poses.
"""

from __future__ import annotations

import numpy as np

from .batch import Array

PIVOT = 0.1
"""A pivot that is smaller than this part of the largest entry below it is exchanged for that one's row."""


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


def inverses(system: Array, damping: Array, symmetric: bool = True) -> Array:
    """(m, m, B): the inverses of damped systems, see `solved`; of symmetric ones by Gauss and Jordan."""
    if not symmetric:
        identity = np.repeat(np.eye(len(system))[..., None], system.shape[-1], axis=-1)
        return solved(system, damping, identity, False)
    found = system.copy()
    found[np.arange(len(system)), np.arange(len(system))] += damping
    for i in range(len(system)):
        pivot = 1.0 / found[i, i]
        found[i, i] = 1.0
        row = found[i] * pivot
        factors = found[:, i].copy()
        factors[i] = 0.0
        found[i], found[:i, i], found[i + 1 :, i] = row, 0.0, 0.0
        found -= factors[:, None] * row
    return found


def solved(system: Array, damping: Array, wanted: Array, symmetric: bool = True) -> Array:
    """(m, B) or (m, n, B), as `wanted` is: what a damped system (m, m, B) makes `wanted`.

    Gauss elimination, all poses at once. A symmetric system is positive definite, or nearly so; of another
    one rows change places where a pivot is small.
    """
    m = len(system)
    rows, found = system.copy(), wanted.reshape(m, -1, wanted.shape[-1]).copy()
    rows[np.arange(m), np.arange(m)] += damping
    for i in range(m):
        if symmetric:  # then all pivots are at least as large as the damping
            pivot = np.maximum(rows[i, i], damping)
        else:
            _swap(rows, found, i)
            pivot = np.where(np.abs(rows[i, i]) < damping, damping, rows[i, i])
        rows[i, i] = 1.0 / pivot
        if i < m - 1:
            factors = rows[i + 1 :, i] * rows[i, i]
            rows[i + 1 :, i + 1 :] -= factors[:, None] * rows[i, i + 1 :]
            found[i + 1 :] -= factors[:, None] * found[i]
    for i in reversed(range(m)):
        found[i] *= rows[i, i]
        found[:i] -= rows[:i, i, None] * found[i]
    return np.asarray(found.reshape(wanted.shape))


def _swap(rows: Array, found: Array, i: int) -> None:
    """Exchange row `i` of systems (m, m, B), in place, for one below it with a far larger entry there."""
    column = np.abs(rows[i:, i])
    best = column.argmax(0)
    some = np.flatnonzero(column[0] < PIVOT * column.max(0))
    if len(some):
        below = i + best[some]
        for each in (rows, found):
            kept = each[i][:, some].T
            each[i][:, some] = each[below, :, some].T
            each[below, :, some] = kept
