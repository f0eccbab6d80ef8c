"""Skeletons, goals and poses as tables for the kernel, and goals measured by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from mathutils import Vector

from ..goals import GOAL_ROW, Goal, GoalError, Limb, ReachWindow
from ..kernel import Problem, measure_placed
from ..limits.shapes import Limit, as_hinge, limit_row
from ..maths.batch import Array, length, rotate, unit, unit_rows
from ..maths.rotations import between
from ..skeleton.joints import Skeleton
from ..skeleton.kinematics import Transform, forward_kinematics_of_frames

WINDOW = 5
"""The kernel's number of a reach window."""
SHORTEST = 1e-30
"""Least unit of length of the kernel: squares of less are 0."""
ACROSS = 0.1
"""Mobility of a limb's middle joint across its bend axis, where its mobility about the axis is 1.

It makes the joint a hinge by weight. Plain rotations bend free knees and elbows sideways, and in squats
backwards, since such poses are nearer to rest. On captures of squats, climbs, walks and runs the motion is
missed by 5.7 to 8.8 degrees with it, by 9.3 to 23.2 without.
"""
ACROSS_WITH_POLE = 0.05
"""The same where the limb has a pole, and a root that turns about all axes.

A point and a pole leave it one pose on its hinge: what leaves the hinge only saves twist of the root. Where
the limb is straight but for an angle b, a / (1 + (sin b / mobility)^2) of a twist a is saved. On captures of
two walks and a jump the motion is missed by 0.23 to 0.40 degrees with it, by 0.31 to 0.81 with `ACROSS`, by
0.27 to 0.51 on a hinge; an upper arm by up to 3, 17 and 3 degrees. 0.03 is nearer to the hinge: 0.25 to 0.43.
"""


class Bones(NamedTuple):
    """Rest transforms of J joints relative to their parents."""

    offsets: Array  # (B or 1, J, 3) heads
    rests: Array  # (B or 1, J, 4) unit rotations

    @classmethod
    def of(cls, skeleton: Skeleton) -> Bones:
        """Rest transforms of a skeleton, as one row."""
        offsets = np.array([[joint.offset[:] for joint in skeleton.joints]], np.float64)
        rests = np.array([[joint.rest_rotation[:] for joint in skeleton.joints]], np.float64)
        return cls(offsets, unit(rests, axis=-1))

    def at(self, rows: Any) -> Bones:
        """Rest transforms of a subset of poses."""
        if len(self.offsets) == 1:
            return self
        return Bones(np.ascontiguousarray(self.offsets[rows]), np.ascontiguousarray(self.rests[rows]))

    def transforms(self, skeleton: Skeleton, rotations: Array, translations: Array) -> tuple[Array, Array]:
        """(B, J, 3) heads and (B, J, 4) unit rotations of poses in model space.

        Args:
            rotations: (B, J, 4) of any length.
            translations: (B, J, 3)
        """
        rotations = unit(rotations, axis=-1)
        return forward_kinematics_of_frames(skeleton, self.offsets, self.rests, rotations, translations)


class GoalSettings(NamedTuple):
    """Values of G goals that may differ between B poses, beside their targets: (B or 1, G) each."""

    weights: Array  # see `goals`
    pole_angles: Array  # radians; 0 for other goals than poles
    extensions: Array  # ends of reach windows in parts of the chain's length; 1 without a window

    @classmethod
    def of(cls, poses: Sequence[Sequence[Goal]]) -> GoalSettings:
        """Values of the goals of each pose."""
        weights = [[goal.weight for goal in goals] for goals in poses]
        angles = [[goal.angle for goal in goals] for goals in poses]
        extensions = [[goal.max_extension for goal in goals] for goals in poses]
        return cls(*np.array((weights, angles, extensions), np.float64))

    def at(self, rows: Any) -> GoalSettings:
        """Values of a subset of poses."""
        if len(self.weights) == 1:
            return self
        return GoalSettings(*(np.ascontiguousarray(each[rows]) for each in self))

    def beside(self, others: GoalSettings) -> GoalSettings:
        """Values of these goals and then of others, for the same poses."""
        size = max(len(self.weights), len(others.weights))
        pairs = [
            [np.broadcast_to(each, (size, each.shape[1])) for each in pair]
            for pair in zip(self, others, strict=True)
        ]
        return GoalSettings(*map(np.hstack, pairs))

    def with_windows(self, count: int) -> tuple[Array, Array]:
        """Weights and pole angles for the kernel: goals first, then `count` reach windows."""
        if count == 0:
            return self.weights, self.pole_angles
        none = np.zeros((len(self.weights), count))
        return np.hstack([self.weights, none + 1.0]), np.hstack([self.pole_angles, none])


