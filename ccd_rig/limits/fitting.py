# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit a limit to rotations of one joint, and widen a limit to hold them.

The axis of a hinge is the first singular vector of the rotation vectors. Rotation vectors count from rest,
because the axis of a limit goes through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import degrees, hypot, pi, radians

import numpy as np
from mathutils import Quaternion, Vector
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput
from ..maths.batch import axis_rotation, length, logarithm, multiply, twist_angles, unit
from ..maths.rotations import FULL_TURN, angle_of, log, swing_twist, wrapped
from ..maths.validation import Triple
from .settings import FitSettings
from .shapes import Cone, Ellipse, Hinge, Limit, SwingTwist, swing_axes, violation

Array = NDArray[np.float64]

SLIM = 0.15
"""Largest angle of a hinge's rotations off its axis, as a part of their range about it."""

FARTHEST = radians(165.0)
"""The angle from rest past which rotations lie on both sides of a half turn: rest is no pose of theirs."""

NEAREST = radians(60.0)
"""The angle from rest at which the nearest rotation may be; a swing's limit holds rest and all between."""

STILL = radians(0.5)
"""Rotations that are all nearer to each other than this show no range."""


def fit(
    rotations: ArrayLike, settings: FitSettings | None = None, may_be_hinge: bool = True
) -> Hinge | SwingTwist:
    """Fit the limit of a joint to rotations that it has had.

    Args:
        rotations: (N, 4) quaternions (w, x, y, z) relative to rest; one at least.
        may_be_hinge: False for a joint that is known to turn about more axes than one motion shows.

    Raises:
        InvalidInput: a rotation that is not finite or zero, rotations that show no range, some more
            than `FARTHEST` away from rest, or, where they are no hinge's, all more than `NEAREST`.
    """
    chosen = settings or FitSettings()
    samples = _samples(rotations)
    vectors = logarithm(samples)
    angles = length(vectors)
    farthest = float(np.percentile(angles, chosen.percentile))
    if farthest > FARTHEST:
        raise InvalidInput(_words_of_rest(f"up to {degrees(farthest):.0f}"))
    if float(np.ptp(vectors, axis=1).max()) < STILL:
        raise InvalidInput("the joint does not move, so its range cannot be told")
    axis = _hinge_axis(samples, vectors, chosen) if may_be_hinge else None
    if axis is not None:
        return Hinge(axis, *_range(_twists(samples, axis), chosen))
    nearest = float(np.percentile(angles, 100.0 - chosen.percentile))
    if nearest > NEAREST:
        raise InvalidInput(_words_of_rest(f"at least {degrees(nearest):.0f}"))
    return _fitted_swing(samples, chosen)


def comfort_region(
    rotations: ArrayLike, limit: Hinge | SwingTwist, settings: FitSettings | None = None
) -> Hinge | SwingTwist | None:
    """Fit the region of a limit, of the same kind, in which a joint has been most of the time.

    Args:
        rotations: (N, 4) that the limit was fitted to.
        settings: `comfort` counts.

    Returns:
        None where `comfort` is 0.
    """
    chosen = settings or FitSettings()
    if chosen.comfort == 0.0:
        return None
    samples, middle = _samples(rotations), replace(chosen, margin=0.0, percentile=chosen.comfort)
    if isinstance(limit, Hinge):
        lower, upper = _range(_twists(samples, limit.axis), middle)
        return Hinge(limit.axis, max(lower, limit.lower), min(upper, limit.upper))
    fitted, allowed = _fitted_swing(samples, middle), limit.swing
    if not (
        isinstance(fitted.swing, Ellipse) and isinstance(allowed, Ellipse) and fitted.twist and limit.twist
    ):
        return None
    lowers = [max(getattr(each, name) for each in (fitted.swing, allowed)) for name in ("x_lower", "z_lower")]
    uppers = [min(getattr(each, name) for each in (fitted.swing, allowed)) for name in ("x_upper", "z_upper")]
    twist = max(fitted.twist[0], limit.twist[0]), min(fitted.twist[1], limit.twist[1])
    return SwingTwist(Ellipse(lowers[0], uppers[0], lowers[1], uppers[1]), twist)


def _words_of_rest(how_far: str) -> str:
    return (
        f"its rotations are {how_far} degrees away from rest, so rest is no pose of this motion; use a rest "
        "pose that the joint can have"
    )


