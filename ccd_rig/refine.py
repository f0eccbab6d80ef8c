"""The closing phase: damped least squares inside the joint limits, all joints at once.

Sweeps come near fast and creep at the end; Wang & Chen (1991, "A combined optimization method for solving the inverse
kinematics problem of mechanical manipulators") hand over to a descent of all joints together. Here it is Levenberg and
Marquardt's method: each step is the shortest one (weighted by stiffness) from the present pose that reduces the goals'
weighted error; the damping follows the error (Sugihara 2011, "Solvability-unconcerned inverse kinematics by the
Levenberg-Marquardt method"), so that the end is quadratic and a target out of reach does no harm.

Limits are a part of the step: where the step would leave a limit, its part along the limit's outward normal is held at
the border and the rest is worked out again. Every pose that is looked at is clamped, and taken only if it is nearer.

Everything is double precision; lengths are in parts of the reach of the chains, so that the method sees no unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .goals import Goal
from .kinematics import Kinematics, Residual, State
from .limits import Limit
from .skeleton import Pose, Skeleton

Array = NDArray[np.float64]

ENOUGH = 0.5
"""Part of the tolerances at which to stop: single precision, in which poses are kept, has to fit into the rest."""
DAMPING = 0.1
"""Damping of the first step, in parts of the weighted square error."""
LEAST_DAMPING = 1e-12
"""Damping that always remains, so that singular poses and goals that contradict each other have a step."""
CALMER, BOLDER = 10.0, 0.5
"""What the damping is multiplied by after a step that failed, and after one that worked."""
HOPELESS = 1e5
"""Damping at which even the smallest steps fail."""
LONGEST = 1.2
"""Longest turn of a joint in one step, radians: farther away the linear picture means little."""
ROUNDS = 4
"""How often a step is worked out again for limits that it would leave."""
PATIENCE = 4
"""So many steps in a row that win next to nothing end the search."""
GAIN = 0.01
"""Next to nothing: this part of the square error."""


@dataclass(frozen=True)
class Refined:
    """What a refinement found.

    Attributes:
        pose: the nearest pose, inside the limits.
        met: whether every goal is within its tolerance.
        iterations: steps tried.
    """

    pose: Pose
    met: bool
    iterations: int


def refine(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    limits: Sequence[Limit | None],
    position_tolerance: float,
    angle_tolerance: float,
    max_iterations: int,
    movable: Sequence[int] | None = None,
) -> Pose:
    """A pose near `pose` that is nearer to the goals, inside the limits; `pose` itself where there is none.

    Goals of a larger priority number count next to nothing beside those of smaller ones. Reach windows are not known here.

    Args:
        skeleton: the joints.
        pose: where to start; joints that may move and are outside their limit are brought inside first.
        goals: at least one.
        limits: per joint, what it may do now (which may be less than `Joint.limit`).
        position_tolerance: of positions and balance, in the model's unit.
        angle_tolerance: of orientations, directions and poles, radians.
        max_iterations: most steps.
        movable: indices of the joints that may move; None: those in the chains of the goals. Locked ones never do.
    """
    kinematics = Kinematics(skeleton, goals, limits, movable)
    return refined(kinematics, pose, position_tolerance, angle_tolerance, max_iterations).pose


def refined(
    kinematics: Kinematics,
    pose: Pose,
    position_tolerance: float,
    angle_tolerance: float,
    max_iterations: int,
) -> Refined:
    """`refine` from one pose of several, with what is common to all worked out before; says how it went."""
    start = kinematics.clamped(pose)
    state = kinematics.take(start)
    before = now = kinematics.residual(state)
    tolerances = (position_tolerance, angle_tolerance)
    iterations, dull, damping = 0, 0, DAMPING
    jacobian: Array | None = None
    while iterations < max_iterations and kinematics.columns and now.excess(tolerances) > ENOUGH:
        iterations += 1
        if jacobian is None:
            jacobian = kinematics.jacobian(now)
        tried = _step(kinematics, now, jacobian, damping * now.square + LEAST_DAMPING)
        found = kinematics.residual(tried)
        if found.square < now.square:
            dull = dull + 1 if found.square > (1.0 - GAIN) * now.square else 0
            now, jacobian = found, None
            damping = max(damping * BOLDER, 1e-6)
        else:
            damping *= CALMER
            if damping > HOPELESS:
                break
        if dull >= PATIENCE:
            break
    if now is before:
        return Refined(start, before.excess(tolerances) <= 1.0, iterations)
    end = kinematics.pose(start, now.state)
    # Rounded to single precision, and so measured again.
    after = kinematics.residual(kinematics.take(end))
    if not after.square <= before.square:
        return Refined(start, before.excess(tolerances) <= 1.0, iterations)
    return Refined(end, after.excess(tolerances) <= 1.0, iterations)


def _step(kinematics: Kinematics, now: Residual, jacobian: Array, damping: float) -> State:
    """The state after the shortest step that brings the goals nearer inside the limits, as far as it can be told here.

    The step d minimises |r + J d|^2 + damping |d|^2 / mobility; in its dual form it is -W J^T (J W J^T + damping)^-1 r, a
    system as small as the residual is. What is held at a limit leaves J and moves by a fixed amount instead.
    """
    state, weights = now.state, kinematics.mobility
    hinged = len(kinematics.hinges)
    position = kinematics.position(state)
    down, up = kinematics.lower - position, kinematics.upper - position
    free = jacobian.copy()
    serving = free if kinematics.serves is None else free * kinematics.serves
    fixed = np.zeros(kinematics.columns)
    # At a bound, and the error falls beyond it (Bertsekas 1982, projected Newton methods).
    slope = serving.T @ now.values
    held = ((up <= 0.0) & (slope < 0.0)) | ((down >= 0.0) & (slope > 0.0))
    normals: dict[int, list[tuple[Array, float]]] = {}
    step = fixed
    rotations: Array | None = None
    for attempt in range(ROUNDS):
        if held.any():
            free[:, held] = 0.0
        serving = free if kinematics.serves is None else free * kinematics.serves
        system = (free * weights) @ serving.T
        system.flat[:: len(system) + 1] += damping
        right = now.values + jacobian @ fixed if attempt else now.values
        step = fixed - weights * (serving.T @ np.linalg.solve(system, right))
        step *= _part(kinematics, step)
        last = attempt == ROUNDS - 1
        over, under = step > up, step < down
        beyond = over | under
        new = bool(beyond.any())
        if new:
            step = np.clip(step, down, up)
            fixed = np.where(beyond, step, fixed)
            held = held | beyond
        if kinematics.balls:
            rotations, outside = _confined(kinematics, state, step)
            for ball, wanted, allowed in outside if not last else ():
                place = slice(hinged + 3 * ball, hinged + 3 * ball + 3)
                new = _hold(normals.setdefault(ball, []), free, fixed, place, wanted, allowed) or new
        if not new:
            break
    step = np.clip(step, down, up)
    return kinematics.moved_by(state, step, rotations)


def _part(kinematics: Kinematics, step: Array) -> float:
    """The part of a step that turns no joint farther than it may in one step."""
    hinged, slides = len(kinematics.hinges), kinematics.first_slide
    part = 1.0
    if slides:
        turns = np.abs(step[:slides])
        if slides > hinged:
            each = step[hinged:slides].reshape(-1, 3)
            turns[hinged:] = np.repeat(np.sqrt((each * each).sum(1)), 3)
        most = np.minimum(kinematics.longest[:slides], LONGEST)
        part = min(1.0, 1.0 / max(float((turns / most).max()), 1e-300))
    if slides < kinematics.columns:
        part = min(part, LONGEST / max(float(np.abs(step[slides:]).max()), 1e-300))
    return part


def _confined(
    kinematics: Kinematics, state: State, step: Array
) -> tuple[Array, list[tuple[int, Array, Array]]]:
    """The ball joints' rotations after a step, inside their limits; which of them the step would take outside.

    Of those: the number, the turn that the step wants and the turn that is allowed, rotation vectors in the joint's frame.
    """
    rotations = kinematics.turned_balls(state, step)
    outside: list[tuple[int, Array, Array]] = []
    first = len(kinematics.hinges)
    for ball, (limit, (w, x, y, z)) in enumerate(zip(kinematics.ball_limits, rotations.tolist(), strict=True)):
        if limit is None:
            continue
        nearest = limit._nearest(w, x, y, z)
        if nearest is None:
            continue
        rotations[ball] = nearest
        rotations[ball] /= math.sqrt(math.fsum(part * part for part in nearest))
        allowed = _turn_between(state.rotations[ball].tolist(), rotations[ball].tolist())
        outside.append((ball, step[first + 3 * ball : first + 3 * ball + 3], allowed))
    return rotations, outside


def _hold(
    normals: list[tuple[Array, float]], free: Array, fixed: Array, place: slice, wanted: Array, allowed: Array
) -> bool:
    """Takes the part along the outward normal out of a ball joint's unknowns: it is held at the border. Whether it could."""
    normal = wanted - allowed
    length = math.sqrt(normal @ normal)
    if length < 1e-9:
        return False
    normal = normal / length
    value = float(normal @ allowed)
    across = normal.copy()
    for other, _ in normals:
        across -= (other @ normal) * other
    length = math.sqrt(across @ across)
    # Nearly the same border again: its curvature, which the next iteration sees.
    if len(normals) == 3 or length < 0.05:
        return False
    across /= length
    block = fixed[place]
    block = block + across * ((value - float(normal @ block)) / length)
    normals.append((across, value))
    fixed[place] = block
    free[:, place] -= np.outer(free[:, place] @ across, across)
    return True


def _turn_between(a: Sequence[float], b: Sequence[float]) -> Array:
    """The rotation vector, in the frame of unit quaternion `a`, that takes it to `b`."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    w = aw * bw + ax * bx + ay * by + az * bz
    x = aw * bx - bw * ax - (ay * bz - az * by)
    y = aw * by - bw * ay - (az * bx - ax * bz)
    z = aw * bz - bw * az - (ax * by - ay * bx)
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 * math.atan2(sine, abs(w)) / sine if sine > 1e-30 else 2.0
    scale = math.copysign(scale, w)
    return np.array((scale * x, scale * y, scale * z))
