# SPDX-License-Identifier: GPL-3.0-or-later
"""All frames of a bake evaluated and solved."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import bpy
import numpy as np
from mathutils import Quaternion

from ...errors import RigError
from ...limits.shapes import contains
from ...maths.batch import Array, unit
from ...settings import SolverSettings, SolveStatus
from ...skeleton.pose_library import PoseEntry
from ...solvers.stepping import result_of
from ..properties.constraint_values import Constraint
from ..rig.armature import RigLayout
from ..scene import evaluation
from ..scene.evaluation import Frames, FrameSample, Samples, Shown
from ..scene.isolation import SharedScene
from ..solve.frame_settings import FrameSolveSettings, Reference, base_rotations
from ..solve.methods import SINGLE_PASS
from . import body_shift, frame_selection, measuring, start, travel
from .bake_frames import BakeFrames, Motion, Solutions
from .group_solving import Batch, solve_batches
from .keyed_motion import base_motion, keyed_motion, rotated_joints
from .loops import Ends, note_loop
from .planted_solver import WAITING_AT_MOST, PlantedSolver, ground_below
from .progress import Progress, Steps, shown
from .settings import BakeSettings, Start
from .start import StartPoses

NEAR = 0.1
"""Part of the tolerances by which a motion that stays may be farther off: keys are rounded."""
FAR = 0.05
"""Part of its distance by which one that misses its target may be farther off, and a tolerance more."""
INSIDE = 1e-5
"""Radians outside a limit that are rounding of keys."""


def keep_baked(bake_frames: BakeFrames, solver: SolverSettings) -> None:
    """Put the base poses in place of what was solved, if they are as near everywhere.

    From a baked motion a solve starts elsewhere than from the one before it, so it would lead to another
    motion that is no better.

    Args:
        bake_frames: all of it is solved; nothing is planted.
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
    # Where nothing is reached, what counts is the farthest: constraints that pull against each other trade.
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
    """(F, C) how far off constraints are, in tolerances; 0 where they are not in force."""
    distances, angles = result_of(measuring.residuals(bake_frames, motion))
    misses = np.maximum(distances / tolerances[0], angles / tolerances[1])
    return np.asarray(np.where(bake_frames.influences > 0.0, misses, 0.0))


def _leaves_limits(bake_frames: BakeFrames) -> bool:
    """Whether a base pose of the joints that are keyed breaks a limit."""
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


Parts = Generator[float, None, None]
"""Work that gives the number of frames that are solved now and then."""


class _Run(NamedTuple):
    """Frames in a row with the same constraints in force, the same limits, slides and coupled offsets.

    Attributes:
        shared: what they share.
        rows: of the bake's frames.
        samples: of all of them where those are needed, else of the first.
    """

    shared: tuple[object, ...]
    rows: list[int]
    samples: list[FrameSample]


