"""One frame solved: from what was evaluated to a pose, and how each constraint stands in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mathutils import Vector

from ...errors import RigError
from ...goals import Goal, GoalError, measure
from ...settings import Solver, SolveResult, SolverSettings, SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import Transform, forward_kinematics
from ...skeleton.pose import Pose
from ...skeleton.pose_library import PoseEntry
from ...solvers.analytic.single_pass import inside_limits
from ...solvers.problem_tables import serving_joints
from ...solvers.solve import solve
from ..properties.constraint_values import Constraint, Kind
from ..scene.evaluation import FrameSample
from .balance import rotate_model
from .constraint_goals import chain_joints, goals
from .grouping import groups
from .level_models import group_level, level_model
from .methods import SINGLE_PASS, solve_once
from .planting import ContactState
from .world_scale import scale


@dataclass(frozen=True)
class Solution:
    """A solved frame.

    Attributes:
        pose: of all joints, at full influence.
        active: indices of the constraints with an influence above 0.
        result: the solve, with one error per active constraint: the largest distance and the largest angle
            that its goals are off; None where no constraint is active, and the pose is the base pose.
        states: how each active constraint ended: CONVERGED if all its goals are met.
        contact_state: how the figure stands, where bones are planted.
    """

    pose: Pose
    active: tuple[int, ...]
    result: SolveResult | None
    states: tuple[str, ...]
    contact_state: ContactState | None = None

    @property
    def reached(self) -> bool:
        """Whether all active constraints are met."""
        return all(state == SolveStatus.CONVERGED.name for state in self.states)


def base_pose(sample: FrameSample) -> Pose:
    """The evaluated pose of the chains."""
    return sample.reading.pose


@dataclass(frozen=True)
class FrameSolveSettings:
    """How every frame of a bake is solved.

    Attributes:
        solver: position tolerance in world metres.
        error_reduction: `SolverSettings.error_reduction` of each solve; None: the solver's own step.
        poses: the pose library; entries for other bones are left out.
        reference: the reference pose of a frame; None: it has none.
        smoothness: what changes from frame to frame count, see `solvers.motion`.
    """

    solver: SolverSettings
    error_reduction: float | None
    poses: Sequence[PoseEntry] = ()
    reference: Callable[[FrameSample], Pose | None] = base_pose
    smoothness: float = 0.0


@dataclass(frozen=True)
class FrameConditions:
    """What is special about one frame.

    Attributes:
        settings: what holds for every frame.
        solver: position tolerance in the frame's armature space.
        reference: the pose that joints stay near to; None: they need not.
        follows: whether the start is the solved pose of the frame before.
        retry: whether a frame that is not reached is solved on with the solver's own steps and from other
            starts.
    """

    settings: FrameSolveSettings
    solver: SolverSettings
    reference: Pose | None
    follows: bool
    retry: bool = True


def solve_frame(
    sample: FrameSample,
    constraints: Sequence[Constraint],
    settings: FrameSolveSettings,
    before: Solution | None,
) -> Solution:
    """Solve one frame, from the solution of the frame before where there is one.

    Other starts (`restarts`) are tried only where the frame is not reached from there. Where a frame
    before is followed, they count only if they reach it: a chain should not jump for less.

    Args:
        sample: the frame.
        constraints: one for each of the sample's aims.
        settings: how frames are solved.
        before: of the frame before.

    Raises:
        RigError: a scale of 0, or a constraint that asks for what its chain cannot do.
    """
    skeleton, base = sample.reading.skeleton, sample.reading.pose
    active = sample.active
    if not active:
        return Solution(base, (), None, ())
    start, follows = base, False
    # At the first frame of a constraint there is no solved pose to follow yet.
    if before is not None and set(active) <= set(before.active):
        moved = {j for c in active for j in chain_joints(skeleton, constraints[c])}
        start, follows = continue_from(skeleton, base, before.pose, moved), True
    conditions = frame_conditions(sample, settings, follows)
    result, states = solve_active(sample, constraints, active, start, conditions)
    return Solution(result.pose, active, result, states)


def frame_conditions(
    sample: FrameSample, settings: FrameSolveSettings, follows: bool, retry: bool = True
) -> FrameConditions:
    """What is special about a frame; see `FrameConditions` for the arguments."""
    world = settings.solver
    solver = with_tolerances(world, world.position_tolerance / scale(sample), world.angle_tolerance)
    return FrameConditions(settings, solver, settings.reference(sample), follows, retry)


@lru_cache(maxsize=16)
def with_tolerances(settings: SolverSettings, position: float, angle: float) -> SolverSettings:
    """Settings with other tolerances; most frames of a shot share them."""
    return replace(settings, position_tolerance=position, angle_tolerance=angle)


@lru_cache(maxsize=16)
def _alone(settings: SolverSettings, error_reduction: float | None) -> SolverSettings:
    """Settings of a solve from one start only, with shared steps if `error_reduction` is given."""
    alone = replace(settings, restarts=0)
    return alone if error_reduction is None else replace(alone, error_reduction=error_reduction)


def solve_active(
    sample: FrameSample,
    constraints: Sequence[Constraint],
    active: Sequence[int],
    start: Pose,
    conditions: FrameConditions,
    sharper: float = 1.0,
) -> tuple[SolveResult, tuple[str, ...]]:
    """Solve the active constraints from a start; the result, and how each of them ended.

    `sharper` is the part of the tolerances that is solved to; they are judged by the whole of them.
    """
    solver, sharp = conditions.solver, conditions
    if sharper != 1.0:
        position, angle = sharper * solver.position_tolerance, sharper * solver.angle_tolerance
        sharp = replace(conditions, solver=with_tolerances(solver, position, angle))
    result, statuses = _solve_apart(sample, constraints, active, start, sharp)
    states = tuple(
        SolveStatus.CONVERGED.name if solver.in_tolerances(error) <= 1.0 else status.name
        for error, status in zip(result.errors, statuses, strict=True)
    )
    return result, states


def continue_from(skeleton: Skeleton, base: Pose, before: Pose, joints: Iterable[int]) -> Pose:
    """The base pose with these joints as they were before."""
    rotations, translations = list(base.rotations), list(base.translations)
    for j in joints:
        rotations[j] = before.rotations[j]
        for slide in skeleton.joints[j].slides:
            axis = Vector(slide.axis)
            along = axis.dot(before.translations[j]) - axis.dot(base.translations[j])
            translations[j] = (translations[j] + along * axis).freeze()
    return Pose.trusted(tuple(rotations), tuple(translations))  # all parts come out of poses


def _solve_apart(
    sample: FrameSample,
    constraints: Sequence[Constraint],
    active: Sequence[int],
    start: Pose,
    conditions: FrameConditions,
) -> tuple[SolveResult, list[SolveStatus]]:
    """Solve groups of constraints one after the other, and say how each one's solve ended.

    In one solve a hand out of reach would end the solve of the feet before they stand.
    """
    skeleton = sample.reading.skeleton
    pose, iterations = start, 0
    errors: dict[int, GoalError] = {}
    statuses: dict[int, SolveStatus] = {}
    for joints, members in groups(skeleton, constraints, active):
        group = {c: constraints[c] for c in members}
        result, group_errors = _solve_group(sample, group, joints, pose, conditions)
        pose, iterations = result.pose, max(iterations, result.iterations)
        errors |= group_errors
        statuses |= dict.fromkeys(members, result.status)
    status = next((s for s in statuses.values() if s is not SolveStatus.CONVERGED), SolveStatus.CONVERGED)
    result = SolveResult(pose, status, iterations, tuple(errors[c] for c in active))
    return result, [statuses[c] for c in active]


def _solve_group(
    sample: FrameSample,
    constraints: dict[int, Constraint],
    joints: set[int],
    start: Pose,
    conditions: FrameConditions,
) -> tuple[SolveResult, dict[int, GoalError]]:
    """Solve constraints together; also how far off each of them is."""
    level_group = level_model(sample, constraints, joints, start)
    skeleton, model, group_goals = sample.reading.skeleton, level_group.skeleton, level_group.goals
    reaching = [each for each in constraints.values() if each.kind is not Kind.PLANT]
    chains = {j for each in reaching for j in chain_joints(skeleton, each)}
    # Chains that stand on what serves no goal count on its limits.
    unmoved = chains.difference(*serving_joints(model, group_goals))
    pose = inside_limits(model, level_group.pose, sorted(unmoved))
    alone = next((c for c, constraint in constraints.items() if constraint.method in SINGLE_PASS), None)
    if alone is None:
        bones = {skeleton.joints[j].name for j in joints}
        entries = [entry for entry in conditions.settings.poses if bones & entry.rotations.keys()]
        result = _solve_with_restarts(model, pose, group_goals, entries, conditions)
    else:
        if len(constraints) > 1:
            other = next(constraint.name for c, constraint in constraints.items() if c != alone)
            raise RigError(
                f"Constraint '{constraints[alone].name}' poses its bones alone, but '{other}' moves them "
                "too: shorten a chain, or set Method to Loop"
            )
        result = solve_once(model, pose, constraints[alone], sample.targets[alone], conditions.solver)
    errors = {
        c: GoalError.largest(
            error for k, error in zip(level_group.owners, result.errors, strict=True) if k == c
        )
        for c in constraints
    }
    return replace(result, pose=level_group.back(result.pose)), errors


def errors_of(sample: FrameSample, constraints: Sequence[Constraint], pose: Pose) -> tuple[GoalError, ...]:
    """How far off each active constraint is in a pose: the largest of its goals' distances and angles."""
    errors, posed = [], dict[tuple[float, ...], tuple[Skeleton, Sequence[Transform]]]()
    for c in sample.active:
        rotation = group_level(sample.matrix_world, [constraints[c]])
        if rotation[:] not in posed:
            model, rotated = rotate_model(sample.reading.skeleton, pose, rotation)
            posed[rotation[:]] = model, forward_kinematics(model, rotated)
        model, transforms = posed[rotation[:]]
        asked = goals(model, constraints[c], sample.targets[c].rotated(rotation))
        errors.append(GoalError.largest(measure(goal, model, transforms) for goal in asked))
    return tuple(errors)


