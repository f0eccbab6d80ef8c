"""What a search of least squares knows of each pose that is left, and the best of all poses."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from ...maths.batch import Array, Indices, Mask, is_all
from .problem import Residual
from .state import State

DAMPING = 0.1
"""Damping of the first step, in parts of the square error."""
DAMPING_UP, DAMPING_DOWN, DAMPING_GROWTH = 10.0, 0.5, 3.0
"""Factors of the damping after a step that failed and one that worked; growth from failure to failure
(Nielsen 1999)."""
LOOSE = 100.0
"""Tolerances within which a pose is near its goals: there the way back to the reference is taken in full."""


@dataclass
class Tracked:
    """What is known of each pose that is not done yet, (B,) each.

    Attributes:
        places: among all poses.
        off: the largest miss in tolerances.
        first_square: square error at the start.
        departed: square departure from the reference.
        damping, growth: of the next step, and what the damping grows by when that fails.
        pull: part of the way back to the reference that is taken.
        loose: see `LOOSE`; 1 without a reference.
        rotated: longest rotation of the last step, radians.
        slow: whether the last step won little, but not at the border of a ball joint.
        curved: whether it was Newton's.
        met, waiting, refused: steps that met the goals, in a row that came near only, and that failed there.
        arrivals: how often it has come near its goals.
        returns: how often it has got its reference back.
    """

    places: Indices
    off: Array
    first_square: Array
    departed: Array
    damping: Array
    growth: Array
    pull: Array
    loose: Array
    rotated: Array
    slow: Mask
    curved: Mask
    met: Indices
    waiting: Indices
    refused: Indices
    arrivals: Indices
    returns: Indices

    @classmethod
    def of(cls, off: Array, square: Array, departed: Array, referred: bool) -> Tracked:
        """At the start."""
        size = len(off)
        return cls(
            np.arange(size),
            off,
            square.copy(),
            departed,
            np.full(size, DAMPING),
            np.full(size, DAMPING_UP),
            np.full(size, float(referred)),
            np.full(size, LOOSE if referred else 1.0),
            np.zeros(size),
            *np.zeros((2, size), dtype=np.bool_),
            *np.zeros((5, size), dtype=np.intp),
        )

    def at(self, some: Indices) -> Tracked:
        """Some of them."""
        return Tracked(*(getattr(self, each.name)[some] for each in fields(self)))

    def near(self) -> Mask:
        """Which are near their goals, and on their way back."""
        found: Mask = self.off <= self.loose
        return found & (self.loose > 1.0)


@dataclass
class Best:
    """The best of all poses, done or not.

    Attributes:
        state, off, square: as `Solved` has them.
        referred: whether poses have a reference.
    """

    state: State
    off: Array
    square: Array
    referred: bool

    def note(self, now: Residual, off: Array, places: Indices) -> None:
        """Keep what is best: of poses that meet their goals the last, else the nearest."""
        nearer = now.square < self.square[places]
        if self.referred:
            nearer = (off <= 1.0) | (nearer & (self.off[places] > 1.0))
        some = np.flatnonzero(nearer)
        if not len(some):
            return
        if is_all(places[some], self.state.size):
            self.state = now.now.state
        else:
            self.state = self.state.joined(places[some], now.now.state.at(some))
        self.off[places[some]] = off[some]
        self.square[places[some]] = now.square[some]
