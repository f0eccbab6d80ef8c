"""The limit that holds given rotations of one joint: a hinge where they turn about one axis, else an ellipse
with a twist range.

The axis of a hinge is the first singular vector of the rotation vectors. They are taken from rest, because
the axis of a limit goes through it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import degrees, pi, radians

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput
from ..maths.batch import length, logarithm, multiply, unit
from ..maths.validation import Triple, finite, within
from .shapes import Ellipse, Hinge, SwingTwist

Array = NDArray[np.float64]

SLIM = 0.15
"""How far rotations of a hinge may be off its axis, as a part of the range that they show about it."""

FARTHEST = radians(165.0)
"""The angle from rest past which rotations lie on both sides of a half turn: rest is no pose of theirs."""

NEAREST = radians(60.0)
"""The angle from rest at which the nearest rotation may be; a swing's limit holds rest and all between."""

STILL = radians(0.5)
"""Rotations that are all nearer to each other than this show no range."""


@dataclass(frozen=True)
class FitSettings:
    """How a limit is fitted.

    Attributes:
        margin: radians by which each bound lies outside the rotations.
        percentile: part of the rotations, in percent, that the limit holds before the margin is added; the
            rest is left out at the ends of each range.
        hinge_tolerance: radians by which the rotations of a hinge may be off its axis.
        snap_angle: radians within which the axis of a hinge becomes X, Y or Z, as long as the rotations
            stay within the tolerance of it.
        comfort: part of the rotations, in percent, that the comfort region holds (`comfort_region`), those in
            the middle of each range; 0 for none.

    Raises:
        InvalidInput: an angle outside 0..pi, a percentile outside 50..100, a comfort that is neither 0 nor
            in 50..100.
    """

    margin: float = radians(5.0)
    percentile: float = 100.0
    hinge_tolerance: float = radians(6.0)
    snap_angle: float = radians(12.0)
    comfort: float = 80.0

    def __post_init__(self) -> None:
        for name in ("margin", "hinge_tolerance", "snap_angle"):
            within(f"FitSettings.{name}", getattr(self, name), 0.0, pi)
        if not 50.0 <= finite("FitSettings.percentile", self.percentile) <= 100.0:
            raise InvalidInput(f"FitSettings.percentile is {self.percentile:g}; give 50 to 100")
        if self.comfort != 0.0 and not 50.0 <= finite("FitSettings.comfort", self.comfort) <= 100.0:
            raise InvalidInput(f"FitSettings.comfort is {self.comfort:g}; give 0 for none, or 50 to 100")


