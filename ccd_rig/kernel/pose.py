"""A pose: inside its limits, on its goals, and of all such poses the nearest to its reference.

Passes of CCD bring effectors near from anywhere, *reach* meets the goals, *slide* goes back towards the
reference along them (`least_squares`). What misses its goals is tried from other starts, and then brought as
near as it gets: goals served first before the others. With CCD alone there are passes and nothing else.
"""

from __future__ import annotations

from math import sqrt

from .ccd import LARGEST_ERROR, nudge, run_pass, share_steps, stretch
from .geometry import multiply, put_quaternion, put_vector, quaternion_at, unit
from .goals import measure
from .least_squares import find_step, look, reach, slide
from .limits import LIMIT_WIDTH, nearest_allowed
from .plain import Quaternion, Vector, nogil
from .skeleton import put_inside, read_angle, restore, save

CONVERGED = 0  # how a solve ends: see `settings.SolveStatus`
STALLED = 1
OPTIMAL = 2
ITERATION_LIMIT = 3

START = 2  # slots of saved poses: where the solve started
BEST = 3
TRIED = 4

PASSES = 3
"""Passes of CCD before least squares."""
SMALL_MISS = 0.1
"""Root of the square error from which least squares meet the goals without passes."""
HURRIED = 0.95
"""Part of the square error that a step may leave while other starts are waiting."""
PATIENT = 0.9999
"""The same while a pose is brought as near as it gets."""
SLOW_PASSES = 40
"""Passes of CCD alone over which the error must fall by `SLOW_GAIN`."""
SLOW_GAIN = 0.02
BEND = 0.1
"""Radians by which joints are bent to leave a dead end."""
SHORT = 1e-6
"""Length of the step by which limits are tested."""
STATIONARY = 1e-2
"""Steepness up to which a pose that misses its goals counts as OPTIMAL: a cosine, see `steepness`."""
GIVING_WAY = 10.0
"""How much more the steepness of a goal counts that gives way to others."""


def enter_limits(p):
    """Bring joints that may move inside their limits, and note the angles of hinges."""
    for i in range(p.joints):
        if p.width[i]:
            turned = nearest_allowed(p.limit, LIMIT_WIDTH * i, quaternion_at(p.rotation, 4 * i))
            put_quaternion(p.rotation, 4 * i, turned)
        if p.width[i] == 1:
            read_angle(p, i)
        for column in range(p.first_column[i] + p.width[i], p.first_column[i + 1]):
            put_inside(p, p.column_slide[column], i)
    for k in range(p.couplings):
        read_angle(p, p.coupled_driver[k])


# One try --------------------------------------------------------------------------------------------


def solve_pose(p):
    """Solve the pose that is loaded, from where it is; how that ended. It is left as the best that was seen."""
    begin(p)
    if p.worst <= 1.0 and (not p.has_reference or p.departed == 0.0):
        return CONVERGED
    if not p.moving_count:
        return CONVERGED if p.worst <= 1.0 else STALLED
    if p.only_ccd:
        return descend(p, p.most)
    if meet(p, HURRIED):
        if p.has_reference:
            slide(p, p.most)
        return CONVERGED
    keep_better(p)
    restore(p, BEST)
    look(p)
    return ITERATION_LIMIT if p.steps >= p.budget else STALLED


def begin(p):
    """Bring the pose inside its limits, look at it, and take it for the best so far."""
    p.stage = p.last_rank
    p.is_equal = True
    for row in range(p.rows):
        p.row_offset[row] = 0.0
    enter_limits(p)
    look(p)
    save(p, START)
    save(p, BEST)
    note_score(p)
    for rank in range(p.last_rank + 1):
        p.best_score[rank] = p.score[rank]


def meet(p, slow_part):
    """Meet all goals: by least squares where they are near, else after passes; whether they are met."""
    if p.square <= SMALL_MISS * SMALL_MISS and reach(p, p.most, slow_part):
        return True
    keep_better(p)
    restore(p, START)
    measure(p)
    share_steps(p, 0.0)
    for number in range(PASSES):
        if p.steps >= p.budget:
            break
        run_pass(p, p.order, number, p.fraction)
        p.steps += 1
        if p.worst <= 1.0:
            break
    if reach(p, p.most, slow_part):
        return True
    keep_better(p)
    nudge(p, BEND)
    return reach(p, p.most, slow_part)


