"""Our bake and Blender's in the same process, by turns, and what the baked keys look like when played."""

from __future__ import annotations

import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import bpy
import numpy as np
from _bake_scenes import Shot
from _product import BakeSettings, bake, fcurves_of, joint_settings, select_bone, violation
from mathutils import Quaternion


@dataclass(frozen=True)
class Played:
    """What the baked keys show, F frames, J bones, C targets.

    Attributes:
        errors: (F, C) metres from each target.
        turns: (F - 1, J) degrees that a bone turns from a frame to the next, relative to its parent.
        bends: (F - 2, J) degrees per frame by which this turn differs from the one before (second
            difference of the rotation).
        broken: degrees by which a limit is broken at worst; NaN where there are none.
        rotations: (F, J, 4) of the bones relative to rest, w first.
    """

    errors: np.ndarray
    turns: np.ndarray
    bends: np.ndarray
    broken: float
    rotations: np.ndarray


@dataclass(frozen=True)
class Pairs:
    """What was measured: seconds of each run, and what was baked.

    Attributes:
        ours: our bake.
        blenders: Blender's bake as its dialog comes: location, rotation and scale of every selected bone.
        rotations: Blender's bake of rotations alone, as ours; empty if it was left out.
        our_keys: what our first run baked.
        its_keys: what Blender's first run baked.
    """

    ours: tuple[float, ...]
    blenders: tuple[float, ...]
    rotations: tuple[float, ...]
    our_keys: Played
    its_keys: Played

    @property
    def ratio(self) -> float:
        """Ours to Blender's as it comes: median of the pairs."""
        return _ratio(self.ours, self.blenders)

    @property
    def ratio_alike(self) -> float:
        """Ours to Blender's with rotations alone: median of the pairs."""
        return _ratio(self.ours, self.rotations)


def _ratio(ours: Sequence[float], its: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, its, strict=True)) if its else math.nan


def machine() -> str:
    """The processor's name and how many of them."""
    name = platform.processor() or platform.machine()
    listed = Path("/proc/cpuinfo")
    if listed.is_file():
        names = [
            line.split(":")[1].strip() for line in listed.read_text().splitlines() if "model name" in line
        ]
        name = names[0] if names else name
    return f"{name}, {os.cpu_count()} processors, {platform.system()}"


HAS_CHECK = "verify" in {field.name for field in fields(BakeSettings)}


def settings(frames: int, verify: bool = False) -> BakeSettings:
    """Ours, without the check after the bake unless it is asked for: it is no part of what Blender does."""
    return BakeSettings(1, frames, **({"verify": verify} if HAS_CHECK else {}))


def add_rows(shot: Shot) -> None:
    """The shot's targets and limits as our constraints."""
    for reach in shot.reaches:
        row = shot.rig.ccd_rig.constraints.add()
        row.name, row.tip, row.chain_length, row.target = reach.tip, reach.tip, reach.count, reach.target
    for bone, limit in zip(shot.bones, shot.limits, strict=True):
        group = shot.rig.pose.bones[bone].ccd_rig.limit
        if limit == "hinge":
            group.kind = "HINGE"
        elif limit:
            group.kind, group.cone_radius = "CONE", math.radians(float(limit.split()[1]))
            group.use_twist, group.twist_lower, group.twist_upper = True, 0.0, 0.0


def add_iks(shot: Shot) -> None:
    """The same as Blender's IK constraints and its own limits, and just these bones selected."""
    for reach in shot.reaches:
        constraint = shot.rig.pose.bones[reach.tip].constraints.new("IK")
        constraint.target, constraint.chain_count = reach.target, reach.count
    for bone, limit in zip(shot.bones, shot.limits, strict=True):
        pose_bone = shot.rig.pose.bones[bone]
        if limit:
            angle = math.radians(90.0 if limit == "hinge" else float(limit.split()[1]))
            pose_bone.use_ik_limit_x, pose_bone.ik_min_x, pose_bone.ik_max_x = True, -angle, angle
            pose_bone.lock_ik_y = True
            if limit == "hinge":
                pose_bone.lock_ik_z = True
            else:
                pose_bone.use_ik_limit_z, pose_bone.ik_min_z, pose_bone.ik_max_z = True, -angle, angle
    for pose_bone in shot.rig.pose.bones:
        select_bone(pose_bone, pose_bone.name in shot.bones)


def time_ours(shot: Shot, frames: int, verify: bool = False) -> float:
    """Seconds from the call to the keys: evaluation, solving, keys and report; the check after it if asked
    for."""
    began = time.perf_counter()
    bake(bpy.context.scene, shot.rig, settings(frames, verify))
    return time.perf_counter() - began


