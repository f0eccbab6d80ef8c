"""A figure set up in one step: what is made, that it bakes, that it can be undone, and what is refused."""

from __future__ import annotations

import bpy
import pytest
import rigs
import whole_file
from mathutils import Matrix, Quaternion, Vector
from rigs import B

SOLVE = 1e-3  # metres
FRAMES = (1, 5)


def set_up(rig, **choices):
    rigs.activate(rig)
    assert bpy.ops.ccd_rig.figure_set_up(**choices) == {"FINISHED"}
    rigs.update()
    return {row.name: row for row in rig.ccd_rig.constraints}


def move(row, offset):
    """Key a target from where it is to an offset in the world."""
    row.target.keyframe_insert("location", frame=FRAMES[0])
    row.target.location = row.target.location + Vector(offset)
    row.target.keyframe_insert("location", frame=FRAMES[1])


def bake(rig):
    assert bpy.ops.ccd_rig.bake(frame_start=FRAMES[0], frame_end=FRAMES[1]) == {"FINISHED"}
    bpy.context.scene.frame_set(FRAMES[1])
    return rig.evaluated_get(bpy.context.evaluated_depsgraph_get())


def matrices(rig):
    return {bone.name: bone.matrix.copy() for bone in rig.pose.bones}


def target_of(row):
    thing = row.target.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return thing.matrix_world.copy()


HUMAN_ROWS = {
    "spine": 1,
    "spine.006": 6,
    "hand.L": 3,
    "hand.R": 3,
    "foot.L": 3,
    "foot.R": 3,
}
WOLF_ROWS = {
    "spine.004": 1,
    "spine.011": 7,
    "toe.L": 4,
    "toe.R": 4,
    "front_toe.L": 4,
    "front_toe.R": 4,
    "spine": 4,
}


@pytest.mark.parametrize(("kind", "rows"), [("basic_human", HUMAN_ROWS), ("basic_quadruped", WOLF_ROWS)])
def test_rows_of_a_metarig(ext, kind, rows):
    made = set_up(rigs.metarig(kind))
    assert {name: row.chain_length for name, row in made.items()} == rows
    assert all(row.target is not None for row in made.values())
    assert len({row.target for row in made.values()}) == len(made)


def test_a_nameless_copy_gets_the_same_rows(ext):
    rig = rigs.metarig("basic_human")
    names = {bone.name: f"bone.{place:03d}" for place, bone in enumerate(rig.data.bones)}
    for bone in rig.pose.bones:
        bone.rigify_type = ""
    for old, new in names.items():
        rig.data.bones[old].name = new
    made = set_up(rig)
    assert {name: row.chain_length for name, row in made.items()} == {
        names[name]: length for name, length in HUMAN_ROWS.items()
    }
    left = made[names["hand.L"]].target
    assert left.color[2] > left.color[0], "blue is left"


@pytest.mark.parametrize("kind", ["basic_human", "basic_quadruped"])
def test_a_bake_right_after_it_leaves_the_pose(ext, kind):
    """Targets are turned as their bones are, and poles stand on the side of the bend."""
    rig = rigs.metarig(kind)
    set_up(rig)
    before = matrices(rig)
    bake(rig)
    for name, matrix in matrices(rig).items():
        for got, asked in zip(matrix.col, before[name].col, strict=True):
            assert (got - asked).length < 0.01, name


def test_limbs_bend_to_their_own_side(ext):
    """Hips go down: knees go to the front, which is -Y. Hands come near: elbows go to the back."""
    rig = rigs.metarig("basic_human")
    made = set_up(rig)
    before = matrices(rig)
    move(made["spine"], (0.0, 0.0, -0.25))
    for side, sign in (("L", 1.0), ("R", -1.0)):
        move(made[f"hand.{side}"], (-0.1 * sign, -0.1, 0.05))
    posed = bake(rig)
    for side in "LR":
        knee = posed.pose.bones[f"shin.{side}"].head
        foot = posed.pose.bones[f"foot.{side}"]
        assert knee.y < before[f"shin.{side}"].translation.y - 0.1
        assert (foot.matrix.translation - before[f"foot.{side}"].translation).length < SOLVE
        flat = foot.matrix.to_quaternion().rotation_difference(before[f"foot.{side}"].to_quaternion())
        assert min(flat.angle, 6.2831853 - flat.angle) < 0.01, "feet stay flat"
        arm = [posed.pose.bones[f"{name}.{side}"].head for name in ("upper_arm", "forearm", "hand")]
        middle = 0.5 * (arm[0] + arm[2])
        assert arm[1].y > middle.y, "the elbow is behind the line from shoulder to hand"
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


