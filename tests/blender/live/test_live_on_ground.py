"""The live preview of planted bones on the ground: as Solve has them, and wherever the ground goes."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
import walks
from shown import SOLVED, apart, matrices, switch_live
from test_live_is_solve import solved


def slope(name, rise, side=4.0):
    """A mesh of one face that rises ahead of the figure's left foot."""
    return rigs.ground(lambda x, y: -rise * y, (-side, side), name=name)


@pytest.fixture
def figure(ext):
    rig = walks.figure()
    rig.pose.bones["hips"].location = (0.0, -0.08, 0.0)
    for tip in ("foot.L", "foot.R"):
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip, row.kind, row.plant_on_ground = tip, tip, "PLANT", True
        row.chain_length = [bone.name for bone in rig.pose.bones[tip].parent_recursive].index("hips") + 2
    rigs.activate(rig)
    rigs.update()
    return rig


def foot(rig):
    """The place of the left foot in the world, as Blender shows it."""
    rigs.update()
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array(evaluated.matrix_world @ evaluated.pose.bones["foot.L"].head)


@pytest.mark.parametrize("rotation", [True, False])
def test_planted_bones_lie_on_the_ground_as_solve_puts_them(figure, live, rotation):
    thing = slope("Slope", 0.15)
    thing.location.z = 0.02
    figure.ccd_rig.ground.kind, figure.ccd_rig.ground.object = "OBJECT", thing
    for row in figure.ccd_rig.constraints:
        row.plant_rotation = rotation
    rigs.activate(figure)
    bpy.ops.object.mode_set(mode="POSE")
    unsolved = matrices(figure)
    bpy.ops.ccd_rig.live()
    shown = matrices(figure)
    assert live.preview_of(figure).failure == ""
    assert apart(shown, unsolved) > 2.0
    bpy.ops.ccd_rig.live()
    assert apart(shown, solved(figure)) < SOLVED
    # Solve writes what Live shows, which then shows nothing else.
    bpy.ops.ccd_rig.solve()
    written = matrices(figure)
    bpy.ops.ccd_rig.live()
    assert apart(written, matrices(figure)) < SOLVED


def test_they_follow_ground_that_is_moved_shaped_and_chosen(figure, live):
    thing = slope("Level", 0.0)
    figure.ccd_rig.ground.kind, figure.ccd_rig.ground.object = "OBJECT", thing
    rigs.activate(figure)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ccd_rig.live()
    height = figure.data.bones["foot.L"].head_local.z
    assert foot(figure)[2] == pytest.approx(height, abs=1e-3)
    thing.location.z = 0.03
    assert foot(figure)[2] == pytest.approx(0.03 + height, abs=1e-3)
    for vertex in thing.data.vertices:
        vertex.co.z += 0.02
    thing.data.update()
    assert foot(figure)[2] == pytest.approx(0.05 + height, abs=1e-3)
    for k, z in enumerate((0.0, 0.04)):
        thing.location.z = z
        thing.keyframe_insert("location", frame=1 + k)
    bpy.context.scene.frame_set(2)
    assert foot(figure)[2] == pytest.approx(0.06 + height, abs=1e-3)
    figure.ccd_rig.ground.kind = "HEIGHT"
    figure.ccd_rig.ground.height = 0.01
    figure.update_tag()
    assert foot(figure)[2] == pytest.approx(0.01 + height, abs=1e-3)


def test_ground_that_is_hidden_or_not_chosen_is_told(figure, live):
    thing = slope("Level", 0.0)
    thing.location.z = 0.03
    figure.ccd_rig.ground.kind, figure.ccd_rig.ground.object = "OBJECT", thing
    rigs.activate(figure)
    bpy.ops.object.mode_set(mode="POSE")
    switch_live()
    height = figure.data.bones["foot.L"].head_local.z
    thing.hide_viewport = True
    rigs.update()
    (note,) = live.preview_of(figure).notes()
    assert "'Level'" in note and "hidden" in note
    thing.hide_viewport = False
    assert foot(figure)[2] == pytest.approx(0.03 + height, abs=1e-3)
    assert "hidden" not in "".join(live.preview_of(figure).notes())
    figure.ccd_rig.ground.object = None
    figure.update_tag()
    rigs.update()
    assert "none is chosen" in live.preview_of(figure).failure


def test_ground_that_no_bone_lies_on_is_not_asked_for(figure, live):
    for row in figure.ccd_rig.constraints:
        row.plant_on_ground = False
    figure.ccd_rig.ground.kind = "OBJECT"  # none is chosen
    rigs.activate(figure)
    bpy.ops.object.mode_set(mode="POSE")
    switch_live()
    assert live.preview_of(figure).failure == ""
