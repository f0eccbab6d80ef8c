# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones of the body that help a chain that cannot reach its target: spine, clavicle, hips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import bpy

from ..keys import channels
from ..properties import constraint_list
from ..properties.constraint_values import Constraint
from ..rig import clamps
from . import dependence


def helped(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], helps: bool | None = None
) -> tuple[Constraint, ...]:
    """The constraints with their `body_length` and `carrier`.

    The body goes up from a chain to the bone that carries all chains. It ends below a bone that something
    else moves: a constraint of the rig, or a target that hangs on it. Planted bones decide the motion of the
    body, so it does not help then.

    Args:
        armature_object: carries the constraints.
        constraints: to solve.
        helps: whether the body helps; None for the armature's own setting.
    """
    helps = armature_object.ccd_rig.body_helps if helps is None else helps
    if not helps or any(each.kind.plants for each in constraints):
        return tuple(constraints)
    whole = [constraint_list.chain(armature_object, each.tip) for each in constraints]
    tops = [chain[: each.chain_length or None][-1:] for each, chain in zip(constraints, whole, strict=True)]
    carriers = [[bone.name for bone in (top, *top.parent_recursive)] for (top,) in filter(None, tops)]
    common = [name for name in carriers[0] if all(name in names for names in carriers)] if carriers else []
    end = common[0] if common else ""
    with_body = []
    for constraint, chain in zip(constraints, whole, strict=True):
        alone = len(chain[: constraint.chain_length or None])
        count = alone
        above = [bone.name for bone in chain[alone:]]
        if constraint.kind.reaches and constraint.use_position and end in above:
            for bone in chain[alone : alone + above.index(end) + 1]:
                if not _is_free(armature_object, constraints, bone):
                    break
                count += 1
        carrier = _carrier(armature_object, constraints, constraint)
        with_body.append(replace(constraint, body_length=count if count > alone else 0, carrier=carrier))
    return tuple(with_body)


def _carrier(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], constraint: Constraint
) -> str:
    """The name of the constraint whose target carries the target of `constraint`; empty for none.

    An animated target is not carried.
    """
    target = dependence.target_object(constraint)
    if target is None or _is_animated(target, constraint.target_bone):
        return ""
    place = target, constraint.target_bone
    above = {(each.thing, each.bone) for each in dependence.movers(*place, armature_object)} - {place}
    for other in constraints:
        thing = dependence.target_object(other)
        if other.name == constraint.name or thing is None or not other.kind.reaches:
            continue
        if thing == armature_object and not other.target_bone:
            continue
        if (thing, other.target_bone) in above:
            return other.name
    return ""


def _is_animated(thing: bpy.types.Object, bone: str) -> bool:
    """Whether F-curves move an object, or one bone of it."""
    start = thing.pose.bones[bone].path_from_id() + "." if bone and bone in thing.pose.bones else ""
    paths = [curve.data_path for _, curves in channels.played(thing) for curve in curves]
    return any(path.startswith(start) for path in paths) if bone else bool(paths)


def _is_free(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], bone: bpy.types.PoseBone
) -> bool:
    """Whether only its channels move a bone, and no target hangs on it."""
    if any(not each.mute and each.influence > 0.0 for each in clamps.user_constraints(bone)):
        return False
    names = {bone.name}
    return not any(
        dependence.target_depends_on_chain(armature_object, each, names)
        or dependence.pole_depends_on_chain(armature_object, each, names)
        for each in constraints
    )
