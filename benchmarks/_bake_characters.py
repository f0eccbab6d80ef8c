"""Characters and chains of every kind as shots, for `characters.py`.

Every function fills an empty file. Lengths in metres, angles in degrees.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import rigs
from _bake_pairs import set_limit, shot_of
from _bake_scenes import (
    BONE,
    TURN,
    Reach,
    Shot,
    chain,
    cone,
    key_all,
    keyed_empty,
    metarig,
    moving,
    set_range,
)
from mathutils import Matrix, Quaternion, Vector

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import demo
import stage
import walk as curves

LONG = 20  # bones of a chain
STRETCH = 0.1  # of a bone's length that it slides to both sides
BENT = 2.0  # degrees
EASY = 15.0  # degrees to all sides that a bone prefers


# --- chains -------------------------------------------------------------------------------------------------


def chain_pole(frames: int) -> Shot:
    """The chain is to bend towards a point that goes round it, a quarter ahead of the target.

    It is posed slightly bent towards where that is first: with a pole Blender's IK does not leave a straight
    pose, and takes the way it bends from the pose.
    """
    shot, length = chain(LONG, frames), LONG * BONE
    for bone in shot.rig.pose.bones:
        bone.rotation_quaternion = Quaternion((1.0, 0.0, 0.0), math.radians(BENT))
    pole = moving("Pole", lambda a: 2.0 * length * Vector((-math.sin(a), math.cos(a), 0.25)), frames)
    return _with_reach(shot, pole=pole)


def chain_rotation(frames: int) -> Shot:
    """The last bone is to be turned as the target, which sways."""
    shot = chain(LONG, frames)
    target = shot.reaches[0].target
    for frame in range(1, frames + 11, 10):
        a = 2.0 * math.pi * frame / TURN
        target.rotation_euler = (
            math.pi / 2.0 + 0.5 * math.sin(a),
            0.3 * math.cos(2.0 * a),
            0.5 * math.cos(a),
        )
        target.keyframe_insert("rotation_euler", frame=frame)
    return _with_reach(shot, rotation=True)


def chain_slides(frames: int) -> Shot:
    """Every bone slides a little along its parent; Blender's IK stretches it instead."""

    def ours(rig: bpy.types.Object) -> None:
        for bone in rig.pose.bones:
            group = bone.ccd_rig
            group.use_slide = (False, True, False)
            group.slide_lower, group.slide_upper = (-STRETCH * BONE,) * 3, (STRETCH * BONE,) * 3

    def its(rig: bpy.types.Object) -> None:
        for bone in rig.pose.bones:
            bone.ik_stretch = STRETCH

    return dataclasses.replace(chain(LONG, frames, connect=False), ours=ours, its=its)


def chain_comfort(frames: int) -> Shot:
    """Every bone prefers to be nearly straight; Blender's IK has no such thing."""

    def ours(rig: bpy.types.Object) -> None:
        for bone in rig.pose.bones:
            set_limit(bone.ccd_rig.comfort.region, cone(EASY))

    return dataclasses.replace(chain(LONG, frames, (cone(60.0),), 0.1), ours=ours)


def _with_reach(shot: Shot, **fields: Any) -> Shot:
    return dataclasses.replace(shot, reaches=(dataclasses.replace(shot.reaches[0], **fields),))


# --- a spine with a head and two hands ----------------------------------------------------------------------

UPPER_BODY = (("spine.006", 6), ("hand.L", 7), ("hand.R", 7))  # tip, bones up to the lowest of the spine


def spine(frames: int) -> Shot:
    """Head and hands have targets that move about, and share three bones of the spine."""
    return _upper_body(frames, UPPER_BODY, (-0.18, -0.1, -0.1), {})


def conflict(frames: int, **fields: tuple[Any, Any]) -> Shot:
    """Both hands are to be farther apart than they reach, by turns; `fields` of the left and right goal."""
    return _upper_body(frames, UPPER_BODY[1:], (0.25, -0.2, 0.1), fields)


