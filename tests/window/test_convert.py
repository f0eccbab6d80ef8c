"""A visit to a real Blender window: Blender's IK converted and restored; set-ups in files and metarigs."""

from __future__ import annotations

import math

import pytest
from visits import colours, photographs, saw

SCRIPT = "drive_convert.py"
REACHED = 2e-3  # [m] Blender's own IK ends within that of its target
ROWS = [
    ["shin", 2, "Step", "Knee"],
    ["eye", 1, "Look eye", ""],
    ["tail.8", 9, "Target tail.8", ""],
    ["tail.5", 6, "Target tail.5", ""],
    ["tail.2", 3, "Target tail.2", ""],
]
HINGES = {"forearm_fk.L": 1.0, "shin_fk.R": 2.0}


def test_a_click_converts_and_mutes(visit):
    before, step = saw(visit, "blender_ik"), saw(visit, "converted")
    assert not any(before["muted"].values())
    assert all(step["muted"].values())
    assert [row[1:] for row in step["rows"]] == ROWS


def test_conversion_is_one_step_of_undo(visit):
    before = saw(visit, "blender_ik")
    undone = saw(visit, "undone")
    assert {name: undone[name] for name in ("rows", "muted", "objects")} == {
        name: before[name] for name in ("rows", "muted", "objects")
    }
    assert saw(visit, "redone") == saw(visit, "converted")


def test_the_bake_shows_what_blender_s_ik_showed(visit):
    before, step = saw(visit, "blender_ik")["shown"], saw(visit, "baked")
    assert step["words"].startswith("12 of 12 frames reached"), step["words"]
    assert farthest(before, step["shown"]) < REACHED


def farthest(some: list[list[float]], others: list[list[float]]) -> float:
    """The largest distance of places, of each frame x, y and z of one after the other, in metres."""
    return max(
        math.dist(a[k : k + 3], b[k : k + 3])
        for a, b in zip(some, others, strict=True)
        for k in range(0, len(a), 3)
    )


def test_restore_leaves_the_scene_as_it_was(visit):
    before, step = saw(visit, "blender_ik"), saw(visit, "restored")
    assert step["rows"] == []
    assert (step["muted"], step["objects"]) == (before["muted"], before["objects"])
    # The knee depends on the keys, which stay: Blender's IK starts from them.
    places = [[frame[3:] for frame in seen["shown"]] for seen in (before, step)]
    assert farthest(*places) < REACHED
    undone, baked = saw(visit, "restore_undone"), saw(visit, "baked")
    assert undone == {name: baked[name] for name in undone}


def test_a_set_up_is_saved_from_the_menu_of_the_list(visit):
    step = saw(visit, "set_up")
    assert step["limits"] == pytest.approx(HINGES)
    assert len(step["rows"]) >= 6
    held = saw(visit, "saved")
    assert held["rows"] == list(step["rows"])
    assert set(HINGES) <= set(held["bones"])


def test_limits_and_rows_outlast_rigify_s_generation_by_themselves(visit):
    assert saw(visit, "generated_again") == saw(visit, "set_up")


def test_the_metarig_gives_a_new_rig_its_set_up(visit):
    nothing = {"rows": {}, "limits": {}}
    assert saw(visit, "generated_anew") == nothing
    assert saw(visit, "restored_set_up") == saw(visit, "set_up")
    assert saw(visit, "restore_set_up_undone") == nothing


def test_a_saved_file_gives_it_too_and_it_bakes(visit):
    assert saw(visit, "loaded") == saw(visit, "set_up")
    assert saw(visit, "set_up_baked")["words"].startswith("12 of 12 frames reached")


@pytest.mark.parametrize("name", ["converted", "baked", "restored", "set_up", "save_browser", "loaded"])
def test_photographs_are_not_empty(visit, name):
    assert colours(photographs(SCRIPT) / f"{name}.png") > 500
