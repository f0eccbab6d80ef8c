"""A crowd of figures: a bake in one pass beside one by one and Blender's own.

    python3 dev.py bench crowd
    python3 dev.py bench crowd -- --figures 1 10 100 1000 --frames 250 --peer 10

Figures of 11 links walk over uneven ground with their feet and hands at goals. "One by one" is `bake` for ten
of the figures, in the file that holds them all; "in one pass" is `bake_all` for all of them. Blender's own
bake is of `--peer` figures with its IK. Processor time of all threads, per figure and frame, without checks.
The keys of both ways are compared. Memory is the largest of the process so far: name sizes in ascending
order.
"""

from __future__ import annotations

import argparse
import math
import resource
import time

import bpy
import numpy as np
import rigs
from _bake_pairs import set_limit
from _bake_scenes import cone, key_all, keyed_empty, set_range
from _script import Table, machine, run_benchmark

from ccd_rig.blender.bake.bake import bake
from ccd_rig.blender.bake.bake_all import bake_all
from ccd_rig.blender.bake.settings import BakeSettings
from ccd_rig.blender.keys.channels import fcurves_of

# A crowd of two-legged figures of 11 links that walk over uneven ground with their hands at goals, as in
# Kenwright 2012, section 13. Lengths in metres, angles in degrees.

BONES = {
    "pelvis": ("", (0.0, 0.0, 0.95), (0.0, 0.0, 1.1)),
    "chest": ("pelvis", (0.0, 0.0, 1.1), (0.0, 0.0, 1.5)),
    "head": ("chest", (0.0, 0.0, 1.5), (0.0, 0.0, 1.75)),
    "upper_arm.L": ("chest", (0.18, 0.0, 1.45), (0.28, 0.02, 1.17)),
    "forearm.L": ("upper_arm.L", (0.28, 0.02, 1.17), (0.32, -0.1, 0.9)),
    "upper_arm.R": ("chest", (-0.18, 0.0, 1.45), (-0.28, 0.02, 1.17)),
    "forearm.R": ("upper_arm.R", (-0.28, 0.02, 1.17), (-0.32, -0.1, 0.9)),
    "thigh.L": ("pelvis", (0.1, 0.0, 0.95), (0.1, -0.03, 0.5)),
    "shin.L": ("thigh.L", (0.1, -0.03, 0.5), (0.1, 0.02, 0.05)),
    "thigh.R": ("pelvis", (-0.1, 0.0, 0.95), (-0.1, -0.03, 0.5)),
    "shin.R": ("thigh.R", (-0.1, -0.03, 0.5), (-0.1, 0.02, 0.05)),
}
"""Parent, head and tail of each bone; the figure looks along -Y."""
RADII = {"chest": 35.0, "head": 40.0, "upper_arm": 100.0, "forearm": 130.0, "thigh": 90.0, "shin": 130.0}
"""Cones of the ball joints."""
STEP, PERIOD, STANCE = 0.4, 30, 0.6
"""Length of a step, frames of a cycle of two, and the part of it that a foot stands."""
LIFT, LOW, SOLE = 0.08, 0.06, 0.05
"""How high a foot is lifted, how much lower the pelvis goes than it stands at rest, how high ankles are."""
APART = 2.5
SIDES = {"L": 0.1, "R": -0.1}
"""Where the legs are."""


