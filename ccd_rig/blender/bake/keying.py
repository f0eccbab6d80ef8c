"""From what was solved to keys, and to the report of how it stands."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import bpy
import numpy as np

from ...settings import SolverSettings
from ..keys import channels
from ..keys.obstacles import Destination
from ..keys.writer import BoneKeys, write
from ..rig import rotation_modes
from . import measuring, originals
from .bake_frames import BakeFrames, Motion, number
from .frame_selection import key_time
from .report import SLERPED, BakeReport, Entry, LargestRotation
from .settings import BakeSettings
from .weighted_fits import weighted_fit


def keys_of(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    take: BakeFrames,
    motion: Motion,
    joints: Sequence[int],
    settings: BakeSettings,
) -> list[BoneKeys]:
    """Keys of the joints at all frames of the take, in the time of keys."""
    interpolation = "BEZIER" if settings.keys.is_sparse else "LINEAR"
    time = key_time(scene)  # at a frame Blender shows the keys of this part of it
    times = take.frames * time
    pose_bones = [armature_object.pose.bones[take.skeleton.joints[j].name] for j in joints]
    turned = [(bone.name, rotation_modes.rotation_channel(bone)[0]) for bone in pose_bones]
    # Keys outside the range stay: the new ones go on from there, or else lead there, without a turn the long
    # way round.
    before = channels.values_before(armature_object, turned, settings.frame_start * time)
    after = channels.values_after(armature_object, turned, settings.frame_end * time)
    keys, locations, rotated = [], take.locations(motion), set(take.turned_joints())
    for j, pose_bone, (bone, channel) in zip(joints, pose_bones, turned, strict=True):
        where = [BoneKeys(bone, "location", times, locations[j], interpolation)] if j in locations else []
        if j not in rotated:
            keys += where
            continue
        rotations, mode = motion.rotations[:, j], pose_bone.rotation_mode
        previous, later = before.get((bone, channel)), after.get((bone, channel))
        if previous is None and later is not None:
            values = rotation_modes.channel_values(mode, rotations[::-1], later)[::-1]
        else:
            values = rotation_modes.channel_values(mode, rotations, previous)
        opposed = mode == "QUATERNION" and later is not None and float(values[-1] @ later) < 0.0
        keys += [BoneKeys(bone, channel, times, values, interpolation, opposed), *where]
    return keys


def write_keys(
    scene: bpy.types.Scene,
    armature_object: bpy.types.Object,
    keys: Sequence[BoneKeys],
    settings: BakeSettings,
    recipe: str,
    undo: ExitStack,
) -> bpy.types.Action:
    """Write the keys, and note how they were made; `undo` gets what takes that back."""
    time = key_time(scene)
    name = f"{armature_object.name} CCD"
    start, end = settings.frame_start * time, settings.frame_end * time
    animation = armature_object.animation_data
    original = animation.action if animation is not None else None
    pose = originals.present_pose(armature_object, [each.bone for each in keys])
    action = write(armature_object, keys, settings.destination, start, end, name, undo)
    if settings.destination is Destination.NEW_ACTION:  # others are not copies: nothing remains of before
        originals.remember(action, original, pose)
    originals.note_recipe(action, recipe, undo)
    return action


def report_of(
    armature_object: bpy.types.Object,
    action: bpy.types.Action,
    take: BakeFrames,
    motion: Motion,
    full: Motion,
    joints: Sequence[int],
    settings: BakeSettings,
    solver: SolverSettings,
) -> BakeReport:
    """How each constraint stands at each frame in `motion`, and at `full` influence; `joints` are keyed."""
    residuals, angles = measuring.residuals(take, full)
    same = all(np.array_equal(a, b) for a, b in zip(motion, full, strict=True))
    keyed, keyed_angles = (residuals, angles) if same else measuring.residuals(take, motion)
    in_force = np.nonzero(take.influences > 0.0)  # by frame, then in the order of the constraints
    figures = (residuals, keyed, take.influences, angles, keyed_angles)
    columns = [*(at.tolist() for at in in_force), *(each[in_force].tolist() for each in figures)]
    frames, names = [number(frame) for frame in take.frames], [row.name for row in take.constraints]
    rows = tuple(
        Entry(frames[f], names[c], take.states[f][c] if f in take.states else SLERPED, *row)
        for f, c, *row in zip(*columns, strict=True)
    )
    rotated = set(take.turned_joints())
    turn = measuring.largest_rotation(take, motion, [j for j in joints if j in rotated])
    return BakeReport(
        armature=armature_object.name,
        action=action.name,
        frame_start=settings.frame_start,
        frame_end=settings.frame_end,
        step=settings.step,
        tolerance=solver.position_tolerance,
        entries=rows,
        angle_tolerance=solver.angle_tolerance,
        fit=weighted_fit(take, residuals),
        solver=solver.solver,
        largest_rotation=None if turn is None else LargestRotation(*turn),
    )


def nothing_to_key(take: BakeFrames, settings: BakeSettings) -> str:
    span = f"frames {settings.frame_start} to {settings.frame_end}"
    names = ", ".join(constraint.name for constraint in take.constraints)
    if not (take.influences > 0.0).any():
        return f"no constraint ({names}) has influence above 0 in {span}: raise it, or change the range"
    return all_locked(take)


def all_locked(take: BakeFrames) -> str:
    names = ", ".join(constraint.name for constraint in take.constraints)
    return (
        f"every bone in the chains of {names} is locked: lower Stiffness, raise Max Step or unlock the "
        "rotation of at least one"
    )
