# SPDX-License-Identifier: GPL-3.0-or-later
"""Choices of the user for the set-up of a figure."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


class Group(enum.StrEnum):
    """Part of a figure that the user chooses."""

    HANDS = "hands"
    FEET = "feet"
    HEAD = "head"
    HIPS = "hips"
    TAIL = "tail"
    TRUNK = "trunk"
    WINGS = "wings"


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
