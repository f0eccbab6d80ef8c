"""The limits of a layout's joints over all poses at once."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from ...limits.batch import BatchLimits, rotation_vectors_between
from ...limits.shapes import SwingTwist, locks_twist
from ...maths.batch import Array, Indices, Mask, joined_given, select_given
from .layout import Layout


class BallLimits:
    """What ball joints may do, the same in every pose or in each pose something else.

    Attributes:
        limited: (L,) numbers of the ball joints that have a limit.
        is_whole: whether these are all ball joints.
        locked: numbers of those whose twist is a single angle, and `locked_places` among the limited.
    """

    def __init__(self, layout: Layout) -> None:
        """The same for every pose."""
        self.layout = layout
        limited = [n for n, limit in enumerate(layout.ball_limits) if limit is not None]
        self.limited = np.array(limited, dtype=np.intp)
        found = [layout.ball_limits[n] for n in limited]
        self._limits = BatchLimits(found)
        locked = [
            (place, limit.row[6:11])
            for place, limit in enumerate(found)
            if isinstance(limit, SwingTwist) and locks_twist(limit)
        ]
        self.locked_places = np.array([place for place, _ in locked], dtype=np.intp)
        self.locked = self.limited[self.locked_places]
        self._twists: Array = np.zeros((5, len(limited), 1))
        self._twists[:, self.locked_places, 0] = np.array([each for _, each in locked]).reshape(-1, 5).T
        self.is_whole = len(limited) == len(layout.balls)

    @classmethod
    def joined(cls, several: Sequence[BallLimits], sizes: Sequence[int]) -> BallLimits:
        """Those of several batches of poses, of these sizes, as one; their layouts are of one kind."""
        limits = BatchLimits.joined([each._limits for each in several], sizes)
        return several[0]._with(limits, joined_given([each._twists for each in several], sizes))

    def at(self, some: Mask | Indices) -> BallLimits:
        """Those of some of the poses."""
        return self._with(self._limits.at(some), select_given(self._twists, some))

    def _with(self, limits: BatchLimits, twists: Array) -> BallLimits:
        if limits is self._limits and twists is self._twists:
            return self
        found = copy(self)
        found._limits, found._twists = limits, twists
        return found

    def project(self, balls: Array) -> tuple[Array, Mask, Array] | None:
        """Ball joints (4, balls, B) inside their limits.

        Returns:
            All of them, which of the limited were outside (L, B), and for each of those the rotation vector
            (3, K) in its frame that leads outside; None where none was.
        """
        if not len(self.limited):
            return None
        own = balls if self.is_whole else balls[:, self.limited]
        inside, outside = self._limits.project(own)
        if outside is None:
            return None
        outward = rotation_vectors_between(inside[:, outside], own[:, outside])
        if not self.is_whole:
            found = balls.copy()
            found[:, self.limited] = inside
            inside = found
        return inside, outside, outward

    def outward(self, rotations: Array) -> Array:
        """(3, L, B) rotation vectors in the joints' frames, from inside their limits to rotations (4, L, B)
        of the limited joints; 0 for what is inside."""
        inside, outside = self._limits.project(rotations)
        found = np.zeros((3, *rotations.shape[1:]))
        if outside is not None:
            found[:, outside] = rotation_vectors_between(inside[:, outside], rotations[:, outside])
        return found

    def locked_axes(self, rotations: Array) -> Array:
        """(3, locked, B) in the joints' frames, of rotations (4, locked, B): what a twist of a single angle
        holds, see `limits.locked_axis`."""
        return _locked_axes(self._twists[:, self.locked_places], rotations)

    def locked_axes_of(self, where: tuple[Indices, Indices], rotations: Array) -> Array:
        """(3, K) in the joints' frames, of rotations (4, K) of limited joints in poses; 0 for a range of
        twist."""
        limited, poses = where
        return _locked_axes(self._twists[:, limited, poses if self._twists.shape[-1] > 1 else 0], rotations)


class JointLimits(NamedTuple):
    """The limits of a layout's joints, the same in every pose or in each pose others.

    Attributes:
        hinge_axes: (h, 3, B or 1), see `Layout.hinge_axes`.
        bounds: (2, k, B or 1) lower and upper ones, see `Layout.lower`.
        balls: of ball joints.
    """

    hinge_axes: Array
    bounds: Array
    balls: BallLimits

    @classmethod
    def of(cls, layout: Layout) -> JointLimits:
        """The same for every pose."""
        bounds = np.stack((layout.lower, layout.upper))
        return cls(layout.hinge_axes[..., None], bounds[..., None], BallLimits(layout))

    @classmethod
    def joined(cls, several: Sequence[JointLimits], sizes: Sequence[int]) -> JointLimits:
        """Those of several batches of poses, of these sizes, as one; their layouts are of one kind."""
        return cls(
            joined_given([each.hinge_axes for each in several], sizes),
            joined_given([each.bounds for each in several], sizes),
            BallLimits.joined([each.balls for each in several], sizes),
        )

    def at(self, some: Mask | Indices) -> JointLimits:
        """Those of some of the poses."""
        bounds = select_given(self.bounds, some)
        return JointLimits(select_given(self.hinge_axes, some), bounds, self.balls.at(some))


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
