# SPDX-License-Identifier: GPL-3.0-or-later
"""All frames of a bake evaluated and solved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import bpy

from ...errors import RigError
from ...settings import SolverSettings
from ...skeleton.pose import Pose
from ...skeleton.pose_library import PoseEntry
from ..properties.constraint_values import Constraint
from ..rig.armature import RigLayout
from ..scene import evaluation
from ..scene.evaluation import FrameSample
from ..scene.isolation import SharedScene
from ..solve.frame_settings import FrameSolveSettings, base_pose
from . import body_shift, frame_selection, originals, travel
from .bake_frames import BakeFrames, Solutions
from .frame_solver import FrameSolver
from .loops import Ends, note_loop
from .progress import Progress, Steps, shown
from .rebake import keep_baked
from .recorder import FrameRecorder
from .settings import BakeSettings, Start
from .start import StartPoses

MARGINS = 16, 32, 64
"""Frames beyond a range that are solved with it where it takes them: more only where these are not enough."""

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
    """

    task: Task
    settings: FrameSolveSettings
    frames: Sequence[float]
    solved: Sequence[float]
    preroll: int
    samples: list[tuple[int, FrameSample]] = field(default_factory=list)

    @classmethod
    def of(cls, scene: bpy.types.Scene, armature_object: bpy.types.Object, task: Task) -> _Shot:
        settings = task.settings
        before: list[float] = [*settings.preroll_frames()]
        solved, keyed = frame_selection.frames(scene, armature_object, task.constraints, settings)
        # The body, or a part of a bone that is not held, moves between solved frames: feet would slip there.
        if task.keeps_body or not all(all(constraint.holds) for constraint in task.constraints):
            solved = keyed
        reference: Callable[[FrameSample], Pose] = base_pose
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
    task, due, done, solved = shot.task, frozenset(shot.solved), 0, 0.0
    recorder: FrameRecorder | None = None
    solver: FrameSolver | None = None
    first: FrameSample | None = None
    after: FrameSample | None = None
    known = task.constraints, task.layout, task.shared
    with evaluation.frames(scene, armature_object, *known) as sample_at:
        yield Progress(shot.frames[0], 0, len(shot.solved), "prepared")
        last = shot.frames[-1] + 1.0
        if task.shared is not None:
            task.shared.want(armature_object, [(frame,) for frame in (*shot.frames, last)])
        for row, frame in enumerate(shot.frames):
            progress = Progress(frame, done, len(shot.solved), "evaluated")
            if task.shared is not None and task.shared.waits(armature_object, frame):
                yield progress._replace(meets=True)
            sample = task.start.based(sample_at(frame))
            if recorder is None or solver is None:
                bake_frames = BakeFrames.empty(sample, task.constraints, shot.frames, shot.solved)
                check(bake_frames)
                recorder, solver = FrameRecorder(bake_frames), FrameSolver(bake_frames, shot.settings)
            recorder.store(row, sample)
            first = sample if row == shot.preroll else first
            if frame not in due:
                continue
            if not task.walks_on and task.solved is None:
                for part in solver.add(row, sample):
                    solved += part
                    yield Progress(frame, int(solved), len(shot.solved))
            if task.keeps_body:
                shot.samples.append((row, sample))
            done += 1
            if task.shared is None:
                yield progress._replace(done=done)
        progress = progress._replace(done=done, meets=True)
        if task.shared is not None and task.shared.waits(armature_object, last):
            yield progress
        with suppress(RigError):  # a target may be nowhere beyond the range
            after = task.start.based(sample_at(last))
        assert recorder is not None and solver is not None and first is not None  # a range is never empty
        bake_frames = recorder.bake_frames
        if task.walks_on:  # how far the body has gone is known once all frames are evaluated
            shot.samples[:] = travel.walk_on(bake_frames, shot.samples)
            for row, sample in shot.samples:
                for part in solver.add(row, sample):
                    solved += part
                    yield Progress(sample.frame, int(solved), len(shot.solved))
        ends, waits = Ends(first, sample, after), bake_frames.tracks is None and not shot.preroll
        if waits:  # a loop is solved round and round
            note_loop(bake_frames, ends, shot.settings.reference)
        solving = Progress(shot.frames[-1], int(solved), len(shot.solved))
        yield from shown(solver.finish(), solving)
        if waits and not bake_frames.is_loop:
            yield from _solve_beyond(shot, solver, lambda frame: task.start.based(sample_at(frame)), solving)
        if task.solved is not None:
            bake_frames.restore(task.solved(bake_frames))
        if not waits:
            note_loop(bake_frames, ends, shot.settings.reference)
        if task.shared is not None:  # all come here before any plays what it has solved
            yield progress
    return bake_frames


def _solve_beyond(
    shot: _Shot, solver: FrameSolver, sample_at: Callable[[float], FrameSample], progress: Progress
) -> Steps[None]:
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
            samples = []
            for k in range(1, count + 1):
                try:
                    samples.append(sample_at(edge + way * step * k))
                except RigError:  # a target may be nowhere beyond the range
                    break
                yield progress
            if samples:
                samples = samples[::way]
                frames = [sample.frame for sample in samples]
                beyond = BakeFrames.empty(samples[0], shot.task.constraints, frames, frames)
                recorder, sides[way] = FrameRecorder(beyond), FrameSolver(beyond, shot.settings)
                for row, sample in enumerate(samples):
                    recorder.store(row, sample)
                    for _ in sides[way].add(row, sample):
                        pass
        yield from shown(solver.solve_with(sides), progress)
