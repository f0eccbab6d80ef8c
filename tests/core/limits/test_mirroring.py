"""Mirrored limits allow exactly the mirrored rotations, for joints of any rest orientation."""

from __future__ import annotations

import math
import random

import pytest
from mathutils import Matrix, Quaternion

from ccd_rig.errors import InvalidInput
from ccd_rig.limits.shapes import (
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    ReversedLimit,
    SwingTwist,
    mirror_turn,
    sample,
    violation,
)

SOLVE = 1e-4  # [rad]
MIRROR = Matrix.Diagonal((-1.0, 1.0, 1.0))

ELLIPSE = SwingTwist(Ellipse(-0.3, 1.2, -0.7, 0.1), (-0.2, 0.9))
LIMITS = {
    "hinge": Hinge((0.3, 0.9, -0.4), -0.4, 2.1),
    "cone": SwingTwist(Cone(0.7), (-0.2, 1.1)),
    "ellipse": ELLIPSE,
    "twist": SwingTwist(None, (0.1, 0.6)),
    "box": EulerBox("YXZ", (-0.2, -0.9, 0.1), (0.5, 0.3, 0.8)),
    "reversed": ReversedLimit(ELLIPSE, (0.5, 0.5, 0.5, 0.5)),
}
# Turns of the other side's rest away from the mirror image, by which every limit stays one of its kind.
EXCHANGES = {
    "mirror image": Quaternion(),
    "rolled by a quarter": Quaternion((0.0, 1.0, 0.0), math.pi / 2),
    "rolled by a half": Quaternion((0.0, 1.0, 0.0), math.pi),
    "pointing back": Quaternion((1.0, 0.0, 0.0), math.pi),
    "pointing back, rolled": Quaternion((0.0, 0.0, 1.0), math.pi) @ Quaternion((0.0, 1.0, 0.0), math.pi / 2),
}


def rests(exchange, seed=3):
    """The rest orientations of a joint, and of the one on the other side, that is turned by `exchange`."""
    rng = random.Random(seed)
    rest = Quaternion([rng.gauss(0, 1) for _ in range(4)]).normalized()
    # Its mirror image, made a rotation by turning X round: as Blender's bones are mirrored.
    image = (MIRROR @ rest.to_matrix() @ MIRROR).to_quaternion()
    return rest, image @ exchange


def mirrored(rotation, rest, other):
    """By matrices, as the definition says it: C q C^-1."""
    change = other.to_matrix().transposed() @ MIRROR @ rest.to_matrix()
    return (change @ rotation.to_matrix() @ change.transposed()).to_quaternion()


def agree(limit, found, rest, other):
    """What is inside is inside mirrored, and what is outside is as far outside."""
    rng = random.Random(1)
    for number in range(200):
        rotation = sample(limit if number % 2 else None, rng)
        image = mirrored(rotation, rest, other)
        assert violation(found, image) == pytest.approx(violation(limit, rotation), abs=SOLVE)


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES)
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_mirrored_rotations_are_allowed_alike(limit, exchange):
    rest, other = rests(exchange)
    agree(limit, limit.turned(mirror_turn(rest, other)), rest, other)


@pytest.mark.parametrize("limit", [LIMITS["hinge"], LIMITS["cone"], SwingTwist(Cone(0.4), None)])
def test_hinges_and_cones_are_mirrored_to_any_rest(limit):
    rest, other = rests(Quaternion((0.2, 0.5, -0.3, 0.7)).normalized())
    agree(limit, limit.turned(mirror_turn(rest, other)), rest, other)


def test_usual_pairs_keep_hinges_and_negate_the_rest():
    turn = mirror_turn(*rests(Quaternion()))
    assert Hinge((1, 0, 0), 0.1, 2.0).turned(turn) == Hinge((1, 0, 0), 0.1, 2.0)
    assert Hinge((0, 0, 1), 0.1, 2.0).turned(turn) == Hinge((0, 0, -1), 0.1, 2.0)
    assert ELLIPSE.turned(turn) == SwingTwist(Ellipse(-0.3, 1.2, -0.1, 0.7), (-0.9, 0.2))
    assert LIMITS["box"].turned(turn) == EulerBox("YXZ", (-0.2, -0.3, -0.8), (0.5, 0.9, -0.1))


@pytest.mark.parametrize("name", ["ellipse", "box"])
def test_what_would_lie_askew_is_refused(name):
    turn = mirror_turn(*rests(Quaternion((0.0, 1.0, 0.0), math.radians(40.0))))
    with pytest.raises(InvalidInput, match="askew"):
        LIMITS[name].turned(turn)
    slightly = mirror_turn(*rests(Quaternion((0.0, 1.0, 0.0), math.radians(1.5))))
    assert type(LIMITS[name].turned(slightly)) is type(LIMITS[name])
