"""Poses solved with comfort tolerances: a joint that sees its goals within its tolerance keeps still.

The rule is that of Mahmudi and Kallmann (Kenwright 2012, section 11): a link that is turned towards its goal
stops at the border of its tolerance region, and the others do the rest. Here a joint that would turn by d for
its goals, and has a tolerance t, goes (d - t) / d of its way to a pose that meets the goals. Joints without a
tolerance are then solved anew, in a few rounds; where that does not meet the goals all go the whole way.
Without such joints all go together, as far as it takes until each of them is at ease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...limits.shapes import Limit
from ...maths.batch import TINY, Array, Indices, Mask, at_least_two, select, slerp
from .desired_angles import DesiredAngles
from .problem import LeastSquaresProblem
from .requests import settled
from .solve import Limits, confined
from .state import Bones, Given, Poses, rebuilt, start_state, to_poses
from .windowed import held_at_border, solve_windowed

EASE = 1e-3
"""Radians by which a joint may see its goals outside its comfort tolerance and still be at ease."""
ROUNDS = 3
"""Most rounds in which joints without a tolerance do the rest."""
PARTS = 16
"""Parts of a way at which it is looked for where all joints come to ease."""
HALVINGS = 8
"""How often such a part is halved."""


@dataclass(frozen=True)
class Relaxed:
    """What poses share that are solved with comfort tolerances.

    Attributes:
        limits: of all joints, what they may do now.
        movable: joints that may move.
        tolerances: (n,) radians, of these; 0 where there is none.
        problem: the least squares problem in which these joints alone may move.
    """

    limits: Sequence[Limit | None]
    movable: Sequence[int]
    tolerances: Array
    problem: Callable[[Sequence[int]], LeastSquaresProblem]


@dataclass(frozen=True)
class Asked:
    """What each of B poses brings.

    Attributes:
        bones, poses, targets, reference: as `LeastSquaresProblem.given` takes them.
        stop: when to stop.
    """

    bones: Bones
    poses: Poses
    targets: Sequence[Array]
    reference: Poses | None
    stop: Limits

    def at(self, some: Indices, poses: Poses) -> Asked:
        """That of some of the poses, which stand elsewhere now."""
        targets = [each if each.shape[-1] == 1 else select(each, some) for each in self.targets]
        held = None if self.reference is None else self.reference.at(some)
        return Asked(self.bones.at(some), poses, targets, held, self.stop.at(some))

    def given(self, problem: LeastSquaresProblem) -> Given:
        """The same as a problem takes it."""
        return problem.given(self.bones, self.poses, self.targets, self.reference)


@dataclass(frozen=True)
class Eased:
    """What was found.

    Attributes:
        poses: all joints.
        at_ease: (B,) whether every joint sees its goals within its tolerance.
        iterations: (B,) steps tried.
    """

    poses: Poses
    at_ease: Mask
    iterations: Indices


def solve_eased(relaxed: Relaxed, asked: Asked, ahead: Poses) -> Eased:
    """Bring poses nearer to their goals until these are met or every joint with a tolerance is at ease.

    `ahead` are poses that meet the goals, or come near them, without tolerances: they say which way to go.
    """
    search = _Search(relaxed, asked)
    first, to = search.poses, ahead
    going = np.flatnonzero(search.restless if search.rest is None else ~search.met)
    for count in range(ROUNDS if search.rest is not None else 0):
        if not len(going):
            break
        if count:
            to = search.solved(search.whole, to, going)
        angles = search.angles[:, going]
        eased = np.maximum(angles - search.tolerances, 0.0) / np.maximum(angles, TINY)
        search.go(going, search.poses, to, np.where(search.tolerances > 0.0, eased, 1.0))
        going = np.flatnonzero(search.restless)
    if search.rest is not None:
        # What the others cannot do joints with a tolerance do after all, as far as anything can.
        missed = np.flatnonzero(~search.met)
        going = missed[search.reaches(missed, ahead)]
        search.go(going, first, ahead, np.ones((1, len(going))))
    elif len(going):
        search.go(going, first, ahead, search.parts_to_ease(going, first, ahead))
    at_ease = np.asarray((search.angles <= search.tolerances + EASE).all(0))
    return Eased(search.poses, at_ease, search.iterations)


class _Search:
    """Poses on their way to ease.

    Attributes:
        tolerances: (n, 1) radians, of the joints that may move.
        whole: the problem in which all of these move. rest: in which those without a tolerance do, or None.
        poses: as they stand, inside the limits. angles: (n, B) by which joints would turn there.
        met: (B,) whether the goals are met there. iterations: (B,) steps tried.
    """

    def __init__(self, relaxed: Relaxed, asked: Asked) -> None:
        self.asked, self.tolerances = asked, relaxed.tolerances[:, None]
        self.whole = relaxed.problem(relaxed.movable)
        self.desired = DesiredAngles(self.whole, relaxed.limits, relaxed.movable)
        pairs = zip(relaxed.movable, relaxed.tolerances, strict=True)
        free = [i for i, tolerance in pairs if tolerance == 0.0]
        self.rest = relaxed.problem(free) if free else None
        self.iterations: Indices = np.zeros(asked.poses.rotations.shape[-1], np.intp)
        given = asked.given(self.whole)
        inside = confined(self.whole, given, start_state(self.whole.layout, given, asked.poses))
        self._stand(to_poses(self.whole.layout, inside, asked.poses))

    @property
    def restless(self) -> Mask:
        """(B,) which poses miss their goals while a joint with a tolerance is not at ease."""
        eased = (self.angles <= self.tolerances + EASE) | (self.tolerances == 0.0)
        return np.asarray(~self.met & ~eased.all(0))

    def go(self, some: Indices, start: Poses, end: Poses, parts: Array) -> None:
        """Let joints of some poses stand at parts (n or 1, K) of their ways; what has no tolerance then goes
        on to the goals."""
        if not len(some):
            return
        poses = self._between(some, start, end, parts)
        poses = self.poses.joined(some, poses)
        if self.rest is not None:
            poses = self.solved(self.rest, poses, some)
        self._stand(poses)

    def solved(self, problem: LeastSquaresProblem, start: Poses, some: Indices) -> Poses:
        """Poses of which some are brought to their goals by the joints that move in a problem."""
        pair, layout = at_least_two(some), problem.layout
        own = self.asked.at(pair, start.at(pair))
        given = own.given(problem)
        begin = start_state(layout, given, own.poses)
        held = held_at_border(problem, given, begin, own.stop)
        solved = settled(solve_windowed(problem, held, begin, own.stop))
        self.iterations[some] += solved.iterations[: len(some)]
        return start.joined(pair, to_poses(layout, solved.state, own.poses))

    def reaches(self, some: Indices, poses: Poses) -> Mask:
        """(K,) whether some of other poses meet their goals."""
        pair = at_least_two(some)
        if not len(some):
            return np.zeros(0, np.bool_)
        return self._measured(self.asked.at(pair, poses.at(pair)))[1][: len(some)]

    def parts_to_ease(self, some: Indices, start: Poses, end: Poses) -> Array:
        """(1, K) the first part of the ways at which all joints are at ease; 1 where there is none."""
        low: Array = np.zeros(len(some))
        high: Array = np.ones(len(some))
        open_: Mask = np.ones(len(some), np.bool_)
        for step in range(1, PARTS):
            places = np.flatnonzero(open_)
            if not len(places):
                break
            part = np.full(len(places), step / PARTS)
            places = places[self._eases(some[places], start, end, part)]
            open_[places] = False
            low[places], high[places] = (step - 1) / PARTS, step / PARTS
        low[open_] = (PARTS - 1) / PARTS
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            good = self._eases(some, start, end, middle)
            low, high = np.where(good, low, middle), np.where(good, middle, high)
        return high[None]

    def _eases(self, some: Indices, start: Poses, end: Poses, parts: Array) -> Mask:
        pair = at_least_two(some)
        most = np.resize(parts, len(pair))
        poses = self._between(pair, start, end, most[None])
        angles, _, over = self._measured(self.asked.at(pair, poses))
        return np.asarray((angles <= self.tolerances + 0.5 * EASE).all(0) & ~over)[: len(some)]

    def _stand(self, poses: Poses) -> None:
        """Let the poses stand elsewhere."""
        self.poses = poses
        self.angles, self.met, _ = self._measured(self.asked.at(np.arange(len(self.iterations)), poses))

    def _measured(self, asked: Asked) -> tuple[Array, Mask, Mask]:
        """(n, B) desired angles, whether goals are met, and whether reach windows are stretched too far."""
        given = asked.given(self.whole)
        state = start_state(self.whole.layout, given, asked.poses)
        excess = self.whole.evaluate(given, state).excess(asked.stop.position, asked.stop.angle)
        over = self.whole.overstretched(given, state).max(0, initial=0.0) > asked.stop.position
        return self.desired(given, state), np.asarray((excess <= 1.0) & ~over), np.asarray(over)

    def _between(self, some: Indices, start: Poses, end: Poses, parts: Array) -> Poses:
        """Some of the poses with joints at parts (n or 1, K) of their ways from a start to an end, inside the
        limits."""
        count, pair = len(some), at_least_two(some)
        asked, problem = self.asked.at(pair, start.at(pair)), self.whole
        layout, given = problem.layout, asked.given(problem)
        first, last = start_state(layout, given, asked.poses), start_state(layout, given, end.at(pair))
        part = dict(zip(layout.moved, np.broadcast_to(parts, (len(layout.moved), len(pair))), strict=True))
        balls = first.rotations[:, layout.ball_rows]
        if layout.balls:
            to = last.rotations[:, layout.ball_rows]
            balls = slerp(balls, to, np.stack([part[i] for i in layout.balls]))
        angles, slides = first.angles.copy(), first.slides.copy()
        for column, i in enumerate(layout.owners[: layout.first_ball]):
            angles[column] += part[i] * (last.angles[column] - first.angles[column])
        for column, (i, _) in enumerate(layout.slides):
            slides[column] += part[i] * (last.slides[column] - first.slides[column])
        state = confined(problem, given, rebuilt(layout, given, first, balls, angles, slides))
        return to_poses(layout, state, asked.poses).at(np.arange(count))
