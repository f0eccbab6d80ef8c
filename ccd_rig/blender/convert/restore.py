# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back from a conversion: its rows go, Blender's constraints act again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import bpy

from ...errors import RigError
from ..properties import constraint_list, new_targets


@dataclass(frozen=True)
class Restored:
    """What has become of the rows.

    Attributes:
        rows: names of those that were removed.
        originals: how many of Blender's constraints act again.
        kept: names of those whose constraint is no longer there.
    """

    rows: tuple[str, ...]
    originals: int
    kept: tuple[str, ...]


def candidates(armature_object: bpy.types.Object, bones: Collection[str] | None = None) -> Iterator[Any]:
    """Rows that stand for one of Blender's constraints: of bones of these names, of all without."""
    for row in armature_object.ccd_rig.constraints:
        if row.original_constraint and (bones is None or row.original_bone in bones):
            yield row


def restore(armature_object: bpy.types.Object, bones: Collection[str] | None) -> Restored:
    """Remove rows that were converted, with the targets made for them, and unmute their originals.

    Args:
        armature_object: editable.
        bones: names of those whose constraints are restored; None: all.

    Raises:
        RigError: there is none, or one comes from the library of an override. Nothing has changed then.
    """
    rows = armature_object.ccd_rig.constraints
    for row in candidates(armature_object, bones):
        constraint_list.require_own(armature_object, rows.find(row.name))
    names, kept, originals, targets = [], [], set(), set()
    for row in candidates(armature_object, bones):
        bone = armature_object.pose.bones.get(row.original_bone)
        original = None if bone is None else bone.constraints.get(row.original_constraint)
        if original is None:
            kept.append(row.name)
            continue
        original.mute = False
        originals.add((row.original_bone, row.original_constraint))
        names.append(row.name)
        targets.add(row.target)
    if not names:
        lost = f"; the constraints behind {', '.join(kept)} are gone" if kept else ""
        raise RigError(f"No CCD constraint here comes from Convert IK{lost}")
    for name in names:
        constraint_list.remove(armature_object, rows.find(name))
    for target in targets - {None}:
        if new_targets.is_left_over(new_targets.Target(target)):
            new_targets.remove_empty(target)
    return Restored(tuple(names), len(originals), tuple(kept))
