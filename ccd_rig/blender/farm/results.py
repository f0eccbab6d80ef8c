# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a task writes for a shot or a clip, by their names."""

from __future__ import annotations

from typing import NamedTuple


class Names(NamedTuple):
    """Names of the files, all in the folder of the results.

    Attributes:
        blend: the baked file.
        report: of the bake or the retargeting.
        record: what both were made from, see `Record`.
    """

    blend: str
    report: str
    record: str


def names(name: str) -> Names:
    """The files of a shot or clip of this name."""
    return Names(f"{name}.blend", f"{name}.json", f"{name}.record.json")
