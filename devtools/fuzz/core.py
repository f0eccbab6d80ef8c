"""The solver alone: numbers that nobody would give it, and all that it offers.

Lengths from 1e-12 to 1e9 and denormals, coincident targets, ranges of no width and beyond a full turn,
weights over twelve orders of magnitude. A refusal is fine if it is a CCDRigError. A result is held against
forward kinematics and limits that are worked out here and in `angles`.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mathutils import Quaternion, Vector

from ccd_rig import (
    BalanceGoal,
    CCDRigError,
    Comfort,
    Cone,
    DirectionGoal,
    Ellipse,
    EulerBox,
    Hinge,
    Joint,
    OrientationGoal,
    PoleGoal,
    Pose,
    PositionGoal,
    Skeleton,
    Slide,
    Solver,
    SolverSettings,
    SolveStatus,
    Sweep,
    SwingTwist,
    solve,
    solve_many,
)
from devtools.fuzz import Outcome, angles

ANGLE = 5e-5
"""Radians that a limit may be broken by: rotations are single precision."""
PART = 2e-5
"""Part of a skeleton's size that two ways of forward kinematics may differ by, for the same reason."""
NOISE = 1e-10
"""Model units that count as none."""
LONGEST_WORDS = 400
"""Letters of a refusal."""

SIZES = (1.0, 1.0, 1.0, 0.01, 100.0, 1e-6, 1e-12, 1e9, 5e-324, 0.0)
STRANGE = (0.0, 1.0, -1.0, 1e-12, 1e-30, 5e-324, 1e9, 1e12, 1e30, 1e300, math.nan, math.inf, 10**400)


class Case(NamedTuple):
    """The arguments of a solve."""

    skeleton: Skeleton
    start: Pose
    goals: list[Any]
    settings: SolverSettings


def prepare() -> None:
    """A warning of NumPy is a fault."""
    warnings.simplefilter("error")


def run(seed: int) -> Outcome:
    """Draw a case, solve it alone and together with others, and judge."""
    outcome, rng = Outcome("refused"), random.Random(seed)
    try:
        case = _case(rng)
        result = solve(*case)
        again = solve(*case)
        poses = [case.start, result.pose, Pose.rest(case.skeleton)]
        many = solve_many(case.skeleton, poses, case.goals, case.settings) if rng.random() < 0.5 else None
    except CCDRigError as error:
        if len(str(error)) > LONGEST_WORDS:
            outcome.faults.append(f"a refusal of {len(str(error))} letters")
        outcome.note(str(error))
        return outcome
    outcome.kind = "solved"
    if result != again:
        outcome.faults.append("not the same twice")
    met = result.status is SolveStatus.CONVERGED
    outcome.faults += _wrong(case, result.pose, [tuple(error) for error in result.errors], met)
    outcome.note(result.pose, result.errors, result.status)
    if many is not None:
        outcome.kind = "solved, and many at once"
        for b in range(len(poses)):
            converged = many.statuses[b] is SolveStatus.CONVERGED
            pose = Pose.of_arrays(many.rotations[b], many.translations[b])
            errors = [(float(many.distances[b, g]), float(many.angles[b, g])) for g in range(len(case.goals))]
            words = _wrong(case._replace(start=poses[b]), pose, errors, converged)
            outcome.faults += [f"pose {b} of solve_many: {each}" for each in words]
        outcome.note(many.rotations.tolist(), many.distances.tolist())
    return outcome


# What is drawn ----------------------------------------------------------------------------------------------


def _case(rng: random.Random) -> Case:
    size = rng.choice(SIZES)
    count = rng.choice((1, 2, 3, 5, 8))
    joints: list[Joint] = []
    for i in range(count):
        parent = i - 1 if rng.random() < 0.8 else rng.randrange(-1, i)
        joints.append(_joint(rng, i, parent, joints, size))
    skeleton = Skeleton(joints)
    rest = Pose.rest(skeleton)
    start = rest
    if rng.random() < 0.6:
        start = Pose(tuple(_rotation(rng) for _ in joints), rest.translations)
    reach = sum(joint.length for joint in joints) or 1.0
    goals = [_goal(rng, skeleton, reach) for _ in range(rng.choice((1, 1, 2, 3)))]
    return Case(skeleton, start, goals, _settings(rng, size))


