# SPDX-License-Identifier: GPL-3.0-or-later
"""When live armatures are brought up to date, and when nothing of them may be there.

Blender evaluates what a handler has changed in a second pass without handlers, so an update calls no other.
References to objects do not outlive an undo: previews are kept by `session_uid`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import bpy

from ..properties import live_switch
from ..rig import clamps
from ..scene.isolation import is_isolated
from .preview import Preview, update

REST = 0.15
"""Seconds without a change after which things rest."""

_previews: dict[int, Preview] = {}  # by session_uid
_restless: dict[int, tuple[str, str]] = {}  # those to solve patiently: names of scene and view layer
_changed_at = 0.0  # when one of them changed last, by time.monotonic
_switched_off_by_save: list[int] = []


def preview_of(armature_object: bpy.types.Object) -> Preview | None:
    """What is known of an armature; None if it is not live."""
    return _previews.get(armature_object.session_uid) if live_switch.is_live(armature_object) else None


def switch(armature_object: bpy.types.Object, on: bool) -> None:
    """Switch the preview of an armature on or off."""
    if on:
        armature_object.ccd_rig.live = True
    else:
        _end(armature_object)


# --- updates ------------------------------------------------------------------------------------------------


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def follow(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Something was evaluated, or the frame has changed: show what follows from it."""
    if is_isolated(scene) or clamps.is_suspended() or depsgraph.mode == "RENDER":
        return
    _end_copies(depsgraph)
    if not live_switch.switched_on:
        return
    for armature_object in _armatures(scene.objects):
        uid = armature_object.session_uid
        if uid not in live_switch.switched_on:
            continue
        if not armature_object.ccd_rig.live:
            if uid in _previews:
                _end(armature_object)
        elif _may_show(armature_object, depsgraph):
            _follow_one(armature_object, depsgraph)


