"""What is said about a set-up: each problem by name, with what to do, and nothing where nothing is wrong."""

from __future__ import annotations

import sys

import bpy
import pytest
import rigs
import spoiled_rigs
import spoiled_targets
from rigs import setting


@pytest.fixture
def rig(rows):
    """A chain of four bones; "Hand" lets the last but one reach for "Goal"."""
    made = rigs.chain(4)
    rows.add(made, "Hand", "bone_2").target = rigs.empty("Goal", (1.0, 0.5, 2.0))
    rigs.update()
    return made


@pytest.fixture
def found(checks, rig):
    """Call it for (severity, where, message) of each problem."""

    def problems(*names):
        rigs.update()
        return [(p.severity, p.where, p.message) for p in checks.problems(rig, bpy.context.scene, names)]

    return problems


def one(problems, severity, where, *words):
    """There is exactly one problem, and it says these words."""
    assert len(problems) == 1, problems
    assert problems[0][:2] == (severity, where)
    for word in words:
        assert word in problems[0][2]


def test_a_sound_set_up_has_no_problem(checks, rig, found):
    assert found() == []
    assert [row.name for row in checks.result_of(checks.require(rig, bpy.context.scene)).constraints] == [
        "Hand"
    ]


def test_a_chain_may_be_longer_than_there_are_parents(rig, found):
    rig.ccd_rig.constraints[0].chain_length = 99
    assert found() == []


def test_no_armature(ext, checks):
    scene = bpy.context.scene
    assert "No armature" in checks.problems(None, scene)[0].message
    thing = rigs.empty("Thing")
    assert "'Thing' is not an armature" in checks.problems(thing, scene)[0].message
    with pytest.raises(ext.core.RigError, match="No armature"):
        checks.result_of(checks.require(thing, scene))


def test_no_constraint(checks):
    bare = rigs.chain(2)
    (problem,) = checks.problems(bare, bpy.context.scene)
    assert (problem.severity, problem.where) == ("ERROR", "Rig")
    assert "has no CCD constraint" in problem.message


def test_names(ext, checks, rows, rig, found):
    rows.add(rig, "Foot", "bone_3").target = rigs.empty("Floor")
    one(found("Hant"), "ERROR", "Hant", "no constraint 'Hant'", "Did you mean 'Hand'?")
    rig.ccd_rig.constraints["Foot"].enabled = False
    assert found() == found("Hand") == []
    one(found("Foot"), "ERROR", "Foot", "is disabled: enable it")
    rig.ccd_rig.constraints["Hand"].enabled = False
    one(found(), "ERROR", "Rig", "are disabled: enable one")
    rig.ccd_rig.constraints["Foot"].enabled = True
    assert [row.name for row in checks.result_of(checks.require(rig, bpy.context.scene)).constraints] == [
        "Foot"
    ]
    with pytest.raises(ext.core.RigError, match="'Hand' is disabled"):
        checks.result_of(checks.require(rig, bpy.context.scene, ("Hand",)))


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (spoiled_rigs.edit_mode, "Rig"),
        (spoiled_rigs.in_no_scene, "Rig"),
        (setting("scale", y=0.0), "Rig"),
        (spoiled_targets.target_deleted, "Hand"),
        (setting("ccd_rig.constraints[0]", target_bone="bone_1"), "Hand"),
        (spoiled_targets.target_is_the_armature, "Hand"),
        (spoiled_targets.target_bone_below_the_chain, "Hand"),
        (spoiled_targets.target_follows_a_bone, "Hand"),
    ],
)
def test_an_error_is_told_once_at_its_place(rig, found, spoil, where):
    """Its words are in test_bad_input.py."""
    rigs.activate(rig)
    spoil(rig)
    one(found(), "ERROR", where)


@pytest.mark.parametrize("name", ["bone_2_renamed", "Bone_2", "bone2"])
def test_a_renamed_bone_is_suggested(rig, found, name):
    rigs.forget_names(rig)
    rig.data.bones["bone_2"].name = name
    one(found(), "ERROR", "Hand", "bone 'bone_2' is not in armature 'Rig'", f"'{name}'")


