"""One frame solved: from what was evaluated to a pose, and how each constraint stands in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from mathutils import Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...goals import Goal, GoalError, measure
from ...settings import Solver, SolveResult, SolverSettings, SolveStatus
from ...skeleton.joints import Skeleton, shift_of, slides_of
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from ...skeleton.pose_library import PoseEntry
from ...solvers.solve import solve
from ..properties.constraint_values import Constraint
from ..scene.evaluation import FrameSample
from .balance import level, rotate_back, rotate_model
from .constraint_goals import chain_joints, goals
from .methods import SINGLE_PASS, solve_once
from .planting import ContactState


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


class ShotSolveSettings(NamedTuple):
    """How the frames of a shot are solved.

    Attributes:
        solver: position tolerance in world metres.
        error_reduction: `SolverSettings.error_reduction` of each solve; None: the solver's own step.
        poses: the pose library; entries for other bones are left out.
        reference: the pose to which joints go back where a frame leaves them room.
        patient: whether a frame that is not reached is solved on with the solver's own steps and from other
            starts.
    """

    solver: SolverSettings
    error_reduction: float | None
    poses: Sequence[PoseEntry] = ()
    reference: Callable[[FrameSample], Pose | None] = base_pose
    patient: bool = True


@dataclass(frozen=True)
class FrameSolveSettings:
    """How one frame is solved: settings with the position tolerance in armature space, and see
    `ShotSolveSettings`.

    Attributes:
        follows: whether the start is the solved pose of the frame before.
        reference: where joints go back to; None: they do not.
        patient: see `ShotSolveSettings`.
    """

    settings: SolverSettings
    error_reduction: float | None
    follows: bool
    poses: tuple[PoseEntry, ...]
    reference: Pose | None
    patient: bool


def solve_frame(
    sample: FrameSample, constraints: Sequence[Constraint], recipe: ShotSolveSettings, before: Solution | None
) -> Solution:
    """Solve one frame, from the solution of the frame before where there is one.

    Other starts (`restarts`) are tried only where the frame is not reached from there. Where a frame
    before is followed, they count only if they reach it: a chain should not jump for less.

    Args:
        sample: the frame.
        constraints: one for each of the sample's aims.
        recipe: how.
        before: of the frame before.

    Raises:
        RigError: a scale of 0, or a constraint that asks for what its chain cannot do.
    """
    skeleton, base = sample.reading.skeleton, sample.reading.pose
    active = tuple(c for c, influence in enumerate(sample.influences) if influence > 0.0)
    if not active:
        return Solution(base, (), None, ())
    start, follows = base, False
    # At the first frame of a constraint there is no solved pose to follow yet.
    if before is not None and set(active) <= set(before.active):
        moved = {j for c in active for j in chain_joints(skeleton, constraints[c])}
        start, follows = following(skeleton, base, before.pose, moved), True
    how = frame_settings(sample, recipe, follows)
    result, states = solve_active(sample, constraints, active, start, how)
    return Solution(result.pose, active, result, states)


def frame_settings(sample: FrameSample, recipe: ShotSolveSettings, follows: bool) -> FrameSolveSettings:
    """How a frame is solved, with the tolerance in its own armature space."""
    solver = recipe.solver
    here = with_tolerances(solver, solver.position_tolerance / scale(sample), solver.angle_tolerance)
    return FrameSolveSettings(
        here, recipe.error_reduction, follows, tuple(recipe.poses), recipe.reference(sample), recipe.patient
    )


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
    how: FrameSolveSettings,
    sharper: float = 1.0,
) -> tuple[SolveResult, tuple[str, ...]]:
    """Solve the active constraints from a start; the result, and how each of them ended.

    `sharper` is the part of the tolerances that is solved to; they are judged by the whole of them.
    """
    sharp = how
    if sharper != 1.0:
        near, turn = sharper * how.settings.position_tolerance, sharper * how.settings.angle_tolerance
        sharp = replace(how, settings=replace(how.settings, position_tolerance=near, angle_tolerance=turn))
    result, statuses = _solve_apart(sample, constraints, active, start, sharp)
    states = tuple(
        SolveStatus.CONVERGED.name if _off(error, how.settings) <= 1.0 else status.name
        for error, status in zip(result.errors, statuses, strict=True)
    )
    return result, states


def following(skeleton: Skeleton, base: Pose, before: Pose, joints: Iterable[int]) -> Pose:
    """The base pose with these joints as they were before."""
    rotations, translations = list(base.rotations), list(base.translations)
    for j in joints:
        rotations[j] = before.rotations[j]
        for slide in skeleton.joints[j].slides:
            axis = Vector(slide.axis)
            along = axis.dot(before.translations[j]) - axis.dot(base.translations[j])
            translations[j] = (translations[j] + along * axis).freeze()
    return Pose.trusted(tuple(rotations), tuple(translations))  # all parts come out of poses


def departed(
    skeleton: Skeleton, base: Pose, before: tuple[Pose, Pose], reference: Pose, joints: Iterable[int]
) -> Pose:
    """The base pose with these joints as far from `reference` as they were before from theirs.

    `before` are a reference pose and the pose that was solved near to it. Where the reference has not changed
    joints keep the very bits of the pose before.
    """
    old, solved = before
    rotations, translations = list(base.rotations), list(base.translations)
    for j in joints:
        if reference.rotations[j] == old.rotations[j]:
            rotations[j] = solved.rotations[j]
        else:
            departure = old.rotations[j].conjugated() @ solved.rotations[j]
            rotations[j] = (reference.rotations[j] @ departure).normalized().freeze()
        joint = skeleton.joints[j]
        if joint.slides:
            shift = solved.translations[j] - old.translations[j]
            wanted = reference.translations[j] + shift - base.translations[j]
            along = shift_of(joint, slides_of(joint, wanted))
            translations[j] = (base.translations[j] + along).freeze()
    return Pose.trusted(tuple(rotations), tuple(translations))  # all parts come out of poses


def _solve_apart(
    sample: FrameSample,
    constraints: Sequence[Constraint],
    active: Sequence[int],
    start: Pose,
    how: FrameSolveSettings,
) -> tuple[SolveResult, list[SolveStatus]]:
    """Solve groups of constraints one after the other, and say how each one's solve ended.

    In one solve a hand out of reach would end the solve of the feet before they stand.
    """
    skeleton = sample.reading.skeleton
    pose, iterations = start, 0
    errors: dict[int, GoalError] = {}
    statuses: dict[int, SolveStatus] = {}
    for joints, members in groups(skeleton, constraints, active):
        rows = {c: constraints[c] for c in members}
        result, found = _solve_group(sample, rows, joints, pose, how)
        pose, iterations = result.pose, max(iterations, result.iterations)
        errors |= found
        statuses |= dict.fromkeys(members, result.status)
    status = next((s for s in statuses.values() if s is not SolveStatus.CONVERGED), SolveStatus.CONVERGED)
    result = SolveResult(pose, status, iterations, tuple(errors[c] for c in active))
    return result, [statuses[c] for c in active]


def groups(
    skeleton: Skeleton, constraints: Sequence[Constraint], active: Sequence[int]
) -> list[tuple[set[int], list[int]]]:
    """Joints and indices of the constraints that must be solved together: those with a joint in common.

    Nothing is lost by solving the groups in this order: chains are paths, so of two groups that share no
    joint at most one carries the other, and it comes first. A balance moves with all joints that carry mass.
    """
    found: list[tuple[set[int], list[int]]] = []
    for c in active:
        joints, members = _moved(skeleton, constraints, active, c), [c]
        for group in [group for group in found if group[0] & joints]:
            found.remove(group)
            joints, members = joints | group[0], members + group[1]
        found.append((joints, sorted(members)))
    return sorted(found, key=lambda group: min(group[0]))  # parents come before children


def _moved(skeleton: Skeleton, constraints: Sequence[Constraint], active: Sequence[int], c: int) -> set[int]:
    """Joints that are solved together with constraint `c`."""
    constraint = constraints[c]
    joints = set(chain_joints(skeleton, constraint))
    if constraint.kind == "BALANCE":
        heavy = {j for i, joint in enumerate(skeleton.joints) if joint.mass > 0.0 for j in skeleton.chain(i)}
        joints |= {j for a in active for j in chain_joints(skeleton, constraints[a]) if j in heavy}
    return joints or set(skeleton.chain(constraint.tip, constraint.chain_length))


def _solve_group(
    sample: FrameSample,
    rows: dict[int, Constraint],
    joints: set[int],
    start: Pose,
    how: FrameSolveSettings,
) -> tuple[SolveResult, dict[int, GoalError]]:
    """Solve constraints together; also how far off each of them is."""
    skeleton, turn = sample.reading.skeleton, Quaternion()
    balances = [row for row in rows.values() if row.kind == "BALANCE"]
    if balances:
        turn = level(sample.matrix_world, balances[0].balance_axes)
        for other in balances[1:]:
            if level(sample.matrix_world, other.balance_axes) != turn:
                raise RigError(
                    f"Constraint '{other.name}' balances along other axes than '{balances[0].name}', while "
                    "the armature object is turned: give both the same axes, or clear the object's rotation"
                )
        # A balance moves whatever carries mass and can turn: only these constraints' chains may.
        idle = {joint.name: {"stiffness": 1.0} for j, joint in enumerate(skeleton.joints) if j not in joints}
        skeleton = skeleton.replace(idle)
    model, pose = rotate_model(skeleton, start, turn)
    asked = [
        (c, goal) for c, row in rows.items() for goal in goals(model, row, sample.targets[c].rotated(turn))
    ]
    bones = {skeleton.joints[j].name for j in joints}
    how = replace(how, poses=tuple(entry for entry in how.poses if bones & entry.rotations.keys()))
    wanted = [goal for _, goal in asked]
    alone = next((c for c, row in rows.items() if row.kind == "REACH" and row.method in SINGLE_PASS), None)
    if alone is None:
        result = _solve_patiently(model, pose, wanted, how)
    else:
        if len(rows) > 1:
            also = next(row.name for c, row in rows.items() if c != alone)
            raise RigError(
                f"Constraint '{rows[alone].name}' poses its bones alone, but '{also}' moves them too: "
                "shorten a chain, or set Method to Loop"
            )
        result = solve_once(model, pose, rows[alone], sample.targets[alone], wanted, how.settings)
    errors = {}
    for c in rows:
        own = [error for (k, _), error in zip(asked, result.errors, strict=True) if k == c]
        errors[c] = GoalError(max(error.distance for error in own), max(error.angle for error in own))
    return replace(result, pose=rotate_back(skeleton, result.pose, turn)), errors


def errors_of(sample: FrameSample, constraints: Sequence[Constraint], pose: Pose) -> tuple[GoalError, ...]:
    """How far off each active constraint is in a pose: the largest of its goals' distances and angles."""
    skeleton, found = sample.reading.skeleton, []
    for c, influence in enumerate(sample.influences):
        if influence <= 0.0:
            continue
        row, turn = constraints[c], Quaternion()
        if row.kind == "BALANCE":
            turn = level(sample.matrix_world, row.balance_axes)
        model, turned = rotate_model(skeleton, pose, turn)
        transforms = forward_kinematics(model, turned)
        asked = goals(model, row, sample.targets[c].rotated(turn))
        errors = [measure(goal, model, transforms) for goal in asked]
        found.append(GoalError(max(e.distance for e in errors), max(e.angle for e in errors)))
    return tuple(found)


