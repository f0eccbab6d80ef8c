"""Pulls with a largest force, on springs.

A goal of position bends a body as far as it takes to bring a point nearest to a target out of reach. The
body ends stretched, and turns fast on its way there. With a largest force F, a pull minimises

    departure + F distance

where the departure is the sum of squared turns beside the reference. A point whose target asks for less
force is there. Any other stays behind where the body's resistance has grown to F. This is solved by the
alternating direction method of multipliers (Boyd et al. 2011, "Distributed optimization and statistical
learning via the alternating direction method of multipliers", 3.1). Its quadratic terms are springs: joints
that slide from the point to an anchor.

Shapes: R poses, J joints, G goals, P pulls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..goals import Goal, PositionGoal
from ..limits.shapes import Hinge, Slide
from ..maths.batch import Array, length
from ..maths.validation import SIZES
from ..settings import Solver
from ..skeleton.joints import Joint, Skeleton
from ..skeleton.pose import Pose
from .pose_search import PoseSearch
from .problem_tables import Bones, GoalSettings, goals_key

FORCE = 120.0
"""Largest force of a pull: square radians per unit of length of the search.

At 60 a hand stays 4 cm short of where it stays 2 cm short. From 160 on a figure finds reaches on the other
side of a barrier: limbs turn by 40 degrees in a frame, and a bake takes several times as long.
"""
EXTENT = 0.25
"""Length of a spring at the largest force, in lengths of the longest chain.

