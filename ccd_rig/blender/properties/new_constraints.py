# SPDX-License-Identifier: GPL-3.0-or-later
"""New constraints for selected bones, and new targets: empties in a collection, or control bones of the rig.

Reaching bones get a chain each; planted ones have one root bone for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import bpy
from mathutils import Matrix, Quaternion, Vector

from ...errors import RigError
from ..figures import control_bones, recognition, rigify
from ..figures.control_bones import MADE, SIDE
from ..figures.role import CLAVICLE_MOBILITY, Part, Side
from ..keys import channels
from ..rig.rotation_modes import rotation_channel, set_rotation
from . import constraint_list
from .active_rig import keep_overrides, with_settings
from .constraint_kinds import KINDS, first_root_bone_chain_length, kind_of, set_kind
from .constraint_values import PLANT, Holds, Kind
from .names import named

ACROSS = math.radians(45.0)
"""Angle to the shin from which a foot stands across it: a paw may go on along the leg."""


class NewRow(NamedTuple):
    """Constraint to add."""

    tip: str  # name of its bone
    chain_length: int  # number of bones, counted from the tip; 0 goes up to the root
    use_tail: bool  # whether the effector is the tail of the tip, or its head


def new_rows(
    armature_object: bpy.types.Object, tips: Sequence[str], kind: Kind, chain_length: int | None = None
) -> tuple[tuple[NewRow, ...], Mapping[str, str]]:
    """Choose constraints for bones, except bones in the chain of another one.

    Args:
        chain_length: for all constraints; None: by kind and limb.

    Returns:
        The constraints, and {bone without a constraint: tip of the chain that it is in}.
    """
    rows = [_row(armature_object, tip, kind, chain_length) for tip in tips]
    turned = {
        bone.name: row.tip for row in rows for bone in constraint_list.chain_of(armature_object, row)[1:]
    }
    return tuple(row for row in rows if row.tip not in turned), {
        tip: turned[tip] for tip in tips if tip in turned
    }


def _row(armature_object: bpy.types.Object, tip: str, kind: Kind, chain_length: int | None) -> NewRow:
    if chain_length is None:
        chain_length = kind.chain_length(armature_object, tip)
    bone = armature_object.pose.bones[tip]
    is_chain = kind.reaches and chain_length != 1
    uses_head = constraint_list.has_guessed_tail(bone) or _is_foot(bone)
    return NewRow(tip, chain_length, not (is_chain and uses_head))


def _is_foot(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone is a foot across the end of a leg, at most half as long as thigh and shin each.

    The ankle is what its target should place. A target of the toes would bend the knee backwards: the pose
    nearest to a straight leg whose toes come nearer to the hip.
    """
    lower = bone.parent
    upper = None if lower is None else lower.parent
    if lower is None or upper is None:
        return False
    ways = [each.bone.tail_local - each.bone.head_local for each in (bone, lower)]
    is_short = bone.bone.length <= 0.5 * min(lower.bone.length, upper.bone.length)
    if not is_short or ways[0].angle(ways[1], 0.0) <= ACROSS:
        return False
    role = recognition.figure_of(bone.id_data).roles.get(bone.name)
    return role is not None and role.part is Part.FOOT


def ease_clavicles(armature_object: bpy.types.Object, rows: Sequence[NewRow]) -> str:
    """Give clavicles in chains of arms the mobility that they have beside these, by their Stiffness.

    Bones keep a Stiffness that they have. Returns a clause for the user; empty without such a bone.
    """
    chains = [constraint_list.chain_of(armature_object, row) for row in rows]
    free = {bone.name: bone for chain in chains for bone in chain[1:] if not bone.ccd_rig.stiffness}
    figure = recognition.figure_of(armature_object) if free else None
    clavicles = [name for name in free if figure is not None and figure.is_clavicle(name)]
    if not clavicles:
        return ""
    stiffness = 1.0 - CLAVICLE_MOBILITY
    make_stiff(armature_object, [free[name] for name in clavicles], stiffness)
    return f"turning less than their arms (Stiffness {stiffness:g}): {named(clavicles)}"