def _solve_patiently(
    skeleton: Skeleton, start: Pose, wanted: Sequence[Goal], how: FrameSolveSettings
) -> SolveResult:
    """Solve from where the chain is, and only then from other starts."""
    settings = how.settings
    if how.error_reduction is None and not how.follows:  # the solver's own steps: it does the same by itself
        return solve(skeleton, start, wanted, settings, how.poses)
    first = _solve_gently(skeleton, start, wanted, how)
    if first.status is SolveStatus.CONVERGED or settings.restarts == 0 or not how.patient:
        return first
    # It stalls at once where the first one ended, and goes on with the other starts.
    near = how.reference if settings.solver is Solver.CCD else None
    again = solve(skeleton, first.pose, wanted, settings, how.poses, near)
    again = replace(again, iterations=first.iterations + again.iterations)
    if again.status is SolveStatus.CONVERGED:
        return again
    return first if how.follows else _nearer(first, again, wanted, settings)


def _solve_gently(
    skeleton: Skeleton, start: Pose, wanted: Sequence[Goal], how: FrameSolveSettings
) -> SolveResult:
    """Solve with steps shared out over the joints; where they do not arrive, go on with the solver's own.

    The second solve counts only if it wins more than the tolerance: a target out of reach would otherwise
    make the chain jump for nothing. With None there is just the solver's own step.
    """
    settings = _alone(how.settings, None)
    if how.error_reduction is None:
        return solve(skeleton, start, wanted, settings)
    gentle = _alone(how.settings, how.error_reduction)
    first = solve(skeleton, start, wanted, gentle, reference=how.reference)
    # Near a reference CCD has taken its own steps too, but for goals that are served after others.
    ended = settings.solver is Solver.CCD and len({goal.priority for goal in wanted}) == 1
    if first.status is SolveStatus.CONVERGED or gentle == settings or not how.patient or ended:
        return first
    second = solve(skeleton, first.pose, wanted, settings)
    if second.status is SolveStatus.CONVERGED:
        return second
    return _nearer(first, second, wanted, settings)


