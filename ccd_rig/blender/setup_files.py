# SPDX-License-Identifier: GPL-3.0-or-later
"""Set-up of a rig (constraints, limits and settings of bones) as a value and as JSON: read and applied.

    {"format", "version", "armature",
     "bones": {bone: {"rest": [w, x, y, z], "along": [x, y, z], "joint": {...}}},
     "constraints": [{...}], "rig": {...},
     "chains": {constraint: bone}, "roles": {bone: [part, side, index, number]},
     "influence": {constraint: keys}}

Keys of influences are included, without modifiers of their F-curves. The keys of further settings are left
out. So are drivers, which read properties of the file and often of other rigs.

A rig may have other axes and sizes. Settings go along with each bone: turned into its axes, and lengths by
its length. A rest pose in which the bone points elsewhere is no other axis. Bones without "joint" are those
of constraints.

Numbers keep every bit. Defaults are left out. An object is {"object": name}; {"object": ""} is the armature.

Rigify's Re-Generate Rig replaces all bones of the rig in the same object: settings of the object stay,
settings of its bones are lost. Blender calls handlers as Rigify enters Edit Mode. They note the settings of
the bones, and store them on new bones of the same names. Each generation gives the rig a new `rig_id`; the
rig is therefore identified by its object.

The metarig keeps the set-up as JSON, from the last regeneration or save of its rig. A button restores it on a
rig that was deleted and generated again.
"""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import bpy
from mathutils import Quaternion, Vector

from ..errors import InvalidInput, RigError
from ..json_text import as_json, choice, decoded, encoded, shown, unknown, within
from ..json_text import read as read_json
from ..limits.shapes import UNITS, Limit, side_of
from ..maths.rotations import angle_of
from . import evaluations
from .atomic_write import read, replacing
from .figures.recognition import roles_of
from .figures.rigify import is_generated
from .figures.role import Part, Role, Side
from .keys import channels
from .keys.keyframes import MERGE_DISTANCE
from .properties import constraint_list, renamed_bones
from .properties.active_rig import is_group, keep_overrides, with_settings
from .properties.armature_data import CCD_RIG_PG_armature
from .properties.constraint_kinds import CCD_RIG_PG_constraint
from .properties.constraint_list import INFLUENCE
from .properties.joints import CCD_RIG_PG_coupled_offset, CCD_RIG_PG_joint
from .properties.limits import limit_of, store_limits
from .properties.names import named, sentence
from .properties.new_constraints import start_from
from .properties.renamed_bones import LOCAL_BONES, OTHER_BONES
from .properties.retarget_group import LAST_FRAME
from .registration import Handlers
from .rig.bone_space import rest_rotation
from .scene.isolation import is_isolated

Values = dict[str, Any]

NOTES = ("rna_type", "known_as", "start_before")
"""Fields that are no settings: they are neither read nor written."""


def values_of(group: bpy.types.PropertyGroup) -> Values:
    """Return the values of a group that were set, by field; nested groups as values, collections as lists."""
    values: Values = {}
    for name, prop in _fields(group.bl_rna).items():
        if prop.type == "COLLECTION":
            rows = [values_of(row) for row in getattr(group, name)]
            if rows:
                values[name] = rows
        elif is_group(prop):
            if inner := values_of(getattr(group, name)):
                values[name] = inner
        elif group.is_property_set(name):
            value = getattr(group, name)
            if prop.type == "POINTER" and value is not None:
                value = {"object": "" if value == group.id_data else value.name}
            values[name] = list(value) if getattr(prop, "is_array", False) else value
    return values


def check_values(rna: Any, values: object, place: str) -> Values:
    """Return `values` if they are valid for a type of group.

    Raises:
        InvalidInput: names the field that is wrong or that this version does not know.
    """
    fields = _fields(rna)
    checked: Values = decoded(Values, values, place)
    for name, value in checked.items():
        if name not in fields:
            raise unknown(name, place)
        _check_value(fields[name], value, f"{place}.{name}")
    return checked


def _check_value(prop: Any, value: object, place: str) -> None:
    if prop.type == "COLLECTION":
        for number, row in enumerate(decoded(tuple[Any, ...], value, place)):
            check_values(prop.fixed_type, row, f"{place}[{number}]")
    elif is_group(prop):
        check_values(prop.fixed_type, value, place)
    elif prop.type == "POINTER":
        is_object = isinstance(value, dict) and list(value) == ["object"] and isinstance(value["object"], str)
        if not (value is None or is_object):
            raise InvalidInput(f'{place} must be null or {{"object": name}}, not {as_json(value)}')
    elif prop.type == "ENUM":
        choice(value, [item.identifier for item in prop.enum_items], place)
    else:
        kind = {"BOOLEAN": bool, "INT": int, "FLOAT": float, "STRING": str}[prop.type]
        if getattr(prop, "is_array", False):
            numbers = decoded(tuple[(kind,) * prop.array_length], value, place)
        else:
            numbers = (decoded(kind, value, place),)
        if prop.type in ("INT", "FLOAT"):
            slack = 1e-6 * max(1.0, abs(prop.hard_max)) if prop.type == "FLOAT" else 0.0
            for number in numbers:
                within(number, prop.hard_min, prop.hard_max, place, slack)


