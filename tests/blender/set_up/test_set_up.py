"""A figure set up in one step: what is made, that it bakes, that it can be undone, and what is refused."""

from __future__ import annotations

import math

import bpy
import creatures
import pytest
import rigs
import whole_file
from figures_set_up import FRAMES, SOLVE, bake, matrices, move, set_up, target_of
from mathutils import Matrix, Vector
from operator_calls import fails
from playing import angle
from rigs import B

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
def test_rows_of_a_metarig(kind, rows):
    made = set_up(rigs.metarig(kind))
    assert {name: row.chain_length for name, row in made.items()} == rows
    assert all(row.target is not None for row in made.values())
    assert len({row.target for row in made.values()}) == len(made)


def test_a_head_on_a_body_without_a_neck_takes_it_along():
    """Its target turned it and nothing else: an ant's dragged head stayed, and all was met."""
    rig = rigs.armature(creatures.ant())
    made = set_up(rig)
    feet = {name: target_of(row).translation for name, row in made.items() if "leg" in name}
    assert len(feet) == 6
    before = matrices(rig)["head"].translation
    move(made["head"], (0.0, -0.05, 0.02))
    bake(rig)
    shown = matrices(rig)
    assert (shown["head"].translation - before - Vector((0.0, -0.05, 0.02))).length < SOLVE
    for name, place in feet.items():
        assert (rig.pose.bones[name].tail - place).length < SOLVE


def test_targets_and_poles_lie_in_one_collection(ext):
    made = set_up(rigs.metarig("basic_human"), poles=True)
    things = [row.target for row in made.values()]
    things += [row.pole_target for row in made.values() if row.pole_target is not None]
    assert len({home for thing in things for home in thing.users_collection}) == 1
    assert len(bpy.data.collections) == 1


@pytest.mark.parametrize("options", [{"poles": True}, {"poles": True, "control_bones": True}])
def test_a_set_up_goes_without_a_trace(ext, options):
    rig = rigs.metarig("basic_human")

    def there():
        things = (bpy.data.objects, bpy.data.collections, bpy.data.meshes, rig.data.bones)
        return [each.keys() for each in things], bpy.context.mode, slides(rig)

    bpy.ops.object.mode_set(mode="POSE")
    before = there()
    made = set_up(rig, **options)
    assert len(made) == len(HUMAN_ROWS) and there() != before
    assert bpy.ops.ccd_rig.constraints_remove() == {"FINISHED"}
    assert len(rig.ccd_rig.constraints) == 0 and there() == before
    fails(bpy.ops.ccd_rig.constraints_remove, "has no CCD constraint")


def slides(rig):
    """What is stored of slides, by bone."""
    names = ("use_slide", "slide_lower", "slide_upper")
    stored = {bone.name: bone.ccd_rig for bone in rig.pose.bones}
    kept = {bone: [name for name in names if group.is_property_set(name)] for bone, group in stored.items()}
    return {bone: names for bone, names in kept.items() if names}


@pytest.mark.parametrize("own", [False, True])
def test_the_slide_of_the_hips_goes_with_the_last_constraint_above_which_they_are(ext, own):
    """Body Helps shifts them for a hand, too. A slide of the user's own stays."""
    rig = rigs.metarig("basic_human")
    if own:
        rig.pose.bones["spine"].ccd_rig.use_slide = (True, False, False)
    made = set_up(rig)
    hips = "spine"
    assert all(rig.pose.bones[hips].ccd_rig.use_slide)
    rows = rig.ccd_rig.constraints
    rig.ccd_rig.active_index = rows.find(made[hips].name)
    while len(rows):
        assert hips in slides(rig)
        bpy.ops.ccd_rig.constraint_remove()
        rig.ccd_rig.active_index = 0
    assert (hips in slides(rig)) == own


def test_what_something_else_uses_stays_when_a_set_up_goes(ext):
    rig = rigs.metarig("basic_human")
    made = set_up(rig)
    own = rigs.empty("Own")
    in_use = {made[name].target.name for name in ("hand.L", "spine", "foot.L")}
    own.constraints.new("COPY_LOCATION").target = made["hand.L"].target
    own.parent = made["foot.L"].target
    made["foot.R"].target = own
    rigs.activate(rig)
    bpy.ops.ccd_rig.constraints_remove()
    left = {each.name for each in bpy.data.objects if each.type == "EMPTY"}
    assert left == {"Own", "Target foot.R", *in_use}, "with what these hang on"


def test_a_nameless_copy_gets_the_same_rows(ext):
    rig, names = rigs.nameless_human()
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


