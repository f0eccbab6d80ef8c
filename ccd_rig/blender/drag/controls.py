# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones of an armature as controls, which are dragged, or as followers of controls.

A bone is placed by its channels, also in the frame that Child Of or Armature gives it, or by Blender's
constraints. In the last case the bone that it follows is moved instead, if there is only one. A chain goes on
through bones that constraints place beside their parents, such as the mechanisms between the controls of a
spine, and ends below others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any

import bpy
from mathutils import Vector

from ...errors import RigError
from ...json_text import printable
from ..figures import recognition
from ..figures.role import Figure, Part, Side
from ..properties import constraint_list
from ..properties.names import named
from ..rig import clamps
from ..rig.bone_space import with_channels
from ..rig.rotation_modes import rotation_channel
from ..scene import dependence

ON_TOP = {"COPY_SCALE", "LIMIT_SCALE", "MAINTAIN_VOLUME", "LIMIT_ROTATION", "LIMIT_LOCATION"}
"""Constraints that do not place a bone."""
BOUNDS_OF_PLACE = {"LIMIT_LOCATION"}
"""Constraints of `ON_TOP` that prevent shifts."""
TURNING = {*ON_TOP, "COPY_ROTATION", "DAMPED_TRACK", "LOCKED_TRACK", "TRACK_TO", "STRETCH_TO"}
"""Constraints that do not move a bone's head relative to its parent."""
IKS = {"IK", "SPLINE_IK"}
COPIES = {"COPY_ROTATION", "COPY_LOCATION", "COPY_TRANSFORMS", "TRANSFORM"}
"""Constraints that in local space depend on nothing but the channels of their source."""
LOCAL = {"LOCAL", "LOCAL_OWNER_ORIENT"}
WHOLE = {"WORLD", "POSE"}
"""Spaces in which a copied rotation is the source's, seen from the armature."""
AXIAL = {Part.HEAD, Part.NECK}
"""Parts that the spine carries."""
RIGID = 1e-4
"""Largest entry of a rotation times its transpose that is noise, beside the identity's."""
MEETING = 1e-4
"""Largest distance of a head from that of its parent that turns about it, in lengths of the bone."""