def make_stiff(
    armature_object: bpy.types.Object, pose_bones: Iterable[bpy.types.PoseBone], stiffness: float
) -> None:
    """Give bones a Stiffness, which goes with their constraints unless they had one, or get another."""
    for bone in pose_bones:
        joint = bone.ccd_rig
        joint.stiffness_made = 0.0 if joint.stiffness else stiffness
        joint.stiffness = stiffness
    keep_overrides(armature_object)


def describe(
    armature_object: bpy.types.Object, rows: Sequence[NewRow], in_chains: Mapping[str, str]
) -> Iterator[str]:
    """Describe the result of `new_rows`, in clauses of a sentence."""
    chains = {row.tip: constraint_list.chain_of(armature_object, row) for row in rows}
    for tip, chain in chains.items():
        if len(chain) > 1:
            yield f"'{tip}' with {len(chain)} bones up to '{chain[-1].name}'"
    if single := [tip for tip, chain in chains.items() if len(chain) == 1]:
        yield f"alone in their chains, so that they only turn towards their targets: {named(single)}"
    bones, heads = armature_object.pose.bones, [row.tip for row in rows if not row.use_tail]
    if feet := [tip for tip in heads if not constraint_list.has_guessed_tail(bones[tip])]:
        yield f"reaching with their heads, as feet do: {named(feet)}"
    if ends := [tip for tip in heads if tip not in feet]:
        yield f"reaching with their heads, since importers guess such tails: {named(ends)}"
    if in_chains:
        yield f"not added, in the chain of another: {named(list(in_chains))}"


class Planted(NamedTuple):
    """Result of planting bones."""

    names: tuple[str, ...]  # constraints that plant the bones, in the order of the bones
    new: tuple[str, ...]  # constraints among `names` that did not plant their bones before
    root_bone: str  # name of the bone that carries the figure
    switched: tuple[str, ...]  # constraints among `names` that had another kind before
    moved: tuple[str, ...]  # constraints of bones planted before, whose chains now end at `root_bone` too
    stopped: tuple[str, ...]  # bones whose slides were switched off: planted bones shift the root bone alone


def plant(armature_object: bpy.types.Object, tips: Sequence[str], holds: Holds) -> Planted:
    """Plant bones by a constraint each, with one root bone for all.

    The first constraint of a bone changes its kind; a bone without one gets a new constraint. They lie on the
    armature's Ground, if one is chosen.

    Args:
        holds: fixed components of the bones that were not planted before.

    Raises:
        RigError: no bone carries all of them. Nothing has changed then.
    """
    rows: Any = armature_object.ccd_rig.constraints
    indices = {tip: _row_index(rows, tip) for tip in tips}
    others = [row for row in rows if row.kind == PLANT and row.enabled and row.tip not in indices]
    root_bone = _root_bone(armature_object, [*tips, *(row.tip for row in others)])
    moved = [row.name for row in others if _end_chain_at(armature_object, row, root_bone)]
    names, new, switched = [], [], []
    for tip, index in indices.items():
        # Rows are looked up by index: adding one moves the rest in memory.
        row = rows[index] if index >= 0 else constraint_list.add(armature_object, tip, tip)
        if row.kind != PLANT:
            if index >= 0:
                switched.append(row.name)
            set_kind(row, KINDS[PLANT])
            row.plant_ground, row.plant_height, row.plant_rotation = holds
            row.plant_on_ground = armature_object.ccd_rig.ground.kind != "REST"
            new.append(row.name)
        row.enabled = True
        _end_chain_at(armature_object, row, root_bone)
        names.append(row.name)
    chains = (constraint_list.chain_of(armature_object, rows[name]) for name in names)
    sliding = {bone.name: bone for chain in chains for bone in chain if any(bone.ccd_rig.use_slide)}
    _unset_slides(armature_object, sliding.values())
    return Planted(tuple(names), tuple(new), root_bone, tuple(switched), tuple(moved), tuple(sliding))


