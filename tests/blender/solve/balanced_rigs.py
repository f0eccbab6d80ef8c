"""A body to balance, a crane that slides, and what plays of them."""

from __future__ import annotations

import bpy
import numpy as np
import rigs
from mathutils import Euler, Matrix, Quaternion, Vector
from playing import play, target_in_world

SOLVE = 1e-4  # [m] the solver's own tolerance
PLAYED = 1e-4  # [m] float32 bones end to end, evaluated by Blender
FLOAT32 = 1e-6  # of a location around 1
FRAMES = 17
PLACES = {
    "at home": Matrix(),
    "turned": Matrix.LocRotScale((3, -2, 1), Euler((0.7, -1.1, 2.0)), (1, 1, 1)),
    "scaled": Matrix.LocRotScale((1, 2, 3), Euler((0.3, 0.2, 0.1)), (2.5, 2.5, 2.5)),
    "mirrored": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (-1.0, 1.0, 1.0)),
    "stretched": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (1.0, 2.0, 0.5)),
}


def key(thing, path, values, gap=8):
    for i, value in enumerate(values):
        setattr(thing, path, value)
        thing.keyframe_insert(path, frame=1 + gap * i)
    rigs.update()


def played(rig, frames=()):
    """As `play`, of these frames or all."""
    return play(rig, frames or range(1, FRAMES + 1))


def keyed(channels, rig, path):
    """(K, 3) values of a channel's keys."""
    curves = {c.array_index: c for c in channels.fcurves_of(rig) if c.data_path == path}
    assert sorted(curves) == [0, 1, 2], path
    return np.array([[point.co[1] for point in curves[i].keyframe_points] for i in range(3)]).T


def body(place=Matrix()):  # noqa: B008  (a matrix is not changed)
    """A body with a spine of three, two arms and a head that is heavy; what moves it is keyed on the arms."""
    bones = [rigs.B("root", (0, 0, 0), (0, 0, 0.5))]
    for i in range(3):
        bones.append(
            rigs.B(
                f"spine_{i}", (0, 0, 0.5 + 0.4 * i), (0, 0, 0.9 + 0.4 * i), f"spine_{i - 1}" if i else "root"
            )
        )
    for side, sign in (("L", 1), ("R", -1)):
        bones.append(rigs.B(f"arm.{side}", (0.2 * sign, 0, 1.7), (0.9 * sign, 0, 1.6), "spine_2"))
        bones.append(rigs.B(f"hand.{side}", (0.9 * sign, 0, 1.6), (1.2 * sign, 0, 1.6), f"arm.{side}"))
    bones.append(rigs.B("head", (0, 0, 1.7), (0, 0, 2.1), "spine_2"))
    rig = rigs.armature(bones)
    for bone, mass in (("root", 20), ("spine_1", 15), ("arm.L", 4), ("arm.R", 4), ("hand.L", 6), ("head", 5)):
        rig.pose.bones[bone].ccd_rig.mass = mass
    rig.pose.bones["head"].bone.use_inherit_rotation = False
    for bone, turns in (("arm.L", (0.0, 1.2, -0.9)), ("arm.R", (0.3, -0.8, 0.4)), ("head", (0.0, 0.5, 0.0))):
        key(rig.pose.bones[bone], "rotation_quaternion", [Quaternion((0.6, 0, 0.8), a) for a in turns])
    rig.pose.bones["head"].location = (0.02, 0.01, 0.03)
    rig.matrix_world = place
    rigs.update()
    target = rigs.empty("Point")
    key(
        target,
        "location",
        [place @ Vector(p) for p in ((0.05, 0.02, 0.3), (-0.03, 0.05, 0.8), (0.02, -0.06, 0))],
    )
    row = rigs.reach(rig, "spine_2", target, "Balance", chain_length=3, kind="BALANCE")
    bpy.context.scene.frame_set(1)
    return rig, row


def centre_of_mass(evaluated):
    """In the world, of the bones as Blender places them."""
    bones = [(bone, bone.ccd_rig.mass) for bone in evaluated.pose.bones]
    total = sum(mass for _, mass in bones)
    middle = sum((mass * 0.5 * (bone.head + bone.tail) for bone, mass in bones), Vector())
    return evaluated.matrix_world @ (middle / total)


def off_axes(rig, row, evaluated, depsgraph):
    """World metres between the centre of mass and the target, along the axes that count."""
    apart = centre_of_mass(evaluated) - target_in_world(row).translation
    return Vector([each * counts for each, counts in zip(apart, row.balance_axes, strict=True)]).length


def everything():
    """A body that balances while its hand reaches, turned as its target, bent towards a pole, on a slide."""
    rig, _ = body()
    hand, elbow = rigs.empty("Hand target"), rigs.empty("Elbow")
    key(hand, "location", [(0.9, 0.2, 1.3), (0.7, 0.4, 1.5), (0.9, -0.2, 1.4)])
    elbow.location = (0.5, -2.0, 1.0)
    fields = {"rotation": "DIRECTION", "target_axis": "POS_X", "rotation_weight": 0.5, "priority": 1}
    rigs.reach(rig, "hand.L", hand, "Hand", chain_length=5, pole_target=elbow, max_extension=0.95, **fields)
    joint = rig.pose.bones["spine_0"].ccd_rig
    joint.use_slide = (False, True, False)
    # Not all of it can be reached at once: what is asked here is whether it comes out alike, not how near.
    rig.ccd_rig.solver.max_iterations, rig.ccd_rig.solver.restarts = 40, 2
    return rig


def crane(local=True, along="Y", **fields):
    """A turning foot, a mast that slides, a boom; the target is out of reach of turns alone."""
    rig = rigs.armature(
        [
            rigs.B("foot", (0, 0, 0), (0, 0, 0.5)),
            rigs.B("mast", (0, 0, 0.5), (0, 0, 1.5), "foot", roll=0.4),
            rigs.B("boom", (0, 0, 1.5), (0, 0.8, 1.6), "mast", connect=True),
        ]
    )
    rig.data.bones["mast"].use_local_location = local
    joint = rig.pose.bones["mast"].ccd_rig
    joint.use_slide = [axis in along for axis in "XYZ"]
    joint.slide_lower, joint.slide_upper = (-0.2,) * 3, (0.7,) * 3
    target = rigs.empty("Hook")
    row = rigs.reach(rig, "boom", target, "Hook", **fields)
    return rig, target, row


def along(channels, rig, axis):
    return keyed(channels, rig, 'pose.bones["mast"].location') @ np.array(Vector(axis).normalized())