def set_values(group: bpy.types.PropertyGroup, values: Values) -> None:
    """Set the fields of a group to checked values, and the remaining ones to defaults.

    A missing object becomes None.
    """
    for name, prop in _fields(group.bl_rna).items():
        if prop.type == "COLLECTION":
            rows = getattr(group, name)
            rows.clear()
            for row in values.get(name, ()):
                set_values(rows.add(), row)
        elif is_group(prop):
            set_values(getattr(group, name), values.get(name, {}))
        elif name not in values:
            group.property_unset(name)
        elif prop.type == "POINTER":
            setattr(group, name, object_of(group.id_data, values[name]))
        else:
            setattr(group, name, values[name])


def object_of(owner: bpy.types.ID, value: Mapping[str, str] | None) -> bpy.types.Object | None:
    """Return the object that a value names; None for None or a missing object."""
    if value is None:
        return None
    result: Any = bpy.data.objects.get(value["object"]) if value["object"] else owner
    return result


def _fields(rna: Any) -> dict[str, Any]:
    """Return the stored fields of a type of group, by name."""
    return {
        name: prop
        for name, prop in rna.properties.items()
        if not (prop.is_readonly and prop.type not in ("COLLECTION", "POINTER")) and name not in NOTES
    }


FLOAT32 = 3.4e38
"""Largest number of a key."""


def _frame(value: object, place: str) -> float:
    return within(decoded(float, value, place), -LAST_FRAME, LAST_FRAME, place)


def _float32(value: object, place: str) -> float:
    return within(decoded(float, value, place), -FLOAT32, FLOAT32, place)


def _one_of(rna: Any, name: str) -> Callable[[object, str], str]:
    """Return a reader of the choices that a property of Blender has."""
    names = [item.identifier for item in rna.properties[name].enum_items]
    return lambda value, place: choice(value, names, place)


@dataclass(frozen=True)
class Key:
    """Key of an influence, with Blender's names of its fields."""

    frame: Annotated[float, _frame]
    value: Annotated[float, _float32]
    interpolation: Annotated[str, _one_of(bpy.types.Keyframe.bl_rna, "interpolation")]
    easing: Annotated[str, _one_of(bpy.types.Keyframe.bl_rna, "easing")]
    handle_left_type: Annotated[str, _one_of(bpy.types.Keyframe.bl_rna, "handle_left_type")]
    handle_right_type: Annotated[str, _one_of(bpy.types.Keyframe.bl_rna, "handle_right_type")]
    handle_left: tuple[Annotated[float, _float32], Annotated[float, _float32]]
    handle_right: tuple[Annotated[float, _float32], Annotated[float, _float32]]


POINT_FIELDS = tuple(each.name for each in fields(Key) if each.name not in ("frame", "value"))
"""Fields of a key that Blender names alike, texts and pairs of numbers."""


@dataclass(frozen=True)
class Curve:
    """Keys of an influence."""

    extrapolation: Annotated[str, _one_of(bpy.types.FCurve.bl_rna, "extrapolation")]
    keys: tuple[Key, ...]


def curves_of(armature_object: bpy.types.Object) -> dict[str, Curve]:
    """Return the keys of influences in the present action, by the names of the constraints.

    Raises:
        RigError: an NLA strip is being tweaked, whose keys have another time.
    """
    curves: dict[str, Curve] = {}
    constraint_list.require_no_tweak(armature_object)
    for row in armature_object.ccd_rig.constraints:
        curve = constraint_list.influence_curve(row)
        if curve is not None and len(curve.keyframe_points):
            keys: list[Key] = []
            for point in curve.keyframe_points:
                if keys and point.co[0] - keys[-1].frame < MERGE_DISTANCE:
                    keys.pop()  # Blender merges such keys as soon as one of them is edited
                keys.append(Key(*point.co, *(getattr(point, name)[:] for name in POINT_FIELDS)))
            curves[row.name] = Curve(curve.extrapolation, tuple(keys))
    return curves


def driven(armature_object: bpy.types.Object) -> tuple[str, ...]:
    """Return the names of the constraints whose influence has a driver."""
    paths = {driver.data_path for driver in channels.drivers_of(armature_object)}
    rows = armature_object.ccd_rig.constraints
    return tuple(row.name for row in rows if f"{row.path_from_id()}.{INFLUENCE}" in paths)