@dataclass
class FrameSolver:
    """Solves the frames of a bake, and keeps the solutions there.

    Attributes:
        bake_frames: its rows are stored before they come here.
        settings: how they are solved.
        iterations: most steps of a frame.
    """

    bake_frames: BakeFrames
    settings: FrameSolveSettings
    iterations: int = 0
    _runs: list[_Run] = field(default_factory=list)
    _waiting: list[tuple[int, FrameSample]] = field(default_factory=list)  # with planted bones
    _planted: PlantedSolver = field(init=False)

    def __post_init__(self) -> None:
        self._planted = PlantedSolver(self.settings)

    def add_planted(self, row: int, sample: FrameSample) -> Parts:
        """The next frame to solve of those with planted bones: solved now, or with others."""
        tracks = self.bake_frames.tracks
        assert tracks is not None
        self._waiting.append((row, sample))
        keeps_body = tracks.support_chains.keeps_body  # its samples are needed again anyway
        if len(self._waiting) >= WAITING_AT_MOST and not keeps_body:
            yield from self.finish()

    def add(self, row: int, samples: Samples, k: int) -> None:
        """The next frame to solve, frame `k` of samples: solved with others in the end."""
        bake_frames = self.bake_frames
        in_force = (bake_frames.influences[row] > 0.0).tobytes()
        shared = in_force, bake_frames.limits[row], bake_frames.shifting[row]
        is_new = not self._runs or self._runs[-1].shared != shared
        if is_new:
            self._runs.append(_Run(shared, [], []))
        run = self._runs[-1]
        run.rows.append(row)
        if is_new or any(each.method in SINGLE_PASS for each in bake_frames.constraints):
            run.samples.append(samples[k])

    def finish(self) -> Parts:
        """Solve the frames that wait."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            yield from self._planted.solve(self.bake_frames, waiting)
            self.iterations = max(self.iterations, self._planted.iterations)
        if self._runs:
            yield from self.solve_with({})

    def moved_ends(self, beyond: Mapping[int, FrameSolver]) -> tuple[bool, bool]:
        """Whether neighbours have moved the first and the last frame.

        With frames beyond these on a side (-1 before, 1 after; see `solve_with`) it is the outermost of them.
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

    def solve_with(self, beyond: Mapping[int, FrameSolver]) -> Parts:
        """Solve all runs as one motion, together with frames before (-1) and after (1) them."""
        solvers = [each for each in (beyond.get(-1), self, beyond.get(1)) if each is not None]
        runs = [(solver, run) for solver in solvers for run in solver._runs]
        batches = [solver._batch(run) for solver, run in runs]
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

    def _batch(self, run: _Run) -> Batch:
        """The rows of a run as they are before they are solved."""
        return Batch.of(self.bake_frames, np.array(run.rows, dtype=np.intp), run.samples, self.settings)


MARGINS = 16, 32, 64
"""Frames beyond a range that are solved with it where it takes them: more only where these are not enough."""
BLOCK = 256
"""Frames that are kept as they are shown, until all of them are read at once."""

SolvedElsewhere: TypeAlias = Callable[[BakeFrames], Solutions]
"""Gives what all frames to solve were solved to before; it may raise."""


class Task(NamedTuple):
    """What is solved, and how.

    Attributes:
        constraints: those that are baked.
        layout: of their bones.
        start: where each frame starts from.
        settings: what to bake.
        solver: position tolerance in world metres.
        poses: the pose library.
        is_rebake: what plays was baked in just this way, and stays if it is still right.
        body_obstacle: what keeps a body that keeps its animation from being moved where a leg is too short;
            empty if nothing does.
        walks_on: whether planted bones carry a body that keeps its animation along the ground.
        shared: where frames are evaluated for other armatures too, or None.
        solved: gives what was solved elsewhere, of frames that plant nothing; or None.
    """

    constraints: Sequence[Constraint]
    layout: RigLayout
    start: StartPoses
    settings: BakeSettings
    solver: SolverSettings
    poses: Sequence[PoseEntry]
    is_rebake: bool = False
    body_obstacle: str = ""
    walks_on: bool = False
    shared: SharedScene | None = None
    solved: SolvedElsewhere | None = None

    @property
    def keeps_body(self) -> bool:
        """Whether bones are planted, and the root bone keeps its animation."""
        return any(constraint.keeps_body for constraint in self.constraints)


def solve(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    task: Task,
    check: Callable[[BakeFrames], None],
) -> Steps[BakeFrames]:
    """Evaluate and solve all frames; an item after each frame to solve, and after longer work on many.

    Args:
        scene: where targets and armature are evaluated.
        armature_object: carries the constraints.
        task: what is solved.
        check: called with the frames when their bones are known, before anything is solved; may raise.

    Returns:
        The frames that get keys.
    """
    shot = _Shot.of(scene, armature_object, task)
    bake_frames = yield from _evaluate(scene, armature_object, shot, check)
    planted = shot.samples if task.keeps_body else []
    if planted and task.body_obstacle:
        body_shift.note_short_legs(bake_frames, planted, shot.preroll)
    elif planted:
        moving = Progress(shot.frames[planted[0][0]], 0, len(planted), "solved with the body moved")
        yield from shown(body_shift.move_body(bake_frames, planted, shot.settings), moving)
    if task.walks_on:
        body_shift.key_root_bone(bake_frames)
    yield Progress(shot.frames[-1], len(shot.solved), len(shot.solved))
    bake_frames = bake_frames.without_first(shot.preroll)
    if task.is_rebake and bake_frames.tracks is None:
        keep_baked(bake_frames, task.solver)
    return bake_frames