def _samples(rotations: ArrayLike) -> Array:
    """Unit quaternions (4, N), w not below 0."""
    rows: Array = np.array(rotations, dtype=np.float64)
    sizes = length(rows, axis=1)
    if not (np.isfinite(sizes).all() and sizes.min() > 1e-6):
        raise InvalidInput(f"rotation {int(np.argmin(np.nan_to_num(sizes)))} is not a unit quaternion")
    samples = unit(rows.T)
    return np.where(samples[0] < 0.0, -samples, samples)


def _hinge_axis(samples: Array, vectors: Array, settings: FitSettings) -> Triple | None:
    """The hinge axis of rotations, its largest component positive; None if they are no hinge's."""
    directions, _, _ = np.linalg.svd(vectors, full_matrices=False)
    axis = directions[:, 0]
    main = int(np.argmax(np.abs(axis)))
    axis = axis * np.copysign(1.0, axis[main])
    snapped = np.eye(3)[main]
    if axis[main] >= np.cos(settings.snap_angle) and _fits_axis(samples, snapped, settings):
        axis = snapped
    elif not _fits_axis(samples, axis, settings):
        return None
    return float(axis[0]), float(axis[1]), float(axis[2])


def _fits_axis(samples: Array, axis: Array, settings: FitSettings) -> bool:
    """Whether `percentile` of the rotations turn about an axis within the tolerance."""
    along = axis @ samples[1:]
    off_axis = 2.0 * np.arccos(np.minimum(np.hypot(samples[0], along), 1.0))
    extent = float(np.ptp(_twists(samples, axis)))
    allowed = min(settings.hinge_tolerance, SLIM * extent)
    return bool(np.percentile(off_axis, settings.percentile) <= allowed)


def _range(angles: Array, settings: FitSettings) -> tuple[float, float]:
    """Bounds of angles: `percentile` of them, as many left out at either end, plus margins."""
    outside = 0.5 * (100.0 - settings.percentile)
    lower, upper = np.percentile(angles, (outside, 100.0 - outside))
    return float(lower) - settings.margin, float(upper) + settings.margin


def _twists(samples: Array, axis: Iterable[float]) -> Array:
    return np.remainder(twist_angles(samples, axis) + pi, 2.0 * pi) - pi


def _fitted_swing(samples: Array, settings: FitSettings) -> SwingTwist:
    along = (0.0, 1.0, 0.0)
    angles = _twists(samples, along)
    swings = logarithm(multiply(samples, axis_rotation(np.array(along), -angles).T))[[0, 2]]
    sides = _sides(swings, settings)
    x_lower, x_upper, z_lower, z_upper = (min(side, pi) for side in sides)
    twist = tuple(min(max(bound, -pi), pi) for bound in _range(angles, settings))
    return SwingTwist(Ellipse(-x_lower, x_upper, -z_lower, z_upper), (twist[0], twist[1]))


def _sides(swings: Array, settings: FitSettings) -> tuple[float, ...]:
    """The sides (lower x, upper x, lower z, upper z) of four quarter ellipses about swings (2, N), radians.

    Each begins at the farthest swing to its side, of as many of these as of all. Swings between two sides lie
    outside at first: all sides grow by one factor until they are inside.
    """
    sides = []
    for components in (-swings[0], swings[0], -swings[1], swings[1]):
        there = components[components > 0.0]
        reach = float(np.percentile(there, settings.percentile)) if len(there) else 0.0
        sides.append(max(reach, STILL))
    x = swings[0] / np.where(swings[0] < 0.0, sides[0], sides[1])
    z = swings[1] / np.where(swings[1] < 0.0, sides[2], sides[3])
    factor = max(1.0, float(np.percentile(np.hypot(x, z), settings.percentile)))
    return tuple(side * factor + settings.margin for side in sides)


INSIDE = radians(0.1)
"""Radians by which a rotation may be outside a limit and still counts as inside."""
OFF_AXIS = radians(0.5)
"""Radians up to which a rotation counts as one about a hinge's axis."""
ALONG = 0.86
"""Cosine of the angle between a hinge's axis and one of the bone's axes, from which they are the same."""


