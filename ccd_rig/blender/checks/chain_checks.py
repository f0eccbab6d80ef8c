# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the bones of the chains, and with what moves or keys them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import bpy
from mathutils import Quaternion, Vector

from ...errors import RigError
from ...limits.shapes import Limit, contains
from ..keys import channels
from ..keys.obstacles import Destination, obstacles
from ..properties import body, constraint_list, constraint_values
from ..properties.names_in_words import named
from ..rig import armature, clamps, rotation_modes
from ..scene import dependence
from ..solve import constraint_goals
from . import method_checks, plant_checks
from .problem import Problem

ROUNDING = 1e-6  # radians: limits are stored as float32


def chain_problems(
    armature_object: bpy.types.Object,
    chosen: Sequence[Any],
    layout: armature.RigLayout,
    reading: armature.RigReading,
    destination: Destination | None,
    fixed: str,
) -> Iterator[Problem | None]:
    """What is wrong with chains; None after each constraint and bone."""
    chains = {row.name: constraint_list.chain(armature_object, row.tip, row.chain_length) for row in chosen}
    bones = list(dict.fromkeys(bone for chain in chains.values() for bone in reversed(chain)))
    moved, settings, carried = {bone.name for bone in bones}, layout.joint_settings, layout.carried
    locked = {joint.name for joint in reading.skeleton.joints if joint.locked}
    sound = body.settled([constraint_values.value_of(row) for row in chosen], bool(fixed))
    yield from plant_checks.skeleton_problems(reading.skeleton, sound, bool(fixed))
    yield from method_checks.skeleton_problems(reading.skeleton, reading.pose, sound)
    root_bones = [bone for bone in plant_checks.root_bones(armature_object, chosen) if bone.name != fixed]
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
    yield from _pole_problems(reading, sound)
    for bone in bones:
        yield None
        if bone.name in locked:
            rotation = reading.pose.rotations[reading.skeleton.index(bone.name)]
            yield from _locked_problems(bone, settings[bone.name].get("limit"), rotation)
        else:
            yield from _bone_problems(bone, settings[bone.name])
    yield from _unseen_problems([bone for bone in bones if bone.name in locked])
    for name in sorted(carried.keys() - moved):
        yield from _carried_problems(armature_object.pose.bones[name])
    yield from _ik_problems(armature_object, moved)
    bones = [bone for bone in bones if bone.name != fixed]
    followers = [armature_object.pose.bones[name] for name in settings if name not in moved]
    for bone in followers:
        yield from _bone_problems(bone, {"limit": None})
    shifted = ("slides", "coupled_offsets")
    located = [b for b in bones if any(settings[b.name][each] for each in shifted) or b in root_bones]
    yield from _key_problems(armature_object, bones, located + followers, destination)


def _pole_problems(
    reading: armature.RigReading, sound: Sequence[constraint_values.Constraint]
) -> Iterator[Problem]:
    for constraint in sound:
        if constraint.pole_target:
            try:
                constraint_goals.pole_goal(reading.skeleton, constraint, Vector())
            except RigError as error:
                yield Problem("ERROR", constraint.name, str(error))


def _locked_problems(
    bone: bpy.types.PoseBone, limit: Limit | None, rotation: Quaternion
) -> Iterator[Problem]:
    """A bone of a chain that cannot turn: it is read from its channels, where its limit does not hold."""
    if limit is not None and not contains(limit, rotation, ROUNDING):
        message = f"Bone '{bone.name}': it cannot turn, and its pose is outside its limit"
        yield Problem("WARNING", bone.name, f"{message}: let it turn, or pose it inside the limit")


def _unseen_problems(bones: Sequence[bpy.types.PoseBone]) -> Iterator[Problem]:
    """Bones of chains that cannot turn, which Blender's own constraints bring elsewhere: told in one line."""
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
    """A bone that only carries mass: it is read from its channels."""
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


def _ik_problems(armature_object: bpy.types.Object, moved: set[str]) -> Iterator[Problem]:
    """Blender's own IK, which may stand on a bone beyond the chain and turn the chain's bones."""
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
    """What keeps keys of rotations, and of locations of `located`, from being written, or from playing."""
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
