"""Solve a pose: inside its limits, on its goals, and of all such poses the nearest to its reference.

Passes of CCD bring effectors near from anywhere. *Reach* meets the goals, *slide* moves along them towards
the reference (`least_squares`). A pose that misses its goals is retried from other starts. Then its errors
are minimised, rank by rank of the goals. With CCD alone there are only passes.
"""

from __future__ import annotations

from math import pi, sqrt

from .ccd import (
    LARGEST_ERROR,
    ROOT_TO_TIP,
    bend_into_windows,
    bend_limbs,
    is_as_near_as_links_allow,
    is_out_of_reach,
    mirror_bends,
    mirror_limbs,
    perturb,
    run_pass,
    share_steps,
    straighten_limbs,
    stretch,
    swivel,
)
from .geometry import (
    conjugate,
    length,
    logarithm,
    multiply,
    quaternion_at,
    single,
    unit,
)
from .goals import DIRECTION, ORIENTATION, WINDOW, WINDOW_SLACK, measure, measure_goal, set_weights
from .kinematics import LARGEST, forward
from .least_squares import (
    LONGEST_STEP,
    TIGHT,
    compute_step,
    evaluate,
    linearise,
    measure_departure,
    missed_square,
    reach,
    return_to_goals,
    settle,
    share_pass,
    slide,
)
from .limits import LIMIT_WIDTH, nearest_allowed
from .plain import Quaternion, Vector, nogil
from .skeleton import (
    SMALLEST,
    UNIT_SLACK,
    clamp_slide,
    copy_reference_shift,
    read_angle,
    restore,
    save,
    set_rotation,
    set_tolerance,
    set_translation,
)

MISFIT = "kernel: the arrays do not fit the problem"

CONVERGED = 0  # statuses: see `settings.SolveStatus`
STALLED = 1
OPTIMAL = 2
ITERATION_LIMIT = 3
OUT_OF_REACH = 4  # of a first solve, for its first missed rank: other starts are of no use

START = 2  # slots of saved poses: the start of a try
BEST = 3
REFERENCE_SLACK = 0.01
"""Part of the best pose's error by which the error of a pose reached from the reference may be larger."""
FINAL_ROUNDS = 2
"""Most further rounds of minimising errors while the pose is not stationary."""
SERVED = 5  # a pose that is restored if what follows is no better
FOLLOWED = 6  # the last pose of a path
FIRST_START = 4  # the start of the solve, or of a retry: the best pose of the first solve

PASSES = 3
"""Passes of CCD before least squares."""
EARLY_EXIT = 0.95
"""Part of the square error that a step may leave before it counts as slow, while other starts remain."""
STRICT = 0.999
"""`EARLY_EXIT` while errors are minimised."""
SLOW_PASSES = 40
"""Passes of CCD alone over which the error must fall by `SLOW_GAIN`."""
SLOW_GAIN = 0.02
RESTORE_PASSES = 12
"""Most passes in which goals of earlier ranks recover their errors from a pass of later ones."""
BEND = 0.1
"""Radians by which joints are bent to leave a local minimum."""
MOST_STEPS = 2147483647
"""Largest count of steps."""
SHORT = 1e-4
"""Length of the step by which limits are tested."""
STATIONARY = 1e-2
"""Projected gradient up to which a pose that misses its goals counts as OPTIMAL: a cosine."""
FAR_TURN = 1.5
"""Radians between a joint and its reference from which the way to the targets is followed.

Chains of three to twelve bones with joints turned by up to 160 degrees missed the nearest in 3 of 100 poses.
So did a straight chain whose target is behind it. From 1 radian on, more ways end in another bend.
"""
SHORTEST = 1.0 / 64.0
"""Shortest step of a path, in parts of the way to the targets."""
GIVING_WAY = 10.0
"""Factor of the projected gradient of a goal that gives way to others."""


def enter_limits(p):
    """Clamp joints that may move to their limits, and store the angles of hinges."""
    for i in range(p.joints):
        if p.width[i]:
            turned = nearest_allowed(p.limit, LIMIT_WIDTH * i, quaternion_at(p.rotation, 4 * i))
            set_rotation(p, i, turned)
        if p.width[i] == 1:
            read_angle(p, i)
        for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
            clamp_slide(p, p.column_slide[column], i)
    for k in range(p.couplings):
        read_angle(p, p.coupled_driver[k])


# One try --------------------------------------------------------------------------------------------


