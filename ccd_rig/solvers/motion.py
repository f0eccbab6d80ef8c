"""A motion: of all poses that meet the goals frame by frame, those that change least beside the base motion.

A frame alone is solved to the pose nearest to its base pose, which jumps where that does. With b the base
poses, q the solved ones and d = b^-1 q their departures, the *nearest motion* has the least

    sum |d_f|^2 + mu sum |d_(f+1) - d_f|^2

where mu is the smoothness. Where neighbours went different ways, each way is continued into the frames of the
other, and the path of least sum is taken (Viterbi 1967, over poses of each frame as planners of robots have
it). Then sweeps solve frames again, near to what their neighbours' departures would make of their base pose:
Gauss-Seidel with the relaxation that is best for a string of frames (Young 1954). They begin where the motion
jumps and go on where something still changes: frames that nothing asks to be smoothed keep the bits that they
have alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import sqrt
from time import perf_counter
from typing import NamedTuple

import numpy as np

from ..maths.batch import Array, Indices, Mask, angles_between, dot, multiply, unit
from .pose_search import PoseSearch, Solved, Starts
from .problem_tables import Bones, GoalSettings, reach_of_goals

PART = 0.05
"""Seconds for which frames are solved between two items of progress, as near as can be told."""
FIRST_PART = 800
"""Joints of the frames that are solved first, before it is known what one takes: 300 can take 70 ms."""
JUMP = 0.15
"""Radians by which the turn of a joint, beside its base motion, may change from one frame to the next.