def test_legs_that_bend_to_both_sides_get_no_pole(ext):
    """A horse's hind legs bend ahead at the knee and back at the hock; its front legs bend one way."""
    made = set_up(rigs.armature(creatures.horse()), poles=True)
    poled = {name for name, row in made.items() if row.pole_target is not None}
    assert poled == {"Front_Leg_Foot_L", "Front_Leg_Foot_R"}
    assert "Back_Leg_Tip_L" in made


@pytest.mark.parametrize("ahead", [0.04, -0.04])
def test_front_legs_that_bend_by_a_trace_go_on_bending_to_that_side(ext, ahead):
    """A joint halfway up is an animal's wrist, which bends ahead; a pole turned it to the back."""
    fore = ((0.2, -0.25, 2.0), (0.2, -0.25 - ahead, 1.3), (0.2, -0.25, 0.65), (0.2, -0.28, 0.1))
    hind = ((0.2, 0.6, 1.9), (0.2, 0.45, 1.4), (0.2, 0.7, 0.8), (0.2, 0.65, 0.12))
    rig = rigs.armature(
        creatures.creature(
            ("hips", "", (0, 0.6, 2.0)),
            *creatures.row("spine", "hips", (0, 0.2, 2.1), (0, -0.3, 2.2)),
            ("neck", "spine_2", (0, -0.5, 2.5)),
            ("head", "neck", (0, -0.7, 2.8)),
            *creatures.joined("spine_2", creatures.FRONT_LEG, fore),
            *creatures.joined("hips", creatures.LEG, hind),
        )
    )
    made = set_up(rig)
    tip = next(name for name in made if name.startswith("front") and name.endswith("_L"))
    assert made[tip].pole_target is None
    before = rig.pose.bones["front shin_L"].head.y
    move(made[tip], (0.0, 0.0, 0.3))
    assert (bake(rig).pose.bones["front shin_L"].head.y < before) is (ahead > 0.0)


@pytest.mark.parametrize(("bend", "has_pole"), [(0.0, True), (0.008, False), (-0.008, True), (0.06, False)])
def test_a_limb_that_is_straight_gets_a_pole(ext, bend, has_pole):
    """Nothing else would say to which side its knee bends; nor does a trace of a bend to the wrong one."""
    legs = [
        bone
        for side, x in (("L", 0.1), ("R", -0.1))
        for bone in (
            B(f"thigh.{side}", (x, 0, 1), (x, -bend, 0.54), "hips"),
            B(f"shin.{side}", (x, -bend, 0.54), (x, 0, 0.08), f"thigh.{side}", connect=True),
            B(f"foot.{side}", (x, 0, 0.08), (x, -0.15, 0.02), f"shin.{side}", connect=True),
        )
    ]
    rig = rigs.armature([*rigs.trunk(), *legs])
    made = set_up(rig)
    before = {side: rig.pose.bones[f"shin.{side}"].head.y for side in "LR"}
    assert [made[f"foot.{side}"].pole_target is not None for side in "LR"] == [has_pole] * 2
    move(made["hips"], (0.0, 0.0, -0.25))
    posed = bake(rig)
    assert all(posed.pose.bones[f"shin.{side}"].head.y < before[side] - 0.1 for side in "LR")


@pytest.mark.parametrize(("choices", "rotation"), [({}, "NONE"), ({"turn_hands": True}, "ORIENTATION")])
def test_hands_turn_with_their_targets_only_where_that_is_chosen(ext, choices, rotation):
    made = set_up(rigs.metarig("basic_human"), **choices)
    assert {made[f"hand.{side}"].rotation for side in "LR"} == {rotation}
    assert {made[f"foot.{side}"].rotation for side in "LR"} == {"ORIENTATION"}


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
        assert angle(foot.matrix, before[f"foot.{side}"]) < 0.01, "feet stay flat"
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
    for frame, turn in zip(FRAMES, (0.0, 0.5), strict=True):
        for name in ("upper_arm.L", "thigh.R", "shin.R", "spine.002", "spine"):
            bone = rig.pose.bones[name]
            bone.rotation_mode, bone.rotation_euler = "XYZ", (turn, 0.0, 0.2 * turn)
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


def star():
    """Rays of one bone to all sides."""
    ends = {"ray.L": (1, 0, 0), "ray.R": (-1, 0, 0), "top": (0, 0, 1), "bottom": (0, 0, -1)}
    rays = [B(name, [0.3 * x for x in end], end, "middle") for name, end in ends.items()]
    return rigs.armature([B("middle", (0, 0, 0), (0, -1, 0)), *rays])


def nothing_chosen():
    rig = rigs.chain(5)
    rigs.activate(rig)
    return rig


