"""What steps cost: rotations and shifts measured by the mobility of their joints."""

from __future__ import annotations

from copy import copy

import numpy as np

from ...maths.batch import Array, Indices, Mask, cross, select
from .layout import Layout
from .state import State

ACROSS = 0.1
"""Mobility of a limb's inner joint across its rest bend, beside 1 about the bend's axis."""


class Metric:
    """What rotations and shifts cost: the square of each over its mobility.

    Across the rest bend of a limb's inner joint they cost 1 / `ACROSS` times as much as about its axis.
    """

    def __init__(self, layout: Layout, state: State) -> None:
        self.layout = layout
        self.mobility = layout.mobility[:, None]
        self.to_steps = self.to_forces = np.empty(0)
        if len(layout.bent):
            frames = state.frames[layout.ball_rows[layout.bent]]
            axes = np.einsum("nijb,nj->nib", frames, layout.bends)
            along = axes[:, :, None] * axes[:, None]
            across = np.eye(3)[..., None] - along
            self.to_steps, self.to_forces = along + ACROSS * across, along + across / ACROSS

    def at(self, some: Mask | Indices) -> Metric:
        """That of some of the poses."""
        found = copy(self)
        if len(self.layout.bent):
            found.to_steps, found.to_forces = select(self.to_steps, some), select(self.to_forces, some)
        return found

    def apply(self, vectors: Array) -> Array:
        """Steps (..., k, B) of forces."""
        return self._scaled(self.mobility * vectors, self.to_steps)

    def invert(self, vectors: Array) -> Array:
        """Forces (..., k, B) of steps."""
        return self._scaled(vectors / self.mobility, self.to_forces)

    def _scaled(self, vectors: Array, scales: Array) -> Array:
        layout = self.layout
        if len(layout.bent):
            shape = (*vectors.shape[:-2], -1, 3, vectors.shape[-1])
            balls = vectors[..., layout.first_ball : layout.first_slide, :].reshape(shape)
            balls[..., layout.bent, :, :] = np.einsum(
                "nijb,...njb->...nib", scales, balls[..., layout.bent, :, :]
            )
        return vectors

    def gradient(self, departure: Array) -> Array:
        """(k, B) the steepest way, as a step, of half of what a departure costs.

        The rotation vector e of a joint changes by J^-1 d with a rotation d after it, J^-1 = 1 + [e]/2 + k
        [e]^2 in the joint's frame. For equal mobilities about all axes the way is e itself.
        """
        layout = self.layout
        if not len(layout.bent):
            return departure
        forces = self.invert(departure.copy())
        balls = (-1, 3, departure.shape[1])
        e = departure[layout.first_ball : layout.first_slide].reshape(balls)[layout.bent].transpose(1, 0, 2)
        f = forces[layout.first_ball : layout.first_slide].reshape(balls)
        own = f[layout.bent].transpose(1, 0, 2)
        square = (e * e).sum(0)
        half = np.maximum(0.5 * np.sqrt(square), 1e-3)
        k = (1.0 - half / np.tan(half)) / (4.0 * half * half)
        turned = cross(e, own)
        f[layout.bent] = (own - 0.5 * turned + k * cross(e, turned)).transpose(1, 0, 2)
        return self.apply(forces)

    def square(self, vectors: Array) -> Array:
        """(B,) what steps (k, B) cost."""
        found: Array = (vectors * self.invert(vectors)).sum(0)
        return found
