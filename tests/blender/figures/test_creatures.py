"""Animals and monsters whose rigs are built otherwise than Rigify's: with their names."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import creatures
import pytest
import rigs
from mathutils import Matrix, Vector
from named_humans import nameless, words_of


def figure_of(ext, bones):
    return ext.module("ccd_rig.blender.figures.recognition").figure_of(rigs.armature(bones))


def rest_of(roles, bones, named):
    """Rest bones, with other names if they are to have none that tell, and their names by those."""
    made = roles.rest_bones(rigs.armature(bones))
    return (made, {bone.name: bone.name for bone in made}) if named else nameless(made)


def told_of(ext, bones, named):
    """The figure, and the words of the roles by the names of the bones."""
    roles = ext.module("ccd_rig.blender.figures.recognition")
    made, back = rest_of(roles, bones, named)
    figure = roles.recognise(made)
    return figure, {back[name]: words for name, words in words_of(figure).items()}


def test_a_spider_whose_legs_hang_on_side_anchors(ext):
    figure = figure_of(ext, creatures.anchored_spider())
    told = words_of(figure)
    assert figure.kind == "many-legged animal"
    assert (told["Body"], told["Head"]) == ("hips", "head")
    assert [told[f"Leg{leg}_1_L"] for leg in "ABCD"] == [
        f"{n} left leg" for n in ("1st", "2nd", "3rd", "4th")
    ]
    assert told["LegD_4_R"] == "4th right leg, bone 4"
    assert sum(" leg" in words for words in told.values()) == 32
    assert not {"Anchor_L", "Anchor_R", "root"} & set(told)


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("front", [-1.0, 1.0])
def test_a_neck_on_many_legs_is_told_by_its_rise(ext, front, tail):
    """Also where it is the only row, and the figure faces backwards: no head was there then."""
    figure = figure_of(ext, creatures.six_legs(front, tail))
    assert figure.kind == "many-legged animal"
    assert figure.bones("hips") == ("a",)
    assert figure.bones("neck") == ("n_1", "n_2", "n_3")
    assert figure.bones("head") == ("n_4",)
    assert figure.bones("tail") == (("t_1", "t_2", "t_3") if tail else ())
    assert words_of(figure)["r_1_L"] == "1st left leg"  # the foremost pair


TURNS = [Matrix.Rotation(math.radians(angle), 3, "Z") for angle in (0.0, 90.0, 180.0, 270.0)]


def turned(bones, turn):
    """Rest bones in another orientation."""
    return [
        bone._replace(head=tuple(turn @ Vector(bone.head)), tail=tuple(turn @ Vector(bone.tail)))
        for bone in bones
    ]


@pytest.mark.parametrize("turn", TURNS)
def test_the_tail_of_a_scorpion_without_names_is_no_neck(ext, turn):
    """It rises, and its end leads back over the body; the scorpion faced along it, with left as right."""
    roles = ext.module("ccd_rig.blender.figures.recognition")
    bones, back = rest_of(roles, creatures.scorpion(), named=False)
    told = {back[name]: words for name, words in words_of(roles.recognise(turned(bones, turn))).items()}
    assert [told[f"Tail_{k}"] for k in (1, 2, 3, 4)] == ["tail", "tail 2", "tail 3", "tail 4"]
    assert told["Leg0_1_L"] == "1st left leg"  # the foremost pair
    assert told["Head"] == "head"  # it has pincers and feelers


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("make", [creatures.crab, creatures.hexapod])
def test_names_of_left_and_right_tell_the_front_where_no_place_does(ext, make, turn):
    """Legs of a crab that faces along Y were counted from behind."""
    roles = ext.module("ccd_rig.blender.figures.recognition")
    bones = roles.rest_bones(rigs.armature(make()))
    expected = words_of(roles.recognise(bones))
    assert words_of(roles.recognise(turned(bones, turn))) == expected


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("turn", TURNS)
def test_flippers_shorter_than_flukes(ext, turn, named):
    """The spine led to the flukes, and a dolphin with short flippers alone was refused."""
    roles = ext.module("ccd_rig.blender.figures.recognition")
    bones, back = rest_of(roles, creatures.dolphin(), named)
    for left_out in ((), ("fluke_1_L", "fluke_1_R", "fluke_2_L", "fluke_2_R")):
        kept = [bone for bone in turned(bones, turn) if back[bone.name] not in left_out]
        figure = roles.recognise(kept)
        told = {back[name]: words for name, words in words_of(figure).items()}
        assert figure.kind == "fish"
        assert (told["base"], told["torso_1"], told["tail_3"]) == ("hips", "spine", "tail 3")
        assert (told["flipper_2_L"], told["flipper_1_R"]) == ("left wing 2", "right wing")
        assert told.get("fluke_2_L") == (None if left_out else "2nd left wing, bone 2")
        assert told["head"] == "head"


def test_a_snake_with_a_mouth_is_a_chain_with_a_head(ext):
    figure = figure_of(ext, creatures.snake())
    assert figure.kind == "chain"
    assert figure.bones("spine") == tuple(f"Body_{k}" for k in range(1, 12))
    assert figure.bones("head") == ("Head",)
    assert len(figure.roles) == 12


def test_a_snake_whose_root_is_in_its_middle(ext):
    figure = figure_of(ext, creatures.cobra())
    assert figure.kind == "chain"
    assert figure.bones("tail") == tuple(f"Tail_{k}" for k in range(1, 8))
    assert figure.bones("spine") == tuple(f"Body_{k}" for k in range(1, 6))
    assert figure.bones("head") == ("Head",)


def test_wings_of_a_bird_go_on_past_feathers_and_its_head_is_no_crest(ext):
    figure = figure_of(ext, creatures.bird())
    assert figure.kind == "bird"
    assert figure.bones("wing", "R") == tuple(f"Wing_{k}_R" for k in range(1, 5))
    assert figure.bones("head") == ("Head",)
    assert figure.bones("neck") == ("Neck_1", "Neck_2")
    assert figure.bones("spine") == ("Spine_1", "Spine_2")


def test_the_head_of_a_horse_is_not_its_mane(ext):
    figure = figure_of(ext, creatures.horse())
    assert figure.kind == "quadruped"
    assert figure.bones("head") == ("Head",)
    assert figure.bones("neck") == ("Neck_1", "Neck_2", "Neck_3")
    assert figure.bones("front foot", "L") == ("Front_Leg_Ankle_L",)
    assert figure.bones("foot", "L") == ("Back_Leg_Ankle_L",)


def test_a_dragon_stands_on_its_legs_not_on_its_feathers(ext):
    figure = figure_of(ext, creatures.dragon())
    assert figure.kind == "quadruped"
    assert figure.bones("foot", "L") == ("Back_Leg_Ankle_L",)
    assert figure.bones("front foot", "R") == ("Front_Leg_Ankle_R",)
    assert figure.bones("wing", "L") == tuple(f"Wing_{k}_L" for k in range(1, 5))
    assert (figure.bones("head"), figure.bones("hips")) == (("Head",), ("Hips",))


def test_a_dragon_without_names_stands_on_its_legs_too(ext):
    """Its ground is that of its feet: by its feathers' it had none of them there."""
    figure, told = told_of(ext, creatures.dragon(), named=False)
    assert figure.kind == "quadruped"
    assert (told["Back_Leg_Ankle_L"], told["Front_Leg_Ankle_R"]) == ("left foot", "right front foot")
    assert (told["Wing_4_L"], told["Wing_1_R"]) == ("left wing 4", "right wing")


