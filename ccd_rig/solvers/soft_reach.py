"""Soft reach: how far a chain is stretched to a target near the end of its reach, so that it does not snap.

The bend of a limb goes with the root of what its length lacks, and so turns at any speed where it becomes
straight. From d_a = (1 - soft) length on a target at the distance d is taken to be at

    d_a + s (1 - exp(-(d - d_a) / s)),  s = soft length

(A. Nicholas, xsi-blog.com/archives/108). A target that the base pose meets is met as it does: the curve sets
in smoothly as the target leaves the base pose's end.
"""

from __future__ import annotations

import numpy as np

from ..maths.batch import Array

NEAR = 4.0
"""In lengths of the eased part: how far a target is from the base pose's end where the curve counts whole."""


def softened(distances: Array, lengths: Array, soft: Array | float) -> Array:
    """(R,) the eased distances of targets, from the root of chains of these lengths."""
    eased = np.maximum(np.asarray(soft, np.float64) * lengths, 1e-30)
    beyond = distances - (lengths - eased)
    return np.where(beyond > 0.0, lengths - eased * np.exp(-np.maximum(beyond, 0.0) / eased), distances)


def stretched(distances: Array, lengths: Array, soft: Array | float, bases: Array, apart: Array) -> Array:
    """(R,) how far chains are stretched to targets, at most their distance.

    Args:
        distances: (R,) of the targets from the chains' roots.
        lengths: (R,) of the chains, straight.
        soft: part of its length over which a chain is eased, 0 to 1, of all or each.
        bases: (R,) how far the base poses stretch them.
        apart: (R,) from the targets to the ends of the base poses.
    """
    eased = softened(distances, lengths, soft)
    kept = np.maximum(eased, np.minimum(distances, np.minimum(bases, lengths)))
    part = np.clip(apart / np.maximum(NEAR * np.asarray(soft) * lengths, 1e-30), 0.0, 1.0)
    return np.asarray(kept + (eased - kept) * part * part * (3.0 - 2.0 * part))
