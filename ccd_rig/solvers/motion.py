"""Solve a motion: poses that meet the goals frame by frame, and change least beside the base motion.

An independent solve of a frame gives the pose nearest to its base pose. It jumps where the nearest pose
jumps. With b the base poses, q the solved poses and d = b^-1 q their departures, the *nearest motion*
minimises

    sum |d_f|^2 + mu sum |d_(f+1) - d_f|^2

where mu is the smoothness. Where neighbouring frames are on different IK branches, each branch is continued
into the frames of the other. Goals come first: a frame that misses them takes the branch that misses them
less. Of others the path of least sum is taken (Viterbi 1967, over poses of each frame, as in planners of
robot paths). Then sweeps solve frames again, with a reference made of the base pose and the neighbours'
departures: Gauss-Seidel with the optimal over-relaxation of a chain of frames (Young 1954). Sweeps begin
where the motion jumps and continue where frames still change. All other frames keep the bits of their
independent solution. Where the motion still jumps then, the smoothness between those frames is raised step by
step: a penalty method for the constraint that nothing jumps. At last branches are continued next to their
neighbours, and the path is taken at the largest smoothness: a branch that ends within the clip gives way to
one that does not.

CCD alone minimises no departure: it goes from its start to some pose on the goals. So its start is the
reference that a frame is given. A frame takes a pose only if the sum falls, in the measure that its solve
minimises, or if the pose misses the goals by less: sweeps end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from ..goals import PositionGoal, TargetKind
from ..kernel import (
    LEVER,
    carry_departures,
    sum_departures,
    sweep_departures,
    write_departures,
    write_largest_angles,
)
from ..maths.batch import Array, Indices, Mask, angles_between, arctan2, length, multiply, rotate
from ..settings import Solver
from .pose_search import PoseSearch, Solved, Starts
from .problem_tables import Bones, GoalSettings, flat, reach_of_goals

CHUNK_SECONDS = 0.05
"""Target time of the frames solved between two items of progress, in seconds."""
FIRST_CHUNK = 800
"""Joints of the first chunk of frames, before the time of a frame is known: 300 can take 70 ms."""
JUMP = 0.15
"""Radians by which the turn of a joint, beside its base motion, may change from one frame to the next.

More is seen as a pop.
"""
EXPLAINED = 4.0
"""Radians of such a change that a target's own change of step explains, per reach of a chain of two joints.

Joints of longer chains share the turn, the less the more the target leaps. A direction explains the angle by
which its step changes, a pole's angle as much as it changes, a reach window `EXPLAINED` per length of its
links.
"""
LEAP = 0.5
"""Part of a chain's reach by which a target's step changes where the target jumps: its chain follows at once.

Four hinges inside limits turn by 2.1 radians to a target that jumps by 0.55 of their reach.
"""
BRANCH_DISTANCE = 0.1
"""Radians of a joint from which two poses of a frame are on different IK branches."""
SLACK = 0.05
"""Part of its error by which a pose may miss its goals by more, where a neighbour's branch goes on.

Such poses of a planted wolf differ by 1 % in their miss and by 40 degrees in a joint.
"""
ROOM = 4
"""Frames on either side of a sudden turn that are solved again; repeated where it is not enough."""
STILL = 2e-3
"""Radians of a joint below which a sweep has not changed a frame."""
ROUGH = 0.02
"""`STILL` for a frame that misses its goals: its pose is less certain."""
RETRY_EVERY = 16
"""Frames between retries from other starts in a run of frames that miss their goals.

