"""Pole Angle held against Blender's own IK: the same side of the bend, on rigs drawn at random."""

from __future__ import annotations

import math
import random

import bpy
import pytest
import rigs
from mathutils import Quaternion, Vector
from rigs import B

METHODS = ("CCD", "TWO_BONE")


def random_leg(rng: random.Random) -> bpy.types.Object:
    """Hips, and two bones that are bent at rest, any way and with any roll; the armature stands anywhere."""
    across = rigs.random_rotation(rng) @ Vector((1.0, 0.0, 0.0))
    line = across.orthogonal().normalized()
    hip = Vector((0.3, -0.2, 0.4))
    knee = hip + rng.uniform(0.6, 1.2) * line + rng.uniform(0.1, 0.4) * across
    foot = hip + rng.uniform(1.4, 2.0) * line
    rig = rigs.armature(
        [
            B("hips", (0, 0, 0), (0, 0.1, 0.3)),
            B("thigh", hip, knee, "hips", rng.uniform(-3.0, 3.0)),
            B("shin", knee, foot, "thigh", rng.uniform(-3.0, 3.0), connect=True),
        ]
    )
    rig.rotation_mode = "QUATERNION"
    rig.rotation_quaternion = rigs.random_rotation(rng)
    rig.location, rig.scale = (1.0, -2.0, 0.5), [rng.uniform(0.5, 2.0)] * 3
    rigs.set_rotation(rig.pose.bones["hips"], rigs.random_rotation(rng))
    rigs.update()
    return rig


def across(vector: Vector, line: Vector) -> Vector:
    return vector - line * vector.dot(line)


def turn_about(line: Vector, a: Vector, b: Vector) -> float:
    """The signed angle about a unit line from one vector to another, radians."""
    a, b = across(a, line), across(b, line)
    return math.atan2(line.dot(a.cross(b)), a.dot(b))


def angle_for(rig: bpy.types.Object, pole_angle: float) -> float:
    """From what Blender turns to the pole, X cos + Z sin of the first bone, to the bend, both at rest."""
    thigh, shin = rig.data.bones["thigh"], rig.data.bones["shin"]
    axes = thigh.matrix_local.to_3x3()
    line = (shin.tail_local - thigh.head_local).normalized()
    up = axes @ Vector((math.cos(pole_angle), 0.0, math.sin(pole_angle)))
    return turn_about(line, up, shin.head_local - thigh.head_local)


def bend(rig: bpy.types.Object) -> tuple[Vector, Vector]:
    """The unit line from hip to foot, and the knee from the hip, in the world."""
    rigs.update()
    thigh, shin = (rig.matrix_world @ rig.pose.bones[name].matrix for name in ("thigh", "shin"))
    hip, knee = thigh.translation, shin.translation
    foot = rig.matrix_world @ rig.pose.bones["shin"].tail
    return (foot - hip).normalized(), knee - hip


@pytest.mark.parametrize("method", METHODS)
def test_the_bend_is_that_of_blender_s_ik(ext, method):
    for seed in range(30):
        bpy.ops.wm.read_homefile(use_empty=True)
        rng = random.Random(seed)
        rig = random_leg(rng)
        length = sum(rig.data.bones[name].length for name in ("thigh", "shin"))
        hip = rig.pose.bones["thigh"].matrix.translation.copy()
        way = rigs.random_rotation(rng) @ Vector((1.0, 0.0, 0.0))
        goal = rigs.empty("Goal", rig.matrix_world @ (hip + rng.uniform(0.6, 0.9) * length * way))
        side = Quaternion(way, rng.uniform(0.0, 6.0)) @ way.orthogonal().normalized()
        pole = rigs.empty("Pole", rig.matrix_world @ (hip + length * (side + rng.uniform(-1.0, 1.0) * way)))
        ik = rig.pose.bones["shin"].constraints.new("IK")
        ik.target, ik.pole_target, ik.chain_count = goal, pole, 2
        ik.pole_angle = rng.uniform(-math.pi, math.pi)
        line, expected = bend(rig)
        assert (rig.matrix_world @ rig.pose.bones["shin"].tail - goal.location).length < 1e-2 * length
        ik.mute = True
        row = rig.ccd_rig.constraints.add()
        row.tip, row.chain_length, row.target, row.pole_target = "shin", 2, goal, pole
        row.pole_angle, row.method = angle_for(rig, ik.pole_angle), method
        rig.ccd_rig.solver.angle_tolerance = 1e-4
        rigs.activate(rig)
        assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
        found = bend(rig)
        assert abs(math.degrees(turn_about(line, expected, found[1]))) < 0.1, seed
        assert abs(math.degrees(turn_about(found[0], expected, found[1]))) < 0.1, seed


def test_match_targets_puts_a_pole_where_its_angle_has_it(ext):
    """The bake that follows has nothing to do."""
    rig = random_leg(random.Random(3))
    goal, pole = rigs.empty("Goal", (3.0, 0.0, 0.0)), rigs.empty("Pole", (0.0, 4.0, 1.0))
    row = rig.ccd_rig.constraints.add()
    row.tip, row.chain_length, row.target, row.pole_target = "shin", 2, goal, pole
    row.pole_angle = 1.1
    rigs.activate(rig)
    line, present = bend(rig)
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
    hip = rig.matrix_world @ rig.pose.bones["thigh"].matrix.translation
    assert turn_about(line, pole.location - hip, present) == pytest.approx(1.1, abs=1e-4)


def test_a_pole_angle_that_is_no_number_is_named(ext):
    rig = random_leg(random.Random(1))
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target, row.pole_target = "Leg", "shin", rigs.empty("Goal"), rigs.empty("Pole")
    row.pole_angle = math.nan
    rigs.activate(rig)
    with pytest.raises(RuntimeError, match="'Leg': Pole Angle is not a number"):
        bpy.ops.ccd_rig.solve()
