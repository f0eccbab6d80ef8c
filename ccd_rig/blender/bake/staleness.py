# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a stored report still speaks of what is there: constraints, bones, settings and keys.

A panel asks at every redraw. Keys are read once, and again after their action has changed. What moves
targets is followed back once, and again after anything has been edited; a change of the frame is no edit.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias

import bpy
import numpy as np

from ...solvers.stepping import Work, result_of
from ..keys import channels, keyframes
from ..properties import constraint_list
from ..rig import clamps
from ..scene import dependence
from ..scene.dependence import Mover
from . import start
from .report import BakeReport, to_json

Components: TypeAlias = frozenset[tuple[str, int]]
"""Of channels that something moves: data path and component."""


class Curves(NamedTuple):
    """What is known of F-curves: a checksum, and what they move."""

    checksum: int
    moved: Components


def read_curves(curves: Iterable[bpy.types.FCurve]) -> Work[Curves]:
    """All that decides what F-curves play; an item per F-curve."""
    checksum, moved = 0, set()
    for curve in curves:
        yield
        plays = channels.plays(curve)
        words = f"{curve.data_path}[{curve.array_index}] {plays} {curve.extrapolation}"
        modifiers = [values(each, "", frozenset(), SHOWN_ONLY) for each in curve.modifiers]
        checksum = zlib.crc32(f"{words} {modifiers}".encode(), checksum)
        checksum = zlib.crc32(keyframes.content(curve), checksum)
        if plays:
            moved.add((curve.data_path, curve.array_index))
    return Curves(checksum, frozenset(moved))


SHOWN_ONLY = frozenset(("active", "error_location", "error_rotation", "is_valid", "show_expanded"))
"""Of constraints and modifiers, what does not change what they do."""


def values(
    group: Any, path: str, moved: Collection[tuple[str, int]], left_out: Collection[str] = ()
) -> tuple[Any, ...]:
    """All values of a group of properties, but for those that something moves.

    Args:
        group: a property group, a constraint or a modifier.
        path: its data path from the data-block.
        moved: data paths and components that are left out.
        left_out: names that are left out.
    """
    found: list[Any] = []
    for name, sort in fields(type(group)):
        if name in left_out:
            continue
        value = getattr(group, name)
        if name == "kind" and value == "NONE":  # a limit that is none, whatever else is left over in it
            return (value,)
        found.append(_value(value, sort, f"{path}.{name}", moved, left_out))
    return tuple(found)


def channel_values(owner: Any, names: Iterable[str], path: str, moved: Components) -> tuple[Any, ...]:
    """The values of channels by name, but for the components that something moves."""
    sorts = dict(fields(type(owner)))
    return tuple(_value(getattr(owner, name), sorts[name], f"{path}{name}", moved, ()) for name in names)


def _value(
    value: Any, sort: str, path: str, moved: Collection[tuple[str, int]], left_out: Collection[str]
) -> Any:
    if sort == "COLLECTION":
        return [values(each, f"{path}[{i}]", moved, left_out) for i, each in enumerate(value)]
    if sort == "POINTER" and value is not None:
        is_data = isinstance(value, bpy.types.ID)
        return value.name_full if is_data else values(value, path, moved, left_out)
    if sort == "MATRIX":
        return tuple(map(tuple, value))
    if sort == "ARRAY":
        return tuple(None if (path, i) in moved else each for i, each in enumerate(value))
    return None if (path, 0) in moved else value


@lru_cache(maxsize=128)
def fields(group: type) -> tuple[tuple[str, str], ...]:
    """Names of a group's properties and what they are; its kind, if it has one, first."""
    properties: Any = group.bl_rna.properties  # type: ignore[attr-defined]
    found = [
        (name, _sort(field))
        for name, field in properties.items()
        if name != "rna_type" and not field.is_hidden
    ]
    return tuple(sorted(found, key=lambda pair: pair[0] != "kind"))


def _sort(field: Any) -> str:
    if not getattr(field, "is_array", False):
        return str(field.type)
    return "MATRIX" if field.subtype == "MATRIX" else "ARRAY"


KeysOf: TypeAlias = Callable[[Any], Sequence[Curves]]
"""What is known of the keys of a data-block."""
PathsOf: TypeAlias = Callable[[Any], frozenset[str]]
"""Data paths of what keys and drivers move on a data-block."""