def _nearer(
    first: SolveResult, second: SolveResult, wanted: Sequence[Goal], settings: SolverSettings
) -> SolveResult:
    """The second result if it wins more than the tolerance, what is served first before the rest."""
    for priority in sorted({goal.priority for goal in wanted}):
        served = [k for k, goal in enumerate(wanted) if goal.priority == priority]
        won = max(_off(first.errors[k], settings) for k in served) - max(
            _off(second.errors[k], settings) for k in served
        )
        if abs(won) > 1.0:
            return second if won > 0.0 else first
    return first


def _off(error: GoalError, settings: SolverSettings) -> float:
    """How far off, in tolerances."""
    return max(error.distance / settings.position_tolerance, error.angle / settings.angle_tolerance)


def scale(sample: FrameSample) -> float:
    """World metres per unit of armature space, along the axis that is stretched most.

    A tolerance divided by it is never looser than the one in world metres, whatever the scale and shear.
    """
    largest = _largest_stretch(tuple(map(tuple, sample.matrix_world.to_3x3())))
    if not (np.isfinite(largest) and largest > 0.0):
        raise RigError(f"frame {sample.frame:g}: the armature object has a scale of 0: give it another scale")
    return largest


def scales(samples: Sequence[FrameSample]) -> NDArray[np.float64]:
    """The same for many frames; of those that share a matrix it is worked out once."""
    found: list[float] = []
    for k, sample in enumerate(samples):
        same = k > 0 and sample.matrix_world is samples[k - 1].matrix_world
        found.append(found[-1] if same else scale(sample))
    return np.array(found)


@lru_cache(maxsize=16)
def _largest_stretch(rows: tuple[tuple[float, ...], ...]) -> float:
    """The spectral norm of a 3x3 matrix; most armature objects keep theirs."""
    return float(np.linalg.norm(np.array(rows), ord=2))
