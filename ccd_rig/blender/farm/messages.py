# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task says on standard output, in the messages of Open Job Description."""

from __future__ import annotations

import time

from ...json_text import printable
from ..bake.progress import PERCENT, Pace, Progress

PAUSE = 1.0
"""Seconds from one message to the next."""


def status(words: str) -> None:
    """What a task does."""
    print(f"openjd_status: {_line(words)}", flush=True)


def fail(words: str) -> None:
    """Why a task has failed."""
    print(f"openjd_fail: {_line(words)}", flush=True)


def progress(percent: float) -> None:
    """How far a task is."""
    print(f"openjd_progress: {percent:.1f}", flush=True)


class ProgressMessages:
    """Takes the progress of a bake, and says it now and then."""

    def __init__(self) -> None:
        self._next, self._pace = 0.0, Pace()

    def __call__(self, step: Progress) -> None:
        """Take the next item."""
        self._pace.take(step)
        now = time.monotonic()
        if now < self._next or step.verb not in PERCENT:
            return
        progress(self._pace.percent)
        status(self._pace.words(step))
        self._next = now + PAUSE


def _line(words: str) -> str:
    return printable(" ".join(words.split()))
