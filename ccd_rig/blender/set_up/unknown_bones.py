# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a figure was not recognised, in words."""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ..figures import roles
from ..figures.by_structure import AXES
from ..figures.role import Figure, Kind, Part, RestBone
from ..figures.skeleton_tree import SkeletonTree
from ..figures.symmetry import halves
from ..properties.names_in_words import named
from .planned_rows import Group, PlannedRow

WANTED = {
    Kind.HUMAN: (Group.HANDS, Group.FEET, Group.HEAD, Group.HIPS),
    Kind.QUADRUPED: (Group.FEET, Group.HEAD, Group.HIPS),
    Kind.BIPED: (Group.HANDS, Group.FEET, Group.HEAD, Group.HIPS),
    Kind.BIRD: (Group.FEET, Group.WINGS, Group.HEAD, Group.HIPS),
    Kind.MANY_LEGS: (Group.FEET,),
    Kind.FISH: (Group.HEAD,),
}
ENDS = (
    *(Part.FOOT, Part.TOE, Part.FRONT_FOOT, Part.FRONT_TOE),
    *(Part.HAND, Part.HEAD, Part.WING, Part.TAIL, Part.LEG),
)
"""Parts below which bones are details."""


def refusal(armature_object: bpy.types.Object, bones: Sequence[RestBone]) -> str:
    """Why an armature is no figure, with what its bones were seen to be, and what to do."""
    tree = SkeletonTree(bones)
    no_figure = f"'{armature_object.name}' is no figure that is known"
    split = halves(tree, AXES)
    partners = split.partners if split else {}
    pairs = [name for name in partners if tree.bones[name].parent not in partners]
    ends = [name for name in tree.bones if not tree.children[name]]
    if not bones:
        return f"{no_figure}: it has no bones. Add bones to it"
    if pairs:
        return (
            f"{no_figure}: {named(pairs)} mirror each other, but none of them begins a limb, long and of two "
            "bones or more, and they hang on no single row. Select a bone and add a constraint for it"
        )
    return (
        f"{no_figure}: its rows of bones end at {named(ends)}, none of them is the mirror image of another "
        "one, and they are no single row of three bones or more. Select a bone and add a constraint for it"
    )


def unknown_bones(
    armature_object: bpy.types.Object, figure: Figure, planned: Sequence[PlannedRow]
) -> list[str]:
    """What is missing of such a figure, and rows of bones that are no known part of it, in words."""
    found = {row.group for row in planned}
    missing = [group for group in WANTED.get(figure.kind, ()) if group not in found]
    notes = [f"Not recognised: {', '.join(missing)}"] if missing else []
    if figure.family != roles.RIGIFY:
        odd = [bone.name for bone in armature_object.data.bones if _begins_odd_row(bone, figure)]
        notes += [f"Left as they are: {named(odd)}"] if odd else []
    return notes


def _begins_odd_row(bone: bpy.types.Bone, figure: Figure) -> bool:
    """Whether a bone that deforms begins a row of bones, of which none has a role and none is a detail."""
    parent = bone.parent
    if not bone.use_deform or not bone.children or bone.name in figure.roles or parent is None:
        return False
    begins = parent.name in figure.roles or parent.parent is None
    above = [figure.roles.get(each.name) for each in bone.parent_recursive]
    details = any(role is not None and role.part in ENDS for role in above)
    return begins and not details and not any(each.name in figure.roles for each in bone.children_recursive)
