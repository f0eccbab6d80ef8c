# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of constraints, each with all its answers; stored constraints, and their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import bpy
from mathutils import Vector

from ...errors import RigError
from ..registration import STORED
from . import body, constraint_list, joints
from .active_rig import lost_name
from .constraint_values import (
    AXES,
    METHODS,
    PLANT,
    PLANTED,
    PROPERTIES,
    SAMPLED,
    UNKNOWN,
    Constraint,
    Holds,
    Kind,
    Line,
    Problem,
    Shown,
    TargetSample,
)
from .names import unique_name

if TYPE_CHECKING:
    from ...goals import Goal, PoleGoal
    from ...skeleton.joints import Skeleton

UNBOUNDED = 1e9
"""Upper bound from which a property has none."""
LABELS = {name: label for name, label, _, _ in METHODS}
SINGLE_PASS = ("TWO_BONE", "TRIANGLE")
"""Methods with a closed form, whose bones can have no other constraint."""


# Reach ------------------------------------------------------------------------------------------------------


def number_problems(constraint: Any) -> Iterator[Problem]:
    """Yield the settings of a stored constraint that are in force and out of range, as scripts can store."""
    kind = kind_of(constraint)
    used = ("influence", "effector_offset", *kind.sampled(constraint))
    for name in (name for name in used if name not in kind.unused):
        declared, value = constraint.bl_rna.properties[name], getattr(constraint, name)
        lower, upper = declared.hard_min, declared.hard_max
        wrong = [each for each in (value if declared.is_array else (value,)) if not lower <= each <= upper]
        if not wrong:  # NaN is in no range
            continue
        label = declared.name
        message = f"Constraint '{constraint.name}': {label} is not a number: set it to 0"
        if upper < UNBOUNDED:
            message = (
                f"Constraint '{constraint.name}': {label} is {wrong[0]:g}: set it to {lower:g} to {upper:g}"
            )
        yield Problem("ERROR", constraint.name, message)


class Reach(Kind):
    """The tail or head of the tip, its rotation, or both reach a target."""

    __slots__ = ()

    number = 0
    label = "Reach"
    description = "The bone reaches for a target: with its end, its rotation, or both"
    icon = "CON_KINEMATIC"
    unused = ("holds", "on_ground")
    reaches = True
    panels = ("rotation", "pole", "method", "effector", "importance", "extension")

    def chain_length(self, armature_object: bpy.types.Object, tip: str) -> int:
        return constraint_list.limb_length(armature_object, tip)

    def sampled(self, constraint: Constraint) -> tuple[str, ...]:
        is_used = {
            "rotation_weight": constraint.rotation != "NONE",
            "pole_angle": bool(constraint.pole_target),
            "max_extension": constraint.use_position,
            "soft": constraint.use_position and constraint.method != "TRIANGLE",
        }
        return tuple(name for name in SAMPLED if is_used.get(name, True))

    def goals(self, skeleton: Skeleton, constraint: Constraint, target: TargetSample) -> list[Goal]:
        return reach_goals(skeleton, constraint, target)

    def problems(
        self, armature_object: bpy.types.Object, constraint: Any, scene: bpy.types.Scene, _keeps_body: bool
    ) -> Iterator[Problem]:
        from .problems import target_problems

        where = f"Constraint '{constraint.name}'"
        if not constraint.use_position and constraint.rotation == "NONE":
            message = f"{where} asks for nothing: switch on Position, or choose a Rotation"
            yield Problem("ERROR", constraint.name, message)
        if constraint.rotation != "NONE" and constraint.rotation_bone:
            yield from _rotation_bone_problems(armature_object, constraint)
        yield from method_problems(constraint)
        if _end_is_fixed(armature_object, constraint):
            message = f"{where}: its one bone turns about its own head, which so stays where it is"
            yield Problem("WARNING", constraint.name, f"{message}: raise Chain Length, or switch on Use Tail")
        bones = len(constraint_list.chain_of(armature_object, constraint))
        if (
            constraint.use_position
            and constraint.max_extension < 1.0
            and 1 in (constraint.extension_joints, bones)
        ):
            message = (
                f"{where}: Max Extension is about one bone, which cannot be stretched, so it does nothing"
            )
            yield Problem(
                "WARNING", constraint.name, f"{message}: raise Extension Bones or the chain's length"
            )
        if constraint.pole_target is not None:
            yield from target_problems(
                armature_object, constraint, scene, "pole", constraint.pole_target, constraint.pole_bone
            )
        elif constraint.pole_bone:
            bone = f"a pole bone '{constraint.pole_bone}'"
            message = f"{where} has {bone} but no pole target (deleted?), so it has no pole"
            yield Problem("WARNING", constraint.name, f"{message}: choose the pole target, or clear the bone")

    def pair_problems(self, one: Any, other: Any) -> Iterator[Problem]:
        pair = f"Constraints '{one.name}' and '{other.name}'"
        ends = [(row.use_tail, tuple(row.effector_offset)) for row in (one, other)]
        if ends[0] == ends[1] and one.use_position and other.use_position:
            end = "tail" if one.use_tail else "head"
            message = f"{pair} both pull at the {end} of bone '{one.tip}', which ends between their targets"
            yield Problem("WARNING", other.name, f"{message}: disable one of them")
        turned = [row.rotation_bone or row.tip for row in (one, other)]
        if one.rotation != "NONE" and other.rotation != "NONE" and turned[0] == turned[1]:
            message = f"{pair} both turn bone '{turned[0]}', which ends between their rotations"
            yield Problem("WARNING", other.name, f"{message}: set Rotation of one of them to Free")
        if one.pole_target is not None and other.pole_target is not None:
            message = f"{pair} both bend the chain of bone '{one.tip}', which ends between their poles"
            yield Problem("WARNING", other.name, f"{message}: clear one of the poles")

    def lines(self, constraint: Any) -> Iterator[Line]:
        end = Shown(constraint, "use_tail", is_active=constraint.use_position)
        yield Line((Shown(constraint, "use_position", ""), end), heading="Position")


