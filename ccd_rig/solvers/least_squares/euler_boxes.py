"""Joints inside Euler boxes as three hinges, one on the other, over many poses at once.

The hinge that turns last comes first. With a, b, c their axes in this order and s = 1 where these are
right-handed, else -1, a rotation is the product of three about single axes, whose terms are few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...limits.hinges import FULL_TURN
from ...limits.shapes import Hinge
from ...maths.batch import Array, Indices

# Cosines of the three half angles, then sines: the factors of each component's first term and of its second.
_FIRST: Indices = np.array([[0, 3, 0, 0], [1, 1, 4, 1], [2, 2, 2, 5]], dtype=np.intp)
_SECOND: Indices = np.array([[3, 0, 3, 3], [4, 4, 1, 4], [5, 5, 5, 2]], dtype=np.intp)
_SECOND_SIGNS: Array = np.array([-1.0, 1.0, -1.0, 1.0])


class EulerBoxes:
    """Some joints inside Euler boxes; b counts them.

    Attributes:
        rows: (b,) of the layout.
        columns: those of the hinges, box after box.
        axes: (b, 3) numbers of the hinges' axes, the hinge that turns last first.
        signs: (b, 1) 1 where these are right-handed in that order, else -1.
    """

    def __init__(self, rows: Indices, hinges: Sequence[Sequence[Hinge]], first_column: int) -> None:
        self.rows, count = rows, len(rows)
        self.columns = slice(first_column, first_column + 3 * count)
        self.axes = np.array([[hinge.axis.index(1.0) for hinge in each] for each in hinges], dtype=np.intp)
        a, b, c = self.axes.T
        self.signs = np.where((b - a) % 3 == 1, 1.0, -1.0)[:, None]
        self._second_signs = _SECOND_SIGNS[:, None, None] * self.signs
        # Where components (w, a, b, c) stand in (4, b), and the axes of the two outer hinges in (b, 3, 3).
        boxes = np.arange(count)
        self._components = np.stack((boxes, *((axis + 1) * count + boxes for axis in (a, b, c))))
        outer = 9 * boxes
        self._places = np.concatenate((outer + 3 + b, outer + 3 + a, outer + a, outer + b, outer + c))

    def rotations(self, cosines: Array, sines: Array) -> Array:
        """(4, b, B) the rotations, of half angles (3 b, B)."""
        count, size = len(self.rows), cosines.shape[-1]
        both = np.concatenate((cosines.reshape(count, 3, size), sines.reshape(count, 3, size)), axis=1)
        both = both.transpose(1, 0, 2)
        first = both[_FIRST[0]]
        second = both[_SECOND[0]]
        for place in (1, 2):
            first *= both[_FIRST[place]]
            second *= both[_SECOND[place]]
        second *= self._second_signs
        first += second
        found = np.empty((4 * count, size))
        found[self._components] = first
        return found.reshape(4, count, size)

    def fill_axes(self, angles: Array, into: Array) -> None:
        """Write the hinges' axes in the joints' frames into (3 b, 3, B), whose own coordinates are 1.

        The innermost is its coordinate. The middle one is seen through its rotation, the outer one through
        both.
        """
        inner = angles.reshape(-1, 3, angles.shape[-1])[:, 1:].transpose(1, 0, 2)
        (s0, s1), (c0, c1) = np.sin(inner), np.cos(inner)
        across = self.signs * s1
        flat = into.reshape(-1, into.shape[-1])
        flat[self._places] = np.concatenate((c1, across, c0 * c1, -c0 * across, self.signs * s0))

    def angles(self, rotations: Array, ranges: Sequence[Array]) -> Array:
        """(3 b, B) the angles of rotations (4, b, B) (Bernardes & Viollet 2022), as near to their ranges as
        can be.

        Args:
            rotations: relative to rest.
            ranges: (3 b,) lower and upper bounds, radians, and the middles between.
        """
        w, v = rotations[0], rotations[1:]
        boxes = np.arange(len(w))
        k, j, i = self.axes.T
        sign = -self.signs
        last = sign * v[k, boxes]
        a, b = w - v[j, boxes], v[i, boxes] + last
        c, d = w + v[j, boxes], last - v[i, boxes]
        p, m = np.hypot(a, b), np.hypot(c, d)
        half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
        bounds = tuple(each.reshape(-1, 3, 1) for each in ranges)
        # At gimbal lock only the sum, or only the difference, is known: the innermost angle is then 0, or as
        # near as it may be.
        locked = np.minimum(p, m) < 1e-5 * np.maximum(p, m)
        if locked.any():
            alpha = into_range(np.zeros((len(w), 3, w.shape[1])), bounds)[:, 2]
            half_difference = np.where(locked & (m < p), half_sum - alpha, half_difference)
            half_sum = np.where(locked & (m >= p), half_difference + alpha, half_sum)
        ways = np.empty((2, len(w), 3, w.shape[1]))
        ways[0, :, 0] = sign * (half_sum + half_difference)
        ways[0, :, 1] = 2.0 * np.arctan2(m, p) - 0.5 * math.pi
        ways[0, :, 2] = half_sum - half_difference
        ways[1] = ways[0] + math.pi
        ways[1, :, 1] = math.pi - ways[0, :, 1]
        inside = into_range(ways, bounds)
        off = np.abs(np.remainder(ways - inside + math.pi, FULL_TURN) - math.pi).max(2)
        size = np.abs(inside).sum(2)
        outside = off > 1e-5
        # Inside both ways the smaller angles; outside the nearer one.
        second = np.where(
            outside[0] == outside[1], np.where(outside[0], off[1] < off[0], size[1] < size[0]), outside[0]
        )
        found = np.where(second[:, None], inside[1], inside[0])
        return np.asarray(found.reshape(-1, w.shape[1]))


def into_range(angles: Array, ranges: Sequence[Array]) -> Array:
    """Angles plus whole turns, inside ranges: lower bounds, upper bounds, and the middles between."""
    lower, upper, middle = ranges
    near = angles - FULL_TURN * np.round((angles - middle) / FULL_TURN)
    return np.asarray(np.minimum(np.maximum(near, lower), upper))
