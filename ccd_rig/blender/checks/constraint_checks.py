# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of single constraints, their methods and planted bones."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import bpy
from mathutils import Matrix, Vector

from ...errors import CCDRigError, InvalidInput
from ...goals import PositionGoal
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...skeleton.rerooting import reroot
from ...solvers.closed_forms import turning_joints
from ..figures import words
from ..figures.role import Side
from ..properties import constraint_list
from ..properties.body import Body, body_of
from ..properties.constraint_group import METHODS
from ..properties.constraint_values import Constraint, Kind
from ..properties.joints import masses
from ..rig import clamps
from ..scene.evaluation import PLANTED
from ..solve.constraint_goals import chain_joints
from ..solve.methods import SINGLE_PASS, panel_words
from ..solve.planting import different_ends, support_chains


@dataclass(frozen=True)
class Problem:
    """Error or warning about a set-up.

    Attributes:
        severity: "ERROR" keeps the armature from being solved; "WARNING" does not, but the result may
            surprise.
        where: name of the constraint, bone or object.
        message: the fault and its remedy, with the name.
    """

    severity: str
    where: str
    message: str


LABELS = {name: label for name, label, _, _ in METHODS}


def method_problems(constraint: Any) -> Iterator[Problem]:
    """Yield the settings of a stored constraint that its method does not support."""

    def error(message: str) -> Problem:
        return Problem("ERROR", constraint.name, message)

    if constraint.method == "CCD":
        return
    if constraint.method not in LABELS:  # the file holds a number that is not in the list
        yield error(f"Constraint '{constraint.name}': its method is not known to this version: choose one")
        return
    does = f"Constraint '{constraint.name}': method {LABELS[constraint.method]}"
    if not (constraint.use_position and constraint.use_tail):
        ends = "brings the tail of a bone to the target: switch on Position and Use Tail"
        yield error(f"{does} {ends}, or choose Loop")
    if any(constraint.effector_offset):
        yield error(f"{does} knows no Bone Offset: set it to 0, or choose Loop")
    if constraint.method not in SINGLE_PASS:
        return
    if constraint.rotation != "NONE":
        yield error(f"{does} does not turn the bone as its target is: set Rotation to Free, or choose Loop")
    if constraint.method == "TRIANGLE" and constraint.pole_target is not None:
        yield error(f"{does} has no pole: clear the pole target, or choose Loop or Two Bones")
    if constraint.method == "TRIANGLE" and constraint.max_extension < 1.0:
        yield error(f"{does} has no reach window: set Max Extension to 1, or choose Loop or Two Bones")


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
    if constraint.kind is not Kind.REACH or not constraint.use_position or constraint.max_extension >= 1.0:
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
        if other.name != constraint.name and common and other.kind is not Kind.PLANT:
            bone = skeleton.joints[min(common)].name
            message = f"{what} poses its bones alone, but '{other.name}' turns bone '{bone}' too"
            yield Problem("ERROR", constraint.name, f"{message}: shorten a chain, or choose Loop")


def plant_problems(armature_object: bpy.types.Object, constraint: Any, keeps_body: bool) -> Iterator[Problem]:
    """Yield the problems of a single constraint of kind PLANT.

    Args:
        armature_object: of the constraint.
        constraint: as it is stored.
        keeps_body: whether the root bone of the figure keeps its animation.
    """
    where = f"Constraint '{constraint.name}'"
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    if 0.0 < constraint.influence <= PLANTED and not constraint_list.is_animated(
        armature_object, constraint, "influence"
    ):
        message = f"{where}: a bone is planted while influence is above {PLANTED}: raise it"
        yield Problem("WARNING", constraint.name, message)
    if not (constraint.plant_ground or constraint.plant_height or constraint.plant_rotation):
        message = f"{where} holds no part of its bone: switch on Ground, Height or Rotation"
        yield Problem("ERROR", constraint.name, message)
    if not chain:
        return
    root_bone = chain[-1]
    if len(chain) <= constraint_list.limb_length(armature_object, constraint.tip):
        suited = constraint_list.first_root_bone_chain_length(armature_object, constraint.tip)
        above = constraint_list.chain(armature_object, constraint.tip, suited)[-1].name
        message = (
            f"{where}: bone '{root_bone.name}', where its chain ends, is of the limb and carries no figure"
        )
        yield Problem("WARNING", constraint.name, f"{message}: set Chain Length to end at '{above}'")
    yield from _other_root_bones(armature_object, constraint, root_bone)
    if not keeps_body:
        yield from _root_bone_problems(constraint, root_bone)
    for bone in chain:
        if any(bone.ccd_rig.use_slide) and not (keeps_body and bone == root_bone):
            message = (
                f"{where}: bone '{bone.name}' slides, which a bone between a planted one and the one that"
            )
            yield Problem("ERROR", constraint.name, f"{message} carries the figure cannot: switch off Slide")
        if len(bone.ccd_rig.coupled_offsets):
            message = (
                f"{where}: bone '{bone.name}' has a coupled offset, which no bone from a planted one up to "
                "the one that carries the figure may have: remove it"
            )
            yield Problem("ERROR", constraint.name, message)
    between = chain[:-1]
    if between and all(all(bone.lock_rotation) or bone.ccd_rig.stiffness >= 1.0 for bone in between):
        locked = f"{where}: every bone from '{constraint.tip}' up to '{root_bone.name}' is locked, so"
        effect = "it cannot be held" if keeps_body else "the figure stands stiffly on it"
        message = f"{locked} {effect}: unlock a rotation, or lower a stiffness"
        yield Problem("WARNING", constraint.name, message)