def _solve_with_restarts(
    skeleton: Skeleton,
    start: Pose,
    group_goals: Sequence[Goal],
    entries: Sequence[PoseEntry],
    conditions: FrameConditions,
) -> SolveResult:
    """Solve from where the chain is, and only then from other starts."""
    solver, follows = conditions.solver, conditions.follows
    if conditions.settings.error_reduction is None and not follows:
        return solve(
            skeleton, start, group_goals, solver, entries
        )  # the solver's own steps: it does the same
    first = _solve_smooth(skeleton, start, group_goals, conditions)
    if first.status is SolveStatus.CONVERGED or solver.restarts == 0 or not conditions.retry:
        return first
    # It stalls at once where the first one ended, and goes on with the other starts.
    near = conditions.reference if solver.solver is Solver.CCD else None
    second = solve(skeleton, first.pose, group_goals, solver, entries, near)
    second = replace(second, iterations=first.iterations + second.iterations)
    if second.status is SolveStatus.CONVERGED:
        return second
    return first if follows else _nearer(first, second, group_goals, solver)


def _solve_smooth(
    skeleton: Skeleton, start: Pose, group_goals: Sequence[Goal], conditions: FrameConditions
) -> SolveResult:
    """Solve with steps shared out over the joints; where they do not arrive, go on with the solver's own.

    The second solve counts only if it wins more than the tolerance: a target out of reach would otherwise
    make the chain jump for nothing. Without an error reduction there is just the solver's own step.
    """
    error_reduction, own_steps = conditions.settings.error_reduction, _alone(conditions.solver, None)
    if error_reduction is None:
        return solve(skeleton, start, group_goals, own_steps)
    shared_steps = _alone(conditions.solver, error_reduction)
    first = solve(skeleton, start, group_goals, shared_steps, reference=conditions.reference)
    # Near a reference CCD has taken its own steps too, but for goals that are served after others.
    ended = conditions.solver.solver is Solver.CCD and len({goal.priority for goal in group_goals}) == 1
    if first.status is SolveStatus.CONVERGED or shared_steps == own_steps or not conditions.retry or ended:
        return first
    second = solve(skeleton, first.pose, group_goals, own_steps)
    if second.status is SolveStatus.CONVERGED:
        return second
    return _nearer(first, second, group_goals, own_steps)


def _nearer(
    first: SolveResult, second: SolveResult, group_goals: Sequence[Goal], solver: SolverSettings
) -> SolveResult:
    """The second result if it wins more than the tolerance, what is served first before the rest."""
    for priority in sorted({goal.priority for goal in group_goals}):
        served = [k for k, goal in enumerate(group_goals) if goal.priority == priority]
        before, after = (
            max(solver.in_tolerances(result.errors[k]) for k in served) for result in (first, second)
        )
        if abs(before - after) > 1.0:
            return second if before > after else first
    return first
