"""A visit to a real Blender window: the preferences are drawn, and the key that a user sets works."""

from __future__ import annotations

from visits import colours, photographs, saw

SCRIPT = "drive_preferences.py"


def test_live_has_no_key_until_the_user_sets_one(visit):
    assert saw(visit, "at_first")["type"] == "NONE"
    assert not saw(visit, "without_a_key")["on"]
    assert saw(visit, "with_a_key")["on"]
    assert not saw(visit, "again")["on"]


def test_the_preferences_are_drawn(visit):
    assert saw(visit, "shown")["windows"] == 2
    assert colours(photographs(SCRIPT) / "preferences.png") > 500
