"""How far a solve has come: the best pose so far, and whether it still wins anything."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mathutils import Quaternion

from ...goals import GoalError
from ...settings import SolverSettings
from .working_pose import WorkingPose

SLOW_WINDOW = 40
"""Iterations over which the error must fall by at least SLOW_GAIN, else the solve counts as stalled."""
SLOW_GAIN = 0.02


def met(error: GoalError, settings: SolverSettings) -> bool:
    """Whether a goal is within its tolerance."""
    return error.distance <= settings.position_tolerance and error.angle <= settings.angle_tolerance


class Progress:
    """The best pose of one solve so far, and how long it took."""

    def __init__(self, working: WorkingPose) -> None:
        self.rotations: list[Quaternion] = list(working.rotations)
        self.slides: list[tuple[float, ...]] = list(working.slides)
        self.error = math.inf
        self.seen = math.inf  # the error of the pose that was noted last
        self.iterations = 0
        self.history: list[float] = []
        self.caps: dict[int, GoalError] = {}
        self.hurried = False  # a dead end is left at once, because other starts are waiting
        self.calm = False  # a dead end is not left by a nudge: comfort gives way to limits instead

    def begin(self, gain: float = 0.0) -> None:
        """A new stage: what was best under other limits or for other goals does not count any more.

        With a `gain` the stage goes on from here, but only a pose that is nearer by as much counts.
        """
        self.error = max(0.0, math.sqrt(self.error) - gain) ** 2 if gain else math.inf
        self.history = []

    def note(self, working: WorkingPose, goals: Sequence[int]) -> list[GoalError]:
        """Keeps the working pose if it is the best so far for these goals; returns how far off each of them
        is."""
        errors = [working.effectors[k].error() for k in goals]
        self.seen = math.fsum(working.effectors[k].square() for k in goals)
        if self.seen < self.error and self.holds_caps(working):
            self._keep(working)
        self.history.append(self.error)
        return errors

    def meets(self, working: WorkingPose, errors: Sequence[GoalError], settings: SolverSettings) -> bool:
        """Whether goals are within their tolerances, and those that are served first as near as they were.

        Such a pose is the best: one noted before may have the smaller sum of errors, and miss a goal.

        Args:
            working: the pose that was noted last.
            errors: how far off the goals are in it.
            settings: with the tolerances.
        """
        if not (all(met(error, settings) for error in errors) and self.holds_caps(working)):
            return False
        self._keep(working)
        return True

    def _keep(self, working: WorkingPose) -> None:
        self.error = self.seen
        self.rotations = list(working.rotations)
        self.slides = list(working.slides)

    def holds_caps(self, working: WorkingPose) -> bool:
        """Whether goals that are served first are as near as they were."""
        for k, cap in self.caps.items():
            error = working.effectors[k].error()
            if error.distance > cap.distance or error.angle > cap.angle:
                return False
        return True

    def slow(self) -> bool:
        """Whether the last SLOW_WINDOW iterations won next to nothing. Errors are squared distances."""
        if len(self.history) <= SLOW_WINDOW:
            return False
        return self.error >= self.history[-1 - SLOW_WINDOW] * (1.0 - SLOW_GAIN) ** 2
