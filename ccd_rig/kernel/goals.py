"""Residuals of goals, and their Jacobian rows.

`measure` computes the residual of each kind of goal, `slopes` its derivatives by the columns. Residuals have
no unit: lengths are in parts of the problem's reach, angles in radians times `LEVER`. All are multiplied by
the root of the goal's weight.

| kind | residual | target |
|---|---|---|
| position | from the target to a point of a joint | point |
| orientation | rotation vector from the target to a joint's frame | quaternion |
| direction | from the target to an axis of a joint, on two axes across the target | unit vector |
| pole | angle about the chain's line from the target to its bend, past its play, weighted | point |
| balance | from the target to the centre of mass, along an axis, across it, or whole | point |
| window | excess length of a part of a chain; inactive below 0 | longest extent |
"""

from __future__ import annotations

from math import fabs, pi, sqrt

from .elementary import atan2, sin_cos
from .geometry import (
    add,
    axis_rotation,
    conjugate,
    cross,
    dot,
    length,
    logarithm,
    multiply,
    perpendicular,
    put_vector,
    quaternion_at,
    rotate,
    scaled,
    subtract,
    vector_at,
)
from .kinematics import LARGEST, coupled_shift, forward
from .limits import LIMIT_WIDTH, hinge_axis
from .plain import Vector

POSITION = 0
ORIENTATION = 1
DIRECTION = 2
POLE = 3
BALANCE = 4
WINDOW = 5
ROWS = (3, 3, 2, 1, 3, 1)
"""Rows of the residual, by kind."""
LEVER = 0.3
"""Length, in parts of the reach, that counts as much as one radian."""
BEND_RANGE = 0.05
"""Mean offset of the heads between, in parts of the chain's length, from which only the actual bend counts.

At this bend, 11.5 degrees in the knee of two equal bones, the end's error of 0.1 % of the length (a usual
tolerance) is seen as a rotation of 1.1 degrees; a straight chain would see any rotation.
"""
IN_LINE = 0.2
"""Sine between a chain's line and its pole up to which the pole tells no side."""
OFF_LINE = 0.5
"""Sine from which the pole tells a side exactly."""
POLE_NOISE = 1e-5
"""Part of a chain's scale (or of a target's distance) below which its line (or side) is rounding."""
FIRST = 1e4
"""Weight of the square errors of goals of earlier ranks, beside 1 of a later one."""
WINDOW_SLACK = 0.1
"""Part of the position tolerance past which a reach window counts as stretched."""


# Residuals ------------------------------------------------------------------------------------------


def measure(p):
    """Place the joints, and store residuals, errors, their sum of squares and the largest error ratio.

    Goals of later ranks than `stage` do not count. Goals of earlier ranks, and reach windows, keep their
    errors: `row_offset` is the residual to keep.
    """
    forward(p)
    p.square, p.error_ratio = 0.0, 0.0
    for k in range(p.goals):
        measure_goal(p, k)
        if p.goal_rank[k] > p.stage or has_room(p, k):
            continue
        square = 0.0
        for row in range(p.first_row[k], p.first_row[k + 1]):
            off = p.residual[row] - p.row_offset[row]
            square += off * off
        p.square += square if is_current(p, k) else p.earlier_weight * square
        kind = p.goal_kind[k]
        if kind == WINDOW:
            p.error_ratio = max(p.error_ratio, p.distance[k] / (WINDOW_SLACK * p.position_tolerance))
        elif kind == POSITION or kind == BALANCE:
            p.error_ratio = max(p.error_ratio, sqrt(square) / (length_factor(p, k) * p.position_tolerance))
        else:
            p.error_ratio = max(p.error_ratio, sqrt(square) / (angle_factor(p, k) * p.angle_tolerance))


