"""What is told of the bone that carries a figure with planted bones."""

from __future__ import annotations

import math

import pytest


@pytest.fixture
def parts(ext):
    return ext.module("ccd_rig.blender.bake.report")


def test_a_body_that_follows_or_stays_as_it_may_is_not_told(parts):
    for mode in ("FOLLOW_FEET", "KEEP_ANIMATION"):
        assert parts.BodyReport("hips", mode).words() == ""


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"keys_replaced": True}, "'hips' follows planted bones, its own keys are replaced"),
        (
            {"short_frames": 3, "obstacle": "it is locked"},
            "a leg is too short at 3 frames, but 'hips' cannot be moved: it is locked",
        ),
        (
            {"moved_frames": 1, "distance": 0.25, "frame": 7.0},
            "'hips' moved at 1 frame so that legs reach (at most 0.2500 m, frame 7)",
        ),
    ],
)
def test_what_became_of_a_body_is_one_sentence(parts, fields, words):
    assert parts.BodyReport("hips", "KEEP_ANIMATION", **fields).words() == words


def test_how_far_a_body_walks_comes_first(parts):
    walked = parts.BodyReport("hips", "WALK_ON", travel=2.5, short_frames=1, obstacle="it is locked")
    first, second = walked.words().split("; ")
    assert first == "'hips' walks on by 2.5000 m"
    assert second.startswith("a leg is too short at 1 frame, ")


@pytest.mark.parametrize(("degrees", "words"), [(117.4, "117"), (11.6, "12"), (4.56, "4.6"), (0.434, "0.43")])
def test_words_tell_angles_as_people_write_them(parts, degrees, words):
    angle, words = math.radians(degrees), f"{words} degrees"
    helped = parts.Helped(("Hand",), 1.0, 2.0, "spine", angle, "", 0.0)
    assert f"turns by up to {words}" in helped.words()
    assert f"up to {words}" in parts.Smoothed(("Hand",), 1.0, 2.0, angle).words()


@pytest.mark.parametrize(
    ("degrees", "shift", "left", "is_told"),
    [(0.9, 0.0009, 0.0009, False), (1.1, 0.0, 0.0, True), (0.0, 0.0011, 0.0, True), (0.0, 0.0, 0.0011, True)],
)
def test_help_of_the_body_that_nobody_sees_is_not_told(parts, degrees, shift, left, is_told):
    helped = parts.Helped(
        ("Tail",), 1.0, 2.0, "hips", math.radians(degrees), "hips", shift, ("Hips",), left, size=1.0
    )
    assert helped.is_seen == is_told
    assert parts._scaled(helped, 100.0).is_seen == is_told