@pytest.mark.parametrize("named", [True, False])
def test_fins_of_a_flat_fish_are_no_legs_though_they_end_on_the_ground(ext, named):
    """They begin there too."""
    figure, told = told_of(ext, creatures.ray(), named)
    assert figure.kind == "fish"
    assert (told["Body"], told["Head"], told["Fin_3_L"]) == ("hips", "head", "left wing 3")


def test_the_head_of_a_shark_is_in_front_and_its_root_no_hips(ext):
    figure = figure_of(ext, creatures.shark())
    assert figure.kind == "fish"
    assert (figure.bones("head"), figure.bones("hips")) == (("Head",), ("Body",))
    assert figure.bones("tail")[:4] == tuple(f"Tail_{k}" for k in range(1, 5))
    assert "root" not in figure.roles


def test_a_beast_on_two_legs_has_hands_and_high_heels(ext):
    figure = figure_of(ext, creatures.monster())
    assert figure.kind == "two-legged animal"
    assert figure.bones("hand", "L") == ("Hand_L",)
    assert figure.bones("wing", "L") == ()
    assert figure.bones("head") == ("Head",)
    assert [figure.bones(part, "L")[0] for part in ("thigh", "shin", "foot")] == [
        f"Leg_{part}_L" for part in ("Upper", "Lower", "Ankle")
    ]
    assert (len(figure.bones("thigh", "L")), len(figure.bones("shin", "L"))) == (1, 1)


