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
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .clamping import Array, Limits, Places
from .limits import Limit
from .pushes import DAMPING, LEAST_DAMPING, solved
from .sampling import same_side

ENOUGH = 0.25
"""Part of the tolerance at which a frame is left alone."""
STEPS = 8
"""Most steps. From a good guess two are usual; a frame that needs more is better solved by the loop."""
LONGEST = 0.3
"""Longest turn of a joint in one step, radians: farther away the linear picture means little."""


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

    def at(self, frames: NDArray[np.bool_]) -> Path:
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
    if len(at) > 2:  # at the ends as bent as in the middle of the span
        slopes[0], slopes[-1] = 2.0 * chords[0] - slopes[1], 2.0 * chords[-1] - slopes[-2]
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
    limits = Limits(path.limits, path.mobility)
    rotations, normals = limits.clamped(guess)[0], None
    best = rotations
    distances: Array = np.full(targets.shape[1], math.inf)
    left: NDArray[np.intp] | None = None  # frames that are worked on, if not all
    part, wanted, within = path, targets, ENOUGH * tolerances
    where = room(*guess.shape[1:])
    for step in range(STEPS + 1):
        heads, frames = forward(part, rotations, where)
        effector = heads[:, -1] + np.einsum("ijf,jf->if", frames[:, :, -1], part.effectors)
        way = wanted - effector
        distance = np.sqrt((way * way).sum(0))
        if left is None:
            nearer = distance < distances
            if nearer.all():
                best, distances = rotations, distance
            else:
                best, distances = np.where(nearer, rotations, best), np.where(nearer, distance, distances)
        else:
            nearer = distance < distances[left]
            distances[left[nearer]] = distance[nearer]
            best[..., left[nearer]] = rotations[..., nearer]
        far = distance > within
        if step == STEPS or not far.any():
            break
        if 2 * np.count_nonzero(far) > len(far):  # to pick frames out costs as much as to go on with them
            way = np.where(far, way, 0.0)
        else:
            if left is None:
                left, best = np.flatnonzero(far), best.copy()
            else:
                left = left[far]
            part, wanted, within, way = part.at(far), wanted[:, far], within[far], way[:, far]
            rotations, normals = rotations[..., far], None if normals is None else normals[..., far]
            heads, frames, effector = heads[..., far], frames[..., far], effector[:, far]
            where = room(*rotations.shape[1:])
        axes = _axes(limits, rotations, frames, normals)
        turns = _turns(path.mobility, limits, effector[:, None] - heads, axes, way)
        rotations, pushed = limits.clamped(_turned(rotations, np.einsum("jinf,jnf->inf", frames, turns)))
        if normals is None or pushed is None:
            normals = pushed if normals is None else normals
        else:
            normals = np.where(np.any(pushed != 0.0, axis=0), pushed, normals)
    return best, distances


def room(count: int, size: int) -> Array:
    """For the transforms of as many joints over as many frames: memory that is new each time costs more than
    what is worked out there."""
    return np.empty((2, count, 3, 4, size))


def forward(path: Path, rotations: Array, where: Array) -> tuple[Array, Array]:
    """Forward kinematics: (3, n, F) heads and (3, 3, n, F) frames, in model space, in a `room`."""
    count, size = rotations.shape[1:]
    local, model = where
    turned = matrices(rotations)
    if path.rests.shape[-1] == 1:  # the same in all frames: whole products instead of single ones
        wide = turned.transpose(2, 0, 1, 3).reshape(count, 3, 3 * size)
        rests = np.ascontiguousarray(path.rests[..., 0].transpose(2, 0, 1))
        local[:, :, :3] = (rests @ wide).reshape(count, 3, 3, size)
    else:
        np.einsum("ijnf,jknf->nikf", path.rests, turned, out=local[:, :, :3])
    local[:, :, 3] = path.shifts.transpose(1, 0, 2)
    model[0] = local[0]
    for i in range(1, count):
        np.einsum("ijf,jkf->ikf", model[i - 1, :, :3], local[i], out=model[i])
        model[i, :, 3] += model[i - 1, :, 3]
    return model[:, :, 3].transpose(1, 0, 2), model[:, :, :3].transpose(1, 2, 0, 3)


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


