"""The closing phase of a single solve: damped least squares inside the joint limits, all joints at once.

Sweeps come near fast and creep at the end; Wang & Chen (1991, "A combined optimization method for solving
the inverse kinematics problem of mechanical manipulators") hand over to a descent of all joints together.
Problem, residuals, slopes and states are those of many poses (`solve`), with B = 1. The search is a shorter
one: a pose has no reference here and waits for no other, and each ball joint is brought inside its limit on
its own. A batch of one takes two to four times as long.

Every pose that is looked at is inside the limits, and taken only if it is nearer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...goals import Goal
from ...limits.shapes import Limit
from ...maths.batch import Array
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from .closing_step import Borders, Linear, limited_step, moved
from .pose_problem import PoseProblem
from .problem import Residual
from .solve import GAIN, HOPELESS, PATIENCE
from .state import Given
from .tracked import DAMPING, DAMPING_DOWN, DAMPING_GROWTH, DAMPING_UP
from .trials import FRACTIONS, POOR, squares_along
from .way_back import LEAST_DAMPING

ENOUGH = 0.5
"""Part of the tolerances at which to stop: single precision, in which poses are kept, has to fit into the
rest."""
CALM = 100.0
"""Damping that stays, where what is found must not leap from one frame to the next."""
ROUNDED = 1e-6
"""Residual that one joint's rounding to single precision may add at most: its rotation changes by 1e-7."""


@dataclass(frozen=True)
class Refined:
    """What a refinement found.

    Attributes:
        pose: the nearest pose, inside the limits.
        iterations: steps tried.
    """

    pose: Pose
    iterations: int


class Descent(NamedTuple):
    """How to come nearer, and when to stop.

    Attributes:
        position_tolerance: of positions and balance, in the model's unit.
        angle_tolerance: of orientations, directions and poles, radians.
        max_iterations: most steps.
        gain: the search ends when the square error falls by less than this part of it in `solve.PATIENCE`
            steps; `solve.HURRIED_GAIN` where a dead end is better left for another start.
        calm: with small steps throughout, to the dead end that is nearest rather than in few steps.
    """

    position_tolerance: float
    angle_tolerance: float
    max_iterations: int
    gain: float = GAIN
    calm: bool = False


def refine(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    limits: Sequence[Limit | None],
    descent: Descent,
    movable: Sequence[int] | None = None,
) -> Pose:
    """A pose near `pose` that is nearer to the goals, inside the limits; `pose` itself where there is none.

    Goals of a larger priority number count next to nothing beside those of smaller ones. Reach windows are
    not known here.

    Args:
        skeleton: the joints.
        pose: where to start; joints that may move and are outside their limit are brought inside first.
        goals: at least one.
        limits: per joint, what it may do now (which may be less than `Joint.limit`).
        descent: how, and when to stop.
        movable: indices of the joints that may move; None: those in the chains of the goals. Locked ones
            never do.
    """
    return refined(PoseProblem(skeleton, goals, limits, movable), pose, descent).pose


def refined(problem: PoseProblem, pose: Pose, descent: Descent) -> Refined:
    """`refine` from one pose of several, with what is common to all worked out before; says how it went."""
    start = problem.clamped(pose)
    given, state = problem.arrays(start)
    before = now = problem.evaluate(given, state)
    iterations, growth = 0, DAMPING_UP
    damping, down = (CALM, 1.0) if descent.calm else (DAMPING, DAMPING_DOWN)
    square = float(now.square[0])
    history = [square]
    enough = ENOUGH * np.where(now.angular, descent.angle_tolerance, descent.position_tolerance)
    linear: Linear | None = None
    borders: Borders = {}
    while iterations < descent.max_iterations and problem.layout.columns and (now.misses > enough).any():
        iterations += 1
        if linear is None:
            linear = Linear.about(problem, given, now, borders)
        step, tried, held = limited_step(problem, given, linear, damping * square + LEAST_DAMPING)
        found = problem.evaluate(given, tried)
        failed = found.square[0] >= square
        if found.square[0] > POOR * square:
            found = _shortened(problem, given, linear, found, step)
        if found.square[0] < square:
            now, linear, square, borders = found, None, float(found.square[0]), held
            damping, growth = max(damping * (DAMPING_UP if failed else down), 1e-6), DAMPING_UP
        else:
            # Faster and faster (Nielsen 1999): near the target the damping starts many orders too small.
            damping *= growth
            growth *= DAMPING_GROWTH
            if damping * square > HOPELESS:
                break
        history.append(square)
        if iterations >= PATIENCE and square > (1.0 - descent.gain) * history[-1 - PATIENCE]:
            break
    if now is before:
        return Refined(start, iterations)
    end = problem.pose(start, before.now.state, now.now.state)
    # Rounding to single precision may make up for what was won, where that is little.
    little = math.sqrt(float(before.square[0])) - math.sqrt(square) < ROUNDED * len(problem.layout.rows)
    if little and not problem.residual(end).square[0] <= before.square[0]:
        return Refined(start, iterations)
    return Refined(end, iterations)


def _shortened(problem: PoseProblem, given: Given, linear: Linear, found: Residual, step: Array) -> Residual:
    """What a part of a step gives that won little or nothing, if that is better than all of it.

    See `trials.Trials.shortened`.
    """
    values = linear.residual.values
    line = linear.slope @ step[:, None]
    squares = squares_along(values, line, found.values - values - line)[:, 0]
    best = int(squares.argmin())
    if best == len(FRACTIONS) - 1 or squares[best] >= POOR * found.square[0]:
        return found
    part = step * float(FRACTIONS[best, 0])
    tried = problem.evaluate(given, moved(problem, given, linear.residual.now.state, part))
    return tried if tried.square[0] < found.square[0] else found
