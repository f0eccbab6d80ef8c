"""Human limbs with human limits: how often legal targets are met, and what those that are missed share.

    python3 dev.py bench limbs                          200 targets per limb, 50 with orientation
    .venv/4.2/bin/python benchmarks/limbs.py --targets 10000 --poses 1000 --variants restarts --failures

Protocol: a person of 1.7 m, bones in metres, started from rest (arms spread, legs and spine straight; what
    must be bent is brought to its limit by the solver); targets are the tail of the last bone in a random
    pose inside the limits, so each is reachable; tolerance 1e-4 m; default settings; seeded. "Plain" is
    sweeps alone, "refined" has the closing phase, "restarts" that and RESTARTS further starts.
    Rows named "pose" ask for the last bone's orientation too, to 1e-3 rad: an arm has 3 + 1 + 3 freedoms and
    2 of the clavicle for the 6 of the hand, so little is to spare.
    "At limits" is the mean number of joints on their border where a solve has missed. With --failures: their
    names, and how many of those that were missed ten times the iterations or other starts meet.

Ranges: American Academy of Orthopaedic Surgeons, "Joint Motion" (1965), as in examples/human_limits.py.
    Lengths: Winter, "Biomechanics and Motor Control of Human Movement", figure 4.1, parts of the height.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import math
import random
import statistics
import sys
import time
from pathlib import Path

import bpy  # noqa: F401 - brings mathutils
from mathutils import Quaternion

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "core")]

from chains import legal_pose, tail  # noqa: E402

from ccd_rig import (  # noqa: E402
    Ellipse,
    EulerBox,
    Hinge,
    Joint,
    OrientationGoal,
    Pose,
    PositionGoal,
    Skeleton,
    Solver,
    SolveResult,
    SolverSettings,
    SolveStatus,
    SwingTwist,
    forward_kinematics,
    solve,
)
from ccd_rig.limits.shapes import violation  # noqa: E402

HEIGHT = 1.7
TOLERANCE, ANGLE = 1e-4, 1e-3
RESTARTS = 8
X = (1.0, 0.0, 0.0)


def _radians(*angles: float) -> tuple[float, ...]:
    return tuple(math.radians(angle) for angle in angles)


def _chain(*parts: tuple[str, float, object]) -> Skeleton:
    """Bones end to end along +Y: name, part of the height, limit. X points to the side, so a turn about X
    is flexion."""
    joints: list[Joint] = []
    for name, part, limit in parts:
        offset = (0.0, joints[-1].length, 0.0) if joints else (0.0, 0.0, 0.0)
        joints.append(Joint(name, len(joints) - 1, offset, Quaternion(), part * HEIGHT, limit))
    return Skeleton(joints)


def arm() -> Skeleton:
    """Clavicle, upper arm, forearm, hand; at rest spread to the side, 90 degrees of abduction used up (45
    of the 180 are the clavicle's)."""
    return _chain(
        ("clavicle", 0.129, SwingTwist(Ellipse(*_radians(-10.0, 45.0, -30.0, 30.0)), (0.0, 0.0))),
        (
            "upper_arm",
            0.186,
            SwingTwist(Ellipse(*_radians(-110.0, 45.0, -45.0, 135.0)), _radians(-90.0, 70.0)),
        ),
        ("forearm", 0.146, Hinge((0.0, 0.0, 1.0), *_radians(5.0, 150.0))),
        ("hand", 0.108, SwingTwist(Ellipse(*_radians(-80.0, 70.0, -30.0, 20.0)), _radians(-80.0, 80.0))),
    )


def leg() -> Skeleton:
    """Thigh, shin, foot; the knee never straightens. The foot points along the shin at rest here, 90
    degrees of its dorsiflexion away from flat."""
    return _chain(
        ("thigh", 0.245, SwingTwist(Ellipse(*_radians(-30.0, 120.0, -30.0, 45.0)), _radians(-45.0, 45.0))),
        ("shin", 0.246, Hinge(X, *_radians(-135.0, -3.0))),
        ("foot", 0.152, EulerBox("XYZ", _radians(40.0, -15.0, -10.0), _radians(110.0, 35.0, 10.0))),
    )


def spine() -> Skeleton:
    """Three bones of the back and three of the neck, each with a third of the part's range, and the head
    with none."""
    parts = []
    for region, bones, length, (forward, back, side, turn) in (
        ("back", 3, 0.288, (80.0, 25.0, 35.0, 45.0)),
        ("neck", 3, 0.052, (45.0, 45.0, 45.0, 60.0)),
    ):
        for i in range(bones):
            lower = _radians(-back / bones, -turn / bones, -side / bones)
            upper = _radians(forward / bones, turn / bones, side / bones)
            parts.append((f"{region}{i}", length / bones, EulerBox("XYZ", lower, upper)))
    parts.append(("head", 0.13, Hinge(X, 0.0, 0.0)))
    return _chain(*parts)


LIMBS = {"arm": arm(), "leg": leg(), "spine and head": spine()}


def variants() -> dict[str, SolverSettings]:
    """Settings to compare."""
    return {
        name: SolverSettings(
            position_tolerance=TOLERANCE, angle_tolerance=ANGLE, solver=solver, restarts=restarts
        )
        for name, solver, restarts in (
            ("plain", Solver.CCD, 0),
            ("refined", Solver.CCD_LEAST_SQUARES, 0),
            ("restarts", Solver.CCD_LEAST_SQUARES, RESTARTS),
        )
    }


@dataclasses.dataclass(frozen=True)
class Case:
    """A solve that missed, or did not."""

    goals: tuple[PositionGoal | OrientationGoal, ...]
    result: SolveResult
    seconds: float


def cases(skeleton: Skeleton, posed: bool, count: int, settings: SolverSettings, seed: int = 1) -> list[Case]:
    rng = random.Random(seed)
    last = skeleton.joints[-1].name
    found = []
    for _ in range(count):
        wanted = legal_pose(skeleton, rng)
        goals: list[PositionGoal | OrientationGoal] = [PositionGoal(last, tail(skeleton, wanted))]
        if posed:
            goals.append(OrientationGoal(last, forward_kinematics(skeleton, wanted)[-1].rotation))
        began = time.perf_counter()
        result = solve(skeleton, Pose.rest(skeleton), goals, settings)
        found.append(Case(tuple(goals), result, time.perf_counter() - began))
    return found


def on_border(skeleton: Skeleton, pose: Pose) -> list[str]:
    """Names of the joints that a turn of 1e-4 rad about some axis takes outside their limit."""
    names = []
    for joint, rotation in zip(skeleton.joints, pose.rotations, strict=True):
        if joint.limit is None or joint.name == "head":
            continue  # the head does not turn on the neck: it is always on its border
        for k in range(6):
            axis = [0.0, 0.0, 0.0]
            axis[k % 3] = 1.0 if k < 3 else -1.0
            if isinstance(joint.limit, Hinge):
                axis = [(1.0 if k < 3 else -1.0) * part for part in joint.limit.axis]
            if violation(joint.limit, rotation @ Quaternion(axis, 1e-3)) > 5e-4:
                names.append(joint.name)
                break
    return names


def row(name: str, skeleton: Skeleton, found: list[Case]) -> str:
    results = [case.result for case in found]
    missed = [result for result in results if result.status is not SolveStatus.CONVERGED]
    counts = [result.iterations for result in results]
    worst = max(error.distance for result in results for error in result.errors)
    over = max(
        violation(joint.limit, rotation)
        for result in results
        for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True)
        if joint.limit is not None
    )
    border = (
        statistics.fmean(len(on_border(skeleton, result.pose)) for result in missed) if missed else math.nan
    )
    return (
        f"{name:34s}{1.0 - len(missed) / len(found):9.2%}{statistics.median(counts):8g}"
        f"{statistics.fmean(counts):8.1f}{max(counts):6d}{worst:10.1e}{over:10.1e}{border:11.1f}"
        f"{statistics.median(case.seconds for case in found) * 1e6:10.0f}"
        f"{statistics.fmean(case.seconds for case in found) * 1e6:10.0f}"
    )


