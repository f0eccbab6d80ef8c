"""Cost of an update of the live preview, beside Blender's evaluation of the same rig with IK.

    python3 dev.py bench live
    python3 dev.py bench live -- --case chain figure --runs 5

Protocol: `frame_set` over the frames of a shot, processor time of all threads. With our constraints that is
Blender's evaluation, the handler (sample, solve, clamps) and Blender's second evaluation. With Blender's IK
constraints it is one evaluation. Both in files of their own, by turns. Of each frame the shortest of its runs
counts, as other work on the machine makes some longer. The unit of the ratios is the median of Blender's. The
first frames of a run are not counted: they set up what is kept between updates.

The budget: the median at most 3, the 95th percentile at most 6, and no update above 25 ms.

Cases, each with all targets moving, as *-far out of reach, and as *-one with just one of them, as in a drag:
    chain      20 free bones
    human      Rigify's human metarig, five targets
    figure     the demo's figure
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import _bake_characters as characters
import _bake_scenes as scenes
import bpy
import numpy as np
from _bake_pairs import add_iks, add_rows
from _script import Table, machine, run_benchmark

FRAMES, WARM = 200, 10
FAR = 8.0  # metres that targets go up where they are out of reach
MEDIAN, LATE, MOST = 3.0, 6.0, 25.0  # the budget: ratios, and milliseconds
HEADS = (
    "case       | Blender, ms | ours, ms | 95th, ms | largest, ms | ratio | ratio, 95th | error, mm | within"
)

Make = Callable[[int], scenes.Shot]


def far(make: Make, frames: int) -> scenes.Shot:
    """A shot whose targets are out of reach."""
    shot = make(frames)
    for reach in shot.reaches:
        reach.target.delta_location.z += FAR
    return shot


def one(make: Make, frames: int) -> scenes.Shot:
    """A shot of whose targets only the last one moves."""
    shot = make(frames)
    bpy.context.scene.frame_set(1)
    for reach in shot.reaches[:-1]:
        reach.target.animation_data_clear()
    return shot


def cases() -> dict[str, Make]:
    near: dict[str, Make] = {
        "chain": partial(scenes.chain, 20),
        "human": scenes.character,
        "figure": characters.figure,
    }
    shots = dict(near)
    for name, make in near.items():
        if name == "human":  # the figure walks away from targets that stand still
            shots[f"{name}-one"] = partial(one, make)
        shots[f"{name}-far"] = partial(far, make)
    return shots


def updates(frames: int) -> np.ndarray:
    """Milliseconds of each frame change."""
    times = []
    for frame in range(1, frames + 1):
        started = time.process_time()
        bpy.context.scene.frame_set(frame)
        times.append(1e3 * (time.process_time() - started))
    return np.array(times[WARM:])


def error(shot: scenes.Shot) -> float:
    """Millimetres from a target at the present frame, at most."""
    rig, errors = shot.rig, []
    for reach in shot.reaches:
        tip = rig.pose.bones[reach.tip]
        point = rig.matrix_world @ (tip.tail if reach.use_tail else tip.head)
        errors.append(1e3 * (point - reach.target.matrix_world.translation).length)
    return max(errors)


def ours(make: Make, frames: int) -> tuple[np.ndarray, float]:
    shot = make(frames)
    add_rows(shot)
    shot.rig.ccd_rig.live = True
    return updates(frames), error(shot)


def blenders(make: Make, frames: int) -> np.ndarray:
    shot = make(frames)
    if shot.is_set_up:
        shot.rig.ccd_rig.constraints.clear()
    add_iks(shot)
    return updates(frames)


def measure(table: Table, name: str, make: Make, runs: int) -> bool:
    """Print a line of the table; whether the case is within the budget."""
    mine, its, off = [], [], 0.0
    for run in range(runs):
        for side in (0, 1) if run % 2 == 0 else (1, 0):
            if side == 0:
                times, off = ours(make, FRAMES)
                mine.append(times)
            else:
                its.append(blenders(make, FRAMES))
    unit, each = float(np.median(np.min(its, axis=0))), np.min(mine, axis=0)
    median, late, most = float(np.median(each)), float(np.percentile(each, 95)), float(each.max())
    within = median / unit <= MEDIAN and late / unit <= LATE and most <= MOST
    values = (f"{unit:.2f}", f"{median:.2f}", f"{late:.2f}", f"{most:.1f}")
    ratios = (f"{median / unit:.2f}", f"{late / unit:.2f}", f"{off:.2g}", "yes" if within else "NO")
    table.row(name, *values, *ratios)
    return within


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="+", default=[], help="names, or their beginnings; default: all")
    parser.add_argument("--runs", type=int, default=5, help="pairs")
    chosen = parser.parse_args()
    known = cases()
    names = [n for n in known if not chosen.case or any(n.startswith(case) for case in chosen.case)]
    if not names:
        parser.error(f"no such case; there are: {', '.join(known)}")
    print(f"Blender {bpy.app.version_string}; {machine()}; {chosen.runs} pairs of {FRAMES} frames.\n")
    table = Table(HEADS)
    late = [name for name in names if not measure(table, name, known[name], chosen.runs)]
    print(f"\nover the budget: {', '.join(late) or 'none'}")
    return 0


if __name__ == "__main__":
    run_benchmark(main)
