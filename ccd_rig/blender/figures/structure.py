# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognition by the rest pose: two halves with limbs in pairs and the trunk between them, or a single row.

A row is a tail or a snake; other bones on it are small beside it. All points are in a space whose Z points
up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from mathutils import Vector

from . import words
from .role import ARM_PARTS, FRONT_PARTS, LEG_PARTS, Kind, Part, Role, Side, SkeletonTree
from .words import Clue

# The median plane, limbs and trunk --------------------------------------------------------------------------

UP = Vector((0.0, 0.0, 1.0))
AXES = (Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)))
"""Normals of planes that may be the median one."""
CLOSE = 0.02
"""Largest error of mirror images, and largest offset of points on the plane, in the figure's size."""
NEAR = 0.1
"""The same for bones close to the plane, in their distances to it."""
ENOUGH = 0.6
"""Smallest share of bones with a mirror image or on the plane."""


class Halves(NamedTuple):
    """A skeleton and its median plane."""

    across: Vector  # unit normal of the plane, to the figure's left or right
    sides: Mapping[str, int]  # {bone: 1 or -1, its side along `across`; 0 in the middle}
    partners: Mapping[str, str]  # {bone off the plane: its mirror image}


def joints(tree: SkeletonTree) -> dict[str, Vector]:
    """{bone: head}. Tails of imported bones are often arbitrary."""
    return {name: Vector(bone.head) for name, bone in tree.bones.items()}


def ends(tree: SkeletonTree) -> dict[str, Vector]:
    """{bone: tail}, or heads instead unless most tails lead to a child's head."""
    parents = [bone for bone in tree.bones.values() if tree.children[bone.name]]
    leading = sum(
        any(
            math.dist(bone.tail, tree.bones[child].head) <= CLOSE * math.dist(bone.tail, bone.head)
            for child in tree.children[bone.name]
        )
        for bone in parents
    )
    trusted = 2 * leading >= len(parents)
    return {name: Vector(bone.tail if trusted else bone.head) for name, bone in tree.bones.items()}


def size_of(points: Sequence[Vector]) -> float:
    """Diagonal of the bounding box."""
    lows = [min(point[k] for point in points) for k in range(3)]
    highs = [max(point[k] for point in points) for k in range(3)]
    return (Vector(highs) - Vector(lows)).length


def halves(tree: SkeletonTree) -> Halves | None:
    """Find the median plane, normal to X or Y; None without mirror images by place or names.

    Of two planes, as of a machine on four legs, names decide, or else the figure is longer than wide.
    """
    places = joints(tree)
    if len(places) < 3:
        return None
    size = size_of(list(places.values()))
    best: tuple[tuple[float, int, float], Halves] | None = None
    for axis in AXES:
        along = [place.dot(axis) for place in places.values()]
        width = round((max(along) - min(along)) / size, 3) if size > 0.0 else 0.0
        # The plane goes through the root, or the middle of the outermost joints.
        root, half = places[tree.children[""][0]].dot(axis), 0.5 * (min(along) + max(along))
        for middle in (half,) if math.isclose(root, half, abs_tol=1e-6) else (root, half):
            score, candidate = _split(tree, places, axis, middle, CLOSE * size)
            if candidate.partners and score >= ENOUGH:
                # A name tells a side where the partner's name has another one.
                told = {name: words.read(name).side for name in candidate.partners}
                count = sum(told[one] is not told[other] for one, other in candidate.partners.items())
                rank = (round(score, 6), count, -width)
                best = (rank, candidate) if best is None or rank > best[0] else best
    return _with_names(tree, places, best[1] if best else None)


def _with_names(tree: SkeletonTree, places: Mapping[str, Vector], split: Halves | None) -> Halves | None:
    """Add pairs by names, for an asymmetrical rest pose; None if there are too few."""
    partners = dict(split.partners) if split else {}
    for name in tree.below(""):
        other = words.across(name)
        if other != name and other in tree.bones and name not in partners and other not in partners:
            above, beyond = tree.bones[name].parent, tree.bones[other].parent
            if words.across(other) == name and partners.get(above, above) == beyond:
                partners |= {name: other, other: name}
    paired = split.partners if split else {}
    named_sides = {name: words.read(name).side for name in tree.bones}
    lefts = [name for name in partners if named_sides[name] is Side.LEFT]
    matched = len(partners) + sum(side is Side.MIDDLE for side in named_sides.values())
    if not lefts or len(partners) == len(paired) or (split is None and matched < ENOUGH * len(places)):
        return split
    way = sum((places[name] - places[partners[name]] for name in lefts), Vector())
    axis = split.across if split else max(AXES, key=lambda each: abs(way.dot(each)))
    left = 1 if way.dot(axis) > 0.0 else -1
    signs = {Side.LEFT: left, Side.RIGHT: -left, Side.MIDDLE: 0}
    sides = {name: signs[side] for name, side in named_sides.items() if name not in paired}
    return Halves(axis, {**(split.sides if split else {}), **sides}, partners)


def _split(
    tree: SkeletonTree, places: Mapping[str, Vector], axis: Vector, middle: float, close: float
) -> tuple[float, Halves]:
    """Return the share of bones with a mirror image or on the plane, and the halves."""
    offsets = {name: place.dot(axis) - middle for name, place in places.items()}
    spans: dict[str, tuple[float, float]] = {}  # smallest and largest offset of a bone and its descendants
    centres: dict[str, Vector] = {}  # of a bone and its descendants; they tell fingers of one wrist apart
    for name in reversed([*tree.below("")]):
        below = [(offsets[name], offsets[name]), *(spans[child] for child in tree.children[name])]
        spans[name] = (min(low for low, _ in below), max(high for _, high in below))
        further = [centres[child] for child in tree.children[name]] or [Vector(tree.bones[name].tail)]
        centres[name] = sum(further, places[name]) / (len(further) + 1)
    sides = {name: _side(spans[name], close) for name in tree.bones}
    exact = {name: _side(spans[name], NEAR * close) for name in tree.bones}
    partners: dict[str, str] = {}
    ones = [name for name in tree.below("") if exact.get(name, 0) > 0]
    for name in ones:
        image = places[name] - 2.0 * offsets[name] * axis
        near = close if sides[name] > 0 else NEAR * offsets[name]
        above, count = tree.bones[name].parent, len(tree.children[name])
        beyond = partners.get(above, above)
        way = centres[name] - places[name]
        way -= 2.0 * way.dot(axis) * axis
        # Of several, one with as many children: what a hand holds is one more.
        fits = [
            (
                len(tree.children[other]) != count,
                distance + (centres[other] - places[other] - way).length,
                other,
            )
            for other in tree.children.get(beyond, tree.children[""])
            if exact[other] < 0
            and other not in partners
            and tree.bones[other].parent == beyond
            and (distance := (places[other] - image).length) <= near
        ]
        if fits:
            other = min(fits)[2]
            partners |= {name: other, other: name}
    sides |= {name: exact[name] for name in partners}
    matched = len(partners) + sum(side == 0 for side in sides.values())
    return matched / len(places), Halves(axis, sides, partners)


