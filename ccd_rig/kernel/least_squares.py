"""Damped least squares of all joints at once, inside their limits: *reach* the goals, *slide* along them.

Unknowns are one number per column, in parts of its mobility: a hinge's angle, the three components of a
ball's rotation vector in its base, a slide's shift. Steps are those of Levenberg and Marquardt in dual form,
with K = J P B^T and P the projection onto the free directions of the limits (an active set):

    d = -g - P B^T (K + damping)^-1 (w r - J g)

- r is the residual, w the part of it to remove, J its Jacobian.
- B is the part of J whose joints may move for each goal, mostly all of it.
- g is the step back to the reference pose (Rosen 1960, "The gradient projection method for nonlinear
  programming").

w = 1 and g = 0 reaches, w = 0 slides.
"""

from __future__ import annotations

from math import fabs, pi, sqrt

from .geometry import (
    add,
    axis_rotation,
    conjugate,
    cross,
    direction_of,
    dot,
    exponential,
    length,
    logarithm,
    multiply,
    perpendicular,
    put_quaternion,
    put_vector,
    quaternion_at,
    rotate,
    rotate_back,
    scaled,
    subtract,
    unit,
    vector_at,
    wrapped,
)
from .goals import (
    BALANCE,
    FIRST,
    ORIENTATION,
    POLE,
    POSITION,
    WINDOW,
    angle_factor,
    goal_point,
    goal_slopes,
    has_room,
    is_current,
    jacobian_factor,
    measure,
    measure_goal,
    place_columns,
    slopes,
)
from .kinematics import forward
from .limits import LIMIT_WIDTH, hinge_axis, hinge_range, is_hinge, nearest_allowed, outward_normals
from .plain import Vector
from .skeleton import NORMALS, restore, save, set_angle

LONGEST_STEP = 1.0
"""Largest turn of a joint in a step of `reach`, radians."""
LONGEST_SLIDE = 0.5
"""Largest turn of a joint in a step of `slide`, radians: the return to the goals stays short."""
NEAR = 0.3
"""Error ratio at which `reach` ends: the rest is left to rounding."""
TIGHT = 1e-3
"""Error ratio at which `slide` ends.

Where the departure is flat, poses a little beside the goals would end degrees apart.
"""
BORDER = 1e-7
"""Radians from a limit's border within which the limit is active."""
ROUNDS = 6
"""Most rounds in which a step is solved again with more active limits."""
SLOW_STEPS = 8
"""Number of slow steps in a row that ends `reach`."""
SHARED_DAMPING = 0.1
"""Damping of a step shared by all joints, in parts of the square error (Sugihara 2011)."""
DEPENDENT = 1e-12
"""Part of a row's square below which the remainder beside other rows is rounding: a dependent row."""
VOID_PIVOT = 1e150
"""The pivot of a dependent row: quotients by it vanish."""
LEAST_DAMPING = 1e-12
"""Least damping of each step: dependent rows leave the system solvable."""
LEAST_SLIDE = 1e-3
"""Radians of a step towards the reference below which a pose counts as the nearest."""
RETURN_PART = 0.1
"""Largest return to the goals, in parts of a slide's step: the range of the linear model."""
FLAT = 1e-7
"""Least gain of a step, in parts of the departure."""
SETTLES = 200
"""Most of Newton's steps towards the least error."""
PULL = 1e-4
"""Part of the error that weighs the square departure beside the square error.

A joint that bends a straight chain is off the least error by this part of its departure.
"""
FIRST_PULL = 1.0
"""The same at first: the path of least sums starts at the reference, and depends evenly on the goals."""
NEAR_PULL = 1e-2
"""The same at first for a pose that is near already: the valley of least errors is wider than at the end."""
CLOSE = 0.03
"""Radians off the nearest pose below which the pull becomes smaller: 40 steps of chains in cones without."""
FIRST_RADIUS = 0.5
"""Length of the first trust region, in units of the columns."""
LEAST_RADIUS = 1e-9
"""Length of a trust region at which no step improves the pose."""
GOOD = 0.75
"""Part of the expected gain from which the trust region grows."""
POOR = 0.25
"""Part of it below which the trust region shrinks."""
ROUNDING = 1e-14
"""Part of the square below which an expected gain is rounding: steps are then taken as they are."""
BLIND = 4
"""Most such steps in a row."""
SHORTEST = 0.75
"""Part of the radius which a step that is not free is at least long."""
LONGEST = 1.25
"""Part which it is at most long."""
SHIFTS = 20
"""Most shifts of the Hessian that are tried for a step."""
NARROW = 1e-3
"""Part of the largest shift within which the right one is known."""
DIFFERENCE = 1e-6
"""Length of the steps by which second derivatives are measured."""
PRESSED = 1e-5
"""Radians by which a step passes a border on which a joint presses."""
PASSED = 1e-5
"""Radians by which a step may pass a border."""
BORDER_STEP = 1e-3
"""Radians of the steps by which the curvature of a limit's border is measured."""
BORDER_ROOM = 1e-4
"""Radians by which they start outside: those end outside too that follow a border which curves outwards."""
HEAVIER = 10.0
"""Factor by which weights of missed ranks rise in `settle`, up to `LAST_WEIGHT`."""
LAST_WEIGHT = 1e6
"""Largest such weight. At 1e4 a rank that just misses its goals can lose 4 % of its error to the next."""
MOST_WEIGHT = 1e9
"""Largest such weight: beside it a rounding error of 1e-16 counts as little as the pull."""
SHORT_FORCE = 1e-4
"""Part of the forces that is a step so short that it leaves no limit from inside."""
RETURNS = 4
"""Most steps back onto goals that are kept."""
ROUNDED = 1e-6
"""Radians of such a step after which the rest, a part of its square, is rounding."""
SETTLED = 1e-6
"""Radians off the reference pose by which a settled pose may be off the nearest one."""


# Evaluation -----------------------------------------------------------------------------------------


def evaluate(p):
    """Evaluate the pose: residuals, Jacobian, normals of active limits, and departure."""
    measure(p)
    slopes(p)
    update_normals(p)
    measure_departure(p)


def update_normals(p):
    """Store the outward normals of limits at the pose, in units of the columns."""
    for i in range(p.joints):
        p.normal_count[i] = 0
        if p.width[i] == 3:
            count = outward_normals(
                p.limit, LIMIT_WIDTH * i, quaternion_at(p.rotation, 4 * i), BORDER, p.normals, 3 * NORMALS * i
            )
            p.normal_pairs[i] = count // 8
            p.normal_count[i] = count % 8
            metric = quaternion_at(p.metric, 4 * i)
            for n in range(p.normal_count[i]):
                at = 3 * (NORMALS * i + n)
                normal = rotate_back(metric, vector_at(p.normals, at))
                normal = Vector(
                    normal.x * p.mobility[3 * i],
                    normal.y * p.mobility[3 * i + 1],
                    normal.z * p.mobility[3 * i + 2],
                )
                size = length(normal)
                put_vector(p.normals, at, scaled(normal, 1.0 / size if size > 0.0 else 0.0))


def measure_departure(p):
    """Store the sum of squares of the joints' departures from the reference, and half its gradient."""
    p.departure_square = 0.0
    if p.to_region:
        measure_region_departure(p)
        return
    if not p.has_reference:
        for column in range(p.columns):
            p.departure_gradient[column] = 0.0
        return
    for i in range(p.joints):
        column = p.first_column[i]
        if p.width[i] == 1:
            off = p.angle[i] - p.reference_angle[i]
            lower, upper = hinge_range(p.limit, LIMIT_WIDTH * i)
            if upper - lower >= 2.0 * pi:
                off = wrapped(off, 0.0)
            off = off / p.mobility[3 * i]
            p.departure_gradient[column] = off
            p.departure_square += off * off
        elif p.width[i] == 3:
            add_ball_departure(p, i, quaternion_at(p.reference_rotation, 4 * i))
        for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
            off = dot(
                vector_at(p.slide_axis, 3 * p.column_slide[column]),
                subtract(vector_at(p.translation, 3 * i), vector_at(p.reference_translation, 3 * i)),
            )
            p.departure_gradient[column] = off / (p.reach * p.mobility[3 * i])
            p.departure_square += p.departure_gradient[column] * p.departure_gradient[column]


