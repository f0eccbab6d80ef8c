# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames in which the same constraints are in force, which are solved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...limits.shapes import Limit
from ...maths.batch import Array, unit
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ...solvers.problem_tables import Bones
from ..properties.constraint_values import Constraint
from ..scene.evaluation import FrameSample
from ..scene.targets import TargetRows
from ..solve.contact_poses import JointPoses
from ..solve.frame_settings import FrameSolveSettings
from .bake_frames import BakeFrames, Rows, SmoothedGroup


@dataclass
class Batch:
    """R frames with the same constraints in force and the same limits.

    Attributes:
        frames: (R,) frame numbers.
        constraints: all of them; what a group asks for.
        active: places of those in force.
        samples: what was evaluated: of each row where CCD solves frames one by one, else of the first alone.
        targets: of each row and constraint, what they ask for.
        worlds: (R, 3, 3) from armature space to the world.
        limits: of each joint.
        bones: where joints are at rest, at each row or all.
        lengths: (R, J) of the joints' bones.
        base: the poses that joints are to stay near to.
        settings: how frames are solved.
        rotations: (R, J, 4), solved as far as groups are.
        translations: (R, J, 3) likewise.
        sharper: part of the tolerances to which rows are solved.
        iterations: most steps of a row.
        states: of each row how its constraints ended.
        smoothed: of each row the groups that rows beside it have moved.
    """

    frames: Array
    constraints: Sequence[Constraint]
    active: tuple[int, ...]
    samples: Sequence[FrameSample]
    targets: TargetRows
    worlds: Array
    limits: tuple[Limit | None, ...]
    bones: Bones
    lengths: Array
    base: JointPoses
    settings: FrameSolveSettings
    rotations: Array = field(init=False)
    translations: Array = field(init=False)
    sharper: float = 1.0
    iterations: int = 0
    states: list[dict[int, str]] = field(init=False)
    smoothed: list[list[SmoothedGroup]] = field(init=False)

    def __post_init__(self) -> None:
        self.rotations, self.translations = self.base.at(slice(None))
        self.states, self.smoothed = [{} for _ in self.frames], [[] for _ in self.frames]

    @classmethod
    def of(
        cls,
        bake_frames: BakeFrames,
        rows: Rows,
        samples: Sequence[FrameSample],
        settings: FrameSolveSettings,
    ) -> Batch:
        """Rows of a bake's frames, in order of time, that stand at their reference poses."""
        return cls(
            bake_frames.frames[rows],
            bake_frames.constraints,
            samples[0].active,
            samples,
            bake_frames.targets.at(rows),
            bake_frames.worlds[rows],
            bake_frames.limits[int(rows[0])],
            bones_of(bake_frames, rows),
            bake_frames.lengths[rows],
            JointPoses(bake_frames.reference_poses, bake_frames.translations).at(rows),
            settings,
        )

    @property
    def skeleton(self) -> Skeleton:
        """Of the first row."""
        return self.samples[0].reading.skeleton

    @cached_property
    def in_force(self) -> frozenset[int]:
        """The constraints of `active`."""
        return frozenset(self.active)

    def pose(self, k: int) -> Pose:
        """Row `k` of the batch as it stands now."""
        return Pose.of_arrays(self.rotations[k], self.translations[k])


def bones_of(bake_frames: BakeFrames, rows: Rows) -> Bones:
    """The bones at rows of a bake's frames, in order of time; one row where all are the same."""
    if bake_frames.same_bones(int(rows[0]), int(rows[-1])):
        rows = rows[:1]
    return Bones(bake_frames.offsets[rows], unit(bake_frames.rests[rows], axis=-1))
