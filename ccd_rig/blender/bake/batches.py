# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames that are solved at once, and the groups of constraints in them.

Constraints that share joints make a group; groups are solved apart, by `group_solving`. Methods of a single
pass, and what the solver CCD is chosen for, are left to be solved frame by frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...limits.shapes import Limit
from ...maths.batch import Array, unit
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...solvers.least_squares.state import Bones, Poses
from ..properties.constraint_values import Constraint
from ..scene.evaluation import FrameSample
from ..solve.contact_poses import JointPoses
from ..solve.grouping import groups, is_carried, takes_least_squares
from ..solve.solving import FrameSolveSettings
from .bake_frames import BakeFrames, Rows


@dataclass(frozen=True)
class Group:
    """Constraints that are solved together, and the joints that they move."""

    joints: frozenset[int]
    members: tuple[int, ...]


@dataclass
class Batch:
    """Frames with the same constraints in force and the same limits.

    Attributes:
        times: (R,) frame numbers, increasing; rows that are not to be compared lie far apart.
        constraints: all of them; what a group asks for.
        samples: of each row; their targets are what is asked for.
        limits: of each joint.
        bones: of the rows; one column where all are the same.
        base: the base poses.
        settings: how they are solved.
        rotations: (R, J, 4), solved as far as groups are.
        translations: (R, J, 3) likewise.
        held: (R,) rows that are solved already: those beside them choose their ways to fit.
        sharper: part of the tolerances to which rows that meet their goals are brought at last.
        iterations: most steps of a row.
    """

    times: Array
    constraints: Sequence[Constraint]
    samples: Sequence[FrameSample]
    limits: tuple[Limit | None, ...]
    bones: Bones
    base: JointPoses
    settings: FrameSolveSettings
    rotations: Array = field(init=False)
    translations: Array = field(init=False)
    held: NDArray[np.bool_] = field(init=False)
    sharper: float = 1.0
    iterations: int = 0

    def __post_init__(self) -> None:
        self.rotations, self.translations = self.base.at(slice(None))
        self.held = np.zeros(len(self.times), np.bool_)

    @classmethod
    def of(
        cls,
        bake_frames: BakeFrames,
        rows: Rows,
        samples: Sequence[FrameSample],
        settings: FrameSolveSettings,
    ) -> Batch:
        """Rows of a bake's frames, in order of time, that stand at their base poses."""
        return cls(
            bake_frames.frames[rows],
            bake_frames.constraints,
            samples,
            bake_frames.limits[int(rows[0])],
            bones_of(bake_frames, rows),
            JointPoses(bake_frames.base, bake_frames.translations).at(rows),
            settings,
        )

    def hold(self, k: int, rotations: Array, translations: Array) -> None:
        """Let a row stand as it was solved before: rotations (J, 4) and translations (J, 3)."""
        self.rotations[k], self.translations[k], self.held[k] = rotations, translations, True

    def waves(self, groups: Sequence[Group]) -> list[list[Group]]:
        """Groups in lists whose members do not wait for one another; each list waits for those before it."""
        found: list[list[Group]] = []
        for group in groups:
            before = (n for n, wave in enumerate(found) for other in wave if self._is_carried(group, other))
            place = max(before, default=-1) + 1
            if place == len(found):
                found.append([])
            found[place].append(group)
        return found

    @property
    def skeleton(self) -> Skeleton:
        return self.samples[0].reading.skeleton

    def pose(self, k: int) -> Pose:
        """Row `k` of the batch as it stands now."""
        return Pose.of_arrays(self.rotations[k], self.translations[k])

    def groups(self) -> list[Group]:
        """The groups of the constraints in force, parents before children."""
        members_by_joints = groups(self.skeleton, self.constraints, self.samples[0].active)
        return [Group(frozenset(joints), tuple(members)) for joints, members in members_by_joints]

    def takes(self, group: Group) -> bool:
        """Whether least squares solve a group."""
        return takes_least_squares(self._constraints_of(group), self.settings.solver)

    def _is_carried(self, group: Group, other: Group) -> bool:
        return is_carried(self.skeleton, self._constraints_of(group), group.joints, other.joints)

    def _constraints_of(self, group: Group) -> list[Constraint]:
        return [self.constraints[c] for c in group.members]

    def tolerances(self, group: Group) -> Array:
        """(n,) radians, the comfort tolerances of a group's joints in ascending order, where they count."""
        found = np.zeros(len(group.joints))
        for n, j in enumerate(sorted(group.joints)):
            comfort = self.skeleton.joints[j].comfort
            if self.settings.solver.comfort and comfort is not None:
                found[n] = comfort.tolerance
        return found

    def regions(self, group: Group) -> tuple[Limit | None, ...]:
        """The comfort regions of a group's joints, where they have one, in place of their limits."""
        limits = list(self.limits)
        for j in group.joints:
            comfort = self.skeleton.joints[j].comfort
            if comfort is not None and comfort.region is not None:
                limits[j] = comfort.region
        return tuple(limits)

    def reference(self, samples: Sequence[FrameSample], base: Poses) -> Poses:
        """The reference poses of samples, whose base poses are given."""
        poses = [self.settings.reference(sample) or sample.reading.pose for sample in samples]
        if all(pose is sample.reading.pose for pose, sample in zip(poses, samples, strict=True)):
            return base
        rotations = np.array([[q[:] for q in pose.rotations] for pose in poses])
        return poses_of(rotations, base.translations.transpose(2, 1, 0))


def bones_of(bake_frames: BakeFrames, rows: Rows) -> Bones:
    """The bones at rows of a bake's frames, in order of time; one column where all are the same."""
    if bake_frames.same_bones(int(rows[0]), int(rows[-1])):
        rows = rows[:1]
    rests = unit(bake_frames.rests[rows].transpose(2, 1, 0))
    return Bones(bake_frames.offsets[rows].transpose(2, 1, 0), rests, bake_frames.lengths[rows].T)


def poses_of(rotations: Array, translations: Array) -> Poses:
    """Poses from (R, J, 4) and (R, J, 3)."""
    return Poses(unit(rotations.transpose(2, 1, 0)), np.ascontiguousarray(translations.transpose(2, 1, 0)))
