# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion of a bone to a rigid joint, and the check that the joint moves like the bone.

Blender computes the pose matrix of a bone from that of its parent, from rest matrices and from flags: Inherit
Rotation, Inherit Scale, Local Location, Connected. `Bone.convert_local_to_pose` is Blender's implementation.
The core has rigid joints only: R_i = R_p rest_i rotation_i. The constants of a joint are read from
`convert_local_to_pose` in the frame of an unrotated parent. The joint is then compared with Blender's result
for several rotations of parent and bone. If they differ, because scale would shear the bone, it is refused.

The pose matrix of a bone is R diag(stretch): R is the joint's rotation in armature space, `stretch` its
signed scale along its axes. Lengths are in the armature's units.

Axes, ranges, shifts and slopes of slides and coupled offsets are in the space of the bone's location channel.
Axes and unit of this space depend on the bone's flags and its parents' scale. The core has them along the
joint's rest axes, in the model's unit. `shift`, a 3x3 matrix of the reading, converts a location to a
translation.

Along its axis a coupled offset determines the location: keys there do not count, and a bake replaces them.
The rest of the location is kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...kernel import write_locations
from ...limits.shapes import Hinge, Slide
from ...maths.rotations import FULL_TURN
from ...skeleton.joints import CoupledOffset, Joint

EXACT = 1e-5
"""Largest distance of a joint's head from the bone's, relative to its size and distance."""

RIGID = 2e-4
"""Largest distance of a joint's axis from the bone's, relative to its scale. Beyond it the bone is sheared.

Rest matrices of Blender are no more accurate: for bones that point 1 to 20 degrees off -Y they are up to 8e-5
away from a rotation (M M^T against identity; 6,000 directions on 4.2 and 5.2, and Rigify's horse).
"""

STEADY = 5e-6
"""Largest difference of the entries of a rigid motion from a rotation matrix."""

NOISE = 1e-6
"""Relative noise of a scale in float32: a smaller difference is not a change."""

ZERO = 1e-6
"""Smallest scale and length of a bone."""

# Arbitrary rotations (of the parent, of the bone), far from every axis.
_PROBES = (
    (Quaternion(), Quaternion((0.6, -0.48, 0.48, -0.42)).normalized()),
    (Quaternion((0.3, 0.7, -0.5, 0.4)).normalized(), Quaternion((-0.2, 0.5, 0.3, 0.8)).normalized()),
)
_PROBE_LOCATION = Vector((0.31, -0.47, 0.23)).freeze()  # in lengths of the bone

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class BoneRest:
    """Constants of a bone while its armature is animated."""

    name: str  # of the bone
    slot: int  # index in pose.bones
    # Index of its parent among the joints; -1 for the first bone of a chain, even if it has a parent in
    # Blender.
    parent: int
    parent_name: str  # of the parent in Blender, or ""
    parent_slot: int  # index of the parent in Blender in pose.bones, or -1
    length: float  # at rest
    rest: Matrix  # in armature space (`matrix_local`)
    parent_rest: Matrix  # likewise; identity for no parent
    connected: bool  # whether Blender ignores the bone's location
    local_location: bool  # whether the location is along the bone's rest axes, not its parent's
    inherit_rotation: bool  # of the joint
    follows_parent: bool  # whether the bone inherits the rotation of its parent in Blender
    keywords: Mapping[str, Any]  # of the joint, such as limit and stiffness


class PlacedBone(NamedTuple):
    """Bone as a joint, for one scale of it and one matrix of its parent."""

    joint: Joint
    stretch: Triple  # signed scale along the axes of the joint
    shift: NDArray[np.float64]  # (3, 3) matrix from location channel to shift of the head along the rest axes


def place(bone: BoneRest, blender_bone: Any, scale: Sequence[float], parent: Any) -> PlacedBone:
    """Convert a bone to a joint.

    Args:
        parent: pose matrix of the parent, None without one. The evaluated matrix for the first bone of a
            chain, diag(stretch) of the parent joint for the rest.

    Raises:
        RigError: zero scale, or the bone is sheared or mirrored by scale; names the bone.
    """
    name = bone.name
    unposed, columns = _unposed(bone, blender_bone, scale, parent)
    sizes = [column.length for column in columns]
    # A mirrored frame is -1 times a rotation: this factorisation alone commutes with the bone's rotations.
    sign = -1.0 if unposed.to_3x3().determinant() < 0.0 else 1.0
    frame: Any = Matrix([sign / size * column for size, column in zip(sizes, columns, strict=True)])
    rest = nearest_rotation(frame.transposed())
    if bone.parent >= 0:  # errors of rest matrices must not grow along a chain
        sizes = [
            _snapped(_snapped(a, b, RIGID), 1.0, RIGID) for a, b in zip(sizes, parent.to_scale(), strict=True)
        ]
    x, y, z = (_snapped(sign * size * factor, 1.0, NOISE) for size, factor in zip(sizes, scale, strict=True))
    offset: Any = unposed.to_translation()
    shift = rest.to_matrix().transposed() @ _location_axes(bone, parent)
    placed = offset, rest, (x, y, z), shift
    if not all(_is_rigid(bone, blender_bone, scale, parent, *placed, probe) for probe in _PROBES):
        scales = ", ".join(f"{value:.4g}" for value in parent.to_scale())
        raise RigError(
            f"bone '{name}' inherits non-uniform scale ({scales}) from '{bone.parent_name}', which would "
            f"shear it when it turns: make that scale uniform, or set Inherit Scale of '{name}' to Average "
            "or None"
        )
    if y < 0.0 and sign < 0.0:
        raise RigError(f"bone '{name}' is mirrored by a parent: give its parents positive scale")
    if y < 0.0:
        raise RigError(
            f"bone '{name}' is mirrored, so that its tail lies behind its head: give it and its parents "
            "positive scale"
        )
    joint = Joint(
        name,
        bone.parent,
        offset,
        rest,
        bone.length * y,
        inherit_rotation=bone.inherit_rotation,
        **bone.keywords,
    )
    # Row by row: NumPy converts a matrix of mathutils slowly.
    return PlacedBone(joint, (x, y, z), np.array([row[:] for row in shift]))