@dataclass
class _Shot:
    """What is known before the first frame, and the samples that are solved.

    Attributes:
        task: what is solved.
        settings: how each frame is.
        frames: those to evaluate, increasing.
        solved: those of them to solve.
        preroll: how many of them come before the first keyed frame.
        samples: row and sample of each solved frame, where they are needed once more.
        first, last: the first keyed frame and the last one so far, as evaluated, with their base poses.
        blocks: frames with planted bones as evaluated, with their base poses, each with the row of its first.
    """

    task: Task
    settings: FrameSolveSettings
    frames: Sequence[float]
    solved: Sequence[float]
    preroll: int
    samples: list[tuple[int, FrameSample]] = field(default_factory=list)
    blocks: list[tuple[int, Samples]] = field(default_factory=list)
    _solver: FrameSolver | None = None
    _filled: int = 0  # rows that are kept
    first: Samples | None = None
    last: Samples | None = None

    @property
    def solver(self) -> FrameSolver:
        """Solves the frames and keeps them; it is there from the first of them on."""
        assert self._solver is not None
        return self._solver

    def keep(self, samples: Samples) -> None:
        """Keep the next frames as evaluated, with their base poses."""
        based = self.task.start.based(samples)
        if self._solver is None:
            frames = BakeFrames.empty(based, self.task.constraints, self.frames, self.solved)
            self._solver = FrameSolver(frames, self.settings)
        row, self._filled = self._filled, self._filled + len(based)
        if row <= self.preroll < self._filled:
            self.first = based.at(self.preroll - row)
        self.last = based.at(len(based) - 1)
        self._solver.bake_frames.store(row, based, self.settings.reference(based))
        if self._solver.bake_frames.tracks is not None:
            self.blocks.append((row, based))
        elif self.task.solved is None:
            for place, k in self._due(row, based):
                self._solver.add(place, based, k)

    def planted_frames(self) -> Iterator[tuple[int, FrameSample]]:
        """Row and sample of the frames with planted bones that are solved."""
        for row, samples in self.blocks:
            yield from ((place, samples[k]) for place, k in self._due(row, samples))

    def _due(self, row: int, samples: Samples) -> list[tuple[int, int]]:
        """Rows to solve among those of samples from a row on, and their places in these."""
        return [(row + k, k) for k in np.flatnonzero(np.isin(samples.frames, self.solved)).tolist()]

    @classmethod
    def of(cls, scene: bpy.types.Scene, armature_object: bpy.types.Object, task: Task) -> _Shot:
        settings = task.settings
        before: list[float] = [*settings.preroll_frames()]
        solved, keyed = frame_selection.frames(scene, armature_object, task.constraints, settings)
        # The body, or a part of a bone that is not held, moves between solved frames: feet would slip there.
        moves = any(each.on_ground or not all(each.holds) for each in task.constraints)
        if task.keeps_body or moves:
            solved = keyed
        reference: Reference = base_rotations
        if settings.start in (Start.ACTION, Start.ORIGINAL):
            reference = start.reference_from(armature_object, frame_selection.key_time(scene))
        return cls(
            task,
            FrameSolveSettings(
                task.solver, settings.error_reduction, task.poses, reference, settings.smoothness
            ),
            before + keyed,
            before + solved,
            len(before),
        )


