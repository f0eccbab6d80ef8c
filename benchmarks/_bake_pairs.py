"""Our bake and Blender's in the same process, by turns, and what the baked keys look like when played."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import bpy
import numpy as np
from _bake_scenes import Limit, Reach, Shot
from mathutils import Quaternion, Vector

from ccd_rig.blender.bake.bake import bake
from ccd_rig.blender.bake.settings import BakeSettings
from ccd_rig.blender.keys.channels import fcurves_of, select_bone
from ccd_rig.blender.properties.joints import joint_settings
from ccd_rig.limits.shapes import violation


class Cost(NamedTuple):
    """Seconds that something took: on the clock, and of the processor in all threads."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Played:
    """Playback of the keys, F frames, J bones, C targets.

    Attributes:
        errors: (F, C) metres from each target.
        angles: (F, C) degrees between each tip and its target's rotation; 0 where it is not asked for.
        poles: (F, C) degrees between each chain's bend and its pole, seen along the line from its root to its
            end; not a number without a pole, and of a straight chain. The bend is that of our pole goal: the
            sum of the heads between.
        turns: (F - 1, J) degrees that a bone turns from a frame to the next, relative to its parent.
        bends: (F - 2, J) degrees per frame by which this turn differs from the one before (second
            difference of the rotation).
        broken: degrees by which a limit is broken at worst; NaN where there are none.
        rotations: (F, J, 4) of the bones relative to rest, w first.
        departures: (F, J) degrees from the clip; (0, J) without one.
        off_hinges: (F, H) degrees that limbs' middle joints turn about other axes than that of their bend.
        pops: turns of bones from a frame to the next above 20 degrees and three times the clip's largest.
    """

    errors: np.ndarray
    angles: np.ndarray
    poles: np.ndarray
    turns: np.ndarray
    bends: np.ndarray
    broken: float
    rotations: np.ndarray
    departures: np.ndarray
    off_hinges: np.ndarray
    pops: int


@dataclass(frozen=True)
class Pairs:
    """Measured costs per run, and the baked keys.

    Attributes:
        ours: our bake.
        blenders: Blender's bake as its dialog comes: location, rotation and scale of every selected bone.
        rotations: Blender's bake of rotations alone, as ours; empty if it was left out.
        our_keys: what our first run baked.
        its_keys: what Blender's first run baked.
        base: the motion before; None in a heavy scene.
    """

    ours: tuple[Cost, ...]
    blenders: tuple[Cost, ...]
    rotations: tuple[Cost, ...]
    our_keys: Played
    its_keys: Played
    base: Played | None

    @property
    def ratio(self) -> float:
        """Wall time, ours to Blender's as it comes: median of the pairs."""
        return _ratio(self.ours, self.blenders, 0)

    @property
    def ratio_cpu(self) -> float:
        """Processor time, ours to Blender's as it comes: median of the pairs."""
        return _ratio(self.ours, self.blenders, 1)

    @property
    def ratio_alike(self) -> float:
        """Wall time, ours to Blender's with rotations alone: median of the pairs."""
        return _ratio(self.ours, self.rotations, 0)


def _ratio(ours: Sequence[Cost], its: Sequence[Cost], kind: int) -> float:
    return statistics.median(a[kind] / b[kind] for a, b in zip(ours, its, strict=True)) if its else math.nan


def seconds(costs: Sequence[Cost]) -> float:
    """Median wall time."""
    return statistics.median(cost.wall for cost in costs)


POP, POPS = 20.0, 3.0  # degrees, and parts of the clip's largest turn, that a pop is above
STRAIGHT = 1e-3
"""Part of a chain's length by which it bends at least."""


def settings(frames: int, verify: bool = False, **options: Any) -> BakeSettings:
    """Ours, without the check after the bake unless it is asked for: it is no part of what Blender does."""
    return BakeSettings(1, frames, verify=verify, **options)