def measure_region_departure(p):
    """Store the sum of squares of the joints' distances from their comfort regions, and half its gradient."""
    for column in range(p.columns):
        p.departure_gradient[column] = 0.0
    for i in range(p.joints):
        if p.width[i] == 1 and is_hinge(p.region, LIMIT_WIDTH * i):
            lower, upper = hinge_range(p.region, LIMIT_WIDTH * i)
            if upper - lower < 2.0 * pi:
                off = (p.angle[i] - min(max(p.angle[i], lower), upper)) / p.mobility[3 * i]
                p.departure_gradient[p.first_column[i]] = off
                p.departure_square += off * off
        elif p.width[i] == 3:
            q = quaternion_at(p.rotation, 4 * i)
            nearest = nearest_allowed(p.region, LIMIT_WIDTH * i, q)
            if nearest.w != q.w or nearest.x != q.x or nearest.y != q.y or nearest.z != q.z:
                add_ball_departure(p, i, nearest)


def add_ball_departure(p, i, reference):
    """Add the departure of a ball joint: u = S^-1 M^T v, with v the rotation vector from the reference.

    Half its gradient is S M^T J^-T M S^-1 u, with SO(3)'s J^-T = 1 + [v] / 2 + [v]^2 / 12 + ...
    """
    column = p.first_column[i]
    metric = quaternion_at(p.metric, 4 * i)
    turn = multiply(quaternion_at(p.rotation, 4 * i), conjugate(reference))
    v = logarithm(turn)
    x, y, z = p.mobility[3 * i], p.mobility[3 * i + 1], p.mobility[3 * i + 2]
    u = rotate_back(metric, v)
    u = Vector(u.x / x, u.y / y, u.z / z)
    p.departure_square += dot(u, u)
    if x == y and y == z:
        p.departure_gradient[column] = u.x
        p.departure_gradient[column + 1] = u.y
        p.departure_gradient[column + 2] = u.z
        return
    w = rotate(metric, Vector(u.x / x, u.y / y, u.z / z))
    once = cross(v, w)
    w = rotate_back(
        metric, add(w, add(scaled(once, 0.5), scaled(cross(v, once), jacobian_factor(dot(v, v)))))
    )
    p.departure_gradient[column] = x * w.x
    p.departure_gradient[column + 1] = y * w.y
    p.departure_gradient[column + 2] = z * w.z


# Steps ----------------------------------------------------------------------------------------------


def compute_step(p, back, damping):
    """Compute the step that removes the part `row_gain` of the residuals and `back` of the departure.

    Limits that the step would violate become active, and the step is computed again.
    """
    reset_active_set(p, back)
    for _ in range(ROUNDS + p.goals if p.has_windows or p.has_poles else ROUNDS):
        solve_step(p, damping)
        if not activate_limits(p):
            return


def reset_active_set(p, back):
    """Start with the limits active that have no room, and all other columns free."""
    for k in range(p.goals):
        is_counted = is_in_step(p, k) and not has_room(p, k)
        for row in range(p.first_row[k], p.first_row[k + 1]):
            p.row_is_active[row] = is_counted
    for row in range(p.rows):
        for column in range(p.columns):
            at = row * p.columns + column
            p.free_slope[free_slope_index(p, row, column)] = p.serving[at] if p.masked else p.slope[at]
    for column in range(p.columns):
        p.is_fixed[column] = 0
        p.fixed_step[column] = 0.0
        p.free_gradient[column] = back * p.gradient[column] if back != 0.0 else 0.0
    for i in range(p.joints):
        p.active_count[i] = 0
        for n in range(p.normal_count[i]):
            p.is_active[NORMALS * i + n] = 0
            if (p.normal_pairs[i] >> n) & 1:
                activate_normal(p, i, n)


def is_in_step(p, k):
    """Whether steps count a goal: up to the current rank, or the kept ones alone."""
    return p.goal_rank[k] <= p.stage and (is_kept(p, k) or not p.only_kept)


def free_slope_index(p, row, column):
    """Index of a row's slope in `free_slope`: rows are blocked in fours, with columns interleaved."""
    return (row - row % 4) * p.columns + 4 * column + row % 4


def activate_normal(p, i, n):
    """Make a normal of a joint's limit active: project it out of the free slopes."""
    p.is_active[NORMALS * i + n] = 1
    normal, basis = vector_at(p.normals, 3 * (NORMALS * i + n)), 9 * i
    for k in range(p.active_count[i]):
        other = vector_at(p.active_basis, basis + 3 * k)
        normal = subtract(normal, scaled(other, dot(normal, other)))
    size = length(normal)
    if size < 1e-6 or p.active_count[i] >= 3:
        return
    normal = scaled(normal, 1.0 / size)
    put_vector(p.active_basis, basis + 3 * p.active_count[i], normal)
    p.active_count[i] += 1
    column = p.first_column[i]
    for row in range(p.rows):
        remove_along(p.free_slope, free_slope_index(p, row, column), 4, normal)
    remove_along(p.free_gradient, column, 1, normal)


def remove_along(values, at, apart, normal):
    """Remove the component along a unit vector from three numbers with stride `apart`."""
    along = values[at] * normal.x + values[at + apart] * normal.y + values[at + 2 * apart] * normal.z
    values[at] -= along * normal.x
    values[at + apart] -= along * normal.y
    values[at + 2 * apart] -= along * normal.z


def fix_column(p, column, step):
    """Fix the step of a hinge or slide."""
    p.is_fixed[column] = 1
    p.fixed_step[column] = step
    p.free_gradient[column] = 0.0
    for row in range(p.rows):
        p.free_slope[free_slope_index(p, row, column)] = 0.0


def solve_step(p, damping):
    """Compute the step of the free columns, beside fixed steps."""
    rows, columns = p.rows, p.columns
    for a in range(rows):
        others = rows if p.masked else a + 1
        for b in range(others):
            p.system[a * rows + b] = 0.0
        if not p.row_is_active[a]:
            p.system[a * rows + a] = 1.0
            p.right[a] = 0.0
            continue
        for b in range(0, others, 4):  # four independent sums: a single one waits for itself
            one, two, three, four = 0.0, 0.0, 0.0, 0.0
            from_a, from_b = free_slope_index(p, a, 0), free_slope_index(p, b, 0)
            for column in range(columns):
                at = from_b + 4 * column
                slope = p.slope[a * columns + column] if p.masked else p.free_slope[from_a + 4 * column]
                one += slope * p.free_slope[at]
                two += slope * p.free_slope[at + 1]
                three += slope * p.free_slope[at + 2]
                four += slope * p.free_slope[at + 3]
            note_product(p, a, b, one)
            note_product(p, a, b + 1, two)
            note_product(p, a, b + 2, three)
            note_product(p, a, b + 3, four)
        p.system[a * rows + a] += damping * p.row_damping[a] + LEAST_DAMPING
        sum_ = p.row_gain[a] * (p.residual[a] - p.row_offset[a])
        for column in range(columns):
            sum_ += p.slope[a * columns + column] * (p.fixed_step[column] - p.free_gradient[column])
        p.right[a] = sum_
    if p.masked:
        solve_general(p)
    else:
        solve_symmetric(p)
    for column in range(columns):
        sum_ = p.fixed_step[column] - p.free_gradient[column]
        for a in range(rows):
            sum_ -= p.free_slope[free_slope_index(p, a, column)] * p.right[a]
        p.step[column] = sum_


def note_product(p, a, b, product):
    """Store the product of two active rows in the system."""
    if b < p.rows and p.row_is_active[b]:
        p.system[a * p.rows + b] = product


