"""Orders and settings compared on reach, iterations, joint motion and naturalness; prints the tables of
docs/measurements/orders.md and draws its plots.

    python3 dev.py bench orders                     all measurements, then the plots: about 5 minutes
    python3 dev.py bench orders -- shares draw      one part, and the plots again

The parts: orders, smart, settings, presets, shares, home, comfort, draw. Every part leaves its numbers in
output/orders.json, from which `draw` makes docs/images/orders_*.png. All random numbers are seeded: two runs
print the same. Chains, paths and measures are in `_orders_chains.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import _orders_chains as c
from mathutils import Quaternion, Vector

from ccd_rig import (
    Comfort,
    Cone,
    Hinge,
    Pose,
    Skeleton,
    Solver,
    SolverSettings,
    SolveStatus,
    Sweep,
    SwingTwist,
    contains,
    forward_kinematics,
    solve,
)

ROOT = Path(__file__).resolve().parent.parent

RESULTS = ROOT / "output" / "orders.json"
TARGETS = 100
FRACTIONS = (0.2, 0.35, 0.5, 0.8, 0.9, 1.0, 1.3)
COUNTS = (2, 3, 6, 10, 20, 40, 100)
SHARES = (0.9, 0.95, 0.97, 0.98, 0.99)


def points(skeleton: Skeleton, pose: Pose) -> list[list[float]]:
    """Heads of all joints and the tail of the last, model space."""
    heads = [transform.translation for transform in forward_kinematics(skeleton, pose)]
    return [list(point) for point in (*heads, c.tip_of(skeleton, pose))]


def orders() -> dict:
    """Every order with full steps, sweeps alone: single solves from rest, and following a slow circle."""
    cells: dict[Sweep, list[str]] = {sweep: [] for sweep in Sweep}
    means: dict[Sweep, list[str]] = {sweep: [] for sweep in Sweep}
    for name, make in c.CHAINS.items():
        skeleton = make()
        for sweep in Sweep:
            settings = c.settings_for(skeleton, sweep=sweep, step_fraction=1.0)
            r = c.cold(skeleton, settings, TARGETS)
            path = c.circle(c.length_of(skeleton), name.startswith("spine"))
            f = c.follow(skeleton, c.along(path, 1), settings)
            cells[sweep].append(f"{r.reached:.0%}, {f.largest:.1f}°")
            means[sweep].append(f"{r.iterations:.0f} / {r.even:.2f} / {f.mean:.2f}° / {f.iterations:.1f}")
            print(".", end="", file=sys.stderr, flush=True)
    print("Share reached, and the most that one joint turns per frame:\n")
    c.table(("order", *c.CHAINS), [(words(sweep), *cells[sweep]) for sweep in Sweep])
    print("Iterations and evenness of single solves / mean turn and iterations per frame:\n")
    c.table(("order", *c.CHAINS), [(words(sweep), *means[sweep]) for sweep in Sweep])

    skeleton = c.tail()
    goal = c.goal_at(skeleton, Vector((9.0, 9.5, 0.0)))
    chosen = {sweep.name: {"sweep": sweep, "step_fraction": 1.0} for sweep in Sweep}
    chosen["SHARED"] = {"error_reduction": c.SHARE}
    poses = {}
    for label, fields in chosen.items():
        result = solve(skeleton, Pose.rest(skeleton), [goal], c.settings_for(skeleton, **fields))
        angles = c.turns(Pose.rest(skeleton), result.pose)
        poses[label] = {
            "points": points(skeleton, result.pose),
            "turns": [math.degrees(angle) for angle in angles],
            "even": c.evenness(angles),
            "iterations": result.iterations,
            "status": result.status.name,
        }
    return {"poses": poses, "target": list(goal.target)}


def words(sweep: Sweep) -> str:
    """An order as the documentation calls it."""
    return c.NAMES[sweep.name]


def smart() -> dict:
    """An arm of five hinges bent like Kenwright's; targets that the last two joints can reach."""
    arm = c.chain([Hinge((0.0, 0.0, 1.0), -math.pi, math.pi)] * 5)
    bends = (40.0, -25.0, -35.0, -45.0, -40.0)
    start = Pose(
        tuple(Quaternion((0.0, 0.0, 1.0), math.radians(angle)) for angle in bends),
        Pose.rest(arm).translations,
    )
    heads = points(arm, start)
    # 1.7 bones from the head of joint 3, half a radian off the line to the tip.
    head, tip = Vector(heads[3]), Vector(heads[5])
    goal_point = head + Quaternion((0.0, 0.0, 1.0), -0.5) @ (tip - head).normalized() * 1.7
    results = {"start": heads, "target": list(goal_point), "poses": {}}
    rows = []
    for sweep in (Sweep.ROOT_TO_TIP, Sweep.TIP_TO_ROOT, Sweep.BOUNCE_TIP, Sweep.SMART_BOUNCE):
        settings = SolverSettings(
            sweep=sweep, step_fraction=1.0, position_tolerance=1e-3, solver=Solver.CCD, restarts=0
        )
        result = solve(arm, start, [c.goal_at(arm, goal_point)], settings)
        angles = [math.degrees(angle) for angle in c.turns(start, result.pose)]
        results["poses"][sweep.name] = {
            "points": points(arm, result.pose),
            "turns": angles,
            "iterations": result.iterations,
        }
        shown = [f"{angle:.1f}" for angle in angles]
        rows.append((words(sweep), result.status.name, result.iterations, *shown, f"{sum(angles):.0f}"))
    c.table(("order", "status", "iterations", *(f"joint {i}" for i in range(5)), "sum"), rows)
    return results


