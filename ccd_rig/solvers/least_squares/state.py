"""Poses of one skeleton as arrays, and forward kinematics over all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...maths.batch import (
    Array,
    Indices,
    Mask,
    dot,
    exponential,
    fill_matrices,
    is_all,
    multiply,
    select,
    select_given,
    stacked_matrices,
    unit,
)
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from .joint_limits import JointLimits
from .layout import Layout, Walk, angles_from_rotations


class Poses(NamedTuple):
    """Poses of all N joints of a skeleton, relative to rest; double precision.

    Attributes:
        rotations: (4, N, B) unit quaternions.
        translations: (3, N, B).
    """

    rotations: Array
    translations: Array

    @classmethod
    def of(cls, poses: Sequence[Pose]) -> Poses:
        """Arrays of poses; rotations are normalised in double precision."""
        rotations = np.array([[q[:] for q in pose.rotations] for pose in poses], dtype=np.float64)
        translations = np.array([[t[:] for t in pose.translations] for pose in poses], dtype=np.float64)
        return cls(unit(rotations.transpose(2, 1, 0)), np.ascontiguousarray(translations.transpose(2, 1, 0)))

    def at(self, some: Mask | Indices | slice) -> Poses:
        """Some of the poses."""
        return Poses(select(self.rotations, some), select(self.translations, some))

    def with_joints(self, others: Poses, joints: Sequence[int]) -> Poses:
        """The same with some joints as they are in others."""
        rotations, translations = self.rotations.copy(), self.translations.copy()
        rotations[:, joints], translations[:, joints] = (
            others.rotations[:, joints],
            others.translations[:, joints],
        )
        return Poses(rotations, translations)

    def joined(self, some: Indices, others: Poses) -> Poses:
        """The same with others in place of some of the poses."""
        rotations, translations = self.rotations.copy(), self.translations.copy()
        rotations[..., some], translations[..., some] = others
        return Poses(rotations, translations)


class Bones(NamedTuple):
    """What of the N joints may differ from pose to pose beside the pose; the last size is B, or 1 for all.

    Attributes:
        offsets: (3, N, B) heads in the parent's frame; a root's in model space.
        rests: (4, N, B) rest rotations.
        lengths: (N, B) from head to tail.
    """

    offsets: Array
    rests: Array
    lengths: Array

    @classmethod
    def of(cls, skeleton: Skeleton) -> Bones:
        """The same for every pose."""
        joints = skeleton.joints
        offsets = np.array([joint.offset[:] for joint in joints], dtype=np.float64)
        rests = np.array([joint.rest_rotation[:] for joint in joints], dtype=np.float64)
        lengths = np.array([joint.length for joint in joints], dtype=np.float64)
        return cls(offsets.T[..., None], unit(rests.T)[..., None], lengths[:, None])

    def at(self, some: Mask | Indices | slice) -> Bones:
        """Those of some of the poses."""
        if self.offsets.shape[-1] == 1:
            return self
        return Bones(select(self.offsets, some), select(self.rests, some), select(self.lengths, some))


@dataclass(frozen=True)
class Given:
    """What of each pose is given: geometry, targets, and the pose that joints are held near to.

    Attributes:
        rests: (4, rows, B or 1) rest rotations; turns: (rows, 3, 3, B or 1) their matrices.
        shifts: (rows, 3, B or 1) heads in the parents' frames without slides.
        points: (4, P, B or 1) the goals' points in their joints' frames, the last component 1.
        targets: per goal (3, B) of a point or a direction, or (3, 3, B) of a frame.
        slide_axes: (slides, 3, B or 1) in the parents' frames.
        reach: (B or 1,) length of the longest chain, model units: what lengths are divided by.
        bends: (b, 3, B or 1) axes of the rest bends of limbs' inner joints, see `Layout.bent`.
        windows: (2, w, B or 1) of reach windows: the largest extent, model units, and 1 where it is held.
        limits: of the joints.
        reference: (4, balls, B), (h, B) and (s, B): what ball joints, hinges and slides are held near to.
    """

    rests: Array
    turns: Array
    shifts: Array
    points: Array
    targets: tuple[Array, ...]
    slide_axes: Array
    reach: Array
    bends: Array
    windows: Array
    limits: JointLimits
    reference: tuple[Array, Array, Array] | None

    def at(self, some: Mask | Indices) -> Given:
        """Those of some of the poses."""

        def cut(values: Array) -> Array:
            return select_given(values, some)

        reference = (
            None if self.reference is None else tuple(select(values, some) for values in self.reference)
        )
        return replace(
            self,
            rests=cut(self.rests),
            turns=cut(self.turns),
            shifts=cut(self.shifts),
            points=cut(self.points),
            targets=tuple(map(cut, self.targets)),
            slide_axes=cut(self.slide_axes),
            reach=cut(self.reach),
            bends=cut(self.bends),
            windows=cut(self.windows),
            limits=self.limits.at(some),
            reference=reference,
        )


class State(NamedTuple):
    """Poses of the joints that matter.

    Attributes:
        rotations: (4, rows, B) relative to rest.
        angles: (h, B) of the hinges.
        slides: (s, B) along the slides' axes, model units.
        transforms: (rows, 3, 4, B) model space: frames, and heads in the last column.
    """

    rotations: Array
    angles: Array
    slides: Array
    transforms: Array

    @property
    def size(self) -> int:
        return int(self.transforms.shape[-1])

    @property
    def heads(self) -> Array:
        """(rows, 3, B) model space."""
        found: Array = self.transforms[:, :, 3]
        return found

    @property
    def frames(self) -> Array:
        """(rows, 3, 3, B) model space."""
        found: Array = self.transforms[:, :, :3]
        return found

    def at(self, some: Mask | Indices) -> State:
        """Some of the poses."""
        return State(
            select(self.rotations, some),
            select(self.angles, some),
            select(self.slides, some),
            select(self.transforms, some),
        )

    def joined(self, some: Indices, other: State) -> State:
        """The same with others in place of some of the poses."""
        if is_all(some, self.size):
            return other
        found = [self.rotations.copy(), self.angles.copy(), self.slides.copy(), self.transforms.copy()]
        for mine, theirs in zip(
            found, (other.rotations, other.angles, other.slides, other.transforms), strict=True
        ):
            mine[..., some] = theirs
        return State(*found)


def geometry(layout: Layout, bones: Bones, poses: Poses) -> tuple[Array, Array, Array, Array]:
    """Rests, their matrices, shifts without slides, and slide axes, as `Given` holds them."""
    rows = layout.rows
    rests = bones.rests.take(rows, 1)
    turns = np.empty((len(rows), 3, 3, rests.shape[-1]))
    if rests.shape[-1] == 1:
        turns[..., 0] = stacked_matrices(rests[..., 0].T)
    else:
        fill_matrices(rests, turns)
    translations = poses.translations.take(rows, 1)
    for (_, slide), row in zip(layout.slides, layout.slide_rows.tolist(), strict=True):
        axis = np.array(slide.axis)
        translations[:, row] -= axis[:, None] * _along(axis, translations[:, row])
    shifts = np.ascontiguousarray(bones.offsets.take(rows, 1).transpose(1, 0, 2))
    if translations.any():
        shifts = shifts + np.einsum("nijb,jnb->nib", turns, translations)
        if shifts.shape[-1] > 1 and (shifts == shifts[..., :1]).all():
            shifts = shifts[..., :1].copy()
    axes = np.empty((0, 3, 1))
    if layout.slides:
        axes = np.einsum("sijb,sj->sib", turns[layout.slide_rows], layout.slide_axes)
    return rests, turns, shifts, axes


def start_state(layout: Layout, given: Given, poses: Poses) -> State:
    """The state of poses whose joints are inside their limits."""
    rotations = poses.rotations.take(layout.rows, 1)
    angles = angles_from_rotations(layout, rotations)
    if layout.hinges:
        _set_hinges(layout, given.limits.hinge_axes, rotations, angles)
    slides = _slides(layout, poses)
    return State(rotations, angles, slides, _transforms(layout, given, rotations, slides, None))


def posed_state(layout: Layout, given: Given, poses: Poses) -> State:
    """The state of poses as they are, to measure it: hinges have no angles."""
    rotations, slides = poses.rotations.take(layout.rows, 1), _slides(layout, poses)
    transforms = _transforms(layout, given, rotations, slides, None)
    return State(rotations, np.empty((0, rotations.shape[-1])), slides, transforms)


def _slides(layout: Layout, poses: Poses) -> Array:
    """(s, B) along the slides' axes, model units, inside their ranges."""
    found = np.empty((len(layout.slides), poses.rotations.shape[-1]))
    for k, (i, slide) in enumerate(layout.slides):
        along = _along(np.array(slide.axis), poses.translations[:, i])
        found[k] = np.clip(along, slide.lower, slide.upper)
    return found


