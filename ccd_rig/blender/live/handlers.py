# SPDX-License-Identifier: GPL-3.0-or-later
"""Blender's handlers that update live previews, and remove them before saves, renders and copies.

Blender evaluates a handler's changes in a second pass without handlers, so an update causes no other.
Another evaluation is needed only where a solve depends on a second armature's clamps, see `catch_up`.
References to objects do not survive undo: previews are kept by `session_uid`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import bpy
from mathutils import Matrix

from .. import evaluations
from ..properties import armature_data
from ..rig import clamps
from ..scene.isolation import is_isolated
from .preview import Preview, bones_ahead, is_rebuilt, update

_previews: dict[int, Preview] = {}  # by session_uid
_switched_off_by_save: list[int] = []
_late: dict[str, str] = {}  # for `catch_up`: name of a scene -> name of its view layer
_seen: set[int] = set()  # `session_uid` of armature objects checked by `end_copies` while none was live
_catching_up: list[bpy.types.Scene] = []  # the scene that `catch_up` evaluates, or empty


def preview_of(armature_object: bpy.types.Object) -> Preview | None:
    """Preview of an armature; None if it is not live."""
    return _previews.get(armature_object.session_uid) if armature_data.is_live(armature_object) else None


def switch(armature_object: bpy.types.Object, on: bool) -> None:
    """Switch the preview of an armature on or off."""
    if on:
        armature_object.ccd_rig.live = True
    else:
        _end(armature_object)


# --- updates ------------------------------------------------------------------------------------------------


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def follow(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Update the previews of a scene after an evaluation or frame change."""
    if is_isolated(scene) or clamps.is_suspended() or depsgraph.mode == "RENDER":
        return
    shown = list(_shown(scene, depsgraph))
    if is_rebuilt(depsgraph):
        for armature_object in shown:
            _preview(armature_object).forget()
    before = [_preview(armature_object).set_up for armature_object in shown]
    changed = _follow_all(shown, depsgraph)
    # A target may depend on another armature. A chain that became shorter was solved on clamps now removed.
    is_edited = any(
        _preview(armature_object).set_up is not set_up
        for armature_object, set_up in zip(shown, before, strict=True)
    )
    if changed and (is_edited or len(shown) > 1) and not _catching_up:
        _late[scene.name] = depsgraph.view_layer.name
        _soon(catch_up)


def _soon(function: Callable[[], None]) -> None:
    """Let a timer call a function. Without a window timers do not run, and a left one crashes the exit."""
    if not bpy.app.background and not bpy.app.timers.is_registered(function):
        bpy.app.timers.register(function, first_interval=0.0)


def catch_up() -> None:
    """Update, by a timer, armatures whose solves used clamps that have moved since.

    A handler cannot evaluate clamps that it has changed: Blender crashes.
    """
    late = dict(_late)
    _late.clear()
    for scene_name, layer_name in late.items():
        scene = bpy.data.scenes.get(scene_name)
        layer = scene.view_layers.get(layer_name) if scene is not None else None
        if scene is not None and layer is not None and not clamps.is_suspended():
            _catch_up(scene, layer)


def _catch_up(scene: bpy.types.Scene, layer: bpy.types.ViewLayer) -> None:
    live = [rig for rig in _armatures(scene.objects) if armature_data.is_live(rig)]
    _catching_up.append(scene)
    try:
        for _ in live:  # a chain of followers has at most this length
            before = [_preview(rig).sample for rig in live]
            for rig in live:
                rig.update_tag()
            layer.update()
            if all(_preview(rig).sample is sample for rig, sample in zip(live, before, strict=True)):
                break
    finally:
        _catching_up.pop()


