# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluation and solving of all frames of a bake.

`solve` evaluates the frames into `BakeFrames`, solves them, and lets planted bones shift the body.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import bpy
import numpy as np
from mathutils import Matrix, Quaternion

from ...errors import InvalidInput, RigError
from ...limits.shapes import contains
from ...maths.batch import Array, Indices, angles_between, length, unit
from ...settings import SolverSettings
from ...solvers.stepping import result_of
from ..checks import Ready
from ..keys.writer import obstacles
from ..properties.constraint_values import Constraint
from ..rig import rotation_modes
from ..scene import evaluation
from ..scene.evaluation import Frames, Samples, Shown
from ..scene.ground import rig_ground
from ..scene.isolation import SharedScene, script_handlers
from ..scene.targets import TargetRows
from ..solve.methods import FrameSolveSettings, Reference, chain_joints, whole_chain
from ..solve.planting import support_chains
from . import body_motion, frame_selection, measuring
from .bake_frames import BakeFrames, Motion, Solutions, carry_riders
from .group_solving import Batch, solve_batches
from .keyed_motion import base_motion, keyed_motion, rotated_joints
from .planted_help import help_planted
from .planted_solver import PlantedSolver, ground_below
from .progress import Progress, Steps, shown
from .report import REACHED
from .settings import BakeSettings
from .staleness import present_state
from .start import StartPoses

BLOCK = 256
"""Frames that are kept as raw values until they are converted at once."""

SolvedElsewhere: TypeAlias = Callable[[BakeFrames], Solutions]
"""Gives the solutions of all frames from elsewhere; may raise."""


