"""Which frames are solved, and what stands between them: slerp, and forward kinematics over many frames at
once.

Everything here works on NumPy arrays in double precision, one row per frame, because a bake has thousands of
frames and an object per bone and frame would cost both time and memory. Quaternions are (w, x, y, z).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInput

Array = NDArray[np.float64]


def solve_frames(frame_start: int, frame_end: int, step: int) -> list[int]:
    """Frames to solve: every `step`-th from the first, and always the last.

    Args:
        frame_start: first frame; may be negative.
        frame_end: last frame, not before the first.
        step: frames from one solve to the next, at least 1.

    Raises:
        InvalidInput: the range is empty, the step is below 1, or a value is not a whole number.
    """
    for name, value in (("frame_start", frame_start), ("frame_end", frame_end), ("step", step)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            raise InvalidInput(f"{name} must be a whole number, not {value!r}")
    if step < 1:
        raise InvalidInput(f"step must be 1 or more, not {step}")
    if frame_end < frame_start:
        raise InvalidInput(
            f"the frame range {frame_start} to {frame_end} is empty: the end lies before the start"
        )
    frames = list(range(int(frame_start), int(frame_end) + 1, int(step)))
    if frames[-1] != frame_end:
        frames.append(int(frame_end))
    return frames


def slerp_rotations(frames: ArrayLike, rotations: ArrayLike, wanted: ArrayLike) -> Array:
    """Spherical linear interpolation of every joint between its solved frames.

    Signs are chosen so that neighbours lie in the same half of the sphere over the whole range; the first
    solved frame keeps its own. So the shorter way is taken, and a quaternion may come back with the other
    sign (the same rotation). At a solved frame the values are returned as they came, not normalised again.

    Args:
        frames: (S,) solved frames, strictly increasing.
        rotations: (S, J, 4) rotations of J joints at these frames.
        wanted: (F,) frames to return, within the solved range, in any order.

    Returns:
        (F, J, 4) rotations; unit length between solved frames.

    Raises:
        InvalidInput: shapes do not match, frames do not increase, a wanted frame lies outside the solved
            range, or a rotation is zero or not finite.
    """
    at = np.asarray(frames, dtype=np.float64)
    keys = np.array(rotations, dtype=np.float64)
    when = np.asarray(wanted, dtype=np.float64)
    _check_slerp(at, keys, when)

    keys = same_side(keys)
    if np.array_equal(at, when):
        return keys
    units = unit(keys)
    after = np.clip(np.searchsorted(at, when, side="right"), 1, max(len(at) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(at) - 1)  # a single solved frame is its own neighbour
    span = np.where(after == before, 1.0, at[after] - at[before])
    result = slerp(units[before], units[after], ((when - at[before]) / span)[:, None])

    nearest = np.where(when == at[after], after, before)
    solved = when == at[nearest]
    result[solved] = keys[nearest[solved]]
    return result


def same_side(rotations: ArrayLike) -> Array:
    """Flip signs along the first axis so that each quaternion is on the same side as the one before.

    Two quaternions at a right angle are rotations half a turn apart: both ways round are equally short, and
    the sign is left as it is.

    Args:
        rotations: (S, ..., 4).
    """
    values = np.array(rotations, dtype=np.float64)
    if len(values) > 1:
        opposed = _dot(values[1:], values[:-1]) < 0.0
        if opposed.any():
            values[1:] *= np.cumprod(np.where(opposed, -1.0, 1.0), axis=0)[..., None]
    return values


def slerp(a: ArrayLike, b: ArrayLike, fraction: ArrayLike) -> Array:
    """Part of the way from `a` to `b` at constant angular speed, the shorter way round.

    Args:
        a: (..., 4) unit quaternions.
        b: (..., 4) unit quaternions; the sign nearer to `a` is taken.
        fraction: (...), 0 gives a, 1 gives b.

    Returns:
        (..., 4) unit quaternions on the side of `a`.
    """
    first = np.asarray(a, dtype=np.float64)
    second = np.asarray(b, dtype=np.float64)
    second = np.where(_dot(first, second)[..., None] < 0.0, -second, second)
    t = np.asarray(fraction, dtype=np.float64)[..., None]
    # Angle on the 4-sphere from the half-chords: exact for small angles, where arccos of the dot product
    # loses half of the digits. It is at most pi / 2 after the choice of signs, so its sinc below is never
    # under 2 / pi: the usual division by sin(angle) and its special case for nearly equal rotations do not
    # arise.
    apart = lengths(second - first)[..., None]
    along = lengths(second + first)[..., None]
    angle = 2.0 * np.arctan2(apart, along)
    whole = _sinc(angle)
    result = first * ((1.0 - t) * _sinc((1.0 - t) * angle) / whole) + second * (t * _sinc(t * angle) / whole)
    return unit(result)


def unit(rotations: Array) -> Array:
    """(..., 4) quaternions divided by their lengths."""
    result: Array = rotations / lengths(rotations)[..., None]
    return result


def angles_between(a: ArrayLike, b: ArrayLike) -> Array:
    """Radians of the turn from one rotation to another, the shorter way round: 0 to pi.

    Args:
        a: (..., 4) unit quaternions.
        b: (..., 4) unit quaternions.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    # Four arctangents of chord and sum: exact for tiny turns; the nearer side of the double cover.
    apart = np.minimum(lengths(second - first), lengths(second + first))
    angles: Array = 4.0 * np.arctan2(apart, np.sqrt(np.maximum(0.0, 4.0 - apart * apart)))
    return angles