def _along(axis: Array, vectors: Array) -> Array:
    """(B,) how far vectors (3, B) go along an axis (3,).

    One pose's is left to BLAS, which rounds by place where there are several.
    """
    return np.asarray(axis @ vectors if vectors.shape[1] == 1 else dot(axis[:, None], vectors))


def to_poses(layout: Layout, state: State, own: Poses) -> Poses:
    """The poses of states, in which joints that do not move are those of `own`."""
    poses = Poses(own.rotations.copy(), own.translations.copy())
    moved = [layout.row[i] for i in layout.moved]
    poses.rotations[:, layout.moved] = state.rotations[:, moved]
    for k, (i, slide) in enumerate(layout.slides):
        axis = np.array(slide.axis)[:, None]
        along = (axis * own.translations[:, i]).sum(0)
        poses.translations[:, i] += axis * (state.slides[k] - along)
    return poses


def rebuilt(layout: Layout, given: Given, state: State, balls: Array, angles: Array, slides: Array) -> State:
    """The state with ball joints (4, balls, B), hinges (h, B) and slides (s, B) elsewhere, inside their
    bounds; limits of ball joints are not applied."""
    rotations = state.rotations.copy()
    if len(layout.hinges):
        angles = np.clip(angles, *given.limits.bounds[:, : layout.first_ball])
        _set_hinges(layout, given.limits.hinge_axes, rotations, angles)
    rotations[:, layout.ball_rows] = balls
    slides = np.clip(slides, *given.limits.bounds[:, layout.first_slide :])
    return State(rotations, angles, slides, _transforms(layout, given, rotations, slides, state.transforms))


