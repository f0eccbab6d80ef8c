"""What going home does to a chain that follows a closed path for several rounds; for `orders.py`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from itertools import pairwise

import _orders_chains as c

from ccd_rig import Pose, Skeleton, SolverSettings, forward_kinematics

ROUNDS, PER_ROUND = 10, 100
CHAINS: dict[str, Callable[[], Skeleton]] = {
    "20 free joints": lambda: c.free(20),
    "20 joints, cones of 15°": lambda: c.tail(20, 15.0),
    "spine of 6": c.spine,
}
PATHS = ("circle", "eight")
HEADS = (
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


def measured() -> dict:
    """Each chain on each path, with and without home, and the chain's shape wherever a round ends."""
    rows, shapes = [], {}
    for name, make in CHAINS.items():
        skeleton = make()
        for path in PATHS:
            for reference in (None, Pose.rest(skeleton)):
                row, rounds = _rounds(skeleton, path, name.startswith("spine"), reference)
                rows.append({"chain": name, "path": path, "home": reference is not None, **row})
                if skeleton.joints[0].limit is None and path == PATHS[0]:
                    shapes["at rest" if reference else "none"] = [_shape(skeleton, pose) for pose in rounds]
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


def _shape(skeleton: Skeleton, pose: Pose) -> list[list[float]]:
    heads = [transform.translation for transform in forward_kinematics(skeleton, pose)]
    return [list(point) for point in (*heads, c.tip_of(skeleton, pose))]


def cells(row: dict) -> tuple[object, ...]:
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
