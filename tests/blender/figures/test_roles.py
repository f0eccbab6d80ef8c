"""Which bone of a human is what: by the names of each family, and where names tell nothing."""

from __future__ import annotations

from itertools import pairwise

import bpy
import pytest
import rigs
from mathutils import Euler, Vector
from named_humans import FAMILIES, human, nameless, recognise, words_of


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_known_by_its_names(ext, family):
    bones, called = human(ext, FAMILIES[family])
    figure = recognise(ext, bones)
    assert (figure.kind, figure.family) == ("human", family.partition(",")[0])
    told = words_of(figure)
    assert {name: told.get(name) for name in called.values() if name} == {
        name: role for role, name in called.items() if name
    }


def test_wings_of_a_human_whose_names_are_known(ext):
    """They were left out; a wing of the nose and what swings are none."""
    bones, _ = human(ext, FAMILIES["Unreal"])
    rest_bone = ext.module("ccd_rig.blender.figures.role").RestBone
    for side, x in (("l", 1.0), ("r", -1.0)):
        for row, parent, count in (
            ("wing", "spine_01", 3),
            ("nose_wing", "head", 2),
            ("cloth_swing", "spine_01", 2),
        ):
            for k in range(count):
                places = [(x * (0.1 + 0.3 * (k + end)), 0.1, 1.4) for end in (0, 1)]
                bones.append(
                    rest_bone(f"{row}_{k}_{side}", f"{row}_{k - 1}_{side}" if k else parent, *places)
                )
        bones.append(rest_bone(f"feather_{side}", f"wing_2_{side}", (x, 0.1, 1.4), (x, 0.4, 1.4)))
    figure = recognise(ext, bones)
    told = words_of(figure)
    assert (figure.kind, figure.family) == ("human", "Unreal")
    assert {name: told[name] for name in told if "wing" in name or "feather" in name} == {
        "wing_0_l": "left wing",
        "wing_1_l": "left wing 2",
        "wing_2_l": "left wing 3",
        "wing_0_r": "right wing",
        "wing_1_r": "right wing 2",
        "wing_2_r": "right wing 3",
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


def test_fingers_that_have_numbers_only(ext):
    """An importer may give the second finger last."""
    bones, called = human(ext, FAMILIES["MPFB"])
    hand = next(bone for bone in bones if bone.name == called["left hand"])
    for number in (1, 5, 4, 2, 3):
        start = (hand.tail[0], 0.1 - 0.03 * number, hand.tail[2])
        end = (hand.tail[0] + 0.05, *start[1:])
        bones.append(hand._replace(name=f"finger{number}-1.L", parent=hand.name, head=start, tail=end))
    told = words_of(recognise(ext, bones))
    assert [told[f"finger{number}-1.L"] for number in range(1, 6)] == [
        f"{count} left finger" for count in ("1st", "2nd", "3rd", "4th", "5th")
    ]


def test_a_thumb_is_the_first_finger(ext):
    """In captures and MakeHuman's rigs for them all other fingers hang on a bone without a number."""
    bones, called = human(ext, FAMILIES["CMU"])
    hand = next(bone for bone in bones if bone.name == called["left hand"])
    base, thumb = (
        hand._replace(name="LeftFingerBase", parent=hand.name),
        hand._replace(name="LThumb", parent=hand.name),
    )
    fingers = hand._replace(name="LeftHandFinger1", parent=base.name)
    told = words_of(recognise(ext, [*bones, base, fingers, thumb]))
    assert told["LThumb"] == "1st left finger"
    assert (told["LeftFingerBase"], told["LeftHandFinger1"]) == ("2nd left finger", "2nd left finger, bone 2")


def test_the_figure_of_the_same_bones_is_recognised_once(ext, monkeypatch):
    recognition = ext.module("ccd_rig.blender.figures.recognition")
    recognise, seen = recognition.recognise, []
    monkeypatch.setattr(recognition, "recognise", lambda *given: seen.append(given) or recognise(*given))
    rig = rigs.armature([*rigs.biped(), rigs.B("counted here", (0, 0, 2.0), (0, 0, 2.1))], "Counted")
    assert recognition.figure_of(rig) == recognition.figure_of(rig)
    rigs.activate(rig)
    assert recognition.figure_of(rig).roles["foot.L"].part.name == "FOOT"
    assert len(seen) == 1
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["foot.L"].tail.x += 0.01
    bpy.ops.object.mode_set(mode="POSE")
    recognition.figure_of(rig)
    assert len(seen) == 2


def test_a_name_across_is_looked_up_among_the_names_not_searched_for(ext):
    recognition = ext.module("ccd_rig.blender.figures.recognition")
    role = ext.module("ccd_rig.blender.figures.role")

    class Names:
        """Names that cannot be gone through."""

        def __contains__(self, name):
            return name in ("hair.L", "hair.R")

    figure = role.Figure(role.Kind.UNKNOWN, {})
    assert recognition.partner_in(figure, Names(), "hair.L") == "hair.R"
    assert recognition.partner_in(figure, Names(), "cape.L") == ""


def test_mirror_images_are_looked_for_among_few_bones(ext):
    """Two chains side by side: places are looked up in proportion to the bones."""
    structure, role = (ext.module(f"ccd_rig.blender.figures.{name}") for name in ("structure", "role"))

    class Places(dict):
        count = 0

        def __getitem__(self, name):
            self.count += 1
            return super().__getitem__(name)

    counts = []
    for length in (50, 100):
        bones = [role.RestBone("root", "", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))]
        for side, x in (("L", 1.0), ("R", -1.0)):
            names = ["root", *(f"link{k}.{side}" for k in range(length))]
            for k, (above, name) in enumerate(pairwise(names)):
                bones.append(role.RestBone(name, above, (x, float(k), 0.0), (x, k + 1.0, 0.0)))
        tree = role.SkeletonTree(bones)
        places = Places(structure.joints(tree))
        _, halves = structure._split(tree, places, Vector((1.0, 0.0, 0.0)), 0.0, 0.02 * length)
        assert all(halves.partners[f"link{k}.L"] == f"link{k}.R" for k in range(length))
        counts.append(places.count)
    assert counts[1] < 2.5 * counts[0]
