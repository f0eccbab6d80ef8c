"""A job run on this machine: its tasks in processes of their own, several at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bpy

from ...errors import RigError
from ..farm import bundle

SAID = "openjd_fail: "


def run(job: bundle.Job, folder: Path, count: int) -> None:
    """Run all tasks, `count` at once; each step when the one before it is through, as a farm does.

    Raises:
        RigError: tasks failed; says which and why. Later steps did not run.
    """
    common = [f"--settings={folder / bundle.SETTINGS}", f"--output={folder / bundle.BAKED}"]
    steps = [[[step.command, *common, *words] for words in step.tasks()] for step in job.all_steps()]
    pool = ThreadPoolExecutor(count)
    try:
        for step in steps:
            failed = [words for words in pool.map(lambda task: _run(job, task), step) if words]
            if failed:
                raise RigError("; ".join(failed))
    finally:
        pool.shutdown(cancel_futures=True)


def _run(job: bundle.Job, words: Sequence[str]) -> str:
    """Run a task; why it failed, or nothing."""
    program = bpy.app.binary_path or sys.executable
    done = subprocess.run(
        [program, *job.words(*words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        check=False,
    )
    if done.returncode == 0:
        return ""
    reasons = [line.removeprefix(SAID) for line in done.stdout.splitlines() if line.startswith(SAID)]
    told = reasons[-1] if reasons else f"exit code {done.returncode}"
    return f"{words[0]} {' '.join(words[3:])}: {told}"
