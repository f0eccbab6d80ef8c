"""The keys of one F-curve as arrays: all fields of every key, read, merged with new ones, and stored.

Frames are scene frames and may be fractional; values are in the channel's own units.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..errors import RigError

MERGE_DISTANCE = 0.01  # [frames] keys nearer than this are one key to Blender (BEZT_BINARYSEARCH_THRESH)

# All that a key holds, in the types Blender stores: others are converted one by one, which is slow.
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
# What Blender itself gives to a key it inserts; `keyframe_points.add` leaves zeros.
_EASING = {"back": 1.70158, "amplitude": 0.8, "period": 4.1}

Keys = dict[str, NDArray[Any]]  # field -> (K, width)


def read(fcurve: bpy.types.FCurve) -> Keys:
    """All keys of an F-curve, every field."""
    points = fcurve.keyframe_points
    keys: Keys = {}
    for field, (dtype, width) in _FIELDS.items():
        flat: NDArray[Any] = np.zeros(len(points) * width, dtype)
        points.foreach_get(field, flat)
        keys[field] = flat.reshape(len(points), width)
    return keys


def times(fcurve: bpy.types.FCurve) -> NDArray[np.float32]:
    """Frames (K,) of the keys of an F-curve, in order."""
    flat = np.zeros(len(fcurve.keyframe_points) * 2, np.float32)
    fcurve.keyframe_points.foreach_get("co", flat)
    return flat[::2].copy()


def new(frames: NDArray[np.float32], values: NDArray[np.float32], interpolation: str) -> Keys:
    """Keys as Blender inserts them, not selected, with auto-clamped handles, which `store` makes."""
    co = np.stack([frames, values], axis=1).astype(np.float32)
    return {**_alike(len(frames), interpolation), "co": co, "handle_left": co, "handle_right": co}


@lru_cache(maxsize=4)
def _alike(count: int, interpolation: str) -> Keys:
    """What new keys have in common, for all F-curves of a bake; not to be written to."""
    keys: Keys = {field: np.zeros((count, width), dtype) for field, (dtype, width) in _FIELDS.items()}
    for field, item in (
        ("interpolation", interpolation),
        ("handle_left_type", "AUTO_CLAMPED"),
        ("handle_right_type", "AUTO_CLAMPED"),
        ("easing", "AUTO"),
        ("type", "KEYFRAME"),
    ):
        keys[field][:] = bpy.types.Keyframe.bl_rna.properties[field].enum_items[item].value
    for field, value in _EASING.items():
        keys[field][:] = value
    for values in keys.values():
        values.flags.writeable = False
    return keys


def merged(old: Keys, fresh: Keys, start: float, end: float) -> tuple[Keys, NDArray[np.bool_]]:
    """The old keys outside [start, end] together with the fresh ones, in order.

    Args:
        fresh: at least one key, frames increasing.

    Returns:
        The keys, and for each whether it is an old one.
    """
    frames, wanted = old["co"][:, 0], fresh["co"][:, 0]
    if not len(frames):
        return fresh, np.zeros(len(wanted), np.bool_)
    outside = (frames < np.float32(start)) | (frames > np.float32(end))
    # A key that Blender would merge with a fresh one on its next update gives way here, on purpose.
    after = np.searchsorted(wanted, frames)
    for neighbour in (np.maximum(after - 1, 0), np.minimum(after, len(wanted) - 1)):
        outside &= np.abs(wanted[neighbour] - frames) >= MERGE_DISTANCE
    if not outside.any():
        return fresh, np.zeros(len(wanted), np.bool_)
    is_old = np.repeat([True, False], [int(outside.sum()), len(wanted)])
    joined = {field: np.concatenate([old[field][outside], fresh[field]]) for field in _FIELDS}
    order = np.argsort(joined["co"][:, 0], kind="stable")
    return {field: values[order] for field, values in joined.items()}, is_old[order]


def store(fcurve: bpy.types.FCurve, keys: Keys, exact: NDArray[np.bool_]) -> None:
    """Replace all keys of an F-curve by keys in order.

    Args:
        exact: (K,) where it is set, the handles stay as given; elsewhere Blender makes them.

    Raises:
        RigError: Blender merged keys because they are too near to each other.
    """
    points = fcurve.keyframe_points
    points.clear()
    points.add(len(exact))
    any_exact = bool(exact.any())
    for field, values in keys.items():
        if any_exact or field not in _HANDLES:
            points.foreach_set(field, values.ravel())
    fcurve.update()
    if len(points) != len(exact):
        raise RigError(f"F-curve {fcurve.data_path}[{fcurve.array_index}]: keys are too near to each other")
    for field in _HANDLES if any_exact else ():
        made = np.zeros((len(exact), 2), np.float32)
        points.foreach_get(field, made.ravel())  # a view: C order
        made[exact] = keys[field][exact]
        points.foreach_set(field, made.ravel())
