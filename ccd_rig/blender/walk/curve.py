# SPDX-License-Identifier: GPL-3.0-or-later
"""Curve of a walk, as points in world space."""

from __future__ import annotations

from typing import Any

import bpy
import numpy as np

from ...errors import RigError
from ...maths.batch import Array
from ..bake.frame_selection import key_time
from ..keys.channels import fcurves_of
from ..scene.isolation import set_frame, shared_scene

DEFORMING = frozenset(
    {
        *("ARMATURE", "CAST", "CURVE", "HOOK", "LATTICE", "MESH_DEFORM", "SHRINKWRAP", "SIMPLE_DEFORM"),
        *("SMOOTH", "WARP", "WAVE"),
    }
)
"""Modifiers of curves that move their points, and make none."""


def curve_points(scene: bpy.types.Scene, thing: bpy.types.Object, frame: float) -> tuple[Array, bool]:
    """Return (P, 3) world points of a curve object at a frame, and whether it is cyclic.

    Its bevel is left out, and so are modifiers that make other points, such as arrays.

    Raises:
        RigError: the object is no curve, or has no spline or several.
    """
    if thing.type != "CURVE":
        raise RigError(f"'{thing.name}' is no curve: choose a curve to walk along")
    splines = thing.data.splines
    if not len(splines):
        raise RigError(f"curve '{thing.name}' has no spline: draw one, or choose another curve")
    if len(splines) > 1:
        raise RigError(f"curve '{thing.name}' has {len(splines)} splines: leave it one")
    closed = bool(splines[0].use_cyclic_u)
    data = thing.data.copy()
    bare: Any = thing.copy()
    try:
        bare.data = data
        for modifier in [each for each in bare.modifiers if each.type not in DEFORMING]:
            bare.modifiers.remove(modifier)
        data.bevel_depth = data.extrude = data.offset = 0.0
        data.bevel_object = data.taper_object = None
        data.use_path = data.use_fill_caps = False
        if data.dimensions == "2D":
            data.fill_mode = "NONE"
        with shared_scene(scene) as shared:
            shared.isolated.collection.objects.link(bare)
            evaluated = bare.evaluated_get(set_frame(shared.isolated, frame))
            world = np.array([row[:] for row in evaluated.matrix_world])
            mesh = evaluated.to_mesh()
            points = np.empty(3 * len(mesh.vertices), np.float32)
            mesh.vertices.foreach_get("co", points)
            evaluated.to_mesh_clear()
    finally:
        bpy.data.objects.remove(bare)
        bpy.data.curves.remove(data)
    if len(points) < 6:
        raise RigError(f"curve '{thing.name}' has no length: give it two points or more")
    return points.reshape(-1, 3).astype(np.float64) @ world[:3, :3].T + world[:3, 3], closed


def keyed_places(scene: bpy.types.Scene, thing: bpy.types.Object) -> tuple[int, Array]:
    """Return the first keyed frame of a curve's Evaluation Time, and (F,) parts of the curve up to the last.

    Raises:
        RigError: it has fewer than two keys.
    """
    keyed = next((each for each in fcurves_of(thing.data) if each.data_path == "eval_time"), None)
    if keyed is None or len(keyed.keyframe_points) < 2:
        raise RigError(
            f"curve '{thing.name}' has no keys of its Evaluation Time: key it, or take the cycle's speed"
        )
    time = key_time(scene)
    first, last = (round(each / time) for each in keyed.range())
    whole = max(float(thing.data.path_duration), 1.0)
    return first, np.array([keyed.evaluate(frame * time) for frame in range(first, last + 1)]) / whole
