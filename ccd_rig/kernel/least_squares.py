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
    conjugate,
    cross,
    direction_of,
    dot,
    exponential,
    length,
    logarithm,
    multiply,
    perpendicular,
    put_vector,
    quaternion_at,
    rotate,
    rotate_back,
    scaled,
    subtract,
    twist_angle,
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
    has_room,
    is_current,
    jacobian_factor,
    length_factor,
    measure,
    reject,
    slopes,
    window_line,
)
from .limits import LIMIT_WIDTH, hinge_axis, hinge_range, is_hinge, nearest_allowed, outward_normals
from .plain import Vector
from .skeleton import (
    NORMALS,
    PAIRS,
    angle_in_range,
    restore,
    save,
    set_angle,
    set_rotation,
    set_translation,
)

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
CONVEX = 1e-3
"""Least cosine between a step and the change of the gradient along it."""
LEAST_SLIDE = 1e-4
"""Radians of a step towards the reference below which a pose counts as the nearest."""
RETURN_PART = 0.1
"""Largest return to the goals, in parts of a slide's step: the range of the linear model."""
FLAT = 1e-9
"""Least gain of a step, in parts of the departure."""
SETTLES = 60
"""Most of Newton's steps towards the least error."""
PULL = 1e-4
"""Part of the error that weighs the square departure beside the square error.

A joint that bends a straight chain is off the least error by this part of its departure.
"""
FIRST_PULL = 1e-2
"""The same at first: the valley of least errors is wider then, and steps along it are longer."""
CLOSE = 0.03
"""Radians off the nearest pose below which the pull becomes smaller: 40 steps of chains in cones without."""
LONGEST_SETTLE = 0.3
"""Radians above which a step of Newton leaves the range of its model."""
PASSED = 1e-5
"""Radians by which a step may pass a border."""
BORDER_STEP = 0.01
"""Radians of the steps by which the curvature of a limit's border is measured."""
HEAVIER = 10.0
"""Factor by which weights of missed ranks rise in `settle`, up to `LAST_WEIGHT`."""
LAST_WEIGHT = 1e6
"""Largest such weight. At `FIRST` a rank that just misses its goals can lose 4 % of its error to the next."""
MOST_WEIGHT = 1e11
"""Largest such weight: beside it a rounding error of 1e-16 counts as little as the pull."""
CORRECTED = 0.01
"""Damping of second-order corrections: lines along which goals cannot be approached stay out of them."""
SHORT_FORCE = 1e-4
"""Part of the forces that is a step so short that it leaves no limit from inside."""
RETURNS = 4
"""Most steps back onto goals that are kept."""
ROUNDED = 1e-6
"""Radians of such a step after which the rest, a part of its square, is rounding."""
SETTLED = 1e-4
"""Radians off the reference pose by which a settled pose may be off the nearest one."""
REMAINDER = 0.1
"""Largest part of the right side that conjugate gradients may leave."""
CURVED = 0.1
"""Size of the residuals' second derivatives, in parts of the forces: the guess of the preconditioner.

Ten times more or less takes up to twice as many conjugate gradients.
"""
FAR = 1e3
"""Multiple of a conjugate gradient without positive curvature: longer than steps may be."""
MOST_RETRIED = 0.5
"""Largest part of a failed step that is tried next."""
LEAST_RETRIED = 0.1
"""The least part."""


# Evaluation -----------------------------------------------------------------------------------------


def evaluate(p):
    """Evaluate the pose: residuals, Jacobian, normals of active limits, and departure."""
    measure(p)
    linearise(p)
    measure_departure(p)


def linearise(p):
    """Store the Jacobian of the measured pose, and the normals of its active limits."""
    slopes(p)
    update_normals(p)


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
            off = hinge_departure(p, i, p.angle[i], p.reference_angle[i])
            p.departure_gradient[column] = off
            p.departure_square += off * off
        elif p.width[i] == 3:
            add_ball_departure(p, i, quaternion_at(p.reference_rotation, 4 * i))
        shift = subtract(vector_at(p.translation, 3 * i), vector_at(p.reference_translation, 3 * i))
        for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
            off = slide_departure(p, i, p.column_slide[column], shift)
            p.departure_gradient[column] = off
            p.departure_square += off * off


def hinge_departure(p, i, angle, reference):
    """The turn of a hinge from a reference, in parts of its mobility."""
    off = angle - reference
    lower, upper = hinge_range(p.limit, LIMIT_WIDTH * i)
    if upper - lower >= 2.0 * pi:
        off = wrapped(off, 0.0)
    return off / p.mobility[3 * i]


def ball_departure(p, i, turn):
    """The rotation vector of a ball joint along the axes of its mobilities, in parts of them."""
    u = rotate_back(quaternion_at(p.metric, 4 * i), turn)
    return Vector(u.x / p.mobility[3 * i], u.y / p.mobility[3 * i + 1], u.z / p.mobility[3 * i + 2])


def slide_departure(p, i, slide, shift):
    """A shift of a joint along a slide, in parts of its mobility; a reach is as much as 1 radian."""
    return dot(vector_at(p.slide_axis, 3 * slide), shift) / (p.reach * p.mobility[3 * i])


def turn_square(p, i, q, reference):
    """The square of a joint's rotation from a reference, as solves minimise it; 0 of a joint that stays."""
    if p.width[i] == 1:
        axis = hinge_axis(p.limit, LIMIT_WIDTH * i)
        angle = angle_in_range(p, i, twist_angle(q, axis))
        off = hinge_departure(p, i, angle, angle_in_range(p, i, twist_angle(reference, axis)))
        return off * off
    if p.width[i] == 0:
        return 0.0
    u = ball_departure(p, i, logarithm(multiply(q, conjugate(reference))))
    return dot(u, u)


def slides_square(p, i, shift):
    """The square of a joint's shift along its slides, as solves minimise it."""
    square = 0.0
    for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
        off = slide_departure(p, i, p.column_slide[column], shift)
        square += off * off
    return square


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
    u = ball_departure(p, i, v)
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
    reset_active_set(p)
    factorise(p, damping)
    p.is_free = not p.masked
    solve_in_limits(p, back, damping)


def compute_other_step(p, back, damping):
    """Compute another step from the same pose, with other `row_gain` or `gradient`; the rest is the same."""
    if p.is_free:
        solve_in_limits(p, back, damping)
    else:
        compute_step(p, back, damping)


def solve_in_limits(p, back, damping):
    """Compute the step of a factorised system, and again with the limits active that it would violate."""
    for column in range(p.columns):
        p.free_gradient[column] = back * p.gradient[column] if back != 0.0 else 0.0
    project_free(p, p.free_gradient)
    for _ in range(ROUNDS + p.goals if p.has_windows or p.has_poles else ROUNDS):
        solve_step(p)
        if not activate_limits(p):
            return
        p.is_free = False
        factorise(p, damping)


