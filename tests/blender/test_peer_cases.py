"""Cases from the test suites of other CCD solvers, through the installed extension, wherever the armature is.

Unity's CCD 2D, two unit links, closed-chain-ik-js, Godot's cones, three.js' hinges: each is given in armature
space, is carried into the world by the armature object and its parents, and must come out there. What is left
out of reach is told in armature space, where bones are rigid.
"""

from __future__ import annotations

import itertools
import math

import bpy
import pytest
import rigs
from mathutils import Vector
from peer_cases import CASES, PLACES, START, X, Z, cone, from_cone, hinge, one_link, put, straight

SOLVE = 1e-4  # [m] the solver's own tolerance
FLOAT32 = 2e-6  # relative: places come through a few float32 matrices
ANGLE = 1e-5  # [rad] rotations and limits are stored as float32


# --- measuring what Blender shows ---------------------------------------------------------------------------


def constrain(rig, target, chain_length=0):
    """Let the last bone reach for an Empty at a point of armature space, given in world space."""
    goal = rigs.empty("Goal", rig.matrix_world @ Vector(target))
    rigs.reach(rig, rig.pose.bones[-1].name, goal, "Tip", chain_length=chain_length)
    rigs.activate(rig)
    rigs.update()


def measured(rig):
    """(world metres, armature units) between the tip and the target, as Blender evaluates them."""
    rigs.update()
    depsgraph = bpy.context.evaluated_depsgraph_get()
    evaluated = rig.evaluated_get(depsgraph)
    row = rig.ccd_rig.constraints[0]
    goal = row.target.evaluated_get(depsgraph).matrix_world.translation
    tip = evaluated.pose.bones[row.tip].tail
    return (
        (evaluated.matrix_world @ tip - goal).length,
        (tip - evaluated.matrix_world.inverted() @ goal).length,
    )


def slack(rig):
    """World metres that float32 may lose here."""
    return FLOAT32 * (rig.matrix_world.translation.length + 30.0 * max(map(abs, rig.matrix_world.to_scale())))


def hinge_angle(rotation, axis):
    """Radians about the unit axis, -pi to pi; it must be a turn about that axis and no other."""
    vector = Vector((rotation.x, rotation.y, rotation.z))
    assert (vector - axis * vector.dot(axis)).length < ANGLE
    return math.remainder(2.0 * math.atan2(vector.dot(axis), rotation.w), math.tau)


def swing_angle(rotation):
    """Radians between the bone and its rest direction."""
    return 2.0 * math.atan2(math.hypot(rotation.x, rotation.z), math.hypot(rotation.w, rotation.y))


def assert_limits_hold(rig):
    """In the bones' own space, from their channels, without the extension's arithmetic."""
    for bone in rig.pose.bones:
        limit, rotation = bone.ccd_rig.limit, bone.rotation_quaternion.normalized()
        if limit.kind == "HINGE":
            angle = hinge_angle(rotation, Vector(limit.axis).normalized())
            turns = [angle + math.tau * k for k in (-2, -1, 0, 1, 2)]
            assert any(limit.hinge_lower - ANGLE <= a <= limit.hinge_upper + ANGLE for a in turns), (
                bone.name,
                angle,
            )
        elif limit.kind == "CONE":
            assert swing_angle(rotation) <= limit.cone_radius + ANGLE, bone.name


def assert_angles(rig, angles):
    for name, expected in angles.items():
        bone = rig.pose.bones[name]
        rotation = bone.rotation_quaternion.normalized()
        if bone.ccd_rig.limit.kind == "HINGE":
            found = hinge_angle(rotation, Vector(bone.ccd_rig.limit.axis).normalized())
        else:
            found = swing_angle(rotation)
        assert abs(math.remainder(found - expected, math.tau)) < 1e-3, (name, found, expected)


def solve(rig):
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}


def pose(rig):
    rigs.update()
    return [tuple(bone.rotation_quaternion) for bone in rig.pose.bones]


def assert_as_expected(rig, case, said):
    world, own = measured(rig)
    if case.left == 0.0:
        assert world <= SOLVE + slack(rig)
        assert "Info: Reached." in said or "Info: 2 of 2 frames reached" in said
    else:
        assert abs(own - case.left) <= SOLVE + slack(rig)
        assert "Warning: Not reached" in said or "Warning: 0 of 2 frames reached" in said
    assert_limits_hold(rig)
    assert_angles(rig, case.angles)