@pytest.mark.parametrize(
    ("make", "kind", "expected"),
    [
        (
            "lizard",
            "quadruped",
            {
                "Front_Leg_Upper_L": "left front thigh",
                "Front_Leg_Lower_R": "right front shin",
                "Back_Leg_Upper_L": "left thigh",
                "Back_Leg_Ankle_L": "left foot",
            },
        ),
        (
            "gargoyle",
            "human",
            {"Hand_L": "left hand", "Wing_4_R": "right wing 4", "Leg_Ankle_L": "left foot", "Head": "head"},
        ),
        (
            "centaur",
            "quadruped",
            {
                "Hand_L": "left hand",
                "UpperArm_R": "right upper arm",
                "Front_Leg_Ankle_L": "left front foot",
                "Back_Leg_Ankle_R": "right foot",
                "Finger2_1_L": "1st left finger",
            },
        ),
        (
            "four_arms",
            "human",
            {
                "Upper_Hand_L": "left hand",
                "Lower_Hand_R": "2nd right hand",
                "Lower_ForeArm_L": "2nd left lower arm",
                "Lower_Finger0_1_L": "6th left finger",
            },
        ),
        (
            "naga",
            "human",
            {"Body_1": "hips", "Body_2": "spine", "Arm_3_L": "left hand", "Tail_8": "tail 8", "Head": "head"},
        ),
        (
            "bat",
            "bird",
            {"Leg_Upper_L": "left thigh", "Wing_Hand_L": "left wing 3", "Head": "head", "Ear_1_L": None},
        ),
        (
            "scorpion",
            "many-legged animal",
            {
                "Pincer_1_L": "left upper arm",
                "Antenna_1_L": None,
                "Leg3_3_L": "4th left leg, bone 3",
                "Tail_4": "tail 4",
            },
        ),
        (
            "hexapod",
            "many-legged animal",
            {"limb0_1_L": "1st left leg", "limb2_3_R": "3rd right leg, bone 3"},
        ),
        (
            "machine",
            "quadruped",
            {
                "FL_hip": "left shoulder",
                "FL_calf": "left front shin",
                "RR_hip": "right pelvis",
                "RR_thigh": "right thigh",
                "RR_calf": "right shin",
            },
        ),
        (
            "dog",
            "quadruped",
            {
                "skull": "head",
                "torso": "hips",
                "lumbar_1": "spine",
                "pelvis": "spine 3",
                "caudal_1": "tail",
                "scapula_L": "left shoulder",
                "lower_arm_L": "left front shin",
                "lower_leg_R": "right shin",
            },
        ),
    ],
)
def test_what_bones_of_lizards_monsters_and_machines_are(ext, make, kind, expected):
    figure = figure_of(ext, getattr(creatures, make)())
    assert figure.kind == kind
    told = words_of(figure)
    assert {name: told.get(name) for name in expected} == expected
    assert len(set(figure.roles.values())) == len(figure.roles)