def _follow_one(armature_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> None:
    global _changed_at
    preview = _previews.setdefault(armature_object.session_uid, Preview())
    # Bones may have come or gone. Blender reports the same when clamps change.
    if _is_updated(armature_object.data, depsgraph) and not preview.has_echo:
        preview.forget()
    changed = update(armature_object, depsgraph, preview, patient=False)
    if preview.is_settled:  # nothing moves; but the object may have other settings now
        changed = not preview.has_echo and _is_updated(armature_object, depsgraph)
        preview.has_echo = False
    if changed:
        _changed_at = time.monotonic()
    if changed or not preview.is_settled:
        _restless[armature_object.session_uid] = depsgraph.scene.name, depsgraph.view_layer.name
        if not bpy.app.timers.is_registered(settle):
            bpy.app.timers.register(settle, first_interval=REST)


def _is_updated(thing: bpy.types.ID, depsgraph: bpy.types.Depsgraph) -> bool:
    return any(each.id.original == thing for each in depsgraph.updates)


def settle() -> float | None:
    """A timer: solve patiently what has come to rest; the seconds until it is called once more."""
    waited = time.monotonic() - _changed_at
    if waited < REST or clamps.is_suspended():
        return max(REST - waited, REST / 10.0)
    restless = dict(_restless)
    _restless.clear()
    for uid, (scene_name, layer_name) in restless.items():
        scene = bpy.data.scenes.get(scene_name)
        layer = scene.view_layers.get(layer_name) if scene is not None else None
        for armature_object in _armatures(scene.objects if scene is not None else ()):
            preview = _previews.get(uid)
            if armature_object.session_uid != uid or layer is None or preview is None:
                continue
            if live_switch.is_live(armature_object) and _may_show(armature_object, layer.depsgraph):
                update(armature_object, layer.depsgraph, preview, patient=True)
                _redraw()
    return None


def _may_show(armature_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph | None) -> bool:
    """Whether an armature can show a pose now, and no render is under way that shows its keys."""
    if depsgraph is None or armature_object.mode == "EDIT" or armature_object.data.pose_position == "REST":
        return False
    first = next(clamps.clamps_of(armature_object), None)
    if first is None:  # new ones would get into the frames of a render
        if bpy.app.is_job_running("RENDER"):
            return False
    elif first[1].mute:
        return False
    evaluated = armature_object.evaluated_get(depsgraph)
    return evaluated.is_evaluated and armature_object.visible_get(view_layer=depsgraph.view_layer)


def _redraw() -> None:
    """The panel says why nothing is shown."""
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            if area.type == "VIEW_3D":
                area.tag_redraw()


# --- ends ---------------------------------------------------------------------------------------------------


def _end(armature_object: bpy.types.Object) -> None:
    """Take the preview off an armature, and switch it off."""
    uid = armature_object.session_uid
    _previews.pop(uid, None)
    _restless.pop(uid, None)
    clamps.remove(armature_object)
    if armature_object.ccd_rig.is_property_set("live"):
        armature_object.ccd_rig.property_unset("live")


def _end_copies(depsgraph: bpy.types.Depsgraph) -> None:
    """Copies of live armatures, and those that come from other files, are not live."""
    if not depsgraph.id_type_updated("ARMATURE"):  # as it is where there is a new object
        return
    for thing in _armatures([each.id.original for each in depsgraph.updates if _is_object(each.id)]):
        is_other = thing.session_uid not in live_switch.switched_on and thing.is_editable
        if is_other and (thing.ccd_rig.live or any(clamps.clamps_of(thing))):
            _end(thing)


def _is_object(thing: bpy.types.ID) -> bool:
    return isinstance(thing, bpy.types.Object)


def _armatures(objects: Any) -> Iterator[bpy.types.Object]:
    return (thing for thing in objects if thing.type == "ARMATURE")


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def end_all(*_arguments: object) -> None:
    """Another file was opened: nothing in it is live."""
    _previews.clear()
    _restless.clear()
    live_switch.switched_on.clear()
    for thing in _armatures(bpy.data.objects):
        if thing.is_editable:
            _end(thing)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget_all(*_arguments: object) -> None:
    """Undo or redo has replaced the objects."""
    for preview in _previews.values():
        preview.forget()
    for thing in _armatures(bpy.data.objects):
        if live_switch.is_live(thing):
            thing.update_tag()


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def before_save(*_arguments: object) -> None:
    """Nothing of a preview gets into a file."""
    editable = [thing for thing in _armatures(bpy.data.objects) if thing.is_editable]
    _switched_off_by_save[:] = [thing.session_uid for thing in editable if live_switch.is_live(thing)]
    for thing in editable:
        _end(thing)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def after_save(*_arguments: object) -> None:
    """What was live before the file was saved goes on."""
    for thing in _armatures(bpy.data.objects):
        if thing.session_uid in _switched_off_by_save:
            thing.ccd_rig.live = True
    _switched_off_by_save.clear()


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def before_render(*_arguments: object) -> None:
    """A render shows the keys. While clamps are muted nothing is solved."""
    clamps.mute_all(True)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def after_render(*_arguments: object) -> None:
    """The render has ended, or was cancelled."""
    clamps.mute_all(False)
    forget_all()


def _listeners() -> Sequence[tuple[list[Any], Any]]:
    handlers = bpy.app.handlers
    return (
        (handlers.depsgraph_update_post, follow),
        (handlers.frame_change_post, follow),
        (handlers.undo_post, forget_all),
        (handlers.redo_post, forget_all),
        (handlers.load_post, end_all),
        (handlers.save_pre, before_save),
        (handlers.save_post, after_save),
        (handlers.save_post_fail, after_save),
        (handlers.render_init, before_render),
        (handlers.render_complete, after_render),
        (handlers.render_cancel, after_render),
    )


def register() -> None:
    """Listen to what Blender does."""
    for listeners, listener in _listeners():
        listeners.append(listener)


def unregister() -> None:
    """Listen no more, and leave nothing behind."""
    for listeners, listener in _listeners():
        listeners.remove(listener)
    if bpy.app.timers.is_registered(settle):
        bpy.app.timers.unregister(settle)
    # Blender hides the file while it enables an extension: one that fails then has made nothing live.
    for thing in _armatures(getattr(bpy.data, "objects", ())):
        if thing.is_editable:
            _end(thing)
