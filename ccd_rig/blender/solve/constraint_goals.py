# SPDX-License-Identifier: GPL-3.0-or-later
"""The goals of a constraint at one frame, in armature space."""

from __future__ import annotations

from mathutils import Vector

from ...errors import RigError
from ...goals import BalanceGoal, DirectionGoal, Goal, OrientationGoal, PoleGoal, PositionGoal
from ...skeleton.joints import Skeleton
from ..properties.constraint_values import Constraint
from ..scene.targets import AXES, TargetSample


def chain_joints(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints that the constraint can move, root first."""
    chain = skeleton.chain(constraint.tip, constraint.chain_length)
    return tuple(j for j in chain if not skeleton.joints[j].locked)


def goals(skeleton: Skeleton, constraint: Constraint, aim: TargetSample) -> list[Goal]:
    """The goals of a constraint, at least one.

    Priorities are doubled, so that a pole stands between its own position and what is served after that.

    Raises:
        RigError: there is no bend for a pole; names the constraint.
    """
    joint, length, weight = constraint.tip, constraint.chain_length, constraint.weight
    priority = 2 * constraint.priority
    if constraint.kind == "BALANCE":
        return [BalanceGoal(aim.point, constraint.balance_axes, weight, priority)]
    found: list[Goal] = []
    if constraint.use_position:
        end = None if constraint.use_tail else Vector((0.0, 0.0, 0.0))
        window = (constraint.max_extension, constraint.extension_joints, constraint.method == "TWO_BONE_TIP")
        found.append(PositionGoal(joint, aim.point, end, weight, priority, length, *window))
    weight *= constraint.rotation_weight
    if aim.rotation is not None:
        found.append(OrientationGoal(joint, aim.rotation, weight, priority, length))
    if aim.direction is not None:
        axis = AXES[constraint.bone_axis]
        found.append(DirectionGoal(joint, axis, aim.direction, weight, priority, length))
    if aim.pole is not None:
        root, last = pole_chain(skeleton, constraint)
        found.append(PoleGoal(root, last, aim.pole, constraint.weight, priority + 1))
    return found


def pole_chain(skeleton: Skeleton, constraint: Constraint) -> tuple[str, str]:
    """Names of the first joint of the chain that can turn, and of the last one that bends.

    Raises:
        RigError: these are not two joints, so that there is no bend.
    """
    chain = skeleton.chain(constraint.tip, constraint.chain_length)
    if not constraint.use_tail:  # the tip hangs on the end that is brought to the target
        chain = chain[:-1]
    first = next((j for j in chain if not skeleton.joints[j].locked), chain[0] if chain else -1)
    if not chain or first == chain[-1]:
        bones = "two bones that can turn" if constraint.use_tail else "two bones before its last one"
        raise RigError(
            f"Constraint '{constraint.name}': a pole needs a chain of {bones}: make the chain longer, or "
            "clear the pole target"
        )
    return skeleton.joints[first].name, skeleton.joints[chain[-1]].name


# Balance in a turned model --------------------------------------------------------------------------
