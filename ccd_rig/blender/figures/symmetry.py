# SPDX-License-Identifier: GPL-3.0-or-later
"""The two halves of a skeleton: its median plane, its limbs in pairs, and the trunk between them.

All points are in a space whose Z points up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from mathutils import Vector

from . import words
from .role import Part, RestBone, Side
from .skeleton_tree import SkeletonTree
from .words import Clue

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
                and _limb_length(bones, first) >= LEAST_LIMB * bones.size
            ]
    return sorted(found, key=lambda limb: -_limb_length(bones, limb.bones[0]))


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


def _limb_length(bones: Skeleton, first: str) -> float:
    """Length of a limb from where its first bone starts."""
    return max((bones.reaches[child] for child in bones.tree.children[first]), default=0.0)


def _firsts(bones: Skeleton, name: str) -> list[str]:
    """The first bones of limbs from a bone on: several beyond an anchor, which is short beside each."""
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


BESIDE = 0.25
"""Part of the hips' height by which a bone above them may be higher or lower and still belong to the body."""
LEAST_TAIL = 0.08
"""Part of the figure's size from which a row of bones behind the hips is a tail."""
STEP = 0.01
"""Part of the figure's size below which a bone starts where its parent does, and leads no further."""
LONGER = 1.05
LEVEL = 0.5
"""Run over rise of the way from hips to head from which it tells where the front is."""
LOW = 0.15
"""Part of the hips' height below which joints of a leg belong to the foot."""


class Trunk(NamedTuple):
    """Middle bones, away from the hips; empty where there are none.

    Attributes:
        hips: the bone that carries the whole figure.
        spine: on to the chest, which carries the front limbs, or from there back to the hind ones.
        neck: on to the head.
        head: the one that its name or a face tells, or the last.
        tail: from the hips on.
        front: horizontal unit vector to where the figure faces.
    """

    hips: str
    spine: tuple[str, ...]
    neck: tuple[str, ...]
    head: str
    tail: tuple[str, ...]
    front: Vector


def trunk(bones: Skeleton, hind: Limb | None, fore: Limb | None) -> Trunk:
    """Take the middle apart.

    Args:
        bones: a symmetrical skeleton.
        hind: the pair of limbs at the hips, if there is one.
        fore: the pair at the chest, if there is one.
    """
    chest = fore.root if fore else ""
    finned = fore if fore and not hind and not is_arm(bones, fore) else None
    hips = _body_root(bones, hind.root) if hind else _top(bones, chest, bool(finned))
    loins = tuple(bones.tree.path(hips, hind.root)[1:]) if hind else ()
    spine = _between(bones, hips, chest) if chest and chest != hips else loins
    if head := named_head(bones, (chest, hips)):
        below = {*spine, *bones.tree.ancestors(hips)}
        above = [name for name in bones.tree.ancestors(head) if name not in below]
        beyond = tuple(above[::-1])
    else:
        behind = _swept(bones, finned) if finned else ()
        beyond = _beyond(bones, (*spine, hips, *behind), chest or hips)
        head = _head(bones, beyond)
    neck = beyond[: beyond.index(head)] if head else ()
    body = [hips, *spine] if finned else [hips, *loins]
    tail = _tail(bones, body, {*spine, *beyond}.difference(loins))
    return Trunk(hips, spine, neck, head, tail, _front(bones, hind, fore, head, hips))


def _body_root(bones: Skeleton, hips: str) -> str:
    """The highest bone above the hips that lies in the body with them, not on the ground."""
    found = hips
    height = bones.places[hips].z - bones.ground if hips else 0.0
    for above in bones.tree.ancestors(hips):
        rise = abs(bones.places[above].z - bones.places[hips].z)
        is_root = above != hips and words.says(above, Clue.ROOT)
        if not bones.is_middle(above) or rise > BESIDE * height or is_root:
            break
        found = above
    return found


def _top(bones: Skeleton, name: str, lies: bool) -> str:
    """The highest middle bone above one that is no root; of a body that lies, none below or above it."""
    path = [each for each in bones.tree.ancestors(name) if bones.is_middle(each)][::-1]
    for above, below in pairwise(path):
        way = bones.places[below] - bones.places[above]
        beside = lies and (way.length <= STEP * bones.size or way.z**2 > 0.5 * way.length_squared)
        if not words.says(above, Clue.ROOT) and (len(bones.tree.children[above]) > 1 or not beside):
            return above
    return path[-1] if path else ""


