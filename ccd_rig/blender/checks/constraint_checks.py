# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of single constraints, their methods and planted bones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import bpy
from mathutils import Vector

from ...errors import CCDRigError, InvalidInput
from ...goals import PositionGoal
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...skeleton.rerooting import reroot
from ...solvers.closed_forms import turning_joints
from ..properties import constraint_list
from ..properties.body import Body, body_of
from ..properties.constraint_kinds import LABELS, SINGLE_PASS, kind_of
from ..properties.constraint_values import PLANT, Constraint, Problem
from ..properties.problems import suggestion, target_problems
from ..rig import clamps
from ..solve.constraint_goals import chain_joints
from ..solve.methods import panel_words
from ..solve.planting import support_chains


def method_skeleton_problems(
    skeleton: Skeleton, pose: Pose, constraints: Sequence[Constraint]
) -> Iterator[Problem]:
    """Yield the problems of chains with the methods of their constraints."""
    for constraint in constraints:
        yield from _window_problems(skeleton, constraint)
        if constraint.method == "CCD":
            continue
        what = f"Constraint '{constraint.name}': method {LABELS[constraint.method]}"
        least = 1 if constraint.method == "TRIANGLE" else 2
        goal = PositionGoal(constraint.tip, Vector(), chain_length=constraint.chain_length)
        try:
            turning = turning_joints(skeleton, pose, goal, what, least)
        except InvalidInput as error:
            yield Problem("ERROR", constraint.name, f"{panel_words(error)}; or choose Loop")
            continue
        for j in turning if constraint.method == "TRIANGLE" else turning[-2:]:
            joint = skeleton.joints[j]
            unused = [
                name
                for name, on in (
                    ("Stiffness", joint.stiffness > 0.0),
                    ("Comfort", joint.comfort is not None),
                    ("Slide", bool(joint.slides)),
                    ("Coupled Offset", bool(joint.coupled_offsets)),
                )
                if on
            ]
            if unused:
                effect = "does without" if constraint.method in SINGLE_PASS else "leaves to the loop, for its"
                message = f"{what} {effect} {' and '.join(unused)} of bone '{joint.name}'"
                yield Problem("WARNING", constraint.name, f"{message}: clear it, or choose Loop")
        if constraint.method in SINGLE_PASS:
            yield from _shared(skeleton, constraints, constraint, what)


def _window_problems(skeleton: Skeleton, constraint: Constraint) -> Iterator[Problem]:
    """Yield coupled offsets in chains with a reach window: their links change lengths."""
    if not constraint.kind.reaches or not constraint.use_position or constraint.max_extension >= 1.0:
        return
    top = chain_joints(skeleton, constraint)[-constraint.extension_joints :][:1]
    for j in skeleton.chain(constraint.tip):
        if top and j > top[0] and skeleton.joints[j].coupled_offsets:
            message = (
                f"Constraint '{constraint.name}': Max Extension is below 1, but bone "
                f"'{skeleton.joints[j].name}' has a coupled offset, so the chain's length changes"
            )
            yield Problem(
                "ERROR", constraint.name, f"{message}: set Max Extension to 1, or remove the offset"
            )


def _shared(
    skeleton: Skeleton, constraints: Sequence[Constraint], constraint: Constraint, what: str
) -> Iterator[Problem]:
    joints = set(chain_joints(skeleton, constraint))
    for other in constraints:
        common = joints & set(chain_joints(skeleton, other))
        # A bone is unplanted before a constraint reaches with it.
        if other.name != constraint.name and common and not other.kind.plants:
            bone = skeleton.joints[min(common)].name
            message = f"{what} poses its bones alone, but '{other.name}' turns bone '{bone}' too"
            yield Problem("ERROR", constraint.name, f"{message}: shorten a chain, or choose Loop")


