"""Growth of a bake with size: processor time, memory and the longest wait for progress.

    python3 dev.py bench growth
    python3 dev.py bench growth -- --case reached spine

Cases, each of one size that grows:
    reached   n chains of three bones on one armature, each with a target of its own, 10 frames
    spine     a spine of 300 bones that reaches for a target, and n limbs of three bones on it with targets of
              their own, 10 frames
    shared    the same, where the chains of the limbs go down to the spine's root: all rows share its bones
    bones     one chain of n bones, 100 frames
    frames    one chain of 20 bones, n frames
    rigs      n armatures of one chain of three bones in one pass (Bake All), 50 frames

Each bake has a process of its own, with its checks and the check of what plays. Processor time is of all
threads; memory is the largest of the process beyond what it had before the bake; a wait is the processor time
between two items of progress, before the first and after the last included. Slopes are of straight lines
fitted to the logarithms; "end" is the slope between the two largest sizes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bpy
import numpy as np
import rigs
from _bake_scenes import key_all, set_range
from _script import Table, machine, run_benchmark
from mathutils import Vector

from ccd_rig.blender.bake.bake import bake
from ccd_rig.blender.bake.bake_all import bake_all
from ccd_rig.blender.bake.settings import BakeSettings

ROOT = Path(__file__).resolve().parent.parent

APART = 2.0
SPINE = 300
STEPS_OF_A_CIRCLE = 40.0  # frames in which a target goes round


class Shot(NamedTuple):
    """Scene of a bake: armature objects, and the number of frames."""

    rigs: tuple[bpy.types.Object, ...]
    frames: int


class Chain(NamedTuple):
    """Bones in a row that reach for a target of their own.

    Attributes:
        root: (3,) head of the first bone.
        bones: how many.
        parent: name of the bone on which the first one hangs; empty for none.
        distance: of the middle of the target's path from the root, in lengths of the chain.
        across: of that middle from the chain's axis, likewise.
        bone: length of a bone.
        shares: whether the bones that it hangs on reach with it.
    """

    root: tuple[float, float, float]
    bones: int
    parent: str = ""
    distance: float = 0.5
    across: float = 0.45
    bone: float = 0.5
    shares: bool = False

    def name(self, k: int, place: int) -> str:
        """Of a bone."""
        return f"chain_{k}_{place}"


def armature(name: str, chains: list[Chain], frames: int) -> bpy.types.Object:
    """An armature object of chains upwards, each with a constraint and its keyed target."""
    bones = []
    for k, chain in enumerate(chains):
        parent = chain.parent
        for place in range(chain.bones):
            ends = (Vector(chain.root) + Vector((0.0, 0.0, chain.bone * each)) for each in (place, place + 1))
            bones.append(rigs.B(chain.name(k, place), *ends, parent))
            parent = bones[-1].name
    rig = rigs.armature(bones, name)
    for k, chain in enumerate(chains):
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip = f"Reach {k}", chain.name(k, chain.bones - 1)
        row.chain_length = 0 if chain.shares else chain.bones
        row.target = target(f"{name} {k}", chain, k, frames)
    return rig


def target(name: str, chain: Chain, k: int, frames: int) -> bpy.types.Object:
    """An empty that goes round beside a chain."""
    length = chain.bone * chain.bones
    angles = k + np.arange(frames) * math.tau / STEPS_OF_A_CIRCLE
    radius = 0.4 * chain.across
    across = radius * np.cos(angles), radius * np.sin(angles) + chain.across  # never on the chain's own axis
    path = np.stack((*across, np.full(frames, chain.distance)), axis=1)
    empty = bpy.data.objects.new(name, None)
    bpy.context.scene.collection.objects.link(empty)
    key_all(empty, {"location": np.array(chain.root) + length * path})
    return empty


def side_by_side(count: int) -> list[Chain]:
    """Chains of three bones on a square."""
    side = math.ceil(math.sqrt(count))
    return [Chain((APART * (k % side), APART * (k // side), 0.0), 3) for k in range(count)]


def rows(count: int) -> Shot:
    return Shot((armature("Rig", side_by_side(count), 10),), 10)


def spine(count: int, shares: bool) -> Shot:
    """A spine that bends a little, and limbs that are longer than it is carried by that."""
    back = Chain((0.0, 0.0, 0.0), SPINE, distance=0.95, across=0.1, bone=0.01)
    limbs = []
    for k in range(count):
        place = (SPINE - 1) * (k + 1) // count
        root = (0.01, 0.0, back.bone * (place + 1))
        limbs.append(Chain(root, 3, parent=back.name(0, place), shares=shares))
    return Shot((armature("Rig", [back, *limbs], 10),), 10)


def one_chain(bones: int, frames: int) -> Shot:
    return Shot((armature("Rig", [Chain((0.0, 0.0, 0.0), bones)], frames),), frames)


def many_rigs(count: int) -> Shot:
    return Shot(tuple(armature(f"Rig {k}", [c], 50) for k, c in enumerate(side_by_side(count))), 50)


CASES: dict[str, tuple[Callable[[int], Shot], tuple[int, ...], str]] = {
    "reached": (rows, (30, 100, 300, 1000), "chains, reached"),
    "spine": (lambda n: spine(n, False), (5, 10, 20, 40), f"limbs on a spine of {SPINE} bones"),
    "shared": (lambda n: spine(n, True), (1, 2, 3, 5), "the same, the spine in all chains"),
    "bones": (lambda n: one_chain(n, 100), (30, 75, 150, 300), "bones of a chain"),
    "frames": (lambda n: one_chain(20, n), (300, 1000, 3000, 10000), "frames"),
    "rigs": (many_rigs, (10, 30, 100, 300), "armatures"),
}
"""How a shot of a size is made, the sizes, and what is counted."""


class Cost(NamedTuple):
    """Cost of a bake.

    Attributes:
        seconds: of processor time.
        memory: MB.
        wait: the longest, seconds of processor time.
        after: the item of progress that came before it.
        reached: fraction of constraints and frames that reach their targets.
    """

    seconds: float
    memory: float
    wait: float
    after: str
    reached: float


def status(field: str) -> int:
    """Bytes of a line of the process' status; 0 where the system has none."""
    path = Path("/proc/self/status")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:")), 0)


