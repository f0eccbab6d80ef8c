"""The points of goals: on which joint each is, and where in its frame."""

from __future__ import annotations

import numpy as np
from mathutils import Vector

from ...maths.batch import Array
from .layout import Layout
from .state import State


class GoalPoints:
    """Points on joints; P counts them."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._points: list[tuple[int, Vector | None]] = []
        self._rows: list[int] = []

    def add(self, joint: int, at: Vector | None) -> int:
        """The number of a new point of a joint's bone; None: its tail."""
        self._points.append((joint, at))
        self._rows.append(self.layout.row[joint])
        return len(self._points) - 1

    def in_frames(self, lengths: Array) -> Array:
        """(4, P, B or 1) in their joints' frames, the last component 1, for bones (N, B or 1) that long."""
        size = lengths.shape[-1] if any(at is None for _, at in self._points) else 1
        points = np.zeros((4, len(self._points), size))
        points[3] = 1.0
        for number, (joint, at) in enumerate(self._points):
            if at is None:
                points[1, number] = lengths[joint]
            else:
                points[:3, number, :] = [(value,) for value in at[:]]
        return points

    def in_model(self, points: Array, state: State) -> Array:
        """(P, 3, B) in model space, of points as `in_frames` returns them."""
        found: Array = np.einsum("pijb,jpb->pib", state.transforms.take(self._rows, 0), points)
        return found
