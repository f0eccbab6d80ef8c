"""The rows and columns of the closing phase: which joints matter, which of them move, inside which bounds.

Made once for all poses that are tried. Rows are frames: a joint inside an Euler box has three, one for each
of its hinges, other joints have one. The columns are the unknowns, see `problem`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...limits.hinges import FULL_TURN, as_hinges
from ...limits.shapes import EulerBox, Limit
from ...maths.arrays import matrices, matrix, turned
from ...skeleton.joints import Coupling, Skeleton
from .coupled import CoupledRow
from .state import Array, State


class Layout:
    """What is the same for every pose, whatever its goals ask for.

    Attributes:
        skeleton, limits: the joints, and what each may do.
        reach: length of the longest chain, the model's unit: what lengths are divided by.
        joints: indices of the joints that matter, parents before children.
        moved: those that may move.
        first_row, row: first and last row of each joint that matters; the last one is its frame.
            `row[-1]`, of model space, is `count`.
        count: how many rows there are.
        walk, live: (row, parent's row, whether it inherits rotation) of all rows, and of those that change.
        turning: hinges of each joint that has some, the last to turn first; `hinges` one after the other.
        balls, ball_limits: the ball joints; the limit of each.
        slides: joint and slide of each slide.
        owners: (columns,) joint of each column. columns: how many unknowns there are.
        first_slide: the first column of a slide.
        mobility: (columns,) 1 minus the stiffness of the column's joint.
        longest: (columns,) the longest step of each column, `Joint.max_step`.
        lower, upper: (columns,) bounds of hinges (radians) and slides (parts of the reach); infinite for
            ball joints.
        joint_rows, base_rows: last and first row of each joint.
        hinge_rows, ball_rows, slide_rows: rows of hinges, ball joints and slides.
        ball_places: of each ball joint, its place in `joints`.
        offsets: (joints, 3). rests: (rows, 3, 3) rest rotations in the parents' frames.
        hinge_axes, slide_axes: (.., 3) in the frames of `hinge_rows`, and in those of the parents.
        axes, axis_rows, head_rows: of each column its axis, the row in whose frame that is, and the row whose
            head it turns about.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        limits: Sequence[Limit | None],
        reach: float,
        tips: Sequence[int],
        wanted: set[int],
    ) -> None:
        """Of the chains that end at the joints `tips`; of them those in `wanted` move, if not locked."""
        joints = skeleton.joints
        self.skeleton, self.limits, self.reach = skeleton, tuple(limits), reach
        self.joints = sorted({i for tip in tips for i in skeleton.chain(tip)})
        self.moved = [i for i in self.joints if i in wanted and not joints[i].locked]
        turning = {i: as_hinges(limits[i]) for i in self.moved}
        self.turning = {i: hinges for i, hinges in turning.items() if hinges}
        self.hinges = [(i, hinge) for i, hinges in turning.items() for hinge in hinges]
        self.balls = [i for i, hinges in turning.items() if not hinges]
        self.ball_limits = [limits[i] if not isinstance(limits[i], EulerBox) else None for i in self.balls]
        self.slides = [(i, slide) for i in self.moved for slide in joints[i].slides]
        self.owners = [*(i for i, _ in self.hinges), *(i for i in self.balls for _ in range(3))]
        self.first_slide = len(self.owners)
        self.owners += [i for i, _ in self.slides]
        self.columns = len(self.owners)
        self._set_rows()
        self._set_tables()
        self._set_axes()
        self._set_bounds()

    def _set_rows(self) -> None:
        joints = self.skeleton.joints
        # A joint has as many rows as hinges, its frame is that of the last; other joints have one.
        self.row: dict[int, int] = {}
        self.first_row: dict[int, int] = {}
        count = 0
        for i in self.joints:
            self.first_row[i] = count
            count += max(1, len(self.turning.get(i, ())))
            self.row[i] = count - 1
        self.row[-1] = count
        self.count = count
        live: set[int] = set()
        for i in self.joints:
            if i in self.moved or joints[i].parent in live:
                live.add(i)
        self.walk: list[tuple[int, int, bool]] = []
        self.live: list[tuple[int, int, bool]] = []
        for i in self.joints:
            first = self.first_row[i]
            steps = [(first, self.row[joints[i].parent], joints[i].inherit_rotation)]
            steps += [(at, at - 1, True) for at in range(first + 1, self.row[i] + 1)]
            self.walk += steps
            if i in live:
                self.live += steps

    def _set_tables(self) -> None:
        joints, row = self.skeleton.joints, self.row
        balls = set(self.balls)
        self.joint_rows = np.array([row[i] for i in self.joints], dtype=np.intp)
        self.base_rows = np.array([self.first_row[i] for i in self.joints], dtype=np.intp)
        self.hinge_rows = np.array(
            [at for i in self.turning for at in range(self.first_row[i], row[i] + 1)], dtype=np.intp
        )
        self.ball_rows = np.array([row[i] for i in self.balls], dtype=np.intp)
        self.ball_places = np.array([at for at, i in enumerate(self.joints) if i in balls], dtype=np.intp)
        self.slide_rows = np.array([self.first_row[i] for i, _ in self.slides], dtype=np.intp)
        self.offsets = np.array([joints[i].offset[:] for i in self.joints], dtype=float).reshape(-1, 3)
        self.rests = np.tile(np.eye(3), (self.count, 1, 1))
        self.rests[self.base_rows] = np.stack([matrix(joints[i].rest_rotation) for i in self.joints])

    def _set_axes(self) -> None:
        joints = self.skeleton.joints
        self.hinge_axes = np.array([hinge.axis for _, hinge in self.hinges], dtype=float).reshape(-1, 3)
        slide_axes = np.array([slide.axis for _, slide in self.slides], dtype=float).reshape(-1, 3)
        # In the parent's frame (also for a joint that does not inherit rotation, see `forward_kinematics`).
        self.slide_axes = (self.rests[self.slide_rows] @ slide_axes[:, :, None])[..., 0]
        self.axes = np.concatenate([self.hinge_axes, *[np.eye(3)] * len(self.balls), self.slide_axes])
        parents = np.array([self.row[joints[i].parent] for i, _ in self.slides], dtype=np.intp)
        self.axis_rows = np.concatenate([self.hinge_rows, np.repeat(self.ball_rows, 3), parents])
        self.head_rows = np.concatenate([self.hinge_rows, np.repeat(self.ball_rows, 3), self.slide_rows])

    def _set_bounds(self) -> None:
        joints = self.skeleton.joints
        self.mobility = np.array([1.0 - joints[i].stiffness for i in self.owners])
        self.longest = np.array([joints[i].max_step for i in self.owners])
        self.longest[self.first_slide :] = math.inf
        self.lower, self.upper = np.full(self.columns, -math.inf), np.full(self.columns, math.inf)
        for column, (_, hinge) in enumerate(self.hinges):
            if hinge.upper - hinge.lower < FULL_TURN:
                self.lower[column], self.upper[column] = hinge.lower, hinge.upper
        for column, (_, slide) in enumerate(self.slides, start=self.first_slide):
            self.lower[column], self.upper[column] = slide.lower / self.reach, slide.upper / self.reach

    def coupled_rows(self, tips: Sequence[int]) -> list[CoupledRow]:
        """The coupled offsets of the joints that matter; `tips`: joint of each point."""
        couplings = self.skeleton.couplings
        return [self._coupled_row(each, tips) for each in couplings if each.joint in self.first_row]

    def _coupled_row(self, coupling: Coupling, tips: Sequence[int]) -> CoupledRow:
        joints, driver = self.skeleton.joints, coupling.driver
        at, column, sign = self.first_row[coupling.joint], -1, 1.0
        owners = [i for i, _ in self.hinges]
        if owners.count(driver) == 1:
            column = owners.index(driver)
            own = self.hinges[column][1].axis
            sign = math.copysign(1.0, math.fsum(a * b for a, b in zip(own, coupling.hinge.axis, strict=True)))
        axis = self.rests[at] @ np.array(coupling.offset.axis)
        carried = [float(coupling.joint in self.skeleton.chain(tip)) for tip in tips]
        parent = self.row[joints[coupling.joint].parent]
        return CoupledRow(coupling, at, parent, column, sign, axis, np.array(carried))

    def turned_balls(self, state: State, step: Array) -> Array:
        """The ball joints' rotations (N, 4) after a step, limits not applied."""
        return turned(state.rotations, step[len(self.hinges) : self.first_slide].reshape(-1, 3))

    def position(self, state: State) -> Array:
        """(columns,) the present values of hinges and slides, as `lower` and `upper` bound them; others 0."""
        found = np.zeros(self.columns)
        found[: len(self.hinges)] = state.turns
        found[self.first_slide :] = state.slides / self.reach
        return found

    def hinge_frames(self, turns: Array) -> Array:
        """(hinges, 3, 3) frames of the hinges' rows in their parents' frames, turned by so many radians."""
        half = 0.5 * turns
        quaternions = np.empty((len(turns), 4))
        quaternions[:, 0] = np.cos(half)
        quaternions[:, 1:] = np.sin(half)[:, None] * self.hinge_axes
        return self.rests[self.hinge_rows] @ matrices(quaternions)
