# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches between FK and IK: properties that decide whether bones of a chain move anything.

In rigs such as Rigify's a bone copies an FK control first, and then an IK bone, by a constraint whose
influence a driver reads from a property of a control. Keys on the FK control show only where the property
takes that influence to 0. A switch is known by just this structure, whatever its name is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import bpy

from ..rig import clamps
from .dependence import BONE_PATH

_FOLLOWS = {"COPY_TRANSFORMS", "COPY_ROTATION"}  # constraints that replace a bone's rotation
_PROPERTY = re.compile(r'\["((?:[^"\\]|\\.)*)"\]')
_NUMBER = r"(\d+(?:\.\d*)?)"
NEAR = 1e-3
"""Part of its way from which a switch counts as switched."""


@dataclass(frozen=True)
class FkSwitch:
    """A property of a bone that lets bones of chains move others.

    Attributes:
        bone: name of the bone that has it.
        name: of the property.
        path: its data path from the armature object.
        value: at which the chains' bones move others.
        chain_bones: names of these.
    """

    bone: str
    name: str
    path: str
    value: float
    chain_bones: tuple[str, ...]

    def __str__(self) -> str:
        return f"'{self.name}' of bone '{self.bone}'"

    def is_fk(self, value: float) -> bool:
        """Whether the chains' bones move others at a value of the property."""
        return abs(value - self.value) <= NEAR


def fk_switches(armature_object: bpy.types.Object, bones: Collection[str]) -> tuple[FkSwitch, ...]:
    """The switches of which it depends whether these bones move others, by their paths."""
    animation = armature_object.animation_data
    drivers: dict[str, bpy.types.FCurve] = {}
    for curve in () if animation is None else animation.drivers:
        if curve.data_path.endswith(".influence") and not curve.mute:
            drivers[curve.data_path] = curve
    found: dict[str, FkSwitch] = {}
    for pose_bone in armature_object.pose.bones if drivers else ():
        for path, value, chain_bone in _switches_of(armature_object, pose_bone, set(bones), drivers):
            before = found.get(path)
            names = (*(before.chain_bones if before else ()), chain_bone)
            bone, name = _parts(path)
            found[path] = FkSwitch(bone, name, path, value, tuple(dict.fromkeys(names)))
    return tuple(found[path] for path in sorted(found) if _is_number(armature_object, path))


def _is_number(armature_object: bpy.types.Object, path: str) -> bool:
    """Whether there is a number at a data path."""
    try:
        return isinstance(armature_object.path_resolve(path), bool | int | float)
    except ValueError:
        return False


def _switches_of(
    armature_object: bpy.types.Object,
    pose_bone: Any,
    bones: Collection[str],
    drivers: Mapping[str, bpy.types.FCurve],
) -> Iterator[tuple[str, float, str]]:
    """Data path of a property, the value at which the bone follows a chain's bone, and that bone's name.

    A bone that follows nothing but chains' bones has no other way: the property says how much it follows.
    """
    followers = [
        each
        for each in clamps.user_constraints(pose_bone)
        if not each.mute and each.type in _FOLLOWS and each.target == armature_object
    ]
    if all(each.subtarget in bones for each in followers):
        return
    followed = ""
    for constraint in followers:
        is_chain = constraint.subtarget in bones
        followed = constraint.subtarget if is_chain else followed
        curve = drivers.get(constraint.path_from_id("influence"))
        asked = _linear(armature_object, curve) if curve is not None and followed else None
        if asked is not None:
            path, shift, slope = asked
            yield path, (float(is_chain) - shift) / slope, followed


def _linear(armature_object: bpy.types.Object, curve: bpy.types.FCurve) -> tuple[str, float, float] | None:
    """Of a driver that is shift + slope * property of a bone: the path, the shift, the slope; else None."""
    driver = curve.driver
    if len(driver.variables) != 1:
        return None
    variable = driver.variables[0]
    target = variable.targets[0]
    match = BONE_PATH.match(target.data_path)
    if variable.type != "SINGLE_PROP" or target.id != armature_object or match is None:
        return None
    if _PROPERTY.fullmatch(target.data_path, match.end()) is None:
        return None
    shift, slope = 0.0, 1.0
    if driver.type == "SCRIPTED":
        words = re.fullmatch(rf"\s*(?:{_NUMBER}\s*-\s*)?{re.escape(variable.name)}\s*", driver.expression)
        if words is None:
            return None
        shift, slope = (0.0, 1.0) if words[1] is None else (float(words[1]), -1.0)
    if len(curve.keyframe_points) or len(curve.modifiers):  # how the driver's value is mapped
        first, middle, last = (curve.evaluate(at) for at in (0.0, 0.5, 1.0))
        if abs(first + last - 2.0 * middle) > NEAR:
            return None
        shift, slope = first + (last - first) * shift, (last - first) * slope
    return None if slope == 0.0 else (target.data_path, shift, slope)


def _parts(path: str) -> tuple[str, str]:
    """Names of the bone and of the property in a data path."""
    match = BONE_PATH.match(path)
    assert match is not None
    name = _PROPERTY.fullmatch(path, match.end())
    assert name is not None
    return re.sub(r"\\(.)", r"\1", match[1]), re.sub(r"\\(.)", r"\1", name[1])
