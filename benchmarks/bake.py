"""The bake beside Blender's own IK constraint with its own bake, in the same process and run.

    python3 dev.py bench bake
    python3 dev.py bench bake -- --bones 20 50 --frames 250 2500 --runs 5

A chain of bones of 0.25 units follows a target that moves smoothly within reach. Ours:
`ccd_rig.blender.bake.bake`, all included (evaluation, solving, slerp, report, keys written). Blender's: an
IK constraint on the last bone, baked by `bpy.ops.nla.bake(visual_keying=True)` with all bones selected. The
two run by turns; ratios are ours / Blender's, medians of the pairs. Errors and turns are measured alike, on
the baked keys, frame by frame, as Blender plays them."""

from __future__ import annotations

import argparse
import math
import platform
import statistics
import sys
import time
from pathlib import Path

import bpy
import numpy as np
from mathutils import Quaternion

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import ccd_rig.blender  # noqa: E402
from ccd_rig.blender.bake import BakeSettings, bake  # noqa: E402
from ccd_rig.blender.channels import select_bone  # noqa: E402

BONE = 0.25


def scene(bones: int, frames: int) -> tuple[bpy.types.Object, bpy.types.Object]:
    """An armature of one straight chain, and a target that is keyed on every tenth frame."""
    bpy.ops.wm.read_homefile(use_empty=True)
    data = bpy.data.armatures.new("Rig")
    rig = bpy.data.objects.new("Rig", data)
    bpy.context.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    parent = None
    for i in range(bones):
        bone = data.edit_bones.new(f"bone{i}")
        bone.head, bone.tail = (0.0, 0.0, BONE * i), (0.0, 0.0, BONE * (i + 1))
        bone.parent, bone.use_connect = parent, parent is not None
        parent = bone
    bpy.ops.object.mode_set(mode="POSE")
    target = bpy.data.objects.new("Target", None)
    bpy.context.collection.objects.link(target)
    length = BONE * bones
    for frame in range(1, frames + 11, 10):
        a = 2.0 * math.pi * frame / 250.0
        target.location = (
            length * (0.45 + 0.1 * math.cos(2.0 * a)) * math.cos(a),
            length * 0.45 * math.sin(a),
            length * (0.5 + 0.15 * math.sin(3.0 * a)),
        )
        target.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, frames
    return rig, target


def ours(rig: bpy.types.Object, frames: int) -> float:
    began = time.perf_counter()
    bake(bpy.context.scene, rig, BakeSettings(1, frames))
    return time.perf_counter() - began


def blenders(rig: bpy.types.Object, target: bpy.types.Object, frames: int) -> float:
    tip = rig.pose.bones[-1]
    constraint = tip.constraints.new("IK")
    constraint.target = target
    for bone in rig.pose.bones:
        select_bone(bone, True)
    began = time.perf_counter()
    bpy.ops.nla.bake(
        frame_start=1,
        frame_end=frames,
        only_selected=True,
        visual_keying=True,
        clear_constraints=True,
        bake_types={"POSE"},
    )
    return time.perf_counter() - began


def played(rig: bpy.types.Object, target: bpy.types.Object, frames: int) -> tuple[float, float, float, float]:
    """Mean and worst distance; largest and mean turn of a bone from frame to frame, degrees."""
    errors, turns, before = [], [], None
    for frame in range(1, frames + 1):
        bpy.context.scene.frame_set(frame)
        tail = rig.matrix_world @ rig.pose.bones[-1].tail
        errors.append((tail - target.matrix_world.translation).length)
        now = [bone.matrix_basis.to_quaternion() for bone in rig.pose.bones]
        if before is not None:
            turns.append([_angle(a, b) for a, b in zip(before, now, strict=True)])
        before = now
    return float(np.mean(errors)), max(errors), float(np.max(turns)), float(np.mean(turns))


def _angle(a: Quaternion, b: Quaternion) -> float:
    turn = a.conjugated() @ b
    return math.degrees(2.0 * math.atan2(math.hypot(turn.x, turn.y, turn.z), abs(turn.w)))


def pair(bones: int, frames: int) -> tuple[float, float, tuple[float, ...], tuple[float, ...]]:
    """Seconds of both, and what both baked."""
    rig, target = scene(bones, frames)
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Tip", f"bone{bones - 1}", target
    our_time = ours(rig, frames)
    our_quality = played(rig, target, frames)
    rig, target = scene(bones, frames)
    its_time = blenders(rig, target, frames)
    return our_time, its_time, our_quality, played(rig, target, frames)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bones", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--frames", type=int, nargs="+", default=[250])
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    ccd_rig.blender.register()
    try:
        machine = platform.processor() or platform.machine()
        print(f"Blender {bpy.app.version_string}, {machine}, {chosen.runs} pairs")
        print(
            f"{'':24s}{'ms':>9s}{'ratio':>8s}{'mean error':>12s}{'worst':>10s}{'turn max':>10s}{'mean':>8s}"
        )
        for bones in chosen.bones:
            for frames in chosen.frames:
                pair(bones, min(frames, 50))  # what is loaded once is not counted
                runs = [pair(bones, frames) for _ in range(chosen.runs)]
                ratio = statistics.median(a / b for a, b, _, _ in runs)
                for place, name in ((0, "ours"), (1, "Blender's IK")):
                    took = statistics.median(run[place] for run in runs) * 1e3
                    mean, worst, most, usual = runs[0][2 + place]
                    print(
                        f"{name:14s}{bones:4d} x{frames:5d}{took:9.1f}"
                        f"{(f'{ratio:8.2f}' if place == 0 else ' ' * 8)}"
                        f"{mean:12.1e}{worst:10.1e}{most:10.2f}{usual:8.2f}",
                        flush=True,
                    )
    finally:
        bpy.ops.wm.read_homefile(use_empty=True)
        ccd_rig.blender.unregister()


if __name__ == "__main__":
    main()
