"""The loop: visit joints in an order, take each one's best step, stop when the goals are met or nothing is won."""

from __future__ import annotations

import enum
import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from mathutils import Quaternion

from .errors import InvalidInput
from .goals import Goal, GoalError, measure
from .limits import Limit
from .skeleton import Joint, Pose, Skeleton, forward_kinematics
from .reach import bound, reach, stretch
from .steps import Body
from .sweeps import Sweep, visits

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
        position_tolerance: a position goal is met when its effector is this near to the target, in the model's unit.
        sweep: the order in which joints are visited.
        step_fraction: part of each joint's best step that is taken, 0.1 to 1.3: below 1 the motion is spread over more
            joints, above 1 it overshoots (Kenwright 2012, section 8).
        stall_threshold: an iteration that moves no effector along an arc of more than this part of the chain's reach
            counts as no progress (Juckett's trivial arc).
        comfort: whether the joints' comfort tolerances and regions are used.

    Raises:
        InvalidInput: names the field and what would be right.
    """

    max_iterations: int = 300
    position_tolerance: float = 1e-4
    sweep: Sweep = Sweep.ROOT_TO_TIP
    step_fraction: float = 0.8
    stall_threshold: float = 1e-6
    comfort: bool = True

    def __post_init__(self) -> None:
        if self.max_iterations < 1:
            raise InvalidInput(f"max_iterations must be 1 or more, not {self.max_iterations}")
        if not isinstance(self.sweep, Sweep):
            raise InvalidInput(f"sweep must be one of {', '.join(each.name for each in Sweep)}, not {self.sweep!r}")
        for name, lower, upper in (
            ("position_tolerance", 0.0, math.inf),
            ("step_fraction", 0.1, 1.3),
            ("stall_threshold", 0.0, 1.0),
        ):
            value = getattr(self, name)
            if not (math.isfinite(value) and lower <= value <= upper) or (name == "position_tolerance" and value == 0.0):
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

    Only joints of the goals' chains are turned; those that start outside their limit are brought inside it first.
    The same input gives the same result to the bit. A target out of reach is a status, never an exception.

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
            return _result(body, found, pose, end.value)


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
            yield _result(body, found, pose, end.value)
            return
        yield _result(body, found, pose, SolveStatus.ITERATION_LIMIT)


class _Progress:
    """The best pose of one solve so far, and how long it took."""

    def __init__(self, body: Body) -> None:
        self.rotations: list[Quaternion] = list(body.rotations)
        self.error = math.inf
        self.iterations = 0
        self.history: list[float] = []

    def begin(self) -> None:
        """A new stage: what was best under other limits does not count any more."""
        self.error = math.inf
        self.history = []

    def begin_again(self, gain: float) -> None:
        """After a nudge only a pose that is nearer by at least `gain` counts: a different one as far off is no gain."""
        self.error = max(0.0, math.sqrt(self.error) - gain) ** 2
        self.history = []

    def note(self, body: Body) -> list[float]:
        """Keeps the body's pose if it is the best so far; returns each goal's distance in it."""
        distances = body.distances()
        error = sum(w * d * d for w, d in zip(body.weights, distances, strict=True))
        if error < self.error:
            self.error = error
            self.rotations = list(body.rotations)
        self.history.append(self.error)
        return distances

    def slow(self) -> bool:
        """Whether the last SLOW_WINDOW iterations won next to nothing. Errors are squared distances."""
        if len(self.history) <= SLOW_WINDOW:
            return False
        return self.error > self.history[-1 - SLOW_WINDOW] * (1.0 - SLOW_GAIN) ** 2


def _result(body: Body, found: _Progress, start: Pose, status: SolveStatus) -> SolveResult:
    pose = Pose.trusted(tuple(rotation.freeze() for rotation in found.rotations), start.translations)
    transforms = forward_kinematics(body.skeleton, pose)
    errors = tuple(measure(goal, body.skeleton, transforms) for goal in body.goals)
    return SolveResult(pose, status, found.iterations, errors)


def _run(body: Body, found: _Progress, settings: SolverSettings) -> Generator[None, None, SolveStatus]:
    """Runs the solve; pauses between iterations and returns how it ended."""
    tolerances = [_tolerance(joint) if settings.comfort else 0.0 for joint in body.joints]
    if settings.comfort and any(_region(body.joints[i]) is not None for i in body.movable):
        # The preferred region is left only if the goal cannot be met within it: first it is taken for the limit.
        body.confine([_region(joint) or joint.limit for joint in body.joints], tolerances)
        status = yield from _stage(body, found, settings)
        if status is SolveStatus.CONVERGED or found.iterations >= settings.max_iterations:
            return status
        body.restore(found.rotations)
        yield
    body.confine([joint.limit for joint in body.joints], tolerances)
    return (yield from _stage(body, found, settings))


def _tolerance(joint: Joint) -> float:
    return joint.comfort.tolerance if joint.comfort is not None else 0.0


def _region(joint: Joint) -> Limit | None:
    return joint.comfort.region if joint.comfort is not None else None


def _stage(body: Body, found: _Progress, settings: SolverSettings) -> Generator[None, None, SolveStatus]:
    """Iterations inside one set of limits."""
    tolerance = settings.position_tolerance
    found.begin()
    distances = found.note(body)
    if max(distances) <= tolerance:
        return SolveStatus.CONVERGED
    if not body.movable:
        return SolveStatus.STALLED
    bounds = [bound(body, k) for k in range(len(body.goals))]
    scale = max(reach(body, k) for k in range(len(body.goals)))
    if max(bounds) > tolerance:
        stretch(body)
        found.iterations += 1
        distances = found.note(body)
        if _at_bounds(distances, bounds, tolerance):
            return SolveStatus.STALLED
        body.restore(found.rotations)
    order = visits(settings.sweep, body.movable)
    nudged = False
    while found.iterations < settings.max_iterations:
        longest = _iteration(body, order, settings)
        found.iterations += 1
        distances = found.note(body)
        if max(distances) <= tolerance:
            return SolveStatus.CONVERGED
        if _at_bounds(distances, bounds, tolerance):
            return SolveStatus.STALLED
        if longest <= settings.stall_threshold * scale or found.slow():
            if nudged:
                return SolveStatus.STALLED
            found.begin_again(tolerance)
            body.restore(found.rotations)
            body.nudge()
            nudged = True
        yield
    return SolveStatus.ITERATION_LIMIT


def _iteration(body: Body, order: Sequence[int], settings: SolverSettings) -> float:
    """One pass over the joints; returns the longest arc along which an effector was moved."""
    single = len(body.goals) == 1
    target = body.targets[0]
    enough = settings.position_tolerance**2
    fraction = settings.step_fraction
    longest = 0.0
    for i in order:
        longest = max(longest, body.step(i, fraction))
        # Kenwright 2012, listings 1 to 4: done as soon as the target is reached, later joints stay as they are.
        if single and (body.carried[0][0] - target).length_squared <= enough:
            break
    body.rebuild()
    return longest


def _at_bounds(distances: Sequence[float], bounds: Sequence[float], tolerance: float) -> bool:
    """Whether no goal can come any nearer."""
    return all(distance <= bound + tolerance for distance, bound in zip(distances, bounds, strict=True))
