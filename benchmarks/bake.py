"""The bake beside Blender's own IK constraint with its own bake, in the same process and run.

    python3 dev.py bench bake
    python3 dev.py bench bake -- --case chain limits --runs 5

Cases:
    chain      20 bones, 250 frames
    bones      50 and 100 bones
    limits     20 bones with cones, and with hinges between cones, beside the same chain without; a lower
               target, so that limits are met
    character  Rigify's human metarig: arms, legs and spine, 17 of 159 bones
    straight   12 bones whose target goes through the axis on which they rest; the tutorial's tail
    heavy      20 bones in a scene with a skin of 500,000 vertices and fifty other objects (minutes)

Ours: `ccd_rig.blender.bake`, all included (evaluation, solving, slerp, keys written, report) but the
check after it. Blender's: IK constraints baked by `bpy.ops.nla.bake(visual_keying=True)` with just the
chains' bones selected: as its dialog comes, with location, rotation and scale keyed, and for the second
ratio ("alike") with rotations alone, as ours are. They run by turns in new files; a ratio is ours /
Blender's, the median of the pairs. Errors and turns are measured alike, on the baked keys, frame by frame,
as Blender plays them; turns are a bone's own, relative to its parent.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial

import _bake_scenes as scenes
import bpy
import numpy as np
from _bake_pairs import (
    Pairs,
    Played,
    add_rows,
    measure,
    seconds,
    time_ours,
)
from _script import Table, machine, run_benchmark

LIMITS: dict[str, Sequence[scenes.Limit | None]] = {
    "no limits": (None,),
    "cones 60": (scenes.cone(60.0),),
    "cones 30": (scenes.cone(30.0),),
    "hinge, cone 60": (scenes.hinge(), scenes.cone(60.0)),
    "hinge, cone 30": (scenes.hinge(), scenes.cone(30.0)),
}
LOW = 0.1  # the target's height in lengths of the chain: at the usual 0.5 hardly a limit is met
JUMP = 3.0  # degrees per frame: more is not what a smooth target asks for
HEADS = (
    f"{'case':42} | ms | ms/frame | ratio | alike | mean error | worst | turn max | mean | 2nd diff | broken"
)


def case_chain(runs: int, frames: int) -> None:
    table = Table(HEADS)
    _say(_rows(table, "20 bones", frames, measure(partial(scenes.chain, 20, frames), frames, runs)))


def case_bones(runs: int, frames: int) -> None:
    table = Table(HEADS)
    notes = []
    for bones in (50, 100):
        measured = measure(partial(scenes.chain, bones, frames), frames, runs)
        notes += _rows(table, f"{bones} bones", frames, measured)
        ours, its = (int(np.sum(keys.errors > 1e-3)) for keys in (measured.our_keys, measured.its_keys))
        notes.append(
            f"{bones} bones: {ours} of our frames and {its} of Blender's are off by more than 1e-3 m"
        )
    _say(notes)


def case_limits(runs: int, frames: int) -> None:
    table = Table(HEADS)
    notes, free = [], 0.0
    for name, limits in LIMITS.items():
        measured = measure(partial(scenes.chain, 20, frames, limits, LOW), frames, runs)
        notes += _rows(table, name, frames, measured)
        worst = float(np.max(measured.our_keys.bends))
        free = free or worst
        notes.append(f"{name}: second difference {worst / free:.2f} times that of the chain without limits")
    _say(notes)


def case_character(runs: int, frames: int) -> None:
    table = Table(HEADS)
    _say(_rows(table, "metarig, 5 targets", frames, measure(partial(scenes.character, frames), frames, runs)))


def case_straight(runs: int, _frames: int) -> None:
    table = Table(HEADS)
    notes = []
    for name, frames, tail in (("12 bones, eight", 60, False), ("tutorial's tail", 72, True)):
        shot = partial(scenes.eight, frames, tail=tail)
        notes += _rows(table, name, 2 * frames + 1, measure(shot, 2 * frames + 1, runs))
    _say(notes)


def case_heavy(runs: int, frames: int) -> None:
    table = Table(HEADS)
    heavy = partial(scenes.heavy, 20, frames)
    measured = measure(heavy, frames, runs, alike=False)
    notes = _rows(table, "20 bones, heavy scene", frames, measured)
    add_rows(shot := heavy())
    checked = time_ours(shot, frames, verify=True).wall
    notes.append(f"with the check after it: {checked * 1e3:.0f} ms")
    shot = heavy()
    began = time.perf_counter()
    for frame in range(2, 12):
        bpy.context.scene.frame_set(frame)
    took = (time.perf_counter() - began) / 10
    skin = shot.beside[0].evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    others = len(shot.beside) - 1
    notes.append(f"{len(skin.vertices)} vertices, {others} others; a frame plays in {took * 1e3:.0f} ms")
    _say(notes)


CASES: dict[str, Callable[[int, int], None]] = {
    name.removeprefix("case_"): function
    for name, function in list(globals().items())
    if name.startswith("case_")
}


def _say(notes: Sequence[str]) -> None:
    print("\n" * bool(notes) + "\n".join(f"- {note}" for note in notes), flush=True)


def _rows(table: Table, name: str, frames: int, measured: Pairs) -> list[str]:
    """Print the two rows of a measurement; returns what is to be said about them below the table."""
    for side, times, keys, beside in (
        ("ours", measured.ours, measured.our_keys, (_short(measured.ratio), _short(measured.ratio_alike))),
        ("Blender", measured.blenders, measured.its_keys, ("", "")),
    ):
        took = seconds(times) * 1e3
        numbers = f"{took:.1f}", f"{took / frames:.3f}", *beside, *_quality(keys)
        table.row(f"{name} x {frames}, {side}", *numbers)
    return [*_jumps(f"{name}, ours", measured.our_keys), *_jumps(f"{name}, Blender", measured.its_keys)]


def _jumps(name: str, keys: Played) -> list[str]:
    """Whether a bone turns by more than JUMP, where, and at how many frames."""
    jumps = np.flatnonzero(keys.turns.max(axis=1) > JUMP)
    if not len(jumps):
        return []
    f, j = np.unravel_index(int(np.argmax(keys.turns)), keys.turns.shape)
    frames = f"{len(jumps)} frame{'s' * (len(jumps) > 1)}"
    return [f"{name}: more than {JUMP:g} degrees at {frames}, most at frame {f + 2}, bone {j + 1}"]


def _short(ratio: float) -> str:
    return "" if np.isnan(ratio) else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.4f}"


def _quality(keys: Played) -> tuple[str, ...]:
    return (
        f"{keys.errors.mean():.1e}",
        f"{keys.errors.max():.1e}",
        f"{keys.turns.max():.3f}",
        f"{keys.turns.mean():.3f}",
        f"{keys.bends.max():.3f}",
        "" if np.isnan(keys.broken) else f"{keys.broken:.1e}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="+", choices=CASES, default=["chain", "bones", "limits", "character"])
    parser.add_argument("--frames", type=int, default=250, help="of the case with the fewest")
    parser.add_argument("--runs", type=int, default=5, help="pairs")
    chosen = parser.parse_args()
    print(f"Blender {bpy.app.version_string}; {machine()}; {chosen.runs} pairs. Times: medians in ms.")
    print("Errors, mean and worst, in metres; in degrees: turns of a bone per frame (largest, mean),")
    print("largest second difference, worst broken limit.")
    measure(partial(scenes.chain, 20, 20), 20, 1)  # what is loaded once is not counted
    for name in chosen.case:
        print(f"\n--- {name}", flush=True)
        CASES[name](chosen.runs, chosen.frames)


if __name__ == "__main__":
    run_benchmark(main)