def set_weights(p):
    """Divide weights by the largest of their rank, and set the weight of earlier ranks by the least of these.

    Weights count among the goals of a rank alone: tolerances and `FIRST` are for weights of 1.
    """
    least = 1.0
    for rank in range(p.last_rank + 1):
        most = 0.0
        for k in range(p.goals):
            if p.goal_rank[k] == rank:
                most = max(most, p.goal_weight[k])
        for k in range(p.goals):
            if p.goal_rank[k] == rank:
                p.goal_weight[k] /= most
                if rank < p.last_rank:
                    least = min(least, p.goal_weight[k])
    p.earlier_weight = FIRST / least


def is_current(p, k):
    """Whether a goal is of the current rank, not of an earlier one."""
    return p.goal_rank[k] == p.stage or (p.is_equal and p.goal_rank[k] >= 0)


def has_room(p, k):
    """Whether a goal is inactive: a chain inside its window, a bend inside its play."""
    if p.goal_kind[k] == WINDOW:
        return p.distance[k] == 0.0
    return p.goal_kind[k] == POLE and fabs(p.turned[k]) < p.play[k]


def measure_goal(p, k):
    """Store a goal's residual and error: `distance` in the model's unit, or `miss` in radians."""
    kind, row, joint = p.goal_kind[k], p.first_row[k], p.goal_joint[k]
    by_length, by_angle = length_factor(p, k), angle_factor(p, k)
    target = vector_at(p.target, 4 * k)
    p.distance[k] = 0.0
    p.miss[k] = 0.0
    if kind == POSITION:
        off = subtract(goal_point(p, k), target)
        put_rows(p, row, scaled(off, by_length))
        p.distance[k] = length(off)
    elif kind == ORIENTATION:
        off = logarithm(
            multiply(quaternion_at(p.frame, 4 * joint), conjugate(quaternion_at(p.target, 4 * k)))
        )
        put_rows(p, row, scaled(off, by_angle))
        p.miss[k] = length(off)
    elif kind == DIRECTION:
        axis = rotate(quaternion_at(p.frame, 4 * joint), vector_at(p.goal_axis, 3 * k))
        first = perpendicular(target)
        angle = atan2(length(cross(target, axis)), dot(target, axis))
        off = scaled(tangent_towards(axis, target), by_angle * angle)
        p.residual[row] = dot(off, first)
        p.residual[row + 1] = dot(off, cross(target, first))
        p.miss[k] = angle
    elif kind == POLE:
        angle = pole_angle_of(p, k)
        p.residual[row] = by_angle * angle
        p.miss[k] = fabs(angle)
        p.bend_share[k], p.play[k], p.turned[k] = p.bend[6], p.bend[7], p.bend[8]
    elif kind == BALANCE:
        gather_mass(p)
        off = counted_part(p, k, subtract(scaled(total_moment(p), 1.0 / p.total_mass), target))
        put_rows(p, row, scaled(off, by_length))
        p.distance[k] = length(off)
    else:
        over = length(window_line(p, k)) - p.target[4 * k]
        p.residual[row] = by_length * over
        p.distance[k] = max(over, 0.0)


def length_factor(p, k):
    """The residual of a length of 1."""
    return sqrt(p.goal_weight[k]) / p.reach


def angle_factor(p, k):
    """The residual of a radian."""
    return sqrt(p.goal_weight[k]) * LEVER


def put_rows(p, row, v):
    p.residual[row] = v.x
    p.residual[row + 1] = v.y
    p.residual[row + 2] = v.z


def goal_point(p, k):
    """The effector of a goal, in model space."""
    joint = p.goal_joint[k]
    turned = rotate(quaternion_at(p.frame, 4 * joint), vector_at(p.goal_point, 3 * k))
    return add(vector_at(p.head, 3 * joint), turned)


def window_line(p, k):
    """From the head of a window's first joint to its end."""
    return subtract(goal_point(p, k), vector_at(p.head, 3 * p.goal_root[k]))


def tangent_towards(axis, target):
    """The unit tangent at `target` towards `axis`; on one line a fixed perpendicular."""
    across = subtract(axis, scaled(target, dot(axis, target)))
    sine = length(across)
    return scaled(across, 1.0 / sine) if sine > 1e-9 else cross(target, perpendicular(target))


