# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotation channels of bones in all rotation modes, read in bulk and converted from and to quaternions.

A rotation has two sets of Euler angles, and infinitely many at gimbal lock (middle angle a quarter turn):
near it the outer angles are ill-conditioned. Locked angles keep their values, and the free ones are solved
for.

Arrays have one row per frame; angles are radians, rotations unit quaternions (w, x, y, z) relative to rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import bpy
import numpy as np
from mathutils import Euler, Quaternion
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidInput, RigError
from ...limits.shapes import EulerBox, Limit
from ...maths import batch
from ...maths.batch import Array, Indices, length
from ...maths.rotations import FULL_TURN

Values = Mapping[str, NDArray[Any]]
"""Name of a property -> (R, bones, width) values of bones at R frames."""


Slots = Sequence[int] | NDArray[np.intp]  # indices in pose.bones

SWITCHES = (
    "lock_rotation",
    "lock_rotation_w",
    "lock_rotations_4d",
    "lock_location",
    "use_connect",
    "use_inherit_rotation",
    "use_local_location",
)
TYPES: Mapping[str, Any] = {
    "rotation_mode": np.int32,
    "inherit_scale": np.uint8,
    **dict.fromkeys(SWITCHES, np.bool_),
}
"""Types in which Blender has the properties that are not float32: it copies them, others it converts one by
one."""


def foreach(pose_bones: Any, name: str, width: int) -> NDArray[Any]:
    """Read (bones, width) values of one property of all pose bones, in the order of `pose_bones`."""
    values = np.empty(len(pose_bones) * width, TYPES.get(name, np.float32))
    pose_bones.foreach_get(name, values)
    return values.reshape(-1, width)


@dataclass(frozen=True)
class Watched:
    """Set of properties that are read repeatedly from the same pose bones."""

    count: int  # of all pose bones
    widths: Mapping[str, int]  # number of values of each property for a bone, by name
    slots: Mapping[str, Slots]  # indices of the bones whose values count, of each property

    @cached_property
    def _places(self) -> tuple[NDArray[np.float32], list[tuple[str, NDArray[Any]]], Indices]:
        """A buffer for all bones, its view for each property, and the places of the values that count."""
        ends = np.cumsum([self.count * width for width in self.widths.values()])
        buffer = np.empty(ends[-1], np.float32)
        pieces = np.split(buffer, ends[:-1])
        views = [
            (name, piece.view(TYPES.get(name, np.float32)))
            for name, piece in zip(self.widths, pieces, strict=True)
        ]
        places = [
            end
            - self.count * width
            + np.add.outer(width * np.asarray(self.slots[name], np.intp), range(width))
            for (name, width), end in zip(self.widths.items(), ends.tolist(), strict=True)
        ]
        return buffer, views, np.concatenate([each.ravel() for each in places])

    def look(self, pose_bones: Any) -> NDArray[np.float32]:
        """Read the values that count, (N,), property by property; (0,) if bones were added or removed."""
        if len(pose_bones) != self.count:
            return np.empty(0, np.float32)
        buffer, views, places = self._places
        for name, view in views:
            pose_bones.foreach_get(name, view)
        return buffer[places]

    def values(self, seen: NDArray[np.float32]) -> Values:
        """Split (R, N) results of `look` into the values of each property, (R, bones, width)."""
        sizes = [len(self.slots[name]) * width for name, width in self.widths.items()]
        pieces = np.split(seen, np.cumsum(sizes)[:-1], axis=1)
        return {
            name: piece.view(TYPES.get(name, np.float32)).reshape(len(seen), -1, self.widths[name])
            for name, piece in zip(self.widths, pieces, strict=True)
        }


NEAR = 1e-6
"""Radians by which the second set must be nearer to a locked middle angle to be chosen, above noise."""


