# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits from presets: humans and animals by the roles of bones, rows of bones, and what users keep.

Those of users are Blender's presets, under scripts/presets/ccd_rig/limit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import acos, pi, radians
from pathlib import Path
from typing import Any

import bpy
from mathutils import Quaternion, Vector

from ...errors import InvalidInput, RigError
from ...limits.body_motions import Motion, beyond_rest, blend, hinge_limit, swing_limit, turned_toward
from ...limits.fitting import FitSettings, widened
from ...limits.shapes import Cone, Limit, SwingTwist
from ..figures.role import Figure, Kind, Part, Role, Side
from ..figures.roles import figure_of, roles_of
from ..properties import overrides
from ..properties.joints import CCD_RIG_PG_limit, copy_limit, store_limits
from ..properties.names import named
from ..rig.bone_space import nearest_rotation
from ..viewport.limits import bone_axes
from .chosen_bones import Outcome
from .joint_ranges import DOG, HUMAN, NECK, STRAIGHT, TAIL

STRAY = 0.9
"""Cosine of the angle between a bone and the part that it stands for, below which its swing says nothing."""

NEAR_AXIS = 0.85
"""Cosine of the angle between what a figure says of up and left, and the armature's axis that is meant."""

SMALL = 1e-6
_MIDDLE = (Part.HIPS, Part.SPINE, Part.NECK, Part.HEAD)
_BONE = Vector((0.0, 1.0, 0.0)).freeze()
_NEXT = {
    Part.UPPER_ARM: Part.LOWER_ARM,
    Part.LOWER_ARM: Part.HAND,
    Part.THIGH: Part.SHIN,
    Part.SHIN: Part.FOOT,
    Part.FRONT_THIGH: Part.FRONT_SHIN,
    Part.FRONT_SHIN: Part.FRONT_FOOT,
    Part.FOOT: Part.TOE,
    Part.FRONT_FOOT: Part.FRONT_TOE,
}


@dataclass(frozen=True)
class Body:
    """A recognised figure at rest.

    Attributes:
        armature_object: the rig.
        figure: its roles.
        cranial: unit, from the hips to the head.
        ventral: unit, where the belly is: to the front of a human, down below an animal on four legs.
        left: unit, to the figure's own left.
    """

    armature_object: bpy.types.Object
    figure: Figure
    cranial: Vector
    ventral: Vector
    left: Vector

    def rest(self, name: str) -> Quaternion:
        """Orientation of a bone at rest."""
        return rest_of(self.armature_object.pose.bones[name])

    def head(self, name: str) -> Vector:
        """Where a bone starts."""
        return Vector(self.armature_object.data.bones[name].head_local)

    def bone(self, part: Part, side: Side, number: int = 0) -> str:
        """The first bone of a part; empty for none."""
        return next(iter(self.figure.bones(part, side, number)), "")

    def along(self, name: str) -> Vector:
        """The direction of the limb that a bone stands for: to the next part, else as the bone points."""
        role = self.figure.roles.get(name)
        beyond = ""
        if role is not None and role.part in _NEXT:
            beyond = self.bone(_NEXT[role.part], role.side, role.number)
        way: Any = self.head(beyond) - self.head(name) if beyond else Vector()
        return way.normalized() if way.length > SMALL else self.rest(name) @ _BONE

    def outward(self, role: Role) -> Vector:
        """Away from the middle, on the side of a role."""
        return self.left if role.side is Side.LEFT else -self.left

    def require_along(self, name: str) -> None:
        """Raises InvalidInput where a bone does not point along its limb, as after imports."""
        if (self.rest(name) @ _BONE).dot(self.along(name)) < STRAY:
            raise InvalidInput("its Y axis does not run along the limb: reorient the bone in Edit Mode")


def rest_of(pose_bone: bpy.types.PoseBone) -> Quaternion:
    """Orientation of a bone at rest, in armature space."""
    found: Quaternion = nearest_rotation(pose_bone.bone.matrix_local.to_3x3())
    return found