More is seen as a pop."""
EXPLAINED = 4.0
"""Radians of such a change that a target explains, for each reach of its chain by which its own step changes:
where a target itself jumps, a chain follows at once, and rests again if it does. A pole's angle explains as
much as it changes by, a reach window so much for each length of its links."""
OTHER_WAY = 0.1
"""Radians of a joint from which on two poses of a frame are different ways to its goals."""
ROOM = 4
"""Frames on either side of a sudden turn that are solved again; so many more where that is not enough."""
STILL = 2e-3
"""Radians of a joint below which a sweep has not changed a frame."""
ROUGH = 0.02
"""The same of a frame that misses its goals, whose pose is known to so much only."""
RETRY_EVERY = 16
"""In a run of frames that miss their goals other starts are tried at the first and so many frames later;
after each that has none the next waits twice as long."""
MOST_SWEEPS = 24
"""Sweeps after which a motion is left as it is."""


@dataclass(frozen=True)
class Kind:
    """Frames in which the same is asked for.

    Attributes:
        search: solves them.
        targets: per goal (R or 1, 3) or (R or 1, 4).
        bones: where joints are at rest, of R frames or all.
        tolerances: (R or 1) of positions, model units.
        starts: gives other starts for frames that miss their goals, or None.
        goal_settings: of R frames or all; None: those of the search's goals.
    """

    search: PoseSearch
    targets: tuple[Array, ...]
    bones: Bones
    tolerances: Array
    starts: Callable[[], Starts] | None
    goal_settings: GoalSettings | None = None

    def solve(
        self,
        rows: Indices,
        shifts: Array,
        near: Array,
        start: Array | None = None,
        tries: bool = False,
        settles: bool = False,
    ) -> Solved:
        """Solve some frames near to rotations (R, J, 4); from these, or a start; see `PoseSearch.solve`.

        Args:
            rows: (R,) of this kind.
            shifts: (R, J, 3) translations of the base poses.
            near, start: rotations.
            tries: whether other starts are tried.
            settles: see `PoseSearch.solve`.
        """
        return self.search.solve(
            near if start is None else start,
            shifts,
            [each if len(each) == 1 else each[rows] for each in self.targets],
            (near, shifts),
            self.starts if tries else None,
            bones=self.bones.at(rows),
            tolerances=self.tolerances if len(self.tolerances) == 1 else self.tolerances[rows],
            settles=settles,
            goal_settings=None if self.goal_settings is None else self.goal_settings.at(rows),
        )


@dataclass(frozen=True)
class Frames:
    """F frames of J joints, in order of time.

    Attributes:
        kinds: what is asked for.
        kind: (F) which of them each frame is.
        place: (F) which row of its kind.
        rotations: (F, J, 4) the base poses, unit quaternions relative to rest.
        translations: (F, J, 3) likewise.
        numbers: (F) of steps in time; every other one is swept at once, whatever frame is the first.
        before, after: (F) the frames beside each, or -1.
        closes: whether the last frame is the first once more: it takes over how that departs.
    """

    kinds: tuple[Kind, ...]
    kind: Indices
    place: Indices
    rotations: Array
    translations: Array
    numbers: Indices
    before: Indices
    after: Indices
    closes: bool = False

    @cached_property
    def movable(self) -> list[int]:
        """M joints that move at some frame."""
        return sorted(set().union(*(kind.search.movable for kind in self.kinds)))

    @cached_property
    def moves(self) -> Mask:
        """(F, M) which of them move at each frame."""
        by_kind = [[j in kind.search.movable for j in self.movable] for kind in self.kinds]
        return np.array(by_kind, np.bool_)[self.kind]

    @cached_property
    def follows_reference(self) -> bool:
        """Whether poses are those nearest to their references."""
        return all(kind.search.follows_reference for kind in self.kinds)

    @cached_property
    def goals(self) -> int:
        """How many goals a frame has at most."""
        return max(len(kind.search.goals) for kind in self.kinds)

    def solve(
        self,
        rows: Indices,
        near: Array | None = None,
        start: Array | None = None,
        tries: bool = False,
        settles: bool = False,
    ) -> Solved:
        """Solve some frames near to their base poses, or to rotations (R, J, 4); see `Kind.solve`."""
        near = self.rotations[rows] if near is None else near
        shifts, kinds = self.translations[rows], self.kind[rows]
        if (kinds == kinds[0]).all():
            kind = self.kinds[int(kinds[0])]
            return kind.solve(self.place[rows], shifts, near, start, tries, settles).with_goals(self.goals)
        solved = Solved.begun(near, shifts, self.goals)
        for number in np.unique(kinds).tolist():
            which = np.flatnonzero(kinds == number)
            begun = None if start is None else start[which]
            places = self.place[rows[which]]
            part = self.kinds[number].solve(places, shifts[which], near[which], begun, tries, settles)
            solved.put(which, part.with_goals(self.goals))
        return solved


class Motion(NamedTuple):
    """A solved motion.

    Attributes:
        solved: the poses.
        apart: (F,) radians, the largest rotation of a joint from the pose to which its frame alone leads.
    """

    solved: Solved
    apart: Array


def solve_motion(frames: Frames, smoothness: float) -> Generator[int, None, Motion]:
    """The nearest motion of frames; gives the number of frames that are solved now and then.

    Args:
        frames: what is asked for.
        smoothness: what changes of departures count beside departures; 0: each frame for itself, as always
            where poses do not follow their references.
    """
    size = len(frames.rotations)
    motion = Solved.begun(frames.rotations, frames.translations, frames.goals)
    for rows in _parts(np.arange(size), frames.rotations.shape[1]):
        motion.put(rows, frames.solve(rows))
        yield len(rows)
    yield from _search_other_ways(frames, motion)
    apart = np.zeros(size)
    if smoothness > 0.0 and size > 1 and frames.follows_reference:
        alone = motion.rotations.copy()
        turned = departures(frames, motion.rotations)
        yield 0
        sudden = _jumps(frames, turned)
        yield 0
        if sudden.any():
            yield from _take_best_path(frames, motion, turned, sudden, smoothness)
            yield from _sweep(frames, motion, smoothness)
            yield 0
        elif not frames.closes:
            return Motion(motion, apart)
        if frames.closes:
            _close(frames, motion)
        apart = angles_between(alone, motion.rotations, axis=-1).max(axis=1, initial=0.0)
    return Motion(motion, apart)


def _parts(rows: Indices, joints: int) -> Iterator[Indices]:
    """Rows in parts that take about as long as `PART` each; what they come to does not depend on it."""
    first, size = 0, min(max(FIRST_PART // max(joints, 1), 1), 8)
    while first < len(rows):
        began = perf_counter()
        yield rows[first : first + size]
        first += size
        seconds = perf_counter() - began
        size = max(1, min(4 * size, int(size * PART / max(seconds, 1e-9))))


def _apart_parts(met: Mask, missed: Mask, joints: int) -> Iterator[tuple[bool, Indices]]:
    """Parts of what is met, then of what is missed; whether it is missed."""
    for part in _parts(np.flatnonzero(met), joints):
        yield False, part
    for part in _parts(np.flatnonzero(missed), joints):
        yield True, part


def _close(frames: Frames, motion: Solved) -> None:
    """Let the last frame depart as the first does, if it does not."""
    ends = np.array([0, len(motion.rotations) - 1])
    first, last = departures(frames, motion.rotations[ends], ends)
    if float(angles_between(first, last, axis=-1).max(initial=0.0)) > STILL:
        solved = frames.solve(ends[1:], _carried(frames, ends[1:], first[None]))
        if solved.statuses[0] == 0 or motion.statuses[-1] != 0:
            motion.put(ends[1:], solved)


def departures(frames: Frames, rotations: Array, rows: Indices | None = None) -> Array:
    """(R, M, 4) what the movable joints of poses are turned by beside their base poses, w >= 0."""
    rows = np.arange(len(rotations)) if rows is None else rows
    base, joints = frames.rotations[rows], frames.movable
    turned = _product(base[:, joints] * (1.0, -1.0, -1.0, -1.0), rotations[:, joints])
    turned[turned[..., 0] < 0.0] *= -1.0
    turned[~frames.moves[rows]] = (1.0, 0.0, 0.0, 0.0)
    return turned


def _product(a: Array, b: Array) -> Array:
    """Products of quaternions (..., 4)."""
    return np.moveaxis(multiply(np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)), 0, -1)


def _carried(frames: Frames, rows: Indices, turned: Array) -> Array:
    """(R, J, 4) the base poses of rows with the joints that move there turned beside them by (R, M, 4)."""
    rotations, joints = frames.rotations[rows].copy(), frames.movable
    moved = unit(_product(rotations[:, joints], turned), axis=-1)
    rotations[:, joints] = np.where(frames.moves[rows][..., None], moved, rotations[:, joints])
    return rotations


# Other starts ---------------------------------------------------------------------------------------


def _search_other_ways(frames: Frames, motion: Solved) -> Generator[int, None, None]:
    """Look for ways to goals that frames miss: from other starts at some of them, and on from what meets its
    goals beside them."""
    tried = np.array([kind.starts is not None for kind in frames.kinds])[frames.kind]
    left = (motion.statuses != 0) & tried
    for row in np.flatnonzero(left).tolist():
        if not left[row]:
            continue
        stretch, left[row] = [row], False
        while (after := int(frames.after[stretch[-1]])) >= 0 and left[after]:
            left[after] = False
            stretch.append(after)
        for end, beside in ((stretch, frames.before), (stretch[::-1], frames.after)):
            yield from _continue(frames, motion, end, int(beside[end[0]]))
        place, gap = 0, RETRY_EVERY
        while place < len(stretch):
            if motion.statuses[stretch[place]] == 0:
                place += 1
                continue
            rows = np.array([stretch[place]])
            solved = frames.solve(rows, tries=True)
            yield 0
            if solved.statuses[0] == 0:
                motion.put(rows, solved)
                yield from _continue(frames, motion, stretch[place + 1 :], stretch[place])
                yield from _continue(frames, motion, stretch[:place][::-1], stretch[place])
                gap = RETRY_EVERY
            place, gap = place + gap, 2 * gap


def _continue(frames: Frames, motion: Solved, rows: Sequence[int], start: int) -> Generator[int, None, None]:
    """Let frames depart as the one beside them does, from `start` on, as long as that meets their goals."""
    for row in rows:
        if start < 0 or motion.statuses[start] != 0 or motion.statuses[row] == 0:
            return
        ends = np.array([start])
        turned = departures(frames, motion.rotations[ends], ends)
        solved = frames.solve(np.array([row]), start=_carried(frames, np.array([row]), turned))
        yield 0
        if solved.statuses[0] == 0:
            motion.put(np.array([row]), solved)
        start = row


# Ways -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Way:
    """One pose of a frame, and what it is turned by beside the base pose."""

    solved: Solved
    turned: Array

    @property
    def departed(self) -> float:
        """The sum of squares of the joints' rotations, radians."""
        return float((_angles(self.turned) ** 2).sum())

    def differs(self, other: _Way) -> bool:
        """Whether it is another way than another pose of the frame."""
        return float(angles_between(self.turned, other.turned, axis=-1).max(initial=0.0)) > OTHER_WAY


