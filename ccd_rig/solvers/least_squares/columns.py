"""How the columns of a layout move points and turn frames, over all poses at once.

In the shapes below m counts the numbers of one residual, k the columns, B the poses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...maths.batch import Array, Indices, Mask, as_slice, select
from .layout import Layout
from .state import State

_NEXT: Indices = np.array([1, 2, 0], dtype=np.intp)
_AFTER: Indices = np.array([2, 0, 1], dtype=np.intp)
# Which component of an arm, with which sign, stands in each entry of d x arm that is not 0.
_ARM_OF: Indices = np.array([2, 1, 2, 0, 1, 0], dtype=np.intp)
_ARM_SIGNS: Array = np.array([[1.0], [-1.0], [-1.0], [1.0], [1.0], [-1.0]])


class Now(NamedTuple):
    """A state and what the residuals read of it.

    Attributes:
        state: where.
        ends: (P, 3, B) the goals' points in model space.
        axes: (h, 3, B) axes of the hinge columns, model space; None until slopes are asked for.
        slide_axes: (s, 3, B) of the slide columns, model space, times the reach; None as above.
        coupled_rates: (c, 3, B) of the coupled offsets, model units per radian; None where there are none.
    """

    state: State
    ends: Array
    axes: Array | None = None
    slide_axes: Array | None = None
    coupled_rates: Array | None = None

    def at(self, some: Mask | Indices) -> Now:
        """Some of the poses."""
        return Now(
            self.state.at(some),
            select(self.ends, some),
            None if self.axes is None else select(self.axes, some),
            None if self.slide_axes is None else select(self.slide_axes, some),
            None if self.coupled_rates is None else select(self.coupled_rates, some),
        )


class PointSum:
    """A weighted sum of points, and how the columns move it.

    A turn about joint j moves the sum by u x (sum of w_p (a_pj - h_j)) over the points p that j carries,
    where a_pj is what the turn swings: the point itself, or the head of a joint on the way to it that does
    not inherit rotation.

    Attributes:
        single: whether it is one point, whole, which turns swing as it is: `SinglePoints` moves it.
    """

    def __init__(self, layout: Layout, points: Sequence[tuple[int, int]], weights: Sequence[float]) -> None:
        """`points` are (number of the point in `Now.ends`, its joint), -1 for the joint's own head."""
        self.layout = layout
        self.points, self.weights = list(points), list(weights)
        self.tips = [(number, layout.row[joint]) for number, joint in points]
        self.single = len(self.points) == 1 and self.weights[0] == 1.0 and self.points[0][0] != -1
        self.single = self.single and not any(
            pivot != -1 and j in layout.limits for j, pivot in layout.path(points[0][1]).items()
        )

    @cached_property
    def rows(self) -> Indices:
        """Rows of the joints that move the sum."""
        layout = self.layout
        moved = {layout.row[j] for _, joint in self.points for j in layout.path(joint) if j in layout.limits}
        return np.array(sorted(moved), dtype=np.intp)

    @cached_property
    def path(self) -> Path | None:
        """The rotations on the way to a single point."""
        return Path(self.layout, self.rows.tolist()) if self.single else None

    @cached_property
    def _lever_tables(self) -> tuple[Array, Indices, Array, Array]:
        """What of each head (rows, all rows) and of each point counts, the points, and the sums of both."""
        layout, rows = self.layout, self.layout.row
        place = {row: at for at, row in enumerate(self.rows.tolist())}
        of_heads = np.zeros((len(place), len(rows)))
        ends: list[dict[int, float]] = [{} for _ in place]
        for (number, joint), weight in zip(self.points, self.weights, strict=True):
            for j, pivot in layout.path(joint).items():
                if rows[j] not in place or (number == -1 and j == joint):
                    continue
                at = place[rows[j]]
                if pivot != -1:
                    of_heads[at, rows[pivot]] += weight
                elif number == -1:
                    of_heads[at, rows[joint]] += weight
                else:
                    ends[at][number] = ends[at].get(number, 0.0) + weight
        numbers = sorted({number for each in ends for number in each})
        of_ends = np.array([[each.get(number, 0.0) for number in numbers] for each in ends])
        of_ends = of_ends.reshape(len(place), len(numbers))
        return of_heads, np.array(numbers, dtype=np.intp), of_ends, of_heads.sum(1) + of_ends.sum(1)

    @cached_property
    def _column_tables(self) -> tuple[Indices, Indices, Indices, Indices]:
        """Ball joints and hinges that move the sum, each with its place among `rows`."""
        place = {row: at for at, row in enumerate(self.rows.tolist())}
        found = []
        for rows in (self.layout.ball_rows.tolist(), self.layout.hinge_rows.tolist()):
            numbers = [n for n, row in enumerate(rows) if row in place]
            found += [numbers, [place[rows[n]] for n in numbers]]
        balls, ball_at, hinges, hinge_at = (np.array(each, dtype=np.intp) for each in found)
        return balls, ball_at, hinges, hinge_at

    @cached_property
    def _shift_tables(self) -> tuple[Indices, Array, list[tuple[int, int, float]]]:
        """Slides that move the sum and how much of it each moves; the same of coupled offsets, after their
        number and column."""
        layout = self.layout
        slid, coupled = np.zeros(len(layout.slides)), [0.0] * len(layout.coupled)
        for (_, joint), weight in zip(self.points, self.weights, strict=True):
            path = layout.path(joint)
            slid += [weight * (i in path) for i, _ in layout.slides]
            shifts = [weight * (layout.rows[each.row] in path) for each in layout.coupled]
            coupled = [share + more for share, more in zip(coupled, shifts, strict=True)]
        slides = np.flatnonzero(slid)
        return (
            slides,
            slid[slides],
            [
                (c, each.column, share)
                for c, (each, share) in enumerate(zip(layout.coupled, coupled, strict=True))
                if each.column != -1 and share != 0.0
            ],
        )

    def value(self, now: Now) -> Array:
        """(3, B)."""
        if self.single:
            end: Array = now.ends[self.points[0][0]]
            return end
        heads = now.state.transforms
        terms = [
            weight * (heads[row, :, 3] if number == -1 else now.ends[number])
            for (number, row), weight in zip(self.tips, self.weights, strict=True)
        ]
        return np.asarray(sum(terms[1:], terms[0]))

    def levers(self, now: Now) -> Array:
        """(rows, 3, B) what a turn about each joint's head swings."""
        heads = now.state.transforms[:, :, 3]
        if self.single:
            return np.asarray(now.ends[self.points[0][0]] - heads[self.rows])
        size = now.state.size
        of_heads, numbers, of_ends, totals = self._lever_tables
        found = (of_heads @ heads.reshape(len(heads), -1)).reshape(-1, 3, size)
        if len(numbers):
            found += (of_ends @ now.ends[numbers].reshape(len(numbers), -1)).reshape(-1, 3, size)
        found -= totals[:, None, None] * heads[self.rows]
        return np.asarray(found)

    def slope(self, now: Now, factor: float, into: Array) -> None:
        """Write how the sum moves, times `factor`, into (3, k, B), which is zero."""
        layout, size = self.layout, now.state.size
        levers = factor * self.levers(now)
        balls, ball_at, hinges, hinge_at = self._column_tables
        if len(balls):
            moved = into[:, layout.first_ball : layout.first_slide].reshape(3, -1, 3, size)
            arms = levers[ball_at]
            # d x arm, for d along each axis of model space.
            moved[0, balls, 1], moved[0, balls, 2] = arms[:, 2], -arms[:, 1]
            moved[1, balls, 0], moved[1, balls, 2] = -arms[:, 2], arms[:, 0]
            moved[2, balls, 0], moved[2, balls, 1] = arms[:, 1], -arms[:, 0]
        if len(hinges):
            assert now.axes is not None
            moves = crossed(now.axes.take(hinges, 0), levers.take(hinge_at, 0))
            into[:, hinges] = moves.transpose(1, 0, 2)
        self.add_shifts(now, factor, into)

    @property
    def has_shifts(self) -> bool:
        """Whether slides or coupled offsets move it."""
        slides, _, coupled = self._shift_tables
        return len(slides) > 0 or len(coupled) > 0

    def add_shifts(self, now: Now, factor: float, into: Array) -> None:
        """Write what slides move, times `factor`, into (3, k, B), and add what coupled offsets do."""
        slides, slid, coupled = self._shift_tables
        if len(slides):
            assert now.slide_axes is not None
            moves = factor * slid[:, None, None] * now.slide_axes[slides]
            into[:, self.layout.first_slide + slides] = moves.transpose(1, 0, 2)
        for c, column, share in coupled:
            assert now.coupled_rates is not None
            into[:, column] += factor * share * now.coupled_rates[c]