def _other_root_bones(
    armature_object: bpy.types.Object, constraint: Any, root_bone: bpy.types.PoseBone
) -> Iterator[Problem]:
    """Yield a planted bone whose chain ends at another root bone."""
    for other in armature_object.ccd_rig.constraints:
        if other == constraint or other.kind != Kind.PLANT or not other.enabled:
            continue
        ends = constraint_list.chain(armature_object, other.tip, other.chain_length)[-1:]
        if ends and ends[0] != root_bone:
            message = different_ends((constraint.name, other.name), (root_bone.name, ends[0].name))
            yield Problem("ERROR", constraint.name, message)
            return


def _root_bone_problems(constraint: Any, root_bone: bpy.types.PoseBone) -> Iterator[Problem]:
    """Yield what keeps a root bone from moving freely over planted bones."""
    name = f"bone '{root_bone.name}'"
    does = f"Constraint '{constraint.name}': {name} carries the figure over the planted bone, but"
    cure = "or set Chain Length to end at another bone"
    if root_bone.parent is not None and root_bone.bone.use_connect:
        message = f"{does} it is connected to its parent: switch off Connected in Edit Mode, {cure}"
        yield Problem("ERROR", constraint.name, message)
    if any(root_bone.lock_location):
        yield Problem("ERROR", constraint.name, f"{does} its location is locked: unlock it, {cure}")
    if any(root_bone.lock_rotation) or (root_bone.lock_rotations_4d and root_bone.lock_rotation_w):
        yield Problem("ERROR", constraint.name, f"{does} its rotation is locked: unlock it, {cure}")
    if root_bone.ccd_rig.limit.kind != "NONE":
        message = f"{does} its limit cannot hold there: set the limit's kind to None"
        yield Problem("WARNING", constraint.name, message)


def body_problems(
    armature_object: bpy.types.Object, chosen: Sequence[Any], figure: Body
) -> Iterator[Problem]:
    """Yield what contradicts a body that keeps its animation."""
    stays = f"bone '{figure.bone}', which keeps its animation"
    for row in chosen:
        if row.tip == figure.bone:
            does = "plants" if row.kind == Kind.PLANT else "moves"
            message = f"Constraint '{row.name}' {does} {stays}: disable it, or set Body to Follow Feet"
            yield Problem("ERROR", row.name, message)
        elif row.kind != Kind.PLANT:
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
    planted = [constraint for constraint in constraints if constraint.kind == Kind.PLANT]
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
        if constraint.kind == Kind.PLANT
    ]
    return list(dict.fromkeys(bones))


