# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of a set-up, and checks of names, objects and targets."""

import difflib
import math
from collections.abc import Iterable, Iterator
from typing import Any

import bpy
from mathutils import Matrix

from ..figures import words
from ..figures.role import Side
from . import constraint_list
from .constraint_values import PLANT, Problem

_VERBS = {"target": "reach", "pole": "bend towards"}


def target_problems(
    armature_object: bpy.types.Object,
    constraint: Any,
    scene: bpy.types.Scene,
    word: str,
    obj: bpy.types.Object,
    bone: str,
) -> Iterator[Problem]:
    """Yield the problems of a target or a pole; `word` is "target" or "pole"."""
    where = f"Constraint '{constraint.name}'"
    if not in_scene(obj, scene):
        message = f"{where}: {word} '{obj.name}' is not in scene '{scene.name}' (deleted?)"
        yield Problem(
            "ERROR", constraint.name, f"{message}: link it to a collection there, or choose another"
        )
    elif bpy.data.objects.get(obj.name) != obj:
        message = f"{where}: {word} '{obj.name}' comes from a library and shares its name with another object"
        yield Problem("ERROR", constraint.name, f"{message}: rename that object")
    elif not is_finite(obj.matrix_world):
        message = f"{where}: {word} '{obj.name}' has a place that is not a number: clear its transform"
        yield Problem("ERROR", constraint.name, message)
    if obj == armature_object and not bone:
        yield Problem(
            "ERROR",
            constraint.name,
            f"{where}: the {word} is the armature itself: choose a {word} bone in it",
        )
    if not bone:
        return
    if obj.type != "ARMATURE":
        message = f"{where}: {word} '{obj.name}' is not an armature: clear {word} bone '{bone}'"
        yield Problem("ERROR", constraint.name, message)
    elif obj == armature_object and _follows_chain(armature_object, constraint, bone):
        message = f"{where}: {word} bone '{bone}' moves with the chain that should {_VERBS[word]} it"
        yield Problem("ERROR", constraint.name, f"{message}: choose another bone, or shorten the chain")
    elif bone not in obj.pose.bones:
        message = f"{where}: {word} bone '{bone}' is not in armature '{obj.name}'"
        near = suggestion(bone, obj.pose.bones.keys())
        yield Problem("ERROR", constraint.name, f"{message} (renamed or deleted?){near}")


def _follows_chain(armature_object: bpy.types.Object, constraint: Any, name: str) -> bool:
    """Whether a bone or an ancestor of it is a bone of the chain that can move."""
    chain = constraint_list.chain_of(armature_object, constraint)
    if chain and constraint.kind == PLANT:
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


def in_scene(obj: bpy.types.Object, scene: bpy.types.Scene) -> bool:
    """Whether a scene has an object; a deleted one stays in the file while a target points at it."""
    # A linked object may have the name of another; `users_scene` looks at all objects of all scenes.
    return scene.objects.get(obj.name) == obj or scene in obj.users_scene


def is_finite(matrix: Matrix) -> bool:
    """Whether all entries of a matrix are finite numbers."""
    return all(math.isfinite(value) for row in matrix for value in row)
