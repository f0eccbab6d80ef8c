"""Pulls of a body that is held by pins: its poses go on evenly, within its reach and beyond.

The nearest pose to the press jumps where another one becomes nearer. So pulled points go straight from the
press to their places, and each pose on the way is solved from the one before it, as the nearest to the press
(Allgower and Georg 1990, "Numerical continuation methods"). It is a function of the places alone.

A body at the end of its reach turns at any speed beside its pulled points. So they hang on springs
(`springs`), whose length is taken out again by the method of multipliers (Hestenes 1969, "Multiplier and
gradient methods"). A few rounds do so where the body is pliant. They do little where it is stretched.

Shapes: J joints, P pulls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from mathutils import Vector

from ..goals import Goal, PositionGoal
from ..maths.batch import Array, length
from ..settings import SolverSettings
from ..skeleton.joints import Skeleton
from ..skeleton.pose import Pose
from .pose_search import PoseSearch, Solved
from .problem_tables import Bones, stored_targets
from .springs import past, slack, with_springs

COMPLIANCE = 1e-3
"""Compliance of the springs: square length, in square lengths of the longest chain, per square departure.

At a tenth of it arms, heads and feet at the end of their reach turn 2 to 3 times as fast.
"""
ROUNDS = 4
"""Rounds in which the springs' length is taken out: of some 5 thousandths of a chain's length 1e-6 is left.

Each makes springs stiffer where the body is stretched.
"""
LONGEST = 0.03
"""Length of a spring at its largest force, in lengths of the longest chain.

At 0.06 legs turn by 50 degrees at once while two hands are pulled apart, far out of reach. At 0.02 a head in
reach is missed by 7 mm.
"""
STRIDE = 0.06
"""Step of the way, in lengths of the longest chain: joints turn by some 5 degrees."""
MOST_STRIDES = 16
"""Most steps of a way: far ways have longer ones."""
MISSED = 1e-3
"""Length, in lengths of the longest chain, from which a pull is missed: then joints leave their comfort."""


class LedPulls:
    """Pulls from one pose on, prepared for any number of updates."""

    def __init__(
        self,
        skeleton: Skeleton,
        pose: Pose,
        pulls: Sequence[PositionGoal],
        holds: Sequence[Goal],
        settings: SolverSettings,
        reach: float,
    ) -> None:
        """Prepare pulls.

        Args:
            pose: at the press.
            pulls: with their targets at the press.
            holds: all other goals.
            settings: of each solve.
            reach: the unit of length by which shifts count beside turns.
        """
        self._settings, self._reach, self._count = settings, reach, len(skeleton)
        self._skeleton, goals = with_springs(skeleton, pulls, range(len(pulls)), math.sqrt(COMPLIANCE))
        self._goals, self._targets = (*goals, *holds), stored_targets(holds)
        self._starts = np.array([goal.target[:] for goal in pulls], np.float64)
        self._near, self._bones = slack(pose, len(pulls)), Bones.of(self._skeleton)
        self._searches: dict[bool, PoseSearch] = {}  # by comfort

    def solve(self, places: Sequence[Vector]) -> Solved:
        """Solve for places, one per pull: inside comfort where that is enough.

        The solved pose has P more joints, the springs.
        """
        ways, comfort = np.array([place[:] for place in places], np.float64) - self._starts, True
        while True:
            search = self._search(comfort and self._settings.comfort)
            step = self._follow(search, ways)
            if search.regions is None or length(step.springs, -1).max() <= MISSED * self._reach:
                return step.solved
            comfort = False

    def _search(self, comfort: bool) -> PoseSearch:
        """The search inside comfort or not, made at its first use."""
        if comfort not in self._searches:
            settings = replace(self._settings, comfort=comfort)
            self._searches[comfort] = PoseSearch(self._skeleton, self._goals, settings, reach=self._reach)
        return self._searches[comfort]

    def _follow(self, search: PoseSearch, ways: Array) -> _Step:
        """Follow the ways (P, 3) of the pulls; returns the pose at their ends."""
        step = self._step(search, self._near, 0.0 * ways, 0.0 * ways)
        whole = float(length(ways, -1).max())
        stride = max(STRIDE * self._reach, whole / MOST_STRIDES)
        for k in range(1, math.ceil(whole / stride) + 1):
            to = ways * min(k * stride / whole, 1.0)
            step = self._step(search, step.pose, to, self._beyond(step))
        held = 0.0 * ways
        for _ in range(ROUNDS):
            shares = 1.0 - length(step.springs, -1) / (LONGEST * self._reach)  # none of the longest springs
            held = held + step.springs * np.maximum(shares, 0.0)[:, None]
            step = self._step(search, step.pose, ways, self._beyond(step) - held)
        return step

    def _beyond(self, step: _Step) -> Array:
        """(P, 3) what is past the longest springs."""
        return past(step.springs, LONGEST * self._reach)

    def _step(self, search: PoseSearch, start: tuple[Array, Array], ways: Array, short: Array) -> _Step:
        """Solve from a pose with points on their way, and springs that end short of it."""
        places = self._starts + ways
        anchors = [*(places - short)[:, None], *self._targets]
        solved = search.solve(*start, anchors, self._near)
        shifts = solved.translations.copy()
        shifts[:, self._count :] = 0.0
        heads, _ = self._bones.transforms(self._skeleton, solved.rotations, shifts)
        return _Step(solved, places - heads[0, self._count :])


class _Step(NamedTuple):
    """A pose on the way."""

    solved: Solved
    springs: Array  # (P, 3) from pulled points to their places on the way

    @property
    def pose(self) -> tuple[Array, Array]:
        return self.solved.rotations, self.solved.translations
