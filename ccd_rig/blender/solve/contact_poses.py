# SPDX-License-Identifier: GPL-3.0-or-later
"""Poses of a figure with planted bones, at many frames at once: what was let go, and where the root bone is.

In the shapes R counts frames, J joints. Rotations and translations are relative to rest, and all is in
double precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from mathutils import Quaternion, Vector

from ...limits.batch import BatchLimits
from ...limits.shapes import Limit
from ...maths.batch import Array, conjugate, inverse, matrices, multiply, quaternions, rotate, slerp, unit
from ...skeleton.joints import Skeleton
from ...skeleton.kinematics import forward_kinematics_of_frames
from ...skeleton.pose import Pose
from ..scene.targets import TargetSample

RETURN = 8.0
"""Frames in which a leg that was let go goes back to its animation, where the body keeps its own."""


class JointPoses(NamedTuple):
    """Poses of all joints at R frames: (R, J, 4) rotations and (R, J, 3) translations."""

    rotations: Array
    translations: Array

    @classmethod
    def of(cls, poses: Sequence[Pose]) -> JointPoses:
        """Poses as arrays."""
        rotations = np.array([[q[:] for q in pose.rotations] for pose in poses], dtype=np.float64)
        translations = np.array([[t[:] for t in pose.translations] for pose in poses], dtype=np.float64)
        return cls(rotations, translations)

    def pose(self, row: int) -> Pose:
        """That of one frame."""
        rotations, translations = self.rotations[row].tolist(), self.translations[row].tolist()
        return Pose.trusted(
            tuple([Quaternion(each).freeze() for each in rotations]),
            tuple([Vector(each).freeze() for each in translations]),
        )

    def at(self, rows: object) -> JointPoses:
        """A copy of those of some frames."""
        return JointPoses(self.rotations[rows].copy(), self.translations[rows].copy())  # type: ignore[index]

    def put(self, rows: object, other: JointPoses) -> None:
        """Replace those of some frames."""
        self.rotations[rows], self.translations[rows] = other  # type: ignore[index]


class FigureBones(NamedTuple):
    """Where joints are at rest: (R or 1, J, 3) offsets and (R or 1, J, 4) unit rest rotations."""

    skeleton: Skeleton
    offsets: Array
    rests: Array

    @classmethod
    def of(cls, skeleton: Skeleton) -> FigureBones:
        """At one frame."""
        offsets = np.array([[joint.offset[:] for joint in skeleton.joints]])
        rests = np.array([[joint.rest_rotation[:] for joint in skeleton.joints]])
        return cls(skeleton, offsets, unit(rests, axis=-1))

    def at(self, rows: object) -> FigureBones:
        """Those at some frames."""
        if len(self.offsets) == 1:
            return self
        return FigureBones(self.skeleton, self.offsets[rows], self.rests[rows])  # type: ignore[index]

    def transforms(self, poses: JointPoses) -> tuple[Array, Array]:
        """(R, J, 3) heads and (R, J, 4) rotations in armature space."""
        rotations = unit(poses.rotations, axis=-1)
        return forward_kinematics_of_frames(
            self.skeleton, self.offsets, self.rests, rotations, poses.translations
        )


def turned(rotations: Array, turns: Mapping[int, Quaternion], limits: Sequence[Limit | None]) -> None:
    """Turn joints of (R, J, 4) rotations beside their animation, inside their limits; in place."""
    if turns:
        joints = list(turns)
        added = np.array([turns[j][:] for j in joints]).T[..., None]
        own = rotations[:, joints].transpose(2, 1, 0)
        rotations[:, joints] = _allowed(unit(multiply(added, own)), limits, joints).transpose(2, 1, 0)


def returning(
    rotations: Array,
    frames: Array,
    released: Mapping[int, tuple[float, Quaternion]],
    limits: Sequence[Limit | None],
) -> None:
    """Let joints of (R, J, 4) rotations that were let go return to their animation; in place.

    Args:
        rotations: as animated.
        frames: (R,)
        released: of a joint the frame in which it was moved last, and what it was turned by then.
        limits: of all joints.
    """
    for j, (last, turn) in released.items():
        rows = np.flatnonzero(frames - last < RETURN)
        part = (frames[rows] - last) / RETURN
        whole = unit(np.array(turn[:]))[:, None].repeat(len(rows), axis=1)
        rest = np.zeros_like(whole)
        rest[0] = 1.0
        left = slerp(whole, rest, part * part * (3.0 - 2.0 * part))
        back = unit(multiply(left, rotations[rows, j].T))
        rotations[rows, j] = _allowed(back[:, None], limits, [j])[:, 0].T


def blended(base: Array, solved: Array, influences: Array, limits: Sequence[Limit | None]) -> Array:
    """(R, J, 4) from base to solved rotations as far as (R, J) influences say, inside the limits."""
    found = np.where(influences[..., None] >= 1.0, solved, base)
    partly = (influences > 0.0) & (influences < 1.0)
    for j in np.flatnonzero(partly.any(0)).tolist():
        rows = np.flatnonzero(partly[:, j])
        ways = unit(base[rows, j].T), unit(solved[rows, j].T)
        part = slerp(*ways, influences[rows, j])
        found[rows, j] = _allowed(part[:, None], limits, [j])[:, 0].T
    return found


def _allowed(rotations: Array, limits: Sequence[Limit | None], joints: Sequence[int]) -> Array:
    """(4, K, R) rotations of these joints inside their limits."""
    return BatchLimits([limits[j] for j in joints]).project(rotations)[0]


# The root bone ----------------------------------------------------------------------------------------------


def drifted(poses: JointPoses, bones: FigureBones, root_bone: int, worlds: Array, drift: Array) -> None:
    """Move the root bone beside its animation; in place.

    Args:
        poses: as animated.
        bones: of the same frames.
        root_bone: a root.
        worlds: (R, 4, 4) from armature space to the world.
        drift: (4, 4) in the world.
    """
    if np.array_equal(drift, np.eye(4)):
        return
    offsets, rests = bones.offsets[:, root_bone], bones.rests[:, root_bone]
    frames = matrices(multiply(*np.broadcast_arrays(rests.T, poses.rotations[:, root_bone].T)))
    heads = offsets + rotate(rests, poses.translations[:, root_bone], axis=-1)
    moves = inverse(worlds) @ drift @ worlds
    axes = moves[:, :3, :3] @ frames.transpose(2, 0, 1)
    heads = np.einsum("rij,rj->ri", moves[:, :3, :3], heads) + moves[:, :3, 3]
    put_root(poses, bones, root_bone, (heads, _upright(axes)))


def placed(
    poses: JointPoses,
    bones: FigureBones,
    root_bone: int,
    tips: Sequence[int] | int,
    targets: tuple[Array, Array],
) -> None:
    """Put the root bone where one planted bone of each frame is held; in place.

    In quaternions and double precision: the bone moves by no more than the rounding of the keys.

    Args:
        poses: of the frames.
        bones: of the same frames.
        root_bone: a root that carries the planted bones.
        tips: (R,) the planted bone of each frame, or one for all.
        targets: (R, 3) heads and (R, 4) unit rotations where it is held, armature space.
    """
    heads, axes = bones.transforms(poses)
    rows = np.arange(len(heads))
    turn = multiply(targets[1].T, conjugate(axes[rows, tips].T))
    lever = heads[rows, root_bone] - heads[rows, tips]
    head = targets[0] + rotate(turn, lever.T).T
    put_root(poses, bones, root_bone, (head, multiply(turn, axes[rows, root_bone].T).T))


def targets_of(samples: Sequence[TargetSample]) -> tuple[Array, Array]:
    """(R, 3) points and (R, 4) unit rotations of targets, all of which have a rotation."""
    points = np.array([sample.point[:] for sample in samples])
    rotations = np.array([() if sample.rotation is None else sample.rotation[:] for sample in samples])
    return points, unit(rotations, axis=-1)


def put_root(poses: JointPoses, bones: FigureBones, root_bone: int, to: tuple[Array, Array]) -> None:
    """Put the root bone, a root, at (R, 3) heads with (R, 4) rotations in armature space; in place."""
    back = np.broadcast_to(conjugate(bones.rests[:, root_bone].T), to[1].T.shape)
    poses.rotations[:, root_bone] = unit(multiply(back, to[1].T)).T
    shift = to[0] - bones.offsets[:, root_bone]
    poses.translations[:, root_bone] = rotate(back, shift.T).T


def _upright(axes: Array) -> Array:
    """(R, 4) rotations of (R, 3, 3) axes that stay unsheared, as near as can be; see `planting.upright`."""
    y, z = axes[..., 1], axes[..., 2]
    y = y / np.linalg.norm(y, axis=-1, keepdims=True)
    z = z - y * (y * z).sum(-1, keepdims=True)
    z = z / np.linalg.norm(z, axis=-1, keepdims=True)
    straight = np.stack((np.cross(y, z), y, z), axis=-1)
    return unit(quaternions(straight.transpose(1, 2, 0))).T
