# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bake has sampled and solved, as arrays over its frames.

In the shapes below F counts the keyed frames, S the solved ones, J the joints, K their slides, L the joints
whose location follows from that or from coupled offsets, and C the constraints. A frame costs a few hundred
bytes per joint. Rotations and translations are relative to rest; positions are in armature space. Slides and
coupled offsets are in the axes and the unit of the bone's location channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from mathutils import Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...limits.shapes import Limit, Slide
from ...maths import batch
from ...maths.batch import Array
from ...settings import SolveStatus
from ...skeleton.joints import Coupling, Skeleton
from ..properties.constraint_values import Constraint
from ..rig.coupled_offsets import location_offset
from ..rig.slides import location_slide, locations_of
from ..scene.evaluation import Samples
from ..scene.targets import TargetRows
from ..solve.constraint_goals import chain_joints, whole_chain
from ..solve.planting import support_chains
from .report import EASED
from .tracks import Tracks

Rows = NDArray[np.intp]


class SmoothedGroup(NamedTuple):
    """Constraints that are solved together, at a row whose pose the rows beside it have moved.

    Attributes:
        constraints: their places.
        angle: radians, the largest rotation of a joint from the pose to which the row alone leads.
    """

    constraints: tuple[int, ...]
    angle: float


class HelpedRow(NamedTuple):
    """What the body did at a row for chains that miss their targets alone.

    Attributes:
        constraints: places of those that it helped.
        turned: the bone of the body that turned most. angle: by how much, radians.
        shifted: the one that was shifted most. distance: by how much, world metres.
        left: of constraints with an influence below 1 how much of what their chains miss the body leaves,
            world metres.
    """

    constraints: tuple[int, ...]
    turned: int
    angle: float
    shifted: int
    distance: float
    left: Mapping[int, float]


class Motion(NamedTuple):
    """Poses of all joints over the keyed frames, as they play."""

    rotations: Array  # (F, J, 4)
    translations: Array  # (F, J, 3) with the shifts of coupled offsets
    locations: Array  # (F, L, 3) what location channels hold


@dataclass(frozen=True)
class Solutions:
    """All that is solved.

    Attributes:
        rotations: (S, J, 4).
        slides: (S, K).
        states: of solved rows: constraint -> status.
        smoothed: of solved rows: what rows beside them have moved.
    """

    rotations: Array
    slides: Array
    states: Mapping[int, Mapping[int, str]]
    smoothed: Mapping[int, tuple[SmoothedGroup, ...]]

    def missed(self) -> int:
        """How many frames do not reach all their targets."""
        good = (SolveStatus.CONVERGED.name, EASED)
        return sum(any(state not in good for state in states.values()) for states in self.states.values())

    def largest_rotation(self) -> float:
        """Radians of the largest rotation of a joint from one solved frame to the next."""
        rotations = batch.unit(self.rotations, axis=-1)
        return float(np.max(batch.angles_between(rotations[:-1], rotations[1:], axis=-1), initial=0.0))


