"""What one joint step costs, and that it does not depend on how many joints there are.

    python3 dev.py bench cost                           40 rounds
    .venv/4.2/bin/python benchmarks/cost.py --rounds 200 --profile

Protocol: chains of 10, 50 and 200 joints of length 1, one position goal, each kind of limit; from a random
    legal pose to the effector of another, 4 sweeps from the root to the tip at the default part of a step,
    as the solver's loop runs them: one step of every joint, and forward kinematics. CPU time of the process,
    which other load disturbs least. Sizes take turns within a round; the figure is the median over the
    rounds of microseconds per joint step, and "ratio" the dearest size in parts of the cheapest. In short
    chains more steps are wide or end at a limit, which are the dearer cases; "near" is the ratio where all
    sizes take alike steps: one sweep towards a target 0.2 % of the chain's length away. "Solve" is a whole
    `solve` of 4 iterations, checks, set-up and result included. With --profile: where the time of 50 joints
    goes.
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
from mathutils import Vector

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
from ccd_rig.solvers.ccd.iteration import run_iteration  # noqa: E402
from ccd_rig.solvers.ccd.working_pose import WorkingPose  # noqa: E402

SIZES = (10, 50, 200)
SWEEPS = 4
FRACTION = SolverSettings().step_fraction
WHOLE = SolverSettings(max_iterations=SWEEPS, position_tolerance=1e-9, solver=Solver.CCD)


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


def body_of(
    skeleton: Skeleton, rng: random.Random, near: bool = False
) -> tuple[WorkingPose, Pose, PositionGoal]:
    start = legal_pose(skeleton, rng)
    if near:
        aside = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        target = tail(skeleton, start) + 0.002 * len(skeleton) * aside
    else:
        target = tail(skeleton, legal_pose(skeleton, rng))
    goal = PositionGoal(skeleton.joints[-1].name, target)
    working = WorkingPose(skeleton, start, [goal])
    working.set_limits([joint.limit for joint in skeleton.joints], [0.0] * len(skeleton))
    return working, start, goal


def sweep(working: WorkingPose) -> None:
    run_iteration(working, WHOLE, 0, FRACTION)


def measured(limit: object, rounds: int) -> tuple[dict[int, float], dict[int, float], dict[int, float]]:
    """Median microseconds per joint step of each size: in sweeps, in sweeps of alike steps, in solves."""
    skeletons = {size: straight(size, limit) for size in SIZES}
    rngs = {size: random.Random(size) for size in SIZES}
    alone: dict[int, list[float]] = {size: [] for size in SIZES}
    alike: dict[int, list[float]] = {size: [] for size in SIZES}
    whole: dict[int, list[float]] = {size: [] for size in SIZES}
    for _ in range(rounds):
        for size, skeleton in skeletons.items():
            # As many joint steps of each size in a round.
            cases = [body_of(skeleton, rngs[size]) for _ in range(SIZES[-1] // size)]
            began = time.process_time()
            for working, _, _ in cases:
                for _ in range(SWEEPS):
                    sweep(working)
            alone[size].append((time.process_time() - began) / (len(cases) * SWEEPS * size))
            close = [body_of(skeleton, rngs[size], near=True)[0] for _ in range(4 * len(cases))]
            began = time.process_time()
            for working in close:
                sweep(working)
            alike[size].append((time.process_time() - began) / (len(close) * size))
            began = time.process_time()
            steps = 0
            for _, start, goal in cases:
                steps += solve(skeleton, start, [goal], WHOLE).iterations * size
            whole[size].append((time.process_time() - began) / steps)
    return tuple(
        {size: statistics.median(times) * 1e6 for size, times in each.items()}
        for each in (alone, alike, whole)
    )


def profile(rounds: int) -> None:
    rng = random.Random(7)
    for name in ("free", "cones of 30, twist of 20", "hinges of 90"):
        cases = [body_of(straight(50, LIMITS[name]), rng) for _ in range(rounds)]
        recorder = cProfile.Profile()
        recorder.enable()
        for working, _, _ in cases:
            for _ in range(SWEEPS):
                sweep(working)
        recorder.disable()
        print(f"\n{name}: 50 joints, {rounds * SWEEPS * 50} joint steps (mostly the profiler's own time)")
        pstats.Stats(recorder).sort_stats("tottime").print_stats(14)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    print(
        f"{'us per joint step':28s}"
        + "".join(f"{size:>8d}" for size in SIZES)
        + f"{'ratio':>8s}{'near':>8s}   "
        + "".join(f"{f'solve {size}':>11s}" for size in SIZES)
    )
    for name, limit in LIMITS.items():
        alone, alike, whole = measured(limit, chosen.rounds)
        print(
            f"{name:28s}"
            + "".join(f"{alone[size]:8.2f}" for size in SIZES)
            + f"{max(alone.values()) / min(alone.values()):8.2f}"
            + f"{max(alike.values()) / min(alike.values()):8.2f}   "
            + "".join(f"{whole[size]:11.2f}" for size in SIZES),
            flush=True,
        )
    if chosen.profile:
        profile(chosen.rounds)


if __name__ == "__main__":
    main()