def solve_symmetric(p):
    """Solve by Cholesky's method; `right` becomes the solution.

    A row that depends on the rows before it, but for rounding, is dropped.
    """
    n = p.rows
    for i in range(n):
        least = DEPENDENT * p.system[i * n + i]
        for j in range(i + 1):
            sum_ = p.system[i * n + j]
            for k in range(j):
                sum_ -= p.system[i * n + k] * p.system[j * n + k]
            if i == j:
                p.system[i * n + i] = sqrt(sum_) if sum_ > least else VOID_PIVOT
            else:
                p.system[i * n + j] = sum_ / p.system[j * n + j]
    for i in range(n):
        sum_ = p.right[i]
        for k in range(i):
            sum_ -= p.system[i * n + k] * p.right[k]
        p.right[i] = sum_ / p.system[i * n + i]
    for i in range(n - 1, -1, -1):
        sum_ = p.right[i]
        for k in range(i + 1, n):
            sum_ -= p.system[k * n + i] * p.right[k]
        p.right[i] = sum_ / p.system[i * n + i]


def solve_general(p):
    """Solve by Gauss's method with row pivoting; `right` becomes the solution."""
    n = p.rows
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if fabs(p.system[i * n + j]) > fabs(p.system[best * n + j]):
                best = i
        if best != j:
            for k in range(n):
                value = p.system[j * n + k]
                p.system[j * n + k] = p.system[best * n + k]
                p.system[best * n + k] = value
            value = p.right[j]
            p.right[j] = p.right[best]
            p.right[best] = value
        pivot = p.system[j * n + j]
        if fabs(pivot) < 1e-14:
            pivot = 1e-14
            p.system[j * n + j] = pivot
        for i in range(j + 1, n):
            factor = p.system[i * n + j] / pivot
            if factor != 0.0:
                for k in range(j, n):
                    p.system[i * n + k] -= factor * p.system[j * n + k]
                p.right[i] -= factor * p.right[j]
    for i in range(n - 1, -1, -1):
        sum_ = p.right[i]
        for k in range(i + 1, n):
            sum_ -= p.system[i * n + k] * p.right[k]
        p.right[i] = sum_ / p.system[i * n + i]


def activate_limits(p):
    """Make the limits active that the step would violate; whether there are any."""
    more = activate_windows(p) if p.has_windows else False
    more = (p.has_poles and activate_poles(p)) or more
    for i in range(p.joints):
        if p.width[i] == 1:
            column = p.first_column[i]
            lower, upper = hinge_range(p.limit, LIMIT_WIDTH * i)
            if not p.is_fixed[column] and upper - lower < 2.0 * pi:
                more = stop_at_bound(p, column, p.angle[i], lower, upper, p.mobility[3 * i]) or more
        for n in range(p.normal_count[i]):
            if not p.is_active[NORMALS * i + n]:
                step = vector_at(p.step, p.first_column[i])
                if dot(step, vector_at(p.normals, 3 * (NORMALS * i + n))) > 1e-9:
                    activate_normal(p, i, n)
                    more = True
        for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
            if not p.is_fixed[column]:
                slide, scale = p.column_slide[column], p.reach * p.mobility[3 * i]
                place = dot(vector_at(p.slide_axis, 3 * slide), vector_at(p.translation, 3 * i))
                lower, upper = p.slide_range[2 * slide], p.slide_range[2 * slide + 1]
                more = stop_at_bound(p, column, place, lower, upper, scale) or more
    return more


def activate_windows(p):
    """Make reach windows active that the step would stretch past their end; whether there are any."""
    more = False
    for k in range(p.goals):
        row = p.first_row[k]
        if p.goal_kind[k] == WINDOW and not p.row_is_active[row]:
            over = p.residual[row]
            for column in range(p.columns):
                over += p.slope[row * p.columns + column] * p.step[column]
            if over > 1e-12:
                p.row_is_active[row] = 1
                more = True
    return more


def activate_poles(p):
    """Make poles active whose chains the step would bend out of their play; whether there are any."""
    more = False
    for k in range(p.goals):
        row = p.first_row[k]
        if p.goal_kind[k] == POLE and is_in_step(p, k) and not p.row_is_active[row]:
            by_angle = angle_factor(p, k) * p.bend_share[k]
            to, border = by_angle * p.turned[k], by_angle * p.play[k]
            for column in range(p.columns):
                to += p.slope[row * p.columns + column] * p.step[column]
            if fabs(to) > border + 1e-12:
                p.residual[row] = by_angle * p.turned[k] - (border if to > 0.0 else -border)
                p.row_gain[row] = 1.0
                p.row_is_active[row] = 1
                more = True
    return more


def stop_at_bound(p, column, value, lower, upper, scale):
    """Fix a column's step at the end of its range, if it would leave it; whether it would."""
    to = value + scale * p.step[column]
    if lower <= to <= upper:
        return False
    fix_column(p, column, ((upper if to > upper else lower) - value) / scale)
    return True


def longest_turn(p):
    """The largest rotation of a joint in the step, radians, or shift in parts of the reach."""
    longest = 0.0
    for i in range(p.joints):
        column = p.first_column[i]
        if p.width[i] == 1:
            longest = max(longest, fabs(p.step[column]) * p.mobility[3 * i])
        elif p.width[i] == 3:
            x = p.step[column] * p.mobility[3 * i]
            y = p.step[column + 1] * p.mobility[3 * i + 1]
            z = p.step[column + 2] * p.mobility[3 * i + 2]
            longest = max(longest, sqrt(x * x + y * y + z * z))
        for slide in range(column + p.width[i], p.first_column[i + 1]):
            longest = max(longest, fabs(p.step[slide]) * p.mobility[3 * i])
    return longest


def apply_step(p, part):
    """Apply a part of the step, and clamp joints to their limits."""
    for i in range(p.joints):
        column = p.first_column[i]
        if p.width[i] == 1:
            set_angle(p, i, p.angle[i] + part * p.mobility[3 * i] * p.step[column])
        elif p.width[i] == 3:
            turn = Vector(
                part * p.mobility[3 * i] * p.step[column],
                part * p.mobility[3 * i + 1] * p.step[column + 1],
                part * p.mobility[3 * i + 2] * p.step[column + 2],
            )
            turned = exponential(rotate(quaternion_at(p.metric, 4 * i), turn))
            turned = unit(multiply(turned, quaternion_at(p.rotation, 4 * i)))
            put_quaternion(p.rotation, 4 * i, nearest_allowed(p.limit, LIMIT_WIDTH * i, turned))
        for k in range(column + p.width[i], p.first_column[i + 1]):
            slide = p.column_slide[k]
            axis, shift = vector_at(p.slide_axis, 3 * slide), vector_at(p.translation, 3 * i)
            place = dot(axis, shift)
            to = place + part * p.reach * p.mobility[3 * i] * p.step[k]
            to = min(max(to, p.slide_range[2 * slide]), p.slide_range[2 * slide + 1])
            put_vector(p.translation, 3 * i, add(shift, scaled(axis, to - place)))
    p.steps += 1


def set_row_gains(p, part):
    """Set the part of the residuals to remove; goals of earlier ranks keep theirs."""
    for k in range(p.goals):
        is_first = is_current(p, k)
        for row in range(p.first_row[k], p.first_row[k + 1]):
            p.row_gain[row] = part if is_first else 1.0
            p.row_damping[row] = 1.0 if is_first else 1.0 / p.earlier_weight


# Reach and slide ------------------------------------------------------------------------------------


def reach(p, slow_ratio):
    """Meet the goals by damped least squares, without the reference; whether they are met.

    The pose is evaluated at the beginning and at the end. It ends with the try's steps, or after `SLOW_STEPS`
    steps in a row that leave more than `slow_ratio` of the square error.
    """
    set_row_gains(p, 1.0)
    damping, growth, slow = 1e-3, 5.0, 0
    evaluate(p)
    while True:
        if p.error_ratio <= NEAR:
            return True
        if p.steps >= p.last_step:
            p.ran_out = p.error_ratio > p.met_ratio
            break
        square = p.square
        save(p, 0)
        compute_step(p, 0.0, damping * square)
        longest = longest_turn(p)
        part = LONGEST_STEP / longest if longest > LONGEST_STEP else 1.0
        predicted = predicted_square(p, part)
        apply_step(p, part)
        evaluate(p)
        if p.square < square:
            # Ratio of actual to predicted reduction (More 1978): curvature needs damping.
            gain = (square - p.square) / max(square - predicted, 1e-30)
            if gain > 0.75:
                damping = max(0.3 * damping, 1e-6)
            elif gain < 0.25:
                damping *= 2.0
            growth = 5.0
            slow = slow + 1 if p.square > slow_ratio * square else 0
        else:
            restore(p, 0)
            evaluate(p)
            damping *= growth
            growth *= 2.0
            slow += 1
        if slow >= SLOW_STEPS:
            break
    return p.error_ratio <= p.met_ratio