def time_blenders(shot: Shot, frames: int, **options: set[str]) -> float:
    """Seconds that Blender's own bake takes."""
    began = time.perf_counter()
    bpy.ops.nla.bake(
        frame_start=1,
        frame_end=frames,
        only_selected=True,
        visual_keying=True,
        clear_constraints=True,
        bake_types={"POSE"},
        **options,
    )
    return time.perf_counter() - began


def measure(make: Callable[[], Shot], frames: int, runs: int, alike: bool = True) -> Pairs:
    """Bake by turns, each time in a new file, and look at the first run's keys.

    Args:
        make: fills the file.
        frames: how many.
        runs: pairs; who is first alternates.
        alike: whether Blender's bake of rotations alone is measured as well.
    """
    sides = ["ours", "blenders", *(["rotations"] if alike else [])]
    times: dict[str, list[float]] = {side: [] for side in ("ours", "blenders", "rotations")}
    keys = {}
    for run in range(runs):
        for side in sides if run % 2 == 0 else reversed(sides):
            shot = make()
            if side == "ours":
                add_rows(shot)
                times[side].append(time_ours(shot, frames))
            else:
                add_iks(shot)
                options = {"channel_types": {"ROTATION"}} if side == "rotations" else {}
                times[side].append(time_blenders(shot, frames, **options))
            if run == 0 and side != "rotations":
                if side == "blenders":
                    add_rows(shot)  # for the limits, which it is measured against as well
                for thing in shot.beside:  # playing the keys need not wait for it
                    bpy.data.objects.remove(thing)
                keys[side] = played(shot, frames)
    return Pairs(*(tuple(each) for each in times.values()), keys["ours"], keys["blenders"])


def played(shot: Shot, frames: int) -> Played:
    """Let Blender play the keys, or what else moves the bones, frame by frame."""
    rig = shot.rig
    bones = [rig.pose.bones[name] for name in shot.bones]
    tips = [rig.pose.bones[reach.tip] for reach in shot.reaches]
    errors, rotations = np.empty((frames, len(tips))), np.empty((frames, len(bones), 4))
    for f in range(frames):
        bpy.context.scene.frame_set(f + 1)
        for c, (reach, tip) in enumerate(zip(shot.reaches, tips, strict=True)):
            point = rig.matrix_world @ (tip.tail if reach.use_tail else tip.head)
            errors[f, c] = (point - reach.target.matrix_world.translation).length
        for j, bone in enumerate(bones):
            rotations[f, j] = bone.matrix_basis.to_quaternion()[:]
    vectors = between(rotations[:-1], rotations[1:])
    limits = [each.get("limit") for each in joint_settings(rig, list(shot.bones)).values()]
    # A pose out of Blender is a float32: a limit counts as held within some 1e-5 degrees.
    broken = [
        violation(limit, Quaternion(rotation))
        for j, limit in enumerate(limits)
        if limit is not None
        for rotation in rotations[:, j]
    ]
    return Played(
        errors,
        np.linalg.norm(vectors, axis=-1),
        np.linalg.norm(np.diff(vectors, axis=0), axis=-1),
        math.degrees(max(broken)) if broken else math.nan,
        rotations,
    )


def baked_keys(shot: Shot, frames: int) -> dict[tuple[str, int], bytes]:
    """All keys of our bake, bit by bit, by data path and index."""
    add_rows(shot)
    bake(bpy.context.scene, shot.rig, settings(frames))
    return {name: values.tobytes() for name, values in keys_of(shot.rig).items()}


def keys_of(rig: bpy.types.Object) -> dict[tuple[str, int], np.ndarray]:
    """Frame and value of all keys of a rig's action, float32 (K, 2), by data path and index."""
    found = {}
    for curve in fcurves_of(rig):
        values = np.empty(2 * len(curve.keyframe_points), dtype=np.float32)
        curve.keyframe_points.foreach_get("co", values)
        found[curve.data_path, curve.array_index] = values.reshape(-1, 2)
    return found


def between(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(..., 3) rotation vectors from rotations (..., 4), w first, to others; degrees, axes of the first."""
    w = np.sum(before * after, axis=-1, keepdims=True)
    a, b = before[..., 1:], after[..., 1:]
    xyz = before[..., :1] * b - after[..., :1] * a - np.cross(a, b)
    xyz = np.where(w < 0.0, -xyz, xyz)
    sine = np.linalg.norm(xyz, axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, np.abs(w))
    return np.degrees(np.where(sine > 0.0, angle / np.where(sine > 0.0, sine, 1.0), 2.0) * xyz)
