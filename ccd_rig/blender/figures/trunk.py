# SPDX-License-Identifier: GPL-3.0-or-later
"""The middle of a symmetrical skeleton: hips, spine, neck, head and tail."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from mathutils import Vector

from . import words
from .limbs import Limb, Skeleton, is_arm, main_chain
from .role import Part
from .words import Clue

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
        if not best or _length(bones, beyond, name) > LONGER * _length(bones, beyond, best):
            best = name
    return best


def _length(bones: Skeleton, chain: tuple[str, ...], name: str) -> float:
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
