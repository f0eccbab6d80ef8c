# SPDX-License-Identifier: GPL-3.0-or-later
"""The limbs of a symmetrical skeleton, in pairs. All points are in a space whose Z points up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from mathutils import Vector

from . import words
from .skeleton_tree import SkeletonTree
from .symmetry import Halves, ends, joints, size_of
from .words import Clue

GROUND = 0.25
"""Part of the height of a limb's root up to which its end counts as on the ground."""
LEAST_LIMB = 0.15
"""Part of the figure's size below which a pair of bones is no limb, but ears, eyes, feathers."""
STEEP = 0.6
"""Legs of a figure with one pair lead sideways by at most this part of their drop; fins lead further."""
DOWN = 0.5
"""Cosine of the angle to the vertical up to which a limb in the air that is called a leg is one."""
ANCHOR = 0.3
"""Part of a limb's length up to which bones that several of them hang on are an anchor, and no limb."""
DIGIT = 0.4
"""Part of the longest row's length from which rows of bones side by side are fingers, not a limb's way on."""


class Skeleton(NamedTuple):
    """A symmetrical skeleton.

    Attributes:
        tree: its bones.
        halves: its median plane.
        places: where each bone starts.
        ends: where each bone ends.
        reaches: by bone, the length of the longest way from its parent's start down to a last bone's end.
        size: diagonal of the box round all points, or those of no wing.
        ground: height of the lowest of them.
    """

    tree: SkeletonTree
    halves: Halves
    places: Mapping[str, Vector]
    ends: Mapping[str, Vector]
    reaches: Mapping[str, float]
    size: float
    ground: float

    def is_middle(self, name: str) -> bool:
        """Whether a bone lies on the median plane."""
        return self.halves.sides.get(name, 1) == 0


class Limb(NamedTuple):
    """A pair of limbs, as the one on the positive side of the plane is.

    Attributes:
        root: middle bone that the pair hangs on, empty for none.
        bones: from the body on to the bone that digits hang on, or to the last.
        digits: chains of bones beyond that.
        base: where the first bone starts.
        end: its lowest point.
    """

    root: str
    bones: tuple[str, ...]
    digits: tuple[tuple[str, ...], ...]
    base: Vector
    end: Vector

    def says(self, clue: Clue) -> bool:
        """Whether a name of a bone before the digits is a clue."""
        return any(words.says(name, clue) for name in self.bones)

    def digits_say(self, clue: Clue) -> bool:
        """Whether a name of a bone of the digits is a clue."""
        return any(words.says(name, clue) for row in self.digits for name in row)


def skeleton(tree: SkeletonTree, halves: Halves) -> Skeleton:
    """Measure a symmetrical skeleton."""
    places = joints(tree)
    tails = ends(tree)
    reaches: dict[str, float] = {}
    for name in reversed([each for each in tree.below("") if each]):
        parent = tree.bones[name].parent
        step = (places[name] - places[parent]).length if parent in places else 0.0
        further = [reaches[child] for child in tree.children[name]]
        reaches[name] = step + (max(further) if further else (tails[name] - places[name]).length)
    points = [*places.values(), *tails.values()]
    ground = min(point.z for point in points)
    return Skeleton(tree, halves, places, tails, reaches, size_of(points), ground)


def limbs(bones: Skeleton) -> list[Limb]:
    """Pairs that are long enough, the longest first."""
    found = []
    for name, side in bones.halves.sides.items():
        parent = bones.tree.bones[name].parent
        starts = not parent or bones.is_middle(parent)
        if side > 0 and starts and name in bones.halves.partners:
            found += [
                limb
                for first in _firsts(bones, name)
                if len((limb := _limb(bones, parent, first)).bones) > 1
                and _length(bones, first) >= LEAST_LIMB * bones.size
            ]
    return sorted(found, key=lambda limb: -_length(bones, limb.bones[0]))


def wings_of(bones: Skeleton, pairs: Sequence[Limb]) -> list[Limb]:
    """Those limbs that are called wings, or spread with rows of feathers to the sides of four steep legs."""
    named = [
        limb
        for limb in pairs
        if limb.says(Clue.WING) or (limb.digits_say(Clue.FEATHER) and not limb.says(Clue.LEG))
    ]
    steep = [limb for limb in pairs if limb not in named and _is_steep(bones, limb)]
    spread = [limb for limb in pairs if limb not in named and limb not in steep]
    if len(spread) == 1 and len(spread[0].digits) > 1 and not is_arm(bones, spread[0]):
        legs = legs_of(without_wings(bones, [*named, *spread]), steep)
        named += spread if len(legs) > 1 else []
    return named


