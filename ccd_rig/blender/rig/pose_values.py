# SPDX-License-Identifier: GPL-3.0-or-later
"""Bulk reads of properties of all pose bones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = Mapping[str, NDArray[Any]]
"""Name of a property -> (R, bones, width) values at R frames, in the order of `pose.bones`."""


TYPES = {"rotation_mode": np.int32}
"""Types of the properties that are not float32."""


def foreach(pose_bones: Any, name: str, width: int) -> NDArray[Any]:
    """Read (bones, width) values of one property of all pose bones, in the order of `pose_bones`."""
    values = np.empty(len(pose_bones) * width, TYPES.get(name, np.float32))
    pose_bones.foreach_get(name, values)
    return values.reshape(-1, width)


@dataclass(frozen=True)
class Watched:
    """Set of properties that are read repeatedly from all pose bones.

    Attributes:
        widths: number of values of each property for a bone, by name.
    """

    widths: Mapping[str, int]
    _buffers: dict[int, tuple[NDArray[np.float32], list[tuple[str, NDArray[Any]]]]] = field(
        default_factory=dict, repr=False
    )

    def look(self, pose_bones: Any) -> NDArray[np.float32]:
        """Read all values, (N,), property by property."""
        buffer, views = self._buffer(len(pose_bones))
        for name, view in views:
            pose_bones.foreach_get(name, view)
        return buffer.copy()

    def _buffer(self, count: int) -> tuple[NDArray[np.float32], list[tuple[str, NDArray[Any]]]]:
        """Return the buffer for a number of bones, and its view for each property."""
        if count not in self._buffers:
            buffer = np.empty(count * sum(self.widths.values()), np.float32)
            pieces = np.split(buffer, count * np.cumsum(list(self.widths.values()))[:-1])
            views = [
                (name, piece.view(TYPES.get(name, np.float32)))
                for name, piece in zip(self.widths, pieces, strict=True)
            ]
            self._buffers.clear()
            self._buffers[count] = buffer, views
        return self._buffers[count]

    def values(self, seen: NDArray[np.float32]) -> Values:
        """Split (R, N) results of `look` into the values of each property, (R, bones, width)."""
        count = seen.shape[1] // sum(self.widths.values())
        pieces = np.split(seen, count * np.cumsum(list(self.widths.values()))[:-1], axis=1)
        return {
            name: piece.view(TYPES.get(name, np.float32)).reshape(len(seen), count, -1)
            for name, piece in zip(self.widths, pieces, strict=True)
        }
