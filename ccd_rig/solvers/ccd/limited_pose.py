"""One pose inside its limits: which joints may move, how far, and what pose they stay near to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any

from mathutils import Quaternion, Vector

from ...errors import InvalidInput
from ...goals import Goal
from ...limits.hinges import hinge_turn
from ...limits.shapes import Hinge, Limit, clamp
from ...maths.alignment import nearest_turn
from ...skeleton.joints import Joint, Skeleton, slides_of
from ...skeleton.pose import Pose, check_pose
from .effector import Effector
from .kinematic_pose import KinematicPose
from .reach_windows import ReachWindow, reach_windows_of


def clamped_slides(joint: Joint, slides: Sequence[float]) -> tuple[float, ...]:
    """Shifts along a joint's slides, inside their bounds."""
    return tuple(
        min(max(along, slide.lower), slide.upper) for along, slide in zip(slides, joint.slides, strict=True)
    )


class LimitedPose(KinematicPose):
    """A kinematic pose with limits, active goals, reach windows and a reference pose.

    Attributes:
        movable: indices of the joints that the active goals may turn, parents before children.
        active: indices of the goals that joints turn for; `active_effectors` are theirs, by joint.
        limits, tolerances: what each joint may do now; radians of its comfort tolerance.
        axes, turns: of hinges the axis in the joint's frame, and the turn about it, unwrapped into the range.
        active_limits: of joints held at a limit the outward normal (see `shared_passes`).
        windows: reach windows; `stretches` are those that a joint can stretch.
        reference: the pose that joints stay near to, if any.
        parts: of each joint's best step, beside the fraction that all share.
        pass_plan: of whole passes; None when it may have changed.
        links: lengths of links per effector, see `chain_length`.
    """

    def __init__(
        self, skeleton: Skeleton, pose: Pose, goals: Sequence[Goal], reference: Pose | None = None
    ) -> None:
        super().__init__(skeleton, pose, goals)
        if reference is not None:
            check_pose(skeleton, reference)
        joints = skeleton.joints
        count = len(joints)
        self.parts = [1.0] * count
        self.pass_plan: Any = None
        self.links: dict[int, list[float]] = {}
        self.limits: list[Limit | None] = [joint.limit for joint in joints]
        self.tolerances = [0.0] * count
        self.axes: list[Vector] = [Vector()] * count
        self.turns = [0.0] * count
        self.active_limits: dict[int, Vector] = {}
        self.reference = reference
        self._reference_rotations: dict[int, Quaternion] = {}  # inside the limits
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

    def activate(self, goals: Sequence[int]) -> None:
        """Lets joints turn for these goals only; all goals' effectors are still carried along."""
        self.active = list(goals)
        self.active_effectors = [[] for _ in self.joints]
        for k in goals:
            for i in self.effectors[k].moving_joints:
                self.active_effectors[i].append(self.effectors[k])
        self.movable = [i for i, served in enumerate(self.active_effectors) if served]
        self.pass_plan = None

    def set_limits(self, limits: Sequence[Limit | None], tolerances: Sequence[float]) -> None:
        """Sets what each joint may do, and brings the joints that may move inside it."""
        self.limits = list(limits)
        self.pass_plan = None
        self._reference_rotations.clear()
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
                slides[i] = clamped_slides(joint, slides[i])
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

    def set_hinge_angle(self, i: int, angle: float) -> float:
        """Takes over the angle of a hinge about its axis, brought inside its limit; returns that."""
        limit = self.limits[i]
        assert isinstance(limit, Hinge)
        self.turns[i] = inside = nearest_turn(angle, limit.lower, limit.upper)
        return inside

    def hold_limit(self, i: int, normal: Vector) -> None:
        """Notes that joint `i` is held at a limit with this outward normal."""
        self.active_limits[i] = normal

    def release_limit(self, i: int) -> None:
        """Notes that joint `i` is free again."""
        del self.active_limits[i]

    def keep_links(self, effector: Effector, links: list[float]) -> None:
        """Keeps the lengths of an effector's links, which do not change while it is solved."""
        self.links[id(effector)] = links

    def set_pose(self, pose: Pose) -> None:
        """Takes over a pose that is inside the limits."""
        slides = [
            slides_of(joint, translation)
            for joint, translation in zip(self.joints, pose.translations, strict=True)
        ]
        self.restore(pose.rotations, slides)

    def restore_reference(self, joints: Iterable[int]) -> None:
        """Takes over the reference pose for some of the joints that may move, inside their limits."""
        assert self.reference is not None
        rotations, slides = list(self.rotations), list(self.slides)
        for i in joints:
            rotations[i] = self.reference_rotation(i)
            joint = self.joints[i]
            if joint.slides:
                slides[i] = clamped_slides(joint, slides_of(joint, self.reference.translations[i]))
        self.restore(rotations, slides)

    def reference_rotation(self, i: int) -> Quaternion:
        """The rotation of joint `i` in the reference pose, inside its limit."""
        known = self._reference_rotations.get(i)
        if known is None:
            assert self.reference is not None
            limit, known = self.limits[i], self.reference.rotations[i]
            if limit is not None:
                known = clamp(limit, known)
            self._reference_rotations[i] = known
        return known

    def share_steps(self, parts: Sequence[float]) -> None:
        """Sets the part of its best step that each joint takes."""
        self.parts = list(parts)
        self.pass_plan = None

    def keep_plan(self, plan: Any) -> Any:
        """Keeps the plan of whole passes until limits, goals or parts change; returns it."""
        self.pass_plan = plan
        return plan

    def weigh(self, goals: Iterable[int], factor: float) -> None:
        """Lets goals weigh `factor` times what they ask for."""
        for k in goals:
            effector = self.effectors[k]
            effector.weight = factor * effector.goal.weight
