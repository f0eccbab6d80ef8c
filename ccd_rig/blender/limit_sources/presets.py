# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits from presets: humans and animals by the roles of bones, and rows of bones."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import acos, pi, radians
from typing import Any

import bpy
from mathutils import Quaternion, Vector

from ...errors import InvalidInput, RigError
from ...limits.body_motions import beyond_rest, blend, hinge_limit, swing_limit, turned_toward
from ...limits.fitting import widened
from ...limits.settings import FitSettings
from ...limits.shapes import Cone, Limit, SwingTwist
from ..figures.recognition import figure_of, roles_of
from ..figures.role import Figure, Kind, Part, Role, Side
from ..properties.limits import store_limits
from ..properties.names import named
from ..rig.bone_space import rest_rotation
from ..viewport.limits import bone_axes
from .bones import Outcome
from .joint_ranges import DOG, HUMAN, NECK, STRAIGHT, TAIL

STRAY = 0.9
"""Smallest cosine of the angle between a bone and its limb for a swing limit."""

NEAR_AXIS = 0.85
"""Smallest cosine of the angle between a direction of a figure and an axis of the armature to snap to it."""

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
    """Recognised figure at rest, and its anatomical directions in armature space."""

    armature_object: bpy.types.Object
    figure: Figure  # its roles
    cranial: Vector  # unit, from the hips to the head
    ventral: Vector  # unit, to the belly: the front of a human, down for an animal on four legs
    left: Vector  # unit, to the figure's left

    def rest(self, name: str) -> Quaternion:
        """Orientation of a bone at rest."""
        return rest_rotation(self.armature_object.pose.bones[name])

    def head(self, name: str) -> Vector:
        """Head of a bone at rest."""
        return Vector(self.armature_object.data.bones[name].head_local)

    def bone(self, part: Part, side: Side, number: int = 0) -> str:
        """Name of the first bone of a part; empty for none."""
        return next(iter(self.figure.bones(part, side, number)), "")

    def along(self, name: str) -> Vector:
        """Direction of a bone's limb: to the next part, else along the bone."""
        role = self.figure.roles.get(name)
        beyond = ""
        if role is not None and role.part in _NEXT:
            beyond = self.bone(_NEXT[role.part], role.side, role.number)
        vector: Any = self.head(beyond) - self.head(name) if beyond else Vector()
        return vector.normalized() if vector.length > SMALL else self.rest(name) @ _BONE

    def outward(self, role: Role) -> Vector:
        """Direction away from the middle, on the side of a role."""
        return self.left if role.side is Side.LEFT else -self.left

    def require_along(self, name: str) -> None:
        """Raise InvalidInput if a bone does not point along its limb, as after imports."""
        if (self.rest(name) @ _BONE).dot(self.along(name)) < STRAY:
            raise InvalidInput("its Y axis does not run along the limb: reorient the bone in Edit Mode")


def body_of(armature_object: bpy.types.Object) -> Body:
    """Recognise the figure of an armature, and compute its directions.

    Raises:
        RigError: it has no pairs of bones, no feet, or too few bones from hips to head.
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


def _snapped(direction: Any) -> Any:
    """Return the axis of the armature that a direction is near to, else the direction; unit."""
    direction = direction.normalized()
    axis = max(range(3), key=lambda k: abs(direction[k]))
    if abs(direction[axis]) < NEAR_AXIS:
        return direction
    return Vector([math.copysign(1.0, direction[axis]) if k == axis else 0.0 for k in range(3)])


Rotations = Mapping[bpy.types.PoseBone, Sequence[Quaternion]]


def present_rotations(pose_bones: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, list[Quaternion]]:
    """Return the evaluated rotations of bones relative to rest; without bones whose matrix is not finite."""
    finite = [bone for bone in pose_bones if math.isfinite(sum(map(sum, bone.matrix)))]
    return {bone: [bone_axes(bone).rotation] for bone in finite}


def widened_limits(
    limits: Mapping[bpy.types.PoseBone, Limit | None], rotations: Rotations, what: str
) -> tuple[dict[bpy.types.PoseBone, Limit | None], list[str]]:
    """Widen limits to include rotations of their bones; return them, and notes on the changes.

    Args:
        rotations: of these bones, relative to rest.
        what: describes the rotations, such as "the present pose".
    """
    result: dict[bpy.types.PoseBone, Limit | None] = {}
    wider, left_out = [], []
    for bone, limit in limits.items():
        wide = None if limit is None else widened(limit, rotations.get(bone, ()), FitSettings().margin)
        if limit is not None and wide is None:
            left_out.append(bone.name)
            continue
        result[bone] = wide
        if wide != limit:
            wider.append(bone.name)
    notes = [f"Wider than measured, to hold {what}: {named(wider)}"] if wider else []
    if left_out:
        notes.append(f"{named(left_out)} left as before: {what} turns about other axes than the joint's")
    return result, notes


# Humans -----------------------------------------------------------------------------------------------------

BENT = radians(5.0)
"""Smallest bend of a limb at rest that defines the axis of its hinge, radians."""

JointLimit = tuple[Limit, bool] | None
"""A limit, and whether the bone's axes allow it exactly; None for bones without one."""


