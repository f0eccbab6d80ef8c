# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets and poles that are made: empties in a collection of the rig's own, or bones of the rig itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import bpy
from mathutils import Matrix, Quaternion, Vector

from ..figures import control_bones, rigify, roles, words
from ..figures.control_bones import MADE
from . import constraint_list, limbs

EMPTY_SIZE = 0.3  # part of the bone's length
LEAST_SIZE, MOST_SIZE = 0.01, 0.05  # parts of the rig's size between which that is kept
COLOURS = {"L": (0.2, 0.45, 1.0, 1.0), "R": (1.0, 0.25, 0.2, 1.0), "": (1.0, 0.8, 0.1, 1.0)}
"""Object colours by side, as rigs have them: blue, red, yellow in the middle."""


class Target(NamedTuple):
    """An object, or one of its bones, as a target or pole."""

    thing: bpy.types.Object
    bone: str = ""

    @property
    def owner(self) -> Any:
        """What has the channels: the pose bone or the object."""
        return self.thing.pose.bones[self.bone] if self.bone else self.thing


@dataclass(frozen=True)
class NewTarget:
    """A target or pole to make.

    Attributes:
        name: is made unique.
        tip: name of the bone that it is for.
        point: where it stands, world.
        rotation: of an empty, world; control bones are turned as the tip, poles are not turned.
        shape: how it is drawn, as Blender names it for empties.
        side: "L", "R" or empty; None: what the tip's name says.
        beside: bone beside which it lies at rest as it does now; empty: the tip.
        carrier: what it goes along with: a target, or the place of an earlier one of those that are made.
    """

    name: str
    tip: str
    point: Vector
    rotation: Quaternion | None = None
    shape: Literal["SPHERE", "CUBE", "PLAIN_AXES"] = "SPHERE"
    side: str | None = None
    beside: str = ""
    carrier: Target | int | None = None


def of_row(row: Any) -> tuple[Target, ...]:
    """The pole and the target of a constraint, as far as it has them."""
    pairs = ((row.pole_target, row.pole_bone), (row.target, row.target_bone))
    return tuple(Target(thing, bone) for thing, bone in pairs if thing is not None)


def make_targets(
    context: bpy.types.Context,
    owner: bpy.types.Object,
    wanted: Sequence[NewTarget],
    as_bones: bool = False,
) -> list[Target]:
    """Make targets for an armature. With `as_bones` references to its bones are invalid afterwards.

    Raises:
        RigError: the armature cannot get bones. Nothing has changed then.
    """
    if as_bones:
        return _make_bones(context, owner, wanted)
    made: list[Target] = []
    home = _collection(context, owner)
    for new in wanted:
        empty = new_target(context, owner, new.name, new.tip, home)
        empty.empty_display_type = new.shape
        empty.color[:] = COLOURS[_side(new)]
        empty.matrix_world = Matrix.LocRotScale(new.point, new.rotation, None)
        carrier = made[new.carrier] if isinstance(new.carrier, int) else new.carrier
        if carrier is not None:
            _carry(empty, carrier)
        made.append(Target(empty))
    return made


def new_target(
    context: bpy.types.Context,
    owner: bpy.types.Object,
    name: str,
    tip: str,
    home: bpy.types.Collection | None = None,
) -> bpy.types.Object:
    """An empty for a bone, sized and coloured to suit it; without `home` in the rig's collection."""
    empty = bpy.data.objects.new(name, None)
    evaluated = owner.evaluated_get(context.evaluated_depsgraph_get())
    empty.empty_display_type = "SPHERE"
    empty.empty_display_size = _size(owner, evaluated, tip)
    empty.show_in_front = True
    empty.color[:] = COLOURS[words.read(tip).side]
    empty[MADE] = True
    (home or _collection(context, owner)).objects.link(empty)
    return empty


def is_left_over(target: Target) -> bool:
    """Whether a target was made here, and nothing uses it or hangs on it."""
    if not target.bone:
        thing = target.thing
        return bool(thing.get(MADE)) and thing.users <= len(thing.users_collection) and not thing.children
    if not control_bones.is_made(*target) or target.owner.children:
        return False
    for thing in bpy.data.objects:
        if thing.parent == target.thing and thing.parent_bone == target.bone:
            return False
        if any(_looks_at(each, target) for each in thing.constraints):
            return False
        if thing.type == "ARMATURE" and (
            any(target in of_row(row) for row in thing.ccd_rig.constraints)
            or any(_looks_at(each, target) for other in thing.pose.bones for each in other.constraints)
        ):
            return False
    return True


def remove_empty(empty: bpy.types.Object) -> None:
    """Remove an empty that was made here, and its collection if that is empty then."""
    homes = list(empty.users_collection)
    bpy.data.objects.remove(empty)
    for home in homes:
        if home.get(MADE) and not home.all_objects and not home.children:
            bpy.data.collections.remove(home)


