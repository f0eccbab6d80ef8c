"""Scenes of `bake.py`: chains, a character, and both inside a heavy scene.

Every function fills an empty file and returns a `Shot`. Lengths in metres, angles in degrees. Targets move
smoothly: they are keyed on every tenth frame, and Blender's Bezier curves run through the keys.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import bpy

# isort: split
import numpy as np
import rigs
from mathutils import Matrix, Quaternion, Vector

BONE = 0.25  # a chain of 20 is 5 long
TURN = 250.0  # frames that a target takes for its closed path


@dataclass(frozen=True)
class Reach:
    """Constraint of a bone.

    Attributes:
        tip: the bone.
        count: number of bones that may turn, counted from it.
        target: where it is to be.
        use_tail: whether its tail is brought there, or its head.
        rotation: whether the bone is turned as the target is.
        pole: what the chain bends towards.
        weight: beside other goals that pull at the same bones.
        priority: goals with 0 are served first.
    """

    tip: str
    count: int
    target: bpy.types.Object
    use_tail: bool = True
    rotation: bool = False
    pole: bpy.types.Object | None = None
    weight: float = 1.0
    priority: int = 0


@dataclass(frozen=True)
class Limit:
    """Ranges of a bone's rotation from rest about its axes, degrees.

    Attributes:
        kind: HINGE (about X alone), CONE (the same about X and Z) or EULER, as in our limits.
        lower: smallest angles about X, Y and Z.
        upper: largest ones.
    """

    kind: str
    lower: tuple[float, float, float]
    upper: tuple[float, float, float]


def hinge(lower: float = -90.0, upper: float = 90.0) -> Limit:
    return Limit("HINGE", (lower, 0.0, 0.0), (upper, 0.0, 0.0))


def cone(radius: float, twist: float = 0.0) -> Limit:
    return Limit("CONE", (-radius, -twist, -radius), (radius, twist, radius))


@dataclass(frozen=True)
class Shot:
    """A rig with its targets.

    Attributes:
        rig: the armature object, active, in Pose Mode.
        reaches: what is asked for.
        bones: names of the bones that turn.
        limits: one for each bone.
        beside: what has no part in the motion of the rig and its targets.
        is_set_up: whether the rig carries our constraints and limits already.
        ours: what our side has beside reaches and limits.
        its: what Blender's side has beside them.
        options: more of our settings than the range.
        clip: (F, J, 4) rotations of the bones in the motion that the targets come from; None: there is none.
        hinges: bones of limbs that bend about their X axis.
    """

    rig: bpy.types.Object
    reaches: tuple[Reach, ...]
    bones: tuple[str, ...]
    limits: tuple[Limit | None, ...]
    beside: tuple[bpy.types.Object, ...] = ()
    is_set_up: bool = False
    ours: Callable[[bpy.types.Object], None] | None = None
    its: Callable[[bpy.types.Object], None] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    clip: np.ndarray | None = None
    hinges: tuple[str, ...] = ()


def chain(
    bones: int,
    frames: int,
    limits: Sequence[Limit | None] = (None,),
    height: float = 0.5,
    connect: bool = True,
) -> Shot:
    """Make a straight chain upwards, and a target that goes round it.

    Args:
        bones: how many.
        frames: over which the target is keyed.
        limits: dealt out over the bones in turn.
        height: of the middle of the target's path, in lengths of the chain: the lower, the more must the
            chain bend.
    """
    bpy.ops.wm.read_homefile(use_empty=True)
    names = tuple(f"bone{i}" for i in range(bones))
    rig = rigs.armature(
        [
            rigs.B(
                name,
                (0.0, 0.0, BONE * i),
                (0.0, 0.0, BONE * (i + 1)),
                names[i - 1] if i else "",
                0.0,
                connect,
            )
            for i, name in enumerate(names)
        ]
    )
    bpy.ops.object.mode_set(mode="POSE")
    length = BONE * bones

    def place(a: float) -> Vector:
        return Vector(
            (
                length * (0.45 + 0.1 * math.cos(2.0 * a)) * math.cos(a),
                length * 0.45 * math.sin(a),
                length * (height + 0.15 * math.sin(3.0 * a)),
            )
        )

    target = moving("Target", place, frames)
    set_range(frames)
    dealt = tuple(limits[i % len(limits)] for i in range(bones))
    return Shot(rig, (Reach(names[-1], bones, target),), names, dealt)


def eight(frames: int, tail: bool = False) -> Shot:
    """A straight chain of 12 bones whose target goes a figure of eight, keyed on each frame, twice.

    Args:
        frames: of one eight.
        tail: as in docs/tutorials/tail.md, with the limits of its preset; else through the axis on which the
            chain rests.
    """
    shot = chain(12, 2 * frames + 1, (cone(270.0 / 12, 10.0),) if tail else (None,))
    turn = 2.0 * np.pi * np.arange(2 * frames + 1) / frames
    # In lengths of the chain. The tutorial's tail is 1.92 m long and lies along Y; here it stands.
    size, middle = (0.25, 0.18), (0.0, 0.0, 0.85)
    if tail:
        size, middle = (0.75 / 1.92, 0.3 / 1.92), (0.0, 0.35 / 1.92, 1.0 - 0.55 / 1.92)
    waves = np.stack((size[0] * np.sin(turn), size[1] * np.sin(2.0 * turn), 0.0 * turn), axis=1)
    key_all(shot.reaches[0].target, {"location": 12 * BONE * (waves + middle)})
    return shot


def moving(name: str, place: Callable[[float], Vector], frames: int) -> bpy.types.Object:
    """An empty that is keyed on every tenth frame; `place` takes the angle on its path in radians."""
    target = bpy.data.objects.new(name, None)
    bpy.context.scene.collection.objects.link(target)
    for frame in range(1, frames + 11, 10):
        target.location = place(2.0 * math.pi * frame / TURN)
        target.keyframe_insert("location", frame=frame)
    return target


# tip, bones that turn, and how far its target goes along X, Y and Z
LIMBS = (
    ("spine.005", 5, (0.06, 0.05, 0.02)),
    ("hand.L", 3, (0.08, 0.12, 0.14)),
    ("hand.R", 3, (0.08, 0.12, 0.14)),
    ("foot.L", 3, (0.05, 0.20, 0.08)),
    ("foot.R", 3, (0.05, 0.20, 0.08)),
)
INWARD = 0.3  # part of a limb's length by which its target's path lies nearer to the limb's root


def metarig() -> bpy.types.Object:
    """Rigify's human metarig in an empty file, in Pose Mode."""
    bpy.ops.wm.read_homefile(use_empty=True)
    with contextlib.redirect_stdout(io.StringIO()):  # Rigify tells what it loads
        rig = rigs.metarig("human")
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    return rig


