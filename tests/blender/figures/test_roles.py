"""Which bone is what: by the names of each family, on Rigify's rigs, and where names tell nothing."""

from __future__ import annotations

import pytest
import rigs
from mathutils import Euler, Vector
from rigs import B

HUMAN = (
    *("hips", "spine", "neck", "head", "left shoulder", "left upper arm", "left lower arm", "left hand"),
    *("left thigh", "left shin", "left foot", "left toe", "right shoulder", "right hand", "right foot"),
)
# What each family calls the bones of HUMAN, in that order; empty where it has none.
FAMILIES = {
    "Rigify metarig": "spine|spine.001|spine.004|spine.006|shoulder.L|upper_arm.L|forearm.L|hand.L|thigh.L"
    "|shin.L|foot.L|toe.L|shoulder.R|hand.R|foot.R",
    "Mixamo or HumanIK": "mixamorig:Hips|mixamorig:Spine|mixamorig:Neck|mixamorig:Head|mixamorig:LeftShoulder"
    "|mixamorig:LeftArm|mixamorig:LeftForeArm|mixamorig:LeftHand|mixamorig:LeftUpLeg|mixamorig:LeftLeg"
    "|mixamorig:LeftFoot|mixamorig:LeftToeBase|mixamorig:RightShoulder|mixamorig:RightHand"
    "|mixamorig:RightFoot",
    "Mixamo or HumanIK, numbered": "mixamorig7:Hips|mixamorig7:Spine|mixamorig7:Neck|mixamorig7:Head"
    "|mixamorig7:LeftShoulder|mixamorig7:LeftArm|mixamorig7:LeftForeArm|mixamorig7:LeftHand"
    "|mixamorig7:LeftUpLeg|mixamorig7:LeftLeg|mixamorig7:LeftFoot|mixamorig7:LeftToeBase"
    "|mixamorig7:RightShoulder|mixamorig7:RightHand|mixamorig7:RightFoot",
    "Unreal": "pelvis|spine_01|neck_01|head|clavicle_l|upperarm_l|lowerarm_l|hand_l|thigh_l|calf_l|foot_l"
    "|ball_l|clavicle_r|hand_r|foot_r",
    "VRoid": "J_Bip_C_Hips|J_Bip_C_Spine|J_Bip_C_Neck|J_Bip_C_Head|J_Bip_L_Shoulder|J_Bip_L_UpperArm"
    "|J_Bip_L_LowerArm|J_Bip_L_Hand|J_Bip_L_UpperLeg|J_Bip_L_LowerLeg|J_Bip_L_Foot|J_Bip_L_ToeBase"
    "|J_Bip_R_Shoulder|J_Bip_R_Hand|J_Bip_R_Foot",
    "MMD": "下半身|上半身|首|頭|左肩|左腕|左ひじ|左手首|左足|左ひざ|左足首|左つま先|右肩|右手首|右足首",
    "MMD Tools": "下半身|上半身|首|頭|肩.L|腕.L|ひじ.L|手首.L|足.L|ひざ.L|足首.L|つま先.L|肩.R|手首.R|足首.R",
    "MPFB": "root|spine04|neck01|head|shoulder01.L|upperarm01.L|lowerarm01.L|wrist.L|upperleg01.L"
    "|lowerleg01.L|foot.L||shoulder01.R|wrist.R|foot.R",
    "MakeHuman": "Hips|Spine1|Neck|Head|Clavicle_L|UpArm_L|LoArm_L|Hand_L|UpLeg_L|LoLeg_L|Foot_L|Toe_L"
    "|Clavicle_R|Hand_R|Foot_R",
    "Reallusion": "CC_Base_Hip|CC_Base_Waist|CC_Base_NeckTwist01|CC_Base_Head|CC_Base_L_Clavicle"
    "|CC_Base_L_Upperarm|CC_Base_L_Forearm|CC_Base_L_Hand|CC_Base_L_Thigh|CC_Base_L_Calf|CC_Base_L_Foot"
    "|CC_Base_L_ToeBase|CC_Base_R_Clavicle|CC_Base_R_Hand|CC_Base_R_Foot",
    "Biped": "Bip001 Pelvis|Bip001 Spine|Bip001 Neck|Bip001 Head|Bip001 L Clavicle|Bip001 L UpperArm"
    "|Bip001 L Forearm|Bip001 L Hand|Bip001 L Thigh|Bip001 L Calf|Bip001 L Foot|Bip001 L Toe0"
    "|Bip001 R Clavicle|Bip001 R Hand|Bip001 R Foot",
    "Daz": "hip|abdomenLower|neckLower|head|lCollar|lShldrBend|lForearmBend|lHand|lThighBend|lShin|lFoot"
    "|lToe|rCollar|rHand|rFoot",
    "CMU": "Hips|LowerBack|Neck|Head|LeftShoulder|LeftArm|LeftForeArm|LeftHand|LeftUpLeg|LeftLeg|LeftFoot"
    "|LeftToeBase|RightShoulder|RightHand|RightFoot",
    "Mixamo or HumanIK, bare": "Hips|Spine|Neck|Head|LeftShoulder|LeftArm|LeftForeArm|LeftHand|LeftUpLeg"
    "|LeftLeg|LeftFoot|LeftToeBase|RightShoulder|RightHand|RightFoot",
    "": "Waist|Torso_jnt|Neck_jnt|Head_jnt|Clavicle_Lft|Upper_Arm_Lft|Elbow_Lft|Wrist_Lft|Upper_Leg_Lft"
    "|Knee_Lft|Ankle_Lft|Ball_Lft|Clavicle_Rgt|Wrist_Rgt|Ankle_Rgt",
}
# What names write for left and right.
SIDES = (
    *(("Left", "Right"), ("Lft", "Rgt"), ("左", "右"), ("_L_", "_R_"), (" L ", " R "), (".L", ".R")),
    *(("_L", "_R"), ("_l", "_r"), ("l", "r")),
)


