"""How the columns of a layout move points and turn frames, over all poses at once.

In the shapes below m counts the numbers of one residual, k the columns, B the poses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...maths.batch import Array, Indices, as_slice, cross
from .bending import Bending, Composite, Now, Path, swinging
from .layout import Layout

# Which component of an arm, with which sign, stands in each entry of d x arm that is not 0.
_ARM_OF: Indices = np.array([2, 1, 2, 0, 1, 0], dtype=np.intp)
_ARM_SIGNS: Array = np.array([[1.0], [-1.0], [-1.0], [1.0], [1.0], [-1.0]])


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
        """The rotations that swing it, where each of them is above or below every other."""
        layout, rows = self.layout, self.rows.tolist()
        of_heads, _, of_ends, _ = self._lever_tables
        # Where ways part no rotation is above all others.
        chain = {layout.row[j] for j in layout.path(max(joint for _, joint in self.points))}
        swung = chain.issuperset(rows) and bool(of_heads.any() or of_ends.any())
        return Path(layout, rows) if swung else None

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
    def _lever_sums(self) -> list[tuple[int, list[int], list[tuple[int, float]]]]:
        """How `levers` adds up, the last row first: a row's place, those whose sums are part of its own, and
        what else counts: numbers among all heads and points, with weights."""
        of_heads, _, of_ends, _ = self._lever_tables
        rows, tables = self.rows.tolist(), np.concatenate((of_heads, of_ends), axis=1).tolist()
        weights = [{k: weight for k, weight in enumerate(table) if weight} for table in tables]
        below: list[list[int]] = [[] for _ in rows]
        for at, row in enumerate(rows):
            above = self.layout.parents[row]
            while above != -1 and above not in rows:
                above = self.layout.parents[above]
            if above != -1:
                below[rows.index(above)].append(at)
        found = []
        for at in reversed(range(len(rows))):
            left, parts = weights[at].copy(), []
            for other in below[at]:
                if weights[other].items() <= left.items():
                    parts.append(other)
                    left = {k: weight for k, weight in left.items() if k not in weights[other]}
            found.append((at, parts, list(left.items())))
        return found

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
        if size == 1:  # quicker with BLAS, which rounds by place where there are several poses
            found = (of_heads @ heads.reshape(len(heads), -1)).reshape(-1, 3, size)
            if len(numbers):
                found += (of_ends @ now.ends[numbers].reshape(len(numbers), -1)).reshape(-1, 3, size)
        else:
            found, values = np.zeros((len(self.rows), 3, size)), [*heads, *now.ends[numbers]]
            for at, parts, own in self._lever_sums:
                into = found[at]
                for k, weight in own:
                    into += weight * values[k]
                for part in parts:
                    into += found[part]
        found -= totals[:, None, None] * heads[self.rows]
        return np.asarray(found)

    def bending(self, now: Now, force: Array) -> list[Bending | Composite]:
        """The second derivative of force.sum, with a force (3, B)."""
        if self.path is None:
            return []
        return [Bending(self.path, swinging(self.levers(now)[self.path.arms], force))]

    def slope(self, now: Now, factor: float | Array, into: Array) -> None:
        """Write how the sum moves, times `factor`, a number or (B or 1,), into (3, k, B), which is zero."""
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
            moves = cross(now.axes.take(hinges, 0), levers.take(hinge_at, 0), axis=1)
            into[:, hinges] = moves.transpose(1, 0, 2)
        self.add_shifts(now, factor, into)

    @property
    def has_shifts(self) -> bool:
        """Whether slides or coupled offsets move it."""
        slides, _, coupled = self._shift_tables
        return len(slides) > 0 or len(coupled) > 0

    def add_shifts(self, now: Now, factor: float | Array, into: Array) -> None:
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
        """`points` are single, each with the first row of its slope and the residual of a length of the
        reach."""
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
            moves *= self.ball_factors / now.reach
            flat[self.ball_places] = moves.reshape(-1, state.size)
        if len(self.axes):
            assert now.axes is not None
            moves = cross(now.axes.take(self.axes, 0), arms[self.balls :], axis=1)
            moves *= self.hinge_factors / now.reach
            flat[self.hinge_places] = moves.reshape(-1, state.size)
        for point, first, factor in self.shifted:
            point.add_shifts(now, factor / now.reach, into[first : first + 3])


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

    def bending(self, axis: Array, force: Array) -> list[Bending | Composite]:
        """The second derivative of force.axis, both (3, B), for an axis that the frame carries."""
        return [Bending(self.path, swinging(axis[None], force))] if self.path.size else []

    def slope(self, now: Now, per_turn: Array, into: Array) -> None:
        """Write (m, 3, B) `per_turn`, what a turn about each axis of model space does, for each column."""
        layout, size = self.layout, now.state.size
        if len(self.balls):
            balls = into[:, layout.first_ball : layout.first_slide].reshape(len(into), -1, 3, size)
            balls[:, self.balls] = per_turn[:, None]
        if self.hinges is not None:
            assert now.axes is not None
            into[:, self.hinges] = np.einsum("mib,nib->mnb", per_turn, now.axes[self.hinges])
