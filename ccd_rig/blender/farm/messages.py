# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task says on standard output, in the messages of Open Job Description."""

from __future__ import annotations

import time

from ..bake.progress import Progress

PAUSE = 1.0
"""Seconds from one message to the next."""
PARTS = {"solved": (0.0, 70.0), "checked": (70.0, 95.0)}
"""Percent of a task by what is done with its frames."""


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
        self._next, self._started, self._verb = 0.0, 0.0, ""

    def __call__(self, step: Progress) -> None:
        """Take the next item."""
        now = time.monotonic()
        if step.verb != self._verb:  # each part of a bake has its own pace
            self._verb, self._started = step.verb, now
        if now < self._next or step.verb not in PARTS:
            return
        first, last = PARTS[step.verb]
        progress(first + (last - first) * step.done / max(step.total, 1))
        status(step.words(now - self._started))
        self._next = now + PAUSE


def _line(words: str) -> str:
    return " ".join(words.split())