def _angles(turned: Array) -> Array:
    """The angles of rotations (..., 4) with w >= 0."""
    return np.asarray(2.0 * np.arctan2(np.sqrt((turned[..., 1:] ** 2).sum(-1)), turned[..., 0]))


def _apart(one: Array, other: Array) -> float:
    """The sum of squares of the rotations between departures (M, 4)."""
    return float((angles_between(one, other, axis=-1) ** 2).sum())


def _take_best_path(
    frames: Frames, motion: Solved, turned: Array, sudden: Mask, smoothness: float
) -> Generator[int, None, None]:
    """Where neighbours went different ways, put the best path through these in place of the frames' poses.

    Frames that miss their goals have ways too: poses that miss them by no more.

    Args:
        frames: what is asked for.
        motion: the poses, each for itself.
        turned: their departures.
        sudden: (F,) where these jump, see `_jumps`.
        smoothness: see `solve_motion`.
    """
    met = motion.statuses == 0
    ways: dict[int, list[_Way]] = {}

    def ways_of(row: int) -> list[_Way]:
        if row not in ways:
            ways[row] = [_Way(motion.at(np.array([row])), turned[row])]
        return ways[row]

    follows = np.flatnonzero((frames.before >= 0) & sudden)
    follows = follows[sudden[frames.before[follows]]]
    jumps = angles_between(turned[frames.before[follows]], turned[follows], axis=-1).max(axis=1, initial=0.0)
    for row in follows[jumps > JUMP].tolist():
        before = int(frames.before[row])
        if met[row] != met[before]:
            continue
        allowed = smoothness * _apart(turned[before], turned[row])
        for start, nexts in ((before, frames.after), (row, frames.before)):
            present, here, spent = ways_of(start)[0], start, 0.0
            while spent <= allowed:
                here = int(nexts[here])
                if here < 0 or met[here] != met[row]:
                    break
                rows = np.array([here])
                begun = _carried(frames, rows, present.turned[None])
                solved = (
                    frames.solve(rows, start=begun) if met[here] else frames.solve(rows, begun, settles=True)
                )
                present = _Way(solved, departures(frames, solved.rotations, rows)[0])
                known = ways_of(here)
                yield 0
                is_worse = bool(_is_worse(frames, solved, known[0].solved)[0])
                if is_worse or not all(present.differs(other) for other in known):
                    break
                spent += present.departed - known[0].departed
                known.append(present)
    if any(len(each) > 1 for each in ways.values()):
        _take_path(frames, motion, turned, ways, smoothness)


