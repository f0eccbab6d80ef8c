# SPDX-License-Identifier: GPL-3.0-or-later
"""All frames of a bake evaluated and solved: after a preroll, forwards, backwards, or both ways joined."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import bpy
import numpy as np
from mathutils import Quaternion

from ...errors import RigError
from ...motion import interpolation
from ...settings import SolverSettings
from ...skeleton.pose import Pose
from ...skeleton.pose_library import PoseEntry
from ..properties.constraint_values import Constraint
from ..rig.armature import RigLayout
from ..scene import evaluation
from ..scene.evaluation import FrameSample
from ..solve.solving import ShotSolveSettings, Solution
from ..solve.walking import solve_frame
from . import again, frame_selection, originals
from .bake_frames import Array, BakeFrames, Solutions
from .frame_solver import FrameSolver
from .settings import BakeSettings, Order

BLEND = 8
"""Frames on either side of where both ways meet that go over from one to the other."""
SAME = 1e-3
"""Radians: poses that differ by less need no such way."""


class Progress(NamedTuple):
    """How far a bake is: of `total` frames `done` are solved, or soon to be; then what comes after that.

    Attributes:
        frame: the frame that was looked at last.
        done: how many frames are done, in this part of the bake.
        total: of how many.
        verb: what was done with them, such as "solved".
    """

    frame: float
    done: int
    total: int
    verb: str = "solved"

    def words(self, seconds: float) -> str:
        """Such as "frame 30: 30 of 120 solved, about 4 s left", this part having taken `seconds` so far."""
        left = seconds * (self.total - self.done) / max(self.done, 1)
        rest = f", about {left:.0f} s left" if self.done > 0 and seconds > 0.0 else ""
        return f"frame {self.frame:g}: {self.done} of {self.total} {self.verb}{rest}"


class Task(NamedTuple):
    """What is solved, and how; the layout is of the constraints' bones.

    With `again` what plays was baked in just this way, and stays if it is still right.
    """

    constraints: Sequence[Constraint]
    layout: RigLayout
    settings: BakeSettings
    solver: SolverSettings
    poses: Sequence[PoseEntry]
    again: bool = False


def solve(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    task: Task,
    check: Callable[[BakeFrames], None],
) -> Generator[Progress, None, BakeFrames]:
    """Evaluate and solve all frames; an item after each frame to solve, and after longer work on many.

    Args:
        scene: where targets and armature are evaluated.
        armature_object: carries the constraints.
        task: what is solved.
        check: called with the take when its bones are known, before anything is solved; may raise.

    Returns:
        The take of the frames that get keys.
    """
    settings, solver = task.settings, task.solver
    before: list[float] = [*settings.preroll_frames()]
    solved, keyed = frame_selection.frames(scene, armature_object, task.constraints, settings)
    frames, due = before + keyed, before + solved
    forwards, backwards = settings.order is not Order.BACKWARDS, settings.order is not Order.FORWARDS
    total, done, asked = len(due) * (1 + backwards), 0, frozenset(due)
    take = frame_solver = None
    time = frame_selection.key_time(scene)
    based = originals.base_from(armature_object, time) if settings.from_original else lambda sample: sample
    recipe = ShotSolveSettings(
        solver, settings.error_reduction, task.poses, originals.reference_from(armature_object, time)
    )
    later: list[tuple[int, FrameSample]] = []
    with evaluation.frames(scene, armature_object, task.constraints, task.layout) as sample_at:
        for row, frame in enumerate(frames):
            sample = based(sample_at(frame))
            if take is None or frame_solver is None:
                take = BakeFrames.empty(sample, task.constraints, frames, due)
                check(take)
                if backwards and take.tracks is not None:
                    raise RigError("Planted bones are solved forwards only: set Order to Forwards")
                frame_solver = FrameSolver(take, recipe)
            take.store(row, sample)
            if frame in asked:
                if forwards:
                    for _ in frame_solver.add(row, sample):
                        yield Progress(frame, done, total)
                if backwards:
                    later.append((row, sample))
                done += 1
                yield Progress(frame, done, total)
    assert take is not None and frame_solver is not None  # a range is never empty
    for _ in frame_solver.finish():
        yield Progress(frames[-1], done, total)
    if later:
        there = take.solutions() if forwards else None
        frame_solver = FrameSolver(take, recipe)
        for row, sample in reversed(later):
            for _ in frame_solver.add(row, sample):
                yield Progress(frames[row], done, total)
            done += 1
            yield Progress(frames[row], done, total)
        for _ in frame_solver.finish():
            yield Progress(frames[0], done, total)
        if there is not None:
            _join(take, recipe, there, later)
    take = take.without_first(len(before))
    if task.again and take.tracks is None:
        again.keep(take, solver)
    return take


def _join(
    take: BakeFrames, recipe: ShotSolveSettings, there: Solutions, samples: Sequence[tuple[int, FrameSample]]
) -> None:
    """Of the way forwards (`there`), the way back (in the take) and both joined keep the best: with the
    fewest frames not reached, and then with the smallest largest turn from frame to frame."""
    back = take.solutions()
    apart = interpolation.angles_between(there.rotations, back.rotations).max(axis=1)
    meet, places = int(np.argmin(apart)), np.arange(len(samples))
    first, last = max(meet - BLEND, 0), min(meet + BLEND, len(samples) - 1)
    part = np.clip((places - first + 1) / (last - first + 2), 0.0, 1.0)
    part = (part * part * (3.0 - 2.0 * part))[:, None]
    blended = interpolation.slerp(
        there.rotations, back.rotations, np.broadcast_to(part, back.rotations.shape[:2])
    )
    states = {row: (there if k < meet else back).states[row] for k, (row, _) in enumerate(samples)}
    slides = np.where((places < meet)[:, None], there.slides, back.slides)
    take.restore(Solutions(blended, slides, states))
    if apart[meet] > SAME:
        for k in range(first, last + 1):
            row, sample = samples[k]
            start = _guessed(sample, blended[k])
            found = solve_frame(sample, take.constraints, recipe, start)
            take.store_solution(row, found.pose, dict(zip(found.active, found.states, strict=True)))
    ways = (there, back, take.solutions())
    take.restore(min(ways, key=lambda way: (way.missed(), way.largest_rotation())))


def _guessed(sample: FrameSample, rotations: Array) -> Solution:
    """As if the frame before had been solved to these rotations (J, 4)."""
    base = sample.reading.pose
    pose = Pose(tuple(map(Quaternion, rotations)), base.translations)
    active = tuple(c for c, influence in enumerate(sample.influences) if influence > 0.0)
    return Solution(pose, active, None, ())
