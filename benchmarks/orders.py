"""Orders and settings compared on reach, iterations, joint motion and naturalness; draws the plots of
docs/orders.md.

    python3 dev.py bench orders             all measurements, then the plots: about ten minutes

Started by itself (`PYTHONPATH=. .venv/4.2/bin/python benchmarks/orders.py rule draw`) it takes the names of
the parts to run: orders, smart, settings, presets, rule, comfort, draw. Every part prints its table and
leaves its numbers in output/orders.json, from which `draw` makes docs/images/orders_*.png. All random
numbers are seeded: two runs print the same. Chains, paths and measures are in `_orders_chains.py`.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import _orders_chains as c  # noqa: E402
from mathutils import Quaternion, Vector  # noqa: E402

from ccd_rig import (  # noqa: E402
    Comfort,
    Cone,
    Hinge,
    Pose,
    Skeleton,
    SolverSettings,
    SolveStatus,
    Sweep,
    SwingTwist,
    contains,
    forward_kinematics,
    solve,
)
from ccd_rig.settings import STEP_RANGE  # noqa: E402

RESULTS = ROOT / "output" / "orders.json"
TARGETS = 200
SLOW_TARGETS = 50  # for the orders whose iteration takes n (n + 1) / 2 steps, on the longest chain
FRACTIONS = (0.2, 0.35, 0.5, 0.8, 1.0, 1.3)
COUNTS = (2, 3, 6, 10, 20, 40, 100)
LEFT = (0.3, 0.1, 0.03, 0.01, 0.001)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a table in Markdown."""
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)
    print()


def points(skeleton: Skeleton, pose: Pose) -> list[list[float]]:
    """Heads of all joints and the tail of the last, model space."""
    heads = [transform.translation for transform in forward_kinematics(skeleton, pose)]
    return [list(point) for point in (*heads, c.tip_of(skeleton, pose))]


def orders() -> dict:
    """Every order with full steps: single solves from rest, and following a slow circle."""
    rows, found = [], {"poses": {}}
    for name, make in c.CHAINS.items():
        skeleton = make()
        for sweep in Sweep:
            settings = c.settings_for(skeleton, sweep=sweep, step_fraction=1.0)
            long = sweep is Sweep.SMART_BOUNCE and len(skeleton) > 6
            r = c.cold(skeleton, settings, SLOW_TARGETS if long else TARGETS)
            path = c.circle(c.length_of(skeleton), name.startswith("spine"))
            f = c.follow(skeleton, c.along(path, 1), settings)
            rows.append(
                (
                    name,
                    sweep.name,
                    f"{r.reached:.0%}",
                    f"{r.iterations:.0f}",
                    f"{r.steps:.0f}",
                    f"{r.turned:.0f}",
                    f"{r.largest:.0f}",
                    f"{r.even:.2f}",
                    f"{f.largest:.1f}",
                    f"{f.mean:.2f}",
                    f"{f.iterations:.1f}",
                )
            )
            print(".", end="", file=sys.stderr, flush=True)
    head = ("chain", "order", "reached", "iterations", "steps per joint", "turned, sum", "turned, most")
    table((*head, "evenness", "per frame, most", "per frame, mean", "iterations per frame"), rows)
    skeleton = c.tail()
    goal = c.goal_at(skeleton, Vector((9.0, 9.5, 0.0)))
    for sweep in Sweep:
        settings = c.settings_for(skeleton, sweep=sweep, step_fraction=1.0)
        result = solve(skeleton, Pose.rest(skeleton), [goal], settings)
        angles = c.turns(Pose.rest(skeleton), result.pose)
        found["poses"][sweep.name] = {
            "points": points(skeleton, result.pose),
            "turns": [math.degrees(angle) for angle in angles],
            "even": c.evenness(angles),
            "iterations": result.iterations,
            "status": result.status.name,
        }
    small = c.settings_for(skeleton, step_fraction=c.rule(20))
    result = solve(skeleton, Pose.rest(skeleton), [goal], small)
    angles = c.turns(Pose.rest(skeleton), result.pose)
    found["poses"]["ROOT_TO_TIP, 0.16"] = {
        "points": points(skeleton, result.pose),
        "turns": [math.degrees(angle) for angle in angles],
        "even": c.evenness(angles),
        "iterations": result.iterations,
        "status": result.status.name,
    }
    found["target"] = list(goal.target)
    return found


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
        settings = SolverSettings(sweep=sweep, step_fraction=1.0, position_tolerance=1e-3)
        with c.counted_steps() as steps:
            result = solve(arm, start, [c.goal_at(arm, goal_point)], settings)
        angles = [math.degrees(angle) for angle in c.turns(start, result.pose)]
        found["poses"][sweep.name] = {"points": points(arm, result.pose), "turns": angles, "steps": steps[0]}
        shown = [f"{angle:.1f}" for angle in angles]
        rows.append(
            (sweep.name, result.status.name, result.iterations, steps[0], *shown, f"{sum(angles):.0f}")
        )
    table(("order", "status", "iterations", "steps", *(f"joint {i}" for i in range(5)), "sum"), rows)
    return found


