"""Bones that shift as a hinge turns, as a knee does: what is solved, keyed and played.

The curves are parabolas with their own slopes, which a cubic spline holds exactly: what a location should be
is known without the extension.
"""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Matrix, Vector
from playing import shown, target_in_world
from rolling import BACK, DOWN, FLOAT32, FRAMES, REACHED, bend, hinge, keys_of, knee_angles, leg, pose, roll

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
        fields = {"use_tail": False, "effector_offset": at, "weight": 1.0 + 0.5 * (n % 3)}
        rigs.reach(rig, bone, empty, empty.name, **fields)
    clear(rig)
    return angles


def misses(rig, frames=FRAMES):
    """(frames, markers) how far Blender plays markers off their targets."""
    found = []
    for frame in range(1, frames + 1):
        bpy.context.scene.frame_set(frame)
        places = zip(points_of(rig), rig.ccd_rig.constraints, strict=True)
        found.append([(at - target_in_world(row).translation).length for at, row in places])
    return np.array(found)


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


def test_keys_of_the_location_count_for_nothing_along_the_axes(bake, channels):
    """What was keyed across them stays; the limb is baked alike."""
    rig = leg()
    follow(rig)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    without = keys_of(channels, rig, "shin", "location")
    rig.animation_data_clear()
    clear(rig)
    shin = rig.pose.bones["shin"]
    for frame, y in ((1, 0.3), (5, -0.2)):
        shin.location = (0.0, y, 2.0 * y)
        shin.keyframe_insert("location", frame=frame)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert keys_of(channels, rig, "shin", "location") == pytest.approx(without, abs=1e-5)
    assert misses(rig).max() < REACHED


@pytest.mark.parametrize("influence", [1.0, 0.4])
@pytest.mark.parametrize("step", [1, 4])
def test_the_location_is_what_the_curve_says_of_each_keyed_angle(bake, channels, influence, step):
    rig = leg()
    rig.pose.bones["shin"].location = (0.004, 0.2, -0.1)
    bend(rig, chain_length=3, influence=influence)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, step=step))
    found, locations = (f(channels, rig) for f in (knee_angles, lambda *a: keys_of(*a, "shin", "location")))
    assert np.ptp(found) > 0.1
    assert locations[:, 0] == pytest.approx(0.004, abs=FLOAT32)
    assert locations[:, 1] == pytest.approx(DOWN * found**2, abs=FLOAT32)
    assert locations[:, 2] == pytest.approx(BACK * found**2, abs=FLOAT32)
    assert report.check.mismatches() == ()
    for entry in report.entries:
        assert entry.keyed_residual < REACHED or influence < 1.0 or entry.frame % step != 1
    assert all(len(keys) == FRAMES for keys in (found, locations))


def test_a_bake_of_a_bake_changes_nothing(bake, channels):
    rig = leg()
    bend(rig, chain_length=3)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    before = [keys_of(channels, rig, "shin", each) for each in ("rotation_quaternion", "location")]
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    after = [keys_of(channels, rig, "shin", each) for each in ("rotation_quaternion", "location")]
    for one, other in zip(before, after, strict=True):
        assert other == pytest.approx(one, abs=1e-5)


def test_starting_from_the_original_leads_to_the_same(bake, channels):
    rig = leg()
    bend(rig, chain_length=3)
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    before = keys_of(channels, rig, "shin", "location")
    settings = bake.BakeSettings(
        1, FRAMES, start=bake.Start.ORIGINAL, destination=bake.Destination.CURRENT_ACTION
    )
    bake.bake(bpy.context.scene, rig, settings)
    assert keys_of(channels, rig, "shin", "location") == pytest.approx(before, abs=1e-5)


def test_fewer_keys_stay_near(bake, channels):
    rig = leg()
    bend(rig, chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, reduce_error=2e-3))
    assert report.keys < report.keys_before
    for frame in range(1, FRAMES + 1):
        foot = shown(rig, frame).pose.bones["foot"]
        assert (foot.tail - bpy.data.objects["Goal"].matrix_world.translation).length < 2e-3 + REACHED


