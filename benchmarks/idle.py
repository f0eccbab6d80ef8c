"""Cost of the extension in files that do not use it: enabled beside disabled.

    python3 dev.py bench idle
    python3 dev.py bench idle -- --runs 5

Protocol: processes of their own by turns, one with the extension enabled and one without. Each generates
Rigify's human in an empty file, which takes processor time of all threads; then the generated rig is changed
and evaluated in each mode, and an empty beside it. Of the updates of a process the median counts, and of all
processes the least. The last column is what handlers of the extension take in one such update, the median.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import _bake_scenes as scenes
import bpy
from _script import Table, machine, run_benchmark

from devtools import extension

UPDATES = 100
GENERATE = "generate"
SPENT = [0.0]
"""Seconds in handlers of the extension, in the update that is measured."""
HEADS = "case         | disabled, ms | enabled, ms | ratio | handlers, us"

Times = dict[str, dict[str, float]]


def timed(handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler, which adds to `SPENT` how long each call takes."""

    def call(*arguments: Any) -> None:
        started = time.perf_counter()
        handler(*arguments)
        SPENT[0] += time.perf_counter() - started

    return call


def generate() -> bpy.types.Object:
    """Rigify's human, generated in an empty file; active, in Object Mode."""
    with contextlib.redirect_stdout(io.StringIO()):  # it tells what it does
        bpy.ops.pose.rigify_generate()
    rig = bpy.context.object
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def measured(change: Callable[[float], None]) -> dict[str, float]:
    """Milliseconds of an update after a change, and microseconds of the handlers in it."""
    took, inside = [], []
    for number in range(UPDATES):
        change(0.001 * number)
        SPENT[0] = 0.0
        started = time.perf_counter()
        bpy.context.view_layer.update()
        took.append(1e3 * (time.perf_counter() - started))
        inside.append(1e6 * SPENT[0])
    return {"ms": median(took), "us": median(inside)}


def measure() -> Times:
    """Measure all times of this process."""
    scenes.metarig()
    started = time.process_time()
    rig = generate()
    times: Times = {GENERATE: {"ms": 1e3 * (time.process_time() - started), "us": 0.0}}
    listeners = bpy.app.handlers.depsgraph_update_post
    listeners[:] = [timed(each) if each.__module__.startswith(extension.NAME) else each for each in listeners]
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


def process(is_enabled: bool) -> Times:
    """The times of a process of its own."""
    words = [sys.executable, __file__, "--measure", "enabled" if is_enabled else "disabled"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    times: Times = json.loads(done.stdout.splitlines()[-1])
    return times


def least(times: list[Times], what: str, unit: str) -> float:
    return min(each[what][unit] for each in times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="pairs")
    parser.add_argument("--measure", choices=("enabled", "disabled"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        if chosen.measure == "enabled":
            extension.load()
        print(f"\n{json.dumps(measure())}")
        return 0
    print(f"Blender {bpy.app.version_string}; {machine()}; {chosen.runs} pairs of {UPDATES} updates.\n")
    without, beside = list[Times](), list[Times]()
    for run in range(chosen.runs):
        for is_enabled in (False, True) if run % 2 == 0 else (True, False):
            (beside if is_enabled else without).append(process(is_enabled))
    table = Table(HEADS)
    for what in without[0]:
        unit, ours = least(without, what, "ms"), least(beside, what, "ms")
        inside = "" if what == GENERATE else f"{least(beside, what, 'us'):.0f}"
        table.row(what, f"{unit:.2f}", f"{ours:.2f}", f"{ours / unit:.2f}", inside)
    return 0


if __name__ == "__main__":
    run_benchmark(main, registers=False)
