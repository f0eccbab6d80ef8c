# SPDX-License-Identifier: GPL-3.0-or-later
"""Callbacks for armature objects that Blender has just evaluated.

Blender has no handler for data that is linked, appended or written by a script; the evaluation that follows
is the first sign. One handler therefore always runs. It collects the evaluated armatures once for all
callbacks. Where no armature of a scene concerns any of them it asks Blender three questions and ends: each
takes microseconds after an evaluation, since processors have forgotten the code by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import bpy
from bpy.types import Object  # a look-up in `bpy.types` takes longer than the rest of the handler

from .registration import Handlers

Callback = Callable[[Any, Any, Sequence[Any]], None]
"""Function of a scene, its depsgraph, and the original armature objects that were evaluated in it."""

Idle = Callable[[Any], bool]
"""Whether an armature object does not concern a callback, until its mode changes or `wake` is called."""

_callbacks: dict[Callback, Idle] = {}
_quiet: dict[int, tuple[tuple[Any, str], ...] | None] = {}
"""By hash of a depsgraph, that is of its pointer: the armature objects of its scene and their modes, if all
are idle for every callback; else None. Objects come and go with a rebuild of the depsgraph."""
_last_quiet: list[int] = []  # the depsgraph of `is_quiet`, if armatures were quiet at its last evaluation
MOST = 16
"""Most armatures of a scene that can be quiet: each costs a look at its mode."""


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


_HANDLERS = Handlers()


@_HANDLERS.on("depsgraph_update_post")
def notify(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Call the callbacks after an evaluation of armatures."""
    if not depsgraph.id_type_updated("ARMATURE"):
        return
    _last_quiet.clear()
    if _are_quiet(depsgraph):
        _last_quiet.append(hash(depsgraph))
        return
    if armatures := armatures_in(depsgraph):
        for callback in _callbacks:
            callback(scene, depsgraph, armatures)
        _note_quiet(depsgraph)


def is_quiet(depsgraph: bpy.types.Depsgraph) -> bool:
    """Whether no armature of the scene concerned a callback, or had constraints, when one was evaluated."""
    return hash(depsgraph) in _last_quiet


def _are_quiet(depsgraph: bpy.types.Depsgraph) -> bool:
    armatures = _quiet.get(hash(depsgraph))
    if armatures is None:
        return False
    if depsgraph.id_type_updated("SCENE"):  # it was rebuilt: objects may have come or gone
        return False
    try:
        return all(armature_object.mode == mode for armature_object, mode in armatures)
    except ReferenceError:  # a removed object
        wake()
        return False


def _note_quiet(depsgraph: bpy.types.Depsgraph) -> None:
    graph = hash(depsgraph)
    if depsgraph.id_type_updated("SCENE"):
        _quiet.pop(graph, None)
    elif graph not in _quiet or _quiet[graph] is not None:
        if len(_quiet) >= MOST:  # pointers of depsgraphs that are gone
            _quiet.clear()
        armatures = [each for each in depsgraph.scene.original.objects if each.type == "ARMATURE"]
        is_idle = len(armatures) <= MOST and all(
            idle(each) for idle in _callbacks.values() for each in armatures
        )
        _quiet[graph] = tuple((each, each.mode) for each in armatures) if is_idle else None


@_HANDLERS.on("undo_pre", "redo_pre", "load_pre")  # before Blender replaces objects
def wake(*_arguments: object) -> None:
    """Look at all armatures anew: what concerns a callback has changed, or objects are replaced."""
    _quiet.clear()
    _last_quiet.clear()


def add(callback: Callback, idle: Idle) -> None:
    """Add a callback; the first one installs the handlers."""
    if not _callbacks:
        _HANDLERS.register()
    _callbacks[callback] = idle


def remove(callback: Callback) -> None:
    """Remove a callback; the last one removes the handlers."""
    del _callbacks[callback]
    if not _callbacks:
        _HANDLERS.unregister()
        wake()
