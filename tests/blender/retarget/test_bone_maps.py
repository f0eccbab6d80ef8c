"""Which bone follows which: maps found, changed by hand and kept as files."""

from __future__ import annotations

import json

import bpy
import numpy as np
import pytest
import rigs
from retargeting import run


def test_a_map_is_found_changed_by_hand_and_kept_as_a_file(source, target, tmp_path):
    assert bpy.ops.ccd_rig.retarget_map_fill() == {"FINISHED"}
    pairs = target.ccd_rig.retarget.pairs
    assert pairs["shin.L"].source == "shin.L"
    assert pairs["upper_arm.L"].source == ""
    pairs["head" if "head" in pairs else "spine.006"].source = ""
    path = tmp_path / "map.json"
    assert bpy.ops.ccd_rig.retarget_map_save(filepath=str(path)) == {"FINISHED"}
    saved = json.loads(path.read_text())["bones"]
    assert saved == {pair.name: pair.source for pair in pairs}
    pairs.clear()
    assert bpy.ops.ccd_rig.retarget_map_load(filepath=str(path)) == {"FINISHED"}
    assert {pair.name: pair.source for pair in pairs} == saved
    run(target)


@pytest.mark.parametrize(("ours", "theirs"), [("cat", "horse"), ("horse", "cat")])
def test_tails_of_different_length_end_alike(ext, ours, theirs):
    """The tip follows the tip."""
    maps = ext.module("ccd_rig.blender.retarget.bone_map")
    roles = ext.module("ccd_rig.blender.figures.recognition")
    target, source = rigs.metarig(ours), rigs.metarig(theirs)
    result = maps.bone_map(target, source, {}).bones
    tails = []
    for rig in (target, source):
        figure = roles.figure_of(rig)
        role = next(role for role in figure.roles.values() if role.part.name == "TAIL")
        tails.append(figure.bones(role.part, role.side, role.number))
    assert len(tails[0]) != len(tails[1])
    assert result[tails[0][-1]] == tails[1][-1]


def test_a_map_that_is_no_map_is_refused(source, target, tmp_path):
    path = tmp_path / "map.json"
    path.write_text('{"bones": ["thigh.L"]}')
    with pytest.raises(RuntimeError, match=r"map.json: bones must be an object, not \["):
        bpy.ops.ccd_rig.retarget_map_load(filepath=str(path))


def test_animals_stand_along_the_ground(ext):
    """Their heads are ahead of them: up is where legs lead."""
    bone_map, sampling = (ext.module(f"ccd_rig.blender.retarget.{name}") for name in ("bone_map", "sampling"))
    wolf, other = rigs.metarig("wolf"), rigs.metarig("basic_quadruped")
    joints = bone_map.figure_map(bone_map.bone_map(wolf, other))
    assert [leg.girdle for leg in joints.legs] == ["", "", "front", "front"]
    figure, _ = sampling.target_figure(wolf, wolf.matrix_world, joints)
    np.testing.assert_array_equal(figure.rotations, np.tile((1.0, 0.0, 0.0, 0.0), (len(figure.rotations), 1)))
    assert figure.ground == pytest.approx(0.0, abs=1e-6)


def test_legs_of_a_generated_beast_hang_on_each_other_and_front_ones_on_its_chest(ext):
    names = ("bone_map", "sampling")
    bone_map, controlled = (ext.module(f"ccd_rig.blender.retarget.{name}") for name in names)
    rig, other = rigs.generated("basic_quadruped"), rigs.metarig("wolf")
    joints = controlled.without_carriers(rig, bone_map.figure_map(bone_map.bone_map(rig, other)))
    figure = controlled.figure_of_controls(rig, rig.matrix_world, joints)
    above = {
        joint.name: figure.skeleton.joints[joint.parent].name if joint.parent >= 0 else ""
        for joint in figure.skeleton.joints
    }
    assert above["toe.L"] == "foot_fk.L" and above["front_toe.R"] == "front_foot_fk.R"
    assert above["thigh_fk.L"] == joints.hips
    assert above["front_thigh_fk.L"] != joints.hips
    joints.require(figure.skeleton)


def test_bones_of_the_spine_that_carry_legs_follow_nothing(ext):
    """A pivot between the hips and the thigh; the last bone is a chest."""
    names = ("ccd_rig.motion.retargeting.figures", "ccd_rig.blender.retarget.sampling")
    figures, sampling = map(ext.module, names)
    rig = rigs.chain(6)
    leg = figures.Limb("left leg", "bone_2", "bone_3", "bone_4")
    sources = {bone.name: bone.name for bone in rig.data.bones}
    whole = figures.FigureMap(sources, "bone_0", (leg,), trunk=("bone_0", "bone_1", "bone_5"))
    left = sampling.without_carriers(rig, whole)
    assert left.trunk == ("bone_0", "bone_5")
    assert left.sources.keys() == sources.keys() - {"bone_1"}
    assert sampling.without_carriers(rig, left) == left


def test_limbs_are_on_their_sides_and_get_the_weights_of_these(ext, source, target):
    """Weights may differ by side, and reports name limbs."""
    maps = ext.module("ccd_rig.blender.retarget.bone_map")
    figure = maps.figure_map(maps.bone_map(target, source))
    ends = {limb.name: limb.end for limb in figure.legs}
    assert ends == {"left leg": "foot.L", "right leg": "foot.R"}
    assert {limb.end: limb.is_right for limb in figure.legs} == {"foot.L": False, "foot.R": True}
