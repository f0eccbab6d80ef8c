# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a figure's constraints with their targets and poles."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import bpy
from mathutils import Matrix, Vector

from ...errors import RigError
from ..figures import rigify, roles
from ..figures.role import Figure, Kind, Part
from ..keys import channels
from ..properties import constraint_list
from ..properties.new_targets import COLOURS, new_target
from ..rig import clamps
from . import poles
from .planned_rows import Group, PlannedRow, planned_rows

ROOM = 1.0
"""Part of the figure's size by which a bone that carries it may be shifted by its target."""


@dataclass(frozen=True)
class Choices:
    """What to make.

    Attributes:
        groups: of constraints.
        poles: whether knees and elbows get poles.
    """

    groups: Collection[Group]
    poles: bool = True


@dataclass
class Made:
    """What was made, and what was not.

    Attributes:
        kind: of the figure.
        family: whose names its bones have; empty where its structure told.
        available: groups that the figure has.
        rows: names of the new constraints by group.
        poles: how many.
        notes: what the user should know, in sentences without a full stop.
    """

    kind: Kind
    family: str
    available: tuple[Group, ...] = ()
    rows: dict[Group, list[str]] = field(default_factory=dict)
    poles: int = 0
    notes: list[str] = field(default_factory=list)

    def words(self) -> str:
        """Such as "Mixamo human: 2 hands, 2 feet, head, hips, 4 poles"."""
        counts = [_counted(group, len(names)) for group, names in self.rows.items()]
        if self.poles:
            counts.append(f"{self.poles} pole{'' if self.poles == 1 else 's'}")
        name = f"{self.family} {self.kind}".strip()
        return f"{name[:1].upper()}{name[1:]}: {', '.join(counts)}"


def _counted(group: Group, count: int) -> str:
    return str(group) if group in ONE else f"{count} {group}"


ONE = (Group.HEAD, Group.HIPS, Group.TAIL)


def set_up(context: bpy.types.Context, armature_object: bpy.types.Object, choices: Choices) -> Made:
    """Make the constraints that are chosen. Bones that have one already keep it.

    Args:
        context: its scene gets the targets.
        armature_object: the figure, as it is posed now.
        choices: what to make.

    Raises:
        RigError: no figure is recognised, or nothing is left to make. Nothing has changed then.
    """
    figure, planned = _planned(armature_object)
    if not planned:
        raise RigError(
            f"'{armature_object.name}' is no figure that is known: neither the names of its bones nor how "
            "they lie at rest tell hands, feet or a tail. Select a bone and add a constraint for it"
        )
    made = Made(figure.kind, figure.family, tuple(dict.fromkeys(row.group for row in planned)))
    rows = _left(armature_object, planned, choices, made)
    if not rows:
        raise RigError(
            f"'{armature_object.name}': nothing is left to set up. {'. '.join(made.notes)}".strip()
        )
    evaluated = armature_object.evaluated_get(context.evaluated_depsgraph_get())
    front = poles.front_of(figure, evaluated)
    parents: dict[Group, bpy.types.Object] = {}
    carrier_bone = next((row.tip for row in planned if row.group is Group.HIPS), "")
    for row in rows:
        target = _add_row(context, armature_object, evaluated, row)
        parents.setdefault(row.group, target)
        if row.group in CARRIED:
            _carry(armature_object, target, parents.get(Group.HIPS), carrier_bone)
        made.rows.setdefault(row.group, []).append(constraint_list.active(armature_object).name)
        if row.bend and choices.poles:
            place = poles.pole_place(evaluated, row, front)
            if place is None:
                continue
            pole = _add_pole(context, armature_object, row, place)
            carrier = target if row.role.part in FEET else parents.get(Group.HIPS)
            _carry(armature_object, pole, carrier, carrier_bone)
            made.poles += 1
    made.notes += _stiffen(armature_object, figure, rows)
    if rigify.is_generated(armature_object.data):
        made.notes += _switch_to_fk(armature_object, rows)
    armature_object.ccd_rig.active_index = 0
    made.notes += _unknown(armature_object, figure, planned)
    return made


CARRIED = (Group.HEAD, Group.TAIL, Group.WINGS)
"""Groups whose targets go along with the hips."""
FEET = (Part.FOOT, Part.TOE, Part.FRONT_FOOT, Part.FRONT_TOE)
PIECES = (Part.UPPER_ARM, Part.LOWER_ARM, Part.THIGH, Part.SHIN, Part.FRONT_THIGH, Part.FRONT_SHIN)
ENDS = (*FEET, Part.HAND, Part.HEAD, Part.WING, Part.TAIL)


