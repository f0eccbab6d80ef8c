# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone names of common human rigs, by family, from hips to toes."""

from typing import NamedTuple


class Family(NamedTuple):
    """Names of the bones of a family of rigs; empty for missing bones. "{}" is the place of the side.

    Attributes:
        name: of the family. Bones' names are compared without name space and case.
        sides: words for left and right.
        spine: from above the hips to the chest.
    """

    name: str
    sides: tuple[str, str]
    hips: str
    spine: tuple[str, ...]
    neck: str
    head: str
    shoulder: str
    upper_arm: str
    lower_arm: str
    hand: str
    thigh: str
    shin: str
    foot: str
    toe: str


LETTERS, SMALL, WORDS = ("L", "R"), ("l", "r"), ("Left", "Right")
_HUMAN_IK = ("{}Shoulder", "{}Arm", "{}ForeArm", "{}Hand", "{}UpLeg", "{}Leg", "{}Foot", "{}ToeBase")
_RIGIFY_LEG = ("thigh.{}", "shin.{}", "foot.{}", "toe.{}")
_UNREAL = (
    "clavicle_{}",
    "upperarm_{}",
    "lowerarm_{}",
    "hand_{}",
    "thigh_{}",
    "calf_{}",
    "foot_{}",
    "ball_{}",
)

FAMILIES = (
    Family(
        "Rigify metarig",
        LETTERS,
        "spine",
        ("spine.001", "spine.002", "spine.003"),
        "spine.004",
        "spine.006",
        *("shoulder.{}", "upper_arm.{}", "forearm.{}", "hand.{}"),
        *_RIGIFY_LEG,
    ),
    Family("Mixamo or HumanIK", WORDS, "Hips", ("Spine", "Spine1", "Spine2"), "Neck", "Head", *_HUMAN_IK),
    Family("Unreal", SMALL, "pelvis", ("spine_01", "spine_02", "spine_03"), "neck_01", "head", *_UNREAL),
    Family("Unreal 5", SMALL, "pelvis", ("spine_01", "spine_03", "spine_05"), "neck_01", "head", *_UNREAL),
    Family(
        "VRoid",
        LETTERS,
        "J_Bip_C_Hips",
        ("J_Bip_C_Spine", "J_Bip_C_Chest", "J_Bip_C_UpperChest"),
        "J_Bip_C_Neck",
        "J_Bip_C_Head",
        *("J_Bip_{}_Shoulder", "J_Bip_{}_UpperArm", "J_Bip_{}_LowerArm", "J_Bip_{}_Hand"),
        *("J_Bip_{}_UpperLeg", "J_Bip_{}_LowerLeg", "J_Bip_{}_Foot", "J_Bip_{}_ToeBase"),
    ),
    Family(
        "MMD",
        ("左", "右"),
        "下半身",
        ("上半身", "上半身2"),
        "首",
        "頭",
        *("{}肩", "{}腕", "{}ひじ", "{}手首", "{}足", "{}ひざ", "{}足首", "{}つま先"),
    ),
    Family(
        "MMD Tools",
        LETTERS,
        "下半身",
        ("上半身", "上半身2"),
        "首",
        "頭",
        *("肩.{}", "腕.{}", "ひじ.{}", "手首.{}", "足.{}", "ひざ.{}", "足首.{}", "つま先.{}"),
    ),
    Family(
        "MPFB",
        LETTERS,
        "root",
        ("spine04", "spine03", "spine02"),
        "neck01",
        "head",
        *("shoulder01.{}", "upperarm01.{}", "lowerarm01.{}", "wrist.{}"),
        *("upperleg01.{}", "lowerleg01.{}", "foot.{}", ""),
    ),
    Family(
        "MakeHuman",
        LETTERS,
        "Hips",
        ("Spine1", "Spine2", "Spine3"),
        "Neck",
        "Head",
        *("Clavicle_{}", "UpArm_{}", "LoArm_{}", "Hand_{}", "UpLeg_{}", "LoLeg_{}", "Foot_{}", "Toe_{}"),
    ),
    Family(
        "Reallusion",
        LETTERS,
        "CC_Base_Hip",
        ("CC_Base_Waist", "CC_Base_Spine01", "CC_Base_Spine02"),
        "CC_Base_NeckTwist01",
        "CC_Base_Head",
        *("CC_Base_{}_Clavicle", "CC_Base_{}_Upperarm", "CC_Base_{}_Forearm", "CC_Base_{}_Hand"),
        *("CC_Base_{}_Thigh", "CC_Base_{}_Calf", "CC_Base_{}_Foot", "CC_Base_{}_ToeBase"),
    ),
    Family(
        "Biped",
        LETTERS,
        "Bip001 Pelvis",
        ("Bip001 Spine", "Bip001 Spine1", "Bip001 Spine2"),
        "Bip001 Neck",
        "Bip001 Head",
        *("Bip001 {} Clavicle", "Bip001 {} UpperArm", "Bip001 {} Forearm", "Bip001 {} Hand"),
        *("Bip001 {} Thigh", "Bip001 {} Calf", "Bip001 {} Foot", "Bip001 {} Toe0"),
    ),
    Family(
        "Daz",
        SMALL,
        "hip",
        ("abdomenLower", "abdomenUpper", "chestLower"),
        "neckLower",
        "head",
        *("{}Collar", "{}ShldrBend", "{}ForearmBend", "{}Hand", "{}ThighBend", "{}Shin", "{}Foot", "{}Toe"),
    ),
    Family("CMU", WORDS, "Hips", ("LowerBack", "Spine", "Spine1"), "Neck", "Head", *_HUMAN_IK),
)
