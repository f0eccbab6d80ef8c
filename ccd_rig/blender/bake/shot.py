# SPDX-License-Identifier: GPL-3.0-or-later
"""All frames of a bake evaluated and solved: after a preroll, forwards, backwards, or both ways joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import bpy
import numpy as np
from mathutils import Quaternion

from ...errors import RigError
from ...maths import batch
from ...maths.batch import Array
from ...settings import SolverSettings
from ...skeleton.pose import Pose
from ...skeleton.pose_library import PoseEntry
from ..properties.constraint_values import Constraint
from ..rig.armature import RigLayout
from ..scene import evaluation
from ..scene.evaluation import FrameSample
from ..scene.isolation import SharedScene
from ..solve.solving import FrameSolveSettings, Solution, base_pose
from ..solve.walking import solve_frame
from . import body_shift, frame_selection, originals, travel
from .bake_frames import BakeFrames, Solutions
from .frame_solver import FrameSolver
from .loops import Ends, note_loop
from .progress import Progress, Steps, shown
from .rebake import keep_baked
from .recorder import FrameRecorder
from .settings import BakeSettings, Order, Start
from .start import StartPoses

BLEND = 8
"""Frames on either side of where both ways meet that go over from one to the other."""
SAME = 1e-3
"""Radians: poses that differ by less are one, and are not solved once more."""
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
        solved: gives what was solved elsewhere, of frames that are solved forwards and plant nothing; or
            None.
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
        yield from shown(body_shift.move_body(bake_frames, planted, shot.settings), moving, counts=True)
    if task.walks_on:
        body_shift.key_root_bone(bake_frames)
    if shot.backwards:
        yield from _solve_backwards(shot, bake_frames)
    yield Progress(shot.frames[-1], shot.total, shot.total)
    bake_frames = bake_frames.without_first(shot.preroll)
    if shot.ends is not None and shot.solver is not None:
        note_loop(bake_frames, shot.ends, shot.settings.reference, shot.solver)
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
        forwards: whether frames are solved as they are evaluated.
        backwards: whether they are solved from the last to the first, after that.
        samples: row and sample of each solved frame, where they are needed once more.
        ends: of the keyed range, once they are evaluated.
        solver: that of the way forwards, once it is through.
    """

    task: Task
    settings: FrameSolveSettings
    frames: Sequence[float]
    solved: Sequence[float]
    preroll: int
    forwards: bool
    backwards: bool
    samples: list[tuple[int, FrameSample]] = field(default_factory=list)
    ends: Ends | None = None
    solver: FrameSolver | None = None

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
            FrameSolveSettings(task.solver, settings.error_reduction, task.poses, reference),
            before + keyed,
            before + solved,
            len(before),
            settings.order is not Order.BACKWARDS,
            settings.order is not Order.FORWARDS,
        )

    @property
    def total(self) -> int:
        """Frames to solve, those on the way back counted once more."""
        return len(self.solved) * (self.forwards + self.backwards)

    def progress(self, frame: float, solver: FrameSolver, before: int = 0) -> Progress:
        """How far the solver is, beside the frames that were solved `before`."""
        return Progress(frame, before, self.total, tally=solver.tally)


def _evaluate(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    shot: _Shot,
    check: Callable[[BakeFrames], None],
) -> Steps[BakeFrames]:
    """Evaluate all frames, and solve them forwards if they are; see `solve`."""
    task, due, done = shot.task, frozenset(shot.solved), 0
    recorder: FrameRecorder | None = None
    solver: FrameSolver | None = None
    first: FrameSample | None = None
    after: FrameSample | None = None
    known = task.constraints, task.layout, task.shared
    with evaluation.frames(scene, armature_object, *known) as sample_at:
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
                if shot.backwards and bake_frames.tracks is not None:
                    raise RigError("Planted bones are solved forwards only: set Frame Order to Forwards")
                recorder, solver = FrameRecorder(bake_frames), FrameSolver(bake_frames, shot.settings)
            recorder.store(row, sample)
            first = sample if row == shot.preroll else first
            if frame not in due:
                continue
            solves = shot.forwards and not task.walks_on and task.solved is None
            kept = not solves or solver.keep(row, sample)
            if not kept:
                yield from shown(solver.add(row, sample), shot.progress(frame, solver))
            if shot.backwards or task.keeps_body:
                shot.samples.append((row, sample))
            done += 1
            if task.shared is None or not kept:
                yield progress._replace(done=done)
        progress = progress._replace(done=done, meets=True)
        if task.shared is not None and task.shared.waits(armature_object, last):
            yield progress
        with suppress(RigError):  # a target may be nowhere beyond the range
            after = task.start.based(sample_at(last))
        if task.shared is not None:  # others come here too, and then all are solved together
            yield progress
    assert recorder is not None and solver is not None and first is not None  # a range is never empty
    if task.walks_on:  # how far the body has gone is known once all frames are evaluated
        shot.samples[:] = travel.walk_on(recorder.bake_frames, shot.samples)
        for row, sample in shot.samples:
            yield from shown(solver.add(row, sample), shot.progress(sample.frame, solver))
    yield from shown(solver.finish(), shot.progress(shot.frames[-1], solver))
    if task.solved is not None:
        recorder.bake_frames.restore(task.solved(recorder.bake_frames))
        solver.go_on_from(row, sample)
    shot.ends, shot.solver = Ends(first, sample, after), solver
    return recorder.bake_frames


