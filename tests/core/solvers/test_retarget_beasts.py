"""Motion carried over between figures on four legs."""

from __future__ import annotations

import bipeds
import numpy as np
import pytest
from mathutils import Vector

from ccd_rig.motion.retargeting.figures import FigureMap, Limb, TargetFigure
from ccd_rig.motion.retargeting.measures import measures
from ccd_rig.motion.retargeting.settings import RetargetSettings
from ccd_rig.solvers.retarget import retarget

FREE = RetargetSettings(contacts=False)


def beast(body, front, high):
    """A skeleton on four legs: length of its body, of its front legs and height of their wrists, metres."""
    given = {
        "hips": (Vector((0.0, 0.0, 0.7)), "", Vector((0.0, -0.2, 0.7))),
        "chest": (Vector((0.0, -0.3, 0.7)), "hips", Vector((0.0, -body, 0.7))),
        "head": (Vector((0.0, -body - 0.2, 0.9)), "chest", Vector((0.0, -body - 0.4, 0.9))),
    }
    for side, sign in (("L", 1.0), ("R", -1.0)):
        x = 0.1 * sign
        for prefix, above, y, top, wrist in (
            ("", "hips", 0.0, 0.65, 0.15),
            ("front_", "chest", -body, 0.05 + front, high),
        ):
            knee = 0.5 * (top + wrist)
            ends = [(y, top), (y - 0.06, knee), (y, wrist), (y - 0.08, 0.02), (y - 0.14, 0.02)]
            parents = (above, *(f"{prefix}{name}.{side}" for name in ("thigh", "shin", "foot")))
            for k, name in enumerate(("thigh", "shin", "foot", "toe")):
                head, tail = (Vector((x, *ends[i])) for i in (k, k + 1))
                given[f"{prefix}{name}.{side}"] = head, parents[k], tail
    return bipeds.skeleton(given)


def beasts_map(figure):
    legs = tuple(
        Limb(f"{word} {girdle} leg", *(f"{prefix}{n}.{s}" for n in ("thigh", "shin", "foot", "toe")), girdle)
        for girdle, prefix in (("", ""), ("front", "front_"))
        for s, word in (("L", "left"), ("R", "right"))
    )
    names = {joint.name: joint.name for joint in figure.joints}
    return FigureMap(names, "hips", legs, (), ("chest",), "head")


def test_a_body_on_four_legs_stands_upright_along_the_ground():
    figure = beast(0.9, 0.6, 0.1)
    heads, _ = TargetFigure.at_rest(figure).reference
    feet, hips, top = beasts_map(figure).middles({j.name: heads[figure.index(j.name)] for j in figure.joints})
    way = (top - hips) / np.linalg.norm(top - hips)
    assert way[2] > 0.99 and hips[2] > feet[2] + 0.4


def test_a_beast_of_other_proportions_stands_and_steps_on_its_own_feet():
    """Its body is longer, its wrists are higher: front feet stay under its own shoulders, on the ground."""
    own, other = beast(0.9, 0.6, 0.1), beast(1.3, 0.55, 0.2)
    rotations = np.tile((1.0, 0.0, 0.0, 0.0), (30, len(own), 1))
    for name, phase in (
        ("thigh.L", 0.0),
        ("thigh.R", np.pi),
        ("front_thigh.L", np.pi),
        ("front_thigh.R", 0.0),
    ):
        half = 0.1 * np.sin(np.linspace(0.0, 2.0 * np.pi, 30) + phase)
        rotations[:, own.index(name)] = np.stack((np.cos(half), np.sin(half), 0.0 * half, 0.0 * half), axis=1)
    source = bipeds.source_of(own, rotations, np.zeros((30, len(own), 3)))
    target, figure_map = TargetFigure.at_rest(other), beasts_map(own)
    result = retarget(figure_map, target, source, FREE)
    heads, rest = bipeds.heads_of(target, result), target.reference[0]
    errors = measures(figure_map, target, source, result).errors
    for leg in figure_map.legs:
        foot, hip = target.index(leg.end), target.index(leg.upper)
        np.testing.assert_allclose(heads[0, foot] - heads[0, hip], rest[foot] - rest[hip], atol=0.03)
        assert heads[0, foot, 2] == pytest.approx(rest[foot, 2], abs=0.03)
        assert errors[leg.name] < 0.06
