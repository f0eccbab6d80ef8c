"""Bones that shift along axes: between what their location channel holds and the core's slides.

Axes, ranges and keys of slides are those of the bone's location channel, whose axes and unit depend on the
bone's flags and its parents' scale. The core's slides are along the joint's rest axes, in the model's unit.
`shift`, a 3x3 matrix of the reading, turns one into the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RigError
from ...limits.shapes import Slide

Array = NDArray[np.float64]

OBLIQUE = 5e-4
"""How oblique the axes of a location may be: Blender's rest matrices are up to 8e-5 off a rotation."""


def refuse(pose_bone: Any, slides: Sequence[Slide]) -> None:
    """Slides that the bone's location cannot make: connected bones have none, locked axes stay."""
    if not slides:
        return
    name = pose_bone.name
    if pose_bone.parent is not None and pose_bone.bone.use_connect:
        raise RigError(
            f"bone '{name}' slides but is connected to its parent: switch off Connected in Edit Mode, or "
            "switch off Slide"
        )
    locked = [
        axis
        for i, axis in enumerate("XYZ")
        if pose_bone.lock_location[i] and any(slide.axis[i] for slide in slides)
    ]
    if locked:
        raise RigError(
            f"bone '{name}' slides but its location is locked on {' and '.join(locked)}: unlock it, or "
            "choose other axes for the slide"
        )


def model_slides(name: str, slides: Sequence[Slide], shift: Array) -> tuple[Slide, ...]:
    """Slides along location axes as slides along the joint's rest axes, in the model's unit.

    Raises:
        RigError: scale makes the location's axes oblique, so that a slide is not one of a rigid joint.
    """
    found = tuple(_model_slide(name, slide, shift) for slide in slides)
    if len(found) < 2:
        return found
    # Blender's axes are at right angles to 8e-5: the nearest that are so exactly (orthogonal Procrustes).
    left, _, right = np.linalg.svd(np.array([slide.axis for slide in found]), full_matrices=False)
    axes = (left @ right).tolist()
    return tuple(replace(slide, axis=tuple(axis)) for slide, axis in zip(found, axes, strict=True))


def _model_slide(name: str, slide: Slide, shift: Array) -> Slide:
    """One of them, for itself.

    Raises:
        RigError: scale makes the location's axes oblique, so that the slide is not one of a rigid joint.
    """
    along = shift @ np.array(slide.axis)
    unit = float(np.linalg.norm(along))
    # The location's other two directions must stay at right angles to it, or they would move it along.
    if float(np.linalg.norm(shift.T @ along / unit - np.array(slide.axis) * unit)) > OBLIQUE * unit:
        raise RigError(
            f"bone '{name}' slides and inherits non-uniform scale, which puts its slide askew: make the "
            "parent's scale uniform, or let it slide along another axis"
        )
    x, y, z = along / unit
    return Slide((x, y, z), slide.lower * unit, slide.upper * unit)


def location_slide(slide: Slide, shift: Array) -> Slide:
    """A joint's slide in the axes and the unit of its bone's location channel.

    Args:
        slide: of the joint, as a reading holds it.
        shift: (3, 3) of the same reading.
    """
    axis = np.linalg.solve(shift, np.array(slide.axis))
    unit = float(np.linalg.norm(axis))  # of location for one of the model
    x, y, z = axis / unit
    return Slide((x, y, z), slide.lower * unit, slide.upper * unit)


def locations_of(shifts: Array, translations: Array) -> Array:
    """(..., 3) what location channels hold for translations (..., 3) along rest axes; (..., 3, 3) shifts."""
    return np.asarray(np.linalg.solve(shifts, translations[..., None])[..., 0], dtype=np.float64)


def translations_of(shifts: Array, locations: Array) -> Array:
    """(..., 3) translations along rest axes for what location channels hold."""
    return np.asarray(np.einsum("...ij,...j->...i", shifts, locations), dtype=np.float64)
