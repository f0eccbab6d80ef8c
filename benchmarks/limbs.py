"""Limbs inside limits: how often legal targets are met, and what the pose nearest to another costs.

    python3 dev.py bench limbs                          10,000 targets per limb
    python3 dev.py bench limbs -- --targets 200

Human limbs: a person of 1.7 m, bones in metres, started from rest (arms spread, legs and spine straight; what
    must be bent is brought to its limit by the solver); targets are the tail of the last bone in a random
    pose inside the limits, so each is reachable; tolerance 1e-4 m; default settings; seeded.
Nearest poses: bones of length 1; each start is a random pose inside the limits and the reference too; the
    target is the effector after each joint was turned by up to 0.3 rad, inside its limit; to 1e-4; no other
    starts. Microseconds are those of one call of `PoseSearch.solve` for all poses, divided: what the kernel
    takes for each, one after the other, in processor time. Departures are from the reference, degrees, the
    root mean square over joints and poses, beside that of the poses from which the targets were taken.

Ranges: American Academy of Orthopaedic Surgeons, "Joint Motion" (1965), as in examples/human_limits.py.
    Lengths: Winter, "Biomechanics and Motor Control of Human Movement", figure 4.1, parts of the height.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time

import bpy  # noqa: F401 - brings mathutils
import numpy as np
from _bake_pairs import between
from chains import legal_pose, tail
from mathutils import Quaternion, Vector

from ccd_rig import (
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Joint,
    Pose,
    PositionGoal,
    Skeleton,
    SolverSettings,
    SolveStatus,
    SwingTwist,
    solve,
)
from ccd_rig.limits.shapes import Limit, clamp, violation
from ccd_rig.solvers.pose_search import PoseSearch

HEIGHT = 1.7
TOLERANCE = 1e-4
TURNED = 0.3  # radians
BATCH = 400  # poses of one call: fewer than are shared out to threads
X = (1.0, 0.0, 0.0)


def _radians(*angles: float) -> tuple[float, ...]:
    return tuple(math.radians(angle) for angle in angles)


def _chain(*bones: tuple[str, float, object]) -> Skeleton:
    """Bones end to end along +Y: name, part of the height, limit. X points to the side, so a turn about X
    is flexion."""
    joints: list[Joint] = []
    for name, part, limit in bones:
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
    vertebrae = []
    for region, bones, length, (forward, back, side, turn) in (
        ("back", 3, 0.288, (80.0, 25.0, 35.0, 45.0)),
        ("neck", 3, 0.052, (45.0, 45.0, 45.0, 60.0)),
    ):
        for i in range(bones):
            lower = _radians(-back / bones, -turn / bones, -side / bones)
            upper = _radians(forward / bones, turn / bones, side / bones)
            vertebrae.append((f"{region}{i}", length / bones, EulerBox("XYZ", lower, upper)))
    vertebrae.append(("head", 0.13, Hinge(X, 0.0, 0.0)))
    return _chain(*vertebrae)


LIMBS = {"arm": arm(), "leg": leg(), "spine and head": spine()}


CONE = SwingTwist(Cone(math.radians(30.0)))
HINGE = Hinge(X, 0.0, 2.6)
CHAINS: dict[str, tuple[Limit | None, ...]] = {
    "2 free balls": (None,) * 2,
    "ball in a cone and hinge": (SwingTwist(Cone(1.6), (-1.5, 1.5)), HINGE),
    "20 free balls": (None,) * 20,
    "12 cones of 30 degrees": (CONE,) * 12,
    "6 cones and hinges by turns": (CONE, HINGE) * 3,
}


def met(name: str, skeleton: Skeleton, count: int) -> None:
    """Print how often random legal targets are met from rest."""
    rng, settings = random.Random(1), SolverSettings(position_tolerance=TOLERANCE)
    last, solved, broken, times = skeleton.joints[-1].name, 0, 0.0, []
    for _ in range(count):
        goal = PositionGoal(last, tail(skeleton, legal_pose(skeleton, rng)))
        began = time.process_time()
        result = solve(skeleton, Pose.rest(skeleton), [goal], settings)
        times.append(time.process_time() - began)
        solved += result.status is SolveStatus.CONVERGED
        for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True):
            broken = max(broken, violation(joint.limit, rotation) if joint.limit is not None else 0.0)
    micros = [1e6 * each for each in times]
    print(
        f"{name:30s}{solved / count:9.2%}{statistics.median(micros):11.0f}{statistics.fmean(micros):11.0f}"
        f"{broken:11.1e}",
        flush=True,
    )


def turned(limit: Limit | None, rotation: Quaternion, rng: random.Random) -> Quaternion:
    """A rotation near another, inside the limit."""
    axis = Vector([rng.gauss(0.0, 1.0) for _ in range(3)])
    near = rotation @ Quaternion(axis, rng.uniform(0.0, TURNED))
    return near if limit is None else clamp(limit, near)


def nearest(name: str, limits: tuple[Limit | None, ...], runs: int) -> None:
    """Print what the kernel takes for a pose nearest to another."""
    rng = random.Random(1)
    skeleton = Skeleton(
        Joint(f"joint{i}", i - 1, (0.0, 1.0 if i else 0.0, 0.0), length=1.0, limit=limit)
        for i, limit in enumerate(limits)
    )
    bases = [legal_pose(skeleton, rng) for _ in range(BATCH)]
    wanted = [
        Pose(
            tuple(turned(limit, q, rng) for limit, q in zip(limits, base.rotations, strict=True)),
            base.translations,
        )
        for base in bases
    ]
    rotations, sources = (
        np.array([[q[:] for q in pose.rotations] for pose in poses]) for poses in (bases, wanted)
    )
    translations = np.zeros((BATCH, len(limits), 3))
    targets = [np.array([tail(skeleton, pose)[:] for pose in wanted])]
    goal = PositionGoal(skeleton.joints[-1].name, targets[0][0])
    search = PoseSearch(skeleton, [goal], SolverSettings(position_tolerance=TOLERANCE))
    times = []
    for _ in range(runs):
        began = time.process_time()
        solved = search.solve(rotations, translations, targets, (rotations, translations))
        times.append(1e6 * (time.process_time() - began) / BATCH)
    reached = float(np.mean(solved.statuses == 0))
    departures = [
        float(np.sqrt(np.mean(np.sum(between(rotations, each) ** 2, axis=-1))))
        for each in (solved.rotations, sources)
    ]
    print(
        f"{name:30s}{reached:9.2%}{statistics.median(times):11.1f}{departures[0]:11.3f}{departures[1]:11.3f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=9, help="of nearest poses")
    chosen = parser.parse_args()
    print(f"{'human limb':30s}{'met':>9s}{'median us':>11s}{'mean us':>11s}{'over, rad':>11s}")
    for limb, skeleton in LIMBS.items():
        met(limb, skeleton, chosen.targets)
    print(f"\n{'nearest pose':30s}{'met':>9s}{'kernel us':>11s}{'departure':>11s}{'target is':>11s}")
    for name, limits in CHAINS.items():
        nearest(name, limits, chosen.runs)


if __name__ == "__main__":
    main()
