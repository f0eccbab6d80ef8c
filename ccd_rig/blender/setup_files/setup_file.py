# SPDX-License-Identifier: GPL-3.0-or-later
"""A rig's whole set-up as a value and as JSON: its constraints, and what its bones may do.

{"format", "version", "armature", "bones": {bone: {"rest": [w, x, y, z], "joint": {...}}},
"constraints": [{...}], "rig": {...}, "roles": {bone: [part, side, index, number]}, "influence": {constraint:
keys}}. Drivers of the constraints are not part of it, nor are keys of anything but their influence.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import bpy

from ...errors import RigError
from ...json_text import NotJson, parse, shown
from ..figures.role import Part, Role, Side
from ..figures.roles import roles_of
from ..properties.armature_data import CCD_RIG_PG_armature
from ..properties.constraint_group import CCD_RIG_PG_constraint
from ..properties.joints import CCD_RIG_PG_joint
from ..properties.renamed_bones import OWN_BONES
from ..rig.bone_space import nearest_rotation
from ..whole_files import read_text, replacing
from .group_values import Values, check_values, values_of
from .influence_curves import Curve, checked, curves_of

FORMAT = "ccd_rig.setup"
VERSION = 1
RIG_FIELDS = ("body", "body_helps", "solver")
"""What is taken of the armature itself, beside its constraints."""

Components = tuple[float, float, float, float]


@dataclass(frozen=True)
class BoneSetup:
    """What one bone may do.

    Attributes:
        joint: what its group `ccd_rig` holds.
        rest: its orientation at rest in armature space, (w, x, y, z).
    """

    joint: Values
    rest: Components


@dataclass(frozen=True)
class Setup:
    """Constraints and limits of a rig.

    Attributes:
        armature: name of the object that it is from.
        bones: what bones may do, by their names; bones at their defaults are left out.
        constraints: what each holds, in their order.
        rig: settings of the armature (`RIG_FIELDS`).
        roles: what part of the body bones are that it names; those that are none known are left out.
        influence: the keys of influences in the present action, by the names of constraints.
    """

    armature: str
    bones: Mapping[str, BoneSetup]
    constraints: tuple[Values, ...] = ()
    rig: Values = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)
    influence: Mapping[str, Curve] = field(default_factory=dict)

    def bone_names(self) -> tuple[str, ...]:
        """The bones of the rig that it is about, each once."""
        found = dict.fromkeys(self.bones)
        for row in self.constraints:
            found.update(dict.fromkeys(row[name] for name in OWN_BONES if row.get(name)))
        return tuple(found)


def setup_of(armature_object: bpy.types.Object) -> Setup:
    """All that a rig's constraints and bones hold now, without roles."""
    bones = {}
    for bone in armature_object.pose.bones:
        joint = values_of(bone.ccd_rig) if bone.is_property_set("ccd_rig") else {}
        if joint:
            bones[bone.name] = BoneSetup(joint, rest_of(bone))
    group = armature_object.ccd_rig
    held = values_of(group)
    rig = {name: held[name] for name in RIG_FIELDS if name in held}
    rows = tuple(values_of(row) for row in group.constraints)
    return Setup(armature_object.name, bones, rows, rig, influence=curves_of(armature_object))


def with_roles(armature_object: bpy.types.Object, setup: Setup) -> Setup:
    """A rig's set-up with what its bones are, so that rigs with other names can take it."""
    known = roles_of(armature_object)
    return replace(setup, roles={name: known[name] for name in setup.bone_names() if name in known})


def rest_of(pose_bone: bpy.types.PoseBone) -> Components:
    """A bone's orientation at rest in armature space."""
    w, x, y, z = nearest_rotation(pose_bone.bone.matrix_local.to_3x3())[:]
    return w, x, y, z


