# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluation and solving of all frames of a bake.

`solve` evaluates the frames into `BakeFrames`, solves them, and lets planted bones shift the body.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

import bpy
import numpy as np
from mathutils import Quaternion

from ...errors import RigError
from ...limits.shapes import contains
from ...maths.batch import Array, angles_between, length, unit
from ...settings import SolverSettings, SolveStatus
from ...solvers.stepping import result_of
from ..checks import Ready
from ..keys.writer import obstacles
from ..properties.constraint_kinds import SINGLE_PASS
from ..properties.constraint_values import Constraint
from ..rig import rotation_modes
from ..scene import evaluation
from ..scene.evaluation import Frames, FrameSample, Samples, Shown
from ..scene.ground import rig_ground
from ..scene.isolation import SharedScene
from ..scene.targets import TargetRows
from ..solve.constraint_goals import chain_joints, whole_chain
from ..solve.methods import FrameSolveSettings, Reference
from . import body_motion, frame_selection, measuring
from .bake_frames import BakeFrames, Motion, Solutions, note_riders
from .group_solving import Batch, solve_batches
from .keyed_motion import base_motion, keyed_motion, rotated_joints
from .planted_solver import PlantedSolver, ground_below
from .progress import Progress, Steps, shown
from .settings import BakeSettings
from .start import StartPoses

BLOCK = 256
"""Frames that are kept as raw values until they are converted at once."""

SolvedElsewhere: TypeAlias = Callable[[BakeFrames], Solutions]
"""Gives the solutions of all frames from elsewhere; may raise."""


class Task(NamedTuple):
    """A bake with everything that is looked up before the first frame.

    Attributes:
        ready: the checked constraints, and the layout of their bones.
        settings: of the bake.
        solving: settings of every solve.
        start: base poses of all frames.
        fingerprint: of all settings.
        is_rebake: whether the present motion was baked with the same settings; it stays if it still fits.
        body_obstacle: reason why the body cannot be shifted where a leg is too short; empty if it can.
        shared: where frames are evaluated for other armatures too, or None.
        solved: gives solutions from elsewhere, for frames without planted bones; or None.
    """

    ready: Ready
    settings: BakeSettings
    solving: FrameSolveSettings
    start: StartPoses
    fingerprint: str
    is_rebake: bool = False
    body_obstacle: str = ""
    shared: SharedScene | None = None
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


def solve(scene: bpy.types.Scene, armature_object: bpy.types.Object, task: Task) -> Steps[BakeFrames]:
    """Evaluate and solve all frames; an item after each frame to solve, and after longer work on many.

    Args:
        scene: where targets and armature are evaluated.
        armature_object: carries the constraints.
        task: what is solved.

    Returns:
        The frames that get keys.
    """
    shot = _Shot.of(scene, armature_object, task)
    bake_frames = yield from _evaluate(scene, armature_object, shot)
    planted = shot.samples if task.keeps_body else []
    if planted and task.body_obstacle:
        body_motion.note_short_legs(bake_frames, planted, shot.preroll)
    elif planted:
        moving = Progress(shot.frames[planted[0][0]], 0, len(planted), "solved with the body moved")
        yield from shown(body_motion.move_body(bake_frames, planted, task.solving), moving)
    if task.walks_on:
        body_motion.key_root_bone(bake_frames)
    yield Progress(shot.frames[-1], len(shot.solved), len(shot.solved))
    bake_frames = bake_frames.without_first(shot.preroll)
    if task.is_rebake and bake_frames.tracks is None:
        keep_baked(bake_frames, task.solving.solver)
    return bake_frames


