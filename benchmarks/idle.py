"""Cost of the extension in files that do not use it: enabled beside disabled.

    python3 dev.py bench idle
    python3 dev.py bench idle -- --runs 5

Protocol: one process, in which the extension is enabled and disabled by turns. Each turn generates Rigify's
human in an empty file, which takes processor time of all threads; then the generated rig is changed and
evaluated in each mode, and an empty beside it. Of the updates of a turn the median counts, and of all turns
the least. The start is measured in processes of their own, with compiled sources as Blender keeps them: the
least processor time that Blender takes to start, and with the extension.
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
from collections.abc import Callable
from statistics import median

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import _bake_scenes as scenes
import bpy
from _script import Table, machine, run_benchmark

from devtools import extension

UPDATES = 100
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

Times = dict[str, float]
"""Milliseconds by case."""


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
        started = time.perf_counter()
        bpy.context.view_layer.update()
        took.append(1e3 * (time.perf_counter() - started))
    return median(took)


def measure() -> Times:
    """Measure all times of a turn."""
    scenes.metarig()
    started = time.process_time()
    rig = generate()
    times = {"generate": 1e3 * (time.process_time() - started)}
    beside = bpy.data.objects.new("Beside", None)
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
        times[what] = measured(change)
    return times


def by_turns(runs: int) -> tuple[list[Times], list[Times]]:
    """Times of turns without the extension and with it, in pairs."""
    enabled = extension.load()
    enabled.unregister()
    without, beside = list[Times](), list[Times]()
    for run in range(runs):
        for is_enabled in (False, True) if run % 2 == 0 else (True, False):
            if is_enabled:
                enabled.register()
            (beside if is_enabled else without).append(measure())
            if is_enabled:
                enabled.unregister()
    return without, beside


def starts(runs: int) -> list[Times]:
    """Times of starts in processes of their own; the first one, which compiles the sources, is left out."""
    times: list[Times] = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        for _ in range(runs + 1):
            words = [sys.executable, "-c", START, str(extension.ROOT)]
            done = subprocess.run(
                words, capture_output=True, text=True, check=True, timeout=600, env=environment
            )
            alone, ours = map(float, done.stdout.split()[-2:])
            times.append({"alone": 1e3 * alone, "ours": 1e3 * ours})
    return times[1:]


def least(times: list[Times], what: str) -> float:
    return min(each[what] for each in times)


def row(table: Table, what: str, unit: float, ours: float) -> None:
    table.row(what, f"{unit:.2f}", f"{ours:.2f}", f"{ours / unit:.3f}", f"{1e3 * (ours - unit):.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="pairs")
    chosen = parser.parse_args()
    print(f"Blender {bpy.app.version_string}; {machine()}; {chosen.runs} pairs of {UPDATES} updates.\n")
    without, beside = by_turns(chosen.runs)
    table = Table(HEADS)
    for what in without[0]:
        row(table, what, least(without, what), least(beside, what))
    times = starts(STARTS)
    alone = least(times, "alone")
    row(table, "start", alone, alone + least(times, "ours"))
    return 0


if __name__ == "__main__":
    run_benchmark(main, registers=False)
