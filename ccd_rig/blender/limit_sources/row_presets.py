# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of bones in a row that is a spine, a tail or a finger, whatever the rest of the rig is."""

from __future__ import annotations

from collections.abc import Sequence
from math import acos, radians
from typing import Any

import bpy
from mathutils import Quaternion, Vector

from ...limits.body_motions import Motion, hinge_limit, swing_limit
from ...limits.shapes import Cone, Limit, SwingTwist
from ..figures.role import Part
from ..figures.roles import roles_of
from .body import rest_of
from .joint_ranges import HUMAN, TAIL

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
