"""One step of one pose inside the limits: the active set of the closing phase.

Limits are a part of the step: where it would leave a limit, its part along the limit's outward normal is
held at the border and the rest is worked out again, as in `step`. A ball joint is held at up to three borders
at once, each with what is left of the way to it; they hold on from step to step (`held.refreshed`). Ball
joints are brought inside their limits one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...kernel import project_rotation
from ...maths.batch import Array, Mask
from ...maths.small_systems import solved
from .held import BESIDE, FACES, SAME_FACE, TOUCHED
from .layout import Layout
from .pose_problem import PoseProblem
from .problem import Residual
from .state import Given, State, moved_state, stepped_balls
from .step import LONGEST, ROUNDS

Triple = tuple[float, float, float]
Face = tuple[Triple, float]
"""A border that holds a ball joint: its unit normal n, model axes, and n.d of the rotation d, radians."""
Borders = dict[int, list[Triple]]
"""Of ball joints by number: the unit normals of the borders that hold, in the joint's frame."""
AXES = np.arange(3)


class Linear(NamedTuple):
    """The linear picture about a pose.

    Attributes:
        residual: there.
        values: (m,) of it.
        slope: (m, k). serving: (m, k) the same without what may not move for a residual.
        down, up: (k,) steps to the bounds.
        faces: of ball joints by number: the borders that held at the pose before and hold on.
    """

    residual: Residual
    values: Array
    slope: Array
    serving: Array
    down: Array
    up: Array
    faces: dict[int, list[Face]]

    @classmethod
    def about(cls, problem: PoseProblem, given: Given, residual: Residual, borders: Borders) -> Linear:
        """The picture about a residual; `borders` are those that held after the step that led there."""
        slope = problem.jacobian(given, residual)[1][..., 0]
        serving = slope if problem.serves is None else slope * problem.serves
        down, up = problem.bounds(given, residual.now.state)
        faces = _refreshed(problem.layout, residual.now.state, borders)
        return cls(residual, residual.values[:, 0], slope, serving, down[:, 0], up[:, 0], faces)


def limited_step(
    problem: PoseProblem, given: Given, linear: Linear, damping: float
) -> tuple[Array, State, Borders]:
    """The shortest step (k,) that brings the goals nearer inside the limits, the state after it, and the
    borders that hold then.

    The step d minimises |r + J d|^2 + damping |d|^2 / mobility, see `step`. What is held at a limit leaves J
    and moves by a fixed amount instead.
    """
    layout, state = problem.layout, linear.residual.now.state
    mobility, down, up, slope = layout.mobility, linear.down, linear.up, linear.slope
    held = _held_at_start(linear) if layout.bounded else None
    fixed: Array | None = None
    faces = {ball: list(borders) for ball, borders in linear.faces.items()}
    balls: Array = state.rotations
    for _ in range(ROUNDS):
        free = slope if held is None else np.where(held, 0.0, slope)
        if any(faces.values()):
            free, fixed = _held_balls(layout, free, faces, fixed)
        freed = free if problem.serves is None else free * problem.serves
        system = (free * mobility) @ freed.T
        system.reshape(-1)[:: len(system) + 1] += damping
        missing = linear.values if fixed is None else linear.values + slope @ fixed
        dual = _dual(system, missing, damping)
        step = -mobility * (freed.T @ dual)
        if fixed is not None:
            step += fixed
        part = _part(problem, step)
        step *= part
        # What each unknown would like to do, now that the others are held: it tells which limits hold it
        # still (the primal-dual active set method, Hintermueller, Ito & Kunisch 2002).
        wanted = -part * mobility * (linear.serving.T @ dual)
        changed, fixed = False, None
        if held is not None:
            over, under = wanted > up, wanted < down
            before, held = held, over | under
            changed = bool((before != held).any())
            if held.any():
                fixed = np.where(over, up, np.where(under, down, 0.0))
        if layout.balls:
            changed = _release(faces, wanted[layout.first_ball : layout.first_slide].tolist()) or changed
            balls, outside = _confined(layout, state, step)
            for ball, there, allowed in outside:
                changed = _hold(faces.setdefault(ball, []), there, allowed) or changed
        if not changed:
            break
    if held is not None:
        step = np.minimum(np.maximum(step, down), up)
    return step, moved_state(layout, given, state, step[:, None], balls), _borders(layout, state, faces)