def crowd(count: int, frames: int) -> list[bpy.types.Object]:
    """An empty file with so many figures, each in its own place and phase."""
    bpy.ops.wm.read_homefile(use_empty=True)
    set_range(frames)
    first = rigs.armature([rigs.B(name, *ends, parent) for name, (parent, *ends) in BONES.items()])
    data = first.data
    bpy.data.objects.remove(first)
    random = np.random.default_rng(0)
    side = math.ceil(math.sqrt(count))
    figures = [bpy.data.objects.new(f"Figure {k}", data) for k in range(count)]
    for figure in figures:
        bpy.context.scene.collection.objects.link(figure)
    bpy.context.view_layer.update()  # makes the poses
    for k, figure in enumerate(figures):
        place = APART * np.array([k % side, -(k // side)], dtype=float)
        _animate(figure, k, place, float(random.uniform(0.0, PERIOD)), frames)
    bpy.context.scene.frame_set(1)
    return figures


def ground(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Height of the ground at places."""
    heights: np.ndarray = 0.05 * np.sin(1.7 * x + 0.4) * np.cos(1.1 * y) + 0.03 * np.sin(2.9 * y + x)
    return heights


def _animate(rig: bpy.types.Object, k: int, place: np.ndarray, phase: float, frames: int) -> None:
    """Limits, goals and keys of a figure."""
    for bone in rig.pose.bones:
        radius = RADII.get(bone.name.partition(".")[0])
        if radius is not None:
            set_limit(bone.ccd_rig.limit, cone(radius, 40.0))
    times = np.arange(frames)
    forwards = -2.0 * STEP * times / PERIOD
    feet = {
        side: _foot(times, phase + n * PERIOD / 2.0, place[0] + x, place[1])
        for n, (side, x) in enumerate(SIDES.items())
    }
    lowest = np.min([path[:, 2] for path in feet.values()], axis=0)
    origin = np.array([*place, 0.0])
    pelvis = np.stack((np.zeros(frames), forwards, lowest - LOW), axis=1) + origin
    rest = np.array(rig.data.bones["pelvis"].matrix_local.to_3x3())
    key_all(rig, {'pose.bones["pelvis"].location': pelvis @ rest})
    for side, path in feet.items():
        _reach(rig, f"shin.{side}", 2, keyed_empty(f"Foot {side} {k}", path + np.array([0.0, 0.0, SOLE])))
    for side, x in SIDES.items():
        turn = 0.5 * math.tau * (times + phase) / PERIOD + 20.0 * x
        hand = (3.0 * x + 0.1 * np.sin(turn), forwards - 0.25 + 0.1 * np.cos(turn), 1.1 + 0.15 * np.sin(turn))
        _reach(rig, f"forearm.{side}", 2, keyed_empty(f"Hand {side} {k}", np.stack(hand, axis=1) + origin))


def _foot(times: np.ndarray, phase: float, x: float, y: float) -> np.ndarray:
    """(F, 3) where a foot is: it stands for a part of each cycle."""
    cycle, part = np.divmod((times + phase) / PERIOD, 1.0)
    here = y - 2.0 * STEP * (cycle + 0.5 * STANCE - phase / PERIOD)
    swing = np.clip((part - STANCE) / (1.0 - STANCE), 0.0, 1.0)
    ys = here - 2.0 * STEP * swing * swing * (3.0 - 2.0 * swing)
    xs = np.full(len(times), x)
    return np.stack((xs, ys, ground(xs, ys) + LIFT * np.sin(math.pi * swing)), axis=1)


def _reach(rig: bpy.types.Object, tip: str, count: int, target: bpy.types.Object) -> None:
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.chain_length, row.target = f"Reach {tip}", tip, count, target


# Bakes and solves -------------------------------------------------------------------------------------------

FEW = 10
HEADS = "figures | one by one, ms | in one pass, ms | ratio | keys apart | reached | memory, MB"


def baked_alone(figures: list[bpy.types.Object], settings: BakeSettings) -> float:
    """Seconds of processor time for each figure."""
    began = time.process_time()
    for figure in figures:
        bake(bpy.context.scene, figure, settings)
    return (time.process_time() - began) / len(figures)


def keys_of(figures: list[bpy.types.Object]) -> list[np.ndarray]:
    """The values of all keys, figure after figure."""
    keys = []
    for figure in figures:
        curves = sorted(fcurves_of(figure), key=lambda curve: (curve.data_path, curve.array_index))
        keys.append(np.array([[key.co[1] for key in curve.keyframe_points] for curve in curves]))
    return keys


def row(count: int, frames: int) -> list[str]:
    """Measure a size of the crowd."""
    settings = BakeSettings(1, frames, verify=False)
    few = min(FEW, count)
    figures = crowd(count, frames)
    alone = baked_alone(figures[:few], settings)
    before = keys_of(figures[:few])
    figures = crowd(count, frames)
    began = time.process_time()
    reports = bake_all(bpy.context.scene, dict.fromkeys(figures, settings))
    together = (time.process_time() - began) / count
    after = keys_of(figures[:few])
    apart = max(float(np.abs(a - b).max()) for a, b in zip(before, after, strict=True))
    reached = sum(frames - report.unsolved_count() for report in reports)
    return [
        str(count),
        f"{1e3 * alone / frames:.2f}",
        f"{1e3 * together / frames:.2f}",
        f"{together / alone:.2f}",
        f"{apart:.0e}",
        f"{100.0 * reached / (frames * count):.2f} %",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    ]


def blenders(count: int, frames: int) -> float:
    """Milliseconds of Blender's IK and its own bake, per figure and frame."""
    figures = crowd(count, frames)
    bpy.ops.object.select_all(action="DESELECT")
    for figure in figures:
        for each in figure.ccd_rig.constraints:
            ik = figure.pose.bones[each.tip].constraints.new("IK")
            ik.target, ik.chain_count = each.target, each.chain_length
        figure.ccd_rig.constraints.clear()
        figure.select_set(True)
    bpy.context.view_layer.objects.active = figures[0]
    bpy.ops.object.mode_set(mode="POSE")
    began = time.process_time()
    bpy.ops.nla.bake(
        frame_start=1,
        frame_end=frames,
        only_selected=False,
        visual_keying=True,
        clear_constraints=True,
        use_current_action=True,
        bake_types={"POSE"},
    )
    return 1e3 * (time.process_time() - began) / (count * frames)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figures", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--frames", type=int, default=250)
    parser.add_argument("--peer", type=int, default=10, help="figures that Blender bakes too; 0: none")
    chosen = parser.parse_args()
    print(f"\nBlender {bpy.app.version_string}; {machine()}; {chosen.frames} frames; per figure and frame.\n")
    table = Table(HEADS)
    for count in chosen.figures:
        table.row(*row(count, chosen.frames))
    if chosen.peer:
        cost = blenders(chosen.peer, chosen.frames)
        print(f"\nBlender's IK and nla.bake, {chosen.peer} figures: {cost:.2f} ms a figure and frame")
    return 0


if __name__ == "__main__":
    run_benchmark(main)
