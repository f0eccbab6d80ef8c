"""Where joints change their turn faster than the way of their target explains, and what takes that away.

A joint that comes to its limit stops at once, and others take over what it did: that shows as a jolt, though
no joint turns far. The poses about it, smoothed over a few frames and brought to their targets again
(`inbetweens.settle`), slow down before and start after. Where the target itself is abrupt nothing is
smoothed: a pose must not move ahead of its target.

Frames are evenly spaced. Arrays are as in `inbetweens`: (4, n, F) rotations, (3, F) targets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .interpolation import Array, same_side

KERNEL = (1.0 / 16.0, 4.0 / 16.0, 6.0 / 16.0, 4.0 / 16.0, 1.0 / 16.0)
"""Weights of the frames about one, itself in the middle: binomial, so nothing swings over."""
BEFORE = len(KERNEL) // 2
"""Frames before (and after) one that its smoothed pose depends on."""
FORCED = 3.0
"""Radians by which a turn may change for each length of the chain by which the target's step does."""
LEAST = 5e-4
"""Radians: smaller changes of a turn from frame to frame are not looked at."""
SHARP = 0.5
"""Part of a target's step by which it changes from frame to frame where the target is abrupt."""


def bends(rotations: Array) -> Array:
    """(n, F - 2): radians by which the turn to the next frame differs from the one before.

    Args:
        rotations: unit quaternions, less than a quarter turn from frame to frame.
    """
    along = _one_side(rotations)
    middle = along[..., 1:-1]
    change = along[..., 2:] - 2.0 * middle + along[..., :-2]
    change = change - (change * middle).sum(0) * middle
    found: Array = 2.0 * np.sqrt((change * change).sum(0))
    return found


def weights(rotations: Array, targets: Array, length: float, usable: NDArray[np.bool_]) -> Array:
    """(F,) how much of the smoothing each frame gets, 0 to 1: nearly all get none.

    Args:
        rotations: of the joints that move.
        targets: where their effector is.
        length: of the chain, in the unit of the targets.
        usable: (F,) frames that count; those about others get none.
    """
    count = targets.shape[1]
    found = np.zeros(count)
    if count <= 2 * BEFORE:
        return found
    steps = np.diff(targets, axis=1)
    ways, changes = (np.sqrt((each * each).sum(0)) for each in (steps, np.diff(steps, axis=1)))
    jolts = bends(rotations).max(0) > FORCED / length * changes + LEAST
    if not jolts.any():
        return found
    # A target that rests is abrupt too: its chain rests with it.
    abrupt = changes >= SHARP * np.maximum(ways[:-1], ways[1:])
    found[1:-1] = _spread(_near(jolts, 2 * BEFORE), KERNEL)
    found[1:-1][_near(abrupt, BEFORE)] = 0.0
    found[_near(~usable, BEFORE)] = 0.0
    found[:BEFORE], found[-BEFORE:] = 0.0, 0.0
    return found


def smoothed(rotations: Array, parts: Array) -> Array:
    """(4, n, F) rotations, each gone by its part (F,) from where it is to the mean of those about it."""
    ends = ((0, 0), (0, 0), (BEFORE, BEFORE))
    along = _one_side(rotations)
    wide = np.pad(along, ends, "edge")
    mean = sum(k * wide[..., i : i + len(parts)] for i, k in enumerate(KERNEL))
    found = along + parts * (mean - along)
    unit: Array = found / np.sqrt((found * found).sum(0))
    return unit


def _one_side(rotations: Array) -> Array:
    """The same rotations without changes of sign from frame to frame."""
    return np.ascontiguousarray(same_side(rotations.transpose(2, 1, 0)).transpose(2, 1, 0))


def _near(marked: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """Those no farther than `reach` places from one that is marked."""
    return _spread(marked, np.ones(2 * reach + 1)) > 0.5


def _spread(marked: NDArray[np.bool_], shares: ArrayLike) -> Array:
    """What is marked, dealt out to those about it; an odd number of shares, which may be more than places."""
    values = marked.astype(np.float64)
    whole = np.asarray(np.convolve(values, np.asarray(shares)), dtype=np.float64)
    first = (len(whole) - len(values)) // 2
    return whole[first : first + len(values)]
