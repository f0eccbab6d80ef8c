# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits fitted to motion: to one action, or to all actions that rotate the bones.

Actions are read from their F-curves; neither the scene's frame nor any bone changes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import bpy
import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from ...errors import InvalidInput, RigError
from ...limits.fitting import FitSettings, comfort_region, fit
from ...limits.shapes import Limit
from ..figures.recognition import figure_of
from ..figures.role import Kind, Part
from ..keys import channels
from ..properties.limits import store_limits
from ..properties.names import named
from ..properties.pose_library import rotations_at, turned_bones
from .bones import Outcome

HINGES = {
    *(Part.LOWER_ARM, Part.SHIN, Part.FRONT_SHIN, Part.FINGER, Part.TOE, Part.FRONT_TOE),
    *(Part.LEG, Part.TAIL, Part.WING),
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
