"""What a bake has sampled and solved, as arrays over its frames, and what is keyed of it.

In the shapes below F counts the keyed frames, S the solved ones, J the joints and C the constraints. A frame
costs a few hundred bytes per joint. Rotations are relative to rest; positions are in armature space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from mathutils import Quaternion, Vector

from .. import sampling
from ..errors import RigError
from ..limits import Limit, clamp, contains
from ..sampling import Array
from ..skeleton import Pose, Skeleton
from .evaluation import FrameSample
from .properties import Constraint


@dataclass
class Take:
    """Filled frame by frame, in order; see the module for the letters."""

    frames: Array  # (F,)
    solved_frames: Array  # (S,)
    constraints: tuple[Constraint, ...]
    skeleton: Skeleton  # of the first frame: names and parents do not change
    base: Array  # (F, J, 4) rotations as evaluated
    translations: Array  # (F, J, 3) relative to rest
    offsets: Array  # (F, J, 3) heads in the parent's frame
    rests: Array  # (F, J, 4) rest rotations
    lengths: Array  # (F, J)
    targets: Array  # (F, C, 3)
    influences: Array  # (F, C)
    worlds: Array  # (F, 3, 3) armature space to world metres, without the shift
    solved: Array  # (S, J, 4)
    states: list[Mapping[int, str]] = field(default_factory=list)  # per solved frame: constraint -> status
    limits: list[tuple[Limit | None, ...]] = field(default_factory=list)  # (F, J), equal rows shared
    last: Skeleton | None = None  # of the frame stored last

    @classmethod
    def empty(
        cls, sample: FrameSample, constraints: Sequence[Constraint], frames: list[int], solved: list[int]
    ) -> Take:
        """Room for all frames; `sample` is any of them."""
        skeleton = sample.reading.skeleton
        f, s, j, c = len(frames), len(solved), len(skeleton.joints), len(constraints)
        sizes = ((f, j, 4), (f, j, 3), (f, j, 3), (f, j, 4), (f, j), (f, c, 3), (f, c), (f, 3, 3), (s, j, 4))
        at, solved_at = np.array(frames, dtype=np.float64), np.array(solved, dtype=np.float64)
        return cls(at, solved_at, tuple(constraints), skeleton, *(np.empty(size) for size in sizes))

    def store(self, row: int, sample: FrameSample) -> None:
        """Keep what was evaluated at the frame of this row; rows come in order."""
        skeleton, pose = sample.reading.skeleton, sample.reading.pose
        if skeleton is self.last:  # readings share one object as long as nothing about the bones changes
            for constant in (self.offsets, self.rests, self.lengths):
                constant[row] = constant[row - 1]
            self.limits.append(self.limits[-1])
        else:
            if [joint.name for joint in skeleton.joints] != [joint.name for joint in self.skeleton.joints]:
                raise RigError(f"frame {sample.frame:g}: the chains have other bones than at the first frame")
            self.offsets[row] = _rows(joint.offset for joint in skeleton.joints)
            self.rests[row] = _rows(joint.rest_rotation for joint in skeleton.joints)
            self.lengths[row] = [joint.length for joint in skeleton.joints]
            limits = tuple(joint.limit for joint in skeleton.joints)
            self.limits.append(self.limits[-1] if self.limits and limits == self.limits[-1] else limits)
            self.last = skeleton
        self.base[row] = _rows(pose.rotations)
        self.translations[row] = _rows(pose.translations)
        self.targets[row] = _rows(sample.targets)
        self.influences[row] = sample.influences
        self.worlds[row] = sample.matrix_world.to_3x3()

    def store_solution(self, pose: Pose, states: Mapping[int, str]) -> None:
        """Keep the next solved frame: all rotations, and how each active constraint stands."""
        self.solved[len(self.states)] = _rows(pose.rotations)
        self.states.append(states)

    def finish(self) -> tuple[Array, Array]:
        """(F, J, 4) rotations to key, and the same at full influence."""
        full = sampling.slerp_rotations(self.solved_frames, self.solved, self.frames)
        between = ~np.isin(self.frames, self.solved_frames)
        self._hold_limits(full, np.broadcast_to(between[:, None], full.shape[:2]))
        influences = self._joint_influences()
        rotations = np.where(influences[..., None] > 0.0, full, self.base)
        partly = (influences > 0.0) & (influences < 1.0)
        if partly.any():
            base, solved = _unit(self.base[partly]), _unit(full[partly])
            rotations[partly] = sampling.slerp(base, solved, influences[partly])
            self._hold_limits(rotations, partly, self.base)
        return sampling.same_side(rotations), full

    def keyed_joints(self) -> list[int]:
        """Joints that a constraint moves at some frame."""
        return [int(j) for j in np.flatnonzero((self._joint_influences() > 0.0).any(axis=0))]

    def residuals(self, rotations: Array) -> Array:
        """(F, C) distances of tips from targets in world metres, for (F, J, 4) rotations."""
        joints = self.skeleton.joints
        heads, turned = sampling.kinematics(
            [joint.parent for joint in joints],
            [joint.inherit_rotation for joint in joints],
            self.offsets,
            _unit(self.rests),
            _unit(rotations),
            self.translations,
        )
        apart = np.empty_like(self.targets)
        for c, constraint in enumerate(self.constraints):
            tip = self.skeleton.index(constraint.tip)
            effector = np.zeros((len(self.frames), 3))
            if constraint.use_tail:
                effector[:, 1] = self.lengths[:, tip]
            apart[:, c] = heads[:, tip] + sampling.rotate(turned[:, tip], effector) - self.targets[:, c]
        # The difference is brought to world axes, not each point: far from the origin nothing is lost.
        distances: Array = np.linalg.norm(np.einsum("fij,fcj->fci", self.worlds, apart), axis=-1)
        return distances

    def _joint_influences(self) -> Array:
        """(F, J): the largest influence among the constraints that move a joint."""
        result = np.zeros(self.base.shape[:2])
        for c, constraint in enumerate(self.constraints):
            for j in moved_joints(self.skeleton, constraint):
                result[:, j] = np.maximum(result[:, j], self.influences[:, c])
        return result

    def _hold_limits(self, rotations: Array, where: Array, base: Array | None = None) -> None:
        """Bring rotations back inside the limits, in place: the way between allowed ones may lead outside.

        Args:
            rotations: (F, J, 4).
            where: (F, J) which of them to look at.
            base: (F, J, 4) poses that were blended from. Where such a pose itself breaks the limit, the
                animator's pose wins: a clamp would make the joint jump as soon as the influence leaves 0.
        """
        for j, joint in enumerate(self.skeleton.joints):
            if joint.locked:
                continue
            for f in np.flatnonzero(where[:, j]):
                limit, rotation = self.limits[f][j], Quaternion(rotations[f, j])
                if limit is None or (base is not None and not contains(limit, Quaternion(base[f, j]))):
                    continue
                clamped = clamp(limit, rotation)
                if clamped is not rotation:  # inside, the double precision of the slerp is kept
                    rotations[f, j] = clamped


def moved_joints(skeleton: Skeleton, constraint: Constraint) -> tuple[int, ...]:
    """Joints that the constraint can turn."""
    chain = skeleton.chain(constraint.tip, constraint.chain_length)
    return tuple(j for j in chain if not skeleton.joints[j].locked)


def _rows(values: Iterable[Vector | Quaternion]) -> Array:
    """Vectors or quaternions as the rows of an array."""
    return np.array([value[:] for value in values])


def _unit(rotations: Array) -> Array:
    values: Array = rotations / np.linalg.norm(rotations, axis=-1, keepdims=True)
    return values
