# SPDX-License-Identifier: GPL-3.0-or-later
"""One frame with planted bones below a body that keeps its animation.

Nothing is hung up: planted bones are goals of the skeleton as it is, held before all else, and a leg that
nothing moves any more goes back to its animation within `RETURN` frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from mathutils import Quaternion

from ...skeleton.pose import Pose
from ..properties.constraint_values import Kind
from . import solving
from .constraint_goals import chain_joints
from .contact_changes import SHARPER, released_joints
from .contact_poses import JointPoses, returning
from .contact_step import ContactStep, Continued, contact_state_of, keyed_pose, start_pose, with_parts
from .solving import FrameConditions, Solution


def solve_below_kept_body(
    step: ContactStep, conditions: FrameConditions, before: Solution | None
) -> Solution:
    """The root bone does not turn in this skeleton: legs bring planted bones to where they are held."""
    skeleton, active = step.skeleton, step.active
    tips = [step.constraints[c].tip for c in step.planted]
    twice = {c for k, c in enumerate(step.planted) if tips[k] in tips[:k]}  # the first of them holds the bone
    later = 1 if step.planted else 0
    rows = tuple(
        row if row.kind is Kind.PLANT and c not in twice else replace(row, priority=row.priority + later)
        for c, row in enumerate(step.constraints)
    )
    moves = {c: set(chain_joints(skeleton, rows[c])) for c in active}
    influences = step.influences_of(moves)
    moved = frozenset(influences) & frozenset(step.support_chains.joints)
    released = (
        {}
        if step.before is None
        else released_joints(step.before, moved, step.support_chains.root_bone, step.sample.frame)
    )
    continued = Continued(_returning(step, released), {}, np.eye(4))
    if not active:
        contact_state = replace(
            contact_state_of(step, -1, continued.pose, continued, moved), released=released
        )
        return Solution(continued.pose, (), None, (), contact_state)
    start = start_pose(step, continued, before, moves)
    step = with_parts(step, _unmoved(step, continued.pose), planted=step.planted)
    sample = step.sample._replace(targets=step.held_targets())
    result, states = solving.solve_active(sample, rows, active, start, conditions, SHARPER)
    keyed = keyed_pose(step, continued, result.pose, influences)
    contact_state = replace(contact_state_of(step, -1, keyed, continued, moved), released=released)
    return Solution(result.pose, active, result, states, contact_state)


def _unmoved(step: ContactStep, pose: Pose) -> Pose:
    """The pose with the body where it was before it was moved so that legs reach."""
    if step.sample.unmoved is None:
        return pose
    root_bone, translations = step.support_chains.root_bone, list(pose.translations)
    translations[root_bone] = step.sample.unmoved.translations[root_bone]
    return Pose(pose.rotations, tuple(translations))


def _returning(step: ContactStep, released: Mapping[int, tuple[float, Quaternion]]) -> Pose:
    """The animated pose, but for joints on their way back to it."""
    poses = JointPoses.of([step.sample.reading.pose])
    limits = [joint.limit for joint in step.skeleton.joints]
    returning(poses.rotations, np.array([step.sample.frame]), released, limits)
    return poses.pose(0)