def worst(runs: Sequence[c.Following]) -> dict[str, float]:
    """Six paths in a row of numbers; `typical` is the geometric mean of their largest turns."""
    return {
        "largest": max(run.largest for run in runs),
        "typical": statistics.geometric_mean(run.largest for run in runs),
        "mean": statistics.fmean(run.mean for run in runs),
        "iterations": statistics.fmean(run.iterations for run in runs),
        "missed": sum(run.missed for run in runs),
        "bend": statistics.fmean(run.bend for run in runs),
        "even": statistics.fmean(run.even for run in runs),
    }


FOLLOWED = (
    "per frame, most",
    "per frame, mean",
    "iterations per frame",
    "frames missed",
    "bend, sum",
    "evenness",
)


def followed(numbers: dict[str, float]) -> tuple[str, ...]:
    return (
        f"{numbers['largest']:.1f}",
        f"{numbers['mean']:.2f}",
        f"{numbers['iterations']:.1f}",
        f"{numbers['missed']:.0f}",
        f"{numbers['bend']:.0f}",
        f"{numbers['even']:.2f}",
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
                rows.append((name, sweep.name, fraction, *followed(numbers)))
                print(".", end="", file=sys.stderr, flush=True)
    table(("chain", "order", "part", *FOLLOWED), rows)

    rows = []
    for name, make, part in (("limb of 3", c.limb, 0.8), ("tail of 20", c.tail, 0.16)):
        changes: dict[str, tuple[dict, dict]] = {
            f"part {part}": ({}, {}),
            "part 1.3": ({}, {"step_fraction": 1.3}),
            "part 1.3, feedback 0.5": ({}, {"step_fraction": 1.3, "step_feedback": 0.5}),
            "part 1.3, feedback 1": ({}, {"step_fraction": 1.3, "step_feedback": 1.0}),
            f"part {part}, feedback 0.5": ({}, {"step_feedback": 0.5}),
            f"part {part}, feedback 1": ({}, {"step_feedback": 1.0}),
            "part 1, largest step 20°": ({"max_step": math.radians(20.0)}, {"step_fraction": 1.0}),
            "part 1, largest step 5°": ({"max_step": math.radians(5.0)}, {"step_fraction": 1.0}),
            "part 1, largest step 1°": ({"max_step": math.radians(1.0)}, {"step_fraction": 1.0}),
            "part 1, stiffness 0.5": ({"stiffness": 0.5}, {"step_fraction": 1.0}),
            f"part {part}, tolerance 2°": ({"comfort": Comfort(math.radians(2.0))}, {}),
            f"part {part}, tolerance 5°": ({"comfort": Comfort(math.radians(5.0))}, {}),
        }
        made = {label: (make(**fields), chosen) for label, (fields, chosen) in changes.items()}
        made["graded stiffness, 5 % left"] = (c.graded(make()), {"step_fraction": 1.0})
        wrist = make().joints
        made[f"part {part}, last joint stiff 0.8"] = (
            Skeleton([*wrist[:-1], replace(wrist[-1], stiffness=0.8)]),
            {},
        )
        for label, (skeleton, chosen) in made.items():
            use = c.settings_for(skeleton, **{"step_fraction": part, **chosen})
            reach = c.cold(skeleton, use, TARGETS // 4)
            runs = c.all_paths(skeleton, use, laps=("fast",))
            cells = (
                f"{reach.reached:.0%}",
                f"{reach.iterations:.0f}",
                f"{reach.turned:.0f}",
                f"{reach.even:.2f}",
            )
            error = f"{max(run.error for run in runs):.1e}"
            rows.append((name, label, *cells, *followed(worst(runs)), error))
            print(".", end="", file=sys.stderr, flush=True)
    table(
        ("chain", "setting", "reached", "iterations", "turned, sum", "evenness", *FOLLOWED, "error, most"),
        rows,
    )
    return found


def presets() -> dict:
    """Candidates for the defaults, with the closing phase as users have it: the recommendation's table."""
    found: dict = {}
    rows = []
    for name, make in c.CHAINS.items():
        skeleton = make()
        for label, chain, sweep, part in (
            ("tip to root, 1", skeleton, Sweep.TIP_TO_ROOT, 1.0),
            ("root to tip, 1", skeleton, Sweep.ROOT_TO_TIP, 1.0),
            ("root to tip, 0.8", skeleton, Sweep.ROOT_TO_TIP, 0.8),
            ("root to tip, 0.5", skeleton, Sweep.ROOT_TO_TIP, 0.5),
            ("root to tip, 0.2", skeleton, Sweep.ROOT_TO_TIP, 0.2),
            ("root to tip, rule", skeleton, Sweep.ROOT_TO_TIP, c.rule_of(skeleton)),
            ("root to tip, graded", c.graded(skeleton), Sweep.ROOT_TO_TIP, 1.0),
        ):
            chosen = c.settings_for(chain, sweep=sweep, step_fraction=part, refine=True)
            reach = c.cold(chain, chosen, TARGETS)
            runs = worst(c.all_paths(chain, chosen, name.startswith("spine")))
            found[f"{name}, {label}"] = runs
            cells = (
                f"{reach.reached:.1%}",
                f"{reach.iterations:.0f}",
                f"{reach.turned:.0f}",
                f"{reach.even:.2f}",
            )
            rows.append((name, label, f"{part:.2f}", *cells, *followed(runs)))
            print(".", end="", file=sys.stderr, flush=True)
    table(("chain", "step", "part", "reached", "iterations", "turned, sum", "evenness", *FOLLOWED), rows)
    return found


def rule() -> dict:
    """Which part of the step follows best, over the number of joints; sweeps alone."""
    found: dict = {"rows": []}
    rows = []
    for kind, make in (("free", c.free), ("limited", c.limited)):
        for count in COUNTS:
            skeleton = make(count)
            base = c.settings_for(skeleton)
            lefts = LEFT if count <= 40 else LEFT[2:4]
            tries = {f"{left:g} left": c.with_fraction(skeleton, base, c.rule(count, left)) for left in lefts}
            if c.rule(count) < STEP_RANGE[0]:
                tries["0.1"] = (skeleton, replace(base, step_fraction=STEP_RANGE[0]))
            tries["graded, 0.05 left"] = (c.graded(skeleton), replace(base, step_fraction=1.0))
            for label, (chain, chosen) in tries.items():
                numbers = worst(c.all_paths(chain, chosen, laps=("fast",)))
                found["rows"].append({"kind": kind, "count": count, "label": label, **numbers})
                part = 1.0 - chain.joints[0].stiffness if label.startswith("graded") else math.nan
                if not label.startswith("graded"):
                    part = chosen.step_fraction * (1.0 - chain.joints[0].stiffness)
                shown = (f"{part:.3f}", f"{numbers['typical']:.2f}", *followed(numbers))
                rows.append((kind, count, label, *shown))
                print(".", end="", file=sys.stderr, flush=True)
    table(("chain", "joints", "step", "part at the root", "per frame, typical", *FOLLOWED), rows)
    found["strobes"] = {}
    skeleton = c.free(20)
    targets = c.along(c.eight(20.0), 1)
    found["path"] = [list(target) for target in targets]
    for label, chain, fraction in (
        ("0.8", skeleton, 0.8),
        ("0.16", skeleton, c.rule(20)),
        ("graded", c.graded(skeleton), 1.0),
    ):
        run = c.follow(chain, targets, c.settings_for(chain, step_fraction=fraction, refine=True))
        found["strobes"][label] = {
            "points": [points(chain, pose) for pose in run.poses[::25]],
            "largest": run.largest,
            "bend": run.bend,
        }
    return found


def arm_of_six(region: float = 0.0, tolerance: float = 0.0) -> Skeleton:
    """Six joints with cones of 60 degrees; region and tolerance in degrees, 0 for none."""
    inside = SwingTwist(Cone(math.radians(region))) if region else None
    comfort = Comfort(tolerance=math.radians(tolerance), region=inside) if region or tolerance else None
    return c.chain([SwingTwist(Cone(math.radians(60.0)))] * 6, comfort=comfort)


def there_and_back(frames: int) -> list[Vector]:
    """From where regions of 15 degrees suffice to where they do not, and back."""
    near, far = Vector((1.5, 5.58, 0.0)), Vector((4.5, 1.5, 0.6))
    return [near.lerp(far, 0.5 - 0.5 * math.cos(2.0 * math.pi * f / frames)) for f in range(frames)]


def comfort() -> dict:
    """A target that leaves what the comfort region can reach: does any joint jump?

    Without a jump the largest turn per frame falls in proportion to the target's speed.
    """
    found: dict = {"frames": 250, "curves": {}}
    rows = []
    part = c.rule(6)
    for label, region, tolerance, most, refine in (
        ("no comfort", 0.0, 0.0, 300, True),
        ("region 15°", 15.0, 0.0, 300, True),
        ("region 15°, sweeps alone", 15.0, 0.0, 300, False),
        ("region 15°, sweeps alone, 1500 iterations", 15.0, 0.0, 1500, False),
        ("tolerance 5°", 0.0, 5.0, 300, True),
        ("tolerance 15°", 0.0, 15.0, 300, True),
        ("region 15°, tolerance 5°", 15.0, 5.0, 300, True),
    ):
        skeleton = arm_of_six(region, tolerance)
        chosen = c.settings_for(skeleton, step_fraction=part, max_iterations=most, refine=refine)
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
        found["curves"][label] = {"per_frame": first.per_frame, "crossed": crossed}
        print(".", end="", file=sys.stderr, flush=True)
        rows.append((label, *cells, f"{first.iterations:.0f}", f"{first.error:.1e}", first.missed, crossed))
    heads = [f"most per frame, {frames} frames" for frames in (125, 250, 500)]
    table(("comfort", *heads, "iterations per frame", "error, most", "missed", "crossed at"), rows)

    skeleton, spent = arm_of_six(15.0), []
    chosen = c.settings_for(skeleton, step_fraction=part)
    pose = Pose.rest(skeleton)
    for frame, target in enumerate(there_and_back(250)):
        result = solve(skeleton, pose, [c.goal_at(skeleton, target)], chosen)
        pose = result.pose
        if result.status is not SolveStatus.CONVERGED:
            spent.append(
                (frame, result.status.name, result.iterations, f"{result.errors[0].distance / 6.0:.1e}")
            )
    print("Frames that the region of 15° missed:")
    table(("frame", "status", "iterations", "error, part of the length"), spent)
    return found


PARTS: dict[str, Callable[[], dict]] = {
    "orders": orders,
    "smart": smart,
    "settings": settings,
    "presets": presets,
    "rule": rule,
    "comfort": comfort,
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
