# SPDX-License-Identifier: GPL-3.0-or-later
"""What a group of constraints asks for, in a model in which balances count along its own axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from mathutils import Matrix, Quaternion

from ...errors import RigError
from ...goals import Goal
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ..properties.constraint_values import Constraint, Kind
from ..scene.evaluation import FrameSample
from .balance import level, rotate_back, rotate_model
from .constraint_goals import goals


@dataclass(frozen=True)
class LevelModel:
    """A group of constraints in a model in which balances count along the model's axes (`level`).

    Attributes:
        plain: the skeleton before it was turned.
        rotation: what turned it.
        skeleton, pose: the same turned.
        goals: of the constraints, in the turned model.
        owners: per goal its constraint.
    """

    plain: Skeleton
    rotation: Quaternion
    skeleton: Skeleton
    pose: Pose
    goals: list[Goal]
    owners: list[int]

    def back(self, pose: Pose) -> Pose:
        """A pose of the turned model as one of the plain one."""
        return rotate_back(self.plain, pose, self.rotation)


def level_model(
    sample: FrameSample, constraints: Mapping[int, Constraint], joints: Collection[int], start: Pose
) -> LevelModel:
    """The model in which a group of constraints is solved from a start; only these joints may move."""
    skeleton, rotation = sample.reading.skeleton, group_level(sample.matrix_world, constraints.values())
    if any(constraint.kind is Kind.BALANCE for constraint in constraints.values()):
        # A balance moves whatever carries mass and can turn: only these constraints' chains may.
        idle = {joint.name: {"stiffness": 1.0} for j, joint in enumerate(skeleton.joints) if j not in joints}
        skeleton = skeleton.replace(idle)
    model, pose = rotate_model(skeleton, start, rotation)
    asked = [
        (c, goal)
        for c, constraint in constraints.items()
        for goal in goals(model, constraint, sample.targets[c].rotated(rotation))
    ]
    return LevelModel(skeleton, rotation, model, pose, [goal for _, goal in asked], [c for c, _ in asked])


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