@pytest.mark.parametrize(
    ("lost", "there", "meant"),
    [
        ("hand.L", ["hand.R", "Hand_Left", "foot.L"], ["Hand_Left"]),
        ("mixamorig:LeftFoot", ["RightFoot", "foot_l", "LeftForeArm"], ["foot_l"]),
        ("foot.R", ["foot.L", "hand.R", "spine"], []),
        ("tail_3", ["tail_03", "tail_04", "spine_3"], ["tail_03", "tail_04"]),
    ],
)
def test_suggestions_keep_to_side_and_part(ext, lost, there, meant):
    words = ext.module("ccd_rig.blender.properties.problems").suggestion(lost, there)
    assert [name for name in there if f"'{name}'" in words] == meant
    assert ("choose another one" in words) == (not meant)


def test_a_deleted_bone(rig, found):
    rigs.forget_names(rig)
    with rigs.edit_bones(rig) as bones:
        for bone in list(bones):
            bone.name = f"x{bone.name[-1]}"
    one(found(), "ERROR", "Hand", "renamed or deleted?", "choose another one")


def test_a_bone_above_the_chain_as_target_is_fine(rig, found):
    row = rig.ccd_rig.constraints[0]
    row.target, row.target_bone, row.chain_length = rig, "bone_0", 2
    assert found() == []


def test_influence_zero_is_a_warning(checks, rig, found):
    rig.ccd_rig.constraints[0].influence = 0.0
    one(found(), "WARNING", "Hand", "influence is 0")
    assert checks.result_of(checks.require(rig, bpy.context.scene))


def test_influence_zero_at_this_frame_is_fine_where_it_is_animated(rig, found):
    row = rig.ccd_rig.constraints[0]
    for frame, value in ((1, 0.0), (10, 1.0)):
        row.influence = value
        row.keyframe_insert("influence", frame=frame)
    row.influence = 0.0
    assert found() == []
    row.keyframe_delete("influence", frame=1)
    row.keyframe_delete("influence", frame=10)
    one(found(), "WARNING", "Hand", "influence is 0")
    row.driver_add("influence").driver.expression = "0"
    assert found() == []


def test_two_constraints_on_one_end(rows, rig, found):
    other = rows.add(rig, "Also", "bone_2")
    other.target = rigs.empty("Other", (0.0, 1.0, 1.0))
    one(found(), "WARNING", "Also", "'Hand' and 'Also' both pull at the tail of bone 'bone_2'")
    other.use_tail = False
    assert found() == []


def test_blenders_own_constraint_on_the_chain(rig, found):
    own = rig.pose.bones["bone_1"].constraints.new("LIMIT_ROTATION")
    own.name = "Knee"
    one(found(), "WARNING", "bone_1", "'bone_1'", "'Knee'", "mute it")
    own.mute = True
    assert found() == []
    rig.pose.bones["bone_3"].constraints.new("LIMIT_ROTATION")  # beyond the chain
    assert found() == []


def test_blenders_ik_beyond_the_chain_turns_it(rig, found):
    own = rig.pose.bones["bone_3"].constraints.new("IK")
    own.target = bpy.data.objects["Goal"]
    one(found(), "WARNING", "bone_3", "constraint 'IK' turns bone 'bone_2'")
    own.chain_count = 1  # bone_3 alone
    assert found() == []


@pytest.fixture
def balanced(ext):
    return rigs.balanced()


@pytest.mark.parametrize(
    ("bone", "kind", "words"),
    [
        ("side_2", "COPY_ROTATION", "constraint 'Copy Rotation' puts its mass"),
        ("side_0", "COPY_ROTATION", "constraint 'Copy Rotation' of bone 'side_0' brings its mass"),
        ("side_3", "IK", "constraint 'IK' of bone 'side_3' brings its mass"),
        ("side_1", "IK", "constraint 'IK' of bone 'side_1' brings its mass"),
    ],
)
def test_what_moves_a_mass_unseen_is_told(checks, balanced, bone, kind, words):
    other = on_top(balanced, bone, kind)
    problems = [(p.severity, p.where, p.message) for p in checks.problems(balanced, bpy.context.scene)]
    one(problems, "WARNING", "side_2", words, "Bone 'side_2'", "keys first")
    other.mute = True
    rigs.update()
    assert not checks.problems(balanced, bpy.context.scene)


