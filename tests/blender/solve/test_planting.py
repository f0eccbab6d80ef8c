"""Planted feet of a walk: held against what Blender plays of the baked action."""

from __future__ import annotations

import json

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix
from planted import STILL, WALK, assert_still, limits_hold, played, stances, walker

PLACES = {
    "at home": Matrix(),
    "moved": Matrix.Translation((30.0, -20.0, 5.0)),
    "turned": Euler((0.2, 0.1, 2.0)).to_matrix().to_4x4(),
    "scaled": Matrix.LocRotScale((1, 2, 3), Euler((0.3, 0.2, 0.1)), (2.5, 2.5, 2.5)),
}


@pytest.mark.parametrize("place", PLACES)
def test_walk_keeps_planted_feet_still(ext, channels, bake, place):
    rig = walker(PLACES[place])
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 72))
    assert report.unsolved_count() == 0, report.summary()
    seen = played(rig, ["foot.L", "foot.R", "hips"], WALK)
    assert_still(seen, WALK, stances())
    assert {slid.constraint for slid in report.foot_slips} == {"Plant L", "Plant R"}
    told = json.loads(report.to_json())["foot_slips"]
    assert [slid["played_distance"] for slid in told] == [slid.played_distance for slid in report.foot_slips]
    for slid in report.foot_slips:
        assert slid.distance < STILL
        assert slid.played_distance < STILL
        assert max(slid.angle, slid.played_angle) < 1e-3
    assert "; planted bones slide" in report.summary()
    assert "; ;" not in report.summary()
    way = seen[-1, 2, :3, 3] - seen[0, 2, :3, 3]
    assert np.linalg.norm(way) > 1.0  # it walked
    # The figure is carried by the hips; the bone above them stays where it is.
    paths = {curve.data_path for curve in channels.fcurves_of(rig)}
    assert 'pose.bones["hips"].location' in paths
    assert not any('"root"' in path for path in paths)
    limits_hold(ext, rig, WALK)


def test_every_third_frame(bake):
    """Between solved frames the base does not slide either."""
    rig = walker()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 72, step=3))
    seen = played(rig, ["foot.L", "foot.R"], WALK)
    alone = {"L": [(4, 14), (28, 38), (52, 62)], "R": [(16, 26), (40, 50), (64, 72)]}
    # The left one is the base wherever it stands; the right one is held by goals meanwhile.
    for k, side in enumerate("LR"):
        for a, b in alone[side]:
            stand = seen[a - 1 : b - 2, k, :3, 3]
            assert np.abs(stand - stand[0]).max() < (STILL if side == "L" else 2e-3)


def test_slides_between_keys_are_seen(bake):
    """With keys on solved frames only Blender interpolates each channel by itself: feet slide, it is said."""
    rig = walker()
    keys = bake.BakeSettings(1, 72, step=6, keys=bake.Keys.SOLVED_FRAMES)
    report = bake.bake(bpy.context.scene, rig, keys)
    seen = played(rig, ["foot.L", "foot.R"], WALK)
    slide = max(slid.played_distance for slid in report.foot_slips)
    assert slide > 5e-4
    assert max(slid.distance for slid in report.foot_slips) < STILL
    # The left foot stands from 1 to 13 by the keys.
    own = next(slid for slid in report.foot_slips if slid.constraint == "Plant L")
    assert (
        own.played_distance > np.linalg.norm(seen[:13, 0, :3, 3] - seen[0, 0, :3, 3], axis=-1).max() - STILL
    )
