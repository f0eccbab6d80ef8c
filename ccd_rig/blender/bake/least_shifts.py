# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest smooth shifts of a body that let legs reach.

Over the frames, the shift is the one with the least sum of lengths and of squared second differences that
keeps the heads of all legs inside their balls: 0 where nothing asks for it, and never with a jump. That
problem is convex, and solved by the alternating direction method of multipliers. In the shapes S counts the
solved frames, K the constraints that plant bones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...maths.batch import Array

SMOOTH = 3000.0
"""Weight of squared second differences beside lengths: a shift of a twentieth of a leg sets in within 8
frames."""
COUPLING = 200.0
"""Weight by which copies of the shift are held together (ADMM); any value leads to the same shift."""
STEPS = 600
"""Most steps of that."""
CLOSE = 1e-7
"""Part of a leg's length by which copies may differ at the end."""
MARGIN = 60
"""Frames before and after a need in which the body may be moved."""
BLOCK, OVERLAP = 400, 100
"""Frames that are looked at together, and those in which two such blocks go over into each other."""


@dataclass(frozen=True)
class Reaches:
    """Which shifts of the body let legs reach planted bones; infinite radii where a bone is not planted.

    Attributes:
        centres: (S, K, 3) of the balls in which the shift must be, armature space.
        radii: (S, K)
        origins: (S, K) the frame whose shift takes the ball along, as the leg hung on the body alone when it
            came down; -1 where none does.
    """

    centres: Array
    radii: Array
    origins: NDArray[np.intp]

    def needs(self) -> NDArray[np.intp]:
        """(N,) the frames at which the body cannot stay."""
        return np.flatnonzero((np.linalg.norm(self.centres, axis=2) > self.radii).any(axis=1))

    def part(self, first: int, last: int, shifts: Array) -> Reaches:
        """Those of some frames, where the shifts (S, 3) of all frames before are known."""
        origins = self.origins[first:last]
        before = ((origins >= 0) & (origins < first))[..., None]
        centres = self.centres[first:last] + np.where(before, shifts[origins], 0.0)
        return Reaches(centres, self.radii[first:last], np.maximum(origins - first, -1))


def least_shifts(frames: Array, reaches: Reaches, length: float) -> Array:
    """(S, 3): the smooth shifts of the body that let all legs reach, 0 wherever they can be.

    Args:
        frames: (S,) increasing.
        reaches: of these frames.
        length: of a leg.
    """
    shifts, needs = np.zeros((len(frames), 3)), reaches.needs()
    if not len(needs):
        return shifts
    scaled = replace(reaches, centres=reaches.centres / length, radii=reaches.radii / length)
    for group in np.split(needs, np.flatnonzero(np.diff(needs) > 2 * MARGIN) + 1):
        first, last = max(0, int(group[0]) - MARGIN), min(len(frames), int(group[-1]) + MARGIN + 1)
        for start in range(first, max(first + 1, last - OVERLAP), BLOCK - OVERLAP):
            end = min(start + BLOCK, last)
            block = _smooth_shifts(frames[start:end], scaled.part(start, end, shifts))
            # What two blocks allow, all between them is allowed too: balls are convex.
            ramp = np.clip((np.arange(end - start) + 0.5) / OVERLAP, 0.0, 1.0)[:, None]
            part = ramp if start > first else np.ones_like(ramp)
            shifts[start:end] = (1.0 - part) * shifts[start:end] + part * block
    shifts *= length
    return shifts


def _smooth_shifts(frames: Array, reaches: Reaches) -> Array:
    """The shifts of one block, lengths in those of a leg; alternating direction method of multipliers."""
    count, legs = reaches.radii.shape
    bends = _second_differences(frames)
    held = [np.flatnonzero(reaches.origins[:, k] >= 0) for k in range(legs)]
    origins = [reaches.origins[held[k], k] for k in range(legs)]
    system = SMOOTH * bends.T @ bends + COUPLING * np.eye(count)
    for k in range(legs):  # a leg looks at how far the shift is from that of the origin
        view = np.eye(count)
        view[held[k], origins[k]] -= 1.0
        system += COUPLING * view.T @ view
    solve_smooth = np.linalg.inv(system)
    # Copy 0 is as short as can be, copy k is inside the balls of leg k.
    copies = np.zeros((1 + legs, count, 3))
    prices = np.zeros_like(copies)
    for _ in range(STEPS):
        pull = copies - prices
        right = pull.sum(axis=0)
        for k in range(legs):
            np.subtract.at(right, origins[k], pull[1 + k, held[k]])
        smooth = COUPLING * (solve_smooth @ right)
        seen = np.repeat(smooth[None], 1 + legs, axis=0)
        for k in range(legs):
            seen[1 + k, held[k]] -= smooth[origins[k]]
        priced = seen + prices
        size = np.linalg.norm(priced[0], axis=1, keepdims=True)
        copies[0] = priced[0] * np.maximum(0.0, 1.0 - 1.0 / (COUPLING * np.maximum(size, 1e-30)))
        for k in range(legs):
            copies[1 + k] = _into_ball(priced[1 + k], reaches.centres[:, k], reaches.radii[:, k])
        prices += seen - copies
        if np.abs(seen - copies).max() < CLOSE:
            break
    return np.where(np.any(copies[0] != 0.0, axis=1)[:, None], smooth, 0.0)


def _into_ball(points: Array, centres: Array, radii: Array) -> Array:
    """(S, 3) the nearest points inside balls (S, 3), (S,)."""
    ways = points - centres
    far = np.linalg.norm(ways, axis=1)
    outside = far > radii
    part = np.where(outside, radii / np.where(outside, far, 1.0), 1.0)
    return np.where(outside[:, None], centres + ways * part[:, None], points)


def _second_differences(frames: Array) -> Array:
    """(S - 2, S): makes of values at frames their second derivatives."""
    count = len(frames)
    differences = np.zeros((max(0, count - 2), count))
    for i in range(count - 2):
        before, after = frames[i + 1] - frames[i], frames[i + 2] - frames[i + 1]
        differences[i, i : i + 3] = 2.0 * np.array(
            (1.0 / (before * (before + after)), -1.0 / (before * after), 1.0 / (after * (before + after)))
        )
    return differences
