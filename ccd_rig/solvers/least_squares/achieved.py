"""Targets at which goals are met as poses stand: what later goals must leave alone."""

from __future__ import annotations

import numpy as np

from ...maths.batch import Array
from .bending import Now
from .problem import Residual
from .residuals import Balance, Block, Direction, Misses, Orientation, Pole, Position
from .solve import Limits


def achieved(
    blocks: list[Block], targets: tuple[Array, ...], residual: Residual, limits: Limits
) -> list[Array]:
    """Per goal its target (..., B), in poses that miss it the one that they have achieved."""
    found = []
    for block, target, miss in zip(blocks, targets, residual.misses, strict=True):
        own = _own(block, residual.now, target)
        found.append(np.where(_missed(miss, limits), own, np.broadcast_to(target, own.shape)))
    return found


def _missed(miss: Misses, limits: Limits) -> Array:
    return np.asarray((miss.distance > limits.position) | (miss.angle > limits.angle))


def _own(block: Block, now: Now, target: Array) -> Array:
    """The target that the present state meets."""
    if isinstance(block, Position):
        return block.point.value(now)
    if isinstance(block, Balance):
        centre = block.centre.value(now)
        if target.ndim == 2:
            return centre
        axes = np.broadcast_to(target[:, 1:], (3, target.shape[1] - 1, centre.shape[-1]))
        return np.concatenate((centre[:, None], axes), axis=1)
    if isinstance(block, Orientation):
        return block.turns.frame(now)
    if isinstance(block, Direction):
        return np.asarray(np.einsum("ijb,j->ib", block.turns.frame(now), block.axis))
    assert isinstance(block, Pole)
    return np.asarray(block.root.value(now) + block.bends(now, target).bend)
