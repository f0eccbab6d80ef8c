"""The operators as a user calls them: what they do, and what they say."""

from __future__ import annotations

import itertools
from functools import partial
from types import SimpleNamespace

import bpy
import pytest
import rigs
from mathutils import Vector
from operator_calls import (
    add,
    fails,
    frames_with_keys,
    listed,
    pose,
    posed_chain,
    select,
    tail,
    with_moving_target,
)

SOLVE = 1e-3  # [m] how near a solved tail is, in rigs a few metres long
FLOAT32 = 1e-5  # [m] places are stored as float32


@pytest.fixture
def rig(ext):
    return posed_chain(ext)


# Adding ---------------------------------------------------------------------------------------------------


def test_add_makes_an_empty_at_the_evaluated_tail(rig):
    rig.location, rig.scale = (3.0, 0.0, 1.0), (2.0, 2.0, 2.0)
    rig.pose.bones["bone_1"].rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
    rigs.update()
    assert bpy.ops.ccd_rig.constraint_add() == {"FINISHED"}
    (row,) = rig.ccd_rig.constraints
    assert (row.name, row.tip, row.chain_length, row.target.name) == ("bone_2", "bone_2", 0, "Target bone_2")
    rigs.update()
    assert (row.target.matrix_world.translation - tail()).length < FLOAT32
    assert (tail() - Vector((3.0, 0.0, 7.0))).length > 1.0  # the posed tail, not the one at rest
    assert row.target.type == "EMPTY"
    assert bpy.context.mode == "POSE"
    assert bpy.context.object == rig


def test_the_empty_goes_into_a_collection_beside_the_armature(rig):
    own = bpy.data.collections.new("Characters")
    bpy.context.scene.collection.children.link(own)
    own.objects.link(rig)
    bpy.context.scene.collection.objects.unlink(rig)
    bpy.ops.ccd_rig.constraint_add()
    (collection,) = rig.ccd_rig.constraints[0].target.users_collection
    assert [each.name for each in own.children] == [collection.name] == ["Targets of Rig"]


def test_add_without_an_empty(rig):
    objects = set(bpy.data.objects)
    bpy.ops.ccd_rig.constraint_add(target_empty=False, chain_length=2)
    (row,) = rig.ccd_rig.constraints
    assert (row.target, row.chain_length) == (None, 2)
    assert set(bpy.data.objects) == objects


def test_add_takes_the_other_selected_bone_as_target(ext):
    rig = rigs.armature(
        [
            rigs.B("upper", (0, 0, 0), (0, 0, 1)),
            rigs.B("hand", (0, 0, 1), (0, 0, 2), parent="upper"),
            rigs.B("control", (1, 0, 1), (1, 0, 2)),
        ]
    )
    select(ext, rig, "control", "hand")
    bpy.ops.ccd_rig.constraint_add(selected="TARGET")
    (row,) = rig.ccd_rig.constraints
    assert (row.tip, row.target, row.target_bone) == ("hand", rig, "control")
    assert len(bpy.data.objects) == 1


def test_add_takes_a_bone_of_another_armature(channels):
    other, rig = rigs.chain(2, name="Other"), rigs.chain(3)
    other.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    for each, bones in ((other, {"bone_1"}), (rig, {"bone_2"})):
        for bone in each.pose.bones:
            channels.select_bone(bone, bone.name in bones)
    rig.data.bones.active = rig.data.bones["bone_2"]
    assert bpy.context.object == rig
    bpy.ops.ccd_rig.constraint_add()
    (row,) = rig.ccd_rig.constraints
    assert (row.tip, row.target, row.target_bone) == ("bone_2", other, "bone_1")


def test_add_takes_the_other_selected_object(ext, rig):
    bpy.ops.object.mode_set(mode="OBJECT")
    ball = rigs.empty("Ball")
    rigs.activate(rig)
    ball.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.ccd_rig.constraint_add()
    (row,) = rig.ccd_rig.constraints
    assert (row.target, row.target_bone) == (ball, "")


def test_add_refuses_a_target_in_the_chain_itself(ext, rig):
    select(ext, rig, "bone_0", "bone_2")
    fails(bpy.ops.ccd_rig.constraint_add, "'bone_0' moves with the chain of 'bone_2'", selected="TARGET")
    assert listed() == []
    select(ext, rig, "bone_0", "bone_2")
    bpy.ops.ccd_rig.constraint_add(chain_length=1, selected="TARGET")  # bone_0 is above a chain of one bone
    assert rig.ccd_rig.constraints[0].target_bone == "bone_0"


