"""Solve: comfort before limits, and other starts where the first one leads nowhere."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from .goals import Goal, measure
from .limits import Limit
from .loop import Progress, by_priority
from .poses import PoseEntry
from .reach import bound, enter_windows
from .restarts import starts
from .settings import SolveResult, SolverSettings, SolveStatus
from .skeleton import Joint, Pose, Skeleton, forward_kinematics
from .steps import Body


def solve(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    settings: SolverSettings | None = None,
    poses: Sequence[PoseEntry] = (),
) -> SolveResult:
    """The pose nearest to the goals that CCD finds from `pose`, inside all limits.

    Only joints of the goals' chains are turned; those that start outside their limit are brought inside it
    first. The same input gives the same result to the bit. A target out of reach is a status, never an
    exception.

    Args:
        skeleton: the joints.
        pose: where to start.
        goals: what to achieve, at least one.
        settings: how; None for `SolverSettings()`.
        poses: a pose library; its nearest entries are the first of `settings.restarts`.

    Raises:
        InvalidInput: names what is wrong with the input.
    """
    body = Body(skeleton, pose, goals)
    found = Progress(body)
    run = _run(body, found, settings or SolverSettings(), poses)
    while True:
        try:
            next(run)
        except StopIteration as end:
            return _result(body, found, end.value)


def iterate(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    settings: SolverSettings | None = None,
    poses: Sequence[PoseEntry] = (),
) -> Iterator[SolveResult]:
    """Like `solve`, one item per iteration: to show it, to cancel it, or to spread it over frames.

    Every item holds the best pose so far; the last one equals what `solve` returns.
    """
    body = Body(skeleton, pose, goals)
    found = Progress(body)
    run = _run(body, found, settings or SolverSettings(), poses)
    while True:
        try:
            next(run)
        except StopIteration as end:
            yield _result(body, found, end.value)
            return
        yield _result(body, found, SolveStatus.ITERATION_LIMIT)


def _result(body: Body, found: Progress, status: SolveStatus) -> SolveResult:
    pose = body.pose(found.rotations, found.slides)
    transforms = forward_kinematics(body.skeleton, pose)
    errors = tuple(measure(view.goal, body.skeleton, transforms) for view in body.views)
    return SolveResult(pose, status, found.iterations, errors)


def _run(
    body: Body, found: Progress, settings: SolverSettings, poses: Sequence[PoseEntry]
) -> Generator[None, None, SolveStatus]:
    """Runs the solve; pauses between iterations and returns how it ended."""
    tolerances = [_tolerance(joint) if settings.comfort else 0.0 for joint in body.joints]
    if settings.comfort and any(_region(body.joints[i]) is not None for i in body.movable):
        # The preferred region is left only if the goals cannot be met within it: first it is taken for the
        # limit.
        body.confine([_region(joint) or joint.limit for joint in body.joints], tolerances)
        enter_windows(body)
        status = yield from by_priority(body, found, settings)
        if status is SolveStatus.CONVERGED or found.iterations >= settings.max_iterations:
            return status
        body.activate(range(len(body.views)))
        body.restore(found.rotations, found.slides)
        yield
    body.confine([joint.limit for joint in body.joints], tolerances)
    enter_windows(body)
    status = yield from by_priority(body, found, settings)
    if status is not SolveStatus.CONVERGED and settings.restarts > 0 and _within_reach(body, settings):
        status = yield from _start_again(body, found, settings, poses, status)
    return status


def _within_reach(body: Body, settings: SolverSettings) -> bool:
    return all(bound(body, k) <= settings.position_tolerance for k in range(len(body.views)))


def _start_again(
    body: Body, found: Progress, settings: SolverSettings, poses: Sequence[PoseEntry], status: SolveStatus
) -> Generator[None, None, SolveStatus]:
    """Solves from other starts until the goals are met; the best pose of all counts.

    A start counts as better when its goals, those served first before the others, are nearer.
    """
    everything = range(len(body.views))
    body.activate(everything)
    best, score = (found.rotations, found.slides), _score(body)
    goals = [view.goal for view in body.views]
    first = body.pose(*best)
    for start in starts(
        body.skeleton, first, goals, body.limits, body.movable, poses, settings.seed, settings.restarts
    ):
        yield
        body.activate(everything)
        body.take(start)
        enter_windows(body)
        again = Progress(body)
        ended = yield from by_priority(body, again, settings)
        found.iterations += again.iterations
        body.activate(everything)
        body.restore(again.rotations, again.slides)
        if _score(body) < score:
            best, score, status = (again.rotations, again.slides), _score(body), ended
        if status is SolveStatus.CONVERGED:
            break
    found.rotations, found.slides = best
    return status


def _score(body: Body) -> list[float]:
    """The squared error of the goals, those served first before the others."""
    numbers = sorted({view.goal.priority for view in body.views})
    return [sum(view.square() for view in body.views if view.goal.priority == number) for number in numbers]


def _tolerance(joint: Joint) -> float:
    return joint.comfort.tolerance if joint.comfort is not None else 0.0


def _region(joint: Joint) -> Limit | None:
    return joint.comfort.region if joint.comfort is not None else None
