# SPDX-License-Identifier: GPL-3.0-or-later
"""New constraints for selected bones: reaching, with a chain each, or planted, with one root bone for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import bpy

from ...errors import RigError
from . import constraint_list, overrides
from .constraint_kinds import KINDS, first_root_bone_chain_length, kind_of, set_kind
from .constraint_values import PLANT, Holds, Kind


class NewRow(NamedTuple):
    """Constraint to add.

    Attributes:
        tip: name of its bone.
        chain_length: number of bones, counted from the tip; 0 goes up to the root.
        use_tail: whether the effector is the tail of the tip, or its head.
    """

    tip: str
    chain_length: int
    use_tail: bool


def new_rows(
    armature_object: bpy.types.Object, tips: Sequence[str], kind: Kind, chain_length: int | None = None
) -> tuple[tuple[NewRow, ...], Mapping[str, str]]:
    """Choose constraints for bones, except bones in the chain of another one.

    Args:
        armature_object: the armature.
        tips: names of the bones.
        kind: of the constraints.
        chain_length: for all constraints; None: by kind and limb.

    Returns:
        The constraints, and {bone without a constraint: tip of the chain that it is in}.
    """
    rows = [_row(armature_object, tip, kind, chain_length) for tip in tips]
    turned = {
        bone.name: row.tip
        for row in rows
        for bone in constraint_list.chain(armature_object, row.tip, row.chain_length)[1:]
    }
    return tuple(row for row in rows if row.tip not in turned), {
        tip: turned[tip] for tip in tips if tip in turned
    }


def _row(armature_object: bpy.types.Object, tip: str, kind: Kind, chain_length: int | None) -> NewRow:
    if chain_length is None:
        chain_length = kind.chain_length(armature_object, tip)
    is_chain = kind.reaches and chain_length != 1
    use_tail = not (is_chain and constraint_list.has_guessed_tail(armature_object.pose.bones[tip]))
    return NewRow(tip, chain_length, use_tail)


def words(
    armature_object: bpy.types.Object, rows: Sequence[NewRow], in_chains: Mapping[str, str]
) -> Iterator[str]:
    """Describe the result of `new_rows`, in clauses of a sentence."""
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
    """Result of planting bones.

    Attributes:
        names: constraints that plant the bones, in the order of the bones.
        fresh: constraints among `names` that did not plant their bones before.
        root_bone: name of the bone that carries the figure.
        switched: constraints among `names` that had another kind before.
        moved: constraints of bones planted before, whose chains now end at `root_bone` too.
        stopped: bones whose slides were switched off: planted bones shift the root bone alone.
    """

    names: tuple[str, ...]
    fresh: tuple[str, ...]
    root_bone: str
    switched: tuple[str, ...]
    moved: tuple[str, ...]
    stopped: tuple[str, ...]


def plant(armature_object: bpy.types.Object, tips: Sequence[str], holds: Holds) -> Planted:
    """Plant bones by a constraint each, with one root bone for all.

    The first constraint of a bone changes its kind; a bone without one gets a new constraint. They lie on the
    armature's Ground, if one is chosen.

    Args:
        armature_object: carries the constraints.
        tips: names of the bones, at least one.
        holds: fixed components of the bones that were not planted before.

    Raises:
        RigError: no bone carries all of them. Nothing has changed then.
    """
    rows: Any = armature_object.ccd_rig.constraints
    indices = {tip: _row_index(rows, tip) for tip in tips}
    others = [row for row in rows if row.kind == PLANT and row.enabled and row.tip not in indices]
    root_bone = _root_bone(armature_object, [*tips, *(row.tip for row in others)])
    moved = [row.name for row in others if _end_chain_at(armature_object, row, root_bone)]
    names, fresh, switched = [], [], []
    for tip, index in indices.items():
        # Rows are looked up by index: adding one moves the rest in memory.
        row = rows[index] if index >= 0 else constraint_list.add(armature_object, tip, tip)
        if row.kind != PLANT:
            if index >= 0:
                switched.append(row.name)
            set_kind(row, KINDS[PLANT])
            row.plant_ground, row.plant_height, row.plant_rotation = holds
            row.plant_on_ground = armature_object.ccd_rig.ground.kind != "REST"
            fresh.append(row.name)
        row.enabled = True
        _end_chain_at(armature_object, row, root_bone)
        names.append(row.name)
    stopped = _stop_slides(armature_object, names)
    return Planted(tuple(names), tuple(fresh), root_bone, tuple(switched), tuple(moved), stopped)


def hold_height(armature_object: bpy.types.Object, names: Sequence[str]) -> None:
    """Fix the height of the bones that constraints plant."""
    for name in names:
        armature_object.ccd_rig.constraints[name].plant_height = True
    overrides.keep(armature_object)


def _stop_slides(armature_object: bpy.types.Object, names: Sequence[str]) -> tuple[str, ...]:
    """Switch off the slides of all bones in the chains of constraints; return the names of these bones."""
    rows = armature_object.ccd_rig.constraints
    chains = (constraint_list.chain(armature_object, rows[n].tip, rows[n].chain_length) for n in names)
    sliding = {bone.name: bone for chain in chains for bone in chain if any(bone.ccd_rig.use_slide)}
    for bone in sliding.values():
        bone.ccd_rig.use_slide = (False, False, False)
    overrides.keep(armature_object)
    return tuple(sliding)


def _row_index(rows: Any, tip: str) -> int:
    """Return the index of the constraint that plants a bone, else of its first one; -1 for none."""
    indices = [index for index, row in enumerate(rows) if row.tip == tip and not kind_of(row).balances]
    return next((i for i in indices if rows[i].kind == PLANT), indices[0] if indices else -1)


def _root_bone(armature_object: bpy.types.Object, tips: Sequence[str]) -> str:
    """Return the highest root bone that one of the tips would have alone and that is above all of them."""
    chains = {tip: constraint_list.chain(armature_object, tip) for tip in tips}
    candidates = []
    for tip, chain in chains.items():
        length = first_root_bone_chain_length(armature_object, tip)
        if len(chain) > 1:
            candidates.append(chain[(length or len(chain)) - 1])
    for bone in sorted(candidates, key=lambda candidate: len(candidate.parent_recursive)):
        if all(bone in chain[1:] for chain in chains.values()):
            return str(bone.name)
    raise RigError(
        f"No bone carries {', '.join(repr(tip) for tip in tips)}: select feet that hang on the same hips"
    )


def _end_chain_at(armature_object: bpy.types.Object, row: Any, root_bone: str) -> bool:
    """Make the chain of a constraint end at a root bone; whether that changed its length."""
    names = [bone.name for bone in constraint_list.chain(armature_object, row.tip)]
    length = (names.index(root_bone) + 1) % len(names)
    end = constraint_list.chain(armature_object, row.tip, row.chain_length)[-1]
    if end.name == root_bone:
        return False
    row.chain_length = length
    return True