def left_out(armature_object: bpy.types.Object) -> dict[str, tuple[str, ...]]:
    """Return {label of an animated setting: names of constraints} for all settings except Influence."""
    names: dict[str, tuple[str, ...]] = {}
    for row, setting in constraint_list.moved_settings(armature_object, armature_object.ccd_rig.constraints):
        if setting.identifier != INFLUENCE:
            names[setting.name] = (*names.get(setting.name, ()), row.name)
    return names


def _curve(value: object, place: str) -> Curve:
    curve: Curve = decoded(Curve, value, place)
    if not curve.keys:
        raise InvalidInput(f"{place}.keys must be a list of keys")
    order = sorted(range(len(curve.keys)), key=lambda number: curve.keys[number].frame)
    for one, other in pairwise(order):
        frame = curve.keys[one].frame
        if curve.keys[other].frame - frame < MERGE_DISTANCE:
            raise InvalidInput(
                f"{place}: keys[{one}] and keys[{other}] are both at frame {frame:.7g}: remove one of them"
            )
    return curve


def set_curve(row: Any, curve: Curve) -> None:
    """Replace the keys of a constraint's influence in the present action.

    Raises:
        RigError: it cannot be keyed. Nothing has changed then.
    """
    constraint_list.require_keyable_influences(row.id_data, [row])
    keys = sorted(curve.keys, key=lambda key: key.frame)
    if constraint_list.influence_curve(row) is None:
        row.keyframe_insert(INFLUENCE, frame=keys[0].frame)
    fcurve: Any = constraint_list.influence_curve(row)
    fcurve.extrapolation = curve.extrapolation
    points = fcurve.keyframe_points
    points.clear()
    points.add(len(keys))
    for point, key in zip(points, keys, strict=True):
        point.co = key.frame, key.value
        for name in POINT_FIELDS:
            setattr(point, name, getattr(key, name))
    fcurve.update()


FORMAT = "ccd_rig.setup"
VERSION = 1
RIG_FIELDS = ("body", "body_helps", "solver")
"""Fields of the armature itself that belong to a set-up, beside its constraints."""

Components = tuple[float, float, float, float]
Triple = tuple[float, float, float]


def _rest(value: object, place: str) -> Components:
    rest: Components = decoded(Components, value, place)
    if not abs(math.hypot(*rest) - 1.0) < 1e-3:
        raise InvalidInput(f"{place} must be a unit quaternion (w, x, y, z), not {as_json(value)}")
    return rest


def _along(value: object, place: str) -> Triple:
    along: Triple = decoded(Triple, value, place)
    if not 0.0 < math.hypot(*along) <= FLOAT32:
        raise InvalidInput(f"{place} must be a vector (x, y, z) that is not zero, not {as_json(value)}")
    return along


def _joint(value: object, place: str) -> Values:
    joint = check_values(CCD_RIG_PG_joint.bl_rna, value, place)
    if "start_rotation" in joint:
        _rest(joint["start_rotation"], f"{place}.start_rotation")
    return joint


def _constraint(value: object, place: str) -> Values:
    return check_values(CCD_RIG_PG_constraint.bl_rna, value, place)


def _constraints(value: object, place: str) -> tuple[Values, ...]:
    rows: tuple[Values, ...] = decoded(tuple[Annotated[Values, _constraint], ...], value, place)
    first: dict[str, int] = {}
    for number, name in enumerate(row.get("name", "") for row in rows):
        if name and first.setdefault(name, number) != number:
            raise InvalidInput(
                f"{place}[{first[name]}] and {place}[{number}] are both named '{shown(name)}': rename one of "
                "them"
            )
    return rows


def _rig(value: object, place: str) -> Values:
    rig = check_values(CCD_RIG_PG_armature.bl_rna, value, place)
    if others := sorted(set(rig) - set(RIG_FIELDS)):
        name = shown(others[0])
        raise InvalidInput(f"{place}: '{name}' is no part of a set-up; it may hold {', '.join(RIG_FIELDS)}")
    return rig


def _role(value: object, place: str) -> Role:
    return Role(*decoded(tuple[Part, Side, int, int], value, place))


@dataclass(frozen=True)
class BoneSetup:
    """Settings of one bone."""

    rest: Annotated[Components, _rest]  # orientation at rest in armature space, (w, x, y, z)
    # From its head to where the body goes on, armature space (`along_of`); None in files that do not tell it.
    along: Annotated[Triple, _along] | None = None
    joint: Annotated[Values, _joint] | None = None  # values of its group `ccd_rig`; None for defaults


