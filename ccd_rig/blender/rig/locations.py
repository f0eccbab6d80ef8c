# SPDX-License-Identifier: GPL-3.0-or-later
"""Slides and coupled offsets of bones, converted between the location channel and the core.

Axes, ranges, shifts and slopes of a bone are in the space of its location channel. Axes and unit of this
space depend on the bone's flags and its parents' scale. The core has them along the joint's rest axes, in the
model's unit. `shift`, a 3x3 matrix of the reading, converts a location to a translation.

Along its axis a coupled offset determines the location: keys there do not count, and a bake replaces them.
The rest of the location is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RigError
from ...limits.shapes import Hinge, Slide
from ...maths.alignment import FULL_TURN
from ...skeleton.coupled_offset import CoupledOffset

Array = NDArray[np.float64]

OBLIQUE = 5e-4
"""Largest obliqueness of the axes of a location: Blender's rest matrices are up to 8e-5 off a rotation."""

APART = 1e-6
"""Largest component of a unit vector that is rounding of single precision."""


def locations_of(shifts: Array, translations: Array) -> Array:
    """Convert translations (..., 3) along rest axes to location channels, with (..., 3, 3) shifts."""
    return np.asarray(np.linalg.solve(shifts, translations[..., None])[..., 0], dtype=np.float64)


def translations_of(shifts: Array, locations: Array) -> Array:
    """Convert location channels (..., 3) to translations along rest axes, with (..., 3, 3) shifts."""
    return np.asarray(np.einsum("...ij,...j->...i", shifts, locations), dtype=np.float64)


# Slides -----------------------------------------------------------------------------------------------------


def require_slides(pose_bone: Any, slides: Sequence[Slide]) -> None:
    """Raise RigError unless a bone's location is free along its slides: neither connected nor locked."""
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
    """Convert slides along location axes to slides along the joint's rest axes, in the model's unit.

    Raises:
        RigError: scale makes the location's axes oblique, and no rigid joint slides like that.
    """
    converted = tuple(_model_slide(name, slide, shift) for slide in slides)
    if len(converted) < 2:
        return converted
    # Blender's axes are orthogonal to 8e-5: take the nearest orthonormal ones (orthogonal Procrustes).
    left, _, right = np.linalg.svd(np.array([slide.axis for slide in converted]), full_matrices=False)
    axes = (left @ right).tolist()
    return tuple(replace(slide, axis=tuple(axis)) for slide, axis in zip(converted, axes, strict=True))


def _model_slide(name: str, slide: Slide, shift: Array) -> Slide:
    """Convert one slide, see `model_slides`."""
    along = shift @ np.array(slide.axis)
    unit = float(np.linalg.norm(along))
    # The location's other two directions must be orthogonal to it, or they would move the head along it.
    if float(np.linalg.norm(shift.T @ along / unit - np.array(slide.axis) * unit)) > OBLIQUE * unit:
        raise RigError(
            f"bone '{name}' slides and inherits non-uniform scale, which puts its slide askew: make the "
            "parent's scale uniform, or let it slide along another axis"
        )
    x, y, z = along / unit
    return Slide((x, y, z), slide.lower * unit, slide.upper * unit)


def location_slide(slide: Slide, shift: Array) -> Slide:
    """Convert a joint's slide to the axes and the unit of its bone's location channel.

    Args:
        slide: of a joint of a reading.
        shift: (3, 3) of the same reading.
    """
    axis = np.linalg.solve(shift, np.array(slide.axis))
    unit = float(np.linalg.norm(axis))  # of location for one of the model
    x, y, z = axis / unit
    return Slide((x, y, z), slide.lower * unit, slide.upper * unit)


# Coupled offsets --------------------------------------------------------------------------------------------


def followers(
    joint_settings: Mapping[str, Mapping[str, Any]], chains: Collection[str]
) -> dict[str, tuple[CoupledOffset, ...]]:
    """Return the coupled offsets of bones outside of chains that follow a bone of a chain.

    Args:
        joint_settings: {bone: keywords of Joint}.
        chains: names of the bones in chains.
    """
    outside = {
        name: tuple(settings.get("coupled_offsets", ()))
        for name, settings in joint_settings.items()
        if name not in chains
    }
    return {
        name: offsets
        for name, offsets in outside.items()
        if any(offset.hinge in chains for offset in offsets)
    }


