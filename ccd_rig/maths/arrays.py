"""Rotations of one pose's joints for `solvers/closing`, rows of joints first; all else is in `batch`."""

from __future__ import annotations

import math

import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

Array = NDArray[np.float64]

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


def matrices(rotations: Array) -> Array:
    """Rotation matrices (N, 3, 3) of unit quaternions (N, 4)."""
    products = (rotations[:, :, None] * rotations[:, None, :]).reshape(-1, 16)
    return (products @ _TO_MATRIX).reshape(-1, 3, 3)


def turned(rotations: Array, turns: Array) -> Array:
    """Unit quaternions (N, 4), turned by rotation vectors (N, 3) in their own frames."""
    angles = np.sqrt((turns * turns).sum(1, keepdims=True))
    half = 0.5 * angles
    sines = np.sinc(half / np.pi) * 0.5  # sin(angle / 2) / angle
    w, v = np.cos(half), sines * turns
    a, u = rotations[:, :1], rotations[:, 1:]
    found = np.empty_like(rotations)
    found[:, :1] = a * w - (u * v).sum(1, keepdims=True)
    found[:, 1:] = a * v + w * u
    found[:, 1] += u[:, 1] * v[:, 2] - u[:, 2] * v[:, 1]
    found[:, 2] += u[:, 2] * v[:, 0] - u[:, 0] * v[:, 2]
    found[:, 3] += u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0]
    lengths: Array = np.sqrt((found * found).sum(1, keepdims=True))
    return found / lengths


def matrix(rotation: Quaternion) -> Array:
    """The rotation matrix (3, 3) of one rotation."""
    numbers = np.array(rotation, dtype=float)
    matrix: Array = matrices(numbers[None] / np.linalg.norm(numbers))[0]
    return matrix


def rotation_vector(matrix: Array) -> tuple[float, float, float]:
    """The rotation vector (radians, length up to pi) of a rotation matrix."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    x, y, z = 0.5 * (h - f), 0.5 * (c - g), 0.5 * (d - b)
    cosine = 0.5 * (a + e + i - 1.0)
    sine = math.sqrt(x * x + y * y + z * z)
    angle = math.atan2(sine, cosine)
    if sine > 1e-3 or cosine > 0.0:
        scale = per_sine(angle, sine)
        return scale * x, scale * y, scale * z
    # Near a half turn the axis stands in the symmetric part, (1 - cos) n n^T + cos; its sign in the other.
    rows = (
        (a - cosine, 0.5 * (b + d), 0.5 * (c + g)),
        (0.5 * (b + d), e - cosine, 0.5 * (f + h)),
        (0.5 * (c + g), 0.5 * (f + h), i - cosine),
    )
    largest = max(range(3), key=lambda k: rows[k][k])
    nx, ny, nz = rows[largest]
    side = math.copysign(angle / math.sqrt(nx * nx + ny * ny + nz * nz), nx * x + ny * y + nz * z)
    return side * nx, side * ny, side * nz


def per_sine(angle: float, sine: float) -> float:
    """angle / sine; near 0 its series."""
    return angle / sine if sine > 1e-30 else 1.0
