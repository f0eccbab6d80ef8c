# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles of bones by colour: what Set Up Figure has taken each bone for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import bpy

from ..figures.role import Part, Role
from .sketch import Opaque, Sketch

WIDTH = 6.0  # [pixels]
ALPHA = 0.8
_TRUNK: Opaque = (0.75, 0.45, 1.0)
_ARM: Opaque = (1.0, 0.55, 0.15)
_LEG: Opaque = (0.3, 0.85, 0.35)
_FRONT_LEG: Opaque = (0.1, 0.75, 0.75)
COLOURS: Mapping[Part, Opaque] = MappingProxyType(
    {
        **dict.fromkeys((Part.SPINE, Part.NECK), _TRUNK),
        **dict.fromkeys((Part.SHOULDER, Part.UPPER_ARM, Part.LOWER_ARM, Part.HAND, Part.FINGER), _ARM),
        **dict.fromkeys((Part.THIGH, Part.SHIN, Part.FOOT, Part.TOE, Part.LEG), _LEG),
        **dict.fromkeys((Part.FRONT_THIGH, Part.FRONT_SHIN, Part.FRONT_FOOT, Part.FRONT_TOE), _FRONT_LEG),
        Part.HIPS: (1.0, 0.85, 0.2),
        Part.HEAD: (0.95, 0.35, 0.75),
        Part.TAIL: (0.35, 0.65, 1.0),
        Part.WING: (0.9, 0.9, 0.9),
    }
)
"""By part of the body; both sides alike."""
OTHER: Opaque = (0.65, 0.65, 0.5)
NAMED = (Part.HIPS, Part.HEAD, Part.HAND, Part.FOOT, Part.FRONT_FOOT, Part.TAIL, Part.WING, Part.LEG)
"""Parts whose first bone is labelled."""


def sketch_roles(sketch: Sketch, armature_object: bpy.types.Object, roles: Mapping[str, Role]) -> None:
    """Draw bones in the colours of their roles, with words at the ends of limbs.

    Args:
        sketch: what is drawn on.
        armature_object: the figure.
        roles: by bone.
    """
    world: Any = armature_object.matrix_world
    for name, role in roles.items():
        bone = armature_object.pose.bones.get(name)
        if bone is None:
            continue
        colour = COLOURS.get(role.part, OTHER)
        ends = world @ bone.head, world @ bone.tail
        sketch.path(ends, (*colour, ALPHA), WIDTH)
        if role.part in NAMED and role.index == 0:
            sketch.label(ends[1], ends[0], role.words(), (*colour, 1.0))
