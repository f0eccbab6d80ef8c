"""What a balance goal looks like from a joint: the centre of mass; see `effector`."""

from __future__ import annotations

from mathutils import Quaternion, Vector

from ...goals import BalanceGoal, GoalError, centre_of_mass, masked
from ...maths.alignment import Pair
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import Transform
from .effector import Effector, Joints, SlideTarget, movable


class BalanceEffector(Effector):
    """The centre of mass, and what of it each joint moves."""

    def __init__(self, goal: BalanceGoal, skeleton: Skeleton) -> None:
        self.goal = goal
        self.target = goal.target
        self.axes = goal.axes
        self.weight = goal.weight
        joints = skeleton.joints
        self.total = sum(joint.mass for joint in joints)
        self.middles = [Vector((0.0, 0.5 * joint.length, 0.0)) for joint in joints]
        # Bones with mass that a turn of joint i moves, each with the joint whose head it hangs on rigidly:
        # itself, or the first joint on the way from i that does not inherit rotation (what lies beyond is
        # only shifted).
        self.moved: dict[int, list[tuple[int, int]]] = {}
        pivots = skeleton.pivots
        for bone, joint in enumerate(joints):
            if joint.mass == 0.0:
                continue
            hold = -1
            for i in reversed(skeleton.chain(bone)):
                self.moved.setdefault(i, []).append((bone, hold))
                if i in pivots:
                    hold = i
        self.masses = [joint.mass for joint in joints]
        self.ancestors = sorted(self.moved)
        self.reads = range(len(joints))
        self.moving_joints = movable(skeleton, goal.turning(skeleton))
        self.skeleton = skeleton
        self.centre = Vector()

    def recompute(self, joints: Joints) -> None:
        transforms = [Transform(head, frame) for head, frame in zip(joints.heads, joints.frames, strict=True)]
        self.centre = centre_of_mass(self.skeleton, transforms)

    def vector_pairs(self, joints: Joints, i: int, found: list[Pair]) -> None:
        lever = self._lever(joints, i)
        wanted = lever + self._way()
        # What an axis that does not count is, stays: the step then minimises a bound of the masked error
        # that touches it here, so it can only lower it.
        found.append((lever, wanted, self.weight))

    def slide_targets(self, joints: Joints, i: int, found: list[SlideTarget]) -> None:
        share = sum(self.masses[bone] for bone, _ in self.moved[i]) / self.total
        found.append((self._way(), share, self.weight))

    def misses(self) -> list[Vector]:
        return [masked(self.target - self.centre, self.axes)]

    def follow_rotation(self, joints: Joints, i: int, step: Quaternion) -> float:
        # The lever before the step, turned: frames above i are still those of before.
        before = step.conjugated() @ self._lever(joints, i)
        shift = self._lever(joints, i) - before
        self.centre = self.centre + shift
        return shift.length

    def follow_slide(self, joints: Joints, i: int, shift: Vector) -> None:
        share = sum(self.masses[bone] for bone, _ in self.moved.get(i, ())) / self.total
        self.centre = self.centre + share * shift

    def error(self) -> GoalError:
        return GoalError(distance=masked(self.centre - self.target, self.axes).length)

    def square(self) -> float:
        return self.goal.weight * masked(self.centre - self.target, self.axes).length_squared

    def _way(self) -> Vector:
        """Where the centre of mass is to be moved, along the axes that count."""
        way = masked(self.target - self.centre, self.axes)
        return way + self.multipliers[0] if self.multipliers else way

    def _lever(self, joints: Joints, i: int) -> Vector:
        """(m_above / m_total)(centre_above - head) of joint `i`, over what a turn of it moves."""
        joints.update_to(len(self.masses) - 1)
        head = joints.heads[i]
        sums = Vector()
        for bone, hold in self.moved[i]:
            if hold == -1:
                point = joints.heads[bone] + joints.frames[bone] @ self.middles[bone]
            else:
                point = joints.heads[hold]
            sums += self.masses[bone] * (point - head)
        return sums / self.total
