"""What can be wrong with a target: each function makes it so, in Pose Mode."""

from __future__ import annotations

import math

import bpy
import rigs
from mathutils import Matrix
from sound_rig import NAN, hand, object_mode, spoil_key


def target_removed(rig):
    bpy.data.objects.remove(bpy.data.objects["Goal"])


def target_deleted(rig):
    """In the viewport: the constraint keeps the object in the file."""
    object_mode()
    rigs.activate(bpy.data.objects["Goal"])
    bpy.ops.object.delete()
    rigs.activate(rig)


def target_in_another_scene(rig):
    goal = bpy.data.objects["Goal"]
    bpy.context.scene.collection.objects.unlink(goal)
    bpy.data.scenes.new("Elsewhere").collection.objects.link(goal)


def target_is_the_armature(rig):
    hand(rig).target = rig


def target_bone_missing(rig):
    hand(rig).target, hand(rig).target_bone = rig, "bone_9"


def target_bone_in_the_chain(rig):
    hand(rig).target, hand(rig).target_bone = rig, "bone_1"


def target_bone_below_the_chain(rig):
    hand(rig).target, hand(rig).target_bone = rig, "bone_3"


def target_on_a_bone(rig):
    goal = bpy.data.objects["Goal"]
    goal.parent, goal.parent_type, goal.parent_bone = rig, "BONE", "bone_1"


def target_follows_a_bone(rig):
    follow = bpy.data.objects["Goal"].constraints.new("COPY_LOCATION")
    follow.target, follow.subtarget = rig, "bone_3"


def target_in_a_rig_that_hangs_on_the_chain(rig):
    object_mode()
    other = rigs.chain(2, name="Other")
    other.parent, other.parent_type, other.parent_bone = rig, "BONE", "bone_2"
    hand(rig).target, hand(rig).target_bone = other, "bone_1"
    rigs.activate(rig)


def target_is_nan(rig):
    goal = bpy.data.objects["Goal"]
    goal.animation_data_clear()
    goal.location.x = NAN


def target_matrix_is_nan(rig):
    goal = bpy.data.objects["Goal"]
    goal.animation_data_clear()
    goal.matrix_world = Matrix.Translation((0, 0, NAN))


def target_turns_by_nan(rig):
    bpy.data.objects["Goal"].rotation_euler.x = NAN


def target_under_nan(rig):
    bpy.data.objects["Goal"].parent = rigs.empty("Parent", (NAN, 0, 0))
    rigs.activate(rig)


def target_bone_is_nan(rig):
    object_mode()
    other = rigs.chain(2, name="Other")
    other.pose.bones["bone_0"].location.x = NAN
    hand(rig).target, hand(rig).target_bone = other, "bone_1"
    rigs.activate(rig)


def target_becomes_nan(rig):
    spoil_key(bpy.data.objects["Goal"], "location", 4, NAN)


def target_at_infinity(rig):
    """Blender turns an infinite place into the largest number it has."""
    goal = bpy.data.objects["Goal"]
    goal.animation_data_clear()
    goal.location = (math.inf, 0, 0)


def target_from_a_library(rig, tmp_path):
    """A linked target with the name of a local object."""
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {bpy.data.objects["Goal"]})
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.objects = ["Goal"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    hand(rig).target = wanted.objects[0]
