"""Many rotations at once as arrays in double precision.

Quaternions are (4, ...) with components (w, x, y, z), vectors (3, ...), matrices (3, 3, ...): components
first and poses last, so that an operation runs along memory. Arrays by frame, as keys are, have components
last. Functions with `axis` take both; it is the axis of the components. All angles are radians. NaN is not
checked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ..kernel import write_rotated, write_rotations, write_units

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

TINY = 1e-300

# The axes one and two after x, y and z.
_NEXT: Indices = np.array([1, 2, 0], dtype=np.intp)
_AFTER: Indices = np.array([2, 0, 1], dtype=np.intp)
_FEW = 256
"""Sizes up to which the call dominates an operation's time."""
# Products of quaternions a b: component c is the sum over r of sign[r, c] a_r b_{r ^ c}.
_FACTOR_OF: Indices = np.array([[0] * 4, [1] * 4, [2] * 4, [3] * 4], dtype=np.intp)
_OTHER_OF: Indices = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]], dtype=np.intp)
_FACTOR_SIGNS: Array = np.array(
    [[1.0, 1.0, 1.0, 1.0], [-1.0, 1.0, -1.0, 1.0], [-1.0, 1.0, 1.0, -1.0], [-1.0, -1.0, 1.0, 1.0]]
)


def multiply(a: Array, b: Array, axis: int = 0) -> Array:
    """Hamilton products of quaternions (4, ...): b first, then a; they broadcast with components last."""
    p, q = _components(a, axis), _components(b, axis)
    if a.ndim == b.ndim and b.size <= _FEW:
        # The fewest calls: all sixteen products, in the order in which they are added below.
        factors = p.take(_FACTOR_OF, 0)
        factors *= _FACTOR_SIGNS.reshape(4, 4, *(1,) * (a.ndim - 1))
        small: Array = np.add.reduce(factors * q.take(_OTHER_OF, 0), 0)
        return small if axis == 0 else np.ascontiguousarray(np.moveaxis(small, 0, axis))
    product = np.empty(np.broadcast_shapes(a.shape, b.shape))
    (aw, ax, ay, az), (bw, bx, by, bz), into = p, q, _components(product, axis)
    into[0] = aw * bw - ax * bx - ay * by - az * bz
    into[1] = aw * bx + ax * bw + ay * bz - az * by
    into[2] = aw * by - ax * bz + ay * bw + az * bx
    into[3] = aw * bz + ax * by - ay * bx + az * bw
    return product


def rotate(rotations: Array, vectors: Array, axis: int = 0) -> Array:
    """Vectors (3, ...) rotated by unit quaternions (4, ...): v + 2w (u x v) + 2 u x (u x v).

    They broadcast with components last.
    """
    if axis == -1:
        if rotations.shape[:-1] != vectors.shape[:-1]:  # what broadcasting costs is most of a small call
            shape = np.broadcast_shapes(rotations.shape[:-1], vectors.shape[:-1])
            rotations, vectors = (
                np.broadcast_to(rotations, (*shape, 4)),
                np.broadcast_to(vectors, (*shape, 3)),
            )
        rotated = np.empty(vectors.shape)
        turns, ways = (
            np.ascontiguousarray(each, np.float64).reshape(-1, each.shape[-1])
            for each in (rotations, vectors)
        )
        write_rotated(turns, ways, rotated.reshape(-1, 3))
        return rotated
    w, x, y, z = _components(rotations, axis)
    a, b, c = _components(vectors, axis)
    p, q, r = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return np.stack((a + w * p + y * r - z * q, b + w * q + z * p - x * r, c + w * r + x * q - y * p), axis)


def conjugate(rotations: Array) -> Array:
    """Inverses of unit quaternions (4, ...)."""
    inverses: Array = -rotations
    inverses[0] = rotations[0]
    return inverses


