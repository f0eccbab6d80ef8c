"""Bones that shift as a hinge turns, as a knee does: what is solved, keyed and played, and what is refused.

The curves are parabolas with their own slopes, which a cubic spline holds exactly: what a location should be
is known without the extension.
"""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Matrix, Vector

REACHED = 1e-4  # [m]
FLOAT32 = 2e-6  # of a location around 1
FRAMES = 9
ANGLES = (-0.3, 0.6, 1.2, 2.2)
DOWN, BACK = 0.03, -0.02  # [m per rad^2] of the knee's parabolas along its own Y and Z
MARKERS = (
    ("hips", (0.15, 0.0, 0.05)),
    ("hips", (-0.1, 0.1, 0.0)),
    ("hips", (0.0, -0.1, 0.1)),
    ("thigh", (0.06, 0.2, 0.05)),
    ("thigh", (-0.05, 0.3, 0.02)),
    ("shin", (0.05, 0.15, 0.03)),
    ("shin", (-0.04, 0.35, 0.04)),
    ("foot", (0.03, 0.2, 0.0)),
    ("foot", (-0.03, 0.05, 0.05)),
)
PLACES = {
    "at home": Matrix(),
    "turned": Matrix.LocRotScale((3, -2, 1), Euler((0.7, -1.1, 2.0)), (1, 1, 1)),
    "scaled": Matrix.LocRotScale((1, 2, 3), Euler((0.3, 0.2, 0.1)), (2.5, 2.5, 2.5)),
    "mirrored": Matrix.LocRotScale((0, 1, 0), Euler((0.3, 0.2, 0.1)), (-1.0, 1.0, 1.0)),
}


@pytest.fixture
def bake(ext):
    return ext.module("ccd_rig.blender.bake.bake")


@pytest.fixture
def channels(ext):
    return ext.module("ccd_rig.blender.keys.channels")


@pytest.fixture
def checks(ext):
    return ext.module("ccd_rig.blender.checks.setup")


def roll(bone, axis, factor, driver=""):
    """Lets a bone shift by factor * angle^2 along an axis of its location."""
    row = bone.ccd_rig.coupled_offsets.add()
    row.driver, row.axis, row.use_slopes = driver, axis, True
    for angle in reversed(ANGLES):  # in any order
        point = row.points.add()
        point.angle, point.shift, point.slope = angle, factor * angle**2, 2.0 * factor * angle
    return row


def hinge(bone, lower, upper):
    limit = bone.ccd_rig.limit
    limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", (1, 0, 0), lower, upper


def leg(rolls=True):
    """Hips that slide freely, a thigh like a ball, a knee that rolls, a foot."""
    rig = rigs.armature(
        [
            rigs.B("hips", (0, 0, 1.0), (0, 0, 1.2)),
            rigs.B("thigh", (0.1, 0, 1.0), (0.1, 0.02, 0.55), "hips"),
            rigs.B("shin", (0.1, 0.02, 0.55), (0.1, 0, 0.1), "thigh", roll=0.1),
            rigs.B("foot", (0.1, 0, 0.1), (0.1, -0.2, 0.0), "shin"),
        ]
    )
    hinge(rig.pose.bones["shin"], -0.2, 2.0)
    hinge(rig.pose.bones["foot"], -0.8, 0.8)
    hips = rig.pose.bones["hips"].ccd_rig
    hips.use_slide, hips.slide_lower, hips.slide_upper = (True,) * 3, (-1.0,) * 3, (1.0,) * 3
    if rolls:
        roll(rig.pose.bones["shin"], (0, 1, 0), DOWN)
        roll(rig.pose.bones["shin"], (0, 0, 1), BACK)
    return rig


