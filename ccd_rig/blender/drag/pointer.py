# SPDX-License-Identifier: GPL-3.0-or-later
"""From the pointer to a motion in the world: at the depth of what is grabbed, along axes, in steps."""

from __future__ import annotations

from typing import Any, NamedTuple

from mathutils import Matrix, Vector

PARALLEL = 0.02
"""Sine of the angle between a view ray and an axis, or a plane, below which they do not meet usefully."""
PRECISE = 0.1
"""Part of the pointer's way that counts while Shift is held, and part of the step with Ctrl."""


class Ray(NamedTuple):
    """A view ray: a point of it and its direction, in the world."""

    origin: Vector
    direction: Vector


class Axes(NamedTuple):
    """What a motion is bound to.

    Attributes:
        matrix: the axes are its columns, of length 1, in the world.
        names: those that are left free, of X, Y and Z.
    """

    matrix: Matrix
    names: str

    def free(self) -> list[Vector]:
        """The axes along which there is a motion."""
        return [self.matrix.col["XYZ".index(name)].to_3d() for name in self.names]


def motion(place: Vector, rays: tuple[Ray, Ray], forward: Vector, axes: Axes | None) -> Vector:
    """How far the pointer has carried a place since the press.

    Args:
        place: what was grabbed, in the world.
        rays: under the pointer at the press, and now.
        forward: the direction of the view: the plane at right angles to it is where the pointer moves.
        axes: what the motion is bound to; None: the plane of the view.
    """
    in_view: Any = _on_plane(place, forward, rays[1]) - _on_plane(place, forward, rays[0])
    if axes is None or len(axes.names) == 3:
        return in_view
    free = axes.free()
    if len(free) == 1:
        axis: Any = free[0]
        ends = [_along(place, axis, ray) for ray in rays]
        start, end = ends
        return axis * (in_view.dot(axis) if start is None or end is None else end - start)
    normal: Any = free[0].cross(free[1])
    if any(abs(ray.direction.normalized().dot(normal)) < PARALLEL for ray in rays):
        return in_view - normal * in_view.dot(normal)
    return _on_plane(place, normal, rays[1]) - _on_plane(place, normal, rays[0])


def stepped(delta: Vector, step: float, axes: Axes | None) -> Vector:
    """A motion in whole steps along the axes that it is bound to, or along the world's."""
    matrix = Matrix.Identity(3) if axes is None else axes.matrix
    along = matrix.transposed() @ delta
    return matrix @ Vector([round(part / step) * step for part in along])


def place_on(head: Vector, tail: Vector, ray: Ray) -> float:
    """The part of a bone's length, 0 to 1, at which it is nearest to a view ray."""
    bone: Any = tail - head
    if bone.length < 1e-12:
        return 0.0
    along = _along(head, bone.normalized(), ray)
    if along is None:  # seen from its end
        return 1.0
    return min(max(along / bone.length, 0.0), 1.0)


def _on_plane(place: Vector, normal: Vector, ray: Ray) -> Vector:
    """Where a ray meets the plane through a place; the place itself where it runs along the plane."""
    steepness = ray.direction.dot(normal)
    if abs(steepness) < 1e-9:
        return place.copy()
    return ray.origin + ray.direction * ((place - ray.origin).dot(normal) / steepness)


def _along(place: Vector, axis: Vector, ray: Ray) -> float | None:
    """How far along an axis through a place the point nearest to a ray is; None where both are parallel."""
    direction = ray.direction.normalized()
    cosine = axis.dot(direction)
    if 1.0 - cosine * cosine < PARALLEL * PARALLEL:
        return None
    between = ray.origin - place
    return float((between.dot(axis) - between.dot(direction) * cosine) / (1.0 - cosine * cosine))
