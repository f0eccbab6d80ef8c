# SPDX-License-Identifier: GPL-3.0-or-later
"""What a group of constraints asks for at some frames of a batch, as least squares take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from mathutils import Quaternion

from ...goals import BalanceGoal, Goal
from ...limits.shapes import Limit
from ...maths.batch import Array
from ...skeleton.joints import Skeleton
from ...solvers.least_squares.comfort_tolerances import Asked
from ...solvers.least_squares.problem import MILD_STEP, LeastSquaresProblem
from ...solvers.least_squares.solve import Limits
from ...solvers.least_squares.state import Given, Poses
from ..scene.evaluation import FrameSample
from ..scene.targets import AXES
from ..solve.constraint_goals import goal_targets, goals
from ..solve.contact_poses import JointPoses
from ..solve.level_models import group_level
from ..solve.world_scale import scales
from .bake_frames import Rows
from .batches import Batch, Group, poses_of

Stage = tuple[Sequence[Limit | None], float]
"""What limits hold, and what goals count beside those served before them."""

STEPS = 40
"""Most steps of a frame."""
GAIN, RANKED_GAIN = 0.005, 1e-3
"""A frame stalls when its square error falls by less than this part in several steps; where goals are served
before others, which then count next to nothing."""


@dataclass(frozen=True)
class GroupProblem:
    """A group's goals at some frames, for least squares.

    Attributes:
        problem: what the frames share; the targets of its goals mean nothing.
        goals: with the targets of the first frame.
        asked: what each brings, as it stands.
        places: of each goal the place of its constraint in the group.
        is_ranked: whether something is served before something else: goals, or reach windows.
    """

    problem: LeastSquaresProblem
    goals: list[Goal]
    asked: Asked
    places: list[int]
    is_ranked: bool

    @cached_property
    def given(self) -> Given:
        """What each frame brings."""
        return self.asked.given(self.problem)

    @property
    def poses(self) -> Poses:
        """As the frames stand."""
        return self.asked.poses

    @property
    def stop(self) -> Limits:
        """When to stop."""
        return self.asked.stop


def group_problem(batch: Batch, group: Group, stage: Stage, chosen: Rows, base: JointPoses) -> GroupProblem:
    """What a group asks for at some of the rows; `base` has the base poses of all."""
    limits, step = stage
    samples = [batch.samples[k] for k in chosen.tolist()]
    placed = [
        (place, goal)
        for place, c in enumerate(group.members)
        for goal in goals(batch.skeleton, batch.constraints[c], samples[0].targets[c])
    ]
    row_goals = [goal for _, goal in placed]
    problem = _problem(batch.skeleton, row_goals, tuple(limits), tuple(sorted(group.joints)), step)
    axes = balance_axes(batch, group, samples)
    found = [
        _with_axes(
            goal, goal_targets(goal, [sample.targets[group.members[place]] for sample in samples]), axes
        )
        for place, goal in placed
    ]
    is_ranked = len({goal.priority for goal in row_goals}) > 1 or bool(problem.windows)
    solver = batch.settings.solver
    stop = Limits(
        solver.position_tolerance / scales(samples),
        solver.angle_tolerance,
        min(STEPS, solver.max_iterations),
        RANKED_GAIN if is_ranked and step != MILD_STEP else GAIN,
    )
    asked = Asked(
        batch.bones.at(chosen),
        poses_of(batch.rotations[chosen], batch.translations[chosen]),
        found,
        batch.reference(samples, poses_of(base[0][chosen], base[1][chosen])),
        stop,
    )
    return GroupProblem(problem, row_goals, asked, [place for place, _ in placed], is_ranked)


def _problem(
    skeleton: Skeleton,
    row_goals: Sequence[Goal],
    limits: tuple[Limit | None, ...],
    joints: tuple[int, ...],
    step: float,
) -> LeastSquaresProblem:
    """The problem of goals, whatever their targets are, made at the first call with the same arguments."""
    asked = tuple(
        (type(goal), *(getattr(goal, each.name) for each in fields(goal) if each.name != "target"))
        for goal in row_goals
    )
    key = LeastSquaresProblem, asked, limits, joints, step
    return skeleton.computed_once(key, lambda: LeastSquaresProblem(skeleton, row_goals, limits, joints, step))


def balance_axes(batch: Batch, group: Group, samples: Sequence[FrameSample]) -> Array | None:
    """(3, 3, R) per model axis what takes its place in each frame; None while armature space is level.

    A balance counts along the world's axes: where the armature object is turned, each frame has its own.
    """
    constraints = [batch.constraints[c] for c in group.members]
    turns: list[Quaternion] = []
    for k, sample in enumerate(samples):
        same = k > 0 and sample.matrix_world is samples[k - 1].matrix_world
        turns.append(turns[-1] if same else group_level(sample, constraints))
    if all(turn == Quaternion() for turn in turns):
        return None
    model = [AXES[f"POS_{name}"] for name in "XYZ"]
    return np.array([[(turn.inverted() @ axis)[:] for axis in model] for turn in turns]).transpose(2, 1, 0)


def _with_axes(goal: Goal, targets: Array, axes: Array | None) -> Array:
    """The targets (3, R) of a balance together with the axes that count in each frame."""
    if axes is None or not isinstance(goal, BalanceGoal):
        return targets
    return np.concatenate((targets[:, None], axes[:, [k for k in range(3) if goal.axes[k]]]), axis=1)
