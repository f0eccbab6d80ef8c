# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a healthy adult's joints go, and these ranges as limits on the bones of Rigify's human metarig.

Sources of the table are told beside it, in ccd_rig/blender/limit_sources/joint_ranges.py.

A limit speaks about rotations relative to rest, and the metarig does not rest in the anatomical position: its
arms are spread, its knees and elbows bent. What a joint has used up of its range at rest is read off the rest
bones and subtracted.
"""

from __future__ import annotations

from math import atan2, radians

import bpy
from mathutils import Vector

from ccd_rig.blender.limit_sources import joint_ranges

RANGES = joint_ranges.HUMAN  # degrees

BACK = ("spine.001", "spine.002", "spine.003")
NECK = ("spine.004", "spine.005", "spine.006")

FRONT, UP = Vector((0.0, -1.0, 0.0)), Vector((0.0, 0.0, 1.0))  # of the metarig, armature space


def apply(armature_object: bpy.types.Object) -> list[str]:
    """Give the metarig's spine, neck, arms and legs their limits; returns the bones that have one.

    Args:
        armature_object: Rigify's human metarig with its own names, rest pose and rolls.
    """
    names: list[str] = []
    for part, bones in (("lumbar and thoracic spine", BACK), ("cervical spine", NECK)):
        for bone in bones:
            _vertebrae(armature_object.pose.bones[bone], RANGES[part], share=1.0 / len(bones))
            names.append(bone)
    for side in ("L", "R"):
        bones = {
            name: armature_object.pose.bones[f"{name}.{side}"]
            for name in ("shoulder", "upper_arm", "forearm", "hand", "thigh", "shin", "foot")
        }
        outward = Vector((1.0 if side == "L" else -1.0, 0.0, 0.0))
        _clavicle(bones["shoulder"])
        _shoulder(bones["upper_arm"], outward)
        _hinge(bones["forearm"], RANGES["elbow"])
        _wrist(bones["hand"], outward)
        _hip(bones["thigh"], outward)
        _hinge(bones["shin"], RANGES["knee"])
        _ankle(bones["foot"], bones["shin"], outward)
        names += [bone.name for bone in bones.values()]
    return names


# --- joints -------------------------------------------------------------------------------------------------


def _vertebrae(bone: bpy.types.PoseBone, motion: dict[str, float], share: float) -> None:
    """One of several bones that stand for a part of the spine; each takes an equal share."""
    limit = bone.ccd_rig.limit
    limit.kind, limit.euler_order = "EULER", "XYZ"
    forward = _turn(bone, FRONT)
    assert forward == ("x", 1), "the spine's bones face the front with +Z"
    lower = (-motion["extension"], -motion["rotation"], -motion["bending"])
    upper = (motion["flexion"], motion["rotation"], motion["bending"])
    limit.euler_lower = [radians(share * angle) for angle in lower]
    limit.euler_upper = [radians(share * angle) for angle in upper]


def _clavicle(bone: bpy.types.PoseBone) -> None:
    motion = RANGES["clavicle"]
    _ellipse(
        bone,
        {
            "elevation": (UP, motion["elevation"]),
            "depression": (-UP, motion["depression"]),
            "protraction": (FRONT, motion["protraction"]),
            "retraction": (-FRONT, motion["retraction"]),
        },
        twist=(0.0, 0.0),
    )


def _shoulder(bone: bpy.types.PoseBone, outward: Vector) -> None:
    motion, arm = RANGES["shoulder"], _direction(bone)
    raised = _degrees(atan2(arm.dot(outward), arm.dot(-UP)))  # at rest, away from hanging
    backward = _degrees(atan2(arm.dot(-FRONT), arm.dot(outward)))  # at rest, behind the frontal plane
    _ellipse(
        bone,
        {
            "abduction": (UP, motion["abduction"] - RANGES["clavicle"]["elevation"] - raised),
            "adduction": (-UP, motion["adduction"] + raised),
            "flexion": (FRONT, motion["horizontal flexion"] + backward),
            "extension": (-FRONT, motion["horizontal extension"] - backward),
        },
        twist=_inward(outward, motion["internal rotation"], motion["external rotation"]),
    )


def _wrist(bone: bpy.types.PoseBone, outward: Vector) -> None:
    """The hand on the forearm, with the forearm's pronation and supination as the hand's twist.

    At rest the palms look down and the thumbs to the front, which is half way between the two.
    """
    motion, forearm = RANGES["wrist"], RANGES["forearm"]
    _ellipse(
        bone,
        {
            "flexion": (-UP, motion["flexion"]),
            "extension": (UP, motion["extension"]),
            "radial deviation": (FRONT, motion["radial deviation"]),
            "ulnar deviation": (-FRONT, motion["ulnar deviation"]),
        },
        twist=_inward(outward, forearm["pronation"], forearm["supination"]),
    )


def _hip(bone: bpy.types.PoseBone, outward: Vector) -> None:
    motion, leg = RANGES["hip"], _direction(bone)
    flexed = _degrees(atan2(leg.dot(FRONT), leg.dot(-UP)))
    abducted = _degrees(atan2(leg.dot(outward), leg.dot(-UP)))
    _ellipse(
        bone,
        {
            "flexion": (FRONT, motion["flexion"] - flexed),
            "extension": (-FRONT, motion["extension"] + flexed),
            "abduction": (outward, motion["abduction"] - abducted),
            "adduction": (-outward, motion["adduction"] + abducted),
        },
        twist=_inward(outward, motion["internal rotation"], motion["external rotation"]),
    )


def _hinge(bone: bpy.types.PoseBone, motion: dict[str, float]) -> None:
    """A knee or an elbow: about the axis in which the metarig's limb is bent at rest."""
    above, below = _direction(bone.parent), _direction(bone)
    bent = _degrees(above.angle(below))
    limit = bone.ccd_rig.limit
    limit.kind = "HINGE"
    limit.axis = _to_bone(bone, above.cross(below).normalized())
    limit.hinge_lower = radians(motion["extension to"] - bent)
    limit.hinge_upper = radians(motion["flexion"] - bent)


