"""Operators as a user calls them: on which rig, and what they say, undo and refuse."""

from __future__ import annotations

import bpy
import pytest
import rigs


def set_up(rig, **choices):
    """Let Set Up Figure make a rig's constraints; the rig."""
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up(**choices) == {"FINISHED"}
    rigs.update()
    return rig


def bake(first, last, **options):
    """Press Bake on the active rig."""
    assert bpy.ops.ccd_rig.bake(frame_start=first, frame_end=last, **options) == {"FINISHED"}


def solve():
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()


def posed_chain(ext):
    """Three bones of 1 m along Z, in Pose Mode, the last one active and alone selected."""
    made = rigs.chain(3)
    select(ext, made, "bone_2")
    return made


def select(ext, rig, *bones):
    """Pose Mode with these bones selected, the last of them active; the bones."""
    if bpy.context.mode != "POSE":
        rigs.activate(rig)
        bpy.ops.object.mode_set(mode="POSE")
    channels = ext.module("ccd_rig.blender.keys.channels")
    for bone in rig.pose.bones:
        channels.select_bone(bone, bone.name in bones)
    rig.data.bones.active = rig.data.bones[bones[-1]] if bones else None
    return [rig.pose.bones[name] for name in bones]


def add(rig, location=(1.0, 0.5, 1.5), **row):
    """A constraint on the last bone with a target of its own."""
    bpy.ops.ccd_rig.constraint_add()
    made = rig.ccd_rig.constraints[-1]
    made.target.location = location
    for name, value in row.items():
        setattr(made, name, value)
    rigs.update()
    return made


def tail(name="Rig", bone="bone_2"):
    rigs.update()
    rig = bpy.data.objects[name].evaluated_get(bpy.context.evaluated_depsgraph_get())
    return rig.matrix_world @ rig.pose.bones[bone].tail


def pose(name="Rig"):
    return [tuple(bone.rotation_quaternion) for bone in bpy.data.objects[name].pose.bones]


def listed(name="Rig"):
    return [row.name for row in bpy.data.objects[name].ccd_rig.constraints]


def undo_push():
    bpy.ops.ed.undo_push(message="before")


def fails(operator, words, **options):
    """The operator says these words and does nothing; for Python a reported error is a RuntimeError."""
    with pytest.raises(RuntimeError) as caught:
        operator(**options)
    assert words in str(caught.value)
    assert "Traceback" not in str(caught.value)


def animate(row):
    for frame, place in ((1, (1.0, 0.5, 1.5)), (10, (-1.0, 1.0, 1.0)), (20, (0.5, -1.5, 1.0))):
        row.target.location = place
        row.target.keyframe_insert("location", frame=frame)


def frames_with_keys(ext, rig):
    return ext.module("ccd_rig.blender.keys.channels").present_keys(rig).tolist()


def with_moving_target(rig):
    """The rig with a target that moves over frames 1 to 20."""
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 20
    animate(add(rig))
    return rig


def both_ways(before, after, state):
    """Undo gives the state before, redo the one after. Objects are looked up by name: undo makes new ones."""
    assert before != after
    bpy.ops.ed.undo()
    assert state() == before
    bpy.ops.ed.redo()
    assert state() == after


def reasons(*names):
    """What each operator says when it is called although it is poll_reasons."""
    found = {}
    for name in names:
        operator = getattr(bpy.ops.ccd_rig, name)
        assert not operator.poll(), name
        with pytest.raises(RuntimeError) as caught:
            operator()
        found[name] = str(caught.value)
    return found