def body_of(armature_object: bpy.types.Object) -> Body:
    """The figure that an armature is.

    Raises:
        RigError: it has no two sides, or nothing between hips and head.
    """
    figure = figure_of(armature_object)
    heads = {name: Vector(bone.head_local) for name, bone in armature_object.data.bones.items()}
    across: Any = Vector()
    for name, role in figure.roles.items():
        other = figure.partner(name)
        if role.side is Side.LEFT and other:
            across += heads[name] - heads[other]
    row = [heads[name] for part in _MIDDLE for name in figure.bones(part)]
    feet = [heads[name] for name, role in figure.roles.items() if role.part in (Part.FOOT, Part.FRONT_FOOT)]
    if across.length < SMALL or len(row) < 2 or not (feet or figure.kind is Kind.HUMAN):
        raise RigError(
            f"armature '{armature_object.name}' is no figure that is known: no bones of hips, back, feet and "
            "two sides were found. Choose Spine, Tail or Finger for selected bones"
        )
    back: Any = row[-1] - row[0]
    left = _snapped(across)
    if figure.kind is Kind.HUMAN:
        cranial = _snapped(back)
    else:
        up: Any = _snapped(row[0] - sum(feet, Vector()) / len(feet))
        cranial = (back - left * back.dot(left) - up * back.dot(up)).normalized()
    return Body(armature_object, figure, cranial, left.cross(cranial), left)


def _snapped(way: Any) -> Any:
    """A direction as the axis of the armature that it is near to, else as it is; unit."""
    way = way.normalized()
    axis = max(range(3), key=lambda k: abs(way[k]))
    if abs(way[axis]) < NEAR_AXIS:
        return way
    return Vector([math.copysign(1.0, way[axis]) if k == axis else 0.0 for k in range(3)])


Rotations = Mapping[bpy.types.PoseBone, Sequence[Quaternion]]


def present_rotations(pose_bones: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, list[Quaternion]]:
    """The rotation that each bone shows now, relative to rest; bones that are nowhere have none."""
    shown = [bone for bone in pose_bones if math.isfinite(sum(map(sum, bone.matrix)))]
    return {bone: [bone_axes(bone).rotation] for bone in shown}


def held(
    limits: Mapping[bpy.types.PoseBone, Limit | None], rotations: Rotations, what: str
) -> tuple[dict[bpy.types.PoseBone, Limit | None], list[str]]:
    """The limits, wider where bones have rotations outside of them; and what was changed, in sentences.

    Args:
        limits: of bones.
        rotations: of these bones, relative to rest.
        what: the rotations in words, such as "the present pose".
    """
    found: dict[bpy.types.PoseBone, Limit | None] = {}
    wider, left_out = [], []
    for bone, limit in limits.items():
        wide = None if limit is None else widened(limit, rotations.get(bone, ()), FitSettings().margin)
        if limit is not None and wide is None:
            left_out.append(bone.name)
            continue
        found[bone] = wide
        if wide != limit:
            wider.append(bone.name)
    notes = [f"Wider than measured, to hold {what}: {named(wider)}"] if wider else []
    if left_out:
        notes.append(f"{named(left_out)} left as before: {what} turns about other axes than the joint's")
    return found, notes


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


CURLED = radians(3.0)
"""Radians from straight at rest from which on a finger says itself to which side it bends."""

PARALLEL = 0.94
"""Cosine of the angle within which the axis of that is the bone's own: a finger is only slightly curled."""

_X, _Y, _Z = (Vector([float(i == k) for i in range(3)]).freeze() for k in range(3))


def rows_of(pose_bones: Sequence[bpy.types.PoseBone]) -> list[list[bpy.types.PoseBone]]:
    """Bones as rows, each from its root on; a bone begins a row unless its parent is the end of one."""
    rows: list[list[bpy.types.PoseBone]] = []
    for bone in pose_bones:  # the armature has parents first
        row = next((row for row in rows if row[-1] == bone.parent), None)
        if row is None:
            rows.append([bone])
        else:
            row.append(bone)
    return rows


def spine_limits(row: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, Limit | None]:
    """Equal shares of a human's lumbar and thoracic spine. Bones bend forward about their X axis."""
    motion = HUMAN["lumbar and thoracic spine"]
    share = {key: radians(angle / len(row)) for key, angle in motion.items()}
    motions = (
        Motion(_Z, share["flexion"]),
        Motion(-_Z, share["extension"]),
        Motion(_X, share["bending"]),
        Motion(-_X, share["bending"]),
    )
    limit, _ = swing_limit(Quaternion(), motions, (-share["rotation"], share["rotation"]))
    return dict.fromkeys(row, limit)


def tail_limits(row: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, Limit | None]:
    """A cone for each bone, narrower the more bones there are."""
    radius = radians(min(TAIL["each bone at most"], TAIL["whole tail"] / len(row)))
    twist = radians(TAIL["rotation of each bone"])
    return dict.fromkeys(row, SwingTwist(Cone(radius), (-twist, twist)))


