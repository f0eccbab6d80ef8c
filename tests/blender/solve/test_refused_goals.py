"""Goals that cannot be met by any pose, or surprise: they are named before anything is solved."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from goal_arms import leg
from rigs import setting

ROW = "ccd_rig.constraints[0]"


def pole_hangs_on_chain(rig):
    row = rig.ccd_rig.constraints[0]
    row.pole_target.parent, row.pole_target.parent_type, row.pole_target.parent_bone = rig, "BONE", "thigh"


def pole_bone_is_gone(rig):
    row = rig.ccd_rig.constraints[0]
    row.pole_target, row.pole_bone = rigs.chain(2, name="Other"), "nowhere"


def pole_is_nowhere(rig):
    row = rig.ccd_rig.constraints[0]
    row.pole_target.animation_data_clear()
    row.pole_target.location = (math.nan, 0, 0)


def flat_target(rig):
    row = rig.ccd_rig.constraints[0]
    row.rotation, row.pole_target = "ORIENTATION", None
    row.target.scale = (1, 0, 1)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda rig: setting(ROW, pole_target=rig, pole_bone="shin")(rig),
            "pole bone 'shin' moves with the chain",
        ),
        (pole_hangs_on_chain, "pole moves with the chain.*thigh"),
        (lambda rig: setting(ROW, pole_target=rig)(rig), "the pole is the armature itself"),
        (setting(ROW, chain_length=1), "pole needs a chain of two bones"),
        (setting(ROW, use_tail=False), "pole needs a chain of two bones"),
        (pole_bone_is_gone, "'nowhere'"),
        (pole_is_nowhere, "pole 'Knee' has a place that is not a number"),
        (setting(ROW, use_position=False), "asks for nothing"),
        (flat_target, "scale of 0"),
    ],
)
def test_what_cannot_be_is_said(bake, errors, spoil, words):
    rig, _ = leg()
    spoil(rig)
    rigs.update()
    before = len(bpy.data.actions)
    with pytest.raises(errors.CCDRigError, match=words) as caught:
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert "'Foot'" in str(caught.value)
    assert len(bpy.data.actions) == before
    assert rig.animation_data is None


def test_warnings(checks):
    def warned():
        return [p.message for p in checks.problems(rig, bpy.context.scene) if p.severity == "WARNING"]

    rig, row = leg()
    assert warned() == []
    row.max_extension, row.extension_joints = 0.8, 1
    assert "Max Extension is about one bone" in warned()[0]
    row.max_extension = 1.0
    row.rotation = "ORIENTATION"
    twin = rigs.reach(
        rig, "shin", row.target, "Twin", chain_length=2, pole_target=row.pole_target, rotation="DIRECTION"
    )
    assert len(warned()) == 3
    twin.priority = 1
    assert warned() == []
    twin.pole_target, twin.pole_bone = None, "left"
    assert "no pole target" in warned()[0]
