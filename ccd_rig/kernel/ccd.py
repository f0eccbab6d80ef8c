"""Cyclic coordinate descent: the best move of a joint for all goals above it, in each order of joints.

A turn R of a joint minimises sum w |R a - b|^2 over pairs (a, b) of vectors from its head:

- position: the effector, and its target;
- orientation and direction: axes of the frame, and their targets, times a lever;
- pole: the chain's bend, and a vector of the same length towards its side;
- balance: the lever of the centre of mass, and the same plus the centre's offset to its target.

The minimum is the shortest arc for one pair, Davenport's quaternion for several (Horn 1987), and an arc
tangent for a hinge. The limit is applied right after the step (Kenwright 2012, sections 5 to 9).
"""

from __future__ import annotations

from math import fabs, pi, sqrt

from .elementary import atan2
from .geometry import (
    NOISE,
    add,
    angle_of,
    axis_rotation,
    between,
    conjugate,
    cross,
    dot,
    exponential,
    length,
    logarithm,
    multiply,
    opening_turn,
    perpendicular,
    put_quaternion,
    put_vector,
    quaternion_at,
    rotate,
    scaled,
    subtract,
    turn_towards,
    unit,
    vector_at,
    wrapped,
)
from .goals import (
    BALANCE,
    BEND_RANGE,
    DIRECTION,
    LEVER,
    ORIENTATION,
    POLE,
    POSITION,
    WINDOW,
    counted_part,
    gather_mass,
    goal_point,
    heads_between,
    measure,
    pole_angle,
    pole_angle_of,
    total_moment,
    window_line,
)
from .kinematics import forward, place
from .limits import LIMIT_WIDTH, hinge_axis, hinge_range, nearest_allowed
from .plain import Quaternion, Vector
from .skeleton import set_angle, set_rotation, set_translation

TIP_TO_ROOT = 0  # orders of joints: see `settings.Sweep`
ROOT_TO_TIP = 1
ALTERNATING = 2
BOUNCE_TIP = 3
BOUNCE_ROOT = 4
SMART_BOUNCE = 5
LARGEST_ERROR = 6

SMART_THRESHOLD = 1e-3
"""Radians: a correction above it sends a smart bounce back to its start (Kenwright 2012, listing 4)."""
SMART_GAIN = 0.64
"""Part of the squared error that may be left since the last time a smart bounce went back."""
INERTIA = 1e-2
"""Least gain of a turn, in parts of the largest gain, where several pairs leave a joint nearly free."""
HALVINGS = 12
"""Bisections of a step that would stretch a reach window: to 1/4096 of it."""
BEND_IN = 0.1
"""Radians by which joints are bent before a chain is bent into its reach window."""
SMALL_ARM = 1e-6
"""Part of the reach below which an arm has no direction."""
ENTRY_PASSES = 40
"""Most passes that bend a chain into its reach window."""
BACKWARD = 2.0
"""Ranges of a bend within which a chain that bends against its own axis is taken to the other side."""


# Passes ---------------------------------------------------------------------------------------------


def run_pass(p, order, number, fraction):
    """Run an iteration over the joints that may move; returns the longest motion of an effector by a step.

    Args:
        order: one of the above.
        number: of iterations before.
        fraction: part of each joint's best step.
    """
    start_carrying(p)
    count = p.moving_count
    longest = 0.0
    if p.has_tips:
        solve_tips(p)
        if is_single_goal_met(p):
            measure(p)
            return 0.0
    if order == ALTERNATING:
        order = ROOT_TO_TIP if number & 1 else TIP_TO_ROOT
    if order == ROOT_TO_TIP or order == TIP_TO_ROOT:
        for n in range(count):
            longest = max(longest, visit(p, p.moving[n if order == ROOT_TO_TIP else count - 1 - n], fraction))
            if is_single_goal_met(p):
                break
    elif order == BOUNCE_TIP or order == BOUNCE_ROOT:
        for last in range(1, count + 1):
            for n in range(last):
                longest = max(
                    longest, visit(p, p.moving[n if order == BOUNCE_ROOT else count - 1 - n], fraction)
                )
                if is_single_goal_met(p):
                    break
            if is_single_goal_met(p):
                break
    elif order == SMART_BOUNCE:
        longest = smart_bounce(p, fraction)
    else:
        longest = largest_first(p, fraction)
    if p.has_tips:
        solve_tips(p)
    measure(p)
    return longest


def visit(p, i, fraction):
    """Take a step of a joint, unless two bones at once have placed it."""
    p.last_turn = 0.0
    return 0.0 if p.in_tip[i] else step_joint(p, i, fraction)


