# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a bake is. Longer work is a generator of `Progress`: it may be closed after each item."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

from ...solvers import motion
from ...solvers.stepping import Ended, Work, advance

T = TypeVar("T")
Item = TypeVar("Item")


class Progress(NamedTuple):
    """How far a bake is: how many frames are evaluated, then solved; then what comes after that.

    Attributes:
        frame: the frame that was looked at last.
        done: how many frames are done, in this part of the bake: those are over, not under way.
        total: of how many.
        verb: what was done with them, such as "solved".
        is_last: whether nothing may fail any more: what comes next keeps all that was written.
        meets: whether others that are baked in the same pass come to this point too before the work goes on.
    """

    frame: float
    done: int
    total: int
    verb: str = "solved"
    is_last: bool = False
    meets: bool = False

    def words(self, seconds: float, before: int = 0) -> str:
        """Such as "frame 30: 30 of 120 solved, about 4 s left", the frames beyond those done `before` having
        taken `seconds` so far.

        Of less than a second nothing is said: few frames have taken next to no time by then, or all are done
        and what misses its goals goes on.
        """
        left = seconds * (self.total - self.done) / max(self.done - before, 1)
        rest = f", about {left:.0f} s left" if self.done > before and round(left) > 0 else ""
        return f"frame {self.frame:g}: {self.done} of {self.total} {self.verb}{rest}"


Steps: TypeAlias = Generator[Progress, None, T]
"""Work that gives an item now and then, and returns its result."""


PERCENT = {"evaluated": 15.0, "solved": 60.0, "checked": 20.0}
"""Of a whole bake, by what is done with its frames."""


class Pace:
    """What is told of a bake's progress: each part of it has its own pace. Parts may take turns.

    Attributes:
        percent: of the whole bake.
    """

    def __init__(self) -> None:
        self.percent = 0.0
        self._latest = time.perf_counter()
        self._seconds: dict[str, float] = {}  # that each part has taken, after its first item
        self._before: dict[str, int] = {}  # what was done of it then
        self._parts: dict[str, float] = {}

    def take(self, item: Progress) -> None:
        """Take the next item."""
        now = time.perf_counter()
        if item.verb in self._before:
            self._seconds[item.verb] += now - self._latest
        else:
            self._seconds[item.verb], self._before[item.verb] = 0.0, item.done
        self._latest = now
        self._parts[item.verb] = item.done / max(item.total, 1)
        parts = sum(weight * self._parts.get(verb, 0.0) for verb, weight in PERCENT.items())
        self.percent = max(self.percent, parts)

    def words(self, item: Progress) -> str:
        """How far the item taken last is, with the time that is left."""
        return item.words(self._seconds[item.verb], self._before[item.verb])


def shown(parts: Generator[float, None, T], progress: Progress) -> Steps[T]:
    """Parts of work, each of which gives how many frames more are done, as steps after `progress`."""
    done = float(progress.done)
    with contextlib.closing(parts):
        while not isinstance(part := advance(parts), Ended):
            done += part
            yield progress._replace(done=min(int(done + 1e-6), progress.total))
    return part.result


def paced(work: Work[T], progress: Progress) -> Steps[T]:
    """Work as steps: `progress` whenever `motion.CHUNK_SECONDS` seconds have passed."""
    latest = time.perf_counter()
    with contextlib.closing(work):
        while not isinstance(part := advance(work), Ended):
            if time.perf_counter() - latest >= motion.CHUNK_SECONDS:
                yield progress
                latest = time.perf_counter()
    return part.result


def run(steps: Generator[Item, None, T], progress: Callable[[Item], None] | None = None) -> T:
    """What steps come to, when all are done; `progress` gets each item, and may raise to cancel."""
    with contextlib.closing(steps):
        while not isinstance(item := advance(steps), Ended):
            if progress is not None:
                progress(item)
    return item.result


@dataclass
class Clock:
    """Measures how long steps themselves run, without whoever takes their items."""

    seconds: float = 0.0

    @contextlib.contextmanager
    def measure(self) -> Iterator[None]:
        """Counts the time that the block takes."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started

    def run(self, steps: Steps[T]) -> Steps[T]:
        """The same items and the same end."""
        with contextlib.closing(steps):
            while True:
                with self.measure():
                    item = advance(steps)
                if isinstance(item, Ended):
                    return item.result
                yield item
