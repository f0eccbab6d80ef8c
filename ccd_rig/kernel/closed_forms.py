"""Closed forms for one chain and one point: two bones by the law of cosines, and target triangles.

The problem's first goal is the point's position; the joints that move are the chain's, each turned once from
a placed pose. `solvers/closed_forms` says what is solved, and where from. Degenerate cases of two bones:

- A straight chain bends towards the pole, without one about the middle joint's X axis.
- A bone without length cannot bend: the root joint aims.
- A target at the root joint's head gives no direction: the chain folds along its present one.
- A target straight behind is reached by a half turn in the plane of the bend.
- A pole on the line to the target gives no side.
- A target too far or too near is aimed at with the chain stretched or folded.

Target triangles (Song & Hu 2011, section 3): a is the length of a joint's link (to the next joint that turns,
or to the effector), b that of the links after it, c the distance of the target. V_e is the link, V_t the
vector to the target, theta the angle between them (eq. 1). The link turns by theta - phi_b about V_r = V_e x
V_t (eq. 2, 5), and ends at phi_b = acos((a^2 + c^2 - b^2) / (2 a c)) from the target (eq. 3), on its side.
With the link itself as V_e the triangle closes from any start. Without a triangle:

- A link whose target is too far (c > a + b) points at it, and so does a long link (a > b + c).
- Before a long rest (b > a + c) the link points away, and the rest comes back from the other side.
- A link on the line to the target turns about its hinge's axis, the axis of the joint before, or a fixed
  perpendicular.

The next joint may be unable to make its turn inside its limit and omega. Then phi_b changes in steps of 10
degrees, towards the target and away from it by turns, until it can: the paper's two cases, bounded. If no
step helps, the exact triangle is taken and the next joint is clamped.
"""

from __future__ import annotations

from math import copysign, fabs, pi, sqrt

from .ccd import hinge_turn_in_range
from .elementary import atan2, exp
from .geometry import (
    NOISE,
    add,
    angle_of,
    axis_rotation,
    between,
    conjugate,
    cross,
    direction_of,
    dot,
    exponential,
    length,
    logarithm,
    multiply,
    opening_turn,
    perpendicular,
    quaternion_at,
    rotate,
    rotate_back,
    scaled,
    subtract,
    turn_towards,
    unit,
    vector_at,
    wrapped,
)
from .goals import POSITION, goal_point
from .kinematics import LARGEST, check_rows, forward, zeros
from .limits import LIMIT_WIDTH, hinge_axis, hinge_range, is_allowed, nearest_allowed
from .plain import Placed, Quaternion, Stand, Vector, nogil
from .pose import check_numbers, check_ready, check_size, load_bones, load_pose
from .skeleton import read_angle, set_rotation

SWIVEL = pi / 18.0
"""Step of swivel angles about the line to the target, radians, tried where a limit forbids the wanted one."""
SWIVEL_STEPS = 18
"""Steps to either side."""
SWIVEL_HALVINGS = 20
"""Bisections of the border between two swivel angles: to a millionth of a step."""
BEND_AXES = 4
"""Axes about which the middle joint may bend."""
TRIANGLE_STEP = pi / 18.0
"""Step of phi_b, radians."""
TRIANGLE_STEPS = 18
"""Steps to either side."""
FITTING = 1e-5
"""Radians outside a limit up to which a triangle fits it."""
LONGEST = 0.9998
"""Largest eased extension: the pose of a straight chain has no side, and no gradient along its line."""
FULL_EASING = 4.0
"""Distance of a target from the base pose's end at which the curve has full effect, in eased lengths."""
HINGE_FITTING = 1e-4
"""The same for the link of a hinge, in parts of its length."""


def soften(distances, lengths, softs, bases, apart, eased):
    """Write the lengths to which N chains are stretched to their targets, see `solvers.soft_reach`.

    Args:
        distances, lengths, softs, bases, apart: (N) as of `stretched` there.
        eased: (N) written.

    Raises:
        ValueError: arrays of other sizes, numbers that are not finite.
    """
    check_softness(distances, eased.shape[0])
    check_softness(lengths, eased.shape[0])
    check_softness(softs, eased.shape[0])
    check_softness(bases, eased.shape[0])
    check_softness(apart, eased.shape[0])
    for k in range(eased.shape[0]):
        eased[k] = stretched_length(distances[k], lengths[k], softs[k], bases[k], apart[k])