def share_pass(p):
    """Make a damped step of all joints towards a position; returns the motion of the effector."""
    before = goal_point(p, 0)
    set_row_gains(p, 1.0)
    evaluate(p)
    compute_step(p, 0.0, SHARED_DAMPING * p.square)
    # Small turns of many joints would coil a long chain.
    total_turn = max(longest_turn(p), summed_turn(p))
    apply_step(p, LONGEST_STEP / total_turn if total_turn > LONGEST_STEP else 1.0)
    p.steps -= 1
    measure(p)
    return length(subtract(goal_point(p, 0), before))


def summed_turn(p):
    """The length of the sum of the step's rotation vectors, radians."""
    sum_ = Vector(0.0, 0.0, 0.0)
    for column in range(p.columns):
        if p.column_slide[column] < 0:
            sum_ = add(sum_, scaled(vector_at(p.column_axis, 3 * column), p.step[column]))
    return length(sum_)


def predicted_square(p, part):
    """The square error after a part of the step, by the linear model."""
    sum_ = 0.0
    for k in range(p.goals):
        is_first = is_current(p, k)
        for row in range(p.first_row[k], p.first_row[k + 1]):
            if p.row_is_active[row]:
                off = p.residual[row] - p.row_offset[row]
                for column in range(p.columns):
                    off += part * p.slope[row * p.columns + column] * p.step[column]
                sum_ += off * off if is_first else p.earlier_weight * off * off
    return sum_


def slide(p):
    """Move along the goals towards the reference, from a pose that meets them.

    Each step descends the departure's gradient in the goals' null space, and returns onto the goals. A step
    is accepted if the departure falls, extrapolated to the goals by the linear model, and shortened
    otherwise. The length of the next step follows from the curvature of the last one (Barzilai and Borwein
    1988).
    """
    part, turned, least = 1.0, 0.0, 0.0
    has_old, is_judged = False, True
    save(p, 0)
    while p.steps < p.last_step and p.departure_square > 0.0:
        beside = approach_goals(p, RETURN_PART * turned)
        if is_judged and beside < 0.0:
            break
        if not is_judged:
            if not 0.0 <= beside < least:
                restore(p, 1)
                evaluate(p)
                part, has_old, is_judged = 0.4 * part, False, True
                if 0.4 * turned < LEAST_SLIDE:
                    break
                continue
            if p.error_ratio <= p.met_ratio:
                save(p, 0)
            if least - beside < FLAT * least:
                break
            has_old = True
        least = beside
        set_row_gains(p, 0.0)
        for column in range(p.columns):
            p.gradient[column] = p.departure_gradient[column]
        compute_step(p, 1.0, 1e-10)
        longest = longest_turn(p)
        if not longest >= LEAST_SLIDE:
            break
        if has_old:
            part = curvature_part(p, part)
        part = min(part, LONGEST_SLIDE / longest)
        turned = part * longest
        for column in range(p.columns):
            p.old_gradient[column] = p.step[column]
            p.old_step[column] = part * p.step[column]
            p.step[column] = p.old_step[column] + p.return_step[column]
        save(p, 1)
        apply_step(p, 1.0)
        evaluate(p)
        is_judged = False
    return_to_goals(p)
    if p.error_ratio > p.met_ratio:
        restore(p, 0)
        evaluate(p)


def approach_goals(p, aside):
    """Approach the goals until the remaining return step turns joints by `aside` at most, and store it.

    Returns:
        The departure of the pose on the goals by the linear model; -1 where they stay too far.
    """
    set_row_gains(p, 1.0)
    for _ in range(4):
        compute_step(p, 0.0, LEAST_DAMPING)
        longest = longest_turn(p)
        if p.error_ratio <= p.met_ratio or longest <= aside:
            beside = p.departure_square
            for column in range(p.columns):
                p.return_step[column] = p.step[column]
                beside += 2.0 * p.departure_gradient[column] * p.step[column]
            return beside
        if longest > LONGEST_STEP:
            break
        apply_step(p, 1.0)
        evaluate(p)
    return -1.0


def return_to_goals(p):
    """Return onto the goals by undamped steps, from an evaluated pose."""
    set_row_gains(p, 1.0)
    for _ in range(4):
        if p.error_ratio <= TIGHT:
            return
        compute_step(p, 0.0, LEAST_DAMPING)
        if longest_turn(p) > LONGEST_STEP:
            return
        apply_step(p, 1.0)
        evaluate(p)


# Missed goals ---------------------------------------------------------------------------------------


def settle(p, part):
    """Move to the nearby least error of missed goals, and of equal errors to the nearest to the reference.

    Newton's steps inside a trust region minimise half of the square error, plus a part of the square
    departure that shrinks to `PULL`. Where a straight chain falls short of its target the Jacobian vanishes
    along the chain, and steps of least squares straighten it ever more slowly. The second derivatives do not
    vanish. Limits that the force presses against are active (Bertsekas 1982).

    From large parts to small ones the least of each sum is the start of the next: a path that begins at the
    reference and depends evenly on the goals. Second derivatives are exact, so that Newton's steps converge.

    Goals of earlier ranks that are met are constraints: multipliers of Lagrange are their forces, and each
    step returns onto them. Square errors of a missed rank count `HEAVIER` times those of the next, and ever
    more along the path.

    Args:
        part: of the error, which first weighs the square departure beside the square error.

    Returns:
        Whether the pose moved and forces nearly vanish, which `is_stationary` says. Not where no step
        improves the pose, and where second derivatives are unknown. Poses that miss an earlier rank count
        all the same: least squares would bend what is straight.
    """
    if missed_square(p) == 0.0 or not set_rank_weights(p, HEAVIER):
        return False
    if p.stage > 0:
        return_to_kept_goals(p)
    radius, force, has_moved, weight = FIRST_RADIUS, 0.0, False, HEAVIER
    blind, pull, is_new = 0, 0.0, True
    p.is_stationary = False
    for _ in range(SETTLES):
        missed = missed_square(p)
        if missed == 0.0 or p.steps >= p.last_step:
            return False
        if is_new:
            pull, is_new = part * sqrt(missed), False
        measure_forces(p, pull)
        value = settled_square(p, pull)
        reset_active_set(p, 0.0)
        activate_pressed_normals(p)
        measure_borders(p)
        measure_curvature(p, pull)
        for _ in range(p.columns):
            force = solve_trusted(p, radius)
            if not activate_limits(p) and not stop_at_borders(p):
                break
        if radius < LEAST_RADIUS:
            break
        is_still = force <= (SETTLED if p.has_reference else CLOSE) * pull or blind >= BLIND
        if is_still or force <= CLOSE * pull:
            is_last, is_new = part == PULL, part > PULL
            part = max(0.1 * part, PULL)
            if p.has_missed_earlier and HEAVIER * weight <= LAST_WEIGHT:
                if set_rank_weights(p, HEAVIER * weight):
                    weight, radius, blind = HEAVIER * weight, max(radius, FIRST_RADIUS), 0
                    continue
                set_rank_weights(p, weight)
            if is_last and is_still:
                p.is_stationary = True
                break
            if is_still:
                blind = 0
                continue
        size, gain = norm_of(p.step, p.columns), expected_gain(p)
        if size == 0.0:
            continue
        save(p, 0)
        press_on_borders(p)
        apply_step(p, 1.0)
        evaluate(p)
        if p.stage > 0:
            return_to_kept_goals(p)
        gained = 0.5 * (value - settled_square(p, pull))
        is_blind = fabs(gain) <= ROUNDING * value
        blind = blind + 1 if is_blind else 0
        if gained < GOOD * gain and not is_blind and correct_step(p, pull, 2.0 * gain / (size * size)):
            gained = 0.5 * (value - settled_square(p, pull))
        if gained > 0.0 or is_blind:
            has_moved = True
            if gained < POOR * gain and not is_blind:
                radius = 0.5 * size
            elif gained > GOOD * gain and size > SHORTEST * radius:
                radius = 2.0 * radius
        else:
            restore(p, 0)
            evaluate(p)
            radius = 0.25 * min(size, radius)
    p.is_stationary = p.is_stationary or force <= NEAR_PULL * sqrt(missed_square(p))
    return has_moved and (p.is_stationary or p.has_missed_earlier)


