# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames with planted bones: Kenwright 2012, section 13, the base swapped from foot to foot.

While something is planted, the first planted row's bone is the base: the skeleton is hung up on it, the
others that are planted are held as goals before all else, every other constraint is solved on top, and the
pose is brought back to the armature, whose root bone gets what is left.

What is let go goes on from where it stands, moved as it is animated: the root bone once nothing is planted,
and a leg once nothing moves it. So neither a swap nor a lift makes the figure jump.

Where the body keeps its animation nothing is hung up: planted bones are goals of the skeleton as it is, held
before all else, and a leg that nothing moves any more goes back to its animation within `RETURN` frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mathutils import Quaternion

from ...goals import GoalError
from ...maths.batch import Array
from ...settings import SolveResult, SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import Transform, forward_kinematics
from ...skeleton.pose import Pose
from ...skeleton.rerooting import reroot, restore_root, reversed_name
from ..properties.constraint_values import Constraint, Kind
from ..scene.evaluation import FrameSample
from ..scene.targets import TargetSample
from . import solving
from .constraint_goals import chain_joints
from .contact_poses import (
    RETURN,
    FigureBones,
    JointPoses,
    blended,
    drifted,
    placed,
    returning,
    targets_of,
    turned,
)
from .planting import (
    ContactState,
    PlantAnchor,
    SupportChains,
    homogeneous,
    inverse,
    moved_bones,
    rerooted_constraints,
    support_chains,
)
from .solving import FrameConditions, FrameSolveSettings, Solution

SHARPER = 0.1
"""Part of the tolerances to which a planted figure is solved: of planted bones beside the base what is left
of it slides, and where one more is planted all others would make up for it."""


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
    step = _Step(sample, constraints, chains, planted, anchors, world, contact_state)
    if chains.keeps_body:
        return _below_a_kept_body(step, conditions, before)
    return _on_a_base(step, conditions, before) if planted else _in_the_air(step, conditions, before)


@dataclass(frozen=True)
class _Step:
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


def anchor_of(tip: str, skeleton: Skeleton, pose: Pose, world: Array) -> PlantAnchor:
    """Where a bone is in a pose, given with (4, 4) from armature space to the world at that time."""
    return PlantAnchor.of(forward_kinematics(skeleton, pose)[skeleton.index(tip)], world)


def target_anchor(c: int, sample: FrameSample, world: Array) -> PlantAnchor | None:
    """Where the target of a planted bone is; None if it has none."""
    target = sample.targets[c]
    if target.rotation is None:
        return None
    return PlantAnchor.of(Transform(target.point, target.rotation), world)


def unplanted_pose(
    sample: FrameSample,
    constraints: Sequence[Constraint],
    planted: Sequence[int],
    conditions: FrameConditions,
) -> Pose:
    """The pose in which planted bones are found where no frame was solved before.

    It is the evaluated one, with each chain that carries a planted bone brought to where the other
    constraints of its joints would have it, had nothing been planted.
    """
    skeleton, start = sample.reading.skeleton, sample.unmoved or sample.reading.pose
    held = [constraints[c] for c in planted if sample.targets[c].rotation is None]
    legs = {j for row in held for j in skeleton.chain(row.tip, row.chain_length)[1:]}
    active = [
        c
        for c, row in enumerate(constraints)
        if row.kind is Kind.REACH and sample.unplanted[c] > 0.0 and legs & set(chain_joints(skeleton, row))
    ]
    if not active:
        return start
    result, _ = solving.solve_active(sample, constraints, active, start, conditions, SHARPER)
    joints = {j: 0.0 for c in active for j in chain_joints(skeleton, constraints[c])}
    for c in active:
        for j in chain_joints(skeleton, constraints[c]):
            joints[j] = max(joints[j], sample.unplanted[c])
    return _between(skeleton, start, result.pose, joints)


# What was let go --------------------------------------------------------------------------------------------


