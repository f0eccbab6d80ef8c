# SPDX-License-Identifier: GPL-3.0-or-later
"""How every frame is solved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...maths.batch import Array
from ...settings import SolverSettings
from ...skeleton.pose_library import PoseEntry
from ..scene.evaluation import Samples

Reference: TypeAlias = Callable[[Samples], Array]
"""Gives what the poses of R frames are to stay near to: (R, J, 4) rotations."""


def base_rotations(samples: Samples) -> Array:
    """(R, J, 4) of the evaluated poses."""
    return samples.rig.rotations


@dataclass(frozen=True)
class FrameSolveSettings:
    """How every frame of a bake is solved.

    Attributes:
        solver: position tolerance in world metres.
        error_reduction: `SolverSettings.error_reduction` of each solve; None: the solver's own step.
        poses: the pose library; entries for other bones are left out.
        reference: what poses are to stay near to.
        smoothness: what changes from frame to frame count, see `solvers.motion`.
    """

    solver: SolverSettings
    error_reduction: float | None
    poses: Sequence[PoseEntry] = ()
    reference: Reference = base_rotations
    smoothness: float = 0.0