def _refreshed(layout: Layout, state: State, borders: Borders) -> dict[int, list[Face]]:
    """The borders that held at the state before and hold on, as they are now; see `held.refreshed`."""
    found: dict[int, list[Face]] = {}
    for ball, normals in borders.items():
        limit, row = layout.ball_limits[ball], layout.ball_rows[ball]
        w, x, y, z = state.rotations[:, row, 0].tolist()
        for a, b, c in normals:
            cosine, sine = math.cos(0.5 * BESIDE), math.sin(0.5 * BESIDE)
            a, b, c = sine * a, sine * b, sine * c
            beside = (
                cosine * w - a * x - b * y - c * z,
                cosine * x + a * w + c * y - b * z,
                cosine * y + b * w + a * z - c * x,
                cosine * z + c * w + b * x - a * y,
            )
            inside = None if limit is None else project_rotation(limit.row, *beside)
            if inside is None:
                continue
            outward = (state.transforms[row, :, :3, 0] @ _rotation_between(inside, beside)).tolist()
            faces = found.setdefault(ball, [])
            depth = math.sqrt(outward[0] ** 2 + outward[1] ** 2 + outward[2] ** 2)
            normal = _beside(faces, outward)
            size = math.sqrt(normal[0] ** 2 + normal[1] ** 2 + normal[2] ** 2)
            if size > TOUCHED * BESIDE:
                faces.append(((normal[0] / size, normal[1] / size, normal[2] / size), BESIDE - depth))
    return found


def _borders(layout: Layout, state: State, faces: dict[int, list[Face]]) -> Borders:
    """The borders that hold, in the joints' frames."""
    found: Borders = {}
    for ball, held in faces.items():
        axes = state.transforms[layout.ball_rows[ball], :, :3, 0]
        found[ball] = [tuple((normal @ axes).tolist()) for normal, _ in held]
    return found


def _held_at_start(linear: Linear) -> Mask:
    """(k,) what is at a bound, and the error falls beyond it (Bertsekas 1982, projected Newton methods)."""
    gradient = linear.serving.T @ linear.values
    found: Mask = ((linear.up <= 0.0) & (gradient < 0.0)) | ((linear.down >= 0.0) & (gradient > 0.0))
    return found


def moved(problem: PoseProblem, given: Given, state: State, step: Array) -> State:
    """The state after a step (k,) of hinges and slides inside their bounds, ball joints inside their
    limits."""
    layout = problem.layout
    balls = _confined(layout, state, step)[0] if layout.balls else state.rotations
    return moved_state(problem.layout, given, state, step[:, None], balls)


def _held_balls(
    layout: Layout, slope: Array, faces: dict[int, list[Face]], fixed: Array | None
) -> tuple[Array, Array]:
    """The slope (m, k) without what borders hold of ball joints, and what is held at (k,), with their
    rotations there."""
    places = [layout.first_ball + 3 * ball for ball, borders in faces.items() for _ in borders]
    borders = [border for each in faces.values() for border in each]
    # The normals of one joint are orthogonal.
    normals = np.zeros((len(borders), layout.columns))
    columns = np.array(places, dtype=np.intp)[:, None] + AXES
    normals[np.arange(len(borders))[:, None], columns] = [normal for normal, _ in borders]
    found = np.array([value for _, value in borders]) @ normals
    return slope - (slope @ normals.T) @ normals, found if fixed is None else fixed + found


