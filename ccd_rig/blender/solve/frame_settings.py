# SPDX-License-Identifier: GPL-3.0-or-later
"""How every frame is solved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...settings import SolverSettings
from ...skeleton.pose import Pose
from ...skeleton.pose_library import PoseEntry
from ..scene.evaluation import FrameSample


def base_pose(sample: FrameSample) -> Pose:
    """The evaluated pose of the chains."""
    return sample.reading.pose


@dataclass(frozen=True)
class FrameSolveSettings:
    """How every frame of a bake is solved.

    Attributes:
        solver: position tolerance in world metres.
        error_reduction: `SolverSettings.error_reduction` of each solve; None: the solver's own step.
        poses: the pose library; entries for other bones are left out.
        reference: the reference pose of a frame; None: it has none.
        smoothness: what changes from frame to frame count, see `solvers.motion`.
    """

    solver: SolverSettings
    error_reduction: float | None
    poses: Sequence[PoseEntry] = ()
    reference: Callable[[FrameSample], Pose | None] = base_pose
    smoothness: float = 0.0
