"""What helps against what a bake has found: markers, the way to a frame, and the settings that fixes set."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from finding_bakes import FRAMES, of, run
from mathutils import Quaternion


@pytest.fixture
def finding(ext):
    return ext.module("ccd_rig.blender.bake.report")


def snapping(bake):
    """A leg whose target leaves reach and comes back: the chain snaps straight."""
    rig = rigs.chain(2)
    rig.ccd_rig.solver.solver = "CCD"
    rigs.reach(rig, "bone_1", rigs.keyed(rigs.empty("Goal"), {1: (1.0, 0.0, 1.0), FRAMES: (3.0, 0.0, 0.0)}))
    return rig, run(bake, rig)


def test_markers_in_the_timeline(bake):
    rig, report = snapping(bake)
    rigs.activate(rig)
    markers = bpy.context.scene.timeline_markers
    markers.new("Mine", frame=3)
    for _ in range(2):  # the second press replaces those of the first
        assert bpy.ops.ccd_rig.report_markers() == {"FINISHED"}
        assert len(markers) == 1 + len(report.findings)
    short = next(each for each in report.findings if each.trouble == "SHORT")
    marker = next(each for each in markers if " out of reach" in each.name)
    assert marker.frame == short.frame_start
    assert marker.name == f"CCD: {rig.name}: {short.label()} to {short.frame_end}"
    bpy.ops.ccd_rig.report_markers(clear=True)
    assert [each.name for each in markers] == ["Mine"]


def test_go_to_a_finding(bake):
    rig, report = snapping(bake)
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.go_to_frame(finding=0) == {"FINISHED"}
    assert bpy.context.scene.frame_current == math.floor(report.findings[0].frame)
    with pytest.raises(RuntimeError, match="no such line"):
        bpy.ops.ccd_rig.go_to_frame(finding=99)


def stored(rig, finding, fix, **fields):
    """A report that asks for one fix."""
    found = finding.Finding(
        finding.Trouble.JUMP, rig.ccd_rig.constraints[0].name, "bone_1", 5, 5, 5, angle=0.5, fix=fix, **fields
    )
    rig.ccd_rig.report.words = "1 of 1 frames reached"
    rig.ccd_rig.report.findings = finding.to_json([found])
    rigs.activate(rig)


def test_fixes_set_what_they_say(finding):
    rig = rigs.chain(3)
    row = rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.0, 1.0)))
    rig.ccd_rig.solver.solver = "CCD"
    for fix, value in (
        (finding.Fix.EXTENSION, lambda: row.max_extension == pytest.approx(0.98)),
        (finding.Fix.SOFT, lambda: row.soft == pytest.approx(0.05)),
        (finding.Fix.LEAST_SQUARES, lambda: rig.ccd_rig.solver.solver == "CCD_LEAST_SQUARES"),
    ):
        stored(rig, finding, fix)
        assert not value()
        assert bpy.ops.ccd_rig.report_fix(finding=0) == {"FINISHED"}
        assert value()
    with pytest.raises(RuntimeError, match="nothing to set"):
        bpy.ops.ccd_rig.report_fix(finding=1)
    stored(rig, finding, finding.Fix.EXTENSION)
    rig.ccd_rig.constraints[0].name = "Renamed"
    with pytest.raises(RuntimeError, match="not there any more"):
        bpy.ops.ccd_rig.report_fix(finding=0)


def test_a_fix_of_another_version_is_none(finding):
    """A file's report may name a setting that is not there: its line shows, without a button."""
    rig = rigs.chain(3)
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (1.0, 0.0, 1.0)))
    stored(rig, finding, "BOTH_WAYS")
    (found,) = finding.from_json(rig.ccd_rig.report.findings)
    assert (found.trouble, found.fix) == (finding.Trouble.JUMP, finding.Fix.NONE)
    with pytest.raises(RuntimeError, match="nothing to set"):
        bpy.ops.ccd_rig.report_fix(finding=0)


def test_a_pole_is_put_on_the_side_of_the_bend(finding):
    """The chain hangs on a bone; the pole goes with it and asks for what the chain does already.

    It is as far from the middle of the chain's line as the chain is long.
    """
    rig = rigs.chain(4)
    rigs.reach(rig, "bone_3", rigs.empty("Goal", (1.0, 0.0, 1.0)), chain_length=3)
    rig.pose.bones["bone_0"].rotation_quaternion = Quaternion((0, 1, 0), 0.3)
    rig.pose.bones["bone_0"].location = (0.5, 1.0, -0.7)
    rig.pose.bones["bone_2"].rotation_quaternion = Quaternion((1, 0, 0), 1.0)
    rigs.update()
    stored(rig, finding, finding.Fix.POLE)
    assert bpy.ops.ccd_rig.report_fix(finding=0) == {"FINISHED"}
    pole = rig.ccd_rig.constraints[0].pole_target
    assert pole is not None and (pole.parent, pole.parent_bone) == (rig, "bone_0")
    rigs.update()
    bones = rig.pose.bones
    root, end = bones["bone_1"].head, bones["bone_3"].tail
    line = (end - root).normalized()
    bend = bones["bone_2"].head + bones["bone_3"].head - 2.0 * root
    bend -= line * bend.dot(line)
    side = rig.matrix_world.inverted() @ pole.matrix_world.translation - root
    assert (side - (end - root) / 2.0).length == pytest.approx(3.0, abs=1e-5)
    side -= line * side.dot(line)
    assert bend.angle(side) < 0.02
    rig.pose.bones["bone_2"].rotation_quaternion = Quaternion()
    rig.ccd_rig.constraints[0].pole_target = None
    rigs.update()
    before = len(bpy.data.objects)
    with pytest.raises(RuntimeError, match="straight at frame 4"):
        bpy.ops.ccd_rig.report_fix(finding=0)
    assert len(bpy.data.objects) == before