def _planned(armature_object: bpy.types.Object) -> tuple[Figure, list[PlannedRow]]:
    bones = roles.rest_bones(armature_object)
    figure = roles.recognise(bones, rigify.is_generated(armature_object.data))
    return figure, planned_rows(figure, bones)


def _left(
    armature_object: bpy.types.Object, planned: Sequence[PlannedRow], choices: Choices, made: Made
) -> list[PlannedRow]:
    """The chosen rows whose bones have no constraint yet and are not keyed as the figure's carrier."""
    taken = {row.tip for row in armature_object.ccd_rig.constraints}
    rows = []
    for row in planned:
        if row.group not in choices.groups:
            continue
        if row.slides and (keyed := _keyed_at_or_above(armature_object, row.tip)):
            made.notes.append(f"'{keyed}' keeps its animation, so '{row.tip}' got no target")
        elif row.group in (Group.TAIL, Group.WINGS) and _is_turned(armature_object, row):
            made.notes.append(f"'{row.tip}' got no target: constraints of the rig turn its chain")
        elif row.tip in taken:
            made.notes.append(f"'{row.tip}' keeps the constraint that it has")
        else:
            rows.append(row)
    return rows


def _is_turned(armature_object: bpy.types.Object, row: PlannedRow) -> bool:
    """Whether constraints of the rig turn bones of a chain."""
    for bone in constraint_list.chain(armature_object, row.tip):
        if any(not each.mute and each.influence > 0.0 for each in clamps.user_constraints(bone)):
            return True
        if bone.name == row.top:
            break
    return False


def _animated_paths(armature_object: bpy.types.Object) -> set[str]:
    """Data paths that F-curves play on, or drivers."""
    animation = armature_object.animation_data
    drivers = [] if animation is None else animation.drivers
    played = {curve.data_path for _, curves in channels.played(armature_object) for curve in curves}
    return played | {driver.data_path for driver in drivers}


def _keyed_at_or_above(armature_object: bpy.types.Object, name: str) -> str:
    """The bone, or the next one above it, that has keys in what plays; empty for none."""
    paths = _animated_paths(armature_object)
    bone = armature_object.pose.bones[name]
    for each in (bone, *bone.parent_recursive):
        start = each.path_from_id() + "."
        if any(path.startswith(start) for path in paths):
            return str(each.name)
    return ""


def _add_row(
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    evaluated: bpy.types.Object,
    planned: PlannedRow,
) -> bpy.types.Object:
    """A constraint with a new target at its bone, turned as the bone is."""
    target = new_target(context, armature_object, f"Target {planned.tip}", planned.tip)
    bone = evaluated.pose.bones[planned.tip]
    end = bone.tail if planned.use_tail else bone.head
    matrix = evaluated.matrix_world @ bone.matrix
    turned = matrix.to_quaternion().to_matrix().to_4x4() if planned.copies_rotation else Matrix()
    target.matrix_world = Matrix.Translation(evaluated.matrix_world @ end) @ turned
    target.color[:] = COLOURS[planned.role.side]
    if planned.copies_rotation:
        target.empty_display_type = "CUBE"  # shows how it is turned
    row = constraint_list.add(armature_object, planned.tip, planned.tip)
    chain = [each.name for each in constraint_list.chain(armature_object, planned.tip)]
    row.chain_length = chain.index(planned.top) + 1
    row.target = target
    row.use_tail, row.use_position = planned.use_tail, planned.reaches
    if planned.copies_rotation:
        row.rotation = "ORIENTATION"
    if planned.slides:
        _let_slide(armature_object, planned.tip)
    return target


def _let_slide(armature_object: bpy.types.Object, name: str) -> None:
    """Let a bone be shifted to all sides as far as the figure is large."""
    bone = armature_object.pose.bones[name]
    points = [point for each in armature_object.data.bones for point in (each.head_local, each.tail_local)]
    spans = [max(point[k] for point in points) - min(point[k] for point in points) for k in range(3)]
    room = ROOM * Vector(spans).length
    joint = bone.ccd_rig
    joint.use_slide = (True, True, True)
    joint.slide_lower, joint.slide_upper = (-room,) * 3, (room,) * 3