def reset_active_set(p):
    """Start with the limits active that have no room, and all other columns free."""
    for k in range(p.goals):
        is_counted = is_in_step(p, k) and not has_room(p, k)
        if p.only_kept and p.goal_kind[k] == WINDOW:
            is_counted = p.force[p.first_row[k]] > 0.0
        for row in range(p.first_row[k], p.first_row[k + 1]):
            p.row_is_active[row] = is_counted
        for n in range(p.first_span[k], p.first_span[k + 1]):
            for row in range(p.first_row[k], p.first_row[k + 1]):
                first = blocked_index(p.columns, row, 0)
                for column in range(p.span_start[n], p.span_end[n]):
                    at = row * p.columns + column
                    p.free_slope[first + 4 * column] = p.serving[at] if p.masked else p.slope[at]
    for column in range(p.columns):
        p.is_fixed[column] = 0
        p.fixed_step[column] = 0.0
    for i in range(p.joints):
        p.active_count[i] = 0
        for n in range(p.normal_count[i]):
            p.is_active[NORMALS * i + n] = 0
            if (p.normal_pairs[i] >> n) & 1:
                activate_normal(p, i, n)


def is_in_step(p, k):
    """Whether steps count a goal: up to the current rank, or the kept ones alone."""
    return p.goal_rank[k] <= p.stage and (is_kept(p, k) or not p.only_kept)


def blocked_index(columns, row, column):
    """Index in a matrix whose rows are blocked in fours, with columns interleaved."""
    return (row - row % 4) * columns + 4 * column + row % 4


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
    for m in range(p.first_goal[i], p.first_goal[i + 1]):
        k = p.joint_goal[m]
        for row in range(p.first_row[k], p.first_row[k + 1]):
            remove_along(p.free_slope, blocked_index(p.columns, row, column), 4, normal)
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
    i = p.column_joint[column]
    for m in range(p.first_goal[i], p.first_goal[i + 1]):
        k = p.joint_goal[m]
        for row in range(p.first_row[k], p.first_row[k + 1]):
            p.free_slope[blocked_index(p.columns, row, column)] = 0.0


def factorise(p, damping):
    """Factorise the system of the free columns."""
    for k in range(p.goals):
        for a in range(p.first_row[k], p.first_row[k + 1]):
            multiply_row(p, k, a, damping)
    if not p.masked:
        factorise_symmetric(p)


def solve_step(p):
    """Compute the step of the free columns, beside fixed steps."""
    for a in range(p.rows):
        p.right[a] = p.row_gain[a] * (p.residual[a] - p.row_offset[a]) if p.row_is_active[a] else 0.0
    moves = False
    for column in range(p.columns):
        p.step[column] = p.fixed_step[column] - p.free_gradient[column]
        moves = moves or p.step[column] != 0.0
    for k in range(p.goals):
        if moves and p.row_is_active[p.first_row[k]]:
            put_rows_of(p, k, p.right, linear_change(p, k, p.step, 1.0, rows_of(p, k, p.right)))
    if p.masked:
        solve_general(p)
    else:
        solve_symmetric(p)
    for k in range(p.goals):
        if p.row_is_active[p.first_row[k]]:
            for n in range(p.first_span[k], p.first_span[k + 1]):
                for a in range(p.first_row[k], p.first_row[k + 1]):
                    first, by = blocked_index(p.columns, a, 0), p.right[a]
                    for column in range(p.span_start[n], p.span_end[n]):
                        p.step[column] -= p.free_slope[first + 4 * column] * by


def multiply_row(p, k, a, damping):
    """Store a row of the system, of goal `k`."""
    rows, columns = p.rows, p.columns
    others = rows if p.masked else min(a - a % 4 + 4, rows)
    for b in range(others):
        p.system[blocked_index(rows, a, b)] = 0.0
    if not p.row_is_active[a]:
        p.system[blocked_index(rows, a, a)] = 1.0
        return
    from_a = blocked_index(p.columns, a, 0)
    for b in range(0, others, 4):  # four independent sums: a single one waits for itself
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        from_b = blocked_index(p.columns, b, 0)
        for n in range(p.first_span[k], p.first_span[k + 1]):
            for column in range(p.span_start[n], p.span_end[n]):
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
    p.system[blocked_index(rows, a, a)] += damping * p.row_damping[a] + LEAST_DAMPING


def note_product(p, a, b, product):
    """Store the product of two active rows in the system."""
    if b < p.rows and p.row_is_active[b]:
        p.system[blocked_index(p.rows, a, b)] = product


def factorise_symmetric(p):
    """Factorise by Cholesky's method, four rows at once: a single sum waits for itself.

    A row that depends on rows before it, but for rounding, is dropped. Numbers above the diagonal are void.
    """
    n = p.rows
    for first in range(0, n, 4):
        for j in range(min(first + 4, n)):
            at, row_j = blocked_index(n, first, j), blocked_index(n, j, 0)
            one, two, three, four = p.system[at], p.system[at + 1], p.system[at + 2], p.system[at + 3]
            least = DEPENDENT * p.system[row_j + 4 * j]
            for k in range(j):
                by, from_k = p.system[row_j + 4 * k], blocked_index(n, first, k)
                one -= p.system[from_k] * by
                two -= p.system[from_k + 1] * by
                three -= p.system[from_k + 2] * by
                four -= p.system[from_k + 3] * by
            pivot = p.system[row_j + 4 * j]
            if j >= first:
                pivot = one if j == first else two if j == first + 1 else three if j == first + 2 else four
                pivot = sqrt(pivot) if pivot > least else VOID_PIVOT
            p.system[at] = one / pivot
            p.system[at + 1] = two / pivot
            p.system[at + 2] = three / pivot
            p.system[at + 3] = four / pivot
            p.system[row_j + 4 * j] = pivot


def solve_symmetric(p):
    """Solve the factorised system; `right` becomes the solution."""
    n = p.rows
    for i in range(n):
        sum_, at = p.right[i], blocked_index(n, i, 0)
        for k in range(i):
            sum_ -= p.system[at + 4 * k] * p.right[k]
        p.right[i] = sum_ / p.system[at + 4 * i]
    for i in range(n - 1, -1, -1):
        sum_ = p.right[i]
        for k in range(i + 1, n):
            sum_ -= p.system[blocked_index(n, k, i)] * p.right[k]
        p.right[i] = sum_ / p.system[blocked_index(n, i, i)]