def reset_peak() -> None:
    """Let the largest size of the process start again from now (proc(5), clear_refs)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def measured(shot: Shot) -> Cost:
    """Bake a shot."""
    bpy.context.scene.frame_set(1)
    before = status("VmRSS")
    reset_peak()
    began = latest = time.process_time()
    longest, after, words = 0.0, "", "the beginning"

    def take(item: Any) -> None:
        nonlocal latest, longest, after, words
        now = time.process_time()
        if now - latest > longest:
            longest, after = now - latest, words
        latest, words = now, f"{item.verb} {item.done} of {item.total}"

    settings = BakeSettings(1, shot.frames)
    if len(shot.rigs) == 1:
        reports = [bake(bpy.context.scene, shot.rigs[0], settings, take)]
    else:
        reports = list(bake_all(bpy.context.scene, dict.fromkeys(shot.rigs, settings), take))
    ended = time.process_time()
    if ended - latest > longest:
        longest, after = ended - latest, words
    missed, solved = (
        sum(counts)
        for counts in zip(*((each.unsolved_count(), each.solved_count()) for each in reports), strict=True)
    )
    memory = (status("VmHWM") - before) / 1e6
    return Cost(ended - began, memory, longest, after, 1.0 - missed / solved)


def prepared(case: str, size: int) -> Shot:
    """The shot of a case, in an empty file."""
    bpy.ops.wm.read_homefile(use_empty=True)
    make, _, _ = CASES[case]
    shot = make(size)
    set_range(shot.frames)
    return shot


def in_a_process(case: str, size: int) -> Cost:
    """Measure one size in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--one", case, str(size)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Cost(*json.loads(ended.stdout.splitlines()[-1]))


def slopes(sizes: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """Return exponents: of a fit to the logarithms, and between the two largest sizes."""
    x, y = np.log(sizes), np.log(values)
    return float(np.polyfit(x, y, 1)[0]), float((y[-1] - y[-2]) / (x[-1] - x[-2]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--one", nargs=2, metavar=("CASE", "SIZE"), help="measure this one, as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        case, size = chosen.one
        print(json.dumps(measured(prepared(case, int(size)))))
        return 0
    print(f"Blender {bpy.app.version_string}; {machine()}.\n")
    table = Table(f"{'what grows':36} | size | s | MB | longest wait, s | {'after':24} | reached")
    results: dict[str, list[Cost]] = {}
    for case in chosen.case:
        _, sizes, what = CASES[case]
        for size in sizes:
            cost = in_a_process(case, size)
            results.setdefault(case, []).append(cost)
            numbers = f"{cost.seconds:.2f}", f"{cost.memory:.0f}", f"{cost.wait:.2f}", cost.after
            table.row(what, size, *numbers, f"{100.0 * cost.reached:.1f} %")
    print()
    table = Table(f"{'what grows':36} | slope of time | end | of memory | end | longest wait, s")
    for case, costs in results.items():
        _, sizes, what = CASES[case]
        time_slopes = slopes(sizes, [cost.seconds for cost in costs])
        memory_slopes = slopes(sizes, [cost.memory for cost in costs])
        values = (*time_slopes, *memory_slopes, max(cost.wait for cost in costs))
        table.row(what, *(f"{value:.2f}" for value in values))
    return 0


if __name__ == "__main__":
    run_benchmark(main)