def add_rows(shot: Shot) -> None:
    """The shot's goals and limits as our constraints."""
    if not shot.is_set_up:
        for reach in shot.reaches:
            row = shot.rig.ccd_rig.constraints.add()
            row.name, row.tip, row.chain_length, row.target = reach.tip, reach.tip, reach.count, reach.target
            row.use_tail, row.pole_target = reach.use_tail, reach.pole
            row.rotation = "ORIENTATION" if reach.rotation else "NONE"
            row.weight, row.priority = reach.weight, reach.priority
        for bone, limit in zip(shot.bones, shot.limits, strict=True):
            if limit is not None:
                set_limit(shot.rig.pose.bones[bone].ccd_rig.limit, limit)
    if shot.ours is not None:
        shot.ours(shot.rig)


def shot_of(rig: bpy.types.Object, **fields: Any) -> Shot:
    """Make a shot of a rig's constraints, with the limits that Blender's IK supports."""
    reaches, bones = [], {}
    for row in rig.ccd_rig.constraints:
        tip = rig.pose.bones[row.tip]
        bones |= dict.fromkeys(bone.name for bone in chain_of(tip, row.chain_length))
        if row.target:
            turned = row.rotation == "ORIENTATION"
            reaches.append(Reach(row.tip, row.chain_length, row.target, row.use_tail, turned))
    limits = tuple(_limit_of(rig.pose.bones[bone].ccd_rig.limit) for bone in bones)
    return Shot(rig, tuple(reaches), tuple(bones), limits, is_set_up=True, **fields)


def _limit_of(group: Any) -> Limit | None:
    """A stored limit by its ranges about the bone's axes; hinges are about X."""
    twist = (group.twist_lower, group.twist_upper) if group.use_twist else (-math.pi, math.pi)
    ranges = {
        "HINGE": ((group.hinge_lower, group.hinge_upper), (0.0, 0.0), (0.0, 0.0)),
        "CONE": ((-group.cone_radius, group.cone_radius), twist, (-group.cone_radius, group.cone_radius)),
        "ELLIPSE": ((group.x_lower, group.x_upper), twist, (group.z_lower, group.z_upper)),
        "EULER": tuple(zip(group.euler_lower, group.euler_upper, strict=True)),
    }.get(group.kind)
    if ranges is None:
        return None
    if group.kind == "HINGE" and group.axis[0] < 0.0:
        ranges = ((-group.hinge_upper, -group.hinge_lower), *ranges[1:])
    lower, upper = zip(*((math.degrees(a), math.degrees(b)) for a, b in ranges), strict=True)
    return Limit(group.kind, lower, upper)


def set_limit(group: Any, limit: Limit) -> None:
    """Store a limit in a bone's group, or as its comfort region."""
    lower, upper = (tuple(map(math.radians, angles)) for angles in (limit.lower, limit.upper))
    group.kind = limit.kind
    if limit.kind == "HINGE":
        group.hinge_lower, group.hinge_upper = lower[0], upper[0]
    elif limit.kind == "CONE":
        group.cone_radius = upper[0]
        group.use_twist, group.twist_lower, group.twist_upper = True, lower[1], upper[1]
    else:
        group.euler_order, group.euler_lower, group.euler_upper = "XYZ", lower, upper


def add_iks(shot: Shot) -> None:
    """The same as Blender's IK constraints and its own limits, and just these bones selected."""
    for reach in shot.reaches:
        bone = shot.rig.pose.bones[reach.tip]
        if reach.count > 1 or reach.use_tail:
            _add_ik(shot.rig, bone, reach)
        else:  # a bone that is put somewhere
            bone.constraints.new("COPY_LOCATION").target = reach.target
        if reach.rotation and not reach.use_tail:  # the chain ends at its head
            bone.constraints.new("COPY_ROTATION").target = reach.target
    for name, limit in zip(shot.bones, shot.limits, strict=True):
        if limit is not None:
            _set_ik_limit(shot.rig.pose.bones[name], limit)
    if shot.its is not None:
        shot.its(shot.rig)
    for pose_bone in shot.rig.pose.bones:
        select_bone(pose_bone, pose_bone.name in shot.bones)


