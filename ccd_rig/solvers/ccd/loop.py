"""The loop: visit joints in an order, take each one's best step, stop when nothing more is to be won."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace

from ...goals import Goal, GoalError
from ...settings import Solver, SolverSettings, SolveStatus
from ..least_squares.closing import Descent, refined
from ..least_squares.pose_problem import PoseProblem
from ..least_squares.solve import GAIN, HURRIED_GAIN
from ..pauses import pause
from . import shared_passes
from .chain_length import bound, length_scale, step_parts, stretch
from .dead_ends import nudge
from .iteration import fraction_of_step, run_iteration
from .progress import Progress, met
from .swivel import mirror, poles_of, swivel
from .working_pose import WorkingPose

LOOK, LEFT, HANDOVER = 2, 3.0, 12
"""From `LOOK` passes on sweeps count as creeping, and least squares take over, when at the present rate more
than `LEFT` passes are left; after `HANDOVER` passes in any case. Passes of pushes grow faster to the end."""
CLOSING = 60
"""Most steps of least squares in a row."""
LAST_WORD = 12
"""Most iterations in which goals that are served first recover what later ones took from them."""


def run_passes(
    working: WorkingPose, found: Progress, settings: SolverSettings, goals: Sequence[int], most: int
) -> Generator[None, None, SolveStatus]:
    """Iterations for some of the goals inside one set of limits."""
    tolerance = settings.position_tolerance
    ended, bounds = _first_moves(working, found, settings, goals)
    if ended is not None:
        return ended
    # Near the end steps are parts of the tolerance: they must not pass for trivial.
    scale = max(length_scale(working, k) for k in goals)
    trivial = min(settings.stall_threshold * scale, 0.02 * tolerance)
    start = math.sqrt(found.error)
    nudged, closed, count, before = False, False, 0, found.error
    while found.iterations < most:
        pause()
        fraction = fraction_of_step(settings, math.sqrt(found.error), start)
        longest = run_iteration(working, settings, found.iterations, fraction, found.calm)
        if found.caps:
            _last_word(working, found, settings)
        found.iterations += 1
        errors = found.note(working, goals)
        if found.meets(working, errors, settings):
            return SolveStatus.CONVERGED
        if _at_bounds(errors, bounds, settings):
            return SolveStatus.OPTIMAL
        count += 1
        stuck = longest <= trivial or found.slow()
        creeping = count == HANDOVER or (
            not closed
            and count >= LOOK
            and not isinstance(working.pass_plan, shared_passes.PassPlan)
            and _passes_left(found.error, before, tolerance) > LEFT
        )
        before = found.error
        if (stuck or creeping) and may_close(working, settings):
            closed = True
            if found.meets(working, _close(working, found, settings, goals), settings):
                return SolveStatus.CONVERGED
            if found.hurried or found.calm:
                return SolveStatus.STALLED
            # Behind goals that are served first, sweeps and their last words would only creep on from there.
            stuck = stuck or bool(found.caps)
        if stuck:
            if nudged or found.calm:
                return SolveStatus.STALLED
            found.begin(gain=tolerance)
            working.restore(found.rotations, found.slides)
            nudge(working, working.movable)
            nudged, closed, count = True, False, 0
        yield
    return SolveStatus.ITERATION_LIMIT


def _first_moves(
    working: WorkingPose, found: Progress, settings: SolverSettings, goals: Sequence[int]
) -> tuple[SolveStatus | None, list[float]]:
    """What comes before passes: poles by a swivel, a chain too short for its target stretched at once.

    Returns:
        How the solve has ended, or None; and the distances that goals cannot go below.
    """
    found.begin()
    errors = found.note(working, goals)
    if all(met(error, settings) for error in errors):
        return SolveStatus.CONVERGED, []
    if not working.movable:
        return SolveStatus.STALLED, []
    if _swivelled(working, found, settings, goals):
        return SolveStatus.CONVERGED, []
    bounds = [bound(working, k) for k in goals]
    working.share_steps(step_parts(working, settings.error_reduction))
    if max(bounds) > settings.position_tolerance:
        stretch(working)
        found.iterations += 1
        errors = found.note(working, goals)
        if _at_bounds(errors, bounds, settings):
            return SolveStatus.OPTIMAL, bounds
        working.restore(found.rotations, found.slides)
    return None, bounds


def _swivelled(working: WorkingPose, found: Progress, settings: SolverSettings, goals: Sequence[int]) -> bool:
    """Turns chains to their poles, as a start for the passes; whether that meets all goals."""
    poles = poles_of(working, goals)
    if not poles:
        return False
    start = list(found.rotations), list(found.slides)
    for bent in (True, False):
        if bent and not mirror(working, poles):
            continue
        swivel(working, poles)
        found.iterations += 1
        errors = found.note(working, goals)
        if found.meets(working, errors, settings):
            return True
        working.restore(*start)
    working.restore(found.rotations, found.slides)
    return False


def _passes_left(error: float, before: float, tolerance: float) -> float:
    """How many more passes it takes to the tolerance at the rate of the last one; errors are squared
    distances."""
    if before <= 0.0 or error <= tolerance * tolerance:
        return 0.0
    rate = error / before
    return math.log(error / (tolerance * tolerance)) / -math.log(rate) if 0.0 < rate < 1.0 else math.inf


def may_close(working: WorkingPose, settings: SolverSettings) -> bool:
    """Whether least squares may take over: they know neither reach windows nor comfort tolerances.

    A lone joint needs them not: its step is the best move there is.
    """
    known = not working.windows and not any(working.tolerances[i] for i in working.movable)
    return settings.solver is Solver.CCD_LEAST_SQUARES and known and len(working.movable) > 1


def _close(
    working: WorkingPose, found: Progress, settings: SolverSettings, goals: Sequence[int]
) -> list[GoalError]:
    """Lets damped least squares go on from the best pose so far (Wang & Chen 1991); how far off the goals
    are then."""
    # Goals of one rank while there may be room for all, then of two: the stage sees to it that those served
    # first are kept.
    kept = _kept(working, found)
    ranked = [_ranked(working.effectors[k].goal, int(kept and k not in found.caps)) for k in goals]
    problem = PoseProblem(working.skeleton, ranked, working.limits, working.movable)
    best = working.pose(found.rotations, found.slides)
    left = min(CLOSING, settings.max_iterations - found.iterations)
    gain = HURRIED_GAIN if found.hurried else GAIN
    tolerances = (settings.position_tolerance, settings.angle_tolerance)
    closed = refined(problem, best, Descent(*tolerances, left, gain, calm=found.calm))
    found.iterations += closed.iterations
    working.set_pose(closed.pose)
    return found.note(working, goals)


def _ranked(goal: Goal, priority: int) -> Goal:
    """The goal with another priority."""
    return goal if goal.priority == priority else replace(goal, priority=priority)


def _kept(working: WorkingPose, found: Progress) -> bool:
    """Whether goals that are served first weigh more than they ask for, because there is no room for all."""
    return any(working.effectors[k].weight != working.effectors[k].goal.weight for k in found.caps)


def _last_word(working: WorkingPose, found: Progress, settings: SolverSettings) -> None:
    """Iterations for the goals that are served first, until they are as near as before."""
    every = working.active
    working.activate(list(found.caps))
    for iteration in range(LAST_WORD):
        if found.holds_caps(working):
            break
        run_iteration(working, settings, iteration, 1.0)
    working.activate(every)


def _at_bounds(errors: Sequence[GoalError], bounds: Sequence[float], settings: SolverSettings) -> bool:
    """Whether no goal can come any nearer."""
    return all(
        error.distance <= bound + settings.position_tolerance and error.angle <= settings.angle_tolerance
        for error, bound in zip(errors, bounds, strict=True)
    )