def solve_general(p):
    """Solve by Gauss's method with row pivoting; `right` becomes the solution."""
    n = p.rows
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if fabs(p.system[blocked_index(n, i, j)]) > fabs(p.system[blocked_index(n, best, j)]):
                best = i
        if best != j:
            for k in range(n):
                at, other = blocked_index(n, j, k), blocked_index(n, best, k)
                value = p.system[at]
                p.system[at] = p.system[other]
                p.system[other] = value
            value = p.right[j]
            p.right[j] = p.right[best]
            p.right[best] = value
        at = blocked_index(n, j, j)
        if fabs(p.system[at]) < 1e-14:
            p.system[at] = 1e-14
        pivot = p.system[at]
        for i in range(j + 1, n):
            factor = p.system[blocked_index(n, i, j)] / pivot
            if factor != 0.0:
                for k in range(j, n):
                    p.system[blocked_index(n, i, k)] -= factor * p.system[blocked_index(n, j, k)]
                p.right[i] -= factor * p.right[j]
    for i in range(n - 1, -1, -1):
        sum_ = p.right[i]
        for k in range(i + 1, n):
            sum_ -= p.system[blocked_index(n, i, k)] * p.right[k]
        p.right[i] = sum_ / p.system[blocked_index(n, i, i)]


def activate_limits(p):
    """Make the limits active that the step would violate; whether there are any."""
    more = activate_windows(p, 1.0) if p.has_windows and not p.is_settling else False
    more = (p.has_poles and activate_poles(p)) or more
    for i in range(p.joints):
        if p.width[i] == 1:
            column = p.first_column[i]
            lower, upper = hinge_range(p.limit, LIMIT_WIDTH * i)
            if not p.is_fixed[column] and upper - lower < 2.0 * pi:
                more = stop_at_bound(p, column, p.angle[i], lower, upper, p.mobility[3 * i]) or more
        if p.normal_count[i] > 0:
            more = activate_pressed_normals(p, i, vector_at(p.step, p.first_column[i]), 1e-9) or more
        for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
            if not p.is_fixed[column]:
                slide, scale = p.column_slide[column], p.reach * p.mobility[3 * i]
                place = dot(vector_at(p.slide_axis, 3 * slide), vector_at(p.translation, 3 * i))
                lower, upper = p.slide_range[2 * slide], p.slide_range[2 * slide + 1]
                more = stop_at_bound(p, column, place, lower, upper, scale) or more
    return more


