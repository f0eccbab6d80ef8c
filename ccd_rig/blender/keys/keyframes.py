"""The keys of one F-curve as arrays: reading, and writing among keys that are kept.

Frames are scene frames and may be fractional; values are in the units of the channel.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ...errors import RigError

MERGE_DISTANCE = 0.01  # [frames] keys this near or nearer are one key to Blender (BEZT_BINARYSEARCH_THRESH)

# All fields of a key in the types that Blender stores: converting other types is slow.
_FIELDS: dict[str, tuple[type, int]] = {
    "co": (np.float32, 2),
    "handle_left": (np.float32, 2),
    "handle_right": (np.float32, 2),
    "handle_left_type": (np.uint8, 1),
    "handle_right_type": (np.uint8, 1),
    "interpolation": (np.uint8, 1),
    "easing": (np.uint8, 1),
    "type": (np.uint8, 1),
    "back": (np.float32, 1),
    "amplitude": (np.float32, 1),
    "period": (np.float32, 1),
    "select_control_point": (np.bool_, 1),
    "select_left_handle": (np.bool_, 1),
    "select_right_handle": (np.bool_, 1),
}
_HANDLES = ("handle_left", "handle_right")
_LINEAR = 1  # of `interpolation`, after CONSTANT; all others look at handles
# Values of a key that Blender itself inserts; `keyframe_points.add` leaves zeros.
_EASING = {"back": 1.70158, "amplitude": 0.8, "period": 4.1}

Keys = dict[str, NDArray[Any]]  # field -> (K, width)


def read(fcurve: bpy.types.FCurve) -> Keys:
    """Read all fields of all keys of an F-curve."""
    return {field: _get(fcurve, field) for field in _FIELDS}


def _get(fcurve: bpy.types.FCurve, field: str) -> NDArray[Any]:
    """Read a field of all keys, (K, width)."""
    points, (dtype, width) = fcurve.keyframe_points, _FIELDS[field]
    rows: NDArray[Any] = np.zeros((len(points), width), dtype)
    points.foreach_get(field, rows.ravel())  # a view: C order
    return rows


def times(fcurve: bpy.types.FCurve) -> NDArray[np.float32]:
    """Read the frames (K,) of the keys of an F-curve, in order."""
    return _get(fcurve, "co")[:, 0].copy()


def values(fcurve: bpy.types.FCurve) -> NDArray[np.float32]:
    """Values (K,) of the keys of an F-curve, in order."""
    return _get(fcurve, "co")[:, 1].copy()


def content(fcurve: bpy.types.FCurve) -> bytes:
    """Return what the keys of an F-curve play as bytes, for comparison.

    These are frames, values, interpolation and, unless all keys are constant or linear, handles.
    """
    kinds = _get(fcurve, "interpolation")
    fields = ("co", "easing") if kinds.max(initial=0) <= _LINEAR else ("co", *_HANDLES, "easing")
    return b"".join([kinds.tobytes(), *(_get(fcurve, field).tobytes() for field in fields)])


def write(
    fcurve: bpy.types.FCurve,
    co: NDArray[np.float32],
    interpolation: str,
    start: float,
    end: float,
    old: Keys | None = None,
) -> None:
    """Replace the keys in [start, end]. The remaining keys keep every bit, handles included.

    The new keys are selected and have auto-clamped handles, like keys that Blender inserts.

    Args:
        co: (K, 2) frames, increasing by more than `MERGE_DISTANCE`, and values; at least one.
        interpolation: name, such as "LINEAR".
        start, end: first and last frame of the range.
        old: the present keys of the F-curve, if they have been read already.

    Raises:
        RigError: kept keys are too near to each other.
    """
    points = fcurve.keyframe_points
    if len(points) > 0:
        kept = _kept(times(fcurve) if old is None else old["co"][:, 0], co[:, 0], start, end)
        if kept.any():
            store(fcurve, *_joined(old or read(fcurve), kept, co, interpolation))
            return
        points.clear()
    points.add(len(co))
    points.foreach_set("co", co.ravel())
    for field, values in _defaults(len(co), interpolation).items():
        points.foreach_set(field, values)
    # Like `FCurve.update` without merging, which would copy all keys: these are far enough apart.
    points.sort()
    points.handles_recalc()


@lru_cache(maxsize=4)
def _defaults(count: int, interpolation: str) -> Keys:
    """Return fields of new keys that `keyframe_points.add` does not set; the arrays are read only."""
    number = bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items[interpolation].value
    keys: Keys = {"interpolation": np.full(count, number, np.uint8)}
    for field, value in _EASING.items():
        keys[field] = np.full(count, value, np.float32)
    for values in keys.values():
        values.flags.writeable = False
    return keys


def _kept(
    old: NDArray[np.float32], fresh: NDArray[np.float32], start: float, end: float
) -> NDArray[np.bool_]:
    """Return a mask of the old keys to keep, by their frames: outside [start, end]."""
    outside = (old < np.float32(start)) | (old > np.float32(end))
    # A key that Blender would merge with a new one at its next update is dropped here.
    after = np.searchsorted(fresh, old)
    for neighbour in (np.maximum(after - 1, 0), np.minimum(after, len(fresh) - 1)):
        outside &= np.abs(fresh[neighbour] - old) > MERGE_DISTANCE
    return outside


def _joined(
    old: Keys, kept: NDArray[np.bool_], co: NDArray[np.float32], interpolation: str
) -> tuple[Keys, NDArray[np.bool_]]:
    """Merge kept and new keys in order; return them, and a mask of the old ones."""
    fresh: Keys = {field: np.zeros((len(co), width), dtype) for field, (dtype, width) in _FIELDS.items()}
    fresh["co"][:] = co
    for field in ("handle_left_type", "handle_right_type"):
        items = bpy.types.Keyframe.bl_rna.properties[field].enum_items
        fresh[field][:] = items["AUTO_CLAMPED"].value
    for field in ("select_control_point", "select_left_handle", "select_right_handle"):
        fresh[field][:] = True
    for field, values in _defaults(len(co), interpolation).items():
        fresh[field][:, 0] = values
    is_old = np.repeat([True, False], [int(kept.sum()), len(co)])
    joined = {field: np.concatenate([old[field][kept], fresh[field]]) for field in _FIELDS}
    order = np.argsort(joined["co"][:, 0], kind="stable")
    return {field: values[order] for field, values in joined.items()}, is_old[order]


def interpolate_after(fcurve: bpy.types.FCurve, frame: float, interpolation: str) -> None:
    """Set the interpolation from the key at a frame to the next one, by name."""
    place = int(np.argmin(np.abs(times(fcurve) - np.float32(frame))))
    point: Any = fcurve.keyframe_points[place]
    point.interpolation = interpolation


def negate_after(fcurve: bpy.types.FCurve, frame: float) -> None:
    """Negate the values of all keys after a frame, and of their handles."""
    keys = read(fcurve)
    later = keys["co"][:, 0] > np.float32(frame)
    for field in ("co", *_HANDLES):
        keys[field][later, 1] *= -1.0
    store(fcurve, keys, np.ones(len(later), np.bool_))


def store(fcurve: bpy.types.FCurve, keys: Keys, exact: NDArray[np.bool_]) -> None:
    """Replace all keys of an F-curve.

    Args:
        keys: in order.
        exact: (K,) mask of keys whose handles are kept; Blender computes the handles of the rest.

    Raises:
        RigError: Blender merged keys because they are too near to each other.
    """
    points = fcurve.keyframe_points
    points.clear()
    points.add(len(exact))
    for field, values in keys.items():
        points.foreach_set(field, values.ravel())
    fcurve.update()
    if len(points) != len(exact):
        raise RigError(f"F-curve {fcurve.data_path}[{fcurve.array_index}]: keys are too near to each other")
    for field in _HANDLES:
        handles = _get(fcurve, field)
        handles[exact] = keys[field][exact]
        points.foreach_set(field, handles.ravel())
