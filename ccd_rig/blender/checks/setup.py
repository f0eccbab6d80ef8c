# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of a set-up and the bones of its chains, see `Problem`."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ...errors import CCDRigError, RigError
from ...limits.shapes import contains
from ...solvers.stepping import Work, result_of
from ..keys import channels
from ..keys.writer import Destination, obstacles
from ..properties import body, constraint_list, pose_library, solver_settings
from ..properties.constraint_kinds import kind_of, pole_goal, value_of
from ..properties.constraint_values import PLANT, SAMPLED, Constraint, Problem
from ..properties.names import named
from ..properties.problems import in_scene, is_finite, suggestion
from ..rig import armature, clamps, rotation_modes
from ..scene import body_help, dependence
from ..scene.evaluation import rig_layout
from . import constraint_checks
from .constraint_checks import constraint_problems

ROUNDING = 1e-6  # radians: limits are stored as float32


def _chain_problems(
    armature_object: bpy.types.Object,
    chosen: Sequence[Any],
    layout: armature.RigLayout,
    reading: armature.RigReading,
    destination: Destination | None,
    fixed: str,
) -> Iterator[Problem | None]:
    """Yield the problems of chains, and None after each constraint and bone."""
    chains = {row.name: constraint_list.chain(armature_object, row.tip, row.chain_length) for row in chosen}
    bones = list(dict.fromkeys(bone for chain in chains.values() for bone in reversed(chain)))
    moved, settings, carried = {bone.name for bone in bones}, layout.joint_settings, layout.masses
    locked = {joint.name for joint in reading.skeleton.joints if joint.locked}
    constraints = body.settled([value_of(row) for row in chosen], bool(fixed))
    yield from constraint_checks.plant_skeleton_problems(reading.skeleton, constraints, bool(fixed))
    yield from constraint_checks.method_skeleton_problems(reading.skeleton, reading.pose, constraints)
    root_bones = [
        bone for bone in constraint_checks.root_bones(armature_object, chosen) if bone.name != fixed
    ]
    locked -= {bone.name for bone in root_bones}
    turning = moved - locked
    for row in chosen:
        yield None
        trail = dependence.target_depends_on_chain(armature_object, row, turning)
        if trail is not None:
            message = (
                f"Constraint '{row.name}': its target moves with the chain that should reach it ({trail})"
            )
            yield Problem("ERROR", row.name, f"{message}: choose another target, or unparent it")
        trail = dependence.pole_depends_on_chain(armature_object, row, turning)
        if trail is not None:
            message = (
                f"Constraint '{row.name}': its pole moves with the chain that should bend to it ({trail})"
            )
            yield Problem("ERROR", row.name, f"{message}: choose another pole target, or unparent it")
        if all(bone.name in locked for bone in chains[row.name]):
            message = f"Constraint '{row.name}': no bone of its chain can turn"
            yield Problem("WARNING", row.name, f"{message}: lower a stiffness, or unlock a rotation")
    for constraint in constraints:
        if constraint.pole_target:
            try:
                pole_goal(reading.skeleton, constraint, Vector())
            except RigError as error:
                yield Problem("ERROR", constraint.name, str(error))
    for bone in bones:
        yield None
        if bone.name in locked:  # its rotation is that of its channels, where its limit is not applied
            rotation = reading.pose.rotations[reading.skeleton.index(bone.name)]
            limit = settings[bone.name].get("limit")
            if limit is not None and not contains(limit, rotation, ROUNDING):
                message = f"Bone '{bone.name}': it cannot turn, and its pose is outside its limit"
                yield Problem("WARNING", bone.name, f"{message}: let it turn, or pose it inside the limit")
        else:
            yield from _bone_problems(bone, settings[bone.name])
    yield from _unseen_problems([bone for bone in bones if bone.name in locked])
    for name in sorted(carried.keys() - moved):
        yield from _carried_problems(armature_object.pose.bones[name])
    yield from ik_problems(armature_object, moved)
    bones = [bone for bone in bones if bone.name != fixed]
    followers = [armature_object.pose.bones[name] for name in settings if name not in moved]
    for bone in followers:
        yield from _bone_problems(bone, {"limit": None})
    located = [
        bone
        for bone in bones
        if settings[bone.name]["slides"] or settings[bone.name]["coupled_offsets"] or bone in root_bones
    ]
    yield from _key_problems(armature_object, bones, located + followers, destination)


