"""Many rotations brought to a twist range with a cone; see `batch`."""

from __future__ import annotations

import numpy as np

from .batch_parts import SLACK, TINY, Array, Mask, nearest_half_angle, sign_of_first
from .shapes import Hinge, SwingTwist


def cone_twist_constants(limit: Hinge | SwingTwist) -> Array:
    """Constants (11,) of a twist range with a cone: those of `projection.cone_twist_constants`.

    The axis (3). Cosine and sine of half the range's middle, and of half its half-width (4). Cosine and sine
    of half the radius (2), and of half the twist taken where every twist is equally near (2).
    """
    return np.array(limit.cone_twist)


def cone_twist_suspects(constants: Array, rotations: Array) -> Mask:
    nx, ny, nz, cm, sm, ch, sh, cr, sr = constants[:9]
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    swing, twist = np.sqrt(gx * gx + gy * gy + gz * gz), np.sqrt(w * w + p * p)
    # Both are sines of half of an angle beyond the border: the distance in rotation space.
    beyond_cone = swing * cr - twist * sr
    beyond_twist = np.abs(p * cm - w * sm) * ch - np.abs(w * cm + p * sm) * sh
    suspects: Mask = np.maximum(beyond_cone, beyond_twist) >= SLACK
    return suspects


def nearest_cone_twist(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    nx, ny, nz, cm, sm, ch, sh, cr, sr, rest_e, rest_f = constants
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    u = np.sqrt(gx * gx + gy * gy + gz * gz)
    e, f, reach = nearest_half_angle(w, p, cm, sm, ch, sh)
    # A half-turn swing: every twist is equally near, and so are both directions of the swing's axis.
    turned = np.sqrt(w * w + p * p) <= SLACK
    if turned.any():
        side = sign_of_first(gx, gy, gz)
        e, f = np.where(turned, side * rest_e, e), np.where(turned, side * rest_f, f)
        reach = np.where(turned, 0.0, reach)
    length = np.sqrt(reach * reach + u * u)
    # Length zero: a pure twist exactly a half turn from the only twist there is.
    at_cone, safe, some = u * cr > reach * sr, np.maximum(length, TINY), length > TINY
    s = np.where(at_cone, cr, np.where(some, reach / safe, 1.0))
    scale = np.where(at_cone, sr / np.maximum(u, TINY), np.where(some, 1.0 / safe, 0.0))
    p = s * f
    nearest = np.array((s * e, gx * scale + p * nx, gy * scale + p * ny, gz * scale + p * nz))
    return nearest, np.ones(len(w), dtype=np.bool_)