def note_score(p):
    """Note the square error of goals that are missed, by rank; reach windows belong to the first."""
    for rank in range(p.last_rank + 1):
        p.score[rank] = 0.0
    for k in range(p.goals):
        rank = max(p.goal_rank[k], 0)
        if p.distance[k] > p.position_tolerance or p.miss[k] > p.angle_tolerance:
            for row in range(p.first_row[k], p.first_row[k + 1]):
                p.score[rank] += p.residual[row] * p.residual[row]


def is_better(p):
    """Whether the pose misses its goals by less than the best so far, in the first rank that differs."""
    note_score(p)
    tolerance = p.position_tolerance / p.reach
    for rank in range(p.last_rank + 1):
        new, old = sqrt(p.score[rank]), sqrt(p.best_score[rank])
        if (new == 0.0) != (old == 0.0):
            return new == 0.0
        if new < old - tolerance or (rank == p.last_rank and new < old):
            return True
        if new > old + tolerance:
            return False
    return False


def keep_better(p):
    """Take the pose for the best if it is; it has been measured."""
    if is_better(p):
        save(p, BEST)
        for rank in range(p.last_rank + 1):
            p.best_score[rank] = p.score[rank]


# CCD alone ------------------------------------------------------------------------------------------


def descend(p, most):
    """Passes until the goals are met or nothing is won any more; how that ended.

    A chain that is too short is stretched at once. The first stall is answered by bending all joints a
    little, which leaves straight and folded chains.
    """
    number, nudged, count = 0, False, 0
    trivial = min(p.stall * p.reach, 0.02 * p.position_tolerance)
    first = sqrt(p.square)
    share_steps(p, p.reduction)
    stretch(p)
    p.steps += 1
    if p.worst <= 1.0:
        return CONVERGED
    keep_better(p)
    restore(p, START)
    measure(p)
    window_error = p.square
    while number < most and p.steps < p.budget:
        longest = run_pass(p, p.order, number, part_of_step(p, first))
        number += 1
        count += 1
        p.steps += 1
        if p.worst <= 1.0:
            return CONVERGED
        keep_better(p)
        stuck = longest <= trivial
        if count % SLOW_PASSES == 0:
            stuck = stuck or p.square >= window_error * (1.0 - SLOW_GAIN) * (1.0 - SLOW_GAIN)
            window_error = p.square
        if stuck:
            restore(p, BEST)
            measure(p)
            if nudged:
                return STALLED
            nudge(p, BEND)
            window_error = p.square
            nudged = True
            count = 0
    restore(p, BEST)
    measure(p)
    return ITERATION_LIMIT


def part_of_step(p, first):
    """Kenwright 2012, section 8: what the part of a step differs from 1 is fed back from the error."""
    if p.reduction > 0.0:
        return 1.0
    beside = p.fraction - 1.0
    if p.feedback > 0.0 and first > 0.0:
        beside *= 1.0 - p.feedback * (1.0 - min(1.0, sqrt(p.square) / first))
    return min(max(1.0 + beside, 0.1), 1.3)


# Other starts ---------------------------------------------------------------------------------------


def try_start(p, rotations, translations, is_free, number):
    """Solve from another start; whether it meets the goals. The best pose stays in its slot.

    Joints without limits are turned from where the solve started, others stand as the start has them.
    """
    restore(p, START)
    for n in range(p.moving_count):
        i = p.moving[n]
        turned = Quaternion(
            rotations[number, 4 * i], rotations[number, 4 * i + 1], rotations[number, 4 * i + 2], rotations[number, 4 * i + 3]
        )
        if is_free[i]:
            turned = unit(multiply(quaternion_at(p.rotation, 4 * i), turned))
        if p.width[i]:
            put_quaternion(p.rotation, 4 * i, turned)
        if p.first_column[i + 1] - p.first_column[i] > p.width[i]:
            put_vector(
                p.translation,
                3 * i,
                Vector(translations[number, 3 * i], translations[number, 3 * i + 1], translations[number, 3 * i + 2]),
            )
    enter_limits(p)
    measure(p)
    if p.only_ccd:
        save(p, TRIED)
        return descend(p, p.most) == CONVERGED
    if reach(p, p.most, HURRIED):
        if p.has_reference:
            slide(p, p.most)
        return True
    keep_better(p)
    return False


# As near as it gets ---------------------------------------------------------------------------------


