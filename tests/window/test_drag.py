"""A visit to a real Blender window: bones are pulled with the pointer, taken back to the bit, and pinned."""

from __future__ import annotations

import pytest
from visits import colours, photographs, pixels, saw

SCRIPT = "drive_drag.py"
ERRORS = ("is locked, and so is what carries it",)
PINNED = "rgb(26,217,179)"  # the color of planted bones in the palette's defaults
PIXEL = 0.03  # [m] that two pixels are in the view
ALL = [f"Bone{i}" for i in range(8)]


def test_the_tool_is_in_the_toolbar_of_pose_mode(visit):
    step = saw(visit, "tool")
    assert step["active"] == "ccd_rig.drag_tool"
    assert step["offered"]
    assert ["ccd_rig.drag", "view3d.select", "ccd_rig.pin"] in step["keymaps"]


def test_a_bone_follows_the_pointer_and_its_chain_follows_it(visit):
    step = saw(visit, "pull")
    assert step["turned"] == ALL
    assert step["off"] < PIXEL
    assert step["kept"] < PIXEL


def test_nothing_is_left_but_the_pose(visit):
    assert saw(visit, "left") == {"constraints": 0, "rows": 0}
    assert saw(visit, "pull")["objects"] == 2


def test_back_at_the_press_the_pose_is_that_of_the_press_to_the_bit(visit):
    assert saw(visit, "back")["same"]


def test_a_pull_is_one_step_of_undo(visit):
    assert saw(visit, "undo")["same"]


@pytest.mark.parametrize("button", ["Escape", "right_button"])
def test_a_pull_is_taken_back_to_the_bit(visit, button):
    step = saw(visit, f"taken_back_by_{button}")
    assert step["moved"] == ALL
    assert step["same"]


def test_the_wheel_changes_the_length_of_the_chain(visit):
    step = saw(visit, "wheel")
    assert step["long"] == step["again"] == ALL
    assert step["short"] == ALL[5:]


def test_an_axis_binds_the_motion(visit):
    step = saw(visit, "axis")
    assert step["free"] == pytest.approx([-0.3, 0.0, 0.5], abs=PIXEL)
    assert step["bound"] == pytest.approx([0.0, 0.0, 0.5], abs=PIXEL)
    assert step["same"]


def test_shift_is_precise(visit):
    step = saw(visit, "precise")
    assert step["moved"] == pytest.approx([-0.1, 0.0, 0.0], abs=PIXEL)
    assert step["same"]


def test_p_over_a_bone_pins_place_then_rotation_then_frees(visit):
    assert saw(visit, "pin")["kinds"] == ["PLACE", "ROTATION", "NONE"]
    step = saw(visit, "with_pin")
    assert step["drift"] < 1e-3
    assert step["moved"] > 0.3


def test_a_locked_chain_is_refused_and_stays(visit):
    assert saw(visit, "refused")["same"]


def test_a_figure_follows_a_hand_and_its_feet_stay(visit):
    step = saw(visit, "figure")
    assert step["hand"] > 0.5
    assert max(step["feet"]) < 2e-3
    assert step["hips"] > 0.05


def test_feet_that_are_pinned_by_themselves_are_drawn_while_the_tool_is_chosen(visit):
    saw(visit, "figure")
    assert pixels("figure_without_pins", PINNED) < 20
    assert pixels("figure_at_rest", PINNED) > 100


def test_disabled_no_tool_and_no_keymap_is_left(visit):
    assert saw(visit, "disabled") == {"offered": False, "keymaps": []}
    step = saw(visit, "enabled")
    assert step["offered"]
    assert step["keymaps"]


@pytest.mark.parametrize("name", ["tool", "pulled", "shortened", "along_z", "pin_1", "refused", "figure"])
def test_pictures_show_something(visit, name):
    saw(visit, "enabled")
    assert colours(photographs(SCRIPT) / f"{name}.png") > 500
