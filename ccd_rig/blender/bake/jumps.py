# SPDX-License-Identifier: GPL-3.0-or-later
"""Sudden turns of bones from one frame to the next, held against the motion's own speed around them.

See `bake_frames` for the letters in the shapes; N = F - 1 counts the steps from frame to frame.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from ...settings import Solver
from ..properties.constraint_values import Kind
from .baked import Baked, Mask, runs, span
from .finding import Finding, Fix, Trouble
from .keyed_motion import rotated_joints

AROUND = 8
"""Steps on either side whose usual speed counts."""
TIMES = 4.0
"""A jump is so many times as fast as is usual before it and after it."""
LEAST = np.radians(5.0)
"""Radians per frame by which it is faster at least."""
STRAIGHT = 0.985
"""Part of its length from which a chain is nearly straight: there it bends fastest."""
LIMB = 4
"""Most joints of a limb."""
REACH = 0.98
"""The Max Extension that keeps a limb from that. Longer chains get no smoother by it: they wind instead."""


def jumps(baked: Baked) -> Iterator[Finding]:
    """Runs of frames at which bones of a constraint jump, and their base poses do not."""
    bake_frames = baked.bake_frames
    joints = rotated_joints(bake_frames)
    if len(bake_frames.frames) < 3 or not joints:
        return
    speeds, base = (
        _speeds(each[:, joints], bake_frames.frames) for each in (baked.motion.rotations, bake_frames.base)
    )
    sudden = is_sudden(speeds, LEAST) & (base < 0.5 * speeds)
    left, places = set(joints), {j: k for k, j in enumerate(joints)}
    for c, constraint in enumerate(bake_frames.constraints):
        columns = sorted(places[j] for j in left.intersection(baked.chains[c]))
        left.difference_update(joints[k] for k in columns)
        if not columns:
            continue
        jumping = sudden[:, columns].any(axis=1) & (bake_frames.influences[1:, c] > 0.0)
        if not jumping.any():
            continue
        fastest = np.where(sudden[:, columns], speeds[:, columns], 0.0)
        leaps, shapes = _target_jumps(baked, c), (_extension(baked, c), _bends(baked, c))
        for run in runs(jumping):
            first, last, frame, step = span(bake_frames.frames[1:], run, fastest.max(axis=1))
            k = int(np.argmax(fastest[step]))
            follows, angle = bool(leaps[run].any()), float(fastest[step, k])
            shape = (shapes[0][step : step + 2], shapes[1][step : step + 2])
            yield Finding(
                Trouble.JUMP,
                constraint.name,
                baked.bone(joints[columns[k]]),
                first,
                last,
                frame,
                angle=angle,
                more=int(sudden[run][:, columns].any(axis=0).sum()) - 1,
                follows=follows,
                fix=Fix.NONE if follows else _fix(baked, c, angle, shape),
            )


def is_sudden(speeds: Array, least: float) -> Mask:
    """Which of speeds (N, K) are far above what is usual both before and after; by `least` at least.

    What is usual is a median. The steps next to one do not count: a jump may take three.
    """
    skipped = 2
    padded = np.pad(speeds, ((AROUND + skipped - 1, AROUND + skipped - 1), (0, 0)), mode="symmetric")
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, AROUND, axis=0), axis=-1)
    before, after = medians[: len(speeds)], medians[AROUND + 2 * skipped - 1 :][: len(speeds)]
    return np.asarray(speeds > TIMES * np.maximum(before, after) + least)


def _speeds(rotations: Array, frames: Array) -> Array:
    """(N, K) radians per frame of rotations (F, K, 4)."""
    rotations = batch.unit(rotations, axis=-1)
    angles: Array = batch.angles_between(rotations[:-1], rotations[1:], axis=-1)
    return angles / np.diff(frames)[:, None]


def _target_jumps(baked: Baked, c: int) -> Mask:
    """(N,) at which steps the target of a constraint jumps as well."""
    bake_frames, frames = baked.bake_frames, baked.bake_frames.frames
    steps = np.linalg.norm(np.diff(baked.targets(c), axis=0), axis=-1)[:, None] / np.diff(frames)[:, None]
    length = float(bake_frames.lengths[0, list(baked.chains[c])].sum())
    jumping = is_sudden(steps, float(LEAST) * length)[:, 0]
    turns = bake_frames.targets.rotations[:, c]
    if not np.isnan(turns).any():
        speeds = _speeds(turns[:, None], frames)
        jumping |= is_sudden(speeds, LEAST)[:, 0]
    return jumping


def _fix(baked: Baked, c: int, angle: float, shape: tuple[Array, Array]) -> Fix:
    """The setting that helps against a jump.

    Args:
        baked: the motion.
        c: place of the constraint.
        angle: of the jump.
        shape: `_extension` and `_bends` before it and after it.
    """
    constraint = baked.bake_frames.constraints[c]
    if constraint.kind is not Kind.REACH or not constraint.use_position:
        return Fix.NONE
    extension, sides = shape
    straight = extension.max() >= STRAIGHT
    if straight and constraint.method == "TWO_BONE" and constraint.soft == 0.0:
        return Fix.SOFT
    is_limb = len(baked.chains[c]) <= LIMB and constraint.method in ("CCD", "TWO_BONE_TIP")
    if straight and is_limb and constraint.max_extension > REACH:
        return Fix.EXTENSION
    swings = sides.any(axis=1).all() and float(batch.dot(*sides)) < np.cos(0.5 * min(angle, np.pi))
    if swings and not constraint.pole_target and constraint.method != "TRIANGLE":
        return Fix.POLE
    if constraint.method == "CCD" and baked.solver.solver is Solver.CCD:
        return Fix.LEAST_SQUARES
    return Fix.NONE


def _extension(baked: Baked, c: int) -> Array:
    """(F,) how far the end of a chain is from its root, as a part of its length."""
    bake_frames = baked.bake_frames
    chain = bake_frames.skeleton.chain(
        bake_frames.constraints[c].tip, bake_frames.constraints[c].chain_length
    )
    lengths = bake_frames.lengths[:, list(chain)].sum(axis=1)
    ways = np.linalg.norm(baked.reached(c) - baked.heads[:, chain[0]], axis=-1)
    return np.asarray(ways / np.maximum(lengths, 1e-30))


def _bends(baked: Baked, c: int) -> Array:
    """(F, 3) unit: to which side of its line from root to end a chain is bent; 0 where it is straight."""
    chain = list(baked.chains[c])
    root = baked.heads[:, chain[0]]
    line = baked.reached(c) - root
    line = line / np.maximum(np.linalg.norm(line, axis=-1), 1e-30)[:, None]
    if len(chain) == 1:
        return np.zeros_like(root)
    inner = baked.heads[:, chain[1:]] - root[:, None]
    aside = inner - np.einsum("fji,fi->fj", inner, line)[..., None] * line[:, None]
    mean = aside.mean(axis=1)
    size = np.linalg.norm(mean, axis=-1)
    bent = size > 1e-3 * float(baked.bake_frames.lengths[0, chain].sum())
    return np.asarray(np.where(bent[:, None], mean / np.maximum(size, 1e-30)[:, None], 0.0))