@dataclass
class _Shot:
    """The frames of a task, and the samples that are kept of them.

    Attributes:
        task: of the bake.
        frames: those to evaluate, increasing.
        solved: those of them to solve.
        preroll: how many of them come before the first keyed frame.
        samples: row and sample of each solved frame, where the body is moved afterwards.
        planted: row of each solved frame with planted bones, and its place in samples with base poses.
    """

    task: Task
    frames: Sequence[float]
    solved: Sequence[float]
    preroll: int
    samples: list[tuple[int, FrameSample]] = field(default_factory=list)
    planted: list[tuple[int, Samples, int]] = field(default_factory=list)
    _solver: FrameSolver | None = None
    _filled: int = 0  # evaluated rows

    def planted_sample(self, k: int) -> FrameSample:
        """The sample of a frame with planted bones."""
        _, samples, place = self.planted[k]
        return samples[place]

    @property
    def solver(self) -> FrameSolver:
        """The solver of the frames, which exists from the first evaluated frame on."""
        assert self._solver is not None
        return self._solver

    def keep(self, armature_object: bpy.types.Object, samples: Samples) -> None:
        """Store the next evaluated frames, with their base poses."""
        based = self.task.start.based(samples)
        if self._solver is None:
            frames = BakeFrames.empty(based, self.task.constraints, self.frames, self.solved)
            note_riders(armature_object, frames)
            self._solver = FrameSolver(frames, self.task.solving)
        tracks = self._solver.bake_frames.tracks
        if tracks is not None:
            based = tracks.carried(based, samples)
        row, self._filled = self._filled, self._filled + len(based)
        self._solver.bake_frames.store(row, based, self.task.solving.reference(based), samples)
        due = np.flatnonzero(np.isin(based.frames, self.solved)).tolist()
        if tracks is not None:
            self.planted += [(row + k, based, k) for k in due]
        elif self.task.solved is None:
            self._solver.add(row, based, due)

    @classmethod
    def of(cls, scene: bpy.types.Scene, armature_object: bpy.types.Object, task: Task) -> _Shot:
        settings = task.settings
        before: list[float] = [*settings.preroll_frames()]
        solved, keyed = frame_selection.frames(scene, armature_object, task.constraints, settings)
        # A moving body, ground, or components that are not held would let feet slip between solved frames.
        moves = any(each.on_ground or not all(each.holds) for each in task.constraints)
        if task.keeps_body or moves:
            solved = keyed
        return cls(task, before + keyed, before + solved, len(before))


def _evaluate(scene: bpy.types.Scene, armature_object: bpy.types.Object, shot: _Shot) -> Steps[BakeFrames]:
    """Evaluate all frames, and solve them; see `solve`."""
    task = shot.task
    with evaluation.frames(
        scene, armature_object, task.constraints, task.ready.layout, task.shared
    ) as frames:
        after = yield from _sample(armature_object, shot, frames)
        solver, bake_frames, tracks = shot.solver, shot.solver.bake_frames, shot.solver.bake_frames.tracks
        solving = Progress(shot.frames[-1], 0, len(shot.solved))
        is_solved_once = tracks is None and not shot.preroll
        if tracks is not None:
            near = partial(rig_ground, scene, armature_object, bake_frames.frames.tolist(), at_rest=True)
            tracks.unturned = bake_frames.reference
            sample_of: Callable[[int], FrameSample] = shot.planted_sample
            if task.keeps_body:  # they are needed again
                shot.samples = [(row, samples[k]) for row, samples, k in shot.planted]
            if task.walks_on:
                shot.samples = body_motion.walk_on(bake_frames, shot.samples)
            tracks.ground = ground_below(armature_object, bake_frames, near)
            if task.walks_on:
                shot.samples = body_motion.climb(bake_frames, shot.samples)
            if task.keeps_body:
                sample_of = [sample for _, sample in shot.samples].__getitem__
            rows = np.array([row for row, _, _ in shot.planted])
            yield from shown(PlantedSolver(task.solving).solve(bake_frames, rows, sample_of), solving)
        else:
            if is_solved_once:  # a loop is solved round and round
                note_loop(bake_frames, shot.preroll, after, task.solving.reference)
            yield from shown(solver.solve_with({}), solving)
            if is_solved_once and not bake_frames.is_loop:
                yield from _solve_beyond(shot, solver, frames, solving._replace(done=solving.total))
        if task.solved is not None:
            bake_frames.restore(task.solved(bake_frames))
        if not is_solved_once:
            note_loop(bake_frames, shot.preroll, after, task.solving.reference)
        if task.shared is not None:  # all armatures are solved before any is played
            yield Progress(shot.frames[-1], len(shot.solved), len(shot.solved), "evaluated", meets=True)
    return bake_frames


