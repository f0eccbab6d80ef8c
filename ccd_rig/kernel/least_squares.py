"""Damped least squares of all joints at once, inside their limits: *reach* the goals, *slide* along them.

Unknowns are one number per column: a hinge's angle, the three parts of a ball's rotation vector in its base,
a slide's shift; each in parts of its mobility. Steps are those of Levenberg and Marquardt in dual form, with
K = J P B^T and P the projection onto what limits leave free (an active set):

    d = -g - P B^T (K + damping)^-1 (w r - J g)

Here r is the residual, w the part of it to remove, J its slope, B the part of J whose joints may move for
each goal (most often all of it), and g the part of the way back to the reference pose (Rosen 1960, "The
gradient projection method for nonlinear programming"): w = 1 and g = 0 reaches, w = 0 slides.
"""

from __future__ import annotations

from math import fabs, pi, sqrt

from .geometry import (
    add,
    conjugate,
    cross,
    dot,
    exponential,
    length,
    logarithm,
    multiply,
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
    FIRST,
    angle_factor,
    goal_point,
    has_room,
    is_served_now,
    jacobian_factor,
    measure,
    slopes,
)
from .limits import LIMIT_WIDTH, hinge_range, is_hinge, nearest_allowed, outward_normals
from .plain import Vector
from .skeleton import NORMALS, POLE, WINDOW, restore, save, set_angle

LONGEST_STEP = 1.0
"""Radians that a joint turns in a step of `reach` at most."""
LONGEST_SLIDE = 0.5
"""The same of `slide`: the way back to the goals stays short."""
NEAR = 0.3
"""Part of the tolerances within which a pose counts as on its goals: the rest is left to rounding."""
SHARP = 1e-3
"""The same of `slide`: where the departure hardly curves, poses beside the goals would end degrees apart."""
BORDER = 1e-7
"""Radians from a limit's border within which a rotation stands on it."""
ROUNDS = 6
"""Most times that a step is solved anew with more limits held."""
PATIENCE = 8
"""So many steps in a row that win little end `reach`."""
SHARED_DAMPING = 0.1
"""Part of the square error by which a step shared by all joints is damped (Sugihara 2011)."""
DEPENDENT = 1e-12
"""Part of a row's square that rounding may leave of it beside rows that it depends on."""
NEVER = 1e150
"""The pivot of such a row: what is divided by it is nothing."""
LEAST_DAMPING = 1e-12
"""Added to the system of each step: rows that say the same leave it solvable."""
STILL = 1e-3
"""Radians of a step back to the reference below which a pose is the nearest."""
ASIDE = 0.1
"""Part of a slide's step that the way back to the goals may be long: slopes tell it that far."""
FLAT = 1e-7
"""Part of the departure that a step must win."""


# Where the pose is ----------------------------------------------------------------------------------


def look(p):
    """Note residuals and slopes, the borders that the pose stands on, and its departure."""
    measure(p)
    slopes(p)
    note_borders(p)
    depart(p)


def note_borders(p):
    """Note the outward normals of limits, in units of the columns."""
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


def depart(p):
    """Note the sum of squares of what joints are turned from the reference, and half its gradient."""
    p.departed = 0.0
    if p.to_region:
        depart_from_regions(p)
        return
    if not p.has_reference:
        return
    for i in range(p.joints):
        column = p.first_column[i]
        if p.width[i] == 1:
            off = p.angle[i] - p.reference_angle[i]
            lower, upper = hinge_range(p.limit, LIMIT_WIDTH * i)
            if upper - lower >= 2.0 * pi:
                off = wrapped(off, 0.0)
            off = off / p.mobility[3 * i]
            p.departure[column] = off
            p.departed += off * off
        elif p.width[i] == 3:
            depart_ball(p, i, quaternion_at(p.reference_rotation, 4 * i))
        for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
            off = dot(
                vector_at(p.slide_axis, 3 * p.column_slide[column]),
                subtract(vector_at(p.translation, 3 * i), vector_at(p.reference_translation, 3 * i)),
            )
            p.departure[column] = off / p.reach
            p.departed += p.departure[column] * p.departure[column]


