"""How the constraints of a take stand in a motion, at all frames: distances, angles, and the largest turn.

See `bake_frames` for the letters in the shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mathutils import Quaternion, Vector

from ...goals import measure
from ...motion import interpolation
from ...motion.interpolation import Array
from ...skeleton.kinematics import Transform
from ..properties.constraint_values import Constraint
from ..solve.constraint_goals import goals
from .bake_frames import BakeFrames, Motion, number


def residuals(take: BakeFrames, motion: Motion) -> tuple[Array, Array]:
    """(F, C) distances from the targets in world metres, and angles in radians; 0 where none is asked.

    The core measures angles; distances are brought to world metres whatever the armature object's scale.
    """
    return errors(take, *transforms(take, motion))


def transforms(take: BakeFrames, motion: Motion) -> tuple[Array, Array]:
    """(F, J, 3) heads and (F, J, 4) rotations in armature space."""
    joints = take.skeleton.joints
    return interpolation.kinematics(
        [joint.parent for joint in joints],
        [joint.inherit_rotation for joint in joints],
        _constant(take.offsets),
        interpolation.unit(_constant(take.rests)),
        interpolation.unit(motion.rotations),
        _constant(motion.translations),
    )


def errors(take: BakeFrames, heads: Array, turned: Array) -> tuple[Array, Array]:
    """As `residuals`, of joints wherever they are: (F, J, 3) heads and (F, J, 4) rotations."""
    distances, angles = np.zeros_like(take.influences), np.zeros_like(take.influences)
    for c, constraint in enumerate(take.constraints):
        if constraint.kind == "BALANCE" or constraint.use_position:
            places = points(take, constraint, heads, turned)
            apart = places - np.array([aims[c].point[:] for aims in take.targets])
            # The difference goes to world axes, not each point: far from the origin nothing is lost.
            apart = np.einsum("fij,fj->fi", take.worlds, apart)
            if constraint.kind == "BALANCE":
                apart = apart * np.array(constraint.balance_axes)
            distances[:, c] = np.linalg.norm(apart, axis=-1)
        if constraint.kind != "BALANCE" and (constraint.rotation != "NONE" or constraint.pole_target):
            for f in np.flatnonzero(take.influences[:, c] > 0.0):
                angles[f, c] = _angle(take, int(f), c, heads[f], turned[f])
    return distances, angles


def points(take: BakeFrames, constraint: Constraint, heads: Array, turned: Array) -> Array:
    """(F, 3): what the constraint brings to its target, the tip's end or the centre of mass."""
    if constraint.kind == "BALANCE":
        masses = np.array([joint.mass for joint in take.skeleton.joints])
        middles = heads + interpolation.rotate(turned, _along(0.5 * take.lengths))
        centre: Array = np.einsum("j,fji->fi", masses / masses.sum(), middles)
        return centre
    tip = take.skeleton.index(constraint.tip)
    if not constraint.use_tail and not any(constraint.effector_offset):
        return np.asarray(heads[:, tip])
    ends = _along(take.lengths[:, tip] * constraint.use_tail) + np.array(constraint.effector_offset)
    return np.asarray(heads[:, tip] + interpolation.rotate(turned[:, tip], ends))


def largest_rotation(
    take: BakeFrames, motion: Motion, joints: Sequence[int]
) -> tuple[float, float, str] | None:
    """Radians per frame, frame and bone of the largest turn from one keyed frame to the next; None for
    one frame."""
    if len(take.frames) < 2 or not joints:
        return None
    turns = interpolation.unit(motion.rotations[:, list(joints)])
    angles = interpolation.angles_between(turns[:-1], turns[1:]) / np.diff(take.frames)[:, None]
    f, j = np.unravel_index(int(np.argmax(angles)), angles.shape)
    return float(angles[f, j]), number(take.frames[f + 1]), take.skeleton.joints[joints[j]].name


def _angle(take: BakeFrames, f: int, c: int, heads: Array, turned: Array) -> float:
    """The largest angle that the goals of a constraint are off at a frame."""
    skeleton = take.skeleton
    lengths = {
        joint.name: {"length": float(length)}
        for joint, length in zip(skeleton.joints, take.lengths[f], strict=True)
        if joint.length != length
    }
    if lengths:  # animated scale
        skeleton = skeleton.replace(lengths)
    chain = skeleton.chain(take.constraints[c].tip, take.constraints[c].chain_length)
    here: Any = {j: Transform(Vector(heads[j]), Quaternion(turned[j])) for j in chain}
    asked = goals(skeleton, take.constraints[c], take.targets[f][c])
    return max(measure(goal, skeleton, here).angle for goal in asked)


def _along(lengths: Array) -> Array:
    """(..., 3) vectors of these lengths (...) along bones."""
    vectors = np.zeros((*lengths.shape, 3))
    vectors[..., 1] = lengths
    return vectors


def _constant(values: Array) -> Array:
    """(1, ...) of what is the same at all frames (F, ...), anything else as it is."""
    return values[:1] if (values == values[:1]).all() else values
