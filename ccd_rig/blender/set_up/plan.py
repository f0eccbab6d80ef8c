# SPDX-License-Identifier: GPL-3.0-or-later
"""Which constraints bring a figure under control, from the roles of its bones and what the user chooses."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mathutils import Vector

from ..figures.role import Figure, Kind, Part, RestBone, Role, Side
from ..figures.roles import RIGIFY
from ..figures.skeleton_tree import SkeletonTree
from ..figures.structure import ANKLE

SIDES = (Side.LEFT, Side.RIGHT)
PAW = 0.1
"""Part of the leg's height up to which a toe of an animal starts where it stands on the ground."""


class Group(enum.StrEnum):
    """What of a figure is chosen together."""

    HANDS = "hands"
    FEET = "feet"
    HEAD = "head"
    HIPS = "hips"
    TAIL = "tail"
    WINGS = "wings"


SOFTNESS = 0.02
"""Part of their length over which arms and legs ease into straight."""
SOFT = (Group.HANDS, Group.FEET)
"""Groups whose chains are limbs, which snap where they become straight."""


@dataclass(frozen=True)
class PlannedRow:
    """One constraint to make.

    Attributes:
        group: what it belongs to.
        role: of its bone.
        tip: name of the bone.
        top: name of the last bone of its chain.
        use_tail: whether the bone's tail is brought to the target, or its head.
        copies_rotation: whether the bone turns as its target does.
        bend: bone that starts at the knee or elbow; empty where no pole says which way the chain bends.
        reaches: whether the bone's end is brought to the target.
        slides: whether the bone is also shifted, as one that carries the whole figure is.
    """

    group: Group
    role: Role
    tip: str
    top: str
    use_tail: bool = False
    copies_rotation: bool = True
    bend: str = ""
    reaches: bool = True
    slides: bool = False


def planned_rows(figure: Figure, bones: Sequence[RestBone]) -> list[PlannedRow]:
    """The constraints for a figure; none where nothing of it is known.

    Args:
        figure: the roles of its bones.
        bones: all bones of the armature, in a space whose Z points up.
    """
    tree = SkeletonTree(bones)
    rows = [*_hips(figure, tree), *_head(figure, tree), *_arms(figure), *_legs(figure, tree)]
    rows += [*_many_legs(figure), *_chains(figure, tree, Part.TAIL, Group.TAIL)]
    rows += _chains(figure, tree, Part.WING, Group.WINGS)
    return [row for row in rows if tree.path(row.top, row.tip)]


def _hips(figure: Figure, tree: SkeletonTree) -> Iterator[PlannedRow]:
    """A row for the bone that carries legs and head, and may be shifted."""
    hips = figure.bones(Part.HIPS)[:1]
    if figure.kind is Kind.CHAIN or not hips:
        return
    carrier = hips[0]
    if figure.family != RIGIFY:
        for above in (*figure.bones(Part.SPINE)[:1], *figure.bones(Part.HEAD)[:1]):
            carrier = tree.common(carrier, above) or carrier
        free = (name for name in tree.ancestors(carrier) if not tree.bones[name].connected)
        carrier = next(free, carrier)
    yield PlannedRow(Group.HIPS, figure.roles[hips[0]], carrier, carrier, slides=True)


def _head(figure: Figure, tree: SkeletonTree) -> Iterator[PlannedRow]:
    for name in figure.bones(Part.HEAD)[:1]:
        neck = [*figure.bones(Part.SPINE), *figure.bones(Part.NECK), name]
        above = [bone for bone in neck if tree.is_below(name, bone)]
        # Controls of a generated neck and head turn each for itself: none carries the next one.
        reaches = figure.family != RIGIFY and above[0] != name
        top = above[0] if reaches else name
        yield PlannedRow(Group.HEAD, figure.roles[name], name, top, reaches=reaches)


def _arms(figure: Figure) -> Iterator[PlannedRow]:
    numbers = sorted({role.number for role in figure.roles.values() if role.part is Part.HAND})
    for number in numbers:
        for side in SIDES:
            upper, lower, hand = (
                figure.bones(part, side, number) for part in (Part.UPPER_ARM, Part.LOWER_ARM, Part.HAND)
            )
            if upper and hand:
                bend = lower[0] if lower else ""
                yield PlannedRow(Group.HANDS, figure.roles[hand[0]], hand[0], upper[0], bend=bend)


def _legs(figure: Figure, tree: SkeletonTree) -> Iterator[PlannedRow]:
    hind = (Part.THIGH, Part.SHIN, Part.FOOT, Part.TOE)
    fore = (Part.FRONT_THIGH, Part.FRONT_SHIN, Part.FRONT_FOOT, Part.FRONT_TOE)
    for parts in (hind, fore):
        for side in SIDES:
            thigh, shin, foot, toe = (figure.bones(part, side) for part in parts)
            if thigh and foot:
                flat = figure.kind is Kind.HUMAN and _is_flat(tree, thigh[0], foot[0], toe)
                tip = foot[0] if flat else _paw(tree, thigh[0], foot[0], toe)
                bend = shin[0] if shin else ""
                yield PlannedRow(Group.FEET, figure.roles[tip], tip, thigh[0], bend=bend)
            elif thigh and shin:
                yield PlannedRow(
                    Group.FEET,
                    figure.roles[shin[-1]],
                    shin[-1],
                    thigh[0],
                    use_tail=True,
                    copies_rotation=False,
                    bend=shin[0],
                )