def moved_state(layout: Layout, given: Given, state: State, step: Array, balls: Array) -> State:
    """The state after a step (columns, B) of hinges and slides, with ball joints at (4, balls, B)."""
    rotations = state.rotations.copy()
    angles, slides = state.angles, state.slides
    if layout.hinges:
        angles = angles + step[: layout.first_ball]
        _set_hinges(layout, given.limits.hinge_axes, rotations, angles)
    if layout.balls:
        rotations[:, layout.ball_rows] = balls
    if layout.slides:
        slides = slides + given.reach * step[layout.first_slide :]
    return State(rotations, angles, slides, _transforms(layout, given, rotations, slides, state.transforms))


def stepped_balls(layout: Layout, state: State, step: Array) -> Array:
    """(4, balls, B) rotations of ball joints after a step, limits not applied."""
    own = state.rotations[:, layout.ball_rows]
    return unit(multiply(own, exponential(ball_vectors(layout, state, step))))


def ball_vectors(layout: Layout, state: State, step: Array) -> Array:
    """(3, balls, B) rotation vectors in the joints' frames of a step, whose columns are about model axes."""
    about = step[layout.first_ball : layout.first_slide].reshape(-1, 3, state.size)
    found: Array = np.einsum("njib,njb->inb", state.transforms.take(layout.ball_rows, 0)[:, :, :3], about)
    return found


