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

    def __init__(self, layout: Layout, bends: Array, state: State) -> None:
        """`bends` (b, 3, B or 1) are those of the poses, see `Given`."""
        self.layout = layout
        self.mobility = layout.mobility[:, None]
        self.to_steps = self.to_forces = np.empty(0)
        if len(layout.bent):
            frames = state.frames[layout.ball_rows[layout.bent]]
            axes = np.einsum("nijb,njb->nib", frames, bends)
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
        if not len(self.layout.bent):
            return departure
        forces = self.invert(departure.copy())
        e, own = self._bent(departure), self._bent(forces)
        turned = cross(e, own)
        found = own - 0.5 * turned + _factors(e)[0] * cross(e, turned)
        self._balls(forces)[self.layout.bent] = found.transpose(1, 0, 2)
        return self.apply(forces)

    def curvature(self, departure: Array) -> Array:
        """(b, 3, 3, B) the second derivative of half of what a departure costs, by rotations of the bent.

        With u the force of a departure e, w = e x u, and k as in `gradient`, that is the symmetric part of
        (J^-T M + [u] / 2 - k ([w] + [e][u]) + k' / |e| [e] w e^T) J^-1, M the inverse of the mobilities.
        """
        mobility = self.layout.mobility[self.layout.first_ball : self.layout.first_slide : 3]
        scales = (self.to_forces / mobility[self.layout.bent, None, None, None]).transpose(1, 2, 0, 3)
        e = self._bent(departure)
        u = np.einsum("ijnb,jnb->inb", scales, e)
        k, change = _factors(e)
        w = cross(e, u)
        turn, force = _skew(e), _skew(u)
        square = _product(turn, turn)
        there = _identity(e) + 0.5 * turn + k * square
        found = _product(_identity(e) - 0.5 * turn + k * square, scales)
        found += 0.5 * force - k * (_skew(w) + _product(turn, force))
        found += change * cross(e, w)[:, None] * e
        found = _product(found, there)
        return np.asarray(0.5 * (found + found.transpose(1, 0, 2, 3)).transpose(2, 0, 1, 3))

    def _balls(self, vectors: Array) -> Array:
        """(balls, 3, B) what (k, B) has of the ball joints."""
        layout = self.layout
        found: Array = vectors[layout.first_ball : layout.first_slide].reshape(-1, 3, vectors.shape[1])
        return found

    def _bent(self, vectors: Array) -> Array:
        """(3, b, B) what (k, B) has of the bent joints."""
        found: Array = self._balls(vectors)[self.layout.bent].transpose(1, 0, 2)
        return found

    def square(self, vectors: Array) -> Array:
        """(B,) what steps (k, B) cost."""
        found: Array = (vectors * self.invert(vectors)).sum(0)
        return found


def _factors(vectors: Array) -> tuple[Array, Array]:
    """k of rotation vectors (3, ...), see `Metric.gradient`, and its change with their length, over that."""
    angle = np.maximum(np.sqrt((vectors * vectors).sum(0)), 2e-2)
    half = 0.5 * angle
    k = (1.0 - half / np.tan(half)) / (angle * angle)
    change = (half / np.tan(half) + (half / np.sin(half)) ** 2 - 2.0) / angle**4
    return k, change


def _skew(vectors: Array) -> Array:
    """(3, 3, ...): the matrices of the cross products of (3, ...)."""
    x, y, z = vectors
    none = np.zeros_like(x)
    return np.array(((none, -z, y), (z, none, -x), (-y, x, none)))


def _identity(like: Array) -> Array:
    return np.eye(3).reshape(3, 3, *(1,) * (like.ndim - 1))


def _product(a: Array, b: Array) -> Array:
    """(3, 3, ...) products of matrices."""
    return np.asarray(np.einsum("ij...,jk...->ik...", a, b))