def let_go(before: ContactState, moved: frozenset[int], root_bone: int) -> dict[int, Quaternion]:
    """Joints that nothing moves any more, with what they are turned by beside their animation."""
    return {
        j: (before.pose.rotations[j] @ before.animated.rotations[j].conjugated()).normalized()
        for j in before.moved - moved - {root_bone}
    }


def lifted(skeleton: Skeleton, before: ContactState, root_bone: int) -> Array:
    """(4, 4) in the world: what the root bone is moved by beside its animation once nothing is planted."""
    if before.base < 0:
        return before.drift
    solved, animated = (
        before.world @ homogeneous(forward_kinematics(skeleton, pose)[root_bone])
        for pose in (before.pose, before.animated)
    )
    return solved @ inverse(animated)


def released_joints(
    before: ContactState, moved: frozenset[int], root_bone: int, frame: float
) -> dict[int, tuple[float, Quaternion]]:
    """Joints that nothing moves any more and that are not back yet; see `ContactState.released`."""
    released = {j: at for j, at in before.released.items() if j not in moved and frame - at[0] < RETURN}
    return released | {j: (before.frame, turn) for j, turn in let_go(before, moved, root_bone).items()}


# On a planted bone ------------------------------------------------------------------------------------------


def _on_a_base(step: _Step, conditions: FrameConditions, before: Solution | None) -> Solution:
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
    continued = _continued(step, moved)
    step = _with_parts(step, continued.pose, planted=step.planted[:1])
    start = _placed(step, _start(step, continued, before, moves))
    step = _with_parts(step, start, planted=step.planted[1:])
    rerooted, rerooted_start = reroot(skeleton, start, tip)
    reading = replace(step.sample.reading, skeleton=rerooted, pose=rerooted_start)
    sample = step.sample._replace(reading=reading, targets=step.held_targets())
    if active:
        result, states = solving.solve_active(sample, rows, active, rerooted_start, conditions, SHARPER)
    else:
        result, states = SolveResult(rerooted_start, SolveStatus.CONVERGED, 0, ()), ()
    solved = _placed(step, _restored(skeleton, rerooted, (start, rerooted_start), result.pose))
    keyed = _placed(step, _blended(step, continued, solved, influences))
    ended = dict(zip(active, zip(result.errors, states, strict=True), strict=True))
    ended[base] = GoalError(0.0, 0.0), SolveStatus.CONVERGED.name
    order = step.active
    result = replace(result, pose=solved, errors=tuple(ended[c][0] for c in order))
    contact_state = _contact_state_of(step, base, keyed, continued, moved)
    return Solution(solved, order, result, tuple(ended[c][1] for c in order), contact_state)


def _with_parts(step: _Step, pose: Pose, planted: Sequence[int]) -> _Step:
    """The step with those parts of planted bones that are not held where a pose has them."""
    anchors = dict(step.anchors)
    for c in planted:
        row = step.constraints[c]
        if not all(row.holds):
            animated = anchor_of(row.tip, step.skeleton, pose, step.world)
            anchors[c] = anchors[c].held(animated, row.holds)
    return replace(step, anchors=anchors)


def _placed(step: _Step, pose: Pose) -> Pose:
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


def _in_the_air(step: _Step, conditions: FrameConditions, before: Solution | None) -> Solution:
    skeleton, active = step.skeleton, step.active
    moves = {c: set(chain_joints(skeleton, step.constraints[c])) for c in active}
    influences = step.influences_of(moves)
    moved = frozenset(influences) & {*step.support_chains.joints, step.support_chains.root_bone}
    continued = _continued(step, moved)
    if not active:
        return Solution(
            continued.pose, (), None, (), _contact_state_of(step, -1, continued.pose, continued, moved)
        )
    start = _start(step, continued, before, moves)
    result, states = solving.solve_active(step.sample, step.constraints, active, start, conditions)
    keyed = _blended(step, continued, result.pose, influences)
    contact_state = _contact_state_of(step, -1, keyed, continued, moved)
    return Solution(result.pose, active, result, states, contact_state)


# With a body that keeps its animation -----------------------------------------------------------------------


