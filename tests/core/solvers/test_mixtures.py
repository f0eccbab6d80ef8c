"""Very many random solves of every kind: limits, finite numbers, true reports, never worse than the start."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import mixtures
import pytest
from chains import random_rotation, tail
from mathutils import Quaternion
from mixtures import faults, mixture
from seeds import few_and_all

from ccd_rig.goals import BalanceGoal, DirectionGoal, GoalError, OrientationGoal, PoleGoal, PositionGoal
from ccd_rig.limits.shapes import EulerBox, Hinge, ReversedLimit, SwingTwist
from ccd_rig.settings import Solver, SolveStatus, Sweep
from ccd_rig.skeleton.pose import Pose
from ccd_rig.solvers.solve import iterate


@pytest.mark.parametrize("seeds", few_and_all(100, 6_000, 6))
def test_no_solve_breaks_a_promise(seeds):
    """See `mixtures.faults` for the promises; every tenth solve is made again, and step by step."""
    wrong = []
    for seed in seeds:
        case = mixture(seed)
        result = case.solve()
        wrong += [f"solve {seed}: {fault}" for fault in faults(case, result)]
        if seed % 10 == 0:
            if case.solve() != result:
                wrong.append(f"solve {seed}: differs when it is made again")
            *_, last = iterate(
                case.skeleton, case.start, case.goals, case.settings, case.poses, case.reference
            )
            if last != result:
                wrong.append(f"solve {seed}: `iterate` ends elsewhere")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seeds", few_and_all(100, 4_000, 4))
def test_the_unit_of_lengths_makes_no_difference(seeds):
    """Lengths are powers of two times as large, which rounds nothing: rotations are the same to the bit.

    Both are scaled, as what is made anew has its axes brought to length 1 once more.
    """
    wrong = []
    for seed in seeds:
        case, size = mixture(seed, rolls=seed % 3 == 0), (1.0 / 4096.0, 256.0)[seed % 2]
        one, other = case.scaled(1.0).solve(), case.scaled(size).solve()
        translations = tuple(size * shift for shift in one.pose.translations)
        errors = tuple((size * error.distance, error.angle) for error in one.errors)
        if (other.pose.rotations, other.pose.translations) != (one.pose.rotations, translations):
            wrong.append(f"solve {seed}: another pose at {size} times its size")
        if (other.status, other.iterations) != (one.status, one.iterations):
            wrong.append(f"solve {seed}: {other.status} after {other.iterations}, not {one.iterations}")
        if other.errors != errors:
            wrong.append(f"solve {seed}: errors {other.errors}, not {errors}")
    assert not wrong, "\n".join(wrong)


def _alone(seed: int) -> mixtures.Mixture:
    """A mixture of a single start: others are drawn for every joint there is."""
    case = mixture(seed, rolls=seed % 3 == 0)
    return replace(case, settings=replace(case.settings, restarts=0), poses=())


@pytest.mark.parametrize("seeds", few_and_all(100, 4_000, 2))
def test_joints_that_serve_no_goal_make_no_difference(seeds):
    """Wherever they stand in the skeleton: all results are the same to the bit.

    But for chains without a length: all bones tell their unit of length.
    """
    wrong = []
    for seed in seeds:
        case = _alone(seed)
        if not any(goal.reach(case.skeleton) for goal in case.goals):
            continue
        one, other = case.solve(), case.beside_idle_joints().solve()
        pose = other.pose.rotations[3::2], other.pose.translations[3::2]
        if pose != (one.pose.rotations, one.pose.translations) or replace(other, pose=one.pose) != one:
            wrong.append(f"solve {seed}: {other.status}, {other.errors}; not {one.status}, {one.errors}")
    assert not wrong, "\n".join(wrong)


def test_where_a_goal_stands_in_the_list_makes_no_difference():
    """A met goal of an idle joint, first or last: poses are the same but for the order of sums."""
    wrong = []
    for seed in range(100):
        case = _alone(seed).beside_idle_joints()
        if any(isinstance(goal, BalanceGoal) for goal in case.goals):
            continue
        met = PositionGoal("idle0", tail(case.skeleton, case.start, "idle0"))
        first = replace(case, goals=(met, *case.goals)).solve()
        last = replace(case, goals=(*case.goals, met)).solve()
        off = max(map(math.dist, first.pose.rotations, last.pose.rotations))
        off = max(off, *map(math.dist, first.pose.translations, last.pose.translations))
        if off > 1e-6 or (first.status, first.iterations) != (last.status, last.iterations):
            wrong.append(f"solve {seed}: off by {off:g}, {first.status}, {last.status}")
    assert not wrong, "\n".join(wrong)


def _with(kind: str, case: mixtures.Mixture) -> mixtures.Mixture:
    """A case with what is named: its start as a reference where it has none; windows for its positions."""
    if "references" in kind and case.reference is None:
        case = replace(case, reference=case.start)
    if "windows" in kind:
        goals = [replace(g, max_extension=0.8) if isinstance(g, PositionGoal) else g for g in case.goals]
        case = replace(case, goals=tuple(goals))
    return case


@pytest.mark.parametrize(
    ("first", "solver", "kind", "most", "met", "optimal"),
    [
        (0, Solver.CCD_LEAST_SQUARES, "", 9_567, 29, 66),
        (150, Solver.CCD_LEAST_SQUARES, "references", 10_972, 36, 57),
        (300, Solver.CCD_LEAST_SQUARES, "references and windows", 13_195, 27, 61),
        (450, Solver.CCD, "", 8_155, 20, 49),
    ],
)
def test_passes_that_solves_take_and_how_they_end(first, solver, kind, most, met, optimal):
    """Sums over 150 solves, a thousandth above what they were; CCD alone, references and windows apart."""
    results = []
    for seed in range(first, first + 150):
        case = mixture(seed, rolls=seed % 3 == 0 and first < 300)
        case = replace(case, settings=replace(case.settings, max_iterations=60, solver=solver))
        results.append(_with(kind, case).solve())
    assert sum(result.iterations for result in results) <= most
    assert sum(result.status is SolveStatus.CONVERGED for result in results) >= met
    assert sum(result.status is SolveStatus.OPTIMAL for result in results) >= optimal


@pytest.mark.parametrize(
    ("passes", "kind", "distances", "angles", "met"),
    [(2, "", 578.5, 84.96, 12), (4, "references and windows", 609.9, 94.0, 16)],
)
def test_how_near_few_passes_bring_goals(passes, kind, distances, angles, met):
    """Sums over 150 solves, a thousandth above what they were."""
    results = []
    for seed in range(600, 750):
        case = mixture(seed, rolls=seed % 3 == 0 and not kind)
        case = replace(
            case, settings=replace(case.settings, max_iterations=passes, solver=Solver.CCD_LEAST_SQUARES)
        )
        results.append(_with(kind, case).solve())
    errors = [error for result in results for error in result.errors]
    assert sum(error.distance for error in errors) <= distances
    assert sum(error.angle for error in errors) <= angles
    assert sum(result.status is SolveStatus.CONVERGED for result in results) >= met


@pytest.mark.parametrize("seed", [744, 1988, 3091, 5193])
def test_a_solve_ends_no_farther_than_it_began_also_towards_a_reference_elsewhere(seed):
    """Few iterations, and a reference pose that is not the start: what is reached from there may be farther.

    Each of these ended farther where goals that are served first could give way as from the reference itself.
    """
    case, rng = mixture(seed), random.Random(seed)
    reference = mixtures._pose(case.skeleton, rng)
    settings = replace(case.settings, max_iterations=rng.choice((1, 2, 4, 10)))
    case = replace(case, reference=reference, settings=settings)
    assert case.reference != case.start
    assert faults(case, case.solve()) == []


def test_the_mixtures_hold_everything():
    """Guards the test above against a generator that leaves things out."""
    cases = [mixture(seed) for seed in range(300)]
    joints = [joint for case in cases for joint in case.skeleton.joints]
    goals = [goal for case in cases for goal in case.goals]
    assert {type(joint.limit) for joint in joints} == {type(None), Hinge, SwingTwist, EulerBox, ReversedLimit}
    assert {type(goal) for goal in goals} == {
        PositionGoal,
        OrientationGoal,
        DirectionGoal,
        PoleGoal,
        BalanceGoal,
    }
    assert {case.settings.sweep for case in cases} == set(Sweep)
    assert {goal.priority for goal in goals} == {0, 1, 2}
    positions = [goal for goal in goals if isinstance(goal, PositionGoal)]
    for some in (
        [bool(joint.slides) for joint in joints],
        [joint.comfort and joint.comfort.region for joint in joints],
        [joint.comfort and joint.comfort.tolerance for joint in joints],
        [joint.length == 0.0 for joint in joints],
        [not joint.inherit_rotation for joint in joints],
        [goal.max_extension < 1.0 for goal in positions],
        [goal.chain_length for goal in positions],
        [goal.two_bone_tip for goal in positions],
        [case.poses for case in cases],
    ):
        assert any(some)
    ends = {case.solve().status for case in cases[:100]}
    assert ends == set(SolveStatus)


def test_faults_are_found():
    """Guards the check itself: results that were tampered with have faults."""
    rng = random.Random(1)
    turned = trusted = worse = 0
    for seed in range(60):
        case = mixture(seed)
        result = case.solve()
        rotations, shifts = result.pose.rotations, result.pose.translations
        anyhow = Pose(tuple(random_rotation(rng) for _ in rotations), shifts)
        turned += any("limit" in fault for fault in faults(case, replace(result, pose=anyhow)))
        worse += any("worse" in fault for fault in faults(case, replace(result, pose=anyhow)))
        nothing = Quaternion((math.nan, 0.0, 0.0, 0.0)).freeze()
        empty = Pose.trusted((nothing, *rotations[1:]), shifts)
        assert faults(case, replace(result, pose=empty)) == ["not finite"]
        errors = tuple(GoalError(error.distance + 1e-3, error.angle) for error in result.errors)
        assert any("forward kinematics" in fault for fault in faults(case, replace(result, errors=errors)))
        ended = SolveStatus.STALLED if result.status is SolveStatus.CONVERGED else SolveStatus.CONVERGED
        trusted += any("met" in fault for fault in faults(case, replace(result, status=ended)))
    assert turned > 36 and worse > 18 and trusted == 60, (turned, worse, trusted)
