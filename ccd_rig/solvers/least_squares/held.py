"""Limits that hold while a step is worked out: bounds of hinges and slides, borders of ball joints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...maths.batch import TINY, Array, Indices, Mask, dot, exponential, length, multiply, select
from .joint_limits import BallLimits
from .layout import Layout
from .state import State, to_model

FACES = 3
"""At so many borders of its limit a ball joint is held at once; a twist of one angle comes on top."""
BESIDE = 1e-3
"""Radians that a step across a border is long, and from it up to which it holds on."""
TOUCHED = 1e-3
"""Part of such a step that has to be outside."""
SAME_FACE = 0.05
"""Part of a push out of the limit that is new beside the borders that hold already."""


@dataclass
class Active:
    """The limits that hold, per pose.

    Attributes:
        held: (k, B) hinges and slides at a bound.
        fixed: (k, B) the step of those.
        normals: (FACES, 3, L, B) outward unit normals in the frames of the L limited ball joints; 0: none.
        gaps: (FACES, L, B) rotation along the normal that is left to the border, radians.
    """

    held: Mask
    fixed: Array
    normals: Array
    gaps: Array

    @classmethod
    def none(cls, columns: int, balls: int, size: int) -> Active:
        """Nothing holds."""
        return cls(
            np.zeros((columns, size), dtype=np.bool_),
            np.zeros((columns, size)),
            np.zeros((FACES, 3, balls, size)),
            np.zeros((FACES, balls, size)),
        )

    def copy(self) -> Active:
        """The same once more."""
        return Active(self.held.copy(), self.fixed.copy(), self.normals.copy(), self.gaps.copy())

    def at_borders(self) -> Mask:
        """(B,) whether a ball joint is held."""
        return np.asarray(self.normals.any((0, 1, 2)))

    def at(self, some: Mask | Indices) -> Active:
        """Those of some of the poses."""
        return Active(
            select(self.held, some),
            select(self.fixed, some),
            select(self.normals, some),
            select(self.gaps, some),
        )

    def put(self, some: Mask | Indices, other: Active) -> None:
        """Take over those of some of the poses."""
        self.held[:, some], self.fixed[:, some] = other.held, other.fixed
        self.normals[..., some], self.gaps[..., some] = other.normals, other.gaps


class Held(NamedTuple):
    """What the limits that hold leave of a step.

    Attributes:
        layout: the columns.
        columns: (k, B) hinges and slides at a bound; None where there is none.
        balls: numbers of the ball joints that may be held.
        left: (balls, 3, 3, B) what is left of their rotations, model axes; None where none is held.
    """

    layout: Layout
    columns: Mask | None
    balls: Indices
    left: Array | None

    @classmethod
    def of(cls, limits: BallLimits, state: State, active: Active) -> Held:
        """The directions of the limits that hold at a state."""
        columns = active.held if active.held.any() else None
        normals = [_in_model(limits, state, each) for each in active.normals if each.any()]
        if not normals and not len(limits.locked):
            return cls(limits.layout, columns, limits.limited, None)
        left = np.zeros((len(limits.limited), 3, 3, state.size))
        for axis in range(3):
            left[:, axis, axis] = 1.0
        if len(limits.locked):
            axes = _locked_axes(limits, state)
            left[limits.locked_places] -= axes[:, :, None] * axes[:, None]
        for each in normals:
            left -= each[:, :, None] * np.einsum("nib,nijb->njb", each, left)[:, None]
        return cls(limits.layout, columns, limits.limited, left)

    def at(self, some: Indices) -> Held:
        """That of some of the poses."""
        return Held(
            self.layout,
            None if self.columns is None else select(self.columns, some),
            self.balls,
            None if self.left is None else select(self.left, some),
        )

    def free(self, vectors: Array) -> Array:
        """What of (..., k, B) is along columns and directions that nothing holds; the same where all is."""
        if self.columns is None and self.left is None:
            return vectors
        found: Array = vectors.copy() if self.columns is None else np.where(self.columns, 0.0, vectors)
        if self.left is not None:
            shape = (*vectors.shape[:-2], -1, 3, vectors.shape[-1])
            balls = found[..., self.layout.first_ball : self.layout.first_slide, :].reshape(shape)
            balls[..., self.balls, :, :] = np.einsum(
                "nijb,...njb->...nib", self.left, balls[..., self.balls, :, :]
            )
        return found


def refreshed(active: Active, limits: BallLimits, state: State) -> Active:
    """The limits that hold, with the borders of ball joints as they are at a state.

    What held at the state before holds on, as long as it is near: were borders looked for anew, steps along
    several of them would end before all are found. A step just across a border tells where it is now.
    """
    found = active.copy()
    found.gaps[:] = 0.0
    own = state.rotations[:, limits.layout.ball_rows[limits.limited]]
    for face, normals in enumerate(found.normals):
        if not normals.any():
            continue
        outward = limits.outward(multiply(own, exponential(BESIDE * normals))) * normals.any(0)
        depth = length(outward)
        if len(limits.locked):
            axes, part = limits.locked_axes(own[:, limits.locked_places]), outward[:, limits.locked_places]
            outward[:, limits.locked_places] = part - dot(axes, part) * axes
        for other in found.normals[:face]:
            outward -= dot(other, outward) * other
        size = length(outward)
        holds = size > TOUCHED * BESIDE
        normals[:] = np.where(holds, outward / np.maximum(size, TINY), 0.0)
        found.gaps[face] = np.where(holds, BESIDE - depth, 0.0)
    return found


def fixed_steps(limits: BallLimits, state: State, active: Active) -> Array | None:
    """(k, B) the steps of what is held, up to its bound or border; None where none takes one."""
    found = active.fixed
    layout = limits.layout
    for normals, gaps in zip(active.normals, active.gaps, strict=True):
        if gaps.any():
            found = found.copy() if found is active.fixed else found
            balls = found[layout.first_ball : layout.first_slide].reshape(-1, 3, state.size)
            balls[limits.limited] += gaps[:, None] * _in_model(limits, state, normals)
    return found if found.any() else None


def hold_borders(
    active: Active,
    limits: BallLimits,
    where: tuple[Indices, Indices],
    outward: Array,
    allowed: Array,
    before: Array,
) -> Mask:
    """Hold ball joints along the outward vectors by which a step would leave their limits; in place.

    Args:
        active: what holds.
        limits: of the ball joints.
        where: (K,) places of limited ball joints, and (K,) poses.
        outward: (3, K) rotation vectors in the joints' frames.
        allowed: (3, K) the steps that the limits allow.
        before: (4, K) rotations before the step.

    Returns:
        (K,) which are new.
    """
    ball, pose = where
    depth = length(outward)
    rest = outward
    if len(limits.locked):
        axes = limits.locked_axes_of(where, before)
        rest = rest - dot(axes, rest) * axes
    for face in range(FACES):
        normals = active.normals[face][:, ball, pose]
        rest = rest - dot(normals, rest) * normals
    size = length(rest)
    new: Mask = (size > 1e-9) & (size > SAME_FACE * depth)
    normal = rest / np.maximum(size, TINY)
    gap = dot(normal, allowed)
    left = new.copy()
    for face in range(FACES):
        empty = ~active.normals[face][:, ball, pose].any(0)
        use = left & empty
        active.normals[face][:, ball[use], pose[use]] = normal[:, use]
        active.gaps[face][ball[use], pose[use]] = gap[use]
        left &= ~use
    return new & ~left


def _in_model(limits: BallLimits, state: State, vectors: Array) -> Array:
    """(L, 3, B) about model axes, of vectors (3, L, B) in the frames of limited joints."""
    layout = limits.layout
    if limits.is_whole:
        return to_model(layout, state, vectors)
    return _about_model(state, layout.ball_rows[limits.limited], vectors)


def _locked_axes(limits: BallLimits, state: State) -> Array:
    """(locked, 3, B) about model axes: what a twist of a single angle holds."""
    rows = limits.layout.ball_rows[limits.locked]
    return _about_model(state, rows, limits.locked_axes(state.rotations[:, rows]))


def _about_model(state: State, rows: Indices, vectors: Array) -> Array:
    frames = state.frames[rows]
    return np.asarray(sum(frames[:, :, k] * vectors[k][:, None] for k in range(3)))