def unit(rotations: Array, axis: int = 0) -> Array:
    """Quaternions (4, ...) with length 1."""
    if axis == 0:
        lengths: Array = np.sqrt((rotations * rotations).sum(0))
        return rotations / lengths
    if axis != -1:
        return rotations / np.expand_dims(length(rotations, axis), axis)
    units = np.empty(rotations.shape)
    rows = np.ascontiguousarray(rotations, np.float64).reshape(-1, rotations.shape[-1])
    write_units(rows, units.reshape(rows.shape))
    return units


def unit_rows(rows: Any) -> Array:
    """Rows of numbers normalised to length 1, in double precision and flat."""
    values = np.array(rows, dtype=np.float64)
    return np.asarray(values / np.sqrt((values * values).sum(1, keepdims=True))).reshape(-1)


def arctan2(sines: Any, cosines: Any) -> Array:
    """Angles (...) of sines and cosines (...), with the same bits wherever these are in memory.

    `numpy.arctan2` of NumPy 1.26 has two kernels, which differ in the last bit. Which one takes arrays with
    strides depends on their distance in memory to the result.
    """
    angles: Array = np.arctan2(  # noqa: TID251
        np.asarray(sines, order="C"), np.asarray(cosines, order="C")
    )
    return angles


def angles_between(a: Array, b: Array, axis: int = 0) -> Array:
    """Angles between rotations, 0 to pi; unit quaternions (4, ...)."""
    # Four arctangents of chord and sum: exact for tiny rotations; the nearer side of the double cover.
    chord = np.minimum(length(b - a, axis), length(b + a, axis))
    angles: Array = 4.0 * arctan2(chord, np.sqrt(np.maximum(0.0, 4.0 - chord * chord)))
    return angles


def slerp(a: Array, b: Array, fractions: Array, axis: int = 0) -> Array:
    """Interpolate from rotations `a` to `b` at constant angular speed, along the shorter path.

    Args:
        a: (4, ...) unit quaternions.
        b: (4, ...) unit quaternions; the signs nearer to `a` are taken.
        fractions: (...), 0 gives a, 1 gives b.
        axis: of the components.

    Returns:
        (4, ...) unit quaternions on the side of `a`.
    """
    b = np.where(np.expand_dims(dot(a, b, axis) < 0.0, axis), -b, b)
    t = np.expand_dims(fractions, axis)
    # Angle on the 4-sphere from the half-chords: exact for small angles, where arccos of the dot product
    # loses half of the digits. It is at most pi / 2 after the choice of signs, so its sinc below is at least
    # 2 / pi: nearly equal rotations need no special case.
    chords = np.expand_dims(length(b - a, axis), axis)
    sums = np.expand_dims(length(b + a, axis), axis)
    angles = 2.0 * arctan2(chords, sums)
    full = _sinc(angles)
    blended = a * ((1.0 - t) * _sinc((1.0 - t) * angles) / full) + b * (t * _sinc(t * angles) / full)
    return unit(blended, axis)


def axis_rotation(axes: Array, angles: Array | float) -> Array:
    """Unit quaternions (..., 4) of turns by angles (...) about unit vectors (3,) or (..., 3)."""
    half = 0.5 * np.asarray(angles)[..., None]
    return np.concatenate((np.cos(half), np.sin(half) * axes), axis=-1)


def twist_angles(rotations: Array, axis: Iterable[float]) -> Array:
    """Angles (...) of unit quaternions (4, ...) about a unit vector, -2 pi to 2 pi."""
    x, y, z = axis
    return np.asarray(2.0 * arctan2(x * rotations[1] + y * rotations[2] + z * rotations[3], rotations[0]))


def exponential(vectors: Array) -> Array:
    """Unit quaternions (4, ...) of rotation vectors (3, ...)."""
    half = 0.5 * length(vectors) + TINY
    quaternions = np.empty((4, *vectors.shape[1:]))
    quaternions[0] = np.cos(half)
    np.multiply(0.5 * np.sin(half) / half, vectors, out=quaternions[1:])
    return quaternions