def check_softness(values, count):
    """Raise ValueError unless there are so many numbers, and all are finite."""
    if values.shape[0] != count:
        raise ValueError("kernel: distances, lengths and softness must be as many")
    for k in range(values.shape[0]):
        if not -LARGEST <= values[k] <= LARGEST:
            raise ValueError(
                f"kernel: distances, lengths and softness must be finite, and at most {LARGEST:g}"
            )


def ease_limbs(places, rests, ends, softs, factors, points, limbs):
    """Move the targets of a chain in R poses nearer, so that it eases into straight.

    A target that these poses meet stays where it is, and one that the chain meets at rest.

    Args:
        places: (R, 3N) heads of the joints that turn, root first, and the end of the chain.
        rests: (R, 3) its end where these joints are at rest.
        ends: (R, 3) where the end of the chain should be.
        softs: (R) part of its length over which it is eased.
        factors: (R) part of its length that counts.
        points: (R, 3) targets, moved by as much as their `ends`.
        limbs: (R, 3) written: the distance that a target is moved, the length that the chain gains when it is
            straight, and the distance of its end from its root.

    Returns:
        The number of links that have a length in all poses.

    Raises:
        ValueError: arrays whose sizes do not fit, numbers that are not finite.
    """
    size, count = limbs.shape[0], places.shape[1] // 3
    if limbs.shape[1] != 3 or count < 2:
        raise ValueError("kernel: the arrays do not fit the chain")
    check_rows(places, size, 3 * count)
    check_rows(rests, size, 3)
    check_rows(ends, size, 3)
    check_rows(points, size, 3)
    if places.shape[0] != size or rests.shape[0] != size:
        raise ValueError("kernel: the arrays do not fit the chain")
    if ends.shape[0] != size or points.shape[0] != size:
        raise ValueError("kernel: the arrays do not fit the chain")
    check_softness(softs, size)
    check_softness(factors, size)
    links = 0
    with nogil:
        for n in range(1, count):
            is_link = True
            for k in range(size):
                is_link = is_link and link_between(places, k, n) > 0.0
            links += is_link
        for k in range(size):
            soft, whole = softs[k], link_between(places, k, 1)
            for n in range(2, count):
                whole += link_between(places, k, n)
            whole *= factors[k]
            root, end = place_in(places, k, 0), place_in(places, k, count - 1)
            wanted, rest = place_in(ends, k, 0), place_in(rests, k, 0)
            way, present = subtract(wanted, root), length(subtract(end, root))
            distance, straight = length(way), length(subtract(rest, root))
            eased = stretched_length(distance, whole, soft, present, length(subtract(wanted, end)))
            resting = stretched_length(distance, whole, soft, straight, length(subtract(wanted, rest)))
            eased = max(eased, resting)
            limbs[k, 0] = 0.0
            limbs[k, 1] = whole - present
            limbs[k, 2] = present
            if eased < distance and soft > 0.0:
                share = eased / max(distance, 1e-30) - 1.0
                points[k, 0] += way.x * share
                points[k, 1] += way.y * share
                points[k, 2] += way.z * share
                limbs[k, 0] = distance - eased
                limbs[k, 1] = whole - eased
    return links


def place_in(rows, row, number):
    """A place in a row of places."""
    return Vector(rows[row, 3 * number], rows[row, 3 * number + 1], rows[row, 3 * number + 2])


def link_between(places, row, number):
    """The distance of a place in a row from the one before."""
    return length(subtract(place_in(places, row, number), place_in(places, row, number - 1)))


