"""The transforms of one pose that a solve changes, and the effectors that they carry.

Model transforms are recomputed only as far as the next visit needs them. So a pass costs O(joints) in any
monotone order of joints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mathutils import Quaternion, Vector

from ...errors import InvalidInput
from ...goals import Goal
from ...skeleton.joints import Coupling, Skeleton, shift_of, slides_of
from ...skeleton.pose import Pose, check_pose
from .effector import Effector
from .effectors import PositionEffector, effector_of


class KinematicPose:
    """Rotations and slides with lazy forward kinematics.

    Passes that run forward kinematics along (`passes`, `shared_passes`) place one joint after the other, and
    end by `end_pass`.

    Attributes:
        skeleton: what is posed.
        effectors: what CCD moves for each goal, in the caller's order.
        rotations: of every joint, relative to rest.
        slides: shifts of every joint along its slides' axes, the model's unit.
        coupled: the coupled offsets of each joint that has some.
        drives: of each hinge that coupled offsets follow the joints that they shift, parents first.
        heads, frames: model transforms of the joints that matter, valid up to the joint visited last.
        bases: what the rotation of a joint is applied to: its parent's frame and its own rest.
        offsets: heads in the parent's frame, slides and coupled offsets included.
        order: joints that an effector reads, parents before children; `place` is where each stands in it.
        is_exact: whether transforms and effectors are those of the rotations, nothing carried along.
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
        self.valid = -1  # place in `order` up to which transforms are valid
        self.is_exact = False
        self.last_step = Quaternion()
        self.effectors: list[Effector] = [effector_of(goal, skeleton) for goal in goals]
        self.order = sorted(
            {i for effector in self.effectors for read in effector.reads for i in skeleton.chain(read)}
        )
        self.place = {i: place for place, i in enumerate(self.order)}
        self.attached_effectors: list[list[Effector]] = [[] for _ in joints]
        for effector in self.effectors:
            for i in effector.ancestors:
                self.attached_effectors[i].append(effector)
        self._find_shifts()
        self.start_slides = list(self.slides)

    def _find_shifts(self) -> None:
        """Slides and coupled offsets, and where they put the heads."""
        self.coupled: dict[int, list[Coupling]] = {}
        self.drives: dict[int, list[int]] = {}
        for coupling in self.skeleton.couplings:
            self.coupled.setdefault(coupling.joint, []).append(coupling)
            driven = self.drives.setdefault(coupling.driver, [])
            driven += [coupling.joint] if coupling.joint not in driven else []
        self.sliding = [i for i, joint in enumerate(self.joints) if joint.slides]
        for i in self.sliding:
            translation = self.start.translations[i]
            self.slides[i] = slides_of(self.joints[i], translation)
            self.translations[i] = translation - shift_of(self.joints[i], self.slides[i])
        self.offsets = [
            joint.offset + rest @ shift
            for joint, rest, shift in zip(self.joints, self.rests, self.translations, strict=True)
        ]
        for i in {*self.sliding, *self.coupled}:
            self._set_offset(i)

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

    def set_joint(self, i: int, head: Vector, base: Quaternion, rotation: Quaternion) -> None:
        """Takes over the rotation of joint `i` and its transforms from a pass that goes from root to tip."""
        self.heads[i] = head
        self.bases[i] = base
        self.rotations[i] = rotation
        self.frames[i] = (base @ rotation).normalized()

    def pause_pass(self, i: int, effector: PositionEffector, position: Vector) -> None:
        """Takes over where a pass has come to: transforms up to joint `i`, and the effector's position."""
        self.valid = self.place[i]
        effector.points[0] = position

    def end_pass(self, effector: PositionEffector) -> Vector:
        """Ends a pass that has set all joints: places its only effector, and returns where that is."""
        position = self.heads[effector.tip] + self.frames[effector.tip] @ effector.point
        effector.points[0] = position
        self.valid = len(self.order) - 1
        self.is_exact = True
        return position