@dataclass
class BakeFrames:
    """The frames of a bake; see the module for the letters."""

    frames: Array  # (F,)
    solved_frames: Array  # (S,)
    constraints: tuple[Constraint, ...]
    skeleton: Skeleton  # of the first frame: names and parents do not change
    base: Array  # (F, J, 4) rotations as evaluated
    translations: Array  # (F, J, 3) relative to rest, without the shifts of coupled offsets
    offsets: Array  # (F, J, 3) heads in the parent's frame
    rests: Array  # (F, J, 4) rest rotations
    lengths: Array  # (F, J)
    influences: Array  # (F, C)
    worlds: Array  # (F, 3, 3) armature space to world metres, without the shift
    places: Array  # (F, 3) that shift: the origin of armature space, world metres
    solved: Array  # (S, J, 4)
    sliding: tuple[int, ...]  # (K,) the joint of each slide
    slides: tuple[Slide, ...]  # (K,)
    couplings: tuple[Coupling, ...]  # the coupled offsets of all joints
    located: tuple[int, ...]  # (L,) joints that slide or have coupled offsets
    shifts: Array  # (F, L, 3, 3) locations to translations
    solved_slides: Array  # (S, K)
    targets: TargetRows  # (F, C)
    states: dict[int, Mapping[int, str]] = field(default_factory=dict)  # of solved rows: constraint -> status
    smoothed: dict[int, tuple[SmoothedGroup, ...]] = field(default_factory=dict)  # see `Solutions`
    helped: dict[int, HelpedRow] = field(default_factory=dict)  # of solved rows
    limits: list[tuple[Limit | None, ...]] = field(default_factory=list)  # (F, J), equal rows shared
    shifting: list[object] = field(default_factory=list)  # (F,) see `Skeleton.shifting`, likewise
    tracks: Tracks | None = None  # of planted bones
    is_loop: bool = False  # see `loops`
    repeats_after: bool = False  # of a loop: whether its first frame comes again after the last one
    reference: Array | None = None  # (F, J, 4) what poses are to stay near to, where that is not `base`

    @classmethod
    def empty(
        cls,
        samples: Samples,
        constraints: Sequence[Constraint],
        frames: Sequence[float],
        solved: Sequence[float],
    ) -> BakeFrames:
        """Room for all frames; `samples` are any of them."""
        skeleton, to_rests = samples.rig.bones.skeleton(0), samples.rig.bones.shifts[0]
        f, s, j, c = len(frames), len(solved), len(skeleton.joints), len(constraints)
        planted = support_chains(skeleton, constraints)
        moved = sorted({j for constraint in constraints for j in whole_chain(skeleton, constraint)})
        slides = [
            (j, location_slide(slide, to_rests[j])) for j in moved for slide in skeleton.joints[j].slides
        ]
        couplings = tuple(
            each._replace(offset=location_offset(each.offset, to_rests[each.joint]))
            for each in skeleton.couplings
        )
        located = tuple(dict.fromkeys([*(j for j, _ in slides), *(each.joint for each in couplings)]))
        return cls(
            frames=np.array(frames, dtype=np.float64),
            solved_frames=np.array(solved, dtype=np.float64),
            constraints=tuple(constraints),
            skeleton=skeleton,
            base=np.empty((f, j, 4)),
            translations=np.empty((f, j, 3)),
            offsets=np.empty((f, j, 3)),
            rests=np.empty((f, j, 4)),
            lengths=np.empty((f, j)),
            influences=np.empty((f, c)),
            worlds=np.empty((f, 3, 3)),
            places=np.empty((f, 3)),
            solved=np.empty((s, j, 4)),
            sliding=tuple(j for j, _ in slides),
            slides=tuple(slide for _, slide in slides),
            couplings=couplings,
            located=located,
            shifts=np.empty((f, len(located), 3, 3)),
            solved_slides=np.empty((s, len(slides))),
            targets=TargetRows.empty(f, samples.targets),
            tracks=None if planted is None else Tracks(tuple(constraints), skeleton, planted),
        )

    @property
    def reference_poses(self) -> Array:
        """(F, J, 4) what poses are to stay near to."""
        return self.base if self.reference is None else self.reference

    def store(self, row: int, samples: Samples, reference: Array | None = None) -> None:
        """Keep what was evaluated at frames from a row on.

        Args:
            row: of the first.
            samples: of R frames.
            reference: (R, J, 4) what poses are to stay near to; None: the base.

        Raises:
            RigError: the chains have other bones than at the first frame.
        """
        rig, rows = samples.rig, slice(row, row + len(samples))
        if rig.layout.names != tuple(joint.name for joint in self.skeleton.joints):
            raise RigError(
                f"frame {samples.frames[0]:g}: the chains have other bones than at the first frame"
            )
        self.base[rows], self.translations[rows] = rig.rotations, rig.translations
        self.offsets[rows], self.rests[rows], self.lengths[rows] = (
            rig.bones.offsets,
            rig.bones.rests,
            rig.bones.lengths,
        )
        self.influences[rows], self.worlds[rows] = samples.influences, samples.worlds[:, :3, :3]
        self.places[rows] = samples.worlds[:, :3, 3]
        self.targets.put(rows, samples.targets)
        if self.located:
            self.shifts[rows] = rig.bones.shifts[:, list(self.located)]
        if self.tracks is not None:
            self.tracks.store(samples)
        for stored, kinds in (
            (self.limits, [tuple(j.limit for j in each.skeleton.joints) for each in rig.bones.kinds]),
            (self.shifting, [each.skeleton.shifting for each in rig.bones.kinds]),
        ):
            for k in rig.bones.kind.tolist():
                stored.append(stored[-1] if stored and stored[-1] == kinds[k] else kinds[k])
        if self.reference is None and reference is not None and reference is not rig.rotations:
            self.reference = self.base.copy()
        if self.reference is not None:
            self.reference[rows] = rig.rotations if reference is None else reference

    def moved_by(self, c: int) -> tuple[int, ...]:
        """Joints that a constraint moves, root first: its chain, and the body where that helped it."""
        helped = any(c in each.constraints for each in self.helped.values())
        joints = whole_chain if helped else chain_joints
        return joints(self.skeleton, self.constraints[c])

    def same_bones(self, first: int, last: int) -> bool:
        """Whether bones are the same at all rows from the first to the last."""
        rows = slice(first, last + 1)
        return all((each[rows] == each[first]).all() for each in (self.offsets, self.rests))

    def store_batch(
        self, rows: Rows, rotations: Array, translations: Array, states: Sequence[Mapping[int, str]]
    ) -> None:
        """Keep the solutions of many rows at once: (R, J, 4), (R, J, 3), and how each constraint ended."""
        places = np.searchsorted(self.solved_frames, self.frames[rows])
        self.solved[places] = rotations
        self.solved_slides[places] = self.slid(rows, translations)
        self.states.update(zip(rows.tolist(), states, strict=True))

    def slid(self, rows: Rows, translations: Array) -> Array:
        """(R, K) how far bones have slid, of the translations (R, J, 3) of rows."""
        lengths = np.empty((len(rows), len(self.sliding)))
        for k, (j, slide) in enumerate(zip(self.sliding, self.slides, strict=True)):
            shifts = self.shifts[rows, self.located.index(j)]
            lengths[:, k] = locations_of(shifts, translations[:, j]) @ np.array(slide.axis)
        return lengths

    def solutions(self) -> Solutions:
        """What is solved now."""
        return Solutions(
            self.solved.copy(), self.solved_slides.copy(), dict(self.states), dict(self.smoothed)
        )

    def restore(self, solutions: Solutions) -> None:
        """Go back to what was solved before, or on to what was made of it."""
        self.solved[:], self.solved_slides[:] = solutions.rotations, solutions.slides
        self.states, self.smoothed = dict(solutions.states), dict(solutions.smoothed)

    def without_first(self, rows: int) -> BakeFrames:
        """The same without its first rows, all of which are solved."""
        if rows == 0:
            return self
        names = ["frames", "base", "translations", "offsets", "rests", "lengths", "influences", "worlds"]
        names += ["places", "shifts", "limits", "shifting", "solved_frames", "solved", "solved_slides"]
        return replace(
            self,
            **{name: getattr(self, name)[rows:] for name in names},
            targets=self.targets.at(slice(rows, None)),
            states={row - rows: states for row, states in self.states.items() if row >= rows},
            smoothed={row - rows: groups for row, groups in self.smoothed.items() if row >= rows},
            tracks=None if self.tracks is None else self.tracks.without_first(rows),
        )


def numbers(values: Iterable[Vector | Quaternion]) -> Array:
    """Vectors or quaternions as the rows of an array."""
    return np.array([value[:] for value in values])