def problem_tables(
    skeleton: Skeleton,
    goals: Sequence[Goal],
    limits: Sequence[Limit | None],
    movable: Sequence[int],
    tolerances: Sequence[float],
    regions: Sequence[Limit | None] | None = None,
    limb_goals: Sequence[Goal] | None = None,
) -> dict[str, Any]:
    """The tables of `kernel.Problem`, where they are listed.

    Args:
        goals: each reach window makes one more goal, behind all others.
        limits: per joint.
        movable: joints that may move.
        tolerances: per joint, of comfort; radians.
        regions: per joint, of comfort; None: no regions.
        limb_goals: the goals without the joints of a helping body, by which limbs are told; None: `goals`.
    """
    regions = regions or [None] * len(skeleton)
    rows = [limit_row(region if i in movable else None) for i, region in enumerate(regions)]
    tables = joint_tables(skeleton, limits, movable, tolerances)
    moving = set(movable)
    limbs = [goal.limb(skeleton, moving) for goal in goals]
    bent = limbs if limb_goals is None else [goal.limb(skeleton, moving) for goal in limb_goals]
    turning = [goal.swivelled(skeleton) for goal in goals]
    poled = {i for root, *below in filter(None, turning) if tables["width"][root] == 3 for i in below}
    tables.update(mobility_tables(skeleton, bent, poled, movable))
    return {**tables, "region": doubles(rows), **goal_tables(skeleton, goals, limbs)}


