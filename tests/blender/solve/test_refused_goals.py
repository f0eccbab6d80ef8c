"""Goals that cannot be met by any pose, or surprise: they are named before anything is solved."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from goal_arms import leg


def pole_in_chain(rig, row):
    row.pole_target, row.pole_bone = rig, "shin"


def pole_hangs_on_chain(rig, row):
    row.pole_target.parent, row.pole_target.parent_type, row.pole_target.parent_bone = rig, "BONE", "thigh"


def pole_is_the_rig(rig, row):
    row.pole_target = rig


def pole_of_one_bone(rig, row):
    row.chain_length = 1


def pole_of_one_bone_before_the_head(rig, row):
    row.use_tail = False


def pole_bone_is_gone(rig, row):
    row.pole_target, row.pole_bone = rigs.chain(2, name="Other"), "nowhere"


def pole_is_nowhere(rig, row):
    row.pole_target.animation_data_clear()
    row.pole_target.location = (math.nan, 0, 0)


def asks_for_nothing(rig, row):
    row.use_position = False


def flat_target(rig, row):
    row.rotation, row.pole_target = "ORIENTATION", None
    row.target.scale = (1, 0, 1)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (pole_in_chain, "pole bone 'shin' moves with the chain"),
        (pole_hangs_on_chain, "pole moves with the chain.*thigh"),
        (pole_is_the_rig, "the pole is the armature itself"),
        (pole_of_one_bone, "pole needs a chain of two bones"),
        (pole_of_one_bone_before_the_head, "pole needs a chain of two bones"),
        (pole_bone_is_gone, "'nowhere'"),
        (pole_is_nowhere, "pole 'Knee' has a place that is not a number"),
        (asks_for_nothing, "asks for nothing"),
        (flat_target, "scale of 0"),
    ],
)
def test_what_cannot_be_is_said(bake, errors, spoil, words):
    rig, row = leg()
    spoil(rig, row)
    rigs.update()
    before = len(bpy.data.actions)
    with pytest.raises(errors.CCDRigError, match=words) as caught:
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert "'Foot'" in str(caught.value)
    assert len(bpy.data.actions) == before
    assert rig.animation_data is None


def test_warnings(ext):
    checks = ext.module("ccd_rig.blender.checks")

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
