"""What fails or is cancelled changes nothing."""

from __future__ import annotations

import bpy
import pytest
import rigs
from mathutils import Quaternion
from reaching_arms import arm
from whole_file import differences, dump


def spoil_range(rig, settings):
    return settings(10, 9)


def spoil_step(rig, settings):
    return settings(1, 9, step=0)


def spoil_target(rig, settings):
    rig.ccd_rig.constraints[0].target = None
    return settings(1, 9)


def spoil_tip(rig, settings):
    rig.ccd_rig.constraints[0].tip = "gone"
    return settings(1, 9)


def spoil_name(rig, settings):
    return settings(1, 9, constraints=("Foot",))


def spoil_influence(rig, settings):
    rig.ccd_rig.constraints[0].influence = 0.0
    return settings(1, 9)


def spoil_stiffness(rig, settings):
    for bone in rig.pose.bones:
        bone.ccd_rig.stiffness = 1.0
    return settings(1, 9)


def spoil_curve(rig, settings):
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=1)
    for curve in rig_curves(rig):
        curve.lock = True
    return settings(1, 9)


def rig_curves(rig):
    action = rig.animation_data.action
    if "slots" in action.bl_rna.properties:
        return list(action.layers[0].strips[0].channelbag(rig.animation_data.action_slot).fcurves)
    return list(action.fcurves)


SPOILERS = {
    "empty": spoil_range,
    "step must": spoil_step,
    "target": spoil_target,
    "gone": spoil_tip,
    "Foot": spoil_name,
    "influence": spoil_influence,
    "(locked|stiffness)": spoil_stiffness,
    "bone_1.*locked": spoil_curve,
}


@pytest.mark.parametrize("words", SPOILERS)
def test_what_cannot_be_baked_is_said_and_nothing_changes(bake, errors, words):
    rig, _ = arm(3, 0.5)
    SPOILERS[words](rig, lambda *_a, **_k: None)
    before = dump()
    with pytest.raises(errors.CCDRigError, match=words):
        bake.bake(bpy.context.scene, rig, SPOILERS[words](rig, bake.BakeSettings))
    assert differences(before, dump()) == []


@pytest.mark.parametrize("after", [0, 1, 2, 11, 12])
@pytest.mark.parametrize("with_action", [False, True])
def test_cancel_at_any_frame_changes_nothing(bake, channels, after, with_action):
    rig, _ = arm(3, 0.5)
    if with_action:
        rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=4)
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    channels.select_bone(rig.pose.bones["bone_1"], True)
    rig.pose.bones["bone_2"].rotation_quaternion = Quaternion(
        (1, 0, 0), 0.3
    )  # not keyed: a changed frame loses it
    bpy.context.scene.frame_set(7, subframe=0.25)
    before = dump()
    destination = bake.Destination.CURRENT_ACTION
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, 12, destination=destination))
    for _ in range(after):
        next(steps)
    steps.close()
    assert differences(before, dump()) == []


def test_progress_counts_up_and_may_cancel(bake):
    rig, _ = arm(3, 0.5)
    seen = []
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 12, step=4), seen.append)
    evaluated = [(p.frame, p.done, p.total) for p in seen if p.verb == "evaluated"]
    assert list(dict.fromkeys(evaluated)) == [(1, 1, 4), (5, 2, 4), (9, 3, 4), (12, 4, 4)]
    solved = [p.done for p in seen if p.verb == "solved"]
    assert solved == sorted(solved) and solved[-1] == 4
    assert [p.done for p in seen if p.verb == "checked"] == list(range(1, 13))
    before = dump()

    class Enough(Exception):
        pass

    def stop(progress):
        if progress.done == 3:
            raise Enough

    with pytest.raises(Enough):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 12), stop)
    assert differences(before, dump()) == []


def test_a_failure_while_writing_changes_nothing(bake, channels, errors):
    rig, _ = arm(3, 0.5)
    rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=4)
    destination = bake.Destination.CURRENT_ACTION

    def lock(state):
        for curve in channels.fcurves_of(rig):
            curve.lock = state

    lock(True)
    before = dump()
    lock(False)
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, 6, destination=destination))
    for _ in range(6):
        next(steps)
    lock(True)  # while the bake is under way
    with pytest.raises(errors.RigError, match="bone_1"):
        list(steps)
    assert differences(before, dump()) == []


def test_bake_leaves_frame_selection_mode_and_pose(bake, channels):
    rig, _ = arm(3, 0.5)
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    channels.select_bone(rig.pose.bones["bone_1"], True)
    bpy.context.scene.frame_set(7, subframe=0.25)
    names = ("scenes", "collections", "context", "selected", "frame", "armatures")
    before = {key: value for key, value in dump().items() if key.startswith(names)}
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 12))
    after = {key: value for key, value in dump().items() if key.startswith(names)}
    assert after == before
    assert channels.is_bone_selected(rig.pose.bones["bone_1"])
    assert not channels.is_bone_selected(rig.pose.bones["bone_0"])


@pytest.mark.parametrize("where", ["object", "chain", "parent"])
def test_a_scale_of_zero_counts_where_it_is_baked(bake, errors, where):
    """A rig, or a bone, that pops in at frame 1, baked from the frame before and from the first one."""
    rig, scene = arm(4, 0.5)[0], bpy.context.scene
    rig.ccd_rig.constraints[0].chain_length = 2
    bone = {"chain": "bone_3", "parent": "bone_0"}.get(where)
    thing = rig if bone is None else rig.pose.bones[bone]
    for frame, size in ((0, 0.0), (1, 1.0)):
        thing.scale = (size, size, size)
        thing.keyframe_insert("scale", frame=frame)
    scene.frame_set(0)
    report = bake.bake(scene, rig, bake.BakeSettings(1, 4))
    assert report.check.mismatches() == ()
    for shown, words in ((0, "scale"), (1, r"[Ff]rame 0.* scale| scale .*frame 0")):  # another is named
        scene.frame_set(shown)
        with pytest.raises(errors.RigError, match=words):
            bake.bake(scene, rig, bake.BakeSettings(0, 4))
