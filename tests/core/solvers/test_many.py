"""Many poses at once: true reports, limits, and the same bits in every batch."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import batches
import numpy as np
import pytest
from chains import FLOAT32, legal_pose, random_skeleton, straight, tail, tip
from mathutils import Quaternion, Vector
from mixtures import ANGLE, POSITION, Mixture, _pose, faults, mixture
from numpy._core._multiarray_umath import __cpu_features__
from pose_arrays import SETTINGS, arrays
from seeds import few_and_all, few_of

from ccd_rig import (
    BalanceGoal,
    DirectionGoal,
    ManyResult,
    OrientationGoal,
    PoleGoal,
    Pose,
    PositionGoal,
    SolveResult,
    SolveStatus,
    forward_kinematics,
    measure,
    solve,
    solve_many,
)
from ccd_rig.limits.shapes import violation
from ccd_rig.maths.rotations import angle_between
from ccd_rig.solvers import pose_search
from ccd_rig.solvers.problem_tables import GoalSettings

NEEDS = {
    "Nehalem": ("SSE42",),
    "Sandybridge": ("AVX",),
    "Haswell": ("AVX2", "FMA3"),
    "SkylakeX": ("AVX512_SKX",),
}
"""Kernels that every OpenBLAS of NumPy has, and what of the processor they need."""


def known(seed: int, rolls: bool = False) -> Mixture:
    """A random solve without what `solve_many` refuses."""
    case = mixture(seed, rolls)
    goals = tuple(
        replace(goal, two_bone_tip=False) if isinstance(goal, PositionGoal) else goal for goal in case.goals
    )
    settings = replace(SETTINGS, comfort=case.settings.comfort)
    return replace(case, goals=goals, settings=settings, reference=None)


def same_bits(one: ManyResult, other: ManyResult, first: int = 0) -> bool:
    """Whether `one` is `other` from its pose number `first` on."""
    part = slice(first, first + len(one))
    return (
        np.array_equal(one.rotations, other.rotations[part])
        and np.array_equal(one.translations, other.translations[part])
        and np.array_equal(one.iterations, other.iterations[part])
        and np.array_equal(one.distances, other.distances[part])
        and one.statuses == other.statuses[part]
    )


# What is found --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", few_and_all(20, 100))
@pytest.mark.parametrize("rolls", [False, True])
def test_random_solves_keep_their_promises(seeds: range, rolls: bool) -> None:
    """Limits, slides, finite numbers, true errors and statuses, joints that stay: see `mixtures.faults`.

    "Worse than the start" is left out: sweeps weigh rotations against distances otherwise.
    """
    wrong = []
    for seed in seeds:
        case = known(seed, rolls)
        rng = random.Random(seed)
        poses = [case.start, *(_pose(case.skeleton, rng) for _ in range(2))]
        reference = poses if seed % 2 else None
        result = solve_many(case.skeleton, poses, case.goals, case.settings, reference=reference)
        for k, start in enumerate(poses):
            pose = result.pose(k)
            transforms = forward_kinematics(case.skeleton, pose)
            errors = tuple(measure(goal, case.skeleton, transforms) for goal in case.goals)
            for error, distance, angle in zip(errors, result.distances[k], result.angles[k], strict=True):
                if abs(error.distance - distance) > 1e-4 or abs(error.angle - angle) > 1e-2:
                    wrong.append(f"solve {seed}, pose {k}: reports {distance, angle}, not {error}")
            once = SolveResult(pose, result.statuses[k], 0, errors)
            found = [each for each in faults(replace(case, start=start), once) if "worse" not in each]
            wrong += [f"solve {seed}, pose {k}: {fault}" for fault in found]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seed", range(6))
def test_reachable_targets_are_met_as_by_solve(seed: int) -> None:
    """A target per pose, of poses inside random limits."""
    rng = random.Random(seed)
    skeleton = random_skeleton(rng, 6)
    wanted = [legal_pose(skeleton, rng) for _ in range(8)]
    targets = [tail(skeleton, pose)[:] for pose in wanted]
    start = legal_pose(skeleton, rng)
    locked = skeleton.locked
    if locked:  # what can't rotate stays as it is in the start
        wanted = [
            Pose(
                tuple(start.rotations[i] if i in locked else q for i, q in enumerate(pose.rotations)),
                pose.translations,
            )
            for pose in wanted
        ]
        targets = [tail(skeleton, pose)[:] for pose in wanted]
    goal = PositionGoal(tip(skeleton), targets[0])
    settings = replace(SETTINGS, restarts=8)
    found = solve_many(skeleton, [start] * 8, [goal], settings, targets=[targets])
    alone = [solve(skeleton, start, [replace(goal, target=Vector(t))], settings) for t in targets]
    met = sum(status is SolveStatus.CONVERGED for status in found.statuses)
    assert met >= sum(result.status is SolveStatus.CONVERGED for result in alone)
    for k, pose in enumerate(map(found.pose, range(8))):
        for joint, rotation in zip(skeleton.joints, pose.rotations, strict=True):
            assert joint.limit is None or violation(joint.limit, rotation) <= FLOAT32
        assert abs((tail(skeleton, pose) - Vector(targets[k])).length - found.distances[k, 0]) < 1e-4


def test_every_kind_of_goal_takes_targets() -> None:
    rng = random.Random(5)
    skeleton = straight(5, mass=1.0)
    wanted = [legal_pose(skeleton, rng) for _ in range(4)]
    last = [forward_kinematics(skeleton, pose)[-1] for pose in wanted]
    rest = [Pose.rest(skeleton)] * 4
    bent = Pose(tuple(Quaternion((0.0, 0.0, 1.0), 0.3) for _ in range(5)), Pose.rest(skeleton).translations)
    z, name = Vector((0.0, 0.0, 1.0)), tip(skeleton)
    for goal, targets in (
        (PositionGoal(name, z), [each.point(Vector((0.0, 1.0, 0.0)))[:] for each in last]),
        (OrientationGoal(name, Quaternion()), [each.rotation[:] for each in last]),
        (DirectionGoal(name, z, z), [(3.0 * (each.rotation @ z))[:] for each in last]),
        (PoleGoal("joint0", name, z), [[rng.gauss(0.0, 1.0) for _ in range(3)] for _ in range(4)]),
        (BalanceGoal(z), [[0.1 * k, 0.2, 0.0] for k in range(4)]),
    ):
        start = [bent] * 4 if isinstance(goal, PoleGoal) else rest
        found = solve_many(skeleton, start, [goal], SETTINGS, targets=[targets])
        assert found.statuses == (SolveStatus.CONVERGED,) * 4, goal
        for k in range(4):
            own = replace(goal, target=type(goal.target)(targets[k]))
            error = measure(own, skeleton, forward_kinematics(skeleton, found.pose(k)))
            assert error.distance <= POSITION + 1e-5 and error.angle <= ANGLE + 1e-3


# The same as alone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", few_and_all(40, 300))
@pytest.mark.parametrize("rolls", [False, True])
def test_a_pose_is_what_solve_makes_of_it(seeds: range, rolls: bool) -> None:
    """Without other starts, which each of them has of its own; `solve` rounds to single precision."""
    for seed in seeds:
        case = mixture(seed, rolls)
        settings = replace(case.settings, restarts=0)
        alone = replace(case, settings=settings, poses=()).solve()
        reference = None if case.reference is None else [case.reference]
        found = solve_many(case.skeleton, [case.start], case.goals, settings, reference=reference)
        rotations, translations = alone.pose.arrays
        assert np.array_equal(found.rotations.astype(np.float32), rotations), seed
        assert np.array_equal(found.translations.astype(np.float32), translations), seed
        assert found.iterations[0] == alone.iterations, seed
        if alone.status is not SolveStatus.CONVERGED:
            assert found.statuses[0] is alone.status, seed


# The same bits --------------------------------------------------------------------------------------


@pytest.mark.mass
@pytest.mark.parametrize(
    ("seed", "rolls"), [(3, False), (12, False), (40, False), (63, False), (13, True), (15, True)]
)
def test_a_pose_has_the_same_bits_in_every_batch(seed: int, rolls: bool) -> None:
    case = known(seed, rolls)
    assert bool(case.skeleton.couplings) == rolls
    rng = random.Random(seed)
    poses = [_pose(case.skeleton, rng) for _ in range(100)]
    reference = poses if seed % 2 else None
    arguments = (case.goals, replace(case.settings, max_iterations=30))
    whole = solve_many(case.skeleton, poses, *arguments, reference=reference)
    assert same_bits(solve_many(case.skeleton, arrays(poses), *arguments, reference=reference), whole)
    for first, size in ((0, 1), (5, 1), (0, 7), (93, 7)):
        part = poses[first : first + size]
        own = None if reference is None else part
        assert same_bits(solve_many(case.skeleton, part, *arguments, reference=own), whole, first)


@pytest.mark.parametrize(("seed", "rolls"), [(3, False), (40, False), (13, True)])
def test_a_pose_has_the_same_bits_with_any_number_of_threads(
    seed: int, rolls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other starts and comfort regions are solved in threads too."""
    case = known(seed, rolls)
    rng = random.Random(seed)
    poses = [_pose(case.skeleton, rng) for _ in range(60)]
    arguments = (case.goals, replace(case.settings, max_iterations=20, restarts=3))
    started: list[int] = []
    pool = pose_search.ThreadPoolExecutor

    def counted(count: int, *rest: Any) -> Any:
        started.append(count)
        return pool(count, *rest)

    monkeypatch.setattr(pose_search, "ThreadPoolExecutor", counted)
    monkeypatch.setattr(pose_search, "THREADS", 1)
    alone = solve_many(case.skeleton, poses, *arguments, reference=poses)
    assert not started
    for threads in (2, 5):
        monkeypatch.setattr(pose_search, "THREADS", threads)
        monkeypatch.setattr(pose_search, "PER_THREAD", 1e-9)
        assert same_bits(solve_many(case.skeleton, poses, *arguments, reference=poses), alone)
        assert max(started) == threads


