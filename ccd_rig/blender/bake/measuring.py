"""How a bake's constraints stand in a motion, at all frames: distances, angles, and the largest rotation.

Errors are measured by forward kinematics on the poses that are keyed, in world metres and radians. See
`bake_frames` for the letters in the shapes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...maths import batch
from ...maths.batch import Array, Mask
from ...settings import SolverSettings
from ...skeleton.kinematics import forward_kinematics_of_frames
from ...solvers.pose_search import PoseSearch
from ...solvers.stepping import Work
from ..properties.constraint_values import Constraint, Kind
from ..solve.constraint_goals import goal_targets, goals
from .bake_frames import BakeFrames, Motion, Rows
from .keyed_motion import KeyedMotion
from .report_parts import number


def residuals(bake_frames: BakeFrames, motion: Motion) -> Work[tuple[Array, Array]]:
    """(F, C) distances from the targets in world metres, and angles in radians; 0 where none is asked.

    An item comes after each constraint.

    The core measures angles; distances are brought to world metres whatever the armature object's scale.
    """
    return (yield from errors(bake_frames, *transforms(bake_frames, motion)))


def misses(motion: KeyedMotion, solver: SolverSettings) -> Work[tuple[Array, Array, Mask]]:
    """What constraints miss of what they ask for, and which of them others carry off their targets.

    A constraint at full influence asks for its target in what plays: others may carry its chain part of the
    way alone, and then it is not reached, whatever the solve met. One of less influence asks at full.

    Args:
        motion: measured before keys are left out, whose error is stated apart.
        solver: tolerances in world metres and radians.

    Returns:
        (F, C) distances in world metres, (F, C) angles in radians, (F, C) which are met at full alone.
    """
    bake_frames = motion.bake_frames
    at_full = yield from residuals(bake_frames, motion.full)
    if all(np.array_equal(a, b) for a, b in zip(motion.blended, motion.full, strict=True)):
        return *at_full, np.zeros(at_full[0].shape, np.bool_)
    blended = yield from residuals(bake_frames, motion.blended)
    is_off, was_off = (
        (distances > solver.position_tolerance) | (angles > solver.angle_tolerance)
        for distances, angles in (blended, at_full)
    )
    whole = bake_frames.influences >= 1.0
    distances, angles = (np.where(whole, a, b) for a, b in zip(blended, at_full, strict=True))
    return distances, angles, whole & is_off & ~was_off


def transforms(bake_frames: BakeFrames, motion: Motion) -> tuple[Array, Array]:
    """(F, J, 3) heads and (F, J, 4) rotations in armature space."""
    return forward_kinematics_of_frames(
        bake_frames.skeleton,
        _constant(bake_frames.offsets),
        batch.unit(_constant(bake_frames.rests), axis=-1),
        batch.unit(motion.rotations, axis=-1),
        _constant(motion.translations),
    )


def errors(bake_frames: BakeFrames, heads: Array, axes: Array) -> Work[tuple[Array, Array]]:
    """As `residuals`, of joints wherever they are: (F, J, 3) heads and (F, J, 4) rotations."""
    distances, angles = np.zeros_like(bake_frames.influences), np.zeros_like(bake_frames.influences)
    for c, constraint in enumerate(bake_frames.constraints):
        yield
        if constraint.kind is Kind.BALANCE or constraint.use_position:
            reached = points(bake_frames, constraint, heads, axes)
            misses = reached - np.array([targets[c].point[:] for targets in bake_frames.targets])
            # The difference goes to world axes, not each point: far from the origin nothing is lost.
            misses = np.einsum("fij,fj->fi", bake_frames.worlds, misses)
            if constraint.kind is Kind.BALANCE:
                misses = misses * np.array(constraint.balance_axes)
            distances[:, c] = np.linalg.norm(misses, axis=-1)
        if constraint.kind is not Kind.BALANCE and (constraint.rotation != "NONE" or constraint.pole_target):
            in_force = np.flatnonzero(bake_frames.influences[:, c] > 0.0)
            if len(in_force):
                angles[in_force, c] = _angles(bake_frames, c, in_force, heads, axes)
    return distances, angles


def points(bake_frames: BakeFrames, constraint: Constraint, heads: Array, axes: Array) -> Array:
    """(F, 3): what the constraint brings to its target, the tip's end or the centre of mass."""
    if constraint.kind is Kind.BALANCE:
        masses = np.array([joint.mass for joint in bake_frames.skeleton.joints])
        middles = heads + batch.rotate(axes, _along(0.5 * bake_frames.lengths), axis=-1)
        centre: Array = np.einsum("j,fji->fi", masses / masses.sum(), middles)
        return centre
    tip = bake_frames.skeleton.index(constraint.tip)
    if not constraint.use_tail and not any(constraint.effector_offset):
        return np.asarray(heads[:, tip])
    ends = _along(bake_frames.lengths[:, tip] * constraint.use_tail) + np.array(constraint.effector_offset)
    return np.asarray(heads[:, tip] + batch.rotate(axes[:, tip], ends, axis=-1))


