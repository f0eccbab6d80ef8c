# SPDX-License-Identifier: GPL-3.0-or-later
"""The poses of one part of a figure with planted bones: what its stretches start from, and what is keyed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from mathutils import Quaternion

from ...limits.shapes import Slide
from ...maths.batch import Array
from ...settings import SolveStatus
from ...skeleton.joints import Joint, Skeleton
from ..scene.evaluation import FrameSample
from ..solve.contact_poses import JointPoses, blended, drifted, placed, returning, turned
from ..solve.planting import ContactState, PlantAnchor, SupportChains
from .bake_frames import Rows
from .planted_frames import PlantedFrames
from .stretches import Part, Stretch

AROUND = 2.0
"""Lengths of all bones by which the root bone may be moved from where the animation has it above its base."""


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


@dataclass(frozen=True)
class PartPoses:
    """Reads and fills the joints of a part in the frames of a figure.

    Attributes:
        frames: of the whole figure.
        part: whose joints they are.
    """

    frames: PlantedFrames
    part: Part

    @property
    def _chains(self) -> SupportChains:
        return self.frames.support_chains

    def stands_on(self, stretch: Stretch) -> int:
        """The constraint on whose bone the figure stands, or -1."""
        return stretch.planted[0] if stretch.planted and not self._chains.keeps_body else -1

    def sample(self, row: int, stretch: Stretch) -> FrameSample:
        """A frame with the part's constraints in force, and targets where bones are held."""
        sample, members = self.frames.samples[row], set(self.part.members)
        targets = list(sample.targets)
        for c in stretch.planted:
            targets[c] = self.frames.held_target(row, c)
        influences = tuple([i if c in members else 0.0 for c, i in enumerate(sample.influences)])
        return sample._replace(targets=tuple(targets), influences=influences)

    def base(self, stretch: Stretch, standing: Standing) -> JointPoses:
        """The base poses of a stretch; notes where its bones are held."""
        frames, rows = self.frames, stretch.rows
        poses, joints = self._continued(stretch, standing), [*standing.fading, *standing.carried]
        if joints:
            poses.rotations[:, joints] = frames.animated.rotations[rows][:, joints]
            back = {j: (frame, standing.turns[j]) for j, frame in standing.fading.items()}
            back = {j: each for j, each in back.items() if j not in standing.carried}
            returning(poses.rotations, frames.frames[rows], back, stretch.limits)
            turned(poses.rotations, standing.carried, stretch.limits)
        self._hold(stretch, standing, poses)
        return poses

    def _hold(self, stretch: Stretch, standing: Standing, poses: JointPoses) -> None:
        """Note where bones are held, and put the root bone of the poses where the base is, in place."""
        base = self.stands_on(stretch)
        for c in stretch.planted:  # the base is the first of them: the others go along with it
            for row in stretch.rows.tolist():
                self.frames.hold(row, c, standing.anchors.get(c))
            self.frames.hold_parts(stretch.rows, c, poses)
            if c == base:
                self.place(stretch, stretch.rows, poses)

    def _continued(self, stretch: Stretch, standing: Standing) -> JointPoses:
        """The animated poses of a stretch, with what was let go moved on from where it stood."""
        frames = self.frames
        rows, own = stretch.rows, sorted(self.part.joints)
        poses, animated = frames.solved.at(rows), frames.animated.at(rows)
        poses.rotations[:, own] = animated.rotations[:, own]
        poses.translations[:, own] = animated.translations[:, own]
        if self._chains.keeps_body:
            returning(poses.rotations, frames.frames[rows], standing.released, stretch.limits)
        else:
            turned(poses.rotations, standing.turns, stretch.limits)
            root_bone, bones = self._chains.root_bone, frames.bones.at(rows)
            drifted(poses, bones, root_bone, frames.worlds[rows], standing.drift)
        return poses

    def place(self, stretch: Stretch, rows: Rows, poses: JointPoses) -> None:
        """Put the root bone where the base is held, if the figure stands on one; in place."""
        base, frames = self.stands_on(stretch), self.frames
        if base >= 0:
            tip = frames.bones.skeleton.index(frames.constraints[base].tip)
            root_bone, held = self._chains.root_bone, frames.held_targets(rows, base)
            placed(poses, frames.bones.at(rows), root_bone, tip, held)

    def keep(self, stretch: Stretch, rows: Rows, poses: JointPoses, states: Sequence[dict[int, str]]) -> None:
        """Keep what was solved of stretches like one: the poses of rows, and how their constraints ended."""
        frames, base, own = self.frames, self.stands_on(stretch), sorted(self.part.joints)
        self.place(stretch, rows, poses)
        frames.solved.rotations[np.ix_(rows, own)] = poses.rotations[:, own]
        frames.solved.translations[np.ix_(rows, own)] = poses.translations[:, own]
        for row, ended in zip(rows.tolist(), states, strict=True):
            frames.states[row] |= ended
            if base >= 0:
                frames.states[row][base] = SolveStatus.CONVERGED.name

    def finish(self, stretch: Stretch, standing: Standing) -> ContactState:
        """Fill in what is keyed of a solved stretch; how it stands in its last frame."""
        frames = self.frames
        rows, own, base = stretch.rows, sorted(self.part.joints), self.stands_on(stretch)
        continued = self._continued(stretch, standing)
        keyed = continued.at(slice(None))
        if stretch.active:
            influences = np.zeros(keyed.rotations.shape[:2])
            given = np.array([frames.samples[row].influences for row in rows.tolist()])
            for c, joints in stretch.moves.items():
                each = sorted(joints)
                influences[:, each] = np.maximum(influences[:, each], given[:, c, None])
            solved = frames.solved.rotations[rows]
            keyed.rotations[:] = blended(continued.rotations, solved, influences, stretch.limits)
            self.place(stretch, rows, keyed)
        else:
            frames.solved.rotations[np.ix_(rows, own)] = continued.rotations[:, own]
            frames.solved.translations[np.ix_(rows, own)] = continued.translations[:, own]
        frames.keyed.rotations[np.ix_(rows, own)] = keyed.rotations[:, own]
        frames.keyed.translations[np.ix_(rows, own)] = keyed.translations[:, own]
        for row in rows.tolist():
            frames.moved[row] |= stretch.moved
            frames.bases[row] = base
        last = stretch.last
        return ContactState(
            self._chains,
            base,
            {c: frames.anchors[last][c] for c in stretch.planted},
            frames.keyed.pose(last),
            frames.animated.pose(last),
            frames.worlds[last],
            stretch.moved,
            standing.turns,
            standing.drift,
            float(frames.frames[last]),
            standing.released,
        )


def with_free_root(samples: Sequence[FrameSample], root_bone: int, shift: float) -> list[FrameSample]:
    """Samples whose root bone is free to turn, and to move about shifts up to `shift`, armature space."""
    known: dict[int, Skeleton] = {}
    found = []
    for sample in samples:
        skeleton = sample.reading.skeleton
        if id(skeleton) not in known:
            size = shift + AROUND * math.fsum(joint.offset.length for joint in skeleton.joints)
            size = 2.0 ** math.ceil(math.log2(size))  # so that figures alike are solved together
            axes = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
            slides = tuple(Slide(axis, -size, size) for axis in axes)
            free = {"limit": None, "comfort": None, "stiffness": 0.0, "slides": slides}
            name = skeleton.joints[root_bone].name
            known[id(skeleton)] = skeleton.replace({name: {**free, "max_step": Joint.max_step}})
        reading = replace(sample.reading, skeleton=known[id(skeleton)])
        found.append(sample._replace(reading=reading))
    return found
