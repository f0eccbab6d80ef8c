"""Faults about the command line: signals, full disks, two processes on one file."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bpy

from devtools.fuzz import contents
from devtools.fuzz.shots import shot

TIMEOUT = 120.0  # [s] a command line


def _saved(folder: Path) -> Path:
    shot()
    path = folder / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def _command(*words: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ccd_rig", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **options
    )


def _is_whole(path: Path) -> bool:
    """Whether Blender opens a file, with the keys of a bake in it."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    rig = bpy.data.objects["Rig"]
    return any("rotation" in path_ for _, path_, _ in contents.action_content(rig.animation_data.action))


def killed(rng: random.Random) -> list[str]:
    """A signal at any time of a bake into a file that is there already."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shot, output = _saved(folder), folder / "out.blend"
        same = rng.random() < 0.3
        output = shot if same else output
        if not same:
            output.write_bytes(b"old")
        source, old = shot.read_bytes(), output.read_bytes()
        process = _command("bake", shot, "--output", output)
        sent = rng.choice((signal.SIGINT, signal.SIGKILL, signal.SIGTERM))
        time.sleep(rng.uniform(0.0, 2.6))
        process.send_signal(sent)
        process.communicate(timeout=TIMEOUT)
        found = []
        if output.read_bytes() != old and not _is_whole(output):
            found.append(f"{sent.name}: the output is torn")
        if not same and shot.read_bytes() != source:
            found.append(f"{sent.name}: the file has changed")
        left = {each.name for each in folder.iterdir()} - {"shot.blend", "out.blend"}
        if sent is signal.SIGINT and left:
            found.append(f"{sent.name}: left behind: {sorted(left)}")
        return found


def full(rng: random.Random) -> list[str]:
    """A disk that is full after some bytes."""
    size = rng.choice((0, 100, 10_000, 60_000, 100_000, 1_000_000, rng.randrange(1, 200_000)))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shot, output, report = _saved(folder), folder / "out.blend", folder / "out.json"
        output.write_bytes(b"old")
        report.write_bytes(b"old")
        process = _command("bake", shot, "--output", output, "--report", report, preexec_fn=limit)
        process.communicate(timeout=TIMEOUT)
        found = []
        if process.returncode not in (0, 4):
            found.append(f"exit code {process.returncode} with {size} bytes")
        if report.read_bytes() != b"old":
            json.loads(report.read_text(encoding="utf-8"))
        if output.read_bytes() != b"old" and not _is_whole(output):
            found.append(f"{size} bytes: the output is torn")
        left = {each.name for each in folder.iterdir()} - {"shot.blend", "out.blend", "out.json"}
        return [*found, *(f"left behind: {each}" for each in left)]


def two_at_once(rng: random.Random) -> list[str]:
    """Two processes that write the same file, one of them its own source."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shot = _saved(folder)
        output = rng.choice((shot, folder / "out.blend", folder / "link.blend"))
        if output.name == "link.blend":
            output.symlink_to("shot.blend")
        both = [_command("bake", shot, "--output", output, "--quiet") for _ in range(2)]
        for process in both:
            process.communicate(timeout=TIMEOUT)
        found = [f"exit code {process.returncode}" for process in both if process.returncode]
        if not _is_whole(output):
            found.append("the output is torn")
        if output.name == "link.blend" and not output.is_symlink():
            found.append("the link is gone")
        left = {each.name for each in folder.iterdir()} - {"shot.blend", "out.blend", "link.blend"}
        return [*found, *(f"left behind: {each}" for each in left)]