class SinglePoints:
    """How the columns move the points of several goals, written into all their slopes at once.

    An entry is a point and a joint that carries it; entries of ball joints come first, then those of hinges.
    """

    def __init__(self, layout: Layout, points: Sequence[tuple[PointSum, int, float]]) -> None:
        """`points` are single, each with the first row of its slope and what it is multiplied by."""
        self.layout = layout
        columns = layout.columns
        balls = {int(row): layout.first_ball + 3 * n for n, row in enumerate(layout.ball_rows)}
        hinges: dict[int, list[int]] = {}
        for column, row in enumerate(layout.hinge_rows.tolist()):
            hinges.setdefault(row, []).append(column)
        ball_entries: list[tuple[int, int, float, int]] = []  # point, row, factor, place in the slope
        hinge_entries: list[tuple[int, int, float, int]] = []
        axes: list[int] = []
        for point, first, factor in points:
            (number, joint), start = point.points[0], first * columns
            for i in layout.path(joint):
                row = layout.row[i]
                if row in balls:
                    ball_entries.append((number, row, factor, start + balls[row]))
                for column in hinges.get(row, ()):
                    hinge_entries.append((number, row, factor, start + column))
                    axes.append(column)
        entries = ball_entries + hinge_entries
        self.balls = len(ball_entries)
        self.points: Indices = np.array([number for number, _, _, _ in entries], dtype=np.intp)
        self.rows: Indices = np.array([row for _, row, _, _ in entries], dtype=np.intp)
        self.axes: Indices = np.array(axes, dtype=np.intp)
        factors = np.array([factor for _, _, factor, _ in entries]).reshape(-1, 1, 1)
        starts = np.array([start for _, _, _, start in entries], dtype=np.intp)[:, None]
        # d x arm, for d along each axis of model space: row and column of each entry that is not 0.
        places = starts[: self.balls] + np.array([1, 2, columns, columns + 2, 2 * columns, 2 * columns + 1])
        self.ball_places: Indices = places.reshape(-1)
        self.ball_factors: Array = factors[: self.balls] * _ARM_SIGNS
        self.hinge_places: Indices = (starts[self.balls :] + columns * np.arange(3)).reshape(-1)
        self.hinge_factors: Array = factors[self.balls :]
        self.shifted = [each for each in points if (layout.slides or layout.coupled) and each[0].has_shifts]

    def slope(self, now: Now, into: Array) -> None:
        """Write how the points move into the slope (m, k, B) of all goals, which is zero."""
        state = now.state
        arms = now.ends.take(self.points, 0)
        arms -= state.transforms[:, :, 3].take(self.rows, 0)
        flat = into.reshape(-1, state.size)
        if self.balls:
            moves = arms[: self.balls].take(_ARM_OF, 1)
            moves *= self.ball_factors
            flat[self.ball_places] = moves.reshape(-1, state.size)
        if len(self.axes):
            assert now.axes is not None
            moves = crossed(now.axes.take(self.axes, 0), arms[self.balls :])
            moves *= self.hinge_factors
            flat[self.hinge_places] = moves.reshape(-1, state.size)
        for point, first, factor in self.shifted:
            point.add_shifts(now, factor, into[first : first + 3])


