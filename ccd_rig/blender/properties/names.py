# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in messages, and names that are unique in their list."""

import re
from collections.abc import Iterable, Sequence

from ...json_text import shown

SHOWN = 3
"""So many names are listed in a message."""


def named(names: Sequence[str]) -> str:
    """Names in quotes, the first few of many."""
    words = ", ".join(f"'{shown(name)}'" for name in names[:SHOWN])
    return words + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def unique_name(name: str, taken: Iterable[str]) -> str:
    """`name`, or with the next free number at its end as Blender counts: "Arm", "Arm.001"."""
    return UniqueNames(taken).take(name)


class UniqueNames:
    """Names that are given out one after the other, each once."""

    def __init__(self, taken: Iterable[str]) -> None:
        """`taken` are given out already."""
        self._taken = set(taken)
        self._counts: dict[str, int] = {}  # all numbers up to these are taken

    def take(self, name: str) -> str:
        """`name` as `unique_name` gives it; it is taken from then on."""
        free = name
        if name in self._taken:
            stem = re.sub(r"\.\d{3,}$", "", name)
            number = self._counts.get(stem, 0)
            while free in self._taken:
                number += 1
                free = f"{stem}.{number:03d}"
            self._counts[stem] = number
        self._taken.add(free)
        return free
