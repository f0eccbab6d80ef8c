# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of a bake. Long work is a generator of `Progress`, which may be closed after each item."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

from ...solvers import motion
from ...solvers.stepping import Items, Work

T = TypeVar("T")
Item = TypeVar("Item")


class Progress(NamedTuple):
    """Progress at one stage of a bake, such as the evaluation or the solving of frames."""

    frame: float  # the latest frame
    done: int  # count of finished frames
    total: int  # count of all frames
    verb: str = "solved"  # of the stage, such as "solved"
    is_last: bool = False  # whether nothing can fail after this item; the next one keeps all written keys
    # In a pass of several armatures: the frame that is evaluated next, for all that come to it at once;
    # infinite where the bake waits for all others.
    next_frame: float = -math.inf

    def words(self, seconds: float, before: int = 0) -> str:
        """Words such as "frame 30: 30 of 120 solved, about 4 s left".

        Args:
            seconds: time of the frames since `before`.
            before: count of frames that were done before the time began.
        """
        left = seconds * (self.total - self.done) / max(self.done - before, 1)
        rest = f", about {left:.0f} s left" if self.done > before and round(left) > 0 else ""
        return f"frame {self.frame:.7g}: {self.done} of {self.total} {self.verb}{rest}"


Steps: TypeAlias = Generator[Progress, None, T]
"""Work that yields its progress, and returns its result."""


PERCENT = {"evaluated": 15.0, "solved": 60.0, "checked": 20.0}
"""Share of each stage in a whole bake, by its verb."""


class Pace:
    """Percentage and remaining time of a bake, whose stages may take turns.

    Attributes:
        percent: of the whole bake.
    """

    def __init__(self) -> None:
        self.percent = 0.0
        self._latest = time.perf_counter()
        self._seconds: dict[str, float] = {}  # of each stage, since its first item
        self._before: dict[str, int] = {}  # frames done at that item
        self._shares: dict[str, float] = {}  # done of each stage

    def take(self, item: Progress) -> None:
        """Take the next item."""
        now = time.perf_counter()
        if item.verb in self._before:
            self._seconds[item.verb] += now - self._latest
        else:
            self._seconds[item.verb], self._before[item.verb] = 0.0, item.done
        self._latest = now
        self._shares[item.verb] = item.done / max(item.total, 1)
        percent = sum(weight * self._shares.get(verb, 0.0) for verb, weight in PERCENT.items())
        self.percent = max(self.percent, percent)

    def words(self, item: Progress) -> str:
        """Words of the item taken last, with the remaining time."""
        return item.words(self._seconds[item.verb], self._before[item.verb])


def shown(counts: Generator[float, None, T], progress: Progress) -> Steps[T]:
    """Turn work that yields counts of frames into steps that continue `progress`."""
    done, items = float(progress.done), Items(counts)
    with contextlib.closing(counts):
        for count in items:
            done += count
            yield progress._replace(done=min(int(done + 1e-6), progress.total))
    return items.result


def paced(work: Work[T], progress: Progress) -> Steps[T]:
    """Turn work into steps that yield `progress` every `motion.CHUNK_SECONDS` seconds."""
    latest, items = time.perf_counter(), Items(work)
    with contextlib.closing(work):
        for _ in items:
            if time.perf_counter() - latest >= motion.CHUNK_SECONDS:
                yield progress
                latest = time.perf_counter()
    return items.result


def run(steps: Generator[Item, None, T], progress: Callable[[Item], None] | None = None) -> T:
    """Run steps to their end; `progress` gets each item, and may raise to cancel."""
    items = Items(steps)
    with contextlib.closing(steps):
        for item in items:
            if progress is not None:
                progress(item)
    return items.result


@dataclass
class Clock:
    """Measures the time of steps, without the time of their callers."""

    seconds: float = 0.0

    def run(self, steps: Steps[T]) -> Steps[T]:
        """The steps, measured."""
        items, started = Items(steps), time.perf_counter()
        with contextlib.closing(steps):
            for item in items:
                self.seconds += time.perf_counter() - started
                yield item
                started = time.perf_counter()
        self.seconds += time.perf_counter() - started
        return items.result
