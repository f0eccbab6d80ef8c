"""Effector offsets, rotation bones and where a pole's chain ends, held against what Blender shows."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from mathutils import Euler, Matrix, Quaternion, Vector

SOLVE = 1e-4  # [m] the solver's own tolerance
TURNED = 1e-3  # [rad] the solver's own tolerance
PLAYED = 1e-4  # [m] and [rad]: float32 bones end to end, evaluated by Blender
FRAMES = 25

PLACES = {
    "at home": Matrix(),
    "scaled": Matrix.LocRotScale((1, 2, 3), Euler((0.3, 0.2, 0.1)), (2.5, 2.5, 2.5)),
    "stretched": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (1.0, 2.0, 0.5)),
}


def leg(toes=True):
    """Thigh, shin, foot and toes, the knee to the front (-Y), with a target for the foot and a pole."""
    bones = [
        rigs.B("thigh", (0, 0, 2), (0, -0.1, 1.05)),
        rigs.B("shin", (0, -0.1, 1.05), (0, 0, 0.1), "thigh", connect=True),
        rigs.B("foot", (0, 0, 0.1), (0, -0.2, 0), "shin", connect=True),
    ]
    if toes:
        bones.append(rigs.B("toes", (0, -0.2, 0), (0, -0.3, 0), "foot", connect=True))
    return rigs.armature(bones), rigs.empty("Target"), rigs.empty("Pole", (0.5, -3.0, 1.0))


def solved(bake, rig):
    """The armature, evaluated, after a solve at the current frame."""
    rigs.update()
    result = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig).result
    rigs.update()
    return result, rig.evaluated_get(bpy.context.evaluated_depsgraph_get())


@pytest.mark.parametrize("use_tail", [True, False])
@pytest.mark.parametrize("place", PLACES)
def test_the_offset_point_is_brought_to_the_target(bake, place, use_tail):
    rig = rigs.chain(4, 0.5)
    rig.matrix_world = PLACES[place]
    target = rigs.empty("Target", rig.matrix_world @ Vector((0.6, 0.4, 1.0)))
    row = rigs.reach(rig, "bone_3", target, "Foot", use_tail=use_tail, effector_offset=(0.2, -0.1, 0.3))
    _, evaluated = solved(bake, rig)
    bone = evaluated.pose.bones["bone_3"]
    end = Vector((0.0, bone.length if use_tail else 0.0, 0.0))
    point = evaluated.matrix_world @ bone.matrix @ (end + Vector(row.effector_offset))
    assert (point - target.matrix_world.translation).length < 5 * SOLVE


def test_position_and_rotation_of_different_bones(bake):
    """The toes are brought to the target; the foot is turned as the target is."""
    rig, target, _ = leg()
    target.rotation_mode = "QUATERNION"
    target.location = (0.1, -0.4, 0.3)
    target.rotation_quaternion = rig.pose.bones["foot"].matrix.to_quaternion() @ Quaternion((1, 0, 0), 0.3)
    rigs.reach(rig, "toes", target, "Foot", rotation="ORIENTATION", rotation_bone="foot")
    _, evaluated = solved(bake, rig)
    bones = evaluated.pose.bones
    assert (bones["toes"].tail - target.location).length < 3 * SOLVE
    angle = bones["foot"].matrix.to_quaternion().rotation_difference(target.rotation_quaternion).angle
    assert min(angle, math.tau - angle) < TURNED + PLAYED


@pytest.mark.parametrize("use_tail", [True, False])
@pytest.mark.parametrize("rotation", ["ORIENTATION", "DIRECTION"])
def test_a_foot_that_is_turned_leaves_the_pole_to_thigh_and_shin(bake, use_tail, rotation):
    rig, target, pole = leg(toes=False)
    target.rotation_mode = "QUATERNION"
    rest = rig.pose.bones["foot"].matrix.to_quaternion()
    for frame in range(1, FRAMES + 1, 4):
        a = math.tau * frame / FRAMES
        target.location = (0.1 * math.sin(a), -0.2 + 0.3 * math.cos(a), 0.2 + 0.15 * (1.0 + math.sin(a)))
        target.rotation_quaternion = Quaternion((1, 0, 0), 0.3 * math.sin(a)) @ rest
        for path in ("location", "rotation_quaternion"):
            target.keyframe_insert(path, frame=frame)
    fields = {"use_tail": use_tail, "rotation": rotation, "pole_target": pole}
    rigs.reach(rig, "foot", target, "Foot", **fields)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    scene = bpy.context.scene
    for frame in range(1, FRAMES + 1):
        scene.frame_set(frame)
        bones = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
        hip, knee, ankle = (bones[name].head for name in ("thigh", "shin", "foot"))
        line = (ankle - hip).normalized()
        sides = [each - hip - line * (each - hip).dot(line) for each in (knee, pole.location)]
        assert sides[0].angle(sides[1]) < TURNED + 5 * PLAYED


def test_checks_name_what_is_wrong(checks):
    rig, target, pole = leg()
    row = rigs.reach(rig, "foot", target, "Foot", chain_length=2)

    def said(severity="ERROR"):
        rigs.update()
        found = [p.message for p in checks.problems(rig, bpy.context.scene) if p.severity == severity]
        assert all("'Foot'" in each for each in found)
        return found

    assert said() == []
    row.effector_offset = (math.nan, 0.0, 0.0)
    assert "Bone Offset is not a number" in said()[0]
    row.effector_offset = (0.1, 0.0, 0.0)
    assert said() == []
    row.method = "TWO_BONE"
    assert "knows no Bone Offset" in said()[0]
    row.method, row.effector_offset = "CCD", (0.0, 0.0, 0.0)
    row.rotation_bone = "nowhere"
    assert said() == []  # nothing is turned
    row.rotation = "ORIENTATION"
    assert "rotation bone 'nowhere' is not in armature 'Rig'" in said()[0]
    row.rotation_bone = "Shin"
    assert "Did you mean 'shin'" in said()[0]
    row.rotation_bone = "thigh"
    assert "rotation bone 'thigh' is not in its chain, which goes from 'shin' to 'foot'" in said()[0]
    row.rotation_bone = "shin"
    assert said() == []
    row.rotation_bone, row.pole_target = "", pole
    assert "a pole needs a chain of two bones that can turn before 'foot'" in said()[0]
    row.chain_length = 3
    assert said() == []
    row.rotation_bone = "shin"
    assert "a pole needs a chain of two bones that can turn before 'shin'" in said()[0]


def test_different_points_and_bones_do_not_compete(checks):
    rig, target, _ = leg()
    row = rigs.reach(rig, "foot", target, "Foot", rotation="ORIENTATION")
    other = rigs.reach(rig, "foot", target, "Foot", rotation="ORIENTATION")
    other.name = "Other"

    def warned():
        rigs.update()
        return [p.message for p in checks.problems(rig, bpy.context.scene) if p.severity == "WARNING"]

    assert len(warned()) == 2
    other.effector_offset = (0.1, 0.0, 0.0)
    (message,) = warned()
    assert "both turn bone 'foot'" in message
    row.rotation_bone = "shin"
    assert warned() == []


def test_a_planted_bone_forgets_both(ext):
    rig, target, _ = leg()
    rigs.reach(
        rig, "foot", target, "Foot", kind="PLANT", effector_offset=(0.1, 0.2, 0.3), rotation_bone="shin"
    )
    (value,) = ext.module("ccd_rig.blender.properties.constraint_kinds").constraints(rig)
    assert (value.effector_offset, value.rotation_bone) == ((0.0, 0.0, 0.0), "")
