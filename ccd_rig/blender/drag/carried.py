# SPDX-License-Identifier: GPL-3.0-or-later
"""Limbs that hang on a body by constraints, as generated rigs have them, joined to one skeleton for a drag.

A limb by FK is turned by its controls. A limb by IK is turned by Blender: its joints are solved with the
others, so that the body takes its part of a pull and stays in reach, but nothing is written to them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import bpy

from ...errors import RigError
from ...skeleton.joints import Joint, Skeleton
from ...skeleton.kinematics import forward_kinematics
from ...skeleton.pose import Pose
from ..figures.role import Part
from ..rig.armature import RigReading
from .controls import TURNING, Controls, ends_of, placing_constraints

TOUCHING = 1e-4
"""Largest distance of heads that are at one place, in lengths of the bone."""


@dataclass(frozen=True)
class Hung:
    """A limb that hangs on the body's control.

    Attributes:
        control: bone that is dragged or pinned.
        inherits: whether the limb's first bone turns with the body.
        ik: bones that Blender's IK turns to `control`, from the body; empty for a limb by FK.
    """

    control: str
    inherits: bool = True
    ik: tuple[str, ...] = ()


class Carrier:
    """The control of a figure's body, and the limbs that follow it.

    Attributes:
        body: the control.
    """

    def __init__(self, controls: Controls, body: bpy.types.PoseBone) -> None:
        self.controls, self.body = controls, body
        self._carried: dict[str, bool] = {body.name: True}

    @classmethod
    def of(cls, controls: Controls) -> Carrier | None:
        """The carrier of an armature; None if no control of the hips is moved by its channels."""
        bones = controls.armature_object.pose.bones
        for name, role in controls.figure.roles.items():
            if role.part is Part.HIPS and name in bones:
                body = bones[name]
                if not controls.placing(body) and controls.shifts(body):
                    return cls(controls, body)
        return None

    def hung(self, bone: bpy.types.PoseBone) -> Hung | None:
        """How a bone hangs on the body; None if it does not, or not as a whole."""
        controls = self.controls
        try:
            control = bone if not controls.placing(bone) else controls.control_of(bone)
        except RigError:
            return None
        line = controls.line(control)
        if self.body in line:
            return Hung(control.name)
        leading = self._leading(control)
        if leading is not None:
            ik = self._ik_limbs[leading.name]
            first = controls.armature_object.pose.bones[ik[0]]
            is_free = not any(leading.lock_location) and not self._is_carried(leading)
            return Hung(leading.name, True, ik) if is_free and self._head_is_carried(first) else None
        if controls.moves(control) or not self._head_is_carried(line[-1]):
            return None
        return Hung(control.name, line[-1].parent is not None and self._is_carried(line[-1].parent))

    def _leading(self, control: bpy.types.PoseBone) -> bpy.types.PoseBone | None:
        """The control that an IK limb follows: the bone, or what carries it, as a foot its heel."""
        for bone in (control, *control.parent_recursive):
            if self.controls.is_in_ik(bone):
                return self._leading(self.controls.control_of(bone))
            if bone.name in self._ik_limbs and self.controls.moves(bone):
                return bone
        return None

    @cached_property
    def _ik_limbs(self) -> dict[str, tuple[str, ...]]:
        """{control of a limb: bones that Blender's IK turns to it, from the body}."""
        limbs: dict[str, tuple[str, ...]] = {}
        for tip, bones in self.controls.ik_chains().items():
            try:
                control = self.controls.control_of(self.controls.armature_object.pose.bones[tip])
            except RigError:
                continue
            limbs.setdefault(control.name, bones)
        return limbs

    def _is_carried(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone moves with the body as one: all that places it does."""
        if bone.name not in self._carried:
            self._carried[bone.name] = False  # of bones that follow each other in a circle
            self._carried[bone.name] = not self.controls.is_in_ik(bone) and self._follows(bone, ())
        return self._carried[bone.name]

    def _head_is_carried(self, bone: bpy.types.PoseBone) -> bool:
        """Whether a bone's head moves with the body; constraints may turn the bone about it."""
        return self._follows(bone, TURNING)

    def _follows(self, bone: bpy.types.PoseBone, ignored: Collection[str]) -> bool:
        sources: list[tuple[Any, str]] = []
        parent = bone.parent
        for constraint in reversed(list(placing_constraints(bone))):
            if constraint.type in ignored:
                continue
            sources += ends_of(constraint)
            if constraint.type == "COPY_TRANSFORMS" and constraint.influence >= 1.0:
                parent = None  # what stands before it has no effect
                break
        rig = self.controls.armature_object
        carried = [
            thing == rig and name in rig.pose.bones and self._is_carried(rig.pose.bones[name])
            for thing, name in sources
        ]
        if parent is not None:
            apart = (bone.bone.head_local - parent.bone.head_local).length
            meets = bool(ignored) and apart <= TOUCHING * parent.bone.length
            carried.append(self._is_carried(parent) or (meets and self._head_is_carried(parent)))
        return bool(carried) and all(carried)


@dataclass(frozen=True)
class Joined:
    """Limbs joined to the body that carries them.

    Attributes:
        skeleton: the body, the bones that were read, and those that Blender's IK turns.
        pose: at the press.
        order: index in the reading of each joint that was read.
    """

    skeleton: Skeleton
    pose: Pose
    order: tuple[int, ...]

    @classmethod
    def of(
        cls,
        reading: RigReading,
        body: str,
        hung: Mapping[str, bool],
        limbs: Collection[tuple[str, ...]],
        bones: Any,
    ) -> Joined:
        """Join limbs to a body.

        Args:
            reading: of the body, which has no parent in it, and of limbs by FK.
            body: its bone.
            hung: {first bone of a limb by FK: whether it turns with the body}.
            limbs: bones that Blender's IK turns, from the body, of each limb.
            bones: evaluated pose bones.
        """
        first = reading.bones.index(body)
        order = (first, *(j for j in range(len(reading.bones)) if j != first))
        places = {j: k for k, j in enumerate(order)}
        base = forward_kinematics(reading.skeleton, reading.pose)[first]
        back = base.rotation.inverted()
        joints: list[Joint] = []
        for j in order:
            joint = reading.skeleton.joints[j]
            parent = places[joint.parent] if joint.parent >= 0 else -1
            if reading.bones[j] in hung and parent < 0:
                turned = back @ joint.rest_rotation if hung[reading.bones[j]] else joint.rest_rotation
                joint = replace(
                    joint,
                    parent=0,
                    offset=back @ (joint.offset - base.translation),
                    rest_rotation=turned,
                    inherit_rotation=hung[reading.bones[j]],
                )
            else:
                joint = replace(joint, parent=parent)
            joints.append(joint)
        for limb in limbs:
            frames = [(base.translation, base.rotation, 0)]
            for name in limb:
                head, rotation = bones[name].head.copy(), bones[name].matrix.to_quaternion()
                at, turned, parent = frames[-1]
                offset = turned.inverted() @ (head - at)
                length = (bones[name].tail - head).length
                joints.append(Joint(name, parent, offset, turned.inverted() @ rotation, length))
                frames.append((head, rotation, len(joints) - 1))
        still = Pose.rest(Skeleton(joints))
        count = len(order)
        pose = Pose(
            (*(reading.pose.rotations[j] for j in order), *still.rotations[count:]),
            (*(reading.pose.translations[j] for j in order), *still.translations[count:]),
        )
        return cls(Skeleton(joints), pose, order)

    def read(self, pose: Pose) -> Pose:
        """The pose of the reading."""
        places = {j: k for k, j in enumerate(self.order)}
        joints = range(len(self.order))
        return Pose.trusted(
            tuple(pose.rotations[places[j]] for j in joints),
            tuple(pose.translations[places[j]] for j in joints),
        )