STARTS = ("start_rotation", "start_before")
"""Properties of a bone that starts from another pose than rest."""


def start_from(armature_object: bpy.types.Object, rotations: Mapping[str, Quaternion]) -> None:
    """Let bones start from rotations, and pose them so unless something else turns them.

    The caller keeps overrides, see `keep_overrides`.
    """
    for name, rotation in rotations.items():
        bone = armature_object.pose.bones[name]
        joint, (channel, width) = bone.ccd_rig, rotation_channel(bone)
        if not joint.is_property_set("start_before"):
            joint.start_before = (*getattr(bone, channel), *(0.0,) * (4 - width))
        joint.start_rotation = rotation[:]
        if not is_turned(bone):
            set_rotation(bone, rotation)


def is_turned(bone: bpy.types.PoseBone) -> bool:
    """Whether locks, keys, strips or drivers decide a rotation channel of a bone."""
    armature_object: Any = bone.id_data
    path = channels.data_path(armature_object, bone.name, rotation_channel(bone)[0])
    animated = {name for name, _ in channels.animated_components(armature_object)}
    return any(bone.lock_rotation) or path in animated


class Undone(NamedTuple):
    """Names of bones whose settings by a set-up were taken back."""

    slides: tuple[str, ...]
    stiffness: tuple[str, ...]


def undo_made(armature_object: bpy.types.Object) -> Undone:
    """Take back what a set-up has made of bones that no constraint may use, even by Body Helps.

    These are slides, Stiffness and the rotation that they start from.
    """
    rows = armature_object.ccd_rig.constraints
    used = {bone.name for row in rows for bone in constraint_list.chain(armature_object, row.tip)}
    left = [bone for bone in with_settings(armature_object.pose.bones) if bone.name not in used]
    sliding = [bone for bone in left if bone.ccd_rig.slide_is_made]
    _unset_slides(armature_object, sliding)
    made = [bone for bone in left if bone.ccd_rig.stiffness_made]
    stiff = [bone for bone in made if bone.ccd_rig.stiffness == bone.ccd_rig.stiffness_made]
    for bone in made:
        bone.ccd_rig.property_unset("stiffness_made")
    for bone in stiff:
        bone.ccd_rig.property_unset("stiffness")
    for bone in left:
        if any(bone.ccd_rig.start_rotation):
            for name in STARTS:
                bone.ccd_rig.property_unset(name)
    keep_overrides(armature_object)
    return Undone(*(tuple(bone.name for bone in each) for each in (sliding, stiff)))


def _unset_slides(armature_object: bpy.types.Object, bones: Iterable[bpy.types.PoseBone]) -> None:
    for bone in bones:
        for name in ("use_slide", "slide_lower", "slide_upper", "slide_is_made"):
            bone.ccd_rig.property_unset(name)
    keep_overrides(armature_object)


def _row_index(rows: Any, tip: str) -> int:
    """Return the index of the constraint that plants a bone, else of its first one; -1 for none."""
    indices = [index for index, row in enumerate(rows) if row.tip == tip and not kind_of(row).balances]
    return next((i for i in indices if rows[i].kind == PLANT), indices[0] if indices else -1)


def _root_bone(armature_object: bpy.types.Object, tips: Sequence[str]) -> str:
    """Return the highest root bone that one of the tips would have alone and that is above all of them."""
    chains = {tip: constraint_list.chain(armature_object, tip) for tip in tips}
    candidates = []
    for tip, chain in chains.items():
        length = first_root_bone_chain_length(armature_object, tip)
        if len(chain) > 1:
            candidates.append(chain[(length or len(chain)) - 1])
    for bone in sorted(candidates, key=lambda candidate: len(candidate.parent_recursive)):
        if all(bone in chain[1:] for chain in chains.values()):
            return str(bone.name)
    raise RigError(f"No bone carries {named(tips)}: select feet that hang on the same hips")