def _add_ik(rig: bpy.types.Object, bone: bpy.types.PoseBone, reach: Reach) -> None:
    constraint = bone.constraints.new("IK")
    constraint.target, constraint.weight = reach.target, reach.weight
    constraint.use_tail = reach.use_tail
    # Without its tail the bone is no part of the chain, nor is it counted.
    constraint.chain_count = reach.count - (not reach.use_tail)
    constraint.use_rotation = reach.rotation and reach.use_tail
    if reach.pole is not None:
        root = chain_of(bone, reach.count)[-1].bone
        constraint.pole_target = reach.pole
        way = (bone.bone.tail_local if reach.use_tail else bone.bone.head_local) - root.head_local
        pole = rig.matrix_world.inverted() @ reach.pole.matrix_world.translation - root.head_local
        constraint.pole_angle = _pole_angle(root, way, pole)


def _pole_angle(root: bpy.types.Bone, way: Vector, pole: Vector) -> float:
    """The angle with which the chain, at rest, bends towards the pole: about the root, from its X axis."""
    along = root.tail_local - root.head_local
    axis, side = root.matrix_local.to_3x3().col[0], way.cross(pole).cross(along)
    angle = axis.angle(side)
    return -angle if axis.cross(side).dot(along) > 0.0 else angle


def _set_ik_limit(bone: bpy.types.PoseBone, limit: Limit) -> None:
    for axis, lower, upper in zip("xyz", limit.lower, limit.upper, strict=True):
        if lower == upper == 0.0:
            setattr(bone, f"lock_ik_{axis}", True)
        else:
            setattr(bone, f"use_ik_limit_{axis}", True)
            setattr(bone, f"ik_min_{axis}", math.radians(max(min(lower, 0.0), -180.0)))
            setattr(bone, f"ik_max_{axis}", math.radians(min(max(upper, 0.0), 180.0)))


def chain_of(bone: bpy.types.PoseBone, count: int) -> list[bpy.types.PoseBone]:
    """The bones of a chain, from its tip on; all that there are with 0."""
    return [bone, *bone.parent_recursive][: count or None]


def time_ours(shot: Shot, frames: int, verify: bool = False) -> Cost:
    """From the call to the keys: evaluation, solving, keys and report; the check after it if asked for."""
    chosen = settings(frames, verify, **shot.options)
    wall, cpu = time.perf_counter(), time.process_time()
    bake(bpy.context.scene, shot.rig, chosen)
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def time_blenders(frames: int, **options: set[str]) -> Cost:
    """Blender's own bake."""
    wall, cpu = time.perf_counter(), time.process_time()
    bpy.ops.nla.bake(
        frame_start=1,
        frame_end=frames,
        only_selected=True,
        visual_keying=True,
        clear_constraints=True,
        use_current_action=True,  # a new one would not hold the motion of the other bones
        bake_types={"POSE"},
        **options,
    )
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def measure(make: Callable[[], Shot], frames: int, runs: int, alike: bool = True) -> Pairs:
    """Bake by turns, each time in a new file, and look at the first run's keys.

    Args:
        make: fills the file.
        frames: how many.
        runs: pairs; who is first alternates.
        alike: whether Blender's bake of rotations alone is measured as well.
    """
    sides = ["ours", "blenders", *(["rotations"] if alike else [])]
    times: dict[str, list[Cost]] = {side: [] for side in ("ours", "blenders", "rotations")}
    keys, base = {}, None
    for run in range(runs):
        for side in sides if run % 2 == 0 else reversed(sides):
            shot = make()
            if run == 0 and side == "ours":
                base = played(shot, frames) if not shot.beside else None  # it may take minutes to play
            bpy.context.scene.frame_set(1)
            if side == "ours":
                add_rows(shot)
                times[side].append(time_ours(shot, frames))
            else:
                add_iks(shot)
                options = {"channel_types": {"ROTATION"}} if side == "rotations" else {}
                times[side].append(time_blenders(frames, **options))
            if run == 0 and side != "rotations":
                if side == "blenders":
                    add_rows(shot)  # for the limits, which it is measured against as well
                for thing in shot.beside:  # playing the keys need not wait for it
                    bpy.data.objects.remove(thing)
                keys[side] = played(shot, frames)
    return Pairs(*(tuple(each) for each in times.values()), keys["ours"], keys["blenders"], base)


