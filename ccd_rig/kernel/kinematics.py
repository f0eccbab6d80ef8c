"""Forward kinematics: heads and frames of joints, and the splines of coupled offsets.

Of joint i with parent p (R model rotation, t head, s its shift along slides and coupled offsets):

    t_i = t_p + R_p (offset_i + rest_i s_i)        R_i = R_p rest_i q_i

A joint that does not inherit rotation has R_i = rest_i q_i; a root has no R_p. A joint has three frames:

- *base*: the frame before its rotation, R_p rest_i, or rest_i without inheritance;
- *frame*: R_i;
- *shift base*: the frame of its translations, R_p rest_i, inherited or not.
"""

from __future__ import annotations

from array import array

from .geometry import (
    add,
    multiply,
    put_quaternion,
    put_vector,
    quaternion_at,
    rotate,
    scaled,
    unit,
    vector_at,
)
from .plain import Quaternion, Vector, nogil

LARGEST = 1e60
"""Largest number: squares of products stay finite."""
KNOT = 3
"""Numbers of a knot of a spline: angle [rad], shift, slope [1/rad]."""


def zeros(count):
    return array("d", bytes(8 * max(count, 1)))


def forward(p):
    """Place the joints on which goals depend, from the first that has moved on."""
    while p.placed < p.evaluated_count:
        place(p, p.evaluated[p.placed])
        p.placed += 1


def place(p, i):
    """Place a joint whose parent is placed."""
    up = p.parent[i]
    rest = quaternion_at(p.rest, 4 * i)
    turn = quaternion_at(p.rotation, 4 * i)
    local = vector_at(p.offset, 3 * i)
    shift = vector_at(p.translation, 3 * i)
    if p.couplings:
        for k in range(p.couplings):
            if p.coupled_joint[k] == i:
                along, rate = coupled_shift(p, k)
                shift = add(shift, scaled(vector_at(p.coupled_axis, 3 * k), along))
    place_below(p.head, p.frame, p.base, i, up, p.inherits[i], local, rest, shift, turn)
    base = quaternion_at(p.base, 4 * i)
    if up >= 0 and not p.inherits[i]:
        base = multiply(quaternion_at(p.frame, 4 * up), rest)
    put_quaternion(p.shift_base, 4 * i, base)


def place_below(heads, frames, bases, i, up, inherits, offset, rest, shift, turn):
    """Place joint i below joint `up`, or none (-1): its head, its frame, and its frame before it turns.

    With R_p, t_p of the joint above: t = t_p + R_p (offset + rest shift), base = R_p rest (rest alone where
    rotation is not inherited), R = base turn.
    """
    local = offset
    if shift.x != 0.0 or shift.y != 0.0 or shift.z != 0.0:
        local = add(local, rotate(rest, shift))
    base = rest
    if up >= 0:
        above = quaternion_at(frames, 4 * up)
        local = add(vector_at(heads, 3 * up), rotate(above, local))
        if inherits:
            base = multiply(above, rest)
    put_vector(heads, 3 * i, local)
    put_quaternion(bases, 4 * i, base)
    put_quaternion(frames, 4 * i, unit(multiply(base, turn)))


def place_joints(parent, inherits, offsets, rests, rotations, translations, heads, frames):
    """Place the J joints of a skeleton in F poses.

    Args:
        parent: (J) numbers, each less than the joint's own; -1 for a root.
        inherits: (J) 0 or 1.
        offsets, translations: (F or 1, 3J) heads seen from the parents' frames, and shifts in rest axes.
        rests: (F or 1, 4J) unit rotations.
        rotations: (F or 1, 4J) unit rotations relative to these.
        heads: (F, 3J) written, model space.
        frames: (F, 4J) written, unit rotations in model space.

    Raises:
        ValueError: arrays whose sizes do not fit, a parent that does not come first, a number that is not
            finite.
    """
    joints, size = parent.shape[0], heads.shape[0]
    if inherits.shape[0] != joints or heads.shape[1] != 3 * joints:
        raise ValueError("kernel: the arrays do not fit the joints")
    if frames.shape[0] != size or frames.shape[1] != 4 * joints:
        raise ValueError("kernel: the arrays do not fit the joints")
    check_rows(offsets, size, 3 * joints)
    check_rows(translations, size, 3 * joints)
    check_rows(rests, size, 4 * joints)
    check_rows(rotations, size, 4 * joints)
    for i in range(joints):
        if not -1 <= parent[i] < i:
            raise ValueError("kernel: parents must come before their children")
    head, frame, base = zeros(3 * joints), zeros(4 * joints), zeros(4 * joints)
    with nogil:
        for k in range(size):
            a = k if offsets.shape[0] > 1 else 0
            b = k if rests.shape[0] > 1 else 0
            c = k if rotations.shape[0] > 1 else 0
            d = k if translations.shape[0] > 1 else 0
            for i in range(joints):
                place_below(
                    head,
                    frame,
                    base,
                    i,
                    parent[i],
                    inherits[i] != 0,
                    Vector(offsets[a, 3 * i], offsets[a, 3 * i + 1], offsets[a, 3 * i + 2]),
                    Quaternion(
                        rests[b, 4 * i], rests[b, 4 * i + 1], rests[b, 4 * i + 2], rests[b, 4 * i + 3]
                    ),
                    Vector(translations[d, 3 * i], translations[d, 3 * i + 1], translations[d, 3 * i + 2]),
                    Quaternion(
                        rotations[c, 4 * i],
                        rotations[c, 4 * i + 1],
                        rotations[c, 4 * i + 2],
                        rotations[c, 4 * i + 3],
                    ),
                )
            for n in range(3 * joints):
                heads[k, n] = head[n]
            for n in range(4 * joints):
                frames[k, n] = frame[n]


