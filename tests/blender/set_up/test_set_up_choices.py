"""What is chosen for the set-up of a figure: parts, limits, and limits from the motion that plays."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import creatures
import pytest
import rigs
from figures_set_up import FRAMES, bake, matrices, move, set_up
from mathutils import Matrix, Quaternion, Vector
from rigs import B


def test_what_is_chosen_is_made(ext):
    rig = rigs.metarig("basic_human")
    made = set_up(rig, feet=False, head=False, hips=False, poles=False)
    assert set(made) == {"hand.L", "hand.R"}
    assert not any(row.pole_target for row in made.values())
    more = set_up(rig, head=False)
    assert set(more) == {"hand.L", "hand.R", "foot.L", "foot.R", "spine"}, "what has a constraint keeps it"
    head = set_up(rig)["spine.006"]
    assert head.target.parent == more["spine"].target


@pytest.mark.parametrize(
    ("kind", "hinge", "beside"),
    [("basic_human", "forearm.L", "upper_arm.R"), ("basic_quadruped", "shin.L", "front_thigh.R")],
)
@pytest.mark.parametrize("ranges", ["LIMITS", "COMFORT"])
def test_limits_of_the_preset(ext, kind, hinge, beside, ranges):
    """Joints of chains get ranges where they have none; a limit that a bone has stays."""
    rig = rigs.metarig(kind)
    rig.pose.bones[beside].ccd_rig.limit.kind = "CONE"
    set_up(rig, ranges=ranges)
    joint, other = rig.pose.bones[hinge].ccd_rig, rig.pose.bones[beside].ccd_rig
    here, there = (joint.limit, joint.comfort.region)[:: 1 if ranges == "LIMITS" else -1]
    assert (here.kind, there.kind) == ("HINGE", "NONE")
    assert (other.limit.kind, other.comfort.region.kind) == ("CONE", "NONE")
    rest = matrices(rig)
    bake(rig)
    turned = [
        name
        for name, matrix in matrices(rig).items()
        if (matrix.translation - rest[name].translation).length > 0.01
    ]
    assert turned == [], "rest lies inside the limits"


def test_no_limits_unless_asked(ext):
    rig = rigs.metarig("basic_human")
    set_up(rig)
    joints = [bone.ccd_rig for bone in rig.pose.bones]
    assert {kind for each in joints for kind in (each.limit.kind, each.comfort.region.kind)} == {"NONE"}


@pytest.mark.parametrize(
    ("kind", "hinges"), [("basic_human", {"forearm", "shin"}), ("basic_quadruped", {"front_shin", "shin"})]
)
def test_knees_and_elbows_alone(ext, kind, hinges):
    rig = rigs.metarig(kind)
    set_up(rig, ranges="HINGES")
    limited = {bone.name for bone in rig.pose.bones if bone.ccd_rig.limit.kind != "NONE"}
    assert limited == {f"{name}.{side}" for name in hinges for side in "LR"}
    assert {bone.ccd_rig.comfort.region.kind for bone in rig.pose.bones} == {"NONE"}


def test_ranges_hold_the_motion_that_plays(ext):
    """A knee that is keyed past straight and to the side keeps its keys."""
    rig = rigs.metarig("basic_human")
    shin = rig.pose.bones["shin.L"]
    shin.rotation_mode = "QUATERNION"
    for frame, turn in ((1, Quaternion()), (5, Quaternion((1, 0, 0), -0.4) @ Quaternion((0, 0, 1), 0.2))):
        shin.rotation_quaternion = turn
        shin.keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES
    bpy.context.scene.frame_set(1)
    set_up(rig, ranges="LIMITS")
    limit_value = ext.module("ccd_rig.blender.properties.limits").limit_value
    violation = ext.module("ccd_rig.limits.shapes").violation
    assert violation(limit_value(shin.ccd_rig.limit), turn) < 1e-3
    assert violation(limit_value(shin.ccd_rig.limit), Quaternion((1, 0, 0), -1.0)) > 0.3
    other = rig.pose.bones["shin.R"].ccd_rig.limit
    assert other.kind == "HINGE" and other.hinge_lower > -0.2
    bake(rig)
    assert shin.rotation_quaternion.rotation_difference(turn).angle < 0.01


def test_a_paw_that_copies_a_rotation_is_no_hinge(ext):
    """It could not turn as its target does about one axis. So it is with legs without toes."""
    rig = rigs.metarig("basic_quadruped")
    with rigs.edit_bones(rig) as bones:
        for name in ("toe.L", "toe.R", "front_toe.L", "front_toe.R"):
            bones.remove(bones[name])
    made = set_up(rig, ranges="LIMITS")
    assert "foot.L" in made
    kinds = {name: rig.pose.bones[name].ccd_rig.limit.kind for name in ("foot.L", "front_foot.R", "shin.L")}
    assert kinds == {"foot.L": "ELLIPSE", "front_foot.R": "ELLIPSE", "shin.L": "HINGE"}


def test_pieces_of_a_limb_stay_in_line(ext):
    """A thigh of two bones has no joint in its middle."""
    bones = []
    for bone in rigs.biped():
        head, tail = Vector(bone.head), Vector(bone.tail)
        if bone.name.startswith("thigh"):
            middle, lower = 0.5 * (head + tail), bone.name.replace("thigh", "thigh_lower")
            bones.append(B(bone.name, head, middle, bone.parent))
            bones.append(B(lower, middle, tail, bone.name, connect=True))
        elif bone.name.startswith("shin"):
            bones.append(bone.__class__(bone.name, head, tail, f"thigh_lower.{bone.name[-1]}", connect=True))
        else:
            bones.append(bone)
    rig = rigs.armature(bones)
    made = set_up(rig)
    assert made["foot.L"].chain_length == 4
    assert rig.pose.bones["thigh_lower.L"].ccd_rig.stiffness == 1.0
    assert rig.pose.bones["shin.L"].ccd_rig.stiffness == 0.0
    bpy.ops.ccd_rig.constraints_remove()
    assert not any(bone.ccd_rig.stiffness for bone in rig.pose.bones)


def arms():
    """Arms of a biped, stretched out."""
    for side, sign in (("L", 1), ("R", -1)):
        parent = "spine"
        for name, x in (("upper_arm", 0.2), ("forearm", 0.45), ("hand", 0.7)):
            yield B(f"{name}.{side}", (x * sign, 0, 1.5), ((x + 0.25) * sign, 0.02, 1.5), parent)
            parent = f"{name}.{side}"


def biped_with_pelvis():
    """Its thighs hang on bones from the hips aside, as in MakeHuman's rigs."""
    bones = []
    for bone in rigs.biped():
        if bone.name.startswith("thigh"):
            pelvis = f"pelvis.{bone.name[-1]}"
            bones.append(B(pelvis, (0.0, *bone.head[1:]), bone.head, bone.parent))
            bones.append(B(bone.name, bone.head, bone.tail, pelvis))
        else:
            bones.append(bone)
    return rigs.armature([*bones, *arms()])


