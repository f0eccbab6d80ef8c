"""A crowd baked in one pass, beside the same figures baked one by one, and beside Blender's IK and nla.bake.

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
import resource
import sys
import time
from pathlib import Path

import bpy
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import _crowd_scene as scene  # noqa: E402
import _product as product  # noqa: E402
from _bake_pairs import machine  # noqa: E402

FEW = 10
HEADS = ("figures", "one by one, ms", "in one pass, ms", "ratio", "keys apart", "reached", "memory, MB")


def baked_alone(figures: list[bpy.types.Object], settings: product.BakeSettings) -> float:
    """Seconds of processor time for each figure."""
    began = time.process_time()
    for figure in figures:
        product.bake(bpy.context.scene, figure, settings)
    return (time.process_time() - began) / len(figures)


def keys_of(figures: list[bpy.types.Object]) -> list[np.ndarray]:
    """The values of all keys, figure after figure."""
    found = []
    for figure in figures:
        curves = sorted(product.fcurves_of(figure), key=lambda curve: (curve.data_path, curve.array_index))
        found.append(np.array([[key.co[1] for key in curve.keyframe_points] for curve in curves]))
    return found


def row(count: int, frames: int) -> list[str]:
    """One size of the crowd."""
    settings = product.BakeSettings(1, frames, verify=False)
    few = min(FEW, count)
    figures = scene.crowd(count, frames)
    alone = baked_alone(figures[:few], settings)
    before = keys_of(figures[:few])
    figures = scene.crowd(count, frames)
    began = time.process_time()
    reports = product.bake_all(bpy.context.scene, dict.fromkeys(figures, settings))
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
    figures = scene.crowd(count, frames)
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
    product.register()
    print(f"Blender {bpy.app.version_string}; {machine()}; {chosen.frames} frames; per figure and frame.\n")
    print("| " + " | ".join(HEADS) + " |\n|" + " --- |" * len(HEADS))
    for count in chosen.figures:
        print("| " + " | ".join(row(count, chosen.frames)) + " |", flush=True)
    if chosen.peer:
        cost = blenders(chosen.peer, chosen.frames)
        print(f"\nBlender's IK and nla.bake, {chosen.peer} figures: {cost:.2f} ms a figure and frame")
    return 0


if __name__ == "__main__":
    product.leave(main())
