"""By how much joints would turn for their goals, in many poses at once: what comfort tolerances look at."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...goals import DirectionGoal, Goal, OrientationGoal, served
from ...limits.shapes import Hinge, Limit
from ...maths.batch import Array, length
from ...maths.tolerances import NOISE
from ...skeleton.joints import Skeleton
from .bending import Now
from .problem import LEVER, LeastSquaresProblem
from .residuals import Balance, Block, Direction, Orientation, Pole, Position
from .state import Given, State


class DesiredAngles:
    """The angle by which each of some joints would turn for its goals if nothing held it.

    It is that of the rotation R with the least sum of w |R a - b|^2, over the vectors a that the joint brings
    to b for its goals (Davenport's q-method); of a hinge the rotation about its axis.
    """

    def __init__(
        self, problem: LeastSquaresProblem, limits: Sequence[Limit | None], joints: Sequence[int]
    ) -> None:
        """`limits` of all joints of the skeleton; `joints` are those asked for."""
        self.problem, skeleton = problem, problem.skeleton
        self.rows = [problem.layout.row[i] for i in joints]
        places = {i: n for n, i in enumerate(joints)}
        self.serving = [
            np.array([places[i] for i in served(goal, skeleton) if i in places], dtype=np.intp)
            for goal in problem.goals
        ]
        self.levers = [_lever(goal, skeleton) for goal in problem.goals]
        found = [(n, limits[i]) for n, i in enumerate(joints)]
        self.hinges = [(n, np.array(limit.axis)) for n, limit in found if type(limit) is Hinge]

    def __call__(self, given: Given, state: State) -> Array:
        """(n, B) radians, 0 or more."""
        now = self.problem.evaluate(given, state).now
        profiles = np.zeros((len(self.rows), 3, 3, state.size))
        blocks = zip(self.problem.goals, self.problem.blocks, given.targets, strict=True)
        for k, (goal, block, target) in enumerate(blocks):
            some = self.serving[k]
            if len(some):
                own = self._profiles(block, now, target, [self.rows[n] for n in some], self.levers[k])
                profiles[some] += goal.weight * own
        found = _rotation_angles(profiles)
        for n, axis in self.hinges:
            about = np.einsum("ijb,j->ib", state.frames[self.rows[n]], axis)
            found[n] = _hinge_angles(profiles[n], about)
        return found

    def _profiles(self, block: Block, now: Now, target: Array, rows: list[int], lever: float) -> Array:
        """(n or 1, 3, 3, B) the sum of b a^T of a goal, for joints in these rows."""
        if isinstance(block, Position | Balance):
            points = block.point if isinstance(block, Position) else block.centre
            places = {row: n for n, row in enumerate(points.rows.tolist())}
            arms = points.levers(now)[[places[row] for row in rows]]
            way = -block.offset(now, target)
            return np.asarray((arms + way)[:, :, None] * arms[:, None])
        if isinstance(block, Orientation):
            frame = block.turns.frame(now)
            both = np.einsum("ikb,jkb->ijb", np.broadcast_to(target, frame.shape), frame)
            return np.asarray(lever * lever * both[None])
        if isinstance(block, Direction):
            axis = np.einsum("ijb,j->ib", block.turns.frame(now), block.axis)
            return np.asarray(lever * lever * (np.broadcast_to(target, axis.shape)[:, None] * axis)[None])
        assert isinstance(block, Pole)
        bends = block.bends(now, target)
        wanted = bends.side * length(bends.bend)
        return np.asarray((bends.weight**2 * wanted[:, None] * bends.bend)[None])


def _lever(goal: Goal, skeleton: Skeleton) -> float:
    """Model units that stand for one radian of a frame, as vector pairs of CCD have it."""
    if not isinstance(goal, OrientationGoal | DirectionGoal):
        return 1.0
    joints, chain = skeleton.joints, skeleton.chain(goal.joint, goal.chain_length)
    links = [joints[i].offset.length for i in chain[1:]]
    return LEVER * (math.fsum(links) + joints[chain[-1]].length) or 1.0


def _rotation_angles(profiles: Array) -> Array:
    """(n, B) angles of the best rotations for profiles sum w b a^T (n, 3, 3, B)."""
    m = profiles.transpose(0, 3, 1, 2)
    scale = np.abs(m).max((2, 3))
    m = m / np.maximum(scale, 1e-300)[..., None, None]
    trace = np.trace(m, axis1=2, axis2=3)
    davenport = np.zeros((*trace.shape, 4, 4))
    davenport[..., 0, 0] = trace + NOISE  # of equal rotations none
    davenport[..., 1:, 1:] = m + m.swapaxes(2, 3) - trace[..., None, None] * np.eye(3)
    for k, (i, j) in enumerate(((2, 1), (0, 2), (1, 0))):
        davenport[..., 0, k + 1] = davenport[..., k + 1, 0] = m[..., i, j] - m[..., j, i]
    best = np.linalg.eigh(davenport)[1][..., -1]
    angles = 2.0 * np.arctan2(np.sqrt((best[..., 1:] ** 2).sum(-1)), np.abs(best[..., 0]))
    return np.asarray(np.where(scale > 0.0, angles, 0.0))


def _hinge_angles(profile: Array, axis: Array) -> Array:
    """(B,) angles of the best rotations about axes (3, B) for profiles (3, 3, B)."""
    across = np.stack(
        [profile[2, 1] - profile[1, 2], profile[0, 2] - profile[2, 0], profile[1, 0] - profile[0, 1]]
    )
    along = np.einsum("ib,ijb,jb->b", axis, profile, axis)
    return np.asarray(np.abs(np.arctan2((axis * across).sum(0), np.einsum("iib->b", profile) - along)))
