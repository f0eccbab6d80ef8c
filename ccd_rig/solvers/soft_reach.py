"""Soft reach: eased distances of targets near the end of a chain's reach, so that limbs do not snap straight.

The bend of a limb is proportional to the square root of the length it lacks. So its speed has no bound where
the limb becomes straight. From d_a = (1 - soft) length on, the distance d of a target is eased to

    d_a + s (1 - exp(-(d - d_a) / s)),  s = soft length

(A. Nicholas, xsi-blog.com/archives/108). A target that the base pose meets is met exactly, and so is one that
the chain meets at rest: an arm of a T pose is straight there. The curve sets in smoothly as the target leaves
the chain's end in these poses.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..kernel import soften
from ..maths.batch import Array

Value: TypeAlias = Array | float
"""Of R chains, or all."""
SOFTNESS = 0.02
"""Softness of limbs: part of their length over which arms and legs ease into straight."""


def stretched(distances: Value, lengths: Value, soft: Value, bases: Value, apart: Value) -> Array:
    """(R,) lengths to which chains are stretched, at most the distances of their targets.

    Args:
        distances: (R,) of the targets from the chains' roots.
        lengths: (R,) of the chains, straight.
        soft: part of its length over which a chain is eased, 0 to 1, of all or each.
        bases: (R,) lengths to which the base poses stretch them.
        apart: (R,) distances from targets to the ends of the base poses.
    """
    values = map(np.atleast_1d, (distances, lengths, soft, bases, apart))
    far, whole, part, present, away = (
        np.ascontiguousarray(each, np.float64) for each in np.broadcast_arrays(*values)
    )
    eased = np.empty(len(far))
    soften(far, whole, part, present, away, eased)
    return eased