def settle(p):
    """Bring the best pose as near to its goals as it gets, rank by rank; how that ended."""
    restore(p, BEST)
    measure(p)
    if not p.only_ccd and not p.has_comfort:
        if p.last_rank == 0:
            go_on(p)
            nudge(p, BEND)
            go_on(p)
        else:
            serve_ranks(p)
        restore(p, BEST)
    look(p)
    if p.worst <= 1.0:
        return CONVERGED
    if steepness(p) <= STATIONARY:
        return OPTIMAL
    return ITERATION_LIMIT if p.steps >= p.budget else STALLED


def go_on(p):
    """Reach with patience; what is nearer counts."""
    reach(p, p.most, PATIENT)
    keep_better(p)
    restore(p, BEST)
    measure(p)


def serve_ranks(p):
    """Serve the goals rank by rank: each as near as those before it leave room for."""
    p.is_equal = False
    for rank in range(p.last_rank + 1):
        p.stage = rank
        reach(p, p.most, PATIENT)
        for k in range(p.goals):
            if p.goal_rank[k] == rank and (p.distance[k] > p.position_tolerance or p.miss[k] > p.angle_tolerance):
                for row in range(p.first_row[k], p.first_row[k + 1]):
                    p.row_offset[row] = p.residual[row]
    if p.has_reference:
        slide(p, p.most)
    p.stage = p.last_rank
    p.is_equal = True
    for row in range(p.rows):
        p.row_offset[row] = 0.0
    measure(p)
    keep_better(p)


def steepness(p):
    """How steeply the error of the goals that are missed can still fall; 0 where it is stationary.

    The largest part of the gradient that belongs to one joint, beside the residual times the longest lever: a
    cosine, as in MINPACK's test of the gradient (More 1978). The gradient is projected into the limits. A goal
    that gives way to others is tested along directions that leave those alone.
    """
    steepest = 0.0
    p.is_equal = False
    for rank in range(p.last_rank + 1):
        lever, square = 0.0, 0.0
        for column in range(p.columns):
            p.pull[column] = 0.0
        for k in range(p.goals):
            if p.goal_rank[k] == rank and (p.distance[k] > p.position_tolerance or p.miss[k] > p.angle_tolerance):
                for row in range(p.first_row[k], p.first_row[k + 1]):
                    square += p.residual[row] * p.residual[row]
                    for column in range(p.columns):
                        at = row * p.columns + column
                        serving = p.serving[at] if p.masked else p.slope[at]
                        p.pull[column] += serving * p.residual[row]
        if square == 0.0:
            continue
        for column in range(p.columns):
            part = 0.0
            for k in range(p.goals):
                if p.goal_rank[k] == rank:
                    for row in range(p.first_row[k], p.first_row[k + 1]):
                        at = row * p.columns + column
                        serving = p.serving[at] if p.masked else p.slope[at]
                        part += serving * serving
            lever = max(lever, part)
        if lever == 0.0:
            continue
        p.stage = rank - 1
        for row in range(p.rows):
            p.row_wish[row] = 0.0
            p.row_damping[row] = 0.0
        # As short a step as is sure to leave no limit from inside.
        scale = sqrt(lever * square)
        for column in range(p.columns):
            p.pull[column] *= SHORT / scale
        find_step(p, 1.0, 0.0)
        steep = largest_part(p) / SHORT
        steepest = max(steepest, steep * (GIVING_WAY if rank > 0 else 1.0))
    p.stage = p.last_rank
    p.is_equal = True
    return steepest


def largest_part(p):
    """The largest part of the step that belongs to one joint or slide."""
    largest = 0.0
    for i in range(p.joints):
        column, square = p.first_column[i], 0.0
        for k in range(column, column + p.width[i]):
            square += p.step[k] * p.step[k]
        largest = max(largest, sqrt(square))
        for k in range(column + p.width[i], p.first_column[i + 1]):
            largest = max(largest, sqrt(p.step[k] * p.step[k]))
    return largest


# Many poses -----------------------------------------------------------------------------------------


def load_pose(p, rotations, translations, number):
    for k in range(4 * p.joints):
        p.rotation[k] = rotations[number, k]
    for k in range(3 * p.joints):
        p.translation[k] = translations[number, k]


