"""Joint limits as rows of numbers: the nearest allowed rotation, and the outward normals of borders.

The one place where a limit is clamped. A rotation q is that of a joint relative to rest, in the joint's own
frame. A row has 32 doubles:

    0       kind: 0 free, 1 cone with twist, 2 ellipse with twist, 3 Euler box
    1       1, or -1 where the limit is seen from the joint's child (reversed an odd number of times)
    2..5    frame F: the limit holds for F^-1 q F, or for its inverse where number 1 is -1
    kinds 1 and 2:
    6..8    axis n of the twist, length 1
    9..12   cosine and sine of half the middle of the twist's range, and of half its half-width
    13..14  cosine and sine of half the cone's radius; a hinge has radius 0
    15..16  cosine and sine of half the twist that is taken where every twist is equally near
    17..18  lower and upper bound of the twist; the turn of a hinge
    19..24  kind 2: the two swing axes a and b, with n x a = -b and n x b = a
    25..28  kind 2: half axes of the ellipse towards -a, +a, -b, +b
    kind 3:
    6..9    numbers of the axes i, j, k in the order in which they turn, and the sign of that order
    10..15  lower and upper bounds of alpha about i, beta about j, and gamma about k times the sign

Written in the axis n of a twist, q = swing(sigma) twist(tau) has the components (w, v.n) = cos(sigma/2)
(cos(tau/2), sin(tau/2)), and the part of v at right angles to n has length sin(sigma/2) and the direction of
the swing's axis turned by -tau/2 about n. No angle has to be computed to compare with a cone's border.
"""

from __future__ import annotations

from math import copysign, fabs, floor, pi, sqrt

from .elementary import atan2, cos, sin, sin_cos
from .geometry import (
    add,
    axis_rotation,
    cross,
    exponential,
    length,
    multiply,
    perpendicular,
    put_vector,
    quaternion_at,
    rotate,
    rotate_back,
    scaled,
    vector_at,
)
from .plain import Quaternion, Vector, nogil

LIMIT_WIDTH = 32
"""Numbers of a row."""
LIMIT_ROUNDING = 1e-6
"""Radians by which a rotation may be outside and still count as inside, as `maths.rotations.ROUNDING`."""
LIMIT_SLACK = 0.5e-6
"""The same as a distance between unit quaternions, which is half the angle between the rotations."""
WEDGE = 0.03
"""Cosine of half a swing below which the borders of an ellipse and of the twist meet at a sharp angle."""


# --- entry points


def project_rotation(row, w, x, y, z):
    """Components of the allowed rotation nearest to (w, x, y, z); None for a rotation that is allowed.

    Raises:
        ValueError: a row of another length.
    """
    if len(row) != LIMIT_WIDTH:
        raise ValueError("a limit's row has another length")
    nearest = nearest_allowed(row, 0, Quaternion(w, x, y, z))
    if nearest.w == w and nearest.x == x and nearest.y == y and nearest.z == z:
        return None
    return nearest.w, nearest.x, nearest.y, nearest.z


