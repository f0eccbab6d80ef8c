"""Projection of many rotations into joint limits at once, in double precision.

Arrays carry the batch last: rotations (4, n, B) are the unit quaternions (w, x, y, z) of n joints in B poses,
relative to rest, in the joints' own frames. All angles are radians.

`BatchLimits` sorts the limits of a skeleton into three kinds: a twist range with a cone (Hinge, SwingTwist),
a twist range with an ellipse, and an Euler box. Each kind has two steps. An inside test on every rotation may
suspect a rotation that is inside, but never passes one that is outside. The suspects are then gathered into
arrays (4, K), each with its own column of constants, and projected. A ReversedLimit is the limit in it, with
rotations mapped into that limit's frame and back.

The mathematics and the choice among equally near rotations are those of `projection`, for one rotation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..maths.tolerances import ROUNDING
from .projection import interval, rotate_inverse
from .shapes import Ellipse, EulerBox, Hinge, Limit, ReversedLimit, SwingTwist

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]
Number = TypeVar("Number", np.float64, np.intp)

_SLACK = 0.5 * ROUNDING
"""`ROUNDING` as a distance between unit quaternions, which is half the angle between the rotations."""
_TINY = 1e-150
"""Length of a part of a quaternion below which it has no direction."""
_EULER_SLACK = 0.2 * ROUNDING
"""Radians by which each Euler angle may leave its range in the inside test; 3 of these are below ROUNDING."""
_ANGLE_SQUARE = (
    9.869603924556747,
    -2.6967048321857146,
    1.3019032797077013,
    -0.7798382360726563,
    0.49274560714110294,
    -0.27429488452139594,
    0.10655630432393082,
    -0.01997142801701557,
)
"""Polynomial in c for angle^2 / (1 - c), with c the cosine of half the angle in 0..1; relative error 5e-8."""
_ELLIPSE_SLACK = 4e-7
"""Excess of the ellipse's sum of squares that the inside test allows. It is 0.63e-6 radians at most."""
_NEWTON_STEPS = 50
"""Bound on Newton's steps to an ellipse; 4 to 6 are usual, 35 where one side is a millionth of the other."""


# --- all limits of a skeleton


class BatchLimits:
    """Limits of n joints, for B poses at once.

    Attributes:
        limits: one per joint; None leaves the joint free.
    """

    def __init__(self, limits: Sequence[Limit | None]) -> None:
        self.limits = tuple(limits)
        members: dict[tuple[str, bool], list[_Member]] = {}
        for place, limit in enumerate(limits):
            if limit is not None:
                inner, frame = _without_reversed(limit)
                name, constants = _constants(inner)
                members.setdefault((name, frame is None), []).append(_Member(place, constants, frame))
        self._groups = [_Group(_KINDS[name], found) for (name, _), found in members.items()]

    def project(self, rotations: Array) -> tuple[Array, Mask | None]:
        """Nearest allowed rotations (4, n, B), and which (n, B) were outside by more than `ROUNDING`.

        Each is on the side of the rotation it replaces (dot product >= 0). Rotations inside are copied
        unchanged. Where all are inside, returns `rotations` itself and None. `limits.clamp` says what
        nearest means, and which of equally near rotations is chosen. Where a whole curve is equally near,
        as at gimbal lock, any rotation of it is returned.
        """
        count = rotations.shape[2]
        projected, outside = rotations, None
        for group in self._groups:
            joints, poses, nearest = group.outside(rotations)
            if len(poses) == 0:
                continue
            if outside is None:
                projected = np.array(rotations, dtype=np.float64, order="C")
                outside = np.zeros(rotations.shape[1:], dtype=np.bool_)
            places = joints * count + poses
            projected.reshape(4, -1)[:, places] = nearest
            outside.reshape(-1)[places] = True
        return projected, outside

    def violations(self, rotations: Array) -> Array:
        """Angles (n, B) in radians by which rotations are outside their limits; 0 up to `ROUNDING`."""
        angles = np.zeros(rotations.shape[1:])
        for group in self._groups:
            joints, poses, nearest = group.outside(rotations)
            vectors = rotation_vectors_between(nearest, rotations[:, joints, poses])
            angles[joints, poses] = np.sqrt((vectors * vectors).sum(0))
        return angles

    def contains(self, rotations: Array, tolerance: float = 0.0) -> Mask:
        """Which rotations (n, B) are outside by at most `tolerance` radians; up to `ROUNDING` is inside."""
        inside: Mask = self.violations(rotations) <= tolerance
        return inside


