"""Carry rotations of the source over to the target, joint by joint from the hips out.

A mapped joint turns in the world as its source does, relative to the reference poses (`alignment`). Its
rotation relative to rest is clamped to its limit; joints further out compensate for clamped ones. Unmapped
joints keep the reference pose.
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
        figure_map: pairs of joints.
        target: figure of the result.
        source: figure of the motion.
        corrections: of `alignment.corrections`.
    """
    _, reference = target.reference
    count, rests = len(source.times), target.rests
    world = np.empty((count, len(target.skeleton), 4))
    local_rotations = np.empty_like(world)
    for i, joint in enumerate(target.skeleton.joints):
        base = target.turn if joint.parent < 0 or not joint.inherit_rotation else world[:, joint.parent]
        above = np.broadcast_to(product(base, rests[i]), (count, 4))
        local_rotations[:, i] = target.rotations[i]
        if joint.name in figure_map.sources and not joint.locked:
            k = source.index(figure_map.sources[joint.name])
            constant = product(
                product(inverse(source.reference_rotations[k]), corrections[joint.name]), reference[i]
            )
            world[:, i] = product(source.rotations[:, k], constant)
            local = product(inverse(above), world[:, i])
            if joint.limit is None:
                local_rotations[:, i] = local
                continue
            local_rotations[:, i] = BatchLimits([joint.limit]).project(local.T[:, None])[0][:, 0].T
        world[:, i] = product(above, local_rotations[:, i])
    return same_side(local_rotations)


def moved_root(
    figure_map: FigureMap, target: TargetFigure, rotations: Array, translations: Array, shift: Array
) -> Array:
    """Translations (F, n, 3) with the hips shifted by (F, 3) world metres."""
    i = target.index(figure_map.hips)
    joint, moved = target.skeleton.joints[i], translations.copy()
    local = target.vectors_to_model(shift)
    if joint.parent >= 0:
        _, world = target.world(rotations, translations)
        local = _into(target.rotations_to_model(world[:, joint.parent]), local)
    moved[:, i] += _into(np.broadcast_to(target.rests[i], (len(local), 4)), local)
    return moved


def _into(rotations: Array, vectors: Array) -> Array:
    return turned(inverse(rotations), vectors)