The first frame of the run is retried; after each failure the gap doubles.
"""
MOST_SWEEPS = 24
"""Most sweeps over a motion."""
RAISE = 4.0
"""Factor by which smoothness is raised at once between frames that still jump."""
MOST_RAISE = 64.0
"""Largest factor in all: what a jump may cost in departures, beside a change that does not jump."""


@dataclass(frozen=True)
class Kind:
    """R frames with the same goals.

    Attributes:
        search: prepared goals.
        targets: per goal (R or 1, 3) or (R or 1, 4).
        bones: rest transforms of R frames or all.
        tolerances: (R or 1) of positions, model units.
        starts: makes other start poses for frames that miss their goals, or None.
        goal_settings: of R frames or all; None: those of the search's goals.
        pulls: numbers of goals whose targets are eased, and (R, 3) their targets before.
    """

    search: PoseSearch
    targets: tuple[Array, ...]
    bones: Bones
    tolerances: Array
    starts: Callable[[], Starts] | None
    goal_settings: GoalSettings | None = None
    pulls: tuple[tuple[int, Array], ...] = ()

    def whole_targets(self) -> list[Array]:
        """The targets before they were eased."""
        targets = list(self.targets)
        for k, whole in self.pulls:
            targets[k] = whole
        return targets

    def pulled(self, rows: Indices, rotations: Array, shifts: Array) -> Iterator[Array]:
        """(R, 3) points of each goal whose target is eased, in poses of a subset of frames.

        Args:
            rows: (R,) of this kind.
            rotations, shifts: (R, J, 4) and (R, J, 3) of the poses.
        """
        skeleton = self.search.skeleton
        heads, turns = self.bones.at(rows).transforms(skeleton, rotations, shifts)
        for k, _ in self.pulls:
            goal = self.search.goals[k]
            assert isinstance(goal, PositionGoal)
            joint = skeleton.index(goal.joint)
            point = np.array([goal.effector(skeleton)[:]])
            yield heads[:, joint] + rotate(turns[:, joint], point, axis=-1)

    def solve(
        self,
        rows: Indices,
        shifts: Array,
        near: Array,
        start: Array | None = None,
        tries: bool = False,
        settles: bool = False,
        sides: Array | None = None,
    ) -> Solved:
        """Solve a subset of frames, see `PoseSearch.solve`.

        Args:
            rows: (R,) of this kind.
            shifts: (R, J, 3) translations of the base poses.
            near: (R, J, 4) rotations of the reference.
            start: (R, J, 4) rotations of the start; None: the reference.
            tries: whether other starts are tried.
            settles, sides: see `PoseSearch.solve`.
        """
        if self.search.settings.solver is Solver.CCD:  # passes alone minimise errors, from the reference
            near, settles = near if start is None else start, False
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
            sides=sides,
        )


@dataclass(frozen=True)
class Frames:
    """F frames of J joints, in order of time.

    Attributes:
        kinds: goals by kind of frame.
        kind: (F) number of each frame's kind.
        place: (F) row of each frame in its kind.
        rotations: (F, J, 4) of the base poses, unit quaternions relative to rest.
        translations: (F, J, 3) of the base poses.
        numbers: (F) of steps in time: even and odd ones are swept by turns, whatever the first frame.
        before, after: (F) indices of the neighbouring frames, or -1.
        closes: whether the last frame repeats the first, and so takes over its departure.
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
        """Indices of the M joints that move in any frame."""
        return sorted(set().union(*(kind.search.movable for kind in self.kinds)))

    @cached_property
    def moves(self) -> Mask:
        """(F, M) whether each of them moves at each frame."""
        by_kind = [[j in kind.search.movable for j in self.movable] for kind in self.kinds]
        return np.array(by_kind, np.bool_)[self.kind]

    @cached_property
    def tables(self) -> tuple[Array, np.ndarray[Any, Any], Indices]:
        """Base rotations (F, 4J), `moves` and `movable` for the kernel."""
        return flat(self.rotations), self.moves.view(np.uint8), np.array(self.movable, np.intp)

    @cached_property
    def follows_reference(self) -> bool:
        """Whether solved poses are the nearest to their references."""
        return all(kind.search.follows_reference for kind in self.kinds)

    @cached_property
    def minimises_departures(self) -> bool:
        """Whether a solve minimises the departure from its reference, which CCD alone does not."""
        return all(kind.search.settings.solver is not Solver.CCD for kind in self.kinds)

    @cached_property
    def tolerances(self) -> tuple[float, float]:
        """The largest of positions and of angles, model units and radians."""
        positions = [float(kind.tolerances.max()) for kind in self.kinds]
        return max(positions), max(kind.search.settings.angle_tolerance for kind in self.kinds)

    @cached_property
    def goals(self) -> int:
        """The largest number of goals of a frame."""
        return max(len(kind.search.goals) for kind in self.kinds)

    def solve(
        self,
        rows: Indices,
        near: Array | None = None,
        start: Array | None = None,
        tries: bool = False,
        settles: bool = False,
    ) -> Solved:
        """Solve a subset of frames; the reference is `near` or the base poses; see `Kind.solve`."""
        sides = None if near is None else self.rotations[rows]
        near = self.rotations[rows] if near is None else near
        shifts, kinds = self.translations[rows], self.kind[rows]
        if len(self.kinds) == 1 or (kinds == kinds[0]).all():
            kind = self.kinds[int(kinds[0])]
            return kind.solve(self.place[rows], shifts, near, start, tries, settles, sides).with_goals(
                self.goals
            )
        solved = Solved.begun(near, shifts, self.goals)
        for number in np.unique(kinds).tolist():
            which = np.flatnonzero(kinds == number)
            begun = None if start is None else start[which]
            places = self.place[rows[which]]
            own_sides = None if sides is None else sides[which]
            kind = self.kinds[number]
            part = kind.solve(places, shifts[which], near[which], begun, tries, settles, own_sides)
            solved.put(which, part.with_goals(self.goals))
        return solved

    def sum_departures(self, rows: Indices, poses: Solved, turned: Array, smoothness: Array) -> Array:
        """(R,) the terms of the sum, see the module, in which poses of R frames take part.

        Args:
            rows: (R,)
            poses: of these frames.
            turned: (F, M, 4) departures of all frames: neighbours are as here.
            smoothness: (F,) of each frame; the larger one counts between two.
        """
        base, moves, joints = self.tables
        kinds, sums = self.kind[rows], np.empty(len(rows))
        for number in np.unique(kinds).tolist():
            which = np.flatnonzero(kinds == number)
            part, written = poses.at(which), np.empty(len(which))
            with self.kinds[number].search.problem() as problem:
                sum_departures(
                    problem,
                    base,
                    flat(self.translations),
                    moves,
                    joints,
                    self.before,
                    self.after,
                    smoothness,
                    flat(turned),
                    rows[which],
                    flat(part.rotations),
                    flat(part.translations),
                    written,
                )
            sums[which] = written
        return sums


