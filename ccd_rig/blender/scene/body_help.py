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
    """The constraints with their `body_length`, `carrier` and `is_animated`.

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
        target = dependence.target_object(constraint)
        is_animated = target is not None and _is_animated(target, constraint.target_bone)
        carrier = "" if is_animated else _carrier(armature_object, constraints, constraint)
        length = count if count > alone else 0
        with_body.append(replace(constraint, body_length=length, carrier=carrier, is_animated=is_animated))
    return tuple(with_body)


def _carrier(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], constraint: Constraint
) -> str:
    """The name of the constraint whose target carries the target of `constraint`; empty for none."""
    target = dependence.target_object(constraint)
    if target is None:
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
    """Whether F-curves move an object, or one bone of it; keys of one value do not."""
    start = thing.pose.bones[bone].path_from_id() + "." if bone and bone in thing.pose.bones else ""
    return any(
        curve.data_path.startswith(start) and _varies(curve)
        for _, curves in channels.played(thing)
        for curve in curves
    )


def _varies(curve: bpy.types.FCurve) -> bool:
    """Whether an F-curve has different values."""
    points = curve.keyframe_points if len(curve.keyframe_points) else curve.sampled_points
    values = [point.co[1] for point in points]
    return bool(len(curve.modifiers)) or (bool(values) and max(values) - min(values) > STILL)


STILL = 1e-6
"""Difference of values by which keys do not move a target."""


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
