# SPDX-License-Identifier: GPL-3.0-or-later
"""A bone's own rotation channels: which they are, what they hold, which angles are held.

A rotation has two sets of Euler angles, and at gimbal lock (middle angle a quarter turn) endless many: near
it the outer ones change a lot with the last digits of a rotation. A held angle is taken as it is, and the
others are found with it.

Arrays have one row per frame; angles are radians, rotations unit quaternions (w, x, y, z) relative to rest.

Rotations are unit quaternions (w, x, y, z) relative to rest; angles are radians. Everything works on whole
arrays, one row per frame, because a bake has thousands of frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from mathutils import Euler, Quaternion
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidInput, RigError
from ...limits.shapes import EulerBox, Limit
from ...maths import batch
from ...maths.batch import Array, Indices, length
from .pose_values import Values

NEAR = 1e-6
"""Radians by which the other set has to be nearer to the held middle angle: noise does not choose."""


def with_held(mode: str, rotations: Array, angles: Array, held: Array) -> Array:
    """Angles (F, 3) about X, Y and Z that lead to rotations, with the held ones as they are.

    Args:
        mode: axes in the order in which they are applied, such as "XYZ".
        rotations: (F, 4).
        angles: (F, 3) that lead there too.
        held: (F, 3) angles; in the columns of free axes not a number.

    Returns:
        (F, 3), free angles modulo a whole turn. Where no rotation with the held angles is the given one, the
        nearest is taken.
    """
    first, middle, last = ("XYZ".index(axis) for axis in mode)
    is_held = ~np.isnan(held).any(axis=0)
    found = np.where(is_held, held, angles)
    if is_held[middle] and not (is_held[first] or is_held[last]):
        gap, other = _apart(angles, held, middle), _apart(math.pi - angles, held, middle)
        flipped = other + NEAR < gap
        found[np.ix_(flipped, (first, last))] += math.pi
        return found
    # What is held is taken off at both ends: rotation = last * middle * first.
    rest = rotations
    if is_held[first]:
        rest = batch.multiply(rest, _turn(first, -held[:, first]), axis=-1)
    if is_held[last]:
        rest = batch.multiply(_turn(last, -held[:, last]), rest, axis=-1)
    if is_held[middle] and is_held[first]:
        rest = batch.multiply(rest, _turn(middle, -held[:, middle]), axis=-1)
    elif is_held[middle]:
        rest = batch.multiply(_turn(middle, -held[:, middle]), rest, axis=-1)
    free = [axis for axis in (last, middle, first) if not is_held[axis]]
    if len(free) == 1:
        found[:, free[0]] = 2.0 * np.arctan2(rest[:, 1 + free[0]], rest[:, 0])
    elif len(free) == 2:
        found[:, free[0]], found[:, free[1]] = _two_turns(rest, *free)
    return found


def _two_turns(rotations: Array, outer: int, inner: int) -> tuple[Array, Array]:
    """(F,) angles about two axes whose turns, the inner one first, come nearest to rotations.

    With half angles a and b the product is (cos a cos b, cos a sin b of the inner axis, sin a cos b of the
    outer one, sin a sin b of their cross product): a matrix of rank one.
    """
    third = 3 - outer - inner
    sign = (outer - inner) * (inner - third) * (third - outer) // 2  # 1 where outer x inner = third
    w, along_inner, along_outer = (rotations[:, k] for k in (0, 1 + inner, 1 + outer))
    across = sign * rotations[:, 1 + third]
    squares = w**2 - across**2, along_inner**2 - along_outer**2
    return (
        np.arctan2(2.0 * (w * along_outer + along_inner * across), squares[0] + squares[1]),
        np.arctan2(2.0 * (w * along_inner + along_outer * across), squares[0] - squares[1]),
    )


def _turn(axis: int, angles: Array) -> Array:
    """(F, 4) rotations about one axis."""
    turns = np.zeros((len(angles), 4))
    turns[:, 0], turns[:, 1 + axis] = np.cos(angles / 2.0), np.sin(angles / 2.0)
    return turns


def _apart(angles: Array, held: Array, axis: int) -> Array:
    """(F,) how far an angle is from the held one, modulo a whole turn."""
    return np.abs(np.remainder(angles[:, axis] - held[:, axis] + math.pi, 2.0 * math.pi) - math.pi)


Slots = Sequence[int] | NDArray[np.intp]  # indices in pose.bones

EULER_MODES = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
CHANNELS = {
    "QUATERNION": ("rotation_quaternion", 4),
    "AXIS_ANGLE": ("rotation_axis_angle", 4),
    **dict.fromkeys(EULER_MODES, ("rotation_euler", 3)),
}
"""Rotation mode -> property of the pose bone that holds the rotation, and how many values it has."""

# Below this a direction or an angle is float32 noise only, and is taken from the frame before instead.
_UNDETERMINED = 1e-6


def rotation_channel(pose_bone: Any) -> tuple[str, int]:
    """The property that holds the bone's rotation in its present mode, and the number of its values."""
    return CHANNELS[pose_bone.rotation_mode]


