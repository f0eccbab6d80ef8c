"""Single solves: how often goals are met, after how many iterations, and how long it takes.

    python3 dev.py bench solve                               all; 200,000 mixed solves: about 15 minutes
    python3 dev.py bench solve -- --case limbs nearest --targets 200
    python3 dev.py bench solve -- --case mixed --mixed 1000000   about 50 minutes

Default settings, seeded; targets are reachable inside the limits unless a line says otherwise.

chains   10 ball joints of length 1, started straight; the target is where the end of a random pose inside
         the limits is; to 1e-3
limbs    human limbs of a person of 1.7 m, metres, started from rest (arms spread, legs and spine straight;
         what must be bent is brought to its limit by the solver); targets as above; to 1e-4. Ranges: American
         Academy of Orthopaedic Surgeons, "Joint Motion" (1965), as in examples/human_limits.py. Lengths:
         Winter, "Biomechanics and Motor Control of Human Movement", figure 4.1, parts of the height
fabrik   the protocol of the FABRIK paper's first table: 10 free joints of 90 mm, started straight, the target
         600 mm away; whether from the root or from the effector is not said, so both are run. Unreachable
         targets are 1200 mm from the root, and right where the solve ends as optimal, as near as the chain
         can come. To 1e-3 mm, some twenty roundings of single precision. Cited: Aristidou & Lasenby 2011,
         table 1 (mean of 20 runs), through a third party's notes; the paper itself was not at hand
tree     a tree of 100 joints: a trunk of 16 and 14 branches of 6 all around it (Kenwright 2012, figure 19),
         bones of length 1, to 1e-3. Cold: from rest to the ends of a random pose, trunk joints turned by up
         to 30 degrees, branch joints by up to `bend`. Around: the ends go around the trunk together, 1 degree
         a frame, each frame from the pose before; the first is not counted
nearest  the pose nearest to another inside limits, 400 poses, bones of length 1: each start is the reference
         too, the target is the end after each joint was turned by up to 0.3 rad, inside its limit; to 1e-4.
         Microseconds are those of one call of `PoseSearch.solve` for all poses, divided; departures from the
         reference, degrees, beside those of the poses from which the targets were taken
mixed    the random solves of every kind that the tests make too (tests/core/mixtures.py, where the promises
         stand); numbers below 20,000 are those of the tests. Each fault is printed with the number of its
         solve; every tenth solve is made twice
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence

import bpy  # noqa: F401 - brings mathutils
import numpy as np
from _bake_pairs import between
from chains import legal_pose, straight, tail
from mathutils import Quaternion, Vector
from mixtures import faults, mixture

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
    forward_kinematics,
    measure,
    solve,
)
from ccd_rig.limits.shapes import Limit, clamp, violation
from ccd_rig.solvers.pose_search import PoseSearch

X, Y, Z = Vector((1, 0, 0)), Vector((0, 1, 0)), Vector((0, 0, 1))
HEADS = ("met", "it., mean", "median", "99 %", "most", "us, median", "mean", "worst off", "over, rad")


class Trials:
    """A line of the table: solves that were made.

    Attributes:
        beyond: how far targets are out of reach.
    """

    def __init__(self, tolerance: float, beyond: float = 0.0) -> None:
        self.settings, self.beyond = SolverSettings(position_tolerance=tolerance), beyond
        self.counts: list[int] = []
        self.times: list[float] = []
        self.met, self.off, self.broken = 0, 0.0, 0.0

    def solve(self, skeleton: Skeleton, start: Pose, goals: Sequence[PositionGoal]) -> Pose:
        """Solve once; a status that forward kinematics contradicts ends the benchmark."""
        began = time.process_time()
        result = solve(skeleton, start, goals, self.settings)
        self.times.append(1e6 * (time.process_time() - began))
        self.counts.append(result.iterations)
        transforms = forward_kinematics(skeleton, result.pose)
        off = max(measure(goal, skeleton, transforms).distance for goal in goals) - self.beyond
        expected = SolveStatus.OPTIMAL if self.beyond else SolveStatus.CONVERGED
        is_near = off <= self.settings.position_tolerance + 1e-7 * self.beyond
        if expected is SolveStatus.CONVERGED and is_near != (result.status is expected):
            raise SystemExit(f"status {result.status.name}, but the worst goal is {off:g} off")
        self.met += is_near and result.status is expected
        self.off = max(self.off, off)
        for joint, rotation in zip(skeleton.joints, result.pose.rotations, strict=True):
            self.broken = max(
                self.broken, violation(joint.limit, rotation) if joint.limit is not None else 0.0
            )
        return result.pose

    def print(self, name: str, cited: str = "") -> None:
        most = statistics.quantiles(self.counts, n=100)[98] if len(self.counts) > 1 else self.counts[0]
        print(
            f"{name:36s}{self.met / len(self.counts):10.2%}{statistics.fmean(self.counts):10.2f}"
            f"{statistics.median(self.counts):10g}{most:10.0f}{max(self.counts):10d}"
            f"{statistics.median(self.times):10.0f}{statistics.fmean(self.times):10.0f}{self.off:10.1e}"
            f"{self.broken:10.1e}{f'   {cited}' if cited else ''}",
            flush=True,
        )


def radians(*angles: float) -> tuple[float, ...]:
    return tuple(math.radians(angle) for angle in angles)


def vector(rng: random.Random) -> Vector:
    return Vector([rng.gauss(0.0, 1.0) for _ in range(3)]).normalized()


def bones(*links: tuple[str, float, Limit | None]) -> Skeleton:
    """Bones end to end along +Y: name, length, limit. X points to the side, so a turn about X is flexion."""
    joints: list[Joint] = []
    for name, length, limit in links:
        offset = (0.0, joints[-1].length, 0.0) if joints else (0.0, 0.0, 0.0)
        joints.append(Joint(name, len(joints) - 1, offset, Quaternion(), length, limit))
    return Skeleton(joints)


# Chains and limbs -------------------------------------------------------------------------------------------

CONE = SwingTwist(Cone(math.radians(30.0)))
LIMITS: dict[str, Limit | None] = {
    "free": None,
    "cones of 60 degrees": SwingTwist(Cone(math.radians(60.0))),
    "cones of 30 degrees": CONE,
    "cones of 30, twist of 20": SwingTwist(Cone(math.radians(30.0)), radians(-20.0, 20.0)),
    "hinges of 90 degrees": Hinge(Z, *radians(-90.0, 90.0)),
}
HEIGHT = 1.7


def ellipse(bounds: Sequence[float], twist: Sequence[float]) -> SwingTwist:
    return SwingTwist(Ellipse(*radians(*bounds)), radians(*twist))


def limbs() -> dict[str, Skeleton]:
    """Human limbs at rest.

    45 of an arm's 180 degrees of abduction are the clavicle's; at rest 90 are used up. A knee never
    straightens. A foot points along the shin, 90 degrees of its dorsiflexion away from flat. Back and neck
    have three bones each, with a third of the range.
    """
    spine: list[tuple[str, float, Limit | None]] = []
    for region, length, (forward, back, side, turn) in (
        ("back", 0.288, (80.0, 25.0, 35.0, 45.0)),
        ("neck", 0.052, (45.0, 45.0, 45.0, 60.0)),
    ):
        lower, upper = radians(-back / 3, -turn / 3, -side / 3), radians(forward / 3, turn / 3, side / 3)
        spine += [(f"{region}{i}", length / 3 * HEIGHT, EulerBox("XYZ", lower, upper)) for i in range(3)]
    return {
        "arm": bones(
            ("clavicle", 0.129 * HEIGHT, ellipse((-10.0, 45.0, -30.0, 30.0), (0.0, 0.0))),
            ("upper_arm", 0.186 * HEIGHT, ellipse((-110.0, 45.0, -45.0, 135.0), (-90.0, 70.0))),
            ("forearm", 0.146 * HEIGHT, Hinge(Z, *radians(5.0, 150.0))),
            ("hand", 0.108 * HEIGHT, ellipse((-80.0, 70.0, -30.0, 20.0), (-80.0, 80.0))),
        ),
        "leg": bones(
            ("thigh", 0.245 * HEIGHT, ellipse((-30.0, 120.0, -30.0, 45.0), (-45.0, 45.0))),
            ("shin", 0.246 * HEIGHT, Hinge(X, *radians(-135.0, -3.0))),
            (
                "foot",
                0.152 * HEIGHT,
                EulerBox("XYZ", radians(40.0, -15.0, -10.0), radians(110.0, 35.0, 10.0)),
            ),
        ),
        "spine and head": bones(*spine, ("head", 0.13 * HEIGHT, Hinge(X, 0.0, 0.0))),
    }


def reachable(name: str, skeleton: Skeleton, tolerance: float, count: int) -> None:
    """Solves from rest for where the end of random poses is."""
    rng, trials, last = random.Random(1), Trials(tolerance), skeleton.joints[-1].name
    for _ in range(count):
        goal = PositionGoal(last, tail(skeleton, legal_pose(skeleton, rng)))
        trials.solve(skeleton, Pose.rest(skeleton), [goal])
    trials.print(name)


def chains(chosen: argparse.Namespace) -> None:
    for name, limit in LIMITS.items():
        reachable(f"10 joints: {name}", straight(10, limit), 1e-3, chosen.targets)


def human(chosen: argparse.Namespace) -> None:
    for name, skeleton in limbs().items():
        reachable(name, skeleton, 1e-4, chosen.targets)


# FABRIK's protocol ------------------------------------------------------------------------------------------


def fabrik(chosen: argparse.Namespace) -> None:
    skeleton = bones(*((f"joint{i}", 90.0, None) for i in range(10)))
    start = Pose.rest(skeleton)
    end = tail(skeleton, start)

    def from_effector(rng: random.Random) -> Vector:
        while True:
            if (target := end + 600.0 * vector(rng)).length <= 0.999 * end.length:
                return target

    for name, draw, beyond, cited in (
        (
            "600 mm from the root",
            lambda rng: 600.0 * vector(rng),
            0.0,
            "FABRIK 15.5, CCD 26.3, Jacobian DLS 999",
        ),
        ("600 mm from the effector", from_effector, 0.0, ""),
        (
            "unreachable, 1200 mm from the root",
            lambda rng: 1200.0 * vector(rng),
            300.0,
            "FABRIK 67.6, CCD 390",
        ),
    ):
        rng, trials = random.Random(1), Trials(1e-3, beyond)
        for _ in range(chosen.targets):
            trials.solve(skeleton, start, [PositionGoal("joint9", draw(rng))])
        trials.print(name, cited)


# Several effectors on one tree ------------------------------------------------------------------------------

TRUNK, BRANCHES, LENGTH = 16, 14, 6
GOLDEN = math.pi * (3.0 - math.sqrt(5.0))
"""Angle between branches that follow each other on the trunk, radians."""


def tree_of_joints() -> Skeleton:
    """A trunk along +Z; branches all around its upper three quarters point away from it, 30 degrees up."""
    none, upward = Quaternion(), Quaternion(X, math.pi / 2.0)
    joints = [
        Joint(f"trunk{i}", i - 1, (0.0, float(i > 0), 0.0), none if i else upward) for i in range(TRUNK)
    ]
    for branch in range(BRANCHES):
        place = TRUNK // 4 + round(branch * (TRUNK - 1 - TRUNK // 4) / (BRANCHES - 1))
        aside = Quaternion(Y, branch * GOLDEN) @ Quaternion(X, math.radians(60.0))
        for i in range(LENGTH):
            parent = len(joints) - 1 if i else place
            joints.append(Joint(f"branch{branch}.{i}", parent, Y, none if i else aside))
    return Skeleton(joints)


def bent(skeleton: Skeleton, rng: random.Random, bend: float) -> Pose:
    """A random pose: trunk joints turned by up to 30, branch joints by up to `bend` degrees."""
    most = [30.0 if joint.name.startswith("trunk") else bend for joint in skeleton.joints]
    rotations = tuple(Quaternion(vector(rng), math.radians(rng.uniform(-angle, angle))) for angle in most)
    return Pose(rotations, Pose.rest(skeleton).translations)


def tree(chosen: argparse.Namespace) -> None:
    skeleton = tree_of_joints()
    ends = [f"branch{branch}.{LENGTH - 1}" for branch in range(BRANCHES)]
    for bend in (40.0, 90.0, 180.0):
        rng, trials = random.Random(1), Trials(1e-3)
        for _ in range(chosen.trees):
            pose = bent(skeleton, rng, bend)
            goals = [PositionGoal(name, tail(skeleton, pose, name)) for name in ends]
            trials.solve(skeleton, Pose.rest(skeleton), goals)
        trials.print(f"tree, cold, bend {bend:g}", "Kenwright: peak 100")
    trials = Trials(1e-3)
    for seed in range(chosen.runs):
        begin, pose = bent(skeleton, random.Random(seed), 60.0), Pose.rest(skeleton)
        for frame in range(chosen.frames):
            turn = Quaternion(Z, math.radians(frame))
            goals = [PositionGoal(name, turn @ tail(skeleton, begin, name)) for name in ends]
            pose = (trials if frame else Trials(1e-3)).solve(skeleton, pose, goals)
    trials.print("tree, around", "Kenwright: 10 on average")


# Nearest poses ----------------------------------------------------------------------------------------------

TURNED = 0.3  # radians
BATCH = 400  # poses of one call
HINGE = Hinge(X, 0.0, 2.6)
NEAREST: dict[str, tuple[Limit | None, ...]] = {
    "2 free balls": (None,) * 2,
    "ball in a cone and hinge": (SwingTwist(Cone(1.6), (-1.5, 1.5)), HINGE),
    "20 free balls": (None,) * 20,
    "12 cones of 30 degrees": (CONE,) * 12,
    "6 cones and hinges by turns": (CONE, HINGE) * 3,
}


def turned(limit: Limit | None, rotation: Quaternion, rng: random.Random) -> Quaternion:
    """A rotation near another, inside the limit."""
    near = rotation @ Quaternion(vector(rng), rng.uniform(0.0, TURNED))
    return near if limit is None else clamp(limit, near)


def nearest(chosen: argparse.Namespace) -> None:
    print(f"\n{'nearest pose':36s}{'met':>10s}{'us':>10s}{'departure':>11s}{'target is':>11s}")
    for name, limits in NEAREST.items():
        rng, times = random.Random(1), list[float]()
        skeleton = bones(*((f"joint{i}", 1.0, limit) for i, limit in enumerate(limits)))
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
        reference = rotations, np.zeros((BATCH, len(limits), 3))
        targets = [np.array([tail(skeleton, pose)[:] for pose in wanted])]
        goal = PositionGoal(skeleton.joints[-1].name, targets[0][0])
        search = PoseSearch(skeleton, [goal], SolverSettings(position_tolerance=1e-4))
        for _ in range(3 * chosen.runs):
            began = time.process_time()
            solved = search.solve(*reference, targets, reference)
            times.append(1e6 * (time.process_time() - began) / BATCH)
        departures = [
            float(np.sqrt(np.mean(np.sum(between(rotations, each) ** 2, axis=-1))))
            for each in (solved.rotations, sources)
        ]
        print(
            f"{name:36s}{np.mean(solved.statuses == 0):10.2%}{statistics.median(times):10.1f}"
            f"{departures[0]:11.3f}{departures[1]:11.3f}",
            flush=True,
        )


# Mixed solves -----------------------------------------------------------------------------------------------


def mixed(chosen: argparse.Namespace) -> None:
    """Faults of random solves of every kind, each with its number."""
    began, wrong = time.perf_counter(), 0
    for done, seed in enumerate(range(chosen.first, chosen.first + chosen.mixed), 1):
        case = mixture(seed)
        result = case.solve()
        broken = faults(case, result)
        if seed % 10 == 0 and case.solve() != result:
            broken.append("differs when it is made again")
        for fault in broken:
            print(f"solve {seed}: {fault}", flush=True)
        wrong += len(broken)
        if done % 10_000 == 0:
            print(f"mixed: {done} of {chosen.mixed}, {wrong} faults", flush=True)
    seconds = time.perf_counter() - began
    print(f"\nmixed: {chosen.mixed} solves from number {chosen.first}, {wrong} faults, {seconds:.0f} s")


CASES: dict[str, Callable[[argparse.Namespace], None]] = {
    "chains": chains,
    "limbs": human,
    "fabrik": fabrik,
    "tree": tree,
    "nearest": nearest,
    "mixed": mixed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--targets", type=int, default=10_000, help="of each chain and limb")
    parser.add_argument("--trees", type=int, default=50, help="poses of the tree, of each bend")
    parser.add_argument("--frames", type=int, default=240, help="of the tree's targets that go around")
    parser.add_argument(
        "--runs", type=int, default=3, help="of the frames; three times as many of nearest poses"
    )
    parser.add_argument("--mixed", type=int, default=200_000, help="mixed solves")
    parser.add_argument("--first", type=int, default=1_000_000, help="number of the first mixed solve")
    chosen = parser.parse_args()
    print(f"{'':36s}" + "".join(f"{head:>10s}" for head in HEADS), flush=True)
    for case in chosen.case:
        CASES[case](chosen)


if __name__ == "__main__":
    main()
