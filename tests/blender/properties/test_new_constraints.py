"""What a new constraint and a preset set, and advice on bones that a solve leaves alone."""

from __future__ import annotations

import dataclasses
import math

import bpy
import pytest
import rigs
from mathutils import Vector
from operator_calls import select
from rigs import B


def game_rig():
    """As game engines have it: a root on the ground that is not joined to the hips."""
    bones = rigs.trunk(chest=1.5)
    for side, x in (("L", 1), ("R", -1)):
        bones += [
            B(f"thigh.{side}", (0.1 * x, 0, 1.0), (0.1 * x, -0.03, 0.5), "hips"),
            B(f"twist.{side}", (0.1 * x, 0, 0.8), (0.1 * x, -0.03, 0.6), f"thigh.{side}"),
            B(f"shin.{side}", (0.1 * x, -0.03, 0.5), (0.1 * x, 0, 0.1), f"thigh.{side}", connect=True),
            B(f"foot.{side}", (0.1 * x, 0, 0.1), (0.1 * x, -0.1, 0), f"shin.{side}", connect=True),
            B(f"arm.{side}", (0.1 * x, 0, 1.5), (0.4 * x, 0, 1.5), "spine"),
            B(f"hand.{side}", (0.4 * x, 0, 1.5), (0.6 * x, 0, 1.5), f"arm.{side}", connect=True),
        ]
    return rigs.armature(bones)


def add(rig, bone, **options):
    rigs.activate(rig)
    if rig.mode != "POSE":
        bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones[bone]
    assert bpy.ops.ccd_rig.constraint_add(**options) == {"FINISHED"}
    return rig.ccd_rig.constraints[-1]


@pytest.mark.parametrize(
    ("bone", "kind", "length"),
    [
        ("foot.L", "REACH", 3),  # foot, shin, thigh: the hips carry the rest
        ("hand.R", "REACH", 2),
        ("head", "REACH", 2),  # the spine carries the arms, but a head alone could not reach
        ("arm.L", "REACH", 1),  # goes on in the hand
        ("hips", "REACH", 1),  # the root stands apart
        ("foot.L", "PLANT", 4),  # up to the hips
        ("hips", "PLANT", 0),
        ("foot.L", "BALANCE", 0),
    ],
)
def test_a_new_chain_ends_where_the_limb_does(bone, kind, length):
    assert add(game_rig(), bone, kind=kind).chain_length == length


def test_a_chain_that_is_asked_for_is_kept():
    assert add(game_rig(), "foot.L", chain_length=0).chain_length == 0
    assert add(rigs.chain(4), "bone_3").chain_length == 0  # a tail goes up to its root


def in_pose_mode(ext, rig, *bones):
    """Pose Mode with these bones selected, the last one active."""
    rigs.activate(rig)
    if rig.mode != "POSE":
        bpy.ops.object.mode_set(mode="POSE")
    select = ext.module("ccd_rig.blender.keys.channels").select_bone
    for bone in rig.pose.bones:
        select(bone, bone.name in bones)
    rig.data.bones.active = rig.data.bones[bones[-1]]


def test_each_selected_bone_reaches_for_a_target_of_its_own(ext):
    """One foot does not reach for the other."""
    rig = game_rig()
    in_pose_mode(ext, rig, "foot.L", "hand.R", "foot.R")
    assert bpy.ops.ccd_rig.constraint_add() == {"FINISHED"}
    rows = rig.ccd_rig.constraints
    assert {row.tip: row.chain_length for row in rows} == {"hand.R": 2, "foot.L": 3, "foot.R": 3}
    assert rows[rig.ccd_rig.active_index].tip == "foot.R"
    for row in rows:
        bone = rig.pose.bones[row.tip]
        assert row.use_tail == (row.tip == "hand.R"), "feet reach with their ankles"
        end = rig.matrix_world @ (bone.tail if row.use_tail else bone.head)
        assert row.target.type == "EMPTY" and (row.target.location - end).length < 1e-5
        assert row.target.name == f"Target {row.tip}"
    assert len({row.target for row in rows}) == 3
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}


@pytest.mark.parametrize(
    ("kind", "tip", "use_tail"),
    [
        ("human", "foot.L", False),
        ("human", "hand.L", True),
        ("human", "toe.L", True),
        ("human", "tongue", True),
    ],
)
def test_ankles_are_placed_and_hands_reach_with_their_ends(ext, kind, tip, use_tail):
    rig = rigs.metarig(kind)
    in_pose_mode(ext, rig, tip)
    assert bpy.ops.ccd_rig.constraint_add() == {"FINISHED"}
    assert rig.ccd_rig.constraints[0].use_tail is use_tail