def _sample(armature_object: bpy.types.Object, shot: _Shot, frames: Frames) -> Steps[Samples | None]:
    """Evaluate all frames into `shot`; the frame after the range, if it is valid."""
    task, done, shared = shot.task, 0, shot.task.shared
    yield Progress(shot.frames[0], 0, len(shot.solved), "prepared")
    beyond, due = shot.frames[-1] + 1.0, frozenset(shot.solved)
    if shared is not None:
        shared.want(armature_object, [(frame,) for frame in (*shot.frames, beyond)])
    waiting: list[Shown] = []
    for row, frame in enumerate(shot.frames):
        if shared is not None and shared.waits(armature_object, frame):
            yield Progress(frame, done, len(shot.solved), "evaluated", meets=True)
        now = frames.look(frame)
        if waiting and (len(waiting) == BLOCK or now.layout is not waiting[0].layout):
            shot.keep(armature_object, frames.samples(waiting))
            waiting = []
        waiting.append(now)
        if row == 0:
            shot.keep(armature_object, frames.samples(waiting))
            _refuse_obstacles(armature_object, shot.solver.bake_frames, task.settings)
            waiting = []
        if frame in due:
            done += 1
            if shared is None:
                yield Progress(frame, done, len(shot.solved), "evaluated")
    if waiting:
        shot.keep(armature_object, frames.samples(waiting))
    if shared is not None and shared.waits(armature_object, beyond):
        yield Progress(shot.frames[-1], done, len(shot.solved), "evaluated", meets=True)
    with suppress(RigError):  # a target may be invalid beyond the range
        return task.start.based(frames.samples([frames.look(beyond)]))
    return None


def _refuse_obstacles(
    armature_object: bpy.types.Object, bake_frames: BakeFrames, settings: BakeSettings
) -> None:
    """Refuse before a long solve, where keys could not be written or would not play."""
    joints, tracks = bake_frames.skeleton.joints, bake_frames.tracks
    moved = {j for row in bake_frames.constraints for j in whole_chain(bake_frames.skeleton, row)}
    rotated, located = sorted(moved), list(bake_frames.located)
    if tracks is not None and not tracks.keeps_body:
        rotated.append(tracks.support_chains.root_bone)
        located.append(tracks.support_chains.root_bone)
    pose_bones = [armature_object.pose.bones[joints[j].name] for j in rotated]
    channels = [(bone.name, rotation_modes.rotation_channel(bone)[0]) for bone in pose_bones]
    channels += [(joints[j].name, "location") for j in located]
    problems = obstacles(armature_object, channels, settings.destination)
    if problems:
        raise RigError(problems[0])


MARGINS = 16, 32, 64
"""Frames beyond a range that smoothing may need; each count is tried where the one before is too small."""


def _solve_beyond(shot: _Shot, solver: FrameSolver, frames: Frames, progress: Progress) -> Steps[None]:
    """Solve a range with frames beyond it, where smoothing reaches its ends.

    This makes the poses independent of the range.
    """
    step, solving = shot.task.settings.step, shot.task.solving
    sides: dict[int, FrameSolver] = {}
    for count in MARGINS:
        touched = [way for way, is_moved in zip((-1, 1), solver.moved_ends(sides), strict=True) if is_moved]
        if not touched:
            return
        for way in touched:
            edge = shot.frames[0 if way < 0 else -1]
            there: list[Shown] = []
            for k in range(1, count + 1):
                now = frames.look(edge + way * step * k)
                if there and now.layout is not there[0].layout:
                    break
                there.append(now)
                yield progress
            samples = _reachable(frames, there, way)
            if samples is not None:
                samples = shot.task.start.based(samples)
                times = samples.frames.tolist()
                beyond = BakeFrames.empty(samples, shot.task.constraints, times, times)
                beyond.store(0, samples, solving.reference(samples))
                sides[way] = FrameSolver(beyond, solving)
                sides[way].add(0, samples, range(len(times)))
        yield from shown(solver.solve_with(sides), progress)


def _reachable(frames: Frames, there: Sequence[Shown], way: int) -> Samples | None:
    """The longest run of frames from an edge with valid targets, in order of time; None without any."""
    for count in range(len(there), 0, -1):
        with suppress(RigError):  # a target may be invalid beyond the range
            return frames.samples(there[:count][::way])
    return None


