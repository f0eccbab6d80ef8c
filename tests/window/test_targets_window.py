"""A visit to a real Blender window: targets are moved, turned and chosen in Pose Mode."""

from __future__ import annotations

import math

import pytest
from visits import saw

SCRIPT = "drive_targets.py"
ERRORS = ()
PIXEL = 0.02  # [m] that a pixel or two come to in the visit's view
DEGREE = 0.02  # [radians]


def place(visit, step):
    return saw(visit, step)["place"]


def test_a_drag_moves_an_empty_in_pose_mode(visit):
    step = saw(visit, "move")
    assert step["place"] == pytest.approx(step["goal"], abs=PIXEL)
    assert step["mode"] == "POSE"


def test_a_drag_is_one_step_of_undo(visit):
    before = place(visit, "before")
    assert place(visit, "undo") == pytest.approx(before, abs=1e-5)
    assert place(visit, "redo") == pytest.approx(place(visit, "move"), abs=1e-5)
    assert place(visit, "cancel") == pytest.approx(before, abs=1e-5)


def test_a_drag_activates_its_constraint_within_the_step_of_undo(visit):
    """The list showed another constraint than the one that was dragged."""
    steps = ("before", "move", "undo", "redo", "cancel", "along_z")
    assert [saw(visit, step)["active"] for step in steps] == [1, 0, 1, 0, 1, 0]


def test_axes_grid_and_precision(visit):
    x, y, z = place(visit, "before")
    assert place(visit, "along_z") == pytest.approx([x, y, z + 0.3], abs=PIXEL)
    assert place(visit, "along_z")[:2] == pytest.approx([x, y], abs=1e-5)
    assert place(visit, "across_z")[2] == pytest.approx(z, abs=1e-5)
    assert place(visit, "across_z") == pytest.approx([x, y - 0.4, z], abs=PIXEL)
    shift = [now - was for now, was in zip(place(visit, "snap"), (x, y, z), strict=True)]
    assert shift == pytest.approx([0.0, -0.4, 0.3], abs=0.06)
    assert all(abs(part / 0.1 - round(part / 0.1)) < 1e-3 for part in shift)
    assert place(visit, "precise") == pytest.approx([x, y - 0.04, z + 0.03], abs=PIXEL)


def test_a_click_chooses_the_constraint(visit):
    step = saw(visit, "click")
    assert (step["active"], step["bone"]) == (0, "hand.L")
    step = saw(visit, "click_control_bone")
    assert (step["active"], step["bone"]) == (0, "Target hand.L")


def test_a_target_is_above_the_handle_of_a_limit(visit):
    step = saw(visit, "above")
    assert step["limits"] == pytest.approx([0.0, math.pi / 2], abs=1e-5)
    x, y, z = step["start"]
    assert step["place"] == pytest.approx([x, y, z + 0.4], abs=PIXEL)


def test_a_ring_turns_what_is_copied(visit):
    assert saw(visit, "no_ring")["turn"] == [0.0, 0.0, 0.0]
    assert saw(visit, "turn")["turn"] == pytest.approx([math.pi / 2, 0.0, 0.0], abs=3 * DEGREE)
    assert place(visit, "turn") == pytest.approx(place(visit, "before"), abs=1e-5)
    assert saw(visit, "turn_undone")["turn"] == pytest.approx([0.0, 0.0, 0.0], abs=1e-5)
    degrees = math.degrees(saw(visit, "turn_snap")["turn"][0])
    assert degrees == pytest.approx(5.0 * round(degrees / 5.0), abs=1e-2)
    assert degrees == pytest.approx(90.0, abs=5.1)


def test_a_control_bone_is_moved_as_an_empty_is(visit):
    step = saw(visit, "control_bone")
    assert step["place"] == pytest.approx(step["goal"], abs=PIXEL)
    step = saw(visit, "control_bone_undone")
    assert step["place"] == pytest.approx(step["home"], abs=1e-5)


def test_a_target_that_something_else_moves_gets_an_offset(visit):
    step = saw(visit, "offset")
    assert step["place"] == pytest.approx(step["home"], abs=1e-5)
    assert step["offset"] == pytest.approx([0.0, 0.4, 0.3], abs=PIXEL)


def test_live_follows_a_handle(visit):
    assert saw(visit, "live")["missed"] < 1e-3


def test_a_hundred_constraints_are_drawn_fast(visit):
    milliseconds = saw(visit, "many")["milliseconds"]
    assert milliseconds["draw"] < 25.0
    assert milliseconds["poll"] < 1.0
