# SPDX-License-Identifier: GPL-3.0-or-later
"""Motion of a point that the pointer drags in world space: at its depth, along axes and in steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import bpy
from bpy_extras.view3d_utils import region_2d_to_origin_3d, region_2d_to_vector_3d
from mathutils import Matrix, Vector

PARALLEL = 0.02
"""Sine of the angle between a view ray and an axis or plane below which their intersection is unstable."""


class Ray(NamedTuple):
    """View ray: a point and its direction, in world space."""

    origin: Vector
    direction: Vector


class Axes(NamedTuple):
    """Axes to which a motion is constrained.

    Attributes:
        matrix: unit axes as columns, in world space.
        names: of the free axes, of X, Y and Z.
    """

    matrix: Matrix
    names: str

    def free(self) -> list[Vector]:
        """Free axes as unit vectors in world space."""
        return [self.matrix.col["XYZ".index(name)].to_3d() for name in self.names]


def motion(place: Vector, rays: tuple[Ray, Ray], forward: Vector, axes: Axes | None) -> Vector:
    """Return the motion of a point since the press.

    Args:
        place: the grabbed point, in world space.
        rays: under the pointer at the press, and at present.
        forward: direction of the view, normal to the plane of the pointer's motion.
        axes: to which the motion is constrained; None: to the view plane.
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
    """Round a motion to steps along its axes, or along the world's."""
    matrix = Matrix.Identity(3) if axes is None else axes.matrix
    along = matrix.transposed() @ delta
    return matrix @ Vector([round(part / step) * step for part in along])


def place_on(head: Vector, tail: Vector, ray: Ray) -> float:
    """Return the point of a bone nearest to a view ray, as a part of its length, 0 to 1."""
    bone: Any = tail - head
    if bone.length < 1e-12:
        return 0.0
    along = _along(head, bone.normalized(), ray)
    if along is None:  # seen from its end
        return 1.0
    return min(max(along / bone.length, 0.0), 1.0)


def _on_plane(place: Vector, normal: Vector, ray: Ray) -> Vector:
    """Intersect a ray with the plane through a point; the point itself if they are parallel."""
    slope = ray.direction.dot(normal)
    if abs(slope) < 1e-9:
        return place.copy()
    return ray.origin + ray.direction * ((place - ray.origin).dot(normal) / slope)


def _along(place: Vector, axis: Vector, ray: Ray) -> float | None:
    """Coordinate along an axis through a point that is nearest to a ray; None if both are parallel."""
    direction = ray.direction.normalized()
    cosine = axis.dot(direction)
    if 1.0 - cosine * cosine < PARALLEL * PARALLEL:
        return None
    between = ray.origin - place
    return float((between.dot(axis) - between.dot(direction) * cosine) / (1.0 - cosine * cosine))


def ray_at(context: bpy.types.Context, at: Vector) -> Ray:
    """View ray through a point of the region, pixels."""
    return Ray(
        region_2d_to_origin_3d(context.region, context.region_data, at),
        region_2d_to_vector_3d(context.region, context.region_data, at),
    )
