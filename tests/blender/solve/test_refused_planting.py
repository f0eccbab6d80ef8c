"""Planting that cannot be is refused by name, and advice is given."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from planted import constrain, limit, standing


def _connected(rig):
    with rigs.edit_bones(rig) as bones:
        bones["hips"].head = bones["root"].tail
        bones["hips"].use_connect = True


def _two_trees(rig):
    with rigs.edit_bones(rig) as bones:
        bones["thigh.R"].parent = None


def _no_rotation(rig):
    rig.data.bones["shin.L"].use_inherit_rotation = False


def _above(rig):
    constrain(rig, "REACH", "head", "Head", rigs.empty("Look"))


def _below(rig):
    target = rigs.empty("Bag")
    target.parent, target.parent_type, target.parent_bone = rig, "BONE", "head"
    rig.ccd_rig.constraints["Plant L"].target = target


def _slides(rig):
    rig.pose.bones["shin.L"].ccd_rig.use_slide = (False, True, False)


def _set(bone, field, value):
    return lambda rig: setattr(rig.pose.bones[bone], field, value)


def _row(field, value):
    return lambda rig: setattr(rig.ccd_rig.constraints["Plant L"], field, value)


BAD = {
    "carrier's location locked": (_set("hips", "lock_location", (True, False, False)), "'hips' carries"),
    "carrier's rotation locked": (_set("hips", "lock_rotation", (True, True, True)), "rotation is locked"),
    "carrier connected": (_connected, "'hips' carries the figure .* connected to its parent"),
    "two trees": (_two_trees, "end at different bones, 'hips' and 'thigh.R'"),
    "other lengths": (_row("chain_length", 3), "end at different bones, 'thigh.L' and 'hips'"),
    "no inherited rotation": (_no_rotation, "'shin.L'"),
    "another chain goes further up": (_above, "hangs on bone 'root', which constraint 'Head'"),
    "target hangs on the figure": (_below, "Plant L"),
    "a leg slides": (_slides, "'shin.L' slides"),
    "no such bone": (_row("tip", "fot.L"), "'fot.L' is not in armature"),
    "influence is no number": (_row("influence", math.nan), "Influence is nan"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_by_name(bake, errors, case):
    spoil, message = BAD[case]
    rig = standing()
    spoil(rig)
    rigs.update()
    poses = [bone.matrix_basis.copy() for bone in rig.pose.bones]
    with pytest.raises(errors.CCDRigError, match=message):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5))
    assert not bpy.data.actions
    assert rig.animation_data is None or rig.animation_data.action is None
    assert [bone.matrix_basis for bone in rig.pose.bones] == poses


def test_advice(checks):
    rig = standing()
    row = rig.ccd_rig.constraints["Plant L"]
    row.influence = 0.4
    for name in ("shin.L", "thigh.L", "foot.L"):
        rig.pose.bones[name].lock_rotation = (True, True, True)
    limit(rig, "hips", "CONE")
    rigs.update()
    words = [problem.message for problem in checks.problems(rig, bpy.context.scene)]
    assert any("planted while influence is above 0.5" in each for each in words)
    assert any("stands stiffly" in each for each in words)
    assert any("its limit cannot hold" in each for each in words)