It is long, as a stretched body's resistance grows steeply: all but some thousandths are there in `ROUNDS`.
"""
ROUNDS = 4
"""Solves in which points come to where the force is the largest."""
STEPS = 80
"""Most steps of such a solve, which goes on from the pose of the one before."""
AXES = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class SprungGoal(PositionGoal):
    """A position goal of a point at the end of a spring, which hangs on the joint.

    Attributes:
        spring: name of the joint that slides.
    """

    spring: str = ""

    def serving(self, skeleton: Skeleton) -> set[int]:
        return {*super().serving(skeleton), skeleton.index(self.spring)}

    def row(self, skeleton: Skeleton) -> dict[str, Any]:
        spring = skeleton.index(self.spring)
        at_spring = {"goal_joint": spring, "goal_axis_joint": spring, "goal_point": (0.0, 0.0, 0.0)}
        return {**super().row(skeleton), **at_spring}


def with_springs(
    skeleton: Skeleton, goals: Sequence[Goal], pulled: Sequence[int], mobility: float
) -> tuple[Skeleton, list[Goal]]:
    """A skeleton with springs on pulled points, and the goals with those of the springs' ends.

    A spring is a joint that slides from the point, behind all others. It adds its square length to the square
    departure, divided by its compliance, the square of its mobility. Lengths are in the unit of the search.

    Args:
        pulled: numbers of position goals.
    """
    joints, hung = list(skeleton.joints), list(goals)
    longest = max((joint.name for joint in joints), key=len)
    for n, k in enumerate(pulled):
        goal = goals[k]
        assert isinstance(goal, PositionGoal)
        spring = Joint(
            f"{longest}{n}",
            skeleton.index(goal.joint),
            goal.effector(skeleton)[:],
            length=0.0,
            limit=Hinge((1.0, 0.0, 0.0), 0.0, 0.0),
            stiffness=1.0 - mobility,
            slides=tuple([Slide(axis, -SIZES[1], SIZES[1]) for axis in AXES]),
        )
        joints.append(spring)
        kept = {each.name: getattr(goal, each.name) for each in fields(PositionGoal)}
        hung[k] = SprungGoal(**kept, spring=spring.name)
    return Skeleton(joints), hung


def slack(pose: Pose, pulls: int) -> tuple[Array, Array]:
    """A pose as arrays (1, J, ...), with springs of no length on pulls."""
    rotations, translations = pose.arrays
    turns, shifts = np.zeros((1, pulls, 4)), np.zeros((1, pulls, 3))
    turns[..., 0] = 1.0
    return np.concatenate((rotations, turns), axis=1), np.concatenate((translations, shifts), axis=1)


def past(ways: Array, extent: float) -> Array:
    """The part of ways (..., 3) that is left beyond an extent."""
    shares = np.maximum(1.0 - extent / np.maximum(length(ways, axis=-1), SIZES[0]), 0.0)
    return np.asarray(ways * shares[..., None])


def springs(search: PoseSearch, pulled: tuple[int, ...]) -> Springs:
    """Springs on points of a search, made once for all searches of equal goals."""
    limbs = None if search.limb_goals is None else goals_key(search.limb_goals)
    key = "springs", goals_key(search.goals), limbs, search.settings, search.movable, search.reach, pulled
    return search.skeleton.computed_once(key, lambda: Springs(search, pulled))


class Springs:
    """Springs on pulled points of a search."""

    def __init__(self, search: PoseSearch, pulled: tuple[int, ...]) -> None:
        """Hang springs on the points of position goals, by their numbers `pulled`."""
        self.skeleton, self.pulled, skeleton = search.skeleton, pulled, search.skeleton
        hung, goals = with_springs(skeleton, search.goals, pulled, math.sqrt(2.0 * EXTENT / FORCE))
        springs = hung.joints[len(skeleton) :]
        self.ends = np.array([spring.offset[:] for spring in springs])
        self.extent = EXTENT * search.reach
        movable = {*search.movable, *range(len(skeleton), len(hung))}
        settings = replace(search.settings, max_iterations=min(search.settings.max_iterations, STEPS))
        self.sprung = PoseSearch(hung, goals, settings, movable, search.limb_goals, search.reach)

    def eased(
        self,
        poses: tuple[Array, Array],
        targets: Sequence[Array],
        bones: Bones,
        tolerances: Array,
        goal_settings: GoalSettings,
    ) -> list[Array]:
        """Ease targets to where the force is the largest.

        Args:
            poses: (R, J, 4) rotations and (R, J, 3) translations of the references.
            targets: per goal (R or 1, 3) or (R or 1, 4), model space.
            bones, tolerances, goal_settings: see `PoseSearch.solve`.

        Returns:
            The targets, of which those of pulls stay where forces are smaller. With CCD alone all stay: joint
            by joint it would stretch the springs.
        """
        eased = list(targets)
        if self.sprung.settings.solver is Solver.CCD:
            return eased
        size, count, pulls = len(poses[0]), len(self.skeleton), len(self.pulled)
        turns, shifts = np.zeros((size, pulls, 4)), np.zeros((size, pulls, 3))
        turns[..., 0] = 1.0
        near = np.concatenate((poses[0], turns), axis=1), np.concatenate((poses[1], shifts), axis=1)
        tails = np.broadcast_to(self.ends, (len(bones.offsets), pulls, 3))
        sprung = Bones(
            np.concatenate((bones.offsets, tails), axis=1),
            np.concatenate((bones.rests, turns[: len(tails)]), axis=1),
        )
        whole = np.stack([np.broadcast_to(targets[k], (size, 3)) for k in self.pulled], axis=1)
        start = near

        def points(poses: tuple[Array, Array]) -> Array:
            """(R, P, 3) pulled points in poses with springs: where these hang."""
            slack = poses[1].copy()
            slack[:, count:] = 0.0
            heads, _ = sprung.transforms(self.sprung.skeleton, poses[0], slack)
            return heads[:, count:]

        def distances(anchors: Array) -> Array:
            """(R, P, 3) from pulled points to targets, with springs from the points to anchors."""
            nonlocal start
            pulled = [*targets]
            for n, k in enumerate(self.pulled):
                pulled[k] = anchors[:, n]
            solved = self.sprung.solve(
                *start, pulled, near, bones=sprung, tolerances=tolerances, goal_settings=goal_settings
            )
            start = solved.rotations, solved.translations
            return whole - points(start)

        # Springs at the largest force, each along its way to the target; from far away none would settle.
        ways = distances(whole - past(whole - points(near), 2.0 * self.extent))
        forces = ways * (self.extent / np.maximum(length(ways, axis=-1), SIZES[0])[..., None])
        short = past(ways, self.extent)
        for _ in range(ROUNDS):
            beyond = distances(whole - short + forces) + forces
            short = past(beyond, self.extent)
            forces = beyond - short
        for n, k in enumerate(self.pulled):
            eased[k] = (whole - short)[:, n]
        return eased