def kinematics(
    parents: Sequence[int],
    inherits: Sequence[bool],
    offsets: Array,
    rests: Array,
    rotations: Array,
    translations: Array,
) -> tuple[Array, Array]:
    """Forward kinematics of F frames at once; the same equations as `kinematics.forward_kinematics`.

    Args:
        parents: index of each joint's parent, which stands before it, or -1.
        inherits: whether each joint takes over its parent's rotation.
        offsets: (F, J, 3) heads in the parent's joint frame (a root's: in model space). Of these, of rests
            and of translations one frame (1, J, ...) is enough where nothing changes.
        rests: (F, J, 4) unit rest rotations, relative to the parent (a root's, or without inheritance: to
            the model).
        rotations: (F, J, 4) unit rotations relative to rest.
        translations: (F, J, 3) translations relative to rest, in the joint's rest axes.

    Returns:
        (F, J, 3) heads and (F, J, 4) rotations, in model space.
    """
    # From here on (components, J, F): what is reckoned together lies together.
    given = (rests, rotations, offsets, translations)
    rest, rotation, offset, translation = (values.transpose(2, 1, 0).copy() for values in given)
    # t_i = t_p + R_p (offset_i + rest_i translation_i), R_i = R_p rest_i rotation_i
    turned = np.stack(_multiplied(rest, rotation))
    shifts = offset + _rotated(rest, translation)
    below = [i for i, parent in enumerate(parents) if parent >= 0]
    above = [parents[i] for i in below]
    for i, parent in zip(below, above, strict=True):
        if inherits[i]:
            turned[:, i] = _multiplied(turned[:, parent], turned[:, i])
    heads = np.empty((3, *turned.shape[1:]))
    heads[:] = shifts
    heads[:, below] = _rotated(turned[:, above], shifts[:, below])
    for i, parent in zip(below, above, strict=True):
        heads[:, i] += heads[:, parent]
    return heads.transpose(2, 1, 0), turned.transpose(2, 1, 0)


def multiply(a: Array, b: Array) -> Array:
    """Hamilton product of (..., 4) quaternions: b first, then a."""
    return np.stack(_multiplied(np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)), axis=-1)


def _multiplied(a: Array, b: Array) -> tuple[Array, Array, Array, Array]:
    """`multiply`, of components and into them."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def rotate(rotation: Array, vector: Array) -> Array:
    """Turn (..., 3) vectors by (..., 4) unit quaternions: v + 2w (u x v) + 2 u x (u x v)."""
    return np.stack(_rotated(np.moveaxis(rotation, -1, 0), np.moveaxis(vector, -1, 0)), axis=-1)


def _rotated(rotation: Array, vector: Array) -> tuple[Array, Array, Array]:
    """`rotate`, of components and into them."""
    w, x, y, z = rotation
    a, b, c = vector
    p, q, r = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
    return a + w * p + y * r - z * q, b + w * q + z * p - x * r, c + w * r + x * q - y * p


def _dot(a: Array, b: Array) -> Array:
    """Sums of products along the last axis, which is short: NumPy's own sum takes far longer there."""
    return reduce(np.add, np.moveaxis(a * b, -1, 0))


def lengths(vectors: Array) -> Array:
    """(...) lengths of (..., N) vectors or quaternions."""
    found: Array = np.sqrt(_dot(vectors, vectors))
    return found


def _sinc(angle: Array) -> Array:
    """sin(angle) / angle, and 1 at 0; NumPy's own takes its angle in half turns."""
    return np.asarray(np.sinc(angle / np.pi), dtype=np.float64)


def _check_slerp(at: Array, keys: Array, when: Array) -> None:
    if at.ndim != 1 or not len(at):
        raise InvalidInput("frames must be a list of at least one solved frame")
    if keys.ndim != 3 or keys.shape[0] != len(at) or keys.shape[2] != 4:
        raise InvalidInput(f"rotations must have the shape ({len(at)}, joints, 4), not {keys.shape}")
    if when.ndim != 1:
        raise InvalidInput("wanted must be a list of frames")
    if not np.all(np.diff(at) > 0.0):
        raise InvalidInput("frames must increase strictly")
    outside = when[~((when >= at[0]) & (when <= at[-1]))]
    if len(outside):
        raise InvalidInput(f"frame {outside[0]:g} lies outside the solved range {at[0]:g} to {at[-1]:g}")
    sizes = lengths(keys)
    good = np.isfinite(sizes) & (sizes > 0.0)
    if not good.all():
        frame, joint = np.argwhere(~good)[0]
        raise InvalidInput(f"the rotation of joint {joint} at frame {at[frame]:g} is zero or not a number")