def stretched_length(distance, extent, soft, base, apart):
    """The length to which a chain is stretched, see `solvers.soft_reach.stretched`."""
    # It sets in at (1 - soft) of the length, and goes to LONGEST of it.
    eased = eased_distance(distance, LONGEST * extent, max(1.0 - (1.0 - soft) / LONGEST, 0.0))
    kept = max(eased, min(distance, min(base, extent)))
    part = max(0.0, min(1.0, apart / max(FULL_EASING * soft * extent, 1e-30)))
    return kept + (eased - kept) * part * part * (3.0 - 2.0 * part)


def eased_distance(distance, extent, soft):
    """The distance to which a chain of a length goes for a target at a distance."""
    eased = max(soft * extent, 1e-30)
    beyond = distance - (extent - eased)
    return extent - eased * exp(-beyond / eased) if beyond > 0.0 else distance


def enter_chain(p, rotations, translations, offsets, rests, target):
    """Load a pose, clamp the joints that move to their limits, and place all joints."""
    load_bones(p, offsets, rests, 0)
    load_pose(p, rotations, translations, 0)
    for n in range(3):
        p.target[n] = target[0, n]
    for n in range(p.moving_count):
        i = p.moving[n]
        set_rotation(p, i, nearest_allowed(p.limit, LIMIT_WIDTH * i, quaternion_at(p.rotation, 4 * i)))
        if p.width[i] == 1:
            read_angle(p, i)
    for k in range(p.couplings):
        read_angle(p, p.coupled_driver[k])
    forward(p)


def check_chain(p, least, rotations, translations, offsets, rests, target):
    """Raise ValueError unless a problem and its arrays fit a closed form of `least` joints or more."""
    check_ready(p)
    joints = p.joints
    if p.goals < 1 or p.goal_kind[0] != POSITION or p.moving_count < least:
        raise ValueError(f"kernel: a closed form needs a position and {least} joints that move")
    for n in range(p.moving_count):
        i = p.moving[n]
        if not p.width[i] or not p.serves[i] or not p.above[i]:
            raise ValueError("kernel: the joints of a closed form must turn, and move the point")
    check_size(rotations, 1, 4 * joints)
    check_size(translations, 1, 3 * joints)
    check_size(offsets, 1, 3 * joints)
    check_size(rests, 1, 4 * joints)
    check_size(target, 1, 3)
    check_numbers("rotations", rotations, 4)
    check_numbers("translations", translations, 0)
    check_numbers("offsets", offsets, 0)
    check_numbers("rests", rests, 4)
    check_numbers("targets", target, 0)


# Two bones ------------------------------------------------------------------------------------------


def solve_two_bones(
    p, rotations, translations, offsets, rests, target, pole, pole_angle, soft, extension, part, keeps_limited
):
    """Solve the last two joints that move, see `solvers.closed_forms.two_bone`.

    Args:
        rotations: (1, 4J) relative to rest: the start, overwritten.
        translations: (1, 3J) relative to rest.
        offsets, rests: (1, 3J) and (1, 4J).
        target: (1, 3).
        pole: (1, 3), or (0, 3) without a pole.
        pole_angle: radians.
        soft, extension: parts of the chain's length, 0 to 1.
        part: of each joint's turn, 0 to 1.
        keeps_limited: whether the start stays where limits keep the chain off its target.

    Raises:
        ValueError: arrays of other sizes, numbers that are not finite, a problem of another kind.
    """
    check_chain(p, 2, rotations, translations, offsets, rests, target)
    check_size(pole, 1 if pole.shape[0] > 0 else 0, 3)
    check_numbers("poles", pole, 0)
    if not (-LARGEST <= pole_angle <= LARGEST):
        raise ValueError("kernel: the pole's angle must be finite")
    if not (0.0 <= soft <= 1.0 and 0.0 <= extension <= 1.0 and 0.0 <= part <= 1.0):
        raise ValueError("kernel: parts of a chain or turn must be 0 to 1")
    p.is_busy = True
    with nogil:
        enter_chain(p, rotations, translations, offsets, rests, target)
        first, middle = p.moving[p.moving_count - 2], p.moving[p.moving_count - 1]
        has_pole = pole.shape[0] > 0
        to_pole = Vector(0.0, 0.0, 0.0)
        if has_pole:
            to_pole = subtract(Vector(pole[0, 0], pole[0, 1], pole[0, 2]), vector_at(p.head, 3 * first))
        upper, lower = upper_bone(p, first, middle), lower_bone(p, middle)
        extent = length(upper) + length(lower)
        far = length(subtract(vector_at(p.target, 0), vector_at(p.head, 3 * first)))
        distance = min(eased_distance(far, extent, soft), extension * extent)
        distance = min(max(distance, fabs(length(upper) - length(lower))), extent)
        # Softness, extension and the bones' lengths may leave a miss whatever the limits.
        good = fabs(far - distance) + 10.0 * NOISE * extent
        before, before_middle = quaternion_at(p.rotation, 4 * first), quaternion_at(p.rotation, 4 * middle)
        limited = bend_and_aim(p, first, middle, distance, good, to_pole, has_pole, pole_angle)
        if limited and keeps_limited:
            set_rotation(p, first, before)
            set_rotation(p, middle, before_middle)
        elif part < 1.0:
            turn_part(p, first, before, part)
            turn_part(p, middle, before_middle, part)
        for n in range(4 * p.joints):
            rotations[0, n] = p.rotation[n]
    p.is_busy = False


