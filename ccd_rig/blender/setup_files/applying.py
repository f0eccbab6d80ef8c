# SPDX-License-Identifier: GPL-3.0-or-later
"""A set-up given to a rig: its bones are found by name, else by the part of the body that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import bpy
from mathutils import Quaternion

from ...errors import InvalidInput, RigError
from ...limits.mirroring import turned
from ...maths.rotations import angle_of
from ..figures.roles import roles_of
from ..properties import constraint_list, overrides
from ..properties.joints import limit_of
from ..properties.limit_groups import store_limits
from ..properties.names_in_words import named
from ..properties.renamed_bones import OTHER_BONES, OWN_BONES
from . import influence_curves
from .group_values import Values, give_values, object_of
from .setup_file import BoneSetup, Setup, rest_of

SAME = 1e-3
"""Radians between rest poses below which a limit means the same in both."""


@dataclass(frozen=True)
class Applied:
    """What became of a set-up.

    Attributes:
        bones: names of the bones that got their settings.
        constraints: names of the constraints that were made or set.
        missing: names in the set-up of bones that the rig does not have.
        notes: sentences about other things that are not as they were.
    """

    bones: tuple[str, ...]
    constraints: tuple[str, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def warnings(self) -> tuple[str, ...]:
        """What did not come back, in sentences."""
        words = tuple(note[:1].upper() + note[1:] for note in self.notes)
        if not self.missing:
            return words
        return (*words, f"The armature has no bone for {named(self.missing)}: what is theirs is left out")

    def words(self) -> str:
        """How much came back."""
        bones = f"{len(self.bones)} bone{'' if len(self.bones) == 1 else 's'}"
        rows = f"{len(self.constraints)} constraint{'' if len(self.constraints) == 1 else 's'}"
        return f"{bones} and {rows} set"


def apply(armature_object: bpy.types.Object, setup: Setup) -> Applied:
    """Give a rig the limits and constraints of a set-up. Bones it does not name stay as they are.

    A constraint with the name of one in the set-up takes its values; others are added.

    Raises:
        RigError: the rig has none of the set-up's bones. Nothing has changed then.
    """
    pose_bones = armature_object.pose.bones
    names = bones_for(armature_object, setup)
    missing = tuple(name for name in setup.bone_names() if name not in names)
    if missing and not names:
        raise RigError(f"armature '{armature_object.name}' has none of the set-up's bones: {named(missing)}")
    notes = []
    for old, bone in setup.bones.items():
        if old in names:
            notes += _give_joint(pose_bones[names[old]], bone, names, is_other=names[old] != old)
    for name, value in setup.rig.items():
        if isinstance(value, dict):
            give_values(getattr(armature_object.ccd_rig, name), value)
        else:
            setattr(armature_object.ccd_rig, name, value)
    made = [_give_row(armature_object, row, names, notes) for row in setup.constraints]
    for row, name in zip(setup.constraints, made, strict=True):
        if curve := setup.influence.get(row.get("name", "")):
            try:
                influence_curves.give(armature_object.ccd_rig.constraints[name], curve)
            except RigError as error:
                notes.append(f"keys are left out: {error}")
    overrides.keep(armature_object)
    given = tuple(names[name] for name in setup.bones if name in names)
    return Applied(given, tuple(made), missing, tuple(notes))


def bones_for(armature_object: bpy.types.Object, setup: Setup) -> dict[str, str]:
    """The rig's bones for those of a set-up: of the same name, else of the same role."""
    here = armature_object.pose.bones
    names = {name: name for name in setup.bone_names() if name in here}
    wanted = {name: role for name, role in setup.roles.items() if name not in names}
    if wanted:
        taken = set(names.values())
        by_role = {role: name for name, role in roles_of(armature_object).items() if name not in taken}
        names |= {name: by_role[role] for name, role in wanted.items() if role in by_role}
    return names


def _give_joint(
    pose_bone: bpy.types.PoseBone, bone: BoneSetup, names: Mapping[str, str], is_other: bool
) -> list[str]:
    """Give a bone its settings; notes about those that it cannot have.

    A bone of another name may rest with other axes: its limit is turned into them.
    """
    joint = dict(bone.joint)
    if "coupled_offsets" in joint:
        joint["coupled_offsets"] = [
            {**each, **({"driver": names.get(each["driver"], each["driver"])} if "driver" in each else {})}
            for each in joint["coupled_offsets"]
        ]
    give_values(pose_bone.ccd_rig, joint)
    turn = Quaternion(rest_of(pose_bone)).conjugated() @ Quaternion(bone.rest)
    if not is_other or angle_of(turn) < SAME:
        return []
    notes = []
    if joint.get("comfort", {}).get("region"):
        pose_bone.ccd_rig.comfort.property_unset("region")
        notes.append(f"the comfort region of '{pose_bone.name}' is left out: its rest has other axes")
    try:
        limit = limit_of(pose_bone.name, "limit", pose_bone.ccd_rig.limit)
        store_limits({pose_bone: None if limit is None else turned(limit, turn)})
    except (InvalidInput, RigError):
        pose_bone.ccd_rig.property_unset("limit")
        notes.append(f"the limit of '{pose_bone.name}' is left out: its rest has other axes")
    return notes


def _give_row(
    armature_object: bpy.types.Object, row: Values, names: Mapping[str, str], notes: list[str]
) -> str:
    """Give a constraint its values, or add it; its name."""
    values = dict(row)
    own = [*OWN_BONES]
    for field, owner in OTHER_BONES.items():
        if object_of(armature_object, row.get(owner)) == armature_object:
            own.append(field)
    for field in own:
        if row.get(field):
            values[field] = names.get(row[field], row[field])
    listed = armature_object.ccd_rig.constraints
    name = row.get("name", "")
    found: Any = listed.get(name) if name else None
    if found is None:
        found = constraint_list.add(armature_object, name, values.get("tip", ""))
        values["name"] = found.name
    give_values(found, values)
    for field in OTHER_BONES.values():
        if row.get(field) is not None and getattr(found, field) is None:
            notes.append(
                f"constraint '{found.name}': there is no object '{row[field]['object']}'; choose one"
            )
    return str(found.name)
