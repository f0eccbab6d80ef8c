# SPDX-License-Identifier: GPL-3.0-or-later
"""Constraints that selected bones get: a tip each, with a chain that suits it; or planted, with one root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import bpy

from ...errors import RigError
from . import constraint_list, limbs, overrides
from .constraint_values import Holds, Kind


class NewRow(NamedTuple):
    """A constraint to add.

    Attributes:
        tip: name of its bone.
        chain_length: how many bones may turn, counted from it; 0 goes up to the root.
        use_tail: whether the bone's tail is what reaches, or its head.
    """

    tip: str
    chain_length: int
    use_tail: bool


def new_rows(
    armature_object: bpy.types.Object, tips: Sequence[str], kind: Kind, chain_length: int | None = None
) -> tuple[tuple[NewRow, ...], Mapping[str, str]]:
    """Constraints for bones, and which bones need none: those in the chain of another one, each with its tip.

    Args:
        armature_object: the armature.
        tips: names of the bones.
        kind: of the constraints.
        chain_length: for all of them; None: what suits each.
    """
    rows = [_suited(armature_object, tip, kind, chain_length) for tip in tips]
    turned = {
        bone.name: row.tip
        for row in rows
        for bone in constraint_list.chain(armature_object, row.tip, row.chain_length)[1:]
    }
    return tuple(row for row in rows if row.tip not in turned), {
        tip: turned[tip] for tip in tips if tip in turned
    }


def _suited(armature_object: bpy.types.Object, tip: str, kind: Kind, chain_length: int | None) -> NewRow:
    if chain_length is None:
        chain_length = constraint_list.CHAIN_LENGTHS[kind](armature_object, tip)
    guessed = kind is Kind.REACH and chain_length != 1
    use_tail = not (guessed and limbs.has_guessed_tail(armature_object.pose.bones[tip]))
    return NewRow(tip, chain_length, use_tail)


def words(
    armature_object: bpy.types.Object, rows: Sequence[NewRow], in_chains: Mapping[str, str]
) -> Iterator[str]:
    """What `new_rows` has found, in short parts of a sentence."""
    chains = {row.tip: constraint_list.chain(armature_object, row.tip, row.chain_length) for row in rows}
    for tip, chain in chains.items():
        if len(chain) > 1:
            yield f"'{tip}' with {len(chain)} bones up to '{chain[-1].name}'"
    if alone := [tip for tip, chain in chains.items() if len(chain) == 1]:
        yield f"alone in their chains, so that they only turn towards their targets: {_listed(alone)}"
    if ends := [row.tip for row in rows if not row.use_tail]:
        yield f"reaching with their heads, since importers guess such tails: {_listed(ends)}"
    if in_chains:
        yield f"not added, in the chain of another: {_listed(list(in_chains))}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


class Planted(NamedTuple):
    """What became of the rows.

    Attributes:
        names: of the constraints that plant the bones, in their order.
        fresh: names of those of them that did not plant their bones before.
        root_bone: name of the bone that carries the figure.
        switched: names of those of them that were of another kind.
        moved: names of other constraints whose chain now ends at that bone too.
        stopped: names of bones whose slides were switched off: planted bones shift the one that carries the
            figure, and those between may not be shifted.
    """

    names: tuple[str, ...]
    fresh: tuple[str, ...]
    root_bone: str
    switched: tuple[str, ...]
    moved: tuple[str, ...]
    stopped: tuple[str, ...]


def plant(armature_object: bpy.types.Object, tips: Sequence[str], holds: Holds) -> Planted:
    """Let each bone have a constraint that plants it, all of them with the same root bone.

    A bone's own constraint of another kind is switched, the first of several; else one is added. New ones are
    on the armature's Ground, if one is chosen.

    Args:
        armature_object: carries the constraints.
        tips: names of the bones, at least one.
        holds: which parts of the bones are held, where a constraint did not plant its bone before.

    Raises:
        RigError: no bone carries them all. Nothing has changed then.
    """
    rows: Any = armature_object.ccd_rig.constraints
    own = {tip: _row_of(rows, tip) for tip in tips}
    others = [row for row in rows if row.kind == Kind.PLANT and row.enabled and row.tip not in own]
    root_bone = _root_bone(armature_object, [*tips, *(row.tip for row in others)])
    moved = [row.name for row in others if _end_at(armature_object, row, root_bone)]
    names, fresh, switched = [], [], []
    for tip, index in own.items():
        # Rows are found by their place: adding one moves the others in memory.
        row = rows[index] if index >= 0 else constraint_list.add(armature_object, tip, tip)
        if row.kind != Kind.PLANT:
            if index >= 0:
                switched.append(row.name)
            constraint_list.set_kind(row, Kind.PLANT)
            row.plant_ground, row.plant_height, row.plant_rotation = holds
            row.plant_on_ground = armature_object.ccd_rig.ground.kind != "REST"
            fresh.append(row.name)
        row.enabled = True
        _end_at(armature_object, row, root_bone)
        names.append(row.name)
    stopped = _stop(armature_object, names)
    return Planted(tuple(names), tuple(fresh), root_bone, tuple(switched), tuple(moved), stopped)


def hold_height(armature_object: bpy.types.Object, names: Sequence[str]) -> None:
    """Let constraints hold the height of the bones that they plant."""
    for name in names:
        armature_object.ccd_rig.constraints[name].plant_height = True
    overrides.keep(armature_object)


def _stop(armature_object: bpy.types.Object, names: Sequence[str]) -> tuple[str, ...]:
    """Switch off the slides of all bones in the chains of constraints; names of those that had some."""
    rows = armature_object.ccd_rig.constraints
    chains = (constraint_list.chain(armature_object, rows[n].tip, rows[n].chain_length) for n in names)
    sliding = {bone.name: bone for chain in chains for bone in chain if any(bone.ccd_rig.use_slide)}
    for bone in sliding.values():
        bone.ccd_rig.use_slide = (False, False, False)
    overrides.keep(armature_object)
    return tuple(sliding)


def _row_of(rows: Any, tip: str) -> int:
    """Place of a bone's own constraint: one that plants it, else the first of another kind; -1 for none."""
    own = [index for index, row in enumerate(rows) if row.tip == tip and row.kind != Kind.BALANCE]
    return next((index for index in own if rows[index].kind == Kind.PLANT), own[0] if own else -1)


def _root_bone(armature_object: bpy.types.Object, tips: Sequence[str]) -> str:
    """The highest of the bones that would carry the figure over one of these, if it is above them all."""
    chains = {tip: constraint_list.chain(armature_object, tip) for tip in tips}
    found = []
    for tip, whole in chains.items():
        length = constraint_list.first_root_bone_chain_length(armature_object, tip)
        if len(whole) > 1:
            found.append(whole[(length or len(whole)) - 1])
    for bone in sorted(found, key=lambda each: len(each.parent_recursive)):
        if all(bone in whole[1:] for whole in chains.values()):
            return str(bone.name)
    raise RigError(
        f"No bone carries {', '.join(repr(tip) for tip in tips)}: select feet that hang on the same hips"
    )


def _end_at(armature_object: bpy.types.Object, row: Any, root_bone: str) -> bool:
    """Let a constraint's chain end at a bone above its own; whether it did not."""
    whole = constraint_list.chain(armature_object, row.tip)
    names = [bone.name for bone in whole]
    length = (names.index(root_bone) + 1) % len(whole)
    end = constraint_list.chain(armature_object, row.tip, row.chain_length)[-1]
    if end.name == root_bone:
        return False
    row.chain_length = length
    return True
