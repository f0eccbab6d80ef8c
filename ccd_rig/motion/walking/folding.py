"""Legs that fold and stretch as in their cycle.

Where a leg must be shorter than in the cycle, all its joints bend further, each as much as it is bent on
average. Where it must be longer, all bends are multiplied by the same factor, down to straight. So it folds
and stretches smoothly, and no joint turns over. A factor alone leaves open, where the cycle stretches the leg
out, which of its joints bends, and they would jump there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ...maths import batch
from ...maths.batch import Array
from ..retargeting.alignment import NO_TURN, shortest
from ..retargeting.figures import STEADY, STRAIGHT, Limb, TargetFigure, inverse, product, turned

CUTS = 8
"""Steps of the search for how far a leg is folded."""


def folded_leg(target: TargetFigure, limb: Limb, heads: Array, world: Array, line: Array) -> dict[str, Array]:
    """By joint from the hip on, (..., F, 4) world rotations by which a leg leads along a line.

    Args:
        target: the figure.
        limb: the leg.
        heads: (F, n, 3) joints in the world, as in the cycle.
        world: (F, n, 4) their rotations.
        line: (..., F, 3) from the hip to the ankle.
    """
    names = [target.skeleton.joints[i].name for i in target.skeleton.chain(limb.end)]
    bends = [name for name in names if name == limb.middle or name in limb.bends]
    joints = [target.index(name) for name in (limb.upper, *bends)]
    points = [heads[:, i] for i in (*joints, target.index(limb.end))]
    turns = fold([b - a for a, b in pairwise(points)], [world[:, i] for i in joints], line)
    return {
        target.skeleton.joints[i].name: product(turn, world[:, i])
        for i, turn in zip(joints, turns, strict=True)
    }


def fold(links: Sequence[Array], turns: Sequence[Array], line: Array) -> list[Array]:
    """(..., F, 4) world rotations by which links (F, 3) of a leg lead along a line (..., F, 3).

    How far it is folded is bracketed and then cut down by regula falsi (Dowell and Jarratt 1971).

    Args:
        links: from the hip on.
        turns: (F, 4) world rotations of their joints.
        line: from the hip to the leg's end.
    """
    axes, angles, straight = [], [], []
    for i in range(1, len(links)):
        before, after = batch.directions(links[i - 1]), batch.directions(links[i])
        across, cosine = batch.cross(before, after, -1), batch.dot(before, after, -1)
        sides = turned(inverse(turns[i - 1]), across)
        usual = sides.sum(axis=0)
        size, sine = float(np.linalg.norm(usual)), batch.length(across, -1)
        sign: Array = np.ones(len(across))
        if size > STEADY * batch.length(sides, -1).sum() and size > 1e-9:
            axis = turned(turns[i - 1], usual / size)
            side = batch.dot(across, axis, -1)
            is_both = bool(side.min() < -STRAIGHT)  # it bends to both sides: its angle goes through 0
            sign = np.where(is_both & (side < 0.0), -1.0, 1.0)
            near = (np.abs(side) < STRAIGHT) & (cosine > 0.0)  # about straight: it bends to its usual side
            raised = np.where(near, STRAIGHT - sign * side, 0.0)
            across = sign[:, None] * across + raised[:, None] * axis
            sine = sine if is_both else batch.length(across, -1)
        axes.append(batch.directions(across))
        angles.append(np.asarray(batch.arctan2(sign * sine, cosine)))
        straight.append(shortest(links[i], links[i - 1]))
    if not axes:
        return [shortest(links[0], line)]

    means = [float(angle.mean()) for angle in angles]

    def folded(part: Array) -> list[Array]:
        """Links bent further by a part of their means; those of a negative part less, at -1 straight."""
        bent, factor, further = [NO_TURN], 1.0 + np.minimum(part, 0.0), np.maximum(part, 0.0)
        for axis, angle, mean, back in zip(axes, angles, means, straight, strict=True):
            whole = np.minimum(factor * angle + further * mean, np.pi)
            bent.append(product(bent[-1], product(batch.axis_rotation(axis, whole), back)))
        return bent

    def reached(bent: Sequence[Array]) -> Array:
        return np.asarray(sum(turned(turn, link) for turn, link in zip(bent, links, strict=True)))

    far = batch.length(line, -1)
    is_longer = batch.length(np.asarray(sum(links)), -1) < far
    low = np.where(is_longer, -1.0, 0.0)
    high = np.where(is_longer, 0.0, (np.pi - np.max(angles, axis=0)) / max(*means, 1e-6))
    over_low, over_high = (batch.length(reached(folded(each)), -1) - far for each in (low, high))
    for _ in range(CUTS):
        part = low + np.clip(over_low / np.maximum(over_low - over_high, 1e-12), 0.0, 1.0) * (high - low)
        over = batch.length(reached(folded(part)), -1) - far
        is_low = over > 0.0
        low, high = np.where(is_low, part, low), np.where(is_low, high, part)
        over_low, over_high = np.where(is_low, over, 0.5 * over_low), np.where(is_low, 0.5 * over_high, over)
    bent = folded(part)
    whole = shortest(reached(bent), line)
    return [product(whole, turn) for turn in bent]
