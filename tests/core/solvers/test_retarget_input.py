"""What a retargeting refuses, and by which name."""

from __future__ import annotations

import dataclasses

import bipeds
import numpy as np
import pytest

from ccd_rig.errors import InvalidInput
from ccd_rig.motion.retargeting.figures import FigureMap, Limb, TargetFigure
from ccd_rig.motion.retargeting.settings import RetargetSettings
from ccd_rig.solvers.retarget import retarget

FREE = RetargetSettings(contacts=False)
MAP = bipeds.figure_map()


@pytest.fixture(scope="module")
def figure():
    return bipeds.skeleton()


@pytest.fixture(scope="module")
def moving(figure):
    return bipeds.turns(figure, 40)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sources": {}}, "at least hips and legs"),
        ({"hips": "pelvis"}, "the hips 'pelvis' follow nothing"),
        ({"legs": ()}, "no legs"),
        ({"head": "hat"}, "joint 'hat' follows nothing"),
    ],
)
def test_maps_that_make_no_sense_are_refused_by_name(changes, words):
    fields = {field.name: getattr(MAP, field.name) for field in dataclasses.fields(MAP) if field.init}
    with pytest.raises(InvalidInput, match=words):
        FigureMap(**{**fields, **changes})


def test_maps_that_do_not_fit_the_figures_are_refused_by_name(figure, moving):
    source = bipeds.source_of(figure, *moving)
    target = TargetFigure.at_rest(figure)
    wrong = dataclasses.replace(MAP, sources={**MAP.sources, "hand.L": "claw"})
    with pytest.raises(InvalidInput, match=r"no joint 'claw', which 'hand\.L' follows"):
        retarget(wrong, target, source)
    for upper, middle in (("shin.L", "thigh.L"), ("thigh.R", "shin.L")):  # crossed; of two legs
        limb = Limb("left leg", upper, middle, "foot.L", "toe.L")
        with pytest.raises(InvalidInput, match=f"left leg: {upper}, {middle}, .* do not hang on each other"):
            retarget(dataclasses.replace(MAP, legs=(limb, MAP.legs[1])), target, source)


def test_limbs_without_length_are_refused(figure, moving):
    """A source whose arm lies in one point, and a target whose arm does."""
    source, target = bipeds.source_of(figure, *moving), TargetFigure.at_rest(figure)
    heads = source.reference_heads.copy()
    arm = [source.names.index(name) for name in ("upper_arm.L", "forearm.L", "hand.L")]
    heads[arm] = heads[arm[0]]
    flat = dataclasses.replace(source, reference_heads=heads)
    with pytest.raises(InvalidInput, match="left arm: the source's has no length"):
        retarget(MAP, target, flat, FREE)
    offsets = {name: {"offset": (0.0, 0.0, 0.0)} for name in ("forearm.L", "hand.L")}
    short = TargetFigure.at_rest(figure.replace(offsets))
    with pytest.raises(InvalidInput, match="left arm: the target's has no length"):
        retarget(MAP, short, source, FREE)


def test_numbers_that_are_none_are_refused_by_joint(figure, moving):
    source = bipeds.source_of(figure, *moving)
    heads = source.heads.copy()
    heads[3, 5, 1] = np.nan
    with pytest.raises(InvalidInput, match=f"joint '{source.names[5]}': heads of the source at frame 3"):
        dataclasses.replace(source, heads=heads)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("feet", 1.5), ("feet", (0.5, 1.5)), ("hands", (1.0, np.nan)), ("knees", (1.0, 0.0, 1.0))),
        *(("head", (1.0, 0.0)), ("blend", -1.0), ("extension", 0.2), ("scale", np.nan)),
    ],
)
def test_settings_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(InvalidInput, match=f"^{field} must be"):
        RetargetSettings(**{field: value})
