"""The keys of one F-curve as arrays: reading, and writing among keys that are kept.

Frames are scene frames and may be fractional; values are in the units of the channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

MERGE_DISTANCE = 0.01  # [frames] keys this near or nearer are one key to Blender (BEZT_BINARYSEARCH_THRESH)
FIT = 1e-6  # largest error of Bezier curves in place of other curves, as a fraction of the range of values

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
_CONSTANT, _LINEAR, _BEZIER = 0, 1, 2  # of `interpolation` (eBezTriple_Interpolation); later ones are easings
_FREE, _AUTO, _VECTOR, _ALIGNED, _CLAMPED = range(5)  # types of handles (eBezTriple_Handle)
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
    frame: float | None = None,
    still: tuple[float | None, float | None] = (None, None),
) -> None:
    """Replace the keys in [start, end]. What played at whole frames outside it before plays there still.

    The new keys are selected and have auto-clamped handles, like keys that Blender inserts. The remaining
    keys keep every bit. Where the nearest of them is farther than a frame from the range, the old curve is
    split at the frame beside the range; the nearest key then gets the handle of the split curve.

    Args:
        co: (K, 2) frames, increasing by more than `MERGE_DISTANCE`, and values; at least one.
        interpolation: name, such as "LINEAR"; with "CONSTANT" the values beside the range are held too.
        start, end: first and last frame of the range.
        old: the present keys of the F-curve, if they have been read already.
        frame: length of a scene frame; None: the curve is not split, and leads from key to key.
        still: what an F-curve without keys shows before and after the range; None where it has no keys on
            that side and the outermost new key is to hold.
    """
    points = fcurve.keyframe_points
    at = times(fcurve) if old is None else old["co"][:, 0]
    kept = _kept(at, co[:, 0], start, end)
    if old is None and kept.any():
        old = read(fcurve)
    sides, beside = {}, kept.copy()
    for way, edge, value in () if frame is None else ((-1, start, still[0]), (1, end, still[1])):
        side = _continued(fcurve, old, at, kept, co, interpolation, way, edge, frame, value)
        if side is not None:
            sides[way] = side
            beside &= way * at < way * edge
    if beside.any():
        store(fcurve, *_joined(old or {}, beside, co, interpolation))
    else:
        points.clear()
        points.add(len(co))
        points.foreach_set("co", co.ravel())
        for field, values in _defaults(len(co), interpolation).items():
            points.foreach_set(field, values)
        # Like `FCurve.update` without merging, which would copy all keys: these are far enough apart.
        points.sort()
        points.handles_recalc()
    if sides:
        # New keys have the handles that they have without the frames beside them, to which the motion leaps.
        inner = read(fcurve)
        for way in sides if interpolation == "BEZIER" else ():
            for field in ("handle_left_type", "handle_right_type"):
                inner[field][0 if way < 0 else -1] = _FREE
        sides[0] = inner, np.ones(len(inner["co"]), np.bool_)
        store(fcurve, *_in_a_row([sides[way] for way in sorted(sides)]))


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
    if not outside.any():
        return outside
    # A key that Blender would merge with a new one at its next update is dropped here.
    after = np.searchsorted(fresh, old)
    for neighbour in (np.maximum(after - 1, 0), np.minimum(after, len(fresh) - 1)):
        outside &= np.abs(fresh[neighbour] - old) > MERGE_DISTANCE
    return outside


def _joined(
    old: Keys, kept: NDArray[np.bool_], co: NDArray[np.float32], interpolation: str
) -> tuple[Keys, NDArray[np.bool_]]:
    """Merge kept and new keys in order; return them, and a mask of the old ones."""
    fresh = _fresh(co, interpolation)
    is_old = np.repeat([True, False], [int(kept.sum()), len(co)])
    joined = {field: np.concatenate([old[field][kept], fresh[field]]) for field in _FIELDS}
    order = np.argsort(joined["co"][:, 0], kind="stable")
    return {field: values[order] for field, values in joined.items()}, is_old[order]


def _fresh(co: NDArray[Any], interpolation: str) -> Keys:
    """Return new keys, as Blender inserts them but for their handles."""
    fresh: Keys = {field: np.zeros((len(co), width), dtype) for field, (dtype, width) in _FIELDS.items()}
    fresh["co"][:] = co
    for field in ("handle_left_type", "handle_right_type"):
        fresh[field][:] = _CLAMPED
    for field in ("select_control_point", "select_left_handle", "select_right_handle"):
        fresh[field][:] = True
    for field, values in _defaults(len(co), interpolation).items():
        fresh[field][:, 0] = values
    return fresh


_Rows = tuple[Keys, NDArray[np.bool_]]
"""Keys in order, and a mask of those with handles of their own; Blender computes those of the rest."""


def _in_a_row(blocks: Sequence[_Rows]) -> _Rows:
    """Join keys of consecutive ranges."""
    joined = {field: np.concatenate([keys[field] for keys, _ in blocks]) for field in _FIELDS}
    return joined, np.concatenate([exact for _, exact in blocks])


# The curve beside new keys ----------------------------------------------------------------------------------


def _continued(
    fcurve: bpy.types.FCurve,
    old: Keys | None,
    times: NDArray[np.float32],
    kept: NDArray[np.bool_],
    co: NDArray[np.float32],
    interpolation: str,
    way: int,
    edge: float,
    frame: float,
    still: float | None,
) -> _Rows | None:
    """Return the keys on one side of new ones (-1 before, 1 after) if the old curve needs more than are kept.

    None: it plays there as before with the kept keys alone, or has none to lead to.
    """
    if still is None and not len(times):
        return None
    place, side = edge + way * frame, np.flatnonzero(kept & (way * times > way * edge))
    line = _CONSTANT if interpolation == "CONSTANT" else _LINEAR
    if old is None or not len(side):
        is_sloped = fcurve.extrapolation == "LINEAR"
        if (still is None and not is_sloped) or any(not each.mute for each in fcurve.modifiers):
            return None  # the modifier Cycles would repeat more frames
        places = [place, place + way * frame][::way] if is_sloped else [place]
        there = np.array([fcurve.evaluate(each) if len(times) else still for each in places], np.float64)
        added = _fresh(np.column_stack((np.array(places), there)), "LINEAR")
        # A constant last key would hold.
        if way < 0 or not is_sloped:
            added["interpolation"][-1] = line
        return added, np.zeros(len(places), np.bool_)
    near = int(side[-1 if way < 0 else 0])
    inner = near - way  # the key on the other side of the place
    keys = {field: rows[side].copy() for field, rows in old.items()}
    rest: list[_Rows] = [(keys, np.ones(len(side), np.bool_))]
    if way * float(times[near]) <= way * place + MERGE_DISTANCE:
        slope = _slope(fcurve, keys, way, frame) if old["interpolation"][near, 0] == _LINEAR else []
        return _in_a_row([*rest, *slope][::way]) if slope else None
    is_end = not 0 <= inner < len(times)
    kind = int(old["interpolation"][min(near, inner) if not is_end else near, 0])
    if is_end and (way > 0 or kind != _CONSTANT):
        kind = _LINEAR  # of a curve beyond its ends
    if way < 0 and kind == _CONSTANT:
        return None
    value, last = float(old["co"][near, 1]), len(side) - 1 if way < 0 else 0
    handle = "handle_right" if way < 0 else "handle_left"
    halves = _split(old, min(near, inner), place) if kind == _BEZIER else None
    pieces = None if halves is None else halves[:1] if way < 0 else halves[1:]
    if kind > _LINEAR and pieces is None:
        stop = float(times[near]) - way * MERGE_DISTANCE
        every = np.arange(place, stop, way * frame)  # all whole frames between, from the range outwards
        values = [*(fcurve.evaluate(each) for each in every.tolist()), value]
        pieces = _fitted(np.append(every, times[near])[::way], np.array(values)[::way])
    beside = np.array(fcurve.evaluate(place)) if pieces is None else pieces[..., 1]
    is_flat = (beside == value).all() and co[0 if way < 0 else -1, 1] == value
    # The last new key leads to the nearest one by its handle, whatever led there before.
    if is_flat and (way < 0 or interpolation != "BEZIER" or old[handle][near, 1] == value):
        return None  # before and after
    if pieces is None:
        added = _fresh(np.array([(place, float(beside))]), "CONSTANT" if kind == _CONSTANT else "LINEAR")
    else:
        knots = np.concatenate((pieces[:, 0], pieces[-1:, 3]))
        left, right = np.concatenate((knots[:1], pieces[:, 2])), np.concatenate((pieces[:, 1], knots[-1:]))
        ours = slice(1, None) if way < 0 else slice(None, -1)
        added = _fresh(knots[ours], "BEZIER")
        added["handle_left"][:], added["handle_right"][:] = left[ours], right[ours]
        added["handle_left_type"][:] = added["handle_right_type"][:] = _FREE
        keys[handle][last] = right[0] if way < 0 else left[-1]
        _unlink(keys, last, way, _FREE if halves is None else _ALIGNED)
    if way < 0:
        keys["interpolation"][last] = _LINEAR if pieces is None else _BEZIER
        added["interpolation"][-1] = line
    is_line = keys["interpolation"][last, 0] == _LINEAR  # whose slope beyond the key its neighbour gives
    if is_line and not (kind == old["interpolation"][near, 0] == _LINEAR):
        rest += _slope(fcurve, keys, way, frame)
    return _in_a_row([(added, np.zeros(len(added["co"]), np.bool_)), *rest][::way])


def _slope(fcurve: bpy.types.FCurve, keys: Keys, way: int, frame: float) -> list[_Rows]:
    """Return a key beyond an only key that holds the linear extrapolation, which its other neighbour gave."""
    if len(keys["co"]) > 1 or fcurve.extrapolation != "LINEAR" or any(not m.mute for m in fcurve.modifiers):
        return []
    place = float(keys["co"][0, 0]) + way * frame
    return [(_fresh(np.array([(place, fcurve.evaluate(place))]), "LINEAR"), np.zeros(1, np.bool_))]


def _unlink(keys: Keys, row: int, way: int, kind: int) -> None:
    """Keep Blender from computing the handle of a key towards a range anew; in place.

    `kind`: type of both handles instead of automatic ones; ALIGNED if their direction is as it was.
    """
    inner, outer = ("handle_right_type", "handle_left_type")[::-way]
    if {int(keys[inner][row, 0]), int(keys[outer][row, 0])} <= {_AUTO, _CLAMPED}:
        keys[inner][row] = keys[outer][row] = kind
    elif kind == _FREE or int(keys[inner][row, 0]) != _ALIGNED:
        keys[inner][row] = _FREE


def _split(keys: Keys, row: int, frame: float) -> NDArray[Any] | None:
    """Split the Bezier curve after a key at a frame, by de Casteljau's algorithm.

    Returns:
        The points (2, 4, 2) of both halves; None where Blender would shorten a handle of theirs, or one of
        the curve's points away from its other key.
    """
    fields = (("co", row), ("handle_right", row), ("handle_left", row + 1), ("co", row + 1))
    a, b, c, d = (keys[field][index].astype(np.float64) for field, index in fields)
    length = d[0] - a[0]
    # Blender shortens handles that reach beyond the other key (BKE_fcurve_correct_bezpart).
    if abs(b[0] - a[0]) > length:
        b = a + (b - a) * length / abs(b[0] - a[0])
    if abs(d[0] - c[0]) > length:
        c = d + (c - d) * length / abs(d[0] - c[0])
    low, high = 0.0, 1.0
    for _ in range(60):
        t = 0.5 * (low + high)
        ab, bc, cd = a + t * (b - a), b + t * (c - b), c + t * (d - c)
        abc, bcd = ab + t * (bc - ab), bc + t * (cd - bc)
        middle = abc + t * (bcd - abc)
        low, high = (t, high) if middle[0] < frame else (low, t)
    halves = np.array([[a, ab, abc, middle], [middle, bcd, cd, d]])
    halves[..., 0] = _coarse(halves[..., 0])
    fits = all(((half[1:3, 0] >= half[0, 0]) & (half[1:3, 0] <= half[3, 0])).all() for half in halves)
    return halves if fits else None


def _fitted(times: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[Any]:
    """Return the points (P, 4, 2) of Bezier curves in a row that fit values at frames.

    Each is a cubic of the frame with the least sum of squared errors. It is halved until it is near enough.
    """
    close = max(FIT * float(np.ptp(values)), float(np.spacing(np.float32(np.abs(values).max()))))
    pieces, spans, thirds = list[NDArray[Any]](), [(0, len(times) - 1)], np.arange(4) / 3.0
    while spans:
        first, last = spans.pop()
        length, rise = times[last] - times[first], values[last] - values[first]
        place = (times[first : last + 1] - times[first]) / length
        rest = values[first : last + 1] - values[first] - rise * place
        bends = np.stack((3.0 * place * (1.0 - place) ** 2, 3.0 * place**2 * (1.0 - place)), axis=1)
        shifts = np.linalg.lstsq(bends, rest, rcond=None)[0]
        if last - first > 1 and np.abs(bends @ shifts - rest).max() > close:
            middle = (first + last) // 2
            spans += [(middle, last), (first, middle)]
            continue
        points = np.stack(
            (times[first] + (times[last] - times[first]) * thirds, values[first] + rise * thirds)
        )
        points[1, 1:3] += shifts
        pieces.append(points.T)
    curves = np.array(pieces)
    curves[..., 0] = _coarse(curves[..., 0])
    return curves


def _coarse(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round the frames of Bezier points in a row to the float32 spacing of the largest.

    Frames near 0 are stored finer. The least difference of them would be the leading coefficient of the cubic
    that Blender solves for a frame, which it cannot do exactly if that is tiny.
    """
    grain = float(np.spacing(np.float32(np.abs(times).max())))
    return grain * np.round(times / grain)


# Changes of keys --------------------------------------------------------------------------------------------


def change_after(fcurve: bpy.types.FCurve, frame: float, factor: float, offset: float) -> None:
    """Multiply the values of all keys after a frame, and of their handles, then add an offset."""
    keys = read(fcurve)
    later = keys["co"][:, 0] > np.float32(frame)
    for field in ("co", *_HANDLES):
        keys[field][later, 1] = factor * keys[field][later, 1] + offset
    store(fcurve, keys, np.ones(len(later), np.bool_))


def store(fcurve: bpy.types.FCurve, keys: Keys, exact: NDArray[np.bool_]) -> None:
    """Replace all keys of an F-curve.

    Args:
        keys: in order; two of them may be so near that Blender itself would merge them.
        exact: (K,) mask of keys whose handles are kept; Blender computes the handles of the rest.
    """
    points = fcurve.keyframe_points
    points.clear()
    points.add(len(exact))
    for field, values in keys.items():
        points.foreach_set(field, values.ravel())
    points.sort()
    points.handles_recalc()  # `FCurve.update` would merge keys that an animator has left apart
    for field in _HANDLES:
        handles = _get(fcurve, field)
        handles[exact] = keys[field][exact]
        points.foreach_set(field, handles.ravel())
