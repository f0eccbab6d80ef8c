# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits from Blender: locks and ranges of its IK, Limit Rotation constraints, and motion.

Motion is one action, or all actions that rotate the bones. They are read from their F-curves; neither the
scene's frame nor any bone changes.

Blender's IK rotates a bone from rest about its unlocked axes: swing (X and Z) after twist (Y).

- One free axis is a hinge, and one swing axis with twist an ellipse whose other sides are 0. Both are exact.
- Two swing axes are in Blender an ellipse in the sine of half the angle. Its rim differs from that of a limit
  by 0.2 degrees for sides of 90 and 45 degrees, by 0.8 for 120 and 60.
- If only one of X and Z has a range, the free side of the limit's ellipse is 180 degrees. The range therefore
  narrows with the swing about the free axis: by 3 % at 45 degrees, by 13 % at 90. Blender's does not narrow.
  If Y is locked, Blender does not enforce such a range.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import bpy
import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from ...errors import InvalidInput, RigError
from ...limits.fitting import comfort_region, fit
from ...limits.settings import FitSettings
from ...limits.shapes import Ellipse, EulerBox, Hinge, Limit, SwingTwist
from ..figures.recognition import figure_of
from ..figures.role import Kind, Part
from ..keys import channels
from ..properties.limits import store_limits
from ..properties.names import named
from ..properties.pose_library import rotations_at, turned_bones
from ..rig import clamps
from ..rig.rotation_modes import EULER_MODES
from .bones import Outcome

Range = tuple[float, float]

FREE: Range = (-math.pi, math.pi)
AXES = "xyz"
_UNIT = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def has_ik_limit(pose_bone: bpy.types.PoseBone) -> bool:
    """Whether a bone has locks, ranges or stiffness for Blender's IK."""
    return any(
        getattr(pose_bone, f"lock_ik_{axis}")
        or getattr(pose_bone, f"use_ik_limit_{axis}")
        or getattr(pose_bone, f"ik_stiffness_{axis}") > 0.0
        for axis in AXES
    )


def ik_limit(pose_bone: bpy.types.PoseBone) -> Limit | None:
    """Return the limit that a bone has for Blender's IK; None if all axes are free or all are locked."""
    ranges = _ranges(pose_bone)
    twist = None if _is_free(ranges["y"]) else ranges["y"]
    if all(_is_free(ends) for ends in ranges.values()) or not any(_turns(ends) for ends in ranges.values()):
        return None
    turning = [axis for axis, ends in ranges.items() if _turns(ends)]
    if len(turning) == 1:
        (axis,) = turning
        return Hinge(_UNIT[axis], *ranges[axis])
    x, z = ranges["x"], ranges["z"]
    if _is_free(x) and _is_free(z):
        return SwingTwist(None, twist)
    return SwingTwist(Ellipse(*x, *z), twist)


