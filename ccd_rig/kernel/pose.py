"""A pose: inside its limits, on its goals, and of those the nearest to its reference."""

from __future__ import annotations

from .geometry import put_quaternion, quaternion_at
from .least_squares import look, reach, slide
from .limits import LIMIT_WIDTH, nearest_allowed
from .plain import nogil
from .skeleton import Problem, put_inside, read_angle, save

MET = 0
"""All goals are within their tolerances."""
MISSED = 1
"""Some goal is not."""


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


def solve_pose(p, most):
    """Solve the pose that is loaded; whether its goals are met."""
    enter_limits(p)
    look(p)
    if p.worst <= 1.0 and (not p.has_reference or p.departed == 0.0):
        return True
    met = reach(p, most)
    if met and p.has_reference:
        slide(p, most)
    return met


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
    statuses,
    steps,
    distances,
    misses,
    most,
):
    """Solve B poses of a problem, each by itself; results take the place of where they start.

    Args:
        rotations, translations: (B, 4J) and (B, 3J), relative to rest.
        targets: (B or 1, 4G).
        reference_rotations, reference_translations: of B, or of 0 poses where none is to be near to.
        statuses, steps: (B) results.
        distances, misses: (B, G) results, in the model's unit and radians.
        most: steps of each phase.
    """
    size = rotations.shape[0]
    with nogil:
        for k in range(size):
            p.has_reference = reference_rotations.shape[0] > 0
            if p.has_reference:
                load_reference(p, reference_rotations, reference_translations, k)
            load_pose(p, rotations, translations, k)
            for n in range(4 * p.goals):
                p.target[n] = targets[k if targets.shape[0] > 1 else 0, n]
            p.steps = 0
            statuses[k] = MET if solve_pose(p, most) else MISSED
            steps[k] = p.steps
            for n in range(4 * p.joints):
                rotations[k, n] = p.rotation[n]
            for n in range(3 * p.joints):
                translations[k, n] = p.translation[n]
            for n in range(p.goals):
                distances[k, n] = p.distance[n]
                misses[k, n] = p.miss[n]


def check_slopes(p, rotations, translations, targets, slope, residual):
    load_pose(p, rotations, translations, 0)
    for n in range(4 * p.goals):
        p.target[n] = targets[0, n]
    enter_limits(p)
    look(p)
    for a in range(p.rows):
        residual[0, a] = p.residual[a]
        for b in range(p.columns):
            slope[a, b] = p.slope[a * p.columns + b]
