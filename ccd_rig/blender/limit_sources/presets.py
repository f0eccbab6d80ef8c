# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits from presets: a human or an animal on four legs by the roles of bones, and rows of bones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import bpy

from ...errors import InvalidInput, RigError
from ...limits.shapes import Limit
from ..figures.role import Kind, Part, Role
from ..properties.limit_groups import store_limits
from ..properties.names_in_words import named
from . import holding
from .body import Body, body_of
from .chosen_bones import Outcome
from .human_preset import Found, human_limit
from .quadruped_preset import quadruped_limit
from .row_presets import finger_limits, rows_of, spine_limits, tail_limits

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
    limits, wider = holding.held(limits, holding.present_rotations(pose_bones), "the present pose")
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
