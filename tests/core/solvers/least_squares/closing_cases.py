"""Random skeletons and goals for the closing phase, and how far off a pose is."""

from __future__ import annotations

import random

from chains import legal_pose, random_couplings, random_skeleton, random_slides
from mathutils import Vector

from ccd_rig.goals import (
    BalanceGoal,
    DirectionGoal,
    Goal,
    OrientationGoal,
    PoleGoal,
    PositionGoal,
    centre_of_mass,
    measure,
)
from ccd_rig.skeleton.joints import Skeleton
from ccd_rig.skeleton.kinematics import forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.least_squares.problem import LEVER

KINDS = ("position", "orientation", "direction", "pole", "balance")


def limits_of(skeleton: Skeleton) -> list[object]:
    return [joint.limit for joint in skeleton.joints]


def goal_of(kind: str, skeleton: Skeleton, rng: random.Random, pose: Pose | None = None) -> Goal:
    """A goal of a kind on a random joint; with a `pose` one that it meets."""
    joint = rng.choice(skeleton.joints)
    transforms = forward_kinematics(skeleton, pose or legal_pose(skeleton, rng))
    here = transforms[skeleton.index(joint.name)]
    weight = rng.uniform(0.5, 2.0)
    if kind == "position":
        offset = Vector([rng.uniform(-1.0, 1.0) for _ in range(3)])
        return PositionGoal(joint.name, here.point(offset), offset, weight)
    if kind == "orientation":
        return OrientationGoal(joint.name, here.rotation, weight)
    if kind == "direction":
        axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)])
        return DirectionGoal(joint.name, axis, here.rotation @ axis, weight)
    if kind == "pole":
        chain = skeleton.chain(len(skeleton) - 1)
        first = rng.randrange(len(chain) - 1)
        target = Vector([rng.uniform(-5.0, 5.0) for _ in range(3)])
        return PoleGoal(skeleton.joints[chain[first]].name, skeleton.joints[chain[-1]].name, target, weight)
    axes = rng.choice(((True, True, False), (True, False, False), (True, True, True)))
    return BalanceGoal(centre_of_mass(skeleton, transforms), axes, weight)


def varied(rng: random.Random, count: int) -> Skeleton:
    """A random tree, some joints of which slide, roll or do not inherit rotation; all have mass."""
    skeleton = random_skeleton(rng, count, tree=rng.random() < 0.5)
    changes = {}
    for joint in skeleton.joints:
        fields: dict[str, object] = {"mass": rng.uniform(0.1, 2.0), "inherit_rotation": rng.random() > 0.2}
        fields["slides"] = random_slides(rng)
        changes[joint.name] = fields
    return random_couplings(skeleton.replace(changes), rng)


def weighted(skeleton: Skeleton, pose: Pose, goals: list[Goal], reach: float) -> float:
    """The weighted square error, worked out from forward kinematics alone."""
    transforms = forward_kinematics(skeleton, pose)
    total = 0.0
    for goal in goals:
        error = measure(goal, skeleton, transforms)
        total += goal.weight * ((error.distance / reach) ** 2 + (LEVER * error.angle) ** 2)
    return total


def is_met(skeleton: Skeleton, pose: Pose, goals: list[Goal], position: float, angle: float) -> bool:
    """Whether every goal is within its tolerance."""
    transforms = forward_kinematics(skeleton, pose)
    errors = [measure(goal, skeleton, transforms) for goal in goals]
    return all(error.distance <= position and error.angle <= angle for error in errors)