def fit(
    rotations: ArrayLike, settings: FitSettings | None = None, may_be_hinge: bool = True
) -> Hinge | SwingTwist:
    """The limit of a joint that has had these rotations.

    Args:
        rotations: (N, 4) quaternions (w, x, y, z) relative to rest.
        settings: margin, percentile, and what counts as a hinge.
        may_be_hinge: False for a joint that is known to turn about more axes than one motion shows.

    Raises:
        InvalidInput: no rotation, one that is not finite or zero, rotations that show no range, some more
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
        return Hinge(axis, *_range(_angles_about(samples, np.array(axis)), chosen))
    nearest = float(np.percentile(angles, 100.0 - chosen.percentile))
    if nearest > NEAREST:
        raise InvalidInput(_words_of_rest(f"at least {degrees(nearest):.0f}"))
    return _fitted_swing(samples, chosen)


def comfort_region(
    rotations: ArrayLike, limit: Hinge | SwingTwist, settings: FitSettings | None = None
) -> Hinge | SwingTwist | None:
    """The region of a limit, of its own kind, in which a joint has been most of the time.

    Args:
        rotations: (N, 4) that the limit was fitted to.
        limit: of `fit`.
        settings: `comfort` counts.

    Returns:
        None where no region is asked for.
    """
    chosen = settings or FitSettings()
    if chosen.comfort == 0.0:
        return None
    samples, middle = _samples(rotations), replace(chosen, margin=0.0, percentile=chosen.comfort)
    if isinstance(limit, Hinge):
        lower, upper = _range(_angles_about(samples, np.array(limit.axis)), middle)
        return Hinge(limit.axis, max(lower, limit.lower), min(upper, limit.upper))
    found, allowed = _fitted_swing(samples, middle), limit.swing
    if not (
        isinstance(found.swing, Ellipse) and isinstance(allowed, Ellipse) and found.twist and limit.twist
    ):
        return None
    lowers = [max(getattr(each, name) for each in (found.swing, allowed)) for name in ("x_lower", "z_lower")]
    uppers = [min(getattr(each, name) for each in (found.swing, allowed)) for name in ("x_upper", "z_upper")]
    twist = max(found.twist[0], limit.twist[0]), min(found.twist[1], limit.twist[1])
    return SwingTwist(Ellipse(lowers[0], uppers[0], lowers[1], uppers[1]), twist)


def _words_of_rest(how_far: str) -> str:
    return (
        f"its rotations are {how_far} degrees away from rest, so rest is no pose of this motion; use a rest "
        "pose that the joint can have"
    )


def _samples(rotations: ArrayLike) -> Array:
    """Unit quaternions (4, N), w not below 0."""
    given: Array = np.array(rotations, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != 4 or len(given) == 0:
        raise InvalidInput(f"rotations must be (N, 4) quaternions, N at least 1, not of shape {given.shape}")
    sizes = length(given, axis=1)
    if not (np.isfinite(sizes).all() and sizes.min() > 1e-6):
        raise InvalidInput(f"rotation {int(np.argmin(np.nan_to_num(sizes)))} is not a unit quaternion")
    samples = unit(given.T)
    return np.where(samples[0] < 0.0, -samples, samples)


def _hinge_axis(samples: Array, vectors: Array, settings: FitSettings) -> Triple | None:
    """The axis of the hinge that these rotations are about, its largest component positive; None if none."""
    directions, _, _ = np.linalg.svd(vectors, full_matrices=False)
    found = directions[:, 0]
    main = int(np.argmax(np.abs(found)))
    found = found * np.copysign(1.0, found[main])
    snapped = np.eye(3)[main]
    if found[main] >= np.cos(settings.snap_angle) and _is_about(samples, snapped, settings):
        found = snapped
    elif not _is_about(samples, found, settings):
        return None
    return float(found[0]), float(found[1]), float(found[2])


def _is_about(samples: Array, axis: Array, settings: FitSettings) -> bool:
    """Whether so many rotations as the percentile asks for are near enough to rotations about an axis."""
    along = axis @ samples[1:]
    off_axis = 2.0 * np.arccos(np.minimum(np.hypot(samples[0], along), 1.0))
    shown = float(np.ptp(_angles_about(samples, axis)))
    allowed = min(settings.hinge_tolerance, SLIM * shown)
    return bool(np.percentile(off_axis, settings.percentile) <= allowed)


def _range(angles: Array, settings: FitSettings) -> tuple[float, float]:
    """The bounds of angles, as many left out at either end as the percentile says, margins added."""
    outside = 0.5 * (100.0 - settings.percentile)
    lower, upper = np.percentile(angles, (outside, 100.0 - outside))
    return float(lower) - settings.margin, float(upper) + settings.margin


def _angles_about(samples: Array, axis: Array) -> Array:
    angles: Array = 2.0 * np.arctan2(axis @ samples[1:], samples[0])
    return np.remainder(angles + pi, 2.0 * pi) - pi


def _fitted_swing(samples: Array, settings: FitSettings) -> SwingTwist:
    along = np.array((0.0, 1.0, 0.0))
    angles = _angles_about(samples, along)
    untwist = np.zeros_like(samples)
    untwist[0], untwist[2] = np.cos(0.5 * angles), -np.sin(0.5 * angles)
    swings = logarithm(multiply(samples, untwist))[[0, 2]]
    sides = _sides(swings, settings)
    x_lower, x_upper, z_lower, z_upper = (min(side, pi) for side in sides)
    twist = tuple(min(max(bound, -pi), pi) for bound in _range(angles, settings))
    return SwingTwist(Ellipse(-x_lower, x_upper, -z_lower, z_upper), (twist[0], twist[1]))


def _sides(swings: Array, settings: FitSettings) -> tuple[float, ...]:
    """The sides (lower x, upper x, lower z, upper z) of four quarter ellipses about swings (2, N), radians.

    Each begins at the farthest swing to its side. Then all grow by one factor, until the swings are inside:
    those between two sides lie outside at first.
    """
    sides = []
    for parts in swings:
        for sign in (-1.0, 1.0):
            reach = np.percentile(np.maximum(sign * parts, 0.0), settings.percentile)
            sides.append(max(float(reach), STILL))
    x = swings[0] / np.where(swings[0] < 0.0, sides[0], sides[1])
    z = swings[1] / np.where(swings[1] < 0.0, sides[2], sides[3])
    factor = max(1.0, float(np.percentile(np.hypot(x, z), settings.percentile)))
    return tuple(side * factor + settings.margin for side in sides)
