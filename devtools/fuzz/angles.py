"""Violation of joint limits by rotations, computed on plain numbers.

Angles are radians, rotations (w, x, y, z) relative to rest. Nothing here comes from the product, nor goes its
way: limits are compared in angles, not in half angles or distances of quaternions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Numbers = Sequence[float]

THIN = 1e-3
"""Radians: sides of an ellipse that are thinner count as none; the border in a direction is no measure."""
HALF_TURN = 0.05
"""Radians from a half turn within which a swing tells little of its axis."""


HELD = 1e-6
"""Radians by which a rotation may be outside and counts as inside."""


def outside(limit: Mapping[str, Any], rotation: Numbers) -> float:
    """Return a rotation's violation of a limit with the fields of a bone's stored limit, radians."""
    kind = limit["kind"]
    if kind == "HINGE":
        return hinge(rotation, limit["axis"], limit["hinge_lower"], limit["hinge_upper"])
    if kind == "EULER":
        return euler(rotation, limit["euler_order"], limit["euler_lower"], limit["euler_upper"])
    off = 0.0
    if kind == "TWIST" or limit["use_twist"]:
        off = twist_range(rotation, limit["twist_lower"], limit["twist_upper"])
    if kind == "CONE":
        off = max(off, cone(rotation, limit["cone_radius"]))
    if kind == "ELLIPSE":
        sides = [limit[name] for name in ("x_lower", "x_upper", "z_lower", "z_upper")]
        off = max(off, ellipse(rotation, sides))
    return off


def outside_range(angle: float, lower: float, upper: float) -> float:
    """Return the distance of an angle from a range, the shorter way round, radians."""
    if upper - lower >= 2.0 * math.pi:
        return 0.0
    turned = (angle - lower) % (2.0 * math.pi)
    width = upper - lower
    return 0.0 if turned <= width else min(turned - width, 2.0 * math.pi - turned)


def hinge(rotation: Numbers, axis: Numbers, lower: float, upper: float) -> float:
    """Outside a hinge: what the axis is tilted by, or the angle about it is off."""
    tilt, twist = swing_and_twist(rotation, axis)[:2]
    return max(tilt, outside_range(twist, lower, upper))


def swing_and_twist(rotation: Numbers, axis: Numbers) -> tuple[float, float, list[float]]:
    """Angle of the swing, angle of the twist about `axis`, and the swing's rotation vector."""
    w, *v = _unit(rotation)
    n = _unit(axis)
    along = sum(a * b for a, b in zip(v, n, strict=True))
    twist = 2.0 * math.atan2(along, w)
    # The swing: the rotation after the twist is taken away, q @ twist^-1.
    c, s = math.cos(0.5 * twist), -math.sin(0.5 * twist)
    tw, t = c, [s * x for x in n]
    sw = w * tw - sum(a * b for a, b in zip(v, t, strict=True))
    cross = [v[1] * t[2] - v[2] * t[1], v[2] * t[0] - v[0] * t[2], v[0] * t[1] - v[1] * t[0]]
    sv = [w * b + tw * a + x for a, b, x in zip(v, t, cross, strict=True)]
    if sw < 0.0:
        sw, sv = -sw, [-x for x in sv]
    length = math.sqrt(sum(x * x for x in sv))
    angle = 2.0 * math.atan2(length, sw)
    vector = [x / length * angle for x in sv] if length > 0.0 else [0.0, 0.0, 0.0]
    return angle, twist, vector


def cone(rotation: Numbers, radius: float) -> float:
    """Outside a cone about +Y, whatever the twist: by where the bone points."""
    w, x, y, z = _unit(rotation)
    pointing = (2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x))
    angle = math.atan2(math.hypot(pointing[0], pointing[2]), pointing[1])
    return max(0.0, angle - radius)


def ellipse(rotation: Numbers, sides: Numbers) -> float:
    """Outside four quarter ellipses (x lower, x upper, z lower, z upper): by how much longer the swing's
    rotation vector is than the border in its direction."""
    angle, _, vector = swing_and_twist(rotation, (0.0, 1.0, 0.0))
    on_x, on_z = vector[0], vector[2]
    if math.pi - angle < HALF_TURN:  # a half turn about one axis is one about any other, after another twist
        return max(0.0, angle - max(map(abs, sides)))
    # The same swing the other way round, from a half turn on.
    back = 1.0 - 2.0 * math.pi / angle if angle > 0.0 else 0.0
    return min(_beyond_ellipse(on_x, on_z, sides), _beyond_ellipse(back * on_x, back * on_z, sides))


def _beyond_ellipse(on_x: float, on_z: float, sides: Numbers) -> float:
    half_x = sides[1] if on_x >= 0.0 else -sides[0]
    half_z = sides[3] if on_z >= 0.0 else -sides[2]
    if min(half_x, half_z) < THIN:
        return max(0.0, abs(on_x) - half_x, abs(on_z) - half_z)
    part = math.hypot(on_x / half_x, on_z / half_z)
    return 0.0 if part <= 1.0 else math.hypot(on_x, on_z) * (1.0 - 1.0 / part)


def twist_range(rotation: Numbers, lower: float, upper: float) -> float:
    """Outside a range of the twist about +Y, as a rotation: the nearer the swing is to a half turn, the less
    a twist is."""
    angle, twist, _ = swing_and_twist(rotation, (0.0, 1.0, 0.0))
    return outside_range(twist, lower, upper) * math.cos(0.5 * angle)


def euler(rotation: Numbers, order: str, lower: Numbers, upper: Numbers) -> float:
    """Outside a box of Euler angles: by the better of the two representations; 0 near gimbal lock, where
    there are endless many."""
    rows = matrix(rotation)
    i, j, k = ("XYZ".index(letter) for letter in order)
    even = order in ("XYZ", "YZX", "ZXY")
    sign = 1.0 if even else -1.0
    # R = R_k(c) R_j(b) R_i(a) for the order i, j, k: the row k and column i hold b.
    sine = -sign * rows[k][i]
    middle = math.asin(max(-1.0, min(1.0, sine)))
    if math.cos(middle) < 2e-3:
        return 0.0
    lost = HELD * (1.0 / math.cos(middle) - 1.0)  # by gimbal lock, of the outer angles
    first = math.atan2(sign * rows[k][j], rows[k][k])
    last = math.atan2(sign * rows[j][i], rows[i][i])
    best = math.inf
    for a, b, c in ((first, middle, last), (first + math.pi, math.pi - middle, last + math.pi)):
        angles = {i: a, j: b, k: c}
        off = max(outside_range(angles[axis], lower[axis], upper[axis]) for axis in range(3))
        best = min(best, off)
    return max(0.0, best - lost)


def between(a: Numbers, b: Numbers) -> float:
    """The angle between two rotations."""
    dot = abs(sum(x * y for x, y in zip(_unit(a), _unit(b), strict=True)))
    return 2.0 * math.acos(min(1.0, dot))


def _unit(values: Numbers) -> list[float]:
    length = math.sqrt(math.fsum(x * x for x in values))
    return [x / length for x in values]


def matrix(rotation: Numbers) -> list[list[float]]:
    """The 3x3 matrix of a rotation."""
    w, x, y, z = _unit(rotation)
    return [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
