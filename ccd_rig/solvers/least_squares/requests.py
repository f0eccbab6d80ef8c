"""Least squares asked for by several searches at once: those of poses alike are solved together.

A search is a generator: it gives requests and is sent what they came to. Each step of `solve_batch` costs
nearly the same for two poses as for fifty, so searches that do not wait for one another go on side by side:
both legs of a figure, and the figures of a crowd. What a pose ends as does not depend on the others, to the
bit: a lone pose is solved twice, since numpy sums over a single one in another order than over more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from ...maths.batch import Array, Indices, joined_given
from ..stepping import Ended, advance, result_of
from ..tally import Count
from .frames import solved_at
from .joint_limits import JointLimits
from .problem import LeastSquaresProblem
from .residuals import kind_of
from .solve import Limits, Solved, batch_steps
from .state import Given, State

T = TypeVar("T")

MOST, COLUMNS = 4096, 131_072
"""Most poses that are solved together, and columns of all of them: more take memory and save no time, and a
step of them lets those wait who want to know how far it is."""


class Request(NamedTuple):
    """What `solve_batch` is asked for.

    Attributes:
        problem, given, start, limits: see there.
        is_first: whether these are all poses of a search that have to be solved, or else some of them before
            or after all.
        counter: hears how many of its poses have ended; or None.
    """

    problem: LeastSquaresProblem
    given: Given
    start: State
    limits: Limits
    is_first: bool = False
    counter: Count | None = None

    @property
    def kind(self) -> Hashable:
        """Requests with equal ones are solved together: they differ in what each pose brings alone."""
        problem, stop = self.problem, self.limits
        asked = tuple(kind_of(goal, problem.layout) for goal in problem.goals)
        alike = problem.layout.kind, asked, problem.priority_step
        brings = self.given.reference is not None, tuple(target.ndim for target in self.given.targets)
        return alike, brings, stop.angle, stop.iterations, stop.gain, stop.rest, stop.settled


Search: TypeAlias = Generator[tuple[Request, ...], tuple[Solved, ...], T]
"""A search: it gives requests, is sent what each of them came to, and returns what it found. Without requests
an item stands for some longer work."""


def solving(
    problem: LeastSquaresProblem, given: Given, start: State, limits: Limits, is_first: bool = False
) -> Search[Solved]:
    """`solve_batch` as a search; see `Request.is_first`."""
    (solved,) = yield (Request(problem, given, start, limits, is_first),)
    return solved


def counted(search: Search[T], count: Count) -> Search[T]:
    """The same search; `count` hears how many of its poses have ended."""
    with contextlib.closing(search):
        answers: tuple[Solved, ...] | None = None
        while not isinstance(requests := advance(search, answers), Ended):
            answers = yield tuple(request._replace(counter=count) for request in requests)
    count.finish()
    return requests.result


def together(searches: Sequence[Search[T]]) -> Search[list[T]]:
    """Searches that do not wait for one another as one, which returns what each of them found."""
    found: dict[int, T] = {}
    answers: dict[int, tuple[Solved, ...] | None] = dict.fromkeys(range(len(searches)))
    try:
        while answers:
            asked: dict[int, tuple[Request, ...]] = {}
            for k, answer in answers.items():
                item = advance(searches[k], answer)
                if isinstance(item, Ended):
                    found[k] = item.result
                else:
                    asked[k] = item
            if not asked:
                break
            solved = iter((yield tuple(request for requests in asked.values() for request in requests)))
            answers = {k: tuple(next(solved) for _ in requests) for k, requests in asked.items()}
    finally:
        for search in searches:
            search.close()
    return [found[k] for k in range(len(searches))]


def settled(search: Search[T]) -> T:
    """What a search finds."""
    answers: tuple[Solved, ...] | None = None
    while not isinstance(requests := advance(search, answers), Ended):
        answers = solve_requests(requests)
    return requests.result


def solve_requests(requests: Sequence[Request]) -> tuple[Solved, ...]:
    """What each request comes to; those of the same kind are solved together."""
    return result_of(request_steps(requests))


def request_steps(requests: Sequence[Request]) -> Generator[None, None, tuple[Solved, ...]]:
    """Like `solve_requests`; an item before each step of a batch."""
    kinds: dict[Hashable, list[int]] = {}
    for k, request in enumerate(requests):
        kinds.setdefault(request.kind, []).append(k)
    found: dict[int, Solved] = {}
    for places in kinds.values():
        for some in _loads(requests, places):
            solved = yield from _solve_alike([requests[k] for k in some])
            found.update(zip(some, solved, strict=True))
    return tuple(found[k] for k in range(len(requests)))


def _loads(requests: Sequence[Request], places: Sequence[int]) -> list[list[int]]:
    """Requests, alike, in parts of at most `MOST` poses and `COLUMNS`; what is larger stays whole."""
    found: list[list[int]] = []
    size = most = min(MOST, COLUMNS // max(requests[places[0]].problem.layout.columns, 1))
    for k in places:
        size += requests[k].start.size
        if size > most:
            found.append([])
            size = requests[k].start.size
        found[-1].append(k)
    return found


def _solve_alike(requests: Sequence[Request]) -> Generator[None, None, list[Solved]]:
    if len(requests) == 1:
        request = requests[0]
        if request.start.size > 1:
            return [(yield from _noted(_steps(request), [request]))]
        return (yield from _solve_alike([request, request._replace(counter=None)]))[:1]
    sizes = [request.start.size for request in requests]
    ends = np.cumsum([0, *sizes])
    states = [request.start for request in requests]
    start = State(*(np.concatenate(arrays, axis=-1) for arrays in zip(*states, strict=True)))
    first = requests[0]
    limits = replace(first.limits, position=np.concatenate([request.limits.position for request in requests]))
    given = _joined([request.given for request in requests], sizes)
    joined = Request(first.problem, given, start, limits)
    solved = yield from _noted(_steps(joined), requests)
    return [solved_at(solved, np.arange(ends[k], ends[k + 1])) for k in range(len(requests))]


def _steps(request: Request) -> Generator[Indices, None, Solved]:
    return batch_steps(request.problem, request.given, request.start, request.limits)


def _noted(
    steps: Generator[Indices, None, Solved], requests: Sequence[Request]
) -> Generator[None, None, Solved]:
    """Steps of requests that are solved together; their counts hear which poses have ended."""
    ends = np.cumsum([request.start.size for request in requests])
    left = [request.start.size for request in requests]

    def note(places: Indices) -> None:
        present = np.bincount(np.searchsorted(ends, places, side="right"), minlength=len(requests))
        for k, request in enumerate(requests):
            if request.counter is not None:
                request.counter.note(left[k] - int(present[k]), request.is_first)
            left[k] = int(present[k])

    while not isinstance(places := advance(steps), Ended):
        note(places)
        yield
    note(np.zeros(0, np.intp))
    return places.result


def _joined(givens: Sequence[Given], sizes: Sequence[int]) -> Given:
    """What the poses of several requests bring."""

    def join(arrays: Sequence[Array]) -> Array:
        return joined_given(arrays, sizes)

    return Given(
        rests=join([each.rests for each in givens]),
        turns=join([each.turns for each in givens]),
        shifts=join([each.shifts for each in givens]),
        points=join([each.points for each in givens]),
        targets=tuple(join(each) for each in zip(*(given.targets for given in givens), strict=True)),
        slide_axes=join([each.slide_axes for each in givens]),
        reach=join([each.reach for each in givens]),
        bends=join([each.bends for each in givens]),
        windows=join([each.windows for each in givens]),
        limits=JointLimits.joined([each.limits for each in givens], sizes),
        reference=_joined_references([each.reference for each in givens]),
    )


def _joined_references(
    references: Sequence[tuple[Array, Array, Array] | None],
) -> tuple[Array, Array, Array] | None:
    known = [each for each in references if each is not None]
    if not known:
        return None
    balls, angles, slides = (np.concatenate(arrays, axis=-1) for arrays in zip(*known, strict=True))
    return balls, angles, slides
