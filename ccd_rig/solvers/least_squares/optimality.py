"""Whether poses that miss their goals are as near as they get: a test of first order inside the limits."""

from __future__ import annotations

import numpy as np

from ...maths.batch import TINY, Array
from ...skeleton.pose import Pose
from .feasible import Where, projected
from .problem import LeastSquaresProblem
from .solve import Limits
from .state import Bones, Given, Poses, State, start_state
from .windowed import held_at_border

STATIONARY = 1e-2
"""Steepness up to which a pose that misses its goals counts as OPTIMAL."""
GIVING_WAY = 10.0
"""How much more that of a goal counts which gives way to others: where these hold limbs nearly straight, the
slope along which such a limb bends is small beside what it wins."""


def steepness(problem: LeastSquaresProblem, given: Given, state: State, limits: Limits) -> Array:
    """(B,) how steeply the error of the goals that are not met can still fall: 0 where it is stationary.

    The largest part of the gradient that belongs to one joint, beside the residual times the longest lever:
    a cosine, as in MINPACK's test of the gradient (More 1978, "The Levenberg-Marquardt algorithm:
    implementation and theory"). The gradient is projected into the limits. A goal that gives way to others
    is tested along directions that leave those alone, to first order (`feasible`), and so is one that would
    stretch a part of a chain past its reach window.
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
    where, found = Where(problem, given, state, slope), np.zeros(state.size)
    kept: list[int] = []
    for rank in sorted({goal.priority for goal in problem.goals}):
        places = zip(problem.goals, problem.places, strict=True)
        rows = [k for goal, place in places if goal.priority == rank for k in range(place.start, place.stop)]
        own, missing = serving[rows], values[rows]
        gradient = projected(where, kept, rows, np.einsum("mkb,mb->kb", own, missing))
        lever = np.einsum("mkb,mkb->kb", own, own).max(0)
        steep = _largest(where, gradient) / np.maximum(lever * (missing * missing).sum(0), TINY)
        found = np.maximum(found, np.sqrt(steep) * (GIVING_WAY if kept else 1.0))
        kept += rows
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


def _largest(where: Where, gradient: Array) -> Array:
    """(B,) the largest square of one joint's part of a gradient (k, B), inside its limit."""
    layout = where.problem.layout
    parts = gradient * gradient
    place = slice(layout.first_ball, layout.first_slide)
    balls = parts[place].reshape(-1, 3, where.state.size).sum(1)
    asked = where.allowed(gradient) if len(balls) else None
    if asked is not None:
        way, allowed = asked
        balls *= np.clip((allowed * way).sum(1), 0.0, 1.0)
    return np.asarray(np.concatenate((balls, parts[: place.start], parts[place.stop :])).max(0))
