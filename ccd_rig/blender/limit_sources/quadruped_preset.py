# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of the bones of an animal on four legs, by their roles.

Joints are measured as the angle inside them. What that is at rest is read off the rest bones.
"""

from __future__ import annotations

from math import acos, pi, radians

from mathutils import Vector

from ...limits.body_motions import Motion, swing_limit
from ..figures.role import Part, Role
from .body import Body
from .human_preset import Found, bending, vertebra
from .joint_ranges import DOG, HUMAN, NECK

# Joint, bone above, and the direction in which the bone goes as the joint is flexed: 1 to the head, -1 back.
_HINGES = {
    Part.FRONT_SHIN: ("elbow", Part.FRONT_THIGH, 1.0),
    Part.FRONT_FOOT: ("carpus", Part.FRONT_SHIN, -1.0),
    Part.SHIN: ("stifle", Part.THIGH, -1.0),
    Part.FOOT: ("tarsus", Part.SHIN, 1.0),
}
_BALLS = {
    Part.FRONT_THIGH: ("shoulder", Part.SHOULDER, -1.0),
    Part.THIGH: ("hip", Part.PELVIS, 1.0),
}
_TRUNK = {
    Part.SPINE: ((Part.SPINE,), HUMAN["lumbar and thoracic spine"]),
    Part.NECK: ((Part.NECK, Part.HEAD), NECK),
    Part.HEAD: ((Part.NECK, Part.HEAD), NECK),
}


def quadruped_limit(body: Body, name: str, role: Role) -> Found:
    """The limit of a bone; None for bones that get none.

    Raises:
        InvalidInput: the bone's axes allow none.
    """
    if role.part in _TRUNK:
        parts, motion = _TRUNK[role.part]
        return vertebra(body, name, motion, sum(len(body.figure.bones(part)) for part in parts))
    if role.index > 0:
        return None  # a second bone of the same part, as in the foot: it has no measured joint
    if role.part in _HINGES:
        joint, above, way = _HINGES[role.part]
        inside = DOG[joint]
        motion = {"extension to": 180.0 - inside["extension"], "flexion": 180.0 - inside["flexion"]}
        return bending(body, (name, body.bone(above, role.side)), way * body.cranial, motion)
    return _ball(body, name, role) if role.part in _BALLS else None


def _ball(body: Body, name: str, role: Role) -> Found:
    body.require_along(name)
    joint, above, way = _BALLS[role.part]
    leg, inside, aside = body.along(name), DOG[joint], DOG["aside"]
    girdle = body.bone(above, role.side)
    angle = _angle_inside(body.along(girdle), leg) if girdle else radians(DOG["standing"][joint])
    outward = body.outward(role)
    motions = (
        Motion(way * body.cranial, angle - radians(inside["flexion"])),
        Motion(-way * body.cranial, radians(inside["extension"]) - angle),
        Motion(outward, radians(aside["abduction"])),
        Motion(-outward, radians(aside["adduction"])),
    )
    rotation = radians(aside["rotation"])
    return swing_limit(body.rest(name), motions, (-rotation, rotation))


def _angle_inside(above: Vector, below: Vector) -> float:
    """The angle inside the joint between two bones that each point away from the body; pi is straight."""
    return pi - acos(min(max(above.dot(below), -1.0), 1.0))
