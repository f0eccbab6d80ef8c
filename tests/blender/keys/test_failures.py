"""A write that fails leaves the file as it was."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import bpy
import numpy as np
import pytest
from keyed import (
    assert_keys_play,
    key_richly,
    keys_for,
    make_armature,
    partly_keyed,
    rich_action,
    vary,
    whole_state,
    write_keys,
)


class Failure(Exception):
    """Raised in the middle of a write."""


@contextlib.contextmanager
def failing(monkeypatch, module, name, after):
    """Let the function of a module fail, after it was called some times for real."""
    real, calls = getattr(module, name), []

    def wrapped(*arguments, **keywords):
        calls.append(1)
        if len(calls) == after + 1:  # once: what is taken back takes the same way
            raise Failure
        return real(*arguments, **keywords)

    monkeypatch.setattr(module, name, wrapped)
    with pytest.raises(Failure):
        yield
    monkeypatch.setattr(module, name, real)


def no_animation():
    return [make_armature()]


def empty_action():
    armature_object = make_armature()
    armature_object.animation_data_create().action = bpy.data.actions.new("Empty")
    return [armature_object]


def others_slot():
    other, armature_object = make_armature("Other"), make_armature()
    key_richly(other)
    armature_object.animation_data_create().action = other.animation_data.action
    if hasattr(armature_object.animation_data, "action_slot"):
        armature_object.animation_data.action_slot = None
    return [armature_object, other]


def slot_without_keys():
    """A slot that is assigned and has no F-curves; before slots the same as an empty action."""
    [armature_object] = empty_action()
    animation = armature_object.animation_data
    if hasattr(animation, "action_slot"):
        animation.action_slot = animation.action.slots.new("OBJECT", "Mine")
    return [armature_object]


def slot_without_keys_beside_another():
    armature_object, other = others_slot()
    animation = armature_object.animation_data
    if hasattr(animation, "action_slot"):
        animation.action_slot = animation.action.slots.new("OBJECT", "Mine")
    return [armature_object, other]


STARTS = (
    no_animation,
    empty_action,
    slot_without_keys,
    slot_without_keys_beside_another,
    rich_action,
    partly_keyed,
    others_slot,
)


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("after", [0, 5, 7])
def test_failure_in_the_middle(ext, channels, writing, monkeypatch, destination, start, after):
    objects = start()
    for item in objects:
        vary(channels.fcurves_of(item))
    before = whole_state(*objects)
    with failing(monkeypatch, ext.module("ccd_rig.blender.keys.keyframes"), "write", after):
        write_keys(
            writing,
            objects[0],
            keys_for(writing, [5, 15]),
            writing.Destination[destination],
            (5, 15),
            "Baked",
        )
    assert whole_state(*objects) == before
    # The same write goes through afterwards.
    keys = keys_for(writing, [5, 15])
    write_keys(writing, objects[0], keys, writing.Destination[destination], (5, 15), "Baked")
    assert_keys_play(objects[0], keys)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("done", [False, True])
def test_failure_at_the_swap(channels, writing, monkeypatch, start, done):
    """The last step fails, before or after it has changed what the object uses."""
    objects = start()
    armature_object = objects[0]
    before = whole_state(*objects)
    real = channels.assign

    def assign_and_fail(*arguments):
        if done:
            real(*arguments)
        monkeypatch.setattr(channels, "assign", real)
        raise Failure

    monkeypatch.setattr(channels, "assign", assign_and_fail)
    with pytest.raises(Failure):
        write_keys(
            writing, armature_object, keys_for(writing, [5]), writing.Destination.NEW_ACTION, (5, 5), "Baked"
        )
    assert whole_state(*objects) == before


@pytest.mark.parametrize("destination", ["NEW_ACTION", "CURRENT_ACTION"])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"values": np.full((2, 4), np.nan)}, ["upper", "finite"]),
        ({"frames": np.array([5, np.inf])}, ["upper", "rotation_quaternion", "finite"]),
        ({"frames": np.array([15, 5])}, ["upper", "increase"]),
        ({"frames": np.array([5, 5.001])}, ["upper", "increase"]),
        ({"frames": np.array([5, 5 + 5 * 2**-9])}, ["upper", "increase"]),  # 0.00977
        ({"frames": np.array([4, 15])}, ["upper", "outside 5 to 15"]),
    ],
)
def test_unusable_keys(writing, errors, destination, changes, words):
    [armature_object] = rich_action()
    before = whole_state(armature_object)
    first, second = keys_for(writing, [5, 15], bones=('lo"wer', "upper"))
    keys = [first, replace(first), replace(second, **changes)]
    with pytest.raises(errors.InvalidInput) as caught:
        write_keys(writing, armature_object, keys, writing.Destination[destination], (5, 15), "Baked")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert whole_state(armature_object) == before


def test_a_missing_bone(writing, errors):
    [armature_object] = rich_action()
    before = whole_state(armature_object)
    new = writing.Destination.NEW_ACTION
    with pytest.raises(errors.RigError, match="no bone 'gone'"):
        write_keys(writing, armature_object, keys_for(writing, [5], bones=("gone",)), new, (5, 15), "Baked")
    assert whole_state(armature_object) == before