@dataclass(frozen=True)
class Setup:
    """Constraints and limits of a rig."""

    armature: str  # name of the original armature object
    # Bones by name that have settings, or that constraints name.
    bones: Mapping[str, BoneSetup]
    constraints: Annotated[tuple[Values, ...], _constraints] = ()  # values of the constraints in their order
    rig: Annotated[Values, _rig] = field(default_factory=dict)  # settings of the armature (`RIG_FIELDS`)
    # Bones at which chains of limited length begin, by the names of constraints: their counterparts may have
    # more or fewer bones between them.
    chains: Mapping[str, str] = field(default_factory=dict)
    # Roles of the bones in the set-up and in `chains`, if they are known.
    roles: Mapping[str, Annotated[Role, _role]] = field(default_factory=dict)
    # Keys of influences in the present action, by the names of constraints.
    influence: Mapping[str, Annotated[Curve, _curve]] = field(default_factory=dict)

    def bone_names(self) -> tuple[str, ...]:
        """Return the names of the bones in the set-up, each once."""
        names = dict.fromkeys(self.bones)
        for row in self.constraints:
            names.update(dict.fromkeys(row[name] for name in LOCAL_BONES if row.get(name)))
        return tuple(names)


def setup_of(armature_object: bpy.types.Object) -> Setup:
    """Return the present set-up of a rig, without roles; raises RigError as `curves_of`."""
    group = armature_object.ccd_rig
    values = values_of(group)
    rig = {name: values[name] for name in RIG_FIELDS if name in values}
    rows = tuple(values_of(row) for row in group.constraints)
    chains = {}
    for row in group.constraints:
        chain = constraint_list.chain_of(armature_object, row)
        if row.name and 0 < row.chain_length == len(chain):
            chains[row.name] = chain[-1].name
    named_bones = {row[key] for row in rows for key in LOCAL_BONES if row.get(key)}
    for key, owner in OTHER_BONES.items():
        named_bones |= {row[key] for row in rows if row.get(key) and row.get(owner) == {"object": ""}}
    bones = {}
    for bone in armature_object.pose.bones:
        joint = values_of(bone.ccd_rig) if bone.is_property_set("ccd_rig") else {}
        if joint or bone.name in named_bones:
            w, x, y, z = rest_rotation(bone)[:]
            bones[bone.name] = BoneSetup((w, x, y, z), along_of(bone), joint or None)
    return Setup(armature_object.name, bones, rows, rig, chains, influence=curves_of(armature_object))


def with_roles(armature_object: bpy.types.Object, setup: Setup) -> Setup:
    """Return a set-up with the roles of its bones, by which rigs with different names can take it."""
    known = roles_of(armature_object)
    names = dict.fromkeys((*setup.bone_names(), *setup.chains.values()))
    return replace(setup, roles={name: known[name] for name in names if name in known})


def along_of(pose_bone: bpy.types.PoseBone) -> Triple:
    """Return the vector from a bone's head to its tail, at rest in armature space.

    If it has children and none of them begins there, as where importers make tails up, to their middle.
    """
    bone: Any = pose_bone.bone
    heads = [child.head_local for child in bone.children]
    end = bone.tail_local
    if heads and min((head - end).length for head in heads) > 1e-3 * bone.length:
        middle = sum(heads, Vector()) / len(heads)
        end = middle if (middle - bone.head_local).length > 1e-3 * bone.length else end
    x, y, z = (end - bone.head_local)[:]
    return x, y, z


def to_json(setup: Setup) -> str:
    """Return a set-up as JSON; raises ValueError if a value is not a number."""
    data = {"format": FORMAT, "version": VERSION, **encoded(setup)}
    data["bones"] = {
        name: {key: value for key, value in bone.items() if value is not None}
        for name, bone in data["bones"].items()
    }
    data["roles"] = {name: astuple(role) for name, role in setup.roles.items()}
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> Setup:
    """Parse a set-up in JSON.

    Raises:
        InvalidInput: names the field that is missing or wrong.
    """
    return read_json(text, Setup, "the set-up", (FORMAT, VERSION))


def save(path: str | os.PathLike[str], setup: Setup) -> None:
    """Write a set-up as JSON; the file is replaced at once.

    Raises:
        RigError: a value is not a number; WriteError: the folder cannot be written, or the disk is full.
    """
    try:
        text = to_json(setup)
    except ValueError as error:
        raise RigError(f"the set-up of '{setup.armature}' holds a value that is not a number") from error
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def load(path: str | os.PathLike[str]) -> Setup:
    """Read the set-up of a JSON file; raises RigError, which names the file and the error in it."""
    return read(path, from_json)