def worst(runs: Sequence[c.Following]) -> dict[str, float]:
    """Summarise paths as numbers; `typical` is the geometric mean of their largest turns."""
    return {
        "largest": max(run.largest for run in runs),
        "typical": statistics.geometric_mean(run.largest for run in runs),
        "mean": statistics.fmean(run.mean for run in runs),
        "iterations": statistics.fmean(run.iterations for run in runs),
        "missed": sum(run.missed for run in runs),
        "bend": statistics.fmean(run.bend for run in runs),
    }


SINGLE = ("reached", "iterations", "evenness")
FOLLOWED = ("per frame, most", "per frame, mean", "iterations per frame", "missed", "bend, sum")


def single(reach: c.Reach) -> tuple[str, ...]:
    """The cells of SINGLE."""
    return f"{reach.reached:.0%}", f"{reach.iterations:.0f}", f"{reach.even:.2f}"


def followed(numbers: dict[str, float]) -> tuple[str, ...]:
    """The cells of FOLLOWED."""
    return (
        f"{numbers['largest']:.1f}",
        f"{numbers['mean']:.2f}",
        f"{numbers['iterations']:.1f}",
        f"{numbers['missed']:.0f}",
        f"{numbers['bend']:.0f}",
    )


def settings() -> dict:
    """Root to tip and tip to root at every part of the step; then the other settings on two chains."""
    results: dict = {"fractions": {}}
    rows = []
    for name, make in c.CHAINS.items():
        stiff = name.startswith("spine")
        for sweep in (Sweep.ROOT_TO_TIP, Sweep.TIP_TO_ROOT):
            for fraction in FRACTIONS:
                skeleton = make()
                chosen = c.settings_for(skeleton, sweep=sweep, step_fraction=fraction)
                numbers = worst(c.all_paths(skeleton, chosen, stiff, ("fast",)))
                results["fractions"].setdefault(f"{name}, {sweep.name}", {})[str(fraction)] = numbers
                rows.append((name, words(sweep), fraction, *followed(numbers)))
                print(".", end="", file=sys.stderr, flush=True)
    c.table(("chain", "order", "part", *FOLLOWED), rows)

    rows = []
    for name, make, base, fields, small in (
        ("limb of 3", c.limb, "part 0.9", {"step_fraction": 0.9}, 0.5),
        ("tail of 20", c.tail, f"share {c.SHARE}", {"error_reduction": c.SHARE}, c.rule(20)),
    ):
        for label, skeleton, chosen in changes(make, base, fields, small):
            use = c.settings_for(skeleton, **chosen)
            reach = c.cold(skeleton, use, TARGETS // 2)
            runs = c.all_paths(skeleton, use, laps=("fast",))
            error = f"{max(run.error for run in runs):.1e}"
            rows.append((name, label, *single(reach), *followed(worst(runs)), error))
            print(".", end="", file=sys.stderr, flush=True)
    c.table(("chain", "setting", *SINGLE, *FOLLOWED, "error, most"), rows)
    return results


def changes(
    make: Callable[..., Skeleton], base: str, fields: dict, small: float
) -> Iterator[tuple[str, Skeleton, dict]]:
    """What is changed about a chain and its settings, one at a time: name, chain and settings."""
    yield base, make(), fields
    for part in (1.3, small):
        yield f"part {part:.2g}", make(), {"step_fraction": part}
        for back in (0.5, 1.0):
            chosen = {"step_fraction": part, "step_feedback": back}
            yield f"part {part:.2g}, feedback {back:g}", make(), chosen
    for degrees in (20, 5, 1):
        slow = make(max_step=math.radians(degrees))
        yield f"part 1, largest step {degrees}°", slow, {"step_fraction": 1.0}
    yield f"{base}, stiffness 0.5", make(stiffness=0.5), fields
    for degrees in (2, 5):
        yield f"{base}, tolerance {degrees}°", make(comfort=Comfort(math.radians(degrees))), fields
    joints = make().joints
    stiff = Skeleton([*joints[:-1], replace(joints[-1], stiffness=0.8)])
    yield f"{base}, last joint stiff 0.8", stiff, fields


def presets() -> dict:
    """Candidates for the defaults with closing phase and restarts, as users have them."""
    results: dict = {}
    rows = []
    shared = {"error_reduction": c.SHARE}
    steps: dict[str, tuple[dict, bool]] = {
        "tip to root, 1": ({"sweep": Sweep.TIP_TO_ROOT, "step_fraction": 1.0}, False),
        "root to tip, 1": ({"step_fraction": 1.0}, False),
        "root to tip, 0.9 (default)": ({}, False),
        f"share {c.SHARE}": (shared, False),
        f"share {c.SHARE}, home at rest": (shared, True),
    }
    for name, make in c.CHAINS.items():
        skeleton = make()
        for label, (fields, at_rest) in steps.items():
            chosen = SolverSettings(position_tolerance=1e-4 * c.length_of(skeleton), **fields)
            home = Pose.rest(skeleton) if at_rest else None
            reach = c.cold(skeleton, chosen, TARGETS, reference=home)
            runs = worst(c.all_paths(skeleton, chosen, name.startswith("spine"), reference=home))
            results[f"{name}, {label}"] = runs
            rows.append((name, label, *single(reach), *followed(runs)))
            print(".", end="", file=sys.stderr, flush=True)
    c.table(("chain", "step", *SINGLE, *FOLLOWED), rows)
    return results


Candidate = tuple[Skeleton, SolverSettings]


def candidates(skeleton: Skeleton) -> dict[str, Candidate]:
    """Ways to share a pass out: the default part of each step, one part for all joints with which a pass
    leaves 3 %, shares by squared levers taken joint by joint, and all joints at once."""
    base, by_joint = c.settings_for(skeleton), c.joint_by_joint(skeleton)
    return {
        "0.9 of each step": (skeleton, base),
        "one part for all, 3 % left": c.with_fraction(skeleton, base, c.rule(len(skeleton))),
        **{
            f"share {share}, joint by joint": (by_joint, replace(base, error_reduction=share))
            for share in SHARES
        },
        c.AT_ONCE: (skeleton, replace(base, error_reduction=c.SHARE)),
    }


def shares() -> dict:
    """Compare parts of the step over the number of joints; sweeps alone."""
    results: dict = {"rows": []}
    cells: dict[tuple[str, str], list[str]] = {}
    missed: list[tuple[object, ...]] = []
    for kind, make in (("free", c.free), ("limited", c.limited)):
        for count in COUNTS:
            for label, (chain, chosen) in candidates(make(count)).items():
                numbers = worst(c.all_paths(chain, chosen, laps=("fast",)))
                results["rows"].append({"kind": kind, "count": count, "label": label, **numbers})
                shown = f"{numbers['typical']:.2f}° / {numbers['iterations']:.1f}"
                cells.setdefault((kind, label), []).append(shown)
                if numbers["missed"]:
                    missed.append((kind, label, count, f"{numbers['missed']:.0f}"))
                print(".", end="", file=sys.stderr, flush=True)
    print("Largest turn per frame (geometric mean over the paths) / iterations per frame:\n")
    heads = [f"{count} joints" for count in COUNTS]
    c.table(("chain", "step", *heads), [(*key, *row) for key, row in cells.items()])
    print(f"Frames missed, of {3 * c.FRAMES}:\n")
    c.table(("chain", "step", "joints", "frames missed"), missed)

    results["strobes"] = {}
    targets = c.along(c.eight(20.0), 1)
    results["path"] = [list(target) for target in targets]
    for label, (chain, chosen) in candidates(c.free(20)).items():
        if label not in ("0.9 of each step", "one part for all, 3 % left", c.AT_ONCE):
            continue
        run = c.follow(chain, targets, chosen)
        results["strobes"][label] = {
            "points": [points(chain, pose) for pose in run.poses[::25]],
            "largest": run.largest,
            "bend": run.bend,
        }
    return results


ROUNDS, PER_ROUND = 10, 100
HOME_CHAINS: dict[str, Callable[[], Skeleton]] = {
    "20 free joints": lambda: c.free(20),
    "20 joints, cones of 15°": lambda: c.tail(20, 15.0),
    "spine of 6": c.spine,
}
HOME_PATHS = ("circle", "eight")
HOME_HEADS = (
    "chain",
    "path",
    "home",
    "off the round before, 2nd",
    "10th",
    "bend, sum, 1st",
    "10th",
    "off the way back",
    "per frame, most",
    "per frame, mean",
    "missed",
)


def home() -> dict:
    """Each chain on each path, with and without home, and the chain's shape wherever a round ends."""
    rows, shapes = [], {}
    for name, make in HOME_CHAINS.items():
        skeleton = make()
        for path in HOME_PATHS:
            for reference in (None, Pose.rest(skeleton)):
                row, rounds = _rounds(skeleton, path, name.startswith("spine"), reference)
                rows.append({"chain": name, "path": path, "home": reference is not None, **row})
                if skeleton.joints[0].limit is None and path == HOME_PATHS[0]:
                    shapes["at rest" if reference else "none"] = [points(skeleton, pose) for pose in rounds]
    c.table(HOME_HEADS, [_home_cells(row) for row in rows])
    return {"rows": rows, "shapes": shapes}


def _rounds(
    skeleton: Skeleton, path: str, stiff: bool, reference: Pose | None
) -> tuple[dict[str, object], list[Pose]]:
    """Numbers of one run, degrees, and the poses in which its rounds end.

    A round is held against the one before in the pose in which it ends, the first against the very first
    frame. The way back is the same path run the other way round, as often.
    """
    around = c.along(c.PATHS[path](c.length_of(skeleton), stiff), 1, PER_ROUND)
    onwards = [*around * ROUNDS, around[0]]
    chosen = SolverSettings(error_reduction=c.SHARE, position_tolerance=1e-4 * c.length_of(skeleton))
    run = c.follow(skeleton, onwards, chosen, reference)
    back = c.follow(skeleton, onwards[::-1], chosen, reference)
    ends = list(run.poses[::PER_ROUND])
    drifts = [math.degrees(max(c.turns(a, b))) for a, b in pairwise(ends)]
    rest = Pose.rest(skeleton)
    bends = [math.degrees(math.fsum(c.turns(rest, pose))) for pose in ends]
    apart = math.degrees(statistics.fmean(c.turns(ends[-1], back.poses[-1])))
    return {
        "drifts": drifts,
        "bends": bends,
        "apart": apart,
        "largest": run.largest,
        "mean": run.mean,
        "missed": run.missed + back.missed,
    }, ends


def _home_cells(row: dict) -> tuple[object, ...]:
    """A row of the table: turns of the joint that differs most, and means over the joints, degrees."""
    return (
        row["chain"],
        row["path"],
        "at rest" if row["home"] else "none",
        f"{row['drifts'][1]:.1f}",
        f"{row['drifts'][-1]:.1f}",
        f"{row['bends'][1]:.0f}",
        f"{row['bends'][-1]:.0f}",
        f"{row['apart']:.1f}",
        f"{row['largest']:.2f}",
        f"{row['mean']:.3f}",
        row["missed"],
    )


def arm_of_six(region: float = 0.0, tolerance: float = 0.0) -> Skeleton:
    """Six joints with cones of 60 degrees; region and tolerance in degrees, 0 for none."""
    inside = SwingTwist(Cone(math.radians(region))) if region else None
    preferred = Comfort(tolerance=math.radians(tolerance), region=inside) if region or tolerance else None
    return c.chain([SwingTwist(Cone(math.radians(60.0)))] * 6, comfort=preferred)


def there_and_back(frames: int) -> list[Vector]:
    """From where regions of 15 degrees suffice to where they do not, and back."""
    near, far = Vector((1.5, 5.58, 0.0)), Vector((4.5, 1.5, 0.6))
    return [near.lerp(far, 0.5 - 0.5 * math.cos(2.0 * math.pi * f / frames)) for f in range(frames)]


def comfort() -> dict:
    """A target that leaves what the comfort region can reach: does any joint jump?

    Without a jump the largest turn per frame falls in proportion to the target's speed.
    """
    results: dict = {"frames": 250, "curves": {}}
    rows = []
    for label, region, tolerance, most, solver in (
        ("no comfort", 0.0, 0.0, 300, Solver.CCD_LEAST_SQUARES),
        ("region 15°", 15.0, 0.0, 300, Solver.CCD_LEAST_SQUARES),
        ("region 15°, sweeps alone", 15.0, 0.0, 300, Solver.CCD),
        ("region 15°, sweeps alone, 1500 iterations", 15.0, 0.0, 1500, Solver.CCD),
        ("tolerance 5°", 0.0, 5.0, 300, Solver.CCD_LEAST_SQUARES),
        ("tolerance 15°", 0.0, 15.0, 300, Solver.CCD_LEAST_SQUARES),
        ("region 15°, tolerance 5°", 15.0, 5.0, 300, Solver.CCD_LEAST_SQUARES),
    ):
        skeleton = arm_of_six(region, tolerance)
        chosen = c.settings_for(skeleton, error_reduction=c.SHARE, max_iterations=most, solver=solver)
        cells: list[str] = []
        for frames in (125, 250, 500):
            run = c.follow(skeleton, there_and_back(frames), chosen)
            cells.append(f"{run.largest:.2f}")
            if frames == 250:
                first = run
        comfortable = skeleton.joints[0].comfort
        limit = comfortable.region if comfortable else None
        within = [limit is None or all(contains(limit, q, 1e-4) for q in p.rotations) for p in first.poses]
        crossed = [k for k in range(1, len(within)) if within[k] != within[k - 1]]
        results["curves"][label] = {"per_frame": first.per_frame, "crossed": crossed}
        print(".", end="", file=sys.stderr, flush=True)
        rows.append((label, *cells, f"{first.iterations:.0f}", f"{first.error:.1e}", first.missed, crossed))
    heads = [f"most per frame, {frames} frames" for frames in (125, 250, 500)]
    c.table(("comfort", *heads, "iterations per frame", "error, most", "missed", "crossed at"), rows)

    skeleton, spent = arm_of_six(15.0), []
    chosen = c.settings_for(skeleton, error_reduction=c.SHARE)
    pose = Pose.rest(skeleton)
    for frame, target in enumerate(there_and_back(250)):
        result = solve(skeleton, pose, [c.goal_at(skeleton, target)], chosen)
        pose = result.pose
        if result.status is not SolveStatus.CONVERGED:
            spent.append(
                (frame, result.status.name, result.iterations, f"{result.errors[0].distance / 6.0:.1e}")
            )
    print("Frames that the region of 15° missed, sweeps alone:\n")
    c.table(("frame", "status", "iterations", "error, part of the length"), spent)
    return results


PARTS: dict[str, Callable[[], dict]] = {
    "orders": orders,
    "smart": smart,
    "settings": settings,
    "presets": presets,
    "shares": shares,
    "home": home,
    "comfort": comfort,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}, draw; default: all")
    chosen = parser.parse_args()
    if unknown := {*chosen.parts} - {*PARTS, "draw"}:
        parser.error(f"no part named {min(unknown)}")
    RESULTS.parent.mkdir(exist_ok=True)
    for name in chosen.parts or [*PARTS, "draw"]:
        results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
        if name == "draw":
            import _plots

            _plots.draw_orders(results, ROOT / "docs" / "images")
            continue
        print(f"\n## {name}\n", flush=True)
        RESULTS.write_text(json.dumps({**results, name: PARTS[name]()}))


if __name__ == "__main__":
    main()
