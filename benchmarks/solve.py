"""Success, iterations and time of single solves for random legal targets.

    python3 dev.py bench solve                          10,000 targets per chain, 200,000 mixed solves
    python3 dev.py bench solve -- --targets 500 --mixed 2000

    python3 dev.py bench solve -- --targets 0 --mixed 1000000       about 50 minutes

Protocol: 10 ball joints of length 1, started straight; targets are the effector of a random pose inside the
    limits, so each is reachable; tolerance 1e-3; default settings; seeded. "Mixed" are the random solves of
    every kind that the tests make too (tests/core/mixtures.py, where the promises stand): skeletons of 1 to 8
    joints, every limit, goal, order and setting; numbers below 20,000 are those of the tests. Each fault is
    printed with the number of its solve; every tenth solve is made twice.
"""

from __future__ import annotations

import argparse
import collections
import math
import random
import statistics
import time

import bpy  # noqa: F401 - brings mathutils
from chains import legal_pose, straight, tail
from mixtures import faults, mixture

from ccd_rig import (
    Cone,
    Hinge,
    Pose,
    PositionGoal,
    SolverSettings,
    SolveStatus,
    SwingTwist,
    solve,
)
from ccd_rig.limits.shapes import violation

TOLERANCE = 1e-3
BROKEN = 1e-5


def chain_row(name: str, limit: object, targets: int, seed: int = 1) -> str:
    """Solves for `targets` random legal targets and returns one line of the table."""
    rng = random.Random(seed)
    skeleton = straight(10, limit)
    start = Pose.rest(skeleton)
    chosen = SolverSettings(position_tolerance=TOLERANCE)
    counts, times, solved, worst = [], [], 0, 0.0
    for _ in range(targets):
        goal = PositionGoal("joint9", tail(skeleton, legal_pose(skeleton, rng)))
        began = time.perf_counter()
        result = solve(skeleton, start, [goal], chosen)
        times.append(time.perf_counter() - began)
        counts.append(result.iterations)
        solved += result.status is SolveStatus.CONVERGED
        if limit is not None:
            worst = max(worst, *(violation(limit, rotation) for rotation in result.pose.rotations))
    return (
        f"{name:28s}{solved / targets:9.3%}{statistics.fmean(counts):10.2f}{max(counts):8d}"
        f"{statistics.median(times) * 1e6:12.0f}{sum(times) / sum(counts) / 10 * 1e6:12.2f}{worst:12.1e}"
    )


def mixed_solves(first: int, count: int) -> tuple[collections.Counter[str], float]:
    """Faults of random solves of every kind, by what they say, each with its number; and the seconds."""
    counts: collections.Counter[str] = collections.Counter()
    began = time.perf_counter()
    for seed in range(first, first + count):
        case = mixture(seed)
        result = case.solve()
        wrong = faults(case, result)
        if seed % 10 == 0 and case.solve() != result:
            wrong.append("differs when it is made again")
        for fault in wrong:
            print(f"solve {seed}: {fault}", flush=True)
        counts.update(wrong)
        if (seed - first) % 10_000 == 9_999:
            print(f"mixed: {seed - first + 1} of {count}, {sum(counts.values())} faults", flush=True)
    return counts, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--mixed", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=1_000_000, help="number of the first mixed solve")
    chosen = parser.parse_args()
    print(
        f"{'10 joints of length 1':28s}{'solved':>9s}{'mean it.':>10s}{'max':>8s}"
        f"{'median us':>12s}{'us/step':>12s}{'over, rad':>12s}"
    )
    for name, limit in (
        ()
        if chosen.targets == 0
        else (
            ("free", None),
            ("cones of 60 degrees", SwingTwist(Cone(math.radians(60.0)))),
            ("cones of 30 degrees", SwingTwist(Cone(math.radians(30.0)))),
            (
                "cones of 30, twist of 20",
                SwingTwist(Cone(math.radians(30.0)), (-math.radians(20.0), math.radians(20.0))),
            ),
            ("hinges of 90 degrees", Hinge((0.0, 0.0, 1.0), -math.pi / 2, math.pi / 2)),
        )
    ):
        print(chain_row(name, limit, chosen.targets), flush=True)
    counts, seconds = mixed_solves(chosen.first, chosen.mixed)
    count = sum(counts.values())
    print(f"mixed: {chosen.mixed} solves from number {chosen.first}, {count} faults, {seconds:.0f} s")


if __name__ == "__main__":
    main()