SAME = 1e-3
"""Largest angle between axes, radians, and difference of sizes, at which settings are copied unchanged."""
EXCHANGES = sorted(
    (
        Quaternion(components).normalized()
        for components in itertools.product((1.0, 0.0, -1.0), repeat=4)
        if sum(map(abs, components)) in (1.0, 2.0, 4.0)
    ),
    key=angle_of,
)
"""The rotations that exchange axes, smallest first."""


@dataclass(frozen=True)
class Applied:
    """Result of applying a set-up."""

    bones: tuple[str, ...]  # names of the bones whose settings were set
    constraints: tuple[str, ...]  # names of the constraints that were added or set
    missing: tuple[str, ...] = ()  # names of bones of the set-up that the rig does not have
    notes: tuple[str, ...] = ()  # sentences on other differences from the set-up

    def warnings(self) -> tuple[str, ...]:
        """Return sentences on everything that was left out."""
        words = tuple(map(sentence, self.notes))
        if not self.missing:
            return words
        return (*words, f"The armature has no bone for {named(self.missing)}: what is theirs is left out")

    def words(self) -> str:
        """Return a summary with the numbers of bones and constraints."""
        bones = f"{len(self.bones)} bone{'' if len(self.bones) == 1 else 's'}"
        rows = f"{len(self.constraints)} constraint{'' if len(self.constraints) == 1 else 's'}"
        return f"{bones} and {rows} set"


def apply(armature_object: bpy.types.Object, setup: Setup) -> Applied:
    """Apply the limits and constraints of a set-up to a rig.

    Bones that are not in the set-up do not change. Constraints of the same name are set, the remaining ones
    added.

    Raises:
        RigError: the rig has none of the set-up's bones. Nothing has changed then.
    """
    pose_bones = armature_object.pose.bones
    names = bones_for(armature_object, setup)
    missing = tuple(name for name in setup.bone_names() if name not in names)
    if missing and missing == setup.bone_names():
        raise RigError(f"armature '{armature_object.name}' has none of the set-up's bones: {named(missing)}")
    notes: list[str] = []
    moves = _moves(armature_object, setup, names)
    for old, bone in setup.bones.items():
        if old in names and bone.joint is not None:
            notes += _set_joint(pose_bones[names[old]], bone.joint, names, moves[old])
    for name, value in setup.rig.items():
        if isinstance(value, dict):
            set_values(getattr(armature_object.ccd_rig, name), value)
        else:
            setattr(armature_object.ccd_rig, name, value)
    rows = [row for row in setup.constraints if row.get("tip", "") not in missing]
    row_names = [
        _set_row(armature_object, _with_chain(armature_object, row, setup, names, notes), names, moves, notes)
        for row in rows
    ]
    for row, name in zip(rows, row_names, strict=True):
        if curve := setup.influence.get(row.get("name", "")):
            try:
                set_curve(armature_object.ccd_rig.constraints[name], curve)
            except RigError as error:
                notes.append(f"keys are left out: {error}")
    notes += _overruling(armature_object, setup, set(row_names))
    keep_overrides(armature_object)
    bones = tuple(names[old] for old, bone in setup.bones.items() if old in names and bone.joint is not None)
    return Applied(bones, tuple(row_names), missing, tuple(notes))


def _overruling(armature_object: bpy.types.Object, setup: Setup, names: set[str]) -> Iterator[str]:
    """Yield notes on what moves settings of constraints of these names, beside the keys of the set-up."""
    driven_names = driven(armature_object)
    by_label: dict[str, list[str]] = {}
    rows = [row for row in armature_object.ccd_rig.constraints if row.name in names]
    for row, setting in constraint_list.moved_settings(armature_object, rows):
        is_loaded = row.name in setup.influence and row.name not in driven_names
        if setting.identifier != INFLUENCE or not is_loaded:
            by_label.setdefault(setting.name, []).append(row.name)
    for label, listed in by_label.items():
        yield (
            f"what moves '{label}' of {named(listed)}, keys or a driver, stays and overrules the file: "
            "remove it, or keep it"
        )


def bones_for(armature_object: bpy.types.Object, setup: Setup) -> dict[str, str]:
    """Return {bone of a set-up: bone of the rig}, of the same name, else of the same role."""
    pose_bones = armature_object.pose.bones
    referred = (*setup.bone_names(), *setup.chains.values())
    names = {name: name for name in referred if name in pose_bones}
    roles = {name: role for name, role in setup.roles.items() if name not in names}
    if roles:
        taken = set(names.values())
        by_role = {role: name for name, role in roles_of(armature_object).items() if name not in taken}
        names |= {name: by_role[role] for name, role in roles.items() if role in by_role}
    return names


