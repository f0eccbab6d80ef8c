"""The unknowns of a least squares problem: which joints move, by which columns, inside which bounds.

The columns are the angles of the hinges, then three angles of each Euler box, then three rotations of each
ball joint about the axes of model space, then the shifts of the slides in parts of the reach. A joint inside
an Euler box is three hinges, one on the other, so that its limits are plain bounds.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cached_property

import numpy as np

from ...limits.batch import form
from ...limits.hinges import FULL_TURN, as_hinges
from ...limits.shapes import EulerBox, Limit, locks_twist
from ...maths.batch import Array, Indices, as_slice
from ...skeleton.joints import Skeleton
from .coupled import coupled_rows
from .euler_boxes import EulerBoxes, into_range

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
        singles: how many hinges are no part of an Euler box; they come first. single_rows: their rows.
        boxes: joints inside Euler boxes, None where there are none; their columns come after the others.
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
        hinge_ranges: (h,) lower and upper bounds of hinges, and the middles between; 0 without bounds.
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
        self.single_rows = as_slice(self.hinge_rows[: self.singles])
        self.hinge_axes = np.array([hinge.axis for hinge in self.hinges], dtype=float).reshape(-1, 3)
        self.boxes: EulerBoxes | None = None
        if boxes:
            rows = _indices(self.row[i] for i, _ in boxes)
            self.boxes = EulerBoxes(rows, [each for _, each in boxes], self.singles)
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
        owners = [joints[i] for i in self.owners]
        self.mobility = np.array([1.0 - joint.stiffness for joint in owners])
        self.longest = np.array([joint.max_step for joint in owners])
        self.longest[self.first_slide :] = math.inf
        self.lower, self.upper = np.full(self.columns, -math.inf), np.full(self.columns, math.inf)
        middles = np.zeros(self.first_ball)
        for column, hinge in enumerate(self.hinges):
            if hinge.upper - hinge.lower < FULL_TURN:
                self.lower[column], self.upper[column] = hinge.lower, hinge.upper
                middles[column] = 0.5 * (hinge.lower + hinge.upper)
        for column, (_, slide) in enumerate(self.slides, start=self.first_slide):
            self.lower[column], self.upper[column] = slide.lower, slide.upper
        self.bounded = bool((self.lower > -math.inf).any() or (self.upper < math.inf).any())
        self.hinge_ranges = self.lower[: self.first_ball], self.upper[: self.first_ball], middles

    @cached_property
    def kind(self) -> Hashable:
        """Layouts with equal ones differ in geometry and limits alone, which `Given` holds."""
        joints = self.skeleton.joints
        rows = []
        for i, parent, inherits in zip(self.rows, self.parents, self.inherits, strict=True):
            joint, moves = joints[i], i in self.limits
            own = (_form(self.limits[i]), joint.stiffness, joint.max_step, joint.slides) if moves else None
            rows.append((parent, inherits, own))
        # Couplings name joints by their place in the skeleton.
        return tuple(rows), tuple(self.bent.tolist()), self.skeleton if self.coupled else None

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


def layout_of(
    skeleton: Skeleton, tips: Sequence[int], limits: Sequence[Limit | None], movable: set[int]
) -> Layout:
    """The layout of a skeleton's joints, made at the first call with the same arguments."""
    key = Layout, tuple(tips), tuple(limits), frozenset(movable)
    return skeleton.computed_once(key, lambda: Layout(skeleton, tips, limits, movable))


def _form(limit: Limit | None) -> Hashable:
    """What of a limit is no number that may differ from pose to pose."""
    hinges = as_hinges(limit)
    if hinges:
        axes = [hinge.axis for hinge in hinges if len(hinges) == 3]
        return tuple(axes), tuple(hinge.upper - hinge.lower < FULL_TURN for hinge in hinges)
    if limit is None or isinstance(limit, EulerBox):
        return None
    return form(limit), locks_twist(limit)


def _indices(values: object) -> Indices:
    return np.array(list(values), dtype=np.intp)  # type: ignore[call-overload]


def angles_from_rotations(layout: Layout, rotations: Array) -> Array:
    """(h, B) angles of the hinges, as near to their ranges as can be, from rotations (4, rows, B)."""
    found = np.empty((len(layout.hinges), rotations.shape[-1]))
    singles = layout.singles
    if singles:
        q = rotations[:, layout.single_rows]
        sine = np.einsum("hk,khb->hb", layout.hinge_axes[:singles], q[1:])
        ranges = [each[:singles, None] for each in layout.hinge_ranges]
        found[:singles] = into_range(2.0 * np.arctan2(sine, q[0]), ranges)
    if layout.boxes is not None:
        ranges = [each[singles:] for each in layout.hinge_ranges]
        found[singles:] = layout.boxes.angles(rotations[:, layout.boxes.rows], ranges)
    return found