def test_solve_writes_the_location(bake):
    rig = leg()
    bend(rig, chain_length=3)
    bpy.context.scene.frame_set(9)
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    shin, goal = rig.pose.bones["shin"], bpy.data.objects["Goal"]
    angle = 2.0 * math.atan2(shin.rotation_quaternion.x, shin.rotation_quaternion.w)
    assert abs(angle) > 0.1
    assert shin.location[:] == pytest.approx((0.0, DOWN * angle**2, BACK * angle**2), abs=FLOAT32)
    assert (rig.pose.bones["foot"].tail - goal.matrix_world.translation).length < 2.0 * REACHED


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("inherit", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1.7])
def test_flags_and_scale_of_bones_are_seen(bake, channels, local, inherit, scale):
    """The location of a bone without Local Location is along its parent's axes; scale makes it longer."""
    rig = leg()
    rig.data.bones["shin"].use_local_location = local
    rig.data.bones["shin"].use_inherit_rotation = inherit
    rig.pose.bones["thigh"].scale = (scale,) * 3
    bend(rig, chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    assert report.check.mismatches() == ()
    found, locations = knee_angles(channels, rig), keys_of(channels, rig, "shin", "location")
    assert locations[:, 1] == pytest.approx(DOWN * found**2, abs=FLOAT32)


def test_animated_scale_of_a_parent_is_seen(bake, channels):
    """The unit of the location changes from frame to frame, and the curve's with it."""
    rig = leg()
    bend(rig, chain_length=3)
    for frame, scale in ((1, 1.0), (FRAMES, 1.2)):
        rig.pose.bones["hips"].scale = (scale,) * 3
        rig.pose.bones["hips"].keyframe_insert("scale", frame=frame)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    assert report.check.mismatches() == ()
    found, locations = knee_angles(channels, rig), keys_of(channels, rig, "shin", "location")
    assert locations[:, 1] == pytest.approx(DOWN * found**2, abs=FLOAT32)


def test_an_axis_may_be_oblique_and_offsets_add_up(bake, channels):
    rig = leg(rolls=False)
    shin = rig.pose.bones["shin"]
    roll(shin, (1, 1, 0), DOWN)
    roll(shin, (0, 2, 0), BACK)
    shin.location = (0.1, 0.2, 0.03)
    bend(rig, chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    found, locations = knee_angles(channels, rig), keys_of(channels, rig, "shin", "location")
    expected = found[:, None] ** 2 * (DOWN * math.sqrt(0.5), DOWN * math.sqrt(0.5) + BACK, 0.0)
    assert locations == pytest.approx(expected + np.array((0.0, 0.0, 0.03)), abs=FLOAT32)


def test_balance_sees_a_rolling_bone_in_a_turned_armature(bake):
    """Joints that do not inherit rotation: the level model that balance is solved in turns their offsets."""
    rig = leg()
    rig.matrix_world = Euler((0.5, -0.3, 0.8)).to_matrix().to_4x4()
    rig.data.bones["shin"].use_inherit_rotation = False
    rig.pose.bones["hips"].ccd_rig.use_slide = (False,) * 3
    hinge(rig.pose.bones["shin"], 0.9, 1.2)
    for name, mass in (("hips", 5.0), ("thigh", 3.0), ("shin", 2.0), ("foot", 1.0)):
        rig.pose.bones[name].ccd_rig.mass = mass
    rigs.update()
    place = rig.matrix_world @ Vector((0.05, -0.1, 0.7))
    bend(rig, [place], kind="BALANCE", chain_length=4)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
    assert report.unsolved() == (), report.summary()
    bpy.context.scene.frame_set(2)
    bones = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
    centre = sum((b.ccd_rig.mass * 0.5 * (b.head + b.tail) for b in bones), Vector()) / 11.0
    apart = rig.matrix_world @ centre - place
    assert math.hypot(apart.x, apart.y) < 2.0 * REACHED
