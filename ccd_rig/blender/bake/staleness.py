# SPDX-License-Identifier: GPL-3.0-or-later
"""Staleness of stored reports: fingerprints of constraints, bones, settings and keys.

A panel asks at every redraw. Keys are read once, and again after their action has changed. Movers of targets
are followed once, and again after any edit; a change of the frame is no edit.
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
from ..registration import Handlers, use
from ..rig import clamps
from ..scene import dependence
from ..scene.dependence import Mover
from . import start
from .report import BakeReport, to_json

Components: TypeAlias = frozenset[tuple[str, int]]
"""Data path and component of animated channels."""


class Curves(NamedTuple):
    """Content of F-curves: a checksum, and the components they move."""

    checksum: int
    moved: Components


def read_curves(curves: Iterable[bpy.types.FCurve]) -> Work[Curves]:
    """Read everything that decides what F-curves play; yields per F-curve."""
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
"""Properties of constraints and modifiers without effect on their result."""


def values(
    group: Any, path: str, moved: Collection[tuple[str, int]], left_out: Collection[str] = ()
) -> tuple[Any, ...]:
    """Values of a group of properties, without animated ones.

    Args:
        group: a property group, a constraint or a modifier.
        path: its data path from the data-block.
        moved: animated data paths and components.
        left_out: names of further properties to leave out.
    """
    every: list[Any] = []
    for name, sort in fields(type(group)):
        if name in left_out:
            continue
        value = getattr(group, name)
        if name == "kind" and value == "NONE":  # no limit, whatever its other fields hold
            return (value,)
        every.append(_value(value, sort, f"{path}.{name}", moved, left_out))
    return tuple(every)


def channel_values(owner: Any, names: Iterable[str], path: str, moved: Components) -> tuple[Any, ...]:
    """Values of channels by name, without animated components."""
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
    """Names and sorts of a group's properties, by name, whatever order declares them; `kind` comes first."""
    properties: Any = group.bl_rna.properties  # type: ignore[attr-defined]
    sorts = []
    for name, field in properties.items():
        if name != "rna_type" and not field.is_hidden:
            sort = str(field.type)
            if getattr(field, "is_array", False):
                sort = "MATRIX" if field.subtype == "MATRIX" else "ARRAY"
            sorts.append((name, sort))
    return tuple(sorted(sorts, key=lambda pair: (pair[0] != "kind", pair)))


KeysOf: TypeAlias = Callable[[Any], Sequence[Curves]]
"""Gives the F-curves of a data-block, by action."""
PathsOf: TypeAlias = Callable[[Any], frozenset[str]]
"""Gives the animated data paths of a data-block."""

