"""The nearest allowed rotation, on plain numbers: what `shapes.clamp` does, in double precision.

Each function takes the constants that a limit has worked out once and the components (w, x, y, z) of a
rotation in the joint's own frame, relative to rest. It returns None when the rotation is allowed, else the
components of the nearest allowed one, on the same side (dot product >= 0). The rotation need not have length
1; zero counts as identity.

Written in the axis n of a twist, q = swing(sigma) twist(tau) has the components (w, v.n) = cos(sigma/2)
(cos(tau/2), sin(tau/2)), and the part of v at right angles to n has length sin(sigma/2) and the direction of
the swing's axis turned by -tau/2 about n. No angle has to be computed to compare with a border.
"""

from math import atan2, copysign, cos, hypot, inf, pi, sin, sqrt

from ..maths.tolerances import ROUNDING

Components = tuple[float, float, float, float]


# The same as a distance between unit quaternions, which is half the angle between the rotations.
_SLACK = 0.5 * ROUNDING


def interval(lower: float, upper: float) -> tuple[float, float, float, float]:
    """The constants of a range of angles: cosine and sine of half its middle, and of half its half-width.

    Half angles, as quaternions have them. From a width of a full turn on everything is inside: (.., 0, 1).
    """
    middle, half_width = 0.5 * (lower + upper), 0.5 * (upper - lower)
    if half_width >= pi:
        return cos(0.5 * middle), sin(0.5 * middle), 0.0, 1.0
    return cos(0.5 * middle), sin(0.5 * middle), cos(0.5 * half_width), sin(0.5 * half_width)


def wrapped(angle: float, middle: float) -> float:
    """`angle` plus the whole turns that bring it within half a turn of `middle`."""
    return angle - 2.0 * pi * round((angle - middle) / (2.0 * pi))


def nearest_in(angle: float, lower: float, upper: float) -> float:
    """The angle in lower..upper that is nearest to `angle` going round the circle."""
    return min(max(wrapped(angle, 0.5 * (lower + upper)), lower), upper)


# The constants of a twist range with a round swing limit: the axis (3), `interval` (4), cosine and sine of
# half the radius (2), cosine and sine of half the twist that is taken when every twist is equally near (2).
ConeTwist = tuple[float, float, float, float, float, float, float, float, float, float, float]


def cone_twist_constants(
    axis: tuple[float, float, float], lower: float, upper: float, radius: float
) -> ConeTwist:
    """The constants of a twist of lower..upper about `axis` with a swing of up to `radius`."""
    rest = 0.5 * nearest_in(0.0, lower, upper)
    half = (cos(0.5 * radius), sin(0.5 * radius)) if radius < pi else (0.0, 1.0)
    return *axis, *interval(lower, upper), *half, cos(rest), sin(rest)


def _nearest_twist(
    w: float, p: float, cm: float, sm: float, ch: float, sh: float
) -> tuple[float, float, float]:
    """The half angle (cosine, sine) in the range nearest to the direction of (w, p), and its dot with (w, p).

    Of two borders that are equally near, a half turn from the middle, the upper one.
    """
    c, d = w * cm + p * sm, p * cm - w * sm
    if c < 0.0 or (c == 0.0 and d < 0.0):
        side, c, d = -1.0, -c, -d
    else:
        side = 1.0
    if abs(d) * ch <= c * sh:
        reach = sqrt(w * w + p * p)
        return w / reach, p / reach, reach
    border = copysign(sh, d)
    return side * (ch * cm - border * sm), side * (ch * sm + border * cm), c * ch + d * border


