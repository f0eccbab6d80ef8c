"""Where a bone is planted that is planted at the first frame, or by another chain."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Vector
from planted import STILL, angle, biped, constrain, key_influence, played, standing


def controlled(feet="L", off=0.1, preroll_span=(1, 20)):
    """The biped, hips lowered by their own pose, feet planted that have a controller `off` beside them."""
    rig = biped()
    rig.pose.bones["hips"].location = (0, -0.12, 0)  # along the bone: the knees have room to bend
    rigs.update()
    for side in feet:
        tip = f"foot.{side}"
        plant = constrain(rig, "PLANT", tip, f"Plant {side}", chain_length=4)
        key_influence(plant, [preroll_span], range(-10, 21))
        place = rig.pose.bones[tip].head + Vector((0, -off, 0.12))
        target = rigs.empty(f"Foot {side}", place)
        target.rotation_euler = rig.data.bones[tip].matrix_local.to_euler()
        constrain(rig, "REACH", tip, f"Reach {side}", target, 3, use_tail=False, rotation="ORIENTATION")
    rigs.update()
    return rig


@pytest.mark.parametrize("feet", ["L", "LR"])
@pytest.mark.parametrize("preroll", [0, 5])
def test_planted_at_the_first_frame_where_its_own_reach_brings_it(bake, feet, preroll):
    """The controller is 0.1 m beside the animated foot: the foot is held at the controller."""
    rig = controlled(feet, preroll_span=(-10, 20))
    before = played(rig, [f"foot.{side}" for side in feet], [1])[0]
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10, preroll=preroll))
    assert report.unsolved_count() == 0, report.summary()
    seen = played(rig, [f"foot.{side}" for side in feet], range(1, 11))
    for k, side in enumerate(feet):
        wanted = bpy.data.objects[f"Foot {side}"].matrix_world
        assert np.linalg.norm(before[k][:3, 3] - wanted.translation) > 0.09
        assert np.abs(seen[:, k, :3, 3] - np.array(wanted.translation)).max() < STILL
        assert angle(seen[0, k], wanted) < 1e-3


def test_a_reach_with_half_influence_counts_by_half_at_the_first_frame(bake):
    rig = controlled(preroll_span=(2, 20))
    rig.ccd_rig.constraints["Reach L"].influence = 0.5
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10))
    later = played(rig, ["foot.L"], [1])[0, 0]
    bpy.data.objects["Walker"].animation_data_clear()
    rig = controlled(preroll_span=(-10, 20))
    rig.ccd_rig.constraints["Reach L"].influence = 0.5
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10))
    assert np.abs(played(rig, ["foot.L"], [1])[0, 0] - later).max() < STILL


def test_planted_later_where_its_own_reach_left_it(bake):
    """It comes into force at frame 6: the foot is held where frame 5 was solved, at the controller there."""
    rig = controlled(preroll_span=(6, 20))
    target = bpy.data.objects["Foot L"]
    for frame, shift in ((1, 0.0), (5, 0.05), (10, 0.15)):
        target.location.x = 0.1 + shift
        target.keyframe_insert("location", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 20, start=bake.Start.POSE))
    assert report.unsolved_count() == 0, report.summary()
    seen = played(rig, ["foot.L"], range(1, 21))[:, 0, :3, 3]
    assert abs(seen[4, 0] - 0.15) < STILL
    assert np.abs(seen[4:] - seen[4]).max() < STILL


def test_what_other_chains_do_leaves_feet_where_they_are_animated(bake):
    """A Reach of the hips turns them, which the feet do not follow."""
    rig = standing(rotation="ORIENTATION")
    bpy.data.objects["Hips"].rotation_euler = (math.pi / 2, 0, 0.3)
    before = played(rig, ["foot.L", "foot.R"], [1])[0]
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert np.abs(played(rig, ["foot.L", "foot.R"], [1])[0] - before).max() < STILL
