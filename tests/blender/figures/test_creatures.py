"""Animals and monsters whose rigs are built otherwise than Rigify's: with their names."""

from __future__ import annotations

import creatures
import rigs
from named_humans import words_of


def figure_of(ext, bones):
    return ext.module("ccd_rig.blender.figures.roles").figure_of(rigs.armature(bones))


def test_a_spider_whose_legs_hang_on_side_anchors(ext):
    figure = figure_of(ext, creatures.anchored_spider())
    told = words_of(figure)
    assert figure.kind == "many-legged animal"
    assert (told["Body"], told["Head"]) == ("hips", "head")
    assert [told[f"Leg{leg}_1_L"] for leg in "ABCD"] == ["left leg", *(f"left leg {n}" for n in (2, 3, 4))]
    assert told["LegD_4_R"] == "right leg 4 4"
    assert sum(" leg" in words for words in told.values()) == 32
    assert not {"Anchor_L", "Anchor_R", "root"} & set(told)
