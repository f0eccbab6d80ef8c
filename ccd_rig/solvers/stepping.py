"""Work as a generator: it yields items and returns a result."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")

Work: TypeAlias = Generator[None, None, T]
"""Work that yields nothing at each interruption point and returns its result."""


class Items(Generic[Item, T]):
    """The items of work for a loop, and after the last of them its result."""

    result: T

    def __init__(self, work: Generator[Item, None, T]) -> None:
        self._work = work

    def __iter__(self) -> Iterator[Item]:
        self.result = yield from self._work


def result_of(work: Generator[Item, None, T]) -> T:
    """Run work to its end, and return its result."""
    items = Items(work)
    for _ in items:
        pass
    return items.result
