"""Rotations of the source given to the target, joint by joint from the hips out.

A mapped joint turns in the world as its source does, from the reference poses on (`alignment`). What its
parent already does is taken off, so that it is relative to rest, and brought inside its limit; joints further
out make up for what a limit held back. Joints that follow nothing keep the reference pose.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...limits.batch import BatchLimits
from ...maths.batch import Array
from ..interpolation import same_side
from .figure_map import FigureMap
from .motions import SourceMotion, TargetFigure, inverse, product, turned


def carried_over(
    figure_map: FigureMap, target: TargetFigure, source: SourceMotion, corrections: Mapping[str, Array]
) -> Array:
    """(F, n, 4) rotations of the target relative to rest, inside the joints' limits.

    Args:
        figure_map: what follows what.
        target: whose rotations these are.
        source: whose motion it is.
        corrections: of `alignment.corrections`.
    """
    _, reference = target.reference
    count, rests = len(source.times), target.rests
    world = np.empty((count, len(target.skeleton), 4))
    found = np.empty_like(world)
    for i, joint in enumerate(target.skeleton.joints):
        base = target.turn if joint.parent < 0 or not joint.inherit_rotation else world[:, joint.parent]
        above = np.broadcast_to(product(base, rests[i]), (count, 4))
        found[:, i] = target.rotations[i]
        if joint.name in figure_map.sources and not joint.locked:
            k = source.index(figure_map.sources[joint.name])
            constant = product(
                product(inverse(source.reference_rotations[k]), corrections[joint.name]), reference[i]
            )
            world[:, i] = product(source.rotations[:, k], constant)
            local = product(inverse(above), world[:, i])
            if joint.limit is None:
                found[:, i] = local
                continue
            found[:, i] = BatchLimits([joint.limit]).project(local.T[:, None])[0][:, 0].T
        world[:, i] = product(above, found[:, i])
    return same_side(found)


def moved_root(
    figure_map: FigureMap, target: TargetFigure, rotations: Array, translations: Array, shift: Array
) -> Array:
    """The translations (F, n, 3) with the hips moved by (F, 3) metres of the world."""
    i = target.index(figure_map.hips)
    joint, found = target.skeleton.joints[i], translations.copy()
    local = target.vectors_to_model(shift)
    if joint.parent >= 0:
        _, world = target.world(rotations, translations)
        local = _into(target.rotations_to_model(world[:, joint.parent]), local)
    found[:, i] += _into(np.broadcast_to(target.rests[i], (len(local), 4)), local)
    return found


def _into(rotations: Array, vectors: Array) -> Array:
    return turned(inverse(rotations), vectors)
