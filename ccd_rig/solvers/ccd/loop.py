"""The loop: visit joints in an order, take each one's best step, stop when nothing more is to be won."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace

from ...goals import Goal, GoalError
from ...settings import STEP_RANGE, Solver, SolverSettings, SolveStatus, Sweep
from ..least_squares.closing import HURRIED_GAIN, Descent, refined
from ..least_squares.pose_problem import PoseProblem
from ..least_squares.solve import GAIN
from ..pauses import pause
from . import passes, shared_passes
from .chain_length import bound, length_scale, step_parts, stretch, stretched
from .dead_ends import nudge
from .effectors import PositionEffector
from .progress import Progress, met
from .reference_passes import passes_near_reference
from .sweeps import visits
from .swivel import mirror, poles_of, swivel
from .two_bone_tip import solve_two_bone_tip, two_bone_tips_of
from .working_pose import WorkingPose

LOOK, LEFT, HANDOVER = 2, 3.0, 12
"""From `LOOK` passes on sweeps count as creeping, and least squares take over, when at the present rate more
than `LEFT` passes are left; after `HANDOVER` passes in any case. Passes of pushes grow faster to the end."""
FIRST = 100.0
"""What goals that are served first weigh beside later ones where there is no room for all."""
CLOSING = 60
"""Most steps of least squares in a row."""
LAST_WORD = 12
"""Most iterations in which goals that are served first recover what later ones took from them."""


def by_priority(
    working: WorkingPose, found: Progress, settings: SolverSettings
) -> Generator[None, None, SolveStatus]:
    """Solves the goals in the order of their priority: those served later do not worsen those served before.

    Kenwright 2012, section 9.1: the goal that is updated last wins. Here each later group is solved together
    with those before it, which then get the last word; poses in which they are not as near as before do not
    count. Near a reference pose all are solved together first, as if there was room for them all.
    """
    numbers = sorted({effector.goal.priority for effector in working.effectors})
    found.caps = {}
    if len(numbers) > 1 and working.reference is not None:
        every = range(len(working.effectors))
        working.activate(every)
        found.begin()
        found.note(working, every)
        if working.movable and (
            yield from _near_reference(working, found, settings, every, settings.max_iterations)
        ):
            return SolveStatus.CONVERGED
        working.restore(found.rotations, found.slides)
    status = SolveStatus.CONVERGED
    for number in numbers:
        group = [k for k, effector in enumerate(working.effectors) if effector.goal.priority <= number]
        working.activate(group)
        if number != numbers[0]:
            if found.iterations >= settings.max_iterations:
                return SolveStatus.ITERATION_LIMIT
            working.restore(found.rotations, found.slides)
        if found.caps:
            status = yield from _stage_behind(working, found, settings, group)
        else:
            status = yield from _stage(working, found, settings, group, settings.max_iterations)
        if number != numbers[-1]:
            working.restore(found.rotations, found.slides)
            for k in group:
                error = working.effectors[k].error()
                found.caps[k] = GoalError(
                    _cap(error.distance, settings.position_tolerance),
                    _cap(error.angle, settings.angle_tolerance),
                )
    working.restore(found.rotations, found.slides)
    if all(met(effector.error(), settings) for effector in working.effectors):
        return SolveStatus.CONVERGED
    return SolveStatus.STALLED if status is SolveStatus.CONVERGED else status


def _cap(error: float, tolerance: float) -> float:
    """How far off a goal may be while later ones are served: within its tolerance if it is, else no
    farther."""
    return tolerance if error <= tolerance else error + 0.1 * tolerance


def _stage_behind(
    working: WorkingPose, found: Progress, settings: SolverSettings, goals: Sequence[int]
) -> Generator[None, None, SolveStatus]:
    """A stage whose last goals are served after others: first as if there were room for all of them.

    Where there is none, once more from the same start with weights that leave the last word little to do.
    """
    start = list(found.rotations), list(found.slides)
    half = (found.iterations + settings.max_iterations) // 2
    status = yield from _stage(working, found, settings, goals, half)
    if status is SolveStatus.CONVERGED:
        return status
    plain = found.rotations, found.slides, found.error
    working.restore(*start)
    working.weigh(found.caps, FIRST)
    status = yield from _stage(working, found, settings, goals, settings.max_iterations)
    working.weigh(found.caps, 1.0)
    if plain[2] < found.error:
        found.rotations, found.slides, found.error = plain
    return status


def _stage(
    working: WorkingPose, found: Progress, settings: SolverSettings, goals: Sequence[int], most: int
) -> Generator[None, None, SolveStatus]:
    """Iterations for some of the goals inside one set of limits; first near the reference pose, if there is
    one. Where there are several priorities, they have all been near it together."""
    several = len({effector.goal.priority for effector in working.effectors}) > 1
    if (
        several
        or working.reference is None
        or not working.movable
        or _shares_passes(working, settings, found.calm)
    ):
        return (yield from _passes(working, found, settings, goals, most))
    found.begin()
    found.note(working, goals)
    start = found.rotations, found.slides, found.error
    if (yield from _near_reference(working, found, settings, goals, most)):
        return SolveStatus.CONVERGED
    # What the reference has evened out needs no shares any more: the whole steps arrive sooner.
    whole = replace(settings, error_reduction=0.0)
    status = yield from _passes(working, found, whole, goals, most)
    if status is not SolveStatus.CONVERGED and start[2] <= found.error:
        found.rotations, found.slides, found.error = start
    return status


def _near_reference(
    working: WorkingPose, found: Progress, settings: SolverSettings, goals: Sequence[int], most: int
) -> Generator[None, None, bool]:
    """Brings the working pose near the reference pose and the goals; whether that meets them."""
    start = found.rotations, found.slides
    working.restore_reference(working.movable)
    if any(stretched(working)):
        working.restore(*start)
    found.begin()
    errors = found.note(working, goals)
    if found.meets(working, errors, settings):
        return True
    if max(bound(working, k) for k in goals) > settings.position_tolerance:
        return False  # the chain is stretched from here
    working.restore(*start)
    found.begin()
    half = found.iterations + (most - found.iterations) // 2  # the goals count more than the reference
    for _ in passes_near_reference(working, settings.sweep, goals):
        found.iterations += 1
        errors = found.note(working, goals)
        if found.meets(working, errors, settings):
            return True
        if found.iterations >= half:
            break
        yield
    if not found.holds_caps(working):
        working.restore(found.rotations, found.slides)
    return False


def _passes(
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
        fraction = _fraction(settings, math.sqrt(found.error), start)
        longest = _iteration(working, settings, found.iterations, fraction, found.calm)
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


def _iteration(
    working: WorkingPose, settings: SolverSettings, iteration: int, fraction: float, calm: bool = False
) -> float:
    """One pass over the joints; returns the longest way that an effector was moved by one step.

    `calm`: joint by joint, to the dead end that is nearest, which moves with the target.
    """
    # Carrying rounds a little: stop a little inside the tolerance, so that the rebuilt pose is inside it too.
    enough = (0.9 * settings.position_tolerance) ** 2
    if settings.sweep is Sweep.ROOT_TO_TIP and fraction <= 1.0:
        if working.pass_plan is None:
            plan = passes.plan_pass(working) if not two_bone_tips_of(working) else []
            shared = (
                shared_passes.plan_pass(working, plan) if _shares_passes(working, settings, calm) else None
            )
            working.keep_plan(shared or plan)
        if isinstance(working.pass_plan, shared_passes.PassPlan):
            return shared_passes.run_pass(working, working.pass_plan)
        if working.pass_plan:
            return passes.run_pass(working, working.pass_plan, fraction, enough)
    only = (
        working.effectors[0]
        if len(working.effectors) == 1 and isinstance(working.effectors[0], PositionEffector)
        else None
    )
    longest = 0.0
    joints = working.movable
    tips = two_bone_tips_of(working)
    if tips:
        for effector in tips:
            solve_two_bone_tip(working, effector)
        if only is not None and (only.position - only.target).length_squared <= enough:
            working.recompute()
            return longest
        ends = {i for effector in tips for i in effector.moving_joints[-2:]}
        joints = [i for i in joints if i not in ends]
    for i in visits(settings.sweep, joints, iteration, working):
        longest = max(longest, working.step(i, fraction))
        # Kenwright 2012, listings 1 to 4: done as soon as the target is reached, later joints stay as they
        # are.
        if only is not None and (only.position - only.target).length_squared <= enough:
            break
    for effector in tips:
        solve_two_bone_tip(working, effector)
    working.recompute()
    return longest


def _shares_passes(working: WorkingPose, settings: SolverSettings, calm: bool) -> bool:
    """Whether passes may be least squares of all joints at once, which know the reference pose themselves.

    CCD alone goes to a reference pose joint by joint.
    """
    return (
        settings.error_reduction > 0.0
        and not calm
        and settings.sweep is Sweep.ROOT_TO_TIP
        and (settings.solver is not Solver.CCD or working.reference is None)
        and shared_passes.plan_pass(working, passes.plan_pass(working)) is not None
    )


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


def _fraction(settings: SolverSettings, error: float, start: float) -> float:
    """Kenwright 2012, section 8: the part of a step beside 1 is fed back from the error, and clamped."""
    if settings.error_reduction > 0.0:
        return 1.0
    beside = settings.step_fraction - 1.0
    if settings.step_feedback > 0.0 and start > 0.0:
        beside *= 1.0 - settings.step_feedback * (1.0 - min(1.0, error / start))
    return min(max(1.0 + beside, STEP_RANGE[0]), STEP_RANGE[1])


def _last_word(working: WorkingPose, found: Progress, settings: SolverSettings) -> None:
    """Iterations for the goals that are served first, until they are as near as before."""
    every = working.active
    working.activate(list(found.caps))
    for iteration in range(LAST_WORD):
        if found.holds_caps(working):
            break
        _iteration(working, settings, iteration, 1.0)
    working.activate(every)


def _at_bounds(errors: Sequence[GoalError], bounds: Sequence[float], settings: SolverSettings) -> bool:
    """Whether no goal can come any nearer."""
    return all(
        error.distance <= bound + settings.position_tolerance and error.angle <= settings.angle_tolerance
        for error, bound in zip(errors, bounds, strict=True)
    )