def other_side(name):
    left, right = next(each for each in SIDES if each[0] in name)
    return name.replace(left, right, 1)


def points():
    """A human that looks along -Y with its arms out: where each bone of HUMAN's left and middle lies."""
    return {
        "hips": ((0, 0, 1.0), (0, 0, 1.15)),
        "spine": ((0, 0, 1.15), (0, 0, 1.5)),
        "neck": ((0, 0, 1.5), (0, 0, 1.6)),
        "head": ((0, 0, 1.6), (0, 0, 1.8)),
        "left shoulder": ((0.03, 0, 1.45), (0.2, 0, 1.45)),
        "left upper arm": ((0.2, 0, 1.45), (0.48, 0, 1.45)),
        "left lower arm": ((0.48, 0, 1.45), (0.74, 0, 1.45)),
        "left hand": ((0.74, 0, 1.45), (0.9, 0, 1.45)),
        "left thigh": ((0.1, 0, 0.95), (0.1, 0, 0.5)),
        "left shin": ((0.1, 0, 0.5), (0.1, 0.03, 0.08)),
        "left foot": ((0.1, 0.03, 0.08), (0.1, -0.1, 0.02)),
        "left toe": ((0.1, -0.1, 0.02), (0.1, -0.2, 0.02)),
    }


def human(ext, names):
    """The rest bones of a human with these names for HUMAN's bones."""
    rest_bone = ext.module("ccd_rig.blender.figures.role").RestBone
    called = dict(zip(HUMAN, names.split("|"), strict=True))
    above = {
        "spine": "hips",
        "neck": "spine",
        "head": "neck",
        "left shoulder": "spine",
        "left upper arm": "left shoulder",
        "left lower arm": "left upper arm",
        "left hand": "left lower arm",
        "left thigh": "hips",
        "left shin": "left thigh",
        "left foot": "left shin",
        "left toe": "left foot",
    }
    bones = []
    for role, (head, tail) in points().items():
        name, parent = called[role], called.get(above.get(role, ""), "")
        if not name:
            continue
        bones.append(rest_bone(name, parent, head, tail))
        if role.startswith("left"):
            middle = not above[role].startswith("left")
            bones.append(
                rest_bone(
                    other_side(name),
                    parent if middle else other_side(parent),
                    (-head[0], *head[1:]),
                    (-tail[0], *tail[1:]),
                )
            )
    return bones, called