def require_finite(pose_bones: Any, slots: Slots, values: NDArray[Any], what: str) -> None:
    """Raises RigError naming the first bone of which `values` (..., bones, width) are not all finite.

    `slots`: each bone's index.
    """
    good = np.isfinite(values)
    if not good.all():
        bones = good.all(axis=-1).reshape(-1, values.shape[-2]).all(axis=0)
        name = pose_bones[int(slots[int(np.argmin(bones))])].name
        raise RigError(f"bone '{name}' has a {what} that is not a number: clear its {what}")


def read_rotations(pose_bones: Any, slots: Indices, modes: Sequence[str], seen: Values) -> Array:
    """(R, bones, 4) what rotation channels hold, as Blender understands it, as float32 has it.

    Unit quaternions relative to rest.

    Args:
        pose_bones: of the armature object, original or evaluated.
        slots: (bones,) indices of the wanted bones.
        modes: rotation mode of each of them.
        seen: what the channels hold at R frames.

    Raises:
        RigError: names the bone whose channel holds something that is not a finite number.
    """
    rotations = np.empty((len(next(iter(seen.values()))), len(slots), 4), np.float32)
    for channel in dict.fromkeys(CHANNELS[mode][0] for mode in modes):
        members = [i for i, mode in enumerate(modes) if CHANNELS[mode][0] == channel]
        values = seen[channel][:, slots[members]]
        require_finite(pose_bones, slots[members], values, "rotation")
        if channel == "rotation_quaternion":
            rotations[:, members] = _unit_quaternions(values.astype(np.float64))
            continue
        moved = np.ones(values.shape[:2], np.bool_)
        moved[1:] = (values[1:] != values[:-1]).any(axis=-1)
        for k, i in enumerate(members):
            starts = np.flatnonzero(moved[:, k])
            turns = np.array([rotation_of(modes[i], each)[:] for each in values[starts, k].tolist()])
            rotations[:, i] = turns[np.cumsum(moved[:, k]) - 1]
    return rotations.astype(np.float64)


def _unit_quaternions(values: Array) -> Array:
    """(..., 4) what quaternion channels mean to Blender, which turns a zero into half a turn about X."""
    lengths = length(values, axis=-1)[..., None]
    return np.where(lengths > 0.0, values / np.where(lengths > 0.0, lengths, 1.0), (0.0, 1.0, 0.0, 0.0))


def rotation_of(mode: str, values: Sequence[float]) -> Quaternion:
    """What finite values of a rotation channel mean to Blender: a frozen unit quaternion."""
    channel, _ = CHANNELS[mode]
    if channel == "rotation_quaternion":
        rotation = Quaternion(_unit_quaternions(np.array(values, np.float64)).tolist())
    elif channel == "rotation_euler":
        rotation = Euler(values, mode).to_quaternion()
    else:
        rotation = Quaternion(values[1:], values[0])  # a zero axis is no rotation, here as in Blender
    return rotation.freeze()


def held_angles(pose_bone: Any, limits: Sequence[Limit | None]) -> Array | None:
    """(F, 3) Euler angles that the bone's locks hold, not a number for free axes; None without such locks.

    `limits`: of the bone at each frame; a bone that is locked in part has an EulerBox that holds its angles.
    """
    locks = np.array(pose_bone.lock_rotation[:], bool)
    boxes = [limit for limit in limits if isinstance(limit, EulerBox)]
    if pose_bone.rotation_mode not in EULER_MODES or not locks.any() or len(boxes) < len(limits):
        return None
    return np.where(locks, np.array([box.lower for box in boxes], np.float64).reshape(-1, 3), math.nan)