def solve_pose(p):
    """Solve the loaded pose from its present state; returns the status."""
    begin(p)
    if p.error_ratio <= 1.0 and p.departure_square == 0.0:
        return CONVERGED
    if p.has_reference and p.departure_square > 0.0 and try_reference(p):
        return CONVERGED
    if not p.moving_count:
        return CONVERGED if p.error_ratio <= p.met_ratio else STALLED
    is_far, is_near = is_out_of_reach(p, p.last_rank), False
    if is_far:
        stretch(p)
        is_near = is_as_near_as_links_allow(p)
        keep_if_better(p)
        restore(p, START)
        measure(p)
    if is_far and p.is_alone and (is_near or not p.by_passes):
        p.steps += 1
        return OUT_OF_REACH
    if p.by_passes:
        status = descend(p)
        if status == CONVERGED and p.to_region and not p.only_ccd:
            evaluate(p)
            slide(p)
        if status == CONVERGED:
            return status
        return OUT_OF_REACH if is_far and is_out_of_reach(p, first_missed_rank(p)) else status
    if p.has_limbs and p.has_reference:
        bend_limbs(p)
        if reach(p, EARLY_EXIT):
            slide_on_sides(p)
            return CONVERGED
        keep_if_better(p)
        restore(p, START)
        measure(p)
    if meet(p, STRICT if p.stays_local else EARLY_EXIT):
        if not p.has_tips:  # two bones that reach alone leave the others in place
            slide_on_sides(p)
            is_far = p.has_reference and not p.stays_local and farthest_turn(p) > FAR_TURN
            if is_far:
                follow_targets(p)
                if mirror_if_met(p):
                    slide(p)
        return CONVERGED
    enter_windows(p)
    keep_if_better(p)
    status = ITERATION_LIMIT if p.ran_out else STALLED
    if not p.stays_local:
        meet_earlier_ranks(p)
    return OUT_OF_REACH if is_far and is_out_of_reach(p, first_missed_rank(p)) else status


def meet_earlier_ranks(p):
    """Meet rank by rank what all ranks together miss, from the start; the best pose stays in its slot."""
    for rank in range(p.last_rank):
        if first_missed_rank(p) == rank:
            p.stage = rank
            restore(p, START)
            measure(p)
            reach(p, EARLY_EXIT)
            enter_windows(p)
            keep_if_better(p)
    p.stage = p.last_rank


def first_missed_rank(p):
    """The first rank whose goals the best pose misses; 0 outside reach windows."""
    for rank in range(p.last_rank):
        if p.best_score[rank + 2] > 0.0 or p.best_score[0] > 0.0 or p.best_score[1] > 0.0:
            return rank
    return p.last_rank


def missed_error(p):
    """The error of the best pose in the first rank that it misses."""
    return sqrt(p.best_score[first_missed_rank(p) + 2])


def farthest_turn(p):
    """The largest rotation of a joint from the reference, radians."""
    farthest = 0.0
    for i in range(p.joints):
        square = 0.0
        for column in range(p.first_column[i], p.first_column[i] + p.width[i]):
            part = p.departure_gradient[column] * p.mobility[3 * i + column - p.first_column[i]]
            square += part * part
        farthest = max(farthest, sqrt(square))
    return farthest


def follow_targets(p):
    """Meet the goals again, along the way to their targets, and keep the result if they are met.

    A pose far from its reference may be the nearest only locally, and which one least squares end in changes
    from frame to frame. A path of nearest poses leads to the nearest of all more often, and to the same bend
    for targets nearby (Allgower and Georg 1990, "Numerical continuation methods"). It has two steps, which
    are halved where joints turn by more than `LONGEST_STEP`: there the path has changed its bend.
    """
    save(p, SERVED)
    restore(p, START)
    measure(p)
    for row in range(p.rows):
        p.first_residual[row] = p.residual[row]
    done, ahead, met = 0.0, 0.5, True
    while met and done < 1.0:
        save(p, FOLLOWED)
        to = min(done + ahead, 1.0)
        for row in range(p.rows):
            p.row_offset[row] = (1.0 - to) * p.first_residual[row]
        measure(p)
        met = reach(p, EARLY_EXIT)
        if met:
            slide(p)
        turn = turn_since(p, FOLLOWED)
        if (not met or turn > LONGEST_STEP) and ahead > SHORTEST and p.steps < p.last_step:
            restore(p, FOLLOWED)
            ahead, met = 0.5 * ahead, True
        else:
            done = to
            if turn < 0.5 * LONGEST_STEP:
                ahead *= 2.0
    for row in range(p.rows):
        p.row_offset[row] = 0.0
    evaluate(p)
    if not met or p.steps >= p.last_step:  # the last slide may not have come to its end
        restore(p, SERVED)
        evaluate(p)


def slide_on_sides(p):
    """Slide to the reference, with limbs that bend to their side where such a pose meets the goals.

    Least squares may take a limb through its straight pose, and know no side there.
    """
    is_mirrored = mirror_if_met(p)
    slide(p)
    if not is_mirrored and mirror_if_met(p):
        slide(p)


def mirror_if_met(p):
    """Mirror limbs that bend backwards, and meet the goals again; whether there are any, and they are met.

    Otherwise the pose stays.
    """
    if not (p.has_sides and p.has_reference):
        return False
    save(p, SERVED)
    if not mirror_limbs(p):
        return False
    if reach(p, EARLY_EXIT):
        return True
    restore(p, SERVED)
    evaluate(p)
    return False


def turn_since(p, slot):
    """The largest rotation of a joint from a saved pose, radians."""
    largest = 0.0
    for i in range(p.joints):
        saved = quaternion_at(p.saved, 8 * p.joints * slot + 4 * i)
        turn = multiply(quaternion_at(p.rotation, 4 * i), conjugate(saved))
        largest = max(largest, length(logarithm(turn)))
    return largest


