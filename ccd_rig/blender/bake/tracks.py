# SPDX-License-Identifier: GPL-3.0-or-later
"""Planted bones over the frames of a bake: where each is held, and where that takes the carrier.

In the shapes F counts the keyed frames, S the solved ones, J the joints. Between solved frames a bone counts
as planted where the next one holds it; the carrier then is where the bones' slerped rotations leave it, so
the base does not move at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...motion import interpolation
from ...motion.interpolation import Array
from ...skeleton.joints import Skeleton
from ..properties.constraint_values import Constraint
from ..scene.targets import TargetSample
from ..solve.planting import ContactState, SupportChains


@dataclass
class Tracks:
    """Filled frame by frame, in order."""

    constraints: tuple[Constraint, ...]
    skeleton: Skeleton
    support_chains: SupportChains
    worlds: list[Array] = field(default_factory=list)  # (F, 4, 4) armature space to world
    shifts: list[Array] = field(default_factory=list)  # (F, 3, 3) the carrier's locations to translations
    stances: list[ContactState] = field(default_factory=list)  # (S,)
    short_rows: list[int] = field(default_factory=list)  # rows at which a leg is too short and nothing helps

    def own(self) -> list[int]:
        """The joints whose keys come from here: the legs and the carrier."""
        return [self.support_chains.root_bone, *self.support_chains.joints]

    def keyed(self) -> list[int]:
        """Those of them that something moves at some time."""
        found = frozenset[int]().union(*(contact_state.moved for contact_state in self.stances))
        return sorted(found.intersection(self.own()))

    @property
    def keeps_body(self) -> bool:
        """Whether the carrier keeps its animation."""
        return self.support_chains.keeps_body

    def held(
        self, frames: Array, solved_frames: Array, aims: Sequence[tuple[TargetSample, ...]]
    ) -> list[dict[int, TargetSample]]:
        """(F) of each row that is planted at a frame, where its bone should be, armature space.

        Args:
            frames: (F,) the keyed ones.
            solved_frames: (S,)
            aims: (F, C) as they were sampled, for rows with a target.
        """
        found = []
        for f, frame in enumerate(frames):
            after = int(np.searchsorted(solved_frames, frame))
            last, following = self.stances[max(after - 1, 0)], self.stances[after]
            here = {}
            for c, hold in following.anchors.items():
                if solved_frames[after] == frame or not self.constraints[c].target:
                    here[c] = hold.seen(self.worlds[f])
                elif c in last.anchors:  # it is at its target by now
                    here[c] = aims[f][c]
            found.append(here)
        return found

    def carried(
        self,
        held: Sequence[dict[int, TargetSample]],
        solved_frames: Array,
        frames: Array,
        rotations: Array,
        translations: Array,
        constants: tuple[Array, Array],
    ) -> None:
        """Puts the carrier where the base of each frame is held; in place.

        Args:
            held: (F) of `held`.
            solved_frames: (S,)
            frames: (F,)
            rotations: (F, J, 4) and translations (F, J, 3) relative to rest.
            translations: see there.
            constants: (F, J, 3) offsets and (F, J, 4) rest rotations.
        """
        offsets, rests = constants
        joints, root_bone = self.skeleton.joints, self.support_chains.root_bone
        parents = [joint.parent for joint in joints]
        inherits = [joint.inherit_rotation for joint in joints]
        unit = rotations / np.linalg.norm(rotations, axis=-1, keepdims=True)
        heads, turned = interpolation.kinematics(parents, inherits, offsets, rests, unit, translations)
        for f, frame in enumerate(frames):
            base = self.stances[int(np.searchsorted(solved_frames, frame))].base
            if base not in held[f]:
                continue
            tip = self.skeleton.index(self.constraints[base].tip)
            aim = held[f][base]
            assert aim.rotation is not None
            to = _unit(np.array(aim.rotation[:]))
            # In quaternions and double precision: the base moves by no more than the rounding of the keys.
            turn = interpolation.multiply(to, _conjugate(turned[f, tip]))
            head = np.array(aim.point[:]) + interpolation.rotate(turn, heads[f, root_bone] - heads[f, tip])
            back = _conjugate(rests[f, root_bone])
            local = interpolation.multiply(back, interpolation.multiply(turn, turned[f, root_bone]))
            rotations[f, root_bone] = _unit(local)
            translations[f, root_bone] = interpolation.rotate(back, head - offsets[f, root_bone])


def _conjugate(rotation: Array) -> Array:
    return rotation * np.array((1.0, -1.0, -1.0, -1.0))


def _unit(rotation: Array) -> Array:
    found: Array = rotation / np.linalg.norm(rotation)
    return found