class Move(NamedTuple):
    """Way of vectors along the axes of a bone to those of its counterpart."""

    turn: Quaternion  # from the axes of the one to those of the other
    scale: float  # length of the other in lengths of the one

    def vector(self, value: Sequence[float]) -> list[float]:
        """Return the counterpart of a shift along the axes."""
        return [self.scale * number for number in self.direction(value)]

    def direction(self, value: Sequence[float]) -> list[float]:
        """Return the counterpart of a direction."""
        return list((self.turn @ Vector(value))[:]) if self.turn != STAYS.turn else list(value)

    def axis(self, k: int) -> tuple[int, float] | None:
        """Return the axis on which axis `k` comes to lie and its sign; None if it comes to lie askew."""
        turned = tuple((self.turn @ Vector(UNITS[k]))[:])
        sides = ((m, side_of(turned, unit)) for m, unit in enumerate(UNITS))
        return next(((m, side) for m, side in sides if side), None)


STAYS = Move(Quaternion(), 1.0)
"""The way to an equal bone, which leaves every bit."""


def _moves(armature_object: bpy.types.Object, setup: Setup, names: Mapping[str, str]) -> dict[str, Move]:
    """Return the way of each bone of a set-up to its counterpart on a rig.

    The rest pose is carried over to the rig's: the figure as a whole, and from parents to children each bone
    the shortest way to where its counterpart points. The whole turns so that all turns are least: between
    files with Y and Z up, or a figure that looks another way. Axes that still differ are the turn.
    """
    olds = {new: old for old, new in names.items() if old in setup.bones}
    pairs = []  # parents first: bone, its parent, and the directions of both
    for mine in armature_object.pose.bones:
        if mine.name in olds:
            above = next((olds[parent.name] for parent in mine.parent_recursive if parent.name in olds), "")
            old, along = olds[mine.name], Vector(along_of(mine))
            known = setup.bones[old]
            unknown = Quaternion(known.rest) @ Vector((0.0, along.length, 0.0))  # without a size, by its Y
            pairs.append((old, above, unknown if known.along is None else Vector(known.along), along))

    def turned(whole: Quaternion) -> tuple[float, dict[str, Quaternion]]:
        """Sum of all turns, radians, and the turn of each bone from its rest to its counterpart's."""
        total, turns = angle_of(whole), {"": whole}
        for old, above, one, other in pairs:
            step = (turns[above] @ one).rotation_difference(other)
            turns[old] = step @ turns[above]
            total += angle_of(step)
        return round(total, 4), turns

    _, turns = min(map(turned, EXCHANGES), key=lambda each: each[0])  # the smallest whole of equals
    moves = {}
    for old, _, one, other in pairs:
        mine = armature_object.pose.bones[names[old]]
        turn = rest_rotation(mine).conjugated() @ turns[old] @ Quaternion(setup.bones[old].rest)
        scale = other.length / one.length
        moves[old] = Move(
            turn if angle_of(turn) >= SAME else STAYS.turn, scale if abs(scale - 1.0) >= SAME else STAYS.scale
        )
    return moves


def _set_joint(
    pose_bone: bpy.types.PoseBone, joint: Values, names: Mapping[str, str], move: Move
) -> list[str]:
    """Set the settings of a bone; return notes on the ones that it cannot have."""
    joint, notes = dict(joint), []
    if "coupled_offsets" in joint:
        joint["coupled_offsets"] = [_moved_offset(row, names, move) for row in joint["coupled_offsets"]]
    if any(joint.get("use_slide", ())) and move != STAYS:
        if (slides := _moved_slides(joint, move)) is None:
            notes.append(f"the slide of '{pose_bone.name}' is left out: its rest has other axes")
        joint = {name: value for name, value in joint.items() if name not in SLIDES} | (slides or {})
    set_values(pose_bone.ccd_rig, joint)
    _start(pose_bone, move.turn)
    if move.turn == STAYS.turn:
        return notes
    group = pose_bone.ccd_rig
    try:
        store_limits({pose_bone: _turned(pose_bone.name, group.limit, move)})
    except (InvalidInput, RigError):
        group.property_unset("limit")
        notes.append(f"the limit of '{pose_bone.name}' is left out: its rest has other axes")
    try:
        store_limits({}, {pose_bone: _turned(pose_bone.name, group.comfort.region, move)})
    except (InvalidInput, RigError):
        group.comfort.property_unset("region")
        notes.append(f"the comfort region of '{pose_bone.name}' is left out: its rest has other axes")
    return notes


def _start(pose_bone: bpy.types.PoseBone, turn: Quaternion) -> None:
    """Let a bone start from its Start Rotation, turned to its axes."""
    start = Quaternion(pose_bone.ccd_rig.start_rotation)
    if any(start):
        start_from(pose_bone.id_data, {pose_bone.name: turn @ start @ turn.conjugated()})
    else:
        pose_bone.ccd_rig.property_unset("start_before")


