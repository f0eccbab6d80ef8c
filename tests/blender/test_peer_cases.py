"""Cases from the test suites of other CCD solvers, through the installed extension, wherever the armature is.

Unity's CCD 2D, two unit links, closed-chain-ik-js, Godot's cones, three.js' hinges: each is given in armature
space, is carried into the world by the armature object and its parents, and must come out there. What is left
out of reach is told in armature space, where bones are rigid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import bpy
import pytest
import rigs
from mathutils import Euler, Matrix, Quaternion, Vector

SOLVE = 1e-4  # [m] the solver's own tolerance
FLOAT32 = 2e-6  # relative: places come through a few float32 matrices
ANGLE = 1e-5  # [rad] rotations and limits are stored as float32
OWN = (Vector((0.4, -0.7, 0.2)), Euler((0.4, -0.5, 0.6)).to_quaternion())  # of an armature below its parent

SHIFTS = {
    "moved": Matrix.Translation((30.0, -20.0, 5.0)),
    "turned": Euler((0.7, -1.1, 2.0)).to_matrix().to_4x4(),
    "scaled": Matrix.Diagonal((2.0, 2.0, 2.0, 1.0)),
    "stretched": Matrix.Diagonal((1.0, 2.0, 1.0, 1.0)),
    "mirrored": Matrix.Diagonal((-3.0, -3.0, -3.0, 1.0)),
    "mirrored on one axis": Matrix.Diagonal((1.0, -3.0, 1.0, 1.0)),
}
PLACES = ["as it is", *SHIFTS, *(f"under {name}" for name in SHIFTS), "under mirrored under stretched"]


def put(rig: bpy.types.Object, place: str) -> None:
    """Bring the armature object to one of PLACES; below a parent it is moved and turned itself as well."""
    *above, own = place.split("under ") if "under" in place else (place,)
    names = [name.strip() for name in [*above, own] if name.strip()]
    if "under" not in place:
        rig.matrix_world = SHIFTS.get(place, Matrix())
        rigs.update()
        return
    child = rig
    rig.location, rig.rotation_mode, rig.rotation_quaternion = OWN[0], "QUATERNION", OWN[1]
    for name in names:
        parent = rigs.empty(name.title())
        parent.matrix_world = SHIFTS[name]
        child.parent = parent
        child = parent
    rigs.activate(rig)
    rigs.update()


# --- chains -------------------------------------------------------------------------------------------------


def straight(*stops: Sequence[float]) -> bpy.types.Object:
    """A chain "bone_0", "bone_1", ... with joints at these points."""
    return rigs.armature(
        [
            rigs.B(f"bone_{i}", stops[i], stops[i + 1], f"bone_{i - 1}" if i else "", connect=i > 0)
            for i in range(len(stops) - 1)
        ]
    )


def hinge(rig, index, axis, lower=-math.pi, upper=math.pi):
    """A hinge about an axis of armature space (at rest), radians."""
    bone = rig.pose.bones[f"bone_{index}"]
    own = bone.bone.matrix_local.to_3x3().transposed() @ Vector(axis)
    limit = bone.ccd_rig.limit
    limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", own, lower, upper


def turn(rig, index, axis, angle):
    """Pose a bone about an axis of armature space (at rest), radians."""
    bone = rig.pose.bones[f"bone_{index}"]
    bone.rotation_quaternion = Quaternion(bone.bone.matrix_local.to_3x3().transposed() @ Vector(axis), angle)


Z, X = (0, 0, 1), (1, 0, 0)


def unity():
    rig = straight((0, 0, 0), (1, 0, 0), (3, 0, 0), (6, 0, 0), (10, 0, 0))
    for i in range(4):
        hinge(rig, i, Z)
    rig.ccd_rig.solver.max_iterations = 500
    return rig


def two_links(first=0.0, second=0.0):
    rig = straight((0, 0, 0), (1, 0, 0), (2, 0, 0))
    for i, angle in enumerate((first, second)):
        hinge(rig, i, Z)
        turn(rig, i, Z, angle)
    rig.ccd_rig.solver.max_iterations = 50
    return rig


def one_link(lower, upper):
    rig = straight((0, 0, 0), (1, 0, 0))
    hinge(rig, 0, Z, lower, upper)
    return rig


def bent(axis, *ranges):
    """A chain of unit bones along Y, each a hinge about `axis` with a range."""
    rig = straight(*((0, i, 0) for i in range(len(ranges) + 1)))
    for i, (lower, upper) in enumerate(ranges):
        hinge(rig, i, axis, lower, upper)
    return rig


def at_angles(axis, *angles):
    """Where the end of `bent` is when its hinges are at these angles."""
    point, total = Vector(), 0.0
    for angle in angles:
        total += angle
        point += Quaternion(axis, total) @ Vector((0, 1, 0))
    return point


def leg():
    """A hip that turns freely and a knee that never straightens: 0.2 to 2.6 rad."""
    rig = straight((0, 0, 2), (0, 0, 1), (0, 0, 0))
    hinge(rig, 1, X, 0.2, 2.6)
    return rig


PARENT = Quaternion((0.3, 0.8, -0.5), 1.1)  # the posed parent of a cone, armature space
START = Quaternion((0.9, 0.1, 0.4), 0.5)  # and the cone's own pose before, which must not matter


def cone(radius):
    """A posed parent, and on it the cone that the chain consists of."""
    rig = straight((0, 0, 0), (0, 0, 1), (0, 0, 2))
    turn(rig, 0, *PARENT.to_axis_angle())
    rig.pose.bones["bone_1"].rotation_quaternion = START
    limit = rig.pose.bones["bone_1"].ccd_rig.limit
    limit.kind, limit.cone_radius = "CONE", radius
    return rig


def from_cone(swing, about=0.6):
    """Armature space: a unit away from the cone's head, `swing` rad off its rest direction."""
    rest = Vector((0, 0, 1))
    side = Quaternion(rest, about) @ Vector((1, 0, 0))
    return PARENT @ (rest + Quaternion(side, swing) @ rest)


