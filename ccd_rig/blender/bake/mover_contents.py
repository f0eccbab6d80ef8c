# SPDX-License-Identifier: GPL-3.0-or-later
"""What moves the targets and the chains of an armature, as plain values: places, ties, drivers and keys.

What an action or a driver moves is left out of the values, since it changes with the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, TypeAlias

import bpy
import numpy as np

from ...solvers.stepping import Work, result_of
from ..rig import clamps
from ..scene import dependence
from ..scene.dependence import Mover
from .contents import SHOWN_ONLY, Components, Curves, channel_values, read_curves, values

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
