"""A job run on this machine: its tasks in processes of their own, several at once.

However this process ends, its tasks end with it. Their standard input is a pipe that this process holds open,
and that nobody writes to. Where the pipe ends, a task interrupts itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bpy

from ...errors import RigError
from ..farm import bundle
from .exits import Exit

SAID = "openjd_fail: "
HELD = "CCD_RIG_ENDS_WITH_STDIN"
"""Environment variable that tells a task to end when its standard input does."""
STANDARD_INPUT = 0
PATIENCE = 2.0
"""Seconds after its interrupt in which a task takes its unfinished files away."""


def run(job: bundle.Job, folder: Path, count: int) -> None:
    """Run all tasks, `count` at once; each step when the one before it is through, as a farm does.

    Raises:
        RigError: tasks failed; says which and why. Later steps did not run.
    """
    common = [f"--settings={folder / bundle.SETTINGS}", f"--output={folder / bundle.BAKED}"]
    steps = [[[step.command, *common, *words] for words in step.tasks()] for step in job.all_steps()]
    pool = ThreadPoolExecutor(count)
    held, holder = os.pipe()
    try:
        for step in steps:
            failed = [words for words in pool.map(lambda task: _run(job, task, held), step) if words]
            if failed:
                raise RigError("; ".join(failed))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        os.close(holder)
        pool.shutdown()
        os.close(held)


def end_with_starter() -> None:
    """In a task that `run` has started: watch for the end of the process that did."""
    if os.environ.get(HELD) == "1":
        threading.Thread(target=_watch, name="end with starter", daemon=True).start()


def _watch() -> None:
    while os.read(STANDARD_INPUT, 1):
        pass
    signal.raise_signal(signal.SIGINT)
    time.sleep(PATIENCE)
    os._exit(Exit.INTERRUPTED)


def _run(job: bundle.Job, words: Sequence[str], held: int) -> str:
    """Run a task; why it failed, or nothing.

    Args:
        job: it is one of.
        words: of its command.
        held: the pipe that ends with this process.
    """
    program = bpy.app.binary_path or sys.executable
    done = subprocess.run(
        [program, *job.words(*words)],
        stdin=held,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1", HELD: "1"},
        check=False,
    )
    if done.returncode == 0:
        return ""
    reasons = [line.removeprefix(SAID) for line in done.stdout.splitlines() if line.startswith(SAID)]
    told = reasons[-1] if reasons else f"exit code {done.returncode}"
    return f"{words[0]} {' '.join(words[3:])}: {told}"