def _dual(system: Array, missing: Array, damping: float) -> Array:
    """(m,) what a damped system makes `missing`. Where weights are so far apart that the damping is rounded
    away, its pivots are at least as large as that."""
    try:
        return np.asarray(np.linalg.solve(system, missing), dtype=np.float64)
    except np.linalg.LinAlgError:
        return solved(system[..., None], np.array([damping]), missing[:, None])[:, 0]


def _part(problem: PoseProblem, step: Array) -> float:
    """The part of a step that turns no joint farther than it may in one step."""
    layout = problem.layout
    first, last = layout.first_ball, layout.first_slide
    most = 1.0
    if first:
        most = max(most, float((np.abs(step[:first]) / problem.longest[:first]).max()))
    if first < last:
        balls = step[first:last].reshape(-1, 3)
        squares = np.add.reduce(balls * balls, 1)
        most = max(most, float((np.sqrt(squares) / problem.longest[first:last:3]).max()))
    if last < layout.columns:
        most = max(most, float(np.abs(step[last:]).max()) / LONGEST)
    return 1.0 / most


def _confined(layout: Layout, state: State, step: Array) -> tuple[Array, list[tuple[int, Triple, Triple]]]:
    """The ball joints (4, balls, 1) after a step, inside their limits; which the step would take outside.

    Of those: the number, the rotation that the step wants and the one that is allowed, rotation vectors about
    model axes.
    """
    balls = stepped_balls(layout, state, step[:, None])
    outside: list[tuple[int, Triple, Triple]] = []
    after = balls[..., 0].T.tolist()
    for ball, (limit, (w, x, y, z)) in enumerate(zip(layout.ball_limits, after, strict=True)):
        if limit is None:
            continue
        nearest = project_rotation(limit.row, w, x, y, z)
        if nearest is None:
            continue
        w, x, y, z = nearest
        length = math.sqrt(w * w + x * x + y * y + z * z)
        nearest = (w / length, x / length, y / length, z / length)
        balls[:, ball, 0] = nearest
        place, row = layout.first_ball + 3 * ball, layout.ball_rows[ball]
        a, b, c = step[place : place + 3].tolist()
        allowed = _rotation_between(state.rotations[:, row, 0].tolist(), nearest)
        x, y, z = (state.transforms[row, :, :3, 0] @ allowed).tolist()
        outside.append((ball, (a, b, c), (x, y, z)))
    return balls, outside


def _release(faces: dict[int, list[Face]], wanted: list[float]) -> bool:
    """Lets go of the borders from which ball joints would like to go inside; whether there were any."""
    found = False
    for ball, borders in faces.items():
        a, b, c = wanted[3 * ball : 3 * ball + 3]
        kept = [face for face in borders if face[0][0] * a + face[0][1] * b + face[0][2] * c >= face[1]]
        found = found or len(kept) < len(borders)
        borders[:] = kept
    return found


def _hold(borders: list[Face], there: Triple, allowed: Triple) -> bool:
    """Holds a ball joint at the border between the rotation `there` and the nearest one `allowed`; False
    where it is held already."""
    x, y, z = there[0] - allowed[0], there[1] - allowed[1], there[2] - allowed[2]
    depth = math.sqrt(x * x + y * y + z * z)
    x, y, z = _beside(borders, (x, y, z))
    length = math.sqrt(x * x + y * y + z * z)
    # Nearly the same border again: its curvature, which the next step sees.
    if len(borders) == FACES or length < 1e-9 or length < SAME_FACE * depth:
        return False
    x, y, z = x / length, y / length, z / length
    borders.append(((x, y, z), x * allowed[0] + y * allowed[1] + z * allowed[2]))
    return True


def _beside(borders: list[Face], vector: Triple) -> Triple:
    """The part of a vector that is along none of the borders' normals."""
    x, y, z = vector
    for (a, b, c), _ in borders:
        along = a * x + b * y + c * z
        x, y, z = x - along * a, y - along * b, z - along * c
    return x, y, z


def _rotation_between(a: Sequence[float], b: Sequence[float]) -> Triple:
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
