"""The limits of a layout's ball joints over all poses at once."""

from __future__ import annotations

import numpy as np

from ...limits.batch import BatchLimits, rotation_vectors_between
from ...limits.shapes import SwingTwist
from ...maths.batch import Array, Indices, Mask
from ...maths.tolerances import ROUNDING
from .layout import Layout
from .state import State, to_model


class BallLimits:
    """What ball joints may do.

    Attributes:
        limited: (L,) numbers of the ball joints that have a limit.
        locked: numbers of those whose twist is a single angle, and `locked_places` among the limited.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        limited = [n for n, limit in enumerate(layout.ball_limits) if limit is not None]
        self.limited = np.array(limited, dtype=np.intp)
        found = [layout.ball_limits[n] for n in limited]
        self._limits = BatchLimits(found)
        locked = [
            (place, limit.cone_twist[:5])
            for place, limit in enumerate(found)
            if isinstance(limit, SwingTwist) and limit.cone_twist[6] <= 0.5 * ROUNDING
        ]
        self.locked_places = np.array([place for place, _ in locked], dtype=np.intp)
        self.locked = self.limited[self.locked_places]
        self._twists = np.zeros((5, len(limited)))
        self._twists[:, self.locked_places] = np.array([each for _, each in locked]).reshape(-1, 5).T
        self._all = len(limited) == len(layout.balls)

    def project(self, balls: Array) -> tuple[Array, Mask, Array] | None:
        """Ball joints (4, balls, B) inside their limits.

        Returns:
            All of them, which of the limited were outside (L, B), and for each of those the rotation vector
            (3, K) in its frame that leads outside; None where none was.
        """
        if not len(self.limited):
            return None
        own = balls if self._all else balls[:, self.limited]
        inside, outside = self._limits.project(own)
        if outside is None:
            return None
        outward = rotation_vectors_between(inside[:, outside], own[:, outside])
        if not self._all:
            found = balls.copy()
            found[:, self.limited] = inside
            inside = found
        return inside, outside, outward

    def in_model(self, state: State, vectors: Array) -> Array:
        """(L, 3, B) about model axes, of vectors (3, L, B) in the frames of limited joints."""
        if self._all:
            return to_model(self.layout, state, vectors)
        frames = state.frames[self.layout.ball_rows[self.limited]]
        return np.asarray(sum(frames[:, :, k] * vectors[k][:, None] for k in range(3)))

    def locked_axes(self, state: State) -> Array:
        """(locked, 3, B) about model axes: what a twist of a single angle holds, see `limits.locked_axis`."""
        rows = self.layout.ball_rows[self.locked]
        axes = _locked_axes(self._twists[:, self.locked_places, None], state.rotations[:, rows])
        frames = state.frames[rows]
        return np.asarray(sum(frames[:, :, k] * axes[k][:, None] for k in range(3)))

    def locked_axes_of(self, limited: Indices, rotations: Array) -> Array:
        """(3, K) in the joints' frames, of rotations (4, K) of limited joints; 0 for a range of twist."""
        return _locked_axes(self._twists[:, limited], rotations)


def _locked_axes(twists: Array, rotations: Array) -> Array:
    nx, ny, nz, cosine, sine = twists
    w, x, y, z = rotations
    return np.stack(
        (
            cosine * (w * nx + ny * z - nz * y) + sine * x,
            cosine * (w * ny + nz * x - nx * z) + sine * y,
            cosine * (w * nz + nx * y - ny * x) + sine * z,
        )
    )
