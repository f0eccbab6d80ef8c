# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of all pose bones of an armature at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = Mapping[str, NDArray[Any]]
"""Name of a property -> (bones, width) its values, in the order of `pose.bones`."""


class Seen(NamedTuple):
    """What has been seen of pose bones.

    Attributes:
        whole: all values; equal ones are the same.
        channels: those of the wanted bones' channels.
        values: all, which hold until someone looks again.
    """

    whole: bytes
    channels: bytes
    values: Values


Watch = Callable[[Any], Seen]
"""Looks at pose bones; see `watch`."""

KINDS = {"rotation_mode": np.int32}
"""Properties that do not hold float32."""


def foreach(pose_bones: Any, name: str, width: int) -> NDArray[Any]:
    """(bones, width) values of one property of all pose bones, in the order of `pose_bones`."""
    values = np.empty(len(pose_bones) * width, KINDS.get(name, np.float32))
    pose_bones.foreach_get(name, values)
    return values.reshape(-1, width)


def watch(names: Mapping[str, int], slots: NDArray[np.intp]) -> Watch:
    """A function that looks at properties of all pose bones, over and over.

    Args:
        names: of the properties, with how many values each bone has; `matrix` is none of their channels.
        slots: indices of the wanted bones in `pose.bones`.
    """
    count, whole, own = -1, np.empty(0, np.float32), np.empty(0, np.intp)
    flat, values = dict[str, NDArray[Any]](), dict[str, NDArray[Any]]()

    def look(pose_bones: Any) -> Seen:
        nonlocal count, whole, own, flat, values
        if len(pose_bones) != count:  # the first time, or bones came or went
            count = len(pose_bones)
            whole = np.empty(count * sum(names.values()), np.float32)
            ends = count * np.cumsum(list(names.values()))
            parts = np.split(whole, ends[:-1])
            kinds = [KINDS.get(name, np.float32) for name in names]
            flat = {name: part.view(kind) for name, part, kind in zip(names, parts, kinds, strict=True)}
            values = {name: part.reshape(count, -1) for name, part in flat.items()}
            places = np.split(np.arange(len(whole)), ends[:-1])
            of_bones = {name: each.reshape(count, -1) for name, each in zip(names, places, strict=True)}
            there = slots[slots < count]
            channels = [each[there].ravel() for name, each in of_bones.items() if name != "matrix"]
            own = np.concatenate(channels)
        for name, part in flat.items():
            pose_bones.foreach_get(name, part)
        return Seen(whole.tobytes(), whole[own].tobytes(), values)

    return look