def activate_windows(p, part):
    """Make reach windows active that a part of the step would stretch too far; whether there are any."""
    more = False
    for k in range(p.goals):
        row = p.first_row[k]
        if p.goal_kind[k] == WINDOW and not p.row_is_active[row]:
            over = linear_change(p, k, p.step, part, Vector(p.residual[row], 0.0, 0.0)).x
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
            to = linear_change(p, k, p.step, 1.0, Vector(to, 0.0, 0.0)).x
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
            set_rotation(p, i, nearest_allowed(p.limit, LIMIT_WIDTH * i, turned))
        for k in range(column + p.width[i], p.first_column[i + 1]):
            slide = p.column_slide[k]
            axis, shift = vector_at(p.slide_axis, 3 * slide), vector_at(p.translation, 3 * i)
            place = dot(axis, shift)
            to = place + part * p.reach * p.mobility[3 * i] * p.step[k]
            to = min(max(to, p.slide_range[2 * slide]), p.slide_range[2 * slide + 1])
            set_translation(p, i, add(shift, scaled(axis, to - place)))
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

    The pose has been measured before, and is evaluated at the end. It ends with the try's steps, or after
    `SLOW_STEPS` steps in a row that leave more than `slow_ratio` of the square error.
    """
    set_row_gains(p, 1.0)
    damping, growth, slow = 1e-3, 5.0, 0
    linearise(p)
    while p.error_ratio > NEAR:
        if p.steps >= p.last_step:
            p.ran_out = p.error_ratio > p.met_ratio
            break
        square = p.square
        save(p, 0)
        compute_step(p, 0.0, damping * square)
        longest = max(longest_turn(p), longest_carried_turn(p))
        part = LONGEST_STEP / longest if longest > LONGEST_STEP else 1.0
        predicted = predicted_square(p, part)
        apply_step(p, part)
        measure(p)
        if p.square < square:
            linearise(p)
            # Ratio of actual to predicted reduction (More 1978): curvature needs damping.
            gain = (square - p.square) / max(square - predicted, 1e-30)
            if gain > 0.75:
                damping = max(0.3 * damping, 1e-12)
            elif gain < 0.25:
                damping *= 2.0
            growth = 5.0
            slow = slow + 1 if p.square > slow_ratio * square else 0
        else:
            restore(p, 0)
            measure(p)  # Jacobian and normals are those of this pose
            damping *= growth
            growth *= 2.0
            slow += 1
        if slow >= SLOW_STEPS:
            break
    measure_departure(p)
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


def longest_carried_turn(p):
    """The largest rotation of a goal's joint in the step, radians: the sum of the turns of the joints above.

    Small turns of many joints that add up leave the range of the linear model like a large turn of one.
    """
    longest = 0.0
    for k in range(p.goals):
        if p.goal_kind[k] != BALANCE and is_in_step(p, k):
            sum_ = Vector(0.0, 0.0, 0.0)
            for n in range(p.first_span[k], p.first_span[k + 1]):
                for column in range(p.span_start[n], p.span_end[n]):
                    if p.column_slide[column] < 0:
                        sum_ = add(sum_, scaled(vector_at(p.column_axis, 3 * column), p.step[column]))
            longest = max(longest, length(sum_))
    return longest


def linear_change(p, k, v, part, rows):
    """Values of the rows of goal `k`, three at most, after a part of a step `v`, by the linear model.

    Three sums at once: a single one waits for itself.
    """
    one, two, three = rows.x, rows.y, rows.z
    first, last = p.first_row[k], p.first_row[k + 1] - 1
    x, y, z = first * p.columns, min(first + 1, last) * p.columns, last * p.columns
    for n in range(p.first_span[k], p.first_span[k + 1]):
        for column in range(p.span_start[n], p.span_end[n]):
            one += part * p.slope[x + column] * v[column]
            two += part * p.slope[y + column] * v[column]
            three += part * p.slope[z + column] * v[column]
    return Vector(one, two, three)


def add_rows(p, k, by, sums):
    """Add the slopes of the rows of goal `k`, times a number for each, to sums of the columns."""
    first, last = p.first_row[k], p.first_row[k + 1] - 1
    x, y, z = first * p.columns, min(first + 1, last) * p.columns, last * p.columns
    two, three = by.y if last > first else 0.0, by.z if last > first + 1 else 0.0
    for n in range(p.first_span[k], p.first_span[k + 1]):
        for column in range(p.span_start[n], p.span_end[n]):
            sums[column] = (
                sums[column]
                + by.x * p.slope[x + column]
                + two * p.slope[y + column]
                + three * p.slope[z + column]
            )


def rows_of(p, k, values):
    """The numbers of the rows of goal `k`, 0 where it has fewer than three."""
    first, count = p.first_row[k], p.first_row[k + 1] - p.first_row[k]
    return Vector(
        values[first],
        values[first + 1] if count > 1 else 0.0,
        values[first + 2] if count > 2 else 0.0,
    )


def put_rows_of(p, k, values, rows):
    """Store numbers of the rows of goal `k`."""
    first, count = p.first_row[k], p.first_row[k + 1] - p.first_row[k]
    values[first] = rows.x
    if count > 1:
        values[first + 1] = rows.y
    if count > 2:
        values[first + 2] = rows.z


def predicted_square(p, part):
    """The square error after a part of the step, by the linear model."""
    sum_ = 0.0
    for k in range(p.goals):
        if p.row_is_active[p.first_row[k]]:
            off = subtract(rows_of(p, k, p.residual), rows_of(p, k, p.row_offset))
            off, count = linear_change(p, k, p.step, part, off), p.first_row[k + 1] - p.first_row[k]
            weight = 1.0 if is_current(p, k) else p.earlier_weight
            sum_ += weight * off.x * off.x
            sum_ += weight * off.y * off.y if count > 1 else 0.0
            sum_ += weight * off.z * off.z if count > 2 else 0.0
    return sum_


def slide(p):
    """Move along the goals towards the reference, from a pose that meets them.

    Each is a quasi-Newton step of the departure in the goals' null space, with the curvature of the steps
    before (L-BFGS: Nocedal 1980), and a return onto the goals. A step is accepted if the departure falls,
    extrapolated to the goals by the linear model, and shortened otherwise.
    """
    most, turned, least = LONGEST_SLIDE, 0.0, 0.0
    is_new, is_judged = False, True
    p.pair_count = 0
    save(p, 0)
    while p.departure_square > 0.0:
        beside = approach_goals(p, RETURN_PART * turned)
        if is_judged and beside < 0.0:
            break
        if not is_judged:
            if not 0.0 <= beside < least:
                restore(p, 1)
                evaluate(p)
                most, is_new, is_judged = 0.4 * turned, False, True
                if most < LEAST_SLIDE:
                    break
                continue
            if p.error_ratio <= p.met_ratio:
                save(p, 0)
            if least - beside < FLAT * least:
                break
            most, is_new = min(2.0 * most, LONGEST_SLIDE), True
        if p.steps >= p.last_step:
            break
        least = beside
        set_row_gains(p, 0.0)
        for column in range(p.columns):
            p.gradient[column] = p.departure_gradient[column]
        compute_other_step(p, 1.0, LEAST_DAMPING)
        if not is_same_face(p):
            p.pair_count = 0
        elif is_new:
            note_pair(p)
        for column in range(p.columns):
            p.old_gradient[column] = p.step[column]
        if p.pair_count > 0:
            bend_by_pairs(p)
        longest = longest_turn(p)
        turned = min(longest, most)
        by = turned / longest if longest > 0.0 else 0.0
        for column in range(p.columns):
            p.old_step[column] = by * p.step[column]
            p.step[column] = p.old_step[column] + p.return_step[column]
        save(p, 1)
        apply_step(p, 1.0)
        if not longest >= LEAST_SLIDE:
            measure(p)
            break
        evaluate(p)
        is_judged = False
    return_to_goals(p)
    if p.error_ratio > p.met_ratio:
        restore(p, 0)
        measure(p)
    measure_departure(p)


def is_same_face(p):
    """Whether the same limits and rows are active as at the last call."""
    is_same, at = True, 0
    for row in range(p.rows):
        is_same = is_same and p.face[at] == p.row_is_active[row]
        p.face[at] = p.row_is_active[row]
        at += 1
    for column in range(p.columns):
        is_same = is_same and p.face[at] == p.is_fixed[column]
        p.face[at] = p.is_fixed[column]
        at += 1
    for i in range(p.joints):
        for n in range(NORMALS):
            is_active = p.is_active[NORMALS * i + n] if n < p.normal_count[i] else 0
            is_same = is_same and p.face[at] == is_active
            p.face[at] = is_active
            at += 1
    return is_same


def note_pair(p):
    """Note the last step s, and the change y of the gradient along it.

    Where the departure is not convex the pair has no effect.
    """
    along, square, change = 0.0, 0.0, 0.0
    place = p.pair_count % PAIRS
    for column in range(p.columns):
        s, y = p.old_step[column], p.old_gradient[column] - p.step[column]
        p.pair_step[place * p.columns + column] = s
        p.pair_change[place * p.columns + column] = y
        along += s * y
        square += s * s
        change += y * y
    p.pair_inverse[place] = 1.0 / along if along > CONVEX * sqrt(square * change) else 0.0
    p.pair_count += 1


def bend_by_pairs(p):
    """Replace the step of the gradient by that of Newton, with the second derivatives that pairs tell.

    All else of them is 1, as of the departure itself. Without descent the step stays, and pairs are dropped.
    """
    count = min(p.pair_count, PAIRS)
    for n in range(count):
        place = (p.pair_count - 1 - n) % PAIRS
        along = 0.0
        for column in range(p.columns):
            along += p.pair_step[place * p.columns + column] * p.step[column]
        along *= p.pair_inverse[place]
        p.pair_part[place] = along
        for column in range(p.columns):
            p.step[column] -= along * p.pair_change[place * p.columns + column]
    for n in range(count - 1, -1, -1):
        place = (p.pair_count - 1 - n) % PAIRS
        along = 0.0
        for column in range(p.columns):
            along += p.pair_change[place * p.columns + column] * p.step[column]
        along = p.pair_part[place] - p.pair_inverse[place] * along
        for column in range(p.columns):
            p.step[column] += along * p.pair_step[place * p.columns + column]
    for column in range(p.columns):
        p.gradient[column] = -p.step[column]
    solve_in_limits(p, 1.0, LEAST_DAMPING)
    along = 0.0
    for column in range(p.columns):
        along += p.step[column] * p.old_gradient[column]
    if not along > 0.0:
        p.pair_count = 0
        for column in range(p.columns):
            p.step[column] = p.old_gradient[column]


def approach_goals(p, aside):
    """Approach the goals until the remaining return step turns joints by `aside` at most, and store it.

    Where the first return step is longer, the goals curve by as much more: the remaining one is shorter by
    that factor, for the linear model to hold.

    Returns:
        The departure of the pose on the goals by the linear model; -1 where they stay too far.
    """
    set_row_gains(p, 1.0)
    first = aside
    for _ in range(4):
        compute_step(p, 0.0, LEAST_DAMPING)
        longest = longest_turn(p)
        first = max(first, longest)
        if p.error_ratio <= p.met_ratio or longest * first <= aside * aside:
            beside = p.departure_square
            for column in range(p.columns):
                p.return_step[column] = p.step[column]
                beside += 2.0 * p.departure_gradient[column] * p.step[column]
            return beside
        if longest > LONGEST_STEP or p.steps >= p.last_step:
            break
        apply_step(p, 1.0)
        evaluate(p)
    return -1.0


def return_to_goals(p):
    """Return onto the goals by undamped steps, from a measured pose."""
    set_row_gains(p, 1.0)
    for _ in range(4):
        if p.error_ratio <= TIGHT or p.steps >= p.last_step:
            return
        linearise(p)
        compute_step(p, 0.0, LEAST_DAMPING)
        if longest_turn(p) > LONGEST_STEP:
            return
        apply_step(p, 1.0)
        measure(p)


# Missed goals ---------------------------------------------------------------------------------------


def settle(p):
    """Move to the nearby least error of missed goals, and of equal errors to the nearest to the reference.

    Newton's steps minimise half of the square error, plus a part of the square departure that shrinks to
    `PULL`. Where a straight chain falls short of its target the Jacobian vanishes along the chain, and steps
    of least squares straighten it ever more slowly. The second derivatives do not vanish. Limits that the
    force presses against are active (Bertsekas 1982).

    Goals of earlier ranks that are met are constraints, and reach windows are: multipliers of Lagrange are
    their forces, and each step returns onto them. Square errors of a missed rank count `FIRST` times those of
    the next, and more once forces vanish.

    Returns:
        Whether the pose moved and forces nearly vanish, which `is_stationary` says. Not where no step
        improves the pose, which may be a saddle, and where second derivatives are unknown. Poses that miss an
        earlier rank count all the same: least squares would bend what is straight. So do poses with reach
        windows, along which least squares creep.
    """
    keep_windows(p)
    if missed_square(p) == 0.0 or not set_rank_weights(p, FIRST):
        return False
    return_to_kept_goals(p)
    most, part, force, has_moved, weight = LONGEST_SETTLE, FIRST_PULL, 0.0, False, FIRST
    p.is_stationary = False
    for _ in range(SETTLES):
        missed = missed_square(p)
        if missed == 0.0 or p.steps >= p.last_step:
            return False
        pull = part * sqrt(missed)
        measure_forces(p, pull)
        measure_borders(p)
        reset_active_set(p)
        for k in range(p.goals):
            if p.goal_kind[k] == WINDOW:
                p.row_is_active[p.first_row[k]] = p.force[p.first_row[k]] > 0.0
        for i in range(p.joints):
            if p.normal_count[i] > 0:
                activate_pressed_normals(p, i, vector_at(p.right_side, p.first_column[i]), 0.0)
        p.is_settling = True
        for _ in range(p.columns):
            force = solve_curved(p, pull, most)
            if not activate_limits(p) and not stop_at_borders(p, most) and not stretches(p, most):
                break
        p.is_settling = False
        longest = longest_turn(p)
        is_still = part == PULL and (force <= SETTLED * pull or (p.has_windows and longest <= SETTLED))
        if is_still or most < LEAST_SLIDE:
            p.is_stationary = p.is_stationary or is_still
            weight *= HEAVIER
            is_last = part > PULL or not p.has_missed_earlier or weight > LAST_WEIGHT
            if is_last or not set_rank_weights(p, weight):
                break
            most = LONGEST_SETTLE
            continue
        if force <= CLOSE * pull:
            part = max(0.1 * part, PULL)
        if longest == 0.0:
            continue
        save(p, 0)
        turned, value, fall = min(longest, most), settled_square(p, pull), 0.0
        for column in range(p.columns):
            fall += 2.0 * turned / longest * p.right_side[column] * p.step[column]
        expect_residuals(p, turned / longest)
        apply_step(p, turned / longest)
        evaluate(p)
        return_to_kept_goals(p)
        rise = settled_square(p, pull) - value
        is_better = rise < 0.0
        if not is_better and straighten_step(p, turned):
            is_better = settled_square(p, pull) < value
        if is_better:
            most, has_moved = min(2.0 * most, LONGEST_SETTLE), True
        else:
            restore(p, 0)
            evaluate(p)
            most = 0.25 * min(most, longest)
            if p.has_windows:  # to the lowest point of a parabola
                part_of_step = 0.5 * fall / (rise + fall) if fall > 0.0 else 0.0
                most = turned * min(max(part_of_step, LEAST_RETRIED), MOST_RETRIED)
    p.is_stationary = p.is_stationary or (part == PULL and force <= FIRST_PULL * sqrt(missed_square(p)))
    return has_moved and (p.is_stationary or p.has_missed_earlier or p.has_windows)


def expect_residuals(p, part):
    """Store the residuals after a part of the step, by the linear model."""
    for k in range(p.goals):
        put_rows_of(p, k, p.expected, linear_change(p, k, p.step, part, rows_of(p, k, p.residual)))


def straighten_step(p, turned):
    """Bring residuals back to the expected ones, by a step short beside `turned`; whether there is one.

    Goals that are nearly met make a narrow curved valley of the error, which straight steps leave.
    Second-order corrections follow it (Conn, Gould and Toint 2000, "Trust region methods", section 15.3).
    """
    for row in range(p.rows):
        offset = p.row_offset[row]
        p.row_offset[row] = p.expected[row]
        p.expected[row] = offset
        p.row_gain[row] = 1.0
        p.row_damping[row] = 1.0
    compute_step(p, 0.0, CORRECTED)
    for row in range(p.rows):
        p.row_offset[row] = p.expected[row]
    if longest_turn(p) > turned:
        return False
    apply_step(p, 1.0)
    p.steps -= 1
    evaluate(p)
    return_to_kept_goals(p)
    return True


def set_rank_weights(p, factor):
    """Set the weights of ranks in `settle`; whether `curved_product` has all that keeps goals from being met.

    Second derivatives of earlier goals that are neither positions nor rotations are not known.
    """
    if p.masked:
        return False
    for k in range(p.goals):
        if p.goal_kind[k] == WINDOW:
            if not p.is_met[k]:
                return False
            p.rank_weight[k] = p.earlier_weight
    weight, p.has_missed_earlier = 1.0, False
    for rank in range(p.stage, -1, -1):
        is_missed = False
        for k in range(p.goals):
            if p.goal_rank[k] == rank:
                if rank < p.stage and p.goal_kind[k] != POSITION and p.goal_kind[k] != ORIENTATION:
                    return False
                is_missed = is_missed or not p.is_met[k]
        if rank < p.stage and is_missed:
            weight *= p.earlier_weight / FIRST * factor
            p.has_missed_earlier = True
        for k in range(p.goals):
            if p.goal_rank[k] == rank:
                p.rank_weight[k] = p.earlier_weight if is_kept(p, k) else weight
    return weight <= MOST_WEIGHT


def keep_windows(p):
    """Note which chains are inside their reach windows, and that none presses against its window yet."""
    for k in range(p.goals):
        if p.goal_kind[k] == WINDOW:
            p.is_met[k] = 1 if p.distance[k] <= p.position_tolerance else 0
            p.force[p.first_row[k]] = 0.0


def is_kept(p, k):
    """Whether a goal is of an earlier rank and was met there, or a reach window that a chain was inside."""
    return p.goal_rank[k] < p.stage and p.is_met[k]


def counts_in_settle(p, k):
    """Whether `settle` counts a goal: up to the current rank, and of reach windows those that are pressed."""
    if p.goal_kind[k] == WINDOW:
        return p.row_is_active[p.first_row[k]]
    return p.goal_rank[k] <= p.stage and not has_room(p, k)


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
        if is_kept(p, k):
            has_kept = True
        elif p.goal_rank[k] <= p.stage and not has_room(p, k):
            for row in range(p.first_row[k], p.first_row[k + 1]):
                p.force[row] = p.rank_weight[k] * p.residual[row]
                add_force(p, k, row)
    if has_kept:
        for row in range(p.rows):
            p.row_gain[row] = 0.0
            p.row_damping[row] = 0.0
        for column in range(p.columns):
            p.gradient[column] = -SHORT_FORCE * p.right_side[column]
        for k in range(p.goals):
            if p.goal_kind[k] == WINDOW:
                p.force[p.first_row[k]] = 0.0
        p.only_kept = True
        compute_step(p, 1.0, 0.0)
        p.only_kept = False
        for k in range(p.goals):
            if is_kept(p, k):
                for row in range(p.first_row[k], p.first_row[k + 1]):
                    p.force[row] = p.right[row] / SHORT_FORCE
                    if p.goal_kind[k] == WINDOW:
                        p.force[row] = max(p.force[row], 0.0)
                    add_force(p, k, row)


def stretches(p, most):
    """Make reach windows active that a step of up to `most` radians would stretch; whether there are any."""
    longest = longest_turn(p)
    return activate_windows(p, most / longest if longest > most else 1.0)


def add_force(p, k, row):
    """Add the force of a row of goal `k` to `right_side`."""
    for n in range(p.first_span[k], p.first_span[k + 1]):
        for column in range(p.span_start[n], p.span_end[n]):
            p.right_side[column] -= p.force[row] * p.slope[row * p.columns + column]


def settled_square(p, pull):
    """What `settle` minimises: square errors and departure; of kept goals the augmented Lagrangian.

    That of a reach window is the one of an inequality (Rockafellar 1973).
    """
    sum_ = 0.0
    for k in range(p.goals):
        row = p.first_row[k]
        if p.goal_kind[k] == WINDOW and is_kept(p, k):
            over = max(p.residual[row], -p.force[row] / p.rank_weight[k])
            sum_ += (2.0 * p.force[row] + p.rank_weight[k] * over) * over
        elif p.goal_rank[k] <= p.stage and not has_room(p, k):
            square = 0.0
            for row in range(p.first_row[k], p.first_row[k + 1]):
                square += p.residual[row] * p.residual[row]
                if is_kept(p, k):
                    sum_ += 2.0 * p.force[row] * p.residual[row]
            sum_ += p.rank_weight[k] * square
    return sum_ + pull * p.departure_square


def return_to_kept_goals(p):
    """Return onto kept goals by undamped steps, from an evaluated pose."""
    if p.stage == 0 and not p.has_windows:
        return
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


def activate_pressed_normals(p, i, push, least):
    """Make the normals of a joint active that a push presses against; whether there are any.

    It presses by more than `least`. The most pressed normal comes first: in an oblique corner the push that
    it leaves may press against no other.
    """
    more = False
    for _ in range(p.normal_count[i]):
        pressed, most = -1, least
        for n in range(p.normal_count[i]):
            along = dot(push, vector_at(p.normals, 3 * (NORMALS * i + n)))
            if not p.is_active[NORMALS * i + n] and along > most:
                pressed, most = n, along
        if pressed < 0:
            break
        activate_normal(p, i, pressed)
        more = True
        for n in range(p.active_count[i]):
            basis = vector_at(p.active_basis, 9 * i + 3 * n)
            push = subtract(push, scaled(basis, dot(push, basis)))
    return more


def stop_at_borders(p, most):
    """Stop balls at borders that the step, `most` radians at most, would pass; whether there are any.

    The step ends at the tangent plane of the border where its end is clamped.
    """
    more, longest = False, longest_turn(p)
    part = most / longest if longest > most else 1.0
    for i in range(p.joints):
        if p.width[i] == 3 and p.active_count[i] == 0 and p.normal_count[i] < NORMALS:
            column, q, metric = (
                p.first_column[i],
                quaternion_at(p.rotation, 4 * i),
                quaternion_at(p.metric, 4 * i),
            )
            x, y, z = p.mobility[3 * i], p.mobility[3 * i + 1], p.mobility[3 * i + 2]
            step = scaled(vector_at(p.step, column), part)
            end = multiply(exponential(rotate(metric, Vector(x * step.x, y * step.y, z * step.z))), q)
            clamped = nearest_allowed(p.limit, LIMIT_WIDTH * i, end)
            outward = logarithm(multiply(end, conjugate(clamped)))
            if length(outward) > PASSED:
                outward = direction_of(outward)
                room = dot(outward, logarithm(multiply(clamped, conjugate(q))))
                normal = rotate_back(metric, outward)
                normal = Vector(x * normal.x, y * normal.y, z * normal.z)
                size, n = length(normal), p.normal_count[i]
                normal = scaled(normal, 1.0 / size)
                put_vector(p.normals, 3 * (NORMALS * i + n), normal)
                p.normal_count[i] += 1
                activate_normal(p, i, n)
                basis = vector_at(p.active_basis, 9 * i)
                put_vector(p.fixed_step, column, scaled(basis, room / size / dot(basis, normal)))
                more = True
    return more


def measure_borders(p):
    """Store the second derivatives that the borders of balls' limits add, in units of the columns.

    A step d along a border ends outside by half of its curvature times d.d. It is clamped by that much,
    against the force with which `right_side` presses on the border. Curvatures are those of the clamped ends
    of short steps along two tangents and between them.
    """
    for i in range(p.joints):
        for n in range(9):
            p.border[9 * i + n] = 0.0
        q, metric = quaternion_at(p.rotation, 4 * i), quaternion_at(p.metric, 4 * i)
        x, y, z = p.mobility[3 * i], p.mobility[3 * i + 1], p.mobility[3 * i + 2]
        for n in range(p.normal_count[i]):
            normal = vector_at(p.normals, 3 * (NORMALS * i + n))
            force = dot(vector_at(p.right_side, p.first_column[i]), normal)
            if force <= 0.0 or (p.normal_pairs[i] >> n) & 1:
                continue
            scaled_normal = Vector(normal.x / x, normal.y / y, normal.z / z)
            force *= length(scaled_normal)
            outward = rotate(metric, direction_of(scaled_normal))
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
            to_one = scaled(add(scaled(one, along_one), scaled(two, across)), force)
            to_two = scaled(add(scaled(one, across), scaled(two, along_two)), force)
            add_product(p.border, 9 * i, one, to_one)
            add_product(p.border, 9 * i, two, to_two)


def border_curvature(p, i, q, outward, tangent):
    """The curvature of a limit's border along a tangent, 0 where it is not outward."""
    outside = multiply(exponential(scaled(tangent, BORDER_STEP)), q)
    back = logarithm(multiply(nearest_allowed(p.limit, LIMIT_WIDTH * i, outside), conjugate(outside)))
    return max(-2.0 * dot(back, outward) / (BORDER_STEP * BORDER_STEP), 0.0)