def test_the_knee_of_a_new_constraint_bends_forwards(ext):
    """The target of a foot comes nearer to the hip by a fifth of the leg."""
    rig = rigs.metarig("human")
    in_pose_mode(ext, rig, "foot.R")
    assert bpy.ops.ccd_rig.constraint_add() == {"FINISHED"}
    target = rig.ccd_rig.constraints[0].target
    target.location.z += 0.2
    rigs.update()
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    thigh, shin, foot = (rig.pose.bones[f"{name}.R"].head for name in ("thigh", "shin", "foot"))
    along = (foot - thigh).normalized()
    off = shin - thigh - along * (shin - thigh).dot(along)
    assert off.y < -0.15 and abs(off.x) < 0.05  # a metarig looks along -Y


def test_of_a_limb_that_is_selected_as_a_whole_the_end_reaches(ext):
    rig = game_rig()
    in_pose_mode(ext, rig, "foot.L", "shin.L", "thigh.L")
    assert bpy.ops.ccd_rig.constraint_add() == {"FINISHED"}
    assert [row.tip for row in rig.ccd_rig.constraints] == ["foot.L"]


def test_a_chain_length_that_is_asked_for_is_that_of_all(ext):
    rig = game_rig()
    in_pose_mode(ext, rig, "foot.L", "hand.L")
    assert bpy.ops.ccd_rig.constraint_add(chain_length=2) == {"FINISHED"}
    assert [row.chain_length for row in rig.ccd_rig.constraints] == [2, 2]


def test_an_object_is_the_target_of_one_bone_alone(ext):
    rig = game_rig()
    ball = rigs.empty("Ball")
    in_pose_mode(ext, rig, "foot.L", "foot.R")
    ball.select_set(True)
    with pytest.raises(
        RuntimeError, match=r"'Ball' can be the target of one bone, not of 'foot\.L', 'foot\.R'"
    ):
        bpy.ops.ccd_rig.constraint_add()
    assert not rig.ccd_rig.constraints


@pytest.mark.parametrize(
    ("kind", "tip", "end", "count"),
    [
        ("bird", "Wing.002.L", "shoulder.L", 4),
        ("bird", "head", "spine.006", 4),
        ("horse", "head", "spine.006", 6),  # past the mane on each bone of the neck
        ("horse", "forefoot.L", "shoulder.L", 4),
        ("cat", "hand.L", "shoulder.L", 4),
        ("cat", "tail.004", "tail.001", 4),
        ("human", "f_index.03.L", "f_index.01.L", 3),
        ("human", "foot.L", "thigh.L", 3),
        ("human", "eye.L", "eye.L", 1),
    ],
)
def test_chains_of_animals_end_at_the_next_limb(rows, kind, tip, end, count):
    rig = rigs.metarig(kind)
    length = rows.limb_length(rig, tip)
    assert (length, rows.chain(rig, tip, length)[-1].name) == (count, end)


def test_a_clavicle_turns_less_than_its_arm(ext):
    """It was shrugged by 31 degrees for a target that the arm reaches alone."""
    rig = rigs.metarig("human")
    row = add(rig, "hand.L")
    names = ["hand.L", "forearm.L", "upper_arm.L", "shoulder.L"]
    assert row.chain_length == len(names)
    assert rig.pose.bones["shoulder.L"].ccd_rig.stiffness == 0.75
    assert not any(rig.pose.bones[name].ccd_rig.stiffness for name in names[:3])
    row.target.location += Vector((-0.1, -0.2, 0.5))
    rigs.update()
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}
    rigs.update()
    turns = [math.degrees(rig.pose.bones[name].matrix_basis.to_quaternion().angle) for name in names]
    assert turns[3] < 6.0 < 30.0 < min(turns[1:3])
    assert (rig.matrix_world @ rig.pose.bones["hand.L"].tail - row.target.location).length < 1e-3


def test_a_clavicle_keeps_the_stiffness_that_it_has(ext):
    rig = rigs.metarig("human")
    rig.pose.bones["shoulder.L"].ccd_rig.stiffness = 0.5
    add(rig, "hand.L")
    assert rig.pose.bones["shoulder.L"].ccd_rig.stiffness == 0.5
    bpy.ops.ccd_rig.constraint_remove()
    assert rig.pose.bones["shoulder.L"].ccd_rig.stiffness == 0.5