def expected_gain(p):
    """By how much the step lowers half of `settled_square`, by the quadratic model."""
    gain = 0.0
    for a in range(p.columns):
        bent = 0.0
        for b in range(p.columns):
            bent += p.hessian[a * p.columns + b] * p.step[b]
        gain += p.step[a] * (p.right_side[a] - 0.5 * bent)
    return gain


def correct_step(p, pull, curvature):
    """Go back into the valley of the error, from the end of a step along it; whether that is possible.

    Goals that are nearly met, and earlier ranks, make a narrow curved valley, which straight steps leave.
    Second-order corrections follow it (Conn, Gould and Toint 2000, "Trust region methods", section 15.3): the
    step of Newton from there, damped so that it has nothing of directions with less curvature. The damping is
    the geometric mean of the largest curvature and of the one along the valley.
    """
    largest = 0.0
    for column in range(p.columns):
        largest = max(largest, p.reduced[column * p.columns + column])
        p.remainder[column] = -pull * p.departure_gradient[column]
    for k in range(p.goals):
        if p.goal_rank[k] <= p.stage and not has_room(p, k):
            for row in range(p.first_row[k], p.first_row[k + 1]):
                force = p.rank_weight[k] * p.residual[row] + (p.force[row] if is_kept(p, k) else 0.0)
                for column in range(p.columns):
                    p.remainder[column] -= force * p.slope[row * p.columns + column]
    project_free(p, p.remainder)
    if not factorise(p, sqrt(largest * max(curvature, 0.0))):
        return False
    solve_factorised(p, p.remainder, p.step)
    press_on_borders(p)
    apply_step(p, 1.0)
    p.steps -= 1
    evaluate(p)
    if p.stage > 0:
        return_to_kept_goals(p)
    return True


def set_rank_weights(p, factor):
    """Set the weights of ranks in `settle`; whether a sum of squares is all that keeps goals from being met.

    Reach windows do so too. Goals that not all joints serve have no sum.
    """
    if p.masked or p.has_windows:
        return False
    weight, p.has_missed_earlier = 1.0, False
    for rank in range(p.stage, -1, -1):
        is_missed = False
        for k in range(p.goals):
            if p.goal_rank[k] == rank:
                is_missed = is_missed or not p.is_met[k]
        if rank < p.stage and is_missed:
            weight *= p.earlier_weight / FIRST * factor
            p.has_missed_earlier = True
        for k in range(p.goals):
            if p.goal_rank[k] == rank:
                p.rank_weight[k] = p.earlier_weight if is_kept(p, k) else weight
    return weight <= MOST_WEIGHT


def is_kept(p, k):
    """Whether a goal is of an earlier rank, and was met there."""
    return 0 <= p.goal_rank[k] < p.stage and p.is_met[k]


def missed_square(p):
    """The sum of squares of all residuals but those of kept goals; 0 where all goals are met."""
    sum_, are_met = 0.0, True
    for k in range(p.goals):
        if p.goal_rank[k] <= p.stage and not has_room(p, k) and not is_kept(p, k):
            are_met = are_met and p.distance[k] <= p.position_tolerance and p.miss[k] <= p.angle_tolerance
            square = 0.0
            for row in range(p.first_row[k], p.first_row[k + 1]):
                square += p.residual[row] * p.residual[row]
            sum_ += square
    return 0.0 if are_met else sum_


def measure_forces(p, pull):
    """Store the force of each row, and the sum of all forces on the columns as `right_side`.

    Forces of kept goals are the multipliers that leave the least sum: those of a short `compute_step` along
    it.
    """
    has_kept = False
    for column in range(p.columns):
        p.right_side[column] = -pull * p.departure_gradient[column]
    for k in range(p.goals):
        if p.goal_rank[k] <= p.stage and not has_room(p, k):
            has_kept = has_kept or is_kept(p, k)
            if not is_kept(p, k):
                for row in range(p.first_row[k], p.first_row[k + 1]):
                    p.force[row] = p.rank_weight[k] * p.residual[row]
                    add_force(p, row)
    if has_kept:
        for row in range(p.rows):
            p.row_gain[row] = 0.0
            p.row_damping[row] = 0.0
        for column in range(p.columns):
            p.gradient[column] = -SHORT_FORCE * p.right_side[column]
        p.only_kept = True
        compute_step(p, 1.0, 0.0)
        p.only_kept = False
        for k in range(p.goals):
            if is_kept(p, k) and not has_room(p, k):
                for row in range(p.first_row[k], p.first_row[k + 1]):
                    p.force[row] = p.right[row] / SHORT_FORCE
                    add_force(p, row)


def add_force(p, row):
    """Add the force of a row to `right_side`."""
    for column in range(p.columns):
        p.right_side[column] -= p.force[row] * p.slope[row * p.columns + column]


def settled_square(p, pull):
    """What `settle` minimises: square errors and departure. Those of kept goals, which are met, are 0."""
    sum_ = 0.0
    for k in range(p.goals):
        if p.goal_rank[k] <= p.stage and not has_room(p, k):
            square = 0.0
            for row in range(p.first_row[k], p.first_row[k + 1]):
                square += p.residual[row] * p.residual[row]
            sum_ += p.rank_weight[k] * square
    return sum_ + pull * p.departure_square


def return_to_kept_goals(p):
    """Return onto kept goals by undamped steps, from an evaluated pose."""
    p.only_kept = True
    set_row_gains(p, 1.0)
    for _ in range(RETURNS):
        compute_step(p, 0.0, 0.0)
        longest = longest_turn(p)
        if longest == 0.0 or longest > LONGEST_STEP:
            break
        apply_step(p, 1.0)
        p.steps -= 1
        evaluate(p)
        if longest <= ROUNDED:
            break
    p.only_kept = False


def activate_pressed_normals(p):
    """Make the normals active that `right_side` presses against: all whose multipliers are positive.

    Multipliers are those of the normals that leave the least force. One that is negative lets go.
    """
    for i in range(p.joints):
        n, column = p.normal_count[i], p.first_column[i]
        if n == 0:
            continue
        force = vector_at(p.right_side, column)
        for k in range(n):
            if not p.is_active[NORMALS * i + k]:
                p.is_active[NORMALS * i + k] = 1 if dot(force, normal_at(p, i, k)) > 0.0 else 0
        for _ in range(n):
            worst, slack = -1, 0.0
            for k in range(n):
                if p.is_active[NORMALS * i + k] and not (p.normal_pairs[i] >> k) & 1:
                    multiplier = dot(force, across_others(p, i, k))
                    if multiplier < slack:
                        worst, slack = k, multiplier
            if worst < 0:
                break
            p.is_active[NORMALS * i + worst] = 0
        for k in range(n):
            if p.is_active[NORMALS * i + k] and not (p.normal_pairs[i] >> k) & 1:
                activate_normal(p, i, k)


def normal_at(p, i, k):
    """A normal of a joint's limit, in units of the columns."""
    return vector_at(p.normals, 3 * (NORMALS * i + k))


def across_others(p, i, k):
    """The component of a normal across the joint's other active normals."""
    across, first, count = normal_at(p, i, k), Vector(0.0, 0.0, 0.0), 0
    for other in range(p.normal_count[i]):
        if other == k or not p.is_active[NORMALS * i + other]:
            continue
        normal = normal_at(p, i, other)
        if count > 0:
            normal = subtract(normal, scaled(first, dot(normal, first)))
        if length(normal) < 1e-6:
            continue
        normal = direction_of(normal)
        if count == 0:
            first = normal
        across = subtract(across, scaled(normal, dot(across, normal)))
        count += 1
    return across


