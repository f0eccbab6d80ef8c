"""Many poses of one skeleton at once: robots, a whole human, chains beside three.js, a crowd.

    python3 dev.py bench many
    .venv/4.2/bin/python benchmarks/many.py --poses 1000 --parts robots crowd

Protocol: processor time of one thread, failures included; results are held against the limits and, in single
precision, against forward kinematics.

    robots    as in robots.py: random configurations inside the limits, each solved from the middle of the
              ranges, position and orientation to 1e-5, up to 30 restarts; one batch
    human     36 hinges (a yaw, spine, neck, arms, legs) whose head, hands and feet take the poses of random
              configurations inside the limits, from the middle of the ranges; as above, to 1e-4
    threejs   20 free ball joints as in threejs.py, 1,000 targets as one batch beside three.js
    crowd     figures of 11 links and 30 degrees of freedom (10 ball joints inside cones) whose feet and hands
              follow targets of their own; frames start from the ones before; beside `solve` one by one
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import bpy  # noqa: E402, F401 - brings mathutils
import numpy as np  # noqa: E402
from mathutils import Quaternion, Vector  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "core"), str(ROOT / "benchmarks")]

from _urdf import read  # noqa: E402
from chains import legal_pose, straight, tail  # noqa: E402
from robots import ARMS, anywhere, middle, robot  # noqa: E402
from threejs import CAP, JOINTS, TOLERANCE, theirs, three_js  # noqa: E402

from ccd_rig import (  # noqa: E402
    Cone,
    Goal,
    Hinge,
    Joint,
    ManyResult,
    OrientationGoal,
    Pose,
    PositionGoal,
    Skeleton,
    SolverSettings,
    SolveStatus,
    SwingTwist,
    forward_kinematics,
    measure,
    solve,
    solve_many,
)
from ccd_rig.goals import reach_of  # noqa: E402
from ccd_rig.limits.shapes import violation  # noqa: E402

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def tiled(pose: Pose, count: int) -> tuple[np.ndarray, np.ndarray]:
    """One pose as the arrays of many."""
    rotations = np.array([q[:] for q in pose.rotations])
    translations = np.array([t[:] for t in pose.translations])
    return np.repeat(rotations[None], count, axis=0), np.repeat(translations[None], count, axis=0)


def pose_goals(
    skeleton: Skeleton, tips: Sequence[tuple[str, Vector]], poses: Sequence[Pose]
) -> tuple[list[Goal], list]:
    """Position and orientation goals of each tip, and their targets in poses."""
    frames = [forward_kinematics(skeleton, pose) for pose in poses]
    goals: list[Goal] = []
    targets = []
    for name, point in tips:
        i = skeleton.index(name)
        goals += [PositionGoal(name, (0, 0, 0), point), OrientationGoal(name, Quaternion())]
        targets.append(np.array([each[i].point(point)[:] for each in frames]))
        targets.append(np.array([each[i].rotation[:] for each in frames]))
    return goals, targets


def checked(
    skeleton: Skeleton, goals: Sequence[Goal], targets: list, found: ManyResult, settings: SolverSettings
) -> tuple[int, float]:
    """How many poses meet their goals in single precision, and the worst breach of a limit, radians."""
    met, broken = 0, 0.0
    for k in range(len(found)):
        pose = found.pose(k)
        transforms = forward_kinematics(skeleton, pose)
        good = True
        for goal, each in zip(goals, targets, strict=True):
            own = type(goal)(goal.joint, each[k], *((goal.offset,) if isinstance(goal, PositionGoal) else ()))
            error = measure(own, skeleton, transforms)
            good &= error.distance <= settings.position_tolerance and error.angle <= settings.angle_tolerance
        met += good
        for joint, rotation in zip(skeleton.joints, pose.rotations, strict=True):
            broken = max(broken, violation(joint.limit, rotation) if joint.limit is not None else 0.0)
    return met, broken


def table(
    name: str, skeleton: Skeleton, tips: Sequence[tuple[str, Vector]], count: int, tolerance: float
) -> None:
    """Solve for random configurations and print a line."""
    rng = random.Random(1)
    goals, targets = pose_goals(skeleton, tips, [anywhere(skeleton, rng) for _ in range(count)])
    reach = max(reach_of(skeleton, goal) for goal in goals)
    settings = SolverSettings(
        position_tolerance=tolerance * reach, angle_tolerance=tolerance, restarts=30, max_iterations=100
    )
    start = tiled(middle(skeleton), count)
    began = time.process_time()
    found = solve_many(skeleton, start, goals, settings, targets=targets)
    took = time.process_time() - began
    met, broken = checked(skeleton, goals, targets, found, settings)
    ends = ", ".join(f"{status.name.lower()} {n}" for status, n in Counter(found.statuses).items())
    print(
        f"{name:<12}{count:>7} poses{1e3 * took / count:>9.3f} ms each{100.0 * met / count:>9.2f} % met"
        f"{found.iterations.mean():>8.1f} steps{broken:>10.1e} rad broken   {ends}",
        flush=True,
    )


def human() -> Skeleton:
    """36 hinges; lengths in metres, Y along the bones, the root up."""
    joints: list[Joint] = []

    def stack(
        name: str, parent: int, offset: Sequence[float], rest: Quaternion, length: float, *hinges: tuple
    ) -> int:
        for k, (axis, low, high) in enumerate(hinges):
            limit = Hinge(axis, math.radians(low), math.radians(high))
            size = length if k == len(hinges) - 1 else 0.0
            place = offset if k == 0 else (0, 0, 0)
            joints.append(Joint(f"{name}.{k}", parent, place, rest if k == 0 else Quaternion(), size, limit))
            parent = len(joints) - 1
        return parent

    up = Quaternion(X, math.pi / 2.0)
    root = stack("pelvis", -1, (0, 0, 1.0), up, 0.1, (Y, -60, 60))
    spine = stack("lumbar", root, (0, 0.1, 0), Quaternion(), 0.2, (X, -15, 40), (Z, -18, 18), (Y, -22, 22))
    chest = stack("chest", spine, (0, 0.2, 0), Quaternion(), 0.25, (X, -10, 40), (Z, -17, 17), (Y, -22, 22))
    stack("head", chest, (0, 0.25, 0), Quaternion(), 0.2, (X, -45, 45), (Z, -45, 45), (Y, -60, 60))
    for side, sign in (("L", 1.0), ("R", -1.0)):
        out = Quaternion(Z, -sign * math.pi / 2.0)
        at = stack(
            f"upper_arm.{side}",
            chest,
            (sign * 0.18, 0.2, 0),
            out,
            0.3,
            (Z, -85, 85),
            (X, -80, 60),
            (Y, -80, 80),
        )
        at = stack(f"forearm.{side}", at, (0, 0.3, 0), Quaternion(), 0.26, (Z, 5, 150), (Y, -80, 80))
        stack(f"hand.{side}", at, (0, 0.26, 0), Quaternion(), 0.1, (X, -80, 70), (Z, -30, 20))
        down = Quaternion(X, math.pi)
        at = stack(
            f"thigh.{side}", root, (sign * 0.1, 0, 0), down, 0.42, (X, -30, 120), (Z, -30, 45), (Y, -45, 45)
        )
        at = stack(f"shin.{side}", at, (0, 0.42, 0), Quaternion(), 0.42, (X, -135, -3))
        stack(f"foot.{side}", at, (0, 0.42, 0), Quaternion(X, -1.2), 0.2, (X, -50, 20), (Z, -15, 35))
    return Skeleton(joints)


def figure() -> Skeleton:
    """A pelvis that stays and ten ball joints inside cones."""
    wide, free = SwingTwist(Cone(1.5), (-0.8, 0.8)), SwingTwist(Cone(0.6), (-0.4, 0.4))
    up, down = Quaternion(X, math.pi / 2.0), Quaternion(X, math.pi)
    joints = [
        Joint("pelvis", -1, (0, 0, 1.0), up, 0.15, stiffness=1.0),
        Joint("chest", 0, (0, 0.15, 0), Quaternion(), 0.4, free),
        Joint("head", 1, (0, 0.4, 0), Quaternion(), 0.25, free),
    ]
    for side, sign in (("L", 1.0), ("R", -1.0)):
        out = Quaternion(Z, -sign * math.pi / 2.0)
        joints.append(Joint(f"upper_arm.{side}", 1, (sign * 0.18, 0.35, 0), out, 0.3, wide))
        joints.append(
            Joint(f"forearm.{side}", len(joints) - 1, (0, 0.3, 0), Quaternion(Z, sign * 0.4), 0.3, wide)
        )
        joints.append(Joint(f"thigh.{side}", 0, (sign * 0.1, 0, 0), down, 0.45, wide))
        joints.append(Joint(f"shin.{side}", len(joints) - 1, (0, 0.45, 0), Quaternion(X, -0.3), 0.45, wide))
    return Skeleton(joints)


TIPS = ("forearm.L", "forearm.R", "shin.L", "shin.R")


def crowd_targets(skeleton: Skeleton, count: int, frame: int) -> list[np.ndarray]:
    """(B, 3) per tip: circles of 6 cm about the tips at rest, 4 degrees a frame, each with its own phase."""
    rest = Pose.rest(skeleton)
    phases = np.arange(count)[:, None] * 2.4 + np.arange(4) * 1.3 + math.radians(4.0) * frame
    found = []
    for k, name in enumerate(TIPS):
        middle_point = 0.92 * (np.array(tail(skeleton, rest, name)) - (0, 0, 1.0)) + (0, 0, 1.0)
        angle = phases[:, k]
        found.append(
            middle_point + 0.06 * np.stack((np.sin(angle), np.cos(angle), np.sin(2.0 * angle)), axis=1)
        )
    return found


def crowd(counts: Sequence[int], frames: int) -> None:
    skeleton = figure()
    goals = [PositionGoal(name, (0, 0, 0)) for name in TIPS]
    settings = SolverSettings(position_tolerance=1e-3, restarts=0)
    for count in counts:
        poses = tiled(Pose.rest(skeleton), count)
        times, met, steps = [], 0, 0.0
        for frame in range(frames + 1):
            targets = crowd_targets(skeleton, count, frame)
            began = time.process_time()
            found = solve_many(skeleton, poses, goals, settings, targets=targets)
            if frame:  # the first is a cold start
                times.append(time.process_time() - began)
                met += sum(status is SolveStatus.CONVERGED for status in found.statuses)
                steps += found.iterations.mean() / frames
            poses = (found.rotations, found.translations)
        few = min(count, 10)
        lone = [Pose.rest(skeleton)] * few
        alone: list[float] = []
        for frame in range(min(frames, 5) + 1):
            targets = crowd_targets(skeleton, count, frame)
            began = time.process_time()
            for k in range(few):
                own = [PositionGoal(name, each[k]) for name, each in zip(TIPS, targets, strict=True)]
                lone[k] = solve(skeleton, lone[k], own, settings).pose
            if frame:
                alone.append((time.process_time() - began) / few)
        each, one = float(np.median(times)) / count, float(np.median(alone))
        print(
            f"crowd of {count:>5}{1e3 * each * count:>9.2f} ms a frame{1e6 * each:>9.1f} us a figure, "
            f"one by one {1e6 * one:>7.0f} us: {one / each:>6.1f} times as fast; "
            f"met {100.0 * met / (frames * count):.2f} %, "
            f"{steps:.1f} steps",
            flush=True,
        )


def beside_three_js(count: int) -> None:
    rng = random.Random(1)
    skeleton = straight(JOINTS)
    targets = [list(tail(skeleton, legal_pose(skeleton, rng))) for _ in range(count)]
    settings = SolverSettings(position_tolerance=TOLERANCE, max_iterations=CAP)
    goals = [PositionGoal(f"joint{JOINTS - 1}", (0, 0, 0))]
    start = tiled(Pose.rest(skeleton), count)
    began = time.process_time()
    found = solve_many(skeleton, start, goals, settings, targets=[targets])
    took = 1e6 * (time.process_time() - began) / count
    met, _ = checked(skeleton, goals, [np.array(targets)], found, settings)
    print(
        f"{JOINTS} free joints, {count} targets: {took:.0f} us each, {100.0 * met / count:.2f} % met",
        flush=True,
    )
    ready = three_js()
    if isinstance(ready, str):
        print(ready)
        return
    case = {
        "joints": JOINTS, "kind": "free", "lower": [0.0] * 3, "upper": [0.0] * 3,
        "tolerance": TOLERANCE, "cap": CAP, "targets": targets,
    }  # fmt: skip
    (peers,) = theirs(*ready, [case])
    micros = sum(each["micros"] for each in peers) / count
    solved = sum(each["distance"] <= TOLERANCE for each in peers) / count
    print(
        f"    three.js: {micros:.0f} us each, {100.0 * solved:.2f} % met; "
        f"ours in parts of it: {took / micros:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--poses", type=int, default=10_000, help="of robots; a tenth of the human")
    parser.add_argument("--urdf", type=Path, help="a folder with panda.urdf and kuka_iiwa.urdf; else wheels")
    parser.add_argument("--figures", type=int, nargs="*", default=[1, 10, 100, 1000])
    parser.add_argument("--frames", type=int, default=20)
    parts = ("robots", "human", "threejs", "crowd")
    parser.add_argument("--parts", nargs="*", choices=parts, default=list(parts))
    chosen = parser.parse_args()
    if "robots" in chosen.parts:
        for name, file in (("panda", "panda.urdf"), ("iiwa", "kuka_iiwa.urdf")):
            arm = ARMS[name]
            chain = read(chosen.urdf / file, arm.base, arm.tip) if chosen.urdf else robot(arm)
            last = chain.skeleton.joints[-1].name
            table(name, chain.skeleton, [(last, chain.point)], chosen.poses, 1e-5)
    if "human" in chosen.parts:
        skeleton = human()
        tips = ("head.2", "hand.L.1", "hand.R.1", "foot.L.1", "foot.R.1")
        table("human", skeleton, [(tip, Vector((0.0, 0.1, 0.0))) for tip in tips], chosen.poses // 10, 1e-4)
    if "threejs" in chosen.parts:
        beside_three_js(max(1, chosen.poses // 10))
    if "crowd" in chosen.parts:
        crowd(chosen.figures, chosen.frames)


if __name__ == "__main__":
    main()