def require_offsets(
    pose_bone: Any, joint_settings: Mapping[str, Mapping[str, Any]], chains: Collection[str]
) -> None:
    """Raise RigError unless a bone's location is free for its coupled offsets, and their drivers are valid.

    Args:
        pose_bone: the bone.
        joint_settings: {bone: keywords of Joint}, of the bones in chains and of this one.
        chains: names of the bones in chains.
    """
    name, settings = pose_bone.name, joint_settings.get(pose_bone.name, {})
    offsets: Sequence[CoupledOffset] = settings.get("coupled_offsets", ())
    if not offsets:
        return
    if pose_bone.parent is not None and pose_bone.bone.use_connect:
        raise RigError(
            f"bone '{name}' has a coupled offset but is connected to its parent: switch off Connected in "
            "Edit Mode, or remove the offset"
        )
    locked = [
        axis
        for i, axis in enumerate("XYZ")
        if pose_bone.lock_location[i] and any(abs(offset.axis[i]) > APART for offset in offsets)
    ]
    if locked:
        raise RigError(
            f"bone '{name}' has a coupled offset but its location is locked on {' and '.join(locked)}: "
            "unlock it, or choose another axis for the offset"
        )
    # A location cannot tell a slide from a coupled offset along the same direction.
    coupled = np.eye(3) - free_projection(offsets)
    for slide in settings.get("slides", ()):
        if float(np.linalg.norm(coupled @ np.array(slide.axis))) > APART:
            axis = "XYZ"[int(np.argmax(np.abs(slide.axis)))]
            raise RigError(
                f"bone '{name}' slides along {axis}, where a coupled offset says its location: switch off "
                f"Slide on {axis}, or choose an axis for the offset at right angles to it"
            )
    for number, offset in enumerate(offsets, start=1):
        _require_driver(pose_bone, number, offset, joint_settings, chains)


def _require_driver(
    pose_bone: Any,
    number: int,
    offset: CoupledOffset,
    joint_settings: Mapping[str, Mapping[str, Any]],
    chains: Collection[str],
) -> None:
    where = f"bone '{pose_bone.name}', coupled offset {number}: its driver '{offset.hinge}'"
    armature_object = pose_bone.id_data
    driver = armature_object.pose.bones.get(offset.hinge)
    if driver is None:
        raise RigError(
            f"{where} is not in armature '{armature_object.name}' (renamed or deleted?): choose another bone"
        )
    if offset.hinge not in {pose_bone.name, *(parent.name for parent in pose_bone.parent_recursive)}:
        raise RigError(f"{where} must be the bone itself or one of its parents: choose another bone")
    if offset.hinge not in chains:
        raise RigError(
            f"{where} is in no chain that is solved: raise the chain length so that it takes part, or choose "
            "another bone"
        )
    limit = joint_settings.get(offset.hinge, {}).get("limit")
    if not isinstance(limit, Hinge) or limit.upper - limit.lower >= FULL_TURN:
        raise RigError(
            f"{where} needs a hinge of less than a full turn as its limit: set Limit of '{offset.hinge}' to "
            "Hinge"
        )
    if all(driver.lock_rotation):
        raise RigError(
            f"{where} has its rotation locked: unlock it, and set its Stiffness to 1 if it must not turn"
        )


def free_projection(offsets: Sequence[CoupledOffset]) -> Array:
    """Return the (3, 3) projection of a location to the directions that coupled offsets leave free."""
    axes = np.array([offset.axis for offset in offsets])
    _, sizes, directions = np.linalg.svd(axes)
    spanned = directions[: len(sizes)][sizes > APART]
    return np.asarray(np.eye(3) - spanned.T @ spanned)


def projections(joints: Sequence[Mapping[str, Any]]) -> dict[int, Array]:
    """Return {joint: `free_projection`} for joints (keywords of Joint) with coupled offsets."""
    offsets = {j: keywords.get("coupled_offsets", ()) for j, keywords in enumerate(joints)}
    return {j: free_projection(offsets_of_j) for j, offsets_of_j in offsets.items() if offsets_of_j}


def model_offsets(offsets: Sequence[CoupledOffset], shift: Array) -> tuple[CoupledOffset, ...]:
    """Convert coupled offsets along location axes to those of the joint, in the model's unit.

    Args:
        offsets: in the axes and the unit of the location channel.
        shift: (3, 3) of the bone, from location to translation along rest axes.
    """
    return tuple(_in_axes(offset, shift @ np.array(offset.axis)) for offset in offsets)


def location_offset(offset: CoupledOffset, shift: Array) -> CoupledOffset:
    """Convert a joint's coupled offset to the axes and the unit of its bone's location channel."""
    return _in_axes(offset, np.linalg.solve(shift, np.array(offset.axis)))


def _in_axes(offset: CoupledOffset, along: Array) -> CoupledOffset:
    """Return a coupled offset in other axes, in which a shift of 1 is the vector `along`."""
    unit = float(np.linalg.norm(along))
    x, y, z = (along / unit).tolist()
    shifts = tuple(shift * unit for shift in offset.shifts)
    slopes = None if offset.slopes is None else tuple(slope * unit for slope in offset.slopes)
    return CoupledOffset(offset.hinge, (x, y, z), offset.angles, shifts, slopes)