def test_a_wing_ends_before_feathers_of_one_bone(ext):
    roles = ext.module("ccd_rig.blender.figures.recognition").roles_of(rigs.metarig("bird"))
    assert roles["Wing.002.L"].words() == "left wing 4"
    assert [name for name in roles if "feather" in name] == []


def test_a_word_for_the_middle_is_no_finger(ext):
    read = ext.module("ccd_rig.blender.figures.words").read
    assert read("middle_head").part == "head"
    assert read("middle_01_l").part == "finger"


@pytest.mark.parametrize("starts", [("Neck", "Tail", "Mane"), ("",)])
def test_a_horse_bound_while_it_walks_is_halved_by_its_names(ext, starts):
    """Each leg is swung another way; neck and tail, or the whole body, wind from side to side."""
    swing = {"Front_Leg": 0.3, "Back_Leg": -0.35}
    bones = []
    for bone in creatures.horse():
        leg = next((leg for leg in swing if bone.name.startswith(leg)), "")
        ahead = swing.get(leg, 0.0) * (1.0 if bone.name.endswith("_L") else -1.0)
        aside = 0.3 if bone.name.startswith(starts) else 0.0
        ends = [
            (x + aside * math.sin(2.0 * y), y + ahead * (1.2 - z), z) for x, y, z in (bone.head, bone.tail)
        ]
        bones.append(rigs.B(bone.name, *ends, bone.parent))
    figure = figure_of(ext, bones)
    assert figure.kind == "quadruped"
    assert figure.roles == figure_of(ext, creatures.horse()).roles


def test_thighs_of_a_lizard_with_claws_sprawl(ext):
    figure = figure_of(ext, creatures.lizard_with_claws())
    assert figure.kind == "quadruped"
    for end, front in (("Back", ""), ("Front", "front ")):
        assert [figure.bones(f"{front}{part}", "L") for part in ("thigh", "shin", "foot")] == [
            (f"{end}_Leg_{part}_L",) for part in ("Upper", "Lower", "Ankle")
        ]


@pytest.mark.parametrize("named", [True, False])
def test_thighs_of_a_frog_are_no_pelvis(ext, named):
    _, told = told_of(ext, creatures.frog(), named)
    assert told["Back_Leg_1_L"] == "left thigh"
    assert told["Back_Leg_3_R"] == "right foot"


def test_a_centaur_has_arms_and_four_legs(ext):
    figure = figure_of(ext, creatures.centaur_without_shoulders())
    assert figure.kind == "quadruped"
    assert figure.bones("hand", "R") == ("Hand_R",)
    assert figure.bones("front foot", "L") == ("Front_Leg_Ankle_L",)


def test_claws_of_a_crab_are_arms(ext):
    figure = figure_of(ext, creatures.crab())
    assert figure.kind == "many-legged animal"
    assert figure.bones("upper arm", "L") == ("Claw_1_L",)
    assert figure.bones("hand", "L") == ("Pincer_L",)


def test_eyes_on_the_body_make_no_head_of_it(ext):
    """What hangs below a head is no arm; eyes of a crab are on the bone that carries all."""

    def renamed(name):
        return name.replace("Claw", "Cheliped").replace("Pincer", "Dactyl")

    bones = [replace(bone, name=renamed(bone.name), parent=renamed(bone.parent)) for bone in creatures.crab()]
    figure = figure_of(ext, bones)
    assert figure.kind == "many-legged animal"
    assert figure.bones("upper arm", "L") == ("Cheliped_1_L",)
    assert figure.bones("hand", "L") == ("Dactyl_L",)


