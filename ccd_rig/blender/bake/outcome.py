# SPDX-License-Identifier: GPL-3.0-or-later
"""How a bake came out, as its report says it: measured after the keys are written."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import bpy
import numpy as np

from ...maths.batch import Array
from ...settings import SolveStatus
from ...solvers.stepping import Work
from ..properties.body import Body
from . import body_shift, measuring
from .bake_frames import BakeFrames
from .baked import Baked
from .drifting import body_drift
from .entries import STATUSES, Entries
from .finding import Finding, Trouble
from .findings import findings
from .foot_slip import foot_slips
from .keyed_motion import KeyedMotion, rotated_joints
from .loops import loop
from .report_parts import (
    SLERPED,
    BodyReport,
    FootSlip,
    LargestRotation,
    Loop,
    Smoothed,
    WeightedFit,
    number,
)
from .shot import Task
from .weighted_fits import weighted_fit


class Outcome(NamedTuple):
    """Fields of `BakeReport`; see there."""

    entries: Entries
    largest_rotation: LargestRotation | None
    foot_slips: tuple[FootSlip, ...]
    fit: WeightedFit | None
    smoothed: tuple[Smoothed, ...]
    body: BodyReport | None
    loop: Loop | None
    findings: tuple[Finding, ...]

    @classmethod
    def of(
        cls,
        scene: bpy.types.Scene,
        armature_object: bpy.types.Object,
        motion: KeyedMotion,
        task: Task,
        body: Body | None,
    ) -> Work[Outcome]:
        """How each constraint stands at each frame in what is keyed, and at full influence.

        An item comes after each constraint.

        Args:
            scene: in which the armature plays.
            armature_object: plays the keys.
            motion: what is keyed.
            task: of the bake.
            body: what becomes of the body, where bones are planted.
        """
        bake_frames = motion.bake_frames
        rotation = measuring.largest_rotation(bake_frames, motion.keyed, rotated_joints(bake_frames))
        yield
        distances, angles, lost = yield from measuring.misses(motion, task.solver)
        for row, states in bake_frames.states.items():
            bake_frames.states[row] = {
                c: SolveStatus.OPTIMAL.name if lost[row, c] else state for c, state in states.items()
            }
        keyed = yield from measuring.residuals(bake_frames, motion.keyed)
        entries = _entries(bake_frames, (distances, angles), keyed)
        yield
        slips = foot_slips(scene, armature_object, bake_frames, entries)
        baked = Baked.of(bake_frames, motion.keyed, task.solver, (distances, angles))
        yield
        frames_per_second = scene.render.fps / scene.render.fps_base
        found = yield from findings(baked, slips, task.settings.ground, frames_per_second)
        circle = loop(baked)
        yield
        if circle is not None and not circle.closes:
            ends = circle.frame_start, circle.frame_end, circle.frame_end
            found += (Finding(Trouble.LOOP, "", circle.bone, *ends, angle=circle.angle),)
        body_report = None if body is None else _body_report(motion, task, body)
        if body_report is not None and body_report.drift is not None:
            found += body_report.drift.findings()
        return cls(
            entries,
            None if rotation is None else LargestRotation(*rotation),
            slips,
            weighted_fit(bake_frames, distances),
            _smoothed(bake_frames),
            body_report,
            circle,
            found,
        )


def _body_report(motion: KeyedMotion, task: Task, body: Body) -> BodyReport:
    drift = body_drift(motion.bake_frames, motion.keyed)
    return body_shift.report_of(motion.bake_frames, body, task.body_obstacle, drift)


def _entries(bake_frames: BakeFrames, missed: tuple[Array, Array], keyed: tuple[Array, Array]) -> Entries:
    """One for each constraint in force at each frame.

    Args:
        bake_frames: all that is solved.
        missed, keyed: (F, C) distances and angles from what is asked for, and of what is keyed.
    """
    in_force = np.nonzero(bake_frames.influences > 0.0)  # by frame, then in the order of the constraints
    columns = (missed[0], keyed[0], bake_frames.influences, missed[1], keyed[1])
    codes, states = {name: code for code, name in enumerate(STATUSES)}, bake_frames.states
    rows, constraints = (each.tolist() for each in in_force)
    ended = [codes[states[f][c] if f in states else SLERPED] for f, c in zip(rows, constraints, strict=True)]
    return Entries(
        tuple(constraint.name for constraint in bake_frames.constraints),
        bake_frames.frames[in_force[0]],
        in_force[1].astype(np.int16),
        np.array(ended, np.uint8),
        *(each[in_force] for each in columns),
    )


def _smoothed(bake_frames: BakeFrames) -> tuple[Smoothed, ...]:
    """One for each run of solved frames in which the same constraints are smoothed."""
    names = [constraint.name for constraint in bake_frames.constraints]
    spans: list[Smoothed] = []
    latest: dict[tuple[int, ...], int] = {}  # places of the runs that the frame before is of
    for row in sorted(bake_frames.states):
        frame, present = number(bake_frames.frames[row]), {}
        for group in bake_frames.smoothed.get(row, ()):
            place = present[group.constraints] = latest.get(group.constraints, len(spans))
            if place == len(spans):
                who = tuple(names[c] for c in group.constraints)
                spans.append(Smoothed(who, frame, frame, group.angle))
            angle = max(spans[place].angle, group.angle)
            spans[place] = replace(spans[place], frame_end=frame, angle=angle)
        latest = present
    return tuple(spans)
