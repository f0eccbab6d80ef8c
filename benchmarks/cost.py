"""What one joint step costs, and that it does not depend on how many joints there are.

    python3 dev.py bench cost                           40 rounds
    .venv/4.2/bin/python benchmarks/cost.py --rounds 200 --profile

Protocol: chains of 10, 50 and 200 joints of length 1, one position goal, each kind of limit, CCD alone; from
    random legal poses to the effectors of others, at a tenth of each step, so that passes do not run out of
    way. Poses are solved by one call of the kernel with one pass and with two: what the second takes is a
    step of every joint, and forward kinematics. CPU time of the process, which other load disturbs least.
    Sizes take turns within a round; the figure is the median over the rounds of microseconds per joint step,
    and "ratio" the dearest size in parts of the cheapest. "Solve" is a whole `solve` of 4 passes, checks,
    set-up and result included. With --profile: where the time of such solves of 50 joints goes.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import pstats
import random
import statistics
import sys
import time
from pathlib import Path

import bpy  # noqa: F401 - brings mathutils
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "core")]

from chains import legal_pose, straight, tail  # noqa: E402

from ccd_rig import (  # noqa: E402
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Pose,
    PositionGoal,
    Skeleton,
    Solver,
    SolverSettings,
    SwingTwist,
    solve,
)
from ccd_rig.solvers.pose_search import PoseSearch  # noqa: E402

SIZES = (10, 50, 200)
ONCE, TWICE = (
    SolverSettings(
        max_iterations=count,
        position_tolerance=1e-20,
        stall_threshold=0.0,
        step_fraction=0.1,
        solver=Solver.CCD,
        restarts=0,
    )
    for count in (1, 2)
)
WHOLE = SolverSettings(max_iterations=4, position_tolerance=1e-9, solver=Solver.CCD, restarts=0)


def degrees(*angles: float) -> tuple[float, ...]:
    return tuple(math.radians(angle) for angle in angles)


LIMITS = {
    "free": None,
    "cones of 30": SwingTwist(Cone(math.radians(30.0))),
    "cones of 30, twist of 20": SwingTwist(Cone(math.radians(30.0)), degrees(-20.0, 20.0)),
    "ellipses, twist of 20": SwingTwist(Ellipse(*degrees(-20.0, 45.0, -30.0, 15.0)), degrees(-20.0, 20.0)),
    "Euler boxes": EulerBox("XYZ", degrees(-30.0, -20.0, -15.0), degrees(30.0, 20.0, 40.0)),
    "hinges of 90": Hinge((0.0, 0.0, 1.0), -math.pi / 2, math.pi / 2),
}


Case = tuple[Pose, PositionGoal]


def case_of(skeleton: Skeleton, rng: random.Random) -> Case:
    """Where a solve starts, and what it is to reach."""
    target = tail(skeleton, legal_pose(skeleton, rng))
    return legal_pose(skeleton, rng), PositionGoal(skeleton.joints[-1].name, target)


def seconds(skeleton: Skeleton, cases: list[Case], settings: SolverSettings) -> float:
    """Processor time of all cases in one call."""
    search = PoseSearch(skeleton, [cases[0][1]], settings)
    rotations = np.array([[q[:] for q in pose.rotations] for pose, _ in cases])
    translations = np.zeros((len(cases), len(skeleton), 3))
    targets = [np.array([goal.target[:] for _, goal in cases])]
    search.solve(rotations[:1], translations[:1], [targets[0][:1]])  # tables are made once
    began = time.process_time()
    solved = search.solve(rotations, translations, targets)
    spent = time.process_time() - began
    assert (solved.steps == settings.max_iterations).all()
    return spent


def measured(limit: object, rounds: int) -> tuple[dict[int, float], dict[int, float]]:
    """Median microseconds per joint step of each size: in passes, in solves."""
    skeletons = {size: straight(size, limit) for size in SIZES}
    rngs = {size: random.Random(size) for size in SIZES}
    passes: dict[int, list[float]] = {size: [] for size in SIZES}
    whole: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(rounds):
        for size, skeleton in skeletons.items():
            # As many joint steps of each size in a round.
            cases = [case_of(skeleton, rngs[size]) for _ in range(20 * SIZES[-1] // size)]
            second = seconds(skeleton, cases, TWICE) - seconds(skeleton, cases, ONCE)
            passes[size].append(second / (len(cases) * size))
            began = time.process_time()
            steps = 0
            for start, goal in cases[::20]:
                steps += solve(skeleton, start, [goal], WHOLE).iterations * size
            whole[size].append((time.process_time() - began) / steps)
    return tuple(
        {size: statistics.median(times) * 1e6 for size, times in each.items()} for each in (passes, whole)
    )


def profile(rounds: int) -> None:
    rng = random.Random(7)
    for name in ("free", "cones of 30, twist of 20", "hinges of 90"):
        skeleton = straight(50, LIMITS[name])
        cases = [case_of(skeleton, rng) for _ in range(rounds)]
        recorder = cProfile.Profile()
        recorder.enable()
        for start, goal in cases:
            solve(skeleton, start, [goal], WHOLE)
        recorder.disable()
        print(f"\n{name}: {rounds} solves of 50 joints")
        pstats.Stats(recorder).sort_stats("tottime").print_stats(14)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    print(
        f"{'us per joint step':28s}"
        + "".join(f"{size:>8d}" for size in SIZES)
        + f"{'ratio':>8s}   "
        + "".join(f"{f'solve {size}':>11s}" for size in SIZES)
    )
    for name, limit in LIMITS.items():
        passes, whole = measured(limit, chosen.rounds)
        print(
            f"{name:28s}"
            + "".join(f"{passes[size]:8.3f}" for size in SIZES)
            + f"{max(passes.values()) / min(passes.values()):8.2f}   "
            + "".join(f"{whole[size]:11.2f}" for size in SIZES),
            flush=True,
        )
    if chosen.profile:
        profile(chosen.rounds)


if __name__ == "__main__":
    main()
