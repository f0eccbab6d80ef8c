"""The way from constraints to keys: sample, solve, slerp, blend, measure, and write once at the end."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Quaternion, Vector

from .. import sampling
from ..errors import InvalidInput, RigError
from ..settings import SolveResult, SolverSettings
from ..skeleton import Pose
from . import armature, channels, checks, evaluation, library, properties
from .aims import chain_joints
from .march import March
from .obstacles import Destination, obstacles
from .properties import Constraint
from .report import SLERPED, BakeReport, Row, Turn
from .take import Motion, Take
from .walking import solve_frame
from .writing import BoneKeys, write


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
    """How far a bake is: of `total` frames to solve `done` are evaluated, and solved or soon to be."""

    frame: int
    done: int
    total: int


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
        progress: called after each frame to solve, and after longer work on many; may raise to cancel.

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
    """Like `bake`, an item after each frame to solve, and after longer work on many.

    The set-up is checked when the first item is asked for, and everything is written after the last one.
    Close the generator to cancel.
    """
    constraints = checks.require(armature_object, scene, settings.constraints)
    solver = properties.solver_settings(armature_object)
    poses = library.entries(armature_object) if solver.restarts else ()
    solved, keyed = settings.solved_frames(), settings.keyed_frames()
    take = march = None
    with evaluation.frames(scene, armature_object, constraints) as sample_at:
        due = frozenset(solved)
        done = 0
        for row, frame in enumerate(keyed):
            sample = sample_at(frame)
            if take is None or march is None:
                take = Take.empty(sample, constraints, keyed, solved)
                march = March(take, solver, settings.share, poses)
                _refuse_obstacles(armature_object, take, settings)
            take.store(row, sample)
            if frame in due:
                for _ in march.add(row, sample):
                    yield Progress(frame, done, len(solved))
                done += 1
                yield Progress(frame, done, len(solved))
        if march is not None:
            for _ in march.finish():
                yield Progress(settings.frame_end, done, len(solved))
    assert take is not None  # a range is never empty
    keyed_motion, full = take.finish()
    bones = take.keyed_joints()
    if not bones:
        raise RigError(_nothing_to_key(take, settings))
    action = _write(armature_object, take, keyed_motion, bones, settings)
    report = _report(armature_object, action, take, keyed_motion, full, settings, solver)
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
        The solve at full influence, in armature space, and the constraints in the order of its errors, one
        each (the largest of their goals): those with an influence above 0.

    Raises:
        CCDRigError: the set-up cannot be solved. Nothing has changed then.
    """
    constraints = checks.require(armature_object, depsgraph.scene, names)
    solver = settings or properties.solver_settings(armature_object)
    poses = library.entries(armature_object) if solver.restarts else ()
    sample = evaluation.current(depsgraph, armature_object, constraints)
    # The share of a bake, so that both pose the bones alike.
    solution = solve_frame(sample, constraints, solver, BakeSettings.share, None, poses)
    if solution.result is None:
        raise RigError(f"{armature_object.name}: every constraint has influence 0; raise one to solve")
    take = Take.empty(sample, constraints, [0], [0])
    take.store(0, sample)
    take.store_solution(0, solution.pose, {}, solution.stance)
    motion, _ = take.finish()
    joints = take.keyed_joints()
    if not joints:
        raise RigError(_all_locked(take))
    pose = Pose(tuple(map(Quaternion, motion.rotations[0])), tuple(map(Vector, motion.translations[0])))
    located = [j for j in take.locations(motion) if j in joints]
    armature.apply(armature_object, sample.reading, pose, joints, located)
    return solution.result, tuple(constraints[c] for c in solution.active)


# --- the end ------------------------------------------------------------------------------------------------


def _refuse_obstacles(armature_object: bpy.types.Object, take: Take, settings: BakeSettings) -> None:
    """Say at the start, not after a long solve, that the keys could not be written or would not play."""
    moved = sorted({j for constraint in take.constraints for j in chain_joints(take.skeleton, constraint)})
    bones = [take.skeleton.joints[j].name for j in moved]
    wanted = [(bone, armature.rotation_channel(armature_object.pose.bones[bone])[0]) for bone in bones]
    located = list(take.sliding)
    if take.tracks is not None:
        carrier = take.tracks.legs.carrier
        pose_bone = armature_object.pose.bones[take.skeleton.joints[carrier].name]
        wanted.append((pose_bone.name, armature.rotation_channel(pose_bone)[0]))
        located.append(carrier)
    wanted += [(take.skeleton.joints[j].name, "location") for j in located]
    found = obstacles(armature_object, wanted, settings.destination)
    if found:
        raise RigError(found[0])


def _write(
    armature_object: bpy.types.Object,
    take: Take,
    motion: Motion,
    joints: Sequence[int],
    settings: BakeSettings,
) -> bpy.types.Action:
    interpolation = "BEZIER" if settings.keys is Keys.SOLVED_FRAMES else "LINEAR"
    keys, locations = [], take.locations(motion)
    for j in joints:
        bone = take.skeleton.joints[j].name
        pose_bone = armature_object.pose.bones[bone]
        channel, _ = armature.rotation_channel(pose_bone)
        # Keys before the range stay: the new ones go on from there, without a turn the long way round.
        previous = channels.values_before(armature_object, bone, channel, settings.frame_start)
        values = armature.channel_values(pose_bone.rotation_mode, motion.rotations[:, j], previous)
        keys.append(BoneKeys(bone, channel, take.frames, values, interpolation))
        if j in locations:
            keys.append(BoneKeys(bone, "location", take.frames, locations[j], interpolation))
    name = f"{armature_object.name} CCD"
    start, end = settings.frame_start, settings.frame_end
    return write(armature_object, keys, settings.destination, start, end, name)


def _report(
    armature_object: bpy.types.Object,
    action: bpy.types.Action,
    take: Take,
    motion: Motion,
    full: Motion,
    settings: BakeSettings,
    solver: SolverSettings,
) -> BakeReport:
    residuals, angles = take.residuals(full)
    same = all(np.array_equal(a, b) for a, b in zip(motion, full, strict=True))
    keyed, keyed_angles = (residuals, angles) if same else take.residuals(motion)
    states = take.states
    rows = []
    for f, frame in enumerate(take.frames):
        for c in np.flatnonzero(take.influences[f] > 0.0):
            status = states[f][c] if f in states else SLERPED
            figures = (residuals, keyed, take.influences, angles, keyed_angles)
            name = take.constraints[c].name
            rows.append(Row(int(frame), name, status, *(float(each[f, c]) for each in figures)))
    turn = take.largest_turn(motion, take.keyed_joints())
    return BakeReport(
        armature=armature_object.name,
        action=action.name,
        frame_start=settings.frame_start,
        frame_end=settings.frame_end,
        step=settings.step,
        tolerance=solver.position_tolerance,
        rows=tuple(rows),
        angle_tolerance=solver.angle_tolerance,
        largest_turn=None if turn is None else Turn(*turn),
    )


def _nothing_to_key(take: Take, settings: BakeSettings) -> str:
    span = f"frames {settings.frame_start} to {settings.frame_end}"
    names = ", ".join(constraint.name for constraint in take.constraints)
    if not (take.influences > 0.0).any():
        return f"no constraint ({names}) has influence above 0 in {span}: raise it, or change the range"
    return _all_locked(take)


def _all_locked(take: Take) -> str:
    names = ", ".join(constraint.name for constraint in take.constraints)
    return (
        f"every bone in the chains of {names} is locked: lower Stiffness, raise Max Step or unlock the "
        "rotation of at least one"
    )
