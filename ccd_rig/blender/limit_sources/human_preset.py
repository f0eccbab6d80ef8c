# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of a human's bones, by their roles.

A limit speaks about rotations relative to rest, and rigs do not rest in the anatomical position: arms are
spread, knees and elbows bent. What a joint has used up of its range at rest is read off the rest bones and
subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from math import acos, radians
from typing import Any

from mathutils import Vector

from ...limits.body_motions import Motion, beyond_rest, blend, hinge_limit, swing_limit, turned_toward
from ...limits.shapes import Limit
from ..figures.role import Part, Role, Side
from .body import Body
from .joint_ranges import HUMAN, STRAIGHT

BENT = radians(5.0)
"""Radians from straight at rest from which on a limb says itself about which axis it bends."""

Found = tuple[Limit, bool] | None
"""A limit, and whether the bone's axes allow it exactly; None for bones that get none."""


def human_limit(body: Body, name: str, role: Role) -> Found:
    """The limit of a bone.

    Raises:
        InvalidInput: the bone's axes allow none.
    """
    make = _MAKERS.get(role.part)
    return None if make is None else make(body, name, role)


def vertebra(body: Body, name: str, motion: dict[str, float], count: int) -> Found:
    """One of several bones that stand for a part of the spine; each takes an equal share."""
    share = {key: radians(angle / count) for key, angle in motion.items()}
    motions = (
        Motion(body.ventral, share["flexion"]),
        Motion(-body.ventral, share["extension"]),
        Motion(body.left, share["bending"]),
        Motion(-body.left, share["bending"]),
    )
    return swing_limit(body.rest(name), motions, (-share["rotation"], share["rotation"]))


def _trunk(body: Body, name: str, _role: Role) -> Found:
    count = len(body.figure.bones(Part.SPINE))
    return vertebra(body, name, HUMAN["lumbar and thoracic spine"], count)


def _neck(body: Body, name: str, _role: Role) -> Found:
    count = len(body.figure.bones(Part.NECK)) + len(body.figure.bones(Part.HEAD))
    return vertebra(body, name, HUMAN["cervical spine"], count)


def _clavicle(body: Body, name: str, _role: Role) -> Found:
    body.require_along(name)
    motion = HUMAN["clavicle"]
    motions = (
        Motion(body.cranial, radians(motion["elevation"])),
        Motion(-body.cranial, radians(motion["depression"])),
        Motion(body.ventral, radians(motion["protraction"])),
        Motion(-body.ventral, radians(motion["retraction"])),
    )
    return swing_limit(body.rest(name), motions, (0.0, 0.0))


def _shoulder(body: Body, name: str, role: Role) -> Found:
    """The arm at rest hangs, is spread, or between: it is raised in the plane of the body."""
    body.require_along(name)
    motion, arm, outward = HUMAN["shoulder"], body.along(name), body.outward(role)
    clavicle = HUMAN["clavicle"]["elevation"] if body.bone(Part.SHOULDER, role.side, role.number) else 0.0
    raised = turned_toward(arm, -body.cranial, outward)
    forward = turned_toward(arm, (arm - body.ventral * arm.dot(body.ventral)).normalized(), body.ventral)
    part = raised / radians(90.0)
    flexion = radians(blend(motion["flexion"] - clavicle, motion["horizontal flexion"], part))
    extension = radians(blend(motion["extension"], motion["horizontal extension"], part))
    up: Any = body.ventral.cross(arm) * (1.0 if role.side is Side.LEFT else -1.0)
    across = radians(blend(motion["adduction"], motion["adduction, spread"], part))
    motions = (
        Motion(up, radians(motion["abduction"] - clavicle) - raised),
        Motion(-up, across + raised),
        Motion(body.ventral, flexion - forward),
        Motion(-body.ventral, extension + forward),
    )
    return swing_limit(
        body.rest(name), motions, _inward(role, motion["internal rotation"], motion["external rotation"])
    )


def _elbow(body: Body, name: str, role: Role) -> Found:
    above = body.bone(Part.UPPER_ARM, role.side, role.number)
    return bending(body, (name, above), body.ventral, HUMAN["elbow"])


def _knee(body: Body, name: str, role: Role) -> Found:
    return bending(body, (name, body.bone(Part.THIGH, role.side)), -body.ventral, HUMAN["knee"])


