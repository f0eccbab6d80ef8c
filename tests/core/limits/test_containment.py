"""Whether regions lie inside limits: told from numbers, held against samples."""

from __future__ import annotations

import random
from math import pi

import pytest
from chains import FLOAT32, random_limit

from ccd_rig.errors import InvalidInput
from ccd_rig.limits.shapes import (
    Comfort,
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    ReversedLimit,
    SwingTwist,
    contains,
    outside,
    sample,
)
from ccd_rig.skeleton.joints import Joint

X, Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("region", "limit", "named"),
    [
        (Hinge(X, 0.0, 1.0), Hinge(X, -1.0, 2.0), None),
        (Hinge(X, 0.0, 3.0), Hinge(X, -1.0, 2.0), "angle range"),
        (Hinge(Z, 0.0, 1.0), Hinge(X, -1.0, 2.0), "axis"),
        (SwingTwist(Cone(0.5)), Hinge(X, -1.0, 2.0), "same kind"),
        (SwingTwist(Cone(0.5)), SwingTwist(Cone(0.6)), None),
        (SwingTwist(Cone(0.7)), SwingTwist(Cone(0.6)), "X min"),
        (SwingTwist(Cone(0.5)), SwingTwist(Ellipse(-0.6, 0.6, -0.6, 0.4)), "Z max"),
        (SwingTwist(Ellipse(-0.1, 0.6, -0.2, 0.3)), SwingTwist(Cone(0.6)), None),
        (SwingTwist(None, (-0.1, 0.1)), SwingTwist(Cone(0.6)), "swing is free"),
        (SwingTwist(Cone(0.5)), SwingTwist(Cone(0.6), (-1.0, 1.0)), "twist is free"),
        (SwingTwist(Cone(0.5), (-2.0, 1.0)), SwingTwist(Cone(0.6), (-1.0, 1.0)), "twist range"),
        (EulerBox("XYZ", (0, 0, 0), (1, 1, 1)), EulerBox("XYZ", (-1, -1, -1), (1, 1, 1)), None),
        (EulerBox("XYZ", (0, -2, 0), (1, 1, 1)), EulerBox("XYZ", (-1, -1, -1), (1, 1, 1)), "Y range"),
        (EulerBox("ZYX", (0, 0, 0), (1, 1, 1)), EulerBox("XYZ", (-1, -1, -1), (1, 1, 1)), "order"),
        (Hinge(X, 2.0, 4.0), Hinge(X, -pi, pi), None),
        (Hinge(X, 6.0, 6.5), Hinge(X, -0.5, 0.5), None),
        (Hinge(X, 6.0, 7.0), Hinge(X, -0.5, 0.5), "angle range"),
        (SwingTwist(Cone(0.5)), SwingTwist(Cone(0.6), (-pi, pi)), None),
        (SwingTwist(None, (3.0, 4.0)), SwingTwist(Cone(pi), (-pi, pi)), None),
        (SwingTwist(Cone(0.5), (-3.5, -3.0)), SwingTwist(Cone(0.6), (2.5, 3.5)), None),
        (EulerBox("XYZ", (6, 0, 0), (6.5, 1, 1)), EulerBox("XYZ", (-1, -1, -1), (1, 1, 1)), None),
        (
            ReversedLimit(Hinge(X, 0.0, 1.0), (1, 0, 0, 0)),
            ReversedLimit(Hinge(X, 0.0, 2.0), (1, 0, 0, 0)),
            None,
        ),
    ],
)
def test_words_for_what_stands_out(region, limit, named):
    found = outside(region, limit)
    assert found is None if named is None else named in found
    if named is None:
        Joint("elbow", limit=limit, comfort=Comfort(region=region))
        rng = random.Random(1)
        assert all(contains(limit, sample(region, rng), FLOAT32) for _ in range(300))
    else:
        with pytest.raises(InvalidInput, match=r"elbow.*comfort region"):
            Joint("elbow", limit=limit, comfort=Comfort(region=region))


def test_every_limit_lies_inside_itself():
    rng = random.Random(2)
    for _ in range(200):
        limit = random_limit(rng)
        assert limit is None or outside(limit, limit) is None


@pytest.mark.parametrize(
    ("limit", "is_free"),
    [
        (SwingTwist(Cone(pi)), True),
        (SwingTwist(Cone(3.1)), False),
        (SwingTwist(Ellipse(-pi, pi, -pi, pi), (-pi, pi)), True),
        (SwingTwist(None, (-3.0, 3.0)), False),
        (EulerBox("XYZ", (-pi, -0.5 * pi, -pi), (pi, 0.5 * pi, pi)), True),
        (EulerBox("ZXY", (0.5 * pi, 0.0, -pi), (1.5 * pi, 2.0 * pi, pi)), True),
        (EulerBox("XYZ", (-pi, -1.0, -pi), (pi, 3.0, pi)), False),
        (EulerBox("YXZ", (-pi, -1.0, -pi), (0.0, 1.0, pi)), False),
        (ReversedLimit(SwingTwist(None), (1, 0, 0, 0)), True),
    ],
)
def test_limits_that_allow_every_rotation(limit, is_free):
    assert limit.is_free is is_free
    rng = random.Random(3)
    assert all(contains(limit, sample(None, rng)) for _ in range(2000)) is is_free