def add_product(values, at, a, b):
    """Add the 3 x 3 matrix a b^T, by rows."""
    put_vector(values, at, add(vector_at(values, at), scaled(b, a.x)))
    put_vector(values, at + 3, add(vector_at(values, at + 3), scaled(b, a.y)))
    put_vector(values, at + 6, add(vector_at(values, at + 6), scaled(b, a.z)))


def solve_curved(p, pull, most):
    """Solve (M + pull) step = `right_side` for the free columns, by conjugate gradients; returns its size.

    M are the second derivatives of half the square error, see `curved_product`. They end where the remainder
    is small enough for a step of Newton (Dembo, Eisenstat and Steihaug 1982), or M + pull is not positive.

    With reach windows they are preconditioned, and kept goals are constraints (Gould, Hribar and Nocedal
    2001): near a straight chain the slope of a window vanishes, and its weight would not hold it. They end at
    `most` radians too, and go along a direction in which M + pull is not positive (Steihaug 1983).
    """
    shift = 0.0
    for column in range(p.columns):
        p.step[column] = p.fixed_step[column]
    if p.has_windows:
        shift = factorise_curved(p, pull)
        solve_step(p)
    curved_product(p, p.step, p.product, pull)
    for column in range(p.columns):
        p.remainder[column] = p.right_side[column] - p.product[column]
    project_free(p, p.remainder)
    square, inner = square_of(p, p.remainder), precondition(p, shift)
    for column in range(p.columns):
        p.direction[column] = p.conditioned[column]
    force, settled = sqrt(shift * inner if p.has_windows else square), SETTLED * pull
    least = min(REMAINDER * REMAINDER, square / (pull * pull)) * inner
    for _ in range(4 * p.columns):
        if inner <= least or (square <= settled * settled and not p.has_windows):
            break
        curved_product(p, p.direction, p.product, pull)
        project_free(p, p.product)
        curvature = 0.0
        for column in range(p.columns):
            curvature += p.direction[column] * p.product[column]
        is_convex = curvature > 0.0
        if not is_convex and not p.has_windows:
            break
        part, before = inner / curvature if is_convex else FAR, inner
        for column in range(p.columns):
            p.step[column] += part * p.direction[column]
            p.remainder[column] -= part * p.product[column]
        if p.has_windows and (not is_convex or longest_turn(p) > most):
            break
        square, inner = square_of(p, p.remainder), precondition(p, shift)
        for column in range(p.columns):
            p.direction[column] = p.conditioned[column] + inner / before * p.direction[column]
    return force