def played(shot: Shot, frames: int) -> Played:
    """Let Blender play the keys, or what else moves the bones, frame by frame."""
    rig = shot.rig
    bones = [rig.pose.bones[name] for name in shot.bones]
    chains = [chain_of(rig.pose.bones[reach.tip], reach.count) for reach in shot.reaches]
    errors, rotations = np.empty((frames, len(chains))), np.empty((frames, len(bones), 4))
    angles, poles = np.zeros_like(errors), np.full_like(errors, np.nan)
    for f in range(frames):
        bpy.context.scene.frame_set(f + 1)
        for c, (reach, chain) in enumerate(zip(shot.reaches, chains, strict=True)):
            tip, target = chain[0], reach.target.matrix_world
            point = rig.matrix_world @ (tip.tail if reach.use_tail else tip.head)
            errors[f, c] = (point - target.translation).length
            if reach.rotation:
                angles[f, c] = _apart((rig.matrix_world @ tip.matrix).to_quaternion(), target.to_quaternion())
            if reach.pole is not None:
                poles[f, c] = _off_pole(rig, chain, point, reach.pole.matrix_world.translation)
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
    clip = np.empty((0, *rotations.shape[1:])) if shot.clip is None else shot.clip
    turns = np.linalg.norm(vectors, axis=-1)
    hinges = rotations[:, [shot.bones.index(bone) for bone in shot.hinges]]
    return Played(
        errors,
        angles,
        poles,
        turns,
        np.linalg.norm(np.diff(vectors, axis=0), axis=-1),
        math.degrees(max(broken)) if broken else math.nan,
        rotations,
        np.linalg.norm(between(clip, rotations[: len(clip)]), axis=-1),
        2.0 * np.degrees(np.arctan2(np.hypot(*hinges[..., 2:].T), np.hypot(*hinges[..., :2].T))).T,
        count_pops(turns, np.linalg.norm(between(clip[:-1], clip[1:]), axis=-1)),
    )


def count_pops(turns: np.ndarray, clip: np.ndarray) -> int:
    """Turns above both 20 degrees and three times the largest of the clip; degrees."""
    return int(np.sum(turns > max(POP, POPS * np.max(clip, initial=0.0))))


def _apart(a: Quaternion, b: Quaternion) -> float:
    return float(np.linalg.norm(between(np.array(a, dtype=float), np.array(b, dtype=float))))


def _off_pole(rig: bpy.types.Object, chain: list[bpy.types.PoseBone], end: Vector, pole: Vector) -> float:
    """Degrees between bend and pole, seen along the line from the chain's root to its end.

    Not a number where the chain is straight: it bends no way then, and what is seen is rounding.
    """
    heads = [rig.matrix_world @ bone.head for bone in chain]
    line = end - heads[-1]
    length, line = line.length, line.normalized()

    def across(vector: Vector) -> Vector:
        return vector - vector.dot(line) * line

    bend = sum((across(head - heads[-1]) for head in heads[:-1]), Vector())
    side = across(pole - heads[-1])
    return math.degrees(bend.angle(side, 0.0)) if bend.length > STRAIGHT * length else math.nan


def keys_of(rig: bpy.types.Object) -> dict[tuple[str, int], np.ndarray]:
    """Frame and value of all keys of a rig's action, float32 (K, 2), by data path and index."""
    keys = {}
    for curve in fcurves_of(rig):
        values = np.empty(2 * len(curve.keyframe_points), dtype=np.float32)
        curve.keyframe_points.foreach_get("co", values)
        keys[curve.data_path, curve.array_index] = values.reshape(-1, 2)
    return keys


def between(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(..., 3) rotation vectors from rotations (..., 4), w first, to others; degrees, axes of the first."""
    w = np.sum(before * after, axis=-1, keepdims=True)
    a, b = before[..., 1:], after[..., 1:]
    xyz = before[..., :1] * b - after[..., :1] * a - np.cross(a, b)
    xyz = np.where(w < 0.0, -xyz, xyz)
    sine = np.linalg.norm(xyz, axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, np.abs(w))
    return np.degrees(np.where(sine > 0.0, angle / np.where(sine > 0.0, sine, 1.0), 2.0) * xyz)
