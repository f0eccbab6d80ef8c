# SPDX-License-Identifier: GPL-3.0-or-later
"""A layer over the motion of a target: Target Offset shifted over frames, with a falloff on either side.

The target's own keys stay as they are, and so does what Target Offset plays outside the falloff. Frames are
scene frames; shifts are in the axes and the unit of the constraint's Offset Space.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import bpy
import numpy as np

from ...errors import RigError
from ...maths.batch import Array
from ..keys import channels, keyframes, writer
from .frame_selection import key_time

FIELD = "offset"
SIZE = 3
"""Components of Target Offset."""


class Span(NamedTuple):
    """Frames over which a layer lasts.

    Attributes:
        start, end: the first and the last frame of the whole shift.
        falloff: frames in which it comes before the start, and in which it goes after the end; 1 at least.
    """

    start: int
    end: int
    falloff: int

    @property
    def first(self) -> int:
        """The last frame before the layer."""
        return self.start - self.falloff

    @property
    def last(self) -> int:
        """The first frame after it."""
        return self.end + self.falloff

    def weights(self, frames: Array) -> Array:
        """(F,) how much of the shift frames have, 0 to 1; smoothstep in the falloff."""
        corners = (self.first, self.start, self.end, self.last)
        linear = np.interp(frames, corners, (0.0, 1.0, 1.0, 0.0))
        return np.asarray(linear * linear * (3.0 - 2.0 * linear))


def shift_over(
    scene: bpy.types.Scene, constraint: Any, shift: Sequence[float], span: Span, undo: ExitStack
) -> None:
    """Add a shift to a constraint's Target Offset over frames, by keys in the present action.

    Where Target Offset holds still there are four keys, else one at each frame between the keys around.

    Args:
        scene: gives the time of keys.
        constraint: as it is stored.
        shift: (3,) what is added.
        span: when.
        undo: gets what takes everything back.

    Raises:
        RigError: Target Offset cannot be keyed, names the constraint. Close `undo` then.
    """
    if span.end < span.start:
        raise RigError(f"Frames {span.start} to {span.end}: the start must not lie after the end")
    rig: bpy.types.Object = constraint.id_data
    path = f"{constraint.path_from_id()}.{FIELD}"
    curves = _curves(rig, path)
    _require_shiftable(constraint, path, curves)
    time = key_time(scene)
    times = [
        np.zeros(0) if curve is None else keyframes.times(curve).astype(np.float64) / time for curve in curves
    ]
    before, after = _edge(times, span.first, -1), _edge(times, span.last, 1)

    def values_at(frames: Array) -> Array:
        columns = [
            np.full(len(frames), constraint.offset[i])
            if curve is None or curve.is_empty
            else np.array([curve.evaluate(frame * time) for frame in frames.tolist()])
            for i, curve in enumerate(curves)
        ]
        return np.stack(columns, axis=1)

    # Of keys that stay on either side the handles stay too, and so what plays beyond them.
    low = span.first if before is None else math.floor(before) + 1
    high = span.last if after is None else math.ceil(after) - 1
    every: Array = np.arange(low, high + 1, dtype=np.float64)
    ends = [edge for edge in (before, after) if edge is not None]
    around = values_at(np.array([*every, *ends]))
    interpolation = "LINEAR"
    is_still = (around == around[:1]).all() and not any(
        ((each >= low) & (each <= high)).any() for each in times
    )
    if is_still and low <= span.first and high >= span.last:
        every = np.unique(np.array([span.first, span.start, span.end, span.last], dtype=np.float64))
        interpolation = "BEZIER"
    values = values_at(every) + span.weights(every)[:, None] * np.array(shift, dtype=np.float64)
    writer.write_in_place(rig, constraint.name, every * time, {path: values}, interpolation, undo)


def _curves(rig: bpy.types.Object, path: str) -> list[bpy.types.FCurve | None]:
    """The F-curves of the components of a vector in the present action."""
    by_index = {curve.array_index: curve for curve in channels.fcurves_of(rig) if curve.data_path == path}
    return [by_index.get(i) for i in range(SIZE)]


def _edge(times: Sequence[Array], frame: float, way: int) -> float | None:
    """The nearest frame up to a frame (`way` -1) or from it on (1) at which all components have a key that
    have one on that side; None where none has."""
    beyond = [np.unique(way * each[way * each >= way * frame - keyframes.MERGE_DISTANCE]) for each in times]
    beyond = [each for each in beyond if len(each)]
    if not beyond:
        return None
    place = max(float(each[0]) for each in beyond)
    while True:
        # A component whose keys all lie nearer plays the same beyond its last one.
        later = [each[each >= place - keyframes.MERGE_DISTANCE] for each in beyond]
        farthest = max((float(each[0]) for each in later if len(each)), default=place)
        if farthest <= place + keyframes.MERGE_DISTANCE:
            return way * place
        place = farthest


def _require_shiftable(constraint: Any, path: str, curves: Sequence[bpy.types.FCurve | None]) -> None:
    """Refuse a Target Offset whose F-curves something beside their keys decides; nothing changes."""
    where = f"Constraint '{constraint.name}': Target Offset"
    if constraint.target is None:
        raise RigError(f"Constraint '{constraint.name}' has no target: choose one first")
    animation = constraint.id_data.animation_data
    if animation is not None and any(driver.data_path == path for driver in animation.drivers):
        raise RigError(f"{where} has a driver: remove it first")
    for curve in curves:
        if curve is not None and (len(curve.modifiers) or curve.extrapolation != "CONSTANT"):
            raise RigError(
                f"{where} has an F-curve that goes on beyond its keys, or has modifiers: remove these, and "
                "set Extrapolation to Constant"
            )
