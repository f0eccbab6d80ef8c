# SPDX-License-Identifier: GPL-3.0-or-later
"""Blender's constraints that pose chains, taken over as rows: each original is muted, never deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import bpy

from ...errors import RigError
from ..keys import copied_curves
from ..limit_sources import ik_limits
from ..properties import constraint_list
from ..properties.names_in_words import named
from ..rig import clamps
from . import ik, spline, tracking
from .conversion import Conversion, NewRow, NotConverted

KINDS = ("IK", "DAMPED_TRACK", "SPLINE_IK")
"""Types of Blender's constraints that rows can take the place of."""
MOST = 3
"""Reasons that a refusal as a whole names."""


Found = list[tuple[bpy.types.PoseBone, Any, Conversion]]


@dataclass(frozen=True)
class Converted:
    """What has become of the constraints.

    Attributes:
        rows: names of the new rows.
        originals: how many constraints they stand for.
        notes: what is not as it was, and what was not converted and why; sentences that name the constraint.
    """

    rows: tuple[str, ...]
    originals: int
    notes: tuple[str, ...]


def candidates(armature_object: bpy.types.Object, bones: Collection[str] | None = None) -> Iterator[Any]:
    """Unmuted constraints of `KINDS`, each as (bone, constraint): of bones of these names, or of all."""
    posed = armature_object.pose  # a new armature has none until Blender has evaluated it
    for bone in () if posed is None else posed.bones:
        if bones is None or bone.name in bones:
            for constraint in clamps.user_constraints(bone):
                if constraint.type in KINDS and not constraint.mute:
                    yield bone, constraint


def is_offered(armature_object: bpy.types.Object) -> bool:
    """Whether panels offer to convert: a bone with such a constraint can be turned by hand.

    One whose rotation is locked belongs to a rig's own mechanism, such as those that Rigify generates.
    """
    return any(not all(bone.lock_rotation) for bone, _ in candidates(armature_object))


def convert(
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    bones: Collection[str] | None,
    every: int,
    takes_limits: bool = True,
) -> Converted:
    """Let rows take the place of Blender's constraints, with their influence and what animates it.

    Args:
        context: says the scene and the frame, at which targets on curves are placed.
        armature_object: editable, not in Edit Mode.
        bones: names of those whose constraints are converted; None: all.
        every: how many bones a target of a Spline IK serves.
        takes_limits: whether bones that Blender's IK turns get the limits, locks and stiffness that they have
            for it, where they have none here.

    Raises:
        RigError: nothing can be converted; says why. Nothing has changed then.
    """
    found, notes = [], []
    for bone, constraint in candidates(armature_object, bones):
        try:
            found.append((bone, constraint, _conversion(context, bone, constraint, every)))
        except NotConverted as error:
            notes.append(f"{_name(bone, constraint)} is not converted: {error}")
    found, refused = _not_carried(armature_object, found)
    notes += refused
    if not found:
        more = f"; and {len(notes) - MOST} more" if len(notes) > MOST else ""
        raise RigError("; ".join(notes[:MOST]) + more or _nothing(armature_object, bones))
    rows = []
    for bone, constraint, conversion in found:
        rows += [_add(context, armature_object, bone, constraint, row) for row in conversion.rows]
        constraint.mute = True
        notes += [f"{_name(bone, constraint)}: {note}" for note in conversion.notes]
    notes += _limits(_turned_by_ik(armature_object, found), takes_limits)
    return Converted(tuple(rows), len(found), tuple(notes))


def _turned_by_ik(armature_object: bpy.types.Object, found: Found) -> list[bpy.types.PoseBone]:
    """The bones in chains of IK constraints that have limits, locks or stiffness for it."""
    rows = [row for _, constraint, made in found if constraint.type == "IK" for row in made.rows]
    chains = (constraint_list.chain(armature_object, row.tip, row.chain_length) for row in rows)
    turned = {bone.name for chain in chains for bone in chain}
    return [
        bone for bone in armature_object.pose.bones if bone.name in turned and ik_limits.has_ik_limit(bone)
    ]


def _limits(limited: Sequence[bpy.types.PoseBone], takes: bool) -> list[str]:
    """Take over what bones have for Blender's IK; what became of it, in sentences."""
    if not takes:
        return [f"IK limits, locks and stiffness of {_named(limited)} are not taken over"] if limited else []
    free = [bone for bone in limited if bone.ccd_rig.limit.kind == "NONE" and bone.ccd_rig.stiffness == 0.0]
    kept = [bone for bone in limited if bone not in free]
    notes = [f"{_named(kept)} keep the limits and the stiffness that they have here"] if kept else []
    if free:
        outcome = ik_limits.take_over(free)
        notes += [f"IK limits, locks and stiffness taken over: {_named(free)}", *outcome.notes]
    return notes


