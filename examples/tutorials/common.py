# SPDX-License-Identifier: GPL-3.0-or-later
"""What all tutorials do: select bones as a click does, key values, press buttons that must not be grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import radians
from typing import Any

import addon_utils
import bpy
from mathutils import Matrix, Quaternion, Vector
from picture import quiet


class NotDone(Exception):
    """A step of a tutorial that cannot be done any more; the message says which."""


def armature(
    name: str, bones: Sequence[tuple[str, Sequence[float], Sequence[float], str]]
) -> bpy.types.Object:
    """An armature object in the scene.

    Args:
        name: of the object.
        bones: each bone's name, head and tail in metres, and its parent's name or "". Parents come first; a
            bone that begins where its parent ends is connected.
    """
    rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    rig.select_set(True)
    bpy.ops.object.mode_set(mode="EDIT")
    made = rig.data.edit_bones
    for bone, head, tail, parent in bones:
        new = made.new(bone)
        new.head, new.tail = head, tail
        if parent:
            new.parent = made[parent]
            new.use_connect = (new.head - new.parent.tail).length < 1e-6
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def remove_bones(rig: bpy.types.Object, *names: str) -> None:
    """Remove the bones of these names on both sides."""
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for name in names:
        for side in "LR":
            rig.data.edit_bones.remove(rig.data.edit_bones[f"{name}.{side}"])
    bpy.ops.object.mode_set(mode="OBJECT")


def select(rig: bpy.types.Object, *bones: str, beside: bpy.types.Object | None = None) -> None:
    """Select bones in Pose Mode, the last one active; `beside` is an object that was selected before."""
    if bpy.context.object is not None and bpy.context.object.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.object.select_all(action="DESELECT")
    if beside is not None:
        beside.select_set(True)
    rig.select_set(True)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    for bone in bones:
        bpy.ops.object.select_pattern(pattern=bone, extend=True)
    if bones:
        rig.data.bones.active = rig.data.bones[bones[-1]]


def press(command: Any, **options: Any) -> None:
    """Press a button of CCD Rig.

    Raises:
        NotDone: it is grey, or refuses.
    """
    name = command.idname_py()
    if not command.poll():
        raise NotDone(f"{name} is grey")
    if command(**options) != {"FINISHED"}:
        raise NotDone(f"{name} was refused")


def set_range(first: int, last: int) -> None:
    """The scene's frames."""
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = first, last
    scene.frame_set(first)


def key(thing: Any, field: str, values: Mapping[int, Any]) -> None:
    """Key a field of an object or a pose bone at frames."""
    for frame, value in values.items():
        setattr(thing, field, value)
        thing.keyframe_insert(field, frame=frame)


def move(thing: bpy.types.Object, shifts: Mapping[int, Sequence[float]]) -> None:
    """Key an object's location as shifts, in metres of the world, from where it is now."""
    bpy.context.view_layer.update()
    start = thing.matrix_world.translation.copy()
    parent = thing.matrix_world @ thing.matrix_basis.inverted()
    key(thing, "location", {f: parent.inverted() @ (start + Vector(shift)) for f, shift in shifts.items()})


def target(rig: bpy.types.Object, bone: str) -> bpy.types.Object:
    """The target of the constraint whose bone this is."""
    return next(row.target for row in rig.ccd_rig.constraints if row.tip == bone)


def metarig(kind: str) -> bpy.types.Object:
    """One of the metarigs of Rigify, which comes with Blender: "human", "basic_human", "wolf", ..."""
    with quiet():  # Rigify tells what it loads
        addon_utils.enable("rigify", default_set=True)
        getattr(bpy.ops.object, f"armature_{kind}_metarig_add")()
    if bpy.context.object.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    return bpy.context.object


def turn(bone: bpy.types.PoseBone, *turns: tuple[str, float]) -> Quaternion:
    """The rotation of a bone's channels that turns it from rest about axes of its armature.

    Its parents are at rest, or turned about the same axis.

    Args:
        bone: of the armature.
        turns: axis ("X", "Y" or "Z") and degrees, the first one applied first.
    """
    rest = bone.bone.matrix_local.to_3x3()
    whole = Matrix.Identity(3)
    for axis, angle in turns:
        whole = Matrix.Rotation(radians(angle), 3, axis) @ whole
    return (rest.inverted() @ whole @ rest).to_quaternion()


def lower_arms(rig: bpy.types.Object, frame: int) -> None:
    """Key arms that hang, with elbows a little bent, in place of the metarig's spread ones."""
    for side, sign in (("L", 1.0), ("R", -1.0)):
        arm, forearm = rig.pose.bones[f"upper_arm.{side}"], rig.pose.bones[f"forearm.{side}"]
        key(arm, "rotation_quaternion", {frame: turn(arm, ("Y", sign * 48.0), ("X", 8.0))})
        key(forearm, "rotation_quaternion", {frame: turn(forearm, ("X", -18.0))})


def curves(thing: bpy.types.Object) -> list[bpy.types.FCurve]:
    """The F-curves of an object's action, in the actions of all Blenders."""
    action = thing.animation_data.action
    if hasattr(action, "fcurves"):
        return list(action.fcurves)
    return [
        curve
        for layer in action.layers
        for strip in layer.strips
        for bag in strip.channelbags
        for curve in bag.fcurves
    ]
