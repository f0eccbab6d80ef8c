# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in messages, and names that are unique in their list."""

import re
from collections.abc import Iterable, Sequence

from ...json_text import printable, shown

SHOWN = 3
"""Number of names that a message lists."""


def named(names: Sequence[str]) -> str:
    """Return names in quotes for a message: the first `SHOWN`, and the number of the rest."""
    words = ", ".join(f"'{printable(shown(name))}'" for name in names[:SHOWN])
    return words + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def sentence(words: str) -> str:
    """Capitalise the first letter, unlike `str.capitalize` no other."""
    return words[:1].upper() + words[1:]


def unique_name(name: str, taken: Iterable[str]) -> str:
    """Return `name`, with the next free number at its end if it is taken: "Arm", "Arm.001"."""
    return UniqueNames(taken).take(name)


class UniqueNames:
    """Source of names that are unique in a list."""

    def __init__(self, taken: Iterable[str]) -> None:
        """Start with the names in the list."""
        self._taken = set(taken)
        self._counts: dict[str, int] = {}  # by stem: the numbers up to this one are taken

    def take(self, name: str) -> str:
        """Return a name as `unique_name` does, and mark it as taken."""
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
