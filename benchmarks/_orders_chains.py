"""Chains, paths and measures for `orders.py`. Lengths in model units, angles in radians unless a name says
degrees."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import bpy  # noqa: F401 - brings mathutils
from mathutils import Vector

from ccd_rig import (
    Cone,
    EulerBox,
    Hinge,
    Joint,
    Limit,
    Pose,
    PositionGoal,
    Skeleton,
    Slide,
    Solver,
    SolverSettings,
    SolveStatus,
    SwingTwist,
    forward_kinematics,
    sample,
    solve,
)
from ccd_rig.maths.rotations import angle_of
from ccd_rig.settings import PRESETS, STEP_RANGE

FRAMES = 250
SHARE = PRESETS["TAIL"].error_reduction  # where one share stands for all

AT_ONCE = f"share {SHARE}, all at once"

NAMES = {
    "TIP_TO_ROOT": "tip to root",
    "ROOT_TO_TIP": "root to tip",
    "ALTERNATING": "alternating",
    "BOUNCE_TIP": "bounce from the tip",
    "BOUNCE_ROOT": "bounce from the root",
    "SMART_BOUNCE": "smart bounce",
    "LARGEST_ERROR": "largest error first",
    "SHARED": f"all at once, share {SHARE}",
}


def chain(
    limits: Sequence[Limit | None], lengths: Sequence[float] | None = None, **fields: object
) -> Skeleton:
    """A straight chain along +Y, one joint per limit; further fields go to every joint."""
    lengths = lengths or [1.0] * len(limits)
    joints = []
    for i, (limit, length) in enumerate(zip(limits, lengths, strict=True)):
        offset = (0.0, lengths[i - 1] if i else 0.0, 0.0)
        joints.append(Joint(f"joint{i}", i - 1, offset, length=length, limit=limit, **fields))
    return Skeleton(joints)


def limb(**fields: object) -> Skeleton:
    """Shoulder with a cone of 80 degrees and a twist of 60, elbow on a hinge of 0 to 150, wrist of 40."""
    rad = math.radians
    shoulder = SwingTwist(Cone(rad(80.0)), (rad(-60.0), rad(60.0)))
    elbow = Hinge((1.0, 0.0, 0.0), 0.0, rad(150.0))
    return chain([shoulder, elbow, SwingTwist(Cone(rad(40.0)))], [1.2, 1.0, 0.3], **fields)


def free(count: int = 10, **fields: object) -> Skeleton:
    """Ball joints without limits."""
    return chain([None] * count, **fields)


def tail(count: int = 20, degrees: float = 30.0, **fields: object) -> Skeleton:
    """Ball joints that swing by up to `degrees`."""
    return chain([SwingTwist(Cone(math.radians(degrees)))] * count, **fields)


def limited(count: int, **fields: object) -> Skeleton:
    """Make a chain whose joints bend by 450 degrees together, enough for all paths."""
    return tail(count, min(120.0, 450.0 / count), **fields)


def spine(**fields: object) -> Skeleton:
    """Six joints: 25 degrees forward and 15 back, 12 of twist, 15 to each side."""
    rad = math.radians
    box = EulerBox("XYZ", (rad(-15.0), rad(-12.0), rad(-15.0)), (rad(25.0), rad(12.0), rad(15.0)))
    return chain([box] * 6, **fields)


CHAINS: dict[str, Callable[..., Skeleton]] = {
    "limb of 3": limb,
    "10 free joints": free,
    "tail of 20": tail,
    "spine of 6": spine,
}


def length_of(skeleton: Skeleton) -> float:
    return math.fsum(joint.length for joint in skeleton.joints)


def tip_of(skeleton: Skeleton, pose: Pose) -> Vector:
    """Return the tail of the last bone, model space."""
    last = skeleton.joints[-1]
    return forward_kinematics(skeleton, pose)[-1].point(Vector((0.0, last.length, 0.0)))


def legal_pose(skeleton: Skeleton, rng: random.Random) -> Pose:
    """Every joint somewhere inside its limit."""
    return Pose(
        tuple(sample(joint.limit, rng) for joint in skeleton.joints), Pose.rest(skeleton).translations
    )


def goal_at(skeleton: Skeleton, target: Vector) -> PositionGoal:
    return PositionGoal(skeleton.joints[-1].name, target)


def settings_for(skeleton: Skeleton, **chosen: object) -> SolverSettings:
    """Sweeps alone, without closing phase and restarts; the tolerance is a ten-thousandth of the chain's
    length."""
    alone = {"position_tolerance": 1e-4 * length_of(skeleton), "solver": Solver.CCD, "restarts": 0}
    return SolverSettings(**{**alone, **chosen})


def turns(before: Pose, after: Pose) -> list[float]:
    """By how much each joint turned, radians."""
    pairs = zip(before.rotations, after.rotations, strict=True)
    return [angle_of(a.conjugated() @ b) for a, b in pairs]


def evenness(angles: Sequence[float]) -> float:
    """Participation: 1 when all joints turn alike, 1/n when a single one of n does."""
    squares = math.fsum(angle * angle for angle in angles)
    return math.fsum(angles) ** 2 / (len(angles) * squares) if squares > 0.0 else 1.0


def joint_by_joint(skeleton: Skeleton) -> Skeleton:
    """The chain with a slide of no length: its shared steps are taken one joint after the other.

    So they are for several goals, slides and in other orders; else all joints move at once.
    """
    return skeleton.replace({skeleton.joints[-1].name: {"slides": (Slide((0.0, 1.0, 0.0), 0.0, 0.0),)}})


@dataclass(frozen=True)
class Reach:
    """Means over solves from the rest pose: what `cold` measured. Motion counts only solves that arrived."""

    reached: float
    iterations: float
    even: float


def cold(
    skeleton: Skeleton, settings: SolverSettings, targets: int, seed: int = 1, reference: Pose | None = None
) -> Reach:
    """Solves for random reachable targets, each from rest."""
    rng = random.Random(seed)
    start = Pose.rest(skeleton)
    reached, iterations, even = 0, [], []
    for _ in range(targets):
        goal = goal_at(skeleton, tip_of(skeleton, legal_pose(skeleton, rng)))
        result = solve(skeleton, start, [goal], settings, reference=reference)
        iterations.append(result.iterations)
        if result.status is SolveStatus.CONVERGED:
            reached += 1
            even.append(evenness(turns(start, result.pose)))
    return Reach(
        reached / targets, statistics.fmean(iterations), statistics.fmean(even) if even else math.nan
    )


Path = Callable[[float], Vector]


def _around(
    size: float, far: float, tilt: float, wide: float, high: float
) -> Callable[[float, float], Vector]:
    """Points about one at `far` of `size`, `tilt` from the rest pose: sideways by `wide`, up by `high`."""
    middle = Vector((math.sin(tilt), math.cos(tilt), 0.0)) * (far * size)
    up = Vector((-math.cos(tilt), math.sin(tilt), 0.0))
    return (
        lambda across, along: middle
        + Vector((0.0, 0.0, 1.0)) * (wide * size * across)
        + up * (high * size * along)
    )


def circle(size: float, stiff: bool = False) -> Path:
    """Radius a quarter of `size` about a point at 0.6 of it; of a stiff chain 0.2 at 0.9."""
    point = _around(size, *((0.9, 0.5, 0.2, 0.2) if stiff else (0.6, 0.65, 0.25, 0.25)))
    return lambda t: point(math.cos(t), math.sin(t))


def eight(size: float, stiff: bool = False) -> Path:
    """A lying eight, 0.6 of `size` wide and 0.3 high."""
    point = _around(size, *((0.9, 0.4, 0.25, 0.1) if stiff else (0.65, 0.2, 0.3, 0.15)))
    return lambda t: point(math.cos(t), math.sin(2.0 * t))


def in_and_out(size: float, stiff: bool = False) -> Path:
    """To and fro on a slanting line from 0.4 to 0.95 of `size`; of a stiff chain from 0.85."""
    slant = Vector((0.5, 0.8, 0.2)).normalized()
    near = 0.85 if stiff else 0.4
    return lambda t: slant * (size * (0.5 * (near + 0.95) - 0.5 * (0.95 - near) * math.cos(t)))


PATHS: dict[str, Callable[..., Path]] = {"circle": circle, "eight": eight, "in and out": in_and_out}
LAPS = {"slow": 1, "fast": 5}


@dataclass(frozen=True)
class Following:
    """Motion of a chain that follows a target; turns are of a joint between frames, degrees."""

    largest: float
    mean: float
    iterations: float
    missed: int  # frames that did not converge
    bend: float  # sum of the joints' rotations from rest, mean over frames, degrees
    poses: tuple[Pose, ...]


def all_paths(
    skeleton: Skeleton,
    settings: SolverSettings,
    stiff: bool = False,
    laps: Sequence[str] = tuple(LAPS),
    reference: Pose | None = None,
) -> list[Following]:
    """Three paths, each slow (one lap in 250 frames) and fast (five), or one of both."""
    return [
        follow(skeleton, along(path(length_of(skeleton), stiff), LAPS[pace]), settings, reference)
        for path in PATHS.values()
        for pace in laps
    ]


def follow(
    skeleton: Skeleton, targets: Sequence[Vector], settings: SolverSettings, reference: Pose | None = None
) -> Following:
    """Solves frame by frame, each from the one before; the first from rest."""
    pose = rest = Pose.rest(skeleton)
    results = []
    for target in targets:
        results.append(solve(skeleton, pose, [goal_at(skeleton, target)], settings, reference=reference))
        pose = results[-1].pose
    poses = [result.pose for result in results]
    moves = [turns(a, b) for a, b in pairwise(poses)]
    bends = [turns(rest, each) for each in poses]
    return Following(
        math.degrees(max(max(move) for move in moves)),
        math.degrees(statistics.fmean(statistics.fmean(move) for move in moves)),
        statistics.fmean(result.iterations for result in results[1:]),
        sum(result.status is not SolveStatus.CONVERGED for result in results),
        math.degrees(statistics.fmean(sum(bend) for bend in bends)),
        tuple(poses),
    )


def along(path: Path, laps: int, frames: int = FRAMES) -> list[Vector]:
    """Return a target per frame."""
    return [path(2.0 * math.pi * laps * frame / frames) for frame in range(frames)]


def with_fraction(
    skeleton: Skeleton, settings: SolverSettings, fraction: float
) -> tuple[Skeleton, SolverSettings]:
    """What takes `fraction` of each step, also below the least that the settings allow: stiffness does the
    rest."""
    least = max(STEP_RANGE[0], fraction)
    joints = [replace(joint, stiffness=1.0 - fraction / least) for joint in skeleton.joints]
    return Skeleton(joints), replace(settings, step_fraction=least)


def rule(count: int, left: float = 0.03) -> float:
    """The part of a step with which one sweep over `count` joints leaves `left` of the error."""
    return 1.0 - left ** (1.0 / count)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a table in Markdown."""
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)
    print()
