"""The phase of the cycle at each frame, in seconds of the cycle.

The path is the speed of the cycle times its phase, so a foot that rests in the cycle rests at any speed. A
walk begins with its feet nearest to the middle of their paths, side by side for two feet, and its phase
starts from rest along a smooth step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InvalidInput
from ...maths.batch import Array, smooth_step
from ..settings import WalkSettings
from .cycle import Cycle

LONGEST = 1e5
"""Seconds of a walk at most."""
ALIKE = 1e-3
"""Leg lengths by which spreads of feet may differ and count as equal."""
BESIDE = 1.5
"""How much farther feet may be from the middle of their ways than at the start for a walk to end there."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """F frames."""

    times: Array  # (F,) seconds
    phases: Array  # (F,) seconds of the cycle, not decreasing
    shares: Array  # (F,) 0 where the figure stands, 1 where it walks
    # Whether it stands at the first, and at the last.
    start: bool
    stop: bool


def timeline(
    cycle: Cycle, length: float, seconds: float, settings: WalkSettings, ways: Array | None = None
) -> Timeline:
    """Frames for a way.

    Args:
        length: metres that there are; `settings.cycles` may ask for fewer.
        seconds: from one frame to the next.
        settings: start, stop, ease and cycles count.
        ways: (F,) metres gone at each frame, which make as many frames; None for the cycle's speed.

    Raises:
        InvalidInput: the way is too short for a step, or ways decrease or are not numbers.
    """
    spread = _spread(cycle)
    # Of equal frames the first: rounding is not to tell which foot leads.
    alike = spread <= spread.min() + ALIKE * cycle.leg
    first = int(np.argmax(alike)) * cycle.step if settings.start else 0.0
    most = length / cycle.speed
    if settings.cycles * cycle.period > LONGEST or most > LONGEST:
        seconds_gone = max(settings.cycles * cycle.period, most)
        raise InvalidInput(
            f"the way takes {seconds_gone:.3g} seconds: at most {LONGEST:.3g}; take a shorter one"
        )
    if settings.cycles > 0.0:
        needed = settings.cycles * cycle.period * cycle.speed
        if needed > length * (1.0 + 1e-9):
            raise InvalidInput(
                lambda metres: (
                    f"{settings.cycles:g} cycles go {metres * needed:.3g} m, the curve "
                    f"{metres * length:.3g} m: take fewer, or 0 for as many as there is way"
                )
            )
        most = settings.cycles * cycle.period
    if ways is not None:
        return _along(cycle, first, seconds, ways, settings)
    if not settings.stop and most < seconds:
        raise InvalidInput("the way is too short for a frame of the cycle: make the curve longer")
    span = (_last_phase(spread, cycle, first, most) if settings.stop else first + most) - first
    ease_in, ease_out = (
        min(settings.ease, span) * flag for flag in (float(settings.start), float(settings.stop))
    )
    total = span + 0.5 * (ease_in + ease_out)
    # A walk that stops has a frame at its end; one that goes on ends with a whole frame.
    count = int(np.ceil(total / seconds - 1e-6) if settings.stop else np.floor(total / seconds + 1e-6))
    times = np.arange(count + 1, dtype=np.float64) * seconds
    phases = _advanced(times, ease_in, total, ease_out)
    phases = first + np.minimum(phases, span)
    return _with_shares(times, phases, cycle, settings.start, settings.stop)


def _spread(cycle: Cycle) -> Array:
    """(K,) distances of feet from the middle of their paths, root mean square, metres."""
    ways = np.stack([foot.balls[:, 0] for foot in cycle.feet.values()])
    return np.asarray(np.sqrt(((ways - ways.mean(axis=1, keepdims=True)) ** 2).mean(axis=0)))


def _last_phase(spread: Array, cycle: Cycle, first: float, most: float) -> float:
    """Phase at which a walk of at most `most` seconds of the cycle comes to stand."""
    low = (spread <= np.roll(spread, 1)) & (spread < np.roll(spread, -1))
    good = np.flatnonzero(low & (spread <= BESIDE * spread.min() + 0.02 * cycle.leg))
    periods = np.arange(int(most / cycle.period) + 2)
    phases: Array = (good[None] * cycle.step + periods[:, None] * cycle.period).reshape(-1)
    phases = phases[(phases > first + cycle.step) & (phases <= first + most + 1e-9)]
    if not len(phases):
        raise InvalidInput(
            lambda metres: (
                f"the way of {metres * most * cycle.speed:.3g} m is too short for a step of this cycle: make "
                "the curve longer"
            )
        )
    return float(phases.max())


def _advanced(times: Array, ease_in: float, total: float, ease_out: float) -> Array:
    """(F,) phases that go on at a rate of 1, from rest in `ease_in` seconds and to rest in `ease_out`."""

    def eased(u: Array) -> Array:  # the integral of 3 u^2 - 2 u^3 up to u
        u = np.clip(u, 0.0, 1.0)
        return np.asarray(u**3 - 0.5 * u**4)

    phases: Array = times.copy()
    if ease_in > 0.0:
        phases = np.where(times < ease_in, ease_in * eased(times / ease_in), times - 0.5 * ease_in)
    if ease_out > 0.0:
        left = np.maximum(total - times, 0.0)
        missing = np.where(left < ease_out, left - ease_out * eased(left / ease_out), 0.5 * ease_out)
        phases = phases + (missing - 0.5 * ease_out)
        phases = np.where(
            left < ease_out,
            total - 0.5 * ease_in - 0.5 * ease_out - ease_out * eased(left / ease_out),
            phases,
        )
    return np.asarray(phases)


def _along(cycle: Cycle, first: float, seconds: float, ways: Array, settings: WalkSettings) -> Timeline:
    ways = np.asarray(ways, np.float64)
    if ways.ndim != 1 or len(ways) < 2 or not np.isfinite(ways).all():
        raise InvalidInput("ways must be two numbers of metres or more, one for each frame")
    back = np.flatnonzero(np.diff(ways) < -1e-9)
    if len(back):
        raise InvalidInput(f"the way goes back after row {back[0]}: let what is keyed only grow")
    if not ways[-1] > ways[0]:
        raise InvalidInput("the way does not go on: key a larger value at its end")
    phases = first + (np.maximum.accumulate(ways) - ways[0]) / cycle.speed
    slow = 0.1 * cycle.speed * seconds
    start, stop = ways[1] - ways[0] < slow, ways[-1] - ways[-2] < slow
    times = np.arange(len(ways), dtype=np.float64) * seconds
    return _with_shares(times, phases, cycle, settings.start and bool(start), settings.stop and bool(stop))


def _with_shares(times: Array, phases: Array, cycle: Cycle, start: bool, stop: bool) -> Timeline:
    """The pose goes over from standing in a quarter of a stride, and back."""
    quarter = 0.25 * cycle.stride_time
    shares: Array = np.ones(len(times))
    if start:
        shares = np.minimum(shares, smooth_step((phases - phases[0]) / quarter))
    if stop:
        shares = np.minimum(shares, smooth_step((phases[-1] - phases) / quarter))
    return Timeline(times, phases, shares, start, stop)