def _end_chain_at(armature_object: bpy.types.Object, row: Any, root_bone: str) -> bool:
    """Make the chain of a constraint end at a root bone; whether that changed its length."""
    names = [bone.name for bone in constraint_list.chain(armature_object, row.tip)]
    length = (names.index(root_bone) + 1) % len(names)
    end = constraint_list.chain_of(armature_object, row)[-1]
    if end.name == root_bone:
        return False
    row.chain_length = length
    return True


# New targets ------------------------------------------------------------------------------------------------


EMPTY_SIZE = 0.3  # fraction of the bone's length
LEAST_SIZE, MOST_SIZE = 0.01, 0.05  # bounds of the size, fractions of the rig's size
COLOURS = {"L": (0.2, 0.45, 1.0, 1.0), "R": (1.0, 0.25, 0.2, 1.0), "": (1.0, 0.8, 0.1, 1.0)}
"""Object colours by side, as rigs use them: blue, red, yellow in the middle."""


class Target(NamedTuple):
    """Target or pole: an object, or one of its bones."""

    obj: bpy.types.Object
    bone: str = ""

    @property
    def owner(self) -> Any:
        """The pose bone or the object, whichever has the channels."""
        return self.obj.pose.bones[self.bone] if self.bone else self.obj

    @property
    def side(self) -> Side | None:
        """Side of the bone that it was made for; None if it was not made here."""
        stored = (self.owner.bone if self.bone else self.obj).get(SIDE)
        return next((side for side in Side if side == stored), None)


@dataclass(frozen=True)
class NewTarget:
    """Target or pole to make."""

    name: str  # a number is added if it is taken
    tip: str  # name of the bone that reaches for it
    point: Vector  # position, world
    # Of an empty, world; control bones have the rotation of the tip, poles none.
    rotation: Quaternion | None = None
    shape: Literal["SPHERE", "CUBE", "PLAIN_AXES"] = "SPHERE"  # display type of an empty
    side: str | None = None  # "L", "R" or empty; None: that of the tip
    beside: str = ""  # bone relative to which it has the same place at rest as now; empty: the tip
    carrier: Target | int | None = None  # parent: a target, or the index of an earlier new one


def of_row(row: Any) -> tuple[Target, ...]:
    """Return the pole and the target of a constraint, if it has them."""
    pairs = ((row.pole_target, row.pole_bone), (row.target, row.target_bone))
    return tuple(Target(obj, bone) for obj, bone in pairs if obj is not None)


def make_targets(
    context: bpy.types.Context,
    owner: bpy.types.Object,
    new_targets: Sequence[NewTarget],
    as_bones: bool = False,
) -> list[Target]:
    """Make targets of an armature. With `as_bones` references to its bones are invalid afterwards.

    Raises:
        RigError: the armature cannot get bones. Nothing has changed then.
    """
    if as_bones:
        return _make_bones(context, owner, new_targets)
    targets: list[Target] = []
    collection = _collection(context, owner)
    for new in new_targets:
        empty = new_target(context, owner, new.name, new.tip, collection, new.side)
        empty.empty_display_type = new.shape
        empty.matrix_world = Matrix.LocRotScale(new.point, new.rotation, None)
        carrier = targets[new.carrier] if isinstance(new.carrier, int) else new.carrier
        if carrier is not None:
            _parent(empty, carrier)
        targets.append(Target(empty))
    return targets