def nearest_in_cone_twist(constants: ConeTwist, w: float, x: float, y: float, z: float) -> Components | None:
    """The exactly nearest rotation with a twist inside a range and a swing up to a radius (zero: a hinge).

    For an allowed q' = (s' e, u' f), e and f unit vectors in the (w, n) plane and at right angles to n, the
    dot product is s' (w, p).e + u' g.f. A round limit takes every f, so f = g / |g|: the direction of g is
    kept, which turns the swing's axis by half of what the twist is turned. e is the nearest half angle in the
    twist range, and then tan(sigma'/2) = s'/u' = |g| / (w, p).e = tan(sigma/2) / cos(dtau/2), up to the
    radius.
    """
    nx, ny, nz, cm, sm, ch, sh, cr, sr, rest_e, rest_f = constants
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    swing_square = gx * gx + gy * gy + gz * gz
    twist_square = w * w + p * p
    square = swing_square + twist_square
    u, s = sqrt(swing_square), sqrt(twist_square)
    slack = _SLACK * sqrt(square)
    # Both sides are sines of half of an angle beyond the border: the distance in rotation space.
    if u * cr - s * sr < slack and abs(p * cm - w * sm) * ch - abs(w * cm + p * sm) * sh < slack:
        return None
    if square == 0.0:
        return nearest_in_cone_twist(constants, 1.0, 0.0, 0.0, 0.0) or (1.0, 0.0, 0.0, 0.0)
    if s <= slack:
        # A half-turn swing: every twist is equally near, and so are both directions of the swing's axis.
        side = 1.0 if (gx, gy, gz) > (0.0, 0.0, 0.0) else -1.0
        e, f, reach = side * rest_e, side * rest_f, 0.0
    else:
        e, f, reach = _nearest_twist(w, p, cm, sm, ch, sh)
    if u * cr > reach * sr:
        s, u = cr, sr / u
    else:
        length = sqrt(reach * reach + swing_square)
        # Zero: a pure twist exactly a half turn from the only twist there is.
        s, u = (reach / length, 1.0 / length) if length > 0.0 else (1.0, 0.0)
    p = s * f
    return s * e, gx * u + p * nx, gy * u + p * ny, gz * u + p * nz


# The constants of an ellipse: the round ones, the two swing axes (6), the four sides (4, none negative).
EllipseTwist = tuple[
    ConeTwist, tuple[float, float, float, float, float, float], tuple[float, float, float, float]
]


def nearest_in_ellipse_twist(
    constants: EllipseTwist, w: float, x: float, y: float, z: float
) -> Components | None:
    """The rotation with the nearest twist, and then the nearest swing in the plane of its rotation vector.

    The twist is clamped as in `nearest_in_cone_twist` (equal sides: a cone), then the swing's rotation vector
    goes to the nearest point of the four-sided ellipse, going round the other way past a half turn where that
    is nearer. That is nearest in the plane, not along the sphere: the result is at most about 2 degrees
    farther away than the nearest for swings up to 60 degrees, and 10 degrees for swings up to 100.
    """
    (nx, ny, nz, cm, sm, ch, sh, _, _, rest_e, rest_f), (ax, ay, az, bx, by, bz), sides = constants
    p = x * nx + y * ny + z * nz
    g, k = x * ax + y * ay + z * az, x * bx + y * by + z * bz
    u, s = hypot(g, k), hypot(w, p)
    slack = _SLACK * hypot(u, s)
    if slack == 0.0:
        return nearest_in_ellipse_twist(constants, 1.0, 0.0, 0.0, 0.0) or (1.0, 0.0, 0.0, 0.0)
    twist_inside = abs(p * cm - w * sm) * ch - abs(w * cm + p * sm) * sh < slack
    if s > slack:
        e, f, reach = _nearest_twist(w, p, cm, sm, ch, sh)
        twists = [(e, f, reach), (-e, -f, -reach)]
    else:
        # A half-turn swing: every twist and either direction of the swing's axis are equally near. What (w,
        # p) still says comes first, so that a rotation on the rim stays; then the twist nearest to rest.
        e, f = (rest_e, rest_f) if (g, k) > (0.0, 0.0) else (-rest_e, -rest_f)
        twists = [(e, f, 0.0), (-e, -f, 0.0)]
        if s > 0.0:
            e, f, reach = _nearest_twist(w, p, cm, sm, ch, sh)
            twists = [(e, f, reach), (-e, -f, -reach), *twists]
    best, best_distance = (1.0, 0.0, 0.0, 0.0), inf
    for e, f, reach in twists:
        # The swing's rotation vector: turned by half the twist about n, for which n x a = -b, n x b = a.
        # With reach < 0 it is the one longer than pi that goes round the other way.
        angle = 2.0 * atan2(u, reach)
        angle_per_sine = angle / u if u > 0.0 else 2.0
        on_a, on_b = angle_per_sine * (g * e + k * f), angle_per_sine * (k * e - g * f)
        to_a, to_b = nearest_on_ellipse(on_a, on_b, *sides)
        distance = hypot(on_a - to_a, on_b - to_b)
        if distance < best_distance:
            best, best_distance = (e, f, to_a, to_b), distance
        # How far the axis n itself has to move: an arc `across` the way from rest is as long as on the sphere
        # of its directions. Near the half turn that is far less than in the plane, because the twist makes up
        # for it there. No way across leads inside where the angle is wider than all sides.
        radial = (on_a - to_a) * on_a + (on_b - to_b) * on_b
        across = (on_a - to_a) * on_b - (on_b - to_b) * on_a
        sine = abs(sin(angle))
        arc = hypot(radial * sine, across * angle)
        is_close = angle <= max(sides) + ROUNDING and distance * distance * angle * sine <= ROUNDING * arc
        if twist_inside and is_close:
            return None
        if distance <= pi - angle:
            break  # the other way round starts 2 pi - angle from rest, and no side is more than pi from rest
    e, f, on_a, on_b = best
    found = swing_twist_components(constants[0][:3], constants[1], on_a, on_b, e, f)
    dot = w * found[0] + x * found[1] + y * found[2] + z * found[3]
    return found if dot >= 0.0 else (-found[0], -found[1], -found[2], -found[3])