def try_reference(p):
    """Whether the reference meets the goals; the pose is then the reference. CCD alone starts from it."""
    load_reference_pose(p)
    if p.error_ratio <= p.met_ratio:
        return True
    if p.by_passes:
        keep_if_better(p)
        if p.has_windows:
            bend_into_windows(p)
            keep_if_better(p)
        save(p, START)
    else:
        restore(p, START)
        measure(p)
    return False


def load_reference_pose(p):
    """Move the joints that may move to the reference, and measure the goals there."""
    for n in range(p.moving_count):
        i = p.moving[n]
        set_rotation(p, i, quaternion_at(p.reference_rotation, 4 * i))
        p.angle[i] = p.reference_angle[i]
        for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
            copy_reference_shift(p, p.column_slide[column], i)
    measure(p)


def begin_try(p):
    """Set the last step of a try, by its own limit and the budget."""
    p.last_step = min(p.steps + min(p.most, MOST_STEPS - p.steps), p.budget)
    p.ran_out = False


def begin(p):
    """Clamp the pose to its limits, measure it, and take it for the best so far."""
    p.stage = p.last_rank
    p.is_equal = True
    p.to_region = p.likes_regions and not p.has_reference
    p.by_passes = p.only_ccd or p.has_comfort or (is_step_optimal(p) and not p.has_reference)
    begin_try(p)
    for row in range(p.rows):
        p.row_offset[row] = 0.0
    enter_limits(p)
    measure(p)
    measure_departure(p)
    for k in range(p.goals):
        p.start_distance[k] = p.distance[k]
    save(p, BEST)
    note_score(p)
    for place in range(p.last_rank + 3):
        p.best_score[place] = p.score[place]
    if p.has_windows and (p.score[0] > 0.0 or p.score[1] > 0.0):
        bend_into_windows(p)
        keep_if_better(p)
        restore(p, BEST)
        measure(p)
        measure_departure(p)
    save(p, START)
    save(p, FIRST_START)


def is_step_optimal(p):
    """Whether a step of CCD is the optimum: of a single joint that turns as far as it needs."""
    return p.moving_count == 1 and p.slides == 0 and p.max_step[p.moving[0]] >= pi


def meet(p, slow_ratio):
    """Meet all goals by passes, then least squares; whether they are met.

    Near a reference least squares come first: the reference counts there, not the order of joints.
    """
    if (p.stays_local or p.has_reference) and not p.has_tips and reach(p, slow_ratio):
        return True
    enter_windows(p)
    keep_if_better(p)
    if p.stays_local:
        return False
    restore(p, START)
    if p.has_poles and swivel_poles(p):
        return True
    measure(p)
    share_steps(p, p.reduction)
    first = sqrt(p.square)
    for number in range(PASSES):
        if p.steps >= p.last_step:
            break
        pass_over(p, number, first)
        p.steps += 1
        if p.error_ratio <= p.met_ratio:
            break
    if reach(p, slow_ratio):
        return True
    enter_windows(p)
    keep_if_better(p)
    if p.steps >= p.last_step:
        p.ran_out = True
        return False
    perturb(p, BEND)
    return reach(p, slow_ratio)


def swivel_poles(p):
    """Turn chains to their poles as a start; whether all goals are met.

    A nearly straight chain that bends away from its pole is first mirrored to the other side.
    """
    for n in range(2):
        if p.steps >= p.last_step or (n == 0 and not mirror_bends(p)):
            continue
        swivel(p)
        p.steps += 1
        keep_if_better(p)
        if p.error_ratio <= p.met_ratio:
            return True
        restore(p, START)
    restore(p, BEST)
    return False


def note_score(p):
    """Store the scores of a pose, in order of importance; each is 0 where its goals are met.

    First the excess of reach windows that are longer than at the start, then the excess of all reach windows,
    then the square errors of missed goals by rank.
    """
    for place in range(p.last_rank + 3):
        p.score[place] = 0.0
    for k in range(p.goals):
        if p.goal_kind[k] == WINDOW:
            if p.distance[k] > WINDOW_SLACK * p.position_tolerance:
                over = p.distance[k] / p.reach
                p.score[1] += over * over
                if p.distance[k] > p.start_distance[k] + WINDOW_SLACK * p.position_tolerance:
                    p.score[0] += over * over
        elif p.distance[k] > p.position_tolerance or p.miss[k] > p.angle_tolerance:
            for row in range(p.first_row[k], p.first_row[k + 1]):
                p.score[p.goal_rank[k] + 2] += p.residual[row] * p.residual[row]


def is_better(p):
    """Whether the pose is better than the best so far in the first score in which they differ."""
    return compare_scores(p, p.position_tolerance / p.reach, 0.0) > 0


def compare_scores(p, tolerance, part):
    """Compare the pose with the best so far: 1 better, -1 worse, 0 equal.

    Scores are equal that differ by no more than `tolerance` plus a part of the best. The lower of two equal
    scores is kept, or small losses would add up. In the last score any gain is better.
    """
    note_score(p)
    last = p.last_rank + 2
    for place in range(last + 1):
        new, old = sqrt(p.score[place]), sqrt(p.best_score[place])
        if (new == 0.0) != (old == 0.0):
            return 1 if new == 0.0 else -1
        slack = tolerance + part * old
        if new < old - slack:
            return 1
        if new > old + slack:
            return -1
        if place == last and new < old:
            return 1
        p.score[place] = min(p.score[place], p.best_score[place])
    return 0


