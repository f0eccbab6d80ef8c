"""The animation of one property, copied to another of the same object."""

from __future__ import annotations

import pytest
import rigs
from keyed import key_tuples, link, make_armature, vary

SOURCE, COPY = "ccd_rig.constraints[1].influence", "ccd_rig.constraints[2].influence"


@pytest.fixture
def rig(ext):
    """Three constraints; the influence of the first is keyed, and nobody asks for it."""
    made = make_armature()
    for name in ("Other", "Source", "Copy"):
        rigs.reach(made, "upper", None, name)
    key(made, 0, {1: 0.9, 7: 0.1})
    return made


def key(rig, row, values):
    for frame, value in values.items():
        rig.ccd_rig.constraints[row].influence = value
        rig.ccd_rig.constraints[row].keyframe_insert("influence", frame=frame)


def curve_of(rig, channels, path):
    return next((curve for curve in channels.fcurves_of(rig) if curve.data_path == path), None)


@pytest.mark.parametrize("modifier", ["", "CYCLES", "NOISE"])
def test_it_plays_as_the_first(channels, rig, modifier):
    key(rig, 1, {1: 0.2, 4: 0.7, 10: 0.4})
    source = curve_of(rig, channels, SOURCE)
    vary([source])
    source.extrapolation, source.mute = "LINEAR", modifier == "NOISE"
    if modifier:
        made = source.modifiers.new(modifier)
        made.influence, made.use_influence = 0.5, True
        if modifier == "CYCLES":
            made.mode_after, made.cycles_after = "REPEAT_OFFSET", 3
        else:
            made.strength, made.phase = 0.3, 2.5
    assert channels.obstacle(rig, SOURCE) == ""
    channels.copy(rig, SOURCE, COPY)
    copied = curve_of(rig, channels, COPY)
    assert key_tuples(copied) == key_tuples(source)
    assert (copied.extrapolation, copied.mute) == ("LINEAR", modifier == "NOISE")
    frames = [-20.0, 1.5, 6.25, 12.0, 25.5, 60.0]
    assert [copied.evaluate(frame) for frame in frames] == [source.evaluate(frame) for frame in frames]
    assert [each.type for each in copied.modifiers] == ([modifier] if modifier else [])
    assert len(curve_of(rig, channels, "ccd_rig.constraints[0].influence").keyframe_points) == 2


def test_a_driver_is_copied_and_only_its_own(channels, rig):
    for row, expression in ((0, "0.1"), (1, "0.6")):
        rig.ccd_rig.constraints[row].driver_add("influence").driver.expression = expression
    assert channels.is_moved(rig, SOURCE) and not channels.is_moved(rig, COPY)
    channels.copy(rig, SOURCE, COPY)
    drivers = {each.data_path: each.driver.expression for each in rig.animation_data.drivers}
    assert drivers[COPY] == drivers[SOURCE] == "0.6" and len(drivers) == 3
    assert channels.is_moved(rig, COPY) and curve_of(rig, channels, COPY) is None


def test_without_animation_nothing_is_made(channels, rig):
    channels.copy(rig, SOURCE, COPY)
    assert not channels.is_moved(rig, COPY) and curve_of(rig, channels, COPY) is None
    assert channels.obstacle(rig, SOURCE) == ""
    still = make_armature("Still")
    channels.copy(still, SOURCE, COPY)
    assert still.animation_data is None
    assert not channels.is_moved(still, SOURCE) and not channels.in_strips(still, SOURCE)
    assert channels.obstacle(still, SOURCE) == ""


def test_keys_count_as_moving_it_and_strips_apart(channels, rig):
    key(rig, 1, {1: 0.2, 4: 0.7})
    assert channels.is_moved(rig, SOURCE) and not channels.in_strips(rig, SOURCE)
    animation = rig.animation_data
    strip = animation.nla_tracks.new().strips.new("Strip", 1, animation.action)
    animation.action = None
    assert strip and channels.in_strips(rig, SOURCE) and not channels.in_strips(rig, COPY)
    assert not channels.is_moved(rig, SOURCE)


def test_an_action_that_moves_others_too_is_not_changed(channels, rig):
    key(rig, 1, {1: 0.2, 4: 0.7})
    other = make_armature("Other Rig")
    other.animation_data_create().action = rig.animation_data.action
    if channels.has_slots():
        other.animation_data.action_slot = rig.animation_data.action_slot
    words = channels.obstacle(rig, SOURCE)
    assert "moves 'Other Rig' too" in words and "single user" in words
    assert channels.obstacle(rig, COPY) == ""  # it has no keys there


def test_an_action_of_a_library_is_not_changed(channels, rig, library):
    rig = make_armature()
    action = link(library, "actions", "Stored")
    rig.animation_data_create().action = action
    if channels.has_slots():
        rig.animation_data.action_slot = action.slots[0]
    assert "action 'Stored', which is linked from a library" in channels.obstacle(rig, "location")