def swing_twist_components(
    axis: tuple[float, float, float],
    swing_axes: tuple[float, float, float, float, float, float],
    on_a: float,
    on_b: float,
    e: float,
    f: float,
) -> Components:
    """The rotation with this swing (rotation vector on its two axes) and twist (cosine, sine of its half)."""
    nx, ny, nz = axis
    ax, ay, az, bx, by, bz = swing_axes
    angle = hypot(on_a, on_b)
    s = cos(0.5 * angle)
    sine_per_angle = sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    on_a, on_b = sine_per_angle * on_a, sine_per_angle * on_b
    g, k, p = on_a * e - on_b * f, on_b * e + on_a * f, s * f
    return s * e, p * nx + g * ax + k * bx, p * ny + g * ay + k * by, p * nz + g * az + k * bz


def nearest_on_ellipse(
    a: float, b: float, a_lower: float, a_upper: float, b_lower: float, b_upper: float
) -> tuple[float, float]:
    """The point nearest to (a, b) in the shape of four quarter ellipses with these half axes (none negative).

    The shape is convex and its border has no corner where the quarters meet, so the nearest point is in the
    same quarter. There it is e^2 y / (t + e^2) on each axis, with t the root of sum (e y / (t + e^2))^2 = 1
    (Eberly, "Distance from a point to an ellipse"). For t >= 0 the sum falls and is convex, so Newton's
    method from a point left of the root walks to it without overshooting. A half axis of zero is a segment.
    """
    semi_a, semi_b = a_upper if a >= 0.0 else a_lower, b_upper if b >= 0.0 else b_lower
    if semi_a == 0.0 or semi_b == 0.0:
        return min(max(a, -semi_a), semi_a), min(max(b, -semi_b), semi_b)
    square_a, square_b = semi_a * semi_a, semi_b * semi_b
    if a * a * square_b + b * b * square_a <= square_a * square_b:
        return a, b
    scaled_a, scaled_b = abs(a) * semi_a, abs(b) * semi_b
    t = max(scaled_a - square_a, scaled_b - square_b, 0.0)  # left of the root: the sum is 1 or more
    for _ in range(50):  # 5 are usual; the bound only makes the end certain
        part_a, part_b = scaled_a / (t + square_a), scaled_b / (t + square_b)
        excess = part_a * part_a + part_b * part_b - 1.0
        slope = part_a * part_a / (t + square_a) + part_b * part_b / (t + square_b)
        step = 0.5 * excess / slope
        if not step > 1e-15 * (t + square_a + square_b):
            break
        t += step
    return a * square_a / (t + square_a), b * square_b / (t + square_b)


