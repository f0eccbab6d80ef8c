"""What the projections of `batch` share: types, tolerances, and the nearest angle of a range.

Arrays are as in `batch`.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..maths.tolerances import ROUNDING

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]
Number = TypeVar("Number", np.float64, np.intp)

SLACK = 0.5 * ROUNDING
"""`ROUNDING` as a distance between unit quaternions, which is half the angle between the rotations."""
TINY = 1e-150
"""Length of a part of a quaternion below which it has no direction."""


def nearest_half_angle(
    w: Array, p: Array, cm: Array, sm: Array, ch: Array, sh: Array
) -> tuple[Array, Array, Array]:
    """Half angles in ranges nearest to the directions of (w, p): cosine, sine, dot product with (w, p).

    Of two borders that are equally near, a half turn from the middle, the upper one.
    """
    c, d = w * cm + p * sm, p * cm - w * sm
    side = np.where((c < 0.0) | ((c == 0.0) & (d < 0.0)), -1.0, 1.0)
    c *= side
    d *= side
    length = np.sqrt(w * w + p * p)
    inside = (np.abs(d) * ch <= c * sh) & (length > TINY)
    border = np.copysign(sh, d)
    safe = np.maximum(length, TINY)
    cosine = np.where(inside, w / safe, side * (ch * cm - border * sm))
    sine = np.where(inside, p / safe, side * (ch * sm + border * cm))
    return cosine, sine, np.where(inside, length, c * ch + d * border)


def sign_of_first(*components: Array) -> Array:
    """Signs (K,), 1 or -1, of the first component that is not 0; -1 where all are 0."""
    first = components[-1]
    for component in components[-2::-1]:
        first = np.where(component == 0.0, first, component)
    signs: Array = np.where(first > 0.0, 1.0, -1.0)
    return signs


def on_the_side_of(rotations: Array, nearest: Array) -> Array:
    """`nearest` (4, K), each negated where its dot product with the rotation (4, K) is below 0."""
    w, x, y, z = rotations * nearest
    signed: Array = nearest * np.where(w + x + y + z < 0.0, -1.0, 1.0)
    return signed


def broadcast(rows: NDArray[Number], shape: tuple[int, ...]) -> NDArray[Number]:
    """Rows (R, ...) with each row broadcast to `shape`."""
    missing = (1,) * (len(shape) + 1 - rows.ndim)
    return np.broadcast_to(rows.reshape(len(rows), *missing, *rows.shape[1:]), (len(rows), *shape))