def depart_from_regions(p):
    """The same where what counts is how far joints are outside their comfort regions."""
    for column in range(p.columns):
        p.departure[column] = 0.0
    for i in range(p.joints):
        if p.width[i] == 1 and is_hinge(p.region, LIMIT_WIDTH * i):
            lower, upper = hinge_range(p.region, LIMIT_WIDTH * i)
            if upper - lower < 2.0 * pi:
                off = (p.angle[i] - min(max(p.angle[i], lower), upper)) / p.mobility[3 * i]
                p.departure[p.first_column[i]] = off
                p.departed += off * off
        elif p.width[i] == 3:
            q = quaternion_at(p.rotation, 4 * i)
            nearest = nearest_allowed(p.region, LIMIT_WIDTH * i, q)
            if nearest.w != q.w or nearest.x != q.x or nearest.y != q.y or nearest.z != q.z:
                depart_ball(p, i, nearest)


def depart_ball(p, i, reference):
    """The departure of a ball joint: u = S^-1 M^T v, with v the rotation vector from the reference.

    Its half gradient is S M^T J^-T M S^-1 u, where J^-T = 1 + [v] / 2 + [v]^2 / 12 + ... is that of SO(3).
    """
    column = p.first_column[i]
    metric = quaternion_at(p.metric, 4 * i)
    turn = multiply(quaternion_at(p.rotation, 4 * i), conjugate(reference))
    v = logarithm(turn)
    x, y, z = p.mobility[3 * i], p.mobility[3 * i + 1], p.mobility[3 * i + 2]
    u = rotate_back(metric, v)
    u = Vector(u.x / x, u.y / y, u.z / z)
    p.departed += dot(u, u)
    if x == y and y == z:
        p.departure[column] = u.x
        p.departure[column + 1] = u.y
        p.departure[column + 2] = u.z
        return
    w = rotate(metric, Vector(u.x / x, u.y / y, u.z / z))
    once = cross(v, w)
    w = rotate_back(
        metric, add(w, add(scaled(once, 0.5), scaled(cross(v, once), jacobian_factor(dot(v, v)))))
    )
    p.departure[column] = x * w.x
    p.departure[column + 1] = y * w.y
    p.departure[column + 2] = z * w.z


# Steps ----------------------------------------------------------------------------------------------


def find_step(p, back, damping):
    """Note the step that removes `row_wish` of the residuals and goes part `back` of the departure.

    Limits that the step would leave are held, and the step is found anew.
    """
    free_all(p, back)
    for _ in range(ROUNDS + p.goals if p.has_windows or p.has_poles else ROUNDS):
        solve_step(p, damping)
        if not hold_more(p):
            return


def free_all(p, back):
    """Let all columns move but for limits without any room."""
    for k in range(p.goals):
        counts_now = p.goal_rank[k] <= p.stage and not has_room(p, k)
        for row in range(p.first_row[k], p.first_row[k + 1]):
            p.row_counts[row] = counts_now
    for row in range(p.rows):
        for column in range(p.columns):
            at = row * p.columns + column
            p.free_slope[free_place(p, row, column)] = p.serving[at] if p.masked else p.slope[at]
    for column in range(p.columns):
        p.is_fixed[column] = 0
        p.fixed_step[column] = 0.0
        p.free_departure[column] = back * p.pull[column] if back != 0.0 else 0.0
    for i in range(p.joints):
        p.held_count[i] = 0
        for n in range(p.normal_count[i]):
            p.is_held[NORMALS * i + n] = 0
            if (p.normal_pairs[i] >> n) & 1:
                hold_normal(p, i, n)


def free_place(p, row, column):
    """Where `free_slope` has the slope of a row: rows stand in fours, with their columns side by side."""
    return (row - row % 4) * p.columns + 4 * column + row % 4


def hold_normal(p, i, n):
    """Take a normal of a joint's limit out of what it may move."""
    p.is_held[NORMALS * i + n] = 1
    normal, basis = vector_at(p.normals, 3 * (NORMALS * i + n)), 9 * i
    for k in range(p.held_count[i]):
        other = vector_at(p.held_basis, basis + 3 * k)
        normal = subtract(normal, scaled(other, dot(normal, other)))
    size = length(normal)
    if size < 1e-6 or p.held_count[i] >= 3:
        return
    normal = scaled(normal, 1.0 / size)
    put_vector(p.held_basis, basis + 3 * p.held_count[i], normal)
    p.held_count[i] += 1
    column = p.first_column[i]
    for row in range(p.rows):
        remove_along(p.free_slope, free_place(p, row, column), 4, normal)
    remove_along(p.free_departure, column, 1, normal)


