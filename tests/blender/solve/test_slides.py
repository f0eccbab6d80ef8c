"""Slides: the locations that Blender plays of the baked action."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from balanced_rigs import FLOAT32, FRAMES, PLACES, PLAYED, SOLVE, along, crane, key, keyed, played
from mathutils import Vector
from rigs import setting


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("place", ["at home", "turned", "scaled", "mirrored"])
def test_a_slide_is_keyed_and_stays_inside_its_range(bake, channels, local, place):
    axis = (0.0, 1.0, 0.0)  # without Local Location, the parent's, which points the same way
    rig, target, _ = crane(local)
    rig.matrix_world = PLACES[place]
    rig.pose.bones["mast"].location = (0.03, 0.0, 0.02)
    rigs.update()
    points = ((0.3, 0.2, 2.7), (0.2, 0.4, 2.4), (0.1, -0.1, 2.8))
    key(target, "location", [PLACES[place] @ Vector(p) for p in points])
    rig.pose.bones["mast"].ccd_rig.use_slide = (False,) * 3
    without = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert without.unsolved_count() > 0
    rig.animation_data_clear()
    rig.pose.bones["mast"].ccd_rig.use_slide = (False, True, False)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    values = along(channels, rig, axis)
    assert len(values) == FRAMES
    assert values.min() >= -0.2 - FLOAT32
    assert values.max() <= 0.7 + FLOAT32
    assert np.ptp(values) > 0.05
    whole = keyed(channels, rig, 'pose.bones["mast"].location')
    across = whole - values[:, None] * np.array(axis)
    assert np.abs(across - across[0]).max() < FLOAT32
    assert across[0] == pytest.approx((0.03, 0.0, 0.02), abs=FLOAT32)
    for line, (_, evaluated, depsgraph) in zip(report.entries, played(rig), strict=True):
        tip = evaluated.matrix_world @ evaluated.pose.bones["boom"].tail
        off = (tip - target.evaluated_get(depsgraph).matrix_world.translation).length
        assert off < SOLVE + PLAYED
        assert off == pytest.approx(line.keyed_residual, abs=PLAYED)


def test_slides_are_lerped_between_solves_and_blended_by_influence(bake, channels):
    rig, target, row = crane()
    key(target, "location", [(0.3, 0.2, 2.7), (0.2, 0.4, 2.1), (0.1, -0.1, 2.8)])
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, step=8))
    full = along(channels, rig, (0, 1, 0))
    for start in (0, 8):
        wanted = np.linspace(full[start], full[start + 8], 9)
        assert full[start : start + 9] == pytest.approx(wanted, abs=FLOAT32)
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.rotation_quaternion, bone.location = (1, 0, 0, 0), (0, 0, 0)
    row.influence = 0.25
    rigs.update()
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES, step=8))
    assert along(channels, rig, (0, 1, 0)) == pytest.approx(0.25 * full, abs=FLOAT32)


def test_solve_pose_writes_the_slide(bake):
    rig, target, _ = crane()
    target.location = (0.2, 0.3, 2.7)
    rigs.update()
    result = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig).result
    rigs.update()
    assert result.status.name == "CONVERGED"
    assert 0.1 < rig.pose.bones["mast"].location.y <= 0.7
    assert (rig.pose.bones["boom"].tail - target.location).length < SOLVE + PLAYED
    assert rig.pose.bones["foot"].location.length == 0.0


def test_a_bone_that_only_slides(bake, channels):
    """Rotation locked on all axes: a piston. It needs Euler angles to be held."""
    rig, target, _ = crane()
    rig.pose.bones["mast"].rotation_mode = "XYZ"
    rig.pose.bones["mast"].rotation_euler = (0.1, 0.2, 0.3)
    rig.pose.bones["mast"].lock_rotation = (True, True, True)
    key(target, "location", [(0.3, 0.2, 2.5), (0.2, 0.4, 2.3), (0.1, -0.1, 2.5)])
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, FRAMES))
    assert report.unsolved() == (), report.summary()
    turns = keyed(channels, rig, 'pose.bones["mast"].rotation_euler')
    assert turns == pytest.approx(np.tile((0.1, 0.2, 0.3), (FRAMES, 1)), abs=1e-5)
    assert np.ptp(along(channels, rig, (0, 1, 0))) > 0.01


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("place", ["at home", "turned", "scaled", "mirrored"])
def test_three_slides_carry_a_bone_that_does_not_turn(bake, channels, local, place):
    """A cart: where the ranges allow it the target is met by the three location channels alone."""
    rig, target, _ = crane(local, "XYZ", chain_length=2)
    rig.matrix_world = PLACES[place]
    for bone in ("mast", "boom"):
        rig.pose.bones[bone].rotation_mode = "XYZ"
        rig.pose.bones[bone].lock_rotation = (True, True, True)
    rig.pose.bones["mast"].location = (0.1, -0.1, 0.05)
    rigs.update()
    start = rig.pose.bones["boom"].tail.copy()
    shifts = ((0.1, 0.2, 0.15), (0.25, 0.0, 0.3), (-0.05, 0.1, 0.0), (5.0, 5.0, 5.0))
    key(target, "location", [PLACES[place] @ (start + Vector(shift)) for shift in shifts])
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 25))
    locations = keyed(channels, rig, 'pose.bones["mast"].location')
    assert locations.shape == (25, 3)
    assert locations.min() >= -0.2 - FLOAT32
    assert locations.max() <= 0.7 + FLOAT32
    late = [entry.frame for entry in report.unsolved()]
    assert late, "the last target is out of range"
    assert min(late) > 17
    assert np.ptp(locations, axis=0).min() > 0.05


def connected(rig):
    with rigs.edit_bones(rig) as bones:
        bones["mast"].use_connect = True


def locked(rig):
    rig.pose.bones["mast"].lock_location[1] = True


def backwards(rig):
    rig.pose.bones["mast"].ccd_rig.slide_lower[1] = 2.0


def driven(rig):
    rig.pose.bones["mast"].driver_add("location", 1).driver.expression = "0.1"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (connected, "'mast' slides but is connected"),
        (locked, "'mast' slides but its location is locked on Y"),
        (backwards, "'mast', slide: Y Min"),
        (
            setting('pose.bones["mast"]', lock_rotation=(True, True, False)),
            "'mast' has rotation locked on X and Y in a mode without Euler angles",
        ),
        (driven, r"'mast': location\[1\] has a driver"),
    ],
)
def test_what_cannot_slide_is_said(bake, checks, errors, spoil, words):
    rig, _, _ = crane()
    spoil(rig)
    rigs.update()
    assert any(p.severity == "ERROR" for p in checks.problems(rig, bpy.context.scene))
    with pytest.raises(errors.CCDRigError, match="(?i)" + words):
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert rig.animation_data is None or rig.animation_data.action is None
