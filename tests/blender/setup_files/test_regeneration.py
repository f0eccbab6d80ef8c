"""What Rigify's generation of a rig takes away comes back: limits by themselves, all of it by a button."""

from __future__ import annotations

import bpy
import pytest
import rigs
from mathutils import Quaternion
from operator_calls import fails

BONES = ("forearm_fk.L", "hand_fk.L", "shin_fk.R")


def generate(metarig):
    rigs.activate(metarig)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.rigify_generate()
    return metarig.data.rigify_target_rig


@pytest.fixture
def generated(ext):
    """A metarig and its generated rig with limits and a constraint."""
    metarig = rigs.metarig("basic_human")
    rig = generate(metarig)
    for number, name in enumerate(BONES):
        joint = rig.pose.bones[name].ccd_rig
        joint.limit.kind, joint.limit.hinge_upper, joint.stiffness = "HINGE", 1.0 + number, 0.25
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.chain_length, row.target = "Hand", "hand_fk.L", 4, rigs.empty("Goal")
    return metarig, rig


def limits(rig):
    return [
        (j.limit.kind, round(j.limit.hinge_upper, 3), round(j.stiffness, 3))
        for j in (rig.pose.bones[name].ccd_rig for name in BONES)
    ]


LIMITS = [("HINGE", 1.0, 0.25), ("HINGE", 2.0, 0.25), ("HINGE", 3.0, 0.25)]


def test_limits_outlast_generation_by_themselves(ext, generated):
    metarig, rig = generated
    start = Quaternion((0.8, 0.6, 0.0, 0.0))
    ext.module("ccd_rig.blender.properties.new_constraints").start_from(rig, {"shin_fk.L": start})
    for _ in range(2):
        identity = rig.data["rig_id"]
        assert generate(metarig) == rig
        assert rig.data["rig_id"] != identity
        assert limits(rig) == LIMITS
        shin = rig.pose.bones["shin_fk.L"].ccd_rig
        assert shin.start_rotation[:] == pytest.approx(start[:])
        assert shin.start_before[:] == (1.0, 0.0, 0.0, 0.0)  # its pose is at rest again, as Rigify leaves all
        assert [row.tip for row in rig.ccd_rig.constraints] == ["hand_fk.L"]
    assert ext.module("ccd_rig.blender.setup_files")._bone_settings == {}
    assert rig.pose.bones["hand_fk.L"].ccd_rig.known_as == "hand_fk.L"


def test_settings_changed_between_are_those_that_come_back(ext, generated):
    metarig, rig = generated
    generate(metarig)
    rig.pose.bones[BONES[0]].ccd_rig.limit.hinge_upper = 0.5
    rig.pose.bones[BONES[1]].property_unset("ccd_rig")
    generate(metarig)
    assert limits(rig) == [("HINGE", 0.5, 0.25), ("NONE", pytest.approx(1.571), 0.0), LIMITS[2]]


def test_a_rig_made_anew_gets_it_back_by_the_button(ext, generated):
    metarig, rig = generated
    generate(metarig)
    bpy.data.objects.remove(rig)
    rigs.update()
    new = generate(metarig)
    assert limits(new)[0][0] == "NONE"
    assert not new.ccd_rig.constraints
    rigs.activate(new)
    assert bpy.ops.ccd_rig.setup_restore() == {"FINISHED"}
    assert limits(new) == LIMITS
    (row,) = new.ccd_rig.constraints
    assert (row.name, row.tip, row.chain_length, row.target.name) == ("Hand", "hand_fk.L", 4, "Goal")


def test_saving_keeps_the_set_up_in_the_metarig(ext, generated, tmp_path):
    rig = generated[1]
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    for bone in rig.pose.bones:
        bone.property_unset("ccd_rig")
    rig.ccd_rig.constraints.clear()
    rigs.activate(rig)
    bpy.ops.ccd_rig.setup_restore()
    assert limits(rig) == LIMITS


def test_without_a_kept_set_up_the_button_says_so(ext, generated):
    rigs.activate(generated[1])
    fails(bpy.ops.ccd_rig.setup_restore, "no metarig keeps a set-up of 'RIG-basic_human'")
    rigs.chain(2)
    assert not bpy.ops.ccd_rig.setup_restore.poll()


def test_bones_of_other_rigs_are_left_alone(ext):
    rig = rigs.chain(3)
    rig.pose.bones["bone_1"].ccd_rig.limit.kind = "CONE"
    with rigs.edit_bones(rig) as bones:
        bones.remove(bones["bone_2"])
    assert ext.module("ccd_rig.blender.setup_files")._bone_settings == {}
    assert rig.pose.bones["bone_1"].ccd_rig.limit.kind == "CONE"