# Poles ----------------------------------------------------------------------------------------------


def pole_angle_of(p, k):
    """The `pole_angle` of a goal in the present pose."""
    root = vector_at(p.head, 3 * p.goal_root[k])
    line = subtract(goal_point(p, k), root)
    axis = rotate(quaternion_at(p.frame, 4 * p.goal_axis_joint[k]), vector_at(p.goal_axis, 3 * k))
    side = subtract(vector_at(p.target, 4 * k), root)
    return pole_angle(line, heads_between(p, k), side, axis, p.goal_scale[k], p.goal_angle[k], p.bend)


def heads_between(p, k):
    """The sum of the heads of a pole's chain, relative to the first."""
    sum_, joint, heads = Vector(0.0, 0.0, 0.0), p.goal_joint[k], 0.0
    while joint != p.goal_root[k]:
        sum_ = add(sum_, vector_at(p.head, 3 * joint))
        heads += 1.0
        joint = p.parent[joint]
    return subtract(sum_, scaled(vector_at(p.head, 3 * joint), heads))


def pole_angle(line, between, side, axis, scale, turn, bend_and_side):
    """The signed angle about the chain's line from its pole to its bend, past the play and weighted.

    The weight is f(|bend| / t), see `chain_bend`: 1 for a clear bend. It fades where the two parts of the
    bend cancel, which is a bend against the axis, and where a straight chain has no axis.

    Args:
        line: from the root's head to the chain's end, model space, as all vectors here.
        between: the sum of the heads between, from the root's head.
        side: from the root's head to the pole target.
        axis: about which the chain bends where it is straight; 0 if unknown.
        scale: (heads between) x (length of the chain).
        turn: radians by which the bend is turned from the target.
        bend_and_side: (9) written: the bend (3), the unit vector to which it should point (3; inside the play
            that of the bend), the weight (0 to 1), the play, and the angle from the pole's side to the bend.
    """
    bend_and_side[6] = 0.0
    bend_and_side[7] = 0.0
    bend_and_side[8] = 0.0
    extent, full = length(line), BEND_RANGE * scale
    if full <= 0.0 or extent <= POLE_NOISE * scale:
        return 0.0
    way = scaled(line, 1.0 / extent)
    away = subtract(side, scaled(way, dot(way, side)))
    across = length(away)
    if across <= POLE_NOISE * length(side):
        return 0.0
    bend = chain_bend(line, between, axis, scale)
    away = scaled(away, 1.0 / across)
    if turn != 0.0:
        away = rotate(axis_rotation(way, turn), away)
    share, play = smooth_step(length(bend) / full), pole_play(across / length(side))
    angle = atan2(dot(way, cross(away, bend)), dot(away, bend))
    near = min(max(angle, -play), play)
    put_vector(bend_and_side, 0, bend)
    put_vector(bend_and_side, 3, rotate(axis_rotation(way, near), away) if near != 0.0 else away)
    bend_and_side[6] = share
    bend_and_side[7] = play
    bend_and_side[8] = angle
    return share * (angle - near)


def chain_bend(line, between, axis, scale):
    """The bend of a chain across its line; 0 where there is no line.

    With l the unit line, B the part of `between` across it, t = BEND_RANGE scale and f a smooth step:

        bend = B + (1 - f(|B| / t)) t (l x axis)

    So a clear bend (|B| >= t) is B, and a straight chain bends along l x axis.

    Args:
        line, between, axis, scale: as in `pole_angle`.
    """
    extent, full = length(line), BEND_RANGE * scale
    if full <= 0.0 or extent <= POLE_NOISE * scale:
        return Vector(0.0, 0.0, 0.0)
    way = scaled(line, 1.0 / extent)
    bend = subtract(between, scaled(way, dot(way, between)))
    clear = smooth_step(length(bend) / full)
    return add(bend, scaled(cross(way, axis), (1.0 - clear) * full))


