# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles of bones in figures, as values, and bones at rest as a tree."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

Point = tuple[float, float, float]


class Part(enum.StrEnum):
    """Part of a body. Hind legs of quadrupeds have the parts of legs; front legs have separate ones."""

    HIPS = "hips"
    SPINE = "spine"
    NECK = "neck"
    HEAD = "head"
    TAIL = "tail"
    TRUNK = "trunk"
    """Of an elephant."""
    SHOULDER = "shoulder"
    UPPER_ARM = "upper arm"
    LOWER_ARM = "lower arm"
    HAND = "hand"
    FINGER = "finger"
    PELVIS = "pelvis"
    """Bone of one side between the hips and a hind leg."""
    THIGH = "thigh"
    SHIN = "shin"
    FOOT = "foot"
    TOE = "toe"
    FRONT_THIGH = "front thigh"
    FRONT_SHIN = "front shin"
    FRONT_FOOT = "front foot"
    FRONT_TOE = "front toe"
    WING = "wing"
    LEG = "leg"
    """Any bone of a leg, where a figure has more than four."""


ARM_PARTS = (Part.SHOULDER, Part.UPPER_ARM, Part.LOWER_ARM, Part.HAND, Part.FINGER)
LEG_PARTS = (Part.PELVIS, Part.THIGH, Part.SHIN, Part.FOOT, Part.TOE)
FRONT_PARTS = (Part.FRONT_THIGH, Part.FRONT_SHIN, Part.FRONT_FOOT, Part.FRONT_TOE)
"""Parts of arms, of legs and of front legs, from the body on."""
_LIMBS = ((Part.HIPS, Part.SPINE, Part.NECK, Part.HEAD), ARM_PARTS, LEG_PARTS, FRONT_PARTS)


class Side(enum.StrEnum):
    """Side of the figure, from its point of view."""

    LEFT = "L"
    RIGHT = "R"
    MIDDLE = ""


SIDES = (Side.LEFT, Side.RIGHT)
OTHER_SIDE = {Side.LEFT: Side.RIGHT, Side.RIGHT: Side.LEFT, Side.MIDDLE: Side.MIDDLE}


@dataclass(frozen=True, order=True)
class Role:
    """Role of a bone, unique in its figure."""

    part: Part  # of the body
    side: Side = Side.MIDDLE  # of the body
    index: int = 0  # of the bone in its part, from 0, away from hips or body
    # Of the limb on its side, from 0: fingers and toes from the thumb on, legs and wings from front to back.
    number: int = 0

    def limb(self) -> str:
        """Its limb as text, such as "left upper arm", "spine" or "3rd left finger"."""
        name = f"{_SIDE_WORDS[self.side]}{self.part}"
        is_counted = self.number or self.part in _SEVERAL
        return " ".join((_ordinal(self.number + 1), name)) if is_counted else name

    def goes_on_as(self, other: Role) -> bool:
        """Whether its limb goes on as another bone further out; a hand goes on as each of its fingers."""
        if self.side is not other.side:
            return False
        if self.part is other.part:
            return self.number == other.number and self.index < other.index
        return any(self.part in limb and other.part in limb[limb.index(self.part) + 1 :] for limb in _LIMBS)

    def words(self) -> str:
        """Role as text, such as "left upper arm", "spine 2" or "3rd left finger, bone 2"."""
        limb = self.limb()
        if not self.index:
            return limb
        return f"{limb}{', bone' if limb[0].isdigit() else ''} {self.index + 1}"


_SIDE_WORDS = {Side.LEFT: "left ", Side.RIGHT: "right ", Side.MIDDLE: ""}
_SEVERAL = (Part.LEG, Part.FINGER)
"""Parts of which a side has several limbs; the first is counted too."""
_ROLE = re.compile(r"(?:([1-9]\d?)[a-z]{2} )?([a-z ]+?)(?: ([1-9]\d{0,2}))?")


def _ordinal(count: int) -> str:
    ending = "th" if count // 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{ending}"


def read_role(text: str) -> Role | None:
    """Parse the `words` of a role, in any case; None if they are of no role."""
    match = _ROLE.fullmatch(" ".join(text.casefold().split()).replace(", bone", ""))
    limb, words, bone = match.groups() if match else (None, "", None)
    side = next(each for each, start in _SIDE_WORDS.items() if words.startswith(start))
    part = words.removeprefix(_SIDE_WORDS[side])
    if part not in set(Part):
        return None
    return Role(Part(part), side, int(bone or 1) - 1, int(limb or 1) - 1)


