# SPDX-License-Identifier: GPL-3.0-or-later
"""A frame solved on from the pose that is shown, in a few steps: how a rig follows its targets as they move.

What a bake would key is found once things rest. Until then each group of constraints takes steps of least
squares from where it is. Joints whose goals were met go a part of the way back to their base pose first, so
that they do not wander off where goals leave them free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ...limits.shapes import Limit
from ...maths.rotations import slerp
from ...settings import SolveResult, SolverSettings, SolveStatus
from ...skeleton.joints import Joint, Skeleton
from ...skeleton.pose import Pose
from ...solvers.least_squares.closing import Descent, refine, refined
from ...solvers.least_squares.pose_problem import PoseProblem
from ..bake import single_frame
from ..bake.single_frame import SolvedFrame
from ..checks.setup import Ready
from ..properties.constraint_values import Constraint, Kind
from ..scene.evaluation import FrameSample
from ..solve.grouping import groups, is_carried, takes_least_squares
from ..solve.level_models import LevelModel, level_model
from ..solve.solving import (
    FrameSolveSettings,
    Solution,
    errors_of,
    frame_conditions,
    solve_active,
)

BACK = 0.2
"""Part of the way back to their base pose that joints go whose goals are met."""


class Shown(NamedTuple):
    """What is shown: where a frame goes on from.

    Attributes:
        pose: of all joints, as far from the base pose of the frame as what was shown was from its own.
        met: places of the constraints that met their goals.
        still: those of them that ask for the same as before.
    """

    pose: Pose
    met: frozenset[int]
    still: frozenset[int]


def followed_frame(
    ready: Ready, sample: FrameSample, settings: FrameSolveSettings, shown: Shown
) -> SolvedFrame:
    """Solve what was evaluated on from what is shown; nothing is written, and nothing is planted.

    Chains that cannot have changed stay to the bit.

    Args:
        ready: what the sample was taken for.
        sample: at least one of its constraints has an influence above 0.
        settings: `solver.max_iterations` are the most steps inside limits, and inside comfort regions.
        shown: where the frame starts.

    Raises:
        RigError: the frame cannot be solved, or no bone of its chains can be changed.
    """
    bake_frames = single_frame.stored(ready, sample)
    solution = _followed(sample, ready.constraints, settings, shown)
    states = dict(zip(solution.active, solution.states, strict=True))
    bake_frames.store_solution(0, solution.pose, states)
    return single_frame.solved_frame(bake_frames, solution)


def _followed(
    sample: FrameSample, constraints: Sequence[Constraint], settings: FrameSolveSettings, shown: Shown
) -> Solution:
    skeleton, pose = sample.reading.skeleton, shown.pose
    conditions = frame_conditions(sample, settings, follows=False, retry=False)
    asked, stay = _asked(sample, constraints, settings.solver, shown)
    for joints, members in asked:
        group = {c: constraints[c] for c in members}
        if _takes_steps(skeleton, group.values(), joints, settings.solver):
            if shown.met.issuperset(members):
                pose = _part_way(skeleton, pose, conditions.reference or sample.reading.pose, joints)
            pose = _stepped(level_model(sample, group, joints, pose), joints, conditions.solver)
        else:
            pose = solve_active(sample, constraints, members, pose, conditions)[0].pose
    errors = errors_of(sample, constraints, pose)
    states = tuple(
        SolveStatus.CONVERGED.name
        if c in stay or conditions.solver.in_tolerances(error) <= 1.0
        else SolveStatus.ITERATION_LIMIT.name
        for c, error in zip(sample.active, errors, strict=True)
    )
    status = next((s for s in states if s != SolveStatus.CONVERGED.name), SolveStatus.CONVERGED.name)
    most = settings.solver.max_iterations
    return Solution(pose, sample.active, SolveResult(pose, SolveStatus[status], most, errors), states)


def _asked(
    sample: FrameSample, constraints: Sequence[Constraint], solver: SolverSettings, shown: Shown
) -> tuple[list[tuple[set[int], list[int]]], set[int]]:
    """Joints and constraints of the groups that have to be solved, and the constraints of all others.

    What least squares solve is one group: steps of all cost little more than those of one.
    """
    skeleton = sample.reading.skeleton
    asked, stay, moved = list[tuple[set[int], list[int]]](), set[int](), set[int]()
    for joints, members in groups(skeleton, constraints, sample.active):
        group = [constraints[c] for c in members]
        if shown.still.issuperset(members) and not is_carried(skeleton, group, joints, moved):
            stay |= set(members)
        else:
            asked.append((joints, members))
            moved |= joints
    together = [
        (joints, members)
        for joints, members in asked
        if _takes_steps(skeleton, [constraints[c] for c in members], joints, solver)
    ]
    if len({constraints[c].priority for _, members in together for c in members}) > 1 or not together:
        return asked, stay
    one = set().union(*(joints for joints, _ in together)), sorted(c for _, m in together for c in m)
    return [one, *(each for each in asked if each not in together)], stay


def _takes_steps(
    skeleton: Skeleton, group: Collection[Constraint], joints: Iterable[int], solver: SolverSettings
) -> bool:
    """Whether a group goes on by least squares: reach windows and comfort tolerances are not known there."""
    tolerant = solver.comfort and any(_tolerance(skeleton.joints[j]) for j in joints)
    windows = any(each.kind is not Kind.BALANCE and each.max_extension < 1.0 for each in group)
    return takes_least_squares(group, solver) and not tolerant and not windows


def _part_way(skeleton: Skeleton, pose: Pose, base: Pose, joints: Iterable[int]) -> Pose:
    """A pose with these joints a part of the way back to their base pose."""
    rotations, translations = list(pose.rotations), list(pose.translations)
    for j in joints:
        rotations[j] = slerp(rotations[j], base.rotations[j], BACK).freeze()
        if skeleton.joints[j].slides:
            translations[j] = translations[j].lerp(base.translations[j], BACK).freeze()
    return Pose.trusted(tuple(rotations), tuple(translations))


def _stepped(model: LevelModel, joints: Collection[int], solver: SolverSettings) -> Pose:
    """The pose of a model after a few steps of least squares, inside comfort regions if that is enough."""
    skeleton, start = model.skeleton, model.pose
    limits = [joint.limit for joint in skeleton.joints]
    descent = Descent(solver.position_tolerance, solver.angle_tolerance, solver.max_iterations)

    regions = [_preferred(joint, solver) for joint in skeleton.joints]
    if regions != limits:
        problem = PoseProblem(skeleton, model.goals, regions, joints)
        start = refined(problem, start, descent).pose
        if not problem.residual(start).missed(descent.position_tolerance, descent.angle_tolerance).any():
            return model.back(start)
    return model.back(refine(skeleton, start, model.goals, limits, descent, joints))


def _preferred(joint: Joint, solver: SolverSettings) -> Limit | None:
    """What a joint may do as long as its goals are met."""
    if solver.comfort and joint.comfort is not None and joint.comfort.region is not None:
        return joint.comfort.region
    return joint.limit


def _tolerance(joint: Joint) -> float:
    return joint.comfort.tolerance if joint.comfort is not None else 0.0
