"""What moves bones beside their keys: bones that cannot turn, places that are no numbers, limits of bones
that a solve leaves alone, and two ways that agree where they meet."""

from __future__ import annotations

import json
import math

import bpy
import pytest
import rigs
from mathutils import Quaternion
from rigs import keyed, reach

PATH = {1: (1.0, 0.5, 2.0), 9: (1.5, -0.5, 2.0)}


def limit_to(rig, bone, lower, upper):
    """Let a bone turn about its X axis alone, by lower..upper radians."""
    limit = rig.pose.bones[bone].ccd_rig.limit
    limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", (1, 0, 0), lower, upper


def angles_about_x(rig, bone, frames):
    """Radians that a bone is turned about its X axis as it plays, and the largest of its other components."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        w, x, y, z = rig.pose.bones[bone].matrix_basis.to_quaternion()
        found.append((2.0 * math.atan2(x, w), max(abs(y), abs(z))))
    return found


@pytest.mark.parametrize("place", ["bone_0", "bone_1", "bone_3"])
def test_a_constraint_of_a_bone_that_cannot_turn_is_told(bake, checks, place):
    rig = rigs.chain(4)
    reach(rig, "bone_3", keyed(rigs.empty("T"), PATH))
    rig.pose.bones[place].ccd_rig.stiffness = 1.0
    track = rig.pose.bones[place].constraints.new("DAMPED_TRACK")
    track.target = rigs.empty("Aside", (5.0, 0.0, -1.0))
    rigs.update()
    (problem,) = checks.problems(rig, bpy.context.scene)
    assert (problem.severity, problem.where) == ("WARNING", place)
    assert "does not see" in problem.message and "'Damped Track'" in problem.message
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9))
    (mismatch,) = report.check.mismatches()
    assert f"constraint 'Damped Track' of bone '{place}' acts on bone '{place}'" in mismatch
    for n, other in enumerate(("bone_0", "bone_1", "bone_3")):
        rig.pose.bones[other].ccd_rig.stiffness = 1.0
        if other != place:  # each turns its bone: seen from one before it, another target is aside
            aside = rigs.empty(f"Aside {n}", (-5.0, float(n), 1.0))
            rig.pose.bones[other].constraints.new("DAMPED_TRACK").target = aside
    rigs.update()
    unseen = [each for each in checks.problems(rig, bpy.context.scene) if "does not see" in each.message]
    assert [each.message for each in unseen] == [
        "Bones 'bone_0', 'bone_1', 'bone_3': the solve does not see where Blender's constraints bring them: "
        "bake these constraints to keys"
    ]
    for other in ("bone_0", "bone_1", "bone_3"):
        rig.pose.bones[other].constraints[0].mute = True
    assert not [each for each in checks.problems(rig, bpy.context.scene) if "does not see" in each.message]
    for other in ("bone_0", "bone_1", "bone_3"):
        rig.pose.bones[other].ccd_rig.stiffness = 1.0 if other == place else 0.0
    assert checks.problems(rig, bpy.context.scene) == ()
    assert bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9)).check.mismatches() == ()


def test_only_what_moves_itself_is_named(bake):
    """A constraint further down that changes nothing is not the cause."""
    rig = rigs.chain(4)
    reach(rig, "bone_3", keyed(rigs.empty("T"), PATH))
    rig.pose.bones["bone_1"].constraints.new("DAMPED_TRACK").target = rigs.empty("Aside", (5.0, 0.0, -1.0))
    harmless = rig.pose.bones["bone_3"].constraints.new("LIMIT_SCALE")
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9))
    (mismatch,) = report.check.mismatches()
    assert "'Damped Track' of bone 'bone_1'" in mismatch
    assert harmless.name not in mismatch


@pytest.mark.parametrize("place", ["bone_0", "bone_3"])
def test_what_plays_nowhere_is_told(ext, bake, tmp_path, place):
    """A bone that stretches to its own head has no direction: Blender shows it and all below it at NaN."""
    rig = rigs.chain(4)
    reach(rig, "bone_3", keyed(rigs.empty("T"), PATH))
    stretch = rig.pose.bones[place].constraints.new("STRETCH_TO")
    if place == "bone_0":
        stretch.target = rigs.empty("At its head")
    else:
        stretch.target, stretch.subtarget, stretch.head_tail = rig, "bone_2", 1.0
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9))
    bpy.context.scene.frame_set(5)
    assert any(math.isnan(value) for row in rig.pose.bones["bone_3"].matrix for value in row)
    (mismatch,) = report.check.mismatches()
    assert "its bones are nowhere" in mismatch and "'Stretch To'" in mismatch
    assert report.check.words() == "Does not play as baked: bone_3"
    ext.module("ccd_rig.blender.bake.report").save(report, tmp_path / "report.json")
    (played,) = json.loads((tmp_path / "report.json").read_text())["check"]["results"]
    assert played["deviation_angle"] is None


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("kind", ["TWO_BONE", "BALANCE", "HEAD", "ORIENTATION"])
def test_bones_that_serve_no_goal_keep_their_limits_too(bake, kind, step):
    """Above two bones, without mass, behind what reaches: they get keys inside, the same at each frame."""
    rig = rigs.chain(4)
    target = keyed(rigs.empty("T"), PATH)
    place = {"TWO_BONE": "bone_1", "ORIENTATION": "bone_3"}.get(kind, "bone_3")
    limit_to(rig, place, 0.5, 1.0)
    if kind == "TWO_BONE":
        reach(rig, "bone_3", target, method="TWO_BONE", chain_length=4)
    elif kind == "BALANCE":
        rig.pose.bones["bone_1"].ccd_rig.mass = 1.0
        keyed(target, {1: (0.3, 0.2, 2.0), 9: (0.1, -0.2, 2.0)})
        reach(rig, "bone_3", target, kind="BALANCE")
    elif kind == "HEAD":
        reach(rig, "bone_3", target, use_tail=False)
    else:
        reach(rig, "bone_3", target, use_position=False, rotation="ORIENTATION", rotation_bone="bone_1")
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9, step=step))
    require_inside(rig, place, 0.5, 1.0)
    if step == 1 or kind in ("BALANCE", "ORIENTATION"):
        assert max(entry.keyed_residual for entry in report.entries) < 2e-2
    if kind == "TWO_BONE":
        solved = [entry for entry in report.entries if entry.status != "SLERPED"]
        assert max(entry.keyed_residual for entry in solved) < 1e-3


@pytest.mark.parametrize("solver", ["CCD_LEAST_SQUARES", "CCD"])
@pytest.mark.parametrize(("bend", "wide"), [(1.0, 0.9), (1.0, 0.6), (0.6, 0.6)])
def test_two_ways_that_agree_only_where_they_meet(bake, bend, wide, solver):
    """Every frame between the two ways is solved: what counts as reached is, and limits hold."""
    rig = rigs.chain(2)
    limit_to(rig, "bone_0", -1.0, 1.0)
    limit_to(rig, "bone_1", -2.5, 2.5)
    elbow = rig.pose.bones["bone_1"]
    for frame, angle in ((1, bend), (41, -bend)):
        elbow.rotation_quaternion = (math.cos(0.5 * angle), math.sin(0.5 * angle), 0.0, 0.0)
        elbow.keyframe_insert("rotation_quaternion", frame=frame)
    path = {}
    for frame in range(1, 42):
        part = (frame - 21) / 20
        distance = 1.8 - 0.3 * part * part
        path[frame] = (0.0, distance * math.sin(wide * part), distance * math.cos(wide * part))
    reach(rig, "bone_1", keyed(rigs.empty("T"), path))
    rig.ccd_rig.solver.solver = solver
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 41))
    reached = [entry for entry in report.entries if entry.status == "CONVERGED"]
    assert len(reached) >= 35
    assert max(entry.keyed_residual for entry in reached) <= report.tolerance * 1.01
    for bone, most in (("bone_0", 1.0), ("bone_1", 2.5)):
        assert max(abs(angle) for angle, _ in angles_about_x(rig, bone, range(1, 42))) <= most + 1e-5


CHANNELS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}


def require_inside(rig, bone, lower, upper):
    for angle, other in angles_about_x(rig, bone, range(1, 10)):
        assert lower - 1e-5 <= angle <= upper + 1e-5
        assert other < 1e-5


def balanced(mode, way):
    """A chain whose last bone carries no mass, and is keyed outside its limit in a rotation mode."""
    rig = rigs.chain(4)
    rig.pose.bones["bone_1"].ccd_rig.mass = 1.0
    limit_to(rig, "bone_3", 0.5, 1.0)
    bone = rig.pose.bones["bone_3"]
    bone.rotation_mode = mode
    for frame in range(1, 10):
        rigs.set_rotation(bone, Quaternion((0.6, 0.8, 0.0), 0.1 - 0.1 * frame))
        factor = {"signs": 1.0 - 2.0 * (frame % 2), "long": 1.37}.get(way, 1.0)
        if mode == "QUATERNION":
            bone.rotation_quaternion = [factor * each for each in bone.rotation_quaternion]
        bone.keyframe_insert(CHANNELS.get(mode, "rotation_euler"), frame=frame)
    if way == "tilted":
        rig.rotation_euler = (0.3, 0.4, 0.5)
    path = {1: (0.3, 0.2, 2.0), 9: (0.1, -0.2, 2.0)}
    reach(rig, "bone_3", keyed(rigs.empty("T"), path), kind="BALANCE")
    rigs.update()
    return rig


@pytest.mark.parametrize(
    ("mode", "way"),
    [
        *((mode, way) for mode in rigs.MODES for way in ("plain", "again")),
        *((mode, way) for mode in ("QUATERNION", "AXIS_ANGLE", "ZXY") for way in ("tilted", "step")),
        ("QUATERNION", "signs"),
        ("QUATERNION", "long"),
    ],
)
def test_a_bone_without_mass_is_keyed_inside_its_limit(bake, mode, way):
    rig = balanced(mode, way)
    fields = {"step": 2} if way == "step" else {}
    bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9, **fields))
    require_inside(rig, "bone_3", 0.5, 1.0)
    if way == "again":  # it starts from the motion before any bake
        bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9, smoothness=0.5))
        require_inside(rig, "bone_3", 0.5, 1.0)


def test_a_chain_on_a_bone_that_its_limit_turns_is_solved_from_there(bake):
    """A hand on a balanced spine, whose last bone carries no mass and stands outside its limit."""
    rig = rigs.chain(6)
    rig.pose.bones["bone_0"].ccd_rig.mass = 1.0
    limit_to(rig, "bone_2", 0.5, 1.0)
    point = keyed(rigs.empty("Point"), {1: (0.1, 0.05, 0.4), 9: (0.1, -0.2, 0.4)})
    reach(rig, "bone_2", point, "Balance", kind="BALANCE")
    hand = keyed(rigs.empty("Hand"), {1: (0.3, 0.2, 4.0), 9: (0.1, -0.2, 4.0)})
    reach(rig, "bone_5", hand, "Hand", chain_length=3)
    report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 9))
    assert max(entry.keyed_residual for entry in report.entries) < 1e-3
    assert report.check.mismatches() == ()
    require_inside(rig, "bone_2", 0.5, 1.0)
    solved = bake.solve_current(bpy.context.evaluated_depsgraph_get(), rig)
    assert solved.result.status.name == "CONVERGED"