def with_locked(mode: str, rotations: Array, angles: Array, locked: Array) -> Array:
    """Return (F, 3) Euler angles about X, Y and Z of rotations, with locked angles fixed.

    If no angles with the locked ones give a rotation exactly, the nearest rotation is taken.

    Args:
        mode: axes in the order in which they are applied, such as "XYZ".
        rotations: (F, 4).
        angles: (F, 3) Euler angles of the rotations, without regard to locks.
        locked: (F, 3) angles; NaN in the columns of free axes.

    Returns:
        (F, 3), free angles modulo a full turn.
    """
    first, middle, last = ("XYZ".index(axis) for axis in mode)
    is_locked = ~np.isnan(locked).any(axis=0)
    result = np.where(is_locked, locked, angles)
    if is_locked[middle] and not (is_locked[first] or is_locked[last]):
        gap, flipped_gap = _distance(angles, locked, middle), _distance(math.pi - angles, locked, middle)
        flipped = flipped_gap + NEAR < gap
        result[np.ix_(flipped, (first, last))] += math.pi
        return result
    # Remove the locked rotations from both ends: rotation = last * middle * first.
    rest = rotations
    if is_locked[first]:
        rest = batch.multiply(rest, batch.axis_rotation(np.eye(3)[first], -locked[:, first]), axis=-1)
    if is_locked[last]:
        rest = batch.multiply(batch.axis_rotation(np.eye(3)[last], -locked[:, last]), rest, axis=-1)
    if is_locked[middle] and is_locked[first]:
        rest = batch.multiply(rest, batch.axis_rotation(np.eye(3)[middle], -locked[:, middle]), axis=-1)
    elif is_locked[middle]:
        rest = batch.multiply(batch.axis_rotation(np.eye(3)[middle], -locked[:, middle]), rest, axis=-1)
    free = [axis for axis in (last, middle, first) if not is_locked[axis]]
    if len(free) == 1:
        result[:, free[0]] = 2.0 * batch.arctan2(rest[:, 1 + free[0]], rest[:, 0])
    elif len(free) == 2:
        result[:, free[0]], result[:, free[1]] = _two_angles(rest, *free)
    return result


def _two_angles(rotations: Array, outer: int, inner: int) -> tuple[Array, Array]:
    """Return (F,) angles about two axes, the inner one applied first, nearest to rotations.

    With half angles a (outer) and b (inner), the components of the product are: w, cos a cos b; inner axis,
    cos a sin b; outer axis, sin a cos b; their cross product, sin a sin b. They form a matrix of rank one.
    """
    third = 3 - outer - inner
    sign = (outer - inner) * (inner - third) * (third - outer) // 2  # 1 where outer x inner = third
    w, along_inner, along_outer = (rotations[:, k] for k in (0, 1 + inner, 1 + outer))
    across = sign * rotations[:, 1 + third]
    squares = w**2 - across**2, along_inner**2 - along_outer**2
    return (
        batch.arctan2(2.0 * (w * along_outer + along_inner * across), squares[0] + squares[1]),
        batch.arctan2(2.0 * (w * along_inner + along_outer * across), squares[0] - squares[1]),
    )


def _distance(angles: Array, locked: Array, axis: int) -> Array:
    """Return (F,) distances of one angle from the locked one, modulo a full turn."""
    return np.abs(np.remainder(angles[:, axis] - locked[:, axis] + math.pi, 2.0 * math.pi) - math.pi)


EULER_MODES = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")
CHANNELS = {
    "QUATERNION": ("rotation_quaternion", 4),
    "AXIS_ANGLE": ("rotation_axis_angle", 4),
    **dict.fromkeys(EULER_MODES, ("rotation_euler", 3)),
}
"""Rotation mode -> property of the pose bone with the rotation, and number of its values."""

WIDTHS = {"location": 3, **dict(CHANNELS.values())}
"""Channel that moves or turns a bone -> number of its values."""

# A direction or an angle below this is float32 noise, and is taken from the previous frame instead.
_UNDETERMINED = 1e-6


def rotation_channel(pose_bone: Any) -> tuple[str, int]:
    """Return the property with the bone's rotation in its present mode, and the number of its values."""
    return CHANNELS[pose_bone.rotation_mode]


def number_of_mode(mode: str) -> int:
    """Return the number of a rotation mode in Blender's list, which F-curves and files hold."""
    return int(bpy.types.PoseBone.bl_rna.properties["rotation_mode"].enum_items[mode].value)


def mode_of_number(number: float) -> str:
    """Return the rotation mode with a number in Blender's list, empty if there is none."""
    modes = bpy.types.PoseBone.bl_rna.properties["rotation_mode"].enum_items
    return next((each.identifier for each in modes if each.value == number), "")


def require_finite(pose_bones: Any, slots: Slots, values: NDArray[Any], what: str) -> None:
    """Raise RigError naming the first bone whose `values` (..., bones, width) are not all finite.

    `slots`: indices of the bones in `pose_bones`. `what`: name of the channel.
    """
    finite = np.isfinite(values)
    if not finite.all():
        bones = finite.all(axis=-1).reshape(-1, values.shape[-2]).all(axis=0)
        name = pose_bones[int(slots[int(np.argmin(bones))])].name
        raise RigError(f"bone '{name}' has a {what} that is not a number: clear its {what}")


