# SPDX-License-Identifier: GPL-3.0-or-later
"""All frames of a bake evaluated and solved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import bpy
import numpy as np

from ...errors import RigError
from ...settings import SolverSettings
from ...skeleton.pose_library import PoseEntry
from ..properties.constraint_values import Constraint
from ..rig.armature import RigLayout
from ..scene import evaluation
from ..scene.evaluation import Frames, FrameSample, Samples, Shown
from ..scene.isolation import SharedScene
from ..solve.frame_settings import FrameSolveSettings, Reference, base_rotations
from . import body_shift, frame_selection, originals, travel
from .bake_frames import BakeFrames, Solutions
from .frame_solver import FrameSolver
from .loops import Ends, note_loop
from .progress import Progress, Steps, shown
from .rebake import keep_baked
from .settings import BakeSettings, Start
from .start import StartPoses

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
        if task.keeps_body or not all(all(constraint.holds) for constraint in task.constraints):
            solved = keyed
        reference: Reference = base_rotations
        if settings.start in (Start.ACTION, Start.ORIGINAL):
            reference = originals.reference_from(armature_object, frame_selection.key_time(scene))
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
                try:
                    there.append(frames.look(edge + way * step * k))
                    frames.samples(there[-1:])
                except RigError:  # a target may be nowhere beyond the range
                    del there[k - 1 :]
                    break
                yield progress
            if there:
                samples = shot.task.start.based(frames.samples(there[::way]))
                times = samples.frames.tolist()
                beyond = BakeFrames.empty(samples, shot.task.constraints, times, times)
                beyond.store(0, samples, shot.settings.reference(samples))
                sides[way] = FrameSolver(beyond, shot.settings)
                for row in range(len(times)):
                    sides[way].add(row, samples, row)
        yield from shown(solver.solve_with(sides), progress)
