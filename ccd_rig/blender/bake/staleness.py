# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a stored report still speaks of what is there: constraints, bones, settings and keys.

A panel asks at every redraw. Keys are read once, and again after their action has changed. What moves
targets is followed back once, and again after anything has been edited; a change of the frame is no edit.
"""

from __future__ import annotations

from typing import Any

import bpy

from ...solvers.stepping import Work, result_of
from ..keys import channels
from ..properties import constraint_list
from . import originals
from .contents import Curves, fields, read_curves, values
from .mover_contents import mover_contents

_known: dict[tuple[int, int], Curves] = {}
"""By the ids, for this session, of an action and of what it animates."""
_movers: dict[int, str] = {}
"""Of what moves targets and chains, by the id of the armature object."""


def state_of(armature_object: bpy.types.Object) -> Work[str]:
    """A short text that changes with all that a bake of the armature depends on, but for its options.

    An item comes per constraint, bone, F-curve and thing that moves something.
    """
    group = armature_object.ccd_rig
    animation = armature_object.animation_data
    drivers = () if animation is None else animation.drivers
    moved = frozenset((curve.data_path, curve.array_index) for curve in drivers)
    moved = moved.union(*(each.moved for each in (yield from _keys_of(armature_object))))
    rows, bones = [], []
    for i, row in enumerate(group.constraints):
        rows.append(values(row, f"ccd_rig.constraints[{i}]", moved))
        yield
    chain_bones = _chain_bones(armature_object)
    for bone in chain_bones:
        of_bone = values(bone.ccd_rig, f"{bone.path_from_id()}.ccd_rig", moved)
        bones.append((bone.name, bone.bone.length, of_bone))
        yield
    solver = values(group.solver, "ccd_rig.solver", moved)
    ids = armature_object.session_uid
    _listen()
    movers = _movers.get(ids)  # whoever gets an item may edit the file, and then nothing is known
    if movers is None:
        posed = {bone.name for bone in chain_bones}
        contents = yield from mover_contents(armature_object, posed, lambda thing: result_of(_keys_of(thing)))
        movers = _movers[ids] = originals.fingerprint(*contents)
    return originals.fingerprint(rows, bones, solver, group.body, movers)


def is_stale(armature_object: bpy.types.Object) -> bool:
    """Whether something has changed since the armature's last bake."""
    report = armature_object.ccd_rig.report
    return bool(report.words) and report.state != result_of(state_of(armature_object))


def _chain_bones(armature_object: bpy.types.Object) -> list[bpy.types.PoseBone]:
    rows = armature_object.ccd_rig.constraints
    chains = [constraint_list.chain(armature_object, row.tip, row.chain_length) for row in rows]
    return list({bone.name: bone for chain in chains for bone in chain}.values())


def _keys_of(thing: Any) -> Work[list[Curves]]:
    """What is known of each action that plays on a data-block; an item per F-curve that is read."""
    found = []
    for action, curves in channels.played(thing):
        if not isinstance(action, bpy.types.Action):  # a strip without one
            continue
        ids = action.session_uid, thing.session_uid
        if ids not in _known:
            _listen()
            _known[ids] = yield from read_curves(curves)
        found.append(_known[ids])
    return found


def _listen() -> None:
    """Listen to evaluations as long as something is known that they may change."""
    handlers = bpy.app.handlers.depsgraph_update_post
    if _forget_changed not in handlers:
        handlers.append(_forget_changed)


def _listen_no_more() -> None:
    handlers = bpy.app.handlers.depsgraph_update_post
    if _forget_changed in handlers:
        handlers.remove(_forget_changed)


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def _forget_changed(_scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    _movers.clear()
    if not depsgraph.id_type_updated("ACTION"):
        return
    changed = {update.id.original.session_uid for update in depsgraph.updates}
    for ids in [ids for ids in _known if changed.intersection(ids)]:
        del _known[ids]


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def forget(*_arguments: object) -> None:
    """Read all keys again when next asked: after undo, or an edit that Blender has not seen yet."""
    _known.clear()
    _movers.clear()


@bpy.app.handlers.persistent  # type: ignore[misc, untyped-decorator]
def _forget_file(*_arguments: object) -> None:
    """Another file is open, of which nothing is known."""
    forget()
    _listen_no_more()


def register() -> None:
    """Listen to what changes keys, but for evaluations: see `_listen`."""
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        handlers.append(forget)
    bpy.app.handlers.load_post.append(_forget_file)


def unregister() -> None:
    """Listen no more."""
    bpy.app.handlers.load_post.remove(_forget_file)
    for handlers in (bpy.app.handlers.undo_post, bpy.app.handlers.redo_post):
        handlers.remove(forget)
    _forget_file()
    fields.cache_clear()