def _unseen_problems(bones: Sequence[bpy.types.PoseBone]) -> Iterator[Problem]:
    """Yield a single warning about locked bones that Blender's constraints move."""
    unseen = [
        (bone.name, constraint.name)
        for bone in bones
        for constraint in clamps.user_constraints(bone)
        if not constraint.mute and constraint.influence > 0.0 and constraint.type not in ("IK", "SPLINE_IK")
    ]
    if len(unseen) == 1:
        ((bone, constraint),) = unseen
        message = f"Bone '{bone}': the solve does not see where Blender's constraint '{constraint}'"
        yield Problem("WARNING", bone, f"{message} brings it: bake the constraint to keys")
    elif unseen:
        names = named(list(dict.fromkeys(name for name, _ in unseen)))
        message = f"Bones {names}: the solve does not see where Blender's constraints bring them"
        yield Problem("WARNING", unseen[0][0], f"{message}: bake these constraints to keys")


def _carried_problems(bone: bpy.types.PoseBone) -> Iterator[Problem]:
    """Yield Blender's constraints of a bone that only has mass: its pose is read from its channels."""
    for constraint in clamps.user_constraints(bone):
        if not constraint.mute and constraint.influence > 0.0:
            message = (
                f"Bone '{bone.name}': balance does not see where Blender's constraint '{constraint.name}'"
            )
            yield Problem("WARNING", bone.name, f"{message} puts its mass: bake the constraint to keys first")


def _bone_problems(bone: bpy.types.PoseBone, settings: dict[str, Any]) -> Iterator[Problem]:
    limit = settings["limit"]
    if limit is not None and not contains(limit, Quaternion(), ROUNDING):
        message = (
            f"Bone '{bone.name}': its rest pose is outside its limit, so it turns as soon as it is solved"
        )
        yield Problem("WARNING", bone.name, f"{message}: let the limit include 0, or keep it on purpose")
    for constraint in clamps.user_constraints(bone):
        if not constraint.mute and constraint.influence > 0.0 and constraint.type not in ("IK", "SPLINE_IK"):
            message = (
                f"Bone '{bone.name}': Blender's constraint '{constraint.name}' acts on top of the solved pose"
            )
            yield Problem("WARNING", bone.name, f"{message}: mute it")


def ik_problems(armature_object: bpy.types.Object, moved: set[str]) -> Iterator[Problem]:
    """Yield Blender's IK constraints that turn bones of the chains, from whatever bone."""
    for bone in armature_object.pose.bones:
        for constraint in bone.constraints:
            if constraint.type not in ("IK", "SPLINE_IK") or constraint.mute or constraint.influence == 0.0:
                continue
            turned = constraint_list.chain(armature_object, bone.name, constraint.chain_count)
            names = [other.name for other in turned if other.name in moved]
            if names:
                message = (
                    f"Bone '{bone.name}': Blender's constraint '{constraint.name}' turns bone '{names[0]}'"
                )
                yield Problem("WARNING", bone.name, f"{message} on top of the solved pose: mute it")


def _key_problems(
    armature_object: bpy.types.Object,
    bones: Iterable[bpy.types.PoseBone],
    located: Iterable[bpy.types.PoseBone],
    destination: Destination | None,
) -> Iterator[Problem]:
    """Yield obstacles to keys of the bones' rotations, and of the locations of `located`."""
    pairs = [(bone.name, rotation_modes.rotation_channel(bone)[0]) for bone in bones]
    pairs += [(bone.name, "location") for bone in located]
    shared = channels.shared_users(armature_object) if destination is Destination.CURRENT_ACTION else ()
    if shared:
        others = ", ".join(f"'{name}'" for name in shared)
        message = f"Armature '{armature_object.name}': its action moves {others} too, which will move alike"
        yield Problem("WARNING", armature_object.name, f"{message}: choose New Action to keep them apart")
    always = obstacles(armature_object, pairs, destination or Destination.NEW_ACTION)
    for message in always:
        yield Problem("ERROR", armature_object.name, message)
    if destination is None:
        for message in obstacles(armature_object, pairs, Destination.CURRENT_ACTION):
            if message not in always:
                yield Problem("WARNING", armature_object.name, message)


FLAT = 1e-6  # a scale below this leaves no direction to turn in
UNIFORM = 1e-3
"""Relative difference of lengths, and cosine between axes, that an armature object's scale may have."""


class Ready(NamedTuple):
    """Checked set-up, ready to be solved.

    Attributes:
        constraints: the constraints to solve.
        layout: of their bones.
        body: treatment of the body; None if no bone is planted.
        warnings: about the set-up.
    """

    constraints: tuple[Constraint, ...]
    layout: armature.RigLayout
    body: body.Body | None
    warnings: tuple[Problem, ...]