def factorise_curved(p, pull):
    """Factorise J J^T + shift W^-1 for `precondition`, W infinite for kept goals; returns the shift.

    It stands for the pull and the second derivatives of residuals, which the forces measure.
    """
    square = 0.0
    for k in range(p.goals):
        for row in range(p.first_row[k], p.first_row[k + 1]):
            p.row_gain[row] = 1.0 if is_kept(p, k) else 0.0
            if p.row_is_active[row]:
                square += p.force[row] * p.force[row]
                p.row_damping[row] = 0.0 if is_kept(p, k) else 1.0 / p.rank_weight[k]
    for column in range(p.columns):
        p.free_gradient[column] = 0.0
    shift = pull + CURVED * sqrt(square)
    factorise(p, shift)
    return shift


def precondition(p, shift):
    """Write `conditioned` = (J^T W J + shift)^-1 `remainder`; returns the product of both.

    Without reach windows they are equal.
    """
    for column in range(p.columns):
        p.conditioned[column] = p.remainder[column]
    if not p.has_windows:
        return square_of(p, p.remainder)
    for k in range(p.goals):
        for row in range(p.first_row[k], p.first_row[k + 1]):
            along, first = 0.0, blocked_index(p.columns, row, 0)
            if p.row_is_active[row]:
                for n in range(p.first_span[k], p.first_span[k + 1]):
                    for column in range(p.span_start[n], p.span_end[n]):
                        along += p.free_slope[first + 4 * column] * p.remainder[column]
            p.right[row] = along
    solve_symmetric(p)
    for k in range(p.goals):
        for row in range(p.first_row[k], p.first_row[k + 1]):
            first, by = blocked_index(p.columns, row, 0), p.right[row]
            if p.row_is_active[row]:
                for n in range(p.first_span[k], p.first_span[k + 1]):
                    for column in range(p.span_start[n], p.span_end[n]):
                        p.conditioned[column] -= p.free_slope[first + 4 * column] * by
    inner = 0.0
    for column in range(p.columns):
        p.conditioned[column] /= shift
        inner += p.conditioned[column] * p.remainder[column]
    return inner


