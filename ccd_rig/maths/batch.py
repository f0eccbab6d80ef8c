"""Many rotations at once as arrays in double precision.

Quaternions are (4, ...) with components (w, x, y, z), vectors (3, ...), matrices (3, 3, ...): components
first and poses last, so that an operation runs along memory. What is stored frame by frame, as keys are, has
components last. Functions with `axis` take both; it says where the components are. All angles are radians.
Nothing here checks for NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

TINY = 1e-300

# Rows of products (w, x, y, z) x (w, x, y, z) to the nine entries of the rotation matrix, row by row.
_TO_MATRIX = np.zeros((16, 9))
for _entry, _terms in enumerate(
    (
        ((0, 0, 1), (1, 1, 1), (2, 2, -1), (3, 3, -1)),
        ((1, 2, 2), (0, 3, -2)),
        ((1, 3, 2), (0, 2, 2)),
        ((1, 2, 2), (0, 3, 2)),
        ((0, 0, 1), (1, 1, -1), (2, 2, 1), (3, 3, -1)),
        ((2, 3, 2), (0, 1, -2)),
        ((1, 3, 2), (0, 2, -2)),
        ((2, 3, 2), (0, 1, 2)),
        ((0, 0, 1), (1, 1, -1), (2, 2, -1), (3, 3, 1)),
    )
):
    for _a, _b, _sign in _terms:
        _TO_MATRIX[4 * _a + _b, _entry] = _sign


# The axes one and two after x, y and z.
_NEXT: Indices = np.array([1, 2, 0], dtype=np.intp)
_AFTER: Indices = np.array([2, 0, 1], dtype=np.intp)
_FEW = 256
"""Numbers up to which the time of an operation is that of its call."""
# Of the products of quaternions a b: in row r what of a_r counts for each component, after b_{r ^ component}.
_FACTOR_OF: Indices = np.array([[0] * 4, [1] * 4, [2] * 4, [3] * 4], dtype=np.intp)
_OTHER_OF: Indices = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]], dtype=np.intp)
_FACTOR_SIGNS: Array = np.array(
    [[1.0, 1.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 1.0], [-1.0, 1.0, 1.0, -1.0], [-1.0, -1.0, 1.0, 1.0]]
)


def select(values: NDArray[Any], some: Mask | Indices | slice) -> Any:
    """Some of the poses of (..., B), the batch last in memory too: `values[..., some]` has it first."""
    if isinstance(some, slice):
        return values[..., some]
    return values.take(np.flatnonzero(some) if some.dtype == np.bool_ else some, axis=-1)


def select_given(values: Array, some: Mask | Indices | slice) -> Array:
    """Some of the poses of (..., B or 1): what is the same for all of them stays."""
    return values if values.shape[-1] == 1 else np.asarray(select(values, some))


def joined_given(arrays: Sequence[Array], sizes: Sequence[int]) -> Array:
    """Arrays (..., B or 1) of several batches of poses, of these sizes, as one; (..., 1) where all agree."""
    first = arrays[0]
    if all(each.shape[-1] == 1 for each in arrays) and all(
        np.array_equal(first, each) for each in arrays[1:]
    ):
        return first
    whole = [
        np.broadcast_to(each, (*each.shape[:-1], size)) for each, size in zip(arrays, sizes, strict=True)
    ]
    return np.concatenate(whole, axis=-1)


def at_least_two(some: Indices) -> Indices:
    """Indices of poses, a lone one twice: numpy sums over a single pose in another order than over two."""
    return np.repeat(some, 2) if len(some) == 1 else some


def as_slice(indices: Indices) -> slice | Indices:
    """Ascending indices without a gap as a slice, which is quicker; others as they are."""
    if len(indices) and int(indices[-1] - indices[0]) == len(indices) - 1:
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def is_all(some: Indices, size: int) -> bool:
    """Whether ascending indices name all of so many poses."""
    return len(some) == size and int(some[-1] - some[0]) == size - 1


def multiply(a: Array, b: Array, axis: int = 0) -> Array:
    """Hamilton products of quaternions (4, ...) with as many dimensions: b first, then a."""
    if axis != 0:
        products = multiply(_components(a, axis), _components(b, axis))
        if axis == -1:
            return np.ascontiguousarray(products.transpose(*range(1, products.ndim), 0))
        return np.ascontiguousarray(np.moveaxis(products, 0, axis))
    if b.size <= _FEW:
        # The fewest calls: all sixteen products, in the order in which they are added below.
        factors = a.take(_FACTOR_OF, 0)
        factors *= _FACTOR_SIGNS.reshape(4, 4, *(1,) * (a.ndim - 1))
        small: Array = np.add.reduce(factors * b.take(_OTHER_OF, 0), 0)
        return small
    aw, ax, ay, az = a
    found: Array = aw * b
    # Few calls on whole arrays: what each part of a multiplies is b with its components exchanged.
    of_x = (ax * b.reshape(2, 2, *b.shape[1:])[:, ::-1]).reshape(found.shape)
    of_y = (ay * b.reshape(2, 2, *b.shape[1:])[::-1]).reshape(found.shape)
    of_z = az * b[::-1]
    found[::2] -= of_x[::2]
    found[1::2] += of_x[1::2]
    found[::3] -= of_y[::3]
    found[1:3] += of_y[1:3]
    found[:2] -= of_z[:2]
    found[2:] += of_z[2:]
    return found


def rotate(rotations: Array, vectors: Array, axis: int = 0) -> Array:
    """Vectors (3, ...) rotated by unit quaternions (4, ...): v + 2w (u x v) + 2 u x (u x v)."""
    w, x, y, z = _components(rotations, axis)
    a, b, c = _components(vectors, axis)
    p, q, r = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return np.stack((a + w * p + y * r - z * q, b + w * q + z * p - x * r, c + w * r + x * q - y * p), axis)


def conjugate(rotations: Array) -> Array:
    """Inverses of unit quaternions (4, ...)."""
    found: Array = -rotations
    found[0] = rotations[0]
    return found


def unit(rotations: Array, axis: int = 0) -> Array:
    """Quaternions (4, ...) with length 1."""
    if axis == 0:
        lengths: Array = np.sqrt((rotations * rotations).sum(0))
        return rotations / lengths
    return rotations / np.expand_dims(length(rotations, axis), axis)


def angles_between(a: Array, b: Array, axis: int = 0) -> Array:
    """Angles from rotations to others, the shorter way round, 0 to pi; unit quaternions (4, ...)."""
    # Four arctangents of chord and sum: exact for tiny rotations; the nearer side of the double cover.
    chord = np.minimum(length(b - a, axis), length(b + a, axis))
    angles: Array = 4.0 * np.arctan2(chord, np.sqrt(np.maximum(0.0, 4.0 - chord * chord)))
    return angles


def slerp(a: Array, b: Array, fractions: Array, axis: int = 0) -> Array:
    """Parts of the ways from rotations `a` to `b` at constant angular speed, the shorter way round.

    Args:
        a: (4, ...) unit quaternions.
        b: (4, ...) unit quaternions; the signs nearer to `a` are taken.
        fractions: (...), 0 gives a, 1 gives b.
        axis: where the components are.

    Returns:
        (4, ...) unit quaternions on the side of `a`.
    """
    b = np.where(np.expand_dims(dot(a, b, axis) < 0.0, axis), -b, b)
    t = np.expand_dims(fractions, axis)
    # Angle on the 4-sphere from the half-chords: exact for small angles, where arccos of the dot product
    # loses half of the digits. It is at most pi / 2 after the choice of signs, so its sinc below is never
    # under 2 / pi: the usual division by sin(angle) and its special case for nearly equal rotations do not
    # arise.
    chords = np.expand_dims(length(b - a, axis), axis)
    sums = np.expand_dims(length(b + a, axis), axis)
    angles = 2.0 * np.arctan2(chords, sums)
    whole = _sinc(angles)
    found = a * ((1.0 - t) * _sinc((1.0 - t) * angles) / whole) + b * (t * _sinc(t * angles) / whole)
    return unit(found, axis)


def exponential(vectors: Array) -> Array:
    """Unit quaternions (4, ...) of rotation vectors (3, ...)."""
    half = 0.5 * length(vectors) + TINY
    found = np.empty((4, *vectors.shape[1:]))
    found[0] = np.cos(half)
    np.multiply(0.5 * np.sin(half) / half, vectors, out=found[1:])
    return found


def logarithm(rotations: Array) -> Array:
    """Rotation vectors (3, ...), up to half a turn long, of unit quaternions (4, ...)."""
    w, v = rotations[0], rotations[1:]
    sine = np.sqrt((v * v).sum(0))
    angle = 2.0 * np.arctan2(sine, np.abs(w))
    scale = np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)
    found: Array = np.copysign(scale, w) * v
    return found


def cross(a: Array, b: Array, axis: int = 0) -> Array:
    """Cross products of vectors (3, ...)."""
    found: Array = a.take(_NEXT, axis) * b.take(_AFTER, axis)
    found -= a.take(_AFTER, axis) * b.take(_NEXT, axis)
    return found


def dot(a: Array, b: Array, axis: int = 0) -> Array:
    """Dot products of vectors (3, ...) or quaternions (4, ...)."""
    if axis == 0:
        found: Array = np.add.reduce(a * b, 0)
        return found
    # NumPy's own sum takes far longer along a short last axis.
    return np.asarray(reduce(np.add, _components(a * b, axis)))


def length(vectors: Array, axis: int = 0) -> Array:
    """Lengths of vectors (3, ...) or quaternions (4, ...)."""
    found: Array = np.sqrt(dot(vectors, vectors, axis))
    return found


def fill_matrices(rotations: Array, into: Array) -> None:
    """Write the matrices of unit quaternions (4, n, B) into the first three columns of (n, 3, k, B)."""
    w, x, y, z = rotations
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x2 * x, y2 * y, z2 * z
    xy, xz, yz = x2 * y, x2 * z, y2 * z
    wx, wy, wz = x2 * w, y2 * w, z2 * w
    np.subtract(1.0 - yy, zz, out=into[:, 0, 0])
    np.subtract(1.0 - xx, zz, out=into[:, 1, 1])
    np.subtract(1.0 - xx, yy, out=into[:, 2, 2])
    np.subtract(xy, wz, out=into[:, 0, 1])
    np.add(xy, wz, out=into[:, 1, 0])
    np.add(xz, wy, out=into[:, 0, 2])
    np.subtract(xz, wy, out=into[:, 2, 0])
    np.subtract(yz, wx, out=into[:, 1, 2])
    np.add(yz, wx, out=into[:, 2, 1])


def stacked_matrices(rotations: Array) -> Array:
    """Rotation matrices (N, 3, 3) of unit quaternions (N, 4): the quicker way for a single pose's joints.

    The bits of one depend on how many there are, as BLAS has it: never ask for as many as there are poses.
    """
    products = (rotations[:, :, None] * rotations[:, None, :]).reshape(-1, 16)
    return (products @ _TO_MATRIX).reshape(-1, 3, 3)


def matrices(rotations: Array) -> Array:
    """Rotation matrices (3, 3, ...) of unit quaternions (4, ...)."""
    flat = rotations.reshape(4, 1, -1)
    if flat.shape[2] == 1:
        return stacked_matrices(flat[:, 0].T).reshape(3, 3, *rotations.shape[1:])
    found = np.empty((1, 3, 3, flat.shape[-1]))
    fill_matrices(flat, found)
    shaped: Array = found[0].reshape(3, 3, *rotations.shape[1:])
    return shaped


def quaternions(matrices: Array) -> Array:
    """Unit quaternions (4, ...), w not below 0, of rotation matrices (3, 3, ...).

    Of the four ways to read a quaternion off a matrix each takes the one with the largest divisor (Shepperd
    1978, "Quaternion from rotation matrix").
    """
    m = matrices
    trace = m[0, 0] + m[1, 1] + m[2, 2]
    # 4 q_a q_b for all pairs: the outer product of 2 q with itself.
    outer = np.empty((4, 4, *m.shape[2:]))
    outer[0, 0] = 1.0 + trace
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        outer[i + 1, i + 1] = 1.0 + 2.0 * m[i, i] - trace
        outer[0, i + 1] = outer[i + 1, 0] = m[k, j] - m[j, k]
        outer[i + 1, j + 1] = outer[j + 1, i + 1] = m[i, j] + m[j, i]
    best = np.argmax(np.einsum("aa...->a...", outer), axis=0)
    found = unit(np.take_along_axis(outer, best[None, None], axis=0)[0])
    return np.asarray(np.where(found[:1] < 0.0, -found, found))


# Entries of a matrix whose differences are the sine times the axis: below the diagonal, and above it.
_BELOW: Indices = np.array([7, 2, 3], dtype=np.intp)
_ABOVE: Indices = np.array([5, 6, 1], dtype=np.intp)


def matrix_logarithm(matrices: Array) -> Array:
    """Rotation vectors (3, ...), up to half a turn long, of rotation matrices (3, 3, ...)."""
    entries = matrices.reshape(9, -1)
    # Twice the sine and the cosine.
    sine = entries.take(_BELOW, 0)
    sine -= entries.take(_ABOVE, 0)
    cosine = np.add.reduce(entries[::4], 0) - 1.0
    size = length(sine) + TINY
    angle = np.arctan2(size, cosine)
    found: Array = sine * (angle / size)
    back = cosine < 0.0
    if back.any() and (near := back & (size < 2e-3)).any():
        sine, cosine = 0.5 * sine, 0.5 * cosine
        own = entries[:, near].reshape(3, 3, -1)
        found[:, near] = _near_half_turn(own, sine[:, near], cosine[near], angle[near])
    return found.reshape(3, *matrices.shape[2:])


def _near_half_turn(m: Array, sine: Array, cosine: Array, angle: Array) -> Array:
    """Near a half turn the axis stands in the symmetric part, (1 - cos) n n^T + cos; its sign in `sine`."""
    outer = 0.5 * (m + m.transpose(1, 0, 2)) - cosine * np.eye(3)[..., None]
    k = np.argmax(np.einsum("iib->ib", outer), axis=0)
    axis = outer[:, k, np.arange(len(k))]
    axis = axis / np.maximum(length(axis), TINY)
    side = dot(axis, sine)
    first = np.where(axis[0] != 0.0, axis[0], np.where(axis[1] != 0.0, axis[1], axis[2]))
    sign = np.where(np.abs(side) > 1e-12, np.sign(side), np.where(first < 0.0, -1.0, 1.0))
    found: Array = angle * sign * axis
    return found


def _components(values: Array, axis: int) -> Array:
    """The components one by one."""
    if axis == -1:  # as `moveaxis` does it, in a tenth of the time
        return values.transpose(-1, *range(values.ndim - 1))
    return values if axis == 0 else np.moveaxis(values, axis, 0)


def _sinc(angles: Array) -> Array:
    """sin(angle) / angle, and 1 at 0; NumPy's own takes its angle in half turns."""
    return np.asarray(np.sinc(angles / np.pi), dtype=np.float64)
