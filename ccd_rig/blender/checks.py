# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of a set-up and the bones of its chains, see `Problem`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector

from ..errors import CCDRigError, InvalidInput, RigError
from ..goals import PositionGoal
from ..limits.shapes import contains
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose
from ..skeleton.rerooting import reroot
from ..solvers.closed_forms import turning_joints
from ..solvers.stepping import Work, result_of
from .keys import channels
from .keys.destination import Destination
from .keys.writer import obstacles, pose_obstacles
from .properties import body, constraint_list, pose_library, solver_settings
from .properties.body import Body, body_of
from .properties.constraint_kinds import LABELS, SINGLE_PASS, kind_of, number_problems, pole_goal, value_of
from .properties.constraint_values import PLANT, SAMPLED, Constraint, Problem
from .properties.names import named, sentence
from .properties.problems import in_scene, is_finite, suggestion, target_problems
from .rig import armature, bone_space, clamps, rotation_modes
from .scene import dependence
from .scene.evaluation import read_bones, rig_layout
from .scene.isolation import isolated_scene, set_frame
from .solve.methods import chain_joints, panel_words
from .solve.planting import support_chains

ROUNDING = 1e-6  # radians: limits are stored as float32
UNMOVED = 1e-4
"""Part of its size, or of its distance from the armature's origin, by which constraints may shift a bone.

Rounding of Copy Scale in Rigify's animals is 1.4e-5."""


def _chain_problems(
    armature_object: bpy.types.Object,
    chosen: Sequence[Any],
    values: Sequence[Constraint],
    layout: armature.RigLayout,
    reading: armature.RigReading,
    destination: Destination | None,
    fixed: str,
    keyed: bool,
) -> Iterator[Problem | None]:
    """Yield the problems of chains, and None after each constraint and bone; `values` are of the chosen."""
    chains = {row.name: constraint_list.chain_of(armature_object, row) for row in chosen}
    bones = list(dict.fromkeys(bone for chain in chains.values() for bone in reversed(chain)))
    moved, settings, carried = {bone.name for bone in bones}, layout.joint_settings, layout.masses
    locked = {joint.name for joint in reading.skeleton.joints if joint.locked}
    constraints = body.with_body_mode(values, bool(fixed))
    yield from plant_skeleton_problems(reading.skeleton, constraints, bool(fixed))
    yield from method_skeleton_problems(reading.skeleton, reading.pose, constraints)
    # Bones at which the chains of planted ones end.
    ends = [
        chains[row.name][-1] for row in chosen if row.kind == PLANT and chains[row.name][-1].name != fixed
    ]
    locked -= {bone.name for bone in ends}
    turning, lookups = moved - locked, dependence.Lookups()
    for row in chosen:
        yield None
        if trail := dependence.target_depends_on_chain(armature_object, row, turning, lookups):
            message = (
                f"Constraint '{row.name}': its target moves with the chain that should reach it ({trail})"
            )
            yield Problem("ERROR", row.name, f"{message}: choose another target, or unparent it")
        if trail := dependence.target_depends_on_chain(armature_object, row, turning, lookups, "pole"):
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
    followers = [armature_object.pose.bones[name] for name in settings if name not in moved]
    yield from _unseen_problems([bone for bone in (*bones, *followers) if bone.name in locked])
    yield from _mass_problems(armature_object, carried, set(layout.names) - moved if carried else set())
    yield from ik_problems(armature_object, moved)
    bones = [bone for bone in bones if bone.name != fixed]
    for bone in followers:
        if bone.name not in locked:
            yield from _bone_problems(bone, {"limit": None})
    located = [
        bone
        for bone in bones
        if settings[bone.name]["slides"] or settings[bone.name]["coupled_offsets"] or bone in ends
    ]
    pairs = [(bone.name, rotation_modes.rotation_channel(bone)[0]) for bone in bones]
    pairs += [(bone.name, "location") for bone in located + followers]
    if keyed:
        yield from _key_problems(armature_object, pairs, destination)
    else:
        for words in pose_obstacles(armature_object, pairs):
            yield Problem("ERROR", armature_object.name, words)


