# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bones get limits, and what becomes of them in words."""

from __future__ import annotations

from dataclasses import dataclass

import bpy

from ...errors import RigError
from ..keys.channels import is_bone_selected
from ..properties import constraint_list


@dataclass(frozen=True)
class Outcome:
    """What came of giving bones limits.

    Attributes:
        done: names of the bones that have a limit now.
        notes: sentences about bones that were left as they are, or that have a limit that is not quite what
            it was taken from.
        source: where the numbers come from, a sentence; empty where they are the file's own.
    """

    done: tuple[str, ...]
    notes: tuple[str, ...] = ()
    source: str = ""


def chosen(armature_object: bpy.types.Object, scope: str) -> tuple[bpy.types.PoseBone, ...]:
    """The bones that a scope means, in the order of the armature.

    Args:
        armature_object: the armature.
        scope: "ACTIVE", "SELECTED" (the active one where none is selected), "CHAIN" of the active constraint,
            or "ALL".

    Raises:
        RigError: there is none.
    """
    bones = armature_object.pose.bones
    if scope == "ALL":
        return tuple(bones)
    if scope == "CHAIN":
        row = constraint_list.active(armature_object)
        names = (
            {b.name for b in constraint_list.chain(armature_object, row.tip, row.chain_length)} if row else ()
        )
        if not names:
            raise RigError(
                f"armature '{armature_object.name}' has no active constraint with a chain: choose one in the "
                "list, or choose Selected Bones"
            )
        return tuple(bone for bone in bones if bone.name in names)
    selected = tuple(bone for bone in bones if is_bone_selected(bone))
    if scope == "SELECTED" and selected:
        return selected
    active = armature_object.data.bones.active
    if active is None:
        raise RigError(f"no bone of '{armature_object.name}' is selected: select some in Pose Mode")
    return (bones[active.name],)