# --- the table ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One solve.

    Attributes:
        make: the rig, posed, with its limits.
        target: armature space.
        left: distance that is left, armature space.
        chain_length: of the constraint.
        angles: {bone: expected swing or hinge angle, radians} where only one is right.
    """

    make: Callable[[], bpy.types.Object]
    target: Sequence[float]
    left: float = 0.0
    chain_length: int = 0
    angles: dict[str, float] = field(default_factory=dict)


def degrees(*angles):
    return tuple(map(math.radians, angles))


CASES = {
    "unity": Case(unity, (9, 1, 0)),
    "unity, out of reach": Case(unity, (0, 12, 0), left=2.0),
    "two links": Case(two_links, (1.5, 0.5, 0)),
    "two links from 90, 0": Case(lambda: two_links(math.pi / 2), (-0.5, -1, 0)),
    "two links from 0.1, -0.1": Case(lambda: two_links(0.1, -0.1), (1.9, 0, 0)),
    "two links, out of reach": Case(two_links, (3, 0, 0), left=1.0),
    "closed-chain": Case(
        lambda: one_link(-0.05, 0.05),
        (0, 1, 0),
        left=2 * math.sin((math.pi / 2 - 0.05) / 2),
        angles={"bone_0": 0.05},
    ),
    "closed-chain, no freedom": Case(
        lambda: one_link(0.0, 0.0), (0, 1, 0), left=math.sqrt(2.0), angles={"bone_0": 0.0}
    ),
    "cone, inside": Case(
        lambda: cone(math.radians(45)), from_cone(math.radians(30)), chain_length=1,
        angles={"bone_1": math.radians(30)},
    ),
    "cone, outside": Case(
        lambda: cone(math.radians(45)),
        from_cone(math.radians(80)),
        left=2 * math.sin(math.radians(17.5)),
        chain_length=1,
        angles={"bone_1": math.radians(45)},
    ),
    "cone, far outside": Case(
        lambda: cone(math.radians(20)),
        from_cone(math.radians(170)),
        left=2 * math.sin(math.radians(75)),
        chain_length=1,
        angles={"bone_1": math.radians(20)},
    ),
    "cone, wider than a half": Case(
        lambda: cone(math.radians(120)),
        from_cone(math.radians(160)),
        left=2 * math.sin(math.radians(20)),
        chain_length=1,
        angles={"bone_1": math.radians(120)},
    ),
    "cone of 0": Case(
        lambda: cone(0.0),
        from_cone(math.radians(50)),
        left=2 * math.sin(math.radians(25)),
        chain_length=1,
        angles={"bone_1": 0.0},
    ),
    "negative hinges": Case(
        lambda: bent(X, (-1.2, -0.1), (-2.0, -0.3)), at_angles(X, -0.5, -0.8),
        angles={"bone_0": -0.5, "bone_1": -0.8},
    ),
    "a knee that never straightens": Case(leg, (0.3, -0.4, 0.6)),
    "a knee, straight out": Case(
        leg, (0, 0, 0), left=2 - 2 * math.cos(0.1), angles={"bone_1": 0.2}
    ),
    "past 180": Case(
        lambda: bent(X, (-1.0, 1.0), degrees(150, 250)), at_angles(X, 0.4, math.radians(200)),
        angles={"bone_0": 0.4, "bone_1": math.radians(200)},
    ),
    "past -180": Case(
        lambda: bent(X, (-1.0, 1.0), degrees(-300, -200)), at_angles(X, 0.4, math.radians(-250)),
        angles={"bone_0": 0.4, "bone_1": math.radians(-250)},
    ),
    "past 180, held at the nearer end": Case(
        lambda: bent(X, degrees(200, 340)),
        at_angles(X, math.radians(190)),
        left=2 * math.sin(math.radians(5)),
        angles={"bone_0": math.radians(200)},
    ),
    "past 180, held at the other end": Case(
        lambda: bent(X, degrees(200, 340)),
        at_angles(X, math.radians(10)),
        left=2 * math.sin(math.radians(15)),
        angles={"bone_0": math.radians(340)},
    ),
}  # fmt: skip


# --- measuring what Blender shows ---------------------------------------------------------------------------


def constrain(rig, target, chain_length=0):
    """Let the last bone reach for an Empty at a point of armature space, given in world space."""
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.chain_length = "Tip", rig.pose.bones[-1].name, chain_length
    row.target = rigs.empty("Goal", rig.matrix_world @ Vector(target))
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


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", CASES)
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
