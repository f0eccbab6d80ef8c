"""Which column moves which point, turns which frame and serves which goal: the same for every pose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...skeleton.joints import Joint
from .layout import Layout
from .state import Array


class Influence:
    """What the columns of a layout do to the points and frames that goals read.

    Attributes:
        carries: (points, columns, 1) 1 where a column moves a point.
        turns: (frames, columns, 1) 1 where a column turns a frame.
        anchors: (points, columns) what a column swings, where that is not always the point itself: below the
            number of points a point, from there on the row of a joint. Else None.
    """

    def __init__(self, layout: Layout, points: Sequence[int], frames: Sequence[int]) -> None:
        joints = layout.skeleton.joints
        carries = np.zeros((len(points), layout.columns))
        # A joint that does not inherit rotation is shifted by turns below it, not turned: what such a turn
        # swings is its head. `anchors` holds the point itself, or (after the points) the row of that joint.
        anchors = np.repeat(np.arange(len(points), dtype=np.intp)[:, None], layout.columns, axis=1)
        for p, tip in enumerate(points):
            for column, owner in enumerate(layout.owners):
                found, pivot = _way(joints, tip, owner)
                carries[p, column] = float(found)
                if pivot != -1:
                    anchors[p, column] = len(points) + layout.row[pivot]
        self.anchors = anchors if (anchors != np.arange(len(points))[:, None]).any() else None
        self.carries = carries[:, :, None]
        turns = np.zeros((len(frames), layout.columns))
        for f, tip in enumerate(frames):
            for column, owner in enumerate(layout.owners[: layout.first_slide]):
                found, pivot = _way(joints, tip, owner)
                turns[f, column] = float(found and pivot == -1)
        self.turns = turns[:, :, None]


def serves_of(layout: Layout, rows: Sequence[int], serving: Sequence[Sequence[int]]) -> Array | None:
    """(residuals, columns) 1 where a column may move for a residual; None where all may.

    Args:
        layout: the columns.
        rows: how many residuals each goal has.
        serving: indices of the joints that may move for each goal.
    """
    found = np.zeros((sum(rows), layout.columns))
    at = 0
    for count, joints in zip(rows, serving, strict=True):
        inside = set(joints)
        found[at : at + count] = [float(owner in inside) for owner in layout.owners]
        at += count
    return None if found.all() else found


def _way(joints: Sequence[Joint], tip: int, owner: int) -> tuple[bool, int]:
    """Whether `owner` carries `tip`, and the first joint after it that does not inherit rotation, or -1."""
    pivot, i = -1, tip
    while i != -1 and i != owner:
        if not joints[i].inherit_rotation:
            pivot = i
        i = joints[i].parent
    return i == owner, pivot