def _make_bones(
    context: bpy.types.Context, owner: bpy.types.Object, wanted: Sequence[NewTarget]
) -> list[Target]:
    evaluated = owner.evaluated_get(context.evaluated_depsgraph_get())
    world: Any = evaluated.matrix_world
    scale = world.median_scale or 1.0
    root, new_bones = _root(owner, [new.tip for new in wanted]), []
    for new in wanted:
        tip = evaluated.pose.bones[new.tip]
        beside = evaluated.pose.bones[new.beside or new.tip]
        point = world.inverted_safe() @ new.point
        at_rest = beside.bone.matrix_local @ (beside.matrix.inverted_safe() @ point)
        is_pole = new.shape == "PLAIN_AXES"
        turns = (
            [Quaternion()] * 2
            if is_pole
            else [m.to_quaternion() for m in (tip.bone.matrix_local, tip.matrix)]
        )
        parent: str | int | None = root
        if isinstance(new.carrier, int):
            parent = new.carrier
        elif new.carrier is not None and new.carrier.thing == owner and new.carrier.bone:
            parent = new.carrier.bone
        new_bones.append(
            control_bones.ControlBone(
                new.name,
                _side(new),
                new.shape,
                _size(owner, evaluated, new.tip) / scale,
                Matrix.LocRotScale(at_rest, turns[0], None),
                Matrix.LocRotScale(point, turns[1], None),
                parent,
            )
        )
    return [Target(owner, name) for name in control_bones.make(context, owner, new_bones)]


def _root(owner: bpy.types.Object, tips: Sequence[str]) -> str | None:
    """The bone that carries the whole character and nothing turns; None where the armature has none such.

    Hips at the root of an armature are none: they are a part of the figure. Where no figure is recognised,
    such a bone deforms nothing or stands apart from the one bone that it carries.
    """
    if rigify.is_generated(owner.data):
        return rigify.ROOT if rigify.ROOT in owner.pose.bones else None
    chains = [constraint_list.chain(owner, row.tip, row.chain_length) for row in owner.ccd_rig.constraints]
    turned = {bone.name for chain in chains for bone in chain}
    roots = {constraint_list.chain(owner, tip)[-1].name for tip in tips} - turned
    if len(roots) != 1:
        return None
    root = owner.pose.bones[next(iter(roots))]
    if figure := roles.roles_of(owner):
        return None if root.name in figure else root.name
    carried = [child for child in root.children if not control_bones.is_control(child)]
    is_apart = len(carried) == 1 and not limbs.is_joined(carried[0])
    return root.name if is_apart or not root.bone.use_deform else None


def _carry(empty: bpy.types.Object, carrier: Target) -> None:
    """Let an empty go along with a target or a bone; it stays where it is now."""
    empty.parent = carrier.thing
    if not carrier.bone:
        empty.matrix_parent_inverse = carrier.thing.matrix_basis.inverted()
        return
    bone = carrier.owner
    empty.parent_type, empty.parent_bone = "BONE", bone.name
    tail = Matrix.Translation((0.0, bone.length, 0.0))
    empty.matrix_parent_inverse = (carrier.thing.matrix_world @ bone.matrix @ tail).inverted()


def _looks_at(constraint: bpy.types.Constraint, target: Target) -> bool:
    """Whether one of Blender's constraints has a bone as its target."""
    pairs = [(each.target, each.subtarget) for each in getattr(constraint, "targets", ())]
    for prefix in ("", "pole_"):
        thing = getattr(constraint, f"{prefix}target", None)
        pairs.append((thing, getattr(constraint, f"{prefix}subtarget", "")))
    return target in pairs


def _size(owner: bpy.types.Object, evaluated: bpy.types.Object, tip: str) -> float:
    """Radius of what is drawn for a target of a bone, world."""
    axis = evaluated.matrix_world.to_3x3() @ Vector(evaluated.pose.bones[tip].vector)
    size = max(Vector(owner.dimensions).length, 1e-3 / LEAST_SIZE)
    return min(max(EMPTY_SIZE * axis.length, LEAST_SIZE * size), MOST_SIZE * size)


def _side(new: NewTarget) -> str:
    return words.read(new.tip).side if new.side is None else new.side


def _collection(context: bpy.types.Context, owner: bpy.types.Object) -> bpy.types.Collection:
    """The collection of a rig's targets, made beside the rig where it has none yet."""
    targets = [row.target for row in owner.ccd_rig.constraints if row.target is not None]
    for known in (each for target in targets for each in target.users_collection):
        if known.get(MADE) and known.is_editable:
            return known
    made = bpy.data.collections.new(f"Targets of {owner.name}")
    made[MADE] = True
    beside = next((each for each in owner.users_collection if each.is_editable), context.scene.collection)
    beside.children.link(made)
    return made