def check_rows(values, rows, columns):
    """Raise ValueError unless an array has so many columns, so many rows or one, and finite numbers."""
    if (values.shape[0] != rows and values.shape[0] != 1) or values.shape[1] != columns:
        raise ValueError("kernel: the arrays do not fit the joints")
    for row in range(values.shape[0]):
        for column in range(columns):
            if not -LARGEST <= values[row, column] <= LARGEST:
                raise ValueError(f"kernel: joints must be finite, and at most {LARGEST:g}")


def coupled_shift(p, coupling):
    """The shift of a coupled offset at its driver's angle, and its slope there."""
    first, end = p.first_knot[coupling], p.first_knot[coupling + 1]
    return spline_at(p.knots, first, end, p.angle[p.coupled_driver[coupling]])


def spline_at(knots, first, end, angle):
    """Value and slope of a cubic Hermite spline; beyond its ends it continues along a straight line.

    Args:
        knots: (KNOT each) angle, value, slope; angles rise.
        first, end: range of the spline's knots, two at least.
        angle: in the unit of the knots.
    """
    at, last = first, end - 2
    inside = angle
    if inside < knots[KNOT * at]:
        inside = knots[KNOT * at]
    if inside > knots[KNOT * (last + 1)]:
        inside = knots[KNOT * (last + 1)]
    while at < last and inside >= knots[KNOT * (at + 1)]:
        at += 1
    before, after = KNOT * at, KNOT * (at + 1)
    extent = knots[after] - knots[before]
    t = (inside - knots[before]) / extent
    chord = (knots[after + 1] - knots[before + 1]) / extent
    leaving, arriving = knots[before + 2] - chord, knots[after + 2] - chord
    value = knots[before + 1] + extent * t * (chord + (1.0 - t) * ((1.0 - t) * leaving - t * arriving))
    rate = chord + (1.0 - t) * (1.0 - 3.0 * t) * leaving + t * (3.0 * t - 2.0) * arriving
    return value + rate * (angle - inside), rate


def evaluate_spline(knots, angles, values, slopes):
    """Evaluate a spline at B angles, see `spline_at`.

    Args:
        knots: (KNOT N) of two knots or more.
        angles: (B).
        values, slopes: (B) written.

    Raises:
        ValueError: arrays of other sizes, numbers that are not finite, angles of knots that do not rise.
    """
    count, size = knots.shape[0] // KNOT, angles.shape[0]
    if count < 2 or knots.shape[0] != KNOT * count or values.shape[0] != size or slopes.shape[0] != size:
        raise ValueError("kernel: a spline needs two knots or more, and as many results as angles")
    known = True
    for k in range(KNOT * count):
        known = known and -LARGEST <= knots[k] <= LARGEST
    for k in range(size):
        known = known and -LARGEST <= angles[k] <= LARGEST
    if not known:
        raise ValueError(f"kernel: the numbers of a spline must be finite, and at most {LARGEST:g}")
    for k in range(count - 1):
        if not knots[KNOT * k + KNOT] > knots[KNOT * k]:
            raise ValueError("kernel: the angles of knots must rise")
    for k in range(size):
        value, slope = spline_at(knots, 0, count, angles[k])
        values[k], slopes[k] = value, slope
