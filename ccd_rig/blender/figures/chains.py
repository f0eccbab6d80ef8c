# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures that are one row of bones, such as tails and snakes: what hangs on them is small beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import words
from .limbs import LEAST_LIMB
from .role import Kind, Part, Role
from .skeleton_tree import SkeletonTree
from .symmetry import ends, joints
from .words import Clue


def chain(tree: SkeletonTree) -> tuple[Kind, dict[str, Role]]:
    """The roles of a row that goes one way from its root, or two; UNKNOWN and none where there are more."""
    roots = tree.children[""]
    if len(roots) != 1:
        return Kind.UNKNOWN, {}
    ways = _lengths(tree)
    least = LEAST_LIMB * ways[roots[0]]
    stem, forks = _row(tree, ways, roots[0], least)
    if not forks:
        return (Kind.CHAIN, _one_way(tree, _without_root(stem))) if len(stem) > 2 else (Kind.UNKNOWN, {})
    rows = [_row(tree, ways, name, least) for name in forks]
    apart = len(rows) == 2 and not any(further or len(row) < 2 for row, further in rows)
    if not apart or max(ways[roots[0]] - ways[name] for name in stem) > least:
        return Kind.UNKNOWN, {}
    return Kind.CHAIN, _two_ways(tree, [row for row, _ in rows])


def _lengths(tree: SkeletonTree) -> dict[str, float]:
    """By bone, the length of the longest way from its start down to an end."""
    places, tips = joints(tree), ends(tree)
    lengths: dict[str, float] = {}
    for name in reversed([each for each in tree.below("") if each]):
        further = [(places[each] - places[name]).length + lengths[each] for each in tree.children[name]]
        lengths[name] = max(further, default=(tips[name] - places[name]).length)
    return lengths


def _row(
    tree: SkeletonTree, ways: Mapping[str, float], first: str, least: float
) -> tuple[list[str], list[str]]:
    """Bones from one on to the last, to one that only small bones hang on, or to a fork; what it forks to."""
    row = [first]
    while children := tree.children[row[-1]]:
        large = [name for name in children if ways[name] >= least]
        if len(children) > 1 and len(large) != 1:
            return row, large
        row.append(large[0] if large else children[0])
    return row, []


def _without_root(row: Sequence[str]) -> list[str]:
    """A row without a root that carries it, if enough is left."""
    is_root = words.says(row[0], Clue.ROOT) and words.read(row[0]).part is None
    return list(row[1:] if is_root and len(row) > 3 else row)


def _head_of(tree: SkeletonTree, row: Sequence[str]) -> str:
    """The bone of a row that is called a head, carries a face, or has several small bones at its end."""
    named = [name for name in row if words.read(name).part is Part.HEAD]
    faces = [
        name
        for name in row
        if any(words.says(child, Clue.FACE) for child in tree.children[name] if child not in row)
    ]
    crowned = [row[-1]] if len(tree.children[row[-1]]) > 1 else []
    return next(iter([*named, *faces, *crowned]), "")


def _one_way(tree: SkeletonTree, row: Sequence[str]) -> dict[str, Role]:
    """A head at the end is the end of a spine, one at the root the beginning of a tail."""
    head = _head_of(tree, row)
    if not head:
        return _roles(Part.TAIL, row)
    place = row.index(head)
    if 2 * place >= len(row):
        return _roles(Part.SPINE, row[:place]) | {head: Role(Part.HEAD)}
    return {head: Role(Part.HEAD)} | _roles(Part.TAIL, row[place + 1 :])


def _two_ways(tree: SkeletonTree, rows: Sequence[Sequence[str]]) -> dict[str, Role]:
    """The row with a head is the front, the other one the tail; without any both are tails."""
    heads = [_head_of(tree, row) for row in rows]
    tails = [words.read(row[0]).part is Part.TAIL for row in rows]
    if bool(heads[0]) == bool(heads[1]):
        heads = [head if tails[1 - place] else "" for place, head in enumerate(heads)]
    roles: dict[str, Role] = {}
    number = 0
    for row, head in zip(rows, heads, strict=True):
        if head:
            roles |= _roles(Part.SPINE, row[: row.index(head)]) | {head: Role(Part.HEAD)}
        else:
            roles |= _roles(Part.TAIL, row, number)
            number += 1
    return roles


def _roles(part: Part, names: Sequence[str], number: int = 0) -> dict[str, Role]:
    return {name: Role(part, index=index, number=number) for index, name in enumerate(names)}