def measure_bend(points, axis, scale, bend):
    """Write the bend of a chain, see `chain_bend`.

    Args:
        points: (3n) heads of the chain's joints, root first, and its end, model space.
        axis: (3) about which the chain bends where it is straight; 0 if unknown.
        scale: (heads between) x (length of the chain).
        bend: (3) written, model space.

    Raises:
        ValueError: arrays of other sizes, numbers that are not finite.
    """
    count = points.shape[0] // 3
    if count < 2 or points.shape[0] != 3 * count or axis.shape[0] != 3 or bend.shape[0] != 3:
        raise ValueError("kernel: a chain needs two points or more, its axis and bend three numbers each")
    known = 0.0 <= scale <= LARGEST
    for k in range(points.shape[0]):
        known = known and -LARGEST <= points[k] <= LARGEST
    for k in range(3):
        known = known and -LARGEST <= axis[k] <= LARGEST
    if not known:
        raise ValueError(f"kernel: the numbers of a chain must be finite, and at most {LARGEST:g}")
    root, between = vector_at(points, 0), Vector(0.0, 0.0, 0.0)
    for k in range(1, count - 1):
        between = add(between, subtract(vector_at(points, 3 * k), root))
    line = subtract(vector_at(points, 3 * (count - 1)), root)
    put_vector(bend, 0, chain_bend(line, between, vector_at(axis, 0), scale))


def pole_play(sine):
    """Radians by which a bend may be off its pole, by the sine between the chain's line and the pole.

    The pole's side turns about the line as fast as the line turns beside the pole, divided by this sine: a
    pole in line would turn a chain by half a turn at once. From OFF_LINE on there is no play. Up to IN_LINE
    the pole asks for nothing: reference and neighbouring frames say to which side the chain bends.

    Between them it falls evenly, which turns a chain least fast. A hand that passes a pole in line by 2
    degrees a frame turns its arm by up to 170 degrees at once without play, by 21 with this one. A play that
    ends further out turns it less, 13 where it ends at 0.7. But poles 30 to 44 degrees off the line are then
    missed by up to 72 degrees, and animators place poles there.
    """
    return pi * min(max((OFF_LINE - sine) / (OFF_LINE - IN_LINE), 0.0), 1.0)


def smooth_step(x):
    """3 x^2 - 2 x^3 between 0 and 1, constant outside."""
    x = min(max(x, 0.0), 1.0)
    return x * x * (3.0 - 2.0 * x)


# Mass -----------------------------------------------------------------------------------------------


def gather_mass(p):
    """Store moment and mass of each joint's subtree: (4J) moment, mass."""
    for n in range(p.evaluated_count):
        i = p.evaluated[n]
        at, mass = 4 * i, p.mass[i]
        middle = add(
            vector_at(p.head, 3 * i), rotate(quaternion_at(p.frame, 4 * i), vector_at(p.mass_point, 3 * i))
        )
        p.below[at] = mass * middle.x
        p.below[at + 1] = mass * middle.y
        p.below[at + 2] = mass * middle.z
        p.below[at + 3] = mass
    for n in range(p.evaluated_count - 1, -1, -1):
        i = p.evaluated[n]
        up = p.parent[i]
        if up >= 0:
            moment = rigid_moment(p, i)
            p.below[4 * up] += moment.x
            p.below[4 * up + 1] += moment.y
            p.below[4 * up + 2] += moment.z
            p.below[4 * up + 3] += p.below[4 * i + 3]


def rigid_moment(p, i):
    """The moment of a joint's subtree for rotations of its ancestors.

    The subtree of a joint that does not inherit rotation only translates with its head.
    """
    if p.inherits[i]:
        return vector_at(p.below, 4 * i)
    return scaled(vector_at(p.head, 3 * i), p.below[4 * i + 3])