def to_json(setup: Setup) -> str:
    """A set-up as JSON."""
    bones = {name: {"rest": list(bone.rest), "joint": bone.joint} for name, bone in setup.bones.items()}
    data = {
        "format": FORMAT,
        "version": VERSION,
        "armature": setup.armature,
        "bones": bones,
        "constraints": list(setup.constraints),
        "rig": setup.rig,
        "roles": {name: [r.part, r.side, r.index, r.number] for name, r in setup.roles.items()},
        "influence": setup.influence,
    }
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> Setup:
    """The set-up that `to_json` wrote.

    Raises:
        RigError: names the field that is missing or wrong.
    """
    try:
        data = parse(text)
    except NotJson as error:
        raise RigError(f"the set-up is not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise RigError(f"this is no set-up of CCD Rig: 'format' must be \"{FORMAT}\"")
    if data.get("version") != VERSION:
        value = shown(json.dumps(data.get("version")))
        raise RigError(f"'version' is {value}, but this CCD Rig reads {VERSION}: save the set-up with it")
    bones = {}
    for name, bone in _part(data, "bones", dict).items():
        where = f"bones['{shown(name)}']"
        if not isinstance(bone, dict) or set(bone) != {"rest", "joint"}:
            raise RigError(f"{where} must have the fields 'rest' and 'joint', and no others")
        joint = check_values(CCD_RIG_PG_joint.bl_rna, bone["joint"], f"{where}.joint")
        bones[name] = BoneSetup(joint, _rest(bone["rest"], where))
    constraints = [
        check_values(CCD_RIG_PG_constraint.bl_rna, row, f"constraints[{number}]")
        for number, row in enumerate(_part(data, "constraints", list))
    ]
    rig = check_values(CCD_RIG_PG_armature.bl_rna, _part(data, "rig", dict), "rig")
    if others := sorted(set(rig) - set(RIG_FIELDS)):
        raise RigError(
            f"rig: '{shown(others[0])}' is no part of a set-up; it may hold {', '.join(RIG_FIELDS)}"
        )
    roles = {name: _role(value, name) for name, value in _part(data, "roles", dict).items()}
    influence = checked(data.get("influence", {}))
    return Setup(str(data.get("armature", "")), bones, tuple(constraints), rig, roles, influence)


def _part(data: Mapping[str, Any], name: str, kind: type) -> Any:
    if not isinstance(data.get(name), kind):
        wanted = "a list" if kind is list else "an object"
        raise RigError(f"the field '{name}' is missing, or is not {wanted}")
    return data[name]


def _rest(value: object, where: str) -> Components:
    numbers = [n for n in value if type(n) in (int, float)] if isinstance(value, list) else []
    if len(numbers) != 4 or not abs(math.hypot(*numbers) - 1.0) < 1e-3:
        raise RigError(f"{where}.rest must be a unit quaternion (w, x, y, z)")
    w, x, y, z = map(float, numbers)
    return w, x, y, z


def _role(value: object, name: str) -> Role:
    try:
        part, side, *counts = value if isinstance(value, list) else ()
        index, number = map(int, counts)
        return Role(Part(part), Side(side), index, number)
    except (TypeError, ValueError):
        value = shown(repr(value))
        raise RigError(f"roles['{shown(name)}'] must be a part, a side and two counts, not {value}") from None


def save(path: str | os.PathLike[str], setup: Setup) -> None:
    """Write a set-up as JSON, the file as a whole or not at all.

    Raises:
        RigError: a value is no number; WriteError: the folder cannot be written, or the disk is full.
    """
    try:
        text = to_json(setup)
    except ValueError as error:
        raise RigError(f"the set-up of '{setup.armature}' holds a value that is not a number") from error
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def load(path: str | os.PathLike[str]) -> Setup:
    """The set-up of a JSON file; raises RigError, which names the file and what is wrong in it."""
    text = read_text(path)
    try:
        return from_json(text)
    except RigError as error:
        raise RigError(f"{path}: {error}") from error
