"""Whether poses that miss their goals are as near as they get: a test of first order inside the limits."""

from __future__ import annotations

import numpy as np

from ...maths.batch import TINY, Array, conjugate, logarithm, multiply
from ...maths.small_systems import products, solved
from ...skeleton.pose import Pose
from .problem import LeastSquaresProblem
from .solve import Limits
from .state import Bones, Given, Poses, State, start_state, stepped_balls, to_model
from .windowed import held_at_border

STATIONARY = 1e-2
"""Steepness up to which a pose that misses its goals counts as OPTIMAL."""
AT_BOUND = 1e-6
"""Radians (parts of the reach of slides) from a bound at which a hinge is held by it."""
PROBE = 1e-3
"""Rotation of a ball joint, radians, by which it is seen what its limit leaves of a direction."""


def steepness(problem: LeastSquaresProblem, given: Given, state: State, limits: Limits) -> Array:
    """(B,) how steeply the error of the goals that are not met can still fall: 0 where it is stationary.

    The largest part of the gradient that belongs to one joint, beside the residual times the longest lever:
    a cosine, as in MINPACK's test of the gradient (More 1978, "The Levenberg-Marquardt algorithm:
    implementation and theory"). The gradient is projected into the limits. A goal that gives way to others
    is tested along directions that leave those alone, to first order, and so is one that would stretch a part
    of a chain past its reach window.
    """
    if not problem.layout.columns:
        return np.zeros(state.size)
    residual = problem.evaluate(given, state)
    given = held_at_border(problem, given, state, limits)
    _, slope = problem.jacobian(given, residual)
    serving = slope if problem.serves is None else slope * problem.serves[..., None]
    values = residual.values.copy()
    missed = residual.missed(limits.position, limits.angle)
    for place, each in zip(problem.places, missed, strict=True):
        values[place] *= each
    found = np.zeros(state.size)
    before: list[int] = []
    for rank in sorted({goal.priority for goal in problem.goals}):
        places = zip(problem.goals, problem.places, strict=True)
        rows = [k for goal, place in places if goal.priority == rank for k in range(place.start, place.stop)]
        own, missing = serving[rows], values[rows]
        gradient = _free(problem, given, state, np.einsum("mkb,mb->kb", own, missing))
        gradient = _unstretched(problem, given, state, slope, gradient)
        if before:
            gradient = _free(problem, given, state, beside(slope[before], gradient))
        lever = np.einsum("mkb,mkb->kb", own, own).max(0)
        largest = _largest(problem, given, state, gradient)
        steep = largest / np.maximum(lever * (missing * missing).sum(0), TINY)
        found = np.maximum(found, np.sqrt(steep))
        before += rows
    return found


def is_optimal(
    problem: LeastSquaresProblem, pose: Pose, position_tolerance: float, angle_tolerance: float
) -> bool:
    """Whether no small motion of a pose inside its limits comes nearer to the goals that it misses.

    The goals' own targets count. Distances are in model units, angles in radians.
    """
    poses = Poses.of([pose, pose])  # a pair gives the same bits as any batch
    given = problem.given(Bones.of(problem.skeleton), poses, problem.own_targets())
    state = start_state(problem.layout, given, poses)
    limits = Limits(np.full(2, position_tolerance), angle_tolerance, 0)
    return bool(steepness(problem, given, state, limits)[0] <= STATIONARY)


def _unstretched(
    problem: LeastSquaresProblem, given: Given, state: State, slope: Array, gradient: Array
) -> Array:
    """The gradient without what would stretch parts that are as long as their reach windows let them be."""
    if not problem.windows:
        return gradient
    windows = slope[problem.rows - len(problem.windows) :]
    stretches = (windows * gradient).sum(1) < 0.0
    if not stretches.any():
        return gradient
    return _free(problem, given, state, beside(windows * stretches[:, None], gradient))


def _free(problem: LeastSquaresProblem, given: Given, state: State, gradient: Array) -> Array:
    """The gradient without hinges and slides that a bound keeps from going against it."""
    down, up = problem.bounds(given, state)
    held = np.where(gradient > 0.0, down >= -AT_BOUND, up <= AT_BOUND)
    return np.where(held, 0.0, gradient)


def beside(slope: Array, step: Array) -> Array:
    """What of a step (k, B) leaves residuals with this slope (m, k, B) alone, to first order."""
    moving = slope * (step != 0.0)
    system = products(moving, moving, True)
    each = np.arange(len(system))
    system[each, each] += 1e-9 * np.einsum("mmb->b", system) + TINY
    dual = solved(system, np.full(step.shape[1], TINY), np.einsum("mkb,kb->mb", moving, step))
    return np.asarray(step - np.einsum("mkb,mb->kb", moving, dual))


def _largest(problem: LeastSquaresProblem, given: Given, state: State, gradient: Array) -> Array:
    """(B,) the largest square of one joint's part of a gradient (k, B), inside its limit."""
    layout = problem.layout
    parts = gradient * gradient
    place = slice(layout.first_ball, layout.first_slide)
    balls = parts[place].reshape(-1, 3, state.size).sum(1)
    if len(balls):
        balls *= _left(problem, given, state, gradient)
    return np.asarray(np.concatenate((balls, parts[: place.start], parts[place.stop :])).max(0))


def _left(problem: LeastSquaresProblem, given: Given, state: State, gradient: Array) -> Array:
    """(balls, B) the part of the squared gradient that points into the limits of ball joints."""
    layout = problem.layout
    balls = gradient[layout.first_ball : layout.first_slide].reshape(-1, 3, state.size)
    size = np.sqrt((balls * balls).sum(1))
    step = np.zeros_like(gradient)
    way = -balls / np.maximum(size, TINY)[:, None]
    step[layout.first_ball : layout.first_slide] = (PROBE * way).reshape(-1, state.size)
    tried = stepped_balls(layout, state, step)
    pushed = given.limits.balls.project(tried)
    if pushed is None:
        return np.ones(size.shape)
    own = state.rotations[:, layout.ball_rows]
    moved = to_model(layout, state, logarithm(multiply(conjugate(own), pushed[0])))
    return np.asarray(np.clip((moved * way).sum(1) / PROBE, 0.0, 1.0))