def turn_part(p, i, before, part):
    """Take a part of a joint's turn, inside its limit."""
    way = logarithm(multiply(conjugate(before), quaternion_at(p.rotation, 4 * i)))
    turned = unit(multiply(before, exponential(scaled(way, part))))
    set_rotation(p, i, nearest_allowed(p.limit, LIMIT_WIDTH * i, turned))


def upper_bone(p, first, middle):
    """From the root joint to the middle one."""
    return subtract(vector_at(p.head, 3 * middle), vector_at(p.head, 3 * first))


def lower_bone(p, middle):
    """From the middle joint to the effector."""
    return subtract(goal_point(p, 0), vector_at(p.head, 3 * middle))


def bent_arm(p, first, middle, bent):
    """From the root joint to the effector with a rotation of the middle joint relative to rest."""
    lower = rotate_back(quaternion_at(p.frame, 4 * middle), lower_bone(p, middle))
    turned = multiply(quaternion_at(p.base, 4 * middle), bent)
    return add(upper_bone(p, first, middle), rotate(turned, lower))


def bend_and_aim(p, first, middle, distance, good, pole, has_pole, pole_angle):
    """Set the rotations of both joints; whether limits keep them off the target.

    It takes the first bend that misses the target by no more than `good`, or that with the least miss. Bends
    to the present side come first, then to the other, and for a ball about other axes.
    """
    upper, lower = upper_bone(p, first, middle), lower_bone(p, middle)
    base, frame = quaternion_at(p.base, 4 * middle), quaternion_at(p.frame, 4 * middle)
    best, best_middle = quaternion_at(p.rotation, 4 * first), quaternion_at(p.rotation, 4 * middle)
    least, limited = -1.0, True
    for number in range(BEND_AXES):
        axis = bend_axis(p, first, middle, number, pole, has_pole, pole_angle)
        if length(axis) == 0.0:
            continue
        for side in range(2):
            turn = opening_turn(upper, lower, axis, distance, side == 1)
            if p.width[middle] == 1:
                angle = p.angle[middle] + hinge_turn_in_range(p, middle, turn)
                bent = axis_rotation(hinge_axis(p.limit, LIMIT_WIDTH * middle), angle)
            else:
                bent = unit(multiply(conjugate(base), multiply(axis_rotation(axis, turn), frame)))
                bent = nearest_allowed(p.limit, LIMIT_WIDTH * middle, bent)
            aimed = aim(p, first, middle, bent, side == 1, pole, has_pole, pole_angle)
            miss = miss_of(p, first, middle, bent, aimed)
            if miss <= good or least < 0.0 or miss < least:
                best, best_middle, least = aimed, bent, miss
            if miss <= good:
                limited = False
                break
        if not limited:
            break
    set_rotation(p, first, best)
    set_rotation(p, middle, best_middle)
    return limited