def _unposed(bone: BoneRest, blender_bone: Any, scale: Sequence[float], parent: Any) -> tuple[Any, list[Any]]:
    """Return the pose matrix of a bone with empty channels, and its columns; see `place`."""
    name = bone.name
    if min(map(abs, scale)) < ZERO:
        raise RigError(f"bone '{name}' has zero scale: give it a scale other than 0")
    if not math.isfinite(sum(map(sum, bone.rest)) + bone.length):  # finite only if every entry is
        raise RigError(
            f"bone '{name}' has a rest pose that is not a number: give it a head and a tail in Edit Mode"
        )
    unposed: Any = _pose_matrix(bone, blender_bone, Matrix.Identity(4), parent)
    columns = [unposed.col[axis].to_3d() for axis in range(3)]
    sizes = [column.length for column in columns]
    if not all(map(math.isfinite, (*sizes, *unposed.translation))):
        raise RigError(
            f"bone '{name}' has a parent '{bone.parent_name}' that is nowhere: clear its transform"
        )
    if min(sizes) < ZERO:
        raise RigError(
            f"bone '{name}' inherits zero scale from '{bone.parent_name}': give that another scale"
        )
    return unposed, columns


def nearest_rotation(matrix: Any) -> Any:
    """Return the rotation nearest to an almost orthogonal 3x3 matrix.

    Polar decomposition by Newton's iteration (Higham 1986, "Computing the polar decomposition"). The small
    errors of the rest matrices of parent and bone therefore do not accumulate along a chain.
    """
    for _ in range(3):  # each step squares the error, which is below 1e-3 or the bone is refused
        try:
            inverse = matrix.inverted()
        except ValueError:  # singular
            break
        matrix = (matrix + inverse.transposed()) * 0.5
    return matrix.to_quaternion().normalized()


def rest_rotation(pose_bone: Any) -> Quaternion:
    """Return the orientation of a bone at rest, in armature space."""
    rest: Quaternion = nearest_rotation(pose_bone.bone.matrix_local.to_3x3())
    return rest


def _snapped(value: float, exact: float, tolerance: float) -> float:
    """Return `value`, or `exact` with its sign if their sizes agree within the relative `tolerance`."""
    return math.copysign(exact, value) if abs(abs(value) - abs(exact)) <= tolerance * abs(exact) else value


def _location_axes(bone: BoneRest, parent: Any) -> Any:
    """Return the 3x3 axes of the location channel in the frame of the parent."""
    if parent is None:
        return bone.rest.to_3x3() if bone.local_location else Matrix.Identity(3)
    if not bone.local_location:
        return parent.to_3x3()
    return parent.to_3x3() @ (bone.parent_rest.inverted() @ bone.rest).to_3x3()


def _pose_matrix(bone: BoneRest, blender_bone: Any, basis: Matrix, parent: Any) -> Any:
    """Return Blender's pose matrix of a bone with the channels `basis` and its parent's pose matrix."""
    if parent is None:
        return blender_bone.convert_local_to_pose(basis, bone.rest)
    return blender_bone.convert_local_to_pose(
        basis, bone.rest, parent_matrix=parent, parent_matrix_local=bone.parent_rest
    )


def with_channels(bone: Any, basis: Matrix) -> Any:
    """Return the pose matrix that a bone would have with the channels `basis` below its present parent."""
    above: dict[str, Any] = {}
    if bone.parent is not None:
        above = {"parent_matrix": bone.parent.matrix, "parent_matrix_local": bone.parent.bone.matrix_local}
    return bone.bone.convert_local_to_pose(basis, bone.bone.matrix_local, **above)


