"""The loop: visit joints in an order, take each one's best step, stop when the goals are met or nothing is
won."""

from __future__ import annotations

import enum
import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from mathutils import Quaternion

from .errors import InvalidInput
from .goals import Goal, GoalError, measure
from .limits import Limit
from .reach import bound, enter_windows, reach, stretch
from .skeleton import Joint, Pose, Skeleton, forward_kinematics
from .steps import Body
from .sweeps import Sweep, visits
from .views import PositionView, View

STEP_RANGE = (0.1, 1.3)
"""Least and largest part of a step."""
LAST_WORD = 12
"""Most iterations in which goals that are served first recover what later ones took from them."""
SLOW_WINDOW = 40
"""Iterations over which the error must fall by at least SLOW_GAIN, else the solve counts as stalled."""
SLOW_GAIN = 0.02


class SolveStatus(enum.Enum):
    """How a solve ended."""

    CONVERGED = "CONVERGED"
    """Every goal is met within its tolerance."""
    STALLED = "STALLED"
    """Nothing is won any more: out of reach, at limits, or in a dead end."""
    ITERATION_LIMIT = "ITERATION_LIMIT"
    """`max_iterations` ran out while the goals still came nearer."""


@dataclass(frozen=True, kw_only=True)
class SolverSettings:
    """How to solve.

    Attributes:
        max_iterations: most passes over the joints.
        position_tolerance: a position goal is met when its effector is this near to the target, in the
            model's unit.
        angle_tolerance: an orientation, direction or pole goal is met when it is this near, radians.
        sweep: the order in which joints are visited.
        step_fraction: part of each joint's best step that is taken, 0.1 to 1.3: below 1 the motion is spread
            over more joints, above 1 it overshoots (Kenwright 2012, section 8).
        step_feedback: 0 to 1, how much of what `step_fraction` differs from 1 is taken back as the error
            falls: 1 lets the steps become exact near the target (Kenwright 2012, section 8).
        stall_threshold: an iteration that moves no effector along an arc of more than this part of the
            chain's reach counts as no progress (Juckett's trivial arc).
        comfort: whether the joints' comfort tolerances and regions are used.

    Raises:
        InvalidInput: names the field and what would be right.
    """

    max_iterations: int = 300
    position_tolerance: float = 1e-4
    angle_tolerance: float = 1e-3
    sweep: Sweep = Sweep.ROOT_TO_TIP
    step_fraction: float = 0.8
    step_feedback: float = 0.0
    stall_threshold: float = 1e-6
    comfort: bool = True

    def __post_init__(self) -> None:
        if self.max_iterations < 1:
            raise InvalidInput(f"max_iterations must be 1 or more, not {self.max_iterations}")
        if not isinstance(self.sweep, Sweep):
            raise InvalidInput(
                f"sweep must be one of {', '.join(each.name for each in Sweep)}, not {self.sweep!r}"
            )
        for name, lower, upper in (
            ("position_tolerance", 0.0, math.inf),
            ("angle_tolerance", 0.0, math.inf),
            ("step_fraction", *STEP_RANGE),
            ("step_feedback", 0.0, 1.0),
            ("stall_threshold", 0.0, 1.0),
        ):
            value = getattr(self, name)
            if not (math.isfinite(value) and lower <= value <= upper) or (
                value == 0.0 and name.endswith("tolerance")
            ):
                allowed = f"{lower:g} to {upper:g}" if math.isfinite(upper) else f"above {lower:g}"
                raise InvalidInput(f"{name} must be {allowed}, not {value:g}")


@dataclass(frozen=True)
class SolveResult:
    """What a solve found.

    Attributes:
        pose: the best pose seen, inside all limits.
        status: how the solve ended (inside `iterate`: ITERATION_LIMIT until the last item).
        iterations: passes over the joints so far.
        errors: how far off each goal is in `pose`, in the order of the goals.
    """

    pose: Pose
    status: SolveStatus
    iterations: int
    errors: tuple[GoalError, ...]


