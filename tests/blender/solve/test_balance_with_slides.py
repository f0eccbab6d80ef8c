"""Balance, slides, limits and poles in one rig: undone, and to the bit."""

from __future__ import annotations

import bpy
import pytest
import rigs
from balanced_rigs import everything


def test_undo_takes_slides_and_balance_back():
    rig = everything()

    def state():
        bones = bpy.data.objects["Rig"].pose.bones
        return [(tuple(bone.location), tuple(bone.rotation_quaternion)) for bone in bones]

    rigs.activate(rig)
    bpy.ops.ed.undo_push(message="before")
    before = state()
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    bpy.ops.ed.undo_push(message="after")
    after = state()
    assert before != after
    bpy.ops.ed.undo()
    assert state() == before
    bpy.ops.ed.redo()
    assert state() == after


@pytest.mark.parametrize("smoothness", [0.0, pytest.param(5.0, marks=pytest.mark.mass)])
def test_the_same_input_gives_the_same_bits(bake, channels, smoothness):
    def keys():
        return [
            (c.data_path, c.array_index, [tuple(p.co) for p in c.keyframe_points])
            for c in channels.fcurves_of(rig)
        ]

    rig = everything()
    before = rig.animation_data.action
    slot = rig.animation_data.action_slot if hasattr(rig.animation_data, "action_slot") else None
    settings = bake.BakeSettings(1, 9, step=4, smoothness=smoothness)
    first = bake.bake(bpy.context.scene, rig, settings)
    found = keys()
    rig.animation_data.action = before
    if slot is not None:
        rig.animation_data.action_slot = slot
    assert bake.bake(bpy.context.scene, rig, settings).entries == first.entries
    assert keys() == found