def joint_tables(
    skeleton: Skeleton, limits: Sequence[Limit | None], movable: Sequence[int], tolerances: Sequence[float]
) -> dict[str, Any]:
    """The tables of joints."""
    joints, moving = skeleton.joints, set(movable) - skeleton.locked
    slides = [slide for i, joint in enumerate(joints) if i in moving for slide in joint.slides]
    slide_counts = [len(joint.slides) if i in moving else 0 for i, joint in enumerate(joints)]
    couplings = skeleton.couplings
    knots = [each.offset.knots for each in couplings]
    return {
        "parent": ints(joint.parent for joint in joints),
        "inherits": ints(joint.inherit_rotation for joint in joints),
        "offset": doubles([joint.offset[:] for joint in joints]),
        "rest": unit_rows([joint.rest_rotation[:] for joint in joints]),
        "limit": doubles([limit_row(limit) for limit in limits]),
        "width": ints(
            0 if i not in moving else 3 if as_hinge(limit) is None else 1 for i, limit in enumerate(limits)
        ),
        "max_step": doubles([joint.max_step for joint in joints]),
        "comfort": doubles(tolerances),
        "mass": doubles([joint.mass for joint in joints]),
        "mass_point": doubles([joint.centre for joint in joints]),
        "first_slide": ints(np.cumsum([0, *slide_counts])),
        "slide_axis": doubles([slide.axis for slide in slides]),
        "slide_range": doubles([(slide.lower, slide.upper) for slide in slides]),
        "coupled_joint": ints(each.joint for each in couplings),
        "coupled_driver": ints(each.driver for each in couplings),
        "coupled_axis": doubles([each.offset.axis for each in couplings]),
        "first_knot": ints(np.cumsum([0, *[len(each) // 3 for each in knots]])),
        "knots": doubles(np.concatenate(knots) if knots else ()),
    }


def mobility_tables(
    skeleton: Skeleton,
    limbs: Sequence[Limb | None],
    poled: Collection[int],
    movable: Sequence[int],
) -> dict[str, Any]:
    """Mobilities of joints and their axes, from stiffness and the bends of limbs.

    Args:
        limbs: of the goals.
        poled: joints below roots that turn them towards poles.
        movable: joints that may move.
    """
    joints, moving = skeleton.joints, set(movable) - skeleton.locked
    metric: list[Sequence[float]] = [(1.0, 0.0, 0.0, 0.0)] * len(joints)
    mobility: list[Sequence[float]] = [
        (1.0 - joint.stiffness if i in moving else 1.0,) * 3 for i, joint in enumerate(joints)
    ]
    for middle, axis in filter(None, limbs):
        metric[middle] = between(Vector((1.0, 0.0, 0.0)), axis)[:]
        along = mobility[middle][0]
        across = along * (ACROSS_WITH_POLE if middle in poled else ACROSS)
        mobility[middle] = (along, across, across)
    return {"metric": unit_rows(metric), "mobility": doubles(mobility)}


def goal_tables(skeleton: Skeleton, goals: Sequence[Goal], limbs: Sequence[Limb | None]) -> dict[str, Any]:
    """The tables of goals."""
    ranks = sorted({goal.priority for goal in goals})
    rows = [_goal_row(skeleton, goal, ranks.index(goal.priority)) for goal in goals]
    for goal_row, limb in zip(rows, limbs, strict=True):
        if limb is not None and not goal_row["goal_tip"]:
            goal_row["goal_tip"] = 2
    serving = serving_joints(skeleton, goals)
    for goal, joints in zip(goals, serving[:], strict=True):
        window = goal.window(skeleton) if goal.has_window else None
        if window is not None:
            first = {
                "goal_kind": WINDOW,
                "goal_root": window.joints[0],
                "goal_joint": window.joints[-1],
                "goal_point": window.end[:],
            }
            of_window = {"goal_rank": -1, "goal_weight": 1.0, "goal_tip": 0}
            rows.append({**_goal_row(skeleton, goal, 0), **first, **of_window})
            serving.append(joints)
    serves = np.zeros((len(rows), len(skeleton)), np.int32)
    for row, joints in zip(serves, serving, strict=True):
        row[list(joints)] = 1
    table = {name: [row[name] for row in rows] for name in rows[0]}
    integers = ("goal_kind", "goal_joint", "goal_root", "goal_rank", "goal_axis_joint", "goal_tip")
    tables: dict[str, Any] = {
        name: ints(values) if name in integers else doubles(values) for name, values in table.items()
    }
    return {**tables, "serves": serves.reshape(-1)}


def _goal_row(skeleton: Skeleton, goal: Goal, rank: int) -> dict[str, Any]:
    """The row of a goal in each table."""
    of_all = {"goal_kind": goal.number, "goal_rank": rank, "goal_weight": goal.weight}
    return {**GOAL_ROW, **of_all, **goal.row(skeleton)}


def serving_joints(skeleton: Skeleton, goals: Sequence[Goal]) -> list[set[int]]:
    """The joints that move for each goal.

    For a pole these are its root and the joints of other goals that move its root. With the root alone the
    pose nearest to the reference would not meet the pole.
    """
    by_goal = [goal.serving(skeleton) for goal in goals]
    return [
        joints.union(*(other for other in by_goal if goal.takes_shared_joints and joints <= other))
        for goal, joints in zip(goals, by_goal, strict=True)
    ]


def reach_of_goals(skeleton: Skeleton, goals: Sequence[Goal]) -> float:
    """The length of the longest chain: the kernel's unit of length.

    Chains without a length take that of all bones, or of all slides: results do not depend on the model's
    unit.
    """
    lengths = (
        max(goal.reach(skeleton) for goal in goals),
        math.fsum(joint.offset.length + joint.length for joint in skeleton.joints),
        math.fsum(slide.upper - slide.lower for joint in skeleton.joints for slide in joint.slides),
    )
    return next((length for length in lengths if length >= SHORTEST), 1.0)


def windowed(goals: Sequence[Goal]) -> tuple[int, ...]:
    """Numbers of the goals with a reach window."""
    return tuple([k for k, goal in enumerate(goals) if goal.has_window])


def target_rows(
    skeleton: Skeleton,
    goals: Sequence[Goal],
    targets: Sequence[Array],
    shifts: Array,
    bones: Bones,
    extensions: Array,
    windows: Sequence[int],
) -> Array:
    """(B, 4G) targets of goals and, behind them, of reach windows.

    Args:
        targets: per goal (B or 1, 3) points or unit vectors, or (B or 1, 4) unit quaternions.
        shifts: (B, J, 3) translations relative to rest, which lengthen the links of slides.
        extensions: see `GoalSettings`.
        windows: `windowed(goals)`.
    """
    size = len(shifts) if windows else max(len(target) for target in targets)
    rows = np.zeros((size, len(goals) + len(windows), 4))
    for k, target in enumerate(targets):
        rows[:, k, : target.shape[1]] = target
    for k, place in enumerate(windows, len(goals)):
        window = goals[place].window(skeleton)
        if window is not None:
            rows[:, k, 0] = extensions[:, place] * _extents(window, shifts, bones)
    return rows.reshape(size, -1)


def stored_targets(goals: Sequence[Goal]) -> list[Array]:
    """Per goal (1, 3) or (1, 4), the target that it stores."""
    rows = [np.array([goal.target[:]], dtype=np.float64) for goal in goals]
    return [
        row / np.sqrt((row * row).sum()) if goal.target_kind.has_length_one else row
        for goal, row in zip(goals, rows, strict=True)
    ]


def _extents(window: ReachWindow, shifts: Array, bones: Bones) -> Array:
    """(B,) lengths of the links of a reach window."""
    total = np.full(len(shifts), window.end.length)
    inner = list(window.joints[1:])
    links, slid = bones.offsets[:, inner], shifts[:, inner]
    if slid.any():
        links = links + rotate(bones.rests[:, inner], slid, axis=-1)
    for link in length(links, axis=-1).T:  # one by one: sums of pairs have other bits
        total += link
    return total


def goals_key(goals: Sequence[Goal]) -> Hashable:
    """A key of goals without `OF_CALLS`: goals with equal keys share a problem of the kernel."""
    return tuple([(type(goal), goal.has_window, _kept_fields(type(goal))(goal)) for goal in goals])


@cache
def _kept_fields(kind: type[Goal]) -> Callable[[Goal], tuple[Any, ...]]:
    """What gives the fields of a goal that its problem depends on."""
    return attrgetter(*(each.name for each in fields(kind) if each.name not in OF_CALLS))


OF_CALLS = frozenset(("target", "weight", "angle", "max_extension"))
"""Fields of goals that are arguments of the kernel's calls: its problems are for any of their values."""


def measure(goal: Goal, skeleton: Skeleton, transforms: Sequence[Transform]) -> GoalError:
    """Measure how far off `goal` is, given `forward_kinematics(skeleton, pose)`.

    Raises:
        InvalidInput: the goal names a joint that is not in the skeleton, or there is no mass to balance.
    """
    heads = np.array([[transform.translation[:] for transform in transforms]], np.float64)
    frames = np.array([[transform.rotation[:] for transform in transforms]], np.float64)
    return measure_goals(skeleton, (goal,), heads, frames)[0]


def measure_goals(
    skeleton: Skeleton, goals: Sequence[Goal], heads: Array, frames: Array
) -> tuple[GoalError, ...]:
    """Measure how far off goals are in one pose: (1, J, 3) heads and (1, J, 4) frames, model space."""
    idle, problem = take_problem(skeleton, goals)
    targets, goal_settings, windows = stored_targets(goals), GoalSettings.of([goals]), windowed(goals)
    distances, angles = measure_poses(
        problem, skeleton, goals, heads, frames, targets, goal_settings, windows
    )
    idle.append(problem)
    return tuple(map(GoalError, distances[0].tolist(), angles[0].tolist()))


def take_problem(
    skeleton: Skeleton, goals: Sequence[Goal], movable: tuple[int, ...] = ()
) -> tuple[list[Problem], Problem]:
    """A problem of goals that no thread uses, and the list to which it returns; tolerances are 1.

    Problems of goals with the same `goals_key` are shared.
    """
    key = ("measured", goals_key(goals), movable)
    skeleton = skeleton.shape
    idle: list[Problem] = skeleton.computed_once(key, list)
    with suppress(IndexError):  # other threads take from it too
        return idle, idle.pop()
    limits = [joint.limit for joint in skeleton.joints]
    tables = problem_tables(skeleton, goals, limits, movable, [0.0] * len(skeleton))
    return idle, Problem(tables, reach_of_goals(skeleton, goals), 1.0, 1.0)


def measure_poses(
    problem: Problem,
    skeleton: Skeleton,
    goals: Sequence[Goal],
    heads: Array,
    frames: Array,
    targets: Sequence[Array],
    goal_settings: GoalSettings,
    windows: Sequence[int],
) -> tuple[Array, Array]:
    """Measure how far off the goals of a problem are in B poses, wherever their joints are.

    Args:
        problem: made of `skeleton` and `goals`.
        heads, frames: (B, J, 3) and (B, J, 4) of joints in model space.
        targets: per goal (B or 1, 3) or (B or 1, 4).
        windows: `windowed(goals)`.

    Returns:
        (B, G) distances, model units, and (B, G) angles, radians.
    """
    size = len(heads)
    bones = skeleton.computed_once("bones", lambda: Bones.of(skeleton))
    shifts = np.zeros((size, len(skeleton), 3)) if windows else np.empty(0)
    rows = target_rows(skeleton, goals, targets, shifts, bones, goal_settings.extensions, windows)
    distances, angles = np.empty((2, size, rows.shape[1] // 4))
    measure_placed(
        problem,
        np.ascontiguousarray(heads).reshape(size, -1),
        np.ascontiguousarray(frames).reshape(size, -1),
        rows,
        goal_settings.with_windows(len(windows))[1],
        distances,
        angles,
    )
    return distances[:, : len(goals)], angles[:, : len(goals)]


def flat(values: Array) -> Array:
    """(B, K) numbers of the kernel, of (B, J, 3) or (B, J, 4); its results are written to contiguous ones."""
    return np.ascontiguousarray(values).reshape(len(values), values.shape[1] * values.shape[2])


def ints(values: Any) -> np.ndarray[Any, np.dtype[np.int32]]:
    """A flat table of whole numbers."""
    return np.array([int(value) for value in values], dtype=np.int32)


def doubles(values: Any) -> Array:
    """A flat table of doubles."""
    return np.ascontiguousarray(np.array(values, dtype=np.float64).reshape(-1))