def remove_along(values, at, apart, normal):
    """Take the part along a unit vector out of three numbers, which stand `apart`."""
    along = values[at] * normal.x + values[at + apart] * normal.y + values[at + 2 * apart] * normal.z
    values[at] -= along * normal.x
    values[at + apart] -= along * normal.y
    values[at + 2 * apart] -= along * normal.z


def fix_column(p, column, step):
    """Let a hinge or slide make a given step and no other."""
    p.is_fixed[column] = 1
    p.fixed_step[column] = step
    p.free_departure[column] = 0.0
    for row in range(p.rows):
        p.free_slope[free_place(p, row, column)] = 0.0


def solve_step(p, damping):
    """Note the step of what is free, beside fixed steps."""
    rows, columns = p.rows, p.columns
    for a in range(rows):
        others = rows if p.masked else a + 1
        for b in range(others):
            p.system[a * rows + b] = 0.0
        if not p.row_counts[a]:
            p.system[a * rows + a] = 1.0
            p.right[a] = 0.0
            continue
        for b in range(0, others, 4):  # four sums at once: one has to wait for itself
            one, two, three, four = 0.0, 0.0, 0.0, 0.0
            from_a, from_b = free_place(p, a, 0), free_place(p, b, 0)
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
        sum_ = p.row_wish[a] * (p.residual[a] - p.row_offset[a])
        for column in range(columns):
            sum_ += p.slope[a * columns + column] * (p.fixed_step[column] - p.free_departure[column])
        p.right[a] = sum_
    if p.masked:
        solve_general(p)
    else:
        solve_symmetric(p)
    for column in range(columns):
        sum_ = p.fixed_step[column] - p.free_departure[column]
        for a in range(rows):
            sum_ -= p.free_slope[free_place(p, a, column)] * p.right[a]
        p.step[column] = sum_


def note_product(p, a, b, product):
    """Put a product of two rows of slopes, of which both count, into the system."""
    if b < p.rows and p.row_counts[b]:
        p.system[a * p.rows + b] = product


def solve_symmetric(p):
    """Cholesky's method; `right` becomes the solution.

    A row of which nothing but rounding is left beside those before it asks for nothing of its own.
    """
    n = p.rows
    for i in range(n):
        least = DEPENDENT * p.system[i * n + i]
        for j in range(i + 1):
            sum_ = p.system[i * n + j]
            for k in range(j):
                sum_ -= p.system[i * n + k] * p.system[j * n + k]
            if i == j:
                p.system[i * n + i] = sqrt(sum_) if sum_ > least else NEVER
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
    """Gauss's method with exchanged rows; `right` becomes the solution."""
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


def hold_more(p):
    """Hold the limits that the step would leave; whether there are any."""
    more = hold_windows(p) if p.has_windows else False
    more = (p.has_poles and hold_poles(p)) or more
    for i in range(p.joints):
        if p.width[i] == 1:
            column = p.first_column[i]
            lower, upper = hinge_range(p.limit, LIMIT_WIDTH * i)
            if not p.is_fixed[column] and upper - lower < 2.0 * pi:
                more = stop_at(p, column, p.angle[i], lower, upper, p.mobility[3 * i]) or more
        for n in range(p.normal_count[i]):
            if not p.is_held[NORMALS * i + n]:
                step = vector_at(p.step, p.first_column[i])
                if dot(step, vector_at(p.normals, 3 * (NORMALS * i + n))) > 1e-9:
                    hold_normal(p, i, n)
                    more = True
        for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
            if not p.is_fixed[column]:
                slide = p.column_slide[column]
                place = dot(vector_at(p.slide_axis, 3 * slide), vector_at(p.translation, 3 * i))
                lower, upper = p.slide_range[2 * slide], p.slide_range[2 * slide + 1]
                more = stop_at(p, column, place, lower, upper, p.reach) or more
    return more


