"""A visit to a real Blender window: Esc at random moments of long bakes."""

from __future__ import annotations

from visits import saw

SCRIPT = "drive_escape.py"
MOST = 8.0  # [s] from Esc to the end of the bake where others use the processors: the bakes last minutes


def test_every_bake_stops(visit):
    seen = saw(visit, "escapes")
    assert len(seen["delays"]) == 12
    assert max(seen["delays"]) <= MOST, seen


def test_nothing_is_left_behind(visit):
    seen = saw(visit, "escapes")
    assert (seen["actions"], seen["scenes"], seen["keyed"]) == ([], 1, [])