def test_what_moves_no_mass_is_no_matter_of_balance(checks, balanced):
    on_top(balanced, "side_3", "COPY_ROTATION")
    assert not checks.problems(balanced, bpy.context.scene)


def on_top(rig, bone, kind):
    """A constraint of Blender's that brings a bone, or it and the bone above it, from where they are."""
    constraint = rig.pose.bones[bone].constraints.new(kind)
    constraint.target = rigs.empty("Other", (3.0, 0.0, 1.0))
    constraint.target.rotation_euler = (1.0, 0.5, 0.0)
    if kind == "IK":
        constraint.chain_count = 2
    rigs.update()
    return constraint


def test_a_driver_on_a_rotation(rig, found):
    rig.pose.bones["bone_1"].driver_add("rotation_quaternion", 1)
    (problem,) = found()
    assert "'bone_1'" in problem[2]
    assert "driver" in problem[2]


def test_rest_outside_its_own_limit(rig, found):
    limit = rig.pose.bones["bone_1"].ccd_rig.limit
    limit.kind, limit.hinge_lower, limit.hinge_upper = "HINGE", 0.1, 2.0
    one(found(), "WARNING", "bone_1", "rest pose is outside its limit")
    limit.hinge_lower = 0.0
    assert found() == []


@pytest.mark.parametrize("stiff", [False, True])
def test_a_bone_that_cannot_turn_outside_its_limit(rig, found, stiff):
    bone = rig.pose.bones["bone_1"]
    limit = bone.ccd_rig.limit
    limit.kind, limit.axis, limit.hinge_lower, limit.hinge_upper = "HINGE", (1, 0, 0), -0.5, 0.5
    bone.rotation_mode, bone.rotation_euler = "XYZ", (0.8, 0.0, 0.0)
    if stiff:
        bone.ccd_rig.stiffness = 1.0
    else:
        bone.lock_rotation = (True,) * 3
    rigs.update()
    one(found(), "WARNING", "bone_1", "cannot turn", "outside its limit")
    bone.rotation_euler = (0.4, 0.0, 0.0)
    rigs.update()
    assert found() == []


def test_a_contradiction_is_an_error_and_the_only_one(rig, found):
    limit = rig.pose.bones["bone_1"].ccd_rig.limit
    limit.kind, limit.hinge_lower, limit.hinge_upper = "HINGE", 2.0, 1.0
    one(found(), "ERROR", "Rig", "'bone_1'", "swap them")
    rig.ccd_rig.constraints[0].chain_length = 1  # bone_1 is no longer in the chain
    assert found() == []


def test_a_chain_that_cannot_turn(rig, found):
    for bone in rig.pose.bones:
        bone.ccd_rig.stiffness = 1.0
    one(found(), "WARNING", "Hand", "no bone of its chain can turn")
    rig.pose.bones["bone_0"].ccd_rig.stiffness = 0.5
    assert found() == []


def test_a_linked_action_is_a_warning(ext, checks, rig, found, tmp_path):
    rig.pose.bones["bone_1"].keyframe_insert("location")
    action = rig.animation_data.action
    bpy.data.libraries.write(str(tmp_path / "action.blend"), {action})
    with bpy.data.libraries.load(str(tmp_path / "action.blend"), link=True) as (_, wanted):
        wanted.actions = [action.name]
    rig.animation_data.action = wanted.actions[0]
    one(found(), "WARNING", "Rig", "is linked from", "New Action")
    destination = ext.module("ccd_rig.blender.keys.writer").Destination
    assert checks.problems(rig, bpy.context.scene, (), destination.NEW_ACTION) == ()
    (problem,) = checks.problems(rig, bpy.context.scene, (), destination.CURRENT_ACTION)
    assert problem.severity == "ERROR"


