"""Whole chains turned to their poles, their ends left where they are.

A pole near a straight chain wins less than the inertia of a pass, and least squares see a bend that any small
step reverses. What it takes is known exactly: a rotation of the root about the line from its head to the
chain's end (the swivel angle, Tolani, Goswami & Badler 2000).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mathutils import Vector

from ...goals import BEND_RANGE, angle_apart, pole_bend
from .effectors import PoleEffector
from .working_pose import WorkingPose


def swivel(working: WorkingPose, goals: Sequence[int]) -> bool:
    """Turns chains about their lines to the sides of their poles; False if no goal is a pole.

    A free chain that is nearly straight and bent to the far side is bent to the near side first.
    """
    poles = [effector for k in goals if isinstance(effector := working.effectors[k], PoleEffector)]
    for effector in poles:
        if _is_free(working, effector):
            _mirror(working, effector)
        for root in effector.moving_joints:
            points = _points(working, effector)
            line = points[-1] - points[0]
            effector.recompute(working)
            joint = working.joints[root]
            angle = (1.0 - joint.stiffness) * effector.pole_bend.swivel(line)
            working.turn(root, line, min(max(angle, -joint.max_step), joint.max_step))
    if poles:
        working.recompute()
    return bool(poles)


def _points(working: WorkingPose, effector: PoleEffector) -> list[Vector]:
    """The heads of the chain's joints and its end, from valid transforms."""
    tip = effector.chain[-1]
    working.update_to(tip)
    heads = [working.heads[i] for i in effector.chain]
    return [*heads, heads[-1] + working.frames[tip] @ effector.end]


def _is_free(working: WorkingPose, effector: PoleEffector) -> bool:
    """Whether every joint of the chain may take any rotation, and does so for the goals that are active."""
    joints = working.joints
    return all(
        i in working.movable
        and working.limits[i] is None
        and joints[i].stiffness == 0.0
        and joints[i].max_step >= math.pi
        and joints[i].inherit_rotation
        for i in effector.chain
    )


def _mirror(working: WorkingPose, effector: PoleEffector) -> None:
    """Takes each bone half round the chain's line by a swing without roll, if that shortens the swivel."""
    chain, own = effector.chain, effector.axis
    points = _points(working, effector)
    line = points[-1] - points[0]
    if line.length == 0.0:
        return
    unit = line.normalized()
    arms = [point - points[0] for point in points]
    along = [arm.dot(unit) * unit for arm in arms]
    across = math.fsum((arm - part).length for arm, part in zip(arms, along, strict=True))
    if across >= BEND_RANGE * own.scale:
        return
    mirrored = [points[0] + 2.0 * part - arm for arm, part in zip(arms, along, strict=True)]
    axis = working.frames[own.joint] @ own.axis
    now = pole_bend(points[:-1], points[-1], effector.target, axis, own.scale)
    then = pole_bend(mirrored[:-1], points[-1], effector.target, axis, own.scale)
    if then.weight == 0.0 or abs(now.swivel(line)) <= 0.5 * math.pi or then.error >= now.error:
        return
    for place, i in enumerate(chain):
        current = _points(working, effector)
        arm, wanted = current[place + 1] - current[place], mirrored[place + 1] - current[place]
        turn = arm.rotation_difference(wanted) if arm.length and wanted.length else None
        if turn is not None and angle_apart(arm, wanted) > 0.0:
            working.turn(i, turn.axis, turn.angle)