def require(
    armature_object: bpy.types.Object | None,
    scene: bpy.types.Scene,
    names: Sequence[str] = (),
    destination: Destination = Destination.NEW_ACTION,
    body_choice: str = "",
    body_helps: bool | None = None,
) -> Work[Ready]:
    """Check the constraints to solve: the named ones, or all enabled ones. An item per constraint and bone.

    Args:
        armature_object, scene, names, body_choice: as of `problems`.
        destination: of the keys.
        body_helps: whether the body helps; None: the armature's setting.

    Raises:
        RigError: with the first error, which keeps them from being solved, or keyed at the destination.
    """
    problems, layout = yield from _check(armature_object, scene, names, destination, body_choice, body_helps)
    for problem in problems:
        if problem.severity == "ERROR":
            raise RigError(problem.message)
    assert layout is not None  # without a layout there is an error
    yield
    chosen = tuple(map(value_of, _chosen(armature_object, names)))
    figure = body.body_of(armature_object, chosen, body_choice)
    keeps = figure is not None and figure.keeps
    chosen = body_help.helped(armature_object, body.settled(chosen, keeps), body_helps)
    return Ready(chosen, layout, figure, problems)


def problems(
    armature_object: bpy.types.Object | None,
    scene: bpy.types.Scene,
    names: Sequence[str] = (),
    destination: Destination | None = None,
    body_choice: str = "",
) -> tuple[Problem, ...]:
    """List the problems of a set-up, errors first.

    Args:
        armature_object: original object (not evaluated).
        scene: the scene in which it is solved.
        names: of the constraints to check; empty for all enabled ones.
        destination: of the keys; None: obstacles to keys in the present action are warnings.
        body_choice: treatment of the body, `BakeSettings.body`.
    """
    return result_of(_check(armature_object, scene, names, destination, body_choice))[0]


def _check(
    armature_object: bpy.types.Object | None,
    scene: bpy.types.Scene,
    names: Sequence[str],
    destination: Destination | None,
    body_choice: str,
    body_helps: bool | None = None,
) -> Work[tuple[tuple[Problem, ...], armature.RigLayout | None]]:
    """Return the problems, and the bones' layout if it can be made; an item per constraint and bone."""
    if armature_object is None or armature_object.type != "ARMATURE":
        what = "nothing is" if armature_object is None else f"'{armature_object.name}' is not an armature and"
        where = "" if armature_object is None else armature_object.name
        problem = Problem("ERROR", where, f"No armature: {what} selected; select an armature object")
        return (problem,), None
    layout: armature.RigLayout | None = None
    all_problems = list(_object_problems(armature_object, scene))
    all_problems += _choice_problems(armature_object, names)
    if not all_problems:
        chosen = _chosen(armature_object, names)
        valid = []
        figure = body.body_of(armature_object, chosen, body_choice)
        for row in chosen:
            row_problems = list(constraint_problems(armature_object, row, scene, figure))
            all_problems += row_problems
            if not any(problem.severity == "ERROR" for problem in row_problems):
                valid.append(row)
            yield
        if uneven := uneven_scale(armature_object.matrix_world, armature_object.name):
            all_problems.append(Problem("WARNING", armature_object.name, sentence(uneven)))
        try:
            dependence.require_evaluable(scene, armature_object, valid)
        except RigError as error:
            all_problems.append(Problem("ERROR", armature_object.name, str(error)))
        yield
        all_problems += _pair_problems(chosen)
        all_problems += _keyed_problems(armature_object, chosen)
        all_problems += _body_problems(armature_object, chosen, figure, body_choice)
        all_problems += _library_problems(armature_object)
        try:
            fixed = figure.bone if figure is not None and figure.keeps else ""
            yield
            values = [value_of(row) for row in valid]
            values = list(body_help.helped(armature_object, values, body_helps))
            layout = rig_layout(armature_object, armature_object, values, fixed)
            yield
            # Errors of the reading: scale, shear, locks, and bones that are no rigid joints.
            reading = layout.read(armature_object)
            solver_settings.solver_settings(armature_object)
        except CCDRigError as error:
            all_problems.append(Problem("ERROR", armature_object.name, sentence(str(error))))
        else:
            for chain_problem in _chain_problems(armature_object, valid, layout, reading, destination, fixed):
                if chain_problem is None:
                    yield
                else:
                    all_problems.append(chain_problem)
    return tuple(sorted(all_problems, key=lambda problem: problem.severity)), layout


def _keyed_problems(armature_object: bpy.types.Object, chosen: Sequence[Any]) -> Iterator[Problem]:
    """Yield keyed or driven settings that a bake reads at the present frame alone."""
    for row, setting in constraint_list.moved_settings(armature_object, chosen):
        if setting.identifier != "influence" and setting.identifier not in SAMPLED:
            label = setting.name
            message = f"Constraint '{row.name}': a bake takes '{label}' as it is at the present frame"
            yield Problem("WARNING", row.name, f"{message}: remove its keys, or bake ranges one by one")


