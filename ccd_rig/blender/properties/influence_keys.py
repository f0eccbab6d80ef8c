# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of constraints' influences in the present action: 1 in spans of frames, 0 between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import bpy

from ...errors import RigError
from ..keys.channels import fcurves_of

FIELD = "influence"


def require_keyable(armature_object: bpy.types.Object, constraints: Sequence[Any]) -> None:
    """Raise RigError, which names the constraint, unless influences can be keyed."""
    animation = armature_object.animation_data
    if animation is None:
        return
    action = animation.action
    if action is not None and not action.is_editable:
        raise RigError(
            f"Action '{action.name}' is linked from a library: make it local to key Influence in it"
        )
    for constraint in constraints:
        path = _path(constraint)
        where = f"Constraint '{constraint.name}': Influence"
        if any(driver.data_path == path for driver in animation.drivers):
            raise RigError(f"{where} has a driver: remove it, or disable the constraint")
        for curve in fcurves_of(armature_object):
            if curve.data_path == path and (curve.lock or (curve.group is not None and curve.group.lock)):
                raise RigError(f"{where} has a locked F-curve: unlock it in the Graph Editor")


def key_spans(constraint: Any, spans: Sequence[tuple[int, int]], start: int, end: int) -> None:
    """Key the influence 1 in spans of a range of frames and 0 between them, with constant interpolation.

    Keys in the range are replaced; the animation after it stays.

    Args:
        constraint: stored constraint; see `require_keyable`.
        spans: first and last frame of each span, in order, disjoint, inside the range.
        start, end: first and last frame of the range.
    """
    before = curve_of(constraint)
    if before is not None:
        times = [point.co[0] for point in before.keyframe_points]
        after, value = [t for t in times if t > end], before.evaluate(end + 1)
        for time in (t for t in times if start <= t <= end):
            constraint.keyframe_delete(FIELD, frame=time)
        if after and after[0] > end + 1:
            constraint.influence = value
            constraint.keyframe_insert(FIELD, frame=end + 1)
    values = {start: 0.0} | {last + 1: 0.0 for _, last in spans if last < end}
    values |= {first: 1.0 for first, _ in spans}
    for frame, value in sorted(values.items()):
        constraint.influence = value
        constraint.keyframe_insert(FIELD, frame=frame)
    curve: Any = curve_of(constraint)
    for point in curve.keyframe_points:
        if round(point.co[0]) in values:
            point.interpolation = "CONSTANT"
    curve.update()


def planted_spans(constraint: Any) -> list[tuple[int, int | None]]:
    """Return first and last frame of each span whose keys are above 0.5; None for a span without an end."""
    curve = curve_of(constraint)
    spans: list[tuple[int, int | None]] = []
    for point in [] if curve is None else curve.keyframe_points:
        frame, is_on = round(point.co[0]), point.co[1] > 0.5
        is_open = bool(spans) and spans[-1][1] is None
        if is_on and not is_open:
            spans.append((frame, None))
        elif is_open and not is_on:
            spans[-1] = spans[-1][0], frame - 1
    return spans


def has_keys(constraint: Any) -> bool:
    """Whether the influence has an F-curve in the present action."""
    return curve_of(constraint) is not None


def curve_of(constraint: Any) -> Any | None:
    """Return the F-curve of a constraint's influence in the present action, or None."""
    path = _path(constraint)
    return next((curve for curve in fcurves_of(constraint.id_data) if curve.data_path == path), None)


def _path(constraint: Any) -> str:
    return f"{constraint.path_from_id()}.{FIELD}"
