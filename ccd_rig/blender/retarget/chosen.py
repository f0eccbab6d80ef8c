# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored settings of a retargeting as values, and back; the preview of one frame."""

from __future__ import annotations

from typing import Any

import bpy

from ...errors import CCDRigError, InvalidInput, RigError
from ...motion.contacts import ContactThresholds
from ...motion.retargeting.settings import PAIRED, SPACES, WEIGHTS, EffectorSpace, RetargetSettings, Weight
from ..properties import retarget_group
from .bone_map import BoneMap, bone_map
from .retarget import ReferenceFrame, RetargetChoice, reference_frame, require_two, show_frame
from .sampling import Reference, RestIsNoPose


def choice_of(target: bpy.types.Object) -> RetargetChoice:
    """Return the stored settings of an armature.

    Raises:
        RigError: a setting is invalid.
    """
    group: Any = target.ccd_rig.retarget
    try:
        settings = RetargetSettings(
            scale=group.scale,
            in_place=group.in_place,
            ground=group.ground if group.use_ground else None,
            **{name: _weight(group, name) for name in WEIGHTS},
            **{name: EffectorSpace(getattr(group, name)) for name in SPACES},
            contacts=group.contacts,
            thresholds=ContactThresholds(speed=group.speed, height=group.height),
            blend=group.blend,
            extension=group.extension,
        )
    except InvalidInput as error:
        raise RigError(str(error)) from error
    return RetargetChoice(
        source_fps=group.source_fps,
        reference=Reference(group.reference),
        reference_frame=group.reference_frame,
        bones={pair.name: pair.source for pair in group.pairs},
        settings=settings,
    )


def _weight(group: Any, name: str) -> Weight:
    if name in PAIRED and group.sides_apart:
        return getattr(group, name), getattr(group, f"{name}_right")
    return float(getattr(group, name))


def fill_map(target: bpy.types.Object) -> BoneMap:
    """Replace the list of pairs by the map of roles: a pair for each bone of the target with a role.

    Raises:
        RigError: source or target is no armature, or they are the same.
    """
    group: Any = target.ccd_rig.retarget
    require_two(group.source, target)
    mapped = bone_map(target, group.source)
    names = dict.fromkeys((*mapped.figure.roles, *mapped.bones))
    group.pairs.clear()
    for name in names:
        pair = group.pairs.add()
        pair.name, pair.source = name, mapped.bones.get(name, "")
    return mapped


def set_pairs(target: bpy.types.Object, bones: dict[str, str]) -> None:
    """Set pairs {target bone: source bone} in the list; the other pairs are kept."""
    pairs: Any = target.ccd_rig.retarget.pairs
    for name, source in bones.items():
        pair = pairs.get(name) or pairs.add()
        pair.name, pair.source = name, source


def use_frame(scene: bpy.types.Scene, target: bpy.types.Object, which: ReferenceFrame) -> float:
    """Choose a frame of the source as its reference, and return it.

    Raises:
        RigError: source or target is no armature, the source does not move, or the map is incomplete.
    """
    group: Any = target.ccd_rig.retarget
    require_two(group.source, target)
    frame = reference_frame(scene, group.source, target, choice_of(target), which)
    group.reference_frame = frame
    group.reference = Reference.FRAME.value
    note_refusal(target, None)
    return frame


def note_refusal(target: bpy.types.Object, error: CCDRigError | None) -> None:
    """Store whether an error is about the rest pose, for which the panel offers a remedy; None clears it."""
    group: Any = target.ccd_rig.retarget
    group.no_pose = group.source.name if isinstance(error, RestIsNoPose) else ""


def show(target: bpy.types.Object) -> None:
    """Show the present frame as retargeted.

    An error goes to the report. Without one the report is cleared, since it is of former settings.
    """
    group: Any = target.ccd_rig.retarget
    try:
        require_two(group.source, target)
        show_frame(bpy.context.scene, group.source, target, choice_of(target))
        group.report = ""
    except CCDRigError as error:
        note_refusal(target, error)
        group.report = "" if group.no_pose else str(error)  # the panel reports `no_pose` with a remedy


def register() -> None:
    """Add the callback that shows frames when settings change."""
    retarget_group.shows.append(show)


def unregister() -> None:
    """Remove the callback."""
    retarget_group.shows.remove(show)