def miss_of(p, first, middle, bent, aimed):
    """The effector's distance from the target for rotations of the middle and the root joint."""
    arm = rotate_back(quaternion_at(p.frame, 4 * first), bent_arm(p, first, middle, bent))
    turned = rotate(multiply(quaternion_at(p.base, 4 * first), aimed), arm)
    return length(subtract(turned, subtract(vector_at(p.target, 0), vector_at(p.head, 3 * first))))


def bend_axis(p, first, middle, number, pole, has_pole, pole_angle):
    """The unit axis of a number about which the middle joint may bend; zero where there is none."""
    none = Vector(0.0, 0.0, 0.0)
    frame = quaternion_at(p.frame, 4 * middle)
    if p.width[middle] == 1:
        if number > 0:
            return none
        return rotate(quaternion_at(p.base, 4 * middle), hinge_axis(p.limit, LIMIT_WIDTH * middle))
    upper, lower = upper_bone(p, first, middle), lower_bone(p, middle)
    normal = cross(upper, lower)
    is_bent = length(normal) > NOISE * length(upper) * length(lower)
    if number == 0:
        if is_bent:
            return direction_of(normal)
        if has_pole:
            # Straight or folded: it bends to the pole's side of the line where the normal is pole x line.
            side = cross(pole, upper)
            if length(side) > NOISE * length(pole) * length(upper):
                turn = axis_rotation(direction_of(upper), pole_angle)
                return rotate(turn, direction_of(side))
        return none
    if is_bent and p.limit[LIMIT_WIDTH * middle] == 0.0:
        return none  # a free joint needs no other axis
    if number == 3:
        return perpendicular(upper)
    axis = rotate(frame, Vector(1.0, 0.0, 0.0) if number == 1 else Vector(0.0, 0.0, 1.0))
    axis = across(axis, upper)
    return direction_of(axis) if length(axis) > 0.5 else none


def across(a, line):
    """The part of a vector across a line; all of it for a line without length."""
    square = dot(line, line)
    return subtract(a, scaled(line, dot(a, line) / square)) if square > 0.0 else a


def aim(p, first, middle, bent, is_other_side, pole, has_pole, pole_angle):
    """The root joint's rotation relative to rest that aims the effector, and turns the bend to the pole.

    `is_other_side` tells on which side of the present bend `bent` is, where the chain becomes straight.
    """
    upper, arm = upper_bone(p, first, middle), bent_arm(p, first, middle, bent)
    way = subtract(vector_at(p.target, 0), vector_at(p.head, 3 * first))
    before = quaternion_at(p.rotation, 4 * first)
    extent = length(upper) + length(lower_bone(p, middle))
    if min(length(arm), length(way)) <= NOISE * extent:
        return before  # the target, or the effector, is at the root joint's head: nothing to aim
    at = LIMIT_WIDTH * first
    if p.width[first] == 1:
        axis = rotate(quaternion_at(p.base, 4 * first), hinge_axis(p.limit, at))
        turn = hinge_turn_in_range(p, first, turn_towards(axis, arm, way))
        return axis_rotation(hinge_axis(p.limit, at), p.angle[first] + turn)
    normal = bend_normal(p, first, middle, bent, is_other_side, pole, has_pole, pole_angle)
    arc, line = arc_across(arm, way, normal), direction_of(way)
    twist = 0.0
    if has_pole:
        twist = twist_to_pole(line, pole, pole_angle, rotate(arc, upper), rotate(arc, normal))
    wanted = swivelled(p, first, arc, line, twist)
    if is_allowed(p.limit, at, wanted):
        return wanted
    turn = allowed_swivel(p, first, arc, line, twist)
    if fabs(turn) <= 2.0 * pi:
        return swivelled(p, first, arc, line, twist + turn)
    # No turn about the line is inside the limit: the nearest rotations that are miss the target.
    wanted = nearest_allowed(p.limit, at, wanted)
    untwisted = nearest_allowed(p.limit, at, swivelled(p, first, arc, line, 0.0))
    if miss_of(p, first, middle, bent, untwisted) < miss_of(p, first, middle, bent, wanted):
        return untwisted
    return wanted


