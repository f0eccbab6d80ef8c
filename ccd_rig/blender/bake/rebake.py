# SPDX-License-Identifier: GPL-3.0-or-later
"""A bake made twice: a motion that was baked in just this way, and is still as near to its targets, stays."""

from __future__ import annotations

import numpy as np
from mathutils import Quaternion

from ...limits.shapes import contains
from ...maths import batch
from ...maths.batch import Array
from ...settings import SolverSettings, SolveStatus
from ...solvers.stepping import result_of
from . import measuring
from .bake_frames import BakeFrames, Motion, Solutions
from .keyed_motion import base_motion, keyed_motion, rotated_joints

NEAR = 0.1
"""Part of the tolerances by which a motion that stays may be farther off: keys are rounded."""
FAR = 0.05
"""Part of its distance by which one that misses its target may be farther off, and a tolerance more."""
INSIDE = 1e-5
"""Radians outside a limit that are rounding of keys."""


def keep_baked(bake_frames: BakeFrames, solver: SolverSettings) -> None:
    """Put the base poses in place of what was solved, if they are as near everywhere.

    From a baked motion a solve starts elsewhere than from the one before it, so it would lead to another
    motion that is no better.

    Args:
        bake_frames: all of it is solved; nothing is planted.
        solver: position tolerance in world metres.
    """
    if _leaves_limits(bake_frames):
        return
    rows = np.searchsorted(bake_frames.frames, bake_frames.solved_frames)
    tolerances = (solver.position_tolerance, solver.angle_tolerance)
    old, new = (
        _misses(bake_frames, motion, tolerances)[rows]
        for motion in (base_motion(bake_frames), keyed_motion(bake_frames).full)
    )
    good = old <= 1.0 + NEAR
    # Where nothing is reached, what counts is the farthest: constraints that pull against each other trade.
    if np.any(~good & (new <= 1.0)) or np.any(old.max(axis=1) > (1.0 + FAR) * new.max(axis=1) + 1.0):
        return
    reached = SolveStatus.CONVERGED.name
    states = {
        row: {c: reached if old[k, c] <= 1.0 else state for c, state in bake_frames.states[row].items()}
        for k, row in enumerate(rows.tolist())
    }
    slides = bake_frames.slid(rows, bake_frames.translations[rows])
    bake_frames.restore(
        Solutions(batch.unit(bake_frames.base[rows], axis=-1), slides, states, bake_frames.smoothed)
    )


def _misses(bake_frames: BakeFrames, motion: Motion, tolerances: tuple[float, float]) -> Array:
    """(F, C) how far off constraints are, in tolerances; 0 where they are not in force."""
    distances, angles = result_of(measuring.residuals(bake_frames, motion))
    misses = np.maximum(distances / tolerances[0], angles / tolerances[1])
    return np.asarray(np.where(bake_frames.influences > 0.0, misses, 0.0))


def _leaves_limits(bake_frames: BakeFrames) -> bool:
    """Whether a base pose of the joints that are keyed breaks a limit."""
    keyed, rows = rotated_joints(bake_frames), np.arange(len(bake_frames.frames))
    slid = bake_frames.slid(rows, bake_frames.translations)
    return any(
        limits[j] is not None and not contains(limits[j], Quaternion(rotations[j]), INSIDE)
        for limits, rotations in zip(bake_frames.limits, bake_frames.base, strict=True)
        for j in keyed
    ) or any(
        np.any((along < slide.lower - INSIDE) | (along > slide.upper + INSIDE))
        for slide, along in zip(bake_frames.slides, slid.T, strict=True)
    )