def test_add_refuses_a_target_that_hangs_on_the_chain(ext, rig):
    select(ext, rig, "bone_2", "bone_1")
    fails(bpy.ops.ccd_rig.constraint_add, "'bone_2' moves with the chain of 'bone_1'", selected="TARGET")


def test_add_refuses_several_targets(ext, rig):
    select(ext, rig, "bone_0", "bone_1", "bone_2")
    words = "More than one target is selected ('bone_0', 'bone_1')"
    fails(bpy.ops.ccd_rig.constraint_add, words, selected="TARGET")
    assert listed() == []


def test_two_constraints_on_one_bone_have_two_names(rig):
    bpy.ops.ccd_rig.constraint_add()
    bpy.ops.ccd_rig.constraint_add()
    assert listed() == ["bone_2", "bone_2.001"]
    assert rig.ccd_rig.active_index == 1
    assert len({row.target.name for row in rig.ccd_rig.constraints}) == 2


# The list -------------------------------------------------------------------------------------------------


def test_remove_and_move(rig):
    for name in ("A", "B", "C"):
        add(rig, name=name)
    bpy.ops.ccd_rig.constraint_move(direction="UP")
    assert (listed(), rig.ccd_rig.active_index) == (["A", "C", "B"], 1)
    bpy.ops.ccd_rig.constraint_move(direction="UP")
    assert bpy.ops.ccd_rig.constraint_move(direction="UP") == {"CANCELLED"}  # at the top already
    assert (listed(), rig.ccd_rig.active_index) == (["C", "A", "B"], 0)
    bpy.ops.ccd_rig.constraint_move(direction="DOWN")
    assert (listed(), rig.ccd_rig.active_index) == (["A", "C", "B"], 1)
    bpy.ops.ccd_rig.constraint_remove()
    assert (listed(), rig.ccd_rig.active_index) == (["A", "B"], 1)
    bpy.ops.ccd_rig.constraint_remove()
    bpy.ops.ccd_rig.constraint_remove()
    assert (listed(), rig.ccd_rig.active_index) == ([], 0)
    assert "Target bone_2" in bpy.data.objects  # targets stay


# Solving --------------------------------------------------------------------------------------------------


def test_solve_reaches_and_says_so(rig, capfd):
    row = add(rig)
    assert (tail() - row.target.location).length > 0.5
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    assert (tail() - row.target.location).length < SOLVE
    assert rig.animation_data is None
    assert "Reached. " in capfd.readouterr().out


def test_solve_says_that_a_target_is_too_far(rig, capfd):
    add(rig, location=(0.0, 5.0, 0.0))
    bpy.ops.ccd_rig.solve()
    words = capfd.readouterr().out
    assert "Not reached: out of reach" in words
    assert "2 m off" in words
    assert "bone_2" in words


def test_solve_reports_world_metres(rig, capfd):
    rig.scale = (2.0, 2.0, 2.0)
    add(rig, location=(0.0, 10.0, 0.0))
    bpy.ops.ccd_rig.solve()
    assert "4 m off" in capfd.readouterr().out


def test_solve_only_the_active_constraint(ext, rig):
    select(ext, rig, "bone_0")
    add(rig, location=(0.0, 1.0, 0.0), name="Shoulder")
    select(ext, rig, "bone_2")
    row = add(rig, chain_length=2)
    bpy.ops.ccd_rig.solve(only_active=True)
    assert (tail() - row.target.location).length < SOLVE
    assert pose()[0] == (1.0, 0.0, 0.0, 0.0)


def test_solve_takes_the_armatures_settings_unless_told_otherwise(rig):
    row = add(rig, location=(1.5, 0.5, 1.0))
    rig.ccd_rig.solver.max_iterations = 1
    rig.ccd_rig.solver.step_fraction = 0.1
    bpy.ops.ccd_rig.solve()
    assert (tail() - row.target.location).length > 0.01
    bpy.ops.ccd_rig.solve(max_iterations=300, step_fraction=1.0)
    assert (tail() - row.target.location).length < SOLVE
    assert rig.ccd_rig.solver.max_iterations == 1


