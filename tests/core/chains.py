"""Chains and random input for the core tests. Lengths in model units, angles in radians."""

from __future__ import annotations

import math
import random

from mathutils import Quaternion, Vector

from ccd_rig.limits.shapes import Cone, Ellipse, EulerBox, Hinge, Limit, Slide, SwingTwist, sample
from ccd_rig.skeleton.joints import CoupledOffset, Joint, Skeleton, shift_of
from ccd_rig.skeleton.kinematics import Transform, forward_kinematics
from ccd_rig.skeleton.pose import Pose
from ccd_rig.skeleton.pose_library import PoseEntry

EXACT = 1e-6
"""What float32 arithmetic on numbers near 1 must give."""
FLOAT32 = 1e-5
"""What remains after tens of float32 operations, relative to the size of the model; radians for limits."""
SOLVE = 1e-3
"""Position tolerance of the solves, in lengths of one bone."""

Z = Vector((0.0, 0.0, 1.0))


def straight(count: int, limit: Limit | None = None, **fields: object) -> Skeleton:
    """`count` joints of length 1, one on the tail of the other, along +Y; named joint0, joint1, ..."""
    return Skeleton(
        Joint(f"joint{i}", i - 1, (0.0, 1.0 if i else 0.0, 0.0), limit=limit, **fields) for i in range(count)
    )


def tip(skeleton: Skeleton) -> str:
    """Name of the last joint."""
    return skeleton.joints[-1].name


def random_rotation(rng: random.Random) -> Quaternion:
    """Uniform over all rotations."""
    return Quaternion([rng.gauss(0.0, 1.0) for _ in range(4)]).normalized()


def random_limit(rng: random.Random) -> Limit | None:
    """Any kind of limit, wide or narrow, also ranges that leave out the rest pose."""
    kind = rng.randrange(5)
    if kind == 0:
        return None
    axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
    if kind == 1:
        lower = rng.uniform(-3.5, 3.0)
        return Hinge(axis, lower, lower + rng.uniform(0.05, 4.0))
    twist = None if rng.random() < 0.3 else (-rng.uniform(0.0, 2.0), rng.uniform(0.0, 2.0))
    if kind == 2:
        return SwingTwist(
            Cone(rng.uniform(0.05, 2.8)), twist, axis if rng.random() < 0.5 else (0.0, 1.0, 0.0)
        )
    if kind == 3:
        sides = [rng.uniform(0.02, 2.5) for _ in range(4)]
        return SwingTwist(Ellipse(-sides[0], sides[1], -sides[2], sides[3]), twist)
    lower = [rng.uniform(-3.0, 1.0) for _ in range(3)]
    return EulerBox(
        rng.choice(("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")),
        lower,
        [low + rng.uniform(0.05, 2.5) for low in lower],
    )


def random_skeleton(rng: random.Random, count: int, tree: bool = False) -> Skeleton:
    """Joints with mixed limits, crooked rest rotations and unequal bones."""
    joints = []
    for i in range(count):
        parent = i - 1 if not tree or i < 2 else rng.randrange(max(0, i - 4), i)
        length = rng.uniform(0.2, 2.0)
        offset = (
            (0.0, joints[parent].length, 0.0) if parent >= 0 else [rng.uniform(-1.0, 1.0) for _ in range(3)]
        )
        joints.append(
            Joint(
                f"joint{i}",
                parent,
                offset,
                random_rotation(rng) if rng.random() < 0.5 else Quaternion(),
                length,
                random_limit(rng),
                stiffness=rng.choice((0.0, 0.0, 0.0, 0.5, 1.0)),
                max_step=rng.choice((math.pi, math.pi, 0.3)),
                inherit_rotation=rng.random() > 0.05,
            )
        )
    return Skeleton(joints)


