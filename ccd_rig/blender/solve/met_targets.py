# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets that a pose meets: the way back from FK to IK."""

from __future__ import annotations

from collections.abc import Sequence

from mathutils import Quaternion, Vector

from ...goals import centre_of_mass
from ...kernel import POLE_NOISE
from ...skeleton.bends import chain_bend
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import Transform, forward_kinematics
from ..properties.constraint_kinds import effector, pole_goal, rotation_chain
from ..properties.constraint_values import AXES, Constraint, TargetSample
from ..scene.evaluation import FrameSample
from .methods import eased_point


def met_targets(sample: FrameSample, constraints: Sequence[Constraint]) -> tuple[TargetSample, ...]:
    """The targets of each constraint that the base pose of a frame meets, in armature space.

    Components without a goal keep their value, and so does the pole of a chain without a clear bend.
    """
    skeleton, pose = sample.reading.skeleton, sample.reading.pose
    transforms = forward_kinematics(skeleton, pose)
    met = []
    for constraint, present in zip(constraints, sample.targets, strict=True):
        goal = _met(skeleton, transforms, constraint, present)
        if constraint.method == "TWO_BONE":
            goal = goal._replace(point=eased_point(skeleton, pose, constraint, goal))
        met.append(goal)
    return tuple(met)


def _met(
    skeleton: Skeleton, transforms: Sequence[Transform], constraint: Constraint, present: TargetSample
) -> TargetSample:
    constraint = present.settings_of(constraint)
    if constraint.kind.balances:
        centre, axes = centre_of_mass(skeleton, transforms), constraint.balance_axes
        components = zip(centre, present.point, axes, strict=True)
        balanced = Vector([new if counts else old for new, old, counts in components])
        return present._replace(point=balanced)
    point = present.point
    if constraint.use_position:
        point = transforms[skeleton.index(constraint.tip)].point(effector(skeleton, constraint))
    rotation, direction = present.rotation, present.direction
    if rotation is not None or direction is not None:
        turned = transforms[skeleton.index(rotation_chain(skeleton, constraint)[0])].rotation
        rotation = None if rotation is None else turned
        direction = None if direction is None else turned @ AXES[constraint.bone_axis]
    pole = present.pole
    if pole is not None:
        pole = _met_pole(skeleton, transforms, constraint, pole)
    return present._replace(point=point, rotation=rotation, direction=direction, pole=pole)


def _met_pole(
    skeleton: Skeleton, transforms: Sequence[Transform], constraint: Constraint, present: Vector
) -> Vector:
    """A pole on the side of the bend, at its present distance from the line, or half the line's length."""
    goal = pole_goal(skeleton, constraint, present)
    heads, end, axis, scale = goal.placed(skeleton, transforms)
    bend = chain_bend(heads, end, axis, scale)
    if bend.length <= POLE_NOISE * scale:
        return present
    line = end - heads[0]
    along = line.normalized()
    side = present - heads[0]
    away = (side - along * side.dot(along)).length
    side = Quaternion(along, -goal.angle) @ (bend - along * bend.dot(along))
    return heads[0] + 0.5 * line + side.normalized() * max(away, 0.5 * line.length)
