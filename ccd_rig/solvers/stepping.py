"""Work as a generator: it yields items, may be sent answers, and returns a result."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")
Answer = TypeVar("Answer")

Work: TypeAlias = Generator[None, None, T]
"""Work that yields nothing at each interruption point and returns its result."""


@dataclass(frozen=True)
class Ended(Generic[T]):
    """The end of work, with its result."""

    result: T


def advance(steps: Generator[Item, Answer, T], answer: Answer | None = None) -> Item | Ended[T]:
    """The next item of work, or its end; errors of the work pass through.

    Args:
        steps: the work.
        answer: to the previous item; None for the first.
    """
    try:
        return next(steps) if answer is None else steps.send(answer)
    except StopIteration as end:
        return Ended(end.value)


def result_of(steps: Generator[Item, None, T]) -> T:
    """Run work to its end without answers, and return its result."""
    while not isinstance(item := advance(steps), Ended):
        pass
    return item.result
