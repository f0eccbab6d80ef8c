"""Poses as the arrays that `solve_many` takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mixtures import ANGLE, POSITION

from ccd_rig import Pose, SolverSettings

SETTINGS = SolverSettings(position_tolerance=POSITION, angle_tolerance=ANGLE, max_iterations=60, restarts=2)


def arrays(poses: Sequence[Pose]) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (B, n, 4) and translations (B, n, 3)."""
    return (
        np.array([[q[:] for q in pose.rotations] for pose in poses]),
        np.array([[t[:] for t in pose.translations] for pose in poses]),
    )