def _evaluate(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    shot: _Shot,
    check: Callable[[BakeFrames], None],
) -> Steps[BakeFrames]:
    """Evaluate all frames, and solve them; see `solve`."""
    task, solved = shot.task, 0.0
    with evaluation.frames(scene, armature_object, task.constraints, task.layout, task.shared) as frames:
        ends = yield from _sample(armature_object, shot, frames, check)
        solver = shot.solver
        bake_frames = solver.bake_frames
        if bake_frames.tracks is not None:
            bake_frames.tracks.ground = ground_below(scene, armature_object, bake_frames, bake_frames.frames)
        planted: Iterable[tuple[int, FrameSample]] = shot.planted_frames()
        if task.keeps_body:
            planted = shot.samples = list(planted)
        if task.walks_on:  # how far the body has gone is known once all frames are evaluated
            planted = shot.samples = travel.walk_on(bake_frames, shot.samples)
        solving = Progress(shot.frames[-1], 0, len(shot.solved))
        for row, sample in planted:
            for part in solver.add_planted(row, sample):
                solved += part
                yield solving._replace(done=int(solved))
        waits = bake_frames.tracks is None and not shot.preroll
        if waits:  # a loop is solved round and round
            note_loop(bake_frames, ends, shot.settings.reference)
        solving = solving._replace(done=int(solved))
        yield from shown(solver.finish(), solving)
        if waits and not bake_frames.is_loop:
            yield from _solve_beyond(shot, solver, frames, solving)
        if task.solved is not None:
            bake_frames.restore(task.solved(bake_frames))
        if not waits:
            note_loop(bake_frames, ends, shot.settings.reference)
        if task.shared is not None:  # all come here before any plays what it has solved
            yield Progress(shot.frames[-1], len(shot.solved), len(shot.solved), "evaluated", meets=True)
    return bake_frames


def _sample(
    armature_object: bpy.types.Object,
    shot: _Shot,
    frames: Frames,
    check: Callable[[BakeFrames], None],
) -> Steps[Ends]:
    """Evaluate all frames into `shot`."""
    task, done, shared = shot.task, 0, shot.task.shared
    yield Progress(shot.frames[0], 0, len(shot.solved), "prepared")
    beyond, due = shot.frames[-1] + 1.0, frozenset(shot.solved)
    if shared is not None:
        shared.want(armature_object, [(frame,) for frame in (*shot.frames, beyond)])
    waiting: list[Shown] = []
    for row, frame in enumerate(shot.frames):
        progress = Progress(frame, done, len(shot.solved), "evaluated")
        if shared is not None and shared.waits(armature_object, frame):
            yield progress._replace(meets=True)
        now = frames.look(frame)
        if waiting and (len(waiting) == BLOCK or now.layout is not waiting[0].layout):
            shot.keep(frames.samples(waiting))
            waiting = []
        waiting.append(now)
        if row == 0:
            shot.keep(frames.samples(waiting))
            check(shot.solver.bake_frames)
            waiting = []
        if frame in due:
            done += 1
            if shared is None:
                yield progress._replace(done=done)
    if waiting:
        shot.keep(frames.samples(waiting))
    if shared is not None and shared.waits(armature_object, beyond):
        yield progress._replace(done=done, meets=True)
    after: Samples | None = None
    with suppress(RigError):  # a target may be nowhere beyond the range
        after = task.start.based(frames.samples([frames.look(beyond)]))
    assert shot.first is not None and shot.last is not None  # a range is never empty
    return Ends(shot.first, shot.last, after)


def _solve_beyond(shot: _Shot, solver: FrameSolver, frames: Frames, progress: Progress) -> Steps[None]:
    """Solve the ends of a range together with frames beyond it, where a sudden turn is smoothed up to there.

    So frames have the poses that they would have in any longer range.
    """
    step = shot.task.settings.step
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
                beyond.store(0, samples, shot.settings.reference(samples))
                sides[way] = FrameSolver(beyond, shot.settings)
                for row in range(len(times)):
                    sides[way].add(row, samples, row)
        yield from shown(solver.solve_with(sides), progress)


def _reachable(frames: Frames, there: Sequence[Shown], way: int) -> Samples | None:
    """Frames from an edge on as far as all that is asked for is there, in order of time; None: not one."""
    for count in range(len(there), 0, -1):
        with suppress(RigError):  # a target may be nowhere beyond the range
            return frames.samples(there[:count][::way])
    return None
