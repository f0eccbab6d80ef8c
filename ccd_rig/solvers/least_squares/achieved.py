"""Targets at which goals are met as poses stand: what later goals must leave alone."""

from __future__ import annotations

import numpy as np

from ...maths.batch import Array
from .problem import Residual
from .residuals import Block
from .solve import Limits


def achieved(
    blocks: list[Block], targets: tuple[Array, ...], residual: Residual, limits: Limits
) -> list[Array]:
    """Per goal its target (..., B), in poses that miss it the one that they have achieved."""
    found = []
    missed = residual.missed(limits.position, limits.angle)
    for block, target, each in zip(blocks, targets, missed, strict=True):
        own = block.achieved(residual.now, target)
        found.append(np.where(each, own, np.broadcast_to(target, own.shape)))
    return found