def random_slides(rng: random.Random) -> tuple[Slide, ...]:
    """None to three slides at right angles to each other."""
    turn = random_rotation(rng)
    axes = [turn @ Vector(axis) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))]
    return tuple(
        Slide(axis, rng.uniform(-0.5, 0.0), rng.uniform(0.0, 0.5)) for axis in axes[: rng.randrange(4)]
    )


def random_couplings(skeleton: Skeleton, rng: random.Random) -> Skeleton:
    """Coupled offsets, none to two on each joint, where a hinge carries it."""
    changes = {}
    for i, joint in enumerate(skeleton.joints):
        carrying = [skeleton.joints[k] for k in skeleton.chain(i)]
        hinges = [each for each in carrying if is_coupling(each.limit)]
        offsets = [random_offset(rng.choice(hinges), rng) for _ in range(rng.randrange(3) if hinges else 0)]
        changes[joint.name] = {"coupled_offsets": tuple(offsets)}
    return skeleton.replace(changes)


def is_coupling(limit: Limit | None) -> bool:
    """Whether coupled offsets may follow a joint of this limit."""
    return isinstance(limit, Hinge) and limit.upper - limit.lower < 2.0 * math.pi


def random_offset(hinge: Joint, rng: random.Random) -> CoupledOffset:
    """A table over part of the hinge's range, or past it."""
    count = rng.randrange(2, 6)
    angles = [hinge.limit.lower + rng.uniform(-0.2, 0.2)]
    for _ in range(count - 1):
        angles.append(angles[-1] + rng.uniform(0.2, 1.0))
    shifts = [rng.uniform(-0.3, 0.3) for _ in range(count)]
    slopes = None if rng.random() < 0.7 else [rng.uniform(-0.5, 0.5) for _ in range(count)]
    return CoupledOffset(hinge.name, [rng.gauss(0.0, 1.0) for _ in range(3)], angles, shifts, slopes)


def legal_pose(skeleton: Skeleton, rng: random.Random) -> Pose:
    """Every joint somewhere inside its limit."""
    return Pose(
        tuple(sample(joint.limit, rng) for joint in skeleton.joints), Pose.rest(skeleton).translations
    )


def shifted(skeleton: Skeleton, pose: Pose, rng: random.Random) -> Pose:
    """The same with slides anywhere inside their ranges."""
    found = []
    for joint in skeleton.joints:
        found.append(shift_of(joint, [rng.uniform(slide.lower, slide.upper) for slide in joint.slides]))
    return Pose(pose.rotations, tuple(found))


def tail(skeleton: Skeleton, pose: Pose, name: str | None = None) -> Vector:
    """Where the tail of a joint's bone is in model space; of the last one without `name`."""
    i = skeleton.index(name) if name else len(skeleton) - 1
    return forward_kinematics(skeleton, pose)[i].point(Vector((0.0, skeleton.joints[i].length, 0.0)))


def desired_turn(skeleton: Skeleton, pose: Pose, i: int, target: Vector) -> float:
    """The angle by which joint i would turn the last bone's tail to a target if it had no range, radians."""
    joint = forward_kinematics(skeleton, pose)[i]
    arm, way = tail(skeleton, pose) - joint.translation, target - joint.translation
    limit = skeleton.joints[i].limit
    if isinstance(limit, Hinge):
        axis = joint.rotation @ Vector(limit.axis)  # the same before and after the hinge's own turn
        arm, way = (each - each.dot(axis) * axis for each in (arm, way))
    return math.atan2(arm.cross(way).length, arm.dot(way))


def bones(skeleton: Skeleton, pose: Pose) -> dict[str, Transform]:
    """Frame in model space of each bone by name."""
    places = forward_kinematics(skeleton, pose)
    return {joint.name: place for joint, place in zip(skeleton.joints, places, strict=True)}


def entry_from_pose(name: str, skeleton: Skeleton, pose: Pose) -> PoseEntry:
    """The rotations of all joints of a pose as an entry of a pose library."""
    return PoseEntry(name, {joint.name: q for joint, q in zip(skeleton.joints, pose.rotations, strict=True)})