PLACE = ("location", "rotation_mode", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
DELTAS = ("delta_location", "delta_rotation_euler", "delta_rotation_quaternion", "delta_scale")
INHERITED = ("use_inherit_rotation", "inherit_scale", "use_local_location", "use_relative_parent")
SHAPE = ("value", "mute")
PATH_TIME = ("use_path", "eval_time", "path_duration")
NOT_OF_STRIPS = frozenset(
    ("active", "select", "fcurves", "strip_time", "action_slot", "action_suitable_slots")
)


def mover_values(
    armature_object: bpy.types.Object, posed: Collection[str], keys_of: KeysOf
) -> Work[list[tuple[Any, ...]]]:
    """Values of everything that moves targets, poles, chains or the armature; yields per mover.

    Args:
        posed: names of its bones whose channels a bake replaces; left out.
        keys_of: gives the F-curves of a data-block.
    """
    every: list[tuple[Any, ...]] = []
    moved_of, drivers_of = (
        cache(lambda data_block: _moved(data_block, keys_of)),
        cache(dependence.drivers_by_bone),
    )
    paths_of = cache(lambda data_block: frozenset(path for path, _ in moved_of(data_block)))
    seen = set()
    for mover in dependence.all_movers(armature_object):
        yield
        data_block = mover.data_block
        if data_block not in seen:
            seen.add(data_block)
            every.append(
                (data_block.name_full, [each.checksum for each in keys_of(data_block)], *_strips(data_block))
            )
        is_posed = data_block == armature_object and mover.bone in posed
        every.append((mover.bone, *_parent(mover), *_placed(mover, moved_of(data_block), is_posed)))
        pose = data_block.pose if mover.bone else None
        bone = None if pose is None else pose.bones.get(mover.bone)
        for curve in drivers_of(data_block).get("" if bone is None else str(bone.path_from_id()), ()):
            driver = curve.driver
            content = result_of(read_curves([curve]))
            every.append((driver.type, driver.expression, driver.use_self, content))
            for variable in driver.variables:
                every.append(tuple(_variable(variable, paths_of, keys_of)))
    return every


def _moved(data_block: Any, keys_of: KeysOf) -> Components:
    """Components of a data-block that keys and drivers move."""
    driven = frozenset((curve.data_path, curve.array_index) for curve in channels.drivers_of(data_block))
    return driven.union(*(each.moved for each in keys_of(data_block)))


def _placed(mover: Mover, moved: Components, is_posed: bool) -> Iterator[Any]:
    """Channels without animation, and constraints."""
    data_block = mover.data_block
    if isinstance(data_block, bpy.types.Curve):
        yield channel_values(data_block, PATH_TIME, "", moved)
    if isinstance(data_block, bpy.types.Key):
        for block in data_block.key_blocks:
            yield block.name, channel_values(block, SHAPE, f"{block.path_from_id()}.", moved)
    if not isinstance(data_block, bpy.types.Object):
        return
    is_bone = bool(mover.bone) and data_block.pose is not None  # a target may be named as if it had bones
    owner: Any = data_block.pose.bones.get(mover.bone) if is_bone else data_block
    if owner is None:
        return
    path = f"{owner.path_from_id()}." if is_bone else ""
    if not is_posed:
        yield channel_values(owner, PLACE if is_bone else PLACE + DELTAS, path, moved)
    for constraint in clamps.user_constraints(owner):
        yield constraint.type, values(constraint, constraint.path_from_id(), moved, SHOWN_ONLY)


def _parent(mover: Mover) -> Iterator[Any]:
    """The parent, and the place of a bone at rest."""
    data_block = mover.data_block
    if not isinstance(data_block, bpy.types.Object):
        return
    if not mover.bone:
        yield (
            data_block.parent and data_block.parent.name_full,
            data_block.parent_type,
            data_block.parent_bone,
        )
        yield tuple(map(tuple, data_block.matrix_parent_inverse)), tuple(data_block.parent_vertices)
    elif data_block.pose is not None and mover.bone in data_block.pose.bones:
        bone = data_block.pose.bones[mover.bone].bone
        yield bone.parent and bone.parent.name, tuple(map(tuple, bone.matrix_local))
        yield tuple(getattr(bone, name) for name in INHERITED)


def _strips(data_block: Any) -> Iterator[Any]:
    """Settings of the NLA strips of a data-block."""
    animation = data_block.animation_data
    if animation is None or not animation.use_nla:
        return
    yield animation.action_blend_type, animation.action_influence, animation.action_extrapolation
    for track in animation.nla_tracks:
        yield track.mute, track.is_solo
        for strip in track.strips:
            moved = {(".influence", 0)} if strip.use_animated_influence else ()
            yield values(strip, "", moved, NOT_OF_STRIPS), result_of(read_curves(strip.fcurves)).checksum


def _variable(variable: Any, paths_of: PathsOf, keys_of: KeysOf) -> Iterator[Any]:
    """The source of a driver's variable, and its value if nothing animates it."""
    yield variable.name, variable.type
    for target in variable.targets:
        yield values(target, "", ())
        data_block, path = target.id, target.data_path
        if data_block is None or variable.type != "SINGLE_PROP":
            continue
        yield [each.checksum for each in keys_of(data_block)]
        whole = (path, path.rpartition("[")[0], path.rpartition(".")[0])  # of a component, such as location.x
        if isinstance(data_block, bpy.types.Scene) or paths_of(data_block).intersection(whole):
            continue
        with suppress(ValueError):  # the path leads nowhere, and the driver is invalid
            yield np.array(data_block.path_resolve(path)).tolist()


_known: dict[tuple[int, int], Curves] = {}
"""Cache by the session ids of an action and of the data-block it animates."""
_movers: dict[int, str] = {}
"""Cached fingerprint of movers, by the session id of the armature object."""


def state_of(armature_object: bpy.types.Object) -> Work[str]:
    """Fingerprint of everything that a bake of the armature depends on, but for its options.

    Yields per constraint, bone, F-curve and mover.
    """
    group = armature_object.ccd_rig
    drivers = channels.drivers_of(armature_object)
    moved = frozenset((curve.data_path, curve.array_index) for curve in drivers)
    moved = moved.union(*(each.moved for each in (yield from _keys_of(armature_object))))
    rows, bones = [], []
    for i, row in enumerate(group.constraints):
        rows.append(values(row, f"ccd_rig.constraints[{i}]", moved))
        yield
    chains = [constraint_list.chain_of(armature_object, row) for row in group.constraints]
    chain_bones = {bone.name: bone for chain in chains for bone in chain}
    for bone in chain_bones.values():
        of_bone = values(bone.ccd_rig, f"{bone.path_from_id()}.ccd_rig", moved)
        locks: list[Any] = [tuple(bone.lock_location), tuple(bone.lock_rotation)]
        locks += [bone.lock_rotation_w, bone.lock_rotations_4d, bone.bone.use_connect]
        bones.append((bone.name, bone.bone.length, bone.rotation_mode, locks, of_bone))
        yield
    solver = values(group.solver, "ccd_rig.solver", moved)
    times = {scene: scene.render.frame_map_old / scene.render.frame_map_new for scene in bpy.data.scenes}
    if len({*times.values()}) > 1:  # `users_scene` looks at all objects of all scenes
        times = {scene: times[scene] for scene in armature_object.users_scene}
    ids = armature_object.session_uid
    _follow_changes()
    movers = _movers.get(ids)  # an edit between two items clears the cache
    if movers is None:
        contents = yield from mover_values(
            armature_object, chain_bones.keys(), lambda data_block: result_of(_keys_of(data_block))
        )
        movers = _movers[ids] = start.fingerprint(*contents)
    rates = sorted({*times.values()})
    return start.fingerprint(rows, bones, solver, group.body, group.body_helps, rates, movers)


def present_state(armature_object: bpy.types.Object) -> str:
    """Return `state_of` an armature, with edits that Blender has not evaluated yet."""
    forget()
    return result_of(state_of(armature_object))


def store_report(
    armature_object: bpy.types.Object, report: BakeReport, undo: contextlib.ExitStack
) -> Work[None]:
    """Store the report for the panel; `undo` gets the callback that takes it back."""
    group, worst = armature_object.ccd_rig.report, report.worst()
    stored = {
        "words": report.summary(),
        "worst_frame": worst.frame,
        "worst_constraint": worst.constraint,
        "unsolved": report.unsolved_count(),
        "check": "" if report.check is None else report.check.words(),
        "mismatches": len(report.mismatches()),
        "findings": to_json(report.findings),
    }
    before = {
        name: getattr(group, name) if group.is_property_set(name) else None for name in (*stored, "state")
    }
    undo.callback(_restore_fields, group, before)
    for name, value in stored.items():
        setattr(group, name, value)
    forget()
    yield
    group.state = yield from state_of(armature_object)


def _restore_fields(group: bpy.types.PropertyGroup, fields: dict[str, object]) -> None:
    for name, value in fields.items():
        if value is None:
            group.property_unset(name)
        else:
            setattr(group, name, value)


def is_stale(armature_object: bpy.types.Object) -> bool:
    """Whether anything has changed since the armature's last bake."""
    report = armature_object.ccd_rig.report
    return bool(report.words) and report.state != result_of(state_of(armature_object))


def _keys_of(data_block: Any) -> Work[list[Curves]]:
    """Content of each action that plays on a data-block; yields per F-curve that is read."""
    by_action = []
    for action, curves in channels.played(data_block):
        if not isinstance(action, bpy.types.Action):  # a strip without one
            continue
        ids = action.session_uid, data_block.session_uid
        if ids not in _known:
            _follow_changes()
            _known[ids] = yield from read_curves(curves)
        by_action.append(_known[ids])
    return by_action


_EVALUATIONS = Handlers()  # registered while anything is cached


def _follow_changes() -> None:
    """Listen to changes of what is about to be cached, also where a script bakes by itself."""
    use()
    _EVALUATIONS.register()


@_EVALUATIONS.on("depsgraph_update_post")
def _forget_changed(_scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    _movers.clear()
    if not depsgraph.id_type_updated("ACTION"):
        return
    changed = {update.id.original.session_uid for update in depsgraph.updates}
    for ids in [ids for ids in _known if changed.intersection(ids)]:
        del _known[ids]


_HANDLERS = Handlers()


@_HANDLERS.on("undo_post", "redo_post")
def forget(*_arguments: object) -> None:
    """Clear the caches, after undo or an edit that Blender has not evaluated yet."""
    _known.clear()
    _movers.clear()


@_HANDLERS.on("load_post")
def _forget_file(*_arguments: object) -> None:
    """Clear the caches and stop listening, as another file is open."""
    forget()
    _EVALUATIONS.unregister()


register = _HANDLERS.register


def unregister() -> None:
    """Stop listening."""
    _HANDLERS.unregister()
    _forget_file()
    fields.cache_clear()