def _is_rigid(
    bone: BoneRest,
    blender_bone: Any,
    scale: Sequence[float],
    parent: Any,
    offset: Any,
    rest: Any,
    stretch: Triple,
    shift: Any,
    probe: tuple[Any, Any],
) -> bool:
    """Whether a joint with these constants moves as its bone, with rotations of parent and bone (`probe`)."""
    parent_turn, turn = probe
    location: Any = Vector() if bone.connected else _PROBE_LOCATION * bone.length
    head = offset + rest @ (shift @ location)
    rotation = rest @ turn
    if bone.parent >= 0:  # for a chain's first bone, the parent is part of the constants and is not rotated
        parent = parent_turn.to_matrix().to_4x4() @ parent
        head = parent_turn @ head
        rotation = parent_turn @ rotation if bone.inherit_rotation else rotation
    expected = _pose_matrix(bone, blender_bone, Matrix.LocRotScale(location, turn, Vector(scale)), parent)
    size = max(bone.length * abs(stretch[1]), offset.length, head.length)
    if not (expected.to_translation() - head).length <= EXACT * size:
        return False
    axes = rotation.to_matrix()
    for axis, factor in enumerate(stretch):
        if not (expected.col[axis].to_3d() - axes.col[axis] * factor).length <= RIGID * abs(factor):
            return False
    return True


Array = NDArray[np.float64]

# Locations -------------------------------------------------------------------------------------------------

OBLIQUE = 5e-4
"""Largest obliqueness of the axes of a location: Blender's rest matrices are up to 8e-5 off a rotation."""

SMALL = 1e-6
"""Largest component of a unit vector that is rounding of single precision."""


def locations_of(shifts: Array, translations: Array) -> Array:
    """Convert translations (..., 3) along rest axes to location channels, with (..., 3, 3) shifts."""
    locations = np.empty(np.broadcast_shapes(shifts.shape[:-1], translations.shape))
    rows, moved = (
        np.ascontiguousarray(np.broadcast_to(each, shape), np.float64)
        for each, shape in ((shifts, (*locations.shape, 3)), (translations, locations.shape))
    )
    write_locations(rows.reshape(-1, 9), moved.reshape(-1, 3), locations.reshape(-1, 3))
    return locations


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
    """Convert a joint's slide to the axes and the unit of its bone's location channel."""
    axis = locations_of(shift, np.array(slide.axis))
    unit = float(np.linalg.norm(axis))  # of location for one of the model
    x, y, z = axis / unit
    return Slide((x, y, z), slide.lower * unit, slide.upper * unit)


# Coupled offsets --------------------------------------------------------------------------------------------


def followers(
    joint_settings: Mapping[str, Mapping[str, Any]], chains: Collection[str]
) -> dict[str, tuple[CoupledOffset, ...]]:
    """Return the coupled offsets of bones outside of chains that follow a bone of a chain."""
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
        joint_settings: {bone: keywords of Joint}, of the bones in chains and of this one.
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
        if pose_bone.lock_location[i] and any(abs(offset.axis[i]) > SMALL for offset in offsets)
    ]
    if locked:
        raise RigError(
            f"bone '{name}' has a coupled offset but its location is locked on {' and '.join(locked)}: "
            "unlock it, or choose another axis for the offset"
        )
    # A location cannot tell a slide from a coupled offset along the same direction.
    coupled = np.eye(3) - free_projection(offsets)
    for slide in settings.get("slides", ()):
        if float(np.linalg.norm(coupled @ np.array(slide.axis))) > SMALL:
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
    spanned = directions[: len(sizes)][sizes > SMALL]
    return np.asarray(np.eye(3) - spanned.T @ spanned)


def projections(joints: Sequence[Mapping[str, Any]]) -> dict[int, Array]:
    """Return {joint: `free_projection`} for joints (keywords of Joint) with coupled offsets."""
    offsets = {j: keywords.get("coupled_offsets", ()) for j, keywords in enumerate(joints)}
    return {j: free_projection(offsets_of_j) for j, offsets_of_j in offsets.items() if offsets_of_j}


def model_offsets(offsets: Sequence[CoupledOffset], shift: Array) -> tuple[CoupledOffset, ...]:
    """Convert coupled offsets along location axes to those of the joint, in the model's unit."""
    return tuple(_in_axes(offset, shift @ np.array(offset.axis)) for offset in offsets)


def location_offset(offset: CoupledOffset, shift: Array) -> CoupledOffset:
    """Convert a joint's coupled offset to the axes and the unit of its bone's location channel."""
    return _in_axes(offset, locations_of(shift, np.array(offset.axis)))


def _in_axes(offset: CoupledOffset, along: Array) -> CoupledOffset:
    """Return a coupled offset in other axes, in which a shift of 1 is the vector `along`."""
    unit = float(np.linalg.norm(along))
    x, y, z = (along / unit).tolist()
    shifts = tuple(shift * unit for shift in offset.shifts)
    slopes = None if offset.slopes is None else tuple(slope * unit for slope in offset.slopes)
    return CoupledOffset(offset.hinge, (x, y, z), offset.angles, shifts, slopes)
