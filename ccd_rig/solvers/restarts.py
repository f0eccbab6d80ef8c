"""The poses to start again from after a stall: the nearest of a pose library, then seeded ones in the limits.

Measured with the closing phase on robot arms (`benchmarks/robots.py`): poses drawn evenly from the limits
need the fewest iterations. Disturbing the pose that got stuck, a little or a lot and in turn with even ones
(simulated annealing, as Zalo and Kenwright 2012, section 7, have it for single joints), mostly falls back
into the same dead end, and takes 20 to 360 % more. What has no limits is different: there the start says
which poses are natural, so it is disturbed more and more.

Hinges and slides are not drawn by chance but by an additive recurrence, which fills their ranges evenly
however many starts there are (Roberts 2018, "The unreasonable effectiveness of quasirandom sequences"): 5 to
20 % fewer iterations, and several times fewer targets that take more than 16 starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from mathutils import Quaternion, Vector

from ..goals import Goal
from ..kernel import LEVER
from ..limits.random_rotations import sample
from ..limits.shapes import EulerBox, Limit, SwingTwist, as_hinge, clamp
from ..maths.rotations import exp
from ..skeleton.joints import Skeleton, shift_of, slides_of
from ..skeleton.kinematics import placed_joints
from ..skeleton.pose import Pose, check_pose
from ..skeleton.pose_library import PoseEntry, apply_entry
from .problem_tables import measure_goals, reach_of_goals

LIBRARY = 3
"""So many entries of the pose library are tried, the nearest first."""
FIRST_SPREAD, LAST_SPREAD = 0.3, 1.5
"""Standard deviation about each axis, radians, of a free joint's turn from the start: at first, at last."""
WIDENING = 1.25
"""Growth of the spread from one start to the next."""


class StartSpace(NamedTuple):
    """Where other starts may be.

    Attributes:
        skeleton: the joints.
        goals: what is to be achieved: by them the library's nearest entries are chosen.
        limits: per joint, what it may do now; all starts are inside.
        movable: indices of the joints that may move. Locked ones never do.
        poses: entries of a pose library, each of which knows at least one joint of the skeleton.
    """

    skeleton: Skeleton
    goals: Sequence[Goal]
    limits: Sequence[Limit | None]
    movable: Sequence[int]
    poses: Sequence[PoseEntry] = ()


def starts(space: StartSpace, pose: Pose, seed: int, count: int) -> list[Pose]:
    """Up to `count` poses to start from; the same for the same input and seed.

    Args:
        space: where they may be.
        pose: where the first solve started; joints that may not move stay as they are there.
        seed: of the random poses.
        count: how many; with 0 there are none.

    Raises:
        InvalidInput: an entry of the library is for other bones.
    """
    known = library_starts(space, pose, count)
    return known + drawn_starts(space, pose, seed, count - len(known))


def library_starts(space: StartSpace, pose: Pose, count: int) -> list[Pose]:
    """Those of `starts` that a pose library gives."""
    check_pose(space.skeleton, pose)
    return _nearest(space, pose, _moved(space))[: min(LIBRARY, count)]


def drawn_starts(space: StartSpace, pose: Pose, seed: int, count: int) -> list[Pose]:
    """Those of `starts` that chance gives."""
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
                turn = hinge.lower + next(drawn) * (hinge.upper - hinge.lower)
                rotation = Quaternion(Vector(hinge.axis), turn)
            else:
                rotation = _drawn(limits[i], pose.rotations[i], spread, random)
            rotations[i] = rotation.freeze()
        for i, slide in slides:
            axis = Vector(slide.axis)
            along = slide.lower + next(drawn) * (slide.upper - slide.lower)
            # What is across the slide stays.
            translations[i] = (translations[i] + (along - axis.dot(translations[i])) * axis).freeze()
        poses.append(Pose.trusted(tuple(rotations), tuple(translations)))
        spread = min(spread * WIDENING, LAST_SPREAD)
    return poses


def _moved(space: StartSpace) -> list[int]:
    """The joints that may move."""
    return [i for i in space.movable if not space.skeleton.joints[i].locked]


def _strides(count: int) -> list[float]:
    """The strides of the recurrence in `count` dimensions: powers of 1 / g, where g^(count + 1) = g + 1."""
    g = 2.0
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (count + 1))
    return [g ** -(k + 1) for k in range(count)]


def _nearest(space: StartSpace, pose: Pose, moved: Sequence[int]) -> list[Pose]:
    """The library's poses inside the limits, each once, by the goals' weighted error; of equals the first."""
    skeleton, goals, limits, _, poses = space
    if not (poses and moved):
        return []
    found: list[tuple[float, int, Pose]] = []
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
        if all(start != other for _, _, other in found):
            found.append((_square(skeleton, goals, start), place, start))
    return [start for _, _, start in sorted(found, key=lambda each: each[:2])]


def _square(skeleton: Skeleton, goals: Sequence[Goal], pose: Pose) -> float:
    """The weighted square error of goals: lengths in parts of the reach, radians times the lever."""
    reach = reach_of_goals(skeleton, goals)
    errors = measure_goals(skeleton, goals, *placed_joints(skeleton, pose))
    return math.fsum(
        goal.weight * ((error.distance / reach) ** 2 + (LEVER * error.angle) ** 2)
        for goal, error in zip(goals, errors, strict=True)
    )


def _drawn(limit: Limit | None, start: Quaternion, spread: float, random: Random) -> Quaternion:
    if limit is not None and not is_free(limit):
        return sample(limit, random)
    return (start @ exp(Vector([random.gauss(0.0, spread) for _ in range(3)]))).normalized()


def is_free(limit: Limit) -> bool:
    """Whether a limit allows every rotation."""
    if isinstance(limit, SwingTwist):
        free_twist = limit.twist is None or limit.twist[1] - limit.twist[0] >= 2.0 * math.pi
        return limit.swing is None and free_twist
    if isinstance(limit, EulerBox):
        return all(b - a >= 2.0 * math.pi for a, b in zip(limit.lower, limit.upper, strict=True))
    return False