def solve_motion(
    frames: Frames, smoothness: float, most_raise: float = MOST_RAISE
) -> Generator[int, None, tuple[Solved, Array]]:
    """Solve for the nearest motion; yields numbers of solved frames as progress.

    Args:
        frames: base poses and goals.
        smoothness: weight of changes of departures; 0: each frame by itself, as always where poses do not
            follow their references.
        most_raise: largest factor of the smoothness where the motion still jumps; 1: it is never raised.

    Returns:
        The poses, and (F,) radians, the largest rotation of a joint from the frame's independent solution.
    """
    size = len(frames.rotations)
    motion: Solved | None = None
    for rows in _Pace.of(frames.rotations.shape[1]).chunks(np.arange(size)):
        solved = frames.solve(rows)
        if len(rows) == size:
            motion = solved
        else:
            motion = motion or Solved.begun(frames.rotations, frames.translations, frames.goals)
            motion.put(rows, solved)
        yield len(rows)
    assert motion is not None
    yield from _retry_missed(frames, motion)
    apart: Array = np.zeros(size)
    if smoothness > 0.0 and size > 1 and frames.follows_reference:
        alone = motion.rotations.copy()
        turned = departures(frames, motion.rotations)
        yield 0
        sudden = _jumps(frames, turned)
        yield 0
        if sudden.any() and (yield from _slow_pulls(frames, motion, turned, sudden, smoothness)):
            sudden = _jumps(frames, turned)
            yield 0
        if sudden.any():
            yield from _take_best_path(frames, motion, turned, sudden, smoothness)
            most = most_raise * smoothness
            turned = yield from _sweep(frames, motion, smoothness, most)
            sudden = _jumps(frames, turned, motion.statuses == 0)
            if most_raise > 1.0 and sudden.any():
                before = motion.rotations.copy()
                yield from _take_best_path(frames, motion, turned, sudden, most, True)
                replaced = (motion.rotations != before).any(axis=(1, 2))
                if replaced.any():
                    yield from _sweep(frames, motion, smoothness, most, replaced)
            yield 0
        elif not frames.closes:
            return motion, apart
        if frames.closes:
            _close(frames, motion)
        apart = largest_angles(alone, motion.rotations)
    return motion, apart


