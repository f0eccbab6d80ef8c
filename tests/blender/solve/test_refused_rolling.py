"""Coupled offsets that cannot be are refused by name."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from mathutils import Quaternion
from rigs import setting
from rolling import DOWN, bend, hinge, kneecap, leg, roll

SHIN = 'pose.bones["shin"]'
OFFSET = f"{SHIN}.ccd_rig.coupled_offsets[0]"
FOOT = 'ccd_rig.constraints["Foot"]'


def connected(rig):
    with rigs.edit_bones(rig) as bones:
        bones["shin"].use_connect = True


def driver_beyond(rig):
    hinge(rig.pose.bones["thigh"], -1.0, 1.0)
    rig.path_resolve(OFFSET).driver = "thigh"
    rig.ccd_rig.constraints["Foot"].chain_length = 2


def whole_turn(rig):
    hinge(rig.pose.bones["shin"], -3.2, 3.2)


def one_point(rig):
    while len(rig.path_resolve(OFFSET).points) > 1:
        rig.path_resolve(OFFSET).points.remove(0)


def same_angle(rig):
    rig.path_resolve(OFFSET).points[2].angle = rig.path_resolve(OFFSET).points[1].angle


def driven(rig):
    rig.pose.bones["shin"].driver_add("location", 1).driver.expression = "0.1"


def driven_follower(rig):
    kneecap(rig)
    rig.pose.bones["cap"].driver_add("location", 2).driver.expression = "0.1"


def planted(rig):
    rigs.reach(rig, "foot", None, "Plant", kind="PLANT", chain_length=4)
    rig.pose.bones["hips"].ccd_rig.use_slide = (False,) * 3


REFUSED = {
    connected: "'shin' has a coupled offset but is connected",
    setting(
        SHIN, lock_location=(True, True, False)
    ): "'shin' has a coupled offset but its location is locked on Y",
    setting(
        f"{SHIN}.ccd_rig", use_slide=(False, True, False)
    ): "'shin' slides along Y, where a coupled offset says its location",
    setting(OFFSET, driver="calf"): "'shin', coupled offset 1: its driver 'calf' is not in armature 'Rig'",
    setting(OFFSET, driver="foot"): "its driver 'foot' must be the bone itself or one of its parents",
    driver_beyond: "its driver 'thigh' is in no chain that is solved: raise the chain length",
    setting(OFFSET, driver="thigh"): "its driver 'thigh' needs a hinge of less than a full turn",
    whole_turn: "its driver 'shin' needs a hinge of less than a full turn",
    setting(SHIN, lock_rotation=(True,) * 3): "its driver 'shin' has its rotation locked",
    one_point: "'shin', coupled offset 1: its curve has 1 points",
    setting(
        f"{OFFSET}.points[2]", shift=math.nan
    ): "'shin', coupled offset 1: a point of its curve is not a number",
    same_angle: "'shin', coupled offset 1: two points of its curve are at 68.75°",
    setting(OFFSET, axis=(0, 0, 0)): "'shin', coupled offset 1: its axis is zero",
    setting(OFFSET, axis=(0, math.nan, 0)): "'shin', coupled offset 1: .*nan",
    driven: r"'shin': location\[1\] has a driver",
    driven_follower: r"'cap': location\[2\] has a driver",
    setting(
        FOOT, max_extension=0.9
    ): "'Foot': Max Extension is below 1, but bone 'shin' has a coupled offset",
    setting(FOOT, method="TWO_BONE"): "bone 'shin' has coupled offsets.*choose Loop",
    planted: "'Plant': bone 'shin' has a coupled offset",
}


@pytest.mark.parametrize("spoil", REFUSED, ids=lambda each: each.__name__)
def test_what_cannot_roll_is_said(ext, bake, checks, spoil):
    rig = leg()
    bend(rig, chain_length=3)
    spoil(rig)
    rigs.update()
    problems = [p for p in checks.problems(rig, bpy.context.scene) if p.severity == "ERROR"]
    assert problems
    with pytest.raises(ext.core.CCDRigError, match="(?i)" + REFUSED[spoil]):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert rig.animation_data is None or rig.animation_data.action is None
    with pytest.raises(ext.core.CCDRigError):
        bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    assert all(bone.rotation_quaternion == Quaternion() for bone in rig.pose.bones)


def test_a_figure_that_follows_its_feet_has_no_coupled_offset(ext, bake):
    rig = leg(rolls=False)
    with rigs.edit_bones(rig) as bones:
        made = bones.new("arm")
        made.head, made.tail, made.parent = (0, 0, 1.2), (0.3, 0, 1.2), bones["hips"]
    hinge(rig.pose.bones["arm"], -1.0, 1.0)
    roll(rig.pose.bones["arm"], (0, 1, 0), DOWN)
    bend(rig, chain_length=1).tip = "arm"
    planted(rig)
    rig.ccd_rig.body = "FOLLOW_FEET"
    with pytest.raises(ext.core.CCDRigError, match=r"'arm' has a coupled offset, .* follows its planted"):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
