"""A hand that goes round its body, as Set Up Figure makes it: the arm follows without a flip."""

import bpy
import figures_set_up as figures
import pytest
import rigs
from mathutils import Vector
from playing import in_world, largest_turn, target_in_world

STOPS = {1: "side", 21: "front", 41: "chin", 61: "chest", 81: "hip"}
MOST = 8.0  # degrees that an upper arm turns in a frame
MOST_WITH_POLE = 22.0  # the same with a pole, which is nearly in line twice


def places(rig):
    """Where a left hand goes, world space, from what a body has."""
    bones = rig.data.bones
    shoulder, hip = bones["upper_arm.L"].head_local, bones["thigh.L"].head_local
    head, chest = bones["spine.006"].head_local, bones["spine.003"].head_local
    arm = bones["upper_arm.L"].length + bones["forearm.L"].length
    return {
        "side": shoulder + Vector((0.8 * arm, 0.0, 0.0)),
        "front": shoulder + Vector((0.0, -0.8 * arm, 0.0)),
        "chin": head + Vector((0.0, -0.35 * arm, 0.0)),
        "chest": chest + Vector((0.0, -0.35 * arm, 0.0)),
        "hip": hip + Vector((0.2 * arm, -0.2 * arm, 0.1 * arm)),
    }


@pytest.mark.parametrize(("poles", "most"), [(False, MOST), (True, MOST_WITH_POLE)])
def test_an_upper_arm_turns_little_while_its_hand_goes_round_the_body(ext, poles, most):
    """A pole that was followed in line too turned it by up to 176 degrees in a frame, and by 23."""
    rig = rigs.metarig("human")
    row = figures.set_up(rig, poles=poles)["hand.L"]
    target = row.target
    assert (row.pole_target is not None) is poles
    for frame, stop in STOPS.items():
        target.location = rig.matrix_world @ places(rig)[stop]
        target.keyframe_insert("location", frame=frame)
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=81) == {"FINISHED"}
    poses = [in_world(rig, frame) for frame in range(1, 82)]
    assert largest_turn(poses, ["upper_arm.L"]) < most
    if not poles:
        assert largest_turn(poses, ("forearm.L", "hand.L")) < most
    for frame, pose in enumerate(poses, 1):
        bpy.context.scene.frame_set(frame)
        assert (pose["hand.L"].translation - target_in_world(row).translation).length < 1e-3, frame