@pytest.mark.parametrize(
    ("make", "choices", "words"),
    [
        (crane, {}, "'Rig' is no figure that is known: its rows of bones end at 'hook', 'ballast', none"),
        (lambda: rigs.armature([]), {}, "'Rig' is no figure that is known: it has no bones"),
        (star, {}, "'Rig' is no figure that is known: 'ray.L', 'ray.R' mirror each other, but none"),
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
    made = set_up(rig, poles=True)
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


def test_rows_that_share_out_a_twist_are_not_named(ext, capfd):
    """Imported humans have ten of them, and the warning about them hid what was made."""
    rig = rigs.armature(rigs.biped())
    thigh = rig.data.bones["thigh.L"]
    first, second = (thigh.head_local.lerp(thigh.tail_local, share) for share in (0.0, 0.5))
    end = thigh.tail_local.copy()
    bpy.ops.object.mode_set(mode="EDIT")
    for name, above, place in (("twist", "thigh.L", first), ("twist end", "twist", second)):
        bone = rig.data.edit_bones.new(name)
        bone.head, bone.tail = place, place.lerp(end, 0.5)
        bone.parent = rig.data.edit_bones[above]
    bpy.ops.object.mode_set(mode="POSE")
    rigs.update()
    set_up(rig)
    assert "Left as they are" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (
            "anchored_spider",
            {"Body": 1, "Head": 1, "Abdomen_tip": 2, **{f"Leg{leg}_4_L": 4 for leg in "ABCD"}},
        ),
        ("snake", {"Head": 12}),
        ("cobra", {"Head": 6, "Tail_7": 7}),
        ("bird", {"Hips": 1, "Head": 5, "Leg_Foot_L": 4, "Tail_3": 3, "Wing_4_L": 4}),
        ("horse", {"Hips": 1, "Head": 7, "Back_Leg_Tip_L": 5, "Front_Leg_Foot_L": 4, "Tail_4": 4}),
        (
            "dragon",
            {"Hips": 1, "Head": 7, "Back_Leg_Foot_L": 4, "Front_Leg_Foot_L": 4, "Tail_7": 7, "Wing_4_L": 4},
        ),
        ("shark", {"Body": 1, "Head": 3, "Tail_Fin_Top": 5, "Fin_3_L": 3}),
        ("monster", {"Hips": 1, "Head": 5, "Hand_L": 4, "Leg_Tip_L": 5, "Tail_6": 6}),
        ("lizard", {"Hips": 1, "Head": 5, "Front_Leg_Foot_L": 4, "Back_Leg_Foot_L": 4, "Tail_8": 8}),
        ("gargoyle", {"Pelvis": 1, "Head": 4, "Hand_L": 4, "Leg_Ankle_L": 3, "Wing_4_L": 4}),
        (
            "centaur",
            {
                "Hips": 1,
                "Head": 8,
                "Hand_L": 3,
                "Front_Leg_Foot_L": 4,
                "Back_Leg_Foot_L": 4,
                "Tail_3": 3,
            },
        ),
        (
            "four_arms",
            {"Hips": 1, "Head": 5, "Upper_Hand_L": 3, "Lower_Hand_L": 3, "Leg_Ankle_L": 3},
        ),
        ("naga", {"Body_1": 1, "Head": 4, "Arm_3_L": 3, "Tail_8": 8}),
        ("crab", {"Body": 1, "Pincer_L": 4, **{f"Leg{leg}_3_L": 3 for leg in range(4)}}),
        (
            "hydra",
            {
                "hips": 1,
                "head": 7,
                "head_L": 4,
                "tail 7": 7,
                "wing 4_L": 4,
                "front toe_L": 4,
                "toe_L": 4,
            },
        ),
        (
            "elephant",
            {"hips": 1, "head": 5, "trunk 6": 6, "tail 3": 3, "front toe_L": 4, "toe_L": 4},
        ),
    ],
)
def test_creatures_get_their_rows_and_a_bake_leaves_their_pose(make, rows):
    rig = rigs.armature(getattr(creatures, make)())
    made = set_up(rig)
    right = {f"{name[:-2]}_R": length for name, length in rows.items() if name.endswith("_L")}
    assert {name: row.chain_length for name, row in made.items()} == rows | right
    assert {bone.ccd_rig.stiffness for bone in rig.pose.bones} == {0.0}
    before = matrices(rig)
    bake(rig)
    for name, matrix in matrices(rig).items():
        assert (matrix.translation - before[name].translation).length < SOLVE, name


def test_a_machine_without_feet_stands_on_the_ends_of_its_shins(ext):
    rig = rigs.armature(creatures.machine())
    made = set_up(rig)
    assert set(made) == {"base", "FL_calf", "FR_calf", "RL_calf", "RR_calf"}
    row = made["RL_calf"]
    assert (row.chain_length, row.use_tail) == (2, True)


def test_a_human_stands_on_its_feet_however_it_lies_at_rest(ext):
    """Motion capture files have rest poses in which legs point along any axis."""
    rig = rigs.metarig("basic_human")
    rig.data.transform(Matrix.Rotation(math.pi, 4, "X"))
    assert {name: row.chain_length for name, row in set_up(rig).items()} == HUMAN_ROWS


