"""Baking a baked action again: from the motion as it was before, if that is asked for."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
import rigs
from mathutils import Quaternion
from playing import rotations

PLAYED = 2e-6
FRAMES = range(1, 11)


@pytest.fixture
def rig(ext):
    """Half influence; bone_1 has keys, bone_0 a pose that no key holds."""
    made = rigs.chain(3, 0.5)
    goal = rigs.keyed(rigs.empty("Goal"), {1: (0.2, 0.2, 1.0), 10: (0.8, 0.2, 1.0)})
    rigs.reach(made, "bone_2", goal, "Hand", influence=0.5)
    made.pose.bones["bone_0"].rotation_quaternion = Quaternion((1, 0, 0), 0.2)
    return made


def key(rig):
    for frame, angle in ((1, 0.1), (10, 0.9)):
        rig.pose.bones["bone_1"].rotation_quaternion = Quaternion((1, 0, 0), angle)
        rig.pose.bones["bone_1"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_set(1)


def run(bake, rig, **fields):
    return bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 10, **fields))


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ"])
def test_a_second_bake_is_the_first_one(bake, rig, keyed, mode):
    for bone in rig.pose.bones:
        bone.rotation_mode = mode
    if keyed and mode == "QUATERNION":
        key(rig)
    elif keyed:
        for frame, angle in ((1, 0.1), (10, 0.9)):
            rig.pose.bones["bone_1"].rotation_euler = (angle, 0, 0)
            rig.pose.bones["bone_1"].keyframe_insert("rotation_euler", frame=frame)
    run(bake, rig)
    first = rotations(rig, FRAMES)
    run(bake, rig, start=bake.Start.ORIGINAL)
    assert np.abs(rotations(rig, FRAMES) - first).max() < PLAYED * 10
    run(bake, rig, start=bake.Start.ORIGINAL)  # and so on
    assert np.abs(rotations(rig, FRAMES) - first).max() < PLAYED * 10
    run(bake, rig)  # without it, half of the way is added
    assert np.abs(rotations(rig, FRAMES) - first).max() > 0.01


CONVERSIONS = (("QUATERNION", "ZXY"), ("XYZ", "QUATERNION"), ("XYZ", "ZYX"), ("AXIS_ANGLE", "YXZ"))


@pytest.mark.parametrize(("mode", "other"), CONVERSIONS)
def test_bones_in_another_rotation_mode_since_the_first_bake(bake, rig, mode, other):
    """The keys of a baked motion are converted by hand; from the original it bakes as at first."""
    set_modes(rig, mode)
    for frame in (1, 4, 10):
        rig.pose.bones["bone_1"].matrix_basis = (
            Quaternion((0.6, 0.64, 0.48), 0.2 * frame).to_matrix().to_4x4()
        )
        key_rotation(rig.pose.bones["bone_1"], frame)
    run(bake, rig)
    first = rotations(rig, FRAMES)
    set_modes(rig, other)
    for frame, turns in enumerate(first, 1):
        for bone, turn in zip(rig.pose.bones, turns, strict=True):
            bone.matrix_basis = Quaternion(turn).to_matrix().to_4x4()
            key_rotation(bone, frame)
    assert np.abs(np.abs(rotations(rig, FRAMES)) - np.abs(first)).max() < 1e-5
    run(bake, rig, start=bake.Start.ORIGINAL)
    assert np.abs(np.abs(rotations(rig, FRAMES)) - np.abs(first)).max() < 1e-5
    run(bake, rig)  # without it, half of the way is added
    assert np.abs(rotations(rig, FRAMES) - first).max() > 0.01


def set_modes(rig, mode):
    for bone in rig.pose.bones:
        bone.rotation_mode = mode


def key_rotation(bone, frame):
    names = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    bone.keyframe_insert(names.get(bone.rotation_mode, "rotation_euler"), frame=frame)


def test_a_note_without_the_rotation_mode_is_of_the_present_one(errors, bake, rig):
    run(bake, rig)
    action = rig.animation_data.action
    pose = action["ccd_rig_pose"].to_dict()
    action["ccd_rig_pose"] = {
        bone: {"rotation_quaternion": each["rotation_quaternion"]} for bone, each in pose.items()
    }
    first = rotations(rig, FRAMES)
    run(bake, rig, start=bake.Start.ORIGINAL)
    assert np.abs(rotations(rig, FRAMES) - first).max() < PLAYED * 10
    set_modes(rig, "XYZ")
    with pytest.raises(errors.RigError, match="does not know what it was baked from"):
        run(bake, rig, start=bake.Start.ORIGINAL)


def test_an_action_that_knows_nothing_is_refused(errors, bake, rig):
    with pytest.raises(errors.RigError, match="does not know what it was baked from"):
        run(bake, rig, start=bake.Start.ORIGINAL)
    key(rig)
    with pytest.raises(errors.RigError, match="choose another way to start"):
        run(bake, rig, start=bake.Start.ORIGINAL)


def strip(rig):
    """Move the action of a rig into an NLA strip."""
    animation = rig.animation_data
    action, animation.action = animation.action, None
    animation.nla_tracks.new().strips.new("Mocap", 1, action)


def waving(rig):
    """A redundant chain whose bones all have keys; nothing but these makes it bend."""
    for bone in rig.pose.bones:
        for frame, angle in ((1, 0.1), (5, -0.7), (10, 0.9)):
            bone.rotation_quaternion = Quaternion((1, 0.3, 0), angle)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    rig.ccd_rig.constraints[0].influence = 1.0


@pytest.mark.parametrize("lost", ["strips", "deleted"])
def test_a_nudged_target_nudges_a_motion_whose_source_is_unknown(errors, bake, rig, lost):
    """The second bake goes on from the first, not from a still pose; nothing leads back to the original."""
    waving(rig)
    original = rig.animation_data.action
    if lost == "strips":
        strip(rig)
    run(bake, rig)
    first = rotations(rig, FRAMES)
    if lost == "deleted":
        bpy.data.actions.remove(original)
    bpy.data.objects["Goal"].delta_location.y = 1e-3
    assert run(bake, rig, destination=bake.Destination.CURRENT_ACTION).check.mismatches() == ()
    # A millimetre at a bone of half a metre is 0.002 rad.
    assert 0.0 < np.abs(rotations(rig, FRAMES) - first).max() < 0.01
    with pytest.raises(errors.RigError, match="does not know what it was baked from"):
        run(bake, rig, start=bake.Start.ORIGINAL)


def test_strips_of_a_bone_that_is_baked_later(errors, bake, rig):
    """The first bake knows its source; bone_0, which a strip moves, is baked into its action later."""
    key(rig)
    bone, animation = rig.pose.bones["bone_0"], rig.animation_data
    upper, animation.action = animation.action, None
    for frame in (1, 10):
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    strip(rig)
    animation.action = upper
    if hasattr(animation, "action_slot"):
        animation.action_slot = upper.slots[0]
    row = rig.ccd_rig.constraints[0]
    row.chain_length = 2
    where = bake.Destination.CURRENT_ACTION
    run(bake, rig)
    run(bake, rig, start=bake.Start.ORIGINAL, destination=where)
    row.chain_length = 0
    steps = bake.bake_steps(bpy.context.scene, rig, bake.BakeSettings(1, 10, destination=where))
    while next(steps).verb != "checked":
        pass
    steps.close()  # it is taken back
    assert rig.animation_data.action["ccd_rig_original"] == upper
    run(bake, rig, destination=where)
    with pytest.raises(errors.RigError, match="does not know what it was baked from"):
        run(bake, rig, start=bake.Start.ORIGINAL, destination=where)


def test_after_saving_and_loading(bake, rig, tmp_path):
    key(rig)
    run(bake, rig)
    first = rotations(rig, FRAMES)
    path = str(tmp_path / "shot.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    rig = bpy.data.objects["Rig"]
    run(bake, rig, start=bake.Start.ORIGINAL)
    assert np.abs(rotations(rig, FRAMES) - first).max() < PLAYED * 10


# --- made twice ---------------------------------------------------------------------------------------------


def limited(rig):
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.5


def far_away(rig):
    """From the middle on out of reach."""
    bpy.data.objects["Goal"].scale = (1, 1, 1)
    bpy.data.objects["Goal"].location = (3, 0.2, 1)
    bpy.data.objects["Goal"].keyframe_insert("location", frame=10)


def by_eulers(rig):
    for bone in rig.pose.bones:
        bone.rotation_mode = "ZXY"


def sliding(rig):
    own = rig.pose.bones["bone_0"].ccd_rig
    own.use_slide = (False, True, False)
    own.slide_lower[1], own.slide_upper[1] = -0.2, 0.2


def beside_one_at_rest(rig):
    """A constraint without influence, whose own bone stands outside its limit."""
    bone = rig.pose.bones["bone_2"]
    bone.ccd_rig.limit.kind, bone.ccd_rig.limit.cone_radius = "CONE", 0.1
    bone.rotation_quaternion = Quaternion((1, 0, 0), 1.0)
    rig.ccd_rig.constraints[0].tip = "bone_1"
    rigs.reach(rig, "bone_2", rigs.empty("Other", (1, 1, 1)), "Idle", influence=0.0, chain_length=1)


def plain(rig):
    pass


DESTINATIONS = ("NEW_ACTION", "CURRENT_ACTION", "NLA_STRIP")


@pytest.mark.parametrize(
    ("destination", "odd", "fields"),
    [
        *(
            (where, odd, {})
            for where in DESTINATIONS
            for odd in (plain, limited, far_away, by_eulers, sliding)
        ),
        ("CURRENT_ACTION", beside_one_at_rest, {}),
        ("CURRENT_ACTION", plain, {"step": 3}),
        ("CURRENT_ACTION", limited, {"preroll": 5}),
        ("NLA_STRIP", limited, {"smoothness": 0.0}),
        ("CURRENT_ACTION", far_away, {"keys": "SOLVED_FRAMES", "step": 4}),
        ("NLA_STRIP", plain, {"keys": "TARGET_KEYS"}),
    ],
)
def test_a_bake_made_twice_is_the_same(bake, rig, destination, odd, fields):
    key(rig)
    odd(rig)
    rig.ccd_rig.constraints[0].influence = 1.0
    how = {name: bake.Keys[value] if name == "keys" else value for name, value in fields.items()}
    first_report = run(bake, rig, destination=bake.Destination[destination], **how)
    first = rotations(rig, FRAMES)
    again = run(bake, rig, destination=bake.Destination[destination], **how)
    assert np.abs(rotations(rig, FRAMES) - first).max() < PLAYED
    assert again.check.mismatches() == ()
    assert again.unsolved_count() == first_report.unsolved_count()


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_what_meets_its_goals_stays_and_goes_on_where_the_target_goes(bake, rig, destination):
    key(rig)
    rig.ccd_rig.constraints[0].influence = 1.0
    where = bake.Destination[destination]
    run(bake, rig, destination=where)
    first = rotations(rig, FRAMES)
    run(bake, rig, destination=where)
    assert np.abs(rotations(rig, FRAMES) - first).max() <= PLAYED
    bpy.data.objects["Goal"].delta_location.y = 0.2
    report = run(bake, rig, destination=where)
    assert report.unsolved_count() == 0
    assert np.abs(rotations(rig, FRAMES) - first).max() > 100 * PLAYED


def test_cancelled_it_is_still_known_how_it_was_baked(bake, rig):
    key(rig)
    where = bake.Destination.CURRENT_ACTION
    for error_reduction in (0.5, 0.6):
        settings = bake.BakeSettings(1, 10, error_reduction=error_reduction, destination=where)
        steps = bake.bake_steps(bpy.context.scene, rig, settings)
        while next(steps).verb != "checked":
            pass
        steps.close()
        assert "ccd_rig_bake_settings" not in rig.animation_data.action
    run(bake, rig, destination=where)
    known = rig.animation_data.action["ccd_rig_bake_settings"]
    steps = bake.bake_steps(bpy.context.scene, rig, settings)
    while next(steps).verb != "checked":
        pass
    steps.close()
    assert rig.animation_data.action["ccd_rig_bake_settings"] == known


def test_a_miss_by_little_more_than_the_tolerance_stays_one(bake):
    """A straight chain whose target is 1.05 tolerances too far off, baked twice in the same way."""
    rig = rigs.chain(3, 0.5)
    rig.ccd_rig.solver.position_tolerance = 0.01
    rigs.reach(rig, "bone_2", rigs.empty("Goal", (0.0, 0.0, 1.5105)), "Hand")
    for _ in range(2):
        report = bake.bake(bpy.context.scene, rig, bake.BakeSettings(1, 4))
        assert [entry.frame for entry in report.unsolved()] == [1, 2, 3, 4]
        assert all(entry.residual == pytest.approx(0.0105, rel=1e-3) for entry in report.entries)


@pytest.mark.parametrize("part", [1.05, 0.95])
def test_a_kept_motion_that_misses_by_a_little_is_not_called_reached(bake, part):
    """A baked motion stays where it meets its targets by the tolerance, and not by a tenth more than that."""
    rig, tolerance = rigs.chain(3), 0.05
    goal = rigs.keyed(rigs.empty("Goal"), {1: (0.2, 0.2, 1.0), 2: (0.3, 0.2, 1.0)})
    rigs.reach(rig, "bone_2", goal, "Hand")
    solver, settings = rig.ccd_rig.solver, bake.BakeSettings(1, 2)
    solver.solver, solver.position_tolerance = "CCD", tolerance  # ends anywhere within the tolerance
    assert bake.bake(bpy.context.scene, rig, settings).entries[0].residual > 0.1 * tolerance
    first = rotations(rig, [1, 2])
    bpy.context.scene.frame_set(2)
    tip = rig.matrix_world @ rig.pose.bones["bone_2"].tail
    away = goal.matrix_world.translation - tip
    goal.location = tip + part * tolerance * away.normalized()
    goal.keyframe_insert("location", frame=2)
    report = bake.bake(bpy.context.scene, rig, settings)
    moved = np.abs(rotations(rig, [1, 2]) - first).max()
    assert all(entry.status == "CONVERGED" and entry.residual <= tolerance for entry in report.entries)
    assert moved > 1e-3 if part > 1.0 else moved < PLAYED