def _ankle(bone: bpy.types.PoseBone, shin: bpy.types.PoseBone, outward: Vector) -> None:
    """The foot stands flat at rest, so the shin's lean to the front is what the ankle is bent."""
    motion, leg = RANGES["ankle"], _direction(shin)
    dorsiflexed = _degrees(atan2(leg.dot(-FRONT), leg.dot(-UP)))
    axis, sign = _turn(bone, UP)
    assert axis == "x", "the metarig's feet nod about X"
    ends = [sign * (motion["dorsiflexion"] - dorsiflexed), -sign * (motion["plantarflexion"] + dorsiflexed)]
    # The bone points to the front: a roll about it turns the left foot's sole outward (eversion) if positive.
    roll = sorted(outward.x * angle for angle in (motion["eversion"], -motion["inversion"]))
    limit = bone.ccd_rig.limit
    limit.kind, limit.euler_order = "EULER", "XYZ"
    limit.euler_lower = [radians(angle) for angle in (min(ends), roll[0], -motion["turning"])]
    limit.euler_upper = [radians(angle) for angle in (max(ends), roll[1], motion["turning"])]


# --- from motions of the body to axes of the bone -----------------------------------------------------------


def _ellipse(
    bone: bpy.types.PoseBone,
    motions: dict[str, tuple[Vector, float]],
    twist: tuple[float, float],
) -> None:
    """Swing by four motions, each a direction for the bone's tail and how far it goes; all in degrees."""
    limit = bone.ccd_rig.limit
    limit.kind = "ELLIPSE"
    ends: dict[tuple[str, int], float] = {}
    for toward, angle in motions.values():
        ends[_turn(bone, toward)] = angle
    assert len(ends) == 4, f"{bone.name}: two motions turn the bone about the same axis"
    for axis in "xz":
        setattr(limit, f"{axis}_lower", radians(-ends[axis, -1]))
        setattr(limit, f"{axis}_upper", radians(ends[axis, 1]))
    limit.use_twist = True
    limit.twist_lower, limit.twist_upper = (radians(angle) for angle in twist)


def _turn(bone: bpy.types.PoseBone, toward: Vector) -> tuple[str, int]:
    """About which of its own axes, and in which sense, a bone turns to move its tail in a direction."""
    axis = _to_bone(bone, _direction(bone).cross(toward).normalized())
    name, value = ("x", axis.x) if abs(axis.x) > abs(axis.z) else ("z", axis.z)
    if abs(value) < 0.8:
        raise ValueError(
            f"bone '{bone.name}' is not rolled as in the metarig: it moves about neither X nor Z"
        )
    return name, 1 if value > 0.0 else -1


def _inward(outward: Vector, internal: float, external: float) -> tuple[float, float]:
    """Twist of a limb's bone: turning its front towards the body's middle is positive on the left."""
    return (-external, internal) if outward.x > 0.0 else (-internal, external)


def _direction(bone: bpy.types.PoseBone) -> Vector:
    return (bone.bone.tail_local - bone.bone.head_local).normalized()


def _to_bone(bone: bpy.types.PoseBone, vector: Vector) -> Vector:
    return bone.bone.matrix_local.to_3x3().inverted() @ vector


def _degrees(angle: float) -> float:
    return angle * 180.0 / 3.141592653589793