def test_a_pelvis_does_not_turn_for_a_leg(ext):
    """Hips that were pulled up turned it by up to 80 degrees in a frame: Body Helps used it as a thigh."""
    rig = biped_with_pelvis()
    roles = ext.module("ccd_rig.blender.figures.recognition").roles_of(rig)
    assert roles["pelvis.L"].words() == "left pelvis"
    made = set_up(rig)
    assert made["foot.L"].chain_length == 3
    stiff = {bone.name for bone in rig.pose.bones if bone.ccd_rig.stiffness == 1.0}
    assert stiff == {"pelvis.L", "pelvis.R"}
    move(made["hips"], (0.05, 0.1, 0.15))
    bake(rig)
    assert rig.pose.bones["pelvis.L"].matrix_basis.to_quaternion().angle < 1e-4
    bpy.ops.ccd_rig.constraints_remove()
    assert not any(bone.ccd_rig.stiffness for bone in rig.pose.bones)


def test_a_pelvis_does_not_turn_in_a_drag_of_others(ext):
    rig = biped_with_pelvis()
    rig.ccd_rig.pin_feet = True
    for names, turns in (("hips", False), ("pelvis.L", True)):
        rigs.activate(rig)
        bpy.ops.object.mode_set(mode="POSE")
        bpy.ops.ccd_rig.drag(value=(0.05, 0.1, -0.1), names=names)
        assert (rig.pose.bones["pelvis.L"].matrix_basis.to_quaternion().angle > 1e-4) is turns
        for bone in rig.pose.bones:
            bone.matrix_basis = Matrix()
        rigs.update()


def test_an_ankle_that_is_bent_is_no_piece_of_a_shin(ext, capfd):
    """The heel of a beast is up in the air: what its foot hangs on bends, though names call it no foot."""
    bones = []
    for bone in rigs.biped():
        if bone.name.startswith("shin"):
            side = bone.name[-1]
            ankle = Vector(bone.head) + Vector((0, 0.2, -0.2))
            bones.append(B(bone.name, bone.head, ankle, bone.parent))
            bones.append(B(f"metatarsus.{side}", ankle, bone.tail, bone.name, connect=True))
        elif bone.name.startswith("foot"):
            bones.append(B(bone.name, bone.head, bone.tail, f"metatarsus.{bone.name[-1]}", connect=True))
        else:
            bones.append(bone)
    rig = rigs.armature([*bones, *arms()])
    roles = ext.module("ccd_rig.blender.figures.recognition").roles_of(rig)
    assert roles["metatarsus.L"].words() == "left shin 2"
    made = set_up(rig)
    assert made["foot.L"].chain_length == 4
    assert {bone.ccd_rig.stiffness for bone in rig.pose.bones} == {0.0}
    assert "Kept in line" not in capfd.readouterr().out


