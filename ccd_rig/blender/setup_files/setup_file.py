# SPDX-License-Identifier: GPL-3.0-or-later
"""A rig's whole set-up as a value and as JSON: its constraints and what its bones may do, read and given.

{"format", "version", "armature", "bones": {bone: {"rest": [w, x, y, z], "joint": {...}}},
"constraints": [{...}], "rig": {...}, "roles": {bone: [part, side, index, number]}, "influence": {constraint:
keys}}. Drivers of the constraints are not part of it, nor are keys of anything but their influence: what
drivers read are things of their own file, and often of other rigs. F-curves with modifiers lose these.

Numbers come back bit for bit. What is at its default is left out. An object is {"object": name}, the armature
itself {"object": ""}.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import bpy
from mathutils import Quaternion

from ...errors import InvalidInput, RigError
from ...json_text import NotJson, parse, shown
from ...limits.mirroring import turned
from ...maths.rotations import angle_of
from ..figures.role import Part, Role, Side
from ..figures.roles import roles_of
from ..keys.channels import fcurves_of
from ..properties import constraint_list, influence_keys, overrides
from ..properties.armature_data import CCD_RIG_PG_armature
from ..properties.constraint_group import CCD_RIG_PG_constraint
from ..properties.influence_keys import FIELD
from ..properties.joints import CCD_RIG_PG_joint, limit_of, store_limits
from ..properties.names import named
from ..properties.renamed_bones import OTHER_BONES, OWN_BONES
from ..rig.bone_space import nearest_rotation
from ..whole_files import read_text, replacing

Values = dict[str, Any]

NOTES = ("rna_type", "known_as")
"""Fields that are no setting: what they hold stays."""


def values_of(group: bpy.types.PropertyGroup) -> Values:
    """What was set in a group, by field; groups inside as values, lists of groups as lists of them."""
    found: Values = {}
    for name, prop in _fields(group.bl_rna).items():
        if prop.type == "COLLECTION":
            rows = [values_of(row) for row in getattr(group, name)]
            if rows:
                found[name] = rows
        elif _is_group(prop):
            if inner := values_of(getattr(group, name)):
                found[name] = inner
        elif group.is_property_set(name):
            found[name] = _value_of(group, name, prop)
    return found


def _value_of(group: bpy.types.PropertyGroup, name: str, prop: Any) -> Any:
    value = getattr(group, name)
    if prop.type == "POINTER":
        return None if value is None else {"object": "" if value == group.id_data else value.name}
    if getattr(prop, "is_array", False):
        return list(value)
    return value


def check_values(rna: Any, values: object, where: str) -> Values:
    """`values` if a group of this type can hold them.

    Args:
        rna: `bl_rna` of the group's class.
        values: as `values_of` gives them.
        where: what they are, for messages.

    Raises:
        RigError: names the field that is wrong or that this version does not know.
    """
    if not isinstance(values, dict):
        raise RigError(f"{where} must be an object with fields, not {_shown(values)}")
    fields = _fields(rna)
    for name, value in values.items():
        if name not in fields:
            name = shown(name)
            raise RigError(f"{where}: '{name}' is not known to this version: update CCD Rig, or remove it")
        _check_value(fields[name], value, f"{where}: '{name}'")
    return values


def _check_value(prop: Any, value: object, where: str) -> None:
    if prop.type == "COLLECTION":
        if not isinstance(value, list):
            raise RigError(f"{where} must be a list, not {_shown(value)}")
        for number, row in enumerate(value):
            check_values(prop.fixed_type, row, f"{where}[{number}]")
    elif _is_group(prop):
        check_values(prop.fixed_type, value, where)
    elif prop.type == "POINTER":
        is_object = isinstance(value, dict) and list(value) == ["object"] and isinstance(value["object"], str)
        if not (value is None or is_object):
            raise RigError(f'{where} must be null or {{"object": name}}, not {_shown(value)}')
    elif prop.type == "ENUM":
        items = [item.identifier for item in prop.enum_items]
        if value not in items:
            raise RigError(f"{where} must be one of {', '.join(items)}, not {_shown(value)}")
    elif getattr(prop, "is_array", False):
        if not isinstance(value, list) or len(value) != prop.array_length:
            raise RigError(f"{where} must be a list of {prop.array_length}, not {_shown(value)}")
        for part in value:
            _check_plain(prop, part, where)
    else:
        _check_plain(prop, value, where)


def _check_plain(prop: Any, value: object, where: str) -> None:
    kinds: Mapping[str, tuple[tuple[type, ...], str]] = {
        "BOOLEAN": ((bool,), "true or false"),
        "INT": ((int,), "a whole number"),
        "FLOAT": ((int, float), "a number"),
        "STRING": ((str,), "text"),
    }
    types, words = kinds[prop.type]
    if not isinstance(value, types) or (isinstance(value, bool) and prop.type != "BOOLEAN"):
        raise RigError(f"{where} must be {words}, not {_shown(value)}")
    if prop.type in ("INT", "FLOAT"):
        assert isinstance(value, (int, float))
        slack = 1e-6 * max(1.0, abs(prop.hard_max)) if prop.type == "FLOAT" else 0.0
        if not (math.isfinite(value) and prop.hard_min - slack <= value <= prop.hard_max + slack):
            raise RigError(f"{where} must be {prop.hard_min:.6g} to {prop.hard_max:.6g}, not {_shown(value)}")


def give_values(group: bpy.types.PropertyGroup, values: Values) -> None:
    """Let a group hold checked values, and its defaults beside them. Objects that are not there are None."""
    for name, prop in _fields(group.bl_rna).items():
        if prop.type == "COLLECTION":
            rows = getattr(group, name)
            rows.clear()
            for row in values.get(name, ()):
                give_values(rows.add(), row)
        elif _is_group(prop):
            give_values(getattr(group, name), values.get(name, {}))
        elif name not in values:
            group.property_unset(name)
        elif prop.type == "POINTER":
            setattr(group, name, object_of(group.id_data, values[name]))
        else:
            setattr(group, name, values[name])


def object_of(owner: bpy.types.ID, value: Mapping[str, str] | None) -> bpy.types.Object | None:
    """The object that a value names; None for none, and where there is no such object."""
    if value is None:
        return None
    found: Any = bpy.data.objects.get(value["object"]) if value["object"] else owner
    return found


def _fields(rna: Any) -> dict[str, Any]:
    """The fields that a group stores, by name."""
    return {
        name: prop
        for name, prop in rna.properties.items()
        if not (prop.is_readonly and prop.type not in ("COLLECTION", "POINTER")) and name not in NOTES
    }


def _is_group(prop: Any) -> bool:
    base = prop.fixed_type.base if prop.type == "POINTER" else None
    return base is not None and base.identifier == "PropertyGroup"


def _shown(value: object) -> str:
    return shown(json.dumps(value, default=str))


NUMBERS = ("frame", "value")
CHOICES = ("interpolation", "easing", "handle_left_type", "handle_right_type")
HANDLES = ("handle_left", "handle_right")

Curve = Mapping[str, Any]
"""{"extrapolation": name, "keys": [{"frame", "value", "interpolation", "easing", handles}]}."""


def curves_of(armature_object: bpy.types.Object) -> dict[str, Curve]:
    """The keys of influences in the present action, by the names of the constraints."""
    found: dict[str, Curve] = {}
    for row in armature_object.ccd_rig.constraints:
        curve = _curve(row)
        if curve is not None and len(curve.keyframe_points):
            keys = [_key(point) for point in curve.keyframe_points]
            found[row.name] = {"extrapolation": curve.extrapolation, "keys": keys}
    return found


def driven(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Names of the constraints whose influence has a driver."""
    animation = armature_object.animation_data
    paths = set() if animation is None else {driver.data_path for driver in animation.drivers}
    rows = armature_object.ccd_rig.constraints
    return tuple(row.name for row in rows if f"{row.path_from_id()}.{FIELD}" in paths)