def test_solve_keeps_limits(rig):
    rig.pose.bones["bone_1"].ccd_rig.limit.kind = "HINGE"
    rig.pose.bones["bone_1"].ccd_rig.limit.hinge_lower = 0.5
    rig.pose.bones["bone_1"].ccd_rig.limit.hinge_upper = 1.0
    add(rig)
    bpy.ops.ccd_rig.solve()
    turned = rig.pose.bones["bone_1"].rotation_quaternion.to_axis_angle()
    assert turned[1] == pytest.approx(0.5, abs=FLOAT32) or 0.5 <= turned[1] <= 1.0 + FLOAT32
    assert abs(turned[0].x) == pytest.approx(1.0, abs=FLOAT32)


# Baking ---------------------------------------------------------------------------------------------------


@pytest.fixture
def moving(rig):
    return with_moving_target(rig)


def worst(rig, frames):
    found = 0.0
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        rigs.update()
        target = rig.ccd_rig.constraints[0].target
        found = max(found, (tail() - target.matrix_world.translation).length)
    return found


def test_bake_takes_the_scenes_range_and_reports(ext, moving, capfd):
    assert worst(moving, range(1, 21)) > 0.5
    assert bpy.ops.ccd_rig.bake() == {"FINISHED"}
    assert frames_with_keys(ext, moving) == list(range(1, 21))
    assert worst(moving, range(1, 21)) < SOLVE
    report = moving.ccd_rig.report
    assert "20 of 20 frames reached" in report.words
    assert report.words in capfd.readouterr().out
    assert (report.unsolved, report.worst_constraint) == (0, "bone_2")
    assert 1 <= report.worst_frame <= 20


@pytest.mark.parametrize("label", ["Bake to Action", "Walk Along"])
def test_a_command_that_runs_on_speaks_of_itself(ext, label):
    bake, progress = ext.module("operators.bake"), ext.module("ccd_rig.blender.bake.progress")
    told, shown = [], []
    command = SimpleNamespace(bl_label=label, cancel=lambda context: None)
    command.tell = lambda level, words: told.append(words)
    assert bake.ModalCommand.modal(command, None, SimpleNamespace(type="ESC", value="PRESS")) == {"CANCELLED"}
    assert told == [f"{label} cancelled: nothing was changed"]
    manager, workspace = SimpleNamespace(), SimpleNamespace(status_text_set=shown.append)
    manager.progress_update = lambda percent: None
    run = bake._Run(itertools.repeat(progress.Progress(7, 3, 10)))
    run.advance_slice(SimpleNamespace(window_manager=manager, workspace=workspace), label)
    row = SimpleNamespace(words=[], progress=lambda **options: None)
    row.row, row.label = lambda: row, lambda text, translate: row.words.append(text)
    shown[0](SimpleNamespace(layout=row), None)
    assert row.words[0].startswith(f"{label}, frame 7: 3 of 10 solved")


def test_bake_takes_the_preview_range(ext, moving):
    scene = bpy.context.scene
    scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end = True, 5, 9
    bpy.ops.ccd_rig.bake(smoothness=0.0)
    assert frames_with_keys(ext, moving) == [5, 6, 7, 8, 9]


def test_bake_options(ext, moving):
    bake = partial(bpy.ops.ccd_rig.bake, smoothness=0.0)  # smoothing takes most of a bake
    bake(frame_start=2, frame_end=12, step=4, keys="SOLVED_FRAMES")
    assert frames_with_keys(ext, moving) == [2, 6, 10, 12]
    first = moving.animation_data.action
    bake(frame_start=2, frame_end=12, step=4, keys="EVERY_FRAME")
    assert frames_with_keys(ext, moving) == list(range(2, 13))
    assert moving.animation_data.action == first  # a bake overwrites what a bake has made
    bake(frame_start=2, frame_end=12, destination="NEW_ACTION")
    second = moving.animation_data.action
    assert first != second
    assert first.use_fake_user
    bake(frame_start=2, frame_end=14, destination="CURRENT_ACTION")
    assert moving.animation_data.action == second
    assert frames_with_keys(ext, moving) == list(range(2, 15))


