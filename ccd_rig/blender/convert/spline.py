# SPDX-License-Identifier: GPL-3.0-or-later
"""Spline IK as rows: targets along the curve, one per so many bones, that go with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import bpy
import numpy as np
from mathutils import Vector
from numpy.typing import NDArray

from ..properties import constraint_list
from ..properties.new_targets import new_target
from ..scene import isolation
from .conversion import Conversion, NewRow, NotConverted

SAMPLES = 256
"""Places on the curve at which it is looked at."""
MOVED = 1e-3
"""Part of a bone's length by which its head is moved at least, to be said."""


def conversion(
    context: bpy.types.Context, bone: bpy.types.PoseBone, constraint: Any, every: int
) -> Conversion:
    """What becomes of a Spline IK constraint: a row for its bone and for every n-th one above.

    Args:
        context: says the scene and the frame.
        bone: that has the constraint.
        constraint: Spline IK.
        every: how many bones a target serves.

    Raises:
        NotConverted: there is no counterpart; says why.
    """
    curve, armature_object = constraint.target, bone.id_data
    if curve is None or curve.type != "CURVE":
        raise NotConverted("it has no curve as its target")
    chain = constraint_list.chain(armature_object, bone.name, constraint.chain_count)
    tips = chain[:: max(every, 1)]
    tails = [armature_object.matrix_world @ tip.tail for tip in tips]
    parts = _parts_of_path(context.scene, armature_object, curve, tails)
    rows = [
        NewRow(
            tip.name,
            len(chain) - k * max(every, 1),
            {},
            partial(_target_on_curve, armature_object, curve, tip.name, part),
        )
        for k, (tip, part) in enumerate(zip(tips, parts, strict=True))
    ]
    return Conversion(tuple(rows), tuple(_notes(constraint, chain[-1])))


def _notes(constraint: Any, root: bpy.types.PoseBone) -> Iterator[str]:
    if constraint.y_scale_mode == "FIT_CURVE" or constraint.xz_scale_mode != "NONE":
        yield "bones keep their size here, they are not scaled to the curve"
    head = Vector(root.bone.head_local)
    if root.parent is not None:
        place: Any = root.parent.matrix @ root.parent.bone.matrix_local.inverted() @ head
        head = place
    if (root.head - head).length > MOVED * root.bone.length:
        yield f"bone '{root.name}' starts where its parent has it, not where the curve does"


def _parts_of_path(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    curve: bpy.types.Object,
    points: Sequence[Any],
) -> list[float]:
    """For points of the world how far along the curve, 0 to 1, the places nearest to them are."""
    with isolation.isolated_scene(scene, armature_object, [(curve, "")], []) as isolated:
        probes = [bpy.data.objects.new("", None) for _ in range(SAMPLES)]
        try:
            for probe, part in zip(probes, np.linspace(0.0, 1.0, SAMPLES), strict=True):
                _follow(probe, curve, float(part))
                isolated.collection.objects.link(probe)
            graph = isolation.set_frame(isolated, scene.frame_current_final)
            places = np.array([probe.evaluated_get(graph).matrix_world.translation for probe in probes])
        finally:
            bpy.data.batch_remove(probes)
    return [_nearest(places, np.array(point[:])) for point in points]


def _nearest(places: NDArray[np.float64], point: NDArray[np.float64]) -> float:
    """Where a line through evenly spaced parameters, 0 to 1, is nearest to a point."""
    steps = places[1:] - places[:-1]
    squares = np.maximum((steps * steps).sum(1), 1e-30)
    along = np.clip(((point - places[:-1]) * steps).sum(1) / squares, 0.0, 1.0)
    gaps = np.linalg.norm(places[:-1] + along[:, None] * steps - point, axis=1)
    k = int(np.argmin(gaps))
    return float((k + along[k]) / len(steps))


def _follow(empty: bpy.types.Object, curve: bpy.types.Object, part: float) -> None:
    """Let an empty stay at a part of a curve's length, wherever the curve goes."""
    follows: Any = empty.constraints.new("FOLLOW_PATH")
    follows.target, follows.use_fixed_location, follows.offset_factor = curve, True, part


def _target_on_curve(
    armature_object: bpy.types.Object,
    curve: bpy.types.Object,
    tip: str,
    part: float,
    context: bpy.types.Context,
) -> bpy.types.Object:
    empty = new_target(context, armature_object, f"Target {tip}", tip)
    _follow(empty, curve, part)
    return empty
