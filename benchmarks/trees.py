"""Several effectors on one tree: iterations from a cold start, and while the effectors move.

    python3 dev.py bench trees                  50 trees of each bend, 3 runs of 240 frames

Protocol: bones of length 1, tolerance 1e-3, default settings, seeded. The tree has 100 joints: a trunk of
    16 and 14 branches of 6 all around it (Kenwright 2012, figure 19: a peak of 100 iterations at the start,
    10 on average while the effectors move). At rest the trunk stands and the branches point away from it, 30
    degrees up.

    cold      from rest to the effectors of a random pose, so that all goals can be met together: trunk
              joints turned by up to 30 degrees, branch joints by up to `bend`, about random axes
    around    the effectors go around the trunk together, 1 degree per frame (the paper's motion)

    Frames start from the pose of the frame before; the first, a cold start, is not counted.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time

import bpy  # noqa: F401 - brings mathutils
from chains import tail
from mathutils import Quaternion, Vector

from ccd_rig import (
    Joint,
    Pose,
    PositionGoal,
    Skeleton,
    SolveResult,
    SolverSettings,
    SolveStatus,
    forward_kinematics,
    measure,
    solve,
)

TOLERANCE = 1e-3
SETTINGS = SolverSettings(position_tolerance=TOLERANCE)
GOLDEN = math.pi * (3.0 - math.sqrt(5.0))
"""Angle between branches that follow each other on the trunk, radians."""


def tree(trunk: int, branches: int, length: int) -> Skeleton:
    """A trunk along +Z with branches all around its upper three quarters; every bone has length 1."""
    upward = Quaternion((1.0, 0.0, 0.0), math.pi / 2.0)
    joints = [
        Joint(f"trunk{i}", i - 1, (0.0, 1.0 if i else 0.0, 0.0), Quaternion() if i else upward)
        for i in range(trunk)
    ]
    for branch in range(branches):
        place = trunk // 4 + round(branch * (trunk - 1 - trunk // 4) / max(1, branches - 1))
        # About the trunk's bone (+Y) to a side of its own, then 60 degrees away from the trunk.
        aside = Quaternion((0.0, 1.0, 0.0), branch * GOLDEN) @ Quaternion((1.0, 0.0, 0.0), math.radians(60.0))
        for i in range(length):
            parent = len(joints) - 1 if i else place
            joints.append(Joint(f"branch{branch}.{i}", parent, (0.0, 1.0, 0.0), Quaternion() if i else aside))
    return Skeleton(joints)


TRUNK, BRANCHES, LENGTH = 16, 14, 6


def ends(skeleton: Skeleton) -> list[str]:
    """Names of the joints that no other joint hangs on: those that carry an effector."""
    parents = {joint.parent for joint in skeleton.joints}
    return [joint.name for i, joint in enumerate(skeleton.joints) if i not in parents]


def bent(skeleton: Skeleton, rng: random.Random, bend: float) -> Pose:
    """A random pose: trunk joints turned by up to 30, branch joints by up to `bend` degrees."""
    rotations = []
    for joint in skeleton.joints:
        axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()
        most = 30.0 if joint.name.startswith("trunk") else bend
        rotations.append(Quaternion(axis, math.radians(rng.uniform(-most, most))))
    return Pose(tuple(rotations), Pose.rest(skeleton).translations)


def checked(skeleton: Skeleton, start: Pose, goals: list[PositionGoal]) -> tuple[SolveResult, float]:
    """A solve and its time in seconds; what it reports is held against forward kinematics."""
    began = time.perf_counter()
    result = solve(skeleton, start, goals, SETTINGS)
    took = time.perf_counter() - began
    transforms = forward_kinematics(skeleton, result.pose)
    worst = max(measure(goal, skeleton, transforms).distance for goal in goals)
    if (worst <= TOLERANCE) != (result.status is SolveStatus.CONVERGED):
        raise SystemExit(f"status {result.status.name}, but the worst goal is {worst:g} off")
    return result, took


def row(name: str, results: list[tuple[SolveResult, float]], cited: str) -> str:
    counts = [result.iterations for result, _ in results]
    met = sum(result.status is SolveStatus.CONVERGED for result, _ in results)
    far = max(error.distance for result, _ in results for error in result.errors)
    tenths = statistics.quantiles(counts, n=100)[98] if len(counts) > 1 else counts[0]
    return (
        f"{name:44s}{len(results):7d}{met / len(results):9.2%}{statistics.median(counts):8g}"
        f"{statistics.fmean(counts):8.1f}{tenths:8.0f}{max(counts):6d}{far:10.1e}"
        f"{statistics.median(took for _, took in results) * 1e3:10.2f}   {cited}"
    )


def cold(skeleton: Skeleton, count: int, bend: float, seed: int = 1) -> list[tuple[SolveResult, float]]:
    """Solves from rest for the effectors of random poses."""
    rng = random.Random(seed)
    start = Pose.rest(skeleton)
    solves = []
    for _ in range(count):
        pose = bent(skeleton, rng, bend)
        goals = [PositionGoal(name, tail(skeleton, pose, name)) for name in ends(skeleton)]
        solves.append(checked(skeleton, start, goals))
    return solves


def moving(skeleton: Skeleton, frames: int, seed: int) -> list[tuple[SolveResult, float]]:
    """Solves frame after frame, each from the pose of the one before; the first from rest."""
    begin = bent(skeleton, random.Random(seed), 60.0)
    middles = {name: tail(skeleton, begin, name) for name in ends(skeleton)}
    pose, solves = Pose.rest(skeleton), []
    for frame in range(frames):
        turn = Quaternion((0.0, 0.0, 1.0), math.radians(frame))
        goals = [PositionGoal(name, turn @ middle) for name, middle in middles.items()]
        result, took = checked(skeleton, pose, goals)
        pose = result.pose
        solves.append((result, took))
    return solves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--frames", type=int, default=240)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    print(
        f"{'':44s}{'solves':>7s}{'all met':>9s}{'median':>8s}{'mean':>8s}{'99 %':>8s}{'most':>6s}"
        f"{'worst':>10s}{'ms':>10s}   Kenwright 2012"
    )
    skeleton = tree(TRUNK, BRANCHES, LENGTH)
    for bend in (40.0, 90.0, 180.0):
        print(row(f"cold, bend {bend:g}", cold(skeleton, chosen.trees, bend), "peak 100"), flush=True)
    rows = [each for seed in range(chosen.runs) for each in moving(skeleton, chosen.frames, seed)[1:]]
    print(row("around", rows, "10 on average"), flush=True)


if __name__ == "__main__":
    main()
