"""What can be wrong with an armature and its bones: each function makes it so, in Pose Mode."""

from __future__ import annotations

import bpy
import rigs
from mathutils import Matrix
from sound_rig import NAN, hand, limit, object_mode, set_raw, spoil_key


def nothing_active(rig):
    object_mode()
    bpy.data.objects.remove(rig)


def not_an_armature(rig):
    object_mode()
    rigs.activate(bpy.data.objects["Goal"])
    rig.ccd_rig.constraints.clear()


def no_constraint(rig):
    rig.ccd_rig.constraints.clear()


def edit_mode(rig):
    bpy.ops.object.mode_set(mode="EDIT")


def in_no_scene(rig):
    object_mode()
    bpy.context.scene.collection.objects.unlink(rig)


def in_another_scene(rig):
    in_no_scene(rig)
    bpy.data.scenes.new("Elsewhere").collection.objects.link(rig)


def armature_under_nan(rig):
    rig.parent = rigs.empty("Parent", (0, NAN, 0))
    rigs.activate(rig)


def armature_under_a_parent_without_scale(rig):
    rig.parent = rigs.empty("Parent")
    rig.parent.scale = (0, 0, 0)
    rigs.activate(rig)


def armature_loses_scale(rig):
    for frame, size in ((1, 1.0), (4, 0.0)):
        rig.scale = (size,) * 3
        rig.keyframe_insert("scale", frame=frame)
    rig.scale = (1, 1, 1)


def two_rigs(rig):
    object_mode()
    other = rigs.chain(2, name="Other")
    row = other.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Foot", "bone_1", bpy.data.objects["Goal"]


def tip_removed(rig):
    bpy.ops.object.mode_set(mode="EDIT")
    for name in ("bone_3", "bone_2"):
        rig.data.edit_bones.remove(rig.data.edit_bones[name])
    bpy.ops.object.mode_set(mode="POSE")


def tip_renamed(rig):
    rigs.forget_names(rig)
    rig.data.bones["bone_2"].name = "Bone-2"


def bones_without_length(rig):
    object_mode()
    rig.data.transform(Matrix.Scale(0.0, 4))


def bones_nowhere(rig):
    object_mode()
    rig.data.transform(Matrix.Translation((0, 0, NAN)))


def bone_under_one_without_scale(rig):
    hand(rig).chain_length = 2
    rig.pose.bones["bone_0"].scale = (0, 0, 0)


def bone_loses_scale(rig):
    for frame, size in ((1, 1.0), (4, 0.0)):
        rig.pose.bones["bone_1"].scale = (size,) * 3
        rig.pose.bones["bone_1"].keyframe_insert("scale", frame=frame)
    rig.pose.bones["bone_1"].scale = (1, 1, 1)


def bone_under_shear(rig):
    """The parent of the chain is stretched, which shears the chain's first bone."""
    hand(rig).chain_length = 2
    rig.data.bones["bone_1"].use_inherit_rotation = True
    rig.pose.bones["bone_0"].scale = (1, 3, 1)


def bone_under_mirror(rig):
    hand(rig).chain_length = 1
    rig.pose.bones["bone_1"].scale = (-1, -1, -1)


def bone_above_is_nan(rig):
    hand(rig).chain_length = 2
    rig.pose.bones["bone_0"].location.x = NAN


def bone_becomes_nan(rig):
    spoil_key(rig, 'pose.bones["bone_0"].rotation_quaternion', 4, NAN)


def bone_locked_with_a_limit(rig):
    bone = rig.pose.bones["bone_1"]
    bone.rotation_mode, bone.lock_rotation = "XYZ", (False, True, False)
    limit(rig, kind="CONE")


def bones_all_locked(rig):
    for bone in rig.pose.bones:
        bone.lock_rotation = (True, True, True)


def influence_becomes_nan(rig):
    spoil_key(rig, "ccd_rig.constraints[0].influence", 4, NAN)


def euler_order_of_another_version(rig):
    limit(rig, kind="EULER")
    set_raw(rig.pose.bones["bone_1"].ccd_rig.limit, "euler_order", 99)


def comfort_outside_the_limit(rig):
    limit(rig, kind="HINGE", hinge_lower=0.0, hinge_upper=0.5)
    region = rig.pose.bones["bone_1"].ccd_rig.comfort.region
    region.kind, region.hinge_lower, region.hinge_upper = "HINGE", -0.5, 0.3


def comfort_contradicts_itself(rig):
    region = rig.pose.bones["bone_1"].ccd_rig.comfort.region
    region.kind, region.hinge_lower, region.hinge_upper = "HINGE", 0.5, 0.3