def _named(bones: Sequence[bpy.types.PoseBone]) -> str:
    return named([bone.name for bone in bones])


def _conversion(
    context: bpy.types.Context, bone: bpy.types.PoseBone, constraint: Any, every: int
) -> Conversion:
    armature_object: Any = bone.id_data
    influence = constraint.path_from_id("influence")
    if copied_curves.is_moved(armature_object, constraint.path_from_id("mute")):
        raise NotConverted("its Mute has keys or a driver: remove them, and animate its Influence")
    if why := copied_curves.obstacle(armature_object, influence):
        raise NotConverted(f"its Influence {why}")
    if constraint.type == "IK":
        found = ik.conversion(armature_object, bone, constraint)
    elif constraint.type == "SPLINE_IK":
        found = spline.conversion(context, bone, constraint, every)
    else:
        found = tracking.conversion(armature_object, bone, constraint)
    notes = list(found.notes)
    if locked := _locked(armature_object, found.rows):
        notes.append(f"locked rotations hold here: {', '.join(repr(name) for name in locked)}")
    if copied_curves.in_strips(armature_object, influence):
        notes.append(
            "its Influence is also moved by NLA strips, which is not taken over: bring it into the action"
        )
    return replace(found, notes=tuple(notes))


def _locked(armature_object: bpy.types.Object, rows: Sequence[NewRow]) -> list[str]:
    """Names of bones that Blender's IK turns although their rotation is locked.

    Raises:
        NotConverted: no others are in a chain, as in the mechanism of a rig.
    """
    found: dict[str, None] = {}
    for row in rows:
        chain = constraint_list.chain(armature_object, row.tip, row.chain_length)
        locked = [bone.name for bone in chain if all(bone.lock_rotation)]
        if len(locked) == len(chain):
            raise NotConverted("its bones have locked rotations, as a rig's own mechanism has: unlock them")
        found |= dict.fromkeys(locked)
    return list(found)


def _not_carried(armature_object: bpy.types.Object, found: Found) -> tuple[Found, list[str]]:
    """Those that can be baked together, and why others cannot.

    An empty that looks at a target hangs on the parent of its bone: no row may move that.
    """
    chains = {
        bone.name: row.name
        for row in armature_object.ccd_rig.constraints
        if row.enabled
        for bone in constraint_list.chain(armature_object, row.tip, row.chain_length)
    }
    for _, constraint, conversion in found:
        for row in conversion.rows:
            for turned in constraint_list.chain(armature_object, row.tip, row.chain_length):
                chains.setdefault(turned.name, constraint.name)
    kept, notes = [], []
    for bone, constraint, conversion in found:
        above = next((each.name for each in bone.parent_recursive if each.name in chains), "")
        if constraint.type == "DAMPED_TRACK" and above:
            why = f"its bone hangs on '{above}', which '{chains[above]}' turns: bake that first"
            notes.append(f"{_name(bone, constraint)} is not converted: {why}")
        else:
            kept.append((bone, constraint, conversion))
    return kept, notes


def _add(
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    bone: bpy.types.PoseBone,
    constraint: Any,
    new: NewRow,
) -> str:
    """Add a row with the influence of its original; its name."""
    target = None if new.make_target is None else new.make_target(context)
    row = constraint_list.add(armature_object, new.tip, new.tip)
    row.chain_length, row.influence = new.chain_length, constraint.influence
    row.original_bone, row.original_constraint = bone.name, constraint.name
    for field, value in new.fields.items():
        setattr(row, field, value)
    if target is not None:
        row.target = target
    copied_curves.copy(
        armature_object, constraint.path_from_id("influence"), f"{row.path_from_id()}.influence"
    )
    return str(row.name)


def _name(bone: bpy.types.PoseBone, constraint: Any) -> str:
    return f"'{constraint.name}' of bone '{bone.name}'"


def _nothing(armature_object: bpy.types.Object, bones: Collection[str] | None) -> str:
    where = f"'{armature_object.name}'" if bones is None else "the selected bones"
    kinds = "IK, Damped Track or Spline IK constraint"
    return f"No {kinds} of {where} is on: unmute one, or convert other bones"