def _turned(bone: str, stored: Any, move: Move) -> Limit | None:
    limit = limit_of(bone, "limit", stored)
    return None if limit is None else limit.turned(move.turn)


def _with_chain(
    armature_object: bpy.types.Object, row: Values, setup: Setup, names: Mapping[str, str], notes: list[str]
) -> Values:
    """Return a constraint's values, with a chain from the counterpart of its first bone."""
    name = row.get("name", "")
    begins = setup.chains.get(name)
    if begins is None:
        return row
    above = constraint_list.chain(armature_object, names.get(row.get("tip", ""), ""))
    for count, bone in enumerate(above, 1):
        if bone.name == names.get(begins):
            return row | {"chain_length": count}
    notes.append(
        f"constraint '{name}': its chain began at '{begins}', which has no counterpart above it: look at "
        "Chain Length"
    )
    return row


def _set_row(
    armature_object: bpy.types.Object,
    row: Values,
    names: Mapping[str, str],
    moves: Mapping[str, Move],
    notes: list[str],
) -> str:
    """Set the values of a constraint, adding it if it is missing; return its name."""
    keys = [*LOCAL_BONES]  # fields that name bones of the armature
    for key, owner in OTHER_BONES.items():
        if object_of(armature_object, row.get(owner)) == armature_object:
            keys.append(key)
    tip = row.get("tip", "")
    turned = row.get("rotation_bone") or tip
    target = row.get("target_bone", "") if "target_bone" in keys else ""
    values, askew = _moved_row(row, *(moves.get(name, STAYS) for name in (tip, turned, target)))
    for key in keys:
        if row.get(key):
            values[key] = names.get(row[key], row[key])
    listed = armature_object.ccd_rig.constraints
    name = row.get("name", "")
    constraint: Any = listed.get(name) if name else None
    if constraint is None:
        constraint = constraint_list.add(armature_object, name, values.get("tip", ""))
        values["name"] = constraint.name
    set_values(constraint, values)
    for label in askew:
        notes.append(
            f"constraint '{constraint.name}': {label} is as it was, but the bone has other axes; choose one"
        )
    for key in OTHER_BONES.values():
        if row.get(key) is not None and getattr(constraint, key) is None:
            missing = row[key]["object"]
            notes.append(f"constraint '{constraint.name}': there is no object '{missing}'; choose one")
    return str(constraint.name)


SLIDES = ("use_slide", "slide_lower", "slide_upper")


def _moved_slides(joint: Values, move: Move) -> Values | None:
    """Return the slides of a bone along the axes of its counterpart; None if they would lie askew to them."""
    properties = CCD_RIG_PG_joint.bl_rna.properties
    use, lower, upper = (joint.get(name, list(properties[name].default_array)) for name in SLIDES)
    slides = [list(properties[name].default_array) for name in SLIDES]
    for k in range(3):
        if not use[k]:
            continue
        if (axis := move.axis(k)) is None:
            return None
        m, side = axis
        ends = sorted((side * move.scale * lower[k], side * move.scale * upper[k]))
        slides[0][m], slides[1][m], slides[2][m] = True, *ends
    return dict(zip(SLIDES, slides, strict=True))


def _moved_offset(row: Values, names: Mapping[str, str], move: Move) -> Values:
    """Return a coupled offset of a bone for its counterpart."""
    moved = dict(row)
    if "driver" in row:
        moved["driver"] = names.get(row["driver"], row["driver"])
    if move != STAYS:
        default = CCD_RIG_PG_coupled_offset.bl_rna.properties["axis"].default_array
        moved["axis"] = move.direction(row.get("axis", list(default)))
        moved["points"] = [
            point | {name: move.scale * point[name] for name in ("shift", "slope") if name in point}
            for point in row.get("points", ())
        ]
    return moved


def _moved_row(row: Values, tip: Move, turned: Move, target: Move) -> tuple[Values, list[str]]:
    """Return a constraint's values for the counterparts of its bones, and settings that would lie askew.

    Args:
        tip, turned, target: ways of its bone, of the one that is turned as the target is, and of its target.
    """
    values, askew = dict(row), []
    if "effector_offset" in row:
        values["effector_offset"] = tip.vector(row["effector_offset"])
    if "offset" in row and row.get("offset_space", "TARGET") == "TARGET":
        values["offset"] = target.vector(row["offset"])
    elif "offset" in row and row["offset_space"] == "ARMATURE":
        values["offset"] = [tip.scale * number for number in row["offset"]]
    for name, move in (("bone_axis", turned), ("target_axis", target)):
        if move.turn == STAYS.turn or row.get("rotation", "NONE") != "DIRECTION":
            continue
        prop = CCD_RIG_PG_constraint.bl_rna.properties[name]
        sign, axis = row.get(name, prop.default).split("_")
        if (placed := move.axis("XYZ".index(axis))) is None:
            askew.append(prop.name)
            continue
        m, side = placed
        values[name] = f"{'POS' if (sign == 'POS') == (side > 0.0) else 'NEG'}_{'XYZ'[m]}"
    return values, askew


