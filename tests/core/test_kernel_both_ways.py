"""The compiled kernel and its plain modules solve alike: the same bits."""

from __future__ import annotations

import os

import numpy as np
import pytest
from mixtures import mixture

from ccd_rig import kernel
from ccd_rig.kernel import pose as plain_pose
from ccd_rig.kernel import skeleton as plain_skeleton
from ccd_rig.settings import SolveResult
from ccd_rig.solvers import pose_search, problem_tables

IS_PLAIN = os.environ.get("CCD_RIG_KERNEL") == "plain"
"""Whether the plain modules run in any case: they are compared with themselves."""
SEEDS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)


def numbers(result: SolveResult) -> list[bytes]:
    """All bits of a result."""
    pose = result.pose
    rows = [[q[:] for q in pose.rotations], [t[:] for t in pose.translations], result.errors]
    return [np.array(row, np.float64).tobytes() for row in rows]


@pytest.mark.parametrize("seed", SEEDS)
def test_both_ways_give_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = mixture(seed, rolls=seed % 3 == 0).solve()
    with monkeypatch.context() as patch:
        for module in (pose_search, problem_tables):
            patch.setattr(module, "Problem", plain_skeleton.Problem)
        patch.setattr(problem_tables, "measure_placed", plain_pose.measure_placed)
        patch.setattr(pose_search, "set_search", plain_pose.set_search)
        patch.setattr(pose_search, "solve_poses", plain_pose.solve_poses)
        plain = mixture(seed, rolls=seed % 3 == 0).solve()  # a skeleton keeps its problems: another one
    assert (kernel.Problem is plain_skeleton.Problem) == IS_PLAIN
    assert compiled.status is plain.status
    assert compiled.iterations == plain.iterations
    assert numbers(compiled) == numbers(plain)
