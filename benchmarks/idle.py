"""Cost of the extension in files that do not use it: enabled beside disabled.

    python3 dev.py bench idle
    python3 dev.py bench idle -- --runs 5

Protocol: one process, in which the extension is enabled and disabled by turns. In pairs of turns Rigify's
human is generated in an empty file. Then that rig is changed and evaluated in each mode, and an empty beside
it, in short turns on the same rig. Times are of the processor, of all threads; of the updates of a turn the
median counts, and of all turns the least. The start is measured in processes of their own, with compiled
sources as Blender keeps them: the least that Blender takes to start, and with the extension.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import _bake_scenes as scenes
import bpy
from _script import Table, machine, run_benchmark

from devtools import extension

TURNS, UPDATES = 10, 20
STARTS = 10
START = """
import os, sys, time
import bpy
sys.path.insert(0, sys.argv[1])
from devtools import extension
alone = time.process_time()
extension.load()
print(alone, time.process_time() - alone, flush=True)
os._exit(0)
"""
HEADS = "case         | disabled, ms | enabled, ms | ratio | difference, us"

Pair = tuple[float, float]
"""Milliseconds without the extension, and with it."""


def generate() -> bpy.types.Object:
    """Rigify's human, generated in an empty file; active, in Object Mode."""
    with contextlib.redirect_stdout(io.StringIO()):  # it tells what it does
        bpy.ops.pose.rigify_generate()
    rig = bpy.context.object
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def measured(change: Callable[[float], None]) -> float:
    """Milliseconds of an update after a change."""
    took = []
    for number in range(UPDATES):
        change(0.001 * number)
        started = time.process_time()
        bpy.context.view_layer.update()
        took.append(1e3 * (time.process_time() - started))
    return median(took)


def by_turns(runs: int, measure: Callable[[], float]) -> Pair:
    """Least time without the extension, and with it, of pairs of turns."""
    without, beside = list[float](), list[float]()
    for run in range(runs):
        for is_enabled in (False, True) if run % 2 == 0 else (True, False):
            if is_enabled:
                sys.modules[extension.NAME].register()
            (beside if is_enabled else without).append(measure())
            if is_enabled:
                sys.modules[extension.NAME].unregister()
    return min(without), min(beside)


def generated() -> float:
    """Milliseconds of generating a rig."""
    scenes.metarig()
    started = time.process_time()
    generate()
    return 1e3 * (time.process_time() - started)


def updates() -> Iterator[tuple[str, Pair]]:
    """Yield what is changed, and how long the updates take."""
    rig, beside = bpy.context.object, bpy.data.objects.new("Beside", None)
    bpy.context.scene.collection.objects.link(beside)

    def roll(value: float) -> None:
        rig.data.edit_bones[0].roll = value
        rig.data.update_tag()

    def turn(value: float) -> None:
        rig.pose.bones["torso"].location.x = value

    def move(value: float) -> None:
        rig.location.x = value

    def move_beside(value: float) -> None:
        beside.location.x = value

    for what, mode, change in (
        ("edit bones", "EDIT", roll),
        ("pose", "POSE", turn),
        ("object", "OBJECT", move),
        ("beside it", "OBJECT", move_beside),
    ):
        bpy.ops.object.mode_set(mode=mode)
        bpy.context.view_layer.update()
        yield what, by_turns(TURNS, partial(measured, change))


def starts(runs: int) -> Pair:
    """Least times of starts in processes of their own, without the first one, which compiles the sources."""
    alone, ours = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        for _ in range(runs + 1):
            words = [sys.executable, "-c", START, str(extension.ROOT)]
            done = subprocess.run(
                words, capture_output=True, text=True, check=True, timeout=600, env=environment
            )
            for times, word in zip((alone, ours), done.stdout.split()[-2:], strict=True):
                times.append(1e3 * float(word))
    return min(alone[1:]), min(alone[1:]) + min(ours[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="pairs of turns that generate")
    runs = parser.parse_args().runs
    print(f"Blender {bpy.app.version_string}; {machine()}; {runs} pairs, {TURNS} of {UPDATES} updates.\n")
    extension.load().unregister()
    table = Table(HEADS)
    cases = (("generate", by_turns(runs, generated)), *updates(), ("start", starts(STARTS)))
    for what, (alone, ours) in cases:
        table.row(what, f"{alone:.2f}", f"{ours:.2f}", f"{ours / alone:.3f}", f"{1e3 * (ours - alone):.0f}")
    return 0


if __name__ == "__main__":
    run_benchmark(main, registers=False)