class Task(NamedTuple):
    """A bake with everything that is looked up before the first frame."""

    scene: bpy.types.Scene  # where targets and armature are evaluated
    armature_object: bpy.types.Object  # carries the constraints
    ready: Ready  # the checked constraints, and the layout of their bones
    settings: BakeSettings  # of the bake
    solving: FrameSolveSettings  # settings of every solve
    start: StartPoses  # base poses of all frames
    fingerprint: str  # of all settings
    state: str | None  # see `staleness.state_of`, before the first frame is read; None: nothing can change
    # Whether the present motion was baked with the same settings; it stays if it still fits.
    is_rebake: bool = False
    body_obstacle: str = ""  # reason why the body cannot be shifted where a leg is too short; empty if it can
    is_body_free: bool = True  # whether the body can be turned and moved to help while bones are planted
    shared: SharedScene | None = None  # where frames are evaluated for other armatures too, or None
    # Gives solutions from elsewhere, for frames without planted bones; or None.
    solved: SolvedElsewhere | None = None

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints that are baked."""
        return self.ready.constraints

    @property
    def keeps_body(self) -> bool:
        """Whether bones are planted, and the root bone keeps its animation."""
        return any(constraint.keeps_body for constraint in self.constraints)

    @property
    def walks_on(self) -> bool:
        """Whether planted bones carry a body that keeps its animation along the ground."""
        return self.ready.body is not None and self.ready.body.walks_on


def solve(task: Task) -> Steps[BakeFrames]:
    """Evaluate and solve all frames that get keys.

    Yields after each frame to solve, and after longer work on many.
    """
    _refuse_obstacles(task)
    scene, settings = task.scene, task.settings
    looking = frame_selection.influence_ends(scene, task.armature_object, task.constraints, settings)
    count = settings.frame_end - settings.frame_start + 1
    ends = yield from shown(looking, Progress(settings.frame_start, 0, count, "prepared"))
    shot, layout = _Shot.of(task, ends), task.ready.layout
    with evaluation.frames(task.scene, task.armature_object, task.constraints, layout, task.shared) as frames:
        bake_frames, after = yield from _sample(shot, frames)
        # Frames that were read before and after an edit, as in another window, do not fit together.
        is_watched = task.state is not None and not script_handlers()
        if is_watched and present_state(task.armature_object) != task.state:
            name = task.armature_object.name
            raise RigError(f"Armature '{name}' was changed while it was baked: bake once more")
        solving = Progress(shot.frames[-1], 0, len(shot.solved))
        if bake_frames.tracks is not None:
            yield from shown(_solve_planted(task, bake_frames), solving)
        else:
            yield from _solve(shot, bake_frames, after, frames, solving)
        if task.solved is not None:
            bake_frames.restore(task.solved(bake_frames))
        if bake_frames.tracks is not None or shot.preroll:
            note_loop(bake_frames, shot.preroll, after, task.solving.reference)
        if task.shared is not None:  # all armatures are solved before any is played
            count = len(shot.solved)
            yield Progress(shot.frames[-1], count, count, "evaluated", next_frame=math.inf)
    if task.keeps_body and task.body_obstacle:
        body_motion.note_short_legs(bake_frames, shot.preroll)
    elif task.keeps_body:
        moving = Progress(shot.solved[0], 0, len(shot.solved), "solved with the body moved")
        yield from shown(body_motion.move_body(bake_frames, task.solving), moving)
    if bake_frames.tracks is not None:
        helping = Progress(shot.solved[0], 0, len(shot.solved), "solved with the body")
        yield from shown(help_planted(bake_frames, task.solving, task.is_body_free), helping)
    if task.walks_on:
        body_motion.key_root_bone(bake_frames)
    yield Progress(shot.frames[-1], len(shot.solved), len(shot.solved))
    bake_frames = bake_frames.without_first(shot.preroll)
    if task.is_rebake and bake_frames.tracks is None:
        keep_baked(bake_frames, task.solving.solver)
    return bake_frames


class _Shot(NamedTuple):
    """The frames of a task."""

    task: Task  # of the bake
    frames: Sequence[float]  # those to evaluate, increasing
    solved: Sequence[float]  # those of them to solve
    preroll: int  # how many of them come before the first keyed frame

    @classmethod
    def of(cls, task: Task, ends: Collection[int]) -> _Shot:
        """Frames of a task; `ends`: see `frame_selection.influence_ends`."""
        before: list[float] = [*task.settings.preroll_frames()]
        solved, keyed = frame_selection.frames(
            task.scene, task.armature_object, task.constraints, task.settings, ends
        )
        # A moving body, ground, or components that are not held would let feet slip between solved frames.
        moves = any(each.on_ground or not all(each.holds) for each in task.constraints)
        if task.keeps_body or moves:
            solved = keyed
        return cls(task, before + keyed, before + solved, len(before))


def _sample(shot: _Shot, frames: Frames) -> Steps[tuple[BakeFrames, Samples | None]]:
    """Evaluate all frames, and the frame after the range, if it is valid and may close a loop."""
    task, done, shared = shot.task, 0, shot.task.shared
    yield Progress(shot.frames[0], 0, len(shot.solved), "prepared")
    beyond, due = shot.frames[-1] + 1.0, frozenset(shot.solved)
    blocks: list[Samples] = []
    waiting: list[Shown] = []
    for frame in shot.frames:
        if shared is not None:
            yield Progress(frame, done, len(shot.solved), "evaluated", next_frame=frame)
        now = frames.look(frame)
        if waiting and (len(waiting) == BLOCK or now.layout is not waiting[0].layout):
            blocks.append(frames.samples(waiting))
            waiting = []
        waiting.append(now)
        if frame in due:
            done += 1
            if shared is None:
                yield Progress(frame, done, len(shot.solved), "evaluated")
    if waiting:
        blocks.append(frames.samples(waiting))
    if shared is not None:
        yield Progress(shot.frames[-1], done, len(shot.solved), "evaluated", next_frame=beyond)
    bake_frames = _bake_frames(task, Samples.joined(blocks), shot.solved)
    if bake_frames.tracks is None:  # with planted bones `note_loop` does not look at it
        with suppress(RigError):  # a target may be invalid beyond the range
            return bake_frames, task.start.based(frames.samples([frames.look(beyond)]))
    return bake_frames, None


def _bake_frames(task: Task, played: Samples, solved: Sequence[float]) -> BakeFrames:
    """Frames as they play, with their base poses, of which `solved` are to be solved."""
    based, reference = task.start.based(played), task.solving.reference
    poses = None if reference is None else reference(based)
    bake_frames = BakeFrames.of(based, task.constraints, solved, poses, played)
    carry_riders(task.armature_object, bake_frames, played)
    return bake_frames


def _solve_planted(task: Task, bake_frames: BakeFrames) -> SolvedCounts:
    """Solve frames with planted bones, on their ground."""
    tracks, scene, armature_object = bake_frames.planted_tracks, task.scene, task.armature_object
    # Where an animated armature object is in the first frame of the range, whatever frame is shown.
    first = int(np.searchsorted(bake_frames.frames, task.settings.frame_start))
    rest = Matrix(tracks.worlds[first].tolist())
    near = partial(rig_ground, scene, armature_object, bake_frames.frames.tolist(), rest=rest)
    tracks.unturned = bake_frames.reference
    if task.walks_on:
        body_motion.walk_on(bake_frames)
    tracks.ground = ground_below(armature_object, bake_frames, rest, near)
    if task.walks_on:
        body_motion.climb(bake_frames)
    try:
        yield from PlantedSolver(task.solving).solve(bake_frames)
    except InvalidInput as error:  # of the ground
        raise RigError(error.told(evaluation.metres_per_unit(scene))) from error


def _solve(
    shot: _Shot, bake_frames: BakeFrames, after: Samples | None, frames: Frames, progress: Progress
) -> Steps[None]:
    """Solve frames without planted bones, unless they are solved elsewhere."""
    if not shot.preroll:  # a loop is solved round and round
        note_loop(bake_frames, shot.preroll, after, shot.task.solving.reference)
    if shot.task.solved is None:
        has_beyond = not shot.preroll and not bake_frames.is_loop
        yield from shown(solve_frames(bake_frames, shot.task.solving, can_grow=has_beyond), progress)
        if has_beyond:
            yield from _solve_beyond(shot, bake_frames, frames, progress._replace(done=progress.total))


def _refuse_obstacles(task: Task) -> None:
    """Refuse before a long solve, where keys could not be written or would not play."""
    skeleton, armature_object = task.ready.layout.skeleton, task.armature_object
    rotated = {j for row in task.constraints for j in whole_chain(skeleton, row)}
    located = {j for j in rotated if skeleton.joints[j].slides} | {each.joint for each in skeleton.couplings}
    planted = support_chains(skeleton, task.constraints)
    if planted is not None and not planted.keeps_body:
        rotated.add(planted.root_bone)
        located.add(planted.root_bone)
    pose_bones = [armature_object.pose.bones[skeleton.joints[j].name] for j in sorted(rotated)]
    channels = [(bone.name, rotation_modes.rotation_channel(bone)[0]) for bone in pose_bones]
    channels += [(skeleton.joints[j].name, "location") for j in sorted(located)]
    time = frame_selection.key_time(task.scene)
    span = task.settings.frame_start * time, task.settings.frame_end * time
    problems = obstacles(armature_object, channels, task.settings.destination, span, time)
    if problems:
        raise RigError(problems[0])


MARGINS = 16, 32, 64
"""Frames beyond a range that smoothing may need; each count is tried where the one before is too small."""


def _solve_beyond(shot: _Shot, bake_frames: BakeFrames, frames: Frames, progress: Progress) -> Steps[None]:
    """Solve a range with frames beyond it, where smoothing reaches its ends.

    This makes the poses independent of the range.
    """
    step, settings = shot.task.settings.step, shot.task.solving
    sides: dict[int, BakeFrames] = {}
    evaluated: dict[int, list[Shown]] = {-1: [], 1: []}  # frames before and after the range, outwards
    for count in MARGINS:
        touched = [way for way in (-1, 1) if _is_end_moved(sides.get(way, bake_frames), way)]
        if not touched:
            return
        for way in touched:
            edge = shot.frames[0 if way < 0 else -1]
            there = evaluated[way]
            for k in range(len(there) + 1, count + 1):
                now = frames.look(edge + way * step * k)
                if there and now.layout is not there[0].layout:
                    break
                there.append(now)
                yield progress
            samples = _reachable(frames, there, way)
            if samples is not None:
                sides[way] = _bake_frames(shot.task, samples, samples.frames.tolist())
        solving = solve_frames(bake_frames, settings, sides, count < MARGINS[-1])
        yield from shown(solving, progress)


def _is_end_moved(bake_frames: BakeFrames, way: int) -> bool:
    """Whether smoothing has moved the first (-1) or the last solved frame (1)."""
    row = bake_frames.solved_rows[0 if way < 0 else -1]
    return bool(bake_frames.smoothed.get(int(row)))


def _reachable(frames: Frames, there: Sequence[Shown], way: int) -> Samples | None:
    """The longest run of frames from an edge with valid targets, in order of time; None without any."""
    for count in range(len(there), 0, -1):
        with suppress(RigError):  # a target may be invalid beyond the range
            return frames.samples(there[:count][::way])
    return None


# Solving ----------------------------------------------------------------------------------------------------

SolvedCounts: TypeAlias = Generator[float, None, None]
"""Work that yields the number of frames solved since the last item."""


NOTHING_BEYOND: Mapping[int, BakeFrames] = MappingProxyType({})


def solve_frames(
    bake_frames: BakeFrames,
    settings: FrameSolveSettings,
    beyond: Mapping[int, BakeFrames] = NOTHING_BEYOND,
    can_grow: bool = False,
) -> SolvedCounts:
    """Solve frames without planted bones as one motion, with frames before (-1) and after (1) their range.

    With `can_grow` it ends once smoothing has moved both ends: more frames beyond them are solved anyway.
    """
    ranges = [each for each in (beyond.get(-1), bake_frames, beyond.get(1)) if each is not None]
    every = range(len(bake_frames.constraints))
    runs = [(each, each.solved_rows[run]) for each in ranges for run in each.solved_runs(every)]
    batches = [Batch.of(each, rows, settings) for each, rows in runs]
    period = 0
    if bake_frames.is_loop:
        period = len(bake_frames.solved_frames) - (not bake_frames.repeats_after)
    for count in solve_batches(batches, period):
        yield count
        if can_grow and batches[0].smoothed[0] and batches[-1].smoothed[-1]:
            break
    for (each, rows), batch in zip(runs, batches, strict=True):
        each.smoothed.update(zip(rows.tolist(), map(tuple, batch.smoothed), strict=True))
        if each is bake_frames:
            bake_frames.store_batch(rows, batch.rotations, batch.translations, batch.states)
            bake_frames.helped.update({int(rows[k]): row for k, row in batch.helped.items()})
            bake_frames.iterations = max(bake_frames.iterations, batch.iterations)


# Loops ------------------------------------------------------------------------------------------------------


ALIKE = 1e-3
"""Radians, and parts of a chain's length, that both ends of a loop may differ by."""


