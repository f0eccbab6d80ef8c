"""Work as a generator: it yields items and returns a result."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")

Work: TypeAlias = Generator[None, None, T]
"""Work that yields nothing at each interruption point and returns its result."""


@dataclass(frozen=True)
class Ended(Generic[T]):
    """The end of work, with its result."""

    result: T


def advance(steps: Generator[Item, None, T]) -> Item | Ended[T]:
    """The next item of work, or its end; errors of the work pass through."""
    try:
        return next(steps)
    except StopIteration as end:
        return Ended(end.value)


def result_of(steps: Generator[Item, None, T]) -> T:
    """Run work to its end, and return its result."""
    while not isinstance(item := advance(steps), Ended):
        pass
    return item.result
