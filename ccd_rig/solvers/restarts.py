"""Start poses after a stall: the nearest of a pose library, then seeded random poses inside the limits.

On robot arms (`benchmarks/robots.py`) poses drawn uniformly from the limits need the fewest iterations.
Simulated annealing perturbs the stuck pose (Zalo; Kenwright 2012, section 7, for single joints). It mostly
falls back into the same local minimum. It takes 20 to 360 % more iterations, alone or by turns with uniform
poses. For joints without limits the start tells the natural poses, so the start is perturbed, with growing
spread.

Hinges and slides follow an additive recurrence, which fills their ranges evenly for any number of starts
(Roberts 2018, "The unreasonable effectiveness of quasirandom sequences"). It takes 5 to 20 % fewer iterations
than random numbers, and several times fewer targets need more than 16 starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from mathutils import Quaternion, Vector

from ..goals import Goal
from ..kernel import LEVER
from ..limits.shapes import Limit, as_hinge, clamp, sample
from ..maths.rotations import exp
from ..skeleton.joints import Skeleton, shift_of, slides_of
from ..skeleton.kinematics import placed_joints
from ..skeleton.pose import Pose, check_pose
from ..skeleton.pose_library import PoseEntry, apply_entry
from .problem_tables import measure_goals, reach_of_goals

LIBRARY = 3
"""Most entries of the pose library that are tried, the nearest first."""
FIRST_SPREAD, LAST_SPREAD = 0.3, 1.5
"""First and last standard deviation, radians about each axis, of a free joint's turn from the start."""
WIDENING = 1.25
"""Growth of the spread from one start to the next."""


class StartSpace(NamedTuple):
    """The space of start poses."""

    skeleton: Skeleton
    goals: Sequence[Goal]  # by their errors the nearest entries of the library are chosen
    limits: Sequence[Limit | None]  # per joint; all starts are inside
    movable: Sequence[int]  # indices of the joints that may move; locked ones never do
    poses: Sequence[PoseEntry] = ()  # entries of a pose library, each with at least one joint of the skeleton


def starts(space: StartSpace, pose: Pose, seed: int, count: int) -> list[Pose]:
    """Up to `count` start poses; the same for the same input and seed.

    Args:
        space: of the poses.
        pose: start of the first solve; joints that may not move keep its rotations and translations.
        seed: of the random poses.
        count: most poses, 0 or more.

    Raises:
        InvalidInput: an entry of the library is for other bones.
    """
    known = library_starts(space, pose, count)
    return known + drawn_starts(space, pose, seed, count - len(known))


def library_starts(space: StartSpace, pose: Pose, count: int) -> list[Pose]:
    """Start poses from the pose library."""
    check_pose(space.skeleton, pose)
    return _nearest(space, pose, _moved(space))[: min(LIBRARY, count)]


def drawn_starts(space: StartSpace, pose: Pose, seed: int, count: int) -> list[Pose]:
    """Seeded random start poses."""
    check_pose(space.skeleton, pose)
    (skeleton, _, limits, *_), moved = space, _moved(space)
    poses: list[Pose] = []
    if not moved:
        return poses
    random = Random(seed)
    hinges = {i: hinge for i in moved if (hinge := as_hinge(limits[i])) is not None}
    slides = [(i, slide) for i in moved for slide in skeleton.joints[i].slides]
    shares = [random.random() for _ in range(len(hinges) + len(slides))]
    strides = _strides(len(shares))
    spread = FIRST_SPREAD
    for _ in range(count):
        rotations, translations = list(pose.rotations), list(pose.translations)
        shares = [(share + stride) % 1.0 for share, stride in zip(shares, strides, strict=True)]
        drawn = iter(shares)
        for i in moved:
            if i in hinges:
                hinge = hinges[i]
                angle = hinge.lower + next(drawn) * (hinge.upper - hinge.lower)
                rotation = Quaternion(Vector(hinge.axis), angle)
            else:
                limit = limits[i]
                if limit is not None and not limit.is_free:
                    rotation = sample(limit, random)
                else:
                    turn = exp(Vector([random.gauss(0.0, spread) for _ in range(3)]))
                    rotation = (pose.rotations[i] @ turn).normalized()
            rotations[i] = rotation.freeze()
        for i, slide in slides:
            axis = Vector(slide.axis)
            along = slide.lower + next(drawn) * (slide.upper - slide.lower)
            # The shift across the slide stays.
            translations[i] = (translations[i] + (along - axis.dot(translations[i])) * axis).freeze()
        poses.append(Pose.trusted(tuple(rotations), tuple(translations)))
        spread = min(spread * WIDENING, LAST_SPREAD)
    return poses


def _moved(space: StartSpace) -> list[int]:
    """Indices of the joints that may move and are not locked."""
    return [i for i in space.movable if not space.skeleton.joints[i].locked]


def _strides(count: int) -> list[float]:
    """The strides of the recurrence in `count` dimensions: powers of 1 / g, where g^(count + 1) = g + 1."""
    g = 2.0
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (count + 1))
    return [g ** -(k + 1) for k in range(count)]


def _nearest(space: StartSpace, pose: Pose, moved: Sequence[int]) -> list[Pose]:
    """The library's poses inside the limits, without duplicates, sorted by the goals' weighted error."""
    skeleton, goals, limits, _, poses = space
    if not (poses and moved):
        return []
    ranked: list[tuple[float, int, Pose]] = []
    for place, entry in enumerate(poses):
        applied = apply_entry(entry, skeleton, pose)
        rotations, translations = list(pose.rotations), list(pose.translations)
        for i in moved:
            limit, joint = limits[i], skeleton.joints[i]
            rotations[i] = (
                applied.rotations[i] if limit is None else clamp(limit, applied.rotations[i]).freeze()
            )
            inside = [
                min(max(along, slide.lower), slide.upper)
                for slide, along in zip(joint.slides, slides_of(joint, translations[i]), strict=True)
            ]
            across = translations[i] - shift_of(joint, slides_of(joint, translations[i]))
            translations[i] = (across + shift_of(joint, inside)).freeze()
        start = Pose(tuple(rotations), tuple(translations))
        if all(start != other for _, _, other in ranked):
            ranked.append((_square(skeleton, goals, start), place, start))
    return [start for _, _, start in sorted(ranked, key=lambda each: each[:2])]


def _square(skeleton: Skeleton, goals: Sequence[Goal], pose: Pose) -> float:
    """The weighted square error of goals: lengths in parts of the reach, radians times the lever."""
    reach = reach_of_goals(skeleton, goals)
    errors = measure_goals(skeleton, goals, *placed_joints(skeleton, pose))
    return math.fsum(
        goal.weight * ((error.distance / reach) ** 2 + (LEVER * error.angle) ** 2)
        for goal, error in zip(goals, errors, strict=True)
    )
