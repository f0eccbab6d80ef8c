"""What effectors of the loop are off their targets."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from mathutils import Quaternion, Vector

from ccd_rig.goals import DirectionGoal, OrientationGoal
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.solvers.ccd.effectors import AxesEffector

X, Y, Z = Vector((1.0, 0.0, 0.0)), Vector((0.0, 1.0, 0.0)), Vector((0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("goal", "off"),
    [
        (OrientationGoal("bone", Quaternion(Z, math.pi / 2)), [Y - X, -X - Y, Vector()]),
        (DirectionGoal("bone", Y, Z), [Z - Y]),
    ],
)
def test_a_turned_frame_is_off_by_the_ways_of_its_axes(goal, off):
    """A quarter turn away, in levers; and what joints aim past the target grows by it with each call."""
    effector = AxesEffector(goal, Skeleton([Joint("bone", length=2.0)]))
    effector.recompute(SimpleNamespace(frames=[Quaternion()]))
    for times in (1.0, 2.0):
        effector.aim_past(1.0)
        for more, way in zip(effector.multipliers, off, strict=True):
            assert (more - times * effector.lever * way).length < 1e-6
