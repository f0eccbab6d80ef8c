"""Targets at which goals are met as poses stand: what later goals must leave alone."""

from __future__ import annotations

import numpy as np

from ...maths.batch import Array
from .columns import Now
from .problem import Residual
from .residuals import Balance, Block, Direction, Orientation, Pole, Position
from .solve import Limits


def achieved(
    blocks: list[Block], targets: tuple[Array, ...], residual: Residual, limits: Limits
) -> list[Array]:
    """Per goal its target (..., B), in poses that miss it the one that they have achieved."""
    found = []
    missed = residual.missed(limits.position, limits.angle)
    for block, target, each in zip(blocks, targets, missed, strict=True):
        own = _own(block, residual.now, target)
        found.append(np.where(each, own, np.broadcast_to(target, own.shape)))
    return found


def _own(block: Block, now: Now, target: Array) -> Array:
    """The target that the present state meets."""
    if isinstance(block, Position):
        return block.point.value(now)
    if isinstance(block, Balance):
        return block.centre.value(now)
    if isinstance(block, Orientation):
        return block.turns.frame(now)
    if isinstance(block, Direction):
        return np.asarray(np.einsum("ijb,j->ib", block.turns.frame(now), block.axis))
    assert isinstance(block, Pole)
    return np.asarray(block.root.value(now) + block.bends(now, target).bend)
