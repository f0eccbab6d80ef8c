"""Contact phases: the frames in which a foot rests on the ground, detected from its motion.

These are the foot plants of Kovar, Schreiner and Gleicher 2002 ("Footskate Cleanup for Motion Capture
Editing") and of Prazak, Hoyet and O'Sullivan 2011 ("Perceptual Evaluation of Footskate Cleanup"). A foot is
down where it is both slow and low. A contact ends at a second, larger threshold (hysteresis), so that noise
does not make it flicker:

    down[f] = speed[f] < v  and height[f] < h              if not down[f - 1]
    down[f] = speed[f] < r v  and height[f] < r h          if down[f - 1]

with thresholds v and h, and r >= 1. Speeds are relative to the ground, which moves under a figure that walks
in place. Fast feet slide more: v is at least `SLIDES` of the ground's speed and `SWINGS` of the foot's.

Heights are above the local ground. From one rise to the next the foot is above one place, whose height is the
foot's lowest (`local_ground`). Stairs and slopes are detected like flat ground. A foot that rests higher than
at other times may also be lifted. Such a contact counts only if the foot gets nearly as low as the foot
beside it, which swings past. Without a foot beside it the ground is level. A known ground replaces these
estimates: heights of a bone above it count from the lowest one.

Arrays are (F, 3) world positions in metres with Z up, and (F,) times in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..maths import batch
from ..maths.batch import Array, Mask, runs
from .settings import ContactThresholds

FLOOR = 5.0
"""Percentile of a point's heights that estimates the ground below it: a single low frame is noise."""

SLIDES = 0.25
"""Sliding speed of a foot in parts of the ground's speed: feet slide in a run more than in a walk."""

RISES = 0.3
"""Part of the height threshold by which a foot has to rise and sink between two places on the ground."""

LEVEL = 0.25
"""Part of the height threshold up to which places count as one level."""

SWINGS, FASTEST = 0.15, 95.0
"""Sliding speed of a foot in parts of its speed, and the percentile of its speeds."""

EVEN = 1.0 - 1e-6
"""Part of a span of time that counts as the full span: sums of frames are not exact."""

BRISK = 10.0 / 3.0
"""Leg lengths per second from which contacts of a faster figure may be shorter, in proportion."""

ONE_WAY = 0.5
"""Part of the way of feet on moving ground that remains after what they go back on it."""

MOST_SHIFTS = 20
"""Steps to the mean velocity of feet on the ground; the first few do most."""

MOST_VOTES = 1000
"""Most velocities of feet that are compared with each other; longer motion is thinned."""


class Phase(NamedTuple):
    """A run of frames in which a foot is down: indices of the first and the last."""

    first: int
    last: int


def contact_phases(
    points: Array,
    times: Array,
    leg: float,
    ground_velocity: Array,
    thresholds: ContactThresholds = ContactThresholds(),  # noqa: B008  (it is frozen)
    beside: Array | None = None,
    ground: Array | None = None,
) -> list[Phase]:
    """The phases in which a point is down, in order; they do not touch.

    Args:
        points: (F, 3) world metres.
        times: (F,) seconds, increasing.
        leg: its length, world metres, above 0.
        ground_velocity: (3,) metres per second, 0 for ground that stands still; see `ground_velocity`.
        beside: (F, 3) the foot beside it, such as the other foot of a person; None if there is none: the
            ground is then level.
        ground: (F,) height below the point; NaN where there is no ground, and no contact. None if it is
            unknown; a known ground replaces the foot beside it.
    """
    if len(times) < 2:
        return []
    speeds = np.linalg.norm(np.gradient(points, times, axis=0) - ground_velocity, axis=1) / leg
    low = thresholds.height * leg
    if ground is None:
        below = level_ground(points[:, 2]) if beside is None else local_ground(points[:, 2], low)
        heights = (points[:, 2] - below) / leg
    else:
        heights = heights_above(points, ground) / leg
    slow = _slide(thresholds.speed, ground_velocity / leg, speeds)
    shortest = shortest_contact(float(np.median(speeds)), thresholds)
    down, is_down = np.zeros(len(times), np.bool_), False
    for f, (speed, height) in enumerate(zip(speeds.tolist(), heights.tolist(), strict=True)):
        factor = thresholds.release if is_down else 1.0
        is_down = speed < factor * slow and height < factor * thresholds.height
        down[f] = is_down
    _drop_short(~down, down, times, shortest, at_ends=False)
    if beside is not None and ground is None:
        # No contact is that of a lifted foot: on a higher level than at other times, and never as low as the
        # foot beside it.
        for contact in runs(down):
            above = points[contact, 2] - beside[contact, 2]
            if (below[contact] - below.min()).min() > low and above.min() > low:
                down[contact] = False
    _drop_short(down, down, times, shortest, at_ends=True)
    return [Phase(run.start, run.stop - 1) for run in runs(down)]


def shortest_contact(pace: float, thresholds: ContactThresholds) -> float:
    """Seconds that a contact lasts at least, at a pace in leg lengths per second: less in a gallop."""
    return thresholds.shortest * min(1.0, BRISK / max(pace, 1e-12))


def heights_above(points: Array, ground: Array) -> Array:
    """(F,) heights of points (F, 3) above a known ground (F,), metres.

    They count from the lowest, as a bone is above its foot's sole. They are infinite without ground.
    """
    heights, known = points[:, 2] - ground, np.isfinite(ground)
    lowest = np.percentile(heights[known], FLOOR) if known.any() else 0.0
    return np.where(known, heights - lowest, np.inf)


