"""Limits seen as hinges, where they leave a single angle."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mathutils import Quaternion

from ..maths.alignment import nearest_turn
from .rows import row_hinge
from .shapes import Hinge, Limit

FULL_TURN = 2.0 * math.pi


def as_hinge(limit: Limit | None) -> Hinge | None:
    """`limit` as a hinge, where it leaves one angle about a fixed axis and nothing else; None otherwise."""
    if limit is None or isinstance(limit, Hinge):
        return limit
    hinge = row_hinge(limit.row)
    return None if hinge is None else Hinge(*hinge)


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