def test_a_foot_is_set_up_whatever_way_its_leg_leads_at_rest(ext):
    """Motion capture files have rest positions that are no poses: the legs of this one lead upwards."""
    bones = []
    for bone in rigs.biped():
        above_hips = bone.name.startswith(("thigh", "shin", "foot", "toe"))
        ends = [(x, y, 2.0 - z if above_hips else z) for x, y, z in (bone.head, bone.tail)]
        bones.append(B(bone.name, *ends, bone.parent))
    for side, sign in (("L", 1), ("R", -1)):
        foot = next(bone for bone in bones if bone.name == f"foot.{side}")
        x, y, z = foot.tail
        bones.append(B(f"toe.{side}", foot.tail, (x, y - 0.1, z), foot.name))
        parent = "spine"
        for name, x in (("upper_arm", 0.2), ("forearm", 0.45), ("hand", 0.7)):
            bones.append(B(f"{name}.{side}", (x * sign, 0, 1.5), ((x + 0.25) * sign, 0.02, 1.5), parent))
            parent = f"{name}.{side}"
    made = set_up(rigs.armature(bones))
    assert made["foot.L"].chain_length == 3
    assert "toe.L" not in made


def test_the_arm_of_a_figure_without_hands_reaches_with_its_end(ext):
    """Its target lay at the elbow."""
    rig = rigs.armature(creatures.low_poly())
    made = set_up(rig)
    assert (made["Arm_2_L"].chain_length, made["Arm_2_L"].use_tail) == (2, True)
    assert made["Arm_2_L"].pole_target is None
    move(made["Arm_2_L"], (-0.1, -0.1, 0.1))
    end = bake(rig).pose.bones["Arm_2_L"].tail
    assert (rig.matrix_world @ end - target_of(made["Arm_2_L"]).translation).length < SOLVE


@pytest.mark.parametrize(("knee", "makes_poles"), [(-0.02, False), (0.0, True), (0.02, True)])
def test_knees_of_a_figure_without_feet_are_in_front(ext, knee, makes_poles):
    """Their poles lay behind, so that legs flipped, and hung on the hips."""
    rig = rigs.armature(creatures.low_poly(knee))
    made = set_up(rig)
    for side in "LR":
        pole = made[f"Leg_2_{side}"].pole_target
        assert (pole is not None) == makes_poles
        if pole is not None:
            assert pole.matrix_world.translation.y < -0.2
            assert pole.parent == made[f"Leg_2_{side}"].target


def test_one_of_a_group_is_told_in_the_singular(ext):
    plan = ext.module("ccd_rig.blender.set_up")
    rows = {
        plan.Group.HANDS: ["a"],
        plan.Group.FEET: ["b"],
        plan.Group.WINGS: ["c", "d"],
        plan.Group.HEAD: ["e"],
        plan.Group.TAIL: ["f", "g"],
    }
    made = plan.SetUpResult(plan.Kind.HUMAN, "", rows=rows, poles=1)
    assert made.words() == "Human: 1 hand, 1 foot, 2 wings, head, 2 tails, 1 pole"


def test_a_figure_that_has_all_targets_says_how_to_make_them_anew(ext):
    rigs.activate(rigs.metarig("human"))
    assert bpy.ops.ccd_rig.figure_set_up() == {"FINISHED"}
    with pytest.raises(RuntimeError, match="remove constraints that are to be made anew"):
        bpy.ops.ccd_rig.figure_set_up()


def test_the_end_of_a_leg_with_a_guessed_tail_is_its_last_joint(ext):
    """As importers of glTF make spiders: targets stood above the feet, where tails were guessed."""
    rig = rigs.armature(
        [
            B(name, head, (head[0], head[1], head[2] + 0.1), parent)
            for name, parent, head in (
                ("body", "", (0, 0, 0.5)),
                ("skull", "body", (0, -0.4, 0.5)),
                *(
                    (f"{part} {row} {side}", above.format(row=row, side=side), (x * out, 0.3 * row, height))
                    for side, x in (("L", 1), ("R", -1))
                    for row in (-1, 0, 1)
                    for part, above, out, height in (
                        ("coxa", "body", 0.2, 0.5),
                        ("femur", "coxa {row} {side}", 0.5, 0.7),
                        ("tarsus", "femur {row} {side}", 0.8, 0.0),
                    )
                ),
            )
        ]
    )
    made = {name: row for name, row in set_up(rig).items() if name.startswith("tarsus")}
    assert len(made) == 6
    for name, row in made.items():
        assert not row.use_tail
        head = rig.matrix_world @ rig.pose.bones[name].head
        assert (target_of(row).translation - head).length < SOLVE
