# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits learned from motion: from one action, or from all that turn the bones.

Actions are read from their F-curves; neither the scene's frame nor any bone changes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import bpy
import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from ...errors import InvalidInput, RigError
from ...limits.fitting import FitSettings, comfort_region, fit
from ...limits.shapes import Limit
from ..figures.role import Figure, Kind, Part
from ..figures.roles import figure_of
from ..keys import channels
from ..properties.joints import store_limits
from ..properties.names import named
from ..properties.pose_library import rotations_at, turned_bones
from .chosen_bones import Outcome

HINGES = {
    Part.LOWER_ARM,
    Part.SHIN,
    Part.FRONT_SHIN,
    Part.FINGER,
    Part.TOE,
    Part.FRONT_TOE,
    Part.LEG,
    Part.TAIL,
    Part.WING,
}
"""Parts of a figure whose bones may be hinges; the joints of the others have three axes."""
MOST = 4000
"""So many frames are looked at, at most; of longer motion every second, third and so on."""
FEW = 500
"""The same where each rotation is looked at alone."""


def from_action(
    pose_bones: Sequence[bpy.types.PoseBone], action: bpy.types.Action | None, settings: FitSettings
) -> Outcome:
    """Give bones the limits that hold their rotations in an action.

    Bones that the action does not turn, and those whose range it does not tell, stay as they are.

    Args:
        pose_bones: of one armature.
        action: None: the armature's present action.
        settings: of the fit.

    Raises:
        RigError: there is no action, or it tells the range of none of the bones. Nothing has changed then.
    """
    armature_object = pose_bones[0].id_data
    if action is None:
        animation = armature_object.animation_data
        action = animation.action if animation is not None else None
        if action is None:
            raise RigError(
                f"armature '{armature_object.name}' has no action: choose one in the Action Editor, or learn "
                "from all actions"
            )
        curves = list(channels.fcurves_of(armature_object))
    else:
        curves = list(channels.fcurves_for(action, armature_object))
    return _learned(pose_bones, {action.name: curves}, f"action '{action.name}'", settings)


def from_all_actions(pose_bones: Sequence[bpy.types.PoseBone], settings: FitSettings) -> Outcome:
    """The same from all actions of the file together that are for objects and turn any of the bones.

    Raises:
        RigError: no action turns any of the bones, or the range of none of them can be told. Nothing has
            changed then.
    """
    armature_object = pose_bones[0].id_data
    found = {}
    for action in bpy.data.actions:
        try:
            curves = list(channels.fcurves_for(action, armature_object))
        except RigError:  # it is for cameras, or for several objects of which none is this one
            continue
        if turned_bones(armature_object, curves, [bone.name for bone in pose_bones]):
            found[action.name] = curves
    return _learned(pose_bones, found, "no action of this file" if not found else "the actions", settings)


def _learned(
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
        try:
            limits[bone] = limit = fit(rotations, settings, _may_be_hinge(figure, bone.name))
            regions[bone] = comfort_region(rotations, limit, settings)
        except InvalidInput as error:
            reasons[str(error)].append(bone.name)
    notes = tuple(f"{named(names)} left as before: {reason}" for reason, names in reasons.items())
    if not limits:
        raise RigError(notes[0])
    store_limits(limits, regions if settings.comfort else None)
    return Outcome(tuple(bone.name for bone in limits), notes)


def _may_be_hinge(figure: Figure, name: str) -> bool:
    """Whether a bone may turn about one axis only: a thigh may not, although a walk shows no other axis."""
    role = figure.roles.get(name)
    return role is None or role.part in HINGES or figure.kind in (Kind.CHAIN, Kind.UNKNOWN)


def _samples(
    pose_bones: Sequence[bpy.types.PoseBone], actions: dict[str, list[bpy.types.FCurve]]
) -> dict[bpy.types.PoseBone, NDArray[np.float64]]:
    """The rotations (N, 4) of each bone that an action turns, at all frames of the actions that turn it."""
    armature_object = pose_bones[0].id_data
    bones = {bone.name: bone for bone in pose_bones}
    plans = []
    for curves in actions.values():
        turned = turned_bones(armature_object, curves, bones)
        paths = tuple(f"{bones[name].path_from_id()}.rotation_" for name in turned)
        about = [curve for curve in curves if curve.data_path.startswith(paths)] if turned else []
        if about:
            first, last = channels.span(about)
            plans.append((turned, about, range(math.floor(first), math.ceil(last) + 1)))
    every = max(1, math.ceil(sum(len(frames) for _, _, frames in plans) / MOST))
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for turned, about, frames in plans:
        for frame in _thinned(frames, every):
            for name, rotation in rotations_at(armature_object, about, turned, frame).items():
                found[name].append(rotation[:])
    return {bones[name]: np.array(rotations) for name, rotations in found.items()}


def played_rotations(
    pose_bones: Sequence[bpy.types.PoseBone],
) -> dict[bpy.types.PoseBone, list[Quaternion]]:
    """The rotations of those bones that what plays on their armature turns, at up to `FEW` frames."""
    playing = enumerate(channels.played(pose_bones[0].id_data))
    samples = _samples(pose_bones, {str(place): list(curves) for place, (_, curves) in playing})
    return {
        bone: [Quaternion(each) for each in rotations[:: math.ceil(len(rotations) / FEW)]]
        for bone, rotations in samples.items()
    }


def _thinned(frames: range, every: int) -> Iterator[int]:
    """Every so many frames, and the last one."""
    yield from frames[:-1:every]
    yield frames[-1]
