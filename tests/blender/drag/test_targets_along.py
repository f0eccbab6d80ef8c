"""Targets that a pose meets go along with a drag: what was dragged is what Live and a bake give."""

from __future__ import annotations

import math

import bpy
import pytest
import rigs
from linked_rigs import linked
from mathutils import Matrix, Quaternion, Vector
from operator_calls import select, set_up, undo_push

MET = 1e-4  # [m] as the tolerance of Position
PULL = (0.05, -0.15, 0.25)  # [m]


def places(rig):
    """The place and rotation of each target, in the world."""
    rigs.update()
    found = {}
    for row in rig.ccd_rig.constraints:
        matrix = row.target.matrix_world.copy()
        if row.target_bone:
            matrix @= row.target.pose.bones[row.target_bone].matrix
        found[row.tip] = matrix
    return found


def shown(rig):
    rigs.update()
    seen = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return {bone.name: seen.matrix_world @ bone.matrix for bone in seen.pose.bones}


def apart(poses, others):
    """The largest angle between two poses, in degrees."""
    turns = (poses[name].to_quaternion().rotation_difference(others[name].to_quaternion()) for name in poses)
    return math.degrees(max(min(turn.angle, 2.0 * math.pi - turn.angle) for turn in turns))


def pull(ext, rig, bone, delta=PULL, **options):
    select(ext, rig, bone)
    assert bpy.ops.ccd_rig.drag(value=delta, **options) == {"FINISHED"}
    rigs.update()


def arm(count=4, angle=0.3):
    """A bent chain whose last bone reaches for an empty, and meets it."""
    rig = rigs.chain(count)
    for bone in rig.pose.bones:
        rigs.set_rotation(bone, Quaternion((1.0, 0.0, 0.0), angle))
    rigs.update()
    goal = rigs.empty("Goal", rig.pose.bones[-1].tail)
    return rig, goal, rigs.reach(rig, f"bone_{count - 1}", goal, use_tail=True, chain_length=count)


def is_met(rig, goal):
    rigs.update()
    return (rig.matrix_world @ rig.pose.bones[-1].tail - goal.matrix_world.translation).length < MET


@pytest.mark.parametrize("control_bones", [False, True])
def test_live_shows_a_figure_as_it_was_dragged(ext, control_bones):
    """A forearm that is pulled up takes the clavicle along, which is in no chain of a target."""
    rig = set_up(rigs.metarig("basic_human"), control_bones=control_bones)
    before = places(rig)
    pull(ext, rig, "forearm.L", names="forearm.L\nshoulder.L", along=0.5)
    dragged, after = shown(rig), places(rig)
    hand = (after["hand.L"].translation - before["hand.L"].translation).length
    assert hand > 0.1
    assert all(after[tip] == before[tip] for tip in after if tip != "hand.L")
    bpy.ops.ccd_rig.live()
    seen = shown(rig)
    assert apart(dragged, seen) < 0.1
    assert max((dragged[name].translation - seen[name].translation).length for name in seen) < 1e-3


def test_a_target_that_turns_a_bone_is_turned_with_it(ext):
    rig, goal, row = arm()
    row.rotation = "ORIENTATION"
    goal.rotation_mode = "QUATERNION"
    goal.rotation_quaternion = shown(rig)["bone_3"].to_quaternion()
    pull(ext, rig, "bone_3", (0.3, 0.5, -0.4))
    turn = goal.rotation_quaternion.rotation_difference(shown(rig)["bone_3"].to_quaternion()).angle
    assert is_met(rig, goal) and min(turn, 2.0 * math.pi - turn) < 1e-3


def test_a_target_that_was_put_elsewhere_stays_there(ext):
    rig, goal, _ = arm()
    goal.location = (1.0, 2.0, 1.0)
    pull(ext, rig, "bone_3", (0.3, 0.5, -0.4))
    assert goal.location == Vector((1.0, 2.0, 1.0))


def test_a_target_that_a_dragged_bone_carries_stays_on_it(ext):
    """Another arm reaches for what this one holds."""
    rig, goal, _ = arm()
    other = rigs.armature([rigs.B("prop", (0, 0, 0), (0, 0, 1))], "Prop")
    grip = rigs.empty("Grip")
    grip.parent, grip.parent_type, grip.parent_bone = rig, "BONE", "bone_3"
    rigs.update()
    other.location = grip.matrix_world.translation
    rigs.update()
    rigs.reach(other, "prop", grip, use_tail=False, chain_length=1)
    held = grip.matrix_basis.copy()
    pull(ext, rig, "bone_3", (0.3, 0.5, -0.4))
    assert grip.matrix_basis == held and is_met(rig, goal)


def test_targets_below_one_that_goes_along_stay_at_their_bones(ext):
    rig, goal, _ = arm(5)
    rigs.update()
    low = rigs.empty("Low", (0.0, 0.0, 1.0))
    low.parent = goal
    low.matrix_parent_inverse = goal.matrix_world.inverted()
    low.location = rig.pose.bones["bone_0"].tail
    rigs.reach(rig, "bone_0", low, use_tail=True, chain_length=1)
    rigs.update()
    there = low.matrix_world.translation.copy()
    pull(ext, rig, "bone_4", (0.2, 0.4, -0.4), turning=3)
    assert is_met(rig, goal)
    assert (low.matrix_world.translation - there).length < MET and low.location != there