def stop_at_borders(p):
    """Stop balls at borders that the step would pass; whether there are any.

    The step ends at the tangent plane of the border where its end is clamped.
    """
    more = False
    for i in range(p.joints):
        if p.width[i] == 3 and p.active_count[i] == 0 and p.normal_count[i] < NORMALS:
            column, q, metric = (
                p.first_column[i],
                quaternion_at(p.rotation, 4 * i),
                quaternion_at(p.metric, 4 * i),
            )
            x, y, z = p.mobility[3 * i], p.mobility[3 * i + 1], p.mobility[3 * i + 2]
            step = vector_at(p.step, column)
            end = multiply(exponential(rotate(metric, Vector(x * step.x, y * step.y, z * step.z))), q)
            clamped = nearest_allowed(p.limit, LIMIT_WIDTH * i, end)
            outward = logarithm(multiply(end, conjugate(clamped)))
            if length(outward) > PASSED:
                outward = direction_of(outward)
                room = dot(outward, logarithm(multiply(clamped, conjugate(q))))
                normal = rotate_back(metric, outward)
                normal = Vector(x * normal.x, y * normal.y, z * normal.z)
                size, n, count = length(normal), p.normal_count[i], p.active_count[i]
                normal = scaled(normal, 1.0 / size)
                put_vector(p.normals, 3 * (NORMALS * i + n), normal)
                p.normal_count[i] += 1
                activate_normal(p, i, n)
                if p.active_count[i] > count:
                    basis, present = (
                        vector_at(p.active_basis, 9 * i + 3 * count),
                        vector_at(p.fixed_step, column),
                    )
                    along = (room / size - dot(present, normal)) / dot(basis, normal)
                    put_vector(p.fixed_step, column, add(present, scaled(basis, along)))
                    more = True
    return more


def measure_borders(p):
    """Store the second derivatives that active borders of balls' limits add, in units of the columns.

    A step d along a border ends beside it by half of its curvature times d.d, outside or inside. Its end on
    the border is off by that much, against the force with which `right_side` presses there. Curvatures are
    those of the clamped ends of short steps along two tangents and between them, or along the edge between
    two borders.
    """
    for i in range(p.joints):
        for n in range(9):
            p.border[9 * i + n] = 0.0
        p.pressed_count[i] = p.active_count[i]
        if not 0 < p.active_count[i] < 3:
            continue
        force, right = Vector(0.0, 0.0, 0.0), vector_at(p.right_side, p.first_column[i])
        for n in range(p.active_count[i]):
            normal = vector_at(p.active_basis, 9 * i + 3 * n)
            force = add(force, scaled(normal, dot(right, normal)))
        q, metric = quaternion_at(p.rotation, 4 * i), quaternion_at(p.metric, 4 * i)
        x, y, z = p.mobility[3 * i], p.mobility[3 * i + 1], p.mobility[3 * i + 2]
        force = Vector(force.x / x, force.y / y, force.z / z)
        size = length(force)
        if size == 0.0:
            continue
        outward = rotate(metric, scaled(force, 1.0 / size))
        if p.active_count[i] == 2:
            one, two = vector_at(p.active_basis, 9 * i), vector_at(p.active_basis, 9 * i + 3)
            one, two = Vector(one.x / x, one.y / y, one.z / z), Vector(two.x / x, two.y / y, two.z / z)
            edge = direction_of(cross(one, two))
            along = size * border_curvature(p, i, q, outward, rotate(metric, edge))
            edge = Vector(x * edge.x, y * edge.y, z * edge.z)
            add_product(p.border, 9 * i, edge, scaled(edge, along))
            continue
        one = perpendicular(outward)
        two = cross(outward, one)
        along_one, along_two = (
            border_curvature(p, i, q, outward, one),
            border_curvature(p, i, q, outward, two),
        )
        across = border_curvature(p, i, q, outward, scaled(add(one, two), sqrt(0.5)))
        across -= 0.5 * (along_one + along_two)
        one, two = rotate_back(metric, one), rotate_back(metric, two)
        one, two = Vector(x * one.x, y * one.y, z * one.z), Vector(x * two.x, y * two.y, z * two.z)
        to_one = scaled(add(scaled(one, along_one), scaled(two, across)), size)
        to_two = scaled(add(scaled(one, across), scaled(two, along_two)), size)
        add_product(p.border, 9 * i, one, to_one)
        add_product(p.border, 9 * i, two, to_two)


def press_on_borders(p):
    """Add to the step what takes balls that press on a border past it, where they are clamped to it exactly.

    Along the force by as much as gains what the model expects of a border that curves away, a half more, and
    `PRESSED`: what is outside by rounding is not clamped.
    """
    for i in range(p.joints):
        column, force = p.first_column[i], Vector(0.0, 0.0, 0.0)
        for n in range(p.pressed_count[i]):
            normal = vector_at(p.active_basis, 9 * i + 3 * n)
            force = add(force, scaled(normal, dot(vector_at(p.right_side, column), normal)))
        square = dot(force, force)
        if square > 0.0:
            step, turning = vector_at(p.step, column), vector_at(p.mobility, 3 * i)
            bent = Vector(
                dot(vector_at(p.border, 9 * i), step),
                dot(vector_at(p.border, 9 * i + 3), step),
                dot(vector_at(p.border, 9 * i + 6), step),
            )
            size = length(Vector(force.x / turning.x, force.y / turning.y, force.z / turning.z))
            off = (max(-0.75 * dot(step, bent), 0.0) + PRESSED * size) / square
            put_vector(p.step, column, add(step, scaled(force, off)))


def border_curvature(p, i, q, outward, tangent):
    """The curvature of a limit's border along a tangent, positive where straight steps end outside."""
    beside = border_distance(p, i, q, outward, scaled(tangent, BORDER_STEP))
    beside += border_distance(p, i, q, outward, scaled(tangent, -BORDER_STEP))
    beside -= 2.0 * border_distance(p, i, q, outward, Vector(0.0, 0.0, 0.0))
    return beside / (BORDER_STEP * BORDER_STEP)


def border_distance(p, i, q, outward, step):
    """How far outside a step ends that starts `BORDER_ROOM` outside."""
    outside = multiply(exponential(add(step, scaled(outward, BORDER_ROOM))), q)
    back = logarithm(multiply(nearest_allowed(p.limit, LIMIT_WIDTH * i, outside), conjugate(outside)))
    return -dot(back, outward)


def add_product(values, at, a, b):
    """Add the 3 x 3 matrix a b^T, by rows."""
    put_vector(values, at, add(vector_at(values, at), scaled(b, a.x)))
    put_vector(values, at + 3, add(vector_at(values, at + 3), scaled(b, a.y)))
    put_vector(values, at + 6, add(vector_at(values, at + 6), scaled(b, a.z)))


def solve_trusted(p, radius):
    """Solve hessian step = `right_side` for the free columns, at most `radius` long; returns the force."""
    n = p.columns
    reduce_hessian(p)
    force = norm_of(p.remainder, n)
    find_trusted(p, radius)
    for a in range(n):
        p.step[a] = p.fixed_step[a] + p.direction[a]
    return force


