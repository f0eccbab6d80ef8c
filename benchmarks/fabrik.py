"""The protocol of the FABRIK paper's first table: ten free joints, a target to be met, from a cold start.

    python3 dev.py bench fabrik                         1,000 targets per row
    .venv/4.2/bin/python benchmarks/fabrik.py --targets 10000

Protocol: 10 ball joints without limits, 90 mm each (900 mm), started straight; the model's unit is the
    millimetre; default settings but for the tolerance, 1e-3 mm; seeded. The target is 600 mm away; whether
    from the root or from the effector is not said, so both are run. Unreachable targets are 1200 mm from the
    root; they are right when the solve ends as optimal with the chain as near as it can come, within the
    tolerance.

    Poses are kept in single precision, as Blender keeps them: one rounding is 6e-8 of a length, 5e-5 mm on
    900 mm, and ten joints add up. So 1e-3 mm is some twenty roundings, and what is met is met in the pose as
    it is stored, measured by forward kinematics.

Cited figures: Aristidou & Lasenby 2011, "FABRIK: a fast, iterative solver for the inverse kinematics
    problem", table 1 (mean of 20 runs), through a third party's notes; the paper itself was not at hand.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time

import bpy  # noqa: F401 - brings mathutils
from chains import tail
from mathutils import Vector

from ccd_rig import Joint, Pose, PositionGoal, Skeleton, SolverSettings, SolveStatus, solve

JOINTS, BONE = 10, 90.0
REACH = JOINTS * BONE
TOLERANCE = 1e-3
CITED = """
cited (Aristidou & Lasenby 2011, table 1, through a third party; mean iterations to 1e-3 mm):
  reachable      FABRIK 15.5   CCD 26.3   Jacobian DLS 999   Jacobian transpose 1311
  unreachable    FABRIK 67.6   CCD 390                       Jacobian transpose 6549"""


def chain() -> Skeleton:
    return Skeleton(
        Joint(f"joint{i}", i - 1, (0.0, BONE if i else 0.0, 0.0), length=BONE) for i in range(JOINTS)
    )


def direction(rng: random.Random) -> Vector:
    return Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()


def from_root(distance: float):
    return lambda rng, skeleton, start: direction(rng) * distance


def from_effector(distance: float):
    """Targets so far from where the effector starts, in reach of the chain."""

    def target(rng: random.Random, skeleton: Skeleton, start: Pose) -> Vector:
        effector = tail(skeleton, start)
        while True:
            candidate = effector + direction(rng) * distance
            if candidate.length <= 0.999 * REACH:
                return candidate

    return target


CASES = (
    ("reachable, 600 mm from the root", from_root(600.0)),
    ("reachable, 600 mm from the effector", from_effector(600.0)),
    ("unreachable, 1200 mm from the root", from_root(1200.0)),
)


def row(name: str, target, targets: int) -> str:
    rng = random.Random(1)
    skeleton = chain()
    start, chosen = Pose.rest(skeleton), SolverSettings(position_tolerance=TOLERANCE)
    counts, times, right, worst = [], [], 0, 0.0
    for _ in range(targets):
        wanted = target(rng, skeleton, start)
        goal = PositionGoal("joint9", wanted)
        began = time.perf_counter()
        result = solve(skeleton, start, [goal], chosen)
        times.append(time.perf_counter() - began)
        counts.append(result.iterations)
        beyond = max(0.0, wanted.length - REACH)
        off = (tail(skeleton, result.pose) - wanted).length - beyond
        worst = max(worst, off)
        expected = SolveStatus.OPTIMAL if beyond else SolveStatus.CONVERGED
        right += result.status is expected and off <= TOLERANCE + 1e-7 * max(REACH, wanted.length)
    mean = statistics.fmean(counts)
    return (
        f"{name:40s}{right / targets:9.2%}{mean:8.2f}"
        f"{statistics.median(counts):8g}{max(counts):6d}"
        f"{worst:11.1e}{statistics.median(times) * 1e6:10.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=1000)
    chosen = parser.parse_args()
    assert math.isclose(sum(joint.length for joint in chain().joints), REACH)
    print(
        f"{'10 free joints of 90 mm':40s}{'right':>9s}{'mean it':>8s}{'median':>8s}"
        f"{'most':>6s}"
        f"{'worst mm':>11s}{'us':>10s}"
    )
    for name, target in CASES:
        print(row(name, target, chosen.targets), flush=True)
    print(CITED)


if __name__ == "__main__":
    main()