def read_rotations(pose_bones: Any, slots: Indices, modes: Sequence[str], seen: Values) -> Array:
    """Convert rotation channels to (R, bones, 4) unit quaternions, as Blender does, rounded to float32.

    Args:
        slots: (bones,) indices of the bones.
        modes: (bones,) rotation modes.
        seen: values of the channels of these bones at R frames.

    Raises:
        RigError: names the bone whose channel is not a finite number.
    """
    rotations = np.empty((len(next(iter(seen.values()))), len(slots), 4), np.float32)
    for channel in dict.fromkeys(CHANNELS[mode][0] for mode in modes):
        members = [i for i, mode in enumerate(modes) if CHANNELS[mode][0] == channel]
        values = seen[channel][:, members]
        require_finite(pose_bones, slots[members], values, "rotation")
        if channel == "rotation_quaternion":
            whole = values.astype(np.float64)
            sizes = length(whole, axis=-1)[..., None]  # zero becomes half a turn about X
            units = whole / np.where(sizes > 0.0, sizes, 1.0)
            rotations[:, members] = np.where(sizes > 0.0, units, (0.0, 1.0, 0.0, 0.0))
            continue
        moved = np.ones(values.shape[:2], np.bool_)
        moved[1:] = (values[1:] != values[:-1]).any(axis=-1)
        for k, i in enumerate(members):
            starts = np.flatnonzero(moved[:, k])
            runs = np.array([rotation_of(modes[i], row)[:] for row in values[starts, k].tolist()])
            rotations[:, i] = runs[np.cumsum(moved[:, k]) - 1]
    return rotations.astype(np.float64)


def rotation_of(mode: str, values: Sequence[float]) -> Quaternion:
    """Convert finite values of a rotation channel to a frozen unit quaternion, as Blender does."""
    channel, _ = CHANNELS[mode]
    if channel == "rotation_quaternion":
        w, x, y, z = values
        size = math.sqrt(w * w + x * x + y * y + z * z)
        rotation = Quaternion([each / size for each in values] if size > 0.0 else (0.0, 1.0, 0.0, 0.0))
    elif channel == "rotation_euler":
        rotation = Euler(values, mode).to_quaternion()
    else:
        rotation = Quaternion(values[1:], values[0])  # a zero axis is no rotation, here as in Blender
    return rotation.freeze()


def locked_angles(pose_bone: Any, limits: Iterable[Limit | None]) -> Array | None:
    """Return (F, 3) locked Euler angles of a bone, NaN for free axes; None without locks or Euler mode.

    `limits`: of the bone at each frame. A partly locked bone has an EulerBox with its angles.
    """
    locks = np.array(pose_bone.lock_rotation[:], bool)
    if pose_bone.rotation_mode not in EULER_MODES or not locks.any():
        return None
    limits = [*limits]
    boxes = [limit for limit in limits if isinstance(limit, EulerBox)]
    if len(boxes) < len(limits):
        return None
    return np.where(locks, np.array([box.lower for box in boxes], np.float64).reshape(-1, 3), math.nan)


def within_locks(owner: Any, channel: str, values: Sequence[float]) -> list[float]:
    """Return new values of a channel with the present ones of locked components, as Blender's transforms do.

    Without locks by component, those of a quaternion or an axis and angle hold the angles of XYZ.

    Args:
        owner: pose bone or object.
        channel: its location, or the rotation channel of its mode.
    """
    before = getattr(owner, channel)
    if channel == "location":
        locks = owner.lock_location
    elif channel == "rotation_euler":
        locks = owner.lock_rotation
    elif owner.lock_rotations_4d:
        locks = (owner.lock_rotation_w, *owner.lock_rotation)
    elif any(owner.lock_rotation):
        mode = owner.rotation_mode
        old, new = (rotation_of(mode, each).to_euler("XYZ") for each in (before, values))
        kept = [a if lock else b for a, b, lock in zip(old, new, owner.lock_rotation, strict=True)]
        rotation = Euler(kept, "XYZ").to_quaternion()
        kept_values: list[float] = channel_values(mode, [rotation[:]], before)[0].tolist()
        return kept_values
    else:
        return list(values)
    return [a if lock else b for a, b, lock in zip(before, values, locks, strict=True)]