# Solving ----------------------------------------------------------------------------------------------------

SolvedCounts: TypeAlias = Generator[float, None, None]
"""Work that yields the number of frames solved since the last item."""


class _Run(NamedTuple):
    """Consecutive frames with the same active constraints, limits, slides and coupled offsets.

    Attributes:
        key: equal for equal runs.
        rows: of the bake's frames.
        samples: of all rows where a closed form solves them, else of the first.
    """

    key: tuple[object, ...]
    rows: list[int]
    samples: list[FrameSample]


@dataclass
class FrameSolver:
    """Solves the frames of a bake without planted bones into `bake_frames`.

    Attributes:
        bake_frames: the frames; a row is sampled before it is added here.
        settings: of every solve.
        iterations: the most iterations of any frame.
    """

    bake_frames: BakeFrames
    settings: FrameSolveSettings
    iterations: int = 0
    _runs: list[_Run] = field(default_factory=list)

    def add(self, first: int, samples: Samples, places: Sequence[int]) -> None:
        """Add places of samples to be solved by `solve_with`; `first` is the row of place 0."""
        bake_frames = self.bake_frames
        keeps_all = any(each.method in SINGLE_PASS for each in bake_frames.constraints)
        for k in places:
            row = first + k
            in_force = (bake_frames.influences[row] > 0.0).tobytes()
            key = in_force, bake_frames.limits[row], bake_frames.shifting[row]
            is_new = not self._runs or self._runs[-1].key != key
            if is_new:
                self._runs.append(_Run(key, [], []))
            self._runs[-1].rows.append(row)
            if is_new or keeps_all:
                self._runs[-1].samples.append(samples[k])

    def moved_ends(self, beyond: Mapping[int, FrameSolver]) -> tuple[bool, bool]:
        """Whether smoothing has moved the first and the last frame.

        With frames beyond the range on a side (-1 before, 1 after; see `solve_with`), the outermost of them.
        """
        if not self._runs:
            return False, False
        rows = {-1: self._runs[0].rows[0], 1: self._runs[-1].rows[-1]}
        moved = []
        for way, row in rows.items():
            frames = beyond[way].bake_frames if way in beyond else self.bake_frames
            outermost = row if way not in beyond else (0 if way < 0 else len(frames.frames) - 1)
            moved.append(bool(frames.smoothed.get(outermost)))
        return moved[0], moved[1]

    def solve_with(self, beyond: Mapping[int, FrameSolver]) -> SolvedCounts:
        """Solve all runs as one motion, with frames before (-1) and after (1) the range."""
        if not self._runs:
            return
        solvers = [each for each in (beyond.get(-1), self, beyond.get(1)) if each is not None]
        runs = [(solver, run) for solver in solvers for run in solver._runs]
        batches = [
            Batch.of(solver.bake_frames, np.array(run.rows, dtype=np.intp), run.samples, self.settings)
            for solver, run in runs
        ]
        bake_frames, period = self.bake_frames, 0
        if bake_frames.is_loop:
            period = len(bake_frames.solved_frames) - (not bake_frames.repeats_after)
        yield from solve_batches(batches, period)
        for (solver, run), batch in zip(runs, batches, strict=True):
            if solver is self:
                rows = np.array(run.rows, dtype=np.intp)
                bake_frames.store_batch(rows, batch.rotations, batch.translations, batch.states)
                self.iterations = max(self.iterations, batch.iterations)
            solver.bake_frames.smoothed.update(zip(run.rows, map(tuple, batch.smoothed), strict=True))
            if solver is self:
                bake_frames.helped.update({run.rows[k]: each for k, each in batch.helped.items()})


# Loops ------------------------------------------------------------------------------------------------------


ALIKE = 1e-3
"""Radians, and parts of a chain's length, that both ends of a loop may differ by."""


