"""Which bone of Rigify's figures is what, with their names and without; spiders, tails and what is none."""

from __future__ import annotations

import pytest
import rigs
from named_humans import nameless, words_of
from rigs import B

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
    roles = ext.module("ccd_rig.blender.figures.recognition")
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
    roles = ext.module("ccd_rig.blender.figures.recognition")
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
    "bird": (
        "bird",
        {
            "torso": "hips",
            "spine_fk.005": "spine 2",
            "neck": "neck",
            "head": "head",
            "spine": "tail 3",
            "shoulder.L": "left wing",
            "Wing.002.R": "right wing 4",
            "shin_fk.L": "left shin",
            "foot_fk.R": "right foot",
        },
    ),
    "horse": (
        "quadruped",
        {
            "torso": "hips",
            "spine_fk.005": "spine 4",
            "head": "head",
            "tail.005": "tail 5",
            "shoulder.L": "left shoulder",
            "forearm_fk.L": "left front shin",
            "f_hoof.R": "right front toe 2",
            "lower_leg_fk.L": "left shin",
            "hind_foot_fk.R": "right foot",
        },
    ),
    "shark": (
        "fish",
        {
            "torso": "hips",
            "spine_fk.008": "spine",
            "neck": "neck",
            "head": "head",
            "spine": "tail 3",
            "side_fin.L.001": "left wing 3",
        },
    ),
}
QUICK = ("basic_human", "basic_quadruped")


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.mass) for kind in GENERATED]
)
def test_generated_rigs_by_their_fk_controls(ext, kind):
    expected_kind, expected = GENERATED[kind]
    generated = rigs.generated(kind)
    roles = ext.module("ccd_rig.blender.figures.recognition")
    figure = roles.figure_of(generated)
    assert (figure.kind, figure.family) == (expected_kind, "Rigify")
    told = words_of(figure)
    assert {name: told.get(name) for name in expected} == expected
    assert [name for name in told if name.startswith(("ORG-", "DEF-", "MCH-"))] == []
    pair = ("DEF-side_fin.L", "DEF-side_fin.R") if kind == "shark" else ("DEF-thigh.L", "DEF-thigh.R")
    assert roles.partner_in(figure, generated.data.bones.keys(), pair[0]) == pair[1]


@pytest.mark.parametrize("pairs", [3, 4])
def test_a_spider_by_its_legs(ext, pairs):
    roles = ext.module("ccd_rig.blender.figures.recognition")
    bones = roles.rest_bones(rigs.armature(rigs.spider(pairs)))
    renamed, back = nameless(bones)
    figure = roles.recognise(renamed)
    told = {back[name]: words for name, words in words_of(figure).items()}
    assert figure.kind == "many-legged animal"
    assert told["body"] == "hips"
    assert told["leg0_0.L"] == "1st left leg"
    assert told["leg0_3.R"] == "1st right leg, bone 4"
    assert told[f"leg{pairs - 1}_0.L"] == {3: "3rd left leg", 4: "4th left leg"}[pairs]
    assert sum(" leg" in words for words in told.values()) == pairs * 8


def test_a_tail_is_one_chain(ext):
    roles = ext.module("ccd_rig.blender.figures.recognition")
    figure = roles.figure_of(rigs.chain(7))
    assert figure.kind == "chain"
    assert figure.bones("tail") == tuple(f"bone_{i}" for i in range(7))


def test_what_is_no_figure_is_unknown(ext):
    """Two chains of which no one is the mirror image of the other, and a lone bone."""
    roles = ext.module("ccd_rig.blender.figures.recognition")
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
    told = ext.module("ccd_rig.blender.figures.recognition").roles_of(rig)
    assert "IK foot" not in told
    assert told["foot.L"].words() == "left foot"


@pytest.mark.parametrize("way", [1, -1])
def test_an_object_lying_on_its_side_is_turned_upright(ext, way):
    """As FBX and glTF files come in: bones point up by Y, or down, and the object is turned by 90 degrees."""
    names = {bone.name: f"bone {place}" for place, bone in enumerate(rigs.biped())}
    lying = [
        B(names[b.name], *((x, way * z, -way * y) for x, y, z in (b.head, b.tail)), parent)
        for b in rigs.biped()
        for parent in [names.get(b.parent, "")]
    ]
    rig = rigs.armature(lying)
    rig.rotation_euler = (way * 1.5707963, 0.0, 0.0)
    rigs.update()
    told = ext.module("ccd_rig.blender.figures.recognition").roles_of(rig)
    assert told[names["foot.L"]].words() == "left foot"
    assert told[names["toe.R"]].words() == "right toe"