def recognise(ext, bones, generated=False):
    return ext.module("ccd_rig.blender.figures.roles").recognise(bones, generated)


def words_of(figure):
    """Role in words by bone."""
    return {name: role.words() for name, role in figure.roles.items()}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_known_by_its_names(ext, family):
    bones, called = human(ext, FAMILIES[family])
    figure = recognise(ext, bones)
    assert (figure.kind, figure.family) == ("human", family.partition(",")[0])
    told = words_of(figure)
    assert {name: told.get(name) for name in called.values() if name} == {
        name: role for role, name in called.items() if name
    }


@pytest.mark.parametrize("family", ["Mixamo or HumanIK", "VRoid", "MMD", "Biped", "Daz", "Unreal"])
def test_a_bone_knows_the_one_across(ext, family):
    bones, called = human(ext, FAMILIES[family])
    figure = recognise(ext, bones)
    for part in ("shoulder", "hand", "foot"):
        assert figure.partner(called[f"left {part}"]) == called[f"right {part}"]
        assert figure.partner(called[f"right {part}"]) == called[f"left {part}"]
    assert figure.partner(called["head"]) == called["head"]
    assert figure.partner("no such bone") == ""


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("hand.L", "hand.R"),
        ("mixamorig:LeftArm", "mixamorig:RightArm"),
        ("J_Bip_L_Hand", "J_Bip_R_Hand"),
        ("左手首", "右手首"),
        ("Bip01 L Hand", "Bip01 R Hand"),
        ("handL", "handR"),
        ("lHand", "rHand"),
        ("r_toe.L", "r_toe.R"),
        ("upperarm_l", "upperarm_r"),
        ("Wing.001.R", "Wing.001.L"),
        ("spine.001", "spine.001"),
    ],
)
def test_names_across(ext, name, other):
    across = ext.module("ccd_rig.blender.figures.words").across
    assert across(name) == other
    assert across(other) == name


def nameless(bones):
    """The same bones called bone.000, bone.001..., with the way back; Rigify's marks are taken away too."""
    names = {bone.name: f"bone.{place:03d}" for place, bone in enumerate(bones)}
    renamed = [
        bone._replace(name=names[bone.name], parent=names.get(bone.parent, ""), rigify_type="")
        for bone in bones
    ]
    return renamed, {new: old for old, new in names.items()}


def test_a_human_without_names_by_its_structure(ext):
    bones, called = human(ext, FAMILIES["Mixamo or HumanIK"])
    renamed, back = nameless(bones)
    figure = recognise(ext, renamed)
    told = {back[name]: words for name, words in words_of(figure).items()}
    assert figure.kind == "human"
    assert {name: told.get(name) for name in called.values()} == {n: role for role, n in called.items()}


@pytest.mark.parametrize("turn", [(1.5707963, 0.0, 0.0), (-1.5707963, 3.1415926, 0.0)])
def test_a_human_whose_bones_point_up_by_y(ext, turn):
    """Imported bones may keep the axes of another program. Their sides are told all the same."""
    bones, called = human(ext, FAMILIES["Mixamo or HumanIK"])
    rotation = Euler(turn).to_matrix()
    bones = [
        bone._replace(head=tuple(rotation @ Vector(bone.head)), tail=tuple(rotation @ Vector(bone.tail)))
        for bone in bones
    ]
    renamed, back = nameless(bones)
    told = {back[name]: words for name, words in words_of(recognise(ext, renamed)).items()}
    assert told[called["left hand"]] == "left hand"
    assert told[called["right foot"]] == "right foot"


# --- animals ------------------------------------------------------------------------------------------------