def _chosen(armature_object: Any, names: Sequence[str]) -> list[Any]:
    """Stored constraints of these names, or all enabled ones."""
    return [r for r in armature_object.ccd_rig.constraints if (r.name in names if names else r.enabled)]


# The object -------------------------------------------------------------------------------------------------


def _object_problems(armature_object: bpy.types.Object, scene: bpy.types.Scene) -> Iterator[Problem]:
    name = armature_object.name
    if armature_object.mode == "EDIT":
        yield Problem("ERROR", name, f"Armature '{name}' is in Edit Mode: go to Pose Mode")
    if not in_scene(armature_object, scene):
        yield Problem(
            "ERROR", name, f"Armature '{name}' is not in scene '{scene.name}': link it to a collection there"
        )
    if not is_finite(armature_object.matrix_world):
        yield Problem(
            "ERROR", name, f"Armature '{name}' has a place that is not a number: clear its transform"
        )
    elif min(abs(scale) for scale in armature_object.matrix_world.to_scale()) < FLAT:
        yield Problem("ERROR", name, f"Armature '{name}' has a scale of 0: give it another scale")


def uneven_scale(matrix: Matrix, name: str) -> str:
    """Return the message about an armature object with shear or uneven scale; empty if it has neither."""
    axes = np.array(matrix.to_3x3())
    sizes = np.linalg.norm(axes, axis=0)
    unit = axes / sizes
    if sizes.max() <= (1.0 + UNIFORM) * sizes.min() and np.abs(unit.T @ unit - np.eye(3)).max() <= UNIFORM:
        return ""
    return f"armature '{name}' is scaled unevenly by its object: apply its scale (Ctrl A)"


def _choice_problems(armature_object: bpy.types.Object, names: Sequence[str]) -> Iterator[Problem]:
    constraints = armature_object.ccd_rig.constraints
    known = [row.name for row in constraints]
    if not len(constraints):
        message = (
            f"Armature '{armature_object.name}' has no CCD constraint: select the bone to move and add one"
        )
        yield Problem("ERROR", armature_object.name, message)
    elif not names and not any(row.enabled for row in constraints):
        message = f"All constraints of armature '{armature_object.name}' are disabled: enable one"
        yield Problem("ERROR", armature_object.name, message)
    for name in names:
        if name not in known:
            message = f"Armature '{armature_object.name}' has no constraint '{name}'{suggestion(name, known)}"
            yield Problem("ERROR", name, message)
        elif not constraints[known.index(name)].enabled:
            yield Problem("ERROR", name, f"Constraint '{name}' is disabled: enable it, or leave it out")
    for name in sorted({name for name in known if known.count(name) > 1}):
        # Blender runs no update function where a file is written by a script that goes past the properties.
        yield Problem("ERROR", name, f"Two constraints are called '{name}': rename one of them")


def _pair_problems(chosen: Iterable[Any]) -> Iterator[Problem]:
    alike: dict[str, list[Any]] = defaultdict(list)  # constraints that may contradict each other
    for row in chosen:
        alike[kind_of(row).subject(row)].append(row)
    for one, other in (pair for rows in alike.values() for pair in combinations(rows, 2)):
        if one.kind == other.kind and one.priority == other.priority:  # else their priorities decide
            yield from kind_of(one).pair_problems(one, other)


def _body_problems(
    armature_object: bpy.types.Object, chosen: Sequence[Any], figure: body.Body | None, body_choice: str
) -> Iterator[Problem]:
    """Yield what contradicts the chosen treatment of the body."""
    if body_choice and not any(row.kind == PLANT for row in chosen):
        message = (
            f"Body is {body_choice}, but no constraint of armature '{armature_object.name}' plants a bone"
        )
        yield Problem("ERROR", armature_object.name, f"{message}: leave Body out, or plant one")
    if figure is not None and figure.keeps:
        yield from constraint_checks.body_problems(armature_object, chosen, figure)


def _library_problems(armature_object: bpy.types.Object) -> Iterator[Problem]:
    """Yield poses of other bones: errors only if solves restart from the library's poses."""
    severity = "ERROR" if armature_object.ccd_rig.solver.restarts > 0 else "WARNING"
    try:
        entries = pose_library.entries(armature_object)
    except RigError as error:
        yield Problem(severity, armature_object.name, sentence(str(error)))
        return
    for entry in entries:
        message = pose_library.missing_words(armature_object, entry)
        if message:
            is_lost = len(pose_library.missing(armature_object, entry)) == len(entry.rotations)
            message = f"{message} (renamed or deleted?): remove the pose, or capture it again"
            yield Problem(severity if is_lost else "WARNING", entry.name, message)


def sentence(words: str) -> str:
    """Capitalise the first letter, unlike `str.capitalize` no other."""
    return words[:1].upper() + words[1:]