def keep_if_better(p):
    """Take the measured pose for the best if it is better."""
    if is_better(p):
        set_best(p)


def set_best(p):
    save(p, BEST)
    for place in range(p.last_rank + 3):
        p.best_score[place] = p.score[place]


def enter_windows(p):
    """Bring chains back into their reach windows, which least squares may leave by a little."""
    if p.has_windows:
        stage, equal = p.stage, p.is_equal
        p.stage = -1
        p.is_equal = False
        measure(p)
        if p.error_ratio > p.met_ratio:
            reach(p, STRICT)
        if p.error_ratio > TIGHT:
            evaluate(p)
            return_to_goals(p)
        p.stage = stage
        p.is_equal = equal
        measure(p)


# CCD alone ------------------------------------------------------------------------------------------


def descend(p):
    """Run passes rank by rank of the goals, until they are met or no longer come nearer; returns the status.

    Goals of earlier ranks are restored after every pass (Kenwright 2012, section 9.1). Poses with larger
    errors of these goals do not count.
    """
    status = CONVERGED
    for rank in range(p.last_rank + 1):
        p.stage = rank
        restore(p, START if rank == 0 else BEST)
        save(p, START)
        measure(p)
        status = descend_rank(p)
    p.stage = p.last_rank
    restore(p, BEST)
    measure(p)
    return CONVERGED if p.error_ratio <= p.met_ratio else max(status, STALLED)


def descend_rank(p):
    """Run passes for the goals of a rank; returns the status.

    After the first stall all joints are bent a little, which leaves straight and folded chains.
    """
    number, is_perturbed, count = 0, False, 0
    if p.error_ratio <= p.met_ratio:
        return CONVERGED
    trivial = min(p.stall * p.reach, 0.02 * p.position_tolerance)
    first = sqrt(p.square)
    share_steps(p, p.reduction)
    if p.has_poles and swivel_poles(p):
        return CONVERGED
    measure(p)
    window_error = p.square
    while p.steps < p.last_step:
        longest = pass_over(p, number, first)
        if p.stage > 0:
            restore_earlier_goals(p)
        number += 1
        count += 1
        p.steps += 1
        keep_if_better(p)
        if p.error_ratio <= p.met_ratio:
            return CONVERGED
        stuck = longest <= trivial
        if count % SLOW_PASSES == 0:
            stuck = stuck or p.square >= window_error * (1.0 - SLOW_GAIN) * (1.0 - SLOW_GAIN)
            window_error = p.square
        if stuck:
            restore(p, BEST)
            measure(p)
            if is_perturbed or p.stays_local:
                return STALLED
            perturb(p, BEND)
            window_error = p.square
            is_perturbed = True
            count = 0
    restore(p, BEST)
    measure(p)
    p.ran_out = True
    return ITERATION_LIMIT


def pass_over(p, number, first):
    """Run a pass over the joints; returns the longest motion of an effector by a step.

    With error reduction, one position and joints that only turn, all joints move at once: the step of least
    squared rotation.
    """
    if p.reduction > 0.0 and p.order == ROOT_TO_TIP and p.can_share:
        return share_pass(p)
    return run_pass(p, p.order, number, part_of_step(p, first))


def restore_earlier_goals(p):
    """Run passes for goals of earlier ranks, until their errors are restored."""
    rank = p.stage
    p.stage = rank - 1
    for number in range(RESTORE_PASSES):
        measure(p)
        if p.error_ratio <= p.met_ratio:
            break
        run_pass(p, p.order, number, 1.0)
    p.stage = rank
    measure(p)


def part_of_step(p, first):
    """The part of a step: its difference from 1 fades with the error (Kenwright 2012, section 8)."""
    if p.reduction > 0.0:
        return 1.0
    beside = p.fraction - 1.0
    if p.feedback > 0.0 and first > 0.0:
        beside *= 1.0 - p.feedback * (1.0 - min(1.0, sqrt(p.square) / first))
    return min(max(1.0 + beside, 0.1), 1.3)


# Other starts ---------------------------------------------------------------------------------------


def try_start(p, rotations, translations, is_turn, number):
    """Solve from another start; whether it meets the goals. The best pose stays in its slot.

    The first rank that the best pose misses is met before later ones. Rotations of the start are absolute, or
    relative to the start of the solve (`is_turn`).
    """
    restore(p, FIRST_START)
    begin_try(p)
    for n in range(p.moving_count):
        i = p.moving[n]
        turned = Quaternion(
            rotations[number, 4 * i],
            rotations[number, 4 * i + 1],
            rotations[number, 4 * i + 2],
            rotations[number, 4 * i + 3],
        )
        if is_turn[number, i]:
            turned = unit(multiply(quaternion_at(p.rotation, 4 * i), turned))
        if p.width[i]:
            set_rotation(p, i, turned)
        if p.first_column[i + 1] - p.first_column[i] > p.width[i]:
            shift = Vector(
                translations[number, 3 * i], translations[number, 3 * i + 1], translations[number, 3 * i + 2]
            )
            set_translation(p, i, shift)
    enter_limits(p)
    if p.by_passes:
        save(p, START)
        return descend(p) == CONVERGED
    p.stage = first_missed_rank(p)
    measure(p)
    met = reach(p, EARLY_EXIT)
    if met and p.stage < p.last_rank:
        keep_if_better(p)
        p.stage = p.last_rank
        measure(p)
        met = reach(p, EARLY_EXIT)
    p.stage = p.last_rank
    if met:
        slide_on_sides(p)
        return True
    enter_windows(p)
    keep_if_better(p)
    return False