def logarithm(rotations: Array) -> Array:
    """Rotation vectors (3, ...), up to half a turn long, of unit quaternions (4, ...)."""
    w, v = rotations[0], rotations[1:]
    sine = np.sqrt((v * v).sum(0))
    angle = 2.0 * arctan2(sine, np.abs(w))
    scale = np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)
    vectors: Array = np.copysign(scale, w) * v
    return vectors


def cross(a: Array, b: Array, axis: int = 0) -> Array:
    """Cross products of vectors (3, ...)."""
    if max(a.size, b.size) <= _FEW:
        products: Array = a.take(_NEXT, axis) * b.take(_AFTER, axis)
        products -= a.take(_AFTER, axis) * b.take(_NEXT, axis)
        return products
    product = np.empty(np.broadcast_shapes(a.shape, b.shape))
    (ax, ay, az), (bx, by, bz), into = (_components(each, axis) for each in (a, b, product))
    into[0] = ay * bz - az * by
    into[1] = az * bx - ax * bz
    into[2] = ax * by - ay * bx
    return product


def dot(a: Array, b: Array, axis: int = 0) -> Array:
    """Dot products of vectors (3, ...) or quaternions (4, ...)."""
    if axis == 0:
        products: Array = np.add.reduce(a * b, 0)
        return products
    # `numpy.sum` takes far longer along a short last axis.
    return np.asarray(reduce(np.add, _components(a * b, axis)))


def length(vectors: Array, axis: int = 0) -> Array:
    """Lengths of vectors (3, ...) or quaternions (4, ...)."""
    lengths: Array = np.sqrt(dot(vectors, vectors, axis))
    return lengths


def directions(vectors: Array) -> Array:
    """Vectors (..., 3) with length 1; vectors of length 0 stay."""
    return np.asarray(vectors / np.maximum(length(vectors, -1), 1e-12)[..., None])


def matrices(rotations: Array) -> Array:
    """Rotation matrices (3, 3, ...) of unit quaternions (4, ...)."""
    w, x, y, z = rotations
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x2 * x, y2 * y, z2 * z
    xy, xz, yz = x2 * y, x2 * z, y2 * z
    wx, wy, wz = x2 * w, y2 * w, z2 * w
    rows = (
        (1.0 - yy - zz, xy - wz, xz + wy),
        (xy + wz, 1.0 - xx - zz, yz - wx),
        (xz - wy, yz + wx, 1.0 - xx - yy),
    )
    return np.array(rows)


def stacked(matrices: Iterable[Matrix]) -> Array:
    """(N, 4, 4) array of N matrices of mathutils."""
    listed: list[Any] = list(matrices)
    try:
        numbers = np.frombuffer(b"".join(map(bytes, listed)), np.float32).astype(np.float64)
    except TypeError:  # before Blender 5.0 they have no buffer, and NumPy asks each row for its length
        numbers = np.fromiter(chain.from_iterable(chain.from_iterable(listed)), np.float64)
    return numbers.reshape(-1, 4, 4)


def compose(a: Array, b: Array) -> Array:
    """Products (..., 4, 4) of affine matrices.

    Sums of products one by one: a BLAS adds them in an order that depends on the processor.
    """
    product: Array = reduce(np.add, (a[..., :, k, None] * b[..., None, k, :] for k in range(4)))
    return product


def move(frames: Array, points: Array) -> Array:
    """Points (..., 3) moved by affine matrices (..., 4, 4)."""
    moved: Array = reduce(np.add, (frames[..., :3, k] * points[..., k, None] for k in range(3)))
    moved += frames[..., :3, 3]
    return moved


def inverse(frames: Array) -> Array:
    """Inverses (..., 4, 4) of affine matrices.

    `numpy.linalg.inv` may wake threads, which takes longer than the inversion.
    """
    a, b, c = (frames[..., :3, k] for k in range(3))
    across, inverted = cross(b, c, axis=-1), np.zeros_like(frames)
    volume = dot(a, across, axis=-1)[..., None, None]
    inverted[..., :3, :3] = np.stack((across, cross(c, a, axis=-1), cross(a, b, axis=-1)), axis=-2) / volume
    inverted[..., :3, 3] = -move(inverted, frames[..., :3, 3])
    inverted[..., 3, 3] = 1.0
    return inverted