def character(frames: int) -> Shot:
    """Rigify's human metarig, 159 bones: both arms, both legs and the spine follow targets, 17 bones turn."""
    rig = metarig()
    reaches, bones = [], []
    for number, (tip, count, spread) in enumerate(LIMBS):
        limb = [rig.pose.bones[tip]]
        while len(limb) < count:
            limb.append(limb[-1].parent)
        end, root = limb[0].tail.copy(), limb[-1].head.copy()
        inward = (root - end).normalized() * INWARD * sum(bone.length for bone in limb)
        if tip.startswith("spine"):
            inward *= 0.2

        def place(
            a: float, middle: Vector = end + inward, spread: Sequence[float] = spread, number: int = number
        ) -> Vector:
            waves = (math.sin(a + number), math.cos(2.0 * a + number), math.sin(2.0 * a - number))
            return middle + Vector([s * w for s, w in zip(spread, waves, strict=True)])

        reaches.append(Reach(tip, count, moving(f"Target {tip}", place, frames)))
        bones += [bone.name for bone in reversed(limb)]
    set_range(frames)
    return Shot(rig, tuple(reaches), tuple(bones), (None,) * len(bones))


RINGS, SEGMENTS = 320, 98  # two subdivisions make 16 vertices of each: 500,000
SMOOTHINGS = 8
OTHERS = 50


def heavy(bones: int, frames: int) -> Shot:
    """`chain` with a skin of some 500,000 vertices, and fifty other objects with keys and drivers."""
    shot = chain(bones, frames)
    beside = [_skin(shot)]
    for number in range(OTHERS):
        other = moving(f"Other {number}", lambda a, n=number: Vector((n, math.sin(a + n), 2.0)), frames)
        driver = other.driver_add("rotation_euler", 2).driver
        variable = driver.variables.new()
        variable.name, variable.type = "way", "TRANSFORMS"
        variable.targets[0].id, variable.targets[0].transform_type = beside[-1], "LOC_Y"
        driver.expression = "sin(way) + 0.01 * frame"
        beside.append(other)
    bpy.context.scene.frame_set(1)
    return Shot(shot.rig, shot.reaches, shot.bones, shot.limits, tuple(beside))