def new_target(
    context: bpy.types.Context,
    owner: bpy.types.Object,
    name: str,
    tip: str,
    collection: bpy.types.Collection | None = None,
    side: str | None = None,
) -> bpy.types.Object:
    """Return a new empty, sized and coloured for a bone.

    Args:
        collection: gets it; None: that of the rig's targets.
        side: "L", "R" or empty; None: that of the bone.
    """
    empty = bpy.data.objects.new(name, None)
    evaluated = owner.evaluated_get(context.evaluated_depsgraph_get())
    empty.empty_display_type = "SPHERE"
    empty.empty_display_size = _size(owner, evaluated, tip)
    empty.show_in_front = True
    side = recognition.side_of(owner, tip) if side is None else side
    empty.color[:] = COLOURS[side]
    empty[MADE], empty[SIDE] = True, str(side)
    (collection or _collection(context, owner)).objects.link(empty)
    return empty


def is_left_over(target: Target) -> bool:
    """Whether a target was made here, nothing uses it, and it has no children."""
    if not target.bone:
        # Its count of users leaves out parents and Blender's constraints.
        data: Any = bpy.data  # some stubs want all arguments of user_map
        users = data.user_map(subset={target.obj})[target.obj]
        homes = (bpy.types.Collection, bpy.types.Scene)
        return bool(target.obj.get(MADE)) and all(isinstance(user, homes) for user in users)
    if not control_bones.is_made(*target) or target.owner.children:
        return False
    for obj in bpy.data.objects:
        if obj.parent == target.obj and obj.parent_bone == target.bone:
            return False
        if any(_refers_to(constraint, target) for constraint in obj.constraints):
            return False
        if obj.type == "ARMATURE" and (
            any(target in of_row(row) for row in obj.ccd_rig.constraints)
            or any(_refers_to(c, target) for bone in obj.pose.bones for c in bone.constraints)
        ):
            return False
    return True


def remove_left_over(context: bpy.types.Context, targets: Iterable[Target]) -> None:
    """Remove the targets that are left over, those that others hang on after these.

    Raises:
        RigError: an armature with control bones cannot be edited.
    """
    waiting = list(dict.fromkeys(targets))
    while free := [target for target in waiting if is_left_over(target)]:
        waiting = [target for target in waiting if target not in free]
        for obj, bone in free:
            if bone:
                control_bones.remove(context, obj, [bone])
            else:
                remove_empty(obj)


def remove_empty(empty: bpy.types.Object) -> None:
    """Remove an empty that was made here, and its collection if nothing is left in it."""
    collections = list(empty.users_collection)
    bpy.data.objects.remove(empty)
    for collection in collections:
        if collection.get(MADE) and not collection.all_objects and not collection.children:
            bpy.data.collections.remove(collection)


def _make_bones(
    context: bpy.types.Context, owner: bpy.types.Object, new_targets: Sequence[NewTarget]
) -> list[Target]:
    evaluated = owner.evaluated_get(context.evaluated_depsgraph_get())
    world: Any = evaluated.matrix_world
    scale = world.median_scale or 1.0
    root, new_bones = _root(owner, [new.tip for new in new_targets]), []
    for new in new_targets:
        tip = evaluated.pose.bones[new.tip]
        beside = evaluated.pose.bones[new.beside or new.tip]
        point = world.inverted_safe() @ new.point
        at_rest = beside.bone.matrix_local @ (beside.matrix.inverted_safe() @ point)
        rotations = [Quaternion()] * 2
        if new.shape != "PLAIN_AXES":  # no pole
            rotations = [matrix.to_quaternion() for matrix in (tip.bone.matrix_local, tip.matrix)]
        parent: str | int | None = root
        if isinstance(new.carrier, int):
            parent = new.carrier
        elif new.carrier is not None and new.carrier.obj == owner and new.carrier.bone:
            parent = new.carrier.bone
        new_bones.append(
            control_bones.ControlBone(
                new.name,
                recognition.side_of(owner, new.tip) if new.side is None else new.side,
                new.shape,
                _size(owner, evaluated, new.tip) / scale,
                Matrix.LocRotScale(at_rest, rotations[0], None),
                Matrix.LocRotScale(point, rotations[1], None),
                parent,
            )
        )
    return [Target(owner, name) for name in control_bones.make(context, owner, new_bones)]


