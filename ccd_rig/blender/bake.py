"""The way from constraints to keys: sample, solve, slerp, blend, measure, and write once at the end."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Quaternion, Vector

from .. import sampling
from ..errors import InvalidInput, RigError
from ..goals import GoalError, PositionGoal
from ..sampling import Array
from ..skeleton import Pose, Skeleton
from ..settings import SolveResult, SolverSettings, SolveStatus, even_fraction
from ..solver import solve
from . import armature, channels, checks, evaluation, properties
from .channels import BoneKeys, Destination
from .evaluation import FrameSample
from .properties import Constraint
from .report import SLERPED, BakeReport, Row
from .take import Take, moved_joints


class Keys(enum.Enum):
    """Which frames get keys."""

    EVERY_FRAME = "EVERY_FRAME"
    """Solved ones, and slerps between them; linear between keys."""
    SOLVED_FRAMES = "SOLVED_FRAMES"
    """Only solved ones; Blender interpolates between them (Bezier), and limits hold at the keys."""


@dataclass(frozen=True)
class BakeSettings:
    """What to bake.

    Attributes:
        frame_start: first frame.
        frame_end: last frame, not before the first.
        step: frames from one solve to the next; the last frame is always solved.
        keys: which frames get keys.
        destination: into which action.
        constraints: names of the constraints; empty for all that are enabled.
        share: part of what is left of the way that one pass over a chain's joints takes, shared out evenly
            over them, 0.1 to 0.999: smaller is smoother from frame to frame and slower. A frame that is not
            reached this way goes on with the solver's own step.

    Raises:
        InvalidInput: the range is empty, the step is below 1, or the fraction is not one that the solver
            takes.
    """

    frame_start: int
    frame_end: int
    step: int = 1
    keys: Keys = Keys.EVERY_FRAME
    destination: Destination = Destination.NEW_ACTION
    constraints: tuple[str, ...] = ()
    share: float = 0.97

    def __post_init__(self) -> None:
        known = bpy.types.Scene.bl_rna.properties["frame_current"]
        first, last = known.hard_min, known.hard_max
        if self.frame_start < first or self.frame_end > last:  # it would evaluate its last frame instead
            raise InvalidInput(
                f"frames {self.frame_start} to {self.frame_end}: Blender has frames {first} to {last} only"
            )
        sampling.solve_frames(self.frame_start, self.frame_end, self.step)
        if not 0.1 <= self.share <= 0.999:
            raise InvalidInput(f"share must be 0.1 to 0.999, not {self.share:g}")

    def solved_frames(self) -> list[int]:
        """Frames that are solved."""
        return sampling.solve_frames(self.frame_start, self.frame_end, self.step)

    def keyed_frames(self) -> list[int]:
        """Frames that get keys."""
        if self.keys is Keys.SOLVED_FRAMES:
            return self.solved_frames()
        return list(range(self.frame_start, self.frame_end + 1))


@dataclass(frozen=True)
class Progress:
    """One more frame is solved: `done` of `total`."""

    frame: int
    done: int
    total: int
    reached: bool


def bake(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    settings: BakeSettings,
    progress: Callable[[Progress], None] | None = None,
) -> BakeReport:
    """Solve the constraints over a range of frames and key the result.

    Args:
        scene: where targets and armature are evaluated; its frame and everything in it stay as they are.
        armature_object: carries the constraints.
        settings: what to bake.
        progress: called after each solved frame; may raise to cancel.

    Raises:
        CCDRigError: the set-up cannot be baked, or nothing would be keyed. Nothing has changed then.
    """
    with contextlib.closing(bake_steps(scene, armature_object, settings)) as steps:
        while True:
            try:
                item = next(steps)
            except StopIteration as end:
                report: BakeReport = end.value
                return report
            if progress is not None:
                progress(item)


def bake_steps(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, settings: BakeSettings
) -> Generator[Progress, None, BakeReport]:
    """Like `bake`, an item per solved frame.

    The set-up is checked when the first item is asked for, and everything is written after the last one.
    Close the generator to cancel.
    """
    constraints = checks.require(armature_object, scene, settings.constraints)
    solver = properties.solver_settings(armature_object)
    solved, keyed = settings.solved_frames(), settings.keyed_frames()
    take = None
    with evaluation.frames(scene, armature_object, constraints) as sample_at:
        due = iter(solved)
        following = next(due, None)
        solution = None
        for row, frame in enumerate(keyed):
            sample = sample_at(frame)
            if take is None:
                take = Take.empty(sample, constraints, keyed, solved)
                _refuse_obstacles(armature_object, take, settings)
            take.store(row, sample)
            if frame != following:
                continue
            solution = _solve_frame(sample, constraints, solver, settings.share, solution)
            take.store_solution(solution.pose, dict(zip(solution.active, solution.states, strict=True)))
            following = next(due, None)
            yield Progress(frame, len(take.states), len(solved), solution.reached)
    assert take is not None  # a range is never empty
    rotations, full = take.finish()
    bones = take.keyed_joints()
    if not bones:
        raise RigError(_nothing_to_key(take, settings))
    action = _write(armature_object, take, rotations, bones, settings)
    report = _report(armature_object, action, take, rotations, full, settings, solver)
    properties.store_report(armature_object, report)
    return report


def solve_current(
    depsgraph: bpy.types.Depsgraph,
    armature_object: bpy.types.Object,
    names: Sequence[str] = (),
    settings: SolverSettings | None = None,
) -> tuple[SolveResult, tuple[Constraint, ...]]:
    """Solve the present state and pose the bones accordingly, without keys.

    Args:
        depsgraph: evaluated state to read.
        armature_object: carries the constraints.
        names: of the constraints; empty for all that are enabled.
        settings: position tolerance in world metres; None for the armature's own.

    Returns:
        The solve at full influence, in armature space, and the constraints in the order of its errors: those
        with an influence above 0.

    Raises:
        CCDRigError: the set-up cannot be solved. Nothing has changed then.
    """
    constraints = checks.require(armature_object, depsgraph.scene, names)
    solver = settings or properties.solver_settings(armature_object)
    sample = evaluation.current(depsgraph, armature_object, constraints)
    solution = _solve_frame(sample, constraints, solver, None, None)
    if solution.result is None:
        raise RigError(f"{armature_object.name}: every constraint has influence 0; raise one to solve")
    take = Take.empty(sample, constraints, [0], [0])
    take.store(0, sample)
    take.store_solution(solution.pose, {})
    rotations, _ = take.finish()
    joints = take.keyed_joints()
    pose = sample.reading.pose.with_rotations({j: Quaternion(rotations[0, j]) for j in joints})
    armature.apply(armature_object, sample.reading, pose, joints)
    return solution.result, tuple(constraints[c] for c in solution.active)


# --- one frame ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Solution:
    """A solved frame: the pose of all joints, and how each active constraint stands in it."""

    pose: Pose
    active: tuple[int, ...]
    result: SolveResult | None  # None: no constraint was active, the pose is the base pose
    states: tuple[str, ...]

    @property
    def reached(self) -> bool:
        return all(state == SolveStatus.CONVERGED.name for state in self.states)


def _solve_frame(
    sample: FrameSample,
    constraints: Sequence[Constraint],
    solver: SolverSettings,
    share: float | None,
    before: _Solution | None,
) -> _Solution:
    """Solve one frame, from the solution of the frame before where there is one.

    Shared out evenly as `BakeSettings.share` says; with None by the solver's own step.
    """
    skeleton, base = sample.reading.skeleton, sample.reading.pose
    active = tuple(c for c, influence in enumerate(sample.influences) if influence > 0.0)
    if not active:
        return _Solution(base, (), None, ())
    goals = [
        PositionGoal(
            joint=constraints[c].tip,
            target=sample.targets[c],
            offset=None if constraints[c].use_tail else Vector((0.0, 0.0, 0.0)),
            weight=constraints[c].weight,
            chain_length=constraints[c].chain_length,
        )
        for c in active
    ]
    here = replace(solver, position_tolerance=solver.position_tolerance / _scale(sample))
    start = base
    # At the first frame of a constraint there is no solved pose to follow yet.
    if before is not None and set(active) <= set(before.active):
        rotations = list(base.rotations)
        for j in {j for c in active for j in moved_joints(skeleton, constraints[c])}:
            rotations[j] = before.pose.rotations[j]
        start = Pose.trusted(tuple(rotations), base.translations)  # both parts come out of poses
    result, statuses = _solve_apart(skeleton, start, goals, here, share)
    states = tuple(
        SolveStatus.CONVERGED.name if error.distance <= here.position_tolerance else status.name
        for error, status in zip(result.errors, statuses, strict=True)
    )
    return _Solution(result.pose, active, result, states)


def _solve_apart(
    skeleton: Skeleton,
    start: Pose,
    goals: Sequence[PositionGoal],
    settings: SolverSettings,
    share: float | None,
) -> tuple[SolveResult, list[SolveStatus]]:
    """Solve goals that turn no joint in common one after the other, and say how each goal's solve ended.

    Nothing is lost by it: chains are paths, so of two groups that share no joint at most one carries the
    other, and it is solved first. In one solve a hand out of reach would end the solve of the feet before
    they stand."""
    groups: list[tuple[set[int], list[int]]] = []
    for k, goal in enumerate(goals):
        chain = skeleton.chain(goal.joint, goal.chain_length)
        joints, members = {j for j in chain if not skeleton.joints[j].locked} or set(chain), [k]
        for group in [group for group in groups if group[0] & joints]:
            groups.remove(group)
            joints, members = joints | group[0], members + group[1]
        groups.append((joints, sorted(members)))
    pose, iterations = start, 0
    errors, statuses = [GoalError(0.0)] * len(goals), [SolveStatus.CONVERGED] * len(goals)
    for joints, members in sorted(groups, key=lambda group: min(group[0])):  # parents come before children
        result = _solve_gently(skeleton, pose, [goals[k] for k in members], settings, share, len(joints))
        pose, iterations = result.pose, max(iterations, result.iterations)
        for k, error in zip(members, result.errors, strict=True):
            errors[k], statuses[k] = error, result.status
    status = next((s for s in statuses if s is not SolveStatus.CONVERGED), SolveStatus.CONVERGED)
    return SolveResult(pose, status, iterations, tuple(errors)), statuses


def _solve_gently(
    skeleton: Skeleton,
    start: Pose,
    goals: Sequence[PositionGoal],
    settings: SolverSettings,
    share: float | None,
    joints: int,
) -> SolveResult:
    """Solve with small steps, evenly over so many joints; where they do not arrive, go on with the solver's
    own.

    The second solve counts only if it wins more than the tolerance: a target out of reach would otherwise
    make the chain jump for nothing. With no share there is just the solver's own step.
    """
    if share is None:
        return solve(skeleton, start, goals, settings)
    gentle = replace(settings, step_fraction=even_fraction(joints, share))
    first = solve(skeleton, start, goals, gentle)
    if first.status is SolveStatus.CONVERGED or gentle == settings:
        return first
    second = solve(skeleton, first.pose, goals, settings)
    won = max(e.distance for e in first.errors) - max(e.distance for e in second.errors)
    better = second.status is SolveStatus.CONVERGED or won > settings.position_tolerance
    return second if better else first


def _scale(sample: FrameSample) -> float:
    """World metres per unit of armature space, along the axis that is stretched most.

    A tolerance divided by it is never looser than the one in world metres, whatever the scale and shear.
    """
    largest = float(np.linalg.norm(np.array(sample.matrix_world.to_3x3()), ord=2))
    if not (np.isfinite(largest) and largest > 0.0):
        raise RigError(f"frame {sample.frame:g}: the armature object has a scale of 0: give it another scale")
    return largest


# --- the end ------------------------------------------------------------------------------------------------


def _refuse_obstacles(armature_object: bpy.types.Object, take: Take, settings: BakeSettings) -> None:
    """Say at the start, not after a long solve, that the keys could not be written or would not play."""
    moved = sorted({j for constraint in take.constraints for j in moved_joints(take.skeleton, constraint)})
    bones = [take.skeleton.joints[j].name for j in moved]
    wanted = [(bone, armature.rotation_channel(armature_object.pose.bones[bone])[0]) for bone in bones]
    found = channels.obstacles(armature_object, wanted, settings.destination)
    if found:
        raise RigError(found[0])


def _write(
    armature_object: bpy.types.Object,
    take: Take,
    rotations: Array,
    joints: Sequence[int],
    settings: BakeSettings,
) -> bpy.types.Action:
    interpolation = "BEZIER" if settings.keys is Keys.SOLVED_FRAMES else "LINEAR"
    keys = []
    for j in joints:
        bone = take.skeleton.joints[j].name
        pose_bone = armature_object.pose.bones[bone]
        channel, _ = armature.rotation_channel(pose_bone)
        # Keys before the range stay: the new ones go on from there, without a turn the long way round.
        previous = channels.values_before(armature_object, bone, channel, settings.frame_start)
        values = armature.channel_values(pose_bone.rotation_mode, rotations[:, j], previous)
        keys.append(BoneKeys(bone, channel, take.frames, values, interpolation))
    name = f"{armature_object.name} CCD"
    start, end = settings.frame_start, settings.frame_end
    return channels.write(armature_object, keys, settings.destination, start, end, name)


def _report(
    armature_object: bpy.types.Object,
    action: bpy.types.Action,
    take: Take,
    rotations: Array,
    full: Array,
    settings: BakeSettings,
    solver: SolverSettings,
) -> BakeReport:
    residuals = take.residuals(full)
    keyed = residuals if np.array_equal(rotations, full) else take.residuals(rotations)
    states = dict(zip(take.solved_frames, take.states, strict=True))
    rows = []
    for f, frame in enumerate(take.frames):
        for c in np.flatnonzero(take.influences[f] > 0.0):
            status = states[frame][c] if frame in states else SLERPED
            name, influence = take.constraints[c].name, float(take.influences[f, c])
            rows.append(Row(int(frame), name, status, float(residuals[f, c]), float(keyed[f, c]), influence))
    return BakeReport(
        armature=armature_object.name,
        action=action.name,
        frame_start=settings.frame_start,
        frame_end=settings.frame_end,
        step=settings.step,
        tolerance=solver.position_tolerance,
        rows=tuple(rows),
    )


def _nothing_to_key(take: Take, settings: BakeSettings) -> str:
    span = f"frames {settings.frame_start} to {settings.frame_end}"
    names = ", ".join(constraint.name for constraint in take.constraints)
    if not (take.influences > 0.0).any():
        return f"no constraint ({names}) has influence above 0 in {span}: raise it, or change the range"
    return (
        f"every bone in the chains of {names} is locked: lower Stiffness, raise Max Step or unlock the "
        "rotation of at least one"
    )