def test_head_and_hands_go_along_with_the_hips(ext):
    """So that the whole figure follows its hips, but for its feet."""
    rig = rigs.metarig("basic_human")
    made = set_up(rig)
    names = ("spine.006", "hand.L", "hand.R", "foot.L", "foot.R")
    before = {name: target_of(made[name]).translation for name in names}
    move(made["spine"], (0.05, 0.0, -0.2))
    bake(rig)
    for name, place in before.items():
        moved = Vector((0.05, 0.0, -0.2)) if not name.startswith("foot") else Vector()
        assert (target_of(made[name]).translation - place - moved).length < 1e-5
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


def test_without_a_target_for_the_hips_hands_and_head_go_along_with_the_bone(ext):
    rig = rigs.metarig("basic_human")
    made = set_up(rig, hips=False)
    assert made["hand.L"].target.parent_bone == "spine"
    move(made["foot.L"], (0.0, -0.1, 0.1))
    bake(rig)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


@pytest.mark.parametrize("kind", ["basic_human", "basic_quadruped"])
def test_a_generated_rig_is_moved_by_its_fk_controls(ext, kind):
    """What deforms goes to the targets: the limbs were in IK, and are set to FK."""
    rig = rigs.generated(kind)
    assert rig.pose.bones["thigh_parent.L"]["IK_FK"] == 0.0
    made = set_up(rig)
    assert rig.pose.bones["thigh_parent.L"]["IK_FK"] == 1.0
    assert made["foot_fk.L"].chain_length == 4, "with the locked bone between shin and foot"
    assert not [name for name in made if name.startswith(("DEF-", "ORG-", "MCH-"))]
    move(made["torso"], (0.02, 0.0, -0.08))
    move(made["foot_fk.L"], (0.0, -0.08, 0.1))
    posed = bake(rig)
    for side in "LR":
        foot = posed.matrix_world @ posed.pose.bones[f"DEF-foot.{side}"].head
        assert (foot - target_of(made[f"foot_fk.{side}"]).translation).length < SOLVE
    keyed = {curve.data_path.split('"')[1] for curve in curves_of(ext, rig)}
    assert keyed
    assert not [name for name in keyed if name.startswith(("DEF-", "ORG-", "MCH-"))]


def curves_of(ext, rig):
    return ext.module("ccd_rig.blender.keys.channels").fcurves_of(rig)


def test_a_spider_on_a_keyed_body(ext):
    """Eight feet stay where they are while the body moves as it is keyed."""
    rig = rigs.armature(rigs.spider())
    body = rig.pose.bones["body"]
    for frame, place in zip(FRAMES, ((0, 0, 0), (0.15, 0.1, -0.1)), strict=True):
        body.location = place
        body.keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_set(FRAMES[0])
    made = set_up(rig)
    assert set(made) == {f"leg{leg}_3.{side}" for leg in range(4) for side in "LR"}
    before = {name: rig.pose.bones[name].tail.copy() for name in made}
    posed = bake(rig)
    assert (posed.pose.bones["body"].location - Vector((0.15, 0.1, -0.1))).length < 1e-5
    for name, place in before.items():
        assert (posed.pose.bones[name].tail - place).length < SOLVE
        knee = posed.pose.bones[name].parent.head
        assert knee.z > 0.5, "knees stay above the body"


def test_a_tail(ext):
    rig = rigs.chain(6)
    made = set_up(rig)
    (row,) = made.values()
    assert (row.tip, row.chain_length, row.rotation) == ("bone_5", 6, "NONE")
    assert (target_of(row).translation - Vector((0, 0, 6))).length < 1e-5
    move(row, (1.0, 0.5, -1.0))
    posed = bake(rig)
    assert (posed.pose.bones["bone_5"].tail - Vector((1.0, 0.5, 5.0))).length < SOLVE


def test_a_figure_in_motion_keeps_it(ext):
    """Targets are keyed along a motion: a bake then plays it as it was."""
    rig = rigs.metarig("basic_human")
    for frame, angle in zip(FRAMES, (0.0, 0.5), strict=True):
        for name in ("upper_arm.L", "thigh.R", "shin.R", "spine.002", "spine"):
            bone = rig.pose.bones[name]
            bone.rotation_mode, bone.rotation_euler = "XYZ", (angle, 0.0, 0.2 * angle)
            bone.keyframe_insert("rotation_euler", frame=frame)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES
    scene.frame_set(FRAMES[0])
    made = set_up(rig)
    assert "spine" not in made, "the hips keep their keys"
    scene.frame_set(FRAMES[1])
    before = matrices(rig)
    bake(rig)
    for name, matrix in matrices(rig).items():
        assert (matrix.translation - before[name].translation).length < SOLVE, name