def level_ground(heights: Array) -> Array:
    """(F,) height of level ground below a point, metres: the lowest of its heights (F,)."""
    return np.full(len(heights), np.percentile(heights, FLOOR))


def local_ground(heights: Array, low: float) -> Array:
    """(F,) height of the ground below a point, estimated from its heights (F,), metres.

    Where the point rises and sinks by a part of `low`, it moves to another place. The lowest height there is
    the ground's, snapped to the lowest of all within `LEVEL`.
    """
    ground = level_ground(heights)
    tops = _tops(heights, RISES * low)
    for first, last in zip([0, *tops], [*tops, len(heights)], strict=True):
        lowest = float(np.percentile(heights[first:last], FLOOR))
        if lowest > ground[first] + LEVEL * low:
            ground[first:last] = lowest
    return ground


def ground_velocity(
    points: Sequence[Array],
    times: Array,
    leg: float,
    thresholds: ContactThresholds = ContactThresholds(),  # noqa: B008  (it is frozen)
    moves: bool = False,
    grounds: Sequence[Array] | None = None,
) -> Array:
    """(3,) velocity of the ground under feet that take turns on it, metres per second, horizontal.

    It is the mode of the velocities of the lowest foot, where it is low. The search starts at the velocity
    with the most others within the sliding speed. It proceeds to the mean of those within the speed at which
    a contact ends (mean shift), then to the median of those at which a contact begins. Feet that land or
    leave, and feet in the air in a run, do not count.

    For a figure that walks in place it is the treadmill's velocity. It is 0 where it is within the sliding
    speed: slow, or of a figure that travels fast. It is also 0 where feet on the ground go
    back as far as ahead, as under a swaying body.

    Args:
        points: of each foot (F, 3) world metres; one foot at least.
        times: (F,) seconds, increasing.
        leg: its length, world metres.
        thresholds: of height and sliding speed.
        moves: whether the ground is known to move, however slowly.
        grounds: (F,) height below each foot, NaN where there is none, but not all; None if it is unknown.
    """
    if len(times) < 2:
        return np.zeros(3)
    if grounds is None:
        heights = np.array([each[:, 2] - level_ground(each[:, 2]) for each in points])
    else:
        heights = np.array([heights_above(*each) for each in zip(points, grounds, strict=True)])
    velocities = np.array([np.gradient(each, times, axis=0) for each in points])
    lowest, frames = np.argmin(heights, axis=0), np.arange(len(times))
    down = velocities[lowest, frames][heights[lowest, frames] < thresholds.height * leg]
    votes = down[:: -(-len(down) // MOST_VOTES)]
    slides = np.maximum(thresholds.speed * leg, SLIDES * np.linalg.norm(votes[:, :2], axis=1))
    beside = np.linalg.norm(votes[None] - votes[:, None] * (1.0, 1.0, 0.0), axis=2) <= slides[:, None]
    velocity = votes[int(np.argmax(beside.sum(axis=1)))] * (1.0, 1.0, 0.0)
    for step in range(MOST_SHIFTS + 1):
        is_last = step == MOST_SHIFTS
        slide = max(thresholds.speed * leg, SLIDES * float(np.linalg.norm(velocity)))
        if not is_last:
            slide = thresholds.release * _slide(slide, velocity, batch.length(velocities - velocity, -1))
        near = votes[np.linalg.norm(votes - velocity, axis=1) <= slide]
        if len(near):
            middle = np.median(near, axis=0) if is_last else near.mean(axis=0)
            velocity = middle * (1.0, 1.0, 0.0)
    travel = np.mean([each[-1] - each[0] for each in points], axis=0) / (times[-1] - times[0])
    slide = max(thresholds.speed * leg, SLIDES * float(np.linalg.norm(travel[:2])))
    along = votes @ velocity
    one_way = along.sum() > ONE_WAY * np.abs(along).sum()
    is_fast = float(np.linalg.norm(velocity)) > slide
    return velocity if one_way and (moves or is_fast) else np.zeros(3)


def _slide(speed: float, ground_velocity: Array, speeds: Array) -> float:
    """Sliding speed of feet on the ground: at least `speed`, and more for fast ground and fast feet."""
    fastest = float(np.percentile(speeds, FASTEST))
    return max(speed, SLIDES * float(np.linalg.norm(ground_velocity)), SWINGS * fastest)


def _tops(heights: Array, rise: float) -> list[int]:
    """Indices of maxima of heights (F,), each with a rise before and a fall after it of at least `rise`."""
    tops, highest, lowest, is_rising = [], 0, 0, False
    for f, height in enumerate(heights.tolist()):
        if is_rising:
            highest = f if height > heights[highest] else highest
            if height < heights[highest] - rise:
                tops.append(highest)
                lowest, is_rising = f, False
        else:
            lowest = f if height < heights[lowest] else lowest
            if height > heights[lowest] + rise:
                highest, is_rising = f, True
    return tops


def _drop_short(chosen: Mask, down: Mask, times: Array, shortest: float, at_ends: bool) -> None:
    """Flip frames of short runs, in place; runs cut off by an end of the range only `at_ends`."""
    frame = float(np.median(np.diff(times)))
    for run in runs(chosen):
        is_cut = run.start == 0 or run.stop == len(times)
        if times[run.stop - 1] - times[run.start] + frame < EVEN * shortest and (at_ends or not is_cut):
            down[run] ^= True
