# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches between FK and IK: properties that decide whether the bones of a chain move others.

In rigs such as Rigify's, a bone copies an FK control, and then an IK bone. A property of a control drives the
influence of the second constraint. Keys of the FK control take effect only if it drives this influence to 0.
A switch is recognised by this structure, whatever its name.
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
"""Distance of a switch from its FK value up to which it counts as switched to FK."""


@dataclass(frozen=True)
class FkSwitch:
    """Property of a bone that lets the bones of chains move others.

    Attributes:
        bone: name of the bone with the property.
        name: of the property.
        path: data path of the property from the armature object.
        value: at which the bones of chains move others (FK).
        chain_bones: names of the bones of chains.
    """

    bone: str
    name: str
    path: str
    value: float
    chain_bones: tuple[str, ...]

    def __str__(self) -> str:
        return f"'{self.name}' of bone '{self.bone}'"

    def is_fk(self, value: float) -> bool:
        """Whether a value of the property lets the bones of chains move others."""
        return abs(value - self.value) <= NEAR


def fk_switches(armature_object: bpy.types.Object, bones: Collection[str]) -> tuple[FkSwitch, ...]:
    """Return the switches that decide whether bones move others, in the order of their paths."""
    animation = armature_object.animation_data
    drivers: dict[str, bpy.types.FCurve] = {}
    for curve in () if animation is None else animation.drivers:
        if curve.data_path.endswith(".influence") and not curve.mute:
            drivers[curve.data_path] = curve
    switches: dict[str, FkSwitch] = {}
    for pose_bone in armature_object.pose.bones if drivers else ():
        for path, value, chain_bone in _switches_of(armature_object, pose_bone, set(bones), drivers):
            before = switches.get(path)
            names = (*(before.chain_bones if before else ()), chain_bone)
            bone, name = _bone_and_property(path)
            switches[path] = FkSwitch(bone, name, path, value, tuple(dict.fromkeys(names)))
    return tuple(switches[path] for path in sorted(switches) if _is_number(armature_object, path))


def _is_number(armature_object: bpy.types.Object, path: str) -> bool:
    """Whether the property at a data path exists and is a number."""
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
    """Yield (path of a property, value, bone of a chain): at this value `pose_bone` follows the bone.

    If a bone follows bones of chains alone, such a property is a strength, not a switch.
    """
    copies = [
        constraint
        for constraint in clamps.user_constraints(pose_bone)
        if not constraint.mute and constraint.type in _FOLLOWS and constraint.target == armature_object
    ]
    if all(constraint.subtarget in bones for constraint in copies):
        return
    chain_bone = ""
    for constraint in copies:
        is_chain = constraint.subtarget in bones
        chain_bone = constraint.subtarget if is_chain else chain_bone
        curve = drivers.get(constraint.path_from_id("influence"))
        linear = _linear(armature_object, curve) if curve is not None and chain_bone else None
        if linear is not None:
            path, shift, slope = linear
            yield path, (float(is_chain) - shift) / slope, chain_bone


def _linear(armature_object: bpy.types.Object, curve: bpy.types.FCurve) -> tuple[str, float, float] | None:
    """Return (path, shift, slope) of a driver equal to shift + slope * property of a bone; else None."""
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
    if len(curve.keyframe_points) or len(curve.modifiers):  # they map the driver's value
        first, middle, last = (curve.evaluate(at) for at in (0.0, 0.5, 1.0))
        if abs(first + last - 2.0 * middle) > NEAR:
            return None
        shift, slope = first + (last - first) * shift, (last - first) * slope
    return None if slope == 0.0 else (target.data_path, shift, slope)


def _bone_and_property(path: str) -> tuple[str, str]:
    """Return the names of the bone and of the property in a data path."""
    match = BONE_PATH.match(path)
    assert match is not None
    name = _PROPERTY.fullmatch(path, match.end())
    assert name is not None
    return re.sub(r"\\(.)", r"\1", match[1]), re.sub(r"\\(.)", r"\1", name[1])
