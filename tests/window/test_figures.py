"""A visit to a real Blender window: whole figures from an open file to their first bake, clicks counted."""

from __future__ import annotations

import pytest
from visits import colours, photographs, saw

SCRIPT = "drive_figures.py"
REACHED = 2e-3  # [m]
CLICKS = {"tail": 5, "human": 6, "cat": 6, "spider": 6}
FEET = {"human": 2, "cat": 4, "spider": 8}
DRAGGED = {"Tail": "Target tail.007", "RIG-human": "Target hand_fk.L", "cat": "Target f_toe.L"}


@pytest.mark.parametrize("name", CLICKS)
def test_a_newcomer_gets_to_a_good_first_bake_in_few_clicks(visit, name):
    step = saw(visit, name)
    assert step["clicks"] <= CLICKS[name]
    assert step["words"].startswith("12 of 12 frames reached"), step["words"]
    assert step["worst"] < REACHED
    assert step["curves"] > 0
    assert colours(photographs(SCRIPT) / f"{name}_baked.png") > 500


@pytest.mark.parametrize("name", FEET)
def test_all_feet_have_targets(visit, name):
    rows = saw(visit, name)["rows"].values()
    assert sum(tip.startswith(("foot", "r_toe", "f_toe", "leg")) for tip in rows) == FEET[name]


@pytest.mark.parametrize("name", ["human", "cat", "spider"])
def test_knees_and_elbows_bend_towards_their_poles(visit, name):
    step = saw(visit, name)
    assert step["poles"] >= len(step["sides"]) > 0
    assert min(step["sides"].values()) > 0.9


@pytest.mark.parametrize("name", DRAGGED)
def test_a_click_on_a_target_chooses_it(visit, name):
    assert saw(visit, f"chosen_{name}")["name"] == DRAGGED[name]


def test_feet_planted_after_the_set_up_stand_while_the_hips_go_down(visit):
    step = saw(visit, "planted")
    assert {step["kinds"][f"foot.{side}"] for side in "LR"} == {"PLANT"}
    assert step["words"].startswith("12 of 12 frames reached"), step["words"]
    assert step["slips"] < REACHED
    assert step["drop"] == pytest.approx(0.25, abs=REACHED)