def test_each_pair_of_arms_gets_its_ranges(ext):
    rig = rigs.armature(creatures.four_arms())
    body = ext.module("ccd_rig.blender.limit_sources.presets").body_of(rig)
    assert (body.along("Lower_UpperArm_L") - Vector((1, 0, 0))).length < 1e-6
    set_up(rig, ranges="LIMITS")
    kinds = {name: rig.pose.bones[name].ccd_rig.limit.kind for name in ("Lower_ForeArm_L", "Lower_Hand_R")}
    assert kinds == {
        "Lower_ForeArm_L": "HINGE",
        "Lower_Hand_R": rig.pose.bones["Upper_Hand_R"].ccd_rig.limit.kind,
    }


def test_a_figure_without_legs_gets_ranges_of_its_arms(ext):
    rig = rigs.armature(creatures.naga())
    set_up(rig, ranges="LIMITS")
    assert rig.pose.bones["Arm_2_L"].ccd_rig.limit.kind == "HINGE"


def roles_of(**roles):
    return [{"name": name.replace("_", "."), "role": role} for name, role in roles.items()]


def test_roles_are_changed_before_anything_is_made(ext):
    """A toe takes the role of the foot, which then has none; a hand loses its own."""
    rig = rigs.metarig("basic_human")
    made = set_up(rig, roles=roles_of(toe_L="left foot", hand_R=""))
    assert "toe.L" in made
    assert "foot.L" not in made
    assert {"hand.L", "foot.R"} <= set(made)
    assert "hand.R" not in made


WINGS = {
    f"{bone}.{side}": f"{way} wing" + (f" {index + 1}" if index else "")
    for side, way in (("L", "left"), ("R", "right"))
    for index, bone in enumerate(("upper_arm", "forearm", "hand"))
}


def test_arms_that_the_user_calls_wings_are_told_as_wings(ext, capfd):
    """Hands are not missed then, as the user has taken them away; nor is the figure a human any more."""
    rig = rigs.metarig("basic_human")
    made = set_up(rig, roles=[{"name": name, "role": role} for name, role in WINGS.items()])
    assert {"hand.L", "hand.R"} <= set(made)
    told = capfd.readouterr().out
    assert "Not recognised" not in told
    assert "bird: " in told.lower() and "2 wings" in told and "human" not in told.lower()


@pytest.mark.parametrize(
    ("recognised", "parts", "kind"),
    [
        ("human", ("thigh", "wing", "shoulder", "finger"), "bird"),
        ("human", ("thigh", "wing", "hand"), "human"),
        ("human", ("thigh", "foot"), "human"),
        ("bird", ("thigh", "lower arm"), "two-legged animal"),
        ("human", ("thigh", "upper arm", "front foot"), "quadruped"),
        ("quadruped", ("thigh", "upper arm"), "two-legged animal"),
        ("many-legged animal", ("leg", "wing"), "many-legged animal"),
    ],
)
def test_limbs_tell_the_kind_where_roles_are_changed(ext, recognised, parts, kind):
    role = ext.module("ccd_rig.blender.figures.role")
    names = [f"bone {place}" for place in range(len(parts))]
    changes = {name: f"left {part}" for name, part in zip(names, parts, strict=True)}
    with_roles = ext.module("ccd_rig.blender.figures.recognition").with_roles
    assert with_roles(role.Figure(role.Kind(recognised), {}), names, changes).kind == kind


def test_boxes_of_the_dialog_follow_the_roles(ext):
    rig = rigs.metarig("basic_human")
    rigs.activate(rig)
    guess = ext.module("ccd_rig.blender.set_up").guess(rig)
    items = {name: SimpleNamespace(name=name, role=role) for name, role in guess.roles.items()}
    dialog = SimpleNamespace(
        asks=True, figure=rig.name, roles=items.values(), listed=guess.roles, recognised=guess.groups
    )
    check = ext.module("operators.set_up").CCD_RIG_OT_figure_set_up.check
    assert check(dialog, bpy.context)
    assert dialog.recognised == guess.groups == ("hips", "head", "hands", "feet")
    for name, role in WINGS.items():
        items[name].role = role
    check(dialog, bpy.context)
    assert set(dialog.recognised) == {"hips", "head", "feet", "wings"}
    items["hand.L"].role = "left win"  # as it is typed
    check(dialog, bpy.context)
    assert set(dialog.recognised) == {"hips", "head", "feet", "wings"}
    shown = ext.module("ccd_rig.blender.viewport.sketch").dialog_roles
    assert shown.pop(rig.name)["hand.L"] == "left win"