def _paw(tree: SkeletonTree, thigh: str, foot: str, toes: Sequence[str]) -> str:
    """The bone of an animal's foot that stands on the ground: a foot's own heel is up in the air."""
    low = [toe for toe in toes if _height(tree, toe) <= PAW * _height(tree, thigh)]
    hanging = [toe for toe in (*low[:1], *reversed(toes)) if tree.path(foot, toe)]
    return hanging[0] if hanging else foot


def _is_flat(tree: SkeletonTree, thigh: str, foot: str, toes: Sequence[str]) -> bool:
    """Whether a foot hardly makes its leg longer, however the figure lies: else its heel is up in the air."""
    leg, whole = (
        Vector(tree.bones[end].head) - Vector(tree.bones[thigh].head) for end in (foot, (foot, *toes)[-1])
    )
    along: float = whole.dot(leg.normalized())
    return leg.length > (1.0 - ANKLE) * along


def _height(tree: SkeletonTree, name: str) -> float:
    """Height of a bone's start above the lowest one."""
    return tree.bones[name].head[2] - min(bone.head[2] for bone in tree.bones.values())


def _many_legs(figure: Figure) -> Iterator[PlannedRow]:
    numbers = sorted({role.number for role in figure.roles.values() if role.part is Part.LEG})
    for number in numbers:
        for side in SIDES:
            leg = figure.bones(Part.LEG, side, number)
            if len(leg) > 1:
                role = figure.roles[leg[-1]]
                yield PlannedRow(
                    Group.FEET, role, leg[-1], leg[0], use_tail=True, copies_rotation=False, bend=leg[1]
                )


def _chains(figure: Figure, tree: SkeletonTree, part: Part, group: Group) -> Iterator[PlannedRow]:
    keys = sorted({(role.number, role.side) for role in figure.roles.values() if role.part is part})
    for number, side in keys:
        whole = figure.bones(part, side, number)
        # Controls of a generated rig may hang on bones that are none, and so end a row early.
        rows = [[name for name in whole[: k + 1] if tree.is_below(whole[k], name)] for k in range(len(whole))]
        row = max(reversed(rows), key=len)
        if len(row) > 1:
            role = figure.roles[row[-1]]
            yield PlannedRow(group, role, row[-1], row[0], use_tail=True, copies_rotation=False)


class Ranges(enum.StrEnum):
    """What joints get of the preset for such a figure."""

    NONE = "NONE"
    COMFORT = "COMFORT"
    """Comfort regions: joints stay inside as long as their targets allow it."""
    HINGES = "HINGES"
    """Limits of knees and elbows alone."""
    LIMITS = "LIMITS"
    """Limits, which are never left."""


RANGES = (
    (Ranges.NONE, "Free", "No range: joints turn freely"),
    (Ranges.COMFORT, "Comfort", "Comfort regions: joints stay inside as long as their targets allow it"),
    (
        Ranges.HINGES,
        "Knees and Elbows",
        "Limits of knees and elbows, which so bend to one side; all else turns freely",
    ),
    (Ranges.LIMITS, "Limits", "Limits: joints never go further, though a target be missed"),
)
"""Their labels and tooltips."""

ONE = (Group.HEAD, Group.HIPS, Group.TAIL)


@dataclass(frozen=True)
class Choices:
    """What to make.

    Attributes:
        groups: of constraints.
        poles: whether all knees and elbows get poles; else those of straight limbs, which have no side.
        turn_hands: whether hands turn as their targets do; else they stay as they are on their forearms.
        ranges: whether joints get the preset for such a figure, and as what.
        plant: whether feet are planted where they are, rather than having targets.
        follow_motion: whether targets are keyed along the motion that the figure has.
        roles: by bone, the words of a role that it has instead of the recognised one; empty for none.
        control_bones: whether targets and poles are bones of the armature itself, or empties.
    """

    groups: Collection[Group]
    poles: bool = False
    turn_hands: bool = False
    ranges: Ranges = Ranges.NONE
    plant: bool = False
    follow_motion: bool = True
    roles: Mapping[str, str] = field(default_factory=dict)
    control_bones: bool = False


@dataclass
class Made:
    """What was made, and what was not.

    Attributes:
        kind: of the figure.
        family: whose names its bones have; empty where its structure told.
        available: groups that the figure has.
        carrier: name of the bone that carries the whole figure; empty where there is none.
        rows: names of the new constraints by group.
        poles: how many.
        is_planted: whether planted feet shift the hips.
        notes: what the user should know, in sentences without a full stop.
        roles: by bone, the words of the role that it has and of the recognised one; empty for none. Of a
            generated rig only controls that have one.
    """

    kind: Kind
    family: str
    available: tuple[Group, ...] = ()
    carrier: str = ""
    rows: dict[Group, list[str]] = field(default_factory=dict)
    poles: int = 0
    is_planted: bool = False
    notes: list[str] = field(default_factory=list)
    roles: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def words(self) -> str:
        """Such as "Mixamo human: 2 hands, 2 feet, head, hips, 4 poles"."""
        counts = [_counted(group, len(names)) for group, names in self.rows.items()]
        if self.poles:
            counts.append(f"{self.poles} pole{'' if self.poles == 1 else 's'}")
        name = f"{self.family} {self.kind}".strip()
        return f"{name[:1].upper()}{name[1:]}: {', '.join(counts)}"


def _counted(group: Group, count: int) -> str:
    return str(group) if group in ONE else f"{count} {group}"