def left_out(armature_object: bpy.types.Object) -> dict[str, tuple[str, ...]]:
    """By label of a setting that keys or drivers move, Influence apart, the names of the constraints."""
    names: dict[str, tuple[str, ...]] = {}
    for row, setting in constraint_list.moved_settings(armature_object, armature_object.ccd_rig.constraints):
        if setting.identifier != FIELD:
            names[setting.name] = (*names.get(setting.name, ()), row.name)
    return names


def checked(value: object) -> dict[str, Curve]:
    """The same as read from a file; raises RigError, which names what is wrong."""
    if not isinstance(value, dict):
        raise RigError("the field 'influence' is not an object")
    for name, curve in value.items():
        where = f"influence['{shown(name)}']"
        if not isinstance(curve, dict) or set(curve) != {"extrapolation", "keys"}:
            raise RigError(f"{where} must have the fields 'extrapolation' and 'keys', and no others")
        _require_choice(bpy.types.FCurve.bl_rna, "extrapolation", curve["extrapolation"], where)
        if not isinstance(curve["keys"], list) or not curve["keys"]:
            raise RigError(f"{where}.keys must be a list of keys")
        for number, key in enumerate(curve["keys"]):
            _require_key(key, f"{where}.keys[{number}]")
    return value


def give(row: Any, curve: Curve) -> None:
    """Give a constraint's influence these keys in place of those that it has in the present action.

    Raises:
        RigError: it cannot be keyed. Nothing has changed then.
    """
    influence_keys.require_keyable(row.id_data, [row])
    shown = row.influence
    before = _curve(row)
    for frame in [] if before is None else [point.co[0] for point in before.keyframe_points]:
        row.keyframe_delete(FIELD, frame=frame)
    for key in curve["keys"]:
        row.influence = key["value"]
        row.keyframe_insert(FIELD, frame=key["frame"])
    row.influence = shown
    made: Any = _curve(row)
    made.extrapolation = curve["extrapolation"]
    for point, key in zip(
        made.keyframe_points, sorted(curve["keys"], key=lambda each: each["frame"]), strict=True
    ):
        for name in (*CHOICES, *HANDLES):
            setattr(point, name, key[name])
    made.update()