class FrameTurns:
    """How the columns turn the frame of a joint."""

    def __init__(self, layout: Layout, joint: int) -> None:
        self.layout = layout
        self.row = layout.row[joint]
        turning = {layout.row[j] for j, pivot in layout.path(joint).items() if pivot == -1}
        self.balls = np.array([n for n, r in enumerate(layout.ball_rows.tolist()) if r in turning], np.intp)
        hinges = np.array([n for n, r in enumerate(layout.hinge_rows.tolist()) if r in turning], np.intp)
        self.hinges = as_slice(hinges) if len(hinges) else None
        self._turning = sorted(turning)

    @cached_property
    def path(self) -> Path:
        """The rotations that turn the frame."""
        return Path(self.layout, self._turning)

    def frame(self, now: Now) -> Array:
        """(3, 3, B)."""
        found: Array = now.state.transforms[self.row, :, :3]
        return found

    def slope(self, now: Now, per_turn: Array, into: Array) -> None:
        """Write (m, 3, B) `per_turn`, what a turn about each axis of model space does, for each column."""
        layout, size = self.layout, now.state.size
        if len(self.balls):
            balls = into[:, layout.first_ball : layout.first_slide].reshape(len(into), -1, 3, size)
            balls[:, self.balls] = per_turn[:, None]
        if self.hinges is not None:
            assert now.axes is not None
            into[:, self.hinges] = np.einsum("mib,nib->mnb", per_turn, now.axes[self.hinges])


