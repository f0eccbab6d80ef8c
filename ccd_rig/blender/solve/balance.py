# SPDX-License-Identifier: GPL-3.0-or-later
"""A model turned so that balance, which counts along the world's axes, counts along its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mathutils import Matrix, Quaternion, Vector

from ...errors import RigError
from ...maths.rotations import between
from ...skeleton.joints import Joint, Skeleton
from ..properties.constraint_values import Constraint, Kind
from ..scene.targets import AXES

STRAIGHT = 1e-7
"""Radians: model and world agree, but for float32."""


def level(matrix_world: Any, axes: Sequence[bool]) -> Quaternion:
    """The turn of the model after which the world's `axes` of a centre of mass are right if the model's are.

    With one axis that counts, the points that are right make a plane, with two a line; `matrix_world` (from
    armature space to the world; it may scale, shear and mirror) takes it from there to here. A plane or a
    line is turned to where `BalanceGoal` has it. With all three there is one point, and nothing to turn.
    """
    if all(axes):
        return Quaternion()
    linear = matrix_world.to_3x3()
    if sum(axes) == 1:
        k = axes.index(True)
        world_axis = linear.transposed() @ AXES[f"POS_{'XYZ'[k]}"]  # the plane's normal
    else:
        k = axes.index(False)
        world_axis = linear.inverted() @ AXES[f"POS_{'XYZ'[k]}"]  # along the line
    model_axis = AXES[f"POS_{'XYZ'[k]}"]
    side = world_axis if world_axis.dot(model_axis) >= 0.0 else -world_axis
    turn = between(side.normalized(), model_axis)
    return turn if Vector(turn[1:]).length > STRAIGHT else Quaternion()


def group_level(matrix_world: Matrix, constraints: Iterable[Constraint]) -> Quaternion:
    """The rotation of the model after which all balances of a group count along its axes (`level`)."""
    balances = [constraint for constraint in constraints if constraint.kind is Kind.BALANCE]
    if not balances:
        return Quaternion()
    rotation = level(matrix_world, balances[0].balance_axes)
    for other in balances[1:]:
        if level(matrix_world, other.balance_axes) != rotation:
            raise RigError(
                f"Constraint '{other.name}' balances along other axes than '{balances[0].name}', while "
                "the armature object is turned: give both the same axes, or clear the object's rotation"
            )
    return rotation


def rotate_skeleton(skeleton: Skeleton, turn: Quaternion) -> Skeleton:
    """The same skeleton in a model that is turned about its origin."""
    joints = []
    for joint in skeleton.joints:
        if joint.parent == -1:
            rest = (turn @ joint.rest_rotation).normalized()
            joint = replace(joint, offset=turn @ joint.offset, rest_rotation=rest)
        elif not joint.inherit_rotation:
            undo = _undo_rotation(joint, turn)
            slides = tuple(replace(each, axis=tuple(undo @ Vector(each.axis))) for each in joint.slides)
            offsets = tuple(
                replace(each, axis=tuple(undo @ Vector(each.axis))) for each in joint.coupled_offsets
            )
            rest = (turn @ joint.rest_rotation).normalized()
            joint = replace(joint, rest_rotation=rest, slides=slides, coupled_offsets=offsets)
        joints.append(joint)
    return Skeleton(joints)


def _undo_rotation(joint: Joint, turn: Quaternion) -> Quaternion:
    """What undoes the turn in the rest axes of a joint whose rest, but not whose shift, is the model's.

    With R_p' = T R_p and rest' = T rest, T R_p rest t = R_p' rest' t' for t' = rest^-1 T^-1 rest t.
    """
    rest = joint.rest_rotation
    return rest.inverted() @ turn.inverted() @ rest
