"""Reach windows as residuals: parts of chains that are not stretched past a set part of their length.

A window asks for nothing until a pose is stretched past it. Then it is held: the part is to be just as long
as it may be, before any goal is served. Which windows are held is found in rounds (an active set): windows
that solutions stretch are held, and let go of where the goals would be nearer with the part less stretched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...goals import Goal, PositionGoal
from ...maths.batch import TINY, Array, Mask, cross, length
from .bending import Now
from .columns import PointSum
from .layout import Layout
from .residuals import Block, Position
from .state import Bones, Given, Poses, State, rebuilt, stepped_balls

SLACK = 0.1
"""Part of the position tolerance past which a window counts as stretched."""
FOLDED = 0.01
"""Part of the longest lever below which nothing shortens a part to first order: it is straight."""
NUDGE = 0.2
"""Radians by which the joints of a straight part are bent, so that it has a side to bend to."""


class ReachWindow:
    """How far the part of a chain is stretched, beside how far it may be.

    Attributes:
        part: indices of the joints of the part, root first; rotations of the first do not stretch it.
        rows: their rows in the layout.
        number: of the goal whose window it is.
        most: largest extension, in parts of the part's length.
    """

    def __init__(
        self,
        layout: Layout,
        end: tuple[int, tuple[int, int]],
        part: Sequence[int],
        most: float,
        factor: float,
    ) -> None:
        """`end`: number of the goal, its point and its joint. `factor`: residual of a length of the reach."""
        self.part, self.number, self.most, self.factor = tuple(part), end[0], most, factor
        self.rows = [layout.row[i] for i in part]
        self.line = PointSum(layout, [end[1], (-1, part[0])], [1.0, -1.0])
        # Joints from the first one down turn the part rigidly, but where one does not inherit rotation.
        self.inner: Array | None = None
        if not layout.skeleton.pivots & set(part):
            self.inner = np.array([float(owner in part[1:]) for owner in layout.owners])
        self.moving = self.line if self.inner is None else PointSum(layout, [end[1]], [1.0])

    def longest(self, bones: Bones, poses: Poses, point: Array) -> Array:
        """(B or 1,) the largest extent, model units, for bones that are as long as in poses.

        `point` (3, B or 1) is where the part ends, in the frame of its last joint.
        """
        total = length(point)
        for i in self.part[1:]:
            w, x, y, z = bones.rests[:, i]
            shift = poses.translations[:, i]
            axis = np.stack((x, y, z))
            turned = shift + 2.0 * w * cross(axis, shift) + 2.0 * cross(axis, cross(axis, shift))
            total = total + length(bones.offsets[:, i] + turned)
        return np.asarray(self.most * total)

    def extent(self, now: Now) -> Array:
        """(B,) how far the part is stretched, model units."""
        return length(self.line.value(now))

    def slope(self, now: Now, columns: int) -> Array:
        """(k, B) how the extent changes with each column, residual units."""
        line = self.line.value(now)
        moves = np.zeros((3, columns, line.shape[1]))
        self.moving.slope(now, self.factor / now.reach, moves)
        way = line / np.maximum(length(line), TINY)
        found: Array = (moves * way[:, None]).sum(0)
        return found if self.inner is None else self.inner[:, None] * found


def windows_of(
    layout: Layout, goals: Sequence[Goal], blocks: Sequence[Block], factor: float
) -> list[ReachWindow]:
    """The reach windows that goals ask for; `factor` is the residual of a length of the reach."""
    found = []
    for number, (goal, block) in enumerate(zip(goals, blocks, strict=True)):
        if isinstance(goal, PositionGoal) and isinstance(block, Position) and goal.max_extension < 1.0:
            part = layout.skeleton.chain(goal.joint, goal.chain_length)[-goal.extension_joints :]
            end = number, block.point.points[0]
            if _bends(layout, part):
                found.append(ReachWindow(layout, end, part, goal.max_extension, factor))
    return found


def _bends(layout: Layout, part: Sequence[int]) -> bool:
    """Whether anything that moves can change the extent of a part: a joint inside it, a slide, or one below
    where the part does not turn rigidly."""
    inside = set(part[1:])
    if inside & layout.skeleton.pivots:
        return True
    return bool(inside & set(layout.moved))


def longest_extents(windows: Sequence[ReachWindow], bones: Bones, poses: Poses, points: Array) -> Array:
    """(2, w, B or 1) the largest extents of reach windows, none of which is held; `points` as `Given` has
    them."""
    longest = [each.longest(bones, poses, points[:3, each.line.points[0][0]]) for each in windows]
    found: Array = np.zeros((2, len(longest), max((len(each) for each in longest), default=1)))
    for k, each in enumerate(longest):
        found[0, k] = each
    return found


def measured_windows(windows: Sequence[ReachWindow], extents: Array, now: Now) -> tuple[Array, Array]:
    """(w, B) residuals of reach windows, and how far held ones are from their extents, model units.

    `extents` are as `Given.windows`.
    """
    values: Array = np.zeros((len(windows), now.state.size))
    stretched: Array = np.zeros_like(values)
    for k, window in enumerate(windows):
        longest, held = extents[:, k]
        over = held * (window.extent(now) - longest)
        values[k], stretched[k] = window.factor / now.reach * over, np.abs(over)
    return values, stretched


def past_windows(windows: Sequence[ReachWindow], given: Given, now: Now) -> Array:
    """(w, B) by how much parts are stretched past their windows, model units; below 0 inside."""
    found: Array = np.zeros((len(windows), now.state.size))
    for k, window in enumerate(windows):
        found[k] = window.extent(now) - given.windows[0, k]
    return found


def write_window_slopes(windows: Sequence[ReachWindow], given: Given, now: Now, into: Array) -> None:
    """Write the slopes of reach windows that are held into (w, k, B), which is zero."""
    for k, window in enumerate(windows):
        held = given.windows[1, k]
        if held.any():
            into[k] = held * window.slope(now, into.shape[1])


def bent(windows: Sequence[ReachWindow], layout: Layout, given: Given, state: State, now: Now) -> State:
    """The state with straight parts bent a little where their windows are held.

    All inner joints bend the same way: hinges to where they have more room, others about their bend axis, or
    one across the part.
    """
    held = given.windows[1] > 0.0
    step: Array = np.zeros((layout.columns, state.size))
    for window, holding in zip(windows, held, strict=True):
        slope = window.slope(now, layout.columns) / (window.factor / now.reach)
        lever = window.extent(now) / window.most
        straight = np.broadcast_to(holding, lever.shape) & (
            np.abs(slope).max(0, initial=0.0) <= FOLDED * lever
        )
        if straight.any():
            step = np.where(straight, _curl(window, layout, given, state, window.line.value(now)), step)
    some = np.flatnonzero(step.any(0))
    if not len(some):
        return state
    angles = state.angles + step[: layout.first_ball]
    found = rebuilt(layout, given, state, stepped_balls(layout, state, step), angles, state.slides)
    return state.joined(some, found.at(some))


def _curl(window: ReachWindow, layout: Layout, given: Given, state: State, line: Array) -> Array:
    """(k, B) rotations that bend a part's inner joints."""
    step = np.zeros((layout.columns, state.size))
    inner = set(window.rows[1:])
    room = layout.upper[: layout.first_ball, None] - state.angles
    up = room >= state.angles - layout.lower[: layout.first_ball, None]
    for column, row in enumerate(layout.hinge_rows.tolist()):
        if row in inner:
            step[column] = np.where(up[column], NUDGE, -NUDGE)
    axes = dict(zip(layout.bent.tolist(), given.bends, strict=True))
    across = _across(line, state.frames[window.rows[0]])
    for ball, row in enumerate(layout.ball_rows.tolist()):
        if row in inner:
            at = layout.first_ball + 3 * ball
            own = axes.get(ball)
            axis = across if own is None else np.einsum("ijb,jb->ib", state.frames[row], own)
            step[at : at + 3] = NUDGE * axis
    return step


def _across(line: Array, frame: Array) -> Array:
    """(3, B) a unit vector across a line that turns along with a frame (3, 3, B)."""
    way = line / np.maximum(length(line), TINY)
    local = np.einsum("ijb,ib->jb", frame, way)
    side = np.zeros_like(local)
    side[np.abs(local).argmin(0), np.arange(local.shape[1])] = 1.0
    found = cross(way, np.einsum("ijb,jb->ib", frame, side))
    return np.asarray(found / np.maximum(length(found), TINY))


def longer(given: Given, more: Array) -> Given:
    """The same with windows that let parts be longer by (w, B) model units."""
    if not more.any():
        return given
    longest, held = np.broadcast_to(given.windows, (2, *more.shape))
    return replace(given, windows=np.stack((longest + more, held)))


def hold(given: Given, held: Mask) -> Given:
    """The same with windows (w, B) held."""
    longest = np.broadcast_to(given.windows[0], held.shape)
    return replace(given, windows=np.stack((longest, held.astype(np.float64))))