class Path:
    """The rotating columns on the way from the root to a joint, in order: rotations by which a goal bends.

    To second order in rotations w_i, w_j of joints i above j a point at a moves by w_i x (w_j x a).
    """

    def __init__(self, layout: Layout, rows: Sequence[int]) -> None:
        self.layout, self.rows = layout, tuple(rows)
        balls = {row: n for n, row in enumerate(layout.ball_rows.tolist())}
        hinges: dict[int, list[int]] = {}
        for column, row in enumerate(layout.hinge_rows.tolist()):
            hinges.setdefault(row, []).append(column)
        entries: list[tuple[int, int, int]] = []  # place of the row, ball or -1, hinge or -1
        for at, row in enumerate(rows):
            if row in balls:
                entries.append((at, balls[row], -1))
            entries += [(at, -1, column) for column in hinges.get(row, ())]
        self.arms = np.array([at for at, _, _ in entries], dtype=np.intp)
        self.of_balls = np.array([e for e, (_, b, _) in enumerate(entries) if b != -1], dtype=np.intp)
        self.balls = np.array([b for _, b, _ in entries if b != -1], dtype=np.intp)
        self.of_hinges = np.array([e for e, (_, _, h) in enumerate(entries) if h != -1], dtype=np.intp)
        self.hinges = np.array([h for _, _, h in entries if h != -1], dtype=np.intp)

    @property
    def size(self) -> int:
        """E, how many rotations there are."""
        return len(self.arms)

    def rotations(self, now: Now, step: Array) -> Array:
        """(E, 3, B) the rotation vectors of a step, model axes."""
        layout, size = self.layout, step.shape[1]
        balls = step[layout.first_ball : layout.first_slide].reshape(-1, 3, size)[self.balls]
        if not len(self.hinges):
            return balls
        assert now.axes is not None
        found = np.empty((self.size, 3, size))
        found[self.of_balls] = balls
        found[self.of_hinges] = now.axes[self.hinges] * step[self.hinges, None]
        return found

    def add(self, now: Now, forces: Array, into: Array) -> None:
        """Add what (E, 3, B) means for each column."""
        layout, size = self.layout, into.shape[1]
        balls = into[layout.first_ball : layout.first_slide].reshape(-1, 3, size)
        if not len(self.hinges):
            balls[self.balls] += forces
            return
        assert now.axes is not None
        balls[self.balls] += forces[self.of_balls]
        into[self.hinges] += (now.axes[self.hinges] * forces[self.of_hinges]).sum(1)


class Bending(NamedTuple):
    """The second derivative of a number along the rotations w of a path.

    It is the sum of w_i . M_j w_j over pairs of entries i before j, and of w_j . M_j w_j / 2.

    Attributes:
        path: E rotations.
        matrices: (E, 3, 3, B), M of each entry; (1, 3, 3, B) where all are alike.
    """

    path: Path
    matrices: Array

    def add(self, now: Now, step: Array, into: Array) -> None:
        """Add what it makes of a step (k, B) to (k, B)."""
        turned = self.path.rotations(now, step)
        half = 0.5 * turned
        own = np.einsum("ejib,ejb->eib", self.matrices, turned)
        total = np.cumsum(own, axis=0)
        found = total[-1:] - total
        found += 0.5 * own
        sums = np.cumsum(turned, axis=0)
        sums -= half
        found += np.einsum("eijb,ejb->eib", self.matrices, sums)
        self.path.add(now, found, into)


def crossed(axes: Array, arms: Array) -> Array:
    """(E, 3, B) cross products of (E, 3, B)."""
    found: Array = axes.take(_NEXT, 1) * arms.take(_AFTER, 1)
    found -= axes.take(_AFTER, 1) * arms.take(_NEXT, 1)
    return found


def swinging(arms: Array, force: Array) -> Array:
    """(E, 3, 3, B): what a force (3, B) makes of the second derivative of points on arms (E, 3, B)."""
    found: Array = force[None, :, None] * arms[:, None]
    along = (arms * force).sum(1)
    for i in range(3):
        found[:, i, i] -= along
    return found
