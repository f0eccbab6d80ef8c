"""The exact best move of one joint for all goals above it.

CCD minimises `E = sum_k w_k |R a_k - b_k|^2` joint by joint, over the pairs of vectors that the goals above
a joint give (see `effectors`). The best rotation of a ball joint is Davenport's (for one pair the shortest
arc). The best hinge angle and the best slide have closed forms. Limits are applied right after the step, in
the joint's own rest axes. Slides are taken one after the other. A hinge's best angle leaves coupled offsets
out; what follows it is shifted at once, and a rotation that made things worse is halved, or taken back.

`WorkingPose` is the pose that one solve changes: `KinematicPose` has its transforms, `LimitedPose` its limits
and goals. Effectors follow each step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from mathutils import Quaternion, Vector

from ...limits.hinges import hinge_turn
from ...limits.shapes import Hinge, clamp
from ...maths.alignment import (
    FULL_TURN,
    Pair,
    best_hinge_turn,
    best_rotation,
    best_rotation_near,
    best_slide,
    nearest_turn,
    square_of,
)
from ...maths.rotations import angle_of, power, slerp
from ...maths.tolerances import NOISE
from ...skeleton.joints import slides_of
from .effectors import PositionEffector
from .limited_pose import LimitedPose
from .reach_windows import Way, shortened, shortened_slide

INERTIA = 1e-2
"""What a turn of one of several joints must win, see `best_rotation`: others may do it with less."""
HALVINGS = 6
"""How often a rotation that makes things worse is halved before it is taken back."""


class Pull(NamedTuple):
    """What a joint's place in the reference pose weighs beside its goals.

    Attributes:
        rotation: of the joint's orientation, squared model units per squared radian.
        shift: of its slide.
    """

    rotation: float
    shift: float


class WorkingPose(LimitedPose):
    """The pose that one solve changes."""

    def step(self, i: int, fraction: float, pull: Pull | None = None) -> float:
        """Takes the best move of joint `i` for all active goals above it, or `fraction` of it.

        `pull` is what the joint's reference weighs beside the goals.

        Returns:
            The longest way that an effector was moved, in the model's unit.
        """
        self.update_to(i)
        slides = self.joints[i].slides
        slid = max([self._slide(i, k, fraction, pull) for k in range(len(slides))]) if slides else 0.0
        pairs: list[Pair] = []
        for effector in self.active_effectors[i]:
            effector.vector_pairs(self, i, pairs)
        if not pairs:
            return slid
        before = self.rotations[i]
        moved = self._move(i, pairs, fraction, pull)
        return max(slid, self._not_worse(i, before, pairs, moved) if i in self.drives else moved)

    def turn(self, i: int, axis: Vector, angle: float) -> None:
        """Turns joint `i` by `angle` radians, inside its limit: a hinge about its own axis, else about
        `axis` (model)."""
        self.update_to(i)
        limit = self.limits[i]
        if type(limit) is Hinge:
            self.turns[i] = nearest_turn(self.turns[i] + angle, limit.lower, limit.upper)
            rotation = Quaternion(self.axes[i], self.turns[i])
        else:
            rotation = (self.bases[i].conjugated() @ Quaternion(axis, angle) @ self.frames[i]).normalized()
            if limit is not None:
                rotation = clamp(limit, rotation)
        if i in self.stretches:
            rotation = self._inside_windows(i, rotation)
        self._turn_to(i, rotation)

    def pull(self, i: int, point: Vector, wanted: Vector) -> None:
        """Turns joint `i` so that a point which hangs on it comes nearest to another (model space)."""
        self.update_to(i)
        head = self.heads[i]
        self._move(i, [(point - head, wanted - head, 1.0)], 1.0 / (self.parts[i] or 1.0))

    def stretch(self, i: int, child: int, effector: PositionEffector) -> None:
        """Turns joint `i` so that its link (to the joint `child`, or with -1 to the effector) points at the
        target."""
        self.update_to(max(i, child))
        self.pull(i, self.heads[child] if child != -1 else effector.position, effector.target)

    def desired_angle(self, i: int) -> float:
        """The angle (radians) by which joint `i` would turn for its goals if nothing held it."""
        self.update_to(i)
        pairs: list[Pair] = []
        for effector in self.active_effectors[i]:
            effector.vector_pairs(self, i, pairs)
        if not pairs:
            return 0.0
        limit = self.limits[i]
        if type(limit) is Hinge:
            return abs(best_hinge_turn(self.bases[i] @ self.axes[i], pairs))
        return angle_of(best_rotation(pairs))

    def _move(self, i: int, pairs: list[Pair], fraction: float, pull: Pull | None = None) -> float:
        limit = self.limits[i]
        joint = self.joints[i]
        part = fraction * self.parts[i] * (1.0 - joint.stiffness)
        if type(limit) is Hinge:
            axis = self.bases[i] @ self.axes[i]
            if pull is not None:
                way = hinge_turn(limit, self.reference_rotation(i)) - self.turns[i]
                turn = best_hinge_turn(axis, pairs, way, pull.rotation)
            else:
                turn = best_hinge_turn(axis, pairs)
            if limit.upper - limit.lower < FULL_TURN:
                turn = nearest_turn(self.turns[i] + turn, limit.lower, limit.upper) - self.turns[i]
            turn = self._eased(i, turn) * part
            turn = self.turns[i] + min(max(turn, -joint.max_step), joint.max_step)
            self.turns[i] = nearest_turn(turn, limit.lower, limit.upper)
            rotation = Quaternion(self.axes[i], self.turns[i])
        else:
            if pull is not None:
                back = self.bases[i] @ self.reference_rotation(i) @ self.frames[i].conjugated()
                best = best_rotation_near(pairs, back.normalized(), pull.rotation)
            else:
                best = best_rotation(pairs, INERTIA if len(self.movable) > 1 else NOISE)
            if self.tolerances[i] != 0.0 or joint.max_step < math.pi:
                angle = angle_of(best)
                if angle > 0.0:
                    part = min(self._eased(i, angle) * part, joint.max_step) / angle
            if part != 1.0:
                best = power(best, part)
            rotation = (self.bases[i].conjugated() @ best @ self.frames[i]).normalized()
            if limit is not None:
                rotation = clamp(limit, rotation)
        if i in self.stretches:
            rotation = self._inside_windows(i, rotation)
        return self._turn_to(i, rotation)

    def _eased(self, i: int, angle: float) -> float:
        """Kenwright 2012, section 11: no further than to the border of the joint's tolerance region."""
        tolerance = self.tolerances[i]
        if tolerance == 0.0:
            return angle
        return math.copysign(max(0.0, abs(angle) - tolerance), angle)

    def _not_worse(self, i: int, before: Quaternion, pairs: Sequence[Pair], moved: float) -> float:
        """Takes back half of a hinge's rotation again and again while it is worse than none.

        The best angle does not see what coupled offsets add to it. Returns the longest way of an effector.
        """
        limit, error = self.limits[i], square_of(pairs)
        for halving in range(HALVINGS + 1):
            found: list[Pair] = []
            for effector in self.active_effectors[i]:
                effector.vector_pairs(self, i, found)
            if square_of(found) <= error:
                return moved
            rotation = slerp(before, self.rotations[i], 0.5) if halving < HALVINGS else before
            rotation = rotation if limit is None else clamp(limit, rotation)
            if isinstance(limit, Hinge):
                self.turns[i] = hinge_turn(limit, rotation)
            moved = self._turn_to(i, rotation)
        return 0.0

    def _slide(self, i: int, k: int, fraction: float, pull: Pull | None) -> float:
        """Takes the best shift of joint `i` along its slide `k`; returns its length."""
        joint = self.joints[i]
        slide, along = joint.slides[k], self.slides[i][k]
        parent = self.parents[i]
        # The slide's axis stands in the joint's frame at rest.
        at_rest = self.rests[i] if parent == -1 else self.frames[parent] @ self.rests[i]
        axis = at_rest @ Vector(slide.axis)
        shifts: list[tuple[Vector, float, float]] = []
        for effector in self.active_effectors[i]:
            effector.slide_targets(self, i, shifts)
        if pull is not None and self.reference is not None:
            back = slides_of(joint, self.reference.translations[i])[k] - along
            shifts.append((back * axis, 1.0, pull.shift))
        wanted = along + best_slide(axis, shifts) * fraction * self.parts[i] * (1.0 - joint.stiffness)
        before = self.heads[i]
        wanted = min(max(wanted, slide.lower), slide.upper)
        if i in self.stretches:
            wanted = along + shortened_slide(self.stretches[i], self.heads, i, axis, wanted - along)
        self.slides[i] = (*self.slides[i][:k], wanted, *self.slides[i][k + 1 :])
        self._set_offset(i)
        self.is_exact = False
        self.valid = self.place[i] - 1
        self.update_to(i)
        shift = self.heads[i] - before
        for effector in self.attached_effectors[i]:
            effector.follow_slide(self, i, shift)
        return shift.length

    def _inside_windows(self, i: int, wanted: Quaternion) -> Quaternion:
        """As much of the way to the rotation `wanted` as joint `i`'s reach windows allow."""
        windows = self.stretches[i]
        self.update_to(max(i, *(window.top for window in windows)))
        base, back, limit = self.bases[i], self.frames[i].conjugated(), self.limits[i]
        way = Way(
            self.rotations[i],
            wanted,
            turn=lambda tried: base @ tried @ back,
            allowed=lambda tried: tried if limit is None else clamp(limit, tried),
        )
        rotation = shortened(windows, self.heads, i, way)
        if isinstance(limit, Hinge):
            self.turns[i] = hinge_turn(limit, rotation)
        return rotation