def reach_goals(skeleton: Skeleton, constraint: Constraint, target: TargetSample) -> list[Goal]:
    """The goals of position, rotation and pole, as far as the constraint and its target have them."""
    from ...goals import DirectionGoal, OrientationGoal, PositionGoal

    joint, length, weight = constraint.tip, constraint.chain_length, constraint.weight
    priority = 2 * constraint.priority
    wanted: list[Goal] = []
    if constraint.use_position:
        end = _offset(skeleton, constraint)
        window = (constraint.max_extension, constraint.extension_joints, constraint.method == "TWO_BONE_TIP")
        wanted.append(PositionGoal(joint, target.point, end, weight, priority, length, *window))
    weight *= constraint.rotation_weight
    if target.rotation is not None or target.direction is not None:
        joint, length = rotation_chain(skeleton, constraint)
    if target.rotation is not None:
        wanted.append(OrientationGoal(joint, target.rotation, weight, priority, length))
    if target.direction is not None:
        axis = AXES[constraint.bone_axis]
        wanted.append(DirectionGoal(joint, axis, target.direction, weight, priority, length))
    if target.pole is not None:
        wanted.append(pole_goal(skeleton, constraint, target.pole))
    return wanted


def effector(skeleton: Skeleton, constraint: Constraint) -> Vector:
    """The effector in the tip's frame."""
    end = skeleton.joints[skeleton.index(constraint.tip)].length if constraint.use_tail else 0.0
    return Vector((0.0, end, 0.0)) + Vector(constraint.effector_offset)


def rotation_chain(skeleton: Skeleton, constraint: Constraint) -> tuple[str, int]:
    """The joint of `rotation`, and the count of joints of the constraint's chain that turn it (0: all).

    Raises:
        RigError: the joint is not in the constraint's chain; names both.
    """
    name, length = constraint.rotation_bone or constraint.tip, constraint.chain_length
    names = [skeleton.joints[j].name for j in skeleton.chain(constraint.tip, length)]
    if name not in names:
        raise RigError(
            f"Constraint '{constraint.name}': rotation bone '{name}' is not in its chain, which goes from "
            f"'{names[0]}' to '{names[-1]}': choose one of its bones, or clear it"
        )
    return name, names.index(name) + 1 if length else 0