def nearest_of_many(rows, numbers, rotations, nearest, outside):
    """Write the nearest allowed one of each of N rotations, and return how many were outside.

    Args:
        rows: of the limits, one after the other.
        numbers: of the limits that N / len(numbers) rotations have, one after the other; -1 for none.
        rotations: the w of all (N), then all x, y and z.
        nearest: in the same order, written.
        outside: (N) bytes, written: 1 for a rotation that was outside.

    Raises:
        ValueError: arrays whose lengths do not fit, a row that is not finite or of no known kind, a number
        that no row has.
    """
    count = len(outside)
    if len(rotations) != 4 * count or len(nearest) != 4 * count:
        raise ValueError("rotations and results have different lengths")
    if len(rows) % LIMIT_WIDTH or not are_rows_known(rows, len(rows)):
        raise ValueError("rows of limits are incomplete, not finite or of no known kind")
    if count == 0:
        return 0
    if len(numbers) == 0 or count % len(numbers):
        raise ValueError("limits are not as many as rotations, nor as parts of them")
    if not are_numbers_known(numbers, len(numbers), len(rows) // LIMIT_WIDTH):
        raise ValueError("a limit's number has no row")
    same = count // len(numbers)
    total = 0
    with nogil:
        for i in range(count):
            number = numbers[i // same]
            q = Quaternion(
                rotations[i], rotations[count + i], rotations[2 * count + i], rotations[3 * count + i]
            )
            inside = q if number < 0 else nearest_allowed(rows, LIMIT_WIDTH * number, q)
            outside[i] = 0 if is_same(inside, q) else 1
            total += outside[i]
            nearest[i] = inside.w
            nearest[count + i] = inside.x
            nearest[2 * count + i] = inside.y
            nearest[3 * count + i] = inside.z
    return total


def borders_at(row, rotation, margin, normals):
    """`outward_normals` of one row and a rotation (4), written to `normals` (9).

    Raises:
        ValueError: arrays of other lengths, a row that is not finite or of no known kind.
    """
    if len(row) != LIMIT_WIDTH or len(rotation) != 4 or len(normals) != 9:
        raise ValueError("a row, a rotation or normals have another length")
    if not are_rows_known(row, LIMIT_WIDTH):
        raise ValueError("a limit's row is not finite or of no known kind")
    return outward_normals(row, 0, quaternion_at(rotation, 0), margin, normals, 0)


def are_rows_known(rows, count):
    """Whether rows of limits, `count` numbers, are finite and of known kinds."""
    for i in range(count):
        if rows[i] - rows[i] != 0.0:
            return False
    for number in range(count // LIMIT_WIDTH):
        kind = rows[LIMIT_WIDTH * number]
        if kind != 0.0 and kind != 1.0 and kind != 2.0 and kind != 3.0:
            return False
    return True


def are_numbers_known(numbers, count, most):
    """Whether numbers are -1 or more and less than `most`."""
    unknown = 0
    for i in range(count):
        if numbers[i] < -1 or numbers[i] >= most:
            unknown += 1
    return unknown == 0


# --- the nearest allowed rotation


def nearest_allowed(rows, at, q):
    """The allowed rotation nearest to `q`, on the side of `q` (dot product >= 0); `q` itself if allowed.

    Nearest in the angle between the two, exactly so for kinds 1 and 3. `q` need not have length 1; zero
    counts as identity. `limits.shapes.clamp` says which of equally near rotations is chosen.
    """
    kind = rows[at]
    if kind == 0.0:
        return q
    if rows[at + 1] == 1.0 and rows[at + 2] == 1.0:
        return nearest_in_cone(rows, at, q) if kind == 1.0 else nearest_inside(rows, at, q)
    seen = seen_by_limit(rows, at, q)
    nearest = nearest_inside(rows, at, seen)
    if is_same(seen, nearest):
        return q
    side = rows[at + 1]
    v = rotate(quaternion_at(rows, at + 2), Vector(side * nearest.x, side * nearest.y, side * nearest.z))
    return Quaternion(nearest.w, v.x, v.y, v.z)


def is_allowed(rows, at, q):
    """Whether `q` is inside the limit, within `LIMIT_ROUNDING`."""
    return is_same(nearest_allowed(rows, at, q), q)


def is_same(p, q):
    """Whether two quaternions are equal number by number."""
    return p.w == q.w and p.x == q.x and p.y == q.y and p.z == q.z


def seen_by_limit(rows, at, q):
    """`q` as the limit inside a reversed one sees it: F^-1 q F or its inverse."""
    side = rows[at + 1]
    v = rotate_back(quaternion_at(rows, at + 2), Vector(side * q.x, side * q.y, side * q.z))
    return Quaternion(q.w, v.x, v.y, v.z)


def nearest_inside(rows, at, q):
    """`nearest_allowed` of a row whose frame does not count."""
    if rows[at] == 1.0:
        return nearest_in_cone(rows, at, q)
    if rows[at] == 2.0:
        return nearest_in_ellipse(rows, at, q)
    return nearest_in_box(rows, at, q)


def leads_with_plus(x, y, z):
    """Whether the first number that is not zero is positive."""
    return x > 0.0 or (x == 0.0 and (y > 0.0 or (y == 0.0 and z > 0.0)))


def nearest_half_angle(w, p, cm, sm, ch, sh):
    """The half angle (cosine, sine) in a range nearest to the direction of (w, p), and its dot with (w, p).

    Of two borders that are equally near, a half turn from the middle, the upper one.
    """
    c, d = w * cm + p * sm, p * cm - w * sm
    side = 1.0
    if c < 0.0 or (c == 0.0 and d < 0.0):
        side, c, d = -1.0, -c, -d
    reach = sqrt(w * w + p * p)
    if fabs(d) * ch <= c * sh and reach > 0.0:
        return w / reach, p / reach, reach
    border = copysign(sh, d)
    return side * (ch * cm - border * sm), side * (ch * sm + border * cm), c * ch + d * border


def nearest_in_cone(rows, at, q):
    """The exactly nearest rotation with a twist inside a range and a swing up to a radius (zero: a hinge).

    For an allowed q' = (s' e, u' f), e and f unit vectors in the (w, n) plane and at right angles to n, the
    dot product is s' (w, p).e + u' g.f. A round limit takes every f, so f = g / |g|: the direction of g is
    kept, which turns the swing's axis by half of what the twist is turned. e is the nearest half angle in the
    twist range, and then tan(sigma'/2) = s'/u' = |g| / (w, p).e = tan(sigma/2) / cos(dtau/2), up to the
    radius.
    """
    nx, ny, nz = rows[at + 6], rows[at + 7], rows[at + 8]
    cm, sm, ch, sh = rows[at + 9], rows[at + 10], rows[at + 11], rows[at + 12]
    cr, sr = rows[at + 13], rows[at + 14]
    w, x, y, z = q.w, q.x, q.y, q.z
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    swing_square = gx * gx + gy * gy + gz * gz
    twist_square = w * w + p * p
    square = swing_square + twist_square
    u, s = sqrt(swing_square), sqrt(twist_square)
    slack = LIMIT_SLACK * sqrt(square)
    # Both sides are sines of half of an angle beyond the border: the distance in rotation space.
    if u * cr - s * sr < slack and fabs(p * cm - w * sm) * ch - fabs(w * cm + p * sm) * sh < slack:
        return q
    if square == 0.0:
        return nearest_in_cone(rows, at, Quaternion(1.0, 0.0, 0.0, 0.0))
    if s <= slack:
        # A half-turn swing: every twist is equally near, and so are both directions of the swing's axis.
        side = 1.0 if leads_with_plus(gx, gy, gz) else -1.0
        e, f, reach = side * rows[at + 15], side * rows[at + 16], 0.0
    else:
        e, f, reach = nearest_half_angle(w, p, cm, sm, ch, sh)
    if u * cr > reach * sr:
        s, u = cr, sr / u
    else:
        size = sqrt(reach * reach + swing_square)
        # Zero: a pure twist exactly a half turn from the only twist there is.
        if size > 0.0:
            s, u = reach / size, 1.0 / size
        else:
            s, u = 1.0, 0.0
    p = s * f
    return Quaternion(s * e, gx * u + p * nx, gy * u + p * ny, gz * u + p * nz)


def nearest_in_ellipse(rows, at, q):
    """The rotation with the nearest twist, and then the nearest swing in the plane of its rotation vector.

    The twist is clamped as in `nearest_in_cone` (equal sides: a cone), then the swing's rotation vector goes
    to the nearest point of the four-sided ellipse, going round the other way past a half turn where that is
    nearer. That is nearest in the plane, not along the sphere: the result is at most about 2 degrees farther
    away than the nearest for swings up to 60 degrees, and 10 degrees for swings up to 100.
    """
    cm, sm, ch, sh = rows[at + 9], rows[at + 10], rows[at + 11], rows[at + 12]
    w = q.w
    p = q.x * rows[at + 6] + q.y * rows[at + 7] + q.z * rows[at + 8]
    g = q.x * rows[at + 19] + q.y * rows[at + 20] + q.z * rows[at + 21]
    k = q.x * rows[at + 22] + q.y * rows[at + 23] + q.z * rows[at + 24]
    u, s = sqrt(g * g + k * k), sqrt(w * w + p * p)
    slack = LIMIT_SLACK * sqrt(u * u + s * s)
    if slack == 0.0:
        return nearest_in_ellipse(rows, at, Quaternion(1.0, 0.0, 0.0, 0.0))
    twist_inside = fabs(p * cm - w * sm) * ch - fabs(w * cm + p * sm) * sh < slack
    widest = widest_side(rows, at)
    best_e, best_f, best_a, best_b, best_distance = 1.0, 0.0, 0.0, 0.0, 1e300
    # A half-turn swing: every twist and either direction of the swing's axis are equally near. What (w, p)
    # still says comes first, so that a rotation on the rim stays; then the twist nearest to rest.
    first = 2 if s == 0.0 else 0
    last = 2 if s > slack else 4
    e, f, reach = 1.0, 0.0, 0.0
    for step in range(first, last):
        if step == 0:
            e, f, reach = nearest_half_angle(w, p, cm, sm, ch, sh)
        elif step == 2:
            side = 1.0 if leads_with_plus(g, k, 0.0) else -1.0
            e, f, reach = side * rows[at + 15], side * rows[at + 16], 0.0
        else:
            e, f, reach = -e, -f, -reach
        # The swing's rotation vector: turned by half the twist about n, for which n x a = -b, n x b = a.
        # With reach < 0 it is the one longer than pi that goes round the other way.
        angle = 2.0 * atan2(u, reach)
        angle_per_sine = angle / u if u > 0.0 else 2.0
        on_a, on_b = angle_per_sine * (g * e + k * f), angle_per_sine * (k * e - g * f)
        to_a, to_b = nearest_on_ellipse(
            on_a, on_b, rows[at + 25], rows[at + 26], rows[at + 27], rows[at + 28]
        )
        off_a, off_b = on_a - to_a, on_b - to_b
        square = off_a * off_a + off_b * off_b
        distance = sqrt(square)
        if distance < best_distance:
            best_e, best_f, best_a, best_b, best_distance = e, f, to_a, to_b, distance
        if twist_inside and angle <= widest + LIMIT_ROUNDING:
            # How far the axis n itself has to move: an arc `across` the way from rest is as long as on the
            # sphere of its directions. Near the half turn that is far less than in the plane, because the
            # twist makes up for it there. No way across leads inside where the angle is wider than all sides.
            radial = off_a * on_a + off_b * on_b
            across = off_a * on_b - off_b * on_a
            sine = fabs(sin(angle))
            arc = sqrt(radial * sine * radial * sine + across * angle * across * angle)
            is_close = square * angle * sine <= LIMIT_ROUNDING * arc
            # Where the twist cannot make up for everything, its range decides: the nearest point in the plane
            # may be far away then, at right angles to where the twist leads.
            if s <= WEDGE * (u + s) and distance > LIMIT_ROUNDING and ch > LIMIT_SLACK:
                is_close = twist_makes_up(rows, at, w, p, g, k)
            if is_close:
                return q
        if distance <= pi - angle:
            break  # the other way round starts 2 pi - angle from rest, and no side is more than pi from rest
    nearest = rotation_of_swing(rows, at, best_a, best_b, best_e, best_f)
    dot = w * nearest.w + q.x * nearest.x + q.y * nearest.y + q.z * nearest.z
    return nearest if dot >= 0.0 else Quaternion(-nearest.w, -nearest.x, -nearest.y, -nearest.z)


def widest_side(rows, at):
    """The longest half axis of an ellipse, radians."""
    widest = rows[at + 25]
    for side in range(26, 29):
        if rows[at + side] > widest:
            widest = rows[at + side]
    return widest


def twist_makes_up(rows, at, w, p, g, k):
    """Whether a swing near the half turn is inside an ellipse when it is seen with another allowed twist.

    With the part (g, k) of the quaternion kept, a twist of tau' swings about the direction of (g, k) turned
    by -tau'/2. From tau to tau' the rotation turns by 4 s sin(|tau' - tau| / 4), s being the length of
    (w, p): near the half turn next to nothing. So tau' has to be in three intervals at once: in the range of
    the twist, within `LIMIT_ROUNDING` of the rotation, and where the ellipse reaches as far as the swing.
    """
    s, u = sqrt(w * w + p * p), sqrt(g * g + k * k)
    size = sqrt(s * s + u * u)
    most = 0.25 * LIMIT_ROUNDING * size
    twist = 2.0 * atan2(p, w) if s > 0.0 else 0.0
    nearby = 4.0 * atan2(most, sqrt((s - most) * (s + most))) if most < s else 2.0 * pi
    middle, half_width = 0.5 * (rows[at + 17] + rows[at + 18]), 0.5 * (rows[at + 18] - rows[at + 17])
    reach = 2.0 * atan2(u, s) - LIMIT_ROUNDING
    direction = 2.0 * atan2(k, g)
    a_lower, a_upper, b_lower, b_upper = rows[at + 25], rows[at + 26], rows[at + 27], rows[at + 28]
    return (
        twist_turns_to(reach, a_upper, b_lower, b_upper, direction, twist, nearby, middle, half_width)
        or twist_turns_to(reach, b_upper, a_upper, a_lower, direction - pi, twist, nearby, middle, half_width)
        or twist_turns_to(
            reach, a_lower, b_upper, b_lower, direction - 2.0 * pi, twist, nearby, middle, half_width
        )
        or twist_turns_to(
            reach, b_lower, a_lower, a_upper, direction - 3.0 * pi, twist, nearby, middle, half_width
        )
    )


def twist_turns_to(reach, here, before, after, direction, twist, nearby, middle, half_width):
    """Whether the three intervals of `twist_makes_up` meet about one half axis of the ellipse.

    `here` is that half axis, `before` and `after` are those beside it. `direction` is the twist with which
    the swing has its direction.
    """
    if here < reach:
        return False
    centre = twist + nearest_turn_of(direction - twist, 4.0 * pi)
    lower = centre - 2.0 * (azimuth_reaching(reach, here, after) + LIMIT_ROUNDING)
    upper = centre + 2.0 * (azimuth_reaching(reach, here, before) + LIMIT_ROUNDING)
    if nearby < 2.0 * pi:
        lower, upper = larger(lower, twist - nearby), smaller(upper, twist + nearby)
    off = fabs(nearest_turn_of(0.5 * (lower + upper) - middle, 2.0 * pi))
    return lower <= upper and off <= half_width + 0.5 * (upper - lower) + LIMIT_ROUNDING


def larger(a, b):
    return a if a > b else b


def smaller(a, b):
    return a if a < b else b


def nearest_turn_of(angle, turn):
    """`angle` less the whole turns that bring it within half a turn of zero; half a turn stays."""
    if -0.5 * turn <= angle <= 0.5 * turn:
        return angle
    return angle - turn * floor(angle / turn + 0.5)


def azimuth_reaching(reach, here, beside):
    """How far from a half axis `here` towards the next an ellipse's border is still `reach` away, radians."""
    if beside >= here or beside >= reach:
        return 0.5 * pi
    if beside == 0.0 or reach >= here:
        return 0.0
    square = (1.0 / (reach * reach) - 1.0 / (here * here)) / (1.0 / (beside * beside) - 1.0 / (here * here))
    return atan2(sqrt(square), sqrt(1.0 - square)) if square < 1.0 else 0.5 * pi


def rotation_of_swing(rows, at, on_a, on_b, e, f):
    """The rotation with this swing (rotation vector on its two axes) and twist (cosine, sine of its half)."""
    angle = sqrt(on_a * on_a + on_b * on_b)
    sine, s = sin_cos(0.5 * angle)
    sine_per_angle = sine / angle if angle > 0.0 else 0.5
    on_a, on_b = sine_per_angle * on_a, sine_per_angle * on_b
    g, k, p = on_a * e - on_b * f, on_b * e + on_a * f, s * f
    return Quaternion(
        s * e,
        p * rows[at + 6] + g * rows[at + 19] + k * rows[at + 22],
        p * rows[at + 7] + g * rows[at + 20] + k * rows[at + 23],
        p * rows[at + 8] + g * rows[at + 21] + k * rows[at + 24],
    )


def nearest_on_ellipse(a, b, a_lower, a_upper, b_lower, b_upper):
    """The point nearest to (a, b) in the shape of four quarter ellipses with these half axes (none negative).

    The shape is convex and its border has no corner where the quarters meet, so the nearest point is in the
    same quarter. There it is e^2 y / (t + e^2) on each axis, with t the root of sum (e y / (t + e^2))^2 = 1
    (Eberly, "Distance from a point to an ellipse"). For t >= 0 the sum falls and is convex, so Newton's
    method from a point left of the root walks to it without overshooting. A half axis of zero is a segment.
    """
    semi_a, semi_b = a_upper if a >= 0.0 else a_lower, b_upper if b >= 0.0 else b_lower
    if semi_a == 0.0 or semi_b == 0.0:
        return smaller(larger(a, -semi_a), semi_a), smaller(larger(b, -semi_b), semi_b)
    square_a, square_b = semi_a * semi_a, semi_b * semi_b
    if a * a * square_b + b * b * square_a <= square_a * square_b:
        return a, b
    scaled_a, scaled_b = fabs(a) * semi_a, fabs(b) * semi_b
    t = larger(larger(scaled_a - square_a, scaled_b - square_b), 0.0)  # left of the root: the sum is >= 1
    for _ in range(50):  # 5 are usual; the bound only makes the end certain
        part_a, part_b = scaled_a / (t + square_a), scaled_b / (t + square_b)
        excess = part_a * part_a + part_b * part_b - 1.0
        slope = part_a * part_a / (t + square_a) + part_b * part_b / (t + square_b)
        step = 0.5 * excess / slope
        if not step > 1e-15 * (t + square_a + square_b):
            break
        t += step
    return a * square_a / (t + square_a), b * square_b / (t + square_b)


# --- Euler boxes


def is_whole_circle(lower, upper):
    return upper - lower >= 2.0 * pi


def beyond_range(angle, lower, upper):
    """Radians by which an angle is outside a range, the short way round; below 0 inside."""
    return fabs(nearest_turn_of(angle - 0.5 * (lower + upper), 2.0 * pi)) - 0.5 * (upper - lower)


def is_in_range(angle, lower, upper):
    return beyond_range(angle, lower, upper) <= 1e-12


def best_in_range(x, y, lower, upper):
    """The angle in the range that maximises |x cos(angle / 2) + y sin(angle / 2)|, and that maximum."""
    middle = 0.5 * (lower + upper)
    angle = middle + nearest_turn_of(2.0 * atan2(y, x) - middle, 2.0 * pi)
    angle = smaller(larger(angle, lower), upper)
    sine, cosine = sin_cos(0.5 * angle)
    return angle, fabs(x * cosine + y * sine)


def component_of(q, axis):
    """Component of the vector part of `q` on the axis of number 0, 1 or 2."""
    if axis == 0.0:
        return q.x
    return q.y if axis == 1.0 else q.z


def nearest_in_box(rows, at, q):
    """The exactly nearest rotation whose three Euler angles are in their ranges.

    With axes i, j, k turned in this order, alpha about i, beta about j, and gamma about k times the sign of
    the order (g), a rotation is the pair of complex numbers A e^(i P) = (w - j, i + k) / sqrt 2 and C e^(i M)
    = (w + j, k - i) / sqrt 2, where P = (g + alpha) / 2, M = (g - alpha) / 2 and (A, C) = (cos psi, sin psi)
    with psi = beta / 2 + pi / 4 (Bernardes & Viollet 2022). Nothing is lost near gimbal lock, where A or C
    vanishes and only M or P is left.

    In these numbers the dot product with the rotation of other angles is a bilinear form of the half angles
    as soon as one angle is fixed, so its maximum on each face of the box is known in closed form; on an edge
    it is a single sine. The nearest point of a box that does not hold the rotation is one of those.
    """
    square = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z
    if not 0.0 < square < 1e300:
        return nearest_in_box(rows, at, Quaternion(1.0, 0.0, 0.0, 0.0)) if square == 0.0 else q
    a_lower, a_upper = rows[at + 10], rows[at + 11]
    b_lower, b_upper = rows[at + 12], rows[at + 13]
    g_lower, g_upper = rows[at + 14], rows[at + 15]
    # q and -q are made the same, so that ties are decided alike for both.
    leads = q.w > 0.0 or (q.w == 0.0 and leads_with_plus(q.x, q.y, q.z))
    scale = sqrt(0.5) / (sqrt(square) if leads else -sqrt(square))
    on_i, on_j = component_of(q, rows[at + 6]), component_of(q, rows[at + 7])
    on_k = rows[at + 9] * component_of(q, rows[at + 8])
    # + 0.0: no zero below zero, the arc tangent minds it.
    a, b = scale * (q.w - on_j) + 0.0, scale * (on_i + on_k) + 0.0
    c, d = scale * (q.w + on_j) + 0.0, scale * (on_k - on_i) + 0.0
    amplitude_p, amplitude_m = sqrt(a * a + b * b), sqrt(c * c + d * d)
    half_sum, half_difference = atan2(b, a), atan2(d, c)
    alpha, gamma = half_sum - half_difference, half_sum + half_difference
    beta = 2.0 * atan2(amplitude_m, amplitude_p) - 0.5 * pi
    if (
        is_in_range(alpha, a_lower, a_upper)
        and is_in_range(beta, b_lower, b_upper)
        and is_in_range(gamma, g_lower, g_upper)
    ) or (
        is_in_range(alpha + pi, a_lower, a_upper)
        and is_in_range(pi - beta, b_lower, b_upper)
        and is_in_range(gamma + pi, g_lower, g_upper)
    ):
        return q

    # The faces on which the middle angle is at an end of its range.
    best_alpha, best_beta, best_gamma, best_dot = 0.0, 0.0, 0.0, -1.0
    if not is_whole_circle(b_lower, b_upper):
        for end in range(2):
            beta = b_lower if end == 0 else b_upper
            psi = 0.5 * beta + 0.25 * pi
            sine, cosine = sin_cos(psi)
            on_p, on_m = amplitude_p * cosine, amplitude_m * sine
            dot = fabs(on_p) + fabs(on_m)
            if dot > best_dot:
                turn = 0.0 if on_p * on_m >= 0.0 else pi
                alpha, gamma = half_sum - half_difference - turn, half_sum + half_difference + turn
                if is_in_range(alpha, a_lower, a_upper) and is_in_range(gamma, g_lower, g_upper):
                    best_alpha, best_beta, best_gamma, best_dot = alpha, beta, gamma, dot
    value, beta, angle, dot = nearest_at_end(
        a, b, c, -d, a_lower, a_upper, b_lower, b_upper, g_lower, g_upper, 1.0, best_dot
    )
    if dot > best_dot:
        best_alpha, best_beta, best_gamma, best_dot = value, beta, angle, dot
    # M changes its sign when alpha and gamma change places, P does not. Edges between the two are known.
    value, beta, angle, dot = nearest_at_end(
        a, b, c, d, g_lower, g_upper, b_lower, b_upper, a_lower, a_upper, 0.0, best_dot
    )
    if dot > best_dot:
        best_alpha, best_beta, best_gamma = angle, beta, value
    psi = 0.5 * best_beta + 0.25 * pi
    to_b, to_a = sin_cos(0.5 * (best_gamma + best_alpha))
    to_d, to_c = sin_cos(0.5 * (best_gamma - best_alpha))
    sine, cosine = sin_cos(psi)
    to_a, to_b, to_c, to_d = cosine * to_a, cosine * to_b, sine * to_c, sine * to_d
    if a * to_a + b * to_b + c * to_c + d * to_d < 0.0:
        to_a, to_b, to_c, to_d = -to_a, -to_b, -to_c, -to_d
    off_a, off_b, off_c, off_d = a - to_a, b - to_b, c - to_c, d - to_d
    if off_a * off_a + off_b * off_b + off_c * off_c + off_d * off_d < LIMIT_SLACK * LIMIT_SLACK:
        return q
    scale = copysign(sqrt(0.5), scale)
    on_i, on_j, on_k = scale * (to_b - to_d), scale * (to_c - to_a), scale * rows[at + 9] * (to_b + to_d)
    first, middle = rows[at + 6], rows[at + 7]
    return Quaternion(
        scale * (to_a + to_c),
        on_i if first == 0.0 else (on_j if middle == 0.0 else on_k),
        on_i if first == 1.0 else (on_j if middle == 1.0 else on_k),
        on_i if first == 2.0 else (on_j if middle == 2.0 else on_k),
    )


def nearest_at_end(
    a, b, c, of_d, lower, upper, b_lower, b_upper, other_lower, other_upper, with_other, least
):
    """The nearest point of the faces on which an outer angle is at an end of its range, and of their edges.

    Returns that angle, beta, the other outer angle and the dot product; a product of `least` or less says
    that no point is nearer than that. `with_other`: 1 if edges to faces of the other outer angle count.
    """
    best_value, best_beta, best_angle, best_dot = 0.0, 0.0, 0.0, least
    if is_whole_circle(lower, upper):
        return best_value, best_beta, best_angle, best_dot
    for end in range(2):
        value = lower if end == 0 else upper
        # The dot product is (cos psi, sin psi) m (cos h, sin h) with h half of the other angle.
        sh, ch = sin_cos(0.5 * value)
        m00, m01 = ch * a + sh * b, ch * b - sh * a
        m10, m11 = ch * c + sh * of_d, sh * c - ch * of_d
        sum_x, sum_y, difference_x, difference_y = m00 - m11, m10 + m01, m00 + m11, m10 - m01
        dot = 0.5 * (
            sqrt(sum_x * sum_x + sum_y * sum_y)
            + sqrt(difference_x * difference_x + difference_y * difference_y)
        )
        if dot <= best_dot:
            continue  # no point of this face, nor of its edges, is nearer
        total, difference = atan2(sum_y, sum_x), atan2(difference_y, difference_x)
        beta, angle = total + difference - 0.5 * pi, total - difference
        if is_in_range(beta, b_lower, b_upper) and is_in_range(angle, other_lower, other_upper):
            best_value, best_beta, best_angle, best_dot = value, beta, angle, dot
            continue
        if not is_whole_circle(b_lower, b_upper):
            for edge in range(2):
                beta = b_lower if edge == 0 else b_upper
                sp, cp = sin_cos(0.5 * beta + 0.25 * pi)
                angle, dot = best_in_range(cp * m00 + sp * m10, cp * m01 + sp * m11, other_lower, other_upper)
                if dot > best_dot:
                    best_value, best_beta, best_angle, best_dot = value, beta, angle, dot
        if with_other == 1.0 and not is_whole_circle(other_lower, other_upper):
            for edge in range(2):
                angle = other_lower if edge == 0 else other_upper
                sh, ch = sin_cos(0.5 * angle)
                beta, dot = best_in_range(
                    m00 * ch + m01 * sh, m10 * ch + m11 * sh, b_lower + 0.5 * pi, b_upper + 0.5 * pi
                )
                if dot > best_dot:
                    best_value, best_beta, best_angle, best_dot = value, beta - 0.5 * pi, angle, dot
    return best_value, best_beta, best_angle, best_dot


# --- hinges


def is_hinge(rows, at):
    """Whether a limit leaves one angle about a fixed axis and nothing else."""
    return rows[at] == 1.0 and rows[at + 14] == 0.0


def hinge_axis(rows, at):
    """The axis of a hinge in the joint's frame, length 1."""
    return vector_at(rows, at + 6)


def hinge_range(rows, at):
    """The lower and upper bound of a hinge, radians."""
    return rows[at + 17], rows[at + 18]


# --- outward normals


def outward_normals(rows, at, q, margin, normals, at_normals):
    """Write the outward normals of the borders at which an allowed unit quaternion stands, 3 at most.

    A border counts within `margin` radians. Its normal n is a unit rotation vector in the joint's frame at
    rest: exponential(t n) q is outside by t, to first order. Where the borders on both sides are that near
    (a twist, an angle or a side that leaves nothing), the normal stands for both: an equality.

    Exactly at a half-turn swing the twist and the ellipse have no normals. At gimbal lock a box has those of
    the middle angle, of the sum of the outer angles, and of the outer angles where only one pair is left.

    Args:
        normals: 3 numbers for each normal are written from `at_normals` on.

    Returns:
        The number of normals, and 8 times a mask of those that are equalities: bit 0 is the first normal.
        Equalities come first.
    """
    if rows[at] == 0.0:
        return 0
    has_frame = rows[at + 1] != 1.0 or rows[at + 2] != 1.0
    seen = seen_by_limit(rows, at, q) if has_frame else q
    if rows[at] == 3.0:
        count, held = normals_of_box(rows, at, seen, margin, normals, at_normals)
    else:
        count, held = normals_of_swing_twist(rows, at, seen, margin, normals, at_normals)
    if has_frame:
        # With p = F^-1 q F, exp(d) q is exp(F^-1 d) p; with p = F^-1 q^-1 F it is exp(-p F^-1 d) p.
        frame = quaternion_at(rows, at + 2)
        for i in range(count):
            normal = vector_at(normals, at_normals + 3 * i)
            if rows[at + 1] < 0.0:
                normal = scaled(rotate_back(seen, normal), -1.0)
            put_vector(normals, at_normals + 3 * i, rotate(frame, normal))
    mask = 0
    for _ in range(held):
        mask = 2 * mask + 1
    return count + 8 * mask


def leaves_limit(rows, at, q, normal, margin):
    """Whether a step along a normal ends outside, not where another description of a rotation allows it."""
    beyond = multiply(exponential(scaled(normal, margin + 4.0 * LIMIT_ROUNDING)), q)
    return not is_same(nearest_inside(rows, at, beyond), beyond)


def normals_of_swing_twist(rows, at, q, margin, normals, at_normals):
    """Outward normals of a cone or an ellipse and a twist's range.

    The cone's is the axis e of the swing. The twist's is its gradient, with the components cos(sigma/2) along
    n and sin(sigma/2) along t = e x n: half-way between the axis n and where it swings to.
    """
    n = vector_at(rows, at + 6)
    cm, sm, ch, sh = rows[at + 9], rows[at + 10], rows[at + 11], rows[at + 12]
    thin = larger(margin, LIMIT_ROUNDING)
    w = q.w
    p = q.x * n.x + q.y * n.y + q.z * n.z
    g = Vector(q.x - p * n.x, q.y - p * n.y, q.z - p * n.z)
    u, s = length(g), sqrt(w * w + p * p)
    silent = s <= LIMIT_SLACK
    e, t = perpendicular(n), Vector(0.0, 0.0, 0.0)
    if u > 1e-150 and not silent:
        aside = cross(g, n)
        scale = 1.0 / (s * u)
        e = add(scaled(g, w * scale), scaled(aside, -p * scale))
        t = add(scaled(aside, w * scale), scaled(g, p * scale))
    else:
        t = cross(e, n)
    of_twist = add(scaled(n, s), scaled(t, u))
    count = 0
    # The middle of a range narrower than twice the margin is at both of its ends.
    if sh <= 0.5 * thin and not silent:
        put_vector(normals, at_normals, of_twist)
        count = 1
    held = count
    if rows[at] == 2.0:
        if not silent:
            count, held = normals_of_ellipse(rows, at, q, margin, normals, at_normals, count)
    elif rows[at + 14] <= 0.5 * thin:
        put_vector(normals, at_normals + 3 * count, perpendicular(n))
        put_vector(normals, at_normals + 3 * count + 3, cross(n, perpendicular(n)))
        count += 2
        held = count
    elif rows[at + 13] > LIMIT_SLACK and 2.0 * (u * rows[at + 13] - s * rows[at + 14]) > -margin:
        put_vector(normals, at_normals + 3 * count, e)
        count += 1
    if sh > 0.5 * thin and ch > LIMIT_SLACK and not silent and count < 3:
        along, across = w * cm + p * sm, p * cm - w * sm
        if 2.0 * (fabs(across) * ch - fabs(along) * sh) > -margin:
            is_upper = (across >= 0.0) == (along >= 0.0)
            put_vector(normals, at_normals + 3 * count, scaled(of_twist, 1.0 if is_upper else -1.0))
            count += 1
    return count, held


def normals_of_ellipse(rows, at, q, margin, normals, at_normals, count):
    """Write the normals of an ellipse from number `count` on; the numbers of all normals and of equalities.

    A turn d of the joint changes the rotation vector sigma e of its swing by (d.e) e + sigma d.(cot(sigma) t
    - n) t, with t = e x n: so a gradient in the plane becomes one among rotation vectors.
    """
    thin = larger(margin, LIMIT_ROUNDING)
    w = q.w
    p = q.x * rows[at + 6] + q.y * rows[at + 7] + q.z * rows[at + 8]
    g = q.x * rows[at + 19] + q.y * rows[at + 20] + q.z * rows[at + 21]
    k = q.x * rows[at + 22] + q.y * rows[at + 23] + q.z * rows[at + 24]
    u, s = sqrt(g * g + k * k), sqrt(w * w + p * p)
    angle = 2.0 * atan2(u, s)
    along_a, along_b = 1.0, 0.0
    if u > 1e-150:
        along_a, along_b = (g * w + k * p) / (s * u), (k * w - g * p) / (s * u)
    a, b = angle * along_a, angle * along_b
    a_lower, a_upper, b_lower, b_upper = rows[at + 25], rows[at + 26], rows[at + 27], rows[at + 28]
    a_lower = a_lower if a_lower > thin else 0.0
    a_upper = a_upper if a_upper > thin else 0.0
    b_lower = b_lower if b_lower > thin else 0.0
    b_upper = b_upper if b_upper > thin else 0.0
    a_held, b_held = a_lower == 0.0 and a_upper == 0.0, b_lower == 0.0 and b_upper == 0.0
    if a_held:
        normal = normal_of_plane(rows, at, angle, along_a, along_b, 1.0, 0.0)
        put_vector(normals, at_normals + 3 * count, normal)
        count += 1
    if b_held:
        normal = normal_of_plane(rows, at, angle, along_a, along_b, 0.0, 1.0)
        put_vector(normals, at_normals + 3 * count, normal)
        count += 1
    held = count
    # A side of zero cuts the shape along the other axis.
    if not a_held and (a_lower == 0.0 or a_upper == 0.0):
        outward = 1.0 if a_upper == 0.0 else -1.0
        if -a * outward <= margin * stretch_of_plane(angle, along_a, along_b, 1.0, 0.0):
            normal = normal_of_plane(rows, at, angle, along_a, along_b, outward, 0.0)
            put_vector(normals, at_normals + 3 * count, normal)
            count += 1
    if not b_held and (b_lower == 0.0 or b_upper == 0.0) and count < 3:
        outward = 1.0 if b_upper == 0.0 else -1.0
        if -b * outward <= margin * stretch_of_plane(angle, along_a, along_b, 0.0, 1.0):
            normal = normal_of_plane(rows, at, angle, along_a, along_b, 0.0, outward)
            put_vector(normals, at_normals + 3 * count, normal)
            count += 1
    if count == 3 or (a_held and b_held):
        return count, held
    semi_a, semi_b = a_upper if a >= 0.0 else a_lower, b_upper if b >= 0.0 else b_lower
    semi_a = semi_a if semi_a > 0.0 else larger(a_lower, a_upper)
    semi_b = semi_b if semi_b > 0.0 else larger(b_lower, b_upper)
    to_a, to_b = 0.0, 0.0
    over_a, over_b = 0.0, 0.0
    if not a_held:
        to_a, over_a = a / (semi_a * semi_a), 1.0 / semi_a
    if not b_held:
        to_b, over_b = b / (semi_b * semi_b), 1.0 / semi_b
    slope = sqrt(to_a * to_a + to_b * to_b)
    if slope > 0.0:
        to_a, to_b = to_a / slope, to_b / slope
        way = margin * stretch_of_plane(angle, along_a, along_b, to_a, to_b)
        far_a, far_b = (a + way * to_a) * over_a, (b + way * to_b) * over_b
        if far_a * far_a + far_b * far_b >= 1.0:
            normal = normal_of_plane(rows, at, angle, along_a, along_b, to_a, to_b)
            # Past a half turn the swing comes back on the other side.
            if angle < pi - 4.0 * thin or leaves_limit(rows, at, q, normal, margin):
                put_vector(normals, at_normals + 3 * count, normal)
                count += 1
    return count, held


def stretch_of_plane(angle, along_a, along_b, to_a, to_b):
    """Radians in the plane of a swing's rotation vector for each of the turn that goes the direction `to`."""
    radial, tangential = to_a * along_a + to_b * along_b, to_b * along_a - to_a * along_b
    per_sine = angle / sin(angle) if angle > 1e-4 else 1.0
    return sqrt(radial * radial + tangential * per_sine * tangential * per_sine)


def normal_of_plane(rows, at, angle, along_a, along_b, to_a, to_b):
    """The unit rotation vector in whose direction a swing's rotation vector moves as `to` in its plane."""
    radial, tangential = to_a * along_a + to_b * along_b, to_b * along_a - to_a * along_b
    n, a, b = vector_at(rows, at + 6), vector_at(rows, at + 19), vector_at(rows, at + 22)
    # All three times sin(angle) / angle.
    sine, cosine = sin_cos(angle)
    per_angle = sine / angle if angle > 1e-4 else 1.0
    on_e, on_t, on_n = radial * per_angle, tangential * cosine, -tangential * sine
    on_a, on_b = on_e * along_a - on_t * along_b, on_e * along_b + on_t * along_a
    normal = add(add(scaled(a, on_a), scaled(b, on_b)), scaled(n, on_n))
    return scaled(normal, 1.0 / length(normal))


def unit_axis(axis):
    """The axis of number 0, 1 or 2."""
    return Vector(1.0 if axis == 0.0 else 0.0, 1.0 if axis == 1.0 else 0.0, 1.0 if axis == 2.0 else 0.0)


def normals_of_box(rows, at, q, margin, normals, at_normals):
    """Outward normals of an Euler box: of the outer angles a2 x a3 and a1 x a2, of the middle one a2.

    a1, a2, a3 are the axes as they stand after the turns that follow. The outer angles grow along their
    normals by 1 / cos(beta): so near gimbal lock their borders are nearer than the angles say.
    """
    a_lower, a_upper = rows[at + 10], rows[at + 11]
    b_lower, b_upper = rows[at + 12], rows[at + 13]
    g_lower, g_upper = rows[at + 14], rows[at + 15]
    thin = larger(margin, LIMIT_ROUNDING)
    sign = rows[at + 9]
    third = unit_axis(rows[at + 8])
    on_i, on_j = component_of(q, rows[at + 6]), component_of(q, rows[at + 7])
    on_k = sign * component_of(q, rows[at + 8])
    a, b, c, d = q.w - on_j, on_i + on_k, q.w + on_j, on_k - on_i
    square_p, square_m = a * a + b * b, c * c + d * d
    half_sum, half_difference = atan2(b, a), atan2(d, c)
    alpha, gamma = half_sum - half_difference, half_sum + half_difference
    beta = 2.0 * atan2(sqrt(square_m), sqrt(square_p)) - 0.5 * pi
    slowness = fabs(cos(beta))
    # The other description of the rotation, where it fits better.
    first = larger(
        beyond_range(beta, b_lower, b_upper),
        slowness * larger(beyond_range(alpha, a_lower, a_upper), beyond_range(gamma, g_lower, g_upper)),
    )
    second = larger(
        beyond_range(pi - beta, b_lower, b_upper),
        slowness
        * larger(beyond_range(alpha + pi, a_lower, a_upper), beyond_range(gamma + pi, g_lower, g_upper)),
    )
    if second < first:
        alpha, beta, gamma = alpha + pi, pi - beta, gamma + pi
    is_locked = slowness <= thin
    a_held = a_upper - a_lower <= 2.0 * thin
    b_held = b_upper - b_lower <= 2.0 * thin
    g_held = g_upper - g_lower <= 2.0 * thin
    sum_sign = 1.0
    sum_held = False
    sum_beyond = -1.0
    sum_off = 0.0
    if is_locked:
        # Only gamma + alpha or gamma - alpha is left: outer angles that make it, as far inside as can be.
        sum_sign = 1.0 if square_p > square_m else -1.0
        total = 2.0 * half_sum if square_p > square_m else 2.0 * half_difference
        s_lower = a_lower if sum_sign > 0.0 else -a_upper
        s_upper = a_upper if sum_sign > 0.0 else -a_lower
        middle = 0.5 * (s_lower + s_upper + g_lower + g_upper)
        sum_off = nearest_turn_of(total - middle, 2.0 * pi)
        sum_half = 0.5 * (s_upper - s_lower + g_upper - g_lower)
        sum_held = sum_half <= thin
        sum_beyond = fabs(sum_off) - sum_half if sum_half < pi else -1.0
        least = larger(s_lower, middle + sum_off - g_upper)
        most = smaller(s_upper, middle + sum_off - g_lower)
        alpha = 0.5 * sum_sign * (least + most)
        gamma = middle + sum_off - 0.5 * (least + most)
        # A middle angle that cannot leave the lock leaves the sum alone.
        a_held = b_held or most - least <= 2.0 * thin
        g_held = False
    turned = axis_rotation(third, sign * gamma)
    a2 = rotate(turned, unit_axis(rows[at + 7]))
    a1 = rotate(turned, rotate(axis_rotation(unit_axis(rows[at + 7]), beta), unit_axis(rows[at + 6])))
    of_alpha, of_gamma = cross(a2, third), cross(a1, a2)
    if cos(beta) < 0.0:
        of_alpha, of_gamma = scaled(of_alpha, -1.0), scaled(of_gamma, -1.0)
    of_alpha = scaled(of_alpha, sign)
    of_sum = scaled(third, sign)
    count = 0
    if a_held:
        put_vector(normals, at_normals, of_alpha)
        count = 1
    if b_held:
        put_vector(normals, at_normals + 3 * count, a2)
        count += 1
    if g_held or sum_held:
        put_vector(normals, at_normals + 3 * count, of_sum if sum_held else of_gamma)
        count += 1
    held = count
    if not b_held and beyond_range(beta, b_lower, b_upper) > -margin:
        normal = scaled(a2, side_of_range(beta, b_lower, b_upper))
        if leaves_limit(rows, at, q, normal, margin):
            put_vector(normals, at_normals + 3 * count, normal)
            count += 1
    if is_locked:
        if not sum_held and sum_beyond > -margin and count < 3:
            normal = scaled(of_sum, 1.0 if sum_off >= 0.0 else -1.0)
            if leaves_limit(rows, at, q, normal, margin):
                put_vector(normals, at_normals + 3 * count, normal)
                count += 1
        return count, held
    if not a_held and slowness * beyond_range(alpha, a_lower, a_upper) > -margin:
        normal = scaled(of_alpha, side_of_range(alpha, a_lower, a_upper))
        if leaves_limit(rows, at, q, normal, margin):
            put_vector(normals, at_normals + 3 * count, normal)
            count += 1
    if not g_held and slowness * beyond_range(gamma, g_lower, g_upper) > -margin:
        normal = scaled(of_gamma, side_of_range(gamma, g_lower, g_upper))
        if leaves_limit(rows, at, q, normal, margin):
            put_vector(normals, at_normals + 3 * count, normal)
            count += 1
    return count, held


def side_of_range(angle, lower, upper):
    """1 in the upper half of a range and beyond it, else -1."""
    return 1.0 if nearest_turn_of(angle - 0.5 * (lower + upper), 2.0 * pi) >= 0.0 else -1.0