def bending(body: Body, names: tuple[str, str], toward: Vector, motion: dict[str, float]) -> Found:
    """A hinge that bends a bone towards a direction, about the axis in which the limb is bent at rest.

    Args:
        body: the figure.
        names: of the bone, and of the one above it.
        toward: where the bone's end goes, where the limb is straight at rest.
        motion: "extension to" or "extension" (past straight), and "flexion", degrees.
    """
    name, above = names
    below: Any = body.along(name)
    upper: Any = body.along(above) if above else below
    axis: Any = below.cross(toward).normalized()
    bent = acos(min(max(upper.dot(below), -1.0), 1.0))
    own: Any = upper.cross(below)
    if bent > BENT and own.dot(axis) > 0.0:
        axis = own.normalized()
    elif own.dot(axis) < 0.0:
        bent = -bent
    least = motion["extension to"] if "extension to" in motion else -motion["extension"]
    back = bent - radians(least)
    if least > 0.0 and 0.0 > back >= -radians(STRAIGHT):
        back = 0.0  # it keeps its side
    limit = hinge_limit(
        body.rest(name), axis, -beyond_rest(back), beyond_rest(radians(motion["flexion"]) - bent)
    )
    return limit, True


def _wrist(body: Body, name: str, role: Role) -> Found:
    """The hand on the forearm, with the forearm's pronation and supination as the hand's twist.

    At rest the thumbs are to the front, which is half way between the two; palms look down, or inward where
    arms hang.
    """
    body.require_along(name)
    motion, forearm = HUMAN["wrist"], HUMAN["forearm"]
    palm = palm_direction(body, name, role)
    motions = (
        Motion(palm, radians(motion["flexion"])),
        Motion(-palm, radians(motion["extension"])),
        Motion(body.ventral, radians(motion["radial deviation"])),
        Motion(-body.ventral, radians(motion["ulnar deviation"])),
    )
    return swing_limit(body.rest(name), motions, _inward(role, forearm["pronation"], forearm["supination"]))


def palm_direction(body: Body, name: str, role: Role) -> Vector:
    """Where the palm looks at rest: down, or inward where the arm hangs."""
    hangs = abs(body.along(name).dot(body.cranial)) > abs(body.along(name).dot(body.left))
    return -body.outward(role) if hangs else -body.cranial


def _hip(body: Body, name: str, role: Role) -> Found:
    body.require_along(name)
    motion, leg, outward = HUMAN["hip"], body.along(name), body.outward(role)
    flexed = turned_toward(leg, -body.cranial, body.ventral)
    abducted = turned_toward(leg, -body.cranial, outward)
    motions = (
        Motion(body.ventral, radians(motion["flexion"]) - flexed),
        Motion(-body.ventral, radians(motion["extension"]) + flexed),
        Motion(outward, radians(motion["abduction"]) - abducted),
        Motion(-outward, radians(motion["adduction"]) + abducted),
    )
    return swing_limit(
        body.rest(name), motions, _inward(role, motion["internal rotation"], motion["external rotation"])
    )


def _ankle(body: Body, name: str, role: Role) -> Found:
    """The foot stands flat at rest, so the shin's lean to the front is what the ankle is bent."""
    motion, shin = HUMAN["ankle"], body.bone(Part.SHIN, role.side)
    leg = body.along(shin) if shin else -body.cranial
    dorsiflexed = turned_toward(leg, -body.cranial, -body.ventral)
    motions = (
        Motion(body.cranial, radians(motion["dorsiflexion"]) - dorsiflexed),
        Motion(-body.cranial, radians(motion["plantarflexion"]) + dorsiflexed),
        Motion(body.left, radians(motion["turning"])),
        Motion(-body.left, radians(motion["turning"])),
    )
    # The bone points to the front: a roll about it turns the left foot's sole outward if positive.
    sign = 1.0 if role.side is Side.LEFT else -1.0
    roll = sorted(radians(sign * angle) for angle in (motion["eversion"], -motion["inversion"]))
    return swing_limit(body.rest(name), motions, (roll[0], roll[1]))


def _toes(body: Body, name: str, _role: Role) -> Found:
    motion = HUMAN["toes"]
    axis: Any = body.along(name).cross(body.cranial)
    return hinge_limit(body.rest(name), axis, -radians(motion["flexion"]), radians(motion["extension"])), True


def _inward(role: Role, internal: float, external: float) -> tuple[float, float]:
    """Twist of a limb's bone: turning its front towards the body's middle is positive on the left."""
    inner, outer = radians(internal), radians(external)
    return (-outer, inner) if role.side is Side.LEFT else (-inner, outer)


_MAKERS: dict[Part, Callable[[Body, str, Role], Found]] = {
    Part.SPINE: _trunk,
    Part.NECK: _neck,
    Part.HEAD: _neck,
    Part.SHOULDER: _clavicle,
    Part.UPPER_ARM: _shoulder,
    Part.LOWER_ARM: _elbow,
    Part.HAND: _wrist,
    Part.THIGH: _hip,
    Part.SHIN: _knee,
    Part.FOOT: _ankle,
    Part.TOE: _toes,
}