def total_moment(p):
    """The sum of mass times position over all bones."""
    sum_ = Vector(0.0, 0.0, 0.0)
    for n in range(p.evaluated_count):
        i = p.evaluated[n]
        middle = add(
            vector_at(p.head, 3 * i), rotate(quaternion_at(p.frame, 4 * i), vector_at(p.mass_point, 3 * i))
        )
        sum_ = add(sum_, scaled(middle, p.mass[i]))
    return sum_


def counted_part(p, k, v):
    """The part of a vector that counts for a balance: across its axis if its scale is 1, else along it."""
    axis = vector_at(p.goal_axis, 3 * k)
    along = scaled(axis, dot(axis, v))
    return subtract(v, along) if p.goal_scale[k] == 1.0 else along


# Jacobian -------------------------------------------------------------------------------------------


def slopes(p):
    """Store the Jacobian of the residuals, and the columns' axes in model space."""
    for i in range(p.joints):
        if p.first_column[i + 1] > p.first_column[i]:
            place_columns(p, i)
    for k in range(p.goals):
        for n in range(p.first_span[k], p.first_span[k + 1]):
            for row in range(p.first_row[k], p.first_row[k + 1]):
                for column in range(p.span_start[n], p.span_end[n]):
                    p.slope[row * p.columns + column] = 0.0
        goal_slopes(p, k)
    if p.masked:
        for k in range(p.goals):
            for row in range(p.first_row[k], p.first_row[k + 1]):
                for n in range(p.first_span[k], p.first_span[k + 1]):
                    for column in range(p.span_start[n], p.span_end[n]):
                        at = row * p.columns + column
                        p.serving[at] = p.slope[at] * p.serves[k * p.joints + p.column_joint[column]]


def place_columns(p, i):
    """Store the axes of a joint's columns, scaled by a unit of the column in radians or model units."""
    column, base = p.first_column[i], quaternion_at(p.base, 4 * i)
    if p.width[i] == 1:
        axis = rotate(base, hinge_axis(p.limit, LIMIT_WIDTH * i))
        put_axis(p, column, scaled(axis, p.mobility[3 * i]))
    elif p.width[i] == 3:
        turned = multiply(base, quaternion_at(p.metric, 4 * i))
        put_axis(p, column, rotate(turned, Vector(p.mobility[3 * i], 0.0, 0.0)))
        put_axis(p, column + 1, rotate(turned, Vector(0.0, p.mobility[3 * i + 1], 0.0)))
        put_axis(p, column + 2, rotate(turned, Vector(0.0, 0.0, p.mobility[3 * i + 2])))
    base = quaternion_at(p.shift_base, 4 * i)
    for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
        scale = p.reach * p.mobility[3 * i]
        put_axis(p, column, scaled(rotate(base, vector_at(p.slide_axis, 3 * p.column_slide[column])), scale))


def put_axis(p, column, v):
    p.column_axis[3 * column] = v.x
    p.column_axis[3 * column + 1] = v.y
    p.column_axis[3 * column + 2] = v.z


def goal_slopes(p, k):
    """Add the Jacobian rows of a goal."""
    kind, row, joint = p.goal_kind[k], p.first_row[k], p.goal_joint[k]
    by_length, by_angle = length_factor(p, k), angle_factor(p, k)
    if kind == POSITION:
        point_rows(p, row, joint, goal_point(p, k), by_length)
    elif kind == ORIENTATION:
        orientation_rows(p, k, by_angle)
    elif kind == DIRECTION:
        direction_rows(p, k, by_angle)
    elif kind == POLE:
        pole_row(p, k, by_angle)
    elif kind == BALANCE:
        balance_rows(p, k, by_length)
    else:
        line = window_line(p, k)
        extent = length(line)
        if extent > 0.0:
            force = scaled(line, by_length / extent)
            point_row(p, row, joint, goal_point(p, k), force)
            point_row(p, row, p.goal_root[k], vector_at(p.head, 3 * p.goal_root[k]), scaled(force, -1.0))