def square_of(p, values):
    """The sum of squares of a step's numbers."""
    sum_ = 0.0
    for column in range(p.columns):
        sum_ += values[column] * values[column]
    return sum_


def project_free(p, values):
    """Project a step onto the free directions of limits."""
    for column in range(p.columns):
        if p.is_fixed[column]:
            values[column] = 0.0
    for i in range(p.joints):
        for n in range(p.active_count[i]):
            remove_along(values, p.first_column[i], 1, vector_at(p.active_basis, 9 * i + 3 * n))


def curved_product(p, v, product, pull):
    """Write the product of the second derivatives of half the square error, plus `pull`, with a step `v`.

    Second derivatives of residuals are those of positions, rotations and reach windows. With a the axis of a
    column, J its slope, S the motion of the point by joints below, T the turn by joints above and f the
    force, a rotation of a joint has f.(a x S) + f.(T x J) of a position.
    """
    for column in range(p.columns):
        product[column] = pull * v[column]
    for k in range(p.goals):
        if counts_in_settle(p, k):
            along = scaled(linear_change(p, k, v, 1.0, Vector(0.0, 0.0, 0.0)), p.rank_weight[k])
            add_rows(p, k, along, product)
    for i in range(p.joints):
        if p.normal_count[i] > 0:
            column = p.first_column[i]
            step = vector_at(v, column)
            for n in range(3):
                product[column + n] += dot(vector_at(p.border, 9 * i + 3 * n), step)
    for n in range(p.evaluated_count):
        i = p.evaluated[n]
        turn = Vector(0.0, 0.0, 0.0)
        if p.inherits[i] and p.parent[i] >= 0:
            turn = vector_at(p.turn_of_step, 3 * p.parent[i])
        for column in range(p.first_column[i], p.first_column[i] + p.width[i]):
            turn = add(turn, scaled(vector_at(p.column_axis, 3 * column), v[column]))
        put_vector(p.turn_of_step, 3 * i, turn)
    for k in range(p.goals):
        if p.goal_kind[k] == POSITION and p.goal_rank[k] <= p.stage:
            add_curvature(p, k, v, product)
        elif p.goal_kind[k] == ORIENTATION and p.goal_rank[k] <= p.stage:
            add_turn_curvature(p, k, v, product)
        elif p.goal_kind[k] == WINDOW and p.row_is_active[p.first_row[k]]:
            add_window_curvature(p, k, v, product)