class _Axes(NamedTuple):
    """Single axes about which some joints turn alone, or do not turn.

    Attributes:
        joints: (k,) their places. along: (3, k, F) in model space. signs: (k, F) 1 where a joint turns about
            this axis alone, -1 where it turns about all others, 0 where it does as it likes.
    """

    joints: Places
    along: Array
    signs: Array


def _axes(limits: Limits, rotations: Array, frames: Array, normals: Array | None) -> list[_Axes]:
    """Of hinges, of single twists, and last of joints that are held at a limit: the normal, outwards."""
    found, size = [], rotations.shape[-1]
    for joints, axes, sign in (
        (limits.hinges, limits.axes, 1.0),
        (limits.locked, limits.locked_axes(rotations), -1.0),
    ):
        if len(joints):
            along = np.einsum("ijnf,jnf->inf", frames[:, :, joints], axes)
            found.append(_Axes(joints, along, np.full((len(joints), size), sign)))
    if normals is not None:
        joints = np.flatnonzero(normals.any(axis=(0, 2)))
        own = normals[:, joints]
        along = np.einsum("ijnf,jnf->inf", frames[:, :, joints], own)
        found.append(_Axes(joints, along, np.where(own.any(axis=0), -1.0, 0.0)))
    else:
        found.append(_Axes(np.empty(0, np.intp), np.empty((3, 0, size)), np.empty((0, size))))
    return found


def _turns(mobility: Array, limits: Limits, levers: Array, axes: Sequence[_Axes], way: Array) -> Array:
    """The least turns of the joints that move the effector by `way`: (3, n, F) rotation vectors, model space.

    As in `pushes.py`: with x = m r x v for a lever r, a free joint turns by x, others by its part along their
    axis or by what is left without it. A joint that is held at its limit is let go where it would turn back.
    """
    balls = mobility.copy()
    balls[limits.hinges] = 0.0
    weighted = levers * balls[:, None]
    plain = -np.einsum("inf,jnf->ijf", weighted, levers)
    square = -(plain[0, 0] + plain[1, 1] + plain[2, 2])
    across = [_cross(each.along, levers[:, each.joints]) for each in axes]
    parts = [mobility[each.joints][:, None] * each.signs for each in axes]
    for _ in range(2):
        system = plain.copy()
        for arms, part in zip(across, parts, strict=True):
            system += np.einsum("inf,jnf->ijf", arms * part, arms)
        trace = square + system[0, 0] + system[1, 1] + system[2, 2]
        damping = square + DAMPING * (way * way).sum(0) + LEAST_DAMPING * trace
        diagonal = [system[k, k] + damping for k in range(3)]
        push = np.array(solved((*diagonal, system[0, 1], system[0, 2], system[1, 2]), way))
        wanted = [(arms * push[:, None]).sum(0) for arms in across]
        released = (parts[-1] != 0.0) & (wanted[-1] < 0.0)
        if not released.any():
            break
        parts[-1] = np.where(released, 0.0, parts[-1])
    turns = _cross(weighted, push[:, None])
    for each, part, turn in zip(axes, parts, wanted, strict=True):
        turns[:, each.joints] += part * turn * each.along
    angles = np.sqrt((turns * turns).sum(0).max(0))
    turns *= np.minimum(1.0, LONGEST / np.maximum(angles, 1e-300))
    return turns


def _turned(rotations: Array, vectors: Array) -> Array:
    """Rotations (4, n, F) turned by small rotation vectors (3, n, F) in their own frames.

    By 2 atan(a / 2) for a radians, which needs no sines.
    """
    w, x, y, z = rotations
    a, b, c = 0.5 * vectors
    found = np.empty(rotations.shape)
    found[0] = w - x * a - y * b - z * c
    found[1] = x + w * a + y * c - z * b
    found[2] = y + w * b + z * a - x * c
    found[3] = z + w * c + x * b - y * a
    found /= np.sqrt((found * found).sum(0))
    return found


def _cross(a: Array, b: Array) -> Array:
    """Of (3, ...) vectors."""
    ax, ay, az = a
    bx, by, bz = b
    return np.stack((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))