def _upper_body(
    frames: int,
    tips: tuple[tuple[str, int], ...],
    shift: tuple[float, float, float],
    fields: dict[str, tuple[Any, Any]],
) -> Shot:
    """Targets sway about where the tips rest, shifted by X away from the body, Y and Z."""
    rig = metarig()
    reaches = []
    for number, (tip, count) in enumerate(tips):
        end = rig.pose.bones[tip].tail
        side = 0.0 if tip.startswith("spine") else math.copysign(1.0, end.x)
        middle = end + (
            Vector((side * shift[0], shift[1], shift[2])) if side else Vector((0.0, -0.03, -0.05))
        )
        spread = Vector((0.1, 0.12, 0.1)) if side else Vector((0.06, 0.06, 0.02))

        def place(a: float, middle: Vector = middle, spread: Vector = spread, n: int = number) -> Vector:
            return middle + Vector((math.sin(a + n), math.cos(2.0 * a + n), math.sin(2.0 * a - n))) * spread

        more = {name: values[number] for name, values in fields.items()}
        reaches.append(Reach(tip, count, moving(f"Target {tip}", place, frames), **more))
    set_range(frames)
    bones: dict[str, None] = {}
    for tip, count in tips:
        limb = [rig.pose.bones[tip], *rig.pose.bones[tip].parent_recursive][:count]
        bones |= dict.fromkeys(bone.name for bone in reversed(limb))
    return Shot(rig, tuple(reaches), tuple(bones), (None,) * len(bones))


# --- eight legs ---------------------------------------------------------------------------------------------

LEG = ((0.2, 0.0), (0.35, 0.2), (0.6, 0.3), (0.8, 0.1), (0.95, -0.2), (1.0, -0.5))  # outwards, upwards [m]
PERIOD, SWING = 40, 12  # frames of a step, and of it in the air
SPEED = 0.012  # metres per frame
LIFT = 0.15  # metres


def legs(frames: int) -> Shot:
    """A body with eight legs of five bones that walks; feet stay where they were put down."""
    bpy.ops.wm.read_homefile(use_empty=True)
    ways = [Vector((math.cos(a), math.sin(a), 0.0)) for a in (math.pi * (k + 0.5) / 4.0 for k in range(8))]
    bones = [rigs.B("body", (0.0, -0.3, 0.5), (0.0, 0.3, 0.5))]
    for number, way in enumerate(ways):
        for k, ((a, up), (b, top)) in enumerate(pairwise(LEG)):
            ends = (c * way + Vector((0, 0, 0.5 + z)) for c, z in ((a, up), (b, top)))
            parent = f"leg{number}.{k - 1}" if k else "body"
            bones.append(rigs.B(f"leg{number}.{k}", *ends, parent, 0.0, k > 0))
    rig, names = rigs.armature(bones, "Spider"), [bone.name for bone in bones[1:]]
    bpy.ops.object.mode_set(mode="POSE")
    time = np.arange(frames)
    shift = np.stack((0.03 * np.sin(time / 15.0), SPEED * time, 0.04 * np.sin(time / 9.0)), axis=1)
    rest = np.array(rig.data.bones["body"].matrix_local.to_3x3())
    key_all(rig, {'pose.bones["body"].location': shift @ rest})
    reaches = []
    for number, way in enumerate(ways):
        # Of a step, the foot stands first and is swung then; neighbours by turns.
        phase = (time + (number * 5 % 8) * PERIOD / 8.0) / PERIOD
        step, part = np.floor(phase), np.clip((phase % 1.0 * PERIOD - (PERIOD - SWING)) / SWING, 0.0, 1.0)
        places = np.tile(np.array(way), (frames, 1))
        places[:, 1] += SPEED * PERIOD * (step + part * part * (3.0 - 2.0 * part) - (number * 5 % 8) / 8.0)
        places[:, 2] = LIFT * np.sin(np.pi * part) ** 2
        reaches.append(Reach(f"leg{number}.4", 5, keyed_empty(f"Foot {number}", places)))
    set_range(frames)
    return Shot(rig, tuple(reaches), tuple(names), (None,) * len(names))


# --- a two-legged figure ------------------------------------------------------------------------------------

STRIDE = 50  # frames