def smart_bounce(p, fraction):
    """Visit joints from the tip, and start over after each large correction, as long as the error falls."""
    count, n, error, longest = p.moving_count, 0, -1.0, 0.0
    for _ in range(count * (count + 1) // 2):
        if n == count:
            break
        longest = max(longest, visit(p, p.moving[count - 1 - n], fraction))
        if is_single_goal_met(p):
            break
        # The first joint has just been corrected as far as it goes: once more would change nothing.
        if n > 0 and p.last_turn > SMART_THRESHOLD:
            present = effector_square(p)
            if error < 0.0 or present < SMART_GAIN * error:
                n = 0
                error = present
                continue
        n += 1
    return longest


def largest_first(p, fraction):
    """Visit joints in descending order of their wanted turn."""
    longest = 0.0
    for n in range(p.moving_count):
        p.angle_order[n] = desired_angle(p, p.moving[n])
    for _ in range(p.moving_count):
        best = -1
        for n in range(p.moving_count):
            if p.angle_order[n] >= 0.0 and (best < 0 or p.angle_order[n] > p.angle_order[best]):
                best = n
        if best < 0:
            break
        p.angle_order[best] = -1.0
        longest = max(longest, visit(p, p.moving[best], fraction))
        if is_single_goal_met(p):
            break
    return longest


def is_single_goal_met(p):
    """Whether the only goal is a position that is met: later joints then stay.

    The bound is a little inside the tolerance, as carried effectors have rounding errors.
    """
    if not p.is_single:
        return False
    off = subtract(vector_at(p.effector, 0), vector_at(p.target, 0))
    near = 0.9 * p.met_ratio * p.position_tolerance
    return dot(off, off) <= near * near


# Carried effectors ----------------------------------------------------------------------------------


def start_carrying(p):
    """Place all joints and effectors; steps then carry the effectors along."""
    forward(p)
    for k in range(p.goals):
        if p.goal_kind[k] != BALANCE:
            put_vector(p.effector, 3 * k, goal_point(p, k))
            put_quaternion(p.effector_frame, 4 * k, quaternion_at(p.frame, 4 * p.goal_joint[k]))


def place_up_to(p, i):
    """Place the joints up to a visited one; joints beyond it are placed later."""
    if not p.is_rigid:
        if p.placed < p.evaluated_count:
            start_carrying(p)
        return
    while p.placed < p.evaluated_count and p.evaluated[p.placed] <= i:
        place(p, p.evaluated[p.placed])
        p.placed += 1


def carry(p, i, step):
    """Carry effectors along a turn of joint i (model axes); returns the longest motion."""
    longest = 0.0
    if not p.is_rigid:
        head = vector_at(p.head, 3 * i)
        for k in range(p.goals):
            if p.goal_kind[k] != POSITION:
                longest = max(longest, angle_of(step) * LEVER * p.reach)
            elif p.above[k * p.joints + i]:
                arm = subtract(vector_at(p.effector, 3 * k), head)
                longest = max(longest, length(subtract(rotate(step, arm), arm)))
        start_carrying(p)
        return longest
    head = vector_at(p.head, 3 * i)
    for k in range(p.goals):
        if p.above[k * p.joints + i]:
            arm = subtract(vector_at(p.effector, 3 * k), head)
            turned = rotate(step, arm)
            if p.goal_kind[k] == POSITION:
                longest = max(longest, length(subtract(turned, arm)))
            else:
                longest = max(longest, angle_of(step) * LEVER * p.reach)
            put_vector(p.effector, 3 * k, add(head, turned))
            put_quaternion(
                p.effector_frame, 4 * k, unit(multiply(step, quaternion_at(p.effector_frame, 4 * k)))
            )
    return longest


def effector_square(p):
    """The squared error of positions, orientations and directions, in squared model units."""
    sum_ = 0.0
    for k in range(p.goals):
        kind = p.goal_kind[k]
        if kind == POSITION:
            off = subtract(vector_at(p.effector, 3 * k), vector_at(p.target, 4 * k))
            sum_ += p.goal_weight[k] * dot(off, off)
        elif kind == ORIENTATION or kind == DIRECTION:
            off_by = frame_miss(p, k) * LEVER * p.reach
            sum_ += p.goal_weight[k] * off_by * off_by
    return sum_


def frame_miss(p, k):
    """The angle between an effector's frame, or its axis, and its target; radians."""
    frame = quaternion_at(p.effector_frame, 4 * k)
    if p.goal_kind[k] == ORIENTATION:
        return angle_of(multiply(frame, conjugate(quaternion_at(p.target, 4 * k))))
    axis, target = rotate(frame, vector_at(p.goal_axis, 3 * k)), vector_at(p.target, 4 * k)
    return atan2(length(cross(axis, target)), dot(axis, target))


# The best move --------------------------------------------------------------------------------------


def gather_pairs(p, i):
    """Store the attitude profile of the goals above joint i; returns the number of pairs.

    `profile`: sum w b a^T; the first pair is stored beside it.
    """
    count, by_angle = 0, LEVER * p.reach * LEVER * p.reach
    for n in range(9):
        p.profile[n] = 0.0
    head = vector_at(p.head, 3 * i)
    for k in range(p.goals):
        if p.goal_rank[k] > p.stage or not p.serves[k * p.joints + i]:
            continue
        kind, weight, target = p.goal_kind[k], p.goal_weight[k], vector_at(p.target, 4 * k)
        if kind == POSITION:
            arm = subtract(vector_at(p.effector, 3 * k), head)
            aim = subtract(target, head)
            if p.lever_joint[k * p.joints + i] >= 0:
                lever_head = vector_at(p.head, 3 * p.lever_joint[k * p.joints + i])
                aim = subtract(subtract(target, subtract(vector_at(p.effector, 3 * k), lever_head)), head)
                arm = subtract(lever_head, head)
            count = add_pair(p, count, arm, aim, weight)
        elif kind == ORIENTATION:
            for axis in range(3):
                # Y first, which a mirror in X keeps: a perturbation bends about the first pair.
                way = Vector(1.0 if axis == 2 else 0.0, 1.0 if axis == 0 else 0.0, 1.0 if axis == 1 else 0.0)
                present = rotate(quaternion_at(p.effector_frame, 4 * k), way)
                count = add_pair(
                    p, count, present, rotate(quaternion_at(p.target, 4 * k), way), weight * by_angle
                )
        elif kind == DIRECTION:
            present = rotate(quaternion_at(p.effector_frame, 4 * k), vector_at(p.goal_axis, 3 * k))
            count = add_pair(p, count, present, target, weight * by_angle)
        elif kind == POLE:
            if i == p.goal_root[k]:
                if p.placed < p.evaluated_count:
                    place_up_to(p, p.joints)
                pole_angle_of(p, k)
                share, bend = p.bend[6], vector_at(p.bend, 0)
                if share > 0.0 and fabs(p.bend[8]) >= p.bend[7]:
                    side = scaled(vector_at(p.bend, 3), length(bend))
                    count = add_pair(p, count, bend, side, weight * share * share)
        elif kind == BALANCE:
            count = add_balance(p, k, i, count)
    return count


def add_pair(p, count, a, b, weight):
    """Add a pair to the sums."""
    if count == 0:
        put_vector(p.first_pair, 0, a)
        put_vector(p.first_pair, 3, b)
    p.profile[0] += weight * b.x * a.x
    p.profile[1] += weight * b.x * a.y
    p.profile[2] += weight * b.x * a.z
    p.profile[3] += weight * b.y * a.x
    p.profile[4] += weight * b.y * a.y
    p.profile[5] += weight * b.y * a.z
    p.profile[6] += weight * b.z * a.x
    p.profile[7] += weight * b.z * a.y
    p.profile[8] += weight * b.z * a.z
    return count + 1


def add_balance(p, k, i, count):
    """Add the pair of a balance: the lever of the centre of mass about joint i, and its target."""
    gather_mass(p)
    head, share = vector_at(p.head, 3 * i), 1.0 / p.total_mass
    mass = p.below[4 * i + 3]
    if mass <= 0.0:
        return count
    arm = scaled(subtract(vector_at(p.below, 4 * i), scaled(head, mass)), share)
    way = counted_part(p, k, subtract(vector_at(p.target, 4 * k), scaled(total_moment(p), share)))
    return add_pair(p, count, arm, add(arm, way), p.goal_weight[k])


def step_joint(p, i, fraction):
    """Take a part of joint i's best move for all goals; returns the longest motion of an effector."""
    place_up_to(p, i)
    longest = 0.0
    for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
        longest = max(longest, step_slide(p, i, column, fraction))
        place_up_to(p, i)
    p.last_turn = 0.0
    if not p.width[i]:
        return longest
    count = gather_pairs(p, i)
    if not count:
        return longest
    base, before = quaternion_at(p.base, 4 * i), quaternion_at(p.rotation, 4 * i)
    part = fraction * p.share[i] * p.mobility[3 * i]
    angle_before = p.angle[i]
    if p.width[i] == 1:
        turn = hinge_turn_in_range(p, i, beyond_comfort(p, i, best_hinge_turn(p, i, base))) * part
        turn = min(max(turn, -p.max_step[i]), p.max_step[i])
        set_angle(p, i, p.angle[i] + turn)
    else:
        best = best_rotation(p, count)
        if p.comfort[i] != 0.0 or p.max_step[i] < pi:
            angle = angle_of(best)
            if angle > 0.0:
                part = min(beyond_comfort(p, i, angle) * part, p.max_step[i]) / angle
        if part != 1.0:
            best = exponential(scaled(logarithm(best), part))
        turned = multiply(conjugate(base), multiply(best, multiply(base, before)))
        set_rotation(p, i, nearest_allowed(p.limit, LIMIT_WIDTH * i, unit(turned)))
    if p.has_windows:
        limit_to_windows(p, i, base, before, angle_before)
    if p.couplings:
        damp_if_worse(p, i, before, angle_before)
    step = multiply(multiply(base, quaternion_at(p.rotation, 4 * i)), conjugate(multiply(base, before)))
    p.last_turn = angle_of(step)
    if p.last_turn == 0.0:
        return longest
    return max(longest, carry(p, i, step))


def beyond_comfort(p, i, angle):
    """The part of an angle beyond the joint's comfort tolerance (Kenwright 2012, section 11)."""
    tolerance = p.comfort[i]
    if angle < 0.0:
        return min(0.0, angle + tolerance)
    return max(0.0, angle - tolerance)


def desired_angle(p, i):
    """The angle by which joint i would turn for its goals without limits and tolerances."""
    place_up_to(p, i)
    if not p.width[i]:
        return 0.0
    count = gather_pairs(p, i)
    if not count:
        return 0.0
    if p.width[i] == 1:
        return fabs(best_hinge_turn(p, i, quaternion_at(p.base, 4 * i)))
    return angle_of(best_rotation(p, count))


def best_hinge_turn(p, i, base):
    """atan2(sum w n.(a x b), sum w (a.b - (a.n)(b.n))); 0 where all turns are equally good."""
    n = rotate(base, hinge_axis(p.limit, LIMIT_WIDTH * i))
    m = p.profile
    sine = n.x * (m[7] - m[5]) + n.y * (m[2] - m[6]) + n.z * (m[3] - m[1])
    trace = m[0] + m[4] + m[8]
    along = n.x * (m[0] * n.x + m[1] * n.y + m[2] * n.z)
    along += n.y * (m[3] * n.x + m[4] * n.y + m[5] * n.z)
    along += n.z * (m[6] * n.x + m[7] * n.y + m[8] * n.z)
    cosine, scale = trace - along, 0.0
    for k in range(9):
        scale += fabs(m[k])
    # Single precision has noise of 1e-7 of the lengths: no direction to turn to.
    return 0.0 if fabs(sine) + fabs(cosine) <= 1e-6 * scale else atan2(sine, cosine)


def hinge_turn_in_range(p, i, turn):
    """A turn of a hinge clamped to its range, to the end that is nearer on the circle."""
    lower, upper = hinge_range(p.limit, LIMIT_WIDTH * i)
    if upper - lower >= 2.0 * pi:
        return turn
    to = wrapped(p.angle[i] + turn, 0.5 * (lower + upper))
    return min(max(to, lower), upper) - p.angle[i]


def best_rotation(p, count):
    """The dominant eigenvector of Davenport's matrix; for one pair the shortest arc."""
    if count == 1:
        return between(vector_at(p.first_pair, 0), vector_at(p.first_pair, 3))
    m, scale = p.profile, 0.0
    for k in range(9):
        scale = max(scale, fabs(m[k]))
    if scale == 0.0:
        return Quaternion(1.0, 0.0, 0.0, 0.0)
    trace = m[0] + m[4] + m[8]
    x, y, z = m[7] - m[5], m[2] - m[6], m[3] - m[1]
    a = p.davenport
    a[0] = (trace / scale) + (INERTIA if p.moving_count > 1 else 1e-6)
    a[1] = a[4] = x / scale
    a[2] = a[8] = y / scale
    a[3] = a[12] = z / scale
    a[5] = (2.0 * m[0] - trace) / scale
    a[6] = a[9] = (m[1] + m[3]) / scale
    a[7] = a[13] = (m[2] + m[6]) / scale
    a[10] = (2.0 * m[4] - trace) / scale
    a[11] = a[14] = (m[5] + m[7]) / scale
    a[15] = (2.0 * m[8] - trace) / scale
    return largest_eigenvector(p)


def largest_eigenvector(p):
    """The dominant eigenvector of `davenport` by Jacobi's rotations, as a quaternion with w >= 0."""
    a, v = p.davenport, p.eigenvectors
    for k in range(16):
        v[k] = 1.0 if k % 5 == 0 else 0.0
    for _ in range(12):
        off = a[1] * a[1] + a[2] * a[2] + a[3] * a[3] + a[6] * a[6] + a[7] * a[7] + a[11] * a[11]
        if off < 1e-30:
            break
        for i in range(3):
            for j in range(i + 1, 4):
                value = a[4 * i + j]
                if value != 0.0:
                    theta = (a[5 * j] - a[5 * i]) / (2.0 * value)
                    t = 1.0 / (fabs(theta) + sqrt(theta * theta + 1.0))
                    if theta < 0.0:
                        t = -t
                    c = 1.0 / sqrt(t * t + 1.0)
                    s = t * c
                    for k in range(4):
                        first, second = a[4 * k + i], a[4 * k + j]
                        a[4 * k + i] = c * first - s * second
                        a[4 * k + j] = s * first + c * second
                    for k in range(4):
                        first, second = a[4 * i + k], a[4 * j + k]
                        a[4 * i + k] = c * first - s * second
                        a[4 * j + k] = s * first + c * second
                    for k in range(4):
                        first, second = v[4 * k + i], v[4 * k + j]
                        v[4 * k + i] = c * first - s * second
                        v[4 * k + j] = s * first + c * second
    best = 0
    for k in range(1, 4):
        if a[5 * k] > a[5 * best]:
            best = k
    q = unit(Quaternion(v[best], v[4 + best], v[8 + best], v[12 + best]))
    return Quaternion(-q.w, -q.x, -q.y, -q.z) if q.w < 0.0 else q


def step_slide(p, i, column, fraction):
    """Take a part of the best shift of a joint along a slide; returns its length."""
    slide = p.column_slide[column]
    axis = rotate(quaternion_at(p.shift_base, 4 * i), vector_at(p.slide_axis, 3 * slide))
    along, weights = 0.0, 0.0
    for k in range(p.goals):
        if p.goal_rank[k] > p.stage or not p.serves[k * p.joints + i]:
            continue
        target, weight, gain = vector_at(p.target, 4 * k), p.goal_weight[k], 1.0
        if p.goal_kind[k] == POSITION:
            way = subtract(target, vector_at(p.effector, 3 * k))
        elif p.goal_kind[k] == BALANCE:
            gather_mass(p)
            gain = p.below[4 * i + 3] / p.total_mass
            way = counted_part(p, k, subtract(target, scaled(total_moment(p), 1.0 / p.total_mass)))
        else:
            continue
        along += weight * gain * dot(axis, way)
        weights += weight * gain * gain
    if weights <= 0.0:
        return 0.0
    shift, here = along / weights * fraction * p.share[i] * p.mobility[3 * i], slide_place(p, slide, i)
    to = min(max(here + shift, p.slide_range[2 * slide]), p.slide_range[2 * slide + 1])
    if p.has_windows:
        to = here + shift_in_windows(p, i, axis, to - here)
    return shift_joint(p, i, slide, axis, to - here)


def slide_place(p, slide, i):
    """The present shift of a joint along a slide."""
    return dot(vector_at(p.slide_axis, 3 * slide), vector_at(p.translation, 3 * i))


def shift_joint(p, i, slide, axis, shift):
    """Shift a joint along a slide, and carry effectors; returns the length of the shift."""
    if shift == 0.0:
        return 0.0
    moved = add(vector_at(p.translation, 3 * i), scaled(vector_at(p.slide_axis, 3 * slide), shift))
    set_translation(p, i, moved)
    if not p.is_rigid:
        start_carrying(p)
        return fabs(shift)
    place_up_to(p, i)
    for k in range(p.goals):
        if p.above[k * p.joints + i]:
            put_vector(p.effector, 3 * k, add(vector_at(p.effector, 3 * k), scaled(axis, shift)))
    return fabs(shift)


def damp_if_worse(p, i, before, angle_before):
    """Halve a turn, and finally undo it, while the errors are larger than before.

    The best turn neglects coupled offsets.
    """
    limit = p.square
    measure(p)
    for n in range(6):
        if p.square <= limit:
            break
        half = 0.5 if n < 5 else 0.0
        if p.width[i] == 1:
            set_angle(p, i, angle_before + half * (p.angle[i] - angle_before))
        else:
            way = logarithm(multiply(quaternion_at(p.rotation, 4 * i), conjugate(before)))
            turned = unit(multiply(exponential(scaled(way, half)), before))
            set_rotation(p, i, nearest_allowed(p.limit, LIMIT_WIDTH * i, turned) if half > 0.0 else before)
        measure(p)


# Reach windows --------------------------------------------------------------------------------------


def limit_to_windows(p, i, base, before, angle_before):
    """Take the largest part of a joint's step that stretches no reach window further."""
    wanted, angle, low = quaternion_at(p.rotation, 4 * i), p.angle[i], 0.0
    if fits_windows(p, i, base, before):
        return
    way, high = logarithm(multiply(wanted, conjugate(before))), 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        try_part(p, i, before, way, angle_before, angle, middle)
        if fits_windows(p, i, base, before):
            low = middle
        else:
            high = middle
    try_part(p, i, before, way, angle_before, angle, low)


def try_part(p, i, before, way, angle_before, angle, part):
    """Turn a joint by a part of its step, inside its limit."""
    if p.width[i] == 1:
        set_angle(p, i, angle_before + part * (angle - angle_before))
        return
    turned = unit(multiply(exponential(scaled(way, part)), before))
    set_rotation(p, i, nearest_allowed(p.limit, LIMIT_WIDTH * i, turned) if part > 0.0 else before)


def fits_windows(p, i, base, before):
    """Whether joint i's turn stretches no reach window past its end, nor a stretched one further."""
    step = multiply(multiply(base, quaternion_at(p.rotation, 4 * i)), conjugate(multiply(base, before)))
    head = vector_at(p.head, 3 * i)
    for k in range(p.goals):
        if p.goal_kind[k] == WINDOW and p.above[k * p.joints + i] and i > p.goal_root[k]:
            start = vector_at(p.head, 3 * p.goal_root[k])
            end = vector_at(p.effector, 3 * k)
            after = add(head, rotate(step, subtract(end, head)))
            if length(subtract(after, start)) > max(p.target[4 * k], length(subtract(end, start))):
                return False
    return True


def shift_in_windows(p, i, axis, shift):
    """The largest part of a slide's shift that stretches no reach window further."""
    low, high, part = 0.0, 1.0, 1.0
    for _ in range(HALVINGS + 1):
        fits = True
        for k in range(p.goals):
            if p.goal_kind[k] == WINDOW and p.above[k * p.joints + i] and i > p.goal_root[k]:
                line = subtract(vector_at(p.effector, 3 * k), vector_at(p.head, 3 * p.goal_root[k]))
                longer = length(add(line, scaled(axis, part * shift)))
                if longer > max(p.target[4 * k], length(line)):
                    fits = False
        if fits:
            low = part
            if part == 1.0:
                break
        else:
            high = part
        part = 0.5 * (low + high)
    return low * shift


# Two bones at once ----------------------------------------------------------------------------------


def solve_tips(p):
    """Solve the two-bone tips of goals by the law of cosines (Kenwright 2012, 5.2)."""
    for k in range(p.goals):
        if p.tip_first[k] >= 0 and p.goal_rank[k] <= p.stage:
            bend_tip(p, k)
            place_up_to(p, p.joints)


def bend_tip(p, k):
    """Bend the middle joint until the effector is as far away as the target, then aim the first joint."""
    first, middle = p.tip_first[k], p.tip_middle[k]
    place_up_to(p, middle)
    root, joint = vector_at(p.head, 3 * first), vector_at(p.head, 3 * middle)
    upper, lower = subtract(joint, root), subtract(vector_at(p.effector, 3 * k), joint)
    base = quaternion_at(p.base, 4 * middle)
    if p.width[middle] == 1:
        axis = rotate(base, hinge_axis(p.limit, LIMIT_WIDTH * middle))
    else:
        axis = cross(upper, lower)
        size = length(axis)
        axis = (
            scaled(axis, 1.0 / size) if size > 1e-6 * length(upper) * length(lower) else perpendicular(upper)
        )
    turn = opening_turn(upper, lower, axis, length(subtract(vector_at(p.target, 4 * k), root)), False)
    turn_joint(p, middle, axis, turn)
    share = p.share[first]
    p.share[first] = 1.0
    step_joint(p, first, 1.0)
    p.share[first] = share


def bend_limbs(p):
    """Bend limbs to the distance of their targets, to the side of their bend, and aim them.

    Least squares keep the side of this start; from a nearly straight pose they may take the other.
    """
    start_carrying(p)
    for k in range(p.goals):
        if p.limb_first[k] >= 0 and p.goal_rank[k] <= p.stage:
            first, middle = p.limb_first[k], p.limb_middle[k]
            place_up_to(p, middle)
            root, joint = vector_at(p.head, 3 * first), vector_at(p.head, 3 * middle)
            upper, lower = subtract(joint, root), subtract(vector_at(p.effector, 3 * k), joint)
            axis = multiply(quaternion_at(p.base, 4 * middle), quaternion_at(p.metric, 4 * middle))
            if p.width[middle] == 1:
                axis_way = rotate(
                    quaternion_at(p.base, 4 * middle), hinge_axis(p.limit, LIMIT_WIDTH * middle)
                )
            else:
                axis_way = rotate(axis, Vector(1.0, 0.0, 0.0))
            way = subtract(vector_at(p.target, 4 * k), root)
            turn_joint(p, middle, axis_way, opening_turn(upper, lower, axis_way, length(way), False))
            place_up_to(p, first)
            arm = subtract(vector_at(p.effector, 3 * k), root)
            if length(arm) > SMALL_ARM * p.reach and length(way) > SMALL_ARM * p.reach:
                point_joint(p, first, arm, way)
            place_up_to(p, p.joints)
    measure(p)


def bends_backwards(p, k):
    """Whether a goal's limb bends to the other side than at rest, and the pose of sides does not.

    The joints are placed.
    """
    first, middle = p.side_first[k], p.side_middle[k]
    if middle < 0:
        return False
    joint, base = vector_at(p.head, 3 * middle), quaternion_at(p.base, 4 * middle)
    upper, lower = subtract(joint, vector_at(p.head, 3 * first)), subtract(limb_end(p, k), joint)
    axis = rotate(multiply(base, quaternion_at(p.metric, 4 * middle)), Vector(1.0, 0.0, 0.0))
    least = NOISE * length(upper) * length(lower)
    if dot(axis, cross(upper, lower)) >= -least:
        return False
    turned, wanted = quaternion_at(p.rotation, 4 * middle), quaternion_at(p.side_rotation, 4 * middle)
    lower = rotate(conjugate(multiply(base, turned)), lower)
    return dot(axis, cross(upper, rotate(multiply(base, wanted), lower))) >= -least


def limb_end(p, k):
    """The lower end of a goal's limb."""
    if p.side_last[k] >= 0:
        return vector_at(p.head, 3 * p.side_last[k])
    return goal_point(p, k)


def straighten_limbs(p):
    """Turn limbs that bend backwards to the nearest bend of their side: straight, or folded."""
    for k in range(p.goals):
        forward(p)
        if bends_backwards(p, k):
            first, middle = p.side_first[k], p.side_middle[k]
            joint, base = vector_at(p.head, 3 * middle), quaternion_at(p.base, 4 * middle)
            upper, lower = subtract(joint, vector_at(p.head, 3 * first)), subtract(limb_end(p, k), joint)
            axis = rotate(multiply(base, quaternion_at(p.metric, 4 * middle)), Vector(1.0, 0.0, 0.0))
            sine, cosine = (
                dot(axis, cross(upper, lower)),
                dot(upper, lower) - dot(axis, upper) * dot(axis, lower),
            )
            bend = atan2(sine, cosine)
            start_carrying(p)
            turn_joint(p, middle, axis, -bend if cosine >= 0.0 else -pi - bend)


def mirror_limbs(p):
    """Bend limbs that bend backwards to their other side, with their ends in place; whether there are any."""
    done = False
    for k in range(p.goals):
        start_carrying(p)
        if bends_backwards(p, k):
            first, middle, end = p.side_first[k], p.side_middle[k], limb_end(p, k)
            root, joint = vector_at(p.head, 3 * first), vector_at(p.head, 3 * middle)
            axis = multiply(quaternion_at(p.base, 4 * middle), quaternion_at(p.metric, 4 * middle))
            axis_way, way = rotate(axis, Vector(1.0, 0.0, 0.0)), subtract(end, root)
            turn = opening_turn(subtract(joint, root), subtract(end, joint), axis_way, length(way), True)
            turn_joint(p, middle, axis_way, turn)
            start_carrying(p)
            arm = subtract(limb_end(p, k), root)
            if length(arm) > SMALL_ARM * p.reach and length(way) > SMALL_ARM * p.reach:
                point_joint(p, first, arm, way)
            done = True
    measure(p)
    return done


def turn_joint(p, i, axis, angle):
    """Turn a joint about an axis of model space inside its limit, and carry effectors."""
    base, before = quaternion_at(p.base, 4 * i), quaternion_at(p.rotation, 4 * i)
    if p.width[i] == 1:
        # A hinge turns about its axis, on its side of the range.
        set_angle(p, i, p.angle[i] + hinge_turn_in_range(p, i, angle))
    elif p.width[i] == 3:
        turned = multiply(conjugate(base), multiply(axis_rotation(axis, angle), multiply(base, before)))
        set_rotation(p, i, nearest_allowed(p.limit, LIMIT_WIDTH * i, unit(turned)))
    carry(p, i, multiply(multiply(base, quaternion_at(p.rotation, 4 * i)), conjugate(multiply(base, before))))


# Perturbations --------------------------------------------------------------------------------------


def perturb(p, angle):
    """Bend the joints that may move a little, by turns to either side, to leave a local minimum."""
    start_carrying(p)
    side = angle
    for n in range(p.moving_count):
        i = p.moving[n]
        place_up_to(p, i)
        if not p.width[i] or p.comfort[i] > 0.0:
            continue
        side = -side
        across = rotate(quaternion_at(p.frame, 4 * i), Vector(0.0, 1.0, 0.0))
        if gather_pairs(p, i):
            across = vector_at(p.first_pair, 0)
        before = quaternion_at(p.rotation, 4 * i)
        axis = perpendicular(across)
        if p.width[i] == 1:
            axis = rotate(quaternion_at(p.base, 4 * i), hinge_axis(p.limit, LIMIT_WIDTH * i))
        turn_joint(p, i, axis, side)
        turned = angle_of(multiply(quaternion_at(p.rotation, 4 * i), conjugate(before)))
        if turned <= 0.5 * fabs(side):
            place_up_to(p, i)
            turn_joint(p, i, axis, -side)
    measure(p)


def point_joint(p, i, arm, way):
    """Turn a joint towards `way`, as far as a step may, so that `arm` points along it."""
    v = logarithm(between(arm, way))
    turn = length(v)
    if turn == 0.0:
        return
    axis = scaled(v, 1.0 / turn)
    if p.width[i] == 1:
        axis = rotate(quaternion_at(p.base, 4 * i), hinge_axis(p.limit, LIMIT_WIDTH * i))
        turn = turn_towards(axis, arm, way)
    size = min(beyond_comfort(p, i, fabs(turn)), p.max_step[i]) * p.mobility[3 * i]
    turn_joint(p, i, axis, size if turn > 0.0 else -size)


def bend_into_windows(p):
    """Bend chains that start stretched past a reach window, as far as their limits let them."""
    for k in range(p.goals):
        if p.goal_kind[k] == WINDOW and p.distance[k] > 0.0:
            perturb(p, BEND_IN)  # a straight chain has no side to bend to
            for _ in range(ENTRY_PASSES):
                start_carrying(p)
                start = vector_at(p.head, 3 * p.goal_root[k])
                line = window_line(p, k)
                extent = length(line)
                if extent <= p.target[4 * k]:
                    break
                wanted = add(start, scaled(line, 0.99 * p.target[4 * k] / extent))
                i = p.goal_joint[k]
                while i != p.goal_root[k]:
                    if p.is_moving[i] and p.width[i] and p.serves[k * p.joints + i]:
                        start_carrying(p)
                        head = vector_at(p.head, 3 * i)
                        point_joint(
                            p, i, subtract(vector_at(p.effector, 3 * k), head), subtract(wanted, head)
                        )
                    i = p.parent[i]
            measure(p)


def stretch(p):
    """Point every link at its target, from the root: the straight chain, where limits allow it.

    A link points away where a long one after it passes the target all the same: the folded chain. Passes
    converge slowly to such poses: their steps shrink as the chain straightens.
    """
    start_carrying(p)
    measure_holes(p)
    for n in range(p.moving_count):
        i = p.moving[n]
        place_up_to(p, i)
        if not p.width[i]:
            continue
        for k in range(p.goals):
            if p.goal_kind[k] == POSITION and p.serves[k * p.joints + i] and p.goal_rank[k] <= p.stage:
                head = vector_at(p.head, 3 * i)
                child = p.next_moving[k * p.joints + i]
                end = vector_at(p.effector, 3 * k)
                if child >= 0:
                    place_up_to(p, child)
                    end = vector_at(p.head, 3 * child)
                arm = subtract(end, head)
                way = subtract(vector_at(p.target, 4 * k), head)
                if p.hole[i] > length(arm) + length(way):
                    way = scaled(way, -1.0)
                if length(arm) > SMALL_ARM * p.reach:
                    point_joint(p, i, arm, way)
                break
    measure(p)


def measure_holes(p):
    """Store the radius inside which the links after each joint's own link cannot end."""
    for k in range(p.goals - 1, -1, -1):  # a joint points at the first of its goals
        if p.goal_kind[k] == POSITION and p.goal_rank[k] <= p.stage:
            i, reach, longest, before = p.goal_joint[k], 0.0, 0.0, vector_at(p.effector, 3 * k)
            while i >= 0:
                if p.width[i] and p.serves[k * p.joints + i]:
                    p.hole[i] = 2.0 * longest - reach
                    head = vector_at(p.head, 3 * i)
                    link = length(subtract(before, head))
                    reach, longest, before = reach + link, max(longest, link), head
                i = p.parent[i]


# Shares of steps ----------------------------------------------------------------------------------------


def share_steps(p, reduction):
    """Store the part of its best step that each joint takes when a pass removes `reduction` of the error.

    Joint i removes w_i of the error: `reduction` times its squared lever, in parts of the sum over its chain.
    It turns by its lever times a common factor: the step of least squared rotation. Visited from the root, 1
    - w_0 - ... - w_(i-1) of the error is left, and its part is w_i divided by that. With a reduction of 0
    each joint takes its full step. A joint of several goals takes the largest part.
    """
    for i in range(p.joints):
        p.share[i] = 1.0 if reduction == 0.0 else 0.0
    if reduction == 0.0:
        return
    start_carrying(p)
    for k in range(p.goals):
        if p.goal_kind[k] == BALANCE or p.goal_kind[k] == WINDOW:
            continue
        total = lever_squares(p, k, 0.0, reduction)
        if total > 0.0:
            lever_squares(p, k, total, reduction)
    for n in range(p.moving_count):
        if p.share[p.moving[n]] == 0.0:
            p.share[p.moving[n]] = reduction


def lever_squares(p, k, total, reduction):
    """The sum of squared levers of the joints that move for a goal; with a `total` it stores their shares."""
    i, lever, sum_ = p.goal_joint[k], 0.0, 0.0
    before = vector_at(p.effector, 3 * k)
    while i >= 0:
        if p.serves[k * p.joints + i] and p.first_column[i + 1] > p.first_column[i]:
            head = vector_at(p.head, 3 * i)
            lever += length(subtract(before, head))
            before = head
            # Every joint turns a frame by the same amount.
            square = lever * lever if p.goal_kind[k] == POSITION else 1.0
            sum_ += square
            if total > 0.0:
                removed = reduction * square / total
                left = 1.0 - reduction * (total - sum_) / total
                p.share[i] = max(p.share[i], removed / left)
        i = p.parent[i]
    return sum_


def is_out_of_reach(p, rank):
    """Whether a target of a rank, or of one before, is outside a chain's reach for all rotations.

    It can be told only if the chain's first joint stays in place and its links keep their lengths.
    """
    if p.couplings:
        return False
    start_carrying(p)
    for k in range(p.goals):
        if p.goal_rank[k] > rank or p.goal_kind[k] != POSITION:
            continue
        if shell_distance(p, k) > p.position_tolerance:
            return True
    return False


def is_as_near_as_links_allow(p):
    """Whether the only goal's error is the distance of its target from the shell."""
    return p.distance[0] <= shell_distance(p, 0) + p.position_tolerance


def shell_distance(p, k):
    """The distance of a position's target from the shell about its chain's first joint; 0 if unknown."""
    i, first, reach, longest = p.goal_joint[k], -1, 0.0, 0.0
    before = vector_at(p.effector, 3 * k)
    while i >= 0:
        if p.first_column[i + 1] - p.first_column[i] > p.width[i] or p.lever_joint[k * p.joints + i] >= 0:
            return 0.0
        if p.width[i]:
            if not p.serves[k * p.joints + i]:
                return 0.0
            head = vector_at(p.head, 3 * i)
            link = length(subtract(before, head))
            reach += link
            longest = max(longest, link)
            before = head
            first = i
        i = p.parent[i]
    if first < 0:
        return p.distance[k]
    away = length(subtract(vector_at(p.target, 4 * k), before))
    return max(away - reach, 2.0 * longest - reach - away, 0.0)


# Poles ----------------------------------------------------------------------------------------------


def swivel(p):
    """Turn the roots of chains about their lines until they bend towards their poles; ends stay.

    This is the swivel angle (Tolani, Goswami & Badler 2000). Stiffness does not reduce it.
    """
    for k in range(p.goals):
        i = p.goal_root[k]
        if p.goal_kind[k] == POLE and p.goal_rank[k] <= p.stage and p.width[i] and p.serves[k * p.joints + i]:
            start_carrying(p)
            line = subtract(goal_point(p, k), vector_at(p.head, 3 * i))
            pole_angle_of(p, k)
            turn_on_line(p, i, line, -bend_turn(p, line))
    measure(p)


def bend_turn(p, line):
    """The angle about a chain's line from its pole's side to its bend; 0 without a bend."""
    bend, side = vector_at(p.bend, 0), vector_at(p.bend, 3)
    if p.bend[6] == 0.0:
        return 0.0
    return atan2(dot(line, cross(side, bend)) / length(line), dot(side, bend))


def turn_on_line(p, i, line, angle):
    """Turn a joint about a line; a hinge by the projection on its axis."""
    size = length(line)
    if size == 0.0 or angle == 0.0:
        return
    axis = scaled(line, 1.0 / size)
    if p.width[i] == 1:
        angle *= dot(axis, rotate(quaternion_at(p.base, 4 * i), hinge_axis(p.limit, LIMIT_WIDTH * i)))
    turn_joint(p, i, axis, angle)


def mirror_bends(p):
    """Mirror the bends of nearly straight chains that point away from their poles; whether there are any.

    Each bone swings without roll.
    """
    done = False
    for k in range(p.goals):
        if p.goal_kind[k] == POLE and p.goal_rank[k] <= p.stage and may_mirror(p, k):
            mirror_bend(p, k)
            done = True
    return done


def may_mirror(p, k):
    """Whether a chain turns freely, is nearly straight, and would point to its pole when mirrored."""
    i, root = p.goal_joint[k], p.goal_root[k]
    while True:
        free = p.width[i] and p.mobility[3 * i] == 1.0 and p.max_step[i] >= pi and p.inherits[i]
        if not free or not p.is_moving[i]:
            return False
        if i == root:
            break
        i = p.parent[i]
    start_carrying(p)
    start = vector_at(p.head, 3 * root)
    line = subtract(goal_point(p, k), start)
    size = length(line)
    if size == 0.0:
        return False
    line_way, offsets, sum_ = scaled(line, 1.0 / size), 0.0, Vector(0.0, 0.0, 0.0)
    i = p.goal_joint[k]
    while i != root:
        arm = subtract(vector_at(p.head, 3 * i), start)
        across = subtract(arm, scaled(line_way, dot(arm, line_way)))
        offsets += length(across)
        sum_ = add(sum_, across)
        i = p.parent[i]
    axis = rotate(quaternion_at(p.frame, 4 * p.goal_axis_joint[k]), vector_at(p.goal_axis, 3 * k))
    backward = dot(sum_, cross(line_way, axis)) < 0.0
    if offsets >= (BACKWARD if backward else 1.0) * BEND_RANGE * p.goal_scale[k]:
        return False
    present = pole_angle_of(p, k)
    turn = bend_turn(p, line)
    between, side = heads_between(p, k), subtract(vector_at(p.target, 4 * k), start)
    along = scaled(line_way, dot(between, line_way))
    mirrored = subtract(scaled(along, 2.0), between)
    mirrored_angle = pole_angle(line, mirrored, side, axis, p.goal_scale[k], p.goal_angle[k], p.bend)
    return p.bend[6] > 0.0 and fabs(turn) > 0.5 * pi and fabs(mirrored_angle) < fabs(present)


def mirror_bend(p, k):
    """Point each bone of a chain along its mirror image about the chain's line, from the root on."""
    root = p.goal_root[k]
    start_carrying(p)
    start = vector_at(p.head, 3 * root)
    end = goal_point(p, k)
    line = subtract(end, start)
    way = scaled(line, 1.0 / length(line))
    count = 0
    i = p.goal_joint[k]
    while i != root:
        put_vector(p.mirrored, 3 * i, mirror_image(vector_at(p.head, 3 * i), start, way))
        count += 1
        i = p.parent[i]
    for n in range(count + 1):
        # The n-th joint of the chain from its root.
        i, after = p.goal_joint[k], -1
        for _ in range(count - n):
            after = i
            i = p.parent[i]
        start_carrying(p)
        head = vector_at(p.head, 3 * i)
        arm, wanted = subtract(goal_point(p, k), head), subtract(end, head)
        if after >= 0:
            arm = subtract(vector_at(p.head, 3 * after), head)
            wanted = subtract(vector_at(p.mirrored, 3 * after), head)
        v = logarithm(between(arm, wanted))
        turn_on_line(p, i, v, length(v))


def mirror_image(point, start, way):
    """A point half a turn about a line."""
    arm = subtract(point, start)
    return add(start, subtract(scaled(way, 2.0 * dot(arm, way)), arm))
