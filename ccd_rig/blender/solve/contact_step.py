# SPDX-License-Identifier: GPL-3.0-or-later
"""What all ways to solve a frame with planted bones share.

That is what is known of the frame before it is solved, and what goes on from frame to frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mathutils import Quaternion

from ...maths.batch import Array
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ..properties.constraint_values import Constraint
from ..scene.evaluation import FrameSample
from ..scene.targets import TargetSample
from . import solving
from .contact_changes import anchor_of, let_go, lifted, turned_between
from .contact_poses import FigureBones, JointPoses, drifted, turned
from .planting import ContactState, PlantAnchor, SupportChains
from .solving import Solution


@dataclass(frozen=True)
class ContactStep:
    """What is known of a frame before it is solved."""

    sample: FrameSample
    constraints: Sequence[Constraint]
    support_chains: SupportChains
    planted: tuple[int, ...]
    anchors: Mapping[int, PlantAnchor]
    world: Array
    before: ContactState | None

    @property
    def skeleton(self) -> Skeleton:
        return self.sample.reading.skeleton

    @property
    def active(self) -> tuple[int, ...]:
        """Constraints in force."""
        return self.sample.active

    def held_targets(self) -> tuple[TargetSample, ...]:
        """The targets of all constraints, those of planted bones where these are held."""
        targets = list(self.sample.targets)
        for c in self.planted:
            targets[c] = self.anchors[c].seen(self.world)
        return tuple(targets)

    def influences_of(self, moves: Mapping[int, set[int]]) -> dict[int, float]:
        """Of each joint that is moved the largest influence, given the joints that each constraint moves."""
        influences: dict[int, float] = {}
        for c, joints in moves.items():
            for j in joints:
                influences[j] = max(influences.get(j, 0.0), self.sample.influences[c])
        return influences


def with_parts(step: ContactStep, pose: Pose, planted: Sequence[int]) -> ContactStep:
    """The step with those parts of planted bones that are not held where a pose has them."""
    anchors = dict(step.anchors)
    for c in planted:
        row = step.constraints[c]
        if not all(row.holds):
            animated = anchor_of(row.tip, step.skeleton, pose, step.world)
            anchors[c] = anchors[c].held(animated, row.holds)
    return replace(step, anchors=anchors)


@dataclass(frozen=True)
class Continued:
    """The animated pose with what was let go moved on from where it stood."""

    pose: Pose
    turns: Mapping[int, Quaternion]
    drift: Array


def continue_from_before(step: ContactStep, moved: frozenset[int]) -> Continued:
    """Where legs and root bone are if nothing moves them in this frame."""
    animated, before, root_bone = step.sample.reading.pose, step.before, step.support_chains.root_bone
    if before is None:
        return Continued(animated, {}, np.eye(4))
    turns = {**before.turns, **let_go(before, moved, root_bone)}
    drift = before.drift if step.planted else lifted(step.skeleton, before, root_bone)
    poses, bones = JointPoses.of([animated]), FigureBones.of(step.skeleton)
    turned(poses.rotations, turns, [joint.limit for joint in step.skeleton.joints])
    drifted(poses, bones, root_bone, step.world[None], drift)
    return Continued(poses.pose(0), turns, drift)


def start_pose(
    step: ContactStep, continued: Continued, before: Solution | None, moves: Mapping[int, set[int]]
) -> Pose:
    """What the solve starts from: joints that were moved already where they were, others as they go on."""
    if before is None or step.before is None:
        return continued.pose
    legs = {*step.support_chains.joints, step.support_chains.root_bone}
    known = step.before.moved | {j for c, js in moves.items() if c in before.active for j in js - legs}
    joints = {j for js in moves.values() for j in js} & known
    return solving.continue_from(step.skeleton, continued.pose, before.pose, joints)


def keyed_pose(
    step: ContactStep, continued: Continued, solved: Pose, influences: Mapping[int, float]
) -> Pose:
    """The solved pose as far as influence goes, and what goes on where nothing moves it."""
    return turned_between(step.skeleton, continued.pose, solved, influences)


def contact_state_of(
    step: ContactStep, base: int, keyed: Pose, continued: Continued, moved: frozenset[int]
) -> ContactState:
    return ContactState(
        step.support_chains,
        base,
        step.anchors,
        keyed,
        step.sample.reading.pose,
        step.world,
        moved,
        continued.turns,
        continued.drift,
        step.sample.frame,
    )
