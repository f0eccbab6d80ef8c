"""Feasible directions: what of a descent is left by limits, by goals served before and by reach windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...maths.batch import TINY, Array, Mask, conjugate, logarithm, multiply
from ...maths.small_systems import products, solved
from .held import SAME_FACE, Held
from .problem import LeastSquaresProblem
from .state import Given, State, stepped_balls, to_model

AT_BOUND = 1e-6
"""Radians (parts of the reach of slides) from a bound at which a hinge is held by it."""
PROBE = 1e-3
"""Rotation of a ball joint, radians, by which it is seen what its limit leaves of a direction."""
ROUNDS = 6
"""How often what holds is looked for."""


class Where(NamedTuple):
    """Poses of a problem.

    Attributes:
        problem: what they share. given: what each of them brings. state: where they are.
        slope: (m, k, B) of all residuals there.
    """

    problem: LeastSquaresProblem
    given: Given
    state: State
    slope: Array

    @property
    def windows(self) -> Array:
        """(w, k, B) the slopes of the reach windows that are held."""
        return self.slope[self.problem.rows - len(self.problem.windows) :]

    def held(self, gradient: Array) -> Mask:
        """(k, B) hinges and slides that a bound keeps from going against a gradient (k, B)."""
        down, up = self.problem.bounds(self.given, self.state)
        return np.where(gradient > 0.0, down >= -AT_BOUND, up <= AT_BOUND)

    def allowed(self, gradient: Array) -> tuple[Array, Array] | None:
        """The ways (balls, 3, B) of ball joints against a gradient (k, B), and what limits leave of them:
        about model axes, the former of length 1. None where all limits leave all."""
        layout, state = self.problem.layout, self.state
        balls = gradient[layout.first_ball : layout.first_slide].reshape(-1, 3, state.size)
        size = np.sqrt((balls * balls).sum(1))
        way = -balls / np.maximum(size, TINY)[:, None]
        step = np.zeros_like(gradient)
        step[layout.first_ball : layout.first_slide] = (PROBE * way).reshape(-1, state.size)
        pushed = self.given.limits.balls.project(stepped_balls(layout, state, step))
        if pushed is None:
            return None
        own = state.rotations[:, layout.ball_rows]
        return way, to_model(layout, state, logarithm(multiply(conjugate(own), pushed[0]))) / PROBE


def projected(where: Where, kept: list[int], own: list[int], gradient: Array) -> Array:
    """A goal's gradient (k, B) without what leaves limits, moves goals served before or stretches windows.

    All joints that serve one of these goals make way, not only those of the goal whose gradient it is: while
    a spine bends for a later goal, the arm on it keeps its hand where it is. What holds is found in rounds
    (the primal-dual active set method, as in `step`). What the limits of ball joints leave of the result is
    not looked at where no other goal is in the way.

    Args:
        where: the poses.
        kept: rows of the residuals that stay, to first order.
        own: rows of the goal.
        gradient: half of that of the goal's square error.
    """
    problem, windows = where.problem, where.windows
    if not kept and not len(windows):
        return np.where(where.held(gradient), 0.0, gradient)
    rows = np.concatenate((where.slope[kept], windows))
    if problem.serves is not None:
        rows = rows * (problem.serves[kept + own] != 0.0).any(0)[:, None]
    # Weights of priorities are far apart: here each row counts alike.
    rows = rows / np.maximum(np.sqrt((rows * rows).sum(1, keepdims=True)), TINY)
    counting = np.ones((len(rows), where.state.size))
    counting[len(kept) :] = 0.0
    left = np.zeros((len(problem.layout.balls), 3, 3, where.state.size))
    left[:, range(3), range(3)] = 1.0
    bounded, found = np.zeros(gradient.shape, np.bool_), gradient
    for _ in range(ROUNDS):
        counting[len(kept) :] = np.maximum(counting[len(kept) :], (windows * found).sum(1) < 0.0)
        held = Held(problem.layout, bounded, np.arange(len(left)), left)
        found, wanted = _beside(rows * counting[:, None], held, gradient)
        before, bounded = bounded, where.held(wanted)
        changed = _hold_borders(where, found, left) or bool((before != bounded).any())
        if not changed:
            break
    return held._replace(columns=bounded).free(found)


def beside(slope: Array, step: Array) -> Array:
    """What of a step (k, B) leaves residuals with this slope (m, k, B) alone, to first order."""
    moving = slope * (step != 0.0)
    return np.asarray(step - np.einsum("mkb,mb->kb", moving, _dual(moving, step)))


def _beside(slope: Array, held: Held, step: Array) -> tuple[Array, Array]:
    """What of a step (k, B) is free and leaves residuals alone, and what held columns would do then."""
    moving, free = held.free(slope), held.free(step)
    dual = _dual(moving, free)
    found = free - np.einsum("mkb,mb->kb", moving, dual)
    asked = step - np.einsum("mkb,mb->kb", slope, dual)
    return found, asked if held.columns is None else np.where(held.columns, asked, found)


def _dual(moving: Array, step: Array) -> Array:
    """(m, B) how much of each residual's slope is taken from a step (k, B)."""
    system = products(moving, moving, True)
    each = np.arange(len(system))
    system[each, each] += 1e-9 * np.einsum("mmb->b", system) + TINY
    return solved(system, np.full(step.shape[1], TINY), np.einsum("mkb,kb->mb", moving, step))


def _hold_borders(where: Where, gradient: Array, left: Array) -> bool:
    """Take from `left` (balls, 3, 3, B), in place, where going against a gradient leaves limits of ball
    joints; whether any does."""
    asked = where.allowed(gradient)
    if asked is None:
        return False
    way, allowed = asked
    outward = np.einsum("nijb,njb->nib", left, way - allowed)
    size = np.sqrt((outward * outward).sum(1))
    normals = np.where(size > SAME_FACE, 1.0 / np.maximum(size, TINY), 0.0)[:, None] * outward
    left -= normals[:, :, None] * np.einsum("nib,nijb->njb", normals, left)[:, None]
    return bool(normals.any())