def channel_values(
    mode: str, rotations: ArrayLike, previous: ArrayLike | None = None, held: Array | None = None
) -> Array:
    """Rotations as values of a bone's own channel, without jumps from frame to frame.

    Quaternions keep to one side of the sphere; Euler angles pass multiples of a half turn and change between
    their two solutions so that each frame is as near as it can be to the one before; the angle of an
    axis-angle may pass a half turn, its axis never flips, and where there is no rotation it keeps the axis of
    the frame before.

    Args:
        mode: rotation mode of the pose bone: "QUATERNION", "AXIS_ANGLE" or an Euler order such as "XYZ".
        rotations: (F, 4) unit quaternions (w, x, y, z), in the order of time.
        previous: value of the channel just before the first frame, (4,) or (3,) as the mode has it.
        held: (F, 3) Euler angles that are locked, kept as they are but for whole turns; the columns of free
            axes are not a number. For Euler modes.

    Returns:
        (F, 4) quaternions, (F, 4) angle and axis, or (F, 3) Euler angles; radians.

    Raises:
        InvalidInput: an unknown mode, rotations of another shape, or zero or not finite.
    """
    values = np.array(rotations, dtype=np.float64)
    if mode not in CHANNELS:
        raise InvalidInput(f"rotation mode must be one of {', '.join(CHANNELS)}, not {mode!r}")
    if values.ndim != 2 or values.shape[1] != 4:
        raise InvalidInput(f"rotations must be (frames, 4) quaternions, not an array of shape {values.shape}")
    norms = length(values, axis=-1)
    good = np.isfinite(norms) & (norms > _UNDETERMINED)
    if not good.all():
        frame = int(np.argmin(good))
        raise InvalidInput(f"rotation {frame} must be a unit quaternion, not {values[frame].tolist()}")
    values /= norms[:, None]
    before = None if previous is None else np.array(previous, dtype=np.float64)
    if before is not None and before.shape != (CHANNELS[mode][1],):
        raise InvalidInput(
            f"previous must be {CHANNELS[mode][1]} values for mode {mode}, not shape {before.shape}"
        )
    if before is not None and not np.all(np.isfinite(before)):
        before = None  # nothing can be near to it
    if len(values) == 0:
        return np.empty((0, CHANNELS[mode][1]))
    if mode == "QUATERNION":
        return _one_side(values, before)
    if mode == "AXIS_ANGLE":
        return _axis_angles(values, before)
    eulers = _eulers(mode, values, before)
    return eulers if held is None else _unwrapped(with_held(mode, values, eulers, held), before)


def _one_side(vectors: Array, before: Array | None) -> Array:
    """Rows with signs such that no row points away from the one before it."""
    first = vectors[:1] if before is None else before[None]
    opposed = np.einsum("fi,fi->f", np.concatenate((first, vectors[:-1])), vectors) < 0.0
    if not opposed.any():
        return vectors
    return np.asarray(vectors * np.cumprod(np.where(opposed, -1.0, 1.0))[:, None])


def _axis_angles(quaternions: Array, before: Array | None) -> Array:
    """(F, 4) angle and axis: q = (cos(angle / 2), sin(angle / 2) axis), so the angle counts modulo 2 pi."""
    vectors = quaternions[:, 1:]
    lengths = np.linalg.norm(vectors, axis=1)
    known = lengths > _UNDETERMINED
    start = None
    if before is not None and np.linalg.norm(before[1:]) > _UNDETERMINED:
        start = before[1:] / np.linalg.norm(before[1:])
    elif not known.any():
        start = np.array((0.0, 1.0, 0.0))  # Blender's own default axis
    axes = np.empty_like(vectors)
    axes[known] = _one_side(vectors[known] / lengths[known, None], start) if known.any() else 0.0
    # Frames without an axis take the last known one; before the first known one, the start or else that one.
    last = np.maximum.accumulate(np.where(known, np.arange(len(known)), -1))
    if start is None:
        last[last < 0] = int(np.argmax(known))
    axes = np.where((last < 0)[:, None], np.zeros(3) if start is None else start, axes[np.maximum(last, 0)])
    halves = np.arctan2(np.einsum("fi,fi->f", vectors, axes), quaternions[:, 0])
    angles = _unwrapped(2.0 * halves[:, None], None if before is None else before[:1])
    return np.concatenate((angles, axes), axis=1)


