# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of all pose bones of an armature at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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

    def look(self, pose_bones: Any) -> NDArray[np.float32]:
        """(N,) all values, property by property."""
        count, start = len(pose_bones), 0
        whole = np.empty(count * sum(self.widths.values()), np.float32)
        for name, width in self.widths.items():
            end = start + count * width
            pose_bones.foreach_get(name, whole[start:end].view(KINDS.get(name, np.float32)))
            start = end
        return whole

    def values(self, seen: NDArray[np.float32]) -> Values:
        """Of (R, N) rows of `look` the values of each property, (R, bones, width)."""
        count = seen.shape[1] // sum(self.widths.values())
        parts = np.split(seen, count * np.cumsum(list(self.widths.values()))[:-1], axis=1)
        return {
            name: part.view(KINDS.get(name, np.float32)).reshape(len(seen), count, -1)
            for name, part in zip(self.widths, parts, strict=True)
        }