def without_props(tree: SkeletonTree, split: Halves) -> SkeletonTree:
    """The skeleton without what one of a pair carries alone, such as a hand its sword."""
    props = [
        name
        for name, bone in tree.bones.items()
        if name not in split.partners
        and (beyond := split.partners.get(bone.parent, ""))
        and len(tree.children[beyond]) < len(tree.children[bone.parent])
    ]
    gone = {each for name in props for each in tree.below(name)}
    return SkeletonTree(bone for bone in tree.bones.values() if bone.name not in gone)


def without_cloth(tree: SkeletonTree) -> SkeletonTree:
    """The skeleton without rows of hair and cloth by their names, which would be limbs, tails or heads."""
    loose: set[str] = set()
    for name in reversed([*tree.below("")]):
        if words.is_loose(name) and loose.issuperset(tree.children[name]):
            loose.add(name)
    return SkeletonTree(bone for bone in tree.bones.values() if bone.name not in loose)


def _side(span: tuple[float, float], close: float) -> int:
    """Side of a bone with its descendants: 0 if they are on the plane, or on both sides."""
    return (span[1] > close) - (span[0] < -close)


GROUND = 0.25
"""Largest height of a limb's end on the ground, in heights of the limb's root."""
LEAST_LIMB = 0.15
"""Smallest length of a limb, in the figure's size; shorter pairs are ears, eyes, feathers."""
LEAST_FIN = 0.05
"""The same of legs, which stand, of fins, and of arms of a body on two legs without longer ones."""
STEEP = 0.6
"""Largest sideways offset of a single pair of legs, in their drop; fins lead further."""
DOWN = 0.5
"""Smallest cosine of the angle to the vertical for a limb that hangs in the air."""
RISE = 0.25
"""Smallest slope of necks in a pair."""
ANCHOR = 0.3
"""Largest length of an anchor, from which several limbs begin, in lengths of the limbs."""
DIGIT = 0.4
"""Smallest length of fingers beside each other, in the length of the longest."""


class Skeleton(NamedTuple):
    """A symmetrical skeleton."""

    tree: SkeletonTree  # its bones
    halves: Halves  # its median plane
    places: Mapping[str, Vector]  # {bone: head}
    ends: Mapping[str, Vector]  # {bone: end}, see `ends`
    lengths: Mapping[str, float]  # {bone: length of the longest path from its head down to an end}
    reaches: Mapping[str, float]  # {bone: the same from its parent's head}
    size: float  # diagonal of the bounding box, wings left out if they are known
    ground: float  # height of the lowest point

    @property
    def along(self) -> Vector:
        """Horizontal direction in the median plane."""
        return Vector(self.halves.across.cross(UP))

    def is_middle(self, name: str) -> bool:
        """Whether a bone lies on the median plane."""
        return self.halves.sides.get(name, 1) == 0


class Limb(NamedTuple):
    """A pair of limbs, described by the one on the positive side of the plane."""

    root: str  # parent of the pair, in the middle; empty for none
    bones: tuple[str, ...]  # from the body to the parent of the digits, or to the last bone
    digits: tuple[tuple[str, ...], ...]  # chains of bones beyond
    base: Vector  # head of the first bone
    tip: Vector  # end of the longest row of bones
    end: Vector  # lowest point

    def says(self, clue: Clue) -> bool:
        """Whether the name of a bone before the digits has a clue."""
        return any(words.says(name, clue) for name in self.bones)

    def digits_say(self, clue: Clue) -> bool:
        """Whether the name of a bone of the digits has a clue."""
        return any(words.says(name, clue) for row in self.digits for name in row)