def swivelled(p, first, arc, line, angle):
    """The root joint's rotation after an arc of model space, and a turn about the line to the target."""
    turned = multiply(axis_rotation(line, angle), multiply(arc, quaternion_at(p.frame, 4 * first)))
    return unit(multiply(conjugate(quaternion_at(p.base, 4 * first)), turned))


def violation(p, i, q):
    """The angle by which a rotation is outside a joint's limit, radians; 0 inside."""
    nearest = nearest_allowed(p.limit, LIMIT_WIDTH * i, q)
    if nearest.w == q.w and nearest.x == q.x and nearest.y == q.y and nearest.z == q.z:
        return 0.0
    return angle_of(multiply(conjugate(q), nearest))


def allowed_swivel(p, first, arc, line, twist):
    """The smallest turn to either side at which the root joint is inside its limit; above 2 pi if none is.

    Where no sample is inside, it searches a narrower gap beside the one that is outside least.
    """
    least, nearest = -1.0, 0.0
    for step in range(1, SWIVEL_STEPS + 1):
        for side in range(2):
            turn = SWIVEL * (step if side else -step)
            amount = violation(p, first, swivelled(p, first, arc, line, twist + turn))
            if amount == 0.0:
                # Bisection of the border, which ends on the inside.
                inside, outside = turn, turn - (SWIVEL if side else -SWIVEL)
                for _ in range(SWIVEL_HALVINGS):
                    half = 0.5 * (inside + outside)
                    if violation(p, first, swivelled(p, first, arc, line, twist + half)) == 0.0:
                        inside = half
                    else:
                        outside = half
                return inside
            if least < 0.0 or amount < least:
                least, nearest = amount, turn
    lower, upper = nearest - SWIVEL, nearest + SWIVEL
    for _ in range(SWIVEL_HALVINGS):
        third = (upper - lower) / 3.0
        first_amount = violation(p, first, swivelled(p, first, arc, line, twist + lower + third))
        second_amount = violation(p, first, swivelled(p, first, arc, line, twist + upper - third))
        if first_amount == 0.0:
            return lower + third
        if second_amount == 0.0:
            return upper - third
        if first_amount < second_amount:
            upper -= third
        else:
            lower += third
    return 4.0 * pi


def bend_normal(p, first, middle, bent, is_other_side, pole, has_pole, pole_angle):
    """The unit normal of the bend after the middle joint has turned; of a straight chain's next bend."""
    upper, there = upper_bone(p, first, middle), bent_arm(p, first, middle, bent)
    extent = length(upper) + length(lower_bone(p, middle))
    normal = cross(upper, there)
    if length(normal) > NOISE * extent * extent:
        return direction_of(normal)
    if length(upper) > NOISE * extent:
        # A bent chain that becomes straight keeps its plane and side.
        side = -1.0 if is_other_side else 1.0
        if p.width[middle] == 1:
            axis = bend_axis(p, first, middle, 0, pole, has_pole, pole_angle)
            side = dot(axis, cross(upper, lower_bone(p, middle)))
            if fabs(side) <= NOISE * extent * extent:
                lower_end, upper_end = hinge_range(p.limit, LIMIT_WIDTH * middle)
                middle_angle = 0.5 * (lower_end + upper_end)
                angle = 2.0 * atan2(
                    dot(Vector(bent.x, bent.y, bent.z), hinge_axis(p.limit, LIMIT_WIDTH * middle)), bent.w
                )
                side = middle_angle - wrapped(angle, middle_angle)
        for number in range(BEND_AXES):
            axis = across(bend_axis(p, first, middle, number, pole, has_pole, pole_angle), upper)
            if length(axis) > NOISE:
                return scaled(direction_of(axis), copysign(1.0, side))
    return perpendicular(there)


