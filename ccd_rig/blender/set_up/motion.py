# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets that follow the motion which a figure has already."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import bpy

from ...errors import CCDRigError
from ...solvers.stepping import result_of
from ..bake import target_motion
from ..checks import setup
from ..keys import channels
from ..properties import constraint_list
from ..properties.solver_settings import solver_settings
from .made import Made


def follow(context: bpy.types.Context, armature_object: bpy.types.Object, made: Made) -> None:
    """Key the targets of what was made along the motion that the figure has, if it has one.

    What came of it stands among the notes then. Planted rows have no targets, and stay as they are.
    """
    rows = armature_object.ccd_rig.constraints
    names = [name for group in made.rows.values() for name in group if rows[name].target is not None]
    if not names or not is_animated(armature_object, names):
        return
    context.view_layer.update()
    try:
        count = key_targets(context.scene, armature_object, names)
    except CCDRigError as error:
        made.notes.append(f"Targets stand still: {error}")
        return
    made.notes.append(f"Targets follow the motion at {count} frames")


def is_animated(armature_object: bpy.types.Object, names: Sequence[str]) -> bool:
    """Whether the chains of constraints have keys in what plays."""
    rows = armature_object.ccd_rig.constraints
    chains = (constraint_list.chain(armature_object, rows[n].tip, rows[n].chain_length) for n in names)
    starts = tuple({bone.path_from_id() + "." for chain in chains for bone in chain})
    paths = (curve.data_path for _, curves in channels.played(armature_object) for curve in curves)
    return any(path.startswith(starts) for path in paths)


def key_targets(scene: bpy.types.Scene, armature_object: bpy.types.Object, names: Sequence[str]) -> int:
    """Key the targets and poles of constraints where the motion has them, over the scene's range.

    Args:
        scene: where the figure plays.
        armature_object: the figure.
        names: of constraints with targets.

    Returns:
        At how many frames.

    Raises:
        RigError: they cannot be keyed there. No key was set then.
    """
    preview = scene.use_preview_range
    first = scene.frame_preview_start if preview else scene.frame_start
    last = scene.frame_preview_end if preview else scene.frame_end
    frames = [float(frame) for frame in range(first, last + 1)]
    with ExitStack() as undo:
        ready = result_of(setup.require(armature_object, scene, names))
        solver = solver_settings(armature_object)
        target_motion.key_targets(scene, armature_object, ready.constraints, frames, solver, undo)
        undo.pop_all()
    return len(frames)
