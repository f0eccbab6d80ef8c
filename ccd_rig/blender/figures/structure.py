# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognition by the rest pose: two halves with limbs in pairs, or a single row of bones.

A row is a tail or a snake; other bones on it are small beside it. All points are in a space whose Z points
up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from mathutils import Vector

from . import words
from .role import ARM_PARTS, FRONT_PARTS, LEG_PARTS, Kind, Part, Role, Side, SkeletonTree
from .symmetry import (
    LEAST_LIMB,
    UP,
    Limb,
    Skeleton,
    Trunk,
    body_of_legs,
    ends,
    fins_of,
    halves,
    is_arm,
    joints,
    legs_of,
    lengths_of,
    limbs,
    named_head,
    skeleton,
    trunk,
    usual_front,
    wings_of,
    with_neck,
    without_wings,
)
from .words import Clue


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
        is_root = words.says(stem[0], Clue.ROOT) and words.read(stem[0]).part is None
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
AXES = (Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)))
SPRAWL = 0.8
"""Length over height above which a leg's first bone is a lizard's thigh; pelvis bones have up to 0.58."""
MIDDLE = 0.1
"""Largest offset of a girdle bone's head from the median plane, in offsets of its end."""


def by_structure(tree: SkeletonTree) -> tuple[Kind, dict[str, Role]]:
    """Recognise kind and roles by structure; UNKNOWN and no roles if it is ambiguous."""
    split = halves(tree, AXES)
    if split is None:
        return chain(tree)
    bones = skeleton(tree, split)
    bones = without_wings(bones, wings_of(bones, limbs(bones)))
    pairs = limbs(bones)
    wings = wings_of(bones, pairs)
    legs = legs_of(bones, [limb for limb in pairs if limb not in wings])
    head = named_head(bones, ())
    free = [
        limb
        for limb in pairs
        if limb not in legs
        and limb not in wings
        and (not head or not bones.tree.is_below(limb.root, head) or limb.says(Clue.ARM))
    ]
    arms = [limb for limb in free if is_arm(bones, limb)]
    if not legs and len(free) > 2:  # an octopus, a machine with its legs stretched out
        legs, free, arms = free, [], []
    if len(legs) > 2:
        middle = with_neck(bones, legs, trunk(bones, legs[0], None))
        roles = _many_legs(bones, legs, middle)
        arms += [limb for limb in free if limb not in arms and limb.root == legs[0].root]
        return Kind.MANY_LEGS, roles | _arms(bones, arms, middle) | _wings(bones, wings, middle)
    if len(legs) == 2:
        hind, fore = _hind_and_fore(bones, legs)
        middle = trunk(bones, hind, fore)
        roles = _trunk_roles(middle)
        left = _left(bones, middle.front)
        roles |= _leg_roles(bones, hind, left, LEG_PARTS, middle.front)
        roles |= _leg_roles(bones, fore, left, FORE, middle.front)
        return Kind.QUADRUPED, roles | _arms(bones, arms, middle, 1) | _wings(bones, wings, middle)
    if len(legs) == 1:
        return _two_legs(bones, legs[0], free, wings)
    if arms:
        middle = trunk(bones, None, arms[0])
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
    fore = max(arms or wings, key=lambda limb: bones.reaches[limb.bones[0]], default=None)
    middle = trunk(bones, legs, fore)
    roles = _trunk_roles(middle)
    left = _left(bones, middle.front)
    roles |= _leg_roles(bones, legs, left, LEG_PARTS, middle.front)
    top = middle.head or (middle.spine[-1] if middle.spine else "")
    way = bones.places[top] - bones.places[middle.hips] if top and middle.hips else UP
    upright = way.z > UPRIGHT * abs(way.dot(middle.front)) and (arms or not wings)
    if not upright and not (fore and fore in arms and is_arm(bones, fore)):
        return Kind.BIRD, roles | _wings(bones, [*arms, *wings], middle)
    arms = [limb for limb in arms if limb is fore or is_arm(bones, limb)]
    roles |= _arms(bones, arms, middle) | _wings(bones, wings, middle)
    feet = [bones.places[name].z for name, role in roles.items() if role == Role(Part.FOOT, Side.LEFT)]
    flat = not feet or feet[0] - bones.ground < ANKLE * (legs.base.z - bones.ground)
    return Kind.HUMAN if upright and flat else Kind.BIPED, roles


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
    return _halfway(bones, names[: ankle + 1]), ankle


def _bend(bones: Skeleton, names: Sequence[str], place: int) -> float:
    """Signed angle between a bone of a row and the one before it, radians, about the plane's normal."""
    before, start, end = (bones.places[name] for name in names[place - 1 : place + 2])
    angle: float = (start - before).angle(end - start, 0.0)
    return math.copysign(angle, (start - before).cross(end - start).dot(bones.halves.across))


def _halfway(bones: Skeleton, names: Sequence[str]) -> int:
    """Index of the inner joint of a row that is nearest to half its length."""
    points = [bones.places[name] for name in names]
    ways = [(b - a).length for a, b in pairwise(points)]
    whole = sum(ways)
    return min(range(1, len(names) - 1), key=lambda place: abs(sum(ways[:place]) - 0.5 * whole))


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
    """Indices of an arm's bones at shoulder joint, elbow and wrist: equal halves, a short shoulder."""
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
