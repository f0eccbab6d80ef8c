"""The cases of other CCD solvers' test suites: chains, targets, and what is left or expected of angles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import bpy
import rigs
from mathutils import Euler, Matrix, Quaternion, Vector

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
