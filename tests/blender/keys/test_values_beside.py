"""The values of channels that play beside a range of keys."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
from keyed import FLOAT32, keys_for, make_armature, write_keys


@pytest.mark.parametrize(
    ("way", "places", "end"),
    [
        (-1, {4.5: 3.5, 4.75: 4.5, 7: 6, 10: 9, 10.25: 10, 12: 11}, 1),
        (1, {0: 1, 1: 2, 4.25: 4.5, 3: 4, 9: 10}, 10),
    ],
)
def test_values_beside(channels, writing, way, places, end):
    """Known: the keys are straight lines between frames 1, 4.5 and 10, and hold their ends."""
    armature_object = make_armature()
    turned, shifted = ("upper", "rotation_quaternion"), ("upper", "location")
    assert channels.values_beside(armature_object, [turned], 5, way, 1.0) == {}
    keys = keys_for(writing, [1, 4.5, 10])
    write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (1, 10), "Baked")
    armature_object.pose.bones["upper"].location = (1, 2, 3)
    lines = {
        curve.array_index: curve
        for curve in channels.fcurves_of(armature_object)
        if "upper" in curve.data_path
    }
    for edge, frame in places.items():
        beside = channels.values_beside(armature_object, [turned, shifted], edge, way, 1.0)
        expected = [lines[i].evaluate(frame) for i in range(4)]
        assert beside[turned] == pytest.approx(expected, abs=FLOAT32)
        assert beside[shifted].tolist() == [1, 2, 3]
    assert channels.values_beside(armature_object, [turned, shifted], end, way, 1.0) == {}


def test_a_curve_without_keys_shows_values_of_its_own_on_either_side(writing):
    """What moved the property before, such as strips, may have shown one value there and another after."""
    armature_object = make_armature()
    bone = armature_object.pose.bones["upper"]
    bone["switch"] = 0.5
    frames, values = np.array([3.0]), np.array([[1.0]])
    beside = np.array([0.25]), np.array([0.75])
    keys = [
        writing.ChannelKeys(
            "upper", 'pose.bones["upper"]["switch"]', frames, values, "CONSTANT", beside=beside
        )
    ]
    write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (3, 8), "Baked")
    shown = {}
    for frame in (1, 2, 3, 8, 9, 20):
        bpy.context.scene.frame_set(frame)
        shown[frame] = bone["switch"]
    assert shown == {1: 0.25, 2: 0.25, 3: 1.0, 8: 1.0, 9: 0.75, 20: 0.75}
