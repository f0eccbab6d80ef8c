"""The limits of joints over many frames at once: as arrays where that is quick, one by one otherwise.

Arrays are in double precision, frames last: (4, n, F) rotations (w, x, y, z) of n joints in F frames, each
relative to rest, and (3, n, F) vectors in the joints' own frames.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeGuard

import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from ..maths.tolerances import ROUNDING
from .shapes import Ellipse, Hinge, Limit, SwingTwist, locked_axis

Array = NDArray[np.float64]
Places = NDArray[np.intp]


BEYOND = 1e-6
"""Half of the radians by which a joint must have wanted to leave its limit to be held there."""


class Limits:
    """What joints may do.

    Attributes:
        hinges: places of the hinges that move.
        axes: (3, hinges, 1) of those.
        locked: places of ball joints of one single twist, see `shapes.locked_axis`.
    """

    def __init__(self, limits: Sequence[Limit | None], mobility: Array) -> None:
        moved = [(i, limit) for i, limit in enumerate(limits) if limit is not None and mobility[i] > 0.0]
        hinges = {i: limit.axis for i, limit in moved if isinstance(limit, Hinge)}
        twists = {i: limit.cone_twist[:5] for i, limit in moved if _has_one_twist(limit)}
        rounds = {i: limit.cone_twist for i, limit in moved if _is_cone_twist(limit)}
        self.hinges, self.axes = _places(hinges), _columns(hinges.values(), 3)[..., None]
        self.locked, self._twists = _places(twists), _columns(twists.values(), 5)[..., None]
        self._cone_twists, self._constants = _places(rounds), _columns(rounds.values(), 11)
        self._others = [(i, limit) for i, limit in moved if i not in rounds]

    def locked_axes(self, rotations: Array) -> Array:
        """(3, locked, F) what `shapes.locked_axis` gives."""
        nx, ny, nz, cosine, sine = self._twists
        w, x, y, z = rotations[:, self.locked]
        return np.stack(
            (
                cosine * (w * nx + ny * z - nz * y) + sine * x,
                cosine * (w * ny + nz * x - nx * z) + sine * y,
                cosine * (w * nz + nx * y - ny * x) + sine * z,
            )
        )

    def clamped(self, rotations: Array) -> tuple[Array, Array | None]:
        """The nearest allowed rotations, and what held joints back there: (3, n, F) unit rotation vectors
        that lead outside, 0 where a joint was inside; None where all were.

        What a single twist holds back is left out.
        """
        found = rotations.copy() if len(self._cone_twists) or self._others else rotations
        normals = np.zeros((3, *rotations.shape[1:]))
        if len(self._cone_twists):
            ball, frame = np.nonzero(_outside(self._constants[..., None], rotations[:, self._cone_twists]))
            joint = self._cone_twists[ball]
            pushed = rotations[:, joint, frame]
            found[:, joint, frame] = nearest = _nearest_in_cone_twists(self._constants[:, ball], pushed)
            normals[:, joint, frame] = _turns_between(nearest, pushed)
        for i, limit in self._others:
            room = _room(limit)
            own = rotations[:, i]
            frames = range(own.shape[1]) if room is None else np.flatnonzero(_outside(room, own)).tolist()
            for f in frames:
                w, x, y, z = own[:, f].tolist()
                there = limit.project(w, x, y, z)
                if there is not None:
                    found[:, i, f] = there
                    normals[:, i, [f]] = _turns_between(found[:, i, [f]], own[:, [f]])
        if not normals.any():
            return found, None
        if len(self.locked):
            axes, own = self.locked_axes(found), normals[:, self.locked]
            normals[:, self.locked] = own - (axes * own).sum(0) * axes
        lengths = np.sqrt((normals * normals).sum(0))
        return found, np.where(lengths > BEYOND, normals / np.maximum(lengths, BEYOND), 0.0)


def _places(found: Iterable[int]) -> Places:
    return np.array(list(found), dtype=np.intp)


def _columns(constants: Iterable[Sequence[float]], width: int) -> Array:
    """(width, n) of n limits."""
    return np.array(list(constants), dtype=np.float64).reshape(-1, width).T


def _has_one_twist(limit: Limit) -> TypeGuard[SwingTwist]:
    return locked_axis(limit, Quaternion()) is not None


def _is_cone_twist(limit: Limit) -> TypeGuard[Hinge | SwingTwist]:
    """Whether a limit is what `projection.nearest_in_cone_twist` knows: a twist range and a cone."""
    return isinstance(limit, Hinge) or (
        isinstance(limit, SwingTwist) and not isinstance(limit.swing, Ellipse)
    )


def _room(limit: Limit) -> Array | None:
    """The constants of a round limit inside an ellipse: what is in there need not be looked at closely."""
    if not (isinstance(limit, SwingTwist) and isinstance(limit.swing, Ellipse)):
        return None
    sides = limit.swing
    least = 0.5 * min(-sides.x_lower, sides.x_upper, -sides.z_lower, sides.z_upper)
    return np.array((*limit.cone_twist[:7], math.cos(least), math.sin(least), 1.0, 0.0))[:, None]


def _outside(constants: Array, rotations: Array) -> NDArray[np.bool_]:
    """Which unit rotations (4, ...) are outside round limits, as in `projection.nearest_in_cone_twist`."""
    nx, ny, nz, cm, sm, ch, sh, cr, sr = constants[:9]
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    swing, twist = np.sqrt(gx * gx + gy * gy + gz * gz), np.sqrt(w * w + p * p)
    slack = 0.5 * ROUNDING
    swung = swing * cr - twist * sr >= slack
    found: NDArray[np.bool_] = swung | (np.abs(p * cm - w * sm) * ch - np.abs(w * cm + p * sm) * sh >= slack)
    return found


def _nearest_in_cone_twists(constants: Array, rotations: Array) -> Array:
    """The same for many rotations (4, K) that are outside, each with its constants (11, K)."""
    nx, ny, nz, cm, sm, ch, sh, cr, sr, rest_e, rest_f = constants
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    u, s = np.sqrt(gx * gx + gy * gy + gz * gz), np.sqrt(w * w + p * p)
    c, d = w * cm + p * sm, p * cm - w * sm
    side = np.where((c < 0.0) | ((c == 0.0) & (d < 0.0)), -1.0, 1.0)
    c, d = c * side, d * side
    inside, border = np.abs(d) * ch <= c * sh, np.copysign(sh, d)
    length = np.maximum(s, 1e-300)
    e = np.where(inside, w / length, side * (ch * cm - border * sm))
    f = np.where(inside, p / length, side * (ch * sm + border * cm))
    reach = np.where(inside, s, c * ch + d * border)
    # A half-turn swing: every twist is equally near, and so are both directions of the swing's axis.
    turned = s <= 0.5 * ROUNDING
    if turned.any():
        side = np.where((gx > 0.0) | ((gx == 0.0) & ((gy > 0.0) | ((gy == 0.0) & (gz > 0.0)))), 1.0, -1.0)
        e, f = np.where(turned, side * rest_e, e), np.where(turned, side * rest_f, f)
        reach = np.where(turned, 0.0, reach)
    swung = u * cr > reach * sr
    length = np.maximum(np.sqrt(reach * reach + u * u), 1e-300)
    s = np.where(swung, cr, reach / length)
    u = np.where(swung, sr / np.maximum(u, 1e-300), 1.0 / length)
    p = s * f
    return np.array((s * e, gx * u + p * nx, gy * u + p * ny, gz * u + p * nz))


def _turns_between(inside: Array, outside: Array) -> Array:
    """(3, K) half rotation vectors, in the frames of `inside` (4, K), that lead to `outside` nearby."""
    aw, ax, ay, az = inside
    bw, bx, by, bz = outside
    turns = np.array(
        (
            aw * bx - bw * ax - (ay * bz - az * by),
            aw * by - bw * ay - (az * bx - ax * bz),
            aw * bz - bw * az - (ax * by - ay * bx),
        )
    )
    found: Array = turns * np.copysign(1.0, (inside * outside).sum(0))
    return found