class Controls:
    """Bones of an armature as controls or followers, read for each drag.

    Attributes:
        moved: names of bones at whose followers lines end.
    """

    def __init__(self, armature_object: bpy.types.Object) -> None:
        self.armature_object = armature_object
        self._iks: dict[str, tuple[str, Any]] = {}
        self._ik_ends: set[str] = set()
        for bone in armature_object.pose.bones:
            for constraint in bone.constraints:
                if constraint.type in IKS and _acts(constraint):
                    turned = (bone, *bone.parent_recursive)[: constraint.chain_count or None]
                    self._iks.update({each.name: (bone.name, constraint) for each in turned})
                    self._ik_ends.update(name for obj, name in ends_of(constraint) if obj == armature_object)
        self._drivers = dependence.drivers_by_bone(armature_object)
        self._lines: dict[str, list[bpy.types.PoseBone]] = {}
        self._parented: dict[str, bool] = {}
        self.moved: frozenset[str] = frozenset()

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
        if self.parented(bone):
            return ""
        for constraint in placing_constraints(bone):
            return f"Bone '{bone.name}' is placed by Blender's constraint '{constraint.name}'"
        return ""

    def parented(self, bone: bpy.types.PoseBone) -> bool:
        """Whether constraints alone carry a bone, whose channels move it in their frame without a scale."""
        if bone.name not in self._parented:
            acting = list(placing_constraints(bone))
            is_posed = not (all(bone.lock_rotation) and all(bone.lock_location))
            self._parented[bone.name] = (
                bool(acting)
                and is_posed
                and bone.name not in self._iks
                and all(map(_is_parent, acting))
                and _is_rigid(bone)
            )
        return self._parented[bone.name]

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
        """Whether a bone can be swung by its channels."""
        if _is_swing_locked(bone) or self.placing(bone):
            return False
        return not self._is_driven(bone, rotation_channel(bone)[0])

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
        if _is_swing_locked(bone):
            return True
        role = self.figure.roles.get(bone.name)
        if role is not None and role.part is Part.HIPS:
            return True
        if self._leads_ik(bone) or (role is None and self.parented(bone)):
            return True
        return not any(self.turns(each) for each in bone.parent_recursive)

    def body(self, line: Iterable[bpy.types.PoseBone]) -> bpy.types.PoseBone | None:
        """Return the first bone of a line that moves all below it, such as the hips; None if none does."""
        return next((bone for bone in line if self.moves(bone) and not _is_swing_locked(bone)), None)

    def control_of(self, bone: bpy.types.PoseBone) -> bpy.types.PoseBone:
        """Return the bone to move for a pulled one: itself, an ancestor, or the bone that it follows.

        Raises:
            RigError: there is none, or more than one; names the bone.
        """
        return self._control_of(bone, bone, set())

    def line(self, bone: bpy.types.PoseBone) -> list[bpy.types.PoseBone]:
        """Return a bone and its ancestors, below one that constraints place other than beside its parent."""
        if bone.name not in self._lines:
            self._lines[bone.name] = [bone]  # of bones that follow each other in a circle
            line = [bone]
            for above in bone.parent_recursive:
                if self.parented(line[-1]):
                    break
                turned = self.turned_by(above) is not None and self._meets(line[-1], above)
                if self.placing(above) and not (turned or self._is_still(above)):
                    break
                line.append(above)
            while len(line) > 1 and self.placing(line[-1]):
                line.pop()  # nothing above it moves
            self._lines[bone.name] = line
        return self._lines[bone.name]

    def carriers_in(
        self,
        bone: bpy.types.PoseBone,
        names: Collection[str],
        place: Vector,
        seen: tuple[str, ...] = (),
    ) -> list[tuple[str, float, Vector]]:
        """Which of these bones take a place of a bone along, by what parts, and the place that each takes.

        It goes with the nearest of those that carry it; "" stands for none. In a limb by IK it goes with both
        ends of the limb, by its distances from them. All places are in armature space.
        """
        if bone.name in names or bone.name in seen:
            return [(bone.name if bone.name in names else "", 1.0, place)]
        bones = self.armature_object.pose.bones
        shares: list[tuple[bpy.types.PoseBone | None, float, Vector]] = [(bone.parent, 1.0, place)]
        if bone.name in self._iks:
            owner, constraint = self._iks[bone.name]
            limb = (bones[owner], *bones[owner].parent_recursive)[: constraint.chain_count or None]
            end = bones.get(_subtarget(constraint)) if constraint.target == self.armature_object else None
            near, far = (limb[-1].head - place).length, (bones[owner].tail - place).length
            part = near / (near + far) if near + far > 0.0 else 0.0
            shares = [(limb[-1].parent, 1.0 - part, place), (end, part, place)]
        else:
            for each in placing_constraints(bone):
                ends = [bones.get(name) for obj, name in ends_of(each) if obj == self.armature_object]
                sources = [] if each.type in TURNING else [end for end in ends if end is not None]
                if sources:
                    shares = [(above, part * (1.0 - each.influence), at) for above, part, at in shares]
                for source in sources:
                    at = place + (source.head - bone.head) if each.type == "COPY_TRANSFORMS" else place
                    shares.append((source, each.influence / len(sources), at))
        carriers: list[tuple[str, float, Vector]] = []
        for above, part, at in shares:
            if part > 0.0:
                taken = [("", 1.0, at)]
                if above is not None:
                    taken = self.carriers_in(above, names, at, (*seen, bone.name))
                carriers += [(name, part * whole, there) for name, whole, there in taken]
        return carriers

    def ends_at_moved(self, moved: Iterable[str], members: Iterable[str]) -> bool:
        """Whether constraints in a line follow bones that are moved beside it; such lines then end there."""
        before, bones = self.moved, self.armature_object.pose.bones
        still = [bones[name] for name in members if self.placing(bones[name]) and self._is_still(bones[name])]
        self.moved = before | frozenset(moved)
        if all(self._is_still(bone) for bone in still):
            self.moved = before
            return False
        self._lines = {}
        return True

    def is_trunk(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone is of spine, neck or head, or has no role and carries limbs of both sides."""
        roles = self.figure.roles
        if bone.name in roles:
            return roles[bone.name].part in {Part.SPINE, *AXIAL}
        sides = {roles[each.name].side for each in bone.children_recursive if each.name in roles}
        return {Side.LEFT, Side.RIGHT} <= sides

    def is_tweak(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone is shifted and carries nothing of a figure, nor leads IK."""
        is_alone = bone.name not in self.figure.roles and not self._leads_ik(bone)
        return is_alone and _is_swing_locked(bone) and self.shifts(bone)

    def turned_by(self, bone: bpy.types.PoseBone) -> Any:
        """Return the constraint by which a bone copies another one's rotation as the armature sees it.

        None if it has no such constraint, or further ones that place it.
        """
        placing = list(placing_constraints(bone))
        if len(placing) != 1 or placing[0].type != "COPY_ROTATION" or self.is_in_ik(bone):
            return None
        copy = placing[0]
        axes = (copy.use_x, copy.use_y, copy.use_z, not copy.invert_x, not copy.invert_y, not copy.invert_z)
        plain = all(axes) and copy.mix_mode == "REPLACE" and bone.bone.use_inherit_rotation
        whole = {copy.owner_space, copy.target_space} <= WHOLE and copy.target == self.armature_object
        return copy if plain and whole and copy.subtarget in self.armature_object.pose.bones else None

    def _is_still(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone's constraints leave it where it is beside its parent if only its ancestors move."""
        if bone.parent is None or self.is_in_ik(bone) or not bone.bone.use_inherit_rotation:
            return False
        above = set(bone.parent_recursive)
        for constraint in placing_constraints(bone):
            for obj, name in ends_of(constraint):
                source = obj.pose.bones.get(name) if obj == self.armature_object else None
                if source is None or source in above:
                    return False
                is_local = {constraint.owner_space, constraint.target_space} <= LOCAL
                copies = constraint.type in COPIES and is_local
                line = self.line(source)
                if not copies and bone.parent not in line[1:]:
                    return False
                beside = line[: line.index(bone.parent)] if bone.parent in line else [source]
                if any(each.name in self.moved for each in beside):
                    return False
        return True

    def _meets(self, bone: bpy.types.PoseBone, above: bpy.types.PoseBone) -> bool:
        """Whether a bone stands free of bounds at the head of its parent, which constraints turn."""
        apart = (bone.bone.head_local - above.bone.head_local).length
        bounds = [each for each in bone.constraints if each.type == "LIMIT_ROTATION" and _acts(each)]
        is_free = bone.ccd_rig.limit.kind == "NONE" and not bounds
        return is_free and apart <= MEETING * above.bone.length

    def limb(self, bone: bpy.types.PoseBone) -> int:
        """Default number of turning bones in a bone's chain: up to the beginning of its limb.

        A head has no limb: neck and spine lean with it.
        """
        if self.moves(bone):
            return 1
        line = self.line(bone)
        role, body = self.figure.roles.get(bone.name), self.body(line)
        if role is not None and role.part in AXIAL:
            length = len(line) if body is None else line.index(body)
        else:
            length = constraint_list.limb_length(bone.id_data, bone.name) or len(line)
        return max(1, sum(1 for each in line[:length] if self.turns(each)))

    def chain_length(self, bone: bpy.types.PoseBone, turning: int) -> int:
        """Length of a chain with a number of turning bones, from its tip."""
        turned = 0
        line = self.line(bone)
        for count, each in enumerate(line, 1):
            turned += count == 1 or self.turns(each)
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
            raise RigError(f"Bone '{printable(pulled.name)}' follows bones in a circle: drag another bone")
        seen.add(bone.name)
        words = self.placing(bone)
        if not words:
            return self._carrier_of(bone, pulled)
        if words.startswith("Live"):
            raise RigError(words)
        controls = {}
        for obj, name in self._followed(bone):
            source = obj.pose.bones.get(name) if obj == self.armature_object else None
            if source is None:
                raise RigError(f"{words}: move '{obj.name}', which it follows")
            control = self._control_of(source, pulled, set(seen))
            controls[control.name] = control
        if len(controls) > 1:
            raise RigError(f"{words} and follows several bones: drag one of {named(sorted(controls))}")
        if not controls:
            raise RigError(f"{words}, which follows nothing that could be dragged: mute it")
        return next(iter(controls.values()))

    def _carrier_of(self, bone: bpy.types.PoseBone, pulled: bpy.types.PoseBone) -> bpy.types.PoseBone:
        """Return the pulled bone if its channels move it; else the nearest that moves it, or an IK control.

        Mechanisms between an IK control and its target may be turned by constraints, such as a foot roll.
        """
        carrying = []
        for each in (bone, *bone.parent_recursive):
            is_carried = self.parented(each)
            constraints = [] if is_carried else list(placing_constraints(each))
            if each.name in self._iks or any(c.type not in TURNING for c in constraints):
                break
            if not constraints and (self.turns(each) or self.moves(each)):
                carrying.append(each)
            if is_carried:
                break
        if not carrying:
            message = f"Bone '{printable(bone.name)}' is locked, and so is what carries it"
            raise RigError(f"{message}: unlock its rotation")
        control = carrying[0]
        if control == pulled:
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


def _is_swing_locked(bone: bpy.types.PoseBone) -> bool:
    """Whether locks keep a bone from swings."""
    return bool(bone.lock_rotation[0] and bone.lock_rotation[2])


def _is_parent(constraint: Any) -> bool:
    """Whether a constraint carries a bone as a parent does, fully."""
    if constraint.influence < 1.0:
        return False
    if constraint.type == "CHILD_OF":
        return all(
            getattr(constraint, f"use_{what}_{axis}") for what in ("location", "rotation") for axis in "xyz"
        )
    return bool(constraint.type == "ARMATURE")


def _is_rigid(bone: bpy.types.PoseBone) -> bool:
    """Whether a bone's constraints turn and shift it without a scale."""
    carried = (bone.matrix @ with_channels(bone, bone.matrix_basis).inverted_safe()).to_3x3()
    product = carried @ carried.transposed()
    return max(abs(product[i][k] - (i == k)) for i in range(3) for k in range(3)) <= RIGID


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
    return [(obj, name) for obj, name in (*several, target, pole) if obj is not None]
