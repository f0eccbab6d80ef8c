"""Humans with the names of each family, and figures without names."""

from __future__ import annotations

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
    return ext.module("ccd_rig.blender.figures.recognition").recognise(bones, generated)


def words_of(figure):
    """Role in words by bone."""
    return {name: role.words() for name, role in figure.roles.items()}


def nameless(bones):
    """The same bones called bone.000, bone.001..., with the way back; Rigify's marks are taken away too."""
    names = {bone.name: f"bone.{place:03d}" for place, bone in enumerate(bones)}
    renamed = [
        bone._replace(name=names[bone.name], parent=names.get(bone.parent, ""), rigify_type="")
        for bone in bones
    ]
    return renamed, {new: old for old, new in names.items()}