def test_bake_only_selected(ext, moving):
    moving.ccd_rig.constraints[0].chain_length = 2
    select(ext, moving, "bone_0")
    fails(bpy.ops.ccd_rig.bake, "No constraint's chain has a selected bone", only_selected=True)
    assert moving.animation_data is None
    select(ext, moving, "bone_1")
    assert bpy.ops.ccd_rig.bake(only_selected=True, smoothness=0.0) == {"FINISHED"}
    assert frames_with_keys(ext, moving) == list(range(1, 21))


def test_invoked_in_background_bake_runs_straight_through(ext, moving):
    if not bpy.app.background:
        return  # in a window it goes on by itself: tests/window looks at that
    assert bpy.ops.ccd_rig.bake("INVOKE_DEFAULT", smoothness=0.0) == {"FINISHED"}
    assert frames_with_keys(ext, moving) == list(range(1, 21))


def test_bake_names_what_will_override_its_keys(moving, capfd):
    moving.pose.bones["bone_1"].constraints.new("LIMIT_ROTATION")
    bpy.ops.ccd_rig.bake(smoothness=0.0)
    words = capfd.readouterr().out
    assert (
        "Bone 'bone_1': Blender's constraint 'Limit Rotation' acts on top of the solved pose: mute it"
        in words
    )
    assert "frames reached" in words


def test_bake_refuses_an_empty_range(moving):
    fails(bpy.ops.ccd_rig.bake, "20", frame_start=20, frame_end=3)
    assert moving.animation_data is None
    assert moving.ccd_rig.report.words == ""


def test_go_to_frame(moving):
    moving.ccd_rig.constraints[0].target.location = (9.0, 9.0, 9.0)
    moving.ccd_rig.constraints[0].target.keyframe_insert("location", frame=20)
    select_index = moving.ccd_rig
    bpy.ops.ccd_rig.bake()
    bpy.ops.ccd_rig.constraint_add()
    assert select_index.active_index == 1
    bpy.context.scene.frame_set(3)
    bpy.ops.ccd_rig.go_to_frame()
    assert bpy.context.scene.frame_current == 20
    assert select_index.active_index == 0


def test_bake_that_does_not_play_as_baked_ends_with_a_warning(ext, moving, capfd):
    """A constraint of the user bends the chain after the bake, so keys are right and the hand is not."""
    limit = moving.pose.bones["bone_1"].constraints.new("LIMIT_ROTATION")
    limit.use_limit_x = limit.use_limit_y = limit.use_limit_z = True
    limit.owner_space = "LOCAL"
    moving.ccd_rig.bake.smoothness = 0.0
    assert bpy.ops.ccd_rig.bake(smoothness=0.0) == {"FINISHED"}
    report = moving.ccd_rig.report
    assert (report.unsolved, report.mismatches) == (0, 1)
    last = [line for line in capfd.readouterr().out.splitlines() if report.words in line]
    assert [line.partition(":")[0] for line in last] == ["Warning"]
    assert bpy.ops.ccd_rig.bake_all() == {"FINISHED"}
    assert "look at the reports of these: Rig" in capfd.readouterr().out


def test_what_a_closed_form_misses_is_no_other_start(ext, capfd):
    """Limits of 0.6 radians keep the triangles of four bones off a target within their reach."""
    rig = rigs.chain(4)
    for bone in rig.pose.bones:
        bone.ccd_rig.limit.kind = "HINGE"
        bone.ccd_rig.limit.hinge_lower, bone.ccd_rig.limit.hinge_upper = -0.6, 0.6
    rigs.reach(rig, "bone_3", rigs.empty("Goal", (1.0, 0.4, 1.9)), method="TRIANGLE")
    select(ext, rig, "bone_3")
    rigs.update()
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    words = capfd.readouterr().out
    assert "Not reached: its method turns each bone once. Loop may come nearer. " in words
    assert "another start" not in words


def test_errors_of_the_core_speak_of_bones(ext):
    """A comfort region that is wider than its limit."""
    rig = rigs.chain(2)
    bone = rig.pose.bones["bone_1"].ccd_rig
    bone.limit.kind = bone.comfort.region.kind = "CONE"
    bone.limit.cone_radius, bone.comfort.region.cone_radius = 0.25, 1.0
    rigs.reach(rig, "bone_1", rigs.empty("Goal", (1.0, 0.0, 1.0)))
    select(ext, rig, "bone_1")
    fails(bpy.ops.ccd_rig.solve, "Bone 'bone_1': the comfort region must lie inside the limit")
