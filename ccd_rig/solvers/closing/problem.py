"""All goals as one vector of residuals, and how it changes with the joints: for steps of all joints at once.

`Kinematics` holds what is the same for every pose: which joints matter, which of them may move and how, and
tables that say which joint moves which point. `State` is a pose in double precision. Residuals have no unit:
lengths are in parts of the reach of the longest chain, angles in radians times `LEVER`.

The unknowns ("columns") are the turns of the hinges, then three turns of each ball joint about the axes of
its own frame, then the shifts of the slides in parts of the reach. A joint inside an Euler box is three
hinges, one on the other, so that its limits are plain bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from mathutils import Quaternion, Vector

from ...errors import InvalidInput
from ...goals import Goal, reach_of, served
from ...limits.hinges import FULL_TURN, as_hinges, composed, hinge_turns
from ...limits.shapes import EulerBox, Limit, Slide, clamp
from ...maths.arrays import matrices, matrix, turned
from ...skeleton.coupled_offset import coupled_angle
from ...skeleton.joints import Coupling, Skeleton
from ...skeleton.pose import Pose, check_pose
from .coupled import CoupledRow
from .residuals import Block, Columns, block_of
from .state import Array, Residual, State

LEVER = 0.3
"""Part of the reach that stands for one radian: what an orientation counts beside a position."""
PRIORITY_STEP = 1e-6
"""What the square error of a goal counts beside one that is served before it."""


class Kinematics:
    """What is the same for every pose that is tried for some goals.

    Attributes:
        moved: indices of the joints that may move, parents before children.
        columns: how many unknowns there are.
        reach: length of the longest chain, the model's unit: what lengths are divided by.
        mobility: (columns,) 1 minus the stiffness of the column's joint.
        longest: (columns,) the longest step of each column, `Joint.max_step`.
        lower, upper: (columns,) bounds of hinges (radians) and slides (parts of the reach); infinite for
            ball joints.
        ball_limits: of each ball joint.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        goals: Sequence[Goal],
        limits: Sequence[Limit | None],
        movable: Sequence[int] | None = None,
    ) -> None:
        if not goals:
            raise InvalidInput("there is nothing to refine: give at least one goal")
        if len(limits) != len(skeleton):
            raise InvalidInput(
                f"give a limit or None for each of {len(skeleton)} joints, not {len(limits)} limits"
            )
        joints = skeleton.joints
        self.skeleton = skeleton
        self.limits = tuple(limits)
        serving = [served(goal, skeleton) for goal in goals]
        wanted = set(movable) if movable is not None else set().union(*serving)
        points: list[tuple[int, Vector]] = []
        frames: list[int] = []
        self.blocks: list[Block] = []
        self.reach = max((reach_of(skeleton, goal) for goal in goals), default=0.0) or 1.0
        ranks = sorted({goal.priority for goal in goals})
        for goal in goals:
            rank = ranks.index(goal.priority)
            factor = math.sqrt(goal.weight * max(PRIORITY_STEP**rank, 1e-12))
            self.blocks.append(block_of(goal, skeleton, points, frames, factor / self.reach, factor * LEVER))
        seen: set[int] = set()
        for tip in [*(i for i, _ in points), *frames]:
            seen.update(skeleton.chain(tip))
        self.rows = sorted(seen)
        self.moved = [i for i in self.rows if i in wanted and not joints[i].locked]
        turning = {i: as_hinges(limits[i]) for i in self.moved}
        # A joint has as many rows as hinges, its frame is that of the last; other joints have one.
        row: dict[int, int] = {}
        self._first_row: dict[int, int] = {}
        count = 0
        for i in self.rows:
            self._first_row[i] = count
            count += max(1, len(turning.get(i, ())))
            row[i] = count - 1
        row[-1] = count
        self._count = count
        live: set[int] = set()
        for i in self.rows:
            if i in self.moved or joints[i].parent in live:
                live.add(i)
        self._walk: list[tuple[int, int, bool]] = []
        self._live: list[tuple[int, int, bool]] = []
        for i in self.rows:
            first = self._first_row[i]
            steps = [(first, row[joints[i].parent], joints[i].inherit_rotation)]
            steps += [(at, at - 1, True) for at in range(first + 1, row[i] + 1)]
            self._walk += steps
            if i in live:
                self._live += steps
        self._turning = {i: hinges for i, hinges in turning.items() if hinges}
        self.hinges = [(i, hinge) for i, hinges in turning.items() for hinge in hinges]
        self.balls = [i for i, hinges in turning.items() if not hinges]
        self._ball_places = np.array(
            [at for at, i in enumerate(self.rows) if i in turning and not turning[i]], dtype=np.intp
        )
        self._offsets = np.array([joints[i].offset[:] for i in self.rows], dtype=float).reshape(-1, 3)
        self.ball_limits = [limits[i] if not isinstance(limits[i], EulerBox) else None for i in self.balls]
        self.slides = [(i, slide) for i in self.moved for slide in joints[i].slides]
        owners = [*(i for i, _ in self.hinges), *(i for i in self.balls for _ in range(3))]
        self.first_slide = len(owners)
        owners += [i for i, _ in self.slides]
        self.columns = len(owners)
        self._tables(row)
        self._coupled = [
            self._coupled_row(coupling, row, [i for i, _ in points])
            for coupling in skeleton.couplings
            if coupling.joint in seen
        ]
        self._masks(owners, row, points, frames, serving)

    def _tables(self, row: dict[int, int]) -> None:
        joints = self.skeleton.joints
        hinged, balls, slides = self.hinges, self.balls, self.slides
        self._joint_rows = np.array([row[i] for i in self.rows], dtype=np.intp)
        self._base_rows = np.array([self._first_row[i] for i in self.rows], dtype=np.intp)
        self._hinge_rows = np.array(
            [at for i in self._turning for at in range(self._first_row[i], row[i] + 1)], dtype=np.intp
        )
        self._ball_rows = np.array([row[i] for i in balls], dtype=np.intp)
        self._slide_rows = np.array([self._first_row[i] for i, _ in slides], dtype=np.intp)
        self._hinge_axes = np.array([hinge.axis for _, hinge in hinged], dtype=float).reshape(-1, 3)
        self._rests = np.tile(np.eye(3), (self._count, 1, 1))
        self._rests[self._base_rows] = np.stack([matrix(joints[i].rest_rotation) for i in self.rows])
        slide_axes = np.array([slide.axis for _, slide in slides], dtype=float).reshape(-1, 3)
        # In the parent's frame (also for a joint that does not inherit rotation, see `forward_kinematics`).
        self._slide_axes = (self._rests[self._slide_rows] @ slide_axes[:, :, None])[..., 0]
        self._axes = np.concatenate([self._hinge_axes, *[np.eye(3)] * len(balls), self._slide_axes])
        self._axis_rows = np.concatenate(
            [
                self._hinge_rows,
                np.repeat(self._ball_rows, 3),
                np.array([row[joints[i].parent] for i, _ in slides], dtype=np.intp),
            ]
        )
        self._head_rows = np.concatenate([self._hinge_rows, np.repeat(self._ball_rows, 3), self._slide_rows])
        owners = [*(i for i, _ in hinged), *(i for i in balls for _ in range(3)), *(i for i, _ in slides)]
        self.mobility = np.array([1.0 - joints[i].stiffness for i in owners])
        self.longest = np.array([joints[i].max_step for i in owners])
        self.longest[self.first_slide :] = math.inf
        self.lower, self.upper = np.full(self.columns, -math.inf), np.full(self.columns, math.inf)
        for column, (_, hinge) in enumerate(hinged):
            if hinge.upper - hinge.lower < FULL_TURN:
                self.lower[column], self.upper[column] = hinge.lower, hinge.upper
        for column, (_, slide) in enumerate(slides, start=self.first_slide):
            self.lower[column], self.upper[column] = slide.lower / self.reach, slide.upper / self.reach

    def _coupled_row(self, coupling: Coupling, row: dict[int, int], tips: Sequence[int]) -> CoupledRow:
        joints, driver = self.skeleton.joints, coupling.driver
        at, column, sign = self._first_row[coupling.joint], -1, 1.0
        owners = [i for i, _ in self.hinges]
        if owners.count(driver) == 1:
            column = owners.index(driver)
            own = self.hinges[column][1].axis
            sign = math.copysign(1.0, math.fsum(a * b for a, b in zip(own, coupling.hinge.axis, strict=True)))
        axis = self._rests[at] @ np.array(coupling.offset.axis)
        carried = [float(coupling.joint in self.skeleton.chain(tip)) for tip in tips]
        return CoupledRow(
            coupling, at, row[joints[coupling.joint].parent], column, sign, axis, np.array(carried)
        )

    def _masks(
        self,
        owners: Sequence[int],
        row: dict[int, int],
        points: Sequence[tuple[int, Vector]],
        frames: Sequence[int],
        serving: Sequence[Sequence[int]],
    ) -> None:
        """Which column moves which point and turns which frame, and about which end it swings a point."""
        joints = self.skeleton.joints
        self._point_rows = np.array([row[i] for i, _ in points], dtype=np.intp)
        ends = [(*at[:], 1.0) for _, at in points]
        self._point_ends: Array = np.array(ends, dtype=float).reshape(-1, 4, 1)
        self.frame_rows = [row[i] for i in frames]
        carries = np.zeros((len(points), self.columns))
        # A joint that does not inherit rotation is shifted by turns below it, not turned: what such a turn
        # swings is its head. `anchors` holds the point itself, or (after the points) the row of that joint.
        anchors = np.repeat(np.arange(len(points), dtype=np.intp)[:, None], self.columns, axis=1)
        for p, (tip, _) in enumerate(points):
            for column, owner in enumerate(owners):
                found, pivot = _way(joints, tip, owner)
                carries[p, column] = float(found)
                if pivot != -1:
                    anchors[p, column] = len(points) + row[pivot]
        self._anchors = anchors if (anchors != np.arange(len(points))[:, None]).any() else None
        self._carries = carries[:, :, None]
        turns = np.zeros((len(frames), self.columns))
        for f, tip in enumerate(frames):
            for column, owner in enumerate(owners[: self.first_slide]):
                found, pivot = _way(joints, tip, owner)
                turns[f, column] = float(found and pivot == -1)
        self._turns = turns[:, :, None]
        serves = np.zeros((sum(block.rows for block in self.blocks), self.columns))
        at = 0
        self._places: list[slice] = []
        for block, served_joints in zip(self.blocks, serving, strict=True):
            inside = set(served_joints)
            self._places.append(slice(at, at + block.rows))
            serves[at : at + block.rows] = [float(owner in inside) for owner in owners]
            at += block.rows
        self.rows_of_residual = at
        self.serves = None if serves.all() else serves

    # -- poses and states ------------------------------------------------------------------------------

    def clamped(self, pose: Pose) -> Pose:
        """`pose` with the joints that may move inside their limits; `pose` itself where they are."""
        check_pose(self.skeleton, pose)
        rotations = list(pose.rotations)
        translations = list(pose.translations)
        changed = False
        for i in self.moved:
            limit = self.limits[i]
            if limit is not None:
                rotations[i] = clamp(limit, rotations[i])
                changed = changed or rotations[i] is not pose.rotations[i]
        for i, slide in self.slides:
            along, inside = _along(pose, i, slide)
            if along != inside:
                translations[i] = translations[i] + (inside - along) * Vector(slide.axis)
                changed = True
        return Pose(tuple(rotations), tuple(translations)) if changed else pose

    def take(self, pose: Pose) -> State:
        """The state of a pose whose joints are inside their limits."""
        # Slices of mathutils' values are tuples: numpy reads them several times as fast.
        rotations = np.array([pose.rotations[i][:] for i in self.rows], dtype=float).reshape(-1, 4)
        rotations /= np.sqrt((rotations * rotations).sum(1, keepdims=True))
        turns = np.empty(len(self.hinges))
        column = 0
        for i, hinges in self._turning.items():
            turns[column : column + len(hinges)] = hinge_turns(hinges, pose.rotations[i])
            column += len(hinges)
        local = np.zeros((self._count, 4, 4))
        local[self._joint_rows, :3, :3] = self._rests[self._joint_rows] @ matrices(rotations)
        local[:, 3, 3] = 1.0
        if len(self.hinges):
            local[self._hinge_rows, :3, :3] = self._rests[self._hinge_rows] @ self._hinge_matrices(turns)
        translations = np.array([pose.translations[i][:] for i in self.rows], dtype=float).reshape(-1, 3, 1)
        local[self._base_rows, :3, 3] = self._offsets + (self._rests[self._base_rows] @ translations)[..., 0]
        for each in self._coupled:
            angle = coupled_angle(each.coupling.hinge, pose.rotations[each.coupling.driver])
            local[each.row, :3, 3] += each.shift(turns, angle)
        slides = np.array([_along(pose, i, slide)[1] for i, slide in self.slides], dtype=float)
        frames = np.empty((self._count + 1, 4, 4))
        frames[-1] = np.eye(4)
        _walk(self._walk, local, frames)
        return State(turns, rotations[self._ball_places], slides, local, frames)

    def _hinge_matrices(self, turns: Array) -> Array:
        half = 0.5 * turns
        quaternions = np.empty((len(turns), 4))
        quaternions[:, 0] = np.cos(half)
        quaternions[:, 1:] = np.sin(half)[:, None] * self._hinge_axes
        return matrices(quaternions)

    def moved_by(self, state: State, step: Array, rotations: Array | None = None) -> State:
        """The state after a step (columns,); `rotations` of the ball joints if they are known already."""
        balls, hinged = len(self.balls), len(self.hinges)
        local = state.local.copy()
        turns, slides = state.turns, state.slides
        if hinged:
            turns = turns + step[:hinged]
            local[self._hinge_rows, :3, :3] = self._rests[self._hinge_rows] @ self._hinge_matrices(turns)
        if balls:
            if rotations is None:
                rotations = self.turned_balls(state, step)
            local[self._ball_rows, :3, :3] = self._rests[self._ball_rows] @ matrices(rotations)
        else:
            rotations = state.rotations
        if len(self.slides):
            slides = slides + self.reach * step[self.first_slide :]
            # A joint may have several slides: each of them counts.
            np.add.at(local[:, :3, 3], self._slide_rows, (slides - state.slides)[:, None] * self._slide_axes)
        for each in self._coupled:
            if each.column != -1:
                local[each.row, :3, 3] += each.shift(turns) - each.shift(state.turns)
        frames = state.frames.copy()
        _walk(self._live, local, frames)
        return State(turns, rotations, slides, local, frames)

    def turned_balls(self, state: State, step: Array) -> Array:
        """The ball joints' rotations (N, 4) after a step, limits not applied."""
        return turned(state.rotations, step[len(self.hinges) : self.first_slide].reshape(-1, 3))

    def position(self, state: State) -> Array:
        """(columns,) the present values of hinges and slides, as `lower` and `upper` bound them; others 0."""
        found = np.zeros(self.columns)
        found[: len(self.hinges)] = state.turns
        found[self.first_slide :] = state.slides / self.reach
        return found

    def pose(self, start: Pose, before: State, state: State) -> Pose:
        """`start`, whose state is `before`, with the moved joints as in `state`; what did not move keeps its
        very bits."""
        rotations, translations = list(start.rotations), list(start.translations)
        turns, turns_before, column = state.turns.tolist(), before.turns.tolist(), 0
        for i, hinges in self._turning.items():
            end = column + len(hinges)
            if turns[column:end] != turns_before[column:end]:
                rotations[i] = composed(hinges, turns[column:end])
            column = end
        balls = zip(self.balls, state.rotations.tolist(), before.rotations.tolist(), strict=True)
        for i, rotation, rotation_before in balls:
            if rotation != rotation_before:
                rotations[i] = Quaternion(rotation)
        for i in self.moved:
            limit = self.limits[i]
            if limit is not None:
                rotations[i] = clamp(limit, rotations[i])
            rotations[i] = rotations[i].freeze()
        for column, (i, slide) in enumerate(self.slides):
            shift = float(state.slides[column] - before.slides[column])
            if shift != 0.0:
                translations[i] = (translations[i] + shift * Vector(slide.axis)).freeze()
        return Pose.trusted(tuple(rotations), tuple(translations))

    # -- residuals -------------------------------------------------------------------------------------

    def residual(self, state: State) -> Residual:
        """How far off the goals are."""
        ends = (state.frames[self._point_rows][:, :3] @ self._point_ends)[..., 0]
        values = np.empty(self.rows_of_residual)
        misses = []
        for block, place in zip(self.blocks, self._places, strict=True):
            found, distance, angle = block.measure(ends, state.frames, self.frame_rows)
            values[place] = found
            misses.append((distance, angle))
        return Residual(state, ends, values, float(values @ values), tuple(misses))

    def jacobian(self, now: Residual) -> Array:
        """(residuals, columns) how the residuals change with each unknown."""
        frames = now.state.frames
        axes = (frames[self._axis_rows][:, :3, :3] @ self._axes[:, :, None])[..., 0]
        heads = frames[self._head_rows][:, :3, 3]
        ends = now.ends
        if self._anchors is None:
            arms = ends[:, None, :] - heads
        else:
            arms = np.concatenate([ends, frames[:-1, :3, 3]])[self._anchors] - heads
        moves = np.empty(arms.shape)
        ux, uy, uz = axes[:, 0], axes[:, 1], axes[:, 2]
        ax, ay, az = arms[..., 0], arms[..., 1], arms[..., 2]
        moves[..., 0] = uy * az - uz * ay
        moves[..., 1] = uz * ax - ux * az
        moves[..., 2] = ux * ay - uy * ax
        if self.first_slide < self.columns:
            moves[:, self.first_slide :] = self.reach * axes[self.first_slide :]
        moves *= self._carries
        for each in self._coupled:
            if each.column != -1:
                moves[:, each.column] += each.carried[:, None] * each.rate(now.state)
        columns = Columns(ends, moves, axes * self._turns)
        found = np.empty((self.rows_of_residual, self.columns))
        for block, place in zip(self.blocks, self._places, strict=True):
            found[place] = block.slope(columns, frames, self.frame_rows)
        return found


def _walk(steps: Sequence[tuple[int, int, bool]], local: Array, frames: Array) -> None:
    """Frames in model space from frames in the parents' frames; a root's parent is the last frame."""
    for row, parent, inherits in steps:
        if inherits:
            np.dot(frames[parent], local[row], out=frames[row])
        else:
            frames[row] = local[row]
            frames[row, :3, 3] = frames[parent, :3, :3] @ local[row, :3, 3] + frames[parent, :3, 3]


def _along(pose: Pose, i: int, slide: Slide) -> tuple[float, float]:
    """The shift of joint `i` along a slide, and the nearest one inside its range."""
    along = math.fsum(a * b for a, b in zip(slide.axis, pose.translations[i][:], strict=True))
    return along, min(max(along, slide.lower), slide.upper)


def _way(joints: Sequence[object], tip: int, owner: int) -> tuple[bool, int]:
    """Whether `owner` carries `tip`, and the first joint after it that does not inherit rotation, or -1."""
    pivot, i = -1, tip
    while i != -1 and i != owner:
        if not joints[i].inherit_rotation:  # type: ignore[attr-defined]
            pivot = i
        i = joints[i].parent  # type: ignore[attr-defined]
    return i == owner, pivot
