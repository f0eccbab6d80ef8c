"""What tests of Walk Along share: curves, grounds, a spider's cycle, the operator run and refused."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from mathutils import Matrix, Quaternion, Vector
from rigs import B


def curve(*points, closed=False, name="Path"):
    """A curve through points of the world."""
    data = bpy.data.curves.new(name, "CURVE")
    data.dimensions = "3D"
    spline = data.splines.new("POLY")
    spline.points.add(len(points) - 1)
    for point, place in zip(spline.points, points, strict=True):
        point.co = (*place, 1.0)
    spline.use_cyclic_u = closed
    return rigs.link(data, name)


def terrain(height, name="Terrain", low=-9.0, high=3.0, count=61):
    """A mesh over a square whose height is a function of the place."""
    step = (high - low) / (count - 1)
    line = [low + step * k for k in range(count)]
    return rigs.ground(height, line, name=name)


def stairs(rise, tread, count, start):
    """A mesh of level ground, then stairs along -Y, then level ground."""
    edges = [3.0, *(start - tread * k for k in range(count)), -9.0]
    vertices, faces = [], []
    for k in range(count + 1):
        at = len(vertices)
        vertices += [(x, y, rise * k) for y in edges[k : k + 2] for x in (-2.0, 2.0)]
        faces.append((at, at + 1, at + 3, at + 2))
    data = bpy.data.meshes.new("Stairs")
    data.from_pydata(vertices, [], faces)
    return rigs.link(data, "Stairs")


def walk_along(rig, path, **choices):
    """The operator, with choices of the panel; what it says is an error otherwise."""
    choose(rig, path, **choices)
    assert bpy.ops.ccd_rig.walk_along() == {"FINISHED"}


def choose(rig, path, ground=None, **choices):
    group = rig.ccd_rig.walk
    group.curve = path
    if ground is not None:
        rig.ccd_rig.ground.kind, rig.ccd_rig.ground.object = "OBJECT", ground
    for name, value in choices.items():
        setattr(group, name, value)
    rigs.activate(rig)


def refused(words, rig, path, **choices):
    """The operator refuses with these words, and the file stays as it is."""
    choose(rig, path, **choices)
    before = contents(rig)
    with pytest.raises(RuntimeError, match=words):
        bpy.ops.ccd_rig.walk_along()
    assert contents(rig) == before


def contents(rig):
    animation = rig.animation_data
    action = animation and animation.action and animation.action.name
    pose = [tuple(value for row in bone.matrix_basis for value in row) for bone in rig.pose.bones]
    data = [
        sorted(each.name for each in getattr(bpy.data, kind)) for kind in ("actions", "scenes", "objects")
    ]
    return *data, sorted(each.name for each in bpy.data.curves), action, pose, bpy.context.scene.frame_current


def spider(frames=24, swing=0.35, wide="", wider=1.0, raised=None, most=0.5):
    """A spider that walks in place by keys: legs swing about the vertical, lifted on their way ahead.

    The leg `wide` swings `wider` times as far; `raised`: radians by which it is lifted all the time.
    The other legs are lifted by `most` radians.
    """
    rig = rigs.armature(rigs.spider(), "Spider")
    for side in "LR":
        for leg in range(4):
            start = 0.5 * ((leg + (side == "R")) % 2)
            for frame in range(1, frames + 2):
                u = ((frame - 1) / frames + start) % 1.0
                down = u < 0.6
                v = 0.0 if down else (u - 0.6) / 0.4
                back = 0.5 - u / 0.6 if down else -0.5 + v * v * (3.0 - 2.0 * v)
                is_wide = f"leg{leg}.{side}" == wide
                far = swing * (wider if is_wide else 1.0)
                _turn(rig, f"leg{leg}_0.{side}", "Z", far * back * (-1.0 if side == "L" else 1.0), frame)
                lift = raised if is_wide and raised else most * math.sin(math.pi * v) ** 2
                _turn(rig, f"leg{leg}_2.{side}", "Y", -lift if side == "L" else lift, frame)
    rigs.activate(rig)
    return rig


def beast(frames=24, swing=0.25):
    """A quadruped that walks in place by keys: legs of two bones swing, bent on their way ahead."""
    bones = [B("hips", (0, 0.5, 1), (0, 0.3, 1)), B("spine", (0, 0.3, 1), (0, -0.5, 1), "hips")]
    bones.append(B("head", (0, -0.5, 1), (0, -0.9, 1.2), "spine"))
    legs = ("thigh", "shin", "foot", "hips", 0.5, 0.0), ("upper_arm", "forearm", "hand", "spine", -0.5, 0.25)
    for side, x in (("L", 0.15), ("R", -0.15)):
        for upper, lower, paw, above, y, _ in legs:
            bones += [
                B(f"{upper}.{side}", (x, y, 1.0), (x, y - 0.03, 0.52), above),
                B(f"{lower}.{side}", (x, y - 0.03, 0.52), (x, y, 0.04), f"{upper}.{side}"),
                B(f"{paw}.{side}", (x, y, 0.04), (x, y - 0.12, 0.0), f"{lower}.{side}"),
            ]
    rig = rigs.armature(bones, "Beast")
    for side in "LR":
        for upper, lower, paw, _, _, start in legs:
            for frame in range(1, frames + 2):
                u = ((frame - 1) / frames + start + 0.5 * (side == "R")) % 1.0
                v = max(0.0, (u - 0.65) / 0.35)
                back = 0.5 - u / 0.65 if u < 0.65 else -0.5 + v * v * (3.0 - 2.0 * v)
                bent = 0.6 * math.sin(math.pi * v) ** 2
                _turn(rig, f"{upper}.{side}", "X", -swing * back - 0.5 * bent, frame)
                _turn(rig, f"{lower}.{side}", "X", bent, frame)
                _turn(rig, f"{paw}.{side}", "X", swing * back - 0.5 * bent, frame)
    rigs.activate(rig)
    return rig


def _turn(rig, name, axis, angle, frame):
    bone = rig.pose.bones[name]
    bone.rotation_mode = "QUATERNION"
    own = bone.bone.matrix_local.to_quaternion()
    about = Quaternion(Vector((axis == "X", axis == "Y", axis == "Z")), angle)
    bone.rotation_quaternion = own.inverted() @ about @ own
    bone.keyframe_insert("rotation_quaternion", frame=frame)


def still(matrix):
    """Rows of a matrix, to compare."""
    return [tuple(row) for row in Matrix(matrix)]
