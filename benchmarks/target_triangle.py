"""Song & Hu's comparison of the target triangle with CCD, on their own chain (Song & Hu 2011, section 4).

    python3 dev.py bench target_triangle
    .venv/4.2/bin/python benchmarks/target_triangle.py --targets 500 --plot chains.png

Four joints of length 9 and one of 4; joint 2 bends by up to 120 degrees from the bone before, joint 3 by up
to 90 (as cones about the bone); started straight; seeded random targets, each the effector of a legal pose,
or straight from a shell about the base; tolerance 0.01 of 40 units. Rotations are from the start to the
result, degrees: the sum over the joints, and the largest of the five. The paper shows one pair of pictures
and no numbers, so the table has nothing of its to be held against but its claims: one pass, smaller
rotations, joints near the base first.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import bpy  # noqa: F401 - brings mathutils

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from mathutils import Quaternion, Vector  # noqa: E402

from ccd_rig.goals import PositionGoal  # noqa: E402
from ccd_rig.limits.random_rotations import sample  # noqa: E402
from ccd_rig.limits.shapes import Cone, SwingTwist  # noqa: E402
from ccd_rig.maths.rotations import angle_between  # noqa: E402
from ccd_rig.settings import (  # noqa: E402
    SolveResult,
    SolverSettings,
    SolveStatus,
    Sweep,
)
from ccd_rig.skeleton.joints import Joint, Skeleton  # noqa: E402
from ccd_rig.skeleton.kinematics import forward_kinematics  # noqa: E402
from ccd_rig.skeleton.pose import Pose  # noqa: E402
from ccd_rig.solvers.analytic.target_triangle import target_triangle  # noqa: E402
from ccd_rig.solvers.solve import solve  # noqa: E402

LENGTHS = (9.0, 9.0, 9.0, 9.0, 4.0)
CONES = {1: math.radians(120.0), 2: math.radians(90.0)}
TOLERANCE = 0.01
TIP = "joint5"
WIDTHS = (9, 9, 6, 10, 8, 12, 7, 11)
PAPER_CCD = SolverSettings(sweep=Sweep.TIP_TO_ROOT, step_fraction=1.0, position_tolerance=TOLERANCE)
OURS = SolverSettings(position_tolerance=TOLERANCE)

Method = Callable[[Skeleton, Pose, PositionGoal], SolveResult]
METHODS: dict[str, Method] = {
    "CCD, tip to root": lambda skeleton, pose, goal: solve(skeleton, pose, [goal], PAPER_CCD),
    "CCD, default order": lambda skeleton, pose, goal: solve(skeleton, pose, [goal], OURS),
    "target triangle": lambda skeleton, pose, goal: target_triangle(
        skeleton, pose, goal, position_tolerance=TOLERANCE
    ),
}


def paper_chain() -> Skeleton:
    """The chain of section 4, along +Y."""
    return Skeleton(
        Joint(
            f"joint{i + 1}",
            i - 1,
            (0.0, LENGTHS[i - 1] if i else 0.0, 0.0),
            length=length,
            limit=SwingTwist(Cone(CONES[i])) if i in CONES else None,
        )
        for i, length in enumerate(LENGTHS)
    )


def points(skeleton: Skeleton, pose: Pose) -> list[Vector]:
    """Heads of the joints and the effector, model space."""
    places = forward_kinematics(skeleton, pose)
    return [place.translation for place in places] + [places[-1].point(Vector((0.0, LENGTHS[-1], 0.0)))]


def legal_targets(skeleton: Skeleton, count: int, seed: int) -> list[Vector]:
    """Effectors of random poses inside the limits: each is in reach."""
    rng = random.Random(seed)
    rest = Pose.rest(skeleton)
    return [
        points(
            skeleton,
            rest.with_rotations({i: sample(joint.limit, rng) for i, joint in enumerate(skeleton.joints)}),
        )[-1]
        for _ in range(count)
    ]


def shell_targets(count: int, seed: int, nearest: float, furthest: float) -> list[Vector]:
    """Any direction from the base, distances spread evenly."""
    rng = random.Random(seed)
    return [
        Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized() * rng.uniform(nearest, furthest)
        for _ in range(count)
    ]


def degrees_turned(start: Pose, end: Pose) -> list[float]:
    """How far each joint has turned from pose to pose."""
    pairs = zip(start.rotations, end.rotations, strict=True)
    return [math.degrees(angle_between(before, after)) for before, after in pairs]


def row(name: str, method: Method, skeleton: Skeleton, targets: Sequence[Vector]) -> str:
    """One line of the table. Rotations and iterations are of the solves that reached their target."""
    start = Pose.rest(skeleton)
    iterations, sums, largest, times = [], [], [], []
    for target in targets:
        goal = PositionGoal(TIP, target)
        began = time.perf_counter()
        result = method(skeleton, start, goal)
        times.append(time.perf_counter() - began)
        if result.status is SolveStatus.CONVERGED:
            turns = degrees_turned(start, result.pose)
            iterations.append(result.iterations)
            sums.append(sum(turns))
            largest.append(max(turns))
    if not sums:
        return f"  {name:22s}{0.0:9.1%}"
    cells = (
        f"{len(sums) / len(targets):.1%}",
        f"{statistics.fmean(iterations):.2f}",
        f"{max(iterations)}",
        f"{statistics.fmean(sums):.1f}",
        f"{statistics.median(sums):.1f}",
        f"{statistics.fmean(largest):.1f}",
        f"{max(largest):.1f}",
        f"{statistics.median(times) * 1e6:.0f}",
    )
    return f"  {name:22s}" + "".join(f"{cell:>{width}s}" for cell, width in zip(cells, WIDTHS, strict=True))


def plot(file: Path, skeleton: Skeleton, target: Vector) -> None:
    """Draws the chain of each method for the same target, in the plane of the start and the target."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        sys.exit("--plot needs matplotlib: python -m pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(METHODS), figsize=(12.0, 5.0), sharex=True, sharey=True)
    start = Pose.rest(skeleton)
    for each, (name, method) in zip(axes, METHODS.items(), strict=True):
        result = method(skeleton, start, PositionGoal(TIP, target))
        there = points(skeleton, result.pose)
        turns = degrees_turned(start, result.pose)
        each.plot([0.0, 0.0], [0.0, sum(LENGTHS)], color="0.85", linewidth=2, label="start")
        xs, ys = [p.x for p in there], [p.y for p in there]
        each.plot(xs, ys, "o-", color="tab:blue", linewidth=3, label="result")
        each.plot([target.x], [target.y], "x", color="tab:red", markersize=12, label="target")
        each.set_title(
            f"{name}\n{result.iterations} iterations, sum {sum(turns):.0f}°, largest {max(turns):.0f}°, "
            f"off by {result.errors[0].distance:.3f}",
            fontsize=9,
        )
        each.set_aspect("equal")
        each.grid(color="0.93")
    axes[0].legend(loc="lower left", fontsize=8)
    figure.suptitle("Song & Hu 2011: joints of 9, 9, 9, 9, 4; joint 2 within 120°, joint 3 within 90°")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    print(f"wrote {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the chains for one target to a PNG")
    chosen = parser.parse_args()
    skeleton = paper_chain()
    heads = ("reached", "mean it.", "max", "mean sum", "median", "mean large", "max", "median us")
    print("  " + " " * 22 + "".join(f"{head:>{width}s}" for head, width in zip(heads, WIDTHS, strict=True)))
    for what, targets in (
        ("targets of random legal poses", legal_targets(skeleton, chosen.targets, chosen.seed)),
        ("targets 22 to 40 units away", shell_targets(chosen.targets, chosen.seed, 22.0, 40.0)),
        ("targets 1 to 22 units away", shell_targets(chosen.targets, chosen.seed, 1.0, 22.0)),
    ):
        print(what)
        for name, method in METHODS.items():
            print(row(name, method, skeleton, targets), flush=True)
    if chosen.plot is not None:
        # In the plane of the drawing, at the side and a little behind the base.
        aside = Quaternion((0.0, 0.0, 1.0), math.radians(-100.0))
        plot(chosen.plot, skeleton, aside @ Vector((0.0, 26.0, 0.0)))


if __name__ == "__main__":
    main()
