"""Many rotations brought into Euler boxes; see `batch`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..maths.tolerances import ROUNDING
from .batch_parts import (
    SLACK,
    TINY,
    Array,
    Mask,
    Places,
    broadcast,
    nearest_half_angle,
    on_the_side_of,
    sign_of_first,
)
from .projection import interval
from .shapes import EulerBox

_EULER_SLACK = 0.2 * ROUNDING
"""Radians by which each Euler angle may leave its range in the inside test; 3 of these are below ROUNDING."""


def euler_box_constants(limit: EulerBox) -> Array:
    """Constants (40,) of an Euler box.

    The axes i, j, k in the order in which they turn, and the sign of that order (4). Then, for each of three
    ranges: alpha about i, gamma about k times the sign, and 2 psi = beta + pi / 2 with beta about j:

    rows 4, 7: cosine and sine of the middle. 10: cosine of the half-width, `_EULER_SLACK` wider; -2 if free.
    rows 13, 16, 19, 22: cosine and sine of half the middle, and of half the half-width.
    rows 25, 31: cosine of half the lower and half the upper bound (2 per range), and the sines.
    row 37: 1 if free.
    """
    order, alpha, (lower, upper), gamma = limit._box
    ranges = (alpha, gamma, (lower + 0.5 * math.pi, upper + 0.5 * math.pi))
    middles = [0.5 * (lower + upper) for lower, upper in ranges]
    widths = [0.5 * (upper - lower) for lower, upper in ranges]
    free = [upper - lower >= 2.0 * math.pi for lower, upper in ranges]
    bounds = [0.5 * bound for pair in ranges for bound in pair]
    halves = [interval(*pair) for pair in ranges]
    rows = [
        order,
        (math.cos(middle) for middle in middles),
        (math.sin(middle) for middle in middles),
        (
            -2.0 if no_bound or width + _EULER_SLACK >= math.pi else math.cos(width + _EULER_SLACK)
            for no_bound, width in zip(free, widths, strict=True)
        ),
        *zip(*halves, strict=True),
        (math.cos(bound) for bound in bounds),
        (math.sin(bound) for bound in bounds),
        free,
    ]
    return np.array([float(value) for row in rows for value in row])


def _in_turning_order(constants: Array, rotations: Array) -> tuple[Array, Array, Array]:
    """Vector parts on the axes i, j, and k times the sign of the order."""
    axes = constants[:3].astype(np.intp)
    vectors = rotations[1:]
    if axes.ndim == 3 and axes.shape[2] == 1 and axes.shape[1] == vectors.shape[1]:
        on_i, on_j, on_k = vectors[axes[:, :, 0], np.arange(axes.shape[1])]  # (3, n, B), copied by rows
    else:
        shape = np.broadcast_shapes(axes.shape[1:], vectors.shape[1:])
        on_i, on_j, on_k = np.take_along_axis(broadcast(vectors, shape), broadcast(axes, shape), axis=0)
    return on_i, on_j, on_k * constants[3]


def euler_box_suspects(constants: Array, rotations: Array) -> Mask:
    i, j, k = _in_turning_order(constants, rotations)
    w = rotations[0]
    a, b, c, d = w - j, i + k, w + j, k - i
    ac, bd, bc, ad = a * c, b * d, b * c, a * d
    square_p, square_m = a * a + b * b, c * c + d * d
    length = np.sqrt(square_p * square_m)
    angles = _EulerAngles(ac + bd, bc - ad, ac - bd, bc + ad, length, square_p, square_m)
    return _angles_outside(constants, angles)


class _EulerAngles(NamedTuple):
    """Euler angles by their cosines and sines, times lengths that need not be known.

    Attributes:
        alpha_x, alpha_y, gamma_x, gamma_y: `length` times cosine and sine of alpha and gamma.
        length: 0 at gimbal lock.
        square_p, square_m: the same multiple of cos^2 psi and sin^2 psi.
    """

    alpha_x: Array
    alpha_y: Array
    gamma_x: Array
    gamma_y: Array
    length: Array
    square_p: Array
    square_m: Array


def _angles_outside(constants: Array, angles: _EulerAngles) -> Mask:
    """Whether angles leave the ranges of Euler boxes, constants (40, ...), by more than `_EULER_SLACK`, in
    both of their representations."""
    alpha_x, alpha_y, gamma_x, gamma_y, length, square_p, square_m = angles
    cos_alpha, cos_gamma, cos_psi, sin_alpha, sin_gamma, sin_psi, least_alpha, least_gamma, least_psi = (
        constants[4:13]
    )
    alpha_x = alpha_x * cos_alpha
    alpha_x += alpha_y * sin_alpha
    gamma_x = gamma_x * cos_gamma
    gamma_x += gamma_y * sin_gamma
    even = (square_p - square_m) * cos_psi
    even -= (square_p + square_m) * least_psi
    odd = np.sqrt(square_p * square_m)
    odd *= 2.0 * sin_psi
    least_alpha, least_gamma = length * least_alpha, length * least_gamma
    # The other representation is alpha + pi, pi - beta, gamma + pi. At gimbal lock `length` is 0: outside.
    first = (alpha_x > least_alpha) & (gamma_x > least_gamma) & (even > -odd)
    second = (-alpha_x > least_alpha) & (-gamma_x > least_gamma) & (even > odd)
    outside: Mask = ~(first | second)
    return outside


def _holds(constants: Array, which: int | slice, x: Array, y: Array) -> Mask:
    """Whether the angles with cosine x and sine y are inside ranges, within 1e-12."""
    cos_middle, sin_middle = constants[4:7][which], constants[7:10][which]
    ch, sh = constants[19:22][which], constants[22:25][which]
    cosine, sine = x * cos_middle + y * sin_middle, np.abs(y * cos_middle - x * sin_middle)
    # Half of the angle off the middle has the direction (1 + cosine, sine), and (sine, 1 - cosine).
    back = cosine < 0.0
    half_cosine, half_sine = np.where(back, sine, 1.0 + cosine), np.where(back, 1.0 - cosine, sine)
    inside: Mask = half_sine * ch <= half_cosine * sh + 1e-12
    return inside


def _unit(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Directions of (x, y) and their lengths; (1, 0) for no length."""
    length = np.sqrt(x * x + y * y)
    safe = np.maximum(length, TINY)
    return np.where(length > TINY, x / safe, 1.0), np.where(length > TINY, y / safe, 0.0), length


