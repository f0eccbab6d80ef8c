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
from ..maths.batch import Array, length, rotate
from ..maths.validation import SIZES
from ..settings import Solver
from ..skeleton.joints import Joint, Skeleton
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


def springs(search: PoseSearch, pulled: tuple[int, ...]) -> Springs | None:
    """Springs on points of a search, made once for all searches of equal goals.

    None with CCD alone, which pulls without end: joint by joint it would stretch the springs.
    """
    if search.settings.solver is Solver.CCD:
        return None
    limbs = None if search.limb_goals is None else goals_key(search.limb_goals)
    key = "springs", goals_key(search.goals), limbs, search.settings, search.movable, search.reach, pulled
    return search.skeleton.shape.computed_once(key, lambda: Springs(search, pulled))


class Springs:
    """Springs on pulled points of a search."""

    def __init__(self, search: PoseSearch, pulled: tuple[int, ...]) -> None:
        """Hang springs on the points of position goals, by their numbers `pulled`."""
        # Rest transforms are those of each call.
        self.skeleton = skeleton = search.skeleton.shape
        self.pulled = pulled
        hung, goals = with_springs(skeleton, search.goals, pulled, math.sqrt(2.0 * EXTENT / FORCE))
        added = hung.joints[len(skeleton) :]
        self.tips = [spring.parent for spring in added]
        self.ends = np.array([spring.offset[:] for spring in added])
        self.extent = EXTENT * search.reach
        movable = {*search.movable, *range(len(skeleton), len(hung))}
        settings = replace(search.settings, max_iterations=min(search.settings.max_iterations, STEPS))
        self.sprung = PoseSearch(hung, goals, settings, movable, search.limb_goals, search.reach)

    def settled(
        self,
        near: tuple[Array, Array],
        targets: Sequence[Array],
        bones: Bones,
        tolerances: Array,
        goal_settings: GoalSettings,
    ) -> tuple[tuple[Array, Array], Array]:
        """Solve poses on springs until points are where the force is the largest.

        Args:
            near: (R, J, 4) rotations and (R, J, 3) translations of the references.
            targets: per goal (R or 1, 3) or (R or 1, 4), model space.
            bones, tolerances, goal_settings: see `PoseSearch.solve`.

        Returns:
            The poses; (R, P, 3) ways by which points stay short of their targets, 0 where forces are smaller.
        """
        sprung = Bones(*self._hung(bones.rests, bones.offsets, self.ends)[::-1])
        reference, poses, count = self._hung(*near, 0.0), near, len(self.skeleton)

        def solve(pulled: Array) -> Array:
            """(R, P, 3) ways from points to targets, with springs to anchors at ways from the targets."""
            nonlocal poses
            anchors = [*targets]
            for n, k in enumerate(self.pulled):
                anchors[k] = targets[k] + pulled[:, n]
            # Springs begin as long as they must be for the pose before.
            ways, turns = self._ways(poses, anchors, bones)
            begun = self._hung(*poses, rotate(turns * (1.0, -1.0, -1.0, -1.0), ways, axis=-1))
            solved = self.sprung.solve(
                *begun, anchors, reference, bones=sprung, tolerances=tolerances, goal_settings=goal_settings
            )
            poses = solved.rotations[:, :count], solved.translations[:, :count]
            return self._ways(poses, targets, bones)[0]

        # Springs at the largest force, each along its way to the target; from far away none would settle.
        off = solve(-_beyond(self._ways(near, targets, bones)[0], 2.0 * self.extent))
        forces = off * (self.extent / np.maximum(length(off, axis=-1), SIZES[0])[..., None])
        short = _beyond(off, self.extent)
        for _ in range(ROUNDS):
            off = solve(forces - short) + forces
            short = _beyond(off, self.extent)
            forces = off - short
        return poses, short

    def _ways(
        self, poses: tuple[Array, Array], targets: Sequence[Array], bones: Bones
    ) -> tuple[Array, Array]:
        """(R, P, 3) ways from pulled points to their targets, (R, P, 4) rotations of the points' bones."""
        heads, turns = bones.transforms(self.skeleton, *poses)
        heads, turns = heads[:, self.tips], turns[:, self.tips]
        points = heads + rotate(turns, np.broadcast_to(self.ends, heads.shape), axis=-1)
        return np.stack([targets[k] - points[:, n] for n, k in enumerate(self.pulled)], axis=1), turns

    def _hung(self, rotations: Array, translations: Array, shifts: Array | float) -> tuple[Array, Array]:
        """Poses with springs that slide by (R, P, 3)."""
        still = np.zeros((len(rotations), len(self.pulled), 4))
        still[..., 0] = 1.0
        slid = np.zeros_like(still[..., 1:]) + shifts
        return np.concatenate((rotations, still), axis=1), np.concatenate((translations, slid), axis=1)


def _beyond(ways: Array, extent: float) -> Array:
    """The part of ways that is left beyond an extent."""
    shares = np.maximum(1.0 - extent / np.maximum(length(ways, axis=-1), SIZES[0]), 0.0)
    return np.asarray(ways * shares[..., None])