def point_rows(p, row, joint, point, factor):
    """Add the derivative of a point on a joint, times a factor, to three rows."""
    x, y, z = row * p.columns, (row + 1) * p.columns, (row + 2) * p.columns
    i, lever = joint, point
    while i >= 0:
        first, slides = p.first_column[i], p.first_column[i] + p.width[i]
        if first < p.first_column[i + 1]:
            arm = subtract(lever, vector_at(p.head, 3 * i))
            for column in range(first, slides):
                move = cross(vector_at(p.column_axis, 3 * column), arm)
                p.slope[x + column] += factor * move.x
                p.slope[y + column] += factor * move.y
                p.slope[z + column] += factor * move.z
            for column in range(slides, p.first_column[i + 1]):
                p.slope[x + column] += factor * p.column_axis[3 * column]
                p.slope[y + column] += factor * p.column_axis[3 * column + 1]
                p.slope[z + column] += factor * p.column_axis[3 * column + 2]
        if p.couplings:
            coupled_rows(p, x, i, Vector(factor, 0.0, 0.0))
            coupled_rows(p, y, i, Vector(0.0, factor, 0.0))
            coupled_rows(p, z, i, Vector(0.0, 0.0, factor))
        if not p.inherits[i]:
            lever = vector_at(p.head, 3 * i)
        i = p.parent[i]


def joint_slopes(p, at, i, moment, force):
    """Add the derivative for what a joint carries to the row that begins at `at`.

    `force` acts on what it carries, with `moment` about its head.
    """
    slides = p.first_column[i] + p.width[i]
    for column in range(p.first_column[i], slides):
        p.slope[at + column] += dot(vector_at(p.column_axis, 3 * column), moment)
    for column in range(slides, p.first_column[i + 1]):
        p.slope[at + column] += dot(vector_at(p.column_axis, 3 * column), force)
    if p.couplings:
        coupled_rows(p, at, i, force)


def point_row(p, row, joint, point, force):
    """Add the derivative of a point on a joint along `force` to a row."""
    at, i, lever = row * p.columns, joint, point
    while i >= 0:
        joint_slopes(p, at, i, cross(subtract(lever, vector_at(p.head, 3 * i)), force), force)
        if not p.inherits[i]:
            lever = vector_at(p.head, 3 * i)
        i = p.parent[i]


def coupled_rows(p, at, i, force):
    """Add the derivative of a joint's coupled offsets along `force` to their drivers' columns."""
    for k in range(p.couplings):
        driver = p.coupled_driver[k]
        if p.coupled_joint[k] == i and p.width[driver] == 1:
            shift, rate = coupled_shift(p, k)
            axis = rotate(quaternion_at(p.shift_base, 4 * i), vector_at(p.coupled_axis, 3 * k))
            p.slope[at + p.first_column[driver]] += rate * p.mobility[3 * driver] * dot(axis, force)


def turn_row(p, row, joint, moment):
    """Add the derivative of a joint's rotation about `moment` to a row."""
    at, i = row * p.columns, joint
    while i >= 0:
        for column in range(p.first_column[i], p.first_column[i] + p.width[i]):
            p.slope[at + column] += dot(vector_at(p.column_axis, 3 * column), moment)
        if not p.inherits[i]:
            return
        i = p.parent[i]


def orientation_rows(p, k, factor):
    """Add rows of an orientation, by the inverse of SO(3)'s left Jacobian: 1 - [e] / 2 + c [e]^2."""
    row, joint = p.first_row[k], p.goal_joint[k]
    e = scaled(vector_at(p.residual, row), 1.0 / factor)
    square = dot(e, e)
    c = jacobian_factor(square)
    d = 1.0 - c * square
    turn_row(
        p,
        row,
        joint,
        scaled(Vector(d + c * e.x * e.x, c * e.x * e.y + 0.5 * e.z, c * e.x * e.z - 0.5 * e.y), factor),
    )
    turn_row(
        p,
        row + 1,
        joint,
        scaled(Vector(c * e.y * e.x - 0.5 * e.z, d + c * e.y * e.y, c * e.y * e.z + 0.5 * e.x), factor),
    )
    turn_row(
        p,
        row + 2,
        joint,
        scaled(Vector(c * e.z * e.x + 0.5 * e.y, c * e.z * e.y - 0.5 * e.x, d + c * e.z * e.z), factor),
    )