def note_loop(bake_frames: BakeFrames, preroll: int, after: Samples | None, reference: Reference) -> None:
    """Note in the frames whether they are a loop, which is solved round and round.

    In a loop base poses (before any bake), targets and influences come back to where they began: at its last
    frame, or at the frame after it, as in cycles for games. Targets are compared in armature space, so a
    cycle that travels with its armature is a loop. The places of planted bones do not count.

    Args:
        bake_frames: all frames are evaluated.
        preroll: count of frames before the range.
        after: the frame after the range, if it is valid.
        reference: gives its base pose before any bake.
    """
    joints = rotated_joints(bake_frames)
    if len(bake_frames.frames) < 3 or not joints:
        return

    def come_back(poses: Array, targets: TargetRows, influences: Array) -> bool:
        return bool(max(_turned(poses)[1], _targets_moved(bake_frames, targets, influences)[1]) <= ALIKE)

    ends = np.array([preroll, len(bake_frames.frames) - 1])
    poses, targets = bake_frames.reference_poses[ends][:, joints], bake_frames.targets.at(ends)
    influences = bake_frames.influences[ends]
    bake_frames.is_loop = come_back(poses, targets, influences)
    if not bake_frames.is_loop and after is not None and bake_frames.tracks is None:
        poses[1:], influences[1:] = reference(after)[:, joints], after.influences
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
    for c, constraint in enumerate(bake_frames.constraints):
        joints = list(chain_joints(bake_frames.skeleton, constraint))
        if constraint.kind.plants or not joints:
            continue
        for name, column in targets.keyed.get(c, {}).items():
            apart = np.abs(column - column[0])
            if name == "pole_angle":  # modulo whole turns
                apart = np.abs(np.remainder(column - column[0] + np.pi, 2.0 * np.pi) - np.pi)
            moved = np.maximum(moved, apart)
        size = float(bake_frames.lengths[0, joints].sum())
        # Goals that a constraint lacks are NaN.
        for each in (targets.points[:, c], targets.poles[:, c]):
            moved = np.fmax(moved, length(each - each[:1], axis=-1) / size)
        moved = np.fmax(moved, _turned(targets.rotations[:, c, None]))
        ways = targets.directions[:, c]
        moved = np.fmax(moved, length(ways - ways[:1], axis=-1))
    return np.asarray(moved)


# Baked once more --------------------------------------------------------------------------------------------

NEAR = 0.1
"""Part of the tolerances by which a kept motion may be farther off, as keys are rounded."""
FAR = 0.05
"""Part of its distance by which a kept miss may be farther off, beside one tolerance."""
INSIDE = 1e-5
"""Radians outside a limit that are rounding of keys."""


def keep_baked(bake_frames: BakeFrames, solver: SolverSettings) -> None:
    """Keep the base poses of a motion baked before, where they are as near to the goals as the new ones.

    A solve that starts from a baked motion leads to another one, which is no better.

    Args:
        bake_frames: solved; nothing is planted.
        solver: position tolerance in world metres.
    """
    if _leaves_limits(bake_frames):
        return
    rows = np.searchsorted(bake_frames.frames, bake_frames.solved_frames)
    tolerances = (solver.position_tolerance, solver.angle_tolerance)
    old, new = (
        _misses(bake_frames, motion, tolerances)[rows]
        for motion in (base_motion(bake_frames), keyed_motion(bake_frames).full)
    )
    good = old <= 1.0 + NEAR
    # Where nothing is reached, only the farthest counts: conflicting constraints trade distances.
    if np.any(~good & (new <= 1.0)) or np.any(old.max(axis=1) > (1.0 + FAR) * new.max(axis=1) + 1.0):
        return
    reached = SolveStatus.CONVERGED.name
    states = {
        row: {c: reached if old[k, c] <= 1.0 else state for c, state in bake_frames.states[row].items()}
        for k, row in enumerate(rows.tolist())
    }
    slides = bake_frames.slid(rows, bake_frames.translations[rows])
    bake_frames.restore(
        Solutions(unit(bake_frames.base[rows], axis=-1), slides, states, bake_frames.smoothed)
    )


def _misses(bake_frames: BakeFrames, motion: Motion, tolerances: tuple[float, float]) -> Array:
    """(F, C) errors of constraints in tolerances; 0 where they are inactive."""
    distances, angles = result_of(measuring.residuals(bake_frames, motion))
    misses = np.maximum(distances / tolerances[0], angles / tolerances[1])
    return np.asarray(np.where(bake_frames.influences > 0.0, misses, 0.0))


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
