"""The keyed values before and after a frame."""

from __future__ import annotations

import pytest
from keyed import FLOAT32, keys_for, make_armature, write_keys


@pytest.mark.parametrize(
    ("beside", "rows", "end"),
    [
        ("values_before", {4.5: 0, 4.75: 1, 10: 1, 11: 2}, 1),
        ("values_after", {0: 0, 1: 1, 4.25: 1, 4.5: 2, 9: 2}, 10),
    ],
)
def test_values_beside(channels, writing, beside, rows, end):
    values = getattr(channels, beside)
    armature_object = make_armature()
    turned, shifted = ("upper", "rotation_quaternion"), ("upper", "location")
    assert values(armature_object, [turned], 5) == {}
    keys = keys_for(writing, [1, 4.5, 10])
    write_keys(writing, armature_object, keys, writing.Destination.NEW_ACTION, (1, 10), "Baked")
    for frame, row in rows.items():
        found = values(armature_object, [turned, shifted], frame)
        assert found.keys() == {turned}
        assert found[turned] == pytest.approx(keys[0].values[row], abs=FLOAT32)
    assert values(armature_object, [turned], end) == {}