def note_loop(
    bake_frames: BakeFrames, preroll: int, after: Samples | None, reference: Reference | None
) -> None:
    """Note in the frames whether they are a loop, which is solved round and round.

    In a loop base poses (before any bake), targets and influences come back to where they began: at its last
    frame, or at the frame after it, as in cycles for games. Targets are compared in armature space, so a
    cycle that travels with its armature is a loop. The places of planted bones do not count.

    Args:
        bake_frames: all frames are evaluated.
        preroll: count of frames before the range.
        after: the frame after the range, if it is valid.
        reference: gives its reference pose; None for its base pose.
    """
    joints = rotated_joints(bake_frames)
    if len(bake_frames.frames) < 3 or not joints:
        return

    def come_back(poses: Array, targets: TargetRows, influences: Array) -> bool:
        if _turned(poses)[1] > ALIKE:
            return False
        return bool(_targets_moved(bake_frames, targets, influences)[1] <= ALIKE)

    ends = np.array([preroll, len(bake_frames.frames) - 1])
    poses, targets = bake_frames.reference_poses[ends][:, joints], bake_frames.targets.at(ends)
    influences = bake_frames.influences[ends]
    bake_frames.is_loop = come_back(poses, targets, influences)
    if not bake_frames.is_loop and after is not None and bake_frames.tracks is None:
        turned = after.rig.rotations if reference is None else reference(after)
        poses[1:], influences[1:] = turned[:, joints], after.influences
        targets.put([1], after.targets)
        bake_frames.is_loop = bake_frames.repeats_after = come_back(poses, targets, influences)
    if bake_frames.is_loop:
        targets_moved = _targets_moved(bake_frames, bake_frames.targets, bake_frames.influences)
        if np.maximum(_turned(bake_frames.base[:, joints]), targets_moved).max() <= ALIKE:  # nothing moves
            bake_frames.is_loop = bake_frames.repeats_after = False


