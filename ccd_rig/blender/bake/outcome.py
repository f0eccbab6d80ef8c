# SPDX-License-Identifier: GPL-3.0-or-later
"""The outcome of a bake for its report, measured after the keys are written."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import bpy
import numpy as np

from ...maths.batch import Array, angles_between, inverse, length, move, unit
from ...motion.ground import Ground, LevelGround
from ...settings import SolveStatus
from ...solvers.stepping import Work
from ..properties.body import Body
from ..scene.evaluation import PlayedFrame, playback
from ..scene.ground import rig_ground
from ..scene.targets import orthonormals
from ..solve.methods import groups
from . import body_motion, measuring
from .bake_frames import BakeFrames
from .findings import Baked, findings, loop
from .keyed_motion import KeyedMotion, rotated_joints
from .report import (
    EASED,
    GAVE_WAY,
    SLERPED,
    STATUSES,
    BodyReport,
    Entries,
    Finding,
    FootSlip,
    FrameFit,
    Helped,
    LargestRotation,
    Loop,
    Smoothed,
    Trouble,
    WeightedFit,
    number,
)
from .shot import Task


def foot_slips(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    bake_frames: BakeFrames,
    entries: Entries,
) -> tuple[FootSlip, ...]:
    """Slips of planted bones in playback, one per constraint that plants a bone.

    Args:
        scene: in which the armature plays.
        armature_object: plays the keys, which are written.
        bake_frames: of `keyed_motion`, with the targets of planted bones where these are held.
        entries: errors by the keys.
    """
    if bake_frames.tracks is None:
        return ()
    planting = [
        c for c in bake_frames.tracks.support_chains.constraints if (bake_frames.influences[:, c] > 0.0).any()
    ]
    frames = bake_frames.frames.astype(int).tolist()
    tips = {c: armature_object.pose.bones.find(bake_frames.constraints[c].tip) for c in planting}
    played: list[PlayedFrame] = []
    rows: dict[int, list[tuple[int, int]]] = {c: [] for c in planting}  # of played, and of baked frames
    with playback(scene, armature_object, bake_frames.constraints) as playing:
        for frame in range(frames[0], frames[-1] + 1):
            planted = _planted(bake_frames, planting, frames, frame)
            if planted:
                for c, f in planted.items():
                    rows[c].append((len(played), f))
                played.append(playing.play(float(frame), False))
        worlds = playing.worlds(played)
    slips = []
    for c in planting:
        at, baked = np.array(rows[c], np.int64).reshape(-1, 2).T
        ends = worlds[at] @ np.array([played[k].matrices[tips[c]] for k in at]).reshape(-1, 4, 4)
        held = np.array([bake_frames.tracks.worlds[f] for f in baked]).reshape(-1, 4, 4)
        heads = move(held, bake_frames.targets.points[baked, c])
        away = length(ends[:, :3, 3] - heads, axis=-1)
        turned = orthonormals(inverse(held)[:, :3, :3] @ ends[:, :3, :3])
        wanted = unit(bake_frames.targets.rotations[baked, c], axis=-1)
        worst = len(away) - 1 - int(np.argmax(away[::-1])) if len(away) else 0
        slips.append(
            FootSlip(
                bake_frames.constraints[c].name,
                float(entries.keyed_residual[entries.constraint == c].max()),
                float(entries.keyed_angle[entries.constraint == c].max()),
                float(away.max(initial=0.0)),
                float(angles_between(turned, wanted, axis=-1).max(initial=0.0)),
                int(played[at[worst]].frame) if len(away) else frames[0],
            )
        )
    return tuple(slips)


def _planted(
    bake_frames: BakeFrames, planting: Sequence[int], frames: Sequence[int], frame: int
) -> dict[int, int]:
    """Constraints whose bone is planted at a frame, each with the row of `bake_frames` of its place.

    Between two keys a bone is planted if both hold it, without a target and in all components.
    """
    after = bisect.bisect_left(frames, frame)
    if frames[after] == frame:
        return {c: after for c in planting if bake_frames.influences[after, c] > 0.0}
    return {
        c: after
        for c in planting
        if min(bake_frames.influences[after - 1 : after + 1, c]) > 0.0
        and not bake_frames.constraints[c].target
        and all(bake_frames.constraints[c].holds)
    }


def weighted_fit(bake_frames: BakeFrames, distances: Array) -> WeightedFit | None:
    """Weighted fit of conflicting constraints at solved frames that miss targets; None without such frames.

    `distances`: (F, C) world metres. A conflict counts at a frame if one of its constraints is missed.
    """
    if not _conflicts(bake_frames, tuple(range(len(bake_frames.constraints)))):
        return None
    fits, square, weights = [], 0.0, 0.0
    known: dict[tuple[int, ...], list[list[int]]] = {}
    for f, states in sorted(bake_frames.states.items()):
        active = tuple(c for c in states if bake_frames.influences[f, c] > 0.0)
        if active not in known:
            known[active] = _conflicts(bake_frames, active)
        missed = {c for c in active if states[c] not in (SolveStatus.CONVERGED.name, GAVE_WAY, EASED)}
        members = [c for conflict in known[active] if missed.intersection(conflict) for c in conflict]
        if not members:
            continue
        targets, rows = bake_frames.targets, bake_frames.constraints
        each = np.array([dict(targets.settings(f, c)).get("weight", rows[c].weight) for c in members])
        error = float((each * distances[f, members] ** 2).sum())
        fits.append(FrameFit(number(bake_frames.frames[f]), float(np.sqrt(error / each.sum()))))
        square, weights = square + error, weights + float(each.sum())
    return WeightedFit(float(np.sqrt(square / weights)), tuple(fits)) if fits else None


def _conflicts(bake_frames: BakeFrames, active: tuple[int, ...]) -> list[list[int]]:
    """Constraints with position goals that share joints and a priority, in lists of two or more."""
    sharing: dict[tuple[int, int], list[int]] = defaultdict(list)
    for n, group in enumerate(groups(bake_frames.skeleton, bake_frames.constraints, active)):
        for c in group.members:
            constraint = bake_frames.constraints[c]
            is_placing = constraint.kind.reaches and constraint.use_position
            if is_placing or constraint.kind.balances:
                sharing[n, constraint.priority].append(c)
    return [members for members in sharing.values() if len(members) > 1]


class Outcome(NamedTuple):
    """The measured fields of `BakeReport`."""

    entries: Entries
    largest_rotation: LargestRotation | None
    foot_slips: tuple[FootSlip, ...]
    fit: WeightedFit | None
    smoothed: tuple[Smoothed, ...]
    helped: tuple[Helped, ...]
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
        """Measure the keyed motion, and the motion at full influence; yields after each constraint.

        Args:
            scene: in which the armature plays.
            armature_object: plays the keys.
            motion: of the bake.
            task: of the bake.
            body: settings of the body, where bones are planted.
        """
        bake_frames = motion.bake_frames
        rotation = measuring.largest_rotation(bake_frames, motion.keyed, rotated_joints(bake_frames))
        yield
        distances, angles, lost = yield from measuring.misses(motion, task.solver)
        for row, states in bake_frames.states.items():
            bake_frames.states[row] = {
                c: SolveStatus.OPTIMAL.name if lost[row, c] else state for c, state in states.items()
            }
        baked = Baked.of(bake_frames, motion.keyed, task.solver, (distances, angles))
        keyed = yield from measuring.errors(bake_frames, baked.heads, baked.axes)
        entries = _entries(bake_frames, (distances, angles), keyed)
        yield
        slips = foot_slips(scene, armature_object, bake_frames, entries)
        yield
        frames_per_second = scene.render.fps / scene.render.fps_base
        ground = _ground(scene, armature_object, baked, task.settings.ground)
        yield
        everything = yield from findings(baked, slips, ground, frames_per_second)
        circle = loop(baked)
        yield
        if circle is not None and not circle.closes:
            ends = circle.frame_start, circle.frame_end, circle.frame_end
            everything += (Finding(Trouble.LOOP, "", circle.bone, *ends, angle=circle.angle),)
        body_report = None
        if body is not None:
            drift = body_motion.body_drift(bake_frames, motion.keyed)
            body_report = body_motion.report_of(bake_frames, body, task.body_obstacle, drift)
            everything += drift.findings()
        return cls(
            entries,
            None if rotation is None else LargestRotation(*rotation),
            slips,
            weighted_fit(bake_frames, distances),
            _smoothed(bake_frames),
            _helped(bake_frames, distances),
            body_report,
            circle,
            everything,
        )


def _ground(
    scene: bpy.types.Scene, armature_object: bpy.types.Object, baked: Baked, height: float | None
) -> Ground | None:
    """The ground for the report: a level height, or else the ground of the armature."""
    if height is not None:
        return LevelGround(height)
    frames, chains = baked.bake_frames.frames.tolist(), sorted({j for chain in baked.chains for j in chain})
    room = max(map(baked.size, range(len(baked.chains))), default=0.0)
    if not room > 0.0:
        return None
    points = baked.world(baked.heads[:, chains]).reshape(-1, 3)
    return rig_ground(scene, armature_object, frames, points, room)


def _entries(bake_frames: BakeFrames, missed: tuple[Array, Array], keyed: tuple[Array, Array]) -> Entries:
    """An entry for each active constraint at each frame.

    Args:
        bake_frames: solved.
        missed, keyed: (F, C) distances and angles of the solved motion, and of the keyed motion.
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


