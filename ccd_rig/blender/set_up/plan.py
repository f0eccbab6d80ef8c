# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan of a figure's constraints, from the roles of its bones and the user's choices."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mathutils import Vector

from ..figures.recognition import RIGIFY
from ..figures.role import FRONT_PARTS, LEG_PARTS, SIDES, Figure, Kind, Part, RestBone, Role, SkeletonTree
from ..figures.structure import ANKLE

PAW = 0.1
"""Largest height of an animal's toe that stands on the ground, in the leg's height."""


class Group(enum.StrEnum):
    """Part of a figure that the user chooses."""

    HANDS = "hands"
    FEET = "feet"
    HEAD = "head"
    HIPS = "hips"
    TAIL = "tail"
    WINGS = "wings"


SINGULAR = {Group.HANDS: "hand", Group.FEET: "foot", Group.WINGS: "wing"}
"""Words for one of a group."""


@dataclass(frozen=True)
class PlannedRow:
    """Constraint to make."""

    group: Group  # of the figure
    role: Role  # of its bone
    tip: str  # name of its bone
    top: str  # name of the first bone of its chain
    use_tail: bool = False  # whether the tail of the bone reaches the target, or its head
    copies_rotation: bool = True  # whether the bone copies the target's rotation
    bend: str = ""  # bone that starts at the knee or elbow; empty for chains without a pole
    reaches: bool = True  # whether the end of the bone reaches the target
    slides: bool = False  # whether the bone also slides, as the root of a figure


def planned_rows(figure: Figure, bones: Sequence[RestBone]) -> list[PlannedRow]:
    """Plan the constraints of a figure; none without known roles.

    Args:
        bones: all bones of the armature, in a space whose Z points up.
    """
    tree = SkeletonTree(bones)
    rows = [*_hips(figure, tree), *_head(figure, tree), *_arms(figure), *_legs(figure, tree)]
    rows += [*_many_legs(figure), *_chains(figure, tree, Part.TAIL, Group.TAIL)]
    rows += _chains(figure, tree, Part.WING, Group.WINGS)
    return [row for row in rows if tree.path(row.top, row.tip)]


def _hips(figure: Figure, tree: SkeletonTree) -> Iterator[PlannedRow]:
    """Plan a constraint for the bone above legs and head, which slides."""
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
        # Controls of a generated neck and head are no parents of each other.
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
    for pieces in (LEG_PARTS[1:], FRONT_PARTS):
        for side in SIDES:
            thigh, shin, foot, toe = (figure.bones(part, side) for part in pieces)
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
    """Bone of an animal's foot that stands on the ground: the foot bone's heel is above it."""
    low = [toe for toe in toes if _height(tree, toe) <= PAW * _height(tree, thigh)]
    hanging = [toe for toe in (*low[:1], *reversed(toes)) if tree.path(foot, toe)]
    return hanging[0] if hanging else foot


def _is_flat(tree: SkeletonTree, thigh: str, foot: str, toes: Sequence[str]) -> bool:
    """Whether a foot extends its leg by little, in any orientation: else its heel is above the ground."""
    leg, whole = (
        Vector(tree.bones[end].head) - Vector(tree.bones[thigh].head) for end in (foot, (foot, *toes)[-1])
    )
    along: float = whole.dot(leg.normalized())
    return leg.length > (1.0 - ANKLE) * along


def _height(tree: SkeletonTree, name: str) -> float:
    """Height of a bone's head above the lowest head."""
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
        # Parents of a generated rig's controls may be no controls, which ends a row early.
        rows = [[name for name in whole[: k + 1] if tree.is_below(whole[k], name)] for k in range(len(whole))]
        row = max(reversed(rows), key=len)
        if len(row) > 1:
            role = figure.roles[row[-1]]
            yield PlannedRow(group, role, row[-1], row[0], use_tail=True, copies_rotation=False)


class Ranges(enum.StrEnum):
    """Use of the preset's ranges for joints."""

    NONE = "NONE"
    COMFORT = "COMFORT"
    """Comfort regions, which joints leave only for their targets."""
    HINGES = "HINGES"
    """Limits of knees and elbows alone."""
    LIMITS = "LIMITS"
    """Limits."""


RANGES = (
    (Ranges.NONE, "Free", "No range: joints turn freely"),
    (Ranges.COMFORT, "Comfort", "Comfort regions: joints stay inside as long as their targets allow it"),
    (
        Ranges.HINGES,
        "Knees and Elbows",
        "Limits of knees and elbows, so that they bend to one side; all else turns freely",
    ),
    (Ranges.LIMITS, "Limits", "Limits: joints never go further, even if a target is missed"),
)
"""Labels and tooltips of `Ranges`."""

ONE = (Group.HEAD, Group.HIPS, Group.TAIL)


@dataclass(frozen=True)
class Choices:
    """Choices of the user.

    Attributes:
        groups: that get constraints.
        poles: objects that knees and elbows point at, where they bend to now; without it limbs that are
            straight get them, since nothing else tells their side.
        turn_hands: hands turn as their targets do; else they stay as they are on their forearms.
        ranges: what joints of the chains without a range get from the preset for such a figure.
        plant: hold feet where they are in the world and let hips follow, instead of targets for feet.
        follow_motion: where the figure is animated, key targets along its motion over the scene's range: a
            bake then leaves it as it is until a target is moved.
        roles: {bone: words of a role that replaces the recognised one}; empty words for none.
        control_bones: make targets and poles as bones of the armature, with a bone collection and shapes of
            their own, instead of empties.
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
class SetUpResult:
    """Result of a set-up."""

    kind: Kind  # of the figure
    family: str  # of its bones' names; empty if it was recognised by structure
    available: tuple[Group, ...] = ()  # groups of the figure
    carrier: str = ""  # name of the figure's root bone; empty if there is none
    rows: dict[Group, list[str]] = field(default_factory=dict)  # {group: names of its new constraints}
    poles: int = 0  # number of new poles
    is_planted: bool = False  # whether planted feet shift the hips
    notes: list[str] = field(default_factory=list)  # messages to the user, without a full stop
    # {bone: (words of its role, words of the recognised role)}; empty words for none. Of generated rigs
    # controls with a role alone.
    roles: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def words(self) -> str:
        """Summary, such as "Mixamo human: 2 hands, 2 feet, head, hips, 4 poles"."""
        counts = [_counted(group, len(names)) for group, names in self.rows.items()]
        if self.poles:
            counts.append(f"{self.poles} pole{'' if self.poles == 1 else 's'}")
        name = f"{self.family} {self.kind}".strip()
        return f"{name[:1].upper()}{name[1:]}: {', '.join(counts)}"


def _counted(group: Group, count: int) -> str:
    return str(group) if group in ONE else f"{count} {SINGULAR[group] if count == 1 else group}"
