# SPDX-License-Identifier: GPL-3.0-or-later
"""The two halves of a skeleton: its median plane, and which bones are mirror images of each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mathutils import Vector

from . import words
from .role import RestBone, Side
from .skeleton_tree import SkeletonTree

CLOSE = 0.02
"""Part of the figure's size within which two points are mirror images, or a point lies on the plane."""
NEAR = 0.1
"""Part of their distance to the plane within which two bones close to it are mirror images all the same."""
ENOUGH = 0.6
"""Part of the bones that must have a mirror image, or lie on the plane."""


class Halves(NamedTuple):
    """A skeleton and its median plane.

    Attributes:
        across: unit vector from the right to the left half, or back; which is told by what faces front.
        sides: by bone, 1 or -1 as it lies along `across`, 0 in the middle.
        partners: by bone off the plane, the bone across.
    """

    across: Vector
    sides: Mapping[str, int]
    partners: Mapping[str, str]


def joints(tree: SkeletonTree) -> dict[str, Vector]:
    """Where each bone starts. Tails of imported bones often point nowhere."""
    return {name: Vector(bone.head) for name, bone in tree.bones.items()}


def ends(tree: SkeletonTree) -> dict[str, Vector]:
    """Where each bone ends: at its tail if most tails lead to the next bone; else where it starts."""
    parents = [bone for bone in tree.bones.values() if tree.children[bone.name]]
    leading = sum(any(_leads_to(bone, tree.bones[c]) for c in tree.children[bone.name]) for bone in parents)
    trusted = 2 * leading >= len(parents)
    return {name: Vector(bone.tail if trusted else bone.head) for name, bone in tree.bones.items()}


def _leads_to(bone: RestBone, child: RestBone) -> bool:
    length = (Vector(bone.tail) - Vector(bone.head)).length
    return (Vector(bone.tail) - Vector(child.head)).length <= CLOSE * length


def size_of(points: Sequence[Vector]) -> float:
    """Diagonal of the box round points."""
    lows = [min(point[k] for point in points) for k in range(3)]
    highs = [max(point[k] for point in points) for k in range(3)]
    return (Vector(highs) - Vector(lows)).length


def halves(tree: SkeletonTree, axes: Sequence[Vector]) -> Halves | None:
    """The median plane at a right angle to one of the axes; None for neither mirror images nor names of them.

    Where it is so both ways, as a machine on four legs, names tell, or else it is longer than wide.
    """
    places = joints(tree)
    if len(places) < 3:
        return None
    size = size_of(list(places.values()))
    best: tuple[tuple[float, int, float], Halves] | None = None
    for axis in axes:
        along = [place.dot(axis) for place in places.values()]
        width = round((max(along) - min(along)) / size, 3) if size > 0.0 else 0.0
        for middle in _middles(tree, places, axis):
            score, found = _split(tree, places, axis, middle, CLOSE * size)
            if found.partners and score >= ENOUGH:
                rank = (round(score, 6), _sides_told(found.partners), -width)
                best = (rank, found) if best is None or rank > best[0] else best
    return _with_names(tree, places, axes, best[1] if best else None)


def _with_names(
    tree: SkeletonTree, places: Mapping[str, Vector], axes: Sequence[Vector], split: Halves | None
) -> Halves | None:
    """The halves with pairs that names tell, where a figure stands unevenly at rest; None for too few."""
    partners = dict(split.partners) if split else {}
    for name in tree.below(""):
        other = words.across(name)
        if other != name and other in tree.bones and not {name, other} & set(partners):
            above, beyond = tree.bones[name].parent, tree.bones[other].parent
            if words.across(other) == name and partners.get(above, above) == beyond:
                partners |= {name: other, other: name}
    paired = split.partners if split else {}
    told = {name: words.read(name).side for name in tree.bones}
    lefts = [name for name in partners if told[name] is Side.LEFT]
    matched = len(partners) + sum(side is Side.MIDDLE for side in told.values())
    if not lefts or len(partners) == len(paired) or (split is None and matched < ENOUGH * len(places)):
        return split
    way = sum((places[name] - places[partners[name]] for name in lefts), Vector())
    axis = split.across if split else max(axes, key=lambda each: abs(way.dot(each)))
    left = 1 if way.dot(axis) > 0.0 else -1
    signs = {Side.LEFT: left, Side.RIGHT: -left, Side.MIDDLE: 0}
    sides = {name: signs[side] for name, side in told.items() if name not in paired}
    return Halves(axis, {**(split.sides if split else {}), **sides}, partners)


def _sides_told(partners: Mapping[str, str]) -> int:
    """How many bones' names tell another side than those of the bones across."""
    sides = {name: words.read(name).side for name in partners}
    return sum(sides[one] is not sides[other] for one, other in partners.items())


def _middles(tree: SkeletonTree, places: Mapping[str, Vector], axis: Vector) -> list[float]:
    """Where the plane may stand along an axis: at the root, half way between the outermost joints."""
    along = [place.dot(axis) for place in places.values()]
    roots = [places[name].dot(axis) for name in tree.children[""]]
    half = 0.5 * (min(along) + max(along))
    return [*(root for root in roots[:1] if not math.isclose(root, half, abs_tol=1e-6)), half]


def _split(
    tree: SkeletonTree, places: Mapping[str, Vector], axis: Vector, middle: float, close: float
) -> tuple[float, Halves]:
    """Which part of the bones has its image across the plane, and the halves."""
    offsets = {name: place.dot(axis) - middle for name, place in places.items()}
    spans = _spans(tree, offsets)
    sides = {name: _side(spans[name], close) for name in tree.bones}
    exact = {name: _side(spans[name], NEAR * close) for name in tree.bones}
    partners: dict[str, str] = {}
    ones = [name for name in tree.below("") if exact.get(name, 0) > 0]
    others = [name for name in tree.bones if exact[name] < 0]
    for name in ones:
        image = places[name] - 2.0 * offsets[name] * axis
        near = close if sides[name] > 0 else NEAR * offsets[name]
        fits = [
            (distance, other)
            for other in others
            if other not in partners
            and (distance := (places[other] - image).length) <= near
            and _alike(tree, partners, name, other)
        ]
        if fits:
            other = min(fits)[1]
            partners |= {name: other, other: name}
    sides |= {name: exact[name] for name in partners}
    matched = len(partners) + sum(side == 0 for side in sides.values())
    return matched / len(places), Halves(axis, sides, partners)


def _alike(tree: SkeletonTree, partners: Mapping[str, str], one: str, other: str) -> bool:
    """Whether two bones hang on the same bone, or on partners, and carry as many bones."""
    above, beyond = tree.bones[one].parent, tree.bones[other].parent
    return (partners.get(above, above) == beyond) and len(tree.children[one]) == len(tree.children[other])


def _spans(tree: SkeletonTree, offsets: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """By bone, the least and the greatest offset of it and of all that hangs on it."""
    spans: dict[str, tuple[float, float]] = {}
    for name in reversed([each for each in tree.below("") if each]):
        below = [(offsets[name], offsets[name]), *(spans[child] for child in tree.children[name])]
        spans[name] = (min(low for low, _ in below), max(high for _, high in below))
    return spans


def _side(span: tuple[float, float], close: float) -> int:
    """Of a bone and all that hangs on it: 0 if that lies on the plane, or on both sides of it."""
    return (span[1] > close) - (span[0] < -close)