# The constants of an Euler box: the indices of the axes in the order in which they turn (3) and the sign of
# that order (3 + 1), then the range of each of the three angles in that order, the last one times the sign.
Range = tuple[float, float]
Box = tuple[tuple[int, int, int, float], Range, Range, Range]


def _is_free(limits: Range) -> bool:
    return limits[1] - limits[0] >= 2.0 * pi


def _is_in(angle: float, limits: Range) -> bool:
    lower, upper = limits
    off = angle - 0.5 * (lower + upper)
    if not -pi <= off <= pi:
        off -= 2.0 * pi * round(off / (2.0 * pi))
    return abs(off) <= 0.5 * (upper - lower) + 1e-12


def _best_in(x: float, y: float, limits: Range) -> tuple[float, float]:
    """The angle in the range that maximises |x cos(angle / 2) + y sin(angle / 2)|, and that maximum."""
    angle = nearest_in(2.0 * atan2(y, x), *limits)
    return angle, abs(x * cos(0.5 * angle) + y * sin(0.5 * angle))


def nearest_in_box(constants: Box, w: float, x: float, y: float, z: float) -> Components | None:
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
    (i, j, k, sign), alphas, betas, gammas = constants
    norm = sqrt(w * w + x * x + y * y + z * z)
    if norm == 0.0:
        return nearest_in_box(constants, 1.0, 0.0, 0.0, 0.0) or (1.0, 0.0, 0.0, 0.0)
    v = (x, y, z)
    # q and -q are made the same, so that ties are decided alike for both.
    scale = sqrt(0.5) / (norm if (w, x, y, z) > (0.0, 0.0, 0.0, 0.0) else -norm)
    on_i, on_j, on_k = v[i], v[j], sign * v[k]
    a, b = scale * (w - on_j) + 0.0, scale * (on_i + on_k) + 0.0  # + 0.0: no zero below zero, atan2 minds it
    c, d = scale * (w + on_j) + 0.0, scale * (on_k - on_i) + 0.0
    amplitude_p, amplitude_m = hypot(a, b), hypot(c, d)
    half_sum, half_difference = atan2(b, a), atan2(d, c)
    alpha, gamma = half_sum - half_difference, half_sum + half_difference
    beta = 2.0 * atan2(amplitude_m, amplitude_p) - 0.5 * pi
    if _is_in(alpha, alphas) and _is_in(beta, betas) and _is_in(gamma, gammas):
        return None
    if _is_in(alpha + pi, alphas) and _is_in(pi - beta, betas) and _is_in(gamma + pi, gammas):
        return None

    halves = half_sum, half_difference
    nearest = _nearest_at_middle(constants, (amplitude_p, amplitude_m), halves)
    for fixes_first in (True, False):
        nearest = _nearest_at_end(constants, (a, b, c, d), fixes_first, nearest)
    alpha, beta, gamma = nearest[0]
    psi, half_sum, half_difference = 0.5 * beta + 0.25 * pi, 0.5 * (gamma + alpha), 0.5 * (gamma - alpha)
    to_a, to_b = cos(psi) * cos(half_sum), cos(psi) * sin(half_sum)
    to_c, to_d = sin(psi) * cos(half_difference), sin(psi) * sin(half_difference)
    if a * to_a + b * to_b + c * to_c + d * to_d < 0.0:
        to_a, to_b, to_c, to_d = -to_a, -to_b, -to_c, -to_d
    if (a - to_a) ** 2 + (b - to_b) ** 2 + (c - to_c) ** 2 + (d - to_d) ** 2 < _SLACK * _SLACK:
        return None
    scale = copysign(sqrt(0.5), scale)
    found = {i: to_b - to_d, j: to_c - to_a, k: sign * (to_b + to_d)}
    return scale * (to_a + to_c), scale * found[0], scale * found[1], scale * found[2]


# Angles alpha, beta and gamma, and the dot product of their rotation with the one to project.
_Nearest = tuple[tuple[float, float, float], float]


