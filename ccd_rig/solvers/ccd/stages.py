"""Stages of a solve: goals in the order of their priority, each stage first near the reference pose."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from ...goals import GoalError
from ...settings import SolverSettings, SolveStatus
from .chain_length import bound, stretched
from .iteration import shares_passes
from .loop import run_passes
from .progress import Progress, met
from .reference_passes import passes_near_reference
from .working_pose import WorkingPose

FIRST = 100.0
"""What goals that are served first weigh beside later ones where there is no room for all."""


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
        or shares_passes(working, settings, found.calm)
    ):
        return (yield from run_passes(working, found, settings, goals, most))
    found.begin()
    found.note(working, goals)
    start = found.rotations, found.slides, found.error
    if (yield from _near_reference(working, found, settings, goals, most)):
        return SolveStatus.CONVERGED
    # What the reference has evened out needs no shares any more: the whole steps arrive sooner.
    whole = replace(settings, error_reduction=0.0)
    status = yield from run_passes(working, found, whole, goals, most)
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
