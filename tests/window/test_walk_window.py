"""A visit to a real Blender window: a cycle along a curve over hills and stairs, by the panel Walk Along."""

from __future__ import annotations

import pytest
from visits import colours, photographs, saw

SCRIPT = "drive_walk.py"


def test_curve_and_ground_are_chosen_by_typing(visit):
    assert saw(visit, "kind")["kind"] == "OBJECT"
    assert saw(visit, "chosen") == {"curve": "Path", "ground": "Terrain"}


def test_a_click_walks_along_and_tells_how_it_went(visit):
    step = saw(visit, "walked")
    assert step["action"] == "Walk along Path"
    assert step["cycle"] == "Walk"
    assert "footfalls" in step["report"][0]
    assert any(line.startswith("On stairs and in bends steps are") for line in step["report"])
    assert any(line == "Knees bend to the other side in 0 frames" for line in step["report"])
    assert min(step["soles"]) > 0.0
    assert sum(sole < 0.06 for sole in step["soles"]) > 0.4 * len(step["soles"])


def test_a_second_click_takes_the_place_of_the_first(visit):
    first, again = saw(visit, "walked"), saw(visit, "again")
    assert again["actions"] == first["actions"]
    assert again["action"] == first["action"]
    assert again["report"][0].endswith("instead of the walk made before")


def test_it_is_one_step_of_undo(visit):
    assert saw(visit, "undone")["actions"] == saw(visit, "walked")["actions"]


def test_esc_in_the_middle_leaves_the_walk_before_as_it_was(visit):
    step = saw(visit, "escaped")
    assert step["running"]
    assert step["delay"] < 5.0
    assert step["same"]
    assert step["scenes"] == 1


@pytest.mark.parametrize("name", ["panel", "chosen", "walked", "above", "stands", "german"])
def test_photographs_are_not_empty(visit, name):
    assert colours(photographs(SCRIPT) / f"{name}.png") > 500