def _solve_backwards(shot: _Shot, bake_frames: BakeFrames) -> Steps[None]:
    """Solve the frames from the last to the first, and join that with the way forwards if there is one."""
    forwards = bake_frames.solutions() if shot.forwards else None
    solver, before = FrameSolver(bake_frames, shot.settings), len(shot.solved) * shot.forwards
    for row, sample in reversed(shot.samples):
        yield from shown(solver.add(row, sample), shot.progress(shot.frames[row], solver, before))
        yield shot.progress(shot.frames[row], solver, before)
    yield from shown(solver.finish(), shot.progress(shot.frames[0], solver, before))
    if forwards is not None:
        for k in _join(bake_frames, shot.settings, forwards, shot.samples):
            yield Progress(shot.frames[shot.samples[k][0]], k + 1, len(shot.samples), "joined")


def _join(
    bake_frames: BakeFrames,
    settings: FrameSolveSettings,
    forwards: Solutions,
    samples: Sequence[tuple[int, FrameSample]],
) -> Iterator[int]:
    """Of the way forwards, the way back (in the bake's frames) and both joined keep the best: with the fewest
    frames not reached, and then with the smallest largest rotation from frame to frame.

    Yields the place of each sample that is solved once more.
    """
    backwards = bake_frames.solutions()
    angles = batch.angles_between(forwards.rotations, backwards.rotations, axis=-1).max(axis=1)
    meet, places = int(np.argmin(angles)), np.arange(len(samples))
    first, last = max(meet - BLEND, 0), min(meet + BLEND, len(samples) - 1)
    part = np.clip((places - first + 1) / (last - first + 2), 0.0, 1.0)
    part = part * part * (3.0 - 2.0 * part)
    part = np.where(angles > SAME, part, places >= meet)[:, None]
    part = np.broadcast_to(part, backwards.rotations.shape[:2])
    blended = batch.slerp(forwards.rotations, backwards.rotations, part, axis=-1)
    sides = {row: forwards if k < meet else backwards for k, (row, _) in enumerate(samples)}
    states = {row: side.states[row] for row, side in sides.items()}
    led = {row: side.ways[row] for row, side in sides.items() if row in side.ways}
    slides = np.where((places < meet)[:, None], forwards.slides, backwards.slides)
    bake_frames.restore(Solutions(blended, slides, states, led))
    for k in (first + np.flatnonzero(angles[first : last + 1] > SAME)).tolist():
        row, sample = samples[k]
        start = _warm_start_from(sample, blended[k])
        solution = solve_frame(sample, bake_frames.constraints, settings, start)
        ended = dict(zip(solution.active, solution.states, strict=True))
        bake_frames.store_solution(row, solution.pose, ended)
        yield k
    ways = (forwards, backwards, bake_frames.solutions())
    bake_frames.restore(min(ways, key=lambda way: (way.missed(), way.largest_rotation())))


def _warm_start_from(sample: FrameSample, rotations: Array) -> Solution:
    """As if the frame before had been solved to these rotations (J, 4)."""
    base = sample.reading.pose
    pose = Pose(tuple(map(Quaternion, rotations)), base.translations)
    return Solution(pose, sample.active, None, ())