def retry(p, rotations, translations, is_turn, status):
    """Solve the loaded pose from other starts, and minimise its errors if all fail; returns the status.

    `status` is the result of the first solve.
    """
    begin(p)
    had_run_out = status == ITERATION_LIMIT
    for start in range(rotations.shape[0]):
        if p.steps >= p.budget or is_out_of_reach(p, first_missed_rank(p)):
            break
        if try_start(p, rotations, translations, is_turn, start):
            return CONVERGED
        had_run_out = p.ran_out
    return minimise_error(p, had_run_out)


# Least errors ---------------------------------------------------------------------------------------


def minimise_error(p, had_run_out):
    """Minimise the errors of the best pose, rank by rank of the goals; returns the status.

    `had_run_out` says whether steps had run out before.
    """
    restore(p, BEST)
    begin_try(p)
    p.ran_out = had_run_out
    measure(p)
    slow_gain, is_settled = 1.0 - STRICT, False
    if not p.by_passes and p.has_reference:
        load_reference_pose(p)
        is_settled = solve_ranks(p, 1.0 - slow_gain, REFERENCE_SLACK if p.starts_at_reference else 0.0)
        restore(p, BEST)
    evaluate(p)
    for number in range(FINAL_ROUNDS + 1):
        if p.error_ratio <= p.met_ratio:
            return CONVERGED
        if projected_gradient(p, first_missed_rank(p) if is_settled else p.last_rank) <= STATIONARY:
            return OPTIMAL
        if p.by_passes or number == FINAL_ROUNDS or (number > 0 and p.ran_out):
            break
        missed = missed_error(p)
        is_settled = solve_ranks(p, 1.0 - slow_gain, 0.0)
        slow_gain *= 0.1
        restore(p, BEST)
        evaluate(p)
        # Settled poses gain no more from another round.
        if p.has_windows and missed - missed_error(p) < p.position_tolerance / p.reach:
            break
    return ITERATION_LIMIT if p.ran_out else STALLED


def solve_ranks(p, slow_ratio, slack_part):
    """Minimise errors rank by rank, each in the null space of the ranks before.

    The pose becomes the best if it is no worse, within the part `slack_part` of the best pose's error.

    Returns:
        Whether it does, and all ranks are met or settled.
    """
    p.is_equal = False
    is_settled, are_all = False, True
    for rank in range(p.last_rank + 1):
        p.stage = rank
        measure(p)
        reach(p, EARLY_EXIT)
        is_settled = settle(p)
        are_all = are_all and ((is_settled and p.is_stationary) or missed_square(p) == 0.0)
        measure(p)
        if not is_settled and not reach(p, slow_ratio):
            # The gradient of a straight or folded chain vanishes: bend it a little.
            square = p.square
            save(p, SERVED)
            perturb(p, BEND)
            reach(p, slow_ratio)
            if p.square >= square:
                restore(p, SERVED)
                evaluate(p)
            enter_windows(p)  # errors can be kept only inside
        for k in range(p.goals):
            if p.goal_rank[k] == rank:
                near = p.distance[k] <= p.position_tolerance and p.miss[k] <= p.angle_tolerance
                p.is_met[k] = 1 if near else 0
            if 0 <= p.goal_rank[k] <= rank and not p.is_met[k]:
                for row in range(p.first_row[k], p.first_row[k + 1]):
                    p.row_offset[row] = p.residual[row]
    measure(p)
    if not is_settled:
        slide(p)
    # Rounding errors of earlier ranks, left by later ones, are removed.
    for rank in range(p.last_rank):
        p.stage = rank
        measure(p)
        if p.error_ratio > p.met_ratio:
            reach(p, slow_ratio)
    p.stage = p.last_rank
    p.is_equal = True
    for row in range(p.rows):
        p.row_offset[row] = 0.0
    enter_windows(p)
    measure(p)
    # Of equally near poses the one that slid to its reference.
    if compare_scores(p, p.position_tolerance / p.reach, slack_part) >= 0:
        set_best(p)
        return are_all
    return False