@pytest.mark.parametrize("command", ["constraint_remove", "constraints_remove"])
def test_the_stiffness_of_a_clavicle_goes_with_the_last_constraint_that_may_use_it(ext, capfd, command):
    """A thumb's constraint keeps it, since the body may help it. A value that the user gives later stays."""
    rig = rigs.metarig("human")
    shoulders = [rig.pose.bones[f"shoulder.{side}"].ccd_rig for side in "LR"]
    for side in "LR":
        select(ext, rig, f"hand.{side}")
        add(rig, f"hand.{side}")
    rigs.reach(rig, "thumb.03.L", rigs.empty("Thumb"))
    shoulders[1].stiffness = 0.25
    while len(rig.ccd_rig.constraints):
        assert [each.stiffness for each in shoulders] == [0.75, 0.25]
        rig.ccd_rig.active_index = 0
        assert getattr(bpy.ops.ccd_rig, command)() == {"FINISHED"}
    assert [each.stiffness for each in shoulders] == [0.0, 0.25]
    is_told = "Stiffness of 'shoulder.L' set back to 0" in capfd.readouterr().out
    assert is_told == (command == "constraint_remove")


@pytest.mark.parametrize(
    ("name", "length", "gap", "guessed"),
    [
        ("toe", 0.3, 0.0, False),  # as long as its parent, as in a tail of equal bones
        ("toe_end", 0.3, 0.0, True),
        ("Toe.Leaf.L", 0.3, 0.0, True),
        ("toe_end", 0.2, 0.0, False),  # somebody has given it a length
        ("joint_12", 0.3, 0.1, True),  # does not begin where its parent ends
        ("legend", 0.3, 0.0, False),
    ],
)
def test_an_end_with_a_guessed_tail_reaches_with_its_head(ext, name, length, gap, guessed):
    """As importers make it of a joint without children."""
    rig = rigs.armature(
        [
            B("hip", (0, 0, 1), (0, 0, 1.2)),
            B("thigh", (0, 0, 1), (0, -0.1, 0.6), "hip"),
            B("foot", (0, -0.1, 0.6), (0, -0.1, 0.3), "thigh", connect=True),
            B(name, (0, -0.1 - gap, 0.3), (0, -0.1 - gap, 0.3 - length), "foot"),
        ]
    )
    row = add(rig, name)
    assert (row.use_tail, row.chain_length) == (not guessed, 3)
    end = rig.pose.bones[name]
    assert (row.target.location - (end.head if guessed else end.tail)).length < 1e-6


def test_a_row_that_can_do_nothing_says_so(checks):
    row = add(game_rig(), "hand.L", chain_length=1)

    def words():
        found = checks.constraint_problems(row.id_data, row, bpy.context.scene)
        return [problem.message for problem in found if "turns about its own head" in problem.message]

    assert words() == []
    row.use_tail = False
    assert len(words()) == 1
    row.effector_offset = (0.0, 0.1, 0.0)
    assert words() == []
    row.effector_offset, row.chain_length = (0.0, 0.0, 0.0), 2
    assert words() == []


def test_a_planted_bone_needs_no_target():
    row = add(game_rig(), "foot.L", kind="PLANT")
    assert row.target is None
    assert bpy.ops.ccd_rig.solve() == {"FINISHED"}


@pytest.mark.parametrize("name", ["LIMB", "TAIL", "DEFAULT"])
def test_presets_are_the_core_s(ext, name):
    settings = ext.module("ccd_rig.settings")
    rig = rigs.chain(3)
    solver = rig.ccd_rig.solver
    solver.restarts, solver.step_feedback, solver.sweep = 3, 0.5, "BOUNCE_TIP"
    assert bpy.ops.ccd_rig.solver_preset(preset=name) == {"FINISHED"}
    properties = ext.module("ccd_rig.blender.properties.solver_settings")
    assert properties.present_preset(rig) == name
    found = properties.solver_settings(rig)
    for field in dataclasses.fields(found):
        wanted = getattr(settings.PRESETS[name], field.name)
        if field.name in settings.PRESET_FIELDS:
            assert getattr(found, field.name) == (
                pytest.approx(wanted, abs=1e-6) if isinstance(wanted, float) else wanted
            )
    assert found.restarts == 3  # what a preset is not about stays
    solver.step_fraction *= 0.999
    assert properties.present_preset(rig) == ""