def _skin(shot: Shot) -> bpy.types.Object:
    """A tube around the chain that its bones deform, subdivided and smoothed after that."""
    length, count = BONE * len(shot.bones), len(shot.bones)
    angles = [2.0 * math.pi * k / SEGMENTS for k in range(SEGMENTS)]
    heights = [length * k / (RINGS - 1) for k in range(RINGS)]
    points = [(0.1 * math.cos(a), 0.1 * math.sin(a), z) for z in heights for a in angles]
    faces = [
        (
            r * SEGMENTS + k,
            r * SEGMENTS + (k + 1) % SEGMENTS,
            *((r + 1) * SEGMENTS + m for m in ((k + 1) % SEGMENTS, k)),
        )
        for r in range(RINGS - 1)
        for k in range(SEGMENTS)
    ]
    mesh = bpy.data.meshes.new("Skin")
    mesh.from_pydata(points, [], faces)
    skin = bpy.data.objects.new("Skin", mesh)
    bpy.context.scene.collection.objects.link(skin)
    for number, bone in enumerate(shot.bones):
        rings = [r for r in range(RINGS) if min(int(heights[r] / BONE), count - 1) == number]
        vertices = [r * SEGMENTS + k for r in rings for k in range(SEGMENTS)]
        skin.vertex_groups.new(name=bone).add(vertices, 1.0, "REPLACE")
    skin.modifiers.new("Armature", "ARMATURE").object = shot.rig
    skin.modifiers.new("Subdivision", "SUBSURF").levels = 2
    skin.modifiers.new("Smooth", "SMOOTH").iterations = SMOOTHINGS
    return skin


def set_range(frames: int) -> None:
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, frames
    bpy.context.scene.frame_set(1)


def continuous(rotations: Sequence[Quaternion]) -> np.ndarray:
    """(F, 4), each on the side of the one before."""
    quaternions = np.array([tuple(each) for each in rotations])
    flips = np.where(np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0.0, -1.0, 1.0)
    quaternions[1:] *= np.cumprod(flips)[:, None]
    return quaternions


def key_all(thing: bpy.types.Object, channels: Mapping[str, np.ndarray]) -> None:
    """Key channels in a new action: (F, n) values by data path at frames 1 to F, linear in between."""
    new = fcurve_maker(thing)
    for path, values in channels.items():
        for index, each in enumerate(values.T):
            curve = new(path, index)
            curve.keyframe_points.add(len(each))
            keys = np.stack((np.arange(1, len(each) + 1), each), axis=1).astype(np.float32)
            curve.keyframe_points.foreach_set("co", keys.ravel())
            curve.keyframe_points.foreach_set("interpolation", np.full(len(each), 1, dtype=np.int32))
            curve.update()


def keyed_empty(name: str, places: np.ndarray, turned: Sequence[Matrix] | None = None) -> bpy.types.Object:
    """An empty that is keyed on every frame: where it is, and how it is turned."""
    empty = bpy.data.objects.new(name, None)
    bpy.context.scene.collection.objects.link(empty)
    channels = {"location": places}
    if turned is not None:
        empty.rotation_mode = "QUATERNION"
        channels["rotation_quaternion"] = continuous([Matrix(each).to_quaternion() for each in turned])
    key_all(empty, channels)
    return empty


def fcurve_maker(thing: bpy.types.Object) -> Callable[[str, int], bpy.types.FCurve]:
    """Makes F-curves in a new action of an object."""
    action = bpy.data.actions.new(f"{thing.name} keys")
    thing.animation_data_create().action = action
    if not hasattr(action, "slots"):  # Blender 4.2
        return lambda path, index: action.fcurves.new(path, index=index)
    slot = action.slots.new("OBJECT", thing.name)
    thing.animation_data.action_slot = slot
    bag = action.layers.new("Layer").strips.new(type="KEYFRAME").channelbag(slot, ensure=True)
    return lambda path, index: bag.fcurves.new(path, index=index)