def _shown(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> Iterator[bpy.types.Object]:
    """Live armatures of a scene that can show a pose at present."""
    for armature_object in _armatures(scene.objects):
        uid = armature_object.session_uid
        if uid not in armature_data.switched_on:
            continue
        if not armature_object.ccd_rig.live:
            if uid in _previews:
                _end(armature_object)
        elif _may_show(armature_object, depsgraph):
            yield armature_object
        elif armature_object.data.is_editmode:
            _preview(armature_object).forget()


def _preview(armature_object: bpy.types.Object) -> Preview:
    return _previews.setdefault(armature_object.session_uid, Preview())


def _follow_all(armature_objects: Sequence[bpy.types.Object], depsgraph: bpy.types.Depsgraph) -> bool:
    """Update previews in the order in which armatures depend on each other; whether clamps have changed.

    An armature that follows another uses its bones as the clamps will show them.
    """
    changed = False
    targets: _Targets = {}
    for armature_object in armature_objects:
        rows = armature_object.ccd_rig.constraints
        bones = {(row.target, row.target_bone) for row in rows}
        bones |= {(row.pole_target, row.pole_bone) for row in rows}
        targets[armature_object] = {(target, bone) for target, bone in bones if target is not None and bone}
    ahead: dict[tuple[bpy.types.Object, str], Matrix] = {}
    for armature_object in _leaders_first(targets):
        preview = _preview(armature_object)
        notes = preview.notes()
        leaders = _leaders_of(targets, armature_object)
        partners = (
            rig.name
            for rig in targets
            if rig != armature_object and rig in leaders and armature_object in _leaders_of(targets, rig)
        )
        preview.partner = next(partners, "")
        if update(armature_object, depsgraph, preview, ahead):
            changed = True
            names = {bone for bones in targets.values() for rig, bone in bones if rig == armature_object}
            ahead |= bones_ahead(armature_object, depsgraph, preview, names)
        if preview.notes() != notes:
            _redraw()
    return changed


_Targets: TypeAlias = dict[bpy.types.Object, set[tuple[bpy.types.Object, str]]]
"""{armature object: the bones that are its targets and poles, (armature object, bone)}"""


def _leaders_of(targets: _Targets, armature_object: bpy.types.Object) -> set[bpy.types.Object]:
    """Objects that an armature object follows, directly or through others."""
    leaders, pending = set[bpy.types.Object](), [armature_object]
    while pending:
        for leader, _ in targets.get(pending.pop(), ()):
            if leader not in leaders:
                leaders.add(leader)
                pending.append(leader)
    return leaders


def _leaders_first(targets: _Targets) -> Iterator[bpy.types.Object]:
    """Armature objects after those that they follow; a cycle is broken at its first."""
    pending = list(targets)
    while pending:
        free = (
            rig
            for rig in pending
            if not any(leader != rig and leader in pending for leader, _ in targets[rig])
        )
        armature_object = next(free, pending[0])
        pending.remove(armature_object)
        yield armature_object


def _may_show(armature_object: bpy.types.Object, depsgraph: bpy.types.Depsgraph | None) -> bool:
    """Whether an armature can show a pose at present, and no render of its keys is running."""
    if depsgraph is None or armature_object.mode == "EDIT" or armature_object.data.pose_position == "REST":
        return False
    first = next(clamps.clamps_of(armature_object), None)
    if first is None:  # new clamps would get into the frames of a render
        if bpy.app.is_job_running("RENDER"):
            return False
    elif first[1].mute:
        return False
    evaluated = armature_object.evaluated_get(depsgraph)
    return evaluated.is_evaluated and armature_object.visible_get(view_layer=depsgraph.view_layer)


def _redraw() -> None:
    """Redraw the sidebar, whose panel shows the notes of previews."""
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            if area.type == "VIEW_3D":
                area.tag_redraw()


# --- ends ---------------------------------------------------------------------------------------------------


def _end(armature_object: bpy.types.Object) -> None:
    """Remove the preview of an armature, and switch Live off."""
    uid = armature_object.session_uid
    _previews.pop(uid, None)
    clamps.remove(armature_object)
    if armature_object.is_property_set("ccd_rig") and armature_object.ccd_rig.is_property_set("live"):
        armature_object.ccd_rig.property_unset("live")


def end_copies(
    scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, armatures: Sequence[bpy.types.Object]
) -> None:
    """Switch Live off for copies of live armatures, and for armatures from other files.

    No handler is called when Blender writes single data-blocks (`bpy.data.libraries.write`), clamps included.
    Clamps of linked armatures are removed in memory, whenever their library is read.
    """
    on = armature_data.switched_on
    for rig in armatures:
        uid = rig.session_uid
        if uid in on or uid in _seen:
            continue
        if depsgraph.mode == "RENDER" or clamps.is_suspended() or is_isolated(scene):
            return
        if not on:
            _seen.add(uid)
        if (rig.is_property_set("ccd_rig") and rig.ccd_rig.live) or any(clamps.clamps_of(rig)):
            _end(rig)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def end_copies_of_frame(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Call `end_copies` at a frame change, which may be the first evaluation of data from another file."""
    if armatures := evaluations.armatures_in(depsgraph):
        end_copies(scene, depsgraph, armatures)


def _armatures(objects: Any) -> Iterator[bpy.types.Object]:
    return (candidate for candidate in objects if candidate.type == "ARMATURE")


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def end_all(*_arguments: object) -> None:
    """Switch Live off for all armatures of a file that was opened."""
    _previews.clear()
    _late.clear()
    _seen.clear()
    armature_data.switched_on.clear()
    _stop_following()
    for rig in _armatures(bpy.data.objects):
        _end(rig)


def end_left() -> None:
    """Remove, by a timer after the extension was enabled, previews that undo has restored.

    They are from before the extension was disabled.
    """
    for rig in _armatures(bpy.data.objects):
        if rig.session_uid not in armature_data.switched_on:
            _end(rig)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget_all(*_arguments: object) -> None:
    """Make all previews anew after undo or redo, which replace the objects."""
    _seen.clear()
    for preview in _previews.values():
        preview.forget()
    for rig in _armatures(bpy.data.objects):
        if armature_data.is_live(rig):
            rig.update_tag()


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def before_save(*_arguments: object) -> None:
    """Remove all previews before a file is saved."""
    editable = [rig for rig in _armatures(bpy.data.objects) if rig.is_editable]
    _switched_off_by_save[:] = [rig.session_uid for rig in editable if armature_data.is_live(rig)]
    for rig in editable:
        _end(rig)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def after_save(*_arguments: object) -> None:
    """Switch Live on again for armatures that were live before the save."""
    for rig in _armatures(bpy.data.objects):
        if rig.session_uid in _switched_off_by_save:
            rig.ccd_rig.live = True
    _switched_off_by_save.clear()


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def before_render(*_arguments: object) -> None:
    """Mute the clamps, so that the render shows the keys. Nothing is solved while they are muted."""
    clamps.mute_all(True)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def after_render(*_arguments: object) -> None:
    """Show the previews again after a render has ended or was cancelled."""
    clamps.mute_all(False)
    forget_all()


def _start_following() -> None:
    """Listen to evaluations from the first switch to Live until another file is opened.

    Undo and redo may switch Live on again.
    """
    _seen.clear()
    evaluations.wake()
    for listeners in _evaluation_handlers():
        if follow not in listeners:
            listeners.append(follow)


def _stop_following() -> None:
    for listeners in _evaluation_handlers():
        if follow in listeners:
            listeners.remove(follow)


def _evaluation_handlers() -> tuple[list[Any], list[Any]]:
    return bpy.app.handlers.depsgraph_update_post, bpy.app.handlers.frame_change_post


def _listeners() -> Sequence[tuple[list[Any], Any]]:
    handlers = bpy.app.handlers
    return (
        (handlers.frame_change_post, end_copies_of_frame),
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
    """Register the handlers; those of all evaluations only while an armature is live."""
    evaluations.add(end_copies, lambda _armature_object: not armature_data.switched_on)
    armature_data.begin.append(_start_following)
    for listeners, listener in _listeners():
        listeners.append(listener)
    _soon(end_left)  # Blender hides the file while it enables an extension


def unregister() -> None:
    """Unregister the handlers, and remove all previews."""
    for listeners, listener in _listeners():
        listeners.remove(listener)
    _stop_following()
    armature_data.begin.remove(_start_following)
    evaluations.remove(end_copies)
    for timer in (catch_up, end_left):
        if bpy.app.timers.is_registered(timer):
            bpy.app.timers.unregister(timer)
    armature_data.switched_on.clear()
    # Blender hides the file while it enables an extension: without objects nothing is live.
    for rig in _armatures(getattr(bpy.data, "objects", ())):
        if rig.is_editable:
            _end(rig)
