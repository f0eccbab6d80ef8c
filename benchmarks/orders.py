"""Orders of joints and steps of CCD compared on reach, iterations and the turns of joints.

    python3 dev.py bench orders                 the tables of docs/measurements/orders.md: two minutes
    python3 dev.py bench orders -- presets      one of them

orders    every order with full steps, CCD alone and without restarts, following on the slow circle
shares    steps that are shared out joint by joint, by how much of the error a pass leaves
presets   candidates for the presets, as users have them: the default solver and restarts, all paths

Single solves go from rest to 100 random reachable targets, to 1e-4 of the chain's length. Paths have 250
frames, each solved from the one before: a circle, an eight and a line in and out, slow (one lap) and fast
(five). All random numbers are seeded: two runs print the same.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise

import bpy  # noqa: F401 - brings mathutils
from _script import Table
from chains import legal_pose, tail
from mathutils import Vector

from ccd_rig import (
    Cone,
    EulerBox,
    Hinge,
    Joint,
    Limit,
    Pose,
    PositionGoal,
    Skeleton,
    Slide,
    Solver,
    SolverSettings,
    SolveStatus,
    Sweep,
    SwingTwist,
    solve,
)
from ccd_rig.maths.rotations import angle_of
from ccd_rig.settings import PRESETS

TARGETS, FRAMES = 100, 250
SHARE = PRESETS["TAIL"].error_reduction
HEADS = (
    "chain          | order or step              | reached | iterations | evenness | turn, largest"
    " | mean | iterations per frame | missed | bend"
)
WORDS = {
    Sweep.BOUNCE_TIP: "bounce from the tip",
    Sweep.BOUNCE_ROOT: "bounce from the root",
    Sweep.LARGEST_ERROR: "largest error first",
}


# Chains -----------------------------------------------------------------------------------------------------


def chain(limits: Sequence[Limit | None], lengths: Sequence[float] | None = None) -> Skeleton:
    """A straight chain along +Y, one joint per limit."""
    lengths = lengths or [1.0] * len(limits)
    return Skeleton(
        Joint(f"joint{i}", i - 1, (0.0, lengths[i - 1] if i else 0.0, 0.0), length=length, limit=limit)
        for i, (limit, length) in enumerate(zip(limits, lengths, strict=True))
    )


def chains() -> dict[str, Skeleton]:
    """A limb (shoulder, elbow, wrist), free ball joints, a tail of cones, a spine of Euler boxes."""
    rad = math.radians
    shoulder = SwingTwist(Cone(rad(80.0)), (rad(-60.0), rad(60.0)))
    elbow = Hinge((1.0, 0.0, 0.0), 0.0, rad(150.0))
    box = EulerBox("XYZ", (rad(-15.0), rad(-12.0), rad(-15.0)), (rad(25.0), rad(12.0), rad(15.0)))
    return {
        "limb of 3": chain([shoulder, elbow, SwingTwist(Cone(rad(40.0)))], [1.2, 1.0, 0.3]),
        "10 free joints": chain([None] * 10),
        "tail of 20": chain([SwingTwist(Cone(rad(30.0)))] * 20),
        "spine of 6": chain([box] * 6),
    }


def length_of(skeleton: Skeleton) -> float:
    return math.fsum(joint.length for joint in skeleton.joints)


def goal_at(skeleton: Skeleton, target: Vector) -> PositionGoal:
    return PositionGoal(skeleton.joints[-1].name, target)


# Paths ------------------------------------------------------------------------------------------------------

Path = Callable[[float], Vector]


def paths(size: float, stiff: bool) -> tuple[Path, Path, Path]:
    """A circle, a lying eight, and a slanting line in and out, by an angle; those of a stiff chain are small.

    Args:
        size: length of the chain.
        stiff: whether it reaches only what is far from its root.
    """

    def around(far: float, tilt: float, wide: float, high: float) -> Callable[[float, float], Vector]:
        middle = Vector((math.sin(tilt), math.cos(tilt), 0.0)) * (far * size)
        up = Vector((-math.cos(tilt), math.sin(tilt), 0.0)) * (high * size)
        return lambda across, along: middle + Vector((0.0, 0.0, wide * size * across)) + along * up

    circle = around(*((0.9, 0.5, 0.2, 0.2) if stiff else (0.6, 0.65, 0.25, 0.25)))
    eight = around(*((0.9, 0.4, 0.25, 0.1) if stiff else (0.65, 0.2, 0.3, 0.15)))
    slant, near = Vector((0.5, 0.8, 0.2)).normalized() * size, 0.85 if stiff else 0.4
    return (
        lambda t: circle(math.cos(t), math.sin(t)),
        lambda t: eight(math.cos(t), math.sin(2.0 * t)),
        lambda t: slant * (0.5 * (near + 0.95) - 0.5 * (0.95 - near) * math.cos(t)),
    )


# Measures ---------------------------------------------------------------------------------------------------


def turns(before: Pose, after: Pose) -> list[float]:
    """Rotation of each joint between two poses, radians."""
    return [angle_of(a.conjugated() @ b) for a, b in zip(before.rotations, after.rotations, strict=True)]


def evenness(angles: Sequence[float]) -> float:
    """Participation: 1 when all joints turn alike, 1/n when a single one of n does."""
    squares = math.fsum(angle * angle for angle in angles)
    return math.fsum(angles) ** 2 / (len(angles) * squares) if squares > 0.0 else 1.0


def single(skeleton: Skeleton, settings: SolverSettings, home: Pose | None) -> tuple[str, ...]:
    """Share reached, mean iterations, and evenness of solves that arrived."""
    rng, start = random.Random(1), Pose.rest(skeleton)
    goals = [goal_at(skeleton, tail(skeleton, legal_pose(skeleton, rng))) for _ in range(TARGETS)]
    results = [solve(skeleton, start, [goal], settings, reference=home) for goal in goals]
    arrived = [result for result in results if result.status is SolveStatus.CONVERGED]
    even = statistics.fmean(evenness(turns(start, result.pose)) for result in arrived)
    iterations = statistics.fmean(result.iterations for result in results)
    return f"{len(arrived) / TARGETS:.0%}", f"{iterations:.0f}", f"{even:.2f}"


def followed(
    skeleton: Skeleton, settings: SolverSettings, laps: Sequence[tuple[Path, int]], home: Pose | None
) -> tuple[str, ...]:
    """Turns of a joint between frames (largest, mean), iterations, missed frames, and the sum of bends."""
    rest = Pose.rest(skeleton)
    largest, means, iterations, missed, bends = [], [], [], 0, []
    for path, count in laps:
        poses, pose = [], rest
        for frame in range(FRAMES):
            goal = goal_at(skeleton, path(2.0 * math.pi * count * frame / FRAMES))
            result = solve(skeleton, pose, [goal], settings, reference=home)
            pose = result.pose
            poses.append(pose)
            missed += result.status is not SolveStatus.CONVERGED
            iterations += [result.iterations] if frame else []
        moves = [turns(a, b) for a, b in pairwise(poses)]
        largest.append(max(map(max, moves)))
        means.append(statistics.fmean(map(statistics.fmean, moves)))
        bends.append(statistics.fmean(sum(turns(rest, each)) for each in poses))
    return (
        f"{math.degrees(max(largest)):.1f}°",
        f"{math.degrees(statistics.fmean(means)):.2f}°",
        f"{statistics.fmean(iterations):.1f}",
        str(missed),
        f"{math.degrees(statistics.fmean(bends)):.0f}°",
    )


# Tables -----------------------------------------------------------------------------------------------------


def orders(name: str, skeleton: Skeleton, table: Table) -> None:
    tolerance = 1e-4 * length_of(skeleton)
    circle = paths(length_of(skeleton), name.startswith("spine"))[0]
    for sweep in Sweep:
        settings = SolverSettings(
            position_tolerance=tolerance, solver=Solver.CCD, restarts=0, sweep=sweep, step_fraction=1.0
        )
        words = WORDS.get(sweep, sweep.name.lower().replace("_", " "))
        cells = followed(skeleton, settings, [(circle, 1)], None)
        table.row(name, words, *single(skeleton, settings, None), *cells)


STEPS = {
    "tip to root, 1": {"sweep": Sweep.TIP_TO_ROOT, "step_fraction": 1.0},
    "root to tip, 1": {"step_fraction": 1.0},
    "root to tip, 0.9 (default)": {},
    f"share {SHARE}": {"error_reduction": SHARE},
    f"share {SHARE}, home at rest": {"error_reduction": SHARE},
}


def presets(name: str, skeleton: Skeleton, table: Table) -> None:
    tolerance = 1e-4 * length_of(skeleton)
    laps = [(path, n) for path in paths(length_of(skeleton), name.startswith("spine")) for n in (1, 5)]
    for step, fields in STEPS.items():
        settings = SolverSettings(position_tolerance=tolerance, **fields)
        home = Pose.rest(skeleton) if "home" in step else None
        cells = followed(skeleton, settings, laps, home)
        table.row(name, step, *single(skeleton, settings, home), *cells)


def shares(name: str, skeleton: Skeleton, table: Table) -> None:
    """Joint by joint, as for several goals; a slide of no length sees to that. Free joints alone can coil."""
    if not name.endswith("free joints"):
        return
    skeleton = chain([None] * 20)
    skeleton = skeleton.replace({skeleton.joints[-1].name: {"slides": (Slide((0.0, 1.0, 0.0), 0.0, 0.0),)}})
    laps = [(path, 5) for path in paths(length_of(skeleton), stiff=False)]
    for share in (0.9, 0.95, 0.97, 0.98, 0.99):
        settings = SolverSettings(
            position_tolerance=1e-4 * length_of(skeleton),
            solver=Solver.CCD,
            restarts=0,
            error_reduction=share,
        )
        cells = followed(skeleton, settings, laps, None)
        table.row("20 free joints", f"share {share}", *single(skeleton, settings, None), *cells)


TABLES: dict[str, Callable[[str, Skeleton, Table], None]] = {
    "orders": orders,
    "shares": shares,
    "presets": presets,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; default: all")
    chosen = parser.parse_args()
    if unknown := {*chosen.tables} - {*TABLES}:
        parser.error(f"no table named {min(unknown)}")
    for title in chosen.tables or TABLES:
        print(f"\n## {title}\n")
        table = Table(HEADS)
        for name, skeleton in chains().items():
            TABLES[title](name, skeleton, table)


if __name__ == "__main__":
    main()
