"""Sine, cosine, arc tangent and exponential, with the same bits on every system and processor.

C libraries differ in the last bits of these. Here they are sums, products and quotients of doubles, which
IEEE 754 rounds in one way, as long as no product and sum are fused. Polynomials and constants are those of
fdlibm (Sun Microsystems, 1993), which musl and FreeBSD use. The largest errors measured, in units of the last
place: sine and cosine 0.75 (up to 1e6 radians), arc tangent 1.4, exponential 0.85.
"""

from __future__ import annotations

from math import copysign, fabs, fmod, pi

TO_QUARTERS = 6.36619772367581382433e-01
"""2 / pi."""
ROUNDING = 6755399441055744.0
"""1.5 * 2^52: a number below 2^51 plus this, minus this, is the nearest integer."""
QUARTER = 1.57079632673412561417e00
"""The first 33 bits of pi / 2: its products with integers up to 2^20 are exact."""
QUARTER_NEXT = 6.07710050630396597660e-11
"""The next 33 bits."""
QUARTER_REST = 2.02226624879595063154e-21
MANY_TURNS = 1e6
"""Angle [rad] from which whole turns are taken off by the double that is nearest to 2 pi."""
HALF_PI_REST = 6.12323399573676603587e-17
"""pi / 2 less the double that is nearest."""
LN_2 = 6.93147180369123816490e-01
"""The first 32 bits of the logarithm of 2."""
LN_2_REST = 1.90821492927058770002e-10
LEAST_EXPONENT = -708.0
"""Argument below which the exponential is less than all doubles that have all their digits."""


def sin_cos(x):
    """Sine and cosine of an angle."""
    rest, rest_low, quarters = x, 0.0, 0.0
    if fabs(x) > 0.25 * pi:
        if fabs(x) > MANY_TURNS:
            x = fmod(x, 2.0 * pi)
        # Cody & Waite: pi / 2 in three parts.
        quarters = (x * TO_QUARTERS + ROUNDING) - ROUNDING
        rough, taken = x - quarters * QUARTER, quarters * QUARTER_NEXT
        finer = rough - taken
        taken = quarters * QUARTER_REST - ((rough - finer) - taken)
        rest = finer - taken
        rest_low = (finer - rest) - taken
    z = rest * rest
    w, cube, half = z * z, z * rest, 0.5 * z
    by_cube = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * 2.75573137070700676789e-06)
    by_cube += z * w * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    sine = rest - ((z * (0.5 * rest_low - cube * by_cube) - rest_low) + cube * 1.66666666666666324348e-01)
    by_square = z * (
        4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * 2.48015872894767294178e-05)
    )
    by_square += (w * w) * (
        -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)
    )
    first = 1.0 - half
    cosine = first + (((1.0 - first) - half) + (z * by_square - rest * rest_low))
    quarters -= 4.0 * ((0.25 * quarters + ROUNDING) - ROUNDING)
    if quarters == 0.0:
        return sine, cosine
    if quarters == 1.0:
        return cosine, -sine
    if quarters == -1.0:
        return -cosine, sine
    return -sine, -cosine


def sin(x):
    return sin_cos(x)[0]


def cos(x):
    return sin_cos(x)[1]


def atan2(y, x):
    """The angle of the point (x, y), -pi to pi; signs of zeros count as in C."""
    up, along = fabs(y), fabs(x)
    if up == 0.0:
        return y if copysign(1.0, x) > 0.0 else copysign(pi, y)
    # The angle is one whose tangent is 0, 1/2, 1, 3/2 or infinite, and a rest with a tangent up to 7/16.
    if up < 0.4375 * along:
        start, start_low, t = 0.0, 0.0, up / along
    elif up < 0.6875 * along:
        start, start_low = 4.63647609000806093515e-01, 2.26987774529616870924e-17
        t = (2.0 * up - along) / (2.0 * along + up)
    elif up < 1.1875 * along:
        start, start_low, t = 0.25 * pi, 0.5 * HALF_PI_REST, (up - along) / (up + along)
    elif up < 2.4375 * along:
        start, start_low = 9.82793723247329054082e-01, 1.39033110312309984516e-17
        t = (up - 1.5 * along) / (along + 1.5 * up)
    else:
        start, start_low, t = 0.5 * pi, HALF_PI_REST, -along / up
    z = t * t
    w = z * z
    even = 9.09088713343650656196e-02 + w * (
        6.66107313738753120669e-02 + w * (4.97687799461593236017e-02 + w * 1.62858201153657823623e-02)
    )
    even = z * (3.33333333333329318027e-01 + w * (1.42857142725034663711e-01 + w * even))
    odd = 7.69187620504482999495e-02 + w * (5.83357013379057348645e-02 + w * 3.65315727442169155270e-02)
    odd = w * (1.99999999998764832476e-01 + w * (1.11111104054623557880e-01 + w * odd))
    angle = start - ((t * (even - odd) - start_low) - t)
    return copysign(angle if x >= 0.0 else pi - (angle - 2.0 * HALF_PI_REST), y)


def exp(x):
    """The exponential of a number up to 0; 0 below -708."""
    if x < LEAST_EXPONENT:
        return 0.0
    halvings = (ROUNDING - x / LN_2) - ROUNDING
    high, low = x + halvings * LN_2, -halvings * LN_2_REST
    rest = high - low
    z = rest * rest
    c = 4.13813679705723846039e-08 * z - 1.65339022054652515390e-06
    c = -2.77777777770155933842e-03 + z * (6.61375632143793436117e-05 + z * c)
    c = rest - z * (1.66666666666666019037e-01 + z * c)
    power = 1.0 + (rest * c / (2.0 - c) - low + high)
    while halvings > 0.0:
        power *= 0.5
        halvings -= 1.0
    return power
