"""Bones that shift as a hinge turns, as a knee does: what is solved, keyed and played, and what is refused.

The curves are parabolas with their own slopes, which a cubic spline holds exactly: what a location should be
is known without the extension.
"""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Euler, Matrix, Quaternion, Vector

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


def bend(rig, points=(), **fields):
    """The foot follows an animated target: through points, or where known poses of the leg have its tip."""
    target = rigs.empty("Goal")
    if not points:
        points = [tip_of_pose(rig, k) for k in (0, 4, 8)]
    for k, point in enumerate(points):
        target.location = point
        target.keyframe_insert("location", frame=1 + 4 * k)
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target = "Foot", "foot", target
    for field, value in fields.items():
        setattr(row, field, value)
    rigs.update()
    return row


def tip_of_pose(rig, k):
    """Where a pose of the leg below the hips has the foot's tip; the leg stays as it was."""
    before = [bone.matrix_basis.copy() for bone in rig.pose.bones]
    pose(rig, k)
    rig.pose.bones["hips"].matrix_basis = Matrix()
    rigs.update()
    tip = rig.matrix_world @ rig.pose.bones["foot"].tail
    for bone, matrix in zip(rig.pose.bones, before, strict=True):
        bone.matrix_basis = matrix
    rigs.update()
    return tip


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
        bpy.context.scene.frame_set(frame)
        foot = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["foot"]
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


@pytest.mark.parametrize("order", ["BACKWARDS", "BOTH"])
def test_frames_solved_backwards_roll_too(bake, channels, order):
    rig = leg()
    bend(rig, chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, order=bake.Order[order]))
    assert report.unsolved() == (), report.summary()
    assert report.check.mismatches() == ()
    found, locations = knee_angles(channels, rig), keys_of(channels, rig, "shin", "location")
    assert locations[:, 1] == pytest.approx(DOWN * found**2, abs=FLOAT32)


def test_the_command_line_bakes_alike(ext, bake, channels, tmp_path):
    rig = leg()
    bend(rig, chain_length=3)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, FRAMES
    shot, out = tmp_path / "shot.blend", tmp_path / "out.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    assert [row.name for row in rig.pose.bones["shin"].ccd_rig.coupled_offsets] == ["Offset 1", "Offset 2"]
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    before = keys_of(channels, rig, "shin", "location")
    cli = ext.module("ccd_rig.blender.cli.command_line")
    assert cli.main(["bake", str(shot), "--output", str(out), "--quiet"]) == 0
    bpy.ops.wm.open_mainfile(filepath=str(out))
    assert (keys_of(channels, bpy.data.objects["Rig"], "shin", "location") == before).all()


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


# --- bones that follow another one --------------------------------------------------------------------------


def kneecap(rig):
    """A bone below the shin that moves along its Z as the knee bends, and is in no chain."""
    with rigs.edit_bones(rig) as bones:
        cap = bones.new("cap")
        cap.head, cap.tail, cap.parent = (0.1, -0.04, 0.5), (0.1, -0.04, 0.4), bones["shin"]
    roll(rig.pose.bones["cap"], (0, 0, 1), 0.05, "shin")
    rigs.update()


