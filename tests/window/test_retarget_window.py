"""A visit to a real Blender window: a capture's motion on another figure, by the panel Retarget."""

from __future__ import annotations

import math

import pytest
from visits import colours, photographs, saw

SCRIPT = "drive_retarget.py"
ERRORS = ("is no pose of a body",)
ALONG = math.radians(8.0)  # of a limb: knees and elbows of another figure bend by other angles
SHIFT = 0.3  # [m] by which walking in place moves the hips at least
MISSING = ["shoulder.L", "shoulder.R"]


def test_a_source_is_chosen_and_its_rest_pose_refused(visit):
    assert saw(visit, "source")["name"] == "Capture"
    step = saw(visit, "refused")
    assert step["action"] == ""
    assert step["pose"][2] == pytest.approx(-1.0, abs=0.01), "the figure is left as it was"
    shown = saw(visit, "preview")
    assert shown["on"]
    assert shown["report"] == "" and shown["no_pose"] == "Capture", "the panel tells it, with its buttons"


def off(limbs: dict[str, list[list[float]]]) -> float:
    """The largest angle between limbs of the capture and of the figure, radians."""
    return max(math.acos(min(1.0, sum(a * b for a, b in zip(*pair, strict=True)))) for pair in limbs.values())


def test_a_frame_as_the_reference_is_shown_at_once_without_keys(visit):
    step = saw(visit, "reference")
    assert step["value"] == "FRAME"
    assert step["report"] == "", "what stood in the way is gone"
    assert off(step["limbs"]) < ALONG
    assert step["action"] == ""


def test_the_frame_follows_a_setting_while_it_changes(visit):
    before, changed, after = (saw(visit, name) for name in ("reference", "in_place", "walks_on"))
    assert changed["on"]
    assert not after["on"]
    assert math.dist(before["hips"], changed["hips"]) > SHIFT
    assert after["hips"] == pytest.approx(before["hips"], abs=1e-5)
    assert changed["action"] == ""


def test_sides_are_weighed_apart_by_a_click(visit):
    assert saw(visit, "effectors")["apart"]


def test_the_map_lists_both_figures_and_what_follows_nothing(visit):
    pairs = saw(visit, "map")["pairs"]
    assert pairs["shin.L"] == "LeftLeg"
    assert pairs["spine.006"] == "Head"
    assert [name for name, source in pairs.items() if not source] == MISSING


def test_a_click_bakes_the_motion_and_tells_how_it_went(visit):
    step = saw(visit, "retargeted")
    assert step["action"] == "Hero CaptureAction"
    assert step["report"][:2] == [
        "33 frames, 1 to 33; 21 bones follow",
        "Nothing to follow for: left shoulder, right shoulder",
    ]
    assert len(step["report"]) > 6
    assert len(step["limbs"]) == 9
    for frame, limbs in step["limbs"].items():
        assert off(limbs) < ALONG, frame


def test_it_is_one_step_of_undo(visit):
    step = saw(visit, "undone")
    assert (step["action"], step["pairs"]) == ("", len(saw(visit, "map")["pairs"]))


@pytest.mark.parametrize("name", ["preview_refused", "preview", "in_place", "map", "later", "german"])
def test_photographs_are_not_empty(visit, name):
    assert colours(photographs(SCRIPT) / f"{name}.png") > 500
