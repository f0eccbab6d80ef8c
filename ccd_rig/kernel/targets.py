"""Targets of constraints, from the matrices of objects and bones."""

from __future__ import annotations

from math import nan, sqrt

from .geometry import dot, rotation_along
from .plain import Vector, nogil

TARGET_WIDTH = 16
"""Numbers of a target: point, rotation, direction, pole and offset."""
USE_WIDTH = 5
"""Numbers that tell what a constraint uses.

Target and pole: numbers of their matrices, or -1. Rotation: 0 none, 1 that of the target, 2 the direction of
an axis. Space of the offset: 0 the target's, 1 the armature's, 2 the world's. Whether the offset is keyed.
"""


def turned_by(rows, row, at, v):
    """A vector moved by an affine matrix, as one between two points."""
    return Vector(
        rows[row, at] * v.x + rows[row, at + 1] * v.y + rows[row, at + 2] * v.z,
        rows[row, at + 4] * v.x + rows[row, at + 5] * v.y + rows[row, at + 6] * v.z,
        rows[row, at + 8] * v.x + rows[row, at + 9] * v.y + rows[row, at + 10] * v.z,
    )


def moved(rows, row, at, v):
    """A point moved by an affine matrix."""
    v = turned_by(rows, row, at, v)
    return Vector(v.x + rows[row, at + 3], v.y + rows[row, at + 7], v.z + rows[row, at + 11])


def write_targets(matrices, are_local, to_armature, uses, axes, offsets, targets):
    """Write the targets of C constraints at R frames.

    Args:
        matrices: (R, 16T) affine matrices of targets and poles, row by row; written, in armature space.
        are_local: (T) 0 or 1, whether they are in armature space already; else they are in the world.
        to_armature: (R or 1, 16) matrices from the world to armature space, row by row.
        uses: (C, USE_WIDTH).
        axes: (C, 3) axes of targets that give directions.
        offsets: (C, 3) offsets that are not keyed.
        targets: (R, TARGET_WIDTH C) single precision, written where used; it has the keyed offsets.

    Raises:
        ValueError: arrays that do not fit each other, or uses that are unknown.
    """
    size, count, number = targets.shape[0], uses.shape[0], are_local.shape[0]
    fit = matrices.shape[0] == size and matrices.shape[1] == 16 * number
    fit = fit and (to_armature.shape[0] == size or to_armature.shape[0] == 1) and to_armature.shape[1] == 16
    fit = fit and uses.shape[1] == USE_WIDTH and targets.shape[1] == TARGET_WIDTH * count
    fit = fit and axes.shape[0] == count and axes.shape[1] == 3
    fit = fit and offsets.shape[0] == count and offsets.shape[1] == 3
    if not fit:
        raise ValueError("kernel: the arrays do not fit the targets")
    for c in range(count):
        known = -1 <= uses[c, 0] < number and -1 <= uses[c, 1] < number
        if not (known and 0 <= uses[c, 2] <= 2 and 0 <= uses[c, 3] <= 2):
            raise ValueError("kernel: the uses of targets are unknown")
    with nogil:
        for k in range(size):
            a = k if to_armature.shape[0] > 1 else 0
            for n in range(number):
                if are_local[n] == 0:
                    put_below(matrices, k, 16 * n, to_armature, a)
            for c in range(count):
                put_target(matrices, k, to_armature, a, uses, c, axes, offsets, targets)


def put_below(matrices, row, at, above, above_row):
    """Replace an affine matrix by its product with one above it."""
    for j in range(4):
        x, y = matrices[row, at + j], matrices[row, at + 4 + j]
        z, w = matrices[row, at + 8 + j], matrices[row, at + 12 + j]
        for i in range(4):
            matrices[row, at + 4 * i + j] = (
                above[above_row, 4 * i] * x
                + above[above_row, 4 * i + 1] * y
                + above[above_row, 4 * i + 2] * z
                + above[above_row, 4 * i + 3] * w
            )


def put_target(matrices, row, to_armature, above, uses, c, axes, offsets, targets):
    """Write the target of a constraint at a frame, see `write_targets`."""
    begin, at, pole = TARGET_WIDTH * c, 16 * uses[c, 0], 16 * uses[c, 1]
    point = Vector(0.0, 0.0, 0.0)  # of planted bones without a target
    if at >= 0:
        shift = Vector(offsets[c, 0], offsets[c, 1], offsets[c, 2])
        if uses[c, 4] != 0:
            shift = Vector(targets[row, begin + 13], targets[row, begin + 14], targets[row, begin + 15])
        if uses[c, 3] == 0:
            point = moved(matrices, row, at, shift)
        else:
            if uses[c, 3] == 2:
                shift = turned_by(to_armature, above, 0, shift)
            point = Vector(
                matrices[row, at + 3] + shift.x,
                matrices[row, at + 7] + shift.y,
                matrices[row, at + 11] + shift.z,
            )
        if uses[c, 2] == 1:
            q = rotation_along(
                Vector(matrices[row, at + 1], matrices[row, at + 5], matrices[row, at + 9]),
                Vector(matrices[row, at + 2], matrices[row, at + 6], matrices[row, at + 10]),
            )
            targets[row, begin + 3] = q.w
            targets[row, begin + 4] = q.x
            targets[row, begin + 5] = q.y
            targets[row, begin + 6] = q.z
        if uses[c, 2] == 2:
            # The sheared or mirrored axis itself: in the world it points along the target's axis.
            axis = turned_by(matrices, row, at, Vector(axes[c, 0], axes[c, 1], axes[c, 2]))
            extent = sqrt(dot(axis, axis))
            if extent == 0.0:
                extent = nan
            targets[row, begin + 7] = axis.x / extent
            targets[row, begin + 8] = axis.y / extent
            targets[row, begin + 9] = axis.z / extent
    targets[row, begin] = point.x
    targets[row, begin + 1] = point.y
    targets[row, begin + 2] = point.z
    if pole >= 0:
        for i in range(3):
            targets[row, begin + 10 + i] = matrices[row, pole + 4 * i + 3]