def _below_a_kept_body(step: _Step, conditions: FrameConditions, before: Solution | None) -> Solution:
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
    continued = _Continued(_returning(step, released), {}, np.eye(4))
    if not active:
        contact_state = replace(
            _contact_state_of(step, -1, continued.pose, continued, moved), released=released
        )
        return Solution(continued.pose, (), None, (), contact_state)
    start = _start(step, continued, before, moves)
    step = _with_parts(step, _unmoved(step, continued.pose), planted=step.planted)
    sample = step.sample._replace(targets=step.held_targets())
    result, states = solving.solve_active(sample, rows, active, start, conditions, SHARPER)
    keyed = _blended(step, continued, result.pose, influences)
    contact_state = replace(_contact_state_of(step, -1, keyed, continued, moved), released=released)
    return Solution(result.pose, active, result, states, contact_state)


def _unmoved(step: _Step, pose: Pose) -> Pose:
    """The pose with the body where it was before it was moved so that legs reach."""
    if step.sample.unmoved is None:
        return pose
    root_bone, translations = step.support_chains.root_bone, list(pose.translations)
    translations[root_bone] = step.sample.unmoved.translations[root_bone]
    return Pose(pose.rotations, tuple(translations))


def _returning(step: _Step, released: Mapping[int, tuple[float, Quaternion]]) -> Pose:
    """The animated pose, but for joints on their way back to it."""
    poses = JointPoses.of([step.sample.reading.pose])
    limits = [joint.limit for joint in step.skeleton.joints]
    returning(poses.rotations, np.array([step.sample.frame]), released, limits)
    return poses.pose(0)


# From frame to frame ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Continued:
    """The animated pose with what was let go moved on from where it stood."""

    pose: Pose
    turns: Mapping[int, Quaternion]
    drift: Array


def _continued(step: _Step, moved: frozenset[int]) -> _Continued:
    """Where legs and root bone are if nothing moves them in this frame."""
    animated, before, root_bone = step.sample.reading.pose, step.before, step.support_chains.root_bone
    if before is None:
        return _Continued(animated, {}, np.eye(4))
    turns = {**before.turns, **let_go(before, moved, root_bone)}
    drift = before.drift if step.planted else lifted(step.skeleton, before, root_bone)
    poses, bones = JointPoses.of([animated]), FigureBones.of(step.skeleton)
    turned(poses.rotations, turns, [joint.limit for joint in step.skeleton.joints])
    drifted(poses, bones, root_bone, step.world[None], drift)
    return _Continued(poses.pose(0), turns, drift)


def _start(
    step: _Step, continued: _Continued, before: Solution | None, moves: Mapping[int, set[int]]
) -> Pose:
    """What the solve starts from: joints that were moved already where they were, others as they go on."""
    if before is None or step.before is None:
        return continued.pose
    legs = {*step.support_chains.joints, step.support_chains.root_bone}
    known = step.before.moved | {j for c, js in moves.items() if c in before.active for j in js - legs}
    joints = {j for js in moves.values() for j in js} & known
    return solving.continue_from(step.skeleton, continued.pose, before.pose, joints)


def _blended(step: _Step, continued: _Continued, solved: Pose, influences: Mapping[int, float]) -> Pose:
    """The solved pose as far as influence goes, and what goes on where nothing moves it."""
    return _between(step.skeleton, continued.pose, solved, influences)


def _between(skeleton: Skeleton, base: Pose, solved: Pose, influences: Mapping[int, float]) -> Pose:
    """The base pose with joints turned as far to the solved one as their influence says."""
    poses, weights = JointPoses.of([base]), np.zeros((1, len(skeleton.joints)))
    for j, influence in influences.items():
        weights[0, j] = influence
    limits = [joint.limit for joint in skeleton.joints]
    rotations = blended(poses.rotations, JointPoses.of([solved]).rotations, weights, limits)
    return JointPoses(rotations, poses.translations).pose(0)


def _contact_state_of(
    step: _Step, base: int, keyed: Pose, continued: _Continued, moved: frozenset[int]
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