def test_a_rig_that_nothing_tells_is_set_up_by_roles(ext):
    rig = rigs.armature(
        [
            B("base", (0, 0, 0), (0, 0, 1)),
            B("boom", (0, 0, 1), (1, 0.2, 1), "base"),
            B("jib", (1, 0.2, 1), (1.5, 0.2, 0.8), "boom"),
            B("hook", (1.5, 0.2, 0.8), (1.5, 0.2, 0.3), "jib"),
            B("ballast", (0, 0, 1), (-0.4, 0.1, 0.9), "base"),
        ]
    )
    changes = roles_of(boom="left upper arm", jib="left lower arm", hook="left hand", ballast="")
    assert {name: row.chain_length for name, row in set_up(rig, roles=changes).items()} == {"hook": 3}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nothing": "head"}, "roles: there is no bone 'nothing'"),
        ({"toe_L": "left wheel"}, "roles: 'left wheel' of 'toe.L' is no role"),
        ({"toe_L": "left foot 0"}, "is no role"),
        ({"toe_L": "left leg 3:1"}, "Write one such as 'left hand', 'spine 2' or '3rd left leg, bone 2'"),
        ({"toe_L": "left hand", "shin_L": "Left Hand"}, "roles: 'toe.L' and 'shin.L' are both"),
    ],
)
def test_roles_that_cannot_be_change_nothing(ext, changes, words):
    rig = rigs.metarig("basic_human")
    rigs.activate(rig)
    before = set(bpy.data.objects.keys())
    with pytest.raises(RuntimeError, match=words):
        bpy.ops.ccd_rig.figure_set_up(roles=roles_of(**changes))
    assert len(rig.ccd_rig.constraints) == 0
    assert set(bpy.data.objects.keys()) == before


@pytest.mark.parametrize("kind", ["human", "cat", "shark"])
def test_the_words_of_a_role_are_read_back(ext, kind):
    role = ext.module("ccd_rig.blender.figures.role")
    figure = ext.module("ccd_rig.blender.figures.recognition").roles_of(rigs.metarig(kind))
    assert {name: role.read_role(each.words().upper()) for name, each in figure.items()} == dict(figure)
    assert len({each.words() for each in figure.values()}) == len(figure)


@pytest.mark.parametrize(
    ("words", "role"),
    [
        ("1st left leg", ("leg", "L", 0, 0)),
        ("4th left leg, bone 3", ("leg", "L", 2, 3)),
        ("12th right leg, bone 21", ("leg", "R", 20, 11)),
        ("22nd right leg", ("leg", "R", 0, 21)),
        ("left wing 3", ("wing", "L", 2, 0)),
        ("2nd left wing, bone 3", ("wing", "L", 2, 1)),
        ("2nd tail", ("tail", "", 0, 1)),
    ],
)
def test_a_limb_of_several_has_its_count_in_front(ext, words, role):
    module = ext.module("ccd_rig.blender.figures.role")
    made = module.Role(module.Part(role[0]), module.Side(role[1]), *role[2:])
    assert made.words() == words
    assert module.read_role(words) == made


def test_a_guess_says_what_there_is_and_makes_nothing(ext):
    build = ext.module("ccd_rig.blender.set_up")
    rig = rigs.metarig("basic_human")
    sure = build.guess(rig)
    assert sure.unsure == ()
    assert sure.roles["hand.L"] == "left hand"
    assert set(sure.groups) == {"hands", "feet", "head", "hips"}
    cat = rigs.metarig("cat")
    for number, bone in enumerate(cat.data.bones):
        bone.name = f"Bone.{number:03d}"
    for bone in cat.pose.bones:
        bone.rigify_type = ""
    before = set(bpy.data.objects.keys())
    guess = build.guess(cat)
    assert len(guess.unsure) == 8
    assert guess.words().startswith(f"No name tells the role of '{guess.unsure[0]}'")
    assert set(guess.roles.values()) >= {"left foot", "right front foot", "head", "tail", ""}
    assert set(bpy.data.objects.keys()) == before
    assert len(cat.ccd_rig.constraints) == 0
    rest = rigs.armature([B("one", (0, 0, 0), (0, 0, 1))])
    assert build.guess(rest).unsure == ()
    assert build.guess(rest).groups == ()
