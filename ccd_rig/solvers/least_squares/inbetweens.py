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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...limits.batch import Array, Limits
from ...limits.shapes import Limit
from ...motion.interpolation import same_side
from .least_turns import Facing, axes_of, cross, turns_of

ENOUGH = 0.25
"""Part of the tolerance at which a frame is left alone."""
TINY = 1e-12
"""Sine of an angle that is none, or half a turn."""
STEPS = 8
"""Most steps. From a good guess two are usual; a frame that needs more is better solved by the loop."""


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

    def length(self) -> float:
        """Of the links from the first joint to the effector, the model's unit, at the first frame."""
        links = [*self.shifts[:, 1:, 0].T, self.effectors[:, 0]]
        return math.fsum(float(np.linalg.norm(link)) for link in links) or 1.0

    def at(self, frames: NDArray[np.bool_]) -> Path:
        """The same path at some of its frames."""
        rests, shifts, effectors = (
            values if values.shape[-1] == 1 else values[..., frames]
            for values in (self.rests, self.shifts, self.effectors)
        )
        return Path(self.limits, self.mobility, rests, shifts, effectors)


@dataclass(frozen=True)
class Aims:
    """Where effectors, and with them the last joints, are brought.

    Attributes:
        points: (3, F) of the effectors, model space.
        tolerances: (F,) distances at which they are reached, the model's unit.
        frames: (3, 3, F) rotations of the last joint, model space; None if it is not asked for.
        directions: (3, F) unit, where `axis` of the last joint points; None if it is not asked for.
        axis: (3,) unit, in the last joint's frame.
        angle_tolerance: radians at which rotations and directions are reached.
    """

    points: Array
    tolerances: Array
    frames: Array | None = None
    directions: Array | None = None
    axis: Array | None = None
    angle_tolerance: float = math.inf

    def at(self, some: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Aims:
        """The same at some of the frames."""
        frames = None if self.frames is None else self.frames[..., some]
        directions = None if self.directions is None else self.directions[:, some]
        return replace(
            self,
            points=self.points[:, some],
            tolerances=self.tolerances[some],
            frames=frames,
            directions=directions,
        )

    def seen_from(self, heads: Array, frames: Array) -> Aims:
        """The same in other frames: (3, F) their origins, (3, 3, F) their axes."""
        points = np.einsum("jif,jf->if", frames, self.points - heads)
        turned, directions = self.frames, self.directions
        if turned is not None:
            turned = np.einsum("jif,jkf->ikf", frames, turned)
        if directions is not None:
            directions = np.einsum("jif,jf->if", frames, directions)
        return replace(self, points=points, frames=turned, directions=directions)

    def steps(self) -> Array:
        """(F - 1,) radians by which rotation or direction turn to the next frame."""
        if self.frames is not None:
            trace = (self.frames[..., 1:] * self.frames[..., :-1]).sum((0, 1))
            return np.asarray(np.arccos(np.clip(0.5 * (trace - 1.0), -1.0, 1.0)))
        if self.directions is not None:
            cosine = (self.directions[:, 1:] * self.directions[:, :-1]).sum(0)
            return np.asarray(np.arccos(np.clip(cosine, -1.0, 1.0)))
        return np.zeros(self.points.shape[1] - 1)

    def turn(self, last: Array) -> Array | None:
        """(3, F) rotation vectors (model space) that are left for last joints with these frames (3, 3, F)."""
        if self.frames is not None:
            apart = np.einsum("ikf,jkf->ijf", self.frames, last)
            sine = 0.5 * np.stack(
                (apart[2, 1] - apart[1, 2], apart[0, 2] - apart[2, 0], apart[1, 0] - apart[0, 1])
            )
            cosine = 0.5 * (apart[0, 0] + apart[1, 1] + apart[2, 2] - 1.0)
        elif self.directions is not None and self.axis is not None:
            points = np.einsum("ijf,j->if", last, self.axis)
            sine, cosine = cross(points, self.directions), (points * self.directions).sum(0)
        else:
            return None
        length = np.sqrt((sine * sine).sum(0))
        # Where nothing tells the way round, at half a turn, the sine is 0 and nothing is turned.
        angle = np.arctan2(length, cosine)
        found: Array = sine * np.where(length > 0.0, angle / np.maximum(length, 1e-300), 1.0)
        return np.where((length <= TINY) & (cosine < 0.0), math.pi, found)


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


def settle(path: Path, guess: Array, aims: Aims) -> tuple[Array, Array]:
    """Bring effectors to their targets with the least turns, from poses that are near.

    Args:
        path: the joints.
        guess: (4, n, F) unit rotations to start from; those of joints that move are clamped first.
        aims: where to.

    Returns:
        (4, n, F) rotations inside the limits, and (F,) how far off they are, in tolerances.
    """
    limits = Limits(path.limits, path.mobility)
    rotations, normals = limits.clamped(guess)[0], None
    best = rotations
    off: Array = np.full(guess.shape[2], math.inf)
    left: NDArray[np.intp] | None = None  # frames that are worked on, if not all
    where, length = room(*guess.shape[1:]), 0.5 * path.length()
    for step in range(STEPS + 1):
        heads, frames = forward(path, rotations, where)
        effector = heads[:, -1] + np.einsum("ijf,jf->if", frames[:, :, -1], path.effectors)
        way, turn = aims.points - effector, aims.turn(frames[:, :, -1])
        now = np.sqrt((way * way).sum(0)) / np.maximum(aims.tolerances, 1e-300)
        if turn is not None:
            angle = np.sqrt((turn * turn).sum(0))
            now = np.maximum(now, angle / max(aims.angle_tolerance, 1e-300))
        if left is None:
            nearer = now < off
            if nearer.all():
                best, off = rotations, now
            else:
                best, off = np.where(nearer, rotations, best), np.where(nearer, now, off)
        else:
            nearer = now < off[left]
            off[left[nearer]] = now[nearer]
            best[..., left[nearer]] = rotations[..., nearer]
        far = now > ENOUGH
        if step == STEPS or not far.any():
            break
        if 2 * np.count_nonzero(far) > len(far):  # to pick frames out costs as much as to go on with them
            way, turn = np.where(far, way, 0.0), None if turn is None else np.where(far, turn, 0.0)
        else:
            if left is None:
                left, best = np.flatnonzero(far), best.copy()
            else:
                left = left[far]
            path, aims, way = path.at(far), aims.at(far), way[:, far]
            rotations, normals = rotations[..., far], None if normals is None else normals[..., far]
            heads, frames, effector = heads[..., far], frames[..., far], effector[:, far]
            where, turn = room(*rotations.shape[1:]), None if turn is None else turn[:, far]
        facing = None if turn is None else Facing(turn, aims.directions, length)
        axes = axes_of(limits, rotations, frames, normals)
        turns = turns_of(path.mobility, limits, effector[:, None] - heads, axes, way, facing)
        rotations, pushed = limits.clamped(_turned(rotations, np.einsum("jinf,jnf->inf", frames, turns)))
        if normals is None or pushed is None:
            normals = pushed if normals is None else normals
        else:
            normals = np.where(np.any(pushed != 0.0, axis=0), pushed, normals)
    return best, off


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