def test_a_pole_follows_the_bend(ext):
    """The hand is pinned and the elbow pulled aside: target and pole stay with them."""
    rig = set_up(rigs.metarig("basic_human"), poles=True)
    row = next(row for row in rig.ccd_rig.constraints if row.tip == "hand.L")
    assert row.pole_target is not None
    select(ext, rig, "upper_arm.L")
    rig.pose.bones["forearm.L"].ccd_rig.pin = "PLACE"
    pull(ext, rig, "upper_arm.L", (0.0, 0.0, 0.1))
    dragged = shown(rig)
    bpy.ops.ccd_rig.live()
    assert apart(dragged, shown(rig)) < 0.2


def test_a_drag_with_its_targets_is_one_step_and_is_keyed_as_one(ext, channels):
    rig, goal, _ = arm()
    tools = bpy.context.scene.tool_settings
    bpy.context.preferences.edit.use_keyframe_insert_available = False
    tools.use_keyframe_insert_auto = True
    try:
        pull(ext, rig, "bone_3", (0.3, 0.5, -0.4))
    finally:
        tools.use_keyframe_insert_auto = False
    assert {curve.data_path for curve in channels.fcurves_of(goal)} == {"location"}
    assert channels.fcurves_of(rig)


def test_undo_takes_the_target_back_with_the_pose(ext):
    rig, _, _ = arm()
    select(ext, rig, "bone_3")

    def state():
        made, goal = bpy.data.objects["Rig"], bpy.data.objects["Goal"]
        return [tuple(bone.rotation_quaternion) for bone in made.pose.bones], tuple(goal.location)

    undo_push()
    before = state()
    assert bpy.ops.ccd_rig.drag(value=(0.3, 0.5, -0.4)) == {"FINISHED"}
    undo_push()
    after = state()
    assert before[0] != after[0] and before[1] != after[1]
    bpy.ops.ed.undo()
    assert state() == before
    bpy.ops.ed.redo()
    assert state() == after


def locked(goal, _folder):
    goal.lock_location = (True,) * 3
    return goal, "cannot be put where the bone is"


def driven(goal, _folder):
    goal.driver_add("location", 0).driver.expression = str(goal.location.x)
    return goal, "cannot be put where the bone is"


def moved(goal, _folder):
    goal.constraints.new("LIMIT_DISTANCE")
    return goal, "its constraint 'Limit Distance' moves it"


@pytest.mark.parametrize("spoil", [locked, driven, moved])
def test_a_target_that_cannot_move_is_told_and_stays(ext, capfd, tmp_path, spoil):
    rig, goal, _ = arm()
    goal, words = spoil(goal, tmp_path)
    rigs.update()
    before = goal.matrix_basis.copy()
    goal_of_tail = rig.pose.bones["bone_3"].tail + Vector((0.3, 0.5, -0.4))
    pull(ext, rig, "bone_3", (0.3, 0.5, -0.4))
    assert goal.matrix_basis == before
    assert (rig.pose.bones["bone_3"].tail - goal_of_tail).length < 1e-3
    said = capfd.readouterr().out
    assert "The targets stay where they are. " in said and words in said


def test_a_linked_target_is_told_and_stays(ext, capfd, tmp_path):
    rig, goal, _ = arm()
    place = goal.location.copy()
    goal = linked(goal, tmp_path)
    rig, made, row = arm()
    bpy.data.objects.remove(made)
    row.target = goal
    pull(ext, rig, "bone_3", (0.3, 0.5, -0.4))
    assert goal.location == place
    assert "linked from a library" in capfd.readouterr().out


def test_an_object_that_is_no_handle_stays_and_is_named(ext, capfd):
    """A cup that a hand reaches for is not carried off by a drag of the hand."""
    rig, goal, row = arm()
    cup = rigs.link(bpy.data.meshes.new("Cup"), "Cup")
    cup.location = goal.location
    row.name, row.target = "hand", cup
    place = cup.location.copy()
    pull(ext, rig, "bone_3", (0.3, 0.5, -0.4))
    assert cup.location == place
    assert "The target of 'hand' is no empty and no control bone" in capfd.readouterr().out


def test_where_live_holds_the_tip_a_drag_above_the_chain_leaves_the_target(ext):
    rig, goal, row = arm(5)
    row.chain_length = 3
    place = goal.location.copy()
    bpy.ops.ccd_rig.live()
    pull(ext, rig, "bone_0", (0.2, 0.0, -0.05))
    assert goal.location == place


def test_a_centre_of_mass_leaves_its_target(ext):
    rig, goal, row = arm()
    for bone in rig.pose.bones:
        bone.ccd_rig.mass = 1.0
    row.kind = "BALANCE"
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.targets_match() == {"FINISHED"}
    place = goal.location.copy()
    pull(ext, rig, "bone_3", (0.3, 0.5, -0.4))
    assert goal.location == place


def test_a_drag_in_a_turned_and_scaled_object(ext):
    rig, goal, _ = arm()
    rig.matrix_world = Matrix.LocRotScale((1.0, 2.0, 3.0), Quaternion((0.0, 1.0, 0.0), 0.7), (2.0,) * 3)
    rigs.update()
    goal.location = rig.matrix_world @ rig.pose.bones[-1].tail
    pull(ext, rig, "bone_3", (0.3, 0.5, -0.4))
    assert is_met(rig, goal)