# By `session_uid` of rigs: settings of bones that may be replaced.
_bone_settings: dict[int, dict[str, Values]] = {}
_edited: set[int] = set()  # `session_uid` of generated rigs that are in Edit Mode


def follow(
    scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph, armatures: Sequence[bpy.types.Object]
) -> None:
    """Note settings of bones as a generated rig enters Edit Mode; restore them on new bones afterwards."""
    for armature_object in armatures:
        uid = armature_object.session_uid
        if armature_object.mode == "EDIT":
            if uid not in _edited and is_generated(armature_object.data) and not is_isolated(scene):
                _edited.add(uid)
                if uid not in _bone_settings:
                    keep(armature_object)
                bones = with_settings(armature_object.pose.bones)
                if settings := {bone.name: values_of(bone.ccd_rig) for bone in bones}:
                    _bone_settings.setdefault(uid, {}).update(settings)
        elif (uid in _edited or uid in _bone_settings) and not is_isolated(scene):
            _edited.discard(uid)
            if uid in _bone_settings and is_generated(armature_object.data):
                _restore_bones(armature_object)


def _restore_bones(armature_object: bpy.types.Object) -> None:
    settings = _bone_settings[armature_object.session_uid]
    for name in list(settings):
        bone = armature_object.pose.bones.get(name)
        if bone is None:
            continue  # Rigify leaves Edit Mode several times before all bones exist
        values = settings.pop(name)
        if not values_of(bone.ccd_rig):
            set_values(bone.ccd_rig, values)
            _start(bone, STAYS.turn)
    if not settings:
        del _bone_settings[armature_object.session_uid]
        for row in armature_object.ccd_rig.constraints:
            renamed_bones.on_named(row)


def metarig_of(armature_object: bpy.types.Object) -> bpy.types.Object | None:
    """Return the metarig that Rigify has generated a rig from; None if it is not in the file."""
    for metarig in bpy.data.objects:
        if metarig.type == "ARMATURE" and getattr(metarig.data, "rigify_target_rig", None) == armature_object:
            return metarig
    return None


def keep(armature_object: bpy.types.Object) -> None:
    """Store the set-up of a rig on its metarig, if there is one."""
    metarig = metarig_of(armature_object)
    if metarig is None or not metarig.is_editable:
        return
    try:
        setup = setup_of(armature_object)
        if setup.bones or setup.constraints:
            metarig.ccd_rig.kept_setup = to_json(setup)
    except (ValueError, RigError):
        return  # a value is not a number, which checks report, or a strip is tweaked: the former one is kept


def restore(armature_object: bpy.types.Object) -> Applied:
    """Apply the set-up that its metarig keeps to a generated rig.

    Raises:
        RigError: the metarig keeps none, or the rig has none of its bones. InvalidInput: what it keeps is
            damaged. Nothing has changed then.
    """
    metarig = metarig_of(armature_object)
    if metarig is None or not metarig.ccd_rig.kept_setup:
        raise RigError(
            f"no metarig keeps a set-up of '{armature_object.name}': it is kept as the rig is generated "
            "anew, or the file is saved"
        )
    return apply(armature_object, from_json(metarig.ccd_rig.kept_setup))


_HANDLERS = Handlers()


@_HANDLERS.on("save_pre")
def keep_all(*_arguments: object) -> None:
    """Store the set-ups of all rigs on their metarigs, before a file is saved."""
    for obj in bpy.data.objects:
        rig = getattr(obj.data, "rigify_target_rig", None) if obj.type == "ARMATURE" else None
        if rig is not None and is_generated(rig.data):
            keep(rig)


@_HANDLERS.on("load_post")
def forget(*_arguments: object) -> None:
    """Forget all noted settings after a file was opened, whose objects have different `session_uid`."""
    _bone_settings.clear()
    _edited.clear()


@_HANDLERS.on("undo_post", "redo_post")
def forget_modes(*_arguments: object) -> None:
    """Forget which rigs are in Edit Mode: undo or redo may have changed the mode, and settings."""
    _edited.clear()


def register() -> None:
    """Add the handlers of evaluations, saving, opening, undo and redo."""
    evaluations.add(follow, lambda armature_object: armature_object.session_uid not in _bone_settings)
    _HANDLERS.register()


def unregister() -> None:
    """Remove the handlers."""
    forget()
    evaluations.remove(follow)
    _HANDLERS.unregister()
