"""Contact phases: the frames in which a foot rests on the ground, read from its motion.

These are the foot plants of Kovar, Schreiner and Gleicher 2002 ("Footskate Cleanup for Motion Capture
Editing") and of Prazak, Hoyet and O'Sullivan 2011 ("Perceptual Evaluation of Footskate Cleanup"). A foot is
down where it is both slow and low. Each threshold has a second, larger one at which a contact ends
(hysteresis), so that noise about a threshold makes no contact flicker:

    down[f] = speed[f] < v  and height[f] < h              if not down[f - 1]
    down[f] = speed[f] < r v  and height[f] < r h          if down[f - 1]

with thresholds v and h, and r >= 1. The speed is that of the point beside the ground, which moves under a
figure that walks in place. Feet slide more the faster they go: v is at least `SLIDES` of the ground's speed
and `SWINGS` of the foot's own. Arrays are (F, 3) world positions in metres with Z up, and (F,) times in
seconds.
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

SWINGS, FASTEST = 0.15, 95.0
"""Part of a foot's own speed by which it may slide, and the percentile of its speeds that this is."""


@dataclass(frozen=True)
class ContactThresholds:
    """When a foot is down; the lengths in those of a leg, so that they suit figures of any size.

    Attributes:
        speed: leg lengths per second below which a contact begins; more for feet that go fast, see above.
        height: leg lengths above its lowest height below which a contact begins.
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
) -> list[Phase]:
    """The phases in which a point is down, in order; they do not touch.

    Args:
        points: (F, 3) world metres.
        times: (F,) seconds, increasing.
        leg: its length, world metres.
        ground_velocity: (3,) metres per second, 0 for ground that stands still; see `ground_velocity`.
        thresholds: when it is down.

    Raises:
        InvalidInput: shapes do not fit, times do not increase, or the leg has no length.
    """
    _require(points, times)
    if not leg > 0.0:
        raise InvalidInput(f"leg must be above 0, not {leg}")
    if len(times) < 2:
        return []
    speeds = np.linalg.norm(np.gradient(points, times, axis=0) - ground_velocity, axis=1) / leg
    heights = (points[:, 2] - np.percentile(points[:, 2], FLOOR)) / leg
    slides = SLIDES * float(np.linalg.norm(ground_velocity)) / leg
    slow = max(thresholds.speed, slides, SWINGS * float(np.percentile(speeds, FASTEST)))
    down, is_down = np.zeros(len(times), np.bool_), False
    for f, (speed, height) in enumerate(zip(speeds.tolist(), heights.tolist(), strict=True)):
        factor = thresholds.release if is_down else 1.0
        is_down = speed < factor * slow and height < factor * thresholds.height
        down[f] = is_down
    _drop_short(~down, down, times, thresholds.shortest, at_ends=False)
    _drop_short(down, down, times, thresholds.shortest, at_ends=True)
    return [Phase(first, last) for first, last in _runs(down)]


def ground_velocity(points: Sequence[Array], times: Array) -> Array:
    """(3,) metres per second, along the ground: how it moves under feet that take turns on it.

    The median velocity of whichever foot is lowest above its own ground. So it is about 0 for a figure that
    walks through the world, and that of the treadmill for one that walks in place.

    Args:
        points: of each foot (F, 3) world metres.
        times: (F,) seconds, increasing.

    Raises:
        InvalidInput: there is no foot, shapes do not fit, or times do not increase.
    """
    if not points:
        raise InvalidInput("points must hold at least one foot")
    for each in points:
        _require(each, times)
    if len(times) < 2:
        return np.zeros(3)
    heights = np.array([each[:, 2] - np.percentile(each[:, 2], FLOOR) for each in points])
    velocities = np.array([np.gradient(each, times, axis=0) for each in points])
    lowest = velocities[np.argmin(heights, axis=0), np.arange(len(times))]
    return np.array([*np.median(lowest[:, :2], axis=0), 0.0])


def _require(points: Array, times: Array) -> None:
    if points.ndim != 2 or points.shape != (len(times), 3):
        raise InvalidInput(f"points must be ({len(times)}, 3) as there are {len(times)} times")
    if not (np.isfinite(points).all() and np.isfinite(times).all()):
        raise InvalidInput("points and times must be numbers")
    if (np.diff(times) <= 0.0).any():
        raise InvalidInput("times must increase")


def _drop_short(runs: Mask, down: Mask, times: Array, shortest: float, at_ends: bool) -> None:
    """Turn frames of short runs over, in place; those cut off by an end only `at_ends`."""
    frame = float(np.median(np.diff(times)))
    for first, last in _runs(runs):
        is_cut = first == 0 or last == len(times) - 1
        if times[last] - times[first] + frame < shortest and (at_ends or not is_cut):
            down[first : last + 1] ^= True


def _runs(flags: Mask) -> list[tuple[int, int]]:
    """First and last place of each run of true values."""
    padded = np.concatenate(([False], flags, [False])).astype(np.int8)
    edges = np.flatnonzero(np.diff(padded))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]
