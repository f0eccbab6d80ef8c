"""Conversion of a bone to a rigid joint, and the check that the joint moves like the bone.

Blender computes the pose matrix of a bone from that of its parent, from rest matrices and from flags: Inherit
Rotation, Inherit Scale, Local Location, Connected. `Bone.convert_local_to_pose` is Blender's implementation.
The core has rigid joints only: R_i = R_p rest_i rotation_i. The constants of a joint are read from
`convert_local_to_pose` in the frame of an unrotated parent. The joint is then compared with Blender's result
for several rotations of parent and bone. If they differ, because scale would shear the bone, it is refused.

The pose matrix of a bone is R diag(stretch): R is the joint's rotation in armature space, `stretch` its
signed scale along its axes. Lengths are in the armature's units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from ...errors import RigError
from ...skeleton.joints import Joint

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
    """Constants of a bone while its armature is animated.

    Attributes:
        name: of the bone.
        slot: index in pose.bones.
        parent: index of its parent among the joints; -1 for the first bone of a chain, even if it has a
            parent in Blender.
        parent_name: of the parent in Blender, or "".
        parent_slot: index of the parent in Blender in pose.bones, or -1.
        length: at rest.
        rest, parent_rest: rest matrices in armature space (`matrix_local`); identity for no parent.
        connected: whether Blender ignores the bone's location.
        local_location: whether the location is along the bone's rest axes, not its parent's.
        inherit_rotation: of the joint.
        follows_parent: whether the bone inherits the rotation of its parent in Blender.
        keywords: of the joint, such as limit and stiffness.
    """

    name: str
    slot: int
    parent: int
    parent_name: str
    parent_slot: int
    length: float
    rest: Matrix
    parent_rest: Matrix
    connected: bool
    local_location: bool
    inherit_rotation: bool
    follows_parent: bool
    keywords: Mapping[str, Any]


class PlacedBone(NamedTuple):
    """Bone as a joint, for one scale of it and one matrix of its parent.

    Attributes:
        joint: the joint.
        stretch: signed scale along the axes of the joint.
        shift: (3, 3) matrix from location channel to shift of the head along the rest axes.
    """

    joint: Joint
    stretch: Triple
    shift: NDArray[np.float64]


class _Placed(NamedTuple):
    """Constants of a joint before it is checked; see `PlacedBone`."""

    offset: Any
    rest: Any
    stretch: Triple
    shift: Any


def place(bone: BoneRest, blender_bone: Any, scale: Sequence[float], parent: Any) -> PlacedBone:
    """Convert a bone to a joint.

    Args:
        bone: constants of the bone.
        blender_bone: its bpy.types.Bone.
        scale: its scale channel.
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
    placed = _Placed(offset, rest, (x, y, z), shift)
    if not all(_is_rigid(bone, blender_bone, scale, parent, placed, probe) for probe in _PROBES):
        scales = ", ".join(f"{value:.4g}" for value in parent.to_scale())
        raise RigError(
            f"bone '{name}' inherits non-uniform scale ({scales}) from '{bone.parent_name}', which would "
            f"shear it when it turns: make that scale uniform, or set Inherit Scale of '{name}' to Average "
            "or None"
        )
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
        inverse = matrix.inverted(None)
        if inverse is None:
            break
        matrix = (matrix + inverse.transposed()) * 0.5
    return matrix.to_quaternion().normalized()


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


def _is_rigid(
    bone: BoneRest,
    blender_bone: Any,
    scale: Sequence[float],
    parent: Any,
    placed: _Placed,
    probe: tuple[Any, Any],
) -> bool:
    """Whether joint and bone agree after rotations of the parent and of the bone.

    Args:
        bone: constants of the bone.
        blender_bone, scale, parent: see `place`.
        placed: offset, rest rotation, stretch and shift of the joint.
        probe: rotations of the parent and of the bone.
    """
    parent_turn, turn = probe
    offset, rest, stretch, shift = placed
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