def from_ik(pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
    """Take over limits and stiffness of bones from Blender's IK.

    Raises:
        RigError: no bone has any. Nothing has changed then.
    """
    limited = [bone for bone in pose_bones if has_ik_limit(bone)]
    if not limited:
        raise RigError(
            f"no IK limit, lock or stiffness is set in Blender for {named([b.name for b in pose_bones])}: "
            "select bones that have one"
        )
    store_limits({bone: ik_limit(bone) for bone in limited})
    notes, narrower = [], []
    for bone in limited:
        ranges = _ranges(bone)
        turning = [axis for axis, ends in ranges.items() if _turns(ends)]
        stiffness = [getattr(bone, f"ik_stiffness_{axis}") for axis in turning]
        bone.ccd_rig.stiffness = float(sum(stiffness)) / len(turning) if turning else 1.0
        x, _, z = ranges.values()
        if _is_free(x) != _is_free(z) and _turns(x) and _turns(z):
            narrower.append(bone.name)
    if stretching := [bone.name for bone in limited if bone.ik_stretch > 0.0]:
        notes.append(f"IK Stretch of {named(stretching)} is left out: bones keep their length")
    if narrower:
        notes.append(
            f"{named(narrower)} limit only one of X and Z: the range narrows as the bone swings about the "
            "other, where Blender's IK lets more through"
        )
    return Outcome(tuple(bone.name for bone in limited), tuple(notes))


def _ranges(pose_bone: bpy.types.PoseBone) -> dict[str, Range]:
    """Return the range of angles about each axis in Blender's IK, radians."""
    ranges = {}
    for axis in AXES:
        ends = FREE
        if getattr(pose_bone, f"lock_ik_{axis}"):
            ends = (0.0, 0.0)
        elif getattr(pose_bone, f"use_ik_limit_{axis}"):
            ends = getattr(pose_bone, f"ik_min_{axis}"), getattr(pose_bone, f"ik_max_{axis}")
        ranges[axis] = ends
    return ranges


def _is_free(ends: Range) -> bool:
    return ends[1] - ends[0] >= 2.0 * math.pi - 1e-5


def _turns(ends: Range) -> bool:
    return ends[1] > ends[0]


def limit_rotations(pose_bone: bpy.types.PoseBone) -> list[Any]:
    """Return the user's Limit Rotation constraints of a bone."""
    return [each for each in clamps.user_constraints(pose_bone) if each.type == "LIMIT_ROTATION"]


def box(pose_bone: bpy.types.PoseBone, constraint: Any) -> EulerBox:
    """Convert a Limit Rotation constraint to a limit.

    Raises:
        RigError: its Owner is not Local Space, it limits no axis, or a bound is above the other.
    """
    where = f"bone '{pose_bone.name}', constraint '{constraint.name}'"
    if constraint.owner_space != "LOCAL":
        raise RigError(
            f"{where}: its Owner is not Local Space, so it limits no rotation relative to rest: set it to "
            "Local Space, and its ranges to that"
        )
    order = constraint.euler_order
    if order == "AUTO":
        order = pose_bone.rotation_mode if pose_bone.rotation_mode in EULER_MODES else "XYZ"
    lower, upper = [], []
    for axis in "xyz":
        used = getattr(constraint, f"use_limit_{axis}")
        ends = (getattr(constraint, f"min_{axis}"), getattr(constraint, f"max_{axis}"))
        if used and ends[0] > ends[1]:
            raise RigError(
                f"{where}: {axis.upper()} Min ({math.degrees(ends[0]):.4g}°) is above Max "
                f"({math.degrees(ends[1]):.4g}°): swap them"
            )
        lower.append(ends[0] if used else -math.pi)
        upper.append(ends[1] if used else math.pi)
    if not any(getattr(constraint, f"use_limit_{axis}") for axis in "xyz"):
        raise RigError(f"{where}: it limits no axis: tick one")
    return EulerBox(order, tuple(lower), tuple(upper))


def from_limit_rotation(pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
    """Take over the limits of bones from their Limit Rotation constraints, which are kept.

    A bone whose constraint cannot be converted keeps its limit, and a note names it.

    Raises:
        RigError: no bone has such a constraint, or no constraint can be converted. Nothing has changed then.
    """
    # The first that is not muted, else the first one.
    by_bone = ((bone, limit_rotations(bone)) for bone in pose_bones)
    constraints = {bone: next((c for c in each if not c.mute), each[0]) for bone, each in by_bone if each}
    if not constraints:
        raise RigError(f"no Limit Rotation constraint is on {named([bone.name for bone in pose_bones])}")
    limits: dict[bpy.types.PoseBone, Limit | None] = {}
    notes = []
    for bone, constraint in constraints.items():
        try:
            limits[bone] = box(bone, constraint)
        except RigError as error:
            notes.append(str(error))
    if not limits:
        raise RigError(notes[0])
    store_limits(limits)
    animated = {path for path, _ in channels.animated_components(pose_bones[0].id_data)}
    for bone in limits:
        notes += _differences(bone, constraints[bone], animated)
    return Outcome(tuple(bone.name for bone in limits), tuple(notes))


def _differences(pose_bone: bpy.types.PoseBone, constraint: Any, animated: set[str]) -> list[str]:
    """List the differences between a constraint and the limit from it, in sentences."""
    path = constraint.path_from_id() + "."
    moving = sorted(data_path[len(path) :] for data_path in animated if data_path.startswith(path))
    others = [each for each in limit_rotations(pose_bone) if each != constraint]
    where = f"bone '{pose_bone.name}', constraint '{constraint.name}'"
    notes = []
    if constraint.mute:
        notes.append(f"{where} is muted; the limit holds nevertheless")
    if constraint.influence < 1.0:
        notes.append(f"{where} has an influence of {constraint.influence:.2g}; the limit holds fully")
    if moving:
        notes.append(f"{where}: {', '.join(moving)} is animated; the limit keeps the present value")
    if others:
        notes.append(f"bone '{pose_bone.name}' has {len(others)} more such; they are left out")
    return notes


# Motion -----------------------------------------------------------------------------------------------------

HINGES = {
    *(Part.LOWER_ARM, Part.SHIN, Part.FRONT_SHIN, Part.FINGER, Part.TOE, Part.FRONT_TOE),
    *(Part.LEG, Part.TAIL, Part.TRUNK, Part.WING),
}
"""Parts of a figure whose bones may be hinges; the remaining joints have three axes."""
MOST = 4000
"""Largest number of frames that are sampled; longer motion is sampled at every second, third ... frame."""
FEW = 500
"""Largest number of rotations for computations that cost more for each rotation."""


def from_action(
    pose_bones: Sequence[bpy.types.PoseBone], action: bpy.types.Action | None, settings: FitSettings
) -> Outcome:
    """Fit limits of bones to their rotations in an action.

    Bones without rotation, or with too little of it for a fit, keep their limits.

    Args:
        action: None: the armature's present action.

    Raises:
        RigError: there is no action, or it has no limit for any of the bones. Nothing has changed then.
    """
    armature_object = pose_bones[0].id_data
    if action is None:
        action = channels.action_of(armature_object)
        if action is None:
            raise RigError(
                f"armature '{armature_object.name}' has no action: choose one in the Action Editor, or learn "
                "from all actions"
            )
        curves = list(channels.fcurves_of(armature_object))
    else:
        curves = list(channels.fcurves_for(action, armature_object))
    return _fit_limits(pose_bones, {action.name: curves}, f"action '{action.name}'", settings)


def from_all_actions(pose_bones: Sequence[bpy.types.PoseBone], settings: FitSettings) -> Outcome:
    """Fit limits of bones to their rotations in all actions of the file that rotate any of them.

    Raises:
        RigError: no action rotates any of the bones, or they have no limit for any. Nothing has changed then.
    """
    armature_object = pose_bones[0].id_data
    curves_of = {}
    for action in bpy.data.actions:
        try:
            curves = list(channels.fcurves_for(action, armature_object))
        except RigError:  # it is for cameras, or for several other objects
            continue
        if turned_bones(armature_object, curves, [bone.name for bone in pose_bones]):
            curves_of[action.name] = curves
    source = "no action of this file" if not curves_of else "the actions"
    return _fit_limits(pose_bones, curves_of, source, settings)


def _fit_limits(
    pose_bones: Sequence[bpy.types.PoseBone],
    actions: dict[str, list[bpy.types.FCurve]],
    source: str,
    settings: FitSettings,
) -> Outcome:
    samples = _samples(pose_bones, actions)
    if not samples:
        names = named([bone.name for bone in pose_bones])
        raise RigError(f"{source}: none of the bones {names} is turned: choose other bones or another action")
    limits: dict[bpy.types.PoseBone, Limit | None] = {}
    regions: dict[bpy.types.PoseBone, Limit | None] = {}
    reasons: dict[str, list[str]] = defaultdict(list)
    figure = figure_of(pose_bones[0].id_data)
    for bone, rotations in samples.items():
        role = figure.roles.get(bone.name)  # no thigh is a hinge, even if it only swings in a walk
        may_be_hinge = role is None or role.part in HINGES or figure.kind in (Kind.CHAIN, Kind.UNKNOWN)
        try:
            limits[bone] = limit = fit(rotations, settings, may_be_hinge)
            regions[bone] = comfort_region(rotations, limit, settings)
        except InvalidInput as error:
            reasons[str(error)].append(bone.name)
    notes = tuple(f"{named(names)} left as before: {reason}" for reason, names in reasons.items())
    if not limits:
        raise RigError(notes[0])
    store_limits(limits, regions if settings.comfort else None)
    return Outcome(tuple(bone.name for bone in limits), notes)


def _samples(
    pose_bones: Sequence[bpy.types.PoseBone], actions: dict[str, list[bpy.types.FCurve]]
) -> dict[bpy.types.PoseBone, NDArray[np.float64]]:
    """Return the rotations (N, 4) of each bone in the frames of all actions that rotate it."""
    armature_object = pose_bones[0].id_data
    bones = {bone.name: bone for bone in pose_bones}
    plans = []
    for curves in actions.values():
        turned = turned_bones(armature_object, curves, bones)
        paths = tuple(f"{bones[name].path_from_id()}.rotation_" for name in turned)
        rotating = [curve for curve in curves if curve.data_path.startswith(paths)] if turned else []
        if rotating:
            first, last = channels.span(rotating)
            plans.append((turned, rotating, range(math.floor(first), math.ceil(last) + 1)))
    step = max(1, math.ceil(sum(len(frames) for _, _, frames in plans) / MOST))
    samples: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for turned, rotating, frames in plans:
        for frame in (*frames[:-1:step], frames[-1]):
            for name, rotation in rotations_at(armature_object, rotating, turned, frame).items():
                samples[name].append(rotation[:])
    return {bones[name]: np.array(rotations) for name, rotations in samples.items()}


def played_rotations(
    pose_bones: Sequence[bpy.types.PoseBone],
) -> dict[bpy.types.PoseBone, list[Quaternion]]:
    """Return rotations of bones in the present animation of their armature, at most about `FEW` each.

    Bones that the animation does not rotate are left out.
    """
    playing = enumerate(channels.played(pose_bones[0].id_data))
    samples = _samples(pose_bones, {str(i): list(curves) for i, (_, curves) in playing})
    return {
        bone: [Quaternion(rotation) for rotation in rotations[:: math.ceil(len(rotations) / FEW)]]
        for bone, rotations in samples.items()
    }
