"""A visit to a real Blender window: whole figures from an open file to their first bake, clicks counted."""

from __future__ import annotations

import pytest
from visits import colours, photographs, saw

SCRIPT = "drive_figures.py"
SIZE = (1600, 1050)  # down to Feet and Contacts
REACHED = 2e-3  # [m]
CLICKS = {"tail": 5, "human": 6, "cat": 6, "spider": 6}
FEET = {"human": 2, "cat": 4, "spider": 8}
MOVED = 0.05  # [m]
# A visit -> the feet that are clicked, and how many clicks there are beside these: a bone of the rig or Set
# Up Figure, the tab, a header, Plant Selected Feet and Bake.
PLANTED = {
    "planted": (["foot.L", "foot.R"], 5),
    "planted_quadruped": (["front_toe.L", "front_toe.R", "toe.L", "toe.R"], 5),
    "planted_spider": ([f"foot{leg}.{side}" for leg in range(4) for side in "LR"], 5),
}
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
def test_knees_and_elbows_bend_as_they_do_at_rest(visit, name):
    sides = saw(visit, name)["sides"]
    assert sides
    assert min(sides.values()) > 0.9


@pytest.mark.parametrize("name", DRAGGED)
def test_a_click_on_a_target_chooses_it(visit, name):
    assert saw(visit, f"chosen_{name}")["name"] == DRAGGED[name]


@pytest.mark.parametrize("name", PLANTED)
def test_feet_that_are_clicked_are_planted_and_stand(visit, name):
    feet, others = PLANTED[name]
    chosen, step = saw(visit, f"{name}_selected"), saw(visit, name)
    assert chosen["selected"] == sorted(feet)
    assert {step["kinds"][foot] for foot in feet} == {"PLANT"}
    assert step["words"].startswith("12 of 12 frames reached"), step["words"]
    assert step["slips"] < REACHED
    # Without the bake they go along with an animated body; that of the human is still to be moved.
    assert (step["moved"] > MOVED) == (name != "planted")
    assert step["clicks"] == len(feet) + others


def test_hips_of_a_set_up_figure_go_down_over_planted_feet(visit):
    assert saw(visit, "planted_drop")["drop"] == pytest.approx(0.25, abs=REACHED)
