# SPDX-License-Identifier: GPL-3.0-or-later
"""How constraints are drawn: the chain of the active one, lines to targets, and planted bones."""

from __future__ import annotations

from collections.abc import Callable, Container
from math import cos, pi, sin
from typing import Any

import bpy
from mathutils import Vector

from ..properties import constraint_list
from ..properties.constraint_values import Kind
from . import rows
from .sketch import Sketch

CHAIN, LINE, RING = 7.0, 2.0, 3.0  # [pixels]
RING_SIZE = 0.35  # radius of the mark of a planted bone, as a part of the bone's length
DASH = 0.08  # length of a dash, as a part of the tip's length
ACTIVE, PASSIVE = 1.0, 0.4  # alpha of what belongs to the active constraint, and to others


def sketch_rows(
    sketch: Sketch,
    armature_object: bpy.types.Object,
    shown: Container[str],
    in_words: Callable[[float], str],
    missed: Container[int] = (),
) -> None:
    """Draw the constraints of an armature that are on.

    Args:
        sketch: what is drawn on.
        armature_object: the armature.
        shown: names of the bones that the view shows.
        in_words: a length in metres, as the scene's units have it.
        missed: places of the constraints that are known to miss their goals in the pose that is shown.
    """
    active = constraint_list.active(armature_object)
    if active is not None:
        _sketch_chain(sketch, armature_object, active, shown)
    tolerance = armature_object.ccd_rig.solver.position_tolerance
    for place, row in enumerate(armature_object.ccd_rig.constraints):
        tip = armature_object.pose.bones.get(row.tip)
        if not row.enabled or tip is None or tip.name not in shown:
            continue
        alpha = ACTIVE if row == active else PASSIVE
        if row.kind == Kind.PLANT:
            _sketch_plant(sketch, tip, rows.is_planted(row), alpha)
        reach = rows.reach_of(armature_object, row)
        if reach is not None:
            words = _warning(reach, place in missed and reach.deviation > tolerance, in_words)
            _sketch_reach(sketch, reach, DASH * _length(tip), alpha, words)


def _sketch_chain(sketch: Sketch, armature_object: bpy.types.Object, row: Any, shown: Container[str]) -> None:
    world: Any = armature_object.matrix_world
    colour = (*sketch.palette.chain, 0.4 if row.enabled else 0.15)
    for bone in constraint_list.chain(armature_object, row.tip, row.chain_length):
        if bone.name in shown:
            sketch.path((world @ bone.head, world @ bone.tail), colour, CHAIN)


def _warning(reach: rows.Reach, is_missed: bool, in_words: Callable[[float], str]) -> str:
    """What is said of a target that is out of reach, or that limits and other constraints keep away."""
    if reach.gap > 0.0:
        return f"{in_words(reach.gap)} out of reach"
    return f"{in_words(reach.deviation)} off" if is_missed else ""


def _sketch_reach(sketch: Sketch, reach: rows.Reach, dash: float, alpha: float, words: str) -> None:
    warning = sketch.palette.warning
    sketch.dotted(
        (reach.end, reach.target), dash, (*(warning if words else sketch.palette.chain), alpha), LINE
    )
    if words:
        sketch.label(reach.target, reach.end, words, (*warning, 1.0))


def _sketch_plant(sketch: Sketch, tip: bpy.types.PoseBone, is_planted: bool, alpha: float) -> None:
    """A level ring round the head of a bone: with a cross while it is planted, thin while it is not."""
    head, planted = tip.id_data.matrix_world @ tip.head, sketch.palette.planted
    radius = RING_SIZE * _length(tip)
    ring = [
        head + Vector((cos(angle), sin(angle), 0.0)) * radius
        for angle in (2.0 * pi * i / 32 for i in range(33))
    ]
    if not is_planted:
        sketch.path(ring, (*planted, 0.5 * alpha), 1.0)
        return
    colour = (*planted, alpha)
    sketch.path(ring, colour, RING)
    sketch.path((ring[4], ring[20]), colour, RING)
    sketch.path((ring[12], ring[28]), colour, RING)
    sketch.fan(head, ring, (*planted, 0.25 * alpha))


def _length(bone: bpy.types.PoseBone) -> float:
    """Of a bone in the world, metres."""
    world: Any = bone.id_data.matrix_world
    return (world @ bone.tail - world @ bone.head).length
