"""A visit to a real Blender window: what stands in the viewport is drawn, and follows the pointer."""

from __future__ import annotations

import pytest
from visits import pixels, saw

SCRIPT = "drive_viewport.py"
ERRORS = ()
RED = "rgb(255,46,31)"
DRAGGED = 1.0  # [degrees] between where the pointer let go and the value


def test_a_handle_is_dragged(visit):
    step = saw(visit, "drag")
    assert step["degrees"] == pytest.approx(45.0, abs=DRAGGED)
    assert step["lower"] == 0.0
    assert saw(visit, "cone")["degrees"] == pytest.approx(70.0, abs=DRAGGED)
    assert saw(visit, "cone_from_above")["degrees"] == pytest.approx(25.0, abs=DRAGGED)


def test_a_drag_is_one_step_of_undo(visit):
    assert saw(visit, "undo")["degrees"] == pytest.approx(90.0, abs=1e-3)
    assert saw(visit, "redo")["degrees"] == pytest.approx(saw(visit, "drag")["degrees"], abs=1e-3)


def test_the_right_button_takes_a_drag_back(visit):
    assert saw(visit, "cancel")["degrees"] == pytest.approx(90.0, abs=1e-3)


def test_ctrl_snaps_and_shift_is_precise(visit):
    assert saw(visit, "snap")["degrees"] == pytest.approx(65.0, abs=1e-3)
    assert saw(visit, "precise")["degrees"] == pytest.approx(88.0, abs=DRAGGED)


def test_a_drag_stops_at_the_other_bound_and_passes_a_half_turn(visit):
    assert saw(visit, "past_the_other")["degrees"] == pytest.approx(0.0, abs=1e-3)
    assert saw(visit, "past_a_half_turn")["degrees"] == pytest.approx(210.0, abs=DRAGGED)


def test_a_hinges_axis_is_turned_round(visit):
    assert saw(visit, "axis")["axis"] == pytest.approx([0.0, 0.0, -1.0], abs=0.02)


def test_bone_and_constraint_follow_each_other(visit):
    assert saw(visit, "click_bone") == {"bone": "Foot", "row": 1}
    assert saw(visit, "click_row") == {"bone": "Bone2", "row": 0}


def test_disabled_nothing_is_drawn_and_enabled_it_is_there_again(visit):
    assert saw(visit, "come_and_go")["limit"] == "CONE"
    assert pixels("disabled", RED) < 30
    assert pixels("enabled_again", RED) > 300


@pytest.mark.parametrize("name", ["reach", "overlays_off", "bones_off", "switched_off"])
def test_only_what_is_out_of_reach_is_red_and_switches_take_it_away(visit, name):
    saw(visit, "click_bone")
    assert pixels("out_of_reach", RED) > 300
    assert pixels(name, RED) < 30
