# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames of a figure with planted bones as arrays, solved part by part.

In the shapes R counts the frames, J joints. What is keyed of a frame has influence below 1 blended; a solved
pose has not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...maths.batch import Array, conjugate, matrices, rotate, unit
from ..properties.constraint_values import Constraint
from ..scene.evaluation import FrameSample
from ..scene.targets import TargetSample
from ..solve.contact_changes import target_anchor
from ..solve.contact_poses import FigureBones, JointPoses, targets_of
from ..solve.planting import ContactState, PlantAnchor, SupportChains
from .bake_frames import BakeFrames, Rows


@dataclass
class PlantedFrames:
    """Some frames of a bake, in order of time.

    Attributes:
        bake_frames: where they are kept.
        rows: (R,) of these.
        samples: (R,)
        worlds: (R, 4, 4) from armature space to the world.
        bones: at all frames, or one where they are the same.
        animated: without constraints, the body moved by its shift.
        solved: at full influence.
        keyed: what is keyed of the support chains and the root bone.
        states: (R,) how constraints ended.
        anchors: (R,) of planted constraints.
        moved: (R,) joints of the support chains, and the root bone, that something moves.
        bases: (R,) the constraint on whose bone the figure stands, or -1.
        shifts: (R, 3) by which the body is moved, armature space.
    """

    bake_frames: BakeFrames
    rows: Rows
    samples: Sequence[FrameSample]
    worlds: Array
    bones: FigureBones
    animated: JointPoses
    solved: JointPoses
    keyed: JointPoses
    states: list[dict[int, str]]
    anchors: list[dict[int, PlantAnchor]]
    moved: list[frozenset[int]]
    bases: list[int]
    shifts: Array
    _held: dict[tuple[bytes, ...], TargetSample] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        bake_frames: BakeFrames,
        rows: Rows,
        samples: Sequence[FrameSample],
        shifts: Array | None = None,
    ) -> PlantedFrames:
        """Frames that stand as they are animated, with the body moved."""
        tracks = bake_frames.tracks
        assert tracks is not None
        every = rows
        if bake_frames.same_bones(int(rows[0]), int(rows[-1])):
            every = rows[:1]
        rests = unit(bake_frames.rests[every], axis=-1)
        animated = JointPoses(bake_frames.base, bake_frames.translations).at(rows)
        shifts = np.zeros((len(rows), 3)) if shifts is None else shifts
        root_bone = tracks.support_chains.root_bone
        back = np.broadcast_to(conjugate(rests[:, root_bone].T), (4, len(rows)))
        animated.translations[:, root_bone] += rotate(back, shifts.T).T
        return cls(
            bake_frames,
            rows,
            samples,
            np.array([tracks.worlds[row] for row in rows.tolist()]),
            FigureBones(samples[0].reading.skeleton, bake_frames.offsets[every], rests),
            animated,
            animated.at(slice(None)),
            animated.at(slice(None)),
            [{} for _ in rows],
            [{} for _ in rows],
            [frozenset()] * len(rows),
            [-1] * len(rows),
            shifts,
        )

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return self.bake_frames.constraints

    @property
    def support_chains(self) -> SupportChains:
        assert self.bake_frames.tracks is not None
        return self.bake_frames.tracks.support_chains

    @property
    def frames(self) -> Array:
        """(R,) frame numbers."""
        return self.bake_frames.frames[self.rows]

    def hold(self, row: int, c: int, anchor: PlantAnchor | None) -> None:
        """Note where a bone is planted at a frame: at its target if it has one, else at an anchor."""
        own = target_anchor(c, self.samples[row], self.worlds[row]) or anchor
        assert own is not None
        self.anchors[row][c] = own

    def hold_parts(self, rows: Rows, c: int, poses: JointPoses) -> None:
        """Note for planted bones of which only parts are held where the others have them.

        Args:
            rows: (R,)
            c: the constraint, noted as held at these rows.
            poses: of the rows, with nothing planted but the body moved, which those parts do not follow.
        """
        constraint = self.constraints[c]
        if all(constraint.holds):
            return
        tip, worlds = self.bones.skeleton.index(constraint.tip), self.worlds[rows]
        heads, rotations = (each[:, tip] for each in self.bones.at(rows).transforms(poses))
        heads = np.einsum("rij,rj->ri", worlds[:, :3, :3], heads - self.shifts[rows]) + worlds[:, :3, 3]
        axes = worlds[:, :3, :3] @ matrices(rotations.T).transpose(2, 0, 1)
        for row, head, own in zip(rows.tolist(), heads, axes, strict=True):
            animated = PlantAnchor(head, own)
            self.anchors[row][c] = self.anchors[row][c].held(animated, constraint.holds)

    def target_anchor(self, row: int, c: int) -> PlantAnchor | None:
        """Where a constraint's target is in the world at a frame."""
        return target_anchor(c, self.samples[row], self.worlds[row])

    def held_target(self, row: int, c: int) -> TargetSample:
        """Where a planted bone is held, in armature space; frames share what is the same."""
        target = self.samples[row].targets[c]
        if target.rotation is not None:
            return target
        anchor, world = self.anchors[row][c], self.worlds[row]
        key = anchor.head.tobytes(), anchor.axes.tobytes(), world.tobytes()
        if key not in self._held:
            self._held[key] = anchor.seen(world)
        return self._held[key]

    def held_targets(self, rows: Rows, c: int) -> tuple[Array, Array]:
        """(R, 3) heads and (R, 4) rotations where the bone of a planted constraint is held."""
        return targets_of([self.held_target(row, c) for row in rows.tolist()])

    def store(self) -> None:
        """Keep all in the bake's frames."""
        tracks = self.bake_frames.tracks
        assert tracks is not None
        self.bake_frames.store_batch(self.rows, *self.solved, self.states)
        for row in range(len(self.rows)):
            tracks.contact_states.append(
                ContactState(
                    self.support_chains,
                    self.bases[row],
                    self.anchors[row],
                    self.keyed.pose(row),
                    self.samples[row].reading.pose,
                    self.worlds[row],
                    self.moved[row],
                )
            )