def test_a_bone_outside_of_the_chain_follows(bake, channels):
    rig = leg()
    kneecap(rig)
    rig.pose.bones["cap"].location = (0.01, 0.02, 0.03)
    bend(rig, chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    found, locations = knee_angles(channels, rig), keys_of(channels, rig, "cap", "location")
    assert locations[:, 2] == pytest.approx(0.05 * found**2, abs=FLOAT32)
    assert locations[:, :2] == pytest.approx(np.tile((0.01, 0.02), (FRAMES, 1)), abs=FLOAT32)
    assert not any("cap" in c.data_path and "rotation" in c.data_path for c in channels.fcurves_of(rig))
    bpy.context.scene.frame_set(5)
    rigs.activate(rig)
    rig.animation_data_clear()
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    shin = rig.pose.bones["shin"].rotation_quaternion
    angle = 2.0 * math.atan2(shin.x, shin.w)
    assert rig.pose.bones["cap"].location.z == pytest.approx(0.05 * angle**2, abs=FLOAT32)


def test_a_bone_that_follows_nothing_that_is_solved_stays(bake, channels):
    rig = leg()
    kneecap(rig)
    bend(rig, chain_length=3)
    rig.ccd_rig.constraints["Foot"].tip = "thigh"
    rig.ccd_rig.constraints["Foot"].chain_length = 1
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert {c.data_path.split('"')[1] for c in channels.fcurves_of(rig)} == {"thigh"}


def test_a_parent_may_drive(bake, channels):
    """The foot slides along the shin as the knee bends; the foot's own hinge has nothing to do with it."""
    rig = leg()
    roll(rig.pose.bones["foot"], (0, 1, 0), 0.04, "shin")
    bend(rig, chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    found, locations = knee_angles(channels, rig), keys_of(channels, rig, "foot", "location")
    assert locations[:, 1] == pytest.approx(0.04 * found**2, abs=FLOAT32)


def test_an_arm_rolls_while_feet_are_planted(bake, channels):
    """Where the body keeps its animation; a figure that follows its feet is refused below."""
    rig = leg()
    with rigs.edit_bones(rig) as bones:
        for name, head, tail, parent in (
            ("arm", (0, 0, 1.2), (0.3, 0, 1.2), "hips"),
            ("elbow", (0.3, 0, 1.2), (0.6, 0.0, 1.2), "arm"),
        ):
            made = bones.new(name)
            made.head, made.tail, made.parent = head, tail, bones[parent]
    shin, elbow = rig.pose.bones["shin"], rig.pose.bones["elbow"]
    shin.ccd_rig.coupled_offsets.clear()
    hinge(elbow, -0.1, 2.0)
    roll(elbow, (0, 1, 0), DOWN)
    rig.pose.bones["hips"].ccd_rig.use_slide = (False,) * 3
    rig.ccd_rig.body = "KEEP_ANIMATION"
    for frame, x in ((1, 0.0), (FRAMES, 0.05)):
        rig.pose.bones["hips"].location.x = x
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
    row = bend(rig, ((0.35, 0.0, 1.5), (0.3, 0.1, 1.6), (0.4, 0.1, 1.4)), chain_length=2)
    row.tip = "elbow"
    plant = rig.ccd_rig.constraints.add()
    plant.name, plant.tip, plant.kind, plant.chain_length = "Plant", "foot", "PLANT", 4
    rigs.update()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    found, locations = knee_angles(channels, rig, "elbow"), keys_of(channels, rig, "elbow", "location")
    assert np.ptp(found) > 0.05
    assert locations[:, 1] == pytest.approx(DOWN * found**2, abs=FLOAT32)
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        bone = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["elbow"]
        assert (bone.tail - bpy.data.objects["Goal"].matrix_world.translation).length < 2.0 * REACHED


# --- what is stored -----------------------------------------------------------------------------------------


def active(rig, bone):
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones[bone]
    return rig.pose.bones[bone]


def test_buttons_add_and_remove(ext):
    rig = leg(rolls=False)
    bone = active(rig, "shin")
    assert not bpy.ops.ccd_rig.offset_point_add.poll()
    assert bpy.ops.ccd_rig.coupled_offset_add() == {"FINISHED"}
    (row,) = bone.ccd_rig.coupled_offsets
    assert [(p.angle, p.shift) for p in row.points] == [(0.0, 0.0), (pytest.approx(math.pi / 2), 0.0)]
    settings = ext.module("ccd_rig.blender.properties.joints").joint_settings(rig, ["shin"])["shin"]
    (offset,) = settings["coupled_offsets"]
    assert (offset.hinge, offset.axis, offset.slopes) == ("shin", (0.0, 1.0, 0.0), None)
    with pytest.raises(RuntimeError, match="needs two points"):
        bpy.ops.ccd_rig.offset_point_remove(offset=0, point=0)
    row.points[1].shift = 0.5
    assert bpy.ops.ccd_rig.offset_point_add(offset=0) == {"FINISHED"}
    assert (row.points[2].angle, row.points[2].shift) == (pytest.approx(2.0 * math.pi / 3), 0.5)
    assert bpy.ops.ccd_rig.offset_point_remove(offset=0, point=0) == {"FINISHED"}
    assert [point.name for point in row.points] == ["Point 2", "Point 3"]
    for wrong in (bpy.ops.ccd_rig.offset_point_add, bpy.ops.ccd_rig.coupled_offset_remove):
        with pytest.raises(RuntimeError, match="no coupled offset 4"):
            wrong(offset=3)
    with pytest.raises(RuntimeError, match="no point 6"):
        bpy.ops.ccd_rig.offset_point_remove(offset=0, point=5)
    assert bpy.ops.ccd_rig.coupled_offset_remove(offset=0) == {"FINISHED"}
    assert not len(bone.ccd_rig.coupled_offsets)


def test_saved_and_opened_again(ext, tmp_path):
    settings = ext.module("ccd_rig.blender.properties.joints").joint_settings
    rig = leg()
    before = settings(rig, ["shin"])["shin"]["coupled_offsets"]
    assert len(before) == 2
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "leg.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "leg.blend"))
    assert settings(bpy.data.objects["Rig"], ["shin"])["shin"]["coupled_offsets"] == before


def test_undo_takes_an_offset_and_its_shift_back():
    rig = leg()
    bend(rig, chain_length=3)
    bpy.context.scene.frame_set(5)
    active(rig, "thigh")
    bpy.ops.ed.undo_push(message="before")

    def state():
        bones = bpy.data.objects["Rig"].pose.bones
        return [
            (tuple(bone.location), tuple(bone.rotation_quaternion), len(bone.ccd_rig.coupled_offsets))
            for bone in bones
        ]

    states = [state()]
    for operator in (bpy.ops.ccd_rig.coupled_offset_add, bpy.ops.ccd_rig.coupled_offset_remove):
        assert operator() == {"FINISHED"}
        bpy.ops.ed.undo_push(message="after")
        states.append(state())
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    bpy.ops.ed.undo_push(message="after")
    states.append(state())
    assert states[0] == states[2]
    assert len({str(each) for each in states}) == 3
    for expected in reversed(states[:-1]):
        bpy.ops.ed.undo()
        assert state() == expected


def overridden(rig, tmp_path):
    """Save an armature as a library; in a new file, an override of it."""
    bpy.data.libraries.write(str(tmp_path / "library.blend"), {rig})
    bpy.ops.wm.read_homefile(use_empty=True)
    with bpy.data.libraries.load(str(tmp_path / "library.blend"), link=True) as (_, wanted):
        wanted.objects = ["Rig"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    made = wanted.objects[0].override_create(remap_local_usages=True)
    made.override_library.is_system_override = False
    return made


@pytest.mark.parametrize("rolls", [True, False])
def test_an_override_keeps_what_was_changed_and_added(tmp_path, rolls):
    made = overridden(leg(rolls), tmp_path)
    bone = active(made, "shin")
    if rolls:
        row = bone.ccd_rig.coupled_offsets[0]
        row.points[1].shift, row.axis = 0.25, (1, 0, 0)
        with pytest.raises(RuntimeError, match="comes from the library"):
            bpy.ops.ccd_rig.coupled_offset_remove(offset=0)
        with pytest.raises(RuntimeError, match="comes from the library"):
            bpy.ops.ccd_rig.offset_point_remove(offset=0, point=0)
    assert bpy.ops.ccd_rig.coupled_offset_add() == {"FINISHED"}
    added = bone.ccd_rig.coupled_offsets[-1]
    added.driver, added.points[1].shift = "thigh", 0.5
    for _ in range(2):
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    (again,) = [each for each in bpy.data.objects if each.override_library and each.type == "ARMATURE"]
    rows = again.pose.bones["shin"].ccd_rig.coupled_offsets
    assert len(rows) == (3 if rolls else 1)
    assert (rows[-1].driver, [p.shift for p in rows[-1].points]) == ("thigh", [0.0, 0.5])
    if rolls:
        assert (rows[0].points[1].shift, tuple(rows[0].axis)) == (0.25, (1.0, 0.0, 0.0))


# --- what is refused ----------------------------------------------------------------------------------------


def first(rig):
    return rig.pose.bones["shin"].ccd_rig.coupled_offsets[0]


def connected(rig):
    with rigs.edit_bones(rig) as bones:
        bones["shin"].use_connect = True


def locked(rig):
    rig.pose.bones["shin"].lock_location = (True, True, False)


def slides_too(rig):
    rig.pose.bones["shin"].ccd_rig.use_slide = (False, True, False)


def no_such_driver(rig):
    first(rig).driver = "calf"


def child_drives(rig):
    first(rig).driver = "foot"


def driver_beyond(rig):
    hinge(rig.pose.bones["thigh"], -1.0, 1.0)
    first(rig).driver = "thigh"
    rig.ccd_rig.constraints["Foot"].chain_length = 2


def driver_without_hinge(rig):
    first(rig).driver = "thigh"


def whole_turn(rig):
    hinge(rig.pose.bones["shin"], -3.2, 3.2)


def locked_driver(rig):
    rig.pose.bones["shin"].lock_rotation = (True,) * 3


def one_point(rig):
    while len(first(rig).points) > 1:
        first(rig).points.remove(0)


def not_a_number(rig):
    first(rig).points[2].shift = math.nan


def same_angle(rig):
    first(rig).points[2].angle = first(rig).points[1].angle


def no_axis(rig):
    first(rig).axis = (0, 0, 0)


def axis_no_number(rig):
    first(rig).axis = (0, math.nan, 0)


def driven(rig):
    rig.pose.bones["shin"].driver_add("location", 1).driver.expression = "0.1"


def driven_follower(rig):
    kneecap(rig)
    rig.pose.bones["cap"].driver_add("location", 2).driver.expression = "0.1"


def max_extension(rig):
    rig.ccd_rig.constraints["Foot"].max_extension = 0.9


def two_bones(rig):
    rig.ccd_rig.constraints["Foot"].method = "TWO_BONE"


def planted(rig):
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.kind, row.chain_length = "Plant", "foot", "PLANT", 4
    rig.pose.bones["hips"].ccd_rig.use_slide = (False,) * 3


REFUSED = {
    connected: "'shin' has a coupled offset but is connected",
    locked: "'shin' has a coupled offset but its location is locked on Y",
    slides_too: "'shin' slides along Y, where a coupled offset says its location",
    no_such_driver: "'shin', coupled offset 1: its driver 'calf' is not in armature 'Rig'",
    child_drives: "its driver 'foot' must be the bone itself or one of its parents",
    driver_beyond: "its driver 'thigh' is in no chain that is solved: raise the chain length",
    driver_without_hinge: "its driver 'thigh' needs a hinge of less than a full turn",
    whole_turn: "its driver 'shin' needs a hinge of less than a full turn",
    locked_driver: "its driver 'shin' has its rotation locked",
    one_point: "'shin', coupled offset 1: its curve has 1 points",
    not_a_number: "'shin', coupled offset 1: a point of its curve is not a number",
    same_angle: "'shin', coupled offset 1: two points of its curve are at 68.75°",
    no_axis: "'shin', coupled offset 1: its axis is zero",
    axis_no_number: "'shin', coupled offset 1: .*nan",
    driven: r"'shin': location\[1\] has a driver",
    driven_follower: r"'cap': location\[2\] has a driver",
    max_extension: "'Foot': Max Extension is below 1, but bone 'shin' has a coupled offset",
    two_bones: "bone 'shin' has coupled offsets.*choose Loop",
    planted: "'Plant': bone 'shin' has a coupled offset",
}


@pytest.mark.parametrize("spoil", REFUSED, ids=lambda each: each.__name__)
def test_what_cannot_roll_is_said(ext, bake, checks, spoil):
    rig = leg()
    bend(rig, chain_length=3)
    spoil(rig)
    rigs.update()
    problems = [p for p in checks.problems(rig, bpy.context.scene) if p.severity == "ERROR"]
    assert problems
    with pytest.raises(ext.core.CCDRigError, match="(?i)" + REFUSED[spoil]):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert rig.animation_data is None or rig.animation_data.action is None
    with pytest.raises(ext.core.CCDRigError):
        bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    assert all(bone.rotation_quaternion == Quaternion() for bone in rig.pose.bones)


def test_a_figure_that_follows_its_feet_has_no_coupled_offset(ext, bake):
    rig = leg(rolls=False)
    with rigs.edit_bones(rig) as bones:
        made = bones.new("arm")
        made.head, made.tail, made.parent = (0, 0, 1.2), (0.3, 0, 1.2), bones["hips"]
    hinge(rig.pose.bones["arm"], -1.0, 1.0)
    roll(rig.pose.bones["arm"], (0, 1, 0), DOWN)
    bend(rig, chain_length=1).tip = "arm"
    planted(rig)
    rig.ccd_rig.body = "FOLLOW_FEET"
    with pytest.raises(ext.core.CCDRigError, match=r"'arm' has a coupled offset, .* follows its planted"):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
