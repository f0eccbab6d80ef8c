"""Orders and settings compared on reach, iterations, joint motion and naturalness; prints the tables of
docs/measurements/orders.md and draws its plots.

    python3 dev.py bench orders                     all measurements, then the plots: about 5 minutes
    python3 dev.py bench orders -- shares draw      one part, and the plots again

The parts: orders, smart, settings, presets, shares, home, comfort, draw. Every part leaves its numbers in
output/orders.json, from which `draw` makes docs/images/orders_*.png. All random numbers are seeded: two runs
print the same. Chains, paths and measures are in `_orders_chains.py`, `home` is in `_orders_home.py`,
`comfort` in `_orders_comfort.py`.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import _orders_chains as c  # noqa: E402
import _orders_comfort  # noqa: E402
import _orders_home  # noqa: E402
from mathutils import Quaternion, Vector  # noqa: E402

from ccd_rig import (  # noqa: E402
    Comfort,
    Hinge,
    Pose,
    Skeleton,
    Solver,
    SolverSettings,
    Sweep,
    forward_kinematics,
    solve,
)

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
    found = {"start": heads, "target": list(goal_point), "poses": {}}
    rows = []
    for sweep in (Sweep.ROOT_TO_TIP, Sweep.TIP_TO_ROOT, Sweep.BOUNCE_TIP, Sweep.SMART_BOUNCE):
        settings = SolverSettings(
            sweep=sweep, step_fraction=1.0, position_tolerance=1e-3, solver=Solver.CCD, restarts=0
        )
        result = solve(arm, start, [c.goal_at(arm, goal_point)], settings)
        angles = [math.degrees(angle) for angle in c.turns(start, result.pose)]
        found["poses"][sweep.name] = {
            "points": points(arm, result.pose),
            "turns": angles,
            "iterations": result.iterations,
        }
        shown = [f"{angle:.1f}" for angle in angles]
        rows.append((words(sweep), result.status.name, result.iterations, *shown, f"{sum(angles):.0f}"))
    c.table(("order", "status", "iterations", *(f"joint {i}" for i in range(5)), "sum"), rows)
    return found


def worst(runs: Sequence[c.Following]) -> dict[str, float]:
    """Some paths in a row of numbers; `typical` is the geometric mean of their largest turns."""
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
    found: dict = {"fractions": {}}
    rows = []
    for name, make in c.CHAINS.items():
        stiff = name.startswith("spine")
        for sweep in (Sweep.ROOT_TO_TIP, Sweep.TIP_TO_ROOT):
            for fraction in FRACTIONS:
                skeleton = make()
                chosen = c.settings_for(skeleton, sweep=sweep, step_fraction=fraction)
                numbers = worst(c.all_paths(skeleton, chosen, stiff, ("fast",)))
                found["fractions"].setdefault(f"{name}, {sweep.name}", {})[str(fraction)] = numbers
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
    return found


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
    found: dict = {}
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
            found[f"{name}, {label}"] = runs
            rows.append((name, label, *single(reach), *followed(runs)))
            print(".", end="", file=sys.stderr, flush=True)
    c.table(("chain", "step", *SINGLE, *FOLLOWED), rows)
    return found


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
    """Which part of the step follows best, over the number of joints; sweeps alone."""
    found: dict = {"rows": []}
    cells: dict[tuple[str, str], list[str]] = {}
    missed: list[tuple[object, ...]] = []
    for kind, make in (("free", c.free), ("limited", c.limited)):
        for count in COUNTS:
            for label, (chain, chosen) in candidates(make(count)).items():
                numbers = worst(c.all_paths(chain, chosen, laps=("fast",)))
                found["rows"].append({"kind": kind, "count": count, "label": label, **numbers})
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

    found["strobes"] = {}
    targets = c.along(c.eight(20.0), 1)
    found["path"] = [list(target) for target in targets]
    for label, (chain, chosen) in candidates(c.free(20)).items():
        if label not in ("0.9 of each step", "one part for all, 3 % left", c.AT_ONCE):
            continue
        run = c.follow(chain, targets, chosen)
        found["strobes"][label] = {
            "points": [points(chain, pose) for pose in run.poses[::25]],
            "largest": run.largest,
            "bend": run.bend,
        }
    return found


def home() -> dict:
    """What going home does to chains that follow a closed path for several rounds; see `_orders_home.py`."""
    found = _orders_home.measured()
    c.table(_orders_home.HEADS, [_orders_home.cells(row) for row in found["rows"]])
    return found


PARTS: dict[str, Callable[[], dict]] = {
    "orders": orders,
    "smart": smart,
    "settings": settings,
    "presets": presets,
    "shares": shares,
    "home": home,
    "comfort": _orders_comfort.measured,
}


def main(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in (*PARTS, "draw")]
    if unknown:
        sys.exit(f"no part named {unknown[0]}; there are: {', '.join(PARTS)}, draw")
    RESULTS.parent.mkdir(exist_ok=True)
    for name in names or PARTS:
        if name in PARTS:
            print(f"\n## {name}\n", flush=True)
            part = PARTS[name]()
            results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
            RESULTS.write_text(json.dumps({**results, name: part}))
    if not names or "draw" in names:
        import _orders_plots

        _orders_plots.draw(json.loads(RESULTS.read_text()), ROOT / "docs" / "images")


if __name__ == "__main__":
    main(sys.argv[1:])
