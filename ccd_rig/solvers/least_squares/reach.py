"""Which goals no pose meets, because their chains are too short, alone or between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

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
        if first is None or _shifted(problem) & set(chain):
            continue
        rows = [layout.row[i] for i in chain[first:]]
        links = _links(given, rows[1:], state.size)
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


def unreachable(
    problem: LeastSquaresProblem,
    given: Given,
    state: State,
    position_tolerance: Array,
    angle_tolerance: float,
) -> Mask:
    """(B,) whether targets are beyond reach, or two of them farther apart than their points can be: another
    start is of no use. Branches that slide or roll are not judged."""
    found = beyond_reach(problem, given, state, position_tolerance, angle_tolerance)
    shifted = _shifted(problem)
    positions = [
        (problem.skeleton.chain(goal.joint), given.points[:3, block.point.points[0][0]], target)
        for goal, block, target in zip(problem.goals, problem.blocks, given.targets, strict=True)
        if isinstance(goal, PositionGoal) and isinstance(block, Position)
    ]
    for (chain, point, target), (other_chain, other_point, other) in combinations(positions, 2):
        count = sum(a == b for a, b in zip(chain, other_chain, strict=False))
        if not count or chain[count - 1] not in problem.layout.row:
            continue
        if shifted & set(chain[count:] + other_chain[count:]):
            continue
        (start, links), (other_start, other_links) = (
            _branch(problem, given, chain[count:], point, state.size),
            _branch(problem, given, other_chain[count:], other_point, state.size),
        )
        most = length(start - other_start) + links + other_links
        found |= length(target - other) > most + 2.0 * position_tolerance + 1e-6 * given.reach
    return found


def _branch(
    problem: LeastSquaresProblem, given: Given, chain: Sequence[int], point: Array, size: int
) -> tuple[Array, Array]:
    """Where a branch (3, B) begins in the frame of the joint that carries it, and how far its point (3, B)
    can be from there; the point itself where the branch has no joints."""
    if not len(chain):
        return point, np.zeros(1)
    rows = [problem.layout.row[i] for i in chain]
    start = np.broadcast_to(given.shifts[rows[0]], (3, size))
    return start, _links(given, rows[1:], size) + length(point)


def _links(given: Given, rows: Sequence[int], size: int) -> Array:
    """(B,) how long the links to joints are together.

    Where they agree in all poses they stand there once; NumPy sums over one in another order than over more.
    """
    shifts = np.broadcast_to(given.shifts[rows], (len(rows), 3, size))
    return np.asarray(np.sqrt((shifts * shifts).sum(1)).sum(0))


def _shifted(problem: LeastSquaresProblem) -> set[int]:
    """The joints that slide or roll."""
    layout = problem.layout
    sliding = {i for i, _ in layout.slides} | {each.coupling.joint for each in layout.coupled}
    return sliding | set(problem.skeleton.pivots)
