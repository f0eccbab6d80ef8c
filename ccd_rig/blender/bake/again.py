# SPDX-License-Identifier: GPL-3.0-or-later
"""A bake made twice: a motion that was baked in just this way, and is still as near to its targets, stays."""

from __future__ import annotations

import numpy as np
from mathutils import Quaternion

from ...limits.shapes import contains
from ...motion import interpolation
from ...settings import SolverSettings, SolveStatus
from . import measuring
from .bake_frames import BakeFrames, Motion, Solutions

NEAR = 0.1
"""Part of the tolerances by which a motion that stays may be farther off: keys are rounded."""
FAR = 0.05
"""Part of its distance by which one that misses its target may be farther off, and a tolerance more."""
INSIDE = 1e-5
"""Radians outside a limit that are rounding of keys."""


def keep(take: BakeFrames, solver: SolverSettings) -> None:
    """Put the base poses of a take in place of what was solved, if they are as near everywhere.

    From a baked motion a solve starts elsewhere than from the one before it, so it would lead to another
    motion that is no better.

    Args:
        take: all of it is solved; nothing is planted.
        solver: position tolerance in world metres.
    """
    if _leaves_limits(take):
        return
    base = Motion(take.base, take.translations, np.empty((len(take.frames), 0, 3)))
    rows = np.searchsorted(take.frames, take.solved_frames)
    tolerances = (solver.position_tolerance, solver.angle_tolerance)
    old, new = (_off(take, motion, tolerances)[rows] for motion in (base, take.finish()[1]))
    good = old <= 1.0 + NEAR
    # Where nothing is reached, what counts is the farthest: constraints that pull against each other trade.
    if np.any(~good & (new <= 1.0)) or np.any(old.max(axis=1) > (1.0 + FAR) * new.max(axis=1) + 1.0):
        return
    reached = SolveStatus.CONVERGED.name
    states = {
        row: {c: reached if good[k, c] else state for c, state in take.states[row].items()}
        for k, row in enumerate(rows.tolist())
    }
    take.restore(Solutions(interpolation.unit(take.base[rows]), _slides(take)[rows], states))


def _off(take: BakeFrames, motion: Motion, tolerances: tuple[float, float]) -> interpolation.Array:
    """(F, C) how far off constraints are, in tolerances; 0 where they are not in force."""
    distances, angles = measuring.residuals(take, motion)
    off = np.maximum(distances / tolerances[0], angles / tolerances[1])
    return np.asarray(np.where(take.influences > 0.0, off, 0.0))


def _leaves_limits(take: BakeFrames) -> bool:
    """Whether a base pose of the joints that are keyed breaks a limit."""
    keyed = take.keyed_joints()
    return any(
        limits[j] is not None and not contains(limits[j], Quaternion(rotations[j]), INSIDE)
        for limits, rotations in zip(take.limits, take.base, strict=True)
        for j in keyed
    ) or any(
        np.any((along < slide.lower - INSIDE) | (along > slide.upper + INSIDE))
        for slide, along in zip(take.slides, _slides(take).T, strict=True)
    )


def _slides(take: BakeFrames) -> interpolation.Array:
    """(F, K) how far bones have slid in the base poses."""
    found = np.empty((len(take.frames), len(take.sliding)))
    for k, (j, slide) in enumerate(zip(take.sliding, take.slides, strict=True)):
        locations = np.linalg.solve(take.shifts[:, k], take.translations[:, j, :, None])[..., 0]
        found[:, k] = locations @ np.array(slide.axis)
    return found
