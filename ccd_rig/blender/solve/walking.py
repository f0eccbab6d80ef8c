# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames with planted bones: Kenwright 2012, section 13, the base swapped from foot to foot.

While something is planted, the first planted row's bone is the base: the skeleton is hung up on it, the
others that are planted are held as goals before all else, every other constraint is solved on top, and the
pose is brought back to the armature, whose root bone gets what is left.

What is let go goes on from where it stands, moved as it is animated: the root bone once nothing is planted,
and a leg once nothing moves it. So neither a swap nor a lift makes the figure jump.

Where the body keeps its animation nothing is hung up: see `kept_body`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...goals import GoalError
from ...settings import SolveResult, SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...skeleton.rerooting import reroot, restore_root, reversed_name
from ..properties.constraint_values import Constraint
from ..scene.evaluation import FrameSample
from . import solving
from .constraint_goals import chain_joints
from .contact_changes import SHARPER, anchor_of, target_anchor, unplanted_pose
from .contact_poses import FigureBones, JointPoses, placed, targets_of
from .contact_step import (
    ContactStep,
    contact_state_of,
    continue_from_before,
    keyed_pose,
    start_pose,
    with_parts,
)
from .kept_body import solve_below_kept_body
from .planting import moved_bones, rerooted_constraints, support_chains
from .solving import FrameConditions, FrameSolveSettings, Solution


def solve_frame(
    sample: FrameSample,
    constraints: Sequence[Constraint],
    settings: FrameSolveSettings,
    before: Solution | None,
) -> Solution:
    """`solving.solve_frame`, with planted bones held; `Solution.contact_state` says how the figure stands."""
    skeleton = sample.reading.skeleton
    chains = support_chains(skeleton, constraints)
    if chains is None:
        return solving.solve_frame(sample, constraints, settings, before)
    contact_state = None if before is None else before.contact_state
    world = np.array(sample.matrix_world, dtype=np.float64)
    planted = tuple(c for c in chains.constraints if sample.influences[c] > 0.0)
    # A figure that stands keeps its pose: going home would move it where a base is swapped.
    conditions = solving.frame_conditions(sample, settings, contact_state is not None)
    if not chains.keeps_body:
        conditions = replace(conditions, reference=None)
    if contact_state is None:
        before_pose, before_world = unplanted_pose(sample, constraints, planted, conditions), world
    else:
        before_pose, before_world = contact_state.pose, contact_state.world
    held = {} if contact_state is None else contact_state.anchors
    anchors = {
        c: held.get(c) or anchor_of(constraints[c].tip, sample.reading.skeleton, before_pose, before_world)
        for c in planted
    }
    anchors |= {c: anchor for c in planted if (anchor := target_anchor(c, sample, world)) is not None}
    step = ContactStep(sample, constraints, chains, planted, anchors, world, contact_state)
    if chains.keeps_body:
        return solve_below_kept_body(step, conditions, before)
    return _on_a_base(step, conditions, before) if planted else _in_the_air(step, conditions, before)


# On a planted bone ------------------------------------------------------------------------------------------


def _on_a_base(step: ContactStep, conditions: FrameConditions, before: Solution | None) -> Solution:
    skeleton, base = step.skeleton, step.planted[0]
    tip = step.constraints[base].tip
    # What the skeleton becomes does not depend on the pose, so chains are known before there is one.
    rerooted, _ = reroot(skeleton, Pose.rest(skeleton), tip)
    rows = rerooted_constraints(skeleton, rerooted, step.constraints, step.planted)
    active = tuple(c for c in step.active if c != base)
    ends = {name: skeleton.index(name) for name in (joint.name for joint in skeleton.joints)}
    moves = {c: {ends[name] for name in moved_bones(rerooted, rows[c])} for c in active}
    influences = step.influences_of(moves)
    moved = frozenset(influences) & frozenset(step.support_chains.joints) | {step.support_chains.root_bone}
    continued = continue_from_before(step, moved)
    step = with_parts(step, continued.pose, planted=step.planted[:1])
    start = _placed(step, start_pose(step, continued, before, moves))
    step = with_parts(step, start, planted=step.planted[1:])
    rerooted, rerooted_start = reroot(skeleton, start, tip)
    reading = replace(step.sample.reading, skeleton=rerooted, pose=rerooted_start)
    sample = step.sample._replace(reading=reading, targets=step.held_targets())
    if active:
        result, states = solving.solve_active(sample, rows, active, rerooted_start, conditions, SHARPER)
    else:
        result, states = SolveResult(rerooted_start, SolveStatus.CONVERGED, 0, ()), ()
    solved = _placed(step, _restored(skeleton, rerooted, (start, rerooted_start), result.pose))
    keyed = _placed(step, keyed_pose(step, continued, solved, influences))
    ended = dict(zip(active, zip(result.errors, states, strict=True), strict=True))
    ended[base] = GoalError(0.0, 0.0), SolveStatus.CONVERGED.name
    order = step.active
    result = replace(result, pose=solved, errors=tuple(ended[c][0] for c in order))
    contact_state = contact_state_of(step, base, keyed, continued, moved)
    return Solution(solved, order, result, tuple(ended[c][1] for c in order), contact_state)


def _placed(step: ContactStep, pose: Pose) -> Pose:
    """The pose with the root bone where the base is held."""
    base, poses = step.planted[0], JointPoses.of([pose])
    held = targets_of([step.anchors[base].seen(step.world)])
    tip = step.skeleton.index(step.constraints[base].tip)
    placed(poses, FigureBones.of(step.skeleton), step.support_chains.root_bone, tip, held)
    return poses.pose(0)


def _restored(skeleton: Skeleton, rerooted: Skeleton, starts: tuple[Pose, Pose], solved: Pose) -> Pose:
    """A pose of the re-rooted skeleton as one of the original; joints that nothing turned stay to the bit.

    The starts are the same pose, of the original and of the re-rooted skeleton.
    """
    start, rerooted_start = starts
    restored = restore_root(skeleton, rerooted, solved)
    turned = {
        joint.name
        for joint, before, after in zip(
            rerooted.joints, rerooted_start.rotations, solved.rotations, strict=True
        )
        if before != after
    }
    rotations = []
    for j, joint in enumerate(skeleton.joints):
        same = turned.isdisjoint((joint.name, reversed_name(joint.name)))
        rotations.append(start.rotations[j] if same else joint.allowed(restored.rotations[j]).freeze())
    return Pose(tuple(rotations), restored.translations)


# With nothing planted ---------------------------------------------------------------------------------------


def _in_the_air(step: ContactStep, conditions: FrameConditions, before: Solution | None) -> Solution:
    skeleton, active = step.skeleton, step.active
    moves = {c: set(chain_joints(skeleton, step.constraints[c])) for c in active}
    influences = step.influences_of(moves)
    moved = frozenset(influences) & {*step.support_chains.joints, step.support_chains.root_bone}
    continued = continue_from_before(step, moved)
    if not active:
        return Solution(
            continued.pose, (), None, (), contact_state_of(step, -1, continued.pose, continued, moved)
        )
    start = start_pose(step, continued, before, moves)
    result, states = solving.solve_active(step.sample, step.constraints, active, start, conditions)
    keyed = keyed_pose(step, continued, result.pose, influences)
    contact_state = contact_state_of(step, -1, keyed, continued, moved)
    return Solution(result.pose, active, result, states, contact_state)
