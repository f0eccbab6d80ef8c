# SPDX-License-Identifier: GPL-3.0-or-later
"""Which constraints selected bones get: a tip each, with a chain and an end that suit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import bpy

from . import constraint_list, limbs
from .constraint_values import Kind


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
