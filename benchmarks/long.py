"""A long shot of the demo's figure: baked whole, and in chunks as a farm does; and what tasks cost beside.

    python3 dev.py bench long
    python3 dev.py bench long -- --frames 20000 --chunks 500 2000

The demo's 240 frames are repeated. Each command is a process of its own: seconds of processor time, and its
largest memory. Then what a task takes beside its frames: one frame baked, less one frame's
part of the whole; and the size of what is written.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import bpy

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))  # whose `walk` the demo means

import stage
import walk
from _script import Table, machine, run_benchmark

from ccd_rig.blender.keys.channels import fcurves_of

HEADS = "what                              | frames | processor, s | ms a frame | memory, MB"
SHORT = 100
"""Frames of a short shot."""


class Cost(NamedTuple):
    """Cost of a process: seconds of processor time, and its largest memory in MB."""

    processor: float
    memory: float

    @classmethod
    def of(cls, costs: Sequence[Cost]) -> Cost:
        """Sum of costs of processes in turn."""
        return cls(sum(each.processor for each in costs), max(each.memory for each in costs))

    def cells(self, frames: int) -> tuple[str, ...]:
        """Cells of a row of so many frames."""
        times = f"{self.processor:.1f}", f"{1e3 * self.processor / frames:.2f}"
        return str(frames), *times, f"{self.memory:.0f}"


def save_shot(path: Path, frames: int) -> None:
    """The demo's figure and goals over so many frames."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    stage.build()
    for action in bpy.data.actions:
        for user in [thing for thing in bpy.data.objects if thing.animation_data]:
            if user.animation_data.action == action:
                for curve in fcurves_of(user):
                    if len(curve.keyframe_points) > 1:  # else a bake of its bone is refused
                        curve.modifiers.new("CYCLES")
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = walk.FRAME_START, walk.FRAME_START + frames - 1
    bpy.ops.wm.save_as_mainfile(filepath=str(path))


def run(*words: object) -> Cost:
    """A command of the product in a process of its own, which has to succeed."""
    command = [sys.executable, "-m", "ccd_rig", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended, memory = 0, 0.0
    while not ended:
        memory = max(memory, largest_memory(process.pid))
        time.sleep(0.02)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    if status:
        sys.exit(f"failed: {' '.join(command)}")
    return Cost(used.ru_utime + used.ru_stime, memory)


def largest_memory(pid: int) -> float:
    """MB that a running process has had at once; what the system says of one that has ended counts those of
    the process that started it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), default=0.0)


def in_chunks(shot: Path, folder: Path, frames: int, chunk: int) -> list[tuple[str, int, Cost]]:
    """The tasks of a job, one after the other: its chunks together, and the join."""
    run("farm", shot, "--output", folder, "--chunk", chunk, "--quiet")
    common = f"--settings={folder}/settings.json", f"--output={folder}/baked"
    count = -(-frames // chunk)
    costs = [run("farm-bake", *common, f"--part={part}", shot) for part in range(1, count + 1)]
    whole = Cost.of(costs)
    join = run("farm-join", *common, shot)
    return [(f"{count} chunks of {chunk}", frames, whole), (f"join of {count} chunks", frames, join)]


def overhead(folder: Path) -> list[tuple[str, int, Cost]]:
    """A short shot, one frame of it, and nothing of it."""
    shot = folder / "short.blend"
    save_shot(shot, SHORT)
    short = run("bake", shot, "--output", folder / "short_baked.blend")
    one = run("bake", shot, "--frames", "1-1", "--output", folder / "one_baked.blend")
    nothing = run("--help")
    return [("a short shot", SHORT, short), ("one frame of it", 1, one), ("nothing: --help", 1, nothing)]


def sizes(paths: Sequence[Path]) -> str:
    """Names and kilobytes of files."""
    return ", ".join(f"{path.name} {path.stat().st_size / 1024:.0f} kB" for path in paths if path.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=5000)
    parser.add_argument("--chunks", type=int, nargs="*", default=[500])
    chosen = parser.parse_args()
    print(f"Blender {bpy.app.version_string}; {machine()}; the demo's figure.\n")
    table = Table(HEADS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, frames, cost in overhead(folder):
            table.row(what, *cost.cells(frames))
        shot, whole = folder / "long.blend", folder / "long_baked.blend"
        save_shot(shot, chosen.frames)
        cost = run("bake", shot, "--output", whole, "--report", folder / "long.json")
        table.row("whole", *cost.cells(chosen.frames))
        for chunk in chosen.chunks:
            for what, frames, cost in in_chunks(shot, folder / f"job_{chunk}", chosen.frames, chunk):
                table.row(what, *cost.cells(frames))
        print(f"\n{sizes(sorted(folder.iterdir()))}")
        for chunk in chosen.chunks:
            print(sizes(sorted((folder / f"job_{chunk}/baked/chunks").iterdir())[:1]))
    return 0


if __name__ == "__main__":
    run_benchmark(main)
