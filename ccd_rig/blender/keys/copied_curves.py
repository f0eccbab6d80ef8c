# SPDX-License-Identifier: GPL-3.0-or-later
"""The animation of one property given to another one of the same object: F-curve and driver."""

from __future__ import annotations

import bpy
import numpy as np

from . import channels, keyframes


def obstacle(armature_object: bpy.types.Object, path: str) -> str:
    """Why the animation of a property cannot be copied, in words that follow its name; none if it can."""
    curve = _curve(armature_object, path)
    animation = armature_object.animation_data
    if curve is None or animation is None or animation.action is None:
        return ""
    action = animation.action
    if not action.is_editable:
        return f"has keys in action '{action.name}', which is linked from a library: make it local"
    if others := channels.shared_users(armature_object):
        names = ", ".join(f"'{name}'" for name in others)
        return f"has keys in action '{action.name}', which moves {names} too: make it a single user"
    return ""


def is_moved(armature_object: bpy.types.Object, path: str) -> bool:
    """Whether the action in use or a driver moves a property."""
    animation = armature_object.animation_data
    drivers = () if animation is None else animation.drivers
    return _curve(armature_object, path) is not None or any(each.data_path == path for each in drivers)


def in_strips(armature_object: bpy.types.Object, path: str) -> bool:
    """Whether NLA strips move a property; what they hold is not copied."""
    animation = armature_object.animation_data
    strips = () if animation is None else (strip for t in animation.nla_tracks for strip in t.strips)
    return any(curve.data_path == path for strip in strips for curve in channels.strip_fcurves(strip))


def copy(armature_object: bpy.types.Object, source: str, path: str) -> None:
    """Give a property the F-curve and the driver that another one has.

    Args:
        armature_object: owns both; `obstacle` has no objection.
        source: data path of the property that is animated.
        path: data path of the other one, which is not animated.
    """
    animation = armature_object.animation_data
    if animation is None:
        return
    driver = next((each for each in animation.drivers if each.data_path == source), None)
    if driver is not None:
        animation.drivers.from_existing(src_driver=driver).data_path = path
    curve = _curve(armature_object, source)
    if curve is None:
        return
    made = channels.bag_of(armature_object).fcurves.new(path)
    keys = keyframes.read(curve)
    keyframes.store(made, keys, np.ones(len(keys["co"]), np.bool_))
    made.extrapolation, made.mute = curve.extrapolation, curve.mute
    for modifier in curve.modifiers:
        _copy_values(modifier, made.modifiers.new(modifier.type))


def _curve(armature_object: bpy.types.Object, path: str) -> bpy.types.FCurve | None:
    return next((c for c in channels.fcurves_of(armature_object) if c.data_path == path), None)


def _copy_values(source: bpy.types.FModifier, made: bpy.types.FModifier) -> None:
    for name, prop in source.bl_rna.properties.items():
        if not prop.is_readonly and name != "active":
            setattr(made, name, getattr(source, name))
