"""Rotations between solved ones, brought back inside their limits."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from mathutils import Quaternion

X = (1.0, 0.0, 0.0)


def test_joints_after_a_locked_one_are_brought_inside_their_limits(ext):
    """Three hinges turned past their ranges; the first is locked, and keeps what it has."""
    module = ext.module("ccd_rig.blender.bake.keyed_motion")
    hinge = ext.module("ccd_rig.limits.shapes").Hinge(X, -0.2, 0.2)
    joints = [SimpleNamespace(locked=locked) for locked in (True, False, False)]
    frames = SimpleNamespace(skeleton=SimpleNamespace(joints=joints), limits=[(hinge,) * 3] * 2)
    rotations = np.tile(Quaternion(X, 0.5)[:], (2, 3, 1))
    module._hold_limits(frames, rotations, np.ones((2, 3), bool))
    angles = [[Quaternion(each).angle for each in row] for row in rotations]
    assert np.array(angles) == pytest.approx(np.array([[0.5, 0.2, 0.2]] * 2), abs=1e-6)