@dataclass
class _Pace:
    """Splits rows into chunks of about `CHUNK_SECONDS` each; results do not depend on the split."""

    size: int  # rows of the next chunk

    @classmethod
    def of(cls, joints: int) -> _Pace:
        """The pace for poses of a number of joints, before the time of a frame is known."""
        return cls(min(max(FIRST_CHUNK // max(joints, 1), 1), 8))

    def chunks(self, rows: Indices) -> Iterator[Indices]:
        """Split rows; times them."""
        while len(rows):
            began, chunk = perf_counter(), rows[: self.size]
            yield chunk
            rows = rows[len(chunk) :]
            seconds = perf_counter() - began
            self.size = max(1, min(4 * self.size, int(len(chunk) * CHUNK_SECONDS / max(seconds, 1e-9))))


def _close(frames: Frames, motion: Solved) -> None:
    """Solve the last frame again with the departure of the first, where they differ."""
    ends = np.array([0, len(motion.rotations) - 1])
    first, last = departures(frames, motion.rotations[ends], ends)
    if largest_angles(first[None], last[None])[0] > STILL:
        solved = frames.solve(ends[1:], _carried(frames, ends[1:], first[None]))
        if solved.statuses[0] == 0 or motion.statuses[-1] != 0:
            motion.put(ends[1:], solved)


def departures(frames: Frames, rotations: Array, rows: Indices | None = None) -> Array:
    """(R, M, 4) rotations of the movable joints relative to their base poses, w >= 0."""
    rows = np.arange(len(rotations)) if rows is None else rows
    turned = np.empty((len(rows), len(frames.movable), 4))
    write_departures(*frames.tables, rows, flat(rotations), flat(turned))
    return turned


def _carried(frames: Frames, rows: Indices, turned: Array) -> Array:
    """(R, J, 4) rotations of the base poses with departures (R, M, 4) of the joints that move."""
    rotations = np.empty((len(rows), *frames.rotations.shape[1:]))
    carry_departures(*frames.tables, rows, flat(turned), flat(rotations))
    return rotations


def largest_angles(a: Array, b: Array) -> Array:
    """(R,) largest angles between rotations (R, M, 4), radians; 0 without joints."""
    largest = np.empty(len(a))
    write_largest_angles(flat(a), flat(b), largest)
    return largest


# Pulls ----------------------------------------------------------------------------------------------


def _slow_pulls(
    frames: Frames, motion: Solved, turned: Array, sudden: Mask, smoothness: float
) -> Generator[int, None, bool]:
    """Ease targets that are eased already, so that pulled points come to their places steadily.

    A body turns ever faster, until a point stays behind its target: there it stops at once. Of frames in
    which points stay behind, the nearest smooth motion minimises

        sum |e_f - d_f|^2 + sum mu_f |e_(f+1) - e_f|^2

    where d are the departures of the independent solutions, and e those of the motion. Targets are eased to
    where it has the points. Frames in which points are at their targets keep them. A mu as in `_stops` lets
    the motion go on from these, slower by the same factor in each frame.

    Args:
        frames: base poses and goals; targets of pulls are changed in place.
        motion: the independent solutions, changed in place.
        turned: (F, M, 4) their departures, likewise.
        sudden: (F,) frames at which these jump: stretches of frames beside them are changed.
        smoothness: the largest mu.

    Returns:
        Whether anything was changed.
    """
    behind, changed = np.zeros_like(sudden), False
    for number, kind in enumerate(frames.kinds):
        rows = np.flatnonzero(frames.kind == number)
        for k, whole in kind.pulls:
            eased = (kind.targets[k] != whole).any(axis=1)
            behind[rows] |= eased if len(eased) == 1 else eased[frames.place[rows]]
    beside = _widened(frames, sudden, 1)
    for stretch in _stretches(frames, behind):
        if not beside[stretch].any():
            continue
        weights = _stops(frames, stretch, turned, smoothness)
        smooth = _smoothed(frames, stretch, turned, weights)
        sizes = length(smooth, axis=-1)[..., None]
        smooth = np.where(sizes > 0.5, smooth / np.maximum(sizes, 0.5), turned[stretch])
        shifts = _smoothed(frames, stretch, motion.translations, weights)
        moves = largest_angles(smooth, turned[stretch]) > STILL
        for number in np.unique(frames.kind[stretch[moves]]).tolist():
            which = moves & (frames.kind[stretch] == number)
            rows, kind = stretch[which], frames.kinds[number]
            rotations, places = _carried(frames, rows, smooth[which]), frames.place[rows]
            before = [kind.targets[k][places] for k, _ in kind.pulls]
            for (k, _), points in zip(kind.pulls, kind.pulled(places, rotations, shifts[which]), strict=True):
                kind.targets[k][places] = points
            solved = frames.solve(rows, rotations)
            yield 0
            misses = (solved.statuses != 0) & (motion.statuses[rows] == 0)
            for (k, _), old in zip(kind.pulls, before, strict=True):
                kind.targets[k][places[misses]] = old[misses]
            rows = rows[~misses]
            motion.put(rows, solved.at(~misses))
            turned[rows] = departures(frames, motion.rotations[rows], rows)
            changed |= bool(len(rows))
    return changed


def _stops(frames: Frames, stretch: Indices, turned: Array, most: float) -> Array:
    """(R + 1) weights of the changes between R frames of a stretch, and from and to the frames beside it.

    See `_slow_pulls`. With v, g and w the steps before a stretch, into it and in it, the motion goes on by
    w + (v - w) s^k in its frame k, and ends where it would without: s = |g - w| / (|g - w| + |v - w|). In an
    endless stretch that takes a weight of s / (1 - s)^2.
    """
    weights = np.empty((2, len(stretch) + 1))
    for side, (inside, nexts) in enumerate(((stretch, frames.before), (stretch[::-1], frames.after))):
        rows = [int(inside[min(1, len(inside) - 1)]), int(inside[0])]
        while len(rows) < 4:
            rows.append(int(nexts[rows[-1]]) if rows[-1] >= 0 else -1)
        weights[side] = most
        if rows[2] >= 0:
            known = [turned[row if row >= 0 else rows[2]].copy() for row in rows]
            for each, other in pairwise(known):
                other *= np.where((each * other).sum(axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
            after, into, before = (each - other for each, other in pairwise(known))
            excess, change = (np.sqrt(((each - after) ** 2).sum()) for each in (into, before))
            if change * change * most > excess * (excess + change):
                weights[side] = excess * (excess + change) / (change * change)
    half = (len(stretch) + 1) // 2
    return np.concatenate((weights[0, :half], weights[1, half:]))


def _smoothed(frames: Frames, stretch: Indices, values: Array, weights: Array) -> Array:
    """(R, J, 3) or (R, J, 4) values (F, ...) of a stretch of frames, smoothed between the frames beside it.

    See `_slow_pulls`. The linear equations are solved by elimination.
    """
    ends = int(frames.before[stretch[0]]), int(frames.after[stretch[-1]])
    rows = np.array([each for each in (ends[0], *stretch.tolist(), ends[1]) if each >= 0])
    known = values[rows]
    if known.shape[-1] == 4:  # opposite quaternions are the same rotation
        signs = np.where((known[1:] * known[:-1]).sum(axis=-1) < 0.0, -1.0, 1.0)
        known[1:] *= np.cumprod(signs, axis=0)[..., None]
    first, weights = int(ends[0] >= 0), weights.copy()
    weights[0] *= ends[0] >= 0
    weights[-1] *= ends[1] >= 0
    right = known[first : first + len(stretch)].copy()
    right[0] += weights[0] * known[0]
    right[-1] += weights[-1] * known[-1]
    diagonal = 1.0 + weights[:-1] + weights[1:]
    for k in range(1, len(right)):
        share = weights[k] / diagonal[k - 1]
        diagonal[k] -= share * weights[k]
        right[k] += share * right[k - 1]
    right[-1] /= diagonal[-1]
    for k in range(len(right) - 2, -1, -1):
        right[k] = (right[k] + weights[k + 1] * right[k + 1]) / diagonal[k]
    return np.asarray(right)


# Other starts ---------------------------------------------------------------------------------------


def _retry_missed(frames: Frames, motion: Solved) -> Generator[int, None, None]:
    """Retry frames that miss their goals, from other starts and from neighbours that meet theirs."""
    if not motion.statuses.any():
        return
    can_retry = motion.can_retry.copy()  # by independent solves
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
            if can_retry[stretch[place]]:
                rows = np.array([stretch[place]])
                solved = frames.solve(rows, tries=True)
                yield 0
                if _first_missed(frames, rows[0], solved) > _first_missed(frames, rows[0], motion.at(rows)):
                    motion.put(rows, solved)
                    yield from _continue(frames, motion, stretch[place + 1 :], stretch[place])
                    yield from _continue(frames, motion, stretch[:place][::-1], stretch[place])
                    gap = RETRY_EVERY
            place, gap = place + gap, 2 * gap


def _continue(frames: Frames, motion: Solved, rows: Sequence[int], start: int) -> Generator[int, None, None]:
    """Continue the departure of frame `start` over `rows`, as long as they miss an earlier priority."""
    for row in rows if start >= 0 else ():
        ends, missed = np.array([start]), _first_missed(frames, row, motion.at(np.array([row])))
        if missed >= _first_missed(frames, start, motion.at(ends)):
            return
        turned = departures(frames, motion.rotations[ends], ends)
        solved = frames.solve(np.array([row]), start=_carried(frames, np.array([row]), turned))
        yield 0
        if _first_missed(frames, row, solved) > missed:
            motion.put(np.array([row]), solved)
        start = row


def _first_missed(frames: Frames, row: int, solved: Solved) -> float:
    """The first priority of which the solved pose of a frame misses a goal; infinite where all are met."""
    if solved.statuses[0] == 0:
        return np.inf
    return min(_misses(frames, row, solved), default=0)


def _misses(frames: Frames, row: int, solved: Solved) -> dict[int, float]:
    """By priority, the errors of the goals that the solved pose of a frame misses, as solves weigh them.

    The square root of the weighted sum of squares, lengths in parts of the reach. Priorities that are met are
    left out.
    """
    kind, place = frames.kinds[frames.kind[row]], frames.place[row]
    goals, values = kind.search.goals, kind.goal_settings or kind.search.goal_settings
    near, angle = kind.tolerances[place % len(kind.tolerances)], kind.search.settings.angle_tolerance
    weights = values.weights[place % len(values.weights)].tolist()
    reach, squares = reach_of_goals(kind.search.skeleton, goals), dict[int, float]()
    for goal, weight, off, turned in zip(
        goals, weights, solved.distances[0].tolist(), solved.angles[0].tolist(), strict=False
    ):
        if off > near or turned > angle:
            square = weight * ((off / reach) ** 2 + (LEVER * turned) ** 2)
            squares[goal.priority] = squares.get(goal.priority, 0.0) + square
    return {priority: square**0.5 for priority, square in squares.items()}


def _compare(frames: Frames, row: int, new: Solved, old: Solved) -> int:
    """Compare what solved poses of a frame miss: 1 if the new one misses less, -1 if more, else 0.

    The first priority decides in which errors differ by more than `SLACK`.
    """
    missed, before = _misses(frames, row, new), _misses(frames, row, old)
    for priority in sorted({*missed, *before}):
        error, was = missed.get(priority, 0.0), before.get(priority, 0.0)
        if error < (1.0 - SLACK) * was:
            return 1
        if was < (1.0 - SLACK) * error:
            return -1
    return 0


# IK branches ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Branch:
    """A solution of a frame on an IK branch: (1) its pose, and (M, 4) its departure."""

    solved: Solved
    turned: Array

    @property
    def departed(self) -> float:
        """The sum of squares of the departure's angles, radians."""
        sines = np.sqrt((self.turned[..., 1:] ** 2).sum(-1))
        return float(((2.0 * arctan2(sines, self.turned[..., 0])) ** 2).sum())

    def differs(self, other: _Branch) -> bool:
        """Whether two solutions of a frame are on different branches."""
        return bool(largest_angles(self.turned[None], other.turned[None])[0] > BRANCH_DISTANCE)


def _square_between(a: Array, b: Array) -> float:
    """The sum of squares of the rotations between departures (M, 4)."""
    return float((angles_between(a, b, axis=-1) ** 2).sum())


def _take_best_path(
    frames: Frames,
    motion: Solved,
    turned: Array,
    sudden: Mask,
    smoothness: float,
    is_last: bool = False,
) -> Generator[int, None, None]:
    """Replace poses by the best path over IK branches, where neighbours are on different ones.

    Frames that miss their goals have branches too: poses that miss them about as much. A pose that misses
    less replaces those of its frame, and is continued where it jumps beside a neighbour.

    Args:
        frames: base poses and goals.
        motion: the independent solutions, changed in place.
        turned: their departures, likewise where poses miss less.
        sudden: (F,) frames at which these jump, see `_jumps`.
        smoothness: see `solve_motion`.
        is_last: whether branches are continued next to their neighbours, not to the base poses. Such a branch
            ends only at limits.
    """
    met = motion.statuses == 0
    branches: dict[int, list[_Branch]] = {}
    entered = set[tuple[int, bool]]()

    def branches_of(row: int) -> list[_Branch]:
        if row not in branches:
            branches[row] = [_Branch(motion.at(np.array([row])), turned[row])]
        return branches[row]

    follows = np.flatnonzero((frames.before >= 0) & sudden)
    waiting = deque(follows[sudden[frames.before[follows]]].tolist())
    while waiting:
        row = waiting.popleft()
        before = int(frames.before[row])
        jump = largest_angles(turned[[before]], turned[[row]])[0]
        if met[row] != met[before] or jump <= JUMP:
            continue
        allowed = smoothness * _square_between(turned[before], turned[row])
        for start, nexts, is_forward in ((before, frames.after, True), (row, frames.before, False)):
            present, here, spent = branches_of(start)[0], start, 0.0
            while spent <= allowed:
                there, here = here, int(nexts[here])
                if here < 0 or met[here] != met[row] or (here, is_forward) in entered:
                    break
                if not frames.minimises_departures:  # each start has a pose of its own: branches have no end
                    entered.add((here, is_forward))
                rows = np.array([here])
                begun = _carried(frames, rows, present.turned[None])
                near = begun if is_last else None
                solved = (
                    frames.solve(rows, near, begun) if met[here] else frames.solve(rows, begun, settles=True)
                )
                present = _Branch(solved, departures(frames, solved.rotations, rows)[0])
                known = branches_of(here)
                yield 0
                misses = _compare(frames, here, solved, known[0].solved)
                if misses > 0:  # goals come before departures
                    known[:] = [present]
                    motion.put(rows, solved)
                    turned[here] = present.turned
                    waiting.append(here if is_forward else there)
                    continue
                if misses < 0 or not all(present.differs(other) for other in known):
                    break
                spent += present.departed - known[0].departed
                known.append(present)
    if any(len(each) > 1 for each in branches.values()):
        _take_path(frames, motion, turned, branches, smoothness)


def _take_path(
    frames: Frames, motion: Solved, turned: Array, branches: dict[int, list[_Branch]], smoothness: float
) -> None:
    """Replace poses by the path of least departures and jumps.

    A frame with one branch cuts the path: the frames before and after it are optimised separately.
    """
    left = {row for row, each in branches.items() if len(each) > 1}
    while left:
        firsts = [row for row in left if int(frames.before[row]) not in left]
        stretch = [min(firsts or left)]
        while (after := int(frames.after[stretch[-1]])) in left and after != stretch[0]:
            stretch.append(after)
        left.difference_update(stretch)
        ends = [int(frames.before[stretch[0]]), int(frames.after[stretch[-1]])]
        beside = [None if end < 0 or not firsts else turned[end] for end in ends]
        options = [branches[row] for row in stretch]
        if firsts or ends[0] < 0:
            _, path = _cheapest(options, beside[0], beside[1], smoothness)
        else:  # a ring: its first frame comes after its last one
            rings = [
                _cheapest([[branch], *options[1:]], None, branch.turned, smoothness) for branch in options[0]
            ]
            best = min(range(len(rings)), key=lambda k: rings[k][0])
            path = [best, *rings[best][1][1:]]
        for row, k in zip(stretch, path, strict=True):
            motion.put(np.array([row]), branches[row][k].solved)


def _cheapest(
    options: Sequence[Sequence[_Branch]], before: Array | None, after: Array | None, smoothness: float
) -> tuple[float, list[int]]:
    """The least sum of departures and jumps over one branch of each frame, and the branches' numbers.

    `before` and `after` are the departures of the neighbouring frames, or None.
    """
    costs, choices = [branch.departed for branch in options[0]], list[list[int]]()
    if before is not None:
        for k, branch in enumerate(options[0]):
            costs[k] += smoothness * _square_between(before, branch.turned)
    for others, branches in pairwise(options):
        chosen, sums = [], []
        for branch in branches:
            sums_before = [
                cost + smoothness * _square_between(other.turned, branch.turned)
                for cost, other in zip(costs, others, strict=True)
            ]
            chosen.append(int(np.argmin(sums_before)))
            sums.append(min(sums_before) + branch.departed)
        choices.append(chosen)
        costs = sums
    if after is not None:
        for k, branch in enumerate(options[-1]):
            costs[k] += smoothness * _square_between(branch.turned, after)
    path = [int(np.argmin(costs))]
    for chosen in reversed(choices):
        path.insert(0, chosen[path[0]])
    return min(costs), path


# Sweeps ---------------------------------------------------------------------------------------------


def _sweep(
    frames: Frames, motion: Solved, smoothness: float, most: float, replaced: Mask | None = None
) -> Generator[int, None, Array]:
    """Smooth sudden turns: solve the frames around them again, with references made by their neighbours.

    The range around a turn grows as far as it has to; all other frames stay. Where a turn between frames that
    meet their goals stays sudden, the smoothness around it is raised up to `most`. Stretches of frames that
    still jump then, or depart by more than that is worth, keep the poses from before. No smoothness helps
    where a chain stretches to a target that leaves its reach: its bend falls with the square root of what is
    left. A stretch is swept again only when it has changed itself: what it gets does not depend on other
    turns of the motion.

    Args:
        frames: base poses and goals.
        motion: the poses, changed in place.
        smoothness: see `solve_motion`.
        most: the largest smoothness.
        replaced: (F,) frames near which turns count; None: all turns.

    Returns:
        (F, M, 4) the departures of the motion.
    """
    turned = departures(frames, motion.rotations)
    near: Mask = np.zeros(len(turned), np.bool_)
    counts = near if replaced is None else _widened(frames, replaced, ROOM)
    weights = np.full(len(turned), smoothness)
    unraised: Solved | None = None
    while True:
        yield 0
        sudden = _jumps(frames, turned)
        yield 0
        # Turns appear beside what was swept.
        here = sudden if replaced is None else sudden & (counts | _widened(frames, near, ROOM))
        around = _widened(frames, here, ROOM)
        changed = around & ~near
        if not changed.any():
            raised = here & (weights < most) & _jumps(frames, turned, motion.statuses == 0)
            if not raised.any():
                break
            changed = around = _widened(frames, raised, ROOM)
            unraised = motion.at(np.arange(len(turned))) if unraised is None else unraised
            weights[around] = np.minimum(weights[around] * RAISE, most)
        near |= around
        within: Mask = np.zeros_like(near)
        for rows in _stretches(frames, near):
            within[rows] = changed[rows].any()
        yield from _relax(frames, motion, turned, _widened(frames, changed, 1) & within, within, weights)
    if unraised is not None:
        met = motion.statuses == 0
        _undo_where_no_better(frames, motion, turned, unraised, _jumps(frames, turned, met), most)
    return turned


def _undo_where_no_better(
    frames: Frames, motion: Solved, turned: Array, old: Solved, sudden: Mask, smoothness: float
) -> None:
    """Restore poses in stretches of changed frames that still jump, or whose sum has not become smaller.

    Args:
        frames: base poses and goals.
        motion: the poses, changed in place.
        turned: (F, M, 4) their departures, likewise.
        old: the poses to restore.
        sudden: (F,) frames at which the motion jumps.
        smoothness: of the sum, see the module.
    """
    before = departures(frames, old.rotations)
    sums = []
    for each in (turned, before):
        departed = (angles_between(each, np.array((1.0, 0.0, 0.0, 0.0)), axis=-1) ** 2).sum(axis=1)
        jumps = (angles_between(each[frames.before], each, axis=-1) ** 2).sum(axis=1)
        sums.append((departed, np.where(frames.before >= 0, jumps, 0.0)))
    for rows in _stretches(frames, (turned != before).any(axis=(1, 2))):
        ends = np.union1d(rows, frames.after[rows][frames.after[rows] >= 0])
        new, former = (departed[rows].sum() + smoothness * jumps[ends].sum() for departed, jumps in sums)
        if new >= former or sudden[ends].any():
            motion.put(rows, old.at(rows))
            turned[rows] = before[rows]


def _stretches(frames: Frames, chosen: Mask) -> list[Indices]:
    """Rows of frames that are chosen, in stretches of neighbours; round the end of a ring too."""
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return []
    before = frames.before[rows]
    follows = (before >= 0) & chosen[before]
    stretches = np.split(rows, np.flatnonzero(~(follows & (before < rows)))[1:])
    ends = [int(stretch[-1]) for stretch in stretches]
    if follows[0] and (last := ends.index(before[0])) > 0:
        stretches[0] = np.concatenate((stretches.pop(last), stretches[0]))
    return stretches


def _widened(frames: Frames, chosen: Mask, count: int) -> Mask:
    """A mask of frames, widened by `count` frames on either side."""
    widened = chosen.copy()
    for _ in range(count):
        present = np.flatnonzero(widened)
        for beside in (frames.before[present], frames.after[present]):
            widened[beside[beside >= 0]] = True
    return widened


def _relax(
    frames: Frames, motion: Solved, turned: Array, active: Mask, within: Mask, smoothness: Array
) -> Generator[int, None, None]:
    """Sweep over frames, and beside those that change, until none changes.

    Args:
        frames: base poses and goals.
        motion: the poses, changed in place.
        turned: (F, M, 4) their departures, likewise.
        active: (F,) frames of the first sweep.
        within: (F,) frames that may change.
        smoothness: (F,) of each frame; the larger one counts between two.
    """
    pace = _Pace.of(turned.shape[1])
    # Even and odd frames are solved by turns: the neighbours of a frame stand still meanwhile.
    met = motion.statuses == 0
    around = frames.moves.view(np.uint8), frames.before, frames.after, smoothness
    for _ in range(MOST_SWEEPS):
        changed: Mask = np.zeros(len(active), np.bool_)
        for side in (0, 1):
            present = active & (frames.numbers % 2 == side)
            chunks = (  # of frames that meet their goals, then of frames that miss them
                (misses, chunk)
                for misses, rows in ((False, present & met), (True, present & ~met))
                for chunk in pace.chunks(np.flatnonzero(rows))
            )
            for misses, chunk in chunks:
                # Where limits are near, an over-relaxed departure may cost more: then it is the optimal one.
                rows = chunk
                for relaxes in (True, False):
                    swept = np.empty((len(rows), *turned.shape[1:]))
                    sweep_departures(flat(turned), *around, relaxes, rows, flat(swept))
                    near = _carried(frames, rows, swept)
                    solved = frames.solve(rows, near, settles=misses)
                    new, known = departures(frames, solved.rotations, rows), motion.at(rows)
                    turns = largest_angles(new, turned[rows]) > (ROUGH if misses else STILL)
                    sums, before = (
                        frames.sum_departures(rows, each, turned, smoothness) for each in (solved, known)
                    )
                    fits = ~_is_worse(frames, solved, known)
                    kept = fits & ((sums < before) | _is_worse(frames, known, solved))
                    better = rows[kept]
                    changed[better] = turns[kept]
                    turned[better] = new[kept]
                    motion.put(better, solved.at(kept))
                    rows = rows[fits & ~kept & turns]
                    if not len(rows):
                        break
                yield 0
        if not changed.any():
            return
        active = np.logical_and(_widened(frames, changed, 1), within)


def _is_worse(frames: Frames, new: Solved, old: Solved) -> Mask:
    """(R,) whether poses miss goals that were met, or miss them by more."""
    slack, angle = frames.tolerances
    farther = (new.distances > old.distances + slack) | (new.angles > old.angles + angle)
    return np.asarray((new.statuses != 0) & ((old.statuses == 0) | farther.any(1)))


def _jumps(frames: Frames, turned: Array, among: Mask | None = None) -> Mask:
    """(F,) whether a joint's departure changes more at a frame than the targets explain.

    With `among`, (F,), only between frames of these.
    """
    sudden_frames = np.zeros(len(turned), np.bool_)
    inner = (frames.before >= 0) & (frames.after >= 0)
    if among is not None:
        inner &= among & among[frames.before] & among[frames.after]
    rows = np.flatnonzero(inner)
    before, after = frames.before[rows], frames.after[rows]
    both = frames.moves[before] & frames.moves[rows] & frames.moves[after]
    changes = np.where(both, _changes(turned, before, rows, after), 0.0).max(axis=1, initial=0.0)
    if not (changes > JUMP).any():
        return sudden_frames
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
            angle = np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi  # whole turns are no change
            allowed[here] += np.abs(angle).sum(1) + EXPLAINED * np.abs(extent).sum(1)
        for goal, target in zip(kind.search.goals, kind.whole_targets(), strict=True):
            if len(target) == 1:
                continue
            if target.shape[1] == 4:
                allowed[here] += _changes(target, *places)
            else:
                old, present, new = (target[each] for each in places)
                if goal.target_kind is TargetKind.DIRECTION:
                    # The old direction, turned about the present one by half a turn, goes on as before.
                    off = new - 2.0 * (old * present).sum(1)[:, None] * present + old
                    square = (off * off).sum(1)
                    allowed[here] += 2.0 * arctan2(np.sqrt(square), np.sqrt(np.maximum(4.0 - square, 0.0)))
                    continue
                step = new - 2.0 * present + old
                way = np.sqrt((step * step).sum(1)) / reach
                joints = len(set(goal.joints(kind.search.skeleton)).intersection(kind.search.movable))
                share = min(1.0, 2.0 / max(joints, 1))
                leap = np.minimum(way / LEAP, 1.0) ** 2
                allowed[here] += EXPLAINED * way * (share + (1.0 - share) * leap)
    sudden = changes > allowed
    for each in (rows, before, after):
        sudden_frames[each[sudden]] = True
    return sudden_frames


def _changes(turned: Array, before: Indices, rows: Indices, after: Indices) -> Array:
    """Radians by which the step of rotations (F, ..., 4) after rows differs from the step before."""
    back = turned[before] * (1.0, -1.0, -1.0, -1.0)
    extrapolated = multiply(turned[rows], multiply(back, turned[rows], axis=-1), axis=-1)
    return angles_between(extrapolated, turned[after], axis=-1)
