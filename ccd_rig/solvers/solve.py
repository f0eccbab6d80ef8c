"""Solve: comfort before limits, and other starts where the first one leads nowhere.

Goals go by their priority in stages (`ccd/stages`), each with a loop (`ccd/loop`) that brings joints inside
their limits, makes passes and keeps the best pose. It stops when the goals are met, when nothing can be won,
or when the iterations run out. Where passes creep, damped least squares go on inside the same limits
(`least_squares/closing`). The first stall is answered by one deterministic nudge, which leaves straight and
folded chains. After a second stall, or where the iterations have run out, other starts are tried
(`restarts`). What still misses its goals is tested for the status OPTIMAL.

Comfort regions are taken for the limits first, and left only if the goals cannot be met. Goals served first
get the last word in every pass; poses in which they are farther off do not count. A result that is farther
from the goals than the start is not returned.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from mathutils import Quaternion

from ..errors import InvalidInput
from ..goals import Goal, measure
from ..limits.shapes import Limit
from ..settings import SolveResult, SolverSettings, SolveStatus
from ..skeleton.joints import Joint, Skeleton
from ..skeleton.kinematics import forward_kinematics
from ..skeleton.pose import Pose
from ..skeleton.pose_library import PoseEntry, check_entry
from .ccd.chain_length import bound, enter_windows, stretched
from .ccd.loop import CLOSING, may_close
from .ccd.progress import Progress, met
from .ccd.stages import by_priority
from .ccd.working_pose import WorkingPose
from .least_squares.closing import Descent, refined
from .least_squares.comfort_tolerances import EASE
from .least_squares.optimality import is_optimal
from .least_squares.pose_problem import PoseProblem
from .least_squares.problem import LeastSquaresProblem
from .least_squares.solve import HURRIED_GAIN, PATIENT_GAIN
from .restarts import StartSpace, starts


def solve(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    settings: SolverSettings | None = None,
    poses: Sequence[PoseEntry] = (),
    reference: Pose | None = None,
) -> SolveResult:
    """The pose nearest to the goals that CCD finds from `pose`, inside all limits.

    Only joints of the goals' chains are turned; those that start outside their limit are brought inside it
    first. The result is never worse than the start inside its limits: of the goals' weighted square errors,
    summed per priority, the first sum that changes by more than the tolerance becomes smaller (goals within
    their tolerance count 0). Only comfort regions together with comfort tolerances may give some of that up.
    The same input gives the same result to the bit. A target out of reach is a
    status, never an exception.

    Args:
        skeleton: the joints.
        pose: where to start.
        goals: what to achieve, at least one.
        settings: how; None for `SolverSettings()`.
        poses: a pose library; its nearest entries are the first of `settings.restarts`.
        reference: the pose that joints stay near to, as far as the goals leave them room. Where joints move
            all at once (one position, `error_reduction` above 0, `Solver.CCD_LEAST_SQUARES`), they go back to
            it as their target moves. None: they stay where they are.

    Raises:
        InvalidInput: names what is wrong with the input.
    """
    working = _working_pose(skeleton, pose, goals, settings, poses, reference)
    found = Progress(working)
    (status,) = deque(_statuses(working, found, settings or SolverSettings(), poses), maxlen=1)
    return _result(working, found, status)


def iterate(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    settings: SolverSettings | None = None,
    poses: Sequence[PoseEntry] = (),
    reference: Pose | None = None,
) -> Iterator[SolveResult]:
    """Like `solve`, one item per iteration: to show it, to cancel it, or to spread it over frames.

    Every item holds the best pose so far; the last one equals what `solve` returns.
    """
    working = _working_pose(skeleton, pose, goals, settings, poses, reference)
    found = Progress(working)
    for status in _statuses(working, found, settings or SolverSettings(), poses):
        yield _result(working, found, status)


def _working_pose(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    settings: SolverSettings | None,
    poses: Sequence[PoseEntry],
    reference: Pose | None,
) -> WorkingPose:
    """The working copy; what is wrong with the input is said at once, whether it will be needed or not."""
    if not isinstance(settings, SolverSettings | None):
        raise InvalidInput(f"settings must be SolverSettings or None, not {settings!r}")
    for entry in poses:
        check_entry(entry, skeleton)
    return WorkingPose(skeleton, pose, goals, reference)


def _statuses(
    working: WorkingPose, found: Progress, settings: SolverSettings, poses: Sequence[PoseEntry]
) -> Iterator[SolveStatus | None]:
    """None after each iteration but the last, then how the solve ended."""
    yield (yield from _run(working, found, settings, poses))


def _result(working: WorkingPose, found: Progress, status: SolveStatus | None) -> SolveResult:
    pose = working.pose(found.rotations, found.slides)
    transforms = forward_kinematics(working.skeleton, pose)
    errors = tuple(measure(effector.goal, working.skeleton, transforms) for effector in working.effectors)
    return SolveResult(pose, status or SolveStatus.ITERATION_LIMIT, found.iterations, errors)


def _run(
    working: WorkingPose, found: Progress, settings: SolverSettings, poses: Sequence[PoseEntry]
) -> Generator[None, None, SolveStatus]:
    """Runs the solve; pauses between iterations and returns how it ended."""
    tolerances = [_tolerance(joint) if settings.comfort else 0.0 for joint in working.joints]
    working.set_limits([joint.limit for joint in working.joints], tolerances)
    enter_windows(working)
    comfortable = settings.comfort and any(_region(working.joints[i]) is not None for i in working.movable)
    # A comfort tolerance lets goals be missed for the region's sake, frame after frame alike.
    eased = comfortable and any(tolerances[i] for i in working.movable)
    # One stage keeps the best pose it has seen; several may trade one goal for another.
    several = comfortable or len({effector.goal.priority for effector in working.effectors}) > 1
    start = list(working.rotations), list(working.slides)
    before = _score(working, settings) if several else []
    status = yield from _search(working, found, settings, poses, tolerances, comfortable)
    if several:
        working.activate(range(len(working.effectors)))
        working.restore(found.rotations, found.slides)
        after = _score(working, settings)
        if not eased and _gains(before, after, settings.position_tolerance):
            (found.rotations, found.slides), after = start, before
        if not any(after):
            return SolveStatus.CONVERGED
    if status in (SolveStatus.STALLED, SolveStatus.ITERATION_LIMIT):
        return _settled(working, found, settings, start, status)
    return status


def _settled(
    working: WorkingPose,
    found: Progress,
    settings: SolverSettings,
    start: tuple[list[Quaternion], list[tuple[float, ...]]],
    status: SolveStatus,
) -> SolveStatus:
    """Brings what missed its goals as near as least squares get, and tells whether that is OPTIMAL.

    `start` and `status` are how the solve began and ended. Passes measure rotations by the way of an axis,
    least squares by their angle: where goals conflict the nearest poses of the two differ a little.
    """
    working.activate(range(len(working.effectors)))
    goals = [effector.goal for effector in working.effectors]
    limits = [joint.limit for joint in working.joints]
    if may_close(working, settings):
        closing = PoseProblem(working.skeleton, goals, limits, working.movable)
        most = min(CLOSING, settings.max_iterations)
        descent = Descent(settings.position_tolerance, settings.angle_tolerance, most, PATIENT_GAIN)
        closed = refined(closing, working.pose(found.rotations, found.slides), descent)
        found.iterations += closed.iterations
        # One goal may be traded for another, but neither for those served first nor past the start.
        several = len({goal.priority for goal in goals}) > 1
        working.restore(*((found.rotations, found.slides) if several else start))
        before = _score(working, settings)
        working.set_pose(closed.pose)
        after = _score(working, settings)
        if not _gains(before, after, settings.position_tolerance):
            found.rotations, found.slides = list(working.rotations), list(working.slides)
            if not any(after):
                return SolveStatus.CONVERGED
    problem = LeastSquaresProblem(working.skeleton, goals, limits, working.movable)
    pose = working.pose(found.rotations, found.slides)
    nearest = is_optimal(problem, pose, settings.position_tolerance, settings.angle_tolerance)
    return SolveStatus.OPTIMAL if nearest else status


def _search(
    working: WorkingPose,
    found: Progress,
    settings: SolverSettings,
    poses: Sequence[PoseEntry],
    tolerances: Sequence[float],
    comfortable: bool,
) -> Generator[None, None, SolveStatus]:
    """Comfort before limits, then other starts; what it found is not yet held against the start."""
    if comfortable:
        # The preferred region is left only if the goals cannot be met within it: first it is taken for the
        # limit.
        start, allowed = (list(working.rotations), list(working.slides)), stretched(working)
        working.set_limits([_region(joint) or joint.limit for joint in working.joints], tolerances)
        enter_windows(working)
        if _stretched_more(working, allowed):
            working.restore(*start)
        else:
            half = replace(settings, max_iterations=(settings.max_iterations + 1) // 2)
            found.calm = True
            status = yield from by_priority(working, found, half)
            found.calm = False
            if status is SolveStatus.CONVERGED:
                return status
            working.activate(range(len(working.effectors)))
            working.restore(found.rotations, found.slides)
            if status is not SolveStatus.ITERATION_LIMIT and _at_ease(working):
                return status
            yield
        working.set_limits([joint.limit for joint in working.joints], tolerances)
        enter_windows(working)
    alone = len(working.movable) < 2  # a lone joint has just made the best move there is
    again = settings.restarts > 0 and not alone and not any(tolerances) and _within_reach(working, settings)
    found.hurried = again and may_close(working, settings)
    status = yield from by_priority(working, found, settings)
    if status is SolveStatus.CONVERGED or not again:
        return status
    yield
    status = yield from _start_again(working, found, settings, poses, status)
    if status is SolveStatus.CONVERGED or not found.hurried:
        return status
    # No start led to the goals: from the best of them as near as it gets, a try of its own.
    found.hurried = False
    working.restore(found.rotations, found.slides)
    yield
    last = replace(settings, max_iterations=found.iterations + settings.max_iterations)
    return (yield from by_priority(working, found, last))


def _at_ease(working: WorkingPose) -> bool:
    """Whether every joint sees its goals within its comfort tolerance, so that none wants to turn on."""
    return any(working.tolerances[i] for i in working.movable) and all(
        working.desired_angle(i) <= working.tolerances[i] + EASE for i in working.movable
    )


def _stretched_more(working: WorkingPose, allowed: Sequence[float]) -> bool:
    """Whether a reach window is stretched further past its length than `allowed`."""
    return any(now > most for now, most in zip(stretched(working), allowed, strict=True))


def _within_reach(working: WorkingPose, settings: SolverSettings) -> bool:
    return all(bound(working, k) <= settings.position_tolerance for k in range(len(working.effectors)))


def _start_again(
    working: WorkingPose,
    found: Progress,
    settings: SolverSettings,
    poses: Sequence[PoseEntry],
    status: SolveStatus,
) -> Generator[None, None, SolveStatus]:
    """Solves from other starts until the goals are met; the best pose of all counts.

    Where the closing phase may work it goes straight from each start: passes before it win nothing there.
    """
    working.activate(range(len(working.effectors)))
    goals, limits, movable = (
        [effector.goal for effector in working.effectors],
        working.limits,
        working.movable,
    )
    working.restore(found.rotations, found.slides)
    score, allowed = _score(working, settings), stretched(working)
    straight = PoseProblem(working.skeleton, goals, limits, movable) if found.hurried else None
    best = working.pose(found.rotations, found.slides)
    most = min(CLOSING, settings.max_iterations)
    descent = Descent(settings.position_tolerance, settings.angle_tolerance, most, HURRIED_GAIN)
    for start in starts(
        StartSpace(working.skeleton, goals, limits, movable, poses), best, settings.seed, settings.restarts
    ):
        if straight is not None:
            closed = refined(straight, start, descent)
            found.iterations += closed.iterations
            working.set_pose(closed.pose)
        else:
            working.set_pose(start)
            enter_windows(working)
            if _stretched_more(working, allowed):
                continue  # it cannot be bent into its reach window
            once = Progress(working)
            yield from by_priority(working, once, settings)
            found.iterations += once.iterations
            working.activate(range(len(working.effectors)))
            working.restore(once.rotations, once.slides)
        here = _score(working, settings)
        if _gains(here, score, settings.position_tolerance):
            score = here
            found.rotations, found.slides = list(working.rotations), list(working.slides)
        if not any(score):
            return SolveStatus.CONVERGED
        yield
    return status


def _gains(here: Sequence[float], score: Sequence[float], tolerance: float) -> bool:
    """Whether another start led nearer by more than the tolerance: a different pose as far off is no gain."""
    for new, old in zip(here, score, strict=True):
        won = math.sqrt(old) - math.sqrt(new)
        if abs(won) > tolerance or (new == 0.0) != (old == 0.0):
            return won > 0.0
    return False


def _score(working: WorkingPose, settings: SolverSettings) -> list[float]:
    """The squared error of the goals that are not met, those served first before the others."""
    numbers = sorted({effector.goal.priority for effector in working.effectors})
    missed = [effector for effector in working.effectors if not met(effector.error(), settings)]
    return [
        sum(effector.square() for effector in missed if effector.goal.priority == number)
        for number in numbers
    ]


def _tolerance(joint: Joint) -> float:
    return joint.comfort.tolerance if joint.comfort is not None else 0.0


def _region(joint: Joint) -> Limit | None:
    return joint.comfort.region if joint.comfort is not None else None
