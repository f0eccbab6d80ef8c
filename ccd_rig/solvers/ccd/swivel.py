"""Whole chains turned to their poles, their ends left where they are.

A pole near a straight chain wins less than the inertia of a pass, and least squares see a bend that any small
step reverses. What it takes is known exactly: a rotation of the root about the line from its head to the
chain's end (the swivel angle, Tolani, Goswami & Badler 2000).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mathutils import Vector

from ...limits.shapes import Hinge
from ...skeleton.bends import BEND_RANGE, pole_bend
from .effectors import PoleEffector
from .working_pose import WorkingPose

BACKWARD = 2.0
"""Ranges within which a chain that bends against its own axis is taken to the other side, see `mirror`."""


def poles_of(working: WorkingPose, goals: Sequence[int]) -> list[PoleEffector]:
    """The effectors of these goals that are poles."""
    return [effector for k in goals if isinstance(effector := working.effectors[k], PoleEffector)]


def swivel(working: WorkingPose, poles: Sequence[PoleEffector]) -> None:
    """Turns the roots of chains about their lines, to the sides of their poles.

    Nothing else serves a pole, so stiff joints turn as far as it takes too.
    """
    for effector in poles:
        for root in effector.moving_joints:
            points = _points(working, effector)
            line = points[-1] - points[0]
            effector.recompute(working)
            working.turn(root, line, effector.pole_bend.swivel(line))
    working.recompute()


def mirror(working: WorkingPose, poles: Sequence[PoleEffector]) -> bool:
    """Takes the bends of nearly straight chains half round their lines; whether there are any.

    Only those that point away from their poles, and would point there then. Each bone swings without roll.
    """
    found = [_mirror(working, effector) for effector in poles if _may_bend(working, effector)]
    if any(found):
        working.recompute()
    return any(found)


def _points(working: WorkingPose, effector: PoleEffector) -> list[Vector]:
    """The heads of the chain's joints and its end, from valid transforms."""
    tip = effector.chain[-1]
    working.update_to(tip)
    heads = [working.heads[i] for i in effector.chain]
    return [*heads, heads[-1] + working.frames[tip] @ effector.end]


def _may_bend(working: WorkingPose, effector: PoleEffector) -> bool:
    """Whether every joint of the chain turns freely for the goals that are active, inside its limit."""
    joints = working.joints
    return all(
        i in working.movable
        and joints[i].stiffness == 0.0
        and joints[i].max_step >= math.pi
        and joints[i].inherit_rotation
        for i in effector.chain
    )


def _mirror(working: WorkingPose, effector: PoleEffector) -> bool:
    chain, own = effector.chain, effector.axis
    points = _points(working, effector)
    line = points[-1] - points[0]
    if line.length == 0.0:
        return False
    unit = line.normalized()
    arms = [point - points[0] for point in points]
    along = [arm.dot(unit) * unit for arm in arms]
    offsets = [arm - part for arm, part in zip(arms, along, strict=True)]
    axis = working.frames[own.joint] @ own.axis
    forward: Any = unit.cross(axis)  # a number only for two-dimensional vectors, which these are not
    backward = sum(offsets, Vector()).dot(forward) < 0.0
    longest = (BACKWARD if backward else 1.0) * BEND_RANGE * own.scale
    if math.fsum(offset.length for offset in offsets) >= longest:
        return False
    mirrored = [points[0] + part - offset for part, offset in zip(along, offsets, strict=True)]
    now, then = (
        pole_bend(heads, points[-1], effector.target, axis, own.scale, effector.angle)
        for heads in (points[:-1], mirrored[:-1])
    )
    if then.weight == 0.0 or abs(now.swivel(line)) <= 0.5 * math.pi or then.error >= now.error:
        return False
    for place, i in enumerate(chain):
        current = _points(working, effector)
        _point_at(working, i, current[place + 1] - current[place], mirrored[place + 1] - current[place])
    return True


def _point_at(working: WorkingPose, i: int, arm: Vector, wanted: Vector) -> None:
    """Turns joint `i` inside its limit so that `arm`, which hangs on it, points along `wanted`."""
    if arm.length == 0.0 or wanted.length == 0.0:
        return
    turn = arm.rotation_difference(wanted)
    angle = turn.angle
    if isinstance(working.limits[i], Hinge):
        angle *= turn.axis.dot(working.bases[i] @ working.axes[i])
    if angle != 0.0:
        working.turn(i, turn.axis, angle)
