# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a bake is. Longer work is a generator of `Progress`: it may be closed after each item."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")


class Progress(NamedTuple):
    """How far a bake is: of `total` frames `done` are solved, or soon to be; then what comes after that.

    Attributes:
        frame: the frame that was looked at last.
        done: how many frames are done, in this part of the bake.
        total: of how many.
        verb: what was done with them, such as "solved".
    """

    frame: float
    done: int
    total: int
    verb: str = "solved"

    def words(self, seconds: float) -> str:
        """Such as "frame 30: 30 of 120 solved, about 4 s left", this part having taken `seconds` so far."""
        left = seconds * (self.total - self.done) / max(self.done, 1)
        rest = f", about {left:.0f} s left" if self.done > 0 and seconds > 0.0 else ""
        return f"frame {self.frame:g}: {self.done} of {self.total} {self.verb}{rest}"


Steps: TypeAlias = Generator[Progress, None, T]
"""Work that gives an item now and then, and at its end what it came to."""


def run(steps: Generator[Item, None, T], progress: Callable[[Item], None] | None = None) -> T:
    """What steps come to, when all are done; `progress` gets each item, and may raise to cancel."""
    with contextlib.closing(steps):
        while True:
            try:
                item = next(steps)
            except StopIteration as end:
                value: T = end.value
                return value
            if progress is not None:
                progress(item)


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
                try:
                    with self.measure():
                        item = next(steps)
                except StopIteration as end:
                    value: T = end.value
                    return value
                yield item
