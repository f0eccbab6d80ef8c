"""What a bake has sampled and solved, as arrays over its frames, and what is keyed of it.

In the shapes below F counts the keyed frames, S the solved ones, J the joints, K their slides and C the
constraints. A frame costs a few hundred bytes per joint. Rotations and translations are relative to rest;
positions are in armature space. Slides are in the axes and the unit of the bone's location channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from mathutils import Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...limits.shapes import Limit, Slide, clamp, contains
from ...motion import interpolation
from ...motion.interpolation import Array
from ...settings import SolveStatus
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from ..properties.constraint_values import Constraint
from ..rig.slides import location_slide
from ..scene.evaluation import FrameSample
from ..scene.targets import TargetSample
from ..solve.constraint_goals import chain_joints
from ..solve.planting import ContactState, support_chains
from .steady import Steady
from .tracks import Tracks

ROUNDING = 1e-6
"""Of a location, as it is stored."""


class Motion(NamedTuple):
    """Poses of all joints over the keyed frames."""

    rotations: Array  # (F, J, 4)
    translations: Array  # (F, J, 3)
    locations: Array  # (F, K, 3) what the location channel of each slide's bone holds


@dataclass(frozen=True)
class Solutions:
    """All that was solved in a take.

    Attributes:
        rotations: (S, J, 4). slides: (S, K). states: of solved rows: constraint -> status.
    """

    rotations: Array
    slides: Array
    states: Mapping[int, Mapping[int, str]]

    def missed(self) -> int:
        """How many frames do not reach all their targets."""
        good = SolveStatus.CONVERGED.name
        return sum(any(state != good for state in states.values()) for states in self.states.values())

    def largest_rotation(self) -> float:
        """Radians of the largest turn of a joint from one solved frame to the next."""
        turns = interpolation.unit(self.rotations)
        return float(np.max(interpolation.angles_between(turns[:-1], turns[1:]), initial=0.0))


@dataclass
class BakeFrames:
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
    influences: Array  # (F, C)
    worlds: Array  # (F, 3, 3) armature space to world metres, without the shift
    solved: Array  # (S, J, 4)
    sliding: tuple[int, ...]  # (K,) the joint of each slide
    slides: tuple[Slide, ...]  # (K,)
    shifts: Array  # (F, K, 3, 3) locations to translations
    solved_slides: Array  # (S, K)
    targets: list[tuple[TargetSample, ...]] = field(default_factory=list)  # (F, C)
    states: dict[int, Mapping[int, str]] = field(default_factory=dict)  # of solved rows: constraint -> status
    limits: list[tuple[Limit | None, ...]] = field(default_factory=list)  # (F, J), equal rows shared
    last: FrameSample | None = None  # the one stored last
    since: list[int] = field(default_factory=list)  # (F,) the first row with the same bones and base pose
    tracks: Tracks | None = None  # of planted bones

    def __post_init__(self) -> None:
        self._bones = Steady((self.offsets, self.rests, self.lengths))
        self._poses = Steady((self.base, self.translations))
        self._places, self._forces = Steady((self.worlds,)), Steady((self.influences,))

    @classmethod
    def empty(
        cls,
        sample: FrameSample,
        constraints: Sequence[Constraint],
        frames: Sequence[float],
        solved: Sequence[float],
    ) -> BakeFrames:
        """Room for all frames; `sample` is any of them."""
        skeleton = sample.reading.skeleton
        at, solved_at = np.array(frames, dtype=np.float64), np.array(solved, dtype=np.float64)
        f, s, j, c = len(frames), len(solved), len(skeleton.joints), len(constraints)
        sizes = ((f, j, 4), (f, j, 3), (f, j, 3), (f, j, 4), (f, j), (f, c), (f, 3, 3), (s, j, 4))
        found = support_chains(skeleton, constraints)
        moved = sorted({j for constraint in constraints for j in chain_joints(skeleton, constraint)})
        slides = [
            (j, location_slide(slide, sample.reading.shifts[j]))
            for j in moved
            for slide in skeleton.joints[j].slides
        ]
        return cls(
            at,
            solved_at,
            tuple(constraints),
            skeleton,
            *(np.empty(size) for size in sizes),
            sliding=tuple(j for j, _ in slides),
            slides=tuple(slide for _, slide in slides),
            shifts=np.empty((f, len(slides), 3, 3)),
            solved_slides=np.empty((s, len(slides))),
            tracks=None if found is None else Tracks(tuple(constraints), skeleton, found),
        )

    def store(self, row: int, sample: FrameSample) -> None:
        """Keep what was evaluated at the frame of this row; rows come in order."""
        reading, last = sample.reading, self.last
        skeleton = None if last is None else last.reading.skeleton
        if last is not None and reading is last.reading:  # shared while nothing about the bones changes
            self._poses.keep(row)
            self.since.append(self.since[-1])
        else:
            self._poses.set(row, _rows(reading.pose.rotations), _rows(reading.pose.translations))
            self.since.append(row)
        if reading.skeleton is skeleton:
            self._bones.keep(row)
            self.limits.append(self.limits[-1])
        else:
            self._store_bones(row, sample)
        if last is not None and sample.matrix_world is last.matrix_world:  # shared while the object stays
            self._places.keep(row)
        else:
            self._places.set(row, np.array(sample.matrix_world.to_3x3()))
        if last is not None and sample.influences == last.influences:
            self._forces.keep(row)
        else:
            self._forces.set(row, sample.influences)
        self.last = sample
        self.targets.append(sample.targets)
        if self.sliding:
            self.shifts[row] = reading.shifts[list(self.sliding)]
        if self.tracks is not None:
            self.tracks.shifts.append(reading.shifts[self.tracks.support_chains.root_bone])
            self.tracks.worlds.append(np.array(sample.matrix_world, dtype=np.float64))

    def _store_bones(self, row: int, sample: FrameSample) -> None:
        joints = sample.reading.skeleton.joints
        if [joint.name for joint in joints] != [joint.name for joint in self.skeleton.joints]:
            raise RigError(f"frame {sample.frame:g}: the chains have other bones than at the first frame")
        offsets, rests = (
            _rows(joint.offset for joint in joints),
            _rows(joint.rest_rotation for joint in joints),
        )
        self._bones.set(row, offsets, rests, [joint.length for joint in joints])
        limits = tuple(joint.limit for joint in joints)
        self.limits.append(self.limits[-1] if self.limits and limits == self.limits[-1] else limits)

    def same_bones(self, first: int, last: int) -> bool:
        """Whether bones and base pose are the same at all rows from the first to the last."""
        return self.since[last] <= first

    def solved_rotations(self, rows: NDArray[np.intp]) -> Array:
        """(R, J, 4) of rows that are solved."""
        rotations: Array = self.solved[np.searchsorted(self.solved_frames, self.frames[rows])]
        return rotations

    def store_solution(
        self, row: int, pose: Pose, states: Mapping[int, str], contact_state: ContactState | None = None
    ) -> None:
        """Keep the solution of a row: the pose, how each active constraint stands, and how the figure does
        where bones are planted."""
        if self.tracks is not None and contact_state is not None:
            self.tracks.stances.append(contact_state)
        place = int(np.searchsorted(self.solved_frames, self.frames[row]))
        self.solved[place] = _rows(pose.rotations)
        for k, (j, slide) in enumerate(zip(self.sliding, self.slides, strict=True)):
            location = np.linalg.solve(self.shifts[row, k], np.array(pose.translations[j][:]))
            self.solved_slides[place, k] = location @ np.array(slide.axis)
        self.states[row] = states

    def store_rotations(self, rows: NDArray[np.intp], rotations: Array, states: Mapping[int, str]) -> None:
        """Keep the solutions of many rows at once, (R, J, 4); nothing slides in them."""
        places = np.searchsorted(self.solved_frames, self.frames[rows])
        self.solved[places] = rotations
        for k, (j, slide) in enumerate(zip(self.sliding, self.slides, strict=True)):
            locations = np.linalg.solve(self.shifts[rows, k], self.translations[rows, j, :, None])[..., 0]
            self.solved_slides[places, k] = locations @ np.array(slide.axis)
        for row in rows.tolist():
            self.states[row] = states

    def store_batch(
        self,
        rows: NDArray[np.intp],
        rotations: Array,
        translations: Array,
        states: Sequence[Mapping[int, str]],
    ) -> None:
        """Keep the solutions of many rows at once: (R, J, 4), (R, J, 3), and how each constraint ended."""
        places = np.searchsorted(self.solved_frames, self.frames[rows])
        self.solved[places] = rotations
        for k, (j, slide) in enumerate(zip(self.sliding, self.slides, strict=True)):
            locations = np.linalg.solve(self.shifts[rows, k], translations[:, j, :, None])[..., 0]
            self.solved_slides[places, k] = locations @ np.array(slide.axis)
        self.states.update(zip(rows.tolist(), states, strict=True))

    def solutions(self) -> Solutions:
        """What is solved now."""
        return Solutions(self.solved.copy(), self.solved_slides.copy(), dict(self.states))

    def restore(self, solutions: Solutions) -> None:
        """Go back to what was solved before, or on to what was made of it."""
        self.solved[:], self.solved_slides[:] = solutions.rotations, solutions.slides
        self.states = dict(solutions.states)

    def without_first(self, rows: int) -> BakeFrames:
        """The same without its first rows, all of which are solved."""
        if rows == 0:
            return self
        tracks = self.tracks
        if tracks is not None:
            shifts, stances = tracks.shifts[rows:], tracks.stances[rows:]
            tracks = replace(tracks, worlds=tracks.worlds[rows:], shifts=shifts, stances=stances)
        names = ("frames", "base", "translations", "offsets", "rests", "lengths", "influences", "worlds")
        cut = {name: getattr(self, name)[rows:] for name in (*names, "shifts", "targets", "limits")}
        return replace(
            self,
            **cut,
            solved_frames=self.solved_frames[rows:],
            solved=self.solved[rows:],
            solved_slides=self.solved_slides[rows:],
            states={row - rows: states for row, states in self.states.items() if row >= rows},
            since=[max(0, row - rows) for row in self.since[rows:]],
            tracks=tracks,
        )

    def finish(self) -> tuple[Motion, Motion]:
        """What is to be keyed, and the same at full influence."""
        full = interpolation.slerp_rotations(self.solved_frames, self.solved, self.frames)
        between = ~np.isin(self.frames, self.solved_frames)
        if between.any():
            self._hold_limits(full, np.broadcast_to(between[:, None], full.shape[:2]))
        chains = {j for constraint in self.constraints for j in chain_joints(self.skeleton, constraint)}
        still = [j for j in range(len(self.skeleton.joints)) if j not in chains]
        full[:, still] = self.base[
            :, still
        ]  # between solves they are where they are, not where a slerp leads
        influences = self._joint_influences()
        rotations = np.where(influences[..., None] > 0.0, full, self.base)
        partly = (influences > 0.0) & (influences < 1.0)
        if partly.any():
            base, solved = interpolation.unit(self.base[partly]), interpolation.unit(full[partly])
            rotations[partly] = interpolation.slerp(base, solved, influences[partly])
            self._hold_limits(rotations, partly, self.base)
        slid, all_slid = self._slid(influences), self._slid(np.ones_like(influences))
        if self.tracks is not None:
            self._stand(self.tracks, between, (rotations, slid[0]), (full, all_slid[0]))
        return Motion(interpolation.same_side(rotations), *slid), Motion(full, *all_slid)

    def _stand(
        self, tracks: Tracks, between: Array, keyed: tuple[Array, Array], full: tuple[Array, Array]
    ) -> None:
        """Support chains and root bone of (rotations, translations), what is keyed and what is at full
        influence, where planted bones are held; in place. From then on the aims of these hold that place."""
        support_chains, root_bone = list(tracks.own()), tracks.support_chains.root_bone
        poses = [contact_state.pose for contact_state in tracks.stances]
        solved = np.array([_rows(pose.rotations) for pose in poses])[:, support_chains]
        keyed[0][:, support_chains] = interpolation.slerp_rotations(self.solved_frames, solved, self.frames)
        where = np.zeros(keyed[0].shape[:2], dtype=bool)
        where[np.ix_(between, support_chains)] = True
        self._hold_limits(keyed[0], where)
        at = np.array([pose.translations[root_bone][:] for pose in poses])
        for axis in range(3):
            here = np.interp(self.frames, self.solved_frames, at[:, axis])
            keyed[1][:, root_bone, axis] = full[1][:, root_bone, axis] = here
        held = tracks.held(self.frames, self.solved_frames, self.targets)
        for rotations, translations in () if tracks.keeps_body else (keyed, full):
            constants = (self.offsets, interpolation.unit(self.rests))
            tracks.carried(held, self.solved_frames, self.frames, rotations, translations, constants)
        for f, here in enumerate(held):
            self.targets[f] = tuple(here.get(c, aim) for c, aim in enumerate(self.targets[f]))
            for c in tracks.support_chains.constraints:
                self.influences[f, c] = 1.0 if c in here else 0.0

    def keyed_joints(self) -> list[int]:
        """Joints that a constraint moves at some frame."""
        found = {int(j) for j in np.flatnonzero((self._joint_influences() > 0.0).any(axis=0))}
        if self.tracks is not None:
            found = found.difference(self.tracks.own()) | set(self.tracks.keyed())
        return sorted(found)

    def turned_joints(self) -> list[int]:
        """Those of them whose rotation is keyed: a carrier that keeps its animation is only moved."""
        kept = (
            self.tracks.support_chains.root_bone if self.tracks is not None and self.tracks.keeps_body else -1
        )
        return [j for j in self.keyed_joints() if j != kept]

    def locations(self, motion: Motion) -> dict[int, Array]:
        """(F, 3) of each joint whose location is keyed: what the location channel of its bone holds."""
        found = {j: motion.locations[:, self.sliding.index(j)] for j in self.sliding}
        if self.tracks is not None and self.tracks.support_chains.root_bone in self.tracks.keyed():
            j = self.tracks.support_chains.root_bone
            shifts = np.array(self.tracks.shifts)
            shifted = np.linalg.solve(shifts, motion.translations[:, j, :, None])[..., 0]
            found[j] = np.asarray(shifted, dtype=np.float64)
        return found

    def _slid(self, influences: Array) -> tuple[Array, Array]:
        """Translations (F, J, 3) and locations (F, K, 3) under (F, J) influences: lerped between solves."""
        translations = self.translations.copy()
        locations = np.empty((len(self.frames), len(self.sliding), 3))
        for j in dict.fromkeys(self.sliding):
            own = [k for k, joint in enumerate(self.sliding) if joint == j]
            shift, moved = self.shifts[:, own[0]], influences[:, j] > 0.0
            base = np.linalg.solve(shift, self.translations[:, j, :, None])[..., 0]
            location = base
            for k in own:
                along = base @ np.array(self.slides[k].axis)
                held = self._held_slide(k, along, influences[:, j])
                location = location + (held - along)[:, None] * np.array(self.slides[k].axis)
            location = np.where(moved[:, None], location, base)
            locations[:, own] = location[:, None]
            shifted = np.einsum("fij,fj->fi", shift, location)
            translations[:, j] = np.where(moved[:, None], shifted, translations[:, j])
        return translations, locations

    def _held_slide(self, k: int, along: Array, influences: Array) -> Array:
        """(F,) shifts of slide `k` inside its range under (F,) influences; `along`: of the base poses."""
        slide = self.slides[k]
        solved = np.interp(self.frames, self.solved_frames, self.solved_slides[:, k])
        blended = along + influences * (np.clip(solved, slide.lower, slide.upper) - along)
        # As with limits: where the animator's own pose is outside the range, it wins.
        inside = (along >= slide.lower - ROUNDING) & (along <= slide.upper + ROUNDING)
        return np.asarray(np.where(inside, np.clip(blended, slide.lower, slide.upper), blended))

    def _joint_influences(self) -> Array:
        """(F, J): the largest influence among the constraints that move a joint."""
        result = np.zeros(self.base.shape[:2])
        for c, constraint in enumerate(self.constraints):
            if constraint.kind == "PLANT":  # it moves the legs, which have their own way
                continue
            for j in chain_joints(self.skeleton, constraint):
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


def number(frame: float) -> float:
    """A frame as people write it: whole ones as whole numbers."""
    return int(frame) if frame == int(frame) else float(frame)


def _rows(values: Iterable[Vector | Quaternion]) -> Array:
    """Vectors or quaternions as the rows of an array."""
    return np.array([value[:] for value in values])
