"""Which goals no pose meets, because their chains are too short."""

from __future__ import annotations

import numpy as np

from ...goals import OrientationGoal, PositionGoal
from ...maths.batch import Array, Mask, length
from .problem import LeastSquaresProblem
from .residuals import Position
from .state import Given, State


def beyond_reach(
    problem: LeastSquaresProblem,
    given: Given,
    state: State,
    position_tolerance: float | Array,
    angle_tolerance: float,
) -> Mask:
    """(B,) whether a position's target is farther from its chain's fixed head than the chain is long.

    Reach windows count. Where the last joint's rotation is asked for too, the target of its head counts. No
    pose meets such goals, whatever the limits. Chains that slide or roll are not judged.
    """
    layout, skeleton, found = problem.layout, problem.skeleton, np.zeros(state.size, np.bool_)
    windows = list(enumerate(problem.windows))
    turned = {
        skeleton.index(goal.joint): target
        for goal, target in zip(problem.goals, given.targets, strict=True)
        if isinstance(goal, OrientationGoal)
    }
    closed = {window.number: (1.0 / window.most - 1.0) * given.windows[0, k] for k, window in windows}
    goals = zip(problem.goals, problem.blocks, given.targets, strict=True)
    for number, (goal, block, target) in enumerate(goals):
        if not isinstance(goal, PositionGoal) or not isinstance(block, Position):
            continue
        chain = skeleton.chain(goal.joint)
        first = next((k for k, i in enumerate(chain) if i in layout.limits), None)
        shifted = {i for i, _ in layout.slides} | {each.coupling.joint for each in layout.coupled}
        if first is None or (shifted | skeleton.pivots) & set(chain):
            continue
        rows = [layout.row[i] for i in chain[first:]]
        links = np.sqrt((given.shifts[rows[1:]] ** 2).sum(1)).sum(0)
        point = given.points[:3, block.point.points[0][0]]
        last, slack = length(point), position_tolerance + 1e-6 * given.reach
        frame = turned.get(chain[-1])
        # A reach window takes away what its part of the chain could be stretched further.
        most = links + last - closed.get(number, 0.0)
        found |= length(state.heads[rows[0]] - target) > most + slack
        if frame is not None:
            head = target - (frame * point).sum(1)
            found |= length(state.heads[rows[0]] - head) > links + last * angle_tolerance + slack
    return found
