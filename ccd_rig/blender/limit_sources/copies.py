# SPDX-License-Identifier: GPL-3.0-or-later
"""One bone's limit copied to others."""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ...errors import RigError
from ..properties.joints import limit_of
from ..properties.limit_groups import copy_limit
from .chosen_bones import Outcome


def copy(source: bpy.types.PoseBone, pose_bones: Sequence[bpy.types.PoseBone]) -> Outcome:
    """Give bones the limit of another one, in their own axes.

    Raises:
        RigError: there is no other bone, or the limit contradicts itself. Nothing has changed then.
    """
    others = [bone for bone in pose_bones if bone != source]
    if not others:
        raise RigError(f"no bone but '{source.name}' is there to copy to: select others, or choose the chain")
    limit_of(source.name, "limit", source.ccd_rig.limit)
    for bone in others:
        copy_limit(source, bone)
    return Outcome(tuple(bone.name for bone in others))
