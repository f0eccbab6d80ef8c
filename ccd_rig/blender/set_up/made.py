# SPDX-License-Identifier: GPL-3.0-or-later
"""What to set up of a figure, and what was set up."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..figures.role import Kind
from .planned_rows import Group


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