def _unseen_problems(bones: Sequence[bpy.types.PoseBone]) -> Iterator[Problem]:
    """Yield a single warning about locked bones that Blender's constraints move from where channels say."""
    moved = [bone for bone in bones if any(_placing(bone)) and not _is_at_channels(bone)]
    unseen = [(bone.name, constraint.name) for bone in moved for constraint in _placing(bone)]
    if len(unseen) == 1:
        ((bone, constraint),) = unseen
        message = f"Bone '{bone}': the solve does not see where Blender's constraint '{constraint}'"
        yield Problem("WARNING", bone, f"{message} brings it: bake the constraint to keys")
    elif unseen:
        names = named(list(dict.fromkeys(name for name, _ in unseen)))
        message = f"Bones {names}: the solve does not see where Blender's constraints bring them"
        yield Problem("WARNING", unseen[0][0], f"{message}: bake these constraints to keys")


def _placing(bone: bpy.types.PoseBone) -> Iterator[Any]:
    """Constraints of a bone that move it alone; see `ik_problems` for the rest."""
    return (each for each in clamps.acting_constraints(bone) if each.type not in ("IK", "SPLINE_IK"))


def _is_at_channels(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone is where its channels bring it, as those of Rigify's mechanism are."""
    channels_alone, shown = bone_space.with_channels(bone, bone.matrix_basis), bone.matrix
    size = max(bone.bone.length, *map(abs, shown.translation))
    return all(  # false for NaN
        abs(one - other) <= UNMOVED * (size if column == 3 else 1.0)
        for row, reference in zip(shown, channels_alone, strict=True)
        for column, (one, other) in enumerate(zip(row, reference, strict=True))
    )


def _bone_problems(bone: bpy.types.PoseBone, settings: dict[str, Any]) -> Iterator[Problem]:
    limit = settings["limit"]
    if limit is not None and not contains(limit, Quaternion(), ROUNDING):
        message = (
            f"Bone '{bone.name}': its rest pose is outside its limit, so it turns as soon as it is solved"
        )
        yield Problem("WARNING", bone.name, f"{message}: let the limit include 0, or keep it on purpose")
    for constraint in _placing(bone):
        message = (
            f"Bone '{bone.name}': Blender's constraint '{constraint.name}' acts on top of the solved pose"
        )
        yield Problem("WARNING", bone.name, f"{message}: mute it")


def _mass_problems(
    armature_object: bpy.types.Object, carried: Collection[str], unposed: Collection[str]
) -> Iterator[Problem]:
    """Yield Blender's constraints that move masses where balance does not look: it reads bones' channels.

    Args:
        carried: names of the bones with mass.
        unposed: names of the bones that no constraint of the armature's list turns.
    """
    bones = armature_object.pose.bones
    loads = {name: name for name in sorted(carried) if name in unposed}  # by bone, a mass that goes with it
    for name in sorted(carried):
        for bone in bones[name].parent_recursive:
            if bone.name in unposed:
                loads.setdefault(bone.name, name)
    elsewhere: list[tuple[str, bpy.types.PoseBone, Any]] = []
    for name, heavy in sorted(loads.items()):
        bone = bones[name]
        if heavy != name:
            elsewhere += ((heavy, bone, each) for each in _placing(bone) if not _is_at_channels(bone))
            continue
        for constraint in clamps.acting_constraints(bone):
            message = (
                f"Bone '{bone.name}': balance does not see where Blender's constraint '{constraint.name}'"
            )
            yield Problem("WARNING", name, f"{message} puts its mass: bake the constraint to keys first")
    for bone, constraint, turned in _acting_iks(armature_object):
        heavy = next((loads[name] for name in turned if name in loads), "")
        if heavy and loads.get(bone.name) != bone.name:
            elsewhere.append((heavy, bone, constraint))
    for heavy, bone, constraint in elsewhere:
        message = (
            f"Bone '{heavy}': balance does not see where Blender's constraint '{constraint.name}' "
            f"of bone '{bone.name}' brings its mass: bake the constraint to keys first"
        )
        yield Problem("WARNING", heavy, message)


def ik_problems(armature_object: bpy.types.Object, moved: set[str]) -> Iterator[Problem]:
    """Yield Blender's IK constraints that turn bones of the chains, from whatever bone."""
    for bone, constraint, turned in _acting_iks(armature_object):
        names = [name for name in turned if name in moved]
        if names:
            message = f"Bone '{bone.name}': Blender's constraint '{constraint.name}' turns bone '{names[0]}'"
            yield Problem("WARNING", bone.name, f"{message} on top of the solved pose: mute it")


def _acting_iks(
    armature_object: bpy.types.Object,
) -> Iterator[tuple[bpy.types.PoseBone, Any, list[str]]]:
    """Yield Blender's IK constraints in force: their bone, and the names of the bones that they turn."""
    for bone in armature_object.pose.bones:
        for constraint in clamps.acting_constraints(bone):
            if constraint.type in ("IK", "SPLINE_IK"):
                turned = constraint_list.chain(armature_object, bone.name, constraint.chain_count)
                yield bone, constraint, [each.name for each in turned]


def _key_problems(
    armature_object: bpy.types.Object,
    pairs: Sequence[tuple[str, str]],
    destination: Destination | None,
) -> Iterator[Problem]:
    """Yield obstacles to keys of channels, pairs of bone and channel."""
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
    """Checked set-up, ready to be solved."""

    constraints: tuple[Constraint, ...]  # the constraints to solve
    layout: armature.RigLayout  # of their bones
    body: body.Body | None  # treatment of the body; None if no bone is planted
    warnings: tuple[Problem, ...]  # about the set-up


def require(
    armature_object: bpy.types.Object | None,
    scene: bpy.types.Scene,
    names: Sequence[str] = (),
    destination: Destination = Destination.NEW_ACTION,
    body_choice: str = "",
    body_helps: bool | None = None,
    first_frame: float | None = None,
    keyed: bool = True,
) -> Work[Ready]:
    """Check the constraints to solve: the named ones, or all enabled ones. An item per constraint and bone.

    Args:
        armature_object, scene, names: as of `problems`.
        body_choice: treatment of the body, `BakeSettings.body`.
        body_helps: whether the body helps; None: the armature's setting.
        first_frame: of those to solve; None: the present one.
        keyed: whether the pose gets keys, and not only shows.

    Raises:
        RigError: with the first error, which keeps them from being solved, or keyed at the destination.
    """
    problems, layout, chosen = yield from _check(
        armature_object, scene, names, destination, body_choice, body_helps, first_frame, keyed
    )
    for problem in problems:
        if problem.severity == "ERROR":
            raise RigError(problem.message)
    assert layout is not None  # without a layout there is an error
    yield
    figure = body.body_of(armature_object, chosen, body_choice)
    keeps = figure is not None and figure.keeps
    chosen = helped(armature_object, body.with_body_mode(chosen, keeps), body_helps)
    return Ready(chosen, layout, figure, problems)


def problems(
    armature_object: bpy.types.Object | None,
    scene: bpy.types.Scene,
    names: Sequence[str] = (),
    destination: Destination | None = None,
) -> tuple[Problem, ...]:
    """List the problems of a set-up, errors first.

    Args:
        armature_object: original object (not evaluated).
        scene: the scene in which it is solved.
        names: of the constraints to check; empty for all enabled ones.
        destination: of the keys; None: obstacles to keys in the present action are warnings.
    """
    return result_of(_check(armature_object, scene, names, destination))[0]


def _check(
    armature_object: bpy.types.Object | None,
    scene: bpy.types.Scene,
    names: Sequence[str],
    destination: Destination | None,
    body_choice: str = "",
    body_helps: bool | None = None,
    first_frame: float | None = None,
    keyed: bool = True,
) -> Work[tuple[tuple[Problem, ...], armature.RigLayout | None, tuple[Constraint, ...]]]:
    """Check a set-up; an item per constraint and bone.

    Returns:
        The problems, the bones' layout if it can be made, and the values of constraints without errors.
    """
    if armature_object is None or armature_object.type != "ARMATURE":
        what = "nothing is" if armature_object is None else f"'{armature_object.name}' is not an armature and"
        where = "" if armature_object is None else armature_object.name
        problem = Problem("ERROR", where, f"No armature: {what} selected; select an armature object")
        return (problem,), None, ()
    layout: armature.RigLayout | None = None
    values: tuple[Constraint, ...] = ()
    all_problems = list(_object_problems(armature_object, scene, first_frame is None))
    all_problems += _choice_problems(armature_object, names)
    if not all_problems:
        chosen = chosen_rows(armature_object, names)
        valid = []
        figure = body.body_of(armature_object, chosen, body_choice)
        for row in chosen:
            row_problems = list(constraint_problems(armature_object, row, scene, figure))
            all_problems += row_problems
            if not any(problem.severity == "ERROR" for problem in row_problems):
                valid.append(row)
            yield
        is_flat = _is_flat(armature_object.matrix_world)
        if not is_flat and (uneven := uneven_scale(armature_object.matrix_world, armature_object.name)):
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
            values = tuple(map(value_of, valid))
            with_body = list(helped(armature_object, values, body_helps))
            layout, reading = yield from _read(armature_object, scene, with_body, fixed, first_frame)
            solver_settings.solver_settings(armature_object)
        except CCDRigError as error:
            all_problems.append(Problem("ERROR", armature_object.name, sentence(str(error))))
        else:
            of_chains = _chain_problems(
                armature_object, valid, values, layout, reading, destination, fixed, keyed
            )
            for chain_problem in of_chains:
                if chain_problem is None:
                    yield
                else:
                    all_problems.append(chain_problem)
    return tuple(sorted(all_problems, key=lambda problem: problem.severity)), layout, values


def _read(
    armature_object: bpy.types.Object,
    scene: bpy.types.Scene,
    constraints: Sequence[Constraint],
    fixed: str,
    first_frame: float | None,
) -> Work[tuple[armature.RigLayout, armature.RigReading]]:
    """Read the bones of constraints at present, or at the first frame to solve if they cannot be read now.

    Errors of the reading: scale, shear, locks, and bones that are no rigid joints.
    """
    try:
        layout = rig_layout(armature_object, armature_object, constraints, fixed)
        yield
        return layout, layout.read(armature_object)
    except RigError as error:
        if first_frame is None:
            raise
        present = str(error)
    frame = first_frame
    yield
    with isolated_scene(scene, armature_object, read_bones(armature_object, constraints), ()) as isolated:
        evaluated = armature_object.evaluated_get(set_frame(isolated, frame))
        try:
            layout = rig_layout(armature_object, evaluated, constraints, fixed)
            return layout, layout.read(evaluated)
        except RigError as error:
            if str(error) == present:  # whatever the frame
                raise
            raise RigError(f"frame {frame:.7g}: {error}") from error


def _keyed_problems(armature_object: bpy.types.Object, chosen: Sequence[Any]) -> Iterator[Problem]:
    """Yield keyed or driven settings that a bake reads at the present frame alone."""
    for row, setting in constraint_list.moved_settings(armature_object, chosen):
        if setting.identifier != "influence" and setting.identifier not in SAMPLED:
            label = setting.name
            message = f"Constraint '{row.name}': a bake takes '{label}' as it is at the present frame"
            yield Problem("WARNING", row.name, f"{message}: remove its keys, or bake ranges one by one")


def chosen_rows(armature_object: Any, names: Sequence[str]) -> list[Any]:
    """Stored constraints of these names, or all enabled ones."""
    return [r for r in armature_object.ccd_rig.constraints if (r.name in names if names else r.enabled)]


# The object -------------------------------------------------------------------------------------------------


def _object_problems(
    armature_object: bpy.types.Object, scene: bpy.types.Scene, is_present: bool
) -> Iterator[Problem]:
    """Yield the problems of the object; `is_present`: its present scale counts, which keys may change."""
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
    elif is_present and _is_flat(armature_object.matrix_world):
        yield Problem("ERROR", name, f"Armature '{name}' has a scale of 0: give it another scale")


def _is_flat(matrix: Matrix) -> bool:
    """Whether a matrix has no size along an axis."""
    return min(abs(scale) for scale in matrix.to_scale()) < FLAT


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
    for name in sorted(name for name, count in Counter(known).items() if count > 1):
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
        yield from body_problems(armature_object, chosen, figure)


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


# Methods and planted bones ----------------------------------------------------------------------------------


def method_skeleton_problems(
    skeleton: Skeleton, pose: Pose, constraints: Sequence[Constraint]
) -> Iterator[Problem]:
    """Yield the problems of chains with the methods of their constraints."""
    order = {constraint.name: k for k, constraint in enumerate(constraints)}
    movers: dict[int, list[str]] = defaultdict(list)  # by joint, the constraints that turn it
    for constraint in constraints:
        # A bone is unplanted before a constraint reaches with it.
        for j in () if constraint.kind.plants else chain_joints(skeleton, constraint):
            movers[j].append(constraint.name)
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
            first_common: dict[str, int] = {}  # by other constraint, the first joint that it turns too
            for j in sorted(chain_joints(skeleton, constraint)):
                for other in movers[j]:
                    first_common.setdefault(other, j)
            for other in sorted(first_common.keys() - {constraint.name}, key=order.__getitem__):
                bone = skeleton.joints[first_common[other]].name
                message = f"{what} poses its bones alone, but '{other}' turns bone '{bone}' too"
                yield Problem("ERROR", constraint.name, f"{message}: shorten a chain, or choose Loop")


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
            chain = constraint_list.chain_of(armature_object, row)
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
    for constraint in clamps.acting_constraints(bone):
        message = (
            f"Bone '{bone.name}' keeps its animation, but what Blender's constraint '{constraint.name}' "
            "makes of it is not seen: bake it to keys and mute it, or set Body to Follow Feet"
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


# Single constraints -----------------------------------------------------------------------------------------


def constraint_problems(
    armature_object: bpy.types.Object, constraint: Any, scene: bpy.types.Scene, figure: Body | None = None
) -> Iterator[Problem]:
    """Yield the problems of a single constraint. Cheap enough for every redraw of the panel.

    Args:
        constraint: as it is stored.
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
    yield from number_problems(constraint)
    path = constraint.path_from_id("influence")
    if constraint.influence == 0.0 and not channels.is_moved(armature_object, path):
        yield Problem("WARNING", constraint.name, f"{where}: influence is 0, so nothing moves: raise it")
    if kind.plants:
        figure = figure or body_of(armature_object)
    yield from kind.problems(armature_object, constraint, scene, figure is not None and figure.keeps)


# The body that helps ----------------------------------------------------------------------------------------


def helped(
    armature_object: bpy.types.Object, constraints: Sequence[Constraint], helps: bool | None = None
) -> tuple[Constraint, ...]:
    """The constraints with their `body_length`, `carrier` and `is_animated`.

    The body goes up from a chain to the bone that carries all chains. It ends below a bone that something
    else moves: a constraint of the rig, or a target that hangs on it. It also ends below a bone that carries
    the one that planted bones go up to, since that alone carries the figure over them.

    Bones between controls, such as those of Rigify, are no end: they are locked, and constraints place them.
    A control of the body turns if the rig's constraints let all between it and the chains go along as one.

    Args:
        helps: whether the body helps; None for the armature's own setting.
    """
    helps = armature_object.ccd_rig.body_helps if helps is None else helps
    if not helps:
        return tuple(constraints)
    whole = [constraint_list.chain(armature_object, each.tip) for each in constraints]
    tops = [chain[: each.chain_length or None][-1:] for each, chain in zip(constraints, whole, strict=True)]
    end = common_carrier([bone for top in tops for bone in top])
    roots = [
        chain[: each.chain_length or None]
        for each, chain in zip(constraints, whole, strict=True)
        if each.kind.plants
    ]
    carriers_of_feet = {bone.name for chain in roots if chain for bone in chain[-1].parent_recursive}
    driving = dependence.bones_that_move_targets(armature_object, constraints)
    separating = _separating(armature_object, tops)
    carriers = _carriers(armature_object, constraints)
    with_body = []
    for constraint, chain in zip(constraints, whole, strict=True):
        length = len(chain[: constraint.chain_length or None])
        count, still = length, list[str]()
        above = [bone.name for bone in chain[length:]]
        if constraint.kind.reaches and constraint.use_position and end in above:
            for bone in chain[length : length + above.index(end) + 1]:
                is_placed = any(clamps.acting_constraints(bone)) and not all(bone.lock_rotation)
                if bone.name in carriers_of_feet or is_placed or bone.name in driving:
                    break
                is_detail = bone.lock_rotation[0] and bone.lock_rotation[2]  # a tweak, or between controls
                if is_detail and not any(bone.ccd_rig.use_slide):
                    still.append(bone.name)
                elif bone.name not in separating:
                    count = length + 1 + above.index(bone.name)
                else:
                    still.append(bone.name)
        target, has_body = dependence.target_object(constraint), count > length
        is_animated = target is not None and _is_animated(target, constraint.target_bone)
        with_body.append(
            replace(
                constraint,
                body_length=count if has_body else 0,
                body_still=tuple(still) if has_body else (),
                carrier="" if is_animated else carriers.get(constraint.name, ""),
                is_animated=is_animated,
            )
        )
    return tuple(with_body)


def common_carrier(bones: Sequence[bpy.types.PoseBone]) -> str:
    """The name of the nearest bone that is each of these, or carries it; empty for none."""
    joined: dict[str, int] = {}  # by bone: where its way up meets that of the first bone
    first: list[str] = []
    nearest = 0
    for start in bones:
        way: list[str] = []
        bone: bpy.types.PoseBone | None = start
        while bone is not None and bone.name not in joined:
            way.append(bone.name)
            bone = bone.parent
        if not joined:
            first, joined = way, {name: k for k, name in enumerate(way)}
        elif bone is None:
            return ""
        else:
            nearest = max(nearest, joined[bone.name])
            joined.update(dict.fromkeys(way, joined[bone.name]))
    return first[nearest] if first else ""


def _separating(armature_object: bpy.types.Object, tops: Iterable[Sequence[bpy.types.PoseBone]]) -> set[str]:
    """Names of the bones with which not all that constraints place between them and the chains goes as one.

    Args:
        tops: the uppermost bone of each chain, or none.
    """
    carriers = dependence.RigidCarriers(armature_object)
    seen, separating = set[str](), set[str]()
    for top in tops:
        bone = top[0].parent if top else None
        while bone is not None and bone.name not in seen:
            seen.add(bone.name)
            separating |= carriers.separating(bone)
            bone = bone.parent
    return separating


def _carriers(armature_object: bpy.types.Object, constraints: Sequence[Constraint]) -> dict[str, str]:
    """By constraint with a target, the first one whose target carries that; empty where none does."""
    places = [(dependence.target_object(each), each.target_bone) for each in constraints]
    reaching: dict[Any, list[int]] = defaultdict(list)  # by place, the constraints that reach for it
    for k, (each, (obj, bone)) in enumerate(zip(constraints, places, strict=True)):
        if obj is not None and each.kind.reaches and (obj != armature_object or bone):
            reaching[obj, bone].append(k)
    lookups, carriers = dependence.Lookups(), dict[str, str]()
    for each, (obj, bone) in zip(constraints, places, strict=True):
        if obj is None:
            continue
        above = dict.fromkeys(
            (m.data_block, m.bone) for m in dependence.movers(obj, bone, armature_object, lookups=lookups)
        )
        above.pop((obj, bone))
        others = [k for place in above for k in reaching.get(place, ())]
        names = [constraints[k].name for k in sorted(others) if constraints[k].name != each.name]
        carriers[each.name] = names[0] if names else ""
    return carriers


def _is_animated(obj: bpy.types.Object, bone: str) -> bool:
    """Whether F-curves move an object, or one bone of it; keys of one value do not."""
    start = obj.pose.bones[bone].path_from_id() + "." if bone and bone in obj.pose.bones else ""
    for curve in (curve for _, curves in channels.played(obj) for curve in curves):
        if curve.data_path.startswith(start):
            points = curve.keyframe_points if len(curve.keyframe_points) else curve.sampled_points
            values = [point.co[1] for point in points]
            if len(curve.modifiers) or (values and max(values) - min(values) > STILL):
                return True
    return False


STILL = 1e-6
"""Difference of values by which keys do not move a target."""
