"""The sole of a foot: three points at the ground below the reference pose, under the ball, behind the ankle
and at the end of the toes."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...maths.batch import Array
from .alignment import UP
from .figure_map import Limb
from .motions import TargetFigure, inverse, turned

HEEL = 0.3
"""How far the heel is behind the ankle, in distances of the ankle from the ball along the ground."""
TOES = 0.5
"""How long toes are whose bone does not tell, in the same distances."""
AHEAD = 0.7
"""Cosine of the angle up to which the bone of the toes leads ahead."""


class SolePart(enum.Enum):
    """The points on which a foot stands."""

    HEEL = "HEEL"
    BALL = "BALL"
    TOES = "TOES"


class Hold(NamedTuple):
    """Frames in which a foot turns about a point of its sole: places of the first and of the last."""

    part: SolePart
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Sole:
    """A foot of the target in its reference pose, in metres.

    Attributes:
        ball: (3,) from the ankle, in the foot's frame; 0 for a foot without a ball.
        under, heel: (3,) points of the sole from the ball, in the foot's frame.
        toe: (3,) end of the toes from the ball, in the frame of the toes; None where there are none.
        across: (3,) unit, the axis across the foot, along the ground, in its frame; to its left.
        height: of the ball over the ground.
        front: (3,) end of a foot without a ball, from its ankle, in its frame; None where its bone does not
            tell.
    """

    ball: Array
    under: Array
    heel: Array
    toe: Array | None
    across: Array
    height: float
    front: Array | None = None

    @property
    def rolls(self) -> bool:
        """Whether the foot has a ball about which its heel may rise."""
        return bool(self.ball.any())

    @classmethod
    def of(cls, target: TargetFigure, limb: Limb) -> Sole:
        """The sole in the target's reference pose."""
        heads, rotations = target.reference
        foot, tip = target.index(limb.end), target.index(limb.tip or limb.end)
        ankle, ball = heads[foot], heads[tip]
        down = (0.0, 0.0, target.ground - ball[2])
        behind = (ankle - ball) * (1.0 + HEEL, 1.0 + HEEL, 0.0) + down
        to_foot = inverse(rotations[foot])
        toe = None
        if limb.tip:
            length = target.scale * target.skeleton.joints[tip].length
            tail = turned(rotations[tip], np.array((0.0, length, 0.0)))
            toe = turned(inverse(rotations[tip]), _toes(ball - ankle, tail) + down)
        across = np.cross(UP, (ball - ankle) if limb.tip else _along_bone(target, limb))
        across /= max(float(np.linalg.norm(across)), 1e-12)
        under, heel, offset, side = (
            turned(to_foot, each) for each in (np.array(down), behind, ball - ankle, across)
        )
        front = None if limb.tip else _front(target, limb)
        front = None if front is None else turned(to_foot, front)
        return cls(offset, under, heel, toe, side, float(ball[2] - target.ground), front)

    def points(self, feet: Array, toes: Array | None) -> list[Array]:
        """(F, 3) each from the ball to a point of the sole, world, of rotations (F, 4) of foot and toes.

        Ball and ankle are among them: a foot that is turned over lies on its instep.
        """
        points = [turned(feet, each) for each in (self.under, self.heel, np.zeros(3), -self.ball)]
        if self.front is not None:
            points.append(turned(feet, self.front))
        if toes is not None and self.toe is not None:
            points.append(turned(toes, self.toe))
        return points


def _toes(foot: Array, tail: Array) -> Array:
    """(3,) along the ground, from the ball to the end of the toes: to the tail of their bone, where that
    leads on ahead; many files have tails that lead nowhere."""
    ahead = foot * (1.0, 1.0, 0.0)
    size = float(np.linalg.norm(ahead))
    along = float(ahead @ tail) / max(size, 1e-12)
    if size > 0.0 and along >= AHEAD * np.linalg.norm(tail) and along <= size:
        return tail * (1.0, 1.0, 0.0)
    return TOES * ahead


def _front(target: TargetFigure, limb: Limb) -> Array | None:
    """(3,) from the ankle to the ground below the tail of the foot's bone, where that leads ahead and down to
    the sole; many files have tails that lead nowhere."""
    tail = target.scale * target.skeleton.joints[target.index(limb.end)].length * _along_bone(target, limb)
    height = float(target.reference[0][target.index(limb.end), 2]) - target.ground
    is_ahead = np.linalg.norm(tail[:2]) >= AHEAD * np.linalg.norm(tail)
    if not is_ahead or not height > 0.0 or not -1.5 * height <= tail[2] <= -0.5 * height:
        return None
    return np.array((tail[0], tail[1], -height))


def _along_bone(target: TargetFigure, limb: Limb) -> Array:
    """(3,) along a foot that has no ball: its bone."""
    _, rotations = target.reference
    return turned(rotations[target.index(limb.end)], np.array((0.0, 1.0, 0.0)))
