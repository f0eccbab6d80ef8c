"""How a goal bends: the second derivatives of its residual, which the way back to the reference follows.

In the shapes below k counts the columns, B the poses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...maths.batch import Array, Indices, Mask, select, select_given
from .layout import Layout
from .state import State


class Now(NamedTuple):
    """A state and what the residuals read of it.

    Attributes:
        state: where.
        ends: (P, 3, B) the goals' points in model space.
        reach: (B or 1,) what lengths are divided by, model units.
        axes: (h, 3, B) axes of the hinge columns, model space; None until slopes are asked for.
        slide_axes: (s, 3, B) of the slide columns, model space, times the reach; None as above.
        coupled_rates: (c, 3, B) of the coupled offsets, model units per radian; None where there are none.
        targets: of each goal, as `Given` has them; none until slopes are asked for.
    """

    state: State
    ends: Array
    reach: Array
    axes: Array | None = None
    slide_axes: Array | None = None
    coupled_rates: Array | None = None
    targets: tuple[Array, ...] = ()

    def at(self, some: Mask | Indices) -> Now:
        """Some of the poses."""
        return Now(
            self.state.at(some),
            select(self.ends, some),
            select_given(self.reach, some),
            None if self.axes is None else select(self.axes, some),
            None if self.slide_axes is None else select(self.slide_axes, some),
            None if self.coupled_rates is None else select(self.coupled_rates, some),
            tuple(each if each.shape[-1] == 1 else select(each, some) for each in self.targets),
        )


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


class Composite(NamedTuple):
    """The second derivative of a function of a few numbers, without that of the numbers themselves.

    Attributes:
        slopes: (p, k, B) how the columns move the numbers.
        matrices: (p, p, B) the second derivative by the numbers.
    """

    slopes: Array
    matrices: Array

    def add(self, now: Now, step: Array, into: Array) -> None:
        """Add what it makes of a step (k, B) to (k, B)."""
        moved = np.einsum("pkb,kb->pb", self.slopes, step)
        into += np.einsum("pkb,pb->kb", self.slopes, np.einsum("pqb,qb->pb", self.matrices, moved))


def swinging(arms: Array, force: Array) -> Array:
    """(E, 3, 3, B): what a force (3, B) makes of the second derivative of points on arms (E, 3, B)."""
    found: Array = force[None, :, None] * arms[:, None]
    along = (arms * force).sum(1)
    for i in range(3):
        found[:, i, i] -= along
    return found


def along_paths(bendings: Iterable[Bending | Composite]) -> list[Bending | Composite]:
    """Second derivatives, with those along the same paths as one."""
    found: dict[tuple[int, ...], Bending] = {}
    others: list[Bending | Composite] = []
    for bending in bendings:
        if isinstance(bending, Composite):
            others.append(bending)
            continue
        rows = bending.path.rows
        other = found.get(rows)
        found[rows] = Bending(
            bending.path, bending.matrices if other is None else other.matrices + bending.matrices
        )
    return [*found.values(), *others]