def test_bones_that_stay_as_they_are_are_not_to_be_freed(checks):
    """Rigify's own bones are locked and follow by constraints, which must not be muted: the solve just does
    not see where they go."""
    rig = game_rig()
    row = rig.ccd_rig.constraints.add()
    row.name, row.tip, row.target, row.chain_length = "Hand", "hand.L", rigs.empty("Target"), 3
    turned = rigs.empty("Turned")
    turned.rotation_euler.x = 0.5
    for name in ("spine", "arm.L"):
        made = rig.pose.bones[name].constraints.new("COPY_ROTATION")
        made.target, made.name = turned, f"Follow {name}"
    rig.pose.bones["spine"].lock_rotation = (True, True, True)
    rigs.update()
    words = [problem.message for problem in checks.problems(rig, bpy.context.scene)]
    assert any("'Follow arm.L' acts on top" in each for each in words)
    (unseen,) = (each for each in words if "'Follow spine'" in each)
    assert "does not see" in unseen
    assert "mute" not in unseen


def added_beside(rig, *others):
    """A constraint for a foot, with other objects selected."""
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones["foot.L"]
    for other in others:
        other.select_set(True)
    assert bpy.ops.ccd_rig.constraint_add() == {"FINISHED"}
    return rig.ccd_rig.constraints[-1]


def skinned(thing, rig):
    thing.modifiers.new("Armature", "ARMATURE").object = rig


def parented(thing, rig):
    thing.parent, thing.parent_type, thing.parent_bone = rig, "BONE", "hips"


def below_one(thing, rig):
    thing.parent = rigs.empty("Carrier")
    thing.parent.constraints.new("CHILD_OF").target = rig


def on_the_skin(thing, rig):
    """As eyes on a body."""
    skin = bpy.data.objects.new("Skin", bpy.data.meshes.new("Skin"))
    bpy.context.collection.objects.link(skin)
    skinned(skin, rig)
    thing.parent = skin


def constrained(thing, rig):
    part = thing.constraints.new("ARMATURE").targets.new()
    part.target, part.subtarget = rig, "hips"


@pytest.mark.parametrize("bind", [skinned, parented, below_one, on_the_skin, constrained])
def test_what_follows_the_armature_is_no_target(bind):
    """As after an import, which leaves the skin selected."""
    rig = game_rig()
    body = bpy.data.objects.new("Body", bpy.data.meshes.new("Body"))
    bpy.context.collection.objects.link(body)
    bind(body, rig)
    target = added_beside(rig, body).target
    assert target not in (None, body)
    assert target.type == "EMPTY"


def test_an_armature_whose_bones_copy_the_rig_is_no_target():
    rig = game_rig()
    copy = rigs.chain(2, name="Deform")
    copy.pose.bones["bone_1"].constraints.new("COPY_TRANSFORMS").target = rig
    assert added_beside(rig, copy).target != copy


def test_the_skin_beside_a_target_is_not_in_its_way():
    rig = game_rig()
    body, ball = (bpy.data.objects.new(name, bpy.data.meshes.new(name)) for name in ("Body", "Ball"))
    for each in (body, ball):
        bpy.context.collection.objects.link(each)
    skinned(body, rig)
    assert added_beside(rig, body, ball).target == ball


def test_another_object_that_is_selected_is_the_target():
    rig = game_rig()
    ball = bpy.data.objects.new("Ball", bpy.data.meshes.new("Ball"))
    bpy.context.collection.objects.link(ball)
    assert added_beside(rig, ball).target == ball


@pytest.mark.parametrize("place", ["excluded", "another scene"])
def test_targets_are_in_the_view_layer_whatever_collections_the_rig_is_in(ext, place):
    """The rig's first collection is one that this view layer does not evaluate."""
    rig = rigs.chain(3)
    context = bpy.context
    context.scene.collection.objects.unlink(rig)
    names = {"excluded": "A backup", "another scene": "A char"}
    hidden, shown = bpy.data.collections.new(names[place]), bpy.data.collections.new("B char")
    scene = context.scene if place == "excluded" else bpy.data.scenes.new("Another")
    scene.collection.children.link(hidden)
    context.scene.collection.children.link(shown)
    for each in (hidden, shown):
        each.objects.link(rig)
    if place == "excluded":
        context.view_layer.layer_collection.children[hidden.name].exclude = True
    rigs.update()
    assert next(iter(rig.users_collection)) == hidden
    first = add(rig, "bone_2").target
    assert first.name in context.view_layer.objects
    assert first.users_collection[0].name in shown.children
    made = context.view_layer.layer_collection.children[shown.name].children[0]
    made.exclude = True  # by the user, later
    second = add(rig, "bone_1").target
    assert second.name in context.view_layer.objects