def _swept(bones: Skeleton, fins: Limb) -> list[str]:
    """Middle bones on the one that fins hang on which lead to where the fins are swept: towards the tail."""
    last = main_chain(bones, fins.bones[0])[-1]
    along = Vector(bones.halves.across.cross(Vector((0.0, 0.0, 1.0))))
    sweep = (bones.places[last] - fins.base).dot(along)
    if abs(sweep) <= STEP * bones.size:
        return []
    return [
        child
        for child in bones.tree.children.get(fins.root, ())
        if bones.is_middle(child)
        and (bones.places[main_chain(bones, child)[-1]] - bones.places[fins.root]).dot(along) * sweep > 0.0
    ]


def _between(bones: Skeleton, hips: str, chest: str) -> tuple[str, ...]:
    """From above the hips to the chest."""
    if not hips:
        return (chest,)
    start = bones.tree.common(hips, chest)
    path = bones.tree.path(start, chest) if start else list(bones.tree.ancestors(chest))[::-1]
    return tuple(name for name in path if name != hips and (start == hips or name != start))


def named_head(bones: Skeleton, body: Collection[str]) -> str:
    """The middle bone that is called a head, or else carries a face; empty for none.

    Args:
        bones: a symmetrical skeleton.
        body: bones that hang on no head.
    """
    above = {each for name in body for each in bones.tree.ancestors(name)}
    names = [name for name in bones.tree.below("") if name and name not in above]
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


def _beyond(bones: Skeleton, trunk_bones: tuple[str, ...], chest: str) -> tuple[str, ...]:
    """The row of middle bones from the chest on, up to where ears, eyes and jaws hang."""
    found: list[str] = []
    name = chest
    while name:
        further = [
            child
            for child in bones.tree.children[name]
            if bones.is_middle(child) and child not in trunk_bones and _leads(bones, name, child)
        ]
        if found and any(not bones.is_middle(child) for child in bones.tree.children[name]):
            break
        name = max(further, key=lambda child: bones.reaches[child], default="")
        if name:
            found.append(name)
    return tuple(found)


def _leads(bones: Skeleton, name: str, child: str) -> bool:
    return (bones.places[child] - bones.places[name]).length > STEP * bones.size


def _head(bones: Skeleton, beyond: tuple[str, ...]) -> str:
    """The longest bone after the first of a neck; of two as long the first, as the other marks its end."""
    best = ""
    for place, name in enumerate(beyond):
        if place == 0 and len(beyond) > 1:
            continue
        if not best or _bone_length(bones, beyond, name) > LONGER * _bone_length(bones, beyond, best):
            best = name
    return best


def _bone_length(bones: Skeleton, chain: tuple[str, ...], name: str) -> float:
    """From where a bone starts to where the next one of a chain does; the last one's own length."""
    place = chain.index(name) + 1
    bone = bones.tree.bones[name]
    end = bones.places[chain[place]] if place < len(chain) else Vector(bone.tail)
    return (end - bones.places[name]).length


def _tail(bones: Skeleton, body: Sequence[str], taken: set[str]) -> tuple[str, ...]:
    """The row of middle bones that is called a tail, or else the longest on the body but spine and head."""
    head = {each for name in taken for each in bones.tree.below(name)}
    rows = [
        _middle_row(bones, child)
        for name in body
        if name
        for child in bones.tree.children[name]
        if bones.is_middle(child) and child not in taken and child not in body
    ]
    called = [name for name in bones.tree.below("") if name and words.read(name).part is Part.TAIL]
    for name in called:
        if bones.is_middle(name) and name not in head:
            rows = [_middle_row(bones, name)]
            break
    long = [row for row in rows if len(row) > 1 and bones.reaches[row[0]] >= LEAST_TAIL * bones.size]
    return max(long, key=lambda row: bones.reaches[row[0]], default=())


def _middle_row(bones: Skeleton, name: str) -> tuple[str, ...]:
    """A bone and the longest row of middle bones on it."""
    row = [name]
    while further := [each for each in bones.tree.children[row[-1]] if bones.is_middle(each)]:
        row.append(max(further, key=lambda each: bones.reaches[each]))
    return tuple(row)


def _front(bones: Skeleton, hind: Limb | None, fore: Limb | None, head: str, hips: str) -> Vector:
    """Where the figure faces: as its body lies, or where it is upright as its feet point."""
    along = Vector(bones.halves.across.cross(Vector((0.0, 0.0, 1.0))))
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
    """Where figures usually face: -Y in Blender, +X where their plane lies along X, as machines do."""
    along = Vector(bones.halves.across.cross(Vector((0.0, 0.0, 1.0))))
    return along * (1.0 if along.y < 0.0 or (along.y == 0.0 and along.x > 0.0) else -1.0)
