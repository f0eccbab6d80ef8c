"""Bones that shift as a hinge turns: between their location channel and the core's coupled offsets.

Axes, shifts and slopes are those of the bone's location channel, as of slides (`rig/slides.py`). Along its
axis a coupled offset says what the location is: what was posed or keyed there does not count, and a bake
replaces it. The rest of the location stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import RigError
from ...limits.shapes import Hinge, Slide
from ...maths.alignment import FULL_TURN
from ...skeleton.coupled_offset import CoupledOffset

Array = NDArray[np.float64]

APART = 1e-6
"""Part of a direction that is rounding of single precision."""


def followers(
    joint_settings: Mapping[str, Mapping[str, Any]], chains: Collection[str]
) -> dict[str, tuple[CoupledOffset, ...]]:
    """The coupled offsets of bones outside the chains of which one follows a bone in them.

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


def refuse(pose_bone: Any, joint_settings: Mapping[str, Mapping[str, Any]], chains: Collection[str]) -> None:
    """Coupled offsets that a bone cannot make: its location is not free, or nothing gives their shift.

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
    _refuse_slides(name, settings.get("slides", ()), offsets)
    for number, offset in enumerate(offsets, start=1):
        _refuse_driver(pose_bone, number, offset, joint_settings, chains)


def _refuse_slides(name: str, slides: Sequence[Slide], offsets: Sequence[CoupledOffset]) -> None:
    """A location cannot tell a slide from a coupled offset along the same direction."""
    coupled = np.eye(3) - free_part(offsets)
    for slide in slides:
        if float(np.linalg.norm(coupled @ np.array(slide.axis))) > APART:
            axis = "XYZ"[int(np.argmax(np.abs(slide.axis)))]
            raise RigError(
                f"bone '{name}' slides along {axis}, where a coupled offset says its location: switch off "
                f"Slide on {axis}, or choose an axis for the offset at right angles to it"
            )


def _refuse_driver(
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


def free_part(offsets: Sequence[CoupledOffset]) -> Array:
    """(3, 3) projects a location to the part of it that coupled offsets leave free."""
    axes = np.array([offset.axis for offset in offsets])
    _, sizes, directions = np.linalg.svd(axes)
    spanned = directions[: len(sizes)][sizes > APART]
    return np.asarray(np.eye(3) - spanned.T @ spanned)


def free_parts(joints: Sequence[Mapping[str, Any]]) -> dict[int, Array]:
    """{joint: its `free_part`} of the joints, given by their keywords, that have coupled offsets."""
    offsets = {j: keywords.get("coupled_offsets", ()) for j, keywords in enumerate(joints)}
    return {j: free_part(each) for j, each in offsets.items() if each}


def model_offsets(offsets: Sequence[CoupledOffset], shift: Array) -> tuple[CoupledOffset, ...]:
    """Coupled offsets along location axes as those of the joint, in the model's unit.

    Args:
        offsets: in the axes and the unit of the location channel.
        shift: (3, 3) of the bone, turns a location into a translation along rest axes.
    """
    return tuple(_in_axes(offset, shift @ np.array(offset.axis)) for offset in offsets)


def location_offset(offset: CoupledOffset, shift: Array) -> CoupledOffset:
    """A joint's coupled offset in the axes and the unit of its bone's location channel; the way back."""
    return _in_axes(offset, np.linalg.solve(shift, np.array(offset.axis)))


def _in_axes(offset: CoupledOffset, along: Array) -> CoupledOffset:
    """A coupled offset in other axes, where a shift of 1 is the vector `along`."""
    unit = float(np.linalg.norm(along))
    x, y, z = (along / unit).tolist()
    shifts = tuple(shift * unit for shift in offset.shifts)
    slopes = None if offset.slopes is None else tuple(slope * unit for slope in offset.slopes)
    return CoupledOffset(offset.hinge, (x, y, z), offset.angles, shifts, slopes)