def _half_direction(x: Array, y: Array) -> tuple[Array, Array]:
    """Cosine and sine of half the angle of the unit vectors (x, y); one of the two halves."""
    back = x < 0.0
    cosine, sine = np.where(back, np.abs(y), 1.0 + x), np.where(back, 1.0 - x, np.abs(y))
    scale = 1.0 / np.sqrt(cosine * cosine + sine * sine)
    return cosine * scale, np.copysign(sine * scale, y)


def nearest_euler_box(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    """As `projection.nearest_in_box`, with half angles as pairs of cosine and sine throughout."""
    w, x, y, z = rotations
    sign = sign_of_first(w, x, y, z)  # q and -q are made the same, so that ties are decided alike
    i, j, k = _in_turning_order(constants, rotations)
    scale = math.sqrt(0.5) / (sign * np.sqrt(w * w + x * x + y * y + z * z))
    a, b, c, d = scale * (w - j), scale * (i + k), scale * (w + j), scale * (k - i)
    (px, py, p), (mx, my, m) = _unit(a, b), _unit(c, d)
    alpha, gamma = (px * mx + py * my, py * mx - px * my), (px * mx - py * my, py * mx + px * my)
    faces = _BoxFaces(constants, a, b, c, d)

    # Faces of beta: P is kept, and M up to a half turn.
    cos_psi, sin_psi = constants[29:31], constants[35:37]  # (2, K): lower and upper bound
    on_p, on_m = p * cos_psi, m * sin_psi
    flip = np.where(on_p * on_m >= 0.0, 1.0, -1.0)
    valid = _holds(constants, 0, flip * alpha[0], flip * alpha[1])
    valid &= _holds(constants, 1, flip * gamma[0], flip * gamma[1])
    valid &= constants[39] == 0.0
    dots = np.empty((6, len(w)))
    dots[:2] = np.where(valid, np.abs(on_p) + np.abs(on_m), -1.0)
    dots[2:] = np.where(faces.valid, faces.dots, -1.0).reshape(4, -1)
    # A face without a valid point of its own has its nearest point on an edge, no nearer than `faces.dots`.
    open_faces = ~faces.valid & (faces.dots > dots.max(0)) & (constants[37:39, None] == 0.0)
    edges = _BoxEdges(constants, faces, np.flatnonzero(open_faces))
    dots[2:].reshape(-1)[edges.flat] = edges.dots

    choice, best = np.zeros(len(w), dtype=np.intp), dots[0]
    for candidate in range(1, 6):  # argmax along the first axis takes longer
        better = dots[candidate] > best
        choice[better] = candidate
        best = np.maximum(best, dots[candidate])
    to: Array = np.empty((4, len(w)))
    on_beta = np.flatnonzero(choice < 2)
    bound = choice[on_beta]
    cosine, sine = cos_psi[bound, on_beta], (flip * sin_psi)[bound, on_beta]
    to[:, on_beta] = cosine * px[on_beta], cosine * py[on_beta], sine * mx[on_beta], sine * my[on_beta]
    on_face = np.flatnonzero(choice >= 2)
    if len(on_face):
        to[:, on_face] = _point_on_face(constants, faces, edges, (choice[on_face] - 2) * len(w) + on_face)

    given = np.array((a, b, c, d))
    to = on_the_side_of(given, to)
    given -= to
    given *= given
    outside: Mask = given.sum(0) >= SLACK * SLACK
    if (np.minimum(p, m) <= TINY).any():
        angles = _EulerAngles(*alpha, *gamma, np.ones(len(w)), p * p, m * m)
        outside &= _angles_outside(constants, angles)
    scale = sign * math.sqrt(0.5)
    to_a, to_b, to_c, to_d = to
    axes, every = constants[:3].astype(np.intp) + 1, np.arange(len(w))
    nearest = np.empty((4, len(w)))
    nearest[0] = scale * (to_a + to_c)
    nearest[axes[0], every] = scale * (to_b - to_d)
    nearest[axes[1], every] = scale * (to_c - to_a)
    nearest[axes[2], every] = scale * constants[3] * (to_b + to_d)
    return nearest, outside


class _BoxFaces:
    """The faces of Euler boxes where alpha or gamma is at a bound: arrays (2 angles, 2 bounds, K).

    The dot product with the rotation of other angles is (cos psi, sin psi) M (cos h, sin h), with h half of
    the other angle. Its maximum is where psi + h and psi - h have the directions `total` and `difference`.

    Attributes:
        matrix: M row by row, (4, 2, 2, K).
        total, difference: directions (x, y), (2, 2, K) each.
        dots: that maximum.
        valid: whether it is inside the other two ranges, and the angle is not free.
    """

    def __init__(self, constants: Array, a: Array, b: Array, c: Array, d: Array) -> None:
        count = len(a)
        ch, sh = constants[25:29].reshape(2, 2, count), constants[31:35].reshape(2, 2, count)
        # M changes its sign when alpha and gamma change places, P does not.
        of_d = np.array((-d, d))[:, None]
        self.matrix = np.array((ch * a + sh * b, ch * b - sh * a, ch * c + sh * of_d, sh * c - ch * of_d))
        m00, m01, m10, m11 = self.matrix
        sx, sy, total = _unit(m00 - m11, m10 + m01)
        dx, dy, difference = _unit(m00 + m11, m10 - m01)
        self.total, self.difference = (sx, sy), (dx, dy)
        self.dots = 0.5 * (total + difference)
        xx, yy, xy, yx = sx * dx, sy * dy, sx * dy, sy * dx
        others = constants[:, None]  # bounds in the second place
        self.valid: Mask = _holds(others, 2, xx - yy, xy + yx)
        self.valid &= _holds(others, slice(1, None, -1), xx + yy, yx - xy)
        self.valid &= constants[37:39, None] == 0.0


class _BoxEdges:
    """The nearest points on the edges of some faces.

    Attributes:
        flat: (L,) which faces, as flat indices into (2 angles, 2 bounds, K), in order.
        dots: (L,) dot products with the rotation.
        psi, other: cosines and sines (2, L) of psi and of half the angle that is neither beta nor fixed.
    """

    def __init__(self, constants: Array, faces: _BoxFaces, flat: Places) -> None:
        count = constants.shape[1]
        self.flat = flat
        self.dots: Array = np.empty(0)
        self.psi: Array = np.empty((2, 0))
        self.other: Array = np.empty((2, 0))
        if len(flat) == 0:
            return
        alphas = int(np.searchsorted(flat, 2 * count))  # so many of the faces fix alpha
        pair = flat % count
        m00, m01, m10, m11 = faces.matrix.reshape(4, -1).take(flat, axis=1)
        # beta at a bound: the other angle is gamma where alpha is fixed.
        other = pair.copy()
        other[:alphas] += count
        others = constants[13:25].reshape(4, -1).take(other, axis=1)
        cp, sp = constants[29:31].take(pair, axis=1), constants[35:37].take(pair, axis=1)
        e, f, dots = nearest_half_angle(cp * m00 + sp * m10, cp * m01 + sp * m11, *others)
        dots = np.where(constants[39].take(pair) == 0.0, dots, -1.0)
        upper = dots[1] > dots[0]
        self.dots = np.where(upper, dots[1], dots[0])
        self.psi = np.where(upper, np.array((cp[1], sp[1])), np.array((cp[0], sp[0])))
        self.other = np.array((np.where(upper, e[1], e[0]), np.where(upper, f[1], f[0])))
        if alphas == 0:
            return
        # alpha and gamma at a bound.
        pair = pair[:alphas]
        m00, m01, m10, m11 = m00[:alphas], m01[:alphas], m10[:alphas], m11[:alphas]
        ch, sh = constants[27:29].take(pair, axis=1), constants[33:35].take(pair, axis=1)
        psis = constants[13:25].reshape(4, -1).take(pair + 2 * count, axis=1)
        e, f, dots = nearest_half_angle(m00 * ch + m01 * sh, m10 * ch + m11 * sh, *psis)
        dots = np.where(constants[38].take(pair) == 0.0, dots, -1.0)
        for bound in range(2):
            better = np.flatnonzero(dots[bound] > self.dots[:alphas])
            self.dots[better] = dots[bound, better]
            self.psi[:, better] = e[bound, better], f[bound, better]
            self.other[:, better] = ch[bound, better], sh[bound, better]


def _point_on_face(constants: Array, faces: _BoxFaces, edges: _BoxEdges, flat: Places) -> Array:
    """The nearest points (4, L), as (a, b, c, d), of faces given as flat indices into (2, 2, K)."""
    count = constants.shape[1]
    sx, sy, dx, dy = (part.reshape(-1)[flat] for part in (*faces.total, *faces.difference))
    cos_psi, sin_psi = _half_direction(sx * dx - sy * dy, sx * dy + sy * dx)
    cos_h, sin_h = sx * cos_psi + sy * sin_psi, sy * cos_psi - sx * sin_psi
    if len(edges.flat):
        places = np.full(4 * count, -1)
        places[edges.flat] = np.arange(len(edges.flat))
        place = places[flat]
        on_edge = place >= 0
        (edge_cos, edge_sin), (edge_cos_h, edge_sin_h) = edges.psi[:, place], edges.other[:, place]
        cos_psi, sin_psi = np.where(on_edge, edge_cos, cos_psi), np.where(on_edge, edge_sin, sin_psi)
        cos_h, sin_h = np.where(on_edge, edge_cos_h, cos_h), np.where(on_edge, edge_sin_h, sin_h)
    ch, sh = constants[25:29].reshape(-1)[flat], constants[31:35].reshape(-1)[flat]
    # Half of gamma + alpha, and of gamma - alpha.
    plus_x, plus_y = ch * cos_h - sh * sin_h, sh * cos_h + ch * sin_h
    minus_x, minus_y = ch * cos_h + sh * sin_h, ch * sin_h - sh * cos_h
    minus_y *= np.where(flat < 2 * count, 1.0, -1.0)
    return np.array((cos_psi * plus_x, cos_psi * plus_y, sin_psi * minus_x, sin_psi * minus_y))