def twist_to_pole(line, pole, pole_angle, upper, normal):
    """The turn, radians, about the unit `line` to the target that brings the bend to the pole.

    It is 0 where the pole gives no side.
    """
    side = across(pole, line)
    if length(side) <= 10.0 * NOISE * length(pole):
        return 0.0  # the pole is on the line to the target, or at the root joint's head
    bend = across(upper, line)
    if length(bend) <= 10.0 * NOISE * length(upper):
        bend = cross(line, normal)  # straight: the side to which it would bend
    return wrapped(atan2(dot(line, cross(bend, side)), dot(bend, side)) + pole_angle, 0.0)


def arc_across(a, b, normal):
    """The shortest arc from `a` to `b`.

    Between opposite directions it is the half turn about the part of `normal` across `a`.
    """
    if dot(a, b) < 0.0 and length(cross(a, b)) <= NOISE * length(a) * length(b):
        axis = across(normal, a)
        if length(axis) > NOISE:
            axis = direction_of(axis)
            return Quaternion(0.0, axis.x, axis.y, axis.z)
    return between(a, b)


# Target triangles -----------------------------------------------------------------------------------


def solve_target_triangles(p, rotations, translations, offsets, rests, target, omegas):
    """Turn each joint that moves once, root first, see `solvers.closed_forms.target_triangle`.

    Args:
        rotations, translations, offsets, rests, target: as of `solve_two_bones`.
        omegas: (1, J) the largest angle between a joint's link and the link before, radians.

    Raises:
        ValueError: arrays of other sizes, numbers that are not finite, a problem of another kind.
    """
    check_chain(p, 1, rotations, translations, offsets, rests, target)
    check_size(omegas, 1, p.joints)
    for i in range(p.joints):
        if not 0.0 <= omegas[0, i] <= LARGEST:
            raise ValueError("kernel: omega must be finite, and 0 or more")
    beyond = zeros(p.joints)
    p.is_busy = True
    with nogil:
        enter_chain(p, rotations, translations, offsets, rests, target)
        sum_ = 0.0
        for n in range(p.moving_count - 1, -1, -1):
            i = p.moving[n]
            beyond[i] = sum_  # length of the links after a joint's own
            sum_ += length(link_of(p, i))
        i, none = p.moving[0], Vector(0.0, 0.0, 0.0)
        stand = Stand(vector_at(p.head, 3 * i), quaternion_at(p.base, 4 * i), none, none)
        for n in range(p.moving_count):
            i = p.moving[n]
            rotation = best_turn(p, stand, i, beyond, omegas)
            stand = stand_above(p, stand, i, rotation)
            set_rotation(p, i, rotation)
        for n in range(4 * p.joints):
            rotations[0, n] = p.rotation[n]
    p.is_busy = False


def link_of(p, i):
    """From a joint to the next that moves, or to the effector, in the joint's frame."""
    after = p.next_moving[i]
    end = goal_point(p, 0) if after < 0 else vector_at(p.head, 3 * after)
    return rotate_back(quaternion_at(p.frame, 4 * i), subtract(end, vector_at(p.head, 3 * i)))


def best_turn(p, stand, i, beyond, omegas):
    """The rotation of a joint relative to rest with which the next joint can make its turn."""
    exact = triangle_angle(p, stand, i, beyond[i])
    chosen = placed_link(p, stand, i, exact, omegas)
    after = p.next_moving[i]
    if after < 0:
        return chosen.rotation
    for step in range(TRIANGLE_STEPS + 1):
        for side in range(2):
            angle = exact + (TRIANGLE_STEP * step if side else -TRIANGLE_STEP * step)
            if step == 0:
                if side:
                    continue
            elif not -TRIANGLE_STEP < angle < pi + TRIANGLE_STEP:
                continue
            angle = exact if step == 0 else min(max(angle, 0.0), pi)
            placed = placed_link(p, stand, i, angle, omegas)
            if not placed.fits:
                continue
            above = stand_above(p, stand, i, placed.rotation)
            far = length(subtract(vector_at(p.target, 0), above.head))
            if far > beyond[i] * (1.0 + NOISE) and angle != exact:
                continue  # from there the links after it would be too short
            if placed_link(p, above, after, triangle_angle(p, above, after, beyond[after]), omegas).fits:
                return placed.rotation
    return chosen.rotation


