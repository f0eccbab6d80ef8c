"""What a bake measures, each by a formula of its own."""

from __future__ import annotations

import math
import re
from contextlib import ExitStack
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion, Vector


@pytest.fixture
def measuring(ext):
    return ext.module("ccd_rig.blender.bake.measuring")


@pytest.fixture
def findings(ext):
    return ext.module("ccd_rig.blender.bake.findings")


def test_speeds_are_per_frame_however_far_apart_frames_are(measuring):
    turns = np.array([Quaternion((1.0, 0.0, 0.0), angle)[:] for angle in (0.0, 0.6, 0.9)])[:, None]
    assert measuring.speeds(turns, np.array([1.0, 5.0, 5.5]))[:, 0] == pytest.approx([0.15, 0.6], abs=1e-5)


def test_a_centre_of_mass_is_that_of_the_masses_whatever_their_sum(measuring):
    """Bones of 3 and 5 kg, of which the second is shown twice as long as at rest, and turned."""
    joints = [SimpleNamespace(mass=mass, length=1.0, centre=(0.0, 0.5, 0.1)) for mass in (3.0, 5.0)]
    shown = SimpleNamespace(skeleton=SimpleNamespace(joints=joints), lengths=np.array([[1.0, 2.0]]))
    heads = np.array([[(0.0, 0.0, 0.0), (0.0, 1.0, 0.0)]])
    turn = Quaternion((0.0, 0.0, 1.0), math.pi / 2)
    axes = np.array([[(1.0, 0.0, 0.0, 0.0), turn[:]]])
    balance = SimpleNamespace(kind=SimpleNamespace(balances=True))
    middles = Vector((0.0, 0.5, 0.1)), Vector((0.0, 1.0, 0.0)) + turn @ Vector((0.0, 1.0, 0.2))
    expected = (3.0 * middles[0] + 5.0 * middles[1]) / 8.0
    assert measuring.points(shown, balance, heads, axes)[0] == pytest.approx(expected[:], abs=1e-7)


@pytest.mark.parametrize(("widths", "is_told"), [(1.5, False), (2.5, True)])
def test_a_hinge_with_both_borders_near_any_angle_is_fixed(ext, findings, widths, is_told):
    hinges = ext.module("ccd_rig.limits.shapes")
    limit = hinges.Hinge(Vector((1.0, 0.0, 0.0)), 0.0, widths * findings.NEAR)
    assert findings.is_at_limit(limit, np.array([(1.0, 0.0, 0.0, 0.0)])).tolist() == [is_told]


@pytest.mark.parametrize(("turned", "fix"), [(50.0, "POLE"), (40.0, "LEAST_SQUARES")])
def test_a_pole_helps_where_the_side_of_the_bend_turns_by_more_than_half_the_jump(findings, turned, fix):
    """A limb of two bones that is bent on both sides of a jump by 90 degrees."""
    constraint = SimpleNamespace(
        kind=SimpleNamespace(reaches=True), use_position=True, method="CCD", pole_target=None
    )
    baked = SimpleNamespace(
        bake_frames=SimpleNamespace(constraints=[constraint]),
        chains=[[0, 1]],
        solver=SimpleNamespace(solver=findings.Solver.CCD),
    )
    angle = math.radians(turned)
    sides = np.array([(1.0, 0.0, 0.0), (math.cos(angle), math.sin(angle), 0.0)])
    suggested = findings._fix(baked, 0, math.radians(90.0), np.array([0.7, 0.7]), sides)
    assert suggested is findings.Fix[fix]


def test_a_layer_over_one_frame_shifts_the_target_there(ext):
    motion = ext.module("ccd_rig.blender.bake.target_motion")
    rig = rigs.chain(2)
    row = rigs.reach(rig, "bone_1", rigs.empty("Goal", (1.0, 0.0, 1.0)))
    with ExitStack() as undo:
        motion.shift_over(bpy.context.scene, row, (0.0, 0.0, 0.25), motion.Span(7, 7, 2), undo)
        undo.pop_all()
    heights = []
    for frame in range(4, 11):
        bpy.context.scene.frame_set(frame)
        heights.append(row.offset[2])
    smooth = 0.25 * (3 * 0.5**2 - 2 * 0.5**3)
    assert heights == pytest.approx([0.0, 0.0, smooth, 0.25, smooth, 0.0, 0.0], abs=1e-6)


def test_a_constraint_without_influence_keeps_none_after_it_from_being_measured(bake):
    rig = rigs.chain(4)
    for name, influence in (("Idle", 0.0), ("Hand", 1.0)):
        rigs.reach(rig, "bone_3", rigs.empty(name, (1.0, 1.0, 2.0)), name, influence=influence)
    rigs.update()
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 3))
    assert [row.constraint for row in report.check.results] == ["Hand"]


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_a_closed_form_has_met_its_target_within_a_tolerance_of_the_world(bake, scale):
    """The target is four tenths of the tolerance out of reach of an armature in other units, or twice."""
    for tolerances, is_met in ((0.4, True), (2.0, False)):
        rig = rigs.chain(2)
        rig.scale = (scale,) * 3
        rig.ccd_rig.solver.position_tolerance = 1e-3
        far = 2.0 * scale + tolerances * 1e-3
        rigs.reach(rig, "bone_1", rigs.empty("Goal", (far, 0.0, 0.0)), method="TWO_BONE")
        rigs.update()
        report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 2))
        assert (report.unsolved_count() == 0) is is_met


@pytest.mark.parametrize(("end", "words"), [(5.0, "frame 5 (hand.L):"), (7.0, "frames 5 to 7 (hand.L):")])
def test_words_of_one_frame_name_no_span(ext, end, words):
    helped = ext.module("ccd_rig.blender.bake.report").Helped
    said = helped(("hand.L",), 5.0, end, "spine", 0.2, "", 0.0).words()
    assert f"at {words} 'spine' turns" in said


def test_what_a_solved_pose_misses_is_told_in_metres_of_the_world(ext, capfd):
    """Two bones of a metre in an armature three times as large; the target is a metre out of reach."""
    rig = rigs.chain(2)
    rig.scale = (3.0,) * 3
    rigs.reach(rig, "bone_1", rigs.empty("Goal", (7.0, 0.0, 0.0)), "Hand")
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    (off,) = re.findall(r"([0-9.]+) m off at worst .Hand.", capfd.readouterr().out)
    assert float(off) == pytest.approx(1.0, abs=0.01)