def find_trusted(p, radius):
    """Store the `direction`, at most `radius` long, in which the reduced quadratic model is least.

    Also where that is not convex: with the least m >= 0 for which reduced + m is positive and the step short
    enough (More and Sorensen 1983).
    """
    n, size, lowest = p.columns, 0.0, 0.0
    for a in range(n):
        p.direction[a] = 0.0
        across = -p.reduced[a * n + a] - fabs(p.reduced[a * n + a])
        for b in range(n):
            across += fabs(p.reduced[a * n + b])
        lowest = max(lowest, across)  # no eigenvalue is below -lowest (Gershgorin 1931)
    least, most, shift = 0.0, norm_of(p.remainder, n) / radius + lowest, 0.0
    for _ in range(SHIFTS):
        if factorise(p, shift):
            solve_factorised(p, p.remainder, p.direction)
            size = norm_of(p.direction, n)
            if size <= radius and (shift == 0.0 or size >= SHORTEST * radius):
                return
            if radius < size <= LONGEST * radius:
                return
            if size <= radius and most - least <= NARROW * most:
                add_least_curvature(p, radius, size)
                return
            if size <= radius:
                most = shift
            else:
                least = shift
            # Newton's method for 1 / size = 1 / radius, whose slope follows from L^-1 step.
            slope = 0.0
            for a in range(n):
                sum_ = p.direction[a]
                for b in range(a):
                    sum_ -= p.factor[a * n + b] * p.product[b]
                p.product[a] = sum_ / p.factor[a * n + a]
                slope += p.product[a] * p.product[a]
            shift += size * size / slope * (size - radius) / radius if slope > 0.0 else 0.0
        else:
            least, shift = shift, -1.0
        if not least < shift < most:
            shift = max(sqrt(least * most), least + NARROW * (most - least))
    if size > radius:
        for a in range(n):
            p.direction[a] *= radius / size


def norm_of(values, count):
    """The length of a vector."""
    square = 0.0
    for k in range(count):
        square += values[k] * values[k]
    return sqrt(square)


def add_least_curvature(p, radius, size):
    """Lengthen a step to the radius along the direction of the least curvature, which forces do not tell.

    It is the one towards the reference; where that does not tell it either, the one whose first columns rise.
    """
    n, along = p.columns, 0.0
    for a in range(n):
        p.product[a] = 1.0 / (1.0 + a)
    project_free(p, p.product)
    for _ in range(2):
        solve_factorised(p, p.product, p.remainder)
        scale = norm_of(p.remainder, n)
        if scale == 0.0:
            return
        for a in range(n):
            p.product[a] = p.remainder[a] / scale
    for a in range(n):
        along -= p.departure_gradient[a] * p.product[a]
    share = sqrt(max(radius * radius - size * size, 0.0))
    if along < 0.0:
        share = -share
    for a in range(n):
        p.direction[a] += share * p.product[a]


def reduce_hessian(p):
    """Store `reduced`, the Hessian of the free columns, with 1 for others, and their force as `remainder`."""
    n = p.columns
    for a in range(n):
        sum_ = p.right_side[a]
        for b in range(n):
            sum_ -= p.hessian[a * n + b] * p.fixed_step[b]
            p.reduced[a * n + b] = p.hessian[a * n + b]
        p.remainder[a] = sum_
    project_free(p, p.remainder)
    for a in range(n):
        if p.is_fixed[a]:
            for b in range(n):
                p.reduced[a * n + b] = 0.0
                p.reduced[b * n + a] = 0.0
            p.reduced[a * n + a] = 1.0
    for i in range(p.joints):
        for k in range(p.active_count[i]):
            normal, column = vector_at(p.active_basis, 9 * i + 3 * k), p.first_column[i]
            for a in range(n):
                remove_along(p.reduced, a * n + column, 1, normal)
            for a in range(n):
                remove_along(p.reduced, column * n + a, n, normal)
            add_block(p.reduced, n, column, normal, normal)


def add_block(matrix, n, column, a, b):
    """Add a b^T to the block of a joint in a matrix of n columns."""
    put_vector(matrix, column * n + column, add(vector_at(matrix, column * n + column), scaled(b, a.x)))
    at = (column + 1) * n + column
    put_vector(matrix, at, add(vector_at(matrix, at), scaled(b, a.y)))
    at = (column + 2) * n + column
    put_vector(matrix, at, add(vector_at(matrix, at), scaled(b, a.z)))


def factorise(p, shift):
    """Store Cholesky's factor of the reduced Hessian plus `shift`; whether that is positive."""
    n = p.columns
    for i in range(n):
        for j in range(i + 1):
            sum_ = p.reduced[i * n + j]
            for k in range(j):
                sum_ -= p.factor[i * n + k] * p.factor[j * n + k]
            if i == j:
                sum_ += shift
                if not sum_ > DEPENDENT * (fabs(p.reduced[i * n + i]) + shift):
                    return False
                p.factor[i * n + i] = sqrt(sum_)
            else:
                p.factor[i * n + j] = sum_ / p.factor[j * n + j]
    return True


def solve_factorised(p, right, solution):
    """Solve by Cholesky's factor."""
    n = p.columns
    for i in range(n):
        sum_ = right[i]
        for k in range(i):
            sum_ -= p.factor[i * n + k] * solution[k]
        solution[i] = sum_ / p.factor[i * n + i]
    for i in range(n - 1, -1, -1):
        sum_ = solution[i]
        for k in range(i + 1, n):
            sum_ -= p.factor[k * n + i] * solution[k]
        solution[i] = sum_ / p.factor[i * n + i]


def project_free(p, values):
    """Project a step onto the free directions of limits."""
    for column in range(p.columns):
        if p.is_fixed[column]:
            values[column] = 0.0
    for i in range(p.joints):
        for n in range(p.active_count[i]):
            remove_along(values, p.first_column[i], 1, vector_at(p.active_basis, 9 * i + 3 * n))


# Second derivatives ---------------------------------------------------------------------------------


def measure_curvature(p, pull):
    """Store the second derivatives of half of `settled_square` along geodesics, by the columns."""
    for at in range(p.columns * p.columns):
        p.hessian[at] = 0.0
    add_departure_curvature(p, pull)
    for i in range(p.joints):
        if p.normal_count[i] > 0:
            column = p.first_column[i]
            for n in range(3):
                at = (column + n) * p.columns + column
                put_vector(p.hessian, at, add(vector_at(p.hessian, at), vector_at(p.border, 9 * i + 3 * n)))
    for k in range(p.goals):
        if p.goal_rank[k] > p.stage or has_room(p, k):
            continue
        if p.couplings or p.goal_kind[k] == POLE or p.goal_kind[k] == BALANCE:
            add_measured_curvature(p, k)
        elif p.goal_kind[k] == POSITION:
            add_products_of_slopes(p, k)
            row = p.first_row[k] * p.columns
            for column in range(p.columns):
                put_vector(
                    p.pull_of,
                    3 * column,
                    Vector(
                        p.slope[row + column],
                        p.slope[row + p.columns + column],
                        p.slope[row + 2 * p.columns + column],
                    ),
                )
            add_turned_slopes(p, k, vector_at(p.force, p.first_row[k]))
        elif p.goal_kind[k] == ORIENTATION:
            add_orientation_curvature(p, k)
        else:
            add_direction_curvature(p, k)


def add_departure_curvature(p, pull):
    """Add the second derivatives of half of the square departure, times `pull`.

    Of a ball with one mobility, v the rotation from the reference, they are 1 + c [v]^2. Others are the
    differences of its gradient.
    """
    for column in range(p.columns):
        p.hessian[column * p.columns + column] += pull
    if p.to_region or not p.has_reference:
        return
    for i in range(p.joints):
        if p.width[i] != 3:
            continue
        column, reference = p.first_column[i], quaternion_at(p.reference_rotation, 4 * i)
        x, y, z = p.mobility[3 * i], p.mobility[3 * i + 1], p.mobility[3 * i + 2]
        if x == y and y == z:
            v = logarithm(multiply(quaternion_at(p.rotation, 4 * i), conjugate(reference)))
            v = rotate_back(quaternion_at(p.metric, 4 * i), v)
            factor = pull * jacobian_factor(dot(v, v))
            for n in range(3):
                p.hessian[(column + n) * p.columns + column + n] -= factor * dot(v, v)
            add_block(p.hessian, p.columns, column, scaled(v, factor), v)
            continue
        square, rotation = p.departure_square, quaternion_at(p.rotation, 4 * i)
        before = vector_at(p.departure_gradient, column)
        for n in range(3):
            move_column(p, column + n, DIFFERENCE)
            add_ball_departure(p, i, reference)
            put_quaternion(p.rotation, 4 * i, rotation)
            change = subtract(vector_at(p.departure_gradient, column), before)
            change = scaled(change, 0.5 * pull / DIFFERENCE)
            p.hessian[(column + n) * p.columns + column + n] -= pull
            for other in range(3):
                along = change.x if other == 0 else change.y if other == 1 else change.z
                p.hessian[(column + other) * p.columns + column + n] += along
                p.hessian[(column + n) * p.columns + column + other] += along
        p.departure_square = square
        put_vector(p.departure_gradient, column, before)


