# SPDX-License-Identifier: GPL-3.0-or-later
"""A body that keeps its animation, moved by as little as lets legs reach planted bones.

`leg_reaches` says what legs ask for, `least_shifts` finds the smallest smooth shift that gives it to them. In
the shapes S counts the solved frames.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

import bpy
import numpy as np
from mathutils import Vector

from ...maths.batch import Array, rotate, unit
from ...skeleton.pose import Pose
from ..keys.obstacles import Destination, obstacles
from ..properties.body import FOLLOW_FEET, KEEP_ANIMATION, WALK_ON, Body
from ..scene.evaluation import FrameSample
from ..solve.frame_settings import FrameSolveSettings
from .bake_frames import BakeFrames
from .body_drift import BodyDrift
from .least_shifts import least_shifts
from .leg_reaches import leg_reaches
from .planted_solver import PlantedSolver
from .report_parts import BodyReport, number

PASSES = 3
"""Most times that a shot is solved: a shift of the body moves feet that come down later."""
SAME = 1e-4
"""Part of a leg's length: shifts that differ by less need no other pass."""
SHOWN = 1e-6
"""World metres by which a body is moved at all."""


def move_body(
    bake_frames: BakeFrames, samples: Sequence[tuple[int, FrameSample]], settings: FrameSolveSettings
) -> Generator[float, None, None]:
    """Solve the frames again with the body moved, where a leg is too short; gives how many are, now and then.

    Args:
        bake_frames: all of it is solved, and the body keeps its animation.
        samples: row and sample of each solved frame, in order.
        settings: how they are solved.
    """
    tracks = bake_frames.tracks
    assert tracks is not None
    shifts: Array = np.zeros((len(samples), 3))
    frames = bake_frames.frames[[row for row, _ in samples]]
    extensions: dict[tuple[object, ...], float] = {}
    for _ in range(PASSES):
        reaches = leg_reaches(bake_frames, samples, shifts, extensions)
        length = max((leg for leg in extensions.values()), default=0.0) or 1.0
        planned = least_shifts(frames, reaches, length)
        if np.abs(planned - shifts).max(initial=0.0) <= SAME * length:
            break
        shifts = planned
        tracks.contact_states.clear()
        root_bone = tracks.support_chains.root_bone
        moved = [(row, _moved(sample, root_bone, shifts[k])) for k, (row, sample) in enumerate(samples)]
        yield from PlantedSolver(settings).solve(bake_frames, moved, shifts)
        key_root_bone(bake_frames)


def key_root_bone(bake_frames: BakeFrames) -> None:
    """Let a body that is moved at some frame be keyed at all."""
    assert bake_frames.tracks is not None
    states = bake_frames.tracks.contact_states
    root_bone = bake_frames.tracks.support_chains.root_bone
    states[:] = [replace(each, moved=each.moved | {root_bone}) for each in states]


def note_short_legs(
    bake_frames: BakeFrames, samples: Sequence[tuple[int, FrameSample]], preroll: int
) -> None:
    """Note at which frames a leg is too short, where the body cannot be moved; the preroll does not count."""
    assert bake_frames.tracks is not None
    short = leg_reaches(bake_frames, samples, np.zeros((len(samples), 3)), {}).needs()
    bake_frames.tracks.short_rows += [
        samples[k][0] - preroll for k in short.tolist() if samples[k][0] >= preroll
    ]


def _moved(sample: FrameSample, root_bone: int, shift: Array) -> FrameSample:
    """The sample with the body shifted, armature space."""
    if not shift.any():
        return sample
    reading = sample.reading
    joint, translations = reading.skeleton.joints[root_bone], list(reading.pose.translations)
    way = joint.rest_rotation.conjugated() @ Vector(shift.tolist())
    translations[root_bone] = (translations[root_bone] + way).freeze()
    pose = Pose(reading.pose.rotations, tuple(translations))
    return sample._replace(reading=replace(reading, pose=pose), unmoved=reading.pose)


# What came of it --------------------------------------------------------------------------------------------


def shift_lengths(bake_frames: BakeFrames) -> Array:
    """(S,) how far the body is from its animation at each solved frame, world metres."""
    tracks = bake_frames.tracks
    assert tracks is not None
    root_bone = tracks.support_chains.root_bone
    rows = np.searchsorted(bake_frames.frames, bake_frames.solved_frames)
    placed = np.array(
        [contact_state.pose.translations[root_bone][:] for contact_state in tracks.contact_states]
    )
    ways = placed - bake_frames.translations[rows, root_bone]
    ways = rotate(unit(bake_frames.rests[rows, root_bone], axis=-1), ways, axis=-1)
    lengths: Array = np.linalg.norm(np.einsum("sij,sj->si", bake_frames.worlds[rows], ways), axis=1)
    return lengths


def body_obstacle(armature_object: bpy.types.Object, body: Body, destination: Destination) -> str:
    """What keeps the root bone from being moved by keys of its location, in words; empty if nothing does."""
    bone = armature_object.pose.bones[body.bone]
    if bone.parent is not None and bone.bone.use_connect:
        return "it is connected to its parent"
    if any(bone.lock_location):
        return "its location is locked"
    problems = obstacles(armature_object, [(body.bone, "location")], destination)
    return problems[0].partition(": ")[2] if problems else ""


def report_of(bake_frames: BakeFrames, body: Body, held_by: str, drift: BodyDrift) -> BodyReport:
    """What became of the body."""
    if not body.keeps:
        return BodyReport(body.bone, FOLLOW_FEET, keys_replaced=body.is_keyed, drift=drift)
    lengths = shift_lengths(bake_frames)
    largest = int(np.argmax(lengths))
    frames = int((lengths > SHOWN).sum())
    distance, frame = (
        (float(lengths[largest]), number(bake_frames.solved_frames[largest])) if frames else (0.0, None)
    )
    tracks = bake_frames.tracks
    assert tracks is not None
    short = len(tracks.short_rows)
    return BodyReport(
        body.bone,
        WALK_ON if body.walks_on else KEEP_ANIMATION,
        moved_frames=frames,
        distance=distance,
        frame=frame,
        short_frames=short,
        obstacle=held_by if short else "",
        travel=tracks.travel,
        drift=drift,
    )
