"""Poses of one skeleton as arrays, and forward kinematics over all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...maths.batch import (
    Array,
    Indices,
    Mask,
    exponential,
    fill_matrices,
    is_all,
    matrices,
    multiply,
    select,
    unit,
)
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from .layout import Layout, angles_from_rotations


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
        rests: (4, rows, B or 1). shifts: (rows, 3, B or 1) heads in the parents' frames without slides.
        points: (3, P, B or 1) the goals' points in their joints' frames, see `Problem`.
        targets: per goal (3, B) of a point or a direction, or (3, 3, B) of a frame.
        slide_axes: (slides, 3, B or 1) in the parents' frames.
        windows: (2, w, B or 1) of reach windows: the largest extent, model units, and 1 where it is held.
        reference: (4, balls, B), (h, B) and (s, B): what ball joints, hinges and slides are held near to.
    """

    rests: Array
    shifts: Array
    points: Array
    targets: tuple[Array, ...]
    slide_axes: Array
    windows: Array
    reference: tuple[Array, Array, Array] | None

    def at(self, some: Mask | Indices) -> Given:
        """Those of some of the poses."""

        def cut(values: Array) -> Array:
            return values if values.shape[-1] == 1 else select(values, some)

        reference = (
            None if self.reference is None else tuple(select(values, some) for values in self.reference)
        )
        return replace(
            self,
            rests=cut(self.rests),
            shifts=cut(self.shifts),
            points=cut(self.points),
            targets=tuple(map(cut, self.targets)),
            slide_axes=cut(self.slide_axes),
            windows=cut(self.windows),
            reference=reference,
        )


@dataclass(frozen=True)
class State:
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


def geometry(layout: Layout, bones: Bones, poses: Poses) -> tuple[Array, Array, Array]:
    """Rests, shifts without slides, and slide axes, as `Given` holds them."""
    rows = layout.rows
    rests = bones.rests[:, rows]
    turn = matrices(rests)
    translations = poses.translations[:, rows]
    if len(layout.slides):
        translations = translations.copy()
        for (_, slide), row in zip(layout.slides, layout.slide_rows.tolist(), strict=True):
            axis = np.array(slide.axis)
            translations[:, row] -= axis[:, None] * (axis @ translations[:, row])
    if not translations.any():
        shifts = np.ascontiguousarray(bones.offsets[:, rows].transpose(1, 0, 2))
    else:
        moved = np.einsum("ijnb,jnb->nib", turn, np.broadcast_to(translations, translations.shape))
        shifts = bones.offsets[:, rows].transpose(1, 0, 2) + moved
        if shifts.shape[-1] > 1 and (shifts == shifts[..., :1]).all():
            shifts = shifts[..., :1].copy()
    axes = np.einsum("ijsb,sj->sib", turn[:, :, layout.slide_rows], layout.slide_axes)
    return np.ascontiguousarray(rests), shifts, axes


def start_state(layout: Layout, given: Given, poses: Poses) -> State:
    """The state of poses whose joints are inside their limits."""
    rotations = np.ascontiguousarray(poses.rotations[:, layout.rows])
    angles = angles_from_rotations(layout, rotations)
    if len(layout.hinges):
        rotations[:, layout.hinge_rows] = 0.0
        _set_hinges(layout, rotations, angles)
    slides = np.empty((len(layout.slides), rotations.shape[-1]))
    for k, (i, slide) in enumerate(layout.slides):
        along = np.array(slide.axis) @ poses.translations[:, i]
        slides[k] = np.clip(along, slide.lower, slide.upper)
    return State(rotations, angles, slides, _transforms(layout, given, rotations, slides, None))


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
        lower, upper = layout.lower[: layout.first_ball, None], layout.upper[: layout.first_ball, None]
        angles = np.clip(angles, lower, upper)
        _set_hinges(layout, rotations, angles)
    rotations[:, layout.ball_rows] = balls
    lower, upper = layout.lower[layout.first_slide :, None], layout.upper[layout.first_slide :, None]
    slides = np.clip(slides, lower, upper)
    return State(rotations, angles, slides, _transforms(layout, given, rotations, slides, state.transforms))


def moved_state(layout: Layout, given: Given, state: State, step: Array, balls: Array, reach: float) -> State:
    """The state after a step (columns, B) of hinges and slides, with ball joints at (4, balls, B)."""
    rotations = state.rotations.copy()
    angles, slides = state.angles, state.slides
    if len(layout.hinges):
        angles = angles + step[: layout.first_ball]
        _set_hinges(layout, rotations, angles)
    rotations[:, layout.ball_rows] = balls
    if len(layout.slides):
        slides = slides + reach * step[layout.first_slide :]
    return State(rotations, angles, slides, _transforms(layout, given, rotations, slides, state.transforms))


