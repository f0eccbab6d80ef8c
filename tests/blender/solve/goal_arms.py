"""An arm and a leg whose targets move and turn, and what plays of them."""

from __future__ import annotations

import math

import bpy
import rigs
from mathutils import Euler, Matrix
from playing import play

SOLVE = 1e-4  # [m] the solver's own tolerance
TURNED = 1e-3  # [rad] the solver's own tolerance
PLAYED = 1e-4  # [m] and [rad]: float32 bones end to end, evaluated by Blender
FRAMES = 25
PLACES = {
    "at home": Matrix(),
    "moved": Matrix.Translation((30.0, -20.0, 5.0)),
    "turned": Euler((0.7, -1.1, 2.0)).to_matrix().to_4x4(),
    "scaled": Matrix.LocRotScale((1, 2, 3), Euler((0.3, 0.2, 0.1)), (2.5, 2.5, 2.5)),
    "mirrored": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (-1.0, 1.0, 1.0)),
    "stretched": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (1.0, 2.0, 0.5)),
}


def key_transforms(thing, matrices, gap=8):
    """Key an object's place and rotation, one matrix every `gap` frames."""
    thing.rotation_mode = "QUATERNION"
    for i, matrix in enumerate(matrices):
        thing.location, thing.rotation_quaternion, thing.scale = matrix.decompose()
        for path in ("location", "rotation_quaternion", "scale"):
            thing.keyframe_insert(path, frame=1 + gap * i)
    rigs.update()


def arm(place=Matrix(), count=6, **fields):  # noqa: B008  (a matrix is not changed)
    """A chain of `count` bones of half a metre, and a target that moves and turns within reach."""
    rig = rigs.chain(count, 0.5)
    rig.matrix_world = place
    target = rigs.empty("Target")
    poses = [
        Matrix.LocRotScale(where, Euler(turn), (1, 1, 1))
        for where, turn in (
            ((0.6, 0.4, 1.6), (0.2, 0.1, 0.0)),
            ((0.2, 0.9, 1.4), (-0.5, 0.4, 0.8)),
            ((-0.7, 0.3, 1.7), (0.6, -0.3, -0.9)),
            ((-0.2, -0.6, 1.3), (1.0, 0.2, 0.3)),
        )
    ]
    turn = place.to_3x3()
    for pose in poses:  # the points go with the armature, the rotations stay those of a rigid object
        pose.translation = place.translation + turn @ pose.translation
    key_transforms(target, poses)
    row = rigs.reach(rig, f"bone_{count - 1}", target, "Hand", **fields)
    bpy.context.scene.frame_set(1)
    return rig, target, row


def played(rig, frames=()):
    """As `play`, of these frames or all."""
    return play(rig, frames or range(1, FRAMES + 1))


def world_axes(evaluated, bone):
    """Unit vectors of a bone's axes in the world."""
    matrix = (evaluated.matrix_world @ evaluated.pose.bones[bone].matrix).to_3x3()
    return [matrix.col[axis].normalized() for axis in range(3)]


def apart(a, b):
    return math.atan2(a.cross(b).length, a.dot(b))


def distance(rig, row, evaluated, depsgraph):
    tip = evaluated.matrix_world @ evaluated.pose.bones[row.tip].tail
    return (tip - row.target.evaluated_get(depsgraph).matrix_world.translation).length


def leg(limits=False):
    """Thigh, shin and foot down from the hip, a little bent; targets for the foot and for the knee."""
    rig = rigs.armature(
        [
            rigs.B("hip", (0, 0, 2), (0, 0, 2.3)),
            rigs.B("thigh", (0, 0, 2), (0, -0.1, 1), "hip"),
            rigs.B("shin", (0, -0.1, 1), (0, 0, 0), "thigh", connect=True),
        ]
    )
    target, pole = rigs.empty("Foot"), rigs.empty("Knee")
    for frame, where in ((1, (0, 0, 0.4)), (9, (0.3, -0.4, 0.6)), (17, (-0.3, 0.5, 0.8)), (25, (0, 0, 0.3))):
        target.location = where
        target.keyframe_insert("location", frame=frame)
    for frame, turn in ((1, -90), (9, -20), (17, 60), (25, 170)):
        pole.location = (2 * math.cos(math.radians(turn)), 2 * math.sin(math.radians(turn)), 1.2)
        pole.keyframe_insert("location", frame=frame)
    if limits:
        rig.pose.bones["thigh"].ccd_rig.limit.kind = "CONE"
        rig.pose.bones["thigh"].ccd_rig.limit.cone_radius = 1.2
        rig.pose.bones["thigh"].ccd_rig.limit.use_twist = True
        rig.pose.bones["thigh"].ccd_rig.limit.twist_lower = -0.6
        rig.pose.bones["thigh"].ccd_rig.limit.twist_upper = 0.6
        shin = rig.pose.bones["shin"].ccd_rig.limit
        shin.kind, shin.axis, shin.hinge_lower, shin.hinge_upper = "HINGE", (1, 0, 0), -0.1, 2.5
    rigs.update()
    row = rigs.reach(rig, "shin", target, "Foot", chain_length=2, pole_target=pole)
    return rig, row


def bend_angle(evaluated, row, depsgraph):
    """The angle between the knee and the pole about the line from hip to foot, past the pole's play, in the
    world: a pole less than 30 degrees off the line lets the knee be off it."""
    world = evaluated.matrix_world
    thigh, shin = evaluated.pose.bones["thigh"], evaluated.pose.bones["shin"]
    hip, knee, foot = world @ thigh.head, world @ shin.head, world @ shin.tail
    pole = row.pole_target.evaluated_get(depsgraph).matrix_world.translation
    line = (foot - hip).normalized()
    sides = [point - hip - line * (point - hip).dot(line) for point in (knee, pole)]
    sine = sides[1].length / (pole - hip).length
    play = math.pi * min(max((0.5 - sine) / 0.3, 0.0), 1.0)
    return max(apart(*sides) - play, 0.0)