def solve(
    skeleton: Skeleton, pose: Pose, goals: Sequence[Goal], settings: SolverSettings | None = None
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

    Raises:
        InvalidInput: names what is wrong with the input.
    """
    body = Body(skeleton, pose, goals)
    found = _Progress(body)
    run = _run(body, found, settings or SolverSettings())
    while True:
        try:
            next(run)
        except StopIteration as end:
            return _result(body, found, end.value)


def iterate(
    skeleton: Skeleton, pose: Pose, goals: Sequence[Goal], settings: SolverSettings | None = None
) -> Iterator[SolveResult]:
    """Like `solve`, one item per iteration: to show it, to cancel it, or to spread it over frames.

    Every item holds the best pose so far; the last one equals what `solve` returns.
    """
    body = Body(skeleton, pose, goals)
    found = _Progress(body)
    run = _run(body, found, settings or SolverSettings())
    while True:
        try:
            next(run)
        except StopIteration as end:
            yield _result(body, found, end.value)
            return
        yield _result(body, found, SolveStatus.ITERATION_LIMIT)


class _Progress:
    """The best pose of one solve so far, and how long it took."""

    def __init__(self, body: Body) -> None:
        self.rotations: list[Quaternion] = list(body.rotations)
        self.slides: list[float] = list(body.slides)
        self.error = math.inf
        self.iterations = 0
        self.history: list[float] = []
        self.caps: dict[int, GoalError] = {}

    def begin(self, gain: float = 0.0) -> None:
        """A new stage: what was best under other limits or for other goals does not count any more.

        With a `gain` the stage goes on from here, but only a pose that is nearer by as much counts.
        """
        self.error = max(0.0, math.sqrt(self.error) - gain) ** 2 if gain else math.inf
        self.history = []

    def note(self, body: Body, goals: Sequence[int]) -> list[GoalError]:
        """Keeps the body's pose if it is the best so far for these goals; returns how far off each of them
        is."""
        errors = [body.views[k].error() for k in goals]
        error = math.fsum(body.views[k].square() for k in goals)
        if error < self.error and self.holds_caps(body):
            self.error = error
            self.rotations = list(body.rotations)
            self.slides = list(body.slides)
        self.history.append(self.error)
        return errors

    def holds_caps(self, body: Body) -> bool:
        """Whether goals that are served first are as near as they were."""
        for k, cap in self.caps.items():
            error = body.views[k].error()
            if error.distance > cap.distance or error.angle > cap.angle:
                return False
        return True

    def slow(self) -> bool:
        """Whether the last SLOW_WINDOW iterations won next to nothing. Errors are squared distances."""
        if len(self.history) <= SLOW_WINDOW:
            return False
        return self.error >= self.history[-1 - SLOW_WINDOW] * (1.0 - SLOW_GAIN) ** 2


def _result(body: Body, found: _Progress, status: SolveStatus) -> SolveResult:
    pose = body.pose(found.rotations, found.slides)
    transforms = forward_kinematics(body.skeleton, pose)
    errors = tuple(measure(view.goal, body.skeleton, transforms) for view in body.views)
    return SolveResult(pose, status, found.iterations, errors)


def _run(body: Body, found: _Progress, settings: SolverSettings) -> Generator[None, None, SolveStatus]:
    """Runs the solve; pauses between iterations and returns how it ended."""
    tolerances = [_tolerance(joint) if settings.comfort else 0.0 for joint in body.joints]
    if settings.comfort and any(_region(body.joints[i]) is not None for i in body.movable):
        # The preferred region is left only if the goals cannot be met within it: first it is taken for the
        # limit.
        body.confine([_region(joint) or joint.limit for joint in body.joints], tolerances)
        enter_windows(body)
        status = yield from _priorities(body, found, settings)
        if status is SolveStatus.CONVERGED or found.iterations >= settings.max_iterations:
            return status
        body.activate(range(len(body.views)))
        body.restore(found.rotations, found.slides)
        yield
    body.confine([joint.limit for joint in body.joints], tolerances)
    enter_windows(body)
    return (yield from _priorities(body, found, settings))


def _tolerance(joint: Joint) -> float:
    return joint.comfort.tolerance if joint.comfort is not None else 0.0


def _region(joint: Joint) -> Limit | None:
    return joint.comfort.region if joint.comfort is not None else None


def _priorities(body: Body, found: _Progress, settings: SolverSettings) -> Generator[None, None, SolveStatus]:
    """Solves the goals in the order of their priority: those served later do not worsen those served before.

    Kenwright 2012, section 9.1: the goal that is updated last wins. Here each later group is solved together
    with those before it, which then get the last word; poses in which they are not as near as before do not
    count.
    """
    numbers = sorted({view.goal.priority for view in body.views})
    found.caps = {}
    status = SolveStatus.CONVERGED
    met = True
    for number in numbers:
        group = [k for k, view in enumerate(body.views) if view.goal.priority <= number]
        body.activate(group)
        if number != numbers[0]:
            if found.iterations >= settings.max_iterations:
                return SolveStatus.ITERATION_LIMIT
            body.restore(found.rotations, found.slides)
        status = yield from _stage(body, found, settings, group)
        met = met and status is SolveStatus.CONVERGED
        if number != numbers[-1]:
            body.restore(found.rotations, found.slides)
            for k in group:
                error = body.views[k].error()
                found.caps[k] = GoalError(
                    max(error.distance + 0.1 * settings.position_tolerance, settings.position_tolerance),
                    max(error.angle + 0.1 * settings.angle_tolerance, settings.angle_tolerance),
                )
    body.restore(found.rotations, found.slides)
    if all(_met(view.error(), settings) for view in body.views):
        return SolveStatus.CONVERGED
    return SolveStatus.STALLED if status is SolveStatus.CONVERGED else status


def _stage(
    body: Body, found: _Progress, settings: SolverSettings, goals: Sequence[int]
) -> Generator[None, None, SolveStatus]:
    """Iterations for some of the goals inside one set of limits."""
    tolerance = settings.position_tolerance
    found.begin()
    errors = found.note(body, goals)
    if all(_met(error, settings) for error in errors):
        return SolveStatus.CONVERGED
    if not body.movable:
        return SolveStatus.STALLED
    bounds = [bound(body, k) for k in goals]
    scale = max(reach(body, k) for k in goals)
    if max(bounds) > tolerance:
        stretch(body)
        found.iterations += 1
        errors = found.note(body, goals)
        if _at_bounds(errors, bounds, settings):
            return SolveStatus.STALLED
        body.restore(found.rotations, found.slides)
    # Near the end steps are parts of the tolerance: they must not pass for trivial.
    trivial = min(settings.stall_threshold * scale, 0.02 * tolerance)
    start = math.sqrt(found.error)
    nudged = False
    while found.iterations < settings.max_iterations:
        longest = _iteration(
            body, settings, found.iterations, _fraction(settings, math.sqrt(found.error), start)
        )
        if found.caps:
            _last_word(body, found, settings)
        found.iterations += 1
        errors = found.note(body, goals)
        if all(_met(error, settings) for error in errors) and found.holds_caps(body):
            return SolveStatus.CONVERGED
        if _at_bounds(errors, bounds, settings):
            return SolveStatus.STALLED
        if longest <= trivial or found.slow():
            if nudged:
                return SolveStatus.STALLED
            found.begin(gain=tolerance)
            body.restore(found.rotations, found.slides)
            body.nudge(body.movable)
            nudged = True
        yield
    return SolveStatus.ITERATION_LIMIT


def _iteration(body: Body, settings: SolverSettings, iteration: int, fraction: float) -> float:
    """One pass over the joints; returns the longest way that an effector was moved by one step."""
    only = body.views[0] if len(body.views) == 1 and isinstance(body.views[0], PositionView) else None
    # Carrying rounds a little: stop a little inside the tolerance, so that the rebuilt pose is inside it too.
    enough = (0.9 * settings.position_tolerance) ** 2
    longest = 0.0
    for i in visits(settings.sweep, body.movable, iteration, body):
        longest = max(longest, body.step(i, fraction))
        # Kenwright 2012, listings 1 to 4: done as soon as the target is reached, later joints stay as they
        # are.
        if only is not None and (only.effector - only.target).length_squared <= enough:
            break
    body.rebuild()
    return longest


def _fraction(settings: SolverSettings, error: float, start: float) -> float:
    """Kenwright 2012, section 8: the part of a step beside 1 is fed back from the error, and clamped."""
    beside = settings.step_fraction - 1.0
    if settings.step_feedback > 0.0 and start > 0.0:
        beside *= 1.0 - settings.step_feedback * (1.0 - min(1.0, error / start))
    return min(max(1.0 + beside, STEP_RANGE[0]), STEP_RANGE[1])


def _last_word(body: Body, found: _Progress, settings: SolverSettings) -> None:
    """Iterations for the goals that are served first, until they are as near as before."""
    every = [k for k in range(len(body.views)) if body.views[k] in _served(body)]
    body.activate(list(found.caps))
    for iteration in range(LAST_WORD):
        if found.holds_caps(body):
            break
        _iteration(body, settings, iteration, 1.0)
    body.activate(every)


def _served(body: Body) -> list[View]:
    return [view for views in body.serves for view in views]


def even_fraction(joints: int, share: float) -> float:
    """The part of each joint's step with which one pass over so many joints takes `share` of the way (0 to
    1).

    After n steps of a part f about (1 - f)^n of the way is left: f = 1 - (1 - share)^(1/n), inside
    `STEP_RANGE`. Shared out so, long chains bend evenly; with large steps the first joints take it all, and
    the rest of the chain coils."""
    return min(max(1.0 - (1.0 - share) ** (1.0 / max(joints, 1)), STEP_RANGE[0]), STEP_RANGE[1])


def _met(error: GoalError, settings: SolverSettings) -> bool:
    return error.distance <= settings.position_tolerance and error.angle <= settings.angle_tolerance


def _at_bounds(errors: Sequence[GoalError], bounds: Sequence[float], settings: SolverSettings) -> bool:
    """Whether no goal can come any nearer."""
    return all(
        error.distance <= bound + settings.position_tolerance and error.angle <= settings.angle_tolerance
        for error, bound in zip(errors, bounds, strict=True)
    )
