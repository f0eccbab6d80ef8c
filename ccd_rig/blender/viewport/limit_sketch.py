# SPDX-License-Identifier: GPL-3.0-or-later
"""How limits are drawn: arcs and cones, the comfort region inside, and a needle for the present rotation."""

from __future__ import annotations

import bpy
from mathutils import Matrix, Quaternion, Vector

from ...limits.outlines import Dial, dials, rim
from ...limits.shapes import Hinge, Limit
from .bone_axes import bone_axes, drawable_limit
from .sketch import Sketch, placed

EULER_COLOURS = {"X": (1.0, 0.32, 0.35), "Y": (0.55, 0.85, 0.2), "Z": (0.3, 0.55, 1.0)}
FILL, COMFORT_FILL = 0.13, 0.16  # alpha of faces
COMFORT_SIZE = 0.8  # of the limit's drawing
RIBS = 8  # lines of a cone from its point to its rim
LINE, NEEDLE, THIN = 2.0, 3.0, 1.0  # [pixels]
NEEDLE_LENGTH = 1.08  # of the arc's radius


def sketch_limits(sketch: Sketch, pose_bone: bpy.types.PoseBone) -> None:
    """Draw the limit of a bone and its comfort region, if it has them."""
    group = pose_bone.ccd_rig
    limit, region = (drawable_limit(pose_bone, each) for each in (group.limit, group.comfort.region))
    if limit is None and region is None:
        return
    axes = bone_axes(pose_bone)
    if region is not None:
        smaller = axes.matrix @ Matrix.Scale(COMFORT_SIZE, 4)
        sketch_shape(sketch, smaller, region, axes.rotation, is_comfort=True)
    if limit is not None:
        sketch_shape(sketch, axes.matrix, limit, axes.rotation)
        sketch_needles(sketch, axes.matrix, limit, axes.rotation)


def sketch_shape(
    sketch: Sketch, matrix: Matrix, limit: Limit, rotation: Quaternion, is_comfort: bool = False
) -> None:
    """Draw the border of a limit, for a joint with this rotation.

    Args:
        sketch: what is drawn on.
        matrix: from the joint's frame at rest to world space.
        limit: what is drawn.
        rotation: of the joint relative to rest; it carries a twist and the angles of an Euler box.
        is_comfort: whether it is a comfort region. Euler boxes that are limits have the colours of their
            axes.
    """
    palette = sketch.palette
    colour, alpha = (palette.comfort, COMFORT_FILL) if is_comfort else (palette.limit, FILL)
    for dial in dials(limit, rotation):
        own = colour if is_comfort else EULER_COLOURS.get(dial.name, colour)
        centre, arc = matrix @ dial.centre, placed(matrix, dial.arc())
        sketch.fan(centre, arc, (*own, alpha))
        sketch.path([centre, *arc, centre], (*own, 1.0), LINE)
    if isinstance(limit, Hinge) and not is_comfort:
        axis = Vector(limit.axis)
        sketch.path(placed(matrix, (-axis, axis)), (*colour, 0.6), THIN)
    border = rim(limit, rotation)
    if border is not None:
        centre, points = matrix.to_translation(), placed(matrix, border.points)
        sketch.fan(centre, points, (*colour, alpha))
        sketch.path(points, (*colour, 1.0), LINE)
        for rib in points[: -1 : max(1, (len(points) - 1) // RIBS)]:
            sketch.path((centre, rib), (*colour, 0.5), THIN)


def sketch_needles(sketch: Sketch, matrix: Matrix, limit: Limit, rotation: Quaternion) -> None:
    """Draw where a rotation stands in a limit: a needle for each angle and for the swing, red at a border."""
    for dial in dials(limit, rotation):
        _needle(sketch, (matrix @ dial.centre, matrix @ _beyond(dial)), dial.is_at_border)
    border = rim(limit, rotation)
    if border is not None:
        end = matrix @ (border.direction * NEEDLE_LENGTH)
        _needle(sketch, (matrix.to_translation(), end), border.is_at_border)


def _beyond(dial: Dial) -> Vector:
    return dial.centre.lerp(dial.point(dial.angle), NEEDLE_LENGTH)


def _needle(sketch: Sketch, ends: tuple[Vector, Vector], is_at_border: bool) -> None:
    colour = sketch.palette.warning if is_at_border else sketch.palette.needle
    sketch.path(ends, (*colour, 1.0), NEEDLE)