def stepped_balls(layout: Layout, state: State, step: Array) -> Array:
    """(4, balls, B) rotations of ball joints after a step, limits not applied."""
    own = state.rotations[:, layout.ball_rows]
    return unit(multiply(own, exponential(ball_vectors(layout, state, step))))


def ball_vectors(layout: Layout, state: State, step: Array) -> Array:
    """(3, balls, B) rotation vectors in the joints' frames of a step, whose columns are about model axes."""
    about = step[layout.first_ball : layout.first_slide].reshape(-1, 3, state.size)
    frames = state.frames[layout.ball_rows]
    return np.stack(
        [
            frames[:, 0, k] * about[:, 0] + frames[:, 1, k] * about[:, 1] + frames[:, 2, k] * about[:, 2]
            for k in range(3)
        ]
    )


def to_model(layout: Layout, state: State, vectors: Array) -> Array:
    """(balls, 3, B) about model axes, of vectors (3, balls, B) in the ball joints' frames."""
    frames = state.frames[layout.ball_rows]
    found = frames[:, :, 0] * vectors[0][:, None]
    found += frames[:, :, 1] * vectors[1][:, None]
    found += frames[:, :, 2] * vectors[2][:, None]
    return np.asarray(found)


def _set_hinges(layout: Layout, rotations: Array, angles: Array) -> None:
    """Write the rotations of hinges and Euler boxes; in place."""
    cosines, sines = np.cos(0.5 * angles), np.sin(0.5 * angles)
    singles = layout.singles
    rows, axes = layout.hinge_rows[:singles], layout.hinge_axes[:singles]
    if singles:
        rotations[0, rows] = cosines[:singles]
        for k in range(3):
            rotations[k + 1, rows] = sines[:singles] * axes[:, k, None]
    if len(layout.box_rows):
        c = cosines[singles:].reshape(-1, 3, angles.shape[-1])
        s = sines[singles:].reshape(-1, 3, angles.shape[-1])
        turned = []
        for place in range(3):
            each = np.zeros((4, len(c), angles.shape[-1]))
            each[0] = c[:, place]
            each[layout.box_axes[:, place] + 1, np.arange(len(c))] = s[:, place]
            turned.append(each)
        rotations[:, layout.box_rows] = multiply(multiply(turned[0], turned[1]), turned[2])


def _transforms(layout: Layout, given: Given, rotations: Array, slides: Array, before: Array | None) -> Array:
    """(rows, 3, 4, B): forward kinematics; what no column moves is taken from `before`."""
    live = layout.live if before is not None else list(range(len(layout.rows)))
    whole = len(live) == len(layout.rows)
    size = rotations.shape[-1]
    local = np.empty((len(live), 3, 4, size))
    some = slice(None) if whole else live
    fill_matrices(multiply(given.rests[:, some], rotations[:, some]), local)
    local[:, :, 3] = given.shifts[some]
    for k, row in enumerate(layout.slide_rows.tolist()):
        local[row if whole else live.index(row), :, 3] += given.slide_axes[k] * slides[k]
    for each in layout.coupled:
        if whole or each.row in live:
            place = each.row if whole else live.index(each.row)
            local[place, :, 3] += each.shift(rotations, given.rests)
    found = np.empty((len(layout.rows), 3, 4, size))
    if not whole:
        assert before is not None
        fixed = [row for row in range(len(layout.rows)) if row not in set(live)]
        found[fixed] = before[fixed]
    for place, row in enumerate(live):
        parent = layout.parents[row]
        if parent == -1:
            found[row] = local[place]
        elif layout.inherits[row]:
            np.einsum("ijb,jkb->ikb", found[parent, :, :3], local[place], out=found[row])
            found[row, :, 3] += found[parent, :, 3]
        else:
            found[row, :, :3] = local[place, :, :3]
            found[row, :, 3] = np.einsum("ijb,jb->ib", found[parent, :, :3], local[place, :, 3])
            found[row, :, 3] += found[parent, :, 3]
    return found


def targets_array(value: ArrayLike) -> Array:
    """One target for all poses, with a last size of 1."""
    return np.asarray(value, dtype=np.float64)[..., None]
