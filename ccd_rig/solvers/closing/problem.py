"""All goals as one vector of residuals, and how it changes with the joints: for steps of all joints at once.

`Kinematics` holds what is the same for every pose: in its `Layout` which joints matter, which of them may
move and how, in its `Influence` which column moves which point. `State` is a pose in double precision.
Residuals have no unit: lengths are in parts of the reach of the longest chain, angles in radians times
`LEVER`.

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
from ...limits.hinges import composed, hinge_turns
from ...limits.shapes import Limit, Slide, clamp
from ...maths.arrays import matrices
from ...skeleton.coupled_offset import coupled_angle
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose, check_pose
from .influence import Influence, serves_of
from .layout import Layout
from .residuals import Block, Columns, block_of
from .state import Array, Residual, State

LEVER = 0.3
"""Part of the reach that stands for one radian: what an orientation counts beside a position."""
PRIORITY_STEP = 1e-6
"""What the square error of a goal counts beside one that is served before it."""


class Kinematics:
    """What is the same for every pose that is tried for some goals.

    Attributes:
        layout: the joints that matter and the unknowns.
        moved: indices of the joints that may move, parents before children.
        columns: how many unknowns there are.
        reach: length of the longest chain, the model's unit: what lengths are divided by.
        blocks: the residual of each goal.
        serves: (residuals, columns) 1 where a column may move for a residual; None where all may.
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
        tips = [i for i, _ in points]
        self.layout = layout = Layout(skeleton, limits, self.reach, [*tips, *frames], wanted)
        self.moved, self.columns = layout.moved, layout.columns
        self._coupled = layout.coupled_rows(tips)
        self._influence = Influence(layout, tips, frames)
        self._point_rows = np.array([layout.row[i] for i in tips], dtype=np.intp)
        ends = [(*at[:], 1.0) for _, at in points]
        self._point_ends: Array = np.array(ends, dtype=float).reshape(-1, 4, 1)
        self._frame_rows = [layout.row[i] for i in frames]
        rows = [block.rows for block in self.blocks]
        self._rows = sum(rows)
        self._places = [slice(sum(rows[:k]), sum(rows[: k + 1])) for k in range(len(rows))]
        self.serves = serves_of(layout, rows, serving)

    # -- poses and states ------------------------------------------------------------------------------

    def clamped(self, pose: Pose) -> Pose:
        """`pose` with the joints that may move inside their limits; `pose` itself where they are."""
        layout = self.layout
        check_pose(layout.skeleton, pose)
        rotations = list(pose.rotations)
        translations = list(pose.translations)
        changed = False
        for i in layout.moved:
            limit = layout.limits[i]
            if limit is not None:
                rotations[i] = clamp(limit, rotations[i])
                changed = changed or rotations[i] is not pose.rotations[i]
        for i, slide in layout.slides:
            along, inside = _along(pose, i, slide)
            if along != inside:
                translations[i] = translations[i] + (inside - along) * Vector(slide.axis)
                changed = True
        return Pose(tuple(rotations), tuple(translations)) if changed else pose

    def take(self, pose: Pose) -> State:
        """The state of a pose whose joints are inside their limits."""
        layout = self.layout
        # Slices of mathutils' values are tuples: numpy reads them several times as fast.
        rotations = np.array([pose.rotations[i][:] for i in layout.joints], dtype=float).reshape(-1, 4)
        rotations /= np.sqrt((rotations * rotations).sum(1, keepdims=True))
        turns = np.empty(len(layout.hinges))
        column = 0
        for i, hinges in layout.turning.items():
            turns[column : column + len(hinges)] = hinge_turns(hinges, pose.rotations[i])
            column += len(hinges)
        local = np.zeros((layout.count, 4, 4))
        local[layout.joint_rows, :3, :3] = layout.rests[layout.joint_rows] @ matrices(rotations)
        local[:, 3, 3] = 1.0
        if len(layout.hinges):
            local[layout.hinge_rows, :3, :3] = layout.hinge_frames(turns)
        translations = np.array([pose.translations[i][:] for i in layout.joints], dtype=float)
        shifts = (layout.rests[layout.base_rows] @ translations.reshape(-1, 3, 1))[..., 0]
        local[layout.base_rows, :3, 3] = layout.offsets + shifts
        for each in self._coupled:
            angle = coupled_angle(each.coupling.hinge, pose.rotations[each.coupling.driver])
            local[each.row, :3, 3] += each.shift(turns, angle)
        slides = np.array([_along(pose, i, slide)[1] for i, slide in layout.slides], dtype=float)
        frames = np.empty((layout.count + 1, 4, 4))
        frames[-1] = np.eye(4)
        _walk(layout.walk, local, frames)
        return State(turns, rotations[layout.ball_places], slides, local, frames)

    def moved_by(self, state: State, step: Array, rotations: Array | None = None) -> State:
        """The state after a step (columns,); `rotations` of the ball joints if they are known already."""
        layout = self.layout
        balls, hinged = len(layout.balls), len(layout.hinges)
        local = state.local.copy()
        turns, slides = state.turns, state.slides
        if hinged:
            turns = turns + step[:hinged]
            local[layout.hinge_rows, :3, :3] = layout.hinge_frames(turns)
        if balls:
            if rotations is None:
                rotations = layout.turned_balls(state, step)
            local[layout.ball_rows, :3, :3] = layout.rests[layout.ball_rows] @ matrices(rotations)
        else:
            rotations = state.rotations
        if len(layout.slides):
            slides = slides + layout.reach * step[layout.first_slide :]
            # A joint may have several slides: each of them counts.
            shifts = (slides - state.slides)[:, None] * layout.slide_axes
            np.add.at(local[:, :3, 3], layout.slide_rows, shifts)
        for each in self._coupled:
            if each.column != -1:
                local[each.row, :3, 3] += each.shift(turns) - each.shift(state.turns)
        frames = state.frames.copy()
        _walk(layout.live, local, frames)
        return State(turns, rotations, slides, local, frames)

    def pose(self, start: Pose, before: State, state: State) -> Pose:
        """`start`, whose state is `before`, with the moved joints as in `state`; what did not move keeps its
        very bits."""
        layout = self.layout
        rotations, translations = list(start.rotations), list(start.translations)
        turns, turns_before, column = state.turns.tolist(), before.turns.tolist(), 0
        for i, hinges in layout.turning.items():
            end = column + len(hinges)
            if turns[column:end] != turns_before[column:end]:
                rotations[i] = composed(hinges, turns[column:end])
            column = end
        balls = zip(layout.balls, state.rotations.tolist(), before.rotations.tolist(), strict=True)
        for i, rotation, rotation_before in balls:
            if rotation != rotation_before:
                rotations[i] = Quaternion(rotation)
        for i in layout.moved:
            limit = layout.limits[i]
            if limit is not None:
                rotations[i] = clamp(limit, rotations[i])
            rotations[i] = rotations[i].freeze()
        for column, (i, slide) in enumerate(layout.slides):
            shift = float(state.slides[column] - before.slides[column])
            if shift != 0.0:
                translations[i] = (translations[i] + shift * Vector(slide.axis)).freeze()
        return Pose.trusted(tuple(rotations), tuple(translations))

    # -- residuals -------------------------------------------------------------------------------------

    def residual(self, state: State) -> Residual:
        """How far off the goals are."""
        ends = (state.frames[self._point_rows][:, :3] @ self._point_ends)[..., 0]
        values = np.empty(self._rows)
        misses = []
        for block, place in zip(self.blocks, self._places, strict=True):
            found, distance, angle = block.measure(ends, state.frames, self._frame_rows)
            values[place] = found
            misses.append((distance, angle))
        return Residual(state, ends, values, float(values @ values), tuple(misses))

    def jacobian(self, now: Residual) -> Array:
        """(residuals, columns) how the residuals change with each unknown."""
        layout, influence = self.layout, self._influence
        frames = now.state.frames
        axes = (frames[layout.axis_rows][:, :3, :3] @ layout.axes[:, :, None])[..., 0]
        heads = frames[layout.head_rows][:, :3, 3]
        ends = now.ends
        if influence.anchors is None:
            arms = ends[:, None, :] - heads
        else:
            arms = np.concatenate([ends, frames[:-1, :3, 3]])[influence.anchors] - heads
        moves = np.empty(arms.shape)
        ux, uy, uz = axes[:, 0], axes[:, 1], axes[:, 2]
        ax, ay, az = arms[..., 0], arms[..., 1], arms[..., 2]
        moves[..., 0] = uy * az - uz * ay
        moves[..., 1] = uz * ax - ux * az
        moves[..., 2] = ux * ay - uy * ax
        if layout.first_slide < layout.columns:
            moves[:, layout.first_slide :] = layout.reach * axes[layout.first_slide :]
        moves *= influence.carries
        for each in self._coupled:
            if each.column != -1:
                moves[:, each.column] += each.carried[:, None] * each.rate(now.state)
        columns = Columns(ends, moves, axes * influence.turns)
        found = np.empty((self._rows, layout.columns))
        for block, place in zip(self.blocks, self._places, strict=True):
            found[place] = block.slope(columns, frames, self._frame_rows)
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
