"""The unknowns of a least squares problem: which joints move, by which columns, inside which bounds.

The columns are the angles of the hinges, then three angles of each Euler box, then three rotations of each
ball joint about the axes of model space, then the shifts of the slides in parts of the reach. A joint inside
an Euler box is three hinges, one on the other, so that its limits are plain bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...limits.hinges import FULL_TURN, as_hinges
from ...limits.shapes import EulerBox, Limit
from ...maths.batch import Array, Indices
from ...skeleton.joints import Skeleton
from .coupled import coupled_rows

LIMB = 4
"""Most joints of a limb."""
STRAIGHT = 0.01
"""Radians of bend at rest below which a joint is straight."""


class Walk:
    """Rows in order, parents first, as forward kinematics takes them.

    Attributes:
        rows: their numbers. whole: whether these are all rows.
        place: of each row among them.
        steps: place, row, row of the parent (-1: none), whether it inherits the parent's rotation.
        fixed: the other rows.
    """

    def __init__(self, layout: Layout, rows: Sequence[int]) -> None:
        self.rows = np.array(rows, dtype=np.intp)
        self.whole = len(rows) == len(layout.rows)
        self.place = {row: place for place, row in enumerate(rows)}
        self.steps = [
            (place, row, layout.parents[row], layout.inherits[row]) for place, row in enumerate(rows)
        ]
        self.fixed = [row for row in range(len(layout.rows)) if row not in self.place]


class Layout:
    """What is the same for every pose. Rows are the joints that matter, parents before children.

    Attributes:
        skeleton: the joints.
        rows: joint index of each row.
        row: row of each joint index that matters.
        parents: row of each row's parent, -1 for a root.
        inherits: whether each row inherits its parent's rotation.
        all_rows: every row. live: those whose transforms the columns change.
        hinges_of: the hinge columns of each joint that has some.
        hinge_rows: (h,) row of each hinge column, those of Euler boxes included.
        hinge_axes: (h, 3) axis of each hinge column; of an Euler box's hinge that of its own coordinate.
        singles: how many hinges are no part of an Euler box; they come first.
        box_rows, box_axes, box_signs: (b,) rows of Euler boxes, (b, 3) the axes of their columns, those that
            turn last first, and (b,) 1 where these are right-handed in that order, else -1.
        ball_rows: (n,) rows of ball joints.
        ball_limits: of each ball joint.
        slides: joint and slide of each slide column.
        slide_rows: (s,) rows of the joints that slide.
        slide_axes: (s, 3) in the joint's rest frame.
        coupled: coupled offsets of the joints that matter.
        columns: how many unknowns there are.
        mobility: (columns,) 1 minus the stiffness.
        longest: (columns,) the longest step, radians; infinite for slides.
        lower, upper: (columns,) bounds: radians, and model units of slides; infinite for ball joints.
        bounded: whether any of them is finite.
    """

    def __init__(
        self, skeleton: Skeleton, tips: Sequence[int], limits: Sequence[Limit | None], movable: set[int]
    ) -> None:
        joints = skeleton.joints
        self.skeleton = skeleton
        self.rows = sorted({i for tip in tips for i in skeleton.chain(tip)})
        self.row = {i: place for place, i in enumerate(self.rows)}
        self.moved = [i for i in self.rows if i in movable and not joints[i].locked]
        self.moved_set = set(self.moved)
        self.limits = {i: limits[i] for i in self.moved}
        self.parents = [self.row.get(joints[i].parent, -1) for i in self.rows]
        self.inherits = [joints[i].inherit_rotation for i in self.rows]
        live: set[int] = set()
        for place, i in enumerate(self.rows):
            if i in self.limits or self.parents[place] in live:
                live.add(place)
        self.all_rows = Walk(self, range(len(self.rows)))
        self.live = Walk(self, sorted(live)) if len(live) < len(self.rows) else self.all_rows
        self._hinges()
        self._balls_and_slides()
        self._bounds()

    def _hinges(self) -> None:
        turning = {i: as_hinges(limit) for i, limit in self.limits.items()}
        single = [(i, hinges[0]) for i, hinges in turning.items() if len(hinges) == 1]
        boxes = [(i, hinges) for i, hinges in turning.items() if len(hinges) == 3]
        self.singles = len(single)
        self.hinges = [hinge for _, hinge in single] + [hinge for _, each in boxes for hinge in each]
        self.hinge_joints = [i for i, _ in single] + [i for i, each in boxes for _ in each]
        self.hinges_of = {i: slice(k, k + 1) for k, (i, _) in enumerate(single)}
        for k, (i, _) in enumerate(boxes):
            self.hinges_of[i] = slice(self.singles + 3 * k, self.singles + 3 * k + 3)
        self.hinge_rows = _indices(self.row[i] for i in self.hinge_joints)
        self.hinge_axes = np.array([hinge.axis for hinge in self.hinges], dtype=float).reshape(-1, 3)
        self.box_joints = [i for i, _ in boxes]
        self.box_rows = _indices(self.row[i] for i in self.box_joints)
        axes = [[hinge.axis.index(1.0) for hinge in each] for _, each in boxes]
        self.box_axes = np.array(axes, dtype=np.intp).reshape(-1, 3)
        i, j, k = self.box_axes.T
        self.box_signs = np.where((j - i) % 3 == 1, 1.0, -1.0)
        outer = 3 * (self.singles + 3 * np.arange(len(axes)))
        # Where the sine of each column stands in (3 hinges, 4 components, b), see `state`.
        boxes = np.arange(len(axes))[:, None]
        self.box_sines = ((4 * np.arange(3) + 1 + self.box_axes) * len(axes) + boxes).reshape(-1)
        # Where the axes of the two outer columns stand in (h, 3), see `problem.hinge_axes`.
        self.box_places = np.concatenate((outer + 3 + j, outer + 3 + i, outer + i, outer + j, outer + k))
        self.balls = [i for i, hinges in turning.items() if not hinges]

    def _balls_and_slides(self) -> None:
        joints = self.skeleton.joints
        self.ball_rows = _indices(self.row[i] for i in self.balls)
        self.ball_limits = [
            None if isinstance(limit := self.limits[i], EulerBox) else limit for i in self.balls
        ]
        self.slides = [(i, slide) for i in self.moved for slide in joints[i].slides]
        self.slide_rows = _indices(self.row[i] for i, _ in self.slides)
        self.slide_axes = np.array([slide.axis for _, slide in self.slides], dtype=float).reshape(-1, 3)
        self.coupled = coupled_rows(self.skeleton, self.row, self.hinges, self.hinge_joints)
        self.first_ball = len(self.hinges)
        self.first_slide = self.first_ball + 3 * len(self.balls)
        self.columns = self.first_slide + len(self.slides)
        self.owners = [*self.hinge_joints, *(i for i in self.balls for _ in range(3))]
        self.owners += [i for i, _ in self.slides]

    def _bounds(self) -> None:
        joints = self.skeleton.joints
        self.mobility = np.array([1.0 - joints[i].stiffness for i in self.owners])
        self.longest = np.array([joints[i].max_step for i in self.owners])
        self.longest[self.first_slide :] = math.inf
        self.lower, self.upper = np.full(self.columns, -math.inf), np.full(self.columns, math.inf)
        for column, hinge in enumerate(self.hinges):
            if hinge.upper - hinge.lower < FULL_TURN:
                self.lower[column], self.upper[column] = hinge.lower, hinge.upper
        for column, (_, slide) in enumerate(self.slides, start=self.first_slide):
            self.lower[column], self.upper[column] = slide.lower, slide.upper
        lower, upper = self.lower[: self.first_ball], self.upper[: self.first_ball]
        ends = np.where(np.isfinite(lower), lower, 0.0), np.where(np.isfinite(upper), upper, 0.0)
        self.hinge_ranges = lower, upper, 0.5 * (ends[0] + ends[1])
        self.bounded = bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @cached_property
    def _limb_bends(self) -> tuple[Indices, Array]:
        joints, axes, found = self.skeleton.joints, [], []
        for n, i in enumerate(self.balls):
            children = [k for k in self.moved if joints[k].parent == i]
            if joints[i].parent not in self.moved_set or not children or self._limb_length(i) > LIMB:
                continue
            before = joints[i].rest_rotation.conjugated() @ joints[i].offset
            after = joints[children[0]].offset
            axis = np.cross(np.array(before[:]), np.array(after[:]))
            size = float(np.linalg.norm(axis))
            if size > STRAIGHT * before.length * after.length:
                found.append(n)
                axes.append(axis / size)
        return _indices(found), np.array(axes, dtype=float).reshape(-1, 3)

    @property
    def bent(self) -> Indices:
        """Numbers of the ball joints between others of a limb that are bent at rest.

        Such a joint, a knee or an elbow, rotates about the axis of that bend more readily than across it.
        """
        return self._limb_bends[0]

    @property
    def bends(self) -> Array:
        """(b, 3) the axes of these bends, joint frames."""
        return self._limb_bends[1]

    def _limb_length(self, joint: int) -> int:
        """How many joints that move are in a row with one."""
        joints, moved = self.skeleton.joints, self.moved_set
        first, count = joint, 1
        while joints[first].parent in moved:
            first, count = joints[first].parent, count + 1
        rows = [joint]
        while rows:
            rows = [k for k in self.moved if joints[k].parent in rows]
            count += bool(rows)
        return count

    def path(self, tip: int) -> dict[int, int]:
        """Joints that carry joint `tip`, each with what a turn of it swings.

        That is -1 for all of the tip, or the joint nearest to the root beyond it that does not inherit
        rotation: only its head is swung, and what hangs on it is shifted along.
        """
        joints = self.skeleton.joints
        found: dict[int, int] = {}
        pivot, i = -1, tip
        while i != -1:
            found[i] = pivot
            if not joints[i].inherit_rotation and joints[i].parent != -1:
                pivot = i
            i = joints[i].parent
        return found


def _indices(values: object) -> Indices:
    return np.array(list(values), dtype=np.intp)  # type: ignore[call-overload]


def angles_from_rotations(layout: Layout, rotations: Array) -> Array:
    """(h, B) angles of the hinges, as near to their ranges as can be, from rotations (4, rows, B)."""
    found = np.empty((len(layout.hinges), rotations.shape[-1]))
    singles = layout.singles
    if singles:
        rows, axes = layout.hinge_rows[:singles], layout.hinge_axes[:singles]
        q = rotations[:, rows]
        sine = axes[:, :1] * q[1] + axes[:, 1:2] * q[2] + axes[:, 2:] * q[3]
        found[:singles] = _into(layout, slice(0, singles), 2.0 * np.arctan2(sine, q[0]))
    if len(layout.box_rows):
        found[singles:] = _box_angles(layout, rotations[:, layout.box_rows]).reshape(-1, found.shape[1])
    return found


def _box_angles(layout: Layout, rotations: Array) -> Array:
    """(b, 3, B) angles of joints inside Euler boxes (Bernardes & Viollet 2022), outermost first, from
    rotations (4, b, B)."""
    columns = slice(layout.singles, None)
    w, v = rotations[0], rotations[1:]
    boxes = np.arange(len(w))
    k, j, i = layout.box_axes.T
    sign = -layout.box_signs[:, None]
    last = sign * v[k, boxes]
    a, b = w - v[j, boxes], v[i, boxes] + last
    c, d = w + v[j, boxes], last - v[i, boxes]
    p, m = np.hypot(a, b), np.hypot(c, d)
    half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
    # At gimbal lock only the sum, or only the difference, is known: the innermost angle is then 0, or as near
    # as it may be.
    locked = np.minimum(p, m) < 1e-5 * np.maximum(p, m)
    if locked.any():
        alpha = _into(layout, columns, np.zeros((len(w), 3, w.shape[1])))[:, 2]
        half_difference = np.where(locked & (m < p), half_sum - alpha, half_difference)
        half_sum = np.where(locked & (m >= p), half_difference + alpha, half_sum)
    alpha, gamma = half_sum - half_difference, sign * (half_sum + half_difference)
    beta = 2.0 * np.arctan2(m, p) - 0.5 * math.pi
    ways = np.empty((2, len(w), 3, w.shape[1]))
    ways[0, :, 0], ways[0, :, 1], ways[0, :, 2] = gamma, beta, alpha
    ways[1, :, 0], ways[1, :, 1], ways[1, :, 2] = gamma + math.pi, math.pi - beta, alpha + math.pi
    inside = _into(layout, columns, ways)
    off = np.abs(np.remainder(ways - inside + math.pi, FULL_TURN) - math.pi).max(2)
    size = np.abs(inside).sum(2)
    outside = off > 1e-5
    # Inside both ways the smaller angles; outside the nearer one.
    second = np.where(
        outside[0] == outside[1], np.where(outside[0], off[1] < off[0], size[1] < size[0]), outside[0]
    )
    return np.where(second[:, None], inside[1], inside[0])


def _into(layout: Layout, columns: slice, angles: Array) -> Array:
    """Angles plus whole turns, inside the bounds of their hinges: (c, B), or (..., c / 3, 3, B) of boxes."""
    shape = (-1, 1) if angles.ndim == 2 else (-1, 3, 1)
    lower, upper, middle = (each[columns].reshape(shape) for each in layout.hinge_ranges)
    near = angles - FULL_TURN * np.round((angles - middle) / FULL_TURN)
    return np.asarray(np.clip(near, lower, upper))
