# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of all pose bones of an armature at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Seen = Mapping[str, NDArray[Any]]
"""Name of a property -> (bones, width) its values, in the order of `pose.bones`."""

Watch = Callable[[Any], tuple[tuple[bytes, bytes], Seen]]
"""Looks at pose bones; see `watch`."""

KINDS = {"rotation_mode": np.int32}
"""Properties that do not hold float32."""


def foreach(pose_bones: Any, name: str, width: int) -> NDArray[Any]:
    """(bones, width) values of one property of all pose bones, in the order of `pose_bones`."""
    values = np.empty(len(pose_bones) * width, KINDS.get(name, np.float32))
    pose_bones.foreach_get(name, values)
    return values.reshape(-1, width)


def watch(names: Mapping[str, int]) -> Watch:
    """A function that looks at properties of all pose bones, over and over.

    It gives the values twice: as bytes, to be compared with what was seen before, those of channels and those
    of `matrix`; and as arrays, which hold them until it looks again.

    Args:
        names: of the properties, with how many values each bone has; `matrix` is the last if it is among
            them.
    """
    count, whole, channels = -1, np.empty(0, np.float32), 0
    flat, seen = dict[str, NDArray[Any]](), dict[str, NDArray[Any]]()

    def look(pose_bones: Any) -> tuple[tuple[bytes, bytes], Seen]:
        nonlocal count, whole, channels, flat, seen
        if len(pose_bones) != count:  # the first time, or bones came or went
            count = len(pose_bones)
            whole = np.empty(count * sum(names.values()), np.float32)
            channels = len(whole) - count * names.get("matrix", 0)
            parts = np.split(whole, count * np.cumsum(list(names.values()))[:-1])
            kinds = [KINDS.get(name, np.float32) for name in names]
            flat = {name: part.view(kind) for name, part, kind in zip(names, parts, kinds, strict=True)}
            seen = {name: part.reshape(count, -1) for name, part in flat.items()}
        for name, part in flat.items():
            pose_bones.foreach_get(name, part)
        return (whole[:channels].tobytes(), whole[channels:].tobytes()), seen

    return look
