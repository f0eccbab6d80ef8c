"""The live preview: what does not see it, when it waits, and what it refuses."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Vector
from shown import REACHED, SHOWN, matrices, off, shows, switch_live


def shows_channels(rig):
    """Whether Blender shows a rig in its rest pose, as no channel has moved it."""
    rests = np.array([bone.matrix_local for bone in rig.data.bones])
    return np.abs(matrices(rig) - rests).max() < SHOWN


def test_bake_and_solve_do_not_see_it(rig, live, clamps):
    switch_live()
    shown = matrices(rig)
    bpy.ops.ccd_rig.bake(frame_start=1, frame_end=3)
    assert rig.ccd_rig.report.mismatches == 0
    assert rig.ccd_rig.live
    assert not any(constraint.mute for _, constraint in clamps.clamps_of(rig))
    rigs.update()
    assert np.abs(shown - matrices(rig)).max() < 1e-3
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert not clamps.is_suspended()
    rig.ccd_rig.constraints[0].target = None
    with pytest.raises(RuntimeError):
        bpy.ops.ccd_rig.bake(frame_start=1, frame_end=3)
    assert not clamps.is_suspended()
    assert not any(constraint.mute for _, constraint in clamps.clamps_of(rig))


def test_renders_show_keys(rig, live, clamps):
    scene = bpy.context.scene
    rig.pose.bones["bone_0"].rotation_mode = "XYZ"
    for frame, angle in ((1, 0.0), (3, 1.0)):
        rig.pose.bones["bone_0"].rotation_euler.x = angle
        rig.pose.bones["bone_0"].keyframe_insert("rotation_euler", frame=frame)
    camera = rigs.link(bpy.data.cameras.new("Camera"), "Camera")
    scene.camera = camera
    scene.render.engine = "BLENDER_WORKBENCH"
    scene.render.resolution_x = scene.render.resolution_y = 16
    scene.frame_start, scene.frame_end = 1, 3
    scene.render.filepath = bpy.app.tempdir
    rigs.activate(rig)
    scene.frame_set(2)
    keyed = matrices(rig)
    switch_live()
    assert np.abs(keyed - matrices(rig)).max() > 0.1
    seen = {}

    def look(scene, depsgraph):
        if depsgraph.mode == "RENDER":
            bones = rig.evaluated_get(depsgraph).pose.bones
            seen[scene.frame_current] = np.array([bone.matrix for bone in bones])

    bpy.app.handlers.frame_change_post.append(look)
    try:
        bpy.ops.render.render(animation=True)
    finally:
        bpy.app.handlers.frame_change_post.remove(look)
    assert np.abs(seen[2] - keyed).max() < SHOWN
    assert not any(constraint.mute for _, constraint in clamps.clamps_of(rig))
    scene.frame_set(2)
    rigs.update()
    assert off(rig) < REACHED


def test_nothing_is_solved_while_a_render_has_muted_it(rig, live, clamps):
    switch_live()
    sample = live.preview_of(rig).sample
    clamps.mute_all(True)
    rig.ccd_rig.constraints[0].target.location = (0.0, 1.0, 2.0)
    rigs.update()
    assert live.preview_of(rig).sample is sample
    clamps.mute_all(False)
    rig.update_tag()
    rigs.update()
    assert off(rig) < REACHED


def test_edit_mode_and_rest_position_wait(rig, solved):
    switch_live()
    bpy.ops.object.mode_set(mode="EDIT")
    solved.clear()
    rig.ccd_rig.constraints[0].target.location = (0.0, 1.0, 2.0)
    rigs.update()
    assert solved == []
    bpy.ops.object.mode_set(mode="POSE")
    rigs.update()
    assert off(rig) < REACHED
    rig.data.pose_position = "REST"
    rig.ccd_rig.constraints[0].target.location = (0.0, -1.0, 2.0)
    rigs.update()
    assert (shows(rig) - Vector((0.0, 0.0, 4.0))).length < SHOWN
    assert len(solved) == 1
    rig.data.pose_position = "POSE"
    rigs.update()
    assert off(rig) < REACHED


def test_a_hidden_rig_waits_though_others_hang_on_it(rig, live):
    """A visible child has Blender evaluate it."""
    child = rigs.empty("Child")
    child.parent, child.parent_type, child.parent_bone = rig, "BONE", "bone_3"
    rigs.activate(rig)
    switch_live()
    before = shows(rig)
    bpy.ops.object.mode_set(mode="OBJECT")
    rig.hide_set(True)
    rig.ccd_rig.constraints[0].target.location = (0.0, 1.0, 2.0)
    rigs.update()
    assert (shows(rig) - before).length < SHOWN
    rig.hide_set(False)
    rigs.update()
    assert off(rig) < REACHED


def test_a_renamed_bone_is_followed(rig, live):
    switch_live()
    rig.data.bones["bone_1"].name = "middle"
    rig.data.bones["bone_3"].name = "end"
    rig.ccd_rig.constraints[0].target.location = (0.0, 1.0, 2.0)
    rigs.update()
    assert live.preview_of(rig).notes() == ()
    assert off(rig, "end") < REACHED


def test_a_target_bone_renamed_in_edit_mode_is_followed(rig, live):
    """Blender shows the bone by its former name until it evaluates the other armature's bones anew."""
    control = rigs.armature([rigs.B("ctl", (0.0, 1.0, 2.0), (0.0, 1.0, 2.5))], "Control")
    row = rig.ccd_rig.constraints[0]
    row.target, row.target_bone = control, "ctl"
    rigs.activate(rig)
    switch_live()
    with rigs.edit_bones(control) as bones:
        bones["ctl"].name = "hand"
    assert row.target_bone == "hand"
    rigs.activate(control)
    control.pose.bones["hand"].location = (0.3, 0.2, -0.4)
    rigs.update()
    assert live.preview_of(rig).notes() == ()
    head = control.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["hand"].head
    assert (shows(rig) - control.matrix_world @ head).length < REACHED


