# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of all pose bones of an armature at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = Mapping[str, NDArray[Any]]
"""Name of a property -> (R, bones, width) its values at R frames, in the order of `pose.bones`."""


KINDS = {"rotation_mode": np.int32}
"""Properties that do not hold float32."""


def foreach(pose_bones: Any, name: str, width: int) -> NDArray[Any]:
    """(bones, width) values of one property of all pose bones, in the order of `pose_bones`."""
    values = np.empty(len(pose_bones) * width, KINDS.get(name, np.float32))
    pose_bones.foreach_get(name, values)
    return values.reshape(-1, width)


@dataclass(frozen=True)
class Watched:
    """Properties of all pose bones that are looked at over and over.

    Attributes:
        widths: how many values each has for a bone, by name; all but those of `KINDS` are float32.
    """

    widths: Mapping[str, int]
    _rooms: dict[int, tuple[NDArray[np.float32], list[tuple[str, NDArray[Any]]]]] = field(
        default_factory=dict, repr=False
    )

    def look(self, pose_bones: Any) -> NDArray[np.float32]:
        """(N,) all values, property by property."""
        whole, views = self._room(len(pose_bones))
        for name, view in views:
            pose_bones.foreach_get(name, view)
        return whole.copy()

    def _room(self, count: int) -> tuple[NDArray[np.float32], list[tuple[str, NDArray[Any]]]]:
        """Room for the values of so many bones, and its part for each property."""
        if count not in self._rooms:
            whole = np.empty(count * sum(self.widths.values()), np.float32)
            parts = np.split(whole, count * np.cumsum(list(self.widths.values()))[:-1])
            views = [
                (name, part.view(KINDS.get(name, np.float32)))
                for name, part in zip(self.widths, parts, strict=True)
            ]
            self._rooms.clear()
            self._rooms[count] = whole, views
        return self._rooms[count]

    def values(self, seen: NDArray[np.float32]) -> Values:
        """Of (R, N) rows of `look` the values of each property, (R, bones, width)."""
        count = seen.shape[1] // sum(self.widths.values())
        parts = np.split(seen, count * np.cumsum(list(self.widths.values()))[:-1], axis=1)
        return {
            name: part.view(KINDS.get(name, np.float32)).reshape(len(seen), count, -1)
            for name, part in zip(self.widths, parts, strict=True)
        }