def lengths_of(
    tree: SkeletonTree, places: Mapping[str, Vector], tips: Mapping[str, Vector]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return `Skeleton.lengths` and `Skeleton.reaches`."""
    lengths: dict[str, float] = {}
    reaches: dict[str, float] = {}
    for name in reversed([*tree.below("")]):
        parent = tree.bones[name].parent
        step = (places[name] - places[parent]).length if parent in places else 0.0
        further = [reaches[child] for child in tree.children[name]]
        lengths[name] = max(further, default=(tips[name] - places[name]).length)
        reaches[name] = step + lengths[name]
    return lengths, reaches


def skeleton(tree: SkeletonTree, halves: Halves) -> Skeleton:
    """Measure a symmetrical skeleton."""
    places, tips = joints(tree), ends(tree)
    points = [*places.values(), *tips.values()]
    ground = min(point.z for point in points)
    return Skeleton(tree, halves, places, tips, *lengths_of(tree, places, tips), size_of(points), ground)


def limbs(bones: Skeleton, least: float = LEAST_LIMB) -> list[Limb]:
    """Return pairs of limbs that stand or are long enough, in the figure's size, the longest first.

    Bones about a face wind back to where they begin.
    """
    pairs = []
    for name, side in bones.halves.sides.items():
        parent = bones.tree.bones[name].parent
        starts = not parent or bones.is_middle(parent)
        if side > 0 and starts and name in bones.halves.partners:
            pairs += [
                limb
                for first in _firsts(bones, name)
                if len((limb := _limb(bones, parent, first)).bones) > 1
                and _limb_length(bones, first) >= (LEAST_FIN if _stands(bones, limb) else least) * bones.size
                and (limb.tip - limb.base).length >= LEAST_FIN * bones.size
            ]
    return sorted(pairs, key=lambda limb: -_limb_length(bones, limb.bones[0]))


def wings_of(bones: Skeleton, pairs: Sequence[Limb]) -> list[Limb]:
    """Return limbs with wings' names, or that spread rows of feathers beside four steep legs."""
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


def fins_of(bones: Skeleton, pairs: Sequence[Limb], head: str) -> list[Limb]:
    """Return pairs of fins, those of the body before its flukes, with which it ends.

    A body without long fins has short ones.

    Args:
        head: by its name; empty if no name tells it.
    """
    short = [
        limb
        for limb in limbs(bones, LEAST_FIN)
        if limb.root and not _ends_body(bones, limb) and not (head and bones.tree.is_below(limb.root, head))
    ]
    flukes = [limb for limb in pairs if _ends_body(bones, limb)]
    return [*([limb for limb in pairs if limb not in flukes] or short), *flukes]


def _ends_body(bones: Skeleton, limb: Limb) -> bool:
    """Whether no middle bone goes on beyond the root of a pair."""
    return not any(map(bones.is_middle, bones.tree.children[limb.root]))


def is_named_arm(limb: Limb) -> bool:
    """Whether a limb has an arm's names."""
    return limb.says(Clue.ARM) or limb.digits_say(Clue.ARM)


def is_arm(bones: Skeleton, limb: Limb) -> bool:
    """Whether a limb has an arm's names, or digits that are short beside it."""
    if is_named_arm(limb):
        return True
    digits = [bones.reaches[row[0]] for row in limb.digits]
    return len(digits) > 1 and len(limb.bones) > 2 and max(digits) < 0.5 * bones.reaches[limb.bones[0]]


def crown_of(bones: Skeleton, pairs: Sequence[Limb], legs: Sequence[Limb]) -> list[Limb]:
    """Return pairs on the last middle bone beyond other pairs: hair, antlers or ears of a head.

    Arms may begin at several bones of a spine, but the last of these carries a neck.
    """
    body = body_of_legs(bones, legs)
    shoulders = {limb.root for limb in pairs if limb.root and limb.root not in body}
    return [
        limb
        for limb in pairs
        if limb.root
        and not is_named_arm(limb)
        and _ends_body(bones, limb)
        and shoulders.intersection([*bones.tree.ancestors(limb.root)][1:])
    ]


def _is_ahead(bones: Skeleton, limb: Limb, legs: Sequence[Limb]) -> bool:
    """Whether a limb begins before or behind all legs."""
    ways = [leg.base.dot(bones.along) for leg in legs]
    way = limb.base.dot(bones.along)
    return bool(max(min(ways) - way, way - max(ways)) > CLOSE * bones.size)


def _is_neck(bones: Skeleton, limb: Limb, legs: Sequence[Limb]) -> bool:
    """Whether a pair are necks beside the middle one: from where legs begin they rise ahead."""
    way = limb.tip - limb.base
    rises = way.z > RISE * abs(way.dot(bones.along))
    return rises and limb.root in {leg.root for leg in legs} and _is_ahead(bones, limb, legs)


def _is_fore_arm(bones: Skeleton, limb: Limb, legs: Sequence[Limb]) -> bool:
    """Whether a limb is an arm by its place ahead of legs: beside them, or below a head."""
    if not limb.root or len(limb.bones) + bool(limb.digits) < 3 or not _is_ahead(bones, limb, legs):
        return False
    top = bones.places[main_chain(bones, limb.root, is_middle=True)[-1]]
    return limb.root in {leg.root for leg in legs} or bool(top.z > bones.places[limb.root].z)


def _is_arched(bones: Skeleton, legs: Sequence[Limb]) -> bool:
    """Whether all legs rise from one bone to their knees, as an insect's or a machine's do."""
    rises = [bones.places[limb.bones[1]].z > limb.base.z for limb in legs]
    return len({limb.root for limb in legs}) == 1 and all(rises)


def _is_upright(bones: Skeleton, limb: Limb) -> bool:
    """Whether the middle bones about the root of a limb rise, so that it is an arm rather than a fin."""
    if not limb.root:
        return False
    above = bones.tree.bones[limb.root].parent
    first = above if bones.is_middle(above) else limb.root
    way = bones.places[main_chain(bones, limb.root, is_middle=True)[-1]] - bones.places[first]
    return bool(way.z > UPRIGHT * abs(way.dot(bones.along)))


def without_wings(bones: Skeleton, wings: Sequence[Limb]) -> Skeleton:
    """Measure ground and size without wings, which may hang lower than feet."""
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
    """Return limbs that stand on the ground, or lead down and have legs' names."""
    legs = []
    for limb in pairs:
        if _stands(bones, limb) or (_hangs(limb) and limb.says(Clue.LEG) and not limb.says(Clue.ARM)):
            legs.append(limb)
    if len(legs) == 1 and not legs[0].says(Clue.LEG):
        arms = legs[0].says(Clue.ARM) or not _is_steep(bones, legs[0])
        return [] if arms else legs
    return legs


def _stands(bones: Skeleton, limb: Limb) -> bool:
    """Whether a limb leads down to the ground."""
    height = max(limb.base.z - bones.ground, 0.1 * bones.size)
    return limb.end.z - bones.ground <= GROUND * height and limb.base.z > limb.end.z


def _hangs(limb: Limb) -> bool:
    return limb.base.z - limb.tip.z >= DOWN * (limb.base - limb.tip).length


def _is_steep(bones: Skeleton, limb: Limb) -> bool:
    way = limb.base - limb.end
    return abs(way.dot(bones.halves.across)) <= STEEP * abs(way.z)


def _limb_length(bones: Skeleton, first: str) -> float:
    """Length of a limb from the head of its first bone."""
    return max((bones.reaches[child] for child in bones.tree.children[first]), default=0.0)


def _firsts(bones: Skeleton, name: str) -> list[str]:
    """First bones of limbs from a bone on; several beyond an anchor, which is short beside each limb."""
    path = _path(bones, name)
    last = path[-1]
    rows = [
        child
        for child in bones.tree.children[last]
        if child in bones.halves.partners and _limb_length(bones, child) >= LEAST_LIMB * bones.size
    ]
    way = sum((bones.places[b] - bones.places[a]).length for a, b in pairwise(path))
    nearest = min((_limb_length(bones, child) for child in rows), default=0.0)
    if len(rows) < 2 or way > ANCHOR * nearest:
        return [name]
    return [first for child in rows for first in _firsts(bones, child)]


def _limb(bones: Skeleton, parent: str, first: str) -> Limb:
    path = _path(bones, first)
    digits = [row for child in bones.tree.children[path[-1]] for row in _rows(bones, child)]
    points = [point for name in bones.tree.below(first) for point in (bones.places[name], bones.ends[name])]
    end = min(points, key=lambda point: point.z)
    tip = bones.ends[main_chain(bones, first)[-1]]
    return Limb(parent, tuple(path), tuple(digits), bones.places[first], tip, end)


def _path(bones: Skeleton, first: str) -> list[str]:
    """Bones from the first to the parent of the digits, or to the last."""
    path = [first]
    while following := _next(bones, path[-1]):
        path.append(following)
    return path


def _next(bones: Skeleton, name: str) -> str:
    """Next bone of a limb; empty at its end and before digits. Feathers end a wing."""
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
    """Longest row of bones from a bone on, and rows that branch from it, as a thumb from a palm."""
    chain = main_chain(bones, name)
    beside = [
        child
        for each in chain
        for child in bones.tree.children[each]
        if child not in chain and bones.tree.children[child]
    ]
    return [chain, *(row for child in beside for row in _rows(bones, child))]


def main_chain(bones: Skeleton, name: str, is_middle: bool = False) -> tuple[str, ...]:
    """Longest row of bones from a bone on; with `is_middle` of bones on the median plane."""
    chain = [name]
    while further := [c for c in bones.tree.children[chain[-1]] if not is_middle or bones.is_middle(c)]:
        chain.append(max(further, key=lambda child: bones.reaches[child]))
    return tuple(chain)


BESIDE = 0.25
"""Largest difference in height of ancestors of the hips that belong to the body, in the hips' height."""
LEAST_TAIL = 0.08
"""Smallest length of a tail and a proboscis, in the figure's size."""
FLEXIBLE = 4
"""Smallest number of a proboscis' bones; a jaw or a beak has fewer."""
STEP = 0.01
"""Largest distance of heads that coincide, in the figure's size."""
LONGER = 1.05
"""Largest length of a mark, in the length of the bone before it."""
BREAK = 0.5
"""Smallest break of a row of bones: radians of a bend, and the logarithm of a change in length."""
LEVEL = 0.5
"""Smallest run over rise from hips to head by which the front is told."""
STEEPEST = 0.4
"""Largest sine of the slope of a lying body; a root bone on the ground is steeper below it."""
LOW = 0.15
"""Largest height of joints that belong to the foot, and of a root bone on the ground, in the hips' height."""


class Trunk(NamedTuple):
    """Middle bones, in order away from the hips; empty where missing."""

    hips: str  # root of the body
    spine: tuple[str, ...]  # up to the chest, the parent of front limbs, or from there back to the hind limbs
    neck: tuple[str, ...]  # from the spine to the head
    head: str  # by its name or a face, or else the last bone
    tail: tuple[str, ...]  # from the hips
    proboscis: tuple[str, ...]  # an elephant's, from the head
    front: Vector  # horizontal unit vector that the figure faces


def trunk(bones: Skeleton, hind: Limb | None, fore: Limb | None, arms: Sequence[Limb] = ()) -> Trunk:
    """Divide the middle bones into hips, spine, neck, head and tail.

    Args:
        hind: pair of limbs at the hips, or None.
        fore: pair of limbs at the chest, or None.
        arms: pairs of arms, beyond which the neck may go on.
    """
    chest = fore.root if fore else ""
    finned = fore if fore and not hind and fore not in arms else None
    hips = _body_root(bones, hind.root) if hind else _top(bones, chest, bool(finned))
    loins = tuple(bones.tree.path(hips, hind.root)[1:]) if hind else ()
    spine = loins
    if chest and chest != hips:
        spine = tuple(bones.tree.between(hips, chest)) if hips else (chest,)
    if above := max((bones.tree.path(chest, limb.root) for limb in arms if chest), key=len, default=[]):
        spine += tuple(above[1:])  # a centaur's
        chest = above[-1]
    if head := named_head(bones, (chest, hips, *spine)):
        below = {*spine, *bones.tree.ancestors(hips)}
        above = [name for name in bones.tree.ancestors(head) if name not in below]
        beyond = tuple(above[::-1])
    else:
        behind = _swept(bones, finned) if finned else ()
        beyond = _beyond(bones, (*spine, hips, *behind), chest or hips, arms)
        head = _head(bones, beyond)
    neck = beyond[: beyond.index(head)] if head else ()
    body = [hips, *spine] if finned else [hips, *loins]
    tail = _tail(bones, body, {*spine, *beyond}.difference(loins))
    front = _front(bones, hind, fore, head, hips)
    return Trunk(hips, spine, neck, head, tail, _proboscis(bones, head, front), front)


def body_of_legs(bones: Skeleton, legs: Sequence[Limb]) -> tuple[str, ...]:
    """Bones from which legs begin and those between them, the one that carries all first; empty for none."""
    roots = [limb.root for limb in legs if limb.root]
    carrier = reduce(bones.tree.common, roots) if roots else ""
    paths = [name for root in roots for name in bones.tree.path(carrier, root)] if carrier else roots[:1]
    return tuple(dict.fromkeys(paths))


def with_neck(bones: Skeleton, legs: Sequence[Limb], arms: Sequence[Limb], middle: Trunk) -> Trunk:
    """The trunk of a body on many legs, with a head that a name, a face or a neck tells; else without.

    A neck rises from the body, and its end leads away from that; the end of a scorpion's tail leads back.
    Of several such rows it is the one that leads to the usual front, or away from a row that does not rise.
    A figure without a neck faces away from its tail. Nothing tells another row in front from an abdomen.
    """
    body = body_of_legs(bones, legs)
    if head := named_head(bones, body):
        return middle._replace(head=head)
    ahead = usual_front(bones)
    beside = [
        child
        for name in body
        for child in bones.tree.children[name]
        if bones.is_middle(child) and child not in body and words.read(child).part is not Part.TAIL
    ]
    long = [(child, *_beyond(bones, (), child, arms)) for child in beside]
    faces = [row[: place + 1] for row in long for place in (_face(bones, row, arms),) if place >= 0]
    if len(faces) == 1:  # with jaws or feelers
        run = float((bones.places[faces[0][-1]] - bones.places[body[0]]).dot(ahead))
        return middle._replace(
            neck=faces[0][:-1],
            head=faces[0][-1],
            tail=_tail(bones, body, {*faces[0]}),
            front=ahead * math.copysign(1.0, run),
        )
    rows = [
        _Row(
            row, way.z, float(way.dot(ahead)), float((bones.ends[row[-1]] - bones.places[row[-2]]).dot(ahead))
        )
        for row in long
        if len(row) > 1 and bones.reaches[row[0]] >= LEAST_TAIL * bones.size
        for way in (bones.ends[row[-1]] - bones.places[row[0]],)
    ]
    necks = [row for row in rows if row.rise > LEVEL * abs(row.run) and row.end * row.run > 0.0]
    if not necks:
        tail = _tail(bones, body, set())
        row = next((row for row in rows if row.bones[0] in tail), None)
        if row is not None and (row.run < 0.0 or row.end * row.run < 0.0):
            ahead *= -math.copysign(1.0, row.run)
        return middle._replace(head="", neck=(), tail=tail, front=ahead)
    row = max(necks, key=lambda row: (row.run > 0.0, bones.reaches[row.bones[0]]))
    head = _head(bones, row.bones)
    return middle._replace(
        neck=row.bones[: row.bones.index(head)],
        head=head,
        tail=_tail(bones, body, {*row.bones}),
        front=ahead * math.copysign(1.0, row.run),
    )


def _face(bones: Skeleton, row: Sequence[str], arms: Sequence[Limb]) -> int:
    """Place of the first bone of a row with bones at its sides that are no arms; -1 for none."""
    shoulders = {limb.root for limb in arms}
    return next(
        (
            place
            for place, name in enumerate(row)
            if name not in shoulders and not all(map(bones.is_middle, bones.tree.children[name]))
        ),
        -1,
    )


class _Row(NamedTuple):
    """A row of middle bones on a body."""

    bones: tuple[str, ...]  # away from the body
    rise: float  # height of its end above its first joint
    run: float  # part of the way to its end along the usual front
    end: float  # the same of its last two bones


def _body_root(bones: Skeleton, hips: str) -> str:
    """Highest ancestor of the hips at about their height or along a lying body, not on the ground."""
    root = hips
    height = bones.places[hips].z - bones.ground if hips else 0.0
    for above in bones.tree.ancestors(hips):
        way = bones.places[above] - bones.places[hips]
        is_low = bones.places[above].z - bones.ground <= LOW * height
        lies = abs(way.z) <= STEEPEST * way.length and not is_low
        is_root = above != hips and words.says(above, Clue.ROOT)
        if not bones.is_middle(above) or not (lies or abs(way.z) <= BESIDE * height) or is_root:
            break
        root = above
    return root


def _top(bones: Skeleton, name: str, lies: bool) -> str:
    """Highest middle ancestor that is no root bone; of a lying body, neither below nor above it."""
    path = [each for each in bones.tree.ancestors(name) if bones.is_middle(each)][::-1]
    for above, below in pairwise(path):
        way = bones.places[below] - bones.places[above]
        beside = lies and (way.length <= STEP * bones.size or abs(way.z) > STEEPEST * way.length)
        if not words.says(above, Clue.ROOT) and (len(bones.tree.children[above]) > 1 or not beside):
            return above
    return path[-1] if path else ""


def _swept(bones: Skeleton, fins: Limb) -> list[str]:
    """Middle children of the fins' root that lead to where the fins are swept: towards the tail."""
    last = main_chain(bones, fins.bones[0])[-1]
    along = bones.along
    sweep = (bones.places[last] - fins.base).dot(along)
    if abs(sweep) <= STEP * bones.size:
        return []
    return [
        child
        for child in bones.tree.children.get(fins.root, ())
        if bones.is_middle(child)
        and (bones.places[main_chain(bones, child)[-1]] - bones.places[fins.root]).dot(along) * sweep > 0.0
    ]


def named_head(bones: Skeleton, body: Collection[str]) -> str:
    """Return the middle bone with a head's name, or else with a face on it; empty for none.

    Args:
        body: bones that are no descendants of a head.
    """
    above = {each for name in body for each in bones.tree.ancestors(name)}
    names = [name for name in bones.tree.below("") if name not in above]
    for name in names:
        if bones.is_middle(name) and words.read(name).part is Part.HEAD:
            return name
    for name in names:
        if bones.is_middle(name) and words.says(name, Clue.SKULL):
            return name
    faces = [name for name in names if words.says(name, Clue.FACE)]
    carriers = [parent for name in faces if (parent := bones.tree.bones[name].parent) not in faces]
    head = reduce(bones.tree.common, carriers) if carriers else ""
    return head if head and head not in above and bones.is_middle(head) else ""


def _beyond(
    bones: Skeleton, trunk_bones: tuple[str, ...], chest: str, arms: Sequence[Limb]
) -> tuple[str, ...]:
    """Row of middle bones from the chest on, up to the parent of ears, eyes and jaws."""
    shoulders = {limb.root for limb in arms}
    row: list[str] = []
    name = chest
    while name:
        further = [
            child
            for child in bones.tree.children[name]
            if bones.is_middle(child)
            and child not in trunk_bones
            and (bones.places[child] - bones.places[name]).length > STEP * bones.size
            and (not row or _goes_on(bones, name, child))
        ]
        if row and name not in shoulders and not all(map(bones.is_middle, bones.tree.children[name])):
            break
        name = max(further, key=lambda child: bones.reaches[child], default="")
        if name:
            row.append(name)
    return tuple(row)


def _goes_on(bones: Skeleton, name: str, child: str) -> bool:
    """Whether a child starts about where a bone ends, if that is known; a face hangs beside a head."""
    start, end, head = bones.places[name], bones.ends[name], bones.places[child]
    return end == start or (head - end).length <= 0.5 * (head - start).length


def _head(bones: Skeleton, neck: Sequence[str]) -> str:
    """Last bone of a neck, or the one before if the last only marks its end; empty for no bones.

    The mark of a head goes straight on and is no longer than the head. A head breaks the series of a neck.
    """
    if len(neck) > 2:
        points = [*(bones.places[name] for name in neck[-3:]), bones.ends[neck[-1]]]
        before, head, mark = (b - a for a, b in pairwise(points))
        is_mark = mark.length <= LONGER * head.length and head.angle(mark, 0.0) < IN_LINE
        if is_mark and before.angle(head) + abs(math.log(head.length / before.length)) > BREAK:
            return neck[-2]
    return neck[-1] if neck else ""


def _tail(bones: Skeleton, body: Sequence[str], taken: set[str]) -> tuple[str, ...]:
    """Row of middle bones with a tail's name, or else the longest row on the body beside spine and head."""
    head = {each for name in taken for each in bones.tree.below(name)}
    rows = [
        main_chain(bones, child, is_middle=True)
        for name in body
        if name
        for child in bones.tree.children[name]
        if bones.is_middle(child) and child not in taken and child not in body
    ]
    called = [name for name in bones.tree.below("") if words.read(name).part is Part.TAIL]
    for name in called:
        if bones.is_middle(name) and name not in head:
            rows = [main_chain(bones, name, is_middle=True)]
            break
    long = [row for row in rows if len(row) > 1 and bones.reaches[row[0]] >= LEAST_TAIL * bones.size]
    return max(long, key=lambda row: bones.reaches[row[0]], default=())


def _proboscis(bones: Skeleton, head: str, front: Vector) -> tuple[str, ...]:
    """Longest row of middle bones that leads ahead of a head; empty for a short one, and for a face."""
    rows = [
        row
        for child in (bones.tree.children[head] if head else ())
        if bones.is_middle(child)
        and len(row := main_chain(bones, child, is_middle=True)) >= FLEXIBLE
        and _face(bones, row, ()) < 0
        and not any(words.says(name, Clue.FACE) for name in row)
        and bones.reaches[child] >= LEAST_TAIL * bones.size
        and (bones.ends[row[-1]] - bones.places[head]).dot(front) > 0.0
    ]
    return max(rows, key=lambda row: bones.reaches[row[0]], default=())


def _front(bones: Skeleton, hind: Limb | None, fore: Limb | None, head: str, hips: str) -> Vector:
    """Direction that the figure faces: by its body if it lies, by its feet if it is upright."""
    along = bones.along
    bodies = []
    if head and hips:
        bodies.append(bones.places[head] - bones.places[hips])
    if fore and hind and fore.root and hind.root:
        bodies.append(bones.places[fore.root] - bones.places[hind.root])
    ways = [way for way in bodies if abs(way.dot(along)) > LEVEL * abs(way.z)]
    if hind:
        foot = [bones.places[name] for name in (*hind.bones, *(row[0] for row in hind.digits))]
        low = [place for place in foot if place.z - bones.ground < LOW * (hind.base.z - bones.ground)]
        if len(low) > 1:
            ways.append(low[-1] - low[0])
    long = [way for way in ways if abs(way.dot(along)) > STEP * bones.size]
    return along * (1.0 if long[0].dot(along) > 0.0 else -1.0) if long else usual_front(bones)


def usual_front(bones: Skeleton) -> Vector:
    """Direction that a figure faces if no place tells it: as names of left and right have it.

    Without these -Y, as usual in Blender, or +X if the plane is along X, as of machines.
    """
    along = bones.along
    named_sides = {name: words.read(name).side for name in bones.halves.partners}
    lefts = sum(
        bones.halves.sides[name] * (1 if side is Side.LEFT else -1)
        for name, side in named_sides.items()
        if side is not Side.MIDDLE
    )
    if lefts:
        return along * math.copysign(1.0, lefts)
    return along * (1.0 if along.y < 0.0 or (along.y == 0.0 and along.x > 0.0) else -1.0)


# Rows -------------------------------------------------------------------------------------------------------


def chain(tree: SkeletonTree) -> tuple[Kind, dict[str, Role]]:
    """Return kind and roles of a row with one or two ways from its root; UNKNOWN and no roles for more."""
    roots = tree.children[""]
    if len(roots) != 1:
        return Kind.UNKNOWN, {}
    ways, _ = lengths_of(tree, joints(tree), ends(tree))
    least = LEAST_LIMB * ways[roots[0]]
    stem, forks = _row(tree, ways, roots[0], least)
    if not forks:
        if len(stem) < 3:
            return Kind.UNKNOWN, {}
        stands = words.says(stem[0], Clue.ROOT) or words.says(stem[0], Clue.BASE)
        is_root = stands and words.read(stem[0]).part is None
        return Kind.CHAIN, _one_way(tree, stem[1:] if is_root and len(stem) > 3 else stem)
    rows = [_row(tree, ways, name, least) for name in forks]
    are_separate = len(rows) == 2 and not any(further or len(row) < 2 for row, further in rows)
    if not are_separate or max(ways[roots[0]] - ways[name] for name in stem) > least:
        return Kind.UNKNOWN, {}
    return Kind.CHAIN, _two_ways(tree, [row for row, _ in rows])


def _row(
    tree: SkeletonTree, ways: Mapping[str, float], first: str, least: float
) -> tuple[list[str], list[str]]:
    """Row from a bone to the last, with small children alone, or to a fork; and the fork's bones."""
    row = [first]
    while children := tree.children[row[-1]]:
        large = [name for name in children if ways[name] >= least]
        if len(children) > 1 and len(large) != 1:
            return row, large
        row.append(large[0] if large else children[0])
    return row, []


def _head_of(tree: SkeletonTree, row: Sequence[str]) -> str:
    """Head of a row: by its name, by a face on it, or the last bone if it has several children."""
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
        return _row_roles(Part.TAIL, row)
    place = row.index(head)
    if 2 * place >= len(row):
        return _row_roles(Part.SPINE, row[:place]) | {head: Role(Part.HEAD)}
    return {head: Role(Part.HEAD)} | _row_roles(Part.TAIL, row[place + 1 :])


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
            roles |= _row_roles(Part.SPINE, row[: row.index(head)]) | {head: Role(Part.HEAD)}
        else:
            roles |= _row_roles(Part.TAIL, row, number=number)
            number += 1
    return roles


UPRIGHT = 1.5
"""Rise over run from hips to head above which a figure with two legs stands upright, as a human."""
ANKLE = 0.2
"""Part of the hips' height below which a joint of a human's leg is the ankle."""
IN_LINE = math.radians(5.0)
"""Radians of a bend below which two bones may be pieces of one thigh or shin."""
SPRAWL = 0.8
"""Length over height above which a leg's first bone is a lizard's thigh; pelvis bones have up to 0.58."""
MIDDLE = 0.1
"""Largest offset of a girdle bone's head from the median plane, in offsets of its end."""


def by_structure(tree: SkeletonTree) -> tuple[Kind, dict[str, Role]]:
    """Recognise kind and roles by structure; UNKNOWN and no roles if it is ambiguous."""
    tree = without_cloth(tree)
    split = halves(tree)
    if split is not None:
        tree = without_props(tree, split)
        split = halves(tree)
    if split is None:
        return chain(tree)
    bones = skeleton(tree, split)
    bones = without_wings(bones, wings_of(bones, limbs(bones)))
    pairs = limbs(bones)
    wings = wings_of(bones, pairs)
    legs = legs_of(bones, [limb for limb in pairs if limb not in wings])
    head = named_head(bones, body_of_legs(bones, legs))  # a crab's eyes are on its body
    free = [
        limb
        for limb in pairs
        if limb not in legs
        and limb not in wings
        and (not head or not bones.tree.is_below(limb.root, head) or limb.says(Clue.ARM))
    ]
    if not legs and len(free) > 2:  # an octopus, a machine with its legs stretched out
        legs, free = free, []
    if len(legs) > 1:
        necks = [limb for limb in free if not is_arm(bones, limb) and _is_neck(bones, limb, legs)]
        free = [limb for limb in free if limb not in necks]
        arms = [limb for limb in free if is_arm(bones, limb) or _is_fore_arm(bones, limb, legs)]
        beside = [limb for limb in free if limb not in arms and not _is_ahead(bones, limb, legs)]
        wings += [limb for limb in beside if limb.root in body_of_legs(bones, legs)]
        if len(legs) > 2 or _is_arched(bones, legs):
            middle = with_neck(bones, legs, arms, trunk(bones, legs[0], None))
            roles = _many_legs(bones, legs, middle)
            roles |= _arms(bones, arms, middle) | _wings(bones, wings, middle)
            return Kind.MANY_LEGS, roles | _necks(bones, necks, middle)
        hind, fore = _hind_and_fore(bones, legs)
        middle = trunk(bones, hind, fore, arms)
        roles = _trunk_roles(middle)
        left = _left(bones, middle.front)
        roles |= _leg_roles(bones, hind, left, LEG_PARTS, middle.front)
        roles |= _leg_roles(bones, fore, left, FORE, middle.front)
        has_shoulders = any(role.part is Part.SHOULDER for role in roles.values())
        roles |= _arms(bones, arms, middle, int(has_shoulders)) | _wings(bones, wings, middle)
        return Kind.QUADRUPED, roles | _necks(bones, necks, middle)
    if len(legs) == 1:
        crown = crown_of(bones, free, legs)
        return _two_legs(bones, legs[0], [limb for limb in free if limb not in crown], wings)
    if arms := [limb for limb in free if is_arm(bones, limb) or _is_upright(bones, limb)]:
        middle = trunk(bones, None, arms[0], arms)
        flukes = any(bones.halves.partners.keys() & bones.tree.children[name] for name in middle.tail)
        roles = _trunk_roles(middle) | _arms(bones, arms, middle) | _wings(bones, wings, middle)
        return Kind.FISH if flukes else Kind.HUMAN, roles
    if swimming := [limb for limb in pairs if limb in free or limb in wings]:
        return _fish(bones, fins_of(bones, swimming, head))
    kind, roles = chain(tree)
    fins = fins_of(bones, (), head) if kind is Kind.UNKNOWN else []
    return _fish(bones, fins) if fins else (kind, roles)


def _fish(bones: Skeleton, fins: Sequence[Limb]) -> tuple[Kind, dict[str, Role]]:
    middle = trunk(bones, None, fins[0])
    return Kind.FISH, _trunk_roles(middle) | _wings(bones, fins, middle)


def _two_legs(
    bones: Skeleton, legs: Limb, arms: Sequence[Limb], wings: Sequence[Limb]
) -> tuple[Kind, dict[str, Role]]:
    front = _front(bones, legs, None, "", "")
    if not arms and not wings:
        arms = [limb for limb in limbs(bones, LEAST_FIN) if limb != legs and _is_chest(bones, limb)]
    # Wings begin behind arms, on the back.
    first = max((limb.base.dot(front) for limb in arms), default=0.0) - CLOSE * bones.size
    ahead = [limb for limb in arms if is_arm(bones, limb) or limb.base.dot(front) >= first]
    wings = [*wings, *(limb for limb in arms if limb not in ahead)]
    fore = max(ahead or wings, key=lambda limb: bones.reaches[limb.bones[0]], default=None)
    middle = trunk(bones, legs, fore, ahead)
    roles = _trunk_roles(middle)
    left = _left(bones, middle.front)
    roles |= _leg_roles(bones, legs, left, LEG_PARTS, middle.front)
    top = middle.head or (middle.spine[-1] if middle.spine else "")
    way = bones.places[top] - bones.places[middle.hips] if top and middle.hips else UP
    upright = way.z > UPRIGHT * abs(way.dot(middle.front)) and (ahead or not wings)
    if upright and fore and middle.hips:  # a swan's neck rises, its body does not
        body = fore.base - bones.places[middle.hips]
        upright = body.z > abs(body.dot(middle.front))
    if not upright and not (fore and fore in ahead and (is_arm(bones, fore) or _hangs(fore))):
        return Kind.BIRD, roles | _wings(bones, [*ahead, *wings], middle)
    roles |= _arms(bones, ahead, middle) | _wings(bones, wings, middle)
    feet = [bones.places[name].z for name, role in roles.items() if role == Role(Part.FOOT, Side.LEFT)]
    flat = not feet or feet[0] - bones.ground < ANKLE * (legs.base.z - bones.ground)
    return Kind.HUMAN if upright and flat else Kind.BIPED, roles


def _is_chest(bones: Skeleton, limb: Limb) -> bool:
    """Whether a limb of three bones or more hangs below a neck and a head."""
    is_long = len(limb.bones) + bool(limb.digits) > 2
    return is_long and bool(limb.root) and len(main_chain(bones, limb.root, is_middle=True)) > 2


def _hind_and_fore(bones: Skeleton, legs: Sequence[Limb]) -> tuple[Limb, Limb]:
    """Order two pairs of legs, hind first: by names, by distance to a head, or by the usual front."""
    one, other = legs
    behind = [limb.says(Clue.HIND) - limb.says(Clue.FRONT) for limb in legs]
    if behind[0] != behind[1]:
        return (one, other) if behind[0] > behind[1] else (other, one)
    if head := named_head(bones, (one.root, other.root)):
        return (one, other) if _distance(bones, head, other) < _distance(bones, head, one) else (other, one)
    if one.root != other.root:
        if bones.tree.is_below(other.root, one.root):
            return one, other
        if bones.tree.is_below(one.root, other.root):
            return other, one
    heads = [trunk(bones, a, b).head for a, b in ((one, other), (other, one))]
    for head, (hind, fore) in zip(heads, ((one, other), (other, one)), strict=True):
        if head and _distance(bones, head, fore) < _distance(bones, head, hind):
            return hind, fore
    ahead = usual_front(bones)
    return (one, other) if one.base.dot(ahead) < other.base.dot(ahead) else (other, one)


def _distance(bones: Skeleton, name: str, limb: Limb) -> float:
    return (bones.places[name] - limb.base).length


def _left(bones: Skeleton, front: Vector) -> int:
    """Sign of the figure's left side, relative to the plane's normal."""
    return 1 if UP.cross(front).dot(bones.halves.across) > 0.0 else -1


# --- roles --------------------------------------------------------------------------------------------------

FORE = (Part.SHOULDER, *FRONT_PARTS)


def _row_roles(part: Part, names: Iterable[str], number: int = 0) -> dict[str, Role]:
    return {name: Role(part, index=index, number=number) for index, name in enumerate(names)}


def _trunk_roles(middle: Trunk) -> dict[str, Role]:
    roles = (
        _row_roles(Part.TAIL, middle.tail)
        | _row_roles(Part.SPINE, middle.spine)
        | _row_roles(Part.NECK, middle.neck)
        | _row_roles(Part.TRUNK, middle.proboscis)
    )
    roles |= {middle.head: Role(Part.HEAD)} if middle.head else {}
    return roles | ({middle.hips: Role(Part.HIPS)} if middle.hips else {})


def _both(bones: Skeleton, roles: dict[str, Role], left: int) -> dict[str, Role]:
    """Set the sides of the roles of a limb on the positive side, and add those of its partner."""
    side, opposite = (Side.LEFT, Side.RIGHT) if left > 0 else (Side.RIGHT, Side.LEFT)
    sided = {}
    for name, role in roles.items():
        sided[name] = replace(role, side=side)
        if partner := bones.halves.partners.get(name, ""):
            sided[partner] = replace(role, side=opposite)
    return sided


def _many_legs(bones: Skeleton, legs: Sequence[Limb], middle: Trunk) -> dict[str, Role]:
    root = body_of_legs(bones, legs)[:1]
    roles = _row_roles(Part.TAIL, middle.tail) | dict.fromkeys(root, Role(Part.HIPS))
    if middle.head:
        roles |= _row_roles(Part.NECK, middle.neck) | {middle.head: Role(Part.HEAD)}
    ordered = sorted(legs, key=lambda limb: -limb.end.dot(middle.front))
    for number, limb in enumerate(ordered):
        roles |= _both(bones, _row_roles(Part.LEG, limb.bones, number=number), _left(bones, middle.front))
    return roles


def _leg_roles(
    bones: Skeleton, limb: Limb, left: int, pieces: tuple[Part, ...], front: Vector
) -> dict[str, Role]:
    girdle, thigh, shin, foot, toe = pieces
    names = list(limb.bones)
    roles: dict[str, Role] = {}
    while len(names) > 2:
        shoulder = pieces is FORE and len(names) + bool(limb.digits) > 3
        if words.read(names[0]).part is Part.THIGH or not _is_girdle(bones, names, shoulder, front):
            break
        roles |= {names[0]: Role(girdle, index=len(roles))}
        names = names[1:]
    knee, ankle = _knee_and_ankle(bones, names, pieces is LEG_PARTS)
    roles |= _row_roles(thigh, names[:knee]) | _row_roles(shin, names[knee:ankle])
    toes = [name for name in names[ankle + 1 :] if not words.says(name, Clue.HEEL)]
    roles |= _row_roles(foot, names[ankle : ankle + 1]) | _row_roles(toe, toes)
    first = 1 if toes else 0
    across = bones.halves.across
    rows = sorted(limb.digits, key=lambda row: abs(bones.places[row[0]].dot(across)))
    for number, row in enumerate(rows, first):
        roles |= _row_roles(toe, row, number=number)
    return _both(bones, roles, left)


def _is_girdle(bones: Skeleton, names: Sequence[str], fore: bool, front: Vector) -> bool:
    """Whether a leg begins with a girdle bone: a pelvis leads out of the middle, a shoulder ahead."""
    points = [bones.places[name] for name in names[:3]]
    first, second = points[1] - points[0], points[2] - points[1]
    start, end = (abs(point.dot(bones.halves.across)) for point in points[:2])
    short = first.length < SPRAWL * (points[1].z - bones.ground)
    aside = start < MIDDLE * end or (short and -first.z < 0.5 * first.length)
    forward = fore and first.dot(front) > 0.2 * first.length and second.dot(front) < first.dot(front)
    return aside or (forward and second.dot(front) < 0.1 * second.length)


def _knee_and_ankle(bones: Skeleton, names: Sequence[str], hind: bool) -> tuple[int, int]:
    """Return indices of the first bones of shin and foot; past the last bone for a leg without a foot.

    A thigh or shin may be in several pieces. Names of both, or of a shin at the end, take precedence.
    """
    named_parts = [words.read(name).part for name in names]
    shins = [
        place for place, part in enumerate(named_parts) if place > 0 and part in (Part.SHIN, Part.LOWER_ARM)
    ]
    if shins:
        feet = [place for place, part in enumerate(named_parts) if part in (Part.FOOT, Part.HAND)]
        after = [place for place in feet if place > shins[0]]
        if after or shins[0] == len(names) - 1:
            return shins[0], (*after, len(names))[0]
    if len(names) == 2:
        return 1, 2
    heights = [bones.places[name].z - bones.ground for name in names]
    if not hind or len(names) < 5:
        return 1, min(2, len(names) - 1)
    low = [place for place, height in enumerate(heights) if place > 1 and height < ANKLE * heights[0]]
    ankle = low[0] if low else 2
    if ankle < 3:
        return 1, 2
    bends = {place: _bend(bones, names, place) for place in range(1, ankle)}
    bent = [place for place, angle in bends.items() if abs(angle) >= IN_LINE]
    back = [place for place in bent if bends[place] * bends[bent[0]] < 0.0]
    if back:  # an animal with a high heel
        return bent[0], back[0]
    if ankle == 3:  # one of the three is in two pieces, if any
        straight = [place for place in (1, 2) if place not in bent]
        return (3 - straight[0], 3) if straight else (1, 2)
    ways = [(bones.places[b] - bones.places[a]).length for a, b in pairwise(names[: ankle + 1])]
    return min(range(1, ankle), key=lambda place: abs(sum(ways[:place]) - 0.5 * sum(ways))), ankle


def _bend(bones: Skeleton, names: Sequence[str], place: int) -> float:
    """Signed angle between a bone of a row and the one before it, radians, about the plane's normal."""
    before, start, end = (bones.places[name] for name in names[place - 1 : place + 2])
    angle: float = (start - before).angle(end - start, 0.0)
    return math.copysign(angle, (start - before).cross(end - start).dot(bones.halves.across))


def _arms(bones: Skeleton, arms: Sequence[Limb], middle: Trunk, first: int = 0) -> dict[str, Role]:
    """Return roles of arms, the longest pair first; fingers are numbered through all pairs.

    Args:
        first: number of the first pair; 1 where front legs have shoulders.
    """
    roles: dict[str, Role] = {}
    fingers = 0
    for number, limb in enumerate(sorted(arms, key=lambda limb: -bones.reaches[limb.bones[0]]), first):
        names = limb.bones
        shoulder, elbow, wrist = _arm_joints(bones, names, bool(limb.digits))
        bounds = (0, shoulder, elbow, wrist, len(names))
        for part, (start, end) in zip(ARM_PARTS[:-1], pairwise(bounds), strict=True):
            roles |= _row_roles(part, names[start:end], number=number)
        rows = sorted(limb.digits, key=lambda row: -bones.places[row[-1]].dot(middle.front))
        for finger, row in enumerate(rows, fingers):
            roles |= _row_roles(Part.FINGER, row, number=finger)
        fingers += len(rows)
    return _both(bones, roles, _left(bones, middle.front))


def _arm_joints(bones: Skeleton, names: Sequence[str], has_fingers: bool) -> tuple[int, int, int]:
    """Indices of an arm's bones at shoulder joint, elbow and wrist: equal halves, a short shoulder.

    An arm of two bones has no hand, unless a name tells one: the wrist is past its last bone.
    """
    if len(names) == 2 and words.read(names[1]).part is not Part.HAND:
        return 0, 1, 2
    points = [bones.places[name] for name in names]
    ways = [(b - a).length for a, b in pairwise(points)]
    last = len(names) - 1
    wrists = (last,) if has_fingers or last < 4 else (last, last - 1)
    best = (math.inf, 0, 1, last)
    for wrist in wrists:
        for shoulder in range(max(min(3, wrist - 1), 1)):
            for elbow in range(shoulder + 1, wrist):
                upper, lower = sum(ways[shoulder:elbow]), sum(ways[elbow:wrist])
                if upper > 0.0 and lower > 0.0:
                    cost = abs(math.log(upper / lower)) + 0.5 * (shoulder == 0 and last > 3)
                    cost += sum(ways[:shoulder]) / sum(ways) + 0.2 * (wrist < last)
                    best = min(best, (cost, shoulder, elbow, wrist))
    return best[1:] if math.isfinite(best[0]) else (0, min(1, last), last)


def _wings(bones: Skeleton, others: Sequence[Limb], middle: Trunk) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    ordered = sorted(others, key=lambda limb: -limb.base.dot(middle.front))
    for number, limb in enumerate(ordered):
        rows = [row for row in limb.digits if not words.says(row[0], Clue.FEATHER)]
        tip = max(rows, key=lambda row: bones.reaches[row[0]], default=())
        row = _row_roles(Part.WING, (*limb.bones, *tip), number=number)
        roles |= _both(bones, row, _left(bones, middle.front))
    return roles


def _necks(bones: Skeleton, necks: Sequence[Limb], middle: Trunk) -> dict[str, Role]:
    """Return roles of necks and heads beside the middle ones, the innermost pair first."""
    roles: dict[str, Role] = {}
    across = bones.halves.across
    ordered = sorted(necks, key=lambda limb: abs(limb.base.dot(across)))
    for number, limb in enumerate(ordered):
        row = main_chain(bones, limb.bones[0])
        head = _head(bones, row)
        neck = _row_roles(Part.NECK, row[: row.index(head)], number=number)
        sided = neck | {head: Role(Part.HEAD, number=number)}
        roles |= _both(bones, sided, _left(bones, middle.front))
    return roles