def leg(has_foot=False):
    """Three bones downwards, bent a little at rest; with a foot there is a fourth across their end."""
    bones, head = [], (0.0, 0.0, 0.0)
    for i, angle in enumerate((-0.2, 0.0, 0.2)):
        tail = (head[0] + math.sin(angle), 0.0, head[2] - math.cos(angle))
        bones.append(rigs.B(f"bone_{i}", head, tail, parent=f"bone_{i - 1}" if i else "", connect=i > 0))
        head = tail
    if has_foot:
        toes = (head[0] + 0.6, 0.0, head[2])
        bones.append(rigs.B("bone_3", head, toes, parent="bone_2", connect=True))
    return rigs.armature(bones)


@pytest.mark.parametrize("by_the_ankle", [False, True])
def test_the_fix_of_a_limb_that_snaps_straight_helps(bake, by_the_ankle):
    """A target leaves reach and comes back: with the fix the limb turns half as much in a frame."""
    rig = leg(has_foot=by_the_ankle)
    path = {1: (0.3, 0, -1.9), 15: (2.2, 0, -2.6), 25: (2.6, 0, -2.0), 40: (0.3, 0, -1.7)}
    target = rigs.keyed(rigs.empty("Goal"), path)
    rigs.reach(rig, "bone_3" if by_the_ankle else "bone_2", target, use_tail=not by_the_ankle)
    report = run(bake, rig, 40, smoothness=0.0)
    jumps = of(report, "JUMP")
    assert {each.fix for each in jumps} == {"EXTENSION"}
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.report_fix(finding=report.findings.index(jumps[0])) == {"FINISHED"}
    again = run(bake, rig, 40, start=bake.Start.ORIGINAL, smoothness=0.0)
    assert again.largest_rotation.angle < 0.6 * report.largest_rotation.angle


def test_a_tail_is_not_told_to_keep_from_straight(bake):
    rig = rigs.chain(8, 0.5)
    path = {
        1: (0, 0.5, 2.5),
        20: (1.5, -1, 2.5),
        30: (0, 1, 5),
        40: (0, -1, 5),
        50: (1, -1, 1),
        60: (0, 0.5, 2.5),
    }
    rigs.reach(rig, "bone_7", rigs.keyed(rigs.empty("Goal"), path))
    jumps = of(run(bake, rig, 60), "JUMP")
    assert jumps and all(each.fix != "EXTENSION" for each in jumps)


@pytest.mark.parametrize(("solver", "fix"), [("CCD", "LEAST_SQUARES"), ("CCD_LEAST_SQUARES", "")])
def test_the_other_solver_is_advised_where_it_is_not_in_use(bake, solver, fix):
    """A long chain snaps straight: neither a pole nor a largest extension is for it."""
    rig = rigs.chain(6)
    rig.ccd_rig.solver.solver = solver
    rigs.reach(rig, "bone_5", rigs.keyed(rigs.empty("Goal"), {1: (3.0, 0.0, 3.0), FRAMES: (9.0, 0.0, 0.0)}))
    jumps = of(run(bake, rig, smoothness=0.0), "JUMP")
    assert jumps and {each.fix for each in jumps} == {fix}


@pytest.mark.parametrize(
    ("first", "second"),
    [("Left", "Right"), ("A", "A: B"), ("x" * 60 + "L", "x" * 60 + "R")],
    ids=["short", "begin", "long"],
)
def test_markers_of_another_armature_stay(bake, first, second):
    reports, rigs_ = [], []
    for name in (first, second):
        rig = rigs.chain(3, 0.5)
        rig.name = name
        rigs.reach(rig, "bone_2", rigs.empty(f"Far {name}", (0.0, 5.0, 0.0)))
        rigs.update()
        reports.append(bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 5)))
        rigs_.append(rig)
    markers = bpy.context.scene.timeline_markers
    for rig in rigs_:
        rigs.activate(rig)
        assert bpy.ops.ccd_rig.report_markers() == {"FINISHED"}
    assert len(markers) == sum(len(report.findings) for report in reports) > 1
    assert bpy.ops.ccd_rig.report_markers(clear=True) == {"FINISHED"}  # of the active one
    assert len(markers) == len(reports[0].findings)
    if first == "Left":
        assert all(marker.name.startswith("CCD: Left: ") for marker in markers)
    rigs.activate(rigs_[0])
    assert bpy.ops.ccd_rig.report_markers(clear=True) == {"FINISHED"}
    assert not markers