def triangle_angle(p, stand, i, b):
    """phi_b, the angle between link and target, radians (eq. 3, and the cases without a triangle)."""
    a, c = length(link_of(p, i)), length(subtract(vector_at(p.target, 0), stand.head))
    # A chain straight but for rounding counts as straight: its angle would be sqrt(NOISE).
    if c >= (a + b) * (1.0 - NOISE) or a >= b + c:
        return 0.0
    if b >= a + c:
        return pi
    cosine = min(max(0.5 * (a / c + c / a - b / a * (b / c)), -1.0), 1.0)
    return atan2(sqrt(1.0 - cosine * cosine), cosine)


def triangle_axis(p, stand, i, along, towards):
    """V_r, the unit axis from the link to the target (eq. 2), with a fallback on one line."""
    normal = cross(along, towards)
    if length(normal) > NOISE * length(along) * length(towards):
        return direction_of(normal)
    if p.width[i] == 1:
        axis = across(rotate(stand.base, hinge_axis(p.limit, LIMIT_WIDTH * i)), along)
        if length(axis) > 0.5:
            return direction_of(axis)
    axis = across(stand.axis, along)
    if length(axis) > 0.5:
        return direction_of(axis)
    return perpendicular(along)


def placed_link(p, stand, i, angle, omegas):
    """The rotation relative to rest with the link at `angle` from the target, and whether limits allow it.

    Otherwise the rotation is clamped to them.
    """
    rotation, link = quaternion_at(p.rotation, 4 * i), link_of(p, i)
    frame = multiply(stand.base, rotation)
    along, towards = rotate(frame, link), subtract(vector_at(p.target, 0), stand.head)
    if length(along) == 0.0 or length(towards) == 0.0:
        return Placed(rotation, True)  # no link to turn, or no direction to turn it to
    axis = triangle_axis(p, stand, i, along, towards)
    theta = atan2(dot(axis, cross(along, towards)), dot(along, towards))
    aimed = rotate(axis_rotation(axis, theta - angle), along)
    fits = True
    if length(stand.direction) > 0.0:
        back = cross(stand.direction, aimed)
        if atan2(length(back), dot(stand.direction, aimed)) > omegas[0, i] + NOISE:
            back = direction_of(back) if length(back) > NOISE * length(aimed) else axis
            aimed = rotate(axis_rotation(back, omegas[0, i]), stand.direction)
            fits = False
    at = LIMIT_WIDTH * i
    if p.width[i] == 1:
        turn = turn_towards(rotate(stand.base, hinge_axis(p.limit, at)), along, aimed)
        rotation = axis_rotation(hinge_axis(p.limit, at), p.angle[i] + hinge_turn_in_range(p, i, turn))
        off = subtract(rotate(multiply(stand.base, rotation), link), aimed)
        return Placed(rotation, fits and length(off) <= HINGE_FITTING * length(aimed))
    turned = unit(multiply(conjugate(stand.base), multiply(arc_across(along, aimed, axis), frame)))
    return Placed(nearest_allowed(p.limit, at, turned), fits and violation(p, i, turned) <= FITTING)


def stand_above(p, stand, i, rotation):
    """The state before the next joint that moves turns, after joint i has taken `rotation`."""
    link, after = link_of(p, i), p.next_moving[i]
    frame = unit(multiply(stand.base, rotation))
    base = frame
    if after >= 0:
        rest = multiply(conjugate(quaternion_at(p.frame, 4 * i)), quaternion_at(p.base, 4 * after))
        base = unit(multiply(frame, rest))
    direction, towards = rotate(frame, link), subtract(vector_at(p.target, 0), stand.head)
    if length(direction) == 0.0:
        return Stand(stand.head, base, stand.direction, stand.axis)
    axis = stand.axis
    if length(towards) > 0.0:
        along = rotate(multiply(stand.base, quaternion_at(p.rotation, 4 * i)), link)
        axis = triangle_axis(p, stand, i, along, towards)
    return Stand(add(stand.head, direction), base, direction, axis)
