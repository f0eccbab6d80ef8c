"""Contact phases: the frames in which a foot rests on the ground, read from its motion.

These are the foot plants of Kovar, Schreiner and Gleicher 2002 ("Footskate Cleanup for Motion Capture
Editing") and of Prazak, Hoyet and O'Sullivan 2011 ("Perceptual Evaluation of Footskate Cleanup"). A foot is
down where it is both slow and low. Each threshold has a second, larger one at which a contact ends
(hysteresis), so that noise about a threshold makes no contact flicker:

    down[f] = speed[f] < v  and height[f] < h              if not down[f - 1]
    down[f] = speed[f] < r v  and height[f] < r h          if down[f - 1]

with thresholds v and h, and r >= 1. The speed is that of the point beside the ground, which moves under a
figure that walks in place. Feet slide more the faster they go: v is at least `SLIDES` of the ground's speed
and `SWINGS` of the foot's own.

The height is that above the ground where the foot is. From one rise to the next the foot is above one place,
whose height is the lowest that it gets to (`local_ground`). So stairs and slopes are found as flats are. A
foot that rests higher than at other times may just be lifted, though: then it counts as down only if, during
that contact, it is about as low as the foot beside it, which swings past. Without one the ground is level.
Where the ground is known it is told nothing by feet: a bone's height above it is taken from the lowest one.

Arrays are (F, 3) world positions in metres with Z up, and (F,) times in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import InvalidInput
from ..maths.batch import Array, Mask

FLOOR = 5.0
"""Percentile of a point's heights that is taken for the ground under it: a single low frame is noise."""

SLIDES = 0.25
"""Part of the speed of moving ground by which a foot may miss it: feet slide in a run more than in a walk."""

RISES = 0.3
"""Part of the height threshold by which a foot has to rise and sink between two places on the ground."""

LEVEL = 0.25
"""Part of the height threshold up to which places count as one level, that of all the motion."""

SWINGS, FASTEST = 0.15, 95.0
"""Part of a foot's own speed by which it may slide, and the percentile of its speeds that this is."""

EVEN = 1.0 - 1e-6
"""Part of a span of time that counts as all of it: sums of frames are not exact."""

MOST_SHIFTS = 20
"""Steps to the mean velocity of feet on the ground; the first few do most."""

MOST_VOTES = 1000
"""Velocities of feet that are compared with each other, at most; longer motion is thinned."""


@dataclass(frozen=True)
class ContactThresholds:
    """When a foot is down; the lengths in those of a leg, so that they suit figures of any size.

    Attributes:
        speed: leg lengths per second below which a contact begins; more for feet that go fast, see above.
        height: leg lengths above the ground below which a contact begins.
        release: factor on both at which a contact ends, at least 1.
        shortest: seconds; shorter gaps between contacts are closed, then shorter contacts left out.
    """

    speed: float = 0.4
    height: float = 0.1
    release: float = 1.5
    shortest: float = 0.1

    def __post_init__(self) -> None:
        for field in ("speed", "height"):
            if not getattr(self, field) > 0.0:
                raise InvalidInput(f"{field} must be above 0, not {getattr(self, field)}")
        if not self.release >= 1.0:
            raise InvalidInput(f"release must be at least 1, not {self.release}")
        if not self.shortest >= 0.0:
            raise InvalidInput(f"shortest must be at least 0, not {self.shortest}")