def widened(limit: Limit, rotations: Sequence[Quaternion], margin: float) -> Limit | None:
    """Move the bounds that rotations pass further out.

    A hinge becomes an ellipse where rotations leave its axis, or a cone if it lies along the bone. Rotations
    inside change nothing.

    Args:
        limit: a hinge, or a swing with or without a twist.
        rotations: relative to rest.
        margin: radians by which a new bound lies beyond the rotations that are outside.

    Returns:
        The limit itself where all are inside; None where it has no shape that can hold them.
    """
    outside = [rotation for rotation in rotations if violation(limit, rotation) > INSIDE]
    if not outside:
        return limit
    if isinstance(limit, Hinge):
        free = Hinge(limit.axis, -pi, pi)
        if all(violation(free, rotation) <= OFF_AXIS for rotation in outside):
            angles = [limit.dials(rotation)[0].angle for rotation in outside]
            lower, upper = _bounds((limit.lower, limit.upper), angles, margin)
            return replace(limit, lower=lower, upper=upper)
        swing = loosened(limit, 0.0)
        return None if swing is None else _wide_swing(swing, outside, margin)
    return _wide_swing(limit, outside, margin) if isinstance(limit, SwingTwist) else None


def _bounds(ends: tuple[float, float], angles: Sequence[float], margin: float) -> tuple[float, float]:
    """A range, widened past angles outside; the nearest of the angles that differ by whole turns count."""
    lower, upper = ends
    angles = [wrapped(angle, 0.5 * (lower + upper)) for angle in angles]
    least, most = min(angles), max(angles)
    return least - margin if least < lower else lower, most + margin if most > upper else upper


def loosened(hinge: Hinge, aside: float) -> SwingTwist | None:
    """A hinge's range about the nearest axis of the bone, with `aside` radians about the two others.

    Args:
        aside: radians to all other sides.

    Returns:
        An ellipse, or a cone if the hinge lies along the bone. None if it lies between the bone's axes, or
        its range passes a half turn across the bone.
    """
    k = max(range(3), key=lambda index: abs(hinge.axis[index]))
    if abs(hinge.axis[k]) < ALONG:
        return None
    ends = (hinge.lower, hinge.upper) if hinge.axis[k] > 0.0 else (-hinge.upper, -hinge.lower)
    lower, upper = min(ends[0], 0.0), max(ends[1], 0.0)
    if k == 1:
        return SwingTwist(Cone(aside), (lower, upper) if upper - lower < FULL_TURN else None)
    if lower < -pi or upper > pi:
        return None
    sides = (lower, upper, -aside, aside) if k == 0 else (-aside, aside, lower, upper)
    return SwingTwist(Ellipse(*sides), (-aside, aside))


def _wide_swing(limit: SwingTwist, outside: Sequence[Quaternion], margin: float) -> SwingTwist:
    pairs = [swing_twist(rotation, Vector(limit.axis)) for rotation in outside]
    twist = limit.twist
    if twist is not None:
        angles = [float(log(turn).dot(Vector(limit.axis))) for _, turn in pairs]
        lower, upper = _bounds(twist, angles, margin)
        twist = (lower, upper) if upper - lower < FULL_TURN else None
    swing = limit.swing
    if isinstance(swing, Cone):
        most = max(angle_of(each) for each, _ in pairs)
        swing = Cone(min(most + margin, pi)) if most > swing.radius else swing
    elif isinstance(swing, Ellipse):
        axes = [Vector(axis) for axis in swing_axes(limit.axis)]
        swings = [tuple(log(each).dot(axis) for axis in axes) for each, _ in pairs]
        swing = _wide_ellipse(swing, swings, margin)
    return replace(limit, swing=swing, twist=twist)


def _wide_ellipse(ellipse: Ellipse, swings: Sequence[Sequence[float]], margin: float) -> Ellipse:
    """Sides beyond each swing by a margin, scaled until swings between two sides are inside."""
    x = _bounds((ellipse.x_lower, ellipse.x_upper), [each[0] for each in swings], margin)
    z = _bounds((ellipse.z_lower, ellipse.z_upper), [each[1] for each in swings], margin)
    factor = 1.0
    for along_x, along_z in swings:
        side_x = x[1] if along_x > 0.0 else -x[0]
        side_z = z[1] if along_z > 0.0 else -z[0]
        factor = max(factor, hypot(along_x / max(side_x, INSIDE), along_z / max(side_z, INSIDE)))
    return Ellipse(
        max(x[0] * factor, -pi),
        min(x[1] * factor, pi),
        max(z[0] * factor, -pi),
        min(z[1] * factor, pi),
    )
