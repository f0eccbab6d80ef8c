# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a figure's constraints with their targets and poles."""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ...errors import RigError
from ..checks import setup
from ..figures import control_bones, rigify, roles
from ..figures.role import Figure, Part
from ..properties import planted_rows
from ..properties.constraint_values import Holds
from ..properties.new_targets import NewTarget, Target, make_targets
from . import joint_limits, poles, rig_state, targets
from .made import Choices, Made, Ranges
from .planned_rows import Group, PlannedRow, planned_rows
from .unknown_bones import refusal, unknown_bones

CARRIED = (Group.HEAD, Group.HANDS, Group.TAIL, Group.WINGS)
"""Groups whose targets go along with the hips."""
KNEE_GOES_WITH_FOOT = (Part.FOOT, Part.TOE, Part.FRONT_FOOT, Part.FRONT_TOE)


def set_up(context: bpy.types.Context, armature_object: bpy.types.Object, choices: Choices) -> Made:
    """Make the constraints that are chosen. Bones that have one already keep it.

    Args:
        context: its scene gets the targets.
        armature_object: the figure, as it is posed now.
        choices: what to make.

    Raises:
        RigError: no figure is recognised, or nothing is left to make. Nothing has changed then.
    """
    bones = roles.rest_bones(armature_object)
    recognised = roles.recognise(bones, rigify.is_generated(armature_object.data))
    figure = roles.with_roles(recognised, [bone.name for bone in bones], choices.roles)
    planned = planned_rows(figure, bones)
    if not planned:
        raise RigError(refusal(armature_object, bones))
    carrier = next((row.tip for row in planned if row.group is Group.HIPS), "")
    made = Made(figure.kind, figure.family, tuple(dict.fromkeys(row.group for row in planned)), carrier)
    controls = {**recognised.roles, **figure.roles}
    listed = controls if figure.family == roles.RIGIFY else [bone.name for bone in bones]
    made.roles = {name: (_role_words(figure, name), _role_words(recognised, name)) for name in listed}
    if uneven := setup.uneven_scale(armature_object.matrix_world, armature_object.name):
        made.notes.append(setup.sentence(uneven))
    rows = _left(armature_object, planned, choices, made)
    if not rows:
        nothing = f"'{armature_object.name}': nothing is left to set up"
        raise RigError(". ".join([nothing, *made.notes]))
    if choices.control_bones:
        control_bones.require_editable(context, armature_object)
    planted = [row for row in rows if choices.plant and row.group is Group.FEET]
    if planted:
        names = planted_rows.plant(armature_object, [row.tip for row in planted], Holds()).names
        made.rows[Group.FEET] = list(names)
        made.is_planted = True
        made.notes.append("Feet are planted where they are, and the hips follow them")
    _add_rows(context, armature_object, figure, [row for row in rows if row not in planted], choices, made)
    if choices.ranges is not Ranges.NONE:
        made.notes += joint_limits.apply(armature_object, figure, rows, choices.ranges)
    made.notes += rig_state.stiffen(armature_object, figure, rows)
    if rigify.is_generated(armature_object.data):
        made.notes += rig_state.switch_to_fk(armature_object, rows)
        if choices.control_bones:
            made.notes.append(
                "Rigify's Re-Generate Rig removes control bones: take empties for rigs that change"
            )
    armature_object.ccd_rig.active_index = 0
    armature_object.ccd_rig.body_helps = True
    made.notes += unknown_bones(armature_object, figure, planned)
    return made


def _add_rows(
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    figure: Figure,
    rows: Sequence[PlannedRow],
    choices: Choices,
    made: Made,
) -> None:
    """Constraints with targets; poles of knees go along with the feet, all else with the hips.

    Targets of hands are turned as these are, whether or not hands turn with them.

    Without a target for the hips all stays in the world where planted feet shift them: what hangs on a chain
    cannot be its target.
    """
    evaluated = armature_object.evaluated_get(context.evaluated_depsgraph_get())
    front = poles.front_of(figure, evaluated)
    known = (each for each in armature_object.ccd_rig.constraints if each.tip == made.carrier and each.target)
    carrier: Target | int | None = next((Target(each.target, each.target_bone) for each in known), None)
    if carrier is None and made.carrier and not made.is_planted:
        carrier = Target(armature_object, made.carrier)
    wanted: list[NewTarget] = []
    users: list[tuple[str, str]] = []  # of each target: name of its constraint, and which of its fields it is
    for row in rows:
        added = targets.add_row(armature_object, row, choices.plant)
        made.rows.setdefault(row.group, []).append(added.name)
        if row.group is Group.HIPS:
            carrier = len(wanted)
        if row.group is Group.HANDS and not choices.turn_hands:
            added.rotation = "NONE"
        place_of_target = len(wanted)
        wanted.append(targets.new_target(evaluated, row, carrier if row.group in CARRIED else None))
        users.append((added.name, "target"))
        bends = row.bend and (choices.poles or poles.needs_pole(evaluated, row, front))
        place = poles.pole_place(evaluated, row, front) if bends else None
        if place is not None:
            goes_with_foot = row.role.part in KNEE_GOES_WITH_FOOT
            wanted.append(targets.new_pole(row, place, place_of_target if goes_with_foot else carrier))
            users.append((added.name, "pole"))
            made.poles += 1
    for target, (name, field) in zip(
        make_targets(context, armature_object, wanted, choices.control_bones), users, strict=True
    ):
        row = armature_object.ccd_rig.constraints[name]
        setattr(row, "target" if field == "target" else "pole_target", target.thing)
        setattr(row, f"{field}_bone", target.bone)


def _role_words(figure: Figure, name: str) -> str:
    return figure.roles[name].words() if name in figure.roles else ""


def _left(
    armature_object: bpy.types.Object, planned: Sequence[PlannedRow], choices: Choices, made: Made
) -> list[PlannedRow]:
    """The chosen rows whose bones have no constraint yet and are not keyed as the figure's carrier."""
    taken = {row.tip for row in armature_object.ccd_rig.constraints}
    rows = []
    for row in planned:
        if row.group not in choices.groups:
            continue
        if row.slides and (keyed := rig_state.keyed_at_or_above(armature_object, row.tip)):
            made.notes.append(f"'{keyed}' keeps its animation, so '{row.tip}' got no target")
        elif row.group in (Group.TAIL, Group.WINGS) and rig_state.is_turned(armature_object, row):
            made.notes.append(f"'{row.tip}' got no target: constraints of the rig turn its chain")
        elif row.tip in taken:
            made.notes.append(f"'{row.tip}' keeps the constraint that it has")
        else:
            rows.append(row)
    return rows