def add_products_of_slopes(p, k):
    """Add the weighted products of a goal's slopes: the Gauss-Newton part."""
    n, weight = p.columns, p.rank_weight[k]
    for row in range(p.first_row[k], p.first_row[k + 1]):
        for a in range(n):
            along = weight * p.slope[row * n + a]
            if along != 0.0:
                for b in range(n):
                    p.hessian[a * n + b] += along * p.slope[row * n + b]


def add_turned_slopes(p, k, force):
    """Add what a force does along the slopes `pull_of` of columns, as joints above turn these.

    With a the axis of a column, and J the slope of a column of the same joint or one below: f.(a x J). Of two
    columns of one joint it is the mean of both orders. Slides turn with the joints above alone.
    """
    i = p.goal_joint[k]
    while i >= 0:
        for column in range(p.first_column[i], p.first_column[i + 1]):
            moment, is_slide = cross(vector_at(p.pull_of, 3 * column), force), p.column_slide[column] >= 0
            if not is_slide:
                for other in range(p.first_column[i], p.first_column[i] + p.width[i]):
                    along = 0.5 * dot(vector_at(p.column_axis, 3 * other), moment)
                    p.hessian[other * p.columns + column] += along
                    p.hessian[column * p.columns + other] += along
            up, turns = p.parent[i], is_slide or p.inherits[i]
            while up >= 0 and turns:
                for other in range(p.first_column[up], p.first_column[up] + p.width[up]):
                    along = dot(vector_at(p.column_axis, 3 * other), moment)
                    p.hessian[other * p.columns + column] += along
                    p.hessian[column * p.columns + other] += along
                turns = p.inherits[up]
                up = p.parent[up]
        i = p.parent[i]


def add_orientation_curvature(p, k):
    """Add the second derivatives of a rotation.

    Of half of the square of its rotation vector e they are 1 + c [e]^2. Of turns A above and B below the
    whole turn is A + B + A x B / 2, and higher orders.
    """
    by_angle, row, n = angle_factor(p, k), p.first_row[k], p.columns
    e = scaled(vector_at(p.residual, row), 1.0 / by_angle)
    force, square = scaled(vector_at(p.force, row), 0.5 * by_angle), dot(e, e)
    weight, factor = p.rank_weight[k] * by_angle * by_angle, jacobian_factor(square)
    i = p.goal_joint[k]
    while i >= 0:
        for column in range(p.first_column[i], p.first_column[i] + p.width[i]):
            axis = vector_at(p.column_axis, 3 * column)
            bent = add(scaled(axis, 1.0 - factor * square), scaled(e, factor * dot(e, axis)))
            for other in range(p.first_column[i], p.first_column[i] + p.width[i]):
                p.hessian[other * n + column] += weight * dot(vector_at(p.column_axis, 3 * other), bent)
            bent = add(scaled(bent, weight), cross(axis, force))
            up, turns = p.parent[i], p.inherits[i]
            while up >= 0 and turns:
                for other in range(p.first_column[up], p.first_column[up] + p.width[up]):
                    along = dot(vector_at(p.column_axis, 3 * other), bent)
                    p.hessian[other * n + column] += along
                    p.hessian[column * n + other] += along
                turns = p.inherits[up]
                up = p.parent[up]
        if not p.inherits[i]:
            return
        i = p.parent[i]


def add_direction_curvature(p, k):
    """Add the second derivatives of a direction.

    Half of the square of its angle t to the target, x = cos t, has the derivatives -t / sin t by x, and
    (sin t - t cos t) / sin^3 t.
    """
    by_angle, row, joint, target = (
        angle_factor(p, k),
        p.first_row[k],
        p.goal_joint[k],
        vector_at(p.target, 4 * k),
    )
    weight = p.rank_weight[k] * by_angle * by_angle
    axis = rotate(quaternion_at(p.frame, 4 * joint), vector_at(p.goal_axis, 3 * k))
    sine, angle = length(cross(target, axis)), p.miss[k]
    once, twice = 1.0, 1.0 / 3.0
    if sine >= 1e-3:
        once = angle / sine
        twice = (sine - angle * dot(target, axis)) / (sine * sine * sine)
    force = scaled(target, -weight * once)
    if is_kept(p, k):
        first = perpendicular(target)
        force = add(force, scaled(first, by_angle * p.force[row]))
        force = add(force, scaled(cross(target, first), by_angle * p.force[row + 1]))
    for column in range(p.columns):
        put_vector(p.pull_of, 3 * column, Vector(0.0, 0.0, 0.0))
        p.direction[column] = 0.0
    i = joint
    while i >= 0:
        for column in range(p.first_column[i], p.first_column[i] + p.width[i]):
            slope = cross(vector_at(p.column_axis, 3 * column), axis)
            put_vector(p.pull_of, 3 * column, slope)
            p.direction[column] = dot(target, slope)
        i = p.parent[i] if p.inherits[i] else -1
    for a in range(p.columns):
        for b in range(p.columns):
            p.hessian[a * p.columns + b] += weight * twice * p.direction[a] * p.direction[b]
    add_turned_slopes(p, k, force)


def add_measured_curvature(p, k):
    """Add the second derivatives of a goal as differences of its gradient along each column."""
    n = p.columns
    save(p, 0)
    goal_gradient(p, k, p.remainder)
    for column in range(n):
        move_column(p, column, DIFFERENCE)
        forward(p)
        measure_goal(p, k)
        for m in range(p.moving_count):
            place_columns(p, p.moving[m])
        for at in range(p.first_row[k] * n, p.first_row[k + 1] * n):
            p.slope[at] = 0.0
        goal_slopes(p, k)
        goal_gradient(p, k, p.direction)
        restore(p, 0)
        for other in range(n):
            along = 0.5 / DIFFERENCE * (p.direction[other] - p.remainder[other])
            p.hessian[other * n + column] += along
            p.hessian[column * n + other] += along
    evaluate(p)


def move_column(p, column, step):
    """Move a joint along a column, past its limit too."""
    i = p.column_joint[column]
    if p.column_slide[column] >= 0:
        axis = vector_at(p.slide_axis, 3 * p.column_slide[column])
        shift = add(vector_at(p.translation, 3 * i), scaled(axis, step * p.reach * p.mobility[3 * i]))
        put_vector(p.translation, 3 * i, shift)
        return
    if p.width[i] == 1:
        p.angle[i] += step * p.mobility[3 * i]
        put_quaternion(p.rotation, 4 * i, axis_rotation(hinge_axis(p.limit, LIMIT_WIDTH * i), p.angle[i]))
        return
    n = column - p.first_column[i]
    turn = Vector(step if n == 0 else 0.0, step if n == 1 else 0.0, step if n == 2 else 0.0)
    turned = exponential(rotate(quaternion_at(p.metric, 4 * i), scaled(turn, p.mobility[3 * i + n])))
    put_quaternion(p.rotation, 4 * i, unit(multiply(turned, quaternion_at(p.rotation, 4 * i))))


def goal_gradient(p, k, gradient):
    """Write the gradient of a goal's part of half of `settled_square`."""
    for column in range(p.columns):
        gradient[column] = 0.0
    for row in range(p.first_row[k], p.first_row[k + 1]):
        force = p.rank_weight[k] * p.residual[row]
        if is_kept(p, k):
            force += p.force[row]
        for column in range(p.columns):
            gradient[column] += force * p.slope[row * p.columns + column]


def curvature_part(p, part):
    """The length of the next step: s.s / s.y, s the last step and y the change of the gradient."""
    along, change = 0.0, 0.0
    for column in range(p.columns):
        along += p.old_step[column] * p.old_step[column]
        change += p.old_step[column] * (p.old_gradient[column] - p.step[column])
    if change <= 0.0 or along <= 0.0:
        return min(2.0 * part, 4.0)
    return min(max(along / change, 0.1), 4.0)
