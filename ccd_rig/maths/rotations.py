"""Rotations as unit quaternions: the shortest arc, swing and twist, rotation vectors, parts of a rotation.

All quaternions are `mathutils.Quaternion` (w, x, y, z), all angles radians. q and -q stand for the same
rotation (double cover); where it matters, a function says which side it returns. mathutils keeps single
precision, so functions compute on the components in double precision. Results are right to the last bit or
two of a float32. This holds for tiny angles too, where arccos of a float32 would lose half of the digits.

NaN is not checked for: skeletons, poses and goals refuse it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, pi, remainder, sqrt

from mathutils import Quaternion, Vector

from ..kernel import atan2, cos, sin

NOISE = 1e-6
"""Sine of an angle, or length of a part of a unit quaternion, that single precision cannot tell from zero.

The rounding of a unit vector's components (2^-24 each) adds up to about 1e-7. A vector ten times as long has
a direction made of noise only.
"""
FULL_TURN = 2.0 * pi


def perpendicular(vector: Vector) -> Vector:
    """A unit axis at right angles to `vector`, the same for the same input.

    About it the end of `vector` turns up (+Z), or back (+Y) where `vector` is upright: for +Y it is +X. A
    mirror in X turns it like every axis: (x, y, z) to (x, -y, -z). A zero vector gives +X.
    """
    x, y, z = vector.x, vector.y, vector.z
    if z * z > x * x + y * y:
        size = sqrt(x * x + z * z)
        return Vector((-z / size, 0.0, x / size))
    size = sqrt(x * x + y * y)
    return Vector((y / size, -x / size, 0.0)) if size > 0.0 else Vector((1.0, 0.0, 0.0))


def between(a: Vector, b: Vector) -> Quaternion:
    """The smallest rotation that takes the direction of `a` to that of `b` (any lengths, same space).

    The half-way form (|a||b| + a.b, a x b), normalised: no arccos, exact for tiny angles. Opposite directions
    (within `NOISE` radians, where a x b is rounding noise): the half turn about `perpendicular(a)`. A zero
    vector has no direction: identity. The result has w >= 0.
    """
    ax, ay, az = a.x, a.y, a.z
    bx, by, bz = b.x, b.y, b.z
    x = ay * bz - az * by
    y = az * bx - ax * bz
    z = ax * by - ay * bx
    lengths = sqrt((ax * ax + ay * ay + az * az) * (bx * bx + by * by + bz * bz))
    dot = ax * bx + ay * by + az * bz
    w = lengths + dot
    if dot >= 0.0:
        if lengths == 0.0:
            return Quaternion((1.0, 0.0, 0.0, 0.0))
        # (|a||b| + a.b)^2 + |a x b|^2 = 2 |a||b| (|a||b| + a.b), by Lagrange's identity.
        scale = 1.0 / sqrt(2.0 * lengths * w)
    else:
        square = x * x + y * y + z * z
        if square <= NOISE * NOISE * lengths * lengths:
            axis = perpendicular(a)
            return Quaternion((0.0, axis.x, axis.y, axis.z))
        scale = 1.0 / sqrt(w * w + square)
    return Quaternion((w * scale, x * scale, y * scale, z * scale))


def swing_twist(rotation: Quaternion, axis: Vector) -> tuple[Quaternion, Quaternion]:
    """Split `rotation` into (swing, twist) with `rotation == swing @ twist`, component by component.

    The twist turns about `axis`, the swing about an axis at right angles to it, by at most a half turn:
    swing.w >= 0, and the twist carries the sign of `rotation`. With n the unit axis and p = v.n: twist = (w,
    p n) / sqrt(w^2 + p^2), swing = rotation twist* (Kenwright 2012, section 14, for any axis and with the
    signs of equation 4 set right). When the swing is a half turn both w and p vanish and every twist is
    possible: the twist is then identity.
    """
    nx, ny, nz = axis.x, axis.y, axis.z
    length = sqrt(nx * nx + ny * ny + nz * nz)
    nx, ny, nz = nx / length, ny / length, nz / length
    w, x, y, z = rotation.w, rotation.x, rotation.y, rotation.z
    p = x * nx + y * ny + z * nz
    s = sqrt(w * w + p * p)
    if s <= NOISE * sqrt(w * w + x * x + y * y + z * z):
        return rotation.copy(), Quaternion((1.0, 0.0, 0.0, 0.0))
    c, p = w / s, p / s
    tx, ty, tz = p * nx, p * ny, p * nz
    twist = Quaternion((c, tx, ty, tz))
    # The vector part of rotation @ twist.conjugated(): c v - w t - v x t, its w is s.
    swing = Quaternion(
        (
            s,
            c * x - w * tx - (y * tz - z * ty),
            c * y - w * ty - (z * tx - x * tz),
            c * z - w * tz - (x * ty - y * tx),
        )
    )
    return swing, twist


def twist_angle(rotation: Quaternion, axis: Iterable[float]) -> float:
    """The angle in radians of a rotation about a unit vector, -2 pi to 2 pi."""
    x, y, z = axis
    return 2.0 * atan2(fsum((rotation.x * x, rotation.y * y, rotation.z * z)), rotation.w)


def exp(vector: Vector) -> Quaternion:
    """The rotation about `vector` by its length in radians (any length); the inverse of `log`."""
    x, y, z = vector.x, vector.y, vector.z
    square = x * x + y * y + z * z
    angle = sqrt(square)
    # sin(angle / 2) / angle; below 1e-4 two terms of its series are exact in double precision.
    scale = sin(0.5 * angle) / angle if angle > 1e-4 else 0.5 - square / 48.0
    return Quaternion((cos(0.5 * angle), scale * x, scale * y, scale * z))


def log(rotation: Quaternion) -> Vector:
    """The rotation vector of `rotation`: its axis times its angle in radians, of length 0 to pi.

    Alike for q and -q. Of the two vectors of a half turn it returns the one whose first non-zero component is
    positive. The zero quaternion gives the zero vector.
    """
    w, x, y, z = _near_side(rotation)
    sine = sqrt(x * x + y * y + z * z)
    if sine == 0.0:
        return Vector((0.0, 0.0, 0.0))
    scale = 2.0 * atan2(sine, w) / sine
    return Vector((scale * x, scale * y, scale * z))


def power(rotation: Quaternion, fraction: float) -> Quaternion:
    """`fraction` of a rotation about its own axis: 0 gives identity, 1 the rotation.

    Fractions above 1 turn further, below 0 backwards. The path is the short one, to the side with w >= 0,
    alike for q and -q. A half turn follows the vector of `log`.
    """
    w, x, y, z = rotation.w, rotation.x, rotation.y, rotation.z
    if w <= 0.0:
        w, x, y, z = _near_side(rotation)
    sine = sqrt(x * x + y * y + z * z)
    if sine == 0.0:
        return Quaternion((1.0, 0.0, 0.0, 0.0))
    half = fraction * atan2(sine, w)
    scale = sin(half) / sine
    return Quaternion((cos(half), scale * x, scale * y, scale * z))


def angle_of(rotation: Quaternion) -> float:
    """The angle of a rotation in radians, 0 to pi: alike for q and -q, exact for tiny angles, any length."""
    w, x, y, z = rotation.w, rotation.x, rotation.y, rotation.z
    return 2.0 * atan2(sqrt(x * x + y * y + z * z), abs(w))


def angle_between(a: Quaternion, b: Quaternion) -> float:
    """The angle in radians, 0 to pi, of the rotation from `a` to `b`: the same for either sign of both."""
    aw, ax, ay, az = a.w, a.x, a.y, a.z
    bw, bx, by, bz = b.w, b.x, b.y, b.z
    # a* b in double precision; angle_of says why atan2.
    w = aw * bw + ax * bx + ay * by + az * bz
    x = aw * bx - bw * ax - (ay * bz - az * by)
    y = aw * by - bw * ay - (az * bx - ax * bz)
    z = aw * bz - bw * az - (ax * by - ay * bx)
    return 2.0 * atan2(sqrt(x * x + y * y + z * z), abs(w))


def _near_side(rotation: Quaternion) -> tuple[float, float, float, float]:
    """The components with w > 0; of a half turn, with the first non-zero of x, y, z positive."""
    w, x, y, z = rotation.w, rotation.x, rotation.y, rotation.z
    if w > 0.0:
        return w, x, y, z
    if w < 0.0 or x < 0.0 or (x == 0.0 and (y < 0.0 or (y == 0.0 and z < 0.0))):
        return abs(w), -x, -y, -z
    return 0.0, x, y, z


def nearest_turn(angle: float, lower: float, upper: float) -> float:
    """`angle` plus whole turns, clamped to [lower, upper]: outside, the nearer end on the circle."""
    return min(max(wrapped(angle, 0.5 * (lower + upper)), lower), upper)


def wrapped(angle: float, middle: float) -> float:
    """`angle` plus the whole turns that bring it within half a turn of `middle`."""
    return middle + remainder(angle - middle, FULL_TURN)
