"""Soft reach: eased distances of targets near the end of a chain's reach, so that limbs do not snap straight.

The bend of a limb is proportional to the square root of the length it lacks. So its speed has no bound where
the limb becomes straight. From d_a = (1 - soft) length on, the distance d of a target is eased to

    d_a + s (1 - exp(-(d - d_a) / s)),  s = soft length

(A. Nicholas, xsi-blog.com/archives/108). A target that the base pose meets is met exactly; the curve sets in
smoothly as the target leaves the base pose's end.
"""

from __future__ import annotations

import numpy as np

from ..kernel import soften
from ..maths.batch import Array

SOFTNESS = 0.02
"""Softness of limbs: part of their length over which arms and legs ease into straight."""
SHORT = 0.9998
"""Largest eased extension: the pose of a straight chain has no side, and no gradient along its line."""
NEAR = 4.0
"""Distance of a target from the base pose's end at which the curve has full effect, in eased lengths."""


def softened(distances: Array, lengths: Array, soft: Array | float) -> Array:
    """(R,) the eased distances of targets, from the root of chains of these lengths."""
    far, whole, part = (np.array(each, np.float64) for each in np.broadcast_arrays(distances, lengths, soft))
    eased = np.empty_like(far)
    soften(far, whole, part, eased)
    return eased


def stretched(distances: Array, lengths: Array, soft: Array | float, bases: Array, apart: Array) -> Array:
    """(R,) lengths to which chains are stretched, at most the distances of their targets.

    Args:
        distances: (R,) of the targets from the chains' roots.
        lengths: (R,) of the chains, straight.
        soft: part of its length over which a chain is eased, 0 to 1, of all or each.
        bases: (R,) lengths to which the base poses stretch them.
        apart: (R,) distances from targets to the ends of the base poses.
    """
    # It sets in at (1 - soft) length, and goes to SHORT length.
    eased = softened(distances, SHORT * lengths, np.maximum(1.0 - (1.0 - np.asarray(soft)) / SHORT, 0.0))
    kept = np.maximum(eased, np.minimum(distances, np.minimum(bases, lengths)))
    part = np.clip(apart / np.maximum(NEAR * np.asarray(soft) * lengths, 1e-30), 0.0, 1.0)
    return np.asarray(kept + (eased - kept) * part * part * (3.0 - 2.0 * part))
