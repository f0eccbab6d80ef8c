"""A visit to a real Blender window: all rigs of a scene are baked by one button."""

from __future__ import annotations

from visits import saw

SCRIPT = "drive_bake_all.py"
ERRORS = ()


def test_escape_leaves_both_as_they_were(visit):
    step = saw(visit, "escape")
    assert step["running"] == ["CCD_RIG_OT_bake_all"]
    assert step["actions"] == ["", ""]
    assert step["scenes"] == ["Scene"]


def test_one_press_bakes_both_in_one_step_of_undo(visit):
    step = saw(visit, "bake")
    assert len(set(step["actions"])) == 2
    assert all("24 of 24 frames reached" in words for words in step["words"])
    assert saw(visit, "undo")["actions"] == ["", ""]