def _joint(rng: random.Random, i: int, parent: int, others: Sequence[Joint], size: float) -> Joint:
    length = size * rng.choice((1.0, 1.0, rng.uniform(0.1, 2.0), 0.0, 1e-6, 1e6))
    along = others[parent].length if parent >= 0 else 0.0
    offset = Vector((0.0, along, 0.0)) if rng.random() < 0.7 else _vector(rng, size)
    fields: dict[str, Any] = {
        "limit": _limit(rng) if rng.random() < 0.6 else None,
        "stiffness": rng.choice((0.0, 0.0, 0.5, 1.0, rng.random())),
        "max_step": rng.choice((math.pi, math.pi, 0.1, 1e-9, 0.0)),
        "mass": rng.choice((0.0, 1.0, 1e-12, 1e12)),
        "inherit_rotation": rng.random() < 0.9,
    }
    if rng.random() < 0.2:
        lower = -size * rng.random()
        upper = rng.choice((lower, lower + size, -lower))
        fields["slides"] = (Slide(tuple(_vector(rng)), lower, upper),)
    if rng.random() < 0.1:
        fields["comfort"] = Comfort(rng.choice((0.0, 0.1, math.pi)), fields["limit"])
    if rng.random() < 0.03:
        fields[rng.choice(("stiffness", "mass", "max_step"))] = rng.choice(STRANGE)
    rest = _rotation(rng) if rng.random() < 0.5 else Quaternion()
    return Joint(f"joint{i}", parent, offset, rest, length=length, **fields)


def _limit(rng: random.Random) -> Any:
    kind = rng.randrange(6)
    if kind == 0:
        return Hinge(tuple(_vector(rng)), *_range(rng))
    if kind == 1:
        return SwingTwist(Cone(rng.choice((0.0, 1e-9, 0.5, 3.0, math.pi))), _maybe_range(rng))
    if kind == 2:
        sides = [rng.choice((0.0, 1e-9, rng.uniform(0.0, math.pi), math.pi)) for _ in range(4)]
        ellipse = Ellipse(-sides[0], sides[1], -sides[2], sides[3])
        return SwingTwist(ellipse, _maybe_range(rng))
    if kind == 3:
        return SwingTwist(None, _range(rng))
    ranges = [_range(rng) for _ in range(3)]
    order = rng.choice(("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"))
    return EulerBox(order, [a for a, _ in ranges], [b for _, b in ranges])


def _range(rng: random.Random) -> tuple[float, float]:
    if rng.random() < 0.03:
        return rng.choice(STRANGE), rng.choice(STRANGE)
    lower = rng.choice((0.0, -math.pi, -2.0 * math.pi, rng.uniform(-7.0, 7.0), rng.uniform(-90.0, 90.0)))
    return lower, lower + rng.choice((0.0, 1e-12, 1e-6, rng.uniform(0.0, 3.0), math.pi, 2.0 * math.pi, 9.0))


def _maybe_range(rng: random.Random) -> tuple[float, float] | None:
    return None if rng.random() < 0.5 else _range(rng)


def _goal(rng: random.Random, skeleton: Skeleton, reach: float) -> Any:
    joint = rng.choice(skeleton.joints).name
    weight = rng.choice((1.0, 1.0, 1e-9, 1e-4, 1e4, 1e9, 1e12))
    common: dict[str, Any] = {"weight": weight, "priority": rng.choice((0, 0, 0, 1, 7))}
    target = _vector(rng, reach * rng.choice((0.0, 1e-9, 0.3, 1.0, 1.0, 3.0, 1e6)))
    kind = rng.randrange(7)
    if kind == 0:
        return OrientationGoal(joint, _rotation(rng), chain_length=rng.choice((0, 1, 3)), **common)
    if kind == 1:
        axis, to = _vector(rng), _vector(rng)
        return DirectionGoal(joint, axis, rng.choice((to, axis, -axis)), **common)
    if kind == 2:
        root = rng.choice(skeleton.joints).name
        return PoleGoal(
            root, joint, target, angle=rng.choice((0.0, math.pi, rng.uniform(-9.0, 9.0))), **common
        )
    if kind == 3:
        axes = rng.choice(((True, True, False), (True, True, True), (False, False, True)))
        return BalanceGoal(target, axes, **common)
    return PositionGoal(
        joint,
        target,
        rng.choice((None, None, _vector(rng, reach), Vector())),
        chain_length=rng.choice((0, 0, 1, 2, 99)),
        max_extension=rng.choice((1.0, 1.0, 0.9, 1e-9)),
        extension_joints=rng.choice((0, 0, 2)),
        two_bone_tip=rng.random() < 0.15,
        **common,
    )


def _settings(rng: random.Random, size: float) -> SolverSettings:
    fields: dict[str, Any] = {
        "solver": rng.choice(list(Solver)),
        "max_iterations": rng.choice((1, 5, 30)),
        "position_tolerance": max(size, 1e-9) * rng.choice((1e-4, 1e-4, 1e-7, 1e3)),
        "angle_tolerance": rng.choice((1e-3, 1e-3, 1e-7, 10.0)),
        "sweep": rng.choice(list(Sweep)),
        "step_fraction": rng.choice((0.9, 0.1, 1.0, 1.3)),
        "step_feedback": rng.choice((0.0, 1.0)),
        "error_reduction": rng.choice((0.0, 0.0, 0.95, 0.999)),
        "stall_threshold": rng.choice((1e-6, 0.0, 1.0)),
        "restarts": rng.choice((0, 0, 2)),
        "seed": rng.choice((0, -5, 10**12)),
        "comfort": rng.random() < 0.7,
    }
    if rng.random() < 0.03:
        fields[rng.choice(list(fields))] = rng.choice(STRANGE)
    return SolverSettings(**fields)


