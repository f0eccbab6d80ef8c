"""A visit to a real Blender window: Esc at random moments of long bakes."""

from __future__ import annotations

import pytest
from visits import go, saw

SCRIPT = "drive_escape.py"
MOST = 0.5  # [s] from Esc to the end of the bake
BUSY = 3.0  # [s] the same where other programs use the processors too
ALONE = 0.95  # the share of a processor from which on none does


@pytest.fixture(scope="module")
def visit() -> dict:
    """Drive the window once; what was seen, step by step."""
    return go(SCRIPT)


def test_visit_came_to_its_end(visit):
    assert visit.get("finished"), visit.get("error", visit["output"])
    assert "Traceback" not in visit["output"], visit["output"]


def test_every_bake_stops_at_once(visit):
    seen = saw(visit, "escapes")
    both = list(zip(seen["delays"], seen["shares"], strict=True))
    assert len(both) == 12
    assert max((delay for delay, share in both if share > ALONE), default=0.0) <= MOST, seen
    assert max(seen["delays"]) <= BUSY, seen


def test_nothing_is_left_behind(visit):
    seen = saw(visit, "escapes")
    assert (seen["actions"], seen["scenes"], seen["keyed"]) == ([], 1, False)
