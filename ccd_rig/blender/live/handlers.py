# SPDX-License-Identifier: GPL-3.0-or-later
"""When live armatures are brought up to date, and when nothing of them may be there.

Blender evaluates what a handler has changed in a second pass without handlers, so an update calls no other.
Only where what clamps show is the base of another solve, there is one more evaluation, see `catch_up`.
References to objects do not outlive an undo: previews are kept by `session_uid`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

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
_looked_at: set[int] = set()  # `session_uid` of armature objects that were looked at while none was live
_catching_up: list[bpy.types.Scene] = []  # one at most: that is evaluated by `catch_up`


def preview_of(armature_object: bpy.types.Object) -> Preview | None:
    """What is known of an armature; None if it is not live."""
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
    """Something was evaluated, or the frame has changed: show what follows from it."""
    if is_isolated(scene) or clamps.is_suspended() or depsgraph.mode == "RENDER":
        return
    shown = list(_shown(scene, depsgraph))
    if is_rebuilt(depsgraph):
        for armature_object in shown:
            _preview(armature_object).forget()
    before = [_preview(armature_object).set_up for armature_object in shown]
    changed = _follow_all(shown, depsgraph)
    # The target of one may hang on another. A chain that has become shorter stood on clamps that are gone.
    is_edited = any(_preview(each).set_up is not known for each, known in zip(shown, before, strict=True))
    if changed and (is_edited or len(shown) > 1) and not _catching_up:
        _late[scene.name] = depsgraph.view_layer.name
        _soon(catch_up)


def _soon(function: Callable[[], None]) -> None:
    """Let a timer call a function. Without a window none runs, and one that is left crashes the exit."""
    if not bpy.app.background and not bpy.app.timers.is_registered(function):
        bpy.app.timers.register(function, first_interval=0.0)


def catch_up() -> None:
    """A timer: bring armatures up to date that were solved where clamps have moved since.

    A handler cannot have the clamps evaluated that it has changed: Blender crashes.
    """
    late = dict(_late)
    _late.clear()
    for scene_name, layer_name in late.items():
        scene = bpy.data.scenes.get(scene_name)
        layer = scene.view_layers.get(layer_name) if scene is not None else None
        if scene is not None and layer is not None and not clamps.is_suspended():
            _catch_up(scene, layer)


def _catch_up(scene: bpy.types.Scene, layer: bpy.types.ViewLayer) -> None:
    live = [thing for thing in _armatures(scene.objects) if armature_data.is_live(thing)]
    _catching_up.append(scene)
    try:
        for _ in live:  # each may wait for the one before
            before = [_preview(armature_object).sample for armature_object in live]
            for armature_object in live:
                armature_object.update_tag()
            layer.update()
            if all(_preview(each).sample is known for each, known in zip(live, before, strict=True)):
                break
    finally:
        _catching_up.pop()


def _shown(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> Iterator[bpy.types.Object]:
    """The live armatures of a scene that can show a pose now."""
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
    """Bring previews up to date; whether clamps have changed.

    Those that others follow come first. Their bones are then taken for where their clamps will show them.
    """
    changed = False
    looked_at = {each: _looked_at_by(each) for each in armature_objects}
    ahead: dict[tuple[bpy.types.Object, str], Matrix] = {}
    for armature_object in _leaders_first(looked_at):
        preview = _preview(armature_object)
        notes = preview.notes()
        preview.partner = _partner(looked_at, armature_object)
        if update(armature_object, depsgraph, preview, ahead):
            changed = True
            names = {bone for seen in looked_at.values() for thing, bone in seen if thing == armature_object}
            ahead |= bones_ahead(armature_object, depsgraph, preview, names)
        if preview.notes() != notes:
            _redraw()
    return changed


def _looked_at_by(armature_object: bpy.types.Object) -> set[tuple[bpy.types.Object, str]]:
    """Bones that are targets or poles of an armature: each the object and its bone's name."""
    rows = armature_object.ccd_rig.constraints
    ends = [(row.target, row.target_bone) for row in rows] + [
        (row.pole_target, row.pole_bone) for row in rows
    ]
    return {(thing, bone) for thing, bone in ends if thing is not None and bone}


def _partner(
    looked_at: Mapping[bpy.types.Object, set[tuple[bpy.types.Object, str]]], armature_object: bpy.types.Object
) -> str:
    """Name of another armature object in a circle of those that look at one another; empty if in none."""
    beyond = _beyond(looked_at, armature_object)
    others = (each for each in looked_at if each != armature_object and each in beyond)
    return next((each.name for each in others if armature_object in _beyond(looked_at, each)), "")


