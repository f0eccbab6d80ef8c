# SPDX-License-Identifier: GPL-3.0-or-later
"""What an armature stores of a retargeting, as values, and back."""

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
    """What is chosen on an armature.

    Raises:
        RigError: numbers that make no sense.
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
    """Write the map that roles find into the list: a pair for each bone of the target that has a role.

    Raises:
        RigError: there are no two armatures.
    """
    group: Any = target.ccd_rig.retarget
    require_two(group.source, target)
    found = bone_map(target, group.source)
    names = dict.fromkeys((*found.figure.roles, *found.bones))
    group.pairs.clear()
    for name in names:
        pair = group.pairs.add()
        pair.name, pair.source = name, found.bones.get(name, "")
    return found


def set_pairs(target: bpy.types.Object, bones: dict[str, str]) -> None:
    """Put pairs into the list, in place of those of the same target bones."""
    pairs: Any = target.ccd_rig.retarget.pairs
    for name, source in bones.items():
        pair = pairs.get(name) or pairs.add()
        pair.name, pair.source = name, source


def use_frame(scene: bpy.types.Scene, target: bpy.types.Object, which: ReferenceFrame) -> float:
    """Choose a frame of the source as its reference; returns which.

    Raises:
        RigError: there are no two armatures, the source does not move, or no map fits them.
    """
    group: Any = target.ccd_rig.retarget
    require_two(group.source, target)
    frame = reference_frame(scene, group.source, target, choice_of(target), which)
    group.reference_frame = frame
    group.reference = Reference.FRAME.value
    note_refusal(target, None)
    return frame


def note_refusal(target: bpy.types.Object, error: CCDRigError | None) -> None:
    """Let the panel offer what helps against an error; None where all is well."""
    group: Any = target.ccd_rig.retarget
    group.no_pose = group.source.name if isinstance(error, RestIsNoPose) else ""


def show(target: bpy.types.Object) -> None:
    """Show the present frame as its retargeting would have it.

    What stands in the way goes to the report. Else the report is empty: it was about other settings.
    """
    group: Any = target.ccd_rig.retarget
    try:
        require_two(group.source, target)
        show_frame(bpy.context.scene, group.source, target, choice_of(target))
        group.report = ""
    except CCDRigError as error:
        note_refusal(target, error)
        group.report = "" if group.no_pose else str(error)  # the panel says it, with what helps


def register() -> None:
    """Show frames when settings change."""
    retarget_group.shows.append(show)


def unregister() -> None:
    """No more."""
    retarget_group.shows.remove(show)
