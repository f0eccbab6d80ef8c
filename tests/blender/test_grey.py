"""Where operators are greyed out, and the reason that they give."""

from __future__ import annotations

import bpy
import pytest
import rigs
from linked_rigs import linked, override_of
from operator_calls import add, posed_chain, reasons

ALL = ("constraint_add", "constraint_remove", "constraint_move", "solve", "bake", "go_to_frame")


@pytest.fixture
def rig(ext):
    return posed_chain(ext)


def test_grey_without_an_armature(ext):
    for words in reasons(*ALL).values():
        assert "Select an armature" in words
    rigs.empty("Thing")
    for words in reasons(*ALL).values():
        assert "Select an armature" in words


def test_grey_in_object_and_edit_mode(rig):
    add(rig)
    bpy.ops.object.mode_set(mode="OBJECT")
    assert "Go to Pose Mode" in reasons("constraint_add")["constraint_add"]
    assert bpy.ops.ccd_rig.solve.poll()  # Pose Mode is not needed for that
    bpy.ops.object.mode_set(mode="EDIT")
    for words in reasons("constraint_add", "solve", "bake").values():
        assert "Leave Edit Mode" in words


def test_grey_without_an_active_bone(ext, rig):
    rig.data.bones.active = None
    assert "Select the bone to move" in reasons("constraint_add")["constraint_add"]


def test_grey_without_a_constraint(rig):
    for words in reasons("constraint_remove", "constraint_move", "solve", "bake").values():
        assert "'Rig' has no CCD constraint" in words
    assert "'Rig' has not been baked yet" in reasons("go_to_frame")["go_to_frame"]
    add(rig)
    assert "only one constraint" in reasons("constraint_move")["constraint_move"]
    rig.ccd_rig.constraints[0].enabled = False
    for words in reasons("solve", "bake").values():
        assert "disabled: enable one" in words
    rig.ccd_rig.active_index = 5
    assert "Choose a constraint" in reasons("constraint_remove")["constraint_remove"]


def test_grey_on_a_linked_armature(rig, tmp_path):
    add(rig)
    bpy.ops.object.mode_set(mode="OBJECT")
    rig = linked(rig, tmp_path)
    rigs.activate(rig)
    for words in reasons("constraint_add", "constraint_remove", "solve", "bake").values():
        assert "linked from a library: make a library override" in words
    made = override_of(rig)
    bpy.context.scene.collection.objects.link(made.ccd_rig.constraints[0].target)
    rigs.activate(made)
    rigs.update()
    assert "comes from the library's file" in reasons("constraint_remove")["constraint_remove"]
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
