"""Orders and settings compared on reach, iterations, joint motion and naturalness; prints the tables of
docs/measurements/orders.md and draws its plots.

    python3 dev.py bench orders                     all measurements, then the plots: about 3 minutes
    python3 dev.py bench orders -- shares draw      one part, and the plots again

The parts: orders, presets, shares, draw. Every part leaves its numbers in
output/orders.json, from which `draw` makes docs/images/orders_*.png. All random numbers are seeded: two runs
print the same. Chains, paths and measures are in `_orders_chains.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import _orders_chains as c
from mathutils import Vector

from ccd_rig import (
    Pose,
    Skeleton,
    SolverSettings,
    Sweep,
    forward_kinematics,
    solve,
)

ROOT = Path(__file__).resolve().parent.parent

RESULTS = ROOT / "output" / "orders.json"
TARGETS = 100
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


PARTS: dict[str, Callable[[], dict]] = {
    "orders": orders,
    "presets": presets,
    "shares": shares,
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