def test_feet_planted(ext):
    rig = rigs.metarig("basic_human")
    made = set_up(rig, plant=True)
    assert [made[f"foot.{side}"].kind for side in "LR"] == ["PLANT", "PLANT"]
    before = {side: rig.pose.bones[f"foot.{side}"].head.copy() for side in "LR"}
    move(made["spine"], (0.05, 0.0, -0.1))
    posed = bake(rig)
    for side, place in before.items():
        assert (posed.pose.bones[f"foot.{side}"].head - place).length < SOLVE
    assert (posed.pose.bones["spine"].head - target_of(made["spine"]).translation).length < SOLVE


def select_bones(rig, *names):
    rigs.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    for bone in rig.pose.bones:
        (bone if hasattr(bone, "select") else bone.bone).select = bone.name in names
    rig.data.bones.active = rig.data.bones[names[0]]


def test_feet_planted_without_a_target_for_the_hips(ext):
    """What planted feet shift carries no target, as that would hang on its own chain."""
    rig = rigs.metarig("basic_human")
    made = set_up(rig, plant=True, hips=False)
    assert made["spine.006"].target.parent is None
    bake(rig)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


def plant_feet(rig, *tips):
    """Select bones in Pose Mode and plant them, as a user's next click does."""
    select_bones(rig, *tips)
    done = bpy.ops.ccd_rig.feet_plant("EXEC_DEFAULT", True, hold_height=True, hold_rotation=True)
    bpy.ops.object.mode_set(mode="OBJECT")
    assert done == {"FINISHED"}


PLANTED = [
    ("basic_human", ("foot.L", "foot.R"), "spine", (0.05, 0.0, -0.1)),
    ("human", ("foot.L", "foot.R"), "spine", (0.0, -0.06, -0.12)),
    ("cat", ("r_toe.L", "r_toe.R", "f_toe.L", "f_toe.R"), "spine", (0.0, 0.0, -0.02)),
]


@pytest.mark.parametrize(("kind", "feet", "hips", "drop"), PLANTED)
def test_feet_planted_after_the_set_up(ext, capfd, kind, feet, hips, drop):
    """The hips slid to their target: the planted feet shift them now, and they still go to it."""
    rig = rigs.metarig(kind)
    made = set_up(rig)
    hips = next(name for name, row in made.items() if any(rig.pose.bones[row.tip].ccd_rig.use_slide))
    plant_feet(rig, *feet)
    assert f"Slide switched off, as planted feet shift it: {hips}" in capfd.readouterr().out
    rows = rig.ccd_rig.constraints
    assert {rows[name].kind for name in feet} == {"PLANT"}
    checks = ext.module("ccd_rig.blender.checks.constraint_checks")
    assert not list(checks.constraint_problems(rig, rows[hips], bpy.context.scene))
    before = {name: rig.pose.bones[name].matrix.copy() for name in feet}
    move(rows[hips], drop)
    posed = bake(rig)
    for name, matrix in before.items():
        assert (posed.pose.bones[name].head - matrix.translation).length < SOLVE, name
        turned = posed.pose.bones[name].matrix.to_quaternion().rotation_difference(matrix.to_quaternion())
        assert min(turned.angle, 6.2831853 - turned.angle) < 0.01, name
    assert (posed.pose.bones[hips].head - target_of(rows[hips]).translation).length < SOLVE
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


CAPE = [
    B("cape", (0, 0.4, 1.0), (0, 0.5, 0.7), "root"),
    B("cape.001", (0, 0.5, 0.7), (0, 0.6, 0.4), "cape"),
]


def test_feet_planted_on_keyed_hips_below_a_root_that_carries_more(ext):
    """Targets hang on the bone that carries the figure over planted feet, which keeps its animation."""
    rig = rigs.armature([*rigs.biped(), *CAPE])
    for frame, place in zip(FRAMES, ((0, 0, 0), (0, 0, -0.05)), strict=True):
        rig.pose.bones["hips"].location = place
        rig.pose.bones["hips"].keyframe_insert("location", frame=frame)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES
    bpy.context.scene.frame_set(1)
    made = set_up(rig)
    assert {"foot.L", "foot.R", "head"} <= set(made)
    plant_feet(rig, "foot.L", "foot.R")
    bake(rig)
    assert "5 of 5 frames reached" in rig.ccd_rig.report.words


