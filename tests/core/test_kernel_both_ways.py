"""The compiled kernel and its plain modules solve alike: the same bits."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from chains import legal_pose, random_limit, random_rotation
from mathutils import Vector
from mixtures import mixture

from ccd_rig import kernel
from ccd_rig.goals import PositionGoal
from ccd_rig.kernel import closed_forms as plain_closed_forms
from ccd_rig.kernel import motion as plain_motion
from ccd_rig.kernel import pose as plain_pose
from ccd_rig.kernel import skeleton as plain_skeleton
from ccd_rig.settings import SolveResult
from ccd_rig.skeleton.joints import Joint, Skeleton
from ccd_rig.solvers import closed_forms, pose_search, problem_tables
from ccd_rig.solvers.closed_forms import TwoBoneOptions, target_triangle, two_bone

IS_PLAIN = os.environ.get("CCD_RIG_KERNEL") == "plain"
"""Whether the plain modules run in any case: they are compared with themselves."""
SEEDS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 332)


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


def closed_form_results(seed: int) -> list[SolveResult]:
    """Two bones and a target triangle on a random chain with limits."""
    rng = random.Random(seed)
    skeleton = Skeleton(
        Joint(
            f"joint{i}",
            i - 1,
            [rng.uniform(-1.0, 1.0) for _ in range(3)],
            random_rotation(rng),
            rng.uniform(0.1, 2.0),
            random_limit(rng),
        )
        for i in range(rng.randrange(2, 6))
    )
    goal = PositionGoal(skeleton.joints[-1].name, [rng.uniform(-2.0, 2.0) for _ in range(3)])
    pose = legal_pose(skeleton, rng)
    options = TwoBoneOptions(pole=Vector((1.0, 2.0, 3.0)) if seed % 2 else None, soft=0.1 * (seed % 3))
    omega = {"joint1": 1.0} if seed % 2 else None
    return [
        two_bone(skeleton, pose, goal, options),
        target_triangle(skeleton, pose, goal, omega=omega),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_closed_forms_give_the_same_bits_both_ways(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = closed_form_results(seed)
    monkeypatch.setattr(problem_tables, "Problem", plain_skeleton.Problem)
    monkeypatch.setattr(problem_tables, "measure_placed", plain_pose.measure_placed)
    monkeypatch.setattr(closed_forms, "solve_two_bones", plain_closed_forms.solve_two_bones)
    monkeypatch.setattr(closed_forms, "solve_target_triangles", plain_closed_forms.solve_target_triangles)
    plain = closed_form_results(seed)
    assert [numbers(each) for each in compiled] == [numbers(each) for each in plain]


@pytest.mark.parametrize("seed", range(5))
def test_frames_of_a_motion_give_the_same_bits_both_ways(seed: int) -> None:
    draw = np.random.default_rng(seed)

    def rotations(rows: int, count: int) -> np.ndarray:
        drawn = draw.normal(size=(rows, count, 4))
        return (drawn / np.linalg.norm(drawn, axis=2, keepdims=True)).reshape(rows, 4 * count)

    base, poses, turned, joints = rotations(6, 5), rotations(4, 5), rotations(6, 3), np.array([4, 0, 2])
    moves, rows = draw.integers(0, 2, (6, 3)).astype(np.uint8), np.array([5, 0, 2, 3])
    before, after = np.array([-1, 0, 1, 2, 3, 4]), np.array([1, 2, 3, 4, 5, 0])
    results = []
    for way in (kernel, plain_motion):
        departed, carried, swept, largest = (np.empty(shape) for shape in ((4, 12), (4, 20), (4, 12), 4))
        way.write_departures(base, moves, joints, rows, poses, departed)
        way.sweep_departures(turned, moves, before, after, np.arange(6.0), bool(seed % 2), rows, swept)
        way.carry_departures(base, moves, joints, rows, swept, carried)
        way.write_largest_angles(departed, swept, largest)
        results.append([each.tobytes() for each in (departed, carried, swept, largest)])
    assert results[0] == results[1]