def test_names_that_went_past_the_properties(rows, rig, found):
    """A script may write a file in which two rows have one name: here one is set without its update."""
    rows.add(rig, "Other", "bone_3").target = bpy.data.objects["Goal"]
    rig.ccd_rig.constraints[1]["name"] = "Hand"
    if (
        rig.ccd_rig.constraints[1].name == "Other"
    ):  # since 5.0 the brackets no longer reach registered properties
        rig.ccd_rig.constraints[1].bl_system_properties_get()["name"] = "Hand"
    one(found(), "ERROR", "Hand", "Two constraints are called 'Hand'")


def test_every_message_says_what_to_do(rig, found, rows):
    rows.add(rig, "No target", "bone_9")
    for _, where, message in found():
        assert ":" in message or "Did you mean" in message
        assert where in message


def many_limbs(count):
    """A spine of so many bones, each with a limb of three that reaches; all may go along with the body."""
    bones, above = [rigs.B("root", (0, 0, 0), (0, 0.2, 0))], "root"
    for i in range(count):
        bones.append(rigs.B(f"spine_{i}", (0, 0.2 * i, 1), (0, 0.2 * i + 0.2, 1), above))
        above = f"spine_{i}"
        for k, name in enumerate("abc"):
            ends = [(0.3 * j, 0.2 * i, 1 - 0.2 * j) for j in (k, k + 1)]
            carrier = f"{'abc'[k - 1]}_{i}" if k else above
            bones.append(rigs.B(f"{name}_{i}", *ends, carrier, connect=k > 0))
    rig = rigs.armature(bones)
    for i in range(count):
        rigs.reach(rig, f"c_{i}", rigs.empty(f"Goal {i}", (0.8, 0.2 * i, 0.3)), f"Reach {i}", chain_length=3)
    rig.ccd_rig.body_helps = True
    rigs.update()
    return rig


def test_what_is_called_grows_hardly_faster_than_the_rig(checks):
    """The check is made before each bake, and in Live after each edit."""
    counts = []
    for count in (8, 32):
        rig, calls = many_limbs(count), [0]

        def count_call(_frame, event, _argument, calls=calls):
            calls[0] += event == "call"

        sys.setprofile(count_call)
        try:
            ready = checks.result_of(checks.require(rig, bpy.context.scene))
        finally:
            sys.setprofile(None)
        assert [row.body_length for row in ready.constraints] == [4 + k for k in range(count)]
        counts.append(calls[0])
        bpy.data.objects.remove(rig)
    assert counts[1] < 4.0**1.2 * counts[0]


def test_locked_bones_of_a_body_that_constraints_move_are_told_in_one_line(ext, checks):
    """As those of Rigify's mechanism: each was told by itself to act on top of a pose that nothing solves."""
    rig = rigs.metarig("human")
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up() == {"FINISHED"}
    rigs.update()
    assert checks.problems(rig, bpy.context.scene) == ()
    for side in "LR":
        bone = rig.pose.bones[f"shoulder.{side}"]
        bone.lock_rotation, bone.lock_rotation_w, bone.lock_location = (True,) * 3, True, (True,) * 3
        copied = bone.constraints.new("COPY_SCALE")
        copied.target, copied.subtarget = rig, "spine"
    rigs.update()
    assert checks.problems(rig, bpy.context.scene) == (), "they bring no bone elsewhere than its channels do"
    for side in "LR":
        bone = rig.pose.bones[f"shoulder.{side}"]
        turned = bone.constraints.new("COPY_ROTATION")
        turned.target, turned.subtarget = rig, "spine"
    rigs.update()
    problems = [(p.severity, p.where, p.message) for p in checks.problems(rig, bpy.context.scene)]
    one(problems, "WARNING", "shoulder.L", "Bones 'shoulder.L', 'shoulder.R': the solve does not see where")