def projected_gradient(p, last):
    """The norm of the error's gradient, projected into the limits; 0 where the pose is stationary.

    It is the largest part of the gradient that belongs to a joint, divided by the residual times the longest
    lever: a cosine, as in MINPACK's test of the gradient (More 1978). Stiffness does not count. A goal that
    gives way to others is tested in their null space.

    Args:
        last: rank of the last goals that are tested. Beside a missed rank the next ones are stationary where
            second derivatives balance, as in `settle`.
    """
    steepest = 0.0
    p.is_equal = False
    for rank in range(last + 1):
        lever, square = 0.0, 0.0
        for column in range(p.columns):
            p.gradient[column] = 0.0
        for k in range(p.goals):
            if p.goal_rank[k] == rank and (
                p.distance[k] > p.position_tolerance or p.miss[k] > p.angle_tolerance
            ):
                for row in range(p.first_row[k], p.first_row[k + 1]):
                    square += p.residual[row] * p.residual[row]
                    for n in range(p.first_span[k], p.first_span[k + 1]):
                        for column in range(p.span_start[n], p.span_end[n]):
                            at = row * p.columns + column
                            serving = p.serving[at] if p.masked else p.slope[at]
                            p.gradient[column] += serving * p.residual[row]
        if square == 0.0:
            continue
        for i in range(p.joints):
            for column in range(p.first_column[i], p.first_column[i + 1]):
                part = 0.0
                for n in range(p.first_goal[i], p.first_goal[i + 1]):
                    k = p.joint_goal[n]
                    if p.goal_rank[k] == rank:
                        for row in range(p.first_row[k], p.first_row[k + 1]):
                            at = row * p.columns + column
                            serving = p.serving[at] if p.masked else p.slope[at]
                            part += serving * serving
                lever = max(lever, part / (p.mobility[3 * i] * p.mobility[3 * i]))
        if lever == 0.0:
            continue
        p.stage = rank - 1
        for row in range(p.rows):
            p.row_gain[row] = 0.0
            p.row_damping[row] = 0.0
        # A step so short that it leaves no limit from inside.
        scale = sqrt(lever * square)
        for column in range(p.columns):
            p.gradient[column] *= SHORT / scale
        compute_step(p, 1.0, 0.0)
        steep = largest_part(p) / SHORT
        steepest = max(steepest, steep * (GIVING_WAY if rank > 0 else 1.0))
    p.stage = p.last_rank
    p.is_equal = True
    return steepest


def largest_part(p):
    """The largest part of the step that belongs to a joint or slide, with stiffness taken out."""
    largest = 0.0
    for i in range(p.joints):
        column, square = p.first_column[i], 0.0
        for k in range(column, column + p.width[i]):
            square += p.step[k] * p.step[k]
        for k in range(column + p.width[i], p.first_column[i + 1]):
            square = max(square, p.step[k] * p.step[k])
        largest = max(largest, sqrt(square) / p.mobility[3 * i])
    return largest


# Many poses -----------------------------------------------------------------------------------------


def load_pose(p, rotations, translations, number):
    for k in range(4 * p.joints):
        p.rotation[k] = rotations[number, k]
    for k in range(3 * p.joints):
        p.translation[k] = translations[number, k]
    p.placed = 0


def load_bones(p, offsets, rests, number):
    for k in range(3 * p.joints):
        p.offset[k] = offsets[number, k]
    for k in range(4 * p.joints):
        p.rest[k] = rests[number, k]
    p.placed = 0


def load_sides(p, rotations, number):
    for k in range(4 * p.joints):
        p.side_rotation[k] = rotations[number, k]


def load_reference(p, rotations, translations, number):
    """Store the reference, clamped to the limits and sides of limbs: poses outside are not wanted."""
    load_pose(p, rotations, translations, number)
    enter_limits(p)
    if p.has_sides:
        straighten_limbs(p)
    for k in range(4 * p.joints):
        p.reference_rotation[k] = p.rotation[k]
    for k in range(3 * p.joints):
        p.reference_translation[k] = p.translation[k]
    for k in range(p.joints):
        p.reference_angle[k] = p.angle[k]


