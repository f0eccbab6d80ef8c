"""The closing phase: damped least squares inside the joint limits, all joints at once.

Sweeps come near fast and creep at the end; Wang & Chen (1991, "A combined optimization method for solving
the inverse kinematics problem of mechanical manipulators") hand over to a descent of all joints together.
Here it is Levenberg and Marquardt's method: each step is the shortest one (weighted by stiffness) from the
present pose that reduces the goals' weighted error; the damping follows the error (Sugihara 2011,
"Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method"), so that the end is
quadratic and a target out of reach does no harm.

Limits are a part of the step: where the step would leave a limit, its part along the limit's outward normal
is held at the border and the rest is worked out again. Every pose that is looked at is clamped, and taken
only if it is nearer.

Everything is double precision; lengths are in parts of the reach of the chains, so that the method sees no
unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...goals import Goal
from ...limits.shapes import Limit
from ...skeleton.joints import Skeleton
from ...skeleton.pose import Pose
from .layout import Layout
from .problem import Kinematics
from .state import Array, Residual, State

Triple = tuple[float, float, float]
Face = tuple[Triple, float]
"""A border at which a ball joint is held: the unit normal n in its frame, and n.d of its turn d, radians."""

ENOUGH = 0.5
"""Part of the tolerances at which to stop: single precision, in which poses are kept, has to fit into the
rest."""
DAMPING = 0.1
"""Damping of the first step, in parts of the weighted square error."""
LEAST_DAMPING = 1e-12
"""Damping that always remains, so that singular poses and goals that contradict each other have a step."""
CALMER, BOLDER = 10.0, 0.5
"""What the damping is multiplied by after a step that failed, also if a part of it worked, and after one that
worked."""
CALM = 100.0
"""Damping that stays, where what is found must not leap from one frame to the next."""
HASTE = 3.0
"""What `CALMER` is multiplied by from one failure to the next."""
HOPELESS = 1e4
"""Damping (times the square error) at which even the smallest steps fail."""
LONGEST = 1.2
"""Longest turn of a joint in one step, radians: farther away the linear picture means little."""
POOR = 0.5
"""A step that leaves more than this part of the square error is tried again in part."""
PARTS: Array = np.array([[0.02 * part] for part in range(1, 51)])
"""The parts of a step that are looked at."""
ROUNDS = 3
"""How often a step is worked out again for limits that it would leave."""
PATIENCE = 6
"""So many steps, failed ones too, that together win next to nothing end the search."""
GAIN = 1e-3
"""Next to nothing: this part of the square error."""
HURRIED_GAIN = 0.1
"""The same where a dead end is soon given up, because there are other poses to start from."""
PATIENT_GAIN = 1e-6
"""The same for what no start brings to its goals."""


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


class Descent(NamedTuple):
    """How to come nearer, and when to stop.

    Attributes:
        position_tolerance: of positions and balance, in the model's unit.
        angle_tolerance: of orientations, directions and poles, radians.
        max_iterations: most steps.
        gain: the search ends when the square error falls by less than this part of it in `PATIENCE` steps;
            `HURRIED_GAIN` where a dead end is better left for another start.
        calm: with small steps throughout, to the dead end that is nearest rather than in few steps.
    """

    position_tolerance: float
    angle_tolerance: float
    max_iterations: int
    gain: float = GAIN
    calm: bool = False


def refine(
    skeleton: Skeleton,
    pose: Pose,
    goals: Sequence[Goal],
    limits: Sequence[Limit | None],
    descent: Descent,
    movable: Sequence[int] | None = None,
) -> Pose:
    """A pose near `pose` that is nearer to the goals, inside the limits; `pose` itself where there is none.

    Goals of a larger priority number count next to nothing beside those of smaller ones. Reach windows are
    not known here.

    Args:
        skeleton: the joints.
        pose: where to start; joints that may move and are outside their limit are brought inside first.
        goals: at least one.
        limits: per joint, what it may do now (which may be less than `Joint.limit`).
        descent: how, and when to stop.
        movable: indices of the joints that may move; None: those in the chains of the goals. Locked ones
            never do.
    """
    return refined(Kinematics(skeleton, goals, limits, movable), pose, descent).pose


def refined(kinematics: Kinematics, pose: Pose, descent: Descent) -> Refined:
    """`refine` from one pose of several, with what is common to all worked out before; says how it went."""
    start = kinematics.clamped(pose)
    state = kinematics.take(start)
    before = now = kinematics.residual(state)
    tolerances = (descent.position_tolerance, descent.angle_tolerance)
    iterations, calmer = 0, CALMER
    damping, bolder = (CALM, 1.0) if descent.calm else (DAMPING, BOLDER)
    history = [now.square]
    jacobian: Array | None = None
    while iterations < descent.max_iterations and kinematics.columns and now.excess(tolerances) > ENOUGH:
        iterations += 1
        if jacobian is None:
            jacobian = kinematics.jacobian(now)
        step, tried = _step(kinematics, now, jacobian, damping * now.square + LEAST_DAMPING)
        found = kinematics.residual(tried)
        failed = found.square >= now.square
        if found.square > POOR * now.square:
            found = _shortened(kinematics, now, found, jacobian @ step, step)
        if found.square < now.square:
            now, jacobian = found, None
            damping, calmer = max(damping * (CALMER if failed else bolder), 1e-6), CALMER
        else:
            # Faster and faster (Nielsen 1999): near the target the damping starts many orders too small.
            damping *= calmer
            calmer *= HASTE
            if damping * now.square > HOPELESS:
                break
        history.append(now.square)
        if iterations >= PATIENCE and now.square > (1.0 - descent.gain) * history[-1 - PATIENCE]:
            break
    if now is before:
        return Refined(start, before.excess(tolerances) <= 1.0, iterations)
    end = kinematics.pose(start, before.state, now.state)
    # Rounded to single precision, and so measured again.
    after = kinematics.residual(kinematics.take(end))
    if not after.square <= before.square:
        return Refined(start, before.excess(tolerances) <= 1.0, iterations)
    return Refined(end, after.excess(tolerances) <= 1.0, iterations)


def _shortened(kinematics: Kinematics, now: Residual, found: Residual, slope: Array, step: Array) -> Residual:
    """What a part of a step gives that won little or nothing, if that is better than all of it.

    The step's end tells how the residuals bend along it: r(t) = r + t J d + t^2 q, where q is what the linear
    picture J d missed at t = 1. The part is the t that makes this smallest. A chain that is nearly stretched
    needs it most: its length changes with the square of its bends.
    """
    bend = found.values - now.values - slope
    model = now.values + PARTS * slope + PARTS * PARTS * bend
    squares = (model * model).sum(1)
    best = int(squares.argmin())
    if best == len(PARTS) - 1 or squares[best] >= POOR * found.square:
        return found
    part = step * float(PARTS[best, 0])
    rotations = _confined(kinematics.layout, now.state, part)[0] if kinematics.layout.balls else None
    tried = kinematics.residual(kinematics.moved_by(now.state, part, rotations))
    return tried if tried.square < found.square else found


def _step(kinematics: Kinematics, now: Residual, jacobian: Array, damping: float) -> tuple[Array, State]:
    """The shortest step that brings the goals nearer inside the limits, as far as it can be told here, and
    the state after it.

    The step d minimises |r + J d|^2 + damping |d|^2 / mobility; in its dual form it is -W J^T (J W J^T +
    damping)^-1 r, a system as small as the residual is. What is held at a limit leaves J and moves by a
    fixed amount instead.
    """
    layout, state = kinematics.layout, now.state
    weights, hinged = layout.mobility, len(layout.hinges)
    position = layout.position(state)
    down, up = layout.lower - position, layout.upper - position
    # At a bound, and the error falls beyond it (Bertsekas 1982, projected Newton methods).
    serving = jacobian if kinematics.serves is None else jacobian * kinematics.serves
    slope = serving.T @ now.values
    held = ((up <= 0.0) & (slope < 0.0)) | ((down >= 0.0) & (slope > 0.0))
    fixed: Array = np.zeros(layout.columns)
    faces: dict[int, list[Face]] = {}
    rotations: Array | None = None
    for _ in range(ROUNDS):
        free = jacobian.copy()
        free[:, held] = 0.0
        if faces:
            place = slice(hinged, layout.first_slide)
            across, fixed[place] = _held_balls(faces, len(layout.balls))
            blocks = free[:, place].reshape(len(free), -1, 3).transpose(1, 0, 2)
            free[:, place] = (blocks @ across).transpose(1, 0, 2).reshape(len(free), -1)
        freed = free if kinematics.serves is None else free * kinematics.serves
        system = (free * weights) @ freed.T
        system.flat[:: len(system) + 1] += damping
        solution = np.linalg.solve(system, now.values + jacobian @ fixed)
        step = fixed - weights * (freed.T @ solution)
        part = _part(layout, step)
        step *= part
        # What each unknown would like to do, now that the others are held: it tells which limits hold it
        # still (the primal-dual active set method, Hintermueller, Ito & Kunisch 2002).
        wanted = -part * weights * (serving.T @ solution)
        over, under = wanted > up, wanted < down
        now_held = over | under
        changed = bool((now_held != held).any())
        held = now_held
        fixed = np.where(over, up, np.where(under, down, 0.0))
        if layout.balls:
            changed = _release(faces, wanted[hinged : layout.first_slide].tolist()) or changed
            rotations, outside = _confined(layout, state, step)
            for ball, there, allowed in outside:
                changed = _hold(faces.setdefault(ball, []), there, allowed) or changed
        if not changed:
            break
    step = np.clip(step, down, up)
    return step, kinematics.moved_by(state, step, rotations)


def _part(layout: Layout, step: Array) -> float:
    """The part of a step that turns no joint farther than it may in one step."""
    hinged, slides = len(layout.hinges), layout.first_slide
    part = 1.0
    if slides:
        turns = np.abs(step[:slides])
        if slides > hinged:
            each = step[hinged:slides].reshape(-1, 3)
            turns[hinged:] = np.repeat(np.sqrt((each * each).sum(1)), 3)
        most = np.minimum(layout.longest[:slides], LONGEST)
        part = min(1.0, 1.0 / max(float((turns / most).max()), 1e-300))
    if slides < layout.columns:
        part = min(part, LONGEST / max(float(np.abs(step[slides:]).max()), 1e-300))
    return part


def _confined(layout: Layout, state: State, step: Array) -> tuple[Array, list[tuple[int, Triple, Triple]]]:
    """The ball joints' rotations after a step, inside their limits; which of them the step would take
    outside.

    Of those: the number, the turn that the step wants and the turn that is allowed, rotation vectors in the
    joint's frame.
    """
    rotations = layout.turned_balls(state, step)
    outside: list[tuple[int, Triple, Triple]] = []
    first = len(layout.hinges)
    for ball, (limit, (w, x, y, z)) in enumerate(zip(layout.ball_limits, rotations.tolist(), strict=True)):
        if limit is None:
            continue
        nearest = limit.project(w, x, y, z)
        if nearest is None:
            continue
        w, x, y, z = nearest
        length = math.sqrt(w * w + x * x + y * y + z * z)
        nearest = (w / length, x / length, y / length, z / length)
        rotations[ball] = nearest
        a, b, c = step[first + 3 * ball : first + 3 * ball + 3].tolist()
        outside.append((ball, (a, b, c), _turn_between(state.rotations[ball].tolist(), nearest)))
    return rotations, outside


def _held_balls(faces: dict[int, list[Face]], balls: int) -> tuple[Array, Array]:
    """Of each ball joint the projection (3, 3) on what is free, and (one after the other) the turn held."""
    across = np.tile(np.eye(3), (balls, 1, 1))
    turns = np.zeros((balls, 3))
    for ball, normals in faces.items():
        for (x, y, z), value in normals:
            across[ball] -= ((x * x, x * y, x * z), (x * y, y * y, y * z), (x * z, y * z, z * z))
            turns[ball] += (value * x, value * y, value * z)
    return across, turns.reshape(-1)


def _release(faces: dict[int, list[Face]], wanted: list[float]) -> bool:
    """Lets go of the borders from which ball joints would like to go inside; whether there were any."""
    found = False
    for ball, normals in faces.items():
        a, b, c = wanted[3 * ball : 3 * ball + 3]
        kept = [face for face in normals if face[0][0] * a + face[0][1] * b + face[0][2] * c >= face[1]]
        found = found or len(kept) < len(normals)
        normals[:] = kept
    return found


def _hold(normals: list[Face], there: Triple, allowed: Triple) -> bool:
    """Holds a ball joint at the border between the turn `there` and the nearest one `allowed`; False where it
    is held already."""
    x, y, z = there[0] - allowed[0], there[1] - allowed[1], there[2] - allowed[2]
    depth = math.sqrt(x * x + y * y + z * z)
    for (a, b, c), _ in normals:
        along = a * x + b * y + c * z
        x, y, z = x - along * a, y - along * b, z - along * c
    length = math.sqrt(x * x + y * y + z * z)
    # Nearly the same border again: its curvature, which the next iteration sees.
    if len(normals) == 3 or length < 1e-9 or length < 0.05 * depth:
        return False
    x, y, z = x / length, y / length, z / length
    normals.append(((x, y, z), x * allowed[0] + y * allowed[1] + z * allowed[2]))
    return True


def _turn_between(a: Sequence[float], b: Sequence[float]) -> Triple:
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
    return scale * x, scale * y, scale * z
