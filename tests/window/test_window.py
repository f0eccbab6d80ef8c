"""A visit to a real Blender window: tab, constraint, bake, Esc and undo, by pointer and keyboard."""

from __future__ import annotations

import pytest
from visits import HIGH, colours, photographs, saw

SCRIPT = "drive_window.py"
SIZE = HIGH
REACHED = 1e-3  # [m] between a bone's tail and its target, in a rig four metres long


def test_extension_is_installed_and_enabled(visit):
    step = saw(visit, "install")
    assert step["finished"]
    assert step["enabled"]


def test_tab_is_shown(visit):
    assert saw(visit, "tab")["active"] == "CCD Rig"
    assert colours(photographs(SCRIPT) / "tab.png") > 500


def test_pointer_adds_a_constraint(visit):
    step = saw(visit, "add")
    assert (step["count"], step["tip"], step["target"]) == (1, "Bone7", "Target")


def test_the_rig_follows_a_dragged_target(visit):
    assert saw(visit, "live_on")["on"]
    assert saw(visit, "live_on")["off"] < REACHED
    step = saw(visit, "live_drag")
    assert step["moved"] > 0.3
    assert max(step["dragged"]) < REACHED
    assert step["rest"] < REACHED
    assert step["channels_kept"]
    assert step["curves"] == 0
    step = saw(visit, "live_undo")
    assert step["on"]
    assert max(step["back"], step["off"]) < REACHED
    step = saw(visit, "live_off")
    assert not step["on"]
    assert step["clamped"] == 0
    assert step["off"] > 0.1


def test_pointer_bakes(visit):
    step = saw(visit, "bake")
    assert max(step["before"]) > 1.0  # else the bake would have nothing to do
    assert max(step["after"]) < REACHED
    assert len(step["curves"]) >= 8 * 4
    assert {keys for _, _, keys in step["curves"]} == {24}


def test_escape_leaves_the_action_as_it_was(visit):
    step = saw(visit, "escape")
    assert "CCD_RIG_OT_bake" in step["running"], "the bake was not running when Esc was pressed"
    assert step["left"] == []
    assert step["keys_unchanged"]
    assert step["scenes"] == ["Scene"]


def test_undo_takes_the_bake_back(visit):
    assert saw(visit, "undo")["curves"] == 0


def test_a_folded_report_is_unfolded_and_its_button_helps(visit):
    step = saw(visit, "fix")
    assert step["unfolded"]
    assert not any("finding=7" in name for name in step["folded"])
    assert step["max_extension"] == pytest.approx(0.98)
    assert (step["frame"], step["went"]) == (1, 13)


def test_targets_go_where_the_motion_has_the_bones(visit):
    step = saw(visit, "targets")
    assert step["before"] > 0.1
    assert max(step["matched"], step["keyed"]) < REACHED


def test_feet_are_planted_and_contacts_found(visit):
    step = saw(visit, "feet")
    assert step["kinds"] == {"foot.L": "PLANT", "foot.R": "PLANT"}
    # The left foot is up from frame 8 to 14; where exactly it counts as down is the core's business.
    frames = {name: [frame for frame, each in step["marks"] if each == name] for _, name in step["marks"]}
    assert frames["foot.L down"][0] == frames["foot.R down"][0] == 1
    assert 8 <= frames["foot.L up"][0] < 11 < frames["foot.L down"][1] <= 15
    assert 18 <= frames["foot.R up"][0] < 20
    assert step["again"] == step["marks"]