def human_limit(body: Body, name: str, role: Role) -> JointLimit:
    """Return the limit of a bone of a human.

    Raises:
        InvalidInput: the bone's axes allow none.
    """
    if role.part in HUMAN_HINGES:
        motion, above, sign = HUMAN_HINGES[role.part]
        return hinge(body, name, body.bone(above, role.side, role.number), sign * body.ventral, motion)
    make = _MAKERS.get(role.part)
    return trunk_limit(body, name, HUMAN["cervical spine"]) if make is None else make(body, name, role)


def trunk_limit(body: Body, name: str, neck: Mapping[str, float]) -> JointLimit:
    """Return an equal share of the motion of the spine, or of neck and head; None for other bones.

    Args:
        neck: ranges of neck and head together, degrees. Those of the spine are a human's.
    """
    for parts, motion in (
        ((Part.SPINE,), HUMAN["lumbar and thoracic spine"]),
        ((Part.NECK, Part.HEAD), neck),
    ):
        bones = [bone for part in parts for bone in body.figure.bones(part)]
        if name in bones:
            return _vertebra(body.rest(name), body.ventral, body.left, motion, len(bones))
    return None


def _vertebra(
    rest: Quaternion, ahead: Vector, aside: Vector, motion: Mapping[str, float], count: int
) -> tuple[SwingTwist, bool]:
    flexion, extension, bending, rotation = (
        radians(motion[name] / count) for name in ("flexion", "extension", "bending", "rotation")
    )
    return swing_limit(rest, (ahead, flexion, extension), (aside, bending, bending), (-rotation, rotation))


def _clavicle(body: Body, name: str, _role: Role) -> JointLimit:
    body.require_along(name)
    motion = {key: radians(angle) for key, angle in HUMAN["clavicle"].items()}
    up = body.cranial, motion["elevation"], motion["depression"]
    ahead = body.ventral, motion["protraction"], motion["retraction"]
    return swing_limit(body.rest(name), up, ahead, (0.0, 0.0))


def _shoulder(body: Body, name: str, role: Role) -> JointLimit:
    """Return the limit of an upper arm, whatever its elevation at rest: from hanging to spread."""
    body.require_along(name)
    motion, arm, outward = HUMAN["shoulder"], body.along(name), body.outward(role)
    clavicle = HUMAN["clavicle"]["elevation"] if body.bone(Part.SHOULDER, role.side, role.number) else 0.0
    raised = turned_toward(arm, -body.cranial, outward)
    forward = turned_toward(arm, (arm - body.ventral * arm.dot(body.ventral)).normalized(), body.ventral)
    spread = raised / radians(90.0)  # 0 for a hanging arm, 1 for a horizontal one
    flexion = radians(blend(motion["flexion"] - clavicle, motion["horizontal flexion"], spread))
    extension = radians(blend(motion["extension"], motion["horizontal extension"], spread))
    up: Any = body.ventral.cross(arm) * (1.0 if role.side is Side.LEFT else -1.0)
    across = radians(blend(motion["adduction"], motion["adduction, spread"], spread))
    return swing_limit(
        body.rest(name),
        (up, radians(motion["abduction"] - clavicle) - raised, across + raised),
        (body.ventral, flexion - forward, extension + forward),
        _inward(role, motion["internal rotation"], motion["external rotation"]),
    )


def hinge(body: Body, name: str, above: str, toward: Vector, motion: dict[str, float]) -> JointLimit:
    """Return a hinge about the axis in which the limb is bent at rest.

    Args:
        above: name of the bone above it, or empty.
        toward: direction in which the bone flexes if the limb is straight at rest.
        motion: "extension to" or "extension" (past straight), and "flexion", degrees.
    """
    below: Any = body.along(name)
    upper: Any = body.along(above) if above else below
    axis: Any = below.cross(toward).normalized()
    bent = acos(min(max(upper.dot(below), -1.0), 1.0))
    rest_axis: Any = upper.cross(below)
    if bent > BENT and rest_axis.dot(axis) > 0.0:
        axis = rest_axis.normalized()
    elif rest_axis.dot(axis) < 0.0:
        bent = -bent
    least = motion["extension to"] if "extension to" in motion else -motion["extension"]
    back = bent - radians(least)
    if least > 0.0 and 0.0 > back >= -radians(STRAIGHT):
        back = 0.0  # the joint still bends to one side only
    limit = hinge_limit(
        body.rest(name), axis, -beyond_rest(back), beyond_rest(radians(motion["flexion"]) - bent)
    )
    return limit, True