def biped(frames: int, poles: bool = False) -> Shot:
    """A figure of 16 bones that walks on the spot: hips, feet and hands are keyed on every frame."""
    bpy.ops.wm.read_homefile(use_empty=True)
    bones = [
        rigs.B("hips", (0.0, 0.0, 1.0), (0.0, 0.0, 1.15)),
        rigs.B("spine", (0.0, 0.0, 1.15), (0.0, 0.0, 1.35), "hips", 0.0, True),
        rigs.B("chest", (0.0, 0.0, 1.35), (0.0, 0.0, 1.55), "spine", 0.0, True),
        rigs.B("head", (0.0, 0.0, 1.55), (0.0, 0.0, 1.75), "chest", 0.0, True),
    ]
    for side, x in (("L", 1.0), ("R", -1.0)):
        leg = ((0.1 * x, 0.0, 1.0), (0.1 * x, -0.02, 0.55), (0.1 * x, 0.02, 0.1), (0.1 * x, -0.15, 0.02))
        arm = ((0.18 * x, 0.0, 1.5), (0.45 * x, 0.02, 1.5), (0.7 * x, 0.0, 1.5), (0.8 * x, 0.0, 1.5))
        for names, points, parent in (
            (("thigh", "shin", "foot"), leg, "hips"),
            (("upper", "fore", "hand"), arm, "chest"),
        ):
            for k, (name, ends) in enumerate(zip(names, pairwise(points), strict=True)):
                above = f"{names[k - 1]}.{side}" if k else parent
                bones.append(rigs.B(f"{name}.{side}", *ends, above, 0.0, k > 0))
    rig = rigs.armature(bones, "Biped")
    bpy.ops.object.mode_set(mode="POSE")
    turn = 2.0 * np.pi * np.arange(frames) / STRIDE
    none = np.zeros(frames)
    shift = np.stack(
        (0.03 * np.sin(turn), 0.02 * np.sin(0.4 * turn), -0.18 + 0.03 * np.sin(2.0 * turn)), axis=1
    )
    rest = np.array(rig.data.bones["hips"].matrix_local.to_3x3())
    key_all(rig, {'pose.bones["hips"].location': shift @ rest})
    reaches, moved = [], []
    for side, x, phase in (("L", 1.0, 0.0), ("R", -1.0, math.pi)):
        at = turn + phase
        foot = np.stack(
            (0.1 * x + none, 0.02 + 0.2 * np.sin(at), 0.1 + 0.08 * np.maximum(0.0, np.cos(at))), axis=1
        )
        hand = np.stack(
            (0.45 * x + 0.05 * np.sin(0.7 * turn), -0.2 - 0.1 * np.sin(at), 1.2 + 0.15 * np.sin(at)), axis=1
        )
        for tip, places, aside in (("shin", foot, (0.0, -1.0, 0.5)), ("fore", hand, (0.2 * x, 1.0, 0.0))):
            pole = keyed_empty(f"Pole {tip}.{side}", places + np.array(aside)) if poles else None
            reaches.append(Reach(f"{tip}.{side}", 2, keyed_empty(f"{tip}.{side}", places), pole=pole))
        moved += [f"{name}.{side}" for name in ("thigh", "shin", "upper", "fore")]
    set_range(frames)
    return Shot(rig, tuple(reaches), tuple(moved), (None,) * len(moved))


# --- the demo's figure --------------------------------------------------------------------------------------


def figure(_frames: int = 0) -> Shot:
    """The demo's figure with its limits, goals and settings, without the meshes on its bones."""
    rig, _ = _staged()
    return shot_of(rig, options={"error_reduction": demo.ERROR_REDUCTION})


def walk(_frames: int = 0) -> Shot:
    """The demo's walk with planted feet: ours by Plant, Blender's by IK to the same places and moved hips.

    Feet stay where they are while they are flat on the ground; else they follow targets, as do the hips.
    """
    rig, motion = _staged()
    rows = rig.ccd_rig.constraints
    rows.clear()
    for side, foot in motion.feet.items():
        plant = rows.add()
        plant.kind, plant.name, plant.tip, plant.chain_length = "PLANT", f"Plant {side}", f"foot.{side}", 4
        # A foot is held where it was in the frame before: it has to have come down by then.
        held = foot.flat & np.roll(foot.flat, 1) & (motion.frames > 1)
        for frame, is_held in enumerate(held, 1):
            plant.influence = float(is_held)
            plant.keyframe_insert("influence", frame=frame)
    for side, foot in motion.feet.items():
        rest = rig.data.bones[f"foot.{side}"].matrix_local.to_3x3()
        _follow(rig, f"foot.{side}", 3, foot.ankle, [Matrix.Rotation(a, 3, "X") @ rest for a in foot.pitch])
    hips = []
    for f in range(len(motion.frames)):
        bpy.context.scene.frame_set(f + 1)
        hips.append(rig.pose.bones["spine"].matrix.copy())
    _follow(rig, "spine", 1, np.array([matrix.translation for matrix in hips]), hips)
    bpy.context.scene.frame_set(1)
    return shot_of(rig)


def _staged() -> tuple[bpy.types.Object, curves.Motion]:
    bpy.ops.wm.read_homefile(use_empty=True)
    rig, motion = stage.build()
    targets = {row.target for row in rig.ccd_rig.constraints}
    for thing in [thing for thing in bpy.data.objects if thing.type == "MESH" and thing not in targets]:
        bpy.data.objects.remove(thing)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    bpy.context.scene.frame_set(1)
    return rig, motion


def _follow(
    rig: bpy.types.Object, tip: str, count: int, places: np.ndarray, turned: Sequence[Matrix]
) -> None:
    """The head of a bone is to be at these places, and turned so."""
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.chain_length = tip, tip, count
    row.target = keyed_empty(f"Target {tip}", places, turned)
    row.use_tail, row.rotation = False, "ORIENTATION"