_VERBS = {"target": "reach", "pole": "bend towards"}


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
    if constraint.target is None and constraint.kind != Kind.PLANT:  # a planted bone is held where it is
        yield Problem("ERROR", constraint.name, f"{where} has no target: choose the object to reach")
    elif constraint.target is not None:
        yield from _target_problems(
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
    if constraint.kind not in CHECKS:  # the file holds a number that is not in the list
        message = f"{where}: its kind is not known to this version: choose one"
        yield Problem("ERROR", constraint.name, message)
        return
    yield from CHECKS[constraint.kind](armature_object, constraint, scene, figure)


def _plant_problems(
    armature_object: bpy.types.Object, constraint: Any, _scene: bpy.types.Scene, figure: Body | None
) -> Iterator[Problem]:
    figure = figure or body_of(armature_object)
    return plant_problems(armature_object, constraint, figure is not None and figure.keeps)


def _balance_problems(
    armature_object: bpy.types.Object, constraint: Any, _scene: bpy.types.Scene, _figure: Body | None
) -> Iterator[Problem]:
    where = f"Constraint '{constraint.name}'"
    if not masses(armature_object):
        message = f"{where} balances, but no bone of armature '{armature_object.name}' has a mass"
        yield Problem("ERROR", constraint.name, f"{message}: set Mass of the heavy bones in the panel Bone")
    if not any(constraint.balance_axes):
        yield Problem("ERROR", constraint.name, f"{where} balances along no axis: choose at least one")


def _reach_problems(
    armature_object: bpy.types.Object, constraint: Any, scene: bpy.types.Scene, _figure: Body | None
) -> Iterator[Problem]:
    where = f"Constraint '{constraint.name}'"
    if not constraint.use_position and constraint.rotation == "NONE":
        message = f"{where} asks for nothing: switch on Position, or choose a Rotation"
        yield Problem("ERROR", constraint.name, message)
    if constraint.rotation != "NONE" and not (
        math.isfinite(constraint.rotation_weight) and constraint.rotation_weight > 0.0
    ):
        message = f"{where}: rotation weight is {constraint.rotation_weight:g}: set it above 0"
        yield Problem("ERROR", constraint.name, message)
    if constraint.rotation != "NONE" and constraint.rotation_bone:
        yield from _rotation_bone_problems(armature_object, constraint)
    if not all(math.isfinite(value) for value in constraint.effector_offset):
        message = f"{where}: Bone Offset is not a number: set it to 0"
        yield Problem("ERROR", constraint.name, message)
    if not 0.0 < constraint.max_extension <= 1.0:  # a script can store NaN
        yield Problem(
            "ERROR",
            constraint.name,
            f"{where}: Max Extension is {constraint.max_extension:g}: set it above 0 and at most to 1",
        )
    yield from method_problems(constraint)
    if _end_is_fixed(armature_object, constraint):
        message = f"{where}: its one bone turns about its own head, which so stays where it is"
        yield Problem("WARNING", constraint.name, f"{message}: raise Chain Length, or switch on Use Tail")
    if not 0.0 <= constraint.soft <= 1.0:  # a script can store NaN
        yield Problem("ERROR", constraint.name, f"{where}: soft is {constraint.soft:g}: set it to 0 to 1")
    bones = len(constraint_list.chain(armature_object, constraint.tip, constraint.chain_length))
    if (
        constraint.use_position
        and constraint.max_extension < 1.0
        and 1 in (constraint.extension_joints, bones)
    ):
        message = f"{where}: Max Extension is about one bone, which cannot be stretched, so it does nothing"
        yield Problem("WARNING", constraint.name, f"{message}: raise Extension Bones or the chain's length")
    if constraint.pole_target is not None:
        yield from _target_problems(
            armature_object, constraint, scene, "pole", constraint.pole_target, constraint.pole_bone
        )
        if not math.isfinite(constraint.pole_angle):  # a script can store NaN
            yield Problem("ERROR", constraint.name, f"{where}: Pole Angle is not a number: set it to 0")
    elif constraint.pole_bone:
        bone = f"a pole bone '{constraint.pole_bone}'"
        message = f"{where} has {bone} but no pole target (deleted?), so it has no pole"
        yield Problem("WARNING", constraint.name, f"{message}: choose the pole target, or clear the bone")


def _end_is_fixed(armature_object: bpy.types.Object, constraint: Any) -> bool:
    """Whether the effector is the head of the chain's only bone, which no rotation can move."""
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    is_head = constraint.use_position and not constraint.use_tail and not any(constraint.effector_offset)
    if not is_head or len(chain) != 1 or any(chain[0].ccd_rig.use_slide):
        return False
    planted = (row for row in armature_object.ccd_rig.constraints if row.kind == Kind.PLANT and row.enabled)
    leg_chains = (constraint_list.chain(armature_object, row.tip, row.chain_length) for row in planted)
    return not any(chain[0] in leg for leg in leg_chains)  # planted bones shift it


Check = Callable[[bpy.types.Object, Any, bpy.types.Scene, Body | None], Iterator[Problem]]
CHECKS: Mapping[str, Check] = MappingProxyType(
    {Kind.REACH: _reach_problems, Kind.BALANCE: _balance_problems, Kind.PLANT: _plant_problems}
)
"""Checks per kind: (armature object, stored constraint, scene, body) -> problems."""


def _rotation_bone_problems(armature_object: bpy.types.Object, constraint: Any) -> Iterator[Problem]:
    name, bones = constraint.rotation_bone, armature_object.pose.bones
    where = f"Constraint '{constraint.name}': rotation bone '{name}'"
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    if name not in bones:
        near = suggestion(name, bones.keys())
        message = f"{where} is not in armature '{armature_object.name}' (renamed or deleted?){near}"
        yield Problem("ERROR", constraint.name, message)
    elif chain and all(bone.name != name for bone in chain):
        message = f"{where} is not in its chain, which goes from '{chain[-1].name}' to '{chain[0].name}'"
        yield Problem("ERROR", constraint.name, f"{message}: choose one of its bones, or clear it")


def _target_problems(
    armature_object: bpy.types.Object,
    constraint: Any,
    scene: bpy.types.Scene,
    word: str,
    thing: bpy.types.Object,
    bone: str,
) -> Iterator[Problem]:
    """Yield the problems of a target or a pole; `word` is "target" or "pole"."""
    where = f"Constraint '{constraint.name}'"
    if not in_scene(thing, scene):
        message = f"{where}: {word} '{thing.name}' is not in scene '{scene.name}' (deleted?)"
        yield Problem(
            "ERROR", constraint.name, f"{message}: link it to a collection there, or choose another"
        )
    elif bpy.data.objects.get(thing.name) != thing:
        message = (
            f"{where}: {word} '{thing.name}' comes from a library and shares its name with another object"
        )
        yield Problem("ERROR", constraint.name, f"{message}: rename that object")
    elif not is_finite(thing.matrix_world):
        message = f"{where}: {word} '{thing.name}' has a place that is not a number: clear its transform"
        yield Problem("ERROR", constraint.name, message)
    if thing == armature_object and not bone:
        yield Problem(
            "ERROR",
            constraint.name,
            f"{where}: the {word} is the armature itself: choose a {word} bone in it",
        )
    if not bone:
        return
    if thing.type != "ARMATURE":
        message = f"{where}: {word} '{thing.name}' is not an armature: clear {word} bone '{bone}'"
        yield Problem("ERROR", constraint.name, message)
    elif thing == armature_object and _follows_chain(armature_object, constraint, bone):
        message = f"{where}: {word} bone '{bone}' moves with the chain that should {_VERBS[word]} it"
        yield Problem("ERROR", constraint.name, f"{message}: choose another bone, or shorten the chain")
    elif bone not in thing.pose.bones:
        message = f"{where}: {word} bone '{bone}' is not in armature '{thing.name}'"
        near = suggestion(bone, thing.pose.bones.keys())
        yield Problem("ERROR", constraint.name, f"{message} (renamed or deleted?){near}")


def _follows_chain(armature_object: bpy.types.Object, constraint: Any, name: str) -> bool:
    """Whether a bone or an ancestor of it is a bone of the chain that can move."""
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    if chain and constraint.kind == Kind.PLANT:
        moving = {chain[-1].name}
    else:
        moving = {
            bone.name
            for bone in chain
            if bone.ccd_rig.stiffness < 1.0
            and bone.ccd_rig.max_step > 0.0
            and (not all(bone.lock_rotation) or any(bone.ccd_rig.use_slide))
        }
    return any(bone.name in moving for bone in constraint_list.chain(armature_object, name))


def suggestion(name: str, known: Iterable[str]) -> str:
    """End a message about an unknown name with up to three likely names, or with advice.

    Names of other sides or parts of the body are unlikely: a hand is not a foot, and left is not right.
    """
    read = {candidate: words.read(candidate) for candidate in (name, *known)}
    wanted = read[name]
    names = [
        candidate
        for candidate, reading in read.items()
        if candidate != name
        and len({reading.side, wanted.side} - {Side.MIDDLE}) < 2
        and len({reading.part, wanted.part} - {None}) < 2
    ]
    same = [candidate for candidate in names if _plain(candidate) == _plain(name)]
    longer = [candidate for candidate in names if _plain(name) and _plain(name) in _plain(candidate)]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    alike = [candidate for candidate in names if wanted.part is not None and read[candidate] == wanted]
    meant = list(dict.fromkeys([*same, *longer, *near, *alike]))[:3]
    return f". Did you mean {' or '.join(repr(each) for each in meant)}?" if meant else ": choose another one"


def _plain(name: str) -> str:
    """Reduce a name to letters and digits in lower case."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def in_scene(thing: bpy.types.Object, scene: bpy.types.Scene) -> bool:
    """Whether a scene has an object; a deleted one stays in the file while a target points at it."""
    # A linked object may have the name of another; `users_scene` looks at all objects of all scenes.
    return scene.objects.get(thing.name) == thing or scene in thing.users_scene


def is_finite(matrix: Matrix) -> bool:
    """Whether all entries of a matrix are finite numbers."""
    return all(math.isfinite(value) for row in matrix for value in row)