CAT = {
    "spine": "hips",
    "spine.003": "spine 3",
    "spine.005": "neck 2",
    "spine.006": "head",
    "tail.001": "tail",
    "tail.004": "tail 4",
    "shoulder.L": "left shoulder",
    "upper_arm.L": "left front thigh",
    "forearm.R": "right front shin",
    "hand.L": "left front foot",
    "f_toe.R": "right front toe",
    "pelvis.L": "left pelvis",
    "thigh.L": "left thigh",
    "shin.R": "right shin",
    "foot.L": "left foot",
    "r_toe.R": "right toe",
}
WOLF = {
    "spine.004": "hips",
    "spine.008": "spine 4",
    "spine.011": "head",
    "spine.003": "tail",
    "spine": "tail 4",
    "front_thigh.L": "left front thigh",
    "front_foot.R": "right front foot",
    "thigh.R": "right thigh",
    "foot.L": "left foot",
    "toe.L": "left toe",
}
HORSE = {
    "spine.001": "hips",
    "spine.005": "spine 4",
    "head": "head",
    "tail.005": "tail 5",
    "shoulder.R": "right shoulder",
    "upper_arm.L": "left front thigh",
    "forefoot.L": "left front foot",
    "lower_leg.L": "left shin",
    "hind_foot.R": "right foot",
    "r_hoof.R": "right toe 2",
}
BIRD = {
    "spine.003": "hips",
    "spine.005": "spine 2",
    "head": "head",
    "spine.002": "tail",
    "thigh.L": "left thigh",
    "foot.R": "right foot",
    "Wing.L": "left wing 2",
    "Wing.002.R": "right wing 4",
}
SHARK = {
    "spine.003": "hips",
    "spine.005": "spine 3",
    "spine.007": "head",
    "spine.002": "tail",
    "side_fin.L": "left wing 2",
}
METARIG_HUMAN = {
    "spine": "hips",
    "spine.003": "spine 3",
    "spine.006": "head",
    "shoulder.L": "left shoulder",
    "forearm.R": "right lower arm",
    "hand.L": "left hand",
    "shin.R": "right shin",
    "toe.L": "left toe",
}
METARIGS = {
    "human": ("human", METARIG_HUMAN),
    "basic_human": ("human", METARIG_HUMAN),
    "basic_quadruped": ("quadruped", WOLF),
    "wolf": ("quadruped", WOLF),
    "cat": ("quadruped", CAT),
    "horse": ("quadruped", HORSE),
    "bird": ("bird", BIRD),
    "shark": ("fish", SHARK),
}


@pytest.mark.parametrize("kind", METARIGS)
def test_metarigs_with_their_names_and_without(ext, kind):
    """The cat's bones are named as a human's: what Rigify says of its paws comes first."""
    expected_kind, expected = METARIGS[kind]
    roles = ext.module("ccd_rig.blender.figures.roles")
    bones = roles.rest_bones(rigs.metarig(kind))
    figure = roles.recognise(bones)
    assert figure.kind == expected_kind
    told = words_of(figure)
    assert {name: told.get(name) for name in expected} == expected
    renamed, back = nameless(bones)
    bare = roles.recognise(renamed)
    assert bare.kind == expected_kind
    assert bare.family == ""
    told = {back[name]: words for name, words in words_of(bare).items()}
    assert {name: told.get(name) for name in expected} == expected


@pytest.mark.parametrize("kind", METARIGS)
def test_no_two_bones_have_the_same_role(ext, kind):
    roles = ext.module("ccd_rig.blender.figures.roles")
    bones = roles.rest_bones(rigs.metarig(kind))
    for each in (bones, nameless(bones)[0]):
        found = list(roles.recognise(each).roles.values())
        assert len(found) == len(set(found))


GENERATED = {
    "basic_human": (
        "human",
        {
            "torso": "hips",
            "spine_fk.003": "spine 3",
            "head": "head",
            "shoulder.R": "right shoulder",
            "upper_arm_fk.L": "left upper arm",
            "forearm_fk.L": "left lower arm",
            "hand_fk.R": "right hand",
            "shin_fk.L": "left shin",
            "foot_fk.R": "right foot",
            "toe_fk.L": "left toe",
        },
    ),
    "basic_quadruped": (
        "quadruped",
        {
            "torso": "hips",
            "spine_fk.008": "spine 4",
            "spine.003": "tail",
            "spine": "tail 4",
            "front_thigh_fk.L": "left front thigh",
            "front_foot_fk.R": "right front foot",
            "shin_fk.L": "left shin",
            "foot_fk.R": "right foot",
            "toe.L": "left toe",
        },
    ),
}


