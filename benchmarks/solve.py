"""How often, in how many iterations and how fast single solves reach random legal targets.

    python3 dev.py bench solve                          10,000 targets per chain, 200,000 mixed solves
    python3 dev.py bench solve -- --targets 500 --mixed 2000

Protocol: 10 ball joints of length 1, started straight; targets are the effector of a random pose inside the
    limits, so each is reachable; tolerance 1e-3; default settings; seeded. "Mixed" solves random skeletons
    (1 to 8 joints, chains and trees, every kind of limit, stiffness, largest steps, joints that do not
    inherit rotation) for one to three goals, legal or far away, in every order and with random settings, and
    counts limits broken beyond 1e-5 rad, numbers that are not finite, and results worse than their start.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from pathlib import Path

import bpy  # noqa: F401 - brings mathutils

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "core")]

from chains import legal_pose, random_skeleton, straight, tail  # noqa: E402

from ccd_rig import (  # noqa: E402
    Cone,
    Hinge,
    Pose,
    PositionGoal,
    SolverSettings,
    SolveStatus,
    Sweep,
    SwingTwist,
    forward_kinematics,
    measure,
    solve,
)
from ccd_rig.limits import violation  # noqa: E402

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


def mixed_solves(count: int, seed: int = 2) -> dict[str, float]:
    """Random solves of every kind; counts what must never happen."""
    found = {
        "solves": count,
        "limits broken": 0,
        "not finite": 0,
        "worse than at the start": 0,
        "worst radians": 0.0,
    }
    for each in range(count):
        rng = random.Random(seed * 10**9 + each)
        skeleton = random_skeleton(rng, rng.randrange(1, 9), tree=rng.random() < 0.5)
        start, legal = legal_pose(skeleton, rng), legal_pose(skeleton, rng)
        goals = []
        for name in rng.sample(
            [joint.name for joint in skeleton.joints], k=min(len(skeleton), rng.randrange(1, 4))
        ):
            target = (
                tail(skeleton, legal, name) if rng.random() < 0.7 else [rng.uniform(-9, 9) for _ in range(3)]
            )
            goals.append(
                PositionGoal(name, target, weight=rng.uniform(0.1, 5.0), chain_length=rng.choice((0, 0, 2)))
            )
        chosen = SolverSettings(
            max_iterations=rng.choice((1, 5, 40)),
            position_tolerance=TOLERANCE,
            sweep=rng.choice(list(Sweep)),
            step_fraction=rng.uniform(0.1, 1.3),
            step_share=rng.choice((0.0, 0.9)),
            step_feedback=rng.choice((0.0, 1.0)),
            refine=rng.random() < 0.5,
            restarts=rng.choice((0, 0, 0, 2)),
        )
        result = solve(skeleton, start, goals, chosen)
        for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True):
            if not all(math.isfinite(part) for part in rotation):
                found["not finite"] += 1
            elif joint.limit is not None:
                over = violation(joint.limit, rotation)
                found["worst radians"] = max(found["worst radians"], over)
                found["limits broken"] += over > BROKEN
        transforms = forward_kinematics(skeleton, start)
        before = sum(goal.weight * measure(goal, skeleton, transforms).distance ** 2 for goal in goals)
        after = sum(goal.weight * error.distance**2 for goal, error in zip(goals, result.errors, strict=True))
        found["worse than at the start"] += after > before + 1e-4
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--mixed", type=int, default=200_000)
    chosen = parser.parse_args()
    print(
        f"{'10 joints of length 1':28s}{'solved':>9s}{'mean it.':>10s}{'max':>8s}"
        f"{'median us':>12s}{'us/step':>12s}{'over, rad':>12s}"
    )
    for name, limit in (
        ("free", None),
        ("cones of 60 degrees", SwingTwist(Cone(math.radians(60.0)))),
        ("cones of 30 degrees", SwingTwist(Cone(math.radians(30.0)))),
        (
            "cones of 30, twist of 20",
            SwingTwist(Cone(math.radians(30.0)), (-math.radians(20.0), math.radians(20.0))),
        ),
        ("hinges of 90 degrees", Hinge((0.0, 0.0, 1.0), -math.pi / 2, math.pi / 2)),
    ):
        print(chain_row(name, limit, chosen.targets), flush=True)
    for name, value in mixed_solves(chosen.mixed).items():
        print(f"mixed: {name:28s}{value:g}")


if __name__ == "__main__":
    main()