def _add_pole(
    context: bpy.types.Context, armature_object: bpy.types.Object, planned: PlannedRow, place: Vector
) -> bpy.types.Object:
    """A pole for the newest constraint."""
    pole = new_target(context, armature_object, f"Pole {planned.tip}", planned.tip)
    pole.empty_display_type = "PLAIN_AXES"
    pole.color[:] = COLOURS[planned.role.side]
    pole.location = place
    constraint_list.active(armature_object).pole_target = pole
    return pole


def _carry(
    armature_object: bpy.types.Object,
    thing: bpy.types.Object,
    carrier: bpy.types.Object | None,
    bone_name: str,
) -> None:
    """Let a target or pole go along with another target, else with a bone; it stays where it is now."""
    if carrier is not None:
        thing.parent = carrier
        thing.matrix_parent_inverse = carrier.matrix_basis.inverted()
    elif bone_name:
        bone = armature_object.pose.bones[bone_name]
        thing.parent, thing.parent_type, thing.parent_bone = armature_object, "BONE", bone_name
        tail = Matrix.Translation((0.0, bone.length, 0.0))
        thing.matrix_parent_inverse = (armature_object.matrix_world @ bone.matrix @ tail).inverted()


def _stiffen(armature_object: bpy.types.Object, figure: Figure, rows: Sequence[PlannedRow]) -> list[str]:
    """Let pieces of one thigh, shin or arm stay in line: Stiffness 1 for all but the first; notes of it."""
    locked = []
    for row in rows:
        for bone in constraint_list.chain(armature_object, row.tip):
            role = figure.roles.get(bone.name)
            if role is not None and role.part in PIECES and role.index > 0:
                bone.ccd_rig.stiffness = 1.0
                locked.append(bone.name)
            if bone.name == row.top:
                break
    return [f"Kept in line with the bone before (Stiffness 1): {named(locked)}"] if locked else []


def named(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(repr(name) for name in names[:MOST_NAMES]) + more


def _switch_to_fk(armature_object: bpy.types.Object, rows: Sequence[PlannedRow]) -> list[str]:
    """Set the limbs of a generated rig to FK, so that their FK controls move them; notes of it."""
    switched, animated, paths = [], [], _animated_paths(armature_object)
    for row in rows:
        switch = armature_object.pose.bones.get(rigify.limb_parent(row.top))
        if switch is None or rigify.IK_FK not in switch:
            continue
        path = f'{switch.path_from_id()}["{rigify.IK_FK}"]'
        if path in paths:
            animated.append(switch.name)
        elif switch[rigify.IK_FK] < 1.0:
            switch[rigify.IK_FK] = 1.0
            switched.append(switch.name)
    notes = [f"{rigify.IK_FK} set to FK on {named(switched)}"] if switched else []
    if animated:
        notes.append(f"{rigify.IK_FK} is animated on {named(animated)}: set it to 1 for the frames to bake")
    return notes


WANTED = {
    Kind.HUMAN: (Group.HANDS, Group.FEET, Group.HEAD, Group.HIPS),
    Kind.QUADRUPED: (Group.FEET, Group.HEAD, Group.HIPS),
    Kind.BIRD: (Group.FEET, Group.WINGS, Group.HEAD, Group.HIPS),
    Kind.MANY_LEGS: (Group.FEET,),
    Kind.FISH: (Group.HEAD,),
}
MOST_NAMES = 3


def _unknown(armature_object: bpy.types.Object, figure: Figure, planned: Sequence[PlannedRow]) -> list[str]:
    """What is missing of such a figure, and rows of bones that are no known part of it, in words."""
    found = {row.group for row in planned}
    missing = [group for group in WANTED.get(figure.kind, ()) if group not in found]
    notes = [f"Not recognised: {', '.join(missing)}"] if missing else []
    bones = armature_object.data.bones
    ends = {name for name, role in figure.roles.items() if role.part in ENDS}
    odd = [
        bone.name
        for bone in bones
        if bone.use_deform
        and bone.children
        and figure.family != roles.RIGIFY
        and bone.name not in figure.roles
        and bone.parent is not None
        and (bone.parent.name in figure.roles or bone.parent.parent is None)
        and not any(above.name in ends for above in bone.parent_recursive)
        and not any(below.name in figure.roles for below in bone.children_recursive)
    ]
    if odd:
        notes.append(f"Left as they are: {named(odd)}")
    return notes
