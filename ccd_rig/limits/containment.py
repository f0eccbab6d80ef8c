"""Whether a preferred region lies inside a limit, told from their numbers."""

from __future__ import annotations

from .shapes import Cone, Ellipse, EulerBox, Hinge, Limit, ReversedLimit, SwingTwist

SLACK = 1e-6
"""Radians by which a region may stand out: what is left of numbers that were stored in single precision."""


def outside(region: Limit, limit: Limit) -> str | None:
    """What of `region` is not inside `limit`, in words; None if all of it is.

    Regions are of the limit's own kind, about the same axis or in the same order, so that their ranges can
    be compared."""
    if type(region) is not type(limit):
        return (
            f"it is a {type(region).__name__} while the limit is a {type(limit).__name__}: use the same kind"
        )
    if isinstance(limit, ReversedLimit) and isinstance(region, ReversedLimit):
        if not _near(region.frame, limit.frame):
            return "its frame differs from the limit's"
        return outside(region.limit, limit.limit)
    if isinstance(limit, Hinge) and isinstance(region, Hinge):
        if not _near(region.axis, limit.axis):
            return f"its axis {_shown(region.axis)} differs from the limit's {_shown(limit.axis)}"
        return _range("angle", region.lower, region.upper, limit.lower, limit.upper)
    if isinstance(limit, EulerBox) and isinstance(region, EulerBox):
        if region.order != limit.order:
            return f"its Euler order {region.order} differs from the limit's {limit.order}"
        for name, *bounds in zip("XYZ", region.lower, region.upper, limit.lower, limit.upper, strict=True):
            found = _range(name, *bounds)
            if found:
                return found
        return None
    assert isinstance(limit, SwingTwist) and isinstance(region, SwingTwist)
    if not _near(region.axis, limit.axis):
        return f"its axis {_shown(region.axis)} differs from the limit's {_shown(limit.axis)}"
    return _swing(region, limit) or _twist(region, limit)


def _swing(region: SwingTwist, limit: SwingTwist) -> str | None:
    if limit.swing is None:
        return None
    if region.swing is None:
        return "its swing is free while the limit's is not"
    allowed, wanted = _sides(limit.swing), _sides(region.swing)
    for name, largest, side in zip(("X min", "X max", "Z min", "Z max"), allowed, wanted, strict=True):
        if side > largest + SLACK:
            return f"its swing ({name}) goes to {side:.4g} rad, the limit's to {largest:.4g}"
    return None


def _sides(swing: Cone | Ellipse) -> tuple[float, float, float, float]:
    """How far a swing goes to its four sides, radians, all 0 or more. Larger sides all round hold smaller
    ones."""
    if isinstance(swing, Cone):
        return (swing.radius,) * 4
    return -swing.x_lower, swing.x_upper, -swing.z_lower, swing.z_upper


def _twist(region: SwingTwist, limit: SwingTwist) -> str | None:
    if limit.twist is None:
        return None
    if region.twist is None:
        return "its twist is free while the limit's is not"
    return _range("twist", *region.twist, *limit.twist)


def _range(motion: str, lower: float, upper: float, least: float, most: float) -> str | None:
    if lower < least - SLACK or upper > most + SLACK:
        return (
            f"its {motion} range, {lower:.4g} to {upper:.4g} rad, "
            f"leaves the limit's {least:.4g} to {most:.4g}"
        )
    return None


def _near(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) <= SLACK


def _shown(vector: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{part:.4g}" for part in vector) + ")"
