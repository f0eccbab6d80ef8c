# SPDX-License-Identifier: GPL-3.0-or-later
"""Callbacks for armature objects that Blender has just evaluated.

Blender has no handler for data that is linked, appended or written by a script; the evaluation that follows
is the first sign. One handler therefore always runs. It collects the evaluated armatures once for all
callbacks, and takes a few microseconds if there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import bpy
from bpy.types import Object  # a look-up in `bpy.types` takes longer than the rest of the handler

Callback = Callable[[Any, Any, Sequence[Any]], None]
"""Function of a scene, its depsgraph, and the original armature objects that were evaluated in it."""

_callbacks: list[Callback] = []


def armatures_in(depsgraph: bpy.types.Depsgraph) -> list[bpy.types.Object]:
    """Return the original armature objects that were evaluated; none if neither bones nor objects were."""
    if not depsgraph.id_type_updated("ARMATURE"):
        return []
    armatures: list[Any] = []
    for update in depsgraph.updates:
        datablock = update.id
        if type(datablock) is Object and datablock.type == "ARMATURE":  # Object has no subclasses
            armatures.append(datablock.original)
    return armatures


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def notify(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Call the callbacks after an evaluation of armatures."""
    if armatures := armatures_in(depsgraph):
        for callback in _callbacks:
            callback(scene, depsgraph, armatures)


def add(callback: Callback) -> None:
    """Add a callback; the first one installs the handler."""
    if not _callbacks:
        bpy.app.handlers.depsgraph_update_post.append(notify)
    _callbacks.append(callback)


def remove(callback: Callback) -> None:
    """Remove a callback; the last one removes the handler."""
    _callbacks.remove(callback)
    if not _callbacks:
        bpy.app.handlers.depsgraph_update_post.remove(notify)
