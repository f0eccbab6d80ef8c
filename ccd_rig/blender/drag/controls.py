# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones of an armature as controls, which are dragged, or as followers of controls.

A bone is placed by its channels, or by Blender's constraints. In the second case the bone that it follows is
moved instead, if there is only one. A chain ends below a bone that constraints place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import bpy

from ...errors import RigError
from ..figures import recognition
from ..figures.role import Figure, Part
from ..properties import constraint_list
from ..properties.names import named
from ..rig import clamps
from ..rig.rotation_modes import rotation_channel
from ..scene import dependence

ON_TOP = {"COPY_SCALE", "LIMIT_SCALE", "MAINTAIN_VOLUME", "LIMIT_ROTATION", "LIMIT_LOCATION"}
"""Constraints that do not place a bone."""
BOUNDS_OF_PLACE = {"LIMIT_LOCATION"}
"""Constraints of `ON_TOP` that prevent shifts."""
TURNING = {*ON_TOP, "COPY_ROTATION", "DAMPED_TRACK", "LOCKED_TRACK", "TRACK_TO", "STRETCH_TO"}
"""Constraints that do not move a bone's head relative to its parent."""
IKS = {"IK", "SPLINE_IK"}


class Controls:
    """Bones of an armature as controls or followers, read for each drag."""

    def __init__(self, armature_object: bpy.types.Object) -> None:
        self.armature_object = armature_object
        self._iks: dict[str, tuple[str, Any]] = {}
        self._ik_ends: set[str] = set()
        for bone in armature_object.pose.bones:
            for constraint in bone.constraints:
                if constraint.type in IKS and _acts(constraint):
                    turned = (bone, *bone.parent_recursive)[: constraint.chain_count or None]
                    self._iks.update({each.name: (bone.name, constraint) for each in turned})
                    self._ik_ends.update(
                        name for thing, name in ends_of(constraint) if thing == armature_object
                    )
        self._drivers = dependence.drivers_by_bone(armature_object)

    @cached_property
    def figure(self) -> Figure:
        """Figure with the roles of the bones."""
        return recognition.figure_of(self.armature_object)

    def placing(self, bone: bpy.types.PoseBone) -> str:
        """Message about what places a bone instead of its channels; empty if its channels do."""
        if any(clamps.kind_of(each) and each.influence > 0.0 for each in bone.constraints):
            return f"Live poses bone '{bone.name}': switch Live off to drag it"
        if bone.name in self._iks:
            owner, constraint = self._iks[bone.name]
            return (
                f"Bone '{bone.name}' is turned by Blender's constraint '{constraint.name}' on bone '{owner}'"
            )
        for constraint in placing_constraints(bone):
            return f"Bone '{bone.name}' is placed by Blender's constraint '{constraint.name}'"
        return ""

    def is_in_ik(self, bone: bpy.types.PoseBone) -> bool:
        """Whether Blender's IK turns a bone."""
        return bone.name in self._iks

    def ik_chains(self) -> dict[str, tuple[str, ...]]:
        """Return {bone that holds an IK constraint: the bones that it turns, from the body}; no splines."""
        chains: dict[str, list[str]] = {}
        for name, (owner, constraint) in self._iks.items():
            if constraint.type == "IK" and constraint.use_tail:
                chains.setdefault(owner, []).append(name)
        return {owner: tuple(reversed(names)) for owner, names in chains.items()}

    def turns(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone can be turned by its channels."""
        return not all(bone.lock_rotation) and not self._is_driven(bone, rotation_channel(bone)[0])

    def shifts(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone can be shifted by its location."""
        if bone.parent is not None and bone.bone.use_connect:
            return False
        bounded = any(each.type in BOUNDS_OF_PLACE and _acts(each) for each in bone.constraints)
        return not (all(bone.lock_location) or bounded or self._is_driven(bone, "location"))

    def moves(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone is moved by its location, not by rotations of its chain.

        These are hips, and targets and poles of Blender's IK with their ancestors. Others have no ancestor
        that can be turned, or locks that prevent swings, such as tweaks.
        """
        if not self.shifts(bone):
            return False
        if bone.lock_rotation[0] and bone.lock_rotation[2]:
            return True
        role = self.figure.roles.get(bone.name)
        if role is not None and role.part is Part.HIPS:
            return True
        if self._leads_ik(bone):
            return True
        return not any(self.turns(each) and not self.placing(each) for each in bone.parent_recursive)

    def control_of(self, bone: bpy.types.PoseBone) -> bpy.types.PoseBone:
        """Return the bone to move for a pulled one: itself, an ancestor, or the bone that it follows.

        Raises:
            RigError: there is none, or more than one; names the bone.
        """
        return self._control_of(bone, bone, set())

    def line(self, bone: bpy.types.PoseBone) -> list[bpy.types.PoseBone]:
        """Return a bone and its ancestors, up to one that constraints place, left out."""
        line = [bone]
        for above in bone.parent_recursive:
            if self.placing(above):
                break
            line.append(above)
        return line

    def limb(self, bone: bpy.types.PoseBone) -> int:
        """Default number of turning bones in a bone's chain: up to the beginning of its limb."""
        if self.moves(bone):
            return 1
        line = self.line(bone)
        length = constraint_list.limb_length(bone.id_data, bone.name) or len(line)
        return max(1, sum(1 for each in line[:length] if self.turns(each)))

    def chain_length(self, bone: bpy.types.PoseBone, turning: int) -> int:
        """Length of a chain with a number of turning bones, from its tip."""
        turned = 0
        line = self.line(bone)
        for count, each in enumerate(line, 1):
            turned += self.turns(each)
            if turned >= turning:
                return count
        return len(line)

    def _leads_ik(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone is or carries a target or pole of IK, and no bone that IK turns."""
        below = {bone.name, *(each.name for each in bone.children_recursive)}
        return not self._ik_ends.isdisjoint(below) and below.isdisjoint(self._iks)

    def _is_driven(self, bone: bpy.types.PoseBone, channel: str) -> bool:
        path = bone.path_from_id()
        return any(curve.data_path == f"{path}.{channel}" for curve in self._drivers.get(path, ()))

    def _control_of(
        self, bone: bpy.types.PoseBone, pulled: bpy.types.PoseBone, seen: set[str]
    ) -> bpy.types.PoseBone:
        if bone.name in seen:
            raise RigError(f"Bone '{pulled.name}' follows bones in a circle: drag another bone")
        seen.add(bone.name)
        words = self.placing(bone)
        if not words:
            return self._carrier_of(bone)
        if words.startswith("Live"):
            raise RigError(words)
        controls = {}
        for thing, name in self._followed(bone):
            source = thing.pose.bones.get(name) if thing == self.armature_object else None
            if source is None:
                raise RigError(f"{words}: move '{thing.name}', which it follows")
            control = self._control_of(source, pulled, set(seen))
            controls[control.name] = control
        if len(controls) > 1:
            raise RigError(f"{words} and follows several bones: drag one of {named(sorted(controls))}")
        if not controls:
            raise RigError(f"{words}, which follows nothing that could be dragged: mute it")
        return next(iter(controls.values()))

    def _carrier_of(self, bone: bpy.types.PoseBone) -> bpy.types.PoseBone:
        """Return a bone if its channels move it; else its nearest ancestor that moves it, or an IK control.

        Mechanisms between an IK control and its target may be turned by constraints, such as a foot roll.
        """
        carrying = []
        for each in (bone, *bone.parent_recursive):
            if each.name in self._iks or any(c.type not in TURNING for c in placing_constraints(each)):
                break
            if not any(placing_constraints(each)) and (self.turns(each) or self.moves(each)):
                carrying.append(each)
        if not carrying:
            message = f"Bone '{bone.name}' is locked, and so is what carries it"
            raise RigError(f"{message}: unlock its rotation")
        control = carrying[0]
        if control == bone:
            return control
        for each in carrying[1:]:
            if not self._leads_ik(each):
                break
            control = each
        return control

    def _followed(self, bone: bpy.types.PoseBone) -> list[tuple[bpy.types.Object, str]]:
        """Targets that a bone follows by constraints, as (object, name of the bone or empty)."""
        if bone.name in self._iks:
            constraint = self._iks[bone.name][1]
            return [] if constraint.target is None else [(constraint.target, _subtarget(constraint))]
        followed: list[tuple[bpy.types.Object, str]] = []
        for constraint in reversed(list(placing_constraints(bone))):
            followed += ends_of(constraint)
            if constraint.type == "COPY_TRANSFORMS" and constraint.influence >= 1.0:
                break  # what stands before it has no effect
        return followed


def _acts(constraint: Any) -> bool:
    return not constraint.mute and constraint.influence > 0.0


def placing_constraints(bone: bpy.types.PoseBone) -> Iterator[Any]:
    """Yield the user's constraints that place a bone."""
    for constraint in clamps.user_constraints(bone):
        if constraint.type not in ON_TOP and _acts(constraint):
            yield constraint


def _subtarget(constraint: Any) -> str:
    return str(getattr(constraint, "subtarget", ""))


def ends_of(constraint: Any) -> list[tuple[bpy.types.Object, str]]:
    """Return targets and pole of a constraint, as (object, name of the bone or empty)."""
    targets = getattr(constraint, "targets", ())
    several = [(each.target, each.subtarget) for each in targets if getattr(each, "weight", 1.0) > 0.0]
    target = (getattr(constraint, "target", None), _subtarget(constraint))
    pole = (getattr(constraint, "pole_target", None), str(getattr(constraint, "pole_subtarget", "")))
    return [(thing, name) for thing, name in (*several, target, pole) if thing is not None]