def channel_values(
    mode: str, rotations: ArrayLike, previous: ArrayLike | None = None, locked: Array | None = None
) -> Array:
    """Convert rotations to values of a rotation channel, without jumps from frame to frame.

    Quaternions stay in one hemisphere. Euler angles are unwrapped, and of their two solutions the one nearer
    to the previous frame is taken. The angle of an axis-angle may pass a half turn, and its axis never flips.
    The identity keeps the axis of the previous frame.

    Args:
        mode: rotation mode of the pose bone: "QUATERNION", "AXIS_ANGLE" or an Euler order such as "XYZ".
        rotations: (F, 4) unit quaternions (w, x, y, z), in the order of time.
        previous: value of the channel before the first frame, (4,) or (3,) by mode.
        locked: (F, 3) locked Euler angles, kept modulo full turns; NaN in the columns of free axes. For Euler
            modes.

    Returns:
        (F, 4) quaternions, (F, 4) angle and axis, or (F, 3) Euler angles; radians.

    Raises:
        InvalidInput: an unknown mode; rotations of another shape, or that are zero or not finite.
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
        before = None  # no value is near it
    if len(values) == 0:
        return np.empty((0, CHANNELS[mode][1]))
    if mode == "QUATERNION":
        return _one_side(values, before)
    if mode == "AXIS_ANGLE":
        return _axis_angles(values, before)
    eulers = _eulers(mode, values, before)
    return eulers if locked is None else _unwrapped(with_locked(mode, values, eulers, locked), before)


def set_rotation(owner: Any, rotation: Quaternion, locked: Array | None = None) -> None:
    """Write a rotation to the channel of a bone's or an object's mode, as near as can be to what it holds.

    `locked`: (1, 3) as in `channel_values`.
    """
    channel, _ = rotation_channel(owner)
    values = channel_values(owner.rotation_mode, [rotation[:]], tuple(getattr(owner, channel)), locked)
    setattr(owner, channel, values[0].tolist())


def values_between(
    mode: str,
    rotations: ArrayLike,
    previous: Array | None,
    later: Array | None,
    locked: Array | None = None,
) -> tuple[Array, Twin | None]:
    """Convert rotations as `channel_values` does, between values that stay on either side.

    The values continue from those before the first frame, or else lead to those after the last one.

    Args:
        mode, rotations, locked: as in `channel_values`.
        previous, later: values of the channel before the first frame and after the last one, if any.

    Returns:
        The values, and what brings `later` and all that follows nearest to the last of them; None: they are.
    """
    turned = np.asarray(rotations, np.float64)
    if previous is None and later is not None:
        backwards = None if locked is None else locked[::-1]
        values = channel_values(mode, turned[::-1], later, backwards)[::-1]
    else:
        values = channel_values(mode, turned, previous, locked)
    return values, None if later is None else nearest_twin(mode, later, values[-1])


class Twin(NamedTuple):
    """Factors and offsets of the values of a rotation channel that leave its rotations as they are."""

    factors: tuple[float, ...]  # (C,) 1 or -1
    offsets: tuple[float, ...]  # (C,) radians


def nearest_twin(mode: str, values: Array, goal: Array) -> Twin | None:
    """Return what brings values of a rotation channel nearest to others; None if they are nearest.

    Negated quaternions, and negated angles and axes, are the same rotations. Angles may have whole turns
    more. Euler angles (a, b, c) in the order of the mode are (a + pi, pi - b, c + pi) as well. Each of these
    holds for all values of F-curves, between keys too.

    Args:
        mode: rotation mode, as in `channel_values`.
        values: (C,) values of the channel.
        goal: (C,) others of the same mode.
    """
    width, is_euler = len(values), mode not in ("QUATERNION", "AXIS_ANGLE")
    factors, offsets = np.ones((2, width)), np.zeros((2, width))
    if is_euler:
        factors[1, "XYZ".index(mode[1])], offsets[1] = -1.0, np.pi
    else:
        factors[1] = -1.0
    angles = slice(0, {"QUATERNION": 0, "AXIS_ANGLE": 1}.get(mode, width))
    offsets[:, angles] += FULL_TURN * np.round((goal - factors * values - offsets)[:, angles] / FULL_TURN)
    near = int(np.argmin(length(factors * values + offsets - goal, axis=-1)))
    if near == 0 and not offsets[0].any():
        return None
    return Twin(tuple(factors[near].tolist()), tuple(offsets[near].tolist()))


def _one_side(vectors: Array, before: Array | None) -> Array:
    """Choose signs of rows such that the dot product with the previous row is never negative."""
    first = vectors[:1] if before is None else before[None]
    opposed = np.einsum("fi,fi->f", np.concatenate((first, vectors[:-1])), vectors) < 0.0
    if not opposed.any():
        return vectors
    return np.asarray(vectors * np.cumprod(np.where(opposed, -1.0, 1.0))[:, None])


def _axis_angles(quaternions: Array, before: Array | None) -> Array:
    """Return (F, 4) angle and axis: q = (cos(angle / 2), sin(angle / 2) axis), the angle modulo 2 pi."""
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
    # Frames without an axis take the last known one; before it the start, or else the first known one.
    last = np.maximum.accumulate(np.where(known, np.arange(len(known)), -1))
    if start is None:
        last[last < 0] = int(np.argmax(known))
    axes = np.where((last < 0)[:, None], np.zeros(3) if start is None else start, axes[np.maximum(last, 0)])
    halves = batch.arctan2(np.einsum("fi,fi->f", vectors, axes), quaternions[:, 0])
    angles = _unwrapped(2.0 * halves[:, None], None if before is None else before[:1])
    return np.concatenate((angles, axes), axis=1)


def _eulers(mode: str, quaternions: Array, before: Array | None) -> Array:
    """Return (F, 3) Euler angles about X, Y and Z; `mode` names the axes in the order of application.

    After Bernardes & Viollet 2022, "Quaternion to Euler angles conversion: a direct, general and
    computationally efficient method". Half sum and half difference of the outer angles are computed
    separately; at gimbal lock (middle angle a quarter turn) one of the two is undetermined.
    """
    i, j, k = ("XYZ".index(axis) for axis in mode)
    sign = (i - j) * (j - k) * (k - i) // 2  # 1 for a cyclic order, -1 otherwise
    w, x, y, z = quaternions[:, 0], quaternions[:, 1 + i], quaternions[:, 1 + j], sign * quaternions[:, 1 + k]
    a, b, c, d = w - y, x + z, y + w, z - x
    sums, differences = batch.arctan2(b, a), batch.arctan2(d, c)
    middles = 2.0 * batch.arctan2(np.hypot(c, d), np.hypot(a, b)) - math.pi / 2
    # The difference is undetermined at a middle angle of -pi/2, the sum at +pi/2.
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
        # Gimbal lock: the undetermined one keeps its previous value; without one, the last angle is 0.
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
    outer: Array | None, open_signs: tuple[float, float], known_signs: tuple[float, float], known: float
) -> tuple[float, float] | None:
    """Return the previous half sum (or difference) that is open now, and the known one, unwrapped.

    The known one is moved by multiples of half a turn next to its previous value. None without a previous
    frame.
    """
    if outer is None:
        return None
    last_open, last_known = float(np.dot(outer, open_signs)) / 2, float(np.dot(outer, known_signs)) / 2
    return last_open, known + math.pi * round((last_known - known) / math.pi)


def _nearest_eulers(angles: Array, before: Array | None) -> Array:
    """Choose between the solutions (a, b, c) and (a + pi, pi - b, c + pi): the nearer to the previous row."""
    others = angles * (1.0, -1.0, 1.0) + math.pi
    # Both solutions change alike from row to row. Whether a row changes the solution is therefore independent
    # of the solution of the previous row.
    stays, changes = _gap(angles[1:], angles[:-1]), _gap(others[1:], angles[:-1])
    if before is None:  # the smaller angles, as in Blender's conversion
        first = np.abs(_unwrapped(others[:1], None)).sum() < np.abs(_unwrapped(angles[:1], None)).sum()
    else:
        first = _gap(others[0], before) < _gap(angles[0], before)
    other = np.cumsum(np.concatenate(([first], changes < stays))) % 2 == 1
    return _unwrapped(np.where(other[:, None], others, angles), before)


def _gap(a: Array, b: Array) -> Array:
    """Return the sum of squared differences of angles, modulo 2 pi."""
    return np.asarray(np.sum(np.square(np.remainder(a - b + math.pi, 2 * math.pi) - math.pi), axis=-1))


def _unwrapped(angles: Array, before: Array | None) -> Array:
    """Move rows by multiples of 2 pi next to the previous row; without one, the first row into -pi..pi."""
    first = np.zeros(angles.shape[1]) if before is None else before
    return np.asarray(np.unwrap(np.concatenate((first[None], angles)), axis=0)[1:])