class Phase(NamedTuple):
    """Frames in a row in which a foot is down: places of the first and of the last."""

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
        leg: its length, world metres.
        ground_velocity: (3,) metres per second, 0 for ground that stands still; see `ground_velocity`.
        thresholds: when it is down.
        beside: (F, 3) the foot beside it, such as the other one of a person; None if there is none: the
            ground is level then.
        ground: (F,) height below the point, not a number where there is none: it is not down there. None if
            that is not known; if it is, the foot beside it does not count.

    Raises:
        InvalidInput: shapes do not fit, times do not increase, or the leg has no length.
    """
    _require(points, times)
    if beside is not None:
        _require(beside, times, "beside")
    if not leg > 0.0:
        raise InvalidInput(f"leg must be above 0, not {leg}")
    if len(times) < 2:
        return []
    speeds = np.linalg.norm(np.gradient(points, times, axis=0) - ground_velocity, axis=1) / leg
    low = thresholds.height * leg
    if ground is None:
        below = level_ground(points[:, 2]) if beside is None else local_ground(points[:, 2], low)
        heights = (points[:, 2] - below) / leg
    else:
        heights = heights_above(points, ground) / leg
    slides = SLIDES * float(np.linalg.norm(ground_velocity)) / leg
    slow = max(thresholds.speed, slides, SWINGS * float(np.percentile(speeds, FASTEST)))
    down, is_down = np.zeros(len(times), np.bool_), False
    for f, (speed, height) in enumerate(zip(speeds.tolist(), heights.tolist(), strict=True)):
        factor = thresholds.release if is_down else 1.0
        is_down = speed < factor * slow and height < factor * thresholds.height
        down[f] = is_down
    _drop_short(~down, down, times, thresholds.shortest, at_ends=False)
    if beside is not None and ground is None:
        _drop_lifted(down, points[:, 2] - beside[:, 2], below - below.min(), low)
    _drop_short(down, down, times, thresholds.shortest, at_ends=True)
    return [Phase(first, last) for first, last in _runs(down)]


def heights_above(points: Array, ground: Array) -> Array:
    """(F,) heights of points (F, 3) above a known ground (F,), metres: 0 where they are lowest above it, as a
    bone in a foot is not its sole; infinite where no ground is.

    Raises:
        InvalidInput: shapes do not fit.
    """
    if ground.shape != points.shape[:1]:
        raise InvalidInput(f"ground must be ({len(points)},) as there are {len(points)} times")
    heights, known = points[:, 2] - ground, np.isfinite(ground)
    lowest = np.percentile(heights[known], FLOOR) if known.any() else 0.0
    return np.where(known, heights - lowest, np.inf)


def level_ground(heights: Array) -> Array:
    """(F,) height of the ground below a point, from its own heights (F,), metres: the lowest, everywhere."""
    return np.full(len(heights), np.percentile(heights, FLOOR))


def local_ground(heights: Array, low: float) -> Array:
    """(F,) height of the ground below a point, from its own heights (F,), metres.

    Where the point rises and sinks by a part of `low`, it has gone on to another place. The lowest height
    there is that of the ground, but where it is about the lowest of all.
    """
    ground = level_ground(heights)
    tops = _tops(heights, RISES * low)
    for first, last in zip([0, *tops], [*tops, len(heights)], strict=True):
        own = float(np.percentile(heights[first:last], FLOOR))
        if own > ground[first] + LEVEL * low:
            ground[first:last] = own
    return ground


def ground_velocity(
    points: Sequence[Array],
    times: Array,
    leg: float,
    thresholds: ContactThresholds = ContactThresholds(),  # noqa: B008  (it is frozen)
    moves: bool = False,
    grounds: Sequence[Array] | None = None,
) -> Array:
    """(3,) metres per second, along the ground: how it moves under feet that take turns on it.

    The velocity that most feet on the ground share, of whichever foot is lowest and low. From the one that
    has most others beside it, no farther off than a foot may slide, it goes on to the mean of those no
    farther off than of a foot that stays down (mean shift), then to the median of those that would come
    down. So feet that come or leave, and feet above the ground in a run, do not count.

    It is that of the treadmill for a figure that walks in place. It is 0 where feet may slide as much: a slow
    one, or one of a figure that travels fast. It is 0 too where no more than half of the feet on the ground
    share it, as under a body that sways there and back.

    Args:
        points: of each foot (F, 3) world metres.
        times: (F,) seconds, increasing.
        leg: its length, world metres.
        thresholds: when a foot is low, and how much it may slide.
        moves: whether the ground is known to move, however slowly.
        grounds: of each foot (F,) the height below it, not a number where there is none; None if that is not
            known.

    Raises:
        InvalidInput: there is no foot, shapes do not fit, times do not increase, or nothing is below a foot.
    """
    if not points:
        raise InvalidInput("points must hold at least one foot")
    for each in points:
        _require(each, times)
    if len(times) < 2:
        return np.zeros(3)
    if grounds is None:
        heights = np.array([each[:, 2] - level_ground(each[:, 2]) for each in points])
    else:
        heights = np.array([heights_above(*each) for each in zip(points, grounds, strict=True)])
        if not np.isfinite(heights).any():
            raise InvalidInput("grounds must hold a height below a foot")
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
        most = slide if is_last else thresholds.release * slide
        near = votes[np.linalg.norm(votes - velocity, axis=1) <= most]
        if len(near):
            middle = np.median(near, axis=0) if is_last else near.mean(axis=0)
            velocity = middle * (1.0, 1.0, 0.0)
    travel = np.mean([each[-1] - each[0] for each in points], axis=0) / (times[-1] - times[0])
    slide = max(thresholds.speed * leg, SLIDES * float(np.linalg.norm(travel[:2])))
    is_shared = 2 * len(near) > len(votes)
    return velocity if moves or (is_shared and float(np.linalg.norm(velocity)) > slide) else np.zeros(3)


def _require(points: Array, times: Array, name: str = "points") -> None:
    if points.ndim != 2 or points.shape != (len(times), 3):
        raise InvalidInput(f"{name} must be ({len(times)}, 3) as there are {len(times)} times")
    if not (np.isfinite(points).all() and np.isfinite(times).all()):
        raise InvalidInput(f"{name} and times must be numbers")
    if (np.diff(times) <= 0.0).any():
        raise InvalidInput("times must increase")


def _tops(heights: Array, rise: float) -> list[int]:
    """Places of the highest heights (F,) between two sinks, with a rise and a sink of at least `rise` about
    each."""
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


def _drop_lifted(down: Mask, above: Array, level: Array, low: float) -> None:
    """Turn contacts over, in place, in which a foot is lifted: on a higher level than at other times, and
    never about as low as the foot beside it. `above` (F,) is how much higher it is than that."""
    for first, last in _runs(down):
        contact = slice(first, last + 1)
        if level[contact].min() > low and above[contact].min() > low:
            down[contact] = False


def _drop_short(runs: Mask, down: Mask, times: Array, shortest: float, at_ends: bool) -> None:
    """Turn frames of short runs over, in place; those cut off by an end only `at_ends`."""
    frame = float(np.median(np.diff(times)))
    for first, last in _runs(runs):
        is_cut = first == 0 or last == len(times) - 1
        if times[last] - times[first] + frame < EVEN * shortest and (at_ends or not is_cut):
            down[first : last + 1] ^= True


def _runs(flags: Mask) -> list[tuple[int, int]]:
    """First and last place of each run of true values."""
    padded = np.concatenate(([False], flags, [False])).astype(np.int8)
    edges = np.flatnonzero(np.diff(padded))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]
