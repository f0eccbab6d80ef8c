"""Figures that visits are about: made bone by bone, and Rigify's.

Runs inside Blender's window, for drive_figures.py and others.
"""

from __future__ import annotations

import math

import bpy
from mathutils import Vector

FRAMES = 12


def empty_scene() -> None:
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    for collection in list(bpy.data.collections):
        bpy.data.collections.remove(collection)
    for action in list(bpy.data.actions):
        bpy.data.actions.remove(action)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, FRAMES
    scene.frame_set(1)


def armature(name: str, bones: list[tuple[str, Vector, Vector, str]]) -> bpy.types.Object:
    """An armature of bones (name, head, tail, parent)."""
    rig = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for bone, head, tail, parent in bones:
        new = rig.data.edit_bones.new(bone)
        new.head, new.tail = head, tail
        if parent:
            new.parent = rig.data.edit_bones[parent]
            new.use_connect = (new.head - new.parent.tail).length < 1e-6
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def tail() -> bpy.types.Object:
    """Eight bones in an arc, straight back and up."""
    points = [Vector((0.0, math.sin(i * 0.16) * 1.6, 1.0 + 0.12 * i * i / 8)) for i in range(9)]
    names = [f"tail.{i:03d}" for i in range(8)]
    return armature(
        "Tail", [(n, points[i], points[i + 1], names[i - 1] if i else "") for i, n in enumerate(names)]
    )


def spider(has_feet: bool = False) -> bpy.types.Object:
    """A body with eight legs of three bones, that walks and bobs by its own keys; with feet it only walks."""
    bones = [("body", Vector((0, 0.25, 0.5)), Vector((0, -0.25, 0.5)), "")]
    for leg in range(4):
        y = -0.6 + 0.4 * leg
        for side, x in (("L", 1.0), ("R", -1.0)):
            joints = [(0.12, 0.3 * y, 0.5), (0.5, 0.7 * y, 0.85), (0.9, 1.0 * y, 0.5), (1.1, 1.15 * y, 0.0)]
            points = [Vector((x * a, b, c)) for a, b, c in joints]
            for i in range(3):
                parent = f"leg{leg}_{i - 1}.{side}" if i else "body"
                bones.append((f"leg{leg}_{i}.{side}", points[i], points[i + 1], parent))
            if has_feet:
                toe = points[3] + Vector((0.15 * x, 0.0, 0.0))
                bones.append((f"foot{leg}.{side}", points[3], toe, f"leg{leg}_2.{side}"))
    rig = armature("Spider", bones)
    body = rig.pose.bones["body"]
    for frame, place in ((1, (0, 0, 0)), (FRAMES // 2, (0, 0.1, -0.12)), (FRAMES, (0, 0.2, 0.05))):
        body.location = (*place[:2], 0.0 if has_feet else place[2])
        body.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(1)
    return rig


def metarig(module: str) -> bpy.types.Object:
    if "rigify" not in bpy.context.preferences.addons:
        bpy.ops.preferences.addon_enable(module="rigify")
    from rigify import metarigs  # part of Blender, importable once it is enabled

    rig = bpy.data.objects.new(module.rpartition(".")[2], bpy.data.armatures.new("metarig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    __import__(f"{metarigs.__name__}.{module}", fromlist=["create"]).create(rig)
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def human() -> bpy.types.Object:
    """What Rigify generates from its human; as it leaves it, the new rig is the active object."""
    source = metarig("human")
    made = generated(source)
    bpy.data.objects.remove(source)
    return made


def generated(source: bpy.types.Object) -> bpy.types.Object:
    """What the button in the metarig's properties makes of it, or makes anew."""
    bpy.context.view_layer.objects.active = source
    source.select_set(True)
    bpy.ops.pose.rigify_generate()
    made = source.data.rigify_target_rig
    bpy.context.view_layer.objects.active = made
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    made.select_set(True)
    return made


def cat() -> bpy.types.Object:
    return metarig("Animals.cat")


def shifting_quadruped() -> bpy.types.Object:
    """Rigify's basic quadruped, whose body goes to the front and back by its own keys, feet and all."""
    rig = metarig("Basic.basic_quadruped")
    hips = next(bone for bone in rig.pose.bones if bone.parent is None)
    front = hips.bone.matrix_local.to_3x3().inverted() @ Vector((0.03, -0.1, 0.0))
    for frame, part in ((1, 0.0), (FRAMES // 2, 1.0), (FRAMES, 0.0)):
        hips.location = part * front
        hips.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(1)
    return rig