@pytest.mark.parametrize(
    ("root", "length"), [(((0, 0, 0), (0, 0.3, 0)), 4), (((0, 0.3, 0.9), (0, 0, 1.0)), 0)]
)
def test_a_root_that_stands_apart_carries_controls_another_one_the_figure(ext, root, length):
    """Where hips begin at the end of a root that carries more than them, the root is planted over."""
    rig = rigs.armature([B("root", *root), *rigs.biped()[1:], *CAPE])
    constraint_list = ext.module("ccd_rig.blender.properties.constraint_list")
    assert constraint_list.first_root_bone_chain_length(rig, "foot.L") == length


def test_planting_after_the_set_up_is_undone_in_one_step(ext):
    def state():
        rig = bpy.data.objects["Rig"]
        rows = [(row.name, row.kind, row.chain_length, row.target) for row in rig.ccd_rig.constraints]
        return str(rows), [tuple(bone.ccd_rig.use_slide) for bone in rig.pose.bones]

    rig = rigs.armature(rigs.biped())
    set_up(rig)
    select_bones(rig, "foot.L", "foot.R")
    bpy.ops.ed.undo_push(message="set up")
    before = state()
    bpy.ops.ccd_rig.feet_plant("EXEC_DEFAULT", True)
    assert state() != before
    bpy.ops.ed.undo()
    assert state() == before


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
    limit_value = ext.module("ccd_rig.blender.properties.joints").limit_value
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


def test_undo_leaves_the_file_as_before(ext):
    rig = rigs.armature(rigs.biped())
    rigs.update()
    bpy.ops.ed.undo_push(message="before")
    before = whole_file.dump()
    set_up(rig)
    bpy.ops.ed.undo_push(message="after")
    bpy.ops.ed.undo()
    assert whole_file.differences(before, whole_file.dump()) == []


def crane():
    return rigs.armature(
        [
            B("base", (0, 0, 0), (0, 0, 1)),
            B("arm", (0, 0, 1), (1, 0.2, 1), "base"),
            B("hook", (1, 0.2, 1), (1, 0.2, 0.3), "arm"),
            B("ballast", (0, 0, 1), (-0.4, 0.1, 0.9), "base"),
        ]
    )


def nothing_chosen():
    rig = rigs.chain(5)
    rigs.activate(rig)
    return rig


@pytest.mark.parametrize(
    ("make", "choices", "words"),
    [
        (crane, {}, "'Rig' is no figure that is known"),
        (lambda: rigs.armature([]), {}, "'Rig' is no figure that is known"),
        (nothing_chosen, {"tail": False}, "'Rig': nothing is left to set up"),
    ],
)
def test_refusals_change_nothing(ext, make, choices, words):
    rig = make()
    rigs.activate(rig)
    before = whole_file.dump()
    with pytest.raises(RuntimeError, match=words):
        bpy.ops.ccd_rig.figure_set_up(**choices)
    assert whole_file.differences(before, whole_file.dump()) == []


def test_nothing_left_names_the_bone(ext):
    rig = rigs.chain(5)
    set_up(rig)
    with pytest.raises(RuntimeError, match="'bone_4' keeps the constraint that it has"):
        bpy.ops.ccd_rig.figure_set_up()
    assert len(rig.ccd_rig.constraints) == 1


def test_it_needs_an_armature(ext):
    rigs.empty("Ball")
    with pytest.raises(RuntimeError, match="Select an armature"):
        bpy.ops.ccd_rig.figure_set_up()


def test_names_with_quotes_and_a_turned_object(ext):
    """Paths to bones are quoted, and targets stand in the world."""
    rig = rigs.armature(rigs.biped())
    for bone in rig.data.bones:
        bone.name = bone.name.replace("thigh", 'thi"gh')
    rig.matrix_world = Matrix.Translation((3, 1, 0)) @ Matrix.Rotation(0.7, 4, "Z") @ Matrix.Scale(2.0, 4)
    rigs.update()
    made = set_up(rig)
    for side in "LR":
        foot = rig.matrix_world @ rig.pose.bones[f"foot.{side}"].head
        assert (target_of(made[f"foot.{side}"]).translation - foot).length < 1e-4
        pole = made[f"foot.{side}"].pole_target.matrix_world.translation
        assert (rig.matrix_world.inverted() @ pole).y < -0.2, "in front of the knee"


def test_what_is_no_part_of_it_is_named(ext, capfd):
    bag = [B("bag", (0.2, 0.1, 1.0), (0.25, 0.2, 0.8), "hips")]
    bag.append(B("bag end", (0.25, 0.2, 0.8), (0.25, 0.2, 0.6), "bag"))
    set_up(rigs.armature([*rigs.biped(), *bag]))
    told = capfd.readouterr().out
    assert "Left as they are: 'bag'" in told
    assert "Not recognised: hands" in told
