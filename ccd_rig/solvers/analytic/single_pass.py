"""Shared by two bones and the target triangle: joints in model space, checks, results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mathutils import Quaternion, Vector

from ...errors import InvalidInput
from ...goals import PositionGoal
from ...maths.rotations import NOISE, between
from ...settings import SolveResult, SolveStatus
from ...skeleton.joints import Joint, Skeleton
from ...skeleton.kinematics import Transform, placed_joints
from ...skeleton.pose import Pose, check_pose
from ..problem_tables import measure_goals


@dataclass(frozen=True)
class Seen:
    """A joint of the chain in model space: `base` is its frame at rest, `frame` its frame in the pose."""

    index: int
    joint: Joint
    rotation: Quaternion
    head: Vector
    base: Quaternion
    frame: Quaternion

    def local(self, frame: Quaternion) -> Quaternion:
        """The rotation relative to rest that gives the joint this frame in model space."""
        return (self.base.conjugated() @ frame).normalized()


def shortest_arc(a: Vector, b: Vector, normal: Vector) -> Quaternion:
    """The shortest arc from `a` to `b`.

    Between opposite directions it is the half turn about the part of `normal` across `a`.
    """
    if a.dot(b) < 0.0 and cross(a, b).length <= NOISE * a.length * b.length:
        axis = normal - a * (normal.dot(a) / a.length_squared)
        if axis.length > NOISE:
            return Quaternion(axis.normalized(), math.pi)
    return between(a, b)


def cross(a: Vector, b: Vector) -> Vector:
    """a x b as a Vector; `Vector.cross` is typed for two dimensions too."""
    return Vector((a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x))


def turning_joints(skeleton: Skeleton, pose: Pose, goal: PositionGoal, what: str, least: int) -> list[int]:
    """Joints of the goal's chain that can turn, root first; InvalidInput if they do not fit."""
    check_pose(skeleton, pose)
    if not isinstance(goal, PositionGoal):
        raise InvalidInput(
            f"{what} takes a PositionGoal, not {type(goal).__name__}: use solve for other goals"
        )
    joints = skeleton.joints
    chain = skeleton.chain(goal.joint, goal.chain_length)
    turning = [i for i in chain if not joints[i].locked]
    if len(turning) < least:
        raise InvalidInput(
            f"{what}: the chain of joint '{goal.joint}' has {len(turning)} joints that can turn, but {least} "
            f"are needed; unlock a joint (stiffness below 1, max_step above 0) or make chain_length larger"
        )
    first = turning[-2] if least == 2 else turning[0]
    for i in chain[chain.index(first) :]:
        if joints[i].coupled_offsets:
            raise InvalidInput(
                f"{what}: joint '{joints[i].name}' has coupled offsets, so the chain's lengths change: "
                "use solve"
            )
    for i in chain[chain.index(first) + 1 :]:
        if not joints[i].inherit_rotation:
            raise InvalidInput(
                f"{what}: joint '{joints[i].name}' does not inherit rotation, so the bones below do "
                f"not carry it rigidly: use solve"
            )
    return turning


def inside_limits(skeleton: Skeleton, pose: Pose, chain: Sequence[int]) -> Pose:
    """Clamp the joints of `chain` to their limits; a pose inside its limits is returned itself."""
    changed = {}
    for i in chain:
        rotation = skeleton.joints[i].allowed(pose.rotations[i])
        if rotation is not pose.rotations[i]:
            changed[i] = rotation
    return pose.with_rotations(changed) if changed else pose


def seen_joint(skeleton: Skeleton, pose: Pose, transforms: Sequence[Transform], i: int) -> Seen:
    rotation, place = pose.rotations[i], transforms[i]
    base = (place.rotation @ rotation.conjugated()).normalized()
    return Seen(i, skeleton.joints[i], rotation, place.translation, base, place.rotation)


def single_pass_result(
    skeleton: Skeleton, pose: Pose, goal: PositionGoal, position_tolerance: float
) -> SolveResult:
    (error,) = measure_goals(skeleton, (goal,), *placed_joints(skeleton, pose))
    met = error.distance <= position_tolerance
    return SolveResult(pose, SolveStatus.CONVERGED if met else SolveStatus.STALLED, 1, (error,))