def hold_windows(p):
    """Let reach windows count that the step would stretch past their end; whether there are any."""
    more = False
    for k in range(p.goals):
        row = p.first_row[k]
        if p.goal_kind[k] == WINDOW and not p.row_counts[row]:
            over = p.residual[row]
            for column in range(p.columns):
                over += p.slope[row * p.columns + column] * p.step[column]
            if over > 1e-12:
                p.row_counts[row] = 1
                more = True
    return more


def hold_poles(p):
    """Let poles count whose chains the step would bend out of their play, to its border; whether there are
    any."""
    more = False
    for k in range(p.goals):
        row = p.first_row[k]
        if p.goal_kind[k] == POLE and p.goal_rank[k] <= p.stage and not p.row_counts[row]:
            by_angle = angle_factor(p, k) * p.bend_share[k]
            to, border = by_angle * p.turned[k], by_angle * p.play[k]
            for column in range(p.columns):
                to += p.slope[row * p.columns + column] * p.step[column]
            if fabs(to) > border + 1e-12:
                p.residual[row] = by_angle * p.turned[k] - (border if to > 0.0 else -border)
                p.row_wish[row] = 1.0
                p.row_counts[row] = 1
                more = True
    return more


def stop_at(p, column, value, lower, upper, scale):
    """Fix a column's step to where its range ends, if it would leave that; whether it would."""
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
            longest = max(longest, fabs(p.step[slide]))
    return longest


def make_step(p, part):
    """Move part of the step, and bring joints back inside their limits."""
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
            to = place + part * p.reach * p.step[k]
            to = min(max(to, p.slide_range[2 * slide]), p.slide_range[2 * slide + 1])
            put_vector(p.translation, 3 * i, add(shift, scaled(axis, to - place)))
    p.steps += 1


def wish(p, part):
    """Ask steps to remove a part of the residuals; goals served before those served now are kept."""
    for k in range(p.goals):
        now = is_served_now(p, k)
        for row in range(p.first_row[k], p.first_row[k + 1]):
            p.row_wish[row] = part if now else 1.0
            p.row_damping[row] = 1.0 if now else 1.0 / FIRST


# Reach and slide ------------------------------------------------------------------------------------


def reach(p, slow_part):
    """Meet the goals by damped least squares, with no pull to the reference; whether they are met.

    Looks at the pose first, and leaves what it saw of the last. Ends with the try's steps, or after
    `PATIENCE` in a row that leave more than `slow_part` of the square error.
    """
    wish(p, 1.0)
    damping, growth, slow = 1e-3, 5.0, 0
    look(p)
    while True:
        if p.worst <= NEAR:
            return True
        if p.steps >= p.last_step:
            p.ran_out = p.worst > p.enough
            break
        square = p.square
        save(p, 0)
        find_step(p, 0.0, damping * square)
        longest = longest_turn(p)
        part = LONGEST_STEP / longest if longest > LONGEST_STEP else 1.0
        predicted = predicted_square(p, part)
        make_step(p, part)
        look(p)
        if p.square < square:
            # How much of what was predicted came true (More 1978): curvature asks for damping.
            gain = (square - p.square) / max(square - predicted, 1e-30)
            if gain > 0.75:
                damping = max(0.3 * damping, 1e-6)
            elif gain < 0.25:
                damping *= 2.0
            growth = 5.0
            slow = slow + 1 if p.square > slow_part * square else 0
        else:
            restore(p, 0)
            look(p)
            damping *= growth
            growth *= 2.0
            slow += 1
        if slow >= PATIENCE:
            break
    return p.worst <= p.enough


def share_pass(p):
    """One damped step of all joints at once towards a position; how far that moved the effector."""
    before = goal_point(p, 0)
    wish(p, 1.0)
    look(p)
    find_step(p, 0.0, SHARED_DAMPING * p.square)
    # A long chain whose joints turn by a little each would be rolled up.
    together = max(longest_turn(p), turn_of_all(p))
    make_step(p, LONGEST_STEP / together if together > LONGEST_STEP else 1.0)
    p.steps -= 1
    measure(p)
    return length(subtract(goal_point(p, 0), before))


