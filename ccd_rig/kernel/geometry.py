"""Vectors and unit quaternions (w, x, y, z) as values; all angles are radians.

The types stand in the `.pxd` beside each module of this folder. Compiled, `Vector` and `Quaternion` are
structs; uncompiled, they are the named tuples of `plain`.
"""

from __future__ import annotations

from math import fabs, floor, nan, pi, sqrt

from .elementary import atan2, sin_cos
from .plain import Quaternion, Vector, nogil

SPLIT = 536870913.0
"""2^29 + 1: the product of a double and it, less their difference, has the double's first 24 bits."""
PLANE = 1e-6
"""Sine of the angle between two axes below which they define no rotation."""
NOISE = 1e-6
"""Sine of an angle that single precision cannot tell from zero (input comes from it)."""


def add(a, b):
    return Vector(a.x + b.x, a.y + b.y, a.z + b.z)


def subtract(a, b):
    return Vector(a.x - b.x, a.y - b.y, a.z - b.z)


def scaled(a, factor):
    return Vector(a.x * factor, a.y * factor, a.z * factor)


def dot(a, b):
    return a.x * b.x + a.y * b.y + a.z * b.z


def cross(a, b):
    return Vector(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


def length(a):
    return sqrt(a.x * a.x + a.y * a.y + a.z * a.z)


def direction_of(a):
    """`a` with length 1; a zero vector stays."""
    size = length(a)
    return Vector(a.x / size, a.y / size, a.z / size) if size > 0.0 else Vector(0.0, 0.0, 0.0)


def perpendicular(a):
    """The axis about which the end of `a` turns up (+Z), or back (+Y) where `a` is upright; length 1.

    A mirror in X turns it like every axis, so that the limbs of both sides bend alike. Zero gives +X.
    """
    if a.z * a.z > a.x * a.x + a.y * a.y:
        return scaled(Vector(-a.z, 0.0, a.x), 1.0 / sqrt(a.x * a.x + a.z * a.z))
    size = sqrt(a.x * a.x + a.y * a.y)
    return scaled(Vector(a.y, -a.x, 0.0), 1.0 / size) if size > 0.0 else Vector(1.0, 0.0, 0.0)


def conjugate(q):
    return Quaternion(q.w, -q.x, -q.y, -q.z)


def multiply(a, b):
    return Quaternion(
        a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
        a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
        a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
        a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
    )


def unit(q):
    """`q` with length 1; a zero quaternion counts as identity."""
    square = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z
    if square == 0.0:
        return Quaternion(1.0, 0.0, 0.0, 0.0)
    scale = 1.0 / sqrt(square)
    return Quaternion(q.w * scale, q.x * scale, q.y * scale, q.z * scale)


def size_of(q):
    return sqrt(q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z)


def opposite(q):
    """The same rotation with the other sign."""
    return Quaternion(-q.w, -q.x, -q.y, -q.z)


def rotation_to(x, y, z):
    """The rotation, w not below 0, that takes the axes of the world to orthonormal ones.

    It takes, of the four formulas, the one with the largest divisor (Shepperd 1978, "Quaternion from rotation
    matrix"). Axes that are not numbers give none.
    """
    trace = x.x + y.y + z.z
    sizes_x, sizes_y, sizes_z = 2.0 * x.x, 2.0 * y.y, 2.0 * z.z
    largest, q = 1.0 + trace, Quaternion(1.0 + trace, y.z - z.y, z.x - x.z, x.y - y.x)
    if 1.0 + sizes_x - trace > largest:
        largest = 1.0 + sizes_x - trace
        q = Quaternion(y.z - z.y, largest, y.x + x.y, x.z + z.x)
    if 1.0 + sizes_y - trace > largest:
        largest = 1.0 + sizes_y - trace
        q = Quaternion(z.x - x.z, y.x + x.y, largest, z.y + y.z)
    if 1.0 + sizes_z - trace > largest:
        largest = 1.0 + sizes_z - trace
        q = Quaternion(x.y - y.x, x.z + z.x, z.y + y.z, largest)
    q = unit(q)
    return opposite(q) if q.w < 0.0 else q


def rotation_along(y, z):
    """The rotation with Y along `y` and Z in the plane of both; NaN where they are flat."""
    size_y, size_z = length(y), length(z)
    if not (size_y > 0.0 and size_z > 0.0):
        return Quaternion(nan, nan, nan, nan)
    y = Vector(y.x / size_y, y.y / size_y, y.z / size_y)
    z = Vector(z.x / size_z, z.y / size_z, z.z / size_z)
    z = subtract(z, scaled(y, dot(y, z)))
    size_z = length(z)
    if not size_z > PLANE:
        return Quaternion(nan, nan, nan, nan)
    z = Vector(z.x / size_z, z.y / size_z, z.z / size_z)
    return rotation_to(cross(y, z), y, z)


def rotate(q, v):
    """`v` turned by the unit quaternion `q`."""
    tx = 2.0 * (q.y * v.z - q.z * v.y)
    ty = 2.0 * (q.z * v.x - q.x * v.z)
    tz = 2.0 * (q.x * v.y - q.y * v.x)
    return Vector(
        v.x + q.w * tx + q.y * tz - q.z * ty,
        v.y + q.w * ty + q.z * tx - q.x * tz,
        v.z + q.w * tz + q.x * ty - q.y * tx,
    )


def rotate_back(q, v):
    """`v` turned by the inverse of the unit quaternion `q`."""
    return rotate(conjugate(q), v)


def exponential(v):
    """The rotation about `v` by its length."""
    square = dot(v, v)
    angle = sqrt(square)
    # Below 1e-4 two terms of the series of sin(angle / 2) / angle are exact in double precision.
    sine, cosine = sin_cos(0.5 * angle)
    scale = sine / angle if angle > 1e-4 else 0.5 - square / 48.0
    return Quaternion(cosine, scale * v.x, scale * v.y, scale * v.z)


def logarithm(q):
    """The rotation vector of `q`, 0 to pi long; alike for q and -q."""
    side = -1.0 if q.w < 0.0 else 1.0
    sine = sqrt(q.x * q.x + q.y * q.y + q.z * q.z)
    scale = side * (2.0 * atan2(sine, side * q.w) / sine if sine > 1e-150 else 2.0)
    return Vector(scale * q.x, scale * q.y, scale * q.z)


def axis_rotation(axis, angle):
    """The rotation by `angle` about a unit vector."""
    sine, cosine = sin_cos(0.5 * angle)
    return Quaternion(cosine, sine * axis.x, sine * axis.y, sine * axis.z)


def twist_angle(q, axis):
    """The twist of `q` about a unit vector, -2 pi to 2 pi."""
    return 2.0 * atan2(q.x * axis.x + q.y * axis.y + q.z * axis.z, q.w)


def angle_of(q):
    """The angle of a rotation, 0 to pi."""
    return 2.0 * atan2(sqrt(q.x * q.x + q.y * q.y + q.z * q.z), fabs(q.w))


def between(a, b):
    """The smallest rotation from the direction of `a` to that of `b`.

    The half-way form (|a||b| + a.b, a x b). Opposite directions: the half turn about `perpendicular(a)`. A
    zero vector has no direction: identity.
    """
    lengths = sqrt(dot(a, a) * dot(b, b))
    if lengths == 0.0:
        return Quaternion(1.0, 0.0, 0.0, 0.0)
    axis, along = cross(a, b), dot(a, b)
    if along < 0.0 and dot(axis, axis) <= NOISE * NOISE * lengths * lengths:
        axis = perpendicular(a)
        return Quaternion(0.0, axis.x, axis.y, axis.z)
    return unit(Quaternion(lengths + along, axis.x, axis.y, axis.z))


def opening_turn(upper, lower, axis, distance, to_other_side):
    """The turn R of the lower bone about an axis with |upper + R lower| = distance (law of cosines).

    The parts of the bones along the axis do not change. Of the two solutions it is the one on the side of the
    present bend, or on the other; bones that are straight but for rounding bend about the axis. 0 where no
    turn changes the distance.
    """
    square, lower_square = dot(upper, upper), dot(lower, lower)
    longest, product = sqrt(square) + sqrt(lower_square), sqrt(square * lower_square)
    along = dot(upper, axis) * dot(lower, axis)
    x, y = dot(upper, lower) - along, dot(axis, cross(upper, lower))
    size = sqrt(x * x + y * y)
    if size <= NOISE * product or min(sqrt(square), sqrt(lower_square)) <= NOISE * longest:
        return 0.0
    wanted = (0.5 * (distance * distance - square - lower_square) - along) / size
    bend = atan2(y, x)
    wanted = min(max(wanted, -1.0), 1.0)
    opened = atan2(sqrt(1.0 - wanted * wanted), wanted)
    return (opened if (y >= -NOISE * product) != to_other_side else -opened) - bend


def turn_towards(axis, a, b):
    """The turn about a unit axis that brings `a` nearest to the direction of `b`; 0 where all are equal."""
    sine, cosine = dot(axis, cross(a, b)), dot(a, b) - dot(axis, a) * dot(axis, b)
    if sqrt(sine * sine + cosine * cosine) <= NOISE * sqrt(dot(a, a) * dot(b, b)):
        return 0.0
    return atan2(sine, cosine)


def wrapped(angle, middle):
    """`angle` plus the whole turns that bring it within half a turn of `middle`."""
    return angle - 2.0 * pi * floor((angle - middle) / (2.0 * pi) + 0.5)


def single(x):
    """A number rounded to the 24 bits of single precision (Dekker 1971, a split)."""
    scaled_up = SPLIT * x
    return scaled_up - (scaled_up - x)


def vector_at(values, at):
    return Vector(values[at], values[at + 1], values[at + 2])


def quaternion_at(values, at):
    return Quaternion(values[at], values[at + 1], values[at + 2], values[at + 3])


def put_vector(values, at, v):
    values[at] = v.x
    values[at + 1] = v.y
    values[at + 2] = v.z


def put_quaternion(values, at, q):
    values[at] = q.w
    values[at + 1] = q.x
    values[at + 2] = q.y
    values[at + 3] = q.z


def write_rotations(matrices, rotations, are_skewed):
    """Write the rotations of N matrices.

    Args:
        matrices: (N, 9) row by row.
        rotations: (N, 4) written, unit quaternions with w not below 0.
        are_skewed: whether they may scale, shear and mirror, see `rotation_along`; NaN of flat ones.

    Raises:
        ValueError: arrays that do not fit each other.
    """
    if matrices.shape[1] != 9 or rotations.shape[1] != 4 or rotations.shape[0] != matrices.shape[0]:
        raise ValueError("kernel: matrices and rotations must be as many")
    with nogil:
        for n in range(matrices.shape[0]):
            y = Vector(matrices[n, 1], matrices[n, 4], matrices[n, 7])
            z = Vector(matrices[n, 2], matrices[n, 5], matrices[n, 8])
            if are_skewed:
                q = rotation_along(y, z)
            else:
                q = rotation_to(Vector(matrices[n, 0], matrices[n, 3], matrices[n, 6]), y, z)
            rotations[n, 0] = q.w
            rotations[n, 1] = q.x
            rotations[n, 2] = q.y
            rotations[n, 3] = q.z


def write_units(rows, units):
    """Write N rows of numbers with length 1; a row without a length becomes NaN.

    Args:
        rows: (N, K).
        units: (N, K) written.

    Raises:
        ValueError: arrays that do not fit each other.
    """
    if units.shape[0] != rows.shape[0] or units.shape[1] != rows.shape[1]:
        raise ValueError("kernel: rows and unit rows must be as many")
    with nogil:
        for n in range(rows.shape[0]):
            square = 0.0
            for k in range(rows.shape[1]):
                square += rows[n, k] * rows[n, k]
            size = sqrt(square) if square > 0.0 else nan
            for k in range(rows.shape[1]):
                units[n, k] = rows[n, k] / size


def write_locations(shifts, translations, locations):
    """Write the values of N location channels that give translations, by Cramer's rule.

    Args:
        shifts: (N, 9) matrices from location to translation, row by row; of flat ones the location is NaN.
        translations: (N, 3).
        locations: (N, 3) written.

    Raises:
        ValueError: arrays that do not fit each other.
    """
    if shifts.shape[1] != 9 or translations.shape[1] != 3 or locations.shape[1] != 3:
        raise ValueError("kernel: shifts, translations and locations must be as many")
    if shifts.shape[0] != locations.shape[0] or translations.shape[0] != locations.shape[0]:
        raise ValueError("kernel: shifts, translations and locations must be as many")
    with nogil:
        for n in range(locations.shape[0]):
            a = Vector(shifts[n, 0], shifts[n, 3], shifts[n, 6])
            b = Vector(shifts[n, 1], shifts[n, 4], shifts[n, 7])
            c = Vector(shifts[n, 2], shifts[n, 5], shifts[n, 8])
            shift = Vector(translations[n, 0], translations[n, 1], translations[n, 2])
            across = cross(b, c)
            volume = dot(a, across)
            if volume == 0.0:
                volume = nan
            locations[n, 0] = dot(shift, across) / volume
            locations[n, 1] = dot(shift, cross(c, a)) / volume
            locations[n, 2] = dot(shift, cross(a, b)) / volume


def write_rotated(rotations, vectors, rotated):
    """Write N vectors, rotated.

    Args:
        rotations: (N, 4) unit quaternions.
        vectors: (N, 3).
        rotated: (N, 3) written.

    Raises:
        ValueError: arrays that do not fit each other.
    """
    if rotations.shape[1] != 4 or vectors.shape[1] != 3 or rotated.shape[1] != 3:
        raise ValueError("kernel: rotations and vectors must be as many")
    if rotations.shape[0] != rotated.shape[0] or vectors.shape[0] != rotated.shape[0]:
        raise ValueError("kernel: rotations and vectors must be as many")
    with nogil:
        for n in range(rotated.shape[0]):
            q = Quaternion(rotations[n, 0], rotations[n, 1], rotations[n, 2], rotations[n, 3])
            v = rotate(q, Vector(vectors[n, 0], vectors[n, 1], vectors[n, 2]))
            rotated[n, 0] = v.x
            rotated[n, 1] = v.y
            rotated[n, 2] = v.z
