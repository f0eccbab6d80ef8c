"""The closing phase: its derivatives, and that it ends nearer, inside the limits and with little motion."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from chains import FLOAT32, legal_pose, random_rotation, random_skeleton, straight, tail, tip
from mathutils import Quaternion, Vector

from ccd_rig.errors import InvalidInput
from ccd_rig.goals import BalanceGoal, DirectionGoal, Goal, OrientationGoal, PoleGoal, PositionGoal, measure
from ccd_rig.kinematics import LEVER, Kinematics
from ccd_rig.limits import Cone, EulerBox, Hinge, Reversed, Slide, SwingTwist, violation
from ccd_rig.quaternions import angle_between
from ccd_rig.refine import refine, refined
from ccd_rig.residuals import rotation_vector
from ccd_rig.skeleton import Joint, Pose, Skeleton, forward_kinematics

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
    from ccd_rig.goals import centre_of_mass

    axes = rng.choice(((True, True, False), (True, False, False), (True, True, True)))
    return BalanceGoal(centre_of_mass(skeleton, transforms), axes, weight)


def varied(rng: random.Random, count: int) -> Skeleton:
    """A random tree, some joints of which slide or do not inherit rotation; all have mass."""
    skeleton = random_skeleton(rng, count, tree=rng.random() < 0.5)
    changes = {}
    for joint in skeleton.joints:
        fields: dict[str, object] = {"mass": rng.uniform(0.1, 2.0), "inherit_rotation": rng.random() > 0.2}
        if rng.random() < 0.3:
            fields["slide"] = Slide([rng.gauss(0.0, 1.0) for _ in range(3)], -0.5, 0.5)
        changes[joint.name] = fields
    return skeleton.replace(changes)


def shifted(skeleton: Skeleton, pose: Pose, rng: random.Random) -> Pose:
    """Slides anywhere inside their ranges."""
    found = []
    for joint in skeleton.joints:
        slide = joint.slide
        found.append(rng.uniform(slide.lower, slide.upper) * Vector(slide.axis) if slide else Vector())
    return Pose(pose.rotations, tuple(found))


def weighted(skeleton: Skeleton, pose: Pose, goals: list[Goal], reach: float) -> float:
    """The weighted square error, worked out from forward kinematics alone."""
    transforms = forward_kinematics(skeleton, pose)
    total = 0.0
    for goal in goals:
        error = measure(goal, skeleton, transforms)
        total += goal.weight * ((error.distance / reach) ** 2 + (LEVER * error.angle) ** 2)
    return total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_slope_is_the_finite_difference(kind: str, seed: int) -> None:
    """Central differences of the residual agree with the slope, whatever the tree."""
    rng = random.Random(f"{kind} {seed}")
    skeleton = varied(rng, rng.randrange(3, 9))
    while kind == "pole" and len(skeleton.chain(len(skeleton) - 1)) < 2:
        skeleton = varied(rng, 6)
    goals = [goal_of(kind, skeleton, rng), goal_of("position", skeleton, rng)]
    kinematics = Kinematics(skeleton, goals, limits_of(skeleton))
    state = kinematics.take(shifted(skeleton, legal_pose(skeleton, rng), rng))
    slope = kinematics.jacobian(kinematics.residual(state))
    assert slope.shape[1] == kinematics.columns
    small = 1e-6
    for column in range(kinematics.columns):
        step = np.zeros(kinematics.columns)
        step[column] = small
        after = kinematics.residual(kinematics.moved_by(state, step)).values
        before = kinematics.residual(kinematics.moved_by(state, -step)).values
        np.testing.assert_allclose((after - before) / (2.0 * small), slope[:, column], rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_misses_are_what_the_goals_measure(kind: str) -> None:
    for seed in range(40):
        rng = random.Random(f"{kind} {seed}")
        skeleton = varied(rng, 6)
        pose = shifted(skeleton, legal_pose(skeleton, rng), rng)
        goal = goal_of(kind, skeleton, rng)
        kinematics = Kinematics(skeleton, [goal], limits_of(skeleton))
        distance, angle = kinematics.residual(kinematics.take(pose)).misses[0]
        error = measure(goal, skeleton, forward_kinematics(skeleton, pose))
        assert distance == pytest.approx(error.distance, abs=FLOAT32 * 10.0)
        assert angle == pytest.approx(error.angle, abs=1e-4)  # float32 cannot tell small angles of a pole's bend


def test_random_skeletons_never_worse_and_inside_limits() -> None:
    """Reachable and unreachable goals of every kind: nearer or the same, no limit broken, every number finite."""
    met = 0
    for seed in range(250):
        rng = random.Random(seed)
        skeleton = varied(rng, rng.randrange(2, 9))
        wanted = shifted(skeleton, legal_pose(skeleton, rng), rng)
        kinds = [k for k in KINDS if k != "pole" or len(skeleton.chain(len(skeleton) - 1)) > 1]
        goals = [goal_of(rng.choice(kinds), skeleton, rng, wanted) for _ in range(rng.randrange(1, 4))]
        if rng.random() < 0.3:
            goals.append(PositionGoal(skeleton.joints[-1].name, Vector((30.0, 20.0, 10.0))))
        limits = limits_of(skeleton)
        kinematics = Kinematics(skeleton, goals, limits)
        start = kinematics.clamped(shifted(skeleton, legal_pose(skeleton, rng), rng))
        before = weighted(skeleton, start, goals, kinematics.reach)
        found = refined(kinematics, start, 1e-4, 1e-3, 60)
        after = weighted(skeleton, found.pose, goals, kinematics.reach)
        assert after <= before + FLOAT32 * max(1.0, before), seed
        met += found.met
        for i, joint in enumerate(skeleton.joints):
            rotation = found.pose.rotations[i]
            assert all(math.isfinite(part) for part in (*rotation, *found.pose.translations[i]))
            if i not in kinematics.moved:
                assert rotation == start.rotations[i]
                continue
            if joint.limit is not None:
                assert violation(joint.limit, rotation) <= FLOAT32
            if joint.slide is not None:
                along = Vector(joint.slide.axis).dot(found.pose.translations[i])
                assert joint.slide.lower - FLOAT32 <= along <= joint.slide.upper + FLOAT32
    assert met > 60