def _cases_and_places():
    """Each case in each place; in every run each case in four, each place with several cases."""
    for i, name in enumerate(CASES):
        for k, place in enumerate(PLACES):
            often = k == 0 or (k - 1 - i) % (len(PLACES) - 1) in (0, 4, 8)
            yield pytest.param(name, place, marks=() if often else pytest.mark.mass)


@pytest.mark.parametrize(("name", "place"), _cases_and_places())
def test_case(ext, capfd, name, place):
    """Solved, and once it is reached solved again to the same bits; and baked from the same start."""
    case = CASES[name]
    rig = case.make()
    put(rig, place)
    constrain(rig, case.target, case.chain_length)
    start = pose(rig)
    capfd.readouterr()
    solve(rig)
    assert_as_expected(rig, case, capfd.readouterr().out)
    if case.left == 0.0:
        reached = pose(rig)
        solve(rig)
        assert pose(rig) == reached
    for bone, rotation in zip(rig.pose.bones, start, strict=True):
        bone.rotation_quaternion = rotation
    rigs.update()
    capfd.readouterr()
    assert bpy.ops.ccd_rig.bake(frame_start=1, frame_end=2) == {"FINISHED"}
    bpy.context.scene.frame_set(2)
    assert_as_expected(rig, case, capfd.readouterr().out)


@pytest.mark.parametrize("place", PLACES)
def test_a_link_that_is_locked_stays(ext, place):
    rig = one_link(-0.05, 0.05)
    rig.pose.bones["bone_0"].ccd_rig.stiffness = 1.0
    put(rig, place)
    constrain(rig, (0, 1, 0))
    before = pose(rig)
    with pytest.raises(RuntimeError, match="every bone in the chains of Tip is locked"):
        solve(rig)
    assert pose(rig) == before


# --- 20 hinges of alternating axes --------------------------------------------------------------------------


@pytest.mark.mass
@pytest.mark.parametrize("place", PLACES)
def test_20_alternating_hinges_never_lose_ground(ext, place):
    """Over 50 changes of target a solve never ends farther off than it began."""
    rig = straight(*((0, i, 0) for i in range(21)))
    for i in range(20):
        hinge(rig, i, X if i % 2 else Z, -0.1, 0.1)
    put(rig, place)
    targets = [(1, 19, 0), (-1, 19, 0), (0, 19, 1), (0, 19, -1), (0.5, 19.5, 0.5)]
    constrain(rig, targets[0])
    for i in range(50):
        rig.ccd_rig.constraints[0].target.location = rig.matrix_world @ Vector(targets[i * 7 % 5])
        _, before = measured(rig)
        solve(rig)
        world, after = measured(rig)
        assert after <= max(before, SOLVE) + 0.01, (i, before, after)
        assert math.isfinite(world)
        assert_limits_hold(rig)


# --- Godot's cones: stable, continuous ----------------------------------------------------------------------


@pytest.mark.mass
@pytest.mark.parametrize("place", PLACES)
def test_a_cone_gives_the_same_bits_every_time(ext, place):
    rig = cone(math.radians(45))
    put(rig, place)
    constrain(rig, from_cone(math.radians(80)), 1)
    seen = set()
    for _ in range(100):
        rig.pose.bones["bone_1"].rotation_quaternion = START
        rigs.update()
        solve(rig)
        seen.add(tuple(rig.pose.bones["bone_1"].rotation_quaternion))
    assert len(seen) == 1


def swept(rig, swings, about=0.6):
    """Rotations of the cone, solved from START, as the target moves."""
    found = []
    for swing in swings:
        rig.ccd_rig.constraints[0].target.location = rig.matrix_world @ from_cone(swing, about)
        rig.pose.bones["bone_1"].rotation_quaternion = START
        rigs.update()
        solve(rig)
        found.append(rig.pose.bones["bone_1"].rotation_quaternion.normalized())
    return found


def apart(a, b):
    """Radians between two rotations."""
    return 2.0 * math.acos(min(1.0, abs(a.dot(b))))


@pytest.mark.mass
@pytest.mark.parametrize("place", PLACES)
def test_small_moves_of_the_target_turn_a_cone_little(ext, place):
    radius = math.radians(45)
    rig = cone(radius)
    put(rig, place)
    constrain(rig, from_cone(radius), 1)
    for swing in (0.5 * radius, radius - 5e-6, radius, 2.0 * radius, 3.0):
        a, b = swept(rig, (swing, swing + 1e-5))
        assert apart(a, b) < math.radians(1), swing
    across = swept(rig, [radius * (0.6 + 0.8 * i / 14) for i in range(15)])
    assert max(apart(a, b) for a, b in itertools.pairwise(across)) < math.radians(15)
    assert_limits_hold(rig)
