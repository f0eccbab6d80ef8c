# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in messages."""

from collections.abc import Sequence

from ...json_text import shown

SHOWN = 3
"""So many names are listed in a message."""


def named(names: Sequence[str]) -> str:
    """Names in quotes, the first few of many."""
    words = ", ".join(f"'{shown(name)}'" for name in names[:SHOWN])
    return words + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