def test_a_bone_that_is_not_there_is_said(rig, live):
    switch_live()
    rigs.forget_names(rig)
    rig.data.bones["bone_3"].name = "end"
    rigs.update()
    assert shows_channels(rig)
    assert "'bone_3'" in live.preview_of(rig).notes()[0]
    rig.ccd_rig.constraints[0].tip = "end"
    rig.update_tag()
    rigs.update()
    assert live.preview_of(rig).notes() == ()
    assert off(rig, "end") < REACHED


def test_a_removed_bone_target_and_rig(rig, live):
    switch_live()
    with rigs.edit_bones(rig) as bones:
        bones.remove(bones["bone_0"])
    rig.ccd_rig.constraints[0].target.location = (0.3, 0.5, 2.5)
    rigs.update()
    assert off(rig) < REACHED
    bpy.data.objects.remove(bpy.data.objects["Target bone_3"])
    rigs.update()
    assert shows_channels(rig)
    assert "target" in live.preview_of(rig).notes()[0]
    bpy.data.objects.remove(rig)
    rigs.update()


def test_a_hidden_target_is_said(rig, live):
    bpy.ops.ccd_rig.live()
    target = rig.ccd_rig.constraints[0].target
    rigs.update()
    target.hide_set(True)
    target.location.x += 0.1
    rig.update_tag()
    rigs.update()
    assert "hidden" in live.preview_of(rig).notes()[0]
    assert shows_channels(rig)
    target.hide_set(False)
    rigs.update()
    rig.update_tag()
    rigs.update()
    assert off(rig) < REACHED


def test_what_cannot_be_solved_is_refused(rig, live):
    rig.ccd_rig.constraints[0].target = None
    with pytest.raises(RuntimeError, match="target"):
        bpy.ops.ccd_rig.live()
    assert not rig.ccd_rig.live
    rig.ccd_rig.constraints[0].enabled = False
    assert not bpy.ops.ccd_rig.live.poll()


def test_rigs_that_follow_each_other_say_so(rig, live):
    """A target at the object of another rig, not at a bone, does not move with its pose."""
    bpy.ops.object.mode_set(mode="OBJECT")
    others = [rigs.chain(4, name=name) for name in ("Second", "Third")]
    for follower, leader in ((others[0], others[1]), (others[1], others[0])):
        rigs.reach(follower, "bone_3", leader).target_bone = "bone_2"
    for each in (rig, *others):
        each.ccd_rig.live = True
    rigs.update()
    assert live.preview_of(rig).notes() == ()
    assert live.preview_of(others[0]).notes()[0].startswith("'Third' is live and follows this armature too")
    assert live.preview_of(others[1]).notes()[0].startswith("'Second' is live and follows this armature too")
    others[1].ccd_rig.constraints[0].target_bone = ""
    rigs.update()
    assert live.preview_of(others[0]).notes() == live.preview_of(others[1]).notes() == ()
    others[1].ccd_rig.constraints[0].target_bone = "bone_2"
    rigs.update()
    assert live.preview_of(others[0]).notes()
    live.switch(others[1], False)
    others[0].update_tag()
    rigs.update()
    assert live.preview_of(others[0]).notes() == ()