@pytest.mark.parametrize("name", [bone.name for bone in rigs.biped() if not bone.name.endswith((".L", ".R"))])
def test_a_bone_that_carries_legs_is_no_head(ext, name):
    """Whatever its name and wherever the legs hang, as in a damaged file."""
    bones = [replace(bone, parent=name) if bone.name.startswith("thigh") else bone for bone in rigs.biped()]
    figure = figure_of(ext, bones)
    assert name not in figure.bones("head")


def test_arms_of_a_mermaid_are_no_fins(ext):
    figure = figure_of(ext, creatures.mermaid())
    assert figure.kind == "fish"
    assert figure.bones("hand", "L") == ("Hand_L",)
    assert figure.bones("wing", "L") == ()
    assert figure.bones("tail")[0] == "Tail_1"


def test_the_head_of_a_seahorse_ends_a_spine(ext):
    figure = figure_of(ext, creatures.seahorse())
    assert figure.kind == "chain"
    assert figure.bones("spine") == ("Front_1", "Front_2")
    assert figure.bones("head") == ("Head",)
    assert figure.bones("tail") == tuple(f"Tail_{k}" for k in range(1, 7))


def test_who_stands_upright_on_toes_is_no_human(ext):
    figure = figure_of(ext, creatures.tyrannosaur())
    assert figure.kind == "two-legged animal"
    assert figure.bones("foot", "L") == ("Leg_Ankle_L",)
    assert figure.bones("hand", "L") == ("Arm_3_L",)


@pytest.mark.parametrize("hand", ["Hand_L", "Hand_R"])
@pytest.mark.parametrize("make", [creatures.four_arms, creatures.centaur, creatures.monster])
def test_a_sword_in_one_hand_is_no_part_of_it(ext, make, hand):
    """Its hand had no mirror image any more: without names the arm ended before it, or all was unknown."""
    bones = make()
    hand = next(bone for bone in bones if bone.name.endswith(hand))
    tip = Vector(hand.tail) + Vector((0.0, -0.3, 0.0))
    sword = (
        rigs.B("Sword", hand.tail, tip, hand.name),
        rigs.B("Blade", tip, tip + tip - Vector(hand.tail), "Sword"),
    )
    without, with_sword = (told_of(ext, each, named=False) for each in (bones, [*bones, *sword]))
    assert with_sword[0].kind == without[0].kind != "unknown"
    assert with_sword[1] == without[1]


def test_hair_is_no_pair_of_arms(ext):
    """Two strands on a head were the first arms, where the true ones are short."""
    bones = []
    for bone in creatures.tyrannosaur():
        if bone.name.startswith("Arm"):
            shoulder = Vector((math.copysign(0.2, bone.head[0]), -0.15, 1.9))
            head, tail = (shoulder.lerp(Vector(place), 0.5) for place in (bone.head, bone.tail))
            bones.append(rigs.B(bone.name, head, tail, bone.parent))
        else:
            bones.append(bone)
    for side, sign in (("L", 1.0), ("R", -1.0)):
        heads = [(0.1 * sign, -0.2 + 0.1 * k, 2.5 - 0.3 * k) for k in range(4)]
        for k in range(3):
            above = f"Hair_{k}_{side}" if k else "Head"
            bones.append(rigs.B(f"Hair_{k + 1}_{side}", heads[k], heads[k + 1], above))
    bones.append(rigs.B("Hair_1", (0, 0, 2.6), (0, 0.2, 2.4), "Head"))
    bones.append(rigs.B("Hair_2", (0, 0.2, 2.4), (0, 0.3, 2.1), "Hair_1"))
    figure = figure_of(ext, bones)
    assert figure.bones("hand", "L") == ("Arm_3_L",)
    assert not any("Hair" in name for name in figure.roles)