def _vector(rng: random.Random, size: float = 1.0) -> Vector:
    way = rng.choice(((1, 0, 0), (0, 1, 0), (0, 0, -1), None))
    vector = Vector(way or [rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
    return Vector([float(size) * x for x in vector])


def _rotation(rng: random.Random) -> Quaternion:
    corners = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))
    if rng.random() < 0.2:
        return Quaternion(rng.choice(corners))
    return Quaternion([rng.gauss(0.0, 1.0) for _ in range(4)]).normalized()


# How it is judged -------------------------------------------------------------------------------------------


def _wrong(case: Case, pose: Pose, errors: Sequence[tuple[float, float]], met: bool) -> list[str]:
    """Return the faults of a pose."""
    numbers = [x for each in (*pose.rotations, *pose.translations) for x in each]
    if not np.isfinite(numbers).all() or not np.isfinite(errors).all():
        return ["not finite"]
    faults = list(_limits_broken(case, pose))
    heads, axes = _forward(case.skeleton, pose)
    size = max((float(np.abs(head).max()) for head in heads), default=0.0)
    size += sum(joint.length for joint in case.skeleton.joints)
    for goal, (distance, _) in zip(case.goals, errors, strict=True):
        if isinstance(goal, PositionGoal):
            j = case.skeleton.index(goal.joint)
            point = goal.offset if goal.offset is not None else (0.0, case.skeleton.joints[j].length, 0.0)
            off = float(np.linalg.norm(heads[j] + axes[j] @ np.array(point) - np.array(goal.target)))
            room = NOISE + PART * (size + float(np.linalg.norm(goal.target)) + float(np.linalg.norm(point)))
            if abs(off - distance) > room:
                faults.append(f"{goal.name}: {distance:g} off is told, {off:g} is measured")
    tolerances = case.settings.position_tolerance, case.settings.angle_tolerance
    within = all(d <= 1.01 * tolerances[0] + NOISE and a <= tolerances[1] + ANGLE for d, a in errors)
    if met and not within:
        faults.append("CONVERGED, but goals are missed")
    return faults


def _limits_broken(case: Case, pose: Pose) -> Any:
    """Joints that were turned to outside their limits."""
    for joint, rotation, start in zip(
        case.skeleton.joints, pose.rotations, case.start.rotations, strict=True
    ):
        if joint.limit is None or rotation == start:
            continue  # what no goal turns stays as it was
        off = _outside(joint.limit, tuple(rotation))
        if off > ANGLE:
            words = f"'{joint.name}' is outside its limit by {off:.2g}: {joint.limit}"
            yield words[:LONGEST_WORDS]
        for slide in joint.slides:
            shift = pose.translations[case.skeleton.index(joint.name)]
            along = math.fsum(a * b for a, b in zip(slide.axis, shift, strict=True))
            room = NOISE + 1e-5 * (abs(slide.lower) + abs(slide.upper) + shift.length)
            if not slide.lower - room <= along <= slide.upper + room:
                yield f"'{joint.name}' slides to {along:g}, outside {slide.lower:g} to {slide.upper:g}"


def _outside(limit: Any, rotation: Sequence[float]) -> float:
    if isinstance(limit, Hinge):
        return angles.hinge(rotation, limit.axis, limit.lower, limit.upper)
    if isinstance(limit, EulerBox):
        return angles.euler(rotation, limit.order, limit.lower, limit.upper)
    off = 0.0
    if limit.twist is not None:
        off = angles.twist_range(rotation, *limit.twist)
    if isinstance(limit.swing, Cone):
        off = max(off, angles.cone(rotation, limit.swing.radius))
    elif limit.swing is not None:
        swing = limit.swing
        sides = (swing.x_lower, swing.x_upper, swing.z_lower, swing.z_upper)
        off = max(off, angles.ellipse(rotation, sides))
    return off


def _forward(skeleton: Skeleton, pose: Pose) -> tuple[list[Any], list[Any]]:
    """Heads and 3x3 axes of all joints, in double precision."""
    heads: list[Any] = []
    axes: list[Any] = []
    for joint, rotation, shift in zip(skeleton.joints, pose.rotations, pose.translations, strict=True):
        rest = np.array(angles.matrix(joint.rest_rotation))
        head = np.array(joint.offset, dtype=float) + rest @ np.array(shift, dtype=float)
        if joint.parent >= 0:
            above = axes[joint.parent]
            if joint.inherit_rotation:
                head, rest = above @ head, above @ rest
            else:
                head = above @ head
            head = heads[joint.parent] + head
        heads.append(head)
        axes.append(rest @ np.array(angles.matrix(rotation)))
    return heads, axes