def load_reference(p, rotations, translations, number):
    """Note the pose to stay near to: inside the limits, since nothing outside can be reached."""
    load_pose(p, rotations, translations, number)
    enter_limits(p)
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
    reference_rotations,
    reference_translations,
    start_rotations,
    start_translations,
    is_free,
    statuses,
    steps,
    distances,
    misses,
    settles,
):
    """Solve B poses of a problem, each by itself; results take the place of where they start.

    Args:
        rotations, translations: (B, 4J) and (B, 3J), relative to rest.
        targets: (B or 1, 4G).
        reference_rotations, reference_translations: of B, or of 0 poses where none is to be near to.
        start_rotations, start_translations: (K, 4J) and (K, 3J) other starts for what misses its goals.
        is_free: (J) 1 for joints that starts turn from where they are.
        statuses, steps: (B) results.
        distances, misses: (B, G) results, in the model's unit and radians.
        settles: whether to bring what misses its goals as near as it gets.
    """
    check_poses(
        p,
        rotations,
        translations,
        targets,
        reference_rotations,
        reference_translations,
        start_rotations,
        start_translations,
        is_free,
        statuses,
        steps,
        distances,
        misses,
    )
    size = rotations.shape[0]
    with nogil:
        for k in range(size):
            for n in range(4 * p.goals):
                p.target[n] = targets[k if targets.shape[0] > 1 else 0, n]
            p.has_reference = reference_rotations.shape[0] > 0
            if p.has_reference:
                load_reference(p, reference_rotations, reference_translations, k)
            load_pose(p, rotations, translations, k)
            p.steps = 0
            status = solve_pose(p)
            if status != CONVERGED:
                for start in range(start_rotations.shape[0]):
                    if p.steps >= p.budget:
                        break
                    if try_start(p, start_rotations, start_translations, is_free, start):
                        status = CONVERGED
                        break
            if status != CONVERGED:
                if settles:
                    status = settle(p)
                else:
                    restore(p, BEST)
                    measure(p)
            statuses[k] = status
            steps[k] = p.steps
            for n in range(4 * p.joints):
                rotations[k, n] = p.rotation[n]
            for n in range(3 * p.joints):
                translations[k, n] = p.translation[n]
            for n in range(p.goals):
                distances[k, n] = p.distance[n]
                misses[k, n] = p.miss[n]


def check_poses(
    p,
    rotations,
    translations,
    targets,
    reference_rotations,
    reference_translations,
    start_rotations,
    start_translations,
    is_free,
    statuses,
    steps,
    distances,
    misses,
):
    """Raise ValueError unless the arrays of `solve_poses` have the sizes that they must have."""
    size, joints, goals = rotations.shape[0], p.joints, p.goals
    references, starts = reference_rotations.shape[0], start_rotations.shape[0]
    if (
        rotations.shape[1] != 4 * joints
        or translations.shape[0] != size
        or translations.shape[1] != 3 * joints
        or (targets.shape[0] != size and targets.shape[0] != 1)
        or targets.shape[1] != 4 * goals
        or (references != size and references != 0)
        or reference_rotations.shape[1] != 4 * joints
        or reference_translations.shape[0] != references
        or reference_translations.shape[1] != 3 * joints
        or start_rotations.shape[1] != 4 * joints
        or start_translations.shape[0] != starts
        or start_translations.shape[1] != 3 * joints
        or is_free.shape[0] != joints
        or statuses.shape[0] != size
        or steps.shape[0] != size
        or distances.shape[0] != size
        or distances.shape[1] != goals
        or misses.shape[0] != size
        or misses.shape[1] != goals
    ):
        raise ValueError("kernel: the arrays of the poses do not fit the problem")


def set_search(p, order, fraction, feedback, reduction, stall, most, budget, only_ccd):
    """Set how poses are solved, see `settings.SolverSettings`; `budget` is of all steps of a pose."""
    if not 0 <= order <= LARGEST_ERROR:
        raise ValueError("kernel: unknown order of joints")
    p.order, p.most, p.budget = order, most, budget
    p.fraction, p.feedback, p.reduction, p.stall = fraction, feedback, reduction, stall
    p.only_ccd = only_ccd or p.has_comfort


def look_at(p, rotations, translations, targets, residual, slope):
    """Measure one pose: its residual (rows) and slope (rows, columns), for tests of both."""
    load_pose(p, rotations, translations, 0)
    for n in range(4 * p.goals):
        p.target[n] = targets[0, n]
    begin(p)
    for a in range(p.rows):
        residual[a] = p.residual[a]
        for b in range(p.columns):
            slope[a, b] = p.slope[a * p.columns + b]
