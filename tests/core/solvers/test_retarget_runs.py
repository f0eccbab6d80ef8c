"""Runs carried over: feet that are down for a moment only, and slide then."""

from __future__ import annotations

import bipeds
import numpy as np
import pytest

from ccd_rig.maths import batch
from ccd_rig.motion.contacts import ground_velocity
from ccd_rig.motion.retargeting.figures import TargetFigure, product, turned
from ccd_rig.motion.settings import ContactThresholds, RetargetSettings
from ccd_rig.solvers.retarget import retarget

FPS, CYCLE, DOWN = 60, 42, 10  # frames of a cycle, and those of them in which a foot is down
SPEED, SLIDE = 3.0, 1.0  # [m/s]
PITCHES = (0, 3, 7, DOWN, 24, 36, CYCLE), (-5, 0, 8, 40, 80, 10, -5)  # frames, degrees of heel up
MAP = bipeds.figure_map()


def about_x(angles):
    """(F, 4) rotations."""
    half, none = 0.5 * np.asarray(angles), np.zeros(len(angles))
    return np.stack((np.cos(half), np.sin(half), none, none), axis=1)


def run(figure, frames=3 * CYCLE, start=18, leaving=1.0):
    """A figure that runs along -Y, as a source whose reference pose is its first frame.

    Args:
        figure: of `bipeds`.
        frames: so many.
        start: place in the cycle of the left foot's first frame.
        leaving: where a foot slides as it leaves, 1 for ahead and -1 for back.
    """
    there = TargetFigure.at_rest(figure)
    rest, axes = there.reference
    rotations = np.tile((1.0, 0.0, 0.0, 0.0), (frames, len(figure), 1))
    translations = np.zeros((frames, len(figure), 3))
    time = np.arange(frames)
    way = np.stack((0.0 * time, -SPEED * time / FPS, -0.2 + 0.04 * np.cos(4 * np.pi * time / CYCLE)), axis=1)
    turn = batch.unit(axes[0], -1) * (1.0, -1.0, -1.0, -1.0)
    translations[:, 0] = turned(turn, way)
    for side, offset in (("L", start), ("R", start + CYCLE // 2)):
        hip, knee, ankle, ball = (rest[figure.index(f"{n}.{side}")] for n in ("thigh", "shin", "foot", "toe"))
        count, phase = np.divmod(time + offset, CYCLE)
        swing = np.clip((phase - DOWN) / (CYCLE - DOWN), 0.0, 1.0)
        # Down it slides, at SLIDE as it comes and as it leaves and not at all between.
        part = np.minimum(phase / DOWN, 1.0) - 0.5
        slid = SLIDE * DOWN / FPS * (np.where(part > 0.0, leaving, -1.0) * part**2 + 0.25)
        stride = SPEED * CYCLE / FPS
        gone = (
            count * stride
            + slid
            + (stride - (0.25 + 0.25 * leaving) * SLIDE * DOWN / FPS) * swing**2 * (3.0 - 2.0 * swing)
        )
        gone -= SPEED * (offset - 0.5 * DOWN) / FPS + 0.14
        balls = ball - np.stack((0.0 * gone, gone, -0.25 * np.sin(np.pi * swing) ** 2), axis=1)
        foot = about_x(np.radians(np.interp(phase, *PITCHES)))
        ankles = balls + turned(foot, ankle - ball) - (way - way * (1.0, 0.0, 1.0))
        hips = hip + way * (1.0, 0.0, 1.0)
        # A knee bends ahead: the angle at the hip between the leg's line and the thigh, by the cosine rule.
        line, lengths = ankles - hips, [np.linalg.norm(knee - hip), np.linalg.norm(ankle - knee)]
        far = np.minimum(batch.length(line, -1), 0.999 * sum(lengths))
        open_ = np.arccos((lengths[0] ** 2 + far**2 - lengths[1] ** 2) / (2.0 * lengths[0] * far))
        down = np.arctan2(line[:, 2], line[:, 1])
        thigh = down - open_ - np.arctan2(*(knee - hip)[[2, 1]])
        bent = hips + turned(about_x(thigh), knee - hip)
        shin = np.arctan2(*(ankles - bent).T[[2, 1]]) - np.arctan2(*(ankle - knee)[[2, 1]])
        above = np.zeros(frames)
        pitch = 2.0 * np.arctan2(foot[:, 1], foot[:, 0])
        toes = np.where(phase <= DOWN, np.minimum(pitch, 0.0), pitch)  # flat as long as they are down
        for name, angles in (("thigh", thigh), ("shin", shin), ("foot", pitch), ("toe", toes)):
            j = figure.index(f"{name}.{side}")
            own = np.tile(axes[j], (frames, 1))
            back = own * (1.0, -1.0, -1.0, -1.0)
            rotations[:, j] = product(back, product(about_x(angles - above), own))
            above = angles
    source = bipeds.source_of(figure, rotations, translations, FPS, stands=False)
    object.__setattr__(source, "reference_heads", source.heads[0])
    object.__setattr__(source, "reference_rotations", source.rotations[0])
    return source


def angles(figure, source, result, names):
    """By joint, (F,) degrees between how the source's and the same figure's joint is turned in the world."""
    _, world = TargetFigure.at_rest(figure).world(result.rotations, result.translations)
    rows = [figure.index(name) for name in names]
    return np.degrees(batch.angles_between(world[:, rows], source.rotations[:, rows], -1)).T


@pytest.mark.parametrize("leaving", [1.0, -1.0])
def test_feet_of_a_run_are_down_although_they_slide(leaving):
    """And the ground stands still, even where all feet on it slide ahead."""
    figure = bipeds.skeleton()
    source = run(figure, leaving=leaving)
    result = retarget(MAP, TargetFigure.at_rest(figure), source)
    assert result.stances.velocity.tolist() == [0.0, 0.0, 0.0]
    for name, first in (("left leg", CYCLE - 18), ("right leg", CYCLE // 2 - 18)):
        downs = [first + k * CYCLE for k in range(3)]
        phases = result.stances.phases[name]
        assert [
            down - 2 <= p.first and p.last <= down + DOWN + 2 for down, p in zip(downs, phases, strict=True)
        ]
        assert min(last - first for first, last in phases) >= DOWN // 2


@pytest.mark.parametrize("shortest", [0.1, 10.0])
def test_a_frame_in_the_middle_of_a_stride_is_a_reference(shortest):
    """Feet are turned as the source's, of the same figure, whether or not contacts tell how."""
    figure = bipeds.skeleton()
    source = run(figure)
    settings = RetargetSettings(thresholds=ContactThresholds(1.0 / 3.0, shortest=shortest))
    result = retarget(MAP, TargetFigure.at_rest(figure), source, settings)
    assert any(result.stances.phases.values()) == (shortest < 1.0)
    assert angles(figure, source, result, ("foot.L", "foot.R")).max() < 6.0


def test_few_frames_of_a_fast_foot_do_not_move_the_ground():
    """Two feet that stand, and one of them is kicked along the ground for a third of the time."""
    times = np.arange(90) / 30.0
    standing = np.tile((0.1, 0.0, 0.05), (90, 1))
    kicked = standing * (-1.0, 1.0, 1.0)
    kicked[:30, 1] = 2.0 * times[:30]
    kicked[30:, 1] = kicked[29, 1]
    assert ground_velocity([standing, kicked], times, 0.9).tolist() == [0.0, 0.0, 0.0]
