"""Steps of carrying a motion over, each where its outcome is known beforehand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import bipeds
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from ccd_rig.limits.shapes import Hinge
from ccd_rig.motion.contacts import Phase
from ccd_rig.motion.retargeting import alignment, over_ground, stances
from ccd_rig.motion.retargeting.feet import Hold, SolePart
from ccd_rig.motion.retargeting.figures import TargetFigure, turned
from ccd_rig.solvers.retarget_goals import bent_to_usual_side

MAP = bipeds.figure_map()
NO_TURN = (1.0, 0.0, 0.0, 0.0)


def still(figure, count):
    return np.tile(NO_TURN, (count, len(figure), 1)), np.zeros((count, len(figure), 3))


def test_a_joint_keeps_its_limit_and_those_after_it_are_where_the_source_has_them():
    figure = bipeds.skeleton(chest={"limit": Hinge(Vector((1.0, 0.0, 0.0)), -0.5, 0.5)})
    rotations, translations = still(figure, 2)
    chest, head = figure.index("chest"), figure.index("head")
    rotations[1, chest] = Quaternion((1.0, 0.0, 0.0), 0.9)[:]
    source = bipeds.source_of(bipeds.skeleton(), rotations, translations)
    corrections = dict.fromkeys(MAP.sources, np.array(NO_TURN))
    made = alignment.carried_over(MAP, TargetFigure.at_rest(figure), source, corrections)
    for joint, angle in ((chest, 0.5), (head, 0.4)):
        assert made[0, joint] == pytest.approx(NO_TURN, abs=1e-7)
        assert made[1, joint] == pytest.approx(Quaternion((1.0, 0.0, 0.0), angle)[:], abs=1e-6)


@pytest.mark.parametrize("flat", ["target", "source"])
def test_where_a_figure_has_no_width_trunks_are_turned_the_shortest_way(flat):
    """Hips and shoulders of one of them lie in one line: it tells no side."""
    broad = {"left": (0.2, 0.0, 0.0), "right": (-0.2, 0.0, 0.0), "low": (0.0, 0.0, 0.0)}
    line = {"left": (0.0, 0.3, 0.3), "right": (0.0, 0.0, 0.0), "low": (0.0, 0.0, 0.0)}
    up, tilted = {"high": (0.0, 0.0, 1.0)}, {"high": (0.0, 1.0, 1.0)}
    heads = [{**broad, **up}, {**line, **tilted}]
    target, source = heads if flat == "source" else heads[::-1]
    figures = SimpleNamespace(
        target_head=lambda name: np.array(target[name]), source_head=lambda name: np.array(source[name])
    )
    made = alignment._two_ways(figures, ["left", "right"], ["low"], ["high"])
    expected = Vector(target["high"]).rotation_difference(Vector(source["high"]))
    assert made == pytest.approx(expected[:], abs=1e-6)


def test_a_heel_that_goes_with_the_ground_is_down(monkeypatch):
    """Ground that comes at 1.5 m/s, as of a treadmill; the ball is down from the sixth frame on."""
    times, velocity = np.arange(12) / 30.0, np.array((0.0, 1.5, 0.0))
    balls = np.tile((0.0, 0.0, 0.1), (12, 1))
    monkeypatch.setattr(stances, "ball", lambda *_: balls)
    monkeypatch.setattr(
        stances,
        "_sole_points",
        lambda *arguments: {SolePart.HEEL: (velocity * times[:, None])[arguments[-1]]},
    )
    rolls = stances._rolls(SimpleNamespace(times=times), None, None, [Phase(6, 11)], velocity, 0.2)
    assert rolls == [(Hold(SolePart.HEEL, 0, 5),)]


def test_ground_before_the_first_stance_is_as_it_is_and_leads_on_to_a_stance():
    times, raw = np.arange(31) / 30.0, np.full(31, 0.3)
    rows = np.arange(10)
    assert over_ground._settled(raw, times, rows, None, 7.0) == pytest.approx(np.full(10, 0.3))
    assert over_ground._settled(raw, times, np.array([10]), 10, 0.7) == pytest.approx([0.7])


def test_each_limb_is_bent_to_its_usual_side_whichever_comes_first():
    """The right knee is hyperextended by 2 degrees in one frame; the left one never."""
    figure = bipeds.skeleton()
    target = TargetFigure.at_rest(figure)
    rotations, translations = still(figure, 6)
    _, axes = target.reference
    for side in "LR":
        shin = figure.index(f"shin.{side}")
        across = Quaternion(axes[shin]).conjugated() @ Vector((1.0, 0.0, 0.0))
        rotations[:, shin] = Quaternion(across, 0.6)[:]
        if side == "R":
            straight = math.radians(7.5)
            rotations[3, shin] = Quaternion(across, -straight)[:]
    pose = rotations, translations
    made = [bent_to_usual_side(target, pose, legs) for legs in (MAP.legs, MAP.legs[::-1])]
    np.testing.assert_array_equal(made[0], made[1])
    shin = figure.index("shin.R")
    bent, before = turned(made[0][3, shin], np.eye(3)[1]), turned(rotations[3, shin], np.eye(3)[1])
    assert np.linalg.norm(bent - before) > math.radians(1.0)
