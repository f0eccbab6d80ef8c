"""A visit to a real Blender window: Esc at random moments of long bakes."""

from __future__ import annotations

import pytest
from visits import go, saw

SCRIPT = "drive_escape.py"
MOST = 8.0  # [s] from Esc to the end of the bake where others use the processors: the bakes last minutes


@pytest.fixture(scope="module")
def visit() -> dict:
    """Drive the window once; what was seen, step by step."""
    return go(SCRIPT)


def test_visit_came_to_its_end(visit):
    assert visit.get("finished"), visit.get("error", visit["output"])
    assert "Traceback" not in visit["output"], visit["output"]


def test_every_bake_stops(visit):
    seen = saw(visit, "escapes")
    assert len(seen["delays"]) == 12
    assert max(seen["delays"]) <= MOST, seen


def test_nothing_is_left_behind(visit):
    seen = saw(visit, "escapes")
    assert (seen["actions"], seen["scenes"], seen["keyed"]) == ([], 1, False)