def _turned(rotations: Array) -> Array:
    """(F,) radians of the joint that turns most from the first of the rotations (F, J, 4)."""
    rotations = unit(rotations, axis=-1)
    return np.asarray(angles_between(rotations, rotations[:1], axis=-1).max(axis=1))


def _targets_moved(bake_frames: BakeFrames, targets: TargetRows, influences: Array) -> Array:
    """(R,) the largest change of targets, influences and keyed settings from the first row.

    Lengths are parts of the chain's length, angles radians.
    """
    moved = np.abs(influences - influences[:1]).max(axis=1)
    chains = {
        c: list(chain_joints(bake_frames.skeleton, constraint))
        for c, constraint in enumerate(bake_frames.constraints)
        if not constraint.kind.plants
    }
    members = [c for c, joints in chains.items() if joints]
    for name, column in (pair for c in members for pair in targets.keyed.get(c, {}).items()):
        apart = np.abs(column - column[0])
        if name == "pole_angle":  # modulo whole turns
            apart = np.abs(np.remainder(column - column[0] + np.pi, 2.0 * np.pi) - np.pi)
        moved = np.maximum(moved, apart)
    sizes = np.array([bake_frames.lengths[0, chains[c]].sum() for c in members])
    points, poles, ways = (
        length(each[:, members] - each[:1, members], axis=-1)
        for each in (targets.points, targets.poles, targets.directions)
    )
    rotations = unit(targets.rotations[:, members], axis=-1)
    turned = angles_between(rotations, rotations[:1], axis=-1)
    for each in (points / sizes, poles / sizes, turned, ways):
        moved = np.fmax(moved, np.fmax.reduce(each, axis=1, initial=0.0))  # goals that are not there are NaN
    return moved