def _take_path(
    frames: Frames, motion: Solved, turned: Array, ways: dict[int, list[_Way]], smoothness: float
) -> None:
    """Put the path of least departures and jumps in place of the frames' poses.

    A frame that has one way cuts the path: what comes before it and what follows are chosen apart.
    """
    left = {row for row, each in ways.items() if len(each) > 1}
    while left:
        firsts = [row for row in left if int(frames.before[row]) not in left]
        stretch = [min(firsts or left)]
        while (after := int(frames.after[stretch[-1]])) in left and after != stretch[0]:
            stretch.append(after)
        left.difference_update(stretch)
        ends = [int(frames.before[stretch[0]]), int(frames.after[stretch[-1]])]
        beside = [None if end < 0 or not firsts else turned[end] for end in ends]
        options = [ways[row] for row in stretch]
        if firsts or ends[0] < 0:
            _, path = _cheapest(options, beside[0], beside[1], smoothness)
        else:  # a ring: its first frame comes after its last one
            rings = [_cheapest([[way], *options[1:]], None, way.turned, smoothness) for way in options[0]]
            best = min(range(len(rings)), key=lambda k: rings[k][0])
            path = [best, *rings[best][1][1:]]
        for row, k in zip(stretch, path, strict=True):
            motion.put(np.array([row]), ways[row][k].solved)


