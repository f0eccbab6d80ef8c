"""The exact best move of one joint for all goals above it.

CCD minimises `E = sum_k w_k |R a_k - b_k|^2` joint by joint, over the pairs of vectors that the goals above
a joint give (see `effectors`). The best rotation of a ball joint is Davenport's (for one pair the shortest
arc). The best hinge angle and the best slide have closed forms. Limits are applied right after the step, in
the joint's own rest axes. Slides are taken one after the other. A hinge's best angle leaves coupled offsets
out; what follows it is shifted at once, and a rotation that made things worse is halved, or taken back.

`WorkingPose` is the pose that one solve changes. Model transforms are recomputed only as far as the next
visit needs them, and effectors follow each step. So an iteration costs O(joints) in any monotone order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import is_
from typing import Any

from mathutils import Quaternion, Vector

from ...errors import InvalidInput
from ...goals import Goal
from ...limits.hinges import hinge_turn
from ...limits.shapes import Hinge, Limit, clamp
from ...maths.alignment import (
    FULL_TURN,
    Pair,
    best_hinge_turn,
    best_rotation,
    best_slide,
    nearest_turn,
    square_of,
)
from ...maths.rotations import angle_of, perpendicular, power, slerp
from ...maths.tolerances import NOISE
from ...skeleton.joints import Coupling, Skeleton, shift_of, slides_of
from ...skeleton.pose import Pose, check_pose
from .effectors import Effector, PositionEffector, effector_of
from .reach_windows import ReachWindow, reach_windows_of, shortened, shortened_slide

INERTIA = 1e-2
"""What a turn of one of several joints must win, see `best_rotation`: others may do it with less."""
HALVINGS = 6
"""How often a rotation that makes things worse is halved before it is taken back."""
NUDGE = 0.1
"""By how much a joint is bent to leave a dead end, radians."""


class WorkingPose:
    """The pose that one solve changes.

    Attributes:
        skeleton: what is posed.
        effectors: what CCD moves for each goal, in the caller's order.
        movable: indices of the joints that the active goals may turn, parents before children.
        rotations: of every joint, relative to rest.
        slides: shifts of every joint along its slides' axes, the model's unit.
        coupled: the coupled offsets of each joint that has some.
        drives: of each hinge that coupled offsets follow the joints that they shift, parents first.
        heads, frames: model transforms of the joints that matter, valid up to the joint visited last.
        last_step: the turn that the last step took, model axes.
    """

    def __init__(self, skeleton: Skeleton, pose: Pose, goals: Sequence[Goal]) -> None:
        check_pose(skeleton, pose)
        if not goals:
            raise InvalidInput("there is nothing to solve: give at least one goal")
        self.skeleton = skeleton
        joints = skeleton.joints
        self.joints = joints
        count = len(joints)
        self.parents = [joint.parent for joint in joints]
        self.inherits = [joint.inherit_rotation and joint.parent != -1 for joint in joints]
        self.rests = [joint.rest_rotation for joint in joints]
        self.start = pose
        self.translations = list(pose.translations)
        self.slides: list[tuple[float, ...]] = [()] * count
        self.rotations: list[Quaternion] = list(pose.rotations)
        self.heads: list[Vector] = [Vector()] * count
        self.bases: list[Quaternion] = [Quaternion()] * count
        self.frames: list[Quaternion] = [Quaternion()] * count
        self.last_step = Quaternion()
        self.parts = [1.0] * count  # of each joint's best step, beside the fraction that all share
        self.pass_plan: Any = None  # of whole passes; made anew when it may have changed
        self.links: dict[int, list[float]] = {}  # per effector, see `chain_length`
        self.is_exact = False  # whether transforms and effectors are those of the rotations, nothing carried
        self.effectors: list[Effector] = [effector_of(goal, skeleton) for goal in goals]
        # Only the joints that an effector reads are ever recomputed; parents come before children here too.
        self.order = sorted(
            {i for effector in self.effectors for read in effector.reads for i in skeleton.chain(read)}
        )
        self.place = {i: place for place, i in enumerate(self.order)}
        self.attached_effectors: list[list[Effector]] = [[] for _ in joints]
        for effector in self.effectors:
            for i in effector.ancestors:
                self.attached_effectors[i].append(effector)
        self.limits: list[Limit | None] = [joint.limit for joint in joints]
        self.tolerances = [0.0] * count
        # Of hinges: the axis in the joint's frame, and the turn about it, unwrapped into the hinge's range.
        self.axes: list[Vector] = [Vector()] * count
        self.turns = [0.0] * count
        # See `shared_passes`: of joints held at a limit the outward normal; the reference pose, and of each
        # joint the inverse of its rotation there.
        self.active_limits: dict[int, Vector] = {}
        self.reference: Sequence[Quaternion] | None = None
        self.inverse_references: dict[int, Quaternion] = {}
        self.coupled: dict[int, list[Coupling]] = {}
        self.drives: dict[int, list[int]] = {}
        for coupling in skeleton.couplings:
            self.coupled.setdefault(coupling.joint, []).append(coupling)
            driven = self.drives.setdefault(coupling.driver, [])
            driven += [coupling.joint] if coupling.joint not in driven else []
        self.sliding = [i for i, joint in enumerate(joints) if joint.slides]
        for i in self.sliding:
            self.slides[i] = slides_of(joints[i], pose.translations[i])
            self.translations[i] = pose.translations[i] - shift_of(joints[i], self.slides[i])
        self.offsets = [
            joint.offset + rest @ shift
            for joint, rest, shift in zip(joints, self.rests, self.translations, strict=True)
        ]
        for i in {*self.sliding, *self.coupled}:
            self._set_offset(i)
        self.start_slides = list(self.slides)
        self.active_effectors: list[list[Effector]] = []
        self.movable: list[int] = []
        self.activate(range(len(goals)))
        self.recompute()
        self.windows = reach_windows_of(self.effectors, self.heads)
        self.stretches: dict[int, list[ReachWindow]] = {}
        for window in self.windows:
            self._refuse_coupled(window)
            for i in (*window.below, *window.inner):
                self.stretches.setdefault(i, []).append(window)

    def _refuse_coupled(self, window: ReachWindow) -> None:
        """Raises InvalidInput for a reach window whose links do not keep their lengths."""
        for i in window.inner:
            if i in self.coupled:
                tip = self.joints[window.effector.tip].name
                raise InvalidInput(
                    f"position goal on joint '{tip}': max_extension is {window.effector.max_extension:g}, "
                    f"but joint '{self.joints[i].name}' has coupled offsets: set max_extension to 1"
                )

    # -- state ---------------------------------------------------------------------------

    def activate(self, goals: Sequence[int]) -> None:
        """Lets joints turn for these goals only; all goals' effectors are still carried along."""
        self.active = list(goals)
        self.active_effectors = [[] for _ in self.joints]
        for k in goals:
            for i in self.effectors[k].moving_joints:
                self.active_effectors[i].append(self.effectors[k])
        self.movable = [i for i, served in enumerate(self.active_effectors) if served]
        self.pass_plan = None

    def recompute(self) -> None:
        """Forward kinematics from the rotations: transforms and effectors without the drift of carrying."""
        self.valid = -1
        for i in self.coupled:
            self._set_offset(i)
        self.update_to(self.order[-1])
        for effector in self.effectors:
            effector.recompute(self)
        self.is_exact = True

    def update_to(self, last: int) -> None:
        """Makes the transforms of the joints up to index `last` valid."""
        place = self.place[last]
        if place <= self.valid:
            return
        heads, frames, bases = self.heads, self.frames, self.bases
        for i in self.order[self.valid + 1 : place + 1]:
            parent = self.parents[i]
            if parent == -1:
                heads[i] = self.offsets[i]
                base = self.rests[i]
            else:
                frame = frames[parent]
                heads[i] = heads[parent] + frame @ self.offsets[i]
                base = frame @ self.rests[i] if self.inherits[i] else self.rests[i]
            bases[i] = base
            frames[i] = (base @ self.rotations[i]).normalized()
        self.valid = place

    def set_limits(self, limits: Sequence[Limit | None], tolerances: Sequence[float]) -> None:
        """Sets what each joint may do, and brings the joints that may move inside it."""
        self.limits = list(limits)
        self.pass_plan = None
        self.inverse_references.clear()
        self.tolerances = list(tolerances)
        rotations, slides = self.rotations, list(self.slides)
        for i in self.movable:
            limit, joint = self.limits[i], self.joints[i]
            if limit is not None:
                rotation = clamp(limit, rotations[i])
                if rotation is not rotations[i]:
                    if rotations is self.rotations:
                        rotations = list(rotations)
                    rotations[i] = rotation
                elif isinstance(limit, Hinge):
                    self._set_hinge(i, limit)
            if joint.slides:
                slides[i] = tuple(
                    min(max(along, slide.lower), slide.upper)
                    for along, slide in zip(slides[i], joint.slides, strict=True)
                )
        self.restore(rotations, slides)

    def restore(self, rotations: Sequence[Quaternion], slides: Sequence[tuple[float, ...]]) -> None:
        """Takes over rotations and slides of all joints, inside the limits."""
        if self.is_exact and all(map(is_, rotations, self.rotations)) and slides == self.slides:
            return
        self.rotations = list(rotations)
        self.active_limits.clear()
        for i in self.movable:
            limit = self.limits[i]
            if isinstance(limit, Hinge):
                self._set_hinge(i, limit)
            if slides[i] != self.slides[i]:
                self.slides[i] = slides[i]
                self._set_offset(i)
        self.recompute()

    def _set_hinge(self, i: int, limit: Hinge) -> None:
        self.axes[i] = Vector(limit.axis)
        self.turns[i] = hinge_turn(limit, self.rotations[i])

    def set_pose(self, pose: Pose) -> None:
        """Takes over a pose that is inside the limits."""
        slides = [
            slides_of(joint, translation)
            for joint, translation in zip(self.joints, pose.translations, strict=True)
        ]
        self.restore(pose.rotations, slides)

    def square(self) -> float:
        """The sum that is minimised, over the goals that are active, in squared model units."""
        return math.fsum(effector.square() for effector in self.effectors)

    def pose(self, rotations: Sequence[Quaternion], slides: Sequence[tuple[float, ...]]) -> Pose:
        """A pose of these rotations and slides."""
        translations = list(self.translations)
        for i in self.sliding:
            # What has not moved keeps its very bits.
            if slides[i] == self.start_slides[i]:
                translations[i] = self.start.translations[i]
            else:
                translations[i] = (translations[i] + shift_of(self.joints[i], slides[i])).freeze()
        return Pose.trusted(tuple(rotation.freeze() for rotation in rotations), tuple(translations))

    def _set_offset(self, i: int) -> None:
        """The head of joint `i` in its parent's frame, of its slides and coupled offsets."""
        joint = self.joints[i]
        translation = self.translations[i] + shift_of(joint, self.slides[i])
        for coupling in self.coupled.get(i, ()):
            translation = translation + coupling.shift(self.rotations[coupling.driver])
        self.offsets[i] = joint.offset + joint.rest_rotation @ translation

    # -- steps ---------------------------------------------------------------------------

    def step(self, i: int, fraction: float) -> float:
        """Takes the best move of joint `i` for all active goals above it, or `fraction` of it.

        Returns:
            The longest way that an effector was moved, in the model's unit.
        """
        self.update_to(i)
        slides = self.joints[i].slides
        slid = max([self._slide(i, k, fraction) for k in range(len(slides))]) if slides else 0.0
        pairs: list[Pair] = []
        for effector in self.active_effectors[i]:
            effector.vector_pairs(self, i, pairs)
        if not pairs:
            return slid
        before = self.rotations[i]
        moved = self._move(i, pairs, fraction)
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

    def _move(self, i: int, pairs: list[Pair], fraction: float) -> float:
        limit = self.limits[i]
        joint = self.joints[i]
        part = fraction * self.parts[i] * (1.0 - joint.stiffness)
        if type(limit) is Hinge:
            axis = self.bases[i] @ self.axes[i]
            turn = best_hinge_turn(axis, pairs)
            if limit.upper - limit.lower < FULL_TURN:
                turn = nearest_turn(self.turns[i] + turn, limit.lower, limit.upper) - self.turns[i]
            turn = self._eased(i, turn) * part
            turn = self.turns[i] + min(max(turn, -joint.max_step), joint.max_step)
            self.turns[i] = nearest_turn(turn, limit.lower, limit.upper)
            rotation = Quaternion(self.axes[i], self.turns[i])
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

    def _turn_to(self, i: int, rotation: Quaternion) -> float:
        """Gives joint `i` a new rotation relative to rest and carries the effectors above it along."""
        self.rotations[i] = rotation
        self.is_exact = False
        before = self.frames[i]
        self.frames[i] = after = (self.bases[i] @ rotation).normalized()
        self.valid = self.place[i]
        self.last_step = step = after @ before.conjugated()
        longest = 0.0
        for effector in self.attached_effectors[i]:
            longest = max(longest, effector.follow_rotation(self, i, step))
        if i in self.drives:
            longest = max(longest, self._follow_coupled(i))
        return longest

    def _follow_coupled(self, driver: int) -> float:
        """Shifts what follows the angle of a hinge, after it was turned; returns the longest shift."""
        joints = self.drives[driver]
        before = [self.offsets[i] for i in joints]
        for i in joints:
            self._set_offset(i)
        self.valid = min([self.valid, *(self.place[i] - 1 for i in joints if i in self.place)])
        longest = 0.0
        for i, old in zip(joints, before, strict=True):
            shift = self.offsets[i] - old
            parent = self.parents[i]
            if i not in self.place or shift.length_squared == 0.0:
                continue
            if parent != -1:
                self.update_to(parent)
                shift = self.frames[parent] @ shift
            longest = max(longest, shift.length)
            for effector in self.attached_effectors[i]:
                effector.follow_slide(self, i, shift)
        self.update_to(driver)
        return longest

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

    def _slide(self, i: int, k: int, fraction: float) -> float:
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
        rotation = shortened(
            windows,
            self.heads,
            i,
            self.rotations[i],
            wanted,
            turn=lambda tried: base @ tried @ back,
            allowed=lambda tried: tried if limit is None else clamp(limit, tried),
        )
        if isinstance(limit, Hinge):
            self.turns[i] = hinge_turn(limit, rotation)
        return rotation

    # -- dead ends -----------------------------------------------------------------------

    def nudge(self, joints: Sequence[int]) -> None:
        """Bends the joints a little, to alternate sides and inside their limits, so that the next steps see
        a way.

        A straight chain with the target on its line and Juckett's folded pose are left so, and most other
        dead ends.
        """
        side = 1.0
        self.active_limits.clear()
        for i in joints:
            if self.tolerances[i] > 0.0:
                continue  # it stays at the border of its tolerance region on purpose
            self.update_to(i)
            side = -side
            for turn in (side * NUDGE, -side * NUDGE):
                if self._bend(i, turn):
                    break
        self.recompute()

    def _bend(self, i: int, turn: float) -> bool:
        """Turns joint `i` by `turn` radians across its line of sight; whether its limit let it."""
        before = self.rotations[i]
        pairs: list[Pair] = []
        for effector in self.active_effectors[i]:
            effector.vector_pairs(self, i, pairs)
        self.turn(i, perpendicular(pairs[0][0] if pairs else self.frames[i] @ Vector((0.0, 1.0, 0.0))), turn)
        return angle_of(before.conjugated() @ self.rotations[i]) > 0.5 * abs(turn)