PLACE = ("location", "rotation_mode", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
DELTAS = ("delta_location", "delta_rotation_euler", "delta_rotation_quaternion", "delta_scale")
INHERITED = ("use_inherit_rotation", "inherit_scale", "use_local_location", "use_relative_parent")
SHAPE = ("value", "mute")
PATH_TIME = ("use_path", "eval_time", "path_duration")
NOT_OF_STRIPS = frozenset(
    ("active", "select", "fcurves", "strip_time", "action_slot", "action_suitable_slots")
)


def mover_contents(
    armature_object: bpy.types.Object, posed: Collection[str], keys_of: KeysOf
) -> Work[list[tuple[Any, ...]]]:
    """One entry for each thing that moves targets, poles, chains or the armature itself; an item per thing.

    Args:
        armature_object: carries the constraints.
        posed: names of its bones whose channels a bake replaces: they do not count.
        keys_of: gives what is known of a data-block's keys.
    """
    found: list[tuple[Any, ...]] = []
    moved_of, drivers_of = cache(lambda thing: _moved(thing, keys_of)), cache(dependence.drivers_by_bone)
    paths_of = cache(lambda thing: frozenset(path for path, _ in moved_of(thing)))
    seen = set()
    for mover in dependence.all_movers(armature_object):
        yield
        thing = mover.thing
        if thing not in seen:
            seen.add(thing)
            found.append((thing.name_full, [each.checksum for each in keys_of(thing)], *_strips(thing)))
        is_posed = thing == armature_object and mover.bone in posed
        found.append((mover.bone, *_tied(mover), *_placed(mover, moved_of(thing), is_posed)))
        for curve in drivers_of(thing).get(_path(mover), ()):
            found.append(_driver(curve))
            for variable in curve.driver.variables:
                found.append(tuple(_variable(variable, paths_of, keys_of)))
    return found


def _path(mover: Mover) -> str:
    """Where the drivers of a mover are, as `drivers_by_bone` has it."""
    pose = mover.thing.pose if mover.bone else None
    bone = None if pose is None else pose.bones.get(mover.bone)
    return "" if bone is None else str(bone.path_from_id())


def _moved(thing: Any, keys_of: KeysOf) -> Components:
    """What keys and drivers move on a data-block."""
    animation = thing.animation_data
    drivers = () if animation is None else animation.drivers
    driven = frozenset((curve.data_path, curve.array_index) for curve in drivers)
    return driven.union(*(each.moved for each in keys_of(thing)))


def _placed(mover: Mover, moved: Components, is_posed: bool) -> Iterator[Any]:
    """Channels that hold still, and the constraints."""
    thing = mover.thing
    if isinstance(thing, bpy.types.Curve):
        yield channel_values(thing, PATH_TIME, "", moved)
    if isinstance(thing, bpy.types.Key):
        for block in thing.key_blocks:
            yield block.name, channel_values(block, SHAPE, f"{block.path_from_id()}.", moved)
    if not isinstance(thing, bpy.types.Object):
        return
    owner: Any = thing.pose.bones.get(mover.bone) if mover.bone and thing.pose is not None else thing
    if owner is None:
        return
    path = f"{owner.path_from_id()}." if mover.bone else ""
    if not is_posed:
        yield channel_values(owner, PLACE if mover.bone else PLACE + DELTAS, path, moved)
    for constraint in clamps.user_constraints(owner):
        yield constraint.type, values(constraint, constraint.path_from_id(), moved, SHOWN_ONLY)


def _tied(mover: Mover) -> Iterator[Any]:
    """What it hangs on: the parent, or the bone's place at rest."""
    thing = mover.thing
    if not isinstance(thing, bpy.types.Object):
        return
    if not mover.bone:
        yield thing.parent and thing.parent.name_full, thing.parent_type, thing.parent_bone
        yield tuple(map(tuple, thing.matrix_parent_inverse)), tuple(thing.parent_vertices)
    elif thing.pose is not None and mover.bone in thing.pose.bones:
        bone = thing.pose.bones[mover.bone].bone
        yield bone.parent and bone.parent.name, tuple(map(tuple, bone.matrix_local))
        yield tuple(getattr(bone, name) for name in INHERITED)


def _strips(thing: Any) -> Iterator[Any]:
    """When the NLA strips of a data-block play, and how."""
    animation = thing.animation_data
    if animation is None or not animation.use_nla:
        return
    yield animation.action_blend_type, animation.action_influence, animation.action_extrapolation
    for track in animation.nla_tracks:
        yield track.mute, track.is_solo
        for strip in track.strips:
            moved = {(".influence", 0)} if strip.use_animated_influence else ()
            yield values(strip, "", moved, NOT_OF_STRIPS), result_of(read_curves(strip.fcurves)).checksum


def _driver(curve: bpy.types.FCurve) -> tuple[Any, ...]:
    driver = curve.driver
    return driver.type, driver.expression, driver.use_self, result_of(read_curves([curve]))


def _variable(variable: Any, paths_of: PathsOf, keys_of: KeysOf) -> Iterator[Any]:
    """What a driver reads, and where it holds still its value."""
    yield variable.name, variable.type
    for target in variable.targets:
        yield values(target, "", ())
        thing, path = target.id, target.data_path
        if thing is None or variable.type != "SINGLE_PROP":
            continue
        yield [each.checksum for each in keys_of(thing)]
        whole = (path, path.rpartition("[")[0], path.rpartition(".")[0])  # of a component, such as location.x
        if isinstance(thing, bpy.types.Scene) or paths_of(thing).intersection(whole):
            continue
        with suppress(ValueError):  # the path leads nowhere, and the driver is invalid
            yield np.array(thing.path_resolve(path)).tolist()


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
        movers = _movers[ids] = start.fingerprint(*contents)
    return start.fingerprint(rows, bones, solver, group.body, group.body_helps, movers)


def store_report(
    armature_object: bpy.types.Object, report: BakeReport, undo: contextlib.ExitStack
) -> Work[None]:
    """Keep what a bake came to, in words, for the panel; `undo` gets what takes that back."""
    group, worst = armature_object.ccd_rig.report, report.worst()
    stored = {
        "words": report.summary(),
        "worst_frame": worst.frame,
        "worst_constraint": worst.constraint,
        "unsolved": report.unsolved_count(),
        "check": "" if report.check is None else report.check.words(),
        "mismatches": 0 if report.check is None else len(report.check.mismatches()),
        "findings": to_json(report.findings),
    }
    undo.callback(_restore_fields, group, {name: _stored(group, name) for name in (*stored, "state")})
    for name, value in stored.items():
        setattr(group, name, value)
    forget()
    yield
    group.state = yield from state_of(armature_object)


def _stored(group: bpy.types.PropertyGroup, name: str) -> object:
    return getattr(group, name) if group.is_property_set(name) else None


def _restore_fields(group: bpy.types.PropertyGroup, fields: dict[str, object]) -> None:
    for name, value in fields.items():
        if value is None:
            group.property_unset(name)
        else:
            setattr(group, name, value)


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