def pose(rig, k):
    """A pose of the leg that the knee's parabolas allow; the angle of the knee."""
    knee = 0.3 + 0.15 * k
    bones = rig.pose.bones
    for name, angles in (
        ("hips", (0.1 * k, 0.05, -0.04 * k)),
        ("thigh", (-0.1 * k, 0.1, 0.03 * k)),
        ("shin", (knee, 0, 0)),
        ("foot", (0.3 - 0.08 * k, 0, 0)),
    ):
        rigs.set_rotation(bones[name], Euler(angles).to_quaternion())
    bones["hips"].location = (0.02 * k, -0.03, 0.01 * k)
    bones["shin"].location = (0, DOWN * knee**2, BACK * knee**2)
    rigs.update()
    return knee


def clear(rig):
    for bone in rig.pose.bones:
        bone.matrix_basis = Matrix()
    rigs.update()


def points_of(rig, markers=MARKERS):
    seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return [seen.matrix_world @ (seen.pose.bones[bone].matrix @ Vector(at)) for bone, at in markers]


def follow(rig, frames=FRAMES, markers=MARKERS):
    """Markers that the leg shows in known poses, as targets; the angles of the knee."""
    empties = [rigs.empty(f"Marker {n}") for n in range(len(markers))]
    angles = []
    for frame in range(1, frames + 1):
        angles.append(pose(rig, frame - 1))
        for empty, place in zip(empties, points_of(rig, markers), strict=True):
            empty.location = place
            empty.keyframe_insert("location", frame=frame)
    for n, ((bone, at), empty) in enumerate(zip(markers, empties, strict=True)):
        row = rig.ccd_rig.constraints.add()
        row.name, row.tip, row.target, row.use_tail, row.effector_offset = empty.name, bone, empty, False, at
        row.weight = 1.0 + 0.5 * (n % 3)
    clear(rig)
    return angles


def misses(rig, frames=FRAMES):
    """(frames, markers) how far Blender plays markers off their targets."""
    found = []
    for frame in range(1, frames + 1):
        bpy.context.scene.frame_set(frame)
        found.append(
            [
                (at - bpy.data.objects[row.name].matrix_world.translation).length
                for at, row in zip(points_of(rig), rig.ccd_rig.constraints, strict=True)
            ]
        )
    return np.array(found)


def keys_of(channels, rig, bone, channel):
    path = f'pose.bones["{bone}"].{channel}'
    curves = {c.array_index: c for c in channels.fcurves_of(rig) if c.data_path == path}
    return np.array([[point.co[1] for point in curves[i].keyframe_points] for i in sorted(curves)]).T


def knee_angles(channels, rig, bone="shin"):
    keys = keys_of(channels, rig, bone, "rotation_quaternion")
    return 2.0 * np.arctan2(keys[:, 1], keys[:, 0])


# --- what is solved, keyed and played -----------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_markers_of_a_known_pose_are_reached(bake, channels, place):
    rig = leg()
    rig.matrix_world = PLACES[place]
    angles = follow(rig)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    assert misses(rig).max() < REACHED
    found = knee_angles(channels, rig)
    assert found == pytest.approx(angles, abs=1e-3)
    locations = keys_of(channels, rig, "shin", "location")
    expected = np.stack((0.0 * found, DOWN * found**2, BACK * found**2), axis=1)
    assert locations == pytest.approx(expected, abs=FLOAT32)
    assert report.check.mismatches() == ()


def test_a_knee_that_does_not_roll_misses_them(bake):
    rig = leg(rolls=False)
    follow(rig)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved_count() == FRAMES
    assert misses(rig).max() > 20.0 * REACHED


def test_ccd_frame_by_frame_reaches_them_too(bake, channels):
    rig = leg()
    angles = follow(rig)
    rig.ccd_rig.solver.solver = "CCD"
    rig.ccd_rig.solver.max_iterations, rig.ccd_rig.solver.position_tolerance = 500, 1e-3
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    assert misses(rig).max() < 2e-3
    found = knee_angles(channels, rig)
    assert found == pytest.approx(angles, abs=2e-2)
    locations = keys_of(channels, rig, "shin", "location")
    assert locations[:, 1] == pytest.approx(DOWN * found**2, abs=FLOAT32)
