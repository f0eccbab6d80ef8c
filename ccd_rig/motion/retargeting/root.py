"""The hips: moved towards feet that legs are too short for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...maths import batch
from ...maths.batch import Array

STEEPEST = 0.98
"""Part of a leg's length up to which feet may be beside the hip, along the ground, for the hips to sink;
beyond it they go along the ground."""


def ways_aside(hips: Array, ankles: Array, reach: Array, weights: Array) -> Array:
    """(F, 2) metres along the ground by which the hips must go for one leg, towards a foot far beside them;
    the arguments are those of `drops`."""
    beside = (ankles - hips)[:, :2]
    size = batch.length(beside, -1)
    part = weights * np.maximum(0.0, 1.0 - STEEPEST * reach / np.maximum(size, 1e-12))
    return np.asarray(part[:, None] * beside)


def drops(hips: Array, ankles: Array, reach: Array, weights: Array) -> Array:
    """(F,) metres by which the hips must sink for one leg.

    Args:
        hips: (F, 3) its hip joint.
        ankles: (F, 3) where its ankle is to be.
        reach: (F,) how long it may be.
        weights: (F,) how much of it counts: 1 in contacts.
    """
    ways = ankles - hips
    beside = np.minimum(batch.length(ways[:, :2], -1), STEEPEST * reach)
    return np.asarray(weights * np.maximum(0.0, -ways[:, 2] - np.sqrt(reach**2 - beside**2)))


def smooth_envelope(values: Array, times: Array, window: float) -> Array:
    """(F,) a smooth curve that is nowhere below values (F,).

    The largest value within half a window, then a mean over that window: each mean is over values that are
    at least the one in its middle.
    """
    if not values.any() or len(times) < 2:
        return values
    half = max(1, round(0.5 * window / float(np.median(np.diff(times)))))
    padded = np.pad(values, 2 * half, mode="edge")
    tops = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1).max(axis=1)
    bell = np.hanning(2 * half + 3)[1:-1]
    return np.asarray(np.convolve(tops, bell / bell.sum(), mode="valid"))


def smooth_shifts(shifts: Sequence[Array], times: Array, window: float) -> Array:
    """(F, k) of several (F, k) that are asked for at once: for each axis the largest to either side, smoothed
    by `smooth_envelope`; where they are asked for to both sides, the rest of both."""
    found = np.zeros_like(shifts[0])
    for sign in (1.0, -1.0):
        most = np.max([np.maximum(sign * shift, 0.0) for shift in shifts], axis=0)
        found += sign * np.stack([smooth_envelope(each, times, window) for each in most.T], axis=1)
    return found


def mean_velocity(points: Array, times: Array) -> Array:
    """(3,) along the ground, from the first point (F, 3) to the last."""
    if len(times) < 2:
        return np.zeros(3)
    return np.array([*(points[-1, :2] - points[0, :2]) / (times[-1] - times[0]), 0.0])
