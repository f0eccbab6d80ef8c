# SPDX-License-Identifier: GPL-3.0-or-later
"""What stretches with planted bones will go on from, told before the frames ahead of them are solved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from mathutils import Quaternion

from ...maths.batch import Array
from ...maths.rotations import angle_between
from ...settings import SolverSettings, SolveStatus
from ...skeleton.kinematics import Transform
from ..properties.constraint_values import Kind
from ..solve.contact_changes import anchor_of
from ..solve.contact_poses import RETURN
from ..solve.planting import ContactState, PlantAnchor, homogeneous, inverse, upright
from .planted_frames import PlantedFrames
from .stretches import Stretch


@dataclass(frozen=True)
class Standing:
    """What a stretch goes on from.

    Attributes:
        anchors: where bones without a target are held.
        turns: of legs that were let go, see `ContactState.turns`.
        drift: see `ContactState.drift`.
        released: see `ContactState.released`.
        carried: of joints that are moved on, what they are turned by beside their animation.
        fading: of joints that were let go and are moved again, the last frame before that: from there on they
            are solved near to their animation again, within `contact_poses.RETURN` frames.
    """

    anchors: Mapping[int, PlantAnchor]
    turns: Mapping[int, Quaternion] = field(default_factory=dict)
    drift: Array = field(default_factory=lambda: np.eye(4))
    released: Mapping[int, tuple[float, Quaternion]] = field(default_factory=dict)
    carried: Mapping[int, Quaternion] = field(default_factory=dict)
    fading: Mapping[int, float] = field(default_factory=dict)


def fading(
    before: tuple[Stretch, Mapping[int, float]],
    stretch: Stretch,
    turns: Mapping[int, Quaternion],
    last: float,
) -> dict[int, float]:
    """`Standing.fading` of a stretch.

    Args:
        before: the stretch before it, and what faded there.
        stretch: which one.
        turns: of legs that were let go.
        last: the last frame before it.
    """
    previous, faded = before
    moved_before = frozenset[int]().union(*previous.moves.values())
    moved = frozenset[int]().union(*stretch.moves.values())
    return {j: faded.get(j, last) if j in moved_before else float(last) for j in moved & turns.keys()}


class Foresight:
    """Foresees what the stretches of one part of a figure go on from.

    Attributes:
        body_is_placed: whether something places the root bone in every frame in which it follows planted
            bones.
    """

    def __init__(
        self,
        frames: PlantedFrames,
        stretches: Sequence[Stretch],
        before: ContactState | None,
        solver: SolverSettings,
    ) -> None:
        self.frames, self.stretches, self.before, self.solver = frames, stretches, before, solver
        self.chains = frames.support_chains
        self.body_is_placed = not self.chains.keeps_body and all(
            self._placing(row) >= 0
            for stretch in stretches
            if stretch.planted
            for row in stretch.rows.tolist()
        )
        self._wrong: set[int] = set()

    def standing(self, k: int, before: Standing | None) -> Standing | None:
        """What a stretch will go on from, if that can be told; `before` is that of the stretch before it."""
        stretch, previous = self.stretches[k], self.stretches[k - 1]
        if k in self._wrong or not (self.chains.keeps_body or self.body_is_placed):
            return None
        anchors = {}
        for c in stretch.planted:
            if self.frames.constraints[c].target:
                continue
            if c in previous.planted:
                anchor = None if before is None else before.anchors[c]
            else:
                anchor = self._anchor(c, previous)
            if anchor is None:
                return None
            anchors[c] = anchor
        if self.chains.keeps_body:
            return None if self.hangs_on_unmoved(stretch) else Standing(anchors)
        if before is None or previous.moved - stretch.moved - {self.chains.root_bone}:
            return None
        drift: Array | None = before.drift
        if previous.planted and not stretch.planted:
            drift = self._drift(previous.last)
        if drift is None:
            return None
        faded = fading((previous, before.fading), stretch, before.turns, self.frames.frames[previous.last])
        return Standing(anchors, before.turns, drift, fading=faded)

    def holds(self, k: int, foreseen: Standing, present: Standing) -> bool:
        """Whether a stretch goes on from what was foreseen, within the tolerances; else it is not foreseen
        once more."""
        ways = []
        for c, anchor in foreseen.anchors.items():
            one = present.anchors[c]
            if one is not anchor:  # parts that are not held are none of its business
                ways.append((one, anchor.held(one, self.frames.constraints[c].holds)))
        if not np.array_equal(present.drift, foreseen.drift):
            root = self.frames.animated_root(self.stretches[k].first)
            ways.append((PlantAnchor.of(root, present.drift), PlantAnchor.of(root, foreseen.drift)))
        for one, other in ways:
            angle = angle_between(upright(one.axes), upright(other.axes))
            distance = float(np.linalg.norm(one.head - other.head))
            if distance > self.solver.position_tolerance or angle > self.solver.angle_tolerance:
                self._wrong.add(k)
                return False
        return True

    def _anchor(self, c: int, previous: Stretch) -> PlantAnchor | None:
        """Where a bone is in the last frame of a stretch before it is planted."""
        frames, row = self.frames, previous.last
        constraint, skeleton = frames.constraints[c], frames.samples[row].reading.skeleton
        placing = self._placing(row, constraint.tip)
        if placing >= 0:
            return frames.target_anchor(row, placing)
        leg = frozenset(skeleton.chain(constraint.tip, constraint.chain_length)[1:])
        if not self.chains.keeps_body or leg & previous.moved:
            return None
        # A leg that only its animation moves, and that is back to it.
        last = frames.frames[previous.first - 1] if previous.first > 0 else None
        if last is None and self.before is not None:
            last = self.before.frame
        if last is not None and frames.frames[row] - last < RETURN:
            return None
        return anchor_of(constraint.tip, skeleton, frames.animated.pose(row), frames.worlds[row])

    def _placing(self, row: int, tip: str = "") -> int:
        """The constraint that says where a bone is at a frame, and how it is turned; -1 if there is none.

        One that was solved and is not met says nothing. Without `tip` it is the root bone.
        """
        sample, states = self.frames.samples[row], self.frames.states[row]
        tip = tip or sample.reading.skeleton.joints[self.chains.root_bone].name
        met = SolveStatus.CONVERGED.name
        for c, constraint in enumerate(self.frames.constraints):
            plain = not constraint.use_tail and not any(constraint.effector_offset)
            if (
                constraint.tip == tip
                and constraint.kind is Kind.REACH
                and sample.influences[c] >= 1.0
                and constraint.use_position
                and sample.targets[c].rotation is not None
                and plain
                and constraint.rotation_bone in ("", tip)
                and states.get(c, met) == met
            ):
                return c
        return -1

    def _drift(self, row: int) -> Array | None:
        """`ContactState.drift` of a figure that leaves the ground after this frame."""
        placing = self._placing(row)
        if placing < 0:
            return None
        target, world = self.frames.samples[row].targets[placing], self.frames.worlds[row]
        assert target.rotation is not None
        solved = world @ homogeneous(Transform(target.point, target.rotation))
        return solved @ inverse(world @ homogeneous(self.frames.animated_root(row)))

    def hangs_on_unmoved(self, stretch: Stretch) -> bool:
        """Whether bones of a leg that nothing moves, which may be on their way back, carry moved ones."""
        skeleton = self.frames.samples[stretch.first].reading.skeleton
        moved = frozenset[int]().union(*stretch.moves.values())
        carriers = {i for j in moved for i in skeleton.chain(j)}
        return bool(carriers & set(self.chains.joints) - moved)