def jacobian_factor(square):
    """c = (1 - (a/2) cot(a/2)) / a^2 of a rotation vector's length a; below 2e-3 radians 1/12 to rounding."""
    half = max(0.5 * sqrt(square), 1e-3)
    sine, cosine = sin_cos(half)
    return 0.25 * (1.0 / (half * half) - cosine / (half * sine))


def direction_rows(p, k, factor):
    """Add rows of a direction.

    A turn w changes the angle by w.side, and the azimuth about the target by w.(axis x side) / sine.
    """
    row, joint, target = p.first_row[k], p.goal_joint[k], vector_at(p.target, 4 * k)
    axis = rotate(quaternion_at(p.frame, 4 * joint), vector_at(p.goal_axis, 3 * k))
    way = tangent_towards(axis, target)
    side = cross(target, way)
    sine, cosine = length(cross(target, axis)), dot(target, axis)
    ratio = 1.0 if cosine > 0.0 else 0.0
    if sine >= 1e-6:
        ratio = atan2(sine, cosine) / sine
    around = scaled(cross(axis, side), ratio)
    first = perpendicular(target)
    second = cross(target, first)
    turn_row(
        p, row, joint, scaled(add(scaled(side, dot(way, first)), scaled(around, dot(side, first))), factor)
    )
    turn_row(
        p,
        row + 1,
        joint,
        scaled(add(scaled(side, dot(way, second)), scaled(around, dot(side, second))), factor),
    )


def pole_row(p, k, factor):
    """Add the row of a pole: `pole_angle` differentiated by its arguments, then by the joints.

    The steps are those of `pole_angle` in reverse (reverse-mode differentiation).
    """
    row, joint, root, scale = p.first_row[k], p.goal_joint[k], p.goal_root[k], p.goal_scale[k]
    start = vector_at(p.head, 3 * root)
    end = goal_point(p, k)
    line, between = subtract(end, start), heads_between(p, k)
    axis = rotate(quaternion_at(p.frame, 4 * p.goal_axis_joint[k]), vector_at(p.goal_axis, 3 * k))
    side = subtract(vector_at(p.target, 4 * k), start)
    angle = pole_angle(line, between, side, axis, scale, p.goal_angle[k], p.bend)
    bend, share = vector_at(p.bend, 0), p.bend[6]
    size = length(bend)
    if share <= 0.0 or size <= 0.0:
        return
    extent, full = length(line), BEND_RANGE * scale
    way = scaled(line, 1.0 / extent)
    # share = f(|bend| / full); inside the play the full angle is differentiated
    aside = reject(side, way)
    inside = fabs(p.bend[8]) < p.bend[7]
    off = p.bend[8] if inside else angle / share
    by_bend = scaled(cross(way, bend), factor * share / (size * size))
    by_bend = add(by_bend, scaled(bend, factor * off * share_slope(size, full) / size))
    by_aside = scaled(cross(way, aside), -factor * share / dot(aside, aside))
    if not inside and 0.0 < p.bend[7] < pi:
        # the sine in the play is |aside| / |side|, and goes with both
        by_sine = pi / (OFF_LINE - IN_LINE) * factor * share * (1.0 if p.bend[8] > 0.0 else -1.0)
        by_aside = add(by_aside, scaled(aside, by_sine / (length(aside) * length(side))))
        along = scaled(side, -by_sine * length(aside) / (length(side) * dot(side, side)))
    else:
        along = Vector(0.0, 0.0, 0.0)
    # bend = clear + fill (way x axis), clear = between across the line, fill = (1 - f(|clear| / full)) full
    clear, line_cross_axis = reject(between, way), cross(way, axis)
    fill = (1.0 - smooth_step(length(clear) / full)) * full
    by_clear = by_bend
    if length(clear) > 0.0:
        less = share_slope(length(clear), full) * full * dot(by_bend, line_cross_axis)
        by_clear = subtract(by_bend, scaled(clear, less / length(clear)))
    by_axis = scaled(cross(by_bend, way), fill)
    by_way = scaled(cross(axis, by_bend), fill)
    by_way = subtract(by_way, scaled(by_clear, dot(way, between)))
    by_way = subtract(by_way, scaled(by_aside, dot(way, side)))
    by_line = scaled(reject(by_way, way), 1.0 / extent)
    by_between, by_side = by_clear, add(by_aside, along)
    force_row(p, row, joint, root, end, by_line, by_between, scaled(by_side, -1.0))
    turn_row(p, row, p.goal_axis_joint[k], cross(axis, by_axis))


