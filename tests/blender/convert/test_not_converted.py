"""What of Blender's IK has no counterpart, or is lost on the way, is said."""

from __future__ import annotations

import bpy
import pytest
import rigs
from blender_ik import everything, ik, leg
from operator_calls import fails


def no_target(rig, made):
    made.target = None


def vertex_group(rig, made):
    made.target = rigs.link(bpy.data.meshes.new("Body"), "Body")
    made.subtarget = "Group"


def lost_bone(rig, made):
    made.target, made.subtarget = rig, 'no "such" bone'


def itself(rig, made):
    made.target, made.subtarget = rig, ""


def distance(rig, made):
    rig.pose.ik_solver, made.ik_type = "ITASC", "DISTANCE"


def free_axes(rig, made):
    rig.pose.ik_solver, made.lock_location_x = "ITASC", False


def nothing(rig, made):
    made.use_location = False


def driven_mute(rig, made):
    made.driver_add("mute")


def locked(rig, made):
    for name in ("shin", "thigh"):
        rig.pose.bones[name].lock_rotation = (True, True, True)


def shared(rig, made):
    made.keyframe_insert("influence", frame=1)
    other = rig.copy()
    bpy.context.scene.collection.objects.link(other)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_target, "has no target"),
        (vertex_group, "vertex group 'Group' of 'Body'"),
        (lost_bone, "has no bone 'no \"such\" bone'"),
        (itself, "the armature itself"),
        (distance, "keeps a distance"),
        (free_axes, "leaves axes of its target free"),
        (nothing, "neither a position nor a rotation"),
        (driven_mute, "its Mute has keys or a driver"),
        (locked, "its bones have locked rotations"),
        (shared, "which moves 'Rig.001' too"),
    ],
)
def test_what_has_no_counterpart_is_said_and_stays(ext, spoil, words):
    """Alone it is an error; beside another one that other is converted."""
    rig = leg()
    target = rigs.empty("Goal", (0.1, 0.0, 0.3))
    made = ik(rig, "shin", target)
    spoil(rig, made)
    rigs.update()
    rigs.activate(rig)
    before = everything(rig)
    fails(bpy.ops.ccd_rig.ik_convert, words)
    assert everything(rig) == before and not made.mute
    rig.pose.ik_solver = "LEGACY"
    ik(rig, "foot", target, 1)
    told = ext.module("ccd_rig.blender.convert").convert(bpy.context, rig, None, 3)
    assert made.mute == (spoil in (distance, free_axes))  # these are for iTaSC alone
    if not made.mute:
        assert (told.rows, told.originals) == (("foot",), 1)
        assert any(words in note and "'shin'" in note for note in told.notes)


def test_what_is_lost_on_the_way_is_said(ext):
    rig = leg()
    made = ik(rig, "shin", rigs.empty("Goal"), use_stretch=True, pole_target=rigs.empty("Pole"))
    rig.pose.bones["thigh"].ik_stretch = 0.1
    rig.pose.bones["shin"].use_ik_limit_x = True
    rig.pose.bones["thigh"].lock_rotation = (True, True, True)
    made.use_rotation = True
    look = rig.pose.bones["foot"].constraints.new("DAMPED_TRACK")
    look.target = bpy.data.objects["Goal"]
    told = ext.module("ccd_rig.blender.convert").convert(bpy.context, rig, None, 3)
    words = "\n".join(told.notes)
    assert "do not stretch here ('thigh' did)" in words
    assert "IK limits, locks and stiffness taken over: 'shin'" in words
    assert "locked rotations hold here: 'thigh'" in words
    assert "less than two bones are free to bend" in words
    assert "hangs on 'shin', which 'IK' turns" in words
    assert told.rows == ("shin",) and not look.mute


@pytest.mark.parametrize(("bones", "is_told"), [(2, False), (3, True)])
def test_a_pole_of_more_than_two_bones_is_told(ext, capfd, bones, is_told):
    """Two bones of known lengths between two places have one bend in a plane, more have many."""
    places = [(0.0, -0.2 * (k % 2), float(k)) for k in range(bones + 1)]
    rig = rigs.armature(
        [rigs.B(f"b{k}", places[k], places[k + 1], f"b{k - 1}" if k else "") for k in range(bones)], "Rig"
    )
    made = rig.pose.bones[f"b{bones - 1}"].constraints.new("IK")
    made.target, made.pole_target = rigs.empty("T", (0.8, 0.6, 1.2)), rigs.empty("P", (0.0, -3.0, 1.0))
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.ik_convert() == {"FINISHED"}
    assert ("three or more may share its bend" in capfd.readouterr().out) == is_told
