"""Limits seen as hinges: one where a limit leaves a single angle, three on each other for an Euler box."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from mathutils import Quaternion, Vector

from ..maths.alignment import nearest_turn
from .projection import nearest_in
from .shapes import Cone, EulerBox, Hinge, Limit, ReversedLimit, SwingTwist

FULL_TURN = 2.0 * math.pi
_UNIT = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def as_hinge(limit: Limit | None) -> Hinge | None:
    """`limit` as a hinge, where it leaves one angle about a fixed axis and nothing else; None otherwise."""
    if isinstance(limit, Hinge):
        return limit
    if isinstance(limit, ReversedLimit):
        inner = as_hinge(limit.limit)
        if inner is None:
            return None
        x, y, z = (Quaternion(limit.frame) @ Vector(inner.axis))[:]
        return Hinge((x, y, z), -inner.upper, -inner.lower)
    if isinstance(limit, SwingTwist):
        if not isinstance(limit.swing, Cone) or limit.swing.radius > 0.0:
            return None
        return Hinge(limit.axis, *(limit.twist or (-math.pi, math.pi)))
    if isinstance(limit, EulerBox):
        free = [a for a in range(3) if limit.lower[a] != 0.0 or limit.upper[a] != 0.0]
        if len(free) > 1:
            return None
        turning = free[0] if free else 0
        return Hinge(_UNIT[turning], limit.lower[turning], limit.upper[turning])
    return None


@lru_cache(maxsize=1024)
def as_hinges(limit: Limit | None) -> tuple[Hinge, ...]:
    """`limit` as hinges, the last to turn first: one, three for an Euler box, none for a ball joint."""
    one = as_hinge(limit)
    if one is not None:
        return (one,)
    if not isinstance(limit, EulerBox):
        return ()
    if all(b - a >= FULL_TURN for a, b in zip(limit.lower, limit.upper, strict=True)):
        return ()
    axes = ["XYZ".index(name) for name in reversed(limit.order)]
    return tuple(Hinge(_UNIT[a], limit.lower[a], limit.upper[a]) for a in axes)


def hinge_turns(hinges: Sequence[Hinge], rotation: Quaternion) -> list[float]:
    """The turns that make up `rotation`, as near to the hinges' ranges as can be."""
    if len(hinges) == 1:
        (hinge,) = hinges
        sine = math.fsum(a * b for a, b in zip(hinge.axis, (rotation.x, rotation.y, rotation.z), strict=True))
        return [_into(2.0 * math.atan2(sine, rotation.w), hinge)]
    return _euler_turns(hinges, rotation)


def _euler_turns(hinges: Sequence[Hinge], rotation: Quaternion) -> list[float]:
    # The half angles of Bernardes & Viollet 2022 (`projection.nearest_in_box`): alpha is turned first, gamma
    # last.
    i, j, k = (hinge.axis.index(1.0) for hinge in reversed(hinges))
    sign = 1.0 if (i, j, k) in ((0, 1, 2), (1, 2, 0), (2, 0, 1)) else -1.0
    v = (rotation.x, rotation.y, rotation.z)
    a, b = rotation.w - v[j], v[i] + sign * v[k]
    c, d = rotation.w + v[j], sign * v[k] - v[i]
    p, m = math.hypot(a, b), math.hypot(c, d)
    half_sum, half_difference = math.atan2(b, a), math.atan2(d, c)
    _, _, first = hinges
    # At gimbal lock only the sum, or only the difference, is known: the first turn is then 0, or as near as
    # it may be.
    if min(p, m) < 1e-5 * max(p, m):
        alpha = _into(0.0, first)
        if m < p:
            half_difference = half_sum - alpha
        else:
            half_sum = half_difference + alpha
    alpha, gamma = half_sum - half_difference, sign * (half_sum + half_difference)
    beta = 2.0 * math.atan2(m, p) - 0.5 * math.pi
    best: tuple[bool, float, list[float]] | None = None
    for turns in ((gamma, beta, alpha), (gamma + math.pi, math.pi - beta, alpha + math.pi)):
        inside = [_into(turn, hinge) for turn, hinge in zip(turns, hinges, strict=True)]
        pairs = zip(turns, inside, strict=True)
        off = max([abs(math.remainder(turn - near, FULL_TURN)) for turn, near in pairs])
        way = (off > 1e-5, off if off > 1e-5 else math.fsum(map(abs, inside)), inside)
        if best is None or way < best:
            best = way
        if not best[0] and best[1] <= math.pi:
            break  # the other way's angles, half a turn away, sum to two half turns at least
    assert best is not None
    return best[2]


def _into(angle: float, hinge: Hinge) -> float:
    if hinge.upper - hinge.lower >= FULL_TURN:
        return math.remainder(angle, FULL_TURN)
    return nearest_in(angle, hinge.lower, hinge.upper)


def composed(hinges: Sequence[Hinge], turns: Sequence[float]) -> Quaternion:
    """The rotation of hinges that stand on each other, the one that turns last first."""
    w, x, y, z = 1.0, 0.0, 0.0, 0.0
    for hinge, turn in zip(hinges, turns, strict=True):
        c, s = math.cos(0.5 * turn), math.sin(0.5 * turn)
        a, b, d = (s * part for part in hinge.axis)
        w, x, y, z = (
            w * c - x * a - y * b - z * d,
            w * a + x * c + y * d - z * b,
            w * b + y * c + z * a - x * d,
            w * d + z * c + x * b - y * a,
        )
    return Quaternion((w, x, y, z))


def hinge_turn(limit: Hinge, rotation: Quaternion) -> float:
    """The turn of `rotation` about the hinge's axis, brought into its range."""
    x, y, z = limit.axis
    along = rotation.x * x + rotation.y * y + rotation.z * z
    return nearest_turn(2.0 * math.atan2(along, rotation.w), limit.lower, limit.upper)