def strands(name, parent, *places, sides=("_L", "_R")):
    """Rows of bones on both sides, or in the middle with `sides=("",)`."""
    bones = []
    for side in sides:
        ends = [(-x if side == "_R" else x, y, z) for x, y, z in places]
        above = parent
        for k in range(len(ends) - 1):
            bones.append(rigs.B(f"{name}_{k + 1}{side}", *ends[k : k + 2], above))
            above = bones[-1].name
    return bones


def test_rows_of_cloth_are_no_limbs(ext):
    """A skirt had hands, and a cape was a tail."""
    bones = creatures.low_poly()
    cloth = [
        *strands("Skirt", "Body", (0.15, -0.05, 0.95), (0.2, -0.08, 0.75), (0.25, -0.1, 0.5)),
        *strands("SkirtBack", "Body", (0.15, 0.1, 0.95), (0.2, 0.15, 0.75), (0.25, 0.2, 0.5)),
        *strands("Cape", "Body", (0, 0.1, 1.3), (0, 0.2, 1.0), (0, 0.3, 0.6), (0, 0.3, 0.3), sides=("",)),
        *strands("Ponytail", "Head", (0, 0.1, 1.7), (0, 0.2, 1.5), (0, 0.2, 1.2), sides=("",)),
    ]
    assert figure_of(ext, [*bones, *cloth]).roles == figure_of(ext, bones).roles


def test_a_ponytail_is_no_tail(ext):
    read = ext.module("ccd_rig.blender.figures.words").read
    assert [read(name).part for name in ("Ponytail_1", "PonyTail.001", "hair_tail")] == [None, None, None]
    assert read("Tail_1").part == "tail"


def test_hair_without_names_is_no_pair_of_arms(ext):
    """The neck and the head were a spine with arms at its end."""
    bones = creatures.upright_human()
    hair = strands("Hair", "Head", (0.05, 0.05, 1.75), (0.1, 0.15, 1.55), (0.12, 0.2, 1.3), (0.12, 0.2, 1.05))
    without, with_hair = (told_of(ext, each, named=False) for each in (bones, [*bones, *hair]))
    assert with_hair[0].kind == without[0].kind == "human"
    assert with_hair[1] == without[1]


def test_an_arm_of_two_bones_has_no_hand(ext):
    """The lower arm was one, and its target lay at the elbow."""
    for named in (True, False):
        figure, told = told_of(ext, creatures.low_poly(), named)
        assert figure.kind == "human"
        assert (told["Arm_1_L"], told["Arm_2_R"]) == ("left upper arm", "right lower arm")
        assert (told["Leg_1_L"], told["Leg_2_R"]) == ("left thigh", "right shin")


@pytest.mark.parametrize("seed", range(12))
def test_a_bird_on_steep_legs_is_no_human_lying_down(ext, seed):
    """With another axis up its wings were legs."""
    random_shift = random.Random(seed).gauss
    figure, told = told_of(ext, creatures.pterosaur(lambda: random_shift(0.0, 0.008)), named=False)
    assert figure.kind == "bird"
    assert told["leg_1_L"] == "left thigh"


@pytest.mark.parametrize("base", ["Base", "Base_Link", "chassis"])
def test_a_lamp_stands_on_its_base(ext, base):
    """It was a link of the chain, and tilted."""
    lamp = [
        rigs.B(base, (0, 0, 0), (0, 0, 0.05)),
        rigs.B("Lower", (0, 0, 0.05), (0, 0.18, 0.4), base),
        rigs.B("Upper", (0, 0.18, 0.4), (0, -0.1, 0.72), "Lower"),
        rigs.B("Shade", (0, -0.1, 0.72), (0, -0.22, 0.6), "Upper"),
    ]
    figure = figure_of(ext, lamp)
    assert figure.kind == "chain"
    assert figure.bones("tail") == ("Lower", "Upper", "Shade")


