"""A visit to a real Blender window: what the menu "Limits" of the sidebar does, entry by entry."""

from __future__ import annotations

import pytest
from visits import HIGH, colours, photographs, saw

SCRIPT = "drive_limits.py"
SIZE = HIGH
ERRORS = ()
SHOWN = 0.05  # [degrees]
PICTURES = (
    *("action_dialog", "limit_rotation", "preset", "mirrored", "own_preset_remove"),
    *("refused", "no_action", "save", "load", "loaded"),
)


def hinge(bone: dict) -> list[float]:
    """Where a hinge begins and ends."""
    assert bone["kind"] == "HINGE"
    return pytest.approx(bone["hinge"], abs=SHOWN)


def test_bounds_from_the_pose_of_the_selected_bones_in_one_step_of_undo(visit):
    step = saw(visit, "max")
    assert hinge(step["shin.L"]) == [0, 100]
    assert hinge(step["shin.R"]) == [0, 60]
    step = saw(visit, "min")
    assert hinge(step["shin.L"]) == [-10, 100]
    assert hinge(step["shin.R"]) == [15, 60]
    assert saw(visit, "undo") == saw(visit, "max")


def test_an_action_is_learned_with_the_margin_that_is_typed(visit):
    assert hinge(saw(visit, "action")["shin.L"]) == [3 - 10, 78 + 10]


def test_blenders_ik_limits_and_limit_rotation_are_taken_over(visit):
    thigh = saw(visit, "blenders_ik")["thigh.L"]
    assert (thigh["kind"], thigh["use_twist"]) == ("ELLIPSE", True)
    assert [*thigh["x"], *thigh["z"], *thigh["twist"]] == pytest.approx([-25, 60, -50, 30, 0, 0], abs=SHOWN)
    step = saw(visit, "limit_rotation")
    assert step["spine.005"]["kind"] == "NONE"
    assert step["forearm.R"]["kind"] == "EULER"
    assert step["forearm.R"]["euler"] == pytest.approx([-10, -180, -180, 120, 180, 180], abs=SHOWN)


def test_presets_of_a_human_and_of_rows(visit):
    human = saw(visit, "HUMAN")
    assert human["spine"]["kind"] == "NONE"
    for side in "LR":
        lower, upper = human[f"shin.{side}"]["hinge"]
        assert human[f"shin.{side}"]["kind"] == "HINGE"
        assert upper - lower == pytest.approx(135 - 3, abs=SHOWN)
    spine = saw(visit, "SPINE")["spine.002"]
    assert spine["twist"] == pytest.approx([-15, 15], abs=SHOWN)
    for bone in saw(visit, "TAIL").values():
        assert (bone["kind"], round(bone["cone"], 3)) == ("CONE", 45)
    finger = saw(visit, "FINGER")
    assert [bone["kind"] for bone in finger.values()] == ["ELLIPSE", "HINGE", "HINGE"]
    assert hinge(finger["f_index.02.L"]) == [0, 100]


def test_a_limit_is_copied_to_the_chain_and_mirrored(visit):
    step = saw(visit, "copied")
    assert step["upper_arm.L"] == step["hand.L"] == step["forearm.L"]
    assert hinge(step["hand.L"]) == [0, 90]
    assert step["shoulder.L"]["kind"] == "NONE"
    step = saw(visit, "mirrored")
    assert hinge(step["shin.R"]) == [0, 90]
    assert step["thigh.R"]["x"] == pytest.approx(step["thigh.L"]["x"], abs=SHOWN)
    assert step["thigh.R"]["z"] == pytest.approx([-30, 10], abs=SHOWN)


def test_an_own_preset_is_kept_under_a_typed_name_given_and_removed(visit):
    assert saw(visit, "kept")["files"] == ["My_Knee.py"]
    assert hinge(saw(visit, "own")["forearm.R"]) == [0, 90]
    assert saw(visit, "removed")["files"] == []


def test_a_rigs_limits_come_back_from_a_file_by_name_and_by_part(visit):
    step = saw(visit, "by_name")
    assert {name: step["seen"][name] for name in step["wanted"]} == step["wanted"]
    assert hinge(step["seen"]["tail.1"]) == [0, 90]
    step = saw(visit, "by_part")
    assert list(step["seen"].values()) == list(step["wanted"].values())


def test_the_user_is_told_what_was_done_and_what_can_not_be(visit):
    assert saw(visit, "refused")["tail.2"]["kind"] == "NONE"
    lines = "\n".join(saw(visit, "reports")["lines"])
    for words in (
        "Limits of 'shin.L', 'shin.R' set",
        "is muted; the limit holds nevertheless",
        "Ranges measured on humans: AAOS, Joint Motion (1965)",
        "Limit of 'shin.L' kept as 'My Knee'",
        "The preset is removed",
        "No bone on the other side is known of 'tail.2'",
        "No Limit Rotation constraint is on 'tail.2'",
        "No IK limit, lock or stiffness is set in Blender for 'tail.2'",
        "No bone but 'tail.2' is there to copy to",
        "Armature 'basic_human' has no action",
        "Wrote 3 bones and 1 constraint to ",
        "3 bones and 1 constraint set",
    ):
        assert words in lines, words


def test_what_an_operation_tells_stands_in_its_panel_and_not_in_its_call(visit):
    (words,) = saw(visit, "redo")["words"]
    assert "Ranges measured on humans: AAOS, Joint Motion (1965)" in words
    calls = [line for line in saw(visit, "reports")["lines"] if line.startswith("bpy.ops.ccd_rig.limits_")]
    assert len(calls) > 5
    assert not [call for call in calls if "messages" in call]


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_show_something(visit, name):
    saw(visit, "reports")
    assert colours(photographs(SCRIPT) / f"{name}.png") > 500
