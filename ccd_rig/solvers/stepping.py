"""Work in steps: a generator that gives an item now and then, may be sent an answer, and returns a result."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")
Answer = TypeVar("Answer")

Work: TypeAlias = Generator[None, None, T]
"""Work that may be left at each of its items, which say nothing; it returns its result."""


@dataclass(frozen=True)
class Ended(Generic[T]):
    """The work is over.

    Attributes:
        result: what it came to.
    """

    result: T


def advance(steps: Generator[Item, Answer, T], answer: Answer | None = None) -> Item | Ended[T]:
    """The next item of some work, or its end.

    Args:
        steps: the work; if it raises, so does this.
        answer: to the item before; None for the first.
    """
    try:
        return next(steps) if answer is None else steps.send(answer)
    except StopIteration as end:
        return Ended(end.value)


def result_of(steps: Generator[Item, None, T]) -> T:
    """What some work comes to whose items nobody has to answer."""
    while not isinstance(item := advance(steps), Ended):
        pass
    return item.result
