"""Whether poses that miss their goals are as near as they get: a test of first order inside the limits."""

from __future__ import annotations

import numpy as np

from ...maths.batch import TINY, Array, conjugate, logarithm, multiply
from .ball_limits import BallLimits
from .problem import LeastSquaresProblem
from .state import Given, State, stepped_balls, to_model
from .step import bounds

AT_BOUND = 1e-6
"""Radians (parts of the reach of slides) from a bound at which a hinge is held by it."""
PROBE = 1e-3
"""Rotation of a ball joint, radians, by which it is seen what its limit leaves of a direction."""


def steepness(problem: LeastSquaresProblem, given: Given, state: State) -> Array:
    """(B,) how steeply the goals' error can still fall: 0 where it is stationary, 1 at most.

    The largest cosine between the residual and what one joint's rotation or shift does to it, as MINPACK's
    test of the gradient has it (More 1978, "The Levenberg-Marquardt algorithm: implementation and theory"),
    with the gradient projected into the limits. A goal that gives way to others is tested along directions
    that leave those alone, to first order.
    """
    residual = problem.evaluate(given, state)
    _, slope = problem.jacobian(given, residual)
    serving = slope if problem.serves is None else slope * problem.serves[..., None]
    ranks = sorted({goal.priority for goal in problem.goals})
    found = np.zeros(state.size)
    before: list[int] = []
    for rank in ranks:
        places = zip(problem.goals, problem.places, strict=True)
        rows = [k for goal, place in places if goal.priority == rank for k in range(place.start, place.stop)]
        own, values = serving[rows], residual.values[rows]
        gradient = _free(problem, state, np.einsum("mkb,mb->kb", own, values))
        if before:
            gradient = _free(problem, state, _beside(slope[before], gradient))
        sizes = np.einsum("mkb,mkb->kb", own, own)
        square = (values * values).sum(0)
        steep = _cosines(problem, state, gradient, sizes, square)
        # What earlier goals leave of a met goal's residual is noise.
        found = np.maximum(found, np.where(square > 1e-20 * np.maximum(sizes.max(0), TINY), steep, 0.0))
        before += rows
    return found


def _free(problem: LeastSquaresProblem, state: State, gradient: Array) -> Array:
    """The gradient without hinges and slides that a bound keeps from going against it."""
    down, up = bounds(problem, state)
    held = np.where(gradient > 0.0, down >= -AT_BOUND, up <= AT_BOUND)
    return np.where(held, 0.0, gradient)


def _beside(slope: Array, gradient: Array) -> Array:
    """What of a gradient (k, B) leaves other residuals with this slope (m, k, B) alone."""
    moving = np.ascontiguousarray((slope * (gradient != 0.0)).transpose(2, 0, 1))
    system = moving @ moving.transpose(0, 2, 1)
    scale = np.einsum("bmm->b", system)
    each = np.arange(system.shape[1])
    system[:, each, each] += (1e-9 * scale + TINY)[:, None]
    dual = np.linalg.solve(system, (moving @ gradient.T[..., None]))
    return np.asarray(gradient - (moving.transpose(0, 2, 1) @ dual)[..., 0].T)


def _cosines(
    problem: LeastSquaresProblem, state: State, gradient: Array, sizes: Array, square: Array
) -> Array:
    """(B,) the largest cosine, from gradients and squared columns (k, B) and squared residuals (B,)."""
    layout = problem.layout
    parts, columns = gradient * gradient, sizes
    place = slice(layout.first_ball, layout.first_slide)
    if place.start < place.stop:
        shape = (-1, 3, state.size)
        balls = parts[place].reshape(shape).sum(1) * _left(problem, state, gradient)
        alone = np.concatenate((parts[: place.start], parts[place.stop :]))
        parts = np.concatenate((balls, alone))
        own = np.concatenate((sizes[: place.start], sizes[place.stop :]))
        columns = np.concatenate((sizes[place].reshape(shape).sum(1), own))
    if not len(parts):
        return np.zeros(state.size)
    ratio = parts / np.maximum(columns * square, TINY)
    return np.asarray(np.sqrt(ratio.max(0)))


def _left(problem: LeastSquaresProblem, state: State, gradient: Array) -> Array:
    """(balls, B) the part of the squared gradient that points into the limits of ball joints."""
    layout = problem.layout
    balls = gradient[layout.first_ball : layout.first_slide].reshape(-1, 3, state.size)
    size = np.sqrt((balls * balls).sum(1))
    step = np.zeros_like(gradient)
    way = -balls / np.maximum(size, TINY)[:, None]
    step[layout.first_ball : layout.first_slide] = (PROBE * way).reshape(-1, state.size)
    tried = stepped_balls(layout, state, step)
    pushed = BallLimits(layout).project(tried)
    if pushed is None:
        return np.ones(size.shape)
    own = state.rotations[:, layout.ball_rows]
    moved = to_model(layout, state, logarithm(multiply(conjugate(own), pushed[0])))
    return np.asarray(np.clip((moved * way).sum(1) / PROBE, 0.0, 1.0))