def body_problems(
    armature_object: bpy.types.Object, chosen: Sequence[Any], figure: Body
) -> Iterator[Problem]:
    """Yield what contradicts a body that keeps its animation."""
    stays = f"bone '{figure.bone}', which keeps its animation"
    for row in chosen:
        if row.tip == figure.bone:
            does = "plants" if row.kind == PLANT else "moves"
            message = f"Constraint '{row.name}' {does} {stays}: disable it, or set Body to Follow Feet"
            yield Problem("ERROR", row.name, message)
        elif row.kind != PLANT:
            chain = constraint_list.chain(armature_object, row.tip, row.chain_length)
            if any(bone.name == figure.bone for bone in chain):
                message = f"Constraint '{row.name}' goes up to {stays}: only bones below it turn"
                yield Problem("WARNING", row.name, f"{message}; set Body to Follow Feet to let it turn")
    bone = armature_object.pose.bones[figure.bone]
    if figure.walks_on:
        does = f"Bone '{bone.name}' walks on over planted bones, but"
        if bone.parent is not None and bone.bone.use_connect:
            message = f"{does} it is connected to its parent: switch off Connected in Edit Mode"
            yield Problem("ERROR", bone.name, message)
        if any(bone.lock_location):
            message = f"{does} its location is locked: unlock it, or set Body to Keep Animation"
            yield Problem("ERROR", bone.name, message)
    for constraint in clamps.user_constraints(bone):
        if not constraint.mute and constraint.influence > 0.0:
            message = (
                f"Bone '{bone.name}' keeps its animation, but what Blender's constraint "
                f"'{constraint.name}' makes of it is not seen: bake it to keys and mute it, "
                "or set Body to Follow Feet"
            )
            yield Problem("ERROR", bone.name, message)


def plant_skeleton_problems(
    skeleton: Skeleton, constraints: Sequence[Constraint], keeps_body: bool
) -> Iterator[Problem]:
    """Yield the problems of planted bones together."""
    planted = [constraint for constraint in constraints if constraint.kind.plants]
    if not planted:
        return
    try:
        support_chains(skeleton, constraints)
    except CCDRigError as error:
        yield Problem("ERROR", planted[0].name, str(error))
        return
    for coupling in () if keeps_body else skeleton.couplings[:1]:
        message = (
            f"Bone '{skeleton.joints[coupling.joint].name}' has a coupled offset, which no bone of a figure "
            "that follows its planted bones may have: remove it, or set Body to Keep Animation"
        )
        yield Problem("ERROR", planted[0].name, message)
    for constraint in () if keeps_body or skeleton.couplings else planted:
        try:
            reroot(skeleton, Pose.rest(skeleton), constraint.tip)
        except CCDRigError as error:
            yield Problem("ERROR", constraint.name, f"Constraint '{constraint.name}': {error}")


def root_bones(armature_object: bpy.types.Object, chosen: Sequence[Any]) -> list[bpy.types.PoseBone]:
    """Root bones at which the chains of planted bones end, without repetition."""
    bones = [
        constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)[-1]
        for constraint in chosen
        if constraint.kind == PLANT
    ]
    return list(dict.fromkeys(bones))


def constraint_problems(
    armature_object: bpy.types.Object, constraint: Any, scene: bpy.types.Scene, figure: Body | None = None
) -> Iterator[Problem]:
    """Yield the problems of a single constraint. Cheap enough for every redraw of the panel.

    Args:
        armature_object: of the constraint.
        constraint: as it is stored.
        scene: in which it is solved.
        figure: treatment of the body; None: as the armature's setting has it.
    """
    where = f"Constraint '{constraint.name}'"
    bones = armature_object.pose.bones
    if not constraint.tip:
        yield Problem("ERROR", constraint.name, f"{where} has no bone: choose the bone to move")
    elif constraint.tip not in bones:
        rig = f"armature '{armature_object.name}'"
        near = suggestion(constraint.tip, bones.keys())
        message = f"{where}: bone '{constraint.tip}' is not in {rig} (renamed or deleted?){near}"
        yield Problem("ERROR", constraint.name, message)
    kind = kind_of(constraint)
    if constraint.target is None and kind.needs_target:
        yield Problem("ERROR", constraint.name, f"{where} has no target: choose the object to reach")
    elif constraint.target is not None:
        yield from target_problems(
            armature_object, constraint, scene, "target", constraint.target, constraint.target_bone
        )
    if not (math.isfinite(constraint.weight) and constraint.weight > 0.0):
        yield Problem("ERROR", constraint.name, f"{where}: weight is {constraint.weight:g}: set it above 0")
    if not math.isfinite(constraint.influence):
        yield Problem("ERROR", constraint.name, f"{where}: influence is not a number: set it to 0 to 1")
    if constraint.influence == 0.0 and not constraint_list.is_animated(
        armature_object, constraint, "influence"
    ):
        yield Problem("WARNING", constraint.name, f"{where}: influence is 0, so nothing moves: raise it")
    if kind.plants:
        figure = figure or body_of(armature_object)
    yield from kind.problems(armature_object, constraint, scene, figure is not None and figure.keeps)
