"""Feet that end otherwise: a source without toes, and figures whose feet are one bone."""

from __future__ import annotations

import numpy as np
import pytest
import rigs
from playing import shown
from retargeting import run

FRAMES = range(1, 50)


def without_toes(rig):
    """The figure with feet of one bone each; longer ones, as toes were part of them."""
    with rigs.edit_bones(rig) as bones:
        for side in "LR":
            toe = bones[f"toe.{side}"]
            bones[f"foot.{side}"].tail = toe.tail
            bones.remove(toe)
    return rig


def lowest(rig, bones):
    """Lowest height of the tails of bones as they play."""
    seen = (shown(rig, frame) for frame in FRAMES)
    return min((each.matrix_world @ each.pose.bones[name].tail).z for each in seen for name in bones)


def test_toes_that_the_source_has_not_stay_above_the_ground(source, target):
    """The source's feet are pitched by up to 38 degrees; its toes were below the ground if feet had none."""
    without_toes(source)
    run(target)
    report = target.ccd_rig.retarget.report
    assert "toe" not in report
    toes = ("toe.L", "toe.R")
    rest = min((target.matrix_world @ target.data.bones[name].tail_local).z for name in toes)
    assert lowest(target, toes) > min(rest, 0.0) - 1e-3
    assert not any(pair.name in toes for pair in target.ccd_rig.retarget.pairs)


def test_toes_that_follow_nothing_by_hand_follow_nothing(ext, source, target):
    bone_map = ext.module("ccd_rig.blender.retarget.bone_map")
    without_toes(source)  # its heels, which go on from the feet now, are no toes
    assert bone_map.bone_map(target, source).bones["toe.L"] == "foot.L"
    by_hand = bone_map.bone_map(target, source, {"toe.L": ""})
    assert "toe.L" not in by_hand.bones
    assert by_hand.bones["toe.R"] == "foot.R"


def test_a_foot_of_one_bone_keeps_its_end_above_the_ground(source, target):
    bones = rigs.biped()
    other = without_toes(rigs.armature(bones, "Robot"))
    other.ccd_rig.retarget.source = source
    run(other)
    feet = ("foot.L", "foot.R")
    assert lowest(other, feet) > -1e-3
    assert "0.0 mm below it" in other.ccd_rig.retarget.report


def test_a_foot_whose_tail_leads_nowhere_has_no_end(ext, source, target):
    """Tails of importers: as long as the shin, level or along it. Feet are not lifted for these."""
    sole = ext.module("ccd_rig.motion.retargeting.feet")
    sampling = ext.module("ccd_rig.blender.retarget.sampling")
    maps = ext.module("ccd_rig.blender.retarget.bone_map")
    ends = {}
    for name, way in (("level", (0.0, -0.4, 0.0)), ("down", (0.0, 0.0, -0.4)), ("true", (0.0, -0.2, -0.06))):
        rig = without_toes(rigs.armature(rigs.biped(), name))
        with rigs.edit_bones(rig) as bones:
            for side in "LR":
                foot = bones[f"foot.{side}"]
                foot.tail = [a + b for a, b in zip(foot.head, way, strict=True)]
        joints = maps.figure_map(maps.bone_map(rig, source))
        figure, _ = sampling.target_figure(rig, rig.matrix_world, joints)
        ends[name] = sole.Sole.of(figure, joints.legs[0]).front
    assert ends["level"] is None and ends["down"] is None
    assert np.linalg.norm(ends["true"]) == pytest.approx(np.hypot(0.2, 0.08), abs=0.01)


def test_toes_of_several_bones_stay_above_the_ground_to_their_end(source, target):
    """A bone that goes on from the toes and follows nothing, as exporters write, and as animals have."""
    with rigs.edit_bones(target) as bones:
        for side in "LR":
            toe = bones[f"toe.{side}"]
            end = bones.new(f"end.{side}")
            end.head, end.tail = toe.tail, toe.tail + 1.5 * (toe.tail - toe.head)
            end.parent, end.use_connect = toe, True
    without_toes(source)
    run(target)
    ends = ("end.L", "end.R")
    rest = min((target.matrix_world @ target.data.bones[name].tail_local).z for name in ends)
    assert lowest(target, ends) > min(rest, 0.0) - 1e-3
    assert "0.0 mm below it" in target.ccd_rig.retarget.report
