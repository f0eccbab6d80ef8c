"""What is locked, linked or animated so that it cannot be baked, and rows that are not there."""

from __future__ import annotations

import bpy
import rigs
from sound_rig import keyed_curve, object_mode, set_raw


def curve_locked(rig):
    keyed_curve(rig).lock = True


def group_locked(rig):
    keyed_curve(rig).group.lock = True


def curve_muted(rig):
    keyed_curve(rig).mute = True


def curve_modified(rig):
    keyed_curve(rig).modifiers.new("NOISE")


def rotation_driven(rig):
    rig.pose.bones["bone_2"].driver_add("rotation_quaternion", 1)


def rotation_mode_keyed(rig):
    bone = rig.pose.bones["bone_2"]
    for frame, mode in ((1, "QUATERNION"), (4, "XYZ"), (5, "QUATERNION")):
        bone.rotation_mode = mode
        bone.keyframe_insert("rotation_mode", frame=frame)


def rotation_mode_driven(rig):
    rig.pose.bones["bone_2"].driver_add("rotation_mode").driver.type = "SUM"
    rigs.update()


def strip_tweaked(rig):
    rigs.tweak(rig)


def armature_linked(rig, tmp_path):
    """Gives back the linked armature, which takes the place of the local one."""
    object_mode()
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {rig})
    bpy.data.objects.remove(rig)
    bpy.data.objects.remove(bpy.data.objects["Goal"])
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.objects = ["Rig"]
    linked = wanted.objects[0]
    for thing in (linked, linked.ccd_rig.constraints[0].target):
        bpy.context.scene.collection.objects.link(thing)
    rigs.activate(linked)
    return linked


def armature_in_a_locked_override(rig, tmp_path):
    linked = armature_linked(rig, tmp_path)
    made = linked.override_create(remap_local_usages=True)
    made.override_library.is_system_override = True
    rigs.activate(made)


def link_action(rig, tmp_path):
    path, action = str(tmp_path / "library.blend"), rig.animation_data.action
    bpy.data.libraries.write(path, {action})
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.actions = [action.name]
    return wanted.actions[0]


def assign(rig, action):
    rig.animation_data.action = action
    if hasattr(action, "slots"):
        rig.animation_data.action_slot = action.slots[0]


def action_linked(rig, tmp_path):
    assign(rig, link_action(rig, tmp_path))


def action_overridden(rig, tmp_path):
    assign(rig, link_action(rig, tmp_path).override_create())


def simulated(rig):
    object_mode()
    mesh = bpy.data.meshes.new("Ball")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [], [(0, 1, 2), (0, 1, 3), (0, 2, 3)])
    ball = rigs.link(mesh, "Ball")
    bpy.ops.rigidbody.world_add()
    bpy.ops.rigidbody.object_add()
    bpy.data.objects["Goal"].parent = ball
    rigs.activate(rig)


def on_a_cloth(rig):
    object_mode()
    mesh = bpy.data.meshes.new("Flag")
    mesh.from_pydata([(0, 0, 1), (1, 0, 1), (0, 1, 1)], [], [(0, 1, 2)])
    flag, goal = rigs.link(mesh, "Flag"), bpy.data.objects["Goal"]
    flag.modifiers.new("Wind", "CLOTH")
    goal.parent, goal.parent_type, goal.parent_vertices = flag, "VERTEX", (0, 0, 0)
    rigs.activate(rig)


def two_rows_of_one_name(rig):
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Other", "bone_3", bpy.data.objects["Goal"]
    set_raw(row, "name", "Hand")


def no_bone_selected(rig):
    bpy.ops.pose.select_all(action="DESELECT")
