"""A visit to a real Blender window: a limit is set from the pose, by the menu in the sidebar."""

from __future__ import annotations

import pytest
from visits import go, saw

SCRIPT = "drive_limits.py"


@pytest.fixture(scope="module")
def visit() -> dict:
    """Drive the window once; what was seen, step by step."""
    return go(SCRIPT)


def test_visit_came_to_its_end(visit):
    assert visit.get("finished"), visit.get("error", visit["output"])
    assert "Traceback" not in visit["output"], visit["output"]
    assert "Error" not in visit["output"], visit["output"]


def test_the_menu_sets_a_bound_from_the_pose_in_one_step_of_undo(visit):
    assert saw(visit, "max_from_pose")["upper"] == pytest.approx([90, 100, 90, 90], abs=0.01)
    assert saw(visit, "undo")["upper"] == pytest.approx([90] * 4, abs=0.01)