class Kind(enum.StrEnum):
    """Kind of a figure's body."""

    HUMAN = "human"
    QUADRUPED = "quadruped"
    BIRD = "bird"
    BIPED = "two-legged animal"
    """Leans forwards on two legs, and has arms rather than wings."""
    MANY_LEGS = "many-legged animal"
    FISH = "fish"
    CHAIN = "chain"
    """A single row of bones, such as a tail, a tentacle or a snake."""
    UNKNOWN = "unknown"


class RestBone(NamedTuple):
    """Bone at rest, as input of the recognition."""

    name: str  # unique
    parent: str  # name of the parent; empty for a root
    head: Point  # in a space that all bones of an armature share
    tail: Point  # likewise
    deforms: bool = True  # whether it deforms meshes
    rigify_type: str = ""  # Rigify's type of the limb that starts here; empty for none
    # Whether its head is connected to the parent's tail, so that its location has no effect.
    connected: bool = False


CLAVICLE_MOBILITY = 45.0 / 180.0
"""Mobility of a clavicle beside its arm, as their ranges of elevation are (`limit_sources.joint_ranges`).

With equal mobilities a pull shrugs the shoulder by 30 degrees where the elbow could bend."""


@dataclass(frozen=True)
class Figure:
    """A recognised figure."""

    kind: Kind  # of its body
    roles: Mapping[str, Role]  # {bone: role}; bones without a role are left out
    family: str = ""  # of its bones' names, such as "Mixamo"; empty if it was recognised by structure

    def bones(self, part: Part, side: Side = Side.MIDDLE, number: int = 0) -> tuple[str, ...]:
        """Names of the bones of a part, in the order of their index."""
        indexed = [
            (role.index, name)
            for name, role in self.roles.items()
            if (role.part, role.side, role.number) == (part, side, number)
        ]
        return tuple(name for _, name in sorted(indexed))

    def is_clavicle(self, name: str) -> bool:
        """Whether a bone is the shoulder of an arm."""
        role = self.roles.get(name)
        return (
            role is not None
            and role.part is Part.SHOULDER
            and bool(self.bones(Part.UPPER_ARM, role.side, role.number))
        )

    def is_pelvis(self, name: str) -> bool:
        """Whether a bone is the pelvis of a leg."""
        return name in self.roles and self.roles[name].part is Part.PELVIS

    def partner(self, name: str) -> str:
        """Bone of the same role on the other side, the bone itself in the middle; empty if missing."""
        role = self.roles.get(name)
        if role is None:
            return ""
        other = replace(role, side=OTHER_SIDE[role.side])
        return next((bone for bone, each in self.roles.items() if each == other), "")


class SkeletonTree:
    """Bones by name, with their children in the order of the bones."""

    def __init__(self, bones: Iterable[RestBone]) -> None:
        self.bones = {bone.name: bone for bone in bones}
        self.children: dict[str, list[str]] = {name: [] for name in ("", *self.bones)}
        for bone in self.bones.values():
            parent = bone.parent if bone.parent in self.bones else ""
            self.children[parent].append(bone.name)

    def ancestors(self, name: str) -> Iterator[str]:
        """Yield a bone and its ancestors, upwards."""
        while name in self.bones:
            yield name
            name = self.bones[name].parent

    def below(self, name: str) -> Iterator[str]:
        """Yield a bone and its descendants, parents first; all bones for the empty name."""
        left = [name]
        while left:
            name = left.pop()
            if name:
                yield name
            left += reversed(self.children[name])

    def is_below(self, name: str, above: str) -> bool:
        """Whether a bone is `above`, or a descendant of it."""
        return above in self.ancestors(name)

    def path(self, above: str, below: str) -> list[str]:
        """Bones from an ancestor to a descendant, both included; empty if they are not related so."""
        upwards: list[str] = []
        for name in self.ancestors(below):
            upwards.append(name)
            if name == above:
                return upwards[::-1]
        return []

    def between(self, one: str, other: str) -> list[str]:
        """Bones on the way from a bone, left out, to another one, included; from its root if they share none.

        Their common ancestor is left out too.
        """
        start = self.common(one, other)
        path = self.path(start, other) if start else list(self.ancestors(other))[::-1]
        return [name for name in path if name not in (one, start)]

    def common(self, one: str, other: str) -> str:
        """Lowest common ancestor, which may be one of the two bones; empty without one."""
        above = set(self.ancestors(one))
        return next((name for name in self.ancestors(other) if name in above), "")