def _cheapest(
    options: Sequence[Sequence[_Way]], before: Array | None, after: Array | None, smoothness: float
) -> tuple[float, list[int]]:
    """The least sum of departures and jumps over one way of each frame, and the places of these.

    `before` and `after` are the departures of the frames beside them, or None.
    """
    costs, choices = [way.departed for way in options[0]], list[list[int]]()
    if before is not None:
        for k, way in enumerate(options[0]):
            costs[k] += smoothness * _apart(before, way.turned)
    for others, ways in pairwise(options):
        chosen, sums = [], []
        for way in ways:
            each = [
                cost + smoothness * _apart(other.turned, way.turned)
                for cost, other in zip(costs, others, strict=True)
            ]
            chosen.append(int(np.argmin(each)))
            sums.append(min(each) + way.departed)
        choices.append(chosen)
        costs = sums
    if after is not None:
        for k, way in enumerate(options[-1]):
            costs[k] += smoothness * _apart(way.turned, after)
    path = [int(np.argmin(costs))]
    for chosen in reversed(choices):
        path.insert(0, chosen[path[0]])
    return min(costs), path


# Sweeps ---------------------------------------------------------------------------------------------


def _sweep(frames: Frames, motion: Solved, smoothness: float) -> Generator[int, None, None]:
    """Solve frames about sudden turns again, near to what their neighbours make of their base poses.

    As many frames as it takes are solved again, and all others stay: what rests beside a turn goes on to
    rest.
    """
    turned = departures(frames, motion.rotations)
    near: Mask = np.zeros(len(turned), np.bool_)
    while True:
        yield 0
        sudden = _jumps(frames, turned)
        yield 0
        wider = near | _widened(frames, sudden, ROOM)
        if not sudden.any() or (wider == near).all():
            return
        near = wider
        yield from _relax(frames, motion, turned, near, smoothness)


def _widened(frames: Frames, chosen: Mask, count: int) -> Mask:
    """Some of the frames, and so many on either side."""
    widened = chosen.copy()
    for _ in range(count):
        present = np.flatnonzero(widened)
        for beside in (frames.before[present], frames.after[present]):
            widened[beside[beside >= 0]] = True
    return widened


def _relax(
    frames: Frames, motion: Solved, turned: Array, within: Mask, smoothness: float
) -> Generator[int, None, None]:
    """Sweep over the frames `within` until nothing changes; `turned` are the departures of all."""
    active = within
    # Every other frame is solved at once: its neighbours stand still meanwhile.
    met = motion.statuses == 0
    coupled = 2.0 * smoothness / (1.0 + 2.0 * smoothness)
    relaxation = 2.0 / (1.0 + sqrt(1.0 - coupled * coupled))
    for _ in range(MOST_SWEEPS):
        changed: Mask = np.zeros(len(active), np.bool_)
        for side in (0, 1):
            present = active & (frames.numbers % 2 == side)
            for misses, part in _apart_parts(present & met, present & ~met, turned.shape[1]):
                wanted = _wanted(frames, turned, part, smoothness)
                wanted = turned[part] + relaxation * (_same_side(wanted, turned[part]) - turned[part])
                near = _carried(frames, part, unit(wanted, axis=-1))
                solved = frames.solve(part, near, settles=misses)
                worse = _is_worse(frames, solved, motion.at(part))
                better, solved = part[~worse], solved.at(~worse)
                new = departures(frames, solved.rotations, better)
                moved = angles_between(new, turned[better], axis=-1).max(axis=1, initial=0.0)
                changed[better] = moved > (ROUGH if misses else STILL)
                turned[better] = new
                motion.put(better, solved)
                yield 0
        if not changed.any():
            return
        active = np.logical_and(_widened(frames, changed, 1), within)