@pytest.mark.parametrize("kind", GENERATED)
def test_generated_rigs_by_their_fk_controls(ext, kind):
    expected_kind, expected = GENERATED[kind]
    generated = rigs.generated(kind)
    roles = ext.module("ccd_rig.blender.figures.roles")
    figure = roles.figure_of(generated)
    assert (figure.kind, figure.family) == (expected_kind, "Rigify")
    told = words_of(figure)
    assert {name: told.get(name) for name in expected} == expected
    assert [name for name in told if name.startswith(("ORG-", "DEF-", "MCH-"))] == []
    assert roles.mirror_partner(generated, "DEF-thigh.L") == "DEF-thigh.R"


@pytest.mark.parametrize("pairs", [3, 4])
def test_a_spider_by_its_legs(ext, pairs):
    roles = ext.module("ccd_rig.blender.figures.roles")
    bones = roles.rest_bones(rigs.armature(rigs.spider(pairs)))
    renamed, back = nameless(bones)
    figure = roles.recognise(renamed)
    told = {back[name]: words for name, words in words_of(figure).items()}
    assert figure.kind == "many-legged animal"
    assert told["body"] == "hips"
    assert told["leg0_0.L"] == "left leg"
    assert told["leg0_3.R"] == "right leg 4"
    assert told[f"leg{pairs - 1}_0.L"] == f"left leg {pairs}"
    assert sum(" leg" in words for words in told.values()) == pairs * 8


def test_a_tail_is_one_chain(ext):
    roles = ext.module("ccd_rig.blender.figures.roles")
    figure = roles.figure_of(rigs.chain(7))
    assert figure.kind == "chain"
    assert figure.bones("tail") == tuple(f"bone_{i}" for i in range(7))


def test_what_is_no_figure_is_unknown(ext):
    """Two chains of which no one is the mirror image of the other, and a lone bone."""
    roles = ext.module("ccd_rig.blender.figures.roles")
    crane = [B("base", (0, 0, 0), (0, 0, 1)), B("arm", (0, 0, 1), (1, 0.2, 1), "base")]
    crane += [B("hook", (1, 0.2, 1), (1, 0.2, 0.3), "arm"), B("ballast", (0, 0, 1), (-0.4, 0.1, 0.9), "base")]
    for bones in (crane, crane[:1]):
        figure = roles.figure_of(rigs.armature(bones))
        assert (figure.kind, dict(figure.roles)) == ("unknown", {})


def test_a_rig_with_controls_is_read_by_its_deforming_bones(ext):
    """Targets and poles that deform nothing take no part."""
    rig = rigs.armature([*rigs.biped(), B("IK foot", (0.4, 0.6, 0.1), (0.4, 0.8, 0.1), "root")])
    rig.data.bones["IK foot"].use_deform = False
    rig.data.bones["root"].use_deform = False
    told = ext.module("ccd_rig.blender.figures.roles").roles_of(rig)
    assert "IK foot" not in told
    assert told["foot.L"].words() == "left foot"


def test_an_object_lying_on_its_side_is_turned_upright(ext):
    """As FBX and glTF files come in: bones point up by Y, and the object is turned by 90 degrees."""
    names = {bone.name: f"bone {place}" for place, bone in enumerate(rigs.biped())}
    lying = [
        B(names[b.name], (b.head[0], b.head[2], -b.head[1]), (b.tail[0], b.tail[2], -b.tail[1]), parent)
        for b in rigs.biped()
        for parent in [names.get(b.parent, "")]
    ]
    rig = rigs.armature(lying)
    rig.rotation_euler = (1.5707963, 0.0, 0.0)
    rigs.update()
    told = ext.module("ccd_rig.blender.figures.roles").roles_of(rig)
    assert told[names["foot.L"]].words() == "left foot"
    assert told[names["toe.R"]].words() == "right toe"