def solve_poses(
    p,
    rotations,
    translations,
    targets,
    weights,
    pole_angles,
    offsets,
    rests,
    tolerances,
    reference_rotations,
    reference_translations,
    side_rotations,
    start_rotations,
    start_translations,
    start_is_turn,
    statuses,
    steps,
    distances,
    misses,
    is_retry,
):
    """Solve B poses of a problem, each by itself.

    Args:
        rotations, translations: (B, 4J) and (B, 3J), relative to rest: starts, overwritten by results.
        targets: (B or 1, 4G).
        weights, pole_angles: (B or 1, G), override those of the problem; radians.
        offsets, rests: (B or 1, 3J) and (B or 1, 4J), override those of the problem.
        tolerances: (B or 1) of positions, in the model's unit; override that of the problem.
        reference_rotations, reference_translations: of B poses, or of 0 without a reference.
        side_rotations: of B poses whose limbs may bend to their side, or of 0 for the reference poses.
        start_rotations, start_translations: (K, 4J) and (K, 3J) other starts for poses that miss their goals.
        start_is_turn: (K, J) 1 where a start's rotation is relative to the pose.
        statuses: (B) written; of a retry at first those of the first solve.
        steps: (B) increased by the steps taken.
        distances, misses: (B, G) written, in the model's unit and radians.
        is_retry: False for a first solve; True to go on from its best pose where goals are missed, by other
            starts, then as near as it gets.

    Raises:
        ValueError: arrays of other sizes, numbers that are out of range.
    """
    check_ready(p)
    size, joints, goals = rotations.shape[0], p.joints, p.goals
    references, starts = reference_rotations.shape[0], start_rotations.shape[0]
    check_size(rotations, size, 4 * joints)
    check_size(translations, size, 3 * joints)
    check_size_or_one(targets, size, 4 * goals)
    check_size_or_one(weights, size, goals)
    check_size_or_one(pole_angles, size, goals)
    check_size_or_one(offsets, size, 3 * joints)
    check_size(rests, offsets.shape[0], 4 * joints)
    check_size(reference_rotations, references, 4 * joints)
    check_size(reference_translations, references, 3 * joints)
    check_size(side_rotations, side_rotations.shape[0], 4 * joints)
    check_size(start_rotations, starts, 4 * joints)
    check_size(start_translations, starts, 3 * joints)
    check_size(distances, size, goals)
    check_size(misses, size, goals)
    if (
        (tolerances.shape[0] != size and tolerances.shape[0] != 1)
        or (references != size and references != 0)
        or (side_rotations.shape[0] != size and side_rotations.shape[0] != 0)
        or start_is_turn.shape[0] != starts
        or start_is_turn.shape[1] != joints
        or statuses.shape[0] != size
        or steps.shape[0] != size
    ):
        raise ValueError(MISFIT)
    check_numbers("rotations", rotations, 4)
    check_numbers("translations", translations, 0)
    check_targets(p, targets)
    check_numbers("weights", weights, 0)
    for row in range(weights.shape[0]):
        for n in range(goals):
            if not weights[row, n] >= SMALLEST:
                raise ValueError(f"kernel: weights must be {SMALLEST:g} or more")
    check_numbers("pole angles", pole_angles, 0)
    check_numbers("offsets", offsets, 0)
    check_numbers("rests", rests, 4)
    check_numbers("reference rotations", reference_rotations, 4)
    check_numbers("reference translations", reference_translations, 0)
    check_numbers("side rotations", side_rotations, 4)
    check_numbers("start rotations", start_rotations, 4)
    check_numbers("start translations", start_translations, 0)
    for row in range(tolerances.shape[0]):
        if not SMALLEST <= tolerances[row] <= LARGEST:
            raise ValueError(f"kernel: tolerances must be {SMALLEST:g} to {LARGEST:g}")
    for row in range(size):
        if not 0 <= steps[row] <= MOST_STEPS:
            raise ValueError(f"kernel: steps must be 0 to {MOST_STEPS}")
    p.is_busy = True
    with nogil:
        for k in range(size):
            for n in range(4 * p.goals):
                p.target[n] = targets[k if targets.shape[0] > 1 else 0, n]
            for n in range(p.goals):
                p.goal_weight[n] = weights[k if weights.shape[0] > 1 else 0, n]
                p.goal_angle[n] = pole_angles[k if pole_angles.shape[0] > 1 else 0, n]
            set_weights(p)
            load_bones(p, offsets, rests, k if offsets.shape[0] > 1 else 0)
            set_tolerance(p, tolerances[k if tolerances.shape[0] > 1 else 0])
            p.has_reference = reference_rotations.shape[0] > 0
            if p.has_reference:
                load_sides(p, side_rotations if side_rotations.shape[0] > 0 else reference_rotations, k)
                load_reference(p, reference_rotations, reference_translations, k)
            load_pose(p, rotations, translations, k)
            p.steps = steps[k]
            if is_retry:
                status = retry(p, start_rotations, start_translations, start_is_turn, statuses[k])
            else:
                status = solve_pose(p)
                if status != CONVERGED:
                    restore(p, BEST)
                    measure(p)
            if p.rounds and (is_retry or status == CONVERGED):
                round_pose(p)
            statuses[k] = status
            steps[k] = p.steps
            for n in range(4 * p.joints):
                rotations[k, n] = p.rotation[n]
            for n in range(3 * p.joints):
                translations[k, n] = p.translation[n]
            for n in range(p.goals):
                distances[k, n] = p.distance[n]
                misses[k, n] = p.miss[n]
    p.is_busy = False


def round_pose(p):
    """Round the pose to single precision, and measure the goals in it.

    Heads and frames are rounded as well, as in `skeleton.kinematics.forward_kinematics`.
    """
    for n in range(4 * p.joints):
        p.rotation[n] = single(p.rotation[n])
    for n in range(3 * p.joints):
        p.translation[n] = single(p.translation[n])
    for n in range(p.couplings):
        read_angle(p, p.coupled_driver[n])
    p.placed = 0
    forward(p)
    for n in range(3 * p.joints):
        p.head[n] = single(p.head[n])
    for n in range(4 * p.joints):
        p.frame[n] = single(p.frame[n])
    for n in range(p.goals):
        measure_goal(p, n)
    p.placed = 0