def _wrist(body: Body, name: str, role: Role) -> JointLimit:
    """Return the limit of a hand; its twist is the pronation and supination of the forearm.

    At rest the thumbs point to the front, half way between the two. Palms face down, or inward if arms hang.
    """
    body.require_along(name)
    motion, forearm = {key: radians(angle) for key, angle in HUMAN["wrist"].items()}, HUMAN["forearm"]
    hangs = abs(body.along(name).dot(body.cranial)) > abs(body.along(name).dot(body.left))
    palm = -body.outward(role) if hangs else -body.cranial
    return swing_limit(
        body.rest(name),
        (palm, motion["flexion"], motion["extension"]),
        (body.ventral, motion["radial deviation"], motion["ulnar deviation"]),
        _inward(role, forearm["pronation"], forearm["supination"]),
    )


def _hip(body: Body, name: str, role: Role) -> JointLimit:
    body.require_along(name)
    motion, leg, outward = HUMAN["hip"], body.along(name), body.outward(role)
    flexed = turned_toward(leg, -body.cranial, body.ventral)
    abducted = turned_toward(leg, -body.cranial, outward)
    return swing_limit(
        body.rest(name),
        (body.ventral, radians(motion["flexion"]) - flexed, radians(motion["extension"]) + flexed),
        (outward, radians(motion["abduction"]) - abducted, radians(motion["adduction"]) + abducted),
        _inward(role, motion["internal rotation"], motion["external rotation"]),
    )


def _ankle(body: Body, name: str, role: Role) -> JointLimit:
    """Return the limit of a foot, which is flat at rest: the shin's lean to the front is its dorsiflexion."""
    motion = {key: radians(angle) for key, angle in HUMAN["ankle"].items()}
    shin = body.bone(Part.SHIN, role.side)
    leg = body.along(shin) if shin else -body.cranial
    dorsiflexed = turned_toward(leg, -body.cranial, -body.ventral)
    up = body.cranial, motion["dorsiflexion"] - dorsiflexed, motion["plantarflexion"] + dorsiflexed
    aside = body.left, motion["turning"], motion["turning"]
    # The bone points to the front: a roll about it turns the left foot's sole outward if positive.
    sign = 1.0 if role.side is Side.LEFT else -1.0
    least, most = sorted(sign * angle for angle in (motion["eversion"], -motion["inversion"]))
    return swing_limit(body.rest(name), up, aside, (least, most))


def _toes(body: Body, name: str, _role: Role) -> JointLimit:
    motion = HUMAN["toes"]
    axis: Any = body.along(name).cross(body.cranial)
    return hinge_limit(body.rest(name), axis, -radians(motion["flexion"]), radians(motion["extension"])), True


def _inward(role: Role, internal: float, external: float) -> tuple[float, float]:
    """Twist of a limb's bone: turning its front towards the body's middle is positive on the left."""
    inner, outer = radians(internal), radians(external)
    return (-outer, inner) if role.side is Side.LEFT else (-inner, outer)


_MAKERS: dict[Part, Callable[[Body, str, Role], JointLimit]] = {
    Part.SHOULDER: _clavicle,
    Part.UPPER_ARM: _shoulder,
    Part.HAND: _wrist,
    Part.THIGH: _hip,
    Part.FOOT: _ankle,
    Part.TOE: _toes,
}
# By part: motion of the joint, part above, and direction in which the bone flexes: 1 to the front.
HUMAN_HINGES = {
    Part.LOWER_ARM: (HUMAN["elbow"], Part.UPPER_ARM, 1.0),
    Part.SHIN: (HUMAN["knee"], Part.THIGH, -1.0),
}


# Animals on four legs ---------------------------------------------------------------------------------------


def _bend(joint: str) -> dict[str, float]:
    """Motion of a dog's joint from straight, degrees."""
    return {"extension to": 180.0 - DOG[joint]["extension"], "flexion": 180.0 - DOG[joint]["flexion"]}