def turn_of_all(p):
    """How far all rotations of the step together turn, radians."""
    sum_ = Vector(0.0, 0.0, 0.0)
    for column in range(p.columns):
        if p.column_slide[column] < 0:
            sum_ = add(sum_, scaled(vector_at(p.column_axis, 3 * column), p.step[column]))
    return length(sum_)


def predicted_square(p, part):
    """The square error after part of the step, if residuals were as linear as their slopes say."""
    sum_ = 0.0
    for k in range(p.goals):
        now = is_served_now(p, k)
        for row in range(p.first_row[k], p.first_row[k + 1]):
            if p.row_counts[row]:
                off = p.residual[row] - p.row_offset[row]
                for column in range(p.columns):
                    off += part * p.slope[row * p.columns + column] * p.step[column]
                sum_ += off * off if now else FIRST * off * off
    return sum_


def slide(p):
    """Go along the goals towards the reference, from a pose that meets them.

    Each step goes down the departure's gradient in what the goals leave free, and back onto the goals. The
    departure is that of the pose on them, by their slopes: where it falls the step counts, else it is
    shortened. The next step's length is by the curvature seen in the last one (Barzilai and Borwein 1988).
    """
    part, turned, least = 1.0, 0.0, 0.0
    has_old, is_judged = False, True
    save(p, 0)
    while p.steps < p.last_step and p.departed > 0.0:
        beside = near_goals(p, ASIDE * turned)
        if is_judged and beside < 0.0:
            break
        if not is_judged:
            if not 0.0 <= beside < least:
                restore(p, 1)
                look(p)
                part, has_old, is_judged = 0.4 * part, False, True
                if 0.4 * turned < STILL:
                    break
                continue
            if p.worst <= p.enough:
                save(p, 0)
            if least - beside < FLAT * least:
                break
            has_old = True
        least = beside
        wish(p, 0.0)
        for column in range(p.columns):
            p.pull[column] = p.departure[column]
        find_step(p, 1.0, 1e-10)
        longest = longest_turn(p)
        if not longest >= STILL:
            break
        if has_old:
            part = curvature_part(p, part)
        part = min(part, LONGEST_SLIDE / longest)
        turned = part * longest
        for column in range(p.columns):
            p.old_gradient[column] = p.step[column]
            p.old_step[column] = part * p.step[column]
            p.step[column] = p.old_step[column] + p.way_back[column]
        save(p, 1)
        make_step(p, 1.0)
        look(p)
        is_judged = False
    come_back(p)
    if p.worst > p.enough:
        restore(p, 0)
        look(p)


def near_goals(p, aside):
    """Come so near to the goals that joints turn by `aside` at most on the way back, and note that.

    Returns:
        The departure of the pose on the goals, as far as slopes tell; -1 where they stay far.
    """
    wish(p, 1.0)
    for _ in range(4):
        find_step(p, 0.0, LEAST_DAMPING)
        longest = longest_turn(p)
        if p.worst <= p.enough or longest <= aside:
            beside = p.departed
            for column in range(p.columns):
                p.way_back[column] = p.step[column]
                beside += 2.0 * p.departure[column] * p.step[column]
            return beside
        if longest > LONGEST_STEP:
            break
        make_step(p, 1.0)
        look(p)
    return -1.0


def come_back(p):
    """Return onto the goals by undamped steps, from a pose that has been looked at."""
    wish(p, 1.0)
    for _ in range(4):
        if p.worst <= SHARP:
            return
        find_step(p, 0.0, LEAST_DAMPING)
        if longest_turn(p) > LONGEST_STEP:
            return
        make_step(p, 1.0)
        look(p)


def curvature_part(p, part):
    """The length of the next step: s.s / s.y, with s the last step and y the change of the gradient."""
    along, change = 0.0, 0.0
    for column in range(p.columns):
        along += p.old_step[column] * p.old_step[column]
        change += p.old_step[column] * (p.old_gradient[column] - p.step[column])
    if change <= 0.0 or along <= 0.0:
        return min(2.0 * part, 4.0)
    return min(max(along / change, 0.1), 4.0)
