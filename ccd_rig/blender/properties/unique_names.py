# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that are unique in their list."""

import re
from collections.abc import Iterable


def unique_name(name: str, taken: Iterable[str]) -> str:
    """`name`, or with the next free number at its end as Blender counts: "Arm", "Arm.001"."""
    taken = set(taken)
    if name not in taken:
        return name
    stem = re.sub(r"\.\d{3,}$", "", name)
    return next(free for i in range(1, len(taken) + 2) if (free := f"{stem}.{i:03d}") not in taken)