def is_arm(bones: Skeleton, limb: Limb) -> bool:
    """Whether a limb is called an arm, or has digits at its end that are short beside it."""
    if limb.says(Clue.ARM) or limb.digits_say(Clue.ARM):
        return True
    digits = [bones.reaches[row[0]] for row in limb.digits]
    return len(digits) > 1 and len(limb.bones) > 2 and max(digits) < 0.5 * bones.reaches[limb.bones[0]]


def without_wings(bones: Skeleton, wings: Sequence[Limb]) -> Skeleton:
    """The skeleton with its ground and its size as they are without wings, which may hang lower than feet."""
    firsts = {name for limb in wings for name in (limb.bones[0], bones.halves.partners[limb.bones[0]])}
    flying = {name for first in firsts for name in bones.tree.below(first)}
    points = [
        point
        for name in bones.tree.bones
        if name not in flying
        for point in (bones.places[name], bones.ends[name])
    ]
    if not points:
        return bones
    return bones._replace(size=size_of(points), ground=min(point.z for point in points))


def legs_of(bones: Skeleton, pairs: Sequence[Limb]) -> list[Limb]:
    """Those limbs that stand on the ground, or lead down and are called legs."""
    standing = []
    for limb in pairs:
        height = max(limb.base.z - bones.ground, 0.1 * bones.size)
        stands = limb.end.z - bones.ground <= GROUND * height and limb.base.z > limb.end.z
        down = limb.base.z - limb.end.z >= DOWN * (limb.base - limb.end).length
        if stands or (down and limb.says(Clue.LEG) and not limb.says(Clue.ARM)):
            standing.append(limb)
    if len(standing) == 1 and not standing[0].says(Clue.LEG):
        arms = standing[0].says(Clue.ARM) or not _is_steep(bones, standing[0])
        return [] if arms else standing
    return standing


def _is_steep(bones: Skeleton, limb: Limb) -> bool:
    way = limb.base - limb.end
    return abs(way.dot(bones.halves.across)) <= STEEP * abs(way.z)


def _length(bones: Skeleton, first: str) -> float:
    """Length of a limb from where its first bone starts."""
    return max((bones.reaches[child] for child in bones.tree.children[first]), default=0.0)


def _firsts(bones: Skeleton, name: str) -> list[str]:
    """The first bones of limbs from a bone on: several beyond an anchor, which is short beside each."""
    path = _path(bones, name)
    last = path[-1]
    rows = [
        child
        for child in bones.tree.children[last]
        if child in bones.halves.partners and _length(bones, child) >= LEAST_LIMB * bones.size
    ]
    way = sum((bones.places[b] - bones.places[a]).length for a, b in pairwise(path))
    nearest = min((_length(bones, child) for child in rows), default=0.0)
    if len(rows) < 2 or way > ANCHOR * nearest:
        return [name]
    return [first for child in rows for first in _firsts(bones, child)]


def _limb(bones: Skeleton, parent: str, first: str) -> Limb:
    path = _path(bones, first)
    digits = [row for child in bones.tree.children[path[-1]] for row in _rows(bones, child)]
    points = [point for name in bones.tree.below(first) for point in (bones.places[name], bones.ends[name])]
    end = min(points, key=lambda point: point.z)
    return Limb(parent, tuple(path), tuple(digits), bones.places[first], end)


def _path(bones: Skeleton, first: str) -> list[str]:
    """From a bone on to the one that digits hang on, or to the last."""
    path = [first]
    while following := _next(bones, path[-1]):
        path.append(following)
    return path


def _next(bones: Skeleton, name: str) -> str:
    """The bone by which a limb goes on; empty at its end, and where digits begin. Feathers end a wing."""
    further = bones.tree.children[name]
    bare = [child for child in further if not words.says(child, Clue.FEATHER)]
    rows = [child for child in bare if bones.tree.children[child]] or bare
    if not rows:
        return ""
    longest = max(rows, key=lambda child: bones.reaches[child])
    digits = [
        child
        for child in rows
        if child != longest
        and bones.tree.children[child]
        and bones.reaches[child] >= DIGIT * bones.reaches[longest]
    ]
    return "" if digits else longest


def _rows(bones: Skeleton, name: str) -> list[tuple[str, ...]]:
    """The longest row of bones from one on, and further ones that begin on it, as a thumb does on a palm."""
    chain = main_chain(bones, name)
    beside = [
        child
        for each in chain
        for child in bones.tree.children[each]
        if child not in chain and bones.tree.children[child]
    ]
    return [chain, *(row for child in beside for row in _rows(bones, child))]


def main_chain(bones: Skeleton, name: str) -> tuple[str, ...]:
    """A bone and the longest row of bones on it."""
    chain = [name]
    while further := bones.tree.children[chain[-1]]:
        chain.append(max(further, key=lambda child: bones.reaches[child]))
    return tuple(chain)