def _helped(bake_frames: BakeFrames, distances: Array) -> tuple[Helped, ...]:
    """Runs of solved frames in which the body helps the same constraints.

    Args:
        bake_frames: solved.
        distances: (F, C) by which constraints miss their targets, world metres.
    """
    spans: list[Helped] = []
    names = [joint.name for joint in bake_frames.skeleton.joints]
    before: tuple[int, ...] = ()
    for row in sorted(bake_frames.states):
        here = bake_frames.helped.get(row)
        if here is not None:
            frame = number(bake_frames.frames[row])
            who = tuple(bake_frames.constraints[c].name for c in here.constraints)
            if here.constraints != before:
                spans.append(Helped(who, frame, frame, names[here.turned], 0.0, "", 0.0))
            span = replace(spans[-1], frame_end=frame)
            if here.angle > span.angle:
                span = replace(span, turned=names[here.turned], angle=here.angle)
            if here.distance > max(span.distance, UNSHIFTED):
                span = replace(span, shifted=names[here.shifted], distance=here.distance)
            left = [c for c, state in bake_frames.states[row].items() if state == GAVE_WAY]
            named = (bake_frames.constraints[c].name for c in left)
            off = max((float(distances[row, c]) for c in left), default=0.0)
            span = replace(span, gave_way=tuple(dict.fromkeys((*span.gave_way, *named))))
            spans[-1] = replace(span, off=max(span.off, off))
        before = () if here is None else here.constraints
    return tuple(spans)


UNSHIFTED = 1e-6
"""World metres of rounding of a bone's place."""


def _smoothed(bake_frames: BakeFrames) -> tuple[Smoothed, ...]:
    """Runs of solved frames in which the same constraints are smoothed."""
    names = [constraint.name for constraint in bake_frames.constraints]
    spans: list[Smoothed] = []
    latest: dict[tuple[int, ...], int] = {}  # places of runs that include the frame before
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
