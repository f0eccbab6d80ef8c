"""A least squares problem of one pose: from a pose to its arrays and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from mathutils import Quaternion, Vector

from ...goals import Goal, served
from ...limits.hinges import composed
from ...limits.shapes import Limit, Slide, clamp
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose, check_pose
from .problem import LeastSquaresProblem, Residual
from .state import Bones, Given, Poses, State, posed_state, start_state
from .step import LONGEST
from .windows import ReachWindow


class PoseProblem(LeastSquaresProblem):
    """Goals with their own targets, and what may move for them: the same for every pose that is tried.

    What moves for a goal, and reach windows, are those of the passes before and after (`ccd/`).

    Attributes:
        longest: (k,) the longest step of each column, radians and parts of the reach.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        goals: Sequence[Goal],
        limits: Sequence[Limit | None],
        movable: Sequence[int] | None = None,
    ) -> None:
        super().__init__(skeleton, goals, limits, movable)
        self._limits = tuple(limits)
        self.longest = np.minimum(self.layout.longest, LONGEST)
        self._bones, self._targets = Bones.of(skeleton), self.own_targets()
        # What poses bring that shift no joint.
        self._unshifted = self.given(self._bones, Poses.of([Pose.rest(skeleton)]), self._targets)

    def serving(self) -> list[set[int]]:
        """The joints that move for each goal: of a pole its root alone."""
        return [set(served(goal, self.skeleton)) for goal in self.goals]

    def asked_windows(self, factor: float) -> list[ReachWindow]:
        """None: the passes keep to reach windows."""
        return []

    def clamped(self, pose: Pose) -> Pose:
        """`pose` with the joints that may move inside their limits; `pose` itself where they are."""
        layout = self.layout
        check_pose(self.skeleton, pose)
        rotations, translations = list(pose.rotations), list(pose.translations)
        changed = False
        for i in layout.moved:
            limit = self._limits[i]
            if limit is not None:
                rotations[i] = clamp(limit, rotations[i])
                changed = changed or rotations[i] is not pose.rotations[i]
        for i, slide in layout.slides:
            along = _along(pose, i, slide)
            inside = min(max(along, slide.lower), slide.upper)
            if along != inside:
                translations[i] = translations[i] + (inside - along) * Vector(slide.axis)
                changed = True
        return Pose(tuple(rotations), tuple(translations)) if changed else pose

    def arrays(self, pose: Pose) -> tuple[Given, State]:
        """What a pose brings, and its state; its joints are inside their limits."""
        poses = Poses.of([pose])
        given = self._given(poses)
        return given, start_state(self.layout, given, poses)

    def residual(self, pose: Pose) -> Residual:
        """How far off the goals are in a pose whose joints are inside their limits."""
        poses = Poses.of([pose])
        given = self._given(poses)
        return self.evaluate(given, posed_state(self.layout, given, poses))

    def _given(self, poses: Poses) -> Given:
        if poses.translations.any():
            return self.given(self._bones, poses, self._targets)
        return self._unshifted

    def pose(self, start: Pose, before: State, state: State) -> Pose:
        """`start`, whose state is `before`, with the moved joints as in `state`.

        What did not move keeps its very bits.
        """
        layout = self.layout
        rotations, translations = list(start.rotations), list(start.translations)
        angles, angles_before = state.angles[:, 0].tolist(), before.angles[:, 0].tolist()
        for i, columns in layout.hinges_of.items():
            if angles[columns] != angles_before[columns]:
                rotations[i] = composed(layout.hinges[columns], angles[columns])
        balls, balls_before = (each.rotations[:, layout.ball_rows, 0].T.tolist() for each in (state, before))
        for i, rotation, rotation_before in zip(layout.balls, balls, balls_before, strict=True):
            if rotation != rotation_before:
                rotations[i] = Quaternion(rotation)
        for i in layout.moved:
            limit = self._limits[i]
            if limit is not None:
                rotations[i] = clamp(limit, rotations[i])
            rotations[i] = rotations[i].freeze()
        for k, (i, slide) in enumerate(layout.slides):
            shift = float(state.slides[k, 0] - before.slides[k, 0])
            if shift != 0.0:
                translations[i] = (translations[i] + shift * Vector(slide.axis)).freeze()
        return Pose.trusted(tuple(rotations), tuple(translations))


def _along(pose: Pose, i: int, slide: Slide) -> float:
    """The shift of joint `i` along a slide."""
    return math.fsum(a * b for a, b in zip(slide.axis, pose.translations[i][:], strict=True))