def _is_worse(frames: Frames, new: Solved, old: Solved) -> Mask:
    """(R,) which poses miss goals that were met, or miss them by more."""
    slack = max(kind.tolerances.max() for kind in frames.kinds)
    angle = max(kind.search.settings.angle_tolerance for kind in frames.kinds)
    farther = (new.distances > old.distances + slack) | (new.angles > old.angles + angle)
    return np.asarray((new.statuses != 0) & ((old.statuses == 0) | farther.any(1)))


def _jumps(frames: Frames, turned: Array) -> Mask:
    """(F,) frames at which a joint's turn beside its base motion changes more than the targets explain."""
    sudden_frames = np.zeros(len(turned), np.bool_)
    rows = np.flatnonzero((frames.before >= 0) & (frames.after >= 0))
    before, after = frames.before[rows], frames.after[rows]
    both = frames.moves[before] & frames.moves[rows] & frames.moves[after]
    changes = np.where(both, _changes(turned, before, rows, after), 0.0).max(axis=1, initial=0.0)
    allowed = np.full(len(rows), JUMP)
    kinds = frames.kind[rows]
    same = (frames.kind[before] == kinds) & (frames.kind[after] == kinds)
    for number, kind in enumerate(frames.kinds):
        here = np.flatnonzero(same & (kinds == number))
        places = [frames.place[each[here]] for each in (before, rows, after)]
        reach = reach_of_goals(kind.search.skeleton, kind.search.goals)
        values = kind.goal_settings
        if values is not None and len(values.weights) > 1:
            angle, extent = (
                column[places[2]] - 2.0 * column[places[1]] + column[places[0]]
                for column in (values.pole_angles, values.extensions)
            )
            angle = np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi  # whole turns come to nothing
            allowed[here] += np.abs(angle).sum(1) + EXPLAINED * np.abs(extent).sum(1)
        for target in kind.targets:
            if len(target) == 1:
                continue
            if target.shape[1] == 4:
                allowed[here] += _changes(target, *places)
            else:
                step = target[places[2]] - 2.0 * target[places[1]] + target[places[0]]
                allowed[here] += EXPLAINED * np.sqrt((step * step).sum(1)) / reach
    sudden = changes > allowed
    for each in (rows, before, after):
        sudden_frames[each[sudden]] = True
    return sudden_frames


def _changes(turned: Array, before: Indices, rows: Indices, after: Indices) -> Array:
    """Radians by which rotations (F, ..., 4) turn otherwise after rows than before them."""
    back = turned[before] * (1.0, -1.0, -1.0, -1.0)
    foreseen = _product(turned[rows], _product(back, turned[rows]))
    return angles_between(foreseen, turned[after], axis=-1)


def _wanted(frames: Frames, turned: Array, rows: Indices, smoothness: float) -> Array:
    """(R, M, 4) the departures of least sum beside the present ones of the neighbours, not of length 1."""
    wanted = np.zeros((len(rows), turned.shape[1], 4))
    wanted[..., 0] = 1.0
    weights = np.ones((len(rows), turned.shape[1], 1))
    for beside in (frames.before[rows], frames.after[rows]):
        known = np.flatnonzero(beside >= 0)
        shares = smoothness * frames.moves[beside[known]][..., None]
        wanted[known] += shares * _same_side(turned[beside[known]], wanted[known])
        weights[known] += shares
    return wanted / weights


def _same_side(turned: Array, other: Array) -> Array:
    """Quaternions on the side of others."""
    return np.where(dot(turned, other, axis=-1)[..., None] < 0.0, -turned, turned)