def add_curvature(p, k, v, product):
    """Add the part of a position's second derivatives to `curved_product`."""
    row, columns = p.first_row[k], p.columns
    force = vector_at(p.force, row)
    x, y, z = row * columns, (row + 1) * columns, (row + 2) * columns
    moved, i = Vector(0.0, 0.0, 0.0), p.goal_joint[k]
    while i >= 0:
        first, slides, up = p.first_column[i], p.first_column[i] + p.width[i], p.parent[i]
        shift_turn = Vector(0.0, 0.0, 0.0)
        if up >= 0:
            shift_turn = vector_at(p.turn_of_step, 3 * up)
        base_turn = shift_turn if p.inherits[i] else Vector(0.0, 0.0, 0.0)
        joint_turn, joint_shift = Vector(0.0, 0.0, 0.0), Vector(0.0, 0.0, 0.0)
        for column in range(first, slides):
            joint_turn = add(joint_turn, scaled(vector_at(p.column_axis, 3 * column), v[column]))
            slope = Vector(p.slope[x + column], p.slope[y + column], p.slope[z + column])
            joint_shift = add(joint_shift, scaled(slope, v[column]))
        below, above = add(moved, scaled(joint_shift, 0.5)), add(base_turn, scaled(joint_turn, 0.5))
        for column in range(first, slides):
            slope = Vector(p.slope[x + column], p.slope[y + column], p.slope[z + column])
            change = add(cross(vector_at(p.column_axis, 3 * column), below), cross(above, slope))
            product[column] += dot(force, change)
        slid = Vector(0.0, 0.0, 0.0)
        for column in range(slides, p.first_column[i + 1]):
            slope = Vector(p.slope[x + column], p.slope[y + column], p.slope[z + column])
            product[column] += dot(force, cross(shift_turn, slope))
            slid = add(slid, scaled(slope, v[column]))
        # Rotations above a joint that does not inherit them do not turn what is below it.
        moved = add(add(moved, joint_shift), slid) if p.inherits[i] else slid
        i = up


def add_turn_curvature(p, k, v, product):
    """Add the part of a rotation's second derivatives to `curved_product`.

    Of turns A above and B below the whole turn is A + B + A x B / 2, and higher orders.
    """
    force = scaled(vector_at(p.force, p.first_row[k]), angle_factor(p, k))
    below, i = Vector(0.0, 0.0, 0.0), p.goal_joint[k]
    while i >= 0:
        above, up, joint_turn = Vector(0.0, 0.0, 0.0), p.parent[i], Vector(0.0, 0.0, 0.0)
        if up >= 0 and p.inherits[i]:
            above = vector_at(p.turn_of_step, 3 * up)
        moment = scaled(cross(subtract(below, above), force), 0.5)
        for column in range(p.first_column[i], p.first_column[i] + p.width[i]):
            axis = vector_at(p.column_axis, 3 * column)
            product[column] += dot(axis, moment)
            joint_turn = add(joint_turn, scaled(axis, v[column]))
        below = add(below, joint_turn)
        if not p.inherits[i]:
            return
        i = up


def add_window_curvature(p, k, v, product):
    """Add the part of a reach window's second derivatives to `curved_product`.

    With u the unit line and e its length, a force f has that of a position with force f u, and f/e times the
    part of the end's motion across the line. Turns of the window's first joint and above keep the length.
    """
    root, end, line = p.goal_root[k], goal_point(p, k), window_line(p, k)
    extent = length(line)
    if extent == 0.0:
        return
    along, push = scaled(line, 1.0 / extent), p.force[p.first_row[k]] * length_factor(p, k)
    total, i = Vector(0.0, 0.0, 0.0), p.goal_joint[k]
    while i != root:
        total = add(
            total, add(cross(joint_turn(p, i, v), subtract(end, vector_at(p.head, 3 * i))), slid(p, i, v))
        )
        i = p.parent[i]
    force, across = scaled(along, push), scaled(reject(total, along), push / extent)
    moved, i = Vector(0.0, 0.0, 0.0), p.goal_joint[k]
    while i != root:
        slides, up = p.first_column[i] + p.width[i], p.parent[i]
        above = subtract(vector_at(p.turn_of_step, 3 * up), vector_at(p.turn_of_step, 3 * root))
        turn, arm = joint_turn(p, i, v), subtract(end, vector_at(p.head, 3 * i))
        shift = cross(turn, arm)
        below, base_turn = add(moved, scaled(shift, 0.5)), add(above, scaled(turn, 0.5))
        for column in range(p.first_column[i], slides):
            axis = vector_at(p.column_axis, 3 * column)
            slope = cross(axis, arm)
            product[column] += dot(force, add(cross(axis, below), cross(base_turn, slope))) + dot(
                across, slope
            )
        for column in range(slides, p.first_column[i + 1]):
            axis = vector_at(p.column_axis, 3 * column)
            product[column] += dot(force, cross(above, axis)) + dot(across, axis)
        moved = add(moved, add(shift, slid(p, i, v)))
        i = up


def joint_turn(p, i, v):
    """The rotation vector of a joint in a step `v`, model space."""
    turn = Vector(0.0, 0.0, 0.0)
    for column in range(p.first_column[i], p.first_column[i] + p.width[i]):
        turn = add(turn, scaled(vector_at(p.column_axis, 3 * column), v[column]))
    return turn


def slid(p, i, v):
    """The shift of a joint by its slides in a step `v`, model space."""
    shift = Vector(0.0, 0.0, 0.0)
    for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
        shift = add(shift, scaled(vector_at(p.column_axis, 3 * column), v[column]))
    return shift