def largest_rotation(
    bake_frames: BakeFrames, motion: Motion, joints: Sequence[int]
) -> tuple[float, float, str] | None:
    """Radians per frame, frame and bone of the largest rotation from one keyed frame to the next; None for
    one frame."""
    if len(bake_frames.frames) < 2 or not joints:
        return None
    rotations = batch.unit(motion.rotations[:, list(joints)], axis=-1)
    angles = (
        batch.angles_between(rotations[:-1], rotations[1:], axis=-1) / np.diff(bake_frames.frames)[:, None]
    )
    f, j = np.unravel_index(int(np.argmax(angles)), angles.shape)
    return float(angles[f, j]), number(bake_frames.frames[f + 1]), bake_frames.skeleton.joints[joints[j]].name


def _angles(bake_frames: BakeFrames, c: int, rows: Rows, heads: Array, axes: Array) -> Array:
    """(R,) the largest angle that the goals of a constraint are off at rows.

    Only joints that move the tip are looked at.
    """
    constraint, angles = bake_frames.constraints[c], np.zeros(len(rows))
    joints = list(bake_frames.skeleton.chain(constraint.tip))
    places = np.ix_(rows, joints)
    lengths, heads, axes = bake_frames.lengths[places], heads[places], axes[places]
    for alike in _equal_rows(lengths):
        skeleton = bake_frames.skeleton.part(joints)
        changed = {
            joint.name: {"length": float(length)}
            for joint, length in zip(skeleton.joints, lengths[alike[0]], strict=True)
            if joint.length != length
        }
        if changed:  # animated scale
            skeleton = skeleton.replace(changed)
        samples = [bake_frames.targets[f][c] for f in rows[alike].tolist()]
        asked = goals(skeleton, constraint, samples[0])
        search = PoseSearch(skeleton, asked, SolverSettings(), ())
        targets = [goal_targets(goal, samples).T for goal in asked]
        angles[alike] = search.measure(heads[alike], axes[alike], targets)[1].max(axis=1)
    return angles


def _equal_rows(values: Array) -> list[Rows]:
    """The rows of (R, K) in groups of equal ones."""
    if (values == values[:1]).all():
        return [np.arange(len(values))]
    which = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    return [np.flatnonzero(which == k) for k in range(int(which.max()) + 1)]


def _along(lengths: Array) -> Array:
    """(..., 3) vectors of these lengths (...) along bones."""
    vectors = np.zeros((*lengths.shape, 3))
    vectors[..., 1] = lengths
    return vectors


def _constant(values: Array) -> Array:
    """(1, ...) of what is the same at all frames (F, ...), anything else as it is."""
    return values[:1] if (values == values[:1]).all() else values
