# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of panels as values: what kinds of constraints and of limits show of themselves."""

from typing import Any, NamedTuple


class Shown(NamedTuple):
    """A property in a line of a panel.

    Attributes:
        group: the property group that has it.
        name: of the property.
        text: its label; None: its name.
        is_active: whether it is drawn at full strength.
    """

    group: Any
    name: str
    text: str | None = None
    is_active: bool = True


class Line(NamedTuple):
    """A line of a panel: properties side by side or below each other, or a sentence.

    Attributes:
        shown: the properties.
        heading: words before them.
        toggle: whether switches are drawn as buttons.
        is_wide: whether the properties take the full width, without a column for labels.
        is_column: whether the properties stand below each other.
        words: the sentence.
        icon: before the sentence.
    """

    shown: tuple[Shown, ...] = ()
    heading: str = ""
    toggle: bool = False
    is_wide: bool = False
    is_column: bool = False
    words: str = ""
    icon: str = "INFO"