def quaternions(matrices: Array) -> Array:
    """Unit quaternions (4, ...), w not below 0, of rotation matrices (3, 3, ...)."""
    by_pose = np.moveaxis(matrices, (0, 1), (-2, -1))
    return np.ascontiguousarray(np.moveaxis(_rotations_of(by_pose, are_skewed=False), -1, 0))


def orthonormals(axes: Array) -> Array:
    """Return the rotations (..., 4) of matrices (..., 3, 3) that may scale, shear and mirror.

    Gram-Schmidt: Y is the direction of the second column, and Z the part of the third orthogonal to it. X
    completes a right-handed frame. If a matrix mirrors, X is therefore reversed. NaN for a flat matrix.
    """
    return _rotations_of(axes, are_skewed=True)


def _rotations_of(matrices: Array, are_skewed: bool) -> Array:
    """Rotations (..., 4) of matrices (..., 3, 3), see `write_rotations` of the kernel."""
    rotations = np.empty((*matrices.shape[:-2], 4))
    flat = np.ascontiguousarray(matrices, np.float64).reshape(-1, 9)
    write_rotations(flat, rotations.reshape(-1, 4), are_skewed)
    return rotations


POLAR_STEPS = 30
"""Most steps of `nearest_rotations`; each halves the logarithm of the stretch at least."""
CONVERGED = 1e-9
"""Change of a step after which the next one, of a quadratic iteration, is below rounding."""


def nearest_rotations(matrices: Array) -> Array:
    """Rotation matrices (3, 3, ...) nearest to matrices (3, 3, ...) of positive determinant.

    Scaled Newton iteration for the polar decomposition (Higham 1986, "Computing the polar decomposition"):
    X <- (g X + X^-T / g) / 2, with the g for which both terms have the same norm. Flat matrices give NaN.
    Sums of products one by one have the same bits on every processor, unlike a singular value decomposition.
    """
    nearest, is_moving = matrices, np.ones(matrices.shape[2:], np.bool_)
    for _ in range(POLAR_STEPS):
        a, b, c = nearest
        inverse_transposed = np.stack((cross(b, c), cross(c, a), cross(a, b)))
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse_transposed /= dot(a, inverse_transposed[0])
            squares = [np.add.reduce(dot(each, each, axis=1)) for each in (inverse_transposed, nearest)]
            scale = np.sqrt(np.sqrt(squares[0] / squares[1]))
            stepped = 0.5 * (scale * nearest + inverse_transposed / scale)
        changes = np.abs(stepped - nearest).max(axis=(0, 1))
        nearest = np.where(is_moving, stepped, nearest)  # the same bits, whatever else is beside it
        is_moving &= changes > CONVERGED
        if not is_moving.any():
            break
    return nearest


def smooth_step(values: Array) -> Array:
    """3 u^2 - 2 u^3 of values (...), clipped to 0..1."""
    u = np.clip(values, 0.0, 1.0)
    return np.asarray(u * u * (3.0 - 2.0 * u))


def runs(chosen: Mask) -> list[slice]:
    """The runs of set entries of a mask (F,)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False])).astype(np.int8)))
    return [slice(a, b) for a, b in edges.reshape(-1, 2).tolist()]


def alike(keys: Iterable[Hashable]) -> list[Indices]:
    """The places of equal keys, in the order of their first ones."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    return [np.array(each, np.intp) for each in places.values()]


def _components(values: Array, axis: int) -> Array:
    """The components one by one."""
    if axis == -1:  # as `moveaxis` does it, in a tenth of the time
        return values.transpose(-1, *range(values.ndim - 1))
    return values if axis == 0 else np.moveaxis(values, axis, 0)


def _sinc(angles: Array) -> Array:
    """sin(angle) / angle, and 1 at 0; `numpy.sinc` takes its angle in half turns."""
    return np.asarray(np.sinc(angles / np.pi), dtype=np.float64)