NAMELESS = {
    creatures.ogre: "human",
    creatures.fairy: "human",
    creatures.lamia: "human",
    creatures.ostrich: "bird",
    creatures.swan: "bird",
    creatures.tyrant: "two-legged animal",
    creatures.giraffe: "quadruped",
    creatures.giraffe_with_an_end: "quadruped",
    creatures.crocodile: "quadruped",
    creatures.seal: "quadruped",
    creatures.wyvern: "quadruped",
    creatures.hydra: "quadruped",
    creatures.elephant: "quadruped",
    creatures.armed_horse: "quadruped",
    creatures.armed_horse_with_shoulder_blades: "quadruped",
    creatures.mantis: "many-legged animal",
    creatures.ant: "many-legged animal",
    creatures.winged_beetle: "many-legged animal",
}


@pytest.mark.parametrize("make", NAMELESS)
def test_roles_of_creatures_without_names(ext, make):
    """Each bone is called by its role here, and nothing of that is told."""
    figure, told = told_of(ext, make(), named=False)
    wanted = {}
    for bone in make():
        words, _, side = bone.name.partition("_")
        if words.startswith("-"):
            continue
        if side:
            words = (words if "@" in words else f"@ {words}").replace("@", {"L": "left", "R": "right"}[side])
        wanted[bone.name] = words
    assert figure.kind == NAMELESS[make]
    assert told == wanted


@pytest.mark.parametrize("seed", range(4))
def test_fingers_that_begin_at_one_point_have_their_mirror_images(ext, seed):
    """Another finger's image was taken where its name came first, and one wing was a bone longer."""
    roles = ext.module("ccd_rig.blender.figures.recognition")
    bones = roles.rest_bones(rigs.armature(creatures.drake()))
    names = random.Random(seed).sample([bone.name for bone in bones], len(bones))
    new = dict(zip(names, (f"bone.{place:03d}" for place in range(len(names))), strict=True))
    figure = roles.recognise(
        [bone._replace(name=new[bone.name], parent=new.get(bone.parent, "")) for bone in bones]
    )
    back = {name: old for old, name in new.items()}
    left, right = ([back[name] for name in figure.bones("wing", side)] for side in "LR")
    assert len(left) == 4
    assert right == [f"{name[:-2]}_R" for name in left]


def untold(ext, rig):
    module = ext.module("ccd_rig.blender.figures.recognition")
    bones = module.rest_bones(rig)
    return module.untold(module.recognise(bones), bones)


@pytest.mark.parametrize(
    "make",
    [
        creatures.bird,
        creatures.horse,
        creatures.dragon,
        creatures.shark,
        creatures.snake,
        creatures.four_arms,
    ],
)
def test_limbs_whose_names_agree_are_sure(ext, make):
    assert untold(ext, rigs.armature(make())) == ()


@pytest.mark.parametrize("kind", rigs.METARIGS)
def test_metarigs_are_sure(ext, kind):
    assert untold(ext, rigs.metarig(kind)) == ()


def test_a_limb_that_no_name_tells_is_named(ext):
    assert untold(ext, rigs.armature(creatures.dog())) == ("caudal_4",)
    rig = rigs.metarig("cat")
    for number, bone in enumerate(rig.data.bones):
        bone.name = f"Bone.{number:03d}"
    for bone in rig.pose.bones:
        bone.rigify_type = ""
    assert len(untold(ext, rig)) == 8  # four legs, two shoulders, head, tail


def test_a_name_of_the_other_side_does_not_agree(ext):
    roles = ext.module("ccd_rig.blender.figures.recognition")
    role = ext.module("ccd_rig.blender.figures.role")
    foot = role.Role(role.Part.FOOT, role.Side.LEFT)
    for name, told in (("foot_L", ()), ("foot_R", ("foot_R",)), ("foot", ("foot",))):
        figure = role.Figure(role.Kind.QUADRUPED, {name: foot})
        assert roles.untold(figure, ()) == told