def pole_goal(skeleton: Skeleton, constraint: Constraint, target: Vector) -> PoleGoal:
    """The goal that bends the chain to a pole.

    The chain goes from the first joint that can turn to the effector. A joint with a rotation goal cannot
    turn for the bend, so the chain ends at its head.

    Raises:
        RigError: the chain has less than two joints, so that there is no bend; names the constraint.
    """
    from ...goals import PoleGoal

    chain = skeleton.chain(constraint.tip, constraint.chain_length)
    whole = constraint.use_tail or any(constraint.effector_offset)
    fixed = None if whole else constraint.tip  # the head of this joint is the end
    if constraint.rotation != "NONE":
        fixed = rotation_chain(skeleton, constraint)[0]
    if fixed is not None:
        chain = chain[: chain.index(skeleton.index(fixed))]
    first = next((j for j in chain if not skeleton.joints[j].locked), chain[0] if chain else -1)
    if not chain or first == chain[-1]:
        bones = "two bones that can turn" if fixed is None else f"two bones that can turn before '{fixed}'"
        raise RigError(
            f"Constraint '{constraint.name}': a pole needs a chain of {bones}: make the chain longer, or "
            "clear the pole target"
        )
    end = _offset(skeleton, constraint) if fixed is None else skeleton.joints[skeleton.index(fixed)].offset
    root, last = skeleton.joints[first].name, skeleton.joints[chain[-1]].name
    priority = 2 * constraint.priority + 1
    return PoleGoal(root, last, target, constraint.weight, priority, end, constraint.pole_angle)


def _offset(skeleton: Skeleton, constraint: Constraint) -> Vector | None:
    """`effector` for goals, where None is the tail."""
    plain = constraint.use_tail and not any(constraint.effector_offset)
    return None if plain else effector(skeleton, constraint)


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


def _end_is_fixed(armature_object: bpy.types.Object, constraint: Any) -> bool:
    """Whether the effector is the head of the chain's only bone, which no rotation can move."""
    chain = constraint_list.chain_of(armature_object, constraint)
    is_head = constraint.use_position and not constraint.use_tail and not any(constraint.effector_offset)
    if not is_head or len(chain) != 1 or any(chain[0].ccd_rig.use_slide):
        return False
    planted = (row for row in armature_object.ccd_rig.constraints if row.kind == PLANT and row.enabled)
    leg_chains = (constraint_list.chain_of(armature_object, row) for row in planted)
    return not any(chain[0] in leg for leg in leg_chains)  # planted bones shift it


def _rotation_bone_problems(armature_object: bpy.types.Object, constraint: Any) -> Iterator[Problem]:
    from .problems import suggestion

    name, bones = constraint.rotation_bone, armature_object.pose.bones
    where = f"Constraint '{constraint.name}': rotation bone '{name}'"
    chain = constraint_list.chain_of(armature_object, constraint)
    if name not in bones:
        near = suggestion(name, bones.keys())
        message = f"{where} is not in armature '{armature_object.name}' (renamed or deleted?){near}"
        yield Problem("ERROR", constraint.name, message)
    elif chain and all(bone.name != name for bone in chain):
        message = f"{where} is not in its chain, which goes from '{chain[-1].name}' to '{chain[0].name}'"
        yield Problem("ERROR", constraint.name, f"{message}: choose one of its bones, or clear it")


# Balance ----------------------------------------------------------------------------------------------------


class Balance(Kind):
    """The centre of mass is kept over a target by the bones of the chain."""

    __slots__ = ()

    number = 1
    label = "Balance"
    description = "The centre of mass of all bones that have a mass stays over a target"
    icon = "CON_PIVOT"
    unused = (
        *(
            "use_position",
            "rotation",
            "pole_target",
            "pole_bone",
            "max_extension",
            "extension_joints",
            "method",
        ),
        *("effector_offset", "holds", "on_ground"),
    )
    balances = True
    panels = ("importance",)

    def goals(self, _skeleton: Skeleton, constraint: Constraint, target: TargetSample) -> list[Goal]:
        from ...goals import BalanceGoal

        axes, priority = constraint.balance_axes, 2 * constraint.priority
        return [BalanceGoal(target.point, axes, constraint.weight, priority, direction=target.direction)]

    def problems(
        self, armature_object: bpy.types.Object, constraint: Any, _scene: bpy.types.Scene, _keeps_body: bool
    ) -> Iterator[Problem]:
        where = f"Constraint '{constraint.name}'"
        if not joints.masses(armature_object):
            message = f"{where} balances, but no bone of armature '{armature_object.name}' has a mass"
            cure = "set Mass of the heavy bones in the panel Bone"
            yield Problem("ERROR", constraint.name, f"{message}: {cure}")
        if not any(constraint.balance_axes):
            message = f"{where} balances along no axis: choose at least one"
            yield Problem("ERROR", constraint.name, message)

    def subject(self, _constraint: Any) -> str:
        return ""

    def pair_problems(self, one: Any, other: Any) -> Iterator[Problem]:
        pair = f"Constraints '{one.name}' and '{other.name}'"
        message = f"{pair} both balance the armature, which ends between their targets"
        yield Problem("WARNING", other.name, f"{message}: disable one of them")

    def lines(self, constraint: Any) -> Iterator[Line]:
        yield Line((Shown(constraint, "balance_axes", ""),), heading="Axes", toggle=True)
        masses = joints.masses(constraint.id_data)
        words = f"{sum(masses.values()):.4g} on {len(masses)} bone{'' if len(masses) == 1 else 's'}"
        yield Line(words=f"Mass {words}" if masses else "No bone has a mass")