def _root(owner: bpy.types.Object, tips: Sequence[str]) -> str | None:
    """Return the root bone that carries the character and that no constraint turns; None if there is none.

    Hips at the root of an armature belong to the figure and do not count. Without a recognised figure, the
    root bone must deform nothing, or be detached from its only child.
    """
    if rigify.is_generated(owner.data):
        return rigify.ROOT if rigify.ROOT in owner.pose.bones else None
    chains = [constraint_list.chain_of(owner, row) for row in owner.ccd_rig.constraints]
    turned = {bone.name for chain in chains for bone in chain}
    roots = {constraint_list.chain(owner, tip)[-1].name for tip in tips} - turned
    if len(roots) != 1:
        return None
    root = owner.pose.bones[next(iter(roots))]
    if figure := recognition.roles_of(owner):
        return None if root.name in figure else root.name
    carried = [child for child in root.children if not control_bones.is_control(child)]
    is_apart = len(carried) == 1 and not constraint_list.is_joined(carried[0])
    return root.name if is_apart or not root.bone.use_deform else None


def _parent(empty: bpy.types.Object, carrier: Target) -> None:
    """Parent an empty to a target without moving it."""
    empty.parent = carrier.obj
    if not carrier.bone:
        empty.matrix_parent_inverse = carrier.obj.matrix_basis.inverted()
        return
    bone = carrier.owner
    empty.parent_type, empty.parent_bone = "BONE", bone.name
    tail = Matrix.Translation((0.0, bone.length, 0.0))
    empty.matrix_parent_inverse = (carrier.obj.matrix_world @ bone.matrix @ tail).inverted()


def _refers_to(constraint: bpy.types.Constraint, target: Target) -> bool:
    """Whether a Blender constraint has a bone as its target or pole."""
    pairs = [(entry.target, entry.subtarget) for entry in getattr(constraint, "targets", ())]
    for prefix in ("", "pole_"):
        obj = getattr(constraint, f"{prefix}target", None)
        pairs.append((obj, getattr(constraint, f"{prefix}subtarget", "")))
    return target in pairs


def _size(owner: bpy.types.Object, evaluated: bpy.types.Object, tip: str) -> float:
    """Return the display size of a target of a bone, world."""
    axis = evaluated.matrix_world.to_3x3() @ Vector(evaluated.pose.bones[tip].vector)
    size = max(Vector(owner.dimensions).length, 1e-3 / LEAST_SIZE)
    return min(max(EMPTY_SIZE * axis.length, LEAST_SIZE * size), MOST_SIZE * size)


def _collection(context: bpy.types.Context, owner: bpy.types.Object) -> bpy.types.Collection:
    """Return the collection of a rig's targets; a new one beside the rig if the view layer has none."""
    open_to_new = _open_collections(context.view_layer.layer_collection)
    targets = [row.target for row in owner.ccd_rig.constraints if row.target is not None]
    for collection in (c for target in targets for c in target.users_collection):
        if collection.get(MADE) and collection in open_to_new:
            return collection
    collection = bpy.data.collections.new(f"Targets of {owner.name}")
    collection[MADE] = True
    beside = (c for c in owner.users_collection if c in open_to_new)
    parent = next(beside, context.scene.collection)
    parent.children.link(collection)
    return collection


def _open_collections(root: bpy.types.LayerCollection) -> set[bpy.types.Collection]:
    """Return the collections of a view layer that may get objects, and whose objects are evaluated in it.

    Blender adds none to those of a library, and none to overrides of them.
    """
    if root.exclude:
        return set()
    collection = root.collection
    is_open = collection.is_editable and collection.override_library is None
    return ({collection} if is_open else set()).union(*map(_open_collections, root.children))
