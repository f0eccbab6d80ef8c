# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with one constraint by itself, and the words for it."""

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import bpy
from mathutils import Matrix

from ..figures import words
from ..figures.role import Side
from ..properties import constraint_list
from ..properties.body import Body, body_of
from ..properties.constraint_values import Kind
from ..properties.joints import masses
from .method_checks import method_problems
from .plant_checks import plant_problems
from .problem import Problem

_VERBS = {"target": "reach", "pole": "bend towards"}


def constraint_problems(
    armature_object: bpy.types.Object, constraint: Any, scene: bpy.types.Scene, figure: Body | None = None
) -> Iterator[Problem]:
    """What is wrong with one constraint by itself. Cheap enough to be asked whenever the panel is drawn.

    Args:
        armature_object: carries it.
        constraint: as it is stored.
        scene: in which it is solved.
        figure: what becomes of the body; None: what the armature's own setting says.
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
        yield from _thing_problems(
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
    if _turns_about_its_end(armature_object, constraint):
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
        yield from _thing_problems(
            armature_object, constraint, scene, "pole", constraint.pole_target, constraint.pole_bone
        )
        if not math.isfinite(constraint.pole_angle):  # a script can store NaN
            yield Problem("ERROR", constraint.name, f"{where}: Pole Angle is not a number: set it to 0")
    elif constraint.pole_bone:
        bone = f"a pole bone '{constraint.pole_bone}'"
        message = f"{where} has {bone} but no pole target (deleted?), so it has no pole"
        yield Problem("WARNING", constraint.name, f"{message}: choose the pole target, or clear the bone")


def _turns_about_its_end(armature_object: bpy.types.Object, constraint: Any) -> bool:
    """Whether no bone of a chain can move what should reach the target: the head of the only one."""
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    asks = constraint.use_position and not constraint.use_tail and not any(constraint.effector_offset)
    if not asks or len(chain) != 1 or any(chain[0].ccd_rig.use_slide):
        return False
    planted = (row for row in armature_object.ccd_rig.constraints if row.kind == Kind.PLANT and row.enabled)
    chains = (constraint_list.chain(armature_object, row.tip, row.chain_length) for row in planted)
    return not any(chain[0] in each for each in chains)  # planted bones shift it


Check = Callable[[bpy.types.Object, Any, bpy.types.Scene, Body | None], Iterator[Problem]]
CHECKS: Mapping[str, Check] = MappingProxyType(
    {Kind.REACH: _reach_problems, Kind.BALANCE: _balance_problems, Kind.PLANT: _plant_problems}
)
"""What is wrong with a constraint of a kind: (armature object, as it is stored, scene, body) -> problems."""


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


def _thing_problems(
    armature_object: bpy.types.Object,
    constraint: Any,
    scene: bpy.types.Scene,
    word: str,
    thing: bpy.types.Object,
    bone: str,
) -> Iterator[Problem]:
    """What is wrong with a target or a pole; `word` says which."""
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
    elif thing == armature_object and _hangs_on_chain(armature_object, constraint, bone):
        message = f"{where}: {word} bone '{bone}' moves with the chain that should {_VERBS[word]} it"
        yield Problem("ERROR", constraint.name, f"{message}: choose another bone, or shorten the chain")
    elif bone not in thing.pose.bones:
        message = f"{where}: {word} bone '{bone}' is not in armature '{thing.name}'"
        near = suggestion(bone, thing.pose.bones.keys())
        yield Problem("ERROR", constraint.name, f"{message} (renamed or deleted?){near}")


def _hangs_on_chain(armature_object: bpy.types.Object, constraint: Any, bone: str) -> bool:
    """Whether a bone is one of the chain's own, or below one that can move."""
    chain = constraint_list.chain(armature_object, constraint.tip, constraint.chain_length)
    if chain and constraint.kind == Kind.PLANT:
        moving = {chain[-1].name}
    else:
        moving = {
            each.name
            for each in chain
            if each.ccd_rig.stiffness < 1.0
            and each.ccd_rig.max_step > 0.0
            and (not all(each.lock_rotation) or any(each.ccd_rig.use_slide))
        }
    return any(each.name in moving for each in constraint_list.chain(armature_object, bone))


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that is not there: names that may have been meant, or what to do.

    A hand is not a foot, and left is not right.
    """
    said = {each: words.read(each) for each in (name, *known)}
    names = [each for each in said if each != name and _may_be(said[each], said[name])]
    same = [each for each in names if _plain(each) == _plain(name)]
    longer = [each for each in names if _plain(name) and _plain(name) in _plain(each)]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    alike = [each for each in names if said[name].part is not None and said[each] == said[name]]
    meant = list(dict.fromkeys([*same, *longer, *near, *alike]))[:3]
    return f". Did you mean {' or '.join(repr(each) for each in meant)}?" if meant else ": choose another one"


def _may_be(one: words.Name, other: words.Name) -> bool:
    """Whether two names may be of the same bone, by the side and the part of the body that they say."""
    sides, parts = {one.side, other.side} - {Side.MIDDLE}, {one.part, other.part} - {None}
    return len(sides) < 2 and len(parts) < 2


def _plain(name: str) -> str:
    """A name without what is easily changed in it: case, spaces, dots and lines."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def in_scene(thing: bpy.types.Object, scene: bpy.types.Scene) -> bool:
    """Whether an object is in a scene; a deleted one lives on in the file while a target points at it."""
    # The second way looks at all objects of all scenes; a linked object may have the name of another.
    return scene.objects.get(thing.name) == thing or scene in thing.users_scene


def is_finite(matrix: Matrix) -> bool:
    """Whether all of a matrix is numbers."""
    return all(math.isfinite(value) for line in matrix for value in line)
