"""Key reduction: the keys of a densely keyed motion between which linear interpolation stays near to it.

Values are those of channels: quaternions (w, x, y, z), which are normalised after interpolation, Euler
angles, angle and axis, or a location. All components of a channel have keys at the same frames, and are
linear between them, as Blender plays them. Angles in radians; double precision throughout.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from ..maths.batch import Array, axis_rotation, multiply, runs

PLACE = "LOCATION"
"""The kind of location channels."""
PAUSE = 64
"""Iterations between two items of progress."""

Mask = NDArray[np.bool_]


def rotations_of(kind: str, values: Array) -> Array:
    """Unit quaternions (..., 4) of values (..., C) of a rotation channel, as in Blender."""
    if kind == "QUATERNION":
        sizes = np.linalg.norm(values, axis=-1, keepdims=True)
        none = np.array((0.0, 1.0, 0.0, 0.0))  # Blender turns a zero quaternion into half a turn about X
        return np.asarray(np.where(sizes > 0.0, values / np.where(sizes > 0.0, sizes, 1.0), none))
    if kind == "AXIS_ANGLE":
        axis = values[..., 1:]
        sizes = np.linalg.norm(axis, axis=-1, keepdims=True)
        axis = np.where(sizes > 0.0, axis / np.where(sizes > 0.0, sizes, 1.0), 0.0)
        return axis_rotation(
            axis, np.where(sizes[..., 0] > 0.0, values[..., 0], 0.0)
        )  # no axis is no rotation
    rotations = None
    for axis_name in kind:  # the axes in the order in which they are applied
        i = "XYZ".index(axis_name)
        one = axis_rotation(np.eye(3)[i], values[..., i])
        rotations = one if rotations is None else multiply(one, rotations, axis=-1)
    assert rotations is not None
    return rotations


def interpolated(frames: Array, values: Array, kept: Mask) -> Array:
    """Interpolate values (F, C) linearly between the kept frames, which include the first and the last."""
    at = frames[kept]
    columns = [np.interp(frames, at, values[kept, c]) for c in range(values.shape[1])]
    result = np.stack(columns, axis=1)
    result[kept] = values[kept]
    return result


def choose(
    kind: str, frames: Array, values: Array, tolerances: Array, must: Mask
) -> Generator[float, None, Mask]:
    """Choose keys so that each channel stays within its tolerance; yields the finished part as progress.

    From each key it searches the farthest next one, by doubling and bisection, for all channels at once. The
    number of keys is minimal if every part of an admissible segment is admissible.

    Args:
        kind: rotation mode of Blender, or `PLACE`.
        frames: (F,) increasing.
        values: (B, F, C) of B channels of one kind.
        tolerances: (B,) radians, or for places their own unit; above 0.
        must: (B, F) mask of keys to keep in any case, beside the first and the last.

    Returns:
        (B, F) mask of the keys to keep.
    """
    count, length = values.shape[:2]
    kept = must.copy()
    if length == 0:
        return kept
    kept[:, 0] = kept[:, -1] = True
    wanted = values if kind == PLACE else rotations_of(kind, values)
    # The next obligatory key after each frame: no segment passes it.
    where = np.where(kept, np.arange(length), length)
    stops = np.minimum.accumulate(where[:, ::-1], axis=1)[:, ::-1]
    start = np.zeros(count, np.intp)
    good = start + 1
    bad = np.full(count, -1)  # no frame is known to be too far
    stride = np.ones(count, np.intp)
    active = np.flatnonzero(start < length - 1)
    looks = 0
    while len(active):
        stop = stops[active, np.minimum(start[active] + 1, length - 1)]
        reached = bad[active] < 0
        ahead = np.minimum(start[active] + stride[active], stop)
        end = np.where(reached, np.maximum(ahead, good[active]), (good[active] + bad[active]) // 2)
        fits = _fits(kind, frames, values, wanted, tolerances, (active, start[active], end))
        good[active] = np.where(fits, end, good[active])
        bad[active] = np.where(fits, bad[active], end)
        stride[active] *= np.where(reached & fits, 2, 1)
        done = (good[active] >= stop) | ((bad[active] >= 0) & (bad[active] - good[active] <= 1))
        rows = active[done]
        kept[rows, good[rows]] = True
        stride[rows] = np.maximum(good[rows] - start[rows], 1)  # motions change slowly
        start[rows], good[rows], bad[rows] = good[rows], good[rows] + 1, -1
        active = active[start[active] < length - 1]
        looks += 1
        if looks % PAUSE == 0:
            yield float(start.mean()) / (length - 1)
    return kept


def _fits(
    kind: str,
    frames: Array,
    values: Array,
    wanted: Array,
    tolerances: Array,
    segments: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]],
) -> Mask:
    """Whether the frames between the ends of (channels, starts, ends) are all within tolerance."""
    rows, starts, ends = segments
    inner = ends - starts - 1
    fits = np.ones(len(rows), np.bool_)
    long = np.flatnonzero(inner > 0)
    if not len(long):
        return fits
    sizes = inner[long]
    which = np.repeat(long, sizes)
    firsts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    at = np.arange(len(which)) - np.repeat(firsts, sizes) + starts[which] + 1
    row, low, high = rows[which], starts[which], ends[which]
    part = ((frames[at] - frames[low]) / (frames[high] - frames[low]))[:, None]
    between = values[row, low] * (1.0 - part) + values[row, high] * part
    off = apart(kind, between, wanted[row, at])
    fits[long] = np.maximum.reduceat(off, firsts) <= tolerances[rows[long]]
    return fits


def apart(kind: str, values: Array, wanted: Array) -> Array:
    """Distances of values (N, C) from wanted rotations (N, 4), radians, or locations (N, 3)."""
    if kind == PLACE:
        return np.asarray(np.linalg.norm(values - wanted, axis=1))
    turned = rotations_of(kind, values)
    chord = np.minimum(np.linalg.norm(turned - wanted, axis=1), np.linalg.norm(turned + wanted, axis=1))
    return np.asarray(4.0 * np.arcsin(np.minimum(1.0, 0.5 * chord)))


def middles_of_runs(over: Mask) -> NDArray[np.intp]:
    """The middle index of each run of set entries of (F,)."""
    return np.array([(run.start + run.stop - 1) // 2 for run in runs(over)], np.intp)