# By part: joint or its motion, part above, and direction in which the bone flexes: 1 to the head.
DOG_HINGES = {
    Part.FRONT_SHIN: (_bend("elbow"), Part.FRONT_THIGH, 1.0),
    Part.FRONT_FOOT: (_bend("carpus"), Part.FRONT_SHIN, -1.0),
    Part.SHIN: (_bend("stifle"), Part.THIGH, -1.0),
    Part.FOOT: (_bend("tarsus"), Part.SHIN, 1.0),
}
_BALLS = {
    Part.FRONT_THIGH: ("shoulder", Part.SHOULDER, -1.0),
    Part.THIGH: ("hip", Part.PELVIS, 1.0),
}


def quadruped_limit(body: Body, name: str, role: Role) -> JointLimit:
    """Return the limit of a bone of an animal on four legs.

    Raises:
        InvalidInput: the bone's axes allow none.
    """
    if role.index > 0 and role.part not in _MIDDLE:
        return None  # a second bone of the same part, as in the foot: its joint is not measured
    if role.part in DOG_HINGES:
        motion, above, sign = DOG_HINGES[role.part]
        return hinge(body, name, body.bone(above, role.side), sign * body.cranial, motion)
    return _ball(body, name, role) if role.part in _BALLS else trunk_limit(body, name, NECK)


def _ball(body: Body, name: str, role: Role) -> JointLimit:
    body.require_along(name)
    joint, above, sign = _BALLS[role.part]
    leg, inside, aside = body.along(name), DOG[joint], DOG["aside"]
    girdle = body.bone(above, role.side)
    angle = radians(DOG["standing"][joint])
    if girdle:  # the angle inside the joint; pi is straight
        angle = pi - acos(min(max(body.along(girdle).dot(leg), -1.0), 1.0))
    rotation = radians(aside["rotation"])
    return swing_limit(
        body.rest(name),
        (sign * body.cranial, angle - radians(inside["flexion"]), radians(inside["extension"]) - angle),
        (body.outward(role), radians(aside["abduction"]), radians(aside["adduction"])),
        (-rotation, rotation),
    )


# Rows of bones ----------------------------------------------------------------------------------------------

CURLED = radians(3.0)
"""Smallest curl of a finger at rest that defines the side to which it bends, radians."""

PARALLEL = 0.94
"""Smallest cosine of the angle between the axis of the curl and an axis of the bone to take the latter."""

_X, _Y, _Z = (Vector([float(i == k) for i in range(3)]).freeze() for k in range(3))


def rows_of(pose_bones: Sequence[bpy.types.PoseBone]) -> list[list[bpy.types.PoseBone]]:
    """Group bones into rows, root first; a bone begins a row unless its parent is the end of one."""
    rows: list[list[bpy.types.PoseBone]] = []
    by_end: dict[str, list[bpy.types.PoseBone]] = {}
    for bone in pose_bones:  # the armature has parents first
        row = None if bone.parent is None else by_end.pop(bone.parent.name, None)
        if row is None:
            row = []
            rows.append(row)
        row.append(bone)
        by_end[bone.name] = row
    return rows


def spine_limits(row: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, Limit | None]:
    """Return equal shares of a human's lumbar and thoracic spine. Bones bend forward about their X axis."""
    limit, _ = _vertebra(Quaternion(), _Z, _X, HUMAN["lumbar and thoracic spine"], len(row))
    return dict.fromkeys(row, limit)


def tail_limits(row: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, Limit | None]:
    """Return a cone for each bone, narrower the more bones there are."""
    radius = radians(min(TAIL["each bone at most"], TAIL["whole tail"] / len(row)))
    twist = radians(TAIL["rotation of each bone"])
    return dict.fromkeys(row, SwingTwist(Cone(radius), (-twist, twist)))


def finger_limits(row: Sequence[bpy.types.PoseBone]) -> dict[bpy.types.PoseBone, Limit | None]:
    """Return the limits of a finger or a thumb, which bends to the side of its curl at rest.

    The last three bones of the row are limited; a bone in the palm is free. A straight finger bends about the
    X axis of its bones, as in Rigify.
    """
    bones = list(row[-3:])
    role = roles_of(row[0].id_data).get(row[-1].name)
    is_thumb = role is not None and role.part is Part.FINGER and role.number == 0
    # A thumb on the left spreads against the axis that it bends about; fingers spread to both sides alike.
    out = 1.0 if role is not None and role.side is Side.RIGHT else -1.0
    names = ["first joint", "second joint", "last joint"][: len(bones)]
    if len(bones) == 2 and is_thumb:
        names = ["second joint", "last joint"]
    limits: dict[bpy.types.PoseBone, Limit | None] = {}
    for bone, name in zip(bones, names, strict=True):
        motion = HUMAN[f"{'thumb' if is_thumb else 'finger'}, {name}"]
        rest = rest_rotation(bone)
        axis = _bending_axis(rest, bones)
        if "spreading" in motion or "abduction" in motion:
            limits[bone] = _knuckle(rest, axis, out * axis, motion)
        else:
            limit = hinge_limit(rest, axis, -radians(motion["extension"]), radians(motion["flexion"]))
            limits[bone] = limit
    return limits


