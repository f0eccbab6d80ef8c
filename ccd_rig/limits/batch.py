"""Limits over many rotations at once, in double precision.

Arrays carry the batch last: rotations (4, n, B) are the unit quaternions (w, x, y, z) of n joints in B poses,
relative to rest, in the joints' own frames. All angles are radians. Each rotation is projected for itself by
`kernel/limits.py`, as `shapes.clamp` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernel import LIMIT_WIDTH, nearest_of_many
from ..maths.batch import Array, Mask, angles_between
from .shapes import Limit


class BatchLimits:
    """Limits of n joints in B poses.

    Attributes:
        rows: (rows, LIMIT_WIDTH) of the limits.
        numbers: (n, 1) of each joint's row; -1 leaves it free.
    """

    def __init__(self, limits: Sequence[Limit | None]) -> None:
        """Take one limit per joint, the same for every pose; None leaves the joint free."""
        rows = [limit.row for limit in limits if limit is not None]
        limited = np.array([limit is not None for limit in limits], dtype=np.bool_)
        self.rows: Array = np.array(rows, dtype=np.float64).reshape(len(rows), LIMIT_WIDTH)
        self.numbers: NDArray[Any] = np.where(limited, np.cumsum(limited) - 1, -1)[:, None].astype(np.intc)

    def project(self, rotations: Array) -> tuple[Array, Mask | None]:
        """Project rotations (4, n, B) into their limits, see `shapes.clamp`.

        Each result is on the side of the rotation it replaces (dot product >= 0). Rotations inside are copied
        unchanged.

        Returns:
            The nearest allowed rotations (4, n, B), and a mask (n, B) of the rotations that were outside by
            more than `ROUNDING`. Where all are inside: `rotations` itself and None.
        """
        if not rotations.size or not len(self.rows):
            return rotations, None
        # Flat memoryviews: the uncompiled kernel reads them several times as fast as arrays.
        contiguous = np.ascontiguousarray(rotations, dtype=np.float64)
        projected, outside = np.empty(contiguous.shape), np.empty(contiguous.shape[1:], dtype=np.uint8)
        count = nearest_of_many(
            self.rows.reshape(-1).data,
            np.ascontiguousarray(self.numbers).reshape(-1).data,
            contiguous.reshape(-1).data,
            projected.reshape(-1).data,
            outside.reshape(-1).data,
        )
        return (projected, outside.view(np.bool_)) if count else (rotations, None)

    def violations(self, rotations: Array) -> Array:
        """Angles (n, B) in radians by which rotations are outside their limits; 0 up to `ROUNDING`."""
        angles = np.zeros(rotations.shape[1:])
        projected, outside = self.project(rotations)
        if outside is not None:
            angles[outside] = angles_between(projected[:, outside], rotations[:, outside])
        return angles

    def contains(self, rotations: Array, tolerance: float = 0.0) -> Mask:
        """A mask (n, B) of rotations outside by at most `tolerance` radians; up to `ROUNDING` is inside."""
        inside: Mask = self.violations(rotations) <= tolerance
        return inside