@pytest.mark.parametrize("kernels", few_of([*NEEDS], 1))
def test_a_pose_has_the_same_bits_in_every_batch_with_other_kernels(kernels: str) -> None:
    """Those of OpenBLAS. What this processor lacks, and any other BLAS, is tested with its own instead."""
    able = all(__cpu_features__.get(each) for each in NEEDS[kernels])
    chosen = {"OPENBLAS_CORETYPE": kernels} if able else {}
    script = Path(batches.__file__)
    found = subprocess.run(
        [sys.executable, str(script)], env=os.environ | chosen, capture_output=True, text=True, check=True
    )
    name, *differing = found.stdout.rstrip("\n").split(" ")
    assert not differing
    if able and batches.kernels():  # else it is not OpenBLAS, and the variable has no effect
        assert name == kernels


def test_no_bits_depend_on_how_blas_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What BLAS would give is put off by its last bits; no product of it is on the way."""
    for name in ("array", "asarray", "ascontiguousarray", "empty", "zeros", "ones", "full"):
        made = getattr(np, name)
        monkeypatch.setattr(np, name, lambda *given, _made=made, **more: _rough(_made(*given, **more)))
    monkeypatch.setattr(Rough, "products", 0)
    assert not batches.differing()
    assert not Rough.products


OF_BLAS = (np.dot, np.inner, np.vdot, np.tensordot, np.linalg.solve, np.linalg.inv, np.linalg.lstsq)


class Rough(np.ndarray):
    """An array whose products round by place and size, as those of one BLAS or another do."""

    products = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        plain = [_plain(each) for each in inputs]
        if "out" in more:
            more["out"] = tuple(map(_plain, more["out"]))
        found = getattr(ufunc, method)(*plain, **{key: _plain(value) for key, value in more.items()})
        return _off(found) if ufunc is np.matmul else _rough(found)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = super().__array_function__(func, types, args, kwargs)
        return _off(found) if func in OF_BLAS else found

    def dot(self, other: Any, out: Any = None) -> Any:
        return np.dot(self, other, out)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Rough) else value


def _rough(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_rough, value))
    return value.view(Rough) if type(value) is np.ndarray else value


def _off(product: Any) -> Any:
    Rough.products += 1
    places = np.arange(np.size(product)).reshape(np.shape(product))
    plain = _plain(product)
    return _rough(plain * (1.0 + 1e-15 * np.sin(places + float(np.size(product)))))


@pytest.mark.parametrize("seed", range(8))
def test_nothing_moves_where_targets_are_those_of_the_poses(seed: int) -> None:
    rng = random.Random(seed)
    skeleton = random_skeleton(rng, 5, tree=seed % 2 == 0)
    poses = [legal_pose(skeleton, rng) for _ in range(9)]
    last = [forward_kinematics(skeleton, pose)[-1] for pose in poses]
    end = Vector((0.0, skeleton.joints[-1].length, 0.0))
    goals = [PositionGoal(tip(skeleton), (0, 0, 0)), OrientationGoal(tip(skeleton), Quaternion())]
    targets = [[each.point(end)[:] for each in last], [each.rotation[:] for each in last]]
    for reference in (None, poses):
        found = solve_many(skeleton, poses, goals, SETTINGS, targets=targets, reference=reference)
        assert found.statuses == (SolveStatus.CONVERGED,) * 9 and not found.iterations.any()
        assert [found.pose(k) for k in range(9)] == poses
        assert np.array_equal(found.rotations, arrays(poses)[0])


def test_a_reference_pose_draws() -> None:
    """From a curled start the pose goes back to the straight reference as far as the target leaves it."""
    skeleton = straight(6)
    target = (3.0, 4.0, 0.0)
    curled = Pose(tuple(Quaternion((1.0, 0.0, 0.0), 0.5) for _ in range(6)), Pose.rest(skeleton).translations)
    goal, rest = PositionGoal(tip(skeleton), target), Pose.rest(skeleton)
    near = solve_many(skeleton, [curled], [goal], SETTINGS, reference=[rest])
    free = solve_many(skeleton, [curled], [goal], SETTINGS)

    def departure(result: ManyResult) -> float:
        pairs = zip(result.pose(0).rotations, rest.rotations, strict=True)
        return math.sqrt(sum(angle_between(a, b) ** 2 for a, b in pairs))

    assert near.statuses == free.statuses == (SolveStatus.CONVERGED,)
    assert departure(near) < 0.8 * departure(free)


def test_a_pose_that_meets_its_goals_keeps_its_bits_on_either_side() -> None:
    """A quaternion and its negative are one rotation: what was given is returned."""
    rng = random.Random(5)
    skeleton = random_skeleton(rng, 4)
    pose = legal_pose(skeleton, rng)
    goal = PositionGoal(skeleton.joints[-1].name, tail(skeleton, pose))
    poses = [pose, Pose(tuple(-q for q in pose.rotations), pose.translations)]
    result = solve_many(skeleton, poses, [goal], SETTINGS)
    assert np.array_equal(result.rotations, arrays(poses)[0])
    assert np.array_equal(result.rotations[0], -result.rotations[1])


def test_results_are_told_apart_as_objects() -> None:
    """As keys too: their arrays have no truth value and no hash."""
    skeleton = straight(2)
    goals = [PositionGoal("joint1", (0.5, 1.0, 0.3))]
    one, other = (solve_many(skeleton, [Pose.rest(skeleton)] * 2, goals, SETTINGS) for _ in range(2))
    assert same_bits(one, other)
    assert one != other and {one: 1, other: 2}[one] == 1


def test_a_position_has_no_angle_and_an_orientation_no_distance() -> None:
    rng = random.Random(6)
    skeleton = random_skeleton(rng, 4)
    name = skeleton.joints[-1].name
    goals = [
        PositionGoal(name, Vector((50.0, 0.0, 0.0))),
        OrientationGoal(name, Quaternion((0.6, 0.8, 0, 0))),
    ]
    result = solve_many(skeleton, [legal_pose(skeleton, rng) for _ in range(3)], goals, SETTINGS)
    assert (result.distances[:, 0] > 1.0).all() and (result.angles[:, 1] > 0.0).all()
    assert not result.angles[:, 0].any() and not result.distances[:, 1].any()


@pytest.mark.parametrize("threads", [1, 3])
def test_settings_of_goals_differ_from_pose_to_pose(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pose has the bits that goals with its own weight, pole angle and reach window lead to."""
    monkeypatch.setattr(pose_search, "THREADS", threads)
    monkeypatch.setattr(pose_search, "PER_THREAD", 1e-9)
    skeleton, rng = straight(5), random.Random(3)

    def goals_with(weight: float, angle: float, extension: float) -> list[Any]:
        return [
            PositionGoal("joint4", Vector((1.0, 2.0, 1.5)), weight=weight, max_extension=extension),
            PositionGoal("joint3", Vector((-1.5, 2.0, 0.5))),
            PoleGoal("joint0", "joint4", Vector((4.0, 1.0, 0.0)), priority=1, angle=angle, weight=weight),
        ]

    each = [
        goals_with(rng.uniform(0.2, 5.0), rng.uniform(-2.0, 2.0), rng.uniform(0.4, 0.9)) for _ in range(9)
    ]
    poses = [legal_pose(skeleton, rng) for _ in each]
    rotations, translations = arrays(poses)
    targets = [np.array([goal.target[:]]) for goal in each[0]]
    settings = GoalSettings.of(each)
    search = pose_search.PoseSearch(skeleton, each[0], SETTINGS)
    solved = search.solve(rotations, translations, targets, goal_settings=settings)
    placed = [forward_kinematics(skeleton, pose) for pose in poses]
    heads = np.array([[at.translation[:] for at in row] for row in placed])
    frames = np.array([[at.rotation[:] for at in row] for row in placed])
    frames /= np.linalg.norm(frames, axis=-1, keepdims=True)
    _, angles = search.measure(heads, frames, targets, settings)
    assert np.ptp(angles[:, 2]) > 0.1
    for k, goals in enumerate(each):
        alone = pose_search.PoseSearch(skeleton, goals, SETTINGS)
        row = slice(k, k + 1)
        expected = alone.solve(rotations[row], translations[row], targets)
        assert np.array_equal(solved.rotations[row], expected.rotations)
        assert np.array_equal(solved.distances[row], expected.distances)
        assert np.array_equal(angles[row], alone.measure(heads[row], frames[row], targets)[1])
    same = search.solve(rotations, translations, targets)
    assert np.abs(same.rotations[1:] - solved.rotations[1:]).max() > 1e-2