def force_row(p, row, joint, root, point, force, by_head, at_root):
    """Add the derivative of a chain to a row, by the forces on its points.

    Forces and their moment about each joint's head are carried from the chain's end to the roots.

    Args:
        joint, root: the chain's last and first joint.
        point, force: on the last joint.
        by_head: force on the head of each joint but the first.
        at_root: the sum of all forces from the first joint on.
    """
    at, i, is_below = row * p.columns, joint, True
    moment = cross(subtract(point, vector_at(p.head, 3 * joint)), force)
    while i >= 0:
        if i == root:
            force, is_below = at_root, False
        elif is_below:
            force = add(force, by_head)
        joint_slopes(p, at, i, moment, force)
        # Without inherited rotation what is below only translates with the head.
        up, head = p.parent[i], vector_at(p.head, 3 * i)
        if not p.inherits[i]:
            moment = Vector(0.0, 0.0, 0.0)
        if up >= 0:
            moment = add(moment, cross(subtract(head, vector_at(p.head, 3 * up)), force))
        i = up


def reject(v, way):
    """The component of a vector across a unit vector."""
    return subtract(v, scaled(way, dot(way, v)))


def share_slope(size, full):
    """The slope of smooth_step(size / full) by `size`."""
    x = min(max(size / full, 0.0), 1.0)
    return 6.0 * x * (1.0 - x) / full


def balance_rows(p, k, factor):
    """Add rows of the centre of mass, as far as it counts."""
    x = p.first_row[k] * p.columns
    y, z = x + p.columns, x + 2 * p.columns
    share = factor / p.total_mass
    for n in range(p.evaluated_count):
        i = p.evaluated[n]
        mass = p.below[4 * i + 3]
        if mass > 0.0 and p.first_column[i] < p.first_column[i + 1]:
            arm = subtract(vector_at(p.below, 4 * i), scaled(vector_at(p.head, 3 * i), mass))
            slides = p.first_column[i] + p.width[i]
            for column in range(p.first_column[i], p.first_column[i + 1]):
                axis = vector_at(p.column_axis, 3 * column)
                move = cross(axis, arm)
                if column >= slides:
                    move = scaled(axis, mass)
                move = counted_part(p, k, move)
                p.slope[x + column] += share * move.x
                p.slope[y + column] += share * move.y
                p.slope[z + column] += share * move.z
    for c in range(p.couplings):
        i, driver = p.coupled_joint[c], p.coupled_driver[c]
        if p.width[driver] == 1 and p.below[4 * i + 3] > 0.0:
            shift, rate = coupled_shift(p, c)
            axis = rotate(quaternion_at(p.shift_base, 4 * i), vector_at(p.coupled_axis, 3 * c))
            move = scaled(axis, share * rate * p.mobility[3 * driver] * p.below[4 * i + 3])
            move = counted_part(p, k, move)
            column = p.first_column[driver]
            p.slope[x + column] += move.x
            p.slope[y + column] += move.y
            p.slope[z + column] += move.z
