"""The present state is read with edits that have no keys yet, hidden or not."""

from __future__ import annotations

import bpy
import pytest
import rigs
from target_scenes import FLOAT32_FAR, add_row, assert_same, file_state, in_main_scene, make_rig
from target_set_ups import HIDINGS, SET_UPS, nan_target, other_scene, plain


@pytest.mark.parametrize("set_up", SET_UPS)
def test_current(evaluation, constraints_of, skeletons, set_up):
    rig = make_rig()
    row = add_row(rig, *set_up(rig), offset=(0.1, -0.2, 0.3))
    expected = in_main_scene(rig, row, 2.5)
    before = file_state()
    item = evaluation.current(bpy.context.evaluated_depsgraph_get(), rig, constraints_of(rig))[0]
    assert file_state() == before
    assert item.frame == 2.5
    assert_same(item, expected, skeletons)


def test_current_sees_edits_without_keys(evaluation, constraints_of):
    rig = make_rig()
    target, _ = plain(rig)
    add_row(rig, target)
    bpy.context.scene.frame_set(5)
    rig.location, rig.rotation_euler = (0, 0, 0), (0, 0, 0)
    rig.pose.bones["upper"].rotation_quaternion = (0, 1, 0, 0)
    target.location = (7, 8, 9)
    item = evaluation.current(bpy.context.evaluated_depsgraph_get(), rig, constraints_of(rig))[0]
    assert tuple(item.targets[0].point) == pytest.approx((7, 8, 9), abs=FLOAT32_FAR)
    rotations = dict(zip(item.reading.bones, item.reading.pose.rotations, strict=True))
    assert tuple(rotations["upper"]) == (0, 1, 0, 0)


@pytest.mark.parametrize("hide", HIDINGS)
@pytest.mark.parametrize("what", ["target", "armature"])
def test_current_with_hidden_objects(evaluation, constraints_of, skeletons, hide, what):
    """What Blender does not evaluate is not up to date, so it is taken from the isolated scene."""
    rig = make_rig()
    target, _ = plain(rig)
    row = add_row(rig, target)
    add_row(rig, rigs.empty("Second", (3, 2, 1)), name="Second")
    bpy.context.scene.frame_set(1)
    show = hide(target if what == "target" else rig)
    bpy.context.scene.frame_set(10)
    item = evaluation.current(bpy.context.evaluated_depsgraph_get(), rig, constraints_of(rig))[0]
    assert len(bpy.data.scenes) == (2 if hide is other_scene else 1)
    show()
    expected = in_main_scene(rig, row, 10)
    assert_same(item, expected, skeletons)
    assert list(item.matrix_world @ item.targets[1].point) == pytest.approx((3, 2, 1), abs=FLOAT32_FAR)


def test_current_refuses(evaluation, constraints_of, errors):
    rig = make_rig()
    row = add_row(rig, rigs.empty("Target", (1, 2, 3)))
    nan_target(rig, row)
    bpy.context.scene.frame_set(3)
    with pytest.raises(errors.RigError, match="'Target' has a place that is not a number at frame 3"):
        evaluation.current(bpy.context.evaluated_depsgraph_get(), rig, constraints_of(rig))[0]