def failures(skeleton: Skeleton, found: list[Case], settings: SolverSettings, tries: int = 8) -> list[str]:
    """What solves that missed have in common, and what would have met the goals."""
    missed = [case for case in found if case.result.status is not SolveStatus.CONVERGED]
    if not missed:
        return []
    names: collections.Counter[str] = collections.Counter()
    for case in missed:
        names.update(on_border(skeleton, case.result.pose))
    statuses = collections.Counter(case.result.status.name for case in missed)
    rng = random.Random(9)
    longer = again = 0
    patient = dataclasses.replace(settings, max_iterations=10 * settings.max_iterations)
    for case in missed:
        result = solve(skeleton, Pose.rest(skeleton), case.goals, patient)
        longer += result.status is SolveStatus.CONVERGED
        for _ in range(tries):
            result = solve(skeleton, legal_pose(skeleton, rng), case.goals, settings)
            if result.status is SolveStatus.CONVERGED:
                again += 1
                break
    ends = ", ".join(f"{name.lower()} {count}" for name, count in statuses.items())
    near = statistics.median(max(error.distance for error in case.result.errors) for case in missed)
    return [
        f"    {len(missed)} missed ({ends}); median miss {near:.1e} m; on their border: "
        + (", ".join(f"{name} {count}" for name, count in names.most_common()) or "none"),
        f"    of these, 10 times the iterations meet {longer}, up to {tries} other starts meet {again}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=200)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--poses", type=int, default=50, help="solves that ask for the orientation too")
    parser.add_argument("--variants", nargs="*", choices=list(variants()), default=list(variants()))
    chosen = parser.parse_args()
    print(
        f"{'':34s}{'met':>9s}{'median':>8s}{'mean it':>8s}{'most':>6s}{'worst m':>10s}{'over rad':>10s}"
        f"{'at limits':>11s}{'median us':>10s}{'mean us':>10s}"
    )
    for posed in (False, True):
        for limb, skeleton in LIMBS.items():
            for name in chosen.variants:
                settings = variants()[name]
                found = cases(skeleton, posed, chosen.poses if posed else chosen.targets, settings)
                print(row(f"{limb}, {'pose, ' if posed else ''}{name}", skeleton, found), flush=True)
                if chosen.failures:
                    for line in failures(skeleton, found, settings):
                        print(line, flush=True)


if __name__ == "__main__":
    main()