def _nearest_at_middle(
    constants: Box, amplitudes: tuple[float, float], halves: tuple[float, float]
) -> _Nearest:
    """The nearest point of the faces on which the middle angle is at an end of its range."""
    _, alphas, betas, gammas = constants
    (amplitude_p, amplitude_m), (half_sum, half_difference) = amplitudes, halves
    best, best_dot = (0.0, 0.0, 0.0), -1.0
    for beta in () if _is_free(betas) else betas:
        psi = 0.5 * beta + 0.25 * pi
        on_p, on_m = amplitude_p * cos(psi), amplitude_m * sin(psi)
        dot = abs(on_p) + abs(on_m)
        if dot > best_dot:
            turn = 0.0 if on_p * on_m >= 0.0 else pi
            alpha, gamma = half_sum - half_difference - turn, half_sum + half_difference + turn
            if _is_in(alpha, alphas) and _is_in(gamma, gammas):
                best, best_dot = (alpha, beta, gamma), dot
    return best, best_dot


def _nearest_at_end(
    constants: Box, numbers: tuple[float, float, float, float], fixes_first: bool, nearest: _Nearest
) -> _Nearest:
    """The nearest point of the faces on which the first or the last angle is at an end of its range, and of
    their edges; `nearest` if none of them is nearer."""
    (_, alphas, betas, gammas), (a, b, c, d), (best, best_dot) = constants, numbers, nearest
    shifted = (betas[0] + 0.5 * pi, betas[1] + 0.5 * pi)  # the range of 2 psi
    fixed, other = (alphas, gammas) if fixes_first else (gammas, alphas)
    of_d = -d if fixes_first else d  # M changes its sign when alpha and g change places, P does not
    for value in () if _is_free(fixed) else fixed:
        # The dot product is (cos psi, sin psi) m (cos h, sin h) with h half of the other angle.
        ch, sh = cos(0.5 * value), sin(0.5 * value)
        m00, m01 = ch * a + sh * b, ch * b - sh * a
        m10, m11 = ch * c + sh * of_d, sh * c - ch * of_d
        sum_x, sum_y, difference_x, difference_y = m00 - m11, m10 + m01, m00 + m11, m10 - m01
        dot = 0.5 * (hypot(sum_x, sum_y) + hypot(difference_x, difference_y))
        if dot <= best_dot:
            continue  # no point of this face, nor of its edges, is nearer
        sum_, difference = atan2(sum_y, sum_x), atan2(difference_y, difference_x)
        beta, angle = sum_ + difference - 0.5 * pi, sum_ - difference
        if _is_in(beta, betas) and _is_in(angle, other):
            best_dot = dot
            best = (value, beta, angle) if fixes_first else (angle, beta, value)
            continue
        for beta in () if _is_free(betas) else betas:
            cp, sp = cos(0.5 * beta + 0.25 * pi), sin(0.5 * beta + 0.25 * pi)
            angle, dot = _best_in(cp * m00 + sp * m10, cp * m01 + sp * m11, other)
            if dot > best_dot:
                best_dot = dot
                best = (value, beta, angle) if fixes_first else (angle, beta, value)
        for angle in () if not fixes_first or _is_free(other) else other:
            ch, sh = cos(0.5 * angle), sin(0.5 * angle)
            two_psi, dot = _best_in(m00 * ch + m01 * sh, m10 * ch + m11 * sh, shifted)
            if dot > best_dot:
                best_dot, best = dot, (value, two_psi - 0.5 * pi, angle)
    return best, best_dot


def rotate_inverse(frame: Components, x: float, y: float, z: float) -> tuple[float, float, float]:
    """The vector v = (x, y, z) turned by the inverse of `frame` = (w, f): v + 2 (w c + c x f), c = v x f."""
    w, fx, fy, fz = frame
    cx, cy, cz = y * fz - z * fy, z * fx - x * fz, x * fy - y * fx
    return (
        x + 2.0 * (w * cx + cy * fz - cz * fy),
        y + 2.0 * (w * cy + cz * fx - cx * fz),
        z + 2.0 * (w * cz + cx * fy - cy * fx),
    )