def project_cone_twist(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    """Nearest rotations (4, ...) with a twist in a range and a swing up to a radius; which were outside.

    Args:
        constants: (11, ...) from `cone_twist_constants`; broadcast to the rotations.
        rotations: (4, ...) unit quaternions.
    """
    return _project(_CONE_TWIST, constants, rotations)


def project_ellipse_twist(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    """Rotations (4, ...) with the nearest twist and the nearest swing in an ellipse; which were outside.

    Args:
        constants: (25, ...) from `ellipse_twist_constants`; broadcast to the rotations.
        rotations: (4, ...) unit quaternions.
    """
    return _project(_ELLIPSE_TWIST, constants, rotations)


def project_euler_box(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    """Nearest rotations (4, ...) whose Euler angles are inside their ranges; which were outside.

    Args:
        constants: (40, ...) from `euler_box_constants`; broadcast to the rotations.
        rotations: (4, ...) unit quaternions.
    """
    return _project(_EULER_BOX, constants, rotations)


def rotation_vectors_between(inside: Array, outside: Array) -> Array:
    """Rotation vectors (3, ...) in radians, in the frames of `inside`, that lead from `inside` to `outside`.

    The outward normal of a projected rotation, times the angle by which it was outside. Alike for q and -q;
    0 to pi long.

    Args:
        inside, outside: (4, ...) unit quaternions.
    """
    aw, ax, ay, az = inside
    bw, bx, by, bz = outside
    vectors = np.empty((3, *np.broadcast_shapes(aw.shape, bw.shape)))
    vectors[0] = aw * bx - bw * ax - (ay * bz - az * by)
    vectors[1] = aw * by - bw * ay - (az * bx - ax * bz)
    vectors[2] = aw * bz - bw * az - (ax * by - ay * bx)
    cosines = aw * bw + ax * bx + ay * by + az * bz
    x, y, z = vectors
    sines = np.sqrt(x * x + y * y + z * z)
    angles = 2.0 * np.arctan2(sines, np.abs(cosines))
    vectors *= np.copysign(np.where(sines > _TINY, angles / np.maximum(sines, _TINY), 2.0), cosines)
    return vectors


# --- limits as columns of constants


def cone_twist_constants(limit: Hinge | SwingTwist) -> Array:
    """Constants (11,) of a twist range with a cone: those of `nearest.round_constants`.

    The axis (3). Cosine and sine of half the range's middle, and of half its half-width (4). Cosine and sine
    of half the radius (2), and of half the twist taken where every twist is equally near (2).
    """
    return np.array(limit.cone_twist)


def ellipse_twist_constants(limit: SwingTwist) -> Array:
    """Constants (25,) of a twist range with an ellipse.

    Those of a cone (11), the two swing axes (6), the sides -a, +a, -b, +b in radians (4), and for the inside
    test 1 / side^2 (4).
    """
    assert limit.ellipse_twist is not None
    cone, axes, sides = limit.ellipse_twist
    return np.array([*cone, *axes, *sides, *(1.0 / max(side, _SLACK) ** 2 for side in sides)])


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


def _constants(limit: Hinge | SwingTwist | EulerBox) -> tuple[str, Array]:
    """The name of a limit's kind, and its constants."""
    if isinstance(limit, EulerBox):
        return "euler box", euler_box_constants(limit)
    if isinstance(limit, SwingTwist) and isinstance(limit.swing, Ellipse):
        return "ellipse twist", ellipse_twist_constants(limit)
    return "cone twist", cone_twist_constants(limit)


def _without_reversed(limit: Limit) -> tuple[Hinge | SwingTwist | EulerBox, Array | None]:
    """The limit inside any number of `Reversed`, and the matrix (3, 3) that maps vector parts into its frame.

    The matrix is orthogonal. None where `limit` is not Reversed.
    """
    frame: Array | None = None
    while isinstance(limit, ReversedLimit):
        columns = [rotate_inverse(limit.frame, -x, -y, -z) for x, y, z in np.eye(3).tolist()]
        step = np.array(columns).T
        frame = step if frame is None else step @ frame
        limit = limit.limit
    return limit, frame


# --- groups of limits of one kind


class _Kind(NamedTuple):
    """The two steps of a projection.

    Attributes:
        suspects: (constants (C, ...), rotations (4, ...)) -> mask: False only where inside.
        nearest: (constants (C, K), rotations (4, K) of suspects) -> nearest (4, K), and which are outside.
    """

    suspects: Callable[[Array, Array], Mask]
    nearest: Callable[[Array, Array], tuple[Array, Mask]]


class _Member(NamedTuple):
    """One joint's limit: the joint's place, its constants (C,), and the frame of a Reversed limit (3, 3)."""

    place: int
    constants: Array
    frame: Array | None


class _Group:
    """Limits of one kind, all or none of them Reversed."""

    def __init__(self, kind: _Kind, members: Sequence[_Member]) -> None:
        places = [member.place for member in members]
        first, last = places[0], places[-1]
        self._kind = kind
        self._places: Places = np.array(places, dtype=np.intp)
        # A slice is a view: joints that follow each other need not be copied.
        self._joints: slice | Places = self._places
        if last - first == len(places) - 1:
            self._joints = slice(first, last + 1)
        self._constants = np.stack([member.constants for member in members], axis=1)[:, :, None]
        frames = [member.frame for member in members if member.frame is not None]
        self._frames: Array | None = np.stack(frames, axis=2)[:, :, :, None] if frames else None

    def outside(self, rotations: Array) -> tuple[Places, Places, Array]:
        """Joints (K,) and poses (K,) of rotations outside, and the nearest allowed rotations (4, K)."""
        own = rotations[:, self._joints]
        if self._frames is not None:
            own = _mapped(self._frames, own)
        flat, nearest = _outside(self._kind, self._constants, own)
        members, poses = np.divmod(flat, max(own.shape[2], 1))
        if self._frames is not None and len(flat):
            nearest = _mapped(self._frames[..., 0].swapaxes(0, 1)[:, :, members], nearest)
        return self._places[members], poses, nearest


def _mapped(frames: Array, rotations: Array) -> Array:
    """Rotations (4, ...) with their vector parts multiplied by matrices (3, 3, ...)."""
    w, x, y, z = rotations
    mapped = np.empty(rotations.shape)
    mapped[0] = w
    for row, out in zip(frames, mapped[1:], strict=True):
        np.multiply(row[0], x, out=out)
        out += row[1] * y
        out += row[2] * z
    return mapped


def _outside(kind: _Kind, constants: Array, rotations: Array) -> tuple[Places, Array]:
    """Flat indices (K,) of the rotations outside, and the nearest allowed rotations (4, K)."""
    suspects = kind.suspects(constants, rotations)
    flat = np.flatnonzero(suspects)
    if len(flat) == 0:
        return flat, np.empty((4, 0))
    columns = constants.reshape(len(constants), -1)
    own = np.arange(columns.shape[1]).reshape(constants.shape[1:])
    own = np.broadcast_to(own, suspects.shape).reshape(-1)[flat]
    quaternions = _broadcast(rotations, suspects.shape).reshape(4, -1)
    nearest, outside = kind.nearest(columns.take(own, axis=1), quaternions.take(flat, axis=1))
    if outside.all():
        return flat, nearest
    return flat[outside], nearest[:, outside]


def _broadcast(rows: NDArray[Number], shape: tuple[int, ...]) -> NDArray[Number]:
    """Rows (R, ...) with each row broadcast to `shape`."""
    missing = (1,) * (len(shape) + 1 - rows.ndim)
    return np.broadcast_to(rows.reshape(len(rows), *missing, *rows.shape[1:]), (len(rows), *shape))


def _project(kind: _Kind, constants: Array, rotations: Array) -> tuple[Array, Mask]:
    shape = np.broadcast_shapes(constants.shape[1:], rotations.shape[1:])
    projected = _broadcast(rotations, shape).copy()
    outside = np.zeros(shape, dtype=np.bool_)
    flat, nearest = _outside(kind, constants, rotations)
    projected.reshape(4, -1)[:, flat] = nearest
    outside.reshape(-1)[flat] = True
    return projected, outside


# --- twist range and cone


def _cone_twist_suspects(constants: Array, rotations: Array) -> Mask:
    nx, ny, nz, cm, sm, ch, sh, cr, sr = constants[:9]
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    swing, twist = np.sqrt(gx * gx + gy * gy + gz * gz), np.sqrt(w * w + p * p)
    # Both are sines of half of an angle beyond the border: the distance in rotation space.
    beyond_cone = swing * cr - twist * sr
    beyond_twist = np.abs(p * cm - w * sm) * ch - np.abs(w * cm + p * sm) * sh
    suspects: Mask = np.maximum(beyond_cone, beyond_twist) >= _SLACK
    return suspects


def _nearest_half_angle(
    w: Array, p: Array, cm: Array, sm: Array, ch: Array, sh: Array
) -> tuple[Array, Array, Array]:
    """Half angles in ranges nearest to the directions of (w, p): cosine, sine, dot product with (w, p).

    Of two borders that are equally near, a half turn from the middle, the upper one.
    """
    c, d = w * cm + p * sm, p * cm - w * sm
    side = np.where((c < 0.0) | ((c == 0.0) & (d < 0.0)), -1.0, 1.0)
    c *= side
    d *= side
    length = np.sqrt(w * w + p * p)
    inside = (np.abs(d) * ch <= c * sh) & (length > _TINY)
    border = np.copysign(sh, d)
    safe = np.maximum(length, _TINY)
    cosine = np.where(inside, w / safe, side * (ch * cm - border * sm))
    sine = np.where(inside, p / safe, side * (ch * sm + border * cm))
    return cosine, sine, np.where(inside, length, c * ch + d * border)


def _nearest_cone_twist(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    nx, ny, nz, cm, sm, ch, sh, cr, sr, rest_e, rest_f = constants
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    u = np.sqrt(gx * gx + gy * gy + gz * gz)
    e, f, reach = _nearest_half_angle(w, p, cm, sm, ch, sh)
    # A half-turn swing: every twist is equally near, and so are both directions of the swing's axis.
    turned = np.sqrt(w * w + p * p) <= _SLACK
    if turned.any():
        side = _sign_of_first(gx, gy, gz)
        e, f = np.where(turned, side * rest_e, e), np.where(turned, side * rest_f, f)
        reach = np.where(turned, 0.0, reach)
    length = np.sqrt(reach * reach + u * u)
    # Length zero: a pure twist exactly a half turn from the only twist there is.
    at_cone, safe, some = u * cr > reach * sr, np.maximum(length, _TINY), length > _TINY
    s = np.where(at_cone, cr, np.where(some, reach / safe, 1.0))
    scale = np.where(at_cone, sr / np.maximum(u, _TINY), np.where(some, 1.0 / safe, 0.0))
    p = s * f
    nearest = np.array((s * e, gx * scale + p * nx, gy * scale + p * ny, gz * scale + p * nz))
    return nearest, np.ones(len(w), dtype=np.bool_)


def _sign_of_first(*components: Array) -> Array:
    """Signs (K,), 1 or -1, of the first component that is not 0; -1 where all are 0."""
    first = components[-1]
    for component in components[-2::-1]:
        first = np.where(component == 0.0, first, component)
    signs: Array = np.where(first > 0.0, 1.0, -1.0)
    return signs


# --- twist range and ellipse


def _ellipse_twist_suspects(constants: Array, rotations: Array) -> Mask:
    nx, ny, nz, cm, sm, ch, sh = constants[:7]
    ax, ay, az, bx, by, bz = constants[11:17]
    a_lower, a_upper, b_lower, b_upper = constants[21:25]
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    g = x * ax + y * ay + z * az
    k = x * bx + y * by + z * bz
    suspects: Mask = np.abs(p * cm - w * sm) * ch - np.abs(w * cm + p * sm) * sh >= _SLACK
    # The swing's rotation vector is angle / (s u) (on_a, on_b), and angle^2 / u^2 = polynomial / (1 + s).
    on_a, on_b = g * w + k * p, k * w - g * p
    twist_square = w * w + p * p
    square = g * g + k * k + twist_square
    cosine = np.sqrt(twist_square / square)
    polynomial = np.full(cosine.shape, _ANGLE_SQUARE[-1])
    for coefficient in _ANGLE_SQUARE[-2::-1]:
        polynomial *= cosine
        polynomial += coefficient
    on_a *= on_a * np.where(g * w + k * p >= 0.0, a_upper, a_lower)
    on_b *= on_b * np.where(k * w - g * p >= 0.0, b_upper, b_lower)
    on_a += on_b
    polynomial *= on_a
    cosine += 1.0
    cosine *= square
    cosine *= twist_square
    suspects |= polynomial > (1.0 + _ELLIPSE_SLACK) * cosine
    suspects |= twist_square <= 4.0 * _SLACK * _SLACK
    return suspects


def _nearest_ellipse_twist(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    nx, ny, nz, cm, sm, ch, sh, _, _, rest_e, rest_f = constants[:11]
    ax, ay, az, bx, by, bz = constants[11:17]
    sides = constants[17:21]
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    g, k = x * ax + y * ay + z * az, x * bx + y * by + z * bz
    u, s = np.sqrt(g * g + k * k), np.sqrt(w * w + p * p)
    slack = _SLACK * np.sqrt(g * g + k * k + w * w + p * p)
    twist_inside = np.abs(p * cm - w * sm) * ch - np.abs(w * cm + p * sm) * sh < slack
    e, f, reach = _nearest_half_angle(w, p, cm, sm, ch, sh)
    # A half-turn swing: every twist and either direction of the swing's axis are equally near. What (w, p)
    # still says comes first, so that a rotation on the rim stays; then the twist nearest to rest.
    half_turn = s <= slack
    if half_turn.any():
        side = _sign_of_first(g, k)
        rest_e, rest_f = side * rest_e, side * rest_f
        silent = s == 0.0
        e, f = np.where(silent, rest_e, e), np.where(silent, rest_f, f)
        reach = np.where(silent, 0.0, reach)
    parts = _SwingParts(g, k, u, sides)
    swing = _SwingToEllipse(e, f, reach, parts)
    to_a, to_b, distance = swing.to_a, swing.to_b, swing.distance
    outside: Mask = ~(twist_inside & swing.is_close)
    # The other side of the quaternion starts 2 pi - angle from rest, and no side is more than pi from rest.
    left = np.flatnonzero(outside & (swing.distance > math.pi - swing.angle))
    for step in range(1, 4):
        if step == 2:
            left = left[half_turn[left]]
        if len(left) == 0:
            break
        if step == 1:
            other_e, other_f, other_reach = -e[left], -f[left], -reach[left]
        else:
            side_e, side_f = rest_e[left], rest_f[left]
            other_e, other_f = (side_e, side_f) if step == 2 else (-side_e, -side_f)
            other_reach = np.zeros(len(left))
        swing = _SwingToEllipse(other_e, other_f, other_reach, parts.at(left))
        nearer = swing.distance < distance[left]
        chosen = left[nearer]
        if len(chosen):
            if step == 1:
                e, f = e.copy(), f.copy()
            e[chosen], f[chosen] = other_e[nearer], other_f[nearer]
            to_a[chosen], to_b[chosen] = swing.to_a[nearer], swing.to_b[nearer]
            distance[chosen] = swing.distance[nearer]
        close = twist_inside[left] & swing.is_close
        outside[left[close]] = False
        left = left[~close & (swing.distance > math.pi - swing.angle)]
    angle = np.sqrt(to_a * to_a + to_b * to_b)
    half = 0.5 * angle
    sine_per_angle = np.where(angle > _TINY, np.sin(half) / np.maximum(angle, _TINY), 0.5)
    s = np.cos(half)
    to_a, to_b = sine_per_angle * to_a, sine_per_angle * to_b
    g, k, p = to_a * e - to_b * f, to_b * e + to_a * f, s * f
    nearest = np.array((s * e, p * nx + g * ax + k * bx, p * ny + g * ay + k * by, p * nz + g * az + k * bz))
    return _on_the_side_of(rotations, nearest), outside


class _SwingParts(NamedTuple):
    """What is the same of a rotation (K,) whichever twist and side it is seen with.

    Attributes:
        g, k: parts of the quaternion on the swing axes a and b.
        u: length of (g, k).
        sides: (4, K) half axes of the ellipse.
    """

    g: Array
    k: Array
    u: Array
    sides: Array

    def at(self, some: Places) -> _SwingParts:
        """Those of some of the rotations."""
        return _SwingParts(self.g[some], self.k[some], self.u[some], self.sides[:, some])


class _SwingToEllipse:
    """Rotation vectors of swings (K,), and their nearest points in the ellipses.

    Attributes:
        angle: of the swing, radians, from 0 to 2 pi.
        to_a, to_b: the nearest point in the ellipse, radians on the swing axes.
        distance: from the rotation vector to that point, radians.
        is_close: whether the swing is no more than `ROUNDING` outside.
    """

    def __init__(self, e: Array, f: Array, reach: Array, parts: _SwingParts) -> None:
        g, k, u, sides = parts
        # Turned by half the twist about n, for which n x a = -b, n x b = a. With reach < 0 it is the vector
        # longer than pi that goes round the other way.
        self.angle = angle = 2.0 * np.arctan2(u, reach)
        per_sine = np.where(u > _TINY, angle / np.maximum(u, _TINY), 2.0)
        on_a, on_b = per_sine * (g * e + k * f), per_sine * (k * e - g * f)
        self.to_a, self.to_b = _nearest_in_ellipse(on_a, on_b, sides)
        off_a, off_b = on_a - self.to_a, on_b - self.to_b
        square = off_a * off_a + off_b * off_b
        self.distance = np.sqrt(square)
        # How far the axis n itself has to move: an arc `across` the way from rest is as long as on the sphere
        # of its directions. No way across leads inside where the angle is wider than all sides.
        sine = np.abs(np.sin(angle))
        radial = (off_a * on_a + off_b * on_b) * sine
        across = (off_a * on_b - off_b * on_a) * angle
        self.is_close: Mask = square * angle * sine <= ROUNDING * np.sqrt(radial * radial + across * across)
        self.is_close &= angle <= sides.max(0) + ROUNDING


def _nearest_in_ellipse(a: Array, b: Array, sides: Array) -> tuple[Array, Array]:
    """Points (K,), (K,) nearest to (a, b) in shapes of four quarter ellipses with half axes `sides` (4, K).

    As in `nearest.nearest_on_ellipse`, with Newton's method on 1 / sqrt(sum) - 1. That is nearly linear and
    concave: its steps from the left never pass the root either, and fewer are needed.
    """
    semi_a, semi_b = np.where(a >= 0.0, sides[1], sides[0]), np.where(b >= 0.0, sides[3], sides[2])
    to_a, to_b = np.clip(a, -semi_a, semi_a), np.clip(b, -semi_b, semi_b)
    full = (semi_a > 0.0) & (semi_b > 0.0)
    if full.any():
        square_a, square_b = semi_a * semi_a, semi_b * semi_b
        beyond = a * a * square_b + b * b * square_a > square_a * square_b
        np.copyto(to_a, a, where=full & ~beyond)
        np.copyto(to_b, b, where=full & ~beyond)
        left = np.flatnonzero(full & beyond)
        a, b, square_a, square_b = a[left], b[left], square_a[left], square_b[left]
        t = _ellipse_root(np.abs(a) * semi_a[left], np.abs(b) * semi_b[left], square_a, square_b)
        to_a[left], to_b[left] = a * square_a / (t + square_a), b * square_b / (t + square_b)
    return to_a, to_b


def _ellipse_root(scaled_a: Array, scaled_b: Array, square_a: Array, square_b: Array) -> Array:
    """Roots t (K,) of (scaled_a / (t + square_a))^2 + (scaled_b / (t + square_b))^2 = 1; t is 0 or more."""
    roots: Array = np.maximum(np.maximum(scaled_a - square_a, scaled_b - square_b), 0.0)  # left of the root
    places: Places = np.arange(len(roots))
    t, resolution = roots.copy(), 1e-15 * (square_a + square_b)
    for _ in range(_NEWTON_STEPS):
        over_a, over_b = t + square_a, t + square_b
        part_a, part_b = scaled_a / over_a, scaled_b / over_b
        part_a *= part_a
        part_b *= part_b
        total = part_a + part_b
        # sqrt(total) - 1 without cancellation.
        step = total * (total - 1.0) / ((np.sqrt(total) + 1.0) * (part_a / over_a + part_b / over_b))
        moving = step > 1e-15 * t + resolution
        count = np.count_nonzero(moving)
        if count == 0:
            break
        t += np.where(moving, step, 0.0)
        if 4 * count < len(t):
            roots[places] = t
            t, places, resolution = t[moving], places[moving], resolution[moving]
            scaled_a, scaled_b = scaled_a[moving], scaled_b[moving]
            square_a, square_b = square_a[moving], square_b[moving]
    roots[places] = t
    return roots


def _on_the_side_of(rotations: Array, nearest: Array) -> Array:
    """`nearest` (4, K), each negated where its dot product with the rotation (4, K) is below 0."""
    w, x, y, z = rotations * nearest
    signed: Array = nearest * np.where(w + x + y + z < 0.0, -1.0, 1.0)
    return signed


# --- Euler box


def _in_turning_order(constants: Array, rotations: Array) -> tuple[Array, Array, Array]:
    """Vector parts on the axes i, j, and k times the sign of the order."""
    axes = constants[:3].astype(np.intp)
    vectors = rotations[1:]
    if axes.ndim == 3 and axes.shape[2] == 1 and axes.shape[1] == vectors.shape[1]:
        on_i, on_j, on_k = vectors[axes[:, :, 0], np.arange(axes.shape[1])]  # (3, n, B), copied by rows
    else:
        shape = np.broadcast_shapes(axes.shape[1:], vectors.shape[1:])
        on_i, on_j, on_k = np.take_along_axis(_broadcast(vectors, shape), _broadcast(axes, shape), axis=0)
    return on_i, on_j, on_k * constants[3]


def _euler_box_suspects(constants: Array, rotations: Array) -> Mask:
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
    safe = np.maximum(length, _TINY)
    return np.where(length > _TINY, x / safe, 1.0), np.where(length > _TINY, y / safe, 0.0), length


def _half_direction(x: Array, y: Array) -> tuple[Array, Array]:
    """Cosine and sine of half the angle of the unit vectors (x, y); one of the two halves."""
    back = x < 0.0
    cosine, sine = np.where(back, np.abs(y), 1.0 + x), np.where(back, 1.0 - x, np.abs(y))
    scale = 1.0 / np.sqrt(cosine * cosine + sine * sine)
    return cosine * scale, np.copysign(sine * scale, y)


def _nearest_euler_box(constants: Array, rotations: Array) -> tuple[Array, Mask]:
    """As `projection.nearest_in_box`, with half angles as pairs of cosine and sine throughout."""
    w, x, y, z = rotations
    sign = _sign_of_first(w, x, y, z)  # q and -q are made the same, so that ties are decided alike
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
    to = _on_the_side_of(given, to)
    given -= to
    given *= given
    outside: Mask = given.sum(0) >= _SLACK * _SLACK
    if (np.minimum(p, m) <= _TINY).any():
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
        e, f, dots = _nearest_half_angle(cp * m00 + sp * m10, cp * m01 + sp * m11, *others)
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
        e, f, dots = _nearest_half_angle(m00 * ch + m01 * sh, m10 * ch + m11 * sh, *psis)
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


_CONE_TWIST = _Kind(_cone_twist_suspects, _nearest_cone_twist)
_ELLIPSE_TWIST = _Kind(_ellipse_twist_suspects, _nearest_ellipse_twist)
_EULER_BOX = _Kind(_euler_box_suspects, _nearest_euler_box)
_KINDS = {"cone twist": _CONE_TWIST, "ellipse twist": _ELLIPSE_TWIST, "euler box": _EULER_BOX}