def to_model(layout: Layout, state: State, vectors: Array) -> Array:
    """(balls, 3, B) about model axes, of vectors (3, balls, B) in the ball joints' frames."""
    frames = state.frames[layout.ball_rows]
    found = frames[:, :, 0] * vectors[0][:, None]
    found += frames[:, :, 1] * vectors[1][:, None]
    found += frames[:, :, 2] * vectors[2][:, None]
    return np.asarray(found)


def _set_hinges(layout: Layout, axes: Array, rotations: Array, angles: Array) -> None:
    """Write the rotations of hinges about axes (h, 3, B or 1), and of Euler boxes; in place."""
    half = 0.5 * angles
    cosines, sines = np.cos(half), np.sin(half)
    singles = layout.singles
    if singles:
        rows = layout.single_rows
        rotations[0, rows] = cosines[:singles]
        rotations[1:, rows] = sines[:singles] * axes[:singles].swapaxes(0, 1)
    if layout.boxes is not None:
        rotations[:, layout.boxes.rows] = layout.boxes.rotations(cosines[singles:], sines[singles:])


def _transforms(layout: Layout, given: Given, rotations: Array, slides: Array, before: Array | None) -> Array:
    """(rows, 3, 4, B): forward kinematics; what no column moves is taken from `before`."""
    walk = layout.live if before is not None else layout.all_rows
    size = rotations.shape[-1]
    local, found = _room(len(walk.steps), size), _room(len(layout.rows), size)
    some = slice(None) if walk.whole else walk.rows
    if size == 1:
        local[:, :3, :3, 0] = given.turns[some, :, :, 0] @ stacked_matrices(rotations[:, some, 0].T)
    else:
        fill_matrices(multiply(given.rests[:, some], rotations[:, some]), local)
    local[:, :3, 3] = given.shifts[some]
    for k, row in enumerate(layout.slide_rows.tolist()):
        local[walk.place[row], :3, 3] += given.slide_axes[k] * slides[k]
    for each in layout.coupled:
        if each.row in walk.place:
            local[walk.place[each.row], :3, 3] += each.shift(rotations, given.rests)
    if not walk.whole:
        assert before is not None
        found[walk.fixed, :3] = before[walk.fixed]
    if size == 1:
        _chain_one(walk, list(local[..., 0]), list(found[..., 0]))
    else:
        _chain(walk, local, found)
    return found[:, :3]


def _room(count: int, size: int) -> Array:
    """(count, 3, 4, B) for transforms; of one pose (count, 4, 4, 1), whose last row is 0, 0, 0, 1."""
    if size > 1:
        return np.empty((count, 3, 4, size))
    found = np.zeros((count, 4, 4, 1))
    found[:, 3, 3] = 1.0
    return found


def _chain_one(walk: Walk, local: list[Array], found: list[Array]) -> None:
    """As `_chain` for one pose, of whole matrices (4, 4): its few numbers are quicker with BLAS."""
    for place, row, parent, inherits in walk.steps:
        if parent == -1:
            found[row][:] = local[place]
        elif inherits:
            np.dot(found[parent], local[place], found[row])
        else:
            found[row][:] = local[place]
            found[row][:3, 3] = found[parent][:3] @ local[place][:, 3]


def _chain(walk: Walk, local: Array, found: Array) -> None:
    """Write transforms in model space (rows, 3, 4, B) from those in the parents' frames."""
    for place, row, parent, inherits in walk.steps:
        if parent == -1:
            found[row] = local[place]
        elif inherits:
            np.einsum("ijb,jkb->ikb", found[parent, :, :3], local[place], out=found[row])
            found[row, :, 3] += found[parent, :, 3]
        else:
            found[row, :, :3] = local[place, :, :3]
            found[row, :, 3] = np.einsum("ijb,jb->ib", found[parent, :, :3], local[place, :, 3])
            found[row, :, 3] += found[parent, :, 3]
