"""Several effectors on one tree: iterations cold and coherent; two arms with targets that conflict.

    python3 dev.py bench trees                  50 trees of each kind, 3 runs of 240 frames, 200 conflicts
    .venv/4.2/bin/python benchmarks/trees.py --trees 500 --frames 1000 --conflicts 2000

Protocol: bones of length 1, tolerance 1e-3, default settings, seeded. The small tree has 32 joints: a trunk
    of 8 and 4 branches of 6. The large one has 100: a trunk of 16 and 14 branches of 6 all around it
    (Kenwright 2012, figures 18 and 19: a peak of 60 and 100 iterations at the start, 10 on average while the
    effectors move). At rest the trunk stands and the branches point away from it, 30 degrees up.

    cold      from rest to the effectors of a random pose, so that all goals can be met together: trunk
              joints turned by up to 30 degrees, branch joints by up to `bend`, about random axes
    around    the effectors go around the trunk together, 1 degree per frame (the paper's motion)
    wander    every target goes around its own circle of radius 1, 3 degrees per frame, each with its own
              phase: about 5 % of a bone's length per frame, and no rigid motion fits
    conflict  two arms of 4 joints on a spine of 3, targets on opposite sides and too far apart by 0.5 to 3:
              with equal weights both should miss by the same; with priorities 0 and 1 the first is to be
              met, and the second to miss by no more than the two are too far apart

    Frames start from the pose of the frame before; the first, a cold start, is not counted.
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
from mathutils import Quaternion, Vector

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "core")]

from chains import tail  # noqa: E402

from ccd_rig import (  # noqa: E402
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


TREES = {
    "32 joints, 4 effectors": (tree(8, 4, 6), 60),
    "100 joints, 14 effectors": (tree(16, 14, 6), 100),
}
"""The tree, and the iterations that Kenwright gives for a cold start."""


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


def moving(skeleton: Skeleton, frames: int, wander: bool, seed: int) -> list[tuple[SolveResult, float]]:
    """Solves frame after frame, each from the pose of the one before; the first from rest."""
    rng = random.Random(seed)
    begin = bent(skeleton, rng, 60.0)
    middles = {name: tail(skeleton, begin, name) for name in ends(skeleton)}
    phases = {name: rng.uniform(0.0, math.tau) for name in middles}
    sides = {name: Quaternion([rng.gauss(0.0, 1.0) for _ in range(4)]).normalized() for name in middles}
    pose = Pose.rest(skeleton)
    solves = []
    for frame in range(frames):
        goals = []
        for name, middle in middles.items():
            if wander:
                # The start of each circle lies on the trunk's side, so that no target leaves its arm's reach.
                angle = phases[name] + math.radians(3.0) * frame
                target = 0.9 * middle + sides[name] @ Vector((math.cos(angle), math.sin(angle), 0.0))
            else:
                target = Quaternion((0.0, 0.0, 1.0), math.radians(frame)) @ middle
            goals.append(PositionGoal(name, target))
        result, took = checked(skeleton, pose, goals)
        pose = result.pose
        solves.append((result, took))
    return solves


def two_arms() -> Skeleton:
    """A spine of 3 joints along +Z and two arms of 4 to opposite sides on its top; all bones of length 1."""
    joints = list(tree(3, 0, 0).joints)
    for side, name in ((1.0, "left"), (-1.0, "right")):
        aside = Quaternion((0.0, 0.0, 1.0), side * math.radians(80.0))
        for i in range(4):
            parent = len(joints) - 1 if i else 2
            joints.append(Joint(f"{name}{i}", parent, (0.0, 1.0, 0.0), Quaternion() if i else aside))
    return Skeleton(joints)


def conflicts(count: int, seed: int = 3) -> list[str]:
    """Targets of two arms that are too far apart to be met together."""
    rng = random.Random(seed)
    skeleton = two_arms()
    names = ends(skeleton)
    shares, firsts, seconds, worse, counts = [], [], [], 0, {"equal": [], "ordered": []}
    for _ in range(count):
        # Each arm reaches 3 + 4 from the root, so either target can be met; the tails come no more than
        # 4 + 4 apart.
        turn = Quaternion((0.0, 0.0, 1.0), rng.uniform(0.0, math.tau))
        beside = turn @ Vector((1.0, 0.0, 0.0))
        gap = rng.uniform(0.5, 3.0)
        half = 0.5 * (8.0 + gap)
        centre = Vector((0.0, 0.0, rng.uniform(1.0, 2.0)))
        goals = [
            PositionGoal(names[0], centre + beside * half),
            PositionGoal(names[1], centre - beside * half),
        ]
        result, _ = checked(skeleton, Pose.rest(skeleton), goals)
        missed = [error.distance for error in result.errors]
        shares.append(abs(missed[0] - missed[1]) / sum(missed))
        counts["equal"].append(result.iterations)
        ordered = [PositionGoal(goal.joint, goal.target, priority=k) for k, goal in enumerate(goals)]
        after, _ = checked(skeleton, Pose.rest(skeleton), ordered)
        firsts.append(after.errors[0].distance)
        seconds.append(after.errors[1].distance / gap)
        counts["ordered"].append(after.iterations)
        alone, _ = checked(skeleton, Pose.rest(skeleton), goals[:1])
        worse += alone.status is SolveStatus.CONVERGED and after.errors[0].distance > TOLERANCE
    return [
        f"equal weights: difference of the two misses, parts of their sum: median "
        f"{statistics.median(shares):.1e}, worst {max(shares):.1e}; iterations: median "
        f"{statistics.median(counts['equal']):g}, most {max(counts['equal'])}",
        f"ordered: the first misses by median {statistics.median(firsts):.1e}, worst {max(firsts):.1e} "
        f"({worse} above the tolerance that alone are met); the second by {statistics.median(seconds):.2f} "
        f"times what it must; "
        f"iterations: median {statistics.median(counts['ordered']):g}, most {max(counts['ordered'])}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--frames", type=int, default=240)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--conflicts", type=int, default=200)
    chosen = parser.parse_args()
    print(
        f"{'':44s}{'solves':>7s}{'all met':>9s}{'median':>8s}{'mean':>8s}{'99 %':>8s}{'most':>6s}"
        f"{'worst':>10s}{'ms':>10s}   Kenwright 2012"
    )
    for name, (skeleton, peak) in TREES.items():
        for bend in (40.0, 90.0, 180.0):
            print(
                row(f"{name}, cold, bend {bend:g}", cold(skeleton, chosen.trees, bend), f"peak {peak}"),
                flush=True,
            )
        for wander in (False, True):
            rows = []
            for seed in range(chosen.runs):
                rows += moving(skeleton, chosen.frames, wander, seed)[1:]
            what = "wander" if wander else "around"
            print(row(f"{name}, {what}", rows, "10 on average"), flush=True)
    for line in conflicts(chosen.conflicts):
        print(line)


if __name__ == "__main__":
    main()
