"""Limits of bones that no goal of their chain moves: keyed inside, whatever their base pose holds."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from mathutils import Quaternion
from rigs import keyed, reach

FRAMES = range(1, 10)
CHANNELS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}


def limit_to(rig, bone, lower, upper):
    """Let a bone turn about its X axis alone, by lower..upper radians."""
    limit = rig.pose.bones[bone].ccd_rig.limit
    limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", (1, 0, 0), lower, upper


def require_inside(rig, bone, lower, upper):
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        w, x, y, z = rig.pose.bones[bone].matrix_basis.to_quaternion()
        assert lower - 1e-5 <= 2.0 * math.atan2(x, w) <= upper + 1e-5, frame
        assert max(abs(y), abs(z)) < 1e-5, frame


def balanced(mode, way):
    """A chain whose last bone carries no mass, and is keyed outside its limit in a rotation mode."""
    rig = rigs.chain(4)
    rig.pose.bones["bone_1"].ccd_rig.mass = 1.0
    limit_to(rig, "bone_3", 0.5, 1.0)
    bone = rig.pose.bones["bone_3"]
    bone.rotation_mode = mode
    for frame in FRAMES:
        rigs.set_rotation(bone, Quaternion((0.6, 0.8, 0.0), 0.1 - 0.1 * frame))
        factor = {"signs": 1.0 - 2.0 * (frame % 2), "long": 1.37}.get(way, 1.0)
        if mode == "QUATERNION":
            bone.rotation_quaternion = [factor * each for each in bone.rotation_quaternion]
        bone.keyframe_insert(CHANNELS.get(mode, "rotation_euler"), frame=frame)
    if way == "tilted":
        rig.rotation_euler = (0.3, 0.4, 0.5)
    path = {1: (0.3, 0.2, 2.0), 9: (0.1, -0.2, 2.0)}
    reach(rig, "bone_3", keyed(rigs.empty("T"), path), kind="BALANCE")
    rigs.update()
    return rig


@pytest.mark.parametrize(
    ("mode", "way"),
    [
        *((mode, way) for mode in rigs.MODES for way in ("plain", "again")),
        *((mode, way) for mode in ("QUATERNION", "AXIS_ANGLE", "ZXY") for way in ("tilted", "step")),
        ("QUATERNION", "signs"),
        ("QUATERNION", "long"),
    ],
)
def test_a_bone_without_mass_is_keyed_inside_its_limit(bake, mode, way):
    rig = balanced(mode, way)
    fields = {"step": 2} if way == "step" else {}
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9, **fields))
    require_inside(rig, "bone_3", 0.5, 1.0)
    if way == "again":  # it starts from the motion before any bake
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9, smoothness=0.5))
        require_inside(rig, "bone_3", 0.5, 1.0)


def test_a_chain_on_a_bone_that_its_limit_turns_is_solved_from_there(bake):
    """A hand on a balanced spine, whose last bone carries no mass and stands outside its limit."""
    rig = rigs.chain(6)
    rig.pose.bones["bone_0"].ccd_rig.mass = 1.0
    limit_to(rig, "bone_2", 0.5, 1.0)
    point = keyed(rigs.empty("Point"), {1: (0.1, 0.05, 0.4), 9: (0.1, -0.2, 0.4)})
    reach(rig, "bone_2", point, "Balance", kind="BALANCE")
    hand = keyed(rigs.empty("Hand"), {1: (0.3, 0.2, 4.0), 9: (0.1, -0.2, 4.0)})
    reach(rig, "bone_5", hand, "Hand", chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9))
    assert max(entry.keyed_residual for entry in report.entries) < 1e-3
    assert report.check.mismatches() == ()
    require_inside(rig, "bone_2", 0.5, 1.0)
    solved = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    assert solved.result.status.name == "CONVERGED"