def finger_limits(row: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, Limit | None]:
    """The joints of a finger or a thumb, to the side to which it is curled at rest.

    The last three bones of the row count, so that a bone in the palm stays free. A straight finger bends
    about its bones' X axis, as Rigify's do.
    """
    bones = list(row[-3:])
    role = roles_of(row[0].id_data).get(row[-1].name)
    is_thumb = role is not None and role.part is Part.FINGER and role.number == 0
    names = ["first joint", "second joint", "last joint"][: len(bones)]
    if len(bones) == 2 and is_thumb:
        names = ["second joint", "last joint"]
    found: dict[bpy.types.PoseBone, Limit | None] = {}
    for bone, name in zip(bones, names, strict=True):
        motion = HUMAN[f"{'thumb' if is_thumb else 'finger'}, {name}"]
        rest = rest_of(bone)
        axis = _bone_axis(rest, _curl_axis(bones))
        if "spreading" in motion or "abduction" in motion:
            side = 1.0 if bone.bone.head_local.x > 0.0 else -1.0
            found[bone] = _knuckle(rest, axis, motion, side)
        else:
            limit = hinge_limit(rest, axis, -radians(motion["extension"]), radians(motion["flexion"]))
            found[bone] = limit
    return found


def _knuckle(rest: Quaternion, axis: Vector, motion: dict[str, float], side: float) -> Limit:
    """A first joint: it bends, and spreads to the sides.

    Args:
        rest: orientation of the bone at rest.
        axis: about which it bends, in armature space.
        motion: its ranges, degrees.
        side: 1 on the left, -1 on the right: a thumb that bends about an axis spreads against it on the left.
    """
    down: Any = axis.cross(rest @ _Y)
    spread = radians(motion.get("spreading", motion.get("abduction", 0.0)))
    back = radians(motion.get("spreading", motion.get("adduction", 0.0)))
    motions = (
        Motion(down, radians(motion["flexion"])),
        Motion(-down, radians(motion["extension"])),
        Motion(-side * axis, spread),
        Motion(side * axis, back),
    )
    return swing_limit(rest, motions, (0.0, 0.0))[0]


def _bone_axis(rest: Quaternion, curl: Vector | None) -> Vector:
    """The axis of a finger's bone, in armature space, about which it bends: its X or Z if that is near."""
    if curl is None:
        return rest @ _X
    for axis in (rest @ _X, rest @ _Z):
        along = axis.dot(curl)
        if abs(along) > PARALLEL:
            return axis if along > 0.0 else -axis
    return curl


def _curl_axis(bones: Sequence[bpy.types.PoseBone]) -> Vector | None:
    """The axis about which a finger is curled at rest; None where it is straight."""
    first, last = (rest_of(bone) @ _Y for bone in (bones[0], bones[-1]))
    if acos(min(max(first.dot(last), -1.0), 1.0)) < CURLED:
        return None
    axis: Any = first.cross(last)
    found: Vector = axis.normalized()
    return found


FIGURES: dict[str, tuple[Kind, Callable[[Body, str, Role], Found]]] = {
    "HUMAN": (Kind.HUMAN, human_limit),
    "QUADRUPED": (Kind.QUADRUPED, quadruped_limit),
}
SOURCES = {
    "HUMAN": "Ranges measured on humans: AAOS, Joint Motion (1965)",
    "QUADRUPED": "Ranges measured on dogs: Jaegger et al. (2002)",
    "SPINE": "Ranges measured on humans: AAOS, Joint Motion (1965)",
    "TAIL": "Ranges chosen, not measured",
    "FINGER": "Ranges measured on humans: AAOS, Joint Motion (1965)",
}
"""Where most ranges of a preset come from; docs/guide/limit_presets.md has it for each joint."""
ROWS = {"SPINE": spine_limits, "TAIL": tail_limits, "FINGER": finger_limits}

Limits = dict[bpy.types.PoseBone, Limit | None]


def apply_preset(pose_bones: Sequence[bpy.types.PoseBone], preset: str) -> Outcome:
    """Give bones the limits of a preset, wide enough for the pose that they stand in.

    Args:
        pose_bones: of one armature, in its order.
        preset: as for `preset_limits`.

    Raises:
        RigError: as `preset_limits`. Nothing has changed then.
    """
    limits, notes = preset_limits(pose_bones, preset)
    limits, wider = held(limits, present_rotations(pose_bones), "the present pose")
    store_limits(limits)
    return Outcome(tuple(bone.name for bone in limits), (*notes, *wider), SOURCES[preset])