def _eulers(mode: str, quaternions: Array, before: Array | None) -> Array:
    """(F, 3) Euler angles about X, Y and Z; `mode` names the axes in the order in which they are applied.

    After Bernardes & Viollet 2022, "Quaternion to Euler angles conversion: a direct, general and
    computationally efficient method": half the sum and half the difference of the outer angles are found
    apart, and at gimbal lock (middle angle a quarter turn) exactly one of the two stays undetermined.
    """
    i, j, k = ("XYZ".index(axis) for axis in mode)
    sign = (i - j) * (j - k) * (k - i) // 2  # 1 for a cyclic order, -1 otherwise
    w, x, y, z = quaternions[:, 0], quaternions[:, 1 + i], quaternions[:, 1 + j], sign * quaternions[:, 1 + k]
    a, b, c, d = w - y, x + z, y + w, z - x
    sums, differences = np.arctan2(b, a), np.arctan2(d, c)
    middles = 2.0 * np.arctan2(np.hypot(c, d), np.hypot(a, b)) - math.pi / 2
    # A middle angle of -pi/2 leaves the difference open, one of +pi/2 the sum.
    open_sum, open_difference = np.hypot(a, b) < _UNDETERMINED, np.hypot(c, d) < _UNDETERMINED
    eulers = np.stack((sums - differences, middles, sign * (sums + differences)), axis=1)
    if before is not None:
        before = before[[i, j, k]]
    done = np.empty_like(eulers)
    start = 0
    for lock in (*np.flatnonzero(open_sum | open_difference), len(eulers)):
        if lock > start:
            done[start:lock] = _nearest_eulers(eulers[start:lock], before)
            before = done[lock - 1]
        if lock == len(eulers):
            break
        # Gimbal lock: what is undetermined stays as it was; without a frame before, the last angle is 0.
        known = differences[lock] if open_sum[lock] else sums[lock]
        outer = None if before is None else np.array((before[0], sign * before[2]))
        if open_sum[lock]:
            half_sum, half_difference = _kept(outer, (1.0, 1.0), (-1.0, 1.0), known) or (-known, known)
        else:
            half_difference, half_sum = _kept(outer, (-1.0, 1.0), (1.0, 1.0), known) or (-known, known)
        angles = np.array((half_sum - half_difference, middles[lock], sign * (half_sum + half_difference)))
        done[lock] = _unwrapped(angles[None], before)[0]
        before, start = done[lock], lock + 1
    axes = np.empty_like(done)
    axes[:, (i, j, k)] = done
    return axes


def _kept(
    outer: Array | None, open_part: tuple[float, float], known_part: tuple[float, float], known: float
) -> tuple[float, float] | None:
    """The open half sum (or difference) as before, and the known one moved by half turns next to its own."""
    if outer is None:
        return None
    last_open, last_known = float(np.dot(outer, open_part)) / 2, float(np.dot(outer, known_part)) / 2
    return last_open, known + math.pi * round((last_known - known) / math.pi)


def _nearest_eulers(angles: Array, before: Array | None) -> Array:
    """Of each row's solutions (a, b, c) and (a + pi, pi - b, c + pi) the one nearer to the row before."""
    others = angles * (1.0, -1.0, 1.0) + math.pi
    # Both solutions change alike from row to row, so whether a row takes the other one than the row before
    # does not depend on which one that was.
    stays, changes = _gap(angles[1:], angles[:-1]), _gap(others[1:], angles[:-1])
    if before is None:  # then the smaller angles, as Blender's own conversion
        first = np.abs(_unwrapped(others[:1], None)).sum() < np.abs(_unwrapped(angles[:1], None)).sum()
    else:
        first = _gap(others[0], before) < _gap(angles[0], before)
    other = np.cumsum(np.concatenate(([first], changes < stays))) % 2 == 1
    return _unwrapped(np.where(other[:, None], others, angles), before)


def _gap(a: Array, b: Array) -> Array:
    """Sum of squared differences of angles, modulo 2 pi."""
    return np.asarray(np.sum(np.square(np.remainder(a - b + math.pi, 2 * math.pi) - math.pi), axis=-1))


def _unwrapped(angles: Array, before: Array | None) -> Array:
    """Rows moved by multiples of 2 pi next to the row before; without one, the first row into -pi..pi."""
    first = np.zeros(angles.shape[1]) if before is None else before
    return np.asarray(np.unwrap(np.concatenate((first[None], angles)), axis=0)[1:])
