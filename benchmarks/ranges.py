"""Ranges of joints from Set Up Figure: frames that a bake reaches, and the largest rotation in a frame.

    python3 dev.py bench ranges
    python3 dev.py bench ranges -- --figures human --parts 0.2

Rigify's human, cat and wolf are set up with each choice of Joints. Targets of hands, feet, head and tail go
over 10 frames by a part of their chains' lengths: up, down, to the front, and towards the chains' roots. A
frame is reached if all targets are; frame 0 is the rest pose. Rotations are of a bone's channels between two
frames, degrees.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import bpy
import rigs
from _script import Table, run_benchmark
from mathutils import Quaternion, Vector

from ccd_rig.blender import set_up
from ccd_rig.blender.bake.bake import bake
from ccd_rig.blender.bake.settings import BakeSettings
from ccd_rig.blender.figures.choices import Choices, Group, Ranges

FRAMES = 10
FIGURES = ("human", "cat", "wolf")
MOVED = (Group.HANDS, Group.FEET, Group.HEAD, Group.TAIL)
CHOICES = {
    Ranges.NONE: "Free",
    Ranges.HINGES: "Knees and Elbows",
    Ranges.COMFORT: "Comfort",
    Ranges.LIMITS: "Limits",
}
Way = Callable[[Vector, Vector], Vector]
WAYS: dict[str, Way] = {
    "up": lambda target, root: Vector((0.0, 0.0, 1.0)),
    "down": lambda target, root: Vector((0.0, 0.0, -1.0)),
    "to the front": lambda target, root: Vector((0.0, -1.0, 0.0)),
    "towards the root": lambda target, root: (root - target).normalized(),
}


def baked(name: str, ranges: Ranges, part: float, way: Way) -> tuple[int, float]:
    """Set a figure up, move its targets, and bake: reached frames, and the largest rotation, degrees."""
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = rigs.metarig(name)
    rigs.activate(rig)
    result = set_up.set_up(bpy.context, rig, Choices(tuple(Group), ranges=ranges))
    rigs.update()
    for group, names in result.rows.items():
        for row in (rig.ccd_rig.constraints[each] for each in names if group in MOVED):
            bones = [rig.pose.bones[row.tip], *rig.pose.bones[row.tip].parent_recursive][: row.chain_length]
            root, target = rig.matrix_world @ bones[-1].head, row.target
            start = target.matrix_world.translation.copy()
            reach = sum(bone.length for bone in (bones if row.use_tail else bones[1:]))
            local = target.location.copy()
            turn = (target.matrix_world @ target.matrix_basis.inverted()).to_3x3().inverted()
            for frame, share in ((0, 0.0), (FRAMES, part)):
                target.location = local + turn @ (share * reach * way(start, root))
                target.keyframe_insert("location", frame=frame)
            for curve in target.animation_data.action.fcurves:
                for key in curve.keyframe_points:
                    key.interpolation = "LINEAR"
    report = bake(bpy.context.scene, rig, BakeSettings(0, FRAMES))
    return report.solved_count() - report.unsolved_count(), _largest_rotation(rig)


def _largest_rotation(rig: bpy.types.Object) -> float:
    largest, before = 0.0, dict[str, Quaternion]()
    for frame in range(FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        for bone in rig.pose.bones:
            rotation = bone.matrix_basis.to_quaternion()
            if bone.name in before:
                angle = before[bone.name].rotation_difference(rotation).angle
                largest = max(largest, min(angle, 2.0 * math.pi - angle))
            before[bone.name] = rotation
    return math.degrees(largest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figures", nargs="+", choices=FIGURES, default=FIGURES)
    parser.add_argument("--parts", nargs="+", type=float, default=(0.03, 0.2))
    options = parser.parse_args()
    table = Table(f"by | {'measured':38} | {' | '.join(CHOICES.values())}")
    for part in options.parts:
        cases = [
            [baked(name, ranges, part, way) for name in options.figures for way in WAYS.values()]
            for ranges in CHOICES
        ]
        count = (FRAMES + 1) * len(WAYS) * len(options.figures)
        reached = (str(sum(frames for frames, _ in case)) for case in cases)
        turned = (f"{max(angle for _, angle in case):.0f}" for case in cases)
        table.row(f"{100.0 * part:g} %", f"frames reached of {count}", *reached)
        table.row("", "largest rotation in a frame, degrees", *turned)


if __name__ == "__main__":
    run_benchmark(main)
