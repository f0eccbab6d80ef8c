"""Whether joints jump where a target leaves what the comfort region can reach; for `orders.py`."""

from __future__ import annotations

import math
import sys

import _orders_chains as c
from mathutils import Vector

from ccd_rig import Comfort, Cone, Pose, Skeleton, Solver, SolveStatus, SwingTwist, contains, solve


def arm_of_six(region: float = 0.0, tolerance: float = 0.0) -> Skeleton:
    """Six joints with cones of 60 degrees; region and tolerance in degrees, 0 for none."""
    inside = SwingTwist(Cone(math.radians(region))) if region else None
    comfort = Comfort(tolerance=math.radians(tolerance), region=inside) if region or tolerance else None
    return c.chain([SwingTwist(Cone(math.radians(60.0)))] * 6, comfort=comfort)


def there_and_back(frames: int) -> list[Vector]:
    """From where regions of 15 degrees suffice to where they do not, and back."""
    near, far = Vector((1.5, 5.58, 0.0)), Vector((4.5, 1.5, 0.6))
    return [near.lerp(far, 0.5 - 0.5 * math.cos(2.0 * math.pi * f / frames)) for f in range(frames)]


def measured() -> dict:
    """A target that leaves what the comfort region can reach: does any joint jump?

    Without a jump the largest turn per frame falls in proportion to the target's speed.
    """
    found: dict = {"frames": 250, "curves": {}}
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
        found["curves"][label] = {"per_frame": first.per_frame, "crossed": crossed}
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
    return found