def measure_placed(p, heads, frames, targets, pole_angles, distances, misses):
    """Measure the goals of B poses whose joints are placed.

    Args:
        heads, frames: (B, 3J) and (B, 4J) of joints in model space.
        targets: (B or 1, 4G).
        pole_angles: (B or 1, G), override those of the problem, radians.
        distances, misses: (B, G) written, in the model's unit and radians.
    """
    check_ready(p)
    size, joints = heads.shape[0], p.joints
    check_size(heads, size, 3 * joints)
    check_size(frames, size, 4 * joints)
    check_size_or_one(targets, size, 4 * p.goals)
    check_size_or_one(pole_angles, size, p.goals)
    check_size(distances, size, p.goals)
    check_size(misses, size, p.goals)
    check_targets(p, targets)
    check_numbers("pole angles", pole_angles, 0)
    check_numbers("heads", heads, 0)
    check_numbers("frames", frames, 4)
    p.is_busy = True
    with nogil:
        for k in range(size):
            for n in range(3 * joints):
                p.head[n] = heads[k, n]
            for n in range(4 * joints):
                p.frame[n] = frames[k, n]
            for n in range(4 * p.goals):
                p.target[n] = targets[k if targets.shape[0] > 1 else 0, n]
            for n in range(p.goals):
                p.goal_angle[n] = pole_angles[k if pole_angles.shape[0] > 1 else 0, n]
                measure_goal(p, n)
                distances[k, n] = p.distance[n]
                misses[k, n] = p.miss[n]
    p.placed = 0
    p.is_busy = False


def check_size(values, rows, columns):
    """Raise ValueError unless an array has `rows` rows and `columns` columns."""
    if values.shape[0] != rows or values.shape[1] != columns:
        raise ValueError(MISFIT)


def check_size_or_one(values, rows, columns):
    """Raise ValueError unless an array has `columns` columns, and `rows` rows or one for all."""
    if (values.shape[0] != rows and values.shape[0] != 1) or values.shape[1] != columns:
        raise ValueError(MISFIT)


def check_ready(p):
    """Raise TypeError unless `p` is an initialised problem, ValueError if another thread uses it."""
    if p is None or not getattr(p, "is_ready", False):
        raise TypeError("kernel: give a Problem that was made")
    if p.is_busy:
        raise ValueError("kernel: a Problem is solved by one thread at a time")


def check_numbers(name, values, width):
    """Raise ValueError unless numbers are finite and not huge; rows of `width` numbers have length 1."""
    square = 0.0
    for row in range(values.shape[0]):
        for k in range(values.shape[1]):
            if not -LARGEST <= values[row, k] <= LARGEST:
                raise ValueError(f"kernel: {name} must be finite, and at most {LARGEST:g}")
            square += values[row, k] * values[row, k]
            if width > 0 and (k + 1) % width == 0:
                if not -UNIT_SLACK <= square - 1.0 <= UNIT_SLACK:
                    raise ValueError(f"kernel: {name} must have length 1")
                square = 0.0


def check_targets(p, targets):
    """Raise ValueError unless targets are finite, and rotations and directions have length 1."""
    check_numbers("targets", targets, 0)
    for row in range(targets.shape[0]):
        for k in range(p.goals):
            square = 0.0
            for n in range(4 * k, 4 * k + 4):
                square += targets[row, n] * targets[row, n]
            turns = p.goal_kind[k] == ORIENTATION or p.goal_kind[k] == DIRECTION
            if turns and not -UNIT_SLACK <= square - 1.0 <= UNIT_SLACK:
                raise ValueError("kernel: targets of orientations and directions must have length 1")


def set_search(
    p,
    order,
    fraction,
    feedback,
    reduction,
    stall,
    most,
    budget,
    only_ccd,
    stays_local,
    starts_at_reference,
    rounds,
):
    """Set the settings of solves, see `settings.SolverSettings`.

    Args:
        budget: of all steps of a pose.
        stays_local: whether to end in the nearest local minimum, which moves with the target.
        starts_at_reference: whether poses start from their references; a pose reached from there is never
            worse than the start.
        rounds: whether results are rounded to single precision, and their goals measured there.
    """
    check_ready(p)
    if not 0 <= order <= LARGEST_ERROR:
        raise ValueError("kernel: unknown order of joints")
    if not (0 <= most <= MOST_STEPS and 0 <= budget <= MOST_STEPS):
        raise ValueError(f"kernel: steps must be 0 to {MOST_STEPS}")
    if not (
        0.0 <= fraction <= 2.0 and 0.0 <= feedback <= 1.0 and 0.0 <= reduction < 1.0 and 0.0 <= stall <= 1.0
    ):
        raise ValueError("kernel: settings of steps are out of range")
    p.order, p.most, p.budget = order, most, budget
    p.fraction, p.feedback, p.reduction, p.stall = fraction, feedback, reduction, stall
    p.only_ccd, p.stays_local, p.starts_at_reference = only_ccd, stays_local, starts_at_reference
    p.rounds = rounds


def evaluate_at(p, rotations, translations, targets, residual, slope):
    """Measure one pose: its residual (rows) and slope (rows, columns), for tests of both."""
    check_ready(p)
    check_size(rotations, 1, 4 * p.joints)
    check_size(translations, 1, 3 * p.joints)
    check_size(targets, 1, 4 * p.goals)
    check_size(slope, p.rows, p.columns)
    if residual.shape[0] != p.rows:
        raise ValueError(MISFIT)
    check_numbers("rotations", rotations, 4)
    check_numbers("translations", translations, 0)
    check_numbers("targets", targets, 0)
    load_pose(p, rotations, translations, 0)
    for n in range(4 * p.goals):
        p.target[n] = targets[0, n]
    begin(p)
    linearise(p)
    for a in range(p.rows):
        residual[a] = p.residual[a]
        for b in range(p.columns):
            slope[a, b] = p.slope[a * p.columns + b]
