# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted bones over the frames of a bake: where each is held, and where that takes the root bone.

In the shapes F counts the keyed frames, S the solved ones, J the joints. Between solved frames a bone counts
as planted where the next one holds it; the root bone then is where the bones' slerped rotations leave it, so
the base does not move at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...maths.batch import Array
from ...skeleton.joints import Skeleton
from ..properties.constraint_values import Constraint
from ..scene.evaluation import Samples
from ..scene.targets import TargetRows, TargetSample
from ..solve.plant_ground import PlantGround
from ..solve.planting import ContactState, FigureBones, JointPoses, SupportChains, placed, targets_of


@dataclass
class Tracks:
    """Filled frame by frame, in order."""

    constraints: tuple[Constraint, ...]
    skeleton: Skeleton
    support_chains: SupportChains
    worlds: list[Array] = field(default_factory=list)  # (F, 4, 4) armature space to world
    shifts: list[Array] = field(default_factory=list)  # (F, 3, 3) the root bone's locations to translations
    contact_states: list[ContactState] = field(default_factory=list)  # (S,)
    short_rows: list[int] = field(default_factory=list)  # rows at which a leg is too short and nothing helps
    ground: PlantGround | None = None  # its rows are those of the frames
    travel: float = 0.0  # world metres along the ground by which a body walks on

    def store(self, samples: Samples) -> None:
        """Keep what was evaluated at the next frames; they share worlds that stay."""
        self.shifts += list(samples.rig.bones.shifts[:, self.support_chains.root_bone])
        for world in samples.worlds:
            same = bool(self.worlds) and np.array_equal(self.worlds[-1], world)
            self.worlds.append(self.worlds[-1] if same else world)

    def without_first(self, rows: int) -> Tracks:
        """The same without its first rows, all of which are solved."""
        worlds, shifts = self.worlds[rows:], self.shifts[rows:]
        return replace(self, worlds=worlds, shifts=shifts, contact_states=self.contact_states[rows:])

    def joints(self) -> list[int]:
        """The joints whose keys come from here: the support chains and the root bone."""
        return [self.support_chains.root_bone, *self.support_chains.joints]

    def keyed(self) -> list[int]:
        """Those of them that something moves at some time."""
        moved = frozenset[int]().union(*(contact_state.moved for contact_state in self.contact_states))
        return sorted(moved.intersection(self.joints()))

    @property
    def keeps_body(self) -> bool:
        """Whether the root bone keeps its animation."""
        return self.support_chains.keeps_body

    def held(self, frames: Array, solved_frames: Array, targets: TargetRows) -> list[dict[int, TargetSample]]:
        """(F) of each constraint that plants a bone at a frame, where that bone should be, armature space.

        Args:
            frames: (F,) the keyed ones.
            solved_frames: (S,)
            targets: (F, C) as they were sampled, for constraints with a target.
        """
        held = []
        known: dict[tuple[int, int], TargetSample] = {}
        for f, frame in enumerate(frames):
            after = int(np.searchsorted(solved_frames, frame))
            last, following = self.contact_states[max(after - 1, 0)], self.contact_states[after]
            planted = {}
            for c, anchor in following.anchors.items():
                if solved_frames[after] == frame or not self.constraints[c].target:
                    key = id(anchor), id(self.worlds[f])  # frames share what stays
                    planted[c] = known.get(key) or known.setdefault(key, anchor.seen(self.worlds[f]))
                elif c in last.anchors:  # it is at its target by now
                    planted[c] = targets.sample(f, c)
            held.append(planted)
        return held

    def carry(
        self,
        held: Sequence[dict[int, TargetSample]],
        times: tuple[Array, Array],
        rotations: Array,
        translations: Array,
        bones: tuple[Array, Array],
    ) -> None:
        """Put the root bone where the base of each frame is held; in place.

        Args:
            held: (F) of `held`.
            times: (F,) keyed and (S,) solved frames.
            rotations: (F, J, 4) relative to rest.
            translations: (F, J, 3) relative to rest.
            bones: (F, J, 3) offsets and (F, J, 4) rest rotations.
        """
        (frames, solved_frames), (offsets, rests) = times, bones
        bases = [self.contact_states[k].base for k in np.searchsorted(solved_frames, frames).tolist()]
        rows = np.array([f for f, base in enumerate(bases) if base in held[f]], dtype=np.intp)
        if not len(rows):
            return
        tips = [self.skeleton.index(self.constraints[bases[f]].tip) for f in rows.tolist()]
        poses = JointPoses(rotations, translations).at(rows)
        figure = FigureBones(self.skeleton, offsets, rests).at(rows)
        root_bone = self.support_chains.root_bone
        placed(poses, figure, root_bone, tips, targets_of([held[f][bases[f]] for f in rows.tolist()]))
        rotations[rows, root_bone] = poses.rotations[:, root_bone]
        translations[rows, root_bone] = poses.translations[:, root_bone]
