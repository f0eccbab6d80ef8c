"""Shifts of the hips towards feet that are out of reach of their legs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...maths import batch
from ...maths.batch import Array

STEEPEST = 0.98
"""Largest horizontal distance of a foot from its hip joint, in lengths of the leg, at which the hips sink.

Beyond it they move along the ground.
"""


def ways_aside(hips: Array, ankles: Array, reach: Array, weights: Array) -> Array:
    """(F, 2) horizontal shifts of the hips for a leg, towards a foot far beside them, metres; see `drops`."""
    beside = (ankles - hips)[:, :2]
    size = batch.length(beside, -1)
    part = weights * np.maximum(0.0, 1.0 - STEEPEST * reach / np.maximum(size, 1e-12))
    return np.asarray(part[:, None] * beside)


def drops(hips: Array, ankles: Array, reach: Array, weights: Array) -> Array:
    """(F,) metres by which the hips must sink for a leg.

    Args:
        hips: (F, 3) its hip joint.
        ankles: (F, 3) targets of its ankle.
        reach: (F,) its largest extension.
        weights: (F,) factors of the result: 1 in contacts.
    """
    lines = ankles - hips
    beside = np.minimum(batch.length(lines[:, :2], -1), STEEPEST * reach)
    return np.asarray(weights * np.maximum(0.0, -lines[:, 2] - np.sqrt(reach**2 - beside**2)))


def smooth_envelope(values: Array, times: Array, window: float) -> Array:
    """(F,) a smooth curve nowhere below values (F,).

    A running maximum over half a window, then a weighted mean over the window: each mean is over values that
    are at least the one in its middle.
    """
    if not values.any() or len(times) < 2:
        return values
    half = max(1, round(0.5 * window / float(np.median(np.diff(times)))))
    padded = np.pad(values, 2 * half, mode="edge")
    tops = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1).max(axis=1)
    bell = np.hanning(2 * half + 3)[1:-1]
    return np.asarray(np.convolve(tops, bell / bell.sum(), mode="valid"))


def smooth_shifts(shifts: Sequence[Array], times: Array, window: float) -> Array:
    """(F, k) smooth shift that combines several shifts (F, k).

    By axis, it is the sum of the smooth envelopes (`smooth_envelope`) of the largest shifts to either side.
    """
    combined = np.zeros_like(shifts[0])
    for sign in (1.0, -1.0):
        most = np.max([np.maximum(sign * shift, 0.0) for shift in shifts], axis=0)
        combined += sign * np.stack([smooth_envelope(each, times, window) for each in most.T], axis=1)
    return combined


def mean_velocity(points: Array, times: Array) -> Array:
    """(3,) mean horizontal velocity from the first point (F, 3) to the last."""
    if len(times) < 2:
        return np.zeros(3)
    return np.array([*(points[-1, :2] - points[0, :2]) / (times[-1] - times[0]), 0.0])