def preset_limits(pose_bones: Sequence[bpy.types.PoseBone], preset: str) -> tuple[Limits, list[str]]:
    """The limits that a preset has for bones, and what to know about them, in sentences.

    Args:
        pose_bones: of one armature, in its order.
        preset: of `FIGURES`, for bones that are known parts of such a figure; or of `ROWS`, for any row.

    Raises:
        RigError: the armature is no such figure, or none of the bones gets a limit.
    """
    if preset in ROWS:
        rows = rows_of(pose_bones)
        return {bone: limit for row in rows for bone, limit in ROWS[preset](row).items()}, []
    limits, notes = _figure_limits(pose_bones, preset)
    if not limits:
        none = f"none of {named([bone.name for bone in pose_bones])} is a part with a range: select others"
        raise RigError(notes[0] if notes else none)
    return limits, notes


def _figure_limits(pose_bones: Sequence[bpy.types.PoseBone], preset: str) -> tuple[Limits, list[str]]:
    kind, make = FIGURES[preset]
    armature_object = pose_bones[0].id_data
    body = body_of(armature_object)
    if body.figure.kind is not kind:
        raise RigError(
            f"armature '{armature_object.name}' is recognised as {body.figure.kind}, not as {kind}: choose "
            "another preset"
        )
    limits: Limits = {}
    askew, reasons = [], defaultdict(list)
    for bone in pose_bones:
        role = body.figure.roles.get(bone.name)
        if role is None:
            continue
        try:
            found = make(body, bone.name, role)
        except InvalidInput as error:
            reasons[str(error)].append(bone.name)
            continue
        if found is not None:
            limits[bone], is_exact = found
            if not is_exact:
                askew.append(bone.name)
    notes = [f"{named(names)} left as before: {reason}" for reason, names in reasons.items()]
    if askew:
        notes.append(f"{named(askew)}: rolled between the motions of the joint, so that its sides are rough")
    fingers = _finger_limits(pose_bones, body) if preset == "HUMAN" else {}
    return limits | fingers, notes


def _finger_limits(pose_bones: Sequence[bpy.types.PoseBone], body: Body) -> Limits:
    """The limits of all fingers that these bones are part of."""
    fingers: dict[tuple[str, int], list[bpy.types.PoseBone]] = defaultdict(list)
    for name, role in sorted(body.figure.roles.items(), key=lambda each: each[1].index):
        if role.part is Part.FINGER:
            fingers[role.side, role.number].append(body.armature_object.pose.bones[name])
    found: Limits = {}
    for row in fingers.values():
        found |= {bone: limit for bone, limit in finger_limits(row).items() if bone in pose_bones}
    return found


FOLDER = "ccd_rig/limit"
"""Where presets lie, below Blender's folders of presets."""

MENU = "CCD_RIG_MT_limit_presets"
"""The menu that lists them; Blender gives it the name of the last one chosen."""

VALUES = [f"bpy.context.active_pose_bone.ccd_rig.limit.{name}" for name in CCD_RIG_PG_limit.__annotations__]
"""What a preset holds, as Blender's presets write it."""


def file_names() -> list[str]:
    """The names of the presets' files, without their ending, in the order of the alphabet."""
    folders = [Path(folder) for folder in bpy.utils.preset_paths(FOLDER)]
    return sorted((file.stem for folder in folders for file in folder.glob("*.py")), key=str.casefold)


def apply_own(active: bpy.types.PoseBone, pose_bones: Sequence[bpy.types.PoseBone], path: str) -> Outcome:
    """Give bones the limit of a preset file; the active one, which presets speak of, gets it too.

    Raises:
        RigError: there is no such file, or it does not run.
    """
    if not Path(path).is_file():
        raise RigError(f"there is no preset {path or 'without a name'}: choose one of the menu")
    menu = getattr(bpy.types, MENU)
    label = menu.bl_label
    try:
        bpy.ops.script.execute_preset(filepath=path, menu_idname=MENU)
    except RuntimeError as error:
        menu.bl_label = label  # Blender has named the menu before it ran the file
        raise RigError(f"preset {path}: {error}".strip()) from error
    overrides.keep(active.id_data)
    for bone in pose_bones:
        if bone != active:
            copy_limit(active, bone)
    return Outcome(tuple(dict.fromkeys((active.name, *(bone.name for bone in pose_bones)))))
