"""A visit to a real Blender window: a limit is set from the pose, by the menu in the sidebar."""

from __future__ import annotations

import pytest
from visits import saw

SCRIPT = "drive_limits.py"


def test_the_menu_sets_a_bound_from_the_pose_in_one_step_of_undo(visit):
    assert saw(visit, "max_from_pose")["upper"] == pytest.approx([90, 100, 90, 90], abs=0.01)
    assert saw(visit, "undo")["upper"] == pytest.approx([90] * 4, abs=0.01)
