"""Solved frames of a range, slerps between them, and smooth curves over them.

Functions work on NumPy arrays in double precision, one row per frame: a bake has thousands of frames.
Quaternions are (w, x, y, z).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidInput
from ..maths.batch import Array, Mask, dot, slerp, unit


def solve_frames(frame_start: int, frame_end: int, step: int) -> list[int]:
    """Frames to solve: every `step`-th from the first, and always the last.

    Args:
        frame_start: first frame; may be negative.
        frame_end: last frame, not before the first.
        step: frames from one solve to the next, at least 1.

    Raises:
        InvalidInput: the range is empty, the step is below 1, or a value is not a whole number.
    """
    for name, value in (("frame_start", frame_start), ("frame_end", frame_end), ("step", step)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            raise InvalidInput(f"{name} must be a whole number, not {value!r}")
    if step < 1:
        raise InvalidInput(f"step must be 1 or more, not {step}")
    if frame_end < frame_start:
        raise InvalidInput(
            f"the frame range {frame_start} to {frame_end} is empty: the end lies before the start"
        )
    frames = list(range(int(frame_start), int(frame_end) + 1, int(step)))
    if frames[-1] != frame_end:
        frames.append(int(frame_end))
    return frames


def slerp_rotations(frames: ArrayLike, rotations: ArrayLike, wanted: ArrayLike) -> Array:
    """Spherical linear interpolation of every joint between its solved frames.

    Signs are chosen so that neighbours lie in the same half of the sphere over the whole range; the first
    solved frame keeps its sign. Interpolation takes the shorter path, and a quaternion may change its sign
    (the same rotation). Values at solved frames are returned unchanged, not normalised again.

    Args:
        frames: (S,) solved frames, strictly increasing.
        rotations: (S, J, 4) rotations of J joints at these frames, of any length but 0.
        wanted: (F,) frames to return, within the solved range, in any order.

    Returns:
        (F, J, 4) rotations; unit length between solved frames.
    """
    at = np.asarray(frames, dtype=np.float64)
    when = np.asarray(wanted, dtype=np.float64)
    keys = same_side(rotations)
    if np.array_equal(at, when):
        return keys
    units = unit(keys, axis=-1)
    after = np.clip(np.searchsorted(at, when, side="right"), 1, max(len(at) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(at) - 1)  # a single solved frame is its own neighbour
    span = np.where(after == before, 1.0, at[after] - at[before])
    result = slerp(units[before], units[after], ((when - at[before]) / span)[:, None], axis=-1)

    nearest = np.where(when == at[after], after, before)
    solved = when == at[nearest]
    result[solved] = keys[nearest[solved]]
    return result


def same_side(rotations: ArrayLike) -> Array:
    """Flip signs along the first axis so that each quaternion is on the same side as the one before.

    Two quaternions at a right angle are rotations half a turn apart: both paths are equally short, and the
    sign is kept.

    Args:
        rotations: (S, ..., 4).
    """
    values = np.array(rotations, dtype=np.float64)
    if len(values) > 1:
        opposed = dot(values[1:], values[:-1], axis=-1) < 0.0
        if opposed.any():
            values[1:] *= np.cumprod(np.where(opposed, -1.0, 1.0), axis=0)[..., None]
    return values


def straight_on(at: Array, places: Array, values: Array) -> Array:
    """Values at places (...,), linear between values (K,) at increasing places (K,) and beyond them."""
    extended = np.interp(at, places, values)
    if len(places) < 2:
        return np.asarray(extended)
    for k, beyond in ((0, np.minimum(at - places[0], 0.0)), (-1, np.maximum(at - places[-1], 0.0))):
        pair = slice(0, 2) if k == 0 else slice(-2, None)
        rate = float(np.diff(values[pair])[0] / np.diff(places[pair])[0])
        extended = extended + rate * beyond
    return np.asarray(extended)


def bell_means(values: Array, half: int) -> Array:
    """(N - 2 half,) means of values (N,), each over `half` neighbours to either side, by a Hann window."""
    bell = np.hanning(2 * half + 3)[1:-1]
    return np.convolve(values, bell / bell.sum(), mode="valid")


def second_differences(times: Array) -> Array:
    """(F - 2, F) matrix that takes values at times (F,) to their second derivatives."""
    count = len(times)
    differences = np.zeros((max(0, count - 2), count))
    for i in range(count - 2):
        before, after = times[i + 1] - times[i], times[i + 2] - times[i + 1]
        differences[i, i : i + 3] = 2.0 * np.array(
            (1.0 / (before * (before + after)), -1.0 / (before * after), 1.0 / (after * (before + after)))
        )
    return differences


def least_lift(times: Array, needed: Array, fixed: Mask, reach: float) -> Array:
    """(F,) the smallest smooth curve that is nowhere below needed values, nor below 0.

    It minimises the sum of L^2 + (reach / 2)^4 L''^2, a beam on an elastic bed, by the active set method of
    Lawson and Hanson (1974, "Solving Least Squares Problems", chapter 23) on the forces that hold it up.

    Args:
        times: (F,) increasing.
        needed: (F,)
        fixed: (F,) where the curve is 0, whatever is needed there.
        reach: time over which it sets in.
    """
    lift: Array = np.zeros(len(times))
    free = np.flatnonzero(~fixed)
    least = np.where(fixed, 0.0, np.maximum(needed, 0.0))
    for run in np.split(free, np.flatnonzero(np.diff(free) > 2) + 1):  # two fixed frames cut the beam
        if least[run].any():
            near = slice(max(run[0] - 2, 0), run[-1] + 3)
            lift[near] = _lifted_beam(_Beam(times[near], 0.5 * reach), least[near], fixed[near])
    return lift


def _lifted_beam(beam: _Beam, least: Array, fixed: Mask) -> Array:
    """(N,) a beam that is nowhere below `least` (N,), and 0 where it is `fixed`, by the least forces."""
    held: Mask = np.zeros(len(least), np.bool_)
    forces: Array = np.zeros(len(least))
    lift: Array = np.zeros(len(least))
    close = 1e-9 * float(least.max())
    for _ in range(3 * len(least)):
        missing = np.where(held | fixed, 0.0, least - lift)
        if missing.max() <= close:
            break
        short = np.flatnonzero(missing > close)
        for run in np.split(short, np.flatnonzero(np.diff(short) > 1) + 1):
            held[run[missing[run].argmax()]] = True
        while True:
            lift = beam.pinned(np.where(held, least, 0.0), held | fixed)
            exact = np.where(held, beam.forces(lift), 0.0)
            pulls = held & (exact <= 0.0)
            if not pulls.any():
                break
            steps = forces[pulls] / np.maximum(forces[pulls] - exact[pulls], 1e-300)
            forces = forces + float(steps.min()) * (exact - forces)
            held &= ~(pulls & (forces <= 1e-12 * np.abs(exact).max()))
            forces[~held] = 0.0
        forces = exact
    return np.asarray(np.maximum(lift, least))


class _Beam:
    """A beam on an elastic bed: its matrix 1 + stiffness^4 D^T D, with D the second differences."""

    def __init__(self, times: Array, stiffness: float) -> None:
        count = len(times)
        before, after = times[1:-1] - times[:-2], times[2:] - times[1:-1]
        first, last = 2.0 / (before * (before + after)), 2.0 / (after * (before + after))
        rows = first, -2.0 / (before * after), last
        self._bands = [np.ones(count), np.zeros(count), np.zeros(count)]  # diagonals k, at the upper row
        for j in range(3):
            for k in range(j, 3):
                self._bands[k - j][j : j + count - 2] += stiffness**4 * rows[j] * rows[k]

    def forces(self, lift: Array) -> Array:
        """(N,) forces that give the beam a shape."""
        forces = self._bands[0] * lift
        for k in (1, 2):
            forces[:-k] += self._bands[k][:-k] * lift[k:]
            forces[k:] += self._bands[k][:-k] * lift[:-k]
        return forces

    def pinned(self, lift: Array, is_pinned: Mask) -> Array:
        """(N,) the shape without forces but at pinned places, where it is `lift`; `lift` is 0 elsewhere.

        By the factors L D L^T of the band (Golub and Van Loan 2013, "Matrix Computations", section 4.3).
        """
        free = ~is_pinned
        rights = np.where(free, -self.forces(lift), lift).tolist()
        middle = np.where(free, self._bands[0], 1.0).tolist()
        near, far = (
            np.where(free[:-k] & free[k:], self._bands[k][:-k], 0.0).tolist() + [0.0] * k for k in (1, 2)
        )
        size = len(rights)
        for i in range(size):
            pivot, value = middle[i], rights[i]
            for k, entry in ((1, near[i]), (2, far[i])):
                if entry != 0.0:
                    middle[i + k] -= entry * entry / pivot
                    rights[i + k] -= entry / pivot * value
            if i + 2 < size:
                near[i + 1] -= near[i] * far[i] / pivot
        for i in range(size - 1, -1, -1):
            beyond = near[i] * rights[i + 1] if i + 1 < size else 0.0
            beyond += far[i] * rights[i + 2] if i + 2 < size else 0.0
            rights[i] = (rights[i] - beyond) / middle[i]
        return np.array(rights)