# Baked once more --------------------------------------------------------------------------------------------

FAR = 0.05
"""Part of its distance by which a kept miss may be farther off, beside one tolerance."""
INSIDE = 1e-5
"""Radians outside a limit that are rounding of keys."""


def keep_baked(bake_frames: BakeFrames, solver: SolverSettings) -> None:
    """Keep base poses that were baked before, where they are as near to the goals as the new ones.

    A solve that starts from a baked motion leads to another one, which is no better.

    Args:
        bake_frames: solved; nothing is planted.
        solver: position tolerance in world metres.
    """
    if _leaves_limits(bake_frames):
        return
    rows = bake_frames.solved_rows
    tolerances = (solver.position_tolerance, solver.angle_tolerance)
    kept, solved = (
        _errors(bake_frames, motion, rows)
        for motion in (base_motion(bake_frames), keyed_motion(bake_frames).full)
    )
    old, new = (np.maximum(each[0] / tolerances[0], each[1] / tolerances[1]) for each in (kept, solved))
    near = tolerances[0] + np.array([_rounding(bake_frames, each) for each in bake_frames.constraints])
    good = (kept[0] <= near) & (kept[1] <= tolerances[1] + 10.0 * measuring.ROUNDING)
    # Where nothing is reached, only the farthest counts: conflicting constraints trade distances.
    if np.any(~good & (new <= 1.0)) or np.any(old.max(axis=1) > (1.0 + FAR) * new.max(axis=1) + 1.0):
        return
    states = {
        row: {c: REACHED if old[k, c] <= 1.0 else state for c, state in bake_frames.states[row].items()}
        for k, row in enumerate(rows.tolist())
    }
    slides = bake_frames.slid(rows, bake_frames.translations[rows])
    bake_frames.restore(
        Solutions(unit(bake_frames.base[rows], axis=-1), slides, states, bake_frames.smoothed)
    )


def _errors(bake_frames: BakeFrames, motion: Motion, rows: Indices) -> tuple[Array, Array]:
    """`measuring.residuals` (R, C) of a subset of frames; 0 where constraints are inactive."""
    inactive = bake_frames.influences[rows] <= 0.0
    distances, angles = (each[rows] for each in result_of(measuring.residuals(bake_frames, motion)))
    distances[inactive] = angles[inactive] = 0.0
    return distances, angles


def _rounding(bake_frames: BakeFrames, constraint: Constraint) -> float:
    """World metres that rounding of keys takes off a constraint's bones."""
    skeleton = bake_frames.skeleton
    joints = range(len(skeleton)) if constraint.kind.balances else chain_joints(skeleton, constraint)
    return measuring.rounding(bake_frames, list(joints))


def _leaves_limits(bake_frames: BakeFrames) -> bool:
    """Whether a base pose of the keyed joints breaks a limit."""
    keyed, rows = rotated_joints(bake_frames), np.arange(len(bake_frames.frames))
    slid = bake_frames.slid(rows, bake_frames.translations)
    return any(
        limits[j] is not None and not contains(limits[j], Quaternion(rotations[j]), INSIDE)
        for limits, rotations in zip(bake_frames.limits, bake_frames.base, strict=True)
        for j in keyed
    ) or any(
        np.any((along < slide.lower - INSIDE) | (along > slide.upper + INSIDE))
        for slide, along in zip(bake_frames.slides, slid.T, strict=True)
    )