def _key(point: bpy.types.Keyframe) -> dict[str, Any]:
    key: dict[str, Any] = {"frame": point.co[0], "value": point.co[1]}
    key |= {name: getattr(point, name) for name in CHOICES}
    return key | {name: list(getattr(point, name)) for name in HANDLES}


def _require_key(key: object, where: str) -> None:
    wanted = {*NUMBERS, *CHOICES, *HANDLES}
    if not isinstance(key, dict) or set(key) != wanted:
        raise RigError(f"{where} must have the fields {', '.join(sorted(wanted))}, and no others")
    for name, numbers in _numbers(key):
        if not all(type(each) in (int, float) and math.isfinite(each) for each in numbers):
            raise RigError(f"{where}.{name} must be a number, and of handles two")
    for name in CHOICES:
        _require_choice(bpy.types.Keyframe.bl_rna, name, key[name], where)


def _numbers(key: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    for name in NUMBERS:
        yield name, [key[name]]
    for name in HANDLES:
        pair = key[name]
        yield name, pair if isinstance(pair, list) and len(pair) == 2 else [None]


def _require_choice(rna: Any, name: str, value: object, where: str) -> None:
    known = [item.identifier for item in rna.properties[name].enum_items]
    if value not in known:
        value = shown(repr(value))
        raise RigError(f"{where}.{name} is {value}; give one of {', '.join(known)}")


def _curve(row: Any) -> Any | None:
    path = f"{row.path_from_id()}.{FIELD}"
    return next((curve for curve in fcurves_of(row.id_data) if curve.data_path == path), None)


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
                give(armature_object.ccd_rig.constraints[name], curve)
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
    for key, owner in OTHER_BONES.items():
        if object_of(armature_object, row.get(owner)) == armature_object:
            own.append(key)
    for key in own:
        if row.get(key):
            values[key] = names.get(row[key], row[key])
    listed = armature_object.ccd_rig.constraints
    name = row.get("name", "")
    found: Any = listed.get(name) if name else None
    if found is None:
        found = constraint_list.add(armature_object, name, values.get("tip", ""))
        values["name"] = found.name
    give_values(found, values)
    for key in OTHER_BONES.values():
        if row.get(key) is not None and getattr(found, key) is None:
            notes.append(f"constraint '{found.name}': there is no object '{row[key]['object']}'; choose one")
    return str(found.name)