def _beyond(
    looked_at: Mapping[bpy.types.Object, set[tuple[bpy.types.Object, str]]], armature_object: bpy.types.Object
) -> set[bpy.types.Object]:
    """All that an armature object looks at, by way of others too."""
    beyond, left = set[bpy.types.Object](), [armature_object]
    while left:
        for thing, _ in looked_at.get(left.pop(), ()):
            if thing not in beyond:
                beyond.add(thing)
                left.append(thing)
    return beyond


def _leaders_first(
    looked_at: Mapping[bpy.types.Object, set[tuple[bpy.types.Object, str]]],
) -> Iterator[bpy.types.Object]:
    """Armature objects, each after those that it looks at; in a circle as they come."""
    left = list(looked_at)
    while left:
        free = (each for each in left if not any(o != each and o in left for o, _ in looked_at[each]))
        armature_object = next(free, left[0])
        left.remove(armature_object)
        yield armature_object


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
    clamps.remove(armature_object)
    if armature_object.is_property_set("ccd_rig") and armature_object.ccd_rig.is_property_set("live"):
        armature_object.ccd_rig.property_unset("live")


def end_copies(
    scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph, armatures: Sequence[bpy.types.Object]
) -> None:
    """Copies of live armatures, and those that come from other files, are not live.

    Blender writes single data-blocks without a word (`bpy.data.libraries.write`), clamps too. Of one that is
    linked they are taken away in memory, each time that its library is read.
    """
    on = armature_data.switched_on
    for thing in armatures:
        uid = thing.session_uid
        if uid in on or uid in _looked_at:
            continue
        if depsgraph.mode == "RENDER" or clamps.is_suspended() or is_isolated(scene):
            return
        if not on:
            _looked_at.add(uid)
        if (thing.is_property_set("ccd_rig") and thing.ccd_rig.live) or any(clamps.clamps_of(thing)):
            _end(thing)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def end_copies_of_frame(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """A frame change may be the first evaluation of what came from another file."""
    if armatures := evaluations.armatures_in(depsgraph):
        end_copies(scene, depsgraph, armatures)


def _armatures(objects: Any) -> Iterator[bpy.types.Object]:
    return (thing for thing in objects if thing.type == "ARMATURE")


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def end_all(*_arguments: object) -> None:
    """Another file was opened: nothing in it is live."""
    _previews.clear()
    _late.clear()
    _looked_at.clear()
    armature_data.switched_on.clear()
    _listen_no_more()
    for thing in _armatures(bpy.data.objects):
        _end(thing)


def end_left() -> None:
    """A timer, once after the extension was enabled: undo may have brought back what was live before it was
    disabled."""
    for thing in _armatures(bpy.data.objects):
        if thing.session_uid not in armature_data.switched_on:
            _end(thing)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget_all(*_arguments: object) -> None:
    """Undo or redo has replaced the objects."""
    _looked_at.clear()
    for preview in _previews.values():
        preview.forget()
    for thing in _armatures(bpy.data.objects):
        if armature_data.is_live(thing):
            thing.update_tag()


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def before_save(*_arguments: object) -> None:
    """Nothing of a preview gets into a file."""
    editable = [thing for thing in _armatures(bpy.data.objects) if thing.is_editable]
    _switched_off_by_save[:] = [thing.session_uid for thing in editable if armature_data.is_live(thing)]
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


def _listen() -> None:
    """Listen to evaluations: an armature was switched on. That lasts until another file is opened, as undo
    and redo may switch it on again."""
    _looked_at.clear()
    for listeners in _evaluations():
        if follow not in listeners:
            listeners.append(follow)


def _listen_no_more() -> None:
    for listeners in _evaluations():
        if follow in listeners:
            listeners.remove(follow)


def _evaluations() -> tuple[list[Any], list[Any]]:
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
    """Listen to what Blender does; to all evaluations only while an armature is live."""
    evaluations.add(end_copies)
    armature_data.begin.append(_listen)
    for listeners, listener in _listeners():
        listeners.append(listener)
    _soon(end_left)  # Blender hides the file while it enables an extension


def unregister() -> None:
    """Listen no more, and leave nothing behind."""
    for listeners, listener in _listeners():
        listeners.remove(listener)
    _listen_no_more()
    armature_data.begin.remove(_listen)
    evaluations.remove(end_copies)
    for timer in (catch_up, end_left):
        if bpy.app.timers.is_registered(timer):
            bpy.app.timers.unregister(timer)
    armature_data.switched_on.clear()
    # Blender hides the file while it enables an extension: one that fails then has made nothing live.
    for thing in _armatures(getattr(bpy.data, "objects", ())):
        if thing.is_editable:
            _end(thing)