# Plant ------------------------------------------------------------------------------------------------------


class Plant(Kind):
    """The head and rotation of the tip stay fixed in the world while the influence is above `PLANTED`.

    The chain ends at the root bone, which carries the figure.
    """

    __slots__ = ()

    number = 2
    label = "Plant"
    description = "The bone stays put in the world while Influence is above 0.5, and the figure moves over it"
    icon = "PINNED"
    unused = (
        *(
            "use_position",
            "rotation_weight",
            "pole_target",
            "pole_bone",
            "priority",
            "weight",
            "max_extension",
        ),
        *("extension_joints", "method", "effector_offset", "rotation_bone"),
    )
    fixed = MappingProxyType({"use_tail": False, "rotation": "ORIENTATION"})
    plants = True
    needs_target = False
    panels = ()

    def chain_length(self, armature_object: bpy.types.Object, tip: str) -> int:
        return root_bone_chain_length(armature_object, tip)

    def sampled(self, _constraint: Constraint) -> tuple[str, ...]:
        return ("offset",)

    def goals(self, skeleton: Skeleton, constraint: Constraint, target: TargetSample) -> list[Goal]:
        return reach_goals(skeleton, constraint, target)  # for where the bone is held

    def problems(
        self, armature_object: bpy.types.Object, constraint: Any, _scene: bpy.types.Scene, keeps_body: bool
    ) -> Iterator[Problem]:
        from ..keys.channels import is_moved

        where = f"Constraint '{constraint.name}'"
        chain = constraint_list.chain_of(armature_object, constraint)
        path = constraint.path_from_id("influence")
        if 0.0 < constraint.influence <= PLANTED and not is_moved(armature_object, path):
            message = f"{where}: a bone is planted while influence is above {PLANTED}: raise it"
            yield Problem("WARNING", constraint.name, message)
        if not (constraint.plant_ground or constraint.plant_height or constraint.plant_rotation):
            message = f"{where} holds no part of its bone: switch on Place, Height or Rotation"
            yield Problem("ERROR", constraint.name, message)
        if not chain:
            return
        root_bone = chain[-1]
        if len(chain) <= constraint_list.limb_length(armature_object, constraint.tip):
            suited = first_root_bone_chain_length(armature_object, constraint.tip)
            above = constraint_list.chain(armature_object, constraint.tip, suited)[-1].name
            message = (
                f"{where}: bone '{root_bone.name}', "
                "where its chain ends, is of the limb and carries no figure"
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
                yield Problem(
                    "ERROR", constraint.name, f"{message} carries the figure cannot: switch off Slide"
                )
            if len(bone.ccd_rig.coupled_offsets):
                message = (
                    f"{where}: bone '{bone.name}' has a coupled offset, which no bone from a planted one up "
                    "to the one that carries the figure may have: remove it"
                )
                yield Problem("ERROR", constraint.name, message)
        between = chain[:-1]
        if between and all(all(bone.lock_rotation) or bone.ccd_rig.stiffness >= 1.0 for bone in between):
            locked = f"{where}: every bone from '{constraint.tip}' up to '{root_bone.name}' is locked, so"
            effect = "it cannot be held" if keeps_body else "the figure stands stiffly on it"
            message = f"{locked} {effect}: unlock a rotation, or lower a stiffness"
            yield Problem("WARNING", constraint.name, message)

    def pair_problems(self, one: Any, other: Any) -> Iterator[Problem]:
        pair = f"Constraints '{one.name}' and '{other.name}'"
        message = f"{pair} both plant bone '{one.tip}', which is held where the first of them holds it"
        yield Problem("WARNING", other.name, f"{message}: disable one of them")

    def chain_words(self, chain: Sequence[bpy.types.PoseBone]) -> str:
        return f"'{chain[-1].name}' carries the figure"

    def lines(self, constraint: Any) -> Iterator[Line]:
        armature_object = constraint.id_data
        if constraint.target is None:
            rows = [
                row for row in armature_object.ccd_rig.constraints if row.enabled and kind_of(row).reaches
            ]
            reach = next((row.name for row in rows if row.tip == constraint.tip), "")
            words = f"Held where '{reach}' has brought it" if reach else "Held where it is when planted"
            yield Line(words=words)
        holds = (("plant_ground", "Place"), ("plant_height", "Height"), ("plant_rotation", "Rotation"))
        shown = tuple(Shown(constraint, name, text=text) for name, text in holds)
        yield Line(shown, toggle=True, is_wide=True)
        yield Line((Shown(constraint, "plant_on_ground"),))
        if constraint.plant_on_ground:
            ground = armature_object.ccd_rig.ground
            yield Line((Shown(ground, "kind"),))
            if ground.kind != "REST":
                yield Line((Shown(ground, ground.kind.lower()),))
        yield Line((Shown(armature_object.ccd_rig, "body"),))
        figure = body.body_of(armature_object)
        if figure is None:
            return
        yield Line(words=figure.words())
        if figure.is_keyed and not figure.keeps:
            yield Line(words=f"The bake replaces the keys of '{figure.bone}'", icon="ERROR")


def root_bone_chain_length(armature_object: bpy.types.Object, tip: str) -> int:
    """Return the chain length of a planted bone: up to the movable bone that carries the figure.

    Bones that are planted already decide that root bone. 0 if it is the root of the armature, or missing.
    """
    to_root = constraint_list.chain(armature_object, tip)
    others = [
        constraint_list.chain_of(armature_object, row)[-1:]
        for row in armature_object.ccd_rig.constraints
        if row.kind == PLANT and row.tip != tip
    ]
    for root_bone in (bone for other in others for bone in other):
        if root_bone in to_root[1:]:
            return (to_root.index(root_bone) + 1) % len(to_root)
    return first_root_bone_chain_length(armature_object, tip)


def first_root_bone_chain_length(armature_object: bpy.types.Object, tip: str) -> int:
    """Like `root_bone_chain_length` while no other bone is planted."""
    to_root = constraint_list.chain(armature_object, tip)
    least = constraint_list.limb_length(armature_object, tip) or len(to_root)
    movable = [count for count, bone in enumerate(to_root, 1) if count > least and _can_carry(bone)]
    # Above a front leg the chest carries part of the figure, and the hips carry all of it.
    branching = [
        count for count in movable if sum(bool(each.children) for each in to_root[count - 1].children) > 1
    ]
    if len(branching) > 1 and branching[-1] == len(to_root) and not constraint_list.is_joined(to_root[-2]):
        branching.pop()  # a root that stands apart also carries controls
    length = branching[-1] if branching else next(iter(movable), 0)
    return length if length < len(to_root) else 0


def _can_carry(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone can be moved and turned: neither connected nor locked."""
    movable = bone.parent is None or not bone.bone.use_connect
    return movable and not any((*bone.lock_location, *bone.lock_rotation))


def _other_root_bones(
    armature_object: bpy.types.Object, constraint: Any, root_bone: bpy.types.PoseBone
) -> Iterator[Problem]:
    """Yield a planted bone whose chain ends at another root bone."""
    for other in armature_object.ccd_rig.constraints:
        if other == constraint or other.kind != PLANT or not other.enabled:
            continue
        ends = constraint_list.chain_of(armature_object, other)[-1:]
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


def different_ends(names: tuple[str, str], bones: tuple[str, str]) -> str:
    """The message for two constraints whose chains end at different bones."""
    (one, other), (its, others) = names, bones
    return (
        f"Constraints '{one}' and '{other}' plant bones whose chains end at different bones, '{its}' and "
        f"'{others}': set Chain Length so that both end at the bone that carries the whole figure"
    )


# All kinds --------------------------------------------------------------------------------------------------

KINDS: Mapping[str, Kind] = MappingProxyType(
    {kind: kind for kind in (Reach("REACH"), Balance("BALANCE"), Plant(PLANT))}
)
"""The kinds of constraints by their identifiers, in the order of menus."""


def kind_of(constraint: Any) -> Kind:
    """Return the kind of a constraint, stored or a value; one with the base class's answers if unknown."""
    return KINDS.get(constraint.kind, UNKNOWN)


def constraints(armature_object: bpy.types.Object) -> tuple[Constraint, ...]:
    """Return the values of all constraints of an armature in their order, disabled ones included."""
    return tuple(map(value_of, armature_object.ccd_rig.constraints))


def value_of(stored: Any) -> Constraint:
    """Return the value of a stored constraint, whose kind is known."""
    kind, values = KINDS[stored.kind], {name: _plain(getattr(stored, name)) for name in PROPERTIES}
    holds = Holds(stored.plant_ground, stored.plant_height, stored.plant_rotation)
    values |= {"kind": kind, "holds": holds, "on_ground": stored.plant_on_ground}
    for name in kind.unused:
        del values[name]  # a field without a value has its default
    return Constraint(**{**values, **kind.fixed})


def _plain(value: Any) -> Any:
    """A property's value as the core has it: a name of an object, a tuple of an array."""
    if value is None or isinstance(value, bpy.types.Object):
        return "" if value is None else value.name
    return value if isinstance(value, (bool, int, float, str)) else tuple(value)


def set_kind(constraint: Any, kind: Kind) -> None:
    """Change the kind of a constraint, and its chain length with it.

    A planted bone stays at its place: its target is cleared.
    """
    if constraint.kind == kind:
        return
    constraint.chain_length = kind.chain_length(constraint.id_data, constraint.tip)
    if not kind.needs_target:
        constraint.target = None
        for field in ("target_bone", "offset", "offset_space", "use_tail"):
            constraint.property_unset(field)
    constraint.kind = kind


def body_words(armature_object: bpy.types.Object, chain: Sequence[bpy.types.PoseBone]) -> Iterator[str]:
    """Tell what the body above a chain, or in it, does: it keeps its animation, or planted bones shift it."""
    figure = body.body_of(armature_object)
    if figure is not None and figure.keeps:
        if any(bone.name == figure.bone for bone in chain):
            yield f"'{figure.bone}' keeps its animation"
        return
    plants = [row for row in armature_object.ccd_rig.constraints if row.kind == PLANT and row.enabled]
    if any(constraint_list.chain_of(armature_object, row)[-1:] == chain[-1:] for row in plants):
        yield "and on to planted bones"


# The property group -----------------------------------------------------------------------------------------

DEFAULT_NAME = "CCD"
# Files store the numbers: an item keeps its number for good.
KIND_ITEMS = tuple((str(kind), kind.label, kind.description, kind.number) for kind in KINDS.values())


def keep_name_unique(self: bpy.types.PropertyGroup, _context: bpy.types.Context) -> None:
    """Number a name that another constraint has, after it was set; rows of a library keep theirs."""
    if lost := lost_name(self.id_data, "constraints"):
        self.name = lost  # calls this function once more
        return
    names = self.id_data.ccd_rig.constraints.keys()
    if not self.name or names.count(self.name) > 1:
        # Setting the name calls this function once more, which then changes nothing.
        self.name = unique_name(self.name or DEFAULT_NAME, names)


class CCD_RIG_PG_constraint(bpy.types.PropertyGroup):
    """A stored constraint, perhaps converted from a constraint of Blender (`original_bone`).

    It has the settings of the table `Constraint`, and those that the value has in another form.
    """

    __annotations__ = {
        "kind": STORED.enum("Kind", "What the constraint is about", items=KIND_ITEMS),
        **PROPERTIES,
        "plant_ground": STORED.boolean(
            "Hold Place", "The planted bone keeps its place along the ground", default=True
        ),
        "plant_height": STORED.boolean(
            "Hold Height",
            "The planted bone keeps its height; when off, it rises and sinks as it is animated",
            default=True,
        ),
        "plant_rotation": STORED.boolean(
            "Hold Rotation",
            "The planted bone keeps its rotation; when off, it turns as it is animated, so that a foot rolls",
            default=True,
        ),
        "plant_on_ground": STORED.boolean(
            "On Ground",
            "The planted bone lies on the armature's Ground: its sole on the surface, turned to the "
            "slope up to Steepest of Walk Along. On ground that moves it goes along",
            default=False,
        ),
        "original_bone": STORED.text(
            "Original Bone", "The bone of Blender's constraint that this one was converted from"
        ),
        "original_constraint": STORED.text(
            "Original Constraint",
            "Name of Blender's constraint that this one was converted from, and that is muted for it",
        ),
    }