def _knuckle(rest: Quaternion, axis: Vector, out: Vector, motion: dict[str, float]) -> Limit:
    """Return the limit of a first joint, which bends and spreads.

    Args:
        axis: about which it bends, in armature space.
        out: direction in which it spreads, in armature space.
    """
    down: Any = axis.cross(rest @ _Y)
    spread = radians(motion.get("spreading", motion.get("abduction", 0.0)))
    back = radians(motion.get("spreading", motion.get("adduction", 0.0)))
    curl = down, radians(motion["flexion"]), radians(motion["extension"])
    return swing_limit(rest, curl, (out, spread, back), (0.0, 0.0))[0]


def _bending_axis(rest: Quaternion, bones: Sequence[bpy.types.PoseBone]) -> Vector:
    """Return the axis in armature space about which a bone of a finger bends.

    It is the axis of the curl at rest: X or Z of the bone if near, and X for a straight finger.
    """
    first, last = (rest_rotation(bone) @ _Y for bone in (bones[0], bones[-1]))
    if acos(min(max(first.dot(last), -1.0), 1.0)) < CURLED:
        return rest @ _X
    curl: Any = first.cross(last).normalized()
    for axis in (rest @ _X, rest @ _Z):
        along = axis.dot(curl)
        if abs(along) > PARALLEL:
            return axis if along > 0.0 else -axis
    return curl


# Applying presets -------------------------------------------------------------------------------------------

FIGURES: dict[str, tuple[Kind, Callable[[Body, str, Role], JointLimit]]] = {
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
"""Source of most ranges of a preset; docs/guide/limit_presets.md has the source for each joint."""
ROWS = {"SPINE": spine_limits, "TAIL": tail_limits, "FINGER": finger_limits}

Limits = dict[bpy.types.PoseBone, Limit | None]


def apply_preset(pose_bones: Sequence[bpy.types.PoseBone], preset: str) -> Outcome:
    """Store the limits of a preset, widened to include the present pose.

    Raises:
        RigError: as `preset_limits`. Nothing has changed then.
    """
    limits, notes = preset_limits(pose_bones, preset)
    limits, wider = widened_limits(limits, present_rotations(pose_bones), "the present pose")
    store_limits(limits)
    return Outcome(tuple(bone.name for bone in limits), (*notes, *wider), SOURCES[preset])


def preset_limits(pose_bones: Sequence[bpy.types.PoseBone], preset: str) -> tuple[Limits, list[str]]:
    """Return the limits that a preset has for bones, and notes on them.

    Args:
        pose_bones: of one armature, in its order.
        preset: of `FIGURES`, for bones with a role in such a figure; or of `ROWS`, for any bones.

    Raises:
        RigError: the armature is no such figure, or no bone gets a limit.
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
            joint_limit = make(body, bone.name, role)
        except InvalidInput as error:
            reasons[str(error)].append(bone.name)
            continue
        if joint_limit is not None:
            limits[bone], is_exact = joint_limit
            if not is_exact:
                askew.append(bone.name)
    notes = [f"{named(names)} left as before: {reason}" for reason, names in reasons.items()]
    if askew:
        notes.append(f"{named(askew)}: rolled between the motions of the joint, so that its sides are rough")
    fingers = _finger_limits(pose_bones, body) if preset == "HUMAN" else {}
    return limits | fingers, notes


def _finger_limits(pose_bones: Sequence[bpy.types.PoseBone], body: Body) -> Limits:
    """Return the limits of bones in fingers."""
    fingers: dict[tuple[str, int], list[bpy.types.PoseBone]] = defaultdict(list)
    for name, role in sorted(body.figure.roles.items(), key=lambda item: item[1].index):
        if role.part is Part.FINGER:
            fingers[role.side, role.number].append(body.armature_object.pose.bones[name])
    limits: Limits = {}
    for row in fingers.values():
        limits |= {bone: limit for bone, limit in finger_limits(row).items() if bone in pose_bones}
    return limits
