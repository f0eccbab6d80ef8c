"""Long work in parts: between them its caller may show progress, look at the keyboard, or end it.

Loops call `pause` at each of their steps. It costs next to nothing unless the work was started by `in_parts`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

T = TypeVar("T")

PART = 0.05
"""Seconds that a part lasts, and what is left of the step in which they are over."""


class _Ended(BaseException):
    """The work is not wanted any more. No `except Exception` on the way may keep it."""


class _Local(threading.local):
    wait: Callable[[], None] | None = None


_local = _Local()


def pause() -> None:
    """A place where long work may rest, or be ended."""
    if _local.wait is not None:
        _local.wait()


def in_parts(work: Callable[[], T], seconds: float | None = None) -> Generator[None, None, T]:
    """What `work` returns; an item each time it has worked for so many seconds (None: `PART`). Closed, it
    ends the work at its next pause.

    The work has a thread of its own, which stands still except while its next item is waited for: it never
    runs beside its caller.
    """
    worker = _Worker(work, PART if seconds is None else seconds)
    worker.start()
    try:
        while not worker.work_on():
            yield
    finally:
        worker.end()
    if worker.error is not None:
        raise worker.error
    return worker.results[0]


class _Worker(threading.Thread, Generic[T]):
    """Runs work, and stands still at its pauses until it is sent on.

    Attributes:
        results: what the work has returned, once it has.
        error: what it has raised.
    """

    def __init__(self, work: Callable[[], T], seconds: float) -> None:
        super().__init__(name="CCD Rig", daemon=True)
        self.results: list[T] = []
        self.error: BaseException | None = None
        self._work, self._seconds, self._until = work, seconds, 0.0
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._is_over = self._is_unwanted = False

    def run(self) -> None:
        """In the thread: all of the work."""
        self._go.acquire()
        _local.wait = self._wait
        try:
            if not self._is_unwanted:
                self.results.append(self._work())
        except _Ended:
            pass
        except BaseException as error:  # it is raised again where the work was asked for
            self.error = error
        self._is_over = True
        self._back.release()

    def work_on(self) -> bool:
        """Let the work go on to its next pause; whether it is over."""
        self._until = time.monotonic() + self._seconds
        self._go.release()
        self._back.acquire()
        return self._is_over

    def end(self) -> None:
        """Wait until the work is over; it ends at its next pause."""
        self._is_unwanted = True
        self._go.release()
        self.join()

    def _wait(self) -> None:
        if time.monotonic() < self._until and not self._is_unwanted:
            return
        self._back.release()
        self._go.acquire()
        if self._is_unwanted:
            raise _Ended
