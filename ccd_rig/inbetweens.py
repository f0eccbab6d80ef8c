"""Frames between solved ones, all at once: smooth guesses, brought to the targets inside the limits.

A chain that follows a moving target is solved frame by frame only now and then. What lies between starts from
a smooth curve through the solved poses and is brought to its targets by the step of the closing phase
(`refine.py`: the least turns that take the whole way, what is held at a limit left out), worked out for all
frames in the same NumPy calls. What does not arrive so is told, for the loop to solve.

Arrays are in double precision, frames last: (4, n, F) rotations (w, x, y, z), (3, 3, n, F) matrices, of n
joints. In the arrays of a path the frames may be one that stands for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .limits import Ellipse, Hinge, Limit, SwingTwist
from .nearest import ROUNDING
from .sampling import same_side

Array = NDArray[np.float64]

ENOUGH = 0.25
"""Part of the tolerance at which a frame is left alone."""
STEPS = 8
"""Most steps. From a good guess two are usual; a frame that needs more is better solved by the loop."""
LONGEST = 0.3
"""Longest turn of a joint in one step, radians: farther away the linear picture means little."""
DAMPING = 1e-9
"""Part of the sum of square levers that is added to a system beside the square error (Sugihara 2011)."""


@dataclass(frozen=True)
class Path:
    """The joints from a root to an effector, over frames.

    Attributes:
        limits: (n) of all joints, root first, the same in every frame.
        mobility: (n,) 0 for joints that stay, else 1 - stiffness.
        rests: (3, 3, n, F) rest rotations as matrices.
        shifts: (3, n, F) heads in the parent's frame, the pose's translations included.
        effectors: (3, F) the points to bring to the targets, in the last joint's frame.
    """

    limits: Sequence[Limit | None]
    mobility: Array
    rests: Array
    shifts: Array
    effectors: Array

    def at(self, frames: NDArray[np.intp]) -> Path:
        """The same path at some of its frames."""
        rests, shifts, effectors = (
            values if values.shape[-1] == 1 else values[..., frames]
            for values in (self.rests, self.shifts, self.effectors)
        )
        return Path(self.limits, self.mobility, rests, shifts, effectors)


def guesses(frames: ArrayLike, rotations: ArrayLike, wanted: ArrayLike) -> Array:
    """Smooth rotations through solved ones: cubics with the slopes of the neighbours (Catmull & Rom 1974).

    The components of quaternions on one side of the sphere are interpolated and normalised.

    Args:
        frames: (S,) solved frames, strictly increasing, at least one.
        rotations: (S, J, 4).
        wanted: (F,) frames within the solved range.

    Returns:
        (F, J, 4) unit quaternions.
    """
    at, when = np.asarray(frames, dtype=np.float64), np.asarray(wanted, dtype=np.float64)
    keys = same_side(rotations)
    if len(at) == 1:
        return np.broadcast_to(keys, (len(when), *keys.shape[1:])).copy()
    spans = np.diff(at)
    chords = np.diff(keys, axis=0) / spans[:, None, None]
    slopes = np.empty_like(keys)
    slopes[0], slopes[-1] = chords[0], chords[-1]
    before, after = spans[:-1, None, None], spans[1:, None, None]
    slopes[1:-1] = (chords[:-1] * after + chords[1:] * before) / (before + after)
    i = np.clip(np.searchsorted(at, when, side="right") - 1, 0, len(spans) - 1)
    span = spans[i][:, None, None]
    t = ((when - at[i]) / spans[i])[:, None, None]
    # Hermite: the straight way, and what the slopes at both ends add to it.
    found = keys[i] + t * span * chords[i]
    found += t * (1.0 - t) * span * ((1.0 - t) * (slopes[i] - chords[i]) - t * (slopes[i + 1] - chords[i]))
    unit: Array = found / np.linalg.norm(found, axis=-1, keepdims=True)
    return unit


def settle(path: Path, guess: Array, targets: Array, tolerances: Array) -> tuple[Array, Array]:
    """Bring effectors to their targets with the least turns, from poses that are near.

    Args:
        path: the joints.
        guess: (4, n, F) unit rotations to start from; those of joints that move are clamped first.
        targets: (3, F) in model space.
        tolerances: (F,) distances at which they are reached, in the model's unit.

    Returns:
        (4, n, F) rotations inside the limits, and (F,) distances between effectors and targets that are left.
    """
    limits = _Limits(path)
    rotations, _ = limits.clamped(guess)
    best, distances = rotations.copy(), np.full(targets.shape[1], math.inf)
    left: NDArray[np.intp] = np.arange(targets.shape[1])
    part, normals, wanted = path, np.zeros((3, *guess.shape[1:])), targets
    for step in range(STEPS + 1):
        heads, frames = forward(part, rotations)
        effector = heads[:, -1] + np.einsum("ijf,jf->if", frames[:, :, -1], part.effectors)
        way = wanted - effector
        distance = np.sqrt((way * way).sum(0))
        nearer = distance < distances[left]
        distances[left[nearer]] = distance[nearer]
        best[..., left[nearer]] = rotations[..., nearer]
        far = np.flatnonzero(distance > ENOUGH * tolerances[left])
        if step == STEPS or not len(far):
            break
        if len(far) < len(left):
            left, part, wanted, way = left[far], part.at(far), wanted[:, far], way[:, far]
            rotations, normals = rotations[..., far], normals[..., far]
            heads, frames, effector = heads[..., far], frames[..., far], effector[:, far]
        turns = _turns(limits, frames, effector[:, None] - heads, way, normals)
        rotations, pushed = limits.clamped(_product(rotations, turns))
        moved = np.any(pushed != 0.0, axis=0)
        normals = np.where(moved, pushed, normals)
    return best, distances


def forward(path: Path, rotations: Array) -> tuple[Array, Array]:
    """Forward kinematics: (3, n, F) heads and (3, 3, n, F) frames, in model space."""
    local = np.einsum("ijnf,jknf->iknf", path.rests, matrices(rotations))
    count, size = rotations.shape[1:]
    heads, frames = np.empty((3, count, size)), np.empty((3, 3, count, size))
    heads[:, 0], frames[:, :, 0] = path.shifts[:, 0], local[:, :, 0]
    for i in range(1, count):
        before = frames[:, :, i - 1]
        heads[:, i] = heads[:, i - 1] + np.einsum("ijf,jf->if", before, path.shifts[:, i])
        np.einsum("ijf,jkf->ikf", before, local[:, :, i], out=frames[:, :, i])
    return heads, frames


def matrices(rotations: Array) -> Array:
    """(4, ...) unit quaternions as (3, 3, ...) matrices."""
    w, x, y, z = rotations
    found = np.empty((3, 3, *rotations.shape[1:]))
    doubled_x, doubled_y, doubled_z = 2.0 * x, 2.0 * y, 2.0 * z
    xx, yy, zz = doubled_x * x, doubled_y * y, doubled_z * z
    xy, xz, yz = doubled_x * y, doubled_x * z, doubled_y * z
    wx, wy, wz = doubled_x * w, doubled_y * w, doubled_z * w
    found[0, 0], found[1, 1], found[2, 2] = 1.0 - yy - zz, 1.0 - xx - zz, 1.0 - xx - yy
    found[0, 1], found[1, 0] = xy - wz, xy + wz
    found[0, 2], found[2, 0] = xz + wy, xz - wy
    found[1, 2], found[2, 1] = yz - wx, yz + wx
    return found


class _Limits:
    """What the joints of a path may do: as arrays where that is quick, by their own `_nearest` otherwise."""

    def __init__(self, path: Path) -> None:
        count, limits = len(path.limits), path.limits
        hinges = [isinstance(limit, Hinge) for limit in limits]
        self.balls = np.where(hinges, 0.0, path.mobility)[:, None]
        self.hinges = np.where(hinges, path.mobility, 0.0)[:, None]
        self.axes = np.zeros((3, count, 1))
        for i, limit in enumerate(limits):
            if isinstance(limit, Hinge):
                self.axes[:, i, 0] = limit.axis
        limited = [i for i, limit in enumerate(limits) if limit is not None and path.mobility[i] > 0.0]
        self.round = np.array([i for i in limited if _is_round(limits[i])], dtype=np.intp)
        self.others = [(i, limits[i]) for i in limited if not _is_round(limits[i])]
        self.constants = np.array([limits[i]._round for i in self.round]).reshape(-1, 11).T

    def clamped(self, rotations: Array) -> tuple[Array, Array]:
        """The nearest allowed rotations, and (3, n, F) unit rotation vectors, in the joint's frame, along
        which joints were pushed back; 0 where they were inside."""
        normals = np.zeros((3, *rotations.shape[1:]))
        found = rotations.copy() if len(self.round) or self.others else rotations
        if len(self.round):
            ball, frame = np.nonzero(_outside(self.constants[..., None], rotations[:, self.round]))
            joint = self.round[ball]
            pushed = rotations[:, joint, frame]
            found[:, joint, frame] = nearest = _nearest_rounds(self.constants[:, ball], pushed)
            normals[:, joint, frame] = _directions(nearest, pushed)
        for i, limit in self.others:
            assert limit is not None
            room = _room(limit)
            own = rotations[:, i]
            frames = range(own.shape[1]) if room is None else np.flatnonzero(_outside(room, own)).tolist()
            for f in frames:
                w, x, y, z = own[:, f].tolist()
                there = limit._nearest(w, x, y, z)
                if there is not None:
                    found[:, i, f] = there
                    normals[:, i, [f]] = _directions(found[:, i, [f]], own[:, [f]])
        return found, normals


def _is_round(limit: Limit | None) -> bool:
    """Whether a limit is what `nearest.nearest_round` knows: a twist range and a cone."""
    return isinstance(limit, Hinge) or (
        isinstance(limit, SwingTwist) and not isinstance(limit.swing, Ellipse)
    )


def _room(limit: Limit) -> Array | None:
    """The constants of a round limit inside an ellipse: what is in there need not be looked at closely."""
    if not (isinstance(limit, SwingTwist) and isinstance(limit.swing, Ellipse)):
        return None
    sides = limit.swing
    least = 0.5 * min(-sides.x_lower, sides.x_upper, -sides.z_lower, sides.z_upper)
    return np.array((*limit._round[:7], math.cos(least), math.sin(least), 1.0, 0.0))[:, None]


def _outside(constants: Array, rotations: Array) -> NDArray[np.bool_]:
    """Which unit rotations (4, ...) are outside round limits, as in `nearest.nearest_round`."""
    nx, ny, nz, cm, sm, ch, sh, cr, sr = constants[:9]
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    swing, twist = np.sqrt(gx * gx + gy * gy + gz * gz), np.sqrt(w * w + p * p)
    slack = 0.5 * ROUNDING
    swung = swing * cr - twist * sr >= slack
    found: NDArray[np.bool_] = swung | (np.abs(p * cm - w * sm) * ch - np.abs(w * cm + p * sm) * sh >= slack)
    return found


def _nearest_rounds(constants: Array, rotations: Array) -> Array:
    """`nearest.nearest_round` of many rotations (4, K) that are outside, each with its constants (11, K)."""
    nx, ny, nz, cm, sm, ch, sh, cr, sr, rest_e, rest_f = constants
    w, x, y, z = rotations
    p = x * nx + y * ny + z * nz
    gx, gy, gz = x - p * nx, y - p * ny, z - p * nz
    u, s = np.sqrt(gx * gx + gy * gy + gz * gz), np.sqrt(w * w + p * p)
    c, d = w * cm + p * sm, p * cm - w * sm
    side = np.where((c < 0.0) | ((c == 0.0) & (d < 0.0)), -1.0, 1.0)
    c, d = c * side, d * side
    inside, border = np.abs(d) * ch <= c * sh, np.copysign(sh, d)
    length = np.maximum(s, 1e-300)
    e = np.where(inside, w / length, side * (ch * cm - border * sm))
    f = np.where(inside, p / length, side * (ch * sm + border * cm))
    reach = np.where(inside, s, c * ch + d * border)
    # A half-turn swing: every twist is equally near, and so are both directions of the swing's axis.
    turned = s <= 0.5 * ROUNDING
    if turned.any():
        side = np.where((gx > 0.0) | ((gx == 0.0) & ((gy > 0.0) | ((gy == 0.0) & (gz > 0.0)))), 1.0, -1.0)
        e, f = np.where(turned, side * rest_e, e), np.where(turned, side * rest_f, f)
        reach = np.where(turned, 0.0, reach)
    swung = u * cr > reach * sr
    length = np.maximum(np.sqrt(reach * reach + u * u), 1e-300)
    s = np.where(swung, cr, reach / length)
    u = np.where(swung, sr / np.maximum(u, 1e-300), 1.0 / length)
    p = s * f
    return np.array((s * e, gx * u + p * nx, gy * u + p * ny, gz * u + p * nz))


def _directions(inside: Array, outside: Array) -> Array:
    """(3, K) unit rotation vectors, in the frames of `inside` (4, K), that lead to `outside`."""
    aw, ax, ay, az = inside
    bw, bx, by, bz = outside
    turns = np.array(
        (
            aw * bx - bw * ax - (ay * bz - az * by),
            aw * by - bw * ay - (az * bx - ax * bz),
            aw * bz - bw * az - (ax * by - ay * bx),
        )
    )
    lengths = np.copysign(np.sqrt((turns * turns).sum(0)), (inside * outside).sum(0))
    return np.where(np.abs(lengths) > 1e-300, turns / np.where(lengths == 0.0, 1.0, lengths), 0.0)


def _turns(limits: _Limits, frames: Array, levers: Array, way: Array, normals: Array) -> Array:
    """The least turns of the joints, each in its own frame, that move the effector by `way`: (4, n, F).

    With x = r x v for a lever r, a free joint turns by x, a hinge by its part along the axis, and one that is
    held at a limit by what is left of it without the part along the limit's normal, as long as it would go
    on outwards. v is what makes the sum of all the effector's moves the way.
    """
    axes = limits.axes + normals  # a hinge is pushed back along its axis
    held = np.any(normals != 0.0, axis=0)
    outward = np.where(limits.hinges > 0.0, (limits.axes * normals).sum(0), 1.0)
    axes = np.where(limits.hinges > 0.0, np.broadcast_to(limits.axes, normals.shape), axes)
    along = np.einsum("ijnf,jnf->inf", frames, axes)
    across = _cross(along, levers)
    weighted = levers * limits.balls
    plain = -np.einsum("inf,jnf->ijf", weighted, levers)
    square = -(plain[0, 0] + plain[1, 1] + plain[2, 2])
    for _ in range(2):
        signs = np.where(held, -limits.balls, limits.hinges)
        system = plain + np.einsum("inf,jnf->ijf", across * signs, across)
        trace = square + system[0, 0] + system[1, 1] + system[2, 2]
        damping = square + DAMPING * trace + (way * way).sum(0)
        for k in range(3):
            system[k, k] += damping
        push = np.linalg.solve(system.transpose(2, 0, 1), way.T[..., None])[..., 0].T
        free = _cross(levers, push[:, None])
        parts = (along * free).sum(0)
        released = held & (parts * outward < 0.0)
        if not released.any():
            break
        held = held & ~released
    vectors = limits.balls * free + signs * parts * along
    angles = np.sqrt((vectors * vectors).sum(0))
    vectors = vectors * np.minimum(1.0, LONGEST / np.maximum(angles.max(0), 1e-300))
    return _exp(np.einsum("jinf,jnf->inf", frames, vectors))


def _exp(vectors: Array) -> Array:
    """Rotation vectors (3, ...) in radians as unit quaternions (4, ...)."""
    half = 0.5 * np.sqrt((vectors * vectors).sum(0))
    found = np.empty((4, *vectors.shape[1:]))
    found[0] = np.cos(half)
    found[1:] = vectors * (0.5 * np.sinc(half / math.pi))
    return found


def _cross(a: Array, b: Array) -> Array:
    """Of (3, ...) vectors."""
    ax, ay, az = a
    bx, by, bz = b
    return np.stack((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))


def _product(a: Array, b: Array) -> Array:
    """Hamilton product of (4, ...) quaternions, normalised: b first, then a."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    found = np.empty(a.shape)
    found[0] = aw * bw - ax * bx - ay * by - az * bz
    found[1] = aw * bx + ax * bw + ay * bz - az * by
    found[2] = aw * by - ax * bz + ay * bw + az * bx
    found[3] = aw * bz + ax * by - ay * bx + az * bw
    found /= np.sqrt((found * found).sum(0))
    return found
